"""Files become tables; every fault names the file, the line and the column."""

from pathlib import Path

import polars as pl

from demur.data.columnar import read_columnar
from demur.data.delimited import read_delimited
from demur.data.json_rows import read_json
from demur.data.sources import Source, opened
from demur.data.tables import ROW, Request, Table


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
