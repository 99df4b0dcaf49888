"""From the list of runs to the answers behind a point and back, with the keyboard alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from apps.web.logs import MARKUP
from browser.workbench import Workbench

MOST_STEPS = 150
"""Steps after which nobody would go on looking for something with the tabulator."""


def reach(page: Any, selector: str, *, key: str = "Tab") -> None:
    """Step on until what is looked for has the focus, and see that one can see that it has."""
    for _ in range(MOST_STEPS):
        page.keyboard.press(key)
        if page.evaluate("(one) => document.activeElement.matches(one)", selector):
            assert page.evaluate(VISIBLE), f"{selector} has the focus, but nobody can see that"
            return
    pytest.fail(f"{selector} is not reached by the keyboard")


VISIBLE = """() => {
  const one = document.activeElement, style = getComputedStyle(one), box = one.getBoundingClientRect();
  return one.matches(":focus-visible") && style.outlineStyle !== "none" && box.width > 0 && box.right > 0;
}"""


WRITTEN = """() => {
  const linked = new URLSearchParams(location.search).get("x");
  return linked !== null && Math.abs(linked - document.querySelector('[data-part="x"]').value) < 1e-5;
}"""
"""Whether the link tells of the point that is shown."""


def entered(page: Any, selector: str, where: str) -> None:
    """Go to a page by what leads there."""
    reach(page, selector)
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(where))


@pytest.fixture
def page(open_page: Callable[..., Any], workbench: Workbench) -> Any:
    """The list of runs, nothing clicked yet."""
    made = open_page(base_url=workbench.url)
    made.goto("/runs")
    return made


def test_the_first_step_on_every_page_leads_past_the_navigation(page: Any) -> None:
    for link in [one.get_attribute("href") for one in page.locator("header nav a").all()]:
        page.goto(link)
        reach(page, "a.skip")
        assert page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
        page.keyboard.press("Enter")
        page.wait_for_function("() => document.activeElement.id === 'main'")


def test_two_runs_are_chosen_compared_and_looked_into_without_a_mouse(page: Any, workbench: Workbench) -> None:
    one, two = workbench.id_of("alpha"), workbench.id_of(f"beta {MARKUP}")
    for run in (two, one):
        reach(page, f"input[value='{run}']", key="Tab" if run == two else "Shift+Tab")
        page.keyboard.press("Space")
    reach(page, "#compare", key="Shift+Tab")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(f"/compare.run={one}&run={two}"))  # the pinned run is the baseline
    page.locator(".explorer-alive").wait_for()
    before = page.locator(".explorer-table").inner_text()
    reach(page, '[data-part="x"]')
    for key in ("PageUp", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    page.wait_for_function("(then) => document.querySelector('.explorer-table').innerText !== then", arg=before)
    page.wait_for_function(WRITTEN)
    place = page.url
    entered(page, '#answers [data-part="all"]', "/errors")
    assert parse_qs(urlsplit(page.url).query)["run"] == [one]
    filter_by_slice(page)
    page.go_back()
    page.go_back()
    page.wait_for_url(re.compile("/compare"))
    assert parse_qs(urlsplit(page.url).query)["x"] == parse_qs(urlsplit(place).query)["x"]


def filter_by_slice(page: Any) -> None:
    """Choose the first value of the only slice, and see that fewer answers are left."""
    shown = int(page.locator("main .scroll").get_attribute("data-total"))
    reach(page, "select[name=where]")
    page.keyboard.press("ArrowDown")
    page.wait_for_url(re.compile("where=domain"))
    assert 0 < int(page.locator("main .scroll").get_attribute("data-total")) < shown


def test_hypotheses_open_and_the_table_scrolls_without_a_mouse(page: Any, workbench: Workbench) -> None:
    page.goto(f"/errors?run={workbench.id_of('alpha')}")
    reach(page, ".scroll[tabindex]")
    reach(page, ".answers-table summary")
    page.keyboard.press("Enter")
    assert page.locator(".answers-table details[open] .hypotheses").count() == 1


def test_the_list_of_runs_is_searched_without_a_mouse(page: Any) -> None:
    reach(page, "#search")
    page.keyboard.type("alpha")
    page.wait_for_function("() => document.querySelectorAll('#list tbody tr').length === 1")
    entered(page, "#list a[href^='/run/']", "/run/")
    page.get_by_role("heading", name="alpha", exact=True, level=1).wait_for()
