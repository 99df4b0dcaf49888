"""Is the difference between systems real, and where: paired curves, areas, operating points, and who leads where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.show.results import Shown, Step, plain, silent
from demur.core.stats.intervals import check_level, holm, mcnemar, normal
from demur.core.stats.resampling import Rows, Sample, replicate_together
from demur.errors import UsageError
from demur.returns.curves import (
    DifferenceBand,
    ErrorReturnCurve,
    check_region,
    difference_bands,
    error_return,
)
from demur.returns.evaluate import Evaluation, evaluate
from demur.returns.measures import Estimate, augrc_difference
from demur.returns.ranking import RankingRegion, ranking
from demur.returns.table import Pairing, Responses, pair

Verdict = Literal["a dominates", "b dominates", "crossing", "no difference shown"]
Side = Literal["a", "b"]

POWER = 0.8
"""Chance of showing a difference that the number of inputs needed is reckoned for."""

NEAR_ENOUGH = 0.01
"""How far apart the non-return rates of two systems may lie for the exact test."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A range of non-return rates over which one system is shown to be better."""

    start: float
    stop: float
    better: Side


@dataclass(frozen=True, slots=True)
class Crossing:
    """Where two curves cross, and the range in which the bands leave the crossing."""

    x: float
    y: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class McNemar:
    """Inputs on which only one of the two errs, when both withhold about the same share, and the exact test."""

    x: float
    nonreturn_a: float
    nonreturn_b: float
    a_only: int
    b_only: int
    p: float


@dataclass(frozen=True, eq=False)
class PairComparison(Shown):
    """What two systems' curves show against each other."""

    a: str
    b: str
    paired: bool
    n: int
    verdict: Verdict
    intervals: tuple[Interval, ...]
    crossings: tuple[Crossing, ...]
    area: Estimate
    p_adjusted: float
    start: float
    band: DifferenceBand
    mcnemar: McNemar | str
    """The test, or why there is none."""
    inputs_needed: int | None
    curves: tuple[ErrorReturnCurve, ErrorReturnCurve]
    level: float

    @property
    def everywhere(self) -> bool:
        """Whether one system is shown better wherever either still errs more than once in 200 inputs."""
        if len(self.intervals) != 1:
            return False
        x, (only,) = self.band.x, self.intervals
        erring = np.maximum(*(curve.error_at(x) for curve in self.curves)) > 0.005
        return bool(((x >= only.start) & (x <= only.stop))[erring].all())

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain values."""
        low, high = self.area.interval(self.level)
        area = {"value": self.area.value, "low": low, "high": high, "p": self.area.p, "p_adjusted": self.p_adjusted}
        test, untested = (None, self.mcnemar) if isinstance(self.mcnemar, str) else (asdict(self.mcnemar), None)
        values: dict[str, Any] = plain(
            {
                **{name: getattr(self, name) for name in ("a", "b", "paired", "n", "verdict")},
                "range": [self.start, 1.0],
                "intervals": [{"from": part.start, "to": part.stop, "better": part.better} for part in self.intervals],
                "crossings": [asdict(crossing) for crossing in self.crossings],
                "augrc_difference": area,
                "mcnemar": test,
                **({} if untested is None else {"mcnemar_why": untested}),
                "inputs_needed": self.inputs_needed,
            }
        )
        return values

    def frame(self) -> pl.DataFrame:
        """The difference curve with its band as a table."""
        band = self.band
        table = pl.DataFrame({"nonreturn": band.x, "difference": band.difference, "low": band.low, "high": band.high})
        return table.select(pl.lit(self.a).alias("a"), pl.lit(self.b).alias("b"), pl.all())


@dataclass(frozen=True, eq=False)
class Comparison(Shown):
    """Two or more systems against each other."""

    evaluations: tuple[Evaluation, ...]
    pairs: tuple[PairComparison, ...]
    ranking: tuple[RankingRegion, ...]
    note: str
    dropped: Mapping[str, int]
    level: float
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain values."""
        ranking = []
        for lead in self.ranking:
            others = {"also": list(lead.also), "absent": list(lead.absent)}
            ranking.append({"from": lead.start, "to": lead.stop, "best": lead.best, **others, "gaps": lead.gaps})
        return {
            "pairs": [pair.to_dict() for pair in self.pairs],
            "ranking": ranking,
            "systems": [evaluation.to_dict() for evaluation in self.evaluations],
            "note": self.note,
            "dropped": dict(self.dropped),
            "level": self.level,
            "notes": list(self.notes),
            "warnings": list(self.warnings),
        }


