"""Other ways than stepwise regression to learn an outcome: full least squares, LASSO, a tree, a small neural net.

A learner chooses its one setting (penalty, depth) by cross-validation inside the rows it is given, never splitting
a group. What it learned is plain numbers: it predicts without scikit-learn and is the same after JSON.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, Protocol

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from demur.analyses.outcome.learned import Fitted, Linear, Net, Node, Tree
from demur.analyses.outcome.least_squares import least_squares
from demur.analyses.outcome.validation import Validation, frequencies, grouped_folds
from demur.errors import DataError, UsageError
from demur.show import Step, silent

Array = NDArray[np.float64]
Whole = NDArray[np.int64]

SAME = 1e-12
"""Spread of a column, against its largest value, below which it counts as constant."""

ONLY_THE_MEAN = "nothing could be learned but the mean outcome"

MOST_STEPS = 50_000
"""Steps after which a search that still moves is stopped, and said to be."""


class Learner(Protocol):
    """A way to learn the outcome from predictors."""

    @property
    def name(self) -> str:
        """What the learner is called."""

    def fit(self, x: ArrayLike, y: ArrayLike, names: Sequence[str], *, groups: ArrayLike | None = None) -> Fitted:
        """Learn from one row per dialogue; rows of one group are never apart when a setting is chosen."""


@dataclass(frozen=True, slots=True)
class FullLeastSquares:
    """Linear regression on all predictors, none left out but those that others determine.

    >>> FullLeastSquares().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0], ["x"]).predict([[4.0]]).round(6).tolist()
    [9.0]
    """

    name: ClassVar[str] = "ols"

    def fit(self, x: ArrayLike, y: ArrayLike, names: Sequence[str], *, groups: ArrayLike | None = None) -> Linear:
        """Least squares."""
        rows, outcome, _ = checked(x, y, names, groups)
        intercept, *slopes = least_squares(rows, outcome).coefficients.tolist()
        coefficients = {name: None if np.isnan(slope) else slope for name, slope in zip(names, slopes, strict=True)}
        aliased = [name for name, slope in coefficients.items() if slope is None]
        notes = [f"determined by others or constant, so not used: {', '.join(aliased)}"] if aliased else []
        return Linear(learner=self.name, intercept=intercept, coefficients=coefficients, notes=notes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lasso:
    """Linear regression whose coefficients are pulled towards 0, many of them all the way (Tibshirani 1996).

    Predictors are standardised; the penalty is that with the least squared error over grouped folds, of 100
    penalties between the least that leaves no predictor in and a thousandth of it.
    """

    folds: int = 10

    name: ClassVar[str] = "lasso"

    def fit(self, x: ArrayLike, y: ArrayLike, names: Sequence[str], *, groups: ArrayLike | None = None) -> Linear:
        """Choose the penalty and fit with it; coefficients are told in the predictors' own units."""
        models = learning("linear_model")
        rows, outcome, units = checked(x, y, names, groups)
        varying, notes = _varying(rows, names)
        z, centre, scale = _standardised(rows[:, varying])
        most = np.abs(z.T @ (outcome - outcome.mean())).max(initial=0.0) / len(z)
        folds = _inner_folds(units, self.folds)
        if most <= SAME * np.abs(outcome).max() or len(folds) < 2:
            return _mean_only(self.name, outcome, names, notes)
        penalties = most * np.logspace(0, -3, 100)
        # given cross-products would be checked anew for every penalty, which takes longer than they save
        found = models.LassoCV(alphas=penalties, cv=folds, max_iter=MOST_STEPS, precompute=False)
        with _settling():
            found.fit(z, outcome)
        if found.n_iter_ >= MOST_STEPS:
            notes += [f"the coefficients still moved after {MOST_STEPS:,} steps"]
        slopes = np.zeros(len(names))
        slopes[varying] = found.coef_ / scale
        intercept = float(found.intercept_) - float(slopes[varying] @ centre)
        coefficients: dict[str, float | None] = dict(zip(names, slopes.tolist(), strict=True))
        chosen = {"penalty": float(found.alpha_)}
        return Linear(learner=self.name, intercept=intercept, coefficients=coefficients, chosen=chosen, notes=notes)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionTree:
    """A small tree of questions (Breiman et al. 1984).

    Its depth is the least of those with the smallest squared error over grouped folds; 0 asks nothing and predicts
    the mean. A leaf holds `leaf` rows or more, as means of fewer dialogues are mostly chance.
    """

    deepest: int = 4
    leaf: int = 5
    folds: int = 10
    seed: int = 0

    name: ClassVar[str] = "tree"

    def fit(self, x: ArrayLike, y: ArrayLike, names: Sequence[str], *, groups: ArrayLike | None = None) -> Tree:
        """Choose the depth and grow to it."""
        rows, outcome, units = checked(x, y, names, groups)
        folds = _inner_folds(units, self.folds)
        depth = self._depth(rows, outcome, names, folds) if len(folds) > 1 else 0
        grown = self._grown(rows, outcome, names, depth)
        notes = [*_varying(rows, names)[1], *([] if grown.root.split else [ONLY_THE_MEAN])]
        return msgspec.structs.replace(grown, notes=notes)

    def _depth(self, x: Array, y: Array, names: Sequence[str], folds: list[tuple[Whole, Whole]]) -> int:
        errors = np.zeros(self.deepest + 1)
        for depth in range(self.deepest + 1):
            for kept, out in folds:
                predicted = self._grown(x[kept], y[kept], names, depth).predict(x[out])
                errors[depth] += np.square(y[out] - predicted).sum()
        return int(np.argmax(errors <= errors.min() + SAME * np.square(y).sum()))

    def _grown(self, x: Array, y: Array, names: Sequence[str], depth: int) -> Tree:
        root = Node(float(y.mean()), y.size)
        if depth and names:
            grower = learning("tree").DecisionTreeRegressor
            settings = {"max_depth": depth, "min_samples_leaf": self.leaf, "random_state": self.seed}
            root = _node(grower(**settings).fit(x, y).tree_, names)
        chosen = {"depth": float(depth), "leaf": float(self.leaf)}
        return Tree(learner=self.name, names=list(names), root=root, chosen=chosen)


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallNet:
    """A neural net of a few tanh units in one layer (Möller et al. 2008 found nets to predict satisfaction best).

    Predictors and outcome are standardised. `decay` is the penalty on squared weights, which keeps a net on some
    dozens of dialogues from learning them by heart. The same seed gives the same net.
    """

    units: int = 3
    decay: float = 1.0
    seed: int = 0

    name: ClassVar[str] = "net"

    def fit(self, x: ArrayLike, y: ArrayLike, names: Sequence[str], *, groups: ArrayLike | None = None) -> Fitted:
        """Fit the weights by a quasi-Newton search."""
        rows, outcome, _ = checked(x, y, names, groups)
        varying, notes = _varying(rows, names)
        (target, middle, spread), still = _standardised(outcome[:, None]), _constant(outcome[:, None])[0]
        if still or not varying.any():
            return _mean_only(self.name, outcome, names, notes)
        z, centre, scale = _standardised(rows[:, varying])
        found = self._searched(z, target[:, 0])
        if found.n_iter_ >= MOST_STEPS:
            notes += [f"the weights still moved after {MOST_STEPS:,} steps"]
        into = np.zeros((self.units, len(names)))  # a constant column keeps weight 0, whatever a new system brings
        into[:, varying] = found.coefs_[0].T
        return Net(
            learner=self.name,
            names=list(names),
            centre=_spread_out(centre, varying, 0.0),
            scale=_spread_out(scale, varying, 1.0),
            hidden=into.tolist(),
            hidden_bias=found.intercepts_[0].tolist(),
            output=found.coefs_[1][:, 0].tolist(),
            output_bias=float(found.intercepts_[1][0]),
            outcome_centre=float(middle[0]),
            outcome_scale=float(spread[0]),
            chosen={"units": float(self.units), "decay": self.decay},
            notes=notes,
        )

    def _searched(self, z: Array, target: Array) -> Any:
        settings = {"hidden_layer_sizes": (self.units,), "activation": "tanh", "solver": "lbfgs", "alpha": self.decay}
        limits = {"max_iter": MOST_STEPS, "max_fun": MOST_STEPS, "random_state": self.seed}
        net = learning("neural_network").MLPRegressor(**settings, **limits)
        with _settling():
            return net.fit(z, target)


