"""From data to tallies: rows in memory or in the engine that the options ask for, counted in a few passes.

In an engine the survey has counted rows and found the range of confidences. Then one pass groups by confidence, and
where rows come in dialogues or count differently, one more groups by bucket as well. Nothing is ever ordered or
numbered in the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain
from operator import add
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.engines.engine import (
    Engine,
    EngineFault,
    Lazy,
    add_buckets,
    collect_frame,
    engine_class,
    engine_of,
    title_of,
)
from demur.core.engines.scanning import Scan, scan
from demur.core.io.columns import STRATUM, spellings
from demur.core.io.files import table_of
from demur.core.io.sources import UNREADABLE, expand, file_and_column, is_remote, quiet_panics
from demur.core.io.tables import ROW, Request
from demur.core.show.results import Step, path_text, silent
from demur.core.stats.sweep import Sweep, all_counts, sweep_groups
from demur.errors import DataError, UsageError
from demur.returns.engine_judging import (
    INPUT_PART,
    LISTS_PART,
    MARKS_OF_INPUTS,
    STRATA_SET_ASIDE,
    LazyResponses,
    judge_lazily,
)
from demur.returns.judging import slice_values
from demur.returns.measures import term_measures
from demur.returns.options import EngineChoice
from demur.returns.scope import VIEWS, View
from demur.returns.sweep_files import SweepFile, rules_of
from demur.returns.table import Reading, Responses, chosen_system, named_systems, refuse_several
from demur.returns.tally import (
    UNIT_COLUMNS,
    UNIT_LEVELS,
    ConfidenceGrid,
    Tally,
    dense_cells,
    grid_for,
    summed_units,
    total,
)

MOST_IN_MEMORY = 5_000_000
"""Rows of Parquet up to which they are read into memory where nothing else is asked for."""

EXACT_UP_TO = 2**24
"""Rows up to which every distinct confidence is kept, however many there are."""

CLOSE_ENOUGH = 1e-4
"""Share of a system's rows that one cell of joined confidences may hold before it is cut finer."""

