"""Which columns and rows of a table are wanted."""

from collections.abc import Collection, Sequence
from dataclasses import replace

import polars as pl

from demur.data.cells import Cells, as_text
from demur.data.columns import ALIASES, candidates, nearest, spellings
from demur.data.tables import ROW, Request, Table
from demur.errors import DataError

JUDGED = (
    "id",
    "system",
    "dialogue",
    "target",
    "prediction",
    "answered",
    "right",
    "failed",
    "out_of_scope",
    "confidence",
    "weight",
)
"""The columns every table of judged responses begins with, in this order."""

EVERYTHING = "*"

MOST_SLICES = 200
"""Values of a column up to which it makes sense to slice by it."""

_ON_REQUEST = ("input", "nbest")
_OURS = ("answered", "right", "out_of_scope")

Where = Sequence[tuple[str, str]]


def parts_wanted(keep: Collection[str], where: Where) -> tuple[str, ...]:
    """Gives the canonical columns to look for: all but the bulky ones, and these when they are named."""
    named = {*keep, *(column for column, _ in where)}
    return tuple(part for part in ALIASES if part not in _ON_REQUEST or part in named or EVERYTHING in keep)


def request_for(explicit: dict[str, str], keep: Collection[str], where: Where) -> Request:
    """Gives what must be read of a file so that its rows can be judged, filtered and sliced."""
    parts = parts_wanted(keep, where)
    named = [column for column, _ in where] + [column for column in keep if column != EVERYTHING]

    def wanted(names: Collection[str]) -> Collection[str]:
        playing = [column for part in parts for column in candidates(names, part, explicit)]
        return [*playing, *named, *(names if EVERYTHING in keep else ())]

    numeric = {column for part in ("confidence", "weight") for column in (*spellings(part), explicit.get(part, part))}
    return Request(candidates=wanted, numeric=frozenset(numeric), every_name=EVERYTHING in keep)


def filtered(cells: Cells, where: Where) -> Cells:
    """Keeps the rows whose columns equal the values asked for."""
    frame = cells.table.frame
    for column, value in where:
        name = column if column in cells.table.columns else cells.columns.get(column)
        if name is None:
            raise _unknown(cells.table, column)
        frame = frame.filter(as_text(frame[name]) == value)
    return replace(cells, table=replace(cells.table, frame=frame))


def extras(cells: Cells, keep: Sequence[str]) -> list[pl.Series]:
    """Gives the further columns asked for: the slices as text, `input` as text, `nbest` as it was read."""
    table = cells.table
    for name in keep:
        if name in _OURS and name in table.columns:
            rule = f'"{name}" is what a judged row is called here, too'
            raise DataError(rule, where=f"{table.name}:", fix="rename the column to keep it or to slice by it")
    asked = list(dict.fromkeys(name for name in keep if name != EVERYTHING))
    if EVERYTHING in keep:
        asked += [name for name in (*_ON_REQUEST, *_unplayed(cells)) if name not in asked and _is_there(name, cells)]
    return [_extra(cells, name) for name in asked if name not in JUDGED and _must_be_there(name, cells, table)]


def _unplayed(cells: Cells) -> list[str]:
    return [name for name in cells.table.frame.columns if name not in {ROW, *cells.columns.values()}]


def _is_there(name: str, cells: Cells) -> bool:
    return name in cells.columns or name in cells.table.columns


def _must_be_there(name: str, cells: Cells, table: Table) -> bool:
    if not _is_there(name, cells):
        raise _unknown(table, name)
    return True


def _extra(cells: Cells, name: str) -> pl.Series:
    column = cells.columns.get(name, name) if name in _ON_REQUEST else name
    series = cells.table.frame[column if column in cells.table.columns else cells.columns[name]].alias(name)
    return series if name == "nbest" else as_text(series)


def unknown_column(name: str, names: Collection[str], where: str) -> DataError:
    """Gives the fault of a column that was asked for and is not there."""
    return DataError(f'there is no column "{name}"; {nearest(name, names)}', where=f"{where}:")


def _unknown(table: Table, name: str) -> DataError:
    return unknown_column(name, table.columns, table.name)
