import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from demur.core.stats import resampling, sweep
from demur.core.stats.calibration import Brier, cell_totals
from demur.core.stats.resampling import (
    FEW,
    Draws,
    Rows,
    Sample,
    Spread,
    dialogue_units,
    multinomial,
    replicate_together,
)
from demur.core.stats.sweep import Sweep
from demur.returns.measures import AUGRC, AURC, ForcedError
from reference.rows import SCORES, arrays, tables

TALL = 20_000


def sample_rows(n, *, seed=0, weighted=False, dialogues=None, withheld=0.1):
    rng = np.random.default_rng(seed)
    confidence = np.round(rng.random(n), 2)
    right = rng.random(n) < confidence
    answered = rng.random(n) >= withheld
    weight = rng.random(n) * 3 if weighted else np.ones(n)
    unit = None if dialogues is None else rng.integers(0, dialogues, n)
    if unit is not None:
        unit = np.unique(unit, return_inverse=True)[1].astype(np.int64)
    return Rows(confidence, right & answered, answered, weight, unit)


def permuted(rows, seed=1):
    order = np.random.default_rng(seed).permutation(rows.weight.size)
    unit = None if rows.unit is None else rows.unit[order]
    return Rows(rows.confidence[order], rows.right[order], rows.answered[order], rows.weight[order], unit)


def same_draws(one, two):
    return all(np.array_equal(a, b) for a, b in zip(one._parts(), two._parts(), strict=True))


@pytest.mark.parametrize("counts", [[3, 0, 5, 2], [1, 1, 1], [40, 7, 0, 53], [1], [2000, 1, 500]])
def test_multinomial_draws_have_the_total_mean_and_variance_of_theory(counts):
    counts = np.array(counts)
    rows = counts.sum()
    drawn = multinomial(np.random.default_rng(5), counts, TALL)
    share = counts / rows
    assert (drawn.sum(axis=1) == rows).all()
    assert (drawn[:, counts == 0] == 0).all()
    error = np.sqrt(rows * share * (1 - share) / TALL)
    assert (np.abs(drawn.mean(axis=0) - counts) <= 5 * error + 1e-12).all()
    covariance = np.atleast_2d(np.cov(drawn, rowvar=False))
    expected = rows * (np.diag(share) - np.outer(share, share))
    assert covariance == pytest.approx(expected, abs=0.06 * max(expected.max(), 1e-12))


def test_multinomial_draws_have_the_right_distribution_in_a_small_case():
    """Three rows in cells of 2 and 1: the first cell is Binomial(3, 2/3)."""
    drawn = multinomial(np.random.default_rng(0), np.array([2, 1]), TALL)
    seen = np.bincount(drawn[:, 0].astype(int), minlength=4)
    expected = np.array([1, 6, 12, 8]) / 27 * TALL
    assert ((seen - expected) ** 2 / expected).sum() < chi2.ppf(0.9999, 3)


def test_multinomial_draws_of_very_many_rows_come_from_the_other_branch(monkeypatch):
    counts = np.array([30, 20, 50])
    monkeypatch.setattr(resampling, "MOST_OWNED", 10)
    drawn = multinomial(np.random.default_rng(0), counts, TALL)
    assert (drawn.sum(axis=1) == 100).all()
    assert drawn.mean(axis=0) == pytest.approx(counts, rel=0.01)


def test_draws_are_units_with_replacement():
    chunks = list(Draws(7, 500, 3))
    drawn = np.concatenate(chunks)
    assert drawn.shape == (500, 7)
    assert (drawn.sum(axis=1) == 7).all()
    assert drawn.mean(axis=0) == pytest.approx(np.ones(7), abs=5 * np.sqrt(6 / 7 / 500))
    assert drawn.var(axis=0).mean() == pytest.approx(6 / 7, rel=0.1)


@pytest.mark.parametrize("units", [7, 2000, 20_001])
def test_how_much_is_drawn_at_once_does_not_change_what_is_drawn(monkeypatch, units):
    few = np.concatenate(list(Draws(units, 30, 3)))
    monkeypatch.setattr(resampling, "DRAWN_AT_ONCE", 10**8)
    assert np.array_equal(few, np.concatenate(list(Draws(units, 30, 3))))


def test_what_a_sample_says_of_its_rows():
    plain, weighted, clustered = (sample_rows(60, **options) for options in ({}, {"weighted": True}, {"dialogues": 9}))
    assert [Sample(rows).alike for rows in (plain, weighted, clustered)] == [True, False, False]
    assert Sample(plain).spread == Spread(60.0, 60, clustered=False)
    assert Sample(clustered).spread == Spread(60.0, 9, clustered=True)
    assert Sample(weighted).spread.n < 60
    assert Sample(plain).heaviest == 1
    assert Sample(weighted).heaviest == weighted.weight.max()
    assert Sample(clustered).heaviest == np.bincount(clustered.unit).max()
    assert Sample(plain).n == 60


