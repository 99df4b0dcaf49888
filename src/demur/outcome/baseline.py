"""The majority baseline of a log of turns, as a log."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from demur.core.io.writing import write_table
from demur.core.show.numbers import percent
from demur.core.show.presentation import Presentation, ResultTable
from demur.errors import DataError, UsageError
from demur.returns.table import Responses


@dataclass(eq=False)
class BaselineLog:
    """The turns of a log, each answered by the most frequent right label."""

    table: pl.DataFrame = field(repr=False)
    label: str
    counts: dict[str, float]
    """How often each label is right, the most frequent first."""
    notes: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    def frame(self) -> pl.DataFrame:
        """A row for each turn, which `classes`, `score` and `predict_outcome` read."""
        return self.table

    @property
    def accuracy(self) -> float:
        """Share of the turns for which the label is right."""
        return self.counts[self.label] / sum(self.counts.values())

    def to_dict(self) -> dict[str, Any]:
        """The baseline as plain values; the rows are left out where a file has them."""
        rows = {} if self.files else {"responses": self.table.to_dicts()}
        summary = {"n": self.table.height, "label": self.label, "accuracy": self.accuracy, "labels": self.counts}
        return {**summary, **rows, "out": list(self.files), "notes": list(self.notes), "warnings": []}


def baseline_log(turns: Responses) -> BaselineLog:
    """The same turns with the most frequent label as every prediction; of equally frequent ones the first by name."""
    if len(turns.systems) > 1:
        raise UsageError(f"the turns are of one system at a time; there are {', '.join(turns.systems)}")
    target = pl.col("target").list.first()
    known = turns.frame.filter(target.is_not_null())
    if known.is_empty():
        raise DataError("no turn has a target, so no label is the most frequent")
    sums = known.group_by(target.alias("label")).agg(pl.col("weight").sum()).sort(-pl.col("weight"), "label")
    counts = dict(sums.iter_rows())
    label = next(iter(counts))
    kept = [name for name in ("id", "dialogue", "weight") if not _is_idle(turns.frame, name)]
    table = turns.frame.select(*kept, target.alias("target"), prediction=pl.lit(label), confidence=pl.lit(1.0))
    if "weight" in kept and "dialogue" not in kept:  # counts of a table: those of a label are one cell now
        table = table.group_by("target", "prediction", "confidence").agg(pl.col("weight").sum()).sort("target")
    return BaselineLog(table, label, counts, turns.notes)


def _is_idle(frame: pl.DataFrame, name: str) -> bool:
    """Whether a column says nothing: no value anywhere, or a weight of 1 everywhere."""
    return frame[name].null_count() == frame.height or (name == "weight" and bool((frame[name] == 1).all()))


def write_baseline(made: BaselineLog, path: Path) -> None:
    """Write the rows in the format of the path's ending."""
    write_table(path, made.table)


def of_baseline(made: BaselineLog) -> Presentation:
    """The label of the baseline, and how often each label is right."""
    total = sum(made.counts.values())
    rows = tuple((label, f"{count:,.0f}", f"{count / total:.2f}") for label, count in made.counts.items())
    share = f'"{made.label}" is right for {percent(made.accuracy)} of {total:,.0f} turns'
    return Presentation(
        title="Majority baseline",
        sentences=(f"{share}; the log answers it every time.",),
        tables=(ResultTable("Right labels", ("label", "turns", "frequency"), rows),),
        figures=(),
        data=made.frame,
        document=made.to_dict(),
        notes=made.notes,
    )
