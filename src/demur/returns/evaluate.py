"""The evaluation of one system: its curve, its band, and every measure with an interval."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from demur.core.arrays import Array
from demur.core.io.columns import DEPLOYED, EVERYTHING, MOST_SLICES, STRATUM, nearest
from demur.core.show.numbers import first_names, percent
from demur.core.show.results import Results, Shown, Step, plain, silent
from demur.core.stats.calibration import (
    ROUNDING,
    BinnedECE,
    Bins,
    CalibrationTest,
    DebiasedECE,
    Reliability,
    calibration_test,
    cell_totals,
    consistent_reliability,
    outcomes_as_stated,
    why_no_probabilities,
)
from demur.core.stats.intervals import (
    Figure,
    check_level,
    exact_binomial,
    expanded_percentiles,
    expit,
    logit,
    normal,
    quantile,
    student,
)
from demur.core.stats.measure import Measure, Score, SweepMeasure, TermMeasure
from demur.core.stats.resampling import Rows, Sample
from demur.core.stats.sweep import Sweep
from demur.errors import DataError
from demur.returns.curves import (
    GRID,
    HEAP,
    Band,
    CutoffPoint,
    ErrorReturnCurve,
    Heaps,
    Joined,
    at_most,
    effective_inputs,
    error_band,
    error_return,
)
from demur.returns.judging import slice_values
from demur.returns.measures import (
    AUGRC,
    AURC,
    EAURC,
    RETURNS,
    Convention,
    ErrorAtNonreturn,
    NonreturnAtError,
    QALDPrecision,
    QALDRecall,
    augrc_estimate,
    curve_at,
)
from demur.returns.scope import SCOPE, VIEWS, ScopeMeasure, View
from demur.returns.table import Responses
from demur.returns.tally import Tally, tally_sample

Ends = tuple[float, float]

MOST_NOTED = 5
"""Systems up to which each has a note of its own on its confidences."""

TOO_FEW = "no interval: too few inputs tell how much it varies"

ONE_CONFIDENCE = "no interval: every answer has the same confidence, which makes the value what it is"

FEWEST_PLACES = 15
"""Errors, and one more, up to which the interval of the AURC is not widened further."""

NOT_ALIKE = "it supposes independent answers that count alike, not dialogues or weights"


@dataclass(frozen=True, eq=False)
class _MeasureReading:
    """One measure read from one sample: its value, its replicates, and each kind of interval (`IntervalKind`)."""

    measure: Measure
    sample: Sample
    level: float

    @cached_property
    def totals(self) -> Any:
        sample = self.sample
        return sample.totals(self.measure) if isinstance(self.measure, TermMeasure) else sample.sweep

    @cached_property
    def value(self) -> float:
        if isinstance(self.measure, SweepMeasure):
            return float(self.measure.value_of(self.totals))
        return float(self.measure.finish(self.totals))

    @cached_property
    def replicates(self) -> Array:
        return self.values_of(self.sample.drawn)

    @cached_property
    def coarse(self) -> float:
        """The value at the levels of the replicates, around which they lie."""
        return float(self.values_of(self.sample.coarse))

    def values_of(self, sweep: Sweep) -> Array:
        """The measure of sweeps at the levels of the replicates."""
        if isinstance(self.measure, TermMeasure):
            return self.measure.finish(cell_totals(self.measure, sweep))
        return self.measure.value_of(sweep) if isinstance(self.measure, SweepMeasure) else self.measure.finish(sweep)

    @property
    def student(self) -> float:
        return student(self.level, self.sample.spread.units - 1)

    @property
    def scarce_student(self) -> float:
        """Student's critical value for the number of answers of the scarcer kind, right or wrong."""
        return student(self.level, min(self.sample.scarce, self.sample.spread.units) - 1)

    def scarce_units(self, least: int) -> float:
        """One more than there are answers of the scarcer kind, but for `least`; no more than there are units."""
        return min(max(self.sample.scarce + 1, least), self.sample.spread.units)

    @property
    def error_bounds(self) -> Ends:
        """Bounds of the error rate when every answer is returned."""
        sweep = self.sample.sweep
        return _binomial(float(sweep.errors / sweep.total), self.sample.spread.most, self.student)

    def share(self) -> Ends:
        """Exact binomial, on the rows themselves where these are independent and count alike."""
        if not self.sample.alike:
            return self.height()
        n = self.sample.n * self.measure.trials(self.totals)
        return _binomial(self.value, n, normal(self.level))

    def height(self) -> Ends:
        """Exact binomial on the number of independent inputs that would be as uncertain as the replicates."""
        value, sample = self.value, self.sample
        drawn = np.nan_to_num(self.replicates, nan=value)[:, None]
        effective = float(effective_inputs(np.array([value]), drawn, sample.spread)[0])
        if not 0 < value < 1:
            effective *= self.measure.trials(self.totals)
        return _binomial(value, effective, self.student)

    def area(self) -> Ends:
        """The closed form of the AUGRC on the logit scale.

        Where the sample holds no error, or nothing else, the bounds follow from those of the error rate e: the area
        lies between e^2/2, all errors least confident, and e (1 - e/2), all most confident.
        """
        value, sample = self.value, self.sample
        top = float(sample.sweep.answered / sample.sweep.total) ** 2 / 2
        estimate = augrc_estimate(sample)
        if not estimate.error > 0 or not 0 < value < top * (1 - 1e-12):
            low, high = self.error_bounds
            return low**2 / 2, high * (1 - high / 2)
        reach = self.scarce_student * estimate.error / (value * (1 - value / top))
        middle = float(logit(value / top))
        return float(top * expit(middle - reach)), float(top * expit(middle + reach))

    def inverse(self) -> Ends:
        """Where the bounds of the error rate at a single non-return rate pass the error rate asked for.

        Where tied answers go together the cutoff that keeps the limit may withhold the rest of a level as well.
        """
        assert isinstance(self.measure, NonreturnAtError)
        low, high = (self._passes(self.measure.error, end) for end in (0, 1))
        if self.measure.ties == "together":
            high = self._end_of_level(high)
        return min(low, self.value), max(high, self.value)

    def _passes(self, error: float, end: int) -> float:
        """The non-return rate from which the lower or upper bound of the error rate is at most an error rate.

        Where a bound does not fall all along, as may be in a handful of rows, it is one of the rates where it passes.
        """
        sample = self.sample
        x = np.linspace(float(sample.sweep.withheld / sample.sweep.total), 1.0, GRID)
        heights = curve_at(sample.sweep, x)
        kept = sample.drawn.values
        if "grid" not in kept:
            kept["grid"] = curve_at(sample.drawn, x)
        inputs = effective_inputs(heights, kept["grid"], sample.spread)

        def bound(place: int) -> float:
            return min(_binomial(float(heights[place]), float(inputs[place]), self.student)[end], 1 - float(x[place]))

        place = bisect_left(range(GRID), -error, key=lambda place: -bound(place))
        if place == 0:
            return float(x[0])
        above, below = bound(place - 1), bound(place)
        return float(x[place] - (x[place] - x[place - 1]) * (error - below) / (above - below))

    def _end_of_level(self, x: float) -> float:
        """The upper bound of the non-return rate of the first cutoff from x on; no further than the level is wide."""
        rates = self.sample.sweep.rates[0]
        place = min(int(np.searchsorted(rates, x)), rates.size - 1)
        rate, width = float(rates[place]), float(rates[place] - rates[max(place - 1, 0)])
        return min(_binomial(rate, self.sample.spread.most, self.student)[1], x + width, 1.0)

    def ranking(self) -> Ends:
        """Percentiles of smoothed replicates, widened as Student's t is for the number of the scarcer kind of answer.

        How well answers are ranked is known no better than from the few wrong (or right) ones among them.
        """
        return self._smoothed_ends(self.values_of(self.sample.smoothed), self.scarce_units(1))

    def risk(self) -> Ends:
        """Percentiles of smoothed replicates, widened for few errors; without any, by the bounds of the error rate e.

        The AURC is then at most e (1 - log e), where all errors are the most confident answers. It varies with the
        place of each error; of fewer than a dozen the smoothing allows for that.
        """
        if float(self.sample.sweep.errors) == 0:
            high = self.error_bounds[1]
            return 0.0, high * (1 - float(np.log(high)))
        return self._smoothed_ends(self.values_of(self.sample.smoothed), self.scarce_units(FEWEST_PLACES))

    def score(self) -> Ends:
        """Percentiles of smoothed replicates, widened for few units."""
        return self._smoothed_ends(self.values_of(self.sample.smoothed), self.sample.spread.units)

    def gain(self) -> Ends:
        """As for a score, but at the lower end with half a wrong answer more among the most confident.

        A single such answer may cost much, and none may have been seen yet. It only lowers the gain, so that the upper
        end does without it.
        """
        sample, drawn = self.sample, self.sample.smoothed
        wrong = np.array(drawn.wrong, dtype=np.float64)
        rng = np.random.default_rng([sample.seed, 3])
        wrong[:, -1:] += sample.redundancy * rng.standard_gamma(0.5, size=(wrong.shape[0], 1))
        added = Sweep(drawn.threshold, drawn.right, wrong, drawn.withheld, drawn.n)
        (low, high), above = self._smoothed_ends(self.values_of(added), sample.spread.units), self.score()[1]
        return low, max(high, above)

    def _smoothed_ends(self, drawn: Array, units: float) -> Ends:
        shift, (low, high) = self.value - self.coarse, expanded_percentiles(drawn, self.level, units)
        return min(low + shift, self.value), max(high + shift, self.value)

    def miscalibration(self) -> Ends:
        """Percentiles with the bias taken off, down to 0 where a calibrated system could well show as much.

        Noise in the bins only ever adds to the ECE, in the sample and once more in each replicate. What a calibrated
        system would show comes from drawing right and wrong answers by their confidences (Bröcker and Smith 2007).
        """
        if isinstance(self.measure, DebiasedECE):  # an estimate of what the ECE estimates
            low, high = _MeasureReading(BinnedECE(self.measure.bins), self.sample, self.level).miscalibration()
            return min(low, self.value), max(high, self.value)
        sample, value = self.sample, self.value
        drawn = self.values_of(sample.smoothed)
        low, high = expanded_percentiles(drawn, self.level, sample.spread.units)
        bias = max(float(np.nanmean(drawn)) - self.coarse, 0.0)
        kept: dict[str, Sweep] = sample.coarse.values
        if "as stated" not in kept:
            kept["as stated"] = outcomes_as_stated(sample, min(sample.replicates, 200))
        usual = quantile(self.values_of(kept["as stated"]), (1 + self.level) / 2)
        return 0.0 if value <= usual else max(0.0, min(low - 2 * bias, value)), max(high, value)


