"""Confidences joined into cells, where there are too many distinct ones to keep each.

A cell is a dyadic interval [k/2^j, (k+1)/2^j). Scaling by a power of two and rounding down are exact in floating
point, so every engine puts a confidence into the same cell, and cells made for different parts of a log are either
apart or one within the other. Dense cells are cut finer.

What is lost is bounded. A cell is represented by the lowest confidence in it, so the counts at every cutoff that is
left are those of the exact curve. Between two such cutoffs the exact curve falls from one to the other, and so does the
straight line drawn for it; neither leaves the box between them, whose sides are the answers and the errors of the cell.
A cell that holds a single confidence loses nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import frexp, ldexp

import narwhals as nw
import numpy as np

from demur.measures.sweep import Floats, Sweep

FINE = 20
"""Cells of the first cut, as a power of two over the largest absolute confidence."""

FINER = 12
"""How much finer a dense cell is cut each time, as a power of two."""

DEEPEST = 60
"""The finest cut, so that a cell's number fits into a 64-bit integer."""

MOST_CUTS = 1000
"""The finest cut however small all confidences are, as a power of two, so that it is a number at all."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Cells of confidence: `cuts[0]` cells per unit everywhere, `cuts[i + 1]` in the cells that start at `dense[i]`.

    >>> Grid((4.0, 16.0), (frozenset({0.75}),)).of([0.1, 0.3, 0.8, 0.9]).tolist()
    [0.0, 0.25, 0.75, 0.875]
    """

    cuts: tuple[float, ...]
    dense: tuple[frozenset[float], ...] = ()

    @classmethod
    def over(cls, largest: float, cells: int = FINE) -> Grid:
        """Cells of one size: 2 ** `cells` of them from 0 to a power of two at or above the largest confidence."""
        _, exponent = frexp(largest) if largest > 0 else (0.0, 0)
        return cls((ldexp(1.0, min(cells - exponent, MOST_CUTS)),))

    @property
    def resolution(self) -> float:
        """Width of the widest cell."""
        return 1 / self.cuts[0]

    def finer(self, dense: frozenset[float], bits: int = FINER) -> Grid:
        """The grid with some of its finest cells cut finer."""
        return Grid((*self.cuts, self.cuts[-1] * 2.0**bits), (*self.dense, dense))

    def may_be_finer(self, largest: float, bits: int = FINER) -> bool:
        """Whether a finer cut would still number its cells exactly."""
        return self.cuts[-1] * 2.0**bits * max(largest, 1e-300) <= 2.0**DEEPEST

    def key(self, confidence: nw.Expr) -> nw.Expr:
        """Where the cell of each confidence starts; infinities are cells of their own."""
        cell = _start(confidence, self.cuts[-1])
        for cut, dense in zip(reversed(self.cuts[:-1]), reversed(self.dense), strict=True):
            start = _start(confidence, cut)
            cell = nw.when(start.is_in(sorted(dense))).then(cell).otherwise(start) if dense else start
        return nw.when(confidence.is_finite()).then(cell).otherwise(confidence)

    def of(self, confidence: Floats | list[float]) -> Floats:
        """The plain twin of `key` for arrays."""
        scores = np.asarray(confidence, dtype=np.float64) + 0.0
        with np.errstate(over="ignore"):
            starts = [np.floor(scores * cut) / cut for cut in self.cuts]
        cell = starts[-1]
        for start, dense in zip(reversed(starts[:-1]), reversed(self.dense), strict=True):
            cell = np.where(np.isin(start, sorted(dense)), cell, start)
        return np.where(np.isfinite(scores), cell, scores)


def _start(confidence: nw.Expr, cut: float) -> nw.Expr:
    return (confidence * cut).floor() / cut


def grid_for(sweep: Sweep, cells: int) -> Grid:
    """A grid with which the answers of a sweep fall into about `cells` cells of nearly equal weight."""
    finite = np.isfinite(sweep.threshold)
    threshold, weight = sweep.threshold[finite], np.add(sweep.right, sweep.wrong, dtype=np.float64)[finite]
    largest = float(np.abs(threshold).max()) if threshold.size else 0.0
    grid = Grid.over(largest, max(1, int(np.log2(cells))))
    most = weight.sum() / cells * 2
    while grid.may_be_finer(largest, 4):
        dense = dense_cells(grid.of(threshold), threshold, threshold, weight, most)
        if not dense:
            break
        grid = grid.finer(dense, 4)
    return grid


def dense_cells(cell: Floats, lowest: Floats, highest: Floats, weight: Floats, most: float) -> frozenset[float]:
    """Cells of more than `most` weight that hold more than one confidence, heaviest first and no more than 1,000."""
    starts, place = np.unique(cell, return_inverse=True)
    mass = np.bincount(place, weights=weight, minlength=starts.size)
    low, high = np.full(starts.size, np.inf), np.full(starts.size, -np.inf)
    np.minimum.at(low, place, lowest)
    np.maximum.at(high, place, highest)
    heavy = np.flatnonzero((mass > most) & (high > low) & np.isfinite(starts))
    chosen = heavy[np.argsort(-mass[heavy], kind="stable")][:1000]
    return frozenset(starts[chosen].tolist())
