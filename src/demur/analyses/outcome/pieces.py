"""Matrix products of long tables, piece by piece.

A product this small is computed on one thread. BLAS would spread a larger one over all cores, which costs more than it
saves where threads of ours, or other programs, want them too.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Places = NDArray[np.int64]

MOST_WORK = 250_000
"""Multiplications in one piece; OpenBLAS starts threads above 262,144."""


def crossed(one: Array, two: Array) -> Array:
    """One table transposed times another with as many rows.

    >>> crossed(np.ones((1000, 2)), np.ones((1000, 1))).tolist()
    [[1000.0], [1000.0]]
    """
    count, size = _pieces(len(one), one.shape[1] * two.shape[1])
    if count < 2:
        return np.asarray(one.T @ two)
    cut = count * size
    left, right = (table[:cut].reshape(count, size, table.shape[1]) for table in (one, two))
    return np.asarray((left.transpose(0, 2, 1) @ right).sum(axis=0) + one[cut:].T @ two[cut:])


def times(table: Array, matrix: Array) -> Array:
    """A long table times a small matrix.

    >>> times(np.ones((3, 2)), np.array([[1.0], [2.0]])).tolist()
    [[3.0], [3.0], [3.0]]
    """
    count, size = _pieces(len(table), matrix.size)
    if count < 2:
        return np.asarray(table @ matrix)
    cut = count * size
    pieces = table[:cut].reshape(count, size, table.shape[1]) @ matrix
    return np.concatenate([pieces.reshape(cut, matrix.shape[1]), table[cut:] @ matrix])


def _pieces(rows: int, work: int) -> tuple[int, int]:
    """How many pieces there are, and the rows of each; rows that are left over are fewer than those of a piece."""
    size = max(1, min(rows, MOST_WORK // max(work, 1)))
    return rows // size, size
