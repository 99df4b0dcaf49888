"""Rows of an outcome model: which dialogues, which features, and what becomes of undefined ones."""

import numpy as np
import pytest

from demur.errors import DataError, UsageError
from demur.outcome.features import POLICIES, design
from demur.outcome.table import dialogues
from demur.returns.table import Reading, responses

LOG = Reading(out_of_scope=(), missing_confidence="lowest")

TURNS = {"d1": "aa ab bb", "d2": "aa ba bb", "d3": "aa aa", "d4": "ab a- bb", "d5": "bb bb ba"}
"""Actual and predicted label of each turn (-: rejected); d3 has no b."""

RECALL_A = {"d1": 1 / 2, "d2": 1, "d3": 1, "d4": 0, "d5": np.nan}
RECALL_B = {"d1": 1, "d2": 1 / 2, "d3": np.nan, "d4": 1, "d5": 2 / 3}


def log(turns=TURNS):
    rows = [
        {"id": f"{name}/{k}", "dialogue": name, "target": pair[0], "prediction": None if pair[1] == "-" else pair[1]}
        for name, pairs in turns.items()
        for k, pair in enumerate(pairs.split())
    ]
    return responses(rows, reading=LOG)


def table(names=TURNS, **columns):
    rows = [
        {"dialogue": name, "outcome": place / 10, **{key: values[place] for key, values in columns.items()}}
        for place, name in enumerate(names)
    ]
    return dialogues(rows)


def made(features="recall.a+recall.b", **options):
    return design(table(), log(), features=features, **options)


def test_undefined_scores_get_the_mean_of_the_dialogues_that_have_them():
    found = made()
    assert found.dialogues == tuple(TURNS)
    assert found.x[:, 0].tolist() == pytest.approx([0.5, 1, 1, 0, 2.5 / 4])
    assert found.x[:, 1].tolist() == pytest.approx([1, 0.5, (1 + 0.5 + 1 + 2 / 3) / 4, 1, 2 / 3])
    assert found.means == {"recall.a": pytest.approx(0.625), "recall.b": pytest.approx(3.1666667 / 4)}
    assert found.notes == (f"{POLICIES['impute-mean']} (recall.a in 1, recall.b in 1 of 5 dialogues)",)


def test_undefined_scores_count_as_0_only_if_asked():
    found = made(undefined="zero")
    assert found.x[4, 0] == found.x[2, 1] == 0
    assert found.notes == (f"{POLICIES['zero']} (recall.a in 1, recall.b in 1 of 5 dialogues)",)


def test_dialogues_with_undefined_scores_are_dropped_if_asked_and_counted():
    found = made(undefined="drop")
    assert found.dialogues == ("d1", "d2", "d4")
    assert found.y.tolist() == [0, 0.1, 0.3]
    assert found.x.tolist() == [[0.5, 1], [1, 0.5], [0, 1]]
    assert found.turns is not None
    assert found.turns.dialogues == found.dialogues
    assert found.notes == (f"{POLICIES['drop']}; 2 of 5 dialogues left out (recall.a in 1, recall.b in 1)",)


def test_nothing_is_said_where_everything_is_defined():
    assert made("rejected").notes == ()
    assert made("rejected").x[:, 0].tolist() == pytest.approx([0, 0, 0, 1 / 3, 0])


def test_a_policy_that_does_not_exist_is_refused():
    with pytest.raises(UsageError, match='one of drop, zero, impute-mean; got "mean"'):
        made(undefined="mean")


def test_a_feature_undefined_everywhere_is_refused_whatever_the_policy():
    right = {"d1": "aa bb", "d2": "aa b-"}
    for policy in POLICIES:
        with pytest.raises(DataError, match="predicted-a-actual-b is undefined in every dialogue"):
            design(table(right), log(right), features="predicted-a-actual-b", undefined=policy)


def test_a_feature_of_a_set_that_no_dialogue_has_is_left_out_and_said():
    never_right = {"d1": "aa ac", "d2": "aa bb", "d3": "bb ab"}
    found = design(table(never_right), log(never_right), features="scores.recall")
    assert "recall.c" not in found.names
    assert {"recall.a", "recall.b"} <= set(found.names)
    assert "left out, undefined in every dialogue: recall.c" in found.notes


def test_when_every_dialogue_lacks_something_none_is_left_to_drop_to():
    one = {"d1": "aa", "d2": "bb"}
    with pytest.raises(DataError, match=r"every dialogue has an undefined feature, so none is left \(impute-mean"):
        design(table(one), log(one), features="recall.a+recall.b", undefined="drop")


