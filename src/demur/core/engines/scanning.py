"""Files, globs, folders and URLs become one lazy frame in an engine, after all parts are checked to agree."""

import atexit
import glob
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial, reduce
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import narwhals as nw
import polars as pl

from demur.core.engines.engine import Engine, EngineFault, Lazy, engine_faults, engine_faults_told, reason_of
from demur.core.engines.parts import (
    CONVERT,
    Columns,
    Part,
    damaged,
    is_remote,
    local_parts,
    names_in,
    refuse_disagreement,
    system_of,
    system_of_url,
)
from demur.core.engines.spark import spark_session, why_no_java
from demur.core.io.sources import exactly
from demur.core.io.tables import Request
from demur.core.show.results import path_text
from demur.errors import DataError, UsageError

MEMORY = "1500MB"
"""What DuckDB may use before it writes to disk, unless DEMUR_MEMORY says otherwise."""

_AT_ONCE = 8
_PARQUET_NAME = re.compile(r"\.(parquet|pq)$", re.IGNORECASE)
_INFERENCE = "spark.sql.sources.partitionColumnTypeInference.enabled"
_READ_ALL = {
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
    "mergeSchema": "false",
    "parquet.page.verify-checksum.enabled": "true",
}
"""How Spark reads: nothing is passed over, and a page is held against its checksum where its writer left one."""

_ESCAPED_BEYOND_ASCII = re.compile(r"%[89A-Fa-f][0-9A-Fa-f]")


class Reader:
    """How an engine is given files and URLs."""

    holder: object = None

    def __init__(self, *, memory: str | None, spark_master: str | None) -> None:
        """Starts the engine."""

    def local(self, parts: Sequence[Part], partitioned: bool) -> Any:
        """Gives the engine's frame of files on this machine."""
        raise NotImplementedError

    def remote(self, urls: Sequence[str]) -> Any:
        """Gives the engine's frame of what lies at URLs."""
        raise NotImplementedError

    def remote_columns(self, urls: Sequence[str]) -> list[tuple[str, Columns]]:
        """Gives the files at URLs as far as the engine can list them, and the columns of each."""
        raise NotImplementedError


class _Polars(Reader):
    def local(self, parts: Sequence[Part], partitioned: bool) -> pl.LazyFrame:
        paths = [path_text(part.path) for part in parts]
        if parts[0].format == "arrow":
            return pl.concat([pl.scan_ipc(exactly(part.path)) for part in parts], how="diagonal")
        keys = {key: pl.String() for path in paths for key in keys_in(path)} if partitioned else None
        return pl.scan_parquet(
            paths, glob=False, hive_partitioning=partitioned, hive_schema=keys, extra_columns="ignore"
        )

    def remote(self, urls: Sequence[str]) -> pl.LazyFrame:
        plain = pl.scan_parquet(list(urls), hive_partitioning=False, extra_columns="ignore")
        stored = plain.collect_schema().names()
        inferred = pl.scan_parquet(list(urls), hive_partitioning=True, extra_columns="ignore").collect_schema().names()
        keys = {name: pl.String() for name in inferred if name not in stored}
        if not keys:
            return plain
        return pl.scan_parquet(list(urls), hive_partitioning=True, hive_schema=keys, extra_columns="ignore")

    def remote_columns(self, urls: Sequence[str]) -> list[tuple[str, Columns]]:
        """Polars lists no remote folder; it refuses itself, while it reads, a file whose types are others."""
        return _each(urls, lambda url: {name: str(kind) for name, kind in pl.read_parquet_schema(url).items()})


