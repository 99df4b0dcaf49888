"""The interactive plot in a real browser: dragged, stepped, typed into, touched, and read."""

import re
from dataclasses import replace

import numpy as np
import pytest

from browser.audit import OF_LOOKS, serious_faults
from demur.core.show import numbers
from demur.core.show.numbers import count, tabled_percent
from demur.core.show.page import STYLE as PAGE_STYLE
from demur.core.show.pictures import javascript
from demur.core.show.results import threshold_text
from demur.returns.comparison.compare import compare
from demur.returns.evaluate import evaluate
from demur.returns.explorer import MODULES, STYLE, explorer_document, explorer_html, explorer_page
from demur.returns.table import responses
from demur.returns.threshold import threshold_by_error

N = 100
ROWS = "[data-part=rows] tr"


def answers(system, *, accuracy, seed, n=N, own=0.0):
    rng = np.random.default_rng(seed)
    right = rng.random(n) < accuracy
    confidence = 1 / (1 + np.exp(-rng.normal(1.5 * right, 1.0)))
    silent = rng.random(n) < own
    return [
        {
            "id": place,
            "system": system,
            "target": "yes",
            "prediction": None if silent[place] else "yes" if right[place] else "no",
            "confidence": round(float(confidence[place]), 6),
        }
        for place in range(n)
    ]


@pytest.fixture(scope="module")
def document():
    rows = [*answers("base", accuracy=0.6, seed=0), *answers("better", accuracy=0.8, seed=1)]
    found = compare(responses(rows), replicates=60)
    return explorer_document(found.evaluations, found)


@pytest.fixture(scope="module")
def alone():
    (one,) = evaluate(responses(answers("shy", accuracy=0.7, seed=3, own=0.3)), replicates=40)
    return explorer_document([one])


@pytest.fixture(scope="module")
def whole_page(document):
    """The page of an explorer by itself."""
    return explorer_page(document)


@pytest.fixture(scope="module")
def content(document):
    """An explorer as it stands in other pages."""
    return explorer_html(document)


@pytest.fixture
def standalone(open_page, whole_page):
    """A function that opens the page of an explorer and waits until it is alive."""

    def shown(**options):
        page = open_page(**options)
        page.set_content(whole_page)
        page.wait_for_selector(".explorer-alive")
        return page

    return shown


START = """
import { explore } from "/explorer.js";
window.begin = (content, state) => {
  document.querySelector("main").innerHTML = content;
  const root = document.querySelector("[data-explorer]");
  const told = JSON.parse(document.getElementById(root.dataset.explorer).textContent);
  window.heard = [];
  window.explorer = explore(root, told, window.vegaEmbed, { state, onchange: (news) => window.heard.push(news) });
};
"""


@pytest.fixture(scope="module")
def strict_page(open_shared):
    """A page as the workbench serves it: nothing inline but data, no styles and no scripts from elsewhere."""
    content = {
        "/": '<!doctype html><html lang="en"><head><title>t</title><link rel="stylesheet" href="/s.css"></head><body>'
        '<main></main><script src="/vega.js"></script><script type="module" src="/start.js"></script>',
        "/s.css": PAGE_STYLE + STYLE,
        "/vega.js": javascript(),
        **{f"/{name}": source for name, source in MODULES.items()},
        "/start.js": START,
    }
    kinds = {"/s.css": "text/css", "/": "text/html"}

    def served(route):
        path = "/" + route.request.url.split("/", 3)[3].split("?")[0]
        policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:"
        headers = {"content-security-policy": policy}
        kind = kinds.get(path, "text/javascript") + "; charset=utf-8"
        route.fulfill(
            status=200 if path in content else 404, body=content.get(path, ""), content_type=kind, headers=headers
        )

    page = open_shared()
    page.route("**/*", served)
    page.goto("http://explorer.test/")
    page.wait_for_function("() => window.begin")
    return page


@pytest.fixture
def show(strict_page, content):
    """A function that begins an explorer in the page that these tests share, and waits until it is alive."""

    def shown(what=None, state=None):
        begun = content if what is None else explorer_html(what)
        strict_page.evaluate("([content, state]) => window.begin(content, state)", [begun, state or {}])
        strict_page.wait_for_selector(".explorer-alive")
        return strict_page

    return shown


