from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy.interpolate import CubicSpline

from demur.errors import UsageError
from demur.gold_standard.integrals import CurveGrid, between, integral, parts, roots
from reference import integrals as plain

SLOPES = st.floats(0.5, 200.0) | st.floats(-200.0, -0.5)
CENTRES = st.floats(-0.2, 1.2)
HEIGHTS = st.lists(st.floats(-2, 2), min_size=2, max_size=9)


def logistic(slope, centre):
    return lambda x: 1 / (1 + np.exp(-np.clip(slope * (x - centre), -700, 700)))


def logistic_area(slope, centre, low=0.0, high=1.0):
    softplus = [np.logaddexp(0, slope * (x - centre)) for x in (low, high)]
    return (softplus[1] - softplus[0]) / slope


def polyline(heights, low=0.0, high=1.0):
    """A curve of straight lines through heights at equal steps, its kinks, its area, and its area above 0."""
    knots = np.linspace(low, high, len(heights))
    step = knots[1] - knots[0]
    area = step * sum((a + b) / 2 for a, b in pairwise(heights))
    above = step * sum(positive_share(a, b) for a, b in pairwise(heights))
    return lambda x: np.interp(x, knots, heights), tuple(knots), area, above


def positive_share(a, b):
    """The mean of max(line, 0) along a line from a to b."""
    if a * b >= 0:
        return max((a + b) / 2, 0.0)
    return max(a, b) ** 2 / (2 * abs(b - a))


class TestIntegral:
    @given(SLOPES, CENTRES)
    def test_of_a_logistic_is_that_of_softplus(self, slope, centre):
        assert integral(logistic(slope, centre), 0.0, 1.0) == pytest.approx(logistic_area(slope, centre), abs=1e-11)

    @given(HEIGHTS)
    def test_of_straight_lines_is_the_sum_of_trapezoids(self, heights):
        curve, knots, area, _ = polyline(heights)
        assert integral(curve, 0.0, 1.0, knots) == pytest.approx(area, abs=1e-12)

    def test_kinks_and_jumps_that_nobody_names_are_found(self):
        curve, _, area, _ = polyline([1, -0.3, 0.2, 0.9])
        assert integral(curve, 0.0, 1.0) == pytest.approx(area, abs=1e-9)
        assert integral(lambda x: (x > 0.37).astype(float), 0.0, 1.0) == pytest.approx(0.63, abs=1e-7)

    def test_of_a_cubic_spline_is_that_of_its_pieces(self):
        spline = CubicSpline([0, 0.3, 0.35, 0.8, 1], [0.9, 0.8, 0.2, 0.3, 0.1])
        assert integral(spline, 0.0, 1.0, spline.x) == pytest.approx(float(spline.integrate(0, 1)), abs=1e-12)

    @given(st.lists(st.floats(-3, 3), min_size=1, max_size=6), st.floats(-50, 50), st.floats(0, 100))
    def test_of_a_polynomial_is_the_difference_of_its_antiderivative(self, coefficients, low, width):
        whole = np.polynomial.Polynomial(coefficients, domain=[low, low + width + 1], window=[0, 1])
        expected = whole.integ()(low + width) - whole.integ()(low)
        assert integral(whole, low, low + width) == pytest.approx(expected, rel=1e-9, abs=1e-9)

    @given(st.lists(st.floats(-1, 2), max_size=5))
    def test_breaks_change_nothing_on_a_smooth_curve_wherever_they_lie(self, breaks):
        assert integral(np.exp, 0.0, 1.0, breaks) == pytest.approx(np.e - 1, abs=1e-12)

    def test_agrees_with_adaptive_quadrature_of_another_make(self):
        def curve(x):
            return logistic(-40, 0.3)(x) * np.abs(x - 0.6) * np.cos(9 * x)

        assert integral(curve, 0.0, 1.0, [0.6]) == pytest.approx(plain.by_quad(curve, 0.0, 1.0, [0.6]), abs=1e-11)

    def test_over_a_point_is_nothing(self):
        assert integral(np.exp, 0.5, 0.5) == 0.0

    def test_a_curve_that_gives_one_number_is_level(self):
        assert integral(lambda _: 2.0, 0.0, 3.0) == pytest.approx(6.0)

    def test_a_curve_undefined_somewhere_has_no_integral(self):
        assert np.isnan(integral(lambda x: np.where(x < 0.5, np.nan, 1.0), 0.0, 1.0))

    def test_large_amounts_are_exact_in_proportion(self):
        assert integral(lambda x: 1e9 * np.exp(x), 0.0, 1.0) == pytest.approx(1e9 * (np.e - 1), rel=1e-12)

    @pytest.mark.parametrize(("low", "high"), [(1.0, 0.0), (0.0, np.inf), (np.nan, 1.0)])
    def test_a_range_runs_upward_between_numbers(self, low, high):
        with pytest.raises(UsageError, match="a range runs from a number up to a higher one"):
            integral(np.exp, low, high)


