"""Logs that are scored where they are: time, memory and equality of Polars, DuckDB and Spark."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.lakes import lake, list_lake
from benchmarks.measuring import MEGABYTE, Line
from demur.returns.counting import sweeps, tallies
from demur.returns.engine_judging import judge_lazily
from demur.returns.table import Reading

LARGE = 100_000_000
SIZES = (100_000, 1_000_000, 10_000_000, LARGE)
DISTINCT = 10_000_000
LISTS = 1_000_000
SPARK_ROWS = 10_000_000

SYSTEM_ROWS = 10_000_000
FEW_SYSTEMS, MOST_SYSTEMS = 5, 20
DRAWS = ("--replicates", "1000", "--json")

MEMORY_BAR = 2000.0
COMPARED_BAR = 2.5
GROUP_BAR = 1.5
LISTS_BAR = 1.5

COMMANDED = """
import json, sys, time
from pathlib import Path
started = time.perf_counter()
sys.argv = ["demur", *sys.argv[1:]]
from demur.apps.cli.main import run
try:
    run()
except SystemExit as stop:
    assert not stop.code, stop.code
status = Path("/proc/self/status").read_text().splitlines()
largest = next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
took = {"wall": time.perf_counter() - started, "cpu": time.process_time(), "largest": largest * 1024}
print(json.dumps(took), file=sys.stderr)
"""
"""Runs `demur` and tells what its process took; the largest resident set is that of this process alone."""


def lines() -> Iterator[Line]:
    """Every figure of the family."""
    with tempfile.TemporaryDirectory(prefix="demur-bench-") as folder:
        yield from _out_of_core(Path(folder))
    with tempfile.TemporaryDirectory(prefix="demur-bench-") as folder:
        yield from _all_distinct(Path(folder))
    with tempfile.TemporaryDirectory(prefix="demur-bench-") as folder:
        yield from comparisons(Path(folder))
    with tempfile.TemporaryDirectory(prefix="demur-bench-") as folder:
        yield from leaderboards(Path(folder))
    with tempfile.TemporaryDirectory(prefix="demur-bench-") as folder:
        yield from _of_lists(Path(folder))
    with tempfile.TemporaryDirectory(prefix="demur-bench-") as folder:
        yield from _on_spark(Path(folder))


def _out_of_core(folder: Path) -> Iterator[Line]:
    """A hundred million rows, and how cost grows up to them."""
    log = lake(folder / "log", LARGE)
    width = sum(file.stat().st_size for file in log.iterdir()) / LARGE
    yield Line(
        f"Parquet of {LARGE:.0e} rows: bytes per row", width, "bytes", None, "id, target, prediction, confidence"
    )
    raw = _seconds(lambda: _raw_polars(log))
    for engine in ("polars", "duckdb"):
        took, _ = _scored(log, engine)
        yield from _spent(f"demur score, {LARGE:.0e} rows, 3 decimals, {engine}", took, raw)
    yield from _linear(log)
    dialogues = lake(folder / "dialogues", LARGE, dialogues=True)
    for engine in ("polars", "duckdb"):
        took, _ = _scored(dialogues, engine)
        yield from _spent(f"demur score, {LARGE:.0e} rows in {LARGE // 10:.0e} dialogues, {engine}", took, raw)


def _spent(title: str, took: Mapping[str, float], raw: float) -> Iterator[Line]:
    against = f"Polars' own group-by of the same rows: {raw:.1f} s"
    yield Line(f"{title}: largest resident set", took["largest"] / MEGABYTE, "MB", MEMORY_BAR, "the whole process")
    yield Line(f"{title}: wall clock", took["wall"] / raw, "x wall", None, against)
    yield Line(f"{title}: seconds", took["wall"], "s", None, against)


def _scored(log: Path, engine: str) -> tuple[dict[str, float], dict[str, Any]]:
    took, shown = commanded(["score", str(log), "--engine", engine, "--replicates", "1000", "--json"])
    return took, json.loads(shown)


def commanded(words: Sequence[str]) -> tuple[dict[str, float], str]:
    """What a command took in a process of its own, in seconds and bytes, and what it printed."""
    command = [sys.executable, "-c", COMMANDED, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    told = next(line for line in done.stderr.splitlines() if line.startswith('{"wall"'))
    return json.loads(told), done.stdout


def _raw_polars(log: Path) -> pl.DataFrame:
    right = (pl.col("target") == pl.col("prediction")).sum()
    return pl.scan_parquet(log).group_by("confidence").agg(pl.len(), right=right).collect(engine="streaming")


def _linear(log: Path) -> Iterator[Line]:
    """Seconds to count parts of a log in this process, start-up apart, and how cost per row changes with size."""
    files = sorted(log.glob("*.parquet"))
    took = {}
    for size in SIZES:
        rows = pl.scan_parquet(files[: max(1, size // 1_000_000)]).head(size)
        took[size] = _seconds(lambda rows=rows: tallies(judge_lazily(rows, reading=Reading())), repeats=3)  # type: ignore[misc]
        yield Line(f"counting {size:.0e} rows, polars", took[size], "s", None, "start-up apart")
    growth = (took[LARGE] / LARGE) / (took[LARGE // 10] / (LARGE // 10))
    yield Line("cost per row at 1e8 rows", growth, "x", 1.5, "cost per row at 1e7 rows")


def _seconds(work: Callable[[], object], *, repeats: int = 2) -> float:
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def _all_distinct(folder: Path) -> Iterator[Line]:
    """Ten million distinct confidences, each kept, against the engine's own grouping of the same rows."""
    log = lake(folder / "log", DISTINCT, decimals=None)
    judged = pl.scan_parquet(log).select("confidence", correct=pl.col("target") == pl.col("prediction"))
    rows = folder / "judged.parquet"
    judged.sink_parquet(rows)
    scanned = judge_lazily(pl.scan_parquet(rows), reading=Reading())
    yield _ratio("polars", lambda: _polars_groups(rows), lambda: sweeps(scanned))
    import duckdb

    with duckdb.connect() as connection:
        held = connection.read_parquet(str(rows))
        related = judge_lazily(held, reading=Reading())
        yield _ratio("duckdb", lambda: _duckdb_groups(held), lambda: sweeps(related))