def test_columns_of_the_table_are_features_beside_those_of_turns():
    whole = table(age=[20, 30, 40, 50, 60], owner=["yes", "no", "no", "yes", "yes"])
    found = design(whole, log(), features="rejected+age+owner")
    assert found.names == ("rejected", "age", "owner")
    assert found.columns == ("age", "owner")
    assert found.x[:, 1].tolist() == [20, 30, 40, 50, 60]
    assert found.x[:, 2].tolist() == [1, 0, 0, 1, 1]
    alone = design(whole, features=["age"])
    assert alone.turns is None
    assert alone.x[:, 0].tolist() == [20, 30, 40, 50, 60]


def test_gaps_in_columns_are_undefined_too():
    found = design(table(age=[20, None, 40, 50, 60]), features="age")
    assert found.x[1, 0] == 42.5
    assert "age in 1 of 5 dialogues" in found.notes[0]


def test_a_column_that_is_called_like_a_feature_of_turns_is_refused():
    whole = table(rejected=[1, 2, 3, 4, 5])
    with pytest.raises(DataError, match=r'"rejected" is .*a column of the dialogues and a feature of'):
        design(whole, log(), features="rejected")
    assert design(whole, log(), features="recall.a").names == ("recall.a",), "unless it is not asked for"
    assert design(whole, features="rejected").x[:, 0].tolist() == [1, 2, 3, 4, 5]


def test_turns_and_outcomes_are_brought_together_by_name_in_any_order():
    shuffled = design(table(list(TURNS)[::-1]), log(dict(list(TURNS.items())[::-1])), features="recall.b")
    assert shuffled.dialogues == tuple(TURNS)
    assert shuffled.y.tolist() == [0.4, 0.3, 0.2, 0.1, 0.0]
    expected = [1, 0.5, (1 + 0.5 + 1 + 2 / 3) / 4, 1, 2 / 3]
    assert shuffled.x[:, 0].tolist() == pytest.approx(expected)


def test_dialogues_without_counterpart_are_refused_or_left_out_and_counted():
    few, other = dict(list(TURNS.items())[:4]), [*list(TURNS)[1:], "zz"]
    with pytest.raises(
        DataError, match=r'1 dialogue has turns but .* \("d1"\); 2 dialogues have an outcome but no turns'
    ):
        design(table(other), log(few), features="rejected")
    found = design(table(other), log(few), features="rejected", allow_unmatched=True)
    assert found.dialogues == ("d2", "d3", "d4")
    assert found.y.tolist() == [0, 0.1, 0.2]
    assert found.notes == ("left out: 1 dialogue without an outcome, 2 without turns",)


def test_a_dialogue_left_out_for_a_perfect_pretest_is_explained():
    rows = [{"dialogue": name, "pre": 1 if name == "d2" else 0.1, "post": 0.5} for name in TURNS]
    with pytest.raises(DataError, match=r'no outcome \("d2"\).*pre is 1, so nothing was left to gain'):
        design(dialogues(rows), log(), features="rejected")


def test_groups_are_numbered_and_dialogues_of_nobody_stand_alone():
    found = design(table(group=["x", "y", "x", None, None]), log(), features="rejected")
    assert found.groups is not None
    same = found.groups[:, None] == found.groups[None, :]
    assert same.sum() == 7, "each with itself, and d1 with d3 both ways"
    assert same[0, 2]
    assert made("rejected").groups is None
    dropped = design(table(group=["x", "y", "x", "y", "z"]), log(), features="recall.a+recall.b", undefined="drop")
    assert dropped.groups is not None
    assert dropped.groups.tolist() == [0, 1, 1]


def test_hopeless_tables_are_refused():
    one = {"d1": "aa ab bb"}
    with pytest.raises(DataError, match="a model needs at least two dialogues; got 1"):
        design(table(one), log(one), features="rejected")
    flat = dialogues([{"dialogue": name, "outcome": 0.4} for name in TURNS])
    with pytest.raises(
        DataError, match=r"every dialogue has the same outcome, so there is nothing to explain; got 0\.4"
    ):
        design(flat, log(), features="rejected")
    with pytest.raises(DataError, match=r"no feature to explain the outcome by \(lower `min_per_dialogue`"):
        made("conf", least=50)


def test_a_lower_bound_keeps_more_confusions():
    assert made("conf", least=0).names == ("predicted-a-actual-b", "predicted-b-actual-a")
    assert made("conf", least=0.4).names == ("predicted-a-actual-b", "predicted-b-actual-a")
    with pytest.raises(DataError, match="no feature"):
        made("conf", least=0.41)
