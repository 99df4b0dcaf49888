"""The index of a store: what is known of each run, in SQLite, so that listing does not open every folder.

It holds nothing that the folders do not say; what is wrong with it is mended by making it again.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import RLock

import msgspec

from demur.store.places import free_name
from demur.store.records import Run, decoded

SCHEMA = 1

_TABLE = """
CREATE TABLE IF NOT EXISTS runs (
    id TEXT PRIMARY KEY, name TEXT, kind TEXT, added TEXT, stamp TEXT NOT NULL, document BLOB, damage TEXT
)
"""
_COLUMNS = ("id", "name", "kind", "added", "stamp", "document", "damage")
_BESIDE = ("-wal", "-shm", "-journal")


@dataclass(frozen=True, slots=True)
class Entry:
    """What the index holds of a folder: the run if it was ever read, and what is wrong with it if something is."""

    id: str
    stamp: str
    run: Run | None
    damage: str | None = None

    @property
    def name(self) -> str:
        """The run's name, or its id where that is all there is."""
        return self.run.name if self.run is not None else self.id


class Index:
    """The runs by id; one connection, shared by the threads of a process."""

    def __init__(self, path: Path | None) -> None:
        """Opens the index in a file, making what is not there, or one in memory."""
        self.path = path
        self._alone = RLock()
        target = ":memory:" if path is None else str(path)
        self._connection = sqlite3.connect(target, timeout=30, isolation_level=None, check_same_thread=False)
        try:
            self._prepare()
        except sqlite3.Error:
            self._connection.close()
            raise

    def _prepare(self) -> None:
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        self._connection.execute(_TABLE)
        if self._connection.execute("PRAGMA quick_check").fetchone() != ("ok",):
            raise sqlite3.DatabaseError("the index does not hold together")
        names = tuple(row[1] for row in self._connection.execute("PRAGMA table_info(runs)"))
        version = self._connection.execute("PRAGMA user_version").fetchone()[0]
        if names != _COLUMNS or version not in (0, SCHEMA):
            raise sqlite3.DatabaseError("the index has another schema")
        if version == 0:
            self._connection.execute(f"PRAGMA user_version = {SCHEMA}")

    def close(self) -> None:
        """Lets go of the file."""
        self._connection.close()

    def __del__(self) -> None:
        with suppress(AttributeError, sqlite3.Error):
            self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Makes several changes one."""
        with self._alone:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def stamps(self) -> dict[str, str]:
        """The stamp of each folder as it was when it was last read."""
        with self._alone:
            return dict(self._connection.execute("SELECT id, stamp FROM runs"))

    def entries(self) -> list[Entry]:
        """All entries, the newest first."""
        query = "SELECT id, stamp, document, damage FROM runs ORDER BY added DESC, name, id"
        with self._alone:
            rows = self._connection.execute(query).fetchall()
        return [_entry(*row) for row in rows]

    def entry(self, id: str) -> Entry | None:  # noqa: A002 - it is what a run calls it
        """The entry of a folder."""
        query = "SELECT id, stamp, document, damage FROM runs WHERE id = ?"
        with self._alone:
            row = self._connection.execute(query, (id,)).fetchone()
        return None if row is None else _entry(*row)

    def put(self, entry: Entry) -> None:
        """Takes an entry in, or the newer state of one."""
        run = entry.run
        document = None if run is None else msgspec.json.encode(run)
        shown = (None, None, "") if run is None else (run.name, run.kind, run.added)
        values = (entry.id, *shown, entry.stamp, document, entry.damage)
        with self._alone:
            self._connection.execute("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?)", values)

    def drop(self, id: str) -> None:  # noqa: A002
        """Forgets a folder."""
        with self._alone:
            self._connection.execute("DELETE FROM runs WHERE id = ?", (id,))


def _entry(id: str, stamp: str, document: bytes | None, damage: str | None) -> Entry:  # noqa: A002
    return Entry(id, stamp, None if document is None else decoded(document), damage)


def put_aside(path: Path) -> Path:
    """Gives a damaged index another name, with the files SQLite keeps beside it."""
    aside = free_name(path)
    os.replace(path, aside)
    for ending in _BESIDE:
        with suppress(OSError):
            os.replace(f"{path}{ending}", f"{aside}{ending}")
    return aside