def test_what_units_pull_is_worked_by_hand():
    """A row adds 1 where right, 10 where wrong, 100 where withheld; the weights sum to 8."""
    verdicts = np.array([True, False, False]), np.array([True, True, False])
    rows = Rows(np.array([0.5, 0.5, 0.0]), *verdicts, np.array([2.0, 1.0, 5.0]), np.array([1, 1, 0]))
    assert Sample(rows).pulls(np.array([1.0, 10.0, 100.0])).tolist() == [(2 + 10) / 8, 500 / 8]


def test_sums_over_rows_are_read_from_the_sweep():
    sample = Sample(sample_rows(60))
    assert sample.totals(Brier()) == pytest.approx(cell_totals(Brier(), sample.sweep))


@pytest.mark.parametrize("options", [{}, {"weighted": True}, {"dialogues": 12}], ids=["plain", "weighted", "clustered"])
def test_the_same_seed_gives_the_same_replicates_and_another_seed_others(options):
    rows = sample_rows(80, **options)
    first, again, other = (Sample(rows, 50, seed).drawn for seed in (3, 3, 4))
    assert same_draws(first, again)
    assert not same_draws(first, other)


@pytest.mark.parametrize("options", [{}, {"weighted": True}, {"dialogues": 12}], ids=["plain", "weighted", "clustered"])
def test_row_order_does_not_change_any_replicate(options):
    rows = sample_rows(150, **options)
    assert same_draws(Sample(rows, 60, 0).drawn, Sample(permuted(rows), 60, 0).drawn)


def test_row_order_does_not_change_replicates_of_weighted_dialogues():
    rows = sample_rows(150, weighted=True, dialogues=12)
    assert same_draws(Sample(rows, 60, 0).drawn, Sample(permuted(rows), 60, 0).drawn)


@pytest.mark.parametrize("options", [{}, {"weighted": True}, {"dialogues": 40}], ids=["plain", "weighted", "clustered"])
def test_replicates_average_to_the_sweep_they_are_drawn_from(options):
    sample = Sample(sample_rows(200, **options), 3000, 0)
    assert sample.drawn.threshold.tolist() == sample.coarse.threshold.tolist()
    for drawn, held in ((sample.drawn.right, sample.coarse.right), (sample.drawn.wrong, sample.coarse.wrong)):
        error = drawn.std(axis=0) / np.sqrt(3000)
        assert (np.abs(drawn.mean(axis=0) - held) <= 5.5 * error + 1e-9).all()


def test_counts_per_cell_and_unit_by_unit_draws_are_the_same_bootstrap():
    rows = sample_rows(300)
    by_cell = Sample(rows, 4000, 0).drawn
    (by_unit,) = replicate_together([rows], replicates=4000, seed=0)
    for measure in (AUGRC(), AURC(), ForcedError()):
        one, two = measure.finish(by_cell), measure.finish(by_unit)
        assert one.mean() == pytest.approx(two.mean(), abs=5 * one.std() * np.sqrt(2 / 4000))
        assert one.std() == pytest.approx(two.std(), rel=0.08)


def test_systems_drawn_together_share_their_units():
    rows = sample_rows(100)
    one, two = replicate_together([rows, rows], replicates=40, seed=0)
    assert same_draws(one, two)


def test_systems_drawn_together_are_correlated_as_their_rows_are():
    rows = sample_rows(400, withheld=0)
    other = Rows(rows.confidence, ~rows.right, rows.answered, rows.weight)
    one, two = replicate_together([rows, other], replicates=200, seed=0)
    assert ForcedError().finish(one) + ForcedError().finish(two) == pytest.approx(np.ones(200))


@pytest.mark.parametrize("weighted", [False, True])
def test_whole_dialogues_are_drawn(weighted):
    """Two dialogues, one all right and one all wrong: a replicate has 0, 1 or 2 of each."""
    n = 10
    weight = np.repeat([1.0, 2.0], n) if weighted else np.ones(2 * n)
    unit = np.repeat([0, 1], n)
    rows = Rows(np.full(2 * n, 0.5), unit == 0, np.ones(2 * n, bool), weight, unit)
    drawn = Sample(rows, 400, 0).drawn
    heavy = 2 * n if weighted else n
    assert set(drawn.right[:, 0]) == {0, n, 2 * n}
    assert set(drawn.wrong[:, 0]) == {0, heavy, 2 * heavy}
    assert (drawn.right[:, 0] / n + drawn.wrong[:, 0] / heavy == 2).all()


