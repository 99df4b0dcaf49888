"""Distances between two distributions, and what they come to when the units of both samples are dealt at random.

A unit is a row, or a dialogue whose rows go together. If both samples are of one population, every deal of the units is
as likely as the one seen, whatever ties there are; so the share of deals that lie as far apart is a p-value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from demur.core.arrays import Array, Flags
from demur.core.stats.intervals import Difference, sidak
from demur.core.stats.resampling import DRAWN_AT_ONCE, MOST_UNITS, units_by_cell

Between = Callable[[Array, Array], Array]
"""A distance between the cells of two samples, cells along the last axis."""

FEWEST_DEALS = 2000
"""Deals from which a p-value that is corrected for a dozen tests can still be small."""

_SAME = 1e-12
"""Distances closer than this are the same: sums in another order."""


@dataclass(frozen=True, eq=False)
class TwoSamples:
    """Rows of two samples, each row in a cell; `unit` numbers the units of both, None where each row is one."""

    cell: NDArray[np.int64]
    second: Flags
    weight: Array
    unit: NDArray[np.int64] | None
    cells: int

    @cached_property
    def counts(self) -> tuple[Array, Array]:
        """The weight in each cell, of either sample."""
        return self._counted(~self.second), self._counted(self.second)

    def _counted(self, rows: Flags) -> Array:
        counts: Array = np.bincount(self.cell[rows], self.weight[rows], self.cells).astype(np.float64)
        return counts

    def distance(self, between: Between, *, deals: int, seed: int) -> Distance:
        """How far apart the samples are, and how far apart they are when units are dealt at random."""
        rng = np.random.default_rng(seed)
        total = sum(self.counts)
        drawn = self._dealt_rows(rng, deals) if self.unit is None else self._dealt_units(rng, deals)
        null = np.nan_to_num(between(drawn, total - drawn), nan=1.0)
        return Distance(float(between(*self.counts)), np.sort(null))

    def _dealt_rows(self, rng: np.random.Generator, deals: int) -> Array:
        """Cells of as many rows as the smaller sample has; rows of a cell are alike."""
        counts = np.rint(sum(self.counts)).astype(np.int64)
        size = int(min(self.second.sum(), (~self.second).sum()))
        return rng.multivariate_hypergeometric(counts, size, size=deals, method="marginals").astype(np.float64)

    def _dealt_units(self, rng: np.random.Generator, deals: int) -> Array:
        """Cells of as many units as the sample with fewer of them has; very many units are dealt in bundles."""
        unit, count = self._bundled(rng)
        table = units_by_cell(self.cell, unit, self.weight, cells=self.cells, units=count)
        size = min(np.unique(unit[side]).size for side in (self.second, ~self.second))
        parts, chunk = [], max(1, DRAWN_AT_ONCE // count)
        for start in range(0, deals, chunk):
            many = min(chunk, deals - start)
            kept = np.argpartition(rng.random((many, count)), size - 1, axis=1)[:, :size]
            inside = np.zeros((many, count))
            np.put_along_axis(inside, kept, 1.0, axis=1)
            parts.append((table @ inside.T).T)
        return np.concatenate(parts)

    def _bundled(self, rng: np.random.Generator) -> tuple[NDArray[np.int64], int]:
        """The units, or bundles of as many units of one sample each where there are too many to deal one by one."""
        assert self.unit is not None
        own = [np.unique(self.unit[side]) for side in (~self.second, self.second)]
        size = math.ceil(sum(one.size for one in own) / MOST_UNITS)
        bundle = np.empty(int(self.unit.max()) + 1, dtype=np.int64)
        first = 0
        for units in own:
            places = np.arange(units.size) if size == 1 else rng.permutation(units.size)
            bundle[units] = first + places // size
            first += math.ceil(units.size / size)
        return bundle[self.unit], first


@dataclass(frozen=True, eq=False)
class Distance:
    """A distance between two samples, and the distances when their units are dealt at random, rising."""

    seen: float
    """The distance between the cells that were dealt."""
    null: Array
    exact: float | None = None
    """The distance itself, where cells join values."""

    @property
    def value(self) -> float:
        """The distance in these samples."""
        return self.seen if self.exact is None else self.exact

    @property
    def p(self) -> float:
        """The chance of so large a distance if both samples were of one population."""
        beyond = self.null.size - int(np.searchsorted(self.null, self.seen - _SAME))
        return (1 + beyond) / (1 + self.null.size)

    def tested(self, level: float, tests: int) -> Difference:
        """The distance with interval and p-value, both corrected for all tests made.

        What chance adds to a distance, it can add to or take from the true one at most (by the triangle inequality), so
        the interval reaches as far either way. It excludes 0 exactly where the corrected p-value is below 1 - level.
        """
        beyond = math.ceil((1 - level ** (1 / tests)) * (self.null.size + 1) - 1e-9) - 2
        reach = float(self.null[-1 - beyond]) if 0 <= beyond < self.null.size else math.inf
        low, high = max(0.0, self.seen - reach), min(1.0, self.value + reach)
        low = 0.0 if low <= _SAME else low
        return Difference(self.value, low, high, self.p, sidak(self.p, tests))


def kolmogorov_smirnov(one: Array, two: Array) -> Array:
    """The largest gap between two cumulative distributions, given the weight in each cell in rising order.

    >>> float(kolmogorov_smirnov(np.array([1.0, 1.0, 2.0]), np.array([2.0, 2.0, 0.0])))
    0.5
    """
    with np.errstate(invalid="ignore"):
        gap = np.cumsum(one, axis=-1) / one.sum(axis=-1, keepdims=True)
        gap -= np.cumsum(two, axis=-1) / two.sum(axis=-1, keepdims=True)
    return np.asarray(np.abs(gap).max(axis=-1))


def cramers_v(one: Array, two: Array) -> Array:
    """Cramer's V of two distributions over the same cells: 0 where they are alike, 1 where no cell is in both.

    >>> float(cramers_v(np.array([10.0, 0.0]), np.array([0.0, 10.0])))
    1.0
    """
    sizes = one.sum(axis=-1, keepdims=True), two.sum(axis=-1, keepdims=True)
    pooled, total = one + two, sizes[0] + sizes[1]
    with np.errstate(invalid="ignore", divide="ignore"):
        gap = np.square(one / sizes[0] - two / sizes[1])
        parts = np.where(pooled > 0, gap * total / pooled, 0.0)
        scale = (sizes[0] * sizes[1] / np.square(total))[..., 0]
        return np.asarray(np.sqrt(scale * parts.sum(axis=-1)))
