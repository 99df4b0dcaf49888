"""A smooth curve with its standard error through scattered points: Gaussian-process regression in one dimension."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from demur.core.arrays import Array
from demur.core.show.results import Shown, plain
from demur.errors import DataError, UsageError

STATIONARY = np.array([[1, 0, -1 / 3], [0, 1 / 3, 0], [-1 / 3, 0, 1]])
"""Covariance of f and its two derivatives, where the signal has variance 1 and x is counted in length / √5."""

MOVES = np.array(
    [
        [[1, 1, 1 / 2], [0, 1, 1], [0, 0, 1 / 2]],
        [[0, 0, -1 / 2], [1, 1, -1], [0, 1, -1 / 2]],
        [[0, -1, 1 / 2], [0, -3, 1], [1, -2, 1 / 2]],
    ]
)
"""Powers 0 to 2 of a gap in what f and its derivatives after the gap take over from those before it, less exp(-gap)."""

PRODUCTS = np.array([[np.convolve(one, two) for two in MOVES[:, 2]] for one in MOVES[:, 2]])
"""Powers 0 to 4 of a gap in the products of each two entries of the last column of the transition, less exp(-2 gap)."""

BLOCK, BAND, CENTRE = 7, 5, 10
"""Unknowns for each place, diagonals on either side, and the row of the main diagonal in LAPACK's banded form."""

MULTIPLIERS, WEIGHT, STATES = slice(0, 3), 3, slice(4, 7)
"""Within a block: multipliers of the transition, weight of the point (a row of K⁻¹ y), f and its derivatives."""

MOST_CELLS = 4_000_000
"""Numbers on the right-hand side of one solution."""


