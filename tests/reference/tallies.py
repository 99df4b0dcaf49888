"""Tallies of rows in memory, counted plainly."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from demur.measures.resampling import Rows
from demur.measures.tally import UNITS, Tally


def tally_of(rows: Rows, bucket: Any = None, *, clustered: bool = True, part: str | None = None) -> Tally:
    """What an engine would count of the rows; without a `bucket` for each row they count as independent and alike."""
    aside = int((~rows.answered).sum())
    return Tally(
        system="guide",
        part=part,
        sweep=rows.sweep(),
        failed=0,
        unanswered=aside,
        out_of_scope=0,
        squares=float(np.square(np.sort(rows.weight)).sum()),
        clustered=clustered and bucket is not None,
        units=None if bucket is None else units_of(rows, bucket),
    )


def units_of(rows: Rows, bucket: Any) -> pl.DataFrame:
    """What each bucket holds at each confidence."""
    answered, right, weight = rows.answered, rows.right, rows.weight
    table = pl.DataFrame(
        {
            "bucket": bucket,
            "confidence": pl.Series(rows.confidence + 0.0).zip_with(
                pl.Series(answered), pl.Series([None], dtype=float)
            ),
            "right": np.where(answered & right, weight, 0.0),
            "wrong": np.where(answered & ~right, weight, 0.0),
            "withheld": np.where(answered, 0.0, weight),
        },
        schema_overrides=UNITS,
    )
    sums = table.group_by("bucket", "confidence").agg(pl.col("right", "wrong", "withheld").sum())
    return sums.sort("bucket", "confidence")
