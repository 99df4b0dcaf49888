from fractions import Fraction
from math import isnan

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from demur.core.stats.measure import Score, SweepMeasure
from demur.core.stats.sweep import Sweep
from demur.errors import UsageError
from demur.returns.measures import (
    AUGRC,
    RETURNS,
    ErrorAtNonreturn,
    ForcedError,
    NonreturnAtError,
    NonreturnFloor,
    QALDPrecision,
    QALDRecall,
    RankingSkill,
)
from reference import returns as plain
from reference.readings import WEIGHTS, close, read, value
from reference.rows import SCORES, repeated, tables

OF_THE_SWEEP = [name for name, measure in RETURNS.items() if isinstance(measure, SweepMeasure)]


def test_a_floor_cuts_the_area_on_the_left():
    """Ten inputs, five withheld: x runs from .5, y falls from .2 to 0 at .7."""
    sweep = Sweep.of([0.1, 0.2, 0.3, 0.4, 0.5], [False, False, True, True, True], withheld=5)
    assert value(NonreturnFloor(), sweep) == 0.5
    assert value(ForcedError(), sweep) == 0.2
    assert value(AUGRC(), sweep) == close(0.02)
    assert value(RankingSkill(), sweep) == close(1)
    assert value(NonreturnAtError(0.1), sweep) == close(0.6)
    assert value(ErrorAtNonreturn(0.6), sweep) == close(0.1)


def test_left_of_the_floor_there_is_no_error_rate_and_the_reason_says_so():
    score = Score.of(ErrorAtNonreturn(0.2), Sweep.of([0.5], [False], withheld=1))
    assert isnan(score.value)
    assert score.why == "the system itself withholds 50 % of the inputs, more than 20 %"
    assert score.to_dict()["value"] is None


def test_at_the_floor_itself_there_is_an_error_rate():
    assert value(ErrorAtNonreturn(0.3), Sweep.of(np.arange(7), [False] * 7, withheld=3)) == close(0.7)


def test_the_scale_of_confidences_does_not_matter():
    confidence, right = np.array([0.1, 0.2, 0.4, 0.4, 0.8]), [False, True, False, True, True]
    for scale in (np.log, lambda s: s * 100 - 40, np.exp, lambda s: np.where(s == 0.8, np.inf, s)):
        for name in ("augrc", "aurc", "auroc", "ranking_skill", "error_at_nonreturn", "nonreturn_at_error"):
            measure = RETURNS[name]
            assert value(measure, Sweep.of(scale(confidence), right)) == value(measure, Sweep.of(confidence, right))


def test_qald_precision_and_recall_divide_by_answered_and_by_all():
    """Fifty questions, 40 answered, 30 of them right; with a cutoff 20 are left, 18 right."""
    confidence = [0.9] * 20 + [0.2] * 20
    right = [True] * 18 + [False] * 2 + [True] * 12 + [False] * 8
    sweep = Sweep.of(confidence, right, withheld=10)
    assert (value(QALDPrecision(), sweep), value(QALDRecall(), sweep)) == (30 / 40, 30 / 50)
    assert (value(QALDPrecision(0.9), sweep), value(QALDRecall(0.9), sweep)) == (18 / 20, 18 / 50)
    assert isnan(value(QALDPrecision(0.95), sweep))
    assert value(QALDRecall(0.95), sweep) == 0


def test_the_error_over_a_range_is_the_mean_of_the_cutoffs_that_each_share_allows():
    """Cutoffs at 0, .25, .5 leave .5, .25 and 0: over [.25, .75] half the range leaves .25 and half nothing."""
    sweep = Sweep.of([0.1, 0.2, 0.3, 0.4], [False, False, True, True])
    assert value(ErrorAtNonreturn(0.25, 0.75), sweep) == close(0.125)
    assert value(ErrorAtNonreturn(0.25, 0.25), sweep) == close(0.25)


def test_the_error_over_a_range_with_ties_by_chance_is_the_mean_height_of_the_curve():
    """y falls from .5 at 0 to 0 at .5: over [.25, .75] the mean is (.25 + 0)/2 * .25/.5."""
    sweep = Sweep.of([0.1, 0.2, 0.3, 0.4], [False, False, True, True])
    assert value(ErrorAtNonreturn(0.25, 0.75, "randomise"), sweep) == close(0.0625)
    assert value(ErrorAtNonreturn(0.0, 1.0, "randomise"), sweep) == close(value(AUGRC(), sweep))


