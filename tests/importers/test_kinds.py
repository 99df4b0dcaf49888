import gzip
import json
from pathlib import Path

import polars as pl
import pytest

import demur
from demur.errors import DataError
from demur.importers.dstc import IMPORTER
from demur.importers.kinds import columns_of, kind_of, outcome_column
from demur.lab.corpora import restaurant_folder

ROWS = [{"id": 1, "target": "a", "prediction": "a", "confidence": 0.5}, {"id": 2, "target": "a", "late": 1}]


def kind_at(path):
    return kind_of(columns_of(path), where=f"{path}:")


@pytest.mark.parametrize(
    ("columns", "kind"),
    [
        (["id", "text", "gold", "prediction", "confidence", "nbest"], "responses"),
        (["id", "correct", "confidence"], "responses"),
        (["Dialogue", "turn", "Answer", "outcome"], "responses"),
        (["id", "reference", "hypotheses"], "nbest"),
        (["utterance_id", "ref", "hyps", "dialogue", "success"], "nbest"),
        (["id", "ref", "nbest"], "nbest"),
        (["id", "reference", "cnet"], "nbest"),
        (["dialogue", "outcome"], "dialogues"),
        (["session", "pretest", "post_test", "student"], "dialogues"),
        (["dialogue", "success", "turns"], "dialogues"),
        (["performer", "role", "wer", "completed"], "trials"),
        (["system", "wizard", "wer", "done"], "trials"),
        (["model", "role", "noise", "score"], "trials"),
        (["what", "ever"], "responses"),
        ([], "responses"),
    ],
)
def test_columns_tell_the_kind_of_a_table(columns, kind):
    assert kind_of(columns) == kind


@pytest.mark.parametrize(
    ("columns", "kinds"),
    [
        (["prediction", "reference", "hypotheses"], "responses or of nbest"),
        (["performer", "correct"], "responses or of trials"),
        (["performer", "dialogue", "outcome"], "dialogues or of trials"),
    ],
)
def test_a_table_that_may_be_several_things_is_refused_with_the_choices(columns, kinds):
    with pytest.raises(DataError, match=f"log.csv: may be a table of {kinds}, by its columns .*--kind FILE=KIND"):
        kind_of(columns, where="log.csv:")


def test_success_is_the_outcome_only_where_nothing_else_is():
    assert outcome_column(["dialogue", "Success"]) == "Success"
    assert outcome_column(["dialogue", "success", "outcome"]) is None
    assert outcome_column(["dialogue", "success", "pre", "posttest"]) is None
    assert outcome_column(["dialogue"]) is None


def written(path, ending):
    frame = pl.DataFrame({"id": [1], "prediction": ["a"], "correct": [True]})
    lines = "".join(json.dumps(row) + "\n" for row in ROWS)
    if ending == ".jsonl.gz":
        path.write_bytes(gzip.compress(lines.encode()))
    elif ending == ".jsonl":
        path.write_text(lines)
    elif ending == ".json":
        path.write_text(json.dumps(ROWS))
    elif ending == ".csv":
        frame.write_csv(path)
    elif ending == ".tsv":
        frame.write_csv(path, separator="\t")
    elif ending == ".parquet":
        frame.write_parquet(path)
    else:
        frame.write_ipc(path)
    return path


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz", ".json", ".csv", ".tsv", ".parquet", ".arrow"])
def test_columns_are_found_in_files_of_every_format(tmp_path, ending):
    path = written(tmp_path / f"log{ending}", ending)
    json_like = ending.startswith(".json")
    wanted = ("id", "target", "prediction", "confidence", "late") if json_like else ("id", "prediction", "correct")
    assert columns_of(path) == wanted
    assert kind_at(path) == "responses"


def test_zstandard_is_read_too(tmp_path):
    pl.DataFrame({"performer": ["A"], "wer": [0.1]}).write_csv(tmp_path / "t.csv")
    path = tmp_path / "t.csv.zst"
    pl.scan_csv(tmp_path / "t.csv").sink_csv(path, compression="zstd")
    assert columns_of(path) == ("performer", "wer")


def test_a_parquet_file_is_not_read_to_tell_its_columns(tmp_path):
    path = tmp_path / "log.parquet"
    pl.DataFrame({"id": range(10), "performer": "x"}).write_parquet(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:4] + b"\0" * 8 + whole[12:])
    assert kind_at(path) == "trials"


def test_a_damaged_file_is_named(tmp_path):
    path = tmp_path / "log.parquet"
    path.write_bytes(b"PAR1 nothing else")
    with pytest.raises(DataError, match=r"log\.parquet is cut off, damaged or not Parquet"):
        columns_of(path)


def test_the_bundled_study_is_recognised():
    assert kind_at(restaurant_folder() / "turns.jsonl.gz") == "nbest"
    assert kind_at(restaurant_folder() / "dialogues.jsonl") == "dialogues"


def test_a_folder_of_the_challenge_holds_lists(tmp_path):
    session = tmp_path / "Mar13" / "voip-1"
    session.mkdir(parents=True)
    (session / "log.json").write_text("{}")
    assert columns_of(tmp_path) == IMPORTER.columns
    assert kind_at(tmp_path) == "nbest"


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        kind_at(tmp_path / "none.csv")


def test_a_table_that_opens_with_an_empty_line_has_no_columns_to_be_recognised_by(tmp_path: Path) -> None:
    path = tmp_path / "calls.csv"
    path.write_bytes(b"\ninf,0.43\n-0,0.38\n")
    with pytest.raises(DataError, match=r"calls\.csv"):
        demur.score(path)
