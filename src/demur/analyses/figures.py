"""A measure's value with an interval of the kind that suits it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from demur.analyses.bands import effective_inputs
from demur.measures.base import IntervalKind, Measure, TermMeasure
from demur.measures.calibration import cell_totals
from demur.measures.intervals import Figure, exact_binomial, expanded_percentiles, normal, student
from demur.measures.projection import augrc_estimate
from demur.measures.resampling import Sample
from demur.measures.sweep import Sweep

Array = NDArray[np.float64]
Ends = tuple[float, float]

NO_INTERVAL: Ends = (float("nan"), float("nan"))


@dataclass(frozen=True, eq=False)
class Reading:
    """One measure read from one sample: its value, its replicates, and what an interval needs besides."""

    measure: Measure
    sample: Sample
    level: float

    @cached_property
    def totals(self) -> Any:
        """The measure's exact totals."""
        sample = self.sample
        return sample.totals(self.measure) if isinstance(self.measure, TermMeasure) else sample.sweep

    @cached_property
    def value(self) -> float:
        """The measure's value; NaN where undefined."""
        return float(self.measure.finish(self.totals))

    @cached_property
    def drawn(self) -> Array:
        """The measure's value in every replicate."""
        return self.measure.finish(_totals(self.measure, self.sample.drawn))

    @cached_property
    def coarse(self) -> float:
        """The value at the levels of the replicates, around which they lie."""
        return float(self.measure.finish(_totals(self.measure, self.sample.coarse)))

    @property
    def still(self) -> bool:
        """Whether all replicates agree, so that they say nothing of the uncertainty."""
        return bool(np.nanmin(self.drawn) == np.nanmax(self.drawn))

    @property
    def percentiles(self) -> Ends:
        """Percentiles of the replicates, widened for small samples."""
        return expanded_percentiles(self.drawn, self.level, self.sample.spread.units)

    @property
    def student(self) -> float:
        """Student's critical value for the number of units that are drawn."""
        return student(self.level, self.sample.spread.units - 1)

    @property
    def scarce_student(self) -> float:
        """Student's critical value for the number of answers of the scarcer kind, right or wrong."""
        sweep = self.sample.sweep
        right = float(sweep.answered - sweep.errors)
        return student(self.level, min(float(sweep.errors), right, self.sample.spread.units) - 1)

    @property
    def error_bounds(self) -> Ends:
        """Bounds of the error rate when every answer is returned."""
        sweep, spread = self.sample.sweep, self.sample.spread
        low, high = exact_binomial(float(sweep.errors / sweep.total), spread.most, self.student)
        return float(low), float(high)


def figure_of(measure: Measure, sample: Sample, level: float = 0.95) -> Figure:
    """A measure's value on the rows, with the kind of interval that the measure asks for."""
    reading = Reading(measure, sample, level)
    if np.isnan(reading.value):
        return Figure(reading.value, why=measure.why_undefined(reading.totals))
    return Figure(reading.value, *_INTERVALS[measure.interval](reading))


def _share(reading: Reading) -> Ends:
    """Exact binomial, on the rows themselves where these are independent and count alike."""
    if not reading.sample.alike:
        return _height(reading)
    n = reading.sample.n * reading.measure.trials(reading.totals)
    low, high = exact_binomial(reading.value, n, normal(reading.level))
    return float(low), float(high)


def _height(reading: Reading) -> Ends:
    """Exact binomial on the number of independent inputs that would be as uncertain as the replicates."""
    value, sample = reading.value, reading.sample
    drawn = np.nan_to_num(reading.drawn, nan=value)[:, None]
    effective = float(effective_inputs(np.array([value]), drawn, sample.spread)[0])
    if not 0 < value < 1:
        effective *= reading.measure.trials(reading.totals)
    low, high = exact_binomial(value, effective, reading.student)
    return float(low), float(high)


def _area(reading: Reading) -> Ends:
    """The closed form of the AUGRC on the logit scale.

    Where the sample holds no error, or nothing else, the bounds follow from those of the error rate e: the area lies
    between e^2/2, all errors least confident, and e (1 - e/2), all most confident.
    """
    value, sample = reading.value, reading.sample
    top = float(sample.sweep.answered / sample.sweep.total) ** 2 / 2
    estimate = augrc_estimate(sample)
    if not estimate.error > 0 or not 0 < value < top * (1 - 1e-12):
        low, high = reading.error_bounds
        return low**2 / 2, high * (1 - high / 2)
    reach = reading.scarce_student * estimate.error / (value * (1 - value / top))
    middle = float(logit(value / top))
    return float(top * expit(middle - reach)), float(top * expit(middle + reach))


def _ranking(reading: Reading) -> Ends:
    """The spread of the replicates on the logit scale, with Student's t for the scarcer kind of answer.

    How well answers are ranked is known no better than from the few wrong (or right) ones among them.
    """
    if reading.still:
        return NO_INTERVAL
    bottom = reading.measure.bottom
    share, spread = (reading.value - bottom) / (1 - bottom), float(np.nanstd(reading.drawn)) / (1 - bottom)
    if not 0 < share < 1 or np.isnan(reading.drawn).mean() > 0.1:
        low, high = reading.percentiles
        return min(low, reading.value), max(high, reading.value)
    reach = reading.scarce_student * spread / (share * (1 - share))
    ends = expit(logit(share) + np.array([-reach, reach])) * (1 - bottom) + bottom
    return float(ends[0]), float(ends[1])


def _risk(reading: Reading) -> Ends:
    """As for a ranking; without any error, from the bounds of the error rate e: the AURC is at most e (1 - log e)."""
    if float(reading.sample.sweep.errors) == 0:
        high = reading.error_bounds[1]
        return 0.0, high * (1 - float(np.log(high)))
    return _ranking(reading)


def _miscalibration(reading: Reading) -> Ends:
    """Percentiles with the bias taken off, down to 0 where a calibrated system could well show as much.

    Noise in the bins only ever adds to the ECE, in the sample and once more in each replicate. What a calibrated
    system would show comes from drawing right and wrong answers by their confidences (Bröcker and Smith 2007).
    """
    if reading.still:
        return NO_INTERVAL
    sample, value = reading.sample, reading.value
    low, high = reading.percentiles
    bias = max(float(np.nanmean(reading.drawn)) - reading.coarse, 0.0)
    count = np.rint(sample.coarse.right + sample.coarse.wrong).astype(np.int64)
    chance = sample.coarse.threshold.clip(0, 1)
    rounds = min(sample.replicates, 200)
    right = np.random.default_rng(sample.seed).binomial(count, chance, size=(rounds, count.size))
    calibrated = replace(sample.drawn, right=right, wrong=count - right, withheld=np.zeros(rounds))
    drawn = reading.measure.finish(_totals(reading.measure, calibrated))
    usual = float(np.quantile(drawn, (1 + reading.level) / 2))
    return 0.0 if value <= usual else max(0.0, min(low - 2 * bias, value)), max(high, value)


def _percentile(reading: Reading) -> Ends:
    if reading.still:
        return NO_INTERVAL
    shift, (low, high) = reading.value - reading.coarse, reading.percentiles
    return min(low + shift, reading.value), max(high + shift, reading.value)


def _totals(measure: Measure, sweep: Sweep) -> Any:
    return cell_totals(measure, sweep) if isinstance(measure, TermMeasure) else sweep


_INTERVALS: dict[IntervalKind, Callable[[Reading], Ends]] = {
    "share": _share,
    "height": _height,
    "area": _area,
    "ranking": _ranking,
    "risk": _risk,
    "miscalibration": _miscalibration,
    "percentile": _percentile,
}
