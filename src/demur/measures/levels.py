"""Where values stand among levels."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FEW_LEVELS = 10_000
"""Levels up to which values are looked up as they come; among more it is quicker to bring them near each other."""


def places_among(levels: Floats, values: Floats) -> NDArray[np.int64]:
    """Where each value stands: the last level that is not above it, -1 where all are.

    >>> places_among(np.array([0.1, 0.5]), np.array([0.7, 0.0, 0.1, 0.3])).tolist()
    [1, -1, 0, 0]
    """
    if levels.size <= FEW_LEVELS:
        return np.asarray(np.searchsorted(levels, values, side="right") - 1)
    order = _roughly_sorted(values)
    place = np.empty(values.size, dtype=np.int64)
    place[order] = np.searchsorted(levels, values[order], side="right") - 1
    return place


def _roughly_sorted(values: Floats) -> NDArray[np.int64]:
    """Places of the values by about their size: its leading bits, with the place in the bits below, are one sort."""
    low = np.uint64(max(values.size - 1, 1).bit_length())
    keys = (np.ascontiguousarray(values).view(np.uint64) >> low) << low
    keys |= np.arange(values.size, dtype=np.uint64)
    ordered = pl.Series(keys).sort(multithreaded=False).to_numpy()
    return (ordered & ((np.uint64(1) << low) - np.uint64(1))).astype(np.int64)
