import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.nbest_lists import exploded as nbest_lists_exploded
from demur.nbest_lists.exploded import explode
from demur.nbest_lists.table import nbest
from reference import nbest as plain
from reference.nbest import Utterance, rough_lists, tables


def taken_apart(table):
    lists = nbest(plain.rows_of(table))
    order = [int(name.removeprefix("u")) for name in lists.frame["id"]]
    return lists, explode(lists), [table[place] for place in order]


def between(frame, start, place):
    return frame[int(start[place]) : int(start[place + 1])]


@given(tables(rough_lists()))
def test_every_item_meant_or_hypothesised_has_one_row(table):
    lists, found, table = taken_apart(table)
    for place, u in enumerate(table):
        mine = between(found.items, found.item_start, place)
        items = [lists.sets.names[k] for k in found.item[found.item_start[place] : found.item_start[place + 1]]]
        expected = {item: c for item, c in plain.confidences_of(u).items() if c > 0 or item in plain.meant(u)}
        assert dict(zip(items, mine["confidence"], strict=True)) == pytest.approx(expected)
        assert len(items) == len(set(items))
        assert mine["right"].to_list() == [item in plain.meant(u) for item in items]
        assert mine["answered"].to_list() == [expected[item] > 0 for item in items]
        top = plain.top_of(u) or frozenset()
        assert mine["top"].to_list() == [item in top and expected[item] > 0 for item in items]
        assert mine["weight"].to_list() == [u.weight] * mine.height


@given(tables())
def test_every_act_has_one_row_and_the_rest_of_the_mass_another(table):
    _, found, table = taken_apart(table)
    for place, u in enumerate(table):
        mine = between(found.acts, found.act_start, place)
        acts, meant = plain.acts_of(u), plain.meant(u)
        named = [*acts, *([] if meant in acts else [meant])]
        listed, rest = mine.filter(~mine["rest"]), mine.filter("rest")
        assert listed["confidence"].to_list() == [min(acts.get(act, 0.0), 1.0) for act in named]
        assert listed["answered"].to_list() == [act in acts for act in named]
        assert listed["right"].to_list() == [act == meant for act in named]
        assert listed["errors"].to_list() == [plain.errors(meant, act) for act in named]
        assert listed["items"].to_list() == [len(act) for act in named]
        assert listed["right_items"].to_list() == [len(act & meant) for act in named]
        assert listed["top"].to_list() == [act == plain.top_of(u) for act in named]
        assert listed.select("reference_items", "best_errors").sum().row(0) == (0, 0)
        assert rest.height == 1
        assert rest["confidence"].item() == max(0.0, 1 - sum(acts.values()))
        assert rest["top"].item() == (not acts)
        assert (rest["right"].item(), rest["answered"].item(), rest["items"].item()) == (False, False, 0)
        assert (rest["reference_items"].item(), rest["errors"].item()) == (len(meant), len(meant))
        best = min((plain.errors(meant, act) for act in acts), default=len(meant))
        assert rest["best_errors"].item() == best
        assert mine["weight"].to_list() == [u.weight] * mine.height


@given(tables(rough_lists()))
def test_sums_hold_together(table):
    lists, found, _ = taken_apart(table)
    acts, items = found.acts, found.items
    assert int(acts["rest"].sum()) == int(acts["top"].sum()) == int(acts["right"].sum()) == len(lists)
    assert acts["reference_items"].sum() == items["right"].sum()
    assert acts.filter("answered").height == lists.act.size
    by_act = float((acts["confidence"] * acts["items"]).sum())
    assert by_act == pytest.approx(float(items["confidence"].sum()), abs=1e-9)
    assert (found.item_start[-1], found.act_start[-1]) == (items.height, acts.height)
    assert items["confidence"].is_between(0, 1).all()
    assert acts["confidence"].is_between(0, 1).all()


def test_nothing_meant_and_nothing_hypothesised():
    """The empty act was meant and not hypothesised; the rest of the mass stands beside it."""
    _, found, _ = taken_apart([Utterance("", []), Utterance([], [])])
    assert found.items.is_empty()
    assert found.item_start.tolist() == [0, 0, 0]
    assert found.acts["rest"].to_list() == [False, True, False, True]
    assert found.acts["confidence"].to_list() == [0, 1, 0, 1]
    assert found.acts["top"].to_list() == [False, True, False, True]


