"""DuckDB as an engine: one connection with a bound on memory, beyond which it writes to disk."""

from __future__ import annotations

import atexit
import glob
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import polars as pl

from demur.core.engines.engine import BATCH, MARKS, NUMBERS, Engine
from demur.core.engines.scanning import FilePart, columns_of_each
from demur.core.show.results import path_text
from demur.errors import DataError, UsageError

MEMORY = "1500MB"
"""What DuckDB may use before it writes to disk, unless DEMUR_MEMORY says otherwise."""

_PARQUET_NAME = re.compile(r"\.(parquet|pq)$", re.IGNORECASE)
_S3 = ("s3://", "s3a://")
_CREDENTIALS = {
    "KEY_ID": "AWS_ACCESS_KEY_ID",
    "SECRET": "AWS_SECRET_ACCESS_KEY",
    "SESSION_TOKEN": "AWS_SESSION_TOKEN",
    "REGION": "AWS_REGION",
}
_CONNECTIONS = count(1)
_READS = count(1)


class DuckDBEngine(Engine):
    """DuckDB with a connection of its own."""

    def __init__(self, *, memory: str | None = None, spark_master: str | None = None) -> None:
        try:
            import duckdb
        except ImportError:
            raise UsageError('--engine duckdb needs DuckDB: pip install "demur[duckdb]"') from None
        amount = memory or os.environ.get("DEMUR_MEMORY") or MEMORY
        spill = _spill_folder() / str(next(_CONNECTIONS))
        try:
            self.connection = duckdb.connect(config={"memory_limit": amount, "temp_directory": str(spill)})
        except duckdb.Error as error:
            raise UsageError(f'DEMUR_MEMORY must be an amount such as "{MEMORY}", not "{amount}" ({error})') from None
        self.connection.execute("SET preserve_insertion_order = false; SET enable_progress_bar = false")
        # Parquet's statistics leave NaN out
        self.connection.execute("SET disabled_optimizers = 'statistics_propagation'")
        self.holder = self.connection

    def local(self, parts: Sequence[FilePart], partitioned: bool) -> Any:
        """Gives the frame of files on this machine."""
        return self._read([glob.escape(path_text(part.path)) for part in parts], partitioned)

    def remote(self, urls: Sequence[str]) -> Any:
        """Gives the frame of what lies at URLs."""
        reach_stores(self.connection, urls)
        return self._read(self._listed(urls), partitioned=True)

    def remote_columns(self, urls: Sequence[str]) -> list[tuple[str, Mapping[str, str]]]:
        """Gives the files at URLs, and the type of each column."""
        reach_stores(self.connection, urls)
        return columns_of_each(self._listed(urls), self._columns)

    @staticmethod
    def batches(native: Any) -> Iterator[pl.DataFrame]:
        """Gives the rows in batches, by way of Arrow."""
        for batch in native.to_arrow_reader(BATCH):
            yield pl.DataFrame(pl.from_arrow(batch))

    def hold(self, frame: pl.DataFrame) -> Any:
        """Hands rows over by way of Arrow."""
        return self.connection.from_arrow(frame.to_arrow())

    @staticmethod
    def contains(native: Any, lists: str, item: str, name: str) -> Any:
        """Adds whether a list has an item."""
        from duckdb import ColumnExpression, FunctionExpression, StarExpression

        found = FunctionExpression("list_contains", ColumnExpression(lists), ColumnExpression(item))
        return native.select(StarExpression(), found.alias(name))

    @staticmethod
    def acceptable(native: Any, lists: str, refused: list[str], name: str, first: str) -> Any:
        """Adds the lists without nulls and refused labels, and the first label of each."""
        from duckdb import SQLExpression, StarExpression

        labels = ", ".join("'" + label.replace("'", "''") + "'" for label in refused)
        others = f" AND label NOT IN ({labels})" if refused else ""
        wanted = SQLExpression(f'[label FOR label IN "{lists}" IF label IS NOT NULL{others}]')
        kept = native.select(StarExpression(), wanted.alias(name))
        return kept.select(StarExpression(), SQLExpression(f'"{name}"[1]').alias(first))

    @staticmethod
    def add_buckets(native: Any, name: str, buckets: int, least: str) -> Any:
        """Turns texts into buckets by the first digits of their MD5."""
        from duckdb import SQLExpression, StarExpression

        escaped = name.replace('"', '""')
        digits = f'"{escaped}"'
        hashed = SQLExpression(f"('0x' || left(md5({digits}), 12))::BIGINT").alias(name)
        bucket = SQLExpression(f"({digits} // {NUMBERS:d} % {buckets:d})::INTEGER").alias(name)
        rest = SQLExpression(f"{digits} % {NUMBERS:d}").alias(least)
        replaced = [column for column in native.columns if column in (name, least)]
        found = native.select(StarExpression(exclude=[name]), hashed)
        return found.select(StarExpression(exclude=replaced), bucket, rest)

    @staticmethod
    def add_marks(native: Any, texts: str, name: str) -> Any:
        """Adds numbers made of the upper bits of DuckDB's hash."""
        from duckdb import SQLExpression, StarExpression

        escaped = texts.replace('"', '""')
        number = SQLExpression(f'(hash("{escaped}") // {2**64 // MARKS:d})::BIGINT')
        return native.select(StarExpression(), number.alias(name))

    @staticmethod
    def beside(native: Any, table: pl.DataFrame) -> Any:
        """Has the connection of a relation scan an Arrow table."""
        held_table = table.to_arrow()  # noqa: F841  # DuckDB finds it by the name of the variable
        return native.query("rows_beside", "FROM held_table")

    def _read(self, paths: Sequence[str], partitioned: bool) -> Any:
        options = f"hive_partitioning = {str(partitioned).lower()}, hive_types_autocast = false"
        name = f"paths_{next(_READS)}"  # relations are joined only if no two have a parameter of one name
        return self.connection.sql(f"FROM read_parquet(${name}, {options})", params={name: list(paths)})

    def _columns(self, url: str) -> Mapping[str, str]:
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


