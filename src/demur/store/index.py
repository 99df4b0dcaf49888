"""The index of a store in SQLite, brought in line with the folders, and changes of the layout."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple

import msgspec

from demur import __version__
from demur.core.io.untrusted import decode_json, read_bounded, read_json
from demur.errors import DataError, UsageError
from demur.store.records import (
    CACHE,
    ELSEWHERE,
    REPLACING,
    RUN,
    RUNS,
    STAGING,
    STORE,
    DamagedError,
    Run,
    RunId,
    decoded,
    discard,
    free_name,
    is_run,
    mark_of,
    move,
    read_run,
    settle,
    staging_place,
    stamp_of,
    write_durably,
    write_run,
)

SCHEMA = 1

_TABLE = """
CREATE TABLE IF NOT EXISTS runs (
    id TEXT PRIMARY KEY, name TEXT, kind TEXT, added TEXT, stamp TEXT NOT NULL, document BLOB, damage TEXT
)
"""
_COLUMNS = ("id", "name", "kind", "added", "stamp", "document", "damage")
_BESIDE = ("-wal", "-shm", "-journal")


@dataclass(frozen=True, slots=True)
class IndexEntry:
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
        run = self._connection.execute
        try:
            for command in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = NORMAL", _TABLE):
                run(command)
            if run("PRAGMA quick_check").fetchone() != ("ok",):
                raise sqlite3.DatabaseError("the index does not hold together")
            names = tuple(row[1] for row in run("PRAGMA table_info(runs)"))
            version = run("PRAGMA user_version").fetchone()[0]
            if names != _COLUMNS or version not in (0, SCHEMA):
                raise sqlite3.DatabaseError("the index has another schema")
            if version == 0:
                run(f"PRAGMA user_version = {SCHEMA}")
        except sqlite3.Error:
            self._connection.close()
            raise
        except UnicodeDecodeError as error:  # in the words of SQLite about a table that is no text
            self._connection.close()
            raise sqlite3.DatabaseError("the index does not hold together") from error

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

    def _execute(self, command: str, *values: object) -> list[Any]:
        with self._alone:
            try:
                return self._connection.execute(command, values).fetchall()
            except UnicodeDecodeError as error:
                raise sqlite3.DatabaseError("the index does not hold together") from error

    def stamps(self) -> dict[str, str]:
        """The stamp of each folder as it was when it was last read."""
        return dict(self._execute("SELECT id, stamp FROM runs"))

    def entries(self, run: str | None = None) -> list[IndexEntry]:
        """All entries, the newest first, or the one of a run's id."""
        where, values = ("", ()) if run is None else ("WHERE id = ?", (run,))
        query = f"SELECT id, stamp, document, damage FROM runs {where} ORDER BY added DESC, name, id"
        return [_entry_of(*row) for row in self._execute(query, *values)]

    def entry(self, run: str) -> IndexEntry | None:
        """The entry of a folder."""
        return next(iter(self.entries(run)), None)

    def sound_runs(self) -> list[Run]:
        """The runs that can be used, the newest first."""
        return [one.run for one in self.entries() if one.run is not None and one.damage is None]

    def put(self, folder: Path, run: Run | None, damage: str | None = None) -> None:
        """Takes in what is known of the run in a folder, or its newer state."""
        document = None if run is None else msgspec.json.encode(run)
        about = (None, None, "") if run is None else (run.name, run.kind, run.added)
        values = (folder.name, *about, stamp_of(folder), document, damage)
        self._execute("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?)", *values)

    def drop(self, run: str) -> None:
        """Forgets a folder."""
        self._execute("DELETE FROM runs WHERE id = ?", run)


def _entry_of(id_: str, stamp: str, document: bytes | None, damage: str | None) -> IndexEntry:
    try:
        return IndexEntry(id_, stamp, None if document is None else decoded(document), damage)
    except DamagedError as fault:
        return IndexEntry(id_, stamp, None, damage or str(fault))


def put_aside(path: Path) -> Path:
    """Gives a damaged index another name, with the files SQLite keeps beside it."""
    aside = free_name(path)
    os.replace(path, aside)
    for ending in _BESIDE:
        with suppress(OSError):
            os.replace(f"{path}{ending}", f"{aside}{ending}")
    return aside


LEFT_OVER = 24 * 3600
"""Seconds after which what lies under staging is nobody's any more."""


def folders_of(root: Path) -> dict[str, str]:
    """The stamp of each run's folder."""
    return {entry.name: stamp_of(entry) for entry in (root / RUNS).iterdir() if is_run(entry)}


def problems_in(root: Path, index: Index) -> list[str]:
    """What lies among the runs and is none, which runs have one name, and which cannot be used."""
    runs = index.sound_runs()
    called = {run.name: run.id for run in runs}
    names = sorted(entry.name for entry in (root / RUNS).iterdir() if not is_run(entry))
    return [
        *(f'"{name}" in the folder {RUNS} is no run and is passed over' for name in names if name[0] != "."),
        *(
            f'two runs are called "{name}": {called[name]} and {run.id}, which is listed as "{run.name}"; '
            "rename or remove one of them"
            for run in runs
            if (name := run.name.removesuffix(_ending_of(run))) != run.name and name in called
        ),
        *(
            f'the run "{one.name}" ({one.id}) is damaged: {one.damage}; its folder is left as it is'
            for one in index.entries()
            if one.damage is not None
        ),
    ]


