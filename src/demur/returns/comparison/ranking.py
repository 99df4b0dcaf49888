"""Who has the lowest curve over which non-return rates, and who is not shown to be worse there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from demur.core.arrays import Array
from demur.returns.curves import GRID, DifferenceBand, ErrorReturnCurve

Places = NDArray[np.int64]
Bands = Mapping[tuple[str, str], DifferenceBand]

SHORTEST_REGION = 0.05
"""A region of the ranking is wider than this range of non-return rates."""

OPEN, WORSE, ABSENT = range(3)
"""What is shown of a system at a non-return rate: nothing, that it is worse than the leader, or no curve of it."""


@dataclass(frozen=True, slots=True)
class RankingRegion:
    """A range of non-return rates, the system with the lowest curve there, and those not shown to be worse."""

    start: float
    stop: float
    best: str
    also: tuple[str, ...]
    absent: tuple[str, ...] = ()
    """Systems that withhold more than this on their own, so that they have no curve here."""
    gaps: bool = False
    """Whether it has short gaps in which a system that is not named in `also` does not differ significantly either."""


def ranking(curves: Mapping[str, ErrorReturnCurve], bands: Bands) -> tuple[RankingRegion, ...]:
    """Who has the lowest curve over which non-return rates, and who is not shown to be worse there.

    A new region begins where the lowest curve changes, and where the significance of a difference from it changes.
    """
    x = np.linspace(min(band.x[0] for band in bands.values()), max(band.x[-1] for band in bands.values()), GRID)
    names = list(curves)
    heights = np.array([np.where(x >= curve.floor, curve.error_at(x), np.inf) for curve in curves.values()])
    leader = _steady(heights.argmin(axis=0), x)
    signs = np.array(
        [[_band_sign(name, names[best], bands, at) for name in names] for best, at in zip(leader, x, strict=True)]
    )
    closed, gaps = _closed(signs, leader, x)
    runs = _merged(closed, leader, x)
    edges = [float(x[0])]
    for start, _ in runs[1:]:  # a region that claims less than the one before begins at the last rate of that one
        fewer = bool((closed[start - 1][closed[start] == WORSE] == WORSE).all())
        edges.append(float(x[start - 1 if fewer else start]))
    regions = []
    for (start, stop), ends in zip(runs, pairwise([*edges, float(x[-1])]), strict=True):
        best, states = names[leader[start]], list(zip(names, closed[start], strict=True))
        also, absent = (
            tuple(name for name, state in states if name != best and state == kind) for kind in (OPEN, ABSENT)
        )
        regions.append(RankingRegion(*ends, best, also, absent, bool(gaps[start:stop].any())))
    return tuple(regions)


def _steady(leader: Places, x: Array) -> Places:
    """The leader without stretches too short to tell: such a one goes to the one before it, the first to the next."""
    steady = leader.copy()
    for start, stop in _runs(leader):
        if _short(start, stop, x):
            steady[start:stop] = steady[start - 1] if start > 0 else leader[min(stop, leader.size - 1)]
    return steady


def _closed(signs: Places, leader: Places, x: Array) -> tuple[Places, NDArray[np.bool_]]:
    """Short gaps in what is shown closed, and where they were; what is shown over a short stretch only, dropped."""
    closed, gaps = signs.copy(), np.zeros(signs.shape, dtype=np.bool_)
    for system in range(signs.shape[1]):
        column = closed[:, system]
        for start, stop in _runs(column)[1:-1]:
            around = {int(column[start - 1]), int(column[stop])}
            if column[start] == OPEN and around == {WORSE} and _short(start, stop, x):
                column[start:stop], gaps[start:stop, system] = WORSE, True
        for start, stop in _runs(np.column_stack([leader, column])):
            if column[start] == WORSE and _short(start, stop, x):
                column[start:stop], gaps[start:stop, system] = OPEN, False
    return closed, gaps


def _merged(signs: Places, leader: Places, x: Array) -> list[tuple[int, int]]:
    """The regions, short ones joined to a neighbour of the same leader that claims no more than they do."""
    place = 0
    while place < len(regions := _runs(np.column_stack([leader, signs]))):
        start, stop = regions[place]
        sides = [regions[side][0] for side in (place + 1, place - 1) if 0 <= side < len(regions)]
        weaker = [
            side
            for side in sides
            if leader[side] == leader[start] and (signs[start][signs[side] == WORSE] == WORSE).all()
        ]
        if weaker and _short(start, stop, x):
            signs[start:stop] = signs[weaker[0]]
            place = 0
        else:
            place += 1
    return regions


def _runs(states: Places) -> list[tuple[int, int]]:
    """Where each run of equal states begins and ends."""
    rows = states if states.ndim > 1 else states[:, None]
    changes = np.flatnonzero((rows[1:] != rows[:-1]).any(axis=1)) + 1
    return list(pairwise([0, *changes.tolist(), len(rows)]))


def _short(start: int, stop: int, x: Array) -> bool:
    return bool(x[min(stop, x.size - 1)] - x[start] < SHORTEST_REGION + 1e-9)


def _band_sign(name: str, best: str, bands: Bands, at: float) -> int:
    """What the band shows of `name` beside `best` at a non-return rate."""
    if name == best:
        return OPEN
    flipped = (name, best) not in bands
    band = bands[(best, name) if flipped else (name, best)]
    if at < band.x[0]:
        return ABSENT
    low = -band.high if flipped else band.low
    return WORSE if np.interp(at, band.x, low) > 0 else OPEN
