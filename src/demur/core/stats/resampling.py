"""Replicates of a sweep: the bootstrap as counts per cell, so that no replicate sorts anything again.

A cell is a level of confidence with right or wrong, or "withheld". What is drawn are *units*: inputs, or dialogues
where turns of one dialogue are not independent. Inputs of one cell are alike, so independent inputs need only one
multinomial draw per replicate; dialogues, pairs and weighted rows are drawn one by one and summed into cells, those of
a stratified sample within their strata.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from demur.core.arrays import Array
from demur.core.stats.calibration import cell_totals
from demur.core.stats.measure import Measure, TermMeasure
from demur.core.stats.strata import Strata, drawn_apart, strata_in
from demur.core.stats.sweep import Floats, Sweep, places_among, ratio

CELL_LEVELS = 500
"""Confidence levels kept for replicates; neighbours beyond are joined. It moves intervals, never values."""

MOST_UNITS = 20_000
"""Units drawn one by one; where there are more they are dealt at random into this many bundles."""

MOST_OWNED = 200_000
"""Rows up to which the cell of every single row is written out for a draw."""

MOST_DEALT = 5_000_000
"""Rows up to which each single one is dealt to a part of the sample."""

DRAWN_AT_ONCE = 640_000
"""Numbers drawn at a time: few enough to stay in the processor's cache, which makes them twice as fast."""

NARROW: tuple[tuple[float, type[np.number[Any]]], ...] = ((2**15, np.int16), (2**24, np.float32))
"""Kinds of numbers that are exact where they are whole and below a limit; the narrower, the quicker they add up."""

FEW = 300
"""Right or wrong answers, whichever are fewer, from which replicates need not allow for kinds of answers not seen."""

_TELLING = ("weight", "right", "answered", "confidence")
"""What tells rows apart where nothing names them."""


@dataclass(frozen=True, slots=True)
class Spread:
    """How much a sample tells: equally weighted rows that would tell as much, units to draw, clustered or not."""

    n: float
    units: int
    clustered: bool
    dialogues: float | None = None
    """How many dialogues there are, on the low side, where the units are buckets that hold several."""
    heaviest: float | None = None
    """Share of all inputs that one row stands for at most, where rows are a stratified sample."""

    @property
    def independent(self) -> float:
        """How many independent units there are, however they are drawn."""
        return float(self.units) if self.dialogues is None else self.dialogues

    @property
    def most(self) -> float:
        """Independent inputs that the sample stands for at most: turns of a dialogue may all tell the same."""
        return min(self.n, self.independent) if self.clustered else self.n

    @property
    def unseen(self) -> float:
        """Independent inputs by which to bound what the sample has not shown, which may lie in its heaviest rows."""
        return self.n if self.heaviest is None else min(self.n, 1 / self.heaviest)


class SampleSource(Protocol):
    """What replicates are drawn from: rows in memory, or what was counted of rows elsewhere."""

    @property
    def known(self) -> Mapping[Measure, Array]:
        """Totals of measures that are known better than from the sweep."""

    @property
    def spread(self) -> Spread:
        """How much the rows tell."""

    @property
    def alike(self) -> bool:
        """Whether rows are independent and count alike, so that the sweep tells all."""

    @property
    def heaviest(self) -> float:
        """Weight of the heaviest unit."""

    @property
    def strata(self) -> Strata | None:
        """The units by stratum, where rows are a stratified sample."""

    def sweep(self) -> Sweep:
        """The exact sweep."""

    def coarse(self, sweep: Sweep, levels: int) -> Sweep:
        """The sweep at the levels of the replicates."""

    def drawn(self, coarse: Sweep, *, replicates: int, seed: int) -> Sweep:
        """The replicates, stacked along the first axis."""

    def pulls(self, influence: Array, coarse: Sweep) -> Array:
        """What each unit adds to a statistic, in rising order."""

    def by_unit(self) -> Any:
        """Weights of cells by units: right by level, wrong by level, withheld."""


class UnitSpread(NamedTuple):
    """Squared deviations of what each unit adds to a statistic, summed, and the number of units."""

    squares: float
    units: int

    @classmethod
    def of(cls, pulls: Array) -> UnitSpread:
        """The spread of what each unit adds."""
        return cls(float(np.square(pulls - pulls.mean()).sum()) if pulls.size else 0.0, pulls.size)


