"""SLURP, where it lies beside the project: docs/gold_slurp.md, and what its remarks say.

Everything shown here is tested on made-up data as well. The figures are those that came out, not a target.
"""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import demur
from demur.gold_standard.study import GoldStudy
from test_docs import GOLD, blocks, run_console, run_python

DATA = Path(__file__).parents[3] / "shared" / "data" / "slurp" / "slurp_published_predictions.jsonl.gz"
QUICK: dict[str, Any] = {"x": "wer", "y": "correct", "within": (0, 0.5), "checks": False, "replicates": 100}

pytestmark = pytest.mark.skipif(not DATA.is_file(), reason="no ../shared/data/slurp beside the project")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the lines of the page have made its two tables."""
    made = tmp_path_factory.mktemp("slurp")
    (made / DATA.name).symlink_to(DATA)
    (lines,) = blocks("py", GOLD)
    run_python(lines, made)
    return made


@pytest.fixture(scope="module")
def answers() -> pl.DataFrame:
    return pl.read_ndjson(DATA, infer_schema_length=None)


@pytest.fixture(scope="module")
def by_recogniser(folder: Path) -> dict[str, GoldStudy]:
    return {study.trials.study: study for study in demur.gold(folder / "slurp.csv", **QUICK)}


@pytest.mark.parametrize("place", range(len(blocks("text", GOLD))))
def test_the_commands_of_the_page_print_what_it_shows(folder: Path, place: int) -> None:
    run_console(blocks("text", GOLD)[place], folder)


def test_the_page_counts_texts_recordings_and_right_answers(answers: pl.DataFrame) -> None:
    read = answers.filter(asr="gold")
    assert read["id"].n_unique() == 2_974
    assert {nlu: round(share, 3) for nlu, share in read.group_by("nlu").agg(pl.mean("correct")).rows()} == {
        "hermit": 0.848,
        "sfid": 0.822,
    }
    recordings = answers.filter(asr="multi", nlu="hermit")["recording_wer"]
    assert (len(recordings), (recordings > 1).sum()) == (13_077, 5)
    kept = recordings.filter(recordings <= 1)
    assert round((kept == 0).mean(), 2) == 0.71
    assert round((kept > 0.5).mean(), 2) == 0.02


def test_no_recording_comes_twice_for_a_system(answers: pl.DataFrame) -> None:
    assert not answers.select("nlu", "asr", "id", "file").is_duplicated().any()


def test_each_recording_has_the_answer_to_its_text_beside_it(folder: Path) -> None:
    rows = pl.read_csv(folder / "slurp.csv")
    sizes = dict(rows.group_by("study", "performer").len().select(pl.concat_str("study", "performer"), "len").rows())
    assert sizes["multigold text"] == sizes["multihermit"] == sizes["multisfid"] == 13_072
    gold = rows.filter(role="gold")
    assert gold.group_by("subject").agg(pl.col("correct").n_unique())["correct"].max() == 1


def test_the_gold_curve_falls_from_86_to_83_percent(by_recogniser: dict[str, GoldStudy]) -> None:
    import numpy as np

    ends = by_recogniser["multi"].gold.fit(np.array([0.0, 0.5]))
    assert ends.round(2).tolist() == [0.86, 0.83]
    hermit = by_recogniser["multi"].systems[0]
    assert hermit.fit(np.array([0.0])).round(2).tolist() == [0.82]


def test_nothing_is_above_the_upper_bound_and_the_rate_explains_little(by_recogniser: dict[str, GoldStudy]) -> None:
    for study in by_recogniser.values():
        assert [one.above.value for one in study.impurities] == [0, 0]
        assert max(one.r2 for one in study.performers) < 0.07
