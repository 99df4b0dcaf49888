"""The table of texts that a system is to answer: its rows are kept, and answers are put beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from demur.data.cells import Cells, as_text
from demur.data.columns import resolve
from demur.data.files import read_source
from demur.data.frames import table_of
from demur.data.pairs import AS_IT_COMES, PairReading, refuse_nothing_left, require
from demur.data.selection import filtered
from demur.data.sources import opened
from demur.data.tables import ROW, Request, Table

ANSWERED = ("prediction", "confidence", "nbest", "returned", "why")
"""The columns that answers put into the table."""

_JUDGED = ("correct", "abstained", "failed")
_PARTS = ("id", "input", "target", "system")


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """`id`, `input`, `target` where it is known, and further columns as read; a missing text is an empty one."""

    frame: pl.DataFrame
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return self.frame.height

    @property
    def texts(self) -> list[str]:
        """The texts to be answered."""
        return self.frame["input"].to_list()


def read_inputs(*sources: str | Path, reading: PairReading = AS_IT_COMES) -> Inputs:
    """Reads the texts in files: paths, globs, or `-` for standard input."""
    with opened(*sources) as files:
        tables = [read_source(file, Request()) for file in files]
        if len(tables) == 1:
            return _inputs(tables[0], reading)
        whole = pl.concat([table.frame.drop(ROW) for table in tables], how="diagonal_relaxed")
    return inputs(whole, reading=reading)


def inputs(data: object, *, reading: PairReading = AS_IT_COMES) -> Inputs:
    """The texts in a frame, in columns, in rows, or a list of texts.

    >>> inputs(["when do you open"]).frame.row(0)
    ('1', 'when do you open')
    """
    if isinstance(data, Sequence) and data and all(isinstance(text, str) for text in data):
        return inputs({"input": list(data)}, reading=reading)
    return _inputs(table_of(data, Request()), reading)


def _inputs(table: Table, reading: PairReading) -> Inputs:
    found = resolve(table.columns, reading.columns, parts=_PARTS, where=f"{table.name}:")
    require(("input",), found.columns, table)
    cells = filtered(Cells(table, found.columns), reading.where)
    if reading.where:
        refuse_nothing_left(cells, reading.where)
    rows = cells.table.frame
    # what another system answered, and how that was judged, is not about the answers that are to come
    stale = [name for name in (*ANSWERED, *_JUDGED, found.columns.get("system")) if name in rows.columns]
    played = {found.columns[part] for part in ("id", "input", "target") if part in found.columns}
    kept = [rows[name] for name in rows.columns if name not in {ROW, *stale, *played, "id", "input", "target"}]
    target = [_target(rows[found.columns["target"]])] if "target" in found.columns else []
    columns = [_ids(cells), cells.text("input").fill_null(""), *target, *kept]
    frame = pl.DataFrame({column.name: column for column in columns})
    left = (f"{table.name}: the columns {', '.join(stale)} are left out",) if stale else ()
    notes = tuple(note for note in found.notes if not note.startswith("system"))
    return Inputs(frame, (*notes, *left))


def _ids(cells: Cells) -> pl.Series:
    if "id" in cells:
        return cells.text("id")
    return pl.Series("id", [str(row + 1) for row in cells.table.frame[ROW]], dtype=pl.String)


def _target(column: pl.Series) -> pl.Series:
    """Targets as labels; a list of acceptable ones stays a list."""
    return (column if column.dtype.is_nested() else as_text(column)).alias("target")
