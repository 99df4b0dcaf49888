import numpy as np
import polars as pl
import pytest

from demur.core.stats.sweep import Sweep
from demur.errors import DataError
from demur.returns.curves import error_return
from demur.returns.evaluate import evaluate, returns_measures
from demur.returns.follow import MOST_SYSTEMS, RunningTally
from demur.returns.table import Responses, responses

COLUMNS = {"id": pl.String, "dialogue": pl.String, "target": pl.List(pl.String), "prediction": pl.String}


def judged(confidence, right, *, system="run", **columns):
    """Judged rows, all of them answered."""
    n = len(confidence)
    empty = {name: pl.Series([None], dtype=kind).new_from_index(0, n) for name, kind in COLUMNS.items()}
    flags = {name: np.zeros(n, dtype=bool) for name in ("failed", "out_of_scope")}
    frame = pl.DataFrame(
        {**empty, "answered": np.ones(n, dtype=bool), "right": right, **flags, "confidence": confidence}
    )
    return frame.with_columns(system=pl.lit(system), weight=1.0).with_columns(**columns)


def drawn(n, seed=0):
    rng = np.random.default_rng(seed)
    confidence = rng.random(n)
    return confidence, rng.random(n) < confidence


def in_batches(frame, size, *, grouped=False, **limits):
    running = RunningTally(**limits)
    for part in frame.iter_slices(size):
        running.add(part, grouped=grouped)
    return running


def test_the_result_is_that_of_all_rows_at_once():
    rows = [
        {"id": k, "target": "a", "prediction": ["a", "b", None][k % 3], "confidence": (k * 7 % 50) / 50}
        for k in range(300)
    ]
    whole = responses(rows, system="run")
    running = in_batches(whole.frame, 37)
    expected = evaluate(whole, replicates=60)[0]
    found = running.evaluated(measures=returns_measures(), replicates=60)[0]
    assert found.to_dict() == expected.to_dict()
    assert running.rows == 300


def test_very_many_distinct_confidences_stay_within_the_bound_and_near_the_exact_curve():
    confidence, right = drawn(80_000)
    running = RunningTally(cutoffs=8192)
    for part in judged(confidence, right).iter_slices(10_000):
        running.add(part)
        assert running.tallies[0].sweep.threshold.size <= 8192
    tally = running.tallies[0]
    exact = Sweep.of(confidence, right)
    x_within, y_within = tally.sweep.slack
    assert 0 < y_within <= x_within < 4 / 4096
    joined, true = error_return(tally.sweep), error_return(exact)
    x = np.linspace(0, 1, 5001)
    assert np.abs(joined.error_at(x) - true.error_at(x)).max() <= y_within
    places = np.searchsorted(exact.threshold, tally.sweep.threshold)
    np.testing.assert_array_equal(exact.threshold[places], tally.sweep.threshold)
    np.testing.assert_array_equal(true.nonreturn[places], joined.nonreturn[:-1])
    np.testing.assert_array_equal(true.error[places], joined.error[:-1])


def test_what_is_a_sum_over_rows_stays_exact_where_confidences_are_joined():
    confidence, right = drawn(20_000)
    brier = float(np.mean((confidence - right) ** 2))
    running = in_batches(judged(confidence, right), 3000, cutoffs=256)
    figures = running.evaluated(measures=returns_measures(), replicates=50)[0].figures
    assert figures["brier"].value == pytest.approx(brier, rel=1e-12)
    assert figures["forced_error"].value == 1 - right.mean()


@pytest.mark.parametrize(("scale", "cutoffs"), [(1.0, 16), (-3.0, 17), (1e300, 100), (1e-300, 17)])
def test_the_bound_holds_for_any_scale_and_shape_of_confidences(scale, cutoffs):
    rng = np.random.default_rng(1)
    for shape in (rng.normal(size=600), rng.random(600) ** 20, np.append(rng.random(598), [np.inf, -np.inf])):
        running = in_batches(judged(shape * scale, rng.random(600) < 0.5), 300, cutoffs=cutoffs)
        assert running.tallies[0].sweep.threshold.size <= cutoffs
        assert running.tallies[0].n == 600


