"""What performance is worth: cost functions from points or expressions, and average marginal cost (Paek 2001, 3.2)."""

from __future__ import annotations

import ast
import math
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial, reduce
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np

from demur.core.arrays import Array
from demur.core.io.files import read_source
from demur.core.io.sources import COMPRESSED, EXTENSIONS
from demur.core.io.tables import Cells, Request, Table, first
from demur.core.stats.intervals import Figure
from demur.errors import DataError, UsageError
from demur.gold_standard import integrals
from demur.gold_standard.fitting import CurveFit, Performer
from demur.gold_standard.impurity import PLACES, XRange, breaks, confidence_level, even_interval
from demur.gold_standard.integrals import Span
from demur.importers.reading import opened

VARIABLE = "p"
_LONGEST = 500
_DEEPEST = 50

_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Pow: np.power,
    ast.UAdd: np.positive,
    ast.USub: np.negative,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[..., Any]] = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
}


_FUNCTIONS: dict[str, tuple[Callable[..., Any], int, int]] = {
    "exp": (np.exp, 1, 1),
    "log": (np.log, 1, 1),
    "sqrt": (np.sqrt, 1, 1),
    "abs": (np.abs, 1, 1),
    "minimum": (lambda *values: reduce(np.minimum, values), 2, 20),
    "min": (lambda *values: reduce(np.minimum, values), 2, 20),
    "maximum": (lambda *values: reduce(np.maximum, values), 2, 20),
    "max": (lambda *values: reduce(np.maximum, values), 2, 20),
    "where": (np.where, 3, 3),
    "clip": (np.clip, 3, 3),
}
"""Each function with the fewest and the most values that it takes."""
_KNOWN = f"there are numbers, {VARIABLE}, + - * / ** and {', '.join(_FUNCTIONS)}"


def evaluate_expression(expression: str, p: Array) -> Array:
    """The values of an expression; infinite or NaN where it has none, and without a warning.

    >>> evaluate_expression("1000 * p ** 2", np.array([0.5, 1.0])).tolist()
    [250.0, 1000.0]
    >>> evaluate_expression("where(p < 0.5, 0, 1 / p)", np.array([0.0, 0.5])).tolist()
    [0.0, 2.0]
    """
    places = np.asarray(p, dtype=np.float64)
    with np.errstate(all="ignore"):
        values = _value(parsed(expression), places)
    return np.array(np.broadcast_to(values, places.shape), dtype=np.float64)


@cache
def parsed(expression: str) -> ast.expr:
    """The tree of an expression in which everything is known; what is not is named."""
    if len(expression) > _LONGEST:
        raise UsageError(f"an expression has at most {_LONGEST} characters; got {len(expression):,}")
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        what = error.msg if isinstance(error, SyntaxError) else "it is nested too deeply, or holds odd characters"
        raise UsageError(f'the expression "{expression}" cannot be read: {what}') from None
    _check_expression(tree, expression, 0)
    return tree


def _check_expression(node: ast.AST, expression: str, depth: int) -> None:
    if depth > _DEEPEST:
        raise UsageError(f'the expression "{expression}" is nested more than {_DEEPEST} deep')
    inner: list[ast.expr] = []
    match node:
        case ast.Constant(value=bool()):
            raise _unknown_part(node, expression)
        case ast.Constant(value=int() | float() as number):
            try:
                float(number)
            except OverflowError:
                raise UsageError(f'a number in the expression "{expression}" is too large') from None
        case ast.Name(id="p"):
            pass
        case ast.BinOp() if type(node.op) in _OPERATORS:
            inner = [node.left, node.right]
        case ast.UnaryOp() if type(node.op) in _OPERATORS:
            inner = [node.operand]
        case ast.Call():
            inner = _arguments(node, expression)
        case _:
            raise _unknown_part(node, expression)
    for one in inner:
        _check_expression(one, expression, depth + 1)


