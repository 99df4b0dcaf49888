"""Which slices of the inputs a system does worse or better on than on the rest, and how sure that is."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.arrays import Array, Flags
from demur.core.io.columns import DEPLOYED, JUDGED, MOST_SLICES, STRATUM, unknown_column
from demur.core.show.results import plain
from demur.core.stats.intervals import check_level, fisher, newcombe, sidak
from demur.core.stats.resampling import Rows
from demur.core.stats.strata import are_drawn_by_strata
from demur.core.stats.sweep import Sweep
from demur.returns.comparison.contrasts import fewest_units, pooled_estimate
from demur.returns.evaluate import too_many_slices
from demur.returns.judging import slice_values
from demur.returns.measures import Estimate, area_from, area_influence
from demur.returns.table import INPUT, Responses

What = Literal["error", "nonreturn", "augrc"]

LEAST = 30
"""Inputs that a slice and the rest need each to be tested."""

LEAST_DIALOGUES = 10
"""Dialogues that they need each, where inputs come in dialogues."""

LEAST_ERRORS = 5
"""Events to be expected in the smaller of the two where a test is not exact."""

FEWEST, MOST = 2, 20
"""Values of a column that is sliced by without being asked for."""

OUT_OF_SCOPE = "out of scope: every answer to it is wrong"


@dataclass(frozen=True, slots=True)
class SliceDifference:
    """One quantity on a slice less the same on the rest, with an interval, and the test of no difference."""

    system: str
    column: str
    value: str
    n: int
    rest: int
    what: What
    inside: float
    outside: float
    difference: float
    low: float
    high: float
    p: float
    p_adjusted: float
    """Corrected by Sidak's method, as the interval is, for all slices, systems and quantities tested together."""

    @property
    def part(self) -> str:
        """The slice as `column=value`."""
        return f"{self.column}={self.value}"


@dataclass(frozen=True, slots=True)
class Untested:
    """A slice, or a whole column, that was left out, and why."""

    system: str
    column: str
    value: str | None
    n: int
    why: str


@dataclass(frozen=True, slots=True)
class SliceDifferences:
    """Every slice that was tested, in order of p-value, and those that were not."""

    tests: tuple[SliceDifference, ...]
    untested: tuple[Untested, ...]
    columns: tuple[str, ...]
    thresholds: Mapping[str, float]
    level: float

    @property
    def shown(self) -> tuple[SliceDifference, ...]:
        """The differences that hold after correction: the chance that any of them is a false alarm is 1 - level."""
        return tuple(test for test in self.tests if test.p_adjusted < 1 - self.level)

    def frame(self) -> pl.DataFrame:
        """Every test as a row."""
        schema = list(SliceDifference.__dataclass_fields__)
        return pl.DataFrame(map(astuple, self.tests), schema=schema, orient="row", infer_schema_length=None)

    def to_dict(self) -> dict[str, Any]:
        """The tests as plain values."""
        tests, untested = ([asdict(one) for one in several] for several in (self.tests, self.untested))
        about = {"columns": list(self.columns), "thresholds": dict(self.thresholds)}
        values: dict[str, Any] = plain({**about, "tests": tests, "untested": untested, "level": self.level})
        return values


def _counts(values: pl.Series) -> pl.Series:
    """How often each value occurs; Polars would take some names of columns for patterns."""
    return values.alias("value").unique_counts()


def tells_correctness(frame: pl.DataFrame, values: pl.Series) -> bool:
    """Whether a column of judged rows is a function of correctness: of no value both right and wrong answers.

    Values of fewer than five answers are not looked at, and of the others some must be right and some wrong.
    """
    if (_counts(values) >= LEAST_ERRORS).sum() < FEWEST:  # of thousands of columns most end here
        return False
    answers = pl.DataFrame([frame["answered"], frame["right"], values.alias("value")]).lazy().filter("answered")
    shares = answers.group_by("value").agg(n=pl.len(), share=pl.col("right").mean()).filter(pl.col("n") >= LEAST_ERRORS)
    return set(shares.collect()["share"]) == {0.0, 1.0}


