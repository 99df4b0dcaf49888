"""Figures of measures whose totals are known by unit: value, interval and test from replicates of the units."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, stdtr

from demur.measures.intervals import Figure, exact_binomial, normal, student

Array = NDArray[np.float64]
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
    p = float(2 * stdtr(units - 1, -abs(value) / spread))
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