def _arguments(node: ast.Call, expression: str) -> list[ast.expr]:
    """What stands in the brackets of a function, the two sides of a comparison apart."""
    name = ast.unparse(node.func)
    if name not in _FUNCTIONS or node.keywords:
        raise _unknown_part(node, expression)
    _, fewest, most = _FUNCTIONS[name]
    if not fewest <= len(node.args) <= most:
        wanted = f"{fewest} to {most} values" if most > fewest else f"{most} value{'s' * (most > 1)}"
        raise UsageError(f"{name}() takes {wanted}; got {len(node.args)}: {_quoted_part(node, expression)}")
    if name != "where":
        return node.args
    condition, *branches = node.args
    if not isinstance(condition, ast.Compare) or any(type(sign) not in _COMPARISONS for sign in condition.ops):
        raise UsageError(
            f"where starts with a comparison, such as where(p < 0.5, 0, 1); got {_quoted_part(condition, expression)}"
        )
    return [condition.left, *condition.comparators, *branches]


def _unknown_part(node: ast.AST, expression: str) -> UsageError:
    hint = _KNOWN
    if isinstance(node, ast.Name):
        hint = f"the performance is called {VARIABLE}; {_KNOWN}"
    elif isinstance(node, ast.Compare):
        hint = "a comparison stands first in where(), as in where(p < 0.5, 0, 1)"
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitXor):
        hint = "a power is written **"
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        hint = "write a percentage as a fraction: 0.2 for 20 %"
    return UsageError(f"cannot use {_quoted_part(node, expression)}: {hint}")


def _quoted_part(node: ast.AST, expression: str) -> str:
    part = ast.get_source_segment(expression.strip(), node) or ast.unparse(node)
    return f'"{part}"' if part == expression.strip() else f'"{part}" in "{expression}"'


def _value(node: ast.AST, p: Array) -> Any:
    match node:
        case ast.Constant():
            assert isinstance(node.value, int | float)
            return np.float64(node.value)
        case ast.BinOp():
            return _OPERATORS[type(node.op)](_value(node.left, p), _value(node.right, p))
        case ast.UnaryOp():
            return _OPERATORS[type(node.op)](_value(node.operand, p))
        case ast.Compare():
            sides = [_value(side, p) for side in (node.left, *node.comparators)]
            holds = [_COMPARISONS[type(sign)](*pair) for sign, *pair in zip(node.ops, sides, sides[1:], strict=False)]
            return reduce(np.logical_and, holds)
        case ast.Call():
            return _FUNCTIONS[ast.unparse(node.func)][0](*(_value(one, p) for one in node.args))
    return p


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
    unit: str = ""
    """What amounts are counted in, such as dollars."""

    @property
    def unit_name(self) -> str:
        """The unit, or what stands for it where nobody named it."""
        return self.unit or "units of cost"

    def __post_init__(self) -> None:
        if (self.points is None) == (self.expression is None):
            raise UsageError("a cost function is given by points or by an expression, one of the two")

    def __call__(self, performance: Array) -> Array:
        """The amounts, in the shape of the performances; NaN beyond the points, where nobody stated any."""
        if self.points is None:
            return evaluate_expression(self.expression or "", performance)
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
    outside = [rate for rate in rates if rate < lower or (upper is not None and rate > upper)]
    if outside:
        percent = lower == 0 and upper == 1 < rates[-1] <= 100 and not any(0 < rate < 1 for rate in rates)
        limits = f"at least {lower:g}" if upper is None else f"between {lower:g} and {upper:g}"
        raise DataError(
            f"the performance must be {limits}, as the metric is",
            where=where,
            got=outside[-1],
            fix="these look like percent: divide them by 100" if percent else "correct it or leave it out",
        )
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
    mapped = columns or {}
    with opened(source) as files:
        tables = [read_source(file, Request()) for file in files]
    names = [{part: _cost_column(part, table, mapped) for part in COST_ALIASES} for table in tables]
    pairs = [pair for parts in zip(tables, names, strict=True) for pair in _cost_pairs(Cells(*parts))]
    cost = cost_points(pairs, lower=lower, upper=upper, where=f"{tables[0].name}:")
    guessed = [(part, name) for one in names for part, name in one.items() if name != part and part not in mapped]
    notes = tuple(dict.fromkeys(f"{part} <- {name}" for part, name in guessed))
    return replace(cost, notes=notes, unit=_unit(tables))