def table(page):
    rows = page.locator(ROWS).all()
    names = (
        "system",
        "at_share",
        "threshold",
        "nonreturn",
        "error",
        "returned",
        "right",
        "wrong",
        "withheld",
        "missed",
        "cost",
    )
    return [
        dict(zip(names, [plain(cell) for cell in row.locator("th, td").all_inner_texts()], strict=True)) for row in rows
    ]


def plain(text):
    return text.replace("\N{NO-BREAK SPACE}", " ").strip()


def settled(page):
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def plot_place(page, share):
    """Where on the screen a share withheld lies, at half the height of the plot."""
    axis = page.locator(".explorer-plot svg g.mark-rule.role-axis-domain line").first.bounding_box()
    box = page.locator(".explorer-plot svg").bounding_box()
    return axis["x"] + share * axis["width"], box["y"] + box["height"] * 0.4


def drag(page, start, stop):
    page.mouse.move(*plot_place(page, start))
    page.mouse.down()
    page.mouse.move(*plot_place(page, (start + stop) / 2))
    page.mouse.move(*plot_place(page, stop))
    page.mouse.up()
    settled(page)


def at_share(system, share):
    """What the table should say of a system, counted anew."""
    total = system["total"]
    place = max(k for k, kept in enumerate(system["returned"]) if (total - kept) / total <= share + 1e-9)
    return system["returned"][place], system["wrong"][place]


def shown_share(page):
    return float(page.locator("[data-part=typed]").input_value()) / 100


def handles(page):
    return page.locator(".explorer-plot svg g.mark-symbol.role-mark path").evaluate_all(
        "all => all.map((one) => one.getAttribute('transform'))"
    )


def test_at_first_the_script_says_what_the_page_said_without_it(open_page, standalone, whole_page):
    still = open_page(java_script_enabled=False)
    still.set_content(whole_page)
    assert still.locator(".explorer-plot img").count() == 1
    assert not still.locator(".explorer-controls").is_visible()
    live = standalone()
    assert live.locator(".explorer-plot img").count() == 0
    assert table(still) == table(live)
    said = [plain(page.locator("[data-part=said]").inner_text()) for page in (still, live)]
    assert said[0] == said[1]
    assert said[0].startswith("Withholding 20 % of the inputs, base answers ")
    assert said[0].endswith(" better makes significantly fewer errors here.")


def said_with_and_without_script(open_page, whole):
    """The page with its script alive, and its sentence, which is the one it has without the script."""
    still, live = open_page(java_script_enabled=False), open_page()
    for page in (still, live):
        page.set_content(whole)
    live.locator(".explorer-alive").wait_for()
    without, alive = (plain(page.locator("[data-part=said]").inner_text()) for page in (still, live))
    assert without == alive
    return live, alive


def test_of_many_systems_of_one_error_rate_the_script_names_no_best_and_no_worst(open_page):
    logs = [answers(f"s{place}", accuracy=0.5 + 0.06 * place, seed=place) for place in range(6)]
    found = compare(responses([row for log in logs for row in log]), replicates=60)
    choices = [threshold_by_error(one.sample, 0.1, name=one.name) for one in found.evaluations]
    whole = explorer_page(explorer_document(found.evaluations, found, choices=choices))
    live, said = said_with_and_without_script(open_page, whole)
    told = "At the recommended thresholds, every system answers 10 of 100 wrongly (10 %); "
    assert re.match(re.escape(told) + r"s\d withholds the least, [\d.]+ %, and s\d the most, [\d.]+ %\.$", said)
    live.get_by_label("the same share withheld").check()
    live.locator("[data-part=typed]").fill("100")
    live.locator("[data-part=typed]").press("Enter")
    live.locator("[data-part=said]", has_text="every system answers 0 of 100 wrongly").wait_for()


