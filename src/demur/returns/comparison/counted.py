"""Systems compared where their rows are: an engine counts by bucket and confidence, and only counts come here.

The same inputs fall into the same buckets in all systems, so differences are taken by bucket and no row is joined with
another. Sums of hashed ids show whether each bucket has the same inputs. A join by id, inside the engine, gives what
buckets cannot: the exact test of single answers, and standard errors by input or dialogue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import sqrt
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from demur.core.arrays import Array
from demur.core.engines.engine import BUCKETS, Engine, Lazy, beside, collect_frame, engine_class
from demur.core.engines.scanning import scan
from demur.core.io.columns import candidates
from demur.core.io.tables import paired_note, unpaired_note
from demur.core.show.numbers import percent
from demur.core.show.results import Step
from demur.core.stats.resampling import CELL_LEVELS, Draws, Sample, UnitSpread, stacked
from demur.core.stats.sweep import Sweep
from demur.errors import DataError, UsageError
from demur.returns.comparison.compare import Comparison, compare
from demur.returns.comparison.systems import ComparedSystems
from demur.returns.counting import Counting, EngineLog, engine_for, judged_in_engine, lakes_in, tallies
from demur.returns.engine_judging import LazyResponses
from demur.returns.evaluate import Evaluations, evaluate, heap_notes
from demur.returns.pairing import notes_of_each, read_by_confidence
from demur.returns.table import BY_ROW, Reading, named_systems
from demur.returns.tally import ConfidenceGrid, Tally, TallySource

JOIN_UP_TO = 1_000_000
"""Rows of each system up to which a few systems are joined by id without being asked to."""

MOST_JOINED = 5
"""Systems up to which that is done."""

LOOKED_UP = 16
"""Cells of confidence, as a power of two, in which a join looks up what a row adds, where there are more values."""


@dataclass(frozen=True, eq=False)
class CountedSystem:
    """A system as its tally tells it; what comparisons read by row is by cell here.

    `frame` has the judged rows in the engine where they may be joined, otherwise it is None.
    """

    tally: Tally
    paired: bool
    frame: Lazy | None = None

    @cached_property
    def source(self) -> TallySource:
        """What replicates are drawn from."""
        return TallySource(self.tally)

    @property
    def alike(self) -> bool:
        """Whether rows are drawn one by one: none is paired, and all count alike."""
        return not self.paired and self.source.alike

    @property
    def n(self) -> int:
        """How many rows there are."""
        return self.tally.n

    @property
    def units(self) -> int:
        """How many units are drawn: buckets, or rows."""
        return self.n if self.alike else self.source.cells.buckets

    @cached_property
    def independent(self) -> float:
        """How many dialogues there are, on the low side where they are not counted one by one, or else rows."""
        if not self.tally.clustered:
            return float(self.n)
        if self.frame is None:
            return self.tally.fewest_dialogues
        return float(collect_frame(self.frame.select("unit").unique("unit").select(nw.len())).item())

    @property
    def effective_n(self) -> float:
        """Kish's number of equally weighted rows that would tell as much."""
        return self.tally.effective_n

    @property
    def right_share(self) -> float:
        """Right answers as a share of all rows."""
        return float(self.tally.sweep.right.sum() / self.tally.sweep.total)

    @cached_property
    def coarse(self) -> Sweep:
        """The sweep at the levels of the replicates."""
        if self.alike:
            return self.tally.sweep.coarsened(CELL_LEVELS)
        return self.source.cells.coarse(CELL_LEVELS, self.n)

    @cached_property
    def table(self) -> Array:
        """Weights by cell and bucket."""
        return self.source.cells.by_bucket(self.coarse.threshold)

    @property
    def are_right(self) -> Array:
        """Of each cell, 1 where it is of right answers, otherwise 0."""
        return np.repeat([1.0, 0.0], [self.coarse.right.size, self.coarse.wrong.size + 1])

    @property
    def are_withheld(self) -> Array:
        """Of each cell, 1 where it has no answers, otherwise 0."""
        return np.repeat([0.0, 1.0], [self.coarse.right.size + self.coarse.wrong.size, 1])

    def sweep(self) -> Sweep:
        """The exact sweep."""
        return self.tally.sweep

    def spread_out(self, of_cells: Callable[[Sweep], Array]) -> Array:
        """What a row of each cell adds to a statistic."""
        return of_cells(self.coarse)

    def own_spread(self, influence: Array) -> UnitSpread:
        """The spread of a statistic of this system by rows, or by buckets."""
        if not self.alike:
            return UnitSpread.of(np.sort(self._by_bucket(influence)))
        coarse = self.coarse
        counts = np.concatenate([coarse.right, coarse.wrong, [coarse.withheld]])
        deviation = influence - float(counts @ influence) / self.n
        return UnitSpread(float(counts @ np.square(deviation)) / self.n**2, self.n)

    def paired_spread(self, other: CountedSystem, influence: tuple[Array, Array]) -> UnitSpread:
        """The spread of a statistic of this system less that of another: by bucket, or by unit where rows are joined.

        What rows add is centred, so that the sum of squares loses no digits to the mean.
        """
        if self.frame is None or other.frame is None:
            sides = (side._by_bucket(part) for side, part in zip((self, other), influence, strict=True))
            return UnitSpread.of(np.sort(np.subtract(*sides)))
        mine, theirs = self._by_row(influence[0]), other._by_row(influence[1])
        both = nw.concat([mine, theirs.with_columns(pull=-nw.col("pull"))], how="vertical")
        by_unit = both.group_by("unit").agg(nw.col("pull").sum()).with_columns(square=nw.col("pull") * nw.col("pull"))
        units, total, squares = collect_frame(
            by_unit.select(nw.len(), nw.col("pull").sum(), nw.col("square").sum())
        ).row(0)
        return UnitSpread(squares - total**2 / units, units)

    def errs(self, threshold: float) -> Lazy:
        """The ids in the engine with 1 where the answer at a threshold is wrong, otherwise 0."""
        assert self.frame is not None
        answer = nw.col("answered") & ~nw.col("right") & (nw.col("confidence") >= threshold)
        return self.frame.select("id", errs=nw.when(answer).then(1).otherwise(0))

    def _by_bucket(self, influence: Array) -> Array:
        return np.asarray(influence @ self.table / self.coarse.total)

    def _by_row(self, influence: Array) -> Lazy:
        """What each row in the engine adds, looked up by its confidence."""
        assert self.frame is not None
        exact, number = self.tally.sweep, nw.col("confidence").cast(nw.Float64) + 0.0  # -0.0 is 0.0
        keys, key = exact.threshold, number
        if exact.upper is not None or keys.size > 2**LOOKED_UP:
            grid = ConfidenceGrid.over(float(np.abs(keys[np.isfinite(keys)]).max(initial=0.0)), LOOKED_UP)
            keys, key = np.unique(grid.of(keys)), grid.key(number)
        level = np.maximum(np.searchsorted(self.coarse.threshold, keys, side="right") - 1, 0)
        scaled = influence / self.coarse.total
        adds = {"if_right": scaled[level], "if_wrong": scaled[self.coarse.threshold.size + level]}
        rows = self.frame.with_columns(cell=key)
        rows = rows.join(beside(rows, pl.DataFrame({"cell": keys, **adds})), on="cell", how="left")
        answer = nw.when(nw.col("right")).then(nw.col("if_right")).otherwise(nw.col("if_wrong"))
        pull = nw.when(nw.col("answered")).then(answer).otherwise(nw.lit(float(scaled[-1])))
        weighted = "weight" in self.frame.collect_schema().names()
        return rows.select("unit", pull=pull * nw.col("weight") if weighted else pull)


