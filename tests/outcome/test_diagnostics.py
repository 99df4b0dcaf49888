import numpy as np
import pytest

from demur.outcome.least_squares import diagnose, inflation, least_squares
from outcome.oracle import Oracle


@pytest.mark.parametrize("table", ["mtcars", "swiss"])
def test_inflation_is_that_of_r(table):
    oracle = Oracle(table)
    assert inflation(oracle.x, oracle.names) == pytest.approx(oracle.said["vif"], rel=1e-10)


def test_inflation_is_1_without_correlation_and_infinite_where_others_determine_a_predictor():
    x = np.array([[1, 1, 0, 3], [1, -1, 2, 3], [-1, 1, -2, 3], [-1, -1, 0, 3.0]])
    assert inflation(x[:, :2], ["a", "b"]) == pytest.approx({"a": 1.0, "b": 1.0})
    found = inflation(x, ["a", "b", "a - b", "constant"])
    assert [found[name] for name in ("a", "b", "a - b")] == [np.inf] * 3
    assert np.isnan(found["constant"])


def test_a_predictor_that_changes_its_sign_beside_another_is_told():
    # y = 2 a - b, and b goes along with a: alone, b has a positive slope.
    a = np.array([0.0, 1.0, 2.0, 3.0])
    b = a + np.array([0.5, -0.5, -0.5, 0.5])
    (flip,) = diagnose(np.column_stack([a, b]), 2 * a - b, ["a", "b"]).flips
    assert flip.term == "b"
    assert flip.multiple == pytest.approx(-1)
    assert flip.simple > 0


def test_a_slope_that_is_zero_but_for_rounding_has_no_sign():
    # b goes along with y by as little as rounding leaves, and has a slope of -1/3 beside a + b / 3.
    a = np.array([0.1, 0.2, 0.3, 0.4])
    b = np.array([0.1, -0.1, -0.1, 0.1])
    y = a + 1e-12 * b
    assert diagnose(np.column_stack([a + b / 3, b]), y, ["a", "b"]).flips == ()


def test_ranges_hold_what_the_rows_held():
    found = diagnose([[1.0], [2.0], [6.0]], [1.0, 2.0, 4.0], ["a"])
    assert found.ranges == {"a": {"low": 1.0, "high": 6.0, "mean": 3.0, "sd": pytest.approx(np.sqrt(7))}}


def test_standardised_coefficients_are_those_of_z_scores():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20, 2)) * [1, 50] + 7, rng.normal(size=20)
    z = [(column - column.mean(axis=0)) / column.std(axis=0) for column in (x, y)]
    assert list(diagnose(x, y, ["a", "b"]).standardised.values()) == pytest.approx(least_squares(*z).coefficients[1:])


def test_all_of_it_becomes_plain_values():
    x = np.array([[1, 1, 0], [1, -1, 2], [-1, 1, -2], [-1, -1, 0.0], [3, 1, 2]])
    found = diagnose(x, [1.0, 2.0, 4.0, 3.0, 5.0], ["a", "b", "a - b"])
    assert found.inflated.keys() == {"a", "b", "a - b"}
    shown = found.to_dict()
    assert shown["inflation"]["a"] == "inf"
    assert shown["standardised"]["a - b"] is None
    assert shown["ranges"]["b"] == {
        "low": -1.0,
        "high": 1.0,
        "mean": pytest.approx(0.2),
        "sd": pytest.approx(1.0954451),
    }
