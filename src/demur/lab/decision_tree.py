"""Decision trees close to C4.5: grown by scikit-learn, pruned by their pessimistic errors, kept as readable nodes.

What differs from C4.5 as Weka's J48 builds it by default: a split is chosen by information gain, not gain ratio, and
without the charge for the choice among thresholds; a threshold lies midway between two values, not on the lower; a
subtree is only ever replaced by a leaf, never raised to the place of its parent. The minimum of rows in a leaf (2), the
pruning by the upper limit of the error (at 0.25) and the shares of the leaf as probabilities are the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from demur.core.arrays import Array
from demur.errors import DataError, UsageError

Places = NDArray[np.intp]

LEAF = -1
_SLACK = 0.1
"""A leaf is preferred when its pessimistic errors exceed those of the subtree by no more; the value is J48's."""


@dataclass(frozen=True, eq=False)
class Tree:
    """The nodes of a tree, each before those below it.

    At a node with a feature, rows whose value is at most the threshold go on to the node `below`, others to `above`. A
    leaf has the feature -1. `counts` has, for each node, the training rows of each label.
    """

    feature: Places
    threshold: Array
    below: Places
    above: Places
    counts: Array

    def __len__(self) -> int:
        return len(self.feature)

    def leaves(self, features: NDArray[np.floating[Any]]) -> Places:
        """The leaf that each row of features comes to."""
        at = np.zeros(len(features), dtype=np.intp)
        rows = np.arange(len(features))
        features = features.astype(np.float32)  # the precision in which the thresholds were found
        while rows.size:
            rows = rows[self.feature[at[rows]] != LEAF]
            here = at[rows]
            stays_low = features[rows, self.feature[here]] <= self.threshold[here]
            at[rows] = np.where(stays_low, self.below[here], self.above[here])
        return at

    def proportions(self, features: Array) -> Array:
        """The share of each label among the training rows of the leaf that each row comes to."""
        counts = self.counts[self.leaves(features)]
        shares: Array = counts / counts.sum(axis=1, keepdims=True)
        return shares


def grown(features: Array, labels: Places, *, n_labels: int, min_per_leaf: int = 2, seed: int = 0) -> Tree:
    """The unpruned tree for rows of features with labels numbered from 0; the seed settles ties between splits."""
    try:
        from sklearn.tree import DecisionTreeClassifier
    except ImportError:
        raise UsageError("decision trees need scikit-learn: pip install 'demur[demo]'") from None
    learner = DecisionTreeClassifier(criterion="entropy", min_samples_leaf=min_per_leaf, random_state=seed)
    tree = learner.fit(features, labels).tree_
    counts = np.zeros((tree.node_count, n_labels))
    # scikit-learn keeps shares, and only of the labels that occur
    counts[:, learner.classes_] = np.rint(tree.value[:, 0, :] * tree.n_node_samples[:, None])
    is_leaf = tree.children_left < 0
    return Tree(
        np.where(is_leaf, LEAF, tree.feature),
        np.where(is_leaf, math.nan, tree.threshold),
        np.where(is_leaf, LEAF, tree.children_left),
        np.where(is_leaf, LEAF, tree.children_right),
        counts,
    )


def pruned(tree: Tree, *, confidence: float = 0.25) -> Tree:
    """The tree with each subtree replaced by a leaf where, seen pessimistically, that would not err more.

    The error-based pruning of Quinlan (1993), section 4.2. A smaller confidence prunes more.
    """
    n = tree.counts.sum(axis=1)
    as_leaf = [errors + more_errors(rows, errors, confidence) for rows, errors in zip(n, _errors(tree), strict=True)]
    feature = tree.feature.copy()
    expected = list(as_leaf)
    for node in range(len(tree) - 1, -1, -1):
        if feature[node] == LEAF:
            continue
        as_subtree = expected[tree.below[node]] + expected[tree.above[node]]
        if as_leaf[node] <= as_subtree + _SLACK:
            feature[node] = LEAF
        else:
            expected[node] = as_subtree
    return _reachable(replace(tree, feature=feature))


def more_errors(n: float, errors: float, confidence: float) -> float:
    """How many errors more than those seen a leaf of n rows is to be charged with.

    The sum is the upper limit of the error count that is exceeded with probability `confidence`: exact for none, normal
    with correction for continuity from one on, linear in between.

    >>> round(more_errors(6, 0, 0.25), 3), round(more_errors(16, 1, 0.25), 3)
    (1.238, 1.476)
    """
    if errors < 1:
        none = float(n * (1 - confidence ** (1 / n)))
        return none if errors == 0 else none + errors * (more_errors(n, 1, confidence) - none)
    if errors + 0.5 >= n:
        return max(n - errors, 0.0)
    z = NormalDist().inv_cdf(1 - confidence)
    share = (errors + 0.5) / n
    spread = z * math.sqrt(share / n - share * share / n + z * z / (4 * n * n))
    return float(n * (share + z * z / (2 * n) + spread) / (1 + z * z / n) - errors)


