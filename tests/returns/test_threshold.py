import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from demur.core.show.results import threshold_text
from demur.core.stats.promises import BOUNDED, EXACT
from demur.core.stats.resampling import Rows, Sample
from demur.errors import UsageError
from demur.returns.curves import error_return
from demur.returns.tally import ConfidenceGrid, tally_sample
from demur.returns.threshold import (
    cost_path,
    curve_cutoff,
    printed_cutoff,
    short_thresholds,
    threshold_by_cost,
    threshold_by_error,
    threshold_by_nonreturn,
)
from demur.returns.words import choice_sentences
from reference import returns as plain
from reference.rows import SCORES, Row, arrays, tables
from reference.tallies import tally_of

WEIGHTS = st.sampled_from([1, 1, 2, 3])
TEN = Rows.of(np.arange(10) / 10, [False, False, True, False, True, True, False, True, True, True])


def chosen(choice):
    return None if np.isnan(choice.threshold) else choice.threshold


@given(tables(SCORES, weights=WEIGHTS, largest=9), st.sampled_from([Fraction(k, 60) for k in range(61)]))
def test_the_threshold_by_cost_is_the_cheapest_of_all(rows, ratio):
    choice = threshold_by_cost(Sample(arrays(rows)), float(ratio))
    least, _ = plain.cheapest(rows, ratio)
    assert choice.cost == pytest.approx(float(least), abs=1e-12)
    assert float(plain.cost(rows, chosen(choice), ratio)) == pytest.approx(float(least), abs=1e-12)


@given(tables(SCORES, largest=8), st.sampled_from([Fraction(k, 8) for k in range(9)]))
def test_among_equally_cheap_thresholds_the_one_that_returns_most_is_chosen(rows, ratio):
    _, threshold = plain.cheapest(rows, ratio)
    assert chosen(threshold_by_cost(Sample(arrays(rows)), float(ratio))) == threshold


@given(tables(SCORES, weights=WEIGHTS, largest=10))
def test_the_cost_path_holds_the_corners_of_the_lower_hull_that_are_ever_best(rows):
    points = plain.curve(rows)
    corners = [(float(x), float(y)) for x, y in plain.hull_vertices(points)]
    found = [(stretch.nonreturn, stretch.error) for stretch in cost_path(error_return(arrays(rows).sweep()))]
    assert all(any(point == pytest.approx(corner) for corner in corners) for point in found)
    grid = [Fraction(2 * k + 1, 407) for k in range(203)]
    best = {min(points, key=lambda point: (point[1] + ratio * point[0], point[0])) for ratio in grid}
    assert all(any((float(x), float(y)) == pytest.approx(point) for point in found) for x, y in best)


@given(tables(SCORES, weights=WEIGHTS))
def test_the_stretches_of_the_cost_path_cover_all_ratios_without_gaps(rows):
    path = cost_path(error_return(arrays(rows).sweep()))
    assert path[0].ratio_to == 1
    assert path[-1].ratio_from == 0
    for left, right in itertools.pairwise(path):
        assert left.ratio_from == pytest.approx(right.ratio_to, abs=1e-12)
        assert left.nonreturn < right.nonreturn


def test_a_worked_cost_path():
    """Errors stand at 0, .1, .3 and .6: below 1 withhold two, below a half four, below a third seven."""
    path = cost_path(error_return(TEN.sweep()))
    assert len(path) == 3
    assert [(part.threshold, part.nonreturn, part.error) for part in path] == [
        (0.2, 0.2, pytest.approx(0.2)),
        (0.4, 0.4, pytest.approx(0.1)),
        (0.7, 0.7, 0.0),
    ]
    assert [part.ratio_to for part in path] == pytest.approx([1, 1 / 2, 1 / 3])
    assert [part.ratio_from for part in path] == pytest.approx([1 / 2, 1 / 3, 0])


def test_where_a_non_return_costs_as_much_as_an_error_every_answer_is_returned():
    """The two least sure answers are wrong: withholding them costs the same, and is said to."""
    choice = threshold_by_cost(Sample(TEN), 1)
    assert (choice.threshold, choice.nonreturn, choice.cost) == (0, 0, 0.4)
    assert choice.path[0].nonreturn == 0.2
    (said,) = [sentence for sentence in choice_sentences(choice) if "never pays" in sentence]
    assert "The 20 % of least confidence are all wrong" in said


@pytest.mark.parametrize("ratio", [-0.1, 1.5, float("nan"), float("inf")])
def test_cost_ratios_at_which_withholding_never_pays_are_refused_with_the_reason(ratio):
    with pytest.raises(UsageError, match="withholding an answer never pays"):
        threshold_by_cost(Sample(TEN), ratio)


