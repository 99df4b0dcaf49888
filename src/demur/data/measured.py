"""Which two columns of a table of trials were measured, where nobody says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from demur.data.columns import TRIAL_ALIASES
from demur.data.files import read_table
from demur.data.frames import table_of
from demur.data.sources import Source
from demur.data.tables import ROW, Request
from demur.errors import UsageError

_PLAYED = {name for part, others in TRIAL_ALIASES.items() for name in (part, *others)}


def measured_columns(tables: Sequence[Any], x: str | None, y: str | None) -> tuple[str, str, list[str]]:
    """What makes it harder and how well it went, with a note of what was guessed.

    The performance is the only column of 0 and 1 (or, beside a column n, of shares), what makes it harder the only
    other column of numbers. Where there are several of either, nothing is guessed.

    >>> rows = {"performer": ["wizard", "A"], "wer": [0.1, 0.35], "completed": [1, 0]}
    >>> measured_columns([rows], None, None)
    ('wer', 'completed', ['x <- wer, y <- completed: the only columns they could be'])
    """
    if x is not None and y is not None:
        return x, y, []
    frame = pl.concat([_frame(table) for table in tables], how="diagonal_relaxed")
    numbers = {name: _numbers(frame[name]) for name in frame.columns if name.casefold() not in _PLAYED}
    known = {name: column for name, column in numbers.items() if column is not None and name not in (x, y)}
    shares = "n" in frame.columns
    ends = [name for name, column in known.items() if _is_success(column, shares=shares)]
    others = [name for name in known if name not in ends]
    found_y = [y] if y is not None else ends if x is None or len(ends) == 1 else list(known)
    found_x = [x] if x is not None else others if y is None or len(others) == 1 else list(known)
    if len(found_x) != 1 or len(found_y) != 1:
        raise UsageError(
            "trials need --x, what makes it harder, and --y, how well it went; columns of numbers here: "
            f"{', '.join(known) or 'none'}"
        )
    return found_x[0], found_y[0], [f"x <- {found_x[0]}, y <- {found_y[0]}: the only columns they could be"]


def _frame(table: Any) -> pl.DataFrame:
    return read_table(table) if isinstance(table, str | Path | Source) else table_of(table, Request()).frame.drop(ROW)


def _numbers(column: pl.Series) -> pl.Series | None:
    """A column as numbers, or nothing where some cell is none."""
    if column.dtype == pl.Boolean or column.dtype.is_numeric():
        return column.cast(pl.Float64).drop_nulls()
    if column.dtype != pl.String:
        return None
    words = column.str.to_lowercase().replace({"true": "1", "yes": "1", "false": "0", "no": "0"})
    found = words.str.strip_chars().cast(pl.Float64, strict=False)
    return None if (found.is_null() & column.is_not_null()).any() else found.drop_nulls()


def _is_success(column: pl.Series, *, shares: bool) -> bool:
    return not column.is_empty() and bool(column.is_between(0, 1).all() if shares else column.is_in([0.0, 1.0]).all())
