"""Are confidences consistent with what came true? Outcomes drawn as the confidences say, and Spiegelhalter's test."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from demur.core.arrays import Array
from demur.core.show.results import plain
from demur.core.stats.calibration import Bins, Reliability, probabilities_of, reliability, why_no_probabilities
from demur.core.stats.intervals import normal_tail, student, student_p
from demur.core.stats.resampling import Sample
from demur.core.stats.sweep import Sweep

ROUNDS = 1000
"""Logs that are drawn for the bars of a reliability diagram."""


def outcomes_as_stated(sample: Sample, rounds: int) -> Sweep:
    """Logs like the sample in which every answer is right with the chance that its confidence states."""
    coarse = sample.coarse
    each = coarse.total / coarse.n  # what a row counts: all alike, but not always 1
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

    >>> from demur.core.stats.resampling import Rows
    >>> found = calibration_test(Sample(Rows.of([0.9] * 10, [True] * 6 + [False] * 4)))
    >>> round(found.z, 4), round(found.p, 4)
    (3.1623, 0.0016)
    """
    sweep, nothing = sample.sweep, float("nan")
    why = why_no_probabilities(Bins.of(sweep, 1, "width"))
    if why is not None:
        return CalibrationTest(nothing, nothing, why)
    chance, right, wrong = probabilities_of(sweep)
    factor = 1 - 2 * chance
    total = float(((right * (1 - chance) - wrong * chance) * factor).sum())
    if sample.alike:
        error = math.sqrt(float(((right + wrong) * np.square(factor) * chance * (1 - chance)).sum()))
    else:
        coarse = sample.coarse.threshold
        error = _unit_error(sample, np.where((coarse >= 0) & (coarse <= 1), 1 - 2 * coarse.clip(0, 1), 0.0))
    if not error > 0:
        if total == 0:
            return CalibrationTest(nothing, nothing, "every confidence is 0, 0.5 or 1, which the test cannot judge")
        return CalibrationTest(math.copysign(math.inf, total), 0.0)
    z = total / error
    return CalibrationTest(z, 2 * normal_tail(abs(z)) if sample.alike else student_p(z, 1.0, sample.spread.units - 1))
