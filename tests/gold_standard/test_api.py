"""Studies against a gold standard from Python: what comes in and what comes out."""

import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import demur
from demur.lab import wizards as lab_wizards
from demur.lab.corpora import wizards

QUICK: dict[str, Any] = {"x": "wer", "y": "completed", "replicates": 50, "checks": False}


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A small study: six wizards, two systems, six callers; and what performance is worth."""
    shutil.copy(wizards().folder / "cost.csv", tmp_path)
    lab_wizards.simulate(1, wizards=6, callers=6, trials=20).write_csv(tmp_path / "trials.csv")
    return tmp_path / "trials.csv"


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
    points = pl.read_csv(study.parent / "cost.csv").drop("unit").rows()
    by_file, by_points = (demur.gold(study, cost=one, **QUICK)[0] for one in (study.parent / "cost.csv", points))
    assert [one.average for one in by_file.costs] == [one.average for one in by_points.costs]
    flat = demur.gold(study, cost="10 + 0 * p", **QUICK)[0]
    means = [10 * one.mass.value / flat.x_range.width for one in flat.impurities]
    assert [one.average.value for one in flat.costs] == pytest.approx(means, rel=1e-6)


def test_several_studies_are_one_result(study: Path) -> None:
    other = study.parent / "other.csv"
    lab_wizards.simulate(2, wizards=6, callers=6, trials=20).write_csv(other)
    found = demur.gold(study, other, **QUICK)
    assert len(found) == 2
    assert found.frame()["system"].to_list() == ["A", "B", "A", "B"]
    assert found.chart().to_dict()["description"]
    assert found[0].chart().to_dict()["description"]
    assert "Across domains" in found._repr_html_()


def test_slips_in_jobs_on_gold_standards_are_said(study: Path) -> None:
    columns = {"x": "wer", "y": "completed"}
    with pytest.raises(demur.UsageError, match=r'no option "levle" here\. Did you mean "level"'):
        demur.gold(study, **columns, levle=0.9)
    with pytest.raises(demur.UsageError, match="`x` and `y` name the columns"):
        demur.gold(study)
    with pytest.raises(demur.UsageError, match="read already take no options of reading"):
        demur.gold(demur.read_trials(study, **columns), upper=1)
    with pytest.raises(demur.UsageError, match=r'`fit` takes one of auto, spline, .*; got "cubic"'):
        demur.gold(study, **columns, fit="cubic")
    with pytest.raises(demur.UsageError, match=r"`fit` takes .* or a dict from performers"):
        demur.gold(study, **columns, fit={"A": "cubic"})
    with pytest.raises(demur.UsageError, match='`direction` is one of harmful, helpful, any; got "up"'):
        demur.plan_gold(study, **columns, direction="up")
    with pytest.raises(demur.UsageError, match="`degree` must be at least 1 and at most 9; got 0"):
        demur.gold(study, **columns, fit="polynomial", degree=0)
    with pytest.raises(demur.UsageError, match="`gain` says where a cost is taken: give `cost` as well"):
        demur.gold(study, **columns, gain=(0.7, 0.8))
    with pytest.raises(demur.UsageError, match="concatenate several frames, with a column study"):
        demur.read_trials(pl.read_csv(study), pl.read_csv(study), **columns)
    with pytest.raises(demur.UsageError, match="a plan starts from one pilot; these are trials, trials"):
        demur.plan_gold((*demur.read_trials(study, **columns), *demur.read_trials(study, **columns)))
