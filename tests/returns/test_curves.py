import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.core.stats.sweep import Sweep
from demur.returns.curves import AXES, curve, error_return, thinned
from reference import returns as plain
from reference.rows import SCORES, arrays, tables

WEIGHTS = st.sampled_from([1, 1, 2, 0.5])
WORKED = Sweep.of([0.1, 0.2, 0.2, 0.5, 0.9], [False, True, False, True, True], withheld=5)


def floats(values):
    return [float(value) for value in values]


@given(tables(SCORES, weights=WEIGHTS))
def test_every_rate_at_every_cutoff_is_the_plain_count(rows):
    found = error_return(arrays(rows).sweep())
    cutoffs = plain.thresholds(rows)
    assert found.threshold[:-1].tolist() == cutoffs[:-1]
    assert np.isnan(found.threshold[-1])
    for name in ("nonreturn", "error", "missed_chance", "accuracy"):
        expected = floats(getattr(plain, name)(rows, cutoff) for cutoff in cutoffs)
        assert getattr(found, name) == pytest.approx(expected, abs=1e-12), name


@given(tables(SCORES, weights=WEIGHTS))
def test_nonreturn_error_and_accuracy_add_up_to_1(rows):
    found = error_return(arrays(rows).sweep())
    right = float(sum(row.weight for row in rows if row.right) / plain.weight_of(rows))
    assert found.nonreturn + found.error + found.accuracy == pytest.approx(np.ones(found.error.size))
    assert found.accuracy + found.missed_chance == pytest.approx(np.full(found.error.size, right))


@given(tables(SCORES, weights=WEIGHTS))
def test_the_curve_falls_by_at_most_what_is_withheld_and_ends_at_1_0(rows):
    found = error_return(arrays(rows).sweep())
    fall, widened = -np.diff(found.error), np.diff(found.nonreturn)
    assert (fall >= 0).all()
    assert (fall <= widened + 1e-12).all()
    assert (found.nonreturn[-1], found.error[-1]) == (1, 0)
    assert found.floor == pytest.approx(float(plain.curve(rows)[0][0]))


@given(tables(SCORES), st.floats(0, 1))
def test_between_cutoffs_the_curve_is_straight(rows, x):
    found = error_return(arrays(rows).sweep())
    assert float(found.error_at(x)) == pytest.approx(float(plain.height(plain.curve(rows), x)), abs=1e-12)


def test_a_worked_curve_with_a_floor_and_a_tie():
    found = error_return(WORKED, name="guide")
    assert found.floor == 0.5
    assert found.nonreturn == pytest.approx([0.5, 0.6, 0.8, 0.9, 1])
    assert found.error == pytest.approx([0.2, 0.1, 0, 0, 0])
    assert found.missed_chance == pytest.approx([0, 0, 0.1, 0.2, 0.3])
    assert found.even_point() == pytest.approx((0.7, 0.05))


@given(tables(SCORES, weights=WEIGHTS))
def test_at_the_even_point_errors_and_missed_chances_are_alike(rows):
    found = error_return(arrays(rows).sweep())
    x, rate = found.even_point()
    assert found.floor <= x <= 1
    missed = np.interp(x, found.nonreturn, found.missed_chance)
    assert rate == pytest.approx(float(found.error_at(x)), abs=1e-12)
    assert rate == pytest.approx(float(missed), abs=1e-9)


def test_the_oracle_falls_with_slope_1_and_the_random_ranking_in_a_line():
    found = error_return(WORKED)
    assert [part.tolist() for part in found.random()] == [[0.5, 1.0], [0.2, 0.0]]
    x, y = found.oracle()
    assert (x.tolist(), y.tolist()) == (pytest.approx([0.5, 0.7, 1]), [0.2, 0, 0])


@given(tables(SCORES, withheld=False))
def test_no_curve_lies_below_the_oracle(rows):
    found = error_return(arrays(rows).sweep())
    assert (found.error >= np.interp(found.nonreturn, *found.oracle()) - 1e-12).all()


@pytest.mark.parametrize("kind", ["roc", "det"])
def test_errors_spread_uniformly_give_one_roc_at_any_error_rate(kind):
    """At every level the same share is wrong: 10, 40, 50 or 90 percent, and the ROC is the same line."""
    curves = []
    for wrong in (1, 4, 5, 9):
        confidence = np.repeat(np.arange(5) / 5, 10)
        right = np.tile(np.arange(10) >= wrong, 5)
        curves.append(curve(Sweep.of(confidence, right), kind))
    for other in curves[1:]:
        assert other.x == pytest.approx(curves[0].x)
        assert other.y == pytest.approx(curves[0].y)
    starts = [1, 0.8, 0.6, 0.4, 0.2, 0]
    assert curves[0].x == pytest.approx(starts)
    assert curves[0].y == pytest.approx(starts if kind == "roc" else [0, 0.2, 0.4, 0.6, 0.8, 1])


