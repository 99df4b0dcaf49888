import json
import math
from dataclasses import replace

import polars as pl
import pytest

from demur.errors import DataError
from demur.lab.nbest_experiments import RecordedStudy, SentenceCache, condition_table, length_sweep, scorer_table
from demur.nbest_lists.asr.scorers import Hypothesiser
from demur.nbest_lists.evaluate import NBestSettings, evaluate_nbest
from demur.nbest_lists.reward import oracle_curves, reward_curves, rewards
from demur.nbest_lists.table import NBestReading, nbest, recorded

FLOOR_COST = -math.log(1e-3)
SAID = {"thai": "inform(food=thai)", "tie": "bye()", "hi": "hello()"}
HEARD = [
    {"text": "thai", "logprob": math.log(0.5)},
    {"text": "tie", "logprob": math.log(0.3)},
    {"text": "hi", "logprob": math.log(0.2)},
]


def utterance(name, meant, *, dialogue="d1", noise="low", asr=HEARD, **others):
    row = {"id": name, "dialogue": dialogue, "noise": noise, "reference": [meant], "asr": asr}
    return {**row, "hypotheses": [{"items": ["bye"], "confidence": 0.5}], **others}


@pytest.fixture
def trial(tmp_path):
    """What makes a trial of rows; acts are one item each."""

    def of(rows, *, keep=("noise",), sentences=3):
        path = tmp_path / "heard.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        parse = SAID.__getitem__
        reading = NBestReading(items="dstc", keep=keep, hypothesise=Hypothesiser("const", parse))
        return RecordedStudy(
            recorded(path, reading=reading),
            SentenceCache(parse, "network", sentences),
            reading,
            NBestSettings(replicates=50),
        )

    return of


ROWS = [
    utterance("d1/1", "inform(food=thai)"),
    utterance("d1/2", "bye", noise="high"),
    utterance("d2/1", "hello", dialogue="d2"),
    utterance("d2/2", "request(addr)", dialogue="d2", noise="high"),
]


def test_items_of_the_trial_are_what_the_tests_think(trial):
    lists = trial(ROWS).lists("infev", kept=3)
    assert set(lists.sets.names) >= {"bye", "hello"}
    assert lists.systems == ("infev",)
    assert lists.given_out.tolist() == pytest.approx([1.0] * 4)


def test_scorers_share_sentences_and_oracle_and_differ_in_confidences(trial):
    table = scorer_table(trial(ROWS), scorers=("const", "infev", "infev-tp1"), kept=2)
    assert table.sentences == 2
    by_name = {one.system: one.figures for one in table.evaluations}
    assert list(by_name) == ["const", "infev", "infev-tp1"]
    # of four items two are said by the two sentences kept
    assert [by_name[name]["oracle"].value for name in ("const", "infev", "infev-tp1")] == [0.5, 0.5, 0.5]
    # const: each of the two acts at 1/2; infev: .5 and .3 of .8
    assert by_name["const"]["weighted_recall"].value == pytest.approx((0.5 + 0.5) / 4)
    assert by_name["infev"]["weighted_recall"].value == pytest.approx((0.625 + 0.375) / 4)
    wrong = 2 * (math.log(1 / 0.375) + math.log(1 / 0.625))
    right = math.log(1 / 0.625) + math.log(1 / 0.625) + math.log(1 / 0.375) + math.log(1 / 0.375)
    assert by_name["infev"]["ice"].value == pytest.approx((right + wrong + 2 * FLOOR_COST) / 4)
    frame = table.frame()
    assert set(frame.columns) == {"scorer", "n", "measure", "value", "low", "high"}
    assert [part["system"] for part in table.to_dict()["systems"]] == ["const", "infev", "infev-tp1"]


def test_conditions_go_from_the_worst_to_the_best_and_each_measure_says_whether_it_agrees(trial):
    table = condition_table(trial(ROWS), by="noise", few=1, many=3, values=None)
    assert [one.system for one in table.evaluations] == [
        "high infev 3",
        "low const-tp1 3",
        "low infev 1",
        "low infev 3",
    ]
    oracle = [one.figures["oracle"].value for one in table.evaluations]
    assert oracle == [0.5, 0.0, 0.5, 0.0], "keeping one act does not change what the list holds"
    assert not table.orders("oracle")
    assert table.to_dict()["orders_all_conditions"]["oracle"] is False
    with pytest.raises(DataError, match='no utterance has "loud" in noise'):
        condition_table(trial(ROWS), by="noise", few=1, many=3, values=("loud", "low"))


