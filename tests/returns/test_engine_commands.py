"""The commands on a folder of Parquet parts, counted by an engine, as a user runs them."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from commands import Demur
from demur.errors import UsageError
from demur.returns import counting
from demur.returns.counting import Counting
from demur.returns.verify import sample_log
from engines.cluster import Cluster, why_not

Document = dict[str, Any]
QUICK = ("--replicates", "50")


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logs with dialogues (`talk`) and without (`lake`), each whole in a file and in parts in a folder."""
    folder = tmp_path_factory.mktemp("logs")
    rows = sample_log(1500, seed=7).drop("weight")
    for name, log in (("talk", rows), ("lake", rows.drop("dialogue"))):
        (folder / name).mkdir()
        log.write_parquet(folder / f"{name}.parquet")
        for place, part in enumerate(log.iter_slices(500)):
            part.write_parquet(folder / name / f"{place}.parquet")
    return folder


def document(demur: Demur, *arguments: object, **options: Any) -> Document:
    """The JSON of a command that has nothing else to say, on either stream."""
    done = demur(*map(str, arguments), "--json", **options)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def without_telling(found: Document) -> Document:
    return {name: value for name, value in found.items() if name not in ("notes", "warnings")}


def values_of(found: Any) -> Any:
    """What a document says, but for the ends of intervals."""
    if isinstance(found, dict):
        return {name: values_of(value) for name, value in found.items() if name not in ("low", "high")}
    return found


def measured(found: Document) -> list[tuple[str, str | None, Document]]:
    return [(one["system"], one.get("slice"), one["measures"]) for one in found["systems"]]


def test_a_folder_is_scored_as_the_whole_file_is_in_memory(demur: Demur, logs: Path) -> None:
    expected = document(demur, "score", logs / "lake.parquet", "--engine", "memory", "--by", "domain", *QUICK)
    for engine, title in (("polars", "Polars"), ("duckdb", "DuckDB"), ("auto", "Polars")):
        found = document(demur, "score", logs / "lake", "--engine", engine, "--by", "domain", *QUICK)
        assert measured(found) == measured(expected)
        assert found["notes"][0] == f"3 parts read as one log, counted by {title}"
        assert found["warnings"] == expected["warnings"]


def test_dialogues_change_no_value(demur: Demur, logs: Path) -> None:
    (whole,) = document(demur, "score", logs / "talk.parquet", "--engine", "memory", *QUICK)["systems"]
    for engine in ("polars", "duckdb"):
        (found,) = document(demur, "score", logs / "talk", "--engine", engine, *QUICK)["systems"]
        assert values_of(found["measures"]) == values_of(whole["measures"])


@pytest.mark.parametrize(
    "asked",
    [
        ("--max-error", "0.1", "--delta", "0.05"),
        ("--max-error", "0.3", "--delta", "0.05", "--by-group", "domain"),
        ("--max-risk", "0.3", "--delta", "0.05", "--ties", "randomise"),
        ("--cost-ratio", "0.4"),
    ],
)
def test_a_threshold_is_that_of_memory(demur: Demur, logs: Path, asked: tuple[str, ...]) -> None:
    found = document(demur, "threshold", logs / "lake", *asked, "--engine", "duckdb")
    expected = document(demur, "threshold", logs / "lake.parquet", *asked, "--engine", "memory")
    assert without_telling(found) == without_telling(expected)


def test_classes_are_those_of_memory_and_dialogues_change_no_value(demur: Demur, logs: Path) -> None:
    for name, engine in (("lake", "duckdb"), ("talk", "polars")):
        found, expected = (
            without_telling(document(demur, "classes", *asked, *QUICK))
            for asked in ((logs / name, "--engine", engine), (logs / f"{name}.parquet", "--engine", "memory"))
        )
        if name == "lake":
            assert found == expected
        found["intervals"], expected["intervals"] = ({}, {})
        assert found == expected


def test_sweeps_of_parts_merge_to_the_whole(demur: Demur, logs: Path) -> None:
    some = (logs / "lake" / "0.parquet", logs / "lake" / "2.parquet")
    document(demur, "score", *some, "--engine", "duckdb", "-o", "some.sweep", *QUICK)
    rest = (logs / "lake" / "1.parquet", "--engine", "polars", "--name", "lake")
    document(demur, "score", *rest, "-o", "rest.sweep", *QUICK)
    merged = document(demur, "merge", "some.sweep", "rest.sweep", "--curve", *QUICK)
    assert merged["systems"] == document(demur, "score", logs / "lake", "--curve", *QUICK)["systems"]
    assert merged["notes"][0] == "2 sweeps of 3 logs merged"