def _unit(tables: Sequence[Table]) -> str:
    """What a column unit says, where there is one."""
    columns = [table.frame["unit"].drop_nulls() for table in tables if "unit" in table.columns]
    units = sorted({str(unit) for column in columns for unit in column})
    if len(units) > 1:
        rule = f"a cost function has one unit; there are {', '.join(units)}"
        raise DataError(rule, where=f"{tables[0].name}: unit", fix="convert the amounts to one unit")
    return units[0] if units else ""


def check_covers(cost: CostFunction, low: float, high: float, *, what: str = "the curves") -> None:
    """Refuses a cost function that does not say what performances from `low` to `high` are worth."""
    if cost.points is None:
        _check_finite(cost, low, high)
        return
    slack = _NEAR * (cost.high - cost.low)

    def text(value: float, other: float) -> str:
        """A number with as many digits as it takes to tell it from another."""
        texts = (f"{value:.{digits}g}" for digits in (3, 6, 9) if f"{value:.{digits}g}" != f"{other:.{digits}g}")
        return next(texts, f"{value}")

    gaps = [f"down to {text(low, cost.low)}"] if low < cost.low - slack else []
    gaps += [f"up to {text(high, cost.high)}"] if high > cost.high + slack else []
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


def _cost_column(part: str, table: Table, mapped: Mapping[str, str]) -> str:
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


def _cost_pairs(cells: Cells) -> list[Point]:
    rates, amounts = cells.numbers("performance"), cells.numbers("amount")
    for part, values in (("performance", rates), ("amount", amounts)):
        place = first(values.is_null() | ~values.is_finite().fill_null(False))
        if place is not None:
            got = values[place]
            raise cells.fault(part, place, "must be a finite number", got="nothing" if got is None else float(got))
    return list(zip(rates.to_list(), amounts.to_list(), strict=True))


Gain = tuple[float, float]


@dataclass(frozen=True, slots=True)
class MarginalCost:
    """The cost-weighted distance from the gold standard, on average over a stretch of x."""

    system: str
    unit: str
    average: Figure
    """The mean of c(s) |g - s|: the cost function at the system's performance weighs the distance."""
    difference: Figure
    """The other reading, under a name of its own: the mean of c(g) - c(s)."""
    spans: tuple[Span, ...]
    """The ranges of x over which the means are taken."""
    gain: Gain | None
    replicates: Array | None = field(default=None, repr=False, compare=False)
    """The average in each replicate."""

    def to_dict(self) -> dict[str, Any]:
        """Both readings, and where they are taken."""
        return {
            "system": self.system,
            "unit": self.unit,
            **self.average.to_dict(),
            "average_cost_difference": self.difference.to_dict(),
            "from": [low for low, _ in self.spans],
            "to": [high for _, high in self.spans],
            "gain": None if self.gain is None else list(self.gain),
        }


def marginal_cost(
    gold: Performer, system: Performer, cost: CostFunction, x_range: XRange, gain: Gain | None = None
) -> MarginalCost:
    """The average marginal cost of a system; with a gain, where its curve lies between the two performances."""
    spans = checked_spans(system.name, system.fit, cost, (x_range.low, x_range.high), gain)
    if not spans:
        bottom, top = gain or (float("nan"), float("nan"))
        why = f"the curve of {system.name} nowhere lies between {bottom:g} and {top:g}"
        nothing = Figure(float("nan"), why=why)
        return MarginalCost(system.name, cost.unit_name, nothing, nothing, (), gain)
    confidence = confidence_level(gold, system)

    def amount(performance: Array) -> Array:
        """The cost, at its ends for replicates that stray beyond the performances that it was stated for."""
        return np.asarray(cost(np.clip(performance, cost.low, cost.high)))

    def weighted(best: Array, own: Array) -> Array:
        return amount(own) * np.abs(best - own)

    def apart(best: Array, own: Array) -> Array:
        return np.asarray(amount(best) - amount(own))

    mean = partial(_mean, gold, system, x_range, spans, gain, _kinks(gold, system, x_range, cost))
    value, drawn = mean(weighted)
    difference = Figure(float("nan"), why="the cost function does not cover the performance of the gold standard")
    low, high = _performance_ends(gold.fit, spans)
    if cost.low - 1e-9 <= low and high <= cost.high + 1e-9:
        difference = even_interval(*mean(apart), confidence)
    average = even_interval(value, drawn, confidence)
    scale = gold.fit.counts.scale
    if scale.upper is not None and (amount(np.linspace(scale.foot, scale.upper, PLACES)) >= 0).all():
        average = replace(average, low=max(average.low, 0.0))
    return MarginalCost(system.name, cost.unit_name, average, difference, spans, gain, drawn)


