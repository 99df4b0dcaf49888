"""The journal of a study: events in SQLite, only ever appended, and acknowledged once they are on the disk."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import msgspec

from demur.errors import DataError, UsageError
from demur.study.state import RESTORE, StudyEvent

FILE = "journal.sqlite"
LOCK = "journal.lock"
SCHEMA = 1
MOST_AT_ONCE = 2000
"""Appends of one commit."""

_TABLES = """
CREATE TABLE IF NOT EXISTS events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at REAL NOT NULL, kind TEXT NOT NULL, person TEXT NOT NULL, dialogue TEXT NOT NULL, client TEXT UNIQUE,
    body TEXT NOT NULL
);
CREATE TRIGGER IF NOT EXISTS only_appended_u BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER IF NOT EXISTS only_appended_d BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'append-only'); END;
"""
_INSERT = "INSERT INTO events (at, kind, person, dialogue, client, body) VALUES (?, ?, ?, ?, ?, ?)"

Row = tuple[float, str, str, str, str | None, str]
Done = Callable[[Exception | None], None]
Deliver = Callable[[Callable[[], None]], None]


class _Append:
    """Events to be written together, and what to call afterwards."""

    __slots__ = ("done", "epoch", "rows")

    def __init__(self, rows: list[Row], epoch: int, done: Done) -> None:
        self.rows, self.epoch, self.done = rows, epoch, done


class StudyJournal:
    """Appends events in a thread of its own; appends that come together share one commit.

    After a failed commit nothing of the same `epoch` is written any more, as it was decided on a state that the disk
    does not have: who appends reads the events again and goes on in a new epoch.
    """

    def __init__(self, folder: Path, *, most_pages: int | None = None, deliver: Deliver | None = None) -> None:
        """Opens the journal of a study for writing; only one process may.

        After each commit `deliver` is given a function that tells all who wait for it, to be called in their thread; by
        default it is called in the writing thread.
        """
        self.folder = folder
        self._deliver = deliver or _call
        self._lock = _take_lock(folder / LOCK)
        try:
            self._connection = _connect(folder / FILE)
        except sqlite3.DatabaseError as fault:
            self._lock.close()
            raise _damaged("used", folder / FILE, fault) from None
        if most_pages is not None:
            self._connection.execute(f"PRAGMA max_page_count = {most_pages}")
        self.epoch = 0
        self._queue: SimpleQueue[_Append | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._write, name="demur-journal", daemon=True)
        self._thread.start()

    def append(self, events: Sequence[StudyEvent], epoch: int, done: Done, client: str | None = None) -> None:
        """Write events; `done` is called once they are on the disk, or with what went wrong."""
        rows = [_row(event, client if place == 0 else None) for place, event in enumerate(events)]
        self._queue.put(_Append(rows, epoch, done))

    def close(self) -> None:
        """Write what is waiting, and close the files."""
        self._queue.put(None)
        self._thread.join()
        with suppress(sqlite3.Error):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._connection.close()
        self._lock.close()

    def allow_pages(self, most: int) -> None:
        """Set how large the file may grow, in pages."""
        self._connection.execute(f"PRAGMA max_page_count = {most}")

    def _write(self) -> None:
        while True:
            first = self._queue.get()
            if first is None:
                return
            batch, ended = [first], False
            while len(batch) < MOST_AT_ONCE and not ended:
                try:
                    one = self._queue.get_nowait()
                except Empty:
                    break
                ended = one is None
                if one is not None:
                    batch.append(one)
            self._commit(batch)
            if ended:
                return

    def _commit(self, batch: list[_Append]) -> None:
        fresh = [one for one in batch if one.epoch == self.epoch]
        fault: Exception | None = None
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            for one in fresh:
                self._connection.executemany(_INSERT, one.rows)
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            fault = error
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            self.epoch += 1
        stale = JournalFault("an earlier event could not be written")
        failed = JournalFault(str(fault)) if fault is not None else None

        def tell() -> None:
            for one in batch:
                one.done(failed if one in fresh else stale)

        self._deliver(tell)


def _call(calls: Callable[[], None]) -> None:
    calls()


class JournalFault(Exception):
    """Events could not be written; none of them happened."""


def _row(event: StudyEvent, client: str | None) -> Row:
    body = msgspec.json.encode(event.body).decode()
    return event.at, event.kind, event.person, event.dialogue, client, body


def _connect(path: Path) -> sqlite3.Connection:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    os.close(descriptor)
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)
    try:
        for command in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", "PRAGMA secure_delete = ON"):
            connection.execute(command)
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, SCHEMA):
            raise sqlite3.DatabaseError(f"it has schema {version}, this demur reads {SCHEMA}")
        connection.executescript(_TABLES)
        connection.execute(f"PRAGMA user_version = {SCHEMA}")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _take_lock(path: Path) -> sqlite3.Connection:
    """A connection that holds the lock of a study while it is open; the end of the process releases it too."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    os.close(descriptor)
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=1)
    try:
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError:
        connection.close()
        raise UsageError(f"{path.parent}: this study is being served by another process; end that one first") from None
    return connection


