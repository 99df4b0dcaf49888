"""Predictions for untried systems: section 5 of Dzikovska et al. (2012), the textbook, and what is refused."""

import math

import msgspec
import numpy as np
import pytest
from scipy import stats

from demur.errors import DataError
from demur.outcome.features import Turns, design, turns_of
from demur.outcome.fitting import Procedure, fit_design
from demur.outcome.prediction import mean_features, model_from_formula, predict, predicted_pairs, prediction_of, prices
from demur.outcome.table import dialogues
from demur.returns.table import Reading, responses
from reference.outcome import CULPRIT, TABLE_1, paper_turns, study

LOG = Reading(out_of_scope=(), missing_confidence="lowest")

FULL = {
    "(Intercept)": 0.88,
    "predicted-pc_incomplete-actual-contradictory": -0.68,
    "precision.non_content": -0.06,
    "recall.correct": 0.28,
    "precision.microaverage": -0.79,
    "fmeasure.microaverage": 0.65,
}
SCORES_ALL = {
    "(Intercept)": 0.63,
    "fmeasure.microaverage": 4.2,
    "precision.microaverage": -1.3,
    "recall.microaverage": -2.79,
    "recall.non_content": -0.07,
}
"""Formulas of Table 5, as printed."""


def answers(rows, system="system"):
    return responses(rows, system=system, reading=LOG)


def majority(rows, label="correct"):
    return [{**row, "prediction": label} for row in rows]


def mended(rows, every=2):
    """As the rows, but every so manieth culprit is put right."""
    seen = 0
    found = []
    for row in rows:
        culprit = (row["target"], row["prediction"]) == ("contradictory", "incomplete")
        seen += culprit
        found.append({**row, "prediction": row["target"]} if culprit and seen % every == 0 else row)
    return found


@pytest.fixture(scope="module")
def log():
    return study(30, turns=50)


@pytest.fixture(scope="module")
def made(log):
    turns, outcomes = log
    return design(dialogues(outcomes), answers(turns), features="conf")


@pytest.fixture(scope="module")
def model(made):
    return fit_design(made, how=Procedure(replicates=0)).model


@pytest.fixture(scope="module")
def scores_model(log):
    turns, outcomes = log
    whole = design(dialogues(outcomes), answers(turns), features="scores.recall")
    return fit_design(whole, how=Procedure(replicates=0)).model


def test_section_5_of_the_paper_from_its_printed_tables():
    beetle, baseline = answers(paper_turns()), answers(majority(paper_turns()))
    full, scores = model_from_formula("gain", FULL), model_from_formula("gain", SCORES_ALL)
    assert round(predict(full, beetle).figure.value, 2) == 0.59
    assert round(predict(scores, beetle).figure.value, 2) == 0.65
    assert round(predict(scores, baseline).figure.value, 2) == 0.27
    table_6 = {
        "fmeasure.microaverage": 0.52,
        "precision.microaverage": 0.51,
        "recall.microaverage": 0.53,
        "recall.non_content": 0.76,
    }
    assert round(scores.value(table_6), 2) == 0.62


def test_the_confusion_that_the_paper_blames_is_the_dearest():
    dearest = prices(model_from_formula("gain", FULL), turns_of(answers(paper_turns())))[0]
    assert (dearest.predicted, dearest.actual, dearest.count) == ("pc_incomplete", "contradictory", 200)
    assert dearest.change > 0.05


def test_the_interval_is_that_of_the_mean_response_in_the_textbook(made, model, log):
    found = predict(model, answers(mended(log[0])), level=0.9)
    x = np.column_stack([np.ones(made.y.size), *(made.x[:, made.names.index(name)] for name in model.terms)])
    weights, rss, _, _ = np.linalg.lstsq(x, made.y)
    freedom = made.y.size - x.shape[1]
    place = np.array([1.0, *(found.features[name] for name in model.terms)])
    reach = stats.t.ppf(0.95, freedom) * np.sqrt(rss[0] / freedom * place @ np.linalg.inv(x.T @ x) @ place)
    assert found.figure.value == pytest.approx(place @ weights)
    assert found.figure.low == pytest.approx(place @ weights - reach)
    assert found.figure.high == pytest.approx(place @ weights + reach)


def test_the_naive_guess_is_the_mean_of_training_with_its_own_interval(made, model, log):
    found = predict(model, answers(log[0]))
    low, high = stats.t.interval(0.95, made.y.size - 1, made.y.mean(), stats.sem(made.y))
    assert (found.naive.value, found.naive.low, found.naive.high) == pytest.approx((made.y.mean(), low, high))
    assert found.figure.value == pytest.approx(found.naive.value), "least squares goes through the means"