def test_a_share_that_ties_put_out_of_reach_gives_the_cutoff_below_and_the_mixture_apart():
    """Ten answers of two confidences: 4 at .5 (3 wrong), 6 at .9 (1 wrong). 20 % lies halfway into the first heap."""
    sweep = Sweep.of([0.5] * 4 + [0.9] * 6, [False] * 3 + [True] * 6 + [False])
    assert value(ErrorAtNonreturn(0.2), sweep) == close(0.4)
    assert value(ErrorAtNonreturn(0.2, ties="randomise"), sweep) == close(0.1 + 0.3 / 2)
    assert value(NonreturnAtError(0.25), sweep) == close(0.4)
    assert value(NonreturnAtError(0.25, "randomise"), sweep) == close(0.2)


@pytest.mark.parametrize(("x", "to"), [(-0.1, None), (1.1, None), (0.5, 0.4), (0.5, 1.5), (float("nan"), None)])
def test_rates_outside_their_range_are_refused(x, to):
    with pytest.raises(UsageError, match=r"at_nonreturn takes a rate within \[0, 1\]"):
        ErrorAtNonreturn(x, to)


@pytest.mark.parametrize("error", [-0.1, 1.1, float("nan")])
def test_error_rates_outside_their_range_are_refused(error):
    with pytest.raises(UsageError, match=r"error rate lies in \[0, 1\]"):
        NonreturnAtError(error)


@given(tables(SCORES, weights=WEIGHTS), st.fractions(0, 1, max_denominator=40))
def test_the_error_at_a_point_is_read_off_the_plain_curve(rows, x):
    points = plain.curve(rows)
    assume(float(x) > points[0][0] or x == points[0][0])
    assert read(ErrorAtNonreturn(float(x), ties="randomise"), rows) == close(plain.height(points, x))
    assert read(ErrorAtNonreturn(float(x)), rows) == close(plain.reached(points, x)[1])


@given(tables(SCORES, weights=WEIGHTS), st.fractions(0, 1, max_denominator=40), st.integers(1, 20))
def test_the_error_over_a_range_is_that_of_the_plain_cutoffs(rows, start, width):
    points, stop = plain.curve(rows), min(Fraction(1), start + Fraction(width, 20))
    assume(start >= points[0][0] and start < stop)
    expected = plain.mean_reached(points, start, stop)
    assert read(ErrorAtNonreturn(float(start), float(stop)), rows) == close(expected)


@given(tables(SCORES, weights=WEIGHTS), st.integers(0, 20))
def test_the_nonreturn_for_an_error_is_read_off_the_plain_curve(rows, twentieths):
    level = Fraction(2 * twentieths + 1, 41)
    points = plain.curve(rows)
    expected, cutoff = plain.first_at_or_below(points, level), plain.first_cutoff_at_or_below(points, level)
    assert read(NonreturnAtError(float(level), "randomise"), rows) == pytest.approx(float(expected), abs=1e-9)
    assert read(NonreturnAtError(float(level)), rows) == close(cutoff[0])


@given(tables(SCORES, weights=st.sampled_from([0, 0, 1, 2])))
@pytest.mark.parametrize("name", OF_THE_SWEEP)
def test_a_row_of_weight_0_is_as_good_as_absent(name, rows):
    assume(plain.weight_of(rows) > 0)
    assert read(RETURNS[name], rows) == close(read(RETURNS[name], repeated(rows)))


@pytest.mark.parametrize("name", OF_THE_SWEEP)
def test_a_replicate_without_the_most_confident_level_reads_as_if_that_level_were_not_there(name):
    """What the bootstrap draws: levels with no row in them, at both ends and inside."""
    levels = np.array([0.1, 0.2, 0.3, 0.4, 0.5])
    right, wrong = np.array([[0, 2, 0, 1, 0]]), np.array([[0, 1, 0, 1, 0]])
    drawn = Sweep(levels, right, wrong, np.array([1.0]), 6)
    plain_one = Sweep(levels[[1, 3]].copy(), right[0, [1, 3]], wrong[0, [1, 3]], 1.0, 6)
    assert RETURNS[name].finish(drawn)[0] == close(RETURNS[name].finish(plain_one))