def compare(
    answers: Responses | Pairing,
    *,
    systems: tuple[str, ...] | None = None,
    matched: bool = False,
    unpaired: bool = False,
    at: float = 0.2,
    level: float = 0.95,
    region: tuple[float, float] = (0.0, 1.0),
    replicates: int = 1000,
    seed: int = 0,
    step: Step = silent,
    **options: Any,
) -> Comparison:
    """Compare systems, paired by id where the data has ids, over a region of non-return rates or all of them.

    One critical value serves all pairs and all non-return rates, so the chance of any false "better" is meant
    to be at most 1 - level; p-values of the areas are given plain and corrected by Holm's method. Rows that are
    side by side already come as a `Pairing`; further options go to `evaluate`.
    """
    if isinstance(answers, Pairing):
        pairing = answers
    else:
        pairing = pair(answers, systems=systems, matched=matched, unpaired=unpaired)
    del answers  # with its texts, which take most of the room
    check_level(level)
    if not 0 <= at <= 1:
        raise UsageError(f"an operating point is a non-return rate in [0, 1], such as 0.2; got {at:g}")
    check_region(region)
    step("resampling", 0, len(pairing.frames) + 1)
    rows = read = {name: Rows.from_frame(frame) for name, frame in pairing.frames.items()}
    if pairing.paired:  # all systems share their units: dialogues, or the inputs by their ids
        named = [part.unit for part in rows.values() if part.unit is not None]
        unit = named[0] if named else np.arange(next(iter(rows.values())).weight.size)
        rows = {name: part.drawn_by(unit) for name, part in rows.items()}
        drawn = replicate_together(list(rows.values()), replicates=replicates, seed=seed)
        samples = dict(zip(rows, drawn, strict=True))
    else:
        seeds = {name: seed + place for place, name in enumerate(sorted(rows))}
        samples = {name: Sample(part, replicates, seeds[name]).drawn for name, part in rows.items()}
    curves = {name: error_return(part.sweep(), name=name) for name, part in rows.items()}
    couples = list(combinations(rows, 2))
    bands = difference_bands(couples, curves, samples, rows, level, region)
    pairs = [_compare_pair(couple, rows, curves, bands[couple], pairing.paired, at, level) for couple in couples]
    adjusted = holm(np.array([pair.area.p for pair in pairs]))
    corrected = tuple(replace(pair, p_adjusted=float(p)) for pair, p in zip(pairs, adjusted, strict=True))
    leads, note = ranking(curves, bands), pairing.note
    how: dict[str, Any] = {"level": level, "region": region, "replicates": replicates, "seed": seed, "step": step}
    evaluations = evaluate(pairing.frames, read=read, **how, **options)
    return Comparison(evaluations, corrected, leads, note, pairing.dropped, level, (note,))


def _compare_pair(
    names: tuple[str, str],
    rows: Mapping[str, Rows],
    curves: Mapping[str, ErrorReturnCurve],
    band: DifferenceBand,
    paired: bool,
    at: float,
    level: float,
) -> PairComparison:
    (a, b), (one, two) = (rows[name] for name in names), (curves[name] for name in names)
    intervals = _better_intervals(band)
    area, start = augrc_difference(a, b, paired=paired)
    sides = {part.better for part in intervals}
    verdict: Verdict = "no difference shown"
    if sides:
        verdict = "crossing" if len(sides) == 2 else "a dominates" if sides == {"a"} else "b dominates"
    return PairComparison(
        a=names[0],
        b=names[1],
        paired=paired,
        n=a.weight.size if paired else min(a.weight.size, b.weight.size),
        verdict=verdict,
        intervals=intervals,
        crossings=_crossings(one, two, band),
        area=area,
        p_adjusted=area.p,
        start=start,
        band=band,
        mcnemar=_mcnemar(rows, curves, names, at) if paired else "the systems are not paired",
        inputs_needed=None if sides else _inputs_needed(area, a.weight.size, level),
        curves=(one, two),
        level=level,
    )


