"""Files that are on the disk when they are said to be, and faults of the disk in words."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from polars.exceptions import PolarsError

from demur.errors import UsageError
from demur.store.places import ELSEWHERE, STAGING

_NUMBERED = re.compile(r"\(os error (\d+)\)")
_FULL = (errno.ENOSPC, errno.EDQUOT)


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
    if path.is_dir():
        if os.name == "posix":  # elsewhere folders cannot be opened, and need not be
            with suppress(OSError):  # some file systems have it for files only
                _sync(path, os.O_RDONLY)
    else:
        _sync(path, os.O_RDWR)


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
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
    except OSError as error:
        raise unwritable(root, error.errno, error.strerror or str(error)) from None
    except PolarsError as error:
        found = _NUMBERED.search(str(error))
        if found is None:
            raise
        raise unwritable(root, int(found[1]), os.strerror(int(found[1]))) from None
    except sqlite3.OperationalError as error:
        full = errno.ENOSPC if "full" in str(error) else None
        raise unwritable(root, full, str(error)) from None


def unwritable(root: Path, number: int | None, said: str) -> UsageError:
    """The fault of a store that cannot be written to."""
    if number in _FULL:
        return UsageError(
            f"{root}: the disk of the store is full ({said}); nothing was changed. Free some space, or {ELSEWHERE}"
        )
    return UsageError(f"{root}: the store cannot be written to: {said}; nothing was changed. Mend it, or {ELSEWHERE}")