def _binomial(value: float, n: float, critical: float) -> Ends:
    low, high = exact_binomial(value, n, critical)
    return float(low), float(high)


def figure_of(measure: Measure, sample: Sample, level: float = 0.95) -> Figure:
    """A measure's value on the rows, with the kind of interval that the measure asks for."""
    if isinstance(measure, SweepMeasure):
        measure = measure.settled(sample.sweep)
    reading = _MeasureReading(measure, sample, level)
    if measure.independent and not sample.alike:
        return Figure(float("nan"), why=NOT_ALIKE)
    if np.isnan(reading.value):
        return Figure(reading.value, why=measure.why_undefined(reading.totals))
    if measure.interval == "ranking" and sample.sweep.threshold.size < 2:
        return Figure(reading.value, why=ONE_CONFIDENCE)
    ends = getattr(reading, measure.interval)()
    return Figure(reading.value, why=TOO_FEW) if np.isnan(ends).any() else Figure(reading.value, *ends)


@dataclass(frozen=True, slots=True)
class StratifiedSample:
    """Rows that were drawn by strata, and how many inputs they stand for."""

    rows: int
    inputs: float
    strata: int

    def note(self, name: str) -> str:
        """What the rows of a system stand for, as a sentence.

        >>> StratifiedSample(300, 99_999.6, 10).note("guide")
        'guide: 300 rows stand for 100,000 inputs; they were drawn by 10 strata, and so are the intervals'
        """
        drawn = f"they were drawn by {self.strata:,} strata, and so are the intervals"
        return f"{name}: {self.rows:,} rows stand for {self.inputs:,.0f} inputs; {drawn}"

    def to_dict(self) -> dict[str, Any]:
        """The sample as plain values."""
        return {"rows": self.rows, "stand_for": round(self.inputs, 6), "strata": self.strata}


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Shown):
    """What the answers of one system show: its curve with bands, and its measures with intervals."""

    system: str
    part: str | None
    """The slice, as `column=value`; None for all rows."""
    n: int
    failed: int
    withheld: int
    out_of_scope: int
    clustered: bool
    measures: Mapping[str, Measure]
    figures: Mapping[str, Figure]
    randomised: Mapping[str, Figure]
    """Readings of the curve at a point as they would be if each of the tied answers were returned by chance."""
    sample: Sample
    level: float
    region: tuple[float, float]
    deployed: float | None = None
    """The threshold at which the system is in use, where the log says it."""

    @property
    def name(self) -> str:
        """System and slice in one."""
        return self.system if self.part is None else f"{self.system} [{self.part}]"

    @cached_property
    def curve(self) -> ErrorReturnCurve:
        """The exact error-return curve."""
        return error_return(self.sample.sweep, name=self.name)

    @cached_property
    def band(self) -> Band:
        """The curve's pointwise and simultaneous bands."""
        return error_band(self.sample, name=self.name, level=self.level, region=self.region)

    @cached_property
    def heaps(self) -> Heaps | None:
        """How many confidences there are, and the most frequent; None where they were joined, or there are none."""
        return Heaps.of(self.sample.sweep)

    @cached_property
    def joined(self) -> Joined | None:
        """How exact the curve is between its cutoffs; None where all confidences were kept apart."""
        return Joined.of(self.sample.sweep)

    @property
    def stands_for(self) -> StratifiedSample | None:
        """How many inputs the rows stand for; None where they are no stratified sample."""
        strata = self.sample.source.strata
        return None if strata is None else StratifiedSample(self.n, float(strata.totals.sum()), strata.sizes.size)

    @property
    def deployed_point(self) -> AtCutoff | None:
        """What the deployed threshold withholds, and how many errors it lets pass."""
        if self.deployed is None:
            return None
        return AtCutoff(self.system, self.part or "", self.n, self.deployed, *self.curve.at_threshold(self.deployed))

    @property
    def size_text(self) -> str:
        """How many inputs the numbers are about, and how many rows tell of them where those are a sample."""
        sample = self.stands_for
        return f"{self.n:,} inputs" if sample is None else f"{sample.inputs:,.0f} inputs ({self.n:,} of them judged)"

    @property
    def probabilistic(self) -> bool:
        """Whether all confidences are probabilities, but for rounding."""
        sweep = self.sample.sweep
        return bool(sweep.threshold.size and sweep.threshold[0] >= -ROUNDING and sweep.highest[-1] <= 1 + ROUNDING)

    @cached_property
    def reliability(self) -> Reliability | None:
        """The reliability diagram's data; None where the confidences are no probabilities."""
        return consistent_reliability(self.sample, level=self.level) if self.has_reliability else None

    @cached_property
    def has_reliability(self) -> bool:
        """Whether the confidences are probabilities, so that there is a reliability diagram."""
        return why_no_probabilities(Bins.of(self.sample.sweep, 1, "width")) is None

    @cached_property
    def calibration_test(self) -> CalibrationTest:
        """Spiegelhalter's test of whether the confidences are the chances of being right."""
        return calibration_test(self.sample)

    @cached_property
    def signature(self) -> str:
        """How the numbers were made: the signature of the area, which names the data."""
        return Score.of(AUGRC(), self.sample.sweep).signature

    def to_dict(self) -> dict[str, Any]:
        """The evaluation as plain values."""
        figures = {name: figure.to_dict() for name, figure in self.figures.items()}
        for name, measure in self.measures.items():
            if isinstance(measure, ErrorAtNonreturn | NonreturnAtError):
                figures[name] = self._point_values(name, measure, figures[name])
            elif isinstance(measure, AURC):
                figures[name]["convention"] = measure.convention
        even_x, even_rate = self.curve.even_point()
        deployed = self.deployed_point
        return {
            "system": self.system,
            **({} if self.part is None else {"slice": self.part}),
            **{name: getattr(self, name) for name in ("n", "withheld", "failed", "out_of_scope")},
            **({} if self.stands_for is None else {"sample": self.stands_for.to_dict()}),
            "range": [self.curve.floor, 1.0],
            **({} if self.heaps is None else {"confidences": plain(asdict(self.heaps))}),
            **({} if self.joined is None else {"joined": asdict(self.joined)}),
            **({} if deployed is None else {"deployed": {name: getattr(deployed, name) for name in _AT_CUTOFF}}),
            "clustered_by_dialogue": self.clustered,
            "signature": self.signature,
            "measures": figures,
            "calibration_test": self.calibration_test.to_dict(),
            "missed_chance_crossing": {"nonreturn": even_x, "rate": even_rate},
        }

    def _point_values(self, name: str, measure: ErrorAtNonreturn | NonreturnAtError, value: Any) -> dict[str, Any]:
        """What was asked, the figure, the cutoff that it is of, and what randomising among ties would give."""
        reached: dict[str, Any] = {}
        if isinstance(measure, NonreturnAtError):
            point: CutoffPoint | None = self.curve.point_for_error(measure.error)
            asked, rate = {"limit": measure.error}, "error"
        else:
            point, rate = None if measure.to is not None else self.curve.point_at(measure.x), "nonreturn"
            asked = {"x": measure.x} if measure.to is None else {"x": measure.x, "to": measure.to}
        if point is not None:
            reached = plain({rate: getattr(point, rate), "threshold": point.threshold})
        randomised = {"interpolated": self.randomised[name].to_dict()} if name in self.randomised else {}
        return {**asked, **value, **reached, **randomised}