def comparisons(folder: Path, rows: int = LARGE) -> Iterator[Line]:
    """Two systems against each other, and against scoring one of them."""
    one, two = (lake(folder / f"system-{place}", rows, dialogues=True, system=place) for place in range(2))
    alone, _ = commanded(["score", str(one), "--engine", "polars", *DRAWS])
    both, _ = commanded(["compare", str(one), str(two), "--engine", "polars", *DRAWS])
    title = f"demur compare, 2 systems of {rows:.0e} rows in {rows // 10:.0e} dialogues, polars"
    yield Line(f"{title}: largest resident set", both["largest"] / MEGABYTE, "MB", MEMORY_BAR, "the whole process")
    against = f"demur score of one system: {alone['cpu']:.1f} s"
    yield Line(f"{title}: CPU", both["cpu"] / alone["cpu"], "x CPU", COMPARED_BAR, against)
    yield Line(f"{title}: seconds of CPU", both["cpu"], "s", None, against)


def leaderboards(folder: Path, rows: int = SYSTEM_ROWS) -> Iterator[Line]:
    """Many systems on one board: what each adds, of few and of many."""
    systems = [str(lake(folder / f"system-{place}", rows, system=place)) for place in range(MOST_SYSTEMS)]
    few, _ = commanded(["compare", *systems[:FEW_SYSTEMS], "--engine", "polars", *DRAWS])
    many, _ = commanded(["compare", *systems, "--engine", "polars", *DRAWS])
    title = f"demur compare, {MOST_SYSTEMS} systems of {rows:.0e} rows, polars"
    apiece = {"few": few["cpu"] / FEW_SYSTEMS, "many": many["cpu"] / MOST_SYSTEMS}
    against = f"each of {FEW_SYSTEMS} systems: {apiece['few']:.1f} s"
    yield Line(f"{title}: CPU of each", apiece["many"] / apiece["few"], "x CPU", GROUP_BAR, against)
    yield Line(f"{title}: seconds of CPU", many["cpu"], "s", None, against)
    yield Line(f"{title}: largest resident set", many["largest"] / MEGABYTE, "MB", MEMORY_BAR, "the whole process")