class TestRoots:
    @given(st.lists(st.integers(1, 99), min_size=1, max_size=5, unique=True))
    @example([1, 2, 3, 4, 5])
    def test_of_a_product_are_where_its_factors_vanish(self, hundredths):
        places = sorted(place / 100 for place in hundredths)  # the curve may be flat there: 1e-5 per unit
        found = roots(lambda x: np.prod([x - place for place in places], axis=0) * 100, 0.0, 1.0)
        assert found == pytest.approx(places, abs=1e-10)

    def test_of_a_steep_curve_are_found_to_1e_12(self):
        assert roots(lambda x: logistic(200, 1 / 3)(x) - 0.5, 0.0, 1.0) == pytest.approx([1 / 3], abs=1e-12)

    def test_a_touch_is_no_crossing(self):
        assert roots(lambda x: (x - 0.5) ** 2, 0.0, 1.0) == ()
        assert roots(lambda x: -np.abs(x - 0.5), 0.0, 1.0, [0.5]) == ()

    def test_a_stretch_of_zeros_is_no_crossing(self):
        assert roots(lambda x: np.maximum(np.abs(x - 0.5) - 0.1, 0), 0.0, 1.0) == ()
        assert roots(np.zeros_like, 0.0, 1.0) == ()

    def test_a_change_of_sign_over_a_stretch_of_zeros_counts_once_in_its_middle(self):
        curve, knots, _, _ = polyline([1, 0, 0, -1])
        assert roots(curve, 0.0, 1.0, knots) == pytest.approx([0.5], abs=1e-9)
        assert roots(curve, 0.0, 1.0) == pytest.approx([0.5], abs=1e-9)

    def test_a_jump_over_zero_counts_where_it_happens(self):
        assert roots(lambda x: np.where(x < 0.123, 1.0, -1.0), 0.0, 1.0) == pytest.approx([0.123], abs=1e-12)

    def test_zeros_at_the_ends_are_no_crossings(self):
        assert roots(lambda x: x * (1 - x), 0.0, 1.0) == ()

    def test_where_a_curve_is_undefined_it_has_no_sign(self):
        def gap(x):
            return np.where(np.abs(x - 0.5) < 0.1, np.nan, 0.5 - x)

        assert roots(gap, 0.0, 1.0) == pytest.approx([0.5], abs=1e-9)
        assert roots(lambda x: np.full_like(x, np.nan), 0.0, 1.0) == ()
        assert np.isnan(parts(gap, 0.0, 1.0)).all()

    def test_rounding_around_zero_is_no_crossing(self):
        def same(x):
            return (x + 0.1) ** 2 - (x**2 + 0.2 * x + 0.01)

        assert roots(same, 0.0, 1.0) == ()

    def test_break_lets_a_narrow_peak_be_seen(self):
        def peak(x):
            return 1e-4 - np.abs(x - 0.50037)

        assert roots(peak, 0.0, 1.0) == ()
        assert roots(peak, 0.0, 1.0, [0.50037]) == pytest.approx([0.50027, 0.50047], abs=1e-12)


