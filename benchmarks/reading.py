"""Scoring and reading files of a million rows."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from benchmarks.arrays import KINDS, answers
from benchmarks.measuring import Line, cheapest
from benchmarks.startup import COMMAND

ROWS = 1_000_000
LABELS = 150
SCORE_BAR = 3.0

SORT = "import polars as pl, sys; pl.read_parquet(sys.argv[1])['confidence'].sort()"
READ = "from demur.returns.table import read_responses; import sys; read_responses(sys.argv[1])"
READ_NDJSON = "import polars as pl, sys; pl.read_ndjson(sys.argv[1])"


def lines() -> Iterator[Line]:
    """Every figure of the family."""
    with tempfile.TemporaryDirectory() as folder:
        for kind, decimals in KINDS.items():
            yield from _parquet(_table(decimals), Path(folder) / "log.parquet", kind)
        yield from _jsonl(_table(None), Path(folder) / "log.jsonl")


def _table(decimals: int | None) -> pl.DataFrame:
    confidence, right = answers(ROWS, decimals)
    number = pl.int_range(ROWS, eager=True)
    target = "intent_" + (number % LABELS).cast(pl.String)
    other = "intent_" + ((number + 1) % LABELS).cast(pl.String)
    columns = {"id": "q" + number.cast(pl.String), "target": target, "confidence": confidence, "correct": right}
    return pl.DataFrame(columns).with_columns(prediction=pl.when("correct").then("target").otherwise(other))


def _parquet(table: pl.DataFrame, path: Path, kind: str) -> Iterator[Line]:
    table.write_parquet(path)
    commands = {
        "demur": [COMMAND, "score", str(path), "--json"],
        "polars": [sys.executable, "-c", SORT, str(path)],
    }
    took = cheapest(commands, repeats=5)
    ours, theirs = took["demur"], took["polars"]
    title = f"demur score, {ROWS:.0e}-row Parquet, {kind}"
    against = f"Polars reads it and sorts a column: {theirs.cpu:.2f} s CPU, {theirs.wall:.2f} s wall clock"
    yield Line(f"{title}: CPU", ours.cpu / theirs.cpu, "x CPU", SCORE_BAR, against)
    yield Line(f"{title}: wall clock", ours.wall / theirs.wall, "x wall", SCORE_BAR, against)
    yield Line(f"{title}: seconds", ours.wall, "s", None, against)


def _jsonl(table: pl.DataFrame, path: Path) -> Iterator[Line]:
    table.write_ndjson(path)
    commands = {
        "demur": [sys.executable, "-c", READ, str(path)],
        "polars": [sys.executable, "-c", READ_NDJSON, str(path)],
    }
    took = cheapest(commands, repeats=5)
    ours, theirs = took["demur"], took["polars"]
    title = f"reading and judging {ROWS:.0e} rows of JSONL"
    against = f"pl.read_ndjson: {theirs.cpu:.2f} s CPU, {theirs.wall:.2f} s wall clock"
    yield Line(f"{title}: CPU", ours.cpu / theirs.cpu, "x CPU", None, against)
    yield Line(f"{title}: wall clock", ours.wall, "s", None, against)
