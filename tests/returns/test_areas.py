from itertools import permutations
from math import isnan
from statistics import fmean

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import digamma

from demur.core.stats.measure import Score
from demur.core.stats.sweep import Sweep
from demur.errors import UsageError
from demur.returns import measures
from demur.returns.measures import (
    AUGRC,
    AURC,
    AUROC,
    EAURC,
    ForcedError,
    NonreturnFloor,
    QALDPrecision,
    QALDRecall,
    RankingSkill,
    harmonic,
)
from reference import returns as plain
from reference.readings import WEIGHTS, close, read, value
from reference.rows import SCORES, Row, tables

TIED = Sweep.of([0.9] * 3 + [0.8] * 4 + [0.5] * 2 + [0.1], [not error for error in (0, 0, 1, 0, 1, 0, 0, 1, 0, 1)])
ALL_WRONG = Sweep.of(np.arange(10) / 10, [False] * 10)
ALL_RIGHT = Sweep.of(np.arange(10) / 10, [True] * 10)
ONLY_WITHHELD = Sweep.of([], [], withheld=4)


def test_the_worked_case_with_ties():
    assert value(AUGRC(), TIED) == close(0.16)
    assert value(AURC("trapezoid"), TIED) == pytest.approx(0.322381, abs=5e-7)
    assert value(AURC("mean"), TIED) == pytest.approx(0.323571, abs=5e-7)
    assert value(ForcedError(), TIED) == 0.4


def test_all_wrong_is_a_half_and_all_right_is_nothing():
    assert value(AUGRC(), ALL_WRONG) == close(0.5)
    assert value(AUGRC(), ALL_RIGHT) == 0
    assert [value(AURC(kind), ALL_WRONG) for kind in ("trapezoid", "mean")] == [close(1), close(1)]
    assert [value(AURC(kind), ALL_RIGHT) for kind in ("trapezoid", "mean")] == [0, 0]
    assert [value(EAURC(kind), ALL_WRONG) for kind in ("trapezoid", "mean")] == [close(0), close(0)]


@pytest.mark.parametrize("measure", [AUROC(), RankingSkill()])
@pytest.mark.parametrize(
    ("sweep", "reason"),
    [(ALL_RIGHT, "every answer is right"), (ALL_WRONG, "no answer is right"), (ONLY_WITHHELD, "nothing was answered")],
    ids=["all right", "all wrong", "nothing answered"],
)
def test_ranking_has_no_meaning_without_right_and_wrong_and_says_why(measure, sweep, reason):
    score = Score.of(measure, sweep)
    assert isnan(score.value)
    assert reason in score.why


def test_a_system_that_only_withholds_has_no_risk_and_no_error():
    assert value(NonreturnFloor(), ONLY_WITHHELD) == 1
    assert value(ForcedError(), ONLY_WITHHELD) == 0
    assert value(QALDRecall(), ONLY_WITHHELD) == 0
    for measure in (AUGRC(), AURC(), AURC("trapezoid"), EAURC(), EAURC("trapezoid"), QALDPrecision()):
        assert isnan(value(measure, ONLY_WITHHELD))
        assert Score.of(measure, ONLY_WITHHELD).why


def test_random_and_oracle_rankings_have_their_known_areas():
    right = np.array([True] * 7 + [False] * 3)
    assert value(AUGRC(), Sweep.of(np.zeros(10), right)) == close(0.3 / 2)
    assert value(RankingSkill(), Sweep.of(np.zeros(10), right)) == close(0)
    oracle = Sweep.of(right.astype(float), right)
    assert value(AUGRC(), oracle) == close(0.3**2 / 2)
    assert value(RankingSkill(), oracle) == close(1)
    assert value(RankingSkill(), Sweep.of(1.0 - right, right)) == close(-1)


def test_the_worst_ranking_has_the_largest_area():
    right = np.array([True] * 7 + [False] * 3)
    assert value(AUGRC(), Sweep.of(1.0 - right, right)) == close(0.3 * (1 - 0.3 / 2))


@pytest.mark.parametrize("measure", [AURC, EAURC])
def test_an_unknown_convention_is_refused(measure):
    with pytest.raises(UsageError, match='"mean" and "trapezoid"; got "simpson"'):
        measure("simpson")