class TestParts:
    @given(HEIGHTS)
    @example([1.0, 0.0, 0.0, -1.0])
    @example([0.0, 0.0])
    def test_of_straight_lines_are_sums_of_triangles(self, heights):
        curve, knots, area, above = polyline(heights)
        assert parts(curve, 0.0, 1.0, knots) == pytest.approx((above, above - area), abs=1e-9)

    @given(SLOPES, CENTRES, SLOPES, CENTRES)
    def test_add_up_to_the_absolute_integral_and_differ_by_the_integral(self, slope, centre, other_slope, other_centre):
        def gap(x):
            return logistic(slope, centre)(x) - logistic(other_slope, other_centre)(x)

        above, below = parts(gap, 0.0, 1.0)
        assert min(above, below) >= 0
        expected = logistic_area(slope, centre) - logistic_area(other_slope, other_centre)
        assert above - below == pytest.approx(expected, abs=1e-10)

    @given(st.floats(0.05, 0.95), st.floats(2, 60), st.floats(2, 60))
    def test_of_two_logistics_that_cross_are_exact(self, centre, slope, other):
        assume(abs(slope - other) > 0.1)

        def gap(x):
            return logistic(-slope, centre)(x) - logistic(-other, centre)(x)

        before = abs(logistic_area(-slope, centre, 0, centre) - logistic_area(-other, centre, 0, centre))
        after = abs(logistic_area(-slope, centre, centre, 1) - logistic_area(-other, centre, centre, 1))
        assert sum(parts(gap, 0.0, 1.0)) == pytest.approx(before + after, abs=1e-10)

    def test_of_a_sine_are_two_and_two(self):
        assert parts(np.sin, 0.0, 2 * np.pi) == pytest.approx((2, 2), abs=1e-11)

    def test_of_a_curve_that_is_nowhere_negative_has_nothing_below(self):
        assert parts(lambda x: x**2, -1.0, 1.0) == pytest.approx((2 / 3, 0), abs=1e-12)
        assert parts(lambda x: -(x**2), -1.0, 1.0) == pytest.approx((0, 2 / 3), abs=1e-12)

    def test_two_equal_curves_have_nothing_between_them(self):
        assert parts(lambda x: np.exp(x) - np.exp(x), 0.0, 1.0) == (0.0, 0.0)

    def test_agree_with_dense_trapezoids(self):
        def gap(x):
            return logistic(-9, 0.6)(x) - (0.9 - 0.8 * x)

        assert parts(gap, 0.0, 1.0) == pytest.approx(plain.parts(gap, 0.0, 1.0), abs=1e-9)


class TestBetween:
    def test_a_falling_line_passes_once(self):
        assert between(lambda x: 1 - x, 0.7, 0.8, 0.0, 1.0) == (pytest.approx((0.2, 0.3), abs=1e-9),)

    def test_a_curve_that_comes_back_has_two_stretches(self):
        found = between(lambda x: 4 * x * (1 - x), 0.36, 0.64, 0.0, 1.0)
        assert found == (pytest.approx((0.1, 0.2), abs=1e-9), pytest.approx((0.8, 0.9), abs=1e-9))

    def test_the_ends_of_the_range_end_a_stretch(self):
        assert between(lambda x: 1 - x, 0.5, 2.0, 0.0, 1.0) == (pytest.approx((0, 0.5), abs=1e-9),)
        assert between(lambda x: 1 - x, -1.0, 0.25, 0.0, 1.0) == (pytest.approx((0.75, 1), abs=1e-9),)
        assert between(lambda x: 1 - x, -1.0, 2.0, 0.0, 1.0) == ((0.0, 1.0),)

    def test_a_level_piece_at_either_value_belongs_to_the_stretch(self):
        curve, knots, _, _ = polyline([1, 0.8, 0.8, 0.7, 0.7, 0.1])
        (found,) = between(curve, 0.7, 0.8, 0.0, 1.0, knots)
        assert found == pytest.approx((0.2, 0.8), abs=1e-9)

    def test_a_curve_steeper_than_the_grid_still_has_its_stretch(self):
        (found,) = between(lambda x: 1e5 * (x - 0.5001), -1.0, 1.0, 0.0, 1.0)
        assert found == pytest.approx((0.50009, 0.50011), abs=1e-12)

    def test_a_jump_over_both_values_has_none(self):
        assert between(lambda x: (x > 0.3).astype(float), 0.4, 0.6, 0.0, 1.0) == ()

    def test_a_touch_has_none(self):
        assert between(lambda x: 0.5 - (x - 0.5) ** 2, 0.5, 0.9, 0.0, 1.0) == ()

    def test_values_never_reached_have_none(self):
        assert between(lambda x: 0.2 * x, 0.7, 0.8, 0.0, 1.0) == ()

    @given(HEIGHTS, st.floats(-2, 2), st.floats(0.01, 2))
    def test_stretches_are_apart_in_order_and_hold_the_values_they_promise(self, heights, bottom, width):
        curve, knots, _, _ = polyline(heights)
        found = between(curve, bottom, bottom + width, 0.0, 1.0, knots)
        ends = [end for stretch in found for end in stretch]
        assert ends == sorted(ends)
        for start, end in found:
            values = curve(np.linspace(start, end, 50))
            assert values.min() >= bottom - 1e-9
            assert values.max() <= bottom + width + 1e-9

    @given(SLOPES, st.floats(0.1, 0.9), st.floats(0.1, 0.5), st.floats(0.05, 0.4))
    def test_of_a_logistic_runs_from_logit_to_logit(self, slope, centre, bottom, width):
        ends = sorted(centre + np.log(p / (1 - p)) / slope for p in (bottom, bottom + width))
        start, end = (min(max(place, 0.0), 1.0) for place in ends)
        assume(end - start > 1e-5)
        assert between(logistic(slope, centre), bottom, bottom + width, 0.0, 1.0) == (
            pytest.approx((start, end), abs=1e-10),
        )

    def test_values_the_wrong_way_round_are_refused(self):
        with pytest.raises(UsageError, match=r"from the lower value to the higher; got 0\.8 to 0\.7"):
            between(np.exp, 0.8, 0.7, 0.0, 1.0)


