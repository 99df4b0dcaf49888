"""Do confidences mean what they say? Brier score, calibration error, normalised cross entropy, reliability, tests."""

from __future__ import annotations

import math
from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from demur.core.arrays import Array
from demur.core.show.results import plain
from demur.core.stats.intervals import normal_tail, student, student_p
from demur.core.stats.measure import SweepMeasure, TermMeasure
from demur.core.stats.sweep import Sweep, ratio, spans
from demur.errors import UsageError

if TYPE_CHECKING:
    from demur.core.stats.resampling import Sample

ROUNDING = 1e-6
"""How far outside [0, 1] a confidence may lie and still count as 0 or 1: rounding, also that of single precision."""

_OUTSIDE = "most confidences lie outside [0, 1], so they are no probabilities and calibration has no meaning"
_NONE_INSIDE = "no confidence lies in [0, 1], so there are no probabilities that could be calibrated"
_LOGARITHMS = "confidences are 0 or outside [0, 1], as logarithms are, so they are no probabilities"
_NOTHING = "nothing was answered"

ROUNDS = 1000
"""Logs that are drawn for the bars of a reliability diagram."""


def are_probabilities(inside: Array, outside: Array, stated: Array) -> Array:
    """Whether confidences are probabilities, but for a few that lie outside [0, 1], by the weight of their answers.

    `stated` is the sum of the confidences inside. It is 0 where logarithms of probabilities are read as probabilities.
    """
    return np.asarray((inside > 0) & (outside <= inside) & ((outside == 0) | (stated > 0)))


def _why_not(inside: float, outside: float, stated: float) -> str | None:
    """Why confidences are no probabilities; None where they are."""
    if not inside + outside > 0:
        return _NOTHING
    if bool(are_probabilities(*map(np.asarray, (inside, outside, stated)))):
        return None
    if not inside > 0:
        return _NONE_INSIDE
    return _LOGARITHMS if 0 < outside <= inside else _OUTSIDE


@dataclass(frozen=True)
class _OfProbabilities(TermMeasure):
    """Shared by the calibration measures: answers whose confidence is a probability; undefined where most are not."""

    population: ClassVar[str] = "answered"
    """The column that says which rows are looked at."""

    def terms(self, of: Any = nw) -> Mapping[str, Any]:
        """How many were answered, how many of them outside [0, 1], the sum of the others, then the measure's terms."""
        answered = self._looked_at(of)
        return {
            "answered": one_where(of, answered),
            "outside": one_where(of, answered & ~self._within(of)),
            "stated": self._counted(of, self._confidence(of)),
            **self._own_terms(of),
        }

    def _looked_at(self, of: Any) -> Any:
        return of.col(self.population)

    def _within(self, of: Any) -> Any:
        confidence = of.col("confidence")
        return (confidence >= -ROUNDING) & (confidence <= 1 + ROUNDING)

    def _confidence(self, of: Any) -> Any:
        return of.col("confidence").clip(0.0, 1.0)

    def _counted(self, of: Any, term: Any) -> Any:
        return of.when(self._looked_at(of) & self._within(of)).then(term).otherwise(0.0)

    @abstractmethod
    def _own_terms(self, of: Any) -> Mapping[str, Any]: ...

    def totals_of(self, sweep: Sweep) -> Array:
        """The totals of a sweep, or of each of a stack of replicates, without going back to rows.

        Confidences that were joined count as the lowest of them.
        """
        inside = _inside(sweep.threshold)
        outside = (part[..., rest] for part in (sweep.right, sweep.wrong) for rest in _beside(inside))
        far = sum(part.sum(axis=-1, dtype=np.float64) for part in outside)
        sums = sum(
            np.stack([weighted(chance, right) + weighted(chance, wrong), *self._own_sums(chance, right, wrong)], -1)
            for chance, right, wrong in by_pieces(*probabilities_of(replace(sweep, upper=None)))
        )
        rows = np.full(sweep.answered.shape, float(sweep.n))
        return np.concatenate([np.stack([sweep.answered, far], -1), sums, rows[..., None]], axis=-1)

    @abstractmethod
    def _own_sums(self, chance: Array, right: Array, wrong: Array) -> Sequence[Array]:
        """What `_own_terms` sum up to, of right and wrong answers by confidence in rising order."""

    @abstractmethod
    def _own_finish(self, answered: Array, own: Array) -> Array: ...

    def finish(self, totals: Array) -> Array:
        """The measure's reading; NaN where nothing was answered or the confidences are no probabilities."""
        inside, outside = totals[..., 0] - totals[..., 1], totals[..., 1]
        sound = are_probabilities(inside, outside, totals[..., 2])
        value = self._own_finish(np.where(sound, inside, 1.0), np.where(sound[..., None], totals[..., 3:-1], 0.0))
        return np.where(sound, value, np.nan)

    def why_undefined(self, totals: Array) -> str:
        """What stands in the way."""
        why = _why_not(totals[0] - totals[1], totals[1], totals[2])
        return "every answer is right, or none is" if why is None else why


