"""No reader changes the number of rows, whatever the format and however empty the cells."""

import gzip
import io
import tempfile
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from demur.core.io.growing import Tail
from demur.errors import DataError
from demur.importers.reading import read_table
from demur.nbest_lists.table import nbest, read_nbest
from demur.returns.follow import BatchReader
from demur.returns.table import Reading, read_responses
from demur.understanding.pairs import read_inputs

FEW = settings(max_examples=max(3, settings.default.max_examples // 4))
COLUMNS = ("input", "target", "prediction", "confidence")

cells = st.none() | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\0"), max_size=4)
answers = st.sampled_from([(None, None, None), ("a", None, None), (None, "a", "0.5"), ("a", "a", "0.25")])
tables = st.lists(st.tuples(cells, answers).map(lambda row: (row[0], *row[1])), min_size=1, max_size=6)


def jsonl(frame: pl.DataFrame) -> bytes:
    return frame.write_ndjson().encode()


def json_array(frame: pl.DataFrame) -> bytes:
    return frame.write_json().encode()


def csv(frame: pl.DataFrame) -> bytes:
    return frame.write_csv().encode()


def tsv(frame: pl.DataFrame) -> bytes:
    return frame.write_csv(separator="\t").encode()


def parquet(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


def arrow(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_ipc(buffer)
    return buffer.getvalue()


def zstd(data: bytes) -> bytes:
    return pa.compress(data, codec="zstd", asbytes=True)


FORMATS = {
    "t.jsonl": jsonl,
    "t.json": json_array,
    "t.csv": csv,
    "t.tsv": tsv,
    "t.parquet": parquet,
    "t.arrow": arrow,
    "t.jsonl.gz": lambda frame: gzip.compress(jsonl(frame)),
    "t.csv.gz": lambda frame: gzip.compress(csv(frame)),
    "t.tsv.gz": lambda frame: gzip.compress(tsv(frame)),
    "t.csv.zst": lambda frame: zstd(csv(frame)),
    "windows.csv": lambda frame: csv(frame).replace(b"\n", b"\r\n"),
}


def followed(path: Path, most: int) -> int:
    """The rows of a log that is followed, a few bytes at a time, but more than any row has."""
    log, reader, n = Tail(path, most=most), BatchReader(Reading()), 0
    while log.more():
        while (batch := log.batch()) is not None:
            n += rows.frame.height if (rows := reader.judged(batch)) else 0
    while (batch := log.batch(last=True)) is not None:
        n += rows.frame.height if (rows := reader.judged(batch)) else 0
    log.close()
    return n


READERS = {
    "table": lambda path: len(read_table(path)),
    "answers": lambda path: len(read_responses(path)),
    "answers with all columns": lambda path: len(read_responses(path, reading=Reading(keep=("*",)))),
    "inputs": lambda path: len(read_inputs(path).texts),
}


@pytest.mark.parametrize("name", FORMATS)
@FEW
@given(rows=tables)
@example(rows=[("a", "x", "x", "0.5"), (None, None, None, None), ("b", None, None, None)])
@example(rows=[(None, None, None, None)])
@example(rows=[("a", "x", "x", "0.5"), ("\x01", None, None, None)])
@example(rows=[("", "", "", None), ("two\n\nlines", None, None, None), ('"', None, None, None)])
def test_every_format_and_reader_keeps_every_row(name, rows):
    frame = pl.DataFrame(rows, schema=dict.fromkeys(COLUMNS, pl.String), orient="row")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(FORMATS[name](frame))
        counts = {reader: count(path) for reader, count in READERS.items()}
    assert counts == dict.fromkeys(READERS, len(rows))


@pytest.mark.parametrize("name", ["t.jsonl", "t.csv", "t.tsv"])
@FEW
@given(rows=tables)
@example(rows=[("a", "x", "x", "0.5"), (None, None, None, None), ("b", None, None, None)])
@example(rows=[(None, None, None, None), ("\n\u0800", None, None, None)])
def test_a_log_that_is_followed_keeps_every_row(name, rows):
    frame = pl.DataFrame(rows, schema=dict.fromkeys(COLUMNS, pl.String), orient="row")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(FORMATS[name](frame))
        longest = max(len(repr(row).encode()) for row in rows)
        assert followed(path, most=2 * longest + len("prediction") * len(COLUMNS)) == len(rows)


@pytest.mark.parametrize("mark", [",", "\t"])
@given(gaps=st.lists(st.sampled_from(["", "\r", "EMPTY", "ROW", "QUOTED"]), min_size=1, max_size=8))
def test_only_lines_without_any_character_are_skipped(mark, gaps):
    spelled = {"EMPTY": mark * 3, "ROW": mark.join("wxyz"), "QUOTED": mark.join(('"w\n\n"', "", "", ""))}
    lines = [mark.join(COLUMNS), mark.join("abcd"), *(spelled.get(gap, gap) for gap in gaps)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("t.csv" if mark == "," else "t.tsv")
        path.write_text("\n".join(lines) + "\n", newline="")
        assert len(read_table(path)) == 1 + sum(gap in spelled for gap in gaps)


def test_a_csv_of_blank_lines_below_its_header_holds_no_rows(tmp_path):
    (tmp_path / "t.csv").write_text("target,prediction\n\n\n")
    with pytest.raises(DataError, match="holds a header but no rows"):
        read_responses(tmp_path / "t.csv")


def test_a_row_of_empty_cells_among_n_best_lists_is_refused_at_its_line_as_in_jsonl(tmp_path):
    row = '{},a,"[{{""act"": ""a"", ""confidence"": 0.5}}]"'
    table = f"id,reference,hypotheses\n\n{row.format('u1')}\n\n{row.format('u2')}\n"
    (tmp_path / "t.csv").write_text(table)
    assert len(read_nbest(tmp_path / "t.csv").frame) == 2
    (tmp_path / "t.csv").write_text(f"{table},,\n")
    with pytest.raises(DataError, match=r"t\.csv:6.* has no hypotheses"):
        read_nbest(tmp_path / "t.csv")
    with pytest.raises(DataError, match="row 1 has no hypotheses"):
        nbest([{"id": None, "reference": None, "hypotheses": None}])
