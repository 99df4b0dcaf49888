"""Other learners of an outcome: full least squares, LASSO, a tree, a small neural net, and F_beta with beta fitted."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from demur.core.arrays import Array, Flags
from demur.core.io.columns import nearest
from demur.core.show.results import Step, plain, silent
from demur.core.stats.intervals import Figure, expanded_percentiles
from demur.core.stats.resampling import Draws
from demur.core.stats.sweep import ratio
from demur.errors import DataError, UsageError
from demur.outcome.least_squares import SAME, Places, check_arrays, is_constant, solve
from demur.outcome.options import Undefined
from demur.outcome.validation import OutcomeValidation, folds_of_groups, frequencies, grouped_folds, r2_of
from demur.returns.classes import Confusion

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
    if is_constant(y[:, None])[0] or not varying.any():
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
    models = len({*map(frozenset, used)})
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


def _standardise(x: Array) -> tuple[Flags, Callable[[Array], Array]]:
    """Which columns vary, and how rows become those columns with mean 0 and standard deviation 1."""
    varying = ~is_constant(x)
    centre, scale = x[:, varying].mean(axis=0), x[:, varying].std(axis=0)
    return varying, lambda rows: (np.asarray(rows)[:, varying] - centre) / scale


def _mean_only(y: Array) -> LearnedModel:
    mean = float(y.mean())
    return LearnedModel(lambda rows: np.full(len(rows), mean))


BOUNDS = (0.05, 20.0)
"""Where beta is looked for. At the ends F is precision or recall alone, but for a few parts in a thousand."""

GRID = 120
"""Steps between the bounds at which the fit is tried before the best is refined; a step changes beta by 5 %."""

GOLDEN = (np.sqrt(5) - 1) / 2
REFINEMENTS = 30
FLAT = 1e-10
"""Share of the outcome's variance that beta must make a difference to, or any beta is as good."""


@dataclass(frozen=True, slots=True, eq=False)
class ScoreParts:
    """What F is made of, by dialogue and class, and how much each class counts in its dialogue's score.

    F_beta = hits / (p support + (1 - p) predicted) with p = beta² / (1 + beta²), which is van Rijsbergen's form: at
    p = 0 it is precision, at 1 recall, so the limits need no case of their own.
    """

    hits: Array
    predicted: Array
    support: Array
    share: Array

    @classmethod
    def of(cls, confusion: Confusion, of: str = "macro") -> ScoreParts:
        """The ingredients of one class's F, or of the average over the classes that occur in a dialogue."""
        width = len(confusion.labels)
        hits, predicted, support = (
            part.reshape(-1, width) for part in (confusion.hits, confusion.predicted, confusion.support)
        )
        if of in ("macro", "weighted"):
            weight = support if of == "weighted" else (support > 0).astype(np.float64)
            return cls(hits, predicted, support, ratio(weight, weight.sum(axis=1, keepdims=True)))
        if of not in confusion.labels:
            raise UsageError(f'F is of a class, "macro" or "weighted"; {nearest(of, confusion.labels)}')
        one = [confusion.labels.index(of)]
        share = np.where(predicted[:, one] + support[:, one] > 0, 1.0, np.nan)
        return cls(hits[:, one], predicted[:, one], support[:, one], share)

    @property
    def known(self) -> NDArray[np.bool_]:
        """Whether the dialogue has a score: the class was predicted or right somewhere in it."""
        return np.asarray(~np.isnan(self.share).any(axis=1))

    def only(self, rows: NDArray[np.bool_]) -> ScoreParts:
        """These dialogues."""
        return ScoreParts(self.hits[rows], self.predicted[rows], self.support[rows], self.share[rows])

    def at(self, p: Sequence[float] | Array) -> Array:
        """Scores of all dialogues, a row for each p; 0 where a dialogue has none."""
        scores = []
        for one in p:
            below = float(one) * self.support + (1 - float(one)) * self.predicted
            classes = np.divide(self.hits, below, out=np.zeros_like(below), where=below > 0)
            scores.append((classes * np.nan_to_num(self.share)).sum(axis=1))
        return np.stack(scores)