def test_tables_of_units_stay_within_their_bound_and_keep_their_sums():
    confidence, right = drawn(10_000)
    names = [f"d{k}" for k in np.random.default_rng(2).integers(0, 5000, 10_000)]
    frame = judged(confidence, right, dialogue=pl.Series(names))
    running = in_batches(frame, 3000, grouped=True, units=4000)
    units = running.tallies[0].units
    assert units.height <= 4000
    assert units["right"].sum() == right.sum()
    assert units["wrong"].sum() == 10_000 - right.sum()
    exact = in_batches(frame, 3000, grouped=True).tallies[0].units
    by_bucket = [table.group_by("bucket").agg(pl.col("right").sum()).sort("bucket") for table in (units, exact)]
    assert by_bucket[0].equals(by_bucket[1])


def test_dialogues_are_counted_alike_however_the_log_comes_in_and_levels_are_joined():
    confidence, right = drawn(30_000)
    names = [f"d{k // 6}" for k in np.random.default_rng(2).permutation(30_000)]
    frame = judged(confidence, right, dialogue=pl.Series(names))
    counts = {
        in_batches(frame, size, grouped=True, units=units).tallies[0].dialogues
        for size, units in ((30_000, 4000), (30_000, 10**6), (8000, 4000))
    }
    assert len(counts) == 1
    assert counts.pop() == pytest.approx(5000, rel=0.1)


def test_intervals_at_coarser_units_are_about_as_wide():
    confidence, right = drawn(20_000)
    names = [f"d{k}" for k in np.random.default_rng(2).integers(0, 3000, 20_000)]
    frame = judged(confidence, right, dialogue=pl.Series(names))
    measures = {name: returns_measures()[name] for name in ("error_at_nonreturn",)}
    widths = []
    for limit in (20_000, 10**6):
        figures = in_batches(frame, 10_000, grouped=True, units=limit).evaluated(measures=measures)[0].figures
        widths.append(figures["error_at_nonreturn"].high - figures["error_at_nonreturn"].low)
    assert widths[0] == pytest.approx(widths[1], rel=0.1)


def test_units_are_kept_from_the_start_where_a_log_has_the_columns_for_them():
    rows = judged([0.1, 0.9, 0.4], [False, True, True], id=pl.Series(["a", "b", "c"]))
    running = RunningTally()
    running.add(rows[:1], grouped=True)
    assert not running.tallies[0].clustered
    running.add(rows[1:].with_columns(dialogue=pl.lit("d")), grouped=True)
    assert running.tallies[0].clustered
    assert running.tallies[0].units.height == 3


def test_weights_of_one_and_dialogues_that_never_come_give_the_result_of_independent_rows():
    confidence, right = drawn(500)
    frame = judged(confidence, right, id=pl.Series([str(k) for k in range(500)]))
    found = in_batches(frame, 90, grouped=True).evaluated(measures=returns_measures(), replicates=60)[0]
    assert found.to_dict() == evaluate(Responses(frame), replicates=60)[0].to_dict()


def test_dialogues_that_begin_late_are_refused_with_the_way_out():
    running = RunningTally()
    running.add(judged([0.5], [True]))
    late = judged([0.5], [True], dialogue=pl.lit("d"))
    with pytest.raises(DataError, match=r'of system "run" begin only after 1 rows that have none .*demur score'):
        running.add(late, grouped=True)


def test_rows_of_weight_0_are_rows_whichever_batch_they_come_in():
    confidence, right = drawn(24)
    weight = pl.Series(np.random.default_rng(5).choice([0.0, 0.0, 1.0, 2.5], 24))
    frame = judged(confidence, right, weight=weight, id=pl.Series([str(k) for k in range(24)]))
    one_by_one, at_once = (in_batches(frame, size, grouped=True).tallies[0] for size in (1, 24))
    assert one_by_one.sweep == at_once.sweep
    assert one_by_one.n == 24
    assert one_by_one.squares == pytest.approx(at_once.squares)
    waiting = in_batches(frame.with_columns(weight=0.0), 7, grouped=True)
    assert (waiting.rows, waiting.tallies) == (0, [])


def test_systems_stand_in_order_of_first_appearance_and_are_not_without_number():
    running = RunningTally()
    for name in ("b", "a", "b"):
        running.add(judged([0.5], [True], system=name))
    assert [tally.system for tally in running.tallies] == ["b", "a"]
    many = pl.concat([judged([0.5], [True], system=f"s{k}") for k in range(MOST_SYSTEMS)])
    with pytest.raises(DataError, match=r"more than 200 values .*--map system="):
        running.add(many)