class Evaluations(Results[Evaluation]):
    """The evaluations of one or more systems and slices, which show themselves together."""

    with_curves = False
    """Whether the plain values hold the curves and their bands too."""
    sweep_file: Callable[[], Any] | None = None
    """Makes the totals that can be merged with those of other logs; None where nobody can ask for them."""

    @property
    def notes(self) -> tuple[str, ...]:
        """How exact the curves are, and what else there is to know of how they were made."""
        sampled = [(one.name, one.stands_for) for one in self if one.stands_for is not None]
        drawn = (sample.note(name) for name, sample in sampled)
        return (*drawn, *joined_notes(self), *heap_notes(self), *super().notes)

    @property
    def sliced(self) -> bool:
        """Whether there are slices among them."""
        return any(one.part is not None for one in self)

    def frame(self) -> pl.DataFrame:
        """Every measure of every system as a table, one row each."""
        rows = [
            {"system": one.system, "slice": one.part, "n": one.n, "measure": name, **figure.to_dict()}
            for one in self
            for name, figure in one.figures.items()
        ]
        columns = ("system", "slice", "n", "measure", "value", "low", "high")
        return pl.DataFrame(rows, infer_schema_length=None).select(columns)

    def to_dict(self) -> dict[str, Any]:
        """The evaluations as plain values: all that `demur score --json` prints."""
        systems = [one.to_dict() for one in self]
        if self.with_curves:
            lines = [{"curve": one.curve.to_dict(), "band": one.band.to_dict()} for one in self]
            systems = [{**system, **drawn} for system, drawn in zip(systems, lines, strict=True)]
        slices = [asdict(one) for one in slices_at_one_threshold(self)]
        return {
            "systems": systems,
            **({"slices_at_one_threshold": slices} if self.sliced else {}),
            "notes": list(self.notes),
            "warnings": list(self.warnings),
        }


