"""A performer's trials as counts: how many there were at each place, and what they came to, subject by subject."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.analyses.gold.bases import Array
from demur.data.trials import Trials

MOST_PLACES = 2000
"""Distinct places of x that are told apart; more are rounded to this part of the range."""


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


@dataclass(frozen=True, slots=True, eq=False)
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

    @property
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

    def whole(self) -> tuple[Array, Array]:
        """Totals and sizes at each place, every subject counted once."""
        totals, sizes = self.weighted(np.ones((1, self.totals.shape[0])))
        return totals[0], sizes[0]

    def squared_distance(self, shares: Array) -> float:
        """Squared distances of what was achieved from these shares, one for each place, times trials."""
        totals, sizes = self.whole()
        squares = np.asarray(self.squares.sum(axis=0)).ravel()
        return float(np.maximum(squares - 2 * shares * totals + shares**2 * sizes, 0).sum())


def counts_of(trials: Trials, rows: NDArray[np.bool_]) -> Counts:
    """The counts of these trials."""
    from scipy.sparse import csr_array

    scale = Scale(trials.lower, trials.upper)
    x, rounded = _places(trials.x[rows])
    places, column = np.unique(x, return_inverse=True)
    shape = (len(trials.subjects), len(places))
    where = (trials.subject[rows], column)
    n = trials.n[rows]
    share = scale.share(trials.y[rows])
    return Counts(
        places=places,
        totals=csr_array((n * share, where), shape=shape),
        sizes=csr_array((n, where), shape=shape),
        squares=csr_array((n * share**2, where), shape=shape),
        entropy=_entropy(share, n) if scale.upper is not None else 0.0,
        rows=len(share),
        scale=scale,
        binomial=trials.kind != "scores",
        rounded=rounded,
    )


def _entropy(share: Array, n: Array) -> float:
    inside = (share > 0) & (share < 1)
    part, weight = share[inside], n[inside]
    return float((weight * (part * np.log(part) + (1 - part) * np.log1p(-part))).sum())


def _places(x: Array) -> tuple[Array, bool]:
    low, high = x.min(), x.max()
    if len(np.unique(x)) <= MOST_PLACES:
        return x, False
    step = (high - low) / MOST_PLACES
    return np.clip(low + np.rint((x - low) / step) * step, low, high), True


def separation(counts: Counts) -> str | None:
    """How successes and failures are perfectly separated along x, in words; None where they are not."""
    if not counts.binomial:
        return None
    totals, sizes = counts.whole()
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
