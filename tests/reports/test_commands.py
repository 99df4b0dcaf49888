import json
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from commands import Demur, log, run_in
from demur.lab.corpora import restaurant_folder, wizards

QUICK = ("--replicates", "60")
FORMS = ("report.html", "report.md", "report.xml", "report.json")


def written_to(*names: str) -> list[str]:
    return [part for name in names for part in ("-o", name)]


@pytest.fixture
def two(tmp_path: Path) -> None:
    log(tmp_path / "good.jsonl", n=600, skill=3, level=2)
    log(tmp_path / "poor.jsonl", n=600, skill=0.5, level=0)


@pytest.mark.usefixtures("two")
def test_one_command_writes_every_form(demur: Demur, tmp_path: Path) -> None:
    done = demur("report", "good.jsonl", "poor.jsonl", *QUICK, *written_to(*FORMS))
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stderr.splitlines() if line.startswith("wrote")] == [
        f"wrote {name}" for name in FORMS
    ]
    assert "<h1>Report on 2 systems</h1>" in (tmp_path / "report.html").read_text()
    assert (tmp_path / "report.md").read_text().startswith("# Report on 2 systems\n")
    document = json.loads((tmp_path / "report.json").read_text())
    assert [one["system"] for one in document["systems"]] == ["good", "poor"]
    assert [one["name"] for one in document["files"]] == ["good.jsonl", "poor.jsonl"]
    assert str(tmp_path) not in (tmp_path / "report.html").read_text(), "no folder is told"


@pytest.mark.usefixtures("two")
def test_the_summary_is_plain_and_short(demur: Demur) -> None:
    done = demur("report", "good.jsonl", "poor.jsonl", *QUICK, "--fail-if", "forced_error > 0.9")
    assert done.stdout.isascii(), done.stdout
    lines = done.stdout.splitlines()
    assert lines[0] == "good dominates poor."
    assert lines[-2:] == ["PASS good: not forced_error > 0.9", "PASS poor: not forced_error > 0.9"]
    head = next(line for line in lines if line.startswith("system  inputs"))
    good = next(line for line in lines if line.startswith("good  "))
    place = head.index("inputs") + len("inputs")
    assert good[:place].split() == ["good", "600"]  # numbers end where their heads end
    assert good[place] == " "
    assert len(lines) < 20
    assert "-o report.html writes the full report" in done.stderr


def test_what_was_assumed_of_a_log_is_printed(demur: Demur, tmp_path: Path) -> None:
    rows = "".join(f"{k};a;{'ab'[k % 3 == 0]};{k},5\n" for k in range(11, 100))
    (tmp_path / "mine.csv").write_text(f"id;target;prediction;score\n{rows}", encoding="utf-8")
    done = demur("report", "mine.csv", *QUICK, "-o", "report.md")
    notes = [line for line in done.stderr.splitlines() if line.startswith("note: ")]
    assert any("from 0 to 100 read as percent" in note for note in notes), done.stderr
    assert any("read with decimal commas" in note for note in notes), done.stderr
    assert done.stderr.splitlines()[-1] == "wrote report.md"


@pytest.mark.usefixtures("two")
def test_quiet_is_the_verdict_and_json_one_document(demur: Demur) -> None:
    quiet = demur("report", "good.jsonl", *QUICK, "--quiet")
    assert quiet.stderr == ""
    assert "system  inputs" not in quiet.stdout
    document = json.loads(demur("report", "good.jsonl", *QUICK, "--json", "--fail-if", "n < 1").stdout)
    assert document["gates"] == [{"condition": "n < 1", "subject": "good", "passed": True, "failure": None}]


@pytest.mark.usefixtures("two")
def test_a_gate_that_does_not_hold_exits_with_1_after_all_is_written(demur: Demur, tmp_path: Path) -> None:
    gates = ("--fail-if", "forced_error > 0.3", "--fail-if", "b is significantly worse")
    done = demur("report", "good.jsonl", "poor.jsonl", *QUICK, *gates, *written_to(*FORMS))
    assert done.returncode == 1
    assert "FAIL poor: forced_error > 0.3 holds" in done.stdout
    assert "PASS good: not forced_error > 0.3" in done.stdout
    assert "gate: poor is significantly worse than good" in done.stderr
    suite = ET.parse(tmp_path / "report.xml").getroot().find("testsuite")
    assert suite is not None
    assert (suite.attrib["tests"], suite.attrib["failures"]) == ("5", "2")
    named = {(case.attrib["classname"], case.attrib["name"]) for case in suite.iter("testcase")}
    assert ("files", "good.jsonl is read as responses") in named
    assert ("good", "not forced_error > 0.3") in named
    assert "good dominates poor." in (suite.findtext("system-out") or "")


def test_kinds_are_mixed_freely_and_gates_find_their_part(demur: Demur, tmp_path: Path) -> None:
    log(tmp_path / "log.jsonl")
    shutil.copy(restaurant_folder() / "turns.jsonl.gz", tmp_path)
    shutil.copy(wizards().folder / "trials.csv", tmp_path)
    gates = ("--fail-if", "ice > 9", "--fail-if", "forced_error > 0.9", "--fail-if", "slices_that_differ > 0")
    done = demur("report", "log.jsonl", "turns.jsonl.gz", "trials.csv", *QUICK, *gates[:4], "-o", "r.md")
    assert done.returncode == 0, done.stderr
    assert "PASS turns: not ice > 9" in done.stdout
    text = (tmp_path / "r.md").read_text()
    for title in ("Errors and non-returns", "N-best lists", "How far from the gold standard"):
        assert f"## {title}" in text


