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
Bands = Mapping[tuple[str, str], DifferenceBand]

SHORTEST_REIGN = 0.05
"""A region of the ranking is wider than this range of non-return rates."""


@dataclass(frozen=True, slots=True)
class Reign:
    """A range of non-return rates, the system with the lowest curve there, and those not shown to be worse."""

    start: float
    stop: float
    best: str
    also: tuple[str, ...]


def ranking(curves: Mapping[str, ErrorReturnCurve], bands: Bands) -> tuple[Reign, ...]:
    """Who has the lowest curve over which non-return rates, and who is not shown to be worse there.

    A new region begins where the lowest curve changes, and where a system begins or ceases to be told apart from it.
    """
    x = np.linspace(min(band.x[0] for band in bands.values()), max(band.x[-1] for band in bands.values()), GRID)
    names = list(curves)
    heights = np.array([np.where(x >= curve.floor, curve.error_at(x), np.inf) for curve in curves.values()])
    leader = _steady(heights.argmin(axis=0), x)
    told_apart = np.array(
        [[_shown_worse(name, names[best], bands, at) for name in names] for best, at in zip(leader, x, strict=True)]
    )
    state = _steady(np.unique(np.column_stack([leader, told_apart]), axis=0, return_inverse=True)[1].ravel(), x)
    edges = np.flatnonzero(np.diff(state, prepend=-1, append=-1)).tolist()
    reigns = []
    for start, stop in pairwise(edges):
        shown = told_apart[start:stop].mean(axis=0) > 0.5
        best = names[int(np.bincount(leader[start:stop]).argmax())]
        also = tuple(name for name, worse in zip(names, shown, strict=True) if name != best and not worse)
        reigns.append(Reign(float(x[start]), float(x[min(stop, GRID - 1)]), best, also))
    return tuple(reigns)


def _steady(state: NDArray[np.int64], x: Array) -> NDArray[np.int64]:
    """The state without stretches too short to tell: such a one goes to the one before it, the first to the next."""
    steady = state.copy()
    edges = np.flatnonzero(np.diff(state, prepend=-1, append=-1)).tolist()
    for start, stop in pairwise(edges):
        if x[min(stop, x.size - 1)] - x[start] < SHORTEST_REIGN + 1e-9:
            steady[start:stop] = steady[start - 1] if start > 0 else state[min(stop, state.size - 1)]
    return steady


def _shown_worse(name: str, best: str, bands: Bands, at: float) -> bool:
    """Whether the band shows `name` worse than `best` at a non-return rate."""
    if name == best:
        return False
    flipped = (name, best) not in bands
    band = bands[(best, name) if flipped else (name, best)]
    if at < band.x[0]:
        return True
    low = -band.high if flipped else band.low
    return bool(np.interp(at, band.x, low) > 0)