def cheaper_by(cheaper: MarginalCost, dearer: MarginalCost, gold: Performer, *systems: Performer) -> Figure:
    """How much more the average marginal cost of one system is than that of another."""
    assert cheaper.replicates is not None
    assert dearer.replicates is not None
    apart = dearer.average.value - cheaper.average.value
    return even_interval(apart, dearer.replicates - cheaper.replicates, confidence_level(gold, *systems))


def checked_spans(name: str, fit: CurveFit, cost: CostFunction, over: Span, gain: Gain | None) -> tuple[Span, ...]:
    """Where the cost of a system is taken; refuses a gain out of bounds, and a cost function that its curve leaves."""
    spans = (over,) if gain is None else _spans(fit, gain, *over)
    if spans:
        check_covers(cost, *_performance_ends(fit, spans), what=f"the curve of {name}")
    return spans


def _spans(fit: CurveFit, gain: Gain, low: float, high: float) -> tuple[Span, ...]:
    bottom, top = gain
    if not bottom < top:
        raise UsageError(f"a gain goes from one performance up to a higher one; got {bottom:g} to {top:g}")
    scale = fit.counts.scale
    if scale.upper is not None and not scale.lower <= bottom <= top <= scale.upper:
        raise UsageError(
            f"a gain lies within the metric's bounds, {scale.lower:g} to {scale.upper:g}; got {bottom:g} to {top:g}"
        )
    return integrals.between(fit, bottom, top, low, high, fit.family.breaks)


def _mean(
    gold: Performer,
    system: Performer,
    x_range: XRange,
    spans: Sequence[Span],
    gain: Gain | None,
    knots: Sequence[float],
    worth: Callable[[Array, Array], Array],
) -> tuple[float, Array]:
    """The mean over the spans, and the same in each replicate; NaN where a replicate has no such span."""
    total = sum(integrals.integral(lambda x: worth(gold.fit(x), system.fit(x)), *span, knots) for span in spans)
    value = total / sum(high - low for low, high in spans)
    nodes = x_range.grid.nodes
    gold_drawn, system_drawn = gold.replicates(nodes), system.replicates(nodes)
    share = np.ones_like(system_drawn) if gain is None else x_range.grid.share_between(system_drawn, *gain)
    length = x_range.grid.integral(share)
    drawn = np.divide(
        x_range.grid.integral(share * worth(gold_drawn, system_drawn)),
        length,
        out=np.full_like(length, np.nan),
        where=length > 1e-6 * x_range.width,
    )
    return value, drawn


def _kinks(gold: Performer, system: Performer, x_range: XRange, cost: CostFunction) -> tuple[float, ...]:
    """Where the integrand bends: at knots, where curves meet, and where a performance is at a point of the cost."""
    knots = breaks(gold, system)
    ends = x_range.low, x_range.high
    kinks = [*knots, *integrals.roots(lambda x: gold.fit(x) - system.fit(x), *ends, knots)]
    for one, level in product((gold, system), cost.breaks):
        kinks += integrals.roots(one.fit, *ends, knots, level=level)
    return tuple(kinks)


def _performance_ends(fit: CurveFit, spans: Sequence[Span]) -> tuple[float, float]:
    values = np.concatenate([fit(np.linspace(low, high, 401)) for low, high in spans])
    return float(values.min()), float(values.max())
