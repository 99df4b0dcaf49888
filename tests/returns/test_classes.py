from math import isnan

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from demur.core.stats.measure import Score
from demur.errors import DataError, UsageError
from demur.returns.classes import Accuracy, ClassAverage, Confusion, Kappa, class_values, majority_baseline
from demur.returns.jobs import classes
from reference import classes as plain

LABELS = st.sampled_from(["a", "b", "c"])
CELLS = st.lists(st.tuples(LABELS, st.one_of(LABELS, st.none()), st.integers(1, 4)), min_size=1, max_size=10)

LABEL_ORDER = ["contradictory", "correct", "irrelevant", "non_content", "pc_incomplete"]
TABLE_1 = {"correct": 1438, "pc_incomplete": 796, "contradictory": 808, "irrelevant": 105, "non_content": 232}
TABLE_3 = {
    "contradictory": [175, 86, 3, 0, 43],
    "correct": [25, 752, 1, 4, 26],
    "irrelevant": [31, 12, 16, 4, 29],
    "non_content": [1, 3, 2, 95, 3],
    "pc_incomplete": [200, 317, 40, 28, 419],
}
TABLE_2 = {
    "correct": (0.93, 0.52, 0.67),
    "pc_incomplete": (0.42, 0.53, 0.47),
    "contradictory": (0.57, 0.22, 0.31),
    "irrelevant": (0.17, 0.15, 0.16),
    "non_content": (0.91, 0.41, 0.57),
}
PARTS = ("precision", "recall", "f1")


def beetle():
    """Table 3 with the rejected: what Table 1 has beyond it."""
    classified = [
        (actual, predicted, float(count))
        for predicted, row in TABLE_3.items()
        for actual, count in zip(LABEL_ORDER, row, strict=True)
    ]
    rejected = [
        (actual, None, float(total - sum(count for name, _, count in classified if name == actual)))
        for actual, total in TABLE_1.items()
    ]
    return Confusion.from_cells(classified + rejected)


def value(measure, confusion):
    return float(measure.finish(confusion))


def test_cells_of_a_confusion_table_stand_for_as_many_inputs_as_they_count():
    cells = [("yes", "yes", 30), ("yes", "no", 10), ("no", "no", 50), ("no", None, 10)]
    table = [{"target": actual, "prediction": said, "weight": count} for actual, said, count in cells]
    rows = [{"target": actual, "prediction": said} for actual, said, count in cells for _ in range(count)]
    (counted,), (each,) = (classes(one, replicates=50) for one in (table, rows))
    assert counted.confusion.n == each.confusion.n == 100
    assert counted.figures == each.figures
    (weighed,) = classes([*table, table[0]], replicates=50)
    assert weighed.confusion.n == 5


def test_the_papers_corpus_has_3379_items_1064_of_them_rejected():
    assert (beetle().n, float(beetle().total), float(beetle().rejected)) == (3379, 3379, 1064)
    off_diagonal = float(beetle().counts[:-1].sum() - beetle().hits.sum())
    assert off_diagonal == 858


@pytest.mark.parametrize("label", sorted(TABLE_2))
def test_table_2_per_class(label):
    place = beetle().labels.index(label)
    found = [round(float(class_values(beetle())[part][place]), 2) for part in PARTS]
    assert found == list(TABLE_2[label])


def test_table_2_averages():
    assert [round(value(ClassAverage("macro", part), beetle()), 2) for part in PARTS] == [0.60, 0.37, 0.44]
    weighted = [round(value(ClassAverage("weighted", part), beetle()), 4) for part in PARTS]
    assert weighted == [0.6988, 0.4312, 0.5136]
    assert round(value(ClassAverage("micro", "precision"), beetle()), 4) == 0.6294


def test_table_2_baseline():
    baseline = majority_baseline(beetle())
    assert [round(value(ClassAverage("macro", part), baseline), 2) for part in PARTS] == [0.09, 0.20, 0.12]
    assert [round(value(ClassAverage("weighted", part), baseline), 2) for part in PARTS] == [0.18, 0.43, 0.25]
    place = baseline.labels.index("correct")
    assert [round(float(class_values(baseline)[part][place]), 2) for part in PARTS] == [0.43, 1.00, 0.60]
    assert round(value(Accuracy(), baseline), 2) == 0.43


def test_accuracy_is_weighted_recall_and_pooled_recall():
    accuracy = value(Accuracy(), beetle())
    assert accuracy == pytest.approx(1457 / 3379)
    assert value(ClassAverage("weighted", "recall"), beetle()) == pytest.approx(accuracy)
    assert value(ClassAverage("micro", "recall"), beetle()) == pytest.approx(accuracy)