def test_dialogues_are_numbered_by_name_and_rows_outside_any_stand_alone():
    names = ["b", None, "a", "b", None]
    rest = {"weight": 1.0, "right": True, "answered": True, "confidence": [0.1, 0.3, 0.5, 0.7, 0.2]}
    codes = dialogue_units(pl.DataFrame({"dialogue": names, **rest}))
    assert codes.tolist()[:4] == [1, codes[1], 0, 1]
    assert sorted(codes.tolist()) == [0, 1, 1, 2, 3]
    assert codes[4] < codes[1]
    assert dialogue_units(pl.DataFrame({"dialogue": [None, None]}, schema={"dialogue": pl.String})) is None


def test_rows_outside_any_dialogue_do_not_bring_row_order_in():
    names = [None if k % 3 else f"d{k % 5}" for k in range(60)]
    frame = pl.DataFrame(
        {
            "confidence": np.arange(60) / 60,
            "right": [k % 7 < 4 for k in range(60)],
            "answered": [True] * 60,
            "weight": [1.0] * 60,
            "dialogue": names,
        }
    )
    turned = frame.reverse()
    one, two = (Sample(Rows.from_frame(part), 50, 0).drawn for part in (frame, turned))
    assert same_draws(one, two)


def test_many_units_are_dealt_into_bundles_without_loss(monkeypatch):
    monkeypatch.setattr(resampling, "MOST_UNITS", 20)
    rows = sample_rows(200, weighted=True)
    (drawn,) = replicate_together([rows], replicates=300, seed=0)
    assert drawn.total.mean() == pytest.approx(rows.weight.sum(), rel=0.02)
    again = replicate_together([permuted(rows)], replicates=300, seed=0)[0]
    assert AUGRC().finish(drawn) == pytest.approx(AUGRC().finish(again))


def test_more_levels_than_kept_are_joined_and_totals_stay():
    rows = Rows.of(np.arange(500) / 500, np.arange(500) % 3 > 0)
    sample = Sample(rows, 200, 0, levels=10)
    assert sample.drawn.threshold.size == 10
    assert (sample.drawn.total == 500).all()
    exact, coarse = (float(AUGRC().finish(part)) for part in (sample.sweep, sample.coarse))
    assert coarse == pytest.approx(exact, abs=0.01)


def test_withheld_rows_are_drawn_too():
    rows = sample_rows(100, withheld=0.4)
    drawn = Sample(rows, 2000, 0).drawn
    held = (~rows.answered).sum()
    assert drawn.withheld.mean() == pytest.approx(held, rel=0.02)
    assert drawn.withheld.std() == pytest.approx(np.sqrt(held * (1 - held / 100)), rel=0.06)


def test_the_effective_number_of_rows_is_that_of_kish():
    assert sample_rows(50).effective_n == pytest.approx(50)
    rows = Rows(np.ones(3), np.ones(3, bool), np.ones(3, bool), np.array([1.0, 1.0, 2.0]))
    assert rows.effective_n == pytest.approx(16 / 6)


@given(tables(SCORES, largest=20), st.integers(1, 5))
def test_every_row_falls_into_the_cell_of_its_level(rows, levels):
    held = arrays(rows)
    coarse = held.sweep().coarsened(levels)
    size = coarse.threshold.size
    counts = np.bincount(held.cells(coarse.threshold), minlength=2 * size + 1)
    assert counts[:size].tolist() == coarse.right.tolist()
    assert counts[size : 2 * size].tolist() == coarse.wrong.tolist()
    assert counts[-1] == coarse.withheld


@given(tables(largest=15))
def test_totals_from_cells_are_totals_over_rows(rows):
    sweep = arrays(rows).sweep()
    stacked = Sweep(
        sweep.threshold.copy(),
        np.stack([sweep.right, sweep.right * 2]),
        np.stack([sweep.wrong, sweep.wrong * 2]),
        np.array([sweep.withheld, sweep.withheld * 2]),
        sweep.n,
    )
    one, both = cell_totals(Brier(), sweep), cell_totals(Brier(), stacked)
    assert both[0] == pytest.approx(one)
    assert both[1][:-1] == pytest.approx(2 * one[:-1])


