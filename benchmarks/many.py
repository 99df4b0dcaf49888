"""What a comparison of 84 systems takes, at a terminal and as a page, and a report of long logs."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.engines import commanded
from benchmarks.logs import log
from benchmarks.looking import browser, chromium, until_figures
from benchmarks.measuring import MEGABYTE, Line, answer, cheapest, spend
from benchmarks.startup import COMMAND

SYSTEMS, HALF, ROWS, REPORTED = 84, 42, 12_000, 1_000_000
TERMINAL_BAR, PAGE_BAR, MATRIX_BAR, OPEN_BAR = 30.0, 45.0, 20.0, 3.0
"""Seconds: CPU of the command without and with a page, CPU of all pairs, wall clock of a browser."""
MEMORY_BAR, SIZE_BAR, REPORT_MEMORY_BAR = 2_000.0, 3.0, 600.0
"""Megabytes."""
LINEAR_BAR = 2.4
"""How much more twice as many systems may cost."""
REPORT_BAR, REPORT_BEFORE = 0.5, 76.0
"""Share of the CPU that the report took before comparisons had a leaderboard, which was so many times what Polars takes
to read both logs and sort a column of each."""

ALONE = "the whole process"
SORTED = "import polars as pl, sys; [pl.read_parquet(path)['confidence'].sort() for path in sys.argv[1:]]"
WRITTEN: dict[str, Callable[[pl.DataFrame, str], object]] = {
    "parquet": pl.DataFrame.write_parquet,
    "csv": pl.DataFrame.write_csv,
    "jsonl": pl.DataFrame.write_ndjson,
}

PAIRS = """
import sys, time
from itertools import combinations
import numpy as np, polars as pl
from demur.core.stats.resampling import Rows
from demur.returns.comparison.contrasts import pair_tests
rows = {}
for path in sys.argv[1:]:
    log = pl.read_ndjson(path)
    right = (log["prediction"] == log["target"]).to_numpy()
    ones = np.ones(right.size)
    rows[path] = Rows(log["confidence"].to_numpy(), right, ones > 0, ones, np.arange(right.size))
start = time.process_time()
pair_tests(rows, list(combinations(rows, 2)), paired=True, level=0.95, region=(0.0, 1.0))
print(time.process_time() - start)
"""


def lines() -> Iterator[Line]:
    """Every figure of the family."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        paths = [str(path) for path in written_logs(place, SYSTEMS)]
        yield from _commands(place, paths)
        yield from _reports(place)


def written_logs(folder: Path, systems: int) -> list[Path]:
    """Logs of systems that answer the same questions, each a little better; a third have few distinct confidences."""
    rng, paths = np.random.default_rng(0), []
    hard = rng.random(ROWS)
    for place in range(systems):
        right = hard + rng.normal(0, 0.25, ROWS) < 0.3 + 0.6 * place / systems
        confidence = 1 / (1 + np.exp(-rng.normal(1.2 * right, 1)))
        digits = np.round(5 * confidence) / 5 if place % 3 == 2 else np.round(confidence, 4 - 2 * (place % 3))
        table = pl.DataFrame({"prediction": np.where(right, "A", "B"), "confidence": digits})
        table = table.select(pl.int_range(ROWS).alias("id"), pl.lit("A").alias("target"), pl.all())
        paths.append(folder / f"results_mmlu_model-{place:02d}_cot.jsonl")
        table.write_ndjson(paths[-1])
    return paths


def _commands(folder: Path, paths: Sequence[str]) -> Iterator[Line]:
    title = f"compare of {SYSTEMS} systems x {ROWS:,} rows"
    page = folder / "page.html"
    half, _ = commanded(["compare", *paths[:HALF], "--quiet"])
    took, _ = commanded(["compare", *paths, "--quiet"])
    yield Line(f"{title}, terminal: CPU", took["cpu"], "s", TERMINAL_BAR, f"wall clock {took['wall']:.1f} s")
    yield Line(f"{title}, terminal: largest resident set", took["largest"] / MEGABYTE, "MB", MEMORY_BAR, ALONE)
    against = f"{HALF} systems: {half['cpu']:.1f} s CPU"
    yield Line(f"{title}, terminal: twice as many systems", took["cpu"] / half["cpu"], "x CPU", LINEAR_BAR, against)
    drawn = spend([COMMAND, "compare", *paths, "--quiet", "-o", str(page)])
    yield Line(f"{title}, page: CPU", drawn.cpu, "s", PAGE_BAR, f"wall clock {drawn.wall:.1f} s; drawing included")
    yield Line(f"{title}, page: size", page.stat().st_size / MEGABYTE, "MB", SIZE_BAR, "with its figures and scripts")
    if (found := chromium()) is not None:
        with browser(found) as opened:
            seconds = min(until_figures(opened, page.as_uri()) for _ in range(3)) / 1000
        yield Line(f"{title}, page: first drawn", seconds, "s", OPEN_BAR, "Chromium, best of 3, all figures alive")
    pairs = float(answer(PAIRS, *paths))
    yield Line(f"tests of all {SYSTEMS * (SYSTEMS - 1) // 2:,} pairs: CPU", pairs, "s", MATRIX_BAR, "part of the above")


def _reports(folder: Path) -> Iterator[Line]:
    paths = [folder / f"{name}.parquet" for name in ("one", "two")]
    for system, path in enumerate(paths):
        log(REPORTED, system).write_parquet(path)
    title, page = f"report on two logs of {REPORTED:.0e} rows", str(folder / "report.html")
    commands = {
        "report": [COMMAND, "report", *map(str, paths), "-o", page, "--quiet"],
        "polars": [sys.executable, "-c", SORTED, *map(str, paths)],
    }
    cpu = {name: took.cpu for name, took in cheapest(commands, repeats=3).items()}
    against = f"before leaderboards: {REPORT_BEFORE:.0f} times Polars reading and sorting; now {cpu['report']:.1f} s"
    yield Line(f"{title}: CPU", cpu["report"] / cpu["polars"] / REPORT_BEFORE, "x CPU", REPORT_BAR, against)
    for kind, write in WRITTEN.items():
        given = [str(path.with_name(f"{path.stem}-copy.{kind}")) for path in paths]
        for path, copy in zip(paths, given, strict=True):
            write(pl.read_parquet(path), copy)
        largest = commanded(["report", *given, "-o", page, "--quiet"])[0]["largest"]
        yield Line(f"{title}, {kind}: largest resident set", largest / MEGABYTE, "MB", REPORT_MEMORY_BAR, ALONE)
