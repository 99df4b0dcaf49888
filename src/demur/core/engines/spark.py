"""Spark as an engine: a session that is started quietly, or the plain reason why it does not start."""

from __future__ import annotations

import atexit
import logging
import os
import re
import shutil
import socket
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import narwhals as nw
import polars as pl

from demur.core.engines.engine import MARKS, AddUp, Engine, Lazy, OfBatch, engine_faults, reason_of
from demur.core.engines.scanning import FilePart, columns_of_each
from demur.errors import DataError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATIENCE = 60.0
"""Seconds to wait for a worker before giving up: a busy cluster may take a while to hand one out."""

_REACH = 5.0
_STANDALONE = "spark://"
_LOOPBACK = ("127.", "localhost", "[::1]")

_INFERENCE = "spark.sql.sources.partitionColumnTypeInference.enabled"
_SETTINGS: dict[str, bool | float | int | str | None] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    _INFERENCE: "false",
}
_READ_ALL = {
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
    "mergeSchema": "false",
    "parquet.page.verify-checksum.enabled": "true",
}
"""How Spark reads: nothing is passed over, and a page is held against its checksum where its writer left one."""

_IN_SPARK: dict[Any, tuple[str, str]] = {
    pl.String: ("string", "string"),
    pl.Int32: ("int", "int32"),
    pl.Int64: ("bigint", "int64"),
    pl.Float64: ("double", "float64"),
}
"""What columns made of batches are called in Spark, and in Arrow."""

_ESCAPED_BEYOND_ASCII = re.compile(r"%[89A-Fa-f][0-9A-Fa-f]")


