from math import exp, isnan, log, pi, sqrt
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import demur
from demur.core.stats.calibration import ECE, NCE, Brier, DebiasedECE, EqualMassECE, cell_totals, reliability
from demur.core.stats.measure import Score, TermMeasure
from demur.core.stats.sweep import Sweep
from demur.errors import UsageError
from reference import calibration as plain
from reference.rows import SCORES, arrays, tables

WEIGHTS = st.sampled_from([1, 1, 2, 0.5])


EVERY = pytest.mark.parametrize("measure", [Brier(), ECE(), DebiasedECE(), EqualMassECE(), NCE()], ids=repr)


def score_of(measure, sweep):
    return Score.of(measure, cell_totals(measure, sweep) if isinstance(measure, TermMeasure) else sweep)


def value_of(measure, sweep):
    return score_of(measure, sweep).value


def read(measure, sweep):
    return value_of(measure, sweep)


def test_brier_is_the_mean_squared_gap():
    assert read(Brier(), Sweep.of([0.9, 0.6, 0.0], [True, False, False])) == pytest.approx((0.01 + 0.36 + 0) / 3)
    assert read(Brier(), Sweep.of([0.5] * 4, [True, False, True, True])) == 0.25
    assert read(Brier(), Sweep.of([1.0, 0.0], [True, False])) == 0


def test_ece_is_the_mean_gap_per_bin():
    """Bin [.9, 1]: .95 against 1 right; bin [.5, .6): .55 against one of two; gaps .05 and .05."""
    assert read(ECE(), Sweep.of([0.95, 0.95, 0.55, 0.55], [True, True, True, False])) == pytest.approx(0.05)
    assert read(ECE(bins=1), Sweep.of([0.2, 1.0], [True, False])) == pytest.approx(0.1)


@pytest.mark.parametrize("edge", [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])
def test_a_confidence_on_an_edge_opens_the_bin_above_it(edge):
    """With its neighbour .05 above, one right and one wrong: their gaps partly cancel in one bin."""
    sweep = Sweep.of([edge, edge + 0.05], [True, False])
    together = abs((1 - edge) - (edge + 0.05)) / 2
    assert read(ECE(), sweep) == pytest.approx(together)
    assert reliability(sweep).weight.tolist() == [2]


def test_nce_against_a_hand_worked_case():
    """Two of three right: H = -(2 log 2/3 + log 1/3); stated: log .8 + log .6 + log(1 - .3)."""
    entropy = -(2 * log(2 / 3) + log(1 / 3))
    expected = (entropy + log(0.8) + log(0.6) + log(0.7)) / entropy
    assert read(NCE(), Sweep.of([0.8, 0.6, 0.3], [True, True, False])) == pytest.approx(expected)


def test_nce_is_0_for_the_overall_accuracy_and_about_1_for_certainty():
    assert read(NCE(), Sweep.of([0.75] * 4, [True, True, True, False])) == pytest.approx(0)
    assert read(NCE(), Sweep.of([1.0, 1.0, 0.0], [True, True, False])) == pytest.approx(1, abs=1e-6)
    assert read(NCE(), Sweep.of([0.0, 1.0], [True, False])) < -5


@EVERY
@pytest.mark.parametrize("outside", [-0.1, 1.5, np.inf, -np.inf])
def test_a_few_confidences_that_are_no_probabilities_are_left_out(measure, outside):
    confidence, right = [0.5, 0.7, 0.4], [True, False, False]
    stray = value_of(measure, Sweep.of([*confidence, outside], [*right, True]))
    assert stray == pytest.approx(value_of(measure, Sweep.of(confidence, right)))


@EVERY
def test_where_most_confidences_are_no_probabilities_there_is_no_calibration(measure):
    score = score_of(measure, Sweep.of([0.5, 1.5, -3.0], [True, False, False]))
    assert isnan(score.value)
    assert "most confidences lie outside [0, 1]" in score.why


@EVERY
def test_answers_without_confidences_have_no_calibration(measure):
    lowest = float("-inf")
    assert "no confidence lies in [0, 1]" in score_of(measure, Sweep.of([lowest] * 3, [True, False, False])).why


@EVERY
def test_logarithms_of_probabilities_are_not_read_as_probabilities_of_0(measure):
    score = score_of(measure, Sweep.of([0.0] * 8 + [-0.1, -1.0], [True] * 9 + [False]))
    assert isnan(score.value)
    assert "as logarithms are" in score.why


