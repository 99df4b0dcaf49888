"""How tests read a measure and compare it with its plain twin."""

import pytest
from hypothesis import strategies as st

from reference.rows import arrays

WEIGHTS = st.sampled_from([1, 1, 2, 3, 0.5])


def value(measure, sweep):
    return float(measure.finish(sweep))


def read(measure, rows):
    return value(measure, arrays(rows).sweep())


def close(expected):
    return pytest.approx(float(expected), abs=1e-12, rel=1e-11, nan_ok=True)
