"""Impurity, its mass and complexity of curves whose integrals are known in closed form."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from demur.gold_standard.impurity import XInterval, complexity, impurity, mean_performance
from reference.gold import area, ground_of, handmade, interval, softplus_area

SHARE = st.floats(0.02, 0.98)
LOGIT = st.floats(-8, 8)


def distance(gold, system):
    return impurity(gold, system, ground_of(gold, system))


def test_the_mass_between_straight_lines_by_hand():
    """Gold falls from 1 to .8, the system from 1 to .2: .6 x in between, whose area is .3; gold's own is .9."""
    found = distance(handmade("gold", "linear", (1, 0.8)), handmade("A", "linear", (1, 0.2)))
    assert found.mass.value == pytest.approx(0.3, abs=1e-12)
    assert (found.below.value, found.above.value) == pytest.approx((0.3, 0), abs=1e-12)
    assert found.relative.value == pytest.approx(1 / 3, abs=1e-12)
    assert found.signed == pytest.approx(0.6 * found.x, abs=1e-12)
    assert (found.mass.low, found.mass.high) == pytest.approx((0.3, 0.3), abs=1e-9)


def test_a_system_that_overtakes_gold_has_its_mass_split():
    """Gold is .6 throughout; the system falls from 1 to .5 and crosses at .8: above .16, below .01."""
    found = distance(handmade("gold", "linear", (0.6, 0.6)), handmade("A", "linear", (1, 0.5)))
    assert found.above.value == pytest.approx(0.5 * 0.8 * 0.4, abs=1e-9)
    assert found.below.value == pytest.approx(0.5 * 0.2 * 0.1, abs=1e-9)
    assert found.mass.value == pytest.approx(0.17, abs=1e-9)
    assert [one.holds for one in found.ranges if one.high - one.low > 0.01] == ["above gold", "below gold"]
    above = [one.high - one.low for one in found.ranges if one.holds == "above gold"]
    assert sum(above) == pytest.approx(0.8, abs=0.01)


def test_the_mass_between_logistic_curves_is_that_of_their_antiderivatives():
    """The integral of 1 / (1 + exp(-(a - b x))) is -log(1 + exp(a - b x)) / b; these two do not meet."""
    found = distance(handmade("gold", "logistic", (4, 1)), handmade("A", "logistic", (3, -9)))
    assert found.mass.value == pytest.approx(softplus_area(4, 1) - softplus_area(3, -9), abs=1e-9)


def test_the_mass_between_logistic_curves_that_cross_is_cut_there():
    """Logits 4 - 3 x and 6 - 8 x are equal at x = .4."""
    found = distance(handmade("gold", "logistic", (4, 1)), handmade("A", "logistic", (6, -2)))
    at = 4 - 3 * 0.4
    first = (np.logaddexp(0, 6) - np.logaddexp(0, at)) / 8 - (np.logaddexp(0, 4) - np.logaddexp(0, at)) / 3
    rest = (np.logaddexp(0, at) - np.logaddexp(0, 1)) / 3 - (np.logaddexp(0, at) - np.logaddexp(0, -2)) / 8
    assert found.above.value == pytest.approx(first, abs=1e-9)
    assert found.below.value == pytest.approx(rest, abs=1e-9)


@given(gold=st.tuples(LOGIT, LOGIT), system=st.tuples(SHARE, SHARE))
def test_masses_are_those_of_many_narrow_strips_and_add_up(gold, system):
    found = distance(handmade("gold", "logistic", gold), handmade("A", "linear", system))

    def apart(x):
        return expit(gold[0] + (gold[1] - gold[0]) * x) - (system[0] + (system[1] - system[0]) * x)

    assert found.mass.value == pytest.approx(found.below.value + found.above.value, abs=1e-12)
    assert found.below.value == pytest.approx(area(lambda x: np.maximum(apart(x), 0), 0, 1), abs=1e-6)
    assert found.above.value == pytest.approx(area(lambda x: np.maximum(-apart(x), 0), 0, 1), abs=1e-6)


def test_only_the_range_that_both_cover_counts():
    """Over .5 to 1 the curves are apart by .6 x: .225; over 0 to 1 it would be .3."""
    gold = handmade("gold", "linear", (1, 0.8))
    system = handmade("A", "linear", (0.6, 0.2), over=(0.5, 1.0))
    assert distance(gold, system).mass.value == pytest.approx(0.225, abs=1e-12)


def test_intervals_come_from_the_masses_of_replicates():
    """The system ends at .2, .3 or .4 in replicates, so that the mass is .3, .25 or .2 in them."""
    gold = handmade("gold", "linear", (1, 0.8), replicates=[(1, 0.8)] * 3)
    system = handmade("A", "linear", (1, 0.3), replicates=[(1, 0.2), (1, 0.3), (1, 0.4)])
    found = distance(gold, system)
    assert found.replicates == pytest.approx([0.3, 0.25, 0.2], abs=1e-9)
    assert (found.mass.low, found.mass.high) == pytest.approx(interval(0.25, [0.3, 0.25, 0.2], 5), abs=1e-9)


