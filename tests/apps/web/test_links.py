"""Pages of a run that links to a lake: what they show is what pages of the same rows show."""

import polars as pl
import pytest

from apps.web.logs import answers

ROWS = pl.DataFrame([{name: value for name, value in row.items() if name != "nbest"} for row in answers(seed=1)])
OTHER = pl.DataFrame([{name: value for name, value in row.items() if name != "nbest"} for row in answers(seed=2)])


def parquet(path, rows):
    path.parent.mkdir(exist_ok=True)
    rows.write_parquet(path)
    return path


@pytest.fixture(autouse=True)
def _few_replicates(site):
    site.change_preferences({"replicates": 50})


@pytest.fixture
def linked(store, tmp_path):
    return store.link(str(parquet(tmp_path / "lake" / "a.parquet", ROWS).parent), name="linked")[0].run


@pytest.fixture
def here(store, tmp_path):
    return store.add(parquet(tmp_path / "log.parquet", ROWS), name="here")[0].run


def page(client, path, **query):
    answer = client.get(path, params={"wait": 1, **query})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_the_list_of_runs_marks_the_linked_one(client, linked):
    (row,) = page(client, "/runs.json")["runs"]
    assert row["lake"] == list(linked.lake)
    assert 'title="' + linked.lake[0] in client.get("/runs").text


def test_the_page_of_a_linked_run_shows_what_that_of_the_same_rows_shows(client, linked, here):
    for query in ({}, {"by": "domain"}):
        found, expected = (page(client, f"/run/{run.id}.json", **query) for run in (linked, here))
        for one, two in zip(found["evaluation"]["systems"], expected["evaluation"]["systems"], strict=True):
            assert (one["n"], one["measures"]) == (two["n"], two["measures"])
        assert found["filters"] == expected["filters"]
    facts = dict(found["facts"])
    assert (facts["linked to"], facts["counted by"]) == (linked.lake[0], "Polars")
    assert "counted by" in client.get(f"/run/{linked.id}", params={"wait": 1}).text


@pytest.mark.parametrize("query", [{"threshold": 0.5}, {"show": "missed", "threshold": 0.7}, {"where": "domain=bank"}])
def test_errors_of_a_linked_run_are_those_of_the_same_rows(client, linked, here, query):
    found, expected = (page(client, "/errors.json", run=run.id, **query) for run in (linked, here))
    assert found["total"] == expected["total"] > 0
    assert found["counts"] == expected["counts"]
    assert found["slices"] == expected["slices"]
    assert {row["id"] for row in found["rows"]} == {row["id"] for row in expected["rows"]}
    for path in ("/errors", "/errors/rows"):
        html = client.get(path, params={"wait": 1, "run": linked.id, **query}).text
        assert found["rows"][0]["id"] in html
    text = client.get("/errors.csv", params={"run": linked.id, **query}).text
    assert text.count("\r\n") == found["total"] + 1


def test_linked_runs_are_compared_and_reported_where_they_lie(client, store, linked, here, tmp_path):
    second = store.link(str(parquet(tmp_path / "other" / "a.parquet", OTHER).parent), name="second")[0].run
    added = store.add(parquet(tmp_path / "second.parquet", OTHER), name="other")[0].run
    found = page(client, "/compare.json", run=[linked.id, second.id])["comparison"]["pairs"][0]
    expected = page(client, "/compare.json", run=[here.id, added.id])["comparison"]["pairs"][0]
    assert found["augrc_difference"]["value"] == expected["augrc_difference"]["value"]
    assert "Not in this report" in client.get("/report", params={"wait": 1, "run": [linked.id, second.id]}).text


def test_what_a_linked_run_cannot_be_shown_with_is_said(client, linked, here):
    beside = client.get("/errors.json", params={"run": linked.id, "other": here.id})
    assert beside.status_code == 400
    assert "linked runs are shown alone" in beside.text


def test_a_lake_that_has_changed_is_refused_with_how_to_link_it_again(client, linked, tmp_path):
    pages = {f"/run/{linked.id}": {}, "/errors": {"run": linked.id}, "/report": {"run": linked.id}}
    for path, query in pages.items():
        assert client.get(path, params={"wait": 1, **query}).status_code == 200
    parquet(tmp_path / "lake" / "b.parquet", OTHER)
    for path, query in pages.items():  # although the results of all are kept
        answer = client.get(path, params={"wait": 1, **query})
        assert answer.status_code == 400
        assert "has changed since it was linked" in answer.text
        assert "links it again" in answer.text