@EVERY
@pytest.mark.parametrize(("just", "exact"), [(1 + 1e-7, 1.0), (float(np.float32(1.0000001)), 1.0), (-1e-9, 0.0)])
def test_what_rounding_put_beyond_0_or_1_counts_as_0_or_1(measure, just, exact):
    one, two = (Sweep.of([0.5, 0.7, end, end], [True, False, True, False]) for end in (just, exact))
    assert value_of(measure, one) == value_of(measure, two)


@EVERY
def test_nothing_answered_has_no_calibration(measure):
    score = score_of(measure, Sweep.of([], [], withheld=2))
    assert isnan(score.value)
    assert score.why == "nothing was answered"


def test_nce_of_all_right_says_why_it_is_undefined():
    score = Score.of(NCE(), cell_totals(NCE(), Sweep.of([0.5, 0.7], [True, True])))
    assert isnan(score.value)
    assert "every answer is right, or none is" in score.why


@pytest.mark.parametrize("bins", [0, -1])
def test_no_bins_are_refused(bins):
    for measure in (ECE, DebiasedECE, EqualMassECE):
        with pytest.raises(UsageError, match="bins must be at least 1"):
            measure(bins=bins)
    with pytest.raises(UsageError, match="bins must be at least 1"):
        reliability(Sweep.of([0.5], [True]), bins=bins)


@pytest.mark.parametrize("clip", [-0.1, 0.5, 0.9, float("nan")])
def test_a_clip_outside_its_range_is_refused(clip):
    with pytest.raises(UsageError, match="clip"):
        NCE(clip=clip)


@given(tables(weights=WEIGHTS))
def test_brier_agrees_with_its_plain_twin(rows):
    assert read(Brier(), arrays(rows).sweep()) == pytest.approx(plain.brier(rows), nan_ok=True)


@given(tables(weights=WEIGHTS), st.sampled_from([1, 2, 5, 10, 15]))
def test_ece_agrees_with_its_plain_twin(rows, bins):
    expected = plain.ece(rows, bins)
    assert read(ECE(bins), arrays(rows).sweep()) == pytest.approx(expected, abs=1e-12, nan_ok=True)


@given(tables(weights=WEIGHTS))
def test_nce_agrees_with_its_plain_twin(rows):
    assert read(NCE(), arrays(rows).sweep()) == pytest.approx(plain.nce(rows), abs=1e-9, nan_ok=True)


@given(tables(SCORES))
def test_any_finite_or_infinite_confidence_gives_a_value_or_a_reason(rows):
    for measure, twin in ((Brier(), plain.brier), (ECE(), plain.ece), (NCE(), plain.nce)):
        score = Score.of(measure, cell_totals(measure, arrays(rows).sweep()))
        if plain.is_meaningless(rows):
            assert isnan(score.value)
            assert score.why
        elif twin is plain.brier:
            assert score.value == pytest.approx(plain.brier(rows))


def test_the_debiased_error_by_hand():
    """Four of eight right at .5 in one bin: the gap is 0 and s = sqrt(.25 / 7), so the mean size is s sqrt(2 / pi).

    In the bin of .9 one of ten is wrong, the gap is 0 too and s = sqrt(.09 / 9). What chance adds exceeds the rest.
    """
    balanced = Sweep.of([0.5] * 8 + [0.9] * 10, [True, False] * 4 + [True] * 9 + [False])
    assert value_of(ECE(), balanced) == pytest.approx(0)
    assert value_of(DebiasedECE(), balanced) == 0
    off = Sweep.of([0.95] * 10, [True, False] * 5)
    spread = sqrt(0.25 / 9)
    size = spread * sqrt(2 / pi) * exp(-((0.45 / spread) ** 2) / 2) + 0.45 * (1 - 2 * NormalDist().cdf(-0.45 / spread))
    assert value_of(DebiasedECE(), off) == pytest.approx(0.45 - (size - 0.45))


def test_chance_adds_little_to_the_debiased_error_of_a_calibrated_system():
    rng = np.random.default_rng(0)
    drawn = [(confidence, rng.random(200) < confidence) for confidence in rng.random((300, 200))]
    plain_errors, debiased = (
        np.mean([value_of(measure, Sweep.of(*one)) for one in drawn]) for measure in (ECE(), DebiasedECE())
    )
    assert plain_errors > 0.06
    assert debiased < 0.6 * plain_errors


def test_bins_of_equal_mass_by_hand():
    """Middles of the levels .2 (2 answers), .8 (3) and .9 (5) lie at .1, .35 and .75: bins 0, 0 and 1 of two."""
    sweep = Sweep.of([0.2] * 2 + [0.8] * 3 + [0.9] * 5, [True, False] + [True] * 3 + [True] * 3 + [False] * 2)
    expected = (abs(4 - (0.4 + 2.4)) + abs(3 - 4.5)) / 10
    assert value_of(EqualMassECE(bins=2), sweep) == pytest.approx(expected)


