from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as student

from demur.gold_standard.curves import FAMILIES
from demur.gold_standard.fitting import FitOptions, Performer, fit_curve
from gold_standard.counted import counted, performer_of, plateau, simulated_counts, straight
from reference import gold_fits as plain

GRID = np.linspace(0, 1, 31)
KINDS = tuple(FAMILIES)


def predictor(performance):
    return np.log(performance / (1 - performance))


def fixed(fit, *, replicates=20, level=0.95):
    """A performer whose replicates are all the curve itself."""
    noise = np.random.default_rng(0).standard_normal(replicates)
    return Performer("A", "system", fit, np.tile(fit.coefficients, (replicates, 1)), noise, level)


class TestBand:
    @pytest.mark.parametrize("kind", ["spline", "logistic", "isotonic"])
    @given(st.integers(0, 1000))
    def test_contains_the_curve_and_lies_within_the_bounds(self, kind, seed):
        one = performer_of(simulated_counts(plateau, subjects=6, trials=20, seed=seed), kind=kind, replicates=20)
        low, high = one.band(GRID)
        assert (low <= one.fit(GRID) + 1e-12).all()
        assert (high >= one.fit(GRID) - 1e-12).all()
        assert low.min() >= 0
        assert high.max() <= 1

    @pytest.mark.parametrize("kind", ["linear", "polynomial"])
    def test_of_a_line_that_leaves_the_bounds_ends_at_them(self, kind):
        one = performer_of(simulated_counts(plateau, subjects=40, trials=80), kind=kind)
        low, high = one.band(GRID)
        assert one.fit(GRID).max() > 1.02
        assert (low <= high).all()
        assert low.min() >= 0
        assert high.max() <= 1

    def test_is_student_times_the_error_on_the_logit_scale(self):
        one = performer_of(simulated_counts(straight, subjects=9), level=0.9)
        critical = student.ppf(0.95, 8)
        assert one.critical == pytest.approx(critical)
        x = np.linspace(0.3, 0.7, 31)
        low, high = one.band(x)
        assert predictor(high) - predictor(low) == pytest.approx(2 * critical * one.error(x), rel=1e-6)
        assert predictor(high) + predictor(low) == pytest.approx(2 * one.fit.predictor(x), rel=1e-6)

    def test_reaches_the_bound_where_no_trial_speaks_against_it(self):
        x = np.tile([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], 6)
        y = np.tile([1.0, 1.0, 1.0, 0.0, 0.0, 0.0], 6)
        y[2], y[3] = 0.0, 1.0  # a failure at .4 and a success at .6
        one = performer_of(counted(x, y, subject=np.repeat(np.arange(6), 6)))
        low, high = one.band(np.array([0.0, 0.3, 0.4, 0.5, 0.6, 0.7, 1.0]))
        assert (high == 1).tolist() == [True, True, False, False, False, False, False]
        assert (low == 0).tolist() == [False, False, False, False, False, True, True]

    @pytest.mark.parametrize("kind", ["spline", "logistic", "isotonic"])
    @pytest.mark.parametrize("outcome", [0.0, 1.0])
    def test_has_width_where_all_trials_come_out_alike(self, kind, outcome):
        counts = counted(np.tile(GRID, 4), np.full(4 * len(GRID), outcome), subject=np.repeat(np.arange(4), len(GRID)))
        low, high = performer_of(counts, kind=kind).band(GRID)
        assert (high - low > 0.002).all()

    @pytest.mark.parametrize("kind", ["auto", *KINDS])
    def test_is_finite_for_a_perfect_step(self, kind):
        counts = counted(np.tile(GRID, 5), np.tile(GRID < 0.5, 5), subject=np.repeat(np.arange(5), len(GRID)))
        one = performer_of(counts, kind=kind)
        for found in (*one.band(GRID), one.replicates(GRID), one.error(GRID)):
            assert np.isfinite(found).all()

    def test_is_wider_where_subjects_differ(self):
        alike, apart = (
            performer_of(simulated_counts(straight, subjects=15, spread=spread, seed=4)) for spread in (0.0, 2.0)
        )
        middle = np.array([0.5])
        assert apart.error(middle)[0] > 1.5 * alike.error(middle)[0]

    def test_of_unbounded_scores_has_no_bounds(self):
        x = np.tile(np.linspace(0, 1, 10), 6)
        y = np.random.default_rng(0).normal(0, 1, 60)
        counts = counted(x, y, subject=np.repeat(np.arange(6), 10), kind="scores", upper=None)
        one = performer_of(counts, kind="linear")
        low, high = one.band(GRID)
        assert (low + high) / 2 == pytest.approx(one.fit(GRID))
        assert low.min() < 0 < high.max()


class TestError:
    def test_is_no_less_than_that_of_independent_trials(self):
        one = performer_of(simulated_counts(straight, subjects=4, seed=1))
        assert (one.error(GRID) >= one.fit.model_error(GRID)).all()

    def test_is_the_spread_of_the_replicates_where_that_is_larger(self):
        one = performer_of(simulated_counts(straight, subjects=15, spread=2.0, seed=4))
        spread = one.fit.predictor(GRID, one.refits).std(axis=0, ddof=1)
        larger = spread > one.fit.model_error(GRID)
        assert larger.any()
        assert one.error(GRID)[larger] == pytest.approx(spread[larger])