def test_a_formula_by_hand_has_no_interval_no_naive_guess_and_no_check():
    found = predict(model_from_formula("gain", FULL), answers(paper_turns()))
    assert math.isnan(found.figure.low)
    assert found.naive.why == "the model was written by hand and holds no mean outcome"
    assert not found.refused
    assert found.values()["supported"] is None
    assert found.values()["naive"] == {"value": None, "low": None, "high": None, "why": found.naive.why}


def test_fewer_errors_of_the_costly_kind_promise_more(model, log):
    before, after = (predict(model, answers(rows)).figure for rows in (log[0], mended(log[0])))
    assert after.low > before.high


def test_the_majority_baseline_is_refused_by_a_confusion_model_which_names_the_features(model, log):
    found = predict(model, answers(majority(log[0]), "baseline"))
    assert found.refused
    assert math.isnan(found.figure.value)
    assert "the system is unlike the training data" in found.figure.why
    new = [reason for reason in found.outside if "too rare in training to learn from" in reason]
    assert len(new) == 1
    assert "predicted-correct-actual-contradictory (" in new[0]
    document = found.values()
    assert document["supported"] is False
    assert document["extrapolated"] is False
    assert document["outside"] == list(found.outside)
    assert document["predicted"]["value"] is None


def test_extrapolation_predicts_all_the_same_and_still_says_what_is_outside(model, log):
    rows = answers(majority(log[0]))
    refused, found = predict(model, rows), predict(model, rows, extrapolate=True)
    assert not found.refused
    assert found.extrapolated
    assert found.outside == refused.outside
    assert math.isfinite(found.figure.value)


def test_scores_outside_training_are_refused_with_both_ranges(scores_model, log):
    perfect = [{**row, "prediction": row["target"]} for row in log[0]]
    found = predict(scores_model, answers(perfect))
    assert found.refused
    name = scores_model.terms[0]
    low, high = scores_model.ranges[name]
    assert f"{name} is 1, in training it was {low:.3g} to {high:.3g}" in found.outside
    assert all("too rare" not in reason for reason in found.outside), "confusions are not in the formula"


def test_the_training_system_is_always_supported(model, scores_model, log):
    for one in (model, scores_model):
        for pooled in (False, True):
            assert predict(one, answers(log[0]), pooled=pooled).outside == ()


def test_labels_that_the_model_does_not_know_are_refused(model, log):
    other = [
        {**row, "target": row["target"].upper(), "prediction": row["prediction"] and row["prediction"].upper()}
        for row in log[0]
    ]
    with pytest.raises(
        DataError,
        match=r"does not know the labels CONTRADICTORY, CORRECT, INCOMPLETE of system: 1,500 of 1,500 turns have one",
    ):
        predict(model, answers(other), unknown_labels="drop")


def with_unknown(rows):
    """Two turns with labels that no model of the study knows, one predicted and one right, and a rejected one."""
    changed = [dict(row) for row in rows]
    changed[3]["prediction"], changed[8]["target"], changed[70]["target"] = "strange", "odd", "odd"
    changed[70]["prediction"] = None
    return changed, [row for place, row in enumerate(changed) if place not in (3, 8, 70)]


def test_a_refusal_says_how_many_turns_have_unknown_labels_and_how_to_leave_them_out(model, log):
    rows, _ = with_unknown(log[0])
    said = rf"labels odd, strange of system: 3 of {len(rows):,} turns have one of them .*`unknown_labels` drop leaves"
    with pytest.raises(DataError, match=said):
        predict(model, answers(rows))


@pytest.mark.parametrize("pooled", [False, True])
def test_turns_with_unknown_labels_are_left_out_as_if_they_had_not_been_and_counted(model, log, pooled):
    rows, rest = with_unknown(log[0])
    found = predict(model, answers(rows), pooled=pooled, unknown_labels="drop")
    expected = predict(model, answers(rest), pooled=pooled)
    assert found.figure == expected.figure
    assert found.features == expected.features
    assert found.values()["left_out"] == {"labels": ["odd", "strange"], "turns": 3, "of": len(rows), "dialogues": 0}
    assert expected.values()["left_out"] == {"labels": [], "turns": 0, "of": 0, "dialogues": 0}


def test_a_dialogue_of_which_no_turn_remains_is_counted(model, log):
    first = log[0][0]["dialogue"]
    rows = [{**row, "target": "odd"} if row["dialogue"] == first else row for row in log[0]]
    found = predict(model, answers(rows), unknown_labels="drop")
    assert found.left_out.dialogues == 1
    assert found.dialogues == len(log[1]) - 1


