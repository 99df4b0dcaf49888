"""Every command that reads answers counts the same rows, in every format."""

import json
import tempfile
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands import Demur, run_in

FIVE = """\
input,target,prediction,confidence
hello,greet,greet,0.9
how much,price,greet,0.4
weather?,,,
lol,,,
joke,,,
"""
COLUMNS = FIVE.partition("\n")[0].split(",")

COUNTS = {
    "score": lambda told: told["systems"][0]["n"],
    "classes": lambda told: told["n"],
    "compare": lambda told: told["pairs"][0]["n"],
    "validate": lambda told: told["systems"][0]["rows"],
    "report": lambda told: told["systems"][0]["n"],
    "add": lambda told: told["runs"][0]["n"],
    "follow": lambda told: told["systems"][0]["n"],
}
"""How many rows each command counted, in its JSON."""

OPTIONS = {
    "compare": ["same.csv", "--replicates", "50"],
    "score": ["--replicates", "50"],
    "report": ["--replicates", "50"],
    "add": ["--store", "kept"],
    "follow": ["--until-idle", "0"],
}

FORMATS = ["t.jsonl", "t.csv", "t.tsv", "t.parquet", "t.arrow", "t.csv.gz", "t.jsonl.gz"]


def write(frame: pl.DataFrame, path: Path) -> None:
    """Writes a frame in the format that the name of a file asks for."""
    compression = {"compression": "gzip"} if path.name.endswith(".gz") else {}
    match path.name.removesuffix(".gz").rpartition(".")[2]:
        case "jsonl":
            frame.write_ndjson(path, **compression)
        case "csv":
            frame.write_csv(path, **compression)
        case "tsv":
            frame.write_csv(path, separator="\t")
        case "parquet":
            frame.write_parquet(path)
        case "arrow":
            frame.write_ipc(path)


def counted(folder: Path, command: str, name: str) -> int:
    done = run_in(folder, command, name, *OPTIONS.get(command, []), "--json")
    assert done.returncode == 0, done.stderr
    return COUNTS[command](json.loads(done.stdout.splitlines()[-1] if command == "follow" else done.stdout))


@pytest.mark.parametrize(
    ("command", "name"),
    [*(("score", name) for name in FORMATS), *((command, "t.csv") for command in COUNTS if command != "score")],
)
def test_inputs_rightly_withheld_count_in_every_command_and_format(tmp_path: Path, command: str, name: str) -> None:
    (tmp_path / "same.csv").write_text(FIVE)
    write(pl.read_csv(tmp_path / "same.csv"), tmp_path / name)
    assert counted(tmp_path, command, name) == 5


def test_withheld_inputs_count_in_the_rates_of_a_threshold(demur: Demur, tmp_path: Path) -> None:
    (tmp_path / "five.csv").write_text(FIVE)
    told = json.loads(demur("threshold", "five.csv", "--cost-ratio", "0.3", "--json").stdout)
    assert told["nonreturn"] == pytest.approx(4 / 5)


answers = st.sampled_from([(None, None, None), (None, "a", 0.5), ("a", "a", 0.25), ("a", None, None)])
inputs = st.none() | st.sampled_from(["", "x", "two\n\nlines", 'a "quote"', ","])


@pytest.mark.parametrize("command", COUNTS)
@settings(max_examples=6)
@given(rows=st.lists(st.tuples(inputs, answers), min_size=1, max_size=5), name=st.sampled_from(FORMATS[:3]))
def test_no_command_changes_n(command: str, rows: list[tuple[str | None, tuple[object, ...]]], name: str) -> None:
    table = [("first", "a", "a", 0.75), *((text, *answer) for text, answer in rows)]
    schema = {**dict.fromkeys(COLUMNS, pl.String), "confidence": pl.Float64}
    frame = pl.DataFrame(table, schema=schema, orient="row")
    with tempfile.TemporaryDirectory() as folder:
        frame.write_csv(Path(folder) / "same.csv")
        write(frame, Path(folder) / name)
        assert counted(Path(folder), command, name) == len(table)
