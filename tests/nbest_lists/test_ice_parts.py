from math import isnan, log, nan

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from demur.core.stats.calibration_maps import recalibrated
from demur.core.stats.sweep import Sweep
from demur.errors import UsageError
from demur.nbest_lists.exploded import ExplodedLists
from demur.nbest_lists.measures import ICE, ICE_PARTS, Discrimination, Miscalibration, Missing, Uncertainty, item_cost
from demur.nbest_lists.table import nbest
from reference import nbest as plain
from reference.nbest import Utterance, rough_lists, tables

KINDS = (Missing, Miscalibration, Discrimination, Uncertainty)
LEVELS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=12)


def taken(table):
    return ExplodedLists.of(nbest(plain.rows_of(table)))


def parts(table, floor=1e-3):
    sweep = taken(table).items.sweep()
    return {kind.name: float(kind(floor).finish(sweep)) for kind in KINDS}


def ice(table, floor=1e-3):
    return ICE(floor)(taken(table).rows.items).value


@given(tables(), st.sampled_from([1e-6, 1e-3, 0.05, 0.3]))
def test_the_parts_agree_with_their_plain_twins(table, floor):
    assume(plain.reference_items(table))
    assert parts(table, floor) == pytest.approx(plain.ice_parts(table, floor), rel=1e-9, abs=1e-11)


@given(tables(rough_lists()), st.sampled_from([1e-9, 1e-3, 0.05, 0.3]))
def test_the_parts_make_up_the_ice(table, floor):
    assume(plain.reference_items(table))
    found, whole = parts(table, floor), ice(table, floor)
    made = found["missing"] + found["miscalibration"] - found["discrimination"] + found["uncertainty"]
    assert made == pytest.approx(whole, rel=1e-12, abs=1e-12)


@given(tables(rough_lists()))
def test_no_part_is_negative_where_the_floor_does_not_bind(table):
    assume(plain.reference_items(table))
    for part in parts(table, 1e-12).values():
        assert part >= -1e-9


def test_a_hand_worked_split():
    """Items .8 right, .4 wrong, .4 right, .2 wrong and one missed: three meant. PAV: 0, 1/2, 1. Overall: 2 of 4."""
    table = [Utterance(["a", "b"], [(["a"], 0.8), (["c"], 0.2)]), Utterance(["a"], [(["a"], 0.4), (["b"], 0.4)])]
    found = parts(table)
    given_cost = -(log(0.8) + log(0.6) + log(0.4) + log(0.8))
    fitted_cost = -2 * log(0.5)
    assert found["missing"] == pytest.approx(-log(1e-3) / 3)
    assert found["miscalibration"] == pytest.approx((given_cost - fitted_cost) / 3)
    assert found["uncertainty"] == pytest.approx(-4 * log(0.5) / 3)
    assert found["discrimination"] == pytest.approx((-4 * log(0.5) - fitted_cost) / 3)
    assert ice(table) == pytest.approx((given_cost - log(1e-3)) / 3)


def test_missing_items_stay_out_of_the_recalibration():
    """Calibrated items and any number of missed ones: miscalibration is 0 all the same."""
    table = [Utterance(["a"], [(["a"], 0.5), (["b"], 0.5)])]
    more = table + [Utterance(["x", "y"], []) for _ in range(5)]
    assert parts(table)["miscalibration"] == pytest.approx(0)
    assert parts(more)["miscalibration"] == pytest.approx(0)
    assert parts(more)["missing"] == pytest.approx(-10 * log(1e-3) / 11)


def test_perfect_lists_have_no_parts():
    assert parts([Utterance(["a"], [(["a"], 1.0)])]) == dict.fromkeys(ICE_PARTS, 0.0)


def test_where_nothing_is_hypothesised_all_is_missing():
    found = parts([Utterance(["a"], []), Utterance("bye()", [])])
    assert found == pytest.approx({"missing": -log(1e-3), "miscalibration": 0, "discrimination": 0, "uncertainty": 0})


