"""The totals of one system or slice: small, additive, and enough for every measure and replicate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from math import frexp, ldexp, sqrt
from operator import add
from typing import ClassVar, Literal

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.arrays import Array
from demur.core.engines.engine import BUCKETS, NUMBERS
from demur.core.stats.calibration import cell_totals
from demur.core.stats.measure import Measure, TermMeasure
from demur.core.stats.resampling import Draws, Sample, Spread, replicate_counts, stacked
from demur.core.stats.sweep import Floats, Sweep
from demur.errors import DataError
from demur.returns.judging import LOWEST
from demur.returns.measures import term_measures
from demur.returns.scope import RIGHT, WITHHELD, WRONG, View

FINE = 20
"""Cells of the first cut, as a power of two over the largest absolute confidence."""

FINER = 12
"""How much finer a dense cell is cut each time, as a power of two."""

DEEPEST = 60
"""The finest cut, so that a cell's number fits into a 64-bit integer."""

MOST_CUTS = 1000
"""The finest cut however small all confidences are, as a power of two, so that it is a number at all."""


@dataclass(frozen=True, slots=True)
class ConfidenceGrid:
    """Cells of confidence: `cuts[0]` cells per unit everywhere, `cuts[i + 1]` in the cells that start at `dense[i]`.

    >>> ConfidenceGrid((4.0, 16.0), (frozenset({0.75}),)).of([0.1, 0.3, 0.8, 0.9]).tolist()
    [0.0, 0.25, 0.75, 0.875]
    """

    cuts: tuple[float, ...]
    dense: tuple[frozenset[float], ...] = ()

    @classmethod
    def over(cls, largest: float, cells: int = FINE) -> ConfidenceGrid:
        """Cells of one size: 2 ** `cells` of them from 0 to a power of two at or above the largest confidence."""
        _, exponent = frexp(largest) if largest > 0 else (0.0, 0)
        return cls((ldexp(1.0, min(cells - exponent, MOST_CUTS)),))

    def finer(self, dense: frozenset[float], bits: int = FINER) -> ConfidenceGrid:
        """The grid with some of its finest cells cut finer."""
        return ConfidenceGrid((*self.cuts, self.cuts[-1] * 2.0**bits), (*self.dense, dense))

    def may_be_finer(self, largest: float, bits: int = FINER) -> bool:
        """Whether a finer cut would still number its cells exactly."""
        return self.cuts[-1] * 2.0**bits * max(largest, 1e-300) <= 2.0**DEEPEST

    def key(self, confidence: nw.Expr) -> nw.Expr:
        """Where the cell of each confidence starts; infinities are cells of their own."""
        starts = [(confidence * cut).floor() / cut for cut in self.cuts]
        cell = starts[-1]
        for start, dense in zip(reversed(starts[:-1]), reversed(self.dense), strict=True):
            cell = nw.when(start.is_in(sorted(dense))).then(cell).otherwise(start) if dense else start
        return nw.when(confidence.is_finite()).then(cell).otherwise(confidence)

    def of(self, confidence: Floats | list[float]) -> Floats:
        """The plain twin of `key` for arrays."""
        scores = np.asarray(confidence, dtype=np.float64) + 0.0
        with np.errstate(over="ignore"):
            starts = [np.floor(scores * cut) / cut for cut in self.cuts]
        cell = starts[-1]
        for start, dense in zip(reversed(starts[:-1]), reversed(self.dense), strict=True):
            cell = np.where(np.isin(start, sorted(dense)), cell, start)
        return np.where(np.isfinite(scores), cell, scores)


def grid_for(sweep: Sweep, cells: int) -> ConfidenceGrid:
    """A grid with which the answers of a sweep fall into about `cells` cells of nearly equal weight."""
    finite = np.isfinite(sweep.threshold)
    threshold, weight = sweep.threshold[finite], np.add(sweep.right, sweep.wrong, dtype=np.float64)[finite]
    largest = float(np.abs(threshold).max()) if threshold.size else 0.0
    grid = ConfidenceGrid.over(largest, max(1, int(np.log2(cells))))
    most = weight.sum() / cells * 2
    while grid.may_be_finer(largest, 4):
        dense = dense_cells(grid.of(threshold), threshold, threshold, weight, most)
        if not dense:
            break
        grid = grid.finer(dense, 4)
    return grid


