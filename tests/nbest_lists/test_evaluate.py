import json
from math import exp, isnan, log
from random import Random

import numpy as np
import polars as pl
import pytest

from demur.core.stats.measure import parse_signature
from demur.errors import DataError, UsageError
from demur.nbest_lists.evaluate import NO_ITEM, NBestSettings, evaluate_nbest, nbest_values
from demur.nbest_lists.measures import ICE_PARTS, KINDS, OF_ACTS, OF_ITEMS
from demur.nbest_lists.table import nbest
from nbest_lists.nbest_logs import KEPT, TURNS, simulated, table
from nbest_lists.nbest_logs import log as made_up

QUICK = NBestSettings(replicates=100)


def evaluated(rows, **options):
    return evaluate_nbest(table(rows), **{"replicates": 100, **options})


def figures_of(one):
    return {**one.figures, **{f"ice_{key}": part for key, part in one.parts.items()}}


def test_every_measure_has_a_figure_and_every_part_of_the_ice():
    (one,) = evaluated(made_up(80, seed=0))
    assert one.figures.keys() == OF_ACTS.keys() | OF_ITEMS.keys() | {"roc_auc"}
    assert one.parts.keys() == ICE_PARTS.keys()


@pytest.mark.parametrize("weighted", [False, True])
def test_figures_have_the_values_of_the_measures(weighted):
    lists = table(made_up(80, seed=1, weighted=weighted))
    (one,) = evaluate_nbest(lists, settings=QUICK)
    found = {key: figure.value for key, figure in figures_of(one).items()}
    assert found == pytest.approx(nbest_values(lists, QUICK), rel=1e-12, abs=1e-12)


def test_intervals_contain_their_values():
    for weighted in (False, True):
        (one,) = evaluated(made_up(80, seed=2, weighted=weighted))
        for key, figure in figures_of(one).items():
            assert figure.low <= figure.value <= figure.high, key


def test_intervals_of_shares_stay_between_0_and_1_and_those_of_errors_above_0():
    (one,) = evaluated(made_up(40, seed=3))
    for key in ("precision", "recall", "f1", "weighted_f1", "ice_floored_share"):
        assert one.figures[key].low >= 0
        assert one.figures[key].high <= 1
    for key in ("ser", "wser", "oracle", "ice", "ace"):
        assert one.figures[key].low > 0


def test_a_wider_level_gives_wider_intervals():
    rows = made_up(80, seed=4)
    (usual,), (wide,) = evaluated(rows), evaluated(rows, level=0.99)
    for key in ("ice", "wser", "f1", "nce"):
        assert wide.figures[key].low < usual.figures[key].low
        assert wide.figures[key].high > usual.figures[key].high


def test_a_seed_gives_the_same_numbers_again_and_another_seed_other_intervals():
    rows = made_up(80, seed=5)
    one, two, other = (evaluated(rows, seed=seed).to_dict() for seed in (3, 3, 4))
    assert one == two
    assert one["measures"]["ice"]["value"] == other["measures"]["ice"]["value"]
    assert one["measures"]["ice"]["low"] != other["measures"]["ice"]["low"]


@pytest.mark.parametrize("named", [True, False])
def test_the_order_of_rows_moves_nothing(named):
    rows = made_up(80, seed=6, weighted=True)
    rows = rows if named else [{key: value for key, value in row.items() if key != "id"} for row in rows]
    shuffled = Random(1).sample(rows, len(rows))
    assert evaluated(rows, by="noise").to_dict() == evaluated(shuffled, by="noise").to_dict()


def test_a_slice_is_what_its_rows_alone_give():
    rows = made_up(80, seed=7, weighted=True)
    whole, loud, quiet = evaluated(rows, by="noise")
    assert [one.part for one in (whole, loud, quiet)] == [None, "noise=loud", "noise=quiet"]
    assert loud.name == "system [noise=loud]"
    for one in (loud, quiet):
        (alone,) = evaluated([row for row in rows if f"noise={row['noise']}" == one.part])
        assert {**one.to_dict(), "slice": None} == {**alone.to_dict(), "slice": None}


def test_rows_without_a_value_are_a_slice_of_their_own():
    rows = made_up(12, seed=8)
    del rows[0]["noise"]
    assert [one.part for one in evaluated(rows, by="noise")] == [
        None,
        "noise=(none)",
        "noise=loud",
        "noise=quiet",
    ]


