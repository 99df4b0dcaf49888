"""Families of curves, trials as counts, and penalised likelihood fits of many curves at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from demur.core.arrays import Array
from demur.errors import DataError, UsageError
from demur.gold_standard.jobs import FitKind
from demur.gold_standard.trials import Trials

if TYPE_CHECKING:
    from demur.gold_standard.fitting import CurveFit

TOLERANCE = 1e-9
"""Newton's decrement, in units of log likelihood, at which a curve has converged: 3e-5 standard errors off."""

STRICT_TOLERANCE = 1e-16
"""The same for a curve that figures are read from."""

Slope = Literal["falling", "rising"]
Link = Literal["logit", "identity"]

PIECES = 10
"""Into how many pieces a spline divides the range; its smoothness is set by the penalty, so more change little."""


@dataclass(frozen=True)
class CurveFamily:
    """A family of curves over the range of a performer's trials: sums of functions of x, on the scale of a link."""

    low: float
    high: float
    link: Link = "identity"
    slope: Slope | None = None
    """The only way that curves may go."""
    degree: int = 3
    """Of polynomials."""
    places: tuple[float, ...] = ()
    """The places of trials."""

    kind: ClassVar[FitKind]
    on_logit: ClassVar[bool] = False
    """Whether it is fitted on the logit scale where the metric has an upper bound."""
    directed: ClassVar[bool] = False
    """Whether its curves keep to the slope."""
    penalised: ClassVar[bool] = False
    """Whether a penalty on roughness is chosen for it."""

    def check(self, counts: Counts, who: str) -> None:
        """Refuse trials that the family cannot be fitted to."""

    def rows(self, x: Array) -> Array:
        """The functions at places, one row each; a curve is these times its coefficients."""
        raise NotImplementedError

    def predictor(self, x: Array, coefficients: Array) -> Array:
        """The linear predictor at places, of one curve or of many (a row each)."""
        return np.asarray(coefficients @ self.rows(x).T)

    @cached_property
    def size(self) -> int:
        """How many functions there are."""
        return int(self.rows(np.array([self.low])).shape[1])

    @cached_property
    def bounded(self) -> NDArray[np.bool_]:
        """Which coefficients may not be negative, so that the curve keeps to the slope."""
        return np.array([self.directed and self.slope is not None and place > 0 for place in range(self.size)])

    @cached_property
    def roughness(self) -> Array:
        """The matrix of the penalty on roughness."""
        return np.zeros((self.size, self.size))

    @property
    def breaks(self) -> tuple[float, ...]:
        """Where a curve or one of its derivatives may jump."""
        return ()

    @property
    def panel_edges(self) -> tuple[float, ...]:
        """The breaks at which the panels of a grid for many curves should end."""
        return self.breaks

    def estimate(
        self, counts: Counts, weights: Array, smoothness: float, start: Array, tolerance: float = TOLERANCE
    ) -> Array:
        """The coefficients when subjects count by these weights; a row each."""
        totals, sizes = counts.weighted(weights)
        return solve(batch_of(self, counts, smoothness), *with_prior(self, totals, sizes), start, tolerance)

    def free_parameters(self, coefficients: Array) -> int:
        """How many numbers the trials chose."""
        return len(coefficients)

    def standard_error(self, fit: CurveFit, x: Array) -> Array:
        """Standard error of the linear predictor if trials were independent."""
        rows = self.rows(x)
        return np.asarray(np.sqrt(np.maximum(np.einsum("mi,ij,mj->m", rows, fit.covariance, rows), 0)))

    def _place(self, x: Array) -> Array:
        return (np.asarray(x, dtype=float) - self.low) / (self.high - self.low)


