"""A report opened from disk with the network off: every figure is there, nothing is asked for, data stay text."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import demur
from apps.web.logs import MARKUP, QUOTES, answers
from browser.audit import OF_LOOKS, serious_faults, shorten_tables
from demur.core.show.page import presentation_page
from demur.lab import tutor
from demur.returns.presentation import of_comparison

SECTIONS = (
    "Errors and non-returns",
    "Which threshold",
    "Which system",
    "Slices that differ",
    "Do confidences mean what they say",
    "What to look at",
    "How the numbers were made",
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of two systems, N-best lists, dialogues and trials, markup wherever data can have text."""
    rows = [
        {**row, "system": name}
        for seed, name in enumerate((f"first {MARKUP}", f"second {QUOTES}"))
        for row in answers(180, seed=seed, skill=1.0 + seed)
    ]
    heard = [{"items": [f"food={MARKUP}"], "confidence": 0.6}, {"items": ["bye"], "confidence": 0.3}]
    lists = [
        {"id": f"u{k}", "text": MARKUP, "reference": [["bye"], [f"food={MARKUP}"]][k % 2], "hypotheses": heard}
        for k in range(20)
    ]
    trials = [
        {"performer": name, "subject": f"{name} {who}", "noise": k / 10, "done": int(k / 10 < least)}
        for name, least in {"wizards": 0.95, f"system {MARKUP}": 0.55}.items()
        for who in range(4)
        for k in range(who % 2, 11, 2)
    ]
    _, gains = tutor.study(dialogues=10)
    made = tmp_path_factory.mktemp("report") / "report.html"
    demur.report(rows, lists, gains, trials, x="noise", y="done", replicates=50, title=f"All {MARKUP}").save(made)
    return made


def shown(open_one: Callable[..., Any], path: Path, **options: Any) -> Any:
    """The report opened without a network, and unfolded; it asks for nothing besides itself."""
    page = open_one(offline=True, **options)
    asked: list[str] = []
    page.on("request", lambda one: None if one.url.startswith("data:") else asked.append(one.url))
    page.goto(path.as_uri())
    if options.get("java_script_enabled", True):
        page.locator(".explorer-alive").wait_for()
    for fold in page.locator("section > details > summary").all():
        fold.click()
    if options.get("java_script_enabled", True):
        page.wait_for_function("() => !document.querySelector('.chart > img')")
    assert asked == [path.as_uri()]
    return page


@pytest.fixture(scope="module")
def page(open_shared: Callable[..., Any], path: Path) -> Any:
    """The report on a screen."""
    return shown(open_shared, path, color_scheme="light")


def test_every_figure_is_drawn_with_its_description_and_its_table(page: Any) -> None:
    figures = page.locator("figure")
    assert figures.count() >= 8
    for place in range(figures.count()):
        figure = figures.nth(place)
        drawing = figure.locator("svg.marks").first
        box = drawing.bounding_box()
        assert box["width"] > 200
        assert box["height"] > 60
        assert drawing.locator("path").count() > 3
        assert figure.locator(".description").inner_text().strip()
        assert figure.locator("table").count() >= 1


def test_the_story_has_all_its_parts(page: Any) -> None:
    headings = page.locator("section > h2").all_inner_texts()
    assert [one for one in headings if one in SECTIONS] == list(SECTIONS)
    links = page.locator(".contents a")
    assert links.all_inner_texts() == headings[: links.count()]
    assert headings[links.count() :] == ["Notes"]
    for place in range(links.count()):
        target = links.nth(place).get_attribute("href")
        assert page.locator(target).count() == 1


def test_without_scripts_the_figures_are_pictures(open_page: Callable[..., Any], path: Path) -> None:
    page = shown(open_page, path, java_script_enabled=False)
    pictures = page.locator("figure img")
    assert pictures.count() >= 8
    for place in range(pictures.count()):
        assert pictures.nth(place).bounding_box()["height"] > 60
        assert pictures.nth(place).get_attribute("alt")


def test_markup_in_the_data_stays_text(page: Any) -> None:
    assert page.locator("h1").inner_text() == f"All {MARKUP}"
    assert page.get_by_text(f"first {MARKUP}").count() > 0
    assert page.locator("img[onerror], img[src=x]").count() == 0
    assert page.locator("main script:not([type='application/json'])").count() == 0


def test_moving_the_threshold_needs_no_server(page: Any) -> None:
    before = page.locator(".explorer-table").inner_text()
    page.locator('[data-part="x"]').fill("0.6")
    page.wait_for_function("(then) => document.querySelector('.explorer-table').innerText !== then", arg=before)


def test_it_shuts_nobody_out_on_a_wide_screen(page: Any) -> None:
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    shorten_tables(page)
    assert serious_faults(page) == []


def test_it_fits_a_telephone_in_the_dark_and_a_sheet_of_paper(open_page: Callable[..., Any], path: Path) -> None:
    page = shown(open_page, path, color_scheme="dark", viewport={"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    shorten_tables(page)
    # figures have the same colours, and a filter over them
    assert serious_faults(page, besides=("svg",), rules=OF_LOOKS) == []
    page.emulate_media(media="print")
    assert not page.locator(".contents").is_visible()
    assert page.locator("figure").first.is_visible()


def test_table_and_plot_of_three_systems_fill_the_first_screen(
    open_page: Callable[..., Any], tmp_path: Path, tables: dict[str, Any]
) -> None:
    compared = demur.compare(*tables.values(), replicates=50)
    (tmp_path / "compare.html").write_text(presentation_page(of_comparison(compared)), encoding="utf-8")
    page = open_page(viewport={"width": 1280, "height": 800})
    page.goto((tmp_path / "compare.html").as_uri())
    assert page.locator(".lead > .scroll tbody tr").count() == 3
    plot = page.locator(".lead svg.marks").bounding_box()
    assert plot["y"] + plot["height"] <= 800
    edges = page.evaluate(
        "[...document.querySelectorAll('.verdict, .lead figure, .lead .scroll, section > p, section .scroll')]"
        ".filter((part) => part.offsetWidth).map((part) => part.getBoundingClientRect().width)"
    )
    assert len(set(edges)) == 1


def test_a_report_in_brief_prints_on_one_sheet(open_page: Callable[..., Any], tmp_path: Path) -> None:
    long = [{**row, "input": f"{row.get('input', '')} and so on" * 40} for row in answers(180)]
    report = demur.report([{**row, "system": "x" * 120} for row in long], replicates=50, brief=True)
    report.save(tmp_path / "brief.html")
    page = open_page()
    page.goto((tmp_path / "brief.html").as_uri())
    page.wait_for_function("() => !document.querySelector('.chart > img')")
    wrapped = "[...document.querySelectorAll('.texts td bdi')].every((cell) => cell.scrollWidth <= cell.clientWidth)"
    assert page.evaluate(wrapped), "long inputs go on in a second line"
    sheets = page.pdf(format="A4", prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page[^s]", sheets)) == 1
