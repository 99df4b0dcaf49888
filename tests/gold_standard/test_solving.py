import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from demur.gold_standard.curves import FAMILIES, CurveBatch, means, solve
from reference import gold_fits as plain


def problem(*, cells=20, smoothness=1.0, direction="falling", link="logit", kind="spline", seed=0):
    """A problem at random places, and the counts of one curve: random ones, and a prior that keeps them finite."""
    rng = np.random.default_rng(seed)
    basis = FAMILIES[kind](0.0, 1.0, link, direction)
    x = np.concatenate([rng.random(cells), np.linspace(0, 1, 5)])
    sizes = np.concatenate([rng.integers(0, 6, cells), np.full(5, 0.2)])
    rate = 1 / (1 + np.exp(-rng.normal(0, 12) * (x - 0.5)))
    totals = np.concatenate([rng.binomial(sizes[:cells].astype(int), rate[:cells]), np.full(5, 0.1)])
    return CurveBatch(basis.rows(x), smoothness * basis.roughness, basis.bounded, link), totals, sizes


PROBLEMS = st.builds(
    problem,
    cells=st.sampled_from([3, 17, 60]),
    smoothness=st.sampled_from([0.001, 0.03, 1.0, 300.0, 30_000.0]),
    direction=st.sampled_from(["falling", "rising", None]),
    link=st.sampled_from(["logit", "identity"]),
    kind=st.sampled_from(["spline", "logistic"]),
    seed=st.integers(0, 10_000),
)


def value(case, found):
    shared, totals, sizes = case
    return plain.objective(shared.rows, shared.penalty, shared.link, totals, sizes, found)


def alone(case, start=None):
    shared, totals, sizes = case
    start = np.zeros(shared.rows.shape[1]) if start is None else start
    return solve(shared, totals[None], sizes[None], start)[0]


