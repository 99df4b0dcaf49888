"""Would recalibration help: how far confidences are off, before and after, on answers not fitted to."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from demur.core.arrays import Array
from demur.core.show.results import plain
from demur.core.stats.calibration import ECE, Recalibration
from demur.core.stats.intervals import student
from demur.core.stats.resampling import Rows
from demur.returns.evaluate import Evaluation

Advice = Literal["recalibrate", "leave", "unclear"]

FOLDS = 5
"""Parts of the answers; each is held against a map that was fitted on the others."""

LEAST = 100
"""Answers below which a map is not worth fitting."""

WORTH = 0.01
"""Expected calibration error below which confidences mean what they say, for all purposes."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """The confidences of one system, as they are and recalibrated across folds; a change is after less before."""

    system: str
    answers: int
    brier: float
    ece: float
    bias: float
    """Mean confidence less the share right: over 0 the system is too sure of itself."""
    brier_after: float = math.nan
    ece_after: float = math.nan
    change: float = math.nan
    """Change of the Brier score, with its interval."""
    low: float = math.nan
    high: float = math.nan
    why: str | None = None
    """Why nothing was fitted."""

    @property
    def advice(self) -> Advice:
        """Recalibrate where that is shown to help and there is something to mend; leave what is sound."""
        if math.isnan(self.change):
            return "unclear"
        if self.high < 0 and self.ece > WORTH:
            return "recalibrate"
        return "leave"

    def to_dict(self) -> dict[str, Any]:
        """The calibration as plain values."""
        values: dict[str, Any] = plain({**asdict(self), "advice": self.advice})
        return values


def calibration(evaluation: Evaluation, rows: Rows) -> Calibration | None:
    """What recalibrating the answers of one system would do; None where its confidences are no probabilities.

    The map is isotonic, as in `recalibration`. Answers, or whole dialogues, are dealt into five folds in the order of
    confidence, so that the order of rows does not matter.
    """
    if not evaluation.probabilistic:
        return None
    kept = rows.answered
    confidence, right, weight = rows.confidence[kept], rows.right[kept], rows.weight[kept]
    unit = None if rows.unit is None else np.unique(rows.unit[kept], return_inverse=True)[1]
    loss = np.square(confidence - right)
    before = Calibration(
        evaluation.system,
        int(kept.sum()),
        float(np.average(loss, weights=weight)),
        _ece(confidence, right, weight),
        float(np.average(confidence - right, weights=weight)),
    )
    if unit is None:
        fold = np.empty(confidence.size, dtype=np.int64)
        fold[np.lexsort((weight, right, confidence))] = np.arange(confidence.size) % FOLDS
    else:
        fold = unit % FOLDS
    if before.answers < LEAST:
        return replace(before, why=f"{before.answers:,} answers, fewer than {LEAST}")
    if right.all() or not right.any():
        return replace(before, why=f"every answer is {'right' if right.all() else 'wrong'}")
    if np.unique(fold).size < FOLDS:
        return replace(before, why=f"fewer than {FOLDS} dialogues")
    mapped = _mapped(confidence, right, weight, fold)
    after = np.square(mapped - right)
    change, reach = _change(after - loss, weight, unit, evaluation.level)
    return replace(
        before,
        brier_after=float(np.average(after, weights=weight)),
        ece_after=_ece(mapped, right, weight),
        change=change,
        low=change - reach,
        high=change + reach,
    )


def _mapped(confidence: Array, right: NDArray[np.bool_], weight: Array, fold: NDArray[np.int64]) -> Array:
    """Each confidence by the map that was fitted on the other folds."""
    alike = bool((weight == 1).all())
    mapped = np.empty_like(confidence)
    for part in range(FOLDS):
        out = fold == part
        fitted = Recalibration.fit(confidence[~out], right[~out], weight=None if alike else weight[~out])
        mapped[out] = fitted(confidence[out])
    return mapped


def _ece(confidence: Array, right: NDArray[np.bool_], weight: Array) -> float:
    """The expected calibration error over the bins of the measure ECE."""
    bins = ECE().bins
    edges = np.arange(bins + 1) / bins
    place = np.clip(np.searchsorted(edges, confidence, side="right") - 1, 0, bins - 1)
    gap = np.bincount(place, weights=(right - confidence) * weight, minlength=bins)
    return float(np.abs(gap).sum() / weight.sum())


def _change(gap: Array, weight: Array, unit: NDArray[np.int64] | None, level: float) -> tuple[float, float]:
    """A mean change with the reach of its interval, by dialogues where there are some."""
    total = weight.sum()
    mean = float((gap * weight).sum() / total)
    pull = (gap - mean) * weight / total
    if unit is not None:
        pull = np.bincount(unit, weights=pull)
    size = pull.size
    return mean, student(level, size - 1) * math.sqrt(float(np.square(pull).sum()) * size / (size - 1))
