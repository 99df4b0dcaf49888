"""Slices of systems that an engine counted, against the rest: from tallies by the values of a column."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial, reduce
from operator import add

import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.arrays import Array
from demur.core.stats.resampling import Rows
from demur.core.stats.sweep import Sweep
from demur.returns.drift.changes import bucket_rows
from demur.returns.measures import area_from
from demur.returns.slices import (
    AREA_LEVELS,
    FEWEST,
    LEAST,
    LEAST_ERRORS,
    MOST,
    CountedSlice,
    SliceDifferences,
    WeighedSlice,
    What,
    WholeSystem,
    compare_slices,
    floor_of,
)
from demur.returns.tally import Tally, TallySource, total

Parts = Mapping[str, Tally]
"""The tallies of a system by the values of a column."""

SLICE = "demur:slice"
"""The column that holds the slice of a row that stands for what a bucket holds."""


def is_worth_slicing(systems: Sequence[Parts]) -> bool:
    """Whether a column is worth slicing by, as `slice_columns` chooses among those of rows in memory.

    It has 2 to 20 values, two of them with 30 inputs, and does not say outright whether answers are right.
    """
    values: dict[str, Tally] = {}
    for parts in systems:
        for name, part in parts.items():
            values[name] = values[name] + part if name in values else part
    if not FEWEST <= len(values) <= MOST or sum(one.n >= LEAST for one in values.values()) < FEWEST:
        return False
    large = [[part for part in parts.values() if part.n >= LEAST] for parts in systems]
    if max(map(len, large)) < FEWEST or not any(_is_mixed(part) for parts in large for part in parts):
        return False
    if sum(one.n >= LEAST_ERRORS for one in values.values()) < FEWEST:
        return True
    answered = [one for one in values.values() if one.n - one.unanswered >= LEAST_ERRORS]
    return {_share_right(one) for one in answered} != {0.0, 1.0}


def _is_mixed(tally: Tally) -> bool:
    right = float(tally.sweep.right.sum())
    return 0 < right < float(tally.sweep.total)


def _share_right(tally: Tally) -> float:
    right = float(tally.sweep.right.sum())
    return right / (right + float(tally.sweep.errors))


def counted_slice_differences(
    systems: Mapping[str, Mapping[str, Parts]],
    thresholds: Mapping[str, float],
    columns: Sequence[str],
    *,
    level: float,
) -> SliceDifferences:
    """Each slice of each system against the rest, from its tallies by column and value.

    Where rows are independent and count alike all numbers are those of rows in memory. Otherwise rates and areas are,
    and standard errors are taken by bucket of dialogues.
    """
    cuts: list[tuple[WholeSystem, str]] = [
        (SlicedTallies(name, pl.DataFrame(), thresholds[name], by_column[column]), column)
        for name, by_column in systems.items()
        for column in columns
    ]
    return compare_slices(cuts, thresholds, level=level, least=LEAST)


@dataclass(frozen=True, eq=False)
class SlicedTallies(WholeSystem):
    """All rows of a system as an engine counted them by the values of one column."""

    parts: Parts = field(default_factory=dict)

    @cached_property
    def tally(self) -> Tally:
        """All of them."""
        return total(list(self.parts.values()))

    @cached_property
    def n(self) -> int:
        """How many rows there are."""
        return self.tally.n

    @cached_property
    def alike(self) -> bool:
        """Whether rows are independent and count alike."""
        return TallySource(self.tally).alike

    @cached_property
    def sweep(self) -> Sweep:
        """The sweep of all rows, at levels that all slices share."""
        return self.tally.sweep.coarsened(AREA_LEVELS)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Rows in each cell."""
        return self.cells_of(self.tally.sweep).astype(np.int64)

    @cached_property
    def marked(self) -> dict[What, int]:
        """How many rows each rate counts; of weighted rows, about how many."""
        weight = float(self.tally.sweep.total)
        return {what: round(share * self.n / weight) for what, share in self.events_in(self.tally.sweep).items()}

    @cached_property
    def frame_of_buckets(self) -> pl.DataFrame:
        """A row for each confidence of each bucket and slice."""
        units = {name: part.units for name, part in self.parts.items()}
        return pl.concat(
            [bucket_rows(one).with_columns(pl.lit(name).alias(SLICE)) for name, one in units.items() if one is not None]
        )

    @cached_property
    def rows(self) -> Rows:
        """What buckets hold as rows, each of which stands for several."""
        return Rows.from_frame(self.frame_of_buckets)

    @cached_property
    def times(self) -> Array | None:
        """How many inputs each row stands for."""
        weight = self.rows.weight
        return np.asarray(weight * (self.n / weight.sum()))

    def events_in(self, sweep: Sweep) -> dict[What, float]:
        """The weight of returned errors and of inputs that are not returned, in a sweep."""
        returned = sweep.threshold >= self.threshold  # nothing is at least NaN
        wrong = float(sweep.wrong[returned].sum())
        return {"error": wrong, "nonreturn": float(sweep.total - sweep.right[returned].sum()) - wrong}

    def cells_of(self, sweep: Sweep) -> Array:
        """The weights of a sweep in the cells of all rows."""
        levels = self.sweep.threshold
        level = np.maximum(np.searchsorted(levels, sweep.threshold, side="right") - 1, 0)
        sums = [np.bincount(level, weights=one, minlength=levels.size) for one in (sweep.right, sweep.wrong)]
        return np.concatenate([*sums, [sweep.withheld]])

    def out_of_scope(self, column: str) -> dict[str, int]:
        """The values that only inputs out of scope have, with their rows; none where all are of the kind."""
        gone = {name: part.n for name, part in sorted(self.parts.items()) if part.out_of_scope == part.n}
        return gone if len(gone) < len(self.parts) else {}

    def without(self, column: str, values: Collection[str]) -> WholeSystem:
        """The rows that have none of these values."""
        kept = {name: part for name, part in self.parts.items() if name not in values}
        return SlicedTallies(self.system, self.frame, self.threshold, kept)

    def slices(self, column: str) -> dict[str, tuple[int, Callable[[], CountedSlice]]]:
        """The slices in order of their values."""
        kind = SliceOfTally if self.alike else SliceOfBuckets
        return {name: (part.n, partial(kind, self, name)) for name, part in sorted(self.parts.items())}


