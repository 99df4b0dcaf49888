import hashlib
import subprocess
import sys
from itertools import count

import duckdb
import narwhals as nw
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.core.engines.engine import (
    ENGINES,
    EngineFault,
    add_buckets,
    collect_frame,
    contains,
    engine_faults,
    engine_of,
    reason_of,
)

TEXTS = st.lists(st.none() | st.text(), min_size=1, max_size=30)
LISTS = st.lists(st.none() | st.lists(st.none() | st.sampled_from("abc"), max_size=3), min_size=1, max_size=20)


def in_polars(frame):
    return nw.from_native(frame.lazy())


CONNECTION = duckdb.connect()
PLACES = count()


def in_duckdb(frame):
    name = f"rows{next(PLACES)}"
    CONNECTION.register(name, frame.to_arrow())
    return nw.from_native(CONNECTION.sql(f"FROM {name}"))


HOLDERS = {"polars": in_polars, "duckdb": in_duckdb}
each_engine = pytest.mark.parametrize("held", HOLDERS.values(), ids=HOLDERS)


def bucket_of(text):
    return None if text is None else int(hashlib.md5(text.encode()).hexdigest()[:4], 16) % 1024


def number_of(text):
    return None if text is None else int(hashlib.md5(text.encode()).hexdigest()[4:12], 16)


def numbers(held, values, dtype=None):
    frame = pl.DataFrame({"row": range(len(values)), "d": pl.Series(values, dtype=dtype)})
    found = collect_frame(add_buckets(held(frame), "d", "bucket", least="odd least")).sort("row")
    assert found.columns == ["row", "d", "bucket", "odd least"]
    assert found.select("bucket", "odd least").dtypes == [pl.Int64] * 2
    assert found["bucket"].to_list() == buckets(held, values, dtype)
    return found["odd least"].to_list()


def buckets(held, values, dtype=None):
    frame = pl.DataFrame({"row": range(len(values)), "d": pl.Series(values, dtype=dtype)})
    return collect_frame(add_buckets(held(frame), "d", "bucket")).sort("row")["bucket"].to_list()


def test_an_engine_is_known_by_its_frames():
    assert [engine_of(held(pl.DataFrame({"a": [1]}))) for held in HOLDERS.values()] == list(HOLDERS)
    assert set(HOLDERS) < set(ENGINES)


@each_engine
def test_counts_and_sums_come_back_as_64_bit_integers(held):
    frame = held(pl.DataFrame({"a": [1, 2, None], "b": [0.5, 0.25, 0.25]}))
    totals = frame.select(n=nw.len(), filled=nw.col("a").count(), total=nw.col("a").sum(), share=nw.col("b").sum())
    expected = {"n": pl.Int64, "filled": pl.Int64, "total": pl.Int64, "share": pl.Float64}
    assert collect_frame(totals).schema == expected
    assert collect_frame(totals).row(0) == (3, 2, 3, 1.0)


def test_a_decimal_with_a_fraction_stays_one():
    relation = duckdb.sql("SELECT 1.25::DECIMAL(10, 2) AS part, 3::DECIMAL(10, 0) AS whole, 4::HUGEINT AS huge")
    assert collect_frame(nw.from_native(relation)).schema == {
        "part": pl.Decimal(10, 2),
        "whole": pl.Int64,
        "huge": pl.Int64,
    }


@pytest.mark.parametrize("native", [pl.DataFrame({"a": [1]}), pd.DataFrame({"a": [1]}), pa.table({"a": [1]})], ids=type)
def test_frames_in_memory_are_collected_too(native):
    assert collect_frame(nw.from_native(native)).to_dict(as_series=False) == {"a": [1]}


def test_what_polars_raises_is_told_in_one_line():
    broken = nw.from_native(pl.LazyFrame({"a": ["x"]}).select(pl.col("a").cast(pl.Int64)))
    with pytest.raises(
        EngineFault, match=r"^the rows cannot be read or counted: conversion from `str` to `i64` [^\n]*$"
    ):
        collect_frame(broken)


def test_what_duckdb_raises_is_told_in_one_line():
    broken = nw.from_native(duckdb.sql("SELECT 'x' AS a").select("a::INTEGER"))
    with pytest.raises(EngineFault, match=r"Conversion Error: Could not convert string 'x' to INT32[^\n]*$"):
        collect_frame(broken)


def test_a_file_that_vanished_is_told(tmp_path):
    path = tmp_path / "a.parquet"
    pl.DataFrame({"a": [1]}).write_parquet(path)
    frame = nw.from_native(pl.scan_parquet(path))
    path.unlink()
    with pytest.raises(EngineFault, match=r"No such file or directory.*a\.parquet"):
        collect_frame(frame)


