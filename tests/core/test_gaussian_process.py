import json
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from demur.core.stats.smoothing import MOST_POINTS, Process, smooth
from demur.errors import DataError, UsageError
from reference.gaussian_process import smoothed


def scattered(n, *, seed=0, decimals=None, noise=0.5, truth=np.sin, width=6.0):
    rng = np.random.default_rng(seed)
    x = rng.random(n) * width
    x = x if decimals is None else x.round(decimals)
    return x, truth(x) + rng.normal(0.0, noise, n)


PROCESSES = st.builds(
    Process,
    length=st.floats(0.05, 60.0),
    signal=st.floats(0.05, 20.0),
    noise=st.floats(0.05, 3.0),
)
DATA = st.builds(
    scattered,
    st.sampled_from([2, 3, 7, 40]),
    seed=st.integers(0, 10_000),
    decimals=st.sampled_from([None, 1, 0]),
    noise=st.sampled_from([0.01, 0.5]),
)
fewer = settings(max_examples=settings.default.max_examples // 2)
"""Each fit takes hundreds of likelihoods."""


@given(DATA, PROCESSES)
def test_mean_error_and_likelihood_are_those_of_the_dense_formulae(data, process):
    at = np.array([3.0, -2.0, 0.0, 2.0, 2.0, 5.9, 9.0])
    ours = smooth(*data, at=at, process=process)
    mean, error, likelihood = smoothed(*data, at, process.length, process.signal, process.noise)
    assert ours.mean == pytest.approx(mean, rel=1e-6, abs=1e-6)
    assert ours.error == pytest.approx(error, rel=1e-6, abs=1e-6)
    assert ours.log_likelihood == pytest.approx(likelihood, rel=1e-6, abs=1e-6)


@fewer
@given(DATA)
def test_no_parameters_nearby_are_likelier_than_the_fitted_ones(data):
    ours = smooth(*data, points=2)
    if ours.signal == 0:
        return
    x, y = data
    for long, loud, rough in ((1.05, 1, 1), (1, 1.05, 1), (1, 1, 1.05), (0.95, 1, 1), (1, 0.95, 1), (1, 1, 0.95)):
        nearby = Process(ours.length * long, ours.signal * loud, ours.noise * rough)
        width = float(np.ptp(x))
        if 0.1 <= nearby.length / width <= 1e3 and 1e-10 <= (nearby.noise / nearby.signal) ** 2 <= 1e6:
            assert smooth(x, y, points=2, process=nearby).log_likelihood <= ours.log_likelihood + 1e-4


@fewer
@given(DATA, st.randoms(use_true_random=False))
def test_the_order_of_points_does_not_matter(data, random):
    x, y = data
    order = list(range(x.size))
    random.shuffle(order)
    one, other = smooth(x, y, points=5), smooth(x[order], y[order], points=5)
    assert other.to_dict() == one.to_dict()
    assert [part.tolist() for part in other.points] == [part.tolist() for part in one.points]


@fewer
@given(
    DATA,
    st.sampled_from([1e-200, 1e-6, 1.0, 1e9, 1e200]),
    st.sampled_from([0.0, -1e4]),
    st.sampled_from([1e-200, 1e-3, 1e7, 1e200]),
)
def test_units_and_offsets_change_the_curve_with_them_and_nothing_else(data, up, lift, across):
    x, y = data
    plain = smooth(x, y, points=5)
    moved = smooth(x * across, (y + lift) * up, points=5)
    assert moved.mean / up - lift == pytest.approx(plain.mean, rel=1e-2, abs=1e-2)
    assert moved.error / up == pytest.approx(plain.error, rel=1e-2, abs=1e-2)
    assert moved.x / across == pytest.approx(plain.x)
    assert moved.log_likelihood + (x.size - 1) * math.log(up) == pytest.approx(plain.log_likelihood, abs=1e-2)


def test_two_points_give_their_mean_and_half_their_distance_as_its_error():
    line = smooth([1.0, 3.0], [4.0, 10.0], points=4)
    assert line.mean.tolist() == pytest.approx([7.0] * 4)
    assert line.error.tolist() == pytest.approx([3.0] * 4)
    assert line.noise == pytest.approx(6 / math.sqrt(2))
    assert line.log_likelihood == pytest.approx(-0.5 * (math.log(2 * math.pi * 18) + 1 + math.log(2)))
    assert (line.signal, line.length) == (0.0, math.inf)


def test_two_points_far_apart_pull_the_curve_as_the_formula_says():
    """So far apart that they share nothing but the constant: at a point, weights (signal² / (signal² + noise²))."""
    curve = smooth([0.0, 1000.0], [0.0, 2.0], at=[0.0, 500.0, 1000.0], process=Process(1.0, 1.0, 1.0))
    assert curve.mean.tolist() == pytest.approx([0.5, 1.0, 1.5])
    assert curve.error.tolist() == pytest.approx(np.sqrt([0.5 + 0.25, 1 + 1, 0.5 + 0.25]).tolist())
    assert curve.log_likelihood == pytest.approx(-0.5 * (math.log(2 * math.pi) + math.log(4) + 1 + math.log(1)))


def test_one_point_is_its_own_mean_with_no_known_error():
    line = smooth([2.0], [7.0])
    assert (line.x.tolist(), line.mean.tolist(), line.n) == ([2.0], [7.0], 1)
    assert math.isnan(line.error[0])
    assert math.isnan(line.noise)
    assert smooth([2.0], [7.0], at=[0, 9]).mean.tolist() == [7.0, 7.0]


def test_points_at_one_x_give_their_mean_with_its_usual_error():
    line = smooth([5, 5, 5, 5], [1.0, 2.0, 3.0, 6.0], at=[5, 6])
    assert line.mean.tolist() == [3.0, 3.0]
    assert line.error.tolist() == pytest.approx([math.sqrt(14 / 3) / 2] * 2)
    assert smooth([5, 5], [1.0, 2.0]).x.tolist() == [5.0]


@pytest.mark.parametrize("height", [0.0, 0.1, -1e300, 1e-300])
def test_points_of_one_height_give_a_line_without_error(height):
    line = smooth([1, 2, 2, 3], [height] * 4, points=3)
    assert line.mean.tolist() == [height] * 3
    assert line.error.tolist() == [0.0] * 3
    assert line.log_likelihood == math.inf
    assert line.to_dict()["log_likelihood"] == "inf"


def test_two_places_give_their_two_means_where_these_are_clearly_apart():
    rng = np.random.default_rng(0)
    x = np.repeat([1.0, 2.0], 50)
    y = np.where(x == 1, 10.0, 20.0) + rng.normal(0, 1, 100)
    curve = smooth(x, y, points=2)
    assert curve.mean.tolist() == pytest.approx([y[:50].mean(), y[50:].mean()], abs=0.02)
    assert curve.error.tolist() == pytest.approx([0.14, 0.14], abs=0.02)
    assert curve.length == pytest.approx(1.0, rel=0.2)


def test_noise_alone_gives_the_flat_line_of_the_mean():
    y = np.array([3.0, 1.0, 2.0, 2.5, 1.5, 2.2, 1.8])
    line = smooth(np.array([3, 0, 4, 1, 6, 5, 2]), y, points=3)
    assert line.signal == 0
    assert line.mean == pytest.approx(np.full(3, y.mean()))
    assert line.error == pytest.approx(np.full(3, y.std(ddof=1) / math.sqrt(7)))


def test_points_on_a_line_give_that_line_beyond_them_too():
    x = np.linspace(0, 1, 30)
    line = smooth(x, 2 * x + 1, at=[0.0, 0.5, 1.0, 1.2])
    assert line.mean.tolist() == pytest.approx([1.0, 2.0, 3.0, 3.4], abs=1e-3)
    assert line.error[:3].max() < 1e-3


def test_points_closer_than_rounding_count_as_one():
    x = np.array([0.1 + 0.2, 0.3, 1.0, 2.0])
    apart, together = (smooth(given, [1.0, 2.0, 4.0, 3.0], points=3) for given in (x, x.round(6)))
    assert apart.mean == pytest.approx(together.mean)
    assert apart.error == pytest.approx(together.error)
    assert apart.log_likelihood == pytest.approx(together.log_likelihood)


def test_points_as_close_as_may_be_do_not_upset_the_curve():
    rng = np.random.default_rng(1)
    x = np.concatenate([[0.0, 1.0], 0.5 + 3e-9 * np.arange(60)])
    y = rng.normal(0, 1, x.size)
    mean, error, likelihood = smoothed(x, y, x[:20], 0.3, 2.0, 0.7)
    ours = smooth(x, y, at=x[:20], process=Process(0.3, 2.0, 0.7))
    assert ours.mean == pytest.approx(mean, abs=1e-6)
    assert ours.error == pytest.approx(error, abs=1e-6)
    assert ours.log_likelihood == pytest.approx(likelihood, abs=1e-6)


def test_a_known_function_is_recovered_within_its_error():
    x, y = scattered(1500, seed=3)
    curve = smooth(x, y)
    assert np.abs(curve.mean - np.sin(curve.x)).max() < 0.12
    assert curve.noise == pytest.approx(0.5, rel=0.05)
    assert np.abs(curve.mean - np.sin(curve.x)).max() < 4 * curve.error.max()


def test_a_band_of_one_standard_error_holds_the_truth_about_two_times_in_three():
    at = np.linspace(0.3, 5.7, 15)
    held = []
    for seed in range(12):
        curve = smooth(*scattered(80, seed=seed, decimals=1), at=at)
        held.append(np.abs(curve.mean - np.sin(at)) <= curve.error)
    assert 0.56 < np.mean(held) < 0.82


@pytest.mark.filterwarnings("ignore:lbfgs failed to converge")
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("decimals", [None, 1])
def test_the_likelihood_is_at_least_that_which_scikit_learn_finds(seed, decimals):
    """A constant of huge variance stands there for the flat prior here; it costs log(2 pi variance) / 2."""
    pytest.importorskip("sklearn")
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    x, y = scattered(60, seed=seed, decimals=decimals)
    constant = 1e6
    kernel = ConstantKernel(constant, "fixed") + ConstantKernel(1.0) * Matern(1.0, nu=2.5) + WhiteKernel(0.25)
    peer = GaussianProcessRegressor(kernel, n_restarts_optimizer=2, random_state=0).fit(x[:, None], y)
    theirs = peer.log_marginal_likelihood_value_ + 0.5 * math.log(2 * math.pi * constant)
    ours = smooth(x, y, at=np.linspace(0, 6, 9))
    assert ours.log_likelihood >= theirs - 1e-3
    if ours.log_likelihood <= theirs + 1e-3:
        mean, error = peer.predict(np.linspace(0, 6, 9)[:, None], return_std=True)
        assert ours.mean == pytest.approx(mean, abs=0.01)
        noise = peer.kernel_.k2.noise_level
        assert ours.error == pytest.approx(np.sqrt(error**2 - noise), abs=0.01)


def test_the_grid_covers_the_points_and_the_table_has_the_band():
    curve = smooth(*scattered(30), points=7, name="MDP")
    table = curve.frame()
    assert table.columns == ["group", "x", "mean", "error", "low", "high"]
    assert table["group"].unique().to_list() == ["MDP"]
    assert (table["high"] - table["low"]).to_numpy() == pytest.approx(2 * curve.error)
    assert (curve.x[0], curve.x[-1]) == pytest.approx((curve.points[0].min(), curve.points[0].max()))


def test_plain_values_survive_json():
    told = smooth(*scattered(30), points=7, name="MDP").to_dict()
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert (told["group"], told["n"], len(told["x"])) == ("MDP", 30, 7)
    assert smooth([1.0], [2.0]).to_dict()["error"] == [None]


def test_of_many_points_2000_are_kept_for_the_chart_evenly_along_x():
    x, y = np.arange(5000.0)[::-1], np.arange(5000.0) % 7
    kept = smooth(x, y, process=Process(100.0, 1.0, 1.0)).points
    assert kept[0].size == kept[1].size == MOST_POINTS
    assert (kept[0][0], kept[0][-1]) == (0.0, 4999.0)
    assert np.diff(kept[0]).max() <= 3
    assert (kept[1] == y[(4999 - kept[0]).astype(int)]).all()


def test_series_and_lists_are_read_alike():
    x, y = scattered(12)
    assert smooth(pl.Series(x), pl.Series(y)).to_dict() == smooth(x.tolist(), y.tolist()).to_dict()


@pytest.mark.parametrize(
    ("x", "y", "fault"),
    [
        ([], [], "at least one point"),
        ([1.0, 2.0], [1.0], 'same length; got "2 and 1"'),
        ([1.0, math.nan], [1.0, 2.0], "row 2: x must be a finite number; got nan"),
        ([1.0, 2.0, 3.0], [1.0, 2.0, math.inf], "row 3: y must be a finite number; got inf"),
        ([[1.0]], [[1.0]], "x must be one row of numbers"),
        (["a"], [1.0], "x must be numbers"),
    ],
)
def test_bad_points_are_refused_by_row(x, y, fault):
    with pytest.raises(DataError, match=fault):
        smooth(x, y)


def test_bad_requests_are_refused():
    with pytest.raises(DataError, match="row 1: at must be a finite number"):
        smooth([1, 2], [1, 2], at=[math.nan])
    with pytest.raises(UsageError, match="at least 2 points; got 1"):
        smooth([1, 2], [1, 2], points=1)
    with pytest.raises(UsageError, match="above 0"):
        smooth([1, 2], [1, 2], process=Process(1.0, 1.0, 0.0))
