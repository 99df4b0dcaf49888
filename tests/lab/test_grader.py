import gzip
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.errors import DataError, UsageError
from demur.returns.table import responses
from demur.understanding.grader import FEATURES, ShortAnswerGrader, cross_graded, grouped_folds, stratified_folds

QUESTION = "Why is bulb A on?"
EXPECTED = ("it is in a closed path with the battery", "the battery is in a closed path")
SAID = {
    "correct": (
        "it is in a closed path with the battery",
        "bulb A is in a closed path with the battery",
        "the battery is in a closed path with it",
    ),
    "pc_incomplete": ("closed path", "there is a path", "because of a closed path"),
    "non_content": ("i do not know", "help me please", "no idea"),
}


def rows(copies=4):
    """Answers that word overlap tells apart, in dialogues of different sizes."""
    found = []
    for copy in range(copies):
        for label, texts in SAID.items():
            for text in texts:
                at = {"question": QUESTION, "expected": list(EXPECTED), "answer": text, "target": label}
                found.append({"id": f"a{len(found)}", "dialogue": f"d{copy % 3}", "group": f"s{len(found) % 5}", **at})
    return found


@pytest.fixture
def grader():
    return ShortAnswerGrader().fit(rows())


def test_features_are_the_best_over_the_expected_answers_and_those_of_the_question():
    row = {
        "question": "Is the path closed?",
        "expected": ["a closed path", "path with a battery"],
        "answer": "A path with gaps",
    }
    found = dict(zip(FEATURES, ShortAnswerGrader().features([row])[0], strict=True))
    # expected: {a, path} of 4 and 3 words, as two words; {path with}, {a} of 4 and 4 words
    assert found["expected_raw"] == 3
    assert found["expected_f1"] == pytest.approx(6 / 8)
    assert found["expected_lesk"] == 5
    assert found["expected_cosine"] == pytest.approx(3 / 4)
    # question: {path} of 4 and 4 words
    assert [found[f"question_{score}"] for score in ("raw", "f1", "lesk", "cosine")] == [1, 0.25, 1, 0.25]


def test_lesk_may_be_normalised_and_stop_words_left_out():
    row = {"question": "q", "expected": "a closed path", "answer": "the closed path"}
    assert ShortAnswerGrader(normalised_lesk=True).features([row])[0, 2] == pytest.approx(4 / 9)
    assert ShortAnswerGrader(stop_words=["a", "the"]).features([row])[0, 1] == 1


def test_an_empty_answer_shares_nothing_and_is_graded_all_the_same(grader):
    empty = [{"question": QUESTION, "expected": EXPECTED[0], "answer": ""}]
    assert grader.features(empty).tolist() == [[0.0] * 8]
    assert grader.predict(empty).tolist() == ["non_content"]


def test_what_was_learnt_is_told_again_with_probabilities_that_sum_to_one(grader):
    assert grader.classes_.tolist() == sorted(SAID)
    shares = grader.predict_proba(rows())
    assert grader.predict(rows()).tolist() == [row["target"] for row in rows()]
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert grader.classes_[shares.argmax(axis=1)].tolist() == grader.predict(rows()).tolist()


def test_labels_may_be_given_apart_from_the_table(grader):
    bare = [{part: row[part] for part in ("question", "expected", "answer")} for row in rows()]
    apart = ShortAnswerGrader().fit(bare, [row["target"] for row in rows()])
    np.testing.assert_array_equal(apart.predict_proba(bare), grader.predict_proba(bare))


def test_responses_are_judged_as_any_log(grader):
    table = grader.respond(rows())
    assert table.columns == ["id", "dialogue", "group", "target", "prediction", "confidence"]
    judged = responses(table).frame
    assert judged["right"].all()
    assert judged["dialogue"].to_list() == [row["dialogue"] for row in rows()]


def test_every_answer_is_graded_once_by_a_tree_that_did_not_learn_from_it():
    table = cross_graded(rows(), folds=4)
    assert table["id"].to_list() == [row["id"] for row in rows()]
    assert table["fold"].unique().sort().to_list() == [1, 2, 3, 4]
    fold = table["fold"].to_numpy()
    for number in range(1, 5):
        inside = fold == number
        learnt = ShortAnswerGrader().fit([row for row, held in zip(rows(), inside, strict=True) if not held])
        told = learnt.predict([row for row, held in zip(rows(), inside, strict=True) if held])
        assert table["prediction"].to_numpy()[inside].tolist() == told.tolist()


def test_the_seed_draws_the_folds_and_the_lent_grader_is_left_alone():
    lent = ShortAnswerGrader(min_per_leaf=1)
    first, again, other = (cross_graded(rows(), grader=lent, folds=3, seed=seed) for seed in (1, 1, 2))
    assert first.equals(again)
    assert first["fold"].to_list() != other["fold"].to_list()
    assert lent.tree_ is None


