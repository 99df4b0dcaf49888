"""The experiments of Thomson et al. (2008): scorers by measure, noise and list length, reward, and the oracle."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from demur.analyses.gaussian_process import Smooth, smooth
from demur.analyses.nbest import Manner, NBestEvaluations, evaluate_nbest
from demur.data.nbest import NBest, NBestReading, Recording, joined, renamed
from demur.errors import DataError
from demur.show import Shown, Step, silent
from demur.systems.listening import Listener

PAPER_SCORERS = ("const", "avgword", "infev", "infev-tp1")
"""The scorers of Table 3."""

KEPT = (1, 2, 3, 5, 10, 20, 50, 100)
"""Numbers of sentences of figure 1."""

SUCCESS, TURN = 20.0, 1.0
"""What a successful dialogue is worth, and what a turn costs."""

NONE = "(none)"

_TRUTH = {
    **dict.fromkeys(("true", "True", "TRUE", "yes", "1", "1.0"), 1.0),
    **dict.fromkeys(("false", "False", "FALSE", "no", "0", "0.0"), 0.0),
}


@dataclass(frozen=True, slots=True)
class Trial:
    """Recorded utterances, what turns them into lists, and how the lists are read and evaluated."""

    recording: Recording
    listener: Listener
    reading: NBestReading
    manner: Manner

    def lists(self, scorer: str, *, kept: int | None = None) -> NBest:
        """The lists that a scorer makes of so many sentences."""
        made = replace(self.reading, hypothesise=self.listener.by(scorer, kept=kept))
        table = self.recording.lists(made)
        _refuse_shared_ids(table)
        return renamed(table, scorer)


def _refuse_shared_ids(table: NBest) -> None:
    """Refuse utterances that several systems have: all are one system here, and each counts once."""
    named = table.frame.filter(pl.col("id").is_not_null() & pl.col("id").is_duplicated())
    if named.height:
        raise DataError(
            f'the utterance "{named["id"][0]}" is in several systems: {", ".join(table.systems)}',
            fix="--where system=NAME keeps one, or give the files of one",
        )


@dataclass(frozen=True, eq=False)
class ScorerTable(Shown):
    """Scorers by measures (Table 3), all from the same sentences."""

    evaluations: NBestEvaluations
    sentences: int

    def frame(self) -> pl.DataFrame:
        """A row per scorer and measure."""
        return self.evaluations.frame().rename({"system": "scorer"}).drop("slice")

    def to_dict(self) -> dict[str, Any]:
        """The table as plain values."""
        return {"sentences": self.sentences, "systems": [one.to_dict() for one in self.evaluations]}


@dataclass(frozen=True, eq=False)
class LengthSweep(Shown):
    """Measures by condition and number of sentences kept (figure 1): `condition`, `kept`, `measure`, value, ends."""

    rows: pl.DataFrame
    scorer: str
    by: str | None
    level: float

    def of(self, measure: str) -> pl.DataFrame:
        """The rows of one measure, for its figure."""
        return self.rows.filter(pl.col("measure") == measure).select("condition", "kept", "value", "low", "high")

    def frame(self) -> pl.DataFrame:
        """A row per condition, number of sentences and measure."""
        return self.rows

    def to_dict(self) -> dict[str, Any]:
        """The sweep as plain values."""
        return {"scorer": self.scorer, "by": self.by, "rows": self.rows.to_dicts()}


@dataclass(frozen=True, eq=False)
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
            "groups": [curve.to_dict() for curve in self.curves],
        }


def scorer_table(
    trial: Trial, *, scorers: Sequence[str] = PAPER_SCORERS, kept: int = 5, step: Step = silent
) -> ScorerTable:
    """Every measure of the lists that scorers make of the same sentences."""
    tables = []
    for done, scorer in enumerate(scorers):
        step(f"scoring by {scorer}", done, 2 * len(scorers))
        tables.append(trial.lists(scorer, kept=kept))
    return ScorerTable(evaluate_nbest(joined(tables), manner=trial.manner, step=step), kept)


def length_sweep(
    trial: Trial,
    *,
    by: str | None,
    scorer: str = "infev",
    kept: Sequence[int] = KEPT,
    step: Step = silent,
) -> LengthSweep:
    """Every measure for each number of sentences kept, in each condition."""
    rows: list[dict[str, Any]] = []
    for done, most in enumerate(kept):
        step(f"keeping {most} sentences", done, len(kept))
        lists = trial.lists(scorer, kept=most)
        for one in evaluate_nbest(lists, by=by, manner=trial.manner):
            if (one.part is None) != (by is None):
                continue
            condition = "all" if one.part is None else one.part.partition("=")[2]
            rows += [
                {"condition": condition, "kept": most, "measure": key, "value": f.value, "low": f.low, "high": f.high}
                for key, f in one.figures.items()
            ]
    rows.sort(key=_ice_of_longest(rows, max(kept)))
    return LengthSweep(pl.DataFrame(rows, infer_schema_length=None), scorer, by, trial.manner.level)


def _ice_of_longest(rows: list[dict[str, Any]], longest: int) -> Callable[[dict[str, Any]], float]:
    """Orders conditions from the easiest to the hardest, by the ICE of the longest lists."""
    ice = {row["condition"]: row["value"] for row in rows if row["measure"] == "ice" and row["kept"] == longest}
    return lambda row: float(np.nan_to_num(ice[row["condition"]], nan=np.inf))


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
    told = rewards(dialogues, group=group)
    table = told.join(values, on="dialogue", how="inner", maintain_order="left").select("group", "dialogue", "x", "y")
    if table.is_empty():
        raise DataError("no dialogue of the lists is in the table of dialogues", fix="do the names of dialogues agree?")
    return replace(_smoothed(table, measure, "reward"), by=group)


def rewards(dialogues: pl.DataFrame, *, group: str | None = None) -> pl.DataFrame:
    """The reward of each dialogue as `y`, 20 for success less 1 for each turn, with its group; null where not known.

    >>> told = pl.DataFrame({"dialogue": ["d1", "d2"], "success": ["yes", "no"], "turns": [4, 9]})
    >>> rewards(told)["y"].to_list()
    [16.0, -9.0]
    """
    lacking = [
        name for name in ("dialogue", "success", "turns", *([group] if group else [])) if name not in dialogues.columns
    ]
    if lacking:
        raise DataError(
            f"the table of dialogues has no column {', '.join(lacking)}; there are {', '.join(dialogues.columns)}",
            fix="rewards need dialogue, success (true or false) and turns (a number), and the column to group by",
        )
    named = dialogues.with_columns(pl.col("dialogue").cast(pl.String))
    twice = named.filter(pl.col("dialogue").is_duplicated())["dialogue"]
    if len(twice):
        raise DataError(f'the dialogue "{twice[0]}" is told of twice', fix="one row for each dialogue")
    success = _numbers(
        named,
        "success",
        "true or false",
        pl.col("success").cast(pl.String).replace_strict(_TRUTH, default=None, return_dtype=pl.Float64),
    )
    turns = _numbers(named, "turns", "a number", pl.col("turns").cast(pl.Float64, strict=False))
    grouped = pl.lit("all") if group is None else pl.col(group).cast(pl.String).fill_null(NONE)
    return named.select("dialogue", group=grouped, y=SUCCESS * success - TURN * turns)


def _numbers(table: pl.DataFrame, column: str, kind: str, read: pl.Expr) -> pl.Series:
    """A column read as numbers; what is there but cannot be read is a fault."""
    found = table.select(read.alias(column)).to_series()
    lost = table.filter(found.is_null() & table[column].is_not_null())
    if lost.height:
        name, got = lost.select("dialogue", pl.col(column).cast(pl.String)).row(0)
        raise DataError(f"{column} must be {kind}", where=f'dialogue "{name}":', got=got)
    return found


def oracle_curves(evaluations: NBestEvaluations, *, measure: str = "ice") -> Smooths:
    """A measure of dialogues against the oracle error of their lists, by system."""
    parts = [
        one.per_dialogue().select(
            pl.lit(one.system).alias("group"), "dialogue", pl.col("oracle").alias("x"), pl.col(measure).alias("y")
        )
        for one in evaluations
    ]
    unit = "dialogue" if all(one.totals.clustered for one in evaluations) else "utterance"
    return _smoothed(pl.concat(parts), "oracle", measure, unit)


def _smoothed(table: pl.DataFrame, x: str, y: str, unit: str = "dialogue") -> Smooths:
    defined = table.drop_nulls(["x", "y"])
    if defined.is_empty():
        raise DataError(f"{x} or {y} is undefined in every {unit}", fix="is anything meant in any of them?")
    groups: Mapping[Any, pl.DataFrame] = defined.partition_by("group", as_dict=True, maintain_order=True)
    curves = tuple(smooth(part["x"], part["y"], name=str(name)) for (name,), part in groups.items())
    return Smooths(curves, x, y, defined, table.height - defined.height, unit)
