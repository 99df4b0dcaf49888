"""Figures with their intervals, and the few ways an interval is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtr, ndtri, stdtrit

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with its interval; where it is undefined, the reason."""

    value: float
    low: float = float("nan")
    high: float = float("nan")
    why: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """`{"value", "low", "high"}`, null where undefined and then with a `"why"`."""
        shown: dict[str, Any] = {
            key: None if np.isnan(part) else float(part)
            for key, part in (("value", self.value), ("low", self.low), ("high", self.high))
        }
        return {**shown, "why": self.why} if self.why is not None else shown

    @property
    def defined(self) -> bool:
        """Whether there is a number at all."""
        return not np.isnan(self.value)


def student(level: float, freedom: float) -> float:
    """Two-sided critical value of Student's t."""
    return float(stdtrit(max(freedom, 1), (1 + level) / 2))


def exact_binomial(rate: Any, n: Any, critical: Any) -> tuple[Array, Array]:
    """Clopper-Pearson interval of a rate out of `n` (which may be an effective number) at a normal critical value.

    >>> [round(float(end), 4) for end in exact_binomial(0.0, 20, 1.96)]
    [0.0, 0.1684]
    """
    rate, n = np.broadcast_arrays(np.clip(np.asarray(rate, dtype=np.float64), 0, 1), np.asarray(n, dtype=np.float64))
    tail = ndtr(-np.asarray(critical, dtype=np.float64))
    count = rate * n
    low = np.where(count > 0, betaincinv(np.maximum(count, 1e-12), n - count + 1, tail), 0.0)
    high = np.where(count < n, betaincinv(count + 1, np.maximum(n - count, 1e-12), 1 - tail), 1.0)
    return np.minimum(low, rate), np.maximum(high, rate)


def expanded_percentiles(replicates: Array, level: float, units: float) -> tuple[float, float]:
    """Percentile interval widened for small samples, so that it matches Student's t (Hesterberg 2015, section 5.3)."""
    kept = replicates[~np.isnan(replicates)]
    if kept.size < 0.9 * replicates.size or units < 2:
        return float("nan"), float("nan")
    tail = float(ndtr(-np.sqrt(units / (units - 1)) * student(level, units - 1)))
    low, high = np.quantile(kept, [tail, 1 - tail])
    return float(low), float(high)


def normal(level: float) -> float:
    """Two-sided critical value of the normal distribution."""
    return float(ndtri((1 + level) / 2))


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
