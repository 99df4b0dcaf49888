import numpy as np
import pytest

from demur.gold_standard.checks import difference_text, points_text, size_of, span, variance
from reference.gold_checks import counted, gold_of, study

RATES = counted({"a": {0.0: (10, 10), 1.0: (4, 10)}})
SCORES = [("a", 0, 6), ("a", 1, 2), ("b", 0, 6), ("b", 1, 2)]


def counts_in(rows, **reading):
    return gold_of(study(rows, **reading), "linear").fit.counts


def test_a_metric_spans_its_bounds_or_else_four_standard_deviations():
    assert span(counts_in(RATES)) == 1
    assert span(counts_in(SCORES, lower=1.0, upper=7.0)) == 6
    assert span(counts_in(SCORES)) == pytest.approx(4 * 2)


def test_values_are_as_large_as_the_root_of_their_mean_square():
    assert size_of(counts_in(SCORES)) == pytest.approx(20**0.5)


def test_trials_vary_as_the_curve_says_and_never_not_at_all():
    fit = gold_of(study(RATES), "isotonic").fit
    edge = 0.5 / 21
    assert variance(fit) == pytest.approx([edge * (1 - edge), 0.4 * 0.6])


def test_scores_vary_alike_everywhere_around_a_line_and_more_than_not_at_all():
    moved = [(name, x, y + move) for name, x, y in SCORES for move in (-1, 1)]
    # Each of 8 scores is 1 off, and a line takes 2 degrees of freedom.
    assert variance(gold_of(study(moved), "linear").fit) == pytest.approx([8 / 6] * 2)
    assert (variance(gold_of(study(SCORES), "linear").fit) > 0).all()


def test_bounded_scores_vary_less_near_a_bound():
    fit = gold_of(
        study([("a", x, y) for x, y in ((0, 6.5), (0, 5.5), (1, 5), (1, 3))], lower=1.0, upper=7.0), "logistic"
    )
    near, middle = variance(fit.fit)
    assert near < middle
    assert variance(fit.fit, 0.5) == pytest.approx(0.5 * fit.fit.shares * (1 - fit.fit.shares))


@pytest.mark.parametrize(
    ("amount", "words"),
    [
        (0.0001, "less than 0.1 points"),
        (0.008, "0.8 points"),
        (0.01, "1 point"),
        (0.12, "12 points"),
        (1, "100 points"),
    ],
)
def test_rates_are_told_in_points(amount, words):
    assert difference_text(amount, counts_in(RATES)) == words


def test_scores_are_told_as_they_are():
    assert difference_text(0.12345, counts_in(SCORES)) == "0.123"


def test_points_do_not_jump_between_tenths_and_whole_ones():
    assert [points_text(amount) for amount in np.array([0.0994, 0.0995, 0.0996])] == ["9.9", "10", "10"]
