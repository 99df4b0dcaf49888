"""Scalars of the error-return family (Artstein 2011), and their names in selective prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

from demur.errors import UsageError
from demur.measures.base import SweepMeasure, ratio
from demur.measures.sweep import Sweep

Array = NDArray[np.float64]
Convention = Literal["trapezoid", "mean"]


@dataclass(frozen=True)
class ForcedError(SweepMeasure):
    """Error rate when every answer is returned: where the error-return curve starts. Lower is better.

    Wrong answers / all inputs. Inputs on which the system withheld by itself count in the divisor only.
    Reference: Artstein (2011), section 3.

    >>> ForcedError().finish(Sweep.of([0.9, 0.4], [True, False], withheld=2)).item()
    0.25
    """

    name: ClassVar = "forced_error"
    title: ClassVar = "error rate under forced choice"
    better: ClassVar = "lower"
    reference: ClassVar = "Artstein (2011), section 3"
    proportion: ClassVar = True

    def finish(self, totals: Sweep) -> Array:
        """Wrong answers over all inputs."""
        return np.asarray(totals.errors / totals.total)


@dataclass(frozen=True)
class NonreturnFloor(SweepMeasure):
    """Share of inputs on which the system withheld by itself: no threshold goes below it. Lower gives more choice.

    The curve starts at this non-return rate, x0, instead of 0. Reference: Artstein (2011), section 3.

    >>> NonreturnFloor().finish(Sweep.of([0.9, 0.4], [True, False], withheld=2)).item()
    0.5
    """

    name: ClassVar = "nonreturn_floor"
    title: ClassVar = "share withheld by the system itself"
    better: ClassVar = "lower"
    reference: ClassVar = "Artstein (2011), section 3"
    proportion: ClassVar = True

    def finish(self, totals: Sweep) -> Array:
        """Withheld rows over all inputs."""
        return np.asarray(totals.withheld / totals.total)


@dataclass(frozen=True)
class AUGRC(SweepMeasure):
    """Area under the error-return curve: the mean error rate over all non-return rates. Lower is better.

    0 when every answer is right, 0.5 when every answer is wrong; a system that ranks at random has err/2, an oracle
    err^2/2. It equals the sum over errors of (rank - 1/2) / N^2, with mid-ranks for ties, counted from the least
    confident. Where the system withholds by itself the area runs over [x0, 1].
    Reference: Traub et al. (2024), generalised risk; the curve is that of Artstein (2011).

    >>> AUGRC().finish(Sweep.of([0.9, 0.8, 0.5, 0.1], [True, True, False, False])).item()
    0.125
    """

    name: ClassVar = "augrc"
    title: ClassVar = "area under the error-return curve (AUGRC)"
    better: ClassVar = "lower"
    reference: ClassVar = "Traub et al. (2024); Artstein (2011), section 3"

    def finish(self, totals: Sweep) -> Array:
        """Trapezoid over the cutoffs, which is exact because the curve is straight between them."""
        at_level = (totals.right + totals.wrong).astype(np.float64)
        return np.asarray((at_level * _mean_height(totals)).sum(axis=-1) / np.square(totals.total))


@dataclass(frozen=True)
class AURC(SweepMeasure):
    """Area under selective risk over coverage. Lower is better; the convention is part of the name.

    `trapezoid` joins the risks at the cutoffs that the system really has by straight lines, and holds the first one
    down to coverage 0. `mean` averages the expected risk of returning the k most confident answers over k, with ties
    in random order. Libraries differ here: state the convention. The default is `trapezoid`, since it reads the
    plotted curve. Where the system withholds by itself the area runs over coverage [0, 1 - x0].
    Reference: Geifman and El-Yaniv (2017).

    >>> sweep = Sweep.of([0.9, 0.8], [True, False])
    >>> AURC().finish(sweep).item(), AURC("mean").finish(sweep).item()
    (0.125, 0.25)
    """

    convention: Convention = "trapezoid"

    name: ClassVar = "aurc"
    title: ClassVar = "area under selective risk over coverage (AURC)"
    better: ClassVar = "lower"
    reference: ClassVar = "Geifman and El-Yaniv (2017)"

    def __post_init__(self) -> None:
        _check_convention(self.convention)

    def finish(self, totals: Sweep) -> Array:
        """The area under the named convention; undefined when nothing was answered."""
        returned, errors = totals.from_the_top
        return _aurc(returned, errors, totals.total, self.convention)

    def why_undefined(self, totals: Sweep) -> str:
        """No answers, no risk."""
        return "nothing was answered, so there is no risk to average"


@dataclass(frozen=True)
class EAURC(SweepMeasure):
    """AURC above that of an oracle with the same error rate. 0 is a perfect ranking; lower is better.

    The oracle is read where the convention reads the system: at the system's own cutoffs (`trapezoid`) or at every
    count (`mean`), so the value is never below 0, ties or not. Reference: Geifman et al. (2019).

    >>> EAURC().finish(Sweep.of([0.9, 0.8, 0.7], [True, True, False])).item()
    0.0
    """

    convention: Convention = "trapezoid"

    name: ClassVar = "e_aurc"
    title: ClassVar = "excess AURC over the oracle (e-AURC)"
    better: ClassVar = "lower"
    reference: ClassVar = "Geifman et al. (2019)"

    def __post_init__(self) -> None:
        _check_convention(self.convention)

    def finish(self, totals: Sweep) -> Array:
        """AURC less the oracle's."""
        returned, errors = totals.from_the_top
        right = (totals.answered - totals.errors)[..., None]
        if self.convention == "trapezoid":
            oracle = _aurc(returned, np.maximum(returned - right, 0.0), totals.total, "trapezoid")
        else:
            oracle = _oracle_mean_risk(totals)
        return np.asarray(np.maximum(_aurc(returned, errors, totals.total, self.convention) - oracle, 0.0))

    def why_undefined(self, totals: Sweep) -> str:
        """No answers, no risk."""
        return "nothing was answered, so there is no risk to average"