@given(
    st.lists(SCORES, min_size=1, max_size=40),
    st.lists(SCORES, min_size=1, max_size=40, unique=True),
)
def test_rows_have_the_same_cells_however_many_levels_there_are(scores, levels):
    rows = Rows.of(scores, [k % 3 > 0 for k in range(len(scores))])
    sorted_levels = np.sort(np.array(levels, dtype=np.float64))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweep, "FEW_LEVELS", 0)
        by_sorting = rows.cells(sorted_levels)
    assert np.array_equal(by_sorting, rows.cells(sorted_levels))


def test_equal_weights_make_the_same_table_of_units_in_any_order():
    rng = np.random.default_rng(3)
    cell, unit = rng.integers(0, 7, 500), rng.integers(0, 11, 500)
    order = rng.permutation(500)
    ones = np.ones(500)
    one = resampling.units_by_cell(cell, unit, ones, cells=7, units=11)
    two = resampling.units_by_cell(cell[order], unit[order], ones, cells=7, units=11)
    assert np.array_equal(one.toarray(), two.toarray())
    assert np.array_equal(one.indices, two.indices)


def test_pulls_of_rows_that_are_units_are_those_of_rows_alone():
    rows = sample_rows(200, weighted=True)
    named = Rows(rows.confidence, rows.right, rows.answered, rows.weight, np.random.default_rng(2).permutation(200))
    influence = np.random.default_rng(4).normal(size=200)
    assert np.array_equal(rows.pulled(influence), named.pulled(influence))


def test_the_sweep_of_rows_is_made_once():
    rows = sample_rows(50)
    assert rows.sweep() is rows.sweep()


def test_other_units_share_the_sweep():
    rows = sample_rows(50)
    assert rows.drawn_by(np.arange(50)).sweep() is rows.sweep()
    assert rows.drawn_by(np.arange(50) // 5).units == 10


@pytest.mark.parametrize("kinds", [resampling.NARROW[:1], resampling.NARROW[1:], ((600, np.int16),)])
def test_replicates_are_the_same_whatever_kind_of_numbers_adds_them_up(monkeypatch, kinds):
    systems = [sample_rows(400, seed=seed).drawn_by(np.arange(400) // 3) for seed in (1, 2)]
    monkeypatch.setattr(resampling, "NARROW", ())
    wide = replicate_together(systems, replicates=60, seed=5)
    monkeypatch.setattr(resampling, "NARROW", kinds)
    monkeypatch.setattr(resampling, "DRAWN_AT_ONCE", 400)
    assert replicate_together(systems, replicates=60, seed=5) == wide
    assert {part.right.dtype for part in wide} == {np.dtype(np.float64)}


def few_errors(n=40, wrong=3):
    confidence = np.repeat([0.8, 0.9, 1.0, 0.9], n // 4)
    return Rows.of(confidence, np.arange(n) >= wrong)


def test_smoothed_replicates_are_on_average_what_was_seen_and_one_answer_of_each_kind():
    """At .8 there are 7 right and 3 wrong of 40. A quarter of a right and of a wrong answer is added."""
    drawn = Sample(few_errors(), 4000, 1).smoothed
    assert drawn.total == pytest.approx(np.full(4000, 40.0))
    shrunk = 40 / 42
    assert drawn.right.mean(axis=0) == pytest.approx(shrunk * np.array([7.25, 20.5, 10.25]), rel=0.02)
    assert drawn.wrong.mean(axis=0) == pytest.approx(shrunk * np.array([3.25, 0.5, 0.25]), rel=0.08)


def test_no_smoothed_replicate_is_without_errors_as_plain_ones_may_be():
    sample = Sample(few_errors(), 1000, 1)
    assert (sample.drawn.errors == 0).any()
    assert (sample.smoothed.errors > 0).all()
    assert (sample.smoothed.wrong[:, -1] > 0).any()


def test_with_many_answers_of_both_kinds_smoothed_replicates_are_the_plain_ones():
    sample = Sample(few_errors(4 * FEW, FEW), 20, 1)
    assert sample.smoothed is sample.drawn
    assert Sample(few_errors(4 * FEW, FEW - 1), 20, 1).smoothed is not sample.drawn


def test_what_is_added_to_dialogues_weighs_as_much_more_as_they_tell_less():
    rows = few_errors()
    together = Rows(rows.confidence, rows.right, rows.answered, rows.weight, np.arange(40) // 4)
    sample = Sample(together, 500, 1)
    assert sample.redundancy == pytest.approx(3, abs=1.2)
    added = sample.smoothed.errors - sample.drawn.errors
    assert added.mean() == pytest.approx(sample.redundancy, rel=0.15)
    assert Sample(rows, 500, 1).redundancy == 1
