"""How far trials lie from a curve: what chance alone makes of it, what counts as little, and how it is told."""

from __future__ import annotations

import numpy as np

from demur.analyses.gold.bases import Array
from demur.analyses.gold.counts import Counts
from demur.analyses.gold.fitting import CurveFit

ARITHMETIC = 1e-6
"""Part of the size of values below which a difference is what arithmetic leaves of none."""

_SPREADS = 4.0
"""Standard deviations that values without an upper bound are taken to span."""


def size_of(counts: Counts) -> float:
    """How large shares are: the root of their mean square."""
    return float(np.sqrt(counts.squares.sum() / counts.sizes.sum()))


def span(counts: Counts) -> float:
    """The metric's width; without an upper bound about what the values span, four standard deviations of them."""
    if counts.scale.upper is not None:
        return counts.scale.width
    n = float(counts.sizes.sum())
    spread = float(counts.squares.sum()) / n - (float(counts.totals.sum()) / n) ** 2
    return _SPREADS * float(np.sqrt(max(spread, 0.0)))


def variance(fit: CurveFit, dispersion: float | None = None) -> Array:
    """Of the share of one trial at each place, if the curve is right.

    A curve that reaches a bound is kept half a trial of all away from it, so that no outcome is impossible.
    """
    counts = fit.counts
    over = fit.dispersion if dispersion is None else dispersion
    if fit.link == "identity" and not counts.binomial:
        least = max(ARITHMETIC * size_of(counts), 1e-12) ** 2
        return np.full(len(counts.places), max(over, least))
    edge = 0.5 / (float(counts.sizes.sum()) + 1)
    inside = np.clip(fit.shares, edge, 1 - edge)
    return np.asarray(inside * (1 - inside) * (1.0 if counts.binomial else max(over, 1e-9)))


def told(amount: float, counts: Counts) -> str:
    """A difference of performance in words: in points of a hundred where trials are right or wrong."""
    if not counts.binomial:
        return f"{amount:.3g}"
    shown = points(amount)
    if shown == "0":
        return "less than 0.1 points"
    return f"{shown} point" if shown == "1" else f"{shown} points"


def points(amount: float) -> str:
    """A rate in points of a hundred, to a tenth where there are few.

    >>> points(0.008), points(0.01), points(0.1234)
    ('0.8', '1', '12')
    """
    shown = 100 * amount
    return f"{shown:.0f}" if shown >= 9.95 else f"{shown:.1f}".removesuffix(".0")