@given(tables(SCORES))
def test_roc_and_det_are_shares_of_the_errors_and_of_the_right(rows):
    sweep = arrays(rows).sweep()
    roc, det = curve(sweep, "roc"), curve(sweep, "det")
    wrong, right = plain.error(rows, plain.thresholds(rows)[0]), plain.accuracy(rows, plain.thresholds(rows)[0])
    for place, cutoff in enumerate(plain.thresholds(rows)):
        x = float(plain.error(rows, cutoff) / wrong) if wrong else np.nan
        y = float(plain.accuracy(rows, cutoff) / right) if right else np.nan
        assert roc.x[place] == pytest.approx(x, nan_ok=True)
        assert roc.y[place] == pytest.approx(y, nan_ok=True)
        assert det.y[place] == pytest.approx(1 - y, nan_ok=True)


def test_selective_risk_is_undefined_where_nothing_is_returned():
    found = curve(Sweep.of([0.1, 0.9], [False, True]), "risk_coverage")
    assert found.x.tolist() == [1, 0.5, 0]
    assert found.y[:2].tolist() == [0.5, 0]
    assert np.isnan(found.y[2])
    frame = error_return(Sweep.of([0.1, 0.9], [False, True])).frame()
    assert frame["selective_risk"].is_nan().to_list() == [False, False, True]


def test_where_errors_fall_missed_chances_are_level_and_the_other_way_round():
    found = curve(Sweep.of([0.1, 0.2, 0.3, 0.4], [False, True, False, True]), "missed_chance")
    assert found.y.tolist() == [0, 0, 0.25, 0.25, 0.5]


@pytest.mark.parametrize("kind", sorted(AXES))
def test_a_curve_has_a_table_and_strict_json(kind):
    found = curve(WORKED, kind, name="guide")
    frame = found.frame()
    assert frame.columns == ["system", "threshold", *AXES[kind]]
    shown = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert shown["system"] == "guide"
    assert shown["threshold"][-1] is None
    assert len(shown[AXES[kind][0]]) == frame.height


def test_the_json_of_a_curve_has_no_nan():
    shown = json.loads(json.dumps(error_return(WORKED).to_dict(), allow_nan=False))
    assert shown["n"] == 10
    assert shown["selective_risk"][-1] is None


def test_the_json_of_a_curve_with_infinite_confidences_is_json():
    sweep = Sweep.of([-np.inf, 0.0, np.inf], [False, True, True])
    json.dumps(error_return(sweep).to_dict(), allow_nan=False)


def test_the_counts_in_the_table_are_those_of_the_sweep():
    frame = error_return(WORKED).frame()
    assert frame["returned"].to_list() == pytest.approx([5, 4, 2, 1, 0])
    assert frame["wrong_returned"].to_list() == pytest.approx([2, 1, 0, 0, 0])


def test_a_system_that_only_withholds_is_the_point_1_0():
    found = error_return(Sweep.of([], [], withheld=3))
    assert (found.nonreturn.tolist(), found.error.tolist(), found.floor) == ([1], [0], 1)
    assert found.even_point() == (1, 0)
    assert found.frame().height == 1


@given(st.integers(0, 10_000), st.integers(10, 200), st.floats(0.05, 0.95))
def test_a_thinned_curve_is_small_and_looks_the_same(seed, points, share):
    rng = np.random.default_rng(seed)
    sweep = Sweep.of(rng.random(3000), rng.random(3000) < share)
    found = error_return(sweep)
    kept = thinned(found.nonreturn, found.error, points=points)
    assert kept.size <= 1.1 * points + 4
    drawn = np.interp(found.nonreturn, found.nonreturn[kept], found.error[kept])
    assert np.abs(drawn - found.error).max() <= 2 / points + 1e-9
    assert {0, found.error.size - 1} <= set(kept.tolist())


def test_a_risk_curve_that_swings_about_one_height_is_thinned_too():
    sweep = Sweep.of(np.arange(20_000), np.arange(20_000) % 2 == 0)
    assert curve(sweep, "risk_coverage").frame(points=200).height < 2000


def test_a_thinned_curve_keeps_thresholds_and_rates_together():
    sweep = Sweep.of(np.arange(5000) / 5000, np.arange(5000) % 3 > 0)
    frame = error_return(sweep).frame(points=100)
    for cutoff, x in frame.select("threshold", "nonreturn").rows()[:-1]:
        assert x == pytest.approx(round(cutoff * 5000) / 5000)


@pytest.mark.parametrize("kind", sorted(AXES))
@pytest.mark.parametrize("right", [True, False])
def test_curves_without_errors_or_without_anything_right_can_be_thinned(kind, right):
    frame = curve(Sweep.of(np.arange(300), [right] * 300), kind).frame(points=20)
    assert frame.height > 1


def test_two_curves_of_ten_cross_at_13_thirtieths():
    one = Sweep.of([0.1, 0.2, 0.3] + [0.5] * 4 + [0.7, 0.8, 0.9], [True] * 3 + [False] * 3 + [True] * 4)
    two = Sweep.of(np.arange(10), [True] * 7 + [False, False, True])
    x = float(Fraction(13, 30))
    assert float(error_return(one).error_at(x)) == pytest.approx(0.2)
    assert float(error_return(two).error_at(x)) == pytest.approx(0.2)
    assert float(error_return(one).error_at(x - 0.01)) > 0.2
    assert float(error_return(one).error_at(x + 0.01)) < 0.2
