"""Where a store lies, and what its folder holds."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

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

IDENTIFIER = re.compile(r"[0-9a-f]{16}")
"""What the folder of a run is called."""

_OURS = re.compile(r"\.?(store\.|index\.sqlite|lock\.sqlite).*|runs|staging|cache")


def usual_root() -> Path:
    """The folder named by the environment, else the one where this system keeps the data of programs."""
    named = os.environ.get(VARIABLE)
    return Path(named).expanduser() if named else _data_folder() / "demur"


def _data_folder() -> Path:
    home = Path.home()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    if sys.platform == "darwin":
        return home / "Library" / "Application Support"
    return Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")


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
    return IDENTIFIER.fullmatch(entry.name) is not None


def free_name(path: Path) -> Path:
    """A name beside a damaged file under which it can be put aside."""
    number = 1
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    return aside
