"""Do confidences mean what they say? Brier score, calibration error, normalised cross entropy, reliability."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.arrays import Array
from demur.core.stats.intervals import normal_tail
from demur.core.stats.measure import SweepMeasure, TermMeasure
from demur.core.stats.sweep import Sweep, cells_as_rows, ratio
from demur.errors import UsageError

ROUNDING = 1e-6
"""How far outside [0, 1] a confidence may lie and still count as 0 or 1: rounding, also that of single precision."""

_OUTSIDE = "most confidences lie outside [0, 1], so they are no probabilities and calibration has no meaning"
_LOGARITHMS = "confidences are 0 or outside [0, 1], as logarithms are, so they are no probabilities"
_NOTHING = "nothing was answered"


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
    return _LOGARITHMS if 0 < outside <= inside else _OUTSIDE


@dataclass(frozen=True)
class _OfProbabilities(TermMeasure):
    """Shared by the calibration measures: answers whose confidence is a probability; undefined where most are not."""

    population: ClassVar[str] = "answered"
    """The column that says which rows are looked at."""

    def terms(self, of: Any = nw) -> Mapping[str, Any]:
        """How many were answered, how many of them outside [0, 1], the sum of the others, then the measure's terms."""
        answered = of.col(self.population)
        return {
            "answered": one_where(of, answered),
            "outside": one_where(of, answered & ~self._within(of)),
            "stated": self._counted(of, self._confidence(of)),
            **self._own_terms(of),
        }

    def _within(self, of: Any) -> Any:
        confidence = of.col("confidence")
        return (confidence >= -ROUNDING) & (confidence <= 1 + ROUNDING)

    def _confidence(self, of: Any) -> Any:
        return of.col("confidence").clip(0.0, 1.0)

    def _counted(self, of: Any, term: Any) -> Any:
        return of.when(of.col(self.population) & self._within(of)).then(term).otherwise(0.0)

    @abstractmethod
    def _own_terms(self, of: Any) -> Mapping[str, Any]: ...

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


def bin_ends(confidence: Array, weight: Array, bins: int, kind: Kind) -> list[int]:
    """Where each bin starts among confidences in rising order, and where the last one ends."""
    if kind == "width":
        inner = np.searchsorted(confidence, np.arange(1, bins) / bins)
    else:  # a confidence is in the bin where the middle of its answers lies
        middle = np.cumsum(weight) - weight / 2
        inner = np.searchsorted(middle * bins, np.arange(1, bins) * weight.sum())
    return [0, *inner.tolist(), confidence.size]


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
    ratios = mean / spread
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


def cell_totals(measure: TermMeasure, sweep: Sweep, terms: Array | None = None) -> Array:
    """Totals of a term measure from a sweep, or from a stack of replicates, without going back to the rows.

    A cell is a right or a wrong answer at one threshold, or a withheld row; replicates are counts per cell. `terms` are
    the `cell_terms` of the sweep's thresholds, for callers that need them several times.
    """
    if terms is None and sweep.right.ndim == 1:
        return cell_totals_of([measure], sweep)[0]
    withheld = np.asarray(sweep.withheld, dtype=np.float64)[..., None]
    counts = np.concatenate([sweep.right, sweep.wrong, withheld], axis=-1)
    sums = _weighted(cell_terms(measure, sweep.threshold) if terms is None else terms, counts)
    return np.concatenate([sums, np.full((*sums.shape[:-1], 1), float(sweep.n))], axis=-1)


def cell_totals_of(measures: Sequence[TermMeasure], sweep: Sweep) -> list[Array]:
    """Totals of several term measures from one sweep: what their terms share is computed once."""
    sums: Array = np.sum(
        [_weighted(_terms_of(measures, cells), cells["weight"].to_numpy()) for cells in sweep.cells()], axis=0
    )
    starts = np.cumsum([len(measure.terms(pl)) for measure in measures])[:-1]
    return [np.append(part, float(sweep.n)) for part in np.split(sums, starts)]


def cell_terms(measure: TermMeasure, threshold: Array) -> Array:
    """The terms of a measure, one row each: of right answers at each threshold, then of wrong ones, then withheld."""
    every = np.arange(2 * threshold.size + 1)
    return _terms_of([measure], cells_as_rows(threshold, every, np.ones(every.size)))


def _terms_of(measures: Sequence[TermMeasure], cells: pl.DataFrame) -> Array:
    wanted = {f"{place}:{name}": term for place, one in enumerate(measures) for name, term in one.terms(pl).items()}
    terms = np.ascontiguousarray(cells.lazy().select(**wanted).collect().to_numpy().T)
    if not np.isfinite(terms).all():  # confidences that are no probabilities count apart
        terms = np.nan_to_num(terms, nan=0.0, posinf=0.0, neginf=0.0)
    return terms


def _weighted(terms: Array, weight: Array) -> Array:
    return np.asarray(np.einsum("...c,tc->...t", weight, terms))  # BLAS and lazy sums depend on the number of threads


def one_where(of: Any, condition: Any) -> Any:
    """1 where the condition holds, else 0."""
    return of.when(condition).then(1.0).otherwise(0.0)