def test_the_band_of_an_impurity_never_falls_below_0():
    gold = handmade("gold", "linear", (1, 0.8), replicates=[(1, 0.7), (1, 0.9), (1, 0.8)])
    found = distance(gold, handmade("A", "linear", (1, 0.75), replicates=[(1, 0.75)] * 3))
    assert (found.low >= 0).all()
    assert (found.low <= found.impurity).all()
    assert (found.impurity <= found.high).all()


def test_the_same_replicates_for_both_leave_no_doubt_about_the_difference():
    """Where gold and system are moved alike, their difference is not moved at all."""
    moved = [(1, 0.7), (1, 0.9), (1, 0.8)]
    gold = handmade("gold", "linear", (1, 0.8), replicates=moved)
    found = distance(gold, handmade("A", "linear", (1, 0.4), replicates=[(a, b - 0.4) for a, b in moved]))
    assert (found.mass.low, found.mass.high) == pytest.approx((0.2, 0.2), abs=1e-9)


def test_a_system_with_golds_own_curve_has_no_impurity():
    found = distance(handmade("gold", "logistic", (4, -3)), handmade("A", "logistic", (4, -3)))
    assert (found.mass.value, found.below.value, found.above.value, found.relative.value) == (0, 0, 0, 0)
    assert found.ranges == (XInterval(0.0, 1.0, "undecided"),)
    assert not found.impurity.any()


def test_the_relative_mass_does_not_depend_on_the_scale_of_the_metric():
    ends = {"gold": (0.9, 0.7), "A": (0.8, 0.1)}
    shares, ratings = (
        distance(*(handmade(name, "linear", pair, bounds=bounds) for name, pair in ends.items()))
        for bounds in ((0.0, 1.0), (1.0, 7.0))
    )
    assert ratings.relative.value == pytest.approx(shares.relative.value, abs=1e-12)
    assert ratings.mass.value == pytest.approx(6 * shares.mass.value, abs=1e-9)


def test_a_gold_standard_that_achieves_nothing_has_no_relative_mass():
    found = distance(handmade("gold", "linear", (0, 0)), handmade("A", "linear", (0.5, 0.1)))
    assert found.relative.why == "the gold standard achieves nothing"
    assert found.above.value == pytest.approx(0.3, abs=1e-9)


def test_complexity_is_the_mean_distance_from_the_bound():
    assert complexity(handmade("gold", "linear", (1, 0.8))).value == pytest.approx(0.1, abs=1e-12)
    assert complexity(handmade("gold", "linear", (1, 0.8), over=(20, 60))).value == pytest.approx(0.1, abs=1e-12)
    assert complexity(handmade("gold", "linear", (1, 0.8), bounds=(1, 7))).value == pytest.approx(0.1, abs=1e-12)


@given(start=LOGIT, end=LOGIT)
def test_complexity_of_a_logistic_curve_is_that_of_its_antiderivative(start, end):
    found = complexity(handmade("gold", "logistic", (start, end)))
    assert found.value == pytest.approx(1 - softplus_area(start, end), abs=1e-9)


def test_complexity_has_an_interval_within_0_and_1():
    gold = handmade("gold", "linear", (1, 0.98), replicates=[(1, 0.95), (1, 0.99), (1, 1.0)])
    found = complexity(gold)
    assert 0 < found.low < found.value < found.high < 1


def test_complexity_is_undefined_without_an_upper_bound():
    found = complexity(handmade("gold", "linear", (9, 4), bounds=(0.0, None)))
    assert not found.defined
    assert found.to_dict() == {
        "value": None,
        "low": None,
        "high": None,
        "why": "the metric has no upper bound; --upper gives it",
    }


def test_the_mean_performance_is_over_the_common_range():
    gold, system = handmade("gold", "linear", (1, 0.8)), handmade("A", "linear", (0.6, 0.2), over=(0.5, 1.0))
    x_range = ground_of(gold, system)
    assert mean_performance(gold, x_range).value == pytest.approx(0.85, abs=1e-12)
    assert mean_performance(system, x_range).value == pytest.approx(0.4, abs=1e-12)


def test_an_impurity_is_written_as_plain_values():
    found = distance(handmade("gold", "linear", (1, 0.8)), handmade("A", "linear", (1, 0.2)))
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert list(told) == [
        "impurity_mass",
        "mass_below_gold",
        "mass_above_gold",
        "relative_mass",
        "mean_distance",
        "ranges",
    ]
    assert told["impurity_mass"]["value"] == found.mass.value
