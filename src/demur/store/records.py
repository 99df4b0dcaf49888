"""Runs on disk: where files lie, written durably and locked; the record of a run, its rows, and cached results."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import shutil
import sqlite3
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import polars as pl
from msgspec import UNSET, Meta, UnsetType
from polars.exceptions import PolarsError

from demur.core.io.sources import UNREADABLE, exactly, quiet_panics
from demur.core.io.tables import LABELS, ROW, as_text, named_column
from demur.core.io.untrusted import PlainOption, decode_json, read_bounded
from demur.core.options import Kind
from demur.core.show.results import path_text
from demur.errors import DataError, UsageError

STORE = "store.json"
RUNS = "runs"
STAGING = "staging"
CACHE = "cache"
INDEX = "index.sqlite"
REPLACING = "store.replacing.json"
"""Names the run that is removed once another one, named too, is in its place."""
LOCK = "lock.sqlite"

RUN = "run.json"
ROWS = "rows.parquet"
PARTS = "lake.json"
"""In place of rows: the parts of a lake that a run is linked to."""

VARIABLE = "DEMUR_STORE"
"""The environment variable that names the folder of the store."""

ELSEWHERE = f"choose another folder with --store FOLDER or {VARIABLE}"


_OURS = re.compile(r"\.?(store\.|index\.sqlite|lock\.sqlite).*|runs|staging|cache")


def usual_root() -> Path:
    """The folder named by the environment, else the one where this system keeps the data of programs."""
    if named := os.environ.get(VARIABLE):
        return Path(named).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "demur"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "demur"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "demur"


def refuse_foreign(root: Path) -> None:
    """Refuses a folder that holds something else than a store, before anything is written into it."""
    if root.exists() and not root.is_dir():
        raise UsageError(f"{root} is a file, not the folder of a store; {ELSEWHERE}")
    if not root.is_dir() or (root / STORE).exists():
        return
    other = sorted(entry.name for entry in root.iterdir() if not _OURS.fullmatch(entry.name))
    if (root / RUNS).is_dir():
        other += sorted(f"{RUNS}/{entry.name}" for entry in (root / RUNS).iterdir() if not is_run(entry))
    if other:
        raise UsageError(f'{root} is no store, and not empty: it holds "{other[0]}"; {ELSEWHERE}')


def is_run(entry: Path) -> bool:
    """Whether this is called what the folder of a run is called."""
    return re.fullmatch(r"[0-9a-f]{16}", entry.name) is not None


def free_name(path: Path) -> Path:
    """A name beside a damaged file under which it can be put aside."""
    number = 1
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    return aside


def write_durably(path: Path, content: bytes) -> None:
    """Writes a file that appears whole or not at all, and stays when the power goes."""
    temporary = path.with_name(f".{path.stem}.{secrets.token_hex(4)}{path.suffix}")
    try:
        temporary.write_bytes(content)
        settle(temporary)
        os.replace(temporary, path)
        settle(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def settle(path: Path) -> None:
    """Waits until a file, or the entries of a folder, are on the disk."""
    folder = path.is_dir()
    if folder and os.name != "posix":
        return  # folders cannot be opened there, and need not be
    with suppress(OSError) if folder else nullcontext():  # some file systems have it for files only
        descriptor = os.open(path, os.O_RDONLY if folder else os.O_RDWR)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def move(source: Path, target: Path) -> None:
    """Gives a folder another place in one step, and waits until both places are on the disk."""
    os.rename(source, target)
    settle(target.parent)
    settle(source.parent)


@contextmanager
def staged(root: Path) -> Iterator[Path]:
    """A new folder under staging; what is left of it at the end is removed."""
    folder = staging_place(root)
    folder.mkdir()
    try:
        yield folder
    finally:
        discard(folder)


def staging_place(root: Path) -> Path:
    """A place under staging that is free."""
    return root / STAGING / secrets.token_hex(8)


def discard(folder: Path) -> None:
    """Removes a folder that nobody needs; what cannot be removed now is cleared later."""
    with suppress(OSError):
        shutil.rmtree(folder)


@contextmanager
def disk_faults(root: Path) -> Iterator[None]:
    """Turns a full disk, a missing permission and the like into a message that says what, where, and what to do."""
    try:
        yield
        return
    except OSError as error:
        full, reason = error.errno in (errno.ENOSPC, errno.EDQUOT), error.strerror or str(error)
    except PolarsError as error:
        number = re.search(r"\(os error (\d+)\)", str(error))
        if number is None:
            raise
        full, reason = int(number[1]) in (errno.ENOSPC, errno.EDQUOT), os.strerror(int(number[1]))
    except sqlite3.OperationalError as error:
        full, reason = "full" in str(error), str(error)
    if full:
        rule = f"{root}: the disk of the store is full ({reason}); nothing was changed. Free some space"
    else:
        rule = f"{root}: the store cannot be written to: {reason}; nothing was changed. Mend it"
    raise UsageError(f"{rule}, or {ELSEWHERE}")


PATIENCE = 60.0
"""Seconds to wait for another writer."""


@contextmanager
def locked(root: Path, *, patience: float = PATIENCE) -> Iterator[None]:
    """Keeps other writers out; raises OSError where the folder cannot be written to."""
    path = root / LOCK
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    os.close(descriptor)
    with closing(sqlite3.connect(path, timeout=patience, isolation_level=None)) as connection:
        try:
            _take(connection)
        except sqlite3.OperationalError as error:
            raise UsageError(f"{root}: another program is writing to the store ({error}); try again") from None
        except sqlite3.DatabaseError:
            os.truncate(path, 0)  # nothing of ours was in it; the file itself stays, as others may wait for it
            _take(connection)
        yield


def _take(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = MEMORY")
    connection.execute("BEGIN IMMEDIATE")


LAYOUT = 1
"""Number of the layout in which runs are written."""

LONGEST_NAME = 200
LONGEST_TAG = 100

RunId = Annotated[str, Meta(pattern="^[0-9a-f]{16}$")]
Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Count = Annotated[int, Meta(ge=0, le=2**53)]

_ANSWER_FACTS = ("answered", "right", "failed", "out_of_scope", "forced_error", "dialogues", "slices")
_FACT_TYPES: dict[Any, tuple[str, ...]] = {
    Count: (*_ANSWER_FACTS[:4], "dialogues", "utterances", "hypotheses", "trials"),
    float | None: ("forced_error", "augrc", "mean"),
    list[float | None]: ("errors_at",),
    bool: ("has_input", "has_nbest", "has_ids", "repeats_ids", "weighted", "has_asr", "has_cnet", "grouped"),
    list[str]: ("slices", "systems", "studies", "performers"),
    str: ("outcome", "x", "y"),
}
_FACTS: list[Any] = [(name, form | UnsetType, UNSET) for form, names in _FACT_TYPES.items() for name in names]
Facts = msgspec.defstruct("Facts", _FACTS)
"""What may be known of a run."""


@dataclass(frozen=True, slots=True)
class Run:
    """One system's answers, or one table of another kind, as it lies in a store."""

    id: RunId
    """The first 16 hexadecimal digits of the digest of its content."""
    name: Annotated[str, Meta(min_length=1, max_length=2 * LONGEST_NAME)]
    kind: Kind
    n: Count
    """How many rows it has."""
    added: str
    """When it was added, ISO 8601, UTC."""
    source: str
    """Base name of the file it came from, to be shown."""
    tags: tuple[str, ...]
    note: str
    columns: tuple[str, ...]
    about: dict[str, Any]
    """Facts that depend on the kind, as `Facts` has them."""
    notes: tuple[str, ...]
    """Import notes."""
    warnings: tuple[str, ...]
    sha256: Sha256
    """Of its content."""
    reading: dict[str, PlainOption] = field(default_factory=dict)
    """The options it was read with, those apart that were left as they are."""
    size: Count = 0
    """Bytes of its rows on disk."""
    file_sha256: Sha256 | None = None
    """Of these bytes; none where it is not known, so that all content must be read to verify it."""
    layout: int = LAYOUT
    demur: str = ""
    """The version that wrote it."""
    lake: tuple[str, ...] = ()
    """Where the rows lie, of a run that is linked; empty where they are here."""
    engine: str = ""
    """What counts the rows of a linked run."""

    @property
    def content(self) -> str:
        """The file in its folder that holds its rows, or that says where they lie."""
        return PARTS if self.lake else ROWS

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
        run = decode_json(text, Run, "", "a run")
        if run.layout > LAYOUT:
            raise DamagedError(f"it was written by a newer version, demur {run.demur}: upgrade to read it")
        facts = msgspec.to_builtins(msgspec.convert(run.about, Facts))
        about = {name: facts[name] for name in run.about if name in facts}
        if lacking := [name for name in _ANSWER_FACTS if run.kind == "responses" and name not in about]:
            raise DamagedError(f"its {RUN} lacks {', '.join(lacking)}")
        for names in (run.columns, about.get("slices", ())):
            if repeated := [name for name, times in Counter(names).items() if times > 1]:
                raise DamagedError(f'its {RUN} has the column "{repeated[0]}" more than once')
    except DataError as fault:
        raise DamagedError(f"its {RUN} {fault.rule}") from None
    except msgspec.ValidationError as fault:
        raise DamagedError(f"its {RUN} does not have the form of a run: about: {fault}") from None
    return replace(run, about=about)


