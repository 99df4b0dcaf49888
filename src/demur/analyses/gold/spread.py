"""From replicates to intervals: Student's t around a number, and along a whole curve at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.special import expit, logit

from demur.analyses.gold.bases import Array
from demur.measures.intervals import Figure, normal, student

_UNDEFINED = 0.1
"""The share of replicates without a value from which on there is no interval."""


@dataclass(frozen=True, slots=True)
class Sureness:
    """How sure intervals should be: the level, and one degree of freedom less than the scarcest subjects."""

    level: float
    freedom: int

    @property
    def critical(self) -> float:
        """Student's critical value."""
        return student(self.level, self.freedom)


def around(value: float, drawn: Array, sure: Sureness) -> Figure:
    """A number that replicates scatter about evenly."""
    known = drawn[~np.isnan(drawn)]
    if np.isnan(value) or len(known) < (1 - _UNDEFINED) * len(drawn):
        return Figure(value)
    reach = sure.critical * float(known.std(ddof=1))
    return Figure(value, value - reach, value + reach)


def around_share(value: float, drawn: Array, sure: Sureness) -> Figure:
    """A number between 0 and 1, with an interval that is even on the logit scale and so stays between them."""
    if not 0 < value < 1:
        return around(value, drawn, sure)
    spread = float(logit(np.clip(drawn, 1e-9, 1 - 1e-9)).std(ddof=1))
    ends = expit(logit(value) + np.array([-1, 1]) * sure.critical * spread)
    return Figure(value, float(ends[0]), float(ends[1]))


def around_area(value: float, drawn: Array, sure: Sureness, *, shown: bool = True) -> Figure:
    """An area between two curves, which noise only ever adds to: the interval has that bias taken off, down to 0.

    Equal curves have an area too, in a sample: unless it is `shown` otherwise that they differ, it starts at 0.
    """
    bias = max(float(drawn.mean()) - value, 0.0)
    reach = sure.critical * float(drawn.std(ddof=1))
    low = max(min(value - bias - reach, value), 0.0) if shown else 0.0
    return Figure(value, low, max(value - bias + reach, value, reach))


def two_sided_p(value: float, drawn: Array, freedom: int) -> float:
    """How often a difference this far from 0 comes about where there is none (Student's t)."""
    from scipy.special import stdtr

    error = float(drawn.std(ddof=1))
    if error == 0:
        return 1.0 if value == 0 else 0.0
    return float(2 * stdtr(max(freedom, 1), -abs(value) / error))


def simultaneous(values: Array, drawn: Array, sure: Sureness) -> tuple[Array, Array]:
    """A band that holds a whole curve: t's critical value, raised to that of the greatest departure along the curve."""
    error = drawn.std(axis=0, ddof=1)
    steady = error > 1e-12
    if not steady.any():
        return values.copy(), values.copy()
    departure = np.abs(drawn[:, steady] - values[steady]) / error[steady]
    greatest = float(np.quantile(departure.max(axis=1), sure.level))
    reach = max(greatest, normal(sure.level)) * sure.critical / normal(sure.level) * error
    return values - reach, values + reach


Sign = Literal["positive", "negative", "undecided"]


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of x over which one thing holds."""

    low: float
    high: float
    holds: str

    def to_dict(self) -> dict[str, Any]:
        """`{"from", "to", "holds"}`."""
        return {"from": self.low, "to": self.high, "holds": self.holds}


def stretches(x: Array, low: Array, high: Array, names: dict[Sign, str]) -> tuple[Stretch, ...]:
    """Where a band lies above 0, below it, or on both sides; neighbours that agree are joined.

    A border lies halfway between the places that disagree.
    """
    slack = 1e-12
    signs = np.where(low > slack, "positive", np.where(high < -slack, "negative", "undecided"))
    change = np.flatnonzero(signs[1:] != signs[:-1]) + 1
    borders = [float(x[0]), *((x[change - 1] + x[change]) / 2).tolist(), float(x[-1])]
    kinds = [names[str(signs[place])] for place in (0, *change)]  # type: ignore[index]
    return tuple(Stretch(a, b, kind) for a, b, kind in zip(borders[:-1], borders[1:], kinds, strict=True))


def joined(found: Sequence[Stretch], holds: str) -> float:
    """The length of all stretches over which something holds."""
    return sum(one.high - one.low for one in found if one.holds == holds)
