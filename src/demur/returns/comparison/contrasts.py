"""Two systems in one number: mean errors over a range, right answers. Interval and p-value share one correction."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, TypeVar

import numpy as np

from demur.core.arrays import Array, Flags
from demur.core.stats.intervals import sidak
from demur.core.stats.resampling import Rows
from demur.returns.measures import Estimate, area_from, area_influence
from demur.returns.options import EVERYWHERE

Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Contrast:
    """A figure of a less that of b; `tests` is for how many tests interval and p-value are corrected (Sidak 1967).

    >>> one = Contrast(Estimate(0.02, 0.008, 100), (0.0, 1.0))
    >>> round(one.p_adjusted, 4), one.significant, replace(one, tests=3).significant
    (0.014, True, True)
    >>> [round(end, 4) for end in replace(one, tests=3).interval]
    [0.0006, 0.0394]
    """

    estimate: Estimate
    range: Range
    """Non-return rates over which errors are averaged, or at which the two return all they have."""
    level: float = 0.95
    tests: int = 1
    most: float = 1.0
    """The largest difference there can be."""

    @property
    def value(self) -> float:
        """The difference in this sample."""
        return self.estimate.value

    @property
    def interval(self) -> Range:
        """The interval; it excludes 0 exactly where the corrected p-value is below 1 - level."""
        low, high = self.estimate.interval(self.level ** (1 / self.tests))
        return max(low, -self.most), min(high, self.most)

    @property
    def p_adjusted(self) -> float:
        """The chance of so large a difference in any of the tests, if no two systems differed."""
        return sidak(self.estimate.p, self.tests)

    @property
    def significant(self) -> bool:
        """Whether a difference is shown."""
        return self.p_adjusted < 1 - self.level

    def turned(self) -> Contrast:
        """The same of b less a."""
        return replace(self, estimate=replace(self.estimate, value=-self.value))

    def inferior_p(self, margin: float) -> tuple[float, float]:
        """P-values against "a is worse than b by the margin or more", and the same of b: small ones rule it out."""
        one, two = (replace(self.estimate, value=gap - margin).p_below for gap in (self.value, -self.value))
        return sidak(one, self.tests), sidak(two, self.tests)

    def to_dict(self) -> dict[str, Any]:
        """The contrast as plain values."""
        low, high = self.interval
        p = {"p": self.estimate.p, "p_adjusted": self.p_adjusted, "tests": self.tests}
        return {"value": self.value, "low": low, "high": high, **p, "range": list(self.range)}


Side = Literal["a", "b"]

SAME_FLOOR = 0.01
"""Shares that two systems withhold by themselves, up to which their curves tell all: no more is left of a range."""


@dataclass(frozen=True, eq=False)
class PairTests:
    """Two systems by the tests that decide which is better overall."""

    a: str
    b: str
    overall: Contrast
    """Errors: the areas or, of a region asked for, the mean errors over it."""
    right: Contrast
    """Right answers of a less those of b, when each returns every answer it has."""

    @property
    def floors_differ(self) -> bool:
        """Whether one system withholds more by itself, so that right answers are compared too."""
        one, two = self.right.range
        return abs(one - two) > SAME_FLOOR

    @property
    def fewer_errors(self) -> Side | None:
        """The side with significantly fewer errors overall, where both have a curve."""
        return _lower_side(self.overall)

    @property
    def more_right(self) -> Side | None:
        """The side that returns significantly more right answers, where the other withholds more by itself."""
        other = _lower_side(self.right) if self.floors_differ else None
        return None if other is None else other_side(other)

    @property
    def better(self) -> Side | None:
        """The side that is significantly better overall: fewer errors, or more right answers at no more errors."""
        sides = {side for side in (self.fewer_errors, self.more_right) if side is not None}
        return sides.pop() if len(sides) == 1 else None


Pair = TypeVar("Pair", bound=PairTests)


def corrected(pairs: Sequence[Pair]) -> tuple[Pair, ...]:
    """The pairs with intervals and p-values for all tests that their verdicts rest on.

    Each pair is tested for errors and, where one system withholds more by itself, for right answers.
    """
    tests = sum(1 + one.floors_differ for one in pairs)
    return tuple(
        replace(one, overall=replace(one.overall, tests=tests), right=replace(one.right, tests=tests)) for one in pairs
    )


def pair_tests(
    rows: Mapping[str, Rows], couples: Sequence[tuple[str, str]], *, paired: bool, level: float, region: Range
) -> tuple[PairTests, ...]:
    """The tests of many pairs, corrected for all of them.

    Pairs are taken by where the range of both starts: what a row adds to an area is computed once for each start.
    """
    floors = {name: _floor(part) for name, part in rows.items()}
    influence = lru_cache(maxsize=2 * len(rows))(_row_influence)
    found = {}
    for one, two in sorted(couples, key=lambda couple: max(floors[couple[0]], floors[couple[1]])):
        a, b = rows[one], rows[two]
        overall = overall_contrast(a, b, region, paired=paired, level=level, influence=influence)
        found[one, two] = PairTests(one, two, overall, right_contrast(a, b, paired=paired, level=level))
    return corrected([found[couple] for couple in couples])


def _lower_side(contrast: Contrast) -> Side | None:
    """The side whose figure is significantly lower."""
    return None if not contrast.significant else "a" if contrast.value < 0 else "b"


def other_side(side: Side) -> Side:
    """The other one."""
    return "b" if side == "a" else "a"


Influence = Callable[[Rows, float, float], Array]


def _row_influence(rows: Rows, start: float, stop: float) -> Array:
    """What each row adds to the area under its curve from `start` to `stop`."""
    sweep = rows.sweep()
    influence = area_influence(sweep, start, moving_start=False)
    if stop < 1:
        influence -= area_influence(sweep, stop, moving_start=False)
    return np.asarray(influence[rows.cells(sweep.threshold)])


def overall_contrast(a: Rows, b: Rows, region: Range, **how: Any) -> Contrast:
    """The contrast that decides overall: of areas or, of a region asked for, of the mean errors over it."""
    return area_contrast(a, b, **how) if region == EVERYWHERE else region_contrast(a, b, region, **how)


def area_contrast(
    a: Rows, b: Rows, *, paired: bool, level: float = 0.95, influence: Influence = _row_influence
) -> Contrast:
    """AUGRC of `a` less that of `b`, over the non-return rates that both reach."""
    estimate, start = area_difference(a, b, paired=paired, influence=influence)
    return Contrast(_at_least(estimate, (a, b), 1.0, paired=paired), (start, 1.0), level, most=0.5)


def region_contrast(
    a: Rows, b: Rows, region: Range, *, paired: bool, level: float = 0.95, influence: Influence = _row_influence
) -> Contrast:
    """Mean error rate of `a` less that of `b` over a region of non-return rates, as far as both reach it."""
    area, start = area_difference(a, b, paired=paired, region=region, influence=influence)
    width = region[1] - start
    if width <= 0:
        return Contrast(Estimate(float("nan"), float("nan"), 1), (start, start), level)
    mean = replace(area, value=area.value / width, error=area.error / width)
    return Contrast(_at_least(mean, (a, b), 2.0, paired=paired), (start, region[1]), level)


def right_contrast(a: Rows, b: Rows, *, paired: bool, level: float = 0.95) -> Contrast:
    """Right answers of `a` less those of `b` as shares of all inputs, when each returns every answer it has."""
    right = [(rows.right & rows.answered).astype(np.float64) for rows in (a, b)]
    totals = [
        (np.sort(part * rows.weight).sum(), np.sort(rows.weight).sum())
        for part, rows in zip(right, (a, b), strict=True)
    ]
    one, two = (float(count / total) for count, total in totals)
    estimate = estimated_difference(one - two, (a, b), (right[0] - one, right[1] - two), paired=paired)
    return Contrast(_at_least(estimate, (a, b), 2.0, paired=paired), (_floor(a), _floor(b)), level)


def area_difference(
    a: Rows, b: Rows, *, paired: bool, region: Range = EVERYWHERE, influence: Influence = _row_influence
) -> tuple[Estimate, float]:
    """Area between the curves of `a` and `b` over a range, as far as both reach it, and where it starts.

    The range starts at a fixed rate, or where the system starts that withholds more by itself: that start moves with
    the sample.
    """
    sweeps, floors = [rows.sweep() for rows in (a, b)], [_floor(rows) for rows in (a, b)]
    left = max(*floors, region[0])
    stop = max(left, region[1])
    one, two = (area_from(sweep, left) - area_from(sweep, stop) for sweep in sweeps)
    parts = [influence(rows, left, stop) for rows in (a, b)]
    if left == max(floors):
        heights = [np.interp(left, *sweep.rates) for sweep in sweeps]
        mover = int(floors[1] > floors[0])
        shift = (1 if mover else -1) * (heights[0] - heights[1])
        parts[mover] = parts[mover] + shift * ((~(a, b)[mover].answered).astype(np.float64) - floors[mover])
    return estimated_difference(one - two, (a, b), (parts[0], parts[1]), paired=paired), left


def estimated_difference(
    value: float, rows: tuple[Rows, Rows], influence: tuple[Array, Array], *, paired: bool
) -> Estimate:
    """A difference with its standard error; `influence` is what each row adds to the figure of its system."""
    if paired and rows[0].unit is rows[1].unit:  # row by row
        return Estimate.of_units(value, rows[0].pulled(influence[0] - influence[1]))
    if paired:  # input by input, however often each was tried
        sides = (side.pulled_by_unit(part) for side, part in zip(rows, influence, strict=True))
        return Estimate.of_units(value, np.sort(np.subtract(*sides)))
    one, two = (Estimate.of_units(0.0, side.pulled(part)) for side, part in zip(rows, influence, strict=True))
    total, freedom = one.error**2 + two.error**2, min(one.freedom, two.freedom)
    if total > 0:  # Welch's degrees of freedom
        freedom = max(1, int(total**2 / (one.error**4 / one.freedom + two.error**4 / two.freedom)))
    return Estimate(value, float(np.hypot(one.error, two.error)), freedom)


def fewest_units(rows: Rows, inside: Flags) -> int:
    """Dialogues, or rows, on the smaller side of some rows and the others."""
    unit, sides = rows.unit, (inside, ~inside)
    return min(int(side.sum()) if unit is None else np.unique(unit[side]).size for side in sides)


def pooled_estimate(rows: Rows, inside: Flags, influence: Array, difference: float) -> Estimate:
    """A difference of some rows and the others, with the standard error it has when both are of one population.

    A side without a single error has no spread of its own, so its own standard error would make a fact of chance. The
    spread, and how much alike the rows of a dialogue are, are those of all rows; which rows are inside says how much of
    that a difference feels.
    """
    weight, unit = rows.weight, rows.unit
    centred = influence - float((influence * weight).sum() / weight.sum())
    variance = float(np.square(centred).sum()) / (inside.size - 1)
    share = weight * np.where(inside, 1 / weight[inside].sum(), -1 / weight[~inside].sum())
    alone = float(np.square(share).sum())
    spread = variance * alone
    if unit is not None:
        together = float(np.square(np.bincount(unit, weights=share)).sum())
        sizes = np.bincount(unit).astype(np.float64)
        pairs = float((sizes * (sizes - 1)).sum())
        products = float(np.square(np.bincount(unit, weights=centred)).sum() - np.square(centred).sum())
        covariance = products / pairs if pairs else 0.0  # of two rows of one dialogue
        spread += max(covariance, 0.0) * (together - alone)
    return Estimate(difference, math.sqrt(max(spread, 0.0)), max(1, fewest_units(rows, inside) - 1))


def _at_least(estimate: Estimate, rows: tuple[Rows, Rows], inputs: float, *, paired: bool) -> Estimate:
    """The estimate with a standard error of at least what so many inputs more or less would make of it.

    A handful of inputs that all differ the same way have no spread, and would be taken for certain. With this Student's
    t asks for six of them before it shows a difference at .95, as the exact sign test does.
    """
    one, two = (inputs * side.weight.size / side.units / side.effective_n for side in rows)
    return replace(estimate, error=max(estimate.error, max(one, two) if paired else math.hypot(one, two) / 2))


def _floor(rows: Rows) -> float:
    sweep = rows.sweep()
    return float(sweep.withheld / sweep.total)
