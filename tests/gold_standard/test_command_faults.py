"""What `demur gold` and `demur plan` refuse, with a sentence that says what to mend, and what they only warn of."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from commands import Demur
from demur.gold_standard.curves import FAMILIES

GOLD = ("gold", "t.csv", "--x", "wer", "--y", "done", "--replicates", "50", "--no-checks")


def table() -> pl.DataFrame:
    """Wizards and two systems, four subjects each, who do worse as words are misheard."""
    rng = np.random.default_rng(3)
    rows = [
        {
            "performer": name,
            "role": role,
            "subject": f"{name}{subject}",
            "wer": wer,
            "done": int(rng.random() < start + (end - start) * wer),
            "room": "quiet",
        }
        for name, role, start, end in (
            ("wizard", "gold", 0.95, 0.6),
            ("A", "system", 0.9, 0.1),
            ("B", "system", 0.6, 0.3),
        )
        for subject in range(4)
        for wer in np.linspace(0, 1, 11).round(1).tolist()
    ]
    return pl.DataFrame(rows)


def write(path: Path, frame: pl.DataFrame) -> None:
    frame.write_csv(path / "t.csv")


WRONG_OPTIONS = {
    "no x": (["--y", "done"], "--x and --y name the columns"),
    "unknown x": (["--x", "wre", "--y", "done"], 't.csv: there is no column "wre"; did you mean "wer"'),
    "unknown y": (["--x", "wer", "--y", "doen"], 't.csv: there is no column "doen"; did you mean "done"'),
    "x is y": (["--x", "wer", "--y", "wer"], 'x and y are both the column "wer"'),
    "words": (["--x", "room", "--y", "done"], 't.csv:2: room must be a number; got "quiet"'),
    "unknown gold": (["--gold", "wizards"], 'there is no performer "wizards" to be the gold standard'),
    "map": (["--map", "subject"], "--map takes NAME=COLUMN"),
    "where": (["--where", "room"], "--where takes COLUMN=VALUE"),
    "nowhere": (["--where", "room=loud"], "t.csv: no row is left where room is loud"),
    "fit": (
        ["--fit", "cubic"],
        f"--fit takes one of auto, {', '.join(FAMILIES)}, or NAME=KIND",
    ),
    "fit of one": (
        ["--fit", "A=cubic"],
        f'--fit takes one of auto, {", ".join(FAMILIES)}, or NAME=KIND; got "A=cubic"',
    ),
    "fit of nobody": (["--fit", "C=linear"], '--fit names "C", and there is no such performer'),
    "degree": (["--fit", "polynomial", "--degree", "12"], "--degree"),
    "direction": (["--direction", "up"], "--direction"),
    "isotonic": (["--fit", "isotonic", "--direction", "any"], "an isotonic curve is monotone"),
    "range": (["--range", "0.2"], '--range takes two numbers, such as 0.7:0.8; got "0.2"'),
    "range of words": (["--range", "a:b"], "--range takes two numbers"),
    "range backwards": (["--range", "0.8:0.2"], "--range runs from a lower x to a higher one; got 0.8 to 0.2"),
    "range beyond": (["--range", "0.2:1.5"], "--range 0.2:1.5 goes beyond what all curves cover, 0 to 1"),
    "gain alone": (["--gain", "0.7:0.8"], "--gain says where a cost is taken: give --cost as well"),
    "gain": (["--cost", "p", "--gain", "0.7"], '--gain takes two numbers, such as 0.7:0.8; got "0.7"'),
    "gain downwards": (["--cost", "p", "--gain", "0.8:0.7"], "a gain goes from one performance up to a higher one"),
    "no cost": (["--cost", "cost.csv"], "cost.csv does not exist"),
    "cost": (["--cost", "1000 * q"], 'the cost function: cannot use "q" in "1000 * q": the performance is called p'),
    "cost of code": (["--cost", "__import__('os')"], "the cost function: cannot use"),
    "endless cost": (["--cost", "1 / p"], "must be a finite number for every performance from 0 to 1"),
    "components": (["--components"], "run without any component, so there is nothing to take apart"),
    "bounds": (["--lower", "7", "--upper", "1"], "done cannot lie between 7 and 1"),
    "level": (["--level", "95"], "--level must be above 0 and below 1; got 95"),
    "replicates": (["--replicates", "5"], "--replicates"),
    "output": (["-o", "r.txt"], "-o r.txt: the extension must be one of .html"),
    "gate": (["--fail-if", "impurity is high"], "--fail-if takes"),
    "unknown gate": (["--fail-if", "impurity > 0.2"], '--fail-if knows no "impurity"'),
    "verdict": (["--fail-if", "a is significantly worse"], 'here it takes "NAME > NUMBER"'),
}


@pytest.mark.parametrize(("arguments", "said"), WRONG_OPTIONS.values(), ids=WRONG_OPTIONS)
def test_wrong_options_are_refused_in_a_sentence(demur: Demur, tmp_path: Path, arguments: list[str], said: str) -> None:
    write(tmp_path, table())
    columns = [] if "--y" in arguments else ["--x", "wer", "--y", "done"]
    quick = [] if "--replicates" in arguments else ["--replicates", "50"]
    more = [] if "-o" in arguments else ["-o", "r.json"]
    done = demur("gold", "t.csv", *columns, "--no-checks", *quick, *arguments, *more, columns=250)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert [one.name for one in tmp_path.iterdir()] == ["t.csv"]


def is_a() -> pl.Expr:
    return pl.col("performer") == "A"


def where_a(value: Any) -> Callable[[pl.DataFrame], pl.DataFrame]:
    return lambda frame: frame.with_columns(done=pl.when(is_a()).then(value).otherwise(pl.col("done")))


WRONG_TABLES: dict[str, tuple[Callable[[pl.DataFrame], pl.DataFrame], list[str], str]] = {
    "no gold": (
        lambda frame: frame.with_columns(role=pl.lit("system")),
        [],
        't.csv: there is no gold performer among "A", "B", "wizard" (--gold NAME',
    ),
    "nobody is gold": (
        lambda frame: frame.drop("role").with_columns(pl.col("performer").replace("wizard", "C")),
        [],
        'there is no gold performer among "A", "B", "C"',
    ),
    "gold alone": (lambda frame: frame.filter(role="gold"), [], "there is no system beside the gold standard"),
    "both": (
        lambda frame: frame.with_columns(
            role=pl.when(is_a() & (pl.col("wer") > 0.5)).then(pl.lit("gold")).otherwise("role")
        ),
        [],
        'performer "A" is gold here and system at t.csv:46',
    ),
    "role": (
        lambda frame: frame.with_columns(role=pl.lit("boss")),
        [],
        't.csv:2: role must be gold or system; got "boss"',
    ),
    "disjoint": (
        lambda frame: frame.filter(pl.when(is_a()).then(pl.col("wer") > 0.6).otherwise(pl.col("wer") < 0.5)),
        [],
        "no range of x is covered by all: wizard 0 to 0.4, A 0.7 to 1, B 0 to 0.4 (curves are never extended",
    ),
    "one x": (
        lambda frame: frame.filter(~is_a() | (pl.col("wer") == 0.5)),
        [],
        "all trials of A are at one x, 0.5, and a curve needs several (leave the performer out",
    ),
    "one subject": (
        lambda frame: frame.filter(~is_a() | (pl.col("subject") == "A2")),
        [],
        "A has trials with one subject only (A2), and one subject says nothing of others (run more subjects",
    ),
    "one wizard": (
        lambda frame: frame.filter((pl.col("role") == "system") | (pl.col("subject") == "wizard0")),
        [],
        "wizard has trials with one subject only (wizard0)",
    ),
    "above": (
        lambda frame: frame.with_columns(done=3 + 5.0 * pl.col("done")),
        ["--upper", "7"],
        "done must lie between 0 and 7; got 8",
    ),
    "below": (
        lambda frame: frame.with_columns(done=pl.col("done") - 0.5),
        [],
        "done must be at least 0; got -0.5 (--lower L",
    ),
    "rates without n": (
        lambda frame: frame.with_columns(done=0.25 + 0.5 * pl.col("done")),
        [],
        "rates without n; got 0.75 (give a column n; or --upper 1",
    ),
    "rates above 1": (
        lambda frame: frame.with_columns(done=20.0 * pl.col("done"), n=pl.lit(20)),
        [],
        "done must lie between 0 and 1; got 20.0 (with a column n it is a rate",
    ),
    "n of nothing": (
        lambda frame: frame.with_columns(n=pl.lit(0)),
        [],
        "t.csv:2: n must be a whole number of at least 1",
    ),
    "words": (where_a(None), ["--where", "performer=A"], "every row has no wer or no done"),
    "few x": (
        lambda frame: frame.filter(pl.col("wer").is_in([0.0, 0.5, 1.0])),
        ["--fit", "polynomial"],
        "a polynomial of degree 3 needs trials at more than 3 distinct x",
    ),
    "never off": (
        lambda frame: frame.with_columns(components=pl.lit("asr+nlu")),
        ["--components"],
        "asr and nlu were never switched off in the trials of A and B (run trials without a component",
    ),
    "short cost": (lambda frame: frame, ["--cost", "{cost}"], "the cost function covers 0.9 to 1, but the curve of A"),
    "no rows": (lambda frame: frame.clear(), [], "t.csv holds a header but no rows"),
}


@pytest.mark.parametrize(("change", "arguments", "said"), WRONG_TABLES.values(), ids=WRONG_TABLES)
def test_wrong_tables_are_refused_in_a_sentence(
    demur: Demur,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    change: Callable[[pl.DataFrame], pl.DataFrame],
    arguments: list[str],
    said: str,
) -> None:
    write(tmp_path, change(table()))
    cost = tmp_path_factory.mktemp("cost") / "cost.csv"
    cost.write_text("performance,amount\n0.9,10\n1,20\n")
    done = demur(*GOLD, *(one.format(cost=cost) for one in arguments), "-o", "r.html", "--json", columns=250)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert [one.name for one in tmp_path.iterdir()] == ["t.csv"]


def test_an_empty_file_is_refused(demur: Demur, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("")
    done = demur(*GOLD)
    assert done.returncode == 2
    assert "t.csv is empty" in done.stderr


def test_a_file_that_is_not_there_is_refused(demur: Demur) -> None:
    done = demur(*GOLD)
    assert done.returncode == 2
    assert "t.csv does not exist" in done.stderr


SEPARATED: dict[str, tuple[Any, str]] = {
    "won": (pl.lit(1), "A: every trial succeeded; the curve is held finite by one trial in all"),
    "lost": (pl.lit(0), "A: every trial failed; the curve is held finite by one trial in all"),
    "separated": (
        (pl.col("wer") < 0.45).cast(pl.Int64),
        "A: every trial up to 0.4 succeeded and every trial from 0.5 on failed, so that nothing tells how steep",
    ),
}


@pytest.mark.parametrize(("value", "said"), SEPARATED.values(), ids=SEPARATED)
@pytest.mark.parametrize("kind", ["auto", "isotonic"])
def test_separated_trials_are_told_and_give_finite_numbers(
    demur: Demur, tmp_path: Path, value: pl.Expr, said: str, kind: str
) -> None:
    write(tmp_path, where_a(value)(table()))
    shown = demur(*GOLD, "--fit", kind, "-o", "r.json")
    assert shown.returncode == 0, shown.stderr
    assert f"warning: {said}" in shown.stderr
    document = json.loads((tmp_path / "r.json").read_text())
    assert any(said in warning for warning in document["warnings"])
    system = document["performers"][1]
    assert all(system["impurity_mass"][end] is not None for end in ("value", "low", "high"))
    assert all(0 <= point["low"] <= point["high"] <= 1 for point in system["curve"])


def test_all_trials_a_success_everywhere_is_an_answer(demur: Demur, tmp_path: Path) -> None:
    write(tmp_path, table().with_columns(done=pl.lit(1)))
    done = demur(*GOLD[:-1], "--json", "--cost", "p", "--gain", "0.5:0.6")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["complexity"]["value"] == pytest.approx(0, abs=0.05)
    assert all(one["impurity_mass"]["value"] == pytest.approx(0, abs=0.02) for one in document["performers"][1:])
    assert all(one["r2"] is None for one in document["performers"])
    assert {one["value"] for one in document["average_marginal_cost"].values()} == {None}
    assert "nowhere lies between 0.5 and 0.6" in document["average_marginal_cost"]["A"]["why"]


def test_rows_without_x_or_y_are_left_out_with_a_warning(demur: Demur, tmp_path: Path) -> None:
    write(tmp_path, table().with_columns(done=pl.when(pl.col("subject") == "A1").then(None).otherwise("done")))
    done = demur(*GOLD)
    assert done.returncode == 0
    assert "warning: 11 rows have no wer or no done and are left out, first t.csv:57" in done.stderr


def test_trials_without_subjects_are_read_with_a_note(demur: Demur, tmp_path: Path) -> None:
    write(tmp_path, table().drop("subject"))
    done = demur(*GOLD[:-1])
    assert done.returncode == 0, done.stderr
    assert "note: no column names subjects: each trial is taken for a subject of its own" in done.stderr
    assert "Wizards" not in done.stdout


WRONG_PLANS = {
    "subjects": (
        ["--subjects", "many"],
        '--subjects takes whole numbers of at least 2, separated by commas; got "many"',
    ),
    "trials": (["--trials", "10;20"], "--trials takes whole numbers of at least 1, separated by commas"),
    "one subject": (["--subjects", "1"], "--subjects takes whole numbers of at least 2"),
    "no trials": (["--trials", "0"], "--trials takes whole numbers of at least 1"),
    "half width": (["--half-width", "-1"], "--half-width must be above 0; got -1"),
    "studies": (["--studies", "3"], "--studies"),
    "fit of one": (["--fit", "A=linear"], "'A=linear' is not one of 'auto'"),
    "two pilots": (["u.csv"], "a plan starts from one pilot; these are t, u"),
}


@pytest.mark.parametrize(("arguments", "said"), WRONG_PLANS.values(), ids=WRONG_PLANS)
def test_wrong_plans_are_refused_in_a_sentence(demur: Demur, tmp_path: Path, arguments: list[str], said: str) -> None:
    write(tmp_path, table())
    (tmp_path / "u.csv").write_bytes((tmp_path / "t.csv").read_bytes())
    done = demur("plan", "t.csv", *arguments, "--x", "wer", "--y", "done", "-o", "p.json", columns=250)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert done.stdout == ""
    assert not (tmp_path / "p.json").exists()
