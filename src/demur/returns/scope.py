"""Measures of telling inputs in scope from those out of scope, to which no answer is right: low confidence means out.

They read two sweeps of all rows, in which "right" means in scope: one by confidence, where a withheld row has the
lowest of all, and one by what became of the row. Both are additive, as any sweep is.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import narwhals as nw
import numpy as np

from demur.core.arrays import Array
from demur.core.show.numbers import percent
from demur.core.stats.measure import Frame, Measure, SweepMeasure
from demur.core.stats.sweep import Sweep, ratio
from demur.errors import UsageError
from demur.returns.judging import LOWEST
from demur.returns.measures import AUROC

View = Literal["ranking", "decisions"]
"""Which of the two sweeps a measure reads."""

WITHHELD, WRONG, RIGHT = -1.0, 0.0, 1.0
"""The thresholds of the sweep by what became of a row."""

NONE_OUTSIDE, NONE_INSIDE = "no input is out of scope", "no input is in scope"


def ranking_view(frame: Any) -> Any:
    """Judged rows as answers that are right where they are in scope; withheld ones rank below all others."""
    answered = nw.col("answered")
    ranked = nw.when(answered).then(nw.col("confidence")).otherwise(nw.lit(LOWEST))
    return frame.with_columns(confidence=ranked, right=~nw.col("out_of_scope"), answered=nw.lit(value=True))


def decision_view(frame: Any) -> Any:
    """Judged rows as answers that are right where they are in scope, by what became of them: withheld, wrong, right."""
    answer = nw.when(nw.col("right")).then(nw.lit(RIGHT)).otherwise(nw.lit(WRONG))
    became = nw.when(nw.col("answered")).then(answer).otherwise(nw.lit(WITHHELD))
    return frame.with_columns(confidence=became, right=~nw.col("out_of_scope"), answered=nw.lit(value=True))


VIEWS: dict[View, Callable[[Any], Any]] = {"ranking": ranking_view, "decisions": decision_view}


@dataclass(frozen=True)
class ScopeMeasure(SweepMeasure):
    """A measure that reads one of the two sweeps, in which wrong means out of scope."""

    view: ClassVar[View]

    def reduce(self, frame: Frame) -> Sweep:
        """The sweep of the judged rows, by scope."""
        return Sweep.from_frame(VIEWS[self.view](frame))


@dataclass(frozen=True)
class _Decision(ScopeMeasure):
    """A share of the rows by what became of them."""

    view: ClassVar[View] = "decisions"
    better: ClassVar = "higher"
    interval: ClassVar = "share"

    @abstractmethod
    def _parts(self, totals: Sweep) -> tuple[Array, Array]:
        """What is counted, and of what."""

    def finish(self, totals: Sweep) -> Array:
        """The share."""
        return ratio(*self._parts(totals))

    def trials(self, totals: Sweep) -> float:
        """The share of rows that are looked at."""
        return float(self._parts(totals)[1] / totals.total)


def _at(totals: Sweep, counts: Array, threshold: float) -> Array:
    """What a sweep counts at one threshold; 0 where it has none."""
    return np.asarray(counts[..., totals.threshold == threshold].sum(axis=-1), dtype=np.float64)


@dataclass(frozen=True)
class InScopeAccuracy(_Decision):
    """Right answers / inputs in scope, when every answer is returned. Higher is better.

    Withheld inputs count in the divisor only. Reference: Larson et al. (2019), section 4.2.

    >>> InScopeAccuracy().finish(Sweep.of([RIGHT, RIGHT, WRONG, WITHHELD, WITHHELD], [True] * 4 + [False])).item()
    0.5
    """

    name: ClassVar = "in_scope_accuracy"
    title: ClassVar = "accuracy in scope"
    reference: ClassVar = "Larson et al. (2019), section 4.2"

    def _parts(self, totals: Sweep) -> tuple[Array, Array]:
        return _at(totals, totals.right, RIGHT), np.asarray(totals.right.sum(axis=-1), dtype=np.float64)

    def why_undefined(self, totals: Sweep) -> str:
        """It needs inputs in scope."""
        return NONE_INSIDE


@dataclass(frozen=True)
class OutOfScopeRecall(_Decision):
    """Inputs out of scope that the system itself withholds / all inputs out of scope. Higher is better.

    An out-of-scope label as prediction is a withheld answer; so is a failure, as everywhere. A system that always
    answers has 0: then a threshold must do it, and the ranking measures say how well one can.
    Reference: Larson et al. (2019), section 4.2.

    >>> OutOfScopeRecall().finish(Sweep.of([RIGHT, WITHHELD, WITHHELD, WRONG], [True, True, False, False])).item()
    0.5
    """

    name: ClassVar = "out_of_scope_recall"
    title: ClassVar = "recall of out-of-scope detection"
    reference: ClassVar = "Larson et al. (2019), section 4.2"

    def _parts(self, totals: Sweep) -> tuple[Array, Array]:
        return _at(totals, totals.wrong, WITHHELD), totals.errors

    def why_undefined(self, totals: Sweep) -> str:
        """It needs inputs out of scope."""
        return NONE_OUTSIDE


@dataclass(frozen=True)
class OutOfScopePrecision(_Decision):
    """Inputs out of scope that the system itself withholds / all that it withholds. Higher is better.

    Undefined where it withholds nothing. Reference: Larson et al. (2019), section 4.2, for the task.

    >>> sweep = Sweep.of([RIGHT, WITHHELD, WITHHELD, WITHHELD], [True, True, False, False])
    >>> OutOfScopePrecision().finish(sweep).round(4).item()
    0.6667
    """

    name: ClassVar = "out_of_scope_precision"
    title: ClassVar = "precision of out-of-scope detection"
    reference: ClassVar = "Larson et al. (2019), section 4.2"

    def _parts(self, totals: Sweep) -> tuple[Array, Array]:
        found = _at(totals, totals.wrong, WITHHELD)
        return found, found + _at(totals, totals.right, WITHHELD)

    def why_undefined(self, totals: Sweep) -> str:
        """It needs something withheld."""
        return "the system withholds nothing by itself"


@dataclass(frozen=True)
class _Ranking(ScopeMeasure):
    """How well confidences rank inputs in scope above those out of scope."""

    view: ClassVar[View] = "ranking"
    interval: ClassVar = "ranking"

    def why_undefined(self, totals: Sweep) -> str:
        """It needs inputs of both kinds."""
        return NONE_OUTSIDE if float(totals.errors) == 0 else NONE_INSIDE


@dataclass(frozen=True)
class ScopeAUROC(_Ranking):
    """Probability that an input in scope has a higher confidence than one out of scope, ties half. Higher is better.

    0.5 is no better than chance. Withheld inputs rank below all others. Reference: Hendrycks and Gimpel (2017).

    >>> ScopeAUROC().finish(Sweep.of([0.9, 0.8, 0.8, LOWEST], [True, True, False, False])).item()
    0.875
    """

    name: ClassVar = "scope_auroc"
    title: ClassVar = "AUROC of confidence for being in scope"
    better: ClassVar = "higher"
    reference: ClassVar = "Hendrycks and Gimpel (2017)"

    def finish(self, totals: Sweep) -> Array:
        """As the AUROC of right and wrong answers."""
        return AUROC().finish(totals)


@dataclass(frozen=True)
class ScopeAUPR(_Ranking):
    """Area under precision over recall of finding inputs out of scope by low confidence. Higher is better.

    The mean, over the inputs out of scope, of the precision at the threshold that just finds them (average precision,
    without interpolation, which would flatter). The share out of scope is no better than chance.
    Reference: Hendrycks and Gimpel (2017), AUPR out.

    >>> ScopeAUPR().finish(Sweep.of([0.9, 0.8, 0.5, 0.1], [True, False, True, False])).item()
    0.8333333333333333
    """

    name: ClassVar = "scope_aupr"
    title: ClassVar = "area under precision and recall of being out of scope"
    better: ClassVar = "higher"
    reference: ClassVar = "Hendrycks and Gimpel (2017)"

    def finish(self, totals: Sweep) -> Array:
        """Precision at each level, weighted by what is found there."""
        found = np.cumsum(totals.wrong, axis=-1, dtype=np.float64)
        taken = np.cumsum(np.add(totals.right, totals.wrong, dtype=np.float64), axis=-1)
        precision = np.divide(found, taken, out=np.zeros_like(found), where=taken > 0)
        both = (totals.errors > 0) & (totals.answered > totals.errors)
        return np.where(both, ratio((precision * totals.wrong).sum(axis=-1), totals.errors), np.nan)


@dataclass(frozen=True)
class ScopeFPR(_Ranking):
    """Share of inputs out of scope that are returned at the threshold that returns `tpr` of those in scope.

    Lower is better. The threshold is the highest at which at least that share of the inputs in scope is returned, ties
    included. Undefined where the system itself withholds so many of them that no threshold does. 0.95 is the usual
    choice. Reference: Liang et al. (2018), FPR at 95 % TPR.

    >>> ScopeFPR(tpr=0.5).finish(Sweep.of([0.9, 0.8, 0.8, 0.1], [True, True, False, False])).item()
    0.0
    >>> ScopeFPR().finish(Sweep.of([0.9, 0.8, 0.8, 0.1], [True, True, False, False])).item()
    0.5
    """

    tpr: float = 0.95

    name: ClassVar = "scope_fpr"
    title: ClassVar = "out-of-scope inputs returned where 95 % of those in scope are"
    better: ClassVar = "lower"
    reference: ClassVar = "Liang et al. (2018)"

    def __post_init__(self) -> None:
        if not 0 < self.tpr <= 1:
            raise UsageError(f"a share of the inputs in scope lies above 0 and up to 1, such as 0.95; got {self.tpr:g}")

    def finish(self, totals: Sweep) -> Array:
        """Those out of scope at or above the first threshold, from the top, that returns enough of those in scope."""
        kept = totals.threshold > LOWEST
        inside, outside = (
            np.cumsum(part[..., kept][..., ::-1], axis=-1, dtype=np.float64) for part in (totals.right, totals.wrong)
        )
        in_scope = np.asarray(totals.right.sum(axis=-1), dtype=np.float64)
        enough = inside >= self.tpr * in_scope[..., None] * (1 - 1e-12)
        if not kept.any():
            return np.full(in_scope.shape, np.nan)
        first = np.argmax(enough, axis=-1)
        share = ratio(np.take_along_axis(outside, first[..., None], axis=-1)[..., 0], totals.errors)
        return np.where(enough.any(axis=-1) & (in_scope > 0), share, np.nan)

    def why_undefined(self, totals: Sweep) -> str:
        """It needs inputs of both kinds, and a threshold that returns enough of those in scope."""
        both = float(totals.errors) > 0 and float(totals.answered - totals.errors) > 0
        few = f"the system itself withholds more than {percent(1 - self.tpr)} of the inputs in scope"
        return few if both else super().why_undefined(totals)


SCOPE: dict[str, Measure] = {
    measure.name: measure
    for measure in (
        InScopeAccuracy(),
        OutOfScopeRecall(),
        OutOfScopePrecision(),
        ScopeAUROC(),
        ScopeAUPR(),
        ScopeFPR(),
    )
}
"""Measures of telling what is in scope from what is not, by their key; shown where a log has inputs out of scope."""
