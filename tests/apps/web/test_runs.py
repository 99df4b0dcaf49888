import json
import shutil

import pytest

import demur
from apps.web.logs import MARKUP, log
from demur.apps.web.pages.runs import SAMPLE
from demur.store.runs import Store


def names(client, query=""):
    return [run["name"] for run in client.get(f"/runs.json{query}").json()["runs"]]


def test_the_front_page_leads_to_the_runs(client):
    answer = client.get("/", follow_redirects=False)
    assert answer.headers["location"] == "/runs"


def test_an_empty_store_shows_what_a_log_looks_like_and_how_to_add_one(client):
    page = client.get("/runs").text
    assert "Nothing here yet" in page
    assert "demur add log.jsonl" in page
    assert page.count("&#34;confidence&#34;") >= 2
    assert "Add the bundled example" in page


def test_the_sample_of_the_empty_page_is_a_log_that_can_be_added(store, tmp_path):
    path = tmp_path / "sample.jsonl"
    path.write_text("\n".join(SAMPLE) + "\n", encoding="utf-8")
    (added,) = store.add(path)
    assert added.run.about["answered"] == 2
    assert added.run.about["out_of_scope"] == 1


def test_the_list_tells_what_matters_of_each_run(client, runs, site):
    alpha, beta = client.get("/runs.json").json()["runs"]
    assert (alpha["name"], alpha["n"], alpha["tags"], alpha["kind"]) == ("alpha", 120, ["baseline"], "responses")
    assert alpha["withheld"] == pytest.approx(10 / 120)
    figures = demur.score(site.store.responses(runs[0]), replicates=50, at_nonreturn=0.2)[0].figures
    assert alpha["error"] == pytest.approx(figures["forced_error"].value)
    assert alpha["augrc"] == pytest.approx(figures["augrc"].value)
    assert alpha["point"] == pytest.approx(figures["error_at_nonreturn"].value)
    assert beta["link"] == f"/run/{runs[1].id}"
    client.patch("/api/settings", json={"at": 0.33})
    document = client.get("/runs.json").json()
    assert document["share"] == 0.3
    assert document["runs"][0]["point"] == runs[0].about["errors_at"][6]
    assert "Error at 30 %" in client.get("/runs").text


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("?search=ALPHA", ["alpha"]),
        ("?search=alp+museum", ["alpha"]),
        ("?search=nothing", []),
        ("?tag=museum", ["alpha"]),
        ("?kind=trials", []),
        ("?order=added", ["alpha", f"beta {MARKUP}"]),
        ("?order=-added", [f"beta {MARKUP}", "alpha"]),
        ("?order=name", ["alpha", f"beta {MARKUP}"]),
        ("?order=-name", [f"beta {MARKUP}", "alpha"]),
    ],
)
def test_runs_are_found_and_put_in_order_by_the_link(client, store, runs, query, found):
    store.change(runs[0].id, tags=["museum"])
    assert names(client, query) == found


@pytest.mark.parametrize("column", ["error", "augrc", "point", "withheld", "rows"])
def test_runs_are_sorted_by_a_column_both_ways(client, store, runs, column):
    store.change(runs[0].id, tags=[])
    values = [
        run["n" if column == "rows" else column] for run in client.get(f"/runs.json?order={column}").json()["runs"]
    ]
    assert values == sorted(values)
    assert names(client, f"?order={column}") == names(client, f"?order=-{column}")[::-1] or values[0] == values[1]
    assert 'aria-sort="ascending"' in client.get(f"/runs?order={column}").text


def test_one_run_of_a_kind_is_pinned_as_the_baseline_and_comes_first(client, runs):
    assert names(client) == ["alpha", f"beta {MARKUP}"]
    assert client.put(f"/api/runs/{runs[1].id}/baseline", json={"pinned": True}).json()["run"]["pinned"]
    assert names(client) == [f"beta {MARKUP}", "alpha"]
    assert [run["pinned"] for run in client.get("/runs.json").json()["runs"]] == [True, False]
    client.put(f"/api/runs/{runs[1].id}/baseline", json={"pinned": False})
    assert not any(run["pinned"] for run in client.get("/runs.json").json()["runs"])
    assert client.put(f"/api/runs/{runs[1].id}/baseline", json={}).status_code == 400


@pytest.mark.usefixtures("runs")
def test_an_order_that_there_is_not_is_refused_with_those_there_are(client):
    answer = client.get("/runs.json?order=best")
    assert answer.status_code == 400
    assert "name, -name" in answer.json()["error"]


def test_a_link_restores_what_was_chosen(client, runs):
    page = client.get(f"/runs?run={runs[0].id}").text
    assert page.count(" checked>") == 1


@pytest.mark.usefixtures("runs")
def test_markup_in_names_tags_and_notes_is_only_text(client):
    page = client.get("/runs").text
    assert "<script>alert" not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 3
    assert "\\u003cscript\\u003ealert" in page


