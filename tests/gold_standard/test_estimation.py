import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.gold_standard.curves import FAMILIES, PRIOR, batch_of, batch_size, with_prior
from gold_standard.counted import counted, simulated, simulated_counts, straight
from reference import gold_fits as plain


def basis_of(counts, kind="spline", *, link="logit", direction="falling"):
    steps = tuple(counts.places.tolist()) if kind == "isotonic" else ()
    return FAMILIES[kind](counts.low, counts.high, link, direction, places=steps)


def one(counts, basis, smoothness=1.0, weights=None):
    weights = np.ones((1, counts.totals.shape[0])) if weights is None else weights
    return basis.estimate(counts, weights, smoothness, np.zeros(basis.size))


class TestPrior:
    def test_is_one_trial_in_all_and_half_a_success(self):
        basis = FAMILIES["spline"](0.0, 1.0, "logit", "falling")
        totals, sizes = with_prior(basis, np.zeros((2, 3)), np.ones((2, 3)))
        assert sizes.sum(axis=1) - 3 == pytest.approx(PRIOR)
        assert totals.sum(axis=1) == pytest.approx(PRIOR / 2)

    def test_lies_at_the_ends_and_quarters_of_the_range(self):
        counts = counted([2.0, 3.0, 6.0], [1, 1, 0])
        basis = basis_of(counts)
        shared = batch_of(basis, counts, 2.0)
        assert shared.rows[3:] == pytest.approx(basis.rows(np.array([2.0, 3.0, 4.0, 5.0, 6.0])))
        assert shared.penalty == pytest.approx(2 * basis.roughness)

    def test_least_squares_do_without(self):
        counts = counted([2.0, 3.0, 6.0], [1, 1, 0])
        basis = basis_of(counts, "linear", link="identity")
        totals, sizes = with_prior(basis, np.ones((1, 3)), np.ones((1, 3)))
        assert totals.shape == sizes.shape == (1, 3)
        assert len(batch_of(basis, counts, 0.0).rows) == 3


class TestEstimated:
    @pytest.mark.parametrize("kind", ["spline", "logistic", "isotonic"])
    def test_a_weight_of_two_is_the_subject_twice(self, kind):
        x, y, subject = simulated(straight, subjects=5, trials=20)
        twice = np.concatenate([np.arange(len(x)), np.flatnonzero(subject == 3)])
        link = "identity" if kind == "isotonic" else "logit"
        counts = counted(x, y, subject=subject)
        weighted = one(counts, basis_of(counts, kind, link=link), weights=np.array([[1.0, 1, 1, 2, 1]]))
        repeated = counted(x[twice], y[twice], subject=subject[twice])
        assert weighted == pytest.approx(one(repeated, basis_of(repeated, kind, link=link)), abs=1e-9)

    def test_a_weight_of_nothing_is_a_subject_who_was_not_there(self):
        x, y, subject = simulated(straight, subjects=5, trials=30)
        counts = counted(x, y, subject=subject)
        basis = basis_of(counts)
        without = counted(x[subject != 2], y[subject != 2], subject=subject[subject != 2])
        weighted = one(counts, basis, weights=np.array([[1.0, 1, 0, 1, 1]]))
        assert weighted[0] == pytest.approx(one(without, basis)[0], abs=1e-6)

    def test_the_spline_minimises_the_penalised_likelihood_of_all_trials_and_the_prior(self):
        x, y, subject = simulated(straight, subjects=4, trials=25)
        counts = counted(x, y, subject=subject)
        basis = basis_of(counts)
        places, shares, sizes = (np.array(part) for part in plain.with_prior_trials(x, y, np.ones(len(x))))
        case = (basis.rows(places), 3.0 * basis.roughness)
        theirs = plain.least(*case, basis.bounded, "logit", sizes * shares, sizes)
        ours = one(counts, basis, smoothness=3.0)[0]
        objectives = [plain.objective(*case, "logit", sizes * shares, sizes, found) for found in (ours, theirs)]
        assert objectives[0] == pytest.approx(objectives[1], abs=1e-6)
        x = np.linspace(0, 1, 50)
        assert basis.rows(x) @ ours == pytest.approx(basis.rows(x) @ theirs, abs=1e-3)

    def test_many_rows_of_weights_are_as_many_fits(self):
        counts = simulated_counts(straight, subjects=6, trials=20)
        basis = basis_of(counts)
        weights = np.random.default_rng(1).integers(0, 3, (9, 6)).astype(float) + 0.1
        together = one(counts, basis, weights=weights)
        for row, weight in zip(together, weights, strict=True):
            assert row == pytest.approx(one(counts, basis, weights=weight[None])[0], abs=1e-5)

    def test_batches_are_smaller_the_more_places_there_are(self):
        few, many = (counted(np.arange(size), np.zeros(size)) for size in (10, 1000))
        assert batch_size(few) > batch_size(many) >= 1


class TestPooled:
    @given(
        st.lists(st.tuples(st.integers(0, 5), st.integers(1, 5)), min_size=2, max_size=15),
        st.sampled_from(["falling", "rising"]),
    )
    def test_equals_pooling_by_hand_and_that_of_scikit_learn(self, cells, direction):
        from sklearn.isotonic import IsotonicRegression

        x = np.arange(len(cells), dtype=float)
        n = np.array([size for _, size in cells], dtype=float)
        y = np.array([min(good, size) / size for good, size in cells])
        counts = counted(x, y, n=n, kind="rates")
        ours = one(counts, basis_of(counts, "isotonic", link="identity", direction=direction))[0]
        assert ours == pytest.approx(plain.pooled(y.tolist(), n.tolist(), rising=direction == "rising"), abs=1e-9)
        theirs = IsotonicRegression(increasing=direction == "rising").fit_transform(x, y, sample_weight=n)
        assert ours == pytest.approx(theirs, abs=1e-6)

    def test_a_place_whose_subjects_were_not_drawn_lies_between_its_neighbours(self):
        counts = counted([0.0, 1.0, 3.0], [1, 1, 0], subject=[0, 1, 2])
        basis = basis_of(counts, "isotonic", link="identity")
        found = one(counts, basis, weights=np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]))
        assert found == pytest.approx(np.array([[1, 2 / 3, 0], [1, 1, 0]]))
