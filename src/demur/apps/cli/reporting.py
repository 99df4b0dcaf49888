"""What `demur report` does once its options are read."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typer

import demur
from demur.apps.cli import output
from demur.apps.cli.gates import Gate, check_syntax, judged
from demur.apps.cli.options import InputOptions, OutputOptions, SamplingOptions, pair_of, reading_of
from demur.apps.cli.output import steps
from demur.core.io.writing import write_whole
from demur.core.show.results import path_text
from demur.errors import UsageError
from demur.reports.report import Case, Report, junit

FORMATS = (".html", ".md", ".json", ".xml")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is read, and what it is called."""

    kinds: tuple[str, ...]
    title: str | None
    by: tuple[str, ...] | None
    outcome: str | None
    x: str | None
    y: str | None


def report(
    files: list[str],
    inputs: InputOptions,
    sampling: SamplingOptions,
    outputs: OutputOptions,
    wanted: Wanted,
    **asked: Any,
) -> None:
    """Tell the story of the files, write it, and exit with 1 if a gate does not hold."""
    _check(outputs, files)
    began = time.monotonic()
    with steps(quiet=outputs.quiet or outputs.json) as step:
        made = demur.report(
            *files,
            title=wanted.title,
            kinds=_kinds(wanted.kinds),
            by=wanted.by,
            level=sampling.level,
            replicates=sampling.replicates,
            seed=sampling.seed,
            step=step,
            **_reading(inputs, wanted),
            **asked,
        )
        gates = judged(outputs.fail_if, made.documents)
        step("writing", 0, 1)
        seconds = time.monotonic() - began
        contents = [(path, _rendered(made, path, gates, seconds)) for path in outputs.output]
    for path, content in contents:
        write_whole(path, content)
    _show(made, gates, outputs)
    if any(gate.failure is not None for gate in gates):
        raise typer.Exit(1)


def _check(outputs: OutputOptions, files: Sequence[str]) -> None:
    """Refuse what cannot be delivered, before any work is done."""
    for path in outputs.output:
        if path.suffix.lower() not in FORMATS:
            raise UsageError(f'-o {path}: a report is written as {" ".join(FORMATS)}; got "{path.suffix}"')
        if path.is_dir():
            raise UsageError(f"-o {path}: this is a directory; name a file in it")
        if path.resolve() in {Path(file).resolve() for file in files}:
            raise UsageError(f"-o {path}: this file is read here; write to another")
    check_syntax(outputs.fail_if)


def _kinds(asked: Sequence[str]) -> dict[str, Any]:
    """What files are said to be; the last sign of equality counts, as names of files may hold others."""
    for text in asked:
        pair_of(text, "--kind", "FILE=KIND")
    return {text.rpartition("=")[0]: text.rpartition("=")[2] for text in asked}


def _reading(inputs: InputOptions, wanted: Wanted) -> dict[str, Any]:
    how = reading_of(inputs)
    names = ("columns", "where", "out_of_scope", "withheld", "missing_confidence")
    return {
        **{name: getattr(how, name) for name in names},
        "outcome": wanted.outcome,
        "x": wanted.x,
        "y": wanted.y,
    }


def _rendered(made: Report, path: Path, gates: Sequence[Gate], seconds: float) -> str:
    suffix = path.suffix.lower()
    if suffix == ".json":
        return output.as_json({**made.document, "gates": _told(gates)}) + "\n"
    return junit_of(made, gates, seconds) if suffix == ".xml" else made.rendered(suffix)


def _told(gates: Sequence[Gate]) -> list[dict[str, Any]]:
    return [
        {"condition": gate.condition, "subject": gate.subject, "passed": gate.failure is None, "failure": gate.failure}
        for gate in gates
    ]


def junit_of(made: Report, gates: Sequence[Gate], seconds: float) -> str:
    """The gates and the files read as test cases; verdict and warnings as what the suite printed."""
    cases = [Case("files", f"{one.name} is read as {one.kind}") for one in made.story.mixture.files]
    cases += [Case(gate.subject, f"not {gate.condition}", gate.failure) for gate in gates]
    said = [*made.verdict, *(f"warning: {warning}" for warning in made.warnings)]
    now = datetime.now(UTC).replace(tzinfo=None, microsecond=0).isoformat()
    return junit(made.title, cases, timestamp=now, seconds=seconds, output=said)


def _show(made: Report, gates: Sequence[Gate], outputs: OutputOptions) -> None:
    """The summary on standard output; warnings, broken gates and what was written go aside."""
    if outputs.json:
        typer.echo(output.as_json({**made.document, "gates": _told(gates)}))
    else:
        _summarise(made, gates, outputs)
    for gate in gates:
        if gate.failure is not None:
            typer.echo(f"gate: {gate.failure}", err=True)
    if outputs.quiet or outputs.json:
        return
    for warning in made.warnings:
        typer.echo(f"warning: {warning}", err=True)
    for path in outputs.output:
        typer.echo(f"wrote {path_text(path)}", err=True)


def _summarise(made: Report, gates: Sequence[Gate], outputs: OutputOptions) -> None:
    """Verdict, a small table, a line for each gate; without colours and lines where these would be in the way."""
    told = [
        f"PASS {gate.subject}: not {gate.condition}" if gate.failure is None else f"FAIL {gate.failure}"
        for gate in gates
    ]
    if sys.stdout.isatty() and "NO_COLOR" not in os.environ:
        from rich.console import Console

        from demur.core.show import terminal

        console = Console(highlight=False)
        terminal.show(made.summary(), console, tables=not outputs.quiet)
        for line in told:
            console.print(line, markup=False)
    else:
        for line in [*plain_summary(made, tables=not outputs.quiet), *told]:
            print(_in_plain_signs(line))  # typer.echo writes UTF-8 where standard output is ASCII
    if not outputs.output and not outputs.quiet:
        typer.echo("-o report.html writes the whole story (also .md .json .xml)", err=True)


def plain_summary(made: Report, *, tables: bool = True) -> list[str]:
    """The lines of the summary for a log: sentences, then tables aligned by spaces."""
    shown = made.summary()
    lines = list(shown.sentences)
    for table in shown.tables if tables else ():
        rows = [table.columns, *table.rows]
        widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
        lines += ["", *("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows), ""]
    return lines


def _in_plain_signs(line: str) -> str:
    return line.translate({ord("–"): "-", ord("…"): "...", ord("≥"): ">=", 0xA0: " "})