class ComparedRows(Protocol):
    """What a comparison reads of a system: its rows in memory, or the cells that they were counted in elsewhere."""

    @property
    def n(self) -> int:
        """How many rows there are."""

    @property
    def units(self) -> int:
        """How many units are drawn."""

    @property
    def independent(self) -> float:
        """How many independent units there are, however they are drawn."""

    @property
    def effective_n(self) -> float:
        """Kish's number of equally weighted rows that would tell as much."""

    @property
    def right_share(self) -> float:
        """Right answers as a share of all rows."""

    @property
    def are_right(self) -> Array:
        """Of each row or cell, 1 where it is a right answer, otherwise 0."""

    @property
    def are_withheld(self) -> Array:
        """Of each row or cell, 1 where it has no answer, otherwise 0."""

    def sweep(self) -> Sweep:
        """The exact sweep."""

    def spread_out(self, of_cells: Callable[[Sweep], Array]) -> Array:
        """What each row or cell adds to a statistic: `of_cells` gives it by the cell of a sweep."""

    def own_spread(self, influence: Array) -> UnitSpread:
        """The spread of a statistic of this system."""

    def paired_spread(self, other: Any, influence: tuple[Array, Array]) -> UnitSpread:
        """The spread of a statistic of this system less that of another one, which has the same units."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Judged rows of one system as arrays: `confidence` is read only where `answered`.

    `unit` numbers what is drawn in the bootstrap, from 0, in an order that does not depend on the order of rows; None
    means that each row is a unit and rows alike are interchangeable. `stratum` numbers the strata of a stratified
    sample, whose weights say how many inputs a row stands for.
    """

    confidence: Floats
    right: NDArray[np.bool_]
    answered: NDArray[np.bool_]
    weight: Floats
    unit: NDArray[np.int64] | None = None
    stratum: NDArray[np.int64] | None = None

    known: ClassVar[Mapping[Measure, Array]] = {}

    @classmethod
    def of(cls, confidence: ArrayLike, right: ArrayLike) -> Rows:
        """Answered rows of equal weight from two lists."""
        scores = np.asarray(confidence, dtype=np.float64)
        return cls(scores, np.asarray(right, dtype=np.bool_), np.ones(scores.size, np.bool_), np.ones(scores.size))

    @classmethod
    def from_frame(cls, frame: pl.DataFrame) -> Rows:
        """Rows of one system's judged table; where it names dialogues, these are the units."""
        weight = frame["weight"].to_numpy()
        if (weight == 1.0).all():  # as in most logs: one number is enough for all
            weight = np.broadcast_to(1.0, weight.size)
        return cls(
            frame["confidence"].fill_null(0.0).to_numpy(),
            frame["right"].to_numpy(),
            frame["answered"].to_numpy(),
            weight,
            *drawn_apart(dialogue_units(frame), strata_in(frame), weight),
        )

    @property
    def units(self) -> int:
        """How many independent units there are: dialogues where they are known, else inputs."""
        if self.strata is not None:
            return int(self.strata.of.size)
        return self.weight.size if self.unit is None else int(self.unit.max()) + 1

    @cached_property
    def strata(self) -> Strata | None:
        """The units by stratum, where rows are a stratified sample."""
        if self.stratum is None:
            return None
        unit = numbered_units(self)
        of = np.empty(int(unit.max()) + 1, np.int64)
        of[unit] = self.stratum
        return Strata(of, np.bincount(unit, weights=self.weight).astype(np.float64))

    @property
    def n(self) -> int:
        """How many rows there are."""
        return self.weight.size

    @property
    def independent(self) -> float:
        """How many independent units there are."""
        return float(self.units)

    @property
    def right_share(self) -> float:
        """Right answers as a share of all rows."""
        return float(np.sort(self.are_right * self.weight).sum() / np.sort(self.weight).sum())

    @property
    def are_right(self) -> Array:
        """Of each row, 1 where it is a right answer, otherwise 0."""
        return (self.right & self.answered).astype(np.float64)

    @property
    def are_withheld(self) -> Array:
        """Of each row, 1 where it has no answer, otherwise 0."""
        return (~self.answered).astype(np.float64)

    @property
    def weighted(self) -> bool:
        """Whether rows count differently."""
        return bool(self.weight.size) and bool((self.weight != 1.0).any())

    @property
    def effective_n(self) -> float:
        """Kish's number of equally weighted rows that would tell as much."""
        ordered = np.sort(self.weight)
        return float(ordered.sum() ** 2 / np.square(ordered).sum())

    @property
    def spread(self) -> Spread:
        """How much the rows tell."""
        if self.strata is None:
            return Spread(self.effective_n, self.units, self.unit is not None)
        heaviest = float(self.weight[self.answered].max(initial=0.0) / self.weight.sum())
        units = self.strata.freedom + 1
        return Spread(self.effective_n, units, self.unit is not None, heaviest=heaviest or None)

    @property
    def alike(self) -> bool:
        """Whether rows are independent and count alike."""
        return self.unit is None and self.stratum is None and not self.weighted

    @property
    def heaviest(self) -> float:
        """Weight of the heaviest unit."""
        return float((self.weight if self.unit is None else np.bincount(self.unit, weights=self.weight)).max())

    def sweep(self) -> Sweep:
        """The exact sweep of the rows."""
        return self._swept

    @cached_property
    def _swept(self) -> Sweep:
        kept, aside = self.answered, ~self.answered
        confidence, right = (part if kept.all() else part[kept] for part in (self.confidence, self.right))
        if self.weighted:
            withheld = float(np.sort(self.weight[aside]).sum())
            return Sweep.of(
                confidence, right, weight=self.weight[kept], withheld=withheld, withheld_rows=int(aside.sum())
            )
        return Sweep.of(confidence, right, withheld=float(aside.sum()))

    def drawn_by(self, unit: NDArray[np.int64]) -> Rows:
        """The same rows with other units; the sweep, which does not depend on these, is shared."""
        other = replace(self, unit=unit)
        other.__dict__["_swept"] = self._swept
        return other

    def cells(self, levels: Floats) -> NDArray[np.int64]:
        """The cell of each row: right at a level, wrong at a level, or withheld (last)."""
        size = levels.size
        level = np.maximum(places_among(levels, np.where(self.answered, self.confidence, -np.inf)), 0)
        return np.where(self.answered, np.where(self.right, level, size + level), 2 * size)

    def coarse(self, sweep: Sweep, levels: int) -> Sweep:
        """The sweep at the levels of the replicates."""
        return sweep.coarsened(levels)

    def drawn(self, coarse: Sweep, *, replicates: int, seed: int) -> Sweep:
        """Replicates of the rows at the levels of the coarse sweep."""
        if self.alike:
            return replicate_counts(coarse, replicates=replicates, seed=seed)
        return _drawn_together([self], [coarse.threshold], replicates=replicates, seed=seed)[0]

    def pulls(self, influence: Array, coarse: Sweep) -> Array:
        """What each unit adds to a statistic, in rising order; `influence` is what a row adds, by its cell."""
        return self.pulled(influence[self.cells(coarse.threshold)])

    def by_unit(self) -> Any:
        """Weights of cells by units, at the levels of the exact sweep."""
        levels, unit = self.sweep().threshold, numbered_units(self)
        cells, units = 2 * levels.size + 1, int(unit.max()) + 1
        return units_by_cell(self.cells(levels), unit, self.weight, cells=cells, units=units)

    def spread_out(self, of_cells: Callable[[Sweep], Array]) -> Array:
        """What each row adds to a statistic, of which `of_cells` gives what a row of each cell adds."""
        sweep = self.sweep()
        return np.asarray(of_cells(sweep)[self.cells(sweep.threshold)])

    def own_spread(self, influence: Array) -> UnitSpread:
        """The spread of a statistic of these rows; `influence` is what each row adds."""
        return UnitSpread.of(self.pulled(influence))

    def paired_spread(self, other: Rows, influence: tuple[Array, Array]) -> UnitSpread:
        """The spread of a statistic of these rows less that of others, which have the same units."""
        if self.unit is other.unit:  # row by row
            return UnitSpread.of(self.pulled(influence[0] - influence[1]))
        sides = (side.pulled_by_unit(part) for side, part in zip((self, other), influence, strict=True))
        return UnitSpread.of(self.in_order(np.subtract(*sides)))  # input by input, however often each was tried

    def pulled(self, influence: Array) -> Array:
        """What each unit adds to a statistic, in rising order; `influence` is what each row adds."""
        return self.in_order(self.pulled_by_unit(influence))

    def in_order(self, pulls: Array) -> Array:
        """What each unit adds in rising order, a fixed one, so that row order moves no digit; of strata within them."""
        return np.sort(pulls if self.strata is None else self.strata.centred(pulls))

    def pulled_by_unit(self, influence: Array) -> Array:
        """What each unit adds to a statistic; `influence` is what each row adds."""
        pull = influence * self.weight / np.sort(self.weight).sum()
        if (self.unit is not None and self.units < pull.size) or self.stratum is not None:
            unit = numbered_units(self)
            order = np.lexsort((pull, unit))
            pull = np.bincount(unit[order], weights=pull[order])
        return np.asarray(pull, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Sample:
    """What analyses read of a log, each made once: exact sweep, replicates, the sweep they stand for, and their spread.

    It is made from rows in memory or, with `demur.returns.tally`, from the tally of rows elsewhere.
    """

    source: SampleSource
    replicates: int = 1000
    seed: int = 0
    levels: int = CELL_LEVELS

    @cached_property
    def sweep(self) -> Sweep:
        """The exact sweep."""
        return self.source.sweep()

    @cached_property
    def coarse(self) -> Sweep:
        """The sweep at the levels of the replicates."""
        return self.source.coarse(self.sweep, self.levels)

    @cached_property
    def drawn(self) -> Sweep:
        """The replicates, stacked along the first axis."""
        return self.source.drawn(self.coarse, replicates=self.replicates, seed=self.seed)

    @cached_property
    def scarce(self) -> float:
        """How many answers there are of the scarcer kind, right or wrong; of weighted rows as many as tell as much."""
        errors = float(self.sweep.errors)
        return float(min(errors, float(self.sweep.answered) - errors) * self.spread.n / self.sweep.total)

    @cached_property
    def smoothed(self) -> Sweep:
        """Replicates that allow for what few answers have not shown: errors at confidences that had none so far.

        Independent rows that count alike get random weights instead of counts (the Bayesian bootstrap, Rubin 1981),
        so that no replicate loses all errors. To what was seen one right and one wrong answer are added, spread over
        the confidences as the answers are: a prior that counts as much as two answers. Of drawn dialogues and weighted
        rows the counts stay, and what is added weighs as much more as they tell less than independent rows. With many
        answers of both kinds these are the plain replicates.
        """
        coarse = self.coarse
        if self.scarce >= FEW or not float(coarse.answered) > 0:
            return self.drawn
        rng = np.random.default_rng([self.seed, 2])
        counts = np.concatenate([coarse.right, coarse.wrong, [coarse.withheld]]).astype(np.float64)
        added = np.append(np.tile((coarse.right + coarse.wrong) / coarse.answered, 2), 0.0)
        if self.alike:
            cells = rng.standard_gamma(counts + added, size=(self.replicates, counts.size))
            cells *= coarse.total / cells.sum(axis=1, keepdims=True)
        else:
            drawn = (self.drawn.right, self.drawn.wrong, np.asarray(self.drawn.withheld)[:, None])
            cells = np.concatenate(drawn, axis=1)
            cells += self.redundancy * rng.standard_gamma(added, size=cells.shape)
        return stacked(coarse.threshold, cells, coarse.n)

    @cached_property
    def redundancy(self) -> float:
        """By how much more the error rate varies than that of independent rows of weight 1 would: the design effect."""
        if self.alike:
            return 1.0
        rates = ratio(self.drawn.errors, self.drawn.total)
        rate, units = float(self.sweep.errors / self.sweep.total), self.spread.units
        plain = rate * (1 - rate) / self.sweep.total
        found = float(np.nanvar(rates)) * units / max(units - 1, 1) / plain if plain > 0 else math.inf
        least = self.sweep.total / self.spread.n
        return float(min(max(found, least), self.sweep.total / min(self.spread.most, self.spread.unseen)))

    def forget(self) -> None:
        """Let go of the replicates, which take most of the room; when asked for they are drawn again, and the same."""
        for kept in ("drawn", "smoothed"):
            self.__dict__.pop(kept, None)

    @cached_property
    def spread(self) -> Spread:
        """How much the sample tells."""
        return self.source.spread

    @cached_property
    def alike(self) -> bool:
        """Whether rows are independent and count alike."""
        return self.source.alike

    @property
    def n(self) -> int:
        """How many rows there are."""
        return self.sweep.n

    @cached_property
    def heaviest(self) -> float:
        """Weight of the heaviest unit."""
        return self.source.heaviest

    def pulls(self, influence: Array) -> Array:
        """What each unit adds to a statistic, in rising order.

        `influence` is what a row adds, by its cell: right at each level of `coarse`, wrong at each level, withheld.
        """
        return self.source.pulls(influence, self.coarse)

    def folds(self, folds: int) -> Array:
        """The units dealt at random into parts of one size: right by level, wrong by level, withheld, of each part.

        Rows that are alike are dealt from the counts of the sweep, so that rows elsewhere give the same parts.
        """
        rng = np.random.default_rng(self.seed)
        if not self.alike:
            table = self.source.by_unit()
            part = rng.permutation(table.shape[1]) % folds
            return np.asarray(table @ (part[:, None] == np.arange(folds)).astype(np.float64)).T
        counts = np.rint(np.concatenate([self.sweep.right, self.sweep.wrong, [self.sweep.withheld]])).astype(np.int64)
        rows = int(counts.sum())
        if rows <= MOST_DEALT:
            cell = np.repeat(np.arange(counts.size), counts)
            place = (rng.permutation(rows) % folds) * counts.size + cell
            return np.bincount(place, minlength=folds * counts.size).reshape(folds, -1).astype(np.float64)
        parts = []
        for left in range(folds, 0, -1):
            taken = rng.multivariate_hypergeometric(counts, int(counts.sum()) // left) if left > 1 else counts
            parts.append(taken)
            counts = counts - taken
        return np.array(parts, dtype=np.float64)

    def totals(self, measure: TermMeasure) -> Array:
        """The exact totals of a measure that is a sum over rows."""
        known = self.source.known.get(measure)
        return cell_totals(measure, self.sweep) if known is None else known


def dialogue_units(frame: pl.DataFrame) -> NDArray[np.int64] | None:
    """Numbers for dialogues in the order of their names; rows outside any dialogue are units of their own."""
    dialogue = frame["dialogue"]
    if dialogue.null_count() == dialogue.len():
        return None
    codes = np.array(dialogue.rank("dense").cast(pl.Int64).fill_null(0).to_numpy()) - 1
    alone = np.flatnonzero(codes < 0)
    values = [frame[name].cast(pl.Float64).fill_null(0.0).to_numpy()[alone] for name in _TELLING]
    codes[alone[np.lexsort(values)]] = codes.max() + 1 + np.arange(alone.size)
    return codes


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """How often each unit is drawn in each replicate, made in chunks: rows are replicates, columns units."""

    units: int
    replicates: int
    seed: int

    def __iter__(self) -> Iterator[Array]:
        rng = np.random.default_rng(self.seed)
        chunk = max(1, DRAWN_AT_ONCE // max(self.units, 1))
        for start in range(0, self.replicates, chunk):
            size = min(chunk, self.replicates - start)
            drawn = rng.integers(0, self.units, size=(size, self.units))
            drawn += np.arange(size)[:, None] * self.units
            yield (np.bincount(drawn.ravel(), minlength=size * self.units).reshape(size, self.units).astype(np.float64))


def replicate_counts(sweep: Sweep, *, replicates: int, seed: int) -> Sweep:
    """Replicates of an unweighted sweep whose rows are independent: one multinomial draw over its cells each."""
    counts = np.concatenate([sweep.right, sweep.wrong, [sweep.withheld]]).astype(np.int64)
    return stacked(sweep.threshold, multinomial(np.random.default_rng(seed), counts, replicates), sweep.n)


def multinomial(rng: np.random.Generator, counts: NDArray[np.int64], replicates: int) -> Array:
    """Draws of as many rows as there are, each row alike, summed by cell: exact, and quicker than one binomial a cell.

    Given their sum, independent Poisson counts are multinomial. So Poisson counts for a little less than all rows are
    topped up by single draws; the rare replicate that has too many is drawn afresh.
    """
    rows = int(counts.sum())
    if rows > MOST_OWNED:
        return rng.multinomial(rows, counts / rows, size=replicates).astype(np.float64)
    owner = np.repeat(np.arange(counts.size), counts)
    head = max(0.0, 1 - 3 / np.sqrt(rows))
    drawn = rng.poisson(counts * head, size=(replicates, counts.size))
    short = rows - drawn.sum(axis=1)
    drawn[short < 0] = rng.multinomial(rows, counts / rows, size=int((short < 0).sum()))
    missing = np.maximum(short, 0)
    place = np.repeat(np.arange(replicates) * counts.size, missing) + owner[rng.integers(0, rows, size=missing.sum())]
    drawn += np.bincount(place, minlength=drawn.size).reshape(drawn.shape)
    return drawn.astype(np.float64)


def replicate_together(systems: list[Rows], *, replicates: int, seed: int, levels: int = CELL_LEVELS) -> list[Sweep]:
    """Replicates of several systems that answered the same inputs: the same units are drawn for all of them."""
    thresholds = [rows.sweep().coarsened(levels).threshold for rows in systems]
    return _drawn_together(systems, thresholds, replicates=replicates, seed=seed)


def _drawn_together(systems: list[Rows], thresholds: list[Floats], *, replicates: int, seed: int) -> list[Sweep]:
    tables, count, strata = _tables_of_units(systems, thresholds, seed)
    of_kind = cache(lambda kind: [table.astype(kind) for table in tables])
    most = math.inf if any(rows.weighted for rows in systems) else max(table.sum(axis=1).max() for table in tables)
    drawn: list[list[Array]] = [[] for _ in systems]
    drawing = Draws(count, replicates, seed) if strata is None else strata.draws(replicates, seed, DRAWN_AT_ONCE)
    for chunk in drawing:
        kind: Any = next((kind for limit, kind in NARROW if most * chunk.max() < limit), np.float64)
        times = chunk.T.astype(kind, order="C")
        for parts, table in zip(drawn, of_kind(kind), strict=True):
            parts.append((table @ times).T)
    return [
        stacked(threshold, np.concatenate(parts, dtype=np.float64), rows.weight.size)
        for threshold, parts, rows in zip(thresholds, drawn, systems, strict=True)
    ]


def _tables_of_units(systems: list[Rows], thresholds: list[Floats], seed: int) -> tuple[list[Any], int, Strata | None]:
    """Weights of cells by units of each system, how many units there are, and their strata."""
    first = numbered_units(systems[0])
    units = [first if rows.unit is None or rows.unit is systems[0].unit else rows.unit for rows in systems]
    count, strata = int(first.max()) + 1, systems[0].strata
    if count > MOST_UNITS:  # dealt at random but by number, so that row order plays no part
        dealt = np.random.default_rng([seed, 1]).permutation(count) % MOST_UNITS
        if strata is not None:
            dealt = strata.bundled(MOST_UNITS, seed)
            strata = strata.joined(dealt)
        dealt = dealt.astype(np.int32)
        units = [dealt[unit] for unit in units]
        count = int(dealt.max()) + 1
    tables = [
        units_by_cell(rows.cells(threshold), unit, rows.weight, cells=2 * threshold.size + 1, units=count)
        for rows, unit, threshold in zip(systems, units, thresholds, strict=True)
    ]
    return tables, count, strata


def stacked(threshold: Floats, cells: Array, n: int) -> Sweep:
    """Replicates as one sweep; `cells` has a row for each: right by threshold, wrong by threshold, withheld."""
    size = threshold.size
    return Sweep(threshold.copy(), cells[:, :size], cells[:, size : 2 * size], cells[:, -1], n)


def units_by_cell(cell: NDArray[np.int64], unit: NDArray[Any], weight: Floats, *, cells: int, units: int) -> Any:
    """A sparse table of weights, cells by units, summed in an order that does not depend on the order of rows."""
    from scipy import sparse  # heavy, and only drawn units need it

    if weight.size and (weight != weight[0]).any():  # sums of one same weight do not depend on their order
        order = np.lexsort((weight, unit, cell))
        weight, unit, cell = weight[order], unit[order], cell[order]
    return sparse.coo_array((weight, (cell, unit)), shape=(cells, units)).tocsr()


def numbered_units(rows: Rows) -> NDArray[np.int64]:
    """What is drawn, numbered from 0: the rows' units, or the rows themselves in an order of their own.

    The rows of a stratum in which nothing is answered are one unit: to draw among them would change nothing.
    """
    if rows.unit is not None:
        return rows.unit
    key = np.where(rows.answered, rows.confidence, -np.inf)
    order = np.lexsort((rows.weight, rows.right, rows.answered, key))
    unit, first = np.empty(order.size, dtype=np.int64), np.ones(order.size, dtype=np.bool_)
    if rows.stratum is not None:
        order = order[np.argsort(rows.stratum[order], kind="stable")]
        ordered, answers = rows.stratum[order], np.bincount(rows.stratum, weights=rows.answered)
        first[1:] = (ordered[1:] != ordered[:-1]) | (answers[ordered[1:]] > 0)
    unit[order] = np.cumsum(first) - 1
    return unit
