"""The Matern process of order 5/2 in one dimension as a Markov chain: one banded linear system in place of K⁻¹."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc

Array = NDArray[np.float64]

STATIONARY = np.array([[1, 0, -1 / 3], [0, 1 / 3, 0], [-1 / 3, 0, 1]])
"""Covariance of f and its two derivatives, where the signal has variance 1 and x is counted in length / √5."""

MOVES = np.array(
    [
        [[1, 1, 1 / 2], [0, 1, 1], [0, 0, 1 / 2]],
        [[0, 0, -1 / 2], [1, 1, -1], [0, 1, -1 / 2]],
        [[0, -1, 1 / 2], [0, -3, 1], [1, -2, 1 / 2]],
    ]
)
"""Powers 0 to 2 of a gap in what f and its derivatives after the gap take over from those before it, less exp(-gap)."""

BLOCK, BAND, CENTRE = 7, 5, 10
"""Unknowns for each place, diagonals on either side, and the row of the main diagonal in LAPACK's banded form."""

MULTIPLIERS, WEIGHT, STATES = slice(0, 3), 3, slice(4, 7)
"""Within a block: multipliers of the transition, weight of the point (a row of K⁻¹ y), f and its derivatives."""

MOST_CELLS = 4_000_000
"""Numbers on the right-hand side of one solution."""


def _moved(gaps: Array) -> tuple[Array, Array]:
    """Transition matrix and covariance of what is added on the way, for every gap.

    The covariance is 16/3 ∫ v(s) v(s)ᵀ exp(-2s) ds over the gap, v the last column of the transition. Its integrals
    come from the highest power down, so that nothing cancels where gaps are small.
    """
    powers = np.power.outer(gaps, np.arange(6))
    transition = np.tensordot(powers[:, :3], MOVES, axes=(1, 2)) * np.exp(-gaps)[:, None, None]
    integrals = np.empty((gaps.size, 5))
    integrals[:, 4] = 0.75 * gammainc(5, 2 * gaps)
    for power in range(3, -1, -1):
        integrals[:, power] = (powers[:, power + 1] * np.exp(-2 * gaps) + 2 * integrals[:, power + 1]) / (power + 1)
    products = np.array([[np.convolve(one, two) for two in MOVES[:, 2]] for one in MOVES[:, 2]])
    return transition, 16 / 3 * np.tensordot(integrals, products, axes=(1, 2))


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """Equations of the Markov chain, factored.

    The unknowns of all places stand in one vector: multipliers m of the transitions, weights w of the points, states s:

        -Q m + B s = 0          s of a place less what it takes over from the one before, Q the covariance added
        -R w - H s = -y         R the noise, H picks f
        Bᵀ m - Hᵀ w = 0

    The matrix has five diagonals on each side and no inverse in it, so neither gaps nor noise can be too small; its
    determinant is that of K + R but for the sign, and w = (K + R)⁻¹ y.
    """

    factors: Array
    pivots: NDArray[np.int32]
    log_determinant: float

    @classmethod
    def of(cls, gaps: Array, noise: Array) -> Chain:
        """The equations of places with gaps between them; those whose noise is NaN have no point."""
        from scipy.linalg.lapack import dgbtrf

        factors, pivots, _ = dgbtrf(_matrix(gaps, noise), BAND, BAND, overwrite_ab=1)
        return cls(factors, pivots, float(np.log(np.abs(factors[CENTRE])).sum()))

    def solved(self, given: Array) -> tuple[Array, Array]:
        """States f and weights of the points for columns of y."""
        right = np.zeros((given.shape[0], BLOCK, given.shape[1]))
        right[:, WEIGHT] = -given
        found = self._solution(right)
        return found[:, STATES][:, 0], found[:, WEIGHT]

    def weighed(self, given: Array) -> Array:
        """Columns of y multiplied by the inverse of their covariance."""
        return self.solved(given)[1]

    def variances(self, places: NDArray[np.int64]) -> Array:
        """Variance of f at some places once the points are known."""
        size = self.factors.shape[1] // BLOCK
        step = max(1, MOST_CELLS // self.factors.shape[1])
        found = [self._variances(size, places[start : start + step]) for start in range(0, places.size, step)]
        return np.asarray(np.maximum(np.concatenate([np.empty(0), *found]), 0.0))

    def _variances(self, size: int, places: NDArray[np.int64]) -> Array:
        right, column = np.zeros((size, BLOCK, places.size)), np.arange(places.size)
        right[places, STATES.start, column] = 1.0
        return np.asarray(self._solution(right)[places, STATES.start, column])

    def _solution(self, right: Array) -> Array:
        from scipy.linalg.lapack import dgbtrs

        flat = right.reshape(-1, right.shape[2])
        return np.asarray(dgbtrs(self.factors, BAND, BAND, flat, self.pivots)[0]).reshape(right.shape)


def _matrix(gaps: Array, noise: Array) -> Array:
    """The matrix of the equations in LAPACK's banded form, with room for pivots."""
    cells = np.zeros((noise.size, BLOCK, CENTRE + BAND + 1))
    transition, added = _moved(gaps)
    covariance = np.concatenate([STATIONARY[None], added])
    seen = ~np.isnan(noise)
    put = partial(_put, cells)
    for row in range(3):
        for column in range(3):
            put(MULTIPLIERS.start + row, MULTIPLIERS.start + column, -covariance[:, row, column])
            put(MULTIPLIERS.start + row, STATES.start + column - BLOCK, -transition[:, row, column])
        put(MULTIPLIERS.start + row, STATES.start + row, 1.0)
    put(WEIGHT, WEIGHT, np.where(seen, -noise, 1.0))
    put(WEIGHT, STATES.start, np.where(seen, -1.0, 0.0))
    return np.asarray(cells.reshape(-1, cells.shape[2]).T)


def _put(cells: Array, row: int, column: int, values: Any) -> None:
    """Write an entry of every block and its mirror image; a column below 0 is one of the block before."""
    if column >= 0:
        cells[:, column, CENTRE + row - column] = values
        cells[:, row, CENTRE + column - row] = values
    else:
        cells[:-1, column + BLOCK, CENTRE + row - column] = values
        cells[1:, row, CENTRE + column - row] = values