@given(tables(SCORES, weights=WEIGHTS))
def test_augrc_is_the_area_under_the_plain_curve(rows):
    assert read(AUGRC(), rows) == close(plain.augrc(rows))


@given(tables(SCORES, weights=WEIGHTS))
def test_augrc_is_the_v_statistic_over_pairs(rows):
    assert read(AUGRC(), rows) == close(plain.augrc_by_pairs(rows))


@given(tables(SCORES, largest=30))
def test_augrc_is_the_sum_of_error_ranks(rows):
    assert read(AUGRC(), rows) == close(plain.augrc_by_ranks(rows))


@given(tables(SCORES, weights=WEIGHTS))
def test_auroc_is_the_share_of_pairs_in_order(rows):
    assert read(AUROC(), rows) == close(plain.auroc(rows))


@given(tables(SCORES, weights=WEIGHTS, withheld=False))
def test_augrc_follows_from_auroc_and_the_error_rate(rows):
    auroc, error = read(AUROC(), rows), read(ForcedError(), rows)
    assume(not isnan(auroc))
    assert read(AUGRC(), rows) == close((1 - auroc) * (1 - error) * error + error**2 / 2)


@given(tables(SCORES, weights=WEIGHTS))
def test_ranking_skill_is_twice_auroc_less_one(rows):
    assert read(RankingSkill(), rows) == pytest.approx(2 * read(AUROC(), rows) - 1, abs=1e-9, nan_ok=True)


@given(tables(SCORES, weights=WEIGHTS))
def test_trapezoid_aurc_is_that_of_the_plain_risks(rows):
    assert read(AURC("trapezoid"), rows) == close(plain.aurc_trapezoid(rows))


@given(tables(st.sampled_from([0.1, 0.5, 0.9]), largest=6))
def test_mean_aurc_is_the_average_over_every_order_of_ties(rows):
    assert read(AURC("mean"), rows) == close(plain.aurc_mean(rows))


@given(tables(st.sampled_from([0.1, 0.3, 0.5, 0.9]), largest=6))
def test_mean_excess_aurc_is_what_the_oracle_saves(rows):
    expected = plain.aurc_mean(rows) - plain.aurc_mean(plain.perfect(rows))
    assert read(EAURC("mean"), rows) == close(expected)


@given(tables(SCORES, weights=WEIGHTS))
def test_excess_aurc_is_never_negative_and_0_for_a_perfect_ranking(rows):
    for convention in ("trapezoid", "mean"):
        excess = read(EAURC(convention), rows)
        assert isnan(excess) or excess >= 0
        perfect = read(EAURC(convention), plain.perfect(rows))
        assert isnan(perfect) or perfect == close(0)


@given(tables(SCORES, withheld=False, largest=20))
def test_without_ties_excess_aurc_is_aurc_less_that_of_the_sorted_answers(rows):
    for convention in ("trapezoid", "mean"):
        distinct = [row._replace(confidence=float(place)) for place, row in enumerate(rows)]
        expected = read(AURC(convention), distinct) - read(AURC(convention), plain.perfect(distinct))
        assert read(EAURC(convention), distinct) == close(expected)


def test_an_unweighted_answer_on_top_does_not_lower_aurc():
    rows = [Row(0.9, True, weight=0), Row(0.8, False), Row(0.7, True)]
    assert read(AURC(), rows) == close(plain.aurc_mean(rows[1:]))
    assert read(AURC("trapezoid"), rows) == close(plain.aurc_trapezoid(rows[1:]))


def test_the_default_convention_is_the_mean_over_orders_of_ties():
    """Two ties of one right and one wrong: risks at k = 1 .. 4 are 1/2, 1/2, 1/2, 1/2."""
    tied = Sweep.of([0.9, 0.9, 0.1, 0.1], [True, False, True, False])
    assert value(AURC(), tied) == close(0.5)
    assert AURC() == AURC("mean")
    assert EAURC() == EAURC("mean")


