"""Least squares with an intercept that knows its rank, as R's `lm` does; diagnostics, and PARADISE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from demur.core.arrays import Array, Flags
from demur.core.show.results import plain
from demur.core.stats.intervals import student_p
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

SAME = 1e-12
"""Spread of a column, relative to its largest value, below which it counts as constant."""

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

    @property
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


def is_constant(x: Array) -> Flags:
    """Whether each column is the same in every row, but for rounding."""
    return np.asarray(np.ptp(x, axis=0) <= SAME * np.abs(x).max(axis=0))


def is_exact(rss: float, y: Array) -> bool:
    """Whether residuals are nothing but rounding."""
    return rss <= EXACT * float(y @ y)


def _by_reflections(x: Array) -> tuple[Places, Array, Array]:
    """Columns, the intercept first, that do not depend on earlier ones, and their QR factors by Householder's method.

    It begins again without the first column that depends on earlier ones until there is none.
    """
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
    kept, q, r = (_from_products(x) if len(x) > MANY_ROWS else None) or _by_reflections(x)
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


HIGH_INFLATION = 10.0
"""Variance inflation from which a coefficient is commonly said to be hard to tell from those of other predictors."""
ROUNDING = 1e-9
"""Standardised coefficients up to this size are zero but for rounding, and have no sign."""


class Flip(NamedTuple):
    """A predictor whose coefficient alone has another sign than beside the others.

    Then the coefficient tells what is left of a predictor when others are held still, not what it goes along with.
    """

    term: str
    simple: float
    multiple: float


@dataclass(frozen=True, eq=False)
class Diagnostics:
    """Inflation, sign flips, ranges and standardised coefficients of the predictors of a regression.

    `ranges` are the least and greatest value, mean and standard deviation of each predictor. Standardised coefficients
    count predictors and outcome in their standard deviations, so that they can be compared; NaN for aliased predictors.
    """

    inflation: dict[str, float]
    flips: tuple[Flip, ...]
    ranges: dict[str, dict[str, float]]
    standardised: dict[str, float]

    @property
    def inflated(self) -> dict[str, float]:
        """Predictors with a variance inflation of `HIGH_INFLATION` or more."""
        return {name: factor for name, factor in self.inflation.items() if factor >= HIGH_INFLATION}

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain values."""
        document: dict[str, Any] = plain({**vars(self), "flips": [flip._asdict() for flip in self.flips]})
        return document


def diagnose(x: ArrayLike, y: ArrayLike, names: Sequence[str]) -> Diagnostics:
    """All of it for the regression of `y` on all columns of `x`."""
    columns, outcome = check_arrays(x, y)
    slopes = solve(columns, outcome).coefficients[1:]
    alone = np.array([solve(columns[:, [place]], outcome).coefficients[1] for place in range(len(names))])
    sd = columns.std(axis=0, ddof=1) if len(columns) > 1 else np.full(columns.shape[1], np.nan)
    ends = {"low": columns.min(axis=0), "high": columns.max(axis=0), "mean": columns.mean(axis=0), "sd": sd}
    spread = outcome.std()
    scale = columns.std(axis=0) / spread if spread > 0 else np.full(slopes.size, np.nan)
    beta = slopes * scale
    signed = np.minimum(np.abs(beta), np.abs(alone * scale)) > ROUNDING
    return Diagnostics(
        inflation(columns, names),
        tuple(
            Flip(name, float(simple), float(multiple))
            for name, simple, multiple, known in zip(names, alone, slopes, signed, strict=True)
            if known and simple * multiple < 0
        ),
        {name: {key: float(part[place]) for key, part in ends.items()} for place, name in enumerate(names)},
        dict(zip(names, beta.tolist(), strict=True)),
    )


def inflation(x: ArrayLike, names: Sequence[str]) -> dict[str, float]:
    """Variance inflation 1 / (1 - R²), R² of a predictor on all the others.

    How many times larger the variance of its coefficient is than if it were uncorrelated with them: 1 at best,
    infinite where others determine it. NaN for a predictor that does not vary.

    >>> inflation([[0, 0], [1, 1], [2, 0], [3, 1]], ["a", "b"])
    {'a': 1.25, 'b': 1.25}
    """
    columns = np.asarray(x, dtype=np.float64)
    factors = {}
    for place, name in enumerate(names):
        one, others = columns[:, place], np.delete(columns, place, axis=1)
        centred = one - one.mean()
        beside = least_squares(others, one)
        if least_squares(one[:, None], one).rank == 1:
            factors[name] = float("nan")
        elif least_squares(np.column_stack([others, one]), one).rank == beside.rank:
            factors[name] = float("inf")
        else:
            factors[name] = round(float(centred @ centred) / beside.rss, 12)
    return factors


