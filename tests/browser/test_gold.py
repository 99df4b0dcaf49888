"""Gold graphs in a real browser: every figure is drawn, and a fault leaves the form as it was filled in."""

import numpy as np
import pytest

from apps.web.logs import MARKUP
from demur.store.intake import RunReading


@pytest.fixture(scope="module")
def link(workbench):
    rng = np.random.default_rng(7)
    rows = [
        {"performer": name, "subject": f"{name} {k}", "wer": round(float(x), 2), "done": int(rng.random() < a - b * x)}
        for name, a, b in (("wizards", 1.0, 0.2), ("A", 0.95, 0.8), (f"B {MARKUP}", 0.7, 0.3))
        for k in range(4)
        for x in np.linspace(0, 1, 8)
    ]
    run = workbench.add(f"wizards {MARKUP}", rows, reading=RunReading(x="wer", y="done"))
    return f"/gold/{run}?fit=linear&checks=false"


def drawn(page):
    page.locator("figure").first.wait_for()
    page.locator("[data-figure]:not(:has(svg))").first.wait_for(state="detached")


def test_every_figure_is_drawn_and_can_be_saved(open_page, workbench, link):
    page = open_page(base_url=workbench.url)
    page.goto(link)
    drawn(page)
    assert page.locator("figure svg").count() == page.locator("figure").count() >= 3
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as SVG").first.click()
    assert saved.value.suggested_filename == "gold-1.svg"


def test_a_cost_that_is_none_is_told_above_nothing_and_the_form_keeps_it(open_page, workbench, link):
    page = open_page(base_url=workbench.url)
    page.goto(link)
    drawn(page)
    page.get_by_label("Cost", exact=True).fill("open(p)")
    page.get_by_role("button", name="Show").click()
    page.get_by_role("alert").filter(has_text="cannot use").wait_for()
    assert page.get_by_label("Cost", exact=True).input_value() == "open(p)"
    assert page.get_by_label("Curves").input_value() == "linear"
