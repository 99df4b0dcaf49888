from math import exp, isnan, log, nan, sqrt

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from demur.core.stats.intervals import Difference, difference, sidak, unit_figure

SHARES = st.lists(st.floats(0, 1), min_size=1, max_size=12)
SPREAD = np.array([0.4, 0.6])

ERROR = 0.1 * (10 / 9) ** 0.5
"""The standard error that a deviation of 0.1 among replicates of ten units stands for."""
"""Two replicates 0.1 away from 0.5, so that their spread is 0.1."""


def figure(value, drawn=SPREAD, units=10, scale="plain", level=0.95):
    return unit_figure(value, np.asarray(drawn), units, level=level, scale=scale, why=lambda: "because")


def test_an_interval_is_students_times_the_spread_of_the_replicates():
    reach = stats.t.ppf(0.975, 9) * ERROR
    found = figure(0.5)
    assert (found.low, found.high) == pytest.approx((0.5 - reach, 0.5 + reach))


def test_on_the_log_scale_an_interval_stays_above_0():
    reach = stats.t.ppf(0.975, 9) * ERROR / 0.05
    found = figure(0.05, scale="log")
    assert (found.low, found.high) == pytest.approx((0.05 * exp(-reach), 0.05 * exp(reach)))


def test_on_the_logit_scale_an_interval_stays_between_0_and_1():
    reach = stats.t.ppf(0.975, 9) * ERROR / (0.9 * 0.1)
    odds = log(0.9 / 0.1)
    found = figure(0.9, scale="logit")
    expected = [1 / (1 + exp(-(odds + side * reach))) for side in (-1, 1)]
    assert (found.low, found.high) == pytest.approx(tuple(expected))


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_share_at_an_end_has_the_exact_interval_of_as_many_trials_as_units(value):
    found = figure(value, drawn=[value, value], units=5, scale="logit")
    edge = 1 - 0.025 ** (1 / 5)  # the share at which five of five fail with a chance of 2.5 %
    assert (found.low, found.high) == pytest.approx((0.0, edge) if value == 0 else (1 - edge, 1.0))


def test_an_undefined_value_says_why():
    assert figure(nan).why == "because"
    assert isnan(figure(nan).low)


@pytest.mark.parametrize(
    ("value", "drawn", "units", "scale"),
    [
        (0.5, SPREAD, 1, "plain"),
        (0.5, [0.4], 10, "plain"),
        (0.0, SPREAD, 10, "log"),
        (0.5, [nan, nan, nan, 0.4, 0.6], 10, "plain"),
    ],
)
def test_where_replicates_tell_nothing_there_is_a_value_and_no_interval(value, drawn, units, scale):
    found = figure(value, drawn, units, scale)
    assert found.value == value
    assert (isnan(found.low), isnan(found.high), found.why) == (True, True, None)


def test_a_few_replicates_without_a_value_are_left_out():
    drawn = [0.4, 0.6] * 10 + [nan]
    assert figure(0.5, drawn).low == pytest.approx(figure(0.5).low)


def test_a_difference_has_students_interval_and_p_value():
    found = difference(0.3, np.array([0.2, 0.4]), 10, level=0.95)
    assert found.p == found.p_adjusted == pytest.approx(2 * stats.t.sf(0.3 / ERROR, 9))
    assert found.high - found.low == pytest.approx(2 * stats.t.ppf(0.975, 9) * ERROR)


@given(st.floats(-1, 1), st.floats(0.01, 1), st.integers(2, 200), st.sampled_from([0.8, 0.9, 0.95, 0.99]))
def test_an_interval_leaves_out_0_where_the_p_value_says_so(value, spread, units, level):
    found = difference(value, np.array([value - spread, value + spread]), units, level=level)
    if abs(found.p - (1 - level)) > 1e-9:
        assert (found.low > 0 or found.high < 0) == (found.p < 1 - level)


def test_no_difference_at_all_has_the_p_value_1():
    assert difference(0.0, np.zeros(5), 10, level=0.95) == Difference(0.0, 0.0, 0.0, 1.0, 1.0)


def test_a_difference_without_spread_or_value_has_no_p_value():
    assert isnan(difference(0.1, np.full(5, 0.1), 10, level=0.95).p)
    undefined = difference(nan, np.zeros(5), 10, level=0.95)
    assert undefined.to_dict() == {
        **dict.fromkeys(("value", "low", "high", "p", "p_adjusted")),
        "why": "undefined for one of the two",
    }


def test_sidaks_method_by_hand():
    """1 - .98^3; certainty stays certain, and what is unknown unknown."""
    assert sidak(0.02, 3) == pytest.approx(1 - 0.98**3)
    assert (sidak(0.0, 9), sidak(1.0, 9), sidak(0.3, 1)) == (0.0, 1.0, pytest.approx(0.3))
    assert np.isnan(sidak(nan, 2))


@given(st.floats(-5, 5), st.integers(2, 400), st.integers(1, 60), st.floats(0.5, 0.99))
def test_a_corrected_interval_excludes_0_exactly_where_its_p_value_is_below_the_level(value, units, tests, level):
    drawn = np.array([value - 1.0, value + 1.0])
    found = difference(value, drawn, units, level=level)
    assume(not np.isnan(found.p))
    corrected = found.corrected(tests, level)
    assume(abs(corrected.p_adjusted - (1 - level)) > 1e-9)
    assert (corrected.p_adjusted < 1 - level) == (corrected.low > 0 or corrected.high < 0)
    assert corrected.high - corrected.low >= found.high - found.low - 1e-12


def test_the_spread_of_replicates_is_about_that_of_a_mean():
    rng = np.random.default_rng(0)
    values = rng.normal(size=400)
    drawn = rng.choice(values, size=(2000, 400)).mean(axis=1)
    found = figure(values.mean(), drawn, units=400)
    assert found.high - found.low == pytest.approx(2 * 1.966 * values.std() / sqrt(400), rel=0.06)
