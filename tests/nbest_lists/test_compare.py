import json
from dataclasses import replace
from itertools import combinations
from random import Random

import numpy as np
import pytest

from demur.core.stats.intervals import sidak, unit_figure
from demur.errors import DataError
from demur.nbest_lists.evaluate import NBestSettings, _pair_of, compare_lists, evaluate_nbest, nbest_values, scale_of
from demur.nbest_lists.exploded import ExplodedLists
from nbest_lists.nbest_logs import TURNS, log, simulated, table

QUICK = NBestSettings(replicates=100)
MADE = ("ice", "wser", "f1", "nce")
DIALOGUES = 60
LOGS = 200


def one_pair(*logs, **options):
    (pair,) = compare_lists(table(*logs), **{"settings": QUICK, **options}).pairs
    return pair


def as_system(rows, system):
    return [{**row, "system": system} for row in rows]


def heard_otherwise(rows, seed):
    """The same utterances with the lists of others, dealt at random."""
    given = [row["hypotheses"] for row in rows]
    return [
        {**row, "hypotheses": other} for row, other in zip(rows, Random(seed).sample(given, len(given)), strict=True)
    ]


def test_a_system_against_itself_shows_no_difference():
    rows = log(60, seed=0)
    pair = one_pair(as_system(rows, "a"), as_system(rows, "b"))
    assert pair.verdict == "no significant difference"
    for key, one in pair.differences.items():
        assert (one.value, one.low, one.high, one.p, one.p_adjusted) == (0, 0, 0, 1, 1), key
        assert pair.side(key) == "no significant difference"


def test_a_plainly_better_system_wins_whichever_comes_first():
    better, worse = (simulated(200, seed=1, systems=names, bonus=0.25) for names in (("a", "b"), ("b", "a")))
    assert compare_lists(better, settings=QUICK).pairs[0].verdict == "a better"
    (pair,) = compare_lists(worse, systems=("a", "b"), settings=QUICK).pairs
    assert (pair.a, pair.b, pair.verdict) == ("a", "b", "b better")
    assert pair.differences["ice"].value > 0
    assert pair.differences["f1"].value < 0
    assert {pair.side(key) for key in ("ice", "wser", "ser", "ace", "f1", "recall", "weighted_f1")} == {"b better"}


def test_differences_are_those_of_the_values():
    rows = log(60, seed=2, weighted=True)
    pair = one_pair(as_system(rows, "a"), as_system(heard_otherwise(rows, 1), "b"))
    a, b = (nbest_values(table(part)) for part in (rows, heard_otherwise(rows, 1)))
    for key, one in pair.differences.items():
        assert one.value == pytest.approx(a[key] - b[key], rel=1e-9, abs=1e-12)
        assert one.low <= one.value <= one.high


def test_swapping_the_systems_turns_the_differences_round():
    rows = log(60, seed=3)
    tables = table(as_system(rows, "a"), as_system(heard_otherwise(rows, 2), "b"))
    (ab,) = compare_lists(tables, systems=("a", "b"), settings=QUICK).pairs
    (ba,) = compare_lists(tables, systems=("b", "a"), settings=QUICK).pairs
    for key, one in ab.differences.items():
        other = ba.differences[key]
        assert (one.value, one.low, one.high) == pytest.approx((-other.value, -other.high, -other.low), nan_ok=True)
        assert one.p == pytest.approx(other.p, nan_ok=True)


def test_utterances_are_paired_by_id_whatever_their_order():
    rows = log(60, seed=4)
    a, b = as_system(rows, "a"), as_system(heard_otherwise(rows, 3), "b")
    told = compare_lists(table(a, b), settings=QUICK).to_dict()
    assert told["note"] == "paired by id on 60 utterances"
    assert compare_lists(table(a, Random(5).sample(b, len(b))), settings=QUICK).to_dict() == told
    mixed = Random(6).sample(a[1:] + b, 119)
    assert compare_lists(table(a[:1], mixed), settings=QUICK).to_dict() == told


