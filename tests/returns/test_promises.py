import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import binom

from demur.core.stats.promises import EXACT, STARTS, ReturnRules
from demur.core.stats.resampling import Rows, Sample
from demur.core.stats.sweep import Sweep
from demur.errors import UsageError
from demur.returns import words
from demur.returns.tally import tally_sample
from demur.returns.threshold import (
    aim,
    cross_fitted_cost,
    threshold_by_cost,
    threshold_by_limit,
    threshold_by_nonreturn,
    threshold_by_risk,
)
from reference import promises as plain
from reference.rows import PROBABILITIES, Row, arrays, tables
from reference.tallies import tally_of

WEIGHTS = st.sampled_from([1, 1, 2, 3])
LIMITS = st.sampled_from(["error", "risk", "nonreturn"])
TIES = st.sampled_from(["together", "randomise"])
HEAPED = Rows.of([0.5] * 40 + [0.9] * 60, [False] * 30 + [True] * 10 + [False] * 10 + [True] * 50)
"""A hundred inputs: 40 say .5, 30 of them wrong, and 60 say .9, 10 of them wrong."""


def drawn(choice):
    return None if choice.randomise is None else (choice.randomise.upper, choice.randomise.lower)


@pytest.mark.parametrize(
    ("of", "most", "ends", "probability", "nonreturn", "error"),
    [
        ("nonreturn", 0.2, (0.9, 0.5), 0.5, 0.2, 0.25),
        ("error", 0.25, (0.9, 0.5), 0.5, 0.2, 0.25),
        ("risk", 0.3, (0.9, 0.5), 0.44, 0.4 - 0.4 * 0.44, 0.1 + 0.3 * 0.44),
        ("error", 0.05, (math.nan, 0.9), 0.5, 0.7, 0.05),
        ("nonreturn", 0.7, None, None, 0.4, 0.1),
        ("risk", 0.1, None, None, 1.0, 0.0),
    ],
)
def test_draws_among_ties_worked_by_hand(of, most, ends, probability, nonreturn, error):
    """Risk: (10 + 30 p) / (60 + 40 p) <= .3 up to p = 8 / 18; no draw from .9 alone errs less than 1 in 6.

    At most 70 % withheld, returning half of those at .9 would err least, 5 %.
    """
    if of == "nonreturn" and most == 0.7:
        ends, probability, nonreturn, error = (math.nan, 0.9), 0.5, 0.7, 0.05
    choice = threshold_by_limit(Sample(HEAPED), of, most, ties="randomise")
    assert drawn(choice) == (None if ends is None else pytest.approx(ends, nan_ok=True))
    assert (choice.nonreturn, choice.error) == (pytest.approx(nonreturn), pytest.approx(error))
    shown = choice.to_dict()
    json.dumps(shown, allow_nan=False)
    if probability is not None:
        assert shown["randomise"]["probability"] == pytest.approx(probability)
        assert not choice.returns_nothing


@given(tables(PROBABILITIES, weights=WEIGHTS, largest=10), LIMITS, st.integers(0, 30), TIES)
def test_a_limit_in_the_sample_is_kept_as_by_going_through_every_rule(rows, of, thirtieths, ties):
    most = Fraction(2 * thirtieths + 1, 61)
    floor = plain.rate(rows, plain.rules(rows, ties)[0], "nonreturn")
    assume(of != "nonreturn" or floor <= most)
    expected = plain.within_limit(rows, of, most, ties)
    choice = threshold_by_limit(Sample(arrays(rows)), of, float(most), ties=ties)
    assert (None if math.isnan(choice.threshold) else choice.threshold) == expected.upper
    assert (0 if choice.randomise is None else choice.randomise.probability) == pytest.approx(expected.probability)
    for name in ("nonreturn", "error"):
        assert getattr(choice, name) == pytest.approx(float(plain.rate(rows, expected, name)), abs=1e-12)
    risk = plain.rate(rows, expected, "risk")
    assert choice.risk == pytest.approx(math.nan if risk is None else float(risk), nan_ok=True)


