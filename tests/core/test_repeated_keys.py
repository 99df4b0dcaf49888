import gzip
import json
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from demur.core.io.files import read_source
from demur.core.io.json import refuse_repeats_in_rows
from demur.core.io.sources import opened
from demur.core.io.tables import Request
from demur.errors import DataError
from demur.importers.reading import read_table
from reference.repeats import first_repeat, repeats

KEYS = st.sampled_from(["a", "b", "id", 'a"', "a:", "é"])
TEXTS = st.sampled_from(["a", "12:30", '"a":', '{"a": 1, "a": 2}', "x : y", "\\", "é"])
SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | TEXTS
SPACES = st.sampled_from(["", "", " ", "\t", "\r"])


def _spelled(text: str, escaped: bool) -> str:
    if not escaped:
        return json.dumps(text, ensure_ascii=False)
    return '"' + "".join(f"\\u{ord(letter):04x}" for letter in text) + '"'


def _written(pairs: list[Any]) -> str:
    return "{" + ",".join(f"{key}{before}:{after}{value}" for key, before, after, value in pairs) + "}"


def _objects(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    key = st.builds(_spelled, KEYS, st.sampled_from([False, False, True]))
    return st.lists(st.tuples(key, SPACES, SPACES, values), max_size=3).map(_written)


CELLS = st.builds(_spelled, TEXTS, st.booleans()) | SCALARS.map(json.dumps)
NESTED = st.recursive(
    CELLS, lambda inner: _objects(inner) | st.lists(inner, max_size=2).map(lambda one: f"[{','.join(one)}]")
)
LINES = st.lists(_objects(NESTED) | st.sampled_from(["", " ", '{"a": NaN}', '{"id": 1, "a": 2, "b": 3}']), max_size=6)


@given(LINES, st.sampled_from([None, ("a",), ("id", "b")]))
@example(['{"a": null, "a": 1}', "{}"], None)
@example(['{"a": 1, "\\u0061": 2}'], ("a",))
@example(['{"id": 1}', "", '{"id": 1, "a": 1, "a": 2}', '{"id": 1, "b": 2, "a": 3}'], None)
@example(['{"id": 1, "b": {"a": 1, "a": 2}}'], ("id",))
@example(['{"id": 1, "b": {"a": 1, "a": 2}}'], ("b",))
@example(['{"id": 1, "b": "\\u003a", "b": 2}'], None)
def test_a_line_is_refused_if_and_only_if_an_object_in_it_has_a_key_twice(tmp_path_factory, lines, columns):
    text = "\n".join(['{"id": 0, "a": 1}', *lines])
    path = tmp_path_factory.mktemp("repeats") / "log.jsonl"
    path.write_text(text, encoding="utf-8", newline="")
    request = Request() if columns is None else Request(candidates=lambda _: columns)
    with opened(path) as (source,):
        line = first_repeat(text, columns)
        if line is None:
            read_source(source, request)
        else:
            with pytest.raises(DataError, match=rf"log\.jsonl:{line}: has the key "):
                read_source(source, request)


@given(st.lists(NESTED | _objects(NESTED), min_size=1, max_size=3), st.sampled_from([None, ("a",)]))
def test_of_rows_in_memory_the_first_with_a_key_twice_is_refused(rows, columns):
    rows = [row for row in rows if columns is None or row.startswith("{")]
    first = next((number for number, row in enumerate(rows) if repeats(row, columns)), None)
    found = None
    try:
        refuse_repeats_in_rows([row.encode() for row in rows], str, columns)
    except DataError as fault:
        found = int(fault.where)
    assert found == first


def test_text_whose_keys_come_once_needs_no_closer_look(monkeypatch):
    monkeypatch.setattr("demur.core.io.json._refuse_row", None)
    rows = [b'{"a": "12:30", "b": [{"a": 1}, {"a": "\\":"}], "c:": {"b": 1, "b": 2}}', b'{"a": "\\u003c"}']
    refuse_repeats_in_rows(rows, str, ("a", "b"))
    refuse_repeats_in_rows(rows[1:], str)


PACKED = {"": bytes, ".gz": gzip.compress, ".zst": lambda text: pa.Codec("zstd").compress(text, asbytes=True)}


@pytest.mark.parametrize("ending", PACKED)
def test_a_key_that_comes_twice_far_down_is_refused_with_its_line(tmp_path, ending):
    rows = ['{"id": 1, "a": null, "time": "12:30"}'] * 30_000
    rows[25_000] = '{"id": 1, "a": null, "\\u0061": 2}'
    path = tmp_path / f"log.jsonl{ending}"
    text = "".join(row + "\n" for row in rows)
    path.write_bytes(PACKED[ending](text.encode()))
    with pytest.raises(DataError, match=r'25001: has the key "a" 2 times'):
        read_table(path)


def test_lines_whose_values_are_all_read_are_not_decoded_again(tmp_path, monkeypatch):
    path = tmp_path / "log.jsonl"
    pl.DataFrame({"id": ["a", "b"], "time": ["12:30", "12:31"], "said": ["x", "y"]}).write_ndjson(path)
    monkeypatch.setattr("demur.core.io.json._decode_lines", None)
    assert read_table(path).height == 2
