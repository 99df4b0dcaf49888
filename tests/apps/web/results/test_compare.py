import json
from contextlib import closing

import pytest

import demur
from apps.web.inside import InsideWorker, client_of
from apps.web.logs import MARKUP, answers, written
from demur.apps.web.site import Site
from demur.core.show.results import plain
from demur.store.runs import Store


def document(client, *runs, **query):
    answer = client.get("/compare.json", params={"run": [run.id for run in runs], "wait": 1, **query})
    assert answer.status_code == 200, answer.text
    return answer.json()


def page(client, *runs, **query):
    return client.get("/compare", params={"run": [run.id for run in runs], "wait": 1, **query})


def added(store, tmp_path, name, rows, **options):
    return store.add(written(tmp_path / f"{name}.jsonl", rows), **options)[0].run


def test_an_empty_store_and_one_run_are_not_enough(tmp_path):
    with Store.open(tmp_path / "store") as store, closing(InsideWorker(store.root)) as worker:
        client = client_of(Site(store, worker))
        text = client.get("/compare").text
        assert "There are no runs that could be compared" in text
        assert "demur add" in text
        added(store, tmp_path, "only", answers(30))
        assert "There is only one run that could be compared" in client.get("/compare").text


def test_runs_can_be_chosen_where_none_are_named(client, runs):
    text = client.get("/compare").text
    assert text.count(f'<option value="{runs[0].id}"') == text.count(f'name="run" value="{runs[0].id}"') == 1
    assert "Baseline" in text


def test_the_comparison_is_that_of_the_library(client, site, runs):
    tables = {run.name: site.store.responses(run) for run in runs}
    expected = demur.compare(tables, at_nonreturn=site.preferences.at, replicates=site.preferences.replicates)
    found, known = document(client, *runs)["comparison"], json.loads(json.dumps(plain(expected.to_dict())))
    assert {**found, "notes": known["notes"]} == known, "the store kept the rows, not the notes of reading them"
    assert found["notes"] == known["notes"][:1]


def test_the_first_run_is_the_baseline(client, runs):
    told = document(client, *reversed(runs))
    assert [one["name"] for one in told["explorer"]["systems"]] == [runs[1].name, "alpha"]
    assert told["comparison"]["pairs"][0]["a"] == runs[1].name


def test_the_page_tells_the_verdict_and_has_the_plot_its_controls_and_the_evidence(client, runs):
    answer = page(client, *runs)
    assert answer.status_code == 200
    for part in ('class="verdict"', 'id="explorer"', 'id="explorer-document"', 'data-part="ratio"', "Pairs", "Inputs"):
        assert part in answer.text
    assert answer.text.count("data-figure=") == 1


def test_a_page_says_what_it_waits_for_and_the_result_is_made_once(client, site, store, runs, tmp_path, monkeypatch):
    monkeypatch.setattr("demur.apps.web.server.PATIENCE", 0)
    both = [runs[0], added(store, tmp_path, "awaited", answers(seed=11))]
    query = {"run": [run.id for run in both]}
    first = client.get("/compare.json", params=query)
    assert first.status_code == 202
    assert first.json()["job"]["about"] == f"Comparing alpha and {both[1].name}"
    document(client, *both)
    made = len(site.worker.jobs())
    assert client.get("/compare.json", params=query).status_code == 200
    assert len(site.worker.jobs()) == made


def test_the_cached_document_is_small(client, runs):
    document(client, *runs)
    content = client.get("/compare.json", params={"run": [run.id for run in runs]}).content
    assert len(content) < 1_000_000


def test_three_runs_are_compared_pair_by_pair(client, store, runs, tmp_path):
    third = added(store, tmp_path, "gamma", answers(seed=3))
    told = document(client, *runs, third)
    assert [(pair["a"], pair["b"]) for pair in told["comparison"]["pairs"]] == [
        ("alpha", runs[1].name),
        ("alpha", "gamma"),
        (runs[1].name, "gamma"),
    ]
    assert "alpha against 2 others" in page(client, *runs, third).text


def test_partly_common_ids_offer_the_common_ones_or_no_pairing(client, store, runs, tmp_path):
    fewer = added(store, tmp_path, "fewer", answers(seed=4)[:100])
    told = document(client, runs[0], fewer)
    assert told["result"] is None
    assert "do not have the same ids" in told["refused"]["rule"]
    assert told["refused"]["common"] == 100
    text = page(client, runs[0], fewer).text
    assert "Compare on the 100 common inputs" in text
    assert "Compare all inputs, unpaired" in text
    matched = client.get(told["refused"]["matched"] + "&wait=1").text
    assert "paired by id on 100 inputs" in matched
    unpaired = client.get(told["refused"]["unpaired"] + "&wait=1").text
    assert "compared as unpaired, as asked" in unpaired
    assert 'value="alone"' in matched
    assert 'value="alone"' not in unpaired


def test_without_a_common_id_only_unpaired_is_offered(client, store, runs, tmp_path):
    others = added(store, tmp_path, "others", [{**row, "id": f"z{row['id']}"} for row in answers(seed=4)])
    told = document(client, runs[0], others)
    assert told["refused"]["common"] == 0
    assert told["refused"]["matched"] is None
    assert "common inputs" not in page(client, runs[0], others).text


