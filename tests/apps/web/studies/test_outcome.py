"""The page of outcomes: the model and how far to trust it, the map of confusions, what if, and untried systems."""

import numpy as np
import pytest

from apps.web.logs import MARKUP, written
from demur.apps.web.pages.outcome import confusion_map, trust
from demur.lab import tutor

DEAR = ("pc_incomplete", "contradictory")


def marked(rows):
    """The rows of the tutor with markup for one of the labels."""
    names = {"irrelevant": MARKUP}
    return [{name: names.get(value, value) for name, value in row.items()} for row in rows]


@pytest.fixture(scope="module")
def study(store, folder):
    """The runs of turns, of dialogues and of another system."""
    turns, held = tutor.study(dialogues=30)
    tables = {"tutor": marked(turns), "gains": held, f"cautious {MARKUP}": marked(tutor.answers(turns, "cautious"))}
    return [
        store.add(written(folder / f"{number}.jsonl", rows), name=name)[0].run
        for number, (name, rows) in enumerate(tables.items())
    ]


@pytest.fixture(scope="module")
def asked(study):
    return {"turns": study[0].id, "dialogues": study[1].id, "wait": 1}


def document(client, path, query):
    answer = client.get(f"{path}.json", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def cell(found, predicted, actual):
    return next(one for one in found["map"]["cells"] if (one["predicted"], one["actual"]) == (predicted, actual))


def test_without_runs_the_page_says_which_two_tables_it_needs(empty):
    page = empty[0].get("/outcome").text
    assert page.count("there are none yet") == 2
    assert 'data-example="tutor"' in page


@pytest.mark.usefixtures("study")
def test_of_several_runs_one_has_to_be_chosen(client):
    found = document(client, "/outcome", {})
    assert found["turns"] is None
    assert "presentation" not in found
    assert "Choose the turns of a system" in client.get("/outcome").text


def test_a_run_is_taken_for_the_part_it_can_play(client, study):
    found = document(client, "/outcome", {"run": study[0].id, "dialogues": "gains", "wait": 1})
    assert (found["turns"]["name"], found["dialogues"]["name"]) == ("tutor", "gains")


def test_the_model_comes_with_all_kinds_of_validation(client, asked):
    found = document(client, "/outcome", asked)
    assert found["model"]["outcome"] == "normalised gain"
    assert found["validation"].keys() == {"in_sample", "loo", "nested"}
    assert found["trust"] == {"shown": True, "why": ""}
    assert "What is left of that" in found["presentation"]["sentences"][2]


def test_the_map_has_counts_and_what_half_and_all_of_a_confusion_are_worth(client, asked):
    found = document(client, "/outcome", asked)
    dear, right = cell(found, *DEAR), cell(found, "correct", "correct")
    assert 0 < dear["half"] < dear["all"]
    assert dear["coefficient"] == found["model"]["coefficients"]["predicted-pc_incomplete-actual-contradictory"]
    assert (right["half"], right["count"] > 0) == (None, True)
    assert len(found["map"]["cells"]) == 25
    assert sum(one["share"] for one in found["map"]["cells"] if one["predicted"] != one["actual"]) == pytest.approx(1)
    assert not any("actual" in figure["table"]["columns"] for figure in found["presentation"]["figures"])


def test_what_if_gives_the_price_of_the_map(client, asked):
    found = document(client, "/outcome", asked)
    dear = cell(found, *DEAR)
    answer = document(client, "/outcome/what-if", {**asked, f"mend-{dear['key']}": 50})["what_if"]
    assert answer["change"]["value"] == pytest.approx(dear["half"])
    assert answer["change"]["low"] < answer["change"]["value"] < answer["change"]["high"]
    assert answer["mended_turns"] == pytest.approx(dear["count"] / 2)
    assert answer["now"]["value"] == pytest.approx(found["model"]["mean_outcome"], abs=1e-6)
    assert answer["sliders"][0] == {**dear, "name": f"mend-{dear['key']}", "percent": 50.0}


def test_the_link_of_a_page_restores_sliders_and_the_cell(client, asked):
    dear = cell(document(client, "/outcome", asked), *DEAR)
    page = client.get("/outcome", params={**asked, f"mend-{dear['key']}": 35, "cell": dear["key"]}).text
    assert f'name="mend-{dear["key"]}" min="0" max="100" step="5" value="35"' in page
    assert f'<article id="cell-{dear["key"]}">' in page
    assert 'aria-selected="true"' in page
    assert "a change of" in page


def test_sliders_that_name_no_confusion_are_not_looked_at(client, asked):
    answer = document(client, "/outcome/what-if", {**asked, "mend-99-98": 50, "mend-<b>": 10})["what_if"]
    assert answer["mended"] is False
    assert client.get("/outcome/what-if", params={**asked, "mend-1-0": 120}).status_code == 400


def test_an_untried_system_is_predicted_beside_the_one_that_was(client, asked, study):
    found = document(client, "/outcome", {**asked, "with": study[2].id})["compare"]
    rows = {row[0]: row for row in found["presentation"]["tables"][0]["rows"]}
    assert rows.keys() == {"tutor", study[2].name}
    assert float(rows[study[2].name][1]) > float(rows["tutor"][1])
    assert found["faults"] == []


def test_a_system_of_other_labels_is_refused_beside_the_rest(client, asked, store, folder):
    rows = [{"id": k, "dialogue": f"d{k % 3}", "target": "x", "prediction": "x"} for k in range(9)]
    other = store.add(written(folder / "other.jsonl", rows), name="other")[0].run
    found = document(client, "/outcome", {**asked, "with": other.id})["compare"]
    assert [one["run"] for one in found["faults"]] == ["other"]
    assert "does not know the labels x" in found["faults"][0]["why"]
    assert found["presentation"]["tables"][0]["rows"][0][0] == "tutor"


def test_a_model_of_columns_of_dialogues_has_no_prices_and_predicts_for_nobody(client, asked, study):
    query = {**asked, "features": "pre", "outcome": "post", "with": study[2].id}
    found = document(client, "/outcome", query)
    assert found["map"] is None
    assert found["compare"] is None
    page = client.get("/outcome", params=query).text
    assert "confusions have no price of their own" in page
    assert "which an untried system does not have" in page


def test_what_cannot_be_fitted_is_said_on_the_page_with_its_form(client, asked):
    for change in ({"features": "nonsense"}, {"outcome": "student"}):
        page = client.get("/outcome", params={**asked, **change})
        assert page.status_code == 200
        assert 'class="fault" role="alert"' in page.text
        assert 'name="features"' in page.text


def test_dialogues_in_one_table_only_are_left_out_when_asked(client, asked, store, folder):
    rows = tutor.study(dialogues=30)[1][:-3]
    fewer = store.add(written(folder / "fewer.jsonl", rows), name="fewer")[0].run
    query = {**asked, "dialogues": fewer.id}
    assert "keeps the other 27" in document(client, "/outcome", query)["fault"]
    assert document(client, "/outcome", {**query, "matched": 1})["map"]["dialogues"] == 27


def test_feature_sets_are_compared_when_asked(client, asked):
    shown = document(client, "/outcome", {**asked, "sets": 1})["presentation"]
    assert "Feature sets" in {table["title"] for table in shown["tables"]}


def test_a_model_that_was_not_shown_to_predict_is_not_to_be_believed(client, asked, store, folder):
    _, held = tutor.study(dialogues=30)
    noise = [{"dialogue": row["dialogue"], "outcome": (7 * k * k) % 11} for k, row in enumerate(held)]
    run = store.add(written(folder / "noise.jsonl", noise), name="noise")[0].run
    query = {**asked, "dialogues": run.id}
    found = document(client, "/outcome", query)
    assert found["trust"]["shown"] is False
    assert client.get("/outcome", params=query).text.count("Do not believe this") >= 1


@pytest.mark.parametrize(
    ("loo", "nested", "shown"), [(0.5, 0.4, True), (0.5, 0.0, False), (-0.1, 0.4, False), (None, 0.4, False)]
)
def test_trust_needs_both_kinds_of_validation(loo, nested, shown):
    found = trust({"loo": {"r2": loo}, "nested": {"r2": nested}})
    assert found["shown"] is shown
    assert ("was not shown to predict" in found["why"]) is not shown


def test_nothing_of_the_data_is_markup(client, asked, study):
    query = {**asked, "with": study[2].id, "features": MARKUP}
    for params in (query, {**query, "features": "conf"}):
        assert MARKUP not in client.get("/outcome", params=params).text
    assert MARKUP not in client.get("/outcome/what-if", params=asked).text


def test_of_many_labels_the_map_keeps_those_of_the_dearest_confusions(monkeypatch):
    from demur.outcome.features import design
    from demur.outcome.fitting import Procedure, fit_design
    from demur.outcome.table import dialogues
    from demur.returns.table import Reading, responses

    monkeypatch.setattr("demur.outcome.charts.MOST_LABELS", 2)
    turns, held = tutor.study(dialogues=20)
    log = responses(turns, reading=Reading(out_of_scope=(), missing_confidence="lowest"))
    made = design(dialogues(held), log, features="conf")
    found = confusion_map(fit_design(made, how=Procedure(replicates=0)))
    assert found["labels"] == sorted(DEAR)
    assert (found["of"], len(found["cells"])) == (5, 4)


def test_the_example_opens_with_a_system_that_was_never_tried(empty):
    client, store = empty
    page = client.post("/api/examples/tutor").json()["page"]
    found = client.get(page, params={"wait": 1})
    assert found.status_code in (200, 202)
    assert {run.name for run in store.runs()} == {"tutor", "tutor gains", "tutor, cautious"}


def test_the_map_of_a_model_that_predicts_no_better_than_the_mean_shows_no_prices(client, store, folder):
    turns, held = tutor.study(dialogues=12, seed=2)
    order = np.random.default_rng(0).permutation(len(held))
    gains = [{**row, "pre": held[k]["pre"], "post": held[k]["post"]} for row, k in zip(held, order, strict=True)]
    made = [
        store.add(written(folder / f"chance-{k}.jsonl", rows), name=f"chance {k}")[0].run
        for k, rows in ((0, turns), (1, gains))
    ]
    asked = {"turns": made[0].id, "dialogues": made[1].id, "features": "scores.f", "wait": 1}
    found = document(client, "/outcome", asked)
    assert found["validation"]["nested"]["r2"] < 0
    assert any(one["half"] for one in found["map"]["cells"])
    page = client.get("/outcome", params=asked).text
    assert "How often each confusion occurs" in page
    for price in ('class="price"', "half put right", "What each confusion costs", "Halving"):
        assert price not in page
