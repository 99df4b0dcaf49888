"""`demur understand`: from pairs to a model, from a model to responses that score reads, and a talk with it."""

import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import demur as package
from commands import Demur, run_in
from demur.lab.corpora import museum

COMMAND = [sys.executable, "-c", "from demur.apps.cli.main import run; run()", "understand", "chat"]
LABELS = 8
"""Answers of the museum guide that are learnt here, so that tests are quick."""

QUICK = ("--replicates", "50")


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture(scope="module")
def guide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with pairs, answers, off-topic texts, inputs, and a trained and a tuned model."""
    folder = tmp_path_factory.mktemp("guide")
    corpus = museum()
    kept = corpus.answers.head(LABELS)
    asked = corpus.questions.filter(pl.col("target").is_in(kept["answer"].implode()))
    every = pl.int_range(pl.len()) % 3
    write(folder / "pairs.jsonl", asked.filter(every != 0).drop("id").to_dicts())
    test = pl.concat([asked.filter(every == 0), corpus.offtopic.head(40)], how="diagonal")
    write(folder / "inputs.jsonl", test.with_columns(kind=pl.lit("test")).to_dicts())
    write(folder / "answers.jsonl", kept.to_dicts())
    write(folder / "off.jsonl", corpus.offtopic.tail(40).to_dicts())
    done = run_in(folder, "understand", "train", "pairs.jsonl", "--answers", "answers.jsonl", "-o", "plain", "--quiet")
    assert done.returncode == 0, done.stderr
    tuned = ("--answers", "answers.jsonl", "--off-topic", "off.jsonl", "-o", "tuned", "-o", "t.svg", "-o", "t.json")
    done = run_in(folder, "understand", "tune", "pairs.jsonl", *tuned, "--max-error", "0.1", *QUICK)
    assert done.returncode == 0, done.stderr
    (folder / "tune.txt").write_text(done.stdout + done.stderr)
    return folder


@pytest.fixture
def inside(guide: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The command, in this process and in the folder of the guide."""
    return lambda *arguments: run_in(guide, *arguments)


def test_training_says_what_was_learnt(inside: Demur, guide: Path, tmp_path: Path) -> None:
    done = inside("understand", "train", "pairs.jsonl", "--answers", "answers.jsonl", "-o", str(tmp_path / "m"))
    assert done.returncode == 0
    pairs = len((guide / "pairs.jsonl").read_text().splitlines())
    assert f"Learnt {LABELS} answers from {pairs} questions" in done.stdout
    assert "demur understand tune finds one" in done.stdout
    assert f"wrote {tmp_path / 'm'}" in done.stderr
    assert {path.name for path in (tmp_path / "m").iterdir()} == {"model.json", "arrays.npz", "vocabularies.json"}


def test_the_summary_is_one_json_document(inside: Demur, tmp_path: Path) -> None:
    rows = [
        {"text": "Open?", "label": "hours"},
        {"text": "open?", "label": "hours"},
        {"text": "open?", "label": "way"},
        {"text": "who?", "label": "oos"},
        {"text": "...", "label": "way"},
    ]
    write(tmp_path / "pairs.jsonl", rows)
    write(tmp_path / "answers.jsonl", [{"answer": "lift", "text": "On the left."}])
    told = ("--answers", str(tmp_path / "answers.jsonl"), "-o", str(tmp_path / "m"), "--json", "--threshold", "0.4")
    done = inside("understand", "train", str(tmp_path / "pairs.jsonl"), *told)
    assert done.stderr == ""
    found = json.loads(done.stdout)
    counts = {name: found[name] for name in ("n", "labels", "vocabulary", "copies", "off_topic")}
    assert counts == {"n": 4, "labels": 2, "vocabulary": {"words": 1}, "copies": 1, "off_topic": 1}
    assert found["several_labels"] == [{"input": "open?", "targets": ["hours", "way"]}]
    assert found["answers_without_questions"] == ["lift"]
    assert found["parameters"]["threshold"] == 0.4
    assert found["model"] == str(tmp_path / "m")
    assert 'has no words, so nothing is learnt there, e.g. "..."' in found["warnings"][0]


