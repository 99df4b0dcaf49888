"""Significance tests and intervals of two rates."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import gammaln

from demur.core.stats.intervals import normal


def fisher(hits: int, drawn: int, marked: int, total: int) -> float:
    """Two-sided exact p-value of Fisher: `hits` of `drawn` are marked, as `marked` of `total` are.

    >>> round(fisher(3, 4, 4, 8), 4)
    0.4857
    """
    count = np.arange(max(0, drawn + marked - total), min(drawn, marked) + 1)
    log_p = _log_choose(marked, count) + _log_choose(total - marked, drawn - count) - _log_choose(total, drawn)
    seen = log_p[hits - count[0]]
    return float(min(1.0, np.exp(log_p[log_p <= seen + 1e-7]).sum()))


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
    z2 = normal(level) ** 2
    middle = (rate + z2 / (2 * n)) / (1 + z2 / n)
    reach = math.sqrt(z2) / (1 + z2 / n) * math.sqrt(max(rate * (1 - rate) / n + z2 / (4 * n * n), 0.0))
    return min(rate, max(0.0, middle - reach)), max(rate, min(1.0, middle + reach))


def _log_choose(n: int, k: Any) -> Any:
    return gammaln(n + 1) - gammaln(np.asarray(k) + 1) - gammaln(n - np.asarray(k) + 1)
