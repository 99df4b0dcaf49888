"""Refuses files that would take more than an upload may, however small they are on disk."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl

from demur.core.io.files import header_of, scan_columnar
from demur.core.io.panics import quiet_panics
from demur.core.io.sources import CHUNK, UNREADABLE, Source, compression_of, opened
from demur.core.io.tables import TableLimits, named_column, refuse_large
from demur.errors import DataError

FIX = "add it with demur add, which has no limit"

MOST_IN_TABLE = TableLimits(columns=1000, rows=10_000_000, cells=100_000_000, fix=FIX)
"""How large a table may be. A text may have as many lines as rows, blank ones too, and as many objects as cells."""

ZSTD_FRAME = 0xFD2FB528
ZSTD_SKIPPABLE = 0x184D2A5
ZSTD_BLOCK = 1 << 17
"""Bytes that a block of Zstandard unpacks to at most (RFC 8878, 3.1.1.2.4)."""


def refuse_bomb(path: Path, shown: str, most: int) -> None:
    """Refuses a file that unpacks to more than an upload may hold, in bytes, lines or columns."""
    rule = f"unpacks to more than an upload may hold, {size_text(most)}"
    fix = f"{FIX}, or start demur serve with a larger --max-upload"
    if unpacked_size(path, most) > most:
        raise DataError(rule, where=f"{shown}:", fix=fix)
    with opened(path) as (source,):
        if source.format not in ("parquet", "arrow"):
            _refuse_lines(source, shown)
        elif _columnar_size(source, shown) > most:
            raise DataError(rule, where=f"{shown}:", fix=fix)


def size_text(size: int) -> str:
    """A size as it is told: in megabytes, or in bytes where it is small."""
    return f"{size / 1024**2:,.0f} MB" if size >= 1024**2 else f"{size:,} bytes"


def unpacked_size(path: Path, most: int) -> int:
    """Bytes that a file unpacks to, as far as that can be bounded without reading it.

    Gzip is unpacked and thrown away piece by piece, up to `most`. Of Zstandard the blocks are counted, each of which
    can unpack to so much and no more.
    """
    with path.open("rb") as file:
        packing = compression_of(file.read(4))
        file.seek(0)
        if packing == "gzip":
            return gzip_size(file, most)
        return zstd_size(file) if packing == "zstd" else path.stat().st_size


def gzip_size(file: BinaryIO, most: int) -> int:
    """Bytes that a gzip file unpacks to, counted no further than is allowed; of a damaged one, up to the damage."""
    size, unpacker = 0, zlib.decompressobj(wbits=31)
    while size <= most and (packed := file.read(CHUNK)):
        while packed and size <= most:
            try:
                size += len(unpacker.decompress(packed, CHUNK))
            except zlib.error:
                return size
            packed = unpacker.unconsumed_tail
            if unpacker.eof:
                packed, unpacker = unpacker.unused_data, zlib.decompressobj(wbits=31)
    return size


def zstd_size(file: BinaryIO) -> int:
    """Bytes that a Zstandard file can unpack to at most, told from the heads of its blocks."""
    size = 0
    while len(start := file.read(4)) == 4:
        magic = int.from_bytes(start, "little")
        if magic >> 4 == ZSTD_SKIPPABLE:
            file.seek(int.from_bytes(file.read(4), "little"), 1)
        elif magic == ZSTD_FRAME:
            size += _frame_size(file)
        else:
            break
    return size


def _frame_size(file: BinaryIO) -> int:
    descriptor = (file.read(1) or b"\0")[0]
    single = bool(descriptor & 0x20)
    identifier = (0, 1, 2, 4)[descriptor & 3]
    content = (1 if single else 0, 2, 4, 8)[descriptor >> 6]
    file.seek((0 if single else 1) + identifier + content, 1)
    size = 0
    while len(head := file.read(3)) == 3:
        bits = int.from_bytes(head, "little")
        kind, length = (bits >> 1) & 3, bits >> 3
        size += ZSTD_BLOCK if kind == 2 else length
        file.seek(1 if kind == 1 else length, 1)
        if bits & 1:
            break
    file.seek(4 if descriptor & 4 else 0, 1)
    return size


def _refuse_lines(source: Source, shown: str) -> None:
    lines = objects = 0
    for block in source.blocks(cut=True):
        lines += block.count(b"\n")
        objects += block.count(b"{")
        for count, most, what in ((lines, MOST_IN_TABLE.rows, "lines"), (objects, MOST_IN_TABLE.cells, "objects")):
            if count > most:
                rule = f"has more than {most:,} {what}, which are the most that an upload may have"
                raise DataError(rule, where=f"{shown}:", fix=FIX)
    if source.format != "json":
        refuse_large(len(header_of(source)), lines, shown)


def _columnar_size(source: Source, shown: str) -> int:
    """Bytes of the texts and lists of a table in columns, and a byte for each cell; 0 where it cannot be read.

    A value that is kept once on disk may stand in millions of cells; to count what they hold takes no room, as Polars
    has all of them look at the one.
    """
    try:
        with quiet_panics():
            return _sum_of_cells(scan_columnar(source), shown)
    except UNREADABLE:
        return 0


def _sum_of_cells(frame: pl.LazyFrame, shown: str) -> int:
    schema = frame.collect_schema()
    leaves = sum(map(_leaves, schema.dtypes()))
    refuse_large(leaves, 1, shown)
    rows = int(frame.select(pl.len()).collect().item())
    refuse_large(leaves, rows, shown)
    size = rows * leaves
    for name, kind in schema.items():
        sizes = _sizes(named_column(name), kind)
        found = frame.select(one.cast(pl.UInt64).sum().alias(str(k)) for k, one in enumerate(sizes)).collect()
        size += sum(map(int, found.row(0))) if sizes else 0
    return size


def _leaves(kind: Any) -> int:
    """Columns that a column is made of."""
    if isinstance(kind, pl.Struct):
        return max(1, sum([_leaves(field.dtype) for field in kind.fields]))
    return _leaves(kind.inner) if isinstance(kind, pl.List | pl.Array) else 1


def _sizes(cell: pl.Expr, kind: Any) -> list[pl.Expr]:
    """What the cells of a column hold beyond a byte each: bytes of texts, values of lists, and what is in these."""
    if isinstance(kind, pl.Struct):
        return [size for field in kind.fields for size in _sizes(cell.struct.field(field.name), field.dtype)]
    if isinstance(kind, pl.Array):
        return _sizes(cell.arr.to_list(), pl.List(kind.inner))
    if isinstance(kind, pl.List):
        return [cell.list.len(), *_sizes(cell.list.explode(), kind.inner)]
    if isinstance(kind, pl.Categorical | pl.Enum):
        return [cell.cat.len_bytes()]
    if kind == pl.Binary:
        return [cell.bin.size()]
    return [cell.str.len_bytes()] if kind == pl.String else []
