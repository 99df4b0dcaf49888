"""Systems compared where their rows are: the values of memory, and standard errors by bucket or from a join by id."""

import numpy as np
import polars as pl
import pytest

import demur
from demur.errors import DataError, UsageError
from demur.returns.comparison import counted
from demur.returns.verify import other_answers, sample_log
from engines.test_lake import lake

ROWS = 600
ONE = sample_log(ROWS, seed=5).drop("weight").with_columns(pl.col("confidence").round(2))
TWO = other_answers(ONE)
SAMPLING = {"replicates": 100, "seed": 1}


def lakes(folder, one=ONE, two=TWO):
    return [str(lake(folder / name, rows, parts=2)) for name, rows in (("one", one), ("two", two))]


def in_memory(one=ONE, two=TWO, **options):
    return demur.compare({"one": one, "two": two}, **SAMPLING, **options)


def width(pair):
    return np.median(pair.band.high - pair.band.low)


@pytest.mark.parametrize("engine", ["polars", "duckdb"])  # on Spark `demur verify-engine` compares
def test_a_joined_comparison_is_that_of_memory(tmp_path, engine):
    found = demur.compare(*lakes(tmp_path), engine=engine, **SAMPLING)
    expected = in_memory()
    (pair,), (other,) = found.pairs, expected.pairs
    assert pair.verdict == other.verdict
    assert pair.mcnemar == other.mcnemar
    for kind in ("area", "right"):
        one, two = getattr(pair, kind), getattr(other, kind)
        assert one.value == two.value
        assert one.estimate.error == pytest.approx(two.estimate.error, rel=1e-9)
        assert one.estimate.freedom == two.estimate.freedom
    assert np.array_equal(pair.band.difference, other.band.difference)
    assert width(pair) == pytest.approx(width(other), rel=0.15)
    assert [one.system for one in found.evaluations] == ["one", "two"]
    assert [one.rank for one in found.leaderboard.standings] == [one.rank for one in expected.leaderboard.standings]


@pytest.mark.parametrize(("engine", "talk"), [("polars", True), ("polars", False), ("duckdb", False)])
def test_differences_by_bucket_have_the_values_of_memory_and_about_its_errors(tmp_path, monkeypatch, engine, talk):
    one, two = (rows if talk else rows.drop("dialogue") for rows in (ONE, TWO))
    monkeypatch.setattr(counted, "JOIN_UP_TO", 0)
    found = demur.compare(*lakes(tmp_path, one, two), engine=engine, **SAMPLING)
    (pair,), (other,) = found.pairs, in_memory(one, two).pairs
    assert (pair.area.value, pair.right.value) == (other.area.value, other.right.value)
    assert pair.area.estimate.error == pytest.approx(other.area.estimate.error, rel=0.25)
    assert width(pair) == pytest.approx(width(other), rel=0.2)
    assert "`join`" in pair.mcnemar
    assert "buckets of hashed " + ("dialogues" if talk else "ids") in found.notes[1]


def test_where_each_dialogue_has_a_bucket_to_itself_standard_errors_are_those_of_memory(monkeypatch):
    monkeypatch.setattr(counted, "JOIN_UP_TO", 0)
    twenty = pl.concat_str(pl.lit("d"), pl.int_range(pl.len()) % 20)
    one, two = (rows.with_columns(dialogue=twenty) for rows in (ONE, TWO))
    found = demur.compare({"one": one.lazy(), "two": two.lazy()}, **SAMPLING)
    (pair,), (other,) = found.pairs, in_memory(one, two).pairs
    assert pair.units == other.units == 20
    assert pair.area.estimate.error == pytest.approx(other.area.estimate.error, rel=1e-9)
    assert pair.right.estimate.error == pytest.approx(other.right.estimate.error, rel=1e-9)


def test_a_column_names_systems_within_one_lake_and_ids_may_have_another_name(tmp_path):
    named = pl.concat([ONE.with_columns(system=pl.lit("one")), TWO.with_columns(system=pl.lit("two"))])
    log = str(lake(tmp_path / "log", named.rename({"id": "question"})))
    found = demur.compare(log, pair_by="question", systems=("two", "one"), **SAMPLING)
    (pair,), (other,) = found.pairs, in_memory().pairs
    assert (pair.a, pair.b, pair.area.value) == ("two", "one", -other.area.value)
    assert pair.area.estimate.error == pytest.approx(other.area.estimate.error, rel=1e-9)


