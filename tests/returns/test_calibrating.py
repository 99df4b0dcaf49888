import math

import numpy as np
import polars as pl
import pytest

from demur.core.stats.resampling import Rows
from demur.returns.evaluate import evaluate
from demur.returns.recalibration import calibration
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
    assert one.ece == pytest.approx(evaluation.figures["ece"].value)
    assert one.brier == pytest.approx(evaluation.figures["brier"].value)


def test_confidences_that_are_off_are_to_be_recalibrated():
    one, _ = found(*simulated(power=0.3))
    assert one is not None
    assert one.advice == "recalibrate"
    assert one.bias > 0.1
    assert one.ece_after < 0.05 < one.ece
    assert one.high < 0
    assert one.change == pytest.approx(one.brier_after - one.brier)


def test_confidences_that_mean_what_they_say_are_left_alone():
    one, _ = found(*simulated())
    assert one is not None
    assert one.advice == "leave"
    assert one.high > 0


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
    assert math.isnan(one.change)
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
    assert together.high - together.low > 2 * (alone.high - alone.low)


def test_what_is_no_probability_is_not_looked_at():
    assert found([3.0, 9.0] * 60, [True, False] * 60)[0] is None


def test_the_order_of_rows_does_not_matter():
    confidence, right = simulated(power=0.4)
    order = np.random.default_rng(1).permutation(confidence.size)
    one, two = found(confidence, right)[0], found(confidence[order], right[order])[0]
    assert one is not None
    assert two is not None
    assert one.change == pytest.approx(two.change, rel=1e-9)
