"""Reading Parquet and Arrow."""

import polars as pl

from demur.data.lines import UNREADABLE, exactly
from demur.data.sources import Source
from demur.data.tables import Request, Table, numbered
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
