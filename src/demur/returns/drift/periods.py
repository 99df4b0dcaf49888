"""One log as an old and a new one: by a column of dates or periods, and whether errors depend on the place of a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from demur.core.io.columns import JUDGED
from demur.core.show.numbers import ROWS, p_value, percent
from demur.errors import DataError, UsageError
from demur.returns.drift.changes import Log, TwoLogs
from demur.returns.table import Reading, Responses, one_system, read_data

TIMES = ("date", "datetime", "time", "timestamp", "created_at", "period", "year", "month", "week", "day")
"""Columns that say when an input came."""

LEAST = 50
"""Rows of either half from which a report asks whether they differ, and a note looks at the order of rows."""

STRICT = 0.001
"""P-value below which errors are said to depend on the place of a row: nobody asked, so alarms must be rare."""

NOTABLE = 0.05
"""Difference of error rates between the halves of a file from which it is worth a note."""

_DATED = r"^\d{4}(-\d{1,2})?(-\d{1,2})?([T ].*)?$"


@dataclass(frozen=True, slots=True)
class OldAndNew:
    """Two logs, and what is to know of how they were read."""

    old: Log
    new: Log
    notes: tuple[str, ...]
    warnings: tuple[str, ...]


def read_logs(
    old: Any, new: Any, reading: Reading, *, by: str | None, split: str | None, system: str | None
) -> OldAndNew:
    """Two logs, or one that a column splits; each of the one system there is, or of the one named."""
    if (new is None) == (by is None):
        raise UsageError("give an old and a new log, or one log and the column that splits it (`by`)")
    if split is not None and by is None:
        raise UsageError("`split` goes with `by`: it is the first value of that column that is new")
    both = [one_system(read_data((data,), reading), system, what="drift") for data in (old, new) if data is not None]
    reading_notes, warnings = ([getattr(one, kind) for one in both] for kind in ("notes", "warnings"))
    if by is not None:
        one, two, notes = split_log(both[0], by, split)
        return OldAndNew(one, two, (*notes, *reading_notes[0]), warnings[0])
    names = [part.systems[0] for part in both]
    names = (
        [f"{name} ({side})" for name, side in zip(names, ("old", "new"), strict=True)]
        if len(set(names)) == 1
        else names
    )
    one, two = (Log.of(name, part.frame, judged=part.judged) for name, part in zip(names, both, strict=True))
    notes = (*_shared_ids(*both), *_of_each(names, reading_notes))
    return OldAndNew(one, two, notes, _of_each(names, warnings))


def _of_each(names: Sequence[str], lines: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """What was said of both logs once, and what was said of one with its name."""
    common = [line for line in lines[0] if line in lines[1]]
    own = [f"{name}: {line}" for name, part in zip(names, lines, strict=True) for line in part if line not in common]
    return (*common, *own)


def _shared_ids(old: Responses, new: Responses) -> tuple[str, ...]:
    """Says how many ids are in both logs: the same inputs may be compared in pairs."""
    ids = [part.frame["id"].drop_nulls() for part in (old, new)]
    shared = int(ids[0].is_in(ids[1].implode()).sum())
    if not shared:
        return ()
    return (
        f"{shared:,} of {len(old):,} ids of the old log are in the new one; if they are the same inputs, compare pairs "
        "them and shows more",
    )


def split_log(judged: Responses, by: str, split: str | None = None) -> tuple[Log, Log, tuple[str, ...]]:
    """The rows before a value of a column, and those from it on; without a value, the first and the last half.

    Values are compared as numbers where all are, otherwise as texts, which puts dates such as 2026-01-31 in order. Rows
    of one value stay together, so halves need not be equal.
    """
    values = judged.frame[by]
    kept = judged.frame.filter(values.is_not_null())
    left = judged.frame.height - kept.height
    order = _sortable(kept[by])
    middle = _middle(order, by) if split is None else _sortable(pl.Series([split])).cast(order.dtype, strict=False)[0]
    if middle is None:
        raise DataError(f'"{by}" holds numbers, so `split` must be one', got=split)
    late = order >= middle
    sides = []
    for part, word in ((kept.filter(~late), "before"), (kept.filter(late), "from")):
        if part.is_empty():
            raise DataError(f'no row is {word} "{split}" in "{by}"', fix=f"it holds {_span(order)}")
        sides.append(Log.of(f"{by} {_span(_sortable(part[by]))}", part, judged=judged.judged))
    notes = [f"{log.name}: {ROWS.with_count(log.frame.height)}" for log in sides]
    notes += [f"{ROWS.with_count(left)} without {by} left out"] if left else []
    return sides[0], sides[1], tuple(notes)


def _sortable(values: pl.Series) -> pl.Series:
    numbers = values.cast(pl.Float64, strict=False)
    return values.cast(pl.String) if numbers.null_count() else numbers


def _middle(order: pl.Series, by: str) -> object:
    """The value at which the second part starts, so that both are as equal as they can be."""
    counts = order.value_counts().sort(order.name)
    if counts.height < 2:
        raise DataError(f'"{by}" has one value, so there is nothing to compare', got=order[0] if len(order) else "none")
    before = np.cumsum(counts["count"].to_numpy())[:-1]
    return counts[order.name][int(np.argmin(np.abs(2 * before - len(order)))) + 1]


def _span(values: pl.Series) -> str:
    ends = [f"{end:g}" if isinstance(end, float) else str(end) for end in (values.min(), values.max())]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def time_column(frame: pl.DataFrame) -> str | None:
    """The column that says when an input came, if there is one with two periods or more that can be put in order."""
    for name in (column for time in TIMES for column in frame.columns if column.casefold() == time):
        values = frame[name].drop_nulls() if name not in JUDGED else pl.Series([], dtype=pl.String)
        if values.n_unique() > 1 and not values.dtype.is_nested():
            texts = values.cast(pl.String)
            if _sortable(texts).dtype == pl.Float64 or texts.str.contains(_DATED).all():
                return name
    return None


def halves_by_time(judged: Responses) -> tuple[Log, Log, tuple[str, ...]] | None:
    """The first and the last half of a log by time; None where no column tells the time, or a half is too small."""
    column = time_column(judged.frame)
    if column is None:
        return None
    old, new, notes = split_log(judged, column)
    return None if min(log.rows.units for log in (old, new)) < LEAST else (old, new, notes)


def order_notes(judged: Responses) -> tuple[str, ...]:
    """Says of each system whose errors depend on the place of a row in the file how many there are in either half."""
    several = len(judged.systems) > 1
    found = []
    for system in judged.systems if judged.judged else ():
        frame = judged.of(system).frame
        if frame.height >= 2 * LEAST and (note := _order_note(frame)) is not None:
            found.append(f"{system}: {note}" if several else note)
    return tuple(found)


def _order_note(frame: pl.DataFrame) -> str | None:
    half = frame.height // 2
    parts = frame[:half], frame[half:]
    wrong = pl.col("answered") & ~pl.col("right")
    first, second = (part.select((wrong * pl.col("weight")).sum() / pl.col("weight").sum()).item() for part in parts)
    if not abs(second - first) >= NOTABLE:  # a glance, as most logs are in no order, and a test takes longer
        return None
    halves = [Log.of("half", part, judged=True) for part in parts]
    if min(log.rows.units for log in halves) < LEAST:
        return None
    change = TwoLogs(*halves).rate("error", lambda log: log.errors)
    p = 1.0 if change.test is None else change.test.tested(0.95, 1).p
    if not p < STRICT:
        return None
    return (
        f"errors are not spread evenly over the file: {percent(change.old)} in the first half, "
        f"{percent(change.new)} in the second ({p_value(p)}); a threshold chosen on one part need not hold on another"
    )
