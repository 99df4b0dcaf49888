"""A lake that grows by days: each is counted once, and any range is what its rows are together."""

import polars as pl
import pytest

import demur
from demur.errors import DataError, UsageError
from demur.returns import watch as watching
from engines.test_lake import TALK

DAYS = ("2026-01-30", "2026-01-31", "2026-02-01")


@pytest.fixture
def lake(tmp_path):
    """A folder for each day, with 100 rows."""
    for day, rows in zip(DAYS, TALK.iter_slices(100), strict=False):
        folder = tmp_path / "lake" / f"date={day}"
        folder.mkdir(parents=True)
        rows.write_parquet(folder / "a.parquet")
    return tmp_path / "lake"


def watched(lake, **options):
    return demur.watch(lake, keep=lake.parent / "kept", replicates=50, **options)


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_days_add_up_to_the_log_and_old_days_are_not_read_again(lake, monkeypatch, engine):
    read, count = [], watching.count
    monkeypatch.setattr(watching, "count", lambda paths, *how: read.append(paths) or count(paths, *how))
    (first,) = watched(lake, engine=engine, until="2026-01-31")
    (whole,) = demur.score(TALK.head(300), replicates=50)
    (later,) = watched(lake, engine=engine)
    assert (first.n, later.n, later.system) == (200, 300, "lake")
    assert len(read) == len(DAYS)
    for key in ("augrc", "forced_error", "brier"):
        assert later.figures[key].value == pytest.approx(whole.figures[key].value, rel=1e-12)
    (last,) = watched(lake, engine=engine, since="2026-02-01")
    assert last.n == 100
    assert len(read) == len(DAYS)


def test_a_day_that_has_changed_is_counted_again(lake):
    watched(lake)
    TALK.slice(300, 50).write_parquet(lake / "date=2026-02-01" / "late.parquet")
    found = watched(lake)
    assert found[0].n == 350
    assert found.notes[0] == "3 parts, 2026-01-30 to 2026-02-01: 1 counted now, the others as kept"


def test_months_are_parts_too_and_a_date_may_be_in_the_name_of_a_file(tmp_path):
    (tmp_path / "lake").mkdir()
    for day, rows in zip(DAYS, TALK.iter_slices(100), strict=False):
        rows.write_parquet(tmp_path / "lake" / f"log-{day}.parquet")
    assert watched(tmp_path / "lake", every="1mo", until="2026-01-31")[0].n == 200
    assert {file.name for file in (tmp_path / "kept").iterdir()} == {"2026-01.sweep", "2026-02.sweep", "parts.json"}


def test_what_cannot_be_watched_is_refused(lake):
    with pytest.raises(DataError, match="no part from 2027-01-01 to the last"):
        watched(lake, since="2027-01-01")
    with pytest.raises(DataError, match='a day is written as 2026-01-31; got "tomorrow"'):
        watched(lake, since="tomorrow")
    pl.DataFrame({"correct": [True], "confidence": [0.5]}).write_parquet(lake / "a.parquet")
    with pytest.raises(DataError, match="has no date in its name"):
        watched(lake)
    with pytest.raises(UsageError, match="reads files on this machine"):
        demur.watch("s3://bucket/lake")
