"""A grader of short answers: features of overlap with what was expected, and a decision tree close to C4.5.

What differs from C4.5 as Weka's J48 builds it by default: a split is chosen by information gain, not gain ratio, and
without the charge for the choice among thresholds; a threshold lies midway between two values, not on the lower; a
subtree is only ever replaced by a leaf, never raised to the place of its parent. The minimum of rows in a leaf (2), the
pruning by the upper limit of the error (at 0.25) and the shares of the leaf as probabilities are the same.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from heapq import heapify, heappop, heappush
from pathlib import Path
from statistics import NormalDist
from typing import Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.arrays import Array
from demur.core.io.columns import ALIASES, mapping_of, nearest, resolve
from demur.core.io.files import table_of
from demur.core.io.tables import Cells, Request, first
from demur.errors import DataError, UsageError
from demur.importers.reading import read_table

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "id": (),
    "question": (),
    "expected": ("expected_answer", "expected_answers", "reference", "references", "reference_answers"),
    "answer": ("student_answer", "response"),
    "target": ("gold", "label"),
    "dialogue": ALIASES["dialogue"],
    "group": ("subject", "student"),
}
"""The canonical columns of a table of student answers, each with the other names it may go by."""

TEXTS = ("question", "expected", "answer")


def student_answers(data: object, *, columns: Mapping[str, str] | None = None, marked: bool = False) -> pl.DataFrame:
    """Reads and checks student answers in a file, in a frame, in columns, or in rows.

    The result has id, question, expected, answer and, where the data has them, target, dialogue and group. `expected`
    may be a text, a list of texts or a list of `{"text": ...}`; in the result it is always a list, without blank ones.
    An answer may be empty, as students send such, but not missing. `columns` maps canonical columns to those of
    the data. `marked` asks for a target in every row. Rows without an id are numbered from 1.

    >>> row = {"question": "Why is it on?", "references": [{"text": "The path is closed."}], "answer": ""}
    >>> student_answers([row]).row(0, named=True)
    {'id': '1', 'question': 'Why is it on?', 'expected': ['The path is closed.'], 'answer': ''}
    """
    table = table_of(read_table(data) if isinstance(data, str | Path) else data, Request())
    found = resolve(table.columns, dict(columns or {}), where=f"{table.name}:", aliases=COLUMNS).columns
    needed = (*TEXTS, "target") if marked else TEXTS
    for part in needed:
        if part not in found:
            fix = f"{nearest(part, table.columns)} {mapping_of(part, '...')}".strip()
            raise DataError(f'there is no column "{part}"', where=f"{table.name}:", fix=fix)
    cells = Cells(table, found)
    texts = {part: cells.text(part) for part in found}
    for part in needed:
        place = first(texts[part].is_null())
        if place is not None:
            fix = "leave the row out, or write an empty text" if part == "answer" else "leave the row out"
            raise cells.fault(part, place, "must not be missing", fix=fix)
    texts.setdefault("id", pl.Series([str(number) for number in range(1, table.frame.height + 1)], dtype=pl.String))
    lists = [_texts(cell, cells, place) for place, cell in enumerate(texts["expected"])]
    texts["expected"] = pl.Series(lists, dtype=pl.List(pl.String))
    return pl.DataFrame({part: texts[part] for part in COLUMNS if part in texts})


def _texts(cell: str, cells: Cells, place: int) -> list[str]:
    """The texts of a cell, which is a text or a list in JSON; blank ones are left out."""
    texts: list[Any] = [cell]
    if cell.lstrip().startswith("["):
        with suppress(msgspec.DecodeError):
            values: list[Any] = msgspec.json.decode(cell)
            texts = [value.get("text") if isinstance(value, dict) else value for value in values]
    if not all(isinstance(text, str) for text in texts):
        rule = 'must be a text, a list of texts or a list of {"text": ...}'
        raise cells.fault("expected", place, rule, got=cell)
    texts = [text for text in texts if text.strip()]
    if not texts:
        rule = "must hold at least one expected answer with words"
        raise cells.fault("expected", place, rule, got=cell, fix="leave the row out, or give the question an answer")
    return texts


_NO_WORDS: frozenset[str] = frozenset()
_cleared = re.compile(r"""[.;:,?!(){}"`$%@<>_\s]+|--|(?<!\w)'|'(?!\w)""")


