"""What lists are worth in dialogue: smooth curves of reward and oracle error over a measure (Thomson et al. 2008)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from demur.core.io.tables import named_column
from demur.core.show.html import drawn
from demur.core.show.numbers import Wording, number
from demur.core.show.presentation import Presentation, ResultTable, drawing
from demur.core.show.results import Shown, register
from demur.core.stats.smoothing import Smooth, smooth
from demur.errors import DataError
from demur.nbest_lists.evaluate import NBestEvaluations
from demur.nbest_lists.measures import NBEST
from demur.nbest_lists.presentation import NAMES
from demur.returns.presentation import MOST_IN_COLUMNS

SUCCESS, TURN = 20.0, 1.0
"""What a successful dialogue is worth, and what a turn costs."""

NONE = "(none)"

_TRUTH = {
    **dict.fromkeys(("true", "True", "TRUE", "yes", "1", "1.0"), 1.0),
    **dict.fromkeys(("false", "False", "FALSE", "no", "0", "0.0"), 0.0),
}


@dataclass(frozen=True, eq=False, repr=False)
class Smooths(Shown):
    """One quantity of dialogues against another, a smooth curve with its standard error per group (figures 2 and 3)."""

    curves: tuple[Smooth, ...]
    x: str
    y: str
    dialogues: pl.DataFrame
    """`group`, `dialogue`, x and y."""
    left_out: int
    """Dialogues in which x or y is undefined."""
    unit: str = "dialogue"
    """What each point is: a dialogue or, where there are none, an utterance."""
    by: str | None = None
    """The column of groups, where they come from one."""
    floor: float | None = None
    """The floor of the ICE."""

    def frame(self) -> pl.DataFrame:
        """The curves, a row per group and place."""
        return pl.concat([curve.frame() for curve in self.curves])

    def to_dict(self) -> dict[str, Any]:
        """The curves as plain values."""
        return {
            "x": self.x,
            "y": self.y,
            "unit": self.unit,
            "dialogues": self.dialogues.height,
            "left_out": self.left_out,
            "floor": self.floor,
            "groups": [curve.to_dict() for curve in self.curves],
        }


def reward_curves(
    evaluations: NBestEvaluations, dialogues: pl.DataFrame, *, group: str | None, measure: str = "ice"
) -> Smooths:
    """The reward of dialogues, 20 for success less 1 for each turn, against a measure of their lists, by group.

    `dialogues` has a row for each, with the columns dialogue, success and turns, and the group's.
    """
    if not all(one.totals.clustered for one in evaluations):
        raise DataError("the lists name no dialogues", fix="rewards belong to dialogues: --map dialogue=COLUMN")
    values = pl.concat([one.per_dialogue() for one in evaluations]).select("dialogue", pl.col(measure).alias("x"))
    twice = values.filter(pl.col("dialogue").is_duplicated())["dialogue"]
    if len(twice):
        systems = ", ".join(one.system for one in evaluations)
        raise DataError(
            f'the dialogue "{twice[0]}" is in the lists of several systems: {systems}',
            fix="--where system=NAME keeps one, or give the files of one",
        )
    table = rewards(dialogues, group=group).join(values, on="dialogue", how="inner", maintain_order="left")
    table = table.select("group", "dialogue", "x", "y")
    if table.is_empty():
        raise DataError("no dialogue of the lists is in the table of dialogues", fix="do the names of dialogues agree?")
    return replace(_smooth(table, measure, "reward"), by=group, floor=evaluations[0].settings.least)


def rewards(dialogues: pl.DataFrame, *, group: str | None = None) -> pl.DataFrame:
    """The reward of each dialogue as `y`, 20 for success less 1 for each turn, with its group; null where not known.

    >>> dialogues = pl.DataFrame({"dialogue": ["d1", "d2"], "success": ["yes", "no"], "turns": [4, 9]})
    >>> rewards(dialogues)["y"].to_list()
    [16.0, -9.0]
    """
    needed = ("dialogue", "success", "turns", *([] if group is None else [group]))
    lacking = [name for name in needed if name not in dialogues.columns]
    if lacking:
        raise DataError(
            f"the table of dialogues has no column {', '.join(lacking)}; there are {', '.join(dialogues.columns)}",
            fix="rewards need dialogue, success (true or false) and turns (a number), and the column to group by",
        )
    named = dialogues.with_columns(pl.col("dialogue").cast(pl.String))
    twice = named.filter(pl.col("dialogue").is_duplicated())["dialogue"]
    if len(twice):
        raise DataError(f'the dialogue "{twice[0]}" is there twice', fix="one row for each dialogue")
    truth = pl.col("success").cast(pl.String).replace_strict(_TRUTH, default=None, return_dtype=pl.Float64)
    numbers = named.select(success=truth, turns=pl.col("turns").cast(pl.Float64, strict=False))
    for column, kind in (("success", "true or false"), ("turns", "a number")):
        lost = named.filter(numbers[column].is_null() & named[column].is_not_null())
        if lost.height:
            name, got = lost.select("dialogue", pl.col(column).cast(pl.String)).row(0)
            raise DataError(f"{column} must be {kind}", where=f'dialogue "{name}":', got=got)
    grouped = pl.lit("all") if group is None else named_column(group).cast(pl.String).fill_null(NONE)
    return named.select("dialogue", group=grouped, y=SUCCESS * numbers["success"] - TURN * numbers["turns"])


def oracle_curves(evaluations: NBestEvaluations) -> Smooths:
    """ICE of dialogues against the oracle error of their lists, by system."""
    parts = [
        one.per_dialogue().select(
            pl.lit(one.system).alias("group"), "dialogue", pl.col("oracle").alias("x"), pl.col("ice").alias("y")
        )
        for one in evaluations
    ]
    unit = "dialogue" if all(one.totals.clustered for one in evaluations) else "utterance"
    return replace(_smooth(pl.concat(parts), "oracle", "ice", unit), floor=evaluations[0].settings.least)


def _smooth(table: pl.DataFrame, x: str, y: str, unit: str = "dialogue") -> Smooths:
    defined = table.drop_nulls(["x", "y"])
    if defined.is_empty():
        raise DataError(f"{x} or {y} is undefined in every {unit}", fix="is anything meant in any of them?")
    groups: Mapping[Any, pl.DataFrame] = defined.partition_by("group", as_dict=True, maintain_order=True)
    curves = tuple(smooth(part["x"], part["y"], name=str(name)) for (name,), part in groups.items())
    return Smooths(curves, x, y, defined, table.height - defined.height, unit)


FLOORED = {"ice", "ace", "nce", "nce_top", "act_nce"}
"""Measures that depend on the floor."""

MOST_PLACES = 10
"""Places on the common grid of a table of curves."""

REWARD = "reward (20 for success, less 1 a turn)"


def of_smooths(smooths: Smooths) -> Presentation:
    """One quantity of dialogues against another, as in figures 2 and 3."""
    notes = ["Gaussian process, Matern 5/2, type II maximum likelihood; bands of one standard error"]
    if smooths.left_out:
        count = Wording(f"{smooths.unit} left out", f"{smooths.unit}s left out").with_count(smooths.left_out)
        notes.append(f"{count}: {_called(smooths.x)} or {_called(smooths.y)} undefined")
    return Presentation(
        title=f"{_called(smooths.y).replace('reward', 'Reward')} against {_called(smooths.x)}",
        sentences=tuple(_smooth_sentences(smooths)),
        tables=(_smooth_table(smooths),),
        figures=(drawing("core.show.smooth_chart.smooth_chart", named_curves(smooths), **axes(smooths)),),
        data=smooths.frame,
        document=smooths.to_dict(),
        notes=tuple(notes),
    )


def named_curves(smooths: Smooths) -> tuple[Smooth, ...]:
    """The curves, each named with the column that its group comes from."""
    if smooths.by is None:
        return smooths.curves
    column = smooths.by.replace("_", " ")
    return tuple(replace(curve, name=f"{column} {curve.name}") for curve in smooths.curves)


def axes(smooths: Smooths) -> dict[str, Any]:
    """The titles of the axes, which way is better, and whether y is bounded."""
    better = "higher" if smooths.y == "reward" else NBEST[smooths.y].better
    x, y = (
        REWARD if name == "reward" else f"{_called(name)} of the {smooths.unit}'s lists{_floor_of(smooths, name)}"
        for name in (smooths.x, smooths.y)
    )
    return {"x_title": x, "y_title": y, "better": better, "bounded": smooths.y == "reward"}


def _floor_of(smooths: Smooths, name: str) -> str:
    return "" if smooths.floor is None or name not in FLOORED else f", floor {smooths.floor:g}"


def _called(name: str) -> str:
    """A quantity's name in a sentence.

    >>> _called("oracle"), _called("ser"), _called("reward")
    ('oracle error', 'SER, top hypothesis', 'reward')
    """
    return NAMES.get(name, name).removesuffix(" (ORA)")


def _smooth_sentences(smooths: Smooths) -> list[str]:
    sentences = []
    for curve in named_curves(smooths):
        first, last = float(curve.mean[0]), float(curve.mean[-1])
        points = Wording(smooths.unit, f"{smooths.unit}s").with_count(curve.n)
        way = f"{'falls' if last < first else 'rises'} from {number(first)} to {number(last)}"
        sentences.append(
            f"{curve.name} ({points}): {_called(smooths.y)} {f'stays at {number(first)}' if first == last else way} as "
            f"{_called(smooths.x)} goes from {number(float(curve.x[0]))} to {number(float(curve.x[-1]))}."
        )
    return sentences


def _smooth_table(smooths: Smooths) -> ResultTable:
    """The curves at the same round places, a column for each group; a dash where a group has no such x."""
    curves = named_curves(smooths)
    rows = [(number(x), *(_height_at(curve, x) for curve in curves)) for x in _round_places(curves)]
    title = "Along the curves, ± one standard error"
    columns = (_called(smooths.x), *(curve.name for curve in curves))
    return ResultTable(title, columns, tuple(rows), crowded=len(curves) > MOST_IN_COLUMNS)


def _round_places(curves: Sequence[Smooth]) -> list[float]:
    """At most ten multiples of 1, 2 or 5 times a power of ten in the range of x over all groups."""
    low, high = min(float(curve.x[0]) for curve in curves), max(float(curve.x[-1]) for curve in curves)
    if not high > low:
        return [low]
    power = 10.0 ** math.floor(math.log10((high - low) / MOST_PLACES))
    for step in (factor * power for factor in (1, 2, 5, 10, 20)):
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first < MOST_PLACES:
            break
    return [round(place * step, 12) for place in range(first, last + 1)]


def _height_at(curve: Smooth, x: float) -> str:
    """The height of a curve with its error; a dash beyond its ends."""
    slack = 1e-9 * max(abs(float(curve.x[0])), abs(float(curve.x[-1])))
    if not curve.x[0] - slack <= x <= curve.x[-1] + slack:
        return "–"
    mean, error = (float(np.interp(x, curve.x, values)) for values in (curve.mean, curve.error))
    return number(mean) if math.isnan(error) else f"{number(mean)} ± {number(error)}"


register(Smooths, chart=drawn("core.show.smooth_chart.smooth_chart", named_curves, axes), present=of_smooths)
