import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.gold_standard.curves import MOST_PLACES, Scale, counts_of
from gold_standard.counted import counted, trials_of

ROWS = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 3), st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.integers(1, 9)),
    min_size=1,
    max_size=25,
)


def unzipped(rows):
    places, subject, y, n = zip(*rows, strict=True)
    return {"x": np.array(places) / 10, "y": y, "n": n, "subject": subject, "subjects": 4, "kind": "rates"}


class TestScale:
    def test_a_share_is_how_far_from_the_lower_to_the_upper_bound(self):
        scale = Scale(1.0, 7.0)
        assert scale.share(np.array([1.0, 4.0, 7.0])).tolist() == [0.0, 0.5, 1.0]
        assert scale.performance(np.array([0.0, 0.5, 1.0])).tolist() == [1.0, 4.0, 7.0]

    def test_without_an_upper_bound_shares_are_the_values(self):
        scale = Scale(1.0, None)
        assert scale.share(np.array([-3.0, 12.0])).tolist() == [-3.0, 12.0]
        assert (scale.foot, scale.width) == (0.0, 1.0)

    @given(st.floats(-100, 100), st.floats(0.1, 100), st.floats(0, 1))
    def test_share_and_performance_undo_each_other(self, lower, width, share):
        scale = Scale(lower, lower + width)
        assert scale.share(scale.performance(np.array([share])))[0] == pytest.approx(share, abs=1e-9)


class TestCounts:
    @given(ROWS)
    def test_are_sums_over_the_trials_of_a_subject_at_a_place(self, rows):
        counts = counted(**unzipped(rows))
        assert counts.places.tolist() == sorted({row[0] / 10 for row in rows})
        for subject in range(4):
            for column, place in enumerate(counts.places):
                mine = [(y, n) for x, who, y, n in rows if who == subject and x / 10 == place]
                cell = (subject, column)
                assert counts.sizes[cell] == sum(n for _, n in mine)
                assert counts.totals[cell] == pytest.approx(sum(y * n for y, n in mine))
                assert counts.squares[cell] == pytest.approx(sum(y * y * n for y, n in mine))
        assert counts.present.tolist() == sorted({row[1] for row in rows})
        assert counts.subjects == len({row[1] for row in rows})
        assert counts.rows == len(rows)

    @given(ROWS, st.lists(st.integers(0, 3), min_size=4, max_size=4))
    def test_weights_are_as_many_copies_of_a_subject(self, rows, copies):
        repeated = [row for row in rows for _ in range(copies[row[1]])]
        totals, sizes = counted(**unzipped(rows)).weighted(np.array([copies], dtype=float))
        for place, total, size in zip(sorted({row[0] for row in rows}), totals[0], sizes[0], strict=True):
            assert size == sum(n for x, _, _, n in repeated if x == place)
            assert total == pytest.approx(sum(y * n for x, _, y, n in repeated if x == place))

    @given(ROWS, st.floats(0, 1))
    def test_squared_distances_are_those_of_each_value(self, rows, share):
        counts = counted(**unzipped(rows))
        wanted = sum(n * (y - share) ** 2 for _, _, y, n in rows)
        assert counts.squared_distance(np.full(len(counts.places), share)) == pytest.approx(wanted, abs=1e-9)

    def test_only_the_rows_asked_for_are_counted_and_all_subjects_keep_their_place(self):
        trials = trials_of([0.1, 0.2, 0.3], [1, 0, 1], subject=[0, 1, 2])
        counts = counts_of(trials, trials.x > 0.15)
        assert counts.places.tolist() == [0.2, 0.3]
        assert counts.totals.shape == (3, 2)
        assert counts.present.tolist() == [1, 2]

    def test_scores_are_counted_as_shares_of_the_scale(self):
        counts = counted([0.0, 0.0, 1.0], [1, 4, 7], kind="scores", lower=1.0, upper=7.0, subject=[0, 0, 0])
        assert counts.whole[0].tolist() == [0.5, 1.0]
        assert not counts.binomial

    def test_the_likelihood_of_knowing_every_value_is_that_of_its_binomial_shares(self):
        by_hand = 4 * (0.25 * np.log(0.25) + 0.75 * np.log(0.75))
        assert counted([0, 1], [0.25, 1.0], n=[4, 7], kind="rates").entropy == pytest.approx(by_hand)
        assert counted([0, 1], [0, 1]).entropy == 0
        assert counted([0, 1], [0.5, 3.0], kind="scores", upper=None).entropy == 0


class TestPlaces:
    def test_up_to_the_limit_all_are_told_apart(self):
        x = np.sort(np.random.default_rng(0).random(MOST_PLACES))
        counts = counted(x, np.zeros(len(x)))
        assert (counts.places == x).all()
        assert not counts.rounded

    def test_more_are_rounded_to_equal_steps_within_the_range(self):
        x = np.random.default_rng(0).random(3 * MOST_PLACES) * 7 - 2
        counts = counted(x, x > 0, subject=np.zeros(len(x), dtype=int))
        assert counts.rounded
        assert len(counts.places) <= MOST_PLACES + 1
        assert (counts.low, counts.high) == pytest.approx((x.min(), x.max()), abs=1e-12)
        assert counts.low >= x.min()
        assert counts.high <= x.max()
        assert counts.whole[1].sum() == len(x)
        assert counts.whole[0].sum() == (x > 0).sum()
        step = (x.max() - x.min()) / MOST_PLACES
        parts = (counts.places - x.min()) / step
        assert parts == pytest.approx(np.rint(parts), abs=1e-6)