@dataclass(frozen=True)
class Brier(_OfProbabilities):
    """Mean squared difference between confidence and being right (1 or 0), over answers. Lower is better.

    0 is perfect; always saying 0.5 gives 0.25. Reference: Brier (1950).

    >>> from demur.core.stats.sweep import Sweep
    >>> Brier().finish(cell_totals(Brier(), Sweep.of([0.9, 0.6], [True, False]))).round(4).item()
    0.185
    """

    name: ClassVar = "brier"
    title: ClassVar = "Brier score"
    better: ClassVar = "lower"
    reference: ClassVar = "Brier (1950)"

    def _own_terms(self, of: Any) -> Mapping[str, Any]:
        gap = self._confidence(of) - one_where(of, of.col("right"))
        return {"squared_gap": self._counted(of, gap * gap)}

    def _own_sums(self, chance: Array, right: Array, wrong: Array) -> Sequence[Array]:
        return [weighted(np.square(1 - chance), right) + weighted(np.square(chance), wrong)]

    def _own_finish(self, answered: Array, own: Array) -> Array:
        return np.asarray(own[..., 0] / answered)


@dataclass(frozen=True)
class ECE(_OfProbabilities):
    """Expected calibration error: mean gap between confidence and accuracy over equal-width bins. Lower is better.

    0 is calibrated. It depends on the bins, and grows with fewer rows per bin; 10 bins are the usual choice.
    Reference: Naeini et al. (2015).

    >>> from demur.core.stats.sweep import Sweep
    >>> ECE().finish(cell_totals(ECE(), Sweep.of([0.95, 0.95, 0.55, 0.55], [True, True, True, False]))).round(4).item()
    0.05
    """

    bins: int = 10

    name: ClassVar = "ece"
    title: ClassVar = "expected calibration error (ECE)"
    better: ClassVar = "lower"
    reference: ClassVar = "Naeini et al. (2015)"
    interval: ClassVar = "miscalibration"

    def __post_init__(self) -> None:
        if self.bins < 1:
            raise UsageError(f"bins must be at least 1; got {self.bins}")

    def _own_terms(self, of: Any) -> Mapping[str, Any]:
        confidence = self._confidence(of)
        gap = one_where(of, of.col("right")) - confidence
        counted = of.col(self.population) & self._within(of)
        above = [counted & (confidence >= edge) for edge in (np.arange(self.bins) / self.bins).tolist()]
        return {f"gap_from_{place}": of.when(part).then(gap).otherwise(0.0) for place, part in enumerate(above)}

    def _own_sums(self, chance: Array, right: Array, wrong: Array) -> Sequence[Array]:
        starts = [0, *np.searchsorted(chance, np.arange(1, self.bins) / self.bins).tolist(), chance.size]
        spans = [slice(*pair) for pair in pairwise(starts)]
        gaps = [
            weighted(1 - chance[span], right[..., span]) - weighted(chance[span], wrong[..., span]) for span in spans
        ]
        return list(np.cumsum(gaps[::-1], axis=0)[::-1])

    def _own_finish(self, answered: Array, own: Array) -> Array:
        within = own - np.concatenate([own[..., 1:], np.zeros_like(own[..., :1])], axis=-1)
        return np.asarray(np.abs(within).sum(axis=-1) / answered)