class TestDrawn:
    @pytest.mark.parametrize("kind", ["spline", "logistic"])
    def test_spreads_as_the_error_says(self, kind):
        one = performer_of(simulated_counts(straight, subjects=6, trials=60, spread=1.0), kind=kind)
        drawn = one.replicates(GRID)
        assert drawn.shape == (60, len(GRID))
        assert predictor(drawn).std(axis=0, ddof=1) == pytest.approx(one.error(GRID), rel=1e-5)

    def test_is_the_refitted_curves_where_these_spread_widely(self):
        one = performer_of(simulated_counts(straight, subjects=15, spread=2.0, seed=4))
        spread = one.fit.predictor(GRID, one.refits).std(axis=0, ddof=1)
        larger = spread > one.fit.model_error(GRID)
        refitted = one.fit.performance(one.fit.predictor(GRID, one.refits))
        assert one.replicates(GRID)[:, larger] == pytest.approx(refitted[:, larger])

    def test_replicates_that_do_not_spread_are_drawn_by_the_models_own_error(self):
        one = fixed(fit_curve(simulated_counts(straight, subjects=6), FitOptions(kind="spline")))
        spread = predictor(one.replicates(GRID)).std(axis=0, ddof=1)
        assert spread == pytest.approx(one.fit.model_error(GRID) * one.noise.std(ddof=1), rel=1e-6)

    def test_lies_within_the_bounds_of_the_scale(self):
        x, y = np.tile(GRID, 4), np.full(4 * len(GRID), 7.0)
        counts = counted(x, y, subject=np.repeat(np.arange(4), len(GRID)), kind="scores", lower=1.0, upper=7.0)
        drawn = performer_of(counts).replicates(GRID)
        assert drawn.min() >= 1
        assert drawn.max() <= 7


class TestFigures:
    def test_subjects_and_trials_are_counted(self):
        counts = counted([0, 1, 1], [0.5, 1.0, 0.0], n=[4, 3, 2], kind="rates", subject=[0, 2, 2])
        one = fixed(fit_curve(counts, FitOptions(kind="linear")))
        assert (one.subjects, one.trials) == (2, 9)

    def test_r2_of_a_line_by_hand(self):
        one = fixed(fit_curve(counted([0, 0, 1, 1], [1, 1, 1, 0]), FitOptions(kind="linear")))
        assert one.r2 == pytest.approx(1 - 0.5 / 0.75)
        assert one.deviance_explained == one.r2

    def test_both_are_those_of_the_trials_one_by_one(self):
        x, y = [0, 0, 1, 1, 2, 2, 3, 3], [1, 1, 1, 1, 0, 1, 0, 0]
        one = fixed(fit_curve(counted(x, y), FitOptions(kind="logistic")))
        fitted = one.fit(np.array(x, dtype=float)).tolist()
        assert one.r2 == pytest.approx(plain.r2(y, [1] * 8, fitted))
        assert one.deviance_explained == pytest.approx(plain.deviance_explained(y, [1] * 8, fitted))

    def test_of_rates_both_are_of_what_each_rate_is_off_and_exceed_those_of_its_trials(self):
        x, rates = [0, 1, 2, 3], [1.0, 0.9, 0.4, 0.2]
        one = fixed(fit_curve(counted(x, rates, n=[10] * 4, kind="rates"), FitOptions(kind="logistic")))
        fitted = one.fit(np.array(x, dtype=float)).tolist()
        assert one.r2 == pytest.approx(plain.r2(rates, [10] * 4, fitted))
        assert one.deviance_explained == pytest.approx(plain.deviance_explained(rates, [10] * 4, fitted))
        outcomes = np.concatenate([np.arange(10) < 10 * rate for rate in rates])
        trials = fixed(fit_curve(counted(np.repeat(x, 10), outcomes), FitOptions(kind="logistic")))
        assert trials.fit(GRID) == pytest.approx(one.fit(GRID), abs=1e-6)
        assert trials.r2 < one.r2
        assert trials.deviance_explained < one.deviance_explained

    def test_scores_between_bounds_have_the_figures_of_their_shares(self):
        x, y = [0, 0, 1, 2, 3, 3], [7, 5, 6, 3, 1, 2]
        one = fixed(fit_curve(counted(x, y, kind="scores", lower=1.0, upper=7.0), FitOptions(kind="logistic")))
        shares = [(value - 1) / 6 for value in y]
        fitted = ((one.fit(np.array(x, dtype=float)) - 1) / 6).tolist()
        assert one.r2 == pytest.approx(plain.r2(shares, [1] * 6, fitted))
        assert one.deviance_explained == pytest.approx(plain.deviance_explained(shares, [1] * 6, fitted))

    @pytest.mark.parametrize("outcome", [0.0, 1.0])
    @pytest.mark.parametrize("kind", KINDS)
    def test_are_undefined_where_all_trials_come_out_alike(self, kind, outcome):
        one = fixed(fit_curve(counted(np.arange(8), np.full(8, outcome)), FitOptions(kind=kind)))
        assert np.isnan(one.r2)
        assert np.isnan(one.deviance_explained)

    def test_a_level_curve_explains_next_to_nothing(self):
        one = fixed(fit_curve(counted([0, 0, 1, 1], [1, 0, 1, 0]), FitOptions(kind="logistic")))
        assert one.r2 == pytest.approx(0, abs=1e-6)
        assert one.deviance_explained == pytest.approx(0, abs=1e-6)

    def test_the_level_widens_the_band_and_nothing_else(self):
        one = performer_of(simulated_counts(straight, subjects=6))
        wide = replace(one, level=0.99)
        assert (wide.band(GRID)[1] >= one.band(GRID)[1]).all()
        assert (wide.replicates(GRID) == one.replicates(GRID)).all()
