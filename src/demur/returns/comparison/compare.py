"""Is the difference between systems real, and where: paired curves, areas, operating points, and who leads where."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.show.numbers import names_in_short, percent
from demur.core.show.results import Shown, Step, plain, silent
from demur.core.stats.intervals import check_level, mcnemar, normal
from demur.core.stats.sweep import Sweep
from demur.errors import UsageError
from demur.returns.comparison.contrasts import (
    BEST,
    Contrast,
    Leaderboard,
    Pair,
    PairTests,
    RankingRegion,
    Side,
    area_contrast,
    chosen_baseline,
    corrected,
    leaderboard,
    overall_contrast,
    pair_tests,
    point_contrast,
    ranking,
    right_contrast,
)
from demur.returns.comparison.systems import ComparedSystems, RowsTogether
from demur.returns.curves import (
    DifferenceBand,
    ErrorReturnCurve,
    check_region,
    difference_bands,
    error_return,
)
from demur.returns.evaluate import Evaluation
from demur.returns.options import EVERYWHERE, SortKey
from demur.returns.pairing import Pairing, pair
from demur.returns.table import Responses

Verdict = Literal[
    "a dominates", "b dominates", "a better", "b better", "crossing", "equivalent", "no significant difference"
]
DRAWN_TOGETHER = 8
"""Systems whose replicates are held in memory at once, beside the baseline, where there are many."""

MOST_PAIRED = 5
"""Systems up to which every two are compared along their curves."""

POWER = 0.8
"""Chance of showing a difference, for the number of inputs needed."""

ENOUGH_TO_PLAN = 30
"""Units from which a difference seen says how many inputs would show it."""

NEAR_ENOUGH = 0.01
"""How far apart the non-return rates of two systems may lie for the exact test."""

NEAR_CUTOFFS = 0.05
"""Cutoffs closer than this leave no gap that a reader would notice."""


ROUNDING = 1e-12
"""A difference of areas below this is one of rounding."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A range of non-return rates over which one system is shown to be better."""

    start: float
    stop: float
    better: Side
    reachable: bool = True
    """Whether both systems have cutoffs all along it; otherwise parts of it take lots among tied answers."""


@dataclass(frozen=True, slots=True)
class Crossing:
    """Where two curves cross, and the range in which the bands leave the crossing."""

    x: float
    y: float
    low: float
    high: float
    reachable: bool = True
    """Whether both systems have cutoffs near it."""


@dataclass(frozen=True, slots=True)
class McNemar:
    """Inputs on which only one of the two errs, when both withhold about the same share, and the exact test."""

    x: float
    nonreturn_a: float
    nonreturn_b: float
    a_only: int
    b_only: int
    p: float


@dataclass(frozen=True, slots=True)
class Equivalence:
    """Two one-sided tests against differences of `margin` or more: a p-value for each system, and for both."""

    margin: float
    a: float
    """P-value against "a is worse than b by the margin or more"."""
    b: float
    level: float

    @property
    def holds(self) -> bool:
        """Whether both differences are ruled out."""
        return self.p < 1 - self.level

    @property
    def p(self) -> float:
        """P-value of the two tests together."""
        return max(self.a, self.b)