def test_a_tuned_scale_is_chosen_on_other_dialogues(trial):
    study = replace(trial(ROWS), scale="tuned")
    lists = study.lists("infev", kept=3)
    assert sorted(lists.frame["id"]) == sorted(row["id"] for row in ROWS)
    assert any("acoustic scale" in note and "of the other dialogues" in note for note in lists.notes)


def test_a_sweep_has_each_condition_at_each_length_easiest_first(trial):
    sweep = length_sweep(trial(ROWS), by="noise", scorer="const", kept=(1, 2, 3))
    oracle = {(row["condition"], row["kept"]): row["value"] for row in sweep.of("oracle").iter_rows(named=True)}
    assert oracle == {
        ("low", 1): 0.5,
        ("low", 2): 0.5,
        ("low", 3): 0.0,
        ("high", 1): 1.0,
        ("high", 2): 0.5,
        ("high", 3): 0.5,
    }
    assert sweep.frame()["condition"].unique(maintain_order=True).to_list() == ["low", "high"]
    assert sweep.to_dict()["rows"][0].keys() == {"condition", "kept", "measure", "value", "low", "high"}


def test_a_sweep_without_conditions_is_of_everything(trial):
    sweep = length_sweep(trial(ROWS, keep=()), by=None, scorer="const", kept=(1, 3))
    assert sweep.of("oracle").select("condition", "kept", "value").rows() == [("all", 1, 0.75), ("all", 3, 0.25)]


def test_a_sweep_whose_ice_is_undefined_somewhere_still_has_all_rows(trial):
    rows = [*ROWS, utterance("d3/1", "x", dialogue="d3", noise="none") | {"reference": []}]
    sweep = length_sweep(trial(rows), by="noise", scorer="const", kept=(1, 2))
    values = {row["condition"]: row["value"] for row in sweep.of("ice").iter_rows(named=True)}
    assert math.isnan(values["none"])
    assert list(values)[-1] == "none"


def test_utterances_of_several_systems_are_not_mixed(trial):
    rows = [{**row, "system": system} for system in ("a", "b") for row in ROWS]
    with pytest.raises(DataError, match=r'the utterance "d1/1" is in several systems: a, b \(--where system=NAME'):
        trial(rows).lists("const", kept=3)


def lists(*rows):
    return evaluate_nbest(nbest(list(rows)), replicates=50)


def spoken(dialogue, *sure, system="guide", meant="a"):
    """A dialogue of utterances that mean one item, understood with these confidences."""
    reference = [meant] if meant else []
    return [
        {
            "id": f"{dialogue}/{turn}",
            "dialogue": dialogue,
            "system": system,
            "reference": reference,
            "hypotheses": [{"items": ["a"], "confidence": confidence}],
        }
        for turn, confidence in enumerate(sure)
    ]


def test_a_reward_is_20_for_success_less_the_turns():
    told = pl.DataFrame({"dialogue": [1, 2, 3], "success": [True, False, None], "turns": [4, 9, 1]})
    assert rewards(told).rows() == [("1", "all", 16.0), ("2", "all", -9.0), ("3", "all", None)]


@pytest.mark.parametrize(
    "written",
    [["true", "false"], ["True", "False"], ["yes", "no"], ["1", "0"], [1, 0], [1.0, 0.0], [True, False]],
)
def test_success_may_be_written_in_many_ways(written):
    told = pl.DataFrame({"dialogue": ["x", "y"], "success": written, "turns": ["1", "2"]})
    assert rewards(told)["y"].to_list() == [19.0, -2.0]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"success": ["good"]}, 'dialogue "x": success must be true or false; got "good"'),
        ({"success": [2]}, 'dialogue "x": success must be true or false; got "2"'),
        ({"turns": ["many"]}, 'dialogue "x": turns must be a number; got "many"'),
        ({"dialogue": ["x", "x"], "success": [True] * 2, "turns": [1] * 2}, 'the dialogue "x" is there twice'),
    ],
)
def test_a_table_of_dialogues_with_a_fault_is_refused_with_the_dialogue(columns, said):
    table = {"dialogue": ["x"], "success": [True], "turns": [1], **columns}
    with pytest.raises(DataError, match=said):
        rewards(pl.DataFrame(table))


def test_a_table_of_dialogues_without_a_column_names_it_and_those_that_are_there():
    with pytest.raises(DataError, match="no column turns, manager; there are dialogue, success"):
        rewards(pl.DataFrame({"dialogue": ["x"], "success": [True]}), group="manager")