class _DuckDB(Reader):
    def __init__(self, *, memory: str | None, spark_master: str | None) -> None:
        self.connection = _connected(memory or os.environ.get("DEMUR_MEMORY") or MEMORY)
        self.holder = self.connection

    def local(self, parts: Sequence[Part], partitioned: bool) -> Any:
        return self._read([glob.escape(path_text(part.path)) for part in parts], partitioned)

    def remote(self, urls: Sequence[str]) -> Any:
        return self._read(self._listed(urls), partitioned=True)

    def remote_columns(self, urls: Sequence[str]) -> list[tuple[str, Columns]]:
        return _each(self._listed(urls), self._columns)

    def _read(self, paths: Sequence[str], partitioned: bool) -> Any:
        options = f"hive_partitioning = {str(partitioned).lower()}, hive_types_autocast = false"
        return self.connection.sql(f"FROM read_parquet($paths, {options})", params={"paths": list(paths)})

    def _columns(self, url: str) -> Columns:
        read = "FROM read_parquet($path, hive_partitioning = false)"
        relation = self.connection.cursor().sql(read, params={"path": url})
        return dict(zip(relation.columns, map(str, relation.types), strict=True))

    def _listed(self, urls: Sequence[str]) -> list[str]:
        """Gives the files of globs and folders; a URL that names a file is left as it is."""
        files: list[str] = []
        for url in urls:
            pattern = url if _PARQUET_NAME.search(url) or glob.has_magic(url) else f"{url.rstrip('/')}/**/*.parquet"
            if not glob.has_magic(pattern):
                files.append(pattern)
                continue
            found = self.connection.sql("SELECT file FROM glob($url) ORDER BY file", params={"url": pattern}).fetchall()
            if not found:
                raise DataError("matches no file", where=pattern)
            files += [file for (file,) in found]
        return files


class _Spark(Reader):
    def __init__(self, *, memory: str | None, spark_master: str | None) -> None:
        self.session = spark_session(spark_master)
        self.holder = self.session

    def local(self, parts: Sequence[Part], partitioned: bool) -> Any:
        """Reads the parts of each base by themselves, as Spark takes but one base at a time."""
        if not partitioned:
            return self._files(parts)
        for part in parts:
            _refuse_escapes(part)
        by_base: dict[Path, list[Part]] = {}
        for part in parts:
            by_base.setdefault(part.base.resolve(), []).append(part)
        frames = [self._files(some, basePath=f"file://{base}") for base, some in by_base.items()]
        return reduce(lambda frame, other: frame.unionByName(other, allowMissingColumns=True), frames)

    def remote(self, urls: Sequence[str]) -> Any:
        return self._read(*urls)

    def remote_columns(self, urls: Sequence[str]) -> list[tuple[str, Columns]]:
        return _each(self._read(*urls).inputFiles(), self._columns)

    def _files(self, parts: Sequence[Part], **options: str) -> Any:
        for part in parts:
            _refuse_unseen(part)
        frame = self._read(*map(_spark_path, parts), **options)
        if len(frame.inputFiles()) != len(parts):
            raise DataError("Spark passes over some of the files", where=f"{parts[0].name} and others:")
        return frame

    def _read(self, *paths: str, **options: str) -> Any:
        with _texts_for_partitions(self.session):
            return self.session.read.options(**_READ_ALL, **options).parquet(*paths)

    def _columns(self, path: str) -> Columns:
        return {item.name: item.dataType.simpleString() for item in self._read(path).schema.fields}


READERS: dict[Engine, Callable[..., Reader]] = {"polars": _Polars, "duckdb": _DuckDB, "spark": _Spark}


def keys_in(path: str) -> list[str]:
    """Gives the columns in the names of the folders of a path.

    >>> keys_in("s3://lake/log/year=2024/month=03/a.parquet")
    ['year', 'month']
    """
    return [piece.partition("=")[0] for piece in path.split("/")[:-1] if "=" in piece[1:]]


def _each(files: Sequence[str], columns: Callable[[str], Columns]) -> list[tuple[str, Columns]]:
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(zip(files, pool.map(columns, files), strict=True))


def _refuse_unseen(part: Part) -> None:
    """Refuses names that Spark takes for no data, and those with a colon, which it cannot look up."""
    name = part.path.name
    if name.startswith(("_", ".")) or ":" in name:
        odd = "has a colon in its name" if ":" in name else f'has a name that begins with "{name[0]}"'
        raise DataError(f"{odd}, which Spark does not read", where=part.name, fix="rename it")


def _refuse_escapes(part: Part) -> None:
    """Refuses names of folders in which letters beyond ASCII are escaped, which Spark takes byte for byte."""
    for folder in part.path.relative_to(part.base).parts[:-1]:
        if _ESCAPED_BEYOND_ASCII.search(folder):
            rule = f'lies in the folder "{folder}", whose name Spark reads wrongly'
            fix = f'call it "{unquote(folder)}", or use --engine polars or duckdb'
            raise DataError(rule, where=part.name, fix=fix)


