"""Two systems in one number: mean errors over a range, right answers. Interval and p-value share one correction."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal, TypeVar, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.arrays import Array, Flags
from demur.core.io.columns import nearest
from demur.core.show.numbers import names_in_short, natural_order
from demur.core.show.results import plain
from demur.core.stats.intervals import Figure, sidak
from demur.core.stats.resampling import ComparedRows, Rows
from demur.core.stats.sweep import Sweep
from demur.errors import UsageError
from demur.returns.curves import GRID, DifferenceBand, ErrorReturnCurve
from demur.returns.evaluate import Evaluation
from demur.returns.measures import AUGRC, Estimate, area_from, area_influence
from demur.returns.options import EVERYWHERE, SortKey

Range = tuple[float, float]

FIGURES = ("augrc", "forced_error", "error_at_nonreturn", "nonreturn_at_error", "ranking_skill")
"""Measures that stand in a leaderboard, as far as they were asked for."""

BEST = "best"

Against = Literal["better", "worse"]

Places = NDArray[np.int64]
Bands = Mapping[tuple[str, str], DifferenceBand]

SHORTEST_REGION = 0.05
"""A region of the ranking is wider than this range of non-return rates."""

OPEN, WORSE, ABSENT = range(3)
"""What is shown of a system at a non-return rate: nothing, that it is worse than the leader, or no curve of it."""

NOTHING_TO_COMPARE = Estimate(math.nan, math.nan, 1)
"""The difference of curves that have no non-return rate in common, as where a system answers nothing."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """A figure of a less that of b; `tests` is for how many tests interval and p-value are corrected (Sidak 1967).

    >>> one = Contrast(Estimate(0.02, 0.008, 100), (0.0, 1.0))
    >>> round(one.p_adjusted, 4), one.significant, replace(one, tests=3).significant
    (0.014, True, True)
    >>> [round(end, 4) for end in replace(one, tests=3).interval]
    [0.0006, 0.0394]
    """

    estimate: Estimate
    range: Range
    """Non-return rates over which errors are averaged, or at which the two return all they have."""
    level: float = 0.95
    tests: int = 1
    most: float = 1.0
    """The largest difference there can be."""

    @property
    def value(self) -> float:
        """The difference in this sample."""
        return self.estimate.value

    @property
    def defined(self) -> bool:
        """Whether there is anything to compare: not where one of the two answers nothing."""
        return not math.isnan(self.value)

    @property
    def interval(self) -> Range:
        """The interval; it excludes 0 exactly where the corrected p-value is below 1 - level."""
        if not self.defined:
            return self.value, self.value
        low, high = self.estimate.interval(self.level ** (1 / self.tests))
        return max(low, -self.most), min(high, self.most)

    @property
    def p_adjusted(self) -> float:
        """The chance of so large a difference in any of the tests, if no two systems differed."""
        return sidak(self.estimate.p, self.tests)

    @property
    def significant(self) -> bool:
        """Whether a difference is shown."""
        return self.p_adjusted < 1 - self.level

    def turned(self) -> Contrast:
        """The same of b less a."""
        return replace(self, estimate=replace(self.estimate, value=-self.value))

    def inferior_p(self, margin: float) -> tuple[float, float]:
        """P-values against "a is worse than b by the margin or more", and the same of b: small ones rule it out."""
        one, two = (replace(self.estimate, value=gap - margin).p_below for gap in (self.value, -self.value))
        return sidak(one, self.tests), sidak(two, self.tests)

    def to_dict(self) -> dict[str, Any]:
        """The contrast as plain values."""
        low, high = self.interval
        p = {"p": self.estimate.p, "p_adjusted": self.p_adjusted, "tests": self.tests}
        return {"value": self.value, "low": low, "high": high, **p, "range": list(self.range)}


Side = Literal["a", "b"]

SAME_FLOOR = 0.01
"""Shares that two systems withhold by themselves, up to which their curves tell all: no more is left of a range."""


@dataclass(frozen=True, eq=False)
class PairTests:
    """Two systems by the tests that decide which is better overall."""

    a: str
    b: str
    overall: Contrast
    """Errors: the areas or, of a region asked for, the mean errors over it."""
    right: Contrast
    """Right answers of a less those of b, when each returns every answer it has."""

    @property
    def floors_differ(self) -> bool:
        """Whether one system withholds more by itself, so that right answers are compared too."""
        one, two = self.right.range
        return abs(one - two) > SAME_FLOOR

    @property
    def fewer_errors(self) -> Side | None:
        """The side with significantly fewer errors overall, where both have a curve."""
        return _lower_side(self.overall)

    @property
    def more_right(self) -> Side | None:
        """The side that returns significantly more right answers, where the other withholds more by itself."""
        other = _lower_side(self.right) if self.floors_differ else None
        return None if other is None else other_side(other)

    @property
    def better(self) -> Side | None:
        """The side that is significantly better overall: fewer errors, or more right answers at no more errors."""
        sides = {side for side in (self.fewer_errors, self.more_right) if side is not None}
        return sides.pop() if len(sides) == 1 else None

    @property
    def is_trade(self) -> bool:
        """Whether one side makes significantly fewer errors and the other gives significantly more right answers."""
        return {self.fewer_errors, self.more_right} == {"a", "b"}


Pair = TypeVar("Pair", bound=PairTests)


def corrected(pairs: Sequence[Pair]) -> tuple[Pair, ...]:
    """The pairs with intervals and p-values for all tests that their verdicts rest on.

    Each pair is tested for errors, if both answer, and, where one system withholds more by itself, for right answers.
    """
    tests = max(1, sum(one.overall.defined + one.floors_differ for one in pairs))
    return tuple(
        replace(one, overall=replace(one.overall, tests=tests), right=replace(one.right, tests=tests)) for one in pairs
    )


def pair_tests(
    rows: Mapping[str, ComparedRows], couples: Sequence[tuple[str, str]], *, paired: bool, level: float, region: Range
) -> tuple[PairTests, ...]:
    """The tests of many pairs, corrected for all of them.

    Pairs are taken by where the range of both starts: what a row adds to an area is computed once for each start.
    """
    floors = {name: _floor(part) for name, part in rows.items()}
    influence = lru_cache(maxsize=2 * len(rows))(_row_influence)
    found = {}
    for one, two in sorted(couples, key=lambda couple: max(floors[couple[0]], floors[couple[1]])):
        a, b = rows[one], rows[two]
        overall = overall_contrast(a, b, region, paired=paired, level=level, influence=influence)
        found[one, two] = PairTests(one, two, overall, right_contrast(a, b, paired=paired, level=level))
    return corrected([found[couple] for couple in couples])


def _lower_side(contrast: Contrast) -> Side | None:
    """The side whose figure is significantly lower."""
    return None if not contrast.significant else "a" if contrast.value < 0 else "b"


def other_side(side: Side) -> Side:
    """The other one."""
    return "b" if side == "a" else "a"


Influence = Callable[[ComparedRows, float, float], Array]


def _row_influence(rows: ComparedRows, start: float, stop: float) -> Array:
    """What each row adds to the area under its curve from `start` to `stop`."""

    def of_cells(sweep: Sweep) -> Array:
        influence = area_influence(sweep, start, moving_start=False)
        return influence - area_influence(sweep, stop, moving_start=False) if stop < 1 else influence

    return rows.spread_out(of_cells)


def overall_contrast(a: ComparedRows, b: ComparedRows, region: Range, **how: Any) -> Contrast:
    """The contrast that decides overall: of areas or, of a region asked for, of the mean errors over it."""
    return area_contrast(a, b, **how) if region == EVERYWHERE else region_contrast(a, b, region, **how)


def area_contrast(
    a: ComparedRows, b: ComparedRows, *, paired: bool, level: float = 0.95, influence: Influence = _row_influence
) -> Contrast:
    """AUGRC of `a` less that of `b`, over the non-return rates that both reach."""
    estimate, start = area_difference(a, b, paired=paired, influence=influence)
    if start >= 1:
        return Contrast(NOTHING_TO_COMPARE, (start, start), level)
    return Contrast(_at_least(estimate, (a, b), 1.0, paired=paired), (start, 1.0), level, most=0.5)


def region_contrast(
    a: ComparedRows,
    b: ComparedRows,
    region: Range,
    *,
    paired: bool,
    level: float = 0.95,
    influence: Influence = _row_influence,
) -> Contrast:
    """Mean error rate of `a` less that of `b` over a region of non-return rates, as far as both reach it."""
    area, start = area_difference(a, b, paired=paired, region=region, influence=influence)
    width = region[1] - start
    if width <= 0:
        return Contrast(NOTHING_TO_COMPARE, (start, start), level)
    mean = replace(area, value=area.value / width, error=area.error / width)
    return Contrast(_at_least(mean, (a, b), 2.0, paired=paired), (start, region[1]), level)


def right_contrast(a: ComparedRows, b: ComparedRows, *, paired: bool, level: float = 0.95) -> Contrast:
    """Right answers of `a` less those of `b` as shares of all inputs, when each returns every answer it has."""
    one, two = a.right_share, b.right_share
    estimate = estimated_difference(one - two, (a, b), (a.are_right - one, b.are_right - two), paired=paired)
    return Contrast(_at_least(estimate, (a, b), 2.0, paired=paired), (_floor(a), _floor(b)), level)


STEP = 0.05
"""Half the range of non-return rates over which the slope of a curve is taken."""


def point_contrast(
    a: ComparedRows, b: ComparedRows, at: float, *, paired: bool, level: float = 0.95, tests: int = 1
) -> Contrast:
    """Error rate of `a` less that of `b` when each withholds a share `at` of the inputs, the least sure first."""
    curves = [rows.sweep().rates for rows in (a, b)]
    if at < max(x[0] for x, _ in curves):
        return Contrast(NOTHING_TO_COMPARE, (at, at), level, tests)
    rates = [float(np.interp(at, *curve)) for curve in curves]
    one, two = (rows.spread_out(lambda sweep: _point_influence(sweep, at)) for rows in (a, b))
    estimate = estimated_difference(rates[0] - rates[1], (a, b), (one, two), paired=paired)
    return Contrast(_at_least(estimate, (a, b), 2.0, paired=paired), (at, at), level, tests)


def _point_influence(sweep: Sweep, at: float) -> Array:
    """What a row of each cell adds to the error rate at a non-return rate.

    That is whether it is a returned error, plus what moving the cutoff back to the share asked for would return again:
    the slope of the curve there.
    """
    x, y = sweep.rates
    low, high = max(at - STEP, x[0]), min(at + STEP, 1.0)
    slope = float(np.interp(low, x, y) - np.interp(high, x, y)) / (high - low) if high > low else 0.0
    # between two cutoffs a part of the tied answers is returned
    last = int(np.searchsorted(x, at, side="right")) - 1
    part = (at - x[last]) / (x[last + 1] - x[last]) if last + 1 < len(x) else 0.0
    size, rate = sweep.threshold.size, float(np.interp(at, x, y))
    withheld = np.zeros(2 * size + 1)  # of the right answers at each level, of the wrong ones, and of what has none
    for level in (withheld[:size], withheld[size:-1]):
        level[:last] = 1.0
        level[last : last + 1] = part
    withheld[-1] = 1.0
    influence = np.full(2 * size + 1, -rate)
    np.subtract(1.0, withheld[size:-1], out=influence[size:-1])
    influence[size:-1] -= rate
    withheld -= at
    withheld *= slope
    influence += withheld
    return influence


def area_difference(
    a: ComparedRows,
    b: ComparedRows,
    *,
    paired: bool,
    region: Range = EVERYWHERE,
    influence: Influence = _row_influence,
) -> tuple[Estimate, float]:
    """Area between the curves of `a` and `b` over a range, as far as both reach it, and where it starts.

    The range starts at a fixed rate, or where the system starts that withholds more by itself: that start moves with
    the sample.
    """
    sweeps, floors = [rows.sweep() for rows in (a, b)], [_floor(rows) for rows in (a, b)]
    left = max(*floors, region[0])
    stop = max(left, region[1])
    one, two = (area_from(sweep, left) - area_from(sweep, stop) for sweep in sweeps)
    parts = [influence(rows, left, stop) for rows in (a, b)]
    if left == max(floors):
        heights = [np.interp(left, *sweep.rates) for sweep in sweeps]
        mover = int(floors[1] > floors[0])
        shift = (1 if mover else -1) * (heights[0] - heights[1])
        parts[mover] = parts[mover] + shift * ((a, b)[mover].are_withheld - floors[mover])
    return estimated_difference(one - two, (a, b), (parts[0], parts[1]), paired=paired), left


def estimated_difference(
    value: float, rows: tuple[ComparedRows, ComparedRows], influence: tuple[Array, Array], *, paired: bool
) -> Estimate:
    """A difference with its standard error; `influence` is what each row adds to the figure of its system."""
    if paired:
        return Estimate.of_spread(value, rows[0].paired_spread(rows[1], influence))
    one, two = (Estimate.of_spread(0.0, side.own_spread(part)) for side, part in zip(rows, influence, strict=True))
    total, freedom = one.error**2 + two.error**2, min(one.freedom, two.freedom)
    if total > 0:  # Welch's degrees of freedom
        freedom = max(1, int(total**2 / (one.error**4 / one.freedom + two.error**4 / two.freedom)))
    return Estimate(value, float(np.hypot(one.error, two.error)), freedom)


def fewest_units(rows: Rows, inside: Flags) -> int:
    """Dialogues, or rows, on the smaller side of some rows and the others."""
    unit, sides = rows.unit, (inside, ~inside)
    return min(int(side.sum()) if unit is None else np.unique(unit[side]).size for side in sides)


def pooled_estimate(
    rows: Rows, inside: Flags, influence: Array, difference: float, times: Array | None = None
) -> Estimate:
    """A difference between some rows and the others, with its standard error if both come from one population.

    A side without a single error has no spread, and its own standard error would be 0. So the spread is that of all
    rows, as is the correlation of rows in a dialogue. Where one row stands for several, `times` says for how many.
    """
    weight, unit, times = rows.weight, rows.unit, np.ones(inside.size) if times is None else times
    centred = influence - float((influence * weight).sum() / weight.sum())
    squares = float((times * np.square(centred)).sum())
    variance = squares / (float(times.sum()) - 1)
    share = weight * np.where(inside, 1 / weight[inside].sum(), -1 / weight[~inside].sum())
    alone = float((np.square(share) / times).sum())
    spread = variance * alone
    if unit is not None:
        together = float(np.square(np.bincount(unit, weights=share)).sum())
        sizes = np.bincount(unit, weights=times).astype(np.float64)
        pairs = float((sizes * (sizes - 1)).sum())
        products = float(np.square(np.bincount(unit, weights=times * centred)).sum()) - squares
        covariance = products / pairs if pairs else 0.0  # of two rows of one dialogue
        spread += max(covariance, 0.0) * (together - alone)
    return Estimate(difference, math.sqrt(max(spread, 0.0)), max(1, fewest_units(rows, inside) - 1))


def _at_least(estimate: Estimate, rows: tuple[ComparedRows, ComparedRows], inputs: float, *, paired: bool) -> Estimate:
    """The estimate with a standard error of at least what so many inputs more or less would make of it.

    A handful of inputs that all differ the same way have no spread, and would be taken for certain. With this Student's
    t asks for six of them before it shows a difference at .95, as the exact sign test does. Where inputs come in
    dialogues it asks for six of these: t is never above half their number.
    """
    one, two = (max(inputs / side.effective_n, 2 * abs(estimate.value) / side.independent) for side in rows)
    return replace(estimate, error=max(estimate.error, max(one, two) if paired else math.hypot(one, two) / 2))


def _floor(rows: ComparedRows) -> float:
    sweep = rows.sweep()
    return float(sweep.withheld / sweep.total)


@dataclass(frozen=True, slots=True)
class Standing:
    """One system among the others."""

    system: str
    n: int
    rank: tuple[int, int]
    """The places that tests of every two systems leave open: behind those shown better, before those shown worse."""
    figures: Mapping[str, Figure]
    difference: Contrast | None
    """Its errors less those of the baseline; None of the baseline itself."""
    verdict: Against | None
    """Whether it is significantly better or worse overall than the baseline; None where neither is shown."""

    def to_dict(self) -> dict[str, Any]:
        """The standing as plain values."""
        figures = {name: figure.to_dict() for name, figure in self.figures.items()}
        difference = None if self.difference is None else self.difference.to_dict()
        about = {"system": self.system, "n": self.n, "rank": list(self.rank)}
        return {**about, **figures, "difference": difference, "verdict": self.verdict}


@dataclass(frozen=True, eq=False)
class Leaderboard:
    """Systems in order, those that no test separates with overlapping ranks."""

    standings: tuple[Standing, ...]
    baseline: str
    tests: int
    """Tests of every two systems, for which ranks are corrected together."""
    pairs: tuple[PairTests, ...]
    sort: SortKey = "rank"
    """What the standings are sorted by."""

    @property
    def ranked(self) -> list[Standing]:
        """The systems by rank, then by area, whatever they are sorted by."""
        areas = {one.system: one.figures["augrc"].value for one in self.standings}
        return sorted(self.standings, key=lambda one: (sum(one.rank), math.isnan(areas[one.system]), areas[one.system]))

    def to_dict(self) -> dict[str, Any]:
        """The leaderboard as plain values; the tests of every two systems in the order of the logs."""
        every = [
            {"a": one.a, "b": one.b, "better": one.better, "difference": one.overall.to_dict()} for one in self.pairs
        ]
        values: dict[str, Any] = plain(
            {
                "baseline": self.baseline,
                "leaderboard": [one.to_dict() for one in self.standings],
                "every_two": every,
            }
        )
        return values

    def frame(self) -> pl.DataFrame:
        """The leaderboard as a table."""
        rows = []
        for one in self.standings:
            row: dict[str, Any] = {
                "system": one.system,
                "n": one.n,
                "rank_best": one.rank[0],
                "rank_worst": one.rank[1],
            }
            for name, figure in one.figures.items():
                row |= {name: figure.value, f"{name}_low": figure.low, f"{name}_high": figure.high}
            if one.difference is not None:
                low, high = one.difference.interval
                row |= {"difference": one.difference.value, "difference_low": low, "difference_high": high}
                row["p_adjusted"] = one.difference.p_adjusted
            rows.append(row)
        return pl.DataFrame(rows, infer_schema_length=None)


def chosen_baseline(asked: str | None, curves: Mapping[str, ErrorReturnCurve], every: Sequence[PairTests]) -> str:
    """The system that others are held against: the first, the one that is named, or the one that ranks best.

    It may be named as tables name it, without what all names share.

    The area alone does not make a system the best: one that answers next to nothing has next to none.
    """
    if asked is None:
        return next(iter(curves))
    if asked in curves:
        return asked
    if asked == BEST:
        ranks = _open_ranks(list(curves), every)
        return min(curves, key=lambda name: (sum(ranks[name]), _area(curves[name])))
    if named := [name for name, short in names_in_short(list(curves))[0].items() if short == asked]:
        return named[0]
    raise UsageError(f'there is no system "{asked}" to be the baseline; {nearest(asked, (*curves, BEST))}')


def leaderboard(
    evaluations: Sequence[Evaluation],
    every: Sequence[PairTests],
    against: Sequence[PairTests],
    baseline: str,
    sort: SortKey = "rank",
) -> Leaderboard:
    """The systems ranked by the tests of `every` two, with differences from the baseline as tested in `against`."""
    if sort not in get_args(SortKey):
        raise UsageError(f'a leaderboard is sorted by {", ".join(get_args(SortKey))}; got "{sort}"')
    ranks = _open_ranks([one.name for one in evaluations], every)
    differences: dict[str, Contrast] = {}
    verdicts: dict[str, Against] = {}
    for pair in (one for one in against if baseline in (one.a, one.b)):
        own, name = ("b", pair.b) if pair.a == baseline else ("a", pair.a)
        differences[name] = pair.overall.turned() if own == "b" else pair.overall
        if pair.better is not None:
            verdicts[name] = "better" if pair.better == own else "worse"
    standings = [
        Standing(
            one.name,
            one.n,
            ranks[one.name],
            {name: one.figures[name] for name in FIGURES if name in one.figures},
            differences.get(one.name),
            verdicts.get(one.name),
        )
        for one in evaluations
    ]
    areas = {one.name: _area(one.curve) for one in evaluations}
    standings.sort(key=lambda one: _sort_value(one, sort, areas))
    return Leaderboard(tuple(standings), baseline, every[0].overall.tests if every else 0, tuple(every), sort)


def _open_ranks(names: Sequence[str], every: Sequence[PairTests]) -> dict[str, tuple[int, int]]:
    """The places that tests of every two systems leave open to each."""
    first, last = dict.fromkeys(names, 1), dict.fromkeys(names, len(names))
    for pair in every:
        if pair.better is not None:
            winner, loser = (pair.a, pair.b) if pair.better == "a" else (pair.b, pair.a)
            first[loser] += 1
            last[winner] -= 1
    return {name: (first[name], last[name]) for name in names}


def _sort_value(one: Standing, sort: SortKey, areas: Mapping[str, float]) -> Any:
    """What a standing is sorted by, the best first; what is undefined comes last."""
    if sort == "system":
        return natural_order(one.system)
    area = areas[one.system]
    if sort == "rank":
        return sum(one.rank), area
    if sort == "difference":
        value = 0.0 if one.difference is None else one.difference.value
    else:
        figure = one.figures.get(sort)
        value = math.nan if figure is None else figure.value * (-1 if sort == "ranking_skill" else 1)
    return (math.isnan(value), 0.0 if math.isnan(value) else value, area)


def _area(curve: ErrorReturnCurve) -> float:
    value = float(AUGRC().finish(curve.sweep))
    return math.inf if math.isnan(value) else value


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
    signs = np.array(
        [[_band_sign(name, names[best], bands, at) for name in names] for best, at in zip(leader, x, strict=True)]
    )
    closed, gaps = _closed(signs, leader, x)
    runs = _merged(closed, leader, x)
    edges = [float(x[0])]
    for start, _ in runs[1:]:  # a region that claims less than the one before begins at the last rate of that one
        fewer = bool((closed[start - 1][closed[start] == WORSE] == WORSE).all())
        edges.append(float(x[start - 1 if fewer else start]))
    regions = []
    for (start, stop), ends in zip(runs, pairwise([*edges, float(x[-1])]), strict=True):
        best, states = names[leader[start]], list(zip(names, closed[start], strict=True))
        also, absent = (
            tuple(name for name, state in states if name != best and state == kind) for kind in (OPEN, ABSENT)
        )
        regions.append(RankingRegion(*ends, best, also, absent, bool(gaps[start:stop].any())))
    return tuple(regions)


def _steady(leader: Places, x: Array) -> Places:
    """The leader without stretches too short to tell: such a one goes to the one before it, the first to the next."""
    steady = leader.copy()
    for start, stop in _runs(leader):
        if _short(start, stop, x):
            steady[start:stop] = steady[start - 1] if start > 0 else leader[min(stop, leader.size - 1)]
    return steady


def _closed(signs: Places, leader: Places, x: Array) -> tuple[Places, NDArray[np.bool_]]:
    """Short gaps in what is shown closed, and where they were; what is shown over a short stretch only, dropped."""
    closed, gaps = signs.copy(), np.zeros(signs.shape, dtype=np.bool_)
    for system in range(signs.shape[1]):
        column = closed[:, system]
        for start, stop in _runs(column)[1:-1]:
            around = {int(column[start - 1]), int(column[stop])}
            if column[start] == OPEN and around == {WORSE} and _short(start, stop, x):
                column[start:stop], gaps[start:stop, system] = WORSE, True
        for start, stop in _runs(np.column_stack([leader, column])):
            if column[start] == WORSE and _short(start, stop, x):
                column[start:stop], gaps[start:stop, system] = OPEN, False
    return closed, gaps


def _merged(signs: Places, leader: Places, x: Array) -> list[tuple[int, int]]:
    """The regions, short ones joined to a neighbour of the same leader that claims no more than they do."""
    place = 0
    while place < len(regions := _runs(np.column_stack([leader, signs]))):
        start, stop = regions[place]
        sides = [regions[side][0] for side in (place + 1, place - 1) if 0 <= side < len(regions)]
        weaker = [
            side
            for side in sides
            if leader[side] == leader[start] and (signs[start][signs[side] == WORSE] == WORSE).all()
        ]
        if weaker and _short(start, stop, x):
            signs[start:stop] = signs[weaker[0]]
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
    return bool(x[min(stop, x.size - 1)] - x[start] < SHORTEST_REGION + 1e-9)


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