class TestGrid:
    def test_nodes_lie_between_the_ends_in_order_and_weights_add_up_to_the_range(self):
        grid = CurveGrid.over(-1.0, 3.0, [0.1, 0.1, 2.5, 7.0], panels=10)
        assert grid.nodes[0] > -1
        assert grid.nodes[-1] < 3
        assert (np.diff(grid.nodes) > 0).all()
        assert grid.weights.sum() == pytest.approx(4.0)
        assert {0.1, 2.5} <= set(grid.edges.tolist())
        assert np.diff(grid.edges).max() <= 0.4 + 1e-12

    @given(st.lists(st.tuples(SLOPES, CENTRES), min_size=1, max_size=5))
    def test_integrals_of_logistics_are_good_to_1e_6(self, curves):
        grid = CurveGrid.over(0.0, 1.0)
        values = np.stack([logistic(*curve)(grid.nodes) for curve in curves])
        assert grid.integral(values) == pytest.approx([logistic_area(*curve) for curve in curves], abs=1e-6)

    @given(HEIGHTS)
    def test_parts_of_straight_lines_are_good_to_1e_5(self, heights):
        curve, knots, area, above = polyline(heights)
        grid = CurveGrid.over(0.0, 1.0, knots)
        positive, negative = grid.parts(curve(grid.nodes))
        assert positive.item() == pytest.approx(above, abs=1e-5)
        assert negative.item() == pytest.approx(above - area, abs=1e-5)

    @given(SLOPES, CENTRES, SLOPES, CENTRES)
    @example(-14.0, 0.8125, -137.0, 0.859375)
    def test_parts_of_gaps_between_logistics_are_good_to_1e_5_unless_very_steep(
        self, slope, centre, other_slope, other_centre
    ):
        def gap(x):
            return logistic(slope, centre)(x) - logistic(other_slope, other_centre)(x)

        grid = CurveGrid.over(0.0, 1.0)
        positive, negative = grid.parts(gap(grid.nodes))
        assert min(positive, negative) >= 0
        assert (positive - negative).item() == pytest.approx(grid.integral(gap(grid.nodes)).item(), abs=1e-12)
        good_to = 1e-5 if max(abs(slope), abs(other_slope)) <= 40 else 5e-5
        assert (positive.item(), negative.item()) == pytest.approx(parts(gap, 0.0, 1.0), abs=good_to)

    def test_parts_of_many_curves_are_those_of_each(self):
        grid = CurveGrid.over(0.0, 1.0)
        values = np.stack([np.sin(k * grid.nodes) - 0.3 for k in range(1, 13)])
        each = [grid.parts(row) for row in values]
        positive, negative = grid.parts(values.reshape(3, 4, -1))
        assert positive.shape == negative.shape == (3, 4)
        assert positive.ravel() == pytest.approx([one.item() for one, _ in each])
        assert negative.ravel() == pytest.approx([one.item() for _, one in each])

    def test_a_curve_on_one_side_has_exactly_nothing_on_the_other(self):
        grid = CurveGrid.over(0.0, 1.0)
        values = np.exp(grid.nodes)
        assert grid.parts(values)[1] == 0
        assert grid.parts(-values)[0] == 0
        assert grid.parts(np.zeros_like(values)) == (0, 0)

    def test_an_undefined_curve_has_undefined_parts_and_leaves_the_others_alone(self):
        grid = CurveGrid.over(0.0, 1.0)
        positive, negative = grid.parts(np.stack([np.full_like(grid.nodes, np.nan), grid.nodes]))
        assert np.isnan([positive[0], negative[0]]).all()
        assert positive[1] == pytest.approx(0.5)

    @given(st.floats(0.5, 40) | st.floats(-40, -0.5), st.floats(0.1, 0.9), st.floats(0.1, 0.5), st.floats(0.05, 0.4))
    def test_lengths_on_logistics_are_good_to_1e_5(self, slope, centre, bottom, width):
        curve = logistic(slope, centre)
        grid = CurveGrid.over(0.0, 1.0)
        exact = sum(end - start for start, end in between(curve, bottom, bottom + width, 0.0, 1.0))
        found = grid.integral(grid.share_between(curve(grid.nodes), bottom, bottom + width))
        assert found.item() == pytest.approx(exact, abs=1e-5)

    @given(HEIGHTS, st.floats(-2, 2), st.floats(0.1, 2))
    def test_lengths_on_straight_lines_are_good_to_1e_5(self, heights, bottom, width):
        curve, knots, _, _ = polyline(heights)
        assume(min(abs(a - b) for a, b in pairwise(heights)) > 1e-3)
        grid = CurveGrid.over(0.0, 1.0, knots)
        exact = sum(end - start for start, end in between(curve, bottom, bottom + width, 0.0, 1.0, knots))
        assert grid.integral(grid.share_between(curve(grid.nodes), bottom, bottom + width)).item() == pytest.approx(
            exact, abs=1e-5
        )

    def test_a_level_curve_lies_in_a_stretch_wholly_or_not_at_all(self):
        grid = CurveGrid.over(0.0, 2.0)
        levels = np.array([[0.7], [0.75], [0.8], [0.9]]) * np.ones_like(grid.nodes)
        assert grid.integral(grid.share_between(levels, 0.65, 0.85)) == pytest.approx([2, 2, 2, 0])

    @given(st.floats(1, 30), st.floats(0.2, 0.8), st.floats(0.1, 0.4))
    def test_integrals_over_a_share_are_good_to_1e_4(self, slope, centre, bottom):
        curve = logistic(-slope, centre)
        grid = CurveGrid.over(0.0, 1.0)
        share = grid.share_between(curve(grid.nodes), bottom, 0.8)
        exact = sum(integral(curve, *stretch) for stretch in between(curve, bottom, 0.8, 0.0, 1.0))
        assert share.min() >= 0
        assert share.max() <= 1 + 1e-12
        assert grid.integral(share * curve(grid.nodes)).item() == pytest.approx(exact, abs=1e-4)

    def test_lengths_agree_with_counting_on_a_dense_grid(self):
        def curve(x):
            return 0.5 + 0.4 * np.cos(7 * x)

        grid = CurveGrid.over(0.0, 1.0)
        counted = plain.length_between(curve, 0.3, 0.6, 0.0, 1.0)
        assert grid.integral(grid.share_between(curve(grid.nodes), 0.3, 0.6)).item() == pytest.approx(counted, abs=2e-5)

    def test_a_grid_over_nothing_is_refused(self):
        with pytest.raises(UsageError, match="a grid needs a range of some width; got 1 to 1"):
            CurveGrid.over(1.0, 1.0)
