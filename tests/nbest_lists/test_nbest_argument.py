"""The argument of Thomson et al. (2008) as properties: what each measure rewards."""

from math import log

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from demur.core.stats.calibration import NCE
from demur.nbest_lists.exploded import explode
from demur.nbest_lists.measures import ICE, SER, WSER, Oracle
from demur.nbest_lists.table import nbest
from reference import nbest as plain
from reference.nbest import Utterance, items_of, tables

ACTS = st.lists(
    st.sampled_from(["bye()", "inform(food=thai)", "inform(food=thai, area=north)", "inform(food=tie)", "request(x)"]),
    min_size=1,
    max_size=4,
    unique=True,
)


def value(measure, table):
    found = explode(nbest(plain.rows_of(table)))
    return measure(found.items if isinstance(measure, (ICE, NCE)) else found.acts).value


def believed(acts, shares, hypotheses):
    """What a scorer expects of a list whose beliefs are these: an utterance for each act it may mean, by its share."""
    return [Utterance(act, hypotheses, share) for act, share in zip(acts, shares, strict=True)]


@st.composite
def beliefs(draw):
    acts = draw(ACTS)
    parts = draw(st.lists(st.integers(1, 20), min_size=len(acts), max_size=len(acts)))
    return acts, [part / sum(parts) for part in parts]


@given(beliefs())
def test_wser_rewards_all_confidence_on_the_act_of_least_expected_error(belief):
    """Equation 2: the honest list is never expected to do better than one hypothesis at confidence 1."""
    acts, shares = belief
    honest = value(WSER(), believed(acts, shares, list(zip(acts, shares, strict=True))))
    alone = [value(WSER(), believed(acts, shares, [(act, 1.0)])) for act in acts]
    assert min(alone) <= honest + 1e-12


@given(tables())
def test_keeping_only_a_top_hypothesis_of_least_error_never_raises_wser(table):
    """It holds where no other hypothesis, the empty one for the rest of the mass included, has fewer errors."""
    sure = []
    for u in table:
        top, meant = plain.top_of(u), plain.meant(u)
        least = min(plain.errors(meant, act) for act in [*plain.acts_of(u), frozenset()])
        fit = top is not None and plain.errors(meant, top) == least
        sure.append(u._replace(hypotheses=[(sorted(top), 1.0)]) if fit else u)
    assume(plain.reference_items(table))
    assert value(WSER(), sure) <= value(WSER(), table) + 1e-12


@given(beliefs())
def test_ice_is_least_for_the_honest_list_where_wser_is_not(belief):
    acts, shares = belief
    honest = value(ICE(1e-9), believed(acts, shares, list(zip(acts, shares, strict=True))))
    for act in acts:
        assert value(ICE(1e-9), believed(acts, shares, [(act, 1.0)])) >= honest - 1e-9


@given(st.floats(0.01, 0.99), st.floats(0, 1))
def test_ice_is_least_at_the_true_probability(truth, stated):
    """Equations 4 and 5, for one item that is right with this probability beside one that always is."""

    def expected(confidence):
        hypotheses = [(["sure", "maybe"], confidence), (["sure"], 1 - confidence)]
        return value(ICE(), believed([["sure", "maybe"], ["sure"]], [truth, 1 - truth], hypotheses))

    assert expected(stated) >= expected(truth) - 1e-9


def test_ice_at_the_true_probability_is_the_entropy():
    """An item right one time in four: -(1/4 log 1/4 + 3/4 log 3/4), over 1 + 1/4 items meant on average."""
    table = believed([["sure", "maybe"], ["sure"]], [0.25, 0.75], [(["sure", "maybe"], 0.25), (["sure"], 0.75)])
    assert value(ICE(), table) == pytest.approx(-(0.25 * log(0.25) + 0.75 * log(0.75)) / 1.25)


@given(tables())
def test_junk_at_tiny_confidence_raises_nce_but_not_the_merit_of_ice(table):
    """Each junk item adds to the base entropy and costs next to nothing: NCE = 1 - cost / entropy rises."""
    held = plain.hypothesised_items(table)
    cost = sum(-weight * log(max(c if right else 1 - c, 1e-7)) for c, right, weight in held)
    assume(any(right for _, right, _ in held))
    assume(not all(right for _, right, _ in held))
    assume(cost > 1e-3)
    padded = [u._replace(hypotheses=[*u.hypotheses, (["junk"], 1e-9)]) for u in table]
    before, after = value(NCE(), table), value(NCE(), padded)
    assert after > before
    assert 0 <= value(ICE(), padded) - value(ICE(), table) < 1e-6


def test_junk_turns_a_bad_nce_into_a_good_one():
    table = [Utterance(["a"], [(["a"], 0.4), (["b"], 0.4)]) for _ in range(10)]
    junk = [([f"junk{k}"], 1e-6) for k in range(20)]
    padded = [u._replace(hypotheses=[*u.hypotheses, *junk]) for u in table]
    assert value(NCE(), table) < 0
    assert value(NCE(), padded) > 0.6
    assert value(ICE(), padded) == pytest.approx(value(ICE(), table), abs=1e-3)
    assert value(ICE(), padded) > value(ICE(), table)


@given(tables(), st.randoms(use_true_random=False))
def test_the_oracle_ignores_confidences(table, random):
    dealt = []
    for u in table:
        stated = random.sample([c for _, c in u.hypotheses], len(u.hypotheses))
        dealt.append(u._replace(hypotheses=[(act, c) for (act, _), c in zip(u.hypotheses, stated, strict=True)]))
    assert value(Oracle(), dealt) == pytest.approx(value(Oracle(), table), nan_ok=True)


@given(tables(), st.sampled_from(["bye()", "inform(food=thai)", ["z"]]))
def test_the_oracle_never_rises_with_another_hypothesis_in_lists_that_hold_one(table, act):
    """In an empty list a bad hypothesis can do worse than saying nothing."""
    longer = [u._replace(hypotheses=[*u.hypotheses, (act, 0.0)]) if u.hypotheses else u for u in table]
    assume(plain.reference_items(table))
    assert value(Oracle(), longer) <= value(Oracle(), table)
    assert value(Oracle(), table) <= value(SER(), table)


def test_ice_punishes_leaving_out_what_was_meant_and_wser_rewards_it():
    """Beliefs .6 and .4: all on the first expects WSER .4 * 1/2 and ICE at the floor in four of ten cases."""
    acts, shares = ["inform(food=thai)", "inform(food=tie)"], [0.6, 0.4]
    honest, sure = list(zip(acts, shares, strict=True)), [(acts[0], 1.0)]
    assert value(WSER(), believed(acts, shares, sure)) == pytest.approx(0.4 / 2)
    assert value(WSER(), believed(acts, shares, honest)) == pytest.approx((0.6 * 0.4 + 0.4 * 0.6) / 2)
    assert value(ICE(), believed(acts, shares, sure)) == pytest.approx(-0.4 * 2 * log(1e-3) / 2)
    assert value(ICE(), believed(acts, shares, honest)) == pytest.approx(-(0.6 * log(0.6) + 0.4 * log(0.4)))
    assert items_of(acts[0]) == {"inform", "food=thai"}
