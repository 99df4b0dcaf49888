"""How well a regression predicts rows that it has not seen: of the chosen model, and of choosing it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from demur.analyses.outcome.cross_products import Found, Rows, search
from demur.analyses.outcome.least_squares import LeastSquares, checked, least_squares
from demur.analyses.outcome.pieces import Array, Places
from demur.analyses.outcome.plans import Plan
from demur.analyses.outcome.stepwise import Selection, confirmed
from demur.errors import DataError, UsageError
from demur.show import Step, plain, silent

AT_ONCE = 500
"""Folds searched together, and the rhythm in which progress is told."""

FULL_LEVERAGE = 1e-6
"""A row whose leverage is this close to 1 is left out by a fit of its own, for the formula would divide by nothing."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A fold on whose other rows nothing could be fitted, its number of rows, and why."""

    fold: int
    n: int
    why: str


@dataclass(frozen=True, eq=False)
class Validation:
    """Predictions of rows by models that have not seen them, and how far off they are.

    Rows of folds that failed have NaN for a prediction and count in none of the figures; `failed` tells of them.
    """

    observed: Array
    predictions: Array
    means: Array
    """For each row the mean outcome of the rows outside its fold: the naive guess."""

    training_r2s: Array
    """R² of each fold's model on the rows that it was fitted to."""

    selected: dict[str, float]
    """Share of folds whose model holds a predictor, the most frequent first; empty where nothing was selected."""

    models: int
    """Different sets of predictors among the folds."""

    failed: tuple[Failure, ...] = ()

    @property
    def n(self) -> int:
        """Rows with a prediction."""
        return int(self._known.sum())

    @property
    def errors(self) -> Array:
        """Squared errors of the rows with a prediction."""
        return np.asarray(np.square(self.observed - self.predictions)[self._known])

    @property
    def mse(self) -> float:
        """Mean of the squared errors."""
        return float(self.errors.mean()) if self.n else float("nan")

    @property
    def sd(self) -> float:
        """Standard deviation (n - 1) of the squared errors, not of their mean."""
        return float(self.errors.std(ddof=1)) if self.n > 1 else float("nan")

    @property
    def r2(self) -> float:
        """1 - sum of squared errors / sum of squares about the mean of all these rows; below 0 if worse than it."""
        seen = self.observed[self._known]
        return _share(self.errors.sum(), np.square(seen - seen.mean()).sum()) if self.n else float("nan")

    @property
    def r2_of_means(self) -> float:
        """The same against the naive guess, the mean of the rows outside the fold: 0 is as good as that."""
        return _share(self.errors.sum(), np.square(self.observed - self.means)[self._known].sum())

    @property
    def correlation2(self) -> float:
        """Squared correlation of predictions and outcomes; blind to predictions that are off by scale or offset."""
        seen, said = self.observed[self._known], self.predictions[self._known]
        across, along = seen - seen.mean() if self.n else seen, said - said.mean() if self.n else said
        below = float((across @ across) * (along @ along))
        return float(across @ along) ** 2 / below if below > 0 else float("nan")

    @property
    def training_r2(self) -> float:
        """Mean over folds of R² on the rows that the fold's model was fitted to: in-sample, for all its folds."""
        return float(self.training_r2s.mean()) if self.training_r2s.size else float("nan")

    @property
    def training_r2_sd(self) -> float:
        """Standard deviation (folds - 1) of R² on the rows that the fold's model was fitted to."""
        return float(self.training_r2s.std(ddof=1)) if self.training_r2s.size > 1 else float("nan")

    @property
    def _known(self) -> Any:
        return ~np.isnan(self.predictions)

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain values."""
        names = ("n", "r2", "mse", "sd", "r2_of_means", "correlation2", "training_r2", "training_r2_sd")
        shown = {name: plain(getattr(self, name)) for name in names}
        failed = [{"fold": one.fold, "n": one.n, "why": one.why} for one in self.failed]
        return {**shown, "selected": dict(self.selected), "models": self.models, "failed": failed}


def folds_of_rows(n: int) -> Places:
    """A fold for every row: leave one out."""
    return np.arange(n)


def folds_of_groups(groups: Sequence[Any]) -> Places:
    """A fold for every group, numbered as they first appear.

    >>> folds_of_groups(["b", "a", "b"]).tolist()
    [0, 1, 0]
    """
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(group, len(numbers)) for group in groups], dtype=np.int64)


def grouped_folds(groups: Sequence[Any], folds: int) -> Places:
    """Folds of about equal size that split no group: the largest group first, each to the fold with the fewest rows.

    Nothing is drawn: of groups of one size the first to appear goes first, of folds of one size the first is taken.

    >>> grouped_folds(["a", "b", "b", "b", "c"], 2).tolist()
    [1, 0, 0, 0, 1]
    """
    group = folds_of_groups(groups)
    sizes = np.bincount(group)
    if not 2 <= folds <= sizes.size:
        raise UsageError(f"folds must be from 2 to the number of groups, {sizes.size}; got {folds}")
    filled, fold = np.zeros(folds, dtype=np.int64), np.zeros(sizes.size, dtype=np.int64)
    for one in np.argsort(-sizes, kind="stable"):
        fold[one] = filled.argmin()
        filled[fold[one]] += sizes[one]
    return fold[group]


def leave_out(x: ArrayLike, y: ArrayLike, *, folds: Places | None = None) -> Validation:
    """Leave each fold (left out: each row) out of a model of all the columns, without fitting it again.

    For one row the error is e / (1 - h), whose squares add up to PRESS; for several rows (I - H)⁻¹ e of their block.
    Only where leverage is 1, so that the other rows do not determine the model, is it fitted on the others.
    """
    columns, outcome = checked(x, y)
    fold = _numbered(folds, outcome.size)
    fit = least_squares(columns, outcome)
    single = np.bincount(fold).max() == 1
    apart = _single_errors(fit, outcome) if single else _block_errors(fit, outcome, fold)
    predictions = outcome - apart
    training = np.full(fold.max() + 1, np.nan)
    for one in np.unique(fold[np.isnan(apart)]):
        out = fold == one
        alone = least_squares(columns[~out], outcome[~out])
        predictions[out] = alone.predict(columns[out])
        training[one] = _r2(alone, outcome[~out])
    rss = fit.rss - np.bincount(fold, (outcome - fit.fitted) * (outcome - predictions))
    means = _outside_means(outcome, fold)
    tss = _outside_squares(outcome, fold)
    known = np.isnan(training)
    training[known] = 1 - np.divide(rss, tss, out=np.full(rss.size, np.nan), where=tss > 0)[known]
    return Validation(outcome, predictions, means, training, {}, 1)


def nested(
    x: ArrayLike,
    y: ArrayLike,
    names: Sequence[str],
    *,
    selection: Selection | None = None,
    folds: Places | None = None,
    step: Step = silent,
) -> Validation:
    """Leave each fold (left out: each row) out of the whole procedure: selection and fit see the other rows only."""
    columns, outcome = checked(x, y)
    plan = (selection or Selection()).plan(names)
    fold = _numbered(folds, outcome.size)
    predictions = np.full(outcome.size, np.nan)
    training, chosen, failed = [], [], []
    for one, found in enumerate(_searched(columns, outcome, fold, plan, step)):
        out, others = np.flatnonzero(fold == one), np.flatnonzero(fold != one)
        try:
            terms, fit = confirmed(columns, outcome, others, found, plan)
        except DataError as fault:
            failed.append(Failure(one, out.size, str(fault)))
            continue
        predictions[out] = fit.predict(columns[out[:, None], terms])
        training.append(_r2(fit, outcome[others]))
        chosen.append(terms)
    means = _outside_means(outcome, fold)
    models = len({frozenset(terms) for terms in chosen})
    selected = frequencies(chosen, names)
    return Validation(outcome, predictions, means, np.array(training), selected, models, tuple(failed))


def frequencies(chosen: Sequence[tuple[int, ...]], names: Sequence[str]) -> dict[str, float]:
    """Share of models that hold a predictor, the most frequent first."""
    counts = np.zeros(len(names))
    for terms in chosen:
        counts[list(terms)] += 1
    order = np.argsort(-counts, kind="stable")
    return {names[place]: float(counts[place] / len(chosen)) for place in order} if chosen else {}


def _searched(x: Array, y: Array, fold: Places, plan: Plan, step: Step) -> list[Found]:
    rows, total = Rows.of(x, y), int(fold.max()) + 1
    found: list[Found] = []
    for start in range(0, total, AT_ONCE):
        step("nested validation", start, total)
        out = np.arange(start, min(start + AT_ONCE, total))
        found += search(rows, (fold[None, :] != out[:, None]).astype(np.float64), plan)
    step("nested validation", total, total)
    return found


def _numbered(folds: Places | None, n: int) -> Places:
    fold = folds_of_rows(n) if folds is None else np.asarray(folds, dtype=np.int64)
    if fold.size != n:
        raise UsageError(f"every row needs a fold; got {fold.size} for {n} rows")
    fold = np.unique(fold, return_inverse=True)[1]
    if fold.max() == 0:
        raise DataError("there must be at least two folds, or nothing is left to fit", got=1)
    return np.asarray(fold, dtype=np.int64)


def _single_errors(fit: LeastSquares, y: Array) -> Array:
    free = 1 - fit.hat
    return np.asarray(np.divide(y - fit.fitted, free, out=np.full(y.size, np.nan), where=free > FULL_LEVERAGE))


def _block_errors(fit: LeastSquares, y: Array, fold: Places) -> Array:
    errors, residuals = np.full(y.size, np.nan), y - fit.fitted
    for rows in np.split(np.argsort(fold, kind="stable"), np.cumsum(np.bincount(fold))[:-1]):
        block = fit.basis[rows]
        left = np.eye(fit.rank) - block.T @ block
        if np.linalg.eigvalsh(left)[0] > FULL_LEVERAGE:
            # (I - H)⁻¹ e by Woodbury: as large as the model, not as the block.
            errors[rows] = residuals[rows] + block @ np.linalg.solve(left, block.T @ residuals[rows])
    return errors


def _outside_means(y: Array, fold: Places) -> Array:
    """For every row the mean of the rows outside its fold."""
    inside = np.bincount(fold, y)
    return np.asarray(((y.sum() - inside) / (y.size - np.bincount(fold)))[fold])


def _outside_squares(y: Array, fold: Places) -> Array:
    """For every fold the sum of squares of the rows outside it about their own mean."""
    centred = y - y.mean()
    outside = y.size - np.bincount(fold)
    return np.asarray(
        centred @ centred - np.bincount(fold, np.square(centred)) - np.square(np.bincount(fold, centred)) / outside
    )


def _r2(fit: LeastSquares, y: Array) -> float:
    return _share(fit.rss, np.square(y - y.mean()).sum())


def _share(left: float, whole: float) -> float:
    return float(1 - left / whole) if whole > 0 else float("nan")