class SplineFamily(CurveFamily):
    """Cubic splines with a penalty on squared second differences of their B-spline coefficients."""

    kind = "spline"
    on_logit = directed = penalised = True

    def rows(self, x: Array) -> Array:
        """B-splines, or their sums from each to the last where curves keep to a slope."""
        # de Boor's recursion over equal pieces of [0, 1], all places at once.
        knots = np.arange(-3, PIECES + 4) / PIECES
        inside = np.clip(self._place(x), 0, 1)[:, None]
        last = np.clip(np.floor(inside * PIECES), 0, PIECES - 1) + 3
        values = (np.arange(len(knots) - 1) == last).astype(float)
        for degree in (1, 2, 3):
            left = (inside - knots[: -degree - 1]) / (degree / PIECES)
            right = (knots[degree + 1 :] - inside) / (degree / PIECES)
            values = left * values[:, :-1] + right * values[:, 1:]
        return self._steps(values)

    def _steps(self, columns: Array) -> Array:
        """From B-spline coefficients to the first of them and the steps from each to the next, along the slope."""
        if self.slope is None:
            return columns
        steps = np.cumsum(columns[:, ::-1], axis=1)[:, ::-1].copy()
        steps[:, 1:] *= -1.0 if self.slope == "falling" else 1.0
        return steps

    @cached_property
    def roughness(self) -> Array:
        """Squared second differences."""
        differences = np.diff(self._steps(np.eye(self.size)), n=2, axis=0)
        return np.asarray(differences.T @ differences)

    @property
    def breaks(self) -> tuple[float, ...]:
        """Where pieces meet."""
        return tuple(np.linspace(self.low, self.high, PIECES + 1))


class LogisticFamily(CurveFamily):
    """Straight lines on the logit scale."""

    kind = "logistic"
    on_logit = directed = True

    def check(self, counts: Counts, who: str) -> None:
        """The logit needs both bounds."""
        if counts.scale.upper is None:
            raise UsageError("a logistic curve needs the upper bound of the metric; `upper` gives it")

    def rows(self, x: Array) -> Array:
        """A level and a slope."""
        place = self._place(x)
        return np.stack([np.ones_like(place), place if self.slope == "rising" else -place], axis=1)


class LinearFamily(CurveFamily):
    """Straight lines by least squares."""

    kind = "linear"

    def rows(self, x: Array) -> Array:
        """Legendre polynomials up to the first degree."""
        return np.asarray(np.polynomial.legendre.legvander(2 * self._place(x) - 1, 1), dtype=np.float64)


class PolynomialFamily(CurveFamily):
    """Polynomials by least squares."""

    kind = "polynomial"

    def check(self, counts: Counts, who: str) -> None:
        """A polynomial of each degree needs a place more."""
        if len(counts.places) <= self.degree:
            rule = f"a polynomial of degree {self.degree} needs trials at more than {self.degree} distinct x"
            raise DataError(rule, where=f"{who}:", got=len(counts.places), fix="a lower `degree`, or another `fit`")

    def rows(self, x: Array) -> Array:
        """Legendre polynomials up to the degree."""
        return np.asarray(np.polynomial.legendre.legvander(2 * self._place(x) - 1, self.degree), dtype=np.float64)


class IsotonicFamily(CurveFamily):
    """Monotone means at the places of trials, with straight lines between them."""

    kind = "isotonic"
    directed = True

    def check(self, counts: Counts, who: str) -> None:
        """A curve is monotone one way or the other."""
        if self.slope is None:
            raise UsageError("an isotonic curve is monotone: `direction` harmful or helpful")

    def _between(self, x: Array) -> tuple[NDArray[np.int64], Array]:
        """The place after each x, and how far x is on the way to it."""
        steps, x = np.array(self.places), np.asarray(x, dtype=float)
        after = np.clip(np.searchsorted(steps, x, side="right"), 1, len(steps) - 1)
        return after, np.clip((x - steps[after - 1]) / (steps[after] - steps[after - 1]), 0, 1)

    def rows(self, x: Array) -> Array:
        """Linear interpolation between places, level beyond the first and the last."""
        after, share = self._between(x)
        rows = np.zeros((len(after), len(self.places)))
        rows[np.arange(len(after)), after - 1] = 1 - share
        rows[np.arange(len(after)), after] += share
        return rows

    def predictor(self, x: Array, coefficients: Array) -> Array:
        """The interpolated means, without the rows of all places."""
        after, share = self._between(x)
        return np.asarray(coefficients[..., after - 1] * (1 - share) + coefficients[..., after] * share)

    @cached_property
    def bounded(self) -> NDArray[np.bool_]:
        """None: pooling keeps means in order."""
        return np.zeros(self.size, dtype=bool)

    @property
    def breaks(self) -> tuple[float, ...]:
        """All places."""
        return self.places

    @property
    def panel_edges(self) -> tuple[float, ...]:
        """None: there are too many breaks for panels of their own, and each bends a curve little."""
        return ()

    def estimate(
        self, counts: Counts, weights: Array, smoothness: float, start: Array, tolerance: float = TOLERANCE
    ) -> Array:
        """The monotone means nearest the data: neighbours that are out of order are pooled."""
        from scipy.optimize import isotonic_regression

        places, curves = np.array(self.places), []
        for totals, sizes in zip(*counts.weighted(weights), strict=True):
            seen = sizes > 0
            means = totals[seen] / sizes[seen]
            pooled = isotonic_regression(means, weights=sizes[seen], increasing=self.slope == "rising").x
            curves.append(np.interp(places, places[seen], pooled))
        return np.stack(curves)

    def free_parameters(self, coefficients: Array) -> int:
        """The number of levels, not of places."""
        return len(np.unique(coefficients.round(12)))

    def standard_error(self, fit: CurveFit, x: Array) -> Array:
        """That of a mean over the neighbours that were pooled, with half a trial added either way."""
        _, sizes = fit.counts.whole
        value = fit.coefficients.round(12)
        _, block = np.unique(value, return_inverse=True)
        trials = np.bincount(block, weights=sizes)[block]
        if fit.counts.scale.upper is None or not fit.counts.binomial:
            error = np.sqrt(fit.dispersion / trials)
        else:
            share = (np.clip(value, 0, 1) * trials + 0.5) / (trials + 1)
            error = np.sqrt(share * (1 - share) / (trials + 1))
        return np.interp(x, fit.counts.places, error)


