"""A lake of Parquet parts gives the tallies of its rows in memory, or a fault that names the part."""

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product

import narwhals as nw
import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

from demur.core.engines import scanning
from demur.core.engines.spark import spark_session
from demur.core.show.results import silent
from demur.errors import DataError, UsageError
from demur.returns import counting
from demur.returns.classes import labelled
from demur.returns.counting import Counting, count, count_labels, tallies_of_frame
from demur.returns.evaluate import evaluate
from demur.returns.table import Reading, responses
from demur.returns.verify import sample_log
from engines.cluster import executors, wait_until

LOG = sample_log(900, seed=5)
TALK = LOG.drop("weight")
PLAIN = TALK.drop("dialogue")
ROW = pl.int_range(pl.len())
PARTS = 4

each_engine = pytest.mark.parametrize("engine", ["polars", "duckdb", "spark"])
in_one_process = pytest.mark.parametrize("engine", ["polars", "duckdb"])


def each_case(name, cases, on_spark):
    """Every case in one process; on the cluster those in which Spark has its own way."""
    pairs = [*product(("polars", "duckdb"), cases), *(("spark", case) for case in on_spark)]
    return pytest.mark.parametrize(("engine", name), pairs)


@pytest.fixture(autouse=True)
def _session(request):
    """Starts the cluster for the tests of Spark, whose session the product then finds active."""
    if "engine" in request.fixturenames and request.getfixturevalue("engine") == "spark":
        request.getfixturevalue("spark")


