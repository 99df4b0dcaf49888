from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.core.stats.calibration import ECE, Brier, cell_totals
from demur.core.stats.resampling import CELL_LEVELS, Rows, Sample, Spread
from demur.returns.measures import AUGRC, ForcedError, augrc_estimate
from demur.returns.tally import ConfidenceGrid, tally_sample
from reference.rows import SCORES, arrays, tables
from reference.tallies import tally_of


def parts(sweep):
    return [sweep.threshold, sweep.right, sweep.wrong, np.asarray(sweep.withheld)]


def same(one, two):
    return all(np.array_equal(a, b) for a, b in zip(parts(one), parts(two), strict=True))


def dialogues(n, count, *, seed=0, weighted=False, withheld=0.1):
    """Rows of dialogues that are easy or hard as a whole, and a bucket for each row."""
    rng = np.random.default_rng(seed)
    unit = np.unique(rng.integers(0, count, n), return_inverse=True)[1].astype(np.int64)
    ease = rng.normal(0, 1, count)[unit]
    confidence = np.round(1 / (1 + np.exp(-rng.normal(ease, 1.0))), 3)
    answered = rng.random(n) >= withheld
    right = (rng.random(n) < 1 / (1 + np.exp(-1 - 2 * ease))) & answered
    weight = rng.random(n) + 0.5 if weighted else np.ones(n)
    bucket = rng.integers(0, 1024, count)[unit]
    return Rows(confidence, right, answered, weight, unit), bucket


@given(tables(SCORES, largest=30), st.integers(0, 3))
def test_where_rows_count_alike_replicates_are_those_of_rows_in_memory(rows, seed):
    held = arrays(rows)
    memory, elsewhere = Sample(held, 40, seed), tally_sample(tally_of(held), 40, seed)
    assert elsewhere.alike
    assert same(memory.coarse, elsewhere.coarse)
    assert same(memory.drawn, elsewhere.drawn)
    assert memory.spread == elsewhere.spread
    assert repr(augrc_estimate(memory)) == repr(augrc_estimate(elsewhere))


def test_weights_that_are_all_1_count_alike():
    rows = Rows.of(np.arange(20) / 20, np.arange(20) % 3 > 0)
    elsewhere = tally_sample(tally_of(rows, np.arange(20), clustered=False), 30, 0)
    assert elsewhere.alike
    assert same(elsewhere.drawn, Sample(rows, 30, 0).drawn)
    assert (elsewhere.spread.units, elsewhere.heaviest) == (20, 1.0)


def test_weights_that_only_sum_to_the_number_of_rows_do_not_count_alike():
    rows = Rows(np.array([0.2, 0.4]), np.ones(2, bool), np.ones(2, bool), np.array([0.5, 1.5]))
    assert not tally_sample(tally_of(rows, [3, 8], clustered=False)).alike


def test_whole_buckets_are_drawn():
    """Two buckets, 7 with three right answers and 3 with two wrong ones: a replicate has 0, 1 or 2 of each."""
    unit = np.array([7, 7, 7, 3, 3])
    rows = Rows(np.full(5, 0.5), unit == 7, np.ones(5, bool), np.ones(5))
    sample = tally_sample(tally_of(rows, unit), 400, 0)
    assert (sample.spread.units, sample.spread.clustered, sample.heaviest) == (2, True, 3.0)
    assert set(sample.drawn.right[:, 0]) == {0, 3, 6}
    assert (sample.drawn.right[:, 0] / 3 + sample.drawn.wrong[:, 0] / 2 == 2).all()


def test_what_buckets_pull_is_worked_by_hand():
    """A row adds 1 where right, 10 where wrong, 100 where withheld; the weights sum to 8."""
    rows = Rows(
        np.array([0.5, 0.5, 0.0]),
        np.array([True, False, False]),
        np.array([True, True, False]),
        np.array([2.0, 1.0, 5.0]),
    )
    sample = tally_sample(tally_of(rows, [4, 4, 1]))
    assert sample.pulls(np.array([1.0, 10.0, 100.0])).tolist() == [(2 + 10) / 8, 500 / 8]