def slice_columns(responses: Responses) -> tuple[str, ...]:
    """The columns worth slicing by: 2 to 20 values, two of them with 30 inputs each in some system.

    A column that says outright whether answers are right is left out, as is one that is the same for all.

    >>> from demur.returns.table import Reading, responses as table
    >>> rows = [{"id": k, "correct": k % 3 > 0, "confidence": k, "noise": k % 2, "note": str(k)} for k in range(80)]
    >>> slice_columns(table(rows, reading=Reading(keep=("*",))))
    ('noise',)
    """
    frame = responses.frame
    aside = (*JUDGED, DEPLOYED, INPUT, "input", "nbest", *((STRATUM,) if are_drawn_by_strata(frame) else ()))
    columns = [c for c in frame if c.name not in aside and not c.dtype.is_nested()]
    columns = [c for c in columns if FEWEST <= c.n_unique() <= MOST and (_counts(c) >= LEAST).sum() >= FEWEST]
    found = []
    for values in columns:
        rows = pl.DataFrame([frame["system"], frame["right"], values.alias("value")])
        sizes = rows.group_by("system", "value").agg(n=pl.len(), share=pl.col("right").mean())
        large = sizes.filter(pl.col("n") >= LEAST)
        telling = large["share"].is_between(0, 1, closed="none").any() and not tells_correctness(frame, values)
        if telling and large.group_by("system").len()["len"].max() >= FEWEST:  # type: ignore[operator]
            found.append(values.name)
    return tuple(found)


def slice_differences(
    responses: Responses,
    thresholds: Mapping[str, float],
    columns: Sequence[str],
    *,
    level: float = 0.95,
    least: int = LEAST,
) -> SliceDifferences:
    """Each slice of each system against the rest of its inputs: errors and non-returns at one threshold, and the area.

    The threshold is the system's own, the same for all its slices, as it is in use; NaN returns nothing. Rates of
    inputs that count alike are tested exactly (Fisher), others and the area by standard errors that take turns of a
    dialogue together and, under no difference, all inputs for one population. Of a column with two values only the
    rarer is tested: the other is its mirror. Values that only inputs out of scope have are set aside, so that the
    others are held against what could be answered.
    """
    check_level(level)
    for column in columns:
        if column not in responses.frame.columns:
            own = [name for name in responses.frame.columns if name not in JUDGED and name != INPUT]
            raise unknown_column(column, own, "slices")
        if (values := responses.frame[column].n_unique()) > MOST_SLICES:
            raise too_many_slices(column, values)
    names = responses.systems
    wholes = (WholeSystem(name, responses.of(name).frame, thresholds.get(name, math.nan)) for name in names)
    cuts = ((whole, column) for whole in wholes for column in columns)  # one system is held at a time
    return compare_slices(cuts, thresholds, level=level, least=least)


def compare_slices(
    cuts: Iterable[tuple[WholeSystem, str]], thresholds: Mapping[str, float], *, level: float, least: int
) -> SliceDifferences:
    """Every slice of systems cut by columns against the rest, corrected for all tests made."""
    tests: list[_Tested] = []
    untested: list[Untested] = []
    columns = dict[str, None]()
    for whole, column in cuts:
        found, left = _column(whole, column, least)
        tests += found
        untested += left
        columns[column] = None
    corrected = [test.corrected(len(tests), level) for test in tests]
    ordered = sorted(corrected, key=lambda test: (test.p_adjusted, test.p, -abs(test.difference)))
    return SliceDifferences(tuple(ordered), tuple(untested), tuple(columns), dict(thresholds), level)


AREA_LEVELS = 20_000
"""Confidences up to which all are told apart in areas; more, joined to so many, change an area by less than 1e-8."""