@dataclass(frozen=True, eq=False, repr=False)
class PairComparison(PairTests, Shown):
    """What two systems' curves show against each other."""

    paired: bool
    n: int
    intervals: tuple[Interval, ...]
    crossings: tuple[Crossing, ...]
    band: DifferenceBand
    mcnemar: McNemar | str
    """The test, or why there is none."""
    curves: tuple[ErrorReturnCurve, ErrorReturnCurve]
    units: int
    point: Contrast
    """Error rate of a less that of b at the operating point, corrected for the number of pairs."""
    margin: float | None = None
    whole: Contrast | None = None
    """AUGRC of a less that of b, where a region decides and not the areas."""

    @property
    def area(self) -> Contrast:
        """AUGRC of a less that of b."""
        return self.overall if self.whole is None else replace(self.whole, tests=self.overall.tests)

    @property
    def start(self) -> float:
        """Non-return rate from which both systems have a curve."""
        return self.area.range[0]

    @property
    def equivalence(self) -> Equivalence | None:
        """Whether differences of the margin or more are ruled out, of errors and, if floors differ, right answers."""
        if self.margin is None:
            return None
        errors = [self.overall.inferior_p(self.margin)] if self.overall.defined else []
        right = [self.right.inferior_p(self.margin)[::-1]] if self.floors_differ or not errors else []
        a, b = (max(tests) for tests in zip(*errors, *right, strict=True))
        return Equivalence(self.margin, a, b, self.overall.level)

    @property
    def verdict(self) -> Verdict:
        """The comparison in one word."""
        shown = {part.better for part in self.intervals}
        if len(shown) == 2 or self.is_trade:
            return "crossing"
        if self.better == "a":
            return "a dominates" if self._dominates("a") else "a better"
        if self.better == "b":
            return "b dominates" if self._dominates("b") else "b better"
        if self.equivalence is not None and self.equivalence.holds:
            return "equivalent"
        return "no significant difference"

    def _dominates(self, side: Side) -> bool:
        """Whether a side is shown lower somewhere, and its curve is nowhere above the other one or missing."""
        own, other = self.curves if side == "a" else self.curves[::-1]
        if own.floor > other.floor + 1e-12 or {part.better for part in self.intervals} != {side}:
            return False
        first, last = self.band.x[0], self.band.x[-1]
        x = np.concatenate([own.nonreturn, other.nonreturn, [first, last]])
        x = x[(x >= first) & (x <= last)]
        return bool((own.error_at(x) <= other.error_at(x) + 1e-12).all())

    @property
    def inputs_needed(self) -> int | None:
        """Inputs at which a difference as large as the one seen would be shown four times out of five.

        None where a difference is shown, where none is seen, and where a handful of inputs says nothing of others.
        """
        seen, units = self.overall, self.units
        none_seen = abs(seen.value) < ROUNDING or not seen.estimate.error > 0
        if self.better or self.intervals or none_seen or units < ENOUGH_TO_PLAN:
            return None
        reach = normal(seen.level ** (1 / seen.tests)) + normal(2 * POWER - 1)
        return max(self.n, int(np.ceil(self.n * (reach * seen.estimate.error / abs(seen.value)) ** 2)))

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain values."""
        test, untested = (None, self.mcnemar) if isinstance(self.mcnemar, str) else (asdict(self.mcnemar), None)
        equivalence = self.equivalence
        values: dict[str, Any] = plain(
            {
                **{name: getattr(self, name) for name in ("a", "b", "paired", "n", "verdict", "better")},
                "range": [self.start, 1.0],
                "intervals": [
                    {"from": part.start, "to": part.stop, "better": part.better, "reachable": part.reachable}
                    for part in self.intervals
                ],
                "crossings": [asdict(crossing) for crossing in self.crossings],
                "augrc_difference": self.area.to_dict(),
                **({} if self.whole is None else {"region_difference": self.overall.to_dict()}),
                "right_answers_difference": self.right.to_dict(),
                "point_difference": self.point.to_dict(),
                **({} if equivalence is None else {"equivalence": {**asdict(equivalence), "p": equivalence.p}}),
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


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Shown):
    """Two or more systems against each other."""

    evaluations: tuple[Evaluation, ...]
    pairs: tuple[PairComparison, ...]
    """Every two systems or, of many, the baseline with each other one."""
    ranking: tuple[RankingRegion, ...]
    """Who leads where; of many systems it is not looked for."""
    leaderboard: Leaderboard
    note: str
    dropped: Mapping[str, int]
    level: float
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @cached_property
    def in_short(self) -> tuple[Comparison, str]:
        """The comparison with short names, as it is shown, and a sentence on what all names share."""
        labels, said = names_in_short([one.system for one in self.evaluations])
        if all(name == label for name, label in labels.items()):
            return self, said
        short = self._renamed(labels)
        short.__dict__["in_short"] = short, said  # short names are short enough
        return short, said

    def _renamed(self, labels: Mapping[str, str]) -> Comparison:
        """The comparison with other names of its systems."""
        long_first = sorted(labels, key=len, reverse=True)

        def reworded(text: str) -> str:
            for name in long_first:
                text = text.replace(name, labels[name])
            return text

        def renamed(pair: Pair) -> Pair:
            return replace(pair, a=labels[pair.a], b=labels[pair.b])

        def renamed_pair(pair: PairComparison) -> PairComparison:
            one, two = (replace(curve, name=labels[curve.name]) for curve in pair.curves)
            test = reworded(pair.mcnemar) if isinstance(pair.mcnemar, str) else pair.mcnemar
            return replace(renamed(pair), curves=(one, two), mcnemar=test)

        def renamed_region(lead: RankingRegion) -> RankingRegion:
            also, absent = (tuple(labels[name] for name in names) for names in (lead.also, lead.absent))
            return replace(lead, best=labels[lead.best], also=also, absent=absent)

        board = self.leaderboard
        return replace(
            self,
            evaluations=tuple(replace(one, system=labels[one.system]) for one in self.evaluations),
            pairs=tuple(map(renamed_pair, self.pairs)),
            ranking=tuple(map(renamed_region, self.ranking)),
            leaderboard=replace(
                board,
                standings=tuple(replace(one, system=labels[one.system]) for one in board.standings),
                baseline=labels[board.baseline],
                pairs=tuple(map(renamed, board.pairs)),
            ),
            notes=tuple(map(reworded, self.notes)),
            warnings=tuple(map(reworded, self.warnings)),
        )

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain values."""
        ranking = []
        for lead in self.ranking:
            others = {"also": list(lead.also), "absent": list(lead.absent)}
            ranking.append({"from": lead.start, "to": lead.stop, "best": lead.best, **others, "gaps": lead.gaps})
        return {
            "pairs": [pair.to_dict() for pair in self.pairs],
            "ranking": ranking,
            **self.leaderboard.to_dict(),
            "systems": [evaluation.to_dict() for evaluation in self.evaluations],
            "note": self.note,
            "dropped": dict(self.dropped),
            "level": self.level,
            "notes": list(self.notes),
            "warnings": list(self.warnings),
        }


