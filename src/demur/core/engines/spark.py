"""Starts Spark quietly, and says plainly why it does not start."""

import atexit
import logging
import os
import shutil
import socket
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from demur.core.engines.engine import engine_faults, reason_of
from demur.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = "local[*]"
PATIENCE = 60.0
"""Seconds to wait for a worker before giving up: a busy cluster may take a while to hand one out."""

_REACH = 5.0
_STANDALONE = "spark://"
_LOOPBACK = ("127.", "localhost", "[::1]")
_QUERY_LOG = "SQLQueryContextLogger"

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}


def spark_session(master: str | None = None, *, patience: float = PATIENCE) -> "SparkSession":
    """Gives the session that runs on a master, started where there is none; without a master, on this machine.

    A session that is already active is used as it is. Its own log is kept off the terminal only where it is
    started here.
    """
    _need_spark()
    active = _running()
    if active is not None:
        _refuse_another(active, master)
        return active
    asked = master or LOCAL
    _need_java()
    _refuse_unreachable(asked)
    session = _started(asked)
    if asked.startswith(_STANDALONE):
        _wait_for_worker(session, asked, patience)
    return session


def _need_spark() -> None:
    try:
        with _quiet_pandas():
            import pyspark  # noqa: F401
    except ImportError:
        raise UsageError('--engine spark needs PySpark: pip install "demur[spark]"') from None


def _running() -> "SparkSession | None":
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


def _need_java() -> None:
    if (lacking := why_no_java()) is not None:
        raise UsageError(f"--engine spark {lacking}")


def why_no_java() -> str | None:
    """Says why Java cannot be started, or nothing where it can."""
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java"):
        return None
    found = f'JAVA_HOME is "{home}", where there is none' if home else "no java is on the PATH"
    return f"needs Java 17 or newer: {found}"


def _refuse_another(active: "SparkSession", master: str | None) -> None:
    running = active.conf.get("spark.master", "")
    if master is not None and master != running:
        raise UsageError(f"a Spark session already runs on {running}; stop it to use {master}")


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


def _started(master: str) -> "SparkSession":
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("demur")
    for key, value in {**_SETTINGS, **_where_it_runs(master)}.items():
        builder = builder.config(key, value)
    faults: tuple[type[BaseException], ...] = (*engine_faults(), RuntimeError)
    with _log_in_file() as log, _quiet_pandas():
        try:
            session = builder.getOrCreate()
        except faults as error:
            raise UsageError(f"Spark does not start on {master}: {_why(error, log)}") from error
    logging.getLogger(_QUERY_LOG).setLevel(logging.CRITICAL + 1)
    return session


def _where_it_runs(master: str) -> dict[str, str]:
    """Keeps a cluster on this machine off its network, and has few reducers where there are few cores."""
    here = master.startswith("local") or master.removeprefix(_STANDALONE).startswith(_LOOPBACK)
    if not here:
        return {}
    host = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return {**host, "spark.sql.shuffle.partitions": str(max(2, os.cpu_count() or 2))}


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
