import json
import random

import polars as pl
import pytest

from demur import compare, report, score
from demur.errors import DataError, UsageError

FAST = {"replicates": 50}


def rows(n=60, **cells):
    rng = random.Random(1)
    made = []
    for k in range(n):
        right = rng.random() < 0.6
        sure = min(0.99, max(0.01, rng.gauss(0.7 if right else 0.4, 0.2)))
        named = {"verbal": f"{round(100 * sure)} %", "logprob": sure - 1, "agreement": rng.randint(1, 5)}
        made.append({"id": k, "correct": right, **named, **cells})
    return made


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.csv"
    pl.DataFrame(rows()).write_csv(path)
    return path


def test_columns_of_confidences_are_systems_on_the_same_answers(log):
    found = compare(log, confidence=("verbal", "logprob", "agreement"), **FAST)
    assert [one.system for one in found.evaluations] == ["verbal", "logprob", "agreement"]
    assert found.note == "paired by id on 60 inputs"
    alone = score(log, columns={"confidence": "agreement"}, **FAST)[0]
    assert found.evaluations[2].to_dict()["measures"]["augrc"] == alone.to_dict()["measures"]["augrc"]
    assert found.pairs[0].right.value == 0
    assert f"verbal: {log}: confidence read with percent signs" in found.notes


def test_a_dict_names_them_and_a_log_without_ids_is_paired_by_its_rows():
    frame = pl.DataFrame(rows()).drop("id")
    found = compare(frame, confidence={"said": "verbal", "token": "logprob"}, **FAST)
    assert [one.system for one in found.evaluations] == ["said", "token"]
    assert found.note == "paired by id on 60 inputs"


def test_models_times_confidences_are_one_command(tmp_path, log, demur):
    other = tmp_path / "other.jsonl"
    pl.DataFrame(rows()).write_ndjson(other)
    names = [f"{file}:{column}" for file in ("log", "other") for column in ("verbal", "logprob")]
    found = compare(log, other, confidence=("verbal", "logprob"), **FAST)
    assert sorted(one.system for one in found.evaluations) == sorted(names)
    files = ["log.csv:verbal", "log.csv:logprob", "other.jsonl:verbal", "other.jsonl:logprob"]
    said = demur("compare", *files, "--json", "--replicates", "50")
    assert [one["system"] for one in json.loads(said.stdout)["systems"]] == names


def test_the_command_takes_columns_of_confidences(log, demur):
    said = demur(
        "compare", str(log), "--confidence", "verbal", "--confidence", "logprob", "--json", "--replicates", "50"
    )
    found = json.loads(said.stdout)
    assert [one["system"] for one in found["systems"]] == ["verbal", "logprob"]
    assert found["pairs"][0]["paired"] is True


def test_a_file_with_a_column_is_read_wherever_answers_are(log):
    (one,) = score(f"{log}:logprob", **FAST)
    assert one.system == "log:logprob"


def test_a_report_takes_files_with_columns(log):
    found = report(f"{log}:verbal", f"{log}:logprob", **FAST)
    assert [one["system"] for one in found.to_dict()["systems"]] == ["log:verbal", "log:logprob"]


def test_a_file_that_is_called_so_is_the_file(tmp_path):
    path = tmp_path / "log.csv:odd"
    pl.DataFrame(rows()).select("id", "correct", pl.col("logprob").alias("confidence")).write_csv(path)
    assert score(path, **FAST)[0].n == 60


def test_what_cannot_be_meant_is_refused(log, tmp_path):
    with pytest.raises(DataError, match='there is no column "nope" to map confidence from'):
        compare(log, confidence=("verbal", "nope"), **FAST)
    with pytest.raises(UsageError, match="names a column twice"):
        compare(log, confidence=("verbal", "verbal"), **FAST)
    with pytest.raises(UsageError, match="and so does `columns`"):
        compare(log, confidence=("verbal", "logprob"), columns={"confidence": "agreement"}, **FAST)
    with pytest.raises(UsageError, match="`confidence` takes columns, or a dict"):
        compare(log, confidence="verbal", **FAST)
    twin = tmp_path / "sub" / "log.csv"
    twin.parent.mkdir()
    twin.write_bytes(log.read_bytes())
    with pytest.raises(UsageError, match='two systems are called "log:verbal"'):
        compare(f"{log}:verbal", f"{twin}:verbal", **FAST)
