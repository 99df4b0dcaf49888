"""Which system is nearer the gold standard: curves whose crossings are known."""

import json

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from demur.gold_standard.impurity import compare_pair, impurity
from reference.gold import ground_of, handmade, interval

SHARE = st.floats(0.02, 0.98)


def held(gold, a, b):
    x_range = ground_of(gold, a, b)
    return compare_pair(gold, a, b, (impurity(gold, a, x_range), impurity(gold, b, x_range)), x_range)


def wobbling(ends, by):
    """Replicates that lift and lower a line by this much, in turn."""
    return [(ends[0] + step * by, ends[1] + step * by) for step in (-1, 0, 1)]


STILL = [(1.0, 1.0)] * 3


def test_two_lines_that_cross_by_hand():
    """Gold is 1; A loses x, B loses .2 + .5 x: equal at x = .4. Masses .5 and .45."""
    found = held(
        handmade("gold", "linear", (1, 1)), handmade("A", "linear", (1, 0)), handmade("B", "linear", (0.8, 0.3))
    )
    (crossing,) = found.crossings
    assert crossing.x == pytest.approx(0.4, abs=1e-9)
    assert crossing.shown
    assert [one.holds for one in found.ranges if one.holds != "undecided"] == ["A", "B"]
    assert found.mass_difference.value == pytest.approx(0.05, abs=1e-9)
    assert found.p == 0


def test_doubt_about_a_curve_leaves_a_stretch_around_the_crossing_undecided():
    """B moves by .05 either way: A leads by .2 - .5 x, so the stretch in doubt is even around .4."""
    by = 0.02
    gold = handmade("gold", "linear", (1, 1), replicates=STILL)
    a = handmade("A", "linear", (1, 0), replicates=[(1, 0)] * 3)
    b = handmade("B", "linear", (0.8, 0.3), replicates=wobbling((0.8, 0.3), by))
    found = held(gold, a, b)
    assert [one.holds for one in found.ranges] == ["A", "undecided", "B"]
    (crossing,) = found.crossings
    assert (crossing.low + crossing.high) / 2 == pytest.approx(0.4, abs=0.01)
    assert (crossing.low, crossing.high) == (found.ranges[1].low, found.ranges[1].high)
    assert crossing.shown
    reach = interval(0, [-by, 0, by], 5)[1]
    assert (crossing.high - crossing.low) / 2 == pytest.approx(reach / 0.5, abs=0.01)


def test_a_crossing_whose_sides_are_not_decided_is_not_shown():
    gold = handmade("gold", "linear", (1, 1), replicates=STILL)
    a = handmade("A", "linear", (1, 0), replicates=[(1, 0)] * 3)
    found = held(gold, a, handmade("B", "linear", (0.8, 0.3), replicates=wobbling((0.8, 0.3), 0.5)))
    assert [one.holds for one in found.ranges] == ["undecided"]
    assert [one.shown for one in found.crossings] == [False]
    assert found.p > 0.05


def test_a_crossing_decided_on_one_side_only_is_not_shown():
    """A's lead is .2 at most and B's .3, so that doubt of .25 hides only the first."""
    by = 0.25 / interval(0, [-1, 0, 1], 5)[1]
    gold = handmade("gold", "linear", (1, 1), replicates=STILL)
    a = handmade("A", "linear", (1, 0), replicates=[(1, 0)] * 3)
    found = held(gold, a, handmade("B", "linear", (0.8, 0.3), replicates=wobbling((0.8, 0.3), by)))
    assert [one.holds for one in found.ranges] == ["undecided", "B"]
    assert [one.shown for one in found.crossings] == [False]


def test_the_distance_counts_and_not_the_performance():
    """A is above gold by .3, B below it by .1: A performs better, and B is nearer."""
    found = held(
        handmade("gold", "linear", (0.6, 0.6)), handmade("A", "linear", (0.9, 0.9)), handmade("B", "linear", (0.5, 0.5))
    )
    assert [one.holds for one in found.ranges] == ["B"]
    assert found.crossings == ()


def test_systems_of_one_curve_are_told_apart_nowhere():
    ends = (0.9, 0.2)
    found = held(handmade("gold", "linear", (1, 1)), handmade("A", "linear", ends), handmade("B", "linear", ends))
    assert [one.holds for one in found.ranges] == ["undecided"]
    assert found.crossings == ()
    assert (found.mass_difference.value, found.p) == (0, 1)


@settings(max_examples=settings.default.max_examples // 2)
@given(gold=st.tuples(SHARE, SHARE), a=st.tuples(SHARE, SHARE), b=st.tuples(SHARE, SHARE), by=st.floats(0, 0.1))
def test_exchanging_the_systems_mirrors_the_verdict(gold, a, b, by):
    assume(abs(a[0] - b[0]) > 1e-6)
    best = handmade("gold", "linear", gold, replicates=[gold] * 3)
    one = handmade("A", "linear", a, replicates=wobbling(a, by))
    other = handmade("B", "linear", b, replicates=[b] * 3)
    there, back = held(best, one, other), held(best, other, one)
    assert there.ranges == back.ranges
    assert [c.x for c in there.crossings] == pytest.approx([c.x for c in back.crossings], abs=1e-9)
    assert there.difference == pytest.approx(-back.difference)
    assert there.mass_difference.value == -back.mass_difference.value
    assert (there.mass_difference.low, there.mass_difference.high) == pytest.approx(
        (-back.mass_difference.high, -back.mass_difference.low)
    )
    assert there.p == pytest.approx(back.p)


@given(a=st.tuples(SHARE, SHARE), b=st.tuples(SHARE, SHARE))
def test_crossings_lie_where_the_distances_are_equal(a, b):
    found = held(handmade("gold", "logistic", (3, 1)), handmade("A", "linear", a), handmade("B", "linear", b))
    x = np.array([one.x for one in found.crossings])
    gold = 1 / (1 + np.exp(-(3 - 2 * x)))
    lines = [np.abs(gold - (one[0] + (one[1] - one[0]) * x)) for one in (a, b)]
    assert lines[0] == pytest.approx(lines[1], abs=1e-7)


def test_a_verdict_is_written_as_plain_values():
    found = held(
        handmade("gold", "linear", (1, 1)), handmade("A", "linear", (1, 0)), handmade("B", "linear", (0.8, 0.3))
    )
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert list(told) == ["a", "b", "ranges", "crossings", "mass_difference"]
    assert {"from", "to", "nearer"} == set(told["ranges"][0])
    assert {"x", "low", "high", "shown"} == set(told["crossings"][0])
    assert {"value", "low", "high", "p"} == set(told["mass_difference"])