ROUNDS = 4
"""Passes made at most to cut dense cells finer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counting:
    """Where rows are counted, and how."""

    engine: EngineChoice = "auto"
    spark_master: str | None = None
    exact_up_to: int = EXACT_UP_TO
    check_ids: bool = False
    name: str | None = None
    unnamed: str | None = None
    """What a system is called that no column names, in place of the name of its files."""


@dataclass(frozen=True, slots=True, eq=False)
class Lake:
    """A log of one system that lies elsewhere and is counted there, with how it is read: a run that was linked."""

    name: str
    sources: tuple[str, ...]
    reading: Reading
    engine: EngineChoice
    refuse_changes: Callable[[], None] = lambda: None
    """Refuses the log where it is no longer what it was."""
    kept: Callable[[], SweepFile | None] = lambda: None
    """Its tallies where they were kept when it was counted before."""
    keep: Callable[[SweepFile], None] = lambda _: None
    """Keeps its tallies."""

    def reading_for(self, asked: Reading) -> Reading:
        """How it is read, with what is asked besides: further columns and conditions, and what pairs its inputs."""
        where = tuple(dict.fromkeys((*self.reading.where, *asked.where)))
        return replace(self.reading, where=where, keep=asked.keep, pair_by=asked.pair_by)

    def among(self, where: Sequence[tuple[str, str]]) -> Lake:
        """The rows that have these values, whose tallies are not kept."""
        if not where:
            return self
        reading = replace(self.reading, where=(*self.reading.where, *where))
        return Lake(self.name, self.sources, reading, self.engine, self.refuse_changes)


def lakes_in(data: Sequence[Any]) -> tuple[Lake, ...]:
    """The lakes among what is given; they are not mixed with anything else."""
    lakes = tuple(one for one in data if isinstance(one, Lake))
    if lakes and len(lakes) < len(data):
        raise UsageError(
            f'the run "{lakes[0].name}" is linked, so it is counted where it lies, not beside what is in memory: link '
            "both, or add both"
        )
    return lakes


@dataclass(frozen=True, slots=True)
class CountedLabels:
    """Labels counted inside an engine: the cells of each system, and what there is to say of them."""

    cells: Mapping[str, pl.DataFrame]
    clustered: bool
    notes: tuple[str, ...]
    warnings: tuple[str, ...]


def engine_for(data: Sequence[Any], how: Counting, *, apart: bool = False) -> str | None:
    """The engine to count files in; None for memory. Several files may be parts of one log, unless they are `apart`."""
    if how.spark_master is not None and how.engine not in ("auto", "spark"):
        raise UsageError("`spark_master` goes with `engine` spark")
    if lakes := lakes_in(data):
        return _engine_of_lakes(lakes, how)
    if how.engine == "memory":
        return None
    if how.engine == "auto":
        if how.spark_master is not None:
            return "spark"
        files = [str(one) for one in data if isinstance(one, str | Path)]
        return "polars" if len(files) == len(data) and _too_much_for_memory(files, apart) else None
    return how.engine


def _engine_of_lakes(lakes: Sequence[Lake], how: Counting) -> str:
    """The engine that is asked for, otherwise that with which the first run was linked."""
    if how.engine == "memory":
        raise UsageError(f'the run "{lakes[0].name}" is linked: an engine counts it where it lies, not `engine` memory')
    if how.engine != "auto":
        return how.engine
    return "spark" if how.spark_master is not None else lakes[0].engine


def _too_much_for_memory(files: list[str], apart: bool) -> bool:
    """Whether only an engine can, or should, read the files; what is wrong with them is said by what reads them."""
    if any(is_remote(file) or Path(file).is_dir() for file in files):
        return True
    if "-" in files or any(file_and_column(file)[1] is not None for file in files):
        return False
    paths = [path for file in files for path in expand(file)]
    if not all(path.suffix.lower() in (".parquet", ".pq") for path in paths):
        return False
    try:
        tables = [pl.scan_parquet(path_text(path), glob=False) for path in paths]
        with quiet_panics():
            rows = sum(table.select(pl.len()).collect().item() for table in tables)
            name_systems = any(set(spellings("system")) & set(table.collect_schema()) for table in tables)
    except UNREADABLE:
        return False
    if rows > MOST_IN_MEMORY and len(paths) > 1 and not name_systems and not apart:
        raise UsageError(
            f"{len(paths):,} files of {rows:,} rows in all, without a column system: say `engine` polars if they are "
            "parts of one log, or `engine` memory if each is a system of its own"
        )
    return bool(rows > MOST_IN_MEMORY)


def count(
    data: Sequence[Any], reading: Reading, how: Counting, *, by: str | None = None, step: Step = silent
) -> SweepFile | None:
    """The tallies of files or of a lazy frame, counted by an engine; None for data that memory is to count."""
    if len(lakes := lakes_in(data)) > 1:
        several = [count((one,), reading, how, by=by, step=step) for one in lakes]
        return _joined_counts([one for one in several if one is not None])
    whole = by is None and not reading.where and how.exact_up_to == EXACT_UP_TO and not how.check_ids
    engine_for(data, how)  # refuses what does not go with it
    if lakes and whole and (kept := lakes[0].kept()) is not None:
        lakes[0].refuse_changes()
        return replace(kept, tallies=tuple(one.named(how.name or lakes[0].name) for one in kept.tallies))
    with judged_in_engine(data, reading, how, by=by, step=step) as found:
        if found is None:
            return None
        judged, log = found
        made = tallies(judged, exact_up_to=how.exact_up_to, step=step)
    if (name := how.name or next((one.name for one in lakes), None)) is not None:
        made = [one.named(name) for one in made]
    found_file = SweepFile(tuple(made), rules_of(reading), log.sources, (*log.notes, *judged.notes), judged.warnings)
    if lakes and whole:
        lakes[0].keep(found_file)
    return found_file


def _joined_counts(several: Sequence[SweepFile]) -> SweepFile:
    """The tallies of several logs, each a system."""
    every = tuple(tally for one in several for tally in one.tallies)
    sources, notes, warnings = (
        _merged([getattr(one, part) for one in several]) for part in ("sources", "notes", "warnings")
    )
    return SweepFile(every, several[0].reading, sources, notes, warnings)


def _merged(lines: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(lines)))


def count_labels(data: Sequence[Any], reading: Reading, how: Counting, *, step: Step = silent) -> CountedLabels | None:
    """How often each label was predicted where another was right, counted by an engine; None as for `count`."""
    if len(lakes := lakes_in(data)) > 1:
        parts = [one for lake in lakes if (one := count_labels((lake,), reading, how, step=step)) is not None]
        every = {name: cells for one in parts for name, cells in one.cells.items()}
        notes, warnings = _merged([one.notes for one in parts]), _merged([one.warnings for one in parts])
        return CountedLabels(every, any(one.clustered for one in parts), notes, warnings)
    with judged_in_engine(data, reading, how, labels=True, step=step) as found:
        if found is None:
            return None
        judged, log = found
        cells = label_cells(judged, step=step)
    if (name := how.name or next((one.name for one in lakes), None)) is not None:
        (table,) = cells.values()
        cells = {name: table.with_columns(system=pl.lit(name))}
    return CountedLabels(cells, judged.clustered, (*log.notes, *judged.notes), judged.warnings)


@dataclass(frozen=True, slots=True)
class EngineLog:
    """Rows where an engine has them, and what is known of them."""

    rows: Any
    system: str
    sources: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    where: str = "data"
    names: Sequence[str] = ()
    scan: Scan | None = None


@contextmanager
def judged_in_engine(
    data: Sequence[Any],
    reading: Reading,
    how: Counting,
    *,
    by: str | None = None,
    labels: bool = False,
    dialogues: bool = False,
    pairing: bool = False,
    shown: Sequence[str] | None = None,
    started: Engine | None = None,
    step: Step,
) -> Iterator[tuple[LazyResponses, EngineLog] | None]:
    """The rows judged in an engine; a failure of the engine is laid at the part that caused it."""
    data, reading, how = _where_it_lies(data, reading, how)
    if shown is not None:
        reading = replace(reading, keep=(*reading.keep, INPUT_PART, LISTS_PART, *shown))
    log = engine_log(data, reading.request(), how, step, started)
    if log is None:
        yield None
        return
    with blaming(log):
        judged = judge_lazily(
            log.rows,
            reading=reading,
            system=how.name or how.unnamed or log.system,
            by=by,
            labels=labels,
            dialogues=dialogues,
            pairing=pairing,
            shown=shown,
            check_ids=how.check_ids,
            where=log.where,
            names=log.names,
        )
        refuse_several(how.name, sorted(judged.survey["system"].unique()))
        yield judged, log


def _where_it_lies(data: Sequence[Any], reading: Reading, how: Counting) -> tuple[Sequence[Any], Reading, Counting]:
    """A lake as its files, with how it is read and counted; anything else as it is."""
    if not (lakes := lakes_in(data)):
        return data, reading, how
    (lake,) = lakes
    lake.refuse_changes()
    engine: Any = engine_for(data, how)
    return lake.sources, lake.reading_for(reading), replace(how, engine=engine, unnamed=lake.name)


@contextmanager
def rows_in_engine(data: Sequence[Any], reading: Reading, how: Counting) -> Iterator[Lazy]:
    """The rows of a log as they are in an engine, with the columns that a reading keeps."""
    data, reading, how = _where_it_lies(data, reading, how)
    log = engine_log(data, reading.request(), how, silent)
    if log is None:
        raise UsageError("no engine counts these rows: give Parquet files, a folder, a URL or a lazy frame")
    with blaming(log):
        yield nw.from_native(log.rows).lazy()


@contextmanager
def blaming(log: EngineLog) -> Iterator[None]:
    """Lays a failure of the engine at the part of a log that caused it, and refuses parts that change meanwhile."""
    try:
        yield
    except EngineFault as error:
        if log.scan is None:
            raise
        raise log.scan.blame(error) from None
    if log.scan is not None:
        log.scan.refuse_changes()


def engine_log(
    data: Sequence[Any], request: Request, how: Counting, step: Step, started: Engine | None = None
) -> EngineLog | None:
    """The rows of files or of a lazy frame in an engine, as far as they are wanted; None for what memory is to read."""
    engine = engine_for(data, how)
    if len(data) == 1 and not isinstance(data[0], str | Path | Responses) and not named_systems(data[0]):
        rows = _lazy_frame(data[0], engine, how)
        return None if rows is None else EngineLog(rows, "system")
    if engine is None:
        return None
    if not data or not all(isinstance(one, str | Path) for one in data):
        raise UsageError("`engine` is for files, or for one frame; put several into one, with a column system")
    step(f"looking over the rows with {title_of(engine)}", 0, 3)
    about: dict[str, Any] = {"request": request, "spark_master": how.spark_master, "started": started}
    found = scan([str(one) for one in data], engine, **about)
    parts = f"{len(found.parts):,} parts read as one log" if len(found.parts) > 1 else found.parts[0]
    where = found.parts[0] if len(found.parts) == 1 else f"{found.system} ({len(found.parts):,} parts)"
    notes = (f"{parts}, counted by {title_of(engine)}",)
    return EngineLog(found.frame, found.system, found.parts, notes, where, found.names, found)


def _lazy_frame(data: Any, engine: str | None, how: Counting) -> Lazy | None:
    """The rows of a frame where an engine counts them: the one that holds it, or the one that is asked for."""
    frame = nw.from_native(data, pass_through=True)
    lazy = frame if isinstance(frame, nw.LazyFrame) else None
    if engine is None:
        return None if how.engine == "memory" else lazy
    if lazy is not None and engine_of(lazy) == engine:
        return lazy
    held: Lazy = nw.from_native(holder_of(engine, how.spark_master)(table_of(data, Request()).frame.drop(ROW))).lazy()
    return held


def holder_of(engine: str, spark_master: str | None) -> Callable[[pl.DataFrame], Any]:
    """What hands rows over to an engine."""
    return engine_class(engine)(spark_master=spark_master).hold


def one_tally(several: Sequence[Tally], system: str | None) -> Tally:
    """The tally of the named system, or of the only one there is."""
    systems = tuple(tally.system for tally in several)
    return several[systems.index(chosen_system(systems, system))]


def sweep_of_rows(judged: Responses, reading: Reading, data: Sequence[Any], by: str | None) -> Callable[[], SweepFile]:
    """What makes the tallies of rows in memory, as they are kept in a file; the texts of the rows are not held."""
    notes = (*judged.notes, *((STRATA_SET_ASIDE,) if STRATUM in judged.frame.columns else ()))
    keep = ["id", "system", "dialogue", "answered", "right", "failed", "out_of_scope", "confidence", "weight"]
    frame = judged.frame[keep + ([] if by is None or by in keep else [by])]

    def made() -> SweepFile:
        files = [str(file_and_column(one)[0]) for one in data if isinstance(one, str | Path)]
        paths = [["<stdin>"] if file == "-" else map(path_text, expand(file)) for file in files]
        found = tuple(tallies_of_frame(frame, by=by))
        return SweepFile(found, rules_of(reading), tuple(chain(*paths)), notes, judged.warnings)

    return made


def write_sweep(result: Any, path: Path) -> None:
    """Write the totals of evaluations, to be merged with those of other logs."""
    if result.sweep_file is None:
        raise UsageError("these evaluations keep no totals that could be merged")
    result.sweep_file().write(path)


def tallies(responses: LazyResponses, *, exact_up_to: int = EXACT_UP_TO, step: Step = silent) -> list[Tally]:
    """The tallies of every system, and of every slice where the rows are sliced, the whole first.

    Up to `exact_up_to` rows every distinct confidence is kept. Beyond, confidences are joined in cells; where each cell
    turns out to hold a single confidence nothing was lost, else the sweeps say within what they are exact.
    """
    step("counting answers by confidence", 1, 3)
    rows = responses.survey.iter_rows(named=True)
    counted = sweeps(responses, exact_up_to=exact_up_to)
    found = _wholes(responses, [_tally(responses, row, sweep) for row, sweep in zip(rows, counted, strict=True)])
    if responses.n > exact_up_to and any(one.sweep.upper is not None for one in found):
        found = _with_terms(responses, found)
    if "bucket" in responses.columns:
        step("counting answers by dialogue", 2, 3)
        found = _with_units(responses, found)
    return _with_scope(responses, found, exact_up_to)


def _with_scope(responses: LazyResponses, found: list[Tally], exact_up_to: int) -> list[Tally]:
    """The tallies with their rows counted by scope, where some are out of scope."""
    if not responses.survey["out_of_scope"].sum():
        return found
    nothing = pl.lit(0, pl.Int64)
    survey = responses.survey.with_columns(answered=pl.col("rows"), failed=nothing, out_of_scope=nothing)
    views: dict[View, list[Tally]] = {
        name: tallies(replace(responses, frame=view(responses.frame), survey=survey), exact_up_to=exact_up_to)
        for name, view in VIEWS.items()
    }
    return [
        replace(one, by_scope={name: replace(views[name][place], terms={}) for name in views})
        if one.out_of_scope
        else one
        for place, one in enumerate(found)
    ]


def label_cells(responses: LazyResponses, *, step: Step = silent) -> dict[str, pl.DataFrame]:
    """For every system how often each label was predicted where another was right, counted in one pass.

    The rows have the columns actual and predicted (`judge_lazily` with labels). Where rows come in dialogues or count
    differently, the cells are counted by bucket as well.
    """
    step("counting labels", 1, 2)
    keys = [name for name in ("system", "bucket") if name in responses.columns]
    rows, sums = responses.frame, [nw.len().alias("rows")]
    if "weight" in responses.columns:
        rows = rows.with_columns(squares=nw.col("weight") * nw.col("weight"))
        sums += [nw.col("weight").sum(), nw.col("squares").sum()]
    if "bucket" in responses.columns:
        sums.append(nw.col("least").min())
    cells = responses.named(collect_frame(rows.group_by("actual", "predicted", *keys).agg(*sums)))
    if "weight" not in cells.columns:
        count = pl.col("rows").cast(pl.Float64)
        cells = cells.with_columns(weight=count, squares=count)
    ordered = cells.sort(*(name for name in ("actual", "predicted", "bucket") if name in cells.columns))
    return {system: ordered.filter(pl.col("system") == system) for system in sorted(cells["system"].unique())}


def tallies_of_frame(judged: pl.DataFrame, *, by: str | None = None) -> list[Tally]:
    """The tallies of judged rows in memory, as `Responses.frame` holds them."""
    return tallies(lazy_of_frame(judged, by=by))


def lazy_of_frame(judged: pl.DataFrame, *, by: str | None = None) -> LazyResponses:
    """Judged rows in memory as an engine would give them."""
    clustered = judged["dialogue"].null_count() < judged.height
    weighted = bool((judged["weight"] != 1.0).any())
    columns = ["system", "answered", "right", "failed", "out_of_scope", "confidence"]
    if by is not None:
        judged = judged.with_columns(slice_values(judged, by).alias("slice"))
        columns.append("slice")
    lazy: Lazy = nw.from_native(judged.lazy())
    if clustered or weighted:
        lone = pl.concat_str(pl.lit("row "), pl.int_range(pl.len()).cast(pl.String))
        lazy = add_buckets(nw.from_native(judged.lazy().with_columns(unit=pl.coalesce("dialogue", "id", lone))), "unit")
        columns += ["bucket", "least"]
    if weighted:
        columns.append("weight")
    finite = pl.col("confidence").filter(pl.col("confidence").is_finite())
    survey = judged.group_by("system", *(() if by is None else ("slice",)), maintain_order=True).agg(
        pl.len().alias("rows"),
        pl.col("answered", "failed", "out_of_scope").sum(),
        pl.col("weight").sort().pow(2).sum().alias("squares"),
        finite.min().alias("lowest"),
        finite.max().alias("highest"),
    )
    return LazyResponses(lazy.select(columns), survey, by, clustered)


def sweeps(responses: LazyResponses, *, exact_up_to: int = EXACT_UP_TO) -> list[Sweep]:
    """The sweep of each system and slice, in the order of the survey.

    Where the rows are in this process anyway, one sort of them is quicker than a table of groups.
    """
    few = responses.n <= min(exact_up_to, EXACT_UP_TO) and engine_class(engine_of(responses.frame)).in_process
    if few and not responses.keys and "weight" not in responses.columns:
        rows = collect_frame(responses.frame.select("confidence", "right", "answered"))
        answers = rows.filter("answered")
        if answers["confidence"].null_count():
            raise DataError("confidence must be a number for every answered row", got="none")
        confidence, right = answers["confidence"].to_numpy(), answers["right"].to_numpy()
        return [Sweep.of(confidence, right, withheld=float(rows.height - answers.height))]
    groups = _grouped(responses, exact_up_to)
    keys = ["system"] if responses.by is None else ["system", "slice"]
    return [
        Sweep.from_groups(groups.filter(*(pl.col(key) == row[key] for key in keys)))
        for row in responses.survey.iter_rows(named=True)
    ]


def _grouped(responses: LazyResponses, exact_up_to: int) -> pl.DataFrame:
    """One row per confidence, or per cell of confidences, of each system and slice."""
    keys = responses.keys
    if responses.n <= exact_up_to:
        return responses.named(collect_frame(sweep_groups(responses.frame, keys=keys)))
    largest = responses.largest
    grid = ConfidenceGrid.over(largest)
    confidence = nw.col("confidence")
    for _ in range(ROUNDS):
        cells = collect_frame(sweep_groups(responses.frame, keys=keys, cell=grid.key(confidence)))
        groups = responses.named(all_counts(cells))
        dense = _too_dense(groups, responses, grid)
        if not dense or not grid.may_be_finer(largest):
            break
        grid = grid.finer(dense)
    return groups


def _too_dense(groups: pl.DataFrame, responses: LazyResponses, grid: ConfidenceGrid) -> frozenset[float]:
    found: set[float] = set()
    for part in groups.partition_by("system", *(() if responses.by is None else ("slice",))):
        answers = part.filter(pl.col("confidence").is_not_null())
        weight = (answers["right"] + answers["wrong"]).to_numpy().astype(np.float64)
        lowest, highest = answers["confidence"].to_numpy(), answers["upper"].to_numpy()
        most = CLOSE_ENOUGH * float((part["right"] + part["wrong"] + part["withheld"]).sum())
        found |= dense_cells(grid.of(lowest), lowest, highest, weight, most)
    return frozenset(found)


def _of(groups: pl.DataFrame, one: Tally, by: str | None) -> pl.DataFrame:
    """The groups of a tally: those of its system, and of its slice."""
    mine = groups.filter(pl.col("system") == one.system)
    return mine if one.part is None else mine.filter(pl.col("slice") == one.part.removeprefix(f"{by}="))


def _tally(responses: LazyResponses, row: dict[str, Any], sweep: Sweep) -> Tally:
    part = None if responses.by is None else f"{responses.by}={row['slice']}"
    return Tally(
        system=row["system"],
        part=part,
        sweep=sweep,
        failed=int(row["failed"]),
        unanswered=int(row["rows"] - row["answered"]),
        out_of_scope=int(row["out_of_scope"]),
        squares=float(row["squares"]),
        clustered=responses.clustered,
    )


def _wholes(responses: LazyResponses, parts: list[Tally]) -> list[Tally]:
    """Slices added up to their system, which comes before them."""
    if responses.by is None:
        return parts
    found = []
    for system in dict.fromkeys(part.system for part in parts):
        mine = sorted((part for part in parts if part.system == system), key=lambda part: str(part.part))
        found += [replace(total(mine), part=None), *mine]
    return found


def _with_terms(responses: LazyResponses, found: list[Tally]) -> list[Tally]:
    """The tallies with the exact totals of the measures that are sums over rows, from a pass of their own."""
    terms = {
        f"{key}:{name}": term * nw.col("weight")
        for key, measure in term_measures().items()
        for name, term in measure.terms().items()
    }
    rows = responses.frame
    if "weight" not in responses.columns:
        rows = rows.with_columns(weight=nw.lit(1.0))
    named = rows.with_columns(**terms)
    sums = [nw.col(name).sum() for name in terms]
    table = collect_frame(named.group_by(*responses.keys).agg(*sums) if responses.keys else named.select(*sums))
    table = responses.named(table)

    def exact(one: Tally) -> dict[str, NDArray[np.float64]]:
        mine = _of(table, one, responses.by)
        return {
            key: np.array([float(mine[f"{key}:{name}"].sum()) for name in measure.terms()] + [float(one.n)])
            for key, measure in term_measures().items()
        }

    return [one if one.sweep.upper is None else replace(one, terms=exact(one)) for one in found]


def _with_units(responses: LazyResponses, found: list[Tally]) -> list[Tally]:
    """The tallies with what each bucket holds at each level of confidence, from one pass over all of them."""
    sweeps = [one.sweep for one in found if one.part is None]
    cell = None
    if any(sweep.threshold.size > UNIT_LEVELS for sweep in sweeps):
        cell = grid_for(reduce(add, sweeps), UNIT_LEVELS // 2).key(nw.col("confidence"))
    keys = ("bucket", *responses.keys)
    marks = [name for name in MARKS_OF_INPUTS if name in responses.columns]
    groups = collect_frame(sweep_groups(responses.frame, keys=keys, cell=cell, least=("least",), summed=marks))
    groups = responses.named(all_counts(groups))
    if cell is not None:
        groups = groups.with_columns(confidence="cell")
    tables = [_of(groups, one, responses.by) for one in found]
    return [
        replace(one, units=summed_units([table.select(UNIT_COLUMNS)]), marks=_marks(table) if marks else None)
        for one, table in zip(found, tables, strict=True)
    ]


def _marks(groups: pl.DataFrame) -> pl.DataFrame:
    return groups.group_by("bucket").agg(pl.col("rows", *MARKS_OF_INPUTS).sum()).sort("bucket")