@given(tables(), st.sampled_from([1, 2, 10]))
def test_the_debiased_error_agrees_with_its_plain_twin(rows, bins):
    expected = plain.ece_debiased(rows, bins)
    assert value_of(DebiasedECE(bins), arrays(rows).sweep()) == pytest.approx(expected, abs=1e-5, nan_ok=True)


@given(tables(weights=WEIGHTS), st.sampled_from([1, 2, 3, 10]))
def test_the_error_over_equal_mass_agrees_with_its_plain_twin(rows, bins):
    expected = plain.ece_equal_mass(rows, bins)
    assert value_of(EqualMassECE(bins), arrays(rows).sweep()) == pytest.approx(expected, abs=1e-9, nan_ok=True)


@given(tables(), st.sampled_from([1, 5, 10]))
def test_the_debiased_error_is_never_above_the_error(rows, bins):
    sweep = arrays(rows).sweep()
    assume(not isnan(value_of(ECE(bins), sweep)))
    assert 0 <= value_of(DebiasedECE(bins), sweep) <= value_of(ECE(bins), sweep) + 1e-12


def test_reliability_bins_of_equal_width():
    found = reliability(Sweep.of([0.05, 0.5, 0.52, 0.58, 1.0], [False, True, False, True, True]))
    assert found.low.tolist() == pytest.approx([0, 0.5, 0.9])
    assert found.high.tolist() == pytest.approx([0.1, 0.6, 1])
    assert found.confidence.tolist() == pytest.approx([0.05, 1.6 / 3, 1])
    assert found.accuracy.tolist() == pytest.approx([0, 2 / 3, 1])
    assert found.weight.tolist() == [1, 3, 1]


def test_reliability_bins_of_equal_mass():
    found = reliability(Sweep.of(np.arange(1, 9) / 10, [False] * 4 + [True] * 4), bins=2, kind="mass")
    assert (found.low.tolist(), found.high.tolist()) == ([0.1, 0.5], [0.4, 0.8])
    assert found.confidence.tolist() == pytest.approx([0.25, 0.65])
    assert found.accuracy.tolist() == [0, 1]
    assert found.weight.tolist() == [4, 4]


@given(tables(weights=WEIGHTS), st.sampled_from(["width", "mass"]), st.integers(1, 12))
def test_reliability_keeps_weight_accuracy_and_confidence_of_the_whole(rows, kind, bins):
    sweep = arrays(rows).sweep()
    found = reliability(sweep, bins=bins, kind=kind)
    right = float(sweep.answered - sweep.errors)
    stated = sum(row.weight * row.confidence for row in rows if row.answered)
    assert found.weight.size <= bins
    assert (found.weight > 0).all()
    assert found.weight.sum() == pytest.approx(float(sweep.answered))
    assert (found.weight * found.accuracy).sum() == pytest.approx(right)
    assert (found.weight * found.confidence).sum() == pytest.approx(stated)
    assert (found.low <= found.confidence + 1e-12).all()
    assert (found.confidence <= found.high + 1e-12).all()


@given(tables(weights=WEIGHTS))
def test_ece_is_what_the_reliability_diagram_shows(rows):
    sweep = arrays(rows).sweep()
    found = reliability(sweep)
    shown = (found.weight * np.abs(found.accuracy - found.confidence)).sum() / max(float(sweep.answered), 1e-9)
    expected = np.nan if not float(sweep.answered) else shown
    assert read(ECE(), sweep) == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_reliability_leaves_out_bins_that_hold_only_weight_0():
    found = reliability(Sweep.of([0.05, 0.95], [True, True], weight=[0, 1]))
    assert found.weight.tolist() == [1]
    assert found.accuracy.tolist() == [1]


def test_totals_of_many_rows_are_the_same_to_the_last_digit_every_time():
    rng = np.random.default_rng(8)
    confidence = rng.random(400_000)
    sweep = Sweep.of(confidence, rng.random(confidence.size) < confidence)
    for measure in (Brier(), ECE(), NCE()):
        assert len({cell_totals(measure, sweep).tobytes() for _ in range(5)}) == 1


def test_a_mean_that_is_no_chance_at_all_away_from_nothing_is_itself():
    """A confidence of 2e-311 has a spread whose square is beyond all floats."""
    (found,) = demur.score([{"target": "a", "prediction": "a", "confidence": 2.2e-311}] * 3, replicates=50)
    assert found.figures["ece_debiased"].value == pytest.approx(1.0)
