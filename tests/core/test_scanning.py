import re
import subprocess
import sys
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from unittest.mock import MagicMock

import narwhals as nw
import polars as pl
import pytest

from demur.core.engines import spark
from demur.core.engines.duckdb import DuckDBEngine
from demur.core.engines.engine import EngineFault, collect_frame
from demur.core.engines.scanning import scan, system_of_url
from demur.core.engines.spark import SparkEngine, spark_session
from demur.core.io.tables import Request
from demur.errors import DataError, UsageError

ALL = Request()
FIRST = pl.DataFrame({"id": [1, 2], "target": ["x", None], "confidence": [0.5, 0.25]})
SECOND = pl.DataFrame({"id": [3], "target": ["y"], "confidence": [1.0]})
BOTH = pl.concat([FIRST, SECOND])
MANY = pl.DataFrame({"id": range(200_000)}).with_columns(confidence=(pl.col("id") * 7919 % 1000) / 1000)

on_spark = pytest.mark.usefixtures("spark")
each_engine = pytest.mark.parametrize("engine", ["polars", "duckdb"])


def wanting(*names):
    return Request(candidates=lambda _: names)


def rows(scanned):
    return collect_frame(scanned.frame).sort("id")


def write(frame, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.write_parquet(path, row_group_size=5000)
    return path


@pytest.fixture
def folder(tmp_path):
    log = tmp_path / "log"
    write(FIRST, log / "a.parquet")
    write(SECOND, log / "b.parquet")
    return log


@pytest.fixture
def dated(tmp_path):
    log = tmp_path / "dated"
    write(FIRST, log / "date=2024-01-01" / "hour=01" / "a.parquet")
    write(SECOND, log / "date=2024-01-02" / "hour=1" / "a.parquet")
    return log


def flipped(path):
    """Damages the half of a file in its middle, of which its footer tells nothing."""
    content = path.read_bytes()
    quarter = len(content) // 4
    middle = bytes(255 - byte for byte in content[quarter:-quarter])
    path.write_bytes(content[:quarter] + middle + content[-quarter:])


@each_engine
def test_files_globs_and_folders_give_the_same_rows(folder, engine):
    for sources in ([folder], [f"{folder}/*.parquet"], [folder / "b.parquet", folder / "a.parquet"], [folder.as_uri()]):
        scanned = scan(sources, engine, request=ALL)
        assert rows(scanned).equals(BOTH)
        assert sorted(map(Path, scanned.parts)) == [folder / "a.parquet", folder / "b.parquet"]
        assert scanned.rows == 3


@each_engine
def test_names_with_brackets_stars_and_spaces_are_files_not_globs(tmp_path, engine):
    odd = write(FIRST, tmp_path / "lög [1] {a} %20 *.parquet")
    write(SECOND, tmp_path / "lög 1 {a} %20 more.parquet")
    assert rows(scan([odd], engine, request=ALL)).equals(FIRST)
    assert rows(scan([tmp_path], engine, request=ALL)).equals(BOTH)


@each_engine
def test_only_wanted_columns_are_read_and_all_names_are_known(folder, engine):
    scanned = scan([folder], engine, request=wanting("id", "absent"))
    assert scanned.frame.collect_schema().names() == ["id"]
    assert scanned.names == ("id", "target", "confidence")
    assert "frame" not in repr(scanned)


@each_engine
def test_names_of_folders_become_columns_of_text(dated, engine):
    expected = BOTH.with_columns(
        date=pl.Series(["2024-01-01"] * 2 + ["2024-01-02"]), hour=pl.Series(["01"] * 2 + ["1"])
    )
    for source in (dated, f"{dated}/date=*/*/*.parquet"):
        scanned = scan([source], engine, request=wanting("id", "target", "confidence", "date", "hour"))
        assert rows(scanned).equals(expected)
        assert scanned.system == "dated"


@each_engine
def test_folders_above_what_was_named_are_no_columns(tmp_path, engine):
    log = tmp_path / "run=7" / "log"
    write(FIRST, log / "day=1" / "a.parquet")
    scanned = scan([log], engine, request=ALL)
    assert set(scanned.names) == {*FIRST.columns, "day"}
    assert rows(scanned)["day"].to_list() == ["1", "1"]
    assert scan([log / "day=1" / "a.parquet"], engine, request=ALL).names == tuple(FIRST.columns)


@each_engine
def test_a_column_in_the_file_comes_before_its_namesake_in_a_folder(tmp_path, engine):
    write(FIRST, tmp_path / "target=other" / "day=1" / "a.parquet")
    scanned = scan([tmp_path], engine, request=wanting("id", "target"))
    assert rows(scanned)["target"].to_list() == ["x", None]
    with pytest.raises(DataError, match=r'a\.parquet has column "target" in the file and in the name of its folder'):
        scan([tmp_path], engine, request=wanting("id", "target", "day"))


def test_writers_own_files_are_passed_over(folder):
    (folder / "_SUCCESS").touch()
    write(FIRST, folder / "_temporary" / "0" / "c.parquet")
    write(FIRST, folder / ".spool.parquet")
    assert scan([folder], "polars", request=ALL).rows == 3


@each_engine
def test_columns_may_stand_in_another_order_and_others_may_be_there(folder, engine):
    write(SECOND.select("confidence", pl.lit(1).alias("extra"), "id", "target"), folder / "b.parquet")
    assert rows(scan([folder], engine, request=wanting(*BOTH.columns))).equals(BOTH)
    write(FIRST.with_columns(pl.lit("later").alias("other")), folder / "a.parquet")
    assert rows(scan([folder], engine, request=wanting(*BOTH.columns))).equals(BOTH)


@each_engine
def test_a_part_without_a_wanted_column_is_named(folder, engine):
    write(SECOND.drop("target"), folder / "b.parquet")
    with pytest.raises(DataError, match=r'b\.parquet has no column "target", which .*a\.parquet has as String'):
        scan([folder], engine, request=ALL)
    assert scan([folder], engine, request=wanting("id", "confidence")).rows == 3


@each_engine
def test_a_column_that_only_a_later_part_has_is_missed_in_the_first(folder, engine):
    write(SECOND.with_columns(abstained=True), folder / "b.parquet")
    with pytest.raises(DataError, match=r'a\.parquet has no column "abstained", which .*b\.parquet has as Boolean'):
        scan([folder], engine, request=ALL)


@each_engine
@pytest.mark.parametrize(
    ("column", "other", "shown"),
    [
        ("id", pl.Int32, "Int32, but .* has it as Int64"),
        ("id", pl.Float64, "Float64, but .* has it as Int64"),
        ("id", pl.String, "String, but .* has it as Int64"),
        ("confidence", pl.Float32, "Float32, but .* has it as Float64"),
        ("target", pl.Categorical, "Categorical, but .* has it as String"),
    ],
)
def test_a_part_with_another_type_is_refused_with_both_types(folder, engine, column, other, shown):
    write(SECOND.with_columns(pl.col(column).cast(other)), folder / "b.parquet")
    with pytest.raises(DataError, match=rf'b\.parquet has column "{column}" as {shown}.*the type of the others'):
        scan([folder], engine, request=ALL)


def test_a_part_whose_column_is_all_null_is_told_as_such(folder):
    write(SECOND.with_columns(target=None), folder / "b.parquet")
    with pytest.raises(DataError, match=r'"target" as Null, but .* as String \(it holds nothing but nulls; '):
        scan([folder], "polars", request=ALL)


def test_columns_told_apart_by_case_alone_are_read_by_polars_only(tmp_path):
    path = write(FIRST.with_columns(ID=pl.lit(9)), tmp_path / "a.parquet")
    assert rows(scan([path], "polars", request=wanting("id")))["id"].to_list() == [1, 2]
    with pytest.raises(DataError, match='has columns "id" and "ID", which differ only in case'):
        scan([path], "duckdb", request=wanting("id"))


@each_engine
def test_a_part_without_rows_adds_none(folder, engine):
    write(FIRST.clear(), folder / "c.parquet")
    assert rows(scan([folder], engine, request=ALL)).equals(BOTH)


def test_a_log_without_rows_is_refused(tmp_path):
    write(FIRST.clear(), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"a\.parquet holds no rows"):
        scan([tmp_path], "polars", request=ALL)
    write(FIRST.clear(), tmp_path / "b.parquet")
    with pytest.raises(DataError, match=r"a\.parquet holds no rows, as all of the 2 parts"):
        scan([tmp_path], "polars", request=ALL)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (lambda _: b"", r"b\.parquet is empty \(was it written to the end\?\)"),
        (lambda whole: whole[: len(whole) // 2], r"b\.parquet is cut off, damaged or not Parquet: .*PAR1"),
        (lambda whole: whole[:-40] + b"?" * 32 + whole[-8:], r"b\.parquet is cut off, damaged or not Parquet: "),
        (lambda _: b"id,target\n1,x\n", r"b\.parquet is cut off, damaged or not Parquet: "),
    ],
    ids=["empty", "cut off", "footer", "text"],
)
@each_engine
def test_a_part_that_is_no_whole_file_is_named(folder, engine, content, message):
    path = folder / "b.parquet"
    path.write_bytes(content(path.read_bytes()))
    with pytest.raises(DataError, match=message):
        scan([folder], engine, request=ALL)


@each_engine
def test_a_part_damaged_in_the_middle_is_found_when_the_engine_fails(tmp_path, engine):
    write(MANY, tmp_path / "a.parquet")
    flipped(write(MANY, tmp_path / "b.parquet"))
    write(MANY, tmp_path / "c.parquet")
    scanned = scan([tmp_path], engine, request=ALL)
    with pytest.raises(EngineFault) as caught:
        collect_frame(scanned.frame.select(nw.col("confidence").sum()))
    assert str(scanned.blame(caught.value)).startswith(f"{tmp_path / 'b.parquet'} is cut off, damaged or not Parquet: ")


@each_engine
def test_a_part_that_vanishes_or_changes_meanwhile_is_named(folder, engine):
    scanned = scan([folder], engine, request=ALL)
    scanned.refuse_changes()
    write(pl.concat([SECOND] * 50), folder / "b.parquet")
    with pytest.raises(DataError, match=r"b\.parquet was changed while it was read"):
        scanned.refuse_changes()
    (folder / "b.parquet").unlink()
    with pytest.raises(EngineFault) as caught:
        collect_frame(scanned.frame)
    assert "b.parquet has vanished since it was listed" in str(scanned.blame(caught.value))


def test_where_no_part_is_to_blame_the_engine_has_the_word(folder):
    scanned = scan([folder], "polars", request=ALL)
    with pytest.raises(EngineFault) as caught:
        collect_frame(scanned.frame.select(nw.col("target").cast(nw.Int64)))
    assert scanned.blame(caught.value) is caught.value
    assert str(scanned.blame(OSError("disk full"))) == "the rows cannot be read or counted: disk full"


def test_a_file_given_twice_is_refused(folder):
    with pytest.raises(DataError, match=r"a\.parquet is given twice \(its rows would count twice\)"):
        scan([folder, f"{folder}/a*"], "polars", request=ALL)


def test_what_is_not_there_is_told_as_for_files_in_memory(folder):
    with pytest.raises(DataError, match=r"\*\.pq matches no file"):
        scan([f"{folder}/*.pq"], "polars", request=ALL)
    with pytest.raises(DataError, match=r'a\.paquet does not exist \(did you mean "a\.parquet"'):
        scan([folder / "a.paquet"], "polars", request=ALL)
    with pytest.raises(DataError, match="no file to read was given"):
        scan([], "polars", request=ALL)


def test_a_folder_without_parquet_says_what_it_holds(tmp_path):
    with pytest.raises(DataError, match=r"holds no \.parquet file \(it is empty\)"):
        scan([tmp_path], "polars", request=ALL)
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("id\n1\n")
    with pytest.raises(DataError, match=r"holds no \.parquet file \(it holds a\.csv and 1 more; .*\*\.csv"):
        scan([tmp_path], "polars", request=ALL)


def test_other_formats_are_read_in_memory_only(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id\n1\n")
    with pytest.raises(DataError, match=r"a\.csv is not Parquet, which engines read \(leave out --engine"):
        scan([path], "duckdb", request=ALL)
    with pytest.raises(UsageError, match="--engine reads files, not standard input"):
        scan(["-"], "duckdb", request=ALL)


def test_a_table_of_a_lake_is_not_read_as_a_folder(folder):
    (folder / "_delta_log").mkdir()
    with pytest.raises(DataError, match="log is a Delta Lake table, whose folder also holds files that are no longer"):
        scan([folder], "polars", request=ALL)


def test_arrow_files_are_read_by_polars_only(tmp_path):
    FIRST.write_ipc(tmp_path / "a.arrow")
    SECOND.write_ipc(tmp_path / "b.arrow")
    scanned = scan([f"{tmp_path}/*.arrow"], "polars", request=ALL)
    assert rows(scanned).equals(BOTH)
    with pytest.raises(DataError, match=r"a\.arrow is Arrow, which --engine duckdb does not read"):
        scan([f"{tmp_path}/*.arrow"], "duckdb", request=ALL)
    write(SECOND, tmp_path / "c.parquet")
    with pytest.raises(DataError, match=r"c\.parquet is Parquet, but .*a\.arrow is Arrow"):
        scan([f"{tmp_path}/*"], "polars", request=ALL)


def test_a_log_is_named_after_its_only_file_or_the_folder_of_all(folder, dated, monkeypatch):
    assert scan([folder / "a.parquet"], "polars", request=ALL).system == "a"
    assert scan([f"{folder}/a*"], "polars", request=ALL).system == "a"
    assert scan([folder], "polars", request=ALL).system == "log"
    assert scan([f"{dated}/*/*/*.parquet"], "polars", request=ALL).system == "dated"
    assert scan([folder / "a.parquet", dated], "polars", request=wanting("id")).system == folder.parent.name
    monkeypatch.chdir(folder)
    assert scan(["."], "polars", request=ALL).system == "log"
    assert system_of_url(["s3://lake/nlu/*.parquet", "s3://lake/asr/a.parquet"]) == "lake"
    assert system_of_url(["s3://one/*.parquet", "s3://two/*.parquet"]) == "log"


def test_files_and_urls_are_not_one_log(folder):
    with pytest.raises(UsageError, match="score them apart and merge"):
        scan([folder, "s3://lake/log"], "polars", request=ALL)


class Ranges(SimpleHTTPRequestHandler):
    """Serves files as object stores do: whole, or the range of bytes that was asked for."""

    def do_GET(self):
        content = Path(self.translate_path(self.path)).read_bytes()
        asked = self.headers.get("Range", "").removeprefix("bytes=")
        first, _, last = asked.partition("-")
        start = int(first) if first else 0
        end = min(int(last) + 1 if last else len(content), len(content))
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(content)}")
        self.send_header("Content-Length", str(end - start))
        self.end_headers()
        self.wfile.write(content[start:end])

    def log_message(self, *_):
        pass


@contextmanager
def served(folder):
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Ranges, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_urls_are_read_by_the_engine_and_must_agree_too(folder):
    with served(folder) as base:
        urls = [f"{base}/a.parquet", f"{base}/b.parquet"]
        scanned = scan(urls, "polars", request=ALL)
        assert rows(scanned).equals(BOTH)
        assert (scanned.parts, scanned.rows, scanned.names) == (tuple(urls), None, tuple(BOTH.columns))
        write(SECOND.with_columns(pl.col("id").cast(pl.Int32)), folder / "b.parquet")
        with pytest.raises(DataError, match=r'b\.parquet has column "id" as Int32, but http://.*/a\.parquet has it'):
            scan(urls, "polars", request=ALL)


def test_duckdb_lists_the_files_of_a_remote_folder_and_what_they_hold(dated):
    reader = DuckDBEngine()
    held = reader.remote_columns([str(dated)])
    kinds = {"id": "BIGINT", "target": "VARCHAR", "confidence": "DOUBLE"}
    assert [columns for _, columns in held] == [kinds, kinds]
    frame = collect_frame(nw.from_native(reader.remote([f"{dated}/"])))
    assert sorted(frame["hour"]) == ["01", "01", "1"]
    with pytest.raises(DataError, match=r"nowhere/\*\*/\*\.parquet matches no file"):
        reader.remote([f"{dated}/nowhere"])


def test_duckdb_keeps_to_the_memory_it_is_given(folder, monkeypatch):
    def limit(scanned):
        return scanned.holder.sql("SELECT current_setting('memory_limit')").fetchall()[0][0]

    assert limit(scan([folder], "duckdb", request=ALL)) == "1.3 GiB"
    assert limit(scan([folder], "duckdb", request=ALL, memory="512MiB")) == "512.0 MiB"
    monkeypatch.setenv("DEMUR_MEMORY", "much")
    with pytest.raises(UsageError, match=r'DEMUR_MEMORY must be an amount such as "1500MB", not "much"'):
        scan([folder], "duckdb", request=ALL)


def test_an_engine_that_is_not_installed_is_told_with_how_to_install_it(folder, monkeypatch):
    for module in ("duckdb", "pyspark"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UsageError, match=r'--engine duckdb needs DuckDB: pip install "demur\[duckdb\]"'):
        scan([folder], "duckdb", request=ALL)
    with pytest.raises(UsageError, match=r'--engine spark needs PySpark: pip install "demur\[spark\]"'):
        scan([folder], "spark", request=ALL)


@pytest.fixture
def no_session(monkeypatch):
    """Hides the session that other tests of this process may have started."""
    pytest.importorskip("pyspark")
    monkeypatch.setattr(spark, "_running", lambda: None)


@pytest.mark.usefixtures("no_session")
def test_java_that_is_missing_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(UsageError, match=r"needs Java 17 or newer: JAVA_HOME is .*, where there is none"):
        spark_session()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match=r"needs Java 17 or newer: no java is on the PATH"):
        spark_session()


