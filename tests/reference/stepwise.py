"""R's step() as its source reads: every candidate is fitted anew by numpy.linalg.lstsq, and ranks are counted."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Saturated(Exception):
    """A model on the way fits exactly."""


def independent(x: Array, terms: Sequence[int]) -> list[int | None]:
    """The intercept (None) and the terms that are not aliased by what stands before them."""
    kept: list[int | None] = [None]
    for term in terms:
        if len(kept) == len(x):
            break
        before = design(x, kept)
        before /= np.linalg.norm(before, axis=0)
        left = x[:, term] - before @ np.linalg.lstsq(before, x[:, term], rcond=None)[0]
        if np.linalg.norm(left) > 1e-7 * np.linalg.norm(x[:, term]):
            kept.append(term)
    return kept


def design(x: Array, kept: Sequence[int | None]) -> Array:
    return np.column_stack([np.ones(len(x)) if term is None else x[:, term] for term in kept])


def fit(x: Array, y: Array, terms: Sequence[int]) -> tuple[dict[int | None, float], float, int]:
    """Coefficients by term, RSS and rank."""
    kept = independent(x, terms)
    matrix = design(x, kept)
    scale = np.linalg.norm(matrix, axis=0)
    coefficients = np.linalg.lstsq(matrix / scale, y, rcond=None)[0] / scale
    rss = float(np.square(y - matrix @ coefficients).sum())
    return dict(zip(kept, coefficients.tolist(), strict=True)), rss, len(kept)


def step(
    x: Array,
    y: Array,
    *,
    backward: bool,
    forward: bool,
    start: Sequence[int],
    lower: Sequence[int] = (),
    upper: Sequence[int] | None = None,
    k: float = 2.0,
) -> tuple[list[int], list[tuple[str, int, float]]]:
    """Terms of the final model in order, and the moves: sign, term, AIC thereafter."""
    n, terms = len(y), list(start)
    upper = list(range(x.shape[1])) if upper is None else upper

    def aic(some: Sequence[int]) -> tuple[float, int]:
        _, rss, rank = fit(x, y, some)
        # Coefficients of nearly collinear columns are far less exact than projections are, so more counts as rounding.
        if rss <= 1e-14 * float(y @ y) or rank == n:
            return -math.inf, rank
        return n * math.log(rss / n) + k * rank, rank

    now, rank = aic(terms)
    moves = [("", -1, now)]
    for _ in range(1000):
        if now == -math.inf:
            raise Saturated
        drops = [[other for other in terms if other != term] for term in terms if term not in lower] * backward
        idle = [model for model in drops if aic(model)[1] == rank]
        if idle:
            after = idle[-1]
        else:
            adds = [[*terms, term] for term in upper if term not in terms] * forward
            table = [model for model in [*drops, *adds] if aic(model)[1] != rank]
            best = min([now, *(aic(model)[0] for model in table)])
            if now <= best + 1e-9 * n:
                break
            after = next(model for model in table if aic(model)[0] <= best + 1e-9 * n)
        (term,) = set(terms) ^ set(after)
        sign = "-" if term in terms else "+"
        before, terms = now, after
        now, rank = aic(terms)
        if now >= before + 1e-7:
            break
        moves.append((sign, term, now))
    return terms, moves