@given(tables(SCORES, weights=st.sampled_from([1, 0.5, 2]), largest=20))
def test_a_bucket_for_each_dialogue_gives_the_standard_error_of_dialogues(rows):
    held = replace(arrays(rows), unit=np.arange(len(rows)) // 2)
    memory, elsewhere = Sample(held), tally_sample(tally_of(held, held.unit))
    one, two = augrc_estimate(memory), augrc_estimate(elsewhere)
    assert (one.value, one.error) == pytest.approx((two.value, two.error), nan_ok=True)
    assert one.freedom == two.freedom
    assert memory.heaviest == elsewhere.heaviest


def test_a_bucket_for_each_dialogue_gives_the_replicates_of_dialogues():
    rows, _ = dialogues(400, 50)
    memory, elsewhere = Sample(rows, 100, 5), tally_sample(tally_of(rows, rows.unit), 100, 5)
    assert same(memory.coarse, elsewhere.coarse)
    assert same(memory.drawn, elsewhere.drawn)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_coarse_sweep_is_what_replicates_average_to(weighted):
    rows, bucket = dialogues(3000, 300, weighted=weighted)
    sample = tally_sample(tally_of(rows, bucket), 2000, 0)
    assert sample.drawn.threshold.tolist() == sample.coarse.threshold.tolist()
    assert sample.coarse.threshold.size <= CELL_LEVELS < sample.sweep.threshold.size
    assert sample.coarse.total == pytest.approx(sample.sweep.total)
    for drawn, held in ((sample.drawn.right, sample.coarse.right), (sample.drawn.wrong, sample.coarse.wrong)):
        error = drawn.std(axis=0) / np.sqrt(2000)
        assert (np.abs(drawn.mean(axis=0) - held) <= 5.5 * error + 1e-9).all()


def test_levels_hold_about_the_same_weight():
    rows, bucket = dialogues(20_000, 900)
    coarse = tally_sample(tally_of(rows, bucket)).coarse
    assert (coarse.right + coarse.wrong).max() < 4 * (coarse.right + coarse.wrong).mean()


@pytest.mark.parametrize("weighted", [False, True])
def test_the_order_of_the_table_does_not_change_any_replicate(weighted):
    rows, bucket = dialogues(800, 80, weighted=weighted)
    tally = tally_of(rows, bucket)
    turned = replace(tally, units=tally.units.sample(fraction=1.0, shuffle=True, seed=1))
    one, two = (tally_sample(part, 50, 0) for part in (tally, turned))
    assert same(one.drawn, two.drawn)
    assert augrc_estimate(one) == augrc_estimate(two)


def test_the_same_seed_gives_the_same_replicates_and_another_seed_others():
    tally = tally_of(*dialogues(300, 40))
    first, again, other = (tally_sample(tally, 50, seed).drawn for seed in (3, 3, 4))
    assert same(first, again)
    assert not same(first, other)


@pytest.mark.parametrize("weighted", [False, True])
def test_buckets_are_as_uncertain_as_the_dialogues_in_them(weighted):
    """Their variances are alike on the mean, and 1,000 of them tell a deviation to about 3 percent."""
    ratios = []
    for seed in range(4):
        rows, bucket = dialogues(20_000, 3000, seed=seed, weighted=weighted)
        samples = Sample(rows, 500, 0), tally_sample(tally_of(rows, bucket), 500, 0)
        spreads = [[measure.finish(sample.drawn).std() for sample in samples] for measure in (AUGRC(), ForcedError())]
        ratios += [two / one for one, two in spreads]
        errors = [augrc_estimate(sample).error for sample in samples]
        ratios.append(errors[1] / errors[0])
    assert np.abs(np.array(ratios) - 1).max() < 0.12
    assert np.mean(ratios) == pytest.approx(1, abs=0.05)


def test_one_dialogue_with_a_tenth_of_all_rows_is_not_lost_among_buckets():
    rows, bucket = dialogues(20_000, 3000)
    unit, hashed = rows.unit.copy(), bucket.copy()
    unit[:2000], hashed[:2000] = 0, 17
    right = rows.right.copy()
    right[:2000] = False
    heavy = replace(rows, right=right, unit=np.unique(unit, return_inverse=True)[1].astype(np.int64))
    even, memory = Sample(rows, 500, 0), Sample(heavy, 500, 0)
    elsewhere = tally_sample(tally_of(heavy, hashed), 500, 0)
    wide = ForcedError().finish(memory.drawn).std()
    assert wide > 3 * ForcedError().finish(even.drawn).std()
    assert ForcedError().finish(elsewhere.drawn).std() == pytest.approx(wide, rel=0.1)
    assert augrc_estimate(elsewhere).error == pytest.approx(augrc_estimate(memory).error, rel=0.1)


def test_sums_over_rows_stay_exact_where_the_sweep_joins_confidences():
    rows = Rows.of([0.1, 0.2, 0.6, 0.9], [True, False, True, False])
    exact, joined = (
        tally_sample(tally) for tally in (tally_of(rows), tally_of(rows).joined(ConfidenceGrid.over(1.0, 1)))
    )
    assert joined.sweep.slack[0] > 0
    assert joined.totals(Brier()) == pytest.approx(exact.totals(Brier()))
    assert joined.totals(ECE(bins=7)) == pytest.approx(cell_totals(ECE(bins=7), joined.sweep))


def test_a_system_that_only_withholds_has_replicates():
    rows = Rows(np.zeros(6), np.zeros(6, bool), np.zeros(6, bool), np.ones(6))
    for tally in (tally_of(rows), tally_of(rows, [0, 0, 1, 1, 2, 2])):
        sample = tally_sample(tally, 20, 0)
        assert sample.drawn.right.shape == (20, 0)
        assert (sample.drawn.withheld == 6).all()


def test_rows_in_no_bucket_are_a_unit_of_their_own():
    rows = Rows.of([0.1, 0.2, 0.6, 0.9], [True, False, True, False])
    tally = tally_of(rows, [None, 0, 0, 5])
    assert tally_sample(tally).spread.units == 3


def test_buckets_are_drawn_and_the_dialogues_in_them_are_known_on_the_low_side():
    rows, bucket = dialogues(6000, 3000)
    sample = tally_sample(tally_of(rows, bucket, least=np.random.default_rng(3).integers(0, 2**32, 3000)[rows.unit]))
    count, occupied = rows.units, np.unique(bucket).size
    assert sample.spread.units == occupied
    assert occupied < 0.8 * count <= sample.spread.independent <= count
    assert Sample(rows).spread.independent == count


def test_turns_of_one_dialogue_may_all_tell_the_same():
    assert Spread(60.0, 9, clustered=True).most == 9
    assert Spread(60.0, 9, clustered=True, dialogues=25.0).most == 25
    assert Spread(20.0, 9, clustered=True, dialogues=25.0).most == 20
    assert Spread(60.0, 9, clustered=False, dialogues=25.0).most == 60
