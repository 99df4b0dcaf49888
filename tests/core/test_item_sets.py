from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from demur.core.acts import Interned, numbered_sets

SETS = st.lists(st.frozensets(st.sampled_from(["a", "b", "c", "food=thai", "", "é"]), max_size=4), max_size=8)


@given(SETS)
def test_each_set_gets_a_number_that_gives_its_items_back(sets):
    found, codes = numbered_sets(sets)
    assert [found.items_of(int(code)) for code in codes] == [tuple(sorted(one)) for one in sets]
    assert len(found) == len(set(sets))
    assert found.size.tolist() == [len(found.items_of(code)) for code in range(len(found))]


@given(SETS, st.randoms(use_true_random=False))
def test_numbers_do_not_depend_on_the_order_in_which_sets_are_met(sets, random):
    order = random.sample(range(len(sets)), len(sets))
    first, codes = numbered_sets(sets)
    second, others = numbered_sets([sets[place] for place in order])
    assert first.names == second.names
    assert first.start.tolist() == second.start.tolist()
    assert first.item.tolist() == second.item.tolist()
    assert codes[order].tolist() == others.tolist()


@given(SETS)
def test_expanding_lists_the_items_of_many_sets_one_after_the_other(sets):
    found, codes = numbered_sets(sets)
    items, start = found.expanded(codes)
    cut = [tuple(found.names[k] for k in items[a:b]) for a, b in pairwise(start)]
    assert cut == [tuple(sorted(one)) for one in sets]
    assert start[-1] == items.size


def test_no_sets_and_an_empty_set():
    nothing, codes = numbered_sets([])
    assert (len(nothing), nothing.names, codes.size) == (0, (), 0)
    assert nothing.expanded(codes)[1].tolist() == [0]
    one, codes = numbered_sets([frozenset()])
    assert (len(one), codes.tolist(), one.items_of(0)) == (1, [0], ())
    assert one.expanded(np.array([0, 0], dtype=np.int32))[1].tolist() == [0, 0, 0]


def test_sets_are_numbered_by_their_items_in_order():
    found, codes = numbered_sets([frozenset("b"), frozenset("ab"), frozenset(), frozenset("a")])
    assert codes.tolist() == [3, 2, 0, 1]
    assert found.names == ("a", "b")


def test_what_is_written_alike_is_read_once():
    read = []

    def items(written):
        read.append(written)
        return frozenset(written.split())

    interned = Interned(items)
    assert interned.numbers(["a b", "b a", "c", "a b"]).tolist() == [0, 0, 1, 0]
    assert (interned["c"], interned["d"]) == (1, 2)
    assert read == ["a b", "b a", "c", "d"]
    assert interned.sets == [frozenset("ab"), frozenset("c"), frozenset("d")]