def _errors(tree: Tree) -> Array:
    errors: Array = tree.counts.sum(axis=1) - tree.counts.max(axis=1)
    return errors


def _reachable(tree: Tree) -> Tree:
    """The nodes that rows can come to, numbered anew."""
    reached = np.zeros(len(tree), dtype=bool)
    reached[0] = True
    for node in range(len(tree)):
        if reached[node] and tree.feature[node] != LEAF:
            reached[[tree.below[node], tree.above[node]]] = True
    number = np.cumsum(reached) - 1
    feature = tree.feature[reached]
    is_leaf = feature == LEAF
    return Tree(
        feature,
        np.where(is_leaf, math.nan, tree.threshold[reached]),
        np.where(is_leaf, LEAF, number[tree.below[reached]]),
        np.where(is_leaf, LEAF, number[tree.above[reached]]),
        tree.counts[reached],
    )


class StoredNode(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """A node as a file has it; a leaf has nothing but its counts."""

    counts: dict[str, float]
    feature: str | None = None
    at_most: float | None = None
    below: int | None = None
    above: int | None = None


def stored(tree: Tree, features: Sequence[str], labels: Sequence[str]) -> list[dict[str, Any]]:
    """The nodes as plain values, with features and labels by name; `below` and `above` are places in the list."""
    return [msgspec.to_builtins(_stored_node(tree, node, features, labels)) for node in range(len(tree))]


def _stored_node(tree: Tree, node: int, features: Sequence[str], labels: Sequence[str]) -> StoredNode:
    counts = {label: float(count) for label, count in zip(labels, tree.counts[node], strict=True) if count}
    if tree.feature[node] == LEAF:
        return StoredNode(counts)
    name = features[tree.feature[node]]
    return StoredNode(counts, name, float(tree.threshold[node]), int(tree.below[node]), int(tree.above[node]))


def restored(nodes: Sequence[StoredNode], features: Sequence[str], labels: Sequence[str], *, where: str) -> Tree:
    """The tree that stored nodes describe, or a fault that names the node."""
    if not nodes:
        raise DataError("must have at least one node", where=f"{where}: nodes")
    for place, node in enumerate(nodes):
        _check(node, place, len(nodes), features, labels, f"{where}: node {place}")
    _check_each_has_one_parent(nodes, where)
    return Tree(
        np.array([LEAF if node.feature is None else features.index(node.feature) for node in nodes], dtype=np.intp),
        np.array([math.nan if node.at_most is None else node.at_most for node in nodes]),
        np.array([LEAF if node.below is None else node.below for node in nodes], dtype=np.intp),
        np.array([LEAF if node.above is None else node.above for node in nodes], dtype=np.intp),
        np.array([[node.counts.get(label, 0.0) for label in labels] for node in nodes]),
    )


def _check(
    node: StoredNode, place: int, n_nodes: int, features: Sequence[str], labels: Sequence[str], where: str
) -> None:
    _check_counts(node.counts, labels, where)
    parts = (node.feature, node.at_most, node.below, node.above)
    if all(part is None for part in parts):
        return
    if node.feature is None or node.at_most is None or node.below is None or node.above is None:
        raise DataError("must have feature, at_most, below and above, or none of them", where=where)
    if node.feature not in features:
        raise DataError("must ask for a feature there is", where=where, got=node.feature, fix=", ".join(features))
    if not all(place < child < n_nodes for child in (node.below, node.above)):
        rule = f"must lead on to later nodes, up to {n_nodes - 1}"
        raise DataError(rule, where=where, got=f"{node.below} and {node.above}")


def _check_counts(counts: Mapping[str, float], labels: Sequence[str], where: str) -> None:
    for label in counts:
        if label not in labels:
            raise DataError("must count labels of the model", where=where, got=label, fix=", ".join(labels))
    if min(counts.values(), default=0) < 0 or not sum(counts.values()) > 0:
        raise DataError("must have counts of which none is negative and one is positive", where=where)


def _check_each_has_one_parent(nodes: Sequence[StoredNode], where: str) -> None:
    children = [child for node in nodes for child in (node.below, node.above) if child is not None]
    if sorted(children) != list(range(1, len(nodes))):
        raise DataError("each node but the first must be led to from exactly one other", where=f"{where}: nodes")
