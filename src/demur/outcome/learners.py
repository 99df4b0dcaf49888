"""Other learners of an outcome: full least squares, LASSO, a tree, a small neural net."""

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

from demur.core.arrays import Array
from demur.core.show.results import Step, silent
from demur.errors import DataError, UsageError
from demur.outcome.least_squares import least_squares
from demur.outcome.validation import Validation, frequencies, grouped_folds


class Fitted(Protocol):
    """What was learned."""

    @property
    def names(self) -> list[str]:
        """The predictors, in the order of the columns."""

    @property
    def used(self) -> frozenset[str]:
        """The predictors that make a difference to what is predicted."""

    @property
    def notes(self) -> list[str]:
        """What a reader should know of how it was learned."""

    def predict(self, x: ArrayLike) -> Array:
        """The outcome expected for each row."""

    def describe(self) -> dict[str, Any]:
        """What was learned, as plain values from which `restored` makes it again."""


class Linear(msgspec.Struct, frozen=True, kw_only=True, tag_field="model", tag="linear", forbid_unknown_fields=True):
    """A weighted sum; a coefficient of None belongs to a column that others determine, and is not used."""

    learner: str
    intercept: float
    coefficients: dict[str, float | None]
    chosen: dict[str, float] = {}
    notes: list[str] = []

    @property
    def names(self) -> list[str]:
        """The predictors."""
        return list(self.coefficients)

    @property
    def used(self) -> frozenset[str]:
        """The predictors with a weight."""
        return frozenset(name for name, weight in self.coefficients.items() if weight)

    def predict(self, x: ArrayLike) -> Array:
        """Intercept and weighted sum."""
        weights = [0.0 if one is None else one for one in self.coefficients.values()]
        return np.asarray(self.intercept + _rows(x, len(weights)) @ np.array(weights))

    def describe(self) -> dict[str, Any]:
        """The coefficients by name."""
        return dict(msgspec.to_builtins(self))


class Node(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A place in a tree: the mean outcome of its `n` rows, and where they part; `at` itself goes below."""

    value: float
    n: int
    split: str | None = None
    at: float | None = None
    below: Node | None = None
    above: Node | None = None


class Tree(msgspec.Struct, frozen=True, kw_only=True, tag_field="model", tag="tree", forbid_unknown_fields=True):
    """Questions about one predictor each, with a mean outcome at the end."""

    learner: str
    names: list[str]
    root: Node
    chosen: dict[str, float] = {}
    notes: list[str] = []

    def __post_init__(self) -> None:
        _check_nodes(self.root, self.names)

    @property
    def used(self) -> frozenset[str]:
        """The predictors asked about."""
        return frozenset(_asked(self.root))

    def predict(self, x: ArrayLike) -> Array:
        """The mean outcome where each row ends up."""
        # scikit-learn grows its trees on single precision, so a value on a threshold is on the same side only there
        given = _rows(x, len(self.names)).astype(np.float32)
        found = np.empty(len(given))
        waiting = [(self.root, np.arange(len(given)))]
        while waiting:
            node, rows = waiting.pop()
            if node.split is None or node.below is None or node.above is None or node.at is None:
                found[rows] = node.value
                continue
            below = given[rows, self.names.index(node.split)] <= node.at
            waiting += [(node.below, rows[below]), (node.above, rows[~below])]
        return found

    def describe(self) -> dict[str, Any]:
        """The questions, one within the other."""
        return dict(msgspec.to_builtins(self))


class Net(msgspec.Struct, frozen=True, kw_only=True, tag_field="model", tag="net", forbid_unknown_fields=True):
    """One layer of tanh units on standardised predictors; a row of `hidden` holds the weights into one unit."""

    learner: str
    names: list[str]
    centre: list[float]
    scale: list[float]
    hidden: list[list[float]]
    hidden_bias: list[float]
    output: list[float]
    output_bias: float
    outcome_centre: float
    outcome_scale: float
    chosen: dict[str, float] = {}
    notes: list[str] = []

    def __post_init__(self) -> None:
        width, units = len(self.names), len(self.output)
        wide = len(self.centre) == len(self.scale) == width and all(len(one) == width for one in self.hidden)
        if not (wide and len(self.hidden) == len(self.hidden_bias) == units):
            raise ValueError("the weights must have one number for each predictor and unit")

    @property
    def used(self) -> frozenset[str]:
        """The predictors with a weight into some unit."""
        return frozenset(
            name for name, into in zip(self.names, zip(*self.hidden, strict=True), strict=True) if any(into)
        )

    def predict(self, x: ArrayLike) -> Array:
        """What the output unit gives, in the units of the outcome."""
        z = (_rows(x, len(self.names)) - np.array(self.centre)) / np.array(self.scale)
        raised = np.tanh(z @ np.array(self.hidden).T + np.array(self.hidden_bias))
        return np.asarray(
            (raised @ np.array(self.output) + self.output_bias) * self.outcome_scale + self.outcome_centre
        )

    def describe(self) -> dict[str, Any]:
        """All weights."""
        return dict(msgspec.to_builtins(self))


def restored(description: object, *, where: str = "") -> Fitted:
    """What `describe` told of, made again.

    >>> restored({"model": "linear", "learner": "ols", "intercept": 1.0, "coefficients": {"x": 2.0}}).predict([[3.0]])
    array([7.])
    """
    try:
        return msgspec.convert(description, type=Linear | Tree | Net)
    except msgspec.ValidationError as fault:
        raise DataError(f"this is no learned model: {fault}", where=where) from None


def _rows(x: ArrayLike, width: int) -> Array:
    rows = np.asarray(x, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != width:
        raise DataError(f"predictors must be a table with {width} columns; got one of shape {rows.shape}")
    return rows


def _check_nodes(node: Node, names: Sequence[str]) -> None:
    parts = (node.split, node.at, node.below, node.above)
    if any(part is None for part in parts) and any(part is not None for part in parts):
        raise ValueError("a question needs split, at, below and above")
    if node.split is not None and node.split not in names:
        raise ValueError(f'the tree asks about "{node.split}", which is no predictor')
    for part in (node.below, node.above):
        if part is not None:
            _check_nodes(part, names)


def _asked(node: Node) -> list[str]:
    if node.split is None or node.below is None or node.above is None:
        return []
    return [node.split, *_asked(node.below), *_asked(node.above)]


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
