"""One system's answers read as a whole: curve, band, and every scalar with its interval."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import expit, logit

from demur.analyses.bands import Band, check_level, effective_inputs, error_band, spread_of
from demur.data.responses import Responses
from demur.errors import DataError
from demur.measures.areas import AUGRC, AURC, AUROC, EAURC, Convention, RankingSkill
from demur.measures.base import Measure, Score, TermMeasure
from demur.measures.calibration import ECE, Reliability, cell_totals, reliability
from demur.measures.curves import ErrorReturnCurve, error_return
from demur.measures.intervals import Figure, exact_binomial, expanded_percentiles, student
from demur.measures.projection import augrc_estimate
from demur.measures.registry import RETURNS
from demur.measures.resampling import Rows, Sample
from demur.measures.returns import ErrorAtNonreturn
from demur.measures.sweep import Sweep
from demur.show import Shown, Step, silent

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
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
    sample: Sample
    level: float
    region: tuple[float, float]

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
    def reliability(self) -> Reliability | None:
        """The reliability diagram's data; None where the confidences are no probabilities."""
        held = self.sample.sweep.threshold
        return reliability(self.sample.sweep) if held.size and held[0] >= 0 and held[-1] <= 1 else None

    @property
    def signature(self) -> str:
        """How the numbers were made: the signature of the area, which names the data."""
        return Score.of(AUGRC(), self.sample.sweep).signature

    def to_dict(self) -> dict[str, Any]:
        """The evaluation as plain values."""
        figures = {name: figure.to_dict() for name, figure in self.figures.items()}
        at = self.measures.get("error_at_nonreturn")
        if isinstance(at, ErrorAtNonreturn):
            figures["error_at_nonreturn"] = {
                "x": at.x,
                **({} if at.to is None else {"to": at.to}),
                **figures["error_at_nonreturn"],
            }
        for name, measure in self.measures.items():
            if isinstance(measure, AURC | EAURC):
                figures[name]["convention"] = measure.convention
        even_x, even_rate = self.curve.even_point()
        counts = {
            "n": self.n,
            "withheld": self.withheld,
            "failed": self.failed,
            "out_of_scope": self.out_of_scope,
        }
        return {
            "system": self.system,
            **({} if self.part is None else {"slice": self.part}),
            **counts,
            "range": [self.curve.floor, 1.0],
            "clustered_by_dialogue": self.clustered,
            "signature": self.signature,
            "measures": figures,
            "missed_chance_crossing": {"nonreturn": even_x, "rate": even_rate},
        }


def returns_measures(
    *, at: float | tuple[float, float] = 0.2, aurc: Convention = "trapezoid", error: float = 0.05
) -> dict[str, Measure]:
    """The measures of the error-return family with the parameters a user may set."""
    start, stop = at if isinstance(at, tuple) else (at, None)
    chosen: dict[str, Measure] = {"aurc": AURC(aurc), "e_aurc": EAURC(aurc)}
    chosen["error_at_nonreturn"] = ErrorAtNonreturn(x=start, to=stop)
    chosen["nonreturn_at_error"] = type(RETURNS["nonreturn_at_error"])(error=error)  # type: ignore[call-arg]
    return {**RETURNS, **chosen}


def evaluate(
    responses: Responses,
    *,
    measures: Mapping[str, Measure] | None = None,
    by: str | None = None,
    level: float = 0.95,
    region: tuple[float, float] = (0.0, 1.0),
    replicates: int = 1000,
    seed: int = 0,
    step: Step = silent,
) -> tuple[Evaluation, ...]:
    """Evaluate every system of a table, and with `by` every slice of it as well; `step` hears of the progress.

    >>> from demur.data.responses import responses as table
    >>> rows = [{"id": k, "target": "a", "prediction": "ab"[k % 2], "confidence": k / 10} for k in range(10)]
    >>> evaluate(table(rows))[0].figures["forced_error"].value
    0.5
    """
    check_level(level)
    chosen = dict(returns_measures() if measures is None else measures)
    parts = list(_parts(responses, by))
    evaluations = []
    for done, (name, part, frame) in enumerate(parts):
        step(f"evaluating {name}", done, len(parts))
        evaluations.append(_evaluation(name, part, frame, chosen, level, region, replicates, seed))
    return tuple(evaluations)


