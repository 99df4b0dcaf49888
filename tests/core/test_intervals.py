import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from demur.core.stats.intervals import Figure, exact_binomial, expanded_percentiles, normal, student


@given(st.integers(1, 400), st.data())
def test_the_exact_interval_is_that_of_clopper_and_pearson(n, data):
    k = data.draw(st.integers(0, n))
    low, high = exact_binomial(k / n, n, normal(0.95))
    known = binomtest(k, n).proportion_ci(0.95, "exact")
    assert (float(low), float(high)) == pytest.approx((known.low, known.high), abs=1e-9)


@given(st.floats(0, 1), st.floats(0.5, 1e6), st.floats(0, 6))
def test_the_exact_interval_holds_the_rate_and_stays_in_0_1(rate, n, critical):
    low, high = exact_binomial(rate, n, critical)
    assert 0 <= low <= rate <= high <= 1


@pytest.mark.parametrize("rate", [5e-324, 1e-200, 1 - 2**-53])
@pytest.mark.parametrize("n", [0.5, 1.0, 20.0])
def test_a_rate_as_near_to_an_end_as_numbers_go_has_the_interval_of_that_end(rate, n):
    assert np.allclose(exact_binomial(rate, n, 1.96), exact_binomial(round(rate), n, 1.96), atol=1e-9)


def test_a_figure_shows_null_and_a_reason_where_it_is_undefined():
    assert Figure(0.5, 0.4, 0.6).to_dict() == {"value": 0.5, "low": 0.4, "high": 0.6}
    assert Figure(np.nan, why="nothing").to_dict() == {"value": None, "low": None, "high": None, "why": "nothing"}
    assert Figure(0.5).defined
    assert not Figure(np.nan).defined


def test_critical_values_are_those_of_the_tables():
    assert normal(0.95) == pytest.approx(1.959964, abs=1e-6)
    assert student(0.95, 10) == pytest.approx(2.228139, abs=1e-6)
    assert student(0.95, 0) == pytest.approx(12.7062, abs=1e-4)


def test_expanded_percentiles_widen_the_percentile_interval_most_for_few_units():
    drawn = np.random.default_rng(0).normal(size=20_000)
    widths = [np.diff(expanded_percentiles(drawn, 0.95, units))[0] for units in (5, 20, 1000)]
    assert widths[0] > widths[1] > widths[2]
    assert widths[2] == pytest.approx(2 * 1.96, rel=0.03)


def test_no_interval_from_replicates_that_are_mostly_undefined():
    drawn = np.where(np.arange(100) < 20, np.nan, 1.0)
    assert np.isnan(expanded_percentiles(drawn, 0.95, 50)).all()
    assert np.isnan(expanded_percentiles(np.ones(100), 0.95, 1)).all()
