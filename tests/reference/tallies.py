"""Tallies of rows in memory, counted plainly."""

from __future__ import annotations

from hashlib import md5
from typing import Any

import numpy as np
import polars as pl

from demur.core.stats.resampling import Rows
from demur.returns.tally import UNITS, Tally


def hashed(text: str) -> tuple[int, int]:
    """The bucket of a dialogue, and the number that tells how many dialogues share its bucket."""
    digits = md5(text.encode()).hexdigest()
    return int(digits[:4], 16) % 1024, int(digits[4:12], 16)


def tally_of(
    rows: Rows, bucket: Any = None, *, least: Any = None, clustered: bool = True, part: str | None = None
) -> Tally:
    """What an engine would count of the rows; without a `bucket` for each row they count as independent and alike.

    Without the number `least` of each row's dialogue, a bucket is a dialogue that is named after it.
    """
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
        units=None if bucket is None else units_of(rows, bucket, least),
    )


def units_of(rows: Rows, bucket: Any, least: Any = None) -> pl.DataFrame:
    """What each bucket holds at each confidence, and the least number of its dialogues."""
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
            "least": [None if one is None else hashed(str(one))[1] for one in bucket] if least is None else least,
        },
        schema_overrides=UNITS,
    )
    table = table.with_columns(pl.col("least").min().over("bucket"))
    sums = table.group_by("bucket", "confidence").agg(pl.col("right", "wrong", "withheld").sum(), pl.first("least"))
    return sums.sort("bucket", "confidence")
