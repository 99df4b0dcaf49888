"""The list of runs in a real browser: upload, find, choose, edit, delete."""

import json
import re

import pytest

from apps.web.logs import MARKUP, answers


@pytest.fixture
def page(open_page, workbench):
    """The list of runs."""
    made = open_page(base_url=workbench.url)
    made.goto("/runs")
    return made


def upload(page, name, rows):
    body = "".join(json.dumps(row) + "\n" for row in rows).encode()
    page.set_input_files("#files", {"name": name, "mimeType": "application/json", "buffer": body})
    return page.locator("#uploads > li").last


def test_an_upload_shows_its_progress_and_then_the_run_in_the_list(page):
    item = upload(page, "uploaded.jsonl", answers(40, seed=5))
    item.get_by_text("added", exact=True).wait_for()
    assert item.locator("a").inner_text() == "uploaded"
    row = page.get_by_role("row").filter(has_text="uploaded")
    assert "40" in row.inner_text()


def test_a_bad_upload_says_where_and_can_be_read_otherwise_without_choosing_it_again(page):
    rows = [{"id": k, "meant": "a", "guess": "ab"[k % 2], "sure": k / 9} for k in range(9)]
    item = upload(page, "odd.jsonl", rows)
    fault = item.get_by_role("alert")
    fault.wait_for()
    assert "odd.jsonl" in fault.inner_text()
    assert "Import settings" in item.inner_text()
    item.get_by_label("target", exact=True).select_option("meant")
    assert "guess" in item.get_by_role("region", name="The first rows of odd.jsonl").inner_text()
    assert item.get_by_label("prediction", exact=True).input_value() == "guess", "proposed by its name"
    assert item.get_by_label("confidence", exact=True).input_value() == "sure"
    item.get_by_role("button", name="Import again").click()
    page.locator("#list").get_by_role("link", name="odd", exact=True).wait_for()


def test_a_file_of_no_known_format_is_refused_in_the_page(page):
    item = upload(page, "picture.png", [])
    item.get_by_role("alert").wait_for()
    assert "in no format known here" in item.get_by_role("alert").inner_text()


def test_a_file_can_be_dropped_anywhere_on_the_page(page):
    rows = "".join(json.dumps(row) + "\n" for row in answers(20, seed=6))
    transfer = page.evaluate_handle(
        """(text) => {
          const all = new DataTransfer();
          all.items.add(new File([text], "dropped.jsonl"));
          return all;
        }""",
        rows,
    )
    page.dispatch_event("footer", "dragenter", {"dataTransfer": transfer})
    assert "dropping" in (page.locator("body").get_attribute("class") or "")
    page.dispatch_event("footer", "drop", {"dataTransfer": transfer})
    page.locator("#uploads").get_by_text("added", exact=True).wait_for()
    assert "dropping" not in (page.locator("body").get_attribute("class") or "")


def test_the_first_run_ticked_is_the_baseline_and_the_link_keeps_the_choice(page, workbench):
    beta, alpha = workbench.id_of(f"beta {MARKUP}"), workbench.id_of("alpha")
    compare = page.get_by_role("button", name="Compare", exact=True)
    assert compare.is_disabled()
    page.locator(f"input[value='{alpha}']").check()
    page.locator(f"input[value='{beta}']").check()
    assert page.locator("#chosen").inner_text() == f"alpha is the baseline; against it beta {MARKUP}."
    page.reload()
    assert page.locator("#chosen").inner_text().startswith("alpha is the baseline")
    page.route("**/compare?*", lambda route: route.fulfill(body="compared"))
    compare.click()
    page.wait_for_url(re.compile("/compare"))
    assert page.url.endswith(f"/compare?run={alpha}&run={beta}")


def test_all_runs_shown_are_ticked_at_once(page):
    page.get_by_label("Find", exact=True).fill("alpha")
    page.wait_for_function("() => document.querySelectorAll('#list tbody tr').length === 1")
    everyone = page.get_by_label("Choose all runs shown")
    everyone.check()
    assert page.locator("#chosen").inner_text() == "alpha is the baseline; tick another."
    page.get_by_label("Find", exact=True).fill("")
    page.wait_for_function("() => document.querySelectorAll('#list tbody tr').length > 1")
    assert everyone.evaluate("(box) => box.indeterminate")
    everyone.check()
    assert page.locator("input[name=run]:not(:checked)").count() == 0
    assert page.get_by_role("button", name="Delete…", exact=True).is_enabled()
    everyone.uncheck()
    assert page.locator("input[name=run]:checked").count() == 0


def test_the_list_follows_what_is_typed_and_the_link_restores_it(page):
    page.get_by_label("Find", exact=True).fill("alpha")
    page.wait_for_function("() => document.querySelectorAll('#list tbody tr').length === 1")
    assert page.url.endswith("/runs?search=alpha")
    page.reload()
    assert page.locator("#list tbody tr").count() == 1
    page.get_by_label("Find", exact=True).fill("no such run")
    page.get_by_text("No run matches").wait_for()