@given(tables(PROBABILITIES, largest=12), LIMITS, st.floats(0.1, 0.9), TIES)
def test_the_printed_rule_reproduces_the_printed_rates(rows, of, most, ties):
    judged = arrays(rows)
    assume(of != "nonreturn" or (~judged.answered).mean() <= most)
    choice = threshold_by_limit(Sample(judged), of, most, ties=ties)
    upper = math.inf if math.isnan(choice.threshold) else float(choice.printed_threshold)
    chance = np.where(judged.confidence >= upper, 1.0, 0.0)
    if choice.randomise is not None:
        between = (judged.confidence >= float(choice.printed_lower)) & (judged.confidence < upper)
        chance = np.where(between, choice.randomise.probability, chance)
    chance = np.where(judged.answered, chance, 0.0)
    assert choice.nonreturn == pytest.approx(1 - chance.mean(), abs=1e-12)
    assert choice.error == pytest.approx((chance * ~judged.right).mean(), abs=1e-12)


def test_both_meanings_of_an_error_rate_are_said():
    choice = threshold_by_limit(Sample(HEAPED), "error", 0.1, name="guide")
    assert choice.risk == pytest.approx(10 / 60)
    assert choice.to_dict()["risk"] == pytest.approx(10 / 60)
    assert "returns a wrong answer to 10 %, 16.7 % of the answers returned; " in words.choice_effect(choice)[1]
    assert words.choice_rates(choice) == "wrong where marked: 10 % of all inputs, 16.7 % of the answers returned"


def test_an_accuracy_when_answering_is_a_risk_in_other_words():
    risk, accuracy = aim(max_risk=0.3), aim(min_accuracy_when_answering=0.7)
    one, two = (choose(Sample(HEAPED)) for choose in (risk, accuracy))
    assert one.threshold == two.threshold == 0.9
    assert two.rule == "at least 0.7 of the answers returned right in this sample (no guarantee)"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "got none"),
        ({"max_error": 0.1, "max_risk": 0.1}, "got `max_error` and `max_risk`"),
        ({"cost_ratio": 0.3, "delta": 0.1}, "`delta` goes with a limit"),
        ({"cost_ratio": 0.3, "ties": "randomise"}, "a threshold is cheapest"),
        ({"min_accuracy_when_answering": 1.2}, r"an accuracy lies in \[0, 1\]"),
    ],
)
def test_aims_that_do_not_go_together_are_refused(options, message):
    with pytest.raises(UsageError, match=message):
        aim(**options)


def test_a_promised_risk_worked_by_hand():
    """Right answers alone: with five starts .9^44 = .0097 is the first at or under .05 / 5, and 43 are too few.

    Forty-four answers are fewer than twice as many, so all starts are one, with all of delta: returning all of them,
    one of which is wrong, has a chance of .9^44 + 44 .1 .9^43 = .057 > .05, and without that error .0097.
    """
    right, wrong = (Rows.of(np.arange(44), flags) for flags in ([True] * 44, [False] + [True] * 43))
    choice = threshold_by_risk(Sample(right), 0.1, delta=0.05)
    assert choice.nonreturn == 0
    assert choice.guarantee.method == EXACT
    assert np.isnan(threshold_by_risk(Sample(wrong), 0.1, delta=0.05).threshold)
    assert np.isnan(threshold_by_risk(Sample(Rows.of(np.arange(43), [True] * 43)), 0.1, delta=0.05).threshold)


def test_a_promised_risk_says_from_how_many_starts_it_was_looked_for():
    rows = calibrated(np.random.default_rng(0), 500)
    method = threshold_by_risk(Sample(rows), 0.2, delta=0.1).guarantee.method
    assert method.startswith(f"fixed-sequence Learn-then-Test from {STARTS} starts at delta / {STARTS} each, exact")