def words(text: str, *, stop_words: Collection[str] = _NO_WORDS) -> list[str]:
    """The words of a text, cleaned as Text::Similarity cleans: lower case, punctuation off, stop words out.

    Apostrophes, straight or curled, and hyphens inside a word stay, and so do signs such as = and +. A full stop parts
    what it stands between, in numbers too. A stop word is left out where it is a whole word.

    >>> words("It doesn't open -- 1.5 V, two-way!", stop_words={"it"})
    ["doesn't", 'open', '1', '5', 'v', 'two-way']
    """
    found = _cleared.sub(" ", text.lower().replace("’", "'")).split()
    return [word for word in found if word not in stop_words] if stop_words else found


@dataclass(frozen=True, slots=True)
class Overlap:
    """What two texts share: the lengths of the phrases, longest first, and the number of words in each text.

    Each score rises with the likeness of the texts. Where nothing is shared, all are 0, also for a text without words.

    >>> shared = overlap(words("the bulb is in a closed path"), words("A closed path with the battery"))
    >>> shared.phrases, shared.raw, round(shared.f1, 3), shared.lesk
    ((3, 1), 4, 0.615, 10)
    """

    phrases: tuple[int, ...]
    first: int
    second: int

    @property
    def raw(self) -> int:
        """Words shared, each as often as both texts have it."""
        return sum(self.phrases)

    @property
    def f1(self) -> float:
        """Harmonic mean of the shares of either text that the other has too, 2 raw / (first + second)."""
        return 2 * self.raw / (self.first + self.second) if self.phrases else 0.0

    @property
    def lesk(self) -> int:
        """Sum of the squared lengths of the shared phrases, which favours words in the same order ("raw lesk")."""
        return sum(length * length for length in self.phrases)

    @property
    def normalised_lesk(self) -> float:
        """The same over the product of the lengths of the texts: 1 for a text and itself ("lesk")."""
        return self.lesk / (self.first * self.second) if self.phrases else 0.0

    @property
    def cosine(self) -> float:
        """Words shared over the geometric mean of the lengths of the texts.

        This is what Text::Similarity calls cosine. The cosine of the vectors of word counts is the same where no word
        occurs twice in a text.
        """
        return self.raw / math.sqrt(self.first * self.second) if self.phrases else 0.0


def overlap(first: Sequence[str], second: Sequence[str]) -> Overlap:
    """The phrases that two lists of words share: the longest first, no word used twice (Banerjee and Pedersen, 2002).

    Of phrases of one length the one that begins first in the first text is taken, where it begins first in the second.

    >>> overlap("a b c d".split(), "c d x a b c".split()).phrases
    (3, 1)
    """
    runs = [(-length, start, other) for start, other, length in _runs(first, second)]
    heapify(runs)
    taken: list[int] = []
    used, other_used = bytearray(len(first)), bytearray(len(second))
    while runs:
        length, start, other = heappop(runs)
        length = -length
        if any(used[start : start + length]) or any(other_used[other : other + length]):
            for place, free in _free_parts(used, other_used, start, other, length):
                heappush(runs, (-free, start + place, other + place))
            continue
        taken.append(length)
        used[start : start + length] = other_used[other : other + length] = b"\x01" * length
    return Overlap(tuple(taken), len(first), len(second))


