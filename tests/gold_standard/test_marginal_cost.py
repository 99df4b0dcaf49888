"""Average marginal cost, by hand.

Gold falls from 1 to .8 and the system from 1 to .2 as x goes from 0 to 1: s = 1 - .8 x, and g - s = .6 x. With the
cost 100 p, the mean of 100 (1 - .8 x) .6 x is 60 (1/2 - .8/3) = 14. With 100 p^2 it is
60 (1/2 - 1.6/3 + .64/4) = 7.6. From .7 to .8 the system gains where x goes from .375 down to .25: there the mean of
100 p weighed so is 60 (.05625 - .0270833) / .125 = 14, and the mean of 100 (g - s) is 60 * .3125 = 18.75.
"""

import json
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.errors import DataError, UsageError
from demur.gold_standard.cost import cheaper_by, cost_points, marginal_cost, read_cost
from reference.gold import area, ground_of, handmade, interval

LINEAR = read_cost("100 * p", upper=1.0)
QUADRATIC = read_cost("100 * p ** 2", upper=1.0)
POINTS = cost_points([(0, 0), (1, 100)])
BENT = cost_points([(0, 0), (0.6, 0), (1, 100)])


def gold(**known):
    return handmade("gold", "linear", (1, 0.8), **known)


def system(**known):
    return handmade("A", "linear", (1, 0.2), **known)


def cost_of(cost, gain=None, best=None, other=None):
    best, other = best or gold(), other or system()
    return marginal_cost(best, other, cost, ground_of(best, other), gain)


@pytest.mark.parametrize(
    ("cost", "mean"), [(LINEAR, 14.0), (POINTS, 14.0), (QUADRATIC, 7.6), (BENT, 2.5)], ids=["line", "2", "square", "3"]
)
def test_the_average_by_hand(cost, mean):
    """With no amount up to .6 and 250 (p - .6) from there, only x below .5 counts: 150 (.05 - .8/24) = 2.5."""
    found = cost_of(cost)
    assert found.average.value == pytest.approx(mean, abs=1e-9)
    assert found.spans == ((0.0, 1.0),)
    assert found.gain is None


def test_a_gain_is_taken_where_the_systems_curve_lies_between():
    found = cost_of(LINEAR, (0.7, 0.8))
    ((start, end),) = found.spans
    assert (start, end) == pytest.approx((0.25, 0.375), abs=1e-9)
    assert found.average.value == pytest.approx(14, abs=1e-6)
    assert found.difference.value == pytest.approx(18.75, abs=1e-6)
    assert cost_of(QUADRATIC, (0.7, 0.8)).average.value == pytest.approx(
        60
        * (0.1015625 / 2 - 1.6 * (0.375**3 - 0.25**3) / 3 + 0.64 * (0.375**4 - 0.25**4) / 4 + 0.0390625 - 0.05078125)
        / 0.125,
        abs=1e-6,
    )


def test_the_other_reading_is_the_mean_difference_of_amounts():
    """100 (g - s) = 60 x is 30 on average; 100 (g^2 - s^2) = 100 (1.2 x - .6 x^2) is 40."""
    assert cost_of(LINEAR).difference.value == pytest.approx(30, abs=1e-9)
    assert cost_of(QUADRATIC).difference.value == pytest.approx(100 * (0.6 - 0.2), abs=1e-9)


def test_a_logistic_curve_beside_narrow_strips():
    best, other = handmade("gold", "logistic", (4, 1)), handmade("A", "logistic", (3, -4))

    def share(x, start, end):
        return 1 / (1 + np.exp(-(start + (end - start) * x)))

    found = cost_of(BENT, None, best, other)
    assert found.average.value == pytest.approx(
        area(lambda x: BENT(share(x, 3, -4)) * np.abs(share(x, 4, 1) - share(x, 3, -4)), 0, 1), abs=1e-6
    )
    inside = cost_of(QUADRATIC, (0.3, 0.6), best, other)
    ends = [(3 - np.log(p / (1 - p))) / 7 for p in (0.6, 0.3)]
    assert inside.spans[0] == pytest.approx(ends, abs=1e-9)
    strips = area(lambda x: QUADRATIC(share(x, 3, -4)) * np.abs(share(x, 4, 1) - share(x, 3, -4)), *ends)
    assert inside.average.value == pytest.approx(strips / (ends[1] - ends[0]), abs=1e-6)


def test_units_of_x_do_not_matter_to_an_average():
    wide = cost_of(LINEAR, (0.7, 0.8), gold(over=(20, 120)), system(over=(20, 120)))
    assert wide.average.value == pytest.approx(14, abs=1e-6)
    assert wide.spans[0] == pytest.approx((45, 57.5), abs=1e-6)


@cache
def plain_cost():
    return cost_of(BENT, (0.5, 0.9))