def test_the_script_says_too_for_which_systems_no_threshold_is_recommended(open_page):
    rows = [*answers("base", accuracy=0.6, seed=0), *answers("better", accuracy=0.8, seed=1)]
    found = compare(responses(rows), replicates=60)
    base, better = (threshold_by_error(one.sample, 0.1, name=one.name) for one in found.evaluations)
    choices = [replace(base, threshold=np.nan, nonreturn=1.0), better]
    whole = explorer_page(explorer_document(found.evaluations, found, choices=choices))
    _, said = said_with_and_without_script(open_page, whole)
    assert said.startswith("At the recommended thresholds, better withholds ")
    assert said.endswith(" No threshold is recommended for base.")


@pytest.mark.parametrize("systems", [12, 13])
def test_the_table_of_a_dozen_systems_is_open_where_it_leads_a_page_and_that_of_more_scrolls(open_page, systems):
    logs = [answers(f"s{place:02d}", accuracy=0.7, seed=place, n=30) for place in range(systems)]
    found = compare(responses([row for log in logs for row in log]), replicates=50)
    content = explorer_html(explorer_document(found.evaluations, found), picture=False)
    page = open_page()
    page.set_content(f'<style>{PAGE_STYLE}{STYLE}</style><section class="lead">{content}</section>')
    hidden = page.get_by_role("region", name="At the operating point").evaluate("e => e.scrollHeight - e.clientHeight")
    assert (hidden > 5) == (systems > 12)


def test_a_share_that_ties_put_out_of_reach_is_told_with_the_cutoff_below(open_page):
    rows = [*answers("base", accuracy=0.6, seed=0), *answers("better", accuracy=0.8, seed=1)]
    said = [{**row, "confidence": round(row["confidence"] * 4) / 4} for row in rows]
    found = compare(responses(said), replicates=60)
    whole = explorer_page(explorer_document(found.evaluations, found))
    still, live = open_page(java_script_enabled=False), open_page()
    sentences = []
    for page in (still, live):
        page.set_content(whole)
        if page is live:
            page.locator(".explorer-alive").wait_for()
        sentences.append(plain(page.locator("[data-part=said]").inner_text()))
    assert sentences[0] == sentences[1]
    assert re.match(
        r"Withholding 20 % of the inputs, base answers [\d.]+ % wrongly and better [\d.]+ %\. ", sentences[0]
    )
    assert " Ties leave no threshold there: these rates return tied answers at random, and the next " in sentences[0]
    assert table(still) == table(live)


def test_a_row_that_is_pointed_at_or_picked_has_its_line_in_colour(show):
    page = show()
    row = page.locator(ROWS).nth(1)

    def lines():
        settled(page)
        return page.locator(".explorer-plot path[stroke-width='3.2']").count()

    seen = [lines()]
    for move in (row.hover, row.click, lambda: page.mouse.move(1, 1), row.click, lambda: page.mouse.move(1, 1)):
        move()
        seen.append(lines())
    assert seen == [0, 1, 1, 1, 1, 0]


def test_dragging_moves_table_handles_and_sentence(show, document):
    page = show()
    before, points = table(page), handles(page)
    drag(page, 0.3, 0.5)
    share = shown_share(page)
    assert share == pytest.approx(0.5, abs=0.01)
    assert handles(page) != points
    for row, old, system in zip(table(page), before, document["systems"], strict=True):
        returned, wrong = at_share(system, share)
        assert row != old
        assert (row["returned"], row["wrong"]) == (str(returned), str(wrong))
        assert int(row["right"]) + int(row["wrong"]) == returned
        assert int(row["right"]) + int(row["missed"]) == system["right"]
        assert int(row["withheld"]) == N - returned
        assert float(row["cost"]) == pytest.approx(wrong / N + 0.3 * (N - returned) / N, rel=1e-3)


def test_a_drag_that_leaves_the_plot_stops_at_its_edge(show):
    page = show()
    drag(page, 0.5, 1.2)
    assert shown_share(page) == 1
    assert [row["threshold"] for row in table(page)] == ["return nothing"] * 2
    assert [row["error"] for row in table(page)] == ["0.0 %"] * 2