class SparkEngine(Engine):
    """Spark, on this machine or on a cluster."""

    def __init__(self, *, memory: str | None = None, spark_master: str | None = None) -> None:
        self.session = spark_session(spark_master)
        self.holder = self.session

    def local(self, parts: Sequence[FilePart], partitioned: bool) -> Any:
        """Reads the parts of each base by themselves, as Spark takes but one base at a time."""
        if not partitioned:
            return self._files(parts)
        by_base: dict[Path, list[FilePart]] = {}
        for part in parts:
            _refuse_escapes(part)
            by_base.setdefault(part.base.resolve(), []).append(part)
        frames = [self._files(some, basePath=f"file://{base}") for base, some in by_base.items()]
        return reduce(lambda frame, other: frame.unionByName(other, allowMissingColumns=True), frames)

    def remote(self, urls: Sequence[str]) -> Any:
        """Gives the frame of what lies at URLs."""
        return self._read(*urls)

    def remote_columns(self, urls: Sequence[str]) -> list[tuple[str, Mapping[str, str]]]:
        """Gives the files at URLs, and the type of each column."""
        return columns_of_each(self._read(*urls).inputFiles(), self._columns)

    def hold(self, frame: pl.DataFrame) -> Any:
        """Hands rows over by way of Arrow."""
        return self.session.createDataFrame(frame.to_arrow())

    @classmethod
    def summed_batches(cls, frame: Lazy, count: OfBatch, add: AddUp, schema: pl.Schema) -> pl.DataFrame:
        """Has the workers make something of batches of rows, and adds it up on the cluster; they need demur too."""
        names = {name: _IN_SPARK[kind.base_type()] for name, kind in schema.items()}

        def counted(batches: Iterator[Any]) -> Iterator[Any]:
            import pyarrow

            kinds = pyarrow.schema([(name, pyarrow.type_for_alias(kind)) for name, (_, kind) in names.items()])
            for batch in batches:
                part = count(pl.DataFrame(pl.from_arrow(batch)))
                yield from part.select(*names).to_arrow().cast(kinds).to_batches()

        ddl = ", ".join(f"`{name}` {kind}" for name, (kind, _) in names.items())
        try:
            sums = cls.collect(add(nw.from_native(frame.to_native().mapInArrow(counted, ddl))))
            return sums.cast(schema)
        except engine_faults() as error:
            raise _fault_of_worker(str(error)) or error from None

    @staticmethod
    def why_unusable() -> str | None:
        """Says why Java cannot be started, or nothing where it can."""
        home = os.environ.get("JAVA_HOME")
        if shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java"):
            return None
        found = f'JAVA_HOME is "{home}", where there is none' if home else "no java is on the PATH"
        return f"needs Java 17 or newer: {found}"

    @staticmethod
    def contains(native: Any, lists: str, item: str, name: str) -> Any:
        """Adds whether a list has an item."""
        from pyspark.sql import functions

        return native.withColumn(name, functions.array_contains(_spark_column(lists), _spark_column(item)))

    @staticmethod
    def acceptable(native: Any, lists: str, refused: list[str], name: str, first: str) -> Any:
        """Adds the lists without nulls and refused labels, and the first label of each."""
        from pyspark.sql import functions

        kept = native.withColumn(name, functions.filter(lists, lambda label: label.isNotNull() & ~label.isin(refused)))
        return kept.withColumn(first, functions.get(name, functions.lit(0)))

    @staticmethod
    def add_buckets(native: Any, name: str, buckets: int, least: str) -> Any:
        """Turns texts into buckets by the first digits of their MD5."""
        from pyspark.sql import functions

        digits = functions.md5(_spark_column(name))

        def number(first: int, count: int) -> Any:
            return functions.conv(functions.substring(digits, first, count), 16, 10).cast("bigint")

        return native.withColumns({least: number(5, 8), name: (number(1, 4) % buckets).cast("int")})

    @staticmethod
    def add_marks(native: Any, texts: str, name: str) -> Any:
        """Adds numbers made of the upper bits of Spark's 64-bit hash."""
        from pyspark.sql import functions

        upper = 64 - (MARKS.bit_length() - 1)
        return native.withColumn(name, functions.shiftrightunsigned(functions.xxhash64(_spark_column(texts)), upper))

    @staticmethod
    def beside(native: Any, table: pl.DataFrame) -> Any:
        """Sends the table to the session of a frame."""
        return native.sparkSession.createDataFrame(table.to_arrow())

    def _files(self, parts: Sequence[FilePart], **options: str) -> Any:
        """Reads files but for names that Spark takes for no data, and those with a colon, which it cannot look up."""
        paths = []
        for part in parts:
            name = part.path.name
            if name.startswith(("_", ".")) or ":" in name:
                odd = "has a colon in its name" if ":" in name else f'has a name that begins with "{name[0]}"'
                raise DataError(f"{odd}, which Spark does not read", where=part.name, fix="rename it")
            paths.append("file://" + re.sub(r"([\\*?\[\]{}])", r"\\\1", str(part.path.resolve())))
        frame = self._read(*paths, **options)
        if len(frame.inputFiles()) != len(parts):
            raise DataError("Spark passes over some of the files", where=f"{parts[0].name} and others:")
        return frame

    def _read(self, *paths: str, **options: str) -> Any:
        """Has Spark leave the values in the names of folders as text, as the other engines do here."""
        settings: Any = self.session.conf
        before = settings.get(_INFERENCE)
        settings.set(_INFERENCE, "false")
        try:
            return self.session.read.options(**_READ_ALL, **options).parquet(*paths)
        finally:
            settings.set(_INFERENCE, before)

    def _columns(self, path: str) -> Mapping[str, str]:
        return {item.name: item.dataType.simpleString() for item in self._read(path).schema.fields}


def _refuse_escapes(part: FilePart) -> None:
    """Refuses names of folders in which characters beyond ASCII are escaped, which Spark takes byte for byte."""
    for folder in part.path.relative_to(part.base).parts[:-1]:
        if _ESCAPED_BEYOND_ASCII.search(folder):
            rule = f'lies in the folder "{folder}", whose name Spark reads wrongly'
            fix = f'call it "{unquote(folder)}", or use --engine polars or duckdb'
            raise DataError(rule, where=part.name, fix=fix)


def _fault_of_worker(message: str) -> DataError | UsageError | None:
    """Gives the fault that demur raised on a worker, or that it is not there; None for any other.

    >>> print(_fault_of_worker("PythonException: ... demur.errors.DataError: a.parquet: has no reference"))
    a.parquet: has no reference
    """
    if match := re.search(r"demur\.errors\.DataError: (.+)", message):
        return DataError(match[1])
    if match := re.search(r"No module named '(\w+)'", message):
        return UsageError(f"the workers of Spark have no {match[1]}: pip install demur on each, of this very version")
    return None


def _spark_column(name: str) -> Any:
    from pyspark.sql import functions

    escaped = name.replace("`", "``")
    return functions.col(f"`{escaped}`")