def _spark_path(part: Part) -> str:
    return "file://" + re.sub(r"([\\*?\[\]{}])", r"\\\1", str(part.path.resolve()))


@contextmanager
def _texts_for_partitions(session: Any) -> Iterator[None]:
    """Has Spark leave the values in the names of folders as text, as the other engines do here."""
    before = session.conf.get(_INFERENCE)
    session.conf.set(_INFERENCE, "false")
    try:
        yield
    finally:
        session.conf.set(_INFERENCE, before)


def _connected(memory: str) -> Any:
    try:
        import duckdb
    except ImportError:
        raise UsageError('--engine duckdb needs DuckDB: pip install "demur[duckdb]"') from None
    spill = _spill_folder() / str(next(_CONNECTIONS))
    try:
        connection = duckdb.connect(config={"memory_limit": memory, "temp_directory": str(spill)})
    except duckdb.Error as error:
        raise UsageError(f'DEMUR_MEMORY must be an amount such as "{MEMORY}", not "{memory}" ({error})') from None
    connection.execute("SET preserve_insertion_order = false; SET enable_progress_bar = false")
    connection.execute("SET disabled_optimizers = 'statistics_propagation'")  # Parquet's statistics leave NaN out
    return connection


_CONNECTIONS = count(1)


@cache
def _spill_folder() -> Path:
    """Gives the folder where engines may write what memory does not hold; it is removed at exit."""
    folder = Path(tempfile.mkdtemp(prefix="demur-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def why_absent(engine: Engine) -> str | None:
    """Says why an engine cannot be used here, or nothing where it can, without loading it."""
    package = {"spark": "pyspark"}.get(engine, engine)
    if find_spec(package) is None:
        return f'pip install "demur[{engine}]"'
    return why_no_java() if engine == "spark" else None


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
    files: tuple[Part, ...] = field(default=(), repr=False)
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
    engine: Engine,
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
    started = partial(READERS[engine], memory=memory, spark_master=spark_master)
    return _remote(remote, started(), request) if remote else _local(sources, engine, started, request)


def _local(sources: Sequence[str | Path], engine: Engine, started: Callable[[], Reader], request: Request) -> Scan:
    """Starts the engine only when all parts were found to agree, which takes no engine."""
    parts = local_parts(sources)
    if engine != "polars" and parts[0].format == "arrow":
        raise DataError(f"is Arrow, which --engine {engine} does not read", where=parts[0].name, fix=CONVERT)
    held = [(part.name, part.columns) for part in parts]
    names = names_in(held)
    wanted = request.among(names)
    rows = sum(part.rows for part in parts)
    if not rows:
        others = f", as all of the {len(parts):,} parts" if len(parts) > 1 else ""
        raise DataError(f"holds no rows{others}", where=parts[0].name)
    refuse_disagreement(held, wanted)
    if engine != "polars":
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


def _remote(urls: Sequence[str], reader: Reader, request: Request) -> Scan:
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


def _refuse_twins(parts: Sequence[Part], wanted: Sequence[str]) -> None:
    """Refuses columns told apart by case alone, of which DuckDB and Spark would take whichever comes first."""
    for part in parts:
        for name in wanted:
            twin = next((other for other in part.columns if other != name and other.lower() == name.lower()), None)
            if twin is not None:
                fix = "rename one, or use --engine polars"
                raise DataError(
                    f'has columns "{name}" and "{twin}", told apart by case alone', where=part.name, fix=fix
                )


def _partitioned(parts: Sequence[Part], wanted: Sequence[str]) -> bool:
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


def _read_through(file: Part, wanted: Sequence[str]) -> None:
    """Reads the wanted columns of a file to the end, keeping nothing."""
    rows = pl.scan_parquet(exactly(file.path)) if file.format == "parquet" else pl.scan_ipc(exactly(file.path))
    stored = [name for name in wanted if name in file.stored]
    try:
        rows.select(pl.col(stored).is_null().sum()).collect(engine="streaming")
    except engine_faults() as error:
        raise damaged(file.path, file.format, str(error)) from None
