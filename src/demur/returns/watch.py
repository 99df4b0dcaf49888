"""A lake that grows by days: each day is counted once, kept as a `.sweep` file, and added up for any range of days."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from hashlib import sha256
from pathlib import Path

from demur.core.engines.scanning import lake_files
from demur.core.io.sources import is_remote
from demur.core.io.writing import write_whole
from demur.core.show.results import Step, path_text, silent
from demur.errors import DataError, UsageError
from demur.returns.counting import Counting, count
from demur.returns.options import Period
from demur.returns.sweep_files import SweepFile, merged, read_sweeps
from demur.returns.table import Reading

INDEX = "parts.json"
"""The file that says, for each period that is kept, what its files were when they were counted."""

_DAY = re.compile(r"(?<!\d)\d{4}-\d{2}-\d{2}(?!\d)")
_LENGTHS: Mapping[Period, int] = {"1d": len("2026-01-01"), "1mo": len("2026-01")}


@dataclass(frozen=True, slots=True)
class WatchedLake:
    """The periods of a range, added up; which of them there are, and which were counted just now."""

    whole: SweepFile
    periods: tuple[str, ...]
    counted: tuple[str, ...]

    @property
    def note(self) -> str:
        """What was added up, and what was read for it."""
        ends = self.periods[0] if len(self.periods) == 1 else f"{self.periods[0]} to {self.periods[-1]}"
        fresh = f"{len(self.counted):,} counted now, the others as kept"
        return f"{len(self.periods):,} parts, {ends}: {fresh if self.counted else 'all as kept'}"


def watch_lake(
    sources: Sequence[str | Path],
    folder: Path,
    reading: Reading,
    how: Counting,
    *,
    every: Period = "1d",
    since: str | None = None,
    until: str | None = None,
    step: Step = silent,
) -> WatchedLake:
    """Counts the periods that are new or whose files have changed, keeps them in `folder`, and adds up a range."""
    first, last = (None if one is None else _check_day(one) for one in (since, until))
    files, how = periods_of(sources, every), replace(how, unnamed=_lake_name(sources))
    index = _read_index(folder)
    fresh = []
    for done, (period, paths) in enumerate(files.items()):
        state = _state(paths)
        if index.get(period) == state and _sweep_path(folder, period).exists():
            continue
        step(f"counting {period}", done, len(files))
        found = count([path_text(path) for path in paths], reading, how)
        assert found is not None
        folder.mkdir(parents=True, exist_ok=True)
        found.write(_sweep_path(folder, period))
        index[period] = state
        write_whole(folder / INDEX, json.dumps(index, indent=1, sort_keys=True).encode())
        fresh.append(period)
    chosen = [one for one in sorted(index) if (not first or one >= first[: len(one)]) and (not last or one <= last)]
    if not chosen:
        raise DataError(f"no part from {since or 'the first'} to {until or 'the last'}", where=str(folder))
    sweeps = read_sweeps(*(_sweep_path(folder, period) for period in chosen), step=step)
    return WatchedLake(merged(sweeps, system=how.name), tuple(chosen), tuple(one for one in fresh if one in chosen))


def periods_of(sources: Sequence[str | Path], every: Period = "1d") -> dict[str, list[Path]]:
    """The files of each period in order of time, by the date in the name of a file or of a folder above it."""
    if any(is_remote(source) for source in sources):
        raise UsageError("`watch` reads files on this machine; count a URL day by day with score and -o DAY.sweep")
    found: dict[str, list[Path]] = {}
    for path, root in lake_files(sources):
        day = _DAY.search(str(path.relative_to(root)))
        if day is None:
            fix = "put it in a folder such as date=2026-01-31, or put the date into its name"
            raise DataError("has no date in its name or in that of a folder", where=str(path), fix=fix)
        found.setdefault(_check_day(day[0])[: _LENGTHS[every]], []).append(path)
    return dict(sorted(found.items()))


def _check_day(day: str) -> str:
    try:
        return date.fromisoformat(day).isoformat()
    except ValueError:
        raise DataError("a day is written as 2026-01-31", got=day) from None


def _sweep_path(folder: Path, period: str) -> Path:
    return folder / f"{period}.sweep"


def _state(paths: Sequence[Path]) -> str:
    """A digest of the names, sizes and times of files."""
    states = [(path_text(path), path.stat().st_size, path.stat().st_mtime_ns) for path in paths]
    return sha256(json.dumps(states).encode()).hexdigest()


def _read_index(folder: Path) -> dict[str, str]:
    path = folder / INDEX
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise DataError("is not what watch writes", where=str(path), fix="remove the folder to count all days again")
    return found


def _lake_name(sources: Sequence[str | Path]) -> str:
    """The name of the folder that is watched."""
    first = Path(sources[0])
    return path_text(Path(*(part for part in first.parts if "*" not in part)).name) or "log"