def _runs(first: Sequence[str], second: Sequence[str]) -> Iterator[tuple[int, int, int]]:
    """The common phrases that could not be longer, as start in the first text, start in the second, and length."""
    places: dict[str, list[int]] = {}
    for place, word in enumerate(second):
        places.setdefault(word, []).append(place)
    running: dict[int, int] = {}
    for start in range(len(first) + 1):
        here = places.get(first[start], ()) if start < len(first) else ()
        going_on = {place: running.pop(place - 1, 0) + 1 for place in here}
        for end, length in running.items():
            yield start - length, end - length + 1, length
        running = going_on


def _free_parts(
    used: bytearray, other_used: bytearray, start: int, other: int, length: int
) -> Iterator[tuple[int, int]]:
    """The parts of a run no word of which is used yet, as place in the run and length."""
    begin = 0
    for place in range(length + 1):
        if place == length or used[start + place] or other_used[other + place]:
            if place > begin:
                yield begin, place - begin
            begin = place + 1


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


def grow_tree(features: Array, labels: Places, *, n_labels: int, min_per_leaf: int = 2, seed: int = 0) -> Tree:
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


def prune_tree(tree: Tree, *, confidence: float = 0.25) -> Tree:
    """The tree with each subtree replaced by a leaf where, seen pessimistically, that would not err more.

    The error-based pruning of Quinlan (1993), section 4.2. A smaller confidence prunes more.
    """
    n = tree.counts.sum(axis=1)
    seen = n - tree.counts.max(axis=1)
    as_leaf = [errors + more_errors(rows, errors, confidence) for rows, errors in zip(n, seen, strict=True)]
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
    reached = np.zeros(len(tree), dtype=bool)
    reached[0] = True
    for inner in np.flatnonzero(feature != LEAF):
        if reached[inner]:
            reached[[tree.below[inner], tree.above[inner]]] = True
    number = np.cumsum(reached) - 1
    is_leaf = feature[reached] == LEAF
    return Tree(
        feature[reached],
        np.where(is_leaf, math.nan, tree.threshold[reached]),
        np.where(is_leaf, LEAF, number[tree.below[reached]]),
        np.where(is_leaf, LEAF, number[tree.above[reached]]),
        tree.counts[reached],
    )


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


SCORES = ("raw", "f1", "lesk", "cosine")
FEATURES = tuple(f"{part}_{score}" for part in ("expected", "question") for score in SCORES)
"""The features by name, in the order of the columns."""
Labels = NDArray[np.object_]
_KEPT_TEXTS = 1 << 14


