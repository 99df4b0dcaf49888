"""The same inputs in two runs: where the row of one run stands in the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.data.lines import exactly
from demur.data.tables import ROW
from demur.errors import DataError
from demur.store.rows import Mask, RunRows

Places = NDArray[np.int32]

NAMELESS = np.uint64(0)
"""Stands for the hash of an id where there is none."""

PAIRS_AT_HAND = 4
"""Pairs of runs whose common rows stay in memory; of a million rows each takes 8 MB."""


@dataclass(frozen=True, slots=True, eq=False)
class Alongside:
    """Places of the other run's file at which the inputs of one run stand; -1 where it has no such input."""

    by_place: Places
    """In the order of the one run's file."""
    by_row: Places
    """By the number of the row in the table that it came from."""

    def errs(self, other: RunRows, threshold: float | None) -> tuple[Mask, Mask]:
        """Of every row of the one run, whether the other run errs on its input, and whether it has it at all."""
        known = self.by_place >= 0
        return known & other.mask("wrong", threshold)[self.by_place], known

    def rows(self, other: RunRows, numbers: Sequence[int]) -> list[dict[str, Any] | None]:
        """What the other run has to the inputs of these rows."""
        places = self.by_row[np.asarray(numbers, dtype=np.int64)].astype(np.int64)
        found = iter(other.at(places[places >= 0]))
        return [next(found) if place >= 0 else None for place in places]


def alongside(one: RunRows, other: RunRows) -> Alongside:
    """Two runs side by side, by the ids of their inputs."""
    found = _alongside(exactly(one.path), exactly(other.path))
    if not (found.by_place >= 0).any():
        rule = f'"{one.run.name}" and "{other.run.name}" have no id in common'
        raise DataError(rule, fix="answers can be shown side by side only where both runs name the same inputs")
    return found


@lru_cache(maxsize=PAIRS_AT_HAND)
def _alongside(one: str, other: str) -> Alongside:
    """Files of runs never change, so their names stand for them.

    Ids are matched by their hashes, in a fraction of the time and room; two of a million ids that share one of 64 bits
    would be a wonder, and rows are shown with their ids.
    """
    (rows, own), (_, there) = _hashed(one), _hashed(other)
    ours, theirs = np.argsort(own), np.argsort(there)
    found = np.searchsorted(there[theirs], own[ours])
    found[found == there.size] = 0
    same = there[theirs][found] == own[ours]
    by_place = np.full(own.size, -1, dtype=np.int32)
    by_place[ours[same]] = theirs[found[same]]
    by_place[own == NAMELESS] = -1
    by_row = np.empty_like(by_place)
    by_row[rows] = by_place
    return Alongside(by_place, by_row)


def _hashed(path: str) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
    """The number of each row in the table it came from, and the hash of its id."""
    hashed = pl.when(pl.col("id").is_null()).then(pl.lit(int(NAMELESS), dtype=pl.UInt64)).otherwise(pl.col("id").hash())
    found = pl.scan_parquet(path).select(ROW, hashed.alias("id")).collect()
    return found[ROW].to_numpy(), found["id"].to_numpy()
