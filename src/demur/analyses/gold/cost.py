"""What a performance is worth to the one who pays for it: amounts at points, or an expression."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.analyses.gold.expressions import VARIABLE, evaluated, parsed
from demur.data.cells import Cells
from demur.data.files import read_source
from demur.data.sources import COMPRESSED, EXTENSIONS, opened
from demur.data.tables import Request, Table
from demur.errors import DataError, UsageError

Array = NDArray[np.float64]
Point = tuple[float, float]

COST_ALIASES: Mapping[str, tuple[str, ...]] = {
    "performance": ("rate", "completion", "x"),
    "amount": ("cost", "price", "worth", "y"),
}
"""The columns of a table of amounts, each with the other names it may go by."""

_CHECKED = 1001
_NEAR = 1e-9
"""How far beyond its points, as a part of their range, a cost function still holds: what rounding moves."""


@dataclass(frozen=True, slots=True)
class CostFunction:
    """The amount that each performance is worth: points joined by straight lines, or an expression in p.

    >>> cost_points([(0.5, 0), (0.75, 100), (1, 1000)])(np.array([0.6, 0.9])).round(9).tolist()
    [40.0, 640.0]
    """

    points: tuple[Point, ...] | None = None
    expression: str | None = None
    notes: tuple[str, ...] = ()
    """What was guessed in reading it."""

    def __post_init__(self) -> None:
        if (self.points is None) == (self.expression is None):
            raise UsageError("a cost function is given by points or by an expression, one of the two")

    def __call__(self, performance: Array) -> Array:
        """The amounts, in the shape of the performances; NaN beyond the points, where nobody stated any."""
        if self.points is None:
            return evaluated(self.expression or "", performance)
        rates, amounts = np.array(self.points).T
        slack = _NEAR * (self.high - self.low)
        held = np.interp(performance, rates, amounts)
        stated = (performance >= self.low - slack) & (performance <= self.high + slack)
        return np.asarray(np.where(stated, held, np.nan))

    @property
    def low(self) -> float:
        """The lowest performance that has an amount."""
        return -math.inf if self.points is None else self.points[0][0]

    @property
    def high(self) -> float:
        """The highest performance that has an amount."""
        return math.inf if self.points is None else self.points[-1][0]

    @property
    def breaks(self) -> tuple[float, ...]:
        """The performances at which one straight line ends and the next begins."""
        return () if self.points is None else tuple(rate for rate, _ in self.points)

    def words(self) -> str:
        """One line that tells what it is.

        >>> cost_points([(0.5, 0), (0.75, 100), (1, 1000)]).words()
        '0 at 0.5 to 1,000 at 1, straight lines through 3 points'
        >>> read_cost("1000 * p ** 2").words()
        '1000 * p ** 2, with p the performance'
        """
        if self.points is None:
            return f"{self.expression}, with {VARIABLE} the performance"
        (low, first), (high, last) = self.points[0], self.points[-1]
        through = f"straight lines through {len(self.points):,} points" if len(self.points) > 2 else "a straight line"
        return f"{first:,.10g} at {low:.10g} to {last:,.10g} at {high:.10g}, {through}"


def cost_points(
    pairs: Iterable[Any], *, lower: float = 0.0, upper: float | None = None, where: str = "the cost function:"
) -> CostFunction:
    """The cost function through pairs of a performance and an amount, in any order; amounts may fall.

    `lower` and `upper` are the bounds of the metric, where it has them: performances lie between them.
    """
    points = sorted({_point(pair, where) for pair in pairs})
    rates = [rate for rate, _ in points]
    if len(points) < 2:
        raise DataError(
            f"needs amounts for at least two performances; there {'is one' if points else 'are none'}",
            where=where,
            fix="the lowest and the highest performance of interest are a start",
        )
    for (rate, amount), (other_rate, other_amount) in pairwise(points):
        if rate == other_rate:
            raise DataError(
                f"has two amounts for the performance {rate:g}: {amount:g} and {other_amount:g}",
                where=where,
                fix="keep one; a sudden rise is two points close together",
            )
    _check_bounds(rates, lower, upper, where)
    return CostFunction(points=tuple(points))


def read_cost(
    source: str | Path, *, lower: float = 0.0, upper: float | None = None, columns: Mapping[str, str] | None = None
) -> CostFunction:
    """Reads a cost function: a table with the columns performance and amount, or an expression in p.

    What exists, is `-`, or ends like a table is taken for a file. `lower` and `upper` are the metric's bounds, over
    which an expression has to have a finite value.

    >>> read_cost("1000 * p ** 2", upper=1.0)(np.array([0.5])).item()
    250.0
    """
    if not _names_a_file(source):
        cost = _expression(str(source))
        if upper is not None:
            _check_finite(cost, lower, upper)
        return cost
    with opened(source) as files:
        tables = [read_source(file, Request()) for file in files]
    found = [_columns(table, columns or {}) for table in tables]
    pairs = [pair for table, names in zip(tables, found, strict=True) for pair in _pairs(Cells(table, names))]
    cost = cost_points(pairs, lower=lower, upper=upper, where=f"{tables[0].name}:")
    guessed = [f"{part} <- {name}" for names in found for part, name in names.items() if name != part]
    told = dict.fromkeys(note for note in guessed if note.split(" <- ")[0] not in (columns or {}))
    return CostFunction(points=cost.points, notes=tuple(told))


def check_covers(cost: CostFunction, low: float, high: float, *, what: str = "the curves") -> None:
    """Refuses a cost function that does not say what performances from `low` to `high` are worth."""
    if cost.points is None:
        _check_finite(cost, low, high)
        return
    slack = _NEAR * (cost.high - cost.low)
    gaps = []
    if low < cost.low - slack:
        gaps.append(f"down to {_apart(low, cost.low)}")
    if high > cost.high + slack:
        gaps.append(f"up to {_apart(high, cost.high)}")
    if gaps:
        goes = "go" if what.startswith("the curves") else "goes"
        raise DataError(
            f"covers {cost.low:g} to {cost.high:g}, but {what} {goes} {' and '.join(gaps)}",
            where="the cost function",
            fix="add points there: an amount is never guessed beyond those given",
        )


def _names_a_file(source: str | Path) -> bool:
    if isinstance(source, Path) or source == "-":
        return True
    text = source.casefold()
    for ending in COMPRESSED:
        text = text.removesuffix(ending)
    return text.endswith(tuple(EXTENSIONS)) or ("\0" not in source and len(source) < 250 and Path(source).is_file())


def _expression(text: str) -> CostFunction:
    try:
        parsed(text)
    except UsageError as error:
        raise UsageError(
            f"the cost function: {error}; a cost function is a file with the columns performance and amount, or an "
            f'expression in {VARIABLE} such as "1000 * p ** 2"'
        ) from None
    return CostFunction(expression=text.strip())


def _check_finite(cost: CostFunction, low: float, high: float) -> None:
    # Rounded, so that 0.3 is the number a user writes: 1 / (p - 0.3) has no value there.
    places = np.unique(np.round(np.linspace(low, high, _CHECKED), 12).clip(low, high))
    amounts = cost(places)
    bad = np.flatnonzero(~np.isfinite(amounts))
    if bad.size:
        raise DataError(
            f"must be a finite number for every performance from {low:g} to {high:g}, and is not at {VARIABLE} = "
            f"{places[bad[0]]:g}",
            where=f"the cost function {cost.expression}",
            got=float(amounts[bad[0]]),
            fix=f"for example maximum({VARIABLE}, 0.01) in place of {VARIABLE}, or where()",
        )


def _point(pair: Any, where: str) -> Point:
    try:
        rate, amount = (float(part) for part in pair)
    except (TypeError, ValueError):
        raise DataError("must be pairs of a performance and an amount", where=where, got=repr(pair)) from None
    if not math.isfinite(rate) or not math.isfinite(amount):
        raise DataError("must be finite numbers", where=where, got=repr((rate, amount)))
    return rate + 0.0, amount + 0.0


def _check_bounds(rates: list[float], lower: float, upper: float | None, where: str) -> None:
    bound = math.inf if upper is None else upper
    outside = [rate for rate in rates if not lower <= rate <= bound]
    if not outside:
        return
    percent = bound == 1 and 1 < rates[-1] <= 100 and not any(0 < rate < 1 for rate in rates)
    limits = f"at least {lower:g}" if upper is None else f"between {lower:g} and {upper:g}"
    raise DataError(
        f"the performance must be {limits}, as the metric is",
        where=where,
        got=outside[-1],
        fix="these look like percent: divide them by 100" if percent and lower == 0 else "correct it or leave it out",
    )


def _columns(table: Table, mapped: Mapping[str, str]) -> dict[str, str]:
    return {part: _column(part, table, mapped) for part in COST_ALIASES}


def _column(part: str, table: Table, mapped: Mapping[str, str]) -> str:
    names: Collection[str] = table.columns
    known = (mapped[part],) if part in mapped else (part, *COST_ALIASES[part])
    if known[0] in names:
        return known[0]
    found = [name for name in names if name.casefold() in known]
    if len(found) == 1:
        return found[0]
    listed = ", ".join(found or list(names)[:12])
    rule = f"{part} may be any of the columns {listed}" if found else f"needs a column {part}; there are {listed}"
    raise DataError(rule, where=f"{table.name}:", fix=f"name the one that counts {part}")


def _pairs(cells: Cells) -> list[Point]:
    rates, amounts = cells.numbers("performance"), cells.numbers("amount")
    for part, values in (("performance", rates), ("amount", amounts)):
        bad = values.is_null() | ~values.is_finite().fill_null(False)
        if bad.any():
            place = bad.arg_max() or 0
            got = values[place]
            raise cells.fault(part, place, "must be a finite number", got="nothing" if got is None else float(got))
    return list(zip(rates.to_list(), amounts.to_list(), strict=True))


def _apart(value: float, other: float) -> str:
    """A number with as many digits as it takes to tell it from another."""
    return next(
        (shown for digits in (3, 6, 9) if (shown := f"{value:.{digits}g}") != f"{other:.{digits}g}"), f"{value}"
    )
