import ast
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from commands import Demur, log
from demur.apps.cli.app import COMMANDS
from demur.apps.cli.commands import OPTION_PANELS, PANELS
from demur.apps.cli.output import failures
from demur.errors import UsageError

QUICK = ("--replicates", "50")
TIED = [0.9] * 3 + [0.8] * 4 + [0.5] * 2 + [0.1]
TIED_ERRORS = [0, 0, 1, 0, 1, 0, 0, 1, 0, 1]


def test_score_gives_the_worked_case_in_json(demur: Demur, tmp_path: Path) -> None:
    rows = [
        {"id": k, "confidence": c, "correct": not e} for k, (c, e) in enumerate(zip(TIED, TIED_ERRORS, strict=True))
    ]
    (tmp_path / "run.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = demur("score", "run.jsonl", "--json")
    assert done.returncode == 0, done.stderr
    system = json.loads(done.stdout)["systems"][0]
    measures = system["measures"]
    assert system["system"] == "run"
    assert system["n"] == 10
    assert measures["augrc"]["value"] == pytest.approx(0.16)
    assert measures["aurc"]["value"] == pytest.approx(0.323571, abs=1e-6)
    assert measures["forced_error"]["value"] == pytest.approx(0.4)
    assert measures["nonreturn_floor"]["value"] == 0
    assert measures["error_at_nonreturn"] | {"x": 0.2} == measures["error_at_nonreturn"]
    for figure in measures.values():
        assert figure["low"] <= figure["value"] <= figure["high"]
    other = json.loads(demur("score", "run.jsonl", "--json", "--aurc", "trapezoid").stdout)
    assert other["systems"][0]["measures"]["aurc"]["value"] == pytest.approx(0.322381, abs=1e-6)


def test_json_is_the_only_thing_on_standard_output_and_strict(demur: Demur, tmp_path: Path) -> None:
    log(tmp_path / "a.jsonl", skill=0, level=50)
    done = demur("score", "a.jsonl", "--json")
    document = json.loads(done.stdout, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    auroc = document["systems"][0]["measures"]["auroc"]
    assert auroc["value"] is None
    assert auroc["why"] == "every answer is right"


def test_compare_says_who_is_better_and_gates_on_it(demur: Demur, tmp_path: Path) -> None:
    log(tmp_path / "good.jsonl", n=600, skill=3, level=2)
    log(tmp_path / "poor.jsonl", n=600, skill=0.5, level=0)
    done = demur("compare", "good.jsonl", "poor.jsonl", "--json")
    pair = json.loads(done.stdout)["pairs"][0]
    assert (pair["a"], pair["b"], pair["paired"], pair["n"]) == ("good", "poor", True, 600)
    assert pair["verdict"] == "a dominates"
    assert pair["augrc_difference"]["high"] < 0
    assert pair["augrc_difference"]["p"] < 0.001
    assert demur("compare", "good.jsonl", "poor.jsonl", *QUICK, "--fail-if", "a is significantly worse").returncode == 0
    gated = demur("compare", "good.jsonl", "poor.jsonl", *QUICK, "--fail-if", "b is significantly worse")
    assert gated.returncode == 1
    assert "poor is significantly worse than good" in gated.stderr
    assert gated.stdout.startswith("good dominates poor")


def silenced(path: Path, name: str) -> None:
    """A log of the same inputs on which nothing was answered."""
    rows = (json.loads(line) for line in path.read_text().splitlines())
    silent = ({**row, "prediction": None, "confidence": None} for row in rows)
    (path.parent / name).write_text("".join(json.dumps(row) + "\n" for row in silent))


def test_a_system_that_answers_nothing_passes_no_gate_on_its_errors(demur: Demur, tmp_path: Path) -> None:
    silenced(log(tmp_path / "a.jsonl"), "silent.jsonl")
    worse = demur("compare", "a.jsonl", "silent.jsonl", *QUICK, "--fail-if", "silent is significantly worse")
    assert (worse.returncode, "silent is significantly worse than a" in worse.stderr) == (1, True)
    assert demur("compare", "a.jsonl", "silent.jsonl", *QUICK, "--fail-if", "a is significantly worse").returncode == 0
    low = demur("score", "silent.jsonl", *QUICK, "--fail-if", "forced_error > 0.5")
    assert (low.returncode, "silent answers nothing" in low.stderr) == (1, True)
    assert demur("score", "silent.jsonl", *QUICK, "--fail-if", "n < 10").returncode == 0


def test_equal_and_hopeless_systems_at_the_gate(demur: Demur, tmp_path: Path) -> None:
    log(tmp_path / "a.jsonl", n=300)
    log(tmp_path / "b.jsonl", n=300)
    log(tmp_path / "wrong.jsonl", n=300, level=-50)
    for name in ("a", "b"):
        done = demur("compare", "a.jsonl", "b.jsonl", *QUICK, "--fail-if", f"{name} is significantly worse")
        assert done.returncode == 0
    assert demur("compare", "a.jsonl", "wrong.jsonl", *QUICK, "--fail-if", "b is significantly worse").returncode == 1
    few = [log(tmp_path / f"{name}3.jsonl", n=3, level=level).name for name, level in (("a", 50), ("b", -50))]
    assert demur("compare", *few, *QUICK, "--fail-if", "b is significantly worse").returncode == 0


def test_gates_on_a_margin_ask_that_a_loss_is_ruled_out(demur: Demur, tmp_path: Path) -> None:
    log(tmp_path / "a.jsonl", n=300)
    log(tmp_path / "b.jsonl", n=300, seed=1)
    compared = ("compare", "a.jsonl", "b.jsonl", *QUICK)
    assert demur(*compared, "--margin", "0.2", "--fail-if", "b is not equivalent").returncode == 0
    narrow = demur(*compared, "--margin", "0.0001", "--fail-if", "b is not non-inferior")
    assert (narrow.returncode, "b is not non-inferior to a" in narrow.stderr) == (1, True)
    unasked = demur(*compared, "--fail-if", "b is not equivalent")
    assert (unasked.returncode, "--margin" in unasked.stderr) == (2, True)


def test_a_gate_on_a_number_exits_with_one_and_says_what_it_was(demur: Demur, tmp_path: Path) -> None:
    log(tmp_path / "a.jsonl")
    passed = demur("score", "a.jsonl", *QUICK, "--fail-if", "error_at_nonreturn > 0.99")
    assert passed.returncode == 0
    failed = demur("score", "a.jsonl", *QUICK, "--fail-if", "error_at_nonreturn > 0.01")
    assert failed.returncode == 1
    assert "a: error_at_nonreturn > 0.01 holds: it is" in failed.stderr
    assert demur("score", "a.jsonl", *QUICK, "--fail-if", "augrc.high < 0.9").returncode == 1
    unknown = demur("score", "a.jsonl", "--fail-if", "augcr > 0.01")
    assert unknown.returncode == 2
    assert 'did you mean "augrc"?' in unknown.stderr
    unread = demur("score", "missing.jsonl", "--fail-if", "augrc is bad")
    assert unread.returncode == 2
    assert "--fail-if takes" in unread.stderr


def test_a_gate_is_asked_of_a_plan_and_a_result_without_numbers_says_so():
    plan = {"studies": 20, "half_width": 0.1, "needed": None, "would_do": {"subjects": 121}}
    assert failures(["half_width > 0.05"], plan) == ["result: half_width > 0.05 holds: it is 0.1"]
    assert failures(["would_do.subjects > 200"], plan) == []
    assert "undefined" in failures(["needed.subjects > 20"], plan)[0]
    with pytest.raises(UsageError, match="no number that a gate could be asked of"):
        failures(["wrong > 0"], {"holds": True, "findings": []})


def test_threshold_by_each_rule(demur: Demur, tmp_path: Path) -> None:
    log(tmp_path / "a.jsonl", n=500, level=1)
    by_cost = json.loads(demur("threshold", "a.jsonl", "--cost-ratio", "0.3", "--json").stdout)
    assert by_cost["cost"] == pytest.approx(by_cost["error"] + 0.3 * by_cost["nonreturn"])
    assert by_cost["guarantee"] is None
    by_error = json.loads(demur("threshold", "a.jsonl", "--max-error", "0.05", "--json").stdout)
    assert by_error["error"] <= 0.05
    assert by_error["guarantee"] is None
    promised = json.loads(demur("threshold", "a.jsonl", "--max-error", "0.05", "--delta", "0.1", "--json").stdout)
    assert promised["guarantee"]["bound"] == 0.05
    assert promised["guarantee"]["delta"] == 0.1
    assert promised["error"] <= by_error["error"]
    by_return = json.loads(demur("threshold", "a.jsonl", "--max-nonreturn", "0.2", "--json").stdout)
    assert by_return["nonreturn"] <= 0.2


def test_the_process_leaves_with_the_code_of_what_happened(apart: Demur, tmp_path: Path) -> None:
    log(tmp_path / "a.jsonl", n=40)
    scored = apart("score", "a.jsonl", "--json", "--replicates", "50")
    assert (scored.returncode, scored.stderr) == (0, "")
    assert json.loads(scored.stdout)["systems"][0]["n"] == 40
    gated = apart("score", "a.jsonl", "--quiet", "--replicates", "50", "--fail-if", "forced_error > 0.01")
    assert gated.returncode == 1
    assert gated.stderr.startswith("gate: a: forced_error > 0.01 holds: it is")
    refused = apart("score", "rum.jsonl")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("error: rum.jsonl does not exist")


@pytest.mark.parametrize("ratio", ["1.5", "-0.1"])
def test_a_cost_ratio_outside_its_range_is_refused_with_the_reason(demur: Demur, tmp_path: Path, ratio: str) -> None:
    log(tmp_path / "a.jsonl")
    done = demur("threshold", "a.jsonl", "--cost-ratio", ratio)
    assert done.returncode == 2
    assert "withholding an answer never pays" in done.stderr


def test_threshold_wants_one_rule_and_one_system(demur: Demur, tmp_path: Path) -> None:
    log(tmp_path / "a.jsonl")
    log(tmp_path / "b.jsonl", seed=1)
    none = demur("threshold", "a.jsonl")
    assert none.returncode == 2
    assert "and a limit on non-returns (--max-nonreturn); --delta makes a limit a promise; got none" in none.stderr
    two = demur("threshold", "a.jsonl", "--max-error", "0.1", "--cost-ratio", "0.1")
    assert "got --cost-ratio and --max-error" in two.stderr
    several = demur("threshold", "a.jsonl", "b.jsonl", "--max-error", "0.1")
    assert several.returncode == 2
    assert "choose with --system from a, b" in several.stderr
    assert demur("threshold", "a.jsonl", "b.jsonl", "--max-error", "0.1", "--system", "b").returncode == 0


def test_classes_give_the_papers_names(demur: Demur, tmp_path: Path) -> None:
    rows = [("yes", "yes"), ("yes", None), ("no", "yes"), ("no", "no"), ("oos", "oos")]
    lines = [json.dumps({"target": target, "prediction": prediction}) for target, prediction in rows]
    (tmp_path / "run.jsonl").write_text("\n".join(lines) + "\n")
    done = demur("classes", "run.jsonl", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["n"], report["rejected"], report["accuracy"]) == (5, 1, 0.6)
    assert report["per_class"]["yes"] == {"precision": 0.5, "recall": 0.5, "f1": 0.5, "support": 2}
    assert report["per_class"]["oos"]["recall"] == 1
    assert report["confusion"]["yes"] == {"no": 1, "yes": 1}
    assert report["micro"]["precision"] == 0.75
    assert set(report["macro"]) == set(report["weighted"]) == {"precision", "recall", "f1"}


def test_slices_are_scored_beside_the_whole(demur: Demur, tmp_path: Path) -> None:
    log(tmp_path / "a.jsonl", n=100, domain=["shop", "bank"] * 50)
    document = json.loads(demur("score", "a.jsonl", "--by", "domain", "--json", *QUICK).stdout)
    assert [(part.get("slice"), part["n"]) for part in document["systems"]] == [
        (None, 100),
        ("domain=bank", 50),
        ("domain=shop", 50),
    ]
    parts = document["slices_at_one_threshold"]
    assert len({part["threshold"] for part in parts}) == 1
    assert sum(part["n"] * part["nonreturn"] for part in parts) <= 0.2 * 100 + 1e-9
    wrong = demur("score", "a.jsonl", "--by", "domian")
    assert wrong.returncode == 2
    assert "domain" in wrong.stderr


def test_row_order_never_changes_a_number(demur: Demur, tmp_path: Path) -> None:
    log(tmp_path / "a.jsonl", n=300)
    log(tmp_path / "b.jsonl", n=300, seed=1)
    commands = (("score", "a.jsonl"), ("compare", "a.jsonl", "b.jsonl"))
    before = [demur(*command, "--json", *QUICK).stdout for command in commands]
    for name in ("a.jsonl", "b.jsonl"):
        lines = (tmp_path / name).read_text().splitlines(keepends=True)
        (tmp_path / name).write_text("".join(lines[::-1]))
    after = [demur(*command, "--json", *QUICK).stdout for command in commands]
    assert before == after


def test_validate_says_what_was_recognised(demur: Demur, tmp_path: Path) -> None:
    log(tmp_path / "a.jsonl", n=10, domain=["shop", "bank"] * 5)
    done = demur("validate", "a.jsonl")
    assert done.returncode == 0
    assert "10 rows of 1 system are sound." in done.stdout
    assert "columns to slice by: domain" in done.stderr
    document = json.loads(demur("validate", "a.jsonl", "--json").stdout)
    assert document["valid"] is True
    assert document["systems"][0]["answered"] == 10


@pytest.mark.parametrize("suffix", ["html", "svg", "png", "pdf", "json", "csv", "md", "tex", "parquet"])
def test_every_format_is_written(demur: Demur, tmp_path: Path, suffix: str) -> None:
    log(tmp_path / "a.jsonl", n=60)
    done = demur("score", "a.jsonl", "-o", f"deep/folder/out.{suffix}", *QUICK)
    assert done.returncode == 0, done.stderr
    path = tmp_path / "deep" / "folder" / f"out.{suffix}"
    assert path.stat().st_size > 100
    assert list(path.parent.iterdir()) == [path]
    if suffix == "parquet":
        assert {"threshold", "nonreturn", "error"} <= set(pl.read_parquet(path).columns)


def test_an_unknown_extension_is_refused_before_any_work(demur: Demur) -> None:
    done = demur("score", "missing.jsonl", "-o", "plot.gif")
    assert done.returncode == 2
    assert "the extension must be one of .sweep .html .svg .png .pdf .json .csv .md .tex .parquet" in done.stderr


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "empty"),
        ('{"id": 1, "target": "a", "prediction": "a", "confidence": 0.5}\n{"id": 2, "targ', "cut off"),
        (
            '{"id": 1, "target": "a", "prediction": "a", "confidence": "high"}\n',
            "bad.jsonl:1: confidence must be a number",
        ),
        ('{"id": 1, "target": "a", "prediction": "a", "confidence": NaN}\n', "bad.jsonl:1"),
        ('{"id": 1, "target": "a", "prediction": "a", "confidence": 0.5}\n' * 2, "twice"),
        ('{"id": 1, "target": "a", "prediction": "a", "confidence": 0.5, "weight": -1}\n', "weight"),
        ('{"id": 1, "correct": true}\n{"id": 2, "correct": true, "confidence": 1}\n', "confidence"),
    ],
)
def test_bad_input_gets_a_message_and_two_and_writes_nothing(
    demur: Demur, tmp_path: Path, content: str, said: str
) -> None:
    (tmp_path / "bad.jsonl").write_text(content)
    done = demur("score", "bad.jsonl", "-o", "out.json")
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out.json").exists()


