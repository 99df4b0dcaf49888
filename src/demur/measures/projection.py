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

from demur.measures.resampling import Rows, Sample
from demur.measures.sweep import Sweep, ratio

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
    x, y = sweep.rates
    first = int(np.searchsorted(x, start, side="right"))
    height = np.interp(start, x, y)
    return float(np.trapezoid(np.append(height, y[first:]), np.append(start, x[first:])))


def augrc_estimate(sample: Sample) -> Estimate:
    """AUGRC at the levels of the replicates, with its closed-form standard error."""
    whole = sample.coarse
    floor = float(whole.withheld / whole.total)
    influence = area_influence(whole, floor, moving_start=True)
    area = area_from(whole, floor)
    if sample.alike:
        return Estimate(area, influence.spread(whole), max(whole.n - 1, 1))
    return _estimate(area, sample.pulls(influence.by_cell))


def augrc_difference(a: Rows, b: Rows, *, paired: bool) -> tuple[Estimate, float]:
    """AUGRC of `a` less that of `b` over the range both reach, and where that range starts."""
    sweeps = [rows.sweep() for rows in (a, b)]
    floors = [float(sweep.withheld / sweep.total) for sweep in sweeps]
    left = max(floors)
    value = area_from(sweeps[0], left) - area_from(sweeps[1], left)
    parts = [
        area_influence(sweep, left, moving_start=False).of(rows, sweep)
        for rows, sweep in zip((a, b), sweeps, strict=True)
    ]
    heights = [np.interp(left, *sweep.rates) for sweep in sweeps]
    mover = int(floors[1] > floors[0])
    shift = (1 if mover else -1) * (heights[0] - heights[1])
    parts[mover] = parts[mover] + shift * _floor_influence((a, b)[mover], floors[mover])
    if paired:
        return _estimate(value, a.pulled(parts[0] - parts[1])), left
    one, two = (_estimate(0.0, rows.pulled(part)) for part, rows in zip(parts, (a, b), strict=True))
    freedom = _welch(one, two)
    return Estimate(value, float(np.hypot(one.error, two.error)), freedom), left


@dataclass(frozen=True, slots=True, eq=False)
class Influence:
    """What a row adds to a statistic, by its cell: right or wrong at each threshold, or withheld."""

    right: Array
    wrong: Array
    withheld: float

    @property
    def by_cell(self) -> Array:
        """The influences in the order of cells: right by threshold, wrong by threshold, withheld."""
        return np.concatenate([self.right, self.wrong, [self.withheld]])

    def of(self, rows: Rows, sweep: Sweep) -> Array:
        """The influence of each row."""
        return self.by_cell[rows.cells(sweep.threshold)]

    def spread(self, sweep: Sweep) -> float:
        """Standard error of the statistic when all rows are independent and weigh the same."""
        if sweep.n < 2:
            return float("nan")
        parts = ((sweep.right, self.right), (sweep.wrong, self.wrong), (sweep.withheld, self.withheld))
        mean = sum(float(np.sum(count * value)) for count, value in parts) / sweep.n
        squares = sum(float(np.sum(count * np.square(value - mean))) for count, value in parts)
        return float(np.sqrt(squares / (sweep.n - 1) / sweep.n))


def area_influence(sweep: Sweep, start: float, *, moving_start: bool) -> Influence:
    """What a row adds to the area: e (x - start) + y(x) - 2A - start y(start), x the row's place on the curve.

    `moving_start` adds the effect of the row on the start itself, where the area begins at the system's own floor.
    """
    x, y = sweep.rates
    at_start = float(np.interp(start, x, y))
    constant = -2 * area_from(sweep, start) - start * at_start
    entry, leave = np.maximum(x[:-1], start), np.maximum(x[1:], start)
    beyond = np.nan_to_num(
        ratio(leave - entry, np.diff(x))
    )  # share of a level right of the start, ties in random order
    y_entry, y_leave = np.where(x[:-1] > start, y[:-1], at_start), np.where(x[1:] > start, y[1:], at_start)
    right = (1 - beyond) * at_start + beyond * (y_entry + y_leave) / 2 + constant
    wrong = right + beyond * ((entry + leave) / 2 - start)
    withheld = at_start + constant
    if moving_start:
        floor = float(sweep.withheld / sweep.total)
        right, wrong, withheld = right + at_start * floor, wrong + at_start * floor, withheld - at_start * (1 - floor)
    return Influence(right, wrong, withheld)


def _floor_influence(rows: Rows, floor: float) -> Array:
    return (~rows.answered).astype(np.float64) - floor


def _estimate(value: float, pulls: Array) -> Estimate:
    units = pulls.size
    if units < 2:
        return Estimate(value, float("nan"), 1)
    spread = float(np.square(pulls - pulls.mean()).sum()) * units / (units - 1)
    return Estimate(value, float(np.sqrt(spread)), units - 1)


def _welch(one: Estimate, two: Estimate) -> int:
    """Welch's degrees of freedom of a difference of independent estimates."""
    total = one.error**2 + two.error**2
    if not total > 0:
        return min(one.freedom, two.freedom)
    return max(1, int(total**2 / (one.error**4 / one.freedom + two.error**4 / two.freedom)))
