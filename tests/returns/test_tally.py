import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from demur.core.stats.calibration import ECE, Brier, cell_totals
from demur.core.stats.resampling import Rows
from demur.core.stats.sweep import Sweep
from demur.errors import DataError
from demur.returns.curves import error_return
from demur.returns.measures import RETURNS, term_measures
from demur.returns.tally import UNITS, ConfidenceGrid, Tally, dialogues_in, joined_sweep, summed_units, total
from reference.rows import SCORES, arrays, tables
from reference.tallies import hashed, tally_of

HALVES = st.sampled_from([1, 0.5, 2, 3.25])
LEAST = ([9, 7, 3, None], [4, 8, 5, None])


def part_of(rows, chosen):
    return Rows(*(part[chosen] for part in (rows.confidence, rows.right, rows.answered, rows.weight)))


def parts_of(rows, parts):
    """The rows dealt out to parts, in which no part is left out that would be empty."""
    dealt = np.arange(rows.weight.size) % parts
    return [np.flatnonzero(dealt == part) for part in range(min(parts, rows.weight.size))]


def test_a_tally_counts_what_its_sweep_and_its_weights_say():
    rows = Rows(np.array([0.9, 0.4, 0.0]), np.array([True, False, False]), np.array([True, True, False]), np.ones(3))
    tally = tally_of(rows, [5, 5, 9], least=[7, 3, 8])
    assert (tally.n, tally.withheld, tally.buckets, tally.effective_n) == (3, 1, 2, 3)
    assert tally.units.rows() == [(5, 0.4, 0, 1, 0, 3), (5, 0.9, 1, 0, 0, 3), (9, None, 0, 0, 1, 8)]
    assert tally_of(rows).buckets == 0


def test_failures_are_no_abstentions():
    tally = Tally("guide", None, Sweep.of([0.5], [True], withheld=3), 2, 3, 0, squares=4.0)
    assert (tally.failed, tally.withheld) == (2, 1)


def test_the_effective_number_of_rows_is_that_of_kish():
    rows = Rows(np.ones(3), np.ones(3, bool), np.ones(3, bool), np.array([1.0, 1.0, 2.0]))
    assert tally_of(rows, [0, 1, 2]).effective_n == pytest.approx(16 / 6)


@given(tables(SCORES, weights=HALVES, largest=25), st.integers(1, 4))
def test_tallies_of_parts_add_up_to_the_tally_of_the_whole(rows, parts):
    held = arrays(rows)
    if held.weight.sum() == 0:
        return
    bucket = np.arange(held.weight.size) * 7 % 5
    whole = tally_of(held, bucket)
    added = total([tally_of(part_of(held, chosen), bucket[chosen]) for chosen in parts_of(held, parts)])
    assert added.sweep == whole.sweep
    assert added.sweep.digest() == whole.sweep.digest()
    assert added.units.equals(whole.units)
    assert (added.unanswered, added.squares, added.n) == (whole.unanswered, whole.squares, whole.n)
    assert added.clustered


def test_parts_with_and_without_dialogues_cannot_be_added():
    rows = Rows.of([0.5, 0.7], [True, False])
    with pytest.raises(DataError, match='"guide" one part has dialogues'):
        tally_of(rows, [0, 1]) + tally_of(rows)


def test_the_same_bucket_and_confidence_in_two_tables_are_one_row():
    columns = {"bucket": [1, 1], "confidence": [0.5, None], "right": [1.0, 0.0], "wrong": [0.0, 0.0]}
    table = pl.DataFrame({**columns, "withheld": [0.0, 2.0], "least": [8, 9]}, schema=UNITS)
    assert summed_units([table, table]).rows() == [(1, None, 0, 0, 4, 8), (1, 0.5, 2, 0, 0, 8)]


def test_the_least_number_of_a_bucket_is_the_least_of_all_its_rows_in_all_parts():
    columns = {"bucket": [1, 1, 2, None], "confidence": [0.5, 0.6, 0.5, 0.5], **dict.fromkeys(("right", "wrong"), 1.0)}
    parts = [pl.DataFrame({**columns, "withheld": 0.0, "least": least}, schema=UNITS) for least in LEAST]
    assert summed_units(parts)["least"].to_list() == [None, 4, 4, 3]


def lone_turns(names):
    """A tally of dialogues of one turn each, hashed by the plain twin."""
    bucket, least = zip(*(hashed(name) for name in names), strict=True)
    return tally_of(Rows.of(np.full(len(names), 0.5), np.ones(len(names))), bucket, least=least)


def test_dialogues_are_counted_by_hand():
    """Two of 1,024 buckets hold something: their first numbers come after a half and a quarter of the range."""
    rows = Rows.of([0.5] * 9, [True] * 9)
    tally = tally_of(rows, [3] * 4 + [8] * 5, least=[2**31] * 4 + [2**32 - 1] * 4 + [2**30])
    assert tally.dialogues == pytest.approx(1024 * 2 / (1022 + 0.5 + 0.25))
    assert tally.fewest_dialogues == 2


