"""The files of a store: where they lie, written durably, locked against other writers, and cached results."""

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
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path

from polars.exceptions import PolarsError

from demur.errors import UsageError

STORE = "store.json"
RUNS = "runs"
STAGING = "staging"
CACHE = "cache"
INDEX = "index.sqlite"
LOCK = "lock.sqlite"

RUN = "run.json"
ROWS = "rows.parquet"

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
            content = zlib.decompress(packed[start:])
            if packed[:start] == _MARK + hashlib.sha256(content).digest():
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
