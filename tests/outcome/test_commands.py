"""`demur outcome` as a user meets it: what it prints and writes, what it refuses, and how it says so."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from commands import Demur, runner
from outcome.oracle import HOME, TABLES, WAYS, Oracle
from reference.outcome import CULPRIT, LABELS, TABLE_1, Row, paper_turns, study

QUICK = ("--replicates", "50")

Found = Callable[..., dict[str, Any]]


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Demur:
    """The command, in this process."""
    return runner(tmp_path, monkeypatch, capsys)


@pytest.fixture
def found(inside: Demur) -> Found:
    """Runs `demur outcome --json` and reads what it prints, which must be strict JSON and nothing else."""

    def run(command: str, *arguments: str) -> dict[str, Any]:
        done = inside("outcome", command, *arguments, "--json", *QUICK)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        read: dict[str, Any] = json.loads(done.stdout, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
        return read

    return run


def write(path: Path, rows: list[Row]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return path


def write_csv(path: Path, rows: list[Row]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def mended(rows: list[Row]) -> list[Row]:
    """As the rows, but every other culprit is put right."""
    wrong = [row for row in rows if (row["target"], row["prediction"]) == ("contradictory", "incomplete")]
    right = {row["id"] for row in wrong[::2]}
    return [{**row, "prediction": row["target"]} if row["id"] in right else row for row in rows]


def study_files(folder: Path) -> Path:
    """Writes a study with its outcomes, and two systems that were never tried."""
    turns, outcomes = study(30, turns=40)
    write(folder / "turns.jsonl", turns)
    write_csv(folder / "gains.csv", outcomes)
    write(folder / "better.jsonl", mended(turns))
    write(folder / "majority.jsonl", [{**row, "prediction": "correct"} for row in turns])
    return folder


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """The study, in the folder in which the command runs."""
    return study_files(tmp_path)


FIT = ("fit", "turns.jsonl", "--outcomes", "gains.csv")
CONF = (*FIT, "--features", "conf")


@pytest.fixture
def model(files: Path, inside: Demur) -> Path:
    """The study with a model of its confusions, m.json."""
    assert inside("outcome", *CONF, "--model", "m.json", "--quiet", *QUICK).returncode == 0
    return files / "m.json"


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


def test_a_regression_has_the_keys_that_scripts_rely_on(found: Found, tmp_path: Path) -> None:
    write(tmp_path / "t.jsonl", TABLE)
    document = found("regress", "t.jsonl", "--outcome", "gain", "--candidates", "x,z", "--direction", "backward")
    assert document["terms"] == ["x"]
    assert list(document["coefficients"]) == ["(Intercept)", "x"]
    assert {"r2", "mse"} <= document["in_sample"].keys()
    assert all({"r2", "mse", "sd"} <= document[kind].keys() for kind in ("loo", "nested"))
    assert [{"step", "aic"} <= line.keys() for line in document["trace"]] == [True, True]
    assert [line["step"] for line in document["trace"]] == ["", "- z"]
    assert document["trace"][-1]["aic"] == document["aic"]


def test_a_regression_worked_by_hand(found: Found, tmp_path: Path) -> None:
    """y = 1 2 2 4 on x = 0 1 2 3: slope 4.5/5 = .9, intercept .9, RSS .7; AIC 4 ln(.7/4) + 4."""
    write(tmp_path / "t.jsonl", [{"y": y, "x": x} for x, y in enumerate((1, 2, 2, 4))])
    document = found("regress", "t.jsonl", "--outcome", "y")
    assert document["coefficients"] == pytest.approx({"(Intercept)": 0.9, "x": 0.9})
    assert document["in_sample"] == pytest.approx({"r2": 1 - 0.7 / 4.75, "mse": 0.7 / 4})
    assert document["aic"] == pytest.approx(4 * -1.7429693 + 4)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("table", TABLES)
def test_the_command_agrees_with_r(found: Found, table: str, way: str) -> None:
    oracle = Oracle(table)
    said, (direction, start) = oracle.of(way), WAYS[way]
    begin = ["--start", start] if start else []
    names = ["--candidates", ",".join(oracle.names)]
    path, outcome = str(HOME / f"{table}.csv"), oracle.said["outcome"]
    document = found("regress", path, "--outcome", outcome, "--direction", direction, *begin, *names)
    assert document["terms"] == said["terms"]
    assert document["coefficients"] == pytest.approx(said["coefficients"])
    assert list(document["coefficients"]) == ["(Intercept)", *said["terms"]]
    assert document["aic"] == pytest.approx(said["extractAIC"])
    assert [line["step"] for line in document["trace"]] == [line["step"] for line in said["trace"]]
    assert [line["aic"] for line in document["trace"]] == pytest.approx([line["aic"] for line in said["trace"]])
    assert document["in_sample"]["r2"] == pytest.approx(said["r_squared"])
    assert document["loo"]["mse"] == pytest.approx(said["loo_fixed_model_mse"])
    if "nested_loo" in said:
        assert document["loo"]["r2"] == pytest.approx(said["loo_fixed_R2_1_minus_press_over_sst"])
        assert document["loo"]["sd"] == pytest.approx(said["loo_fixed_model_sqerr_sd"])
        inside = said["nested_loo"]
        assert document["nested"]["r2"] == pytest.approx(inside["R2_1_minus_press_over_sst"])
        assert document["nested"]["mse"] == pytest.approx(inside["mse"])
        assert document["nested"]["sd"] == pytest.approx(inside["sqerr_sd"])


def test_candidates_are_all_numbers_unless_named(found: Found, tmp_path: Path) -> None:
    write(tmp_path / "t.jsonl", TABLE)
    assert found("regress", "t.jsonl", "--outcome", "gain")["candidates"] == ["x", "z", "late"]
    named = found("regress", "t.jsonl", "--outcome", "gain", "--candidates", "late, x")
    assert named["candidates"] == ["late", "x"]


def test_yes_and_no_are_1_and_0_as_predictor_and_as_outcome(found: Found, tmp_path: Path) -> None:
    """The means of gain are .55 where late and .8 elsewhere."""
    write(tmp_path / "t.jsonl", TABLE)
    late = found("regress", "t.jsonl", "--outcome", "gain", "--candidates", "late", "--keep", "late")
    assert late["coefficients"] == pytest.approx({"(Intercept)": 0.8, "late": -0.25})
    assert found("regress", "t.jsonl", "--outcome", "late", "--candidates", "gain")["outcome"] == "late"


def test_rows_of_no_group_are_groups_of_their_own(found: Found, tmp_path: Path) -> None:
    """a a b - - c c d: leaving out one group at a time is leaving out six."""
    write(tmp_path / "t.jsonl", TABLE)
    document = found("regress", "t.jsonl", "--outcome", "gain", "--candidates", "x", "--group", "who", "--folds", "6")
    same = found("regress", "t.jsonl", "--outcome", "gain", "--candidates", "x", "--group", "who")
    assert document["grouped"] is True
    assert document["nested"]["mse"] == pytest.approx(same["nested"]["mse"])


def test_folds_are_of_the_nested_validation_and_told(inside: Demur, found: Found, tmp_path: Path) -> None:
    write(tmp_path / "t.jsonl", TABLE)
    ask = ("regress", "t.jsonl", "--outcome", "gain", "--candidates", "x")
    assert found(*ask, "--folds", "4")["loo"] == found(*ask)["loo"]
    assert found(*ask, "--folds", "4")["nested"] != found(*ask)["nested"]
    assert "nested: the choice as well, in 4 folds" in inside("outcome", *ask, "--folds", "4", *QUICK).stderr


def test_terms_to_keep_stay_in_every_direction(found: Found, tmp_path: Path) -> None:
    write(tmp_path / "t.jsonl", TABLE)
    for direction in ("backward", "forward", "both"):
        for start in ([], ["--start", "full"], ["--start", "null"]):
            ask = ("--outcome", "gain", "--candidates", "x,z", "--keep", "z", "--direction", direction, *start)
            assert "z" in found("regress", "t.jsonl", *ask)["terms"], (direction, start)


def test_a_fit_finds_and_prices_the_true_confusion(found: Found, files: Path) -> None:
    document = found(*CONF, "--model", "m.json")
    assert document["terms"][0] == CULPRIT
    assert document["coefficients"][CULPRIT] == pytest.approx(-0.6, abs=0.15)
    dearest = document["prices"][0]
    assert (dearest["predicted"], dearest["actual"]) == ("incomplete", "contradictory")
    assert dearest["change"] > 0
    assert document["nested"]["r2"] <= document["in_sample"]["r2"]
    assert json.loads((files / "m.json").read_text())["coefficients"] == pytest.approx(document["coefficients"])
    assert any(note == "model written to m.json" for note in document["notes"])


def test_seeds_reproduce_and_shuffled_rows_change_nothing(found: Found, files: Path) -> None:
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
def test_sets_stand_side_by_side(found: Found) -> None:
    sets = found(*CONF, "--sets")["feature_sets"]
    assert [one["features"] for one in sets] == [
        "scores.fm", "scores.precision", "scores.recall", "conf", "scores.all", "conf+scores.f", "full",
    ]  # fmt: skip
    assert all({"in_sample", "loo", "nested", "terms"} <= one.keys() for one in sets)


@pytest.mark.usefixtures("files")
def test_what_becomes_of_rejected_turns_is_said_and_kept_in_the_model(found: Found, tmp_path: Path) -> None:
    for policy, told in (("counted", "lower recall"), ("left-out", "are left out")):
        document = found(*CONF, "--rejections", policy, "--model", "m.json")
        assert document["rejections"] == policy
        assert any(note.startswith("rejected turns ") and told in note for note in document["notes"])
        assert json.loads((tmp_path / "m.json").read_text())["rejections"] == policy


@pytest.mark.usefixtures("files")
def test_learners_stand_beside_the_stepwise_model(found: Found) -> None:
    pytest.importorskip("sklearn")
    document = found(*CONF, "--learners", "--folds", "3")
    learners = document["learners"]
    assert {"ols", "lasso", "tree", "net", "f-beta"} <= learners.keys()
    assert any(note.startswith("F-beta fitted to the outcome: ") for note in document["notes"])
    assert document["f_beta"]["beta"]["value"] > 0
    assert all({"r2", "mse", "sd"} <= one.keys() for one in learners.values())


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("policy", ["drop", "zero", "impute-mean"])
def test_the_policy_for_undefined_scores_is_in_the_document(found: Found, policy: str) -> None:
    assert found(*CONF, "--undefined", policy)["undefined"] == policy


def test_dialogues_without_counterpart_need_matched(inside: Demur, found: Found, files: Path) -> None:
    text = (files / "gains.csv").read_text().splitlines(keepends=True)
    (files / "gains.csv").write_text("".join([*text[:-2], "zz,0.5,30\n"]))
    done = inside("outcome", *CONF, *QUICK)
    assert done.returncode == 2
    assert '2 dialogues have turns and no outcome ("d28", "d29"), 1 an outcome and no turns ("zz")' in done.stderr
    document = found(*CONF, "--matched")
    assert document["dialogues"] == 28
    assert "left out: 2 dialogues without an outcome, 1 without turns" in document["notes"]


def test_columns_of_the_outcomes_are_named_by_an_option_of_their_own(found: Found, inside: Demur, files: Path) -> None:
    text = (files / "gains.csv").read_text()
    (files / "calls.csv").write_text(text.replace("dialogue,outcome", "call,gain", 1))
    ask = ("fit", "turns.jsonl", "--outcomes", "calls.csv", "--outcome", "gain", "--features", "conf")
    done = inside("outcome", *ask, *QUICK)
    assert done.returncode == 2
    assert "calls.csv needs a column dialogue; there are call, gain, age (--map-outcomes dialogue=COLUMN" in done.stderr
    document = found(*ask, "--map-outcomes", "dialogue=call")
    assert document["outcome"] == "gain"


@pytest.mark.usefixtures("model")
def test_a_prediction_stands_beside_the_naive_guess(found: Found) -> None:
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


def test_extrapolation_is_a_warning_in_every_output(inside: Demur, found: Found, model: Path) -> None:
    document = found("predict", "m.json", "majority.jsonl", "--extrapolate")
    assert document["systems"][0]["extrapolated"] is True
    assert any(text.startswith("majority: extrapolated, ") for text in document["warnings"])
    done = inside("outcome", "predict", "m.json", "majority.jsonl", "--extrapolate", "-o", "p.md")
    assert "warning: majority: extrapolated, " in done.stderr
    assert "**Warning:** majority: extrapolated, " in (model.parent / "p.md").read_text()


@pytest.mark.usefixtures("model")
def test_a_comparison_leaves_out_who_cannot_be_judged_and_says_why(found: Found) -> None:
    document = found("compare", "m.json", "turns.jsonl", "better.jsonl", "majority.jsonl")
    (pair,) = document["pairs"]
    assert (pair["a"], pair["b"]) == ("turns", "better")
    assert pair["difference"]["high"] < 0
    by_name = {one["system"]: one for one in document["systems"]}
    assert by_name["majority"]["predicted"]["value"] is None
    assert "unlike the training data" in by_name["majority"]["predicted"]["why"]
    assert "prices" not in document


@pytest.mark.usefixtures("model")
def test_pooled_takes_all_turns_together(found: Found) -> None:
    apart, together = (found("predict", "m.json", "turns.jsonl", *more)["systems"][0] for more in ((), ("--pooled",)))
    assert (apart["pooled"], apart["dialogues"], together["pooled"]) == (False, 30, True)
    assert apart["features"] != together["features"]


def test_the_papers_formula_from_a_file_written_by_hand(found: Found, tmp_path: Path) -> None:
    write(tmp_path / "beetle.jsonl", paper_turns())
    weights = {"(Intercept)": 0.74, "predicted-pc_incomplete-actual-contradictory": -0.56}
    document = {"format": "demur outcome model", "version": 1, "outcome": "gain", "coefficients": weights}
    (tmp_path / "conf.json").write_text(json.dumps(document))
    one = found("predict", "conf.json", "beetle.jsonl")
    assert one["systems"][0]["predicted"]["value"] == pytest.approx(0.74 - 0.56 * 200 / 858)
    assert one["formula"] == "gain = 0.74 - 0.56 * predicted-pc_incomplete-actual-contradictory"
    assert sum(TABLE_1.values()) == 3379
    assert set(LABELS) == set(TABLE_1)


COMMANDS = {
    "fit": (*CONF, "--sets"),
    "regress": ("regress", "gains.csv", "--outcome", "outcome"),
    "predict": ("predict", "m.json", "better.jsonl"),
    "compare": ("compare", "m.json", "turns.jsonl", "better.jsonl", "majority.jsonl"),
}
STARTS = {
    ".html": b"<!doctype html>",
    ".svg": b"<svg",
    ".png": b"\x89PNG",
    ".pdf": b"%PDF",
    ".json": b"{",
    ".md": b"## ",
    ".parquet": b"PAR1",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_format_is_written(inside: Demur, model: Path, command: str) -> None:
    outputs = [f"r{suffix}" for suffix in (*STARTS, ".csv")]
    done = inside("outcome", *COMMANDS[command], *QUICK, *(part for name in outputs for part in ("-o", name)))
    assert done.returncode == 0, done.stderr
    for suffix, start in STARTS.items():
        assert (model.parent / f"r{suffix}").read_bytes().lower().startswith(start.lower()), suffix
    frames = pl.read_csv(model.parent / "r.csv"), pl.read_parquet(model.parent / "r.parquet")
    assert frames[0].columns == frames[1].columns
    assert frames[0].height == frames[1].height > 0
    assert all(f"wrote {name}" in done.stderr for name in outputs)


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("command", COMMANDS)
def test_quiet_is_only_the_verdict(inside: Demur, command: str) -> None:
    loud, quiet = (inside("outcome", *COMMANDS[command], *QUICK, *more) for more in ((), ("--quiet",)))
    assert quiet.returncode == 0
    assert quiet.stderr == ""
    assert quiet.stdout
    assert loud.stdout.startswith(quiet.stdout)
    assert len(loud.stdout) > len(quiet.stdout)


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("command", COMMANDS)
def test_eighty_columns_are_enough(inside: Demur, command: str) -> None:
    done = inside("outcome", *COMMANDS[command], *QUICK, columns=80)
    table = done.stdout.split("\n\n", 1)[1]
    assert max(map(len, table.splitlines())) <= 80
    assert "…" not in table or command == "fit"


GATES = {
    "in-sample": (COMMANDS["regress"], "in_sample.r2 < 1", 1),
    "nested": (COMMANDS["fit"], "nested.r2 < 0.5", 0),
    "nested again": (COMMANDS["fit"], "nested.r2 > 0.5", 1),
    "aic": (COMMANDS["fit"], "aic > 0", 0),
    "predicted": (COMMANDS["predict"], "predicted < 0.1", 0),
    "predicted again": (COMMANDS["predict"], "predicted.low > 0.1", 1),
    "difference": (COMMANDS["compare"], "difference < 0", 1),
    "undefined": (COMMANDS["compare"], "predicted < 0", 1),
}


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize(("command", "gate", "code"), GATES.values(), ids=GATES)
def test_gates_hold_on_these_documents(inside: Demur, command: tuple[str, ...], gate: str, code: int) -> None:
    done = inside("outcome", *command, *QUICK, "--fail-if", gate)
    assert done.returncode == code, done.stderr
    assert ("gate: " in done.stderr) == bool(code)


@pytest.mark.parametrize("command", ["predict", "compare"])
def test_dropped_turns_are_counted_in_every_output(inside: Demur, found: Found, model: Path, command: str) -> None:
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
