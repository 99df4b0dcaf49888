"""The totals of one system, or of one slice of it: all that is ever needed of its rows, and small.

A tally adds up over parts of a log, and it is the same whether rows in memory, DuckDB, Spark or a running log gave it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from math import sqrt
from operator import add

import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.data.engines import BUCKETS, NUMBERS
from demur.errors import DataError
from demur.measures.base import TermMeasure
from demur.measures.calibration import cell_totals
from demur.measures.grids import Grid
from demur.measures.registry import term_measures
from demur.measures.sweep import Floats, Sweep

UNIT_LEVELS = 1024
"""Distinct confidences kept per bucket; where there are more, close ones are joined. It moves intervals, not values."""

UNITS = {
    "bucket": pl.Int32,
    "confidence": pl.Float64,
    "right": pl.Float64,
    "wrong": pl.Float64,
    "withheld": pl.Float64,
    "least": pl.Int64,
}
"""The columns of a table of units: what each bucket holds at each level of confidence (null: without an answer).

`least` is the bucket's own, the same in all of its rows: the least of the numbers that its dialogues are hashed into.
"""


@dataclass(frozen=True, eq=False)
class Tally:
    """The sweep of a system's answers with what else is counted of its rows.

    `units` says what each bucket of dialogues holds at each level of confidence; None where rows are independent and
    count alike, so that the sweep alone tells all. `squares` is the sum of squared weights. `terms` are the exact
    totals of the measures that are sums over rows, by their key, where the sweep joins confidences.
    """

    system: str
    part: str | None
    """The slice, as `column=value`; None for all rows."""
    sweep: Sweep
    failed: int
    unanswered: int
    out_of_scope: int
    squares: float
    clustered: bool = False
    """Whether rows come in dialogues."""
    units: pl.DataFrame | None = None
    terms: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """How many rows there are."""
        return self.sweep.n

    @property
    def withheld(self) -> int:
        """Rows that the system withheld by itself."""
        return self.unanswered - self.failed

    @property
    def effective_n(self) -> float:
        """Kish's number of equally weighted rows that would tell as much."""
        return float(self.sweep.total**2 / self.squares)

    @cached_property
    def buckets(self) -> int:
        """Buckets that hold anything: the units that are drawn, where there is a table of them."""
        return 0 if self.units is None else self.units["bucket"].n_unique()

    @cached_property
    def dialogues(self) -> float:
        """About how many dialogues there are, where a row outside any is one of its own (see `dialogues_in`).

        Never fewer than the buckets that hold anything, nor more than the rows.
        """
        return float(self.n) if self.units is None else min(dialogues_in(self.units), float(self.n))

    @property
    def fewest_dialogues(self) -> float:
        """Dialogues that can be relied on: two standard errors below the estimate, but one for each bucket."""
        return reliable(self.dialogues, self.buckets) if self.buckets else self.dialogues

    def totals(self, key: str, measure: TermMeasure) -> NDArray[np.float64]:
        """The totals of a measure that is a sum over rows, exact even where the sweep joins confidences."""
        return self.terms[key] if key in self.terms else cell_totals(measure, self.sweep)

    def __add__(self, other: Tally) -> Tally:
        """The tally of both parts of a log."""
        if (self.units is None) != (other.units is None):
            raise DataError(
                f'of "{self.system}" one part has dialogues (or weights) and another has none, so they cannot be added',
                fix="make all parts from files with the same columns",
            )
        return replace(
            self,
            sweep=self.sweep + other.sweep,
            failed=self.failed + other.failed,
            unanswered=self.unanswered + other.unanswered,
            out_of_scope=self.out_of_scope + other.out_of_scope,
            squares=self.squares + other.squares,
            clustered=self.clustered or other.clustered,
            units=None if self.units is None or other.units is None else summed_units([self.units, other.units]),
            terms=self._terms_with(other),
        )

    def _terms_with(self, other: Tally) -> Mapping[str, NDArray[np.float64]]:
        keys = dict.fromkeys((*self.terms, *other.terms))
        measures = term_measures()
        return {key: self.totals(key, measures[key]) + other.totals(key, measures[key]) for key in keys}

    def joined(self, grid: Grid) -> Tally:
        """The tally with confidences of one cell of the grid joined; what is a sum over rows stays exact."""
        if self.sweep.threshold.size == 0:
            return self
        terms = {key: self.totals(key, measure) for key, measure in term_measures().items()}
        return replace(self, sweep=joined_sweep(self.sweep, grid), terms=terms)


def total(tallies: list[Tally]) -> Tally:
    """The tally of all parts together."""
    return reduce(add, tallies)


def summed_units(tables: list[pl.DataFrame]) -> pl.DataFrame:
    """Several tables of units as one; what stands in the same bucket at the same confidence is added."""
    cells = pl.concat(tables).group_by("bucket", "confidence")
    sums = cells.agg(pl.col("right", "wrong", "withheld").sum(), pl.col("least").min())
    alike = pl.col("least").min().over("bucket")  # repeats take hardly any room in a file
    return sums.with_columns(alike).sort("bucket", "confidence").select(*UNITS)


def dialogues_in(units: pl.DataFrame) -> float:
    """About how many dialogues are hashed into the buckets of a table, told by the least number in each.

    The numbers of k dialogues, as shares of their range, are like k arrivals within one unit of time. So the wait for
    the first is about exponential with rate k; in an empty bucket it is longer than 1. The likeliest rate for such
    waits is first arrivals over the time waited. Its relative standard error is about 1 / sqrt(first arrivals), 3
    percent where no bucket is empty. Rows that nothing names are in no bucket, and count as one dialogue.

    >>> units = pl.DataFrame({"bucket": [3, 3, 8], "least": [2**30, 2**30, 2**31]})
    >>> round(dialogues_in(units), 6) == round(1024 * 2 / (1022 + 0.25 + 0.5), 6)
    True
    """
    known = units.filter(pl.col("bucket").is_not_null())
    least = known.group_by("bucket").agg(pl.col("least").min())["least"].to_numpy()
    waited = BUCKETS - least.size + float((least + 0.5).sum()) / NUMBERS
    return BUCKETS * least.size / waited + float(known.height < units.height)


def reliable(dialogues: float, buckets: int) -> float:
    """An estimate of dialogues on the low side: by two standard errors, but one for each bucket at least."""
    return max(dialogues * (1 - 2 / sqrt(buckets)), float(buckets))


def joined_sweep(sweep: Sweep, grid: Grid) -> Sweep:
    """The sweep with the confidences of one cell joined into its lowest."""
    cell = grid.of(sweep.threshold)
    starts = np.flatnonzero(np.append(True, cell[1:] > cell[:-1]))
    kinds = (np.result_type(part, np.int64) for part in (sweep.right, sweep.wrong))
    right, wrong = (
        np.add.reduceat(part, starts, dtype=kind) for part, kind in zip((sweep.right, sweep.wrong), kinds, strict=True)
    )
    threshold, upper = sweep.threshold[starts], _last(sweep.highest, starts)
    return Sweep(threshold, right, wrong, sweep.withheld, sweep.n, upper if (upper > threshold).any() else None)


def _last(values: Floats, starts: NDArray[np.intp]) -> Floats:
    return np.asarray(values[np.append(starts[1:], values.size) - 1])
