import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.errors import DataError, UsageError
from demur.outcome.learners import ScoreParts, cross_validate_f_beta, fit_f_beta
from demur.returns.classes import ClassAverage, Confusion, class_values

CELLS = st.integers(0, 9)


def tables(n=30, seed=0):
    """Dialogues that differ in how much they reject and how much they mistake, so precision and recall differ."""
    rng = np.random.default_rng(seed)
    counts = np.zeros((n, 4, 3))
    for one in range(n):
        turns = rng.multinomial(60, [0.5, 0.3, 0.2])
        rejects, rights = rng.uniform(0, 0.6), rng.uniform(0.3, 0.9)
        for actual, size in enumerate(turns):
            chances = np.full(4, (1 - rejects) * (1 - rights) / 2)
            chances[actual], chances[3] = (1 - rejects) * rights, rejects
            counts[one, :, actual] = rng.multinomial(size, chances)
    return Confusion.dense(("a", "b", "c"), counts, int(counts.sum()))


def f_beta(confusion, beta, of="macro"):
    return ScoreParts.of(confusion, of).at([beta**2 / (1 + beta**2)])[0]


def lines(*rows):
    """One dialogue for each (hits, predicted, support) of class a; the rest of the turns are of class b."""
    counts = [[[h, p - h], [0, 5], [s - h, 0]] for h, p, s in rows]
    return Confusion.dense(("a", "b"), np.array(counts, dtype=float), 1)


def test_f_beta_by_hand():
    """Precision 4/5, recall 4/10, beta 2: 5 · 0.8 · 0.4 / (4 · 0.8 + 0.4) = 1.6 / 3.6."""
    confusion = lines((4, 5, 10))
    assert f_beta(confusion, 2.0, "a") == pytest.approx([1.6 / 3.6])
    assert f_beta(confusion, 1.0, "a") == pytest.approx([2 * 4 / 15])


@given(st.lists(st.lists(CELLS, min_size=6, max_size=6), min_size=1, max_size=5), st.floats(0.1, 10.0))
def test_f_beta_lies_between_precision_and_recall_and_beta_1_is_f1(rows, beta):
    counts = np.array(rows, dtype=float).reshape(-1, 3, 2) + np.eye(3, 2)
    confusion = Confusion.dense(("a", "b"), counts, 1)
    one = f_beta(confusion, beta, "a")
    values = {part: value[:, 0] for part, value in class_values(confusion).items()}
    assert (one >= np.minimum(values["precision"], values["recall"]) - 1e-12).all()
    assert (one <= np.maximum(values["precision"], values["recall"]) + 1e-12).all()
    assert f_beta(confusion, 1.0, "a") == pytest.approx(values["f1"])
    assert f_beta(confusion, 1.0) == pytest.approx(ClassAverage("macro", "f1").finish(confusion))
    assert f_beta(confusion, 1.0, "weighted") == pytest.approx(ClassAverage("weighted", "f1").finish(confusion))
    assert ScoreParts.of(confusion).at([0.0])[0] == pytest.approx(ClassAverage("macro", "precision").finish(confusion))
    assert ScoreParts.of(confusion).at([1.0])[0] == pytest.approx(ClassAverage("macro", "recall").finish(confusion))


@given(st.floats(0.1, 8.0), st.floats(0.1, 3.0), st.floats(-2.0, 2.0), st.sampled_from(["macro", "weighted", "a", "c"]))
def test_the_beta_that_made_the_outcomes_is_found(beta, slope, intercept, of):
    confusion = tables()
    fitted = fit_f_beta(confusion, intercept + slope * f_beta(confusion, beta, of), of=of, replicates=0)
    assert fitted.beta.value == pytest.approx(beta, rel=1e-3)
    assert fitted.slope.value == pytest.approx(slope, rel=1e-3)
    assert fitted.intercept == pytest.approx(intercept, abs=1e-2)
    assert fitted.r2 == pytest.approx(1)
    assert fitted.mse == pytest.approx(0, abs=1e-8)
    assert fitted.at == "inside"


def test_no_other_beta_fits_better():
    confusion, rng = tables(), np.random.default_rng(1)
    y = f_beta(confusion, 2.0) + 0.05 * rng.normal(size=30)
    fitted = fit_f_beta(confusion, y, replicates=0)
    others = [np.corrcoef(f_beta(confusion, beta), y)[0, 1] ** 2 for beta in np.geomspace(0.05, 20, 2000)]
    assert fitted.r2 == pytest.approx(max(others), abs=1e-8)
    assert fitted.r2 >= max(others) - 1e-12
    assert fitted.r2_of["f1"] == pytest.approx(np.corrcoef(f_beta(confusion, 1.0), y)[0, 1] ** 2)
    assert fitted.mse == pytest.approx(np.square(y - fitted.predict(confusion)).mean())


