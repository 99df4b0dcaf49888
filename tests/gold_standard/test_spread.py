"""Intervals from replicates, by hand and beside plain loops."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logit
from scipy.stats import t as student_t

import demur
from demur.gold_standard.impurity import (
    ConfidenceLevel,
    XInterval,
    area_interval,
    even_interval,
    replicate_p,
    share_interval,
    simultaneous_band,
    x_intervals,
)
from reference.gold import interval, runs

SURE = ConfidenceLevel(0.95, 2)


def test_an_interval_is_students_t_times_the_spread_of_replicates():
    """Replicates 0, 1, 2 have the standard deviation 1; t with 2 degrees of freedom is 4.302653 at 95 %."""
    found = even_interval(1.5, np.array([0.0, 1.0, 2.0]), SURE)
    assert (found.value, found.low, found.high) == pytest.approx((1.5, 1.5 - 4.302653, 1.5 + 4.302653), abs=1e-6)
    assert (found.low, found.high) == pytest.approx(interval(1.5, [0.0, 1.0, 2.0], subjects=3))


def test_one_subject_less_than_two_still_has_a_critical_value():
    assert ConfidenceLevel(0.95, 0).critical == ConfidenceLevel(0.95, 1).critical == pytest.approx(12.7062, abs=1e-4)


def test_a_few_replicates_without_a_value_are_left_out_and_many_leave_no_interval():
    drawn = np.arange(20.0)
    gap = np.where(drawn == 3, np.nan, drawn)
    found = even_interval(9.0, gap, SURE)
    assert (found.low, found.high) == pytest.approx(interval(9.0, [one for one in drawn if one != 3], 3))
    bare = even_interval(9.0, np.where(drawn < 3, np.nan, drawn), SURE)
    assert bare.defined
    assert np.isnan([bare.low, bare.high]).all()
    assert not even_interval(float("nan"), drawn, SURE).defined


@given(
    value=st.floats(0.001, 0.999),
    drawn=st.lists(st.floats(0, 1), min_size=3, max_size=30),
    level=st.sampled_from([0.8, 0.95]),
)
def test_the_interval_of_a_share_stays_between_0_and_1_and_holds_it(value, drawn, level):
    found = share_interval(value, np.array(drawn), ConfidenceLevel(level, 4))
    assert 0 <= found.low <= value + 1e-12
    assert value - 1e-12 <= found.high <= 1


def test_the_interval_of_a_share_is_even_on_the_logit_scale():
    found = share_interval(0.2, np.array([0.1, 0.2, 0.3]), SURE)
    assert logit(found.high) - logit(0.2) == pytest.approx(logit(0.2) - logit(found.low))
    spread = np.std(logit([0.1, 0.2, 0.3]), ddof=1)
    assert logit(found.high) - logit(0.2) == pytest.approx(4.302653 * spread, rel=1e-6)


def test_a_share_of_0_has_a_plain_interval():
    assert share_interval(0.0, np.zeros(5), SURE).high == 0


def test_an_area_has_the_bias_of_its_replicates_taken_off():
    """Replicates 2, 3, 4 lie 1 above the value 2 on average: the interval is around 1, and holds 2."""
    sure = ConfidenceLevel(0.95, 10)
    found = area_interval(2.0, np.array([2.0, 3.0, 4.0]), sure)
    assert (found.low, found.high) == pytest.approx((0.0, 1 + sure.critical))
    narrow = area_interval(2.0, np.array([2.95, 3.0, 3.05]), sure)
    assert (narrow.low, narrow.high) == pytest.approx((1 - 0.05 * sure.critical, 2.0))


def test_an_area_whose_replicates_are_smaller_is_not_made_larger():
    sure = ConfidenceLevel(0.95, 10)
    found = area_interval(2.0, np.array([0.9, 1.0, 1.1]), sure)
    assert (found.low, found.high) == pytest.approx((2 - 0.1 * sure.critical, 2 + 0.1 * sure.critical))


@given(value=st.floats(0, 5), drawn=st.lists(st.floats(0, 5), min_size=2, max_size=20))
def test_the_interval_of_an_area_holds_it_and_begins_at_0_or_above(value, drawn):
    found = area_interval(value, np.array(drawn), SURE)
    assert 0 <= found.low <= found.value <= found.high


def test_an_area_ends_at_the_most_that_is_possible():
    assert area_interval(0.5, np.array([0.1, 0.5, 0.9]), SURE, most=1.0).high == 1.0


def test_two_subjects_give_no_interval_beyond_what_the_metric_allows():
    """Student's t with one degree of freedom reaches beyond distances of 1, and to costs below 0."""
    means = {("wizards", "w1"): (1, 0.95, 0.9), ("wizards", "w2"): (0.9, 0.85, 0.8)}
    means |= {("phone", "c1"): (0.95, 0.7, 0.45), ("phone", "c2"): (0.85, 0.6, 0.35)}
    trials = [
        {"performer": who, "subject": subject, "wer": x, "completed": y, "n": 20}
        for (who, subject), heights in means.items()
        for x, y in zip((0, 0.5, 1), heights, strict=True)
    ]
    options = {"x": "wer", "y": "completed", "gold": "wizards", "fit": "linear", "checks": False}
    (found,) = demur.gold(trials, cost="100 * p", gain=(0.7, 0.8), **options)
    (near,), (cost,) = found.impurities, found.costs
    assert near.mean.high == near.mass.high == 1
    assert max(near.below.high, near.above.high) <= 1
    assert cost.average.low == 0