def _of_lists(folder: Path) -> Iterator[Line]:
    """N-best lists in batches against the same lists read into memory, and whether memory grows with them."""
    quarter, whole = (list_lake(folder / f"{rows}", rows) for rows in (LISTS // 4, LISTS))
    words = ["--replicates", "1000", "--json"]
    memory, _ = commanded(["nbest", str(whole / "lists.parquet"), "--engine", "memory", *words])
    for engine in ("polars", "duckdb"):
        (small, _), (large, _) = (
            commanded(["nbest", str(log), "--engine", engine, *words]) for log in (quarter, whole)
        )
        title = f"demur nbest, {LISTS:.0e} utterances in {LISTS // 10:.0e} dialogues, {engine}"
        against = f"the same lists in memory: {memory['cpu']:.1f} s"
        yield Line(f"{title}: CPU", large["cpu"] / memory["cpu"], "x CPU", LISTS_BAR, against)
        yield Line(f"{title}: seconds of CPU", large["cpu"], "s", None, "start-up included")
        sizes = [one["largest"] / MEGABYTE for one in (memory, small)]
        told = f"in memory {sizes[0]:.0f} MB; a quarter of the lists {sizes[1]:.0f} MB"
        yield Line(f"{title}: largest resident set", large["largest"] / MEGABYTE, "MB", MEMORY_BAR, told)


def _ratio(engine: str, theirs: Callable[[], object], ours: Callable[[], object]) -> Line:
    best = {"ours": float("inf"), "theirs": float("inf")}
    for _ in range(4):
        for name, work in (("theirs", theirs), ("ours", ours)):
            best[name] = min(best[name], _seconds(work, repeats=1))
    name = f"exact sweep of {DISTINCT:.0e} distinct confidences, {engine}"
    against = f"the engine's own group-by, counting answers and right ones: {best['theirs']:.2f} s"
    return Line(name, best["ours"] / best["theirs"], "x wall", GROUP_BAR, against)


def _polars_groups(rows: Path) -> pl.DataFrame:
    grouped = pl.scan_parquet(rows).group_by("confidence").agg(pl.len(), pl.col("correct").sum())
    return grouped.collect(engine="streaming")


def _duckdb_groups(held: Any) -> pl.DataFrame:
    grouped: pl.DataFrame = held.aggregate("confidence, count(*) AS n, count_if(correct) AS hits").pl()
    return grouped


def _on_spark(folder: Path) -> Iterator[Line]:
    """The same log on one worker of a standalone cluster, then on two, in one session."""
    cluster_module = _clusters()
    if find_spec("pyspark") is None or cluster_module.why_not() is not None:
        return
    log = lake(folder / "log", SPARK_ROWS, dialogues=True)
    (expected,) = tallies(judge_lazily(pl.scan_parquet(log), reading=Reading()))
    (folder / "cluster").mkdir()
    cluster_module.SETTINGS["spark.executor.extraJavaOptions"] = "-XX:+UseSerialGC"
    with cluster_module.Cluster(folder / "cluster", size=1) as cluster:
        session = cluster_module.connected(cluster)
        rows = session.read.parquet(str(log))
        one, found = _counted(rows)
        cluster.add_worker()
        cluster_module.wait_for_executors(session, 2)
        two, again = _counted(rows)
        session.stop()
    apart = sum(not (each.sweep == expected.sweep and each.units.equals(expected.units)) for each in (found, again))
    yield Line(
        f"tallies of {SPARK_ROWS:.0e} rows that differ from Polars', spark", float(apart), "tallies", 0.0, "of 2"
    )
    name = f"counting {SPARK_ROWS:.0e} rows in dialogues, spark, two workers of one core"
    yield Line(name, two / one, "x wall", 1.0, f"one worker: {one:.1f} s")


def _counted(rows: Any) -> tuple[float, Any]:
    """Seconds to count, best of several once warm, and what was counted."""
    found = []
    took = _seconds(lambda: found.append(tallies(judge_lazily(rows, reading=Reading()))[0]), repeats=3)
    return took, found[-1]


def _clusters() -> Any:
    """The tests' own cluster."""
    folder = str(Path(__file__).parents[1] / "tests")
    if folder not in sys.path:
        sys.path.append(folder)
    return import_module("engines.cluster")