DIALOGUES = pl.DataFrame(
    {
        "dialogue": ["d1", "d2", "d3", "elsewhere"],
        "success": [True, False, True, True],
        "turns": [3, 5, 4, 1],
        "manager": ["x", "x", None, "x"],
    }
)


def test_rewards_are_held_against_the_measure_of_each_dialogue_by_group():
    evaluations = lists(*spoken("d1", 1.0, 0.5), *spoken("d2", 0.25), *spoken("d3", 0.5))
    smooths = reward_curves(evaluations, DIALOGUES, group="manager")
    assert (smooths.x, smooths.y, smooths.by, smooths.unit, smooths.left_out) == (
        "ice",
        "reward",
        "manager",
        "dialogue",
        0,
    )
    assert [(curve.name, curve.n) for curve in smooths.curves] == [("x", 2), ("(none)", 1)]
    points = {name: (x, y) for _, name, x, y in smooths.dialogues.iter_rows()}
    assert points["d1"] == (pytest.approx(math.log(2) / 2), 17.0)
    assert points["d2"] == (pytest.approx(math.log(4)), -5.0)
    assert points["d3"] == (pytest.approx(math.log(2)), 16.0)
    assert smooths.to_dict()["dialogues"] == 3
    assert set(smooths.frame()["group"]) == {"x", "(none)"}


def test_a_dialogue_in_which_nothing_is_meant_is_left_out_and_counted():
    smooths = reward_curves(lists(*spoken("d1", 0.5), *spoken("d2", 0.5, meant="")), DIALOGUES, group=None)
    assert (smooths.dialogues.height, smooths.left_out) == (1, 1)
    with pytest.raises(DataError, match="ice or reward is undefined in every dialogue"):
        reward_curves(lists(*spoken("d1", 0.5, meant="")), DIALOGUES, group=None)


def test_rewards_need_dialogues_that_the_table_knows_each_of_one_system():
    with pytest.raises(DataError, match="no dialogue of the lists is in the table"):
        reward_curves(lists(*spoken("d9", 0.5)), DIALOGUES, group=None)
    with pytest.raises(DataError, match="the lists name no dialogues"):
        reward_curves(lists(*(row | {"dialogue": None} for row in spoken("d1", 0.5))), DIALOGUES, group=None)
    with pytest.raises(DataError, match='the dialogue "d1" is in the lists of several systems: a, b'):
        reward_curves(lists(*spoken("d1", 0.5, system="a"), *spoken("d1", 0.5, system="b")), DIALOGUES, group=None)
    apart = lists(*spoken("d1", 0.5, system="a"), *spoken("d2", 0.5, system="b"))
    assert reward_curves(apart, DIALOGUES, group=None).dialogues.height == 2


def test_the_oracle_is_held_against_the_ice_by_system():
    rows = [*spoken("d1", 1.0, system="a"), *spoken("d2", 0.5, system="a"), *spoken("d1", 0.5, system="b", meant="c")]
    smooths = oracle_curves(lists(*rows))
    points = {(group, name): (x, y) for group, name, x, y in smooths.dialogues.iter_rows()}
    assert points[("a", "d1")] == (0.0, 0.0)
    assert points[("a", "d2")] == (0.0, pytest.approx(math.log(2)))
    assert points[("b", "d1")] == (1.0, pytest.approx(math.log(2) + FLOOR_COST))
    assert [curve.name for curve in smooths.curves] == ["a", "b"]


def test_without_dialogues_the_oracle_is_that_of_utterances():
    rows = [row | {"dialogue": None} for row in spoken("d1", 1.0, 0.5)]
    smooths = oracle_curves(lists(*rows))
    assert (smooths.unit, smooths.dialogues.height) == ("utterance", 2)


@pytest.mark.parametrize(
    "make", [scorer_table, lambda one, **_: length_sweep(one, by=None, scorer="const", kept=(1, 2))]
)
def test_results_of_experiments_show_themselves(trial, make):
    result = make(trial(ROWS), scorers=("const", "infev"))
    assert result._repr_html_().startswith("<")
    assert result.chart().to_dict()
    assert json.dumps(result.to_dict())


def test_curves_show_themselves():
    smooths = reward_curves(lists(*spoken("d1", 1.0), *spoken("d2", 0.5)), DIALOGUES, group="manager")
    assert "manager x" in smooths._repr_html_()
    assert smooths.chart(title="mine").to_dict()
