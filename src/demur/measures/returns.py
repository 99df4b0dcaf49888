"""Rates of the error-return family (Artstein 2011): at forced choice, at a point, at a threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from demur.errors import UsageError
from demur.measures.base import SweepMeasure
from demur.measures.sweep import Sweep, ratio

Array = NDArray[np.float64]


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
    interval: ClassVar = "height"

    def __post_init__(self) -> None:
        end = self.x if self.to is None else self.to
        if not 0 <= self.x <= end <= 1:
            got = f"{self.x:g}" if self.to is None else f"{self.x:g} to {end:g}"
            raise UsageError(f"a non-return rate lies in [0, 1], such as 0.2, and a range rises; got {got}")

    def finish(self, totals: Sweep) -> Array:
        """The curve at x; undefined left of where the curve starts."""
        if self.to is None or self.to == self.x:
            heights = curve_at(totals, np.array([self.x]))[..., 0]
        else:
            heights = _mean_over(totals, self.x, self.to)
        floor = np.nan_to_num(ratio(totals.withheld, totals.total), nan=np.inf)
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
            raise UsageError(f"an error rate lies in [0, 1], such as 0.05; got {self.error:g}")

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
    interval: ClassVar = "share"

    def trials(self, totals: Sweep) -> float:
        """The share of rows that are returned."""
        first = int(np.searchsorted(totals.threshold, self.threshold))
        return float((totals.right[first:].sum() + totals.wrong[first:].sum()) / totals.total)

    def finish(self, totals: Sweep) -> Array:
        """Right over returned."""
        first = int(np.searchsorted(totals.threshold, self.threshold))
        right = totals.right[..., first:].sum(axis=-1, dtype=np.float64)
        return ratio(right, right + totals.wrong[..., first:].sum(axis=-1, dtype=np.float64))

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
    interval: ClassVar = "share"

    def finish(self, totals: Sweep) -> Array:
        """Right and returned over all inputs."""
        first = int(np.searchsorted(totals.threshold, self.threshold))
        return ratio(totals.right[..., first:].sum(axis=-1, dtype=np.float64), totals.total)


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
