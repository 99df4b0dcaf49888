import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.returns.drift import changes
from demur.returns.drift.changes import Distance, TwoSamples, cramers_v, kolmogorov_smirnov
from reference import drift as plain

HEAPS = st.lists(st.sampled_from([0.1, 0.5, 0.5, 0.9, 1.0]), min_size=2, max_size=12)


def samples(one, two, *, unit=None):
    values = np.array([*one, *two], dtype=np.float64)
    levels = np.unique(values)
    second = np.arange(values.size) >= len(one)
    return TwoSamples(np.searchsorted(levels, values), second, np.ones(values.size), unit, levels.size)


@given(HEAPS, HEAPS)
def test_distances_are_those_of_the_plain_twins(one, two):
    counts = samples(one, two).counts
    assert float(kolmogorov_smirnov(*counts)) == pytest.approx(plain.kolmogorov_smirnov(one, two))
    assert float(cramers_v(*counts)) == pytest.approx(plain.cramers_v(one, two))


def test_the_p_value_is_the_share_of_deals_as_far_apart():
    """Of the 20 deals of three units each, all in order and all in reverse are as far apart: 2 / 20."""
    exact = plain.permutation_p([[1], [2], [3]], [[4], [5], [6]], plain.kolmogorov_smirnov)
    assert exact == pytest.approx(0.1)
    found = samples([1, 2, 3], [4, 5, 6]).distance(kolmogorov_smirnov, deals=4000, seed=0)
    assert found.value == 1.0
    assert found.p == pytest.approx(0.1, abs=0.015)


@pytest.mark.parametrize(
    ("between", "twin"), [(kolmogorov_smirnov, plain.kolmogorov_smirnov), (cramers_v, plain.cramers_v)]
)
def test_ties_and_units_of_several_rows_are_dealt_as_the_twin_deals_them(between, twin):
    one, two = [[1, 1, 2], [2], [1, 3]], [[3, 3], [2, 3, 3], [3], [1]]
    sizes = [len(unit) for unit in (*one, *two)]
    flat = [[value for unit in side for value in unit] for side in (one, two)]
    found = samples(*flat, unit=np.repeat(np.arange(7), sizes)).distance(between, deals=4000, seed=1)
    assert found.p == pytest.approx(plain.permutation_p(one, two, twin), abs=0.025)


def test_rows_dealt_by_cell_or_one_by_one_have_the_same_p_value():
    rng = np.random.default_rng(0)
    one, two = np.round(rng.random(80), 1), np.round(rng.random(50) ** 1.4, 1)
    by_cell = samples(one, two).distance(kolmogorov_smirnov, deals=3000, seed=0)
    by_row = samples(one, two, unit=np.arange(130)).distance(kolmogorov_smirnov, deals=3000, seed=0)
    assert by_cell.value == by_row.value
    assert by_cell.p == pytest.approx(by_row.p, abs=0.03)


def test_very_many_units_are_dealt_in_bundles_of_one_side(monkeypatch):
    monkeypatch.setattr(changes, "MOST_UNITS", 40)
    rng = np.random.default_rng(3)
    two = samples(rng.integers(0, 5, 300), rng.integers(0, 5, 200), unit=np.arange(500))
    unit, count = two._bundled(rng)
    assert count == np.unique(unit).size <= 41
    assert not set(unit[two.second]) & set(unit[~two.second])
    assert 0.02 < two.distance(kolmogorov_smirnov, deals=500, seed=0).p <= 1


@given(HEAPS, HEAPS, st.integers(1, 12), st.sampled_from([0.8, 0.95]))
def test_the_interval_excludes_zero_exactly_where_the_corrected_p_value_is_small(one, two, tests, level):
    found = samples(one, two).distance(kolmogorov_smirnov, deals=400, seed=0).tested(level, tests)
    assert (found.low > 0) == (found.p_adjusted < 1 - level)
    assert 0 <= found.low <= found.value <= found.high <= 1


def test_equal_samples_have_a_p_value_of_one():
    found = samples([1, 2, 2], [1, 2, 2]).distance(kolmogorov_smirnov, deals=100, seed=0)
    assert (found.value, found.p, found.tested(0.95, 3).low) == (0.0, 1.0, 0.0)


def test_too_few_deals_show_nothing():
    found = Distance(1.0, np.zeros(50)).tested(0.95, 10)
    assert (found.low, found.high) == (0.0, 1.0)
