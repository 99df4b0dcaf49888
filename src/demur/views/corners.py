"""Where a legend stands: in the corner that the lines leave free, with room made for it where none does."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from demur.views.drawing import HEIGHT
from demur.views.lines import Corner

Array = NDArray[np.float64]
Span = tuple[float, float]

ROW, FRAME = 21, 26
"""Pixels of a row of the legend, and of its frame with the distance from the edge."""

CORNERS: tuple[Corner, ...] = ("top-right", "top-left", "bottom-right", "bottom-left")


def legend_corner(x: Array, low: Array, high: Array, domain: Span, *, rows: int) -> tuple[Corner, Span]:
    """A corner for a legend of so many rows, and the domain of y with room for it.

    `x` are places of the lines from 0 (left) to 1 (right), `low` and `high` the ends of their bands there.

    >>> x = np.array([0.0, 0.3, 0.8, 1.0])
    >>> legend_corner(x, np.array([8.0, 7.0, 2.0, 1.0]), np.array([9.0, 8.0, 3.0, 2.0]), (0.0, 10.0), rows=2)
    ('top-right', (0.0, 10.0))
    """
    if rows < 2:
        return CORNERS[0], domain
    gaps = {corner: _gap(corner, x, low, high, domain) for corner in CORNERS}
    corner = max(CORNERS, key=lambda one: gaps[one])
    share = min((FRAME + ROW * rows) / HEIGHT, 0.6)
    bottom, top = domain
    more = max(0.0, (share * (top - bottom) - gaps[corner]) / (1 - share))
    return corner, (bottom, top + more) if corner.startswith("top") else (bottom - more, top)


def _gap(corner: Corner, x: Array, low: Array, high: Array, domain: Span) -> float:
    """Height that lies free in a corner, as wide as a legend of long names is."""
    beside = (x >= 0.42) if corner.endswith("right") else (x <= 0.58)
    ends = (high if corner.startswith("top") else low)[beside]
    known = ends[np.isfinite(ends)]
    if not known.size:
        return domain[1] - domain[0]
    return float(domain[1] - known.max() if corner.startswith("top") else known.min() - domain[0])