@dataclass(frozen=True, eq=False)
class WholeSystem:
    """All rows of a system, as far as every slice needs them."""

    system: str
    frame: pl.DataFrame
    threshold: float

    @cached_property
    def rows(self) -> Rows:
        """The rows as arrays."""
        return Rows.from_frame(self.frame)

    @cached_property
    def n(self) -> int:
        """How many rows there are."""
        return self.rows.n

    @cached_property
    def times(self) -> Array | None:
        """How many inputs each row stands for; None where it stands for one."""
        return None

    @cached_property
    def alike(self) -> bool:
        """Whether rows are independent and count alike, so that slices are compared by their counts alone."""
        return self.rows.alike

    @cached_property
    def sweep(self) -> Sweep:
        """The sweep of all rows, at levels that all slices share."""
        return self.rows.sweep().coarsened(AREA_LEVELS)

    @cached_property
    def cell(self) -> NDArray[np.int64]:
        """The cell of each row."""
        return self.rows.cells(self.sweep.threshold)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Rows in each cell."""
        return np.bincount(self.cell, minlength=2 * self.sweep.threshold.size + 1)

    @cached_property
    def events(self) -> dict[What, Flags]:
        """What each rate counts: errors that are returned, and inputs that are not."""
        returned = self.rows.answered & (self.rows.confidence >= self.threshold)  # nothing is at least NaN
        return {"error": returned & ~self.rows.right, "nonreturn": ~returned}

    @cached_property
    def marked(self) -> dict[What, int]:
        """How many rows each rate counts."""
        return {what: int(event.sum()) for what, event in self.events.items()}

    @cached_property
    def area_pull(self) -> Array:
        """What a row of each cell adds to the area of all rows."""
        return _area_pull(self.sweep)

    @cached_property
    def area_variance(self) -> float:
        """The variance of what rows that count alike add to the area."""
        return _spread(self.area_pull, self.counts) / (self.n - 1)

    def part(self, counts: Array | NDArray[np.int64], n: int) -> Sweep:
        """The sweep of some rows, at the levels of all, from the weight in each cell."""
        size = self.sweep.threshold.size
        return Sweep(self.sweep.threshold.copy(), counts[:size], counts[size : 2 * size], float(counts[-1]), n)

    def out_of_scope(self, column: str) -> dict[str, int]:
        """The values of a column that only inputs out of scope have, with their rows; none where all are of the kind.

        As every answer to them is wrong, they say nothing.
        """
        if not self.frame["out_of_scope"].any():
            return {}
        values = slice_values(self.frame, column)
        scopes = self.frame.select(values, "out_of_scope").group_by("value").agg(pl.len(), pl.col("out_of_scope").all())
        gone = scopes.filter("out_of_scope").sort("value")
        return {value: n for value, n, _ in gone.iter_rows()} if gone.height < scopes.height else {}

    def without(self, column: str, values: Collection[str]) -> WholeSystem:
        """The rows that have none of these values."""
        kept = self.frame.filter(~slice_values(self.frame, column).is_in(list(values)))
        return WholeSystem(self.system, kept, self.threshold)

    def slices(self, column: str) -> dict[str, tuple[int, Callable[[], CountedSlice]]]:
        """The slices by the values of a column, in order, with their rows; one is made when it is looked at."""
        values = slice_values(self.frame, column)
        names = values.unique().sort()
        code = values.cast(pl.Enum(names)).to_physical().to_numpy()
        order, sizes = np.argsort(code, kind="stable"), np.bincount(code)
        places = np.split(order, np.cumsum(sizes)[:-1])
        kind = SliceOfRows if self.alike else WeighedSlice
        return {name: (mine.size, partial(kind, self, mine)) for name, mine in zip(names, places, strict=True)}


def _area_pull(sweep: Sweep) -> Array:
    return area_influence(sweep, floor_of(sweep), moving_start=True)


def floor_of(sweep: Sweep) -> float:
    """The share of all inputs that has no answer."""
    return float(sweep.withheld / sweep.total)


def _spread(values: Array, counts: NDArray[np.int64]) -> float:
    """The sum of squared deviations of values that occur so often."""
    mean = float((values * counts).sum() / counts.sum())
    return float((np.square(values - mean) * counts).sum())


def _column(whole: WholeSystem, column: str, least: int) -> tuple[list[_Tested], list[Untested]]:
    gone = whole.out_of_scope(column)
    left = [Untested(whole.system, column, value, n, OUT_OF_SCOPE) for value, n in gone.items()]
    kept = whole.without(column, gone) if gone else whole
    slices = kept.slices(column)
    if len(slices) < FEWEST:
        return [], left
    rarest = min(slices, key=lambda name: slices[name][0])
    found: list[_Tested] = []
    for name in [rarest] if len(slices) == FEWEST else slices:
        n, make = slices[name]
        part = make()
        why = part.too_few(least)
        if why is None:
            found += _tests(kept, column, name, part)
        else:
            left.append(Untested(whole.system, column, name, n, why))
    return found, left


def _tests(whole: WholeSystem, column: str, value: str, part: CountedSlice) -> list[_Tested]:
    size, fewer = whole.n, min(part.n, part.rest)
    tested: dict[What, _Quantity] = {}
    for what, marked in whole.marked.items():
        # exactly where something varies, otherwise with a few events to be expected each way
        rarer = min(marked, size - marked)
        enough = rarer > 0 if whole.alike else fewer * rarer / size >= LEAST_ERRORS
        if not math.isnan(whole.threshold) and enough:
            tested[what] = part.rate(what)
    expected = float(whole.sweep.errors / whole.sweep.total) * fewer
    if expected >= LEAST_ERRORS and whole.sweep.threshold.size > 1:
        tested["augrc"] = part.area()
    about = (whole.system, column, value, part.n, part.rest)
    return [_Tested(about, what, *quantity) for what, quantity in tested.items()]


Ends = tuple[float, float]
_Quantity = tuple[float, float, Callable[[float], Ends], float]
"""A quantity on the slice and on the rest, the interval of their difference at a level, and a p-value."""


@dataclass(frozen=True, slots=True)
class _Tested:
    """A test whose interval waits for the number of tests that it is corrected for."""

    about: tuple[str, str, str, int, int]
    what: What
    inside: float
    outside: float
    interval: Callable[[float], Ends]
    p: float

    def corrected(self, tests: int, level: float) -> SliceDifference:
        ends = self.interval(level ** (1 / tests))
        values = (self.inside, self.outside, self.inside - self.outside, *ends, self.p, sidak(self.p, tests))
        return SliceDifference(*self.about, self.what, *values)


class CountedSlice(ABC):
    """A slice of rows that are independent and count alike: everything follows from how many there are of each kind."""

    def __init__(self, whole: WholeSystem, n: int) -> None:
        self.whole, self.n, self.rest = whole, n, whole.n - n

    @abstractmethod
    def hits(self, what: What) -> int:
        """How many rows of the slice a rate counts."""

    @abstractmethod
    def in_cells(self) -> NDArray[np.int64]:
        """Rows of the slice in each cell."""

    def too_few(self, least: int) -> str | None:
        """Why the slice cannot be tested."""
        if min(self.n, self.rest) >= least:
            return None
        few = f"{self.n:,} inputs" if self.n < least else f"{self.rest:,} inputs in the rest"
        return f"{few}, fewer than {least}"

    def rate(self, what: What) -> _Quantity:
        """A rate on the slice and on the rest, tested exactly."""
        marked, hits = self.whole.marked[what], self.hits(what)
        mine, other = hits / self.n, (marked - hits) / self.rest
        p = fisher(hits, self.n, marked, self.n + self.rest)
        return mine, other, partial(newcombe, (mine, float(self.n)), (other, float(self.rest))), p

    def area(self) -> _Quantity:
        """The area under the curve of the slice and of the rest, each from its own start."""
        whole, all_rows, inside = self.whole, self.n + self.rest, self.in_cells()
        sides, sizes = (inside, whole.counts - inside), (self.n, self.rest)
        parts = [whole.part(counts, n) for counts, n in zip(sides, sizes, strict=True)]
        mine, other = (area_from(part, floor_of(part)) for part in parts)
        pulls = [sign * _area_pull(part) / n for part, n, sign in zip(parts, sizes, (1, -1), strict=True)]
        own = _spread(np.concatenate(pulls), np.concatenate(sides)) * all_rows / (all_rows - 1)
        null = whole.area_variance * (1 / self.n + 1 / self.rest)
        wider = Estimate(mine - other, math.sqrt(max(own, null)), max(1, min(sizes) - 1))
        return mine, other, wider.interval, wider.p


class SliceOfRows(CountedSlice):
    """A slice of rows in memory, at their places among all."""

    def __init__(self, whole: WholeSystem, places: NDArray[np.int64]) -> None:
        super().__init__(whole, places.size)
        self.places = places

    def hits(self, what: What) -> int:
        """How many rows of the slice a rate counts."""
        return int(self.whole.events[what][self.places].sum())

    def in_cells(self) -> NDArray[np.int64]:
        """Rows of the slice in each cell."""
        return np.bincount(self.whole.cell[self.places], minlength=self.whole.counts.size)


class WeighedSlice(SliceOfRows):
    """A slice of weighted rows or of dialogues, tested by standard errors that take turns of a dialogue together."""

    def __init__(self, whole: WholeSystem, places: NDArray[np.int64]) -> None:
        super().__init__(whole, places)
        self.inside = np.zeros(whole.rows.n, np.bool_)
        self.inside[places] = True

    def too_few(self, least: int) -> str | None:
        """Why the slice cannot be tested."""
        rows = self.whole.rows
        if (few := super().too_few(least)) is not None:
            return few
        if rows.unit is not None and (dialogues := fewest_units(rows, self.inside)) < LEAST_DIALOGUES:
            return f"{dialogues:,} dialogues on one side, fewer than {LEAST_DIALOGUES}"
        if not min(rows.weight[self.inside].sum(), rows.weight[~self.inside].sum()) > 0:
            return "its inputs, or those of the rest, have no weight"
        return None

    def rates(self, what: What) -> tuple[float, float]:
        """A rate on the slice and on the rest."""
        weight, event, sides = self.whole.rows.weight, self.whole.events[what], (self.inside, ~self.inside)
        mine, other = (float(weight[side & event].sum() / weight[side].sum()) for side in sides)
        return mine, other

    def rate(self, what: What) -> _Quantity:
        """A rate on the slice and on the rest, with standard errors."""
        rows, event, sides = self.whole.rows, self.whole.events[what], (self.inside, ~self.inside)
        mine, other = self.rates(what)
        own, others = ((r, self._effective(side, event, r)) for r, side in zip((mine, other), sides, strict=True))
        pooled = float(rows.weight[event].sum() / rows.weight.sum())
        centred = event.astype(np.float64) - pooled
        p = pooled_estimate(rows, self.inside, centred, mine - other, self.whole.times).p
        return mine, other, partial(newcombe, own, others), p

    def sweeps(self) -> list[Sweep]:
        """The sweeps of the rows on the slice and on the rest, at the levels of all."""
        whole, sides = self.whole, (self.inside, ~self.inside)
        cells = 2 * whole.sweep.threshold.size + 1
        weights = [np.bincount(whole.cell[side], weights=whole.rows.weight[side], minlength=cells) for side in sides]
        return [whole.part(weight, n) for weight, n in zip(weights, (self.n, self.rest), strict=True)]

    def areas(self) -> tuple[float, float]:
        """The area under the curve of the slice and of the rest, each from its own start."""
        mine, other = (area_from(part, floor_of(part)) for part in self.sweeps())
        return mine, other

    def area(self) -> _Quantity:
        """The areas, with standard errors."""
        whole, rows, sides = self.whole, self.whole.rows, (self.inside, ~self.inside)
        parts, (mine, other) = self.sweeps(), self.areas()
        apart = np.zeros(self.inside.size)
        for part, side, sign in zip(parts, sides, (1, -1), strict=True):
            apart[side] = sign * _area_pull(part)[whole.cell[side]] * rows.weight[side] / part.total
        freedom = max(1, fewest_units(rows, self.inside) - 1)
        own = Estimate.of_units(mine - other, self._by_unit(apart), freedom)
        null = pooled_estimate(rows, self.inside, whole.area_pull[whole.cell], mine - other, whole.times)
        wider = max(own, null, key=lambda one: one.error)
        return mine, other, wider.interval, wider.p

    def _by_unit(self, pull: Array, side: Flags | None = None) -> Array:
        """What each unit adds: dialogues where there are some, otherwise rows; of one side only the units it is of."""
        unit = self.whole.rows.unit
        if unit is None:
            return pull if side is None else np.asarray(pull[side])
        sums: Array = np.bincount(unit, weights=pull).astype(np.float64)
        return sums if side is None else sums[np.unique(unit[side])]

    def _effective(self, side: Flags, event: Flags, rate: float) -> float:
        """Independent inputs that tell as much about a rate as those of one side."""
        weight, times = self.whole.rows.weight[side], self.whole.times
        squares = np.square(weight) if times is None else np.square(weight) / times[side]
        kish = float(weight.sum() ** 2 / squares.sum())
        pull = np.where(side, (event - rate) * self.whole.rows.weight / weight.sum(), 0.0)
        units = self._by_unit(pull, side)
        spread = float(np.square(units).sum()) * units.size / max(units.size - 1, 1)
        return min(kish, rate * (1 - rate) / spread) if spread > 0 else min(kish, float(units.size))