def test_a_column_that_was_not_kept_cannot_be_sliced_by():
    with pytest.raises(DataError, match=r'there is no column "place" to slice by \(read the table with keep='):
        evaluated(made_up(12, seed=8), by="place")


def test_a_column_with_a_value_for_every_utterance_cannot_be_sliced_by():
    rows = [{**row, "noise": f"n{number}"} for number, row in enumerate(made_up(400, seed=8))]
    with pytest.raises(DataError, match='"noise" has 400 values, too many to slice by'):
        evaluated(rows, by="noise")


def test_each_dialogue_has_the_values_it_would_have_alone():
    rows = made_up(40, seed=9, weighted=True)
    (one,) = evaluated(rows)
    found = one.per_dialogue()
    assert found["dialogue"].to_list() == sorted({row["dialogue"] for row in rows})
    assert found["utterances"].to_list() == [TURNS] * 10
    for values in found.iter_rows(named=True):
        alone = nbest_values(table([row for row in rows if row["dialogue"] == values["dialogue"]]))
        for key in one.totals.measures:
            value = float("nan") if values[key] is None else values[key]
            assert value == pytest.approx(alone[key], rel=1e-9, abs=1e-12, nan_ok=True), key


def test_without_dialogues_each_utterance_has_values_of_its_own():
    rows = [{**row, "dialogue": None} for row in made_up(10, seed=10)]
    (one,) = evaluated(rows)
    assert not one.totals.clustered
    assert one.per_dialogue()["utterances"].to_list() == [1] * 10
    assert one.per_dialogue()["id"].to_list() == [row["id"] for row in rows]


def test_utterances_outside_any_dialogue_are_units_of_their_own():
    rows = made_up(12, seed=11)
    rows[5]["dialogue"] = rows[7]["dialogue"] = None
    (one,) = evaluated(rows)
    assert one.totals.units == 5
    assert one.per_dialogue()["utterances"].sum() == 12


def test_dialogues_whose_turns_are_alike_widen_the_interval():
    rows = made_up(40, seed=12)
    copies = [{**row, "id": f"{row['id']}.{copy}", "dialogue": row["id"]} for row in rows for copy in range(9)]
    (known,), (ignored,) = evaluated(copies), evaluated([{**row, "dialogue": None} for row in copies])
    width, too_narrow = (one.figures["ice"].high - one.figures["ice"].low for one in (known, ignored))
    assert width == pytest.approx(3 * too_narrow, rel=0.35)


def test_several_systems_are_evaluated_one_by_one_in_the_order_met():
    rows = [made_up(20, seed=seed, system=system) for seed, system in ((1, "b"), (2, "a"))]
    found = evaluate_nbest(table(*rows), settings=QUICK)
    assert [one.system for one in found] == ["b", "a"]
    assert found.to_dict()["systems"][1] == evaluate_nbest(table(rows[1]), settings=QUICK)[0].to_dict()


def test_hand_worked_values_of_one_utterance():
    hypotheses = [
        {"act": "inform(food=thai)", "confidence": 0.6},
        {"act": "inform(food=tie)", "confidence": 0.3},
    ]
    (one,) = evaluate_nbest(nbest([{"reference": "inform(food=thai)", "hypotheses": hypotheses}]), settings=QUICK)
    assert one.reference_items == 2
    assert one.given_out == pytest.approx(0.9)
    # inform at .9 and food=thai at .6 are right, food=tie at .3 is wrong
    assert one.figures["ice"].value == pytest.approx(-(log(0.9) + log(0.6) + log(0.7)) / 2)
    # one error in two items with .3, two deletions with the .1 that is left
    assert one.figures["wser"].value == pytest.approx((0.3 * 1 + 0.1 * 2) / 2)
    assert one.figures["ice"].low != one.figures["ice"].low  # one utterance has no spread


def test_plain_values_survive_json():
    found = evaluated(made_up(40, seed=13), by="noise").to_dict()
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_the_plain_values_say_what_they_depend_on():
    (one,) = evaluated(made_up(40, seed=14), floor=0.01, clip=1e-5)
    plain = one.to_dict()
    assert (plain["ice_floor"], plain["nce_clip"], plain["clustered_by_dialogue"]) == (0.01, 1e-5, True)
    assert plain["measures"]["nce"]["population"] == "all hypothesised items"
    assert plain["measures"]["nce_top"]["population"] == "items of the top hypothesis"
    assert plain["nothing_hypothesised"] == one.empty > 0
    read = parse_signature(plain["signature"], KINDS)
    assert (read.measure.floor, read.n) == (0.01, 40)


