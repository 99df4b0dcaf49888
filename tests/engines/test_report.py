"""A report of lakes has the numbers of the same rows in memory, and names what an engine cannot give."""

from functools import cache

import polars as pl
import pytest

import demur
from demur.errors import DataError, UsageError
from demur.returns.verify import other_answers, sample_log
from engines.test_lake import flipped, lake

ROWS = 600
DAY = pl.concat_str(pl.lit("2026-01-0"), (pl.int_range(pl.len()) // 100 + 1).cast(pl.String))
ONE = (
    sample_log(ROWS, seed=5)
    .drop("weight", "dialogue")
    .with_columns(pl.col("confidence").round(2), text=pl.concat_str(pl.lit("say "), "id"), date=DAY)
)
TWO = other_answers(ONE)
TALK = sample_log(3000, seed=6).drop("weight")
HOW = {"replicates": 50}
SAME = ("thresholds", "systems", "leaderboard", "slices", "calibration", "examples")
"""Parts of a report on independent rows that are those of memory, number by number."""


def lakes(folder, *systems):
    return [str(lake(folder / f"s{place}", rows, parts=2)) for place, rows in enumerate(systems)]


def in_memory(*systems):
    return demur.report({f"s{place}": rows for place, rows in enumerate(systems)}, **HOW).to_dict()


@cache
def both_in_memory():
    return in_memory(ONE, TWO)


def rounded(value):
    """Numbers to ten digits: engines add fractions in another order."""
    if isinstance(value, dict):
        return {name: rounded(part) for name, part in value.items()}
    if isinstance(value, list):
        return [rounded(part) for part in value]
    return float(f"{value:.10g}") if isinstance(value, float) else value


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_a_report_of_lakes_has_the_numbers_of_memory(tmp_path, engine):
    found = demur.report(*lakes(tmp_path, ONE, TWO), engine=engine, **HOW).to_dict()
    expected = both_in_memory()
    assert {*expected} <= {*found}
    for part in SAME:
        assert rounded(found[part]) == rounded(expected[part]), part
    assert found["verdict"] == expected["verdict"]
    (pair,), (other,) = found["pairs"], expected["pairs"]
    for part in ("augrc_difference", "right_answers_difference", "mcnemar"):
        assert rounded(pair[part]) == rounded(other[part])
    for one, two in zip(found["drift"], expected["drift"], strict=True):
        assert (one["old"], one["new"]) == (two["old"], two["new"])
        assert one["confidence"]["mean"]["value"] == pytest.approx(two["confidence"]["mean"]["value"])
    assert found["not_in_this_report"] == {"errors by the place of a row": "rows of a lake have no order"}


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_slices_of_dialogues_have_the_rates_of_memory_and_about_its_errors(tmp_path, engine):
    talk = TALK.with_columns(pl.col("confidence").round(2))
    found = demur.report(*lakes(tmp_path, talk), engine=engine, **HOW).to_dict()
    tests, expected = (one["slices"]["tests"] for one in (found, in_memory(talk)))
    by_part = {(one["value"], one["what"]): one for one in tests}
    assert by_part.keys() == {(one["value"], one["what"]) for one in expected}
    for other in expected:
        one = by_part[other["value"], other["what"]]
        assert one["n"] == other["n"]
        assert one["inside"] == pytest.approx(other["inside"], rel=1e-12)
        assert one["outside"] == pytest.approx(other["outside"], rel=1e-12)
        assert one["high"] - one["low"] == pytest.approx(other["high"] - other["low"], rel=0.15)
    assert "recalibration of s0" in found["not_in_this_report"]


def test_slices_with_as_many_confidences_as_rows_keep_their_rates_and_widths(tmp_path):
    assert TALK["confidence"].n_unique() > 1024  # so that buckets join confidences
    found = demur.report(*lakes(tmp_path, TALK), **HOW).to_dict()["slices"]["tests"]
    by_part = {(one["value"], one["what"]): one for one in found}
    for other in in_memory(TALK)["slices"]["tests"]:
        one = by_part[other["value"], other["what"]]
        assert one["difference"] == pytest.approx(other["difference"], abs=1e-9)
        assert one["high"] - one["low"] == pytest.approx(other["high"] - other["low"], rel=0.15)


def test_examples_of_lists_of_labels_and_of_answers_marked_right_are_those_of_memory(tmp_path):
    several = ONE.with_columns(
        target=pl.when(pl.int_range(pl.len()) % 3 == 0)
        .then(pl.concat_list("target", pl.lit("another")))
        .otherwise(pl.concat_list("target"))
    )
    marked = ONE.with_columns(correct=pl.col("target") == pl.col("prediction")).drop("target")
    for name, rows in (("several", several), ("marked", marked)):
        (tmp_path / name).mkdir()
        found = demur.report(*lakes(tmp_path / name, rows), engine="duckdb", **HOW).to_dict()
        assert found["examples"] == in_memory(rows)["examples"]


def test_lazy_frames_and_a_table_of_another_kind_make_one_report():
    values = {"performer": ["gold"] * 3 + ["a"] * 3, "x": [1.0, 2, 3] * 2, "y": [1, 1, 0, 1, 0, 0]}
    trials = pl.DataFrame(values)
    found = demur.report(ONE.lazy(), trials, kinds={}, x="x", y="y", **HOW)
    assert found.title == "Report on system"
    assert {"systems", "gold"} <= found.to_dict().keys()
    assert found.to_dict()["systems"][0]["n"] == ROWS


def test_systems_with_other_inputs_are_compared_unpaired_and_it_is_said(tmp_path):
    found = demur.report(*lakes(tmp_path, ONE, TWO.head(500)), **HOW).to_dict()
    assert found["pairs"][0]["paired"] is False
    assert "they do not have the same ids" in found["not_in_this_report"]["pairs of answers"]


def test_what_an_engine_cannot_give_is_named(tmp_path):
    rows = ONE.with_columns(share=pl.Series([0.25, 0.5] * (ROWS // 2)), nbest=pl.lit("[]"))
    parts = tmp_path / "disagree"
    parts.mkdir()
    rows.head(300).write_parquet(parts / "a.parquet")
    rows.tail(300).with_columns(share=pl.lit("much")).write_parquet(parts / "b.parquet")
    found = demur.report(*lakes(tmp_path, rows), **HOW).to_dict()["not_in_this_report"]
    assert "fractions" in found["slices by share"]
    assert "`nbest`" in found["where right labels stand in lists"]
    both = demur.report(str(parts), **HOW)
    assert 'has column "share"' in both.to_dict()["not_in_this_report"]["slices and halves by time"]
    assert "Not in this report" in both.markdown()


def test_answers_in_files_beside_answers_in_lakes_are_refused(tmp_path):
    ONE.write_csv(tmp_path / "log.csv")
    with pytest.raises(UsageError, match="give lakes, or files"):
        demur.report(*lakes(tmp_path, ONE), str(tmp_path / "log.csv"), **HOW)
    with pytest.raises(UsageError, match="none was given"):
        demur.report(str(tmp_path / "log.csv"), engine="polars", **HOW)


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_a_part_with_damaged_pages_is_refused_by_name(tmp_path, engine):
    folders = lakes(tmp_path, ONE, TWO)
    part = tmp_path / "s1" / "1.parquet"
    part.write_bytes(flipped(part.read_bytes()))
    for question in (demur.report, demur.compare):
        with pytest.raises(DataError, match=r"s1/1\.parquet .*damaged"):
            question(*folders, engine=engine, **HOW)


def test_slices_with_one_dialogue_of_a_tenth_of_the_rows_have_about_the_widths_of_memory(tmp_path):
    place = pl.int_range(pl.len())
    one = pl.when(place % 10 == 0).then(pl.lit("long")).otherwise("dialogue")
    skewed = TALK.with_columns(pl.col("confidence").round(2), dialogue=one)
    found = demur.report(*lakes(tmp_path, skewed), **HOW).to_dict()["slices"]["tests"]
    widths = {(one["value"], one["what"]): one["high"] - one["low"] for one in found}
    for other in in_memory(skewed)["slices"]["tests"]:
        assert widths[other["value"], other["what"]] == pytest.approx(other["high"] - other["low"], rel=0.2)