@given(st.floats(0.01, 50.0), st.floats(-50.0, 50.0))
def test_beta_does_not_depend_on_the_units_of_the_outcome(factor, shift):
    confusion, rng = tables(), np.random.default_rng(1)
    y = f_beta(confusion, 0.7) + 0.02 * rng.normal(size=30)
    one, other = (fit_f_beta(confusion, given, replicates=0) for given in (y, shift + factor * y))
    assert other.beta.value == pytest.approx(one.beta.value, rel=1e-4)
    assert other.r2 == pytest.approx(one.r2)
    assert other.predict(confusion) == pytest.approx(shift + factor * one.predict(confusion), abs=1e-4)


@pytest.mark.parametrize(
    ("p", "place", "alone", "beta"), [(0.0, "lower", "precision", 0.05), (1.0, "upper", "recall", 20.0)]
)
def test_precision_or_recall_alone_drives_beta_to_a_bound_which_is_said(p, place, alone, beta):
    confusion = tables()
    y = ScoreParts.of(confusion).at([p])[0] + 0.001 * np.random.default_rng(0).normal(size=30)
    y += 0.2 * (ScoreParts.of(confusion).at([p])[0] - ScoreParts.of(confusion).at([1 - p])[0])
    fitted = fit_f_beta(confusion, y, replicates=50)
    assert fitted.at == place
    assert fitted.beta.value == pytest.approx(beta)
    assert fitted.words() == f"beta runs to its {place} bound {beta:g}: {alone} alone predicts as well"
    assert fitted.r2_of[alone] == pytest.approx(fitted.r2, abs=0.01)
    assert fitted.at_bounds[place] > 0.9


def test_where_precision_equals_recall_any_beta_fits_and_that_is_said():
    confusion = lines((4, 5, 5), (3, 5, 5), (2, 5, 5), (5, 5, 5), (1, 5, 5))
    fitted = fit_f_beta(confusion, [0.4, 0.3, 0.2, 0.5, 0.2], of="a", replicates=20)
    assert fitted.at == "any"
    assert fitted.beta.value == 1
    assert np.isnan(fitted.beta.low)
    assert "any beta fits as well" in fitted.words()
    assert "any beta" in fitted.to_dict()["beta"]["why"]
    assert fitted.slope.value == pytest.approx(0.4, abs=0.03)


def test_scores_that_are_all_the_same_predict_the_mean():
    confusion = lines(*[(4, 5, 8)] * 5)
    fitted = fit_f_beta(confusion, [1.0, 2.0, 3.0, 4.0, 5.0], of="a", replicates=0)
    assert fitted.slope.value == 0
    assert fitted.predict(confusion).tolist() == [3.0] * 5
    assert fitted.r2 == 0


def test_a_falling_outcome_is_said():
    confusion = tables()
    fitted = fit_f_beta(confusion, 1 - f_beta(confusion, 2.0), replicates=0)
    assert fitted.words() == "recall counts 2 times as much as precision; but the outcome falls as F rises"


def test_the_interval_covers_the_beta_that_made_the_outcomes_and_the_seed_fixes_it():
    confusion, rng = tables(60), np.random.default_rng(1)
    y = f_beta(confusion, 2.0) + 0.02 * rng.normal(size=60)
    heard = []
    one = fit_f_beta(confusion, y, replicates=60, seed=3, step=lambda *told: heard.append(told))
    other = fit_f_beta(confusion, y, replicates=60, seed=3)
    assert one.beta == other.beta
    assert one.beta.low < 2.0 < one.beta.high
    assert one.slope.low < 1.0 < one.slope.high
    assert heard[-1] == ("draws of dialogues", 60, 60)


def test_dialogues_of_a_group_are_drawn_together():
    """Twins that tell the same twice do not make beta more certain."""
    confusion, rng = tables(20), np.random.default_rng(1)
    y = f_beta(confusion, 2.0) + 0.05 * rng.normal(size=20)
    twice = Confusion.dense(confusion.labels, np.repeat(confusion.counts, 2, axis=0), confusion.n * 2)
    alone = fit_f_beta(confusion, y, replicates=40)
    twins = fit_f_beta(twice, np.repeat(y, 2), groups=np.repeat(np.arange(20), 2), replicates=40)
    assert twins.beta.low == pytest.approx(alone.beta.low, rel=1e-4)
    assert twins.beta.high == pytest.approx(alone.beta.high, rel=1e-4)


ABSENT = ((4, 5, 8), (2, 5, 6), (1, 2, 6), (5, 6, 7), (0, 0, 0), (3, 3, 9))
OUTCOMES = [0.7, 0.4, 0.3, 0.9, 0.1, 0.6]


def test_a_dialogue_without_the_class_is_dropped_and_counted():
    fitted = fit_f_beta(lines(*ABSENT), OUTCOMES, of="a", replicates=0)
    without = [place for place in range(6) if place != 4]
    kept = fit_f_beta(lines(*(ABSENT[place] for place in without)), np.array(OUTCOMES)[without], of="a", replicates=0)
    assert (fitted.n, fitted.dropped) == (5, 1)
    assert fitted.beta.value == kept.beta.value
    assert np.isnan(fitted.predict(lines(*ABSENT))).tolist() == [False] * 4 + [True, False]


