import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from demur.core.stats.resampling import Rows
from demur.core.stats.sweep import Sweep
from demur.returns import words
from demur.returns.curves import Heaps, error_return, near_enough
from demur.returns.evaluate import evaluate, returns_measures
from demur.returns.explorer import explorer_document, operating_sentence, reading_at
from demur.returns.measures import ErrorAtThreshold
from demur.returns.presentation import measure_table, of_scores
from demur.returns.table import responses
from demur.returns.tally import tally_sample
from reference.tallies import tally_of

LEVELS = (0.5, 0.7, 0.8, 0.9, 0.95, 1.0)
RATE = r"(\d+(?:\.\d+)?) %"


def heaped(counts, seed=0):
    """A log that says only a few confidences, so many inputs each."""
    confidence = np.repeat(LEVELS[: len(counts)], counts)
    right = np.random.default_rng(seed).random(confidence.size) < confidence
    return Rows.of(confidence, right)


def evaluated(rows, at=0.2, **options):
    return evaluate([tally_of(rows)], measures=returns_measures(at=at), replicates=50, **options)


WORKED = Rows.of([0.5] * 40 + [0.9] * 60, [False] * 30 + [True] * 10 + [False] * 10 + [True] * 50)
"""A hundred inputs: returning all leaves 40 %, returning those of .9 withholds 40 % and leaves 10 %."""


def test_the_value_is_that_of_the_cutoff_below_and_the_mixture_stands_beside_it():
    """At 20 % lies half of the lower heap: .1 + .3 / 2 = .25. An error of 25 % needs the cutoff at 40 %, or 20 %."""
    shown = evaluated(WORKED)[0].to_dict()["measures"]
    point, needed = shown["error_at_nonreturn"], shown["nonreturn_at_error"]
    assert (point["x"], point["value"], point["nonreturn"], point["threshold"]) == (0.2, 0.4, 0.0, 0.5)
    assert point["interpolated"]["value"] == pytest.approx(0.25)
    assert point["interpolated"]["low"] < 0.25 < point["interpolated"]["high"]
    assert (needed["limit"], needed["value"], needed["error"], needed["threshold"]) == (0.05, 1.0, 0.0, None)
    assert needed["interpolated"]["value"] == pytest.approx(0.4 + 0.6 / 2)
    json.dumps(shown, allow_nan=False)


def test_a_range_has_its_mean_and_that_of_the_mixtures():
    """From 20 % to 60 %: half of it leaves .4 and half .1; the straight line has .25, .1 and .1 * .4 / .6 there."""
    point = evaluated(WORKED, at=(0.2, 0.6))[0].to_dict()["measures"]["error_at_nonreturn"]
    assert (point["x"], point["to"], point["value"]) == (0.2, 0.6, pytest.approx(0.25))
    assert point["interpolated"]["value"] == pytest.approx(((0.25 + 0.1) / 2 + (0.1 + 0.1 * 2 / 3) / 2) / 2)
    assert not {"nonreturn", "threshold"} & point.keys()


def test_the_interval_at_a_cutoff_is_the_exact_binomial_one_of_its_error_rate():
    """40 errors of 100 inputs, Clopper-Pearson."""
    figure = evaluated(WORKED)[0].figures["error_at_nonreturn"]
    assert (figure.low, figure.high) == (pytest.approx(0.3033, abs=1e-4), pytest.approx(0.5028, abs=1e-4))


def test_the_interval_at_a_cutoff_is_wider_by_dialogues_whose_turns_err_together():
    rng = np.random.default_rng(1)
    confidence, right = rng.choice(LEVELS, 60), rng.random(60) < 0.6
    alone = Rows.of(np.repeat(confidence, 10), np.repeat(right, 10))
    grouped = Rows(alone.confidence, alone.right, alone.answered, alone.weight, np.repeat(np.arange(60), 10))
    widths = []
    for tally in (tally_of(alone), tally_of(grouped, np.repeat(np.arange(60), 10))):
        figure = evaluate([tally], replicates=200)[0].figures["error_at_nonreturn"]
        widths.append(figure.high - figure.low)
    assert widths[1] > 2 * widths[0]


def test_rows_and_their_tally_give_the_same_points():
    rows = heaped((30, 50, 40, 80))
    one, two = (tally_sample(tally_of(rows)).sweep, rows.sweep())
    assert error_return(one).point_at(0.2) == error_return(two).point_at(0.2)


def test_a_point_is_named_by_its_cutoff_where_ties_keep_it_from_the_share():
    evaluations = evaluated(WORKED)
    sentence = words.score_sentences(evaluations[0])[1]
    assert sentence.startswith(
        "No threshold withholds 20 % of the inputs: the nearest below returns every answer and leaves 40 % errors ("
    )
    assert "; the next withholds 40 % and leaves 10 %. Returning the answers between them at random would" in sentence
    rows = dict(row for row in measure_table(evaluations).rows)
    assert rows["error at 20 % non-return"].endswith(" at 0 %")
    assert rows["error at 20 % non-return, ties broken at random"].startswith("25.0 % (")
    assert of_scores(evaluations).notes[0] == (
        "guide has 2 distinct confidences; the most frequent, 0.9, is that of 60 % of the inputs"
    )


def test_without_ties_nothing_more_is_said():
    rng = np.random.default_rng(3)
    evaluations = evaluated(Rows.of(rng.random(500), rng.random(500) < 0.7))
    sentence = words.score_sentences(evaluations[0])[1]
    assert sentence.startswith("Withholding 20 % of the inputs, the least sure first, leaves ")
    assert not any("at random" in row[0] for row in measure_table(evaluations).rows)
    assert of_scores(evaluations).notes == ()


