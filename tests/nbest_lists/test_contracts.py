"""What must hold for every measure of N-best lists in the registry, present and future."""

from math import isnan

import narwhals as nw
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from demur.core.stats.measure import TermMeasure, parse_signature
from demur.errors import DataError, UsageError
from demur.nbest_lists.evaluate import NBestSettings, nbest_values
from demur.nbest_lists.exploded import ExplodedLists, explode
from demur.nbest_lists.measures import ICE_PARTS, KINDS, NBEST, OF_ACTS, OF_ITEMS
from demur.nbest_lists.table import nbest
from nbest_lists.nbest_logs import log, table

every_measure = pytest.mark.parametrize("name", sorted(NBEST))

ITEMS = st.sampled_from([[], ["a"], ["b"], ["a", "b"], ["a", "c"], ["b", "c", "d"]])
ONE = st.just(1.0)
MASSES = st.sampled_from([[], [1.0], [0.5], [0.25, 0.5], [0.5, 0.5], [0.125, 0.25, 0.5], [0.0, 0.75]])


@st.composite
def lists(draw, *, weights=ONE, smallest=1, largest=8):
    """Rows whose confidences are sums of powers of two, so that no order of adding moves a digit.

    The first holds an item: of lists without any there are no rows to measure.
    """

    def row(number):
        masses = draw(MASSES)
        return {
            "id": f"u{number}",
            "dialogue": f"d{number // 2}",
            "weight": draw(weights),
            "reference": draw(ITEMS) if number else ["a"],
            "hypotheses": [{"items": draw(ITEMS), "confidence": mass} for mass in masses],
        }

    return [row(number) for number in range(draw(st.integers(smallest, largest)))]


def frames(rows):
    """The rows that each measure reads."""
    found = explode(nbest(rows))
    return {name: found.acts if name in OF_ACTS else found.items for name in NBEST}


def scores(rows):
    return {name: NBEST[name](frame) for name, frame in frames(rows).items()}


def score(name, rows):
    return NBEST[name](frames(rows)[name])


def close(value):
    return pytest.approx(value, rel=1e-9, abs=1e-9, nan_ok=True)


def test_a_key_names_one_measure():
    assert len(NBEST) == len(OF_ACTS) + len(OF_ITEMS) + len(ICE_PARTS)


@every_measure
def test_a_measure_says_what_it_is(name):
    measure = NBEST[name]
    assert measure.name
    assert measure.title
    assert measure.better in ("lower", "higher")
    assert measure.reference
    assert type(measure).__doc__.strip().splitlines()[0].endswith(".")
    assert KINDS[type(measure).__name__] is type(measure)


@every_measure
def test_a_measures_docstring_has_an_example(name):
    assert ">>> " in type(NBEST[name]).__doc__


@every_measure
def test_a_measures_docstring_says_which_way_is_better(name):
    measure = NBEST[name]
    assert f"{measure.better} is better" in type(measure).__doc__.lower()


def test_terms_are_the_same_in_polars_own_expressions_and_in_those_for_any_engine():
    for name, frame in frames(log(20, seed=1)).items():
        if isinstance(NBEST[name], TermMeasure):
            generic = nw.from_native(frame).select(**NBEST[name].terms()).to_native()
            assert_frame_equal(frame.select(**NBEST[name].terms(pl)), generic, check_exact=True)


def perfect(row):
    return {**row, "hypotheses": [{"items": row["reference"], "confidence": 1.0}]}


BASE = ("uncertainty", "discrimination")
"""What depends on the population, so that perfect lists are no landmark of it."""


@pytest.mark.parametrize("name", sorted(set(NBEST) - set(BASE)))
def test_perfect_lists_are_at_the_better_end(name):
    rows = [{"reference": items, "hypotheses": []} for items in (["a"], ["b", "c"], ["a", "d"])]
    ideal = score(name, [perfect(row) for row in rows])
    if name in ("nce", "nce_top", "act_nce"):
        assert ideal.why == "every answer is right, or none is"
    else:
        assert ideal.value == close(1.0 if NBEST[name].better == "higher" else 0.0)


@pytest.mark.parametrize("name", sorted(set(NBEST) - set(BASE)))
def test_a_better_list_is_on_the_better_side(name):
    def said(confidence):
        right = {"items": ["a", "b"], "confidence": confidence}
        wrong = {"items": ["c"], "confidence": 1 - confidence}
        missed = {"reference": ["d"], "hypotheses": [] if confidence < 0.5 else [{"items": ["d"], "confidence": 0.9}]}
        return score(name, [{"reference": ["a", "b"], "hypotheses": [right, wrong]}, missed]).value

    worse, better = said(0.2), said(0.9)
    if name == "nce_top":  # the items at the top are all wrong, then all right
        assert (isnan(worse), isnan(better)) == (True, True)
    else:
        assert (better > worse) == (NBEST[name].better == "higher")


@given(lists(), st.randoms(use_true_random=False))
def test_the_order_of_utterances_does_not_matter(rows, random):
    mixed = scores(random.sample(rows, len(rows)))
    for name, one in scores(rows).items():
        two = mixed[name]
        assert one.value == two.value or (isnan(one.value) and isnan(two.value)), name
        assert one.signature == two.signature


