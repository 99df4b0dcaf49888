"""`demur outcome` as a user meets it: what it prints and writes, what it refuses, and how it says so."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from commands import Demur
from outcome.conftest import CONF, QUICK, write
from outcome.oracle import HOME, Oracle
from reference.outcome import CULPRIT, paper_turns

Report = Callable[..., dict[str, Any]]


@pytest.fixture
def found(inside: Demur) -> Report:
    """Runs `demur outcome --json` and reads what it prints, which must be strict JSON and nothing else."""

    def run(command: str, *arguments: str) -> dict[str, Any]:
        done = inside("outcome", command, *arguments, "--json", *(QUICK if command in ("fit", "regress") else ()))
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        read: dict[str, Any] = json.loads(done.stdout, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
        return read

    return run


TABLE = [
    {"gain": 0.1, "x": 1, "z": 1, "who": "a", "when": "2020-01-01", "late": True},
    {"gain": 0.5, "x": 2, "z": 2, "who": "a", "when": "2020-01-02", "late": False},
    {"gain": 0.4, "x": 3, "z": 2, "who": "b", "when": "2020-01-03", "late": True},
    {"gain": 0.9, "x": 4, "z": 1, "who": None, "when": "2020-01-04", "late": False},
    {"gain": 0.7, "x": 5, "z": 1, "who": None, "when": "2020-01-05", "late": False},
    {"gain": 0.8, "x": 6, "z": 2, "who": "c", "when": "2020-01-06", "late": True},
    {"gain": 1.1, "x": 7, "z": 2, "who": "c", "when": "2020-01-07", "late": False},
    {"gain": 0.9, "x": 8, "z": 1, "who": "d", "when": "2020-01-08", "late": True},
]


def test_a_regression_has_the_keys_that_scripts_rely_on(found: Report, tmp_path: Path) -> None:
    write(tmp_path / "t.jsonl", TABLE)
    document = found("regress", "t.jsonl", "--outcome", "gain", "--candidates", "x,z", "--direction", "backward")
    assert document["terms"] == ["x"]
    assert list(document["coefficients"]) == ["(Intercept)", "x"]
    assert {"r2", "mse"} <= document["in_sample"].keys()
    assert all({"r2", "mse", "sd"} <= document[kind].keys() for kind in ("loo", "nested"))
    assert [{"step", "aic"} <= line.keys() for line in document["trace"]] == [True, True]
    assert [line["step"] for line in document["trace"]] == ["", "- z"]
    assert document["trace"][-1]["aic"] == document["aic"]


def test_a_regression_worked_by_hand(found: Report, tmp_path: Path) -> None:
    """y = 1 2 2 4 on x = 0 1 2 3: slope 4.5/5 = .9, intercept .9, RSS .7; AIC 4 ln(.7/4) + 4."""
    write(tmp_path / "t.jsonl", [{"y": y, "x": x} for x, y in enumerate((1, 2, 2, 4))])
    document = found("regress", "t.jsonl", "--outcome", "y")
    assert document["coefficients"] == pytest.approx({"(Intercept)": 0.9, "x": 0.9})
    assert document["in_sample"] == pytest.approx({"r2": 1 - 0.7 / 4.75, "mse": 0.7 / 4})
    assert document["aic"] == pytest.approx(4 * -1.7429693 + 4)


def test_the_command_agrees_with_r(found: Report) -> None:
    oracle = Oracle("mtcars")
    said = oracle.of("both_from_full")
    names = ["--candidates", ",".join(oracle.names)]
    document = found("regress", str(HOME / "mtcars.csv"), "--outcome", oracle.said["outcome"], *names)
    assert document["terms"] == said["terms"]
    assert document["coefficients"] == pytest.approx(said["coefficients"])
    assert document["aic"] == pytest.approx(said["extractAIC"])
    assert document["loo"]["mse"] == pytest.approx(said["loo_fixed_model_mse"])


def test_candidates_are_all_numbers_unless_named(found: Report, tmp_path: Path) -> None:
    write(tmp_path / "t.jsonl", TABLE)
    assert found("regress", "t.jsonl", "--outcome", "gain")["candidates"] == ["x", "z", "late"]
    named = found("regress", "t.jsonl", "--outcome", "gain", "--candidates", "late, x")
    assert named["candidates"] == ["late", "x"]


def test_yes_and_no_are_1_and_0_as_predictor_and_as_outcome(found: Report, tmp_path: Path) -> None:
    """The means of gain are .55 where late and .8 elsewhere."""
    write(tmp_path / "t.jsonl", TABLE)
    late = found("regress", "t.jsonl", "--outcome", "gain", "--candidates", "late", "--keep", "late")
    assert late["coefficients"] == pytest.approx({"(Intercept)": 0.8, "late": -0.25})
    assert found("regress", "t.jsonl", "--outcome", "late", "--candidates", "gain")["outcome"] == "late"


def test_rows_of_no_group_are_groups_of_their_own(found: Report, tmp_path: Path) -> None:
    """a a b - - c c d: leaving out one group at a time is leaving out six."""
    write(tmp_path / "t.jsonl", TABLE)
    document = found("regress", "t.jsonl", "--outcome", "gain", "--candidates", "x", "--group", "who", "--folds", "6")
    same = found("regress", "t.jsonl", "--outcome", "gain", "--candidates", "x", "--group", "who")
    assert document["grouped"] is True
    assert document["nested"]["mse"] == pytest.approx(same["nested"]["mse"])


def test_folds_are_of_the_nested_validation_and_told(inside: Demur, found: Report, tmp_path: Path) -> None:
    write(tmp_path / "t.jsonl", TABLE)
    ask = ("regress", "t.jsonl", "--outcome", "gain", "--candidates", "x")
    few, all_rows = found(*ask, "--folds", "4"), found(*ask)
    assert few["loo"] == all_rows["loo"]
    assert few["nested"] != all_rows["nested"]
    assert "nested: the choice as well, in 4 folds" in inside("outcome", *ask, "--folds", "4", *QUICK).stderr


def test_terms_to_keep_stay_in_every_direction(found: Report, tmp_path: Path) -> None:
    write(tmp_path / "t.jsonl", TABLE)
    for direction in ("backward", "forward", "both"):
        for start in ("full", "null"):
            ask = ("--outcome", "gain", "--candidates", "x,z", "--keep", "z", "--direction", direction)
            assert "z" in found("regress", "t.jsonl", *ask, "--start", start)["terms"], (direction, start)


def test_a_fit_finds_and_prices_the_true_confusion(found: Report, files: Path) -> None:
    document = found(*CONF, "--model", "m.json")
    assert document["terms"][0] == CULPRIT
    assert document["coefficients"][CULPRIT] == pytest.approx(-0.6, abs=0.15)
    dearest = document["prices"][0]
    assert (dearest["predicted"], dearest["actual"]) == ("incomplete", "contradictory")
    assert dearest["change"] > 0
    assert document["nested"]["r2"] <= document["in_sample"]["r2"]
    assert json.loads((files / "m.json").read_text())["coefficients"] == pytest.approx(document["coefficients"])


def test_seeds_reproduce_and_shuffled_rows_change_nothing(found: Report, files: Path) -> None:
    first = found(*CONF)
    assert found(*CONF) == first
    for name in ("turns.jsonl", "gains.csv"):
        head, *lines = (files / name).read_text().splitlines(keepends=True)
        turned = [*lines[::-1], head] if name == "turns.jsonl" else [head, *lines[::-1]]
        (files / name).write_text("".join(turned))
    assert found(*CONF) == first
    other = found(*CONF, "--seed", "7")
    assert other["bootstrap"] != first["bootstrap"]
    assert other["coefficients"] == first["coefficients"]


@pytest.mark.usefixtures("files")
def test_what_becomes_of_rejected_turns_is_said_and_kept_in_the_model(found: Report, tmp_path: Path) -> None:
    for policy, told in (("counted", "lower recall"), ("left-out", "are left out")):
        document = found(*CONF, "--rejections", policy, "--model", "m.json")
        assert document["rejections"] == policy
        assert any(note.startswith("rejected turns ") and told in note for note in document["notes"])
        assert json.loads((tmp_path / "m.json").read_text())["rejections"] == policy


@pytest.mark.usefixtures("files")
def test_learners_stand_beside_the_stepwise_model(found: Report) -> None:
    pytest.importorskip("sklearn")
    document = found(*CONF, "--learners", "--folds", "3")
    learners = document["learners"]
    assert {"ols", "lasso", "tree", "net", "f-beta"} <= learners.keys()
    assert any(note.startswith("F-beta fitted to the outcome: ") for note in document["notes"])
    assert document["f_beta"]["beta"]["value"] > 0
    assert all({"r2", "mse", "sd"} <= one.keys() for one in learners.values())


def test_dialogues_without_counterpart_need_matched(inside: Demur, found: Report, files: Path) -> None:
    text = (files / "gains.csv").read_text().splitlines(keepends=True)
    (files / "gains.csv").write_text("".join([*text[:-2], "zz,0.5,30\n"]))
    done = inside("outcome", *CONF, *QUICK)
    assert done.returncode == 2
    assert (
        '2 dialogues have turns but are not in the table of outcomes ("d28", "d29"); 1 dialogue has an outcome'
        in done.stderr
    )
    document = found(*CONF, "--matched")
    assert document["dialogues"] == 28
    assert "left out: 2 dialogues without an outcome, 1 without turns" in document["notes"]


def test_columns_of_the_outcomes_are_named_by_an_option_of_their_own(found: Report, inside: Demur, files: Path) -> None:
    text = (files / "gains.csv").read_text()
    (files / "calls.csv").write_text(text.replace("dialogue,outcome", "call,gain", 1))
    ask = ("fit", "turns.jsonl", "--outcomes", "calls.csv", "--outcome", "gain", "--features", "conf")
    done = inside("outcome", *ask, *QUICK)
    assert done.returncode == 2
    assert "calls.csv needs a column dialogue; there are call, gain, age (--map-outcomes dialogue=COLUMN" in done.stderr
    document = found(*ask, "--map-outcomes", "dialogue=call")
    assert document["outcome"] == "gain"


@pytest.mark.usefixtures("model")
def test_a_prediction_stands_beside_the_naive_guess(found: Report) -> None:
    document = found("predict", "m.json", "better.jsonl")
    (one,) = document["systems"]
    assert one["system"] == "better"
    assert one["supported"] is True
    assert one["predicted"]["low"] < one["predicted"]["value"] < one["predicted"]["high"]
    assert one["naive"]["value"] < one["predicted"]["low"], "half of the culprits were put right"
    assert document["prices"]
    assert found("predict", "m.json", "turns.jsonl")["systems"][0]["predicted"]["value"] == pytest.approx(
        one["naive"]["value"]
    )


def test_the_majority_baseline_is_refused_and_the_features_named(inside: Demur, model: Path) -> None:
    done = inside("outcome", "predict", "m.json", "majority.jsonl", "-o", "p.json")
    assert done.returncode == 2
    assert "majority is unlike the training data of the model" in done.stderr
    assert "predicted-correct-actual-contradictory" in done.stderr
    assert "--extrapolate predicts all the same" in done.stderr
    assert done.stdout == ""
    assert not (model.parent / "p.json").exists()


def test_extrapolation_is_a_warning_in_every_output(inside: Demur, found: Report, model: Path) -> None:
    document = found("predict", "m.json", "majority.jsonl", "--extrapolate")
    assert document["systems"][0]["extrapolated"] is True
    assert any(text.startswith("majority: extrapolated, ") for text in document["warnings"])
    done = inside("outcome", "predict", "m.json", "majority.jsonl", "--extrapolate", "-o", "p.md")
    assert "warning: majority: extrapolated, " in done.stderr
    assert "**Warning:** majority: extrapolated, " in (model.parent / "p.md").read_text()


@pytest.mark.usefixtures("model")
def test_a_comparison_leaves_out_who_cannot_be_judged_and_says_why(found: Report) -> None:
    document = found("compare", "m.json", "turns.jsonl", "better.jsonl", "majority.jsonl")
    (pair,) = document["pairs"]
    assert (pair["a"], pair["b"]) == ("turns", "better")
    assert pair["difference"]["high"] < 0
    by_name = {one["system"]: one for one in document["systems"]}
    assert by_name["majority"]["predicted"]["value"] is None
    assert "unlike the training data" in by_name["majority"]["predicted"]["why"]
    assert "prices" not in document


@pytest.mark.usefixtures("model")
def test_pooled_takes_all_turns_together(found: Report) -> None:
    apart, together = (found("predict", "m.json", "turns.jsonl", *more)["systems"][0] for more in ((), ("--pooled",)))
    assert (apart["pooled"], apart["dialogues"], together["pooled"]) == (False, 30, True)
    assert apart["features"] != together["features"]


def test_the_papers_formula_from_a_file_written_by_hand(found: Report, tmp_path: Path) -> None:
    write(tmp_path / "beetle.jsonl", paper_turns())
    weights = {"(Intercept)": 0.74, "predicted-pc_incomplete-actual-contradictory": -0.56}
    document = {"format": "demur outcome model", "version": 1, "outcome": "gain", "coefficients": weights}
    (tmp_path / "conf.json").write_text(json.dumps(document))
    one = found("predict", "conf.json", "beetle.jsonl")
    assert one["systems"][0]["predicted"]["value"] == pytest.approx(0.74 - 0.56 * 200 / 858)
    assert one["formula"] == "gain = 0.74 - 0.56 * predicted-pc_incomplete-actual-contradictory"


COMMANDS = {
    "fit": (*CONF, *QUICK),
    "regress": ("regress", "gains.csv", "--outcome", "outcome", *QUICK),
    "predict": ("predict", "m.json", "better.jsonl"),
    "compare": ("compare", "m.json", "turns.jsonl", "better.jsonl", "majority.jsonl"),
}
STARTS = {
    ".html": b"<!doctype html>",
    ".svg": b"<svg",
    ".md": b"## ",
    ".parquet": b"PAR1",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_format_is_written_and_quiet_is_only_the_verdict(inside: Demur, model: Path, command: str) -> None:
    outputs = [f"r{suffix}" for suffix in (*STARTS, ".csv")]
    done = inside("outcome", *COMMANDS[command], *(part for name in outputs for part in ("-o", name)))
    assert done.returncode == 0, done.stderr
    for suffix, start in STARTS.items():
        assert (model.parent / f"r{suffix}").read_bytes().lower().startswith(start.lower()), suffix
    frames = pl.read_csv(model.parent / "r.csv"), pl.read_parquet(model.parent / "r.parquet")
    assert frames[0].columns == frames[1].columns
    assert frames[0].height == frames[1].height > 0
    assert all(f"wrote {name}" in done.stderr for name in outputs)
    quiet = inside("outcome", *COMMANDS[command], "--quiet")
    assert quiet.returncode == 0
    assert quiet.stderr == ""
    assert quiet.stdout
    assert done.stdout.startswith(quiet.stdout)
    assert len(done.stdout) > len(quiet.stdout)


GATES = {
    "in-sample": ("regress", "in_sample.r2 < 1", 1),
    "nested": ("fit", "nested.r2 < 0.5", 0),
    "predicted": ("predict", "predicted < 0.1", 0),
    "difference": ("compare", "difference < 0", 1),
    "undefined": ("compare", "predicted < 0", 1),
}


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize(("command", "gate", "code"), GATES.values(), ids=GATES)
def test_gates_hold_and_eighty_columns_are_enough(inside: Demur, command: str, gate: str, code: int) -> None:
    done = inside("outcome", *COMMANDS[command], "--fail-if", gate, columns=80)
    assert done.returncode == code, done.stderr
    assert ("gate: " in done.stderr) == bool(code)
    table = done.stdout.split("\n\n", 1)[1]
    assert max(map(len, table.splitlines())) <= 80
    assert "…" not in table or command == "fit"


@pytest.mark.parametrize("command", ["predict", "compare"])
def test_dropped_turns_are_counted_in_every_output(inside: Demur, found: Report, model: Path, command: str) -> None:
    rows = [json.loads(line) for line in (model.parent / "better.jsonl").read_text().splitlines()]
    rows[5]["target"] = rows[9]["prediction"] = "strange"
    write(model.parent / "foreign.jsonl", rows)
    others = ["turns.jsonl"] if command == "compare" else []
    done = inside("outcome", command, "m.json", "foreign.jsonl", *others, columns=300)
    assert done.returncode == 2
    said = f"2 of {len(rows):,} turns"
    assert f"the labels strange of foreign: {said} have one of them" in done.stderr
    assert "--unknown-labels drop leaves these turns out" in done.stderr
    ask = [command, "m.json", "foreign.jsonl", *others, "--unknown-labels", "drop"]
    document = found(*ask)
    left = {"labels": ["strange"], "turns": 2, "of": len(rows), "dialogues": 0}
    assert document["systems"][0]["left_out"] == left
    assert any(text.startswith(f"foreign: {said} are left out") for text in document["warnings"])
    assert any(f"predicted from {len(rows) - 2:,} of {len(rows):,} turns" in text for text in document["notes"])
    shown = inside("outcome", *ask, columns=300)
    assert f"{said} are left out" in shown.stdout
