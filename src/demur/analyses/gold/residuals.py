"""Whether a curve fits: how far the trials lie from it, stretch by stretch, and how widely they scatter there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.analyses.gold.bases import Array
from demur.analyses.gold.counts import Counts
from demur.analyses.gold.departures import ARITHMETIC, size_of, told, variance
from demur.analyses.gold.fitting import CurveFit
from demur.analyses.gold.performers import Performer
from demur.measures.intervals import student
from demur.show import plain

BINS = 10
"""Stretches that x is divided into, with about as many trials in each."""

LEAST = 5
"""Trials that a stretch should have; with fewer in all there are fewer stretches."""

WIDELY = 2.0
"""How many times the least spread the greatest must be to be called uneven: then a fit by least squares would count
some trials four times as much as they deserve beside others."""


@dataclass(frozen=True, slots=True)
class Bin:
    """A stretch of x: how far its trials lie from the curve on average, and how widely they scatter around it."""

    x: float
    """Mean place of the trials."""
    start: float
    end: float
    n: float
    subjects: int
    residual: float
    """Mean of observed minus fitted performance."""
    low: float
    high: float
    off: bool
    """Whether the residual differs from 0, allowing for how many stretches are looked at."""
    spread: float
    """Root mean square of observed minus fitted."""
    expected: float
    """What the spread would be if the curve were right: of chance alone, or the same everywhere for scores."""


@dataclass(frozen=True, slots=True)
class Residuals:
    """The residuals of a performer's curve.

    `ratio` is the greatest spread over the least. It is `uneven` where that is `WIDELY` or more and beyond chance. Of a
    metric with a bound this is no surprise (Paek 2001, section 3.2), and a fit on the logit scale allows for it.
    """

    performer: str
    bins: tuple[Bin, ...]
    ratio: float
    uneven: bool
    level: float
    counts: Counts = field(repr=False)

    @property
    def misfit(self) -> tuple[Bin, ...]:
        """The stretches where trials lie off the curve."""
        return tuple(one for one in self.bins if one.off)

    def words(self) -> str | None:
        """Where trials lie farthest off the curve, in a sentence; None where they do not."""
        if not self.misfit:
            return None
        stretch = _stretch(self.bins)
        mean = sum(one.n * one.residual for one in stretch) / sum(one.n for one in stretch)
        start, end = stretch[0].start, stretch[-1].end
        where = f"At {start:.3g}" if start == end else f"Between {start:.3g} and {end:.3g}"
        side = "above" if mean > 0 else "below"
        return f"{where} the trials lie {told(abs(mean), self.counts)} {side} the curve."

    def frame(self) -> pl.DataFrame:
        """The stretches as rows: `performer`, `x`, `residual`, `low`, `high` and `n`."""
        names = ("x", "residual", "low", "high", "n")
        columns = {name: [float(getattr(one, name)) for one in self.bins] for name in names}
        return pl.DataFrame({"performer": [self.performer] * len(self.bins), **columns})

    def to_dict(self) -> dict[str, Any]:
        """The residuals as plain values."""
        found = {
            "performer": self.performer,
            "bins": [asdict(one) for one in self.bins],
            "misfit": len(self.misfit),
            "words": self.words(),
            "spread_ratio": self.ratio,
            "uneven": self.uneven,
            "level": self.level,
        }
        return dict(plain(found))


def residuals(performer: Performer) -> Residuals:
    """How far trials lie from the curve, by stretches of x.

    The interval of a mean residual takes subjects as clusters, with Student's t on one degree of freedom less than
    there are subjects in the stretch. Its standard error is never below that of independent trials.
    """
    fit = performer.fit
    sums = _Sums.of(fit, _bins(fit.counts.whole()[1]))
    width = fit.counts.scale.width
    mean = sums.residual.sum(axis=0) / sums.n.sum(axis=0)
    mean[np.abs(mean) <= ARITHMETIC * size_of(fit.counts)] = 0.0
    error = np.sqrt(np.maximum(_cluster_variance(sums.residual, sums.n), sums.chance))
    critical = [student(performer.level, subjects - 1) for subjects in sums.subjects]
    strict = [student(1 - (1 - performer.level) / len(mean), subjects - 1) for subjects in sums.subjects]
    bins = tuple(
        Bin(
            x=float(sums.x[k]),
            start=float(sums.start[k]),
            end=float(sums.end[k]),
            n=float(sums.n[:, k].sum()),
            subjects=int(sums.subjects[k]),
            residual=float(width * mean[k]),
            low=float(width * (mean[k] - critical[k] * error[k])),
            high=float(width * (mean[k] + critical[k] * error[k])),
            off=bool(abs(mean[k]) > strict[k] * error[k]),
            spread=float(width * np.sqrt(sums.squared[:, k].sum() / sums.n[:, k].sum())),
            expected=float(width * sums.expected[k]),
        )
        for k in range(len(mean))
    )
    ratio, uneven = _unevenness(sums, performer.level)
    return Residuals(performer.name, bins, ratio, uneven, performer.level, fit.counts)


@dataclass(frozen=True, slots=True)
class _Sums:
    """What subjects (rows) have in stretches (columns), in shares."""

    residual: Array
    squared: Array
    n: Array
    subjects: NDArray[np.int64]
    chance: Array
    """Variance of the mean residual of independent trials."""
    expected: Array
    x: Array
    start: Array
    end: Array

    @classmethod
    def of(cls, fit: CurveFit, label: NDArray[np.int64]) -> _Sums:
        counts, shares = fit.counts, fit.shares[:, None]
        member = (label[:, None] == np.arange(label[-1] + 1)).astype(float)
        n = np.asarray(counts.sizes @ member)
        total = n.sum(axis=0)
        _, sizes = counts.whole()
        chance = (variance(fit) * sizes) @ member
        squared = counts.squares @ member - 2 * (counts.totals @ (shares * member))
        squared += counts.sizes @ (shares**2 * member)
        return cls(
            residual=np.asarray(counts.totals @ member - counts.sizes @ (shares * member)),
            squared=np.maximum(squared, 0),
            n=n,
            subjects=(n > 0).sum(axis=0),
            chance=np.asarray(chance / total**2),
            expected=np.asarray(np.sqrt(chance / total)),
            x=np.asarray((sizes * counts.places) @ member / total),
            start=np.array([counts.places[label == k][0] for k in range(label[-1] + 1)]),
            end=np.array([counts.places[label == k][-1] for k in range(label[-1] + 1)]),
        )


def _bins(sizes: Array) -> NDArray[np.int64]:
    """The stretch of each place: about equally many trials in each, all trials of a place in the same."""
    wanted = int(max(1, min(BINS, sizes.sum() // LEAST, len(sizes))))
    if wanted == len(sizes):
        return np.arange(wanted)
    middle = (np.cumsum(sizes) - sizes / 2) / sizes.sum()
    return np.unique(np.floor(middle * wanted), return_inverse=True)[1].astype(np.int64)


def _cluster_variance(sums: Array, n: Array) -> Array:
    """Of the mean over trials, when those of a subject stand or fall together; 0 where one subject is alone."""
    subjects = (n > 0).sum(axis=0)
    mean = sums.sum(axis=0) / n.sum(axis=0)
    spread = ((sums - mean * n) ** 2).sum(axis=0) / n.sum(axis=0) ** 2
    return np.asarray(spread * np.where(subjects > 1, subjects / np.maximum(subjects - 1, 1), 0.0))


def _unevenness(sums: _Sums, level: float) -> tuple[float, bool]:
    """The greatest spread over the least, and whether the two differ, allowing for all pairs that might have been."""
    squared = sums.squared.sum(axis=0) / sums.n.sum(axis=0)
    pairs = len(squared) * (len(squared) - 1) / 2
    if not pairs or squared.max() <= 0:
        return float("nan"), False
    most, least = int(squared.argmax()), int(squared.argmin())
    ratio = float(np.sqrt(squared[most] / squared[least])) if squared[least] > 0 else float("inf")
    error = np.sqrt(_cluster_variance(sums.squared, sums.n)[[most, least]].sum())
    freedom = min(sums.subjects[most], sums.subjects[least]) - 1
    beyond = squared[most] - squared[least] > student(1 - (1 - level) / pairs, freedom) * error
    return ratio, bool(ratio >= WIDELY and freedom > 0 and beyond)


def _stretch(bins: Sequence[Bin]) -> Sequence[Bin]:
    """The stretch that is farthest off, with neighbours that are off on the same side."""
    first = last = int(np.argmax([abs(one.residual) if one.off else -1.0 for one in bins]))
    side = bins[first].residual > 0
    while first > 0 and bins[first - 1].off and (bins[first - 1].residual > 0) == side:
        first -= 1
    while last + 1 < len(bins) and bins[last + 1].off and (bins[last + 1].residual > 0) == side:
        last += 1
    return bins[first : last + 1]