def read_events(folder: Path) -> list[StudyEvent]:
    """All events of a study in order, also while it is being served; none where it was never served."""
    return [event for event, _ in read_rows(folder)]


def read_rows(folder: Path) -> list[tuple[StudyEvent, str | None]]:
    """All events in order, each with the id that a page gave it."""
    return list(each_row(folder))


def each_row(folder: Path) -> Iterator[tuple[StudyEvent, str | None]]:
    """Events in order, with their ids, one after the other: those before a damaged place come before the fault."""
    path = folder / FILE
    if not path.exists():
        return
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=30)) as connection:
            for row in connection.execute("SELECT at, kind, person, dialogue, client, body FROM events ORDER BY seq"):
                yield _event(row)
    except (sqlite3.Error, msgspec.MsgspecError, TypeError, UnicodeDecodeError) as fault:
        raise _damaged("read", path, fault) from None


def _damaged(verb: str, path: Path, fault: Exception) -> DataError:
    return DataError(f"cannot be {verb}: {fault}", where=f"{path}", fix=RESTORE)


def _event(row: Any) -> tuple[StudyEvent, str | None]:
    at, kind, person, dialogue, client, body = row
    event = {"at": at, "kind": kind, "person": person, "dialogue": dialogue, "body": msgspec.json.decode(body)}
    return msgspec.convert(event, StudyEvent), client


def erase_events(folder: Path, person: str, event: StudyEvent) -> int:
    """Remove all events of a participant and their dialogues, and leave one that says so; how many were removed."""
    dialogues = event.body["dialogues"]
    chosen = f"person = ? OR dialogue IN ({', '.join('?' * len(dialogues))})"
    with _rewriting(folder, event) as connection:
        return connection.execute(f"DELETE FROM events WHERE {chosen}", (person, *dialogues)).rowcount


def erase_wizard_events(folder: Path, name: str, event: StudyEvent) -> int:
    """Remove what a wizard did for themselves, and put the person of `event` for them in participants' dialogues.

    Gives how many events were removed; the dialogues stay whole.
    """
    dialogues = event.body["dialogues"]
    among = f"dialogue IN ({', '.join('?' * len(dialogues))})"
    with _rewriting(folder, event) as connection:
        removed = connection.execute("DELETE FROM events WHERE person = ? AND kind != 'understood'", [name]).rowcount
        connection.execute("UPDATE events SET person = ? WHERE person = ?", (event.person, name))
        for key in ("wizard", "to", "by"):
            place = f"$.{key}"
            changed = f"UPDATE events SET body = json_set(body, ?, ?) WHERE json_extract(body, ?) = ? AND {among}"
            connection.execute(changed, (place, event.person, place, name, *dialogues))
        before, after = f"wizard/{name}/", f"wizard/{event.person}/"
        changed = "UPDATE events SET client = ? || substr(client, ?) WHERE substr(client, 1, ?) = ?"
        connection.execute(changed, (after, len(before) + 1, len(before), before))
    return removed


@contextmanager
def _rewriting(folder: Path, event: StudyEvent) -> Iterator[sqlite3.Connection]:
    """The journal with its rules lifted, for a change that `event` tells of; what was there is overwritten."""
    with closing(_take_lock(folder / LOCK)), closing(_connect(folder / FILE)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        for name in ("only_appended_u", "only_appended_d"):
            connection.execute(f"DROP TRIGGER {name}")
        yield connection
        connection.execute(_INSERT, _row(event, None))
        for line in _TABLES.splitlines():
            if line.startswith("CREATE TRIGGER"):
                connection.execute(line)
        connection.execute("COMMIT")
        for command in ("PRAGMA wal_checkpoint(TRUNCATE)", "VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"):
            connection.execute(command)
