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
    "spark.master.rest.enabled": "false",
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


def wait_until(happened: Callable[[], Any], what: str) -> Any:
    """What `happened` gives as soon as it is true; after the deadline a fault."""
    end = time.monotonic() + DEADLINE
    while not (found := happened()):
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {DEADLINE:.0f} s")
        time.sleep(0.02)
    return found


@dataclass(frozen=True)
class WorkerProcess:
    """A process group: a guard, a worker, and the executors which that one starts."""

    process: subprocess.Popen[bytes]

    @classmethod
    def started(cls, *arguments: str, log: Path, environment: dict[str, str]) -> WorkerProcess:
        classes = f"{environment['SPARK_HOME']}/jars/*"
        command = [str(java()), *LIGHT.split(), "-Xmx256m", "-cp", classes, "org.apache.spark.deploy.worker.Worker"]
        with log.open("wb") as out:
            process = subprocess.Popen(
                ["sh", "-c", GUARDED, "sh", *command, *arguments],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
        return cls(process)

    def kill(self) -> None:
        """Ends every process of the group at once, as a machine that loses its power does."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        if self.process.stdin is not None:
            self.process.stdin.close()


@dataclass
class Cluster:
    """A master and workers of one core each, with logs and scratch space in one folder.

    The master and the first worker are in the Java process in which a session will have its driver: a Java process of
    its own for each would cost as much as all that they do. Executors and the other workers have their own.
    """

    folder: Path
    size: int = 2
    url: str = ""
    workers: list[WorkerProcess] = field(default_factory=list)
    gateway: Any = None

    def __enter__(self) -> Cluster:
        settings = {**SETTINGS, "spark.sql.warehouse.dir": str(self.folder / "warehouse")}
        (self.folder / "conf").mkdir()
        (self.folder / "conf" / "spark-defaults.conf").write_text(
            "".join(f"{one} {settings[one]}\n" for one in settings)
        )
        try:
            self._start_master()
            for _ in range(self.size - 1):
                self.add_worker()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _start_master(self) -> None:
        from pyspark import SparkContext
        from pyspark.java_gateway import launch_gateway

        with patch.dict(os.environ, self.environment(), clear=True), (self.folder / "driver.log").open("wb") as log:
            self.gateway = launch_gateway(popen_kwargs={"stdout": log, "stderr": log})
        SparkContext._ensure_initialized(gateway=self.gateway)
        jvm = self.gateway.jvm
        settings, none = jvm.org.apache.spark.SparkConf(), jvm.scala.Option.empty()
        masters = self.gateway.new_array(jvm.java.lang.String, 1)
        deploy = jvm.org.apache.spark.deploy
        self.url = masters[0] = (
            deploy.master.Master.startRpcEnvAndEndpoint(HOST, 0, 0, settings)._1().address().toSparkURL()
        )
        where = (masters, str(self.folder / "work"), none, settings, none)
        deploy.worker.Worker.startRpcEnvAndEndpoint(HOST, 0, 0, 1, 1024, *where)

    def add_worker(self) -> None:
        """Starts one more worker; it is there when a session has an executor of it."""
        size = ("--cores", "1", "--memory", "1g", "--work-dir", str(self.folder / "work"))
        place = ("--host", HOST, "--port", "0", "--webui-port", "0")
        log = self.folder / f"worker{len(self.workers)}.log"
        self.workers.append(WorkerProcess.started(*place, *size, self.url, log=log, environment=self.environment()))

    def kill_worker(self) -> None:
        """Kills a worker with its executors, without a word to anybody."""
        self.workers.pop().kill()

    def stop(self) -> None:
        """Ends everything, workers first, and the Java process, which pyspark would keep until Python ends."""
        from pyspark import SparkContext

        while self.workers:
            self.kill_worker()
        if self.gateway is not None:
            self.gateway.shutdown()
            self.gateway.proc.stdin.close()
            self.gateway.proc.wait(DEADLINE)
            SparkContext._gateway = SparkContext._jvm = None

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
