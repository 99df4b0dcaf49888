"""Files, globs, folders and URLs become one lazy frame in an engine, after all parts are checked to agree."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import narwhals as nw
import polars as pl

from demur.core.engines.engine import (
    Engine,
    EngineFault,
    Lazy,
    engine_class,
    engine_faults,
    engine_faults_told,
    reason_of,
)
from demur.core.engines.parts import (
    CONVERT,
    FilePart,
    damaged,
    is_remote,
    keys_in,
    local_parts,
    names_in,
    refuse_disagreement,
    system_of,
    system_of_url,
)
from demur.core.io.sources import exactly
from demur.core.io.tables import Request
from demur.errors import DataError, UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """One log in an engine: a lazy frame of the columns wanted, and what is known of its parts.

    `names` are all columns there are, `parts` the files as shown, `rows` how many rows they hold where their
    footers could be read. `system` is the name for rows without a column `system`. The parts of a scan are one
    log; read into memory, each file would stand for a system of its own.
    """

    frame: Lazy = field(repr=False)
    names: tuple[str, ...]
    parts: tuple[str, ...]
    rows: int | None
    system: str
    wanted: tuple[str, ...]
    files: tuple[FilePart, ...] = field(default=(), repr=False)
    holder: object = field(default=None, repr=False)
    """What must live as long as the frame: DuckDB's connection, Spark's session."""

    def refuse_changes(self) -> None:
        """Refuses files on this machine that vanished or were written since the scan began."""
        for file in self.files:
            file.refuse_changes()

    def blame(self, error: BaseException) -> DataError:
        """Gives the fault of the part that made an engine fail, or the engine's own words where none is found."""
        try:
            self.refuse_changes()
            for file in self.files:
                _read_through(file, self.wanted)
        except DataError as fault:
            return fault
        told = error if isinstance(error, DataError) else EngineFault.of(error)
        return self._named_in(str(error.__cause__ or error)) or told

    def _named_in(self, told: str) -> DataError | None:
        """Gives the fault of a part that the engine names itself, as Spark does where a page belies its checksum."""
        for file in self.files:
            if str(file.path.resolve()) in told:
                return DataError(f"cannot be read: {_root_of(told)}", where=file.name, fix="copy or write it again")
        return None


def scan(
    sources: Sequence[str | Path],
    engine: str,
    *,
    request: Request,
    spark_master: str | None = None,
    memory: str | None = None,
) -> Scan:
    """Gives the rows of files, globs, folders or URLs as one lazy frame of the columns a request wants.

    A folder stands for all Parquet files below it; names like `date=2024-01-01` of folders below what was named
    become columns of text. Parts that lack a wanted column, or have it in another type, are refused before
    anything is counted.
    """
    if not sources:
        raise DataError("no file to read was given", fix="name a file, a glob, a folder or a URL")
    remote = [str(source) for source in sources if is_remote(source)]
    if remote and len(remote) < len(sources):
        raise UsageError("files on this machine and URLs cannot be read as one log: score them apart and merge")
    kind = engine_class(engine)
    started = partial(kind, memory=memory, spark_master=spark_master)
    return _remote(remote, started(), request) if remote else _local(sources, engine, kind, started, request)


def _local(
    sources: Sequence[str | Path], engine: str, kind: type[Engine], started: Callable[[], Engine], request: Request
) -> Scan:
    """Starts the engine only when all parts were found to agree, which takes no engine."""
    parts = local_parts(sources)
    if parts[0].format == "arrow" and not kind.reads_arrow:
        raise DataError(f"is Arrow, which --engine {engine} does not read", where=parts[0].name, fix=CONVERT)
    held = [(part.name, part.columns) for part in parts]
    names = names_in(held)
    wanted = request.among(names)
    rows = sum(part.rows for part in parts)
    if not rows:
        others = f", as all of the {len(parts):,} parts" if len(parts) > 1 else ""
        raise DataError(f"holds no rows{others}", where=parts[0].name)
    refuse_disagreement(held, wanted)
    if kind.folds_case:
        _refuse_twins(parts, wanted)
    partitioned = _partitioned(parts, wanted)
    reader = started()
    with engine_faults_told():
        native = reader.local(parts, partitioned)
        every: Lazy = nw.from_native(native)
        _refuse_unnamed(every, wanted, parts[0].name)
        frame = every.select(wanted)
    return Scan(
        frame=frame,
        names=names,
        parts=tuple(part.name for part in parts),
        rows=rows,
        system=system_of(sources, parts),
        wanted=tuple(wanted),
        files=tuple(parts),
        holder=reader.holder,
    )


