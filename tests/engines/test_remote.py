"""Parquet in an object store: read with the credentials of the environment, or a fault that says what is wrong."""

import io

import duckdb
import pytest

import demur
from demur.core.engines.duckdb import reach_stores
from demur.errors import DataError, UsageError
from demur.returns.verify import other_answers
from demur.store.runs import Store
from engines.object_store import object_store
from engines.test_lake import PLAIN

ROWS = PLAIN.head(300)


@pytest.fixture
def store(monkeypatch):
    """A bucket with a log in two parts, and the answers of another system."""
    with object_store() as store:
        parts = {"log/day=1/a.parquet": ROWS.head(200), "log/day=2/b.parquet": ROWS.tail(100)}
        for key, rows in {**parts, "other/a.parquet": other_answers(ROWS)}.items():
            content = io.BytesIO()
            rows.write_parquet(content)
            store.objects[key] = content.getvalue()
        for name, value in store.environment.items():
            monkeypatch.setenv(name, value)
        yield store


def has_s3():
    """Whether DuckDB can read from a store here: by its extension httpfs, or by s3fs."""
    try:
        reach_stores(duckdb.connect(), ["s3://bucket/log"])
    except UsageError:
        return False
    return True


each_engine = pytest.mark.parametrize(
    "engine",
    ["polars", pytest.param("duckdb", marks=pytest.mark.skipif(not has_s3(), reason="neither httpfs nor s3fs"))],
)


def score(*urls, **options):
    return demur.score(*urls, replicates=50, **options)


@each_engine
def test_a_log_in_an_object_store_has_the_numbers_of_its_rows(store, engine):
    (found,), (expected,) = score(f"s3://{store.bucket}/log/**/*.parquet", engine=engine), score(ROWS)
    assert found.system == "log"
    assert found.n == ROWS.height
    assert found.figures["augrc"] == expected.figures["augrc"]
    days = score(f"s3://{store.bucket}/log/**/*.parquet", engine=engine, by="day")
    assert {one.part: one.n for one in days} == {None: 300, "day=1": 200, "day=2": 100}


@each_engine
def test_systems_in_an_object_store_are_compared(store, engine):
    urls = [f"s3://{store.bucket}/{name}/*.parquet" for name in ("log/**", "other")]
    found = demur.compare(*urls, engine=engine, replicates=50)
    (pair,), (other,) = found.pairs, demur.compare({"log": ROWS, "other": other_answers(ROWS)}, replicates=50).pairs
    assert (pair.a, pair.b, pair.area.value) == ("log", "other", other.area.value)


@each_engine
@pytest.mark.parametrize(
    ("bucket", "rule"),
    [("elsewhere", "s3://elsewhere/log/c.parquet (there is no such bucket|is not there)"), (None, "is not there")],
)
def test_what_is_not_there_is_named(store, engine, bucket, rule):
    with pytest.raises(DataError, match=rule):
        score(f"s3://{bucket or store.bucket}/log/c.parquet", engine=engine)


@each_engine
def test_wrong_credentials_are_refused_by_the_store_and_said(store, engine, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "another")
    with pytest.raises(DataError, match=r"the store does not accept the credentials .*AWS_ACCESS_KEY_ID"):
        score(f"s3://{store.bucket}/other/a.parquet", engine=engine)


@each_engine
def test_a_part_that_disappears_after_it_was_listed_is_refused(store, engine):
    store.gone.add("log/day=2/b.parquet")
    with pytest.raises(DataError, match="is not there"):
        score(f"s3://{store.bucket}/log/**/*.parquet", engine=engine)


def test_a_log_in_an_object_store_is_linked_and_refused_once_it_has_changed(store, tmp_path):
    with Store.open(tmp_path / "store") as runs:
        run = runs.link(f"s3://{store.bucket}/log/**/*.parquet", name="march")[0].run
        assert (run.n, run.about["slices"]) == (ROWS.height, ["domain", "day"])
        assert score(runs.lake(run))[0].n == ROWS.height
        store.objects["log/day=3/c.parquet"] = store.objects["log/day=2/b.parquet"]
        with pytest.raises(DataError, match=r"has changed since it was linked: s3://.*/c\.parquet added"):
            score(runs.lake(run))
        store.objects.clear()
        with pytest.raises(DataError, match="cannot be looked at"):
            score(runs.lake(run))