def test_faults_of_our_own_are_not_laid_to_the_engine():
    def fail(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        collect_frame(nw.from_native(pl.LazyFrame({"a": [1]}).map_batches(fail)))


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("Cannot open file", "Cannot open file"),
        ("\n\nCannot open file\nmore", "Cannot open file"),
        ("", "ValueError"),
        (
            "An error occurred while calling o1.getResult.\n"
            ": org.apache.spark.SparkException: Exception thrown in awaitResult: \n"
            "\tat org.apache.spark.util.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:70)\n"
            "Caused by: org.apache.spark.SparkException: [FAILED_READ_FILE] Error in a.parquet.  SQLSTATE: KD001\n"
            "\t... 33 more",
            "[FAILED_READ_FILE] Error in a.parquet.",
        ),
        (
            "Job aborted due to stage failure: Task 1 in stage 0.0 failed 4 times, most recent failure: "
            "Lost task 1.3 in stage 0.0 (TID 7) (127.0.0.1 executor 1): java.lang.OutOfMemoryError: Java heap space\n"
            "\tat x",
            "Java heap space",
        ),
    ],
    ids=["plain", "lines", "nothing", "wrapped", "task"],
)
def test_the_reason_is_the_line_that_says_something(message, reason):
    assert reason_of(ValueError(message)) == reason


def test_no_engine_is_loaded_to_know_what_it_would_raise():
    code = "import sys; from demur.core.engines.engine import engine_faults; engine_faults(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"duckdb", "pyspark", "py4j", "pandas", "pyarrow"} & set(done.stdout.split())
    assert duckdb.Error in engine_faults()


@each_engine
@given(lists=LISTS, items=st.lists(st.none() | st.sampled_from("abcd"), min_size=20, max_size=20))
def test_a_list_contains_what_python_finds_in_it(held, lists, items):
    items = items[: len(lists)]
    schema = {"row": pl.Int64, "l": pl.List(pl.String), "i": pl.String}
    frame = pl.DataFrame({"row": range(len(lists)), "l": lists, "i": items}, schema=schema)
    found = collect_frame(contains(held(frame), "l", "i", "hit")).sort("row")["hit"].to_list()
    pairs = zip(lists, items, strict=True)
    assert found == [listed is not None and item is not None and item in listed for listed, item in pairs]


@each_engine
def test_numbers_in_a_list_are_found_by_their_digits(held):
    frame = held(pl.DataFrame({"l": [[1, 2]], "i": ["2"], "odd name": [2]}))
    assert collect_frame(contains(frame, "l", "i", "hit"))["hit"].to_list() == [True]
    assert collect_frame(contains(frame, "l", "odd name", "hit"))["hit"].to_list() == [True]


@each_engine
@given(values=TEXTS)
def test_a_text_has_the_same_bucket_in_every_engine(held, values):
    assert buckets(held, values, pl.String) == [bucket_of(text) for text in values]


@each_engine
@given(values=TEXTS)
def test_a_text_has_the_same_number_beside_its_bucket_in_every_engine(held, values):
    assert numbers(held, values, pl.String) == [number_of(text) for text in values]


@each_engine
def test_numbers_reach_through_the_whole_of_their_range(held):
    names = [f"d{place}" for place in range(2000)]
    found = numbers(held, names)
    assert found == [number_of(name) for name in names]
    assert min(found) < 2**24
    assert max(found) > 2**32 - 2**24


@each_engine
def test_the_number_may_take_the_place_of_a_column(held):
    frame = held(pl.DataFrame({"least": ["x"], "d": ["a"], "bucket": [7]}))
    found = collect_frame(add_buckets(frame, "d", "bucket", least="least").select("d", "bucket", "least"))
    assert found.row(0) == ("a", bucket_of("a"), number_of("a"))
    assert collect_frame(add_buckets(frame, "d", "b", least="d").select("b", "d")).row(0) == (
        bucket_of("a"),
        number_of("a"),
    )


@each_engine
def test_the_bucket_of_a_column_may_take_its_place(held):
    frame = held(pl.DataFrame({"d": ["a"], "e": [1]}))
    assert collect_frame(add_buckets(frame, "d", "d").select("d")).item() == bucket_of("a")


def test_runs_and_chunks_of_texts_do_not_matter():
    values = ["a", "a", None, None, "b", "a"] * 50_000
    frame = pl.concat([pl.DataFrame({"d": values}), pl.DataFrame({"d": values[:7]})], rechunk=False)
    found = collect_frame(add_buckets(in_polars(frame), "d", "bucket"))
    assert found["bucket"].to_list() == [bucket_of(text) for text in frame["d"]]


def test_spark_finds_and_buckets_as_polars_does(spark, tmp_path):
    texts = ["", "a", "é𝔘", None, "x" * 70, "a\tb\n"]
    frame = pl.DataFrame({"row": range(6), "d": texts})
    frame = frame.with_columns(l=pl.concat_list("d", pl.lit("z")), i=pl.when(pl.col("row") > 1).then("d"))
    frame.write_parquet(tmp_path / "a.parquet")

    def found(rows):
        rows = contains(add_buckets(rows, "d", "by text", least="the least"), "l", "i", "hit")
        return collect_frame(rows.select("row", "by text", "the least", "hit")).sort("row")

    here = found(in_polars(frame))
    assert here["by text"].to_list() == [bucket_of(text) for text in texts]
    assert here["the least"].to_list() == [number_of(text) for text in texts]
    assert found(nw.from_native(spark.read.parquet(str(tmp_path)))).equals(here)


def test_what_spark_raises_is_told_in_one_line(spark):
    broken = nw.from_native(spark.sql("SELECT CAST(value AS INT) AS a FROM VALUES ('x') AS rows(value)"))
    with pytest.raises(
        EngineFault, match=r"^the rows cannot be [^\n]*The value 'x' of the type \"STRING\" cannot[^\n]*$"
    ):
        collect_frame(broken)
