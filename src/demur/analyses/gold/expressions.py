"""Expressions in one variable, written as one writes them and read without running anybody's code."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.errors import UsageError

Array = NDArray[np.float64]

VARIABLE = "p"
_LONGEST = 500
_DEEPEST = 50
_MANY = 20

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


def _least(*values: Array) -> Array:
    return reduce(np.minimum, values)


def _greatest(*values: Array) -> Array:
    return reduce(np.maximum, values)


@dataclass(frozen=True, slots=True)
class _Function:
    of: Callable[..., Any]
    fewest: int
    most: int


_FUNCTIONS = {
    "exp": _Function(np.exp, 1, 1),
    "log": _Function(np.log, 1, 1),
    "sqrt": _Function(np.sqrt, 1, 1),
    "abs": _Function(np.abs, 1, 1),
    "minimum": _Function(_least, 2, _MANY),
    "min": _Function(_least, 2, _MANY),
    "maximum": _Function(_greatest, 2, _MANY),
    "max": _Function(_greatest, 2, _MANY),
    "where": _Function(np.where, 3, 3),
    "clip": _Function(np.clip, 3, 3),
}
_KNOWN = f"there are numbers, {VARIABLE}, + - * / ** and {', '.join(_FUNCTIONS)}"


def evaluated(expression: str, p: Array) -> Array:
    """The values of an expression; infinite or NaN where it has none, and without a warning.

    >>> evaluated("1000 * p ** 2", np.array([0.5, 1.0])).tolist()
    [250.0, 1000.0]
    >>> evaluated("where(p < 0.5, 0, 1 / p)", np.array([0.0, 0.5])).tolist()
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
    _check(tree, expression, 0)
    return tree


def _check(node: ast.AST, expression: str, depth: int) -> None:
    if depth > _DEEPEST:
        raise UsageError(f'the expression "{expression}" is nested more than {_DEEPEST} deep')
    match node:
        case ast.Constant():
            _check_number(node, expression)
            inner: list[ast.expr] = []
        case ast.Name():
            if node.id != VARIABLE:
                raise _unknown(node, expression)
            inner = []
        case ast.BinOp() | ast.UnaryOp():
            if type(node.op) not in _OPERATORS:
                raise _unknown(node, expression)
            inner = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.operand]
        case ast.Call():
            inner = _arguments(node, expression)
        case _:
            raise _unknown(node, expression)
    for one in inner:
        _check(one, expression, depth + 1)


def _check_number(node: ast.Constant, expression: str) -> None:
    if isinstance(node.value, bool) or not isinstance(node.value, int | float):
        raise _unknown(node, expression)
    try:
        float(node.value)
    except OverflowError:
        raise UsageError(f'a number in the expression "{expression}" is too large') from None


def _arguments(node: ast.Call, expression: str) -> list[ast.expr]:
    """What stands in the brackets of a function, the two sides of a comparison apart."""
    name = ast.unparse(node.func)
    function = _FUNCTIONS.get(name)
    if function is None or node.keywords:
        raise _unknown(node, expression)
    if not function.fewest <= len(node.args) <= function.most:
        many = f"{function.fewest} to {function.most}" if function.most > function.fewest else f"{function.most}"
        wanted = "1 value" if many == "1" else f"{many} values"
        raise UsageError(f"{name}() takes {wanted}; got {len(node.args)}: {_in(node, expression)}")
    if name != "where":
        return node.args
    condition, *branches = node.args
    if not isinstance(condition, ast.Compare) or any(type(sign) not in _COMPARISONS for sign in condition.ops):
        raise UsageError(
            f"where starts with a comparison, such as where(p < 0.5, 0, 1); got {_in(condition, expression)}"
        )
    return [condition.left, *condition.comparators, *branches]


def _unknown(node: ast.AST, expression: str) -> UsageError:
    hint = _KNOWN
    if isinstance(node, ast.Name):
        hint = f"the performance is called {VARIABLE}; {_KNOWN}"
    elif isinstance(node, ast.Compare):
        hint = "a comparison stands first in where(), as in where(p < 0.5, 0, 1)"
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitXor):
        hint = "a power is written **"
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        hint = "write a percentage as a fraction: 0.2 for 20 %"
    return UsageError(f"cannot use {_in(node, expression)}: {hint}")


def _in(node: ast.AST, expression: str) -> str:
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
            return _FUNCTIONS[ast.unparse(node.func)].of(*(_value(one, p) for one in node.args))
    return p
