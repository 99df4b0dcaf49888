"""The area under the error-return curve as a V-statistic: what each row adds, and the standard error in closed form.

A = (1/N^2) sum over pairs (i, j) of e_i a_j (1[s_j < s_i] + 1/2 1[s_j = s_i]), with e_i 1 for a wrong answer and a_j
1 for an answered row. Its first-order (Hajek) projection gives each row an influence, as DeLong et al. (1988) do for
the AUROC; summing influences within dialogues makes the standard error respect clusters, and differencing them
between systems makes the test of a difference a paired one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from demur.measures.resampling import Rows
from demur.measures.returns import nonreturn_and_error
from demur.measures.sweep import Sweep

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its standard error and the degrees of freedom behind it."""

    value: float
    error: float
    freedom: int

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The value plus and minus Student's t times the standard error."""
        reach = float(stdtrit(self.freedom, (1 + level) / 2)) * self.error
        return self.value - reach, self.value + reach

    @property
    def p(self) -> float:
        """Two-sided p-value of the value being 0."""
        if self.error == 0:
            return 1.0 if self.value == 0 else 0.0
        return float(2 * stdtr(self.freedom, -abs(self.value) / self.error))


def area_from(sweep: Sweep, start: float) -> float:
    """Area under the error-return curve from the non-return rate `start` to 1."""
    x, y = nonreturn_and_error(sweep)
    corners = np.concatenate([[start], x[x > start]])
    return float(np.trapezoid(np.interp(corners, x, y), corners))


def augrc_estimate(rows: Rows, *, start: float | None = None) -> Estimate:
    """AUGRC with its closed-form standard error; `start` cuts the area on the left (default: the curve's start)."""
    sweep = rows.sweep()
    floor = float(sweep.withheld / sweep.total)
    left = floor if start is None else max(start, floor)
    influence = area_influence(rows, sweep, left, moving_start=left == floor)
    return _estimate(area_from(sweep, left), influence, [rows])


def augrc_difference(a: Rows, b: Rows, *, paired: bool) -> tuple[Estimate, float]:
    """AUGRC of `a` less that of `b` over the range both reach, and where that range starts."""
    sweeps = [rows.sweep() for rows in (a, b)]
    floors = [float(sweep.withheld / sweep.total) for sweep in sweeps]
    left = max(floors)
    value = area_from(sweeps[0], left) - area_from(sweeps[1], left)
    parts = [area_influence(rows, sweep, left, moving_start=False) for rows, sweep in zip((a, b), sweeps, strict=True)]
    heights = [np.interp(left, *nonreturn_and_error(sweep)) for sweep in sweeps]
    mover = int(floors[1] > floors[0])
    parts[mover] = parts[mover] + (1 if mover else -1) * (heights[0] - heights[1]) * _floor_influence((a, b)[mover])
    if paired:
        return _estimate(value, parts[0] - parts[1], [a]), left
    one, two = (_estimate(0.0, part, [rows]) for part, rows in zip(parts, (a, b), strict=True))
    freedom = _welch(one, two)
    return Estimate(value, float(np.hypot(one.error, two.error)), freedom), left


def area_influence(rows: Rows, sweep: Sweep, start: float, *, moving_start: bool) -> Array:
    """What each row adds to the area: e (x - start) + y(x) - 2A - start y(start), x the row's place on the curve.

    `moving_start` adds the effect of the row on the start itself, where the area begins at the system's own floor.
    """
    x, y = nonreturn_and_error(sweep)
    middle_x, middle_y = (x[:-1] + x[1:]) / 2, (y[:-1] + y[1:]) / 2
    level = np.searchsorted(sweep.threshold, np.where(rows.answered, rows.confidence, -np.inf), side="right") - 1
    level = np.maximum(level, 0)
    at_start = float(np.interp(start, x, y))
    if sweep.threshold.size:
        place = np.where(rows.answered, middle_x[level], -np.inf)
        height = np.where(place > start, middle_y[level], at_start)
    else:
        place, height = np.full(rows.weight.size, -np.inf), np.full(rows.weight.size, at_start)
    gain = np.where(rows.answered & ~rows.right, np.maximum(place - start, 0.0), 0.0)
    influence = gain + height - 2 * area_from(sweep, start) - start * at_start
    return influence - at_start * _floor_influence(rows) if moving_start else influence


def _floor_influence(rows: Rows) -> Array:
    withheld = (~rows.answered).astype(np.float64)
    return withheld - float(withheld @ rows.weight / rows.weight.sum())


def _estimate(value: float, influence: Array, systems: list[Rows]) -> Estimate:
    rows = systems[0]
    pull = influence * rows.weight / rows.weight.sum()
    if rows.unit is not None:
        pull = np.bincount(rows.unit, weights=pull)
    units = pull.size
    if units < 2:
        return Estimate(value, float("nan"), 1)
    spread = float(np.square(pull - pull.mean()).sum()) * units / (units - 1)
    return Estimate(value, float(np.sqrt(spread)), units - 1)


def _welch(one: Estimate, two: Estimate) -> int:
    """Welch's degrees of freedom of a difference of independent estimates."""
    total = one.error**2 + two.error**2
    if not total > 0:
        return min(one.freedom, two.freedom)
    return max(1, int(total**2 / (one.error**4 / one.freedom + two.error**4 / two.freedom)))
