"""Lists of labels are read however they are written, and what is no list is an empty one."""

import json

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.nbest_lists.ranks import CONFIDENCE_NAMES, LABEL_NAMES, label_list, label_lists


@pytest.mark.parametrize("label", LABEL_NAMES)
@pytest.mark.parametrize("confidence", CONFIDENCE_NAMES)
def test_the_parts_of_an_entry_go_by_several_names(label, confidence):
    cell = [{label: "no", confidence: 0.2}, {label: "yes", confidence: 0.7}]
    assert label_list(cell) == label_list(json.dumps(cell)) == (["yes", "no"], [0.7, 0.2])


@pytest.mark.parametrize("cell", [None, "", "not JSON", "7", '{"label": "yes"}', 3, "[" * 100_000])
def test_what_is_no_list_is_empty(cell):
    assert label_list(cell) == ([], [])


def test_entries_without_a_label_are_left_out_and_odd_confidences_are_unknown():
    cell = [{"p": 0.5}, {"label": "a", "p": "high"}, ["b"], [], "c", {"label": 7, "p": True}]
    assert label_list(cell) == (["a", "b", "c", "7"], [None, None, None, None])


def test_a_list_with_an_unknown_confidence_stays_as_it_was_given():
    assert label_list([["a", 0.1], ["b", None], ["c", 0.9]])[0] == ["a", "b", "c"]


@given(st.lists(st.tuples(st.text(), st.floats(0, 1))))
def test_labels_stand_by_falling_confidence_and_none_is_lost(pairs):
    labels, confidences = label_list(json.dumps(pairs))
    assert confidences == sorted(confidences, reverse=True)
    assert sorted(zip(labels, confidences, strict=True)) == sorted(pairs)


def test_a_column_of_objects_is_read_as_one_of_json():
    cells = [[{"label": "a", "p": 0.25}], None, [{"label": "b", "p": 0.5}, {"label": "c", "p": 0.75}]]
    objects = pl.Series("nbest", cells)
    texts = pl.Series("nbest", [None if cell is None else json.dumps(cell) for cell in cells])
    assert label_lists(objects).equals(label_lists(texts))
    assert label_lists(texts)["labels"].to_list() == [["a"], [], ["c", "b"]]


ENTRIES = st.fixed_dictionaries({"label": st.text("ab<>", max_size=3), "p": st.floats(0, 1)})
CELLS = st.one_of(st.none(), st.lists(ENTRIES, max_size=4).map(json.dumps), st.sampled_from(["", "[]", "null"]))
ODD = st.sampled_from(
    ['[["a", 0.5]]', '["a"]', "no list", '[{"label": "a"}]', '[{"p": 0.5}]', '[{"label": 1, "p": "x"}]']
)


@given(st.lists(CELLS, max_size=8), st.lists(ODD, max_size=1))
def test_a_column_reads_as_its_cells_do_one_by_one(cells, odd):
    column = [*cells, *odd]
    found = label_lists(pl.Series("nbest", column, dtype=pl.String))
    assert list(found.iter_rows()) == [label_list(cell) for cell in column]


def test_lists_that_are_alike_are_read_at_once(monkeypatch):
    monkeypatch.setattr("demur.nbest_lists.ranks.label_list", lambda cell: pytest.fail(f"read by itself: {cell}"))
    cells = ['[{"label": "a", "p": 0.1, "rank": 2}, {"label": "b", "p": 0.8}]', None, "[]"]
    assert label_lists(pl.Series("nbest", cells)).rows() == [(["b", "a"], [0.8, 0.1]), ([], []), ([], [])]