def test_a_missing_file_and_an_unknown_column_name_the_nearest(demur: Demur, tmp_path: Path) -> None:
    log(tmp_path / "run.jsonl")
    missing = demur("score", "rum.jsonl")
    assert missing.returncode == 2
    assert "run.jsonl" in missing.stderr
    unknown = demur("score", "run.jsonl", "--map", "confidence=confidense")
    assert unknown.returncode == 2
    assert "confidence" in unknown.stderr
    assert demur("score", "run.jsonl", "--map", "confidence").returncode == 2


def test_ids_that_do_not_match_are_counted_and_matched_on_request(demur: Demur, tmp_path: Path) -> None:
    log(tmp_path / "a.jsonl", n=100)
    log(tmp_path / "b.jsonl", n=90, seed=1)
    done = demur("compare", "a.jsonl", "b.jsonl")
    assert done.returncode == 2
    assert "--matched" in done.stderr
    assert "100" in done.stderr
    assert "90" in done.stderr
    pair = json.loads(demur("compare", "a.jsonl", "b.jsonl", "--matched", "--json", *QUICK).stdout)["pairs"][0]
    assert (pair["n"], pair["paired"]) == (90, True)
    loose = json.loads(demur("compare", "a.jsonl", "b.jsonl", "--unpaired", "--json", *QUICK).stdout)["pairs"][0]
    assert loose["paired"] is False