def test_where_nothing_is_meant_the_parts_are_undefined():
    sweep = taken([Utterance([], [(["a"], 0.5)])]).items.sweep()
    for kind in KINDS:
        assert isnan(float(kind().finish(sweep)))
        assert kind().why_undefined(sweep) == "no reference holds any item"


def test_wrong_items_of_no_confidence_are_not_missed():
    table = [Utterance(["a"], [(["a"], 1.0), (["junk"], 0.0)])]
    assert parts(table)["missing"] == 0


@given(tables(rough_lists()), st.floats(0.3, 3))
def test_discrimination_and_uncertainty_depend_on_the_order_of_confidences_alone(table, power):
    """A rising transformation moves the miscalibration only."""
    items = taken(table).rows.items
    assume(items["answered"].any() and items["right"].any())
    held = items.filter("answered")
    before = Sweep.of(held["confidence"].to_numpy(), held["right"].to_numpy())
    stretched = held["confidence"].to_numpy() ** power
    assume(np.unique(stretched).size == before.threshold.size)
    after = Sweep.of(stretched, held["right"].to_numpy())
    for kind in (Discrimination, Uncertainty):
        assert kind().finish(after) == pytest.approx(kind().finish(before), nan_ok=True)


@given(LEVELS)
def test_pooling_agrees_with_its_plain_twin(levels):
    right, wrong = (np.array(part, dtype=float) for part in zip(*levels, strict=True))
    held = right + wrong > 0
    expected = plain.pooled([(r, r + w) for r, w in levels if r + w])
    assert recalibrated(right, wrong)[held].tolist() == pytest.approx(expected)


@given(LEVELS)
def test_pooling_agrees_with_scikit_learn(levels):
    isotonic = pytest.importorskip("sklearn.isotonic", reason="scikit-learn comes with the demo extra")
    right, wrong = (np.array(part, dtype=float) for part in zip(*levels, strict=True))
    held = right + wrong > 0
    assume(held.any())
    weight = (right + wrong)[held]
    peer = isotonic.IsotonicRegression(y_min=0, y_max=1)
    expected = peer.fit_transform(np.flatnonzero(held), right[held] / weight, sample_weight=weight)
    assert recalibrated(right, wrong)[held] == pytest.approx(expected, abs=1e-9)


@given(LEVELS)
def test_pooled_shares_rise_and_keep_the_number_right(levels):
    right, wrong = (np.array(part, dtype=float) for part in zip(*levels, strict=True))
    held = right + wrong > 0
    fitted = recalibrated(right, wrong)
    assert (np.diff(fitted[held]) >= -1e-12).all()
    assert (fitted * (right + wrong)).sum() == pytest.approx(right.sum())


def test_replicates_are_read_at_once():
    confidence = np.array([0.2, 0.6])
    right, wrong = np.array([[0, 2], [1, 0], [0, 0]]), np.array([[1, 0], [1, 1], [0, 0]])
    stacked = Sweep(confidence, right, wrong, np.array([1.0, 0.0, 2.0]), 3)
    for kind in KINDS:
        found = kind().finish(stacked)
        apart = [
            kind().finish(Sweep(confidence, right[k], wrong[k], float(stacked.withheld[k]), 3)).item() for k in range(3)
        ]
        assert found.tolist() == pytest.approx(apart, nan_ok=True)


def test_what_items_cost_by_hand():
    """Three at .8 of which two are right: -(2 log .8 + log .2)."""
    assert item_cost(0.8, 2, 1, 1e-3) == pytest.approx(-(2 * log(0.8) + log(0.2)))
    assert item_cost(0.0, 1, 0, 1e-3) == pytest.approx(-log(1e-3))
    assert item_cost(1.0, 3, 0, 1e-3) == 0


@pytest.mark.parametrize("floor", [0, 0.5, -1, nan])
@pytest.mark.parametrize("kind", KINDS)
def test_a_floor_outside_its_range_is_refused(kind, floor):
    with pytest.raises(UsageError, match=r"floor of a probability must lie between 0 and 0\.5"):
        kind(floor)
