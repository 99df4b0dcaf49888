"""Other learners of an outcome: full least squares, LASSO, a tree, a small neural net."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from demur.core.arrays import Array, Flags
from demur.errors import DataError, UsageError
from demur.outcome.least_squares import Places, check_arrays, solve
from demur.outcome.validation import OutcomeValidation, folds_of_groups, frequencies, grouped_folds

SAME = 1e-12
"""Spread of a column, relative to its largest value, below which it counts as constant."""

MOST_STEPS = 50_000
"""Steps after which a search that still moves is stopped."""

FOLDS = 10
"""Folds by which the penalty of the LASSO and the depth of the tree are chosen."""

DEEPEST, LEAF = 4, 5
"""Greatest depth of the tree, and rows of a leaf at least: means of fewer dialogues are mostly chance."""

UNITS, DECAY = 3, 1.0
"""Units of the net, and the penalty on squared weights that keeps it from overfitting some dozens of dialogues."""


@dataclass(frozen=True, eq=False)
class LearnedModel:
    """How rows are predicted, and which columns make a difference to it."""

    predict: Callable[[Array], Array]
    used: tuple[int, ...] = ()


Learner = Callable[[Array, Array, Places], LearnedModel]
"""Learns the outcome from predictors; rows of one group are never apart when a setting is chosen."""


def fit_all(x: Array, y: Array, groups: Places) -> LearnedModel:  # noqa: ARG001
    """Linear regression on all predictors, none left out but those that others determine.

    >>> fit_all(np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 3.0, 5.0]), np.arange(3)).predict([[4.0]]).round(6)
    array([9.])
    """
    fit = solve(x, y)
    return LearnedModel(fit.predict, tuple(np.flatnonzero(np.nan_to_num(fit.coefficients[1:])).tolist()))


def fit_lasso(x: Array, y: Array, groups: Places) -> LearnedModel:
    """Linear regression whose coefficients are pulled towards 0, many of them all the way (Tibshirani 1996).

    Predictors are standardised; the penalty is that with the least squared error over grouped folds, of 100
    penalties between the least that leaves no predictor in and a thousandth of it.
    """
    models = load_sklearn("linear_model")
    varying, scaled = _standardise(x)
    z, folds = scaled(x), _inner_folds(groups)
    most = np.abs(z.T @ (y - y.mean())).max(initial=0.0) / len(z)
    if most <= SAME * np.abs(y).max() or len(folds) < 2:
        return _mean_only(y)
    # precomputed cross-products would be checked again for every penalty, which takes longer than they save
    found = models.LassoCV(alphas=most * np.logspace(0, -3, 100), cv=folds, max_iter=MOST_STEPS, precompute=False)
    with _one_thread():
        found.fit(z, y)
    used = np.flatnonzero(varying)[found.coef_ != 0]
    return LearnedModel(lambda rows: np.asarray(found.predict(scaled(rows))), tuple(used.tolist()))


def fit_tree(x: Array, y: Array, groups: Places) -> LearnedModel:
    """A small tree of questions (Breiman et al. 1984).

    Its depth is the least of those with the smallest squared error over grouped folds; 0 asks nothing and predicts
    the mean.
    """
    errors, folds = np.zeros(DEEPEST + 1), _inner_folds(groups)
    for depth in range(DEEPEST + 1 if len(folds) > 1 else 0):
        for kept, out in folds:
            errors[depth] += np.square(y[out] - _grow_tree(x[kept], y[kept], depth).predict(x[out])).sum()
    return _grow_tree(x, y, int(np.argmax(errors <= errors.min() + SAME * np.square(y).sum())))


def _grow_tree(x: Array, y: Array, depth: int) -> LearnedModel:
    if not depth or not x.shape[1]:
        return _mean_only(y)
    grower = load_sklearn("tree").DecisionTreeRegressor
    tree = grower(max_depth=depth, min_samples_leaf=LEAF, random_state=0).fit(x, y)
    used = np.unique(tree.tree_.feature)
    return LearnedModel(tree.predict, tuple(used[used >= 0].tolist()))


def fit_net(x: Array, y: Array, groups: Places) -> LearnedModel:  # noqa: ARG001
    """A neural net of a few tanh units in one layer (Möller et al. 2008 found nets to predict satisfaction best).

    Predictors and outcome are standardised.
    """
    varying, scaled = _standardise(x)
    if _constant(y[:, None])[0] or not varying.any():
        return _mean_only(y)
    settings = {"hidden_layer_sizes": (UNITS,), "activation": "tanh", "solver": "lbfgs", "alpha": DECAY}
    limits = {"max_iter": MOST_STEPS, "max_fun": MOST_STEPS, "random_state": 0}
    net = load_sklearn("neural_network").MLPRegressor(**settings, **limits)
    centre, scale = y.mean(), y.std()
    with _one_thread():
        net.fit(scaled(x), (y - centre) / scale)
    used = np.flatnonzero(varying)[np.any(net.coefs_[0] != 0, axis=1)]
    return LearnedModel(lambda rows: np.asarray(net.predict(scaled(rows)) * scale + centre), tuple(used.tolist()))


LEARNERS: Mapping[str, Learner] = {"ols": fit_all, "lasso": fit_lasso, "tree": fit_tree, "net": fit_net}
"""The learners by name."""


def cross_validate(
    learner: Learner,
    x: ArrayLike,
    y: ArrayLike,
    names: Sequence[str],
    *,
    groups: ArrayLike | None = None,
    folds: Places | None = None,
) -> OutcomeValidation:
    """Predict every row by what was learned from the other folds; all choices are made inside, by groups.

    `folds` is the number of each row's fold; None leaves out one group at a time, or one row where there are none.

    >>> cross_validate(fit_all, [[0.0], [1.0], [2.0]], [1.0, 2.0, 3.0], ["x"]).predictions.round(9).tolist()
    [1.0, 2.0, 3.0]
    """
    rows, outcome = check_arrays(x, y)
    units = np.arange(outcome.size) if groups is None else folds_of_groups(np.asarray(groups).tolist())
    parts = splits(units if folds is None else folds, outcome.size)
    predictions, means = np.empty(outcome.size), np.empty(outcome.size)
    training, used = [], []
    for kept, out in parts:
        learned = learner(rows[kept], outcome[kept], units[kept])
        predictions[out], means[out] = learned.predict(rows[out]), outcome[kept].mean()
        training.append(r2_of(outcome[kept], learned.predict(rows[kept])))
        used.append(learned.used)
    models = len({frozenset(terms) for terms in used})
    return OutcomeValidation(outcome, predictions, means, np.array(training), frequencies(used, names), models)


def splits(folds: Places, n: int) -> list[tuple[Places, Places]]:
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


def load_sklearn(part: str) -> Any:
    """A part of scikit-learn, loaded when first asked for."""
    try:
        return import_module(f"sklearn.{part}")
    except ImportError:
        raise UsageError("LASSO, tree and neural net need scikit-learn: pip install 'demur[demo]'") from None


@contextmanager
def _one_thread() -> Iterator[None]:
    """Search in one thread, without a warning where the search does not settle.

    The matrices are tiny: threads of the linear algebra would wait for one another, at many times the time.
    """
    with warnings.catch_warnings(), import_module("threadpoolctl").threadpool_limits(limits=1):
        warnings.simplefilter("ignore", load_sklearn("exceptions").ConvergenceWarning)
        yield


def _inner_folds(units: Places) -> list[tuple[Places, Places]]:
    """Rows kept and left out, by groups; fewer folds where groups are fewer, none where there is only one."""
    count = np.unique(units).size
    fold = grouped_folds(units.tolist(), min(FOLDS, count)) if count > 1 else units
    return [(np.flatnonzero(fold != one), np.flatnonzero(fold == one)) for one in np.unique(fold)]


def _constant(x: Array) -> Flags:
    return np.asarray(np.ptp(x, axis=0) <= SAME * np.abs(x).max(axis=0))


def _standardise(x: Array) -> tuple[Flags, Callable[[Array], Array]]:
    """Which columns vary, and how rows become those columns with mean 0 and standard deviation 1."""
    varying = ~_constant(x)
    centre, scale = x[:, varying].mean(axis=0), x[:, varying].std(axis=0)
    return varying, lambda rows: (np.asarray(rows)[:, varying] - centre) / scale


def _mean_only(y: Array) -> LearnedModel:
    mean = float(y.mean())
    return LearnedModel(lambda rows: np.full(len(rows), mean))