def test_a_label_of_the_model_that_the_new_log_lacks_is_filled_in_as_in_training(log):
    turns, outcomes = log
    rows = [row for row in turns if row["target"] != "incomplete" and row["prediction"] != "incomplete"]
    made = {
        policy: fit_design(
            design(dialogues(outcomes), answers(turns), features="recall.incomplete", undefined=policy),
            how=Procedure(replicates=0),
        ).model
        for policy in ("impute-mean", "zero")
    }
    forced = {
        policy: msgspec.structs.replace(one, coefficients={"(Intercept)": 0.0, "recall.incomplete": 1.0}, digest="")
        for policy, one in made.items()
    }
    filled = predict(forced["impute-mean"], answers(rows), extrapolate=True)
    assert filled.features == {"recall.incomplete": pytest.approx(made["impute-mean"].means["recall.incomplete"])}
    assert predict(forced["zero"], answers(rows), extrapolate=True).features == {"recall.incomplete": 0.0}
    dropped = msgspec.structs.replace(forced["zero"], undefined="drop")
    with pytest.raises(DataError, match="every dialogue has an undefined feature, so none is left to predict from"):
        predict(dropped, answers(rows))


def test_a_formula_by_hand_never_takes_undefined_for_0_in_silence():
    rows = [
        {"id": 1, "dialogue": "d1", "target": "a", "prediction": "a"},
        {"id": 2, "dialogue": "d2", "target": "b", "prediction": None},
    ]
    model = model_from_formula("gain", {"(Intercept)": 0.0, "recall.a": 1.0})
    with pytest.raises(DataError, match=r'recall\.a is undefined in some dialogue.*"undefined": "zero" or "drop"'):
        predict(model, answers(rows))
    for policy, value in (("zero", 0.5), ("drop", 1.0)):
        assert predict(msgspec.structs.replace(model, undefined=policy), answers(rows)).figure.value == value
    meant = msgspec.structs.replace(model, means={"recall.a": 0.4})
    assert predict(meant, answers(rows)).figure.value == pytest.approx(0.7)
    assert predict(model, answers(rows), pooled=True).figure.value == 1.0


def test_what_turns_do_not_give_is_refused():
    rows = [{"id": 1, "dialogue": "d", "target": "a", "prediction": "a"}]
    for name in ("age", "recall.z"):
        with pytest.raises(DataError, match=rf"the model needs {name}, which turns do not give"):
            predict(model_from_formula("gain", {"(Intercept)": 0.0, name: 1.0}), answers(rows))


def test_pooled_features_are_those_of_all_turns_and_others_the_mean_over_dialogues():
    """Recall of a: 1 of 1 in d1, 0 of 3 in d2."""
    rows = [{"id": 0, "dialogue": "d1", "target": "a", "prediction": "a"}]
    rows += [{"id": k, "dialogue": "d2", "target": "a", "prediction": "b"} for k in (1, 2, 3)]
    model = model_from_formula("gain", {"recall.a": 1.0})
    by_dialogue, pooled = predict(model, answers(rows)), predict(model, answers(rows), pooled=True)
    assert (by_dialogue.figure.value, by_dialogue.dialogues, by_dialogue.pooled) == (0.5, 2, False)
    assert (pooled.figure.value, pooled.dialogues, pooled.pooled) == (0.25, 1, True)
    nameless = [{key: value for key, value in row.items() if key != "dialogue"} for row in rows]
    assert predict(model, answers(nameless)).figure.value == 0.25, "turns of no dialogue are pooled"


SMALL = Turns(("d",), ("a", "b"), np.array([[[3.0, 4.0], [1.0, 2.0], [0.0, 5.0]]]))
"""a taken for a 3 times, b for a 4 times, a for b once, b for b twice; 5 times b rejected."""


def test_halving_worked_by_hand():
    """The share of predicted-a-actual-b is 4/5; halved 2/3; with the other confusion halved 4/4.5."""
    model = model_from_formula("gain", {"(Intercept)": 1.0, "predicted-a-actual-b": -0.5})
    dear, cheap = prices(model, SMALL)
    assert (dear.predicted, dear.actual, dear.count) == ("a", "b", 4)
    assert dear.change == pytest.approx(-0.5 * (2 / 3 - 4 / 5))
    assert (cheap.predicted, cheap.actual, cheap.count) == ("b", "a", 1)
    assert cheap.change == pytest.approx(-0.5 * (4 / 4.5 - 4 / 5))


