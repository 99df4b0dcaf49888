"""How well a regression predicts rows it has not seen, and how stable its choices are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from demur.core.arrays import Array
from demur.core.show.results import Step, plain, silent
from demur.core.stats.intervals import Figure
from demur.errors import DataError, UsageError
from demur.outcome.least_squares import SAME, LeastSquares, Places, check_arrays, is_constant, solve
from demur.outcome.stepwise import (
    INTERCEPT,
    ScaledRows,
    SearchEnd,
    SearchPlan,
    Selection,
    confirm_search,
    run_search,
    search_samples,
)

VALIDATION_NAMES = {"in_sample": "in-sample", "loo": "leave-one-out", "nested": "nested"}
"""What the kinds of validation are called."""

AT_ONCE = 500
"""Folds searched together, between two reports of progress."""

FULL_LEVERAGE = 1e-6
"""A row whose leverage is this close to 1 is left out by a fit of its own, for the formula would divide by nothing."""


class FailedFold(NamedTuple):
    """A fold on whose other rows nothing could be fitted, its number of rows, and why."""

    fold: int
    n: int
    why: str


@dataclass(frozen=True, eq=False)
class OutcomeValidation:
    """Predictions of rows by models that have not seen them, and how far off they are.

    Rows of folds that failed, which are in `failed`, have NaN for a prediction and count in none of the figures.
    """

    observed: Array
    predictions: Array
    means: Array
    """For each row the mean outcome of the rows outside its fold: the naive guess."""

    training_r2s: Array
    """R² of each fold's model on the rows that it was fitted to; NaN where these have one outcome."""

    selected: dict[str, float]
    """Share of folds whose model holds a predictor, the most frequent first; empty where nothing was selected."""

    models: int
    """Different sets of predictors among the folds."""

    failed: tuple[FailedFold, ...] = ()

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
        return r2_of(self.observed[self._known], self.predictions[self._known]) if self.n else float("nan")

    @property
    def r2_of_means(self) -> float:
        """The same against the naive guess, the mean of the rows outside the fold: 0 is as good as that."""
        whole = np.square(self.observed - self.means)[self._known].sum()
        return float(1 - self.errors.sum() / whole) if whole > 0 else float("nan")

    @property
    def correlation2(self) -> float:
        """Squared correlation of predictions and outcomes; blind to predictions that are off by scale or offset."""
        if not self.n:
            return float("nan")
        across, along = (part[self._known] - part[self._known].mean() for part in (self.observed, self.predictions))
        below = float((across @ across) * (along @ along))
        return float(across @ along) ** 2 / below if below > 0 else float("nan")

    @property
    def summary(self) -> dict[str, float]:
        """R², mean and standard deviation of the squared errors."""
        return {"r2": self.r2, "mse": self.mse, "sd": self.sd}

    @property
    def training_r2(self) -> float:
        """Mean over folds of R² on the rows that the fold's model was fitted to: in-sample, for all its folds."""
        return float(self._training.mean()) if self._training.size else float("nan")

    @property
    def training_r2_sd(self) -> float:
        """Standard deviation (folds - 1) of R² on the rows that the fold's model was fitted to."""
        return float(self._training.std(ddof=1)) if self._training.size > 1 else float("nan")

    @property
    def constant_folds(self) -> int:
        """Folds outside which the outcome is the same in every row, so that R² has no meaning there."""
        return int(np.isnan(self.training_r2s).sum())

    @property
    def _training(self) -> Array:
        return self.training_r2s[~np.isnan(self.training_r2s)]

    @property
    def _known(self) -> Any:
        return ~np.isnan(self.predictions)

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain values."""
        names = ("n", "r2", "mse", "sd", "r2_of_means", "correlation2", "training_r2", "training_r2_sd")
        values = {name: plain(getattr(self, name)) for name in (*names, "selected", "models")}
        return {**values, "failed": [one._asdict() for one in self.failed]}


def folds_of_groups(groups: Sequence[Any] | Places) -> Places:
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


def leave_out(x: ArrayLike, y: ArrayLike, *, folds: Places | None = None) -> OutcomeValidation:
    """Leave each fold (left out: each row) out of a model of all the columns, without fitting it again.

    For one row the error is e / (1 - h), whose squares add up to PRESS; for several rows (I - H)⁻¹ e of their block.
    Only where leverage is 1, so that the other rows do not determine the model, is it fitted on the others.
    """
    columns, outcome = check_arrays(x, y)
    fold = _numbered(folds, outcome.size)
    fit = solve(columns, outcome)
    apart = _errors_outside(fit, outcome, fold)
    predictions = outcome - apart
    training = np.full(fold.max() + 1, np.nan)
    determined = np.ones(training.size, dtype=np.bool_)
    for one in np.unique(fold[np.isnan(apart)]):
        out = fold == one
        alone = solve(columns[~out], outcome[~out])
        predictions[out] = alone.predict(columns[out])
        training[one], determined[one] = r2_of(outcome[~out], alone.fitted), False
    rss = fit.rss - np.bincount(fold, (outcome - fit.fitted) * (outcome - predictions))
    centred, outside = outcome - outcome.mean(), outcome.size - np.bincount(fold)
    # the sum of squares of the rows outside each fold about their own mean
    tss = centred @ centred - np.bincount(fold, np.square(centred)) - np.square(np.bincount(fold, centred)) / outside
    varies = tss > SAME * (centred @ centred)  # what is left where it is constant is rounding
    training[determined] = 1 - np.divide(rss, tss, out=np.full(rss.size, np.nan), where=varies)[determined]
    return OutcomeValidation(outcome, predictions, _outside_means(outcome, fold), training, {}, 1)


def nested(
    x: ArrayLike,
    y: ArrayLike,
    names: Sequence[str],
    *,
    selection: Selection | None = None,
    folds: Places | None = None,
    step: Step = silent,
) -> OutcomeValidation:
    """Leave each fold (left out: each row) out of the whole procedure: selection and fit see the other rows only."""
    columns, outcome = check_arrays(x, y)
    plan = (selection or Selection()).plan(names)
    fold = _numbered(folds, outcome.size)
    rows, total = ScaledRows.of(columns, outcome), int(fold.max()) + 1
    ends: list[SearchEnd] = []
    for start in range(0, total, AT_ONCE):
        step("nested validation", start, total)
        out = np.arange(start, min(start + AT_ONCE, total))
        ends += search_samples(rows, (fold[None, :] != out[:, None]).astype(np.float64), plan)
    step("nested validation", total, total)
    predictions = np.full(outcome.size, np.nan)
    training, chosen, failed = [], [], []
    for one, end in enumerate(ends):
        out, others = np.flatnonzero(fold == one), np.flatnonzero(fold != one)
        try:
            terms, fit = confirm_search(columns, outcome, others, end, plan)
        except DataError as fault:
            failed.append(FailedFold(one, out.size, str(fault)))
            continue
        predictions[out] = fit.predict(columns[out[:, None], terms])
        training.append(r2_of(outcome[others], fit.fitted))
        chosen.append(terms)
    means, selected = _outside_means(outcome, fold), frequencies(chosen, names)
    models = len({*map(frozenset, chosen)})
    return OutcomeValidation(outcome, predictions, means, np.array(training), selected, models, tuple(failed))


def frequencies(chosen: Sequence[tuple[int, ...]], names: Sequence[str]) -> dict[str, float]:
    """Share of models that hold a predictor, the most frequent first."""
    places = np.array([place for terms in chosen for place in terms], dtype=np.int64)
    counts = np.bincount(places, minlength=len(names))
    order = np.argsort(-counts, kind="stable")
    return {names[place]: float(counts[place] / len(chosen)) for place in order} if chosen else {}


def _numbered(folds: Places | None, n: int) -> Places:
    fold = np.arange(n) if folds is None else np.asarray(folds, dtype=np.int64)
    if fold.size != n:
        raise UsageError(f"every row needs a fold; got {fold.size} for {n} rows")
    fold = np.unique(fold, return_inverse=True)[1]
    if fold.max() == 0:
        raise DataError("there must be at least two folds, or nothing is left to fit", got=1)
    return np.asarray(fold, dtype=np.int64)


def _errors_outside(fit: LeastSquares, y: Array, fold: Places) -> Array:
    """Errors of rows left out with their fold; NaN where the other rows do not determine the model."""
    errors, residuals = np.full(y.size, np.nan), y - fit.fitted
    if np.bincount(fold).max() == 1:
        free = 1 - fit.hat
        return np.asarray(np.divide(residuals, free, out=errors, where=free > FULL_LEVERAGE))
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


def r2_of(y: Array, predictions: Array) -> float:
    """1 - sum of squared errors / sum of squares about the mean; NaN where the outcome is constant."""
    if is_constant(y[:, None])[0]:
        return float("nan")
    return float(1 - np.square(y - predictions).sum() / np.square(y - y.mean()).sum())


REPLICATES_AT_ONCE = 50
"""Replicates of one piece of work. Draws are made piece by piece, so this number is part of what a seed means."""


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Replicates of a stepwise regression.

    `optimism` is the mean over replicates of R² of the replicate's model on its own rows less its R² on the rows at
    hand (Harrell, Lee and Mark 1996); the in-sample R² less this is what to expect on new rows.
    """

    names: tuple[str, ...]
    value: Array
    """Intercept and coefficients of the fit to all rows; 0 for predictors that it leaves out."""

    draws: Array
    """The same in every replicate (first axis), NaN for predictors that it leaves out."""

    r2: float
    r2_drawn: Array
    """R² of each replicate's model on the rows that were drawn."""

    r2_at_hand: Array
    """R² of each replicate's model on the rows at hand."""

    failed: tuple[str, ...]
    """Why replicates have no model, one for each such replicate."""

    seed: int
    level: float

    @property
    def replicates(self) -> int:
        """Replicates that have a model."""
        return len(self.draws)

    @property
    def selected(self) -> dict[str, float]:
        """Share of replicates that choose a predictor, the most frequent first."""
        shares = 1 - np.isnan(self.draws[:, 1:]).mean(axis=0)
        order = np.argsort(-shares, kind="stable")
        return {self.names[place]: float(shares[place]) for place in order}

    @property
    def coefficients(self) -> dict[str, Figure]:
        """Coefficients with percentiles in which a predictor that is left out counts as 0: the whole procedure's."""
        return self._spans(np.nan_to_num(self.draws))

    @property
    def where_selected(self) -> dict[str, Figure]:
        """Coefficients with percentiles over those replicates alone that choose the predictor; NaN where none does."""
        return self._spans(self.draws)

    @property
    def optimism(self) -> float:
        """How much higher R² is on the rows that a model was chosen and fitted on."""
        return float(np.mean(self.r2_drawn - self.r2_at_hand))

    @property
    def corrected_r2(self) -> float:
        """In-sample R² less its optimism."""
        return self.r2 - self.optimism

    def _spans(self, draws: Array) -> dict[str, Figure]:
        tail = (1 - self.level) / 2
        spans = {}
        for place, name in enumerate((INTERCEPT, *self.names)):
            known = draws[~np.isnan(draws[:, place]), place]
            low, high = np.quantile(known, [tail, 1 - tail]) if known.size else (np.nan, np.nan)
            spans[name] = Figure(float(self.value[place]), float(low), float(high))
        return spans

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain values."""
        return {
            "replicates": self.replicates,
            "failed": len(self.failed),
            "why_failed": sorted(set(self.failed)),
            "seed": self.seed,
            "level": self.level,
            "selected": self.selected,
            "coefficients": {name: span.to_dict() for name, span in self.coefficients.items()},
            "where_selected": {name: span.to_dict() for name, span in self.where_selected.items()},
            "r2": self.r2,
            "optimism": self.optimism,
            "corrected_r2": self.corrected_r2,
        }


def bootstrap(
    x: ArrayLike,
    y: ArrayLike,
    names: Sequence[str],
    *,
    selection: Selection | None = None,
    groups: Sequence[Any] | Places | None = None,
    replicates: int = 1000,
    seed: int = 0,
    level: float = 0.95,
    step: Step = silent,
) -> Bootstrap:
    """Select and fit on rows (or groups of rows) drawn with replacement, many times over.

    A replicate on which nothing can be chosen, as its model fits exactly, is counted in `failed`.
    """
    columns, outcome = check_arrays(x, y)
    if replicates < 1 or not 0 < level < 1:
        raise UsageError(f"replicates must be at least 1 and level within (0, 1); got {replicates} and {level}")
    plan = (selection or Selection()).plan(names)
    whole = run_search(columns, outcome, names, plan)
    unit = np.arange(outcome.size) if groups is None else folds_of_groups(groups)
    if unit.size != outcome.size or unit.max() < 1:
        raise DataError("there must be a group for every row, and at least two of them", got=f"{unit.size} groups")
    rows = ScaledRows.of(columns, outcome)
    done: list[Replicate] = []
    step("resampling the regression", 0, replicates)
    for counts in _draws(unit, replicates, seed):
        ends = search_samples(rows, counts.astype(np.float64), plan)
        done += [_replicate(columns, outcome, *one, plan) for one in zip(counts, ends, strict=True)]
        step("resampling the regression", len(done), replicates)
    good = [one for one in done if not isinstance(one, str)]
    if not good:
        raise DataError(f"not one of {replicates} replicates could be fitted: {done[0]}")
    value = np.zeros(len(names) + 1)
    value[[0, *(place + 1 for place in whole.columns)]] = np.nan_to_num(whole.fit.coefficients)
    draws, drawn, at_hand = (np.array(part) for part in zip(*good, strict=True))
    failed = tuple(one for one in done if isinstance(one, str))
    return Bootstrap(tuple(names), value, draws, whole.r2, drawn, at_hand, failed, seed, level)


Replicate = tuple[Array, float, float] | str
"""Coefficients, R² on the rows drawn and on those at hand; or why there is no model."""


def _replicate(x: Array, y: Array, count: Places, end: SearchEnd, plan: SearchPlan) -> Replicate:
    rows = np.repeat(np.arange(count.size), count)
    try:
        terms, fit = confirm_search(x, y, rows, end, plan)
    except DataError as fault:
        return str(fault)
    coefficients = np.full(x.shape[1] + 1, np.nan)
    coefficients[[0, *(term + 1 for term in terms)]] = fit.coefficients
    return coefficients, r2_of(y[rows], fit.fitted), r2_of(y, fit.predict(x[:, terms]))


def _draws(unit: Places, replicates: int, seed: int) -> Iterator[Places]:
    """How often each row is drawn, for some replicates at a time."""
    rng = np.random.default_rng(seed)
    units = int(unit.max()) + 1
    for start in range(0, replicates, REPLICATES_AT_ONCE):
        size = min(REPLICATES_AT_ONCE, replicates - start)
        yield rng.multinomial(units, np.full(units, 1 / units), size=size)[:, unit]