def update_index(root: Path, index: Index, *, writable: bool) -> list[str]:
    """Reads the folders that are new or changed, forgets those that are gone; to be called by the only writer."""
    if writable:
        _finish_replacing(root, index)
    folders, known = folders_of(root), index.stamps()
    messages: list[str] = []
    with index.transaction():
        for gone in sorted(known.keys() - folders.keys()):
            entry = index.entry(gone)
            index.drop(gone)
            name = gone if entry is None else entry.name
            messages.append(f'the folder of the run "{name}" ({gone}) is gone; the run is no longer listed')
        new = sorted(one for one, stamp in folders.items() if known.get(one) != stamp)
        for changed in new:
            messages += _read_again(root / RUNS / changed, index, writable=writable)
        _rename_duplicates(root, index, new, writable=writable)
    return messages


def _read_again(folder: Path, index: Index, *, writable: bool) -> list[str]:
    entry = index.entry(folder.name)
    last = None if entry is None else entry.run
    try:
        index.put(folder, read_run(folder))
    except DamagedError as damage:
        if last is not None and writable and _restore_description(folder, last):
            index.put(folder, last)
            return [f'the {RUN} of the run "{last.name}" ({last.id}) was damaged and has been rewritten']
        index.put(folder, last, str(damage))
    return []


def _restore_description(folder: Path, last: Run) -> bool:
    """Writes what the index knows into a folder whose rows are whole, the damaged description put aside."""
    try:
        mark_of(folder / last.content, last)
    except DamagedError:
        return False
    if (folder / RUN).exists():
        os.replace(folder / RUN, free_name(folder / RUN))
    write_run(folder, last)
    return True


def _rename_duplicates(root: Path, index: Index, new: Sequence[str], *, writable: bool) -> None:
    """Lets no two runs have one name: of two, the one that was there keeps it, or the older one."""
    taken: set[str] = set()
    for run in sorted(index.sound_runs(), key=lambda one: (one.id in new, one.added, one.id)):
        if run.name in taken:
            run = replace(run, name=f"{run.name}{_ending_of(run)}")
            if writable:
                write_run(root / RUNS / run.id, run)
            index.put(root / RUNS / run.id, run)
        taken.add(run.name)


def _ending_of(run: Run) -> str:
    """What is put behind the name of a run that another one has."""
    return f" ({run.id[:6]})"


def _finish_replacing(root: Path, index: Index) -> None:
    """Removes the run that a replacement was cut off before removing, which only the store itself can have noted."""
    path = root / REPLACING
    if not path.exists():
        return
    with suppress(DataError):
        old, new = read_json(path, tuple[RunId, RunId], "two ids")
        path.unlink()
        if (root / RUNS / old).exists() and (root / RUNS / new).exists():
            with suppress(OSError):
                take_out(root, index, old)
    path.unlink(missing_ok=True)


def take_out(root: Path, index: Index, id_: str) -> None:
    """Removes a run: its folder leaves the others in one step, and only then is deleted."""
    aside = staging_place(root)
    with suppress(sqlite3.Error):  # first, so that nobody misses a folder whose removal was cut off
        index.drop(id_)
    move(root / RUNS / id_, aside)
    discard(aside)


def put_in(root: Path, index: Index, staged: Path, run: Run, *, instead: Run | None) -> None:
    """Makes a staged folder a run, in one step; one that it replaces goes now, or with the next change if it cannot."""
    settle(staged)
    target = root / RUNS / run.id
    if instead is not None:
        write_durably(root / REPLACING, msgspec.json.encode((instead.id, run.id)))
    if target.exists():  # a run that was damaged; this is its content, whole
        take_out(root, index, run.id)
    move(staged, target)
    note(root, index, run)
    if instead is not None:
        with suppress(OSError):
            take_out(root, index, instead.id)
            (root / REPLACING).unlink()


def note(root: Path, index: Index, run: Run) -> None:
    """Has the index say what the folder of a run says; where it cannot, it is brought in line later."""
    with suppress(sqlite3.Error):
        index.put(root / RUNS / run.id, run)


def clear_left_overs(root: Path) -> None:
    """Removes what crashed writers left under staging a day ago or more."""
    with suppress(OSError):
        for entry in (root / STAGING).iterdir():
            if time.time() - entry.stat().st_mtime > LEFT_OVER:
                shutil.rmtree(entry, ignore_errors=True)


class Applied(msgspec.Struct):
    """What a store says of itself."""

    migrations: list[str]


class Migration(NamedTuple):
    """A change of the layout."""

    name: str
    apply: Callable[[Path], None]


def _make_folders(root: Path) -> None:
    for name in (RUNS, STAGING, CACHE):
        (root / name).mkdir(exist_ok=True)


MIGRATIONS = (Migration("make folders", _make_folders),)
"""All changes there have been, the oldest first. What has been released is never altered, only followed by more."""


def migrate(root: Path, migrations: Sequence[Migration] = MIGRATIONS) -> list[str]:
    """Applies what a store still lacks, and gives messages about it; refuses one that a newer version has changed."""
    path = root / STORE
    applied, messages = _applied(path)
    unknown = [name for name in applied if name not in {one.name for one in migrations}]
    if unknown:
        raise UsageError(
            f'{root} was changed by a newer demur ("{unknown[0]}", not known to {__version__}): '
            f"upgrade demur, or {ELSEWHERE}"
        )
    for one in migrations:
        if one.name not in applied:
            one.apply(root)
            applied.append(one.name)
            document = {"store": "demur", "layout": len(applied), "migrations": applied}
            write_durably(path, msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n")
    return messages


def _applied(path: Path) -> tuple[list[str], list[str]]:
    if not path.exists():
        return [], []
    try:
        return decode_json(read_bounded(path), Applied, "", "a store").migrations, []
    except DataError:
        aside = free_name(path)
        os.replace(path, aside)
        return [], [f"{STORE} was damaged and has been rewritten; the old one is {aside.name}"]