class ShortAnswerGrader:
    """Grades answers in the manner of scikit-learn: fit, then predict or predict_proba.

    X is a table of student answers (see `student_answers`), not an array of numbers, so scikit-learn's
    check_estimator does not apply. With several expected answers, each feature takes its best value over them.

    `min_per_leaf` and `confidence` (smaller prunes more; None leaves the tree as grown) are the defaults of C4.5.
    `normalised_lesk` divides the Lesk score by the lengths of both texts. The seed settles ties between splits.

    >>> rows = [{"question": "Why?", "expected": "the path is closed", "answer": said}
    ...         for said in ("a closed path", "the path is closed", "no idea", "help", "it is closed", "who are you")]
    >>> grader = ShortAnswerGrader().fit(rows, ["correct", "correct", "none", "none", "correct", "none"])
    >>> grader.predict([{"question": "Why?", "expected": "the path is closed", "answer": "it was a closed path"}])
    array(['correct'], dtype=object)
    """

    def __init__(
        self,
        *,
        min_per_leaf: int = 2,
        confidence: float | None = 0.25,
        stop_words: Iterable[str] = (),
        normalised_lesk: bool = False,
        seed: int = 0,
    ) -> None:
        if min_per_leaf < 1:
            raise UsageError(f"min_per_leaf must be at least 1; got {min_per_leaf}")
        if confidence is not None and not 0 < confidence <= 0.5:
            raise UsageError(f"confidence must be over 0 and at most 0.5, or None for no pruning; got {confidence}")
        self.min_per_leaf = min_per_leaf
        self.confidence = confidence
        self.stop_words = frozenset(stop_words)
        self.normalised_lesk = normalised_lesk
        self.seed = seed
        self.classes_: Labels = np.array([], dtype=object)
        self.tree_: Tree | None = None

    def features(self, X: object) -> Array:  # noqa: N803  # the name scikit-learn gives it
        """The eight features of each answer; the columns are `FEATURES`."""
        return self.measure(student_answers(X))

    def fit(self, X: object, y: Sequence[str] | None = None) -> ShortAnswerGrader:  # noqa: N803
        """Learns from marked answers; without `y` the marks are the column `target`."""
        answers = student_answers(X, marked=y is None)
        labels = answers["target"].to_list() if y is None else [str(label) for label in y]
        if len(labels) != answers.height:
            raise UsageError(f"there must be as many labels as answers; got {len(labels):,} for {answers.height:,}")
        return self.fit_features(self.measure(answers), labels)

    def fit_features(self, features: Array, labels: Sequence[str]) -> ShortAnswerGrader:
        """Learns from features that are known already."""
        classes, numbers = np.unique(np.asarray(labels, dtype=object), return_inverse=True)
        if len(classes) < 2:
            raise DataError(
                "must have at least two different labels", where="target", got=", ".join(classes), fix="add answers"
            )
        tree = grow_tree(features, numbers, n_labels=len(classes), min_per_leaf=self.min_per_leaf, seed=self.seed)
        self.classes_ = classes
        self.tree_ = tree if self.confidence is None else prune_tree(tree, confidence=self.confidence)
        return self

    def predict(self, X: object) -> Labels:  # noqa: N803
        """The most likely label of each answer."""
        return self.graded(self.features(X))[0]

    def predict_proba(self, X: object) -> Array:  # noqa: N803
        """The probability of each label, in the order of `classes_`, for each answer: its share in the leaf."""
        return self._fitted().proportions(self.features(X))

    def graded(self, features: Array) -> tuple[Labels, Array]:
        """The most likely label of each row of features, and its probability; the first of labels equally likely."""
        shares = self._fitted().proportions(features)
        return self.classes_[shares.argmax(axis=1)], shares.max(axis=1)

    def respond(self, X: object) -> pl.DataFrame:  # noqa: N803
        """A table of responses to answers: what `demur classes` and `demur score` read."""
        answers = student_answers(X)
        return _responses(answers, *self.graded(self.measure(answers)))

    def measure(self, answers: pl.DataFrame) -> Array:
        """The features of each row of a checked table."""
        words_of = lru_cache(_KEPT_TEXTS)(lambda text: words(text, stop_words=self.stop_words))

        def scores(answer: list[str], text: str) -> tuple[float, float, float, float]:
            shared = overlap(answer, words_of(text))
            return shared.raw, shared.f1, shared.normalised_lesk if self.normalised_lesk else shared.lesk, shared.cosine

        values = np.zeros((answers.height, len(FEATURES)))
        for row, (question, expected, answer) in enumerate(answers.select(TEXTS).iter_rows()):
            said = words_of(answer)
            values[row, : len(SCORES)] = np.max([scores(said, text) for text in expected], axis=0)
            values[row, len(SCORES) :] = scores(said, question)
        return values

    def _fitted(self) -> Tree:
        if self.tree_ is None:
            raise UsageError("this grader has learnt nothing yet: call fit first")
        return self.tree_


