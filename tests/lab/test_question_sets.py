import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.errors import DataError
from demur.lab.corpora import museum
from demur.lab.understanding_experiments import HELD_OUT, read_questions, split_corpus


def rows(per_label=8, labels=("hours", "price"), off=2, **others):
    named = [{"text": f"{label} {k}", "label": label} for label in labels for k in range(per_label)]
    return [{**row, **others} for row in [*named, *({"text": f"off {k}", "label": None} for k in range(off))]]


def test_of_every_answer_of_the_guide_eight_questions_are_held_out_and_all_off_topic_ones():
    corpus = museum()
    material = split_corpus(corpus)
    held = material.test.filter(pl.col("target").is_not_null())
    assert held["target"].value_counts()["count"].to_list() == [HELD_OUT] * corpus.answers.height
    assert material.out_of_scope == corpus.offtopic.height
    assert material.train.height + held.height == corpus.questions.height
    assert not set(material.texts) & set(held["input"])


def test_another_seed_holds_out_other_questions_and_the_same_the_same():
    tests = [split_corpus(museum(), seed=seed).test["id"].to_list() for seed in (1, 1, 2)]
    assert tests[0] == tests[1] != tests[2]


def test_a_column_split_divides_own_questions_and_what_is_neither_is_counted():
    split = ["train", "Test ", "val", "train"]
    table = {"id": list("abcd"), "input": ["1", "2", "3", "4"], "target": ["x", "x", "x", "oos"], "split": split}
    material = read_questions(table)
    assert material.texts == ["1"]
    assert material.off_topic == ("4",)
    assert material.test.to_dicts() == [{"id": "b", "input": "2", "target": "x"}]
    assert material.notes == ("1 row left out, neither train nor test",)


@given(st.integers(1, 12), st.integers(0, 4), st.integers(0, 9))
def test_without_a_split_a_quarter_of_each_label_is_held_out_and_nothing_is_lost(per_label, off, seed):
    given_rows = rows(per_label, off=off)
    if per_label < 4 and not off:
        with pytest.raises(DataError, match="there are no questions to be tested on"):
            read_questions(given_rows, seed=seed)
        return
    material = read_questions(given_rows, seed=seed)
    held = material.test.filter(pl.col("target").is_not_null())["target"].value_counts()
    assert set(held["count"]) <= {per_label // 4}
    assert material.out_of_scope == off
    assert sorted([*material.texts, *material.test["input"]]) == sorted(row["text"] for row in given_rows)


def test_half_of_the_off_topic_questions_are_learnt_from_where_none_are_set_apart():
    material = read_questions(rows(off=5)).with_off_topic()
    assert (len(material.off_topic), material.out_of_scope) == (2, 3)
    assert not set(material.off_topic) & set(material.test["input"])
    assert material.with_off_topic() is material


def test_in_scope_leaves_out_what_has_no_answer():
    material = read_questions(rows(off=3)).in_scope()
    assert material.out_of_scope == 0
    assert material.test.height == 4


def test_a_file_is_read_with_its_columns_and_named_after_itself(tmp_path):
    pl.DataFrame(rows()).rename({"text": "said", "label": "meant"}).write_csv(tmp_path / "own.csv")
    material = read_questions(tmp_path / "own.csv", columns={"input": "said", "target": "meant"})
    assert (material.name, material.train.height, material.test.height) == ("own", 12, 6)


def test_numbers_are_labels_too():
    material = read_questions({"input": list("abcd"), "target": [1, 1, 1, 1]})
    assert set(material.labels) == {"1"}


FAULTS = {
    "no input": ([{"label": "a"}], "needs a column input"),
    "no target": ([{"text": "a"}], "needs a column target"),
    "missing text": ([{"text": None, "label": "a"}, {"text": "b", "label": "a"}], "row 1: input must not be missing"),
    "nothing to learn": ([{"text": "a", "label": "oos", "split": "train"}], "there are no questions to learn from"),
    "nothing to test": ([{"text": "a", "label": "b", "split": "train"}], "there are no questions to be tested on"),
}


@pytest.mark.parametrize(("data", "said"), FAULTS.values(), ids=FAULTS)
def test_a_table_that_cannot_be_used_says_why(data, said):
    with pytest.raises(DataError, match=said):
        read_questions(data)


def test_a_gate_without_off_topic_questions_is_refused():
    with pytest.raises(DataError, match="the gate needs questions without an answer"):
        read_questions(rows(off=1)).with_off_topic()
