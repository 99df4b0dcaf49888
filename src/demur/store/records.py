"""What is known of a run, and how it is written down."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from demur.data.kinds import Kind
from demur.errors import DataError
from demur.store.durable import write_durably
from demur.store.places import ROWS, RUN

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
    """What reading said."""
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


def encoded(run: Run) -> bytes:
    """The run as JSON that people can read."""
    return msgspec.json.format(msgspec.json.encode(run), indent=2) + b"\n"


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
    """Writes what is known of a run into its folder."""
    write_durably(folder / RUN, encoded(run))


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
    """What changes when a file of a run's folder is written anew, cut off or removed."""
    marks = []
    for name in (RUN, ROWS):
        try:
            found = (folder / name).stat()
            marks.append(f"{found.st_mtime_ns}+{found.st_size}")
        except OSError:
            marks.append("none")
    return " ".join(marks)


def checked_name(name: str) -> str:
    """The name without space around it; refuses one that cannot be typed or read."""
    bare = " ".join(name.split())
    if not bare or not bare.isprintable():
        raise DataError("the name of a run must have letters that can be shown", got=ascii(name)[1:-1])
    if len(bare) > LONGEST_NAME:
        raise DataError(f"the name of a run has at most {LONGEST_NAME} letters", got=f"{bare[:40]}...")
    return bare


def checked_tags(tags: Any) -> tuple[str, ...]:
    """The tags, each once, without space around them.

    >>> checked_tags([" baseline", "2024", "baseline", ""])
    ('baseline', '2024')
    """
    found = tuple(dict.fromkeys(bare for tag in tags if (bare := " ".join(str(tag).split()))))
    for tag in found:
        if not tag.isprintable():
            raise DataError("a tag must have letters that can be shown", got=ascii(tag)[1:-1])
        if len(tag) > LONGEST_TAG:
            raise DataError(f"a tag has at most {LONGEST_TAG} letters", got=f"{tag[:40]}...")
    return found


def checked_note(note: str) -> str:
    """The note without space around it; refuses what cannot be written to a file."""
    if any("\ud800" <= sign <= "\udfff" for sign in note):
        raise DataError("a note must be text; this one holds bytes that are no UTF-8", got=ascii(note)[1:-1][:40])
    return note.strip()


def changed(run: Run, *, name: str | None, tags: Any, note: str | None) -> Run:
    """The run with another name, other tags or another note; None leaves each as it is."""
    return replace(
        run,
        name=run.name if name is None else checked_name(name),
        tags=run.tags if tags is None else checked_tags(tags),
        note=run.note if note is None else checked_note(note),
    )