def write_run(folder: Path, run: Run) -> None:
    """Writes what is known of a run into its folder, as JSON that people can read."""
    write_durably(folder / RUN, msgspec.json.format(msgspec.json.encode(run), indent=2) + b"\n")


def read_run(folder: Path) -> Run:
    """Reads what is known of a run from its folder; looks whether its rows are there."""
    try:
        run = decoded(read_bounded(folder / RUN))
    except DataError as fault:
        raise DamagedError(f"its {RUN} {fault.rule}") from None
    if run.id != folder.name:
        raise DamagedError(f"its {RUN} is that of run {run.id}")
    if not run.sha256.startswith(run.id):
        raise DamagedError(f"the sha256 in its {RUN} does not begin with its id")
    mark_of(folder / run.content, run)
    return run


def mark_of(path: Path, run: Run) -> tuple[int, int, int]:
    """What changes when rows are rewritten; rows that are not as long as they were are damaged."""
    try:
        found = path.stat()
    except OSError as error:
        raise DamagedError(f"its {path.name} cannot be read: {error.strerror}") from None
    if found.st_size != run.size:
        raise DamagedError(f"its {path.name} has {found.st_size:,} bytes instead of {run.size:,}")
    return found.st_ino, found.st_size, found.st_mtime_ns


def file_digest(path: Path) -> str:
    """SHA-256 of the bytes of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


_FLAGS = ("answered", "right", "failed", "out_of_scope")
_JUDGED_TYPES: dict[str, pl.DataType] = {
    "target": LABELS,
    **dict.fromkeys(_FLAGS, pl.Boolean()),
    **dict.fromkeys(("confidence", "weight"), pl.Float64()),
    **dict.fromkeys(("id", "dialogue", "prediction"), pl.String()),
}
"""The types of the columns that rows of answers are judged by."""


def verify_rows(path: Path, run: Run, *, thorough: bool = False) -> None:
    """Reads the rows, and raises `DamagedError` where they are not those that were added.

    Their bytes are enough for that; `thorough` compares what they say too.
    """
    try:
        sound = run.file_sha256 in (None, file_digest(path))
    except OSError as error:
        raise DamagedError(f"its {path.name} cannot be read: {error.strerror}") from None
    if run.lake:
        if not sound:
            raise DamagedError(f"its {path.name} is not what was linked")
        return
    if sound:
        _refuse_other_types(path, run)
    if sound and (thorough or run.file_sha256 is None):
        frame = read_rows(path)
        sound = frame.height == run.n and digest_of(run.kind, frame, run.reading) == run.sha256
    if not sound:
        raise DamagedError(f"the rows in {path.name} are not those that were added")


def _refuse_other_types(path: Path, run: Run) -> None:
    """Raises `DamagedError` where rows have types that no run of this kind has, as a file of somebody else may."""
    try:
        with quiet_panics():
            schema = pl.scan_parquet(exactly(path)).collect_schema()
    except UNREADABLE as error:
        raise DamagedError(f"its {path.name} cannot be read: {str(error).splitlines()[0]}") from None
    kinds = _JUDGED_TYPES if run.kind == "responses" else {}
    for name, found in schema.items():
        wanted = pl.UInt32() if name == ROW else kinds.get(name, pl.String())
        if found != wanted:
            raise DamagedError(f'the column "{name}" in its {path.name} is of {found}, not of {wanted}')
    if missing := {ROW, *run.columns, *kinds} - {"system"} - set(schema):
        raise DamagedError(f'its {path.name} has no column "{min(missing)}"')


def stamp_of(folder: Path) -> str:
    """What changes when a file of a run's folder is rewritten, cut off or removed."""
    marks = []
    for name in (RUN, PARTS if (folder / PARTS).exists() else ROWS):
        try:
            found = (folder / name).stat()
            marks.append(f"{found.st_ino}+{found.st_mtime_ns}+{found.st_size}")
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
    """The rows in the one form they have here: N-best lists as JSON; tables of other kinds than responses as text.

    What long logs keep as categories is text here, as it is in short ones.
    """
    if kind != "responses":
        return frame.select(as_text(frame[name]) for name in frame.columns)
    frame = frame.with_columns(pl.col(pl.Categorical).cast(pl.String))
    return frame.with_columns(_lists_as_text(frame["nbest"])) if "nbest" in frame.columns else frame


