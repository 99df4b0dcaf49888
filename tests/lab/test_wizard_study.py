import math
import random

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.errors import UsageError
from demur.lab import wizards
from demur.lab.corpora import wizards as wizards_of_corpora
from demur.lab.wizards import (
    BUNDLED,
    CALLERS_DIFFER,
    COMBINATIONS,
    COST,
    GOLD,
    SYSTEMS,
    WIZARDS_DIFFER,
    completed,
    completion,
    crossing,
    guide_turns,
    lesion_effects,
    lesion_mass,
    lesion_truth,
    shifted,
    simulate,
    simulate_lesions,
    true_complexity,
    true_mass,
    truth,
    wizard_turns,
    write,
)

RATES = np.linspace(0, 1, 101)
PERFORMERS = (GOLD, *SYSTEMS)
each_performer = pytest.mark.parametrize("performer", PERFORMERS)
each_combination = pytest.mark.parametrize("components", COMBINATIONS, ids=lambda names: "+".join(names) or "none")


# a slow twin that draws every word


class Line:
    """Words that are wrong with a probability, each drawn on its own."""

    def __init__(self, wrong, chance):
        self.wrong = wrong
        self.chance = chance

    def right(self, words):
        """How many of so many words are right."""
        return sum(self.chance.random() >= self.wrong for _ in range(words))

    def happens(self, probability):
        return self.chance.random() < probability


def plain_wizard(wer, skill, chance):
    """True, False, or None for every turn with a wizard: the slot is filled, lost, or asked for again."""
    telling = wizards.ATTENTION * (1 - wer**wizards.TELLING * (1 - wizards.BY_SOUND))
    understood = 1 / (1 + math.exp(-(math.log(telling / (1 - telling)) + skill)))
    while True:
        if chance.random() < understood:
            yield True
        elif chance.random() < wizards.ACTED_ON:
            yield False
        else:
            yield None


def plain_guide(components, line):
    """The same with the guide, for one slot after another; every `yield` is a turn."""
    while True:
        trouble, outcome = 0, None
        while outcome is None:
            spelt = "spell" in components and trouble >= 2
            right = line.right(wizards.SPELT) >= 1 if spelt else line.right(3) >= 2
            if "confirm" in components:
                yield None
                yes = right if line.right(wizards.REPLY) else line.happens(wizards.TAKEN_FOR_YES)
                outcome = right if yes else None
                trouble = 2
            else:
                bold = wizards.BOLDNESS * line.wrong**2
                outcome = right if line.happens(wizards.SURE if right else bold) else None
                trouble += 1
            yield outcome


def plain_dialogue(turns, chance):
    patience = chance.choices(list(wizards.PATIENCE), weights=list(wizards.PATIENCE.values()))[0]
    filled = 0
    for _ in range(patience):
        outcome = next(turns)
        if outcome is False:
            return False
        filled += outcome is True
        if filled == wizards.SLOTS:
            return True
    return False


def plain_share(performer, wer, n, seed):
    """The share of tasks completed in so many dialogues, each with a person of its own."""
    chance = random.Random(seed)
    done = 0
    for _ in range(n):
        if performer == GOLD:
            turns = plain_wizard(wer, chance.gauss(0, WIZARDS_DIFFER), chance)
        else:
            odds = (1 - wer) / wer * math.exp(chance.gauss(0, CALLERS_DIFFER))
            turns = plain_guide(performer, Line(1 / (1 + odds), chance))
        done += plain_dialogue(turns, chance)
    return done / n


@pytest.mark.parametrize("wer", [0.1, 0.35, 0.6, 0.8])
@pytest.mark.parametrize("performer", [GOLD, *COMBINATIONS], ids=lambda who: who if who == GOLD else "+".join(who))
def test_the_truth_is_what_dialogues_played_word_by_word_come_to(performer, wer):
    n = 1500
    exact = float(truth(GOLD, wer) if performer == GOLD else lesion_truth(performer, wer))
    share = plain_share(performer, wer, n, seed=11)
    assert abs(share - exact) < 4 * math.sqrt(exact * (1 - exact) / n)


