"""Which of two systems is nearer the gold standard, and where: stretches of x, crossings, and what stays undecided."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from demur.analyses.gold.bases import Array
from demur.analyses.gold.impurity import Ground, Impurity, breaks, sureness
from demur.analyses.gold.integrals import roots
from demur.analyses.gold.performers import Performer
from demur.analyses.gold.spread import Stretch, around, simultaneous, stretches, two_sided_p
from demur.measures.intervals import Figure

UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Crossing:
    """Where two impurities are equal, and the undecided stretch around it."""

    x: float
    low: float
    high: float
    shown: bool
    """Whether one system is shown to be nearer on one side of the stretch, and the other on the other side."""

    def to_dict(self) -> dict[str, Any]:
        """`{"x", "low", "high", "shown"}`."""
        return {"x": self.x, "low": self.low, "high": self.high, "shown": self.shown}


@dataclass(frozen=True, eq=False)
class Nearer:
    """Two systems side by side by their distance from the gold standard."""

    a: str
    b: str
    ranges: tuple[Stretch, ...]
    """Which is nearer where, all along the range at once: its name, or `undecided`."""
    crossings: tuple[Crossing, ...]
    mass_difference: Figure
    """The mass of a less that of b: below 0, a is nearer on the whole."""
    p: float
    """That of the difference of masses; of several pairs of a study corrected by Holm's method."""
    x: Array
    difference: Array
    """Impurity of a less that of b."""
    low: Array
    high: Array

    def to_dict(self) -> dict[str, Any]:
        """The verdict in figures."""
        return {
            "a": self.a,
            "b": self.b,
            "ranges": [{"from": one.low, "to": one.high, "nearer": one.holds} for one in self.ranges],
            "crossings": [crossing.to_dict() for crossing in self.crossings],
            "mass_difference": {**self.mass_difference.to_dict(), "p": self.p},
        }


def nearer(gold: Performer, a: Performer, b: Performer, masses: tuple[Impurity, Impurity], ground: Ground) -> Nearer:
    """Holds two systems against each other by their distance from the gold standard."""
    sure = sureness(gold, a, b)

    def difference(x: Array) -> Array:
        best = gold.fit(x)
        return np.asarray(np.abs(best - a.fit(x)) - np.abs(best - b.fit(x)))

    values = difference(ground.x)
    best = gold.drawn(ground.x)
    drawn = np.abs(best - a.drawn(ground.x)) - np.abs(best - b.drawn(ground.x))
    low, high = simultaneous(values, drawn, sure)
    found = stretches(ground.x, low, high, {"positive": b.name, "negative": a.name, "undecided": UNDECIDED})
    apart = masses[0].mass.value - masses[1].mass.value
    apart_drawn = masses[0].drawn - masses[1].drawn
    return Nearer(
        a=a.name,
        b=b.name,
        ranges=found,
        crossings=_crossings(difference, ground, breaks(gold, a, b), found),
        mass_difference=around(apart, apart_drawn, sure),
        p=two_sided_p(apart, apart_drawn, sure.freedom),
        x=ground.x,
        difference=values,
        low=low,
        high=high,
    )


def _crossings(
    difference: Callable[[Array], Array], ground: Ground, knots: Sequence[float], found: tuple[Stretch, ...]
) -> tuple[Crossing, ...]:
    return tuple(_crossing(x, found) for x in roots(difference, ground.low, ground.high, knots))


def _crossing(x: float, found: tuple[Stretch, ...]) -> Crossing:
    place = next((k for k, one in enumerate(found) if one.low <= x <= one.high and one.holds == UNDECIDED), None)
    if place is None:
        return Crossing(x, x, x, shown=True)
    before = found[place - 1].holds if place > 0 else None
    after = found[place + 1].holds if place + 1 < len(found) else None
    shown = before is not None and after is not None and before != after
    return Crossing(x, found[place].low, found[place].high, shown)


def nearest(pairs: Sequence[Nearer], names: Sequence[str]) -> tuple[Stretch, ...]:
    """Which of several systems is shown to be nearer than every other one, and where; else undecided."""
    if not pairs:
        return ()
    edges = sorted({edge for pair in pairs for one in pair.ranges for edge in (one.low, one.high)})
    found: list[Stretch] = []
    for low, high in pairwise(edges):
        best = _best((low + high) / 2, pairs, names)
        if found and found[-1].holds == best:
            found[-1] = Stretch(found[-1].low, high, best)
        else:
            found.append(Stretch(low, high, best))
    return tuple(found)


def _best(x: float, pairs: Sequence[Nearer], names: Sequence[str]) -> str:
    held = [next(one.holds for one in pair.ranges if one.low <= x <= one.high) for pair in pairs]
    return next((name for name in names if held.count(name) == len(names) - 1), UNDECIDED)