def dense_cells(cell: Floats, lowest: Floats, highest: Floats, weight: Floats, most: float) -> frozenset[float]:
    """Cells of more than `most` weight that hold more than one confidence, heaviest first and no more than 1,000."""
    starts, place = np.unique(cell, return_inverse=True)
    mass = np.bincount(place, weights=weight, minlength=starts.size)
    low, high = np.full(starts.size, np.inf), np.full(starts.size, -np.inf)
    np.minimum.at(low, place, lowest)
    np.maximum.at(high, place, highest)
    heavy = np.flatnonzero((mass > most) & (high > low) & np.isfinite(starts))
    chosen = heavy[np.argsort(-mass[heavy], kind="stable")][:1000]
    return frozenset(starts[chosen].tolist())


UNIT_LEVELS = 1024
"""Distinct confidences kept per bucket; where there are more, close ones are joined. It moves intervals, not values."""

UNITS = {
    "bucket": pl.Int32,
    **dict.fromkeys(("confidence", "right", "wrong", "withheld"), pl.Float64),
    "least": pl.Int64,
}
"""The columns of a table of units: what each bucket holds at each level of confidence (null: without an answer).

`least` is the bucket's own, the same in all of its rows: the least of the numbers that its dialogues are hashed into.
"""

UNIT_COLUMNS = [pl.col(name).cast(kind) for name, kind in UNITS.items()]


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
    by_scope: Mapping[View, Tally] = field(default_factory=dict)
    """The rows once more by scope (see `demur.returns.scope`), where some are out of scope; otherwise empty."""
    marks: pl.DataFrame | None = None
    """Rows, and sums of the marks of inputs, by bucket, where systems are to be paired by them."""

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

    def named(self, system: str) -> Tally:
        """The tally under another name of its system."""
        views = {view: replace(tally, system=system) for view, tally in self.by_scope.items()}
        return replace(self, system=system, by_scope=views)

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
        keys = dict.fromkeys((*self.terms, *other.terms))
        measures = term_measures()
        sides = [one.views_of_scope() if self.out_of_scope + other.out_of_scope else {} for one in (self, other)]
        added = ("sweep", "failed", "unanswered", "out_of_scope", "squares")
        return replace(
            self,
            **{name: getattr(self, name) + getattr(other, name) for name in added},
            clustered=self.clustered or other.clustered,
            units=None if self.units is None or other.units is None else summed_units([self.units, other.units]),
            terms={key: self.totals(key, measures[key]) + other.totals(key, measures[key]) for key in keys},
            by_scope={view: sides[0][view] + sides[1][view] for view in sides[0] if view in sides[1]},
        )

    def joined(self, grid: ConfidenceGrid) -> Tally:
        """The tally with confidences of one cell of the grid joined; what is a sum over rows stays exact."""
        if self.sweep.threshold.size == 0:
            return self
        terms = {key: self.totals(key, measure) for key, measure in term_measures().items()}
        return replace(
            self, sweep=joined_sweep(self.sweep, grid), terms=terms, by_scope=self._ranking_with(grid, "sweep")
        )

    def with_units_joined(self, grid: ConfidenceGrid) -> Tally:
        """The tally with the confidences of its units joined in the cells of a grid."""
        if self.units is None:
            return self
        return replace(self, units=joined_units(self.units, grid), by_scope=self._ranking_with(grid, "units"))

    def _ranking_with(self, grid: ConfidenceGrid, what: Literal["sweep", "units"]) -> Mapping[View, Tally]:
        """The views by scope, confidences joined in the sweep or in the units of the one that has any."""
        if "ranking" not in self.by_scope:
            return self.by_scope
        ranking = self.by_scope["ranking"]
        if what == "sweep":
            joined = replace(ranking, sweep=joined_sweep(ranking.sweep, grid))
        else:
            joined = ranking.with_units_joined(grid)
        return {**self.by_scope, "ranking": joined}

    def views_of_scope(self) -> Mapping[View, Tally]:
        """The rows by scope, which follow from the tally where no row is out of scope; empty where they are unknown."""
        if self.by_scope or (self.out_of_scope and self.sweep.total > 0):
            return self.by_scope
        sweep, nothing = self.sweep, np.zeros_like(self.sweep.wrong)
        answers = replace(
            sweep, right=sweep.right + sweep.wrong, wrong=nothing, withheld=0.0, n=self.n - self.unanswered
        )
        ranking = answers + _in_scope({LOWEST: float(sweep.withheld)}, self.unanswered)
        counts = {WITHHELD: float(sweep.withheld), WRONG: float(sweep.errors), RIGHT: float(sweep.right.sum())}
        bare = replace(self, failed=0, unanswered=0, out_of_scope=0, terms={})
        units = (None, None) if self.units is None else _units_in_scope(self.units)
        return {
            "ranking": replace(bare, sweep=ranking, units=units[0]),
            "decisions": replace(bare, sweep=_in_scope(counts, self.n), units=units[1]),
        }


