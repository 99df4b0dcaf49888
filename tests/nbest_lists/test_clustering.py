import math
from collections import defaultdict

import pytest
from hypothesis import given

from demur.nbest_lists.asr.lattices import Arc, Lattice, best_path, network, posteriors
from demur.nbest_lists.asr.networks import nbest
from reference.networks import lattices, paths_of


def accepts(heard, words):
    """Whether some path of a network says just these words."""
    reached = {0}
    for slot in heard.slots:
        said = {word for word, _ in slot}
        skipping = reached if "" in said else set()
        reached = skipping | {at + 1 for at in reached if at < len(words) and words[at] in said}
    return len(words) in reached


def said_on(lattice, path):
    return [lattice.arcs[number].word for number in path if lattice.arcs[number].word]


@given(lattices())
def test_every_slot_sums_to_one(lattice):
    for slot in network(lattice, prune=0).slots:
        assert math.fsum(p for _, p in slot) == pytest.approx(1)
        assert all(p > 0 for _, p in slot)


@given(lattices())
def test_every_path_of_the_lattice_is_in_the_network_in_its_order(lattice):
    heard = network(lattice, prune=0)
    for path in paths_of(lattice):
        assert accepts(heard, said_on(lattice, path))


@given(lattices())
def test_the_best_path_stays_whatever_is_pruned(lattice):
    assert accepts(network(lattice, prune=0.9), said_on(lattice, best_path(lattice)))


@given(lattices())
def test_a_word_is_expected_as_often_as_in_the_lattice(lattice):
    expected, found = defaultdict(float), defaultdict(float)
    for arc, probability in zip(lattice.arcs, posteriors(lattice), strict=True):
        expected[arc.word] += probability
    for word, probability in (arc for slot in network(lattice, prune=0).slots for arc in slot):
        found[word] += probability
    expected.pop("", None)
    found.pop("", None)
    assert found == pytest.approx(expected)


def test_words_that_overlap_in_time_compete():
    lattice = Lattice(
        (
            Arc(0, 1, "thai", math.log(0.6)),
            Arc(0, 2, "tie", math.log(0.4)),
            Arc(1, 3, "food", 0.0),
            Arc(2, 3, "food", 0.0),
        ),
        0,
        3,
        {0: 0.0, 1: 0.4, 2: 0.5, 3: 1.0},
    )
    first, second = network(lattice).slots
    assert dict(first) == pytest.approx({"thai": 0.6, "tie": 0.4})
    assert dict(second) == pytest.approx({"food": 1.0})
    assert [sentence.text for sentence in nbest(network(lattice), 5)] == ["thai food", "tie food"]


def test_one_long_word_against_two_short_ones_leaves_an_empty_word():
    lattice = Lattice(
        (Arc(0, 1, "north", math.log(0.7)), Arc(1, 2, "african", 0.0), Arc(0, 2, "moroccan", math.log(0.3))),
        0,
        2,
        {0: 0.0, 1: 0.2, 2: 1.0},
    )
    first, second = network(lattice).slots
    assert dict(first) == pytest.approx({"north": 0.7, "": 0.3})
    assert dict(second) == pytest.approx({"african": 0.7, "moroccan": 0.3})


def test_the_same_word_at_another_time_is_one_word_before_others_join():
    lattice = Lattice(
        (
            Arc(0, 1, "", math.log(0.5)),
            Arc(1, 3, "south", 0.0),
            Arc(0, 2, "", math.log(0.3)),
            Arc(2, 3, "south", 0.0),
            Arc(0, 3, "sow", math.log(0.2)),
        ),
        0,
        3,
        {0: 0.0, 1: 0.1, 2: 0.2, 3: 1.0},
    )
    (slot,) = network(lattice).slots
    assert dict(slot) == pytest.approx({"south": 0.8, "sow": 0.2})


def test_words_on_one_path_never_share_a_slot_though_their_times_overlap():
    lattice = Lattice((Arc(0, 1, "a", 0.0), Arc(1, 2, "a", 0.0)), 0, 2, {0: 0.0, 1: 0.0, 2: 0.0})
    assert network(lattice).slots == ((("a", 1.0),), (("a", 1.0),))


def test_a_lattice_without_words_is_an_empty_network():
    assert network(Lattice((Arc(0, 1, "", 0.0),), 0, 1)).slots == ()