def test_a_dialogue_without_the_class_may_count_as_0():
    fitted = fit_f_beta(lines(*ABSENT), OUTCOMES, of="a", undefined="zero", replicates=0)
    assert (fitted.n, fitted.dropped) == (6, 0)
    assert fitted.predict(lines((0, 0, 0))) == pytest.approx([fitted.intercept])


def test_a_dialogue_without_the_class_may_count_as_the_mean_of_the_others():
    """Then beta and slope are as without it, and the line goes through the mean of all outcomes."""
    fitted = fit_f_beta(lines(*ABSENT), OUTCOMES, of="a", undefined="impute-mean", replicates=30)
    dropped = fit_f_beta(lines(*ABSENT), OUTCOMES, of="a", replicates=0)
    assert fitted.beta.value == pytest.approx(dropped.beta.value)
    assert fitted.slope.value == pytest.approx(dropped.slope.value)
    assert fitted.predict(lines((0, 0, 0))) == pytest.approx([np.mean(OUTCOMES)])
    assert fitted.predict(lines(*ABSENT)).mean() == pytest.approx(np.mean(OUTCOMES))
    assert fitted.mse == pytest.approx(np.square(fitted.predict(lines(*ABSENT)) - OUTCOMES).mean())


@pytest.mark.parametrize("undefined", ["drop", "zero", "impute-mean"])
def test_each_dialogue_is_predicted_by_a_fit_without_it(undefined):
    rows = (*ABSENT, (2, 6, 6), (6, 8, 7))
    outcomes = np.array([*OUTCOMES, 0.35, 0.8])
    options = {"of": "a", "undefined": undefined}
    seen = cross_validate_f_beta(lines(*rows), outcomes, **options)
    for out, said in enumerate(seen.predictions):
        kept = [place for place in range(8) if place != out]
        fitted = fit_f_beta(lines(*(rows[place] for place in kept)), outcomes[kept], **options, replicates=0)
        assert said == pytest.approx(fitted.predict(lines(rows[out]))[0], abs=1e-6, nan_ok=True)
    assert seen.n == (7 if undefined == "drop" else 8)
    assert seen.sd == pytest.approx(np.nanstd(np.square(seen.predictions - outcomes), ddof=1))


def test_groups_and_given_folds_are_left_out_as_a_whole():
    confusion = tables(12)
    y = f_beta(confusion, 2.0) + 0.1 * np.random.default_rng(0).normal(size=12)
    groups = np.arange(12) // 3
    one, other = cross_validate_f_beta(confusion, y, groups=groups), cross_validate_f_beta(confusion, y, folds=groups)
    assert one.predictions.tolist() == other.predictions.tolist()
    assert one.training_r2s.size == 4
    assert one.means[0] == pytest.approx(y[3:].mean())


def test_one_table_without_dialogues_is_predicted_as_one():
    confusion = tables()
    fitted = fit_f_beta(confusion, f_beta(confusion, 2.0), replicates=0)
    pooled = Confusion.dense(confusion.labels, confusion.counts.sum(axis=0), confusion.n)
    assert fitted.predict(pooled).shape == (1,)


def test_the_result_is_plain_values():
    confusion = tables()
    shown = json.loads(
        json.dumps(fit_f_beta(confusion, f_beta(confusion, 2.0), replicates=10).to_dict(), allow_nan=False)
    )
    assert shown["beta"]["value"] == pytest.approx(2, rel=1e-3)
    assert shown["r2_of"].keys() == {"precision", "f1", "recall"}
    json.dumps(fit_f_beta(confusion, f_beta(confusion, 2.0), replicates=0).to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("rows", "y", "options", "fault", "message"),
    [
        (ABSENT[:1], [0.5], {}, DataError, "more than three dialogues must have a score; got 1"),
        (ABSENT[1:5], [0.1, 0.2, 0.3, 0.4], {}, DataError, "more than three dialogues must have a score; got 3"),
        (ABSENT, [0.3] * 6, {}, DataError, "the same in every dialogue"),
        (ABSENT, [0.3] * 5, {}, DataError, "each of 6 dialogues must have one outcome"),
        (ABSENT, [np.nan] * 6, {}, DataError, "finite number in every dialogue"),
        (ABSENT, OUTCOMES, {"of": "z"}, UsageError, 'of a class, "macro" or "weighted"'),
        (ABSENT, OUTCOMES, {"undefined": "guess"}, UsageError, 'drop, zero, impute-mean; got "guess"'),
        (ABSENT, OUTCOMES, {"bounds": (0.0, 2.0)}, UsageError, "a lower bound above 0"),
        (ABSENT, OUTCOMES, {"bounds": (3.0, 2.0)}, UsageError, "a greater upper one"),
    ],
)
def test_what_cannot_be_fitted_is_refused_with_the_reason(rows, y, options, fault, message):
    with pytest.raises(fault, match=message):
        fit_f_beta(lines(*rows), y, **({"of": "a"} | options), replicates=0)
