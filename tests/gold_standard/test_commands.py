"""`demur gold` and `demur plan` as a user meets them: what they print and write, and when they exit with 1."""

import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from commands import Demur, run_in
from demur.lab import wizards
from demur.lab.corpora import wizards as wizards_of_corpora

COLUMNS = ("--x", "wer", "--y", "completed")
QUICK = ("--replicates", "50")
FEW = (*COLUMNS, *QUICK, "--no-checks")

Found = Callable[..., dict[str, Any]]
DOCUMENTS: dict[tuple[str, ...], dict[str, Any]] = {}
"""Documents by the arguments of the command; a file has the same content in every test that names it."""

pytestmark = pytest.mark.usefixtures("study")


def write_study(path: Path, seed: int = 1, **sizes: int) -> Path:
    """A small study: six wizards, two systems, six callers."""
    wizards.simulate(seed, **{"wizards": 6, "callers": 6, "trials": 20, **sizes}).write_csv(path)
    return path


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A small study, in the folder in which the command runs, and what performance is worth."""
    shutil.copy(wizards_of_corpora().folder / "cost.csv", tmp_path)
    return write_study(tmp_path / "trials.csv")


@pytest.fixture
def found(demur: Demur) -> Found:
    """Runs the command with `--json` and reads what it prints, which must be strict JSON and nothing else.

    What several tests ask of the same files is computed once.
    """

    def run(*arguments: str) -> dict[str, Any]:
        if arguments not in DOCUMENTS:
            DOCUMENTS[arguments] = computed(*arguments)
        return DOCUMENTS[arguments]

    def computed(*arguments: str) -> dict[str, Any]:
        done = demur(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        read: dict[str, Any] = json.loads(done.stdout, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
        return read

    return run


def test_the_document_has_the_keys_that_scripts_rely_on(found: Found) -> None:
    document = found("gold", "trials.csv", *FEW)
    assert [(one["performer"], one["role"]) for one in document["performers"]] == [
        ("wizards", "gold"),
        ("A", "system"),
        ("B", "system"),
    ]
    gold, *systems = document["performers"]
    assert gold["impurity_mass"] is None
    for one in systems:
        assert {"value", "low", "high"} <= one["impurity_mass"].keys()
        assert {"mass_below_gold", "mass_above_gold", "relative_mass", "ranges"} <= one.keys()
    for one in document["performers"]:
        assert isinstance(one["r2"], float)
        assert all({"x", "y", "low", "high"} <= point.keys() for point in one["curve"])
        assert all(0 <= point["low"] <= point["y"] <= point["high"] <= 1 for point in one["curve"])
    assert {"value", "low", "high"} <= document["complexity"].keys()
    assert isinstance(document["verdict"], str)
    assert "average_marginal_cost" not in document
    assert {"notes", "warnings", "range", "pairs"} <= document.keys()


def test_a_cost_adds_its_averages_to_the_document(found: Found) -> None:
    document = found("gold", "trials.csv", *FEW, "--cost", "cost.csv", "--gain", "0.5:0.7")
    told = document["average_marginal_cost"]
    assert set(told) == {"A", "B"}
    for one in document["performers"][1:]:
        cost = told[one["performer"]]
        assert one["average_marginal_cost"]["value"] == cost["value"] > 0
        assert cost["gain"] == [0.5, 0.7]
        assert "average_cost_difference" in cost
    by_percent = found("gold", "trials.csv", *FEW, "--cost", "cost.csv", "--gain", "50%:70 %")
    assert by_percent["average_marginal_cost"] == told


def test_a_cost_may_be_an_expression(found: Found) -> None:
    """A cost of 100 at every performance makes the average 100 times the mean distance."""
    document = found("gold", "trials.csv", *FEW, "--cost", "100 + 0 * p")
    width = document["range"]["to"] - document["range"]["from"]
    for one in document["performers"][1:]:
        mean = one["impurity_mass"]["value"] / width
        assert one["average_marginal_cost"]["value"] == pytest.approx(100 * mean, rel=1e-6)


def test_checks_are_part_of_the_document_unless_left_out(found: Found) -> None:
    document = found("gold", "trials.csv", *COLUMNS, *QUICK)
    assert {"wizards", "convergence"} <= document.keys()
    assert not {"wizards", "convergence"} & found("gold", "trials.csv", *FEW).keys()


def test_the_bundled_study_names_the_known_crossing(demur: Demur) -> None:
    done = demur(
        "gold",
        str(wizards_of_corpora().folder / "trials.csv"),
        *COLUMNS,
        "--no-checks",
        "--replicates",
        "100",
        "--quiet",
    )
    assert done.returncode == 0, done.stderr
    first = done.stdout.splitlines()[0]
    assert first.startswith("Of A and B, by distance from the gold standard, prefer A between ")
    assert " and B between " in first or " and B above " in first
    assert "Their impurities cross at " in done.stdout
    assert "Performers, over" not in done.stdout
    assert done.stderr == ""


def test_tables_and_notes_are_shown_unless_quiet(demur: Demur) -> None:
    shown = demur("gold", "trials.csv", *FEW)
    assert shown.returncode == 0
    for title in ("Performers, over", "Nearer the gold standard", "Curves"):
        assert title in shown.stdout
    assert "note: every integral is over" in shown.stderr
    assert "nothing is extrapolated" in shown.stderr
    assert "resampled 50 times (seed 0)" in shown.stderr


def test_every_format_is_written(demur: Demur, tmp_path: Path) -> None:
    names = [f"out.{ending}" for ending in ("html", "md", "csv", "parquet", "svg", "png", "json")]
    outputs = [part for name in names for part in ("-o", name)]
    done = demur("gold", "trials.csv", *FEW, "--cost", "cost.csv", *outputs)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "out.html").read_text()
    assert "How far from the gold standard" in page
    assert "Intellectual complexity" in page
    assert "Performers, over" in (tmp_path / "out.md").read_text()
    curves = pl.read_csv(tmp_path / "out.csv")
    assert curves.columns == ["performer", "role", "x", "y", "low", "high"]
    assert curves["performer"].unique(maintain_order=True).to_list() == ["wizards", "A", "B"]
    assert pl.read_parquet(tmp_path / "out.parquet").shape == curves.shape
    assert (tmp_path / "out.svg").read_text().startswith("<svg")
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((tmp_path / "out.json").read_text())["complexity"]["value"] > 0


FAIL = {
    "impurity_mass > 0.2": "gate: A: impurity_mass > 0.2 holds: it is 0.",
    "complexity < 50%": "gate: trials: complexity < 50% holds: it is 0.",
    "relative_mass > 0.1": "gate: B: relative_mass > 0.1 holds: it is 0.",
}
PASS = ("impurity_mass.low > 0.9", "complexity > 0.5", "r2 < 0", "mass_difference > 1")


@pytest.mark.parametrize(("gates", "code"), [(FAIL, 1), (PASS, 0)], ids=["fail", "pass"])
def test_gates(demur: Demur, gates: Iterable[str], code: int) -> None:
    conditions = [part for gate in gates for part in ("--fail-if", gate)]
    done = demur("gold", "trials.csv", *FEW, "--quiet", *conditions)
    assert done.returncode == code, done.stderr
    assert all(said in done.stderr for said in (FAIL.values() if code else ()))
    assert code or "gate:" not in done.stderr
    assert done.stdout


def test_a_gate_on_cost_is_asked_of_every_system(demur: Demur) -> None:
    done = demur("gold", "trials.csv", *FEW, "--cost", "cost.csv", "--quiet", "--fail-if", "average_marginal_cost > 0")
    assert done.returncode == 1
    assert [line.split(":")[1].strip() for line in done.stderr.splitlines()] == ["A", "B"]


def test_an_undefined_complexity_passes_no_gate(demur: Demur, study: Path, tmp_path: Path) -> None:
    pl.read_csv(study).with_columns(score=5 + 3 * pl.col("completed") - pl.col("wer")).write_csv(
        tmp_path / "scores.csv"
    )
    arguments = ("gold", "scores.csv", "--x", "wer", "--y", "score", *QUICK, "--no-checks")
    done = demur(*arguments, "--fail-if", "complexity > 0.5")
    assert done.returncode == 1
    assert "complexity is undefined, so the gate" in done.stderr
    assert "score has no upper bound; intellectual complexity needs one" in done.stderr


def test_several_files_are_several_studies(found: Found, demur: Demur, tmp_path: Path) -> None:
    write_study(tmp_path / "other.csv", seed=2)
    document = found("gold", "trials.csv", "other.csv", *FEW)
    assert [one["study"] for one in document["studies"]] == ["other", "trials"]
    assert [(one["study"], one["system"]) for one in document["domains"]] == [
        (name, system) for name in ("other", "trials") for system in "AB"
    ]
    alone = found("gold", "trials.csv", *FEW)
    assert document["studies"][1]["performers"] == alone["performers"]
    gate = ("--fail-if", "complexity > 0")
    shown = demur("gold", "trials.csv", "other.csv", *FEW, "-o", "d.html", "-o", "d.csv", *gate)
    assert shown.returncode == 1, shown.stderr
    gates = [line for line in shown.stderr.splitlines() if line.startswith("gate:")]
    assert [line.split(":")[1].strip() for line in gates] == ["other", "trials"]
    assert "Across domains" in shown.stdout
    assert "comes out hardest for its gold standard" in shown.stdout
    assert "Across domains" in (tmp_path / "d.html").read_text()
    assert pl.read_csv(tmp_path / "d.csv").height == 4


def test_a_column_study_divides_one_file(found: Found, study: Path, tmp_path: Path) -> None:
    write_study(tmp_path / "other.csv", seed=2)
    parts = [pl.read_csv(path).with_columns(study=pl.lit(path.stem)) for path in (study, tmp_path / "other.csv")]
    pl.concat(parts).write_parquet(tmp_path / "both.parquet")
    document = found("gold", "both.parquet", *FEW)
    apart = found("gold", "trials.csv", "other.csv", *FEW)
    assert document["domains"] == apart["domains"]


def test_trials_come_from_standard_input(study: Path, tmp_path: Path) -> None:
    done = run_in(tmp_path, "gold", "-", *FEW, "--json", piped=study.read_text())
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["performers"][1]["performer"] == "A"


def test_rows_are_kept_where_a_column_has_a_value(found: Found, study: Path, tmp_path: Path) -> None:
    table = pl.read_csv(study).with_columns(room=pl.lit("quiet"))
    pl.concat([table, table.with_columns(room=pl.lit("loud"), completed=1 - pl.col("completed"))]).write_csv(
        tmp_path / "rooms.csv"
    )
    document = found("gold", "rooms.csv", *FEW, "--where", "room=quiet")
    assert document["performers"] == found("gold", "trials.csv", *FEW)["performers"]
    assert any("kept where room is quiet" in note for note in document["notes"])


def test_columns_and_gold_may_go_by_other_names(found: Found, study: Path, tmp_path: Path) -> None:
    renamed = pl.read_csv(study).rename({"performer": "who", "subject": "caller"}).drop("role")
    renamed.with_columns(pl.col("who").replace("wizards", "experts")).write_csv(tmp_path / "renamed.csv")
    names = ("--map", "performer=who", "--map", "subject=caller", "--gold", "experts")
    document = found("gold", "renamed.csv", *FEW, *names)
    plain = found("gold", "trials.csv", *FEW)
    assert document["performers"][0]["performer"] == "experts"
    assert document["complexity"] == plain["complexity"]
    assert document["performers"][1:] == plain["performers"][1:]


def test_kinds_of_curves_are_chosen_for_all_and_for_one(found: Found) -> None:
    document = found("gold", "trials.csv", *FEW, "--fit", "logistic", "--fit", "A=linear")
    assert [one["fit"] for one in document["performers"]] == ["logistic", "linear", "logistic"]
    mixed = found("gold", "trials.csv", *FEW, "--fit", "spline", "--fit", "A=polynomial", "--fit", "B=isotonic")
    assert [one["fit"] for one in mixed["performers"]] == ["spline", "polynomial", "isotonic"]
    auto = found("gold", "trials.csv", *FEW, "--fit", "auto")
    assert auto["performers"] == found("gold", "trials.csv", *FEW)["performers"]


def test_a_range_is_read_alone(found: Found) -> None:
    document = found("gold", "trials.csv", *FEW, "--range", "20%:0.5")
    assert document["range"] == {"from": 0.2, "to": 0.5}
    whole = found("gold", "trials.csv", *FEW)
    for one, other in zip(document["performers"][1:], whole["performers"][1:], strict=True):
        assert one["impurity_mass"]["value"] < other["impurity_mass"]["value"]


def test_components_are_taken_apart(demur: Demur, tmp_path: Path) -> None:
    lesions = str(wizards_of_corpora().folder / "lesions.csv")
    shown = demur("gold", lesions, *FEW, "--components", "-o", "lesions.json")
    assert shown.returncode == 0, shown.stderr
    document = json.loads((tmp_path / "lesions.json").read_text())
    (apart,) = document["components"]
    assert apart["system"] == "guide"
    assert [one["components"] for one in apart["masses"]] == [[], ["confirm"], ["spell"], ["confirm", "spell"]]
    kinds = [one["kind"] for one in apart["effects"]]
    assert kinds == ["lesion"] * 4 + ["main"] * 2 + ["interaction"]
    assert apart["missing"] == []
    assert [one["components"] for one in document["performers"][1:]] == [one["components"] for one in apart["masses"]]
    assert "guide: spell brings it nearer the gold standard" in shown.stdout
    assert "without confirm (spell on)" in shown.stdout


def test_seeds_reproduce_a_run(demur: Demur, found: Found) -> None:
    first, again = (demur("gold", "trials.csv", *FEW, "--json", "--seed", "3").stdout for _ in range(2))
    assert first == again
    assert json.loads(first)["performers"] != found("gold", "trials.csv", *FEW)["performers"]


PLAN = ("plan", "trials.csv", *COLUMNS, "--subjects", "6,12", "--trials", "10", "--studies", "20")


def test_a_plan_says_what_each_design_would_give(demur: Demur, tmp_path: Path) -> None:
    done = demur(*PLAN, "-o", "plan.json", "-o", "plan.html", "-o", "plan.csv", "-o", "plan.svg")
    assert done.returncode == 0, done.stderr
    document = json.loads((tmp_path / "plan.json").read_text())
    sizes = [(one["subjects"], one["trials"]) for one in document["designs"]]
    assert sizes == [(6, 10), (12, 10)]
    assert "Designs" in done.stdout
    assert pl.read_csv(tmp_path / "plan.csv").height >= 2
    assert (tmp_path / "plan.svg").read_text().startswith("<svg")
