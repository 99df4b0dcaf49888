"""What callers of DSTC2 said of their dialogues, by how the live understanding took their turns.

Everything shown here is tested on made-up data as well. The understanding explains little of how content callers were
(R2 about 0.2 in the questionnaire, 0.1 in success), and the figures below are those that came out, not a target.
"""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from commands import Demur, run_in, runner

TRAIN = Path(__file__).parents[3] / "shared" / "data" / "dstc2" / "dstc2_train_nbest.jsonl.gz"
QUESTION = "The system understood me well."
FEATURES = "rejected+recall.microaverage+recall.inform+recall.request"
RARE = ("--min-per-dialogue", "0.05")
"""Dialogues have seven turns, so no confusion occurs twice in each."""

pytestmark = pytest.mark.skipif(not TRAIN.is_file(), reason="no ../shared/data/dstc2 beside the project")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all tables, the dialogues of manager 0, and systems to try on their turns."""
    made = tmp_path_factory.mktemp("dstc2")
    for table in ("turns", "dialogues"):
        assert run_in(made, "import", "dstc2", str(TRAIN), "--table", table, "-o", f"{table}.jsonl").returncode == 0
    held = pl.read_ndjson(made / "dialogues.jsonl").filter(manager=0)
    held.write_ndjson(made / "outcomes.jsonl")
    turns = pl.read_ndjson(made / "turns.jsonl").filter(pl.col("dialogue").is_in(held["dialogue"].to_list()))
    turns.write_ndjson(made / "live.jsonl")
    sure = pl.when(pl.col("confidence") >= 0.5).then("prediction")
    turns.with_columns(prediction=sure).write_ndjson(made / "cautious.jsonl")
    turns.with_columns(prediction=pl.lit("inform"), confidence=pl.lit(1.0)).write_ndjson(made / "majority.jsonl")
    return made


@pytest.fixture(scope="module")
def content(folder: Path) -> dict[str, Any]:
    """The fit of how content callers were, its model kept as m.json."""
    done = run_in(folder, *fitting(QUESTION, FEATURES, "--model", "m.json"), "--json")
    assert done.returncode == 0, done.stderr
    read: dict[str, Any] = json.loads(done.stdout)
    return read


@pytest.fixture(scope="module")
def success(folder: Path) -> dict[str, Any]:
    """The fit of whether callers got what they wanted, rare confusions among its features, kept as rare.json."""
    done = run_in(folder, *fitting("success", f"conf+{FEATURES}", *RARE, "--model", "rare.json"), "--json")
    assert done.returncode == 0, done.stderr
    read: dict[str, Any] = json.loads(done.stdout)
    return read


@pytest.fixture
def inside(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Demur:
    """The command, in this process and that folder."""
    return runner(folder, monkeypatch, capsys)


def found(inside: Demur, *arguments: str) -> dict[str, Any]:
    done = inside(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    read: dict[str, Any] = json.loads(done.stdout)
    return read


def fitting(outcome: str, features: str, *more: str) -> tuple[str, ...]:
    options = ("--outcome", outcome, "--features", features, "--folds", "5", "--replicates", "0", *more)
    return ("outcome", "fit", "live.jsonl", "--outcomes", "outcomes.jsonl", *options)


def test_the_tables_hold_every_dialogue_and_caller(folder: Path) -> None:
    turns, dialogues = pl.read_ndjson(folder / "turns.jsonl"), pl.read_ndjson(folder / "dialogues.jsonl")
    assert (turns.height, dialogues.height, dialogues["group"].n_unique()) == (11_677, 1_612, 138)
    assert dialogues["turns"].sum() == turns.height
    assert turns["prediction"].null_count() == 2_104
    assert dialogues["success"].sum() == 1_504
    assert dialogues[QUESTION].value_counts().sort(QUESTION).rows() == [(1, 49), (3, 104), (4, 204), (5, 520), (6, 735)]


def test_content_callers_are_those_whose_turns_were_not_rejected(content: dict[str, Any]) -> None:
    assert content["grouped"] is True
    assert content["dialogues"] == 745
    assert content["coefficients"]["rejected"] < -1
    assert 0.1 < content["nested"]["r2"] <= content["in_sample"]["r2"] < 0.3


def test_success_is_explained_less_and_nested_validation_says_so(success: dict[str, Any]) -> None:
    assert success["nested"]["r2"] < success["loo"]["r2"] < success["in_sample"]["r2"] < 0.3


@pytest.mark.usefixtures("content")
def test_a_system_that_rejects_more_is_predicted_to_please_less(inside: Demur) -> None:
    both = found(inside, "outcome", "compare", "m.json", "live.jsonl", "cautious.jsonl")
    live = both["systems"][0]
    assert live["predicted"]["value"] == pytest.approx(live["naive"]["value"])
    difference = both["pairs"][0]["difference"]
    assert 0 < difference["low"] < difference["value"] < 0.5
    assert all(system["supported"] for system in both["systems"])


@pytest.mark.usefixtures("content")
def test_what_has_labels_that_the_model_has_not_met_is_refused(inside: Demur) -> None:
    done = inside("outcome", "predict", "m.json", "turns.jsonl")
    assert done.returncode == 2
    assert "the model does not know the labels" in done.stderr


@pytest.mark.usefixtures("success")
def test_the_majority_label_for_every_turn_is_refused(inside: Demur) -> None:
    done = inside("outcome", "predict", "rare.json", "majority.jsonl")
    assert done.returncode == 2
    assert "too rare in training to learn from" in done.stderr
