"""Reads CSV and TSV, and finds where their rows begin and end."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

import polars as pl

from demur.core.io.sources import UNREADABLE, Source, exactly, lines, not_utf8
from demur.core.io.tables import ROW, Request, Table, numbered
from demur.errors import DataError

if TYPE_CHECKING:
    from _csv import Reader

MOST_HEADER_LINES = 100
"""Lines over which the names of columns may run, where quotes hold line ends."""

_QUOTED_LINE = re.compile(rb'[^\n]*"[^\n]*(?:\n|\Z)')
_OPENING = re.compile(rb'(?:\A|[,;\t])\s*"')


def line_count(text: bytes) -> int:
    r"""How many lines there are, the last with or without its end.

    >>> line_count(b"a\nb"), line_count(b"a\nb\n"), line_count(b"")
    (2, 2, 0)
    """
    return text.count(b"\n") + (bool(text) and not text.endswith(b"\n"))


def ended(line: bytes) -> bytes:
    """A line with its end."""
    return line if line.endswith(b"\n") else line + b"\n"


def open_row(text: bytes) -> int | None:
    """Where the row begins of which a cell is opened by a quote and not closed; None where every row is whole."""
    start = None
    for found in _QUOTED_LINE.finditer(text):
        odd = found[0].count(b'"') % 2 == 1
        if start is not None:
            start = None if odd else start
        elif odd and _OPENING.search(found[0]):
            start = found.start()
    return start


def first_row_end(text: bytes) -> int:
    """The end of the first row: of its line, or of the line soon after that closes its quotes."""
    first = end = text.find(b"\n") + 1 or len(text)
    for _ in range(MOST_HEADER_LINES):
        if open_row(text[:end]) is None:
            return end
        end = text.find(b"\n", end) + 1 or len(text)
    return first


def same_names(line: bytes, header: bytes) -> bool:
    """Whether a line holds names of columns: more than half of its cells stand in the header that is known."""
    cells, known = (set(re.split(rb"[,;\t]", row.strip())) for row in (line, header))
    return 2 * len(cells & known) > len(cells)


TAIL = 1 << 16


def read_delimited(source: Source, request: Request) -> Table:
    """Reads a CSV or TSV file with a header; every cell arrives as text, an empty one as null."""
    separator = _separator(source)
    names = _header(source, separator)
    frame, quote = _read_cells(source, separator, request.among(names))
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
    header = next(_decoded_lines(source), "")
    return next((mark for mark in ",;\t" if mark in header), ",")


def _header(source: Source, separator: str) -> list[str]:
    try:
        names = next(_reader(source, separator), [])
    except csv.Error:
        rule = "the header cannot be read: a carriage return stands inside it"
        raise DataError(rule, where=f"{source.name}:1:", fix="end lines with a line feed") from None
    for name in names:
        if names.count(name) > 1:
            raise DataError(f'the header names the column "{name}" twice', where=f"{source.name}:1:")
    return names


def _read_cells(source: Source, separator: str, wanted: list[str]) -> tuple[pl.DataFrame, str | None]:
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


def _reader(source: Source, separator: str) -> Reader:
    return csv.reader(_decoded_lines(source), delimiter=separator, strict=True)


def _decoded_lines(source: Source) -> Iterator[str]:
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