@dataclass(frozen=True)
class AUROC(SweepMeasure):
    """Probability that a right answer has a higher confidence than a wrong one, ties half. Higher is better.

    0.5 is no better than chance. It says nothing of how many errors there are: the same value goes with any error
    rate. Reference: Artstein (2011), section 2, for the caution.

    >>> AUROC().finish(Sweep.of([0.9, 0.8, 0.8, 0.1], [True, True, False, False])).item()
    0.875
    """

    name: ClassVar = "auroc"
    title: ClassVar = "AUROC of confidence for correctness"
    better: ClassVar = "higher"
    reference: ClassVar = "Artstein (2011), section 2"

    def finish(self, totals: Sweep) -> Array:
        """Mann-Whitney count over the tied levels, divided by the number of pairs."""
        wrong_below = np.cumsum(totals.wrong, axis=-1, dtype=np.float64) - totals.wrong / 2
        pairs = totals.errors * (totals.answered - totals.errors)
        return ratio((totals.right * wrong_below).sum(axis=-1), pairs)

    def why_undefined(self, totals: Sweep) -> str:
        """It needs answers of both kinds."""
        return "every answer is right" if float(totals.errors) == 0 else "no answer is right"


@dataclass(frozen=True)
class RankingSkill(SweepMeasure):
    """How much of the way from a random to a perfect ranking the confidences go: 1 oracle, 0 random. Higher is better.

    (A_random - A) / (A_random - A_oracle) of the areas under the error-return curve; with x0 = 0 it is 2 AUROC - 1.
    Negative where wrong answers are the more confident ones.

    >>> RankingSkill().finish(Sweep.of([0.9, 0.8, 0.8, 0.1], [True, True, False, False])).item()
    0.75
    """

    name: ClassVar = "ranking_skill"
    title: ClassVar = "ranking skill"
    better: ClassVar = "higher"
    reference: ClassVar = "Artstein (2011), section 3, for the curve"

    def finish(self, totals: Sweep) -> Array:
        """Position of the area between those of the random and the oracle ranking."""
        error, reach = totals.errors / totals.total, totals.answered / totals.total
        random, oracle = error * reach / 2, np.square(error) / 2
        return ratio(random - AUGRC().finish(totals), random - oracle)

    def why_undefined(self, totals: Sweep) -> str:
        """It needs answers of both kinds."""
        return AUROC().why_undefined(totals) + ", so every ranking is as good"


