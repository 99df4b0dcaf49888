"""Least squares with an intercept that knows its rank, as R's `lm` does."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from demur.core.arrays import Array
from demur.errors import DataError

Places = NDArray[np.int64]

MOST_WORK = 250_000
"""Multiplications in one piece; OpenBLAS starts threads above 262,144."""


def cross_product(one: Array, two: Array) -> Array:
    """One table transposed times another with as many rows.

    >>> cross_product(np.ones((1000, 2)), np.ones((1000, 1))).tolist()
    [[1000.0], [1000.0]]
    """
    count, size = _pieces(len(one), one.shape[1] * two.shape[1])
    if count < 2:
        return np.asarray(one.T @ two)
    cut = count * size
    left, right = (table[:cut].reshape(count, size, table.shape[1]) for table in (one, two))
    return np.asarray((left.transpose(0, 2, 1) @ right).sum(axis=0) + one[cut:].T @ two[cut:])


def multiply(table: Array, matrix: Array) -> Array:
    """A long table times a small matrix.

    >>> multiply(np.ones((3, 2)), np.array([[1.0], [2.0]])).tolist()
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


TOLERANCE = 1e-7
"""A column is aliased where this share of its length or less is left once earlier columns are taken out (R's `lm`)."""

EXACT = 1e-16
"""A fit is exact where the residuals' share of the outcome's sum of squares is no more than this.

Rounding leaves up to about (2e-16 / TOLERANCE)² where columns are as close as they may be; this is a little more.
"""

CLOSE = 1e-4
"""Columns are factored from their products only where more than this share of each one's length is left."""

MANY_ROWS = 200
"""Rows above which working from products is faster."""


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """A regression with an intercept: coefficients with the intercept first, NaN for columns that are aliased.

    >>> fit = least_squares([[0.0, 0.0], [1.0, 2.0], [2.0, 4.0]], [1.0, 2.0, 6.0])
    >>> fit.coefficients.round(6).tolist(), fit.rank, round(fit.rss, 6)
    ([0.5, 2.5, nan], 2, 1.5)
    """

    coefficients: Array
    rss: float
    fitted: Array
    basis: Array
    """Orthonormal columns that span the intercept and the columns with a coefficient."""

    inverse: Array
    """(X'X)⁻¹ of the intercept and the columns, NaN where one is aliased: times `sigma`² it is the covariance."""

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.fitted.size)

    @property
    def rank(self) -> int:
        """Coefficients that are estimated, the intercept among them."""
        return int(self.basis.shape[1])

    @property
    def aliased(self) -> Places:
        """Places of the columns without a coefficient."""
        return np.flatnonzero(np.isnan(self.coefficients[1:]))

    @property
    def hat(self) -> Array:
        """Leverage of every row: the diagonal of X (X'X)⁻¹ X'."""
        return np.asarray(np.square(self.basis).sum(axis=1))

    @property
    def sigma(self) -> float:
        """Standard error of the residuals; NaN where none are free."""
        free = self.n - self.rank
        return float(np.sqrt(self.rss / free)) if free else float("nan")

    @cached_property
    def standard_errors(self) -> Array:
        """Standard errors of the coefficients."""
        return np.asarray(self.sigma * np.sqrt(np.diag(self.inverse)))

    def predict(self, x: ArrayLike) -> Array:
        """Predictions for rows of the same columns; aliased columns add nothing, as in R."""
        known = np.nan_to_num(self.coefficients)
        return np.asarray(known[0] + multiply(np.asarray(x, dtype=np.float64), known[1:, None])[:, 0])


def least_squares(x: ArrayLike, y: ArrayLike) -> LeastSquares:
    """The fit of `y` on an intercept and the columns of `x`.

    Columns that depend on earlier ones to within `TOLERANCE` are left out, so that of a set of collinear columns the
    last goes without a coefficient (the limited pivoting of R's `dqrdc2`).
    """
    columns, outcome = check_arrays(x, y)
    return solve(columns, outcome)


def check_arrays(x: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    """The arrays of a regression as numbers, refused where they are no table of finite numbers."""
    columns, outcome = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if columns.ndim != 2 or outcome.ndim != 1 or columns.shape[0] != outcome.size:
        raise DataError(
            "there must be a row of predictors for every outcome", got=f"{columns.shape} and {outcome.shape}"
        )
    if not outcome.size:
        raise DataError("a regression needs at least one row")
    faulty = ~np.isfinite(np.column_stack([columns, outcome])).all(axis=1)
    if faulty.any():
        raise DataError(
            "predictors and outcome must be finite numbers",
            where=f"row {int(np.flatnonzero(faulty)[0])}:",
            fix="leave the row out, or fill the value in",
        )
    return columns, outcome


def is_exact(rss: float, y: Array) -> bool:
    """Whether residuals are nothing but rounding."""
    return rss <= EXACT * float(y @ y)


def _factors(x: Array) -> tuple[Places, Array, Array]:
    """Columns, the intercept first, that do not depend on earlier ones, and their QR factors."""
    quick = _from_products(x) if len(x) > MANY_ROWS else None
    return quick or _by_reflections(x)


def _by_reflections(x: Array) -> tuple[Places, Array, Array]:
    """Householder's factors, again without the first column that depends on earlier ones until there is none."""
    design = np.ones((len(x), x.shape[1] + 1))
    design[:, 1:] = x
    kept = np.arange(design.shape[1])
    lengths = np.sqrt(np.square(design).sum(axis=0))
    while True:
        q, r = np.linalg.qr(design[:, kept])
        left = np.abs(np.diag(r))
        dependent = np.flatnonzero(left <= TOLERANCE * lengths[kept[: left.size]])
        if not dependent.size:
            return kept[: left.size], q, r[:, : left.size]
        kept = np.delete(kept, dependent[0])


def _from_products(x: Array) -> tuple[Places, Array, Array] | None:
    """The factors by Cholesky's method applied twice, as exact as Householder's; None where columns are too close.

    (Yamamoto et al. 2015.) It is many times faster on long tables, more so where others use the processor too.
    """
    n, columns = x.shape
    mean, whole = x.mean(axis=0), np.sqrt(np.square(x).sum(axis=0))
    q = x - mean
    length = np.sqrt(np.square(q).sum(axis=0))
    if n <= columns or np.any(length <= CLOSE * whole):
        return None
    q /= length
    r = np.diag(length)
    for _ in range(2):
        try:
            upper = np.linalg.cholesky(cross_product(q, q)).T
        except np.linalg.LinAlgError:
            return None
        if columns and np.diag(upper).min() < CLOSE:
            return None
        q, r = multiply(q, np.linalg.inv(upper)), upper @ r
    root = np.sqrt(n)
    basis = np.column_stack([np.full(n, 1 / root), q])
    triangle = np.block([[np.array([[root]]), root * mean[None, :]], [np.zeros((columns, 1)), r]])
    return np.arange(columns + 1), basis, triangle


def solve(x: Array, y: Array) -> LeastSquares:
    """The fit of arrays that have been checked."""
    kept, q, r = _factors(x)
    effects = cross_product(q, y[:, None])
    fitted = multiply(q, effects)[:, 0]
    residuals = y - fitted
    size = x.shape[1] + 1
    coefficients = np.full(size, np.nan)
    root = np.linalg.inv(r)
    coefficients[kept] = root @ effects[:, 0]
    inverse = np.full((size, size), np.nan)
    inverse[np.ix_(kept, kept)] = root @ root.T
    return LeastSquares(coefficients, float(residuals @ residuals), fitted, q, inverse)
