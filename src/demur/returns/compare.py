"""Is the difference between systems real, and where: paired curves, areas, operating points, and who leads where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from itertools import combinations, pairwise
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.arrays import Array
from demur.core.show.results import Shown, Step, plain, silent
from demur.core.stats.intervals import check_level, holm, mcnemar, normal
from demur.core.stats.resampling import Rows, Sample, replicate_together
from demur.errors import UsageError
from demur.returns.bands import GRID, DifferenceBand, check_region, difference_bands
from demur.returns.curves import ErrorReturnCurve, error_return
from demur.returns.evaluate import Evaluation, evaluate_frames
from demur.returns.measures import Estimate, augrc_difference
from demur.returns.pairing import Pairing, pair
from demur.returns.table import Responses

Places = NDArray[np.int64]
Bands = Mapping[tuple[str, str], DifferenceBand]

SHORTEST_REIGN = 0.05
"""A region of the ranking is wider than this range of non-return rates."""


OPEN, WORSE, ABSENT = range(3)
"""What is shown of a system at a non-return rate: nothing, that it is worse than the leader, or no curve of it."""


@dataclass(frozen=True, slots=True)
class RankingRegion:
    """A range of non-return rates, the system with the lowest curve there, and those not shown to be worse."""

    start: float
    stop: float
    best: str
    also: tuple[str, ...]
    absent: tuple[str, ...] = ()
    """Systems that withhold more than this on their own, so that they have no curve here."""
    gaps: bool = False
    """Whether it has short gaps in which a system that is not named in `also` does not differ significantly either."""


def ranking(curves: Mapping[str, ErrorReturnCurve], bands: Bands) -> tuple[RankingRegion, ...]:
    """Who has the lowest curve over which non-return rates, and who is not shown to be worse there.

    A new region begins where the lowest curve changes, and where the significance of a difference from it changes.
    """
    x = np.linspace(min(band.x[0] for band in bands.values()), max(band.x[-1] for band in bands.values()), GRID)
    names = list(curves)
    heights = np.array([np.where(x >= curve.floor, curve.error_at(x), np.inf) for curve in curves.values()])
    leader = _steady(heights.argmin(axis=0), x)
    told = np.array(
        [[_band_sign(name, names[best], bands, at) for name in names] for best, at in zip(leader, x, strict=True)]
    )
    closed, gaps = _closed(told, leader, x)
    regions = _merged(closed, leader, x)
    edges = [float(x[0]), *(_edge(start, closed, x) for start, _ in regions[1:]), float(x[-1])]
    return tuple(
        _reign(start, stop, edges[place : place + 2], names, leader, closed, gaps)
        for place, (start, stop) in enumerate(regions)
    )


def _edge(start: int, told: Places, x: Array) -> float:
    """Where a region begins: at its first rate or, if it claims less than the one before, at the last of that one."""
    fewer = bool((told[start - 1][told[start] == WORSE] == WORSE).all())
    return float(x[start - 1 if fewer else start])


def _reign(
    start: int,
    stop: int,
    ends: list[float],
    names: list[str],
    leader: Places,
    told: Places,
    gaps: NDArray[np.bool_],
) -> RankingRegion:
    best = names[leader[start]]
    also, absent = (
        tuple(name for name, one in zip(names, told[start], strict=True) if name != best and one == kind)
        for kind in (OPEN, ABSENT)
    )
    return RankingRegion(ends[0], ends[1], best, also, absent, bool(gaps[start:stop].any()))


def _steady(leader: Places, x: Array) -> Places:
    """The leader without stretches too short to tell: such a one goes to the one before it, the first to the next."""
    steady = leader.copy()
    for start, stop in _runs(leader):
        if _short(start, stop, x):
            steady[start:stop] = steady[start - 1] if start > 0 else leader[min(stop, leader.size - 1)]
    return steady


def _closed(told: Places, leader: Places, x: Array) -> tuple[Places, NDArray[np.bool_]]:
    """Short gaps in what is shown closed, and where they were; what is shown over a short stretch only, dropped."""
    closed, gaps = told.copy(), np.zeros(told.shape, dtype=np.bool_)
    for system in range(told.shape[1]):
        column = closed[:, system]
        for start, stop in _runs(column)[1:-1]:
            around = {int(column[start - 1]), int(column[stop])}
            if column[start] == OPEN and around == {WORSE} and _short(start, stop, x):
                column[start:stop], gaps[start:stop, system] = WORSE, True
        for start, stop in _runs(np.column_stack([leader, column])):
            if column[start] == WORSE and _short(start, stop, x):
                column[start:stop], gaps[start:stop, system] = OPEN, False
    return closed, gaps


def _merged(told: Places, leader: Places, x: Array) -> list[tuple[int, int]]:
    """The regions, short ones joined to a neighbour of the same leader that claims no more than they do."""
    place = 0
    while place < len(regions := _runs(np.column_stack([leader, told]))):
        start, stop = regions[place]
        sides = [regions[side][0] for side in (place + 1, place - 1) if 0 <= side < len(regions)]
        humble = [
            side
            for side in sides
            if leader[side] == leader[start] and (told[start][told[side] == WORSE] == WORSE).all()
        ]
        if humble and _short(start, stop, x):
            told[start:stop] = told[humble[0]]
            place = 0
        else:
            place += 1
    return regions


def _runs(states: Places) -> list[tuple[int, int]]:
    """Where each run of equal states begins and ends."""
    rows = states if states.ndim > 1 else states[:, None]
    changes = np.flatnonzero((rows[1:] != rows[:-1]).any(axis=1)) + 1
    return list(pairwise([0, *changes.tolist(), len(rows)]))


def _short(start: int, stop: int, x: Array) -> bool:
    return bool(x[min(stop, x.size - 1)] - x[start] < SHORTEST_REIGN + 1e-9)


def _band_sign(name: str, best: str, bands: Bands, at: float) -> int:
    """What the band shows of `name` beside `best` at a non-return rate."""
    if name == best:
        return OPEN
    flipped = (name, best) not in bands
    band = bands[(best, name) if flipped else (name, best)]
    if at < band.x[0]:
        return ABSENT
    low = -band.high if flipped else band.low
    return WORSE if np.interp(at, band.x, low) > 0 else OPEN


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
        open_range = np.maximum(*(curve.error_at(self.band.x) for curve in self.curves)) > 0.005
        return len(self.intervals) == 1 and bool(
            ((self.band.x >= self.intervals[0].start) & (self.band.x <= self.intervals[0].stop))[open_range].all()
        )

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain values."""
        low, high = self.area.interval(self.level)
        shown: dict[str, Any] = plain(
            {
                "a": self.a,
                "b": self.b,
                "paired": self.paired,
                "n": self.n,
                "verdict": self.verdict,
                "range": [self.start, 1.0],
                "intervals": [{"from": part.start, "to": part.stop, "better": part.better} for part in self.intervals],
                "crossings": [{"x": c.x, "y": c.y, "low": c.low, "high": c.high} for c in self.crossings],
                "augrc_difference": {
                    "value": self.area.value,
                    "low": low,
                    "high": high,
                    "p": self.area.p,
                    "p_adjusted": self.p_adjusted,
                },
                **_shown_test(self.mcnemar),
                "inputs_needed": self.inputs_needed,
            }
        )
        return shown

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
        return {
            "pairs": [pair.to_dict() for pair in self.pairs],
            "ranking": [
                {
                    "from": lead.start,
                    "to": lead.stop,
                    "best": lead.best,
                    "also": list(lead.also),
                    "absent": list(lead.absent),
                    "gaps": lead.gaps,
                }
                for lead in self.ranking
            ],
            "systems": [evaluation.to_dict() for evaluation in self.evaluations],
            "note": self.note,
            "dropped": dict(self.dropped),
            "level": self.level,
            "notes": list(self.notes),
            "warnings": list(self.warnings),
        }