def test_the_table_has_a_row_for_every_figure_of_every_part():
    found = evaluated(made_up(40, seed=15), by="noise")
    frame = found.frame()
    assert frame.height == 3 * (len(OF_ACTS) + len(OF_ITEMS) + 1 + len(ICE_PARTS))
    ice = frame.filter(pl.col("measure") == "ice", pl.col("slice").is_null()).row(0, named=True)
    assert (ice["value"], ice["low"]) == (found[0].figures["ice"].value, found[0].figures["ice"].low)


@pytest.mark.parametrize(
    "rows",
    [
        [{"reference": [], "hypotheses": []}],
        [{"id": number, "reference": "", "hypotheses": []} for number in range(3)],
    ],
)
def test_where_there_is_no_item_at_all_nothing_is_defined_and_nothing_fails(rows):
    (one,) = evaluate_nbest(nbest(rows), settings=QUICK)
    undefined = {key for key, figure in figures_of(one).items() if isnan(figure.value)}
    assert undefined == figures_of(one).keys() - {"ace", "act_error", "act_wser", "act_oracle"}
    assert one.parts["missing"].why == one.figures["item_ece"].why == NO_ITEM
    assert one.reliability is None
    assert {key for key, value in nbest_values(nbest(rows)).items() if isnan(value)} == undefined


def test_a_slice_without_any_item_is_undefined_beside_one_with_values():
    rows = made_up(12, seed=16)
    rows += [{"id": "x", "noise": "void", "reference": [], "hypotheses": []}]
    whole, *_, nothing = evaluated(rows, by="noise")
    assert nothing.part == "noise=void"
    assert nothing.to_dict()["measures"]["ice"] == {
        "value": None,
        "low": None,
        "high": None,
        "why": "no reference holds any item",
    }
    assert whole.figures["ice"].value > 0


def test_empty_references_alone_give_costs_but_no_rate():
    hypotheses = [{"items": ["a"], "confidence": 0.5}]
    (one,) = evaluate_nbest(nbest([{"reference": [], "hypotheses": hypotheses}] * 3), settings=QUICK)
    assert isnan(one.figures["ice"].value)
    assert one.figures["ice"].why == "no reference holds any item"
    assert one.reference_items == 0


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0])
def test_a_level_that_is_no_share_is_refused(level):
    with pytest.raises(UsageError, match="level"):
        evaluated(made_up(4, seed=0), level=level)


def test_the_surest_hypothesis_is_an_answer_that_may_be_withheld():
    lists = table(made_up(80, seed=17))
    (one,) = evaluate_nbest(lists, settings=QUICK)
    assert one.top.n == 80
    assert one.top.withheld == one.empty
    assert one.top.figures["auroc"].value == one.figures["roc_auc"].value


def test_items_at_the_floor_cost_what_the_floor_says():
    lists = nbest([{"id": number, "reference": ["a"], "hypotheses": []} for number in range(4)])
    for floor in (1e-3, exp(-2)):
        (one,) = evaluate_nbest(lists, floor=floor, replicates=50)
        assert one.figures["ice"].value == one.parts["missing"].value == pytest.approx(-log(floor))
        assert one.figures["ice_floored_share"].value == 1


def test_progress_is_told_for_every_part():
    told = []
    evaluate_nbest(
        nbest(made_up(8, seed=18), reading=KEPT),
        by="noise",
        settings=QUICK,
        step=lambda what, done, of: told.append((what, done, of)),
    )
    assert told == [("evaluating system", place, 3) for place in range(3)]


def test_the_order_of_hypotheses_that_do_not_tie_moves_no_value():
    lists = simulated(20, seed=1)
    backwards = lists.start[1:, None] - 1 - np.arange(3)
    turned = type(lists)(
        lists.frame,
        lists.sets,
        lists.reference,
        lists.start,
        lists.act[backwards.ravel()],
        lists.confidence[backwards.ravel()],
    )
    assert nbest_values(turned) == pytest.approx(nbest_values(lists), rel=1e-12)
