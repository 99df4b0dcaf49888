import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.errors import DataError
from demur.gold_standard.fitting import draw_subjects, strata
from gold_standard.counted import counted


def by(*present, subjects):
    """A performer with a trial of each of these subjects."""
    return counted([0.0] * len(present), [1] * len(present), subject=present, subjects=subjects)


CASTS = st.integers(2, 12).flatmap(
    lambda subjects: st.lists(
        st.lists(st.integers(0, subjects - 1), min_size=2, max_size=subjects, unique=True), min_size=1, max_size=4
    ).map(lambda performers: [by(*present, subjects=subjects) for present in performers])
)


class TestStrata:
    def test_subjects_of_a_performer_are_of_one_stratum(self):
        label = strata([by(0, 1, 2, subjects=6), by(3, 4, subjects=6)])
        assert label[0] == label[1] == label[2] != label[3]
        assert label[3] == label[4]

    def test_a_subject_whom_two_performers_share_links_theirs(self):
        label = strata([by(0, 1, subjects=4), by(1, 2, subjects=4), by(3, subjects=4)])
        assert label[0] == label[1] == label[2] != label[3]

    def test_who_has_no_trials_is_of_none(self):
        assert strata([by(0, 2, subjects=4)])[[1, 3]].tolist() == [-1, -1]


class TestDraws:
    @given(CASTS, st.integers(0, 100))
    def test_a_stratum_of_g_is_drawn_g_less_one_times_and_counts_g(self, performers, seed):
        drawn = draw_subjects(performers, 7, seed)
        label = strata(performers)
        weights = drawn[:]
        assert weights.shape == (7, len(label))
        for stratum in set(label.tolist()) - {-1}:
            members = label == stratum
            size = members.sum()
            assert (drawn.times[:, members].sum(axis=1) == max(size - 1, 1)).all()
            assert weights[:, members].sum(axis=1) == pytest.approx(size)
        assert not weights[:, label < 0].any()

    @given(CASTS, st.integers(0, 100))
    def test_no_performer_is_ever_without_trials(self, performers, seed):
        weights = draw_subjects(performers, 25, seed)[:]
        for one in performers:
            assert (one.weighted(weights)[1].sum(axis=1) > 0).all()

    def test_are_the_same_for_the_same_seed_and_others_for_another(self):
        performers = [by(*range(9), subjects=9)]
        one, again, other = (draw_subjects(performers, 20, seed)[:] for seed in (1, 1, 2))
        assert (one == again).all()
        assert (one != other).any()

    def test_a_subject_counts_alike_for_all_performers(self):
        performers = [by(*range(6), subjects=6), by(*range(3, 6), subjects=6)]
        weights = draw_subjects(performers, 30, 0)[:]
        whole, shared = (one.weighted(weights)[1].sum(axis=1) for one in performers)
        assert whole == pytest.approx(weights.sum(axis=1))
        assert shared == pytest.approx(weights[:, 3:].sum(axis=1))

    def test_each_subject_counts_once_on_average(self):
        weights = draw_subjects([by(*range(5), subjects=8), by(5, 6, 7, subjects=8)], 20_000, 0)[:]
        assert weights.mean(axis=0) == pytest.approx(1.0, abs=0.03)

    @pytest.mark.parametrize("subjects", [3, 6, 12])
    def test_the_spread_of_a_sum_is_the_unbiased_one_of_its_sample(self, subjects):
        value = np.random.default_rng(subjects).normal(10, 3, subjects)
        drawn = draw_subjects([by(*range(subjects), subjects=subjects)], 40_000, 0)[:] @ value
        assert drawn.mean() == pytest.approx(value.sum(), rel=0.01)
        assert drawn.var() == pytest.approx(subjects * value.var(ddof=1), rel=0.04)

    def test_over_many_studies_the_spread_of_a_mean_is_the_true_one(self):
        rng = np.random.default_rng(0)
        weights = draw_subjects([by(*range(5), subjects=5)], 2000, 0)[:]
        spreads = [(weights @ rng.normal(0, 2, 5) / 5).var() for _ in range(2000)]
        assert np.mean(spreads) == pytest.approx(2**2 / 5, rel=0.06)

    def test_one_subject_is_always_there(self):
        assert (draw_subjects([by(0, subjects=1)], 4, 0)[:] == 1).all()

    def test_rows_are_given_by_the_slice(self):
        drawn = draw_subjects([by(*range(6), subjects=6)], 10, 0)
        assert len(drawn) == 10
        assert (drawn[2:5] == drawn[:][2:5]).all()

    def test_a_performer_of_one_subject_among_many_is_never_without_trials(self):
        performers = [by(*range(6), subjects=6), by(4, subjects=6)]
        assert (draw_subjects(performers, 200, 0).times[:, 4] > 0).all()

    def test_two_subjects_of_whom_one_draw_can_take_only_one_are_a_fault_if_both_are_needed(self):
        performers = [by(0, 1, subjects=2), by(0, subjects=2), by(1, subjects=2)]
        with pytest.raises(DataError, match="subjects cannot be resampled so that every performer has trials"):
            draw_subjects(performers, 3, 0)
