"""Do confidences mean what they say? Brier score, calibration error, normalised cross entropy, reliability."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import narwhals as nw
import numpy as np
import polars as pl

from demur.core.arrays import Array
from demur.core.stats.measure import TermMeasure
from demur.core.stats.sweep import Sweep, cells_as_rows
from demur.errors import UsageError

_OUTSIDE = "confidences that are missing or outside [0, 1] are no probabilities, so calibration has no meaning"


@dataclass(frozen=True)
class _OfProbabilities(TermMeasure):
    """Shared by the calibration measures: answered rows only, and undefined where a confidence is no probability."""

    population: ClassVar[str] = "answered"
    """The column that says which rows are looked at."""

    def terms(self, of: Any = nw) -> Mapping[str, Any]:
        """How many were answered and how many confidences lie outside [0, 1], then the measure's own terms."""
        answered, confidence = of.col(self.population), of.col("confidence")
        outside = answered & ((confidence < 0) | (confidence > 1))
        return {"answered": one_where(of, answered), "outside": one_where(of, outside), **self._own_terms(of)}

    def _counted(self, of: Any, term: Any) -> Any:
        return of.when(of.col(self.population)).then(term).otherwise(0.0)

    @abstractmethod
    def _own_terms(self, of: Any) -> Mapping[str, Any]: ...

    @abstractmethod
    def _own_finish(self, answered: Array, own: Array) -> Array: ...

    def finish(self, totals: Array) -> Array:
        """The measure's reading; NaN where nothing was answered or a confidence is no probability."""
        answered, outside = totals[..., 0], totals[..., 1]
        sound = (answered > 0) & (outside == 0)
        value = self._own_finish(np.where(sound, answered, 1.0), np.where(sound[..., None], totals[..., 2:-1], 0.0))
        return np.where(sound, value, np.nan)

    def why_undefined(self, totals: Array) -> str:
        """What stands in the way."""
        if totals[1] > 0:
            return _OUTSIDE
        return "nothing was answered" if totals[0] == 0 else "every answer is right, or none is"


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
        gap = of.col("confidence") - one_where(of, of.col("right"))
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
        confidence = of.col("confidence")
        gap = one_where(of, of.col("right")) - confidence
        above = [of.col(self.population) & (confidence >= edge) for edge in (np.arange(self.bins) / self.bins).tolist()]
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

    def _own_terms(self, of: Any) -> Mapping[str, Any]:
        confidence = of.col("confidence").clip(self.clip, 1 - self.clip)
        likelihood = of.when(of.col("right")).then(confidence).otherwise(1 - confidence)
        return {
            "log_likelihood": self._counted(of, likelihood.log()),
            "right": one_where(of, of.col(self.population) & of.col("right")),
        }

    def _own_finish(self, answered: Array, own: Array) -> Array:
        rate = own[..., 1] / answered
        mixed = (rate > 0) & (rate < 1)
        safe = np.where(mixed, rate, 0.5)
        entropy = -answered * (safe * np.log(safe) + (1 - safe) * np.log(1 - safe))
        return np.where(mixed, (entropy + own[..., 0]) / entropy, np.nan)


@dataclass(frozen=True, slots=True, eq=False)
class Reliability:
    """Mean confidence and share right in each bin of confidence, with the weight of the bin."""

    low: Array
    high: Array
    confidence: Array
    accuracy: Array
    weight: Array


def reliability(sweep: Sweep, *, bins: int = 10, kind: Literal["width", "mass"] = "width") -> Reliability:
    """The reliability diagram's data: bins of equal width over [0, 1] or of about equal weight; empty ones left out."""
    if bins < 1:
        raise UsageError(f"bins must be at least 1; got {bins}")
    weight, edges = np.add(sweep.right, sweep.wrong, dtype=np.float64), np.arange(bins + 1) / bins
    if kind == "width":
        place = np.clip(np.searchsorted(edges, sweep.threshold, side="right") - 1, 0, bins - 1)
    else:
        middle = np.cumsum(weight) - weight / 2
        place = np.minimum(middle / max(weight.sum(), 1e-300) * bins, bins - 1).astype(np.int64)
    parts = (weight, np.asarray(sweep.right, dtype=np.float64), weight * sweep.threshold)
    size, right, mass = (np.bincount(place, weights=part, minlength=bins) for part in parts)
    held = np.flatnonzero(size)
    if kind == "width":
        low, high = edges[held], edges[held + 1]
    else:
        low = sweep.threshold[np.searchsorted(place, held)]
        high = sweep.threshold[np.searchsorted(place, held, side="right") - 1]
    weights = np.asarray(size[held], dtype=np.float64)
    return Reliability(low, high, mass[held] / weights, right[held] / weights, weights)


def cell_totals(measure: TermMeasure, sweep: Sweep, terms: Array | None = None) -> Array:
    """Totals of a term measure from a sweep, or from a stack of replicates, without going back to the rows.

    A cell is a right or a wrong answer at one threshold, or a withheld row; replicates are counts per cell. `terms` are
    the `cell_terms` of the sweep's thresholds, for callers that need them several times.
    """
    if terms is None and sweep.right.ndim == 1:
        parts = [_weighted(_terms_of(measure, cells), cells["weight"].to_numpy()) for cells in sweep.cells()]
        return np.append(np.sum(parts, axis=0), float(sweep.n))
    withheld = np.asarray(sweep.withheld, dtype=np.float64)[..., None]
    counts = np.concatenate([sweep.right, sweep.wrong, withheld], axis=-1)
    sums = _weighted(cell_terms(measure, sweep.threshold) if terms is None else terms, counts)
    return np.concatenate([sums, np.full((*sums.shape[:-1], 1), float(sweep.n))], axis=-1)


def cell_terms(measure: TermMeasure, threshold: Array) -> Array:
    """The terms of a measure, one row each: of right answers at each threshold, then of wrong ones, then withheld."""
    every = np.arange(2 * threshold.size + 1)
    return _terms_of(measure, cells_as_rows(threshold, every, np.ones(every.size)))


def _terms_of(measure: TermMeasure, cells: pl.DataFrame) -> Array:
    terms = np.ascontiguousarray(cells.select(**measure.terms(pl)).to_numpy().T)
    if not np.isfinite(terms).all():  # confidences that are no probabilities count apart
        terms = np.nan_to_num(terms, nan=0.0, posinf=0.0, neginf=0.0)
    return terms


def _weighted(terms: Array, weight: Array) -> Array:
    return np.asarray(np.einsum("...c,tc->...t", weight, terms))  # BLAS and lazy sums depend on the number of threads


def one_where(of: Any, condition: Any) -> Any:
    """1 where the condition holds, else 0."""
    return of.when(condition).then(1.0).otherwise(0.0)