def _better_intervals(band: DifferenceBand) -> tuple[Interval, ...]:
    found: list[Interval] = []
    sides: tuple[tuple[NDArray[np.bool_], Side], ...] = ((band.high < 0, "a"), (band.low > 0, "b"))
    for shown, side in sides:
        edges = np.flatnonzero(np.diff(np.concatenate([[False], shown, [False]]).astype(np.int8)))
        found += [Interval(float(band.x[i]), float(band.x[j - 1]), side) for i, j in edges.reshape(-1, 2)]
    return tuple(sorted(found, key=lambda part: part.start))


def _crossings(one: ErrorReturnCurve, two: ErrorReturnCurve, band: DifferenceBand) -> tuple[Crossing, ...]:
    """Every sign change of the exact difference; a stretch where the curves coincide counts at its middle."""
    same = np.array_equal(one.nonreturn, two.nonreturn)  # as where inputs are paired and no confidences are tied
    x = one.nonreturn if same else np.union1d(one.nonreturn, two.nonreturn)
    x = x[x >= band.x[0]]
    gap = one.error_at(x) - two.error_at(x)
    gap[np.abs(gap) < 1e-12] = 0.0
    apart = np.flatnonzero(gap)
    changes = np.flatnonzero(np.diff(np.sign(gap[apart])))
    decided = (band.low > 0) | (band.high < 0)
    crossings = []
    for left, right in zip(apart[changes], apart[changes + 1], strict=True):
        if right == left + 1:
            at = x[left] + (x[right] - x[left]) * gap[left] / (gap[left] - gap[right])
        else:
            at = (x[left + 1] + x[right - 1]) / 2
        before, after = band.x[decided & (band.x <= at)], band.x[decided & (band.x >= at)]
        low, high = (before[-1] if before.size else band.x[0]), (after[0] if after.size else band.x[-1])
        crossings.append(Crossing(float(at), float(one.error_at(at)), float(low), float(high)))
    return tuple(crossings)


def _mcnemar(
    rows: Mapping[str, Rows], curves: Mapping[str, ErrorReturnCurve], pair: tuple[str, str], at: float
) -> McNemar | str:
    """The exact test at the cutoffs nearest below the share asked for, where both withhold about the same."""
    places = [int(np.searchsorted(curves[name].nonreturn, at + 1e-12, side="right")) - 1 for name in pair]
    errs, reached = [], []
    for name, place in zip(pair, places, strict=True):
        curve = curves[name]
        if place < 0:
            return f"{name} withholds {curve.floor:.3g} of the inputs by itself, more than {at:g}"
        reached.append(float(curve.nonreturn[place]))
        returned = rows[name].answered & (rows[name].confidence >= curve.threshold[place])  # nothing is at least NaN
        errs.append(returned & ~rows[name].right)
    if abs(reached[0] - reached[1]) > max(NEAR_ENOUGH, 1 / rows[pair[0]].weight.size):
        apart = " and ".join(f"{name} {rate:.3g}" for name, rate in zip(pair, reached, strict=True))
        return f"ties leave no common cutoff near a non-return rate of {at:g}: {apart}"
    a_only, b_only = int((errs[0] & ~errs[1]).sum()), int((errs[1] & ~errs[0]).sum())
    return McNemar(at, reached[0], reached[1], a_only, b_only, mcnemar(a_only, b_only))


def _inputs_needed(area: Estimate, n: int, level: float) -> int | None:
    """Inputs at which a difference of areas as large as the one seen would be shown four times out of five."""
    if area.value == 0 or not area.error > 0:
        return None
    factor = ((normal(level) + normal(2 * POWER - 1)) * area.error / abs(area.value)) ** 2
    return max(n, int(np.ceil(n * factor)))
