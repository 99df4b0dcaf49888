import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from demur.core.stats.calibration_maps import METHODS, fit_map
from demur.core.stats.resampling import Rows
from demur.core.stats.sweep import Sweep
from demur.errors import DataError
from demur.returns.evaluate import evaluate
from demur.returns.recalibration import calibration, cross_fitted, deal_folds
from demur.returns.table import responses


def found(confidence, right, **columns):
    frame = pl.DataFrame({"id": range(len(right)), "correct": right, "confidence": confidence, **columns})
    log = responses(frame)
    (one,) = evaluate(log, replicates=50)
    return calibration(one, Rows.from_frame(log.frame)), one


def simulated(*, n=2000, power=1.0, seed=0):
    """Answers that are right as often as said where power is 1; else the confidences are off."""
    rng = np.random.default_rng(seed)
    chance = rng.random(n)
    return chance**power, rng.random(n) < chance


def test_the_figures_are_those_of_the_measures():
    one, evaluation = found(*simulated(power=0.3))
    assert one is not None
    for key in ("ece", "brier", "nce"):
        assert one.before[key].value == pytest.approx(evaluation.figures[key].value)


def test_confidences_that_are_off_are_to_be_recalibrated():
    one, _ = found(*simulated(power=0.3))
    assert one is not None
    assert one.advice == "recalibrate"
    assert one.bias > 0.1
    assert one.after["ece"].value < 0.05 < one.before["ece"].value
    assert one.change.high < 0
    assert one.change.value == pytest.approx(one.after["brier"].value - one.before["brier"].value)


def test_confidences_that_mean_what_they_say_are_left_alone():
    one, _ = found(*simulated())
    assert one is not None
    assert one.advice == "leave"
    assert one.change.p_adjusted > 0.05


@pytest.mark.parametrize(
    ("confidence", "right", "why"),
    [
        ([0.2, 0.9] * 20, [True, False] * 20, "40 answers, fewer than 100"),
        ([0.2, 0.9] * 60, [True] * 120, "every answer is right"),
        ([0.2, 0.9] * 60, [False] * 120, "every answer is wrong"),
    ],
)
def test_nothing_is_fitted_where_there_is_too_little(confidence, right, why):
    one, _ = found(confidence, right)
    assert one is not None
    assert (one.advice, one.why) == ("unclear", why)
    assert one.change is None
    assert one.to_dict()["change"] is None


def test_few_dialogues_are_too_little_too():
    one, _ = found([0.2, 0.9] * 60, [True, False] * 60, dialogue=[f"d{k % 4}" for k in range(120)])
    assert one is not None
    assert one.why == "fewer than 5 dialogues"


def test_dialogues_make_the_interval_wider():
    confidence, right = (np.repeat(part, 10) for part in simulated(n=200, power=0.5))
    alone, _ = found(confidence, right)
    together, _ = found(confidence, right, dialogue=[f"d{k // 10}" for k in range(2000)])
    assert alone is not None
    assert together is not None
    wide, narrow = (one.changes["isotonic"].high - one.changes["isotonic"].low for one in (together, alone))
    assert wide > 2 * narrow


def test_what_is_no_probability_is_not_looked_at():
    assert found([3.0, 9.0] * 60, [True, False] * 60)[0] is None