def _transitions(gaps: Array) -> tuple[Array, Array]:
    """Transition matrix and covariance of what is added on the way, for every gap.

    The covariance is 16/3 ∫ v(s) v(s)ᵀ exp(-2s) ds over the gap, v the last column of the transition. Its integrals
    come from the highest power down, so that nothing cancels where gaps are small.
    """
    from scipy.special import gammainc

    powers = np.power.outer(gaps, np.arange(6))
    transition = np.tensordot(powers[:, :3], MOVES, axes=(1, 2)) * np.exp(-gaps)[:, None, None]
    integrals = np.empty((gaps.size, 5))
    integrals[:, 4] = 0.75 * gammainc(5, 2 * gaps)
    for power in range(3, -1, -1):
        integrals[:, power] = (powers[:, power + 1] * np.exp(-2 * gaps) + 2 * integrals[:, power + 1]) / (power + 1)
    return transition, 16 / 3 * np.tensordot(integrals, PRODUCTS, axes=(1, 2))


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """Equations of the Markov chain, factored.

    The unknowns of all places stand in one vector: multipliers m of the transitions, weights w of the points, states s:

        -Q m + B s = 0          s of a place less what it takes over from the one before, Q the covariance added
        -R w - H s = -y         R the noise, H picks f
        Bᵀ m - Hᵀ w = 0

    The matrix has five diagonals on each side and no inverse in it, so neither gaps nor noise can be too small; its
    determinant is that of K + R but for the sign, and w = (K + R)⁻¹ y.
    """

    factors: Array
    pivots: NDArray[np.int32]
    log_determinant: float

    @classmethod
    def of(cls, gaps: Array, noise: Array) -> Chain:
        """The equations of places with gaps between them; those whose noise is NaN have no point."""
        from scipy.linalg.lapack import dgbtrf

        factors, pivots, _ = dgbtrf(_matrix(gaps, noise), BAND, BAND, overwrite_ab=1)
        return cls(factors, pivots, float(np.log(np.abs(factors[CENTRE])).sum()))

    def solved(self, given: Array) -> tuple[Array, Array]:
        """States f and weights of the points for columns of y."""
        right = np.zeros((given.shape[0], BLOCK, given.shape[1]))
        right[:, WEIGHT] = -given
        unknowns = self._solution(right)
        return unknowns[:, STATES.start], unknowns[:, WEIGHT]

    def variances(self, places: NDArray[np.int64]) -> Array:
        """Variance of f at some places once the points are known."""
        size = self.factors.shape[1] // BLOCK
        step = max(1, MOST_CELLS // self.factors.shape[1])
        variances = np.empty(places.size)
        for start in range(0, places.size, step):
            some = places[start : start + step]
            right, column = np.zeros((size, BLOCK, some.size)), np.arange(some.size)
            right[some, STATES.start, column] = 1.0
            variances[start : start + step] = self._solution(right)[some, STATES.start, column]
        return np.maximum(variances, 0.0)

    def _solution(self, right: Array) -> Array:
        from scipy.linalg.lapack import dgbtrs

        flat = right.reshape(-1, right.shape[2])
        return np.asarray(dgbtrs(self.factors, BAND, BAND, flat, self.pivots)[0]).reshape(right.shape)


def _matrix(gaps: Array, noise: Array) -> Array:
    """The matrix of the equations in LAPACK's banded form, with room for pivots."""
    cells = np.zeros((noise.size, BLOCK, CENTRE + BAND + 1))
    transition, added = _transitions(gaps)
    covariance = np.concatenate([STATIONARY[None], added])
    seen = ~np.isnan(noise)

    def put(row: int, column: int, values: Any) -> None:
        """Write an entry of every block and its mirror image; a column below 0 is one of the block before."""
        before = column < 0
        cells[: -1 if before else None, column % BLOCK, CENTRE + row - column] = values
        cells[1 if before else 0 :, row, CENTRE + column - row] = values

    for row in range(3):
        for column in range(3):
            put(MULTIPLIERS.start + row, MULTIPLIERS.start + column, -covariance[:, row, column])
            put(MULTIPLIERS.start + row, STATES.start + column - BLOCK, -transition[:, row, column])
        put(MULTIPLIERS.start + row, STATES.start + row, 1.0)
    put(WEIGHT, WEIGHT, np.where(seen, -noise, 1.0))
    put(WEIGHT, STATES.start, np.where(seen, -1.0, 0.0))
    return np.asarray(cells.reshape(-1, cells.shape[2]).T)


MOST_POINTS = 2000
"""Points of the data that a result keeps for its chart."""

TOLERANCE = 1e-9
"""Values of x closer than this share of their range count as the same: they differ by rounding only."""

LENGTHS = (0.1, 1e3)
"""Bounds of the length, as a share of the range of x; shorter ones let a curve run through every point of a few."""

RATIOS = (1e-10, 1e6)
"""Bounds of the variance of the noise over that of the signal."""

STARTS = 3
"""Places on the coarse grid from which the greatest likelihood is sought."""

LEAST = 1e-20
"""Sum of squares, on a scale where y has a deviation of 1, below which only rounding is left."""

PULL = 1e-5
"""Weight of the squared logarithm of the length, which leads to a length of the range of x where points tell none."""

GAIN = 1e-4
"""Log likelihood that a curve must win over the flat line; below it there is nothing that the points could tell."""


@dataclass(frozen=True, slots=True)
class Process:
    """Parameters of the process: how far along x values stay alike, sd of the function, sd of the noise.

    A signal of 0 is a flat line.
    """

    length: float
    signal: float
    noise: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Smooth(Shown):
    """A curve over a grid of x with the standard error of its height.

    `error` is the posterior standard deviation of constant + f, without the noise of single points: `mean` ± `error`
    is a band of one standard error. It is NaN for a single point, which says nothing of its own spread. A flat line
    has a signal of 0 and an infinite length. `points` are the data, at most 2,000 of them, evenly chosen along x.
    """

    name: str
    x: Array
    mean: Array
    error: Array
    n: int
    length: float
    signal: float
    noise: float
    log_likelihood: float
    points: tuple[Array, Array]

    def frame(self) -> pl.DataFrame:
        """The curve as a table, one row per place on the grid, with the ends of the band of one standard error."""
        columns = {"x": self.x, "mean": self.mean, "error": self.error}
        band = {"low": self.mean - self.error, "high": self.mean + self.error}
        return pl.DataFrame({**columns, **band}).select(pl.lit(self.name).alias("group"), pl.all())

    def to_dict(self) -> dict[str, Any]:
        """The curve as plain values; NaN becomes null."""
        fitted = {"length": self.length, "signal": self.signal, "noise": self.noise}
        curve = {"x": self.x.tolist(), "mean": self.mean.tolist(), "error": self.error.tolist()}
        about = {"group": self.name, "n": self.n, **fitted, "log_likelihood": self.log_likelihood}
        return {str(key): plain(value) for key, value in {**about, **curve}.items()}


def smooth(
    x: ArrayLike,
    y: ArrayLike,
    *,
    at: ArrayLike | None = None,
    points: int = 120,
    name: str = "",
    process: Process | None = None,
) -> Smooth:
    """The mean of y as a smooth function of x, with its standard error, by Gaussian-process regression.

    The curve is given `at` some places, or else at `points` of them evenly over the range of x. Its parameters are
    fitted, unless a `process` is given. Where the points give no reason for a curve it is the flat line of their mean,
    with the usual standard error, their standard deviation / √n.

    >>> line = smooth([0, 1], [4, 6], points=3)
    >>> line.mean, line.error
    (array([5., 5., 5.]), array([1., 1., 1.]))
    """
    across, up = _check_points(x, y)
    if process is not None and not (
        process.length > 0 and 0 <= process.signal < math.inf and 0 < process.noise < math.inf
    ):
        raise UsageError(f"length and noise must be above 0 and a signal at least 0; got {process}")
    x_scale, y_scale = _Scale.of(across, by_range=True), _Scale.of(up)
    data = _pooled(x_scale.there(across), y_scale.there(up))
    if at is None and points < 2:
        raise UsageError(f"a curve is drawn through at least 2 points; got {points}")
    even = np.linspace(0.0, 1.0, points) if data.x.size > 1 else np.zeros(1)
    grid = even if at is None else x_scale.there(_finite_row(at, "at"))
    known = None if process is None else _rescaled(process, 1 / x_scale.width, 1 / y_scale.width)
    fit, log_likelihood = _fit(data) if known is None else (known, _log_likelihood(data, known))
    mean, error = _curve(data, fit, grid)
    there = x_scale.back(grid) if at is None else _finite_row(at, "at")
    wide = process or _rescaled(fit, x_scale.width, y_scale.width)
    kept = np.linspace(0, across.size - 1, min(across.size, MOST_POINTS)).round().astype(np.int64)
    return Smooth(
        name,
        there,
        y_scale.back(mean),
        error * y_scale.width,
        across.size,
        wide.length,
        wide.signal,
        wide.noise,
        log_likelihood - (across.size - 1) * y_scale.log_width,
        (across[kept], up[kept]),
    )


def _check_points(x: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    """The points in the order of x and y, so that in whatever order they come, every sum is the same."""
    across, up = _finite_row(x, "x"), _finite_row(y, "y")
    if across.size != up.size:
        raise DataError("x and y must be of the same length", got=f"{across.size} and {up.size}")
    if not across.size:
        raise DataError("a curve needs at least one point", got="none", fix="is a group or a filter empty?")
    order = np.lexsort((up, across))
    return across[order], up[order]


def _finite_row(values: ArrayLike, called: str) -> Array:
    """The values as one row of finite numbers."""
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError("must be numbers", where=called, got=str(values)[:60]) from None
    if numbers.ndim != 1:
        raise DataError("must be one row of numbers", where=called, got=f"{numbers.ndim} dimensions")
    bad = np.flatnonzero(~np.isfinite(numbers))
    if bad.size:
        where, fix = f"row {bad[0] + 1}: {called}", "leave out rows without a value"
        raise DataError("must be a finite number", where=where, got=float(numbers[bad[0]]), fix=fix)
    return numbers


@dataclass(frozen=True, slots=True)
class _Scale:
    """A shift and a width that bring numbers near 1; `power` of 2 comes first, which is exact and cannot overflow."""

    power: int
    shift: float
    spread: float

    @classmethod
    def of(cls, values: Array, *, by_range: bool = False) -> _Scale:
        """A scale on which the values run from 0 to 1, or have mean 0 and deviation 1; alike they all become 0."""
        power = int(np.frexp(np.abs(values).max())[1])
        small = np.ldexp(values, -power)
        if float(np.ptp(small)) == 0.0:
            return cls(power, float(small[0]), 1.0)
        if by_range:
            return cls(power, float(small.min()), float(np.ptp(small)))
        return cls(power, float(np.mean(small)), float(np.std(small)))

    @property
    def width(self) -> float:
        return math.ldexp(self.spread, self.power)

    @property
    def log_width(self) -> float:
        """The logarithm of the width, also where the width itself is too small for a number."""
        return math.log(self.spread) + self.power * math.log(2)

    def there(self, values: Array) -> Array:
        return np.asarray((np.ldexp(values, -self.power) - self.shift) / self.spread)

    def back(self, values: Array) -> Array:
        return np.asarray(np.ldexp(values * self.spread + self.shift, self.power))


def _rescaled(process: Process, across: float, up: float) -> Process:
    return Process(process.length * across, process.signal * up, process.noise * up)


@dataclass(frozen=True, slots=True, eq=False)
class _Pooled:
    """Points with the same x as one: how many there are, their mean and their sum of squares about it."""

    x: Array
    y: Array
    n: Array
    within: float

    @property
    def total(self) -> float:
        return float(self.n.sum())

    @property
    def mean(self) -> float:
        return float(self.n @ self.y) / self.total

    @property
    def squares(self) -> float:
        """Sum of squares of all points about their mean."""
        return self.within + float(self.n @ np.square(self.y - self.mean))


def _pooled(x: Array, y: Array) -> _Pooled:
    """Points in the order of x, those with the same x made one."""
    group = np.cumsum(np.diff(x, prepend=x[0]) > TOLERANCE)
    n = np.bincount(group).astype(np.float64)
    mean = np.bincount(group, y) / n
    return _Pooled(np.bincount(group, x) / n, mean, n, float(np.square(y - mean[group]).sum()))


def _fit(data: _Pooled) -> tuple[Process, float]:
    """The parameters of the greatest likelihood and its logarithm; the flat line unless a curve is likelier than it.

    The noise of the flat line is the standard deviation of the points, unknown for a single one.
    """
    noise = math.sqrt(data.squares / (data.total - 1)) if data.total > 1 else math.nan
    flat = Process(math.inf, 0.0, noise)
    level = _log_likelihood(data, flat)
    if data.x.size < 2 or data.total < 3 or not noise > 0:
        return flat, level
    best = max((_climbed(data, start) for start in _starts(data)), key=lambda fit: fit[1])
    return best if best[1] > level + GAIN else (flat, level)


def _starts(data: _Pooled) -> list[Array]:
    """The best places of a coarse grid of logarithms of length and noise ratio that no neighbour outdoes."""
    lengths, ratios = np.log(np.geomspace(LENGTHS[0], 30.0, 8)), np.log(np.geomspace(1e-7, 1e3, 8))
    heights = np.array([[_profile(data, np.array([long, loud])) for loud in ratios] for long in lengths])
    around = np.pad(heights, 1, constant_values=-np.inf)
    near = np.lib.stride_tricks.sliding_window_view(around, (3, 3)).max(axis=(2, 3))
    tops = [(heights[place], place) for place in zip(*np.nonzero(heights >= near), strict=True)]
    best = sorted(tops, key=lambda top: -top[0])[:STARTS]
    return [np.array([lengths[long], ratios[loud]]) for _, (long, loud) in best]


def _climbed(data: _Pooled, start: Array) -> tuple[Process, float]:
    """The greatest likelihood that is reached uphill from a start."""
    from scipy.optimize import minimize  # takes longer to load than a small fit to run

    best = minimize(
        lambda place: PULL * place[0] ** 2 - _profile(data, place),
        start,
        method="Nelder-Mead",
        bounds=[tuple(np.log(LENGTHS)), tuple(np.log(RATIOS))],
        options={"xatol": 1e-4, "fatol": 1e-9, "initial_simplex": start + 0.7 * np.array([[0, 0], [1, 0], [0, 1]])},
    )
    length, ratio = (float(part) for part in np.exp(best.x))
    signal = math.sqrt(_evidence(data, length, ratio)[1] / (data.total - 1))
    return Process(length, signal, signal * math.sqrt(ratio)), _profile(data, best.x)


def _log_likelihood(data: _Pooled, process: Process) -> float:
    """Log density of the points with the constant integrated out; infinite where no noise is left to explain."""
    free = data.total - 1
    if free == 0:
        return 0.0
    if process.noise == 0:
        return math.inf
    variance = process.signal**2 or process.noise**2
    spread, squares = math.log(data.total), data.squares
    if process.signal:
        spread, squares = _evidence(data, process.length, process.noise**2 / variance)
    return -0.5 * (free * math.log(2 * math.pi * variance) + squares / variance + spread)


def _profile(data: _Pooled, place: Array) -> float:
    """Log likelihood at log length and log noise ratio, with the variance that makes it greatest."""
    (spread, squares), free = _evidence(data, *np.exp(place)), data.total - 1
    return -0.5 * (free * (math.log(2 * math.pi * squares / free) + 1) + spread)


def _evidence(data: _Pooled, length: float, ratio: float) -> tuple[float, float]:
    """What the likelihood is made of when the signal has variance 1: log determinants, and the weighted squares.

    Rasmussen and Williams (2006), equation 2.45 with a flat prior on the constant, for pooled points.
    """
    system = Chain.of(np.diff(data.x) * (math.sqrt(5) / length), ratio / data.n)
    _, weighed = system.solved(np.stack([data.y, np.ones(data.x.size)], axis=1))
    held = float(weighed[:, 1].sum())
    squares = float(data.y @ weighed[:, 0]) - float(weighed[:, 0].sum()) ** 2 / held + data.within / ratio
    repeated = data.total - data.x.size
    spread = system.log_determinant + math.log(held) + repeated * math.log(ratio) + float(np.log(data.n).sum())
    return spread, max(squares, LEAST)


def _curve(data: _Pooled, process: Process, at: Array) -> tuple[Array, Array]:
    """Mean and standard error of constant + f."""
    if process.signal == 0:
        return np.full(at.shape, data.mean), np.full(at.shape, process.noise / math.sqrt(data.total))
    order = np.argsort(np.concatenate([data.x, at]), kind="stable")
    place = np.argsort(order)
    seen, asked = place[: data.x.size], place[data.x.size :]
    noise = np.full(order.size, np.nan)
    noise[seen] = (process.noise / process.signal) ** 2 / data.n
    gaps = np.diff(np.concatenate([data.x, at])[order]) * (math.sqrt(5) / process.length)
    system = Chain.of(gaps, noise)
    given = np.zeros((order.size, 2))
    given[seen] = np.stack([data.y, np.ones(data.x.size)], axis=1)
    states, weighed = system.solved(given)
    held = weighed[:, 1].sum()
    constant = weighed[:, 0].sum() / held
    mean = constant + states[asked, 0] - constant * states[asked, 1]
    variance = system.variances(asked) + np.square(1 - states[asked, 1]) / held
    return mean, process.signal * np.sqrt(variance)