def test_responses_are_a_table_that_score_reads(inside: Demur, tmp_path: Path) -> None:
    names = ["r.jsonl", "r.csv", "r.parquet", "r.json", "r.tsv", "r.arrow", "r.jsonl.gz"]
    outputs = [part for name in names for part in ("-o", str(tmp_path / name))]
    done = inside("understand", "respond", "plain", "inputs.jsonl", *outputs)
    assert done.returncode == 0, done.stderr
    table = pl.read_ndjson(tmp_path / "r.jsonl")
    assert table.columns == ["id", "input", "target", "prediction", "confidence", "nbest", "why", "kind"]
    assert table["nbest"].list.len().max() == 5
    best = table.drop_nulls("prediction")
    assert best["nbest"].list.first().struct.field("label").equals(best["prediction"], check_names=False)
    scores = [
        json.loads(inside("score", str(tmp_path / name), "--json", *QUICK).stdout)["systems"][0] for name in names
    ]
    assert scores[0]["measures"]["auroc"]["value"] > 0.7
    assert all(one["measures"] == scores[0]["measures"] for one in scores)
    assert scores[0]["out_of_scope"] == 40


def test_answers_below_the_threshold_stay_unless_they_are_to_be_withheld(
    inside: Demur, guide: Path, tmp_path: Path
) -> None:
    tables = []
    for place, more in enumerate(([], ["--withhold"])):
        path = tmp_path / f"{place}.parquet"
        assert inside("understand", "respond", "tuned", "inputs.jsonl", "-o", str(path), *more).returncode == 0
        tables.append(pl.read_parquet(path))
    kept, withheld = tables
    below = ~kept["returned"]
    limit = json.loads((guide / "tuned" / "model.json").read_text())["parameters"]["threshold"]
    assert kept.filter(below).height > 0
    assert (kept["confidence"].fill_null(-1.0) >= limit).equals(kept["returned"], check_names=False)
    assert withheld.filter(below)["prediction"].null_count() == below.sum()
    assert withheld.filter(~below).equals(kept.filter(~below))
    assert withheld["why"].equals(kept["why"])


def test_what_is_unknown_or_empty_is_withheld_with_the_reason(inside: Demur, tmp_path: Path) -> None:
    write(tmp_path / "in.jsonl", [{"input": "xyzzy"}, {"input": ""}, {"input": None}, {"input": "open today"}])
    done = inside("understand", "respond", "plain", str(tmp_path / "in.jsonl"), "--json")
    rows = json.loads(done.stdout)["responses"]
    assert [row["prediction"] is None for row in rows] == [True, True, True, False]
    assert [row["why"] for row in rows] == [
        "none of its words was ever seen in training",
        "there are no words in it",
        "there are no words in it",
        None,
    ]
    assert [row["confidence"] is None for row in rows] == [True, True, True, False]


def test_without_a_file_the_answers_are_shown(inside: Demur) -> None:
    done = inside("understand", "respond", "tuned", "inputs.jsonl")
    assert "remark" in done.stdout
    assert "is below the threshold" in done.stdout
    assert "; -o FILE.jsonl writes all of them" in done.stdout


def test_texts_come_from_standard_input(guide: Path) -> None:
    asked = ("understand", "respond", "plain", "-", "--json", "--nbest", "2")
    found = json.loads(run_in(guide, *asked, piped='{"input": "open on sunday"}\n').stdout)
    assert (found["n"], len(found["responses"][0]["nbest"])) == (1, 2)