def heap_notes(evaluations: Sequence[Evaluation]) -> tuple[str, ...]:
    """How few confidences the systems have, where one of them is that of many inputs."""
    known = [(one.name, one.heaps) for one in evaluations if one.part is None and one.heaps is not None]
    heaped = [(name, heaps) for name, heaps in known if heaps.matter and heaps.distinct > 1]
    if len(heaped) <= MOST_NOTED:
        return tuple(heaps.note(name) for name, heaps in heaped)
    named = first_names([f"{name} ({heaps.distinct:,})" for name, heaps in heaped], 3, quote="")
    lead = f"{len(heaped)} of {len(known)} systems give {percent(HEAP)} or more of the inputs one confidence"
    return (f"{lead}, so that no threshold reaches some shares; distinct confidences: {named}",)


def joined_notes(evaluations: Sequence[Evaluation]) -> tuple[str, ...]:
    """How exact the curves are that join confidences: a sentence for each system, and one for all slices."""
    known = [(one, one.joined) for one in evaluations if one.joined is not None]
    whole = [joined.note(one.name) for one, joined in known if one.part is None]
    slices = [joined for one, joined in known if one.part is not None]
    if slices:
        x, y = max(part.x_within for part in slices), max(part.y_within for part in slices)
        whole.append(f"the curves of slices are off by at most {at_most(x)} in non-return and {at_most(y)} in error")
    return tuple(whole)