@dataclass(frozen=True, slots=True, eq=False)
class BetaProblem:
    """Scores and outcomes to be fitted; `known` is False where a score is to be replaced by the mean of the others.

    A dialogue with the mean score adds nothing to the sums about the mean. So beta and slope are those without it.
    """

    scores: ScoreParts
    y: Array
    known: Array
    bounds: tuple[float, float]

    def betas(self, weight: Array) -> Array:
        """Log of the best beta for each row of weights; NaN where any is as good."""

        def explained_at(log_beta: Array) -> Array:
            return self.explained(self.scores.at(expit(2 * log_beta)), weight)

        grid = np.linspace(np.log(self.bounds[0]), np.log(self.bounds[1]), GRID + 1)
        tried = self.scores.at(expit(2 * grid))
        explained = np.stack([self.explained(tried, one) for one in weight])
        nearest_step = explained.argmax(axis=1)
        low, high = grid[np.maximum(nearest_step - 1, 0)], grid[np.minimum(nearest_step + 1, GRID)]
        for _ in range(REFINEMENTS):  # golden-section search, for all rows of weights at once
            inner = GOLDEN * (high - low)
            left_is_better = explained_at(high - inner) > explained_at(low + inner)
            low, high = np.where(left_is_better, low, high - inner), np.where(left_is_better, low + inner, high)
        best = np.asarray((low + high) / 2)
        for end in (grid[0], grid[-1]):  # a search between ends never quite arrives at one
            at_end = explained_at(np.full(len(best), end)) >= explained_at(best)
            best = np.where(at_end & (np.abs(best - end) <= grid[1] - grid[0]), end, best)
        return np.where(np.ptp(explained, axis=1) > FLAT * self.variation(weight), best, np.nan)

    def explained(self, score: Array, weight: Array) -> Array:
        """Sum of squares that a line on the scores explains; 0 where they are all the same."""
        across, along = self._sums(score, weight)
        return np.nan_to_num(ratio(np.square(along), across))

    def variation(self, weight: Array) -> Array:
        """Sum of squares of the outcome about its mean."""
        mean = (weight * self.y).sum(axis=-1, keepdims=True) / weight.sum(axis=-1, keepdims=True)
        return np.asarray((weight * np.square(self.y - mean)).sum(axis=-1))

    def lines(self, p: Array, weight: Array) -> tuple[Array, Array, Array]:
        """Intercept, slope and mean score for each p and row of weights; slope 0 where scores are all the same."""
        score = self.scores.at(p)
        across, along = self._sums(score, weight)
        slope = np.nan_to_num(ratio(along, across))
        seen = weight * self.known
        middle = np.nan_to_num(ratio((seen * score).sum(axis=-1), seen.sum(axis=-1)))
        return (weight * self.y).sum(axis=-1) / weight.sum(axis=-1) - slope * middle, slope, middle

    def _sums(self, score: Array, weight: Array) -> tuple[Array, Array]:
        seen = weight * self.known
        apart = score - ratio((seen * score).sum(axis=-1), seen.sum(axis=-1))[..., None]
        outcome = self.y - self.y.mean()  # for accuracy alone: any constant drops out
        across, along = (seen * np.square(apart)).sum(axis=-1), (seen * apart * outcome).sum(axis=-1)
        return np.where(across > 1e-20 * weight.sum(axis=-1), across, 0.0), along


