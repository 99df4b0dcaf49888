import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from demur.understanding.grader import LEAF, Tree, grow_tree, more_errors, prune_tree


def rows(n=300, *, noise=0.2, seed=0, n_features=2):
    rng = np.random.default_rng(seed)
    features = rng.integers(0, 12, (n, n_features)) / 3
    labels = (features[:, 0] > 2).astype(np.intp)
    return features, np.where(rng.random(n) < noise, 1 - labels, labels)


def split(counts, below, above):
    """A tree of one split at 0.5 whose leaves have these counts."""
    return Tree(
        np.array([0, LEAF, LEAF]),
        np.array([0.5, np.nan, np.nan]),
        np.array([1, LEAF, LEAF]),
        np.array([2, LEAF, LEAF]),
        np.array([counts, below, above], dtype=float),
    )


def test_a_row_goes_below_when_its_value_is_at_most_the_threshold():
    tree = split([4, 4], [4, 1], [0, 3])
    assert tree.leaves(np.array([[0.5], [0.51], [-1.0]])).tolist() == [1, 2, 1]
    assert tree.proportions(np.array([[0.0], [1.0]])).tolist() == [[0.8, 0.2], [0.0, 1.0]]
    assert tree.proportions(np.empty((0, 1))).shape == (0, 2)


@given(st.integers(2, 60), st.integers(1, 3), st.integers(0, 9))
def test_a_tree_as_grown_answers_as_that_of_scikit_learn(n, min_per_leaf, seed):
    from sklearn.tree import DecisionTreeClassifier

    features, labels = rows(n, seed=seed)
    tree = grow_tree(features, labels, n_labels=2, min_per_leaf=min_per_leaf, seed=seed)
    theirs = DecisionTreeClassifier(criterion="entropy", min_samples_leaf=min_per_leaf, random_state=seed)
    theirs.fit(features, labels)
    assert tree.leaves(features).tolist() == theirs.apply(features).tolist()
    np.testing.assert_allclose(tree.proportions(features)[:, theirs.classes_], theirs.predict_proba(features))


def test_the_counts_of_a_node_are_those_of_the_nodes_below_it():
    tree = grow_tree(*rows(), n_labels=2)
    inner = tree.feature != LEAF
    below = tree.counts[tree.below[inner]] + tree.counts[tree.above[inner]]
    assert (tree.counts[inner] == below).all()
    assert tree.counts[~inner].sum(axis=1).min() >= 2


def test_a_label_that_does_not_occur_has_no_counts():
    features, labels = rows(noise=0)
    tree = grow_tree(features, labels * 2, n_labels=3)
    assert tree.counts[:, 1].sum() == 0
    assert tree.counts[0].sum() == 300


@pytest.mark.parametrize(("n", "errors", "more"), [(6, 0, 1.23780), (9, 0, 1.28480), (1, 0, 0.75), (2, 2, 0.0)])
def test_more_errors_than_seen_are_charged_as_worked_by_hand(n, errors, more):
    # none seen: n (1 - 0.25 ** (1 / n)), as in Quinlan's example of a tree of votes
    assert more_errors(n, errors, 0.25) == pytest.approx(more, abs=1e-4)


@given(st.integers(20, 400), st.data())
def test_errors_charged_are_near_the_exact_limit_of_the_binomial(n, data):
    errors = data.draw(st.integers(1, n // 2))
    limit = (errors + more_errors(n, errors, 0.25)) / n
    assert binom.cdf(errors, n, limit) == pytest.approx(0.25, abs=0.03)


def test_errors_charged_between_none_and_one_lie_on_a_line():
    assert more_errors(10, 0.5, 0.25) == pytest.approx((more_errors(10, 0, 0.25) + more_errors(10, 1, 0.25)) / 2)


def test_a_split_that_tells_nothing_becomes_a_leaf_and_one_that_tells_all_stays():
    assert len(prune_tree(split([6, 2], [3, 1], [3, 1]))) == 1
    assert len(prune_tree(split([8, 8], [8, 0], [0, 8]))) == 3


def test_pruning_keeps_the_counts_of_what_is_left_and_the_whole_of_the_rows():
    features, labels = rows()
    tree = grow_tree(features, labels, n_labels=2)
    less = prune_tree(tree)
    assert 1 < len(less) < len(tree)
    assert less.counts[0].tolist() == tree.counts[0].tolist()
    leaves = less.leaves(features)
    for leaf in np.unique(leaves):
        assert np.bincount(labels[leaves == leaf], minlength=2).tolist() == less.counts[leaf].tolist()


def test_a_smaller_confidence_prunes_more():
    tree = grow_tree(*rows(noise=0.3), n_labels=2)
    sizes = [len(prune_tree(tree, confidence=confidence)) for confidence in (0.5, 0.25, 0.05, 0.001)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1]


def test_a_tree_hundreds_of_nodes_deep_is_pruned():
    n = 3000
    features = np.arange(n, dtype=float)[:, None]
    tree = grow_tree(features, np.arange(n) % 2, n_labels=2, min_per_leaf=1)
    assert len(tree) == 2 * n - 1
    assert len(prune_tree(tree, confidence=0.01)) >= 1