@dataclass(frozen=True, slots=True)
class AtCutoff:
    """What one threshold, chosen for a whole system, does to one of its slices, or to the whole."""

    system: str
    part: str
    n: int
    threshold: float
    nonreturn: float
    error: float


_AT_CUTOFF = ("threshold", "nonreturn", "error")


def slices_at_one_threshold(evaluations: Sequence[Evaluation]) -> tuple[AtCutoff, ...]:
    """Each slice at the threshold that withholds the share of interest of its whole system.

    A system in use has one threshold, so a slice is not withheld as much as the whole: hard slices are withheld more.
    """
    found: list[AtCutoff] = []
    for whole in (one for one in evaluations if one.part is None):
        threshold = whole.curve.threshold_at(getattr(whole.measures.get("error_at_nonreturn"), "x", 0.2))
        if threshold is not None:
            slices = [one for one in evaluations if one.system == whole.system and one.part is not None]
            rates = [one.curve.at_threshold(threshold) for one in slices]
            parts = zip(slices, rates, strict=True)
            found += [AtCutoff(one.system, str(one.part), one.n, threshold, *rate) for one, rate in parts]
    return tuple(found)


def returns_measures(
    *,
    at: float | tuple[float, float] = 0.2,
    aurc: Convention = "mean",
    error: float = 0.05,
    threshold: float | None = None,
) -> dict[str, Measure]:
    """The measures of the error-return family with the parameters a user may set."""
    start, stop = at if isinstance(at, tuple) else (at, None)
    cutoff = -math.inf if threshold is None else threshold
    areas, qald = (AURC(aurc), EAURC(aurc)), (QALDPrecision(cutoff), QALDRecall(cutoff))
    chosen = (*areas, ErrorAtNonreturn(x=start, to=stop), NonreturnAtError(error=error), *qald)
    return {**RETURNS, **{measure.name: measure for measure in chosen}, **SCOPE}