def compare(
    answers: Responses | Pairing | ComparedSystems,
    *,
    systems: tuple[str, ...] | None = None,
    matched: bool = False,
    unpaired: bool = False,
    pair_by: tuple[str, ...] = (),
    at: float = 0.2,
    level: float = 0.95,
    region: tuple[float, float] = EVERYWHERE,
    margin: float | None = None,
    baseline: str | None = None,
    every_pair: bool = False,
    sort: SortKey = "rank",
    replicates: int = 1000,
    seed: int = 0,
    step: Step = silent,
    **options: Any,
) -> Comparison:
    """Compare systems, paired by id where the data has ids, over a region of non-return rates or all of them.

    Which system is better overall is decided by the difference of areas (or of mean errors over the region asked for)
    and, where one withholds more by itself, of right answers. Their intervals and p-values are corrected together for
    the tests made on all pairs. Where a system is better is read off bands under one critical value for all pairs and
    non-return rates. With a `margin` systems are tested for equivalence too. Of more than five systems one, the
    baseline (the first, one that is named, or the "best"), is held against each other one, unless `every_pair` is
    given; all are ranked by tests of every two. Rows that are side by side already come as a `Pairing`, those
    that an engine counted as `TalliesTogether`; further options go to `evaluate`.
    """
    if margin is not None and not 0 < margin < 1:
        raise UsageError(f"a margin is a difference of rates between 0 and 1, such as 0.01; got {margin:g}")
    if isinstance(answers, Responses):
        answers = pair(answers, systems=systems, matched=matched, unpaired=unpaired, pair_by=pair_by)
    together = RowsTogether(answers) if isinstance(answers, Pairing) else answers
    del answers  # with its texts, which take most of the room
    check_level(level)
    if not 0 <= at <= 1:
        raise UsageError(f"an operating point is a non-return rate in [0, 1], such as 0.2; got {at:g}")
    check_region(region)
    rows, paired = together.rows, together.paired
    step("resampling", 0, len(rows) + 1)
    curves = {name: error_return(part.sweep(), name=name) for name, part in rows.items()}
    few = every_pair or len(rows) <= MOST_PAIRED
    every: Sequence[PairTests] = ()
    if baseline == BEST or not few:
        every = pair_tests(rows, list(combinations(rows, 2)), paired=paired, level=level, region=region)
    base = chosen_baseline(baseline, curves, every)
    couples = list(combinations(rows, 2)) if few else [(base, name) for name in rows if name != base]
    samples = _Replicates(together, None if few else base, replicates, seed)
    bands = difference_bands(couples, curves, samples, rows, level, region)
    del samples
    about: dict[str, Any] = {"at": at, "level": level, "region": region, "margin": margin, "tests": len(couples)}
    pairs = corrected([_compare_pair(couple, together, curves, bands[couple], **about) for couple in couples])
    leads, note = ranking(curves, bands) if few else (), together.note
    how: dict[str, Any] = {"level": level, "region": region, "replicates": replicates, "seed": seed, "step": step}
    evaluations = together.evaluate(**how, **options)
    board = leaderboard(evaluations, pairs if few else every, pairs, base, sort)
    return Comparison(evaluations, pairs, leads, board, note, together.dropped, level, (note, *together.notes))


class _Replicates(Mapping[str, Sweep]):
    """Replicates of each system, drawn a few systems at a time where there are many: the baseline and the next ones.

    Paired systems have the same units drawn, whichever systems are drawn with them.
    """

    def __init__(self, systems: ComparedSystems, baseline: str | None, replicates: int, seed: int) -> None:
        self.systems, self.baseline = systems, baseline
        self.replicates, self.seed = replicates, seed
        self._drawn: dict[str, Sweep] = {}

    def __len__(self) -> int:
        return len(self.systems.rows)

    def __iter__(self) -> Iterator[str]:
        return iter(self.systems.rows)

    def __getitem__(self, name: str) -> Sweep:
        if name not in self._drawn:
            names = list(self)
            if self.baseline is not None:
                others = [other for other in names if other != self.baseline]
                place = 0 if name == self.baseline else others.index(name) // DRAWN_TOGETHER * DRAWN_TOGETHER
                names = [self.baseline, *others[place : place + DRAWN_TOGETHER]]
            self._drawn = self.systems.replicates(names, self.replicates, self.seed)
        return self._drawn[name]