@dataclass(frozen=True)
class NCE(_OfProbabilities):
    """Normalised cross entropy of confidences over answers: share of the uncertainty they remove. Higher is better.

    1 is perfect, 0 no better than always stating the overall accuracy, negative worse than that. With nc right of Nh
    answers and p = nc/Nh, H = -(nc log p + (Nh - nc) log(1 - p)) and NCE = (H + sum log(d c + (1-d)(1-c))) / H.
    Confidences are clipped to [clip, 1 - clip], 1e-7 as sclite does. Undefined when all or none is right.
    Reference: Thomson et al. (2008), section 2.2, with the minus sign its base entropy lacks.

    >>> from demur.core.stats.sweep import Sweep
    >>> NCE().finish(cell_totals(NCE(), Sweep.of([0.5, 0.5], [True, False]))).item()
    0.0
    """

    clip: float = 1e-7

    def __post_init__(self) -> None:
        if not 0 < self.clip < 0.5:
            raise UsageError(f"clip must lie between 0 and 0.5; got {self.clip}")

    name: ClassVar = "nce"
    title: ClassVar = "normalised cross entropy (NCE)"
    better: ClassVar = "higher"
    reference: ClassVar = "Thomson et al. (2008), section 2.2"
    interval: ClassVar = "gain"

    def _own_terms(self, of: Any) -> Mapping[str, Any]:
        confidence = of.col("confidence").clip(self.clip, 1 - self.clip)
        likelihood = of.when(of.col("right")).then(confidence).otherwise(1 - confidence)
        return {
            "log_likelihood": self._counted(of, likelihood.log()),
            "right": self._counted(of, one_where(of, of.col("right"))),
        }

    def _own_sums(self, chance: Array, right: Array, wrong: Array) -> Sequence[Array]:
        likely = chance.clip(self.clip, 1 - self.clip)
        surprise = weighted(np.log(likely), right) + weighted(np.log(1 - likely), wrong)
        return [surprise, right.sum(axis=-1, dtype=np.float64)]

    def _own_finish(self, answered: Array, own: Array) -> Array:
        rate = own[..., 1] / answered
        mixed = (rate > 0) & (rate < 1)
        safe = np.where(mixed, rate, 0.5)
        entropy = -answered * (safe * np.log(safe) + (1 - safe) * np.log(1 - safe))
        return np.where(mixed, (entropy + own[..., 0]) / entropy, np.nan)


Kind = Literal["width", "mass"]


@dataclass(frozen=True, slots=True, eq=False)
class Bins:
    """Answers in bins of confidence: their weight, the weight of the right ones, and the sum of their confidences.

    Leading axes, if any, are replicates. `outside` is the weight of the answers whose confidence is no probability.
    """

    weight: Array
    right: Array
    stated: Array
    outside: Array

    @classmethod
    def of(cls, sweep: Sweep, bins: int, kind: Kind) -> Bins:
        """Bins of equal width over [0, 1], or of about equal weight: no confidence is in two bins."""
        if bins < 1:
            raise UsageError(f"bins must be at least 1; got {bins}")
        confidence, right, wrong = probabilities_of(sweep)
        weight = np.add(right, wrong, dtype=np.float64)
        outside = np.asarray(sweep.answered) - weight.sum(axis=-1)
        if kind == "mass" and weight.ndim > 1:
            place = _places_by_mass(weight, bins)
            parts = (weight, right, weight * confidence)
            size, hits, stated = (_sum_by_place(place, part, bins) for part in parts)
            return cls(size, hits, stated, outside)
        ends = bin_ends(confidence, weight, bins, kind)
        spans = [slice(*pair) for pair in pairwise(ends)]
        size, hits = (_sum_by_span(part, spans) for part in (weight, right))
        return cls(size, hits, np.stack([weight[..., one] @ confidence[one] for one in spans], axis=-1), outside)

    @property
    def sound(self) -> Array:
        """Whether the confidences are probabilities."""
        return are_probabilities(self.weight.sum(axis=-1), self.outside, self.stated.sum(axis=-1))

    @property
    def gap(self) -> Array:
        """Share right less mean confidence in each bin; 0 in an empty one."""
        return np.nan_to_num(ratio(self.right - self.stated, self.weight))

    @property
    def share(self) -> Array:
        """The share of the answers in each bin."""
        return ratio(self.weight, self.weight.sum(axis=-1, keepdims=True))


