"""Studies against a gold standard from Python: what comes in, what comes out, and that the command says the same."""

import inspect
import json
import shutil
from dataclasses import fields
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import demur
from commands import runner
from demur.apps.cli import options
from demur.apps.cli.gold_commands import gold as gold_command
from demur.apps.cli.gold_commands import plan as plan_command
from demur.gold_standard.presentation import of_gold
from demur.lab import wizards as lab_wizards
from demur.lab.corpora import wizards

QUICK: dict[str, Any] = {"x": "wer", "y": "completed", "replicates": 50, "checks": False}


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A small study: six wizards, two systems, six callers; and what performance is worth."""
    shutil.copy(wizards().folder / "cost.csv", tmp_path)
    lab_wizards.simulate(1, wizards=6, callers=6, trials=20).write_csv(tmp_path / "trials.csv")
    return tmp_path / "trials.csv"


ALIKE: dict[str, tuple[list[str], dict[str, Any]]] = {
    "plain": ([], {}),
    "seed": (["--seed", "3", "--level", "0.8"], {"seed": 3, "level": 0.8}),
    "fit": (["--fit", "polynomial", "--degree", "2"], {"fit": "polynomial", "degree": 2}),
    "fits": (["--fit", "A=linear"], {"fit": {"A": "linear"}}),
    "direction": (["--direction", "any"], {"direction": "any"}),
    "range": (["--range", "0.2:0.7"], {"within": (0.2, 0.7)}),
    "cost": (["--cost", "cost.csv", "--gain", "0.4:0.6"], {"cost": "cost.csv", "gain": (0.4, 0.6)}),
    "components": (["--components"], {"components": True}),
    "gold": (["--gold", "B"], {"gold": "B"}),
    "bounds": (["--lower", "-1", "--upper", "2"], {"lower": -1, "upper": 2}),
    "map": (["--map", "performer=who"], {"columns": {"performer": "who"}}),
    "where": (["--where", "half=1"], {"where": {"half": 1}}),
}


@pytest.mark.parametrize(("arguments", "given"), ALIKE.values(), ids=ALIKE)
def test_studies_give_the_same_in_python_and_by_command(
    study: Path,
    arguments: list[str],
    given: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    table = pl.read_csv(study).with_columns(half=pl.col("subject").str.tail(1).cast(pl.Int64) % 2)
    (table.rename({"performer": "who"}) if "map" in " ".join(arguments) else table).write_csv(study)
    inside = runner(study.parent, monkeypatch, capsys)
    columns = ("--x", "wer", "--y", "completed", "--replicates", "50", "--no-checks", "--json")
    done = inside("gold", study.name, *columns, *arguments)
    assert done.returncode == 0, done.stderr
    shown = of_gold(demur.gold(study.name, **{**QUICK, **given}))
    told = {"notes": list(shown.notes), "warnings": list(shown.warnings)}
    assert json.loads(done.stdout) == json.loads(json.dumps({**shown.document, **told}, allow_nan=False))


def test_trials_come_from_files_frames_rows_and_what_was_read(study: Path) -> None:
    frame = pl.read_csv(study)
    read = demur.read_trials(study, x="wer", y="completed")
    asked = {"replicates": 50, "checks": False}
    found = [
        demur.gold(one, **QUICK)[0].impurities[0].mass
        for one in (study, str(study), frame, frame.to_pandas(), frame.to_arrow(), frame.to_dicts())
    ]
    found += [demur.gold(one, **asked)[0].impurities[0].mass for one in (read, read[0])]
    assert all(one == found[0] for one in found)
    assert [one.study for one in read] == ["trials"]


def test_a_cost_is_a_file_an_expression_or_points(study: Path) -> None:
    points = pl.read_csv(study.parent / "cost.csv").rows()
    by_file, by_points = (demur.gold(study, cost=one, **QUICK)[0] for one in (study.parent / "cost.csv", points))
    assert by_file.costs == by_points.costs
    flat = demur.gold(study, cost="10 + 0 * p", **QUICK)[0]
    means = [10 * one.mass.value / flat.ground.width for one in flat.impurities]
    assert [one.average.value for one in flat.costs] == pytest.approx(means, rel=1e-6)


def test_several_studies_are_one_result(study: Path) -> None:
    found = demur.gold(study, wizards().folder / "trials.csv", **{**QUICK, "x": "wer"})
    assert len(found) == 2
    assert found.frame()["system"].to_list() == ["A", "B", "A", "B"]
    assert found.chart().to_dict()["description"]
    assert found[0].chart().to_dict()["description"]
    assert "Across domains" in found._repr_html_()


def test_slips_in_jobs_on_gold_standards_are_said(study: Path) -> None:
    columns = {"x": "wer", "y": "completed"}
    with pytest.raises(demur.UsageError, match=r'no option "levle" here\. Did you mean "level"'):
        demur.gold(study, **columns, levle=0.9)
    with pytest.raises(demur.UsageError, match="x and y name the columns"):
        demur.gold(study)
    with pytest.raises(demur.UsageError, match="read already take no options of reading"):
        demur.gold(demur.read_trials(study, **columns), upper=1)
    with pytest.raises(demur.UsageError, match=r'fit is one of auto, spline, .*; got "cubic"'):
        demur.gold(study, **columns, fit="cubic")
    with pytest.raises(demur.UsageError, match=r'fit is one of auto, spline, .*; got "cubic"'):
        demur.gold(study, **columns, fit={"A": "cubic"})
    with pytest.raises(demur.UsageError, match='direction is "harmful", "helpful" or "any"; got "up"'):
        demur.plan_gold(study, **columns, direction="up")
    with pytest.raises(demur.UsageError, match="the degree of a polynomial is 1 or more; got 0"):
        demur.gold(study, **columns, fit="polynomial", degree=0)
    with pytest.raises(demur.UsageError, match="intervals need two replicates or more; got 1"):
        demur.gold(study, **columns, replicates=1)
    with pytest.raises(demur.UsageError, match="a gain says where a cost is taken: give cost as well"):
        demur.gold(study, **columns, gain=(0.7, 0.8))
    with pytest.raises(demur.UsageError, match="several frames are put together with a column study"):
        demur.read_trials(pl.read_csv(study), pl.read_csv(study), **columns)
    with pytest.raises(demur.UsageError, match="a plan starts from one pilot; these are trials, trials"):
        demur.plan_gold((*demur.read_trials(study, **columns), *demur.read_trials(study, **columns)))


CALLED = {"map": "columns", "span": "within", "each": "trials_each"}


@pytest.mark.parametrize(
    ("command", "function", "unused"),
    [(gold_command, demur.gold, set()), (plan_command, demur.plan_gold, {"replicates"})],
    ids=["gold", "plan"],
)
def test_options_of_gold_commands_are_those_of_python(command: Any, function: Any, unused: set[str]) -> None:
    """`--map` is `columns`, `--range` is `within`; what is written belongs to the command alone."""
    groups = (options.TrialOptions, options.SamplingOptions)
    shared = {part.name for group in (*groups, options.OutputOptions) for part in fields(group)}
    own = set(inspect.signature(command).parameters) - shared - {"tables"}
    named = {CALLED.get(name, name) for name in own | {part.name for group in groups for part in fields(group)}}
    python = {
        name
        for one in (function, demur.read_trials)
        for name, parameter in inspect.signature(one).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    }
    assert named - unused == python
