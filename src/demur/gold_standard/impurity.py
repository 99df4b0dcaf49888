"""How far systems are from the gold standard: impurity along x, its mass, complexity, and their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from scipy.special import expit, logit

from demur.core.arrays import Array
from demur.core.stats.intervals import Figure, normal, student, student_p
from demur.gold_standard import integrals
from demur.gold_standard.fitting import Performer
from demur.gold_standard.integrals import CurveGrid

_UNDEFINED = 0.1
"""The share of replicates without a value from which on there is no interval."""


@dataclass(frozen=True, slots=True)
class ConfidenceLevel:
    """The level of intervals, with one degree of freedom less than the fewest subjects."""

    level: float
    freedom: int

    @property
    def critical(self) -> float:
        """Student's critical value."""
        return student(self.level, self.freedom)


def even_interval(value: float, drawn: Array, confidence: ConfidenceLevel) -> Figure:
    """A number that replicates scatter about evenly."""
    known = drawn[~np.isnan(drawn)]
    if np.isnan(value) or len(known) < (1 - _UNDEFINED) * len(drawn):
        return Figure(value)
    reach = confidence.critical * float(known.std(ddof=1))
    return Figure(value, value - reach, value + reach)


def share_interval(value: float, drawn: Array, confidence: ConfidenceLevel) -> Figure:
    """A number between 0 and 1, with an interval that is even on the logit scale and so stays between them."""
    if not 0 < value < 1:
        return even_interval(value, drawn, confidence)
    spread = float(logit(np.clip(drawn, 1e-9, 1 - 1e-9)).std(ddof=1))
    ends = expit(logit(value) + np.array([-1, 1]) * confidence.critical * spread)
    return Figure(value, float(ends[0]), float(ends[1]))


def area_interval(value: float, drawn: Array, confidence: ConfidenceLevel, *, shown: bool = True) -> Figure:
    """An area between two curves, which noise only ever adds to: the interval has that bias taken off, down to 0.

    Equal curves have an area too, in a sample: unless it is `shown` otherwise that they differ, it starts at 0.
    """
    bias = max(float(drawn.mean()) - value, 0.0)
    reach = confidence.critical * float(drawn.std(ddof=1))
    low = max(min(value - bias - reach, value), 0.0) if shown else 0.0
    return Figure(value, low, max(value - bias + reach, value, reach))


def replicate_p(value: float, drawn: Array, freedom: int) -> float:
    """How often a difference this far from 0 comes about where there is none (Student's t)."""
    error = float(drawn.std(ddof=1))
    if error == 0:
        return 1.0 if value == 0 else 0.0
    return student_p(value, error, max(freedom, 1))


def simultaneous_band(values: Array, drawn: Array, confidence: ConfidenceLevel) -> tuple[Array, Array]:
    """A band that holds a whole curve: t's critical value, raised to that of the greatest departure along the curve."""
    error = drawn.std(axis=0, ddof=1)
    steady = error > 1e-12
    if not steady.any():
        return values.copy(), values.copy()
    departure = np.abs(drawn[:, steady] - values[steady]) / error[steady]
    greatest = float(np.quantile(departure.max(axis=1), confidence.level))
    reach = max(greatest, normal(confidence.level)) * confidence.critical / normal(confidence.level) * error
    return values - reach, values + reach


Sign = Literal["positive", "negative", "undecided"]


@dataclass(frozen=True, slots=True)
class XInterval:
    """A stretch of x over which one thing holds."""

    low: float
    high: float
    holds: str

    def to_dict(self) -> dict[str, Any]:
        """`{"from", "to", "holds"}`."""
        return {"from": self.low, "to": self.high, "holds": self.holds}


def x_intervals(x: Array, low: Array, high: Array, names: dict[Sign, str]) -> tuple[XInterval, ...]:
    """Where a band lies above 0, below it, or on both sides; neighbours that agree are joined.

    A border lies halfway between the places that disagree.
    """
    slack = 1e-12
    signs = np.where(low > slack, "positive", np.where(high < -slack, "negative", "undecided"))
    change = np.flatnonzero(signs[1:] != signs[:-1]) + 1
    borders = [float(x[0]), *((x[change - 1] + x[change]) / 2).tolist(), float(x[-1])]
    kinds = [names[str(signs[place])] for place in (0, *change)]  # type: ignore[index]
    return tuple(XInterval(a, b, kind) for a, b, kind in zip(borders[:-1], borders[1:], kinds, strict=True))


def joined(found: Sequence[XInterval], holds: str) -> float:
    """The length of all ranges over which something holds."""
    return sum(one.high - one.low for one in found if one.holds == holds)


PLACES = 201
"""Places at which graphs are drawn and ranges are separated."""

_NAMES = {"positive": "below gold", "negative": "above gold", "undecided": "undecided"}


@dataclass(frozen=True, eq=False)
class XRange:
    """The range of x that all curves cover, and the values of replicates on it."""

    low: float
    high: float
    grid: CurveGrid
    x: Array
    """Where graphs are drawn."""

    @classmethod
    def between(cls, low: float, high: float, performers: tuple[Performer, ...]) -> XRange:
        """The range from `low` to `high`, cut where one of the curves has a knot."""
        knots = {place for one in performers for place in one.fit.family.panel_edges}
        return cls(low, high, CurveGrid.over(low, high, sorted(knots)), np.linspace(low, high, PLACES))

    @property
    def width(self) -> float:
        """How wide it is."""
        return self.high - self.low