@dataclass(frozen=True)
class ErrorAtNonreturn(SweepMeasure):
    """Error rate at a non-return rate x, or its mean over x to `to`. Lower is better.

    Read off the curve between cutoffs, where it is a straight line. The default, 0.2, is the critical region of short
    question-answer dialogue, "about 1 in 5". Reference: Artstein (2011), section 5.

    >>> ErrorAtNonreturn(x=0.25).finish(Sweep.of([0.9, 0.8, 0.5, 0.1], [True, True, False, False])).item()
    0.25
    """

    x: float = 0.2
    to: float | None = None

    name: ClassVar = "error_at_nonreturn"
    title: ClassVar = "error rate at a non-return rate"
    better: ClassVar = "lower"
    reference: ClassVar = "Artstein (2011), section 5"
    proportion: ClassVar = True

    def __post_init__(self) -> None:
        end = self.x if self.to is None else self.to
        if not 0 <= self.x <= end <= 1:
            raise UsageError(f"a non-return rate lies in [0, 1] and a range rises; got {self.x} to {end}")

    def finish(self, totals: Sweep) -> Array:
        """The curve at x; undefined left of where the curve starts."""
        if self.to is None or self.to == self.x:
            heights = curve_at(totals, np.array([self.x]))[..., 0]
        else:
            heights = _mean_over(totals, self.x, self.to)
        floor = totals.withheld / totals.total
        return np.where(self.x >= floor - 1e-12, heights, np.nan)

    def why_undefined(self, totals: Sweep) -> str:
        """The system withholds more than x by itself."""
        return f"the system itself withholds {totals.withheld / totals.total:.4g} of the inputs, more than {self.x:g}"


@dataclass(frozen=True)
class NonreturnAtError(SweepMeasure):
    """Non-return rate needed to bring the error rate down to `error`. Lower is better.

    The smallest x at which the curve is at or below the error rate; the default, 0.05, is a common promise.
    Reference: Artstein (2011), section 3.

    >>> NonreturnAtError(error=0.25).finish(Sweep.of([0.9, 0.8, 0.5, 0.1], [True, True, False, False])).item()
    0.25
    """

    error: float = 0.05

    name: ClassVar = "nonreturn_at_error"
    title: ClassVar = "non-return rate needed for an error rate"
    better: ClassVar = "lower"
    reference: ClassVar = "Artstein (2011), section 3"

    def __post_init__(self) -> None:
        if not 0 <= self.error <= 1:
            raise UsageError(f"an error rate lies in [0, 1]; got {self.error}")

    def finish(self, totals: Sweep) -> Array:
        """The inverse reading of the curve."""
        x, y = totals.rates
        flat_x, flat_y = x.reshape(-1, x.shape[-1]), y.reshape(-1, y.shape[-1])
        found = [_first_at_or_below(xs, ys, self.error) for xs, ys in zip(flat_x, flat_y, strict=True)]
        return np.array(found).reshape(x.shape[:-1])


@dataclass(frozen=True)
class QALDPrecision(SweepMeasure):
    """Right answers / answers returned, at a threshold (QALD-1). Higher is better.

    The default threshold returns every answer. Undefined when nothing is returned.
    Reference: Artstein (2011), section 1, on the QALD-1 challenge.

    >>> QALDPrecision(threshold=0.5).finish(Sweep.of([0.9, 0.8, 0.5, 0.1], [True, True, False, False])).round(4).item()
    0.6667
    """

    threshold: float = float("-inf")

    name: ClassVar = "qald_precision"
    title: ClassVar = "QALD-1 precision (right / returned)"
    better: ClassVar = "higher"
    reference: ClassVar = "Artstein (2011), section 1"

    def finish(self, totals: Sweep) -> Array:
        """Right over returned."""
        kept = totals.threshold >= self.threshold
        right = totals.right[..., kept].sum(axis=-1, dtype=np.float64)
        return ratio(right, right + totals.wrong[..., kept].sum(axis=-1, dtype=np.float64))

    def why_undefined(self, totals: Sweep) -> str:
        """Nothing returned."""
        return f"nothing is returned at the threshold {self.threshold:g}"


