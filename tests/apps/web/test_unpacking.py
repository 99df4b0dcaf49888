import gzip
import io
import json
import re
import sys
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.apps.web.pages import adding
from demur.apps.web.pages.adding import FIX, _columnar_size, gzip_size, refuse_bomb
from demur.apps.web.worker import Limits, Worker
from demur.core.io.sources import opened
from demur.core.io.tables import TableLimits
from demur.core.io.untrusted import ZSTD_BLOCK, zstd_size
from demur.errors import DataError

contents = st.lists(st.tuples(st.binary(max_size=50), st.integers(1, 20_000)), max_size=4).map(
    lambda parts: b"".join(part * times for part, times in parts)
)


def zstd(content, *, streamed=False):
    pyarrow = pytest.importorskip("pyarrow")
    if not streamed:
        return pyarrow.Codec("zstd").compress(content, asbytes=True)
    packed = pyarrow.BufferOutputStream()
    with pyarrow.CompressedOutputStream(packed, "zstd") as stream:
        stream.write(content)
    return packed.getvalue().to_pybytes()


@given(contents, contents)
def test_gzip_is_counted_to_the_byte_over_all_its_parts(first, second):
    packed = gzip.compress(first) + gzip.compress(second)
    assert gzip_size(io.BytesIO(packed), 10**9) == len(first) + len(second)


@given(contents, st.booleans())
def test_zstandard_is_never_taken_for_less_than_it_is_and_for_at_most_a_block_more(content, streamed):
    packed = zstd(content, streamed=streamed) + b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc" + zstd(b"x")
    bound = zstd_size(io.BytesIO(packed))
    assert len(content) + 1 <= bound <= len(content) + 2 * ZSTD_BLOCK + 1


def test_counting_ends_at_the_limit_and_at_damage():
    packed = gzip.compress(b"x" * 10**7)
    assert 1000 < gzip_size(io.BytesIO(packed), 1000) < 3 * 10**6
    assert gzip_size(io.BytesIO(packed[:50] + b"damage"), 10**9) < 10**7
    assert zstd_size(io.BytesIO(b"\x28\xb5\x2f\xfd")) == 0


@pytest.fixture
def size(tmp_path):
    """What a table in columns takes in memory, written by a function to a file of a name."""

    def size_of(write, name):
        write(tmp_path / name)
        assert (tmp_path / name).stat().st_size < 400_000
        with opened(tmp_path / name) as (source,):
            return _columnar_size(source, name)

    return size_of


LONG, ROWS = "x" * 100_000, 1000


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
@pytest.mark.parametrize(
    ("column", "more"),
    [
        (pl.repeat(LONG, ROWS), 0),
        (pl.repeat(LONG, ROWS, dtype=pl.Categorical), 0),
        (pl.repeat(LONG, ROWS, dtype=pl.Enum([LONG])), 0),
        (pl.repeat(LONG.encode(), ROWS), 0),
        (pl.struct(pl.repeat(LONG, ROWS).alias("b")), 0),
        (pl.concat_list(pl.repeat(LONG, ROWS)), ROWS),
        (pl.repeat(LONG, ROWS).reshape((-1, 1)), ROWS),
    ],
    ids=["text", "category", "enumeration", "bytes", "object", "list", "array"],
)
def test_a_value_that_stands_on_disk_once_counts_wherever_it_stands(size, column, more, name):
    def write(path):
        frame = pl.select(a=column)
        frame.write_parquet(path) if name == "a.parquet" else frame.write_ipc(path, compression="zstd")

    assert size(write, name) == ROWS + more + 100_000 * ROWS


def test_a_table_in_columns_counts_by_its_cells_and_texts(size):
    frame = pl.select(pl.repeat(1, 100_000).alias("*"), b=pl.repeat("x", 100_000))
    assert size(frame.write_parquet, "a.jsonl") == 300_000
    assert size(lambda path: frame.write_ipc(path, compression="zstd"), "b.arrow") == 300_000
    assert size(lambda path: frame.write_ipc_stream(path, compression="zstd"), "c.arrow") == 300_000
    assert size(lambda path: path.write_bytes(b"PAR1 and nothing else"), "d.parquet") == 0


WIDE = {f"c{k}": 1 for k in range(1001)}
"""A row of one column too many."""

EXCESS = {
    "rows.jsonl": "".join(f'{{"target": "a", "c{k}": 1}}\n' for k in range(1001)).encode(),
    "array.json": json.dumps([{f"c{k}": 1} for k in range(1001)]).encode(),
    "row.jsonl.gz": gzip.compress(json.dumps(WIDE).encode()),
    "header.csv": (",".join(WIDE) + "\n" + ",".join("1" * 1001)).encode(),
    "header.tsv.gz": gzip.compress(("\t".join(WIDE) + "\n" + "\t".join("1" * 1001)).encode()),
}


@pytest.mark.parametrize("name", EXCESS)
def test_a_text_of_too_many_columns_is_refused_with_what_to_do(sent, name):
    job = sent(EXCESS[name], name)
    assert job.message == f"{name}: has more than 1,000 columns, which are the most here ({FIX})"


