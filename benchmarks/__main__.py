"""`python -m benchmarks [NAME]`: measure one family or all, print a table, write benchmarks/results.json."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import (
    dialogue,
    engines,
    gold,
    importers,
    many,
    nbest,
    networks,
    outcome,
    reading,
    returns,
    smoothing,
    startup,
    study,
    understanding,
    workbench,
)
from benchmarks.measuring import Line
from benchmarks.readme import with_results

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"


def _nbest() -> Iterator[Line]:
    """Lists, and what makes them and draws them."""
    for part in (nbest, networks, smoothing):
        yield from part.lines()


FAMILIES: dict[str, Callable[[], Iterator[Line]]] = {
    "startup": startup.lines,
    "returns": returns.lines,
    "reading": reading.lines,
    "importers": importers.lines,
    "engines": engines.lines,
    "nbest": _nbest,
    "outcome": outcome.lines,
    "gold": gold.lines,
    "understanding": understanding.lines,
    "dialogue": dialogue.lines,
    "study": study.lines,
    "workbench": workbench.lines,
    "many": many.lines,
}


def table(lines: Iterable[Line]) -> Table:
    """The figures as a table."""
    shown = Table("figure", "value", "unit", "bar", "held", "against")
    for line in lines:
        bar = "" if line.bar is None else f"{line.bar:g}"
        held = {True: "[green]yes[/]", False: "[bold red]no[/]", None: ""}[line.held]
        shown.add_row(line.name, f"{line.value:.3g}", line.unit, bar, held, line.against)
    return shown


def main() -> None:
    """Measure, print and write."""
    options = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    options.add_argument("name", nargs="?", choices=list(FAMILIES), help="one family; all when left out")
    options.add_argument("--readme", action="store_true", help="put the table into benchmarks/README.md as well")
    given = options.parse_args()
    progress = Console(stderr=True)
    lines: list[Line] = []
    for name, family in FAMILIES.items():
        if given.name in (None, name):
            for line in family():
                progress.print(f"{name}: {line.name}", highlight=False)
                lines.append(line)
    Console().print(table(lines))
    every = lines if given.name is None else _beside(lines)
    RESULTS.write_text(json.dumps([line.to_dict() for line in every], indent=1) + "\n", encoding="utf-8")
    if given.readme:
        page = HERE / "README.md"
        now = with_results(page.read_text(encoding="utf-8"), lines, whole=given.name is None)
        page.write_text(now, encoding="utf-8")


def _beside(lines: list[Line]) -> list[Line]:
    """The lines of one family with those of the others from the last run."""
    known = [field.name for field in fields(Line)]
    kept = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else []
    names = {line.name for line in lines}
    return [Line(**{name: line[name] for name in known}) for line in kept if line["name"] not in names] + lines


if __name__ == "__main__":
    main()
