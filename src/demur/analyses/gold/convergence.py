"""Whether there were enough subjects: how far a curve still moves as each further one comes in.

Paek (2001, section 3.2) asks to run subjects until the distance of the fitted curve to the data settles. That of the
curve to the one before shows the same more directly: the distance to the data settles at the scatter of the trials.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.analyses.gold.bases import Array
from demur.analyses.gold.counts import Counts
from demur.analyses.gold.departures import points, span, told
from demur.analyses.gold.fitting import CurveFit
from demur.analyses.gold.performers import Performer
from demur.analyses.gold.solving import means
from demur.data.trials import Role
from demur.errors import UsageError
from demur.show import Step, plain, silent

TOLERANCE = 0.01
"""Part of the metric's width; a curve that a further subject moves by less has settled: a point of a hundred."""

FEW = 25
"""Up to this many subjects the curve is refitted after each; of more, after some `STEPS` of them."""

STEPS = 20

_REFITS, _FEWEST_ORDERS, _MOST_ORDERS = 1000, 10, 50
_GRID = 101


@dataclass(frozen=True, slots=True)
class Convergence:
    """Distances of a performer's curve to its data and to the curve of one subject fewer, as subjects come in."""

    performer: str
    role: Role
    subjects: tuple[int, ...]
    to_data: tuple[float, ...]
    """Root mean square distance of trials from the curve of these subjects."""
    to_previous: tuple[float, ...]
    """Root mean square difference, over the range, from the curve of one subject fewer."""
    tolerance: float
    orders: int
    seed: int
    counts: Counts = field(repr=False)

    @property
    def moved(self) -> float:
        """How far the last subject moves the curve; NaN with one alone."""
        return self.to_previous[-1] if self.to_previous else float("nan")

    @property
    def needed(self) -> bool:
        """Whether more subjects are needed."""
        return not self.moved <= self.tolerance

    @property
    def enough(self) -> float:
        """About how many subjects would do, since what one of k moves falls about as 1 / k; NaN if not known."""
        if not self.needed:
            return float(self.subjects[-1])
        wanted = self.counts.subjects * self.moved / self.tolerance if self.tolerance > 0 else float("nan")
        return float("nan") if math.isnan(wanted) else float(math.ceil(wanted - 1e-9))

    def words(self) -> str:
        """What the last subject did to the curve, and whether more are needed."""
        if not self.subjects:
            return "With one subject alone, nothing shows how far others would move the curve."
        moved = (
            f"The last of {self.subjects[-1]:,} subjects moved the curve by {told(self.moved, self.counts)} on average"
        )
        limit = points(self.tolerance) if self.counts.binomial else f"{self.tolerance:.3g}"
        if not self.needed:
            return f"{moved} (tolerance {limit}): one more would change it little."
        if math.isnan(self.enough):
            return f"{moved}."
        return f"{moved}; roughly {_round(self.enough)} subjects would bring it below {limit}."

    def frame(self) -> pl.DataFrame:
        """The steps as rows: `performer`, `role`, `subjects`, `to_data` and `to_previous`."""
        return pl.DataFrame(
            {
                "performer": [self.performer] * len(self.subjects),
                "role": [self.role] * len(self.subjects),
                "subjects": self.subjects,
                "to_data": self.to_data,
                "to_previous": self.to_previous,
            },
            schema_overrides={"performer": pl.String, "role": pl.String, "to_data": pl.Float64}
            | {"subjects": pl.Int64, "to_previous": pl.Float64},
        )

    def to_dict(self) -> dict[str, Any]:
        """The distances as plain values."""
        found = {
            "performer": self.performer,
            "subjects": self.subjects,
            "to_data": self.to_data,
            "to_previous": self.to_previous,
            "tolerance": self.tolerance,
            "needed": self.needed,
            "enough": self.enough,
            "orders": self.orders,
            "seed": self.seed,
            "words": self.words(),
        }
        return dict(plain(found))


def convergence(performer: Performer, *, orders: int | None = None, seed: int = 0, step: Step = silent) -> Convergence:
    """Refits a performer's curve to more and more of its subjects, averaged over random orders of them.

    All curves are as smooth as the one of all subjects. `orders` is how many random orders there are: so many that
    there are about a thousand refits, but from 10 to 50.
    """
    if orders is not None and orders < 1:
        raise UsageError(f"convergence needs at least one order of the subjects; got {orders}")
    fit = performer.fit
    present = fit.counts.present
    chosen = orders or min(max(_REFITS // len(present), _FEWEST_ORDERS), _MOST_ORDERS)
    sizes = _sizes(len(present))
    fitted = np.union1d(sizes - 1, sizes)
    weights = _weights(fit.counts, fitted, chosen, seed)
    found = fit.refits(weights, step=step, what="refitting to fewer subjects")
    last = np.searchsorted(fitted, sizes)
    curves = _curves(fit, found).reshape(chosen, len(fitted), _GRID)
    moved = np.sqrt(((curves[:, last] - curves[:, last - 1]) ** 2).mean(axis=2)).mean(axis=0)
    distance = _to_data(fit, weights, found).reshape(chosen, len(fitted))[:, last].mean(axis=0)
    return Convergence(
        performer=performer.name,
        role=performer.role,
        subjects=tuple(sizes.tolist()),
        to_data=tuple(distance.tolist()),
        to_previous=tuple(moved.tolist()),
        tolerance=TOLERANCE * span(fit.counts),
        orders=chosen,
        seed=seed,
        counts=fit.counts,
    )


def _sizes(subjects: int) -> NDArray[np.int64]:
    """After how many subjects there is a fit to be compared with the one before."""
    if subjects <= FEW:
        return np.arange(2, subjects + 1)
    return np.unique(np.geomspace(2, subjects, STEPS).round().astype(np.int64))


def _weights(counts: Counts, sizes: NDArray[np.int64], orders: int, seed: int) -> Array:
    """Who counts: for each order a row for each number of subjects, the first so many in that order."""
    rng = np.random.default_rng(seed)
    present = counts.present
    weights = np.zeros((orders, len(sizes), counts.totals.shape[0]))
    for order in weights:
        order[:, present] = rng.permutation(len(present)) < sizes[:, None]
    return weights.reshape(orders * len(sizes), counts.totals.shape[0])


def _curves(fit: CurveFit, found: Array) -> Array:
    """The performance that curves give over the range."""
    return fit.performance(fit.predictor(np.linspace(fit.basis.low, fit.basis.high, _GRID), found))


def _to_data(fit: CurveFit, weights: Array, found: Array) -> Array:
    """How far each curve is from the trials of the subjects who count, in units of the metric."""
    counts = fit.counts
    shares = means(fit.link, fit.predictor(counts.places, found))
    totals, sizes = counts.weighted(weights)
    squares = weights @ np.asarray(counts.squares.sum(axis=1)).ravel()
    squared = squares + (shares * (shares * sizes - 2 * totals)).sum(axis=1)
    return np.asarray(counts.scale.width * np.sqrt(np.maximum(squared, 0) / sizes.sum(axis=1)))


def _round(number: float) -> str:
    """A number of subjects that is known roughly, to two digits."""
    digits = max(len(str(round(number))) - 2, 0)
    return f"{math.ceil(number / 10**digits) * 10**digits:,}"
