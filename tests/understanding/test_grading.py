"""The grader as a file, and its evaluation by folds; `tests/lab/test_grader.py` has the grader itself."""

import json

import polars as pl
import pytest

import demur
from demur.errors import DataError
from demur.understanding.grader import cross_graded
from demur.understanding.grading import read_grader, write_grader

SAID = {"right": "the path is closed", "part": "the path", "none": "no idea"}
ROWS = [
    {
        "question": "Why is the bulb on?",
        "expected": "the path is closed",
        "answer": f"{said}{' now' * (k % 2)}",
        "target": label,
    }
    for k in range(6)
    for label, said in SAID.items()
]


@pytest.fixture(scope="module")
def trained():
    return demur.train_grader(ROWS, folds=3, replicates=50)


def test_a_grader_is_evaluated_by_folds_and_learns_from_all(trained):
    assert trained.report.figures["accuracy"].value == 1
    assert trained.frame()["fold"].n_unique() == 3
    assert trained.to_dict()["n"] == len(ROWS)


def test_answers_may_be_in_a_file(tmp_path):
    path = tmp_path / "answers.jsonl"
    pl.DataFrame(ROWS).write_ndjson(path)
    assert cross_graded(path, folds=3).equals(cross_graded(ROWS, folds=3))
    assert cross_graded(str(path), folds=3).height == len(ROWS)


def test_a_grader_in_a_file_grades_as_the_one_it_was_written_from(trained, tmp_path):
    path = tmp_path / "grader.json"
    write_grader(trained, path)
    answers = [{key: row[key] for key in ("question", "expected", "answer")} for row in ROWS]
    graded = demur.grade(path, answers)
    assert graded.frame().equals(demur.grade(trained, pl.DataFrame(answers)).frame())
    assert graded.to_dict()["labels"] == {"none": 6, "part": 6, "right": 6}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda file: file["below"].__setitem__(0, 0),
        lambda file: file["feature"].__setitem__(0, 8),
        lambda file: file["counts"].pop(),
        lambda file: file["threshold"].__setitem__(0, None),
    ],
)
def test_a_file_whose_nodes_make_no_tree_is_refused(trained, tmp_path, spoil):
    path = tmp_path / "grader.json"
    write_grader(trained, path)
    file = json.loads(path.read_text())
    spoil(file)
    path.write_text(json.dumps(file))
    with pytest.raises(DataError, match="the nodes do not make a tree"):
        read_grader(path)
