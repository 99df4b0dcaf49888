import pytest

from apps.web.logs import MARKUP, QUOTES, answers, log, written
from demur.apps.web.pages.runs import facts_of


def page(client, run, **query):
    return client.get(f"/run/{run.id}", params={"wait": 1, **query})


def test_the_page_has_facts_plot_measures_advice_and_figures(client, runs):
    answer = page(client, runs[0])
    assert answer.status_code == 200
    for part in ("withheld by itself", 'id="explorer"', "Measures with 95 % intervals", "Best threshold by cost ratio"):
        assert part in answer.text
    assert answer.text.count("data-figure=") == 6


def test_the_twin_has_the_measures_with_their_intervals(client, runs):
    told = client.get(f"/run/{runs[0].id}.json", params={"wait": 1}).json()
    figure = told["evaluation"]["systems"][0]["measures"]["forced_error"]
    assert figure["value"] == pytest.approx(runs[0].about["forced_error"])
    assert figure["low"] < figure["value"] < figure["high"]


@pytest.mark.usefixtures("runs")
def test_a_run_is_found_by_its_name_too(client):
    assert client.get("/run/alpha", params={"wait": 1}).status_code == 200


def test_the_page_waits_for_the_result(client, store, tmp_path, monkeypatch):
    monkeypatch.setattr("demur.apps.web.server.PATIENCE", 0)
    run = store.add(log(tmp_path / "awaited.jsonl", seed=6))[0].run
    answer = client.get(f"/run/{run.id}.json")
    assert answer.status_code == 202
    assert answer.json()["job"]["about"] == "Reading awaited"


def test_slices_of_a_column_are_measured_too(client, runs):
    answer = page(client, runs[0], by="domain")
    assert "Slices at one threshold" in answer.text
    assert "Measures by domain" in answer.text
    told = client.get(f"/run/{runs[0].id}.json", params={"wait": 1, "by": "domain"}).json()
    assert {one.get("slice") for one in told["evaluation"]["systems"]} == {
        None,
        "domain=bank",
        "domain=travel",
        f"domain={MARKUP}",
    }


def test_a_column_that_cannot_be_sliced_by_is_refused_with_those_that_can(client, runs):
    answer = page(client, runs[0], by="input")
    assert answer.status_code == 400
    assert "is no column to slice by; there are domain" in answer.text


def test_names_notes_tags_and_inputs_are_text(client, runs):
    for run in runs:
        text = page(client, run, by="domain").text
        assert MARKUP not in text
        assert QUOTES not in text
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text


def test_other_runs_are_offered_for_comparison(client, runs):
    text = page(client, runs[0]).text
    assert 'action="/compare"' in text
    assert f'<option value="{runs[1].id}">' in text


def test_what_reading_said_is_shown(client, store, tmp_path):
    rows = [{**row, "gold": row.pop("target")} for row in answers(20)]
    run = store.add(written(tmp_path / "renamed.jsonl", rows))[0].run
    assert run.notes
    assert "Import notes" in page(client, run).text


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_run_of_few_answers_has_a_page(client, store, tmp_path, n):
    rows = [{"id": k, "target": "a", "prediction": "ab"[k % 2], "confidence": k / 7} for k in range(n)]
    run = store.add(written(tmp_path / f"few {n}.jsonl", rows))[0].run
    assert page(client, run).status_code == 200


def test_a_run_that_answers_nothing_has_a_page(client, store, tmp_path):
    rows = [{"id": k, "target": "a", "prediction": None, "confidence": None} for k in range(4)]
    run = store.add(written(tmp_path / "silent.jsonl", rows))[0].run
    assert page(client, run).status_code == 200


def test_a_run_without_confidences_has_a_page(client, store, tmp_path):
    rows = [{"id": k, "target": "a", "prediction": "ab"[k % 2]} for k in range(8)]
    run = store.add(written(tmp_path / "unsure.jsonl", rows))[0].run
    assert page(client, run).status_code == 200
    assert client.get("/errors", params={"run": run.id}).status_code == 200


OTHERS = {
    "nbest": (
        [{"id": k, "reference": "yes()", "hypotheses": [{"act": "yes()", "confidence": 0.9}]} for k in range(12)],
        {},
        "/nbest/",
    ),
    "dialogues": (
        [{"dialogue": k, "success": k % 2, "turns": 5 + k, MARKUP: QUOTES} for k in range(12)],
        {"kind": "dialogues"},
        "/outcome?run=",
    ),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_runs_of_other_kinds_show_their_first_rows_and_lead_to_their_page(client, store, tmp_path, kind):
    rows, options, link = OTHERS[kind]
    run = store.add(written(tmp_path / f"{kind}.jsonl", rows), **options)[0].run
    assert run.kind == kind
    answer = client.get(f"/run/{run.id}")
    assert answer.status_code == 200
    assert f'href="{link}{run.id}"' in answer.text
    assert "The first 8 rows as they came" in answer.text
    assert MARKUP not in answer.text
    assert QUOTES not in answer.text


def test_facts_add_up(runs):
    facts = dict(facts_of(runs[0]))
    counts = {name: int(facts[name].replace(",", "")) for name in ("rows", "answered", "withheld by itself", "failed")}
    assert counts["rows"] == counts["answered"] + counts["withheld by itself"] + counts["failed"]
    assert counts["withheld by itself"] == 10


@pytest.mark.usefixtures("runs")
def test_a_run_that_is_not_there_is_said_with_the_nearest_name(client):
    answer = client.get("/run/alpah")
    assert answer.status_code == 404
    assert "alpha" in answer.text


def test_a_run_whose_rows_all_weigh_nothing_has_no_error_rate(store, tmp_path):
    rows = [{"target": "a", "prediction": "a", "confidence": 0.5, "weight": 0}]
    run = store.add(written(tmp_path / "nothing.jsonl", rows))[0].run
    assert dict(facts_of(run))["wrong when all is returned"] == "–"