def test_an_area_that_never_moves_from_0_has_no_width():
    found = area_interval(0.0, np.zeros(7), SURE)
    assert (found.value, found.low, found.high) == (0, 0, 0)


def test_a_p_value_is_that_of_students_t():
    drawn = np.array([0.0, 1.0, 2.0])
    assert replicate_p(2.0, drawn, 7) == pytest.approx(2 * student_t.sf(2.0, 7))
    assert replicate_p(-2.0, drawn, 7) == replicate_p(2.0, drawn, 7)


def test_where_replicates_never_move_only_0_is_possible():
    assert replicate_p(0.0, np.zeros(5), 7) == 1
    assert replicate_p(0.1, np.full(5, 0.1), 7) == 0


def test_a_band_along_a_curve_is_wider_than_at_one_place():
    rng = np.random.default_rng(1)
    drawn = rng.normal(0, 0.1, (4000, 12))
    sure = ConfidenceLevel(0.95, 15)
    low, high = simultaneous_band(np.zeros(12), drawn, sure)
    pointwise = sure.critical * drawn.std(axis=0, ddof=1)
    assert (high > 1.2 * pointwise).all()
    assert low == pytest.approx(-high)


def test_a_band_along_a_curve_holds_it_as_often_as_asked():
    """With many degrees of freedom, another 4,000 curves of 12 independent places lie inside 95 % of the time."""
    rng = np.random.default_rng(2)
    low, high = simultaneous_band(np.zeros(12), rng.normal(size=(4000, 12)), ConfidenceLevel(0.95, 10**6))
    others = rng.normal(size=(4000, 12))
    inside = ((others >= low) & (others <= high)).all(axis=1).mean()
    assert inside == pytest.approx(0.95, abs=0.015)


def test_a_band_of_curves_that_move_as_one_is_that_of_one_place():
    moved = np.random.default_rng(3).normal(size=4000)
    low, high = simultaneous_band(np.zeros(5), np.repeat(moved[:, None], 5, axis=1), ConfidenceLevel(0.95, 10**6))
    assert high == pytest.approx(1.96, abs=0.08)
    assert low == pytest.approx(-high)


def test_curves_that_never_move_have_no_band():
    values = np.array([0.1, -0.2, 0.0])
    low, high = simultaneous_band(values, np.tile(values, (6, 1)), SURE)
    assert (low == values).all()
    assert (high == values).all()


def test_a_place_where_nothing_moves_has_no_width_beside_others_that_do():
    drawn = np.array([[0.0, 1.0], [0.0, -1.0], [0.0, 0.5]])
    low, high = simultaneous_band(np.zeros(2), drawn, SURE)
    assert low[0] == high[0] == 0
    assert low[1] < 0 < high[1]


@given(st.lists(st.sampled_from([(-2.0, -1.0), (1.0, 2.0), (-1.0, 1.0), (0.0, 0.0)]), min_size=2, max_size=12))
def test_stretches_are_those_of_a_plain_loop_and_cover_the_range(bands):
    x = np.cumsum(np.arange(1.0, len(bands) + 1))
    low, high = np.array(bands).T
    found = x_intervals(x, low, high, positive="positive", negative="negative")
    assert [(one.low, one.high, one.holds) for one in found] == runs(list(x), list(low), list(high))
    assert (found[0].low, found[-1].high) == (x[0], x[-1])
    assert all(one.high == other.low and one.holds != other.holds for one, other in pairwise(found))


def test_a_stretch_is_written_with_its_ends():
    assert XInterval(0.1, 0.4, "A").to_dict() == {"from": 0.1, "to": 0.4, "holds": "A"}
