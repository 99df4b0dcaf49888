"""Which system leads over which non-return rates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from demur.analyses.bands import GRID
from demur.analyses.differences import DifferenceBand
from demur.measures.curves import ErrorReturnCurve

Array = NDArray[np.float64]

SHORTEST_REIGN = 0.02
"""A system leads a region only if it does so over more than this range of non-return rates."""


@dataclass(frozen=True, slots=True)
class Reign:
    """A range of non-return rates, the system with the lowest curve there, and those not shown to be worse."""

    start: float
    stop: float
    best: str
    also: tuple[str, ...]


def ranking(
    curves: Mapping[str, ErrorReturnCurve], bands: Mapping[tuple[str, str], DifferenceBand]
) -> tuple[Reign, ...]:
    """Who has the lowest curve over which non-return rates, and who is not shown to be worse there."""
    x = np.linspace(min(curve.floor for curve in curves.values()), 1.0, GRID)
    names = list(curves)
    heights = np.array([np.where(x >= curve.floor, curve.error_at(x), np.inf) for curve in curves.values()])
    leader = _without_flicker(heights.argmin(axis=0), x)
    edges = np.flatnonzero(np.diff(leader, prepend=-1, append=-1))
    reigns = []
    for start, stop in pairwise(edges.tolist()):
        best = names[leader[start]]
        end = x[min(stop, GRID - 1)]
        also = tuple(name for name in names if name != best and not _shown_worse(name, best, bands, x[start], end))
        reigns.append(Reign(float(x[start]), float(end), best, also))
    return tuple(reigns)


def _without_flicker(leader: NDArray[np.int64], x: Array) -> NDArray[np.int64]:
    """A lead shorter than SHORTEST_REIGN goes to the one before it."""
    steady = leader.copy()
    edges = np.flatnonzero(np.diff(leader, prepend=-1, append=-1))
    for start, stop in pairwise(edges.tolist()):
        if start > 0 and x[min(stop, x.size - 1)] - x[start] < SHORTEST_REIGN + 1e-9:
            steady[start:stop] = steady[start - 1]
    return steady


def _shown_worse(
    name: str, best: str, bands: Mapping[tuple[str, str], DifferenceBand], start: float, stop: float
) -> bool:
    """Whether the band shows `name` worse than `best` somewhere on the range and better nowhere."""
    flipped = (name, best) not in bands
    band = bands[(best, name) if flipped else (name, best)]
    inside = (band.x >= start) & (band.x <= stop)
    low, high = (-band.high, -band.low) if flipped else (band.low, band.high)
    return bool((low[inside] > 0).any() and not (high[inside] < 0).any())