def _parts(responses: Responses, by: str | None) -> Iterator[tuple[str, str | None, pl.DataFrame]]:
    for system in responses.systems:
        frame = responses.of(system).frame
        yield system, None, frame
        if by is not None:
            if by not in frame.columns:
                raise DataError(f'there is no column "{by}" to slice by', fix="read the table with keep=(column,)")
            values = frame[by].cast(pl.String).fill_null("(none)")
            for value in sorted(values.unique()):
                yield system, f"{by}={value}", frame.filter(values == value)


def _evaluation(
    system: str,
    part: str | None,
    frame: pl.DataFrame,
    measures: Mapping[str, Measure],
    level: float,
    region: tuple[float, float],
    replicates: int,
    seed: int,
) -> Evaluation:
    rows = Rows.from_frame(frame)
    sample = Sample(rows, replicates, seed)
    failed = int(frame["failed"].sum())
    return Evaluation(
        system=system,
        part=part,
        n=frame.height,
        failed=failed,
        withheld=int((~rows.answered).sum()) - failed,
        out_of_scope=int(frame["out_of_scope"].sum()),
        clustered=rows.unit is not None,
        measures=measures,
        figures={key: figure_of(measure, sample, level) for key, measure in measures.items()},
        sample=sample,
        level=level,
        region=region,
    )


def figure_of(measure: Measure, sample: Sample, level: float = 0.95) -> Figure:
    """A measure's value on the rows, with an interval of the kind that suits it.

    Shares of all rows get an exact binomial interval on the effective number of inputs, the AUGRC its closed form on
    the logit scale, everything else percentiles of the bootstrap widened for small samples.
    """
    totals = _totals(measure, sample.sweep)
    value = float(measure.finish(totals))
    if np.isnan(value):
        return Figure(value, why=measure.why_undefined(totals))
    if isinstance(measure, AUGRC):
        return Figure(value, *_augrc_interval(sample.rows, sample.sweep, value, level))
    drawn = measure.finish(_totals(measure, sample.drawn))
    if measure.proportion:
        centre = np.array([value])
        replicates = np.nan_to_num(drawn, nan=value)[:, None]
        effective = effective_inputs(centre, replicates, spread_of(sample.rows))[0]
        if not 0 < value < 1:
            effective *= measure.trials(totals)
        low, high = exact_binomial(value, effective, student(level, sample.rows.units - 1))
        return Figure(value, float(low), float(high))
    if np.nanmin(drawn) == np.nanmax(drawn):
        return Figure(value, *_bounds_without_spread(measure, sample, level))
    if isinstance(measure, ECE):
        return Figure(value, *_ece_interval(measure, sample, value, drawn, level))
    if isinstance(measure, AURC | EAURC | AUROC | RankingSkill):
        return Figure(value, *_ranking_interval(measure, sample, value, drawn, level))
    shift = value - float(measure.finish(_totals(measure, sample.coarse)))
    low_end, high_end = expanded_percentiles(drawn + shift, level, sample.rows.units)
    return Figure(value, min(low_end, value), max(high_end, value))


def _totals(measure: Measure, sweep: Sweep) -> Any:
    return cell_totals(measure, sweep) if isinstance(measure, TermMeasure) else sweep