FAMILIES: dict[FitKind, type[CurveFamily]] = {
    family.kind: family for family in (SplineFamily, LogisticFamily, LinearFamily, PolynomialFamily, IsotonicFamily)
}
"""Every family of curves by its name; those names are listed in `jobs.FitKind` too."""


MOST_PLACES = 2000
"""Most distinct places of x."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The metric's bounds; performance is fitted as a share of the way from one to the other."""

    lower: float
    upper: float | None

    @property
    def width(self) -> float:
        """How far apart the bounds are; 1 where there is no upper bound, so that shares are the values themselves."""
        return 1.0 if self.upper is None else self.upper - self.lower

    @property
    def foot(self) -> float:
        """What a share of 0 stands for."""
        return 0.0 if self.upper is None else self.lower

    def share(self, performance: Array) -> Array:
        """Performance as a share."""
        return (performance - self.foot) / self.width

    def performance(self, share: Array) -> Array:
        """What a share stands for."""
        return self.foot + self.width * share


@dataclass(frozen=True, eq=False)
class Counts:
    """What a performer's trials sum to, by subject (row) and place (column)."""

    places: Array
    totals: Any
    """Sparse: the shares achieved, times the trials behind them."""
    sizes: Any
    """Sparse: the trials."""
    squares: Any
    """Sparse: squared shares achieved, times the trials behind them."""
    entropy: float
    """Log likelihood of a model that knows every value: 0 where each is 0 or 1."""
    rows: int
    """How many values there are, each the share of one trial or of several."""
    scale: Scale
    binomial: bool
    """Whether trials are right or wrong, so that their variance is known."""
    rounded: bool
    """Whether there were so many places that they were rounded."""

    @property
    def low(self) -> float:
        """The least x."""
        return float(self.places[0])

    @property
    def high(self) -> float:
        """The greatest x."""
        return float(self.places[-1])

    @cached_property
    def present(self) -> NDArray[np.int64]:
        """The subjects who have trials."""
        return np.flatnonzero(np.asarray(self.sizes.sum(axis=1)).ravel() > 0)

    @property
    def subjects(self) -> int:
        """How many subjects have trials."""
        return len(self.present)

    def weighted(self, weights: Array) -> tuple[Array, Array]:
        """Totals and sizes at each place when subjects count by these weights; one row of weights each."""
        return np.asarray((self.totals.T @ weights.T).T), np.asarray((self.sizes.T @ weights.T).T)

    @cached_property
    def whole(self) -> tuple[Array, Array]:
        """Totals and sizes at each place, every subject counted once."""
        totals, sizes = self.weighted(np.ones((1, self.totals.shape[0])))
        return totals[0], sizes[0]

    @property
    def mean_shares(self) -> Array:
        """The mean share of all trials, once for each place."""
        totals, sizes = self.whole
        return np.full(len(sizes), totals.sum() / sizes.sum())

    def squared_distance(self, shares: Array) -> float:
        """Squared distances of what was achieved from these shares, one for each place, times trials."""
        totals, sizes = self.whole
        squares = np.asarray(self.squares.sum(axis=0)).ravel()
        return float(np.maximum(squares - 2 * shares * totals + shares**2 * sizes, 0).sum())