LEARNERS: dict[str, Learner] = {one.name: one for one in (FullLeastSquares(), Lasso(), RegressionTree(), SmallNet())}
"""The learners with their usual settings, by name."""


def cross_validated(
    learner: Learner,
    x: ArrayLike,
    y: ArrayLike,
    names: Sequence[str],
    *,
    groups: ArrayLike | None = None,
    folds: Whole | None = None,
    step: Step = silent,
) -> Validation:
    """Predict every row by what was learned from the other folds; all choices are made inside, by groups.

    `folds` is the number of each row's fold; None leaves out one group at a time, or one row where there are none.

    >>> seen = cross_validated(FullLeastSquares(), [[0.0], [1.0], [2.0]], [1.0, 2.0, 3.0], ["x"])
    >>> seen.predictions.round(9).tolist()
    [1.0, 2.0, 3.0]
    """
    rows, outcome, units = checked(x, y, names, groups)
    parts = splits(units if folds is None else folds, outcome.size)
    predictions, means = np.empty(outcome.size), np.empty(outcome.size)
    training, used = [], []
    for done, (kept, out) in enumerate(parts):
        step(learner.name, done, len(parts))
        fitted = learner.fit(rows[kept], outcome[kept], names, groups=units[kept])
        predictions[out], means[out] = fitted.predict(rows[out]), outcome[kept].mean()
        training.append(r2_of(outcome[kept], fitted.predict(rows[kept])))
        used.append(tuple(place for place, name in enumerate(names) if name in fitted.used))
    step(learner.name, len(parts), len(parts))
    models = len({frozenset(terms) for terms in used})
    return Validation(outcome, predictions, means, np.array(training), frequencies(used, names), models)