def test_pairing_narrows_the_interval_where_systems_are_alike():
    lists = simulated(200, seed=7, systems=("a", "b"))
    paired, apart = (compare_lists(lists, unpaired=unpaired, settings=QUICK).pairs[0] for unpaired in (False, True))
    assert (paired.paired, apart.paired) == (True, False)
    assert paired.differences["ice"].value == apart.differences["ice"].value
    width, wider = (pair.differences["ice"].high - pair.differences["ice"].low for pair in (paired, apart))
    assert width < wider


def test_systems_that_were_asked_other_things_are_refused_with_the_id():
    rows = log(12, seed=8)
    rows[3]["reference"] = "inform(food=f0)"
    other = [{**row, "reference": "inform(food=thai)"} if place == 3 else row for place, row in enumerate(rows)]
    with pytest.raises(DataError, match='utterance "d000/3" means food=f0 inform in a but food=thai inform in b'):
        one_pair(as_system(rows, "a"), as_system(other, "b"))


def test_utterances_without_a_counterpart_are_refused_unless_the_common_ones_will_do():
    rows = log(24, seed=9)
    a, b = as_system(rows[:20], "a"), as_system(rows[4:], "b")
    with pytest.raises(
        DataError, match=r'a has 20, b has 20, common to all are 16; without counterpart in a: "d000/0".*`matched`'
    ):
        one_pair(a, b)
    found = compare_lists(table(a, b), matched=True, settings=QUICK)
    assert found.pairs[0].n == 16
    assert dict(found.dropped) == {"a": 4, "b": 4}
    assert found.note == "paired by id on 16 utterances; left out without a counterpart: 4 of a, 4 of b"
    common = compare_lists(table(as_system(rows[4:20], "a"), as_system(rows[4:20], "b")), settings=QUICK)
    assert found.pairs[0].to_dict() == common.pairs[0].to_dict()


def test_systems_without_a_common_utterance_are_refused_even_then():
    rows = log(8, seed=10)
    a, b = as_system(rows[:4], "a"), as_system(rows[4:], "b")
    with pytest.raises(DataError, match="no id is shared: compare with `unpaired`"):
        one_pair(a, b, matched=True)
    assert one_pair(a, b, unpaired=True).paired is False


def test_without_ids_systems_are_compared_as_unpaired():
    rows = [{key: value for key, value in row.items() if key != "id"} for row in log(20, seed=11)]
    found = compare_lists(table(as_system(rows, "a"), as_system(rows, "b")), settings=QUICK)
    assert found.note == "compared as unpaired: there are no ids in a, b"
    assert found.pairs[0].differences["ice"].value == pytest.approx(0, abs=1e-12)
    assert found.pairs[0].verdict == "no significant difference"


def test_one_system_is_not_enough():
    with pytest.raises(DataError, match="two"):
        compare_lists(table(log(8, seed=12)))


def test_dialogues_are_the_units_if_one_system_names_them():
    rows = log(40, seed=13)
    plain = [{**row, "dialogue": None} for row in heard_otherwise(rows, 4)]
    named, half_named = (
        one_pair(as_system(rows, "a"), as_system(part, "b")) for part in (heard_otherwise(rows, 4), plain)
    )
    assert half_named.differences == named.differences


def test_intervals_and_p_values_of_all_pairs_are_corrected_together():
    rows = log(120, seed=14)
    systems = [as_system(heard_otherwise(rows, seed) if seed else rows, f"s{seed}") for seed in range(4)]
    found = compare_lists(table(*systems), settings=QUICK)
    assert [(pair.a, pair.b) for pair in found.pairs] == list(combinations(("s0", "s1", "s2", "s3"), 2))
    for key in MADE:
        raw = np.array([pair.differences[key].p for pair in found.pairs])
        adjusted = [pair.differences[key].p_adjusted for pair in found.pairs]
        assert adjusted == [sidak(p, 6) for p in raw.tolist()]
        assert (np.array(adjusted) >= raw).all()