def counts_of(trials: Trials, rows: NDArray[np.bool_], *, most_places: int = MOST_PLACES) -> Counts:
    """The counts of these trials; x is rounded to this part of its range where there are more places."""
    from scipy.sparse import csr_array

    scale, n, x = Scale(trials.lower, trials.upper), trials.n[rows], trials.x[rows]
    rounded = len(np.unique(x)) > most_places
    if rounded:
        low, high = x.min(), x.max()
        step = (high - low) / most_places
        x = np.clip(low + np.rint((x - low) / step) * step, low, high)
    places, column = np.unique(x, return_inverse=True)
    share = scale.share(trials.y[rows])
    inside = (share > 0) & (share < 1) & (scale.upper is not None)
    part, weight = share[inside], n[inside]

    def summed(values: Array) -> Any:
        return csr_array((values, (trials.subject[rows], column)), shape=(len(trials.subjects), len(places)))

    return Counts(
        places=places,
        totals=summed(n * share),
        sizes=summed(n),
        squares=summed(n * share**2),
        entropy=float((weight * (part * np.log(part) + (1 - part) * np.log1p(-part))).sum()),
        rows=len(share),
        scale=scale,
        binomial=trials.kind != "scores",
        rounded=rounded,
    )


def separation(counts: Counts) -> str | None:
    """How successes and failures are perfectly separated along x, in words; None where they are not."""
    if not counts.binomial:
        return None
    totals, sizes = counts.whole
    won, lost = counts.places[totals > 0], counts.places[sizes - totals > 1e-9]
    if not len(lost):
        return "every trial succeeded"
    if not len(won):
        return "every trial failed"
    for first, last, order in ((won, lost, "succeeded"), (lost, won, "failed")):
        if first.max() < last.min():
            other = "failed" if order == "succeeded" else "succeeded"
            return (
                f"every trial up to {first.max():g} {order} and every trial from {last.min():g} on {other}, so that "
                "nothing tells how steep the curve is between"
            )
    return None


_ROUNDS = 200
_RIDGE = 1e-9
"""Keeps a direction that nothing informs from being undefined."""

_NEAR = 0.1
"""How close to its bound a coefficient rests, as a part of how far the curve still is from its end."""


@dataclass(frozen=True, slots=True)
class CurveBatch:
    """What all the curves of a batch share: functions at the cells, penalty, bounds and link."""

    rows: Array
    """One row of functions per cell."""
    penalty: Array
    bounded: NDArray[np.bool_]
    link: Link
    offset: Array | float = 0.0
    """What the linear predictor of each cell is before any function is added."""

    def predictors(self, coefficients: Array) -> Array:
        """The linear predictors of the cells, of one curve or of many (a row each)."""
        return np.asarray(coefficients @ self.rows.T + self.offset)


def solve(
    batch: CurveBatch,
    totals: Array,
    sizes: Array,
    start: Array,
    tolerance: float = TOLERANCE,
    *,
    together: bool = False,
) -> Array:
    """The coefficients of each curve, for what its cells sum to and how many trials they hold: one row a curve.

    With `together` no curve stops before all have converged.
    """
    if batch.link == "identity" and not batch.bounded.any():
        hessian = _unpacked(sizes @ _function_products(batch.rows), batch.rows.shape[1]) + batch.penalty
        hessian += _RIDGE * np.eye(len(batch.penalty))
        return np.asarray(np.linalg.solve(hessian, ((totals - sizes * batch.offset) @ batch.rows)[..., None])[..., 0])
    found = np.array(np.broadcast_to(start, (len(totals), batch.rows.shape[1])))
    found[:, batch.bounded] = np.maximum(found[:, batch.bounded], 0)
    pairs = _function_products(batch.rows)
    open_ = np.arange(len(totals))
    value = _objective(batch, found, totals, sizes)
    for _ in range(_ROUNDS):
        here = found[open_]
        direction, decrement = _newton(batch, pairs, here, totals[open_], sizes[open_])
        moving = decrement > tolerance
        if not moving.any():
            break
        moving |= together
        open_, here, direction = open_[moving], here[moving], direction[moving]
        found[open_], value[open_] = _search(batch, here, direction, value[open_], totals[open_], sizes[open_])
    return found


def means(link: Link, eta: Array) -> Array:
    """What the linear predictor stands for."""
    if link == "identity":
        return eta
    return np.asarray(0.5 * (1 + np.tanh(eta / 2)))


