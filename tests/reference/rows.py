"""Judged rows as plain records, and how tests draw them and hand them over."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from demur.core.stats.resampling import Rows


class Row(NamedTuple):
    confidence: float
    right: bool
    answered: bool = True
    weight: float = 1


PROBABILITIES = st.sampled_from([0.0, 0.1, 0.25, 0.3, 0.3, 0.5, 0.55, 0.6, 0.75, 0.9, 1.0])
SCORES = st.one_of(
    st.sampled_from([-np.inf, -3.5, -1.0, -0.0, 0.0, 1e-300, 0.5, 0.5, 2.0, np.inf]),
    st.floats(allow_nan=False, allow_infinity=True),
)
ONE = st.just(1)


def tables(
    confidence: st.SearchStrategy[float] = PROBABILITIES,
    *,
    weights: st.SearchStrategy[float] = ONE,
    withheld: bool = True,
    smallest: int = 1,
    largest: int = 12,
) -> st.SearchStrategy[list[Row]]:
    answered = st.sampled_from([True, True, True, False]) if withheld else st.just(True)
    row = st.builds(_row, confidence, st.booleans(), answered, weights)
    return st.lists(row, min_size=smallest, max_size=largest)


def _row(confidence: float, right: bool, answered: bool, weight: float) -> Row:
    return Row(confidence, right and answered, answered, weight)


def arrays(rows: list[Row]) -> Rows:
    """The rows as the package takes them."""
    confidence, right, answered, weight = zip(*rows, strict=True)
    return Rows(
        np.array(confidence, dtype=np.float64),
        np.array(right, dtype=np.bool_),
        np.array(answered, dtype=np.bool_),
        np.array(weight, dtype=np.float64),
    )


def columns(rows: list[Row]) -> dict[str, list[object]]:
    """The judged columns, the confidence null where nothing was answered."""
    return {
        "confidence": [float(row.confidence) if row.answered else None for row in rows],
        "right": [row.right for row in rows],
        "answered": [row.answered for row in rows],
        "weight": [float(row.weight) for row in rows],
    }


def repeated(rows: list[Row]) -> list[Row]:
    """Each row as often as its whole weight says, with weight 1."""
    return [row._replace(weight=1) for row in rows for _ in range(int(row.weight))]
