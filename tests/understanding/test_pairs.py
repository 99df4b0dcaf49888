"""Tables of pairs, of answers and of texts to be answered."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.errors import DataError
from demur.lab.corpora import museum
from demur.understanding.pairs import PairReading, Pairs, read_answers, read_inputs, read_pairs

ROWS = [
    {"text": "when do you open", "intent": "hours"},
    {"text": "opening times please", "intent": "hours"},
    {"text": "who built it", "intent": "builder"},
]


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_columns_go_by_their_other_names_and_that_is_told() -> None:
    found = read_pairs(ROWS)
    assert found.labels == ["hours", "hours", "builder"]
    assert found.notes == ("input <- text", "target <- intent", "1 label has one example: builder")
    assert found.warnings == ()
    assert found.answers is None


def test_files_frames_and_rows_give_the_same_pairs(tmp_path: Path) -> None:
    path = written(tmp_path / "pairs.jsonl", ROWS)
    table = pl.DataFrame(ROWS)
    table.write_csv(tmp_path / "pairs.csv")
    expected = read_pairs(ROWS)
    for found in (
        read_pairs(path),
        read_pairs(tmp_path / "pairs.csv"),
        read_pairs(table),
        read_pairs(table.to_pandas()),
    ):
        assert found.frame.equals(expected.frame)


def test_several_files_are_one_table(tmp_path: Path) -> None:
    written(tmp_path / "a.jsonl", ROWS[:1])
    written(tmp_path / "b.jsonl", ROWS[1:])
    assert read_pairs(tmp_path / "*.jsonl").texts == read_pairs(ROWS).texts


@pytest.mark.parametrize("target", [None, "oos", "out_of_scope", []])
def test_texts_without_a_target_are_off_topic(target: Any) -> None:
    found = read_pairs([{"input": "a", "target": "x"}, {"input": "b", "target": target}])
    assert (found.texts, found.off_topic) == (["a"], ("b",))
    assert "1 text without an answer is off-topic: it helps to tune, and is not learnt from" in found.notes


def test_which_targets_mean_out_of_scope_is_an_option() -> None:
    rows = [{"input": "a", "target": "oos"}, {"input": "b", "target": "none"}]
    found = read_pairs(rows, reading=PairReading(out_of_scope=("none",)))
    assert (found.labels, found.off_topic) == (["oos"], ("b",))


def test_numbers_are_labels_and_a_list_of_one_is_its_label() -> None:
    assert read_pairs([{"input": "a", "target": 3.0}, {"input": "b", "target": 4.0}]).labels == ["3", "4"]
    assert read_pairs([{"input": "a", "target": ["x"]}]).labels == ["x"]


def test_conditions_choose_rows() -> None:
    rows = [{**row, "split": "test" if place else "train"} for place, row in enumerate(ROWS)]
    found = read_pairs(rows, reading=PairReading(where=(("split", "test"),)))
    assert len(found) == 2
    assert "data: 2 of 3 rows kept" in found.notes
    with pytest.raises(DataError, match="data: no row is left where split is dev"):
        read_pairs(rows, reading=PairReading(where=(("split", "dev"),)))


def test_copies_contradictions_and_single_examples_are_told() -> None:
    rows = [("Open?", "a"), (" open? ", "a"), ("OPEN?", "b"), ("shut?", "c")]
    found = read_pairs([{"input": text, "target": label} for text, label in rows])
    assert found.copies == 1
    assert found.contradicted == (("open?", ("a", "b")),)
    assert found.single == ("b", "c")
    assert "1 pair repeats another; each counts" in found.notes
    assert "2 labels have one example: b, c" in found.notes
    assert found.warnings == ('1 text has several labels, e.g. "open?" has a and b',)


def test_answers_stand_in_the_table_once_or_often() -> None:
    rows = [
        {"input": "a", "target": "x", "answer": "Yes."},
        {"input": "b", "target": "x", "answer": None},
        {"input": "c", "target": "y", "answer": " "},
        {"input": "d", "target": "x", "answer": " Yes. "},
    ]
    found = read_pairs(rows)
    assert found.answers == {"x": "Yes."}
    assert found.wordless == ("y",)
    assert "1 label has no answer text: y" in found.notes


def test_two_answers_for_one_label_are_refused_with_both_places(tmp_path: Path) -> None:
    said = [{"input": "a", "target": "x", "answer": "Yes."}, {"input": "b", "target": "x", "answer": "No."}]
    path = written(tmp_path / "pairs.jsonl", said)
    expected = r'pairs.jsonl:2: the answer "x" says "No." here, and "Yes." at .*pairs.jsonl:1 \(a label stands for one'
    with pytest.raises(DataError, match=expected):
        read_pairs(path)


FAULTS: dict[str, tuple[list[dict[str, Any]], str]] = {
    "no input": ([{"sentence": "a", "target": "x"}], "needs a column input .*there are sentence, target"),
    "no target": ([{"input": "a", "kind": "x"}], "needs a column target"),
    "only answers": ([{"input": "a", "answer": "x"}], "--map target=answer makes each answer a label of its own"),
    "two inputs": ([{"text": "a", "question": "b", "target": "x"}], "input may be any of the columns"),
    "empty text": ([{"input": "a", "target": "x"}, {"input": " ", "target": "x"}], "row 2: input must hold words"),
    "missing text": ([{"input": "a", "target": "x"}, {"input": None, "target": "x"}], "row 2: input must hold words"),
    "empty label": ([{"input": "a", "target": ""}], "row 1: target must name an answer"),
    "several labels": ([{"input": "a", "target": ["x", "y"]}], 'row 1: target must be one label; got "x, y"'),
    "no label at all": ([{"input": "a", "target": "oos"}], "no row has the label of an answer"),
}


@pytest.mark.parametrize(("rows", "said"), FAULTS.values(), ids=FAULTS)
def test_faults_say_where_and_how_to_mend_them(rows: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(DataError, match=said):
        read_pairs(rows)


def test_each_answer_may_be_a_label_of_its_own() -> None:
    found = read_pairs(
        [{"question": "open?", "answer": "From ten."}], reading=PairReading(columns={"target": "answer"})
    )
    assert (found.labels, found.answers) == (["From ten."], {"From ten.": "From ten."})


@pytest.mark.parametrize("names", [("answer", "text"), ("target", "answer"), ("label", "text"), ("Intent", "Answer")])
def test_tables_of_answers_go_by_several_names(tmp_path: Path, names: tuple[str, str]) -> None:
    path = written(tmp_path / "answers.jsonl", [{names[0]: "hours", names[1]: "From ten."}])
    assert read_answers(path) == {"hours": "From ten."}


def test_tables_of_answers_are_whole() -> None:
    with pytest.raises(DataError, match="needs columns answer and text, or target and answer"):
        read_answers([{"answer": "hours"}])
    with pytest.raises(DataError, match="row 2: answer must not be empty"):
        read_answers([{"answer": "hours", "text": "From ten."}, {"answer": "way", "text": " "}])
    with pytest.raises(DataError, match=r'row 2: the answer "x" says "No." here, and "Yes." at data: row 1'):
        read_answers([{"answer": "x", "text": "Yes."}, {"answer": "x", "text": "No."}])


def test_answers_without_questions_are_warned_of_and_others_must_agree() -> None:
    found = read_pairs([{**row, "answer": "From ten."} for row in ROWS[:2]])
    assert found.with_answers({"lift": "On the left."}).warnings == (
        "1 answer has no questions, so it is never given: lift",
    )
    with pytest.raises(DataError, match=r'the answer "hours" says "At noon." here, and "From ten." in the table of'):
        found.with_answers({"hours": "At noon."})


def test_the_bundled_guide_has_no_slips() -> None:
    corpus = museum()
    found = read_pairs(corpus.questions).with_answers(read_answers(corpus.answers))
    assert (len(found), len(found.classes), found.warnings) == (1505, 47, ())


@given(st.lists(st.tuples(st.sampled_from(["a", "A ", "b"]), st.sampled_from(["x", "y", None])), min_size=1))
def test_every_row_is_a_pair_or_off_topic(rows: list[tuple[str, str | None]]) -> None:
    table = [{"input": text, "target": label} for text, label in rows]
    known = [(text, label) for text, label in rows if label]
    if not known:
        with pytest.raises(DataError, match="no row has the label"):
            read_pairs(table)
        return
    found: Pairs = read_pairs(table)
    assert list(zip(found.texts, found.labels, strict=True)) == known
    assert list(found.off_topic) == [text for text, label in rows if not label]
    folded = {(text.strip().lower(), label) for text, label in known}
    assert found.copies == len(known) - len(folded)


def test_texts_keep_their_rows_and_lose_the_answers_of_others() -> None:
    row = {"question": "open?", "intent": "hours", "noise": 3, "prediction": "way", "correct": False, "model": "old"}
    found = read_inputs([row])
    assert found.frame.to_dicts() == [{"id": "1", "input": "open?", "target": "hours", "noise": 3}]
    assert found.notes[-1] == "data: the columns prediction, correct, model are left out"


def test_missing_texts_are_empty_and_ids_number_the_rows(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("input,split\nopen?,a\n,b\n")
    found = read_inputs(tmp_path / "in.csv", reading=PairReading(where=(("split", "b"),)))
    assert found.frame.select("id", "input").rows() == [("2", "")]
    with pytest.raises(DataError, match="no row is left where split is c"):
        read_inputs(tmp_path / "in.csv", reading=PairReading(where=(("split", "c"),)))


def test_lists_of_acceptable_targets_stay_lists() -> None:
    assert read_inputs([{"input": "a", "target": ["x", "y"]}]).frame["target"].to_list() == [["x", "y"]]


def test_several_files_of_texts_are_one_table(tmp_path: Path) -> None:
    for name in ("a", "b"):
        written(tmp_path / f"{name}.jsonl", [{"input": name}])
    assert read_inputs(tmp_path / "?.jsonl").frame["id"].to_list() == ["1", "2"]


def test_texts_need_a_column_of_texts() -> None:
    with pytest.raises(DataError, match=r"data: needs a column input .*there are words"):
        read_inputs([{"words": "a"}])
