"""The answers of a run in a real browser: outcomes, filters, pages, links, keyboard."""

import re

import pytest

from apps.web.logs import MARKUP


@pytest.fixture
def page(open_page, workbench):
    """The answers of the first run at a threshold."""
    made = open_page(base_url=workbench.url)
    made.goto(f"/errors?run={workbench.id_of('alpha')}&threshold=0.5")
    return made


def total(page):
    return int(page.locator("main .scroll").get_attribute("data-total"))


def test_the_counts_of_the_outcomes_are_those_of_their_pages(page):
    for place in range(page.locator(".tabs a").count()):
        tab = page.locator(".tabs a").nth(place)
        count = int(tab.locator(".counted").inner_text())
        with page.expect_navigation():
            tab.click()
        assert page.locator(".tabs a[aria-current]").inner_text().endswith(str(count))
        assert total(page) == count


def test_a_filter_takes_effect_at_once_and_is_in_the_link(page):
    before = total(page)
    page.get_by_label("domain").select_option("domain=bank")
    page.wait_for_url(re.compile("where=domain%3Dbank"))
    assert total(page) < before
    assert "low=" not in page.url
    link = page.url
    shown = page.locator(".answers-table").inner_text()
    page.goto("/errors")
    page.goto(link)
    assert page.locator(".answers-table").inner_text() == shown
    assert page.get_by_label("domain").input_value() == "domain=bank"


def test_markup_in_the_data_is_filtered_by_and_shown_as_text(page):
    page.get_by_label("domain").select_option(f"domain={MARKUP}")
    page.wait_for_url(re.compile("where="))
    assert total(page) > 0
    assert "<img src=x onerror=alert(1)>" in page.locator(".answers-table .input").first.inner_text()


def test_the_keyboard_alone_searches_and_turns_pages(page, workbench):
    page.goto(f"/errors?run={workbench.id_of('alpha')}&show=all&limit=25")
    page.get_by_label("Input holds").focus()
    page.keyboard.type("question 1")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"search=question\+1"))
    assert total(page) == 31
    page.get_by_label("Input holds").fill("")
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "search" not in url)
    page.get_by_role("link", name="Next").focus()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("page=2"))
    assert "51 to 100 of 120" in page.locator(".paging").inner_text()


def test_going_back_finds_the_form_as_it_was(page):
    page.get_by_label("domain").select_option("domain=bank")
    page.wait_for_url(re.compile("where="))
    page.go_back()
    assert page.get_by_label("domain").is_enabled()
    assert page.get_by_label("Confidence from").is_enabled()


def test_a_table_can_be_taken_away(page):
    with page.expect_download() as taken:
        page.get_by_role("link", name="These answers as CSV").click()
    assert taken.value.suggested_filename.endswith("-wrong.csv")
    lines = taken.value.path().read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith('"id","input","target","prediction","confidence"')
    assert len(lines) == total(page) + 1


def test_hypotheses_unfold(page):
    page.locator(".answers-table summary").first.click()
    assert page.locator(".hypotheses").first.is_visible()
    assert page.locator(".hypotheses meter").first.is_visible()
