"""One writer at a time, on every system alike: the lock that SQLite takes on a file of its own.

The file stays empty, so that nothing is lost with it; the system frees the lock of a process that is gone.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from demur.errors import UsageError
from demur.store.places import LOCK

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