def _augrc_interval(rows: Rows, sweep: Sweep, value: float, level: float) -> tuple[float, float]:
    reach = float(sweep.answered / sweep.total)
    top = reach**2 / 2
    estimate = augrc_estimate(rows, sweep)
    if not estimate.error > 0 or not 0 < value < top * (1 - 1e-12):
        return _area_bounds(rows, sweep, level)
    spread = student(level, _scarcer(sweep, rows) - 1) * estimate.error / (value * (1 - value / top))
    middle = np.log(value / (top - value))
    return float(top * expit(middle - spread)), float(top * expit(middle + spread))


def _ranking_interval(
    measure: Measure, sample: Sample, value: float, drawn: Array, level: float
) -> tuple[float, float]:
    """The spread of the replicates on the logit scale, with Student's t for the scarcer kind of answer.

    How well answers are ranked is known no better than from the few wrong (or right) ones among them.
    """
    bottom = -1.0 if isinstance(measure, RankingSkill) else 0.0
    share = (value - bottom) / (1 - bottom)
    spread = float(np.nanstd(drawn)) / (1 - bottom)
    if not 0 < share < 1 or np.isnan(drawn).mean() > 0.1:
        return expanded_percentiles(drawn, level, sample.rows.units)
    reach = student(level, _scarcer(sample.sweep, sample.rows) - 1) * spread / (share * (1 - share))
    ends = expit(logit(share) + np.array([-reach, reach])) * (1 - bottom) + bottom
    return float(ends[0]), float(ends[1])


def _ece_interval(measure: ECE, sample: Sample, value: float, drawn: Array, level: float) -> tuple[float, float]:
    """Percentiles with the bias of the ECE taken off, down to 0 where a calibrated system could well show as much.

    Noise in the bins only ever adds to the ECE, in the sample and once more in each replicate. What a calibrated
    system would show comes from drawing right and wrong answers by their confidences (Bröcker and Smith 2007).
    """
    low, high = expanded_percentiles(drawn, level, sample.rows.units)
    bias = max(float(np.nanmean(drawn)) - float(measure.finish(cell_totals(measure, sample.coarse))), 0.0)
    rng = np.random.default_rng(sample.seed)
    count = np.rint(sample.coarse.right + sample.coarse.wrong).astype(np.int64)
    right = rng.binomial(count, sample.coarse.threshold.clip(0, 1), size=(sample.replicates, count.size))
    calibrated = replace(sample.drawn, right=right, wrong=count - right, withheld=np.zeros(sample.replicates))
    usual = float(np.quantile(measure.finish(cell_totals(measure, calibrated)), (1 + level) / 2))
    return 0.0 if value <= usual else max(0.0, min(low - 2 * bias, value)), max(high, value)


def _bounds_without_spread(measure: Measure, sample: Sample, level: float) -> tuple[float, float]:
    """Bounds where all replicates agree: for AURC without errors from those of the error rate, else none.

    With error rate e the AURC is largest when all errors are most confident: e (1 - log e).
    """
    if isinstance(measure, AURC | EAURC) and float(sample.sweep.errors) == 0:
        n = min(sample.rows.effective_n, sample.rows.units)
        high = float(exact_binomial(0.0, n, student(level, sample.rows.units - 1))[1])
        return 0.0, high * (1 - float(np.log(high)))
    return float("nan"), float("nan")


def _scarcer(sweep: Sweep, rows: Rows) -> float:
    """How many answers there are of the scarcer kind, right or wrong; no more than there are units."""
    return min(float(sweep.errors), float(sweep.answered - sweep.errors), rows.units)


def _area_bounds(rows: Rows, sweep: Sweep, level: float) -> tuple[float, float]:
    """Bounds of the area where the sample holds no error (or nothing else): from those of the error rate.

    With error rate e the area lies between e^2/2, all errors least confident, and e (1 - e/2), all most confident.
    """
    error = float(sweep.errors / sweep.total)
    low, high = exact_binomial(error, min(rows.effective_n, rows.units), student(level, rows.units - 1))
    return float(low) ** 2 / 2, float(high) * (1 - float(high) / 2)
