"""The index is brought in line with the folders, which are the truth; what was found amiss is told."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from demur.store.durable import discard, move, settle, staging_place
from demur.store.index import Entry, Index
from demur.store.places import RUN, RUNS, STAGING, free_name, is_run
from demur.store.records import DamagedError, Run, check_rows, read_run, stamp_of, write_run

LEFT_OVER = 24 * 3600
"""Seconds after which what lies under staging is nobody's any more."""


def folders_of(root: Path) -> dict[str, str]:
    """The stamp of each run's folder."""
    return {entry.name: stamp_of(entry) for entry in (root / RUNS).iterdir() if is_run(entry)}


def strangers_in(root: Path) -> list[str]:
    """What lies among the runs and is none."""
    names = [entry.name for entry in (root / RUNS).iterdir() if not is_run(entry)]
    found = sorted(name for name in names if not name.startswith("."))  # which systems leave behind
    return [f'"{name}" in the folder {RUNS} is no run and is passed over' for name in found]


def damages_in(index: Index) -> list[str]:
    """What is wrong with runs that cannot be used."""
    return [
        f'the run "{one.name}" ({one.id}) is damaged: {one.damage}; its folder is left as it is'
        for one in index.entries()
        if one.damage is not None
    ]


def bring_in_line(root: Path, index: Index, *, writable: bool) -> list[str]:
    """Reads the folders that are new or changed, forgets those that are gone; to be called by the only writer."""
    found, known = folders_of(root), index.stamps()
    told: list[str] = []
    with index.transaction():
        told += [_gone(index, gone) for gone in sorted(known.keys() - found.keys())]
        for id_ in sorted(one for one, stamp in found.items() if known.get(one) != stamp):
            told += _taken_in(root / RUNS / id_, index, writable=writable)
        told += _told_apart(root, index, writable=writable)
    return told


def _gone(index: Index, id_: str) -> str:
    entry = index.entry(id_)
    index.drop(id_)
    name = id_ if entry is None else entry.name
    return f'the folder of the run "{name}" ({id_}) is gone; the run is no longer listed'


def _taken_in(folder: Path, index: Index, *, writable: bool) -> list[str]:
    entry = index.entry(folder.name)
    last = None if entry is None else entry.run
    try:
        index.put(Entry(folder.name, stamp_of(folder), read_run(folder)))
        return []
    except DamagedError as damage:
        if last is not None and writable and _described_anew(folder, last):
            index.put(Entry(folder.name, stamp_of(folder), last))
            return [f'the {RUN} of the run "{last.name}" ({last.id}) was damaged and has been written anew']
        index.put(Entry(folder.name, stamp_of(folder), last, str(damage)))
        return []


def _described_anew(folder: Path, last: Run) -> bool:
    """Writes what the index knows into a folder whose rows are whole, the damaged description put aside."""
    try:
        check_rows(folder, last)
    except DamagedError:
        return False
    path = folder / RUN
    if path.exists():
        os.replace(path, free_name(path))
    write_run(folder, last)
    return True


def _told_apart(root: Path, index: Index, *, writable: bool) -> list[str]:
    """Lets no two runs have one name: one that was to be replaced goes, a copy made by hand is called otherwise."""
    told = []
    taken: dict[str, Run] = {}
    sound = [one.run for one in index.entries() if one.run is not None and one.damage is None]
    for run in sorted(sound, key=lambda one: (one.added, one.id)):
        other = taken.get(run.name)
        if other is not None and run.replaces == other.id:
            index.drop(other.id)
            if writable:
                replaced(root, index, other.id)
        elif other is not None:
            run = replace(run, name=f"{run.name} ({run.id[:6]})")
            if writable:
                write_run(root / RUNS / run.id, run)
            index.put(Entry(run.id, stamp_of(root / RUNS / run.id), run))
            told.append(f'two runs were called "{other.name}"; {run.id} is now "{run.name}"')
        taken[run.name] = run
    return told


def take_out(root: Path, index: Index, id_: str) -> None:
    """Removes a run: its folder leaves the others in one step, and only then is deleted."""
    aside = staging_place(root)
    with suppress(sqlite3.Error):  # first, so that nobody misses a folder whose removal was cut off
        index.drop(id_)
    move(root / RUNS / id_, aside)
    discard(aside)


def replaced(root: Path, index: Index, id_: str) -> None:
    """Removes a run that another one has replaced; where it cannot be now, as while it is read, it goes later."""
    with suppress(OSError):
        take_out(root, index, id_)


def put_in(root: Path, index: Index, staged: Path, run: Run) -> None:
    """Makes a staged folder a run, in one step."""
    settle(staged)
    target = root / RUNS / run.id
    if target.exists():  # a run that was damaged; this is its content, whole
        take_out(root, index, run.id)
    move(staged, target)
    note(root, index, run)


def describe(root: Path, index: Index, run: Run) -> None:
    """Writes down what is now known of a run, in one step."""
    write_run(root / RUNS / run.id, run)
    note(root, index, run)


def note(root: Path, index: Index, run: Run) -> None:
    """Has the index say what the folder of a run says; where it cannot, it is brought in line later."""
    with suppress(sqlite3.Error):
        index.put(Entry(run.id, stamp_of(root / RUNS / run.id), run))


def clear_left_overs(root: Path) -> None:
    """Removes what crashed writers left under staging a day ago or more."""
    with suppress(OSError):
        for entry in (root / STAGING).iterdir():
            if time.time() - entry.stat().st_mtime > LEFT_OVER:
                shutil.rmtree(entry, ignore_errors=True)