@given(tables(SCORES, weights=WEIGHTS), st.sampled_from([Fraction(k, 30) for k in range(31)]))
def test_the_threshold_by_nonreturn_has_the_fewest_errors_allowed(rows, most):
    allowed = [cutoff for cutoff in plain.thresholds(rows) if plain.nonreturn(rows, cutoff) <= most]
    if not allowed:
        with pytest.raises(UsageError, match="itself withholds"):
            threshold_by_nonreturn(Sample(arrays(rows)), float(most))
        return
    choice = threshold_by_nonreturn(Sample(arrays(rows)), float(most))
    fewest = min(plain.error(rows, cutoff) for cutoff in allowed)
    assert choice.error == pytest.approx(float(fewest), abs=1e-12)
    assert choice.nonreturn == pytest.approx(
        float(min(plain.nonreturn(rows, cutoff) for cutoff in allowed if plain.error(rows, cutoff) == fewest))
    )


@given(tables(SCORES, weights=WEIGHTS), st.sampled_from([Fraction(k, 30) for k in range(31)]))
def test_the_threshold_by_error_returns_the_most_allowed(rows, most):
    choice = threshold_by_error(Sample(arrays(rows)), float(most))
    least = min(plain.nonreturn(rows, c) for c in plain.thresholds(rows) if plain.error(rows, c) <= most)
    assert choice.nonreturn == pytest.approx(float(least), abs=1e-12)
    assert choice.guarantee is None
    assert "no guarantee" in choice.rule


@given(tables(SCORES, weights=WEIGHTS), st.floats(0, 0.99))
def test_a_choice_states_the_rates_at_its_threshold(rows, ratio):
    choice = threshold_by_cost(Sample(arrays(rows)), ratio)
    for name in ("nonreturn", "error", "missed_chance"):
        expected = getattr(plain, name)(rows, chosen(choice))
        assert getattr(choice, name) == pytest.approx(float(expected), abs=1e-12)


@pytest.mark.parametrize("most", [-0.1, 1.1, float("nan")])
def test_limits_outside_0_1_are_refused(most):
    with pytest.raises(UsageError, match=r"non-return rate lies in \[0, 1\]"):
        threshold_by_nonreturn(Sample(TEN), most)
    with pytest.raises(UsageError, match=r"error rate lies in \[0, 1\]"):
        threshold_by_error(Sample(TEN), most)


@pytest.mark.parametrize("delta", [0, 1, -0.5, 2, float("nan")])
def test_deltas_outside_0_1_are_refused(delta):
    with pytest.raises(UsageError, match="delta, the chance that the promise fails"):
        threshold_by_error(Sample(TEN), 0.1, delta=delta)


def guaranteed_by_hand(rows, most, delta):
    """From the strictest threshold on: return more while P(Bin(N, most) <= errors seen) stays at or under delta."""
    chosen_one = None
    for cutoff in reversed(plain.thresholds(rows)[:-1]):
        errors = sum(1 for row in rows if plain.returned(row, cutoff) and not row.right)
        tail = sum(binom.pmf(k, len(rows), most) for k in range(errors + 1))
        if tail > delta:
            break
        chosen_one = cutoff
    return chosen_one


@given(st.integers(0, 10_000), st.sampled_from([0.05, 0.1, 0.2]), st.sampled_from([0.05, 0.1, 0.5]))
def test_the_guaranteed_threshold_is_the_last_that_passes_in_order(seed, most, delta):
    rng = np.random.default_rng(seed)
    confidence = np.round(rng.random(60), 1)
    rows = [Row(float(s), bool(r)) for s, r in zip(confidence, rng.random(60) < 0.5 + confidence / 2, strict=True)]
    choice = threshold_by_error(Sample(arrays(rows)), most, delta=delta)
    assert chosen(choice) == guaranteed_by_hand(rows, most, delta)
    assert choice.guarantee.method == EXACT
    assert (choice.guarantee.bound, choice.guarantee.delta) == (most, delta)


def test_a_guarantee_worked_by_hand():
    """30 answers, the lowest wrong, all else right: .9^30 = .042 <= .05, (.9^30 + 30 .1 .9^29) = .18 > .05."""
    rows = Rows.of(np.arange(30), [False] + [True] * 29)
    choice = threshold_by_error(Sample(rows), 0.1, delta=0.05)
    assert choice.threshold == 1
    assert choice.guarantee.upper == pytest.approx(1 - 0.05 ** (1 / 30))
    nothing = threshold_by_error(Sample(rows), 0.09, delta=0.05)
    assert np.isnan(nothing.threshold)
    assert (nothing.nonreturn, nothing.error, nothing.guarantee.upper) == (1, 0, None)


