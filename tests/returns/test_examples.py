import json
import math

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from demur.errors import UsageError
from demur.returns.examples import LONGEST, MOST_HYPOTHESES, examples
from demur.returns.table import Reading, responses

EVERYTHING = Reading(keep=("*",))


def table(rows):
    return responses(rows, reading=EVERYTHING)


def row(k, *, right=True, sure=0.5, target="a", **more):
    return {"id": k, "target": target, "prediction": "a" if right else "b", "confidence": sure, **more}


def ids(found):
    return [one.id for one in found]


def test_the_surest_rows_of_each_kind_come_first():
    rows = [
        row("e1", right=False, sure=0.9),
        row("e2", right=False, sure=0.95),
        row("e3", right=False, sure=0.2),
        row("r1", sure=0.8),
        row("m1", sure=0.3),
        row("m2", sure=0.45),
        row("o1", target="oos", sure=0.7),
        row("o2", target="oos", sure=0.1),
    ]
    found = examples(table(rows), 0.5)
    assert ids(found.confident_errors) == ["e2", "e1"]
    assert ids(found.missed_chances) == ["m2", "m1"]
    assert ids(found.out_of_scope_returned) == ["o1"]
    assert (found.errors, found.missed, found.out_of_scope) == (3, 2, 1)
    assert found.out_of_scope_returned[0].target == ()


@settings(max_examples=settings.default.max_examples // 2)
@given(st.permutations(list(range(12))), st.integers(1, 5))
def test_ties_come_in_the_order_of_ids_whatever_that_of_rows(order, n):
    rows = [row(f"q{k:02}", right=False, sure=0.9 if k < 8 else 0.8) for k in order]
    assert ids(examples(table(rows), 0.5, n).confident_errors) == [f"q{k:02}" for k in range(n)]


def test_at_most_n_are_given_and_all_are_counted():
    rows = [row(k, right=False, sure=k / 100) for k in range(100)]
    found = examples(table(rows), 0.5, 3)
    assert ids(found.confident_errors) == ["99", "98", "97"]
    assert found.errors == 50
    assert examples(table(rows), 0.5, 0).confident_errors == ()


def test_nothing_is_returned_at_no_threshold():
    found = examples(table([row(1), row(2, right=False)]), math.nan)
    assert found.confident_errors == ()
    assert ids(found.missed_chances) == ["1"]
    assert found.to_dict()["threshold"] is None


def test_rows_that_were_never_answered_are_no_missed_chances():
    rows = [{"id": 1, "target": "a", "prediction": None, "confidence": None}, row(2, sure=0.1)]
    assert ids(examples(table(rows), 0.5).missed_chances) == ["2"]


def test_inputs_and_lists_are_shown_where_the_table_has_them():
    nbest = [{"label": "b", "confidence": 0.81234}, {"label": "a", "confidence": 0.1}]
    (one,) = examples(table([row(1, right=False, text="hello", nbest=nbest)]), 0.0).confident_errors
    assert (one.input, one.target, one.prediction) == ("hello", ("a",), "b")
    assert one.nbest == ("b 0.812", "a 0.1")
    (bare,) = examples(responses([row(1, right=False)]), 0.0).confident_errors
    assert (bare.input, bare.nbest) == (None, ())


@pytest.mark.parametrize("cell", [json.dumps([["b", 0.8], ["a", 0.1]]), '["b", "a"]'])
def test_lists_may_be_json(cell):
    (one,) = examples(table(pl.DataFrame([row(1, right=False, nbest=cell)])), 0.0).confident_errors
    assert one.nbest in (("b 0.8", "a 0.1"), ("b", "a"))


@pytest.mark.parametrize("cell", ["{broken", "7", '"text"', "", "[" * 10_000])
def test_what_is_no_list_is_not_shown(cell):
    (one,) = examples(table(pl.DataFrame([row(1, right=False, nbest=cell)])), 0.0).confident_errors
    assert one.nbest == ()


def test_examples_do_not_grow_with_what_was_typed():
    long = "word " * 5000
    nbest = [{"label": long, "confidence": 0.1}] * 50
    rows = [row("i" * 5000, right=False, text=long, nbest=nbest, target=["t" * 5000])]
    (one,) = examples(table(rows), 0.0).confident_errors
    assert one.input is not None
    assert one.input.endswith("…")
    assert len(one.nbest) == MOST_HYPOTHESES
    assert one.target is not None
    assert all(len(text) <= LONGEST + 1 for text in (one.input, one.id or "", *one.nbest, *one.target))


def test_rows_judged_by_correct_have_no_labels():
    (one,) = examples(table([{"id": 1, "correct": False, "confidence": 0.5}]), 0.0).confident_errors
    assert (one.target, one.prediction) == (None, None)


def test_frequent_confusions_are_counted_and_those_returned():
    rows = [row(k, right=False, sure=k / 10) for k in range(6)] + [row(7, right=False, target="c")]
    (pair,) = examples(table(rows), 0.3).confusions
    assert (pair.target, pair.prediction, pair.count, pair.returned) == ("a", "b", 6, 3)


def test_several_systems_and_negative_numbers_are_refused():
    two = responses([{**row(1), "system": "x"}, {**row(1), "system": "y"}])
    with pytest.raises(UsageError, match="one system at a time; there are x, y"):
        examples(two, 0.5)
    with pytest.raises(UsageError, match="0 or more"):
        examples(responses([row(1)]), 0.5, -1)
