"""How each engine is given the files and URLs of a log."""

import atexit
import glob
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, reduce
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import polars as pl

from demur.data.engines import Engine
from demur.data.lines import exactly
from demur.data.parts import Columns, Part
from demur.data.spark_sessions import spark_session, why_no_java
from demur.errors import DataError, UsageError
from demur.show import path_text

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