def _remote(urls: Sequence[str], reader: Engine, request: Request) -> Scan:
    with engine_faults_told(", ".join(urls)):
        held = reader.remote_columns(urls)
        native = reader.remote(urls)
        frame: Lazy = nw.from_native(native)
        names = tuple(dict.fromkeys([*names_in(held), *frame.collect_schema().names()]))
    stored = names_in(held)
    wanted = request.among(names)
    refuse_disagreement(held, [name for name in wanted if name in stored])
    _refuse_unnamed(frame, wanted, urls[0])
    _refuse_hidden([key for name, _ in held for key in keys_in(name)], stored, wanted, urls[0])
    return Scan(
        frame=frame.select(wanted),
        names=names,
        parts=tuple(name for name, _ in held),
        rows=None,
        system=system_of_url(urls),
        wanted=tuple(wanted),
        holder=reader.holder,
    )


def _refuse_unnamed(frame: Lazy, wanted: Sequence[str], where: str) -> None:
    """Refuses to read a column without a name in an engine that gives it a name of its own, as DuckDB does."""
    if "" in wanted and "" not in frame.collect_schema().names():
        rule = "has a column without a name, which this engine does not read"
        raise DataError(rule, where=where, fix="name the column, or use --engine polars")


def _refuse_twins(parts: Sequence[FilePart], wanted: Sequence[str]) -> None:
    """Refuses columns told apart by case alone, of which DuckDB and Spark would take whichever comes first."""
    for part in parts:
        for name in wanted:
            twin = next((other for other in part.columns if other != name and other.lower() == name.lower()), None)
            if twin is not None:
                fix = "rename one, or use --engine polars"
                raise DataError(
                    f'has columns "{name}" and "{twin}", told apart by case alone', where=part.name, fix=fix
                )


def _partitioned(parts: Sequence[FilePart], wanted: Sequence[str]) -> bool:
    """Tells whether a wanted column stands in the names of folders only."""
    stored = {name for part in parts for name in part.stored}
    keys = {key for part in parts for key in part.partitions}
    needed = bool((keys - stored).intersection(wanted))
    if needed:
        _refuse_hidden(keys, stored, wanted, parts[0].name)
    return needed


def _refuse_hidden(keys: Iterable[str], stored: Collection[str], wanted: Collection[str], where: str) -> None:
    """Refuses a column stored in the files that engines would overwrite with what the folders' names say."""
    for key in keys:
        if key in stored and key in wanted:
            rule = f'has column "{key}" in the file and in the name of its folder'
            raise DataError(rule, where=where, fix="rename the folder or the column")


def _root_of(told: str) -> str:
    """Gives the last cause in what an engine tells, where it tells of several."""
    causes = [line for line in told.splitlines() if line.startswith("Caused by: ")]
    return reason_of(OSError(causes[-1] if causes else told))


def _read_through(file: FilePart, wanted: Sequence[str]) -> None:
    """Reads the wanted columns of a file to the end, keeping nothing."""
    rows = pl.scan_parquet(exactly(file.path)) if file.format == "parquet" else pl.scan_ipc(exactly(file.path))
    stored = [name for name in wanted if name in file.stored]
    try:
        rows.select(pl.col(stored).is_null().sum()).collect(engine="streaming")
    except engine_faults() as error:
        raise damaged(file.path, file.format, str(error)) from None
