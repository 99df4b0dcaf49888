from math import isnan, log, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.core.stats.calibration import ECE
from demur.core.stats.measure import Score, parse_signature
from demur.core.stats.resampling import Rows
from demur.errors import DataError, UsageError
from demur.nbest_lists.exploded import ExplodedLists, explode
from demur.nbest_lists.measures import (
    ACE,
    ICE,
    ICE_PARTS,
    KINDS,
    NBEST,
    OF_ACTS,
    OF_ITEMS,
    SER,
    WSER,
    ActError,
    ActNCE,
    ActOracle,
    ActWSER,
    FlooredShare,
    ItemNCE,
    ItemScore,
    Oracle,
    TopNCE,
    WeightedItemScore,
)
from demur.nbest_lists.table import nbest
from demur.returns.measures import AUROC
from reference import nbest as plain
from reference.nbest import Utterance, rough_lists, tables

SMOOTH = [key for key in NBEST if key not in {*ICE_PARTS, "item_ece"}]

HOTEL = "inform(type=hotel, pricerange=expensive)"
TABLE_1 = [Utterance(HOTEL, [(HOTEL, 0.9), ("inform(type=hotel, pricerange=inexpensive)", 0.1)])]

TWO = [
    Utterance(["a", "b"], [(["a", "c"], 0.6), (["a", "b"], 0.2)]),
    Utterance(["a"], [(["b", "c", "d"], 0.5), ([], 0.25)]),
]
"""Four items of the top hypotheses too many or too few of three meant; see each test for its arithmetic."""


def rows(table):
    return explode(nbest(plain.rows_of(table)))


def value(measure, table):
    found = rows(table)
    of_acts = type(measure) in {type(one) for one in OF_ACTS.values()}
    return measure(found.acts if of_acts else found.items).value


def roc_auc(table):
    return float(AUROC().finish(Rows.from_frame(ExplodedLists.of(nbest(plain.rows_of(table))).top_answers()).sweep()))


def every_value(table):
    """Each measure as it is called by a user, with the parts of the ICE read from rows as well."""
    found = rows(table)
    values = {key: measure(found.acts).value for key, measure in OF_ACTS.items()}
    values["roc_auc"] = roc_auc(table)
    if found.items.is_empty():
        return values
    return values | {key: measure(found.items).value for key, measure in {**OF_ITEMS, **ICE_PARTS}.items()}


def assert_agree(found, expected, rel=1e-9):
    for key, one in found.items():
        assert one == pytest.approx(expected[key], rel=rel, abs=1e-11, nan_ok=True), key


@given(tables())
def test_every_measure_agrees_with_its_plain_twin(table):
    assert_agree(every_value(table), plain.all_measures(table))


@given(tables(rough_lists()))
def test_measures_that_no_tie_can_tip_agree_on_any_confidences(table):
    found, expected = every_value(table), plain.all_measures(table)
    # near certainty a logarithm magnifies the last digit of a sum of confidences, which the order of summing moves
    assert_agree({key: found[key] for key in SMOOTH if key in found}, expected, rel=1e-7)


@given(tables(), st.sampled_from([1e-9, 1e-3, 0.05, 0.4]))
def test_cross_entropies_agree_with_their_plain_twins_at_any_floor(table, floor):
    found = rows(table)
    assert ACE(floor)(found.acts).value == pytest.approx(plain.ace(table, floor), rel=1e-9)
    if not found.items.is_empty():
        assert ICE(floor)(found.items).value == pytest.approx(plain.ice(table, floor), rel=1e-9, nan_ok=True)
        share = plain.floored_share(table, floor)
        assert FlooredShare(floor)(found.items).value == pytest.approx(share, rel=1e-9, nan_ok=True)


@given(tables(), st.sampled_from([1e-12, 1e-7, 0.01, 0.3]))
def test_nce_agrees_with_its_plain_twin_at_any_floor(table, floor):
    found = rows(table)
    of_acts = ActNCE(floor)(found.acts).value
    assert of_acts == pytest.approx(plain.nce(plain.hypothesised_acts(table), floor), rel=1e-9, abs=1e-9, nan_ok=True)
    if not found.items.is_empty():
        for measure, population in ((ItemNCE(floor), "all"), (TopNCE(floor), "top")):
            expected = plain.nce(plain.hypothesised_items(table, population), floor)
            assert measure(found.items).value == pytest.approx(expected, rel=1e-9, abs=1e-9, nan_ok=True)


