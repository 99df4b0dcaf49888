"""Samples of rows that are elsewhere: replicates drawn from a tally.

Where rows are independent and count alike the sweep tells all, and the replicates are those of rows in memory. Else
whole buckets are drawn. A bucket holds whole dialogues, so drawing buckets respects them as drawing dialogues does.
How many dialogues there are counts only where replicates say nothing, at a rate of 0 or 1; the tally estimates it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.measures.base import Measure
from demur.measures.registry import term_measures
from demur.measures.resampling import Draws, Sample, Spread, replicate_counts, stacked
from demur.measures.sweep import Floats, Sweep
from demur.measures.tally import UNITS, Tally

Array = NDArray[np.float64]


def tally_sample(tally: Tally, replicates: int = 1000, seed: int = 0) -> Sample:
    """The sample that a tally stands for.

    >>> sample = tally_sample(Tally("guide", None, Sweep.of([0.9, 0.4], [True, False]), 0, 0, 0, squares=2.0))
    >>> sample.n, sample.alike, sample.spread.units
    (2, True, 2)
    """
    return Sample(TallySource(tally), replicates, seed)


@dataclass(frozen=True, eq=False)
class TallySource:
    """A tally as what replicates are drawn from."""

    tally: Tally

    @cached_property
    def known(self) -> Mapping[Measure, Array]:
        """The exact totals that the tally has."""
        measures = term_measures()
        return {measures[key]: totals for key, totals in self.tally.terms.items() if key in measures}

    @cached_property
    def alike(self) -> bool:
        """Whether rows are independent and count alike: no dialogues, and weights that are all 1.

        The sum of (weight - 1)^2 is 0 only if every weight is 1, so three sums tell.
        """
        tally = self.tally
        ones = tally.squares == tally.sweep.total == tally.n
        return tally.units is None or (ones and not tally.clustered)

    @cached_property
    def spread(self) -> Spread:
        """How much the rows tell; where buckets are drawn they are the units, and dialogues are about counted."""
        n, clustered = self.tally.effective_n, self.tally.clustered
        if self.alike:
            return Spread(n, self.tally.n, clustered)
        return Spread(n, self.cells.buckets, clustered, self.tally.fewest_dialogues)

    @property
    def heaviest(self) -> float:
        """Weight of the heaviest unit."""
        return 1.0 if self.alike else float(self.cells.weights.max())

    @cached_property
    def cells(self) -> BucketCells:
        """What each bucket holds."""
        return BucketCells.of(pl.DataFrame(schema=UNITS) if self.tally.units is None else self.tally.units)

    def sweep(self) -> Sweep:
        """The exact sweep."""
        return self.tally.sweep

    def coarse(self, sweep: Sweep, levels: int) -> Sweep:
        """The sweep at the levels of the replicates; where buckets are drawn, the sum over buckets."""
        if self.alike:
            return sweep.coarsened(levels)
        threshold = self.cells.levels(levels)
        sums = self.cells.by_bucket(threshold).sum(axis=1)
        size = threshold.size
        return Sweep(threshold, sums[:size], sums[size : 2 * size], float(sums[-1]), self.tally.n)

    def drawn(self, coarse: Sweep, *, replicates: int, seed: int) -> Sweep:
        """Replicates at the levels of the coarse sweep."""
        if self.alike:
            return replicate_counts(coarse, replicates=replicates, seed=seed)
        table = self.cells.by_bucket(coarse.threshold)
        parts = [chunk @ table.T for chunk in Draws(self.cells.buckets, replicates, seed)]
        return stacked(coarse.threshold, np.concatenate(parts), self.tally.n)

    def pulls(self, influence: Array, coarse: Sweep) -> Array:
        """What each bucket adds to a statistic, in rising order; `influence` is what a row adds, by its cell."""
        return np.sort(influence @ self.cells.by_bucket(coarse.threshold) / coarse.total)


@dataclass(frozen=True, slots=True, eq=False)
class BucketCells:
    """A table of units as arrays, in an order of its own; buckets are numbered from 0, a confidence of NaN is none."""

    buckets: int
    bucket: NDArray[np.int64]
    confidence: Floats
    right: Floats
    wrong: Floats
    withheld: Floats

    @classmethod
    def of(cls, units: pl.DataFrame) -> BucketCells:
        """The table, sorted by what it holds."""
        table = units.select(*UNITS).sort(*UNITS)
        names, bucket = np.unique(table["bucket"].fill_null(-1).to_numpy(), return_inverse=True)
        confidence = table["confidence"].fill_null(np.nan).to_numpy() + 0.0  # -0.0 is 0.0
        counts = (table[name].to_numpy() for name in ("right", "wrong", "withheld"))
        return cls(names.size, bucket.astype(np.int64), confidence, *counts)

    def levels(self, most: int) -> Floats:
        """Confidences that cut the answers of all buckets into at most so many levels of about equal weight."""
        answered = ~np.isnan(self.confidence)
        threshold, place = np.unique(self.confidence[answered], return_inverse=True)
        right, wrong = (
            np.bincount(place, weights=part[answered], minlength=threshold.size) for part in (self.right, self.wrong)
        )
        return Sweep(threshold, right, wrong, 0.0, 0).coarsened(most).threshold

    @property
    def weights(self) -> Array:
        """The weight of each bucket."""
        return np.asarray(self.by_bucket(np.empty(0))[0])

    def by_bucket(self, levels: Floats) -> Array:
        """Weights by cell and bucket: right by level, wrong by level, withheld; without levels there is one cell."""
        size = levels.size
        level = np.maximum(np.searchsorted(levels, self.confidence, side="right") - 1, 0)
        cell = np.concatenate([level, size + level, np.full(level.size, 2 * size)])
        weight = np.concatenate([self.right, self.wrong, self.withheld])
        place = cell * self.buckets + np.tile(self.bucket, 3)
        sums: Array = np.bincount(place, weights=weight, minlength=(2 * size + 1) * self.buckets).astype(np.float64)
        return sums.reshape(2 * size + 1, self.buckets)