_Part = tuple[str | None, pl.DataFrame]
"""The name of a slice, None for a whole system, and its rows."""


def evaluate(
    systems: Responses | Mapping[str, pl.DataFrame] | Sequence[Tally],
    *,
    measures: Mapping[str, Measure] | None = None,
    by: str | None = None,
    level: float = 0.95,
    region: tuple[float, float] = (0.0, 1.0),
    replicates: int = 1000,
    seed: int = 0,
    step: Step = silent,
    read: Mapping[str, Rows] = MappingProxyType({}),
) -> Evaluations:
    """Evaluate every system of a table, of judged tables by name, or of tallies where only these are at hand.

    With `by` every slice of a table is evaluated as well. `step` is called with the progress. The rows of systems in
    `read` are not taken from their tables again.

    >>> from demur.core.stats.sweep import Sweep
    >>> from demur.returns.table import responses as table
    >>> rows = [{"id": k, "target": "a", "prediction": "ab"[k % 2], "confidence": k / 10} for k in range(10)]
    >>> evaluate(table(rows))[0].figures["forced_error"].value
    0.5
    >>> tally = Tally("guide", None, Sweep.of([0.9, 0.4], [True, False]), 0, 0, 0, squares=2.0)
    >>> evaluate([tally])[0].figures["forced_error"].value
    0.5
    """
    check_level(level)
    asked = dict(returns_measures() if measures is None else measures)
    if isinstance(systems, Responses):
        systems = {name: systems.of(name).frame for name in systems.systems}
    parts: list[tuple[str, _Part | Tally]]
    parts = list(_parts(systems, by)) if isinstance(systems, Mapping) else [(one.system, one) for one in systems]
    evaluations = []
    for done, (name, source) in enumerate(parts):
        step(f"evaluating {name}", done, len(parts))
        if isinstance(source, Tally):
            part, sample = source.part, tally_sample(source, replicates, seed)
            counts: dict[str, Any] = {kind: getattr(source, kind) for kind in ("failed", "withheld", "out_of_scope")}
        else:
            part, frame = source
            rows = read[name] if part is None and name in read else Rows.from_frame(frame)
            sample, unanswered = Sample(rows, replicates, seed), int((~frame["answered"]).sum())
            counts = {kind: int(frame[kind].sum()) for kind in ("failed", "out_of_scope")}
            counts["withheld"] = unanswered - counts["failed"]
            counts["deployed"] = frame[DEPLOYED].drop_nulls().first() if DEPLOYED in frame.columns else None
        scopes = _scope_samples(source, replicates, seed) if counts["out_of_scope"] else {}
        own = {key: one for key, one in asked.items() if not isinstance(one, ScopeMeasure) or one.view in scopes}
        figures = {
            key: figure_of(one, scopes[one.view] if isinstance(one, ScopeMeasure) else sample, level)
            for key, one in own.items()
        }
        randomised = {
            key: figure_of(replace(measure, ties="randomise"), sample, level)
            for key, measure in asked.items()
            if isinstance(measure, ErrorAtNonreturn | NonreturnAtError)
        }
        if part is not None:  # there may be many slices, and hardly any is drawn with its band
            sample.forget()
        how: dict[str, Any] = {"measures": own, "figures": figures, "randomised": randomised, "level": level}
        how |= {"region": region, **counts}
        clustered = sample.spread.clustered
        evaluations.append(Evaluation(name, part, sample.n, clustered=clustered, sample=sample, **how))
    return Evaluations(evaluations)


