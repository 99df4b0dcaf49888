"""Adds runs from uploads, after checking how much they unpack to, and from the demo."""

from __future__ import annotations

import tempfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO

from demur.core.io.sources import compression_of
from demur.core.show.results import Step
from demur.errors import DataError, DemurError, UsageError
from demur.lab.corpora import museum
from demur.store.intake import RunReading, Sent
from demur.store.runs import Added, Store

PIECE = 1 << 20

ZSTD_FRAME = 0xFD2FB528
ZSTD_SKIPPABLE = 0x184D2A5
ZSTD_BLOCK = 1 << 17
"""Bytes that a block of Zstandard unpacks to at most (RFC 8878, 3.1.1.2.4)."""


def refuse_bomb(path: Path, shown: str, most: int) -> None:
    """Refuses a file that unpacks to more than an upload may hold."""
    if size_within(path, most) > most:
        limit = f"{most / 1024**2:,.0f} MB" if most >= 1024**2 else f"{most:,} bytes"
        fix = "add it with demur add, or start demur serve with a larger --max-upload"
        raise DataError(f"unpacks to more than an upload may hold, {limit}", where=f"{shown}:", fix=fix)


def size_within(path: Path, most: int) -> int:
    """Bytes that a file takes in memory, as far as that can be bounded without reading it.

    Gzip is unpacked and thrown away piece by piece, up to `most`. Of Zstandard the blocks are counted, each of which
    can unpack to so much and no more. A table in columns takes a byte for each cell at least, and what its texts hold;
    a few bytes on disk may stand for millions of those.
    """
    with path.open("rb") as file:
        head = file.read(6)
        file.seek(0)
        packing = compression_of(head[:4])
        if packing == "gzip":
            return gzip_size(file, most)
        if packing == "zstd":
            return zstd_size(file)
    return _cells(path, head) if head.startswith((b"PAR1", b"ARROW1")) else path.stat().st_size


def gzip_size(file: BinaryIO, most: int) -> int:
    """Bytes that a gzip file unpacks to, counted no further than is allowed; of a damaged one, up to the damage."""
    size, unpacker = 0, zlib.decompressobj(wbits=31)
    while size <= most and (packed := file.read(PIECE)):
        while packed and size <= most:
            try:
                size += len(unpacker.decompress(packed, PIECE))
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


def _cells(path: Path, head: bytes) -> int:
    """Cells of a table in columns and the bytes of its texts; of one that cannot be read none, as its reader will say.

    A text that is kept once on disk may stand in millions of cells; to count what they hold takes no room, as Polars
    has all of them look at the one.
    """
    import polars as pl
    from polars.exceptions import PolarsError

    try:
        frame = pl.scan_parquet(path, glob=False) if head.startswith(b"PAR1") else pl.scan_ipc(path)
        cells = int(frame.select(pl.len()).collect().item()) * len(frame.collect_schema())
        texts = frame.select(pl.col(pl.String).str.len_bytes().cast(pl.UInt64).sum()).collect()
        return cells + sum(map(int, texts.row(0) if texts.height else ()))
    except (PolarsError, OSError):
        return 0


def add(store: Store, given: dict[str, Any], step: Step) -> dict[str, Any]:
    """Read an upload and add its runs; what is said of it calls it by its owner's name."""
    path, shown = Path(given["path"]), given["file"]
    step("reading", 0, 2)
    refuse_bomb(path, shown, given["most"])
    reading = RunReading(**given["reading"])
    options = {name: given[name] for name in ("name", "tags", "note", "kind", "replace")}
    try:
        found = store.add(Sent(path, shown), reading=reading, step=step, **options)
    except DemurError as fault:  # whoever tells of the file itself knows only where we put it
        raise UsageError(str(fault).replace(str(path), shown)) from None
    return {"file": shown, "runs": [_told(one) for one in found]}


def demo(store: Store, given: dict[str, Any], step: Step) -> dict[str, Any]:  # noqa: ARG001
    """Add the logs of the demo: three models of a museum guide, on questions as asked and as they were misheard."""
    from demur.lab.demo import answer_museum, write_logs

    step("training three small models", 0, 2)
    table = answer_museum(museum())
    step("adding their logs", 1, 2)
    with tempfile.TemporaryDirectory(prefix="demur-") as folder:
        write_logs(table, Path(folder))
        files = sorted(Path(folder).glob("*.jsonl"))
        found = store.add(*files, tags=("example",), note="A museum guide, from demur demo.")
    return {"runs": [_told(one) for one in found]}


def _told(one: Added) -> dict[str, Any]:
    run = one.run
    about = {"id": run.id, "name": run.name, "kind": run.kind, "n": run.n}
    return {**about, "notes": list(run.notes), "warnings": list(run.warnings), "new": one.new}