@given(st.integers(0, 10_000), st.sampled_from([0.1, 0.2, 0.4]), st.sampled_from([1, 3]))
def test_a_promised_risk_is_that_of_the_plain_tests(seed, most, decimals):
    rng = np.random.default_rng(seed)
    confidence = np.round(rng.random(80), decimals)
    rows = [Row(float(s), bool(r)) for s, r in zip(confidence, rng.random(80) < 0.6 + confidence / 2, strict=True)]
    choice = threshold_by_risk(Sample(arrays(rows)), most, delta=0.1)
    assert (None if math.isnan(choice.threshold) else choice.threshold) == plain.risk_promised(rows, most, 0.1)


def broken_promises(draw, of, most, delta, is_broken, *, trials, seed, ties="together"):
    """How many of the samples give a rule that breaks its promise, and how many return anything."""
    rng, broken, returned = np.random.default_rng(seed), 0, 0
    for place in range(trials):
        choice = threshold_by_limit(Sample(draw(rng), seed=place), of, most, delta=delta, ties=ties)
        broken += (not choice.returns_nothing) and is_broken(choice)
        returned += not choice.returns_nothing
    return broken, returned


def calibrated(rng, n=300):
    confidence = rng.random(n)
    return Rows.of(confidence, rng.random(n) < confidence)


def test_a_promised_risk_fails_in_at_most_about_delta_of_the_samples():
    """Confidence s is uniform and right with chance s: of answers from t on (1 - t) / 2 are wrong."""
    broken, returned = broken_promises(
        lambda rng: calibrated(rng, 500), "risk", 0.2, 0.1, lambda choice: choice.threshold < 0.6, trials=200, seed=1
    )
    assert broken <= binom.ppf(0.999, 200, 0.1)
    assert returned > 150


def test_no_search_makes_a_risk_seem_lower_than_it_is_at_every_cutoff():
    """Every cutoff has a risk of a fifth, so a promise of less is broken by whatever is returned."""

    def hopeless(rng):
        return Rows.of(rng.random(200), rng.random(200) < 0.8)

    broken, _ = broken_promises(hopeless, "risk", 0.1999, 0.1, lambda _: True, trials=300, seed=2)
    assert broken <= binom.ppf(0.999, 300, 0.1)


LEVELS = np.array([0.5, 0.7, 0.9, 1.0])
SHARES = np.array([0.2, 0.3, 0.3, 0.2])


def verbal(rng, n=300):
    """Four confidences, each right as often as it says."""
    confidence = rng.choice(LEVELS, n, p=SHARES)
    return Rows.of(confidence, rng.random(n) < confidence)


def true_rates(choice):
    """Expected non-return rate, error rate and risk of a rule on new inputs."""
    upper = math.inf if math.isnan(choice.threshold) else choice.threshold
    chance = np.where(upper <= LEVELS, 1.0, 0.0)
    if choice.randomise is not None:
        chance[choice.randomise.lower == LEVELS] = choice.randomise.probability
    returned, wrong = (chance * SHARES).sum(), (chance * SHARES * (1 - LEVELS)).sum()
    return 1 - returned, wrong, wrong / returned


@pytest.mark.parametrize(("of", "most"), [("error", 0.1), ("risk", 0.12), ("nonreturn", 0.3)])
def test_a_draw_among_ties_keeps_its_promise_and_uses_it(of, most):
    place = {"nonreturn": 0, "error": 1, "risk": 2}[of]
    broken, returned = broken_promises(
        verbal, of, most, 0.1, lambda choice: true_rates(choice)[place] > most, trials=150, seed=3, ties="randomise"
    )
    assert broken <= binom.ppf(0.999, 150, 0.1)
    assert returned > 140


