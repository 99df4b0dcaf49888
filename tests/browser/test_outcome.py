"""The page of outcomes in a real browser: the map by keyboard, sliders that answer while they move."""

import pytest

from apps.web.logs import MARKUP
from demur.lab import tutor


def marked(rows):
    return [{name: MARKUP if value == "irrelevant" else value for name, value in row.items()} for row in rows]


@pytest.fixture(scope="module")
def link(workbench):
    turns, held = tutor.study(dialogues=30)
    dialogues = workbench.add("gains", held)
    return f"/outcome?turns={workbench.add('tutor turns', marked(turns))}&dialogues={dialogues}&features=conf"


@pytest.fixture
def page(open_page, workbench, link):
    made = open_page(base_url=workbench.url)
    made.goto(link)
    made.locator("table.map").wait_for()
    return made


def answer(page, text):
    page.locator("#what-if-answer", has_text=text).wait_for()


def test_arrows_move_on_the_map_and_enter_chooses_a_cell(page):
    page.locator("table.map a[tabindex='0']").focus()
    assert page.locator("table.map a:not([tabindex='-1'])").count() == 1
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    chosen = page.locator(".details article:visible h3")
    assert chosen.count() == 1
    label = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert label.startswith(chosen.inner_text())
    assert "cell=" in page.url
    page.reload()
    assert label.startswith(page.locator(".details article:visible h3").inner_text())


def test_a_cell_can_be_clicked_and_only_its_details_show(page):
    page.locator("table.map a", has_text="+").first.click()
    assert page.locator(".details article:visible").count() == 1
    assert page.locator("td[aria-selected]").count() == 1


def test_a_slider_is_answered_while_it_moves_and_the_link_restores_it(page):
    page.evaluate("window.stayed = true")
    answer(page, "as it is")
    slider = page.locator("form.sliders input[type=range]").first
    slider.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    answer(page, "a change of +")
    page.wait_for_url(lambda address: "=15" in address)
    assert page.evaluate("window.stayed")
    told = page.locator("#what-if-answer .verdict").inner_text()
    page.reload()
    assert page.locator("#what-if-answer .verdict").inner_text() == told
    page.get_by_role("button", name="As it is").click()
    answer(page, "as it is")
