"""What `demur understand` refuses: each in a sentence that says what to mend, with nothing half-written."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import demur as package
from commands import Demur

PAIRS = [
    {"input": "when do you open", "target": "hours"},
    {"input": "are you open today", "target": "hours"},
    {"input": "who built the ship", "target": "builder"},
    {"input": "who made it", "target": "builder"},
]


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def folder(demur: Demur, tmp_path: Path) -> Path:
    """Pairs, and a model without a threshold."""
    write(tmp_path / "pairs.jsonl", PAIRS)
    assert demur("understand", "train", "pairs.jsonl", "-o", "model", "--quiet").returncode == 0
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    (tmp_path / "latin.csv").write_bytes("input,target\ncafé,x\n".encode("latin-1"))
    (tmp_path / "answers.csv").write_text("answer,text\nhours,From ten.\nhours,From nine.\n")
    write(tmp_path / "wordless.jsonl", [{"input": "???", "target": "x"}, {"input": "!", "target": "y"}])
    write(tmp_path / "blank.jsonl", [*PAIRS, {"input": "  ", "target": "hours"}])
    write(tmp_path / "one.jsonl", PAIRS[:1])
    write(tmp_path / "even.jsonl", [{"input": "open it", "target": "x"}, {"input": "open up", "target": "y"}])
    return tmp_path


WRONG = {
    "no such file": (["train", "pears.jsonl", "-o", "m"], 'pears.jsonl does not exist (did you mean "pairs.jsonl"?)'),
    "foreign folder": (["train", "pairs.jsonl", "-o", "other"], "other exists and is no model of demur"),
    "folder with ending": (["train", "pairs.jsonl", "-o", "m.v2"], 'or none, for a folder; got ".v2"'),
    "two folders": (["train", "pairs.jsonl", "-o", "m", "-o", "n"], "-o m -o n: a model goes to one folder"),
    "figure": (["train", "pairs.jsonl", "-o", "m", "-o", "m.svg"], "this result has no figure"),
    "tokens": (["train", "pairs.jsonl", "-o", "m", "--tokens", "letters"], 'has "letters"'),
    "weight": (
        ["train", "pairs.jsonl", "-o", "m", "--question-weight", "2"],
        "--question-weight must be above 0 and below 1; got 2",
    ),
    "sharpness": (["train", "pairs.jsonl", "-o", "m", "--sharpness", "0"], "--sharpness must be above 0; got 0"),
    "scoring": (["train", "pairs.jsonl", "-o", "m", "--scoring", "luck"], "--scoring"),
    "threshold": (["train", "pairs.jsonl", "-o", "m", "--threshold", "nan"], "--threshold takes a number; got nan"),
    "not UTF-8": (["train", "latin.csv", "-o", "m"], "is not UTF-8; it looks like Latin-1"),
    "blank text": (["train", "blank.jsonl", "-o", "m"], "blank.jsonl:5: input must hold words"),
    "no words": (["train", "wordless.jsonl", "-o", "m"], 'no text has any words in it, e.g. "???"'),
    "two answers": (["train", "pairs.jsonl", "-o", "m", "--answers", "answers.csv"], 'the answer "hours" says'),
    "mapping": (["train", "pairs.jsonl", "-o", "m", "--map", "target"], "--map takes NAME=COLUMN"),
    "mapped part": (["train", "pairs.jsonl", "-o", "m", "--map", "label=x"], 'no column is called "label" here'),
    "where": (["train", "pairs.jsonl", "-o", "m", "--where", "split=dev"], 'there is no column "split"'),
    "gate of nothing": (["train", "pairs.jsonl", "-o", "m", "--fail-if", "accuracy > 1"], 'knows no "accuracy"'),
    "gate": (["train", "pairs.jsonl", "-o", "m", "--fail-if", "labels are few"], "--fail-if takes"),
    "two aims": (["tune", "pairs.jsonl", "--max-error", ".1", "--cost-ratio", ".1"], "choose by exactly one of"),
    "level": (["tune", "pairs.jsonl", "--level", "95"], "--level must be above 0 and below 1; got 95"),
    "one pair": (["tune", "one.jsonl", "-o", "m"], "tuning needs two pairs or more"),
    "wordless": (["tune", "wordless.jsonl", "-o", "m"], "no text has any words in it"),
    "impossible": (
        ["tune", "even.jsonl", "--max-error", "0", "-o", "m"],
        "no question is answered right without itself",
    ),
    "off-topic": (["tune", "pairs.jsonl", "--off-topic", "gone.jsonl", "-o", "m"], "gone.jsonl does not exist"),
    "no model": (["respond", "nowhere", "pairs.jsonl"], "nowhere: no such folder (demur understand train writes"),
    "not a model": (["respond", "other", "pairs.jsonl"], "other: has no model.json, so it is no model of demur"),
    "ending": (["respond", "model", "pairs.jsonl", "-o", "r.txt"], "-o r.txt: the extension must be one of .jsonl"),
    "a directory": (["respond", "model", "pairs.jsonl", "-o", "d.csv"], "-o d.csv: this is a directory"),
    "withhold": (["respond", "model", "pairs.jsonl", "--withhold"], "--withhold: the model has no threshold"),
    "no texts": (["respond", "model", "answers.csv", "--map", "input=x"], 'there is no column "x" to map input from'),
    "limit": (["respond", "model", "pairs.jsonl", "--threshold", "inf"], "--threshold takes a number; got inf"),
    "list": (["respond", "model", "pairs.jsonl", "--nbest", "0"], "--nbest"),
    "talk to nothing": (["chat", "nowhere"], "nowhere: no such folder"),
    "talk": (["chat", "model", "--threshold", "inf"], "--threshold takes a number; got inf"),
}


@pytest.mark.parametrize(("arguments", "said"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_done_is_refused_in_a_sentence(
    demur: Demur, folder: Path, arguments: list[str], said: str
) -> None:
    (folder / "d.csv").mkdir()
    before = sorted(folder.rglob("*"))
    done = demur("understand", *arguments, columns=300)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert done.stdout == ""
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("name", ["arrays.npz", "vocabularies.json"])
def test_a_model_without_one_of_its_files_is_refused(demur: Demur, folder: Path, name: str) -> None:
    (folder / "model" / name).unlink()
    for arguments in (["respond", "model", "pairs.jsonl"], ["chat", "model"]):
        done = demur("understand", *arguments)
        assert done.returncode == 2
        assert f"model: is incomplete: {name} is missing (train the model again)" in done.stderr


def test_a_model_of_another_version_is_refused(demur: Demur, folder: Path) -> None:
    path = folder / "model" / "model.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "layout": 99, "demur": "9.9"}))
    done = demur("understand", "respond", "model", "pairs.jsonl")
    assert done.returncode == 2
    assert "written by demur 9.9" in done.stderr


def test_a_fault_in_new_pairs_leaves_the_old_model(demur: Demur, folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in (folder / "model").iterdir()}
    assert demur("understand", "train", "blank.jsonl", "-o", "model").returncode == 2
    assert {path.name: path.read_bytes() for path in (folder / "model").iterdir()} == before


@pytest.mark.usefixtures("folder")
def test_a_line_that_is_not_utf8_is_named(demur: Demur, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"open\ncaf\xe9\n")))
    done = demur("understand", "chat", "model")
    assert done.returncode == 2
    assert len(done.stdout.splitlines()) == 1
    assert "<stdin>:2: byte 3 of the line (0xe9) is not UTF-8" in done.stderr


def test_slips_in_pairs_are_told_and_not_refused(demur: Demur, folder: Path) -> None:
    rows = [*PAIRS, PAIRS[0], {"input": "Who made it", "target": "maker"}, {"input": "hello", "target": None}]
    write(folder / "pairs.jsonl", rows)
    (folder / "answers.csv").write_text("answer,text\nhours,From ten.\nlift,On the left.\n")
    done = demur("understand", "train", "pairs.jsonl", "--answers", "answers.csv", "-o", "model")
    assert done.returncode == 0
    for said in (
        'warning: 1 text has several labels, e.g. "who made it" has builder and maker',
        "warning: 1 answer has no questions, so it is never given: lift",
        "note: 1 text without an answer is off-topic",
        "note: 1 pair repeats another; each counts",
        "note: 1 label has one example: maker",
        "note: 2 labels have no answer text: builder, maker",
    ):
        assert said in done.stderr


def test_slips_in_python_are_said(folder: Path) -> None:
    with pytest.raises(package.UsageError, match=r'no option "colums" here. Did you mean "columns"'):
        package.train(PAIRS, colums={})
    with pytest.raises(package.DataError, match="needs a column input"):
        package.respond(folder / "model", [{"words": "a"}])
    with pytest.raises(package.UsageError, match="choose by exactly one of"):
        package.tune(PAIRS, max_error=0.1, max_nonreturn=0.1)
