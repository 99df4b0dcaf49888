"""Significance tests, corrections for several of them, and intervals of two rates."""

from __future__ import annotations

import math

import numpy as np

from demur.core.arrays import Array
from demur.core.stats.quantiles import normal_quantile


def fisher(hits: int, drawn: int, marked: int, total: int) -> float:
    """Two-sided exact p-value of Fisher: `hits` of `drawn` are marked, as `marked` of `total` are.

    >>> round(fisher(3, 4, 4, 8), 4)
    0.4857
    """
    from scipy.stats import fisher_exact

    table = [[hits, drawn - hits], [marked - hits, total - drawn - marked + hits]]
    return float(fisher_exact(table).pvalue)


def mcnemar(a_only: int, b_only: int) -> float:
    """Two-sided exact p-value of McNemar: a alone errs so often, and b alone.

    >>> round(mcnemar(2, 9), 4)
    0.0654
    """
    from scipy.special import bdtr

    return min(1.0, 2 * float(bdtr(min(a_only, b_only), a_only + b_only, 0.5)))


def student_p(value: float, error: float, freedom: float) -> float:
    """Two-sided p-value of a value being 0 by Student's t, with its standard error and degrees of freedom.

    >>> round(student_p(2.0, 1.0, 10), 4)
    0.0734
    """
    from scipy.special import stdtr

    return float(2 * stdtr(freedom, -abs(value) / error))


def holm(p: Array) -> Array:
    """P-values corrected by Holm's method; those that are NaN stay so.

    >>> holm(np.array([0.01, 0.04, 0.03])).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    adjusted = np.full(p.size, np.nan)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    steps = np.minimum((order.size - np.arange(order.size)) * p[order], 1.0)
    adjusted[order] = np.maximum.accumulate(steps) if order.size else steps
    return adjusted


def newcombe(one: tuple[float, float], other: tuple[float, float], level: float) -> tuple[float, float]:
    """Interval of a rate less another, each with its number of inputs (Newcombe 1998, method 10).

    >>> [round(end, 4) for end in newcombe((56 / 70, 70), (48 / 80, 80), 0.95)]
    [0.0524, 0.3339]
    """
    difference = one[0] - other[0]
    (low, high), (other_low, other_high) = (wilson(*side, level) for side in (one, other))
    down, up = math.hypot(one[0] - low, other_high - other[0]), math.hypot(high - one[0], other[0] - other_low)
    return difference - down, difference + up


def wilson(rate: float, n: float, level: float) -> tuple[float, float]:
    """Wilson's interval of a rate of `n` inputs, which may be an effective number.

    >>> [round(end, 4) for end in wilson(0.0, 20, 0.95)]
    [0.0, 0.1611]
    """
    z2 = normal_quantile((1 + level) / 2) ** 2
    middle = (rate + z2 / (2 * n)) / (1 + z2 / n)
    reach = math.sqrt(z2) / (1 + z2 / n) * math.sqrt(max(rate * (1 - rate) / n + z2 / (4 * n * n), 0.0))
    return min(rate, max(0.0, middle - reach)), max(rate, min(1.0, middle + reach))
