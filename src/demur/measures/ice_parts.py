"""What the ICE is made of: items that were missed, and for the others what recalibrating could and could not mend.

All of it is read from the threshold sweep of items: right and wrong items by confidence, and as withheld those that
were meant and that no hypothesis holds.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from demur.errors import UsageError
from demur.measures.base import SweepMeasure
from demur.measures.nbest import FLOOR, PAPER
from demur.measures.sweep import Sweep, ratio

Array = NDArray[np.float64]


def item_cost(probability: Any, right: Any, wrong: Any, floor: float) -> Array:
    """What items cost that are all believed with this probability, some of them right and some wrong."""
    surely = np.log(np.maximum(probability, floor)), np.log(np.maximum(1 - np.asarray(probability), floor))
    return np.asarray(0.0 - (right * surely[0] + wrong * surely[1]), dtype=np.float64)


def recalibrated(right: Array, wrong: Array) -> Array:
    """The share right at each confidence, in rising order of confidence, made to rise by pooling (PAV).

    >>> recalibrated(np.array([1.0, 0.0, 1.0]), np.array([1.0, 1.0, 0.0])).round(4).tolist()
    [0.3333, 0.3333, 1.0]
    """
    weight = np.asarray(right + wrong, dtype=np.float64)
    held = weight > 0
    fitted = np.zeros(weight.size)
    if held.any():
        fitted[held] = isotonic_regression(right[held] / weight[held], weights=weight[held]).x
    return np.clip(fitted, 0.0, 1.0)


@dataclass(frozen=True)
class _Part(SweepMeasure):
    """One part of the ICE; ICE = missing + miscalibration - discrimination + uncertainty."""

    floor: float = FLOOR

    better: ClassVar[Literal["lower", "higher"]] = "lower"
    reference: ClassVar = f"{PAPER}, equation 3, split by isotonic regression as in Dimitriadis et al. (2021)"

    def __post_init__(self) -> None:
        if not 0 < self.floor < 0.5:
            raise UsageError(f"the floor of a probability must lie between 0 and 0.5; got {self.floor:g}")

    def finish(self, totals: Sweep) -> Array:
        """The part's cost over the number of items meant."""
        right, wrong = (np.asarray(part, dtype=np.float64) for part in (totals.right, totals.wrong))
        missed = np.asarray(totals.withheld, dtype=np.float64)
        return ratio(self._cost(totals.threshold, right, wrong, missed), right.sum(axis=-1) + missed)

    @abstractmethod
    def _cost(self, confidence: Array, right: Array, wrong: Array, missed: Array) -> Array: ...

    def _as_given(self, confidence: Array, right: Array, wrong: Array) -> Array:
        return np.asarray(item_cost(np.clip(confidence, 0, 1), right, wrong, self.floor).sum(axis=-1))

    def _recalibrated(self, right: Array, wrong: Array) -> Array:
        if not right.shape[-1]:
            return np.zeros(right.shape[:-1])
        flat = (part.reshape(-1, part.shape[-1]) for part in (right, wrong))
        costs = [item_cost(recalibrated(r, w), r, w, self.floor).sum() for r, w in zip(*flat, strict=True)]
        return np.reshape(np.array(costs), right.shape[:-1])

    def _constant(self, right: Array, wrong: Array) -> Array:
        rate = np.nan_to_num(ratio(right.sum(axis=-1), (right + wrong).sum(axis=-1)))
        return item_cost(rate, right.sum(axis=-1), wrong.sum(axis=-1), self.floor)

    def why_undefined(self, totals: Any) -> str:
        """What there is none of."""
        return "no reference holds any item"


@dataclass(frozen=True)
class Missing(_Part):
    """The part of the ICE of items that were meant and that no hypothesis holds, each at the floor's cost.

    Lower is better. Only better or longer lists win it back.

    >>> items = Sweep.of([0.8, 0.4], [True, False], withheld=1.0)
    >>> round(Missing().finish(items).item(), 4)
    3.4539
    """

    name: ClassVar = "missing"
    title: ClassVar = "ICE of items that no hypothesis holds"

    def _cost(self, confidence: Array, right: Array, wrong: Array, missed: Array) -> Array:
        return np.asarray(-np.log(self.floor) * missed)


@dataclass(frozen=True)
class Miscalibration(_Part):
    """The part of the ICE that recalibrating confidences would win back: cost as given less cost after PAV.

    Lower is better, 0 is calibrated. Where the floor is at work on the recalibrated values it may fall below 0 by a
    little, as flooring is not proper. Recalibrated means isotonic regression on the same items, so some of it is
    chance: fit on one file and apply to another to see what can be had.

    >>> items = Sweep.of([0.8, 0.4], [True, False], withheld=1.0)
    >>> round(Miscalibration().finish(items).item(), 4)
    0.367
    """

    name: ClassVar = "miscalibration"
    title: ClassVar = "ICE that recalibrating would win back"

    def _cost(self, confidence: Array, right: Array, wrong: Array, missed: Array) -> Array:
        return np.asarray(self._as_given(confidence, right, wrong) - self._recalibrated(right, wrong))


@dataclass(frozen=True)
class Discrimination(_Part):
    """What recalibrated confidences save against stating the overall share right for every item. Higher is better.

    >>> items = Sweep.of([0.8, 0.4], [True, False], withheld=1.0)
    >>> round(Discrimination().finish(items).item(), 4)
    0.6931
    """

    better: ClassVar[Literal["lower", "higher"]] = "higher"
    name: ClassVar = "discrimination"
    title: ClassVar = "ICE saved by telling right items from wrong"

    def _cost(self, confidence: Array, right: Array, wrong: Array, missed: Array) -> Array:
        return np.asarray(self._constant(right, wrong) - self._recalibrated(right, wrong))


@dataclass(frozen=True)
class Uncertainty(_Part):
    """What hypothesised items cost if each is believed with the overall share right. Lower is better.

    It depends on what is hypothesised, not on the confidences.

    >>> items = Sweep.of([0.8, 0.4], [True, False], withheld=1.0)
    >>> round(Uncertainty().finish(items).item(), 4)
    0.6931
    """

    name: ClassVar = "uncertainty"
    title: ClassVar = "ICE of the overall share right"

    def _cost(self, confidence: Array, right: Array, wrong: Array, missed: Array) -> Array:
        return self._constant(right, wrong)