def why_no_probabilities(bins: Bins) -> str | None:
    """Why confidences in bins are no probabilities; None where they are."""
    return _why_not(*map(float, (bins.weight.sum(), bins.outside, bins.stated.sum())))


def probabilities_of(sweep: Sweep) -> tuple[Array, Array, Array]:
    """Confidences that are probabilities, and the right and wrong answers that have them; joined ones at the middle."""
    inside = _inside(sweep.threshold)
    middle = sweep.threshold if sweep.upper is None else (sweep.threshold + sweep.upper) / 2
    right, wrong = (part[..., inside] for part in (sweep.right, sweep.wrong))
    return middle[inside].clip(0.0, 1.0), right, wrong


def _inside(threshold: Array) -> slice:
    """Which of the thresholds, in rising order, are probabilities."""
    return slice(*np.searchsorted(threshold, [-ROUNDING, np.nextafter(1 + ROUNDING, 2)]).tolist())


def by_pieces(chance: Array, right: Array, wrong: Array) -> Iterator[tuple[Array, Array, Array]]:
    """Confidences with their right and wrong answers, few enough at a time."""
    return ((chance[part], right[..., part], wrong[..., part]) for part in spans(chance.size))


def _beside(inside: slice) -> tuple[slice, slice]:
    return slice(0, inside.start), slice(inside.stop, None)


def bin_ends(confidence: Array, weight: Array, bins: int, kind: Kind) -> list[int]:
    """Where each bin starts among confidences in rising order, and where the last one ends."""
    inside = range(1, bins)
    if kind == "width":
        inner = np.searchsorted(confidence, np.array(inside) / bins).tolist()
    else:  # a confidence is in the bin where the middle of its answers lies
        through, whole = np.cumsum(weight, dtype=np.float64), weight.sum()
        places = range(confidence.size)
        inner = [bisect_left(places, k * whole, key=lambda at: (through[at] - weight[at] / 2) * bins) for k in inside]
    return [0, *inner, confidence.size]


def _sum_by_span(part: Array, spans: list[slice]) -> Array:
    return np.stack([part[..., one].sum(axis=-1, dtype=np.float64) for one in spans], axis=-1)


def _places_by_mass(weight: Array, bins: int) -> NDArray[np.int64]:
    """The bin of each confidence in each replicate, by the middle of its answers."""
    whole = np.maximum(weight.sum(axis=-1, keepdims=True), 1e-300)
    middle = np.cumsum(weight, axis=-1) - weight / 2
    return np.asarray(np.minimum(middle * bins / whole, bins - 1), dtype=np.int64)


def _sum_by_place(place: NDArray[np.int64], part: Array, bins: int) -> Array:
    rows = part.shape[0]
    sums = np.bincount((place + np.arange(rows)[:, None] * bins).ravel(), weights=part.ravel(), minlength=rows * bins)
    return np.asarray(sums.reshape(rows, bins), dtype=np.float64)