def splits(folds: Whole, n: int) -> list[tuple[Whole, Whole]]:
    """Rows kept and rows left out of each fold, in the order of their numbers."""
    numbers = np.asarray(folds)
    if numbers.shape != (n,):
        raise UsageError(f"every row needs a fold; got {numbers.size} for {n} rows")
    parts = [(np.flatnonzero(numbers != one), np.flatnonzero(numbers == one)) for one in np.unique(numbers)]
    if min(kept.size for kept, _ in parts) < 2:
        raise DataError(
            "validation learns without one fold at a time, so at least two dialogues must be left",
            got=f"{n} dialogues in {len(parts)} folds",
        )
    return parts


def r2_of(y: Array, predictions: Array) -> float:
    """1 - sum of squared errors / sum of squares about the mean; NaN where the outcome is constant."""
    if _constant(y[:, None])[0]:
        return float("nan")
    return 1 - float(np.square(y - predictions).sum() / np.square(y - y.mean()).sum())


def learning(part: str) -> Any:
    """A part of scikit-learn, which is loaded when first asked for."""
    try:
        return import_module(f"sklearn.{part}")
    except ImportError:
        raise UsageError("LASSO, tree and neural net need scikit-learn: pip install 'demur[demo]'") from None


@contextmanager
def _settling() -> Iterator[None]:
    """Search in one thread, and without a warning where the search does not settle, which is noted instead.

    The matrices are tiny: threads of the linear algebra would wait for one another, at many times the time.
    """
    with warnings.catch_warnings(), import_module("threadpoolctl").threadpool_limits(limits=1):
        warnings.simplefilter("ignore", learning("exceptions").ConvergenceWarning)
        yield