@given(tables())
def test_nce_and_ice_charge_hypothesised_items_the_same(table):
    """(1 - NCE) H is what the ICE charges for the items that some hypothesis holds: the ICE less its missing part."""
    found = rows(table)
    if found.items.is_empty() or isnan(one := ItemNCE()(found.items).value):
        return
    held = plain.hypothesised_items(table)
    n, right = (sum(w for _, is_right, w in held if is_right or every) for every in (True, False))
    entropy = -(right * log(right / n) + (n - right) * log(1 - right / n))
    ice, missing = ICE()(found.items).value, ICE_PARTS["missing"](found.items).value
    assert (1 - one) * entropy == pytest.approx((ice - missing) * plain.reference_items(table), abs=1e-9)


def test_hundreds_of_utterances_agree_with_the_plain_twins():
    rng = np.random.default_rng(7)
    written = ["bye()", "inform(food=thai)", "inform(food=thai, area=north)", ["inform", "food=tie"], "", "request(x)"]
    table = []
    for _ in range(400):
        size = int(rng.integers(0, 6))
        left = rng.multinomial(64, np.ones(size + 1) / (size + 1))[:size] / 64
        chosen = [written[k] for k in rng.integers(0, len(written), size)]
        reference = written[int(rng.integers(0, len(written)))]
        table.append(Utterance(reference, list(zip(chosen, left.tolist(), strict=True)), float(rng.integers(1, 4))))
    assert_agree(every_value(table), plain.all_measures(table))


@pytest.mark.parametrize("measure", NBEST.values(), ids=NBEST)
def test_a_signature_reads_back(measure):
    found = rows(TWO)
    score = measure(found.acts if measure in OF_ACTS.values() else found.items)
    read = parse_signature(score.signature, KINDS)
    assert read.measure == measure
    assert (read.n, read.data) == (score.n, score.data)


def test_table_1_of_the_paper():
    """Item confidences 1, 1, .9 and .1. One of the two acts has one error, at .1, over three items: WSER .1/3."""
    found = rows(TABLE_1)
    names = [found.item.tolist(), nbest(plain.rows_of(TABLE_1)).sets.names]
    stated = {names[1][k]: c for k, c in zip(names[0], found.items["confidence"], strict=True)}
    expected = {"inform": 1.0, "type=hotel": 1.0, "pricerange=expensive": 0.9, "pricerange=inexpensive": 0.1}
    assert stated == pytest.approx(expected)
    assert value(WSER(), TABLE_1) == pytest.approx(0.1 / 3)
    assert value(Oracle(), TABLE_1) == 0
    assert value(SER(), TABLE_1) == 0
    assert value(ICE(), TABLE_1) == pytest.approx(-2 * log(0.9) / 3)
    assert value(ACE(), TABLE_1) == pytest.approx(-2 * log(0.9))
    assert value(FlooredShare(), TABLE_1) == 0


def test_ser_of_a_hand_worked_case():
    """{a, c} for {a, b}: one substitution. {b, c, d} for {a}: a substitution and two insertions. 4 over 3."""
    assert value(SER(), TWO) == pytest.approx(4 / 3)


def test_wser_counts_the_mass_that_was_not_given_out_as_the_empty_hypothesis():
    """First: .6 * 1 + .2 * 0 + rest .2 * 2 = 1. Second: .5 * 3 + .25 * 1 + rest .25 * 1 = 2. 3 over 3."""
    assert value(WSER(), TWO) == pytest.approx((0.6 * 1 + 0.2 * 2 + 0.5 * 3 + 0.25 + 0.25) / 3)


def test_oracle_of_a_hand_worked_case():
    """Best of the first is right, best of the second is the empty act, which misses one item. 1 over 3."""
    assert value(Oracle(), TWO) == pytest.approx(1 / 3)


def test_precision_recall_and_f1_of_a_hand_worked_case():
    """Top {a, c} and {b, c, d} against {a, b} and {a}: 1 right of 5 hypothesised and 3 meant."""
    assert value(ItemScore("precision"), TWO) == pytest.approx(1 / 5)
    assert value(ItemScore("recall"), TWO) == pytest.approx(1 / 3)
    assert value(ItemScore("f1"), TWO) == pytest.approx(2 / 8)


def test_weighted_precision_recall_and_f1_of_a_hand_worked_case():
    """First a .8, b .2, c .6; second b, c, d .5 each. Right .8 + .2 = 1 of 1.6 + 1.5 = 3.1 stated, 3 meant."""
    assert value(WeightedItemScore("precision"), TWO) == pytest.approx(1 / 3.1)
    assert value(WeightedItemScore("recall"), TWO) == pytest.approx(1 / 3)
    assert value(WeightedItemScore("f1"), TWO) == pytest.approx(2 / 6.1)


