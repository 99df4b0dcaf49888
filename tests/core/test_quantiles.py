"""Quantiles without SciPy are SciPy's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betaincinv, ndtr, ndtri, stdtrit

from demur.core.stats.intervals import MOST, beta_quantile, normal_quantile, normal_tail, quantile, student_quantile

chances = st.floats(1e-4, 1 - 1e-4)
sizes = st.floats(0.5, 1.2 * MOST)


@given(sizes, sizes, chances)
def test_beta_quantiles(a: float, b: float, p: float) -> None:
    assert beta_quantile(a, b, p) == pytest.approx(float(betaincinv(a, b, p)), rel=1e-9)


@pytest.mark.parametrize("a", [1.25, 2.0, 2.3, 5.0])
def test_beta_quantiles_near_the_mode(a: float) -> None:
    """There the density does not change, so a first step that ends far off looks exact."""
    for b in np.arange(1.25, 8, 0.25):
        p = np.linspace(0.02, 0.98, 49)
        found = [beta_quantile(a, float(b), float(one)) for one in p]
        assert found == pytest.approx(betaincinv(a, b, p).tolist(), rel=1e-9)


@given(st.floats(1, 1.2 * MOST), st.floats(0.5001, 0.9999))
def test_student_quantiles(freedom: float, p: float) -> None:
    assert student_quantile(freedom, p) == pytest.approx(float(stdtrit(freedom, p)), rel=1e-9)


@given(chances, st.floats(-8, 8))
def test_normal_quantiles_and_tails(p: float, value: float) -> None:
    assert normal_quantile(p) == pytest.approx(float(ndtri(p)), rel=1e-12, abs=1e-15)
    assert normal_tail(value) == pytest.approx(float(ndtr(-value)), rel=1e-12)


def test_a_quantile_that_is_nearly_0_or_1_stays_inside() -> None:
    assert 0 <= beta_quantile(1e-3, 5, 0.025) < 1e-29
    assert beta_quantile(5, 1e-3, 0.975) == pytest.approx(1)
    assert beta_quantile(2, 3, 1.0) == pytest.approx(1, abs=1e-5)


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=30), st.floats(0, 1))
def test_quantiles_of_values_are_those_of_numpy(values: list[float], share: float) -> None:
    assert quantile(np.array(values), share) == pytest.approx(float(np.quantile(values, share)), abs=1e-12)
