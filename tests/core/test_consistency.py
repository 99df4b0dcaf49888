from math import isnan

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import binom, kstest

from demur.core.stats.calibration import calibration_test, consistent_reliability, outcomes_as_stated
from demur.core.stats.resampling import Rows, Sample
from reference import calibration as plain
from reference.rows import arrays, tables


def in_dialogues(rows, size):
    return Rows(rows.confidence, rows.right, rows.answered, rows.weight, np.arange(rows.weight.size) // size)


def test_spiegelhalters_z_by_hand():
    """Six of ten right at .9: 6 (.1)(-.8) + 4 (-.9)(-.8) = 2.4, over sqrt(10 (.8)^2 (.9)(.1)) = .7589."""
    found = calibration_test(Sample(Rows.of([0.9] * 10, [True] * 6 + [False] * 4)))
    assert found.z == pytest.approx(2.4 / np.sqrt(0.576))
    assert found.p == pytest.approx(0.001565, abs=1e-6)
    assert set(found.to_dict()) == {"name", "z", "p"}


@pytest.mark.parametrize("weight", [3.0, 1e60])
def test_what_a_row_counts_in_all_does_not_matter(weight):
    rng = np.random.default_rng(7)
    confidence = rng.random(60)
    once = Rows.of(confidence, rng.random(60) < confidence)
    often = Rows(once.confidence, once.right, once.answered, weight * once.weight, None)
    drawn = [outcomes_as_stated(Sample(rows), 20) for rows in (once, often)]
    assert np.array_equal(drawn[0].right, drawn[1].right)


@given(tables(st.sampled_from([0.1, 0.25, 0.4, 0.75, 0.9, 1.0])))
def test_spiegelhalters_z_agrees_with_its_plain_twin(rows):
    assume(any(row.answered and 0 < row.confidence < 1 for row in rows))
    assert calibration_test(Sample(arrays(rows))).z == pytest.approx(plain.spiegelhalter(rows))


def test_p_values_of_calibrated_systems_are_uniform():
    rng = np.random.default_rng(3)
    drawn = [(confidence, rng.random(150) < confidence) for confidence in rng.random((400, 150))]
    assert kstest([calibration_test(Sample(Rows.of(*one))).p for one in drawn], "uniform").pvalue > 0.01


def test_p_values_of_calibrated_systems_whose_turns_go_together_are_not_too_small():
    """All five turns of a dialogue are right or wrong together: taken as independent, far too many would be refuted."""
    rng = np.random.default_rng(4)
    together, apart = [], []
    for _ in range(200):
        confidence = np.repeat(rng.random(60), 5)
        rows = Rows.of(confidence, np.repeat(rng.random(60), 5) < confidence)
        together.append(calibration_test(Sample(in_dialogues(rows, 5))).p < 0.05)
        apart.append(calibration_test(Sample(rows)).p < 0.05)
    assert np.mean(together) < 0.11
    assert np.mean(apart) > 0.25


def test_a_certainty_that_fails_refutes_calibration_where_nothing_is_left_to_chance():
    assert calibration_test(Sample(Rows.of([1.0, 1.0], [True, False]))).p == 0
    sure = calibration_test(Sample(Rows.of([1.0, 0.0], [True, False])))
    assert isnan(sure.p)
    assert "0, 0.5 or 1" in sure.why


def test_scores_that_are_no_probabilities_are_not_tested():
    found = calibration_test(Sample(Rows.of([-1.0, -2.0], [True, False])))
    assert isnan(found.p)
    assert "no confidence lies in [0, 1]" in found.to_dict()["why"]


def test_consistency_bars_are_the_binomial_quantiles_of_a_heap():
    sample = Sample(Rows.of([0.9] * 50, [True] * 40 + [False] * 10), seed=1)
    found = consistent_reliability(sample)
    assert found.usual_low[0] == pytest.approx(binom.ppf(0.025, 50, 0.9) / 50, abs=0.021)
    assert found.usual_high[0] == pytest.approx(binom.ppf(0.975, 50, 0.9) / 50, abs=0.021)
    assert found.accuracy[0] < found.usual_low[0]


def test_bars_of_turns_that_go_together_are_wider():
    confidence = np.repeat(np.arange(40) / 40, 6)
    rows = Rows.of(confidence, np.repeat(np.arange(40) % 3 > 0, 6))
    apart, together = (consistent_reliability(Sample(one)) for one in (rows, in_dialogues(rows, 6)))
    assert (together.usual_high - together.usual_low > 1.3 * (apart.usual_high - apart.usual_low)).mean() > 0.7


def test_bars_of_rows_that_weigh_alike_do_not_depend_on_the_weight():
    rows = Rows.of(np.arange(60) / 60, np.arange(60) % 2 == 0)
    light, heavy = (Rows(rows.confidence, rows.right, rows.answered, rows.weight * one) for one in (0.5, 7.0))
    one, two = (consistent_reliability(Sample(rows)) for rows in (light, heavy))
    assert one.usual_low == pytest.approx(two.usual_low)
