"""The page on what engines cost: the published figures of the benchmarks, and what follows from them on paper."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "benchmarks" / "README.md"
SIZES = (100_000, 1_000_000, 10_000_000, 100_000_000)
LARGE = 100_000_000
SPARK = 10_000_000
LISTS = 1_000_000
CORES = 2
COMPARED = re.compile(r"demur compare, 2 systems of (\S+) rows in \S+ dialogues, polars: CPU$")

GROUP_BYTES = 40
"""A group on its way between machines: two or three keys, two or three sums, each 8 bytes."""

CELLS, BUCKETS, LEVELS = 2**20, 1024, 1024
TASK_BYTES = 128 * 2**20
"""Parquet that Spark gives to one task."""


def figures() -> dict[str, dict[str, Any]]:
    """The published lines by their names."""
    table = RESULTS.read_text(encoding="utf-8").partition("<!-- results -->")[2]
    rows = [row.strip("| ").split(" | ") for row in table.splitlines() if row.startswith("| ")]
    return {row[0]: {"value": float(row[1]), "against": row[-1]} for row in rows[1:]}


def points(lines: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows and seconds of the growing logs."""
    return [{"rows": size, "seconds": lines[f"counting {size:.0e} rows, polars"]["value"]} for size in SIZES]


def chart(lines: dict[str, dict[str, Any]]) -> Any:
    """Seconds against rows, both on logarithmic scales, with the line on which cost per row stays that of 1e8 rows."""
    import altair as alt
    import polars as pl

    measured = points(lines)
    last = measured[-1]
    straight = [{"rows": size, "seconds": last["seconds"] * size / last["rows"]} for size in SIZES]
    x = alt.X("rows:Q", scale=alt.Scale(type="log"), title="rows", axis=alt.Axis(format="~s", values=list(SIZES)))
    ticks = alt.Axis(values=[0.001, 0.01, 0.1, 1, 10, 100], format="~g")
    y = alt.Y("seconds:Q", scale=alt.Scale(type="log"), title="seconds", axis=ticks)
    line = alt.Chart(pl.DataFrame(straight)).mark_line(strokeDash=[4, 4], color="#888").encode(x=x, y=y)
    dots = alt.Chart(pl.DataFrame(measured)).mark_point(filled=True, size=90, color="#1f5fa8").encode(x=x, y=y)
    joined = alt.Chart(pl.DataFrame(measured)).mark_line(color="#1f5fa8").encode(x=x, y=y)
    title = alt.Title(
        "Cost grows with the rows", subtitle="Polars on two cores; dashed: the cost per row of a hundred million rows"
    )
    return alt.layer(line, joined, dots).properties(width=420, height=260, title=title)


def page() -> str:
    """The page in Markdown."""
    lines = figures()
    return (
        "\n\n".join(
            [
                "# What counting costs",
                "Made by `make docs` from the figures published in `benchmarks/README.md`; do not edit.",
                "![Seconds against rows](images/scale.svg)",
                "## Measured, on two cores",
                _measured(lines),
                "Memory does not grow with the rows: what is kept is one entry per distinct confidence (or cell), and "
                "where there are dialogues one per confidence and bucket. N-best lists are taken apart in Python on "
                "one core, batch by batch; their sums fill up to 1.3 million rows, by bucket and cell, and "
                "the resident set grows until these are full.",
                "## On paper, for logs that do not fit here",
                _estimates(lines),
                _bounds(lines),
            ]
        )
        + "\n"
    )


def _measured(lines: dict[str, dict[str, Any]]) -> str:
    rows = ["| log | engine | seconds | largest resident set |", "|---|---|--:|--:|"]
    for about, name in (
        (f"{LARGE:,} rows", "rows, 3 decimals"),
        (f"{LARGE:,} rows in dialogues", "rows in 1e+07 dialogues"),
    ):
        for engine in ("polars", "duckdb"):
            title = f"demur score, {LARGE:.0e} {name}, {engine}"
            seconds, largest = (lines[f"{title}: {part}"]["value"] for part in ("seconds", "largest resident set"))
            rows.append(f"| {about} | {engine} | {seconds:.1f} | {largest:,.0f} MB |")
    for engine in ("polars", "duckdb"):
        seconds, largest = (
            lines[f"{_list_name(engine)}: {part}"]["value"] for part in ("seconds of CPU", "largest resident set")
        )
        rows.append(f"| N-best lists of {LISTS:,} utterances | {engine} | {seconds:.1f} of CPU | {largest:,.0f} MB |")
    size, seconds, largest, ratio = _compared(lines)
    rows.append(
        f"| two systems of {size:,} rows in dialogues, compared ({ratio:.1f} times the score of one) | polars | "
        f"{seconds:.1f} of CPU | {largest:,.0f} MB |"
    )
    two = lines[_spark_name()]
    one = float(two["against"].removeprefix("one worker: ").removesuffix(" s"))
    rows.append(f"| {SPARK:,} rows in dialogues | spark, one worker of one core | {one:.1f} | |")
    rows.append(f"| {SPARK:,} rows in dialogues | spark, two workers of one core | {one * two['value']:.1f} | |")
    return "\n".join(rows)