@dataclass(frozen=True, slots=True)
class Weight:
    """A standardised coefficient: by how many of its standard deviations the outcome rises with one of the predictor's.

    `error` is its standard error, `p` that of Student's test against 0; both are NaN where no dialogue is to spare.
    """

    value: float
    error: float
    p: float


@dataclass(frozen=True, eq=False)
class Paradise:
    """A performance function: what users made of a dialogue as a weighted sum of task success and costs, as z-scores.

    Walker, Litman, Kamm and Abella (1997, 2000): performance = weight N(kappa) - sum of weights N(cost), where N takes
    the mean off and divides by the standard deviation, so that weights can be compared with one another. `left_out` are
    predictors that are the same in every dialogue or that others determine.
    """

    weights: dict[str, Weight]
    means: dict[str, float]
    deviations: dict[str, float]
    outcome_mean: float
    outcome_deviation: float
    r2: float
    adjusted_r2: float
    n: int
    left_out: tuple[str, ...]

    def formula(self) -> str:
        """The performance function as one writes it, the largest weight first."""
        order = sorted(self.weights.items(), key=lambda one: -abs(one[1].value))
        terms = [f"{'-' if weight.value < 0 else '+'} {abs(weight.value):.2f} N({name})" for name, weight in order]
        return " ".join(terms).removeprefix("+ ") or "0"

    def to_dict(self) -> dict[str, Any]:
        """The function as plain values."""
        return {
            "model": "paradise",
            "weights": {name: plain(asdict(weight)) for name, weight in self.weights.items()},
            "means": dict(self.means),
            "deviations": dict(self.deviations),
            "outcome": {"mean": self.outcome_mean, "deviation": self.outcome_deviation},
            "r2": self.r2,
            "adjusted_r2": plain(self.adjusted_r2),
            "n": self.n,
            "left_out": list(self.left_out),
            "formula": self.formula(),
        }


def paradise(x: ArrayLike, y: ArrayLike, names: Sequence[str]) -> Paradise:
    """The performance function of predictors such as kappa, turns or errors, one row per dialogue.

    Standard deviations have the divisor n - 1. Predictions are those of the plain regression: z-scores change the
    units of coefficients and nothing else.

    >>> found = paradise([[0.5, 4.0], [0.5, 6.0], [0.9, 4.0], [0.9, 6.0]], [2.0, 1.0, 5.0, 4.0], ["kappa", "turns"])
    >>> found.formula()
    '0.95 N(kappa) - 0.32 N(turns)'
    """
    rows, outcome = check_arrays(x, y)
    deviation = float(outcome.std(ddof=1))
    if deviation <= SAME * np.abs(outcome).max():
        raise DataError("the outcome is the same in every dialogue, so there is nothing to explain")
    spread = rows.std(axis=0, ddof=1)
    varying = np.flatnonzero(spread > SAME * np.abs(rows).max(axis=0))
    means = rows.mean(axis=0)
    fit = solve((rows[:, varying] - means[varying]) / spread[varying], (outcome - outcome.mean()) / deviation)
    free = fit.n - fit.rank
    slopes, errors = fit.coefficients[1:], fit.standard_errors[1:]
    kept = {names[place]: number for number, place in enumerate(varying.tolist()) if not np.isnan(slopes[number])}
    weights = {}
    for name, place in kept.items():
        value, error = float(slopes[place]), float(errors[place])
        weights[name] = Weight(value, error, student_p(value, error, free) if error else 0.0)
    r2 = 1 - fit.rss / (fit.n - 1)  # the squares of z-scores add up to n - 1
    return Paradise(
        weights=weights,
        means={name: float(means[varying[place]]) for name, place in kept.items()},
        deviations={name: float(spread[varying[place]]) for name, place in kept.items()},
        outcome_mean=float(outcome.mean()),
        outcome_deviation=deviation,
        r2=r2,
        adjusted_r2=1 - (1 - r2) * (fit.n - 1) / free if free else float("nan"),
        n=fit.n,
        left_out=tuple(name for name in names if name not in kept),
    )
