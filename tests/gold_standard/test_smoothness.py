import numpy as np
import pytest

from demur.gold_standard.curves import FAMILIES, UNDERSMOOTHING, chosen_smoothness, deviance, held_out, means
from gold_standard.counted import counted, kinked, plateau, share, simulated, simulated_counts, straight


def spline(counts, direction="falling", link="logit"):
    return FAMILIES["spline"](counts.low, counts.high, link, direction)


def smoothnesses(truth, *, seeds=5, **known):
    counts = [simulated_counts(truth, seed=seed, **known) for seed in range(seeds)]
    return [chosen_smoothness(spline(one), one) for one in counts]


class TestChosenSmoothness:
    def test_a_straight_truth_is_smoothed_far_more_than_one_with_kinks(self):
        level, rough = (np.median(smoothnesses(truth, subjects=20)) for truth in (straight, kinked))
        assert level > 30 * rough

    def test_a_straight_truth_gives_a_curve_that_is_straight_on_the_logit_scale(self):
        counts = simulated_counts(straight, subjects=30, trials=60)
        basis = spline(counts)
        found = basis.estimate(counts, np.ones((1, 30)), chosen_smoothness(basis, counts), np.zeros(basis.size))[0]
        x = np.linspace(0, 1, 41)
        predictor = basis.rows(x) @ found
        line = np.polynomial.Polynomial.fit(x, predictor, 1)(x)
        assert np.abs(predictor - line).max() < 0.35
        assert np.abs(share(predictor) - straight(x)).max() < 0.06

    def test_a_kinked_truth_is_followed(self):
        counts = simulated_counts(kinked, subjects=40, trials=100)
        basis = spline(counts)
        found = basis.estimate(counts, np.ones((1, 40)), chosen_smoothness(basis, counts), np.zeros(basis.size))[0]
        x = np.array([0.05, 0.5, 0.95])
        assert share(basis.rows(x) @ found) == pytest.approx(kinked(x), abs=0.07)

    def test_is_one_of_the_powers_tried_less_what_is_kept_back(self):
        power = np.log10(np.array(smoothnesses(straight, seeds=2)) / UNDERSMOOTHING)
        assert 2 * power == pytest.approx(np.rint(2 * power), abs=1e-9)

    def test_does_not_depend_on_the_direction_asked_for(self):
        counts = simulated_counts(straight)
        assert chosen_smoothness(spline(counts, "rising"), counts) == chosen_smoothness(spline(counts, None), counts)

    @pytest.mark.parametrize("unit", [0.01, 1.0, 1000.0])
    def test_of_unbounded_scores_does_not_depend_on_their_unit(self, unit):
        rng = np.random.default_rng(0)
        x = np.repeat(np.linspace(0, 1, 20), 10)
        y = np.sin(6 * x) + rng.normal(0, 0.2, len(x))
        one, other = (counted(x, scale * y, kind="scores", upper=None) for scale in (1.0, unit))
        chosen = [chosen_smoothness(spline(counts, link="identity"), counts) for counts in (one, other)]
        assert chosen[1] == pytest.approx(chosen[0])

    def test_scores_that_vary_less_than_trials_are_smoothed_less(self):
        rng = np.random.default_rng(0)
        x = np.repeat(np.linspace(0, 1, 20), 10)
        chosen = []
        for noise in (0.01, 0.3):
            y = np.clip(kinked(x) + rng.normal(0, noise, len(x)), 0, 1)
            counts = counted(x, y, kind="scores")
            chosen.append(chosen_smoothness(spline(counts), counts))
        assert chosen[0] < 0.1 * chosen[1]

    @pytest.mark.parametrize("y", [np.ones(30), np.zeros(30), np.arange(30) < 15], ids=["all", "none", "step"])
    @pytest.mark.parametrize("kind", ["trials", "scores"])
    def test_is_finite_whatever_came_out(self, y, kind):
        counts = counted(np.arange(30) / 29, y, kind=kind)
        assert 0 < chosen_smoothness(spline(counts), counts) < 1e6


class TestHeldOut:
    def test_is_the_deviance_of_each_subject_from_a_curve_fitted_to_the_others(self):
        x, y, subject = simulated(straight, subjects=4, trials=15)
        counts = counted(x, y, subject=subject)
        basis = spline(counts)
        total = 0.0
        for left_out in range(4):
            weights = (np.arange(4) != left_out).astype(float)[None]
            found = basis.estimate(counts, weights, 5.0, np.zeros(basis.size))[0]
            rate = means("logit", basis.rows(x[subject == left_out]) @ found)
            total += sum(
                -2 * np.log(p if good else 1 - p) for p, good in zip(rate, y[subject == left_out], strict=True)
            )
        assert held_out(basis, counts, 5.0) == pytest.approx(total, rel=1e-5)

    def test_prefers_the_kind_of_curve_that_is_true(self):
        for truth, better in ((straight, "logistic"), (plateau, "spline")):
            counts = simulated_counts(truth, subjects=14, trials=80, seed=3)
            logistic = FAMILIES["logistic"](counts.low, counts.high, "logit", "falling")
            smooth = spline(counts)
            misses = {
                "logistic": held_out(logistic, counts, 0.0),
                "spline": held_out(smooth, counts, chosen_smoothness(smooth, counts)),
            }
            assert min(misses, key=misses.get) == better


class TestDeviance:
    def test_by_hand(self):
        basis = FAMILIES["spline"](0.0, 1.0, "logit", "falling")
        found = deviance(basis, np.array([0.8, 0.5]), np.array([3.0, 1.0]), np.array([4.0, 1.0]))
        assert found == pytest.approx(-2 * (3 * np.log(0.8) + np.log(0.2) + np.log(0.5)))

    def test_of_a_sure_curve_that_is_wrong_is_large_and_finite(self):
        basis = FAMILIES["spline"](0.0, 1.0, "logit", "falling")
        assert 40 < deviance(basis, np.array([1.0]), np.array([0.0]), np.array([1.0])) < 60

    def test_least_squares_differ_by_what_the_squares_differ(self):
        basis = FAMILIES["linear"](0.0, 1.0, "identity")
        totals, sizes = np.array([6.0]), np.array([3.0])
        found = [deviance(basis, np.array([level]), totals, sizes) for level in (2.0, 3.0)]
        assert found[1] - found[0] == pytest.approx(3 * (3 - 2) ** 2)
