"""What a curve can be: the functions it is put together from, what keeps it smooth, and what keeps it monotone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
FitKind = Literal["spline", "logistic", "linear", "polynomial", "isotonic"]
Direction = Literal["falling", "rising"]
Link = Literal["logit", "identity"]

FIT_KINDS: tuple[FitKind, ...] = ("spline", "logistic", "linear", "polynomial", "isotonic")

STRETCHES = 10
"""Into how many stretches a spline divides the range; its smoothness is set by the penalty, so more change little."""


@dataclass(frozen=True)
class Basis:
    """The functions of x that a curve is a sum of, over the range of a performer's trials."""

    kind: FitKind
    low: float
    high: float
    link: Link
    direction: Direction | None = None
    degree: int = 3
    """Of a polynomial."""
    steps: tuple[float, ...] = ()
    """The places at which an isotonic curve is estimated."""

    def rows(self, x: Array) -> Array:
        """The functions at places, one row each; a curve is these times its coefficients."""
        place = (np.asarray(x, dtype=float) - self.low) / (self.high - self.low)
        if self.kind == "spline":
            return _falling(_b_splines(place), self.direction)
        if self.kind == "isotonic":
            return _hats(np.asarray(x, dtype=float), np.array(self.steps))
        if self.kind == "logistic":
            sign = 1.0 if self.direction == "rising" else -1.0
            return np.stack([np.ones_like(place), sign * place], axis=1)
        degree = 1 if self.kind == "linear" else self.degree
        return np.asarray(np.polynomial.legendre.legvander(2 * place - 1, degree), dtype=np.float64)

    @cached_property
    def size(self) -> int:
        """How many functions there are."""
        return int(self.rows(np.array([self.low])).shape[1])

    @cached_property
    def bounded(self) -> NDArray[np.bool_]:
        """Which coefficients may not be negative, so that the curve is monotone."""
        held = np.zeros(self.size, dtype=bool)
        if self.direction is not None and self.kind in ("spline", "logistic"):
            held[1:] = True
        return held

    @cached_property
    def roughness(self) -> Array:
        """What the penalty of a spline measures: squared second differences of its B-spline coefficients."""
        if self.kind != "spline":
            return np.zeros((self.size, self.size))
        differences = np.diff(_falling(np.eye(self.size), self.direction), n=2, axis=0)
        return np.asarray(differences.T @ differences)

    @property
    def breaks(self) -> tuple[float, ...]:
        """Where a curve or one of its derivatives may jump."""
        if self.kind == "isotonic":
            return self.steps
        if self.kind == "spline":
            return tuple(np.linspace(self.low, self.high, STRETCHES + 1))
        return ()


def _b_splines(place: Array) -> Array:
    """Cubic B-splines over equal stretches of [0, 1] (de Boor's recursion, all places at once)."""
    knots = np.arange(-3, STRETCHES + 4) / STRETCHES
    inside = np.clip(place, 0, 1)[:, None]
    last = np.clip(np.floor(inside * STRETCHES), 0, STRETCHES - 1) + 3
    values = (np.arange(len(knots) - 1) == last).astype(float)
    for degree in (1, 2, 3):
        left = (inside - knots[: -degree - 1]) / (degree / STRETCHES)
        right = (knots[degree + 1 :] - inside) / (degree / STRETCHES)
        values = left * values[:, :-1] + right * values[:, 1:]
    return np.asarray(values)


def _falling(columns: Array, direction: Direction | None) -> Array:
    """From B-spline coefficients to the first of them and the steps from each to the next, downwards if falling."""
    if direction is None:
        return columns
    steps = np.cumsum(columns[:, ::-1], axis=1)[:, ::-1].copy()
    steps[:, 1:] *= -1.0 if direction == "falling" else 1.0
    return steps


def _hats(x: Array, steps: Array) -> Array:
    """Linear interpolation between steps, level beyond the first and the last."""
    if len(steps) == 1:
        return np.ones((len(x), 1))
    after = np.clip(np.searchsorted(steps, x, side="right"), 1, len(steps) - 1)
    share = np.clip((x - steps[after - 1]) / (steps[after] - steps[after - 1]), 0, 1)
    rows = np.zeros((len(x), len(steps)))
    rows[np.arange(len(x)), after - 1] = 1 - share
    rows[np.arange(len(x)), after] += share
    return rows