@given(st.integers(0, 10_000), st.sampled_from([0.05, 0.1, 0.2]))
def test_a_draw_never_returns_less_than_a_threshold_with_the_same_promise(seed, most):
    sample = Sample(verbal(np.random.default_rng(seed)), seed=seed)
    one, two = (threshold_by_limit(sample, "error", most, delta=0.1, ties=ties) for ties in ("together", "randomise"))
    assert two.nonreturn <= one.nonreturn + 1e-12


def test_a_promised_nonreturn_worked_by_hand():
    """Thirty answers, at most 10 % withheld: none may be, .9^30 = .042; one of thirty gives .18."""
    rows = Rows.of(np.arange(30), [False] * 10 + [True] * 20)
    choice = threshold_by_nonreturn(Sample(rows), 0.1, delta=0.05)
    assert (choice.threshold, choice.nonreturn) == (0, 0)
    assert choice.guarantee.upper == pytest.approx(1 - 0.05 ** (1 / 30))
    assert "With 95 % confidence, at most 10 % of all new inputs are withheld" in words.choice_sentences(choice)[-1]
    with pytest.raises(UsageError, match=r"30 inputs are too few to promise a non-return rate of at most 5 %"):
        threshold_by_nonreturn(Sample(rows), 0.05, delta=0.05)


def test_a_promised_nonreturn_fails_in_at_most_about_delta_of_the_samples():
    broken, returned = broken_promises(
        calibrated, "nonreturn", 0.3, 0.1, lambda choice: choice.threshold > 0.3, trials=200, seed=4
    )
    assert broken <= binom.ppf(0.999, 200, 0.1)
    assert returned == 200


def test_promises_over_dialogues_hold_for_risk_and_for_nonreturn():
    """Dialogues of 4 turns that are right or wrong together; of answers from .2 on 40 % are wrong."""

    def dialogues(rng):
        confidence = rng.random(400)
        right = np.repeat(rng.random(400) < confidence, 4)
        unit = np.repeat(np.arange(400), 4)
        return Rows(np.repeat(confidence, 4), right, np.ones(1600, bool), np.ones(1600), unit)

    for of, most, limit in (("risk", 0.4, 0.2), ("nonreturn", 0.3, None)):
        broken, returned = broken_promises(
            dialogues,
            of,
            most,
            0.1,
            lambda choice, limit=limit: choice.threshold < limit if limit else choice.threshold > 0.3,
            trials=60,
            seed=5,
        )
        assert broken <= binom.ppf(0.999, 60, 0.1)
        assert returned > 40


def two_groups(rng, n=300):
    """An easy and a hard group: of the hard one answers are right with half the chance."""
    confidence, hard = rng.random(n), rng.random(n) < 0.5
    right = rng.random(n) < np.where(hard, confidence / 2, confidence)
    return {name: Rows.of(confidence[side], right[side]) for name, side in (("easy", ~hard), ("hard", hard))}


def together(groups):
    return Rows.of(
        *(np.concatenate([getattr(one, part) for one in groups.values()]) for part in ("confidence", "right"))
    )


def test_a_promise_by_group_holds_for_every_group():
    """In the hard group the error rate from t on is (1 - t) - (1 - t^2) / 4; at most .15 from t = .8028 on."""
    rng, broken, returned, plainly = np.random.default_rng(6), 0, 0, 0
    for _ in range(150):
        groups = two_groups(rng)
        samples = {name: Sample(rows) for name, rows in groups.items()}
        whole = Sample(together(groups))
        choice = threshold_by_limit(whole, "error", 0.15, delta=0.1, groups=samples)
        t = choice.threshold
        broken += (1 - t) - (1 - t**2) / 4 > 0.15
        returned += not choice.returns_nothing
        plainly += threshold_by_limit(whole, "error", 0.15, delta=0.1).threshold < t
    assert broken <= binom.ppf(0.999, 150, 0.1)
    assert returned > 140
    assert plainly > 100