def test_confidences_that_were_joined_are_told_with_a_bound(demur: Demur, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    confidence = rng.random(40_000)
    rows = pl.DataFrame({"confidence": confidence, "correct": rng.random(40_000) < confidence})
    rows.write_parquet(tmp_path / "run.parquet")
    asked = ("score", "run.parquet", "--engine", "duckdb", "--exact-up-to", "16", "--replicates", "50")
    (joined,) = (one["joined"] for one in document(demur, *asked)["systems"])
    assert 1_000 < joined["cutoffs"] < 40_000
    assert 0 < joined["y_within"] <= joined["x_within"] <= 1e-4
    assert 0 < joined["resolution"] <= 2**-20
    done = demur(*asked)
    assert done.returncode == 0
    shown = f"run: confidences up to {joined['resolution']:.2g} apart were joined; at its {joined['cutoffs']:,} cutoffs"
    assert shown in done.stdout + done.stderr
    assert "joined" not in document(demur, *asked[:4], *asked[-2:])["systems"][0]


def test_a_part_that_is_there_twice_is_found_when_asked_for(demur: Demur, logs: Path, tmp_path: Path) -> None:
    shutil.copytree(logs / "lake", tmp_path / "lake")
    shutil.copy(tmp_path / "lake" / "1.parquet", tmp_path / "lake" / "one.parquet")
    unasked = document(demur, "score", "lake", "--replicates", "50")
    assert unasked["systems"][0]["n"] == 2000
    assert any(note.startswith("ids were not checked for repeats; --check-ids") for note in unasked["notes"])
    done = demur("score", "lake", "--check-ids")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith('error: lake (4 parts): the id "q')
    assert "occurs 2 times (is a part of the log there twice?" in done.stderr


def test_quiet_leaves_the_verdict_alone(demur: Demur, logs: Path) -> None:
    done = demur("score", str(logs / "lake"), "--engine", "duckdb", "--quiet", *QUICK)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("lake: when it returns every answer it has, ")
    assert "Measures" not in done.stdout


WRONG = {
    "a master for another engine": (
        ("score", "lake", "--engine", "polars", "--spark-master", "spark://127.0.0.1:1"),
        "--spark-master goes with --engine spark",
    ),
    "lines for an engine": (
        ("score", "run.jsonl", "--engine", "duckdb"),
        "run.jsonl is not Parquet, which engines read (leave out --engine to read it in memory, or convert it",
    ),
    "a folder without Parquet": (
        ("score", "."),
        ". holds no .parquet file (it holds run.jsonl; './*.jsonl' reads files as systems)",
    ),
    "a master that does not answer": (
        ("score", "lake", "--engine", "spark", "--spark-master", "spark://127.0.0.1:1"),
        "--spark-master spark://127.0.0.1:1 does not answer (127.0.0.1:1: Connection refused); is it running?",
    ),
    "standard input for an engine": (
        ("classes", "-", "--engine", "polars"),
        "--engine reads files, not standard input: leave it out, or save the log as Parquet",
    ),
}


@pytest.mark.parametrize("fault", WRONG)
def test_what_cannot_be_asked_for_is_told_in_one_line(
    demur: Demur, apart: Demur, logs: Path, tmp_path: Path, fault: str
) -> None:
    arguments, message = WRONG[fault]
    (tmp_path / "run.jsonl").write_text('{"target": "a", "prediction": "a", "confidence": 0.5}\n')
    if "does not answer" in message and why_not():
        pytest.skip(str(why_not()))
    run = apart if "does not answer" in message else demur  # other tests of this process may have a Spark session
    done = run(*(str(logs / "lake") if argument == "lake" else argument for argument in arguments))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {message}")
    assert done.stderr.count("\n") == 1


def test_many_rows_in_several_files_are_not_taken_for_one_system_unasked(
    logs: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(counting, "MOST_IN_MEMORY", 1000)
    files = [str(logs / "lake.parquet"), str(logs / "talk.parquet")]
    with pytest.raises(UsageError, match="2 files of 3,000 rows in all, without a column system: say `engine` polars"):
        counting.engine_for(files, Counting())
    assert counting.engine_for(files[:1], Counting()) == "polars"
    assert counting.engine_for(files, Counting(engine="duckdb")) == "duckdb"
    assert counting.engine_for(files, Counting(engine="memory")) is None
    for name in ("a", "b"):
        pl.read_parquet(files[0]).with_columns(model=pl.lit(name)).write_parquet(tmp_path / f"{name}.parquet")
    assert counting.engine_for([str(tmp_path / "*.parquet")], Counting()) == "polars"
    monkeypatch.setattr(counting, "MOST_IN_MEMORY", 10_000)
    assert counting.engine_for(files, Counting()) is None


def test_a_folder_is_scored_on_a_cluster_and_by_spark_on_this_machine(
    apart: Demur, demur: Demur, logs: Path, cluster: Cluster, spark: Any
) -> None:
    expected = document(demur, "score", logs / "lake.parquet", "--engine", "memory", *QUICK)
    asked = ("score", logs / "lake", "--engine", "spark", *QUICK)
    for found in (
        document(demur, *asked, "--spark-master", spark.sparkContext.master),
        document(apart, *asked, env=cluster.environment()),
    ):
        assert measured(found) == measured(expected)
        assert found["notes"][0] == "3 parts read as one log, counted by Spark"
