"""Which slices of the inputs a system does worse or better on than on the rest, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.arrays import Array, Flags
from demur.core.io.columns import JUDGED, MOST_SLICES, STRATUM, unknown_column
from demur.core.show.results import plain
from demur.core.stats.intervals import check_level, fisher, newcombe, sidak
from demur.core.stats.resampling import Rows
from demur.core.stats.strata import are_drawn_by_strata
from demur.core.stats.sweep import Sweep
from demur.returns.comparison.contrasts import fewest_units, pooled_estimate
from demur.returns.evaluate import too_many_slices
from demur.returns.measures import Estimate, area_from, area_influence
from demur.returns.table import Responses, slice_values

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
    aside = (*JUDGED, "input", "nbest", *((STRATUM,) if are_drawn_by_strata(frame) else ()))
    columns = [c for c in frame if c.name not in aside and not c.dtype.is_nested()]
    columns = [c for c in columns if FEWEST <= c.n_unique() <= MOST and (_counts(c) >= LEAST).sum() >= FEWEST]
    found = []
    for values in columns:
        rows = pl.DataFrame([frame["system"], frame["right"], values.alias("value")])
        sizes = rows.group_by("system", "value").agg(n=pl.len(), mixed=pl.col("right").n_unique())
        large = sizes.filter(pl.col("n") >= LEAST)
        telling = (large["mixed"] > 1).any() and not tells_correctness(frame, values)
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
            raise unknown_column(column, responses.frame.columns, "slices")
        if (values := responses.frame[column].n_unique()) > MOST_SLICES:
            raise too_many_slices(column, values)
    tests: list[_Tested] = []
    untested: list[Untested] = []
    for system in responses.systems:
        whole = _Whole(system, responses.of(system).frame, thresholds.get(system, math.nan))
        for column in columns:
            found, left = _column(whole, column, least)
            tests += found
            untested += left
    corrected = [test.corrected(len(tests), level) for test in tests]
    ordered = sorted(corrected, key=lambda test: (test.p_adjusted, test.p, -abs(test.difference)))
    return SliceDifferences(tuple(ordered), tuple(untested), tuple(columns), dict(thresholds), level)


AREA_LEVELS = 20_000
"""Confidences up to which all are told apart in areas; more, joined to so many, change an area by less than 1e-8."""


@dataclass(frozen=True, eq=False)
class _Whole:
    """All rows of a system, as far as every slice needs them."""

    system: str
    frame: pl.DataFrame
    threshold: float

    @cached_property
    def rows(self) -> Rows:
        return Rows.from_frame(self.frame)

    @cached_property
    def sweep(self) -> Sweep:
        return self.rows.sweep().coarsened(AREA_LEVELS)

    @cached_property
    def cell(self) -> NDArray[np.int64]:
        return self.rows.cells(self.sweep.threshold)

    @cached_property
    def events(self) -> dict[What, Flags]:
        """What each rate counts: errors that are returned, and inputs that are not."""
        returned = self.rows.answered & (self.rows.confidence >= self.threshold)  # nothing is at least NaN
        return {"error": returned & ~self.rows.right, "nonreturn": ~returned}

    @cached_property
    def area_pull(self) -> Array:
        """What each row adds to the area of all rows."""
        floor = float(self.sweep.withheld / self.sweep.total)
        return area_influence(self.sweep, floor, moving_start=True)[self.cell]

    def part(self, inside: Flags) -> Sweep:
        """The sweep of some rows, at the levels of all."""
        size = self.sweep.threshold.size
        counts = np.bincount(self.cell[inside], weights=self.rows.weight[inside], minlength=2 * size + 1)
        cells = counts[:size], counts[size : 2 * size], float(counts[-1])
        return Sweep(self.sweep.threshold.copy(), *cells, int(inside.sum()))

    def by_unit(self, pull: Array, inside: Flags | None = None) -> Array:
        """What each unit adds: dialogues where there are some, else rows; of some rows only the units they are of."""
        unit = self.rows.unit
        if unit is None:
            return pull if inside is None else np.asarray(pull[inside])
        sums: Array = np.bincount(unit, weights=pull).astype(np.float64)
        return sums if inside is None else sums[np.unique(unit[inside])]


def _column(whole: _Whole, column: str, least: int) -> tuple[list[_Tested], list[Untested]]:
    values, left = slice_values(whole.frame, column), []
    scopes = whole.frame.select(values, "out_of_scope").group_by("value").agg(pl.len(), pl.col("out_of_scope").all())
    gone = scopes.filter("out_of_scope").sort("value")
    if 0 < gone.height < scopes.height:  # as every answer to slices out of scope is wrong, they say nothing
        left = [Untested(whole.system, column, value, n, OUT_OF_SCOPE) for value, n, _ in gone.iter_rows()]
        kept = whole.frame.filter(~values.is_in(gone["value"].to_list()))
        whole, values = _Whole(whole.system, kept, whole.threshold), slice_values(kept, column)
    sizes = values.value_counts().sort("count", "value")
    if sizes.height < FEWEST:
        return [], left
    tested = sizes.head(1) if sizes.height == 2 else sizes
    found: list[_Tested] = []
    for value in sorted(tested["value"]):
        inside = (values == value).to_numpy()
        why = _too_few(whole, inside, least)
        if why is None:
            found += _tests(whole, column, value, inside)
        else:
            left.append(Untested(whole.system, column, value, int(inside.sum()), why))
    return found, left


def _too_few(whole: _Whole, inside: Flags, least: int) -> str | None:
    n = int(inside.sum())
    if min(n, inside.size - n) < least:
        few = f"{n:,} inputs" if n < least else f"{inside.size - n:,} inputs in the rest"
        return f"{few}, fewer than {least}"
    if whole.rows.unit is not None and (dialogues := fewest_units(whole.rows, inside)) < LEAST_DIALOGUES:
        return f"{dialogues:,} dialogues on one side, fewer than {LEAST_DIALOGUES}"
    if not min(whole.rows.weight[inside].sum(), whole.rows.weight[~inside].sum()) > 0:
        return "its inputs, or those of the rest, have no weight"
    return None


def _tests(whole: _Whole, column: str, value: str, inside: Flags) -> list[_Tested]:
    n, rows = int(inside.sum()), whole.rows
    fewer = min(n, inside.size - n)
    tested: dict[What, _Quantity] = {}
    for what, event in whole.events.items():
        rarer = min(float(event.mean()), float(1 - event.mean()))
        # exactly where something varies, otherwise with a few events to be expected each way
        enough = bool(event.any() and not event.all()) if rows.alike else fewer * rarer >= LEAST_ERRORS
        if not math.isnan(whole.threshold) and enough:
            tested[what] = _rate(whole, inside, event)
    expected = float(whole.sweep.errors / whole.sweep.total) * fewer
    if expected >= LEAST_ERRORS and whole.sweep.threshold.size > 1:
        tested["augrc"] = _area(whole, inside)
    about = (whole.system, column, value, n, inside.size - n)
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


def _rate(whole: _Whole, inside: Flags, event: Flags) -> _Quantity:
    """A rate on the slice less that on the rest."""
    weight = whole.rows.weight
    mine, other = (float(weight[side & event].sum() / weight[side].sum()) for side in (inside, ~inside))
    sides = (mine, _effective(whole, inside, event, mine)), (other, _effective(whole, ~inside, event, other))
    if whole.rows.alike:
        p = fisher(int((inside & event).sum()), int(inside.sum()), int(event.sum()), inside.size)
    else:
        pooled = float(weight[event].sum() / weight.sum())
        p = pooled_estimate(whole.rows, inside, event.astype(np.float64) - pooled, mine - other).p
    return mine, other, partial(newcombe, *sides), p


def _area(whole: _Whole, inside: Flags) -> _Quantity:
    """The area under the curve of the slice less that of the rest, each from its own start."""
    parts = [whole.part(side) for side in (inside, ~inside)]
    floors = [float(part.withheld / part.total) for part in parts]
    mine, other = (area_from(part, floor) for part, floor in zip(parts, floors, strict=True))
    apart = np.zeros(inside.size)
    for part, floor, side, sign in zip(parts, floors, (inside, ~inside), (1, -1), strict=True):
        influence = area_influence(part, floor, moving_start=True)[whole.cell[side]]
        apart[side] = sign * influence * whole.rows.weight[side] / part.total
    own = Estimate.of_units(mine - other, whole.by_unit(apart), max(1, fewest_units(whole.rows, inside) - 1))
    null = pooled_estimate(whole.rows, inside, whole.area_pull, mine - other)
    wider = max(own, null, key=lambda one: one.error)
    return mine, other, wider.interval, wider.p


def _effective(whole: _Whole, inside: Flags, event: Flags, rate: float) -> float:
    """Independent inputs that tell as much about a rate as those of one side."""
    weight = whole.rows.weight[inside]
    kish = float(weight.sum() ** 2 / np.square(weight).sum())
    if whole.rows.alike:
        return kish
    pull = np.where(inside, (event - rate) * whole.rows.weight / weight.sum(), 0.0)
    units = whole.by_unit(pull, inside)
    spread = float(np.square(units).sum()) * units.size / max(units.size - 1, 1)
    return min(kish, rate * (1 - rate) / spread) if spread > 0 else min(kish, float(units.size))
