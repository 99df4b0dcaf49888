"""Files, frames and plain Python rows become tables: each format has its reader; JSON has a module of its own."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec
import narwhals as nw
import polars as pl

from demur.core.io.json import read_json
from demur.core.io.sources import UNREADABLE, Source, exactly, not_utf8, quiet_panics
from demur.core.io.tables import ROW, Request, Table, is_pattern, named_column, numbered, refuse_large, refuse_patterns
from demur.errors import DataError

if TYPE_CHECKING:
    from _csv import Reader

_TAIL = 1 << 16


def read_source(source: Source, request: Request) -> Table:
    """Reads what is wanted of an opened file."""
    if source.format == "json":
        return replace(read_json(source, request), paths=source.paths)
    if source.format in ("csv", "tsv"):
        return _read_delimited(source, request)
    return _read_columnar(source, request)


def table_of(data: object, request: Request) -> Table:
    """Reads what is wanted of a frame known to narwhals, of a dictionary of columns, or of rows."""
    if isinstance(data, Mapping):
        names: Collection[str] = tuple(data)
        frame = _from_columns({name: data[name] for name in request.among(names)})
    elif isinstance(data, Sequence) and not isinstance(data, str | bytes):
        for position, row in enumerate(data):
            if not isinstance(row, Mapping):
                raise DataError("must be a dictionary", where=f"data: row {position + 1}", got=type(row).__name__)
        names = dict.fromkeys(name for row in data for name in row)
        frame = _from_columns({name: [row.get(name) for row in data] for name in request.among(names)})
    else:
        names, frame = _from_native(data, request)
    if frame.is_empty():
        raise DataError("holds no rows", where="data")
    return numbered(frame, columns=names, name="data", place=lambda row: f"data: row {row + 1}")


def _from_native(data: object, request: Request) -> tuple[Collection[str], pl.DataFrame]:
    try:
        frame: nw.DataFrame[Any] | nw.LazyFrame[Any] = nw.from_native(data)
    except TypeError:
        rule = "must be a frame, a dictionary of columns or a list of dictionaries"
        fix = "demur.predictions makes a frame of arrays" if hasattr(data, "__array__") else ""
        raise DataError(rule, where="data", got=type(data).__name__, fix=fix) from None
    names = frame.collect_schema().names()
    eager = _eager(frame, request.among(names))
    try:
        table = eager.to_polars()
        table.columns = list(eager.columns)  # a column without a name, as an index of pandas has, is numbered by Arrow
        return names, table
    except (TypeError, ValueError, pl.exceptions.PolarsError):
        return names, _from_columns({name: eager[name].to_list() for name in eager.columns})


def _eager(frame: nw.DataFrame[Any] | nw.LazyFrame[Any], wanted: list[str]) -> nw.DataFrame[Any]:
    """Gives the wanted columns, whatever they are called, in memory."""
    if isinstance(frame, nw.DataFrame):
        return frame[wanted]
    native = frame.to_native()
    if isinstance(native, pl.LazyFrame):
        return nw.from_native(native.select(map(named_column, wanted)).collect())
    refuse_patterns(wanted, "data")
    return frame.select(wanted).collect(backend="polars")


def _from_columns(columns: Mapping[str, Any]) -> pl.DataFrame:
    try:
        return pl.DataFrame({name: _series_of(name, values) for name, values in columns.items()})
    except pl.exceptions.ShapeError:
        lengths = ", ".join(f"{name} {len(values):,}" for name, values in columns.items())
        raise DataError("columns must be of one length", where="data", got=lengths) from None


def _series_of(name: str, values: Any) -> pl.Series:
    """Builds a column; values of several types become text, lists and numbers as JSON."""
    try:
        return pl.Series(name, values)
    except (TypeError, pl.exceptions.PolarsError):
        known = (None if isinstance(value, float) and value != value else value for value in values)
        texts = [v if v is None or isinstance(v, str) else msgspec.json.encode(v, enc_hook=str).decode() for v in known]
        return pl.Series(name, texts, dtype=pl.String)


def _read_columnar(source: Source, request: Request) -> Table:
    """Reads those columns of a Parquet or Arrow file that are wanted."""
    try:
        with quiet_panics():
            rows = scan_columnar(source)
            names = rows.collect_schema().names()
            frame = rows.select(map(named_column, request.among(names))).collect()
    except UNREADABLE as error:
        raise damaged(source.name, source.format, error) from None
    if frame.is_empty():
        raise DataError("holds no rows", where=source.name)
    table = numbered(frame, columns=names, name=source.name, place=lambda row: f"{source.name}: row {row + 1}")
    return replace(table, paths=source.paths)


def scan_columnar(source: Source) -> pl.LazyFrame:
    """Gives the rows of a Parquet or Arrow file, to be read when they are asked for."""
    if source.frame is not None:
        return source.frame.lazy()
    if source.format == "parquet":
        return pl.scan_parquet(exactly(source.path))
    with source.path.open("rb") as file:
        streamed = not file.read(6).startswith(b"ARROW1")
    return pl.read_ipc_stream(source.path).lazy() if streamed else pl.scan_ipc(exactly(source.path))


def damaged(where: str, kind: str, error: BaseException) -> DataError:
    """Gives the fault of a Parquet or Arrow file that cannot be read to its end."""
    reason = "" if isinstance(error, pl.exceptions.PanicException) else ": " + str(error).split("\n", 1)[0]
    rule = f"is cut off, damaged or not {kind.capitalize()}{reason}"
    return DataError(rule, where=where, fix="copy or write it again")


def header_of(source: Source) -> list[str]:
    """Gives the names of the columns of a file other than JSON, without reading the rows."""
    if source.format in ("csv", "tsv"):
        return _header(source, _separator(source))
    try:
        with quiet_panics():
            return scan_columnar(source).collect_schema().names()
    except UNREADABLE as error:
        raise damaged(source.name, source.format, error) from None


def _read_delimited(source: Source, request: Request) -> Table:
    """Reads a CSV or TSV file with a header; every cell arrives as text, an empty one as null."""
    separator = _separator(source)
    names = _header(source, separator)
    frame, quote = _read_cells(source, separator, request.among(names))

    def place(row: int) -> str:
        rows = _reader(source, separator)
        try:
            next(islice(rows, row + 1, None), None)
        except csv.Error:
            return f"{source.name}: row {row + 1}"
        return f"{source.name}:{rows.line_num}"

    table = numbered(frame, columns=names, name=source.name, place=place)
    if table.frame.select(pl.all_horizontal(pl.exclude(ROW).is_null()).any()).item():
        # Polars makes rows of blank lines; a row of empty cells stays, as it has separators
        blank = pl.Series(list(_blank_lines(source, quote)), dtype=pl.UInt32)
        table = replace(table, frame=table.frame.filter(~pl.col(ROW).is_in(blank.implode())))
    if table.frame.is_empty():
        raise DataError("holds a header but no rows", where=source.name)
    _refuse_cut_off_row(source, separator, names)
    return table


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
    refuse_large(len(names), 1, source.name)
    for name, times in Counter(names).items():
        if times > 1:
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
                columns=None if any(map(is_pattern, wanted)) else wanted,
                infer_schema=False,
                null_values=[""],
            )
            return frame[wanted], quote
        except UNREADABLE as error:
            reason = str(error).split("\n", 1)[0]
    raise _fault(source, separator, reason)


def _blank_lines(source: Source, quote: str | None) -> Iterator[int]:
    """Gives the numbers of the rows that are blank lines, counted from 0 after the header.

    A line within an open quote belongs to a cell. Quotes open and close as in Polars, wherever they stand.
    """
    mark = (quote or "").encode()
    rows, is_open = 0, False
    for line in source.lines():
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
    for number, line in enumerate(source.lines(), start=1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise not_utf8(error, f"{source.name}:{number}:") from None


def _refuse_cut_off_row(source: Source, separator: str, names: list[str]) -> None:
    if source.compression:
        return
    with source.path.open("rb") as file:
        size = file.seek(0, io.SEEK_END)
        file.seek(max(0, size - _TAIL))
        tail = file.read().decode(errors="replace")
    last = tail.rsplit("\n", 1)[-1]
    if last.strip() and '"' not in last and len(last.split(separator)) < len(names):
        fix = "write the file again or delete the line"
        raise DataError("the last line is cut off", where=source.name, got=last[-60:], fix=fix)
