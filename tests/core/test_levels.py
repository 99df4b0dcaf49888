import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.core.stats import sweep
from demur.core.stats.sweep import places_among

NUMBERS = st.floats(allow_nan=False)


@given(st.lists(NUMBERS, max_size=40), st.lists(NUMBERS, min_size=1, max_size=40, unique=True))
def test_values_stand_where_a_plain_search_finds_them(values, known):
    sought, among = np.array(values, dtype=np.float64), np.sort(np.array(known, dtype=np.float64))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweep, "FEW_LEVELS", 0)
        found = places_among(among, sought)
    assert found.tolist() == [sum(level <= value for level in among) - 1 for value in sought]


def test_many_values_are_looked_up_among_many_levels():
    rng = np.random.default_rng(4)
    values, among = rng.normal(size=30_000), np.sort(rng.normal(size=20_000))
    assert np.array_equal(places_among(among, values), np.searchsorted(among, values, side="right") - 1)
