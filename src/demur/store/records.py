"""The record of a run, and its rows on disk in one form whatever file they came from."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
from polars.exceptions import PolarsError

from demur.core.io.sources import exactly
from demur.core.io.tables import LABELS, ROW, as_text
from demur.core.options import Kind
from demur.core.show.results import path_text
from demur.errors import DataError
from demur.store.disk import ROWS, RUN, settle, write_durably

LAYOUT = 1
"""Number of the layout in which runs are written."""

LONGEST_NAME = 200
LONGEST_TAG = 100


@dataclass(frozen=True, slots=True)
class Run:
    """One system's answers, or one table of another kind, as it lies in a store."""

    id: str
    """The first 16 hexadecimal digits of the digest of its content."""
    name: str
    kind: Kind
    n: int
    """How many rows it has."""
    added: str
    """When it was added, ISO 8601, UTC."""
    source: str
    """Base name of the file it came from, to be shown."""
    tags: tuple[str, ...]
    note: str
    columns: tuple[str, ...]
    about: dict[str, Any]
    """Facts that depend on the kind."""
    notes: tuple[str, ...]
    """Import notes."""
    warnings: tuple[str, ...]
    sha256: str
    reading: dict[str, Any] = field(default_factory=dict)
    """The options it was read with, those apart that were left as they are."""
    size: int = 0
    """Bytes of its rows on disk."""
    replaces: str | None = None
    """The run that was to go when this one came under its name."""
    layout: int = LAYOUT
    demur: str = ""
    """The version that wrote it."""

    def to_dict(self) -> dict[str, Any]:
        """The run as plain values."""
        document: dict[str, Any] = msgspec.to_builtins(self)
        return document


class NoRunError(DataError):
    """There is no run of this name or id."""


class DamagedError(Exception):
    """A run that cannot be read, and why."""


def decoded(text: bytes) -> Run:
    """The run that JSON describes."""
    try:
        run = msgspec.json.decode(text, type=Run)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedError(f"its {RUN} cannot be read: {error}") from None
    if run.layout > LAYOUT:
        raise DamagedError(f"it was written by a newer version, demur {run.demur}: upgrade to read it")
    return run


def write_run(folder: Path, run: Run) -> None:
    """Writes what is known of a run into its folder, as JSON that people can read."""
    write_durably(folder / RUN, msgspec.json.format(msgspec.json.encode(run), indent=2) + b"\n")


def read_run(folder: Path) -> Run:
    """Reads what is known of a run from its folder; looks whether its rows are there."""
    try:
        run = decoded((folder / RUN).read_bytes())
    except OSError as error:
        raise DamagedError(f"its {RUN} cannot be read: {error.strerror}") from None
    if run.id != folder.name:
        raise DamagedError(f"its {RUN} is that of run {run.id}")
    check_rows(folder, run)
    return run


def check_rows(folder: Path, run: Run) -> None:
    """Looks whether the rows are as long as they were, without reading them."""
    try:
        size = (folder / ROWS).stat().st_size
    except OSError as error:
        raise DamagedError(f"its {ROWS} cannot be read: {error.strerror}") from None
    if size != run.size:
        raise DamagedError(f"its {ROWS} has {size:,} bytes instead of {run.size:,}")


def stamp_of(folder: Path) -> str:
    """What changes when a file of a run's folder is rewritten, cut off or removed."""
    marks = []
    for name in (RUN, ROWS):
        try:
            found = (folder / name).stat()
            marks.append(f"{found.st_mtime_ns}+{found.st_size}")
        except OSError:
            marks.append("none")
    return " ".join(marks)


def changed(run: Run, *, name: str | None, tags: Any, note: str | None) -> Run:
    """The run with another name, other tags or another note, without space around them; None leaves each as it is."""
    new: dict[str, Any] = {}
    if name is not None:
        new["name"] = _bare_text(name, "the name of a run", LONGEST_NAME)
    if tags is not None:
        kept = [str(tag) for tag in tags if str(tag).split()]
        new["tags"] = tuple(dict.fromkeys(_bare_text(tag, "a tag", LONGEST_TAG) for tag in kept))
    if note is not None:
        if any("\ud800" <= sign <= "\udfff" for sign in note):
            raise DataError("a note must be text; this one holds bytes that are no UTF-8", got=ascii(note)[1:-1][:40])
        new["note"] = note.strip()
    return replace(run, **new)


def _bare_text(text: str, what: str, longest: int) -> str:
    """The text without space around it; refuses one that cannot be typed or read.

    >>> _bare_text(" new  baseline", "a tag", 100)
    'new baseline'
    """
    bare = " ".join(text.split())
    if not bare or not bare.isprintable():
        raise DataError(f"{what} must have characters that can be shown", got=ascii(text)[1:-1])
    if len(bare) > longest:
        raise DataError(f"{what} has at most {longest} characters", got=f"{bare[:40]}...")
    return bare


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
        if column.dtype.is_nested():  # much quicker than to make lists of it here
            coded = part.select(pl.struct(cell=pl.all()).struct.json_encode()).to_series()
            cells = [msgspec.json.decode(text)["cell"] for text in coded]
        else:
            cells = [decode_cell(text) for text in part.to_series()]
        texts = [
            cell if cell is None or isinstance(cell, str) else msgspec.json.encode(cell, order="sorted").decode()
            for cell in cells
        ]
        parts.append(pl.Series(column.name, texts, dtype=pl.String))
    return pl.concat(parts)


def decode_cell(text: str | None) -> Any:
    """What a text spells, or the text itself where it is no JSON."""
    try:
        return None if text is None else msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return text


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
            _add_column(digest, column)
    return digest.hexdigest()


def _add_column(digest: Any, column: pl.Series) -> None:
    if column.dtype == LABELS:
        digest.update(b"labels" + _lengths(column.list.len()))
        _add_column(digest, column.filter(column.list.len() > 0).explode())
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
        wanted = pl.all() if columns is None else pl.col(list(dict.fromkeys([ROW, *columns])))
        chosen = pl.scan_parquet(exactly(path)).select(wanted)
        return (chosen.sort(ROW) if ordered else chosen).drop(ROW).collect()
    except (PolarsError, OSError) as error:
        reason = str(error).split("\n", 1)[0]
        raise DamagedError(f"its {path.name} cannot be read: {reason}") from None