@dataclass(frozen=True)
class _OfBins(SweepMeasure):
    """Shared by the calibration errors that are read from bins of the sweep."""

    bins: int = 10

    kind: ClassVar[Kind] = "width"
    better: ClassVar = "lower"
    interval: ClassVar = "miscalibration"

    def __post_init__(self) -> None:
        if self.bins < 1:
            raise UsageError(f"bins must be at least 1; got {self.bins}")

    @abstractmethod
    def _of_bins(self, bins: Bins) -> Array: ...

    def finish(self, totals: Sweep) -> Array:
        """The measure's reading; NaN where nothing was answered or the confidences are no probabilities."""
        bins = Bins.of(totals, self.bins, self.kind)
        return np.where(bins.sound, self._of_bins(bins), np.nan)

    def why_undefined(self, totals: Sweep) -> str:
        """What stands in the way."""
        return why_no_probabilities(Bins.of(totals, self.bins, self.kind)) or _NOTHING


@dataclass(frozen=True)
class BinnedECE(_OfBins):
    """The ECE read from a sweep instead of sums over rows: the same number, sooner."""

    name: ClassVar = "ece"
    title: ClassVar = "expected calibration error (ECE)"
    reference: ClassVar = "Naeini et al. (2015)"

    def _of_bins(self, bins: Bins) -> Array:
        return np.asarray((np.abs(bins.gap) * bins.share).sum(axis=-1))


@dataclass(frozen=True)
class EqualMassECE(BinnedECE):
    """Expected calibration error over bins of about equal weight, for confidences that heap. Lower is better.

    0 is calibrated. Bins of equal width leave most empty where nearly all confidences are above 0.8; these hold about
    as many answers each, but never split a heap of equal confidences. 10 bins, as for the ECE.
    Reference: Nguyen and O'Connor (2015); the ACE of Nixon et al. (2019) weights such bins alike.

    >>> from demur.core.stats.sweep import Sweep
    >>> sweep = Sweep.of([0.9, 0.9, 0.95, 0.95], [True, False, True, True])
    >>> EqualMassECE(bins=2).finish(sweep).round(4).item(), EqualMassECE(bins=1).finish(sweep).round(4).item()
    (0.225, 0.175)
    """

    name: ClassVar = "ece_equal_mass"
    title: ClassVar = "ECE over bins of equal mass"
    reference: ClassVar = "Nguyen and O'Connor (2015)"
    kind: ClassVar = "mass"


@dataclass(frozen=True)
class DebiasedECE(_OfBins):
    """Expected calibration error less what chance adds to it, over the bins of the ECE. Lower is better.

    The share right in a bin varies by chance, which on average adds to the size of a gap: the ECE of a calibrated
    system is above 0, and falls with more rows. In a bin of n answers with gap d, and a share right p of variance
    s^2 = p (1-p) / (n-1), a normal variable of mean d and standard deviation s has the mean size m; so |d| becomes
    |d| - (m - |d|). Of a single answer s^2 is taken from its confidence. It is 0 where the whole comes out below. The
    correction supposes independent answers that count alike.
    Reference: Kumar et al. (2019), section 5 and its code (`normal_debiased_ce`); Bröcker (2012) for the Brier score.

    >>> from demur.core.stats.sweep import Sweep
    >>> DebiasedECE().finish(Sweep.of([0.75] * 8, [True] * 6 + [False] * 2)).item()
    0.0
    >>> DebiasedECE().finish(Sweep.of([0.95] * 400, [True, False] * 200)).round(4).item()
    0.45
    """

    name: ClassVar = "ece_debiased"
    title: ClassVar = "ECE less what chance adds"
    reference: ClassVar = "Kumar et al. (2019), section 5"
    independent: ClassVar = True

    def finish(self, totals: Sweep) -> Array:
        """The measure's reading of counts of answers."""
        return super().finish(totals.counted)

    def _of_bins(self, bins: Bins) -> Array:
        share, stated = (np.nan_to_num(ratio(part, bins.weight)).clip(0, 1) for part in (bins.right, bins.stated))
        one = bins.weight <= 1
        rate = np.where(one, stated, share)
        spread = np.sqrt(rate * (1 - rate) / np.where(one, 1.0, bins.weight - 1))
        size = np.abs(bins.gap)
        excess = np.where(spread > 0, _mean_size(size, np.where(spread > 0, spread, 1.0)) - size, 0.0)
        return np.asarray(np.maximum(((size - excess) * bins.share).sum(axis=-1), 0.0))