def _compare_pair(
    names: tuple[str, str],
    systems: ComparedSystems,
    curves: Mapping[str, ErrorReturnCurve],
    band: DifferenceBand,
    *,
    at: float,
    level: float,
    region: tuple[float, float],
    margin: float | None,
    tests: int,
) -> PairComparison:
    a, b = (systems.rows[name] for name in names)
    one, two = (curves[name] for name in names)
    reached = max(one.floor, two.floor) <= region[1]
    how: dict[str, Any] = {"paired": systems.paired, "level": level}
    return PairComparison(
        a=names[0],
        b=names[1],
        paired=systems.paired,
        n=min(a.n, b.n),
        intervals=_better_intervals(band, (one, two)) if reached else (),
        crossings=_crossings(one, two, band) if reached else (),
        overall=overall_contrast(a, b, region, **how),
        right=right_contrast(a, b, **how),
        band=band,
        mcnemar=_mcnemar(systems, curves, names, at) if systems.paired else "the systems are not paired",
        curves=(one, two),
        units=min(a.units, b.units),
        point=point_contrast(a, b, at, tests=tests, **how),
        margin=margin,
        whole=None if region == EVERYWHERE else area_contrast(a, b, **how),
    )


def _better_intervals(band: DifferenceBand, curves: tuple[ErrorReturnCurve, ErrorReturnCurve]) -> tuple[Interval, ...]:
    parts: list[Interval] = []
    sides: tuple[tuple[NDArray[np.bool_], Side], ...] = ((band.high < 0, "a"), (band.low > 0, "b"))
    for shown, side in sides:
        edges = np.flatnonzero(np.diff(np.concatenate([[False], shown, [False]]).astype(np.int8)))
        for first, last in edges.reshape(-1, 2):
            start, stop = float(band.x[first]), float(band.x[last - 1])
            parts.append(Interval(start, stop, side, all(_has_cutoffs(one, start, stop) for one in curves)))
    return tuple(sorted(parts, key=lambda part: part.start))


def _has_cutoffs(curve: ErrorReturnCurve, start: float, stop: float) -> bool:
    """Whether the cutoffs of a curve are close together over a range, or as close as its inputs allow."""
    x = curve.nonreturn
    first, last = int(np.searchsorted(x, start, side="right")) - 1, int(np.searchsorted(x, stop, side="left"))
    gaps = np.diff(x[max(first, 0) : last + 1])
    return not gaps.size or bool(gaps.max() <= max(NEAR_CUTOFFS, 2 / curve.sweep.n) + 1e-9)


def _crossings(one: ErrorReturnCurve, two: ErrorReturnCurve, band: DifferenceBand) -> tuple[Crossing, ...]:
    """Every sign change of the exact difference; a stretch where the curves coincide counts at its middle."""
    same = np.array_equal(one.nonreturn, two.nonreturn)  # as where inputs are paired and no confidences are tied
    x = one.nonreturn if same else np.union1d(one.nonreturn, two.nonreturn)
    x = x[(x >= band.x[0]) & (x <= band.x[-1])]
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
        near = _has_cutoffs(one, at, at) and _has_cutoffs(two, at, at)
        crossings.append(Crossing(float(at), float(one.error_at(at)), float(low), float(high), near))
    return tuple(crossings)


def _mcnemar(
    systems: ComparedSystems, curves: Mapping[str, ErrorReturnCurve], pair: tuple[str, str], at: float
) -> McNemar | str:
    """The exact test at the cutoffs nearest below the share asked for, where both withhold about the same."""
    if (why := systems.why_no_pairs(pair)) is not None:
        return why
    places = [int(np.searchsorted(curves[name].nonreturn, at + 1e-12, side="right")) - 1 for name in pair]
    thresholds, reached = [], []
    for name, place in zip(pair, places, strict=True):
        curve = curves[name]
        if place < 0:
            return f"{name} withholds {percent(curve.floor)} of the inputs by itself, more than {percent(at)}"
        reached.append(float(curve.nonreturn[place]))
        thresholds.append(float(curve.threshold[place]))
    if abs(reached[0] - reached[1]) > max(NEAR_ENOUGH, 1 / systems.rows[pair[0]].n):
        apart = " and ".join(f"{name} {percent(rate)}" for name, rate in zip(pair, reached, strict=True))
        return f"ties leave no common cutoff near a non-return rate of {percent(at)}: {apart}"
    a_only, b_only = systems.discordant(pair, (thresholds[0], thresholds[1]))
    return McNemar(at, reached[0], reached[1], a_only, b_only, mcnemar(a_only, b_only))
