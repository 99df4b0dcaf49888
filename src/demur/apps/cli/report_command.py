"""`demur report`: its summary on the terminal, its files, and its gates as JUnit test cases."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape, quoteattr

import typer

from demur.apps.cli import output
from demur.apps.cli.commands import outputs_from, result_of
from demur.apps.cli.gates import GateResult, check_syntax, judged
from demur.apps.cli.options import OutputOptions
from demur.core.jobs import Job
from demur.core.show.results import path_text
from demur.errors import UsageError

if TYPE_CHECKING:
    from demur.reports.report import Report

FORMATS = (".html", ".md", ".json", ".xml")


def run_report(job: Job, given: dict[str, Any]) -> None:
    """Make the report that `demur report` was asked for, write it, and exit with 1 if a gate does not hold."""
    from demur.core.io.writing import write_whole

    outputs = outputs_from(given)
    _check_outputs(outputs, given["data"])
    began = time.monotonic()
    made = result_of(job, given, quiet=outputs.quiet or outputs.json)
    gates = judged(outputs.fail_if, made.documents)
    seconds = time.monotonic() - began
    contents = [(path, _rendered(made, path, gates, seconds)) for path in outputs.output]
    for path, content in contents:
        write_whole(path, content)
    _show(made, gates, outputs)
    if any(gate.failure is not None for gate in gates):
        raise typer.Exit(1)


def _check_outputs(outputs: OutputOptions, files: Sequence[str]) -> None:
    """Refuse what cannot be delivered, before any work is done."""
    for path in outputs.output:
        if path.suffix.lower() not in FORMATS:
            raise UsageError(f'-o {path}: a report is written as {" ".join(FORMATS)}; got "{path.suffix}"')
        if path.is_dir():
            raise UsageError(f"-o {path}: this is a directory; name a file in it")
        if path.resolve() in {Path(file).resolve() for file in files}:
            raise UsageError(f"-o {path}: this file is read here; write to another")
    check_syntax(outputs.fail_if)


def _rendered(made: Report, path: Path, gates: Sequence[GateResult], seconds: float) -> str:
    suffix = path.suffix.lower()
    if suffix == ".json":
        return output.as_json({**made.document, "gates": _gate_values(gates)}) + "\n"
    return junit_of(made, gates, seconds) if suffix == ".xml" else made.rendered(suffix)


def _gate_values(gates: Sequence[GateResult]) -> list[dict[str, Any]]:
    return [
        {"condition": gate.condition, "subject": gate.subject, "passed": gate.failure is None, "failure": gate.failure}
        for gate in gates
    ]


def junit_of(made: Report, gates: Sequence[GateResult], seconds: float) -> str:
    """The gates and the files read as test cases; verdict and warnings as what the suite printed."""
    cases = [JUnitCase("files", f"{one.name} is read as {one.kind}") for one in made.analyses.mixture.files]
    cases += [JUnitCase(gate.subject, f"not {gate.condition}", gate.failure) for gate in gates]
    said = [*made.verdict, *(f"warning: {warning}" for warning in made.warnings)]
    now = datetime.now(UTC).replace(tzinfo=None, microsecond=0).isoformat()
    return junit(made.title, cases, timestamp=now, seconds=seconds, output=said)


def _show(made: Report, gates: Sequence[GateResult], outputs: OutputOptions) -> None:
    """The summary on standard output; warnings, broken gates and what was written go aside."""
    if outputs.json:
        typer.echo(output.as_json({**made.document, "gates": _gate_values(gates)}))
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


def _summarise(made: Report, gates: Sequence[GateResult], outputs: OutputOptions) -> None:
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


_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold, however they are written."""


@dataclass(frozen=True, slots=True)
class JUnitCase:
    """One test case: what it is about, what is asked of it, and why it fails where it does."""

    subject: str
    name: str
    failure: str | None = None


def junit(
    suite: str, cases: Sequence[JUnitCase], *, timestamp: str, seconds: float = 0.0, output: Sequence[str] = ()
) -> str:
    """One test suite; `output` are lines for its standard output.

    >>> print(junit("report", [JUnitCase("guide", "augrc > 0.1", "it is 0.2")], timestamp="2024-05-01"))
    <?xml version="1.0" encoding="UTF-8"?>
    <testsuites name="report" tests="1" failures="1" errors="0" skipped="0" time="0.000">
      <testsuite name="report" tests="1" failures="1" errors="0" skipped="0" time="0.000" timestamp="2024-05-01">
        <testcase classname="guide" name="augrc &gt; 0.1" time="0.000">
          <failure message="it is 0.2" type="gate">it is 0.2</failure>
        </testcase>
      </testsuite>
    </testsuites>
    <BLANKLINE>
    """
    failed = sum(case.failure is not None for case in cases)
    counts = f'tests="{len(cases)}" failures="{failed}" errors="0" skipped="0" time="{seconds:.3f}"'
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuites name={_xml_attribute(suite)} {counts}>",
        f"  <testsuite name={_xml_attribute(suite)} {counts} timestamp={_xml_attribute(timestamp)}>",
        *(line for case in cases for line in _case(case)),
        *([f"    <system-out>{_xml_text(chr(10).join(output))}</system-out>"] if output else []),
        "  </testsuite>",
        "</testsuites>",
    ]
    return "\n".join(lines) + "\n"


def _case(case: JUnitCase) -> list[str]:
    start = f"    <testcase classname={_xml_attribute(case.subject)} name={_xml_attribute(case.name)} time="
    if case.failure is None:
        return [f'{start}"0.000"/>']
    told = f'      <failure message={_xml_attribute(case.failure)} type="gate">{_xml_text(case.failure)}</failure>'
    return [f'{start}"0.000">', told, "    </testcase>"]


def _without_forbidden(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)


def _xml_text(text: str) -> str:
    return escape(_without_forbidden(text))


def _xml_attribute(text: str) -> str:
    return quoteattr(_without_forbidden(text), {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})
