"""Names that try to be more than text, on every page that a command writes and in a real browser."""

from functools import cache

import pytest

from commands import log, run_in
from payloads import COMMANDS, PAYLOADS, write_logs

PAGES = [name for name in COMMANDS if name not in ("validate", "threshold")]


END_OF_NAMES = "</script>^.*$*"
"""What is left of the payloads where long names are cut in their middle."""


@pytest.fixture(scope="module")
def link_to(tmp_path_factory):
    """A function that gives the link to the page of a command, which is made once."""
    folder = write_logs(tmp_path_factory.mktemp("payloads"))

    @cache
    def link(name):
        sampling = () if name == "classes" else ("--replicates", "50")
        assert run_in(folder, *COMMANDS[name], *sampling, "-o", f"{name}.html").returncode == 0
        return (folder / f"{name}.html").as_uri()

    return link


def drawn(page):
    """Unfolds all that is folded, and waits until every picture has given way to a live figure."""
    page.evaluate("() => document.querySelectorAll('section > details > summary').forEach((one) => one.click())")
    page.locator(".chart svg, .explorer-alive svg").first.wait_for()
    page.wait_for_function("() => !document.querySelector('.chart > img')")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_runs_nothing_that_a_name_says_and_draws_its_figures(open_page, link_to, name):
    page = open_page()
    page.goto(link_to(name))
    drawn(page)
    assert page.evaluate("window.harmed") is None
    assert page.get_by_text("could not be drawn").count() == 0
    text = page.locator("body").inner_text()
    assert (PAYLOADS["an image"] if name != "compare" else END_OF_NAMES) in text


@pytest.mark.parametrize("name", ["ends in \\", "ends in\t"])
def test_tooltips_take_names_that_end_in_a_backslash_or_a_tab(open_page, tmp_path, name):
    log(tmp_path / "log.jsonl", n=20, system=[name] * 20, kind=["a", "b"] * 10)
    asked = ("score", "log.jsonl", "--by", "kind", "--replicates", "50", "-o", "score.html")
    assert run_in(tmp_path, *asked).returncode == 0
    page = open_page()
    page.goto((tmp_path / "score.html").as_uri())
    drawn(page)
    point = page.locator(".chart svg g.mark-symbol.role-mark path[aria-roledescription=point]").last
    point.scroll_into_view_if_needed()
    point.hover(force=True)
    page.locator("#vg-tooltip-element.visible").wait_for()
    assert name.strip() in page.locator("#vg-tooltip-element").inner_text()
