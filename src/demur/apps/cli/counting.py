"""From files to tallies, in memory or inside an engine, as the options ask for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from demur.apps.cli.options import EngineOptions, InputOptions
from demur.apps.cli.reading import reading_of
from demur.data.columns import spellings
from demur.data.engines import TITLES, Engine, EngineFault
from demur.data.lazy_judging import LazyResponses, judge_lazily
from demur.data.parts import is_remote
from demur.data.responses import Reading, Responses, read_responses
from demur.data.scanning import Scan, scan
from demur.data.sources import expand
from demur.errors import UsageError
from demur.measures.reduction import label_cells, tallies, tallies_of_frame
from demur.measures.sweep_files import SweepFile, rules_of
from demur.measures.tally import Tally
from demur.show import Step, path_text

MOST_IN_MEMORY = 5_000_000
"""Rows of Parquet up to which they are read into memory where nothing else is asked for."""


@dataclass(frozen=True, slots=True)
class Counted:
    """What was counted inside an engine, and what there is to tell of it."""

    tallies: tuple[Tally, ...]
    reading: Reading
    sources: tuple[str, ...]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]

    def as_sweep_file(self) -> SweepFile:
        """The tallies as they are kept in a file."""
        return SweepFile(self.tallies, rules_of(self.reading), self.sources, self.notes, self.warnings)


@dataclass(frozen=True, slots=True)
class CountedLabels:
    """Labels counted inside an engine: the cells of each system, and what there is to tell of them."""

    cells: Mapping[str, pl.DataFrame]
    clustered: bool
    notes: tuple[str, ...]
    warnings: tuple[str, ...]


def engine_for(files: list[str], options: EngineOptions) -> Engine | None:
    """The engine to count in; None for memory."""
    if options.spark_master is not None and options.engine not in ("auto", "spark"):
        raise UsageError("--spark-master goes with --engine spark")
    if options.engine == "memory":
        return None
    if options.engine == "auto":
        if options.spark_master is not None:
            return "spark"
        return "polars" if _too_much_for_memory(files) else None
    return options.engine


def _too_much_for_memory(files: list[str]) -> bool:
    """Whether only an engine can, or should, read the files; what is wrong with them is told by who reads them."""
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
            f"{len(paths):,} files of {rows:,} rows in all, without a column system: say --engine polars if they are "
            "parts of one log, or --engine memory if each is a system of its own"
        )
    return bool(rows > MOST_IN_MEMORY)


def count(
    files: list[str], inputs: InputOptions, options: EngineOptions, engine: Engine, *, by: str | None, step: Step
) -> Counted:
    """The tallies of the files, counted by an engine."""
    reading = reading_of(inputs, keep=() if by is None else (by,))
    with _judged(files, reading, options, engine, by=by, step=step) as (judged, log):
        found = tallies(judged, exact_up_to=options.exact_up_to, step=step)
    if options.name is not None:
        found = [replace(one, system=options.name) for one in found]
    return Counted(tuple(found), reading, log.parts, (*_told(log, engine), *judged.notes), judged.warnings)


def count_labels(
    files: list[str], inputs: InputOptions, options: EngineOptions, engine: Engine, *, step: Step
) -> CountedLabels:
    """How often each label was predicted where another was right, counted by an engine."""
    reading = reading_of(replace(inputs, missing_confidence="lowest"), plain_labels=True)
    with _judged(files, reading, options, engine, labels=True, step=step) as (judged, log):
        cells = label_cells(judged, step=step)
    if options.name is not None:
        (table,) = cells.values()
        cells = {options.name: table.with_columns(system=pl.lit(options.name))}
    return CountedLabels(cells, judged.clustered, (*_told(log, engine), *judged.notes), judged.warnings)


@contextmanager
def _judged(
    files: list[str],
    reading: Reading,
    options: EngineOptions,
    engine: Engine,
    *,
    by: str | None = None,
    labels: bool = False,
    step: Step,
) -> Iterator[tuple[LazyResponses, Scan]]:
    """The rows of the files judged in an engine; a failure of the engine is laid at the part that caused it."""
    step(f"looking over the rows with {TITLES[engine]}", 0, 3)
    log = scan(list(files), engine, request=reading.request(), spark_master=options.spark_master)
    system = options.name or log.system
    try:
        judged = judge_lazily(
            log.frame,
            reading=reading,
            system=system,
            by=by,
            labels=labels,
            check_ids=options.check_ids,
            where=_where(log),
            names=log.names,
        )
        _refuse_several(options.name, sorted(judged.survey["system"].unique()))
        yield judged, log
    except EngineFault as error:
        raise log.blame(error) from None
    log.refuse_changes()


def _where(log: Scan) -> str:
    if len(log.parts) == 1:
        return log.parts[0]
    return f"{log.system} ({len(log.parts):,} parts)"


def _told(log: Scan, engine: Engine) -> tuple[str, ...]:
    parts = f"{len(log.parts):,} parts read as one log" if len(log.parts) > 1 else log.parts[0]
    return (f"{parts}, counted by {TITLES[engine]}",)


def named(responses: Responses, name: str | None) -> Responses:
    """The responses under a name given for their only system."""
    if name is None:
        return responses
    _refuse_several(name, responses.systems)
    return replace(responses, frame=responses.frame.with_columns(system=pl.lit(name)))


def _refuse_several(name: str | None, systems: Sequence[str]) -> None:
    if name is not None and len(systems) > 1:
        raise UsageError(f"--name names one system; there are several: {', '.join(systems)}")


def read_in_memory(
    files: list[str], inputs: InputOptions, options: EngineOptions, *, by: str | None = None
) -> Responses:
    """The judged responses of the files, read into memory."""
    reading = reading_of(inputs, keep=() if by is None else (by,))
    return named(read_responses(*files, reading=reading), options.name)


def counted_in_memory(responses: Responses, inputs: InputOptions, files: list[str], *, by: str | None) -> Counted:
    """The tallies of rows in memory."""
    sources = tuple("<stdin>" if file == "-" else path_text(path) for file in files for path in _paths(file))
    found = tuple(tallies_of_frame(responses.frame, by=by))
    return Counted(found, reading_of(inputs), sources, responses.notes, responses.warnings)


def _paths(file: str) -> list[Path]:
    return [Path(file)] if file == "-" else expand(file)
