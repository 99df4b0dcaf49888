"""The N-best inspector in a real browser: turns by keys, by search, by link."""

import pytest

from apps.web.logs import MARKUP, QUOTES

ACTS = [
    {
        "id": f"u{k}",
        "dialogue": f"d{k // 4}",
        "text": f"utterance {k} {QUOTES}",
        "reference": ["inform", f"food={'thai' if k % 2 else MARKUP}"],
        "hypotheses": [
            {"items": ["inform", "food=tie"], "confidence": round(0.4 + k / 100, 2)},
            {"items": ["inform", "food=thai"], "confidence": 0.3},
        ],
    }
    for k in range(30)
]


@pytest.fixture(scope="module")
def acts(workbench):
    return workbench.add(f"acts {MARKUP}", ACTS)


@pytest.fixture
def page(open_page, workbench, acts):
    made = open_page(base_url=workbench.url)
    made.goto(f"/nbest/{acts}/turns?sort=order")
    made.locator("#inspector .turn").wait_for()
    return made


def shown(page, identifier):
    page.locator("#inspector .turn h3", has_text=identifier).wait_for()


def test_keys_go_through_turns_without_loading_the_page_and_the_link_restores_the_turn(page):
    page.evaluate("window.stayed = true")
    shown(page, "u0 dialogue d0")
    page.keyboard.press("ArrowRight")
    shown(page, "u1 dialogue d0")
    page.keyboard.press("j")
    shown(page, "u2 dialogue d0")
    page.keyboard.press("ArrowLeft")
    shown(page, "u1 dialogue d0")
    assert page.evaluate("window.stayed")
    assert page.url.endswith("/turns?at=2&sort=order#inspector")
    assert page.locator("#said").inner_text() == "2 of 30: turn 2"
    page.reload()
    shown(page, "u1 dialogue d0")


def test_the_button_that_was_pressed_keeps_the_focus(page):
    page.get_by_role("link", name="Next →").focus()
    page.keyboard.press("Enter")
    shown(page, "u1 dialogue d0")
    assert page.evaluate("document.activeElement.dataset.focus") == "next"


def test_arrows_in_the_search_field_move_in_the_text(page):
    field = page.get_by_label("Search")
    field.fill("u1")
    page.keyboard.press("ArrowLeft")
    shown(page, "u0 dialogue d0")


def test_a_search_is_answered_in_place_and_marks_what_is_right(page):
    page.get_by_label("Search").fill("u7")
    page.keyboard.press("Enter")
    shown(page, "u7 dialogue d1")
    assert page.locator(".turns tbody tr").count() == 1
    right = page.locator(".hypotheses tr.right .item.right").all_inner_texts()
    assert sorted(text.split()[0] for text in right) == ["food=thai", "inform"]
    page.get_by_label("Search").fill("nothing like it")
    page.keyboard.press("Enter")
    page.get_by_text("No turn is to be seen").wait_for()


def test_another_order_is_taken_as_soon_as_it_is_chosen(page):
    page.get_by_label("Order").select_option("better")
    shown(page, "u1 dialogue d0")
    assert "sort=better" in page.url
    assert page.locator(".turns tbody tr").count() == 15


def test_all_figures_of_the_measures_are_drawn(page, acts):
    page.goto(f"/nbest/{acts}")
    page.locator("figure").first.wait_for()
    page.locator("[data-figure]:not(:has(svg))").first.wait_for(state="detached")
    assert page.locator("figure svg").count() >= 3
    assert page.get_by_text("could not be drawn").count() == 0
