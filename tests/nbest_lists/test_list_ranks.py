"""Ranks of right labels: counted by hand, and never at odds with each other."""

import json
import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.core.stats.intervals import wilson
from demur.errors import DataError
from demur.nbest_lists.ranks import label_turns, list_ranks
from demur.returns.table import Reading, responses

READING = Reading(keep=("nbest",))


def answers(*rows):
    """Rows of target, and list of labels with confidences."""
    told = [
        {
            "id": k,
            "target": target,
            "prediction": "a",
            "confidence": 0.5,
            "nbest": json.dumps(listed),
            "weight": rest[0] if rest else 1.0,
        }
        for k, (target, listed, *rest) in enumerate(rows)
    ]
    return responses(told, system="mine", reading=READING)


AB = [["a", 0.75], ["b", 0.25]]


def test_places_are_counted_over_inputs_with_a_list_and_a_right_label():
    found = list_ranks(answers(("a", AB), ("b", AB), ("b", AB), ("c", AB), ("oos", AB), ("a", [])))
    assert (found.n, found.at, found.nowhere) == (4, (1.0, 2.0), 1.0)
    assert (found.out_of_scope, found.without) == (1, 1)
    assert [found.share(place) for place in (1, 2, 3)] == [0.25, 0.5, 0.0]


def test_top_k_accuracy_adds_the_places_up_with_wilsons_interval():
    found = list_ranks(answers(("a", AB), ("b", AB), ("b", AB), ("c", AB)))
    assert [found.top(k).value for k in (1, 2, 9)] == [0.25, 0.75, 0.75]
    assert (found.top(2).low, found.top(2).high) == wilson(0.75, 4, 0.95)


def test_weights_count_as_repetition_does():
    light = list_ranks(answers(("a", AB), ("b", AB), ("b", AB)))
    heavy = list_ranks(answers(("a", AB), ("b", AB, 2.0)))
    assert light.at == heavy.at
    assert light.top(1).value == heavy.top(1).value
    assert heavy.effective == pytest.approx(9 / 5)


def test_of_several_right_labels_the_first_in_the_list_counts():
    assert list_ranks(answers((["x", "b"], AB))).at == (0.0, 1.0)


def test_a_turn_has_its_list_its_rank_and_what_the_right_label_cost():
    table = label_turns(answers(("b", AB), ("c", AB), ("oos", AB), ("a", ["a"])))
    assert table["acts"].to_list() == [[["a"], ["b"]]] * 3 + [[["a"]]]
    assert table["rank"].to_list() == [2, 0, 0, 1]
    assert table["cost"][0] == pytest.approx(math.log(4))
    assert table["cost"][1] == pytest.approx(math.log(1000))
    assert table["cost"].to_list()[2:] == [None, None]


def test_a_table_without_lists_says_what_it_lacks():
    with pytest.raises(DataError, match="no input has a list of labels"):
        list_ranks(answers(("a", []), ("b", [])))
    bare = responses([{"target": "a", "prediction": "a", "confidence": 1.0}])
    with pytest.raises(DataError, match=r"there is no column nbest \(read it with keep="):
        list_ranks(bare)


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.permutations("abc")), min_size=1, max_size=20))
def test_places_and_nowhere_make_up_all_inputs_and_accuracy_never_falls(rows):
    found = list_ranks(answers(*((target, [[one, None] for one in listed]) for target, listed in rows)))
    assert sum(found.at) + found.nowhere == pytest.approx(len(rows))
    tops = [found.top(k) for k in range(1, 5)]
    assert all(one.value <= next_.value for one, next_ in pairwise(tops))
    assert all(one.low <= one.value <= one.high for one in tops)
    assert found.to_dict()["top"].keys() == {str(k) for k in range(1, found.longest + 1)}