def test_a_verdict_reads_the_corrected_p_value():
    pair = compare_lists(simulated(100, seed=15, systems=("a", "b"), bonus=0.3), settings=QUICK).pairs[0]
    assert pair.verdict == "a better"
    doubtful = {**pair.differences, "ice": replace(pair.differences["ice"], p_adjusted=0.2)}
    assert replace(pair, differences=doubtful).verdict == "no significant difference"


def test_a_measure_that_is_undefined_for_one_system_has_no_difference():
    rows = log(20, seed=16)
    silent = [{**row, "hypotheses": []} for row in rows]
    pair = one_pair(as_system(rows, "a"), as_system(silent, "b"))
    assert pair.differences["nce"].why == "undefined for one of the two"
    assert pair.side("nce") == "no significant difference"
    assert pair.to_dict()["differences"]["nce"]["p"] is None
    assert pair.verdict == "a better"


def test_plain_values_survive_json_and_a_seed_gives_them_again():
    rows = log(40, seed=17)
    tables = table(*(as_system(heard_otherwise(rows, seed), f"s{seed}") for seed in range(3)))
    found = compare_lists(tables, replicates=100, seed=3).to_dict()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert compare_lists(tables, replicates=100, seed=3).to_dict() == found
    assert [one["system"] for one in found["systems"]] == ["s0", "s1", "s2"]


def test_the_evaluations_are_those_of_each_system_alone():
    rows = log(40, seed=18)
    a, b = as_system(rows, "a"), as_system(heard_otherwise(rows, 5), "b")
    found = compare_lists(table(a, b), settings=QUICK)
    alone = [evaluate_nbest(table(part), settings=QUICK)[0].to_dict() for part in (a, b)]
    assert found.evaluations.to_dict()["systems"] == alone


def test_the_table_has_a_row_for_every_measure_of_every_pair():
    rows = log(20, seed=19)
    found = compare_lists(table(*(as_system(rows, system) for system in "abc")), settings=QUICK)
    assert found.frame().height == 3 * len(found.pairs[0].differences)
    assert set(found.frame()["p_adjusted"]) <= {1.0, None}


def split(lists, names=MADE):
    """The totals of many logs of 60 dialogues each, from those of all their dialogues."""
    kinds = ({key: kind for key, kind in of.items() if key in names} for of in (QUICK.of_acts(), QUICK.of_items()))
    whole = ExplodedLists.of(lists).totals(*kinds)
    parts = np.split(whole.table, whole.units // DIALOGUES)
    return [replace(whole, table=part, n=DIALOGUES * TURNS) for part in parts]


def test_intervals_of_95_percent_hold_the_truth_at_least_nine_times_in_ten():
    truth = nbest_values(simulated(20_000, seed=20))
    held = dict.fromkeys(MADE, 0)
    for seed, one in enumerate(split(simulated(LOGS * DIALOGUES, seed=21))):
        drawn = one.draw(replicates=100, seed=seed)
        for key in MADE:
            value, scale = float(one.values(key, one.totals)), scale_of(one.measures[key])
            figure = unit_figure(value, one.values(key, drawn), one.units, level=0.95, scale=scale, why=str)
            held[key] += figure.low <= truth[key] <= figure.high
    assert all(0.9 <= count / LOGS <= 0.98 for count in held.values()), held


def test_systems_alike_are_told_apart_about_one_time_in_twenty():
    lists = simulated(LOGS * DIALOGUES, seed=22, systems=("a", "b"))
    alarms = {True: 0, False: 0}
    for seed, (a, b) in enumerate(zip(*(split(lists.of(name), ("ice",)) for name in "ab"), strict=True)):
        for paired in alarms:
            pair = _pair_of("a", "b", {"a": a, "b": b}, paired, NBestSettings(replicates=100, seed=seed))
            alarms[paired] += pair.differences["ice"].p < 0.05
    assert 0.025 <= alarms[True] / LOGS <= 0.085, alarms
    assert alarms[False] <= alarms[True]  # utterances are the same, so what is ignored makes the test careful