def test_the_slider_steps_by_cutoffs_by_five_percent_and_to_the_ends(show, document):
    page = show()
    page.locator("[data-part=x]").focus()
    stops = sorted({(N - kept) / N for system in document["systems"] for kept in system["returned"]})
    for key, wanted in [
        ("ArrowRight", min(stop for stop in stops if stop > 0.2 + 1e-9)),
        ("ArrowLeft", 0.2),
        ("PageUp", 0.25),
        ("PageDown", 0.2),
        ("End", 1.0),
        ("Home", 0.0),
        ("ArrowLeft", 0.0),
    ]:
        page.keyboard.press(key)
        settled(page)
        assert shown_share(page) == pytest.approx(wanted, abs=6e-5), key
    assert page.locator("[data-part=x]").get_attribute("aria-valuetext") == "0 % withheld"


def test_everything_can_be_reached_and_moved_with_the_keyboard(standalone):
    page = standalone()
    reached = set()
    for _ in range(12):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.dataset.part ?? document.activeElement.tagName"))
    assert {"align", "x", "typed", "ratio", "SUMMARY"} <= reached


def test_the_cost_slider_walks_the_cost_path(show, document):
    page = show()
    page.locator("[data-part=ratio]").fill("0.5")
    settled(page)
    assert page.locator("[data-part=align][value=cost]").is_checked()
    for row, system in zip(table(page), document["systems"], strict=True):
        best = next(part for part in system["path"] if part["from"] <= 0.5 <= part["to"])
        assert row["threshold"] == ("return nothing" if best["threshold"] is None else str(best["threshold"]))
        assert row["error"] == tabled_percent(best["error"])
        costs = [
            (wrong + 0.5 * (N - kept)) / N for kept, wrong in zip(system["returned"], system["wrong"], strict=True)
        ]
        assert float(row["cost"]) == pytest.approx(min(costs), rel=1e-3)
    said = plain(page.locator("[data-part=said]").inner_text())
    assert said.startswith("When a non-return costs 0.5 of an error, better with a threshold of ")
    own = next(part for part in document["systems"][1]["path"] if part["from"] <= 0.5 <= part["to"])
    assert said.endswith(f"at ratios from {numbers.number(own['from'])} to {numbers.number(own['to'])}.")


def test_one_threshold_for_all_returns_what_is_at_least_as_sure(show):
    page = show()
    page.locator("[data-part=align][value=threshold]").check()
    page.locator("[data-part=typed]").fill("0.6")
    page.locator("[data-part=typed]").press("Enter")
    settled(page)
    logs = [answers("base", accuracy=0.6, seed=0), answers("better", accuracy=0.8, seed=1)]
    for row, log in zip(table(page), logs, strict=True):
        kept = [one for one in log if one["confidence"] >= 0.6]
        assert (row["threshold"], row["returned"]) == ("0.6", str(len(kept)))
        assert row["wrong"] == str(sum(one["prediction"] == "no" for one in kept))
    assert plain(page.locator("[data-part=said]").inner_text()).startswith("At a threshold of 0.6, base withholds ")
    page.locator("[data-part=align][value=share]").check()
    settled(page)
    assert table(page)[0]["returned"] == str(sum(one["confidence"] >= 0.6 for one in logs[0]))


def test_with_one_threshold_a_drag_pulls_the_nearest_curve(show):
    page = show()
    page.locator("[data-part=align][value=threshold]").check()
    drag(page, 0.3, 0.6)
    shares = [float(row["nonreturn"].removesuffix(" %")) for row in table(page)]
    assert any(share == pytest.approx(60, abs=1) for share in shares)
    assert len({row["threshold"] for row in table(page)}) == 1


def test_a_finger_does_what_the_mouse_does(standalone):
    page = standalone(has_touch=True, viewport={"width": 390, "height": 1200})
    x, y = plot_place(page, 0.4)
    page.touchscreen.tap(x, y)
    settled(page)
    assert shown_share(page) == pytest.approx(0.4, abs=0.02)
    session = page.context.new_cdp_session(page)
    for kind, share in [("touchStart", 0.4), ("touchMove", 0.6), ("touchMove", 0.7), ("touchEnd", None)]:
        at = [] if share is None else [dict(zip("xy", plot_place(page, share), strict=True))]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": at})
    settled(page)
    assert shown_share(page) == pytest.approx(0.7, abs=0.03)


