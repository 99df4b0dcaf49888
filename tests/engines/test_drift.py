"""Drift of logs that an engine counted: the values of memory, and tests as by rows or about as by dialogues."""

import numpy as np
import polars as pl
import pytest

import demur
from demur.errors import UsageError
from demur.returns.drift import changes
from demur.returns.verify import sample_log
from engines.test_lake import _session, in_one_process, lake  # noqa: F401

DATED = sample_log(900, seed=5).with_columns(
    pl.col("confidence").round(2),
    date=pl.format("2026-03-0{}", pl.int_range(pl.len()) // 300 + 1),
)
TALK = DATED.drop("weight")
PLAIN = TALK.drop("dialogue")
OPTIONS = {"by": "date", "split": "2026-03-02", "max_error": 0.3}
UNTESTED = ("answers.distance", "withheld", "failed", "out_of_scope")


def p_values(found):
    """The p-value and the standard error of every change, before they are corrected for the number of tests."""
    return {
        name: (one.test.p if hasattr(one.test, "p") else one.test.estimate.p)
        for name, one in found.changes.items()
        if one.test is not None and name != "answers.distance"
    }


def values(found):
    return {name: one.difference.value for name, one in found.changes.items() if name != "answers.distance"}


@in_one_process
def test_independent_rows_are_tested_as_in_memory(tmp_path, engine):
    found = demur.drift(str(lake(tmp_path / "log", PLAIN)), engine=engine, **OPTIONS)
    expected = demur.drift(PLAIN, **OPTIONS)
    assert values(found) == pytest.approx(values(expected), nan_ok=True)
    assert p_values(found) == pytest.approx(p_values(expected))
    assert found.threshold == expected.threshold
    old, new = (one.to_dict() for one in (found, expected))
    assert (old["old"], old["new"]) == (new["old"], new["new"])
    assert old["promise"]["value"] == new["promise"]["value"]
    assert [one.value for one in found.ece] == pytest.approx([one.value for one in expected.ece])


@pytest.mark.parametrize("rows", [TALK, DATED], ids=["dialogues", "weights"])
def test_dialogues_are_tested_by_bucket_with_the_values_of_memory(rows):
    found, expected = demur.drift(rows.lazy(), **OPTIONS), demur.drift(rows, **OPTIONS)
    mine, theirs = values(found), values(expected)
    assert {name: mine[name] for name in theirs if name not in UNTESTED} == pytest.approx(
        {name: theirs[name] for name in theirs if name not in UNTESTED}
    )
    for name in ("error", "augrc", "confidence.mean", "at_threshold.nonreturn"):
        errors = [one.changes[name].test.estimate.error for one in (found, expected)]
        assert errors[0] == pytest.approx(errors[1], rel=0.25), name
    assert "not by dialogue" in found.changes["failed"].difference.why
    assert found.promise.verdict == expected.promise.verdict


def test_days_that_watch_keeps_are_compared_without_their_logs(tmp_path):
    for (day,), part in PLAIN.partition_by("date", as_dict=True).items():
        (tmp_path / "days" / f"date={day}").mkdir(parents=True)
        part.drop("date").write_parquet(tmp_path / "days" / f"date={day}" / "log.parquet")
    demur.watch(tmp_path / "days", keep=tmp_path / "sweeps", replicates=50)
    sweeps = [tmp_path / "sweeps" / f"2026-03-0{day}.sweep" for day in (1, 2)]
    found = demur.drift(*sweeps, threshold=0.5)
    expected = demur.drift(*(PLAIN.filter(pl.col("date") == f"2026-03-0{day}") for day in (1, 2)), threshold=0.5)
    assert p_values(found) == pytest.approx(p_values(expected))
    with pytest.raises(UsageError, match="a sweep is not split"):
        demur.drift(sweeps[0], by="date")
    with pytest.raises(UsageError, match="one log is counted and the other is read"):
        demur.drift(sweeps[0], PLAIN)


def test_rows_too_many_to_write_out_are_dealt_into_buckets(monkeypatch):
    expected = demur.drift(PLAIN.lazy(), **OPTIONS)
    monkeypatch.setattr(changes, "MOST_DEALT", 0)
    found = demur.drift(PLAIN.lazy(), **OPTIONS)
    for name in ("error", "augrc", "confidence.mean", "confidence.distance"):
        assert found.changes[name].difference.value == pytest.approx(expected.changes[name].difference.value)
    errors = [one.changes["error"].test.estimate.error for one in (found, expected)]
    assert errors[0] == pytest.approx(errors[1], rel=0.15)
    assert np.isfinite(found.changes["confidence.distance"].difference.p)