def test_a_column_to_slice_by_may_be_gated(demur: Demur, tmp_path: Path) -> None:
    log(tmp_path / "log.jsonl", part=["a", "b"] * 100)
    done = demur("report", "log.jsonl", *QUICK, "--by", "part", "--fail-if", "slices_that_differ > 0")
    assert done.returncode == 0, done.stderr
    assert "PASS result: not slices_that_differ > 0" in done.stdout


def test_the_kind_of_a_file_may_be_said(demur: Demur, tmp_path: Path) -> None:
    rows = [{"performer": who, "correct": k % 2, "wer": k / 9} for k in range(9) for who in ("wizard", "A")]
    (tmp_path / "odd.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = demur("report", "odd.jsonl", *QUICK)
    assert done.returncode == 2
    assert "error: odd.jsonl: may be a table of responses or of trials" in done.stderr
    done = demur(
        "report", "odd.jsonl", "--kind", "odd.jsonl=trials", "--x", "wer", "--y", "correct", *QUICK, "-o", "r.md"
    )
    assert done.returncode == 0, done.stderr
    assert "How far from the gold standard" in (tmp_path / "r.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (("log.jsonl", "-o", "r.txt"), "-o r.txt: a report is written as .html .md .json .xml"),
        (("log.jsonl", "-o", "other.jsonl"), "a report is written as"),
        (("log.jsonl", "--kind", "trials"), "--kind takes FILE=KIND, where KIND is one of responses, nbest"),
        (("log.jsonl", "--kind", "log.jsonl=tails"), "--kind takes FILE=KIND"),
        (("log.jsonl", "--by", "part"), 'there is no column "part"'),
        (("log.jsonl", "--fail-if", "nonsense"), "--fail-if takes"),
        (("log.jsonl", "--fail-if", "augrk > 1"), '--fail-if knows no "augrk"; did you mean "augrc"'),
        (("log.jsonl", "--fail-if", "b is significantly worse"), "is a gate for compare"),
        (("log.jsonl", "--cost-ratio", "0.1", "--max-error", "0.1"), "one aim"),
        (("none.jsonl",), "none.jsonl does not exist"),
        (("bad.jsonl",), "bad.jsonl:2: the line is not JSON"),
    ],
)
def test_what_cannot_be_done_exits_with_2_and_writes_nothing(
    demur: Demur, tmp_path: Path, arguments: tuple[str, ...], fault: str
) -> None:
    log(tmp_path / "log.jsonl")
    (tmp_path / "bad.jsonl").write_text('{"id": 1, "correct": true, "confidence": 1}\n{oops}\n')
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    done = demur("report", *arguments, *QUICK, "-o", "r.html")
    assert done.returncode == 2
    assert fault in done.stderr
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_log_that_cannot_be_written_to_leaves_nothing_half_done(demur: Demur, tmp_path: Path) -> None:
    log(tmp_path / "log.jsonl")
    (tmp_path / "taken").write_text("a file")
    done = demur("report", "log.jsonl", *QUICK, "-o", "taken/r.md")
    assert done.returncode == 2
    assert "cannot be written" in done.stderr


def test_standard_input_is_read_as_answers(tmp_path: Path) -> None:
    text = log(tmp_path / "log.jsonl", n=50).read_text()
    done = run_in(tmp_path, "report", "-", *QUICK, "-o", "r.json", piped=text)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "r.json").read_text())["systems"][0]["system"] == "stdin"


def test_a_terminal_that_knows_only_ascii_is_served(apart: Demur, tmp_path: Path) -> None:
    import os

    rows = [{"id": k, "system": "Küche", "correct": k % 3 > 0, "confidence": k / 50} for k in range(50)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = apart("report", "log.jsonl", *QUICK, env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert done.returncode == 0, done.stderr
    assert r"K\u00fcche" in done.stdout


def test_answers_from_standard_input_are_told_beside_dialogues(tmp_path: Path) -> None:
    rows = [
        {"dialogue": f"d{k}", "target": "a", "prediction": "ab"[k % 3 > 1], "confidence": 0.1 + k / 20}
        for k in range(12)
    ]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "o.csv").write_text("dialogue,outcome\n" + "".join(f"d{k},{k % 3 / 2}\n" for k in range(12)))
    piped = run_in(tmp_path, "report", "-", "o.csv", "--json", *QUICK, piped=(tmp_path / "t.jsonl").read_text())
    assert piped.returncode == 0, piped.stderr
    named = json.loads(run_in(tmp_path, "report", "t.jsonl", "o.csv", "--json", *QUICK).stdout)
    told = json.loads(piped.stdout)
    assert told["systems"][0]["system"] == "stdin"
    assert told["systems"][0]["measures"] == named["systems"][0]["measures"]
    assert told["outcome"]["stdin"]["aic"] == named["outcome"]["t"]["aic"]
    assert [(one["name"], one["kind"]) for one in told["files"]] == [("<stdin>", "responses"), ("o.csv", "dialogues")]


def test_a_table_from_standard_input_is_read_as_what_its_columns_say(tmp_path: Path) -> None:
    trials = "performer,wer,done\n" + "".join(f"{who},{k / 10},{k % 2}\n" for who in ("wizard", "A") for k in range(8))
    done = run_in(tmp_path, "report", "-", "--json", *QUICK, piped=trials)
    assert done.returncode == 0, done.stderr
    assert [one["kind"] for one in json.loads(done.stdout)["files"]] == ["trials"]
