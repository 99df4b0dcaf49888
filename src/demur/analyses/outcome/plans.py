"""What a stepwise search may do, in places of columns, and how it weighs models."""

from __future__ import annotations

import math
from dataclasses import dataclass

SLACK = 1e-7
"""The search ends with a model whose AIC is this much above the one before, as in R."""

TIE = 1e-9
"""AICs no further apart than this times n are equal: what is the same on paper must not be decided by rounding."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Columns of the first model, those that stay, those that may be in, which ways to go, the price of a column."""

    start: tuple[int, ...]
    lower: frozenset[int]
    upper: tuple[int, ...]
    backward: bool
    forward: bool
    k: float = 2.0
    limit: int = 1000


def moved(terms: tuple[int, ...], move: int) -> tuple[int, ...]:
    """The model after a column left it, or entered it at its end.

    >>> moved((3, 1), 3), moved((3, 1), 2)
    ((1,), (3, 1, 2))
    """
    return tuple(term for term in terms if term != move) if move in terms else (*terms, move)


def criterion(n: int, rss: float, rank: int, k: float) -> float:
    """R's `extractAIC`.

    >>> criterion(10, 10.0, 3, 2.0)
    6.0
    """
    return n * math.log(rss / n) + k * rank
