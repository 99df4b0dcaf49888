"""What `demur outcome` refuses: each in a sentence that says what to mend, with nothing half-written."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from commands import Demur
from outcome.conftest import CONF, QUICK, write
from outcome.test_commands import TABLE
from reference.outcome import Row

WRONG_REGRESSIONS = {
    "no outcome": ([], "Missing option '--outcome'"),
    "unknown outcome": (["--outcome", "gian"], 'there is no column "gian"; did you mean "gain"?'),
    "outcome of words": (["--outcome", "when"], 'row 1: when must be a number in every row; got "2020-01-01"'),
    "no candidate": (["--outcome", "gain", "--candidates", ","], "--candidates takes names of columns"),
    "unknown candidate": (["--outcome", "gain", "--candidates", "x,y"], 'candidates: there is no column "y"'),
    "candidate of words": (["--outcome", "gain", "--candidates", "who"], "row 1: who must be a number in every row"),
    "candidate of dates": (["--outcome", "gain", "--candidates", "when"], "row 1: when must be a number in every row"),
    "itself": (["--outcome", "gain", "--candidates", "gain"], "candidates: gain is the outcome itself"),
    "unknown group": (["--outcome", "gain", "--group", "whom"], 'there is no column "whom"; did you mean "who"'),
    "keep": (["--outcome", "gain", "--keep", "y"], '--keep: there is no candidate "y"'),
    "direction": (["--outcome", "gain", "--direction", "up"], "--direction"),
    "one fold": (["--outcome", "gain", "--folds", "1"], "--folds"),
    "many folds": (["--outcome", "gain", "--folds", "9"], "folds must be from 2 to the number of groups, 8; got 9"),
    "folds of groups": (["--outcome", "gain", "--group", "who", "--folds", "7"], "the number of groups, 6; got 7"),
    "level": (["--outcome", "gain", "--level", "95"], "--level must be above 0 and below 1; got 95"),
    "replicates": (["--outcome", "gain", "--replicates", "5"], "--replicates"),
    "output": (["--outcome", "gain", "-o", "r.txt"], "-o r.txt: the extension must be one of .html"),
    "gate": (["--outcome", "gain", "--fail-if", "r2 is low"], "--fail-if takes"),
    "unknown gate": (["--outcome", "gain", "--fail-if", "accuracy > 1"], '--fail-if knows no "accuracy"'),
    "verdict": (["--outcome", "gain", "--fail-if", "a is significantly worse"], 'here it takes "NAME > NUMBER"'),
}


@pytest.mark.parametrize(("arguments", "said"), WRONG_REGRESSIONS.values(), ids=WRONG_REGRESSIONS)
def test_wrong_regressions_are_refused_in_a_sentence(
    inside: Demur, tmp_path: Path, arguments: list[str], said: str
) -> None:
    write(tmp_path / "t.jsonl", TABLE)
    more = [] if "-o" in arguments else ["-o", "r.json"]
    done = inside("outcome", "regress", "t.jsonl", *arguments, *more, columns=200)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert done.stdout == ""
    assert [one.name for one in tmp_path.iterdir()] == ["t.jsonl"]


WRONG_TABLES = {
    "one row": (TABLE[:1], "a regression needs at least two rows; got 1"),
    "flat": ([{**row, "gain": 0.5} for row in TABLE], "gain is the same in every row, so there is nothing to explain"),
    "one group": ([{**row, "who": "a"} for row in TABLE], "all rows are of one group, so none can be left out"),
    "gap": ([*TABLE, {**TABLE[0], "x": None}], "row 9: x must be a number in every row; got"),
    "gap in outcome": ([*TABLE, {**TABLE[0], "gain": None}], "row 9: gain must be a number in every row"),
    "no numbers": ([{"gain": k, "who": "a"} for k in range(4)], "no other column holds numbers"),
    "saturated": (TABLE[:3], "offer fewer predictors or more rows"),
    "computed": ([{"gain": k * k, "x": 2 * k * k} for k in range(5)], "no predictor that the outcome is computed from"),
    "lists": ([{"gain": k, "x": [k]} for k in range(5)], "no other column holds numbers"),
}


@pytest.mark.parametrize(("rows", "said"), WRONG_TABLES.values(), ids=WRONG_TABLES)
def test_tables_that_cannot_be_regressed_are_refused(inside: Demur, tmp_path: Path, rows: list[Row], said: str) -> None:
    write(tmp_path / "t.jsonl", rows)
    groups = ["--group", "who"] if "who" in rows[0] else []
    done = inside("outcome", "regress", "t.jsonl", "--outcome", "gain", *QUICK, *groups, columns=200)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr


WRONG_FITS = {
    "no outcomes": (["--features", "conf"], "Missing option '--outcomes'"),
    "missing outcomes": (["--outcomes", "nowhere.csv"], "nowhere.csv does not exist"),
    "folder": (["--outcomes", "."], ". is a folder, not a file"),
    "unknown outcome": (["--outcomes", "gains.csv", "--outcome", "gain"], 'there is no column "gain" to map outcome'),
    "features": (["--outcomes", "gains.csv", "--features", "scores.fn"], 'there is no feature "scores.fn"; did you'),
    "column": (["--outcomes", "gains.csv", "--features", "aeg"], 'there is no feature "aeg"'),
    "rare": (["--outcomes", "gains.csv", "--features", "conf", "--min-per-dialogue", "99"], "there is no feature to"),
    "less than nothing": (["--outcomes", "gains.csv", "--min-per-dialogue", "-1"], "--min-per-dialogue"),
    "undefined": (["--outcomes", "gains.csv", "--undefined", "mean"], "--undefined"),
    "keep": (["--outcomes", "gains.csv", "--keep", "conf"], '--keep: there is no candidate "conf"'),
    "folds": (["--outcomes", "gains.csv", "--folds", "31"], "folds must be from 2 to the number of groups, 30; got 31"),
    "model": (["--outcomes", "gains.csv", "--model", "m.txt"], "--model m.txt: the extension must be .json"),
    "model is a folder": (["--outcomes", "gains.csv", "--model", "d.json"], "--model d.json: this is a directory"),
    "map": (["--outcomes", "gains.csv", "--map", "group=age"], 'no column is called "group" here'),
    "map outcomes": (["--outcomes", "gains.csv", "--map-outcomes", "age"], "--map-outcomes takes NAME=COLUMN"),
    "map of nothing": (
        ["--outcomes", "gains.csv", "--map-outcomes", "target=age"],
        '--map-outcomes, or map_outcomes: no column is called "target" here',
    ),
}


@pytest.mark.parametrize(("arguments", "said"), WRONG_FITS.values(), ids=WRONG_FITS)
def test_wrong_fits_are_refused_in_a_sentence_and_nothing_is_written(
    inside: Demur, files: Path, arguments: list[str], said: str
) -> None:
    (files / "d.json").mkdir()
    before = sorted(one.name for one in files.iterdir())
    more = [] if "--model" in arguments else ["--model", "m.json"]
    done = inside("outcome", "fit", "turns.jsonl", *arguments, *more, "-o", "r.html", *QUICK, columns=200)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert sorted(one.name for one in files.iterdir()) == before


WRONG_LOGS = {
    "two systems": (lambda row: {**row, "system": row["dialogue"][-1]}, "the turns are of one system at a time"),
    "no dialogue": (lambda row: {**row, "dialogue": None}, "1,200 turns are of no dialogue"),
    "other dialogues": (lambda row: {**row, "dialogue": "x" + row["dialogue"]}, "no dialogue has both turns and an"),
    "judged only": (
        lambda row: {"id": row["id"], "dialogue": row["dialogue"], "correct": True, "confidence": 1},
        "1,200 turns have no target",
    ),
}


@pytest.mark.parametrize(("change", "said"), WRONG_LOGS.values(), ids=WRONG_LOGS)
def test_logs_that_cannot_be_fitted_are_refused(
    inside: Demur, files: Path, change: Callable[[Row], Row], said: str
) -> None:
    rows = [change(json.loads(line)) for line in (files / "turns.jsonl").read_text().splitlines()]
    write(files / "turns.jsonl", rows)
    done = inside("outcome", *CONF, *QUICK, columns=200)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr


WRONG_OUTCOMES = {
    "words": ("dialogue,outcome\nd00,good\n", 'bad.csv:2: outcome must be a number; got "good"'),
    "nan": ("dialogue,outcome\nd00,nan\n", "bad.csv:2: outcome must be a finite number"),
    "twice": ("dialogue,outcome\nd00,1\nd00,2\n", 'bad.csv:3: the dialogue "d00" occurs twice, first at bad.csv:2'),
    "one": ("dialogue,outcome\nd00,1\n", "29 dialogues have turns but are not in the table"),
    "out of range": ("dialogue,pre,post\nd00,55,80\n", "bad.csv:2: pre must lie between 0 and 1; got 55.0"),
    "pre is 1": ("dialogue,pre,post\nd00,1,1\n", "no dialogue has an outcome"),
    "ambiguous": ("dialogue,outcome,user,student\nd00,1,a,b\n", "choose one, for example --map-outcomes group=user"),
}


@pytest.mark.parametrize(("text", "said"), WRONG_OUTCOMES.values(), ids=WRONG_OUTCOMES)
def test_outcomes_that_cannot_be_fitted_are_refused(inside: Demur, files: Path, text: str, said: str) -> None:
    (files / "bad.csv").write_text(text)
    done = inside("outcome", "fit", "turns.jsonl", "--outcomes", "bad.csv", *QUICK, columns=200)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr


@pytest.mark.parametrize(
    ("outcomes", "said"),
    [
        (["0.5"] * 30, "every dialogue has the same outcome, so there is nothing to explain; got 0.5"),
        (["0.5"], "a model needs at least two dialogues; got 1"),
        (["0.5", "0.7", "0.1"], "offer fewer predictors or more rows"),
    ],
)
def test_too_little_to_learn_from_is_refused(inside: Demur, files: Path, outcomes: list[str], said: str) -> None:
    rows = "".join(f"d{place:02},{value}\n" for place, value in enumerate(outcomes))
    (files / "few.csv").write_text("dialogue,outcome\n" + rows)
    done = inside("outcome", "fit", "turns.jsonl", "--outcomes", "few.csv", "--matched", *QUICK, columns=200)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr


def edited(**entries: Any) -> Callable[[str], str]:
    return lambda text: json.dumps({**json.loads(text), **entries})


WRONG_MODELS = {
    "newer": (edited(version=2), "the model is of kind 2"),
    "edited": (edited(n=99), "the model was changed after it was made"),
    "broken": (lambda text: text[:-9], "does not have the form of an outcome model"),
    "other": (lambda _: "{}", "does not have the form of an outcome model"),
}


@pytest.mark.parametrize(("edit", "said"), WRONG_MODELS.values(), ids=WRONG_MODELS)
@pytest.mark.parametrize("command", ["predict", "compare"])
def test_models_that_cannot_be_used_are_refused(
    inside: Demur, model: Path, command: str, edit: Callable[[str], str], said: str
) -> None:
    model.write_text(edit(model.read_text()))
    done = inside("outcome", command, "m.json", "turns.jsonl", "better.jsonl", columns=200)
    assert done.returncode == 2, done.stderr
    assert f"m.json: {said}" in done.stderr


WRONG_PREDICTIONS = {
    "no model": (["predict", "nowhere.json", "turns.jsonl"], "nowhere.json cannot be read: No such file"),
    "a folder": (["predict", ".", "turns.jsonl"], ". is no regular file"),
    "no file": (["predict", "m.json", "nowhere.jsonl"], "nowhere.jsonl does not exist"),
    "nothing": (["predict", "m.json"], "Missing argument"),
    "one system": (["compare", "m.json", "turns.jsonl"], "a comparison needs two systems or more"),
    "all refused": (["compare", "m.json", "majority.jsonl", "capitals.jsonl"], "majority is unlike the training data"),
    "labels": (["predict", "m.json", "other.jsonl"], "the model does not know the labels CONTRADICTORY, CORRECT"),
    "verdict": (
        ["compare", "m.json", "turns.jsonl", "better.jsonl", "--fail-if", "a is significantly worse"],
        'here it takes "NAME > NUMBER"',
    ),
    "level": (["predict", "m.json", "turns.jsonl", "--level", "2"], "--level must be above 0 and below 1"),
}


@pytest.mark.parametrize(("arguments", "said"), WRONG_PREDICTIONS.values(), ids=WRONG_PREDICTIONS)
def test_wrong_predictions_are_refused_in_a_sentence(
    inside: Demur, model: Path, arguments: list[str], said: str
) -> None:
    rows = [json.loads(line) for line in (model.parent / "majority.jsonl").read_text().splitlines()]
    write(model.parent / "capitals.jsonl", rows)
    loud = [{**row, "target": row["target"].upper(), "prediction": "CORRECT"} for row in rows]
    write(model.parent / "other.jsonl", loud)
    done = inside("outcome", *arguments, "-o", "r.json", columns=200)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert done.stdout == ""
    assert not (model.parent / "r.json").exists()
