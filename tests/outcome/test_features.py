"""Features of dialogues: the tables of Dzikovska et al. (2012), and a slow twin."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from demur.errors import DataError, UsageError
from demur.outcome.features import (
    FLOW,
    SETS,
    Turns,
    all_features,
    candidates,
    confusion_features,
    frequent_confusions,
    turns_of,
)
from demur.returns.table import Reading, responses
from reference import outcome as reference

LOG = Reading(out_of_scope=(), missing_confidence="lowest")


def turned(rows, *, pooled=False):
    return turns_of(responses(rows, reading=LOG), pooled=pooled)


def values(turns, place=0):
    return {name: float(column[place]) for name, column in all_features(turns).items()}


@pytest.fixture(scope="module")
def paper():
    return turned(reference.paper_turns())


def test_how_a_dialogue_went_by_hand():
    """Of four turns two are understood, of one label; the two others must be repaired."""
    said = [("a", "a"), ("b", None), ("b", "c"), ("a", "a")]
    turns = turned([{"dialogue": "d", "target": target, "prediction": label} for target, label in said])
    found = values(turns)
    assert (found["user_turns"], found["repair_ratio"], found["concept_efficiency"]) == (4, 0.5, 0.25)
    assert candidates("paradise", turns, ["seconds", "mood"], least=2) == ["kappa", *FLOW, "seconds"]
    assert candidates("unclassified", turns, [], least=2) == ["rejected"]


TABLE_2 = {
    "correct": (0.93, 0.52, 0.67),
    "pc_incomplete": (0.42, 0.53, 0.47),
    "contradictory": (0.57, 0.22, 0.31),
    "irrelevant": (0.17, 0.15, 0.16),
    "non_content": (0.91, 0.41, 0.57),
    "macroaverage": (0.60, 0.37, 0.44),
    "microaverage": (0.70, 0.43, 0.51),
}


@pytest.mark.parametrize("label", TABLE_2)
def test_table_2_of_the_paper_is_exact(paper, label):
    found = values(paper)
    shown = tuple(round(found[f"{part}.{label}"], 2) for part in ("precision", "recall", "fmeasure"))
    assert shown == TABLE_2[label]


def test_what_the_paper_calls_micro_weighs_classes_by_size(paper):
    found = values(paper)
    shown = [round(found[f"{part}.microaverage"], 4) for part in ("precision", "recall", "fmeasure")]
    assert shown == [0.6988, 0.4312, 0.5136]
    assert found["rejected"] == pytest.approx(1064 / 3379)


def test_rejected_turns_lower_recall_or_are_left_out(paper):
    left_out = turns_of(responses(reference.paper_turns(), reading=LOG), rejections="left-out")
    found, counted = values(left_out), values(paper)
    assert found["recall.correct"] == pytest.approx(752 / 1170)  # of 1,438, 268 were rejected
    assert counted["recall.correct"] == pytest.approx(752 / 1438)
    assert found["rejected"] == 0
    assert found["precision.correct"] == counted["precision.correct"]
    name = "predicted-pc_incomplete-actual-contradictory"
    assert found[name] == counted[name] == pytest.approx(200 / 858)
    with pytest.raises(UsageError, match='rejections are one of counted, left-out; got "zero"'):
        turns_of(responses(reference.paper_turns(), reading=LOG), rejections="zero")


def test_the_majority_baseline_of_table_2():
    rows = [{**row, "prediction": "correct"} for row in reference.paper_turns()]
    found = values(turned(rows))
    shown = {
        name: tuple(round(found[f"{part}.{name}"], 2) for part in ("precision", "recall", "fmeasure"))
        for name in ("correct", "macroaverage", "microaverage")
    }
    assert shown == {
        "correct": (0.43, 1.00, 0.60),
        "macroaverage": (0.09, 0.20, 0.12),
        "microaverage": (0.18, 0.43, 0.25),
    }
    assert math.isnan(found["precision.irrelevant"])
    assert found["recall.irrelevant"] == 0


def test_confusions_are_shares_of_misclassifications_and_rejections_are_none(paper):
    found = confusion_features(paper)
    assert paper.misclassified.tolist() == [858]
    assert found["predicted-pc_incomplete-actual-contradictory"][0] == 200 / 858
    assert len(found) == 20
    assert sum(column[0] for column in found.values()) == pytest.approx(1)


def test_the_three_confusions_of_table_4_are_kept_and_no_other():
    turns = turned(reference.paper_turns(35))
    assert len(turns.dialogues) == 35
    kept = {
        "predicted-contradictory-actual-correct",
        "predicted-pc_incomplete-actual-correct",
        "predicted-pc_incomplete-actual-contradictory",
    }
    assert set(frequent_confusions(turns)) == kept
    assert set(candidates("conf", turns, (), least=2)) == kept
    assert set(frequent_confusions(turns, 86 / 35)) == kept
    assert len(frequent_confusions(turns, 87 / 35)) == 2
    assert len(frequent_confusions(turns, 0)) == 19, "one cell of the table is 0"


LABELS = ("a", "b", "c")
TURN = st.tuples(
    st.sampled_from(["d1", "d2", "d3"]),
    st.sampled_from(LABELS),
    st.none() | st.sampled_from(LABELS),
    st.integers(1, 4),
)


def rows_of(turns):
    return [
        {"id": place, "dialogue": name, "target": actual, "prediction": said, "weight": weight}
        for place, (name, actual, said, weight) in enumerate(turns)
    ]


@settings(max_examples=settings.default.max_examples // 2)
@given(st.lists(TURN, min_size=1, max_size=25))
def test_features_agree_with_the_slow_twin(turns):
    """Rejections, weights, classes that are absent and dialogues without a fault included."""
    found, slow = turned(rows_of(turns)), reference.features(turns)
    assert found.dialogues == tuple(slow)
    fast = all_features(found)
    for place, one in enumerate(slow.values()):
        assert set(one) == set(fast)
        for name, value in one.items():
            assert fast[name][place] == pytest.approx(float(value), abs=1e-12, nan_ok=True), name


@settings(max_examples=settings.default.max_examples // 2)
@given(st.lists(TURN, min_size=1, max_size=25), st.randoms(use_true_random=False))
def test_the_order_of_turns_is_nothing_and_weights_are_repetition(turns, random):
    repeated = [(name, actual, said, 1) for name, actual, said, weight in turns for _ in range(weight)]
    random.shuffle(repeated)
    weighted, shuffled = turned(rows_of(turns)), turned(rows_of(repeated))
    assert (weighted.dialogues, weighted.labels) == (shuffled.dialogues, shuffled.labels)
    assert np.array_equal(weighted.counts, shuffled.counts)


def test_what_a_dialogue_does_not_have_is_undefined_and_never_0():
    """In d1 c is absent and nothing is misclassified; in d2 b is confused with a, and all else rejected."""
    rows = rows_of([("d1", "a", "a", 1), ("d1", "b", None, 1), ("d2", "b", "a", 1), ("d2", "c", None, 1)])
    turns = turned(rows)
    first, second = values(turns, 0), values(turns, 1)
    undefined = {name for name, value in first.items() if math.isnan(value)}
    assert undefined == {
        "precision.b",
        "precision.c",
        "recall.c",
        "fmeasure.c",
        *(name for name in first if name.startswith("predicted-")),
    }
    assert first["recall.b"] == 0, "b is there and was rejected"
    assert second["predicted-a-actual-b"] == 1
    assert second["predicted-b-actual-a"] == 0
    assert math.isnan(second["recall.a"])


def test_of_several_acceptable_labels_the_predicted_one_counts():
    rows = [{"id": 1, "dialogue": "d", "target": ["a", "b"], "prediction": "b"}]
    turns = turned(rows)
    assert turns.misclassified.tolist() == [0]
    assert turns.cell("b", "b").tolist() == [1]


def test_turns_without_target_or_dialogue_or_of_two_systems_are_refused():
    judged = [{"id": 1, "dialogue": "d", "correct": True, "confidence": 0.5}]
    with pytest.raises(DataError, match=r"1 turns have no target \(confusions need the right label"):
        turned(judged)
    nowhere = [{"id": 1, "target": "a", "prediction": "a"}]
    with pytest.raises(
        DataError, match=r"1 turns are of no dialogue \(name the column with `columns`, as dialogue=COLUMN"
    ):
        turned(nowhere)
    assert turned(nowhere, pooled=True).dialogues == ("all",)
    two = [{"id": 1, "dialogue": "d", "system": name, "target": "a", "prediction": "a"} for name in "xy"]
    with pytest.raises(UsageError, match="one system at a time; there are x, y"):
        turned(two)


def test_pooling_before_or_after_counting_is_the_same():
    rows = reference.paper_turns(7)
    assert np.array_equal(turned(rows).pooled.counts, turned(rows, pooled=True).counts)


def test_labels_that_no_turn_has_change_no_defined_score():
    turns = turned(reference.paper_turns(3))
    wider = turns.with_labels(["zeal", "correct"])
    assert wider.labels == tuple(sorted([*turns.labels, "zeal"]))
    assert wider.counts.sum() == turns.counts.sum()
    before, after = all_features(turns), all_features(wider)
    for name in before:
        assert after[name] == pytest.approx(before[name], nan_ok=True), name
    assert np.isnan(after["recall.zeal"]).all()
    assert (after["predicted-zeal-actual-correct"] == 0).all()


def test_mending_moves_a_share_of_a_confusion_to_the_diagonal():
    turns = Turns(("d",), ("a", "b"), np.array([[[3.0, 4.0], [1.0, 2.0], [0.0, 5.0]]]))
    mended = turns.corrected("a", "b", 0.5)
    assert mended.counts.tolist() == [[[3, 2], [1, 4], [0, 5]]]
    assert turns.counts.tolist() == [[[3, 4], [1, 2], [0, 5]]], "the turns themselves stay as they are"


@pytest.fixture(scope="module")
def small():
    rows = rows_of([("d1", "a", "b", 3), ("d1", "b", "b", 1), ("d2", "a", "a", 1), ("d2", "b", None, 1)])
    return turned(rows)


def scores(part):
    return [f"{part}.{name}" for name in ("microaverage", "macroaverage", "a", "b")]


CONF = ["predicted-b-actual-a"]
EVERY = [*scores("fmeasure"), *scores("precision"), *scores("recall")]


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        ("scores.fm", scores("fmeasure")),
        ("scores.f", scores("fmeasure")),
        ("scores.precision", scores("precision")),
        ("scores.recall", scores("recall")),
        ("scores.all", EVERY),
        ("conf", CONF),
        ("conf+scores.f", [*CONF, *scores("fmeasure")]),
        ("full", [*CONF, *EVERY]),
        ("conf + age", [*CONF, "age"]),
        ("recall.a+rejected", ["recall.a", "rejected"]),
        (["recall.a", "conf"], ["recall.a", *CONF]),
        ("scores.fm+fmeasure.a+scores.f", scores("fmeasure")),
        ("predicted-a-actual-b", ["predicted-a-actual-b"]),
    ],
)
def test_sets_and_names_stand_for_features_each_once(small, asked, names):
    assert candidates(asked, small, ["age"], least=1.5) == names


def test_every_set_has_a_test():
    assert set(SETS) == {
        "scores.fm",
        "scores.f",
        "scores.precision",
        "scores.recall",
        "scores.all",
        "conf",
        "full",
        "paradise",
    }


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        ("scores.fn", 'there is no feature "scores.fn"; did you mean "scores.f"'),
        ("recal.a", 'there is no feature "recal.a"; did you mean "recall.a"'),
        ("agee", 'did you mean "age"'),
        ("", 'there is no feature ""'),
        ("conf+", 'there is no feature ""'),
    ],
)
def test_unknown_names_are_refused_with_a_hint(small, asked, hint):
    with pytest.raises(UsageError, match=hint):
        candidates(asked, small, ["age"], least=2)


def test_sets_need_turns():
    assert candidates("age", None, ["age"], least=2) == ["age"]
    with pytest.raises(UsageError, match='the feature set "conf" is made from turns'):
        candidates("conf", None, ["age"], least=2)