@pytest.mark.parametrize(("by", "folds"), [("dialogue", 3), ("group", 5), ("group", 2)])
def test_folds_by_a_column_do_not_part_its_values(by, folds):
    table = cross_graded(rows(), folds=folds, by=by)
    assert table.group_by(by).agg(pl.col("fold").n_unique())["fold"].to_list() == [1] * table[by].n_unique()
    assert table["fold"].n_unique() == folds


@given(st.lists(st.integers(0, 3), min_size=2, max_size=60), st.integers(2, 8), st.integers(0, 99))
def test_stratified_folds_differ_by_at_most_one_row_overall_and_in_each_label(labels, folds, seed):
    numbers = np.array(labels)
    fold = stratified_folds(numbers, folds, np.random.default_rng(seed))
    for label in {None, *labels}:
        sizes = np.bincount(fold if label is None else fold[numbers == label], minlength=folds)
        assert sizes.max() - sizes.min() <= 1


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2)), min_size=5, max_size=60), st.integers(0, 99))
def test_folds_of_whole_units_keep_them_together_and_leave_no_fold_empty(pairs, seed):
    units, labels = (np.unique(column, return_inverse=True)[1] for column in zip(*pairs, strict=True))
    folds = min(4, units.max() + 1)
    fold = grouped_folds(labels, units, folds, np.random.default_rng(seed))
    assert len(set(fold.tolist())) == folds
    assert len({(unit, place) for unit, place in zip(units, fold, strict=True)}) == units.max() + 1


def test_units_of_one_label_each_are_spread_over_all_folds():
    fold = grouped_folds(np.array([0, 0, 1, 1]), np.arange(4), 2, np.random.default_rng(0))
    assert sorted(fold[:2]) == sorted(fold[2:]) == [0, 1]


@pytest.mark.parametrize(
    ("asked", "fault"),
    [
        ({"folds": 37}, 'at least as many answers as folds; got "36 for 37"'),
        ({"folds": 4, "by": "dialogue"}, "at least as many values of dialogue as folds"),
        ({"by": "lesson"}, 'there is no column "lesson" to draw folds by'),
    ],
)
def test_folds_that_cannot_be_drawn_are_refused(asked, fault):
    with pytest.raises(DataError, match=fault):
        cross_graded(rows(), **asked)


def test_values_to_draw_folds_by_must_all_be_there():
    some = [row | {"group": None} if row["id"] == "a3" else row for row in rows()]
    with pytest.raises(DataError, match="group must not be missing where folds are drawn by it"):
        cross_graded(some, by="group", folds=2)


def test_one_fold_is_no_cross_validation():
    with pytest.raises(UsageError, match="at least two folds; got 1"):
        cross_graded(rows(), folds=1)


def test_without_scikit_learn_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.tree", None)
    with pytest.raises(UsageError, match=r"need scikit-learn: pip install 'demur\[demo\]'"):
        ShortAnswerGrader().fit(rows())


def test_one_label_only_is_refused():
    with pytest.raises(DataError, match='at least two different labels; got "correct"'):
        ShortAnswerGrader().fit([row | {"target": "correct"} for row in rows()])


def test_as_many_labels_as_answers_are_needed():
    with pytest.raises(UsageError, match="as many labels as answers; got 1 for 36"):
        ShortAnswerGrader().fit(rows(), ["correct"])


@pytest.mark.parametrize("ask", [lambda grader: grader.predict(rows()), lambda grader: grader.predict_proba(rows())])
def test_a_grader_that_learnt_nothing_says_so(ask):
    with pytest.raises(UsageError, match="call fit first"):
        ask(ShortAnswerGrader())


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"min_per_leaf": 0}, "min_per_leaf must be at least 1; got 0"),
        ({"confidence": 0.6}, "confidence must be over 0 and at most 0.5.*got 0.6"),
        ({"confidence": 0}, "confidence must be over 0"),
    ],
)
def test_settings_out_of_range_are_refused(settings, fault):
    with pytest.raises(UsageError, match=fault):
        ShortAnswerGrader(**settings)


BEETLE = Path(__file__).parents[3] / "shared" / "data" / "semeval2013_task7" / "sra.jsonl.gz"
needs_beetle = pytest.mark.skipif(not BEETLE.is_file(), reason="no ../shared/data/semeval2013_task7 beside the project")


@needs_beetle
def test_beetle_answers_are_graded_about_as_well_as_in_table_6_of_the_paper():
    table = pl.read_ndjson(gzip.decompress(BEETLE.read_bytes())).filter(corpus="beetle")
    graded = cross_graded(table, columns={"target": "label_5way"})
    right = graded["target"] == graded["prediction"]
    majority = graded["target"].value_counts()["count"].max() / graded.height
    assert majority == pytest.approx(0.42, abs=0.005)
    assert right.mean() == pytest.approx(0.53, abs=0.02)
    recall = {key[0]: part["right"].mean() for key, part in graded.with_columns(right=right).group_by("target")}
    assert recall["correct"] == pytest.approx(0.76, abs=0.04)
    assert recall["non_domain"] == pytest.approx(0.76, abs=0.1)
    assert recall["irrelevant"] < 0.15
