"""A pytest plugin: tests record answers, and the session passes or fails by all of them together.

pytest loads this wherever demur is installed, so nothing else of demur is imported before a session that uses it ends.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from demur.apps.cli.output import GateResult

SYSTEM, BASELINE = "tests", "baseline"
"""What the answers of a session are called where a test names no system, and what they are compared with."""

_KEY = pytest.StashKey["AnswerSession"]()
_SENT = "demur_answers"


class AnswerSession:
    """The answers that the tests of a session record, and what is said of them at its end."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.rows: dict[tuple[str, str], dict[str, Any]] = {}
        self.lines: list[str] = []
        self.has_failed = False

    def option(self, name: str) -> Any:
        """The value of an option of this plugin."""
        return self.config.getoption(f"demur_{name}")

    def add(self, rows: Iterable[dict[str, Any]]) -> None:
        """Keep answers; one that a test records again, such as when it is run again, replaces the first."""
        self.rows |= {(row["system"], row["id"]): row for row in rows}

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Take the answers that a worker of pytest-xdist recorded."""
        self.add(getattr(node, "workeroutput", {}).get(_SENT, ()))

    @pytest.hookimpl(tryfirst=True)  # before the JUnit XML is written
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Evaluate the answers, write what was asked for, and fail the session where a gate does not hold."""
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput[_SENT] = list(self.rows.values())
            return
        asked = self.option("fail_if") or self.option("report") or self.option("log")
        if self.config.option.collectonly or not (self.rows or asked):
            return
        from demur.errors import DemurError

        try:
            self._evaluate()
        except DemurError as fault:
            self.lines += [f"error: {line}" for line in str(fault).splitlines()]
            self.has_failed = True
        if self.has_failed and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say what the answers are worth, and which gate does not hold."""
        if self.lines:
            terminalreporter.section("demur", red=self.has_failed, green=not self.has_failed)
            for line in self.lines:
                terminalreporter.write_line(line)

    def _evaluate(self) -> None:
        from demur.errors import UsageError
        from demur.importers.protocol import frame_of
        from demur.returns.jobs import compare, score
        from demur.returns.presentation import of_comparison, of_scores

        if not self.rows:
            raise UsageError("no test recorded an answer; tests do so with the fixture demur_record")
        rows = list(self.rows.values())
        if path := self.option("log"):
            _write(path, "".join(json.dumps(row, default=str) + "\n" for row in rows))
        own = of_scores(score(rows))
        documents = [own.document]
        self.lines += own.sentences
        names = dict.fromkeys(row["system"] for row in rows)
        tables: dict[str, Any] = {name: frame_of([row for row in rows if row["system"] == name]) for name in names}
        if self.option("baseline") is not None:
            tables = {BASELINE: self._baseline(), **tables}
            shown = of_comparison(compare(tables, matched=True))  # tests come and go
            documents.append(shown.document)
            self.lines += [*shown.sentences, *(f"warning: {one}" for one in shown.warnings)]
        gates = self._ask(documents)
        self._add_properties(own.document, gates)
        if path := self.option("report"):
            self._write_report(path, tables, gates)

    def _baseline(self) -> Any:
        name = self.option("baseline")
        if not name.startswith("run:"):
            return name
        from demur.returns.jobs import JOBS
        from demur.store.runs import with_runs

        (table,), _ = with_runs([name], {}, next(job for job in JOBS if job.name == "compare"))
        return table

    def _ask(self, documents: list[dict[str, Any]]) -> list[GateResult]:
        """Ask each gate of the answers, or, where it names a comparison, of that with the baseline."""
        from demur.apps.cli.output import gate_results

        gates = gate_results(self.option("fail_if"), documents)
        for gate in gates:
            self.lines.append(f"PASS not {gate.condition}" if gate.failure is None else f"FAIL {gate.failure}")
        self.has_failed = any(gate.failure is not None for gate in gates)
        return gates

    def _add_properties(self, document: dict[str, Any], gates: list[GateResult]) -> None:
        """Put every measure and gate into the JUnit XML, where one is written."""
        from _pytest.junitxml import xml_key  # no public way adds a property at the end of a session

        xml = self.config.stash.get(xml_key, None)
        if xml is None:
            return
        for system in document["systems"]:
            for name, figure in system["measures"].items():
                xml.add_global_property(f"demur.{system['system']}.{name}", figure["value"])
        for gate in gates:
            held = "pass" if gate.failure is None else gate.failure
            xml.add_global_property(f"demur.gate.{gate.condition}", held)

    def _write_report(self, path: str, tables: dict[str, Any], gates: list[GateResult]) -> None:
        from demur.reports.jobs import report

        made = report(tables).with_gates([gate.to_dict() for gate in gates])
        _write(path, made.render(Path(path).suffix.lower()))
        self.lines.append(f"wrote {path}")


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of a session that records answers."""
    group = parser.getgroup("demur", "demur: answers that may be withheld")
    group.addoption(
        "--demur-fail-if",
        action="append",
        default=[],
        metavar="CONDITION",
        help='Fail if this holds of the recorded answers: "error_at_nonreturn > 0.05". Repeatable.',
    )
    group.addoption(
        "--demur-baseline", metavar="LOG", help="Compare with run:NAME, a stored run, or with a log of answers."
    )
    group.addoption("--demur-report", metavar="FILE", help="Write a report: .html, .md or .json.")
    group.addoption("--demur-log", metavar="FILE", help="Write the recorded answers: .jsonl.")


def pytest_configure(config: pytest.Config) -> None:
    """Begin to record; a gate that cannot be read ends the session before any test runs."""
    if conditions := config.getoption("demur_fail_if"):
        from demur.apps.cli.output import check_syntax
        from demur.errors import UsageError

        try:
            check_syntax(conditions)
        except UsageError as fault:
            raise pytest.UsageError(str(fault).replace("--fail-if", "--demur-fail-if")) from None
    config.stash[_KEY] = AnswerSession(config)
    config.pluginmanager.register(config.stash[_KEY], "demur-answers")


@pytest.fixture
def demur_record(request: pytest.FixtureRequest) -> Callable[..., None]:
    """A function that records an answer: its prediction, and the target or whether it is correct.

    An input is called after its test; one that records several answers numbers them, or gives each an `id`. A
    prediction of None is withheld. Further columns can be sliced by.
    """
    session = request.config.stash[_KEY]
    count = 0

    def record(*, prediction: Any, system: str = SYSTEM, id: str | None = None, **columns: Any) -> None:  # noqa: A002
        nonlocal count
        count += 1
        if "target" not in columns and "correct" not in columns:
            raise TypeError("demur_record needs target=... or correct=..., to tell right from wrong")
        own = request.node.nodeid if count == 1 else f"{request.node.nodeid} ({count})"
        session.add([{"id": own if id is None else str(id), "system": system, "prediction": prediction, **columns}])

    return record


def _write(path: str, text: str) -> None:
    from demur.core.io.writing import write_whole

    Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text)