@pytest.mark.usefixtures("no_session")
def test_a_master_that_does_not_answer_is_told_at_once(monkeypatch):
    monkeypatch.setattr(SparkEngine, "why_unusable", staticmethod(lambda: None))
    with ThreadingHTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as server:
        closed = server.server_port
    with pytest.raises(UsageError, match=rf"spark://127\.0\.0\.1:{closed} does not answer .*; is it running\?"):
        spark_session(f"spark://127.0.0.1:{closed}")
    with pytest.raises(UsageError, match="must be spark://HOST:PORT"):
        spark_session("spark://somewhere")


@pytest.mark.parametrize(
    ("error", "log", "reason"),
    [
        ("[JAVA_GATEWAY_EXITED] Java gateway process exited.", "", "Java ended at once (Java 17 or newer is needed)"),
        (
            "[JAVA_GATEWAY_EXITED] Java gateway process exited.",
            "starting\nError: LinkageError, class file version 61.0\n",
            "Error: LinkageError, class file version 61.0 (Java 17 or newer is needed)",
        ),
        ("Cannot call methods on a stopped SparkContext.\nIt was", "", "the master does not take the job; .*"),
        ("Could not parse Master URL: 'nowhere'", "", "Could not parse Master URL: 'nowhere'"),
    ],
    ids=["ended", "old", "given up", "own words"],
)
def test_spark_that_does_not_start_says_why(tmp_path, error, log, reason):
    path = tmp_path / "spark.log"
    path.write_text(log)
    found = spark._why(RuntimeError(error), path)
    assert re.fullmatch(reason.replace("(", r"\(").replace(")", r"\)"), found)


