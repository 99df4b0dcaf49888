import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.errors import DataError
from demur.nbest_lists.asr.lattices import Arc, Lattice, best_path, posteriors, times
from reference.networks import arc_posteriors, lattices, paths_of


def test_posteriors_of_a_lattice_worked_by_hand():
    half, third = math.log(0.5), math.log(0.25)
    lattice = Lattice(
        (Arc(0, 1, "a", half), Arc(0, 2, "b", half), Arc(1, 3, "c", 0.0), Arc(2, 3, "c", third), Arc(2, 3, "d", third)),
        0,
        3,
    )
    # The paths a c, b c and b d have the weights 1/2, 1/8 and 1/8, in all 3/4.
    assert posteriors(lattice) == pytest.approx([2 / 3, 1 / 3, 2 / 3, 1 / 6, 1 / 6])


@given(lattices())
def test_posteriors_are_those_of_all_paths_one_by_one(lattice):
    plain = [(arc.start, arc.end, arc.score) for arc in lattice.arcs]
    assert posteriors(lattice) == pytest.approx(arc_posteriors(plain, lattice.start, lattice.end))


@given(lattices(), st.floats(-2000, 2000))
def test_posteriors_do_not_change_with_the_level_of_scores(lattice, level):
    along = times(Lattice(lattice.arcs, 0, lattice.end))
    moved = tuple(arc._replace(score=arc.score + level * (along[arc.end] - along[arc.start])) for arc in lattice.arcs)
    assert posteriors(Lattice(moved, 0, lattice.end)) == pytest.approx(posteriors(lattice), abs=1e-9)


@given(lattices())
def test_the_best_path_is_the_best_of_all(lattice):
    def score(path):
        return sum(lattice.arcs[number].score for number in path)

    best = best_path(lattice)
    assert tuple(best) in set(paths_of(lattice))
    assert score(best) == pytest.approx(max(map(score, paths_of(lattice))))


def test_an_arc_to_nowhere_has_no_probability():
    lattice = Lattice((Arc(0, 1, "a", 0.0), Arc(0, 2, "b", 5.0)), 0, 1)
    assert posteriors(lattice) == [1.0, 0.0]


def test_without_times_the_longest_way_from_the_start_stands_in():
    lattice = Lattice((Arc(0, 1, "a", 0.0), Arc(1, 2, "b", 0.0), Arc(0, 2, "c", 0.0)), 0, 2)
    assert times(lattice) == {0: 0.0, 1: 1.0, 2: 2.0}


def test_a_cycle_is_refused_with_its_nodes():
    arcs = (Arc(0, 1, "a", 0.0), Arc(1, 2, "b", 0.0), Arc(2, 3, "c", 0.0), Arc(3, 1, "d", 0.0), Arc(3, 4, "e", 0.0))
    with pytest.raises(DataError, match=r'lattice must not have a cycle; got "nodes 1 -> 2 -> 3 -> 1"'):
        Lattice(arcs, 0, 4)


def test_an_arc_back_to_its_own_node_is_a_cycle():
    with pytest.raises(DataError, match="nodes 1 -> 1"):
        Lattice((Arc(0, 1, "a", 0.0), Arc(1, 1, "b", 0.0)), 0, 1)


def test_an_end_that_cannot_be_reached_is_refused():
    with pytest.raises(DataError, match="must lead from node 0 to node 3"):
        Lattice((Arc(0, 1, "a", 0.0), Arc(2, 3, "b", 0.0)), 0, 3)


def test_an_end_that_only_impossible_arcs_reach_is_refused():
    with pytest.raises(DataError, match="must lead from node 0 to node 1"):
        Lattice((Arc(0, 1, "a", -math.inf),), 0, 1)


def test_a_lattice_without_arcs_is_refused():
    with pytest.raises(DataError, match="lattice must have arcs"):
        Lattice((), 0, 0)