def test_a_run_is_renamed_and_tagged_with_the_keyboard_alone(page, workbench):
    workbench.add("plain name", answers(25, seed=7))
    page.reload()
    page.get_by_role("button", name="Edit plain name").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "edit-name"
    page.keyboard.press("Control+A")
    page.keyboard.type("typed name")
    page.keyboard.press("Tab")
    page.keyboard.type("one, two")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="typed name").wait_for()
    row = page.get_by_role("row").filter(has_text="typed name")
    assert row.locator(".tag").all_inner_texts() == ["one", "two"]
    assert "two" in page.get_by_label("Tag", exact=True).inner_text()
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Edit typed name"


def test_a_name_in_use_is_refused_in_the_dialog(open_page, workbench):
    page = open_page(expecting="400 (Bad Request)", base_url=workbench.url)
    page.goto("/runs")
    page.get_by_role("button", name="Edit alpha", exact=True).click()
    page.get_by_label("Name", exact=True).fill(f"beta {MARKUP}")
    page.get_by_role("button", name="Save").click()
    page.locator("#editing [role=alert]").filter(has_text="is taken by another run").wait_for()
    page.keyboard.press("Escape")
    assert page.get_by_role("link", name="alpha", exact=True).is_visible()


def test_an_edit_leaves_alone_what_another_tab_has_changed(page, open_page, workbench):
    workbench.add("in two tabs", answers(25, seed=9))
    page.reload()
    other = open_page(base_url=workbench.url)
    other.goto("/runs")
    page.get_by_role("button", name="Edit in two tabs").click()
    page.get_by_label("Name", exact=True).fill("renamed elsewhere")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("link", name="renamed elsewhere").wait_for()
    other.get_by_role("button", name="Edit in two tabs").click()
    other.get_by_label("Tags, separated by commas").fill("late")
    other.get_by_role("button", name="Save").click()
    row = other.get_by_role("row").filter(has_text="renamed elsewhere")
    row.wait_for()
    assert row.locator(".tag").all_inner_texts() == ["late"]


def test_a_run_is_deleted_only_after_it_was_confirmed(page, workbench):
    workbench.add("short lived", answers(15, seed=8))
    page.reload()
    page.get_by_role("button", name="Delete short lived").click()
    assert page.evaluate("document.activeElement.textContent") == "Keep"
    page.keyboard.press("Enter")
    assert page.get_by_role("link", name="short lived").is_visible()
    page.get_by_role("button", name="Delete short lived").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_role("link", name="short lived").wait_for(state="detached")


def test_several_runs_are_tagged_and_deleted_at_once_and_one_is_pinned(page, workbench):
    for name in ("bulk one", "bulk two"):
        workbench.add(name, answers(15, seed=ord(name[-1])))
    page.goto("/runs?search=bulk&order=name")
    page.get_by_role("button", name="bulk two is the baseline").click()
    page.locator("tr.pinned").wait_for()
    assert page.locator("#list tbody tr").first.locator("th a").inner_text() == "bulk two"
    page.get_by_label("Choose bulk one").check()
    assert page.locator("#chosen").inner_text() == "bulk two is the baseline; against it bulk one."
    page.get_by_label("Choose bulk two").check()
    page.get_by_role("button", name="Tag…").click()
    page.get_by_label("Tags to add, separated by commas").fill("night")
    page.get_by_role("button", name="Save").click()
    page.locator(".tag", has_text="night").nth(1).wait_for()
    page.get_by_role("link", name="AUGRC").click()
    page.locator("th[aria-sort=ascending]", has_text="AUGRC").wait_for()
    assert "order=augrc" in page.url
    page.get_by_role("button", name="Delete…").click()
    assert "these 2 runs" in page.locator("#removing").inner_text()
    page.get_by_role("button", name="Delete", exact=True).click()
    page.wait_for_url(lambda url: "search" not in url)
    assert "bulk" not in page.locator("#list").inner_text()


def test_the_colours_chosen_in_the_settings_hold_for_all_pages(page):
    page.goto("/settings")
    page.get_by_label("dark", exact=True).check()
    page.goto("/runs")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(22, 22, 22)"
    page.goto("/settings")
    page.get_by_label("as the system has them").check()
    page.reload()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(253, 253, 252)"


def test_settings_are_saved_and_wrong_ones_refused(page):
    page.goto("/settings")
    page.get_by_label("Bootstrap replicates").fill("200")
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_role("button", name="Saved").wait_for()
    page.reload()
    assert page.get_by_label("Bootstrap replicates").input_value() == "200"
    page.get_by_role("button", name="Reset").click()
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_role("button", name="Saved").wait_for()


def test_text_that_scripts_put_in_shows_what_is_not_seen(page):
    item = upload(
        page, "a\u202egnp.jsonl", [{"id": 1, "target": "a", "prediction": "a", "confidence": "\x1b\u202ehigh"}]
    )
    item.get_by_role("alert").wait_for()
    assert item.locator("strong").inner_text() == "a⟨U+202E⟩gnp.jsonl"
    assert "\u202e" not in item.inner_text()
    assert "⟨U+202E⟩high" in item.get_by_role("alert").inner_text()


def test_a_note_is_edited_as_it_is_and_not_as_it_is_shown(page, workbench):
    run = workbench.add("noted", answers(20, seed=77), note="left\u202eright")
    page.goto("/runs")
    row = page.locator(f'tr[data-run="{run}"]')
    assert row.locator(".note").inner_text() == "left⟨U+202E⟩right"
    row.get_by_role("button", name="Edit").click()
    assert page.locator("#edit-note").input_value() == "left\u202eright"
    page.keyboard.press("Escape")