@each_combination
def test_dialogues_played_all_at_once_come_to_the_exact_chance(components):
    n = 20_000
    turns = guide_turns(components, np.full(n, 0.45))
    exact = float(completion(turns[0]))
    share = completed(turns, np.random.default_rng(3)).mean()
    assert abs(share - exact) < 4 * math.sqrt(exact * (1 - exact) / n)


# worked by hand


def test_the_guide_without_components_takes_a_slot_in_two_turns():
    # a word in two is wrong: 1/2 of the values heard right, .4 taken rightly, .5 x .8 x .25 = .1 wrongly, .5 repeated
    turns = guide_turns((), 0.5)
    assert completion(turns, slots=1, patience={2: 1.0}) == pytest.approx(0.4 + 0.5 * 0.4)
    assert completion(turns, slots=2, patience={3: 1.0}) == pytest.approx(0.16 + 2 * 0.16 * 0.5)


def test_a_wizard_who_hears_nothing_completes_by_sound_alone():
    understood = 0.99 * 0.21
    back = (1 - understood) * 0.76
    expected = understood**3 * (1 + 3 * back)
    assert completion(wizard_turns(1.0), patience={4: 1.0}) == pytest.approx(expected)


def test_a_mix_of_patience_is_the_mix_of_its_outcomes():
    turns = guide_turns(("spell",), 0.5)
    short, long = (float(completion(turns, patience={turn: 1.0})) for turn in (4, 9))
    assert completion(turns, patience={4: 0.25, 9: 0.75}) == pytest.approx(0.25 * short + 0.75 * long)


def test_without_errors_confirming_only_costs_turns():
    in_time = sum(share for turns, share in wizards.PATIENCE.items() if turns >= 2 * wizards.SLOTS)
    assert truth("B", 0.0) == pytest.approx(in_time)
    assert truth("A", 0.0) > truth("B", 0.0) + 0.08


def test_when_every_word_is_wrong_only_wizards_get_anywhere():
    assert [float(truth(name, 1.0)) for name in SYSTEMS] == [0.0, 0.0]
    assert 0.1 < truth(GOLD, 1.0) < 0.2


def test_patience_is_shared_out_among_all_callers():
    assert sum(wizards.PATIENCE.values()) == pytest.approx(1)


# properties


@given(st.floats(0, 1), st.floats(-3, 3), st.sampled_from(COMBINATIONS))
def test_what_may_follow_a_turn_has_probability_one(wer, person, components):
    guide = guide_turns(components, wer, person)
    assert (guide >= 0).all()
    reached = [wizards.ASK, wizards.REPEAT, wizards.SPELL, wizards.CONFIRM_RIGHT, wizards.CONFIRM_WRONG]
    np.testing.assert_allclose(guide[reached].sum(axis=-1), 1)
    assert wizard_turns(wer, person)[wizards.ASK].sum() == pytest.approx(1)


@given(st.floats(0, 1), st.floats(-3, 3), st.sampled_from(COMBINATIONS))
def test_chances_stay_between_none_and_certainty(wer, person, components):
    assert 0 <= completion(guide_turns(components, wer, person)) <= 1 + 1e-12
    assert 0 <= completion(wizard_turns(wer, person)) <= 1 + 1e-12


@given(st.floats(0, 1), st.floats(-3, 3), st.floats(0, 2))
def test_more_skill_and_clearer_speech_never_hurt(wer, person, more):
    assert completion(wizard_turns(wer, person + more)) >= completion(wizard_turns(wer, person)) - 1e-12
    for components in SYSTEMS.values():
        better, worse = (completion(guide_turns(components, wer, one)) for one in (person + more, person))
        assert better >= worse - 1e-12