def _compared(lines: dict[str, dict[str, Any]]) -> tuple[int, float, float, float]:
    """Of two systems that were compared: rows of each, core-seconds, megabytes, and times one score."""
    found = [(int(float(match[1])), name) for name in lines if (match := COMPARED.match(name))]
    rows, name = max(found)
    title = name.rpartition(": ")[0]
    parts = ("seconds of CPU", "largest resident set", "CPU")
    seconds, largest, ratio = (float(lines[f"{title}: {part}"]["value"]) for part in parts)
    return rows, seconds, largest, ratio


def _list_name(engine: str) -> str:
    return f"demur nbest, {LISTS:.0e} utterances in {LISTS // 10:.0e} dialogues, {engine}"


def _spark_name() -> str:
    return f"counting {SPARK:.0e} rows in dialogues, spark, two workers of one core"


def _cost_per_row(lines: dict[str, dict[str, Any]]) -> dict[str, float]:
    """Core-seconds per row, start-up included where it cannot be told apart."""
    spark = lines[_spark_name()]
    size, seconds, _, _ = _compared(lines)
    one = float(spark["against"].removeprefix("one worker: ").removesuffix(" s"))
    clustered = f"demur score, {LARGE:.0e} rows in 1e+07 dialogues, polars: seconds"
    return {
        "polars": CORES * lines[f"counting {LARGE:.0e} rows, polars"]["value"] / LARGE,
        "polars, dialogues": CORES * lines[clustered]["value"] / LARGE,
        "spark, dialogues": one / SPARK,
        "polars, two systems compared, dialogues": seconds / size,
    }


def _estimates(lines: dict[str, dict[str, Any]]) -> str:
    width = lines[f"Parquet of {LARGE:.0e} rows: bytes per row"]["value"]
    rows = ["| | core-seconds per million rows | 1e9 rows | 1e12 rows |", "|---|--:|---|---|"]
    for name, cost in _cost_per_row(lines).items():
        small, large = cost * 1e9, cost * 1e12
        rows.append(
            f"| {name} | {cost * 1e6:.2f} | {_time(small / CORES)} on 2 cores | {_time(large / 1000)} on 1,000 cores |"
        )
    lists = lines[f"{_list_name('polars')}: seconds of CPU"]["value"] / LISTS
    rows.append(f"| polars, N-best lists | {lists * 1e6:.2f} | {_time(lists * 1e9)} on 1 core | |")
    rows.append(f"| Parquet read (benchmark's columns) | | {width:.1f} GB | {width:.1f} TB |")
    return "\n".join(rows)


def _time(seconds: float) -> str:
    for unit, size in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} seconds"


def _bounds(lines: dict[str, dict[str, Any]]) -> str:
    width = lines[f"Parquet of {LARGE:.0e} rows: bytes per row"]["value"]
    tasks = max(1, round(width * 1e12 / TASK_BYTES))
    sweep, units = tasks * 1001 * GROUP_BYTES / 1e9, tasks * BUCKETS * LEVELS * GROUP_BYTES / 1e12
    return f"""What bounds it:

- **One machine: decoding Parquet and comparing labels.** Rows pass through and are gone; the log is read twice, with
  dialogues three times. Above about 1e9 rows the wait, not memory, is what speaks for a cluster.
- **A cluster: tasks that each send their groups.** Rows never travel. With 128 MB of Parquet a task, 1e12 rows of
  this width are {tasks:,} tasks. In the sweep's pass each sends at most one group per distinct confidence: with
  three decimals {sweep:,.1f} GB in all, at {GROUP_BYTES} bytes a group. In the pass by bucket it is at most
  {BUCKETS:,} x {LEVELS:,} groups a task, {units:,.1f} TB if every task held dialogues of every bucket at every level;
  that shuffle is the bound on very large logs with dialogues. It grows with the number of tasks, so larger ones help.
- **The machine that asks** receives at most {CELLS:,} cells (or {BUCKETS * LEVELS:,} groups by bucket) for each
  system and slice, tens of MB, whatever the size of the log, unless dense cells had to be cut finer.
- **Object storage**: a request per column chunk. Wider rows cost nothing more: columns that play no part are not read.

These are products of measured figures and counts, not measurements; nobody has run 1e12 rows for this page."""


if __name__ == "__main__":
    from demur.core.show.page import save_chart

    save_chart(chart(figures()), sys.argv[1])