def test_halving_moves_scores_too():
    """Recall of b is 2/11, rejections in its denominator; with two more right 4/11; that of a 3/4, then 3.5/4."""
    found = {
        (one.predicted, one.actual): one.change
        for one in prices(model_from_formula("gain", {"recall.b": 1.0, "recall.a": 1.0}), SMALL)
    }
    assert found == {("a", "b"): pytest.approx(2 / 11), ("b", "a"): pytest.approx(0.125)}


def test_prices_have_an_order_and_leave_out_what_never_happened():
    quiet = Turns(("d",), ("a", "b"), np.array([[[3.0, 0.0], [1.0, 2.0], [0.0, 5.0]]]))
    assert [(one.predicted, one.actual) for one in prices(model_from_formula("gain", {"recall.a": 1.0}), quiet)] == [
        ("b", "a")
    ]
    assert prices(model_from_formula("gain", {}), SMALL)[0].change == 0


def test_the_whole_price_is_twice_and_more_where_shares_shrink():
    model = model_from_formula("gain", {"predicted-a-actual-b": -1.0})
    half, whole = (prices(model, SMALL, share=share)[0].change for share in (0.5, 1.0))
    assert whole == pytest.approx(0.8)
    assert whole > half


@pytest.fixture(scope="module")
def three(model, log):
    turns, _ = log
    rows = {"old": turns, "half": mended(turns), "third": mended(turns, 3), "baseline": majority(turns)}
    return [predict(model, answers(one, name)) for name, one in rows.items()]


def test_differences_are_of_the_means_with_the_textbooks_interval(model, three):
    pairs = {(one.a, one.b): one.difference for one in predicted_pairs(model, three)}
    assert list(pairs) == [("old", "half"), ("old", "third"), ("half", "third")]
    found = pairs["old", "half"]
    old, half = three[0], three[1]
    assert found.value == pytest.approx(old.figure.value - half.figure.value)
    gap = np.array([0.0, *(old.features[name] - half.features[name] for name in model.terms)])
    error = np.sqrt(gap @ np.array(model.covariance) @ gap)
    freedom = model.n - len(model.coefficients)
    reach = stats.t.ppf((1 + 0.95 ** (1 / len(pairs))) / 2, freedom) * error
    assert (found.low, found.high) == pytest.approx((found.value - reach, found.value + reach))
    assert found.p == pytest.approx(2 * stats.t.sf(abs(found.value) / error, freedom))


def test_p_values_are_corrected_for_the_pairs(model, three):
    found = predicted_pairs(model, three)
    expected = [1 - (1 - one.difference.p) ** len(found) for one in found]
    assert [one.difference.p_adjusted for one in found] == pytest.approx(expected)


def test_refused_systems_are_in_no_pair_and_keep_their_reason(model, three):
    assert three[-1].refused
    assert all("baseline" not in (one.a, one.b) for one in predicted_pairs(model, three))
    assert predicted_pairs(model, [three[0], three[-1]]) == ()


def test_a_system_differs_in_nothing_from_itself(model, three):
    (pair,) = predicted_pairs(model, [three[0], three[0]])
    one = pair.difference
    assert (one.value, one.low, one.high, one.p) == (0, 0, 0, 1)


def test_the_order_of_coefficients_in_a_file_does_not_matter(model, three, log):
    order = [*range(1, len(model.coefficients)), 0]
    names = list(model.coefficients)
    turned = msgspec.structs.replace(
        model,
        coefficients={names[place]: model.coefficients[names[place]] for place in order},
        covariance=np.array(model.covariance)[np.ix_(order, order)].tolist(),
        digest="",
    )
    again = [predict(turned, answers(rows, name)) for name, rows in (("old", log[0]), ("half", mended(log[0])))]
    assert again[0].figure.low == pytest.approx(three[0].figure.low)
    straight, other = (predicted_pairs(one, two)[0].difference for one, two in ((model, three[:2]), (turned, again)))
    assert (other.low, other.p) == pytest.approx((straight.low, straight.p))


def test_formulas_by_hand_give_differences_without_intervals():
    model = model_from_formula("gain", {"recall.correct": 1.0})
    two = [predict(model, answers(rows, name)) for name, rows in (("a", paper_turns()), ("b", majority(paper_turns())))]
    (pair,) = predicted_pairs(model, two)
    assert pair.difference.value == pytest.approx(752 / TABLE_1["correct"] - 1)
    assert math.isnan(pair.difference.low)
    assert math.isnan(pair.difference.p)


def test_features_are_told_in_the_order_of_the_formula(model, log):
    found = prediction_of(model, "s", turns_of(answers(log[0])), pooled=False)
    assert list(found.features) == list(model.terms)
    assert CULPRIT in found.features
    assert found.features == mean_features(model, turns_of(answers(log[0])))
