"""The content of a run: in one form whatever file it came from, its digest, and its rows on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
from polars.exceptions import PolarsError

from demur.data.cells import LABELS, as_text
from demur.data.kinds import Kind
from demur.data.lines import exactly
from demur.data.tables import ROW
from demur.show import path_text
from demur.store.durable import settle
from demur.store.records import DamagedError

AT_ONCE = 1 << 16
"""Rows whose texts are joined at a time."""

ROWS_PER_GROUP = 8192
"""Rows that are compressed together: few enough that any fifty rows are read within a tenth of a second."""


def canonical(kind: Kind, frame: pl.DataFrame) -> pl.DataFrame:
    """The rows in the one form they have here: N-best lists as JSON; tables of other kinds than responses as text."""
    if kind != "responses":
        return frame.select(as_text(frame[name]) for name in frame.columns)
    return frame.with_columns(_lists_as_text(frame["nbest"])) if "nbest" in frame.columns else frame


def _lists_as_text(column: pl.Series) -> pl.Series:
    """Lists as JSON, written alike whether they came as JSON or as lists; a part at a time, as there may be many."""
    parts = [pl.Series(column.name, [], dtype=pl.String)]
    for part in column.to_frame().iter_slices(AT_ONCE):
        texts = part.to_series()
        if texts.dtype.is_nested():  # much quicker than to make lists of it here
            coded = part.select(pl.struct(cell=pl.all()).struct.json_encode()).to_series()
            cells: Any = (msgspec.json.decode(text)["cell"] for text in coded)
        else:
            cells = map(_read, texts)
        parts.append(pl.Series(column.name, [_written(cell) for cell in cells], dtype=pl.String))
    return pl.concat(parts)


def _read(text: str | None) -> Any:
    """What a text spells, or the text itself where it is no JSON."""
    try:
        return None if text is None else msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return text


def _written(cell: Any) -> str | None:
    return cell if cell is None or isinstance(cell, str) else msgspec.json.encode(cell, order="sorted").decode()


def digest_of(kind: Kind, frame: pl.DataFrame, reading: dict[str, Any]) -> str:
    """SHA-256 of the rows in their order, whatever the order of columns, of those that hold something.

    Each column adds its name, its type, how long each cell is (-1 for none), and then all cells, texts as UTF-8. It is
    taken of the values, not of a rendering, so that it stays when libraries come to write numbers otherwise. What a
    table of responses says does not depend on how it was read any more; of other tables `reading` is a part.
    """
    digest = hashlib.sha256(f"demur {kind} {frame.height}\n".encode())
    if kind != "responses":
        digest.update(msgspec.json.encode(reading, order="sorted"))
    for name in sorted(frame.columns):
        column = frame[name]
        if name != ROW and column.null_count() < len(column):
            digest.update(msgspec.json.encode(name))
            _add(digest, column)
    return digest.hexdigest()


def _add(digest: Any, column: pl.Series) -> None:
    if column.dtype == LABELS:
        digest.update(b"labels" + _lengths(column.list.len()))
        _add(digest, column.filter(column.list.len() > 0).explode())
    elif column.dtype == pl.String:
        digest.update(b"text" + _lengths(column.str.len_bytes()))
        for part in column.to_frame().iter_slices(AT_ONCE):
            digest.update((part.to_series().str.join("").item() or "").encode())
    elif column.dtype == pl.Boolean:
        digest.update(b"flag" + column.cast(pl.Int8).fill_null(-1).to_numpy().tobytes())
    else:
        digest.update(b"number")
        digest.update(_lengths(column.is_not_null().cast(pl.Int64)))
        numbers = column.fill_null(0.0).to_numpy() + 0.0  # so that -0 is 0
        digest.update(numbers.astype("<f8").tobytes())


def _lengths(lengths: pl.Series) -> bytes:
    return np.asarray(lengths.cast(pl.Int64).fill_null(-1).to_numpy(), dtype="<i8").tobytes()


def write_rows(path: Path, kind: Kind, frame: pl.DataFrame) -> int:
    """Writes the rows, responses by falling confidence so that those near a threshold lie together; gives the bytes."""
    numbered = frame.with_row_index(ROW)
    if kind == "responses":
        numbered = numbered.sort("confidence", descending=True, nulls_last=True, maintain_order=True)
    numbered.write_parquet(path_text(path), compression="zstd", row_group_size=ROWS_PER_GROUP, statistics=False)
    settle(path)
    return path.stat().st_size


def read_rows(path: Path, columns: Sequence[str] | None = None, *, ordered: bool = True) -> pl.DataFrame:
    """Reads rows in the order in which they came, or in that of the file, which is quicker."""
    try:
        rows = pl.scan_parquet(exactly(path))
        wanted = pl.all() if columns is None else pl.col(list(dict.fromkeys([ROW, *columns])))
        chosen = rows.select(wanted)
        return (chosen.sort(ROW) if ordered else chosen).drop(ROW).collect()
    except (PolarsError, OSError) as error:
        reason = str(error).split("\n", 1)[0]
        raise DamagedError(f"its {path.name} cannot be read: {reason}") from None