COUNTS = st.lists(st.integers(1, 60), min_size=2, max_size=6)


def rates_before(text, word):
    """The rates in percent that a text gives for a word, such as those `at X % non-return`."""
    return [float(rate) / 100 for rate in re.findall(word.replace("X", RATE), text)]


@settings(deadline=None)
@given(COUNTS, st.integers(0, 100), st.sampled_from([0.05, 0.1, 0.2, 0.35, 0.5]))
def test_no_sentence_names_a_point_that_no_threshold_reaches_without_saying_so(counts, seed, at):
    one = evaluated(heaped(counts, seed), at=at)[0]
    curve = one.curve
    near = near_enough(one.n) + 0.0006  # rates are printed with one decimal

    def is_reached(nonreturn, error):
        return any(
            abs(x - nonreturn) <= near and abs(y - error) <= 0.0006
            for x, y in zip(curve.nonreturn, curve.error, strict=True)
        )

    said = words.score_sentences(one)[1]
    claim = said.partition(" Returning the answers between them at random would")[0]
    if claim.startswith("Withholding"):
        (error,) = rates_before(claim, "leaves X errors")
        assert is_reached(at, error)
    else:
        assert claim.startswith(f"No threshold withholds {words.percent(at)} of the inputs: ")
        below, beyond = curve.point_at(at), curve.point_beyond(at)
        assert rates_before(claim, "leaves X") == pytest.approx([below.error, beyond.error], abs=0.0006)
        assert at - below.nonreturn > near - 0.0006
        assert is_reached(below.nonreturn, below.error)
    title = words.neutral_title([one], (at, at))
    for error, nonreturn in re.findall(f"{RATE} at {RATE} non-return", title):
        assert is_reached(float(nonreturn) / 100, float(error) / 100)
    document = explorer_document([one])
    points = [reading_at(system, document["at"], 0.3) for system in document["systems"]]
    text = operating_sentence(document, points)
    reached = re.findall(rf"the next threshold withholds less: .*? {RATE} \({RATE} wrong\)", text)
    for nonreturn, error in reached:
        assert is_reached(float(nonreturn) / 100, float(error) / 100)
    if not reached:
        assert is_reached(at, points[0]["error"])


@settings(deadline=None)
@given(COUNTS, st.integers(0, 100), st.floats(0, 1))
def test_the_threshold_of_a_point_reproduces_its_rates(counts, seed, at):
    rows = heaped(counts, seed)
    shown = evaluated(rows, at=at)[0].to_dict()["measures"]
    for key, rate, other in (("error_at_nonreturn", "value", "nonreturn"), ("nonreturn_at_error", "error", "value")):
        cutoff = np.inf if shown[key]["threshold"] is None else shown[key]["threshold"]
        returned = rows.confidence >= cutoff
        assert shown[key][rate] == pytest.approx((returned & ~rows.right).mean())
        assert shown[key][other] == pytest.approx(1 - returned.mean())


def test_heaps_are_counted_and_joined_confidences_are_none():
    assert Heaps.of(Sweep.of([0.9] * 3 + [0.5], [True] * 4)) == Heaps(2, 0.9, 3.0, 0.75)
    assert Heaps.of(Sweep.of([], [], withheld=3)) is None
    joined = Sweep(np.array([0.1, 0.5]), np.array([8, 1]), np.array([1, 0]), 0.0, 10, np.array([0.1, 0.6]))
    assert Heaps.of(joined) is None


def test_the_error_at_a_threshold_counts_what_it_returns():
    sweep = Sweep.of([0.9, 0.8, 0.5, 0.1], [True, False, False, False])
    assert [float(ErrorAtThreshold(cut).finish(sweep)) for cut in (0.0, 0.5, 0.9, float("nan"))] == [0.75, 0.5, 0, 0]


def test_slices_that_ties_keep_apart_are_compared_at_the_threshold_of_the_whole():
    """Slice a says .5 to all of its 40 inputs, 30 wrong, slice b .9 to all of its 60, 10 wrong."""
    halves = {"a": WORKED.confidence == 0.5, "b": WORKED.confidence == 0.9}
    parts = [
        tally_of(Rows.of(WORKED.confidence[side], WORKED.right[side]), part=f"k={k}") for k, side in halves.items()
    ]
    evaluations = evaluate([tally_of(WORKED), *parts], measures=returns_measures(at=0.5), replicates=50)
    (sentence,) = words.slice_sentences(evaluations, "guide")
    assert sentence.startswith("Of 2 slices of guide, k=b (16.7 % with 0 % withheld; ")
    assert "has the most errors at the threshold of the whole, 0.9, k=a (0 % with 100 % withheld; " in sentence


def test_a_log_of_three_answers_says_that_no_threshold_withholds_a_fifth():
    (one,) = evaluated(Rows.of([0.9, 0.8, 0.4], [True, True, False]))
    said = words.score_sentences(one)[1]
    assert said.startswith(
        "No threshold withholds 20 % of the inputs: the nearest below returns every answer and leaves"
    )
    assert "the next withholds 33.3 % and leaves 0 %" in said


def test_a_plot_says_where_no_threshold_lies_between_its_start_and_the_point_asked_for():
    """One confidence for half of the answers: the first cutoff withholds more than 20 %."""
    (one,) = evaluate(
        responses([{"id": k, "correct": k % 2 == 0, "confidence": 0.5 + 0.4 * (k < 20)} for k in range(40)])
    )
    title = words.neutral_title([one], None)
    assert title.endswith(": 50 % errors when all is returned, and no threshold withholds more and at most 20 %")
    assert "is at 50 % at 0 % non-return, and no threshold" in words.description([one], None)