@given(st.floats(0, 1), st.floats(-5, 5))
def test_shifting_back_and_forth_changes_nothing(probability, by):
    assert shifted(shifted(probability, by), -by) == pytest.approx(probability, abs=1e-9)


@each_performer
def test_completion_falls_with_every_step_of_the_word_error_rate(performer):
    shares = truth(performer, RATES)
    assert (np.diff(shares) < 1e-12).all()
    assert (np.diff(shares[10:91]) < 0).all()


@each_combination
def test_wizards_are_ahead_of_every_combination_at_every_rate(components):
    assert (truth(GOLD, RATES) - lesion_truth(components, RATES) > 0.005).all()


# the shape of the figures


def test_the_gold_standard_stays_near_the_corner_as_in_figure_2():
    assert (truth(GOLD, [0.0, 0.2, 0.4]) > 0.95).all()
    assert truth(GOLD, 0.8) == pytest.approx(0.65, abs=0.03)
    assert truth(GOLD, 1.0) == pytest.approx(0.15, abs=0.03)


def test_the_systems_cross_once_as_in_figure_3():
    lead = truth("A", RATES[5:96]) - truth("B", RATES[5:96])
    assert (np.diff(np.sign(lead)) != 0).sum() == 1
    assert 0.35 < crossing() < 0.4
    assert truth("A", crossing()) == pytest.approx(float(truth("B", crossing())), abs=1e-9)


def test_each_system_has_its_range_by_a_clear_margin():
    assert truth("A", 0.1) - truth("B", 0.1) > 0.08
    assert truth("B", 0.6) - truth("A", 0.6) > 0.15


@each_performer
def test_mass_is_the_area_between_the_curves(performer):
    fine = np.linspace(0, 1, 801)
    area = np.trapezoid(truth(GOLD, fine) - truth(performer, fine), fine)
    assert true_mass(performer) == pytest.approx(area, abs=1e-6)


def test_complexity_is_the_area_above_the_wizards():
    fine = np.linspace(0, 1, 801)
    assert true_complexity() == pytest.approx(1 - np.trapezoid(truth(GOLD, fine), fine), abs=1e-6)


def test_the_lesion_study_has_the_two_systems_as_its_extremes():
    assert lesion_mass(frozenset()) == true_mass("A")
    assert lesion_mass(frozenset({"confirm", "spell"})) == true_mass("B")


def test_spelling_helps_mostly_where_confirming_finds_the_error():
    alone = lesion_mass(frozenset({"spell"})) - lesion_mass(frozenset())
    with_confirm = lesion_mass(frozenset({"confirm", "spell"})) - lesion_mass(frozenset({"confirm"}))
    effects = lesion_effects()
    assert with_confirm < 2 * alone < 0
    assert effects["confirm × spell"] == pytest.approx(with_confirm - alone)
    assert effects["spell"] == pytest.approx((with_confirm + alone) / 2)
    assert effects["confirm × spell"] < -0.05


def test_the_truth_has_the_shape_of_what_is_asked():
    assert truth("A", 0.3).shape == ()
    assert truth("A", np.zeros((2, 3))).shape == (2, 3)


# faults


def test_an_unknown_performer_is_refused_with_those_there_are():
    with pytest.raises(UsageError, match='performers wizards, A, B; got "C"'):
        truth("C", 0.1)


def test_an_unknown_component_is_refused_with_those_there_are():
    with pytest.raises(UsageError, match='components confirm, spell; got "gesture"'):
        lesion_truth({"gesture"}, 0.1)


@pytest.mark.parametrize("wer", [-0.1, 1.1, math.nan])
def test_rates_outside_zero_to_one_are_refused(wer):
    with pytest.raises(UsageError, match="from 0 to 1"):
        truth("A", [0.5, wer])


# simulated studies


def expected(performer, trials):
    """The true share at the rate of each trial; rates have three decimals, so most come up again."""
    rates, place = np.unique(trials["wer"].to_numpy(), return_inverse=True)
    return truth(performer, rates)[place]


