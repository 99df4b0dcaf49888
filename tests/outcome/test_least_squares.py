import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.errors import DataError
from demur.outcome import least_squares as outcome_least_squares
from demur.outcome.least_squares import least_squares
from outcome.oracle import TABLES, Oracle
from reference import stepwise as plain


def test_a_line_worked_by_hand():
    # x = 0, 1, 2: mean 1, Sxx = 2; y = 1, 2, 6: mean 3, Sxy = 5; slope 2.5, intercept 0.5; residuals 0.5, -1, 0.5.
    fit = least_squares([[0.0], [1.0], [2.0]], [1.0, 2.0, 6.0])
    assert fit.coefficients == pytest.approx([0.5, 2.5])
    assert fit.fitted == pytest.approx([0.5, 3.0, 5.5])
    assert fit.rss == pytest.approx(1.5)
    assert fit.hat == pytest.approx([5 / 6, 1 / 3, 5 / 6])
    assert fit.sigma == pytest.approx(np.sqrt(1.5))
    assert fit.inverse == pytest.approx(np.array([[5 / 6, -0.5], [-0.5, 0.5]]))
    assert fit.standard_errors == pytest.approx(np.sqrt([1.25, 0.75]))
    assert fit.predict([[4.0]]) == pytest.approx([10.5])


@pytest.mark.parametrize("table", TABLES)
def test_coefficients_and_rank_of_the_full_model_are_those_of_r(table):
    oracle = Oracle(table)
    fit = least_squares(oracle.x, oracle.y)
    said = oracle.said.get("full_coefficients") or oracle.said["full"]["coefficients"]
    assert fit.coefficients == pytest.approx(
        [np.nan if v is None else v for v in said.values()], rel=1e-10, nan_ok=True
    )
    assert fit.rank == oracle.said.get("full_rank", oracle.x.shape[1] + 1)


@pytest.mark.parametrize("table", ["mtcars", "swiss"])
def test_standard_errors_and_leverages_are_those_of_r(table):
    oracle = Oracle(table)
    fit, said = least_squares(oracle.x, oracle.y), oracle.said["full"]
    assert fit.standard_errors == pytest.approx(list(said["std_errors"].values()), rel=1e-10)
    assert fit.hat == pytest.approx(said["hat"], rel=1e-10)
    assert fit.sigma == pytest.approx(said["sigma"], rel=1e-12)
    assert fit.rss == pytest.approx(said["rss"], rel=1e-12)


def test_of_collinear_columns_the_last_is_aliased():
    x = np.random.default_rng(0).normal(size=(10, 4))
    x[:, 2] = x[:, 0] - 2 * x[:, 1] + 5
    fit = least_squares(x, np.arange(10.0))
    assert fit.aliased.tolist() == [2]
    assert fit.rank == 4
    assert fit.predict(x) == pytest.approx(fit.fitted)


@pytest.mark.parametrize(("share", "rank"), [(1.01e-7, 3), (0.99e-7, 2)])
def test_a_column_is_aliased_when_less_than_a_ten_millionth_of_its_length_is_left(share, rank):
    one = np.array([1.0, -1.0, 1.0, -1.0])
    other = np.array([1.0, 1.0, -1.0, -1.0])
    assert least_squares(np.column_stack([one, one + share * other]), [1.0, 2.0, 4.0, 3.0]).rank == rank


def test_constant_columns_are_aliased_by_the_intercept():
    fit = least_squares([[0.1, 0.0, 1.0], [0.1, 0.0, 2.0], [0.1, 0.0, 4.0]], [1.0, 0.0, 3.0])
    assert fit.aliased.tolist() == [0, 1]


def test_columns_beyond_the_number_of_rows_are_aliased():
    fit = least_squares(np.random.default_rng(0).normal(size=(4, 6)), [1.0, 5.0, 2.0, 2.0])
    assert fit.aliased.tolist() == [3, 4, 5]
    assert fit.rss == pytest.approx(0, abs=1e-20)
    assert np.isnan(fit.sigma)


@given(st.integers(0, 10_000), st.integers(201, 400), st.integers(0, 8), st.sampled_from([1.0, 0.1, 1e-3, 1e-6]))
def test_long_tables_give_what_short_ones_would(seed, n, p, apart):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p)) + 3
    if p > 1:
        x[:, -1] = x[:, 0] + apart * x[:, -1]
    y = rng.normal(size=n)
    quick, slow = least_squares(x, y), outcome_least_squares._by_reflections(x)
    coefficients, rss, rank = plain.fit(x, y, range(p))
    assert quick.rank == rank == len(slow[0])
    assert quick.rss == pytest.approx(rss, rel=1e-10)
    assert quick.coefficients == pytest.approx(list(coefficients.values()), rel=1e-8 / apart, abs=1e-11 / apart)
    assert quick.hat == pytest.approx(np.square(slow[1]).sum(axis=1), rel=1e-9)


def test_long_tables_with_aliased_columns_lose_the_same_ones():
    x = np.random.default_rng(0).normal(size=(500, 4))
    x[:, 1] = 2 * x[:, 0]
    x[:, 3] = 7.0
    assert least_squares(x, x[:, 2] + x[:, 0] ** 2).aliased.tolist() == [1, 3]


def test_rows_that_are_no_numbers_are_refused():
    with pytest.raises(DataError, match="row 1: predictors and outcome must be finite numbers"):
        least_squares([[1.0], [np.nan]], [1.0, 2.0])
    with pytest.raises(DataError, match="a row of predictors for every outcome"):
        least_squares([[1.0], [2.0]], [1.0])
    with pytest.raises(DataError, match="at least one row"):
        least_squares(np.empty((0, 1)), [])