def _mean_size(mean: Array, spread: Array) -> Array:
    """The mean absolute value of normal variables."""
    ratios = np.minimum(mean / np.maximum(spread, 1e-150), 40.0)  # beyond, density and tail are 0
    below = np.array([normal_tail(one) for one in ratios.ravel().tolist()]).reshape(ratios.shape)
    density = np.exp(-np.square(ratios) / 2) * math.sqrt(2 / math.pi)
    return np.asarray(spread * density + mean * (1 - 2 * below))


@dataclass(frozen=True, slots=True, eq=False)
class Reliability:
    """Mean confidence and share right in each bin of confidence, with the weight of the bin."""

    low: Array
    high: Array
    confidence: Array
    accuracy: Array
    weight: Array
    usual_low: Array | None = None
    usual_high: Array | None = None
    """Between these the share right would mostly lie, were the confidences right: consistency bars."""


def reliability(sweep: Sweep, *, bins: int = 10, kind: Kind = "width") -> Reliability:
    """The reliability diagram's data: bins of equal width over [0, 1] or of about equal weight; empty ones left out."""
    found = Bins.of(sweep, bins, kind)
    held = np.flatnonzero(found.weight)
    if kind == "width":
        low, high = held / bins, (held + 1) / bins
    else:
        confidence, right, wrong = probabilities_of(sweep)
        ends = np.array(bin_ends(confidence, right + wrong, bins, kind))
        low, high = confidence[ends[held]], confidence[ends[held + 1] - 1]
    weights = found.weight[held]
    return Reliability(low, high, found.stated[held] / weights, found.right[held] / weights, weights)


def cell_totals(measure: TermMeasure, sweep: Sweep) -> Array:
    """Totals of a measure of confidences from a sweep, or from a stack of replicates, without going back to the rows.

    A cell is a right or a wrong answer at one threshold, or a withheld row; replicates are counts per cell.
    """
    assert isinstance(measure, _OfProbabilities)
    return measure.totals_of(sweep)


def weighted(terms: Array, counts: Array) -> Array:
    """The sum of terms by threshold, each as often as it is counted; that of BLAS depends on the number of threads."""
    return np.asarray(np.einsum("...c,c->...", counts, terms))


def one_where(of: Any, condition: Any) -> Any:
    """1 where the condition holds, else 0."""
    return of.when(condition).then(1.0).otherwise(0.0)


def outcomes_as_stated(sample: Sample, rounds: int) -> Sweep:
    """Logs like the sample in which every answer is right with the chance that its confidence states."""
    coarse = sample.coarse
    each = coarse.total / sample.spread.n  # what a row counts, or rows that tell as much as these would
    count = np.rint((coarse.right + coarse.wrong) / each).astype(np.int64)
    chance = coarse.threshold.clip(0, 1)
    right = np.random.default_rng(sample.seed).binomial(count, chance, size=(rounds, count.size))
    return Sweep(coarse.threshold, right, count - right, np.zeros(rounds), coarse.n)


def consistent_reliability(sample: Sample, *, bins: int = 10, level: float = 0.95) -> Reliability:
    """The reliability diagram's data with consistency bars: where the share right would lie, were confidences right.

    For independent answers that count alike outcomes are drawn as the confidences say (Bröcker and Smith 2007). For
    dialogues and weighted rows the bars are Student's, from the spread of what units add to the gap of a bin.
    """
    found = reliability(sample.sweep, bins=bins)
    if sample.alike:
        drawn = Bins.of(outcomes_as_stated(sample, ROUNDS), bins, "width")
        ends = np.quantile(drawn.gap, [(1 - level) / 2, (1 + level) / 2], axis=0)
    else:
        reach = student(level, sample.spread.units - 1) * _gap_errors(sample, bins)
        ends = np.stack([-reach, reach])
    held = np.rint(found.low * bins).astype(np.int64)
    low, high = (np.clip(found.confidence + end[held], 0.0, 1.0) for end in ends)
    return Reliability(found.low, found.high, found.confidence, found.accuracy, found.weight, low, high)


