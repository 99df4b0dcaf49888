"""Domains, simulated users, channels and what `simulate` gives."""

import json
import random
import sys
import tomllib
from dataclasses import replace
from importlib.resources import files

import polars as pl
import pytest

import demur
from demur.core.acts import parse_acts, thomson_items
from demur.errors import DataError, UsageError
from demur.lab.dialogue.channel import ActConfusion, ChannelSettings, density
from demur.lab.dialogue.domain import WELCOME, Prompt, TaskDomain
from demur.lab.dialogue.managers import (
    NAMES,
    HandcraftedPolicy,
    LinearPolicy,
    TopState,
    manager_maker,
    policy_of,
)
from demur.lab.dialogue.simulate import (
    Condition,
    SimulationPlan,
    batch_rows,
    concept_efficiency,
    simulate_plan,
    user_of,
)
from demur.lab.dialogue.user import new_user
from demur.lab.jobs import simulate
from demur.outcome.table import DialogueReading
from demur.outcome.table import dialogues as dialogues_of

TOWN = TaskDomain.read("town")


def document():
    return tomllib.loads((files("demur.corpora") / "town" / "town.toml").read_text(encoding="utf-8"))


def test_the_grammar_understands_whatever_users_say():
    rng = random.Random(4)
    for number in range(25):
        user = new_user(TOWN, random.Random(number))
        prompt, said = WELCOME, 0
        manager = manager_maker("state-machine", TOWN)(TOWN)
        while said < 12:
            acts = user.reply(prompt)
            assert thomson_items(parse_acts(TOWN.grammar.parse(TOWN.express(acts, rng)))) == thomson_items(acts)
            prompt, said = manager.answer([(acts, 1.0)]), said + 1


def test_prompts_are_written_as_acts_and_read_back():
    prompts = [
        WELCOME,
        Prompt("request", slot="area"),
        Prompt("confirm", slot="food", value="thai"),
        Prompt("offer", venue=3),
        Prompt("give", venue=3, fields=("phone", "area")),
        Prompt("cannot", wanted=(("food", "thai"), ("area", "north"))),
        Prompt("bye"),
    ]
    assert [TOWN.prompt_of("&".join(map(str, TOWN.acts_of(one)))) for one in prompts] == prompts
    assert all(TOWN.prompt_text(one) for one in prompts)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"slots": {}}, r"does not fit|must have"),
        ({"title": 3}, "does not fit: Expected `str`"),
        ({"colour": "red"}, "unknown field `colour`"),
        ({"prompts": {}}, "must have welcome, request"),
        ({"database": {"columns": ["name"], "rows": [["a"]]}}, "must have a column for each slot"),
    ],
)
def test_a_domain_that_does_not_fit_is_refused(change, said):
    with pytest.raises(DataError, match=said):
        TaskDomain.of({**document(), **change})


def test_a_database_with_a_value_of_no_slot_is_refused_with_its_row():
    broken = document()
    broken["database"]["rows"][4][2] = "norht"
    with pytest.raises(DataError, match=r"row 5: area.*norht.*north"):
        TaskDomain.of(broken)


def test_confidences_of_good_quality_are_right_as_often_as_they_say_and_the_best_wrong_as_asked():
    acts = parse_acts("inform(food=thai, area=north)")
    channel, rng = ActConfusion(TOWN, ChannelSettings(noise=0.3)), random.Random(1)
    lists = [channel.recognise(acts, "", rng).hypotheses for _ in range(3000)]
    wrong = sum(one[0][0] != acts for one in lists) / len(lists)
    assert wrong == pytest.approx(0.3, abs=0.035)
    for low, high in ((0.2, 0.4), (0.6, 0.8), (0.8, 1.0)):
        pairs = [(share, one == acts) for hyps in lists for one, share in hyps if low <= share < high]
        assert sum(right for _, right in pairs) / len(pairs) == pytest.approx(
            sum(s for s, _ in pairs) / len(pairs), abs=0.06
        )
    assert all(len({one for one, _ in hyps}) == len(hyps) <= 5 for hyps in lists)
    assert all(sum(share for _, share in hyps) <= 1 for hyps in lists)


def test_qualities_keep_the_order_of_a_list_and_change_its_confidences():
    acts = parse_acts("inform(food=thai)")

    def first(**settings):
        return (
            ActConfusion(TOWN, ChannelSettings(noise=0.4, **settings)).recognise(acts, "", random.Random(5)).hypotheses
        )

    good, flat, bold, top = (first(confidences=name) for name in ("good", "flat", "overconfident", "good-tp1"))
    assert [one for one, _ in good] == [one for one, _ in flat]
    assert len({share for _, share in flat}) == 1
    assert bold[0][1] > good[0][1]
    assert top == [(good[0][0], 1.0)]
    assert sum(density(0.4, 1)) == pytest.approx(3.0)
    with pytest.raises(UsageError, match=r"avgword.*need `channel` words"):
        ChannelSettings(confidences="avgword")


def test_a_goal_may_change_and_a_second_choice_takes_the_place_of_a_wish_that_nothing_meets():
    users = [user_of(TOWN, 0, number) for number in range(200)]
    second = [user for user in users if user.second_choice is not None]
    assert second
    assert all(not TOWN.matches(user.wanted) for user in second)
    assert any(user.change is not None for user in users)
    assert all(TOWN.matches(user.wanted) for user in users if user.second_choice is None)