class TalliesTogether(ComparedSystems):
    """Systems that an engine counted, paired by buckets where all have the same ids."""

    def __init__(
        self,
        counted: Mapping[str, Tally],
        frames: Mapping[str, Lazy],
        *,
        unpaired: bool = False,
        trials: bool = False,
        join: bool = False,
    ) -> None:
        unnamed = [name for name, tally in counted.items() if tally.marks is None]
        self.counted, self.trials = dict(counted), trials
        self.paired, self.dropped = not (unpaired or unnamed), dict.fromkeys(counted, 0)
        few = len(counted) <= MOST_JOINED and all(tally.n <= JOIN_UP_TO for tally in counted.values())
        self.joined = self.paired and (join or few)
        self.frames = dict(frames) if self.joined else {}
        if not self.paired:
            if join:
                raise UsageError("`join` pairs answers by id: " + unpaired_note(unnamed, unpaired))
            self.note = unpaired_note(unnamed, unpaired)
            return
        refuse_other_inputs(self.counted)
        first = next(iter(counted.values()))
        self.note = paired_note(first.n, self.dropped)
        if not self.joined:
            buckets = first.buckets
            within = percent(1 / sqrt(2 * max(buckets - 1, 1)))
            self.notes = (
                f"differences are taken by {buckets:,} buckets of hashed {'dialogues' if first.clustered else 'ids'}: "
                f"values are exact, their standard errors hold to about {within}; `join` computes them by id",
            )

    @cached_property
    def rows(self) -> Mapping[str, CountedSystem]:
        """Each system by its cells."""
        return {name: CountedSystem(tally, self.paired, self.frames.get(name)) for name, tally in self.counted.items()}

    def evaluate(self, **how: Any) -> Evaluations:
        """The evaluation of each system."""
        return evaluate(list(self.counted.values()), **how)

    def replicates(self, names: Sequence[str], replicates: int, seed: int) -> dict[str, Sweep]:
        """Replicates of some systems; paired ones have the same buckets drawn."""
        several = {name: self.rows[name] for name in names}
        if not self.paired:
            return {
                name: Sample(one.source, replicates, self.seed_of(name, seed)).drawn for name, one in several.items()
            }
        parts: dict[str, list[Array]] = {name: [] for name in names}
        for chunk in Draws(several[names[0]].units, replicates, seed):
            for name, one in several.items():
                parts[name].append(chunk @ one.table.T)
        return {
            name: stacked(one.coarse.threshold, np.concatenate(parts[name]), one.n) for name, one in several.items()
        }

    def why_no_pairs(self, pair: tuple[str, str]) -> str | None:
        """Why single answers are no pairs."""
        if self.trials:
            return "inputs were tried several times, so single answers are no pairs"
        return None if self.joined else "answers were counted by bucket, not joined by id: `join` does that"

    def discordant(self, pair: tuple[str, str], thresholds: tuple[float, float]) -> tuple[int, int]:
        """Inputs on which only one of the two errs, from a join by id inside the engine."""
        one, two = (self.rows[name].errs(threshold) for name, threshold in zip(pair, thresholds, strict=True))
        both = nw.concat([one, two.with_columns(errs=-nw.col("errs"))], how="vertical")
        by_id = both.group_by("id").agg(nw.col("errs").sum(), rows=nw.len())
        alone = {name: nw.when(nw.col("errs") == sign).then(1).count() for name, sign in (("a", 1), ("b", -1))}
        found = collect_frame(by_id.select(**alone, most=nw.col("rows").max())).row(0, named=True)
        if found["most"] > 2:
            rule = "an id occurs more than once in a system, so that answers cannot be paired"
            raise DataError(rule, where=" and ".join(pair), fix="`check_ids` names it")
        return found["a"], found["b"]