def test_a_master_without_workers_is_not_waited_for_for_ever():
    session = MagicMock()
    session.sparkContext._jsc.sc().statusTracker().getExecutorInfos.return_value = ["driver"]
    with pytest.raises(
        UsageError, match=r"no worker of spark://m:1 took the job within 0 s: are its workers running\?"
    ):
        spark._wait_for_worker(session, "spark://m:1", patience=0)
    session.stop.assert_called_once_with()


@on_spark
def test_spark_reads_the_same_rows_as_polars(folder, dated):
    for source in (folder, dated):
        shared = [scan([source], engine, request=ALL) for engine in ("polars", "spark")]
        assert rows(shared[0]).equals(rows(shared[1]))
        assert shared[0].names == shared[1].names


@on_spark
def test_spark_reads_odd_names_and_refuses_those_it_would_pass_over(tmp_path):
    odd = write(FIRST, tmp_path / "lög [1] {a} %20 *.parquet")
    write(SECOND, tmp_path / "lög 1 {a} %20 more.parquet")
    assert rows(scan([odd], "spark", request=ALL)).equals(FIRST)
    hidden = write(SECOND, tmp_path / "_b.parquet")
    with pytest.raises(DataError, match=r'_b\.parquet has a name that begins with "_", which Spark does not read'):
        scan([odd, hidden], "spark", request=ALL)
    timed = write(SECOND, tmp_path / "12:30.parquet")
    with pytest.raises(DataError, match=r"12:30\.parquet has a colon in its name, which Spark does not read"):
        scan([timed], "spark", request=ALL)


@on_spark
def test_spark_lists_remote_files_and_what_they_hold(dated):
    held = SparkEngine().remote_columns([f"file://{dated}"])
    kinds = {"id": "bigint", "target": "string", "confidence": "double"}
    assert [columns for _, columns in held] == [kinds, kinds]


def test_an_active_session_is_used_but_for_another_master(spark):
    assert spark_session() is spark_session(spark.sparkContext.master)
    with pytest.raises(UsageError, match=r"a Spark session already runs on .*; stop it to use local\[2\]"):
        spark_session("local[2]")


def test_the_folder_for_what_memory_does_not_hold_is_removed_at_exit():
    code = "from demur.core.engines.duckdb import _spill_folder; print(_spill_folder(), _spill_folder().is_dir())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    folder, was_there = done.stdout.split()
    assert was_there == "True"
    assert not Path(folder).exists()
