"""`demur import`: rows from the folders of the Dialog State Tracking Challenges."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from commands import Demur
from demur.importers.dstc import read_dstc
from importers.dstc_folders import corpus, written


def decoded(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("challenge", ["dstc2", "dstc3"])
def test_a_folder_becomes_a_file_of_rows(demur: Demur, tmp_path: Path, challenge: str) -> None:
    expected = list(read_dstc(corpus(tmp_path / "data")))
    done = demur("import", challenge, "data", "-o", "rows.jsonl")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert decoded((tmp_path / "rows.jsonl").read_text()) == expected
    assert "note: items of the slots with more than one value in ontology_test.json are kept: area, food" in done.stderr
    assert done.stderr.endswith("wrote rows.jsonl: 4 turns of 2 dialogues\n")


def test_without_a_file_the_rows_go_to_standard_output(demur: Demur, tmp_path: Path) -> None:
    expected = list(read_dstc(corpus(tmp_path / "data"), asr="batch"))
    done = demur("import", "dstc2", "data", "--asr", "batch")
    assert done.returncode == 0, done.stderr
    assert decoded(done.stdout) == expected
    assert done.stderr.endswith("4 turns of 2 dialogues\n")


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_a_file_may_be_compressed_and_the_summary_is_json(demur: Demur, tmp_path: Path, ending: str) -> None:
    corpus(tmp_path / "data")
    done = demur("import", "dstc2", "data", "--json", "-o", f"rows.jsonl{ending}")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    document = json.loads(done.stdout)
    assert list(document) == ["format", "rows", "dialogues", "out", "notes"]
    assert (document["rows"], document["dialogues"], document["out"]) == (4, 2, f"rows.jsonl{ending}")
    assert "lists of hypotheses that summed to over 1, normalised: 2" in document["notes"]
    assert pl.read_ndjson(tmp_path / f"rows.jsonl{ending}")["id"].to_list()[0] == "voip-a/0"


def test_quiet_says_nothing(demur: Demur, tmp_path: Path) -> None:
    corpus(tmp_path / "data")
    done = demur("import", "dstc2", "data", "-q", "-o", "rows.jsonl", "--seed", "3")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_ontology_and_labels_can_be_named(demur: Demur, tmp_path: Path) -> None:
    corpus(tmp_path / "data")
    written(tmp_path / "o.json", {"informable": {"type": ["restaurant", "pub"]}})
    done = demur("import", "dstc2", "data", "--ontology", "o.json", "--labels", "data")
    assert done.returncode == 0, done.stderr
    assert decoded(done.stdout)[0]["reference"] == ["inform(type=restaurant)"]


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (("nowhere", "-o", "rows.jsonl"), "error: nowhere does not exist (name the folder"),
        (("empty", "-o", "rows.jsonl"), "error: empty holds no dialogues of DSTC2 or DSTC3 (looked for log.json"),
        (("data", "-o", "rows.csv"), "error: -o rows.csv: the name must end in one of .jsonl .jsonl.gz .jsonl.zst"),
        (("data", "--json"), "error: --json: the rows need a file of their own; name it with -o"),
        (("damaged", "-o", "rows.jsonl"), "error: damaged/part-1/voip-a/log.json has neither label.json nor"),
        (("damaged",), "error: damaged/part-1/voip-a/log.json has neither label.json nor"),
        (("data", "--ontology", "nowhere.json"), "error: nowhere.json cannot be read: No such file or directory"),
        (("data", "--asr", "lives"), "Invalid value for '--asr'"),
    ],
)
def test_a_fault_is_said_with_exit_code_two_and_leaves_no_file(
    demur: Demur, tmp_path: Path, arguments: tuple[str, ...], fault: str
) -> None:
    (tmp_path / "empty").mkdir()
    corpus(tmp_path / "data")
    (corpus(tmp_path / "damaged") / "part-1" / "voip-a" / "label.json").unlink()
    done = demur("import", "dstc2", *arguments)
    assert done.returncode == 2
    assert fault in done.stderr
    assert done.stdout == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["damaged", "data", "empty"]


def test_help_has_an_example_that_runs(demur: Demur, tmp_path: Path) -> None:
    corpus(tmp_path / "FOLDER")
    written(tmp_path / "ontology_dstc3.json", {"informable": {"food": ["thai", "korean"]}})
    for challenge in ("dstc2", "dstc3"):
        helped = demur("import", challenge, "--help")
        assert helped.returncode == 0
        shown = " ".join(helped.stdout.split())
        example = shown[shown.index("Example: demur ") :].removeprefix("Example: demur ")
        done = demur(*example.split())
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "train.jsonl.gz").exists()
    assert (tmp_path / "test.jsonl").exists()


def test_importers_are_listed(demur: Demur) -> None:
    done = demur("import", "--help")
    assert done.returncode == 0
    assert "dstc2" in done.stdout
    assert "dstc3" in done.stdout