def lake(folder, rows, parts=PARTS):
    """A folder of parts that hold the rows."""
    folder.mkdir()
    for place, part in enumerate(rows.iter_slices(-(-rows.height // parts))):
        part.write_parquet(folder / f"{place}.parquet")
    return folder


def counted(engine, *folders, by=None, name=None, check_ids=False, step=silent, where=()):
    """What a job counts of folders."""
    how = Counting(engine=engine, name=name, check_ids=check_ids)
    reading = Reading(where=tuple(tuple(one.split("=")) for one in where), keep=() if by is None else (by,))
    return count([str(folder) for folder in folders], reading, how, by=by, step=step)


def in_memory(rows, *, by=None, system="log"):
    keep = () if by is None else (by,)
    return tallies_of_frame(responses(rows, system=system, reading=Reading(keep=keep)).frame, by=by)


def assert_same(found, expected):
    """The same counts throughout; the order of adding may move a sum of fractions in its last digits."""
    assert [(one.system, one.part) for one in found] == [(one.system, one.part) for one in expected]
    for one, two in zip(found, expected, strict=True):
        assert (one.n, one.failed, one.unanswered) == (two.n, two.failed, two.unanswered)
        assert (one.out_of_scope, one.clustered) == (two.out_of_scope, two.clustered)
        assert one.squares == pytest.approx(two.squares, rel=1e-12)
        assert np.array_equal(one.sweep.threshold, two.sweep.threshold)
        for counts in ("right", "wrong"):
            assert getattr(one.sweep, counts) == pytest.approx(getattr(two.sweep, counts), rel=1e-12)
        assert (one.units is None) == (two.units is None)
        if one.units is not None:
            keys = ("bucket", "confidence")
            assert one.units.select(keys).equals(two.units.select(keys))
            assert one.units.drop(keys).to_numpy() == pytest.approx(two.units.drop(keys).to_numpy(), rel=1e-12)


LISTS = (
    pl.when(ROW % 7 == 0)
    .then(pl.lit([None], dtype=pl.List(pl.String)))
    .when(ROW % 7 == 1)
    .then(pl.lit([], dtype=pl.List(pl.String)))
    .when(ROW % 7 == 2)
    .then(pl.concat_list(pl.lit("oos"), pl.col("target"), pl.lit(None, pl.String)))
    .when(ROW % 7 > 3)
    .then(pl.concat_list(pl.lit("it's"), pl.col("target")))
)
NAMES = pl.when(ROW % 3 == 0).then(pl.lit("naïve")).otherwise(pl.lit("система 🥐"))

LOGS = {
    "rows that count alike": PLAIN,
    "dialogues": TALK,
    "weights": LOG,
    "several systems": PLAIN.with_columns(system=NAMES),
    "a column for systems that names none": PLAIN.with_columns(system=pl.lit(None, pl.String)),
    "several acceptable labels": PLAIN.with_columns(target=LISTS),
    "numbers for ids and dialogues": PLAIN.with_columns(id=ROW, dialogue=(ROW // 4).cast(pl.UInt64)),
    "all of these at once": LOG.with_columns(system=NAMES, target=LISTS, id=ROW, dialogue=(ROW // 4).cast(pl.UInt64)),
    "dialogues with gaps": PLAIN.with_columns(dialogue=pl.when(ROW % 3 > 0).then((ROW // 9).cast(pl.Float64))),
}


ON_DUCKDB = ("rows that count alike", "dialogues with gaps", "a column for systems that names none")


@pytest.mark.parametrize(
    ("engine", "kind"),
    [
        *product(["polars"], LOGS),
        *product(["duckdb"], ON_DUCKDB),
        *product(["duckdb", "spark"], ["all of these at once"]),
    ],
)
def test_a_lake_has_the_tallies_of_its_rows_in_memory(tmp_path, engine, kind):
    rows = LOGS[kind]
    found = counted(engine, lake(tmp_path / "log", rows), by="domain").tallies
    assert_same(found, in_memory(rows, by="domain"))
    assert {one.part for one in found} == {None, "domain=desk", "domain=kiosk", "domain=phone"}


@each_engine
def test_names_of_folders_are_slices_and_may_be_asked_for_as_may_numbers(tmp_path, engine):
    rows = PLAIN.drop("domain").with_columns(
        day=pl.when(ROW % 2 == 0).then(pl.lit("01")).otherwise(pl.lit("1")),
        place=pl.when(ROW % 3 == 0).then(pl.lit("café au lait")).otherwise(pl.lit("kiosk")),
        loudness=(ROW % 4) / 2 + 0.1,
    )
    for (day, place), part in rows.partition_by("day", "place", as_dict=True).items():
        folder = tmp_path / "log" / f"day={day}" / f"place={place}"
        folder.mkdir(parents=True)
        part.drop("day", "place").write_parquet(folder / "a.parquet")
    found = counted(engine, tmp_path / "log", by="place", where=["day=01", "loudness=1.1"])
    kept = rows.filter((pl.col("day") == "01") & (pl.col("loudness") == 1.1))
    assert 0 < kept.height < rows.height / 3
    assert_same(found.tallies, in_memory(kept, by="place"))
    assert len(found.sources) == 4


@in_one_process
def test_rows_are_kept_by_what_is_written_not_by_what_it_is_worth_as_in_memory(tmp_path, engine):
    folder = lake(tmp_path / "log", PLAIN.with_columns(loudness=(ROW % 4) / 2 + 0.1))
    with pytest.raises(DataError, match=r"log \(4 parts\): no row is left where loudness is 0\.60$"):
        counted(engine, folder, where=["loudness=0.60"])


@each_engine
def test_labels_are_counted_as_in_memory_and_under_the_name_given(tmp_path, engine):
    folder = lake(tmp_path / "log", LOGS["several acceptable labels"])
    reading = Reading(out_of_scope=("oos", "it's"), missing_confidence="lowest")
    how = Counting(engine=engine, name="гид")
    ((name, cells),) = count_labels([str(folder)], reading, how).cells.items()
    labels = labelled(responses(LOGS["several acceptable labels"], reading=reading).frame)
    expected = labels.group_by("actual", "predicted").agg(rows=pl.len().cast(pl.Int64)).sort("actual", "predicted")
    assert name == "гид"
    assert cells.select("actual", "predicted", "rows").equals(expected)


def test_a_log_is_called_as_asked_if_it_is_of_one_system(tmp_path):
    unnamed = lake(tmp_path / "log", PLAIN)
    one = lake(tmp_path / "one", PLAIN.with_columns(system=pl.lit("a")))
    assert [each.system for each in counted("polars", unnamed).tallies] == ["log"]
    for folder in (unnamed, one):
        assert [each.system for each in counted("polars", folder, name="гид 🥐").tallies] == ["гид 🥐"]
    several = lake(tmp_path / "several", LOGS["several systems"])
    with pytest.raises(UsageError, match="`name` names one system; there are several: naïve, система 🥐"):
        counted("polars", several, name="mine")


def test_one_dialogue_with_a_tenth_of_the_rows_has_the_values_and_the_widths_of_memory(tmp_path):
    (found,) = evaluate(counted("polars", lake(tmp_path / "log", TALK)).tallies)
    (expected,) = evaluate(responses(TALK))
    assert TALK["dialogue"].value_counts()["count"].max() > TALK.height / 12
    for name, figure in expected.figures.items():
        assert found.figures[name].value == pytest.approx(figure.value, rel=1e-12, nan_ok=True)
        width = found.figures[name].high - found.figures[name].low
        assert width == pytest.approx(figure.high - figure.low, rel=0.2, nan_ok=True), name


def flipped(content):
    """Damages the pages in the first half of a file, of which its footer tells nothing."""
    first, last = 64, len(content) // 2
    return content[:first] + bytes(255 - byte for byte in content[first:last]) + content[last:]


BROKEN = {
    "pages damaged": (flipped, "is cut off, damaged or not Parquet: parquet: "),
    "cut off": (lambda whole: whole[: len(whole) // 2], "is cut off, damaged or not Parquet: .*must end with PAR1"),
    "empty": (lambda _: b"", r"is empty \(was it written to the end\?\)"),
}


@each_case("fault", BROKEN, on_spark=["pages damaged", "empty"])
def test_a_broken_part_is_named(tmp_path, engine, fault):
    folder = lake(tmp_path / "log", PLAIN)
    part = folder / "2.parquet"
    breaks, message = BROKEN[fault]
    part.write_bytes(breaks(part.read_bytes()))
    with pytest.raises(DataError, match=f"^{part} {message}"):
        counted(engine, folder)


OTHERS = {
    "a column gone": (pl.exclude("confidence"), 'has no column "confidence", which {} has as Float64 (write it again'),
    "text": (pl.col("confidence").cast(pl.String), 'has column "confidence" as String, but {} has it as Float64'),
    "integers": (pl.col("confidence").cast(pl.Int64), 'has column "confidence" as Int64, but {} has it as Float64'),
    "nothing": (pl.lit(None).alias("confidence"), 'has column "confidence" as Null, but {} has it as Float64'),
}


@each_case("fault", OTHERS, on_spark=["integers"])
def test_a_part_with_another_schema_is_named_with_both_types(tmp_path, engine, fault):
    folder = lake(tmp_path / "log", PLAIN)
    part = folder / "2.parquet"
    change, message = OTHERS[fault]
    rows = pl.read_parquet(part)
    (rows.select(change) if fault == "a column gone" else rows.with_columns(change)).write_parquet(part)
    told = message.format(folder / "0.parquet")
    with pytest.raises(DataError, match=re.escape(f"{part} {told}")):
        counted(engine, folder)


NULLS = {
    "confidence": (PLAIN.drop_nulls("confidence"), r"is missing for an answer \(3 such rows in all\)"),
    "weight": (
        LOG,
        r'must be a number of 0 or more, and within 1e-100 and 1e100 unless it is 0 \(3 such rows in all\); got "null"',
    ),
    "id": (PLAIN, r'must be there in every row or in none \(3 such rows in all\); got "null"'),
    "system": (LOGS["several systems"], r'must be there in every row \(3 such rows in all\); got "null"'),
}


@each_case("column", NULLS, on_spark=["system"])
def test_nulls_where_none_may_be_are_counted(tmp_path, engine, column):
    rows, message = NULLS[column]
    spread = ROW.is_in([7, 300, 600])
    folder = lake(tmp_path / "log", rows.with_columns(pl.when(~spread).then(pl.col(column)).alias(column)))
    with pytest.raises(DataError, match=rf"^log \(4 parts\): {column} {message}"):
        counted(engine, folder)


UNTOLD = {
    "dialogue": (ROW // 4 + 2**60).cast(pl.Float64),
    "system": pl.when(ROW % 2 == 0).then(0.5).otherwise(1.5),
    "prediction": ROW * 1e20,
    "domain": ROW % 4 / 2,
}


@each_case("column", UNTOLD, on_spark=["prediction"])
def test_numbers_that_engines_write_differently_are_no_text(tmp_path, engine, column):
    folder = lake(tmp_path / "log", PLAIN.with_columns(UNTOLD[column].alias(column)))
    with pytest.raises(DataError, match=rf"{column} must be text or whole numbers \([\d,]+ such rows in all\)"):
        counted(engine, folder, by="domain")


def test_a_column_that_was_not_read_is_still_what_a_misspelt_name_meant(tmp_path):
    folder = lake(tmp_path / "log", PLAIN)
    for asked in ({"by": "domian"}, {"where": ["domian=desk"]}):
        with pytest.raises(DataError, match='there is no column "domian"; did you mean "domain"'):
            counted("polars", folder, **asked)
    unsure = lake(tmp_path / "unsure", PLAIN.rename({"confidence": "confidense"}))
    with pytest.raises(DataError, match=r"has no column confidence \(did you mean --map confidence=confidense"):
        counted("polars", unsure)
    aimless = lake(tmp_path / "aimless", PLAIN.rename({"target": "wanted"}))
    with pytest.raises(DataError, match=r"needs a column target or correct .*columns there: .*wanted"):
        counted("polars", aimless)


@each_engine
def test_a_part_that_is_there_twice_is_found_by_its_ids(tmp_path, engine):
    folder = lake(tmp_path / "log", PLAIN)
    (folder / "copy.parquet").write_bytes((folder / "1.parquet").read_bytes())
    with pytest.raises(DataError, match=r'log \(5 parts\): the id "q\d+" occurs 2 times .is a part of the log there'):
        counted(engine, folder, check_ids=True)


@pytest.mark.usefixtures("spark")
def test_spark_notices_a_page_that_does_not_match_its_checksum(tmp_path):
    folder = lake(tmp_path / "log", PLAIN)
    part = folder / "1.parquet"
    pq.write_table(pl.read_parquet(part).to_arrow(), part, write_page_checksum=True, use_dictionary=False)
    group = pq.ParquetFile(part).metadata.row_group(0)
    column = next(group.column(place) for place in range(group.num_columns) if PLAIN.columns[place] == "confidence")
    content = bytearray(part.read_bytes())
    content[column.data_page_offset + column.total_compressed_size - 3] ^= 1
    part.write_bytes(content)
    with pytest.raises(DataError, match=f"^{part} cannot be read: .*CRC checksum verification failed .copy or write"):
        counted("spark", folder)


@pytest.mark.usefixtures("spark")
def test_spark_refuses_escaped_names_of_folders_which_it_would_misread(tmp_path):
    folder = tmp_path / "log"
    folder.mkdir()
    lake(folder / "place=caf%C3%A9", PLAIN.drop("domain"), parts=1)
    with pytest.raises(DataError, match=r'lies in the folder "place=caf%C3%A9", whose name Spark .*"place=café"'):
        counted("spark", folder, by="place")
    assert [one.part for one in counted("polars", folder, by="place").tallies] == [None, "place=café"]


def test_the_session_of_another_thread_is_used_but_for_another_master(spark):
    with ThreadPoolExecutor(1) as elsewhere:
        assert elsewhere.submit(spark_session).result().sparkContext is spark.sparkContext
        with pytest.raises(UsageError, match=r"a Spark session already runs on spark://.*; stop it to use local\[2\]"):
            elsewhere.submit(spark_session, "local[2]").result()


@pytest.fixture
def worker_to_lose(cluster):
    """Kills a worker on request, for good: the test that asks for it is the last on the cluster."""
    return cluster.kill_worker


def test_a_worker_killed_while_a_lake_is_counted_changes_no_tally(spark, tmp_path, monkeypatch, worker_to_lose):
    folder = lake(tmp_path / "log", TALK, parts=6)
    before = executors(spark)
    signs = tmp_path / "signs"
    signs.mkdir()
    scan = scanning.scan
    monkeypatch.setattr(counting, "scan", lambda *given, **named: held_up(scan(*given, **named), signs))

    def hold(what, *_):
        if what == "counting answers by confidence":
            (signs / "hold").touch()

    with ThreadPoolExecutor(1) as elsewhere:
        job = elsewhere.submit(counted, "spark", folder, by="domain", step=hold)
        try:
            # Two tasks are done, and what they counted lies with their executors; two more run, one on each.
            wait_until(lambda: job.done() or len(list(signs.glob("running-*"))) == 4, "a task on each executor")
            worker_to_lose()
        finally:
            (signs / "go").touch()
        found = job.result().tallies
    assert_same(found, in_memory(TALK, by="domain"))
    assert len(executors(spark).keys() & before.keys()) == 1


def held_up(log, signs):
    """The scan as it is, but once there is a sign `hold` only the first two parts come before there is `go`."""

    def passed_on(batches):
        import time

        from pyspark import TaskContext

        part = TaskContext.get().partitionId()
        if (signs / "hold").exists():
            (signs / f"running-{part}").touch()
        while part > 1 and (signs / "hold").exists() and not (signs / "go").exists():
            time.sleep(0.02)
        yield from batches

    rows = log.frame.to_native().repartition(6)
    return replace(log, frame=nw.from_native(rows.mapInArrow(passed_on, rows.schema)))