def compare(
    responses: Responses,
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
    to be at most 1 - level; p-values of the areas are given plain and corrected by Holm's method. Further options
    go to `evaluate`.
    """
    pairing = pair(responses, systems=systems, matched=matched, unpaired=unpaired)
    del responses  # with its texts, which take most of the room
    manner: dict[str, Any] = {"level": level, "region": region, "replicates": replicates, "seed": seed, "step": step}
    return compare_paired(pairing, at=at, **manner, **options)


def compare_paired(
    pairing: Pairing,
    *,
    at: float = 0.2,
    level: float = 0.95,
    region: tuple[float, float] = (0.0, 1.0),
    replicates: int = 1000,
    seed: int = 0,
    step: Step = silent,
    **options: Any,
) -> Comparison:
    """Compare systems whose rows are side by side already, as `compare` does."""
    check_level(level)
    if not 0 <= at <= 1:
        raise UsageError(f"an operating point is a non-return rate in [0, 1], such as 0.2; got {at:g}")
    check_region(region)
    step("resampling", 0, len(pairing.frames) + 1)
    rows = {name: Rows.from_frame(frame) for name, frame in pairing.frames.items()}
    pairs, leads = _pairs(
        _shared_units(rows) if pairing.paired else rows, pairing.paired, at, level, region, replicates, seed
    )
    manner: dict[str, Any] = {"level": level, "region": region, "replicates": replicates, "seed": seed, "step": step}
    evaluated = evaluate_frames(pairing.frames, read=rows, **manner, **options)
    return Comparison(evaluated, pairs, leads, pairing.note, pairing.dropped, level, (pairing.note,))


def _pairs(
    rows: Mapping[str, Rows],
    paired: bool,
    at: float,
    level: float,
    region: tuple[float, float],
    replicates: int,
    seed: int,
) -> tuple[tuple[PairComparison, ...], tuple[RankingRegion, ...]]:
    """Every pair of systems, and who leads where."""
    samples = _replicates(rows, paired=paired, replicates=replicates, seed=seed)
    curves = {name: error_return(part.sweep(), name=name) for name, part in rows.items()}
    couples = list(combinations(rows, 2))
    bands = difference_bands(couples, curves, samples, rows, level, region)
    pairs = [
        _compared(one, two, rows, curves, bands[one, two], paired=paired, at=at, level=level) for one, two in couples
    ]
    return _with_holm(pairs), ranking(curves, bands)


def _shared_units(rows: Mapping[str, Rows]) -> dict[str, Rows]:
    """Rows of systems side by side, with the same units for all: dialogues, or the inputs by their ids."""
    named = [part.unit for part in rows.values() if part.unit is not None]
    unit = named[0] if named else np.arange(next(iter(rows.values())).weight.size)
    return {name: part.drawn_by(unit) for name, part in rows.items()}


def _replicates(rows: Mapping[str, Rows], *, paired: bool, replicates: int, seed: int) -> dict[str, Any]:
    if paired:
        drawn = replicate_together(list(rows.values()), replicates=replicates, seed=seed)
        return dict(zip(rows, drawn, strict=True))
    seeds = {name: place for place, name in enumerate(sorted(rows))}
    return {name: Sample(part, replicates, seed + seeds[name]).drawn for name, part in rows.items()}


def _compared(
    one: str,
    two: str,
    rows: Mapping[str, Rows],
    curves: Mapping[str, ErrorReturnCurve],
    band: DifferenceBand,
    *,
    paired: bool,
    at: float,
    level: float,
) -> PairComparison:
    intervals = _better_intervals(band)
    area, start = augrc_difference(rows[one], rows[two], paired=paired)
    verdict = _verdict(intervals)
    return PairComparison(
        a=one,
        b=two,
        paired=paired,
        n=rows[one].weight.size if paired else min(rows[one].weight.size, rows[two].weight.size),
        verdict=verdict,
        intervals=intervals,
        crossings=_crossings(curves[one], curves[two], band),
        area=area,
        p_adjusted=area.p,
        start=start,
        band=band,
        mcnemar=_mcnemar(rows, curves, (one, two), at) if paired else "the systems are not paired",
        inputs_needed=_inputs_needed(area, rows[one], level) if verdict == "no difference shown" else None,
        curves=(curves[one], curves[two]),
        level=level,
    )


def _better_intervals(band: DifferenceBand) -> tuple[Interval, ...]:
    found: list[Interval] = []
    sides: tuple[tuple[NDArray[np.bool_], Side], ...] = ((band.high < 0, "a"), (band.low > 0, "b"))
    for shown, side in sides:
        edges = np.flatnonzero(np.diff(np.concatenate([[False], shown, [False]]).astype(np.int8)))
        found += [Interval(float(band.x[i]), float(band.x[j - 1]), side) for i, j in edges.reshape(-1, 2)]
    return tuple(sorted(found, key=lambda part: part.start))


def _verdict(intervals: tuple[Interval, ...]) -> Verdict:
    sides = {part.better for part in intervals}
    if sides == {"a", "b"}:
        return "crossing"
    if sides:
        return "a dominates" if sides == {"a"} else "b dominates"
    return "no difference shown"


def _crossings(one: ErrorReturnCurve, two: ErrorReturnCurve, band: DifferenceBand) -> tuple[Crossing, ...]:
    """Every sign change of the exact difference; a stretch where the curves coincide counts at its middle."""
    same = np.array_equal(one.nonreturn, two.nonreturn)  # as where inputs are paired and no confidences are tied
    x = one.nonreturn if same else np.union1d(one.nonreturn, two.nonreturn)
    x = x[x >= band.x[0]]
    gap = one.error_at(x) - two.error_at(x)
    gap[np.abs(gap) < 1e-12] = 0.0
    apart = np.flatnonzero(gap)
    changes = np.flatnonzero(np.diff(np.sign(gap[apart])))
    found = []
    for left, right in zip(apart[changes], apart[changes + 1], strict=True):
        if right == left + 1:
            at = x[left] + (x[right] - x[left]) * gap[left] / (gap[left] - gap[right])
        else:
            at = (x[left + 1] + x[right - 1]) / 2
        found.append(Crossing(float(at), float(one.error_at(at)), *_undecided_around(band, float(at))))
    return tuple(found)


def _undecided_around(band: DifferenceBand, at: float) -> tuple[float, float]:
    """The range around `at` in which the band leaves the sign of the difference open."""
    shown = (band.low > 0) | (band.high < 0)
    left, right = band.x[shown & (band.x <= at)], band.x[shown & (band.x >= at)]
    return float(left[-1] if left.size else band.x[0]), float(right[0] if right.size else band.x[-1])


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


def _shown_test(test: McNemar | str) -> dict[str, Any]:
    return {"mcnemar": None, "mcnemar_why": test} if isinstance(test, str) else {"mcnemar": asdict(test)}


def _inputs_needed(area: Estimate, rows: Rows, level: float) -> int | None:
    """Inputs at which a difference of areas as large as the one seen would be shown four times out of five."""
    if area.value == 0 or not area.error > 0:
        return None
    factor = ((normal(level) + normal(2 * POWER - 1)) * area.error / abs(area.value)) ** 2
    return max(rows.weight.size, int(np.ceil(rows.weight.size * factor)))


def _with_holm(pairs: list[PairComparison]) -> tuple[PairComparison, ...]:
    adjusted = holm(np.array([pair.area.p for pair in pairs]))
    return tuple(replace(pair, p_adjusted=float(p)) for pair, p in zip(pairs, adjusted, strict=True))