@given(factor=st.floats(0.01, 1000))
def test_dearer_by_a_factor_is_costlier_by_that_factor(factor):
    dearer = cost_points([(p, factor * amount) for p, amount in BENT.points])
    found = cost_of(dearer, (0.5, 0.9))
    plain = plain_cost()
    assert found.average.value == pytest.approx(factor * plain.average.value, rel=1e-9)
    assert found.difference.value == pytest.approx(factor * plain.difference.value, rel=1e-9)


def test_a_system_above_gold_counts_as_distance_in_one_reading_and_saves_in_the_other():
    found = cost_of(LINEAR, None, system(), handmade("A", "linear", (1, 0.8)))
    assert found.average.value == pytest.approx(100 * (0.3 - 0.2 * 0.6 / 3), abs=1e-9)
    assert found.difference.value == pytest.approx(-30, abs=1e-9)


def test_intervals_come_from_replicates():
    """Ends of .2, .3, .4 make the mean of 100 (1 - (1 - e) x) (.8 - e) x equal 100 (.8 - e) (1/2 - (1 - e) / 3)."""
    ends = (0.2, 0.3, 0.4)
    found = cost_of(LINEAR, None, gold(replicates=[(1, 0.8)] * 3), system(replicates=[(1, end) for end in ends]))
    drawn = [100 * (0.8 - end) * (1 / 2 - (1 - end) / 3) for end in ends]
    assert found.replicates == pytest.approx(drawn, abs=1e-6)
    assert (found.average.low, found.average.high) == pytest.approx(interval(14, drawn, 5), abs=1e-6)


def test_the_stretch_of_a_gain_moves_with_the_replicate():
    """With an end e, s = p at x = (1 - p) / (1 - e), so that the mean of 60 x moves with it."""
    ends = (0.2, 0.3)
    found = cost_of(LINEAR, (0.7, 0.8), gold(replicates=[(1, 0.8)] * 2), system(replicates=[(1, end) for end in ends]))
    means = []
    for end in ends:
        low, high = (0.2 / (1 - end), 0.3 / (1 - end))
        means.append(area(lambda x, end=end: 100 * (1 - (1 - end) * x) * (0.8 - end) * x, low, high) / (high - low))
    assert found.replicates == pytest.approx(means, rel=2e-3)


def test_replicates_that_never_come_between_leave_no_interval():
    beside = [(0.5, 0.2), (0.6, 0.2), (0.55, 0.1)]
    found = cost_of(LINEAR, (0.7, 0.8), gold(replicates=[(1, 0.8)] * 3), system(replicates=beside))
    assert found.average.value == pytest.approx(14, abs=1e-6)
    assert np.isnan(found.average.low)


def test_a_gain_that_the_curve_never_makes_is_undefined_and_says_why():
    found = cost_of(LINEAR, (0.05, 0.15))
    assert found.spans == ()
    assert found.average.why == "the curve of A nowhere lies between 0.05 and 0.15"
    assert found.to_dict()["value"] is None


def test_a_gain_goes_upwards():
    with pytest.raises(UsageError, match=r"a gain goes from one performance up to a higher one; got 0\.8 to 0\.7"):
        cost_of(LINEAR, (0.8, 0.7))


def test_a_cost_function_that_does_not_cover_the_curve_is_refused():
    short = cost_points([(0.5, 0), (1, 100)])
    with pytest.raises(DataError, match=r"covers 0\.5 to 1, but the curve of A go(es)? down to 0\.2"):
        cost_of(short)
    assert cost_of(short, (0.7, 0.8)).average.defined


def test_amounts_that_end_below_gold_leave_the_difference_undefined():
    found = cost_of(cost_points([(0.1, 0), (0.85, 100)]), (0.7, 0.8))
    assert found.average.defined
    assert found.difference.why == "the cost function does not cover the performance of the gold standard"


def test_the_cheaper_of_two_has_a_difference_with_an_interval():
    best = gold(replicates=[(1, 0.8)] * 3)
    near = handmade("B", "linear", (1, 0.7), replicates=[(1, 0.7)] * 3)
    far = system(replicates=[(1, 0.1), (1, 0.2), (1, 0.3)])
    dear, cheap = cost_of(LINEAR, None, best, far), cost_of(LINEAR, None, best, near)
    apart = cheaper_by(cheap, dear, best, near, far)
    assert apart.value == pytest.approx(dear.average.value - cheap.average.value)
    assert apart.high - apart.low == pytest.approx(dear.average.high - dear.average.low)


def test_a_cost_is_written_as_plain_values():
    told = json.loads(json.dumps(cost_of(LINEAR, (0.7, 0.8)).to_dict(), allow_nan=False))
    assert list(told) == ["system", "unit", "value", "low", "high", "average_cost_difference", "from", "to", "gain"]
    assert told["gain"] == [0.7, 0.8]