class TestSolve:
    @given(PROBLEMS)
    def test_does_as_well_as_the_optimiser_of_scipy(self, case):
        shared, totals, sizes = case
        theirs = plain.least(shared.rows, shared.penalty, shared.bounded, shared.link, totals, sizes)
        assert value(case, alone(case)) == pytest.approx(value(case, theirs), abs=1e-6, rel=1e-6)

    @given(PROBLEMS)
    @example(problem(cells=60, smoothness=0.001, direction="rising", link="logit", seed=8))
    @example(problem(cells=17, smoothness=0.03, direction="rising", link="identity", seed=5))
    def test_nothing_pulls_at_what_is_free_and_what_rests_is_held_down(self, case):
        shared, totals, sizes = case
        found = alone(case)
        pull = plain.gradient(shared.rows, shared.penalty, shared.link, totals, sizes, found)
        resting = shared.bounded & (found <= 0)
        pull /= np.sqrt(1e-3 + np.diag(shared.penalty) + sizes @ shared.rows**2)
        assert (found[shared.bounded] >= 0).all()
        assert pull[~resting] == pytest.approx(0, abs=1e-4)
        assert (pull[resting] >= -1e-4).all()

    @pytest.mark.parametrize("link", ["logit", "identity"])
    def test_data_that_go_the_wrong_way_give_a_level_curve_at_their_mean(self, link):
        x = np.linspace(0, 1, 11)
        basis = FAMILIES["spline"](0.0, 1.0, link, "falling")
        shared = CurveBatch(basis.rows(x), 0.001 * basis.roughness, basis.bounded, link)
        sizes, totals = np.full(11, 10.0), np.arange(11.0)
        steep = np.array([3.0, *[0.4] * (basis.size - 1)])
        for start in (np.zeros(basis.size), steep):
            curve = means(link, shared.rows @ solve(shared, totals[None], sizes[None], start)[0])
            assert curve == pytest.approx(0.5, abs=1e-5)

    @given(PROBLEMS, st.integers(0, 1000))
    def test_where_it_starts_does_not_matter(self, case, seed):
        start = np.random.default_rng(seed).normal(0, 4, case[0].rows.shape[1])
        assert value(case, alone(case, start)) == pytest.approx(value(case, alone(case)), abs=1e-7, rel=1e-9)

    @given(PROBLEMS, st.integers(0, 1000))
    def test_each_row_of_a_batch_is_what_it_would_be_alone(self, case, seed):
        shared, totals, sizes = case
        weights = np.random.default_rng(seed).integers(0, 3, (7, len(sizes))) + 0.01
        batch = solve(shared, totals * weights, sizes * weights, np.zeros(shared.rows.shape[1]))
        for row, weight in zip(batch, weights, strict=True):
            assert row == pytest.approx(alone((shared, totals * weight, sizes * weight)), abs=1e-4, rel=1e-4)

    def test_the_start_is_left_as_it_was(self):
        case = problem()
        start = np.full(case[0].rows.shape[1], 0.5)
        alone(case, start)
        assert (start == 0.5).all()

    @pytest.mark.parametrize("smoothness", [0.0, 2.0])
    def test_the_identity_link_without_bounds_is_ridge_regression(self, smoothness):
        shared, totals, sizes = problem(cells=60, smoothness=smoothness, direction=None, link="identity")
        inner = shared.rows.T @ np.diag(sizes) @ shared.rows + shared.penalty
        wanted = np.linalg.solve(inner, shared.rows.T @ totals)
        assert alone((shared, totals, sizes)) == pytest.approx(wanted, abs=1e-5)

    def test_one_coefficient_is_the_logit_of_the_rate(self):
        shared = CurveBatch(np.ones((3, 1)), np.zeros((1, 1)), np.zeros(1, dtype=bool), "logit")
        found = solve(shared, np.array([[1.0, 2.0, 3.0]]), np.array([[2.0, 2.0, 4.0]]), np.zeros(1))
        assert found[0, 0] == pytest.approx(np.log(6 / 2), abs=1e-5)

    @pytest.mark.parametrize("sign", [1.0, -1.0])
    def test_a_bound_holds_a_slope_that_would_be_negative_at_zero(self, sign):
        x = np.array([0.0, 1.0])
        shared = CurveBatch(np.stack([np.ones(2), x], axis=1), np.zeros((2, 2)), np.array([False, True]), "logit")
        totals = np.array([2.0, 8.0] if sign > 0 else [8.0, 2.0])
        level, slope = solve(shared, totals[None], np.full((1, 2), 10.0), np.zeros(2))[0]
        logit = np.log(8 / 2)
        wanted = (-logit, 2 * logit) if sign > 0 else (0.0, 0.0)
        assert (level, slope) == pytest.approx(wanted, abs=1e-5)

    @pytest.mark.parametrize("smoothness", [0.0, 1e-3, 1e5])
    @pytest.mark.parametrize("success", ["none", "all", "step"])
    def test_separated_counts_stay_finite(self, success, smoothness):
        basis = FAMILIES["spline"](0.0, 1.0, "logit", "falling")
        x = np.concatenate([np.linspace(0, 1, 30), np.linspace(0, 1, 5)])
        sizes = np.array([1e6] * 30 + [0.2] * 5)
        wanted = {"none": 0.0, "all": 1.0, "step": (x[:30] < 0.5).astype(float)}[success]
        totals = np.concatenate([1e6 * np.broadcast_to(wanted, 30), np.full(5, 0.1)])
        shared = CurveBatch(basis.rows(x), smoothness * basis.roughness, basis.bounded, "logit")
        curve = means("logit", shared.rows @ alone((shared, totals, sizes)))
        assert np.isfinite(curve).all()
        if smoothness < 1:
            assert curve[:30] == pytest.approx(np.broadcast_to(wanted, 30), abs=1e-2)

    def test_a_direction_that_nothing_informs_stays_where_the_ridge_puts_it(self):
        shared = CurveBatch(np.array([[1.0, 0.0]]), np.zeros((2, 2)), np.zeros(2, dtype=bool), "logit")
        found = solve(shared, np.array([[3.0]]), np.array([[4.0]]), np.zeros(2))
        assert found[0] == pytest.approx([np.log(3), 0.0], abs=1e-5)


class TestMeans:
    def test_the_logit_link_never_overflows(self):
        assert means("logit", np.array([-1e6, 0.0, 1e6])).tolist() == [0.0, 0.5, 1.0]

    @given(st.floats(-30, 30))
    def test_the_logit_link_is_undone_by_log_odds(self, eta):
        rate = means("logit", np.array([eta]))[0]
        assert rate == pytest.approx(1 / (1 + np.exp(-eta)), abs=1e-15)

    def test_the_identity_link_changes_nothing(self):
        assert means("identity", np.array([-2.0, 7.0])).tolist() == [-2.0, 7.0]
