"""Columns of any table as the rows of a regression: numbers checked, candidates found, groups numbered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.data.cells import as_text
from demur.data.columns import nearest
from demur.errors import DataError, UsageError

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class TableRows:
    """What is to be explained, by what, and which rows belong together."""

    names: tuple[str, ...]
    x: Array
    y: Array
    groups: NDArray[np.int64] | None


def table_rows(
    frame: pl.DataFrame, *, outcome: str, candidates: Sequence[str] | None = None, group: str | None = None
) -> TableRows:
    """The rows of a table; without candidates all other columns of numbers are such.

    >>> table = pl.DataFrame({"gain": [0.1, 0.4], "turns": ["7", "5"], "happy": ["yes", "no"], "who": ["ann", "bob"]})
    >>> table_rows(table, outcome="gain").names
    ('turns', 'happy')
    """
    for name in (outcome, *([group] if group else [])):
        if name not in frame.columns:
            raise UsageError(f'there is no column "{name}"; {nearest(name, frame.columns)}')
    names = _found(frame, outcome, group) if candidates is None else _asked(frame, outcome, candidates)
    x = np.stack([_numbers(frame, name) for name in names], axis=1)
    y = _numbers(frame, outcome)
    if y.size < 2:
        raise DataError("a regression needs at least two rows", got=int(y.size))
    if np.ptp(y) == 0:
        raise DataError(f"{outcome} is the same in every row, so there is nothing to explain", got=float(y[0]))
    return TableRows(names, x, y, None if group is None else _groups(frame, group))


def _asked(frame: pl.DataFrame, outcome: str, candidates: Sequence[str]) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(candidates))
    for name in names:
        if name not in frame.columns:
            raise UsageError(f'candidates: there is no column "{name}"; {nearest(name, frame.columns)}')
        if name == outcome:
            raise UsageError(f"candidates: {name} is the outcome itself")
    if not names:
        raise UsageError("candidates are names of columns; got none")
    return names


def _found(frame: pl.DataFrame, outcome: str, group: str | None) -> tuple[str, ...]:
    others = (name for name in frame.columns if name not in (outcome, group))
    names = tuple(name for name in others if _cast(frame[name]).null_count() == frame[name].null_count() < frame.height)
    if not names:
        raise DataError("no other column holds numbers, so there is nothing to explain the outcome by")
    return names


def _numbers(frame: pl.DataFrame, name: str) -> Any:
    numbers = _cast(frame[name])
    bad = numbers.is_null() | ~numbers.is_finite()
    if bad.any():
        place = bad.arg_max() or 0
        fix = "leave the column out of the candidates, or fill the gaps"
        where = f"row {place + 1}: {name}"
        raise DataError("must be a number in every row", where=where, got=str(frame[name][place]), fix=fix)
    return numbers.to_numpy()


def _cast(column: pl.Series) -> pl.Series:
    """Numbers, and 1 and 0 for yes and no, as in a table of dialogues; null for anything else."""
    if column.dtype.is_numeric() or column.dtype == pl.Boolean:
        return column.cast(pl.Float64)
    if column.dtype != pl.String:
        return pl.Series(column.name, [None] * len(column), pl.Float64)
    words = column.str.strip_chars().str.to_lowercase()
    return words.replace({"true": "1", "yes": "1", "false": "0", "no": "0"}).cast(pl.Float64, strict=False)


def _groups(frame: pl.DataFrame, group: str) -> NDArray[np.int64]:
    """A number for each group; a row of none is a group of its own."""
    names = as_text(frame[group])
    alone = (f"\0{place}" for place in range(len(names)))
    named = [own if one is None else one for one, own in zip(names, alone, strict=True)]
    return np.unique(np.array(named), return_inverse=True)[1].astype(np.int64)