def test_tuning_says_what_was_tried_and_writes_the_threshold(guide: Path) -> None:
    said = (guide / "tune.txt").read_text()
    assert "Best of 20 settings" in said
    assert "the best question weight is at the edge of those tried, 0.05 to 0.7" in said
    assert "40 off-topic texts" in said
    assert "error rate at most 0.1 in this sample" in said
    assert "Nothing is promised about new inputs" in said
    model = json.loads((guide / "tuned" / "model.json").read_text())["parameters"]
    told = json.loads((guide / "t.json").read_text())
    assert model["threshold"] == told["threshold"]
    assert told["error"] <= 0.1
    assert len(told["settings"]) == 20
    assert {name: model[name] for name in ("question_weight", "sharpness")}.items() <= told["best"].items()
    assert (guide / "t.svg").read_text().startswith("<svg")


def test_without_an_aim_a_cost_is_taken_and_without_a_folder_nothing_is_kept(inside: Demur, guide: Path) -> None:
    before = sorted(guide.iterdir())
    done = inside("understand", "tune", "pairs.jsonl", *QUICK)
    assert done.returncode == 0, done.stderr
    assert "(cost ratio 0.5)" in done.stdout
    assert "a non-return is taken to cost 0.5 of an error" in done.stderr
    assert "the model is not written to a folder" in done.stderr
    assert "there are no off-topic texts" in done.stderr
    assert sorted(guide.iterdir()) == before


def test_gates_hold_for_what_tuning_finds(inside: Demur) -> None:
    gate = ("--max-error", "0.2", "--fail-if", "nonreturn > 0.0001", "--fail-if", "error > 0.9")
    done = inside("understand", "tune", "pairs.jsonl", "--off-topic", "off.jsonl", *gate, *QUICK)
    assert done.returncode == 1
    assert "gate: left-out questions: nonreturn > 0.0001 holds" in done.stderr


@pytest.mark.parametrize("tokens", ["phones", "mixed"])
def test_phones_are_tokens_too(inside: Demur, tmp_path: Path, tokens: str) -> None:
    pytest.importorskip("gruut_lang_en", reason="demur[phones] is not installed")
    done = inside("understand", "train", "pairs.jsonl", "--tokens", tokens, "-o", str(tmp_path / "m"), "--json")
    assert "phones2" in json.loads(done.stdout)["vocabulary"]
    again = inside("understand", "respond", str(tmp_path / "m"), "inputs.jsonl", "--json")
    assert json.loads(again.stdout)["n"] > 40


LINES = "when are you open\nxyzzy\n\nxyzzy xyzzy\nwhen are you open\n"


