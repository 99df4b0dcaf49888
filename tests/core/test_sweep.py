import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.core.stats.sweep import Sweep
from demur.errors import DataError
from reference import returns as plain
from reference.rows import SCORES, arrays, columns, tables


def counted(rows):
    """Right and wrong weight at each distinct confidence, counted by hand."""
    return {
        cutoff: tuple(
            sum(row.weight for row in rows if row.answered and row.confidence == cutoff and row.right is verdict)
            for verdict in (True, False)
        )
        for cutoff in plain.thresholds(rows)[:-1]
    }


def as_dict(sweep):
    return dict(
        zip(
            sweep.threshold.tolist(),
            zip(sweep.right.tolist(), sweep.wrong.tolist(), strict=True),
            strict=True,
        )
    )


@given(tables(SCORES, largest=30))
def test_counts_per_confidence_are_those_counted_by_hand(rows):
    sweep = arrays(rows).sweep()
    assert as_dict(sweep) == counted(rows)
    assert list(sweep.threshold) == sorted(sweep.threshold)
    assert (sweep.n, sweep.total, sweep.withheld) == (len(rows), len(rows), sum(not row.answered for row in rows))


@given(tables(SCORES, weights=st.sampled_from([1, 0.5, 2, 3.25])))
def test_weights_multiply_every_count(rows):
    sweep = arrays(rows).sweep()
    assert as_dict(sweep) == counted(rows)
    assert sweep.total == float(plain.weight_of(rows))


@given(tables(SCORES, largest=40), st.randoms(use_true_random=False))
def test_row_order_does_not_change_a_sweep(rows, random):
    shuffled = random.sample(rows, len(rows))
    assert arrays(rows).sweep() == arrays(shuffled).sweep()
    assert arrays(rows).sweep().digest() == arrays(shuffled).sweep().digest()


def test_row_order_does_not_change_the_last_digit_of_weighted_counts():
    weight = np.random.default_rng(0).random(400)
    confidence, right = np.round(weight * 7) / 7, weight > 0.4
    order = np.random.default_rng(1).permutation(400)
    one = Sweep.of(confidence, right, weight=weight)
    assert one == Sweep.of(confidence[order], right[order], weight=weight[order])


def test_a_sweep_leaves_its_input_alone():
    confidence, right, weight = np.array([0.0, 0.5, 0.5]), np.array([True, False, True]), np.ones(3)
    Sweep.of(confidence, right)
    Sweep.of(confidence, right, weight=weight)
    confidence[0], right[0], weight[0] = 9.0, False, 9.0
    assert confidence.tolist() == [9.0, 0.5, 0.5]


def test_both_zeros_are_one_confidence():
    assert as_dict(Sweep.of([0.0, -0.0, -1.0], [True, False, True])) == {-1.0: (1, 0), 0.0: (1, 1)}
    assert as_dict(Sweep.of([-0.0, 0.0], [True, False], weight=[1, 1])) == {0.0: (1, 1)}


def test_infinite_confidences_stand_at_the_ends():
    sweep = Sweep.of([np.inf, -np.inf, 0.0, np.inf], [True, False, True, False])
    assert as_dict(sweep) == {-np.inf: (0, 1), 0.0: (1, 0), np.inf: (1, 1)}


def test_neighbouring_floats_stay_apart():
    close = [0.1, np.nextafter(0.1, 1), -0.1, np.nextafter(-0.1, 1), 5e-324, -5e-324]
    assert Sweep.of(close, [True] * 6).threshold.tolist() == sorted(close)


def test_nan_is_bad_input():
    with pytest.raises(DataError, match="confidence must be a number; got NaN"):
        Sweep.of([0.2, np.nan, -1.0], [True, False, True])
    with pytest.raises(DataError, match="confidence must be a number; got NaN"):
        Sweep.of([0.2, np.nan], [True, False], weight=[1, 1])


