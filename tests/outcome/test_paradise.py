import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.errors import DataError
from demur.outcome.least_squares import paradise

NAMES = ["kappa", "turns", "repairs"]


def dialogues(n=30, seed=0):
    """Satisfaction that rises with kappa and falls with turns; repairs go along with turns."""
    rng = np.random.default_rng(seed)
    kappa, turns = rng.uniform(0, 1, n), rng.integers(5, 30, n).astype(float)
    x = np.column_stack([kappa, turns, turns / 3 + rng.normal(size=n)])
    return x, 20 + 10 * kappa - 0.4 * turns + 2 * rng.normal(size=n)


def test_weights_by_hand():
    """Uncorrelated predictors: a weight is the correlation, 3 / √10 for kappa and -1 / √10 for turns."""
    found = paradise([[0.5, 4.0], [0.5, 6.0], [0.9, 4.0], [0.9, 6.0]], [2.0, 1.0, 5.0, 4.0], ["kappa", "turns"])
    assert {name: weight.value for name, weight in found.weights.items()} == pytest.approx(
        {"kappa": 3 / np.sqrt(10), "turns": -1 / np.sqrt(10)}
    )
    assert found.r2 == pytest.approx(1)
    assert found.deviations == pytest.approx({"kappa": np.sqrt(0.16 / 3), "turns": np.sqrt(4 / 3)})


def test_one_predictor_has_its_correlation_for_a_weight_and_the_p_of_its_test():
    from scipy.stats import pearsonr

    x, y = dialogues()
    weight = paradise(x[:, :1], y, ["kappa"]).weights["kappa"]
    expected = pearsonr(x[:, 0], y)
    assert weight.value == pytest.approx(expected.statistic)
    assert weight.p == pytest.approx(expected.pvalue)
    assert weight.error == pytest.approx(np.sqrt((1 - expected.statistic**2) / 28))


SCALES = st.lists(st.floats(0.01, 100.0), min_size=3, max_size=3)
SHIFTS = st.lists(st.floats(-100.0, 100.0), min_size=3, max_size=3)


@given(SCALES, SHIFTS, st.floats(0.01, 100.0), st.floats(-100.0, 100.0))
def test_weights_do_not_depend_on_the_units_of_predictors_or_outcome(scales, shifts, factor, shift):
    x, y = dialogues()
    one, other = paradise(x, y, NAMES), paradise(x * scales + shifts, y * factor + shift, NAMES)
    for name in NAMES:
        assert other.weights[name].value == pytest.approx(one.weights[name].value, abs=1e-6)
        assert other.weights[name].p == pytest.approx(one.weights[name].p, abs=1e-6)
    assert other.r2 == pytest.approx(one.r2)


def test_predictors_that_are_constant_or_determined_by_others_are_left_out_by_name():
    x, y = dialogues()
    more = np.column_stack([x, np.full(30, 0.1), 3 - 2 * x[:, 1]])
    found = paradise(more, y, [*NAMES, "channel", "copy"])
    assert found.left_out == ("channel", "copy")
    assert found.weights == paradise(x, y, NAMES).weights


def test_without_a_predictor_that_varies_performance_is_nothing():
    found = paradise([[1.0], [1.0], [1.0]], [1.0, 2.0, 3.0], ["kappa"])
    assert found.formula() == "0"
    assert found.r2 == pytest.approx(0)


def test_as_many_weights_as_dialogues_allow_leave_no_test():
    x, y = dialogues(4)
    found = paradise(x, y, NAMES)
    assert found.r2 == pytest.approx(1)
    shown = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert shown["weights"]["kappa"]["p"] is None
    assert shown["adjusted_r2"] is None


def test_a_constant_outcome_is_refused():
    with pytest.raises(DataError, match="the outcome is the same in every dialogue"):
        paradise([[0.5], [0.6]], [1.0, 1.0], ["kappa"])
