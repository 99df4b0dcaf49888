"""The table of results inside benchmarks/README.md."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

from benchmarks.measuring import Line

START, END = "<!-- results -->", "<!-- end of results -->"
PACKAGES = ("demur", "numpy", "polars", "scikit-learn", "mapie")


def with_results(page: str, lines: Iterable[Line], *, whole: bool) -> str:
    """The page with its table replaced, or with these figures in it in place of those of the same names."""
    before, rest = page.split(START)
    table, after = rest.split(END)
    rows = {} if whole else {row.split(" | ")[0].removeprefix("| "): row for row in table.splitlines() if "|" in row}
    rows |= {line.name: f"| {_cells(line)} |" for line in lines}
    head = ["| figure | value | unit | bar | held | against |", "|---|--:|---|--:|---|---|"]
    body = [row for row in rows.values() if row not in head]
    return f"{before}{START}\n{_machine()}\n\n" + "\n".join([*head, *body]) + f"\n{END}{after}"


def _cells(line: Line) -> str:
    bar = "" if line.bar is None else f"{line.bar:g}"
    held = {True: "yes", False: "**no**", None: ""}[line.held]
    return " | ".join([line.name, f"{line.value:.3g}", line.unit, bar, held, line.against])


def _machine() -> str:
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return (
        f"Measured on {platform.system()}, {platform.machine()}, {os.cpu_count()} cores{_processor()}, "
        f"Python {platform.python_version()}; {packages}."
    )


def _processor() -> str:
    described = Path("/proc/cpuinfo")
    lines = described.read_text(encoding="utf-8").splitlines() if described.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f" ({names[0]})" if names else ""