def _lists_as_text(column: pl.Series) -> pl.Series:
    """Lists as JSON, written alike whether they came as JSON or as lists; a part at a time, as there may be many."""
    parts = [pl.Series(column.name, [], dtype=pl.String)]
    for part in column.to_frame().iter_slices(AT_ONCE):
        if column.dtype.is_nested():  # much quicker than to make lists of it here
            coded = part.select(pl.struct(cell=pl.all()).struct.json_encode()).to_series()
            cells = [msgspec.json.decode(text)["cell"] for text in coded]
        else:
            cells = [decode_cell(text) for text in as_text(part.to_series())]
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
        column = frame[name].alias("cell")
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
    elif not column.dtype.is_numeric():
        raise DamagedError(f"its rows have a column of {column.dtype}, as no run has")
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
        wanted = [pl.all()] if columns is None else map(named_column, dict.fromkeys([ROW, *columns]))
        chosen = pl.scan_parquet(exactly(path)).select(wanted)
        with quiet_panics():
            return (chosen.sort(ROW) if ordered else chosen).drop(ROW).collect()
    except UNREADABLE as error:
        reason = str(error).split("\n", 1)[0]
        raise DamagedError(f"its {path.name} cannot be read: {reason}") from None


MOST_BYTES = 512 * 2**20
"""Bytes that results may take together."""

