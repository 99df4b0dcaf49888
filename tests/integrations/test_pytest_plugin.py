"""The pytest plugin, in sessions of its own: what tests record, gates, baselines, reports, and JUnit properties."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from demur.store.runs import RunReading, Store

pytest_plugins = ["pytester"]

ANSWERS = """
import pytest

ANSWERS = [("hours", "hours", 0.9), ("tickets", "tickets", 0.8), ("tickets", "hours", 0.3), ("cafe", None, None)]

@pytest.mark.parametrize(("target", "answer", "sure"), ANSWERS)
def test_guide(demur_record, target, answer, sure):
    demur_record(target=target, prediction=answer, confidence=sure)

def test_twice(demur_record):
    demur_record(correct=True, prediction="a", confidence=0.7)
    demur_record(correct=True, prediction="b", confidence=0.6)
"""


@pytest.fixture
def session(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder with tests that record six answers."""
    monkeypatch.setenv("DEMUR_STORE", str(pytester.path / "runs"))
    pytester.makepyfile(test_guide=ANSWERS)
    return pytester


def test_gates_fail_a_session_whose_tests_pass(session: pytest.Pytester) -> None:
    done = session.runpytest_inprocess(
        "--demur-fail-if=forced_error > 0.1", "--demur-log=log.jsonl", "--junitxml=junit.xml"
    )
    assert done.ret == 1
    done.assert_outcomes(passed=5)
    done.stdout.fnmatch_lines(["*= demur =*", "FAIL tests: forced_error > 0.1 holds: it is 0.166667*"])
    rows = [json.loads(line) for line in Path("log.jsonl").read_text().splitlines()]
    assert len({row["id"] for row in rows}) == 6
    assert rows[0]["id"] == "test_guide.py::test_guide[hours-hours-0.9]"
    properties = Path("junit.xml").read_text()
    assert '<property name="demur.tests.nonreturn_floor" value="0.166' in properties
    assert '<property name="demur.gate.forced_error &gt; 0.1" value="tests: forced_error' in properties


def test_answers_of_workers_are_compared_with_a_stored_run(session: pytest.Pytester) -> None:
    names = {
        "hours": "test_guide.py::test_guide[hours-hours-0.9]",
        "tickets": "test_guide.py::test_guide[tickets-tickets-0.8]",
    }
    rows = [{"id": name, "target": target, "prediction": target, "confidence": 0.5} for target, name in names.items()]
    Path("old.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with Store.open() as store:
        store.add("old.jsonl", reading=RunReading())
    gate = "--demur-fail-if=tests is significantly worse"
    done = session.runpytest_inprocess("-n1", "--demur-baseline=run:old", gate, "--demur-report=out/report.md")
    assert done.ret == 0
    done.stdout.fnmatch_lines(["PASS not tests is significantly worse", "wrote out/report.md"])
    assert "baseline" in Path("out/report.md").read_text()


def test_sessions_that_record_nothing_fail_only_where_a_gate_is_asked(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_plain(): pass")
    quiet = pytester.runpytest_inprocess()
    assert quiet.ret == 0
    quiet.stdout.no_fnmatch_line("*= demur =*")
    assert pytester.runpytest_inprocess("--demur-fail-if=augrc > 0.1").ret == 1
    wrong = pytester.runpytest_inprocess("--demur-fail-if=augrc")
    assert wrong.ret == pytest.ExitCode.USAGE_ERROR
    wrong.stderr.fnmatch_lines(["*--demur-fail-if takes*"])


def test_an_answer_needs_what_tells_right_from_wrong(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(demur_record): demur_record(prediction='a')")
    done = pytester.runpytest_inprocess()
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*demur_record needs target=... or correct=...*"])


def test_the_plugin_loads_nothing_of_demur_but_itself() -> None:
    code = "import sys, demur.integrations.pytest_plugin; print(*(n for n in sys.modules if n.startswith('demur')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == {"demur", "demur.integrations", "demur.integrations.pytest_plugin"}
