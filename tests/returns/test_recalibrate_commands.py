"""`demur recalibrate fit` and `demur recalibrate apply`: maps in files, and logs with all their columns."""

import gzip
import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import demur as package
from commands import Demur
from demur.core.stats.calibration_maps import Recalibration
from demur.errors import DataError, UsageError


def rows(n: int = 400, *, seed: int = 0, **columns):
    """Answers that are right less often than they say."""
    rng = np.random.default_rng(seed)
    sure = rng.random(n).round(3)
    right = rng.random(n) < sure**2
    return [
        {
            "id": f"q{k}",
            "target": "yes",
            "prediction": "yes" if right[k] else "no",
            "confidence": float(sure[k]),
            "nbest": [{"label": "yes", "confidence": 0.5}],
            **{name: values[k] for name, values in columns.items()},
        }
        for k in range(n)
    ]


def write(path: Path, lines) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "log.jsonl", rows())
    write(tmp_path / "other.jsonl", rows(seed=1))
    return tmp_path


QUICK = ("--replicates", "50")


def test_a_map_is_fitted_written_and_applied_to_another_log(demur: Demur, folder: Path):
    done = demur("recalibrate", "fit", "log.jsonl", "-o", "map.json", *QUICK)
    assert done.returncode == 0, done.stderr
    assert "Recalibrate: on answers that it was not fitted to" in done.stdout
    assert "answers dealt at random into 5 folds, stratified by errors, seed 0" in done.stderr
    stored = json.loads((folder / "map.json").read_text())
    assert stored["map"]["n"] == 400
    assert stored["map"]["seed"] == 0
    done = demur("recalibrate", "apply", "map.json", "other.jsonl", "-o", "new.jsonl", *QUICK)
    assert done.returncode == 0, done.stderr
    before, after = (
        [json.loads(line) for line in (folder / name).read_text().splitlines()] for name in ("other.jsonl", "new.jsonl")
    )
    fitted = package.fit_recalibration(folder / "log.jsonl", replicates=50).fitted
    assert fitted is not None
    assert fitted.to_dict() == stored["map"]
    for old, new in zip(before, after, strict=True):
        assert list(new) == ["id", "target", "prediction", "confidence", "confidence_before", "nbest"]
        assert new["confidence_before"] == old["confidence"]
        assert new["confidence"] == float(fitted([old["confidence"]])[0])
        assert all(new[name] == old[name] for name in ("id", "target", "prediction", "nbest"))


def test_what_it_does_to_another_log_is_judged_there(folder: Path):
    fitted = package.fit_recalibration(folder / "log.jsonl", replicates=50)
    log = package.apply_recalibration(fitted, folder / "other.jsonl", replicates=50)
    assert not log.fitted_here
    assert log.before is not None
    assert log.after is not None
    assert log.after.figures["ece"].value < 0.1 < log.before.figures["ece"].value
    assert log.change is not None
    assert log.change.high < 0
    scored = package.score(log.table, replicates=50)[0]
    assert scored.figures["brier"].value == pytest.approx(log.after.figures["brier"].value)


def test_the_log_that_a_map_was_fitted_to_is_recognised(demur: Demur, folder: Path):
    demur("recalibrate", "fit", "log.jsonl", "-o", "map.json", *QUICK)
    write(folder / "log2.jsonl", reversed(rows()))
    done = demur("recalibrate", "apply", "map.json", "log2.jsonl", "--json", *QUICK)
    document = json.loads(done.stdout)
    assert document["fitted_on_these_answers"]
    done = demur("recalibrate", "apply", "map.json", "log2.jsonl", *QUICK)
    assert "the map was fitted to these very answers" in done.stderr


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".arrow", ".tsv", ".jsonl.gz"])
def test_a_log_is_written_in_the_format_of_its_name(demur: Demur, folder: Path, ending: str):
    demur("recalibrate", "fit", "log.jsonl", "-o", "map.json", *QUICK)
    done = demur("recalibrate", "apply", "map.json", "log.jsonl", "-o", f"new{ending}", *QUICK)
    assert done.returncode == 0, done.stderr
    path = folder / f"new{ending}"
    if ending == ".jsonl.gz":
        table = pl.DataFrame([json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()])
    else:
        readers = {".csv": pl.read_csv, ".parquet": pl.read_parquet, ".arrow": pl.read_ipc}
        table = readers[ending](path) if ending in readers else pl.read_csv(path, separator="\t")
    assert table.columns == ["id", "target", "prediction", "confidence", "confidence_before", "nbest"]
    assert table["confidence_before"].to_list() == [row["confidence"] for row in rows()]