def test_nan_is_bad_input_inside_a_frame_too():
    frame = pl.DataFrame(
        {"confidence": [0.5, np.nan], "right": [True, False], "answered": [True, True], "weight": [1.0, 1.0]}
    )
    with pytest.raises(DataError, match="confidence must be a number"):
        Sweep.from_frame(_narwhal(frame))


def test_an_answer_without_a_confidence_is_bad_input_not_withheld():
    frame = pl.DataFrame(
        {"confidence": [0.5, None], "right": [True, False], "answered": [True, True], "weight": [1.0, 1.0]}
    )
    with pytest.raises(DataError, match="confidence"):
        Sweep.from_frame(_narwhal(frame))


@pytest.mark.parametrize("weight", [[1.0, -0.5], [1.0, np.nan], [1.0], [1.0, np.inf]])
def test_bad_weights_are_refused(weight):
    with pytest.raises(DataError, match="weight"):
        Sweep.of([0.1, 0.2], [True, False], weight=weight)


def test_lists_of_two_lengths_are_refused():
    with pytest.raises(DataError, match="one length"):
        Sweep.of([0.1, 0.2], [True])


def test_no_rows_are_refused():
    with pytest.raises(DataError, match="at least one row; the table is empty"):
        Sweep.of([], [])


def test_a_system_that_only_withholds_has_a_sweep():
    sweep = Sweep.of([], [], withheld=3)
    assert (sweep.n, sweep.total, sweep.threshold.size, float(sweep.errors)) == (3, 3.0, 0, 0.0)


@given(tables(SCORES), tables(SCORES))
def test_sweeps_of_two_parts_add_up_to_the_sweep_of_the_whole(one, two):
    whole = arrays(one + two).sweep()
    added = arrays(one).sweep() + arrays(two).sweep()
    assert added == whole
    assert added.digest() == whole.digest()


def test_other_data_has_another_digest():
    base = Sweep.of([0.1, 0.2, 0.3], [True, False, True])
    others = [
        Sweep.of([0.1, 0.2, 0.3], [True, True, True]),
        Sweep.of([0.1, 0.2, 0.4], [True, False, True]),
        Sweep.of([0.1, 0.2, 0.3], [True, False, True], withheld=1),
        Sweep.of([0.2, 0.1, 0.3], [True, False, True]),
        Sweep.of([0.1, 0.2, 0.3], [True, False, True], weight=[1, 2, 1]),
    ]
    assert len({sweep.digest() for sweep in [base, *others]}) == 6


def test_small_weights_count_in_the_digest():
    one = Sweep.of([0.1, 0.2], [True, False], weight=[1e-6, 2e-6])
    two = Sweep.of([0.1, 0.2], [False, True], weight=[1e-6, 2e-6])
    assert one.digest() != two.digest()


@given(tables(SCORES, largest=40), st.integers(1, 8))
def test_a_coarser_sweep_lies_on_the_curve(rows, points):
    sweep = arrays(rows).sweep()
    coarse = sweep.coarsened(points)
    assert coarse.threshold.size <= points
    assert (coarse.n, coarse.total, float(coarse.errors)) == (sweep.n, sweep.total, float(sweep.errors))
    exact = plain.curve(rows)
    for cutoff, fallen in zip(coarse.threshold, np.cumsum(coarse.wrong) - coarse.wrong, strict=True):
        assert (sweep.errors - fallen) / sweep.total == pytest.approx(float(plain.error(rows, cutoff)))
        assert (plain.nonreturn(rows, cutoff), plain.error(rows, cutoff)) in exact


@given(tables(weights=st.sampled_from([1, 2, 0.5]), largest=30))
def test_a_frame_gives_the_same_sweep_as_arrays(rows):
    frame = pl.DataFrame(columns(rows), schema_overrides={"confidence": pl.Float64})
    assert Sweep.from_frame(_narwhal(frame)) == arrays(rows).sweep()


def _narwhal(frame):
    import narwhals as nw

    return nw.from_native(frame)
