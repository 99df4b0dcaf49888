"""Changes of a store's layout, by name: each is made once, in order, and may be cut off at any moment.

A migration is a function of the store's folder that can be called again after it was cut off: it makes what is not
there, and passes over what it has changed already. Only when it has returned is its name written into `store.json`, in
one step; until then the next opening calls it again. A new store is an empty folder to which all are applied.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from demur import __version__
from demur.errors import UsageError
from demur.store.durable import write_durably
from demur.store.places import CACHE, ELSEWHERE, RUN, RUNS, STAGING, STORE, free_name

Document = dict[str, Any]


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
    """Applies what a store still lacks, and gives what is to be told; refuses one that a newer version has changed."""
    path = root / STORE
    applied, told = _applied(path)
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
            write_durably(path, _encoded(applied))
    return told


def _applied(path: Path) -> tuple[list[str], list[str]]:
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return [], []
    try:
        return list(msgspec.convert(msgspec.json.decode(text)["migrations"], list[str])), []
    except (msgspec.MsgspecError, LookupError, TypeError, UnicodeDecodeError):
        aside = free_name(path)
        os.replace(path, aside)
        return [], [f"{STORE} was damaged and has been written anew; the old one is {aside.name}"]


def _encoded(applied: list[str]) -> bytes:
    document = {"store": "demur", "layout": len(applied), "migrations": applied}
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def rewrite_runs(root: Path, layout: int, change: Callable[[Document], Document]) -> None:
    """Changes the `run.json` of every run below a layout, each in one step; those that have it already stay.

    One that cannot be read stays too: opening the store tells of it.
    """
    for path in sorted((root / RUNS).glob(f"*/{RUN}")):
        try:
            document = msgspec.json.decode(path.read_bytes(), type=Document)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue
        if document.get("layout", 0) < layout:
            changed = {**change(document), "layout": layout}
            write_durably(path, msgspec.json.format(msgspec.json.encode(changed), indent=2) + b"\n")
