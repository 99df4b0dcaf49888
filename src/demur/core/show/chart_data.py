"""Tables that become charts: their columns checked, their numbers put in words."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl

from demur.core.show.numbers import percent
from demur.errors import UsageError


def tidy(rows: pl.DataFrame, kinds: dict[str, Any], numbers: Sequence[str]) -> pl.DataFrame:
    """The columns that a figure draws, numbers as floats, with NaN for what is not there."""
    wanted = [*kinds, *numbers]
    lacking = [name for name in wanted if name not in rows.columns]
    if lacking:
        raise UsageError(f'the figure needs a column "{lacking[0]}"; there are: {", ".join(rows.columns)}')
    if rows.is_empty():
        raise UsageError("a figure needs at least one row; got none")
    return rows.select(
        *(pl.col(name).cast(kind) for name, kind in kinds.items()),
        *(pl.col(name).cast(pl.Float64).fill_null(math.nan) for name in numbers),
    )


def refuse_repeats(table: pl.DataFrame, *columns: str) -> None:
    """Refuse two rows about the same thing."""
    twice = table.filter(pl.struct(columns).is_duplicated())
    if twice.height:
        raise UsageError(f'"{" / ".join(map(str, twice.select(columns).row(0)))}" is there twice; one row each')


def check_better(table: pl.DataFrame) -> None:
    """Refuse a direction that is none."""
    other = table.filter(~pl.col("better").is_in(["lower", "higher"]))
    if other.height:
        raise UsageError(f'better is "lower" or "higher"; got "{other["better"][0]}"')


def extent(table: pl.DataFrame, columns: Sequence[str], *, air: float = 0.0) -> tuple[float, float]:
    """Least and greatest number of some columns, with air around; 0 to 1 where there are none."""
    values = table.select(columns).to_numpy()
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    room = air * (high - low) or (0.0 if high > low else 0.5 * abs(high) or 0.5)
    return low - room, high + room


def with_interval(value: float, low: float, high: float, *, plus: bool = False) -> str:
    """A number and the ends of its interval, where it has one; with `plus` the sign is always there.

    >>> with_interval(1.2345, 1.1, 1.3), with_interval(0.5, math.nan, math.nan, plus=True)
    ('1.23 (1.1 to 1.3)', '+0.5')
    """
    write: Callable[[float], str] = signed if plus else short
    return write(value) if math.isnan(low) or math.isnan(high) else f"{write(value)} ({write(low)} to {write(high)})"


def short(value: float) -> str:
    """A number in three digits.

    >>> short(-1.23456), short(math.nan)
    ('−1.23', 'undefined')
    """
    return "undefined" if math.isnan(value) else f"{value:.3g}".replace("-", "−")


def signed(value: float) -> str:
    """A number in three digits with its sign.

    >>> signed(0.5), signed(-0.5), signed(0.0)
    ('+0.5', '−0.5', '0')
    """
    return f"+{short(value)}" if value > 0 else short(value + 0.0)


def aligned(values: Sequence[float]) -> list[str]:
    """Numbers with as many decimals as give the greatest of them three digits, but at least as whole numbers.

    >>> aligned([1.2, 0.03456, math.nan]), aligned([22.31, 120.0])
    (['1.20', '0.03', 'undefined'], ['22', '120'])
    """
    greatest = max((abs(value) for value in values if math.isfinite(value)), default=1.0)
    decimals = min(max(2 - math.floor(math.log10(greatest or 1.0)), 0), 6)
    return ["undefined" if math.isnan(value) else f"{value:.{decimals}f}".replace("-", "−") for value in values]


def in_percent(rows: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """The rows with those for which the column `percent` holds, if there is one, in percent and named so."""
    if "percent" not in rows.columns:
        return rows
    rate = pl.col("percent").fill_null(value=False)
    return rows.with_columns(
        pl.when(rate).then(pl.col("measure") + ", %").otherwise("measure").alias("measure"),
        *(pl.when(rate).then(100 * pl.col(name)).otherwise(name).alias(name) for name in columns),
    )


def interval_words(table: pl.DataFrame, mark: str, level: float) -> list[str]:
    """What the intervals in a figure are, or that there are none."""
    return [f"{mark}: {percent(level)} intervals"] if table["low"].is_finite().any() else ["no intervals"]


def renamed(labels: dict[str, str]) -> str:
    """An expression of Vega that gives each name its short form."""
    cases = [
        f"datum.label === {json.dumps(name)} ? {json.dumps(cut)} : " for name, cut in labels.items() if name != cut
    ]
    return f"{''.join(cases)}datum.label"