@given(tables(st.just(0.5), largest=6))
def test_a_constant_confidence_has_the_excess_of_a_ranking_at_random(rows):
    """Its AURC is the risk of all answers, and its e-AURC the mean of those of all rankings without ties."""
    answered = [row for row in rows if row.answered]
    orders = [
        [row._replace(confidence=float(place)) for place, row in enumerate(order)] for order in permutations(answered)
    ]
    aside = [row for row in rows if not row.answered]
    expected = fmean([read(EAURC(), order + aside) for order in orders])
    assert read(EAURC(), rows) == close(expected)
    risk = read(ForcedError(), rows)
    assert not answered or read(AURC(), rows) == close(risk)


@given(tables(SCORES, weights=st.sampled_from([1, 1, 2, 3]), smallest=2), st.data())
def test_joining_two_neighbouring_confidences_improves_a_measure_only_where_it_improves_the_ranking(rows, data):
    """The expected errors among the k surest become a straight line from where the two levels start to where they end.

    The line lies above two pieces that bend upwards (the surer level errs less) and below two that bend downwards, at
    every k. So all measures move the same way: worse where the surer level errs less, better where it errs more.
    """
    levels = sorted({row.confidence for row in rows if row.answered})
    assume(len(levels) > 1)
    place = data.draw(st.integers(0, len(levels) - 2))
    low, high = levels[place : place + 2]
    joined = [row._replace(confidence=low) if row.confidence == high else row for row in rows]
    surer, other = (_error_rate(rows, level) for level in (high, low))
    for measure, sign in ((AUGRC(), 1), (AURC(), 1), (EAURC(), 1), (AUROC(), -1), (RankingSkill(), -1)):
        worse = sign * (read(measure, joined) - read(measure, rows))
        assert isnan(worse) or (worse > -1e-12 if surer < other else worse < 1e-12), measure
        assert isnan(worse) or surer == other or abs(worse) > 1e-12, measure


def _error_rate(rows, level):
    here = [row for row in rows if row.answered and row.confidence == level]
    return plain.weight_of([row for row in here if not row.right]) / plain.weight_of(here)


@given(tables(SCORES, withheld=False), st.lists(st.floats(0, 1), max_size=3))
def test_where_surer_answers_never_err_more_no_coarser_confidence_improves_a_measure(rows, edges):
    ordered = [row._replace(confidence=-float(_error_rate(rows, row.confidence))) for row in rows]
    coarse = [row._replace(confidence=float(sum(row.confidence >= -edge for edge in edges))) for row in ordered]
    for measure, sign in ((AUGRC(), 1), (AURC(), 1), (EAURC(), 1), (AUROC(), -1), (RankingSkill(), -1)):
        worse = sign * (read(measure, coarse) - read(measure, ordered))
        assert isnan(worse) or worse > -1e-12, measure


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=20))
def test_harmonic_numbers_are_those_of_the_digamma_function(counts):
    known = [float(digamma(count + 1) - digamma(1)) for count in counts]
    assert harmonic(np.array(counts)) == pytest.approx(known, rel=1e-13, abs=1e-14)


def test_weights_that_are_not_whole_are_scaled_to_average_1():
    weights = [0.1, 0.2, 0.3, 0.4]
    rows = [Row(place / 10, place % 2 == 0, weight=weight) for place, weight in enumerate(weights)]
    scaled = [row._replace(weight=row.weight * 4) for row in rows]
    assert read(AURC(), rows) == close(read(AURC(), scaled))
    assert read(EAURC(), rows) == close(read(EAURC(), scaled))


@given(tables(weights=WEIGHTS))
@pytest.mark.parametrize("at_once", [1, 3])
def test_the_aurc_is_the_same_to_the_last_digit_however_many_counts_are_worked_on_at_a_time(at_once, rows):
    whole = read(AURC(), rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measures, "COUNTS_AT_ONCE", at_once)
        patch.setattr(measures, "LEAST_AT_ONCE", at_once)
        np.testing.assert_array_equal(read(AURC(), rows), whole)


def test_areas_that_others_start_from_are_computed_once(monkeypatch):
    sweep = Sweep.of([0.9, 0.8, 0.7], [True, False, True])
    excess, skill = EAURC().finish(sweep), RankingSkill().finish(sweep)
    monkeypatch.setattr(AUGRC, "finish", None)
    monkeypatch.setattr(AURC, "finish", None)
    assert (EAURC().finish(sweep), RankingSkill().finish(sweep)) == (excess, skill)
