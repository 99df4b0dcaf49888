import polars as pl
import pytest

from demur.data.corpora import museum
from demur.errors import UsageError
from demur.systems.classifiers import NAMES, respond, respond_all

TRAIN = ["when do you open", "what time do you open", "how much is a ticket", "what does a ticket cost"]
TARGETS = ["hours", "hours", "price", "price"]


@pytest.mark.parametrize("name", NAMES)
def test_a_classifier_answers_with_a_label_and_a_confidence(name):
    labels, confidences = respond(name, TRAIN, TARGETS, ["when do you open", "ticket cost"])
    assert labels == ["hours", "price"]
    assert all(0 <= one <= 1 for one in confidences)


def test_the_nearest_question_of_a_known_one_is_itself():
    assert respond("nearest", TRAIN, TARGETS, TRAIN)[1] == pytest.approx([1.0] * 4)


def test_all_classifiers_answer_every_row_in_one_table():
    train = pl.DataFrame({"input": TRAIN, "target": TARGETS})
    table = respond_all(train, train.with_columns(pl.Series("id", ["a", "b", "c", "d"])))
    assert table["system"].to_list() == [name for name in NAMES for _ in range(4)]
    assert {"id", "input", "target", "prediction", "confidence"} <= set(table.columns)


def test_an_unknown_classifier_is_refused_by_name():
    with pytest.raises(UsageError, match="word-lr, char-lr, nearest"):
        respond("oracle", TRAIN, TARGETS, TRAIN)


def test_the_museum_has_enough_of_everything_and_nothing_twice():
    corpus = museum()
    counts = corpus.questions["target"].value_counts()
    assert corpus.answers.height >= 40
    assert counts["count"].min() >= 12
    assert set(corpus.answers["answer"]) == set(counts["target"])
    assert corpus.offtopic.height >= 100
    plain = pl.concat([corpus.questions["input"], corpus.offtopic["input"]]).str.to_lowercase()
    assert plain.str.replace_all(r"[^\w\s]", "").str.strip_chars().n_unique() == plain.len()
    assert pl.concat([corpus.questions["id"], corpus.offtopic["id"]]).is_unique().all()