_MADE_HERE = ("system", "answered", "right", "failed", "out_of_scope", "weight", STRATUM, DEPLOYED)


def _no_slices(by: str, frame: pl.DataFrame) -> DataError:
    if by != EVERYTHING:
        return DataError(f'there is no column "{by}" to slice by', fix="read the table with keep=(column,)")
    named = [one.name for one in frame if one.name not in _MADE_HERE and one.null_count() < frame.height]
    return DataError(f'there is no column "{by}" to slice by; {nearest(by, named)}')


def _scope_samples(source: _Part | Tally, replicates: int, seed: int) -> dict[View, Sample]:
    """The rows by scope, as what measures of scope read."""
    if isinstance(source, Tally):
        return {view: tally_sample(tally, replicates, seed) for view, tally in source.by_scope.items()}
    frame = nw.from_native(source[1].drop(STRATUM, strict=False))
    return {name: Sample(Rows.from_frame(view(frame).to_native()), replicates, seed) for name, view in VIEWS.items()}


def _parts(frames: Mapping[str, pl.DataFrame], by: str | None) -> Iterator[tuple[str, _Part]]:
    """The tables of all systems and, with `by`, of their slices, which are named `column=value`."""
    for system, frame in frames.items():
        yield system, (None, frame)
        if by is not None:
            for part, rows in slice_frames(frame, by):
                yield system, (part, rows)


def slice_frames(frame: pl.DataFrame, by: str) -> Iterator[tuple[str, pl.DataFrame]]:
    """The rows of each value of a column, named `column=value`, without strata, whose sizes in a slice are chance."""
    if by not in frame.columns:
        raise _no_slices(by, frame)
    values, frame = slice_values(frame, by), frame.drop(STRATUM, strict=False)
    if values.n_unique() > MOST_SLICES:
        raise too_many_slices(by, values.n_unique())
    for value in sorted(values.unique()):
        yield f"{by}={value}", frame.filter(values == value)


def too_many_slices(column: str, values: int) -> DataError:
    """The fault of a column with too many values to slice by."""
    return DataError(
        f'"{column}" has {values:,} values, too many to slice by (at most {MOST_SLICES})',
        fix="slice by a column that groups the inputs, such as a domain or a condition",
    )
