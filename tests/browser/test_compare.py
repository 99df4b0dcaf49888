"""Comparing runs in a real browser: moving along the curve, the answers behind it, links, keyboard."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest

from apps.web.logs import MARKUP


def opened(page, workbench, query=""):
    """Opens the comparison of the two runs, with more of a query if need be."""
    one, two = workbench.id_of("alpha"), workbench.id_of(f"beta {MARKUP}")
    page.goto(f"/compare?run={one}&run={two}{query}")
    alive(page)


def alive(page):
    page.locator(".explorer-alive").wait_for()
    page.locator(".answers-table").wait_for()


@pytest.fixture(scope="module")
def shared_page(open_shared, workbench):
    page = open_shared(expecting="400", base_url=workbench.url)
    opened(page, workbench)
    return page


@pytest.fixture
def page(shared_page):
    """The comparison at the point at which it opens, whatever was done there before."""
    for label, first in {"Show": "wrong", "domain": "", "Answers of": None}.items():
        choice = shared_page.get_by_label(label)
        choice.select_option(index=0) if first is None else choice.select_option(first)
    shared_page.locator("[data-part=align][value=share]").check()
    shared_page.locator('[data-part="x"]').fill("0.2")
    settled(shared_page)
    return shared_page


def told(page):
    """What the table at the operating point says of the first run: threshold and number of wrong answers."""
    cells = page.locator(".explorer-table tbody tr").first.locator("td").all_inner_texts()
    return float(cells[1]), int(cells[6])


def settled(page):
    """Waits until the table is drawn anew, and the answers below are those of its point: as many, at its threshold."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    page.wait_for_function(
        """() => {
          const cells = document.querySelector(".explorer-table tbody tr").cells;
          const part = document.querySelector("#answers .scroll");
          const caption = part?.querySelector("caption").textContent ?? "";
          const shown = Number(caption.match(/threshold of ([-.e\\d]+)/)?.[1]);
          const wanted = Number(Number(cells[2].textContent).toPrecision(4));
          return shown === wanted && Number(part.dataset.total) === Number(cells[7].textContent.replaceAll(",", ""));
        }"""
    )


def query_of(page):
    return parse_qs(urlsplit(page.url).query)


def drag(page, start, stop, steps=6):
    box = page.locator(".explorer-plot").bounding_box()
    height = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + start * box["width"], height)
    page.mouse.down()
    page.mouse.move(box["x"] + stop * box["width"], height, steps=steps)
    page.mouse.up()


def test_dragging_moves_the_counts_and_the_answers_below(page):
    before = told(page)
    drag(page, 0.3, 0.7)
    settled(page)
    assert told(page)[0] > before[0]
    assert told(page)[1] < before[1]


def test_an_update_takes_a_fraction_of_a_second(page, capsys):
    took = page.evaluate(
        """async () => {
          const slider = document.querySelector('[data-part="x"]');
          const place = document.querySelector('#answers [data-part="table"]');
          const times = [];
          for (const x of [0.25, 0.4, 0.3, 0.55, 0.45, 0.6]) {
            const start = performance.now();
            const changed = new Promise((resolve) => new MutationObserver(resolve).observe(place, { childList: true }));
            slider.value = x;
            slider.dispatchEvent(new Event("input"));
            await changed;
            times.push(performance.now() - start);
          }
          return times.map(Math.round);
        }"""
    )
    with capsys.disabled():
        print(f"\nfrom a move to the answers behind it: {took} ms")
    assert len(took) == 6


def test_the_link_restores_the_point_the_filters_and_the_answers(page, open_page):
    drag(page, 0.3, 0.6)
    page.get_by_label("Show").select_option("missed")
    page.get_by_label("domain").select_option("domain=bank")
    page.wait_for_function(
        "() => ['x=', 'show=missed', 'domain%3Dbank'].every((part) => location.search.includes(part))"
    )
    again = open_page()
    again.goto(page.url)
    alive(again)
    assert told(again) == told(page)
    assert again.get_by_label("Show").input_value() == "missed"
    assert again.get_by_label("domain").input_value() == "domain=bank"
    shown = again.locator(".answers-table").inner_text()
    assert "right but withheld" in shown
    page.wait_for_function("(then) => document.querySelector('.answers-table').innerText === then", arg=shown)


def test_the_keyboard_alone_moves_the_point_and_reaches_the_answers(page):
    before = told(page)
    page.locator('[data-part="x"]').focus()
    for key in ("PageUp", "PageUp", "ArrowRight"):
        page.keyboard.press(key)
    settled(page)
    assert told(page) != before
    page.get_by_label("Answers of").focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_function(
        "() => document.querySelector('.answers-table th:nth-child(4)').textContent.includes('beta')"
    )
    summary = page.locator(".answers-table summary").first
    summary.focus()
    page.keyboard.press("Enter")
    assert page.locator(".hypotheses").first.is_visible()


def test_the_cost_slider_walks_the_cost_path_and_the_answers_follow(page):
    slider = page.locator('[data-part="ratio"]')
    slider.fill("0.05")
    page.wait_for_function("() => document.querySelector('[data-part=\"said\"]').textContent.includes('cheapest')")
    settled(page)
    low = told(page)[0]
    slider.fill("0.9")
    page.wait_for_function(
        f"() => Number(document.querySelector('.explorer-table tbody td:nth-of-type(2)').textContent) < {low}"
    )
    settled(page)
    page.wait_for_function("() => location.search.includes('ratio=0.9')")
    assert query_of(page)["align"] == ["cost"]


def test_a_marked_range_shows_the_answers_between_its_ends(open_page, workbench):
    page = open_page(base_url=workbench.url)
    opened(page, workbench, "&from=0.2&to=0.4")
    page.wait_for_function(
        "() => document.querySelector('.answers-table caption').textContent.includes('confidence at least')"
    )
    page.get_by_label("Show").select_option("all")
    page.wait_for_function("() => document.querySelector('.answers-table caption').textContent.includes(': all')")
    marked = page.locator('[data-part="marked"]').inner_text()
    answers = int(re.search(r"alpha: (\d+) answers", marked).group(1))
    assert int(page.locator("#answers .scroll").get_attribute("data-total")) == answers


def test_what_one_run_alone_gets_wrong_is_shown_beside_the_other(page):
    page.get_by_label("Show").select_option("alone")
    page.wait_for_function("() => document.querySelector('.answers-table caption').textContent.includes('not there')")
    rows = page.locator(".answers-table tbody tr")
    assert rows.count() > 0
    assert all("✗" in text for text in rows.locator('td[data-of="answer"]').all_inner_texts())


def test_a_search_that_fails_says_so_and_the_page_goes_on(page):
    page.route(
        "**/errors/rows?*search*", lambda route: route.fulfill(status=400, body='<p class="fault">no such search</p>')
    )
    page.get_by_label("Input holds").fill("question")
    page.get_by_role("alert").get_by_text("no such search").wait_for()
    page.get_by_label("Input holds").fill("")
    page.get_by_role("alert").wait_for(state="hidden")
    settled(page)


def test_all_answers_are_a_page_away(page):
    page.locator('[data-part="x"]').fill("0.4")
    settled(page)
    total = page.locator("#answers .scroll").get_attribute("data-total")
    page.get_by_role("link", name="All of these, page by page").click()
    page.wait_for_url(re.compile("/errors"))
    assert page.locator("main .scroll").get_attribute("data-total") == total