@given(st.integers(0, 50), st.randoms(use_true_random=False), st.booleans(), st.booleans())
@settings(max_examples=max(3, settings.default.max_examples // 3))
def test_the_order_of_rows_changes_no_number(seed, random, in_dialogues, weighted):
    confidence, right = simulated(n=150, power=0.4, seed=seed)
    confidence = confidence.round(2)
    unit = np.arange(150) // 5 if in_dialogues else None
    weight = 1.0 + np.arange(150) % 3 if weighted else np.ones(150)
    order = random.sample(range(150), 150)
    documents = [
        cross_fitted(
            Rows(
                confidence[places],
                right[places],
                np.ones(150, bool),
                weight[places],
                unit if unit is None else unit[places],
            ),
            replicates=50,
            seed=seed,
        ).to_dict()
        for places in (np.arange(150), np.array(order))
    ]
    assert documents[0] == documents[1]


def test_each_answer_is_mapped_by_what_was_fitted_without_it():
    """By hand: the maps of five folds, each applied to the answers that it was not fitted to."""
    confidence, right = simulated(n=200, power=0.4)
    rows = Rows.of(np.sort(confidence), right[np.argsort(confidence)])
    found = cross_fitted(rows, replicates=50)
    fold = deal_folds(rows, folds=5, seed=0)
    for method in METHODS:
        expected = np.empty(200)
        for part in range(5):
            rest = Sweep.of(rows.confidence[fold != part], rows.right[fold != part])
            expected[fold == part] = fit_map(rest, method, "probabilities")(rows.confidence[fold == part])
        brier = np.square(expected - rows.right).mean()
        assert found.methods[method].figures["brier"].value == pytest.approx(brier, rel=1e-12)


def test_the_error_out_of_fold_is_about_that_of_a_part_never_seen():
    """Dealt in order of confidence and of being right, folds would be so much alike that it came out near 0."""
    confidence, right = (part[:4000] for part in simulated(n=24_000, power=0.4))
    found = cross_fitted(Rows.of(confidence, right), method="isotonic", replicates=50)
    unseen, truth = (part[4000:] for part in simulated(n=24_000, power=0.4))
    seen_error = found.methods["isotonic"].figures["ece"].value
    mapped = found.fitted(unseen)
    true_error = float(np.abs(mapped - unseen**2.5).mean())
    assert true_error / 3 < seen_error < 3 * true_error
    assert truth.any()


def test_folds_are_random_but_share_out_the_errors():
    confidence, right = simulated(n=1000, power=0.4)
    rows = Rows.of(confidence, right)
    fold = deal_folds(rows, folds=5, seed=1)
    sizes, errors = np.bincount(fold), np.bincount(fold, weights=~right)
    assert sizes.tolist() == [200] * 5
    assert errors.max() - errors.min() <= 1
    assert deal_folds(rows, folds=5, seed=1).tolist() == fold.tolist()
    assert deal_folds(rows, folds=5, seed=2).tolist() != fold.tolist()
    in_order = fold[np.argsort(confidence)]
    assert len({tuple(in_order[place : place + 5]) for place in range(0, 1000, 5)}) > 100


def test_a_dialogue_is_in_one_fold():
    confidence, right = simulated(n=300, power=0.4)
    unit = np.arange(300) // 7
    fold = deal_folds(Rows(confidence, right, np.ones(300, bool), np.ones(300), unit), folds=5, seed=0)
    assert all(np.unique(fold[unit == one]).size == 1 for one in range(unit.max() + 1))


def test_every_method_is_tried_and_the_lowest_brier_score_chosen():
    confidence, right = simulated(power=0.3)
    found = cross_fitted(Rows.of(confidence, right), replicates=50)
    scores = {name: one.figures["brier"].value for name, one in found.methods.items()}
    assert set(scores) == set(METHODS)
    assert found.fitted.method == min(scores, key=scores.get)
    assert all(lead.value <= 0 for lead in found.leads.values())
    assert all(one.p_adjusted >= one.p for one in (*found.changes.values(), *found.leads.values()))


def test_a_method_that_is_asked_for_is_taken():
    found = cross_fitted(Rows.of(*simulated(power=0.3)), method="temperature", replicates=50)
    assert found.fitted.method == "temperature"
    assert found.asked


def test_scores_have_nothing_to_compare_with_and_no_beta():
    confidence, right = simulated()
    found = cross_fitted(Rows.of(20 * confidence - 5, right), replicates=50)
    assert found.given is None
    assert found.change is None
    assert "beta" not in found.methods
    assert found.after["ece"].value < 0.1
    assert found.to_dict()["ece"] is None


def test_infinite_confidences_are_refused():
    confidence, right = simulated(n=200)
    confidence[:2] = -np.inf
    with pytest.raises(DataError, match="2 answers have infinite confidences"):
        cross_fitted(Rows.of(confidence, right))


def test_too_few_errors_to_be_in_every_fold_are_too_few():
    right = np.ones(200, bool)
    right[:3] = False
    found = cross_fitted(Rows.of(np.linspace(0, 1, 200), right))
    assert found.why == "3 wrong answers, fewer than the 5 folds"
