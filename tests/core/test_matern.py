import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.core.stats.smoothing import STATIONARY, Chain, _transitions
from reference.gaussian_process import matern

GAPS = st.floats(1e-6, 30.0)


@given(GAPS, GAPS)
def test_two_gaps_in_a_row_are_one_gap(first, second):
    (one, two, both), (added_one, added_two, added_both) = _transitions(np.array([first, second, first + second]))
    assert two @ one == pytest.approx(both, abs=1e-12)
    assert two @ added_one @ two.T + added_two == pytest.approx(added_both, abs=1e-12)


@given(GAPS)
def test_over_any_gap_the_process_keeps_its_covariance(gap):
    (over,), (added,) = _transitions(np.array([gap]))
    assert over @ STATIONARY @ over.T + added == pytest.approx(STATIONARY, abs=1e-12)


def test_the_chain_has_the_determinant_and_the_inverse_of_the_covariance():
    x, noise = np.array([0.0, 0.2, 0.2, 1.5, 4.0]), np.array([0.3, 0.1, 0.2, 0.3, 0.5])
    covariance = matern(x, x, np.sqrt(5), 1.0) + np.diag(noise)
    chain = Chain.of(np.diff(x), noise)
    assert chain.log_determinant == pytest.approx(np.linalg.slogdet(covariance)[1])
    assert chain.solved(np.eye(5))[1] == pytest.approx(np.linalg.inv(covariance))


def test_the_noise_may_be_nothing_at_all():
    x = np.array([0.0, 0.5, 1.5])
    chain = Chain.of(np.diff(x), np.zeros(3))
    assert chain.solved(np.eye(3))[1] == pytest.approx(np.linalg.inv(matern(x, x, np.sqrt(5), 1.0)))
    assert chain.variances(np.arange(3)) == pytest.approx(np.zeros(3), abs=1e-12)
