"""What is said and shown of models of outcomes: sentences, tables and documents agree with the numbers."""

import io
import json
import re
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from rich.console import Console

from demur.core.show.page import presentation_page
from demur.core.show.results import plain
from demur.core.show.terminal import show
from demur.outcome.features import design
from demur.outcome.fitting import Procedure, SetResult, feature_sets, fit_design, fit_regression
from demur.outcome.prediction import Price, compare_predictions, model_from_formula, predict
from demur.outcome.presentation import (
    coefficient_table,
    of_fit,
    of_predictions,
    of_regression,
    price_sentences,
    price_table,
    regression_sentences,
    sets_table,
)
from demur.outcome.table import dialogues
from demur.returns.table import Reading, responses
from reference.outcome import CULPRIT, study

LOG = Reading(out_of_scope=(), missing_confidence="lowest")
QUICK = Procedure(replicates=0)


def answers(rows, system="old"):
    return responses(rows, system=system, reading=LOG)


@pytest.fixture(scope="module")
def log():
    return study(30, turns=40)


@pytest.fixture(scope="module")
def fit(log):
    turns, outcomes = log
    return fit_design(
        design(dialogues(outcomes), answers(turns), features="conf"), how=Procedure(replicates=60, seed=3)
    )


@pytest.fixture(scope="module")
def predictions(fit, log):
    turns = log[0]
    better = [
        {**row, "prediction": row["target"]} if row["prediction"] == "incomplete" and number % 2 else row
        for number, row in enumerate(turns)
    ]
    majority = [{**row, "prediction": "correct"} for row in turns]
    return [
        predict(fit.model, answers(turns)),
        predict(fit.model, answers(better, "new")),
        predict(fit.model, answers(majority, "majority")),
    ]


def noise(n=20, **options):
    rng = np.random.default_rng(5)
    x = rng.normal(size=n)
    x -= x.mean()
    y = rng.normal(size=n)
    y -= x * (x @ y) / (x @ x)
    return fit_regression(x[:, None], y, ["idle"], outcome="gain", how=QUICK, **options)


def test_sentences_say_what_the_numbers_say(fit):
    told = regression_sentences(fit.regression)
    found = fit.regression
    kept = fit.model.terms
    assert told[0] == f"{len(kept)} of {len(found.names)} candidates are kept: {', '.join(kept)}."
    assert told[1] == f"In-sample they explain R2 {found.chosen.r2:.2f} of the variance of outcome."
    assert told[2] == (
        f"What is left of that: R2 {found.loo.r2:.2f} when the chosen model predicts dialogues left out, "
        f"R2 {found.nested.r2:.2f} when the choice itself is made without them."
    )
    assert len(told) == 3


def test_nothing_found_is_said_and_that_it_is_of_no_use():
    found = noise()
    told = regression_sentences(found)
    assert told[0] == f"No candidate explains gain better than its mean, {found.y.mean():.4g}."
    assert told[1].startswith(f"Even so: R2 {found.loo.r2:.2f} when the chosen model predicts rows left out")
    assert told[2] == "A system's outcome is guessed no better than by the mean: do not use the model to predict."