@given(st.integers(0, 10_000), st.sampled_from([0.05, 0.2, 0.5]))
def test_the_upper_bound_stated_keeps_the_promise(seed, most):
    rng = np.random.default_rng(seed)
    rows = Rows.of(rng.random(80), rng.random(80) < 0.8)
    guarantee = threshold_by_error(Sample(rows), most, delta=0.1).guarantee
    assert guarantee.upper is None or guarantee.upper <= most + 1e-12


def test_an_error_rate_of_at_most_1_is_no_limit():
    rows = Rows.of([0.1, 0.2], [False, False])
    assert threshold_by_error(Sample(rows), 1.0, delta=0.05).nonreturn == 0


def true_error(threshold):
    """Confidence s uniform, right with probability s: P(wrong and s >= t) = (1 - t)^2 / 2."""
    return 0.0 if np.isnan(threshold) else (1 - threshold) ** 2 / 2


def test_the_promise_fails_in_at_most_about_delta_of_the_samples():
    rng, delta, trials = np.random.default_rng(11), 0.1, 400
    broken = returned = 0
    for _ in range(trials):
        confidence = rng.random(150)
        choice = threshold_by_error(Sample(Rows.of(confidence, rng.random(150) < confidence)), 0.1, delta=delta)
        broken += true_error(choice.threshold) > 0.1
        returned += not np.isnan(choice.threshold)
    assert broken <= binom.ppf(0.999, trials, delta)
    assert returned > 0.9 * trials


def test_the_promise_holds_over_dialogues_where_turns_depend_on_each_other():
    """Dialogues of 5 turns that are right or wrong together: a bound over turns would break it far too often."""
    rng, delta, trials = np.random.default_rng(12), 0.1, 200
    broken = returned = 0
    for _ in range(trials):
        confidence = rng.random(150)
        right = np.repeat(rng.random(150) < confidence, 5)
        rows = Rows(np.repeat(confidence, 5), right, np.ones(750, bool), np.ones(750), np.repeat(np.arange(150), 5))
        choice = threshold_by_error(Sample(rows), 0.15, delta=delta)
        broken += true_error(choice.threshold) > 0.15
        returned += not np.isnan(choice.threshold)
    assert choice.guarantee.method == BOUNDED
    assert broken <= binom.ppf(0.999, trials, delta)
    assert returned > 0.9 * trials


def test_dialogues_of_one_turn_are_held_to_the_stricter_bound():
    rng = np.random.default_rng(2)
    confidence = rng.random(200)
    right = rng.random(200) < confidence
    plain_rows = Rows.of(confidence, right)
    alone = Rows(confidence, right, np.ones(200, bool), np.ones(200), np.arange(200))
    exact, bounded = (threshold_by_error(Sample(rows), 0.1, delta=0.1) for rows in (plain_rows, alone))
    assert bounded.nonreturn >= exact.nonreturn
    assert bounded.guarantee.upper is None


def test_the_hoeffding_bentkus_p_value_by_hand():
    """20 dialogues of 2 turns, no error at the top: mean 0, so p = min((1 - a)^20, e (1 - a)^20) = .8^20 = .0115."""
    rows = Rows(np.ones(40), np.ones(40, bool), np.ones(40, bool), np.ones(40), np.repeat(np.arange(20), 2))
    assert threshold_by_error(Sample(rows), 0.2, delta=0.0116).nonreturn == 0
    assert np.isnan(threshold_by_error(Sample(rows), 0.2, delta=0.0115).threshold)


def test_row_order_does_not_change_a_threshold():
    order = np.random.default_rng(0).permutation(10)
    turned = Rows(*(part[order] for part in (TEN.confidence, TEN.right, TEN.answered, TEN.weight)))
    for choose in (
        lambda rows: threshold_by_cost(Sample(rows), 0.3),
        lambda rows: threshold_by_error(Sample(rows), 0.1),
        lambda rows: threshold_by_error(Sample(rows), 0.6, delta=0.2),
        lambda rows: threshold_by_nonreturn(Sample(rows), 0.3),
    ):
        assert choose(TEN).to_dict() == choose(turned).to_dict()