def total(tallies: list[Tally]) -> Tally:
    """The tally of all parts together."""
    return reduce(add, tallies)


def summed_units(tables: list[pl.DataFrame]) -> pl.DataFrame:
    """Several tables of units as one; what stands in the same bucket at the same confidence is added."""
    cells = pl.concat(tables).group_by("bucket", "confidence")
    sums = cells.agg(pl.col("right", "wrong", "withheld").sum(), pl.col("least").min())
    alike = pl.col("least").min().over("bucket")  # repeats take hardly any room in a file
    return sums.with_columns(alike).sort("bucket", "confidence").select(*UNITS)


def joined_units(units: pl.DataFrame, grid: ConfidenceGrid) -> pl.DataFrame:
    """The table of units at coarser levels: each confidence becomes the start of its cell."""
    cells = pl.Series("confidence", grid.of(units["confidence"].fill_null(np.nan).to_numpy()))
    return summed_units([units.with_columns(cells.fill_nan(None))])


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


def _in_scope(counts: Mapping[float, float], n: int) -> Sweep:
    """The sweep of rows that are all in scope, by the threshold where they stand."""
    held = {threshold: count for threshold, count in counts.items() if count}
    right = np.array(list(held.values()), dtype=np.float64)
    whole = right.astype(np.int64) if np.array_equal(np.rint(right), right) else right
    return Sweep(np.array(list(held), dtype=np.float64), whole, np.zeros_like(whole), 0.0, n)