def test_a_promise_by_group_is_the_strictest_of_the_groups_promises():
    groups = two_groups(np.random.default_rng(7))
    samples = {name: Sample(rows) for name, rows in groups.items()}
    choice = threshold_by_limit(Sample(together(groups)), "error", 0.2, delta=0.1, groups=samples)
    alone = [threshold_by_limit(sample, "error", 0.2, delta=0.1) for sample in samples.values()]
    returned = together(groups).confidence >= choice.threshold
    strictest = together(groups).confidence >= max(one.threshold for one in alone)
    assert returned.sum() <= strictest.sum() + 1
    assert choice.groups[0].group == "hard"
    assert all(one.promised for one in choice.groups)


def test_groups_too_small_for_any_promise_are_named_and_left_out():
    """.9^20 = .12 > .05: twenty inputs can promise nothing of 10 %, whatever they show."""
    groups = {"many": Sample(Rows.of(np.arange(100), [True] * 100)), "few": Sample(Rows.of(np.arange(20), [True] * 20))}
    whole = Rows.of(np.concatenate([np.arange(100), np.arange(20)]), [True] * 120)
    choice = threshold_by_limit(Sample(whole), "error", 0.1, delta=0.05, groups=groups)
    assert {one.group: one.promised for one in choice.groups} == {"many": True, "few": False}
    assert words.choice_sentences(choice)[-1] == (
        "Too small for a promise even without an error, and left out of it: few (20 inputs)."
    )
    with pytest.raises(UsageError, match="no group has enough rows"):
        threshold_by_limit(Sample(whole), "error", 0.1, delta=0.05, groups={"few": groups["few"]})


def test_groups_have_exact_intervals_at_the_threshold():
    """The whole at .9: of 60 returned 10 are wrong; in each half 5 of 50 inputs, Clopper-Pearson .033 to .218."""
    halves = {name: Sample(Rows.of(HEAPED.confidence[k::2], HEAPED.right[k::2])) for name, k in (("a", 0), ("b", 1))}
    choice = threshold_by_limit(Sample(HEAPED), "error", 0.1, groups=halves)
    for group in choice.groups:
        assert (group.nonreturn, group.error.value, group.promised) == (0.4, 0.1, None)
        assert (group.error.low, group.error.high) == (pytest.approx(0.0333, abs=1e-4), pytest.approx(0.2181, abs=1e-4))
        assert group.risk.value == pytest.approx(5 / 30)
    with pytest.raises(UsageError, match="leave ties together"):
        threshold_by_limit(Sample(HEAPED), "error", 0.1, groups=halves, ties="randomise")


def test_rows_and_tallies_give_the_same_rules_and_promises():
    rows = verbal(np.random.default_rng(8), 400)
    halves = [Rows.of(rows.confidence[k::2], rows.right[k::2]) for k in (0, 1)]
    groups = [{str(k): Sample(half) for k, half in enumerate(halves)}]
    groups.append({str(k): tally_sample(tally_of(half)) for k, half in enumerate(halves)})
    memory, elsewhere = Sample(rows), tally_sample(tally_of(rows))
    for of, most in (("error", 0.1), ("risk", 0.15), ("nonreturn", 0.3)):
        for options in ({}, {"delta": 0.1}, {"ties": "randomise"}, {"ties": "randomise", "delta": 0.1}):
            one, two = (threshold_by_limit(sample, of, most, **options).to_dict() for sample in (memory, elsewhere))
            assert one == two
        one, two = (
            threshold_by_limit(sample, of, most, delta=0.1, groups=parts).to_dict()
            for sample, parts in zip((memory, elsewhere), groups, strict=True)
        )
        assert one == two
    assert threshold_by_cost(memory, 0.3).to_dict() == threshold_by_cost(elsewhere, 0.3).to_dict()