def test_a_study_has_sixteen_wizards_and_sixteen_callers_of_both_systems():
    study = simulate(1)
    sizes = study.group_by("performer", "role", "subject").len()
    assert sizes["len"].unique().to_list() == [30]
    assert sizes.group_by("performer").len().sort("performer").rows() == [("A", 16), ("B", 16), ("wizards", 16)]
    systems = study.filter(role="system")
    assert set(systems.filter(performer="A")["subject"]) == set(systems.filter(performer="B")["subject"])
    assert study.filter(role="gold")["performer"].unique().to_list() == [GOLD]
    assert study["completed"].unique().sort().to_list() == [0, 1]


def test_a_lesion_study_has_every_caller_in_every_combination():
    study = simulate_lesions(1)
    calls = study.filter(role="system").group_by("subject", "components").len()
    assert calls.height == 16 * 4
    assert calls["len"].unique().to_list() == [20]
    assert set(calls["components"]) == {"none", "confirm", "spell", "confirm+spell"}
    assert study.filter(role="gold").height == 16 * 30
    assert study.filter(role="gold")["components"].null_count() == 480


def test_every_person_has_trials_over_the_whole_range():
    sorted_rates = simulate(2).sort("performer", "subject", "wer")["wer"].to_numpy().reshape(-1, 30)
    strata = np.arange(30) / 30
    assert (sorted_rates >= strata - 0.0005).all()
    assert (sorted_rates <= strata + 1 / 30 + 0.0005).all()


def test_the_same_seed_gives_the_same_study_and_another_another():
    assert simulate(7).equals(simulate(7))
    assert not simulate(7).equals(simulate(8))
    assert not simulate(7).filter(role="gold").equals(simulate_lesions(7).filter(role="gold"))


def test_a_study_can_be_as_small_as_wanted():
    study = simulate(1, wizards=2, callers=3, trials=4)
    assert study.group_by("performer").len().sort("performer").rows() == [("A", 12), ("B", 12), ("wizards", 8)]


@each_performer
def test_many_persons_together_come_to_the_truth(performer):
    trials = simulate(4, wizards=300, callers=300, trials=20).filter(performer=performer)
    by_person = trials.with_columns(expected=expected(performer, trials)).group_by("subject")
    excess = by_person.agg((pl.col("completed") - pl.col("expected")).mean())["completed"].to_numpy()
    assert abs(excess.mean()) < 4 * excess.std() / math.sqrt(len(excess))


def test_persons_differ_by_more_than_chance():
    trials = simulate(4, wizards=400, callers=400, trials=30).filter(performer=GOLD)
    by_person = trials.with_columns(expected=expected(GOLD, trials)).group_by("subject")
    excess = by_person.agg(
        (pl.col("completed") - pl.col("expected")).sum().alias("excess"),
        (pl.col("expected") * (1 - pl.col("expected"))).sum().alias("variance"),
    )
    assert (excess["excess"] ** 2).sum() / excess["variance"].sum() > 1.2


# the study that comes with the package


def test_the_shipped_study_is_made_again_byte_by_byte(tmp_path):
    write(tmp_path)
    for name in ("trials.csv", "lesions.csv", "cost.csv"):
        assert (tmp_path / name).read_bytes() == (wizards_of_corpora().folder / name).read_bytes()


def test_the_shipped_study_reads_back_as_it_was_simulated():
    study = wizards_of_corpora()
    assert study.trials.equals(simulate(BUNDLED))
    assert study.lesions.equals(simulate_lesions(BUNDLED))
    assert study.cost.rows() == [(*point, "thousand dollars") for point in COST]


def test_the_cost_rises_ever_faster_over_the_whole_range():
    performance, amount = np.array(COST).T
    assert (performance[0], performance[-1]) == (0, 1)
    assert (np.diff(np.diff(amount) / np.diff(performance)) > 0).all()