def test_shift_and_drag_mark_a_range_of_answers(show, document):
    page = show()
    page.keyboard.down("Shift")
    drag(page, 0.5, 0.25)
    page.keyboard.up("Shift")
    news = page.evaluate("window.heard.at(-1)")
    assert news["region"] == pytest.approx([0.25, 0.5], abs=0.01)
    for one, system in zip(news["systems"], document["systems"], strict=True):
        (most, wrong), (least, still_wrong) = (at_share(system, share) for share in news["region"])
        assert one["region"]["answers"] == most - least
        assert one["region"]["wrong"] == wrong - still_wrong
        assert one["region"]["low"] < one["region"]["high"]
    assert "answers with a confidence of at least" in page.locator("[data-part=marked]").inner_text()
    page.locator("[data-part=clear]").click()
    settled(page)
    assert page.evaluate("window.heard.at(-1).region") is None


def test_a_range_can_be_typed(show):
    page = show()
    page.locator("[data-part=marking] summary").click()
    page.locator("[data-part=from]").fill("10")
    page.locator("[data-part=to]").fill("100")
    page.locator("[data-part=to]").press("Enter")
    settled(page)
    news = page.evaluate("window.heard.at(-1)")
    assert news["region"] == [0.1, 1]
    assert news["systems"][0]["region"]["high"] is None


def test_a_state_comes_back_as_it_was_given_without_news(show):
    for state in (
        {"x": 0.35, "ratio": 0.1, "align": "share", "region": None},
        {"x": 0.5123, "ratio": 0.3, "align": "threshold", "region": [0.1, 0.2]},
        {"x": None, "ratio": 0.3, "align": "threshold", "region": None},
        {"x": 0.2, "ratio": 0.7, "align": "cost", "region": None},
    ):
        page = show(state=state)
        settled(page)
        assert page.evaluate("window.explorer.state()") == state
        assert page.evaluate("window.heard") == []


def test_a_state_that_makes_no_sense_is_as_at_the_start(show, document):
    wanted = {"x": 0.2, "ratio": document["ratio"], "align": "share", "region": None}
    for state in ({"x": 7}, {"x": "a"}, {"align": "sideways"}, {"ratio": -1}, {"region": [0.5, 0.1]}):
        page = show(state=state)
        assert page.evaluate("window.explorer.state()") == wanted, state


def test_news_tell_the_state_and_what_each_system_does_there(show, document):
    page = show()
    page.locator("[data-part=x]").focus()
    page.keyboard.press("End")
    page.keyboard.press("PageDown")
    settled(page)
    news = page.evaluate("window.heard.at(-1)")
    assert (news["x"], news["align"]) == (0.95, "share")
    for one, system in zip(news["systems"], document["systems"], strict=True):
        assert (one["returned"], one["wrong"]) == at_share(system, 0.95)
    page.evaluate("window.explorer.set({ x: 0.1 })")
    settled(page)
    assert page.evaluate("window.explorer.state().x") == 0.1
    assert page.evaluate("window.heard.at(-1).x") == 0.95


def test_screen_readers_hear_the_last_sentence(show):
    page = show()
    page.locator("[data-part=x]").focus()
    for _ in range(5):
        page.keyboard.press("PageUp")
    settled(page)
    said = page.locator("[data-part=said]").inner_text()
    page.wait_for_function("(said) => document.querySelector('[data-part=status]').textContent === said", arg=said)


def test_a_system_alone_needs_no_switch_and_starts_where_it_withholds_by_itself(show, alone):
    page = show(alone)
    assert not page.locator(".explorer-align").is_visible()
    (row,) = table(page)
    (system,) = alone["systems"]
    assert int(row["withheld"]) == system["withheld"]
    assert "significantly fewer errors" not in page.locator("[data-part=said]").inner_text()


def test_markup_in_names_stays_text(show):
    name = '<img src=x onerror="document.title=1">'
    rows = [*answers(name, accuracy=0.6, seed=0), *answers("b", accuracy=0.8, seed=1)]
    found = compare(responses(rows), replicates=20)
    page = show(explorer_document(found.evaluations, found))
    page.locator("[data-part=ratio]").fill("0.5")
    settled(page)
    assert table(page)[0]["system"] == name
    assert name in page.locator("[data-part=said]").inner_text()
    assert page.locator("img").count() == 0