def test_a_choice_is_strict_json_with_the_keys_scripts_rely_on():
    shown = json.loads(json.dumps(threshold_by_cost(Sample(TEN), 0.4, name="guide").to_dict(), allow_nan=False))
    assert {"threshold", "nonreturn", "error", "missed_chance", "cost", "guarantee"} <= shown.keys()
    assert shown["guarantee"] is None
    assert shown["cost"] == pytest.approx(0.1 + 0.4 * 0.4)
    assert len(shown["cost_path"]) == 3
    assert threshold_by_cost(Sample(TEN), 0.4).frame().height == 3


def test_returning_nothing_is_null_with_a_reason():
    shown = threshold_by_error(Sample(TEN), 0.01, delta=0.01).to_dict()
    assert shown["threshold"] is None
    assert "10 inputs are too few to promise an error rate of at most 1 %" in shown["why"]
    json.dumps(shown, allow_nan=False)


def test_infinite_confidences_still_give_json():
    rows = Rows.of([-np.inf, 0.0, np.inf], [False, True, True])
    json.dumps(threshold_by_nonreturn(Sample(rows), 0.0).to_dict(), allow_nan=False)


def test_a_system_that_only_withholds_has_one_choice():
    rows = Rows(np.zeros(3), np.zeros(3, bool), np.zeros(3, bool), np.ones(3))
    assert np.isnan(threshold_by_cost(Sample(rows), 0.5).threshold)
    assert np.isnan(threshold_by_error(Sample(rows), 0.1, delta=0.1).threshold)
    with pytest.raises(UsageError, match=r"itself withholds 100 % of the inputs, more than 50 %"):
        threshold_by_nonreturn(Sample(rows), 0.5, name="guide")


@pytest.mark.parametrize("seed", range(5))
def test_the_printed_threshold_returns_the_same_answers(seed):
    scores = np.random.default_rng(seed).normal(size=200)
    rows = Rows.of(scores, scores > np.random.default_rng(seed + 1).normal(size=200))
    for stretch in threshold_by_cost(Sample(rows), 0.3).path[:-1]:
        assert ((scores >= float(stretch.printed_threshold)) == (scores >= stretch.threshold)).all()
        assert len(stretch.printed_threshold) <= len(repr(stretch.threshold))
    choice = threshold_by_nonreturn(Sample(rows), 0.2)
    assert ((scores >= float(choice.printed_threshold)) == (scores >= choice.threshold)).all()


def test_a_threshold_from_a_tally_is_that_of_the_rows():
    memory, elsewhere = Sample(TEN), tally_sample(tally_of(TEN))
    for choose in (
        lambda sample: threshold_by_cost(sample, 0.3),
        lambda sample: threshold_by_error(sample, 0.6, delta=0.2),
        lambda sample: threshold_by_nonreturn(sample, 0.3),
    ):
        assert choose(memory).to_dict() == choose(elsewhere).to_dict()


def test_a_bucket_for_each_dialogue_gives_the_promise_of_dialogues():
    rng = np.random.default_rng(3)
    unit = np.arange(600) // 3
    rows = Rows(rng.random(600), rng.random(600) < 0.9, np.ones(600, bool), rng.random(600) + 0.5, unit)
    memory, elsewhere = Sample(rows), tally_sample(tally_of(rows, unit))
    one, two = (threshold_by_error(sample, 0.15, delta=0.1).to_dict() for sample in (memory, elsewhere))
    assert one == two
    assert one["guarantee"]["method"] == BOUNDED