def test_one_item():
    _, found, _ = taken_apart([Utterance(["a"], [(["a"], 0.75)])])
    assert found.items.row(0) == (0.75, True, True, True, 1.0)
    assert found.acts.select("confidence", "right", "errors", "rest").rows() == [
        (0.75, True, 0, False),
        (0.25, False, 1, True),
    ]


def test_hypotheses_of_the_empty_act_hold_no_items():
    _, found, _ = taken_apart([Utterance([], [("", 0.5)]), Utterance([], [([], 0.25)])])
    assert found.items.is_empty()
    assert found.acts["right"].to_list() == [True, False, True, False]
    assert found.acts["confidence"].to_list() == [0.5, 0.5, 0.25, 0.75]


def test_an_item_of_no_confidence_that_was_not_meant_has_no_row():
    lists, found, _ = taken_apart([Utterance(["a"], [(["a"], 1.0), (["junk", "a"], 0.0)])])
    assert [lists.sets.names[k] for k in found.item] == ["a"]
    assert found.acts["errors"].to_list() == [0, 1, 1]


def test_a_meant_item_that_only_a_list_of_no_confidence_holds_is_not_answered():
    _, found, _ = taken_apart([Utterance(["a"], [(["a"], 0.0)])])
    assert found.items.row(0) == (0.0, True, False, False, 1.0)
    assert found.acts["top"].to_list() == [True, False]


def test_items_of_neighbouring_utterances_do_not_mix():
    lists, found, _ = taken_apart([Utterance(["z"], [(["z"], 0.5)]), Utterance(["a", "z"], [(["a"], 0.25)])])
    assert found.items["confidence"].to_list() == [0.5, 0.25, 0.0]
    assert [lists.sets.names[k] for k in found.item] == ["z", "a", "z"]
    assert np.diff(found.item_start).tolist() == [1, 2]


@given(tables(), st.randoms(use_true_random=False))
def test_the_order_of_hypotheses_does_not_move_the_confidence_of_an_item(table, random):
    """Tenths do not add up exactly: .7 + .2 + .1 and .1 + .2 + .7 differ in the last digit."""
    tenths = [u._replace(hypotheses=[(act, k / 10) for (act, _), k in _dealt(u, random)]) for u in table]
    shuffled = [u._replace(hypotheses=random.sample(u.hypotheses, len(u.hypotheses))) for u in tenths]
    one, two = taken_apart(tenths)[1].items, taken_apart(shuffled)[1].items
    assert one["confidence"].equals(two["confidence"])
    assert set(one["confidence"]) <= {k / 10 for k in range(11)}


def _dealt(u, random):
    left = 10
    for hypothesis in u.hypotheses:
        part = random.randint(0, min(left, 7))
        left -= part
        yield hypothesis, part


def test_a_tiny_confidence_is_kept():
    _, found, _ = taken_apart([Utterance(["a"], [(["a"], 0.5), (["b"], 1e-15)])])
    assert found.items["confidence"].to_list() == [0.5, 1e-15]
    assert found.items["answered"].all()


@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_rows_do_not_depend_on_how_many_utterances_are_taken_at_once(monkeypatch, size):
    table = [
        Utterance("", []),
        Utterance(["a", "b"], [(["a"], 0.5), (["c"], 0.25)]),
        Utterance(["c"], []),
        Utterance([], [(["a", "b"], 0.5)], 2.0),
        Utterance(["b"], [(["b"], 1.0)]),
    ]
    _, whole, _ = taken_apart(table)
    monkeypatch.setattr(nbest_lists_exploded, "AT_ONCE", size)
    _, found, _ = taken_apart(table)
    assert found.items.equals(whole.items)
    assert found.acts.equals(whole.acts)
    for name in ("item_start", "act_start", "item"):
        assert getattr(found, name).tolist() == getattr(whole, name).tolist()