def test_ice_of_a_hand_worked_case():
    """First: a .8 and b .2 right, c .6 wrong. Second: a missed at the floor; b, c, d wrong at .5. Over 3 items."""
    stated = log(0.8) + log(0.2) + log(1 - 0.6) + 3 * log(0.5)
    assert value(ICE(), TWO) == pytest.approx(-(stated + log(1e-3)) / 3)
    assert value(ICE(0.01), TWO) == pytest.approx(-(stated + log(0.01)) / 3)
    assert value(FlooredShare(), TWO) == pytest.approx(1 / 3)
    assert value(FlooredShare(0.3), TWO) == pytest.approx(2 / 3)


def test_ace_of_a_hand_worked_case():
    """First: wrong at .6, right at .2. Second: wrong at .5 and .25, the act that was meant missed. Two utterances."""
    expected = -(log(1 - 0.6) + log(0.2) + log(1 - 0.5) + log(1 - 0.25) + log(1e-3)) / 2
    assert value(ACE(), TWO) == pytest.approx(expected)


def test_act_rates_of_a_hand_worked_case():
    """Both tops are wrong acts: 2 of 2. On wrong acts or on nothing .6 + .2 and .5 + .25 + .25. {a} is in no list."""
    assert value(ActError(), TWO) == 1
    assert value(ActWSER(), TWO) == pytest.approx((0.8 + 1.0) / 2)
    assert value(ActOracle(), TWO) == 0.5


def test_saying_nothing_is_the_right_act_where_nothing_was_meant():
    table = [Utterance([], []), Utterance([], [(["a"], 0.25)])]
    assert value(ActError(), table) == 0.5
    assert value(ActWSER(), table) == 0.125
    assert value(ActOracle(), table) == 0.5


def test_act_nce_of_a_hand_worked_case():
    """Four acts hypothesised, one of them right: H = -(log 1/4 + 3 log 3/4)."""
    entropy = -(log(1 / 4) + 3 * log(3 / 4))
    stated = log(1 - 0.6) + log(0.2) + log(1 - 0.5) + log(1 - 0.25)
    assert value(ActNCE(), TWO) == pytest.approx((entropy + stated) / entropy)
    unheard = [*TWO, Utterance(["a"], [(["a"], 0.0)])]
    assert value(ActNCE(), unheard) == pytest.approx(value(ActNCE(), TWO)), "acts of no confidence do not count"


def test_nce_of_a_hand_worked_case():
    """Six items hypothesised, two of them right: H = -(2 log 1/3 + 4 log 2/3)."""
    entropy = -(2 * log(1 / 3) + 4 * log(2 / 3))
    stated = log(0.8) + log(0.2) + log(1 - 0.6) + 3 * log(0.5)
    assert value(ItemNCE(), TWO) == pytest.approx((entropy + stated) / entropy)


def test_nce_of_the_top_hypothesis_looks_at_its_items_only():
    """Of the top acts' items a .8 is right, c .6 and b, c, d .5 are wrong: H = -(log 1/5 + 4 log 4/5)."""
    entropy = -(log(1 / 5) + 4 * log(4 / 5))
    stated = log(0.8) + log(1 - 0.6) + 3 * log(0.5)
    assert value(TopNCE(), TWO) == pytest.approx((entropy + stated) / entropy)


def test_item_ece_of_a_hand_worked_case():
    """Bins: .8 right (gap .2), .2 right (.8), .6 wrong (.6), three wrong at .5 (1.5); 3.1 over 6 items."""
    assert value(ECE(), TWO) == pytest.approx((0.2 + 0.8 + 0.6 + 1.5) / 6)


def test_roc_auc_of_a_hand_worked_case():
    """Right tops at .9 and .5, wrong ones at .5 and .7: won 2 of .9, half of .5; 2.5 of 4 pairs."""
    table = [Utterance(["a"], [(["a"], 0.9)]), Utterance(["a"], [(["a"], 0.5)])]
    table += [Utterance(["a"], [(["b"], 0.5)]), Utterance(["a"], [(["a", "b"], 0.7), (["a"], 0.3)])]
    assert roc_auc(table) == pytest.approx(2.5 / 4)
    assert roc_auc([*table, Utterance(["a"], [])]) == pytest.approx(2.5 / 4)


def test_equal_acts_are_one_however_they_are_written():
    """The act meant gets .3 + .3, which puts it above the .4 of the other."""
    written = ["inform(food=thai,area=north)", ["food=thai", "inform", "area=north"]]
    table = [Utterance("inform(area=north, food=thai)", [(written[0], 0.3), ("bye()", 0.4), (written[1], 0.3)])]
    assert value(SER(), table) == 0
    assert value(ACE(), table) == pytest.approx(-2 * log(0.6))


