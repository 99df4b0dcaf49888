"""From data to tallies, in memory or inside an engine, as the options ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import narwhals as nw
import polars as pl

from demur.core.engines.engine import TITLES, Engine, EngineFault, engine_of
from demur.core.engines.parts import is_remote
from demur.core.engines.scanning import READERS, Scan, scan
from demur.core.io.columns import nearest, spellings
from demur.core.io.files import table_of
from demur.core.io.sources import expand
from demur.core.io.tables import ROW, Request
from demur.core.show.results import Step, path_text, silent
from demur.errors import DataError, UsageError
from demur.returns.engine_judging import LazyResponses, judge_lazily
from demur.returns.inputs import named_systems, refuse_several
from demur.returns.reduction import EXACT_UP_TO, label_cells, tallies, tallies_of_frame
from demur.returns.sweep_files import SweepFile, rules_of
from demur.returns.table import Reading, Responses
from demur.returns.tally import Tally

MOST_IN_MEMORY = 5_000_000
"""Rows of Parquet up to which they are read into memory where nothing else is asked for."""

Lazy = nw.LazyFrame[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counting:
    """Where rows are counted, and how."""

    engine: Literal["auto", "memory", "polars", "duckdb", "spark"] = "auto"
    spark_master: str | None = None
    exact_up_to: int = EXACT_UP_TO
    check_ids: bool = False
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Counted:
    """What was counted inside an engine, and what there is to say of it."""

    tallies: tuple[Tally, ...]
    reading: Reading
    sources: tuple[str, ...]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]

    def sweep_file(self) -> SweepFile:
        """The tallies as they are kept in a file."""
        return SweepFile(self.tallies, rules_of(self.reading), self.sources, self.notes, self.warnings)


@dataclass(frozen=True, slots=True)
class CountedLabels:
    """Labels counted inside an engine: the cells of each system, and what there is to say of them."""

    cells: Mapping[str, pl.DataFrame]
    clustered: bool
    notes: tuple[str, ...]
    warnings: tuple[str, ...]


def engine_for(data: Sequence[Any], how: Counting) -> Engine | None:
    """The engine to count files in; None for memory."""
    if how.spark_master is not None and how.engine not in ("auto", "spark"):
        raise UsageError("`spark_master` goes with `engine` spark")
    if how.engine == "memory":
        return None
    if how.engine == "auto":
        if how.spark_master is not None:
            return "spark"
        files = [str(one) for one in data if isinstance(one, str | Path)]
        return "polars" if len(files) == len(data) and _too_much_for_memory(files) else None
    return how.engine


def _too_much_for_memory(files: list[str]) -> bool:
    """Whether only an engine can, or should, read the files; what is wrong with them is said by what reads them."""
    if any(is_remote(file) or Path(file).is_dir() for file in files):
        return True
    if "-" in files:
        return False
    paths = [path for file in files for path in expand(file)]
    if not all(path.suffix.lower() in (".parquet", ".pq") for path in paths):
        return False
    try:
        tables = [pl.scan_parquet(path_text(path), glob=False) for path in paths]
        rows = sum(table.select(pl.len()).collect().item() for table in tables)
        name_systems = any(set(spellings("system")) & set(table.collect_schema()) for table in tables)
    except (pl.exceptions.PolarsError, OSError):
        return False
    if rows > MOST_IN_MEMORY and len(paths) > 1 and not name_systems:
        raise UsageError(
            f"{len(paths):,} files of {rows:,} rows in all, without a column system: say `engine` polars if they are "
            "parts of one log, or `engine` memory if each is a system of its own"
        )
    return bool(rows > MOST_IN_MEMORY)


def count(
    data: Sequence[Any], reading: Reading, how: Counting, *, by: str | None = None, step: Step = silent
) -> Counted | None:
    """The tallies of files or of a lazy frame, counted by an engine; None for data that memory is to count."""
    with _judged(data, reading, how, by=by, step=step) as found:
        if found is None:
            return None
        judged, log = found
        made = tallies(judged, exact_up_to=how.exact_up_to, step=step)
    if how.name is not None:
        made = [replace(one, system=how.name) for one in made]
    return Counted(tuple(made), reading, log.sources, (*log.notes, *judged.notes), judged.warnings)


def count_labels(data: Sequence[Any], reading: Reading, how: Counting, *, step: Step = silent) -> CountedLabels | None:
    """How often each label was predicted where another was right, counted by an engine; None as for `count`."""
    with _judged(data, reading, how, labels=True, step=step) as found:
        if found is None:
            return None
        judged, log = found
        cells = label_cells(judged, step=step)
    if how.name is not None:
        (table,) = cells.values()
        cells = {how.name: table.with_columns(system=pl.lit(how.name))}
    return CountedLabels(cells, judged.clustered, (*log.notes, *judged.notes), judged.warnings)


@dataclass(frozen=True, slots=True)
class _Log:
    """Rows where an engine has them, and what is known of them."""

    rows: Any
    system: str
    sources: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    where: str = "data"
    names: Sequence[str] = ()
    scan: Scan | None = None


@contextmanager
def _judged(
    data: Sequence[Any],
    reading: Reading,
    how: Counting,
    *,
    by: str | None = None,
    labels: bool = False,
    step: Step,
) -> Iterator[tuple[LazyResponses, _Log] | None]:
    """The rows judged in an engine; a failure of the engine is laid at the part that caused it."""
    log = _log(data, reading, how, step)
    if log is None:
        yield None
        return
    try:
        judged = judge_lazily(
            log.rows,
            reading=reading,
            system=how.name or log.system,
            by=by,
            labels=labels,
            check_ids=how.check_ids,
            where=log.where,
            names=log.names,
        )
        refuse_several(how.name, sorted(judged.survey["system"].unique()))
        yield judged, log
    except EngineFault as error:
        if log.scan is None:
            raise
        raise log.scan.blame(error) from None
    if log.scan is not None:
        log.scan.refuse_changes()


def _log(data: Sequence[Any], reading: Reading, how: Counting, step: Step) -> _Log | None:
    engine = engine_for(data, how)
    if len(data) == 1 and not isinstance(data[0], str | Path | Responses) and not named_systems(data[0]):
        rows = _lazy_frame(data[0], engine, how)
        return None if rows is None else _Log(rows, "system")
    if engine is None:
        return None
    if not data or not all(isinstance(one, str | Path) for one in data):
        raise UsageError("`engine` is for files, or for one frame; put several into one, with a column system")
    step(f"looking over the rows with {TITLES[engine]}", 0, 3)
    found = scan([str(one) for one in data], engine, request=reading.request(), spark_master=how.spark_master)
    parts = f"{len(found.parts):,} parts read as one log" if len(found.parts) > 1 else found.parts[0]
    where = found.parts[0] if len(found.parts) == 1 else f"{found.system} ({len(found.parts):,} parts)"
    notes = (f"{parts}, counted by {TITLES[engine]}",)
    return _Log(found.frame, found.system, found.parts, notes, where, found.names, found)


def _lazy_frame(data: Any, engine: Engine | None, how: Counting) -> Lazy | None:
    """The rows of a frame where an engine counts them: the one that holds it, or the one that is asked for."""
    frame = nw.from_native(data, pass_through=True)
    lazy = frame if isinstance(frame, nw.LazyFrame) else None
    if engine is None:
        return None if how.engine == "memory" else lazy
    if lazy is not None and engine_of(lazy) == engine:
        return lazy
    held: Lazy = nw.from_native(holder_of(engine, how.spark_master)(table_of(data, Request()).frame.drop(ROW))).lazy()
    return held


def holder_of(engine: Engine, spark_master: str | None) -> Callable[[pl.DataFrame], Any]:
    """What hands rows over to an engine; a cluster gets them from here, so it needs no files."""
    holder: Any = READERS[engine](memory=None, spark_master=spark_master).holder
    if engine == "duckdb":
        return lambda frame: holder.from_arrow(frame.to_arrow())
    if engine == "spark":
        return lambda frame: holder.createDataFrame(frame.to_arrow())
    return pl.DataFrame.lazy


def one_tally(several: Sequence[Tally], system: str | None) -> Tally:
    """The tally of the named system, or of the only one there is."""
    systems = tuple(tally.system for tally in several)
    if system is not None and system not in systems:
        raise DataError(f'there is no system "{system}"', fix=nearest(system, systems))
    if system is None and len(systems) > 1:
        raise UsageError(f"a threshold belongs to one system; choose with `system` from {', '.join(systems)}")
    return several[0 if system is None else systems.index(system)]


def sweep_of_rows(judged: Responses, reading: Reading, data: Sequence[Any], by: str | None) -> Callable[[], SweepFile]:
    """What makes the tallies of rows in memory, as they are kept in a file; the texts of the rows are not held."""
    keep = ["id", "system", "dialogue", "answered", "right", "failed", "out_of_scope", "confidence", "weight"]
    frame = judged.frame.select(keep + ([] if by is None or by in keep else [by]))

    def made() -> SweepFile:
        files = [str(one) for one in data if isinstance(one, str | Path)]
        sources = tuple("<stdin>" if file == "-" else path_text(path) for file in files for path in _paths(file))
        found = tuple(tallies_of_frame(frame, by=by))
        return SweepFile(found, rules_of(reading), sources, judged.notes, judged.warnings)

    return made


def write_sweep(result: Any, path: Path) -> None:
    """Write the totals of evaluations, to be merged with those of other logs."""
    if result.sweep_file is None:
        raise UsageError("these evaluations keep no totals that could be merged")
    result.sweep_file().write(path)


def _paths(file: str) -> list[Path]:
    return [Path(file)] if file == "-" else expand(file)