def refuse_other_inputs(counted: Mapping[str, Tally]) -> None:
    """Refuses systems that do not have the same ids, with the same targets, in the same dialogues."""
    (name, first), *others = counted.items()
    fix = "`unpaired` compares without pairing; `engine` memory with `matched` takes the ids that all have"
    for other, tally in others:
        assert first.marks is not None
        assert tally.marks is not None
        where = f"{name} and {other}:"
        if first.clustered != tally.clustered:
            rule = "one has dialogues and the other has none, so that they have no units in common"
            raise DataError(rule, where=where, fix="name the dialogues in both, or in none")
        both = first.marks.join(tally.marks, on="bucket", how="full", suffix="_other", nulls_equal=True)
        apart = {
            column: both.filter(pl.col(column).ne_missing(pl.col(f"{column}_other"))).height
            for column in ("id_mark", "input_mark")
        }
        if not any(apart.values()):
            continue
        if first.marks["id_mark"].sum() == tally.marks["id_mark"].sum() and apart["id_mark"]:
            raise DataError("they have the same ids, but in other dialogues", where=where, fix=fix)
        if apart["id_mark"]:
            rule = f"they do not have the same ids: {first.n:,} and {tally.n:,} rows, "
            rule += f"which differ in {apart['id_mark']:,} of {BUCKETS:,} buckets of hashed ids"
            raise DataError(rule, where=where, fix=fix)
        rule = f"an id has one target here and another there, in {apart['input_mark']:,} of {BUCKETS:,} buckets of ids"
        raise DataError(rule, where=where, fix="do the ids mean the same inputs? `unpaired` compares without pairing")


