"""The bytes and lines of text files, compressed or not."""

import glob
import gzip
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Literal

import polars as pl
from polars.exceptions import PolarsError

from demur.errors import DataError
from demur.show import path_text

Compression = Literal["", "gzip", "zstd"]

UNREADABLE = (PolarsError, OSError)
"""What Polars raises when it cannot read a file."""

HEAD = 4096
_RARE = "\x01\x02\x03\x04\x1c\x1d\x1e\x1f"
"""Characters that hardly any text holds, and none all of them."""

_STILL_COMPRESSED = "(\ufffd/\ufffd"


def exactly(path: Path) -> str:
    """Gives a path as Polars must be told it, so that brackets and stars in it are not taken for a glob."""
    name = path_text(path)
    return glob.escape(name) if glob.has_magic(name) else name


def compression_of(start: bytes) -> Compression:
    """Tells from its first four bytes how a file is compressed."""
    if start.startswith(b"\x1f\x8b"):
        return "gzip"
    return "zstd" if start.startswith(b"\x28\xb5\x2f\xfd") else ""


def first_bytes(path: Path, compression: Compression, name: str) -> bytes:
    """Gives the beginning of a file, decompressed."""
    if compression == "zstd":
        return b"\n".join(_zstd_lines(path, name, limit=2))[:HEAD]
    if compression == "gzip":
        try:
            with gzip.open(path) as file:
                return file.read1(HEAD)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise cut_off(name) from None
    with path.open("rb") as file:
        return file.read(HEAD)


def lines(path: Path, compression: Compression, name: str, *, limit: int | None = None) -> Iterator[bytes]:
    """Gives the lines of a text file, decompressed, at most `limit` of them."""
    if compression == "zstd":
        yield from _zstd_lines(path, name, limit=limit)
        return
    try:
        with gzip.open(path) if compression == "gzip" else path.open("rb") as file:
            yield from islice(file, limit)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise cut_off(name) from None


def cut_off(name: str) -> DataError:
    """Gives the fault of a compressed file that ends too early."""
    return DataError(
        "is cut off or damaged: its compressed data ends too early", where=name, fix="copy or write it again"
    )


def _zstd_lines(path: Path, name: str, *, limit: int | None) -> Iterator[bytes]:
    """Reads each line as one cell of a one-column table: Polars decompresses zstd, older Pythons do not."""
    cells = next((found for mark in _RARE if (found := _one_column(path, mark, limit)) is not None), None)
    if cells is None or (not cells.is_empty() and (cells.item(0, 0) or "").startswith(_STILL_COMPRESSED)):
        raise cut_off(name)
    for cell in cells.to_series() if cells.width else ():
        yield (cell or "").encode() + b"\n"


def _one_column(path: Path, separator: str, limit: int | None) -> pl.DataFrame | None:
    """Gives the lines of a file as a column; None where the separator occurs in them or they cannot be read."""
    try:
        cells = pl.read_csv(
            exactly(path),
            has_header=False,
            separator=separator,
            quote_char=None,
            infer_schema=False,
            n_rows=limit,
            encoding="utf8-lossy",
        )
    except UNREADABLE as error:
        return pl.DataFrame() if "empty" in str(error) else None
    return cells if cells.width == 1 else None
