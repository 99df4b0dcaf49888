"""Reading CSV and TSV."""

import csv
import io
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

import polars as pl

from demur.data.encoding import not_utf8
from demur.data.lines import UNREADABLE, exactly, lines
from demur.data.sources import Source
from demur.data.tables import ROW, Request, Table, numbered
from demur.errors import DataError

if TYPE_CHECKING:
    from _csv import Reader

TAIL = 1 << 16


def read_delimited(source: Source, request: Request) -> Table:
    """Reads a CSV or TSV file with a header; every cell arrives as text, an empty one as null."""
    separator = _separator(source)
    names = _header(source, separator)
    frame, quote = _read(source, separator, request.among(names))
    table = numbered(frame, columns=names, name=source.name, place=_line_finder(source, separator))
    table = replace(table, frame=_without_blank_lines(table.frame, source, quote))
    if table.frame.is_empty():
        raise DataError("holds a header but no rows", where=source.name)
    _refuse_cut_off_row(source, separator, names)
    return table


def header_of(source: Source) -> list[str]:
    """Gives the names of the columns, without reading the rows."""
    return _header(source, _separator(source))


def _separator(source: Source) -> str:
    if source.format == "tsv":
        return "\t"
    header = next(_text(source), "")
    return next((mark for mark in ",;\t" if mark in header), ",")


def _header(source: Source, separator: str) -> list[str]:
    try:
        names = next(_rows(source, separator), [])
    except csv.Error:
        rule = "the header cannot be read: a carriage return stands inside it"
        raise DataError(rule, where=f"{source.name}:1:", fix="end lines with a line feed") from None
    for name in names:
        if names.count(name) > 1:
            raise DataError(f'the header names the column "{name}" twice', where=f"{source.name}:1:")
    return names


def _read(source: Source, separator: str, wanted: list[str]) -> tuple[pl.DataFrame, str | None]:
    """Gives the wanted columns, and the quote that cells were read with."""
    for quote in ('"', None) if separator == "\t" else ('"',):
        try:
            frame = pl.read_csv(
                exactly(source.path),
                separator=separator,
                quote_char=quote,
                columns=wanted,
                infer_schema=False,
                null_values=[""],
            )
            return frame.select(wanted), quote
        except UNREADABLE as error:
            reason = str(error).split("\n", 1)[0]
    raise _fault(source, separator, reason)


def _without_blank_lines(frame: pl.DataFrame, source: Source, quote: str | None) -> pl.DataFrame:
    """Removes the rows that Polars makes of blank lines; a row of empty cells stays, as it has separators."""
    empty = pl.all_horizontal(pl.exclude(ROW).is_null())
    if not frame.select(empty.any()).item():
        return frame
    blank = pl.Series(list(_blank_lines(source, quote)), dtype=pl.UInt32)
    return frame.filter(~pl.col(ROW).is_in(blank.implode()))


def _blank_lines(source: Source, quote: str | None) -> Iterator[int]:
    """Gives the numbers of the rows that are blank lines, counted from 0 after the header.

    A line within an open quote belongs to a cell. Quotes open and close as in Polars, wherever they stand.
    """
    mark = (quote or "").encode()
    rows, is_open = 0, False
    for line in lines(source.path, source.compression, source.name):
        is_blank = not is_open and not line.rstrip(b"\r\n")
        if is_blank and not rows:
            continue
        if is_blank:
            yield rows - 1
        is_open ^= bool(mark) and line.count(mark) % 2 == 1
        rows += not is_open


def _fault(source: Source, separator: str, reason: str) -> DataError:
    """Looks through the file once more, row by row, for what Polars could not read."""
    rows = _reader(source, separator)
    width = len(next(rows, []))
    try:
        for row in rows:
            if len(row) > width:
                rule = f"the row has {len(row)} cells, the header {width}"
                where = f"{source.name}:{rows.line_num}:"
                return DataError(rule, where=where, fix="put quotes around cells that hold a separator")
    except csv.Error as error:
        return DataError(f"the row cannot be read: {error}", where=f"{source.name}:{rows.line_num}:")
    return DataError(f"cannot be read: {reason}", where=source.name, fix="is a quote left open?")


def _reader(source: Source, separator: str) -> "Reader":
    return csv.reader(_text(source), delimiter=separator, strict=True)


def _rows(source: Source, separator: str) -> Iterator[list[str]]:
    yield from _reader(source, separator)


def _text(source: Source) -> Iterator[str]:
    for number, line in enumerate(lines(source.path, source.compression, source.name), start=1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise not_utf8(error, f"{source.name}:{number}:") from None


def _line_finder(source: Source, separator: str) -> Callable[[int], str]:
    def place(row: int) -> str:
        rows = _reader(source, separator)
        try:
            next(islice(rows, row + 1, None), None)
        except csv.Error:
            return f"{source.name}: row {row + 1}"
        return f"{source.name}:{rows.line_num}"

    return place


def _refuse_cut_off_row(source: Source, separator: str, names: list[str]) -> None:
    if source.compression:
        return
    with source.path.open("rb") as file:
        size = file.seek(0, io.SEEK_END)
        file.seek(max(0, size - TAIL))
        tail = file.read().decode(errors="replace")
    last = tail.rsplit("\n", 1)[-1]
    if last.strip() and '"' not in last and len(last.split(separator)) < len(names):
        fix = "write the file again or delete the line"
        raise DataError("the last line is cut off", where=source.name, got=last[-60:], fix=fix)
