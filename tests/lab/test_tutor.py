"""The simulated study of a tutor: what is true of it is what models of outcomes see."""

import numpy as np
import pytest

from demur.errors import UsageError
from demur.lab.tutor import INTERPRETERS, LABELS, NOISE, SHARES, TRUTH, answers, expected_gain, study
from demur.outcome.features import all_features, design, frequent_confusions, turns_of
from demur.outcome.table import DialogueReading, dialogues
from demur.returns.table import Reading, responses

READING = Reading(out_of_scope=(), missing_confidence="lowest")


def test_the_gain_is_the_truth_of_each_dialogues_features_and_chance() -> None:
    turns, held = study()
    table = dialogues(held, reading=DialogueReading())
    found = turns_of(responses(turns, reading=READING))
    features = all_features(found)
    intercept, *weights = TRUTH.values()
    expected = intercept + sum(weight * features[name] for name, weight in zip(list(TRUTH)[1:], weights, strict=True))
    chance = table.frame["outcome"].to_numpy() - expected
    assert abs(chance.mean()) < 3 * NOISE / np.sqrt(len(held))
    assert 0.7 * NOISE < chance.std() < 1.3 * NOISE


def test_the_gain_by_hand() -> None:
    said = ["correct", "correct", "contradictory", "contradictory", "pc_incomplete"]
    taken = ["correct", "pc_incomplete", "pc_incomplete", None, "pc_incomplete"]
    assert expected_gain(said, taken) == pytest.approx(0.5 - 0.6 * 1 / 2 + 0.4 * 1 / 2)
    assert expected_gain(["irrelevant"], [None]) == 0.5


def test_the_three_confusions_of_the_paper_are_the_frequent_ones() -> None:
    turns, _ = study()
    assert frequent_confusions(turns_of(responses(turns, reading=READING))) == (
        "predicted-contradictory-actual-correct",
        "predicted-pc_incomplete-actual-contradictory",
        "predicted-pc_incomplete-actual-correct",
    )


def test_the_same_seed_gives_the_same_study_and_another_another() -> None:
    assert study(3, 6) == study(3, 6)
    assert study(3, 6) != study(4, 6)
    assert study(3, 12)[1][:6] == study(3, 6)[1]


def test_students_who_come_twice_are_groups() -> None:
    turns, held = study()
    table = dialogues(held)
    assert table.frame["group"].n_unique() == 50
    made = design(table, responses(turns, reading=READING), features="conf")
    assert made.groups is not None


def test_other_interpreters_hear_the_same_answers() -> None:
    turns, _ = study(dialogues=6)
    for name in INTERPRETERS:
        rows = answers(turns, name)
        assert [(row["id"], row["target"]) for row in rows] == [(row["id"], row["target"]) for row in turns]
    assert {row["prediction"] for row in answers(turns, "majority")} == {"correct"}
    assert None not in {row["prediction"] for row in answers(turns, "eager")}
    with pytest.raises(UsageError, match='no interpreter "lazy"; there are tutor, cautious, eager, majority'):
        answers(turns, "lazy")


def test_chances_are_chances() -> None:
    assert sum(SHARES.values()) == pytest.approx(1)
    for table in INTERPRETERS.values():
        assert tuple(table) == LABELS
        assert all(sum(chances) == pytest.approx(1) for chances in table.values())