def test_there_are_as_many_dialogues_as_buckets_at_least_and_as_rows_at_most():
    rows = Rows.of([0.5] * 3, [True] * 3)
    assert 2 <= tally_of(rows, [1, 1, 2], least=[2**32 - 1] * 3).dialogues < 2.001
    full = tally_of(Rows.of([0.5] * 1024, [True] * 1024), range(1024), least=[0] * 1024)
    assert dialogues_in(full.units) > 10**12
    assert (full.dialogues, full.fewest_dialogues) == (1024, 1024)


def test_without_units_every_row_is_independent():
    tally = tally_of(Rows.of([0.5] * 3, [True] * 3))
    assert (tally.dialogues, tally.fewest_dialogues) == (3, 3)


def test_rows_in_no_bucket_count_as_one_dialogue():
    rows = Rows.of([0.5] * 5, [True] * 5)
    assert tally_of(rows, [None] * 5, least=[None] * 5).dialogues == 1
    both = tally_of(rows, [None, None, 4, 4, 4], least=[None, None, *[2**31] * 3])
    assert both.dialogues == pytest.approx(1 + 1024 / 1023.5)


@pytest.mark.parametrize("count", [1, 10, 300, 5000, 40_000])
def test_dialogues_are_counted_within_four_standard_errors(count):
    tally = lone_turns([f"d{place}" for place in range(count)])
    error = 1 / np.sqrt(tally.buckets)
    assert dialogues_in(tally.units) == pytest.approx(count, rel=4 * error)
    assert tally.buckets <= tally.fewest_dialogues <= tally.dialogues <= count
    assert tally.fewest_dialogues == max(tally.dialogues * (1 - 2 * error), tally.buckets)


def test_dialogues_that_cross_parts_are_counted_once():
    names = [f"d{place // 3}" for place in range(3000)]
    whole = lone_turns(names)
    for parts in ([names[:1000], names[1000:]], [names[part::3] for part in range(3)], [names, names[:9]]):
        assert total([lone_turns(part) for part in parts]).dialogues == whole.dialogues
    assert 900 < whole.dialogues < 1100


@settings(max_examples=settings.default.max_examples // 2)
@given(tables(st.floats(0, 1), largest=30), st.integers(0, 4))
def test_joining_confidences_leaves_the_sums_over_rows_exact(rows, cells):
    tally = tally_of(arrays(rows))
    joined = tally.joined(ConfidenceGrid.over(1.0, cells))
    for key, measure in term_measures().items():
        assert joined.totals(key, measure) == pytest.approx(cell_totals(measure, tally.sweep))
    assert joined.sweep.total == tally.sweep.total


def test_a_sum_over_rows_with_other_parameters_is_read_from_the_cells():
    tally = tally_of(Rows.of([0.5, 0.7], [True, False])).joined(ConfidenceGrid.over(1.0, 0))
    assert tally.totals("another", ECE(bins=5)) == pytest.approx(cell_totals(ECE(bins=5), tally.sweep))


@settings(max_examples=settings.default.max_examples // 2)
@given(tables(st.floats(0, 1), smallest=2, largest=30), st.integers(0, 4), st.integers(0, 4))
def test_parts_joined_differently_add_up_to_a_curve_exact_at_its_cutoffs(rows, one, two):
    held = arrays(rows)
    exact = tally_of(held)
    chosen = parts_of(held, 2)
    parts = [
        tally_of(part_of(held, part)).joined(ConfidenceGrid.over(1.0, cells))
        for part, cells in zip(chosen, (one, two), strict=True)
    ]
    added = total(parts)
    for cutoff in added.sweep.threshold:
        found, wanted = (error_return(sweep).at_threshold(cutoff) for sweep in (added.sweep, exact.sweep))
        assert found == pytest.approx(wanted)
    key, measure = "brier", RETURNS["brier"]
    assert added.totals(key, measure) == pytest.approx(exact.totals(key, measure))
    assert added.n == exact.n


def test_a_joined_part_and_an_exact_one_keep_their_exact_sums():
    one, two = (tally_of(Rows.of(scores, [True, False])) for scores in ([0.1, 0.2], [0.6, 0.9]))
    added = one.joined(ConfidenceGrid.over(1.0, 1)) + two
    value = Brier().finish(added.totals("brier", Brier()))
    assert float(value) == pytest.approx((0.9**2 + 0.2**2 + 0.4**2 + 0.9**2) / 4)


def test_joining_again_on_a_coarser_grid_is_joining_once():
    sweep = Sweep.of(np.arange(64) / 64, np.arange(64) % 3 > 0)
    once = joined_sweep(sweep, ConfidenceGrid.over(0.9, 2))
    twice = joined_sweep(joined_sweep(sweep, ConfidenceGrid.over(0.9, 4)), ConfidenceGrid.over(0.9, 2))
    assert once == twice
    assert once.threshold.tolist() == [0.0, 0.25, 0.5, 0.75]
    assert once.upper.tolist() == [15 / 64, 31 / 64, 47 / 64, 63 / 64]


def test_where_nothing_was_answered_there_is_nothing_to_join():
    rows = Rows(np.zeros(2), np.zeros(2, bool), np.zeros(2, bool), np.ones(2))
    tally = tally_of(rows)
    assert tally.joined(ConfidenceGrid.over(0.0)) is tally
