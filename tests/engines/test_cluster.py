"""A real cluster: both workers work, a lost one changes no number, nothing is ordered in one place, nothing is left."""

import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import narwhals as nw
import numpy as np
import polars as pl
import pytest

from demur.core.stats.sweep import Sweep, sweep_groups
from demur.returns.classes import Confusion
from demur.returns.verify import judged_columns, sample_log
from engines import cluster as clusters
from engines.cluster import Cluster, executors, wait_for_executors, wait_until, why_not

ROWS = 50_000
PARTS = 6
TESTS = Path(__file__).parents[1]

needs_java = pytest.mark.skipif(bool(why_not()), reason=why_not() or "")


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """A folder of Parquet parts with judged rows that count alike."""
    folder = tmp_path_factory.mktemp("parts")
    rows = judged_columns(sample_log(ROWS, seed=3).drop("weight"))
    for place, part in enumerate(rows.iter_slices(-(-ROWS // PARTS))):
        part.write_parquet(folder / f"{place}.parquet")
    return folder


@pytest.fixture
def worker_to_lose(cluster, spark):
    """Kills a worker on request; another takes its place for the tests that follow."""
    yield cluster.kill_worker
    cluster.add_worker()
    wait_for_executors(spark, cluster.size)


def in_polars(parts):
    return nw.from_native(pl.scan_parquet(parts / "*.parquet"))


def on_spark(spark, parts):
    return nw.from_native(spark.read.parquet(str(parts)))


def test_both_workers_count_and_the_counts_are_those_of_polars(spark, parts):
    before = executors(spark)
    assert len(before) == 2
    found, expected = (Sweep.from_frame(frame) for frame in (on_spark(spark, parts), in_polars(parts)))
    assert found == expected
    assert found.n == ROWS
    assert {found.right.dtype, found.wrong.dtype} == {np.dtype(np.int64)}
    wait_until(
        lambda: all(tasks > before[name] for name, tasks in executors(spark).items()), "a task done by each executor"
    )


def test_labels_are_counted_on_the_cluster_as_in_polars(spark, parts):
    assert Confusion.from_frame(on_spark(spark, parts)) == Confusion.from_frame(in_polars(parts))


def test_a_sweep_orders_nothing_and_gathers_no_rows_in_one_place(spark, parts):
    plan = sweep_groups(on_spark(spark, parts)).to_native()._jdf.queryExecution().executedPlan().toString()
    assert "HashAggregate" in plan
    assert "hashpartitioning(confidence" in plan
    assert not [word for word in ("Sort", "Window", "SinglePartition", "RangePartitioning") if word in plan]


def test_a_worker_killed_during_the_job_changes_no_count(spark, parts, tmp_path, worker_to_lose):
    before = executors(spark)
    frame = nw.from_native(held_up(spark.read.parquet(str(parts)).repartition(PARTS), tmp_path))
    with ThreadPoolExecutor(1) as elsewhere:
        job = elsewhere.submit(Sweep.from_frame, frame)
        try:
            # Two tasks are done, and what they counted lies with their executors; two more run, one on each.
            wait_until(lambda: job.done() or len(list(tmp_path.glob("running-*"))) == 4, "a task on each executor")
            worker_to_lose()
        finally:
            (tmp_path / "go").touch()
        found = job.result()
    assert found == Sweep.from_frame(in_polars(parts))
    assert len(executors(spark).keys() & before.keys()) == 1


def held_up(frame, folder):
    """The rows as they are, but only the first two parts come before there is a file `go` in the folder."""
    running, go = str(folder / "running-"), str(folder / "go")

    def passed_on(batches):
        import time
        from pathlib import Path

        from pyspark import TaskContext

        part = TaskContext.get().partitionId()
        Path(f"{running}{part}").touch()
        while part > 1 and not Path(go).exists():
            time.sleep(0.02)
        yield from batches

    return frame.mapInArrow(passed_on, frame.schema)


@needs_java
def test_a_stopped_cluster_leaves_no_process_even_after_a_fault(tmp_path):
    cluster = Cluster(tmp_path, size=1)
    with suppress(KeyboardInterrupt), cluster:
        assert len(cluster.leftovers()) == 2
        raise KeyboardInterrupt
    assert cluster.leftovers() == []


@needs_java
def test_a_cluster_ends_with_the_process_that_started_it_even_if_that_is_killed(tmp_path):
    code = (
        "import sys; from pathlib import Path; from engines.cluster import Cluster\n"
        f"with Cluster(Path({str(tmp_path)!r}), size=1) as cluster: print(*cluster.leftovers(), flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=TESTS, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        groups = [int(word) for word in holder.stdout.readline().split()]
        holder.send_signal(signal.SIGKILL)
    assert len(groups) == 2
    wait_until(lambda: not any(alive(group) for group in groups), "the end of the master and of the worker")


def alive(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_where_java_is_missing_the_run_says_that_spark_was_not_tested(tmp_path, monkeypatch, capsys):
    for name in list(os.environ):
        if name.startswith(("JAVA_", "PYTEST_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PATH", str(tmp_path))
    test = f"{TESTS / 'engines' / 'test_cluster.py'}::{test_labels_are_counted_on_the_cluster_as_in_polars.__name__}"
    assert pytest.main(["-p", "no:cacheprovider", "--rootdir", str(TESTS.parent), test]) == 0
    said = capsys.readouterr().out
    reason = "Java is not installed: the Spark tests need Java 17 or newer"
    assert re.search(rf"^SPARK WAS NOT TESTED \(tests skipped: \d+\). {reason}$", said, re.MULTILINE)
    assert re.search(rf"^SKIPPED \[\d+\] \S+: {reason}$", said, re.MULTILINE)


@pytest.mark.parametrize(
    ("told", "version"),
    [('openjdk version "17.0.15" 2025-04-15', 17), ('java version "1.8.0_392"', 8), ("no such thing", None)],
)
def test_the_version_of_java_is_the_first_number_that_counts(told, version, tmp_path, monkeypatch):
    command = tmp_path / "bin" / "java"
    command.parent.mkdir()
    command.write_text(f"#!/bin/sh\necho '{told}' >&2\n")
    command.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert clusters.java_version() == version