def test_the_heaviest_bucket_bounds_what_a_tally_promises():
    """Twenty buckets of 2 rows give .8^20 = .0115; with all in ten buckets of 4 it is .8^10 = .107."""
    rows = Rows(np.ones(40), np.ones(40, bool), np.ones(40, bool), np.ones(40))
    pairs, fours = (tally_sample(tally_of(rows, np.arange(40) // size)) for size in (2, 4))
    assert threshold_by_error(pairs, 0.2, delta=0.0116).nonreturn == 0
    assert np.isnan(threshold_by_error(pairs, 0.2, delta=0.0115).threshold)
    assert threshold_by_error(fours, 0.2, delta=0.108).nonreturn == 0
    assert np.isnan(threshold_by_error(fours, 0.2, delta=0.107).threshold)


def test_the_promise_holds_over_buckets_of_dialogues():
    rng, delta, trials = np.random.default_rng(12), 0.1, 60
    broken = returned = 0
    for _ in range(trials):
        confidence = rng.random(300)
        right = np.repeat(rng.random(300) < confidence, 5)
        rows = Rows(np.repeat(confidence, 5), right, np.ones(1500, bool), np.ones(1500))
        bucket = np.repeat(rng.integers(0, 1024, 300), 5)
        choice = threshold_by_error(tally_sample(tally_of(rows, bucket)), 0.2, delta=delta)
        broken += true_error(choice.threshold) > 0.2
        returned += not np.isnan(choice.threshold)
    assert broken <= binom.ppf(0.999, trials, delta)
    assert returned > 0.5 * trials


def test_a_printed_threshold_returns_the_same_answers_where_confidences_were_joined():
    scores = np.sort(np.random.default_rng(4).random(300))
    rows = Rows.of(scores, scores > np.random.default_rng(5).random(300))
    sample = tally_sample(tally_of(rows).joined(ConfidenceGrid.over(1.0, 4)))
    assert sample.sweep.upper is not None
    for choice in (threshold_by_nonreturn(sample, most) for most in (0.1, 0.3, 0.6)):
        assert ((scores >= float(choice.printed_threshold)) == (scores >= choice.threshold)).all()
    for stretch in threshold_by_cost(sample, 0.3).path[:-1]:
        assert ((scores >= float(stretch.printed_threshold)) == (scores >= stretch.threshold)).all()


GRIDS = st.integers(2, 6).flatmap(
    lambda places: st.integers(0, 100 * 10**places).map(lambda step: step / 10**places)  # percents too
)
CONFIDENCES = st.one_of(
    GRIDS,
    GRIDS.map(lambda value: value / 100),
    st.floats(0, 1, width=32),
    st.floats(-40, 0),
    st.floats(allow_nan=False),
    st.sampled_from([float("inf"), float("-inf"), 1e300, -1e300, 5e-324, -5e-324, 1e6, 999999.5, 1e-4, 100.0]),
)


def neighbours(value):
    """A confidence and the next lower one, often as close as a grid or a float allows."""
    return st.tuples(
        st.just(value),
        st.one_of(CONFIDENCES, st.sampled_from([math.nextafter(value, -math.inf), value - 1e-3])),
    )


def returned_by(text, confidences):
    return [one for one in confidences if one >= float(text)]


@pytest.mark.parametrize(
    ("threshold", "below", "text"),
    [
        (48.4, 48.3, "48.4"),
        (0.606, 0.605, "0.606"),
        (0.95, 0.3, "0.9"),
        (48.4, 30.0, "48"),
        (100.0, 98.5, "100"),
        (0.95, float("-inf"), "0"),
        (-0.25, -0.75, "-0.3"),
        (-35.25, float("-inf"), "-36"),
        (0.1 + 0.2, 0.3, "0.30000000000000004"),
        (0.00012, 0.00002, "0.0001"),
        (0.000056, 0.000052, "5.6e-5"),
        (12345678.0, 12345677.0, "12345678"),
        (12345678.0, 5.0, "1e7"),
        (float("inf"), 0.5, "inf"),
        (float("-inf"), float("-inf"), "-inf"),
        (float("nan"), 0.5, "return nothing"),
    ],
)
def test_a_threshold_is_printed_in_as_few_characters_as_return_the_same_answers(threshold, below, text):
    assert printed_cutoff(threshold, below) == text


@given(CONFIDENCES.flatmap(neighbours))
def test_a_printed_threshold_read_back_returns_the_same_answers_and_none_is_shorter(pair):
    threshold, below = max(pair), min(pair)
    if threshold == below:
        return
    text = printed_cutoff(threshold, below)
    assert returned_by(text, [below, threshold]) == [threshold]
    assert threshold_text(float(text)) == text
    assert len(text) == plain.shortest_rounding(threshold, below)


@pytest.mark.parametrize("places", [1, 2])
def test_no_text_at_all_is_shorter_on_a_grid_of_few_decimals(places):
    """Every text of rates with at most as many decimals is tried."""
    texts = ["0", "1", *(f"0.{step:0{d}}" for d in range(1, places + 1) for step in range(10**d))]
    grid = [step / 10**places for step in range(10**places + 1)]
    for below, threshold in itertools.combinations(grid[:: 3 if places == 2 else 1], 2):
        least = min(len(text) for text in texts if below < float(text) <= threshold)
        assert len(printed_cutoff(threshold, below)) == least


@given(st.lists(CONFIDENCES, min_size=1, max_size=12), st.integers(0, 2**12))
def test_every_cutoff_of_a_curve_is_printed_so_that_it_returns_the_same_answers(scores, flags):
    right = [bool(flags >> place & 1) for place in range(len(scores))]
    curve = error_return(Rows.of(scores, right).sweep())
    for threshold, short in zip(curve.threshold[:-1], short_thresholds(curve, curve.threshold)[:-1], strict=True):
        assert curve.at_threshold(short) == curve.at_threshold(threshold)
        assert curve_cutoff(curve, threshold) == threshold_text(short)
