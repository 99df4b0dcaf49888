"""`demur report`: its summary on the terminal, its files, and its gates as JUnit test cases."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import typer

from demur.apps.cli import output
from demur.apps.cli.commands import options_from, result_of
from demur.apps.cli.gates import GateResult, check_syntax, gate_results
from demur.apps.cli.output import OutputOptions
from demur.core.jobs import Job
from demur.core.show.results import path_text
from demur.core.show.safe import terminal_line, visible
from demur.errors import UsageError

if TYPE_CHECKING:
    from demur.core.show.presentation import Presentation
    from demur.reports.report import Report

FORMATS = (".html", ".md", ".json", ".xml")


def run_report(job: Job, given: dict[str, Any]) -> None:
    """Make the report that `demur report` was asked for, write it, and exit with 1 if a gate does not hold."""
    from demur.core.io.writing import write_whole

    outputs = options_from(OutputOptions, given)
    _check_outputs(outputs)
    began = time.monotonic()
    report: Report = result_of(job, given, quiet=outputs.quiet or outputs.json)
    gates = gate_results(outputs.fail_if, report.documents)
    seconds = time.monotonic() - began
    report = report.with_gates([_gate_values(gate) for gate in gates])
    document = output.as_json(report.document)

    def content(suffix: str) -> str:
        if suffix == ".json":
            return document + "\n"
        return junit_of(report, gates, seconds) if suffix == ".xml" else report.render(suffix)

    contents = [(path, content(path.suffix.lower())) for path in outputs.output]
    for path, text in contents:
        write_whole(path, text)
    if outputs.json:
        typer.echo(document)
    else:
        _summarise(report, gates, outputs)
    asides = [f"gate: {gate.failure}" for gate in gates if gate.failure is not None]
    if not (outputs.quiet or outputs.json):
        asides += [f"warning: {warning}" for warning in report.warnings]
        asides += [f"wrote {path_text(path)}" for path in outputs.output]
    for line in asides:
        output.print_aside(line)
    if any(gate.failure is not None for gate in gates):
        raise typer.Exit(1)


def _check_outputs(outputs: OutputOptions) -> None:
    """Refuse what cannot be delivered, before any work is done."""
    for path in outputs.output:
        if path.suffix.lower() not in FORMATS:
            raise UsageError(f'-o {path}: a report is written as {" ".join(FORMATS)}; got "{path.suffix}"')
        if path.is_dir():
            raise UsageError(f"-o {path}: this is a directory; name a file in it")
    check_syntax(outputs.fail_if)


def _gate_values(gate: GateResult) -> dict[str, Any]:
    passed = gate.failure is None
    return {"condition": gate.condition, "subject": gate.subject, "passed": passed, "failure": gate.failure}


def _summarise(report: Report, gates: Sequence[GateResult], outputs: OutputOptions) -> None:
    """Verdict, a small table, a line for each gate; without colours and lines where these would be in the way."""
    verdicts = [
        f"PASS {gate.subject}: not {gate.condition}" if gate.failure is None else f"FAIL {gate.failure}"
        for gate in gates
    ]
    shown, tables = report.summary(), not outputs.quiet
    if sys.stdout.isatty() and "NO_COLOR" not in os.environ:
        from rich.console import Console

        from demur.core.show import terminal

        console = Console(highlight=False)
        terminal.show(shown, console, tables=tables)
        for line in verdicts:
            console.print(terminal_line(line), markup=False)
    else:
        for line in [*plain_summary(shown, tables=tables), *verdicts]:  # typer.echo writes UTF-8 even where that is not
            print(terminal_line(line).translate({ord("–"): "-", ord("…"): "...", ord("≥"): ">=", 0xA0: " "}))
    if not outputs.output and not outputs.quiet:
        typer.echo("-o report.html writes the full report (also .md .json .xml)", err=True)


def plain_summary(shown: Presentation, *, tables: bool = True) -> list[str]:
    """The lines of a summary for a log: sentences, then tables aligned by spaces."""
    lines = list(shown.sentences)
    for table in shown.tables if tables else ():
        rows = [tuple(map(terminal_line, row)) for row in (table.columns, *table.rows)]
        widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
        lines += ["", *("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows), ""]
    return lines


def junit_of(report: Report, gates: Sequence[GateResult], seconds: float) -> str:
    """The gates and the files read as test cases; verdict and warnings as what the suite printed."""
    cases = [JUnitCase("files", f"{one.name} is read as {one.kind}") for one in report.analyses.mixture.files]
    cases += [JUnitCase(gate.subject, f"not {gate.condition}", gate.failure) for gate in gates]
    printed = [*report.verdict, *(f"warning: {warning}" for warning in report.warnings)]
    now = datetime.now(UTC).replace(tzinfo=None, microsecond=0).isoformat()
    return junit(report.title, cases, timestamp=now, seconds=seconds, output=printed)


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
    from xml.etree.ElementTree import Element, SubElement, indent, tostring

    tests, failed = str(len(cases)), str(sum(case.failure is not None for case in cases))
    counts: Any = {"tests": tests, "failures": failed, "errors": "0", "skipped": "0", "time": f"{seconds:.3f}"}
    root = Element("testsuites", name=visible(suite), **counts)
    only = SubElement(root, "testsuite", name=visible(suite), **counts, timestamp=timestamp)
    for case in cases:
        asked = {"classname": visible(case.subject), "name": visible(case.name), "time": "0.000"}
        test = SubElement(only, "testcase", asked)
        if case.failure is not None:
            failure = visible(case.failure)
            SubElement(test, "failure", message=failure, type="gate").text = failure
    if output:
        SubElement(only, "system-out").text = visible("\n".join(output))
    indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, encoding="unicode")}\n'
