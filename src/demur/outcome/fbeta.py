"""Outcome = a + b F_beta with beta fitted: how much more than precision does recall count, as dialogues turned out?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from demur.core.arrays import Array
from demur.core.io.columns import nearest
from demur.core.show.results import Step, plain, silent
from demur.core.stats.intervals import Figure, expanded_percentiles
from demur.core.stats.resampling import Draws
from demur.core.stats.sweep import ratio
from demur.errors import DataError, UsageError
from demur.outcome.learners import r2_of, splits
from demur.outcome.options import Undefined
from demur.outcome.validation import OutcomeValidation
from demur.returns.classes import Confusion

Place = Literal["inside", "lower", "upper", "any"]

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
        share = np.nan_to_num(self.share)
        return np.stack([(self._of_classes(float(one)) * share).sum(axis=1) for one in p])

    def _of_classes(self, p: float) -> Array:
        below = p * self.support + (1 - p) * self.predicted
        return np.divide(self.hits, below, out=np.zeros_like(below), where=below > 0)


@dataclass(frozen=True, slots=True, eq=False)
class BetaProblem:
    """Scores and outcomes to be fitted; `known` is False where a score is to be replaced by the mean of the others.

    A dialogue with the mean score adds nothing to the sums about the mean. So beta and slope are those without it.
    """

    scores: ScoreParts
    y: Array
    known: Array
    bounds: tuple[float, float]

    @property
    def whole(self) -> Array:
        """The weights of all dialogues as they are: a single row."""
        return np.ones((1, self.y.size))

    def betas(self, weight: Array) -> Array:
        """Log of the best beta for each row of weights; NaN where any is as good."""
        grid = np.linspace(np.log(self.bounds[0]), np.log(self.bounds[1]), GRID + 1)
        tried = self.scores.at(expit(2 * grid))
        explained = np.stack([self.explained(tried, one) for one in weight])
        best = explained.argmax(axis=1)
        low, high = grid[np.maximum(best - 1, 0)], grid[np.minimum(best + 1, GRID)]
        found = self._refined(low, high, weight)
        for end in (grid[0], grid[-1]):  # a search between ends never quite arrives at one
            at_end = self._explained_at(np.full(len(found), end), weight) >= self._explained_at(found, weight)
            found = np.where(at_end & (np.abs(found - end) <= grid[1] - grid[0]), end, found)
        return np.where(np.ptp(explained, axis=1) > FLAT * self.variation(weight), found, np.nan)

    def _refined(self, low: Array, high: Array, weight: Array) -> Array:
        """Golden-section search, for all rows of weights at once."""
        for _ in range(REFINEMENTS):
            inner = GOLDEN * (high - low)
            left_is_better = self._explained_at(high - inner, weight) > self._explained_at(low + inner, weight)
            low, high = np.where(left_is_better, low, high - inner), np.where(left_is_better, low + inner, high)
        return np.asarray((low + high) / 2)

    def _explained_at(self, log_beta: Array, weight: Array) -> Array:
        return self.explained(self.scores.at(expit(2 * log_beta)), weight)

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
    `limits` are the R² of precision, F1 and recall in the place of F_beta.
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
    middle: float
    bounds: tuple[float, float]
    at: Place
    at_bounds: tuple[float, float]
    limits: dict[str, float]

    def predict(self, confusion: Confusion) -> Array:
        """The outcome for every table; NaN where the class does not occur, unless that counts as 0 or as the mean."""
        scores = ScoreParts.of(confusion, self.of)
        value = scores.at([(self.beta.value**2 / (1 + self.beta.value**2))])[0]
        other = {"drop": np.nan, "zero": 0.0, "impute-mean": self.middle}[self.undefined]
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
        return {
            "model": "f_beta",
            "of": self.of,
            "beta": self.beta.to_dict(),
            "slope": self.slope.to_dict(),
            "intercept": self.intercept,
            "r2": self.r2,
            "mse": self.mse,
            "n": self.n,
            "dropped": self.dropped,
            "undefined": self.undefined,
            "mean_score": self.middle,
            "bounds": list(self.bounds),
            "at": self.at,
            "at_bounds": {"lower": plain(self.at_bounds[0]), "upper": plain(self.at_bounds[1])},
            "r2_of": dict(self.limits),
            "words": self.words(),
        }


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
    >>> confusion = Confusion(("a", "b"), np.array(tables, dtype=float), 40)
    >>> fit_f_beta(confusion, [0.80, 0.60, 0.40, 0.80], of="a", replicates=0).words()
    'beta runs to its upper bound 20: recall alone predicts as well'
    """
    problem, units, kept = _problem(confusion, y, of, undefined, bounds, groups)
    weight = problem.whole
    found = float(problem.betas(weight)[0])
    log_beta = 0.0 if np.isnan(found) else found
    intercept, slope, middle = (float(one[0]) for one in problem.lines(expit([2 * log_beta]), weight))
    variation = float(problem.variation(weight)[0])
    limits = {
        name: float(problem.explained(problem.scores.at([p]), weight)[0]) / variation
        for name, p in (("precision", 0.0), ("f1", 0.5), ("recall", 1.0))
    }
    r2 = float(problem.explained(problem.scores.at(expit([2 * log_beta])), weight)[0]) / variation
    fitted = FBeta(
        of=of,
        beta=Figure(float(np.exp(log_beta))),
        slope=Figure(slope),
        intercept=intercept,
        r2=r2,
        mse=(1 - r2) * variation / problem.y.size,
        n=problem.y.size,
        dropped=int((~kept).sum()),
        undefined=undefined,
        middle=middle,
        bounds=bounds,
        at=_place(found, bounds),
        at_bounds=(np.nan, np.nan),
        limits=limits,
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
    said, means = np.full(kept.size, np.nan), np.full(kept.size, np.nan)
    for row, (inside, out) in enumerate(parts):
        place = np.flatnonzero(kept)[out]
        said[place], means[place] = fitted[row, out], problem.y[inside].mean()
    return OutcomeValidation(np.asarray(y, dtype=np.float64), said, means, training, {}, 1)


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
    betas, slopes = [], []
    done = 0
    for chunk in Draws(count, replicates, seed):
        weight = chunk[:, units]
        found = problem.betas(weight)
        betas.append(found)
        slopes.append(problem.lines(expit(2 * np.nan_to_num(found)), weight)[1])
        done += len(chunk)
        step("draws of dialogues", done, replicates)
    drawn = np.concatenate(betas)
    low, high = np.exp(expanded_percentiles(drawn, level, count)).tolist()
    why = "in more than a tenth of the draws any beta fits as well" if np.isnan(drawn).mean() > 0.1 else None
    least, most = expanded_percentiles(np.concatenate(slopes), level, count)
    ends = np.log(problem.bounds)
    return replace(
        fitted,
        beta=replace(fitted.beta, low=low, high=high, why=why),
        slope=replace(fitted.slope, low=least, high=most),
        at_bounds=(float(np.mean(drawn == ends[0])), float(np.mean(drawn == ends[1]))),
    )


def _place(log_beta: float, bounds: tuple[float, float]) -> Place:
    if np.isnan(log_beta):
        return "any"
    if log_beta == np.log(bounds[0]):
        return "lower"
    return "upper" if log_beta == np.log(bounds[1]) else "inside"