def talked(guide: Path, text: bytes, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_in(guide, "understand", "chat", *arguments, piped=text.decode())


def test_a_pipe_gets_a_line_for_each_line(guide: Path) -> None:
    done = talked(guide, LINES.encode(), "plain")
    assert done.returncode == 0, done.stderr
    first, second, third, fourth, last = done.stdout.splitlines()
    assert first.startswith("We're open Tuesday to Sunday")
    assert "[opening_hours, confidence 0." in first
    assert "; then " in first
    assert second.endswith("[withheld: none of its words was ever seen in training; clarify]")
    assert third.endswith("[withheld: there are no words in it; stall]")
    assert fourth.endswith("change topic]")
    assert last == first


def test_a_withheld_answer_says_why_and_what_it_would_have_been(guide: Path) -> None:
    (line,) = talked(guide, b"when are you open", "plain", "--threshold", "0.99999").stdout.splitlines()
    assert "I did not understand that. Could you put it differently? [withheld: its confidence" in line
    assert "is below the threshold 0.99999; clarify; best guess opening_hours, confidence" in line
    quiet = talked(guide, b"when are you open", "plain", "--threshold", "0.99999", "--quiet").stdout
    assert quiet == "I did not understand that. Could you put it differently?\n"


def test_json_gives_a_document_for_each_line(guide: Path) -> None:
    rows = [json.loads(line) for line in talked(guide, LINES.encode(), "plain", "--json").stdout.splitlines()]
    assert [row["strategy"] for row in rows] == [None, "clarify", "stall", "change topic", None]
    assert [row["prediction"] for row in rows[:2]] == ["opening_hours", None]
    assert rows[1]["confidence"] is None
    assert rows[0]["nbest"][0] == {"label": "opening_hours", "confidence": rows[0]["confidence"]}


@pytest.mark.parametrize("leaving", ["end", "interrupt"])
def test_a_terminal_asks_answers_and_is_left_cleanly(guide: Path, leaving: str) -> None:
    master, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    streams: dict[str, Any] = dict.fromkeys(("stdin", "stdout"), terminal)
    environment = {**os.environ, "TERM": "xterm-256color"}
    process = subprocess.Popen(
        [*COMMAND, "plain"], cwd=guide, stderr=subprocess.PIPE, text=True, env=environment, **streams
    )
    os.close(terminal)
    greeting = read_until(master, "> ")
    os.write(master, b"when are you open\n")
    shown = read_until(master, "\n> ")
    os.write(master, b"\n")
    blank = read_until(master, "\n> ")
    if leaving == "end":
        os.write(master, b"\x04")
    else:
        process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    os.close(master)
    assert process.returncode == 0, said
    assert said == ""
    assert f"A model of {LABELS} answers; no threshold" in greeting
    assert "We're open Tuesday to Sunday" in shown
    assert "[opening_hours, confidence 0." in shown
    assert "withheld" not in blank


def read_until(descriptor: int, end: str) -> str:
    found = b""
    while not found.decode(errors="ignore").replace("\r\n", "\n").endswith(end):
        found += os.read(descriptor, 4096)
    return found.decode(errors="replace")


@pytest.mark.parametrize("command", ["train", "tune", "respond", "chat"])
def test_the_example_of_the_help_runs(inside: Demur, guide: Path, command: str) -> None:
    shown = " ".join(inside("understand", command, "--help").stdout.split())
    example = shown.partition("Example: ")[2].removesuffix(" ╯").strip()
    words = example.partition("demur ")[2].replace("guide", "example").split()
    assert words[:2] == ["understand", command]
    if command == "chat":
        done = talked(guide, b"when do you open?", "plain")
    else:
        more = [] if command != "tune" else list(QUICK)
        places = {"example": "plain"} if command == "respond" else {}
        done = inside(*(places.get(word, word) for word in words), *more)
    assert done.returncode == 0, done.stderr


def test_files_frames_and_rows_give_in_python_what_the_command_gives(inside: Demur, guide: Path) -> None:
    by_command = json.loads(inside("understand", "respond", "plain", "inputs.jsonl", "--json").stdout)["responses"]
    table = pl.read_ndjson(guide / "pairs.jsonl")
    said = pl.read_ndjson(guide / "answers.jsonl")
    for data, answers in ((guide / "pairs.jsonl", guide / "answers.jsonl"), (table, said), (table.to_dicts(), said)):
        model = package.train(data, answers=answers)
        found = package.respond(model, guide / "inputs.jsonl").frame().to_dicts()
        assert [row["prediction"] for row in found] == [row["prediction"] for row in by_command]
    loaded = package.load_model(guide / "plain")
    assert package.respond(loaded, ["when are you open"]).frame()["prediction"].to_list() == ["opening_hours"]
    evaluation = package.score(package.respond(guide / "plain", guide / "inputs.jsonl").frame(), replicates=50)[0]
    assert evaluation.figures["auroc"].value > 0.7


def test_tuning_in_python_gives_the_model_of_the_command(guide: Path, tmp_path: Path) -> None:
    found = package.tune(
        guide / "pairs.jsonl",
        answers=guide / "answers.jsonl",
        off_topic=guide / "off.jsonl",
        max_error=0.1,
        replicates=50,
    )
    package.save_model(found.model, tmp_path / "m")
    expected = json.loads((guide / "tuned" / "model.json").read_text())["parameters"]
    assert json.loads((tmp_path / "m" / "model.json").read_text())["parameters"] == expected


def test_another_threshold_leaves_the_model_as_it_is(guide: Path) -> None:
    model = package.load_model(guide / "plain")
    found = package.respond(model, ["when are you open"], threshold=2.0, withhold=True).frame()
    assert (found["prediction"].to_list(), found["returned"].to_list()) == ([None], [False])
    assert model.threshold is None