@dataclass(frozen=True, eq=False)
class FBeta:
    """A line on F_beta with beta as the dialogues would have it.

    `at` says whether beta lies "inside" the bounds, ran to the "lower" one (precision alone) or the "upper" one (recall
    alone), or "any" beta fits as well; `at_bounds` are the shares of draws that ran to the lower and to the upper one.
    `r2_of` are the R² of precision, F1 and recall in the place of F_beta.
    """

    of: str
    beta: Figure
    slope: Figure
    intercept: float
    r2: float
    mse: float
    n: int
    dropped: int
    undefined: Undefined
    mean_score: float
    bounds: tuple[float, float]
    at: str
    at_bounds: dict[str, float]
    r2_of: dict[str, float]

    def predict(self, confusion: Confusion) -> Array:
        """The outcome for every table; NaN where the class does not occur, unless that counts as 0 or as the mean."""
        scores = ScoreParts.of(confusion, self.of)
        value = scores.at([(self.beta.value**2 / (1 + self.beta.value**2))])[0]
        other = {"drop": np.nan, "zero": 0.0, "impute-mean": self.mean_score}[self.undefined]
        return np.asarray(self.intercept + self.slope.value * np.where(scores.known, value, other))

    def words(self) -> str:
        """What the fitted beta says."""
        low, high = self.bounds
        if self.at == "any":
            return "precision and recall tell the same of these dialogues, so any beta fits as well; 1 is used"
        if self.at == "lower":
            return f"beta runs to its lower bound {low:g}: precision alone predicts as well"
        if self.at == "upper":
            return f"beta runs to its upper bound {high:g}: recall alone predicts as well"
        falls = "; but the outcome falls as F rises" if self.slope.value < 0 else ""
        return f"recall counts {self.beta.value:.3g} times as much as precision{falls}"

    def to_dict(self) -> dict[str, Any]:
        """The model as plain values."""
        figures = {"beta": self.beta.to_dict(), "slope": self.slope.to_dict()}
        document: dict[str, Any] = plain({"model": "f_beta", **vars(self), **figures, "words": self.words()})
        return document


def fit_f_beta(
    confusion: Confusion,
    y: ArrayLike,
    *,
    of: str = "macro",
    undefined: Undefined = "drop",
    bounds: tuple[float, float] = BOUNDS,
    groups: ArrayLike | None = None,
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
    step: Step = silent,
) -> FBeta:
    """Fit beta by profiling over its logarithm, intercept and slope by least squares at each; intervals by bootstrap.

    `confusion` holds one table for each dialogue. `of` is a class, "macro" (the mean over the classes of a dialogue)
    or "weighted" (by class size). A dialogue in which the class does not occur is dropped, counts as 0, or as the
    mean. Dialogues are drawn, or groups of them, and beta is found afresh in each draw. Reference: Dzikovska
    et al. (2012), section 6.

    >>> tables = [[4, 1], [1, 4], [0, 0]], [[3, 2], [2, 3], [0, 0]], [[2, 0], [1, 3], [2, 2]], [[4, 3], [1, 2], [0, 0]]
    >>> confusion = Confusion.dense(("a", "b"), np.array(tables, dtype=float), 40)
    >>> fit_f_beta(confusion, [0.80, 0.60, 0.40, 0.80], of="a", replicates=0).words()
    'beta runs to its upper bound 20: recall alone predicts as well'
    """
    problem, units, kept = _problem(confusion, y, of, undefined, bounds, groups)
    weight = np.ones((1, problem.y.size))
    best = float(problem.betas(weight)[0])
    log_beta = 0.0 if np.isnan(best) else best
    p = float(expit(2 * log_beta))
    intercept, slope, mean_score = (float(one[0]) for one in problem.lines(np.array([p]), weight))
    variation = float(problem.variation(weight)[0])
    r2s = [float(problem.explained(problem.scores.at([one]), weight)[0]) / variation for one in (p, 0.0, 0.5, 1.0)]
    ends = {float(np.log(bounds[0])): "lower", float(np.log(bounds[1])): "upper"}
    fitted = FBeta(
        of=of,
        beta=Figure(float(np.exp(log_beta))),
        slope=Figure(slope),
        intercept=intercept,
        r2=r2s[0],
        mse=(1 - r2s[0]) * variation / problem.y.size,
        n=problem.y.size,
        dropped=int((~kept).sum()),
        undefined=undefined,
        mean_score=mean_score,
        bounds=bounds,
        at="any" if np.isnan(best) else ends.get(best, "inside"),
        at_bounds=dict.fromkeys(ends.values(), np.nan),
        r2_of=dict(zip(("precision", "f1", "recall"), r2s[1:], strict=True)),
    )
    return _with_intervals(fitted, problem, units, level, replicates, seed, step) if replicates else fitted