def test_an_interrupted_pipe_leaves_a_message_and_nothing_else(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from demur.apps.cli.main import run; run()", "score", "-", "-o", "out.json"]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path, text=True, env={**os.environ}
    )
    assert process.stdin is not None
    assert process.stderr is not None
    line = json.dumps({"id": 1, "target": "a", "prediction": "a", "confidence": 0.5}) + "\n"
    process.stdin.write(line * 20_000)  # more than a pipe holds, so this returns only once the command is reading
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "interrupted; no output was left half-written" in said
    assert list(tmp_path.iterdir()) == []


def test_help_of_every_command_has_an_example(demur: Demur) -> None:
    for command in ("score", "compare", "threshold", "classes", "validate", "demo"):
        done = demur(command, "--help")
        assert done.returncode == 0
        assert f"Example: demur {command}" in " ".join(done.stdout.split())


def test_no_color_is_honoured(apart: Demur, tmp_path: Path) -> None:
    log(tmp_path / "a.jsonl", n=20)
    done = apart(
        "score", "a.jsonl", *QUICK, env={**os.environ, "NO_COLOR": "1", "FORCE_COLOR": "1", "TERM": "xterm-256color"}
    )
    assert "\x1b[3" not in done.stdout


def test_a_result_without_a_figure_says_so_and_takes_the_options_of_all_commands(demur: Demur, tmp_path: Path) -> None:
    log(tmp_path / "a.jsonl", n=20)
    done = demur("validate", "a.jsonl", "--seed", "3", "-o", "out.svg")
    assert done.returncode == 2
    assert "-o out.svg: this result has no figure" in done.stderr
    assert demur("validate", "a.jsonl", "--seed", "3", "-o", "out.html").returncode == 0


