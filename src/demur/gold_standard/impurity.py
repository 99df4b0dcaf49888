"""How far systems are from the gold standard: impurity along x, its mass, complexity, and their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from scipy.special import expit, logit

from demur.core.arrays import Array
from demur.core.stats.intervals import Figure, normal, student
from demur.core.stats.tests import student_p
from demur.gold_standard import integrals
from demur.gold_standard.fitting import Performer
from demur.gold_standard.integrals import CurveGrid

_UNDEFINED = 0.1
"""The share of replicates without a value from which on there is no interval."""


@dataclass(frozen=True, slots=True)
class Sureness:
    """How sure intervals should be: the level, and one degree of freedom less than the scarcest subjects."""

    level: float
    freedom: int

    @property
    def critical(self) -> float:
        """Student's critical value."""
        return student(self.level, self.freedom)


def around(value: float, drawn: Array, sure: Sureness) -> Figure:
    """A number that replicates scatter about evenly."""
    known = drawn[~np.isnan(drawn)]
    if np.isnan(value) or len(known) < (1 - _UNDEFINED) * len(drawn):
        return Figure(value)
    reach = sure.critical * float(known.std(ddof=1))
    return Figure(value, value - reach, value + reach)


def around_share(value: float, drawn: Array, sure: Sureness) -> Figure:
    """A number between 0 and 1, with an interval that is even on the logit scale and so stays between them."""
    if not 0 < value < 1:
        return around(value, drawn, sure)
    spread = float(logit(np.clip(drawn, 1e-9, 1 - 1e-9)).std(ddof=1))
    ends = expit(logit(value) + np.array([-1, 1]) * sure.critical * spread)
    return Figure(value, float(ends[0]), float(ends[1]))


def around_area(value: float, drawn: Array, sure: Sureness, *, shown: bool = True) -> Figure:
    """An area between two curves, which noise only ever adds to: the interval has that bias taken off, down to 0.

    Equal curves have an area too, in a sample: unless it is `shown` otherwise that they differ, it starts at 0.
    """
    bias = max(float(drawn.mean()) - value, 0.0)
    reach = sure.critical * float(drawn.std(ddof=1))
    low = max(min(value - bias - reach, value), 0.0) if shown else 0.0
    return Figure(value, low, max(value - bias + reach, value, reach))


def two_sided_p(value: float, drawn: Array, freedom: int) -> float:
    """How often a difference this far from 0 comes about where there is none (Student's t)."""

    error = float(drawn.std(ddof=1))
    if error == 0:
        return 1.0 if value == 0 else 0.0
    return student_p(value, error, max(freedom, 1))


def simultaneous(values: Array, drawn: Array, sure: Sureness) -> tuple[Array, Array]:
    """A band that holds a whole curve: t's critical value, raised to that of the greatest departure along the curve."""
    error = drawn.std(axis=0, ddof=1)
    steady = error > 1e-12
    if not steady.any():
        return values.copy(), values.copy()
    departure = np.abs(drawn[:, steady] - values[steady]) / error[steady]
    greatest = float(np.quantile(departure.max(axis=1), sure.level))
    reach = max(greatest, normal(sure.level)) * sure.critical / normal(sure.level) * error
    return values - reach, values + reach


