import itertools

import narwhals as nw
import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from demur.core.engines.engine import collect_frame
from demur.core.stats.sweep import Sweep
from demur.returns.curves import error_return
from demur.returns.tally import FINE, ConfidenceGrid, dense_cells, grid_for, joined_sweep
from reference.rows import arrays, tables

FINITE = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(-1.0, 1.0),
    st.sampled_from([-0.0, 0.0, 5e-324, -5e-324, 1e-300, 0.5, 0.75, 1.0, -1e308, 1.7e308]),
)
ANY = st.one_of(FINITE, st.sampled_from([np.inf, -np.inf]))
TAME = st.one_of(st.floats(-1e6, 1e6).filter(lambda score: score == 0 or abs(score) > 1e-200), st.floats(0.0, 1.0))


def grids(scores):
    """Grids as they come about over confidences: some cells cut finer, of these again some, within what is exact."""

    def build(draw):
        held = draw(st.lists(scores, min_size=1, max_size=12))
        finite = [abs(score) for score in held if np.isfinite(score)]
        largest = max(finite, default=0.0)
        grid = ConfidenceGrid.over(largest, draw(st.sampled_from([1, 3, FINE])))
        for _ in range(draw(st.integers(0, 3))):
            if not grid.may_be_finer(largest, 4):
                break
            starts = sorted({float(start) for start in grid.of(held) if np.isfinite(start)})
            dense = draw(st.frozensets(st.sampled_from(starts))) if starts else frozenset()
            grid = grid.finer(dense, 4)
        return held, grid

    return st.composite(build)()


def test_cells_worked_by_hand():
    """Quarters; from 0.75 on sixty-fourths: 0.8 = 51.2/64 and 0.9 = 57.6/64."""
    grid = ConfidenceGrid((4.0,)).finer(frozenset({0.75}), 4)
    assert grid.cuts == (4.0, 64.0)
    assert grid.of([-0.1, 0.1, 0.74, 0.8, 0.9]).tolist() == [-0.25, 0.0, 0.5, 51 / 64, 57 / 64]


@pytest.mark.parametrize(("largest", "cut"), [(1.0, 2**19), (0.999, 2**20), (3.0, 2**18), (0.0, 2**20)])
def test_the_first_cut_has_a_million_cells_up_to_the_power_of_two_above(largest, cut):
    grid = ConfidenceGrid.over(largest)
    assert grid.cuts == (float(cut),)
    assert grid.cuts[0] == cut


@pytest.mark.parametrize("largest", [5e-324, 1e-310, 1.7e308])
def test_however_small_or_large_confidences_are_there_is_a_grid(largest):
    grid = ConfidenceGrid.over(largest)
    assert np.isfinite(grid.cuts[0])
    assert grid.of([0.0, largest]).tolist()[0] == 0


@given(grids(ANY))
@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_every_engine_puts_a_confidence_into_the_cell_numpy_puts_it_into(engine, held):
    scores, grid = held
    frame = nw.from_native(pl.DataFrame({"place": range(len(scores)), "confidence": scores}))
    lazy = frame.lazy() if engine == "polars" else frame.lazy("duckdb")
    cells = collect_frame(lazy.select("place", cell=grid.key(nw.col("confidence")))).sort("place")["cell"]
    assert (cells.to_numpy() == grid.of(scores)).all()


@given(grids(ANY))
def test_cells_keep_the_order_of_confidences(held):
    scores, grid = held
    cells = grid.of(np.sort(scores))
    assert (cells[1:] >= cells[:-1]).all()


@given(grids(TAME))
def test_a_cell_starts_at_or_below_its_confidences_and_is_no_wider_than_the_resolution(held):
    scores, grid = held
    cells = grid.of(scores)
    assert (cells <= scores).all()
    assert (np.array(scores) - cells <= 1 / grid.cuts[0]).all()


@given(st.lists(TAME, min_size=1, max_size=12), st.data())
def test_cells_of_two_grids_are_apart_or_one_within_the_other(scores, data):
    points = np.unique(np.array(scores))
    parts = []
    for _ in range(2):
        _, grid = data.draw(grids(TAME))
        cell = grid.of(points)
        parts.append([frozenset(points[cell == start].tolist()) for start in np.unique(cell)])
    for one, two in itertools.product(*parts):
        assert not one & two or one <= two or two <= one


@given(grids(TAME), st.data())
def test_cutting_finer_only_divides_cells(held, data):
    scores, grid = held
    dense = data.draw(st.frozensets(st.sampled_from(sorted(set(grid.of(scores).tolist())))))
    finer = grid.finer(dense, 4)
    assert (grid.of(finer.of(scores)) == grid.of(scores)).all()


def test_dense_cells_are_the_heavy_ones_that_can_be_divided():
    cell = np.array([0.0, 0.0, 0.5, 0.75])
    score = np.array([0.1, 0.2, 0.5, 0.8])
    assert dense_cells(cell, score, score, np.array([3.0, 3.0, 9.0, 1.0]), most=5.0) == {0.0}
    assert dense_cells(cell, score, score, np.array([3.0, 3.0, 9.0, 1.0]), most=6.0) == frozenset()


@pytest.mark.parametrize("power", [1, 8])
def test_a_grid_for_a_sweep_gives_about_as_many_cells_of_about_equal_weight(power):
    score = np.random.default_rng(0).random(20_000) ** power
    sweep = Sweep.of(score, np.ones(20_000, bool))
    joined = joined_sweep(sweep, grid_for(sweep, 256))
    assert 128 <= joined.threshold.size <= 1024
    assert joined.slack[0] <= 2 / 256


def exact_and_joined(rows, grid):
    sweep = arrays(rows).sweep()
    assume(sweep.threshold.size)
    return sweep, joined_sweep(sweep, grid)


@given(tables(st.floats(0, 1), largest=40), st.integers(0, 5))
def test_the_curve_that_joins_confidences_is_nowhere_off_by_more_than_its_slack(rows, cells):
    exact, joined = exact_and_joined(rows, ConfidenceGrid.over(1.0, cells))
    curves = [error_return(sweep) for sweep in (exact, joined)]
    x_within, y_within = joined.slack
    for cutoff in [*exact.threshold, *(exact.threshold + 1e-9), 0.33, -1.0, 2.0]:
        one, two = (curve.at_threshold(cutoff)[0] for curve in curves)
        assert abs(one - two) <= x_within + 1e-12
    x = np.union1d(np.linspace(0, 1, 101), exact.rates[0])
    assert (np.abs(curves[0].error_at(x) - curves[1].error_at(x)) <= y_within + 1e-12).all()


@given(tables(st.floats(0, 1), largest=40), st.integers(0, 5))
def test_every_cutoff_left_is_a_point_of_the_exact_curve(rows, cells):
    exact, joined = exact_and_joined(rows, ConfidenceGrid.over(1.0, cells))
    for cutoff in joined.threshold:
        assert error_return(joined).at_threshold(cutoff) == error_return(exact).at_threshold(cutoff)
    assert joined.total == exact.total


@given(tables(st.sampled_from([k / 8 for k in range(9)]), largest=20))
def test_cells_of_a_single_confidence_lose_nothing(rows):
    exact, joined = exact_and_joined(rows, ConfidenceGrid.over(1.0, 4))
    assert joined == exact
    assert joined.upper is None
    assert joined.slack == (0.0, 0.0)