def test_rows_dialogues_and_groups_are_called_by_their_names():
    assert "predicts rows left out" in regression_sentences(noise())[1]
    assert "predicts dialogues left out" in regression_sentences(noise(rows=[f"d{k}" for k in range(20)]))[1]
    grouped = noise(groups=np.arange(20) // 2)
    assert "predicts groups left out" in regression_sentences(grouped)[1]
    assert any("without each group" in note for note in of_regression(grouped).notes)


def test_the_dearest_confusion_is_told_and_gains_are_no_cost():
    found = [Price("a", "b", 1200, 0.0312), Price("b", "a", 3, -0.2)]
    assert price_sentences(found, "gain") == ["Halving predicted-a-actual-b (1,200 turns) is worth +0.0312 of gain."]
    assert price_sentences(found[1:], "gain") == []
    assert price_sentences([], "gain") == []
    assert price_table(found).rows == (
        ("predicted-a-actual-b", "1,200", "+0.0312"),
        ("predicted-b-actual-a", "3", "-0.2000"),
    )


def test_coefficients_stand_beside_bootstrap_and_selection(fit):
    rows = {row[0]: row[1:] for row in coefficient_table(fit.regression).rows}
    drawn = fit.regression.bootstrap
    assert rows[CULPRIT][0] == f"{fit.model.coefficients[CULPRIT]:.4g}"
    assert rows[CULPRIT][2] == "100 %"
    assert rows["(Intercept)"][2] == "–"
    for name, share in drawn.selected.items():
        if name not in fit.model.coefficients:
            assert rows[name] == ("left out", "–", f"{100 * share:.0f} %")
    assert coefficient_table(noise()).rows[0][2:] == ("–", "–"), "without a bootstrap there are no intervals"


def test_the_fit_names_formula_definitions_and_bootstrap(fit):
    notes = of_fit(fit).notes
    assert notes[0] == f"formula: {fit.model.formula()}"
    assert any(note.startswith("R2 = 1 - squared errors / squares about the mean") for note in notes)
    assert "leave-one-out: the chosen model without each row; nested: the choice as well" in notes
    assert any(note.startswith("bootstrap: 60 replicates of choice and fit, seed 3") for note in notes)


def test_tables_of_a_fit_stand_in_order(fit, sets):
    shown = of_fit(replace(fit, sets=sets, learners={"ols": fit.regression.nested}))
    assert [table.title.split(":")[0] for table in shown.tables] == [
        "Terms",
        "Validation",
        "Price of confusions",
        "Feature sets",
        "Formulas of the feature sets",
        "Search",
    ]
    validation = shown.tables[1].rows
    assert [row[:2] for row in validation] == [
        ("stepwise", "in-sample"),
        ("stepwise", "leave-one-out"),
        ("stepwise", "nested"),
        ("ols", "nested"),
    ]
    assert validation[0][-1] == "–", "in-sample errors have no spread of their own"
    assert shown.document["feature_sets"] == [one.to_dict() for one in sets]
    rows = shown.data().rows(named=True)
    assert [row["features"] for row in rows] == [one.name for one in sets]
    first = sets[0].to_dict()
    assert (rows[0]["r2_in_sample"], rows[0]["formula"]) == (first["in_sample"]["r2"], first["formula"])
    assert (rows[0]["mse_nested"], rows[0]["sd_leave_one_out"]) == (first["nested"]["mse"], first["loo"]["sd"])
    assert "observed" in of_fit(fit).data().columns
    assert shown.document["learners"]["ols"]["r2"] == fit.regression.nested.r2
    assert len(shown.figures) == 4


def test_a_set_without_model_says_why_where_there_is_room():
    table = sets_table([SetResult("conf", 0, (), {}, "there is no feature")])
    assert table.rows == (("conf", "0", *["–"] * 5, "there is no feature"),)
    assert table.brief.rows == (("conf", "0", *["–"] * 5),)


def test_predictions_are_told_with_interval_and_naive_guess(fit, predictions):
    shown = of_predictions(compare_predictions(fit.model, predictions))
    old, new, majority = predictions
    figure = old.figure
    assert shown.sentences[0] == (
        f"old: predicted outcome {figure.value:.4g} ({figure.low:.4g} to {figure.high:.4g}); "
        f"the naive guess is {old.naive.value:.4g}."
    )
    assert shown.sentences[2].startswith("majority: not predicted, as it is unlike the training data: ")
    assert "predicted-correct-actual-contradictory" in shown.sentences[2]
    gap = old.figure.value - new.figure.value
    assert shown.sentences[3].startswith(f"old less new: {gap:+.4g} (")
    assert [row[0] for row in shown.tables[0].rows] == ["old", "new", "majority"]
    assert shown.tables[0].rows[2][1:3] == ("refused", "–")
    assert [row[-1] for row in shown.tables[0].rows] == ["yes", "yes", "no"]
    assert shown.data()["predicted"].to_list() == [old.figure.value, new.figure.value, None]
    assert majority.refused


def test_extrapolation_is_told_in_sentence_and_warning(fit, log):
    majority = answers([{**row, "prediction": "correct"} for row in log[0]], "majority")
    one = predict(fit.model, majority, extrapolate=True)
    shown = of_predictions(one)
    assert shown.sentences[0].endswith("; extrapolated beyond the training data.")
    assert shown.warnings == tuple(f"majority: extrapolated, {reason}" for reason in one.outside)
    inside = predict(fit.model, answers(log[0]), extrapolate=True)
    assert not inside.extrapolated, "there was no need"
    assert of_predictions(inside).warnings == ()


def test_a_formula_by_hand_claims_no_check_and_no_interval(log, fit):
    model = model_from_formula("gain", {"(Intercept)": 0.5, "recall.correct": 0.25})
    one = predict(model, answers(log[0]))
    shown = of_predictions(one)
    assert shown.sentences == (f"old: predicted gain {one.figure.value:.4g}.",)
    assert shown.tables[0].rows[0][-1] == "not checked"
    assert shown.tables[0].rows[0][2] == "no interval"
    assert (
        "the model was written by hand: no intervals, and nothing to check new systems against, so they are not checked"
        in " ".join(shown.notes)
    )
    bare = msgspec.structs.replace(fit.model, digest="")
    assert "the model was written by hand" in of_predictions(predict(bare, answers(log[0]))).notes


def test_differences_without_interval_say_so(log):
    model = model_from_formula("gain", {"recall.correct": 1.0})
    two = [predict(model, answers(log[0], name)) for name in ("a", "b")]
    shown = of_predictions(compare_predictions(model, two))
    assert shown.sentences[-1] == "a less b: +0; the model has no interval for it."
    assert shown.tables[1].rows == (("a", "b", "+0.0000", "–", "–"),)


@pytest.fixture(scope="module")
def sets(log):
    turns, outcomes = log
    return feature_sets(dialogues(outcomes), answers(turns), how=QUICK, sets=("conf", "scores.fm"))


PRESENTATIONS = {
    "fit": lambda fit, _, sets: of_fit(replace(fit, sets=sets)),
    "regression": lambda *_: of_regression(noise()),
    "predictions": lambda fit, predictions, _: of_predictions(compare_predictions(fit.model, predictions)),
    "one": lambda _, predictions, __: of_predictions(predictions[0]),
}


@pytest.mark.parametrize("kind", PRESENTATIONS)
def test_everything_can_be_shown_as_text_page_and_json(fit, predictions, sets, kind):
    shown = PRESENTATIONS[kind](fit, predictions, sets)
    json.dumps(plain(shown.document), allow_nan=False)
    assert "nan" not in re.findall(r"\w+", shown.markdown().lower())
    page = presentation_page(shown)
    assert page.count("vega-embed") >= 1 or page.count("<svg") >= 1
    assert shown.data().height > 0


def test_gains_are_called_by_a_short_name(log):
    turns, outcomes = log
    tests = [{"dialogue": row["dialogue"], "pre": 0.0, "post": max(0.0, row["outcome"])} for row in outcomes]
    table = dialogues(tests)
    found = fit_design(design(table, answers(turns), features="conf"), how=QUICK)
    assert found.model.formula().startswith("normalised gain = ")
    assert regression_sentences(found.regression)[1].endswith("of the variance of normalised gain.")
    assert "outcome: normalised gain, (post - pre) / (1 - pre)" in table.notes


@pytest.fixture(scope="module")
def useless(log):
    """A model of outcomes that have nothing to do with the turns, whose nested R2 is negative."""
    turns, outcomes = log
    shuffled = np.random.default_rng(5).permutation([row["outcome"] for row in outcomes]).tolist()
    rows = [{**row, "outcome": value} for row, value in zip(outcomes, shuffled, strict=True)]
    found = fit_design(design(dialogues(rows), answers(turns), features="conf+scores.f"), how=QUICK)
    assert found.regression.nested.r2 < 0
    assert any(price.change > 0 for price in found.prices)
    return found


def test_a_model_that_predicts_no_better_than_the_mean_has_no_price_in_its_headlines(useless, log):
    shown = of_fit(useless)
    predicted = predict(useless.model, answers(log[0]), extrapolate=True)
    later = of_predictions(predicted)
    for one in (shown, later):
        page = presentation_page(one)
        console = Console(record=True, width=120, file=io.StringIO())
        show(one, console)
        for text in (" ".join(one.sentences), one.markdown(), page, console.export_text()):
            assert "Halving" not in text
            assert "Price of confusions" not in text
            assert "Putting right half" not in text
        assert one.document["prices"]
        assert [note for note in one.notes if note.startswith("prices of confusions are not shown")]


def test_a_model_that_predicts_no_better_than_the_mean_warns_where_it_predicts(useless, fit, predictions, log):
    predicted = predict(useless.model, answers(log[0]), extrapolate=True)
    for one in (predicted, compare_predictions(useless.model, [predicted])):
        assert one.warnings[0].endswith("better than the mean outcome: do not rely on its predictions")
        assert one.to_dict()["warnings"] == list(of_predictions(one).warnings) == list(one.warnings)
    assert not compare_predictions(fit.model, predictions[:1]).warnings


def test_a_model_that_predicts_has_its_dearest_confusion_in_a_sentence(fit):
    assert any(sentence.startswith("Halving") for sentence in of_fit(fit).sentences)