@pytest.mark.parametrize("nested", [False, True])
def test_a_table_of_too_many_columns_is_refused_nested_ones_too(sent, nested):
    file = io.BytesIO()
    pl.DataFrame([{"target": WIDE} if nested else WIDE]).write_parquet(file)
    assert sent(file.getvalue(), "a.parquet").message.startswith("a.parquet: has more than 1,000 columns")


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv", "a.parquet"])
def test_a_table_of_too_many_cells_is_refused(sent, monkeypatch, name):
    monkeypatch.setattr(adding, "MOST_IN_TABLE", TableLimits(columns=9, rows=99, cells=50, fix=FIX))
    frame = pl.DataFrame([{"target": "a", "prediction": "a", "confidence": 0.5}] * 17)
    file = io.BytesIO()
    write = {"a.jsonl": "ndjson", "a.json": "json"}.get(name, name[2:])
    getattr(frame, f"write_{write}")(file)
    assert sent(file.getvalue(), name).message == f"{name}: has more than 50 cells, which are the most here ({FIX})"
    file = io.BytesIO()
    getattr(frame.head(15), f"write_{write}")(file)
    assert sent(file.getvalue(), name).state == "done"


@pytest.mark.parametrize("name", ["a.json", "a.parquet"])
def test_a_table_of_too_many_rows_is_refused(sent, monkeypatch, name):
    monkeypatch.setattr(adding, "MOST_IN_TABLE", TableLimits(columns=9, rows=16, cells=999, fix=FIX))
    file = io.BytesIO()
    getattr(pl.DataFrame([{"target": "a", "prediction": "a", "confidence": 0.5}] * 17), f"write_{name[2:]}")(file)
    assert sent(file.getvalue(), name).message == f"{name}: has more than 16 rows, which are the most here ({FIX})"


@pytest.mark.parametrize("line", [b"{}\n", b"\n", b'{"target": "a"}\n'])
def test_a_text_of_too_many_lines_is_refused_before_they_are_read(sent, monkeypatch, line):
    monkeypatch.setattr(adding, "MOST_IN_TABLE", TableLimits(columns=9, rows=1000, cells=999, fix=FIX))
    job = sent(gzip.compress(b'{"target": "a"}\n' + 1000 * line), "a.jsonl.gz")
    assert job.message.startswith("a.jsonl.gz: has more than 1,000 lines, which are the most that an upload may have")


def test_a_bomb_is_refused_by_its_owners_name_with_what_to_do(tmp_path):
    path = tmp_path / "ours.jsonl.zst"
    path.write_bytes(zstd(b"0" * 30 * 1024**2))
    assert path.stat().st_size < 10_000
    refuse_bomb(path, "theirs.zst", 40 * 1024**2)
    with pytest.raises(
        DataError, match=r"theirs\.zst: unpacks to more than an upload may hold, 10 MB \(add it with demur add"
    ):
        refuse_bomb(path, "theirs.zst", 10 * 1024**2)


def bombs():
    """Small files that would take gigabytes or minutes, by name; each was let through once."""
    rows = 4000
    base = {"target": pl.repeat("a", rows), "prediction": pl.repeat("a", rows), "confidence": pl.repeat(0.5, rows)}
    columns = {
        "text.parquet": pl.repeat(LONG, rows),
        "category.arrow": pl.repeat(LONG, rows, dtype=pl.Categorical),
        "bytes.parquet": pl.repeat(LONG.encode(), rows),
        "object.parquet": pl.struct(pl.repeat(LONG, rows).alias("x")),
    }
    for name, column in columns.items():
        file = io.BytesIO()
        frame = pl.select(**base, more=column)
        frame.write_ipc(file, compression="zstd") if name.endswith("arrow") else frame.write_parquet(file)
        yield name, file.getvalue()
    keys = "".join(f'{{"target": "a", "prediction": "a", "confidence": 0.5, "k{k}": 1}}\n' for k in range(20_000))
    yield "keys.jsonl.gz", gzip.compress(keys.encode())
    yield "empty.jsonl.gz", gzip.compress(b"{}\n" * 11_000_000, 1)
    yield "array.json.gz", gzip.compress(b"[" + b"{}," * 11_000_000 + b"{}]", 1)
    names = ",".join(f"c{k}" for k in range(100_000))
    yield "header.csv.gz", gzip.compress(f"{names}\n{'1,' * 99_999}1\n".encode())


@pytest.mark.skipif(sys.platform != "linux", reason="the memory of processes is read from /proc")
def test_no_small_file_takes_more_memory_than_a_job_may_or_more_than_seconds(store, tmp_path):
    """In the real process, which is bound to 400 MB: most are refused by a look at them, the others by the limit."""
    limits = Limits(memory=400 * 1024**2, processor=60)
    with closing(Worker(store.root, limits=limits)) as worker:
        for name, content in bombs():
            assert len(content) < 6_000_000, name
            (tmp_path / name).write_bytes(content)
            given = {"path": str(tmp_path / name), "file": name, "most": 200 * 1024**2, "reading": {}}
            given |= {"name": None, "tags": [], "note": "", "kind": None, "replace": False}
            job = worker.start("demur.apps.web.pages.adding:add_upload", given, heavy=True)
            assert job.ended.wait(300), name
            assert (job.state, job.internal) == ("failed", False), name
            assert re.search("which are the most|may hold|400 MB of memory that one job may take", job.message), name
            process = worker._lanes[0].process
            if process is not None:  # one that was aborted is gone, and was within its limit
                status = Path(f"/proc/{process.pid}/status").read_text()
                assert int(re.search(r"VmHWM:\s*(\d+)", status)[1]) < 600 * 1024, name
    assert store.runs() == []
