"""A Spark standalone cluster on loopback: a master and workers that start, can be killed, and leave nothing behind."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any
from unittest.mock import patch

from demur.core.engines.spark import spark_session

HOST = "127.0.0.1"
OLDEST_JAVA = 17
DEADLINE = 60.0
"""Seconds after which something that should have happened counts as a fault; what is sound takes a few."""

GUARDED = '"$@" </dev/null & read -r _; kill -KILL 0'
"""Runs a command until the pipe to the tests closes, however they end, then kills the group, executors included."""

LIGHT = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
"""Java that starts quickly and keeps to one core: short tests never earn back a costlier start."""

SETTINGS = {
    "spark.cores.max": "2",
    "spark.driver.extraJavaOptions": LIGHT,
    "spark.driver.memory": "1g",
    "spark.executor.cores": "1",
    "spark.executor.extraJavaOptions": LIGHT,
    "spark.executor.memory": "512m",
}
"""What an administrator would have set up for those who use the cluster."""


def why_not() -> str | None:
    """Why no cluster can be started here, or None where one can."""
    if find_spec("pyspark") is None:
        return "pyspark is not installed: the Spark tests need the extra demur[spark]"
    if (found := java_version()) is None:
        return f"Java is not installed: the Spark tests need Java {OLDEST_JAVA} or newer"
    if found < OLDEST_JAVA:
        return f"Java {found} is too old: the Spark tests need Java {OLDEST_JAVA} or newer"
    return None


def java() -> str | None:
    """The Java that Spark itself would start."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")


