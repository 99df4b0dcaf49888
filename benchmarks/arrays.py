"""Confidences and verdicts to measure on, and the raw NumPy baseline."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

CHUNK = 1_000_000
KINDS = {"distinct": None, "3 decimals": 3}
"""Kinds of confidences by their number of decimals; None keeps all, so that no two are alike."""


def answers(n: int, decimals: int | None, *, seed: int = 0) -> tuple[Floats, Flags]:
    """n confidences and whether each answer is right, made piece by piece so that little memory is used on the way."""
    rng = np.random.default_rng(seed)
    confidence, right = np.empty(n), np.empty(n, dtype=np.bool_)
    for start in range(0, n, CHUNK):
        part = slice(start, min(start + CHUNK, n))
        drawn = rng.random(confidence[part].size)
        right[part] = rng.random(drawn.size) < drawn
        confidence[part] = drawn if decimals is None else np.round(drawn, decimals)
    return confidence, right


def argsort_and_cumsum(confidence: Floats, right: Flags) -> NDArray[np.int64]:
    """The least that anyone does for a curve, ties left as they fall."""
    return np.cumsum(~right[np.argsort(confidence)])
