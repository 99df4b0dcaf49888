"""Files, frames and plain Python rows become tables."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import narwhals as nw
import polars as pl

from demur.core.io.delimited import read_delimited
from demur.core.io.json import read_json
from demur.core.io.sources import UNREADABLE, Source, exactly, opened
from demur.core.io.tables import ROW, Request, Table, numbered
from demur.errors import DataError


def read_columnar(source: Source, request: Request) -> Table:
    """Reads those columns of a Parquet or Arrow file that are wanted."""
    try:
        rows = _scanned(source)
        names = rows.collect_schema().names()
        frame = rows.select(request.among(names)).collect()
    except UNREADABLE as error:
        raise _damaged(source, error) from None
    if frame.is_empty():
        raise DataError("holds no rows", where=source.name)
    return numbered(frame, columns=names, name=source.name, place=lambda row: f"{source.name}: row {row + 1}")


def schema_of(source: Source) -> list[str]:
    """Gives the names of the columns, without reading the rows."""
    try:
        return _scanned(source).collect_schema().names()
    except UNREADABLE as error:
        raise _damaged(source, error) from None


def _damaged(source: Source, error: BaseException) -> DataError:
    reason = str(error).split("\n", 1)[0]
    rule = f"is cut off, damaged or not {source.format.capitalize()}: {reason}"
    return DataError(rule, where=source.name, fix="copy or write it again")


def _scanned(source: Source) -> pl.LazyFrame:
    if source.format == "parquet":
        return pl.scan_parquet(exactly(source.path))
    with source.path.open("rb") as file:
        streamed = not file.read(6).startswith(b"ARROW1")
    return pl.read_ipc_stream(source.path).lazy() if streamed else pl.scan_ipc(exactly(source.path))


def read_source(source: Source, request: Request) -> Table:
    """Reads what is wanted of an opened file."""
    if source.format == "json":
        return read_json(source, request)
    if source.format in ("csv", "tsv"):
        return read_delimited(source, request)
    return read_columnar(source, request)


def read_table(path: str | Path | Source) -> pl.DataFrame:
    """Reads all columns of the files a path, a glob or `-` stands for, one below the other."""
    with opened(path) as sources:
        frames = [read_source(source, Request()).frame.drop(ROW) for source in sources]
    return pl.concat(frames, how="diagonal_relaxed")


def table_of(data: object, request: Request) -> Table:
    """Reads what is wanted of a frame known to narwhals, of a dictionary of columns, or of rows."""
    if isinstance(data, Mapping):
        names: Collection[str] = tuple(data)
        frame = _from_columns({name: data[name] for name in request.among(names)})
    elif isinstance(data, Sequence) and not isinstance(data, str | bytes):
        names = _names_in(data)
        frame = _from_columns({name: [row.get(name) for row in data] for name in request.among(names)})
    else:
        names, frame = _from_native(data, request)
    if frame.is_empty():
        raise DataError("holds no rows", where="data")
    return numbered(frame, columns=names, name="data", place=lambda row: f"data: row {row + 1}")


def _names_in(rows: Sequence[Any]) -> Collection[str]:
    for position, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise DataError("must be a dictionary", where=f"data: row {position + 1}", got=type(row).__name__)
    return dict.fromkeys(name for row in rows for name in row)


def _from_native(data: object, request: Request) -> tuple[Collection[str], pl.DataFrame]:
    try:
        frame: nw.DataFrame[Any] | nw.LazyFrame[Any] = nw.from_native(data)
    except TypeError:
        rule = "must be a frame, a dictionary of columns or a list of dictionaries"
        raise DataError(rule, where="data", got=type(data).__name__) from None
    names = frame.collect_schema().names()
    chosen = frame.select(request.among(names))
    eager = chosen.collect(backend="polars") if isinstance(chosen, nw.LazyFrame) else chosen
    try:
        return names, _with_names(eager.to_polars(), eager.columns)
    except (TypeError, ValueError, pl.exceptions.PolarsError):
        return names, _from_columns({name: eager[name].to_list() for name in eager.columns})


def _with_names(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Gives a column without a name its empty name back, as an index of pandas has: Arrow numbers it."""
    frame.columns = list(names)
    return frame


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
        return pl.Series(name, [_cell_text(value) for value in values], dtype=pl.String)


def _cell_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float) and value != value:
        return None
    return msgspec.json.encode(value, enc_hook=str).decode()
