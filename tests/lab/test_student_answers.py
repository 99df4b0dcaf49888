import json

import polars as pl
import pytest

from demur.errors import DataError
from demur.understanding.grader import student_answers

ROW = {"question": "Why is bulb A on?", "expected": "It is in a closed path.", "answer": "closed path"}


@pytest.mark.parametrize(
    "expected",
    [
        ["One.", "Other."],
        [{"text": "One."}, {"text": "Other.", "category": "BEST"}],
        json.dumps(["One.", "Other."]),
        ["One.", " ", "Other."],
    ],
)
def test_expected_answers_may_be_listed_in_several_ways(expected):
    assert student_answers([ROW | {"expected": expected}])["expected"].to_list() == [["One.", "Other."]]


@pytest.mark.parametrize("expected", ["A text.", "[no list", "[A] and [B]"])
def test_one_expected_answer_is_a_list_of_one(expected):
    assert student_answers([ROW | {"expected": expected}])["expected"].to_list() == [[expected]]


def test_columns_are_found_by_their_other_names_or_mapped():
    frame = pl.DataFrame(
        {"question": ["q"], "references": [["r"]], "said": ["a"], "label": ["correct"], "subject": [7]}
    )
    table = student_answers(frame, columns={"answer": "said"}, marked=True)
    assert table.to_dicts() == [
        {"id": "1", "question": "q", "expected": ["r"], "answer": "a", "target": "correct", "group": "7"}
    ]


def test_what_was_checked_passes_again_unchanged():
    table = student_answers([ROW | {"id": "x", "dialogue": "d"}, ROW | {"id": "y", "dialogue": "d"}])
    assert student_answers(table).equals(table)


def test_an_empty_answer_is_an_answer():
    assert student_answers([ROW | {"answer": ""}])["answer"].to_list() == [""]


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        ([ROW, ROW | {"answer": None}], "row 2: answer must not be missing .*write an empty text"),
        ([ROW, ROW | {"question": None}], "row 2: question must not be missing"),
        ([ROW, ROW | {"expected": []}], "row 2: expected must hold at least one expected answer"),
        ([ROW, ROW | {"expected": " "}], "row 2: expected must hold at least one expected answer"),
        ([ROW, ROW | {"expected": None}], "row 2: expected must not be missing"),
        ([ROW | {"expected": [1]}], "row 1: expected must be a text, a list of texts"),
        ([{"question": "q", "answer": "a"}], 'there is no column "expected".*--map expected='),
        ([{"question": "q", "expectd": "e", "answer": "a"}], 'did you mean "expectd"'),
        ([], "holds no rows"),
    ],
)
def test_bad_tables_are_refused_with_the_place(rows, fault):
    with pytest.raises(DataError, match=fault):
        student_answers(rows)


def test_marks_are_asked_for_where_they_are_needed():
    with pytest.raises(DataError, match='there is no column "target"'):
        student_answers([ROW], marked=True)
    with pytest.raises(DataError, match="row 2: target must not be missing"):
        student_answers([ROW | {"target": "correct"}, ROW | {"target": None}], marked=True)