def test_many_systems_are_ranked_as_in_memory(tmp_path):
    logs = {f"s{k}": ONE.with_columns(confidence=pl.col("confidence").shift(k).fill_null(0.5)) for k in range(7)}
    folders = [str(lake(tmp_path / name, rows, parts=1)) for name, rows in logs.items()]
    found, expected = demur.compare(*folders, **SAMPLING), demur.compare(logs, **SAMPLING)
    board, other = found.leaderboard, expected.leaderboard
    assert [one.overall.value for one in board.pairs] == [one.overall.value for one in other.pairs]
    assert board.ranked[0].system == other.ranked[0].system == "s0"
    assert len(found.pairs) == 6


def test_unpaired_systems_and_columns_of_confidences_are_compared_too(tmp_path):
    folders = lakes(tmp_path, ONE.drop("id"), TWO.drop("id"))
    found = demur.compare(*folders, **SAMPLING)
    (pair,), (other,) = found.pairs, in_memory(ONE.drop("id"), TWO.drop("id")).pairs
    assert not pair.paired
    assert pair.area.value == other.area.value
    assert pair.area.estimate.error == pytest.approx(other.area.estimate.error, rel=0.25)
    both = str(lake(tmp_path / "both", ONE.with_columns(other=1 - pl.col("confidence"))))
    assert [one.system for one in demur.compare(both, confidence=("confidence", "other"), **SAMPLING).evaluations] == [
        "both:confidence",
        "both:other",
    ]


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda rows: rows.tail(-1), "do not have the same ids: 600 and 599 rows, which differ in 1 of 1,024 buckets"),
        (lambda rows: rows.with_columns(dialogue=pl.col("dialogue").reverse()), "same ids, but in other dialogues"),
        (lambda rows: rows.with_columns(target=pl.col("target").shift(1).fill_null("x")), "an id has one target here"),
        (lambda rows: rows.drop("dialogue"), "one has dialogues and the other has none"),
    ],
)
def test_systems_with_other_inputs_are_refused(change, rule):
    with pytest.raises(DataError, match=rule):
        demur.compare({"one": ONE.lazy(), "two": change(TWO).lazy()}, **SAMPLING)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"matched": True}, "`matched` needs `engine` memory"),
        ({"pair_by": "row"}, "`pair_by` takes one column inside an engine"),
        ({"join": True, "unpaired": True}, "`join` pairs answers by id"),
    ],
)
def test_what_an_engine_cannot_do_is_refused(options, rule):
    with pytest.raises(UsageError, match=rule):
        demur.compare({"one": ONE.lazy(), "two": TWO.lazy()}, **options)


def test_a_repeated_id_is_refused_where_answers_are_joined():
    twice = [pl.concat([rows, rows.head(1)]).lazy() for rows in (ONE, TWO)]
    with pytest.raises(DataError, match="an id occurs more than once in a system"):
        demur.compare(dict(zip(("one", "two"), twice, strict=True)), **SAMPLING)


def test_a_dialogue_with_a_tenth_of_the_rows_is_compared_with_about_the_errors_of_memory(tmp_path, monkeypatch):
    long = pl.when(pl.int_range(pl.len()) % 10 == 0).then(pl.lit("long")).otherwise("dialogue")
    one, two = (rows.with_columns(dialogue=long) for rows in (ONE, TWO))
    monkeypatch.setattr(counted, "JOIN_UP_TO", 0)
    (pair,), (other,) = demur.compare(*lakes(tmp_path, one, two), **SAMPLING).pairs, in_memory(one, two).pairs
    assert (pair.area.value, pair.right.value) == (other.area.value, other.right.value)
    assert pair.area.estimate.error == pytest.approx(other.area.estimate.error, rel=0.25)
    assert width(pair) == pytest.approx(width(other), rel=0.25)
