"""DSTC2, where it lies beside the project; everything it shows is tested on made-up data as well."""

import gzip
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import demur
from commands import Demur, runner

DATA = Path(__file__).parents[3] / "shared" / "data" / "dstc2"
TRAIN, ORIGINAL = DATA / "dstc2_train_nbest.jsonl.gz", DATA / "original"
QUICK = ("--replicates", "50")

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="no ../shared/data/dstc2 beside the project")


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Demur:
    """The command, in this process."""
    return runner(tmp_path, monkeypatch, capsys)


@pytest.fixture(scope="module")
def dialogues() -> list[bytes]:
    """The dialogues of the train part, each a line."""
    return gzip.decompress(TRAIN.read_bytes()).splitlines(keepends=True)


@pytest.fixture(scope="module")
def parts(dialogues: list[bytes], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every sixth and every twelfth dialogue of the train part."""
    folder = tmp_path_factory.mktemp("dstc2")
    for name, step in (("sixth", 6), ("twelfth", 12)):
        (folder / f"{name}.jsonl").write_bytes(b"".join(dialogues[::step]))
    return folder


@pytest.fixture
def twelfth(parts: Path) -> str:
    return str(parts / "twelfth.jsonl")


def found(inside: Demur, *arguments: str) -> dict[str, Any]:
    done = inside(*arguments, "--json", *QUICK)
    assert done.returncode == 0, done.stderr
    read: dict[str, Any] = json.loads(done.stdout)
    return read


def test_the_whole_train_part_gives_the_values_of_the_challenges_own_scorer(inside: Demur) -> None:
    document = found(inside, "nbest", str(TRAIN))
    assert document["n"] == 11_677
    values = {name: figure["value"] for name, figure in document["measures"].items()}
    assert round(values["f1"], 5) == 0.79893
    assert round(values["precision"], 5) == 0.92049
    assert round(values["recall"], 5) == 0.70573
    assert round(values["ice"], 5) == 1.86635
    assert document["clustered_by_dialogue"] is True
    parts = document["ice_parts"]
    assert values["ice"] == pytest.approx(
        parts["missing"] + parts["miscalibration"] - parts["discrimination"] + parts["uncertainty"], rel=1e-12
    )


def test_lists_written_from_it_give_the_same_values(inside: Demur, twelfth: str) -> None:
    first = found(inside, "nbest", twelfth, "--where", "acoustic_condition=0", "--write-lists", "w.jsonl.gz")
    again = found(inside, "nbest", "w.jsonl.gz")
    assert again["measures"]["ice"] == first["measures"]["ice"]
    assert again["reference_items"] == first["reference_items"]


def test_the_challenges_own_layout_is_part_of_the_whole(inside: Demur, dialogues: list[bytes], tmp_path: Path) -> None:
    """The 24 dialogues in the challenge's files are among those of the train part, and say the same."""
    folder = demur.read_nbest(ORIGINAL)
    names = set(folder.frame["dialogue"])
    lines = [line for line in dialogues if line.split(b'"', 4)[3].decode().rpartition("/")[2] in names]
    assert len(names) == len(lines) == 24
    (tmp_path / "same.jsonl").write_bytes(b"".join(lines))
    same = demur.read_nbest(tmp_path / "same.jsonl")
    assert set(same.frame["dialogue"]) == names
    ours, theirs = (demur.nbest(table, replicates=50)[0].figures for table in (folder, same))
    assert {key: figure.value for key, figure in ours.items()} == pytest.approx(
        {key: figure.value for key, figure in theirs.items()}, nan_ok=True
    )
    assert found(inside, "nbest", str(ORIGINAL), "--by", "dialogue_manager")["systems"][0]["n"] == len(folder)


def test_the_table_of_scorers_shows_what_the_paper_says(inside: Demur, twelfth: str) -> None:
    document = found(inside, "experiment", "scorers", twelfth)
    by_name = {
        part["system"]: {key: one["value"] for key, one in part["measures"].items()} for part in document["systems"]
    }
    top, others = by_name.pop("infev-tp1"), by_name.values()
    assert all(top["wser"] < other["wser"] for other in others)
    assert all(top["ice"] > other["ice"] for other in others)
    assert min(by_name, key=lambda name: by_name[name]["ice"]) == "infev"


def test_more_sentences_raise_the_wser_and_lower_the_ice_in_both_conditions(inside: Demur, twelfth: str) -> None:
    options = ("--by", "acoustic_condition", "--kept", "1,5,20")
    rows = pl.DataFrame(found(inside, "experiment", "lengths", twelfth, *options)["rows"], infer_schema_length=None)
    assert set(rows["condition"]) == {"0", "1"}
    for condition in ("0", "1"):
        part = rows.filter(pl.col("condition") == condition).sort("kept")
        series = {key: part.filter(pl.col("measure") == key)["value"].to_list() for key in ("wser", "ice", "oracle")}
        assert series["wser"] == sorted(series["wser"])
        assert series["ice"] == sorted(series["ice"], reverse=True)
        assert series["oracle"] == sorted(series["oracle"], reverse=True)


def test_reward_falls_with_the_ice_under_both_managers(inside: Demur, parts: Path) -> None:
    document = found(inside, "experiment", "reward", str(parts / "sixth.jsonl"), "--group", "dialogue_manager")
    assert {group["group"]: group["n"] for group in document["groups"]} == {"0": 122, "1": 147}
    for group in document["groups"]:
        assert group["mean"][0] > group["mean"][-1] + 5


def test_the_ice_rises_with_the_oracle_error(inside: Demur, twelfth: str) -> None:
    document = found(inside, "experiment", "oracle", twelfth)
    for group in document["groups"]:
        assert group["n"] == 135
        assert group["mean"][-1] > group["mean"][0]