def test_ids_that_mean_different_inputs_only_offer_unpaired(client, store, runs, tmp_path):
    swapped = [{**row, "target": "no" if row["target"] == "yes" else row["target"]} for row in answers(seed=4)]
    told = document(client, runs[0], added(store, tmp_path, "swapped", swapped))
    assert "has the target" in told["refused"]["rule"]
    assert told["refused"]["matched"] is None


def test_runs_without_ids_are_compared_unpaired(client, store, runs, tmp_path):
    nameless = [{key: value for key, value in row.items() if key != "id"} for row in answers(seed=4)]
    told = document(client, runs[0], added(store, tmp_path, "nameless", nameless))
    assert told["paired"] is False
    assert told["comparison"]["note"] == "compared as unpaired: there are no ids in nameless"


def test_runs_of_different_kinds_are_refused(client, store, runs, tmp_path):
    rows = [{"id": k, "reference": "yes()", "hypotheses": [{"act": "yes()", "confidence": 0.9}]} for k in range(3)]
    other = added(store, tmp_path, "lists", rows)
    answer = page(client, runs[0], other)
    assert answer.status_code == 400
    assert "Only runs of one kind can be compared" in answer.text
    assert "lists (nbest)" in answer.text


def test_n_best_lists_are_compared_by_their_own_measures(client, store, tmp_path):
    def rows(sure):
        return [
            {
                "id": k,
                "reference": "yes()" if k % 2 else "no()",
                "hypotheses": [{"act": "yes()", "confidence": sure}, {"act": "no()", "confidence": 1 - sure}],
            }
            for k in range(20)
        ]

    one, two = added(store, tmp_path, "one", rows(0.6)), added(store, tmp_path, "two", rows(0.9))
    told = document(client, one, two)
    assert {(pair["a"], pair["b"]) for pair in told["comparison"]["pairs"]} == {("one", "two")}
    assert "explorer" not in told
    text = page(client, one, two).text
    assert "ICE" in text
    assert "explored.js" not in text


def test_a_run_chosen_twice_is_one(client, runs):
    assert document(client, runs[0], runs[1], runs[0])["chosen"] == [runs[0].id, runs[1].id]


def test_what_the_names_of_runs_share_is_said_above_their_first_table(client, store, tmp_path):
    runs = [
        added(store, tmp_path, f"understanding-of-the-museum-{name}", answers(60, seed=seed))
        for seed, name in enumerate(["red", "blue"])
    ]
    lead = document(client, *runs)["lead"]
    assert lead["title"] == 'Pairs (names share the prefix "understanding-of-the-museum-")'
    assert lead["rows"][0][:2] == ["red", "blue"]


def test_many_runs_are_compared_and_their_leaderboard_comes_first(client, store, tmp_path):
    many = [added(store, tmp_path, f"run{k}", answers(40, seed=k)) for k in range(9)]
    found = document(client, *many)
    assert found["lead"]["title"].startswith("Leaderboard")
    assert found["lead"]["title"] not in [table["title"] for table in found["result"]["tables"]], "shown once"
    assert len(found["lead"]["rows"]) == 9
    assert found["lead"]["numeric"][2]
    text = page(client, *many).text
    assert text.index("Leaderboard") < text.index("Where they differ")


def test_the_report_of_runs_can_be_kept(client, runs):
    answer = client.get("/report", params=[*(("run", run.id) for run in runs), ("wait", "1")])
    assert answer.headers["content-disposition"] == "attachment; filename*=UTF-8''report.html"
    assert answer.text.startswith("<!doctype html>")
    assert "alpha" in answer.text
    assert client.get("/report").status_code == 400
    assert f"/report?run={runs[0].id}&" in page(client, *runs).text


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize(
    ("query", "told"),
    [
        ({"x": "2"}, "x must lie between 0 and 1"),
        ({"ratio": "1.5"}, "ratio must lie between 0 and 0.99"),
        ({"align": "sideways"}, "align is one of share, threshold, cost"),
        ({"pairing": "luck"}, "pairing is one of"),
    ],
)
def test_a_link_with_a_wrong_value_says_which(client, query, told):
    answer = client.get("/compare.json", params=query)
    assert answer.status_code == 400
    assert told in answer.json()["error"]


def test_a_run_that_is_not_there_is_not_found(client):
    assert client.get("/compare.json", params={"run": "nobody"}).status_code == 404


def test_a_threshold_may_be_any_number(client, runs):
    assert document(client, *runs, align="threshold", x="-3.5")["state"]["x"] == -3.5


def test_names_of_runs_and_values_of_slices_are_text(client, runs):
    text = page(client, *runs).text
    assert MARKUP not in text
    assert "beta &lt;script&gt;" in text
    assert "<img" not in text


def test_answers_can_be_filtered_by_the_columns_that_all_runs_have(client, store, runs, tmp_path):
    assert set(document(client, *runs)["filters"]) == {"domain"}
    bare = [{key: value for key, value in row.items() if key != "domain"} for row in answers(seed=8)]
    assert document(client, runs[0], added(store, tmp_path, "bare", bare))["filters"] == {}


def test_a_damaged_run_is_said_to_be(client, store, runs, tmp_path):
    broken = added(store, tmp_path, "broken", answers(seed=12))
    store.rows_path(broken).write_bytes(b"nothing")
    answer = page(client, broken, runs[1])
    assert answer.status_code in (400, 500)
    assert "damaged" in answer.text