def test_numbers_are_written_as_python_writes_them(strict_page):
    rng = np.random.default_rng(5)
    shares = [k / 16 for k in range(17)] + [k / 400 for k in range(401)] + rng.random(500).tolist() + [0.0004, 0.99996]
    values = [*shares, *(1e4 * rng.random(200)).tolist(), 1234.5, 0.00012345, 1e-7, 123456.0, 2.5, 99995.0]
    source = MODULES["explorer_numbers.js"].replace("export ", "")
    wanted = "shares.map(percent), shares.map(tabledPercent), values.map(number), values.map(count)"
    script = f"([shares, values]) => {{ {source}; return [{wanted}]; }}"
    told = strict_page.evaluate(script, [shares, values])
    assert told[0] == [numbers.percent(one) for one in shares]
    assert told[1] == [tabled_percent(one) for one in shares]
    assert told[2] == [numbers.number(one) for one in values]
    assert told[3] == [count(one) for one in values]


def test_an_update_of_three_systems_of_1500_cutoffs_is_measured(show, capsys):
    systems = [answers(f"system {k}", accuracy=0.6 + 0.1 * k, seed=k, n=1600) for k in range(3)]
    found = compare(responses([row for rows in systems for row in rows]), replicates=20)
    page = show(explorer_document(found.evaluations, found))
    x, y = plot_place(page, 0.1)
    page.mouse.move(x, y)
    page.mouse.down()
    took = page.evaluate(
        """async ([x, y]) => {
          const plot = document.querySelector(".explorer-plot");
          const cell = document.querySelector("[data-part=rows] td:nth-child(3)");
          const took = [];
          for (let step = 1; step <= 20; step += 1) {
            const before = cell.textContent;
            const start = performance.now();
            plot.dispatchEvent(new PointerEvent("pointermove", { clientX: x + 20 * step, clientY: y, bubbles: true }));
            await new Promise((done) => requestAnimationFrame(done));
            took.push(performance.now() - start);
            if (cell.textContent === before) throw new Error("nothing moved");
          }
          return took.sort((one, two) => one - two);
        }""",
        [x, y],
    )
    page.mouse.up()
    with capsys.disabled():
        print(f"\nexplorer update, 3 systems of 1,500 cutoffs: median {took[10]:.1f} ms, worst {took[-1]:.1f} ms")


def test_nothing_serious_is_found_by_axe(show):
    page = show()
    page.locator("[data-part=marking] summary").click()
    for scheme, rules in {"dark": (), "light": OF_LOOKS}.items():
        page.emulate_media(color_scheme=scheme)
        assert serious_faults(page, rules=rules) == []


def test_a_comparison_in_a_notebook_is_alive_in_its_frame(open_page):
    rows = [*answers("base", accuracy=0.6, seed=0), *answers("better", accuracy=0.8, seed=1)]
    shown = compare(responses(rows), replicates=40)._repr_html_()
    page = open_page()
    page.set_content(f'<!doctype html><html lang="en"><body>{shown}</body></html>')
    frame = page.frame_locator("iframe")
    frame.locator(".explorer-alive").wait_for()
    before = frame.locator(ROWS).first.inner_text()
    frame.locator("[data-part=x]").press("PageUp")
    frame.locator("[data-part=said]", has_text="Withholding 25").wait_for()
    assert frame.locator(ROWS).first.inner_text() != before


def test_the_script_writes_thresholds_as_python_does(strict_page):
    rng = np.random.default_rng(0)
    values = [0.0, 48.4, 0.606, 1e-4, 9.9e-5, -5e-5, 1e6, 999999.5, 12345678.0, 1e21, -2.5e300, 5e-324, 0.1 + 0.2]
    values += (rng.normal(size=300) * 10.0 ** rng.integers(-12, 25, 300)).tolist()
    values += [float(f"{value:.{place % 7}g}") for place, value in enumerate(values)]
    module = MODULES["explorer_numbers.js"].replace("export ", "")
    texts = strict_page.evaluate(f"(values) => {{ {module}; return values.map(thresholdText); }}", values)
    assert texts == [threshold_text(value) for value in values]