def spark_session(master: str | None = None, *, patience: float = PATIENCE) -> SparkSession:
    """Gives the session that runs on a master, started where there is none; without a master, on this machine.

    A session that is already active is used as it is. Its own log is kept off the terminal only where it is
    started here.
    """
    try:
        active = _running()
    except ImportError:
        raise UsageError('--engine spark needs PySpark: pip install "demur[spark]"') from None
    if active is not None:
        running = active.conf.get("spark.master", "")
        if master is not None and master != running:
            raise UsageError(f"a Spark session already runs on {running}; stop it to use {master}")
        return active
    asked = master or "local[*]"
    if (lacking := SparkEngine.why_unusable()) is not None:
        raise UsageError(f"--engine spark {lacking}")
    _refuse_unreachable(asked)
    session = _start_session(asked)
    if asked.startswith(_STANDALONE):
        _wait_for_worker(session, asked, patience)
    return session


def _running() -> SparkSession | None:
    """Gives the session there is, whichever thread started it: Spark would hand it out for any other master too."""
    with _quiet_pandas():
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession

    try:
        return SparkSession.active()
    except PySparkException:
        return None


@contextmanager
def _quiet_pandas() -> Iterator[None]:
    """Keeps back PySpark's remarks on the version of pandas, which is not used."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield


def _refuse_unreachable(master: str) -> None:
    """Knocks at a standalone master first, as Spark itself knocks for a minute and then fails obscurely."""
    if not master.startswith(_STANDALONE):
        return
    reasons = []
    for place in master.removeprefix(_STANDALONE).split(","):
        host, _, port = place.rpartition(":")
        if not host or not port.isdigit():
            raise UsageError(f"--spark-master {master} must be spark://HOST:PORT")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=_REACH).close()
            return
        except (OSError, OverflowError) as error:
            reasons.append(f"{place}: {getattr(error, 'strerror', None) or error}")
    raise UsageError(f"--spark-master {master} does not answer ({'; '.join(reasons)}); is it running?")


def _start_session(master: str) -> SparkSession:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("demur").config(map=_SETTINGS)
    on_this_machine = master.startswith("local") or master.removeprefix(_STANDALONE).startswith(_LOOPBACK)
    if on_this_machine:
        # a cluster on this machine is kept off its network, and has few reducers where there are few cores
        host = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        builder = builder.config(map={**host, "spark.sql.shuffle.partitions": str(max(2, os.cpu_count() or 2))})
    faults: tuple[type[BaseException], ...] = (*engine_faults(), RuntimeError)
    with _log_in_file() as log, _quiet_pandas(), _same_python(on_this_machine):
        try:
            session = builder.getOrCreate()
        except faults as error:
            raise UsageError(f"Spark does not start on {master}: {_why(error, log)}") from error
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)
    return session


@contextmanager
def _same_python(on_this_machine: bool) -> Iterator[None]:
    """Has the workers on this machine run the Python that runs here, not the first on the PATH."""
    chosen = not on_this_machine or "PYSPARK_PYTHON" in os.environ
    if not chosen:
        os.environ["PYSPARK_PYTHON"] = sys.executable
    try:
        yield
    finally:
        if not chosen:
            del os.environ["PYSPARK_PYTHON"]


@contextmanager
def _log_in_file() -> Iterator[Path]:
    """Has the Java process that starts meanwhile write to a file what it would write to the terminal, for good."""
    folder = Path(tempfile.mkdtemp(prefix="demur-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / "spark.log"
    with suppress(ValueError, OSError):
        sys.stderr.flush()
    kept = os.dup(2)
    try:
        with path.open("wb") as log:
            os.dup2(log.fileno(), 2)
        yield path
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _why(error: BaseException, log: Path) -> str:
    """Gives the reason behind what PySpark says when Java has ended, or has given up on the master."""
    if "stopped SparkContext" in str(error):
        return "the master does not take the job; is its Spark of the same version as PySpark here?"
    if "JAVA_GATEWAY_EXITED" not in str(error):
        return reason_of(error)
    lines = [line for line in log.read_text(errors="replace").splitlines() if "Error" in line or "Exception" in line]
    return f"{lines[0].strip() if lines else 'Java ended at once'} (Java 17 or newer is needed)"


def _wait_for_worker(session: Any, master: str, patience: float) -> None:
    """Waits until an executor beside the driver is there: without one, a job would wait for ever."""
    tracker = session.sparkContext._jsc.sc().statusTracker()
    until = time.monotonic() + patience
    while len(tracker.getExecutorInfos()) < 2:
        if time.monotonic() > until:
            session.stop()
            raise UsageError(f"no worker of {master} took the job within {patience:.0f} s: are its workers running?")
        time.sleep(0.05)