def cross_graded(
    data: object,
    *,
    grader: ShortAnswerGrader | None = None,
    folds: int = 10,
    by: str | None = None,
    seed: int = 0,
    columns: Mapping[str, str] | None = None,
) -> pl.DataFrame:
    """A table of responses in which each answer was graded by a tree that learnt from the other folds.

    Answers are a file, a frame, columns or rows, as for `student_answers`.

    Folds are stratified: each label is spread evenly over them. `by` names a column (dialogue, group or question)
    whose values are never parted; labels are then spread as evenly as whole values allow. The seed draws the folds.
    The grader, if given, lends its settings and is left as it was. `columns` maps canonical columns to those of the
    data.
    """
    answers = student_answers(data, columns=columns, marked=True)
    lent = grader or ShortAnswerGrader()
    labels = answers["target"].to_numpy()
    fold = _folds(answers, folds, by, seed)
    measured = lent.measure(answers)
    prediction, confidence = np.empty(answers.height, dtype=object), np.zeros(answers.height)
    for number in range(folds):
        inside = fold == number
        learnt = copy(lent).fit_features(measured[~inside], labels[~inside])
        prediction[inside], confidence[inside] = learnt.graded(measured[inside])
    return _responses(answers, prediction, confidence).with_columns(pl.Series("fold", fold + 1))


def _responses(answers: pl.DataFrame, prediction: Labels, confidence: Array) -> pl.DataFrame:
    kept = [part for part in ("id", "dialogue", "group", "target") if part in answers.columns]
    predicted = pl.Series("prediction", prediction.tolist(), dtype=pl.String)
    return answers.select(*kept, predicted, pl.Series("confidence", confidence))


def _folds(answers: pl.DataFrame, folds: int, by: str | None, seed: int) -> Places:
    """The fold of each row, from 0."""
    if folds < 2:
        raise UsageError(f"there must be at least two folds; got {folds}")
    if by is not None and by not in answers.columns:
        raise DataError(f'there is no column "{by}" to draw folds by', fix=f"there are {', '.join(answers.columns)}")
    if by is not None and answers[by].has_nulls():
        raise DataError("must not be missing where folds are drawn by it", where=by, fix="leave those rows out")
    n_units, units = (answers.height, "answers") if by is None else (answers[by].n_unique(), f"values of {by}")
    if n_units < folds:
        raise DataError(
            f"there must be at least as many {units} as folds", got=f"{n_units} for {folds}", fix="ask for fewer folds"
        )
    rng = np.random.default_rng(seed)
    labels = np.unique(answers["target"].to_list(), return_inverse=True)[1]
    if by is None:
        return stratified_folds(labels, folds, rng)
    return grouped_folds(labels, np.unique(answers[by].to_list(), return_inverse=True)[1], folds, rng)


def stratified_folds(labels: Places, folds: int, rng: np.random.Generator) -> Places:
    """The fold of each row: rows are shuffled, put in order of their labels, and dealt out like cards.

    >>> fold = stratified_folds(np.array([0, 0, 0, 0, 1, 1]), 2, np.random.default_rng(0))
    >>> [np.bincount(fold[labels]).tolist() for labels in (slice(0, 4), slice(4, 6))]
    [[2, 2], [1, 1]]
    """
    order = rng.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    fold = np.empty(len(labels), dtype=np.intp)
    fold[order] = np.arange(len(labels)) % folds
    return fold


def grouped_folds(labels: Places, units: Places, folds: int, rng: np.random.Generator) -> Places:
    """The fold of each row where rows of one unit stay together.

    Units are shuffled and taken from the largest to the smallest; each goes to the fold in which it leaves the labels
    spread most evenly over all folds.
    """
    counts = np.zeros((units.max() + 1, labels.max() + 1))
    np.add.at(counts, (units, labels), 1)
    weights = 1 / counts.sum(axis=0)
    order = rng.permutation(len(counts))
    order = order[np.argsort(-counts[order].sum(axis=1), kind="stable")]
    held = np.zeros((folds, counts.shape[1]))
    fold_of = np.empty(len(counts), dtype=np.intp)
    for unit in order:
        # what the sum of squared shares grows by; the smaller fold breaks a tie, so that none stays empty
        growth = ((2 * held + counts[unit]) * counts[unit] * weights**2).sum(axis=1)
        fold_of[unit] = np.lexsort((held.sum(axis=1), growth))[0]
        held[fold_of[unit]] += counts[unit]
    return fold_of[units]