Sign = Literal["positive", "negative", "undecided"]


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of x over which one thing holds."""

    low: float
    high: float
    holds: str

    def to_dict(self) -> dict[str, Any]:
        """`{"from", "to", "holds"}`."""
        return {"from": self.low, "to": self.high, "holds": self.holds}


def stretches(x: Array, low: Array, high: Array, names: dict[Sign, str]) -> tuple[Stretch, ...]:
    """Where a band lies above 0, below it, or on both sides; neighbours that agree are joined.

    A border lies halfway between the places that disagree.
    """
    slack = 1e-12
    signs = np.where(low > slack, "positive", np.where(high < -slack, "negative", "undecided"))
    change = np.flatnonzero(signs[1:] != signs[:-1]) + 1
    borders = [float(x[0]), *((x[change - 1] + x[change]) / 2).tolist(), float(x[-1])]
    kinds = [names[str(signs[place])] for place in (0, *change)]  # type: ignore[index]
    return tuple(Stretch(a, b, kind) for a, b, kind in zip(borders[:-1], borders[1:], kinds, strict=True))


def joined(found: Sequence[Stretch], holds: str) -> float:
    """The length of all stretches over which something holds."""
    return sum(one.high - one.low for one in found if one.holds == holds)


PLACES = 201
"""Places at which graphs are drawn and stretches are told apart."""

_NAMES = {"positive": "below gold", "negative": "above gold", "undecided": "undecided"}


@dataclass(frozen=True, eq=False)
class Ground:
    """The range of x that all curves cover, and the values of replicates on it."""

    low: float
    high: float
    grid: CurveGrid
    x: Array
    """Where graphs are drawn."""

    @classmethod
    def between(cls, low: float, high: float, performers: tuple[Performer, ...]) -> Ground:
        """The ground from `low` to `high`, cut where one of the curves has a knot."""
        knots = {place for one in performers for place in one.fit.family.panel_edges}
        return cls(low, high, CurveGrid.over(low, high, sorted(knots)), np.linspace(low, high, PLACES))

    @property
    def width(self) -> float:
        """How wide it is."""
        return self.high - self.low


def sureness(*performers: Performer) -> Sureness:
    """That of the performer with the fewest subjects."""
    return Sureness(performers[0].level, min(one.subjects for one in performers) - 1)


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
    ranges: tuple[Stretch, ...]
    """Where the system is below gold or above gold, all along the range at once, and where that is undecided."""
    x: Array
    signed: Array
    """Gold less system."""
    low: Array
    high: Array
    """Ends of the band of the impurity, each place taken alone."""
    drawn: Array = field(repr=False)
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


def impurity(gold: Performer, system: Performer, ground: Ground) -> Impurity:
    """How far a system is from the gold standard."""
    sure = sureness(gold, system)
    knots = breaks(gold, system)
    above_zero, below_zero = integrals.parts(lambda x: gold.fit(x) - system.fit(x), ground.low, ground.high, knots)
    mass = above_zero + below_zero
    nodes = ground.grid.nodes
    gold_drawn, system_drawn = gold.drawn(nodes), system.drawn(nodes)
    more, less = ground.grid.parts(gold_drawn - system_drawn)
    foot = gold.fit.counts.scale.foot
    whole = integrals.integral(lambda x: gold.fit(x) - foot, ground.low, ground.high, gold.fit.family.breaks)
    whole_drawn = ground.grid.integral(gold_drawn - foot)
    signed = gold.fit(ground.x) - system.fit(ground.x)
    around_signed = gold.drawn(ground.x) - system.drawn(ground.x)
    reach = sure.critical * around_signed.std(axis=0, ddof=1)
    ranges = stretches(ground.x, *simultaneous(signed, around_signed, sure), _NAMES)  # type: ignore[arg-type]
    net = around(above_zero - below_zero, more - less, sure)
    below = net.low > 0 or any(one.holds == "below gold" for one in ranges)
    above = net.high < 0 or any(one.holds == "above gold" for one in ranges)
    share, shares = (mass / whole, (more + less) / whole_drawn) if whole > 0 else (float("nan"), more)
    nothing = Figure(share, why="the gold standard achieves nothing")
    return Impurity(
        system=system.name,
        mass=around_area(mass, more + less, sure, shown=below or above),
        below=around_area(above_zero, more, sure, shown=below),
        above=around_area(below_zero, less, sure, shown=above),
        relative=around_area(share, shares, sure, shown=below or above) if whole > 0 else nothing,
        ranges=ranges,
        x=ground.x,
        signed=signed,
        low=np.maximum(np.abs(signed) - reach, 0),
        high=np.abs(signed) + reach,
        drawn=np.asarray(more + less),
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
    drawn = 1 - grid.integral(scale.share(gold.drawn(grid.nodes))) / (high - low)
    return around_share(1 - share, drawn, sureness(gold))


def mean_performance(performer: Performer, ground: Ground) -> Figure:
    """Performance on average over a range of x, each x counted alike."""
    value = integrals.integral(performer.fit, ground.low, ground.high, performer.fit.family.breaks) / ground.width
    drawn = ground.grid.integral(performer.drawn(ground.grid.nodes)) / ground.width
    scale, sure = performer.fit.counts.scale, sureness(performer)
    if scale.upper is None:
        return around(value, drawn, sure)
    share = around_share(float(scale.share(np.array(value))), scale.share(drawn), sure)
    low, high = scale.performance(np.array([share.low, share.high]))
    return Figure(value, float(low), float(high))
