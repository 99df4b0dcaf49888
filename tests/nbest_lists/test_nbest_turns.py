"""What turns add to the measures of N-best lists: worked by hand, and in sum the measures themselves."""

import math

import pytest

from demur.nbest_lists.evaluate import act_turns, nbest_values
from demur.nbest_lists.table import NBestReading, nbest

ROWS = [
    {
        "id": "u1",
        "dialogue": "d",
        "text": "thai in the north",
        "reference": ["food=thai", "area=north"],
        "hypotheses": [
            {"items": ["food=thai"], "confidence": 0.5},
            {"items": ["food=thai", "area=north"], "confidence": 0.25},
        ],
    },
    {"id": "u2", "dialogue": "d", "text": "bye", "reference": ["bye"], "hypotheses": []},
    {"id": "u3", "dialogue": "e", "text": "", "reference": [], "hypotheses": [{"items": ["a"], "confidence": 1.0}]},
]


@pytest.fixture(scope="module")
def turns():
    return act_turns(nbest(ROWS, system="mine", reading=NBestReading(keep=("text",))))


def test_a_turn_is_worked_by_hand(turns):
    row = turns.row(0, named=True)
    assert (row["ser"], row["oracle"], row["meant"]) == (1.0, 0.0, 2.0)
    assert row["wser"] == pytest.approx(0.5 * 1 + 0.25 * 0 + 0.25 * 2)
    assert row["ice"] == pytest.approx(-math.log(0.75) - math.log(0.25))
    assert (row["right"], row["sure"], row["text"], row["system"]) == (False, 0.5, "thai in the north", "mine")


def test_lists_and_references_stand_as_they_were(turns):
    assert [sorted(one) for one in turns["reference"].to_list()] == [["area=north", "food=thai"], ["bye"], []]
    assert turns["confidence"].to_list() == [[0.5, 0.25], [], [1.0]]
    assert turns["acts"].list.len().to_list() == [2, 0, 1]


def test_an_empty_list_costs_all_that_was_meant(turns):
    row = turns.row(1, named=True)
    assert (row["ser"], row["wser"], row["oracle"], row["sure"]) == (1.0, 1.0, 1.0, None)
    assert row["ice"] == pytest.approx(math.log(1000))


@pytest.mark.parametrize("key", ["ice", "ser", "wser", "oracle"])
def test_turns_add_up_to_the_measure(turns, key):
    value = nbest_values(nbest(ROWS))[key]
    assert turns[key].sum() / turns["meant"].sum() == pytest.approx(value)


def test_the_weight_of_an_utterance_does_not_change_what_is_shown_of_it():
    heavy = act_turns(nbest([{**row, "weight": weight} for row, weight in zip(ROWS, (3.0, 0.5, 2.0), strict=True)]))
    plain = act_turns(nbest(ROWS))
    assert heavy["ice"].to_list() == pytest.approx(plain["ice"].to_list())