@dataclass(frozen=True, slots=True)
class _LogToJudge:
    """A log to be judged by itself: what names its systems, its data, and how it is read."""

    name: str | None
    column: str | None
    data: tuple[Any, ...]
    reading: Reading


@dataclass(frozen=True, eq=False)
class CountedSystems:
    """The systems of logs as an engine counted them, and the rows of each where they are.

    `tallies` are those of each system, the whole first, then its slices.
    """

    tallies: Mapping[str, Sequence[Tally]]
    judged: Mapping[str, LazyResponses]
    logs: tuple[EngineLog, ...]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]

    def side_by_side(
        self, systems: Sequence[str] | None = None, *, unpaired: bool = False, join: bool = False
    ) -> TalliesTogether:
        """Systems brought together; those that are asked for in their order."""
        chosen = _choose(list(self.tallies), systems)
        return TalliesTogether(
            {name: self.tallies[name][0] for name in chosen},
            {name: self.judged[name].frame for name in chosen},
            unpaired=unpaired,
            trials=any(one.trials for one in self.judged.values()),
            join=join,
        )


@contextmanager
def count_systems(
    data: Sequence[Any],
    reading: Reading,
    how: Counting,
    *,
    confidences: Mapping[str, str] | Sequence[str] = (),
    by: str | None = None,
    shown: Sequence[str] | None = None,
    step: Step,
) -> Iterator[CountedSystems | None]:
    """The systems of logs that an engine counts; None for data that memory is to read.

    Where a column names systems, all logs are one. Otherwise each folder, glob, file or frame is a system.
    """
    engine = engine_of_systems(data, how)
    if engine is None:
        yield None
        return
    started = None if engine == "frames" else engine_class(engine)(spark_master=how.spark_master)
    with ExitStack() as logs:
        parts = _parts(data, _by_one_column(reading), engine, started, confidences)
        asked: dict[str, Any] = {"by": by, "shown": shown, "pairing": by is None, "started": started, "step": step}
        found: dict[str, tuple[LazyResponses, EngineLog]] = {}
        for part in parts:
            own = logs.enter_context(judged_in_engine(part.data, part.reading, replace(how, name=None), **asked))
            assert own is not None
            found[_label(part, own[1], found)] = own
        counted: dict[str, list[Tally]] = {}
        rows: dict[str, LazyResponses] = {}
        for (label, (judged, _)), part in zip(found.items(), parts, strict=True):
            several = judged.system is None and not lakes_in(part.data)
            for tally in tallies(judged, exact_up_to=how.exact_up_to, step=step):
                name = _name(tally.system if several else label, part.column, several and len(parts) > 1)
                counted.setdefault(name, []).append(tally.named(name))
                own_rows = judged.frame.filter(nw.col("system") == tally.system) if several else judged.frame
                rows[name] = replace(judged, frame=own_rows)
        yield CountedSystems(
            counted,
            rows,
            tuple(log for _, log in found.values()),
            notes_of_each({label: (*log.notes, *judged.notes) for label, (judged, log) in found.items()}),
            notes_of_each({label: judged.warnings for label, (judged, _) in found.items()}),
        )


@contextmanager
def systems_in_engine(
    data: Sequence[Any],
    reading: Reading,
    how: Counting,
    *,
    systems: Sequence[str] | None = None,
    confidences: Mapping[str, str] | Sequence[str] = (),
    unpaired: bool = False,
    join: bool = False,
    step: Step,
) -> Iterator[tuple[TalliesTogether, tuple[str, ...], tuple[str, ...]] | None]:
    """The systems of logs that an engine counts side by side, with notes and warnings; None as for `count_systems`."""
    with count_systems(data, reading, how, confidences=confidences, step=step) as counted:
        if counted is None:
            yield None
            return
        yield counted.side_by_side(systems, unpaired=unpaired, join=join), counted.notes, counted.warnings


def engine_of_systems(data: Sequence[Any], how: Counting) -> str | None:
    """The engine to start, "frames" for lazy frames, which are where they are, or None for memory."""
    values = list(data[0].values()) if len(data) == 1 and named_systems(data[0]) else list(data)
    if all(isinstance(one, str | Path) for one in values) or lakes_in(values):
        return engine_for(values, how, apart=True)
    lazy = [isinstance(nw.from_native(one, pass_through=True), nw.LazyFrame) for one in values]
    if how.engine == "memory" or not all(lazy):
        if how.engine not in ("auto", "memory"):
            raise UsageError("`engine` is for files, or for lazy frames of that engine")
        return None
    return "frames"


