"""A study with its outcomes, and the command in the folder in which it lies."""

import csv
import json
from pathlib import Path
from shutil import copytree

import pytest

from commands import Demur, run_in, runner
from reference.outcome import Row, study

QUICK = ("--replicates", "50")
FIT = ("fit", "turns.jsonl", "--outcomes", "gains.csv")
CONF = (*FIT, "--features", "conf")


def write(path: Path, rows: list[Row]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return path


def half_right(rows: list[Row]) -> list[Row]:
    """The rows with every other culprit put right."""
    wrong = [row for row in rows if (row["target"], row["prediction"]) == ("contradictory", "incomplete")]
    right = {row["id"] for row in wrong[::2]}
    return [{**row, "prediction": row["target"]} if row["id"] in right else row for row in rows]


@pytest.fixture(scope="session")
def study_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study with its outcomes, a model of its confusions, and two systems that were never tried."""
    folder = tmp_path_factory.mktemp("study")
    turns, outcomes = study(30, turns=40)
    write(folder / "turns.jsonl", turns)
    with (folder / "gains.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(outcomes[0]))
        writer.writeheader()
        writer.writerows(outcomes)
    write(folder / "better.jsonl", half_right(turns))
    write(folder / "majority.jsonl", [{**row, "prediction": "correct"} for row in turns])
    assert run_in(folder, "outcome", *CONF, "--model", "m.json", "--quiet", *QUICK).returncode == 0
    return folder


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Demur:
    """The command, in this process."""
    return runner(tmp_path, monkeypatch, capsys)


@pytest.fixture
def model(tmp_path: Path, study_folder: Path) -> Path:
    """The study with a model of its confusions, m.json, in the folder in which the command runs."""
    return copytree(study_folder, tmp_path, dirs_exist_ok=True) / "m.json"


@pytest.fixture
def files(model: Path) -> Path:
    """The study alone, in the folder in which the command runs."""
    model.unlink()
    return model.parent
