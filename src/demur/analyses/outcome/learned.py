"""What was learned about an outcome, as plain numbers: it predicts by itself and is the same after JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from demur.errors import DataError

Array = NDArray[np.float64]


class Fitted(Protocol):
    """What was learned."""

    @property
    def names(self) -> list[str]:
        """The predictors, in the order of the columns."""

    @property
    def used(self) -> frozenset[str]:
        """The predictors that make a difference to what is predicted."""

    @property
    def notes(self) -> list[str]:
        """What a reader should know of how it was learned."""

    def predict(self, x: ArrayLike) -> Array:
        """The outcome expected for each row."""

    def describe(self) -> dict[str, Any]:
        """What was learned, as plain values from which `restored` makes it again."""


class Linear(msgspec.Struct, frozen=True, kw_only=True, tag_field="model", tag="linear", forbid_unknown_fields=True):
    """A weighted sum; a coefficient of None belongs to a column that others determine, and is not used."""

    learner: str
    intercept: float
    coefficients: dict[str, float | None]
    chosen: dict[str, float] = {}
    notes: list[str] = []

    @property
    def names(self) -> list[str]:
        """The predictors."""
        return list(self.coefficients)

    @property
    def used(self) -> frozenset[str]:
        """The predictors with a weight."""
        return frozenset(name for name, weight in self.coefficients.items() if weight)

    def predict(self, x: ArrayLike) -> Array:
        """Intercept and weighted sum."""
        weights = [0.0 if one is None else one for one in self.coefficients.values()]
        return np.asarray(self.intercept + _rows(x, len(weights)) @ np.array(weights))

    def describe(self) -> dict[str, Any]:
        """The coefficients by name."""
        return dict(msgspec.to_builtins(self))


class Node(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A place in a tree: the mean outcome of its `n` rows, and where they part; `at` itself goes below."""

    value: float
    n: int
    split: str | None = None
    at: float | None = None
    below: Node | None = None
    above: Node | None = None


class Tree(msgspec.Struct, frozen=True, kw_only=True, tag_field="model", tag="tree", forbid_unknown_fields=True):
    """Questions about one predictor each, with a mean outcome at the end."""

    learner: str
    names: list[str]
    root: Node
    chosen: dict[str, float] = {}
    notes: list[str] = []

    def __post_init__(self) -> None:
        _check_nodes(self.root, self.names)

    @property
    def used(self) -> frozenset[str]:
        """The predictors asked about."""
        return frozenset(_asked(self.root))

    def predict(self, x: ArrayLike) -> Array:
        """The mean outcome where each row ends up."""
        # scikit-learn grows its trees on single precision, so a value on a threshold is on the same side only there
        given = _rows(x, len(self.names)).astype(np.float32)
        found = np.empty(len(given))
        waiting = [(self.root, np.arange(len(given)))]
        while waiting:
            node, rows = waiting.pop()
            if node.split is None or node.below is None or node.above is None or node.at is None:
                found[rows] = node.value
                continue
            below = given[rows, self.names.index(node.split)] <= node.at
            waiting += [(node.below, rows[below]), (node.above, rows[~below])]
        return found

    def describe(self) -> dict[str, Any]:
        """The questions, one within the other."""
        return dict(msgspec.to_builtins(self))


class Net(msgspec.Struct, frozen=True, kw_only=True, tag_field="model", tag="net", forbid_unknown_fields=True):
    """One layer of tanh units on standardised predictors; a row of `hidden` holds the weights into one unit."""

    learner: str
    names: list[str]
    centre: list[float]
    scale: list[float]
    hidden: list[list[float]]
    hidden_bias: list[float]
    output: list[float]
    output_bias: float
    outcome_centre: float
    outcome_scale: float
    chosen: dict[str, float] = {}
    notes: list[str] = []

    def __post_init__(self) -> None:
        width, units = len(self.names), len(self.output)
        wide = len(self.centre) == len(self.scale) == width and all(len(one) == width for one in self.hidden)
        if not (wide and len(self.hidden) == len(self.hidden_bias) == units):
            raise ValueError("the weights must have one number for each predictor and unit")

    @property
    def used(self) -> frozenset[str]:
        """The predictors with a weight into some unit."""
        return frozenset(
            name for name, into in zip(self.names, zip(*self.hidden, strict=True), strict=True) if any(into)
        )

    def predict(self, x: ArrayLike) -> Array:
        """What the output unit gives, in the units of the outcome."""
        z = (_rows(x, len(self.names)) - np.array(self.centre)) / np.array(self.scale)
        raised = np.tanh(z @ np.array(self.hidden).T + np.array(self.hidden_bias))
        return np.asarray(
            (raised @ np.array(self.output) + self.output_bias) * self.outcome_scale + self.outcome_centre
        )

    def describe(self) -> dict[str, Any]:
        """All weights."""
        return dict(msgspec.to_builtins(self))


def restored(description: object, *, where: str = "") -> Fitted:
    """What `describe` told of, made again.

    >>> restored({"model": "linear", "learner": "ols", "intercept": 1.0, "coefficients": {"x": 2.0}}).predict([[3.0]])
    array([7.])
    """
    try:
        return msgspec.convert(description, type=Linear | Tree | Net)
    except msgspec.ValidationError as fault:
        raise DataError(f"this is no learned model: {fault}", where=where) from None


def _rows(x: ArrayLike, width: int) -> Array:
    rows = np.asarray(x, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != width:
        raise DataError(f"predictors must be a table with {width} columns; got one of shape {rows.shape}")
    return rows


def _check_nodes(node: Node, names: Sequence[str]) -> None:
    parts = (node.split, node.at, node.below, node.above)
    if any(part is None for part in parts) and any(part is not None for part in parts):
        raise ValueError("a question needs split, at, below and above")
    if node.split is not None and node.split not in names:
        raise ValueError(f'the tree asks about "{node.split}", which is no predictor')
    for part in (node.below, node.above):
        if part is not None:
            _check_nodes(part, names)


def _asked(node: Node) -> list[str]:
    if node.split is None or node.below is None or node.above is None:
        return []
    return [node.split, *_asked(node.below), *_asked(node.above)]