_MARK = b"demur1\n"
_ENDING = ".result"


class Cache:
    """A folder of results."""

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES) -> None:
        self.folder = folder
        self.most_bytes = most_bytes

    def cached(self, signature: str) -> bytes | None:
        """What was kept under a signature; None where nothing was, or not all of it can be read."""
        path = self._path(signature)
        with suppress(OSError, zlib.error):
            packed = path.read_bytes()
            start = len(_MARK) + hashlib.sha256().digest_size
            unpacking = zlib.decompressobj()
            content = unpacking.decompress(packed[start:], MOST_BYTES)
            if unpacking.eof and packed[:start] == _MARK + hashlib.sha256(content).digest():
                os.utime(path)
                return content
        with suppress(OSError):
            path.unlink(missing_ok=True)
        return None

    def keep(self, signature: str, content: bytes) -> bool:
        """Keeps a result, and says whether it is there; where it cannot be written it is made again the next time."""
        path = self._path(signature)
        temporary = path.with_name(f".{path.stem}.{os.urandom(4).hex()}")
        with suppress(OSError):
            try:
                self.folder.mkdir(exist_ok=True)
                temporary.write_bytes(_MARK + hashlib.sha256(content).digest() + zlib.compress(content, 1))
                os.replace(temporary, path)
                self._make_room()
            finally:
                temporary.unlink(missing_ok=True)
        return path.exists()

    def clear(self) -> int:
        """Removes all results, and says how many there were."""
        count = len(list(self.folder.glob(f"*{_ENDING}")))
        discard(self.folder)
        self.folder.mkdir(exist_ok=True)
        return count

    def _path(self, signature: str) -> Path:
        return self.folder / (hashlib.sha256(signature.encode()).hexdigest() + _ENDING)

    def _make_room(self) -> None:
        with os.scandir(self.folder) as entries:
            kept = sorted((entry.stat().st_mtime_ns, entry.stat().st_size, entry.path) for entry in entries)
        over = sum(size for _, size, _ in kept) - self.most_bytes
        for _, size, path in kept:
            if over <= 0:
                return
            Path(path).unlink(missing_ok=True)
            over -= size
