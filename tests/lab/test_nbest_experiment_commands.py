"""`demur experiment`: the paper's table and figures on the bundled study, and on files of a user's own."""

import gzip
import json
import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from commands import Demur, runner
from demur.lab import nbest_experiments
from demur.lab.corpora import restaurant

QUICK = ("--replicates", "50")
FOODS = ("thai", "indian", "chinese", "italian")


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Demur:
    """The command, in this process."""
    return runner(tmp_path, monkeypatch, capsys)


@pytest.fixture(scope="module")
def tenth(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every tenth dialogue of the bundled study."""
    folder = tmp_path_factory.mktemp("study")
    study = restaurant()
    kept = study.turns.filter(pl.col("dialogue").is_in(study.dialogues["dialogue"].gather_every(10).implode()))
    with gzip.open(folder / "turns.jsonl.gz", "wb", compresslevel=1) as file:
        kept.write_ndjson(file)
    return folder


@pytest.fixture
def small_study(tenth: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nbest_experiments, "restaurant_folder", lambda: tenth)


def found(inside: Demur, *arguments: str) -> dict[str, Any]:
    done = inside("experiment", *arguments, "--json", *QUICK)
    assert done.returncode == 0, done.stderr
    read: dict[str, Any] = json.loads(done.stdout, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    return read


def values(part: dict[str, Any]) -> dict[str, float]:
    return {name: figure["value"] for name, figure in part["measures"].items()}


def trial(path: Path, n: int = 60, **others: Any) -> Path:
    """Utterances as heard, five to a dialogue; the right sentence is the first, the second, or not there."""
    rng = random.Random(0)
    rows = []
    for k in range(n):
        meant = rng.choice(FOODS)
        heard = rng.sample(FOODS, 3)
        dialogue = f"d{k // 5}"
        rows.append(
            {
                "id": f"{dialogue}/{k % 5}",
                "dialogue": dialogue,
                "noise": ("low", "high")[k // 5 % 2],
                "reference": f"inform(food={meant})",
                "hypotheses": [{"act": f"inform(food={heard[0]})", "confidence": 0.6}],
                "asr": [{"text": f"{food} food", "logprob": -1.0 - place} for place, food in enumerate(heard)],
                **{name: of(k // 5) for name, of in others.items()},
            }
        )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.usefixtures("small_study")
def test_the_table_of_scorers_bears_out_the_paper(inside: Demur, tmp_path: Path) -> None:
    """Keeping only the best act is best by WSER and worst by ICE; the oracle is the same for all."""
    document = found(inside, "scorers", "-o", "t.svg", "-o", "t.csv", "-o", "t.md")
    by_name = {part["system"]: values(part) for part in document["systems"]}
    assert list(by_name) == ["const", "avgword", "infev", "infev-tp1"]
    best, others = by_name["infev-tp1"], [by_name[name] for name in ("const", "avgword", "infev")]
    assert all(best["wser"] < other["wser"] for other in others)
    assert all(best["ice"] > other["ice"] for other in others)
    assert len({other["oracle"] for other in (best, *others)}) == 1
    assert best["ser"] == by_name["infev"]["ser"] == best["wser"]
    assert any("bundled study" in note for note in document["notes"])
    assert (tmp_path / "t.svg").read_text().startswith("<svg")
    table = pl.read_csv(tmp_path / "t.csv")
    assert table.filter(scorer="infev", measure="ice")["value"].item() == pytest.approx(by_name["infev"]["ice"])
    assert "WSER is lowest for infev-tp1" in (tmp_path / "t.md").read_text()


@pytest.mark.usefixtures("small_study")
def test_more_sentences_raise_the_wser_and_lower_ice_and_oracle_at_every_noise(inside: Demur, tmp_path: Path) -> None:
    document = found(inside, "lengths", "--kept", "20,1,5,5", "-o", "f.svg")
    rows = pl.DataFrame(document["rows"], infer_schema_length=None)
    assert document["by"] == "noise"
    assert rows["condition"].unique(maintain_order=True).to_list() == ["WER 11 %", "WER 26 %", "WER 39 %"]
    for condition in rows["condition"].unique():
        part = rows.filter(pl.col("condition") == condition).sort("kept")
        series = {name: part.filter(measure=name)["value"].to_list() for name in ("wser", "ice", "oracle")}
        assert part["kept"].unique().sort().to_list() == [1, 5, 20]
        assert series["wser"] == sorted(series["wser"])
        assert series["ice"] == sorted(series["ice"], reverse=True)
        assert series["oracle"] == sorted(series["oracle"], reverse=True)
    assert (tmp_path / "f.svg").read_text().startswith("<svg")


def test_reward_falls_with_the_ice_and_slower_for_the_manager_that_uses_lists(inside: Demur, tmp_path: Path) -> None:
    document = found(inside, "reward", "-o", "f.svg")
    assert (document["x"], document["y"], document["unit"], document["left_out"]) == ("ice", "reward", "dialogue", 0)
    curves = {group["group"]: group for group in document["groups"]}
    assert set(curves) == {"belief", "first-best"}
    assert sum(curve["n"] for curve in curves.values()) == document["dialogues"] == 650
    for curve in curves.values():
        assert curve["mean"][0] > curve["mean"][-1]
    at_three = {name: _at(curve, 3.0) for name, curve in curves.items()}
    assert at_three["belief"] > at_three["first-best"]
    assert not any("replicates" in note for note in document["notes"])
    assert "manager belief" in (tmp_path / "f.svg").read_text()


def _at(curve: dict[str, Any], x: float) -> float:
    return min(zip(curve["x"], curve["mean"], strict=True), key=lambda point: abs(point[0] - x))[1]


@pytest.mark.usefixtures("small_study")
def test_the_ice_rises_with_the_oracle_error_whatever_the_scorer(inside: Demur, tmp_path: Path) -> None:
    document = found(inside, "oracle", "-o", "f.svg")
    assert [group["group"] for group in document["groups"]] == ["infev", "avgword"]
    for group in document["groups"]:
        assert group["mean"][-1] > group["mean"][0]
    assert (tmp_path / "f.svg").read_text().startswith("<svg")


def test_own_files_are_used_with_their_columns(inside: Demur, tmp_path: Path) -> None:
    trial(tmp_path / "mine.jsonl")
    scorers = found(inside, "scorers", "mine.jsonl", "--scorers", "const,infev", "--sentences", "2")
    assert [(part["system"], part["n"]) for part in scorers["systems"]] == [("const", 60), ("infev", 60)]
    assert not any("bundled study" in note for note in scorers["notes"])
    assert any("bundled grammar of a restaurant guide" in note for note in scorers["notes"])
    # of two sentences that say different foods each has half the mass: food=x at .5, inform at 1
    assert values(scorers["systems"][0])["weighted_precision"] * 2 == pytest.approx(
        1 + _share_heard(tmp_path / "mine.jsonl", 2) / 2, rel=1e-9
    )
    lengths = found(inside, "lengths", "mine.jsonl", "--by", "noise", "--kept", "1,3", "--scorer", "const")
    assert {row["condition"] for row in lengths["rows"]} == {"low", "high"}
    whole = found(inside, "lengths", "mine.jsonl", "--kept", "1,3", "--where", "noise=low")
    assert {row["condition"] for row in whole["rows"]} == {"all"}
    oracle = found(inside, "oracle", "mine.jsonl", "--scorers", "const")
    assert (oracle["dialogues"], oracle["unit"]) == (12, "dialogue")


def _share_heard(path: Path, most: int) -> float:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    told = [any(heard["text"].split()[0] in row["reference"] for heard in row["asr"][:most]) for row in rows]
    return sum(told) / len(told)


def test_notes_tell_which_columns_were_guessed(inside: Demur, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in trial(tmp_path / "a.jsonl").read_text().splitlines()]
    named = [{"session" if key == "dialogue" else key: value for key, value in row.items()} for row in rows]
    (tmp_path / "b.jsonl").write_text("".join(json.dumps(row) + "\n" for row in named))
    for experiment in ("scorers", "oracle"):
        notes = found(inside, experiment, "b.jsonl", "--scorers", "const")["notes"]
        assert any("dialogue <- " in note and "session" in note for note in notes)
    assert any("session" in note for note in found(inside, "lengths", "b.jsonl", "--kept", "1")["notes"])


def test_dialogues_come_from_a_table_or_from_the_lists(inside: Demur, tmp_path: Path) -> None:
    """20 for success less 1 a turn."""
    rows = {"success": lambda d: d % 3 > 0, "turns": lambda d: 3 + d % 4, "manager": lambda d: "xy"[d % 2]}
    trial(tmp_path / "full.jsonl", **rows)
    trial(tmp_path / "bare.jsonl")
    dialogues = [{"dialogue": f"d{d}", **{name: of(d) for name, of in rows.items()}} for d in range(12)]
    pl.DataFrame(dialogues).write_csv(tmp_path / "d.csv")
    told = pl.DataFrame(dialogues).with_columns(success=pl.when("success").then(pl.lit("yes")).otherwise(pl.lit("no")))
    told.write_csv(tmp_path / "words.csv")
    inner = found(inside, "reward", "full.jsonl", "--group", "manager")
    assert {group["group"]: group["n"] for group in inner["groups"]} == {"x": 6, "y": 6}
    for table in ("d.csv", "words.csv"):
        assert (
            found(inside, "reward", "bare.jsonl", "--dialogues", table, "--group", "manager")["groups"]
            == inner["groups"]
        )
    assert [group["group"] for group in found(inside, "reward", "full.jsonl")["groups"]] == ["all"]
    other = found(inside, "reward", "full.jsonl", "--measure", "oracle", "--group", "system")
    assert (other["x"], [group["group"] for group in other["groups"]]) == ("oracle", ["full"])
    assert not any("bundled" in note for note in other["notes"])


def test_a_dialogue_whose_success_is_not_known_is_left_out_and_counted(inside: Demur, tmp_path: Path) -> None:
    trial(tmp_path / "full.jsonl", success=lambda d: None if d == 3 else d % 2 == 0, turns=lambda d: d)
    document = found(inside, "reward", "full.jsonl")
    assert (document["dialogues"], document["left_out"]) == (11, 1)
    assert "1 dialogue left out: ICE or reward undefined" in document["notes"]


def test_lists_without_dialogues_are_utterances_in_figure_3(inside: Demur, tmp_path: Path) -> None:
    trial(tmp_path / "a.jsonl", dialogue=lambda _: None)
    assert found(inside, "oracle", "a.jsonl", "--scorers", "const")["unit"] == "utterance"
    shown = inside("experiment", "oracle", "a.jsonl", "--scorers", "const", "-o", "f.svg")
    assert shown.stdout.startswith("const (60 utterances): ICE rises from")
    assert "ICE of the utterance's lists" in (tmp_path / "f.svg").read_text()


def test_one_length_says_nothing_of_more(inside: Demur, tmp_path: Path) -> None:
    trial(tmp_path / "a.jsonl")
    shown = inside("experiment", "lengths", "a.jsonl", "--kept", "2", *QUICK, "-o", "f.svg")
    assert shown.returncode == 0, shown.stderr
    assert "gets" not in shown.stdout


REFUSED = {
    "scorer": (["scorers", "a.jsonl", "--scorers", "const,infef"], 'there is no scorer "infef"'),
    "no scorer": (["scorers", "a.jsonl", "--scorers", ","], "--scorers takes names separated by commas"),
    "scorer of lengths": (["lengths", "a.jsonl", "--scorer", "x"], 'there is no scorer "x"'),
    "words": (["scorers", "a.jsonl"], 'utterance "d0/0": sentence "'),
    "kept": (
        ["lengths", "a.jsonl", "--kept", "1,many"],
        "--kept takes whole numbers from 1 separated by commas, such as 1,5,10",
    ),
    "kept 0": (
        ["lengths", "a.jsonl", "--kept", "0,1"],
        "--kept takes whole numbers from 1 separated by commas",
    ),
    "by": (["lengths", "a.jsonl", "--by", "nosie"], 'a.jsonl: there is no column "nosie"; did you mean "noise"?'),
    "grammar and parser": (["oracle", "a.jsonl", "--grammar", "g.toml", "--parser", "cat"], "not by both"),
    "nothing heard": (["scorers", "plain.jsonl"], "plain.jsonl: there is no column asr"),
    "measure": (["reward", "a.jsonl", "--measure", "roc_auc"], "--measure takes one of ser, wser, oracle"),
    "no column of noise": (["conditions", "a.jsonl"], "--by names the column of noise; there are noise"),
    "no success": (["reward", "a.jsonl"], "error: the lists have no column success and turns; there are noise"),
    "what to do": (["reward", "a.jsonl"], "--dialogues names a table with dialogue, success and turns"),
    "table": (["reward", "a.jsonl", "--dialogues", "nowhere.csv"], "nowhere.csv does not exist"),
    "no turns": (["reward", "a.jsonl", "--dialogues", "short.csv"], "the table of dialogues has no column turns"),
    "group": (["reward", "a.jsonl", "--dialogues", "d.csv", "--group", "m"], "the table of dialogues has no column m"),
    "success": (
        ["reward", "a.jsonl", "--dialogues", "good.csv"],
        'dialogue "d0": success must be true or false; got "good"',
    ),
    "turns": (["reward", "a.jsonl", "--dialogues", "many.csv"], 'dialogue "d0": turns must be a number; got "many"'),
    "twice": (["reward", "a.jsonl", "--dialogues", "twice.csv"], 'the dialogue "d0" is there twice'),
    "others": (
        ["reward", "a.jsonl", "--dialogues", "others.csv"],
        "no dialogue of the lists is in the table of dialogues",
    ),
    "no dialogues": (["reward", "none.jsonl", "--dialogues", "d.csv"], "the lists name no dialogues"),
    "two systems": (["reward", "a.jsonl", "b.jsonl", "--dialogues", "d.csv"], "in the lists of several systems: a, b"),
    "varying": (["reward", "vary.jsonl", "--group", "id"], "must be the same in all utterances of a dialogue"),
    "bundled group": (["reward", "--group", "nothing"], "the table of dialogues has no column nothing"),
    "output": (["oracle", "a.jsonl", "-o", "f.txt"], "-o f.txt: the extension must be one of"),
    "no experiment": (["plot"], "No such command 'plot'"),
}


@pytest.mark.usefixtures("small_study")
@pytest.mark.parametrize(("arguments", "said"), REFUSED.values(), ids=REFUSED)
def test_wrong_use_is_refused_in_a_sentence_and_nothing_is_written(
    inside: Demur, tmp_path: Path, arguments: list[str], said: str
) -> None:
    trial(tmp_path / "a.jsonl")
    trial(tmp_path / "b.jsonl")
    trial(tmp_path / "none.jsonl", dialogue=lambda _: None)
    trial(tmp_path / "vary.jsonl", success=lambda d: d > 3, turns=lambda d: d)
    (tmp_path / "plain.jsonl").write_text('{"id": 1, "reference": "bye()", "hypotheses": []}\n')
    tables = {
        "d": "dialogue,success,turns\nd0,true,3\nd1,false,4\n",
        "short": "dialogue,success\nd0,true\n",
        "good": "dialogue,success,turns\nd0,good,3\n",
        "many": "dialogue,success,turns\nd0,true,many\n",
        "twice": "dialogue,success,turns\nd0,true,3\nd0,true,3\n",
        "others": "dialogue,success,turns\ne0,true,3\n",
    }
    for name, text in tables.items():
        (tmp_path / f"{name}.csv").write_text(text)
    before = {path.name for path in tmp_path.iterdir()}
    more = [] if "-o" in arguments else ["-o", "f.svg"]
    done = inside("experiment", *arguments, *(more if arguments != ["plot"] else []), columns=200)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == before