def _by_one_column(reading: Reading) -> Reading:
    """The reading with the column that pairs inputs as their id."""
    if not reading.pair_by:
        return reading
    if reading.pair_by == BY_ROW or len(reading.pair_by) > 1:
        raise UsageError(
            "`pair_by` takes one column inside an engine, where rows have no place; `engine` memory takes more"
        )
    return replace(reading, columns={**reading.columns, "id": reading.pair_by[0]}, pair_by=())


def _parts(
    data: Sequence[Any],
    reading: Reading,
    engine: str,
    started: Engine | None,
    confidences: Mapping[str, str] | Sequence[str],
) -> list[_LogToJudge]:
    """The logs that are judged apart: one, or one for each source, and each once for every column of confidences."""
    if len(data) == 1 and named_systems(data[0]):
        logs: list[tuple[str | None, tuple[Any, ...]]] = [(name, (one,)) for name, one in data[0].items()]
    elif len(data) > 1 and started is None:
        logs = [(f"system {place}", (one,)) for place, one in enumerate(data, 1)]
    elif lakes := lakes_in(data):
        logs = [(one.name, (one,)) for one in lakes]
    elif len(data) > 1 and not _name_systems(data, reading, engine, started):
        logs = [(None, (one,)) for one in data]
    else:
        logs = [(None, tuple(data))]
    names = dict(confidences) if isinstance(confidences, Mapping) else {column: column for column in confidences}
    readings: dict[str | None, Reading] = {
        name: replace(reading, columns={**reading.columns, "confidence": column}) for name, column in names.items()
    }
    return [
        _LogToJudge(name, column, log, how_read)
        for (name, log), (column, how_read) in product(logs, (readings or {None: reading}).items())
    ]


def _name_systems(data: Sequence[Any], reading: Reading, engine: str, started: Engine | None) -> bool:
    """Whether a column of the first log names systems."""
    first = scan([str(data[0])], engine, request=reading.request(), started=started)
    return bool(set(candidates(first.names, "system", reading.columns)) & set(first.names))


def _label(part: _LogToJudge, log: EngineLog, taken: Mapping[str, Any]) -> str:
    """What a log is called: as asked, by its own name, or where that is taken by its source."""
    name = _name(part.name or log.system, part.column, True) if part.column else part.name or log.system
    return name if name not in taken else str(part.data[0]).rstrip("/")


def _name(system: str, column: str | None, several: bool) -> str:
    return f"{system}:{column}" if column is not None and several else system


def _choose(names: list[str], asked: Sequence[str] | None) -> list[str]:
    """The systems that are compared, those that are asked for in their order."""
    for name in asked or ():
        if name not in names:
            raise DataError(f'there is no system "{name}"', got=", ".join(names))
    chosen = list(dict.fromkeys(asked)) if asked is not None else names
    if len(chosen) < 2:
        raise DataError("a comparison needs two systems or more", got=", ".join(chosen) or "none")
    return chosen


def compare_logs(
    data: Sequence[Any],
    reading: Reading,
    how: Counting,
    *,
    systems: tuple[str, ...] | None,
    confidences: Mapping[str, str] | Sequence[str],
    unpaired: bool,
    matched: bool,
    join: bool,
    step: Step,
    **asked: Any,
) -> Comparison:
    """Compares systems in an engine or in memory, as data and options ask for."""
    step("reading", 0, 1)
    choice: dict[str, Any] = {"systems": systems, "confidences": confidences, "unpaired": unpaired, "join": join}
    with systems_in_engine(data, reading, how, step=step, **choice) as counted:
        if counted is not None:
            if matched:
                raise UsageError("`matched` needs `engine` memory: an engine compares systems that have the same ids")
            together, notes, warnings = counted
            found = compare(together, step=step, **asked)
    if counted is None:
        judged = read_by_confidence(data, reading, confidences)
        pairing: dict[str, Any] = {"matched": matched, "unpaired": unpaired, "pair_by": reading.pair_by}
        found = compare(judged, systems=systems, step=step, **pairing, **asked)
        notes, warnings = judged.notes, judged.warnings
    notes = (*found.notes, *heap_notes(found.evaluations), *notes)
    return replace(found, notes=notes, warnings=(*found.warnings, *warnings))
