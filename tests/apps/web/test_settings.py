import json

import pytest

from demur.apps.web.pages.settings import size_of
from demur.apps.web.site import FILE, MOST_SETTINGS, Preferences, read_preferences, site_of, write_preferences
from demur.core.jobs import fields_of
from demur.errors import UsageError
from demur.reports.jobs import report


def test_the_page_tells_where_the_store_is_and_what_it_holds(client, runs, store):
    shown = client.get("/settings.json").json()
    assert (shown["store"], shown["runs"], shown["guarded"]) == (str(store.root), len(runs), False)
    assert shown["size"] == size_of(store.root / "runs") > 0
    assert shown["preferences"] == {"level": 0.95, "replicates": 1000, "seed": 0, "at": 0.2}


def test_kept_results_can_be_cleared(client, store):
    store.keep("a", b"result")
    assert client.get("/settings.json").json()["cache"] > 0
    assert client.delete("/api/cache").json() == {"removed": 1}
    assert store.cached("a") is None
    assert client.get("/settings.json").json()["cache"] == 0


def test_settings_are_changed_and_kept_for_the_next_server(client, store):
    answer = client.patch("/api/settings", json={"level": 0.9, "replicates": 200, "seed": 7, "at": 0.1})
    assert answer.json()["preferences"]["level"] == 0.9
    site = site_of(store)
    site.worker.close()
    assert site.preferences == Preferences(level=0.9, replicates=200, seed=7, at=0.1)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"level": 1.0}, "level must be above 0 and below 1; got 1"),
        ({"replicates": 10}, "replicates must be at least 50 and at most 20000"),
        ({"replicates": 100.5}, "replicates must be a whole number"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"at": "much"}, 'at must be a number; got "much"'),
        ({"at": True}, "at must be a number; got true"),
        ({"at": None}, "at must be a number; got null"),
        ({"colour": 1}, "there is no setting colour; there are level, replicates, seed, at"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_and_nothing_changes(client, site, body, told):
    answer = client.patch("/api/settings", json=body)
    assert answer.status_code == 400
    assert told in answer.json()["error"]
    assert site.preferences == Preferences()


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "{", '{"level": 7}', "null", '{"odd": 1}', "[" * 100_000, '{"seed": ' + "[" * 100_000),
        *('{"level": NaN}', '{"level": 1e999}', '{"seed": 1' + "0" * 5000 + "}", '{"seed": 1.5}', '{"at": "much"}'),
        '{"at": 0.1}' + " " * MOST_SETTINGS,
    ],
    ids=lambda text: text[:20],
)
def test_settings_that_cannot_be_read_are_told_of_and_do_not_stop_the_server(store, text):
    (store.root / FILE).write_text(text, encoding="utf-8")
    site = site_of(store)
    site.worker.close()
    assert site.preferences == Preferences()
    (problem,) = site.problems
    assert problem.startswith(f"{FILE} cannot be used")
    assert problem.endswith("the settings have their defaults")
    assert len(problem) < 600


def test_settings_that_were_kept_are_as_they_were(tmp_path):
    write_preferences(tmp_path, Preferences(at=0.0))
    assert read_preferences(tmp_path) == (Preferences(at=0.0), "")
    assert json.loads((tmp_path / FILE).read_text())["at"] == 0.0


@pytest.mark.parametrize("name", ["level", "seed"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**400, True, "1", None, [1]])
def test_numbers_that_are_none_are_refused(name, value):
    with pytest.raises(UsageError, match=f"{name} must"):
        Preferences().with_changes({name: value})


def test_work_under_way_is_listed_with_a_way_to_cancel_it(client, site):
    job = site.worker.start("nothing of this name", {}, about="odd work")
    assert job.ended.wait(10)
    (shown,) = client.get("/settings.json").json()["jobs"]
    assert (shown["about"], shown["state"]) == ("odd work", "failed")
    assert "odd work" in client.get("/settings").text


def test_sizes_count_what_is_there(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_bytes(b"123")
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    assert size_of(tmp_path / "a") == 3
    assert size_of(tmp_path / "none") == 0


def test_the_form_has_the_options_that_jobs_declare(client):
    form, declared = client.get("/settings.json").json()["form"], {one.name: one for one in fields_of(report)}
    for name, one in form.items():
        field = declared["at_nonreturn" if name == "at" else name]
        assert (one["kind"], one["help"], one["default"]) == (field.kind, field.help, field.default)
        assert [one[end] for end in ("minimum", "above", "below")] == [field.minimum, field.above, field.below]
