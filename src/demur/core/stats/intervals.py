"""Figures with their intervals, and the few ways an interval is made."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from demur.core.arrays import Array
from demur.core.stats.quantiles import beta_quantile, normal_quantile, normal_tail, student_quantile
from demur.core.stats.tests import student_p
from demur.errors import UsageError


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
    return student_quantile(max(freedom, 1), (1 + level) / 2)


def exact_binomial(rate: Any, n: Any, critical: Any) -> tuple[Array, Array]:
    """Clopper-Pearson interval of a rate out of `n` (which may be an effective number) at a normal critical value.

    >>> [round(float(end), 4) for end in exact_binomial(0.0, 20, 1.96)]
    [0.0, 0.1684]
    """
    rate, n = np.broadcast_arrays(np.clip(np.asarray(rate, dtype=np.float64), 0, 1), np.asarray(n, dtype=np.float64))
    if rate.ndim == 0 and np.ndim(critical) == 0:
        ends = _clopper_pearson(float(rate), float(n), normal_tail(float(critical)))
        return np.asarray(ends[0]), np.asarray(ends[1])
    from scipy.special import betaincinv, ndtr

    tail = ndtr(-np.asarray(critical, dtype=np.float64))
    count = rate * n
    low = np.where(count > 0, betaincinv(np.maximum(count, 1e-12), n - count + 1, tail), 0.0)
    high = np.where(count < n, betaincinv(count + 1, np.maximum(n - count, 1e-12), 1 - tail), 1.0)
    return np.minimum(low, rate), np.maximum(high, rate)


def _clopper_pearson(rate: float, n: float, tail: float) -> tuple[float, float]:
    count = rate * n
    low = beta_quantile(count, n - count + 1, tail) if count > 0 else 0.0
    high = beta_quantile(count + 1, n - count, 1 - tail) if count < n else 1.0
    return min(low, rate), max(high, rate)


def expanded_percentiles(replicates: Array, level: float, units: float) -> tuple[float, float]:
    """Percentile interval widened for small samples, so that it matches Student's t (Hesterberg 2015, section 5.3)."""
    kept = replicates[~np.isnan(replicates)]
    if kept.size < 0.9 * replicates.size or units < 2:
        return float("nan"), float("nan")
    tail = normal_tail(math.sqrt(units / (units - 1)) * student(level, units - 1))
    low, high = np.quantile(kept, [tail, 1 - tail])
    return float(low), float(high)


def normal(level: float) -> float:
    """Two-sided critical value of the normal distribution."""
    return normal_quantile((1 + level) / 2)


def logit(share: Any) -> Any:
    """The logarithm of the odds."""
    return np.log(share) - np.log1p(-share)


def expit(log_odds: Any) -> Any:
    """The share that has these logarithmic odds."""
    return np.exp(-np.logaddexp(0.0, -log_odds))


Scale = Literal["log", "logit", "plain"]

MOST_UNDEFINED = 0.1
"""Share of replicates that may have no value before no interval is given."""

FEWEST = 5
"""Units from which replicates tell something of the uncertainty; of fewer no interval is given."""

ROUNDING = 1e-9
"""Share of the values themselves up to which a spread of replicates is rounding, not uncertainty."""

_SCALES: dict[Scale, tuple[Callable[[Any], Any], Callable[[Any], Any], Callable[[float], float]]] = {
    "log": (np.log, np.exp, lambda value: value),
    "logit": (logit, expit, lambda value: value * (1 - value)),
    "plain": (lambda value: value, lambda value: value, lambda _: 1.0),
}
"""Each scale's function, its inverse, and by what a spread is divided to be one on the scale."""


@dataclass(frozen=True, slots=True)
class Difference:
    """By how much a figure of a exceeds that of b, with interval, p-value, and the p-value corrected for all pairs."""

    value: float
    low: float
    high: float
    p: float
    p_adjusted: float
    why: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The difference as plain values."""
        shown = {"value": self.value, "low": self.low, "high": self.high, "p": self.p, "p_adjusted": self.p_adjusted}
        plain = {key: None if np.isnan(part) else float(part) for key, part in shown.items()}
        return plain if self.why is None else {**plain, "why": self.why}


def unit_figure(
    value: float, drawn: Array, units: int, *, level: float, scale: Scale, why: Callable[[], str]
) -> Figure:
    """A value with Student's interval on the scale that suits it, from the spread of its replicates.

    >>> unit_figure(0.5, np.array([0.4, 0.6]), 10, level=0.95, scale="plain", why=str).low.__round__(3)
    0.262
    """
    if np.isnan(value):
        return Figure(value, why=why())
    if scale == "logit" and value in (0.0, 1.0):
        low, high = exact_binomial(value, units, normal(level))
        return Figure(value, float(low), float(high))
    spread = _spread(drawn, units)
    if not spread > 0 or units < FEWEST or (scale == "log" and value <= 0):
        return Figure(value)
    onto, back, stretch = _SCALES[scale]
    reach = student(level, units - 1) * spread / stretch(value)
    low, high = back(onto(value) - reach), back(onto(value) + reach)
    return Figure(value, float(low), float(high))


def difference(value: float, drawn: Array, units: int, *, level: float) -> Difference:
    """A difference with Student's interval and test, from the spread of its replicates."""
    spread = _spread(drawn, units)
    nothing = float("nan")
    if np.isnan(value):
        return Difference(value, nothing, nothing, nothing, nothing, why="undefined for one of the two")
    if value == 0 and spread == 0:
        return Difference(0.0, 0.0, 0.0, 1.0, 1.0)
    if not spread > 0 or units < FEWEST:
        return Difference(value, nothing, nothing, nothing, nothing)
    reach = student(level, units - 1) * spread
    p = student_p(value, spread, units - 1)
    return Difference(value, value - reach, value + reach, p, p)


def _spread(drawn: Array, units: int) -> float:
    """The standard error that replicates show; drawing from the sample itself makes it too small by a little."""
    kept = drawn[~np.isnan(drawn)]
    if kept.size < 2 or kept.size < (1 - MOST_UNDEFINED) * drawn.size:
        return float("nan")
    spread = float(kept.std())
    if spread <= ROUNDING * max(float(np.abs(kept).max()), 1e-300):
        return 0.0
    return spread * math.sqrt(units / max(units - 1, 1))


def check_level(level: float) -> None:
    """Refuse a confidence level outside (0, 1)."""
    if not 0 < level < 1:
        raise UsageError(f"a confidence level lies between 0 and 1, such as 0.95; got {level:g}")
