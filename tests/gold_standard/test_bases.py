import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.gold_standard.curves import FAMILIES, PIECES
from pages import read_page
from reference import gold_fits as plain

RANGES = st.tuples(st.floats(-50, 50), st.floats(0.1, 100)).map(lambda pair: (pair[0], pair[0] + pair[1]))
PARTS = st.lists(st.floats(0, 1), min_size=1, max_size=20)
STEPS = st.lists(st.integers(-40, 40), min_size=2, max_size=9, unique=True).map(sorted)


def spline(direction=None, low=0.0, high=1.0):
    return FAMILIES["spline"](low, high, "logit", direction)


class TestSplines:
    @given(RANGES, PARTS)
    def test_are_those_of_scipy(self, limits, parts):
        low, high = limits
        x = low + np.array([0.0, *parts, 1.0]) * (high - low)
        assert spline(None, low, high).rows(x) == pytest.approx(plain.b_splines(x, low, high, PIECES), abs=1e-8)

    @given(PARTS)
    def test_add_up_to_one(self, parts):
        assert spline().rows(np.array(parts)).sum(axis=1) == pytest.approx(1.0, abs=1e-12)

    def test_are_level_beyond_the_range(self):
        rows = spline().rows(np.array([-3.0, 0.0, 1.0, 9.0]))
        assert rows[0] == pytest.approx(rows[1])
        assert rows[3] == pytest.approx(rows[2])

    def test_are_three_more_than_there_are_stretches(self):
        assert spline().size == spline("falling").size == PIECES + 3

    @pytest.mark.parametrize(("direction", "sign"), [("falling", -1), ("rising", 1)])
    @given(st.lists(st.floats(0, 50), min_size=PIECES + 2, max_size=PIECES + 2), st.floats(-50, 50))
    def test_coefficients_that_are_not_negative_give_a_monotone_curve(self, direction, sign, steps, first):
        curve = spline(direction).rows(np.linspace(0, 1, 301)) @ np.array([first, *steps])
        assert (sign * np.diff(curve) >= -1e-9).all()

    @pytest.mark.parametrize("direction", ["falling", "rising"])
    def test_span_the_same_curves_whether_held_monotone_or_not(self, direction):
        x = np.linspace(0, 1, 57)
        wanted = spline().rows(x) @ np.random.default_rng(0).normal(size=PIECES + 3)
        rows = spline(direction).rows(x)
        found = np.linalg.lstsq(rows, wanted, rcond=None)[0]
        assert rows @ found == pytest.approx(wanted, abs=1e-9)

    def test_all_steps_are_held_but_not_the_level_they_start_from(self):
        assert spline("falling").bounded.tolist() == [False] + [True] * (PIECES + 2)
        assert not spline(None).bounded.any()

    def test_bend_where_stretches_meet(self):
        assert spline(None, 2.0, 4.0).breaks == pytest.approx(tuple(np.arange(2, 4.01, 0.2)))


class TestRoughness:
    @pytest.mark.parametrize("direction", [None, "falling", "rising"])
    @given(st.lists(st.floats(-5, 5), min_size=PIECES + 3, max_size=PIECES + 3))
    def test_is_the_sum_of_squared_second_differences(self, direction, weights):
        wanted = sum((weights[k] - 2 * weights[k + 1] + weights[k + 2]) ** 2 for k in range(len(weights) - 2))
        sign = -1 if direction == "falling" else 1
        found = np.array(weights if direction is None else [weights[0], *(sign * np.diff(weights))])
        assert found @ spline(direction).roughness @ found == pytest.approx(wanted, abs=1e-9)

    @pytest.mark.parametrize("direction", ["falling", "rising"])
    def test_a_straight_line_has_none(self, direction):
        found = np.array([2.0, *[0.3] * (PIECES + 2)])
        curve = spline(direction).rows(np.linspace(0, 1, 21)) @ found
        assert np.diff(curve, n=2) == pytest.approx(0, abs=1e-12)
        assert found @ spline(direction).roughness @ found == pytest.approx(0, abs=1e-12)

    @pytest.mark.parametrize("kind", ["logistic", "linear", "polynomial"])
    def test_other_curves_have_none(self, kind):
        assert not FAMILIES[kind](0.0, 1.0, "logit").roughness.any()


class TestHats:
    @given(STEPS, st.lists(st.floats(-50, 50), min_size=1, max_size=20))
    def test_interpolate_between_steps_and_are_level_beyond(self, steps, places):
        basis = FAMILIES["isotonic"](steps[0], steps[-1], "identity", "falling", places=tuple(steps))
        x = np.array([*places, *steps], dtype=float)
        assert basis.rows(x) == pytest.approx(plain.hats(x, np.array(steps, dtype=float)), abs=1e-12)
        assert basis.breaks == tuple(steps)


class TestSimpleCurves:
    def test_a_logistic_has_a_level_and_a_slope_that_is_held(self):
        basis = FAMILIES["logistic"](10.0, 20.0, "logit", "falling")
        assert basis.rows(np.array([10.0, 15.0, 20.0])).tolist() == [[1, 0], [1, -0.5], [1, -1]]
        assert basis.bounded.tolist() == [False, True]
        assert FAMILIES["logistic"](10.0, 20.0, "logit", "rising").rows(np.array([20.0])).tolist() == [[1, 1]]
        assert not FAMILIES["logistic"](10.0, 20.0, "logit").bounded.any()

    @pytest.mark.parametrize(("kind", "degree", "size"), [("linear", 3, 2), ("polynomial", 3, 4), ("polynomial", 1, 2)])
    def test_polynomials_span_all_powers_up_to_their_degree(self, kind, degree, size):
        basis = FAMILIES[kind](-2.0, 5.0, "identity", "falling", degree=degree)
        x = np.linspace(-2, 5, 30)
        powers = np.vander(x, size)
        assert basis.size == size
        assert basis.rows(x) @ np.linalg.lstsq(basis.rows(x), powers, rcond=None)[0] == pytest.approx(powers, abs=1e-9)
        assert not basis.bounded.any()
        assert basis.breaks == ()


@pytest.mark.parametrize("kind", FAMILIES)
def test_the_table_of_curves_has_every_family(kind):
    table = read_page("gold_curves").partition("## Which curve")[2].partition("\n\n`--fit")[0]
    assert f"`{kind}`" in table
