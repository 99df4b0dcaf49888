"""What judges said, kept as it happened: a folder with an SQLite file to which events are only ever added.

An event counts once it is committed to the disk, and is acknowledged only then. Nothing is ever changed: to undo
a judgement is an event too. A process that ends at any moment leaves what was committed.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock
from typing import Any, Literal, NamedTuple
from weakref import finalize

from demur.errors import DataError, UsageError

Kind = Literal["judge", "undo", "adjudicate", "reopen"]
"""What happened: a judge gave a label, or took the last one back; the lead settled an item, or reopened it."""

FILE, LOCK = "judging.sqlite", "served.lock"
SCHEMA = 1
_TABLES = (
    "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE items (item INTEGER PRIMARY KEY, shown TEXT NOT NULL, judges TEXT NOT NULL)",
    "CREATE TABLE rows (place INTEGER PRIMARY KEY, input INTEGER NOT NULL, stratum INTEGER NOT NULL, item INTEGER, "
    "document TEXT NOT NULL)",
    "CREATE TABLE events (number INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL, kind TEXT NOT NULL, "
    "judge TEXT NOT NULL, item INTEGER NOT NULL, label TEXT, note TEXT NOT NULL, request TEXT UNIQUE)",
    "CREATE TRIGGER events_stay BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events are only added'); END",
    "CREATE TRIGGER events_remain BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'events are only added'); END",
)


class Event(NamedTuple):
    """Something that a judge, or the lead, did."""

    number: int
    at: str
    kind: Kind
    judge: str
    item: int
    label: str | None
    note: str
    request: str | None


class KeptRow(NamedTuple):
    """A row of the log that is judged, or needs no judging: its input, its stratum (-1 for known) and its item."""

    place: int
    input: int
    stratum: int
    item: int | None
    document: str


class KeptItem(NamedTuple):
    """What is shown to judges of one answer, as JSON, and the judges that it is for, as JSON."""

    item: int
    shown: str
    judges: str


class Journal:
    """The folder of one judging; its connection is shared by the threads of a process."""

    def __init__(self, folder: Path) -> None:
        """Open a folder in which judging was begun; `begin` makes one."""
        self.folder = folder
        if not (folder / FILE).is_file():
            raise DataError("is no folder of judgements", where=str(folder), fix="demur judge LOG begins one")
        self._alone = RLock()
        self._connection = _connect(folder / FILE)
        finalize(self, self._connection.close)
        try:
            if (version := self._all("PRAGMA user_version")[0][0]) != SCHEMA:
                why = "was not begun whole" if version == 0 else "was written by another version of demur"
                raise DataError(why, where=str(folder), fix="take another folder, or the version that wrote it")
        except DataError:
            self.close()
            raise

    @classmethod
    def begin(cls, folder: Path, about: dict[str, str], items: Sequence[KeptItem], rows: Sequence[KeptRow]) -> Journal:
        """A new journal, which is there whole or not at all; only its owner can read it."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            os.close(os.open(folder / FILE, os.O_CREAT, 0o600))
        except OSError as fault:
            raise UsageError(f"{folder} cannot be written: {fault.strerror or fault}") from None
        connection = _connect(folder / FILE)
        try:
            connection.execute("BEGIN IMMEDIATE")
            for command in _TABLES:
                connection.execute(command)
            connection.executemany("INSERT INTO about VALUES (?, ?)", about.items())
            connection.executemany("INSERT INTO items VALUES (?, ?, ?)", items)
            connection.executemany("INSERT INTO rows VALUES (?, ?, ?, ?, ?)", rows)
            connection.execute(f"PRAGMA user_version = {SCHEMA}")
            connection.execute("COMMIT")
        except sqlite3.Error as fault:
            raise UsageError(f"{folder} cannot be written: {fault}") from None
        finally:
            connection.close()
        return cls(folder)

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def _all(self, command: str, *values: object) -> list[Any]:
        with self._alone:
            try:
                return self._connection.execute(command, values).fetchall()
            except sqlite3.DatabaseError as fault:
                raise DataError(f"cannot be read: {fault}", where=str(self.folder / FILE)) from None

    def about(self) -> dict[str, str]:
        """What judging was begun with, by name."""
        return dict(self._all("SELECT name, value FROM about"))

    def items(self) -> list[KeptItem]:
        """What is judged."""
        return [KeptItem(*row) for row in self._all("SELECT item, shown, judges FROM items ORDER BY item")]

    def rows(self) -> list[KeptRow]:
        """The rows of the judged log."""
        names = ", ".join(KeptRow._fields)
        return [KeptRow(*row) for row in self._all(f"SELECT {names} FROM rows ORDER BY place")]

    def events(self) -> list[Event]:
        """All that happened, in order."""
        names = ", ".join(Event._fields)
        return [Event(*row) for row in self._all(f"SELECT {names} FROM events ORDER BY number")]

    def add(
        self, kind: Kind, judge: str, item: int, label: str | None = None, note: str = "", request: str | None = None
    ) -> Event:
        """Add an event and give it back once it is on the disk; a request that was answered before adds nothing."""
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        values = (at, kind, judge, item, label, note, request)
        with self._alone:
            try:
                command = (
                    "INSERT INTO events (at, kind, judge, item, label, note, request) VALUES (?, ?, ?, ?, ?, ?, ?)"
                )
                number = self._connection.execute(command, values).lastrowid
            except sqlite3.IntegrityError:
                raise RepeatedRequest(request or "") from None
            except sqlite3.Error as fault:
                raise UsageError(f"the judgement could not be kept, so it does not count: {fault}") from None
        return Event(number or 0, at, kind, judge, item, label, note, request)

    @contextmanager
    def served(self) -> Iterator[None]:
        """Hold the folder, so that no other process serves it meanwhile; the end of the process lets go of it."""
        lock = sqlite3.connect(self.folder / LOCK, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            lock.close()
            fix = "end it, or judge with another -o"
            raise UsageError(f"another process serves {self.folder} already; {fix}") from None
        try:
            yield
        finally:
            lock.close()


class RepeatedRequest(Exception):
    """A request that was answered before, sent again."""


def _connect(path: Path) -> sqlite3.Connection:
    """A connection whose every statement is committed to the disk before it returns."""
    connection = None
    try:
        connection = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
    except sqlite3.Error as fault:
        if connection is not None:
            connection.close()
        raise DataError(f"cannot be opened: {fault}", where=str(path)) from None
    return connection
