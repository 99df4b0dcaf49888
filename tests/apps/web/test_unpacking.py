import gzip
import io

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.apps.web.pages.adding import ZSTD_BLOCK, gzip_size, refuse_bomb, size_within, zstd_size
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


def test_a_text_that_stands_on_disk_once_counts_wherever_it_stands(tmp_path):
    path = tmp_path / "a.parquet"
    pl.select(a=pl.repeat("x" * 100_000, 1000)).write_parquet(path)
    assert path.stat().st_size < 200_000
    assert size_within(path, 10) == 1000 + 100_000 * 1000


def test_a_table_in_columns_counts_by_its_cells_and_texts(tmp_path):
    frame = pl.select(a=pl.repeat(1, 100_000), b=pl.repeat("x", 100_000))
    frame.write_parquet(tmp_path / "a.jsonl")
    frame.write_ipc(tmp_path / "b.arrow", compression="zstd")
    assert (tmp_path / "a.jsonl").stat().st_size < 20_000
    assert [size_within(tmp_path / name, 10) for name in ("a.jsonl", "b.arrow")] == [300_000, 300_000]
    (tmp_path / "c.parquet").write_bytes(b"PAR1 and nothing else")
    assert size_within(tmp_path / "c.parquet", 10) == 0


def test_a_bomb_is_refused_by_its_owners_name_with_what_to_do(tmp_path):
    path = tmp_path / "ours.jsonl.zst"
    path.write_bytes(zstd(b"0" * 30 * 1024**2))
    assert path.stat().st_size < 10_000
    refuse_bomb(path, "theirs.zst", 40 * 1024**2)
    with pytest.raises(
        DataError, match=r"theirs\.zst: unpacks to more than an upload may hold, 10 MB \(add it with demur add"
    ):
        refuse_bomb(path, "theirs.zst", 10 * 1024**2)
