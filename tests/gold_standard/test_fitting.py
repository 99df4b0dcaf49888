import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from demur.errors import DataError, UsageError
from demur.gold_standard.curves import FAMILIES
from demur.gold_standard.fitting import FEW_SUBJECTS, FitOptions, fit_curve
from gold_standard.counted import counted, plateau, share, simulated, simulated_counts, straight
from reference import gold_fits as plain

GRID = np.linspace(0, 1, 41)
KINDS = tuple(FAMILIES)


def fitted(x, y, kind="auto", direction="harmful", degree=3, **known):
    return fit_curve(counted(x, y, **known), FitOptions(kind=kind, direction=direction, degree=degree))


def rated(rates, n):
    """The same trials twice: as rates, and written out one by one."""
    x = np.linspace(0, 1, len(rates))
    good = np.rint(np.array(rates) * n)
    places = np.repeat(x, n)
    outcomes = np.concatenate([np.arange(n) < one for one in good]).astype(float)
    subject = np.repeat(np.arange(len(rates)), n)
    rates_known = {"n": np.full(len(rates), n), "kind": "rates", "subject": np.arange(len(rates))}
    return (x, good / n, rates_known), (places, outcomes, {"subject": subject})


class TestLogistic:
    @pytest.mark.parametrize("seed", range(4))
    def test_is_that_of_scikit_learn_with_the_prior_trial_added(self, seed):
        x, y, _ = simulated(straight, subjects=3, seed=seed)
        places, shares, sizes = (np.array(part) for part in plain.with_prior_trials(x, y, np.ones(len(x))))
        each = np.concatenate([places, places])[:, None]
        outcome = np.repeat([1, 0], len(places))
        weights = np.concatenate([sizes * shares, sizes * (1 - shares)])
        model = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(each, outcome, sample_weight=weights)
        ours = fitted(x, y, "logistic")(GRID)
        assert ours == pytest.approx(model.predict_proba(GRID[:, None])[:, 1], abs=2e-5)

    @pytest.mark.parametrize("seed", range(4))
    def test_is_that_of_plain_newton_with_the_prior_trial_added(self, seed):
        x, y, _ = simulated(straight, subjects=2, seed=seed)
        level, slope = plain.logistic(*plain.with_prior_trials(x, y, np.ones(len(x))))
        assert fitted(x, y, "logistic")(GRID) == pytest.approx(share(level + slope * GRID), abs=2e-5)

    def test_of_scores_is_the_quasi_likelihood_of_their_shares(self):
        rng = np.random.default_rng(1)
        x = rng.integers(0, 11, 80) / 10
        y = 1 + 6 * np.clip(straight(x) + rng.normal(0, 0.15, 80), 0, 1)
        level, slope = plain.logistic(*plain.with_prior_trials(x, (y - 1) / 6, np.ones(80)))
        ours = fit_curve(counted(x, y, kind="scores", lower=1.0, upper=7.0), FitOptions(kind="logistic"))
        assert ours(GRID) == pytest.approx(1 + 6 * share(level + slope * GRID), abs=1e-4)

    @pytest.mark.parametrize(("direction", "level"), [("harmful", True), ("helpful", False), ("any", False)])
    def test_a_slope_against_the_direction_is_level(self, direction, level):
        x, y, _ = simulated(lambda x: straight(1 - x), subjects=5)
        curve = fitted(x, y, "logistic", direction)(GRID)
        assert (np.ptp(curve) < 1e-6) == level
        assert level or curve[-1] - curve[0] > 0.5


class TestLeastSquares:
    @pytest.mark.parametrize(("kind", "degree"), [("linear", 1), ("polynomial", 2), ("polynomial", 3)])
    @given(st.integers(0, 10_000))
    def test_equal_polyfit_with_weights(self, kind, degree, seed):
        rng = np.random.default_rng(seed)
        x = np.arange(8) * 3.0 + rng.random(8)
        n, rate = rng.integers(1, 20, 8), rng.integers(0, 5, 8) / 4
        ours = fit_curve(counted(x, rate, n=n, kind="rates"), FitOptions(kind=kind, degree=degree))
        theirs = np.polyfit(x, rate, degree, w=np.sqrt(n))
        grid = np.linspace(x[0], x[-1], 23)
        assert ours(grid) == pytest.approx(np.polyval(theirs, grid), abs=1e-6)

    def test_a_line_through_unbounded_scores_has_the_error_of_the_textbook(self):
        rng = np.random.default_rng(0)
        x = np.repeat(np.arange(10.0), 3)
        y = 50 - 2 * x + rng.normal(0, 4, 30)
        ours = fit_curve(counted(x, y, kind="scores", upper=None), FitOptions(kind="linear"))
        line = np.polynomial.Polynomial.fit(x, y, 1)
        sigma2 = ((y - line(x)) ** 2).sum() / 28
        at = np.array([0.0, 3.3, 9.0])
        wanted = np.sqrt(sigma2 * (1 / 30 + (at - x.mean()) ** 2 / ((x - x.mean()) ** 2).sum()))
        assert ours.model_error(at) == pytest.approx(wanted, rel=1e-6)
        assert ours(at) == pytest.approx(line(at), abs=1e-6)