def _units_in_scope(units: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """A table of units whose rows are all in scope, by confidence and by what became of them."""
    none = pl.lit(0.0)
    answers = pl.col("right") + pl.col("wrong") + pl.col("withheld")
    ranked = units.with_columns(
        confidence=pl.col("confidence").fill_null(LOWEST), right=answers, wrong=none, withheld=none
    )
    kinds = {"withheld": WITHHELD, "wrong": WRONG, "right": RIGHT}
    became = [
        units.filter(pl.col(kind) > 0).with_columns(
            confidence=pl.lit(threshold), right=pl.col(kind), wrong=none, withheld=none
        )
        for kind, threshold in kinds.items()
    ]
    return summed_units([ranked]), summed_units(became)


def joined_sweep(sweep: Sweep, grid: ConfidenceGrid) -> Sweep:
    """The sweep with the confidences of one cell joined into its lowest."""
    cell = grid.of(sweep.threshold)
    starts = np.flatnonzero(np.append(True, cell[1:] > cell[:-1]))
    right, wrong = (
        np.add.reduceat(part, starts, dtype=np.result_type(part, np.int64)) for part in (sweep.right, sweep.wrong)
    )
    threshold, upper = sweep.threshold[starts], np.asarray(sweep.highest[np.append(starts[1:], sweep.highest.size) - 1])
    return Sweep(threshold, right, wrong, sweep.withheld, sweep.n, upper if (upper > threshold).any() else None)


def tally_sample(tally: Tally, replicates: int = 1000, seed: int = 0) -> Sample:
    """The sample that a tally stands for.

    >>> sample = tally_sample(Tally("guide", None, Sweep.of([0.9, 0.4], [True, False]), 0, 0, 0, squares=2.0))
    >>> sample.n, sample.alike, sample.spread.units
    (2, True, 2)
    """
    return Sample(TallySource(tally), replicates, seed)


@dataclass(frozen=True, eq=False)
class TallySource:
    """A tally as what replicates are drawn from."""

    tally: Tally

    strata: ClassVar[None] = None

    @cached_property
    def known(self) -> Mapping[Measure, Array]:
        """The exact totals that the tally has."""
        measures = term_measures()
        return {measures[key]: totals for key, totals in self.tally.terms.items() if key in measures}

    @cached_property
    def alike(self) -> bool:
        """Whether rows are independent and count alike: no dialogues, and weights that are all 1.

        The sum of (weight - 1)^2 is 0 only if every weight is 1, so three sums tell.
        """
        tally = self.tally
        ones = tally.squares == tally.sweep.total == tally.n
        return tally.units is None or (ones and not tally.clustered)

    @cached_property
    def spread(self) -> Spread:
        """How much the rows tell; where buckets are drawn they are the units, and dialogues are about counted."""
        n, clustered = self.tally.effective_n, self.tally.clustered
        if self.alike:
            return Spread(n, self.tally.n, clustered)
        return Spread(n, self.cells.buckets, clustered, self.tally.fewest_dialogues)

    @property
    def heaviest(self) -> float:
        """Weight of the heaviest unit."""
        return 1.0 if self.alike else float(self.cells.weights.max())

    @cached_property
    def cells(self) -> BucketCells:
        """What each bucket holds."""
        return BucketCells.of(pl.DataFrame(schema=UNITS) if self.tally.units is None else self.tally.units)

    def sweep(self) -> Sweep:
        """The exact sweep."""
        return self.tally.sweep

    def coarse(self, sweep: Sweep, levels: int) -> Sweep:
        """The sweep at the levels of the replicates; where buckets are drawn, the sum over buckets."""
        if self.alike:
            return sweep.coarsened(levels)
        return self.cells.coarse(levels, self.tally.n)

    def drawn(self, coarse: Sweep, *, replicates: int, seed: int) -> Sweep:
        """Replicates at the levels of the coarse sweep."""
        if self.alike:
            return replicate_counts(coarse, replicates=replicates, seed=seed)
        table = self.cells.by_bucket(coarse.threshold)
        parts = [chunk @ table.T for chunk in Draws(self.cells.buckets, replicates, seed)]
        return stacked(coarse.threshold, np.concatenate(parts), self.tally.n)

    def by_unit(self) -> Array:
        """Weights of cells by buckets, at the levels that are kept of buckets."""
        return self.cells.by_bucket(self.cells.levels(UNIT_LEVELS))

    def pulls(self, influence: Array, coarse: Sweep) -> Array:
        """What each bucket adds to a statistic, in rising order; `influence` is what a row adds, by its cell."""
        return np.sort(influence @ self.cells.by_bucket(coarse.threshold) / coarse.total)


@dataclass(frozen=True, slots=True, eq=False)
class BucketCells:
    """A table of units as arrays, in an order of its own; buckets are numbered from 0, a confidence of NaN is none."""

    buckets: int
    bucket: NDArray[np.int64]
    confidence: Floats
    right: Floats
    wrong: Floats
    withheld: Floats

    @classmethod
    def of(cls, units: pl.DataFrame) -> BucketCells:
        """The table, sorted by what it holds."""
        table = units.select(*UNITS).sort(*UNITS)
        names, bucket = np.unique(table["bucket"].fill_null(-1).to_numpy(), return_inverse=True)
        confidence = table["confidence"].fill_null(np.nan).to_numpy() + 0.0  # -0.0 is 0.0
        counts = (table[name].to_numpy() for name in ("right", "wrong", "withheld"))
        return cls(names.size, bucket.astype(np.int64), confidence, *counts)

    def levels(self, most: int) -> Floats:
        """Confidences that cut the answers of all buckets into at most so many levels of about equal weight."""
        answered = ~np.isnan(self.confidence)
        threshold, place = np.unique(self.confidence[answered], return_inverse=True)
        right, wrong = (
            np.bincount(place, weights=part[answered], minlength=threshold.size) for part in (self.right, self.wrong)
        )
        return Sweep(threshold, right, wrong, 0.0, 0).coarsened(most).threshold

    def coarse(self, levels: int, n: int) -> Sweep:
        """The sweep of all buckets at so many levels at most."""
        threshold = self.levels(levels)
        sums, size = self.by_bucket(threshold).sum(axis=1), threshold.size
        return Sweep(threshold, sums[:size], sums[size : 2 * size], float(sums[-1]), n)

    @property
    def weights(self) -> Array:
        """The weight of each bucket."""
        return np.asarray(self.by_bucket(np.empty(0))[0])

    def by_bucket(self, levels: Floats) -> Array:
        """Weights by cell and bucket: right by level, wrong by level, withheld; without levels there is one cell."""
        size = levels.size
        level = np.maximum(np.searchsorted(levels, self.confidence, side="right") - 1, 0)
        cell = np.concatenate([level, size + level, np.full(level.size, 2 * size)])
        weight = np.concatenate([self.right, self.wrong, self.withheld])
        place = cell * self.buckets + np.tile(self.bucket, 3)
        sums: Array = np.bincount(place, weights=weight, minlength=(2 * size + 1) * self.buckets).astype(np.float64)
        return sums.reshape(2 * size + 1, self.buckets)
