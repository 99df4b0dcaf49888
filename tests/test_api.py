import json
from pathlib import Path

import polars as pl
import pytest

import demur
from apps.conftest import log


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    return [log(tmp_path / "good.jsonl", n=300, skill=3, level=2), log(tmp_path / "poor.jsonl", n=300, skill=0.5)]


def test_files_frames_and_rows_give_the_same_scores(paths: list[Path]) -> None:
    frame = pl.read_ndjson(paths[0])
    scores = [
        demur.score(one)[0].figures for one in (paths[0], frame, frame.to_pandas(), frame.to_arrow(), frame.to_dicts())
    ]
    assert all(figures == scores[0] for figures in scores)


def test_a_dict_names_the_systems(paths: list[Path]) -> None:
    frames = [pl.read_ndjson(path) for path in paths]
    comparison = demur.compare({"new": paths[0], "old": frames[1]})
    assert (comparison.pairs[0].a, comparison.pairs[0].b) == ("new", "old")
    assert comparison.pairs[0].verdict == "a dominates"
    assert demur.compare(*frames).pairs[0].a == "system 1"


def test_an_option_with_a_slip_names_the_nearest(paths: list[Path]) -> None:
    with pytest.raises(demur.UsageError, match=r'no option "levle" here\. Did you mean "level"'):
        demur.score(paths[0], levle=0.9)
    with pytest.raises(demur.UsageError, match="nothing to read"):
        demur.read()
    with pytest.raises(demur.UsageError, match="not both"):
        demur.read(paths[0], reading=demur.Reading(), keep=("x",))


def test_scores_show_themselves_together_and_as_a_table(paths: list[Path]) -> None:
    scores = demur.score(*paths)
    assert len(scores) == 2
    table = scores.frame()
    assert table.filter(system="good", measure="augrc")["value"].item() == scores[0].figures["augrc"].value
    assert "good" in scores._repr_html_()
    assert json.loads(json.dumps(scores.to_dict(), allow_nan=False))["systems"][1]["system"] == "poor"
    assert scores.chart().to_dict()["description"]


def test_classes_show_themselves_together_and_as_a_table(paths: list[Path]) -> None:
    reports = demur.classes(*paths)
    assert set(reports.frame()["class"]) == {"no", "yes"}
    assert "poor" in reports._repr_html_()


def test_a_threshold_is_chosen_by_exactly_one_rule(paths: list[Path]) -> None:
    assert demur.threshold(paths[0], max_nonreturn=0.2).nonreturn <= 0.2
    with pytest.raises(demur.UsageError, match="exactly one"):
        demur.threshold(paths[0], max_nonreturn=0.2, cost_ratio=0.1)
    with pytest.raises(demur.UsageError, match="--delta goes with --max-error"):
        demur.threshold(paths[0], max_nonreturn=0.2, delta=0.1)
    with pytest.raises(demur.UsageError, match="belongs to one system"):
        demur.threshold(*paths, max_nonreturn=0.2)


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'scores'"):
        demur.scores  # noqa: B018
    assert set(dir(demur)) >= {"score", "compare", "threshold", "classes", "read"}