def test_kappa_by_hand_with_rejections_as_a_label_and_left_out():
    """Ten rows: a-a 3, b-b 2, a-b 1, b-a 2, a rejected 1, b rejected 1.

    Own: observed .5; predicted a 5, b 3; actual a 5, b 5: chance (25 + 15)/100 = .4, kappa .1/.6.
    Out: observed 5/8; predicted a 5, b 3; actual a 4, b 4: chance (20 + 12)/64 = .5, kappa .125/.5.
    """
    pairs = [("a", "a")] * 3 + [("b", "b")] * 2 + [("a", "b")] + [("b", "a")] * 2 + [("a", None), ("b", None)]
    confusion = Confusion.of(*zip(*pairs, strict=True))
    assert value(Kappa("own"), confusion) == pytest.approx(1 / 6)
    assert value(Kappa("out"), confusion) == pytest.approx(1 / 4)


def test_kappa_is_undefined_where_chance_agreement_is_complete():
    score = Score.of(Kappa(), Confusion.of(["a", "a"], ["a", "a"]))
    assert isnan(score.value)
    assert "one label" in score.why
    assert isnan(value(Kappa("out"), Confusion.of(["a", "b"], [None, None])))


def test_kappa_below_chance_is_negative():
    assert value(Kappa(), Confusion.of(["a", "b"], ["b", "a"])) == -1


def test_rejected_is_never_a_class():
    confusion = Confusion.of(["a", "b", "b"], ["a", None, None])
    assert confusion.labels == ("a", "b")
    assert value(ClassAverage("macro", "recall"), confusion) == 0.5
    assert value(ClassAverage("micro", "precision"), confusion) == 1


def test_a_label_that_is_only_predicted_takes_no_part_in_averages():
    confusion = Confusion.of(["a", "b"], ["a", "z"])
    assert confusion.labels == ("a", "b", "z")
    assert value(ClassAverage("macro", "recall"), confusion) == 0.5
    assert value(ClassAverage("macro", "precision"), confusion) == 0.5


def test_scores_of_a_class_without_meaning_are_nan_not_0():
    values = class_values(Confusion.of(["a", "b"], ["a", "z"]))
    assert np.isnan(values["precision"]).tolist() == [False, True, False]
    assert np.isnan(values["recall"]).tolist() == [False, False, True]


def test_pooled_precision_is_undefined_when_all_is_rejected():
    score = Score.of(ClassAverage("micro", "precision"), Confusion.of(["a"], [None]))
    assert isnan(score.value)
    assert score.why == "every row was rejected"


def test_the_majority_is_the_first_by_name_among_equals():
    baseline = majority_baseline(Confusion.of(["b", "a", "c"], [None, "b", "c"]))
    assert baseline.predicted.tolist() == [3, 0, 0]
    assert baseline.n == 3


@pytest.mark.parametrize(("average", "part"), [("mean", "f1"), ("macro", "f2")])
def test_an_unknown_average_is_refused(average, part):
    with pytest.raises(UsageError, match="macro, weighted or micro of precision, recall or f1"):
        ClassAverage(average, part)


def test_an_unknown_treatment_of_rejections_is_refused():
    with pytest.raises(UsageError, match='"own" label or left "out"; got "drop"'):
        Kappa("drop")


def test_an_empty_table_is_refused():
    with pytest.raises(DataError, match="at least one row; the table is empty"):
        Confusion.of([], [])


def test_lists_of_two_lengths_are_refused():
    with pytest.raises(DataError, match="length"):
        Confusion.of(["a", "b"], ["a"])


@given(CELLS, st.sampled_from(["macro", "weighted", "micro"]), st.sampled_from(PARTS))
def test_averages_agree_with_their_plain_twins(cells, average, part):
    expected = getattr(plain, average)(cells, part)
    found = value(ClassAverage(average, part), Confusion.from_cells(cells))
    assert found == pytest.approx(float(expected), nan_ok=True)


@given(CELLS, st.sampled_from(["own", "out"]))
def test_kappa_agrees_with_its_plain_twin(cells, rejected):
    found = value(Kappa(rejected), Confusion.from_cells(cells))
    assert found == pytest.approx(float(plain.kappa(cells, rejected)), abs=1e-12, nan_ok=True)


@given(CELLS, CELLS)
def test_confusions_of_two_parts_add_up_to_that_of_the_whole(one, two):
    whole = Confusion.from_cells(one + two)
    added = Confusion.from_cells(one) + Confusion.from_cells(two)
    assert added == whole
    assert added.digest() == whole.digest()


@given(CELLS, st.randoms(use_true_random=False))
def test_row_order_does_not_change_a_confusion(cells, random):
    assert Confusion.from_cells(cells) == Confusion.from_cells(random.sample(cells, len(cells)))


@given(CELLS)
def test_weights_equal_repetition(cells):
    repeated = [(a, p) for a, p, w in cells for _ in range(w)]
    assume(repeated)
    listed = Confusion.of(*zip(*repeated, strict=True))
    weighed = Confusion.of(*zip(*cells, strict=True))
    assert listed.labels == weighed.labels
    assert np.array_equal(listed.counts, weighed.counts)
    assert (weighed.n, listed.n) == (len(cells), len(repeated))


def test_classes_say_nothing_of_confidences():
    found = classes([{"target": "a", "prediction": "a"}, {"target": "b", "prediction": None}], replicates=50)
    assert found.notes == ("1 prediction that is null read as withheld", "seed 0, 50 replicates")