def test_slicing_by_a_column_of_thousands_of_values_is_refused(demur: Demur, tmp_path: Path) -> None:
    log(tmp_path / "a.jsonl", n=300, text=[f"question {k}" for k in range(300)])
    done = demur("score", "a.jsonl", "--by", "text")
    assert done.returncode == 2
    assert '"text" has 300 values, too many to slice by (at most 200)' in done.stderr


def test_slicing_by_a_star_that_is_no_column_names_those_that_are(demur: Demur, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,target,prediction,confidence,domain\n1,a,a,0.5,x\n2,a,b,0.4,y\n")
    done = demur("score", "a.csv", "--by", "*")
    named = '"id", "target", "prediction", "confidence", "domain"'
    assert (done.returncode, done.stderr) == (2, f'error: there is no column "*" to slice by; there are {named}\n')


def test_the_curve_and_its_bands_are_in_the_json_on_request(demur: Demur, tmp_path: Path) -> None:
    log(tmp_path / "a.jsonl", n=100)
    plain, full = (
        json.loads(demur("score", "a.jsonl", "--json", *more).stdout)["systems"][0] for more in ([], ["--curve"])
    )
    assert "band" not in plain
    assert full["curve"]["error"][0] == full["measures"]["forced_error"]["value"]
    assert len(full["band"]["nonreturn"]) == len(full["band"]["low_all"]) == 201
    assert all(all_low <= low for all_low, low in zip(full["band"]["low_all"], full["band"]["low"], strict=True))


def test_the_nonreturn_for_an_error_rate_of_ones_own_is_given(demur: Demur, tmp_path: Path) -> None:
    log(tmp_path / "a.jsonl", n=200)
    shares = [
        json.loads(demur("score", "a.jsonl", "--json", "--at-error", rate).stdout)["systems"][0]["measures"]
        for rate in ("0.1", "0.3")
    ]
    assert shares[0]["nonreturn_at_error"]["value"] > shares[1]["nonreturn_at_error"]["value"]
    assert demur("score", "a.jsonl", "--at-error", "5").returncode == 2


@pytest.mark.parametrize(
    "command",
    [
        ("score",),
        ("classes",),
        ("threshold", "--cost-ratio", "0.3"),
        ("compare", "other.jsonl"),
        ("validate",),
        ("report", "--title", "<b>*x*</b>"),
    ],
    ids=lambda command: command[0],
)
def test_names_are_escaped_in_markdown(demur: Demur, tmp_path: Path, command: tuple[str, ...]) -> None:
    name = "<b>*x*</b>"
    rows = [json.loads(line) for line in log(tmp_path / "other.jsonl").read_text().splitlines()]
    evil = [{**row, "target": name, "prediction": name if row["prediction"] == "yes" else "no"} for row in rows]
    (tmp_path / "evil.jsonl").write_text("".join(json.dumps(row | {"system": name}) + "\n" for row in evil))
    (tmp_path / "other.jsonl").write_text("".join(json.dumps(row | {"system": "o"}) + "\n" for row in evil))
    quick = () if command == ("validate",) else QUICK
    done = demur(command[0], "evil.jsonl", *command[1:], *quick, "-o", "out.md")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "out.md").read_text()
    assert name not in text
    assert r"&lt;b&gt;\*x\*&lt;/b&gt;" in text


