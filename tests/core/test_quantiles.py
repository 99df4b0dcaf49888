"""Quantiles without SciPy are SciPy's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betaincinv, ndtr, ndtri, stdtrit

from demur.core.stats.intervals import MOST, beta_quantile, normal_quantile, normal_tail, student_quantile

chances = st.floats(1e-4, 1 - 1e-4)
sizes = st.floats(0.5, 1.2 * MOST)


@given(sizes, sizes, chances)
def test_beta_quantiles(a: float, b: float, p: float) -> None:
    assert beta_quantile(a, b, p) == pytest.approx(float(betaincinv(a, b, p)), rel=1e-9)


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