def test_a_column_of_another_name_keeps_it():
    lines = [{"score" if name == "confidence" else name: cell for name, cell in row.items()} for row in rows()]
    fitted = package.fit_recalibration(lines, replicates=50)
    table = package.apply_recalibration(fitted, lines, replicates=50).table
    assert {"score", "score_before"} <= set(table.columns)


def test_withheld_rows_and_those_without_confidence_stay(folder: Path):
    fitted = package.fit_recalibration(folder / "log.jsonl", replicates=50)
    lines = [*rows(), {"id": "x", "target": "yes", "prediction": None, "confidence": None, "nbest": []}]
    log = package.apply_recalibration(fitted, lines, replicates=50)
    assert log.table.height == 401
    assert log.mapped == 400
    assert log.table["confidence"][-1] is None


def test_a_log_without_targets_is_mapped_and_not_judged(folder: Path):
    fitted = package.fit_recalibration(folder / "log.jsonl", replicates=50)
    lines = [{"id": row["id"], "confidence": row["confidence"]} for row in rows()]
    log = package.apply_recalibration(fitted, lines)
    assert log.after is None
    assert log.to_dict()["after"] is None
    assert "no column tells right from wrong" in log.notes[-1]


def test_only_the_rows_of_the_system_are_mapped(folder: Path):
    fitted = package.fit_recalibration(folder / "log.jsonl", replicates=50)
    lines = [{**row, "system": name, "id": row["id"] + name} for name in ("a", "b") for row in rows(seed=1)]
    with pytest.raises(UsageError, match="a map belongs to one system; choose with `system` from a, b"):
        package.apply_recalibration(fitted, lines)
    table = package.apply_recalibration(fitted, lines, system="b", replicates=50).table
    same = table["confidence"] == table["confidence_before"]
    assert same[:400].all()
    assert not same[400:].all()


FAULTS = {
    "no map": (["nowhere.json", "log.jsonl"], "nowhere.json cannot be read: No such file"),
    "a log for a map": (["log.jsonl", "log.jsonl"], "does not have the form of a recalibration"),
    "an input for an output": (["map.json", "log.jsonl", "-o", "log.jsonl"], "this file is read here"),
    "the map for an output": (["map.json", "log.jsonl", "-o", "map.json"], "this file is read here"),
    "recalibrated before": (["map.json", "new.jsonl"], 'there is a column "confidence_before" already'),
    "scores": (["map.json", "scores.jsonl"], r"the map is for probabilities, and these are not all within \[0, 1\]"),
    "no confidences": (["map.json", "none.jsonl"], "has no column confidence to recalibrate"),
    "several logs": (["map.json", "*.jsonl"], r"one log is recalibrated at a time; \*.jsonl stands for"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_cannot_be_applied_is_refused(demur: Demur, folder: Path, fault: str):
    demur("recalibrate", "fit", "log.jsonl", "-o", "map.json", *QUICK)
    write(folder / "new.jsonl", [{**row, "confidence_before": 0.5} for row in rows(5)])
    write(folder / "scores.jsonl", [{**row, "confidence": 7.0} for row in rows(5)])
    write(folder / "none.jsonl", [{"id": 1, "target": "a", "prediction": "a"}])
    arguments, message = FAULTS[fault]
    done = demur("recalibrate", "apply", *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert re.search(message, done.stderr), done.stderr


def test_a_map_of_items_is_not_for_answers(folder: Path):
    fitted = Recalibration.fit([0.2, 0.8], [False, True], level="items")
    with pytest.raises(DataError, match="the map is for confidences of items, not of answers"):
        package.apply_recalibration(fitted, folder / "log.jsonl")
    with pytest.raises(UsageError, match="a recalibration is a file that"):
        package.apply_recalibration(3, folder / "log.jsonl")


def test_too_few_answers_are_refused_with_the_reason():
    with pytest.raises(DataError, match=r"no map can be fitted and tried: 50 answers, fewer than 100"):
        package.fit_recalibration(rows(50))


@pytest.mark.usefixtures("folder")
def test_pooled_confidences_are_said_in_plain_words(demur: Demur):
    done = demur("recalibrate", "fit", "log.jsonl", "--method", "isotonic", *QUICK)
    assert ": a threshold can no longer separate answers with pooled values." in done.stdout
    done = demur("recalibrate", "fit", "log.jsonl", "--method", "beta", *QUICK)
    assert "It keeps the order of answers" in done.stdout