def reach_stores(connection: Any, urls: Sequence[str]) -> None:
    """Lets DuckDB read from S3 and stores like it, with the credentials of the environment.

    Its extension `httpfs` is taken where it is installed, or from the package duckdb-extension-httpfs of the same
    version; otherwise s3fs reads for it.
    """
    if not any(url.lower().startswith(_S3) for url in urls):
        return
    if connection.list_filesystems():
        return
    if not _load_httpfs(connection):
        try:
            s3fs = import_module("s3fs")
        except ImportError:
            raise UsageError(
                "DuckDB reads from s3:// with its extension httpfs, or by s3fs: duckdb -c 'INSTALL httpfs', "
                "pip install duckdb-extension-httpfs (of DuckDB's version), or pip install s3fs"
            ) from None
        connection.register_filesystem(s3fs.S3FileSystem(skip_instance_cache=True))
        return
    known = {name: os.environ[variable] for name, variable in _CREDENTIALS.items() if os.environ.get(variable)}
    if endpoint := os.environ.get("AWS_ENDPOINT_URL"):
        parts = urlsplit(endpoint)
        known |= {"ENDPOINT": parts.netloc, "URL_STYLE": "path", "USE_SSL": str(parts.scheme == "https").lower()}
    options = "".join(f", {name} '{value.replace(chr(39), 2 * chr(39))}'" for name, value in known.items())
    connection.execute(f"CREATE OR REPLACE SECRET demur (TYPE s3{options})")


def _load_httpfs(connection: Any) -> bool:
    """Whether DuckDB has httpfs, here or from the package that brings it."""
    import duckdb

    places = ["httpfs"]
    if (package := find_spec("duckdb_extension_httpfs")) is not None and package.origin is not None:
        folder = Path(package.origin).parent / "extensions" / f"v{duckdb.__version__}"
        places += [str(folder / "httpfs.duckdb_extension")]
    for place in places:
        with suppress(duckdb.Error):
            connection.execute(f"LOAD '{place}'")
            return True
    return False


@cache
def _spill_folder() -> Path:
    """Gives the folder where engines may write what memory does not hold; it is removed at exit."""
    folder = Path(tempfile.mkdtemp(prefix="demur-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