def test_name_tags_and_note_of_a_run_can_be_changed(client, runs, store):
    body = {"name": "first", "tags": ["a", "b"], "note": "the old one"}
    answer = client.patch(f"/api/runs/{runs[0].id}", json=body)
    assert answer.json()["run"]["name"] == "first"
    assert (store.run("first").tags, store.run("first").note) == (("a", "b"), "the old one")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"name": 3}, "must be text"),
        ({"note": ["x"]}, "must be text"),
        ({"tags": "a,b"}, "list of texts"),
        ({"tags": [1]}, "list of texts"),
        ({"name": "  "}, "characters that can be shown"),
        ({"note": "x" * 10_001}, "at most 10,000"),
        ({"name": f"beta {MARKUP}"}, "is taken by another run"),
    ],
)
def test_a_change_that_cannot_be_is_refused_with_the_reason(client, runs, store, body, told):
    answer = client.patch(f"/api/runs/{runs[0].id}", json=body)
    assert answer.status_code == 400
    assert told in answer.json()["error"]
    assert store.run("alpha").note == MARKUP


def test_a_deleted_run_is_gone(client, runs, site):
    site.rows(runs[0])
    assert client.delete(f"/api/runs/{runs[0].id}").json()["removed"]["name"] == "alpha"
    assert names(client) == [f"beta {MARKUP}"]
    assert client.delete(f"/api/runs/{runs[0].id}").status_code == 404


@pytest.mark.usefixtures("runs")
def test_a_run_that_another_program_adds_is_there_at_the_next_look(client, store, tmp_path):
    from demur.store.runs import Store

    other = Store.open(store.root)
    other.add(log(tmp_path / "gamma.jsonl", seed=3))
    other.close()
    assert "gamma" in names(client)


@pytest.mark.usefixtures("runs")
def test_a_damaged_run_is_told_of_on_the_page(client, store, runs):
    (store.root / "runs" / runs[0].id / "rows.parquet").write_bytes(b"")
    page = client.get("/runs").text
    assert "Found in the store" in page
    assert "is damaged" in page


def test_the_logs_of_the_demo_can_be_added_by_a_button(client, site):
    pytest.importorskip("sklearn")
    job = client.post("/api/demo").json()["job"]
    assert site.worker.job(job["number"]).ended.wait(60)
    assert {run["tags"][0] for run in client.get("/runs.json").json()["runs"]} == {"example"}
    assert len(names(client)) == 6


def test_a_damaged_description_leaves_the_list_and_the_other_runs_as_they_are(client, store, runs):
    copied = store.root / "runs" / ("0" * 16)
    copied.mkdir()
    document = runs[0].to_dict() | {"id": copied.name, "sha256": "0" * 64, "name": "copied"}
    (copied / "rows.parquet").write_bytes(b"")
    for about in ({}, document["about"] | {"slices": None}, document["about"] | {"forced_error": []}):
        (copied / "run.json").write_text(json.dumps(document | {"size": 0, "about": about}))
        shown = client.get("/runs.json").json()
        assert {run["id"] for run in shown["runs"]} == {run.id for run in runs}
        assert any(f"({copied.name}) is damaged: its run.json" in one for one in shown["problems"])
        assert client.get("/runs").status_code == 200
        assert client.get("/errors").status_code == 200
        assert client.get("/errors", params={"run": runs[0].id}).status_code == 200
        assert client.get(f"/run/{copied.name}").status_code == 400


@pytest.mark.parametrize("path", ["/run/{}", "/errors?run={}"])
def test_rows_that_changed_are_told_on_every_page_and_in_the_list(client, store, runs, path):
    sound, spoilt = runs
    assert client.get(f"/errors?run={spoilt.id}").status_code == 200, "its rows are in memory by now"
    rows = store.root / "runs" / spoilt.id / "rows.parquet"
    content = bytearray(rows.read_bytes())
    content[len(content) // 2] ^= 4
    rows.write_bytes(content)
    for _ in range(2):
        answer = client.get(path.format(spoilt.id))
        assert answer.status_code == 400
        assert f"({spoilt.id}) is damaged: the rows in rows.parquet are not those that were added" in answer.text
    shown = client.get("/runs.json").json()
    assert [run["id"] for run in shown["runs"]] == [sound.id]
    assert any(f"({spoilt.id}) is damaged" in one for one in shown["problems"])
    assert client.get(path.format(sound.id)).status_code < 400


def test_two_runs_of_one_name_are_told_in_the_list(client, store, runs, tmp_path):
    with Store.open(tmp_path / "theirs") as theirs:
        run = theirs.add(log(tmp_path / "alpha.jsonl", seed=3))[0].run
        shutil.copytree(theirs.root / "runs" / run.id, store.root / "runs" / run.id)
    shown = client.get("/runs").text
    assert f"alpha ({run.id[:6]})" in shown
    assert f"two runs are called &#34;alpha&#34;: {runs[0].id} and {run.id}" in shown