def java_version() -> int | None:
    """The first number of Java's version: 17 of 17.0.15, and 8 of 1.8.0."""
    command = java()
    if command is None:
        return None
    told = subprocess.run([command, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(?:1\.)?(\d+)', told)
    return int(found[1]) if found else None


def wait_until(happened: Callable[[], Any], what: str, *, told: Callable[[], str] = str) -> Any:
    """What `happened` gives as soon as it is true; after the deadline a fault with what is `told` of it."""
    end = time.monotonic() + DEADLINE
    while not (found := happened()):
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {DEADLINE:.0f} s\n{told()}")
        time.sleep(0.02)
    return found


@dataclass(frozen=True)
class Daemon:
    """A process group of the cluster: a guard, a Java process, and the executors which that one starts."""

    process: subprocess.Popen[bytes]
    log: Path

    @classmethod
    def started(cls, kind: str, *arguments: str, log: Path, environment: dict[str, str]) -> Daemon:
        options = [*LIGHT.split(), "-Xmx256m", "-Dspark.master.rest.enabled=false"]
        classes = f"{environment['SPARK_HOME']}/jars/*"
        command = [str(java()), *options, "-cp", classes, f"org.apache.spark.deploy.{kind}", *arguments]
        with log.open("wb") as out:
            process = subprocess.Popen(
                ["sh", "-c", GUARDED, "sh", *command],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
        return cls(process, log)

    def output(self) -> str:
        """What the log says so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def kill(self) -> None:
        """Ends every process of the group at once, as a machine that loses its power does."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        if self.process.stdin is not None:
            self.process.stdin.close()

    def alive(self) -> bool:
        """Whether any process of the group is left."""
        try:
            os.killpg(self.process.pid, 0)
        except ProcessLookupError:
            return False
        return True


@dataclass
class Cluster:
    """A master and workers of one core each, with logs and scratch space in one folder."""

    folder: Path
    size: int = 2
    url: str = ""
    workers: list[Daemon] = field(default_factory=list)
    started: list[Daemon] = field(default_factory=list)

    def __enter__(self) -> Cluster:
        settings = {**SETTINGS, "spark.sql.warehouse.dir": str(self.folder / "warehouse")}
        (self.folder / "conf").mkdir()
        (self.folder / "conf" / "spark-defaults.conf").write_text(
            "".join(f"{one} {settings[one]}\n" for one in settings)
        )
        try:
            self._start_master()
            for _ in range(self.size):
                self._start_worker()
            self._wait_for_workers(self.size)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def master(self) -> Daemon:
        """The master, which was started first."""
        return self.started[0]

    def kill_worker(self) -> None:
        """Kills one worker with its executors, without a word to anybody."""
        self.workers.pop().kill()

    def add_worker(self) -> None:
        """One more worker, there when this returns."""
        registered = self._registered()
        self._start_worker()
        self._wait_for_workers(registered + 1)

    def stop(self) -> None:
        """Ends everything, workers first, and waits until nothing is left."""
        for daemon in reversed(self.started):
            daemon.kill()
        self.workers.clear()
        wait_until(lambda: not self.leftovers(), "the end of every process of the cluster")

    def leftovers(self) -> list[int]:
        """Process groups of this cluster in which something still lives."""
        return [daemon.process.pid for daemon in self.started if daemon.alive()]

    def _start_master(self) -> None:
        self._start("master.Master", "--host", HOST, "--port", "0", "--webui-port", "0")
        found = wait_until(
            lambda: re.search(r"Starting Spark master at (spark://\S+)", self.master.output()),
            "the start of the master",
            told=self.master.output,
        )
        self.url = found[1]

    def _start_worker(self) -> None:
        scratch = ("--work-dir", str(self.folder / "work"))
        size = ("--cores", "1", "--memory", "1g")
        worker = self._start(
            "worker.Worker", "--host", HOST, "--port", "0", "--webui-port", "0", *size, *scratch, self.url
        )
        self.workers.append(worker)

    def _start(self, kind: str, *arguments: str) -> Daemon:
        log = self.folder / f"{len(self.started)}.log"
        daemon = Daemon.started(kind, *arguments, log=log, environment=self.environment())
        self.started.append(daemon)
        return daemon

    def environment(self) -> dict[str, str]:
        """The tests' own Spark, Python and folders, whatever Spark the user has set up."""
        others = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
        return others | {
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_CONF_DIR": str(self.folder / "conf"),
            "SPARK_HOME": spark_home(),
            "SPARK_LOCAL_DIRS": str(self.folder / "local"),
            "SPARK_LOCAL_IP": HOST,
            "SPARK_SCALA_VERSION": scala(),
        }

    def _registered(self) -> int:
        return self.master.output().count("Registering worker")

    def _wait_for_workers(self, count: int) -> None:
        wait_until(lambda: self._registered() >= count, f"{count} workers registered", told=self._logs)

    def _logs(self) -> str:
        return "\n".join(daemon.output() for daemon in self.started)


def spark_home() -> str:
    """The folder of the installed pyspark, with the jars."""
    found = find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    return str(Path(found.origin).parent)


def scala() -> str:
    """The version of Scala in the jars, which a worker must be told to start executors."""
    (core,) = Path(spark_home(), "jars").glob("spark-core_*.jar")
    return core.name.removeprefix("spark-core_").split("-")[0]


def connected(cluster: Cluster) -> Any:
    """A session on the cluster, started as the product does, there when each worker has an executor for it."""
    with patch.dict(os.environ, cluster.environment(), clear=True):
        session = spark_session(cluster.url)
    wait_for_executors(session, cluster.size)
    return session


def wait_for_executors(session: Any, count: int) -> None:
    """Waits until as many executors take part."""
    wait_until(lambda: len(executors(session)) == count, f"{count} executors")


def executors(session: Any) -> dict[str, int]:
    """The executors that take part, and how many tasks each has finished."""
    summaries = session.sparkContext._jsc.sc().statusStore().executorList(True)
    found = [summaries.apply(place) for place in range(summaries.size())]
    return {one.id(): one.completedTasks() for one in found if one.id() != "driver"}


def disconnected(session: Any) -> None:
    """Ends the session and the driver's own Java process, which pyspark would keep until Python ends."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    session.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(DEADLINE)
    SparkContext._gateway = SparkContext._jvm = None
