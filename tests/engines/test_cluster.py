"""A real cluster: both workers work, nothing is ordered in one place, and where there is none the tests say so."""

import os
import re
from pathlib import Path

import narwhals as nw
import numpy as np
import polars as pl
import pytest

from demur.core.stats.sweep import Sweep, sweep_groups
from demur.returns.verify import judged_columns, sample_log
from engines import cluster as clusters
from engines.cluster import executors, wait_until

ROWS = 5000
PARTS = 6
TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """A folder of Parquet parts with judged rows that count alike."""
    folder = tmp_path_factory.mktemp("parts")
    rows = judged_columns(sample_log(ROWS, seed=3).drop("weight"))
    for place, part in enumerate(rows.iter_slices(-(-ROWS // PARTS))):
        part.write_parquet(folder / f"{place}.parquet")
    return folder


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


def test_a_sweep_orders_nothing_and_gathers_no_rows_in_one_place(spark, parts):
    plan = sweep_groups(on_spark(spark, parts)).to_native()._jdf.queryExecution().executedPlan().toString()
    assert "HashAggregate" in plan
    assert "hashpartitioning(confidence" in plan
    assert not [word for word in ("Sort", "Window", "SinglePartition", "RangePartitioning") if word in plan]


def test_where_java_is_missing_the_run_says_that_spark_was_not_tested(tmp_path, monkeypatch, capsys):
    for name in list(os.environ):
        if name.startswith(("JAVA_", "PYTEST_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PATH", str(tmp_path))
    name = test_a_sweep_orders_nothing_and_gathers_no_rows_in_one_place.__name__
    test = f"{TESTS / 'engines' / 'test_cluster.py'}::{name}"
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