HANDCRAFTED = ("state-machine", "belief", "perfect")


@pytest.fixture(scope="module")
def small():
    return simulate("town", managers=HANDCRAFTED, noise=(0.0, 0.3), dialogues=40)


def test_with_perfect_input_every_manager_succeeds(small):
    clean = small.dialogues.filter((pl.col("noise") == 0) | (pl.col("manager") == "perfect"))
    assert clean["success"].all()


def test_a_simulation_is_the_same_in_batches_kept_and_begun_again_by_two_processes(tmp_path, small):
    plan = SimulationPlan("town", (Condition("state-machine", ChannelSettings(noise=0.3)),), 20, batch=7)
    begun = simulate_plan(plan, keep=tmp_path / "kept", processes=1)
    dialogues, turns = begun.dialogues, begun.turns
    for part in sorted((tmp_path / "kept").glob("*.parquet"))[::2]:
        part.unlink()
    again = simulate_plan(plan, keep=tmp_path / "kept", processes=2)
    assert again.turns.equals(turns)
    assert again.dialogues.equals(dialogues)
    names = turns["dialogue"].unique(maintain_order=True)
    assert small.turns.filter(pl.col("dialogue").is_in(names.implode())).equals(turns)
    with pytest.raises(DataError, match="with other options"):
        simulate_plan(replace(plan, seed=1), keep=tmp_path / "kept")


def test_the_tables_are_read_by_the_other_questions(small):
    lists = demur.read_nbest(small.turns)
    answers = demur.read(small.answers)
    dialogues = dialogues_of(small.dialogues, reading=DialogueReading(outcome="success"))
    assert len(lists) == len(answers) == small.turns.height
    assert len(dialogues) == 3 * 2 * 40
    rewards = small.dialogues.select(20.0 * pl.col("success").cast(pl.Int64) - pl.col("turns")).to_series()
    assert rewards.to_list() == small.dialogues["reward"].to_list()


def test_concept_efficiency_counts_what_was_understood_once():
    def turn(said, top):
        return {"reference": said, "hypotheses": [{"act": top}]}

    turns = [turn("inform(food=thai)", "inform(food=turkish)"), turn("inform(food=thai)", "inform(food=thai)")]
    assert concept_efficiency(turns) == 0.5
    assert concept_efficiency([*turns, turn("request(phone, addr)", "request(phone)")]) == 0.5


def test_a_manager_of_the_users_own_is_a_function_or_a_command(tmp_path):
    def mine(domain):
        known, said = {}, []

        def answer(hypotheses):
            state = TopState(domain, best=known)
            state.update([(parse_acts(act), share) for act, share in hypotheses], WELCOME)
            said.append(1)
            return f"request({domain.slots[len(said) % 3]})"

        return answer

    own = simulate("town", managers=mine, noise=(0.1,), dialogues=3)
    assert own.turns["prompt"].str.starts_with("request(").sum() > 0
    program = tmp_path / "manager.py"
    program.write_text(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    turn = json.loads(line)\n"
        "    print('request(area)' if turn['turn'] < 3 else 'bye()', flush=True)\n"
    )
    named = simulate("town", managers=(f"{sys.executable} {program}",), noise=(0.1,), dialogues=3)
    assert named.dialogues["turns"].to_list() == [3, 3, 3]
    with pytest.raises(UsageError, match="or a command that can be run"):
        simulate("town", managers=("no-such-program",), noise=(0.1,), dialogues=2)
    with pytest.raises(DataError, match=r"must be one act of a system.*dance"):
        simulate("town", managers=lambda _: lambda _: "dance()", noise=(0.1,), dialogues=2)


def test_policies_are_plain_json():
    for policy in (HandcraftedPolicy(0.7, 0.2), LinearPolicy({"offer": {"bias": 1.0}}, training={"seed": 1})):
        assert policy_of(json.loads(json.dumps(policy.to_dict()))) == policy
    with pytest.raises(DataError, match="must have a kind"):
        policy_of({"sure": 1})
    assert set(HANDCRAFTED) < set(NAMES)


@pytest.mark.parametrize("heard", ["negate()", "affirm()"])
def test_the_same_question_upon_the_same_words_is_asked_once(heard):
    manager = manager_maker("state-machine", TOWN)(TOWN)
    said = [parse_acts("inform(type=hotel)"), *[parse_acts(heard)] * 20]
    steps = [(acts, manager.answer([(acts, 1.0)])) for acts in said]
    questions = [(acts, prompt) for acts, prompt in steps if prompt.kind in ("again", "confirm")]
    assert len(set(questions)) == len(questions)


@pytest.mark.parametrize("manager", ["state-machine", "belief"])
def test_users_whose_calls_once_went_in_circles_are_served(manager):
    condition = Condition(manager, ChannelSettings())
    plan = SimulationPlan("town", (condition,), 1500, seed=5)
    for number in (515, 683, 1107, 1181, 1382):
        _, ((dialogue),) = batch_rows(plan, condition, range(number, number + 1))
        assert dialogue["success"]