def cross_validate_f_beta(
    confusion: Confusion,
    y: ArrayLike,
    *,
    of: str = "macro",
    undefined: Undefined = "drop",
    bounds: tuple[float, float] = BOUNDS,
    groups: ArrayLike | None = None,
    folds: NDArray[np.int64] | None = None,
) -> OutcomeValidation:
    """Predict every dialogue with beta, intercept and slope fitted without its fold; NaN for those that are dropped.

    `folds` is the number of each dialogue's fold; None leaves out one group, or dialogue, at a time.
    """
    problem, units, kept = _problem(confusion, y, of, undefined, bounds, groups)
    parts = splits(units if folds is None else np.asarray(folds)[kept], problem.y.size)
    weight = np.ones((len(parts), problem.y.size))
    for number, (_, out) in enumerate(parts):
        weight[number, out] = 0.0
    p = expit(2 * np.nan_to_num(problem.betas(weight)))
    intercept, slope, middle = problem.lines(p, weight)
    score = np.where(problem.known > 0, problem.scores.at(p), middle[:, None])
    fitted = intercept[:, None] + slope[:, None] * score
    training = np.array([r2_of(problem.y[inside], fitted[row, inside]) for row, (inside, _) in enumerate(parts)])
    predictions, means = np.full(kept.size, np.nan), np.full(kept.size, np.nan)
    for row, (inside, out) in enumerate(parts):
        place = np.flatnonzero(kept)[out]
        predictions[place], means[place] = fitted[row, out], problem.y[inside].mean()
    return OutcomeValidation(np.asarray(y, dtype=np.float64), predictions, means, training, {}, 1)


def _problem(
    confusion: Confusion,
    y: ArrayLike,
    of: str,
    undefined: Undefined,
    bounds: tuple[float, float],
    groups: ArrayLike | None,
) -> tuple[BetaProblem, NDArray[np.int64], NDArray[np.bool_]]:
    """What is to be fitted, the number of each dialogue's group, and which dialogues were not dropped."""
    if undefined not in get_args(Undefined):
        raise UsageError(f'an undefined score is met by {", ".join(get_args(Undefined))}; got "{undefined}"')
    if not 0 < bounds[0] < bounds[1] < np.inf:
        raise UsageError(f"beta must have a lower bound above 0 and a greater upper one; got {bounds}")
    scores, outcome = ScoreParts.of(confusion, of), np.asarray(y, dtype=np.float64)
    labels = np.arange(outcome.size) if groups is None else np.asarray(groups)
    if not len(scores.hits) == outcome.size == labels.size:
        raise DataError(f"each of {len(scores.hits)} dialogues must have one outcome and one group", got=outcome.size)
    if not np.isfinite(outcome).all():
        raise DataError("the outcome must be a finite number in every dialogue", fix="leave out those without one")
    kept = scores.known if undefined == "drop" else np.full(outcome.size, True)
    known = np.full(outcome.size, True) if undefined == "zero" else scores.known
    if known[kept].sum() < 4:
        raise DataError(
            "intercept, slope and beta are three numbers, so more than three dialogues must have a score",
            got=int(known[kept].sum()),
        )
    if np.ptp(outcome[kept]) <= 1e-12 * np.abs(outcome[kept]).max():
        raise DataError("the outcome is the same in every dialogue, so there is nothing to explain")
    units = np.unique(labels[kept], return_inverse=True)[1].astype(np.int64)
    problem = BetaProblem(scores.only(kept), outcome[kept], known[kept].astype(np.float64), bounds)
    return problem, units, kept


def _with_intervals(
    fitted: FBeta, problem: BetaProblem, units: NDArray[np.int64], level: float, replicates: int, seed: int, step: Step
) -> FBeta:
    count = int(units.max()) + 1
    betas, slopes = np.empty(0), np.empty(0)
    for chunk in Draws(count, replicates, seed):
        weight = chunk[:, units]
        log_betas = problem.betas(weight)
        betas = np.append(betas, log_betas)
        slopes = np.append(slopes, problem.lines(expit(2 * np.nan_to_num(log_betas)), weight)[1])
        step("draws of dialogues", betas.size, replicates)
    low, high = np.exp(expanded_percentiles(betas, level, count)).tolist()
    why = "in more than a tenth of the draws any beta fits as well" if np.isnan(betas).mean() > 0.1 else None
    least, most = expanded_percentiles(slopes, level, count)

    return replace(
        fitted,
        beta=replace(fitted.beta, low=low, high=high, why=why),
        slope=replace(fitted.slope, low=least, high=most),
        at_bounds={
            place: float(np.mean(betas == np.log(bound)))
            for place, bound in zip(fitted.at_bounds, fitted.bounds, strict=True)
        },
    )