def _gap_errors(sample: Sample, bins: int) -> Array:
    """The standard error of the gap between share right and mean confidence in each bin, from the units."""
    coarse, errors = sample.coarse, np.zeros(bins)
    place = np.clip(np.searchsorted(np.arange(bins + 1) / bins, coarse.threshold, side="right") - 1, 0, bins - 1)
    weight = Bins.of(coarse, bins, "width").weight
    for one in np.flatnonzero(weight):
        errors[one] = _unit_error(sample, np.where(place == one, 1.0, 0.0)) / weight[one]
    return errors


def _unit_error(sample: Sample, factor: Array) -> float:
    """The standard error of the sum of (right - confidence) times a factor by level, from what each unit adds."""
    coarse = sample.coarse
    chance, units = coarse.threshold.clip(0, 1), sample.spread.units
    pulls = sample.pulls(np.concatenate([(1 - chance) * factor, -chance * factor, [0.0]])) * coarse.total
    return math.sqrt(float(np.square(pulls - pulls.mean()).sum()) * units / max(units - 1, 1))


@dataclass(frozen=True, slots=True)
class CalibrationTest:
    """Spiegelhalter's test of whether confidences are the chances of being right: z, and its two-sided p-value."""

    z: float
    p: float
    why: str | None = None
    """Why there is no test."""

    def to_dict(self) -> dict[str, Any]:
        """The test as plain values."""
        found: dict[str, Any] = plain({"name": "Spiegelhalter", "z": self.z, "p": self.p})
        return found if self.why is None else {**found, "why": self.why}


def calibration_test(sample: Sample) -> CalibrationTest:
    """Spiegelhalter's z: the sum of (right - c)(1 - 2c) over answers with confidence c, over its standard error.

    Where confidences are the chances of being right the sum is 0 on average: it is the part of the Brier score that
    outcomes decide. For independent answers its variance is the sum of (1 - 2c)^2 c (1 - c), and z is about standard
    normal (Spiegelhalter 1986). For dialogues and weighted rows the variance is that of what units add, and z is
    compared with Student's t. A small p-value refutes calibration; a large one does not prove it: errors of confidences
    of which half are too high and half too low may cancel in the sum.

    >>> from demur.core.stats.resampling import Rows, Sample
    >>> found = calibration_test(Sample(Rows.of([0.9] * 10, [True] * 6 + [False] * 4)))
    >>> round(found.z, 4), round(found.p, 4)
    (3.1623, 0.0016)
    """
    sweep, nothing = sample.sweep, float("nan")
    why = why_no_probabilities(Bins.of(sweep, 1, "width"))
    if why is not None:
        return CalibrationTest(nothing, nothing, why)
    total = variance = 0.0
    for chance, right, wrong in by_pieces(*probabilities_of(sweep)):
        factor, spread = 1 - 2 * chance, np.square(1 - 2 * chance) * chance * (1 - chance)
        total += float(weighted((1 - chance) * factor, right) - weighted(chance * factor, wrong))
        variance += float(weighted(spread, right) + weighted(spread, wrong))
    if sample.alike:
        error = math.sqrt(variance)
    else:
        coarse = sample.coarse.threshold
        error = _unit_error(sample, np.where((coarse >= 0) & (coarse <= 1), 1 - 2 * coarse.clip(0, 1), 0.0))
    if not error > 0:
        if total == 0:
            return CalibrationTest(nothing, nothing, "every confidence is 0, 0.5 or 1, which the test cannot judge")
        return CalibrationTest(math.copysign(math.inf, total), 0.0)
    z = total / error
    return CalibrationTest(z, 2 * normal_tail(abs(z)) if sample.alike else student_p(z, 1.0, sample.spread.units - 1))
