"""Many systems in one table: rank with its interval, area, difference from the baseline, and readings at a point."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import polars as pl

from demur.core.io.columns import nearest
from demur.core.show.results import plain
from demur.core.stats.intervals import Figure
from demur.errors import UsageError
from demur.returns.comparison.contrasts import Contrast, PairTests
from demur.returns.curves import ErrorReturnCurve
from demur.returns.evaluate import Evaluation
from demur.returns.measures import AUGRC
from demur.returns.options import SortKey

FIGURES = ("augrc", "forced_error", "error_at_nonreturn", "nonreturn_at_error", "ranking_skill")
"""Measures that stand in a leaderboard, as far as they were asked for."""

BEST = "best"


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

    def to_dict(self) -> dict[str, Any]:
        """The standing as plain values."""
        figures = {name: figure.to_dict() for name, figure in self.figures.items()}
        difference = None if self.difference is None else self.difference.to_dict()
        about = {"system": self.system, "n": self.n, "rank": list(self.rank)}
        return {**about, **figures, "difference": difference}


@dataclass(frozen=True, eq=False)
class Leaderboard:
    """Systems in order, those that no test separates with overlapping ranks."""

    standings: tuple[Standing, ...]
    baseline: str
    tests: int
    """Tests of every two systems, for which ranks are corrected together."""
    pairs: tuple[PairTests, ...]

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


def chosen_baseline(asked: str | None, curves: Mapping[str, ErrorReturnCurve]) -> str:
    """The system that others are held against: the first, the one that is named, or the one with the least area."""
    if asked is None:
        return next(iter(curves))
    if asked in curves:
        return asked
    if asked == BEST:
        return min(curves, key=lambda name: _area(curves[name]))
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
    better, worse = ({one.name: 0 for one in evaluations} for _ in range(2))
    for pair in every:
        if pair.better is not None:
            winner, loser = (pair.a, pair.b) if pair.better == "a" else (pair.b, pair.a)
            better[loser] += 1
            worse[winner] += 1
    differences = {
        (pair.b if pair.a == baseline else pair.a): pair.overall if pair.b == baseline else pair.overall.turned()
        for pair in against
        if baseline in (pair.a, pair.b)
    }
    standings = [
        Standing(
            one.name,
            one.n,
            (1 + better[one.name], len(evaluations) - worse[one.name]),
            {name: one.figures[name] for name in FIGURES if name in one.figures},
            differences.get(one.name),
        )
        for one in evaluations
    ]
    areas = {one.name: _area(one.curve) for one in evaluations}
    standings.sort(key=lambda one: _sort_value(one, sort, areas))
    return Leaderboard(tuple(standings), baseline, every[0].overall.tests if every else 0, tuple(every))


def _sort_value(one: Standing, sort: SortKey, areas: Mapping[str, float]) -> Any:
    """What a standing is sorted by, the best first; what is undefined comes last."""
    if sort == "system":
        return one.system
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
