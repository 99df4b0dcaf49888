"""Beliefs of the factored network against summing over everything."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from demur.core.acts import parse_acts
from demur.lab.dialogue.belief import (
    INDIFFERENT,
    SLIP,
    UNLISTED,
    BeliefNetwork,
    BeliefState,
    Evidence,
    HistoryStep,
    Potential,
    observe,
)
from demur.lab.dialogue.domain import WELCOME, Prompt, TaskDomain
from reference.belief_network import enumerated

VALUES = {"area": ("north", "south", "east"), "price": ("cheap", "dear")}
SIZES = {slot: len(values) for slot, values in VALUES.items()}
factors = st.floats(0.05, 3.0)


@st.composite
def potentials(draw, slot):
    mentioned = draw(st.lists(st.sampled_from(("dontcare", *VALUES[slot])), unique=True, max_size=2))
    return Potential(draw(factors), {value: draw(factors) for value in mentioned})


steps = st.builds(HistoryStep, st.tuples(factors, factors, factors), st.tuples(*[st.integers(0, 2)] * 3))


@st.composite
def evidences(draw, slots=tuple(VALUES), with_histories=True):
    acts = draw(st.integers(2, 3))
    goals = {slot: tuple(draw(potentials(slot)) for _ in range(acts)) for slot in slots}
    histories = {slot: tuple(draw(steps) for _ in range(acts)) for slot in slots if with_histories}
    return Evidence(tuple(draw(factors) for _ in range(acts)), goals, histories, draw(st.floats(0, 0.5)))


def marginals(network, slot, values):
    """The belief of every value: those that nobody mentioned share what is left."""
    known = network.goal(slot)
    others = [value for value in values if value not in known]
    left = 1 - sum(known.values())
    return {**known, **{value: left / len(others) for value in others}}


def after(turns, values, window):
    network = BeliefNetwork({slot: len(own) for slot, own in values.items()}, window=window)
    for one in turns:
        network.add(one)
    return network


@given(evidences(), st.integers(1, 3))
def test_one_turn_is_exact_with_any_number_of_slots(evidence, window):
    network = after([evidence], VALUES, window)
    goals, histories, acts = enumerated([evidence], VALUES)
    for slot, values in VALUES.items():
        assert marginals(network, slot, values) == pytest.approx(goals[slot])
        assert network.history(slot) == pytest.approx(histories[slot])
    assert network.acts[-1] == pytest.approx(acts)


@given(st.lists(evidences(slots=("area",), with_histories=False), min_size=2, max_size=4), st.integers(1, 4))
def test_several_turns_about_one_slot_are_exact_with_any_window(turns, window):
    values = {"area": VALUES["area"]}
    network = after(turns, values, window)
    goals, _, acts = enumerated(turns, values)
    assert marginals(network, "area", values["area"]) == pytest.approx(goals["area"])
    assert network.acts[-1] == pytest.approx(acts)


@settings(max_examples=15)
@given(st.lists(evidences(with_histories=False), min_size=2, max_size=2))
def test_two_turns_about_two_slots_are_near_where_loops_make_them_inexact(turns):
    network = after(turns, VALUES, 2)
    goals, _, _ = enumerated(turns, VALUES)
    for slot, values in VALUES.items():
        found = marginals(network, slot, values)
        assert sum(found.values()) == pytest.approx(1)
        assert all(abs(found[value] - goals[slot][value]) < 0.2 for value in goals[slot])


def test_a_value_of_confidence_06_is_believed_as_much_as_by_hand():
    town = TaskDomain.read("town")
    network = BeliefNetwork({slot: len(values) for slot, values in town.values.items()}, window=1)
    network.add(observe(town, [(parse_acts("inform(area=north)"), 0.6)], WELCOME))
    prior = (1 - INDIFFERENT) / 5
    mean = prior + SLIP * (1 - prior)
    # two acts: the one listed, usual after a welcome, and anything else, of weight 0.4 * 0.3
    said, other = 0.6 * 1.0, 0.4 * 0.3
    expected = prior * (said / mean + other) / (said + other)
    assert network.goal("area")["north"] == pytest.approx(expected)


def test_what_lists_repeat_is_believed_more_and_a_no_takes_it_back():
    town = TaskDomain.read("town")
    state = BeliefState.new(town)
    beliefs = []
    unsure = [(parse_acts("inform(food=thai)"), 0.4), (parse_acts("inform(food=turkish)"), 0.3)]
    for last in (WELCOME, Prompt("request", slot="food")):
        state.update(unsure, last)
        beliefs.append(state.best["food"])
    state.update([(parse_acts("negate()"), 0.9)], Prompt("confirm", slot="food", value="thai"))
    assert [value for value, _ in beliefs] == ["thai", "thai"]
    assert beliefs[0][1] < beliefs[1][1] < 1
    assert state.best["food"][0] == "turkish"


def test_some_mass_is_kept_for_what_a_list_does_not_have():
    town = TaskDomain.read("town")
    evidence = observe(town, [(parse_acts("affirm()"), 1.0)], Prompt("confirm", slot="food", value="thai"))
    assert evidence.weights == pytest.approx((1.0, UNLISTED * 0.3))


def test_acts_of_one_hypothesis_keep_their_order_so_that_ties_are_decided_alike_in_every_process():
    state = BeliefState.new(TaskDomain.read("town"))
    state.update([(parse_acts("thankyou()&bye()&hello()&reqalts()"), 0.9)], WELCOME)
    assert list(state.mass) == ["thankyou", "bye", "hello", "reqalts"]
