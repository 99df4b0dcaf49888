"""Tallies are the same whichever engine counts the rows, and however the rows are cut into parts."""

import duckdb
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from demur.core.stats.calibration import cell_totals
from demur.core.stats.resampling import Rows
from demur.returns.counting import tallies, tallies_of_frame
from demur.returns.engine_judging import judge_lazily
from demur.returns.measures import term_measures
from demur.returns.table import Reading, responses
from demur.returns.tally import total
from reference.tallies import hashed

ENGINES = {
    "polars": lambda frame: frame.lazy(),
    "duckdb": lambda frame: duckdb.from_arrow(frame.to_arrow()),
}
each_engine = pytest.mark.parametrize("engine", sorted(ENGINES))


def log(n=2000, *, decimals=3, dialogues=True, weights=False, seed=0):
    """A log in which confident answers are mostly right; one dialogue in ten holds a tenth of the turns."""
    rng = np.random.default_rng(seed)
    confidence = rng.beta(3, 1.5, n)
    right = rng.random(n) < confidence
    withheld = rng.random(n) < 0.1
    target = rng.integers(0, 20, n)
    predicted = np.where(right, target, (target + 1) % 20)
    columns = {
        "id": [f"{place}" for place in range(n)],
        "target": [f"intent {label}" for label in target],
        "prediction": [None if aside else f"intent {label}" for label, aside in zip(predicted, withheld, strict=True)],
        "confidence": confidence.round(decimals) if decimals else confidence,
        "domain": np.where(target < 5, "home", "travel"),
        "failed": rng.random(n) < 0.01,
    }
    if dialogues:
        columns["dialogue"] = np.where(rng.random(n) < 0.1, 0, 1 + np.arange(n) // 8).astype(str)
    if weights:
        columns["weight"] = rng.choice([0.5, 1.0, 2.0], n)
    return pl.DataFrame(columns)


def counted(engine, frame, *, by=None, **options):
    return tallies(judge_lazily(ENGINES[engine](frame), reading=Reading(), system="log", by=by), **options)


def in_memory(frame, *, by=None):
    return tallies_of_frame(responses(frame, system="log", reading=Reading(keep=(by,) if by else ())).frame, by=by)


def assert_same(one, two):
    assert (one.system, one.part, one.n) == (two.system, two.part, two.n)
    assert one.sweep == two.sweep
    assert (one.failed, one.unanswered, one.out_of_scope) == (two.failed, two.unanswered, two.out_of_scope)
    assert one.squares == pytest.approx(two.squares, rel=1e-12)
    assert one.clustered == two.clustered
    assert (one.units is None) == (two.units is None)
    if one.units is not None:
        assert one.units.equals(two.units)
    assert one.dialogues == two.dialogues


@each_engine
@pytest.mark.parametrize("dialogues", [False, True])
@pytest.mark.parametrize("weights", [False, True])
def test_every_engine_gives_the_tallies_that_memory_gives(engine, dialogues, weights):
    frame = log(dialogues=dialogues, weights=weights)
    found, expected = counted(engine, frame, by="domain"), in_memory(frame, by="domain")
    assert [one.part for one in found] == [None, "domain=home", "domain=travel"]
    for one, two in zip(found, expected, strict=True):
        assert_same(one, two)


def test_the_sweep_is_that_of_the_rows():
    frame = responses(log(), system="log").frame
    (found,) = tallies_of_frame(frame)
    assert found.sweep == Rows.from_frame(frame).sweep()
    assert (found.failed, found.withheld) == (frame["failed"].sum(), (~frame["answered"] & ~frame["failed"]).sum())


@each_engine
def test_parts_add_up_to_the_whole_and_dialogues_that_cross_them_stay_whole(engine):
    frame = log(dialogues=True)
    parts = [frame[::3], frame[1::3], frame[2::3]]
    assert_same(total([counted(engine, part)[0] for part in parts]), counted(engine, frame)[0])


@each_engine
def test_every_bucket_keeps_the_least_number_of_its_dialogues(engine):
    frame = log(weights=True)
    least = {}
    for bucket, number in (hashed(name) for name in frame["dialogue"].unique()):
        least[bucket] = min(number, least.get(bucket, number))
    for exact_up_to in (10, 2**24):
        (found,) = counted(engine, frame, exact_up_to=exact_up_to)
        assert dict(found.units.select("bucket", "least").unique().iter_rows()) == least


@each_engine
def test_dialogues_are_about_counted_of_the_whole_and_of_every_slice(engine):
    frame = log()
    whole, *slices = counted(engine, frame, by="domain")
    assert whole.dialogues == pytest.approx(frame["dialogue"].n_unique(), rel=0.2)
    for one in slices:
        mine = frame.filter(pl.col("domain") == one.part.removeprefix("domain="))
        assert one.dialogues == pytest.approx(mine["dialogue"].n_unique(), rel=0.2)


@each_engine
def test_few_distinct_confidences_lose_nothing_however_many_rows_there_are(engine):
    frame = log()
    (exact,), (celled,) = counted(engine, frame), counted(engine, frame, exact_up_to=10)
    assert celled.sweep == exact.sweep
    assert celled.sweep.slack == (0.0, 0.0)


@each_engine
def test_cutoffs_that_are_left_are_exact_and_between_them_the_bound_holds(engine):
    frame = log(4000, decimals=None, dialogues=False).with_columns(confidence=pl.col("confidence") / 2**18)
    (exact,), (celled,) = counted(engine, frame), counted(engine, frame, exact_up_to=10)
    assert celled.sweep.threshold.size < exact.sweep.threshold.size or celled.sweep == exact.sweep
    place = np.searchsorted(exact.sweep.threshold, celled.sweep.threshold)
    for mine, theirs in zip(celled.sweep.rates, exact.sweep.rates, strict=True):
        assert np.array_equal(mine[:-1], theirs[:-1][place])


@pytest.fixture
def dense():
    """Confidences so close to 1 that cells of a millionth hold hundreds of them, some of them ties."""
    rng = np.random.default_rng(1)
    n = 3000
    confidence = 1 - 10.0 ** -rng.uniform(1, 15, n)
    right = rng.random(n) < 0.8
    return pl.DataFrame({"correct": right, "confidence": np.where(rng.random(n) < 0.2, 1.0, confidence)})


@each_engine
def test_dense_cells_are_cut_finer_until_they_hold_little(engine, dense):
    (found,) = counted(engine, dense, exact_up_to=10)
    assert found.sweep.slack[0] <= 1e-3
    exact = Rows.from_frame(responses(dense, system="log").frame).sweep()
    x, y = exact.rates
    assert np.abs(np.interp(x, *found.sweep.rates) - y).max() <= found.sweep.slack[1] + 1e-12


@each_engine
def test_sums_over_rows_stay_exact_where_confidences_are_joined(engine, monkeypatch, dense):
    monkeypatch.setattr("demur.returns.counting.ROUNDS", 1)
    (found,) = counted(engine, dense, exact_up_to=10)
    assert found.sweep.upper is not None
    exact = Rows.from_frame(responses(dense, system="log").frame).sweep()
    for key, measure in term_measures().items():
        expected = measure.finish(cell_totals(measure, exact))
        assert measure.finish(found.totals(key, measure)) == pytest.approx(float(expected), rel=1e-9)


@settings(max_examples=settings.default.max_examples // 2)
@given(st.lists(st.tuples(st.floats(-4, 4), st.booleans()), min_size=1, max_size=40), st.integers(1, 6))
def test_joining_and_adding_keep_every_cutoff_exact(rows, bits):
    from demur.returns.tally import ConfidenceGrid

    frame = pl.DataFrame({"confidence": [row[0] for row in rows], "correct": [row[1] for row in rows]})
    (whole,) = in_memory(frame)
    halves = [
        in_memory(part)[0].joined(ConfidenceGrid.over(4.0, bits)) for part in (frame[::2], frame[1::2]) if part.height
    ]
    merged = total(halves)
    assert merged.n == whole.n
    place = np.searchsorted(whole.sweep.threshold, merged.sweep.threshold)
    for mine, theirs in zip(merged.sweep.rates, whole.sweep.rates, strict=True):
        assert np.allclose(mine[:-1], theirs[:-1][place], atol=1e-15)
    x, y = whole.sweep.rates
    assert np.abs(np.interp(x, *merged.sweep.rates) - y).max() <= merged.sweep.slack[1] + 1e-12


@each_engine
def test_many_levels_are_joined_per_bucket_but_not_in_the_sweep(engine):
    (found,) = counted(engine, log(5000, decimals=None))
    assert found.sweep.upper is None
    assert found.sweep.threshold.size > 4000
    assert found.units["confidence"].n_unique() <= 1200
    sums = found.units.select("right", "wrong", "withheld").sum().row(0)
    assert sums == (found.sweep.right.sum(), found.sweep.wrong.sum(), found.sweep.withheld)