def test_the_first_of_equally_sure_hypotheses_is_the_top_one():
    assert value(SER(), [Utterance(["a"], [(["a"], 0.5), (["b"], 0.5)])]) == 0
    assert value(SER(), [Utterance(["a"], [(["b"], 0.5), (["a"], 0.5)])]) == 1


def test_perfect_lists_have_no_errors_and_no_entropy():
    table = [Utterance(HOTEL, [(HOTEL, 1.0)]), Utterance(["bye"], [("bye()", 1.0)]), Utterance("", [("", 1.0)])]
    for measure in (SER(), WSER(), Oracle(), ICE(), ACE(), FlooredShare(), ECE()):
        assert value(measure, table) == 0
    for part in ("precision", "recall", "f1"):
        assert value(ItemScore(part), table) == 1
        assert value(WeightedItemScore(part), table) == 1
    assert isnan(value(ItemNCE(), table))


def test_nothing_hypothesised_errs_on_every_item():
    table = [Utterance(HOTEL, []), Utterance("bye()", [])]
    for measure in (SER(), WSER(), Oracle(), FlooredShare()):
        assert value(measure, table) == 1
    assert value(ICE(), table) == pytest.approx(-log(1e-3))
    assert value(ICE(0.01), table) == pytest.approx(-log(0.01))
    assert value(ACE(), table) == pytest.approx(-log(1e-3))
    assert value(ItemScore("recall"), table) == value(WeightedItemScore("recall"), table) == 0
    assert isnan(value(ItemScore("precision"), table))
    assert isnan(roc_auc(table))
    found = rows(table)
    for measure, why in ((ItemScore("precision"), "no item was hypothesised"), (ItemNCE(), "nothing was answered")):
        score = measure(found.acts if type(measure) is ItemScore else found.items)
        assert isnan(score.value)
        assert why in score.why


@pytest.mark.parametrize("key", ["ser", "wser", "oracle", "recall", "ice", "ice_floored_share", "weighted_recall"])
def test_a_rate_over_items_meant_is_undefined_where_none_is_meant(key):
    found = rows([Utterance("", [("bye()", 0.5)]), Utterance([], [])])
    score = NBEST[key](found.acts if key in OF_ACTS else found.items)
    assert isnan(score.value)
    assert score.why == "no reference holds any item"
    assert score.to_dict()["value"] is None


def test_costs_of_an_utterance_that_meant_nothing_count():
    """Nw stays 1: one insertion more for the SER, .5 of one for the WSER, and -log(1 - .5) for the ICE."""
    right = Utterance(["a"], [(["a"], 1.0)])
    table = [right, Utterance([], [(["b"], 0.5)])]
    assert value(SER(), table) == 1
    assert value(WSER(), table) == 0.5
    assert value(ICE(), table) == pytest.approx(-log(0.5))


def test_an_item_of_no_confidence_counts_as_not_hypothesised():
    table = [Utterance(["a", "b"], [(["a"], 0.5), (["b", "junk"], 0.0)])]
    without = [Utterance(["a", "b"], [(["a"], 0.5)])]
    for measure in (ICE(), FlooredShare(), ItemNCE(), TopNCE(), ECE(), *ICE_PARTS.values()):
        assert value(measure, table) == pytest.approx(value(measure, without), nan_ok=True)


def test_a_list_that_sums_to_a_little_over_1_costs_nothing_extra():
    table = [Utterance(["a"], [(["a"], 0.5), (["a", "b"], 0.5005)])]
    assert value(ICE(), table) == pytest.approx(-log(1 - 0.5005))
    assert value(WSER(), table) == pytest.approx(0.5005)


@pytest.mark.parametrize("floor", [0, -1e-3, 0.5, 1, nan])
@pytest.mark.parametrize("kind", [ICE, ACE, FlooredShare])
def test_a_floor_outside_its_range_is_refused(kind, floor):
    with pytest.raises(UsageError, match=r"floor of a probability must lie between 0 and 0\.5"):
        kind(floor)


def test_a_part_that_is_none_is_refused():
    with pytest.raises(UsageError, match='part is precision, recall or f1; got "accuracy"'):
        ItemScore("accuracy")


def test_no_rows_at_all_are_refused():
    found = rows([Utterance("", [])])
    with pytest.raises(DataError, match="needs at least one row"):
        ICE()(found.items)
    assert isnan(SER()(found.acts).value)


def test_scores_of_other_floors_do_not_add():
    found = rows(TWO).items
    with pytest.raises(DataError, match=r"ICE\(floor=0\.001\).*cannot be added"):
        ICE()(found) + ICE(0.01)(found)
    assert isinstance(ICE()(found) + ICE()(found), Score)