def _objective(batch: CurveBatch, found: Array, totals: Array, sizes: Array) -> Array:
    eta = batch.predictors(found)
    rough = 0.5 * np.einsum("bi,ij,bj->b", found, batch.penalty, found) + 0.5 * _RIDGE * (found**2).sum(axis=1)
    if batch.link == "identity":
        return np.asarray((0.5 * sizes * eta**2 - totals * eta).sum(axis=1) + rough)
    return np.asarray((sizes * np.logaddexp(0, eta) - totals * eta).sum(axis=1) + rough)


def _newton(batch: CurveBatch, pairs: Array, found: Array, totals: Array, sizes: Array) -> tuple[Array, Array]:
    """The way to go for each curve, and how much the quadratic model promises."""
    mean = means(batch.link, batch.predictors(found))
    weight = sizes if batch.link == "identity" else sizes * mean * (1 - mean)
    gradient = (sizes * mean - totals) @ batch.rows + found @ batch.penalty + _RIDGE * found
    size = batch.rows.shape[1]
    hessian = _unpacked(weight @ pairs, size) + batch.penalty + _RIDGE * np.eye(size)
    own = hessian[:, np.arange(size), np.arange(size)]
    # A coefficient that is pulled down and near its bound goes there alone, so that it cannot hold up the others. What
    # counts as near shrinks to 0 as a curve arrives, by how far each coefficient would still move by itself.
    fall = gradient / own
    moved = np.where(batch.bounded, np.minimum(fall, found), fall)
    near = _NEAR * np.sqrt((moved**2).sum(axis=1, keepdims=True))
    resting = batch.bounded & (gradient > 0) & (found <= near)
    free = ~resting
    hessian = hessian * free[:, :, None] * free[:, None, :]
    hessian[:, np.arange(size), np.arange(size)] += own * resting
    direction = -np.linalg.solve(hessian, gradient[..., None])[..., 0]
    promised = np.where(resting, np.minimum(-direction, found), -direction)
    return np.asarray(direction, dtype=np.float64), np.asarray((gradient * promised).sum(axis=1))


def _search(
    batch: CurveBatch, here: Array, direction: Array, value: Array, totals: Array, sizes: Array
) -> tuple[Array, Array]:
    """A step along each direction, halved until the curve is no worse; bounds are kept by stopping at them."""
    best, reached = here.copy(), value.copy()
    left, step = np.arange(len(here)), 1.0
    while left.size and step > 1e-10:
        there = here[left] + step * direction[left]
        there[:, batch.bounded] = np.maximum(there[:, batch.bounded], 0)
        new = _objective(batch, there, totals[left], sizes[left])
        better = new <= value[left] + 1e-12 * np.abs(value[left])
        best[left[better]], reached[left[better]] = there[better], new[better]
        left, step = left[~better], step / 2
    return best, reached


def _function_products(rows: Array) -> Array:
    """Products of each two functions at each cell, those of a symmetric matrix written once."""
    upper = np.triu_indices(rows.shape[1])
    return rows[:, upper[0]] * rows[:, upper[1]]


def _unpacked(packed: Array, size: int) -> Array:
    upper = np.triu_indices(size)
    whole = np.empty((len(packed), size, size))
    whole[:, upper[0], upper[1]] = packed
    whole[:, upper[1], upper[0]] = packed
    return whole


PRIOR = 1.0
"""Trials added to those of a performer, half of one a success, spread over the range.

They keep curves finite where every trial succeeds, or where success and failure are perfectly separated.
"""
_PRIOR_PLACES = 5
_BATCH = 4_000_000
"""Cells of a batch of refits, for the sake of memory."""