def test_the_index_of_a_table_of_pandas_can_be_mapped(demur: Demur, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(",target,prediction,confidence\nu,a,a,0.9\nv,b,a,0.4\nu,b,b,0.5\n")
    assert demur("score", "t.csv").returncode == 0
    for command in ("score", "validate", "report"):
        mapped = demur(command, "t.csv", "--map", "id=")
        assert mapped.returncode == 2
        assert 'the id "u" occurs twice' in mapped.stderr
    pl.read_csv(tmp_path / "t.csv").write_parquet(tmp_path / "t.parquet")
    engine = demur("score", "t.parquet", "--map", "id=", "--engine", "duckdb")
    assert engine.returncode == 2
    assert "has a column without a name, which this engine does not read" in engine.stderr


CZECH = [
    {"target": "čeština" if k % 2 else "😀 řeka", "prediction": "čeština" if k % 3 else "😀 řeka", "confidence": k / 40}
    for k in range(40)
]
C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def czech(folder: Path, name: str | bytes) -> None:
    with open(os.path.join(os.fsencode(folder), os.fsencode(name)), "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in CZECH)


ONE_BY_ONE = """
import sys
from demur.apps.cli.main import run
rest = sys.argv[1:]
while rest:
    end = rest.index("then") if "then" in rest else len(rest)
    sys.argv, rest = ["demur", *rest[:end]], rest[end + 1 :]
    try:
        run()
    except SystemExit as left:
        if left.code:
            raise
"""
"""Runs one command after another in one process, up to one that fails; "then" stands between them."""


def one_by_one(folder: Path, *arguments: str, environment: dict[str, str], **options: Any) -> str:
    command = [sys.executable, "-c", ONE_BY_ONE, *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=folder, timeout=120, env=os.environ | environment, **options
    )
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


def test_letters_that_standard_output_lacks_are_escaped(tmp_path: Path) -> None:
    czech(tmp_path, "cz.jsonl")
    commands = ("classes", "cz.jsonl", *QUICK, "then", "classes", "cz.jsonl", "--json", *QUICK)
    narrow = {"PYTHONIOENCODING": "cp1252"}
    shown, opening, document = one_by_one(tmp_path, *commands, environment=narrow, encoding="cp1252").partition("{\n")
    assert r"\u010deština" in shown
    told = json.loads(opening + document)
    assert {"čeština", "😀 řeka"} <= told["per_class"].keys()


def test_files_are_named_and_written_whatever_the_locale(tmp_path: Path) -> None:
    czech(tmp_path, "žluť.jsonl")
    pl.DataFrame(CZECH).write_parquet(tmp_path / "ř.parquet")
    scored = ("score", "žluť.jsonl", "--where", "target=čeština", *QUICK, "-o", "ž.md", "-o", "ž.json")
    compared = ("compare", "žluť.jsonl", "ř.parquet", *QUICK)
    added = ("add", "žluť.jsonl", "--store", "sklad ž")
    checked = ("validate", "žluť.jsonl", "-o", "ž.html")  # drawing nothing, it is soon done
    one_by_one(tmp_path, *scored, "then", *compared, "then", *added, "then", *checked, environment=C_LOCALE)
    found = json.loads((tmp_path / "ž.json").read_text(encoding="utf-8"))["systems"][0]
    assert (found["system"], found["n"]) == ("žluť", 20)
    for name in ("ž.md", "ž.html"):
        assert "žluť" in (tmp_path / name).read_text(encoding="utf-8")


def test_a_file_whose_name_is_not_utf8_is_read_and_written(apart: Demur, demur: Demur, tmp_path: Path) -> None:
    czech(tmp_path, b"caf\xe9.jsonl")
    name = os.fsdecode(b"caf\xe9")
    done = apart("score", f"{name}.jsonl", *QUICK, "-o", f"{name}.md", "-o", f"{name}.json")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(r"caf\xe9: when it returns every answer")
    assert r"wrote caf\xe9.md" in done.stderr
    assert json.loads((tmp_path / f"{name}.json").read_text())["systems"][0]["system"] == r"caf\xe9"
    assert demur("score", f"{name}.jsonl", *QUICK, "-o", f"{name}.html").returncode == 0
    assert r"caf\xe9" in (tmp_path / f"{name}.html").read_text(encoding="utf-8")


def test_each_fault_of_a_file_has_a_line(demur: Demur, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("target,prediction,confidence,weight\na,a,high,1\na,a,0.5,-1\n")
    done = demur("score", "t.csv")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        'error: t.csv:2: confidence must be a number; got "high"',
        "error: t.csv:3: weight must be a number of 0 or more, and within 1e-100 and 1e100 unless it is 0; got -1.0",
    ]


@pytest.mark.parametrize("asked", ["-h", "--help"])
def test_the_list_of_commands_is_the_same_without_their_options(
    demur: Demur, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("demur.apps.cli.app.HELP", ())
        whole = demur(asked)
    monkeypatch.setattr("demur.apps.cli.app.add_jobs", None)
    brief = demur(asked)
    assert brief.stdout.splitlines() == whole.stdout.splitlines()
    assert whole.returncode == 0


def test_every_command_stands_in_one_panel_of_the_help(demur: Demur) -> None:
    commands = {job.name.split()[0] for jobs, _ in COMMANDS for job in jobs}
    named = [name for names in PANELS.values() for name in names]
    assert sorted(named) == sorted(commands)
    shown = re.findall(r"^│ ([a-z][a-z-]+)  ", demur("--help").stdout, re.MULTILINE)
    assert shown == named


def test_options_that_many_commands_share_have_panels_of_their_own(demur: Demur) -> None:
    panels = re.findall(r"╭─ (.+?) ─", demur("score", "--help").stdout)
    assert panels == ["Arguments", "Options", *OPTION_PANELS]


def test_every_group_has_a_description_and_o_lists_the_endings_of_its_command(demur: Demur) -> None:
    assert "Grade students' short answers" in demur("understand", "--help", columns=200).stdout
    for command, writes in ((("score",), True), (("follow",), True), (("threshold",), False)):
        assert (".sweep" in demur(*command, "--help", columns=200).stdout) == writes


def test_help_names_flags_and_not_options_of_python(demur: Demur) -> None:
    shown = " ".join(demur("score", "--help").stdout.replace("│", " ").split())
    assert "joined by --on, or by id" in shown


def test_figures_are_listed_and_chosen_by_name(demur: Demur, tmp_path: Path) -> None:
    log(tmp_path / "a.jsonl", skill=3)
    log(tmp_path / "b.jsonl", skill=1)
    listed = demur("compare", "a.jsonl", "b.jsonl", *QUICK, "--list-figures")
    names = [line.split()[0] for line in listed.stdout.splitlines()]
    assert names[:2] == ["comparison", "difference"]
    assert {"missed_chance", "missed_chance:2", "risk_coverage", "reliability", "roc", "det"} <= set(names)
    chosen = ("--figure", "roc", "--figure", "missed_chance:2", "--width", "3in", "--no-title", "--grey")
    done = demur("compare", "a.jsonl", "b.jsonl", *QUICK, *chosen, "-o", "x.svg")
    assert done.returncode == 0, done.stderr
    assert "wrote x-roc.svg" in done.stderr
    assert {path.name for path in tmp_path.glob("*.svg")} == {"x-roc.svg", "x-missed_chance-2.svg"}
    assert 'width="3in"' in (tmp_path / "x-roc.svg").read_text()
    done = demur("compare", "a.jsonl", "b.jsonl", *QUICK, "--figure", "all", "--width", "1.6in", "-o", "y.svg")
    assert done.returncode == 0, done.stderr
    assert "left out roc: this figure does not fit: at 8 points it needs about" in done.stderr
    assert "give a greater --width or" in done.stderr
    written = {path.name for path in tmp_path.glob("y-*.svg")}
    assert "y-comparison.svg" in written
    assert "y-roc.svg" not in written
    refused = demur("compare", "a.jsonl", "b.jsonl", *QUICK, "--figure", "roc", "--width", "1.6in", "-o", "z.svg")
    assert refused.returncode == 2


def test_a_look_that_no_file_has_is_refused_before_any_work(demur: Demur) -> None:
    assert "go with -o FILE.svg" in demur("score", "nowhere.jsonl", "--grey").stderr
    assert "--width is from 1 to 40" in demur("score", "nowhere.jsonl", "--width", "3ft", "-o", "x.svg").stderr


NAMED = re.compile(r"(?:`|^|[(:;,] )demur ([a-z][a-z0-9-]*)(?: ([a-z][a-z0-9-]*))?")
NO_COMMANDS = {"itself", "sweep", "relevance", "recalibration", "grader", "outcome model"}
"""What else follows demur, mostly in names of file formats."""


def test_commands_that_messages_and_help_name_exist() -> None:
    commands = {job.name for jobs, _ in COMMANDS for job in jobs}
    known = commands | {" ".join(name.split()[:length]) for name in commands for length in (1, 2)} | NO_COMMANDS
    wrong = set()
    for file in (Path(__file__).parents[2] / "src" / "demur").rglob("*.py"):
        texts = [node.value for node in ast.walk(ast.parse(file.read_bytes())) if isinstance(node, ast.Constant)]
        lines = [line.strip() for text in texts if isinstance(text, str) for line in text.splitlines()]
        for name, inner in (pair for line in lines for pair in NAMED.findall(line)):
            whole = name if name in commands | NO_COMMANDS else f"{name} {inner}".strip()
            if whole not in known:
                wrong.add((file.name, whole))
    assert not wrong