class TestIsotonic:
    @pytest.mark.parametrize("direction", ["harmful", "helpful"])
    def test_is_that_of_scikit_learn_between_places_too(self, direction):
        x, y, _ = simulated(straight, subjects=4, seed=2)
        theirs = IsotonicRegression(increasing=direction == "helpful", out_of_bounds="clip").fit(x, y)
        inside = np.linspace(x.min(), x.max(), 57)
        assert fitted(x, y, "isotonic", direction)(inside) == pytest.approx(theirs.predict(inside), abs=1e-6)

    def test_its_error_is_that_of_the_mean_of_those_pooled(self):
        fit = fitted([0, 0, 1, 1, 2, 2], [1, 1, 1, 0, 0, 0], "isotonic")
        rates = [(2 + 0.5) / 3, (1 + 0.5) / 3, 0.5 / 3]
        wanted = [np.sqrt(rate * (1 - rate) / 3) for rate in rates]
        assert fit.model_error(np.array([0.0, 1.0, 2.0])) == pytest.approx(wanted)

    def test_scores_at_places_of_their_own_vary_as_much_as_they_do_at_shared_places(self):
        rng = np.random.default_rng(0)
        x, noise = np.sort(rng.random(400)), rng.normal(0, 0.1, 400)
        fit = fit_curve(counted(x, np.clip(0.8 - 0.5 * x + noise, 0, 1), kind="scores"), FitOptions(kind="isotonic"))
        assert fit.dispersion == pytest.approx(0.01, rel=0.2)


class TestRates:
    @pytest.mark.parametrize("kind", KINDS)
    def test_equal_the_same_trials_one_by_one(self, kind):
        rates, trials = rated([0.9, 0.95, 0.8, 0.6, 0.65, 0.2, 0.1], 20)
        curves = [fit_curve(counted(x, y, **known), FitOptions(kind=kind))(GRID) for x, y, known in (rates, trials)]
        assert curves[0] == pytest.approx(curves[1], abs=1e-6)

    @pytest.mark.parametrize("kind", ["spline", "logistic", "isotonic"])
    def test_have_the_same_error_as_the_trials(self, kind):
        rates, trials = rated([0.9, 0.95, 0.8, 0.6, 0.65, 0.2, 0.1], 20)
        errors = [
            fit_curve(counted(x, y, **known), FitOptions(kind=kind)).model_error(GRID)
            for x, y, known in (rates, trials)
        ]
        assert errors[0] == pytest.approx(errors[1], rel=1e-5)


class TestScale:
    def test_a_curve_of_scores_is_that_of_their_shares_stretched(self):
        rng = np.random.default_rng(4)
        x = rng.integers(0, 21, 200) / 20
        y = np.clip(straight(x) + rng.normal(0, 0.1, 200), 0, 1)
        one = fit_curve(counted(x, y, kind="scores"), FitOptions(kind="spline"))
        other = fit_curve(counted(x, 1 + 6 * y, kind="scores", lower=1.0, upper=7.0), FitOptions(kind="spline"))
        assert other(GRID) == pytest.approx(1 + 6 * one(GRID), abs=1e-6)
        assert other.model_error(GRID) == pytest.approx(one.model_error(GRID), rel=1e-6)

    @pytest.mark.parametrize("kind", KINDS)
    def test_units_of_x_do_not_matter(self, kind):
        x, y, _ = simulated(straight, subjects=5)
        one, other = fitted(x, y, kind), fitted(100 * x - 30, y, kind)
        assert other(100 * GRID - 30) == pytest.approx(one(GRID), abs=1e-6)

    def test_scores_that_vary_less_than_trials_have_less_error(self):
        x = np.tile(np.linspace(0, 1, 20), 10)
        y = np.clip(straight(x) + np.random.default_rng(0).normal(0, 0.05, 200), 0, 1)
        shares = fit_curve(counted(x, y, kind="scores"), FitOptions(kind="logistic"))
        assert shares.dispersion < 0.05
        outcomes = fit_curve(counted(x, np.rint(y)), FitOptions(kind="logistic"))
        assert outcomes.dispersion == 1
        assert (shares.model_error(GRID) < 0.5 * outcomes.model_error(GRID)).all()