class SliceOfTally(CountedSlice):
    """A slice of rows that are independent and count alike, by its tally."""

    whole: SlicedTallies

    def __init__(self, whole: SlicedTallies, name: str) -> None:
        super().__init__(whole, whole.parts[name].n)
        self.sweep = whole.parts[name].sweep

    def hits(self, what: What) -> int:
        """How many rows of the slice a rate counts."""
        return round(self.whole.events_in(self.sweep)[what])

    def in_cells(self) -> NDArray[np.int64]:
        """Rows of the slice in each cell."""
        return self.whole.cells_of(self.sweep).astype(np.int64)


class SliceOfBuckets(WeighedSlice):
    """A slice of weighted rows or of dialogues: rates and areas by its tally, standard errors by bucket."""

    whole: SlicedTallies

    def __init__(self, whole: SlicedTallies, name: str) -> None:
        super().__init__(whole, (whole.frame_of_buckets[SLICE] == name).arg_true().to_numpy().astype(np.int64))
        others = [part.sweep for other, part in whole.parts.items() if other != name]
        self.n, self.rest = whole.parts[name].n, whole.n - whole.parts[name].n
        self.sides = whole.parts[name].sweep, reduce(add, others)

    def rates(self, what: What) -> tuple[float, float]:
        """A rate on the slice and on the rest."""
        mine, other = (self.whole.events_in(one)[what] / float(one.total) for one in self.sides)
        return mine, other

    def areas(self) -> tuple[float, float]:
        """The area under the curve of the slice and of the rest, each from its own start."""
        parts = (self.whole.part(self.whole.cells_of(one), one.n) for one in self.sides)
        mine, other = (area_from(part, floor_of(part)) for part in parts)
        return mine, other