@dataclass(frozen=True)
class QALDRecall(SweepMeasure):
    """Right answers returned / all inputs, at a threshold (QALD-1's "recall", really accuracy). Higher is better.

    The default threshold returns every answer. Reference: Artstein (2011), section 1, on the QALD-1 challenge.

    >>> QALDRecall(threshold=0.5).finish(Sweep.of([0.9, 0.8, 0.5, 0.1], [True, True, False, False])).item()
    0.5
    """

    threshold: float = float("-inf")

    name: ClassVar = "qald_recall"
    title: ClassVar = "QALD-1 recall (right / all inputs)"
    better: ClassVar = "higher"
    reference: ClassVar = "Artstein (2011), section 1"
    proportion: ClassVar = True

    def finish(self, totals: Sweep) -> Array:
        """Right and returned over all inputs."""
        kept = totals.threshold >= self.threshold
        return np.asarray(totals.right[..., kept].sum(axis=-1, dtype=np.float64) / totals.total)


def curve_at(sweep: Sweep, x: Array) -> Array:
    """Error rate at each non-return rate of `x`; left of the curve's start its first value."""
    nonreturn, error = sweep.rates
    if nonreturn.ndim == 1:
        return np.interp(x, nonreturn, error)
    return np.stack([np.interp(x, xs, ys) for xs, ys in zip(nonreturn, error, strict=True)])


def _mean_over(sweep: Sweep, start: float, stop: float) -> Array:
    """Mean height of the curve over [start, stop], exactly: its corners and the two ends, by trapezoid."""
    nonreturn, error = sweep.rates
    flat_x, flat_y = (part.reshape(-1, part.shape[-1]) for part in (nonreturn, error))
    means = []
    for xs, ys in zip(flat_x, flat_y, strict=True):
        corners = np.concatenate([[start], xs[(xs > start) & (xs < stop)], [stop]])
        means.append(np.trapezoid(np.interp(corners, xs, ys), corners) / (stop - start))
    return np.array(means).reshape(nonreturn.shape[:-1])


def _first_at_or_below(x: Array, y: Array, level: float) -> float:
    place = int(np.argmax(y <= level))
    if place == 0:
        return float(x[0])
    rise = (y[place - 1] - level) / (y[place - 1] - y[place])
    return float(x[place - 1] + rise * (x[place] - x[place - 1]))


def _mean_height(sweep: Sweep) -> Array:
    """Errors returned halfway through each level."""
    through = np.cumsum(sweep.wrong, axis=-1, dtype=np.float64)
    return np.asarray(through[..., -1:] - through + sweep.wrong / 2)


def _aurc(returned: Array, errors: Array, total: Any, convention: Convention) -> Array:
    if returned.shape[-1] == 0:
        return np.full(returned.shape[:-1], np.nan)
    if convention == "trapezoid":
        risk = np.divide(errors, returned, out=np.zeros_like(errors), where=returned > 0)
        before = np.concatenate([risk[..., :1], risk[..., :-1]], axis=-1)
        width = np.diff(returned, axis=-1, prepend=0.0)
        area = (width * (risk + before) / 2).sum(axis=-1)
    else:
        area = _expected_risks(returned, errors).sum(axis=-1)
    return np.where(returned[..., -1] > 0, area / total, np.nan)


def _expected_risks(returned: Array, errors: Array) -> Array:
    """Sum, over the counts k inside each level, of the expected risk of returning the k most confident.

    Inside a level of m answers with w errors, after a answers with E errors, the risk at k is (E + (k-a) w/m) / k;
    summed over k = a+1 .. a+m this is m w/m + (E - a w/m)(H(a+m) - H(a)), H the harmonic numbers.
    """
    start, errors_before = (
        np.concatenate([np.zeros((*part.shape[:-1], 1)), part[..., :-1]], axis=-1) for part in (returned, errors)
    )
    size, wrong = returned - start, errors - errors_before
    rate = np.divide(wrong, size, out=np.zeros_like(wrong), where=size > 0)
    harmonic = digamma(returned + 1) - digamma(start + 1)
    return np.asarray(wrong + (errors_before - start * rate) * harmonic)


def _oracle_mean_risk(sweep: Sweep) -> Array:
    right, wrong = sweep.answered - sweep.errors, sweep.errors
    return np.asarray((wrong - right * (digamma(right + wrong + 1) - digamma(right + 1))) / sweep.total)


def _check_convention(convention: str) -> None:
    if convention not in ("trapezoid", "mean"):
        raise UsageError(f'AURC has the conventions "trapezoid" and "mean"; got "{convention}"')
