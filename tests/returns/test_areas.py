from math import isnan

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from demur.core.stats.measure import Score
from demur.core.stats.sweep import Sweep
from demur.errors import UsageError
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
    for measure in (AUGRC(), AURC(), AURC("mean"), EAURC(), EAURC("mean"), QALDPrecision()):
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
    with pytest.raises(UsageError, match='"trapezoid" and "mean"; got "simpson"'):
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
        assert isnan(perfect) or (convention == "mean" and any(r.weight != 1 for r in rows)) or perfect == close(0)


@given(tables(SCORES, withheld=False, largest=20))
def test_without_ties_excess_aurc_is_aurc_less_that_of_the_sorted_answers(rows):
    for convention in ("trapezoid", "mean"):
        distinct = [row._replace(confidence=float(place)) for place, row in enumerate(rows)]
        expected = read(AURC(convention), distinct) - read(AURC(convention), plain.perfect(distinct))
        assert read(EAURC(convention), distinct) == close(expected)


def test_an_unweighted_answer_on_top_does_not_lower_aurc():
    rows = [Row(0.9, True, weight=0), Row(0.8, False), Row(0.7, True)]
    assert read(AURC(), rows) == close(plain.aurc_trapezoid(rows[1:]))