class TestCurve:
    @pytest.mark.parametrize("kind", KINDS)
    def test_nothing_is_known_outside_the_trials(self, kind):
        curve = fitted([0.2, 0.4, 0.6, 0.8, 0.8], [1, 1, 0, 1, 0], kind)
        known = np.isfinite(curve(np.array([0.19, 0.2, 0.5, 0.8, 0.81])))
        assert known.tolist() == [False, True, True, True, False]

    def test_keeps_the_shape_of_the_places_asked_for(self):
        assert fitted([0.0, 1.0], [1, 0], "linear")(np.zeros((2, 3))).shape == (2, 3)

    @pytest.mark.parametrize(("direction", "sign"), [("harmful", -1), ("helpful", 1)])
    @given(st.integers(0, 10_000), st.sampled_from(["spline", "isotonic", "logistic"]))
    def test_is_monotone_whatever_came_out(self, direction, sign, seed, kind):
        rng = np.random.default_rng(seed)
        x, y = rng.integers(0, 12, 60) / 11, rng.integers(0, 2, 60)
        curve = fitted(x, y, kind, direction)(np.linspace(x.min(), x.max(), 200))
        assert (sign * np.diff(curve) >= -1e-9).all()

    def test_where_any_direction_will_do_it_may_turn(self):
        x, y, _ = simulated(lambda x: 0.1 + 3.2 * x * (1 - x), subjects=30, trials=60)
        curve = fitted(x, y, "spline", "any")
        assert curve(np.array([0.5]))[0] > curve(np.array([0.0]))[0] + 0.5
        assert curve(np.array([0.5]))[0] > curve(np.array([1.0]))[0] + 0.5

    @pytest.mark.parametrize("kind", ["auto", *KINDS])
    @pytest.mark.parametrize("y", [np.ones(40), np.zeros(40), np.arange(40) < 20], ids=["all", "none", "step"])
    def test_is_finite_and_within_bounds_where_success_and_failure_are_separated(self, kind, y):
        fit = fitted(np.arange(40) / 39, y, kind, subject=np.arange(40) % 8)
        assert np.isfinite(fit(GRID)).all()
        assert np.isfinite(fit.model_error(GRID)).all()
        if kind == "auto" or FAMILIES[kind].on_logit or FAMILIES[kind].directed:
            assert fit(GRID).min() >= 0
            assert fit(GRID).max() <= 1

    def test_all_successes_are_close_to_one_and_not_at_it(self):
        curve = fitted(np.arange(40) / 39, np.ones(40), "spline")(GRID)
        assert (curve > 0.95).all()
        assert (curve < 1).all()

    def test_a_straight_truth_is_found(self):
        x, y, subject = simulated(straight, subjects=50, trials=100)
        assert fitted(x, y, subject=subject)(GRID) == pytest.approx(straight(GRID), abs=0.05)


class TestModelError:
    def test_of_a_logistic_is_that_of_its_information(self):
        x, y, _ = simulated(straight, subjects=4)
        fit = fitted(x, y, "logistic")
        places, _, sizes = (np.array(part) for part in plain.with_prior_trials(x, y, np.ones(len(x))))
        rate = fit(places)
        design = np.stack([np.ones_like(places), places], axis=1)
        covariance = np.linalg.inv(design.T @ (design * (sizes * rate * (1 - rate))[:, None]))
        grid = np.stack([np.ones_like(GRID), GRID], axis=1)
        wanted = np.sqrt(np.einsum("mi,ij,mj->m", grid, covariance, grid))
        assert fit.model_error(GRID) == pytest.approx(wanted, rel=1e-5)

    def test_halves_with_four_times_the_trials(self):
        x, y, _ = simulated(straight, subjects=10)
        one, four = (fitted(np.tile(x, times), np.tile(y, times), "logistic") for times in (1, 4))
        assert four.model_error(GRID) == pytest.approx(one.model_error(GRID) / 2, rel=0.05)


