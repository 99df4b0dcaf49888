import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.errors import DataError
from demur.nbest_lists.evaluate import pair_nbest
from demur.nbest_lists.table import join_tables, nbest


def rows(system, ids, **cells):
    base = {"reference": "bye()", "hypotheses": [{"act": "bye()", "confidence": 0.5}]}
    return [{"id": name, "system": system} | base | cells for name in ids]


def ids(found):
    return {name: lists.frame["id"].to_list() for name, lists in found.lists.items()}


def test_systems_are_paired_by_id_in_one_order():
    found = pair_nbest(nbest(rows("x", "bac") + rows("y", "cab")))
    assert found.paired
    assert ids(found) == {"x": ["a", "b", "c"], "y": ["a", "b", "c"]}
    assert found.note == "paired by id on 3 utterances"
    assert found.dropped == {"x": 0, "y": 0}


def test_a_comparison_needs_two_systems():
    with pytest.raises(DataError, match='needs two systems or more; got "x"'):
        pair_nbest(nbest(rows("x", "ab")))
    with pytest.raises(DataError, match='needs two systems or more; got "x"'):
        pair_nbest(nbest(rows("x", "ab") + rows("y", "ab")), systems=("x", "x"))


def test_systems_can_be_chosen():
    three = nbest(rows("x", "ab") + rows("y", "ab") + rows("z", "cd"))
    assert tuple(pair_nbest(three, systems=("y", "x")).lists) == ("y", "x")
    with pytest.raises(DataError, match='no system "w"'):
        pair_nbest(three, systems=("x", "w"))


def test_ids_that_do_not_match_are_refused_with_counts_examples_and_the_way_out():
    expected = (
        r'x has 6, y has 3, common to all are 2; without counterpart in x: "a", "b", "c" and 1 more; '
        r'without counterpart in y: "g" '
        r"\(`matched` compares the common ones; `unpaired`"
    )
    with pytest.raises(DataError, match=expected):
        pair_nbest(nbest(rows("x", "abcdef") + rows("y", "efg")))


def test_matched_keeps_the_common_ids_and_says_what_was_left_out():
    found = pair_nbest(nbest(rows("x", "abcd") + rows("y", "dbe")), matched=True)
    assert ids(found) == {"x": ["b", "d"], "y": ["b", "d"]}
    assert found.dropped == {"x": 2, "y": 1}
    assert found.note == "paired by id on 2 utterances; left out without a counterpart: 2 of x, 1 of y"


def test_nothing_in_common_cannot_be_matched():
    with pytest.raises(DataError, match=r"common to all are 0.*no id is shared: compare with `unpaired`"):
        pair_nbest(nbest(rows("x", "ab") + rows("y", "cd")), matched=True)


def test_unpaired_is_what_was_asked_for():
    found = pair_nbest(nbest(rows("x", "ab") + rows("y", "bcd")), unpaired=True)
    assert not found.paired
    assert found.note == "compared as unpaired, as asked"
    assert {name: len(lists) for name, lists in found.lists.items()} == {"x": 2, "y": 3}


def test_without_ids_systems_are_unpaired_and_it_says_so():
    found = pair_nbest(nbest(rows("x", "a") + rows("y", [None])))
    assert not found.paired
    assert found.note == "compared as unpaired: there are no ids in y"


def test_one_id_with_two_references_is_refused():
    data = rows("x", "ab") + rows("y", "a") + rows("y", "b", reference="inform(food=thai)")
    with pytest.raises(DataError, match=r'utterance "b" means bye in x but food=thai inform in y \(do the ids'):
        pair_nbest(nbest(data))
    data = rows("x", "ab", reference=[]) + rows("y", "ab")
    with pytest.raises(DataError, match=r'"a" means nothing in x but bye in y \(2 such utterances\)'):
        pair_nbest(nbest(data))


def test_references_that_are_the_same_set_agree_however_they_are_written():
    data = rows("x", "a", reference="inform(food=thai, area=north)")
    data += rows("y", "a", reference=["food=thai", "area=north", "inform"])
    assert pair_nbest(nbest(data)).paired


def test_references_of_ids_left_out_need_not_agree():
    data = rows("x", "ab") + rows("y", "a") + rows("y", "c", reference="inform(food=thai)")
    assert pair_nbest(nbest(data), matched=True).paired


@given(st.permutations(list("abcde")), st.permutations(list("cdefg")))
def test_the_order_of_rows_does_not_matter(first, second):
    found = pair_nbest(nbest(rows("x", first) + rows("y", second)), matched=True)
    assert ids(found) == {"x": ["c", "d", "e"], "y": ["c", "d", "e"]}


def test_lists_stay_with_their_utterances():
    data = [row | {"hypotheses": [{"act": row["id"], "confidence": 0.5}]} for row in rows("x", "cab") + rows("y", "bc")]
    found = pair_nbest(nbest(data), matched=True)
    for lists in found.lists.values():
        assert [lists.sets.items_of(act) for act in lists.act] == [("b",), ("c",)]


def lists_named(ids, dialogues, weight=1.0):
    hypotheses = [{"items": ["a"], "confidence": 0.5}]
    return [
        {"id": one, "dialogue": dialogue, "weight": weight, "reference": ["a"], "hypotheses": hypotheses}
        for one, dialogue in zip(ids, dialogues, strict=True)
    ]


def paired(first, second, **options):
    return pair_nbest(join_tables([nbest(first, system="one"), nbest(second, system="two")]), **options)


def test_utterances_of_other_dialogues_or_other_weights_are_not_paired():
    with pytest.raises(DataError, match='utterance "u" is of dialogue "d" in one but of "e" in two'):
        paired(lists_named("u", "d"), lists_named("u", "e"))
    with pytest.raises(DataError, match='utterance "u" weighs 1 in one but 2 in two'):
        paired(lists_named("u", "d"), lists_named("u", "d", weight=2.0))
    assert paired(lists_named("u", "d"), lists_named("u", [None])).paired


def test_a_few_utterances_without_an_id_are_refused_and_so_is_matching_without_ids():
    some = lists_named(["u", None], "dd")
    with pytest.raises(DataError, match="1 of 2 utterances of one have no id"):
        paired(some, lists_named("uv", "dd"))
    none = lists_named([None, None], "dd")
    with pytest.raises(DataError, match="2 of 2 utterances of one have no id"):
        paired(none, none, matched=True)
    assert not paired(none, none).paired
