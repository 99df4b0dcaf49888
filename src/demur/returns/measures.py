"""Measures of the error-return family (Artstein 2011): rates, areas, ranking, and the standard error of the area."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from demur.core.arrays import Array
from demur.core.show.numbers import percent
from demur.core.stats.calibration import ECE, NCE, Brier, DebiasedECE, EqualMassECE
from demur.core.stats.intervals import student_p, student_quantile
from demur.core.stats.measure import Measure, SweepMeasure, TermMeasure
from demur.core.stats.resampling import Sample, UnitSpread
from demur.core.stats.sweep import RATE_ROUNDING, Sweep, Ties, ratio
from demur.errors import UsageError


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
    interval: ClassVar = "share"

    def finish(self, totals: Sweep) -> Array:
        """Wrong answers over all inputs."""
        return ratio(totals.errors, totals.total)


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
    interval: ClassVar = "share"

    def finish(self, totals: Sweep) -> Array:
        """Withheld rows over all inputs."""
        return ratio(totals.withheld, totals.total)


@dataclass(frozen=True)
class ErrorAtNonreturn(SweepMeasure):
    """Error rate when at most a share x of the inputs is withheld, or its mean over x to `to`. Lower is better.

    Answers of one confidence go together, so a share may be out of reach: the value is that of the cutoff which
    withholds most without going beyond x, and its interval is that of the error rate at this threshold. With `ties`
    "randomise" it is read off the straight line between the two cutoffs around x, which is what returning each of the
    tied answers with one probability would give. The default, 0.2, is the critical region of short question-answer
    dialogue, "about 1 in 5". Reference: Artstein (2011), section 5.

    >>> sweep = Sweep.of([0.9, 0.8, 0.5, 0.5], [True, True, False, False])
    >>> ErrorAtNonreturn(x=0.25).finish(sweep).item(), ErrorAtNonreturn(x=0.25, ties="randomise").finish(sweep).item()
    (0.5, 0.25)
    """

    x: float = 0.2
    to: float | None = None
    ties: Ties = "together"

    name: ClassVar = "error_at_nonreturn"
    title: ClassVar = "error rate at a non-return rate"
    better: ClassVar = "lower"
    reference: ClassVar = "Artstein (2011), section 5"
    interval: ClassVar = "height"

    def __post_init__(self) -> None:
        end = self.x if self.to is None else self.to
        if not 0 <= self.x <= end <= 1:
            got = f"{self.x:g}" if self.to is None else f"{self.x:g} to {end:g}"
            raise UsageError(f"at_nonreturn takes a rate within [0, 1], such as 0.2, or a rising range; got {got}")

    def finish(self, totals: Sweep) -> Array:
        """The curve at x; undefined left of where the curve starts."""
        if self.to is None or self.to == self.x:
            randomised = self.ties == "randomise"
            heights = curve_at(totals, np.array([self.x]))[..., 0] if randomised else _height_at_cutoff(totals, self.x)
        else:
            mean = _mean_height if self.ties == "randomise" else _mean_step
            heights = _each_curve(totals, partial(mean, start=self.x, stop=self.to))
        floor = np.nan_to_num(ratio(totals.withheld, totals.total), nan=np.inf)
        return np.where(self.x >= floor - 1e-12, heights, np.nan)

    def settled(self, totals: Sweep) -> Measure:
        """The error rate at the threshold that x leads to in these rows; a mean, or a mixture, stays itself."""
        place = int(cutoff_at_nonreturn(totals.rates[0], self.x))
        if self.ties == "randomise" or place < 0 or (self.to is not None and self.to > self.x):
            return self
        return ErrorAtThreshold(threshold=float(np.append(totals.threshold, np.nan)[place]))

    def why_undefined(self, totals: Sweep) -> str:
        """The system withholds more than x by itself."""
        floor = float(totals.withheld / totals.total)
        return f"the system itself withholds {percent(floor)} of the inputs, more than {percent(self.x)}"


@dataclass(frozen=True)
class NonreturnAtError(SweepMeasure):
    """Non-return rate needed to bring the error rate down to `error`. Lower is better.

    That of the first cutoff whose error rate is at or below the limit; with `ties` "randomise" the smallest x at which
    the straight line between cutoffs is. The default, 0.05, is a common promise. Reference: Artstein (2011), section 3.

    >>> sweep = Sweep.of([0.9, 0.8, 0.5, 0.5], [True, True, False, False])
    >>> NonreturnAtError(error=0.25).finish(sweep).item(), NonreturnAtError(0.25, "randomise").finish(sweep).item()
    (0.5, 0.25)
    """

    error: float = 0.05
    ties: Ties = "together"

    name: ClassVar = "nonreturn_at_error"
    title: ClassVar = "non-return rate needed for an error rate"
    better: ClassVar = "lower"
    reference: ClassVar = "Artstein (2011), section 3"
    interval: ClassVar = "inverse"

    def __post_init__(self) -> None:
        if not 0 <= self.error <= 1:
            raise UsageError(f"a limit on the error rate lies in [0, 1], such as 0.05 for 5 %; got {self.error:g}")

    def finish(self, totals: Sweep) -> Array:
        """The inverse reading of the curve."""
        x, y = totals.rates
        place = cutoff_for_error(y, self.error)[..., None]
        reached = np.take_along_axis(x, place, axis=-1)[..., 0]
        if self.ties == "together":
            return reached
        before = np.maximum(place - 1, 0)
        left, high, low = (
            np.take_along_axis(part, at, axis=-1)[..., 0] for part, at in ((x, before), (y, before), (y, place))
        )
        share = np.nan_to_num(ratio(high - self.error, high - low), nan=0.0)
        return np.asarray(left + np.clip(share, 0.0, 1.0) * (reached - left))


def cutoff_at_nonreturn(nonreturn: Array, x: float) -> NDArray[np.int64]:
    """Place of the cutoff that withholds most without going beyond `x`; -1 where the system itself withholds more.

    >>> cutoff_at_nonreturn(np.array([0.1, 0.3, 1.0]), 0.5).item()
    1
    """
    return np.asarray(np.count_nonzero(nonreturn <= x + RATE_ROUNDING, axis=-1) - 1)


def cutoff_for_error(error: Array, most: float) -> NDArray[np.int64]:
    """Place of the first cutoff whose error rate is at most `most`; the last one returns nothing.

    >>> cutoff_for_error(np.array([0.4, 0.1, 0.0]), 0.2).item()
    1
    """
    return np.asarray(np.count_nonzero(error > most + RATE_ROUNDING, axis=-1))


@dataclass(frozen=True)
class _AtThreshold(SweepMeasure):
    """A share of the answers returned at a threshold; the default returns every answer."""

    threshold: float = float("-inf")

    better: ClassVar[Literal["lower", "higher"]] = "higher"
    reference: ClassVar = "Artstein (2011), section 1"
    interval: ClassVar = "share"

    def _returned(self, totals: Sweep) -> tuple[Array, Array]:
        """Right and wrong answers at or above the threshold."""
        first = int(np.searchsorted(totals.threshold, self.threshold))
        right, wrong = (part[..., first:].sum(axis=-1, dtype=np.float64) for part in (totals.right, totals.wrong))
        return right, wrong


@dataclass(frozen=True)
class ErrorAtThreshold(_AtThreshold):
    """Wrong answers returned / all inputs, at a threshold. Lower is better.

    The default threshold returns every answer. Reference: Artstein (2011), section 3.

    >>> ErrorAtThreshold(threshold=0.5).finish(Sweep.of([0.9, 0.8, 0.5, 0.1], [True, True, False, False])).item()
    0.25
    """

    name: ClassVar = "error_at_threshold"
    title: ClassVar = "error rate at a threshold"
    better: ClassVar = "lower"
    reference: ClassVar = "Artstein (2011), section 3"

    def finish(self, totals: Sweep) -> Array:
        """Wrong and returned over all inputs."""
        return ratio(self._returned(totals)[1], totals.total)


@dataclass(frozen=True)
class RiskAtThreshold(_AtThreshold):
    """Wrong answers returned / answers returned, at a threshold: the selective risk. Lower is better.

    The default threshold returns every answer. Reference: Geifman and El-Yaniv (2017).

    >>> RiskAtThreshold(threshold=0.5).finish(Sweep.of([0.9, 0.8, 0.5, 0.1], [1, 0, 1, 0])).round(4).item()
    0.3333
    """

    name: ClassVar = "risk_at_threshold"
    title: ClassVar = "errors among the answers returned at a threshold"
    better: ClassVar = "lower"
    reference: ClassVar = "Geifman and El-Yaniv (2017)"

    def trials(self, totals: Sweep) -> float:
        """The share of rows that are returned."""
        return float(sum(self._returned(totals)) / totals.total)

    def finish(self, totals: Sweep) -> Array:
        """Wrong over returned."""
        right, wrong = self._returned(totals)
        return ratio(wrong, right + wrong)

    def why_undefined(self, totals: Sweep) -> str:
        """Nothing returned."""
        return "nothing is returned"


@dataclass(frozen=True)
class QALDPrecision(_AtThreshold):
    """Right answers / answers returned, at a threshold (QALD-1). Higher is better.

    The default threshold returns every answer. Undefined when nothing is returned.
    Reference: Artstein (2011), section 1, on the QALD-1 challenge.

    >>> QALDPrecision(threshold=0.5).finish(Sweep.of([0.9, 0.8, 0.5, 0.1], [True, True, False, False])).round(4).item()
    0.6667
    """

    name: ClassVar = "qald_precision"
    title: ClassVar = "QALD-1 precision (right / returned)"

    def trials(self, totals: Sweep) -> float:
        """The share of rows that are returned."""
        return float(sum(self._returned(totals)) / totals.total)

    def finish(self, totals: Sweep) -> Array:
        """Right over returned."""
        right, wrong = self._returned(totals)
        return ratio(right, right + wrong)

    def why_undefined(self, totals: Sweep) -> str:
        """Nothing returned."""
        every = math.isinf(self.threshold)
        return "nothing was answered" if every else f"nothing is returned at the threshold {self.threshold:g}"


@dataclass(frozen=True)
class QALDRecall(_AtThreshold):
    """Right answers returned / all inputs, at a threshold (QALD-1's "recall", really accuracy). Higher is better.

    The default threshold returns every answer. Reference: Artstein (2011), section 1, on the QALD-1 challenge.

    >>> QALDRecall(threshold=0.5).finish(Sweep.of([0.9, 0.8, 0.5, 0.1], [True, True, False, False])).item()
    0.5
    """

    name: ClassVar = "qald_recall"
    title: ClassVar = "QALD-1 recall (right / all inputs)"

    def finish(self, totals: Sweep) -> Array:
        """Right and returned over all inputs."""
        return ratio(self._returned(totals)[0], totals.total)


def curve_at(sweep: Sweep, x: Array) -> Array:
    """Error rate at each non-return rate of `x`; left of the curve's start its first value."""
    nonreturn, error = sweep.rates
    if nonreturn.ndim == 1:
        return np.interp(x, nonreturn, error)
    return np.stack([np.interp(x, xs, ys) for xs, ys in zip(nonreturn, error, strict=True)])


def _each_curve(sweep: Sweep, read: Callable[[Array, Array], float]) -> Array:
    """A number read from the curve of the sweep, or from that of each replicate."""
    x, y = sweep.rates
    curves = zip(x.reshape(-1, x.shape[-1]), y.reshape(-1, y.shape[-1]), strict=True)
    return np.array([read(xs, ys) for xs, ys in curves]).reshape(x.shape[:-1])


def _height_at_cutoff(sweep: Sweep, at: float) -> Array:
    """Error rate at the cutoff that withholds most without going beyond `at`, of each replicate."""
    nonreturn, error = sweep.rates
    place = np.maximum(cutoff_at_nonreturn(nonreturn, at), 0)[..., None]
    return np.asarray(np.take_along_axis(error, place, axis=-1)[..., 0])


def _mean_step(x: Array, y: Array, *, start: float, stop: float) -> float:
    """Mean over [start, stop] of the error rate at the last cutoff that withholds no more, exactly."""
    widths = np.diff(np.clip(np.append(x, 1.0), start, stop))
    return float((widths * y).sum() / (stop - start))


def _mean_height(x: Array, y: Array, *, start: float, stop: float) -> float:
    """Mean height of a curve over [start, stop], exactly: its vertices and the two ends, by trapezoid."""
    vertices = np.concatenate([[start], x[(x > start) & (x < stop)], [stop]])
    return float(np.trapezoid(np.interp(vertices, x, y), vertices) / (stop - start))


Convention = Literal["mean", "trapezoid"]


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
    interval: ClassVar = "area"

    def finish(self, totals: Sweep) -> Array:
        """Trapezoid over the cutoffs, which is exact because the curve is straight between them."""
        at_level = np.add(totals.right, totals.wrong, dtype=np.float64)
        at_level *= totals.errors[..., None] - totals.wrong_below  # errors returned halfway through each level
        area = ratio(at_level.sum(axis=-1), np.square(totals.total))
        return np.where(totals.answered > 0, area, np.nan)

    def why_undefined(self, totals: Sweep) -> str:
        """No answers, no curve."""
        return "nothing was answered, so there is no curve"


@dataclass(frozen=True)
class AURC(SweepMeasure):
    """Area under selective risk over coverage. Lower is better; the convention is part of the name.

    `mean` averages the expected risk of returning the k most confident answers over k = 1 .. N, ties in random order:
    what a user who returns part of a heap of equal confidences can expect. `trapezoid` joins the risks at the system's
    own cutoffs by straight lines, and holds the first one down to coverage 0; it is there to compare with papers that
    use it. The default is `mean`: `trapezoid` rewards a system for tying its answers, down to a constant confidence
    whose e-AURC it calls perfect. Whole weights count as repeated rows, others are first scaled to average 1.
    Where the system withholds by itself the area runs over coverage [0, 1 - x0].
    Reference: Geifman and El-Yaniv (2017).

    >>> sweep = Sweep.of([0.9, 0.8], [True, False])
    >>> AURC().finish(sweep).round(4).item(), AURC("trapezoid").finish(sweep).item()
    (0.25, 0.125)
    """

    convention: Convention = "mean"

    name: ClassVar = "aurc"
    title: ClassVar = "area under selective risk over coverage (AURC)"
    better: ClassVar = "lower"
    reference: ClassVar = "Geifman and El-Yaniv (2017)"
    interval: ClassVar = "risk"

    def __post_init__(self) -> None:
        if self.convention not in ("mean", "trapezoid"):
            raise UsageError(f'AURC has the conventions "mean" and "trapezoid"; got "{self.convention}"')

    def finish(self, totals: Sweep) -> Array:
        """The area under the named convention; undefined when nothing was answered."""
        if self.convention == "trapezoid":
            return _trapezoid_aurc(*totals.from_the_top, totals.total)
        counted = totals.counted
        return _mean_aurc(*counted.from_the_top, counted.total)

    def why_undefined(self, totals: Sweep) -> str:
        """No answers, no risk."""
        return "nothing was answered, so there is no risk to average"


@dataclass(frozen=True)
class EAURC(AURC):
    """AURC above that of an oracle with the same error rate. 0 is a perfect ranking; lower is better.

    The oracle of `mean` ranks every right answer above every wrong one, without ties, so ties cost what a random order
    of them costs, and a constant confidence has the e-AURC of a ranking at random. The oracle of `trapezoid` is read at
    the system's own cutoffs. The value is never below 0. Reference: Geifman et al. (2019).

    >>> EAURC().finish(Sweep.of([0.9, 0.8, 0.7], [True, True, False])).round(4).item()
    0.0
    >>> EAURC().finish(Sweep.of([0.9, 0.9, 0.9], [True, True, False])).round(4).item()
    0.2222
    """

    name: ClassVar = "e_aurc"
    title: ClassVar = "excess AURC over the oracle (e-AURC)"
    reference: ClassVar = "Geifman et al. (2019)"

    def finish(self, totals: Sweep) -> Array:
        """AURC less the oracle's."""
        if self.convention == "trapezoid":
            returned, right = totals.from_the_top[0], totals.answered - totals.errors
            oracle = _trapezoid_aurc(returned, np.maximum(returned - right[..., None], 0.0), totals.total)
        else:
            counted = totals.counted
            returned = np.stack([counted.answered - counted.errors, counted.answered], axis=-1)
            oracle = _mean_aurc(returned, returned - returned[..., :1], counted.total)
        return np.asarray(np.maximum(AURC(self.convention).value_of(totals) - oracle, 0.0))


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
    interval: ClassVar = "ranking"

    def finish(self, totals: Sweep) -> Array:
        """Mann-Whitney count over the tied levels, divided by the number of pairs."""
        pairs = totals.errors * (totals.answered - totals.errors)
        return ratio((totals.right * totals.wrong_below).sum(axis=-1), pairs)

    def why_undefined(self, totals: Sweep) -> str:
        """It needs answers of both kinds."""
        if float(totals.answered) == 0:
            return "nothing was answered"
        return "every answer is right" if float(totals.errors) == 0 else "no answer is right"


@dataclass(frozen=True)
class RankingSkill(SweepMeasure):
    """How well confidences rank answers: 0 random, 1 perfect. Higher is better.

    (A_random - A) / (A_random - A_oracle) of the areas under the error-return curve; with x0 = 0 it is 2 AUROC - 1.
    Negative where wrong answers are the more confident ones.

    >>> RankingSkill().finish(Sweep.of([0.9, 0.8, 0.8, 0.1], [True, True, False, False])).item()
    0.75
    """

    name: ClassVar = "ranking_skill"
    title: ClassVar = "ranking skill"
    better: ClassVar = "higher"
    reference: ClassVar = "Artstein (2011), section 3, for the curve"
    interval: ClassVar = "ranking"
    bottom: ClassVar = -1.0

    def finish(self, totals: Sweep) -> Array:
        """Position of the area between those of the random and the oracle ranking."""
        error, reach = ratio(totals.errors, totals.total), ratio(totals.answered, totals.total)
        random, oracle = error * reach / 2, np.square(error) / 2
        return ratio(random - AUGRC().value_of(totals), random - oracle)

    def why_undefined(self, totals: Sweep) -> str:
        """It needs answers of both kinds."""
        return AUROC().why_undefined(totals) + ", so every ranking is as good"


COUNTS_AT_ONCE, LEAST_AT_ONCE = 1 << 15, 64
"""Counts of answers that are worked on at a time: few enough that they stay in the processor's cache."""


def _trapezoid_aurc(returned: Array, errors: Array, total: Any) -> Array:
    risk = np.divide(errors, returned, out=np.zeros_like(errors), where=returned > 0)
    before = risk.copy()  # the first risk is held down to coverage 0, past levels that a replicate left empty
    np.copyto(before[..., 1:], risk[..., :-1], where=returned[..., :-1] > 0)
    width = np.diff(returned, axis=-1, prepend=0.0)
    return _per_input((width * (risk + before) / 2).sum(axis=-1), returned, total)


def _mean_aurc(returned: Array, errors: Array, total: Any) -> Array:
    """The risks of returning the k most confident answers, summed over k and divided by the number of inputs.

    Inside a level of m answers with w errors, after a answers with E errors, the expected risk at k is
    (E + (k-a) w/m) / k; summed over k = a+1 .. a+m this is w + (E - a w/m)(H(a+m) - H(a)), H the harmonic numbers.
    """
    risks = np.empty_like(returned)
    width = max(LEAST_AT_ONCE, COUNTS_AT_ONCE // max(1, math.prod(returned.shape[:-1])))
    last = [np.zeros((*returned.shape[:-1], 1))] * 3
    for start in range(0, returned.shape[-1], width):
        part = np.s_[..., start : start + width]
        counts = (returned[part], errors[part], harmonic(returned[part]))
        a, e, h = (np.concatenate([end, one[..., :-1]], axis=-1) for end, one in zip(last, counts, strict=True))
        wrong = counts[1] - e
        rate = np.divide(wrong, counts[0] - a, out=np.zeros_like(wrong), where=counts[0] > a)
        risks[part] = wrong + (e - a * rate) * (counts[2] - h)
        last = [one[..., -1:] for one in counts]
    return _per_input(risks.sum(axis=-1), returned, total)


def _per_input(area: Array, returned: Array, total: Any) -> Array:
    """An area over counts as one over coverage; undefined where nothing was answered."""
    answered = returned[..., -1] > 0 if returned.shape[-1] else np.zeros(returned.shape[:-1], np.bool_)
    return np.where(answered, ratio(area, total), np.nan)


_SERIES_FROM = 16.0
_SERIES = (1 / 24, -7 / 960, 31 / 8064, -127 / 30720)
"""H(x) - γ = log(x + 1/2) + Σ c / (x + 1/2)^2j, to 15 digits from 16 on; loading SciPy takes longer than this."""


def harmonic(count: Array) -> Array:
    """The sums 1 + 1/2 + ... + 1/x, continued to counts x >= 0 that are not whole (the digamma function).

    >>> harmonic(np.array([1.0, 4.0, 100.0])).round(6).tolist()
    [1.0, 2.083333, 5.187378]
    """
    middle = count + 0.5
    low = count < _SERIES_FROM
    middle[low] += _SERIES_FROM
    inverse = 1 / np.square(middle)
    series = np.zeros_like(inverse)
    for coefficient in reversed(_SERIES):
        series += coefficient
        series *= inverse
    series += np.log(middle)
    series += np.euler_gamma
    small = count[low]
    series[low] -= sum(1 / (small + step) for step in range(1, int(_SERIES_FROM) + 1))
    return np.asarray(series)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its standard error and the degrees of freedom behind it."""

    value: float
    error: float
    freedom: int

    @classmethod
    def of_units(cls, value: float, pulls: Array, freedom: int | None = None) -> Estimate:
        """A value with the spread of what each unit adds to it."""
        return cls.of_spread(value, UnitSpread.of(pulls), freedom)

    @classmethod
    def of_spread(cls, value: float, spread: UnitSpread, freedom: int | None = None) -> Estimate:
        """A value with the spread of its units."""
        squares, units = spread
        if units < 2:
            return cls(value, float("nan"), 1)
        return cls(value, float(np.sqrt(squares * units / (units - 1))), units - 1 if freedom is None else freedom)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The value plus and minus Student's t times the standard error."""
        reach = student_quantile(self.freedom, (1 + level) / 2) * self.error
        return self.value - reach, self.value + reach

    @property
    def p(self) -> float:
        """Two-sided p-value of the value being 0."""
        if self.error == 0:
            return 1.0 if self.value == 0 else 0.0
        return student_p(self.value, self.error, self.freedom)

    @property
    def p_below(self) -> float:
        """One-sided p-value against the value being 0 or above."""
        return self.p / 2 if self.value < 0 else 1 - self.p / 2


def area_from(sweep: Sweep, start: float) -> float:
    """Area under the error-return curve from the non-return rate `start` to 1."""
    x, y = sweep.rates
    first = int(np.searchsorted(x, start, side="right"))
    height = np.interp(start, x, y)
    return float(np.trapezoid(np.append(height, y[first:]), np.append(start, x[first:])))


def augrc_estimate(sample: Sample) -> Estimate:
    """AUGRC at the levels of the replicates, with its closed-form standard error."""
    whole = sample.coarse
    floor = float(whole.withheld / whole.total)
    influence = area_influence(whole, floor, moving_start=True)
    area, n = area_from(whole, floor), whole.n
    if not sample.alike:
        return Estimate.of_units(area, sample.pulls(influence))
    if n < 2:
        return Estimate(area, float("nan"), 1)
    right, wrong, withheld = np.split(influence, [whole.right.size, influence.size - 1])
    parts = ((whole.right, right), (whole.wrong, wrong), (whole.withheld, withheld))
    mean = sum(float(np.sum(count * value)) for count, value in parts) / n
    squares = sum(float(np.sum(count * np.square(value - mean))) for count, value in parts)
    return Estimate(area, float(np.sqrt(squares / (n - 1) / n)), n - 1)


def area_influence(sweep: Sweep, start: float, *, moving_start: bool) -> Array:
    """What a row adds to the area: e (x - start) + y(x) - 2A - start y(start), x the row's place on the curve.

    The rows of a cell add alike: there is one number for right and for wrong answers at each threshold, then one for
    withheld rows. `moving_start` adds the effect of the row on the start itself, where the area begins at the system's
    own floor.
    """
    x, y = sweep.rates
    at_start = float(np.interp(start, x, y))
    constant = -2 * area_from(sweep, start) - start * at_start
    entry, leave = np.maximum(x[:-1], start), np.maximum(x[1:], start)
    beyond = np.nan_to_num(ratio(leave - entry, np.diff(x)))  # share of a level right of the start, ties in any order
    y_entry, y_leave = np.where(x[:-1] > start, y[:-1], at_start), np.where(x[1:] > start, y[1:], at_start)
    right = (1 - beyond) * at_start + beyond * (y_entry + y_leave) / 2 + constant
    wrong = right + beyond * ((entry + leave) / 2 - start)
    withheld = at_start + constant
    if moving_start:
        floor = float(sweep.withheld / sweep.total)
        right, wrong, withheld = right + at_start * floor, wrong + at_start * floor, withheld - at_start * (1 - floor)
    return np.concatenate([right, wrong, [withheld]])


RETURNS: dict[str, Measure] = {
    measure.name: measure
    for measure in (
        ForcedError(),
        NonreturnFloor(),
        AUGRC(),
        AURC(),
        EAURC(),
        AUROC(),
        RankingSkill(),
        ErrorAtNonreturn(),
        NonreturnAtError(),
        QALDPrecision(),
        QALDRecall(),
        Brier(),
        ECE(),
        DebiasedECE(),
        EqualMassECE(),
        NCE(),
    )
}
"""Measures of answers with confidences, by their key in JSON, tables and gates."""


def term_measures() -> dict[str, TermMeasure]:
    """Those measures of answers that are sums over rows, by their key."""
    return {key: measure for key, measure in RETURNS.items() if isinstance(measure, TermMeasure)}