def batch_size(counts: Counts) -> int:
    """How many curves are fitted at once."""
    return max(1, _BATCH // (len(counts.places) + _PRIOR_PLACES))


def batch_of(family: CurveFamily, counts: Counts, smoothness: float) -> CurveBatch:
    """What all fits of this kind to these places share."""
    places = counts.places
    if family.link == "logit":
        places = np.concatenate([places, np.linspace(family.low, family.high, _PRIOR_PLACES)])
    return CurveBatch(family.rows(places), smoothness * family.roughness, family.bounded, family.link)


def with_prior(family: CurveFamily, totals: Array, sizes: Array) -> tuple[Array, Array]:
    """Counts with the prior's half success and half failure behind them."""
    if family.link != "logit":
        return totals, sizes
    each = np.full((len(totals), _PRIOR_PLACES), PRIOR / _PRIOR_PLACES)
    return np.hstack([totals, each / 2]), np.hstack([sizes, each])


FOLDS = 10
"""Groups of subjects that are left out in turn; with fewer subjects each is left out alone."""

UNDERSMOOTHING = 0.1
"""What is kept of the likeliest smoothness: a band says nothing of the bias that smoothing brings, so less of it."""

_POWERS = np.arange(2.0, -2.1, -0.5)
"""Powers of ten of the smoothness that are tried, the smoothest first.

Beyond the first a curve is all but straight on its scale: for that there is a kind of curve with two parameters, and
with few trials the likelihood would often flatten a step away.
"""


def chosen_smoothness(family: CurveFamily, counts: Counts) -> float:
    """The smoothness to fit with: the likeliest one of curves that need not be monotone, less some."""
    free = replace(family, slope=None)
    totals, sizes = (part[None] for part in counts.whole)
    totals, sizes = with_prior(free, totals, sizes)
    dispersion = _dispersion(free, counts, totals, sizes)
    best, chosen, start = -np.inf, 1.0, np.zeros(free.size)
    for power in _POWERS:
        smoothness = 10.0**power
        batch = batch_of(free, counts, smoothness)
        start = solve(batch, totals / dispersion, sizes / dispersion, start)[0]
        likelihood = _marginal(batch, start, totals[0] / dispersion, sizes[0] / dispersion, counts, smoothness)
        if likelihood > best + 1e-9:
            best, chosen = likelihood, smoothness
    return float(chosen * dispersion * UNDERSMOOTHING)


def _dispersion(family: CurveFamily, counts: Counts, totals: Array, sizes: Array) -> float:
    """How much bounded scores vary beside trials that are right or wrong; 1 for these, and where it cancels out."""
    if counts.binomial or family.link == "identity":
        return 1.0
    batch = batch_of(family, counts, 1.0)
    shares = means(family.link, batch.rows @ solve(batch, totals, sizes, np.zeros(family.size))[0])
    expected = float((sizes[0] * shares * (1 - shares)).sum())
    return max(counts.squared_distance(shares[: len(counts.places)]) / max(expected, 1e-12), 1e-6)


def _marginal(batch: CurveBatch, found: Array, totals: Array, sizes: Array, counts: Counts, smoothness: float) -> float:
    """Log marginal likelihood of a smoothness by Laplace's method, or restricted likelihood of a Gaussian curve."""
    predictor = batch.rows @ found
    shares = means(batch.link, predictor)
    weight = sizes * shares * (1 - shares) if batch.link == "logit" else sizes
    hessian = (batch.rows * weight[:, None]).T @ batch.rows + batch.penalty + 1e-9 * np.eye(len(found))
    rough = float(found @ batch.penalty @ found)
    occam = float(0.5 * (len(found) - 2) * np.log(smoothness) - 0.5 * np.linalg.slogdet(hessian)[1])
    if batch.link == "identity":
        left = max(counts.squared_distance(shares) + rough, 1e-300)
        return float(-0.5 * max(counts.rows - 2, 1) * np.log(left) + occam)
    fit = float((totals * predictor - sizes * np.logaddexp(0, predictor)).sum())
    return fit - 0.5 * rough + occam


def held_out(family: CurveFamily, counts: Counts, smoothness: float) -> float:
    """Deviance of subjects left out in turn, a group at a time."""
    present = counts.present
    folds = min(FOLDS, len(present))
    weights = np.ones((folds, counts.totals.shape[0]))
    weights[np.arange(len(present)) % folds, present] = 0.0
    curves = family.estimate(counts, weights, smoothness, np.zeros(family.size))
    totals, sizes = counts.weighted(1 - weights)
    return deviance(family, means(family.link, family.predictor(counts.places, curves)), totals, sizes)


def deviance(family: CurveFamily, shares: Array, totals: Array, sizes: Array) -> float:
    """Twice what the log likelihood falls short of, up to what does not depend on the curve."""
    if family.link == "identity":
        return float((sizes * shares**2 - 2 * totals * shares).sum())
    inside = np.clip(shares, 1e-12, 1 - 1e-12)
    return float(-2 * (totals * np.log(inside) + (sizes - totals) * np.log1p(-inside)).sum())