@given(tables(PROBABILITIES, smallest=10, largest=20), st.sampled_from([0.1, 0.35, 0.6]))
def test_a_cross_fitted_cost_is_that_of_each_part_at_the_cutoff_of_the_others(rows, ratio):
    sample = Sample(arrays(rows), seed=3)
    parts = sample.folds(10)
    sweep = sample.sweep
    assert parts.sum(axis=0).tolist() == [*sweep.right.tolist(), *sweep.wrong.tolist(), sweep.withheld]
    assert parts.sum(axis=1).max() - parts.sum(axis=1).min() <= 1
    assert cross_fitted_cost(sample, ratio).value == pytest.approx(plain.cross_fitted(parts.tolist(), ratio))


def test_a_cross_fitted_cost_keeps_dialogues_whole_and_needs_as_many_units_as_parts():
    rng = np.random.default_rng(9)
    unit = np.arange(120) // 4
    rows = Rows(rng.random(120), rng.random(120) < 0.7, np.ones(120, bool), np.ones(120), unit)
    assert set(Sample(rows).folds(10).sum(axis=1)) == {12.0}
    assert cross_fitted_cost(Sample(rows), 0.3) is not None
    assert cross_fitted_cost(Sample(Rows.of([0.1, 0.2], [True, False])), 0.3) is None


def test_a_threshold_chosen_on_noise_looks_cheaper_than_it_is():
    rng, gaps = np.random.default_rng(10), []
    for place in range(40):
        choice = threshold_by_cost(Sample(Rows.of(rng.random(60), rng.random(60) < 0.6), seed=place), 0.4)
        gaps.append(choice.cross_fit.value - choice.cost)
    assert np.mean(gaps) > 0.01
    assert "Cross-fitted, with each of 10 parts" in words.choice_sentences(choice)[2]


def test_where_every_answer_is_wrong_silence_is_the_advice():
    choice = threshold_by_cost(Sample(Rows.of(np.arange(20), [False] * 20)), 0.5, name="guide")
    why = "every answer is wrong, so returning nothing is cheapest"
    assert choice.to_dict()["why"] == why
    assert words.choice_sentences(choice)[0] == f"guide: return nothing. E{why[1:]} (cost ratio 0.5)."
    assert words.choice_title(choice) == f"guide: {why}"
    limited = threshold_by_limit(Sample(Rows.of(np.arange(20), [False] * 20)), "error", 0.1, name="guide")
    assert not limited.returns_nothing
    assert "No answer of this log is right, so none is lost by returning nothing." in words.choice_sentences(limited)


@pytest.mark.parametrize(
    ("of", "most", "n", "few"),
    [("error", 0.01, 298, True), ("error", 0.01, 299, False), ("risk", 0.02, 227, True), ("risk", 0.02, 228, False)],
)
def test_a_promise_that_no_log_of_this_size_could_make_needs_more_inputs(of, most, n, few):
    """By hand: .99^299 < .05 < .99^298, and of five starts .98^228 < .01 < .98^227."""
    right = Sample(Rows.of(np.linspace(0, 1, n), [True] * n))
    choice = threshold_by_limit(right, of, most, delta=0.05, name="guide")
    assert choice.too_few == few
    assert choice.returns_nothing == few or of == "risk"
    if few:
        assert f"{n} inputs are too few to promise" in words.choice_sentences(choice)[0]
        assert choice.why in words.recommendation(choice)
    wrong = threshold_by_limit(Sample(Rows.of([0.9] * 500, [False] * 500)), of, most, delta=0.05)
    assert not wrong.too_few
    assert "No threshold keeps to the rule" in words.choice_sentences(wrong)[0]


def test_the_rules_of_a_draw_lie_between_the_cutoffs_and_use_every_row_once():
    sweep = Sweep.of([0.5] * 40 + [0.9] * 60, [False] * 30 + [True] * 70)
    rules = ReturnRules.of(sweep, "randomise", np.random.default_rng(0))
    assert (np.diff(rules.returned) <= 0).all()
    assert (np.diff(rules.wrong) <= 0).all()
    assert rules.returned[[0, 100, 200]].tolist() == [100, 60, 0]
    assert (rules.returned == np.rint(rules.returned)).all()