def checked(x: ArrayLike, y: ArrayLike, names: Sequence[str], groups: ArrayLike | None) -> tuple[Array, Array, Whole]:
    """Predictors, outcome and the number of each row's group, if they can be learned from."""
    rows, outcome = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if rows.ndim != 2 or rows.shape != (outcome.size, len(names)):
        raise DataError(
            f"predictors must have a row for each of {outcome.size} outcomes and a column for each of {len(names)} "
            f"names; got a table of shape {rows.shape}"
        )
    if outcome.size < 2:
        raise DataError("learning an outcome needs at least two dialogues", got=outcome.size)
    if not np.isfinite(outcome).all():
        raise DataError("the outcome must be a finite number in every dialogue", fix="leave out those without one")
    if len(set(names)) < len(names):
        raise DataError("every predictor must have a name of its own", got=", ".join(names))
    faults = np.flatnonzero(~np.isfinite(rows).all(axis=0)).tolist()
    if faults:
        raise DataError(
            f'"{names[faults[0]]}" must be a finite number in every dialogue',
            got=f"{int((~np.isfinite(rows[:, faults[0]])).sum())} that are not",
            fix="choose what becomes of undefined scores: drop, zero or impute-mean",
        )
    labels = np.arange(outcome.size) if groups is None else np.asarray(groups)
    if labels.shape != outcome.shape:
        raise DataError(f"each of {outcome.size} dialogues must have a group; got {labels.size} groups")
    return rows, outcome, np.unique(labels, return_inverse=True)[1].astype(np.int64)


def _inner_folds(units: Whole, folds: int) -> list[tuple[Whole, Whole]]:
    """Rows kept and left out, by groups; fewer folds where groups are fewer, none where there is but one."""
    count = np.unique(units).size
    fold = grouped_folds(units.tolist(), min(folds, count)) if count > 1 else units
    return [(np.flatnonzero(fold != one), np.flatnonzero(fold == one)) for one in np.unique(fold)]


def _constant(x: Array) -> NDArray[np.bool_]:
    return np.asarray(np.ptp(x, axis=0) <= SAME * np.abs(x).max(axis=0))


def _varying(x: Array, names: Sequence[str]) -> tuple[NDArray[np.bool_], list[str]]:
    """Which columns vary, and a note that names the others."""
    varying = ~_constant(x)
    still = [name for name, moves in zip(names, varying, strict=True) if not moves]
    return varying, [f"the same in every dialogue, so not used: {', '.join(still)}"] if still else []


def _standardised(x: Array) -> tuple[Array, Array, Array]:
    """Columns with mean 0 and standard deviation 1 (a constant one is 0), the means, the standard deviations."""
    centre = x.mean(axis=0)
    scale = np.where(_constant(x), 1.0, x.std(axis=0))
    return (x - centre) / scale, centre, scale


def _spread_out(values: Array, varying: NDArray[np.bool_], other: float) -> list[float]:
    full = np.full(varying.size, other)
    full[varying] = values
    return list(full.tolist())


def _mean_only(learner: str, y: Array, names: Sequence[str], notes: list[str]) -> Linear:
    coefficients: dict[str, float | None] = dict.fromkeys(names, 0.0)
    told = [*notes, ONLY_THE_MEAN]
    return Linear(learner=learner, intercept=float(y.mean()), coefficients=coefficients, notes=told)


def _node(grown: Any, names: Sequence[str], place: int = 0) -> Node:
    value, n = float(grown.value[place, 0, 0]), int(grown.n_node_samples[place])
    left, right = int(grown.children_left[place]), int(grown.children_right[place])
    if left < 0:
        return Node(value, n)
    split, at = names[int(grown.feature[place])], float(grown.threshold[place])
    return Node(value, n, split, at, _node(grown, names, left), _node(grown, names, right))