def test_the_order_of_weighted_rows_moves_no_more_than_the_last_digits():
    for name, frame in frames(log(200, seed=5, weighted=True)).items():
        one, two = (NBEST[name](part) for part in (frame, frame.reverse()))
        assert one.value == pytest.approx(two.value, rel=1e-12, nan_ok=True), name
        assert one.signature == two.signature


@given(lists(), lists())
def test_parts_add_up_to_the_whole(one, two):
    moved = [{**row, "id": f"v{row['id']}"} for row in two]
    first, second = scores(one), scores(moved)
    for name, whole in scores(one + moved).items():
        added = first[name] + second[name]
        assert added.value == close(whole.value), name
        assert added.n == whole.n, name
        if not isinstance(NBEST[name], TermMeasure):
            assert added == whole


@given(lists(weights=st.sampled_from([1.0, 1.0, 2.0, 3.0])))
def test_whole_weights_equal_repetition(rows):
    repeated = scores(
        [{**row, "id": f"{row['id']}.{time}", "weight": 1.0} for row in rows for time in range(int(row["weight"]))]
    )
    for name, one in scores(rows).items():
        assert one.value == close(repeated[name].value), name


def test_a_common_factor_of_the_weights_does_not_matter():
    rows = log(60, seed=6, weighted=True)
    scaled = scores([{**row, "weight": row["weight"] / 8} for row in rows])
    for name, one in scores(rows).items():
        assert one.value == close(scaled[name].value), name


@every_measure
def test_a_frame_without_rows_is_refused(name):
    with pytest.raises(DataError, match="at least one row; the table is empty"):
        NBEST[name](frames(log(5, seed=0))[name].clear())


@given(lists())
def test_a_signature_parses_back(rows):
    for name, given_by in scores(rows).items():
        read = parse_signature(given_by.signature, KINDS)
        assert (read.measure, read.n, read.data) == (NBEST[name], given_by.n, given_by.data)


@given(lists())
def test_an_undefined_value_has_a_reason_and_a_defined_one_has_none(rows):
    for name, given_by in scores(rows).items():
        assert isnan(given_by.value) == bool(given_by.why), name
        assert (given_by.to_dict()["value"] is None) == isnan(given_by.value), name


@given(lists(smallest=2), st.integers(0, 1000))
def test_replicates_read_together_are_replicates_read_one_by_one(rows, seed):
    found = ExplodedLists.of(nbest(rows))
    units, sweep = found.totals(OF_ACTS, OF_ITEMS), found.items.sweep()
    drawn = np.random.default_rng(seed).integers(0, 3, size=(4, units.units)) @ units.table
    for name, measure in NBEST.items():
        if name in ICE_PARTS:
            together = measure.finish(_several(sweep, [1, 2, 3]))
            alone = [measure.finish(_several(sweep, [times])).item() for times in (1, 2, 3)]
        else:
            together = units.values(name, drawn)
            alone = [float(units.values(name, one)) for one in drawn]
        assert together.tolist() == close(alone), name


def _several(sweep, times):
    factor = np.array(times, dtype=np.float64)
    return type(sweep)(
        sweep.threshold.copy(), np.outer(factor, sweep.right), np.outer(factor, sweep.wrong), factor * sweep.withheld, 1
    )


@given(lists(largest=12))
def test_the_parts_of_the_ice_add_up_to_it(rows):
    values = nbest_values(nbest(rows))
    parts = {key: values[f"ice_{key}"] for key in ICE_PARTS}
    total = parts["missing"] + parts["miscalibration"] - parts["discrimination"] + parts["uncertainty"]
    assert total == pytest.approx(values["ice"], rel=1e-12, abs=1e-12, nan_ok=True)


@given(lists(largest=12, weights=st.sampled_from([1.0, 0.5, 2.0])))
def test_all_values_at_once_are_those_of_the_measures_one_by_one(rows):
    values, found = nbest_values(nbest(rows)), explode(nbest(rows))
    for name, measure in {**OF_ACTS, **OF_ITEMS}.items():
        frame = found.acts if name in OF_ACTS else found.items
        assert values[name] == close(measure(frame).value), name
    for name, measure in ICE_PARTS.items():
        assert values[f"ice_{name}"] == close(measure(found.items).value), name


def test_values_depend_on_the_floor_only_where_it_is_said_to_count():
    lists_of_a_log = table(log(100, seed=7))
    usual, others = (nbest_values(lists_of_a_log, NBestSettings(floor=floor)) for floor in (1e-3, "paper"))
    moved = {key for key in usual if usual[key] != others[key]}
    assert moved >= {"ice", "ace", "ice_missing"}
    of_nce = {"nce", "nce_top", "act_nce"}
    assert moved <= {"ice", "ace", "ice_floored_share", *of_nce, *(f"ice_{part}" for part in ICE_PARTS)}
    clipped = nbest_values(lists_of_a_log, NBestSettings(clip=0.2))
    assert {key for key in usual if usual[key] != clipped[key]} <= of_nce


@pytest.mark.parametrize("kind", ["ICE", "ACE", "FlooredShare", "Missing", "Miscalibration"])
@pytest.mark.parametrize("floor", [0.0, 0.5, -1.0, float("nan")])
def test_a_floor_that_is_none_is_refused(kind, floor):
    with pytest.raises(UsageError, match=r"the floor of a probability must lie between 0 and 0\.5; got"):
        KINDS[kind](floor=floor)