class TestRefits:
    @pytest.mark.parametrize("kind", KINDS)
    def test_with_everyone_once_is_the_curve(self, kind):
        x, y, subject = simulated(straight, subjects=6)
        fit = fit_curve(counted(x, y, subject=subject), FitOptions(kind=kind))
        again = fit.refits(np.ones((3, 6)))
        assert again.shape == (3, fit.family.size)
        assert fit.predictor(GRID, again)[2] == pytest.approx(fit.predictor(GRID), abs=1e-4)

    def test_batches_do_not_matter_and_progress_is_told(self, monkeypatch):
        counts = simulated_counts(straight, subjects=6)
        fit = fit_curve(counts, FitOptions(kind="spline"))
        weights = np.random.default_rng(0).integers(0, 3, (7, 6)) + 0.5
        whole = fit.refits(weights)
        monkeypatch.setattr("demur.gold_standard.curves._BATCH", 3 * (len(counts.places) + 5))
        told = []
        parts = fit.refits(weights, step=lambda *what: told.append(what), what="refitting A")
        assert parts == pytest.approx(whole, abs=1e-6)
        assert told == [("refitting A", done, 7) for done in (0, 3, 6, 7)]


class TestAuto:
    def test_many_subjects_get_a_spline(self):
        fit = fit_curve(simulated_counts(straight, subjects=FEW_SUBJECTS, trials=20), FitOptions())
        assert fit.kind == "spline"
        assert fit.reason == f"{FEW_SUBJECTS} subjects"

    def test_few_subjects_get_a_logistic_curve_where_it_suffices(self):
        fits = [
            fit_curve(simulated_counts(straight, subjects=8, trials=60, seed=seed), FitOptions()) for seed in range(9)
        ]
        assert [fit.kind for fit in fits].count("logistic") >= 7
        assert "8 subjects, fewer than 15" in {fit.reason for fit in fits}

    def test_few_subjects_get_a_spline_where_the_truth_is_flat_and_then_drops(self):
        fits = [
            fit_curve(simulated_counts(plateau, subjects=8, trials=60, seed=seed), FitOptions()) for seed in range(5)
        ]
        assert {fit.kind for fit in fits} == {"spline"}
        assert fits[0].reason == "8 subjects, fewer than 15, but a logistic curve predicts subjects left out less well"

    def test_few_subjects_get_a_line_where_scores_have_no_bound(self):
        x = np.tile(np.linspace(0, 1, 12), 5)
        y = 40 - 9 * x + np.random.default_rng(0).normal(0, 5, 60)
        counts = counted(x, y, subject=np.repeat(np.arange(5), 12), kind="scores", upper=None)
        assert fit_curve(counts, FitOptions()).kind == "linear"

    def test_few_places_get_a_simple_curve_however_many_subjects(self):
        fit = fit_curve(simulated_counts(straight, subjects=30, grid=3), FitOptions())
        assert (fit.kind, fit.reason) == ("logistic", "3 distinct x")

    @pytest.mark.parametrize("kind", KINDS)
    def test_what_is_asked_for_is_fitted(self, kind):
        fit = fit_curve(simulated_counts(straight, subjects=5), FitOptions(kind=kind))
        assert (fit.kind, fit.reason) == (kind, "asked for")

    @pytest.mark.parametrize(
        ("kind", "link"),
        [("spline", "logit"), ("logistic", "logit"), ("linear", "identity"), ("isotonic", "identity")],
    )
    def test_bounded_curves_that_can_are_fitted_on_the_logit_scale(self, kind, link):
        assert fit_curve(simulated_counts(straight, subjects=5), FitOptions(kind=kind)).link == link


class TestFaults:
    def test_one_place_is_refused(self):
        with pytest.raises(DataError, match=r"all trials of A are at one x, 0\.3, and a curve needs several"):
            fit_curve(counted([0.3, 0.3], [1, 0]), FitOptions(), who="A")

    def test_a_logistic_curve_needs_an_upper_bound(self):
        with pytest.raises(UsageError, match="a logistic curve needs the upper bound of the metric; `upper` gives it"):
            fit_curve(counted([0, 1], [3, 9], kind="scores", upper=None), FitOptions(kind="logistic"))

    def test_an_isotonic_curve_needs_a_direction(self):
        with pytest.raises(UsageError, match="an isotonic curve is monotone: `direction` harmful or helpful"):
            fit_curve(counted([0, 1], [1, 0]), FitOptions(kind="isotonic", direction="any"))

    def test_a_polynomial_needs_more_places_than_its_degree(self):
        with pytest.raises(DataError, match=r"A: a polynomial of degree 3 needs .* more than 3 distinct x; got 3"):
            fit_curve(counted([0, 1, 2], [1, 0, 1]), FitOptions(kind="polynomial"), who="A")