def confidence_level(*performers: Performer) -> ConfidenceLevel:
    """That of the performer with the fewest subjects."""
    return ConfidenceLevel(performers[0].level, min(one.subjects for one in performers) - 1)


def breaks(*performers: Performer) -> tuple[float, ...]:
    """Where one of the curves may bend sharply."""
    return tuple(place for one in performers for place in one.fit.family.breaks)


@dataclass(frozen=True, eq=False)
class Impurity:
    """A system beside the gold standard: |gold - system| along x, and its area."""

    system: str
    mass: Figure
    below: Figure
    """The part of the mass where the system does worse than the gold standard."""
    above: Figure
    """The part where it does better."""
    relative: Figure
    """The mass as a share of the area between the gold standard and the lower bound, to compare studies."""
    ranges: tuple[XInterval, ...]
    """Where the system is below gold or above gold, all along the range at once, and where that is undecided."""
    x: Array
    signed: Array
    """Gold less system."""
    low: Array
    high: Array
    """Ends of the band of the impurity, each place taken alone."""
    replicates: Array = field(repr=False)
    """The mass in each replicate."""

    @property
    def impurity(self) -> Array:
        """The distance from the gold standard."""
        return np.abs(self.signed)

    def to_dict(self) -> dict[str, Any]:
        """The figures and ranges; the graph is the curve of the document."""
        return {
            "impurity_mass": self.mass.to_dict(),
            "mass_below_gold": self.below.to_dict(),
            "mass_above_gold": self.above.to_dict(),
            "relative_mass": self.relative.to_dict(),
            "ranges": [stretch.to_dict() for stretch in self.ranges],
        }


def impurity(gold: Performer, system: Performer, x_range: XRange) -> Impurity:
    """How far a system is from the gold standard."""
    confidence = confidence_level(gold, system)
    knots = breaks(gold, system)
    above_zero, below_zero = integrals.parts(lambda x: gold.fit(x) - system.fit(x), x_range.low, x_range.high, knots)
    mass = above_zero + below_zero
    nodes = x_range.grid.nodes
    gold_drawn, system_drawn = gold.replicates(nodes), system.replicates(nodes)
    more, less = x_range.grid.parts(gold_drawn - system_drawn)
    foot = gold.fit.counts.scale.foot
    whole = integrals.integral(lambda x: gold.fit(x) - foot, x_range.low, x_range.high, gold.fit.family.breaks)
    whole_drawn = x_range.grid.integral(gold_drawn - foot)
    signed = gold.fit(x_range.x) - system.fit(x_range.x)
    around_signed = gold.replicates(x_range.x) - system.replicates(x_range.x)
    reach = confidence.critical * around_signed.std(axis=0, ddof=1)
    ranges = x_intervals(x_range.x, *simultaneous_band(signed, around_signed, confidence), _NAMES)  # type: ignore[arg-type]
    net = even_interval(above_zero - below_zero, more - less, confidence)
    below = net.low > 0 or any(one.holds == "below gold" for one in ranges)
    above = net.high < 0 or any(one.holds == "above gold" for one in ranges)
    share, shares = (mass / whole, (more + less) / whole_drawn) if whole > 0 else (float("nan"), more)
    nothing = Figure(share, why="the gold standard achieves nothing")
    return Impurity(
        system=system.name,
        mass=area_interval(mass, more + less, confidence, shown=below or above),
        below=area_interval(above_zero, more, confidence, shown=below),
        above=area_interval(below_zero, less, confidence, shown=above),
        relative=area_interval(share, shares, confidence, shown=below or above) if whole > 0 else nothing,
        ranges=ranges,
        x=x_range.x,
        signed=signed,
        low=np.maximum(np.abs(signed) - reach, 0),
        high=np.abs(signed) + reach,
        replicates=np.asarray(more + less),
    )


def complexity(gold: Performer) -> Figure:
    """How far the gold standard itself stays from the upper bound, as a share of what there is (Paek 2001, 3.2).

    The mean of (U - g(x)) / (U - L) over the range of its trials.
    """
    scale = gold.fit.counts.scale
    if scale.upper is None:
        return Figure(float("nan"), why="the metric has no upper bound; --upper gives it")
    low, high = gold.fit.family.low, gold.fit.family.high
    share = integrals.integral(lambda x: scale.share(gold.fit(x)), low, high, gold.fit.family.breaks) / (high - low)
    grid = CurveGrid.over(low, high, gold.fit.family.panel_edges)
    drawn = 1 - grid.integral(scale.share(gold.replicates(grid.nodes))) / (high - low)
    return share_interval(1 - share, drawn, confidence_level(gold))


def mean_performance(performer: Performer, x_range: XRange) -> Figure:
    """Performance on average over a range of x, each x counted alike."""
    value = integrals.integral(performer.fit, x_range.low, x_range.high, performer.fit.family.breaks) / x_range.width
    drawn = x_range.grid.integral(performer.replicates(x_range.grid.nodes)) / x_range.width
    scale, confidence = performer.fit.counts.scale, confidence_level(performer)
    if scale.upper is None:
        return even_interval(value, drawn, confidence)
    share = share_interval(float(scale.share(np.array(value))), scale.share(drawn), confidence)
    low, high = scale.performance(np.array([share.low, share.high]))
    return Figure(value, float(low), float(high))
