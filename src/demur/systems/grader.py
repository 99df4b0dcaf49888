"""A grader of short answers: eight likenesses of the answer to what was expected and asked, and a decision tree.

The classifier of Dzikovska et al. (2012), section 5. The paper names the Perl package Text::Similarity and Weka's C4.5
with default settings. It leaves open which text came first, whether the Lesk score was divided by the lengths of the
texts, what happened with several expected answers, and how folds were drawn; what is done here is said below. What
sets the tree apart from Weka's is said in `demur.systems.decision_tree`.

On the 5,199 Beetle answers of SemEval-2013 task 7, ten stratified folds give an accuracy of .53, macro F of .44 and
weighted F of .52 (means over ten seeds, with a standard deviation of about .005). Table 6 of the paper has .53, .43 and
.52, but for another set of answers. With no student in two folds it is .52, .43 and .50; "correct" for every answer
gives .42, .12 and .25.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur import __version__
from demur.data.output import write_whole
from demur.data.student_answers import exchanges, student_answers
from demur.errors import DataError, UsageError
from demur.systems.decision_tree import StoredNode, Tree, grown, pruned, restored, stored
from demur.systems.overlap import Overlap, overlap, words

FORMAT = "demur short-answer grader"
VERSION = 1

SCORES = ("raw", "f1", "lesk", "cosine")
FEATURES = tuple(f"{part}_{score}" for part in ("expected", "question") for score in SCORES)
"""The features by name, in the order of the columns."""

Array = NDArray[np.float64]
Labels = NDArray[np.object_]
_KEPT_TEXTS = 1 << 14


class ShortAnswerGrader:
    """Grades answers in the manner of scikit-learn: fit, then predict or predict_proba.

    X is a table of student answers (see `demur.data.student_answers`), not an array of numbers, so scikit-learn's
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
        return self._measured(student_answers(X))

    def fit(self, X: object, y: Sequence[str] | None = None) -> ShortAnswerGrader:  # noqa: N803
        """Learns from marked answers; without `y` the marks are the column `target`."""
        answers = student_answers(X, marked=y is None)
        labels = answers["target"].to_list() if y is None else [str(label) for label in y]
        if len(labels) != answers.height:
            raise UsageError(f"there must be as many labels as answers; got {len(labels):,} for {answers.height:,}")
        return self.fit_features(self._measured(answers), labels)

    def fit_features(self, features: Array, labels: Sequence[str]) -> ShortAnswerGrader:
        """Learns from features that are known already."""
        classes, numbers = np.unique(np.asarray(labels, dtype=object), return_inverse=True)
        if len(classes) < 2:
            raise DataError(
                "must have at least two labels to tell apart", where="target", got=", ".join(classes), fix="add answers"
            )
        tree = grown(features, numbers, n_labels=len(classes), min_per_leaf=self.min_per_leaf, seed=self.seed)
        self.classes_ = classes
        self.tree_ = tree if self.confidence is None else pruned(tree, confidence=self.confidence)
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
        return _responses(answers, *self.graded(self._measured(answers)))

    def to_dict(self) -> dict[str, Any]:
        """The fitted grader as plain values."""
        tree = self._fitted()
        return {
            "format": FORMAT,
            "version": VERSION,
            "demur": __version__,
            "min_per_leaf": self.min_per_leaf,
            "confidence": self.confidence,
            "stop_words": sorted(self.stop_words),
            "normalised_lesk": self.normalised_lesk,
            "seed": self.seed,
            "features": list(FEATURES),
            "labels": self.classes_.tolist(),
            "nodes": stored(tree, FEATURES, self.classes_.tolist()),
        }

    def save(self, path: str | Path) -> None:
        """Writes the fitted grader to a file of JSON."""
        write_whole(path, msgspec.json.format(msgspec.json.encode(self.to_dict()), indent=1) + b"\n")

    @classmethod
    def load(cls, path: str | Path) -> ShortAnswerGrader:
        """The grader that a file holds."""
        file = _read(Path(path))
        grader = cls(
            min_per_leaf=file.min_per_leaf,
            confidence=file.confidence,
            stop_words=file.stop_words,
            normalised_lesk=file.normalised_lesk,
            seed=file.seed,
        )
        grader.classes_ = np.array(file.labels, dtype=object)
        grader.tree_ = restored(file.nodes, FEATURES, file.labels, where=str(path))
        return grader

    def _measured(self, answers: pl.DataFrame) -> Array:
        return features(answers, stop_words=self.stop_words, normalised_lesk=self.normalised_lesk)

    def _unfitted(self) -> ShortAnswerGrader:
        return ShortAnswerGrader(
            min_per_leaf=self.min_per_leaf,
            confidence=self.confidence,
            stop_words=self.stop_words,
            normalised_lesk=self.normalised_lesk,
            seed=self.seed,
        )

    def _fitted(self) -> Tree:
        if self.tree_ is None:
            raise UsageError("this grader has learnt nothing yet: call fit first, or load one from a file")
        return self.tree_


def features(answers: pl.DataFrame, *, stop_words: Iterable[str] = (), normalised_lesk: bool = False) -> Array:
    """The eight features of each row of a checked table of student answers; the columns are `FEATURES`."""
    stopped = frozenset(stop_words)

    @lru_cache(_KEPT_TEXTS)
    def words_of(text: str) -> list[str]:
        return words(text, stop_words=stopped)

    def scores(answer: list[str], text: str) -> tuple[float, float, float, float]:
        return _scores(overlap(answer, words_of(text)), normalised_lesk)

    values = np.zeros((answers.height, len(FEATURES)))
    for row, (question, expected, answer) in enumerate(exchanges(answers)):
        said = words_of(answer)
        values[row, : len(SCORES)] = np.max([scores(said, text) for text in expected], axis=0)
        values[row, len(SCORES) :] = scores(said, question)
    return values


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

    Folds are stratified: each label is spread evenly over them. `by` names a column (dialogue, group or question)
    whose values are never parted; labels are then spread as evenly as whole values allow. The seed draws the folds.
    The grader, if given, lends its settings and is left as it was. `columns` maps canonical columns to those of the
    data.
    """
    answers = student_answers(data, columns=columns, marked=True)
    lent = grader or ShortAnswerGrader()
    labels = answers["target"].to_numpy()
    fold = _folds(answers, folds, by, seed)
    measured = lent._measured(answers)
    prediction, confidence = np.empty(answers.height, dtype=object), np.zeros(answers.height)
    for number in range(folds):
        inside = fold == number
        learnt = lent._unfitted().fit_features(measured[~inside], labels[~inside])
        prediction[inside], confidence[inside] = learnt.graded(measured[inside])
    return _responses(answers, prediction, confidence).with_columns(pl.Series("fold", fold + 1))


def _scores(shared: Overlap, normalised_lesk: bool) -> tuple[float, float, float, float]:
    return shared.raw, shared.f1, shared.normalised_lesk if normalised_lesk else shared.lesk, shared.cosine


def _responses(answers: pl.DataFrame, prediction: Labels, confidence: Array) -> pl.DataFrame:
    kept = [part for part in ("id", "dialogue", "group", "target") if part in answers.columns]
    told = pl.Series("prediction", prediction.tolist(), dtype=pl.String), pl.Series("confidence", confidence)
    return answers.select(*kept, *told)


def _folds(answers: pl.DataFrame, folds: int, by: str | None, seed: int) -> NDArray[np.intp]:
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
    labels = _numbered(answers["target"])
    return dealt(labels, folds, rng) if by is None else dealt_whole(labels, _numbered(answers[by]), folds, rng)


def _numbered(values: pl.Series) -> NDArray[np.intp]:
    return np.unique(values.to_list(), return_inverse=True)[1]


def dealt(labels: NDArray[np.intp], folds: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """The fold of each row: rows are shuffled, put in order of their labels, and dealt out like cards.

    >>> fold = dealt(np.array([0, 0, 0, 0, 1, 1]), 2, np.random.default_rng(0))
    >>> [np.bincount(fold[labels]).tolist() for labels in (slice(0, 4), slice(4, 6))]
    [[2, 2], [1, 1]]
    """
    order = rng.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    fold = np.empty(len(labels), dtype=np.intp)
    fold[order] = np.arange(len(labels)) % folds
    return fold


def dealt_whole(
    labels: NDArray[np.intp], units: NDArray[np.intp], folds: int, rng: np.random.Generator
) -> NDArray[np.intp]:
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


class _Stamp(msgspec.Struct):
    format: str
    version: int
    demur: str


class _Stored(_Stamp):
    min_per_leaf: int
    confidence: float | None
    stop_words: list[str]
    normalised_lesk: bool
    seed: int
    features: list[str]
    labels: list[str]
    nodes: list[StoredNode]


def _read(path: Path) -> _Stored:
    try:
        content = path.read_bytes()
        stamp = msgspec.json.decode(content, type=_Stamp)
        if stamp.format == FORMAT and stamp.version > VERSION:
            rule = f"has version {stamp.version} of the format, written by demur {stamp.demur}"
            raise DataError(rule, where=f"{path}:", fix=f"update demur; this one, {__version__}, reads {VERSION}")
        file = msgspec.json.decode(content, type=_Stored)
    except FileNotFoundError:
        raise DataError("there is no such file", where=f"{path}:") from None
    except OSError as fault:
        raise DataError(f"cannot be read: {fault.strerror}", where=f"{path}:") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as fault:
        raise DataError(f"this is no grader of short answers: {fault}", where=f"{path}:") from None
    if file.format != FORMAT:
        raise DataError(f'the format must be "{FORMAT}"', where=f"{path}:", got=file.format)
    if file.features != list(FEATURES):
        raise DataError(f"the features must be {', '.join(FEATURES)}", where=f"{path}:", got=", ".join(file.features))
    if len(set(file.labels)) < max(2, len(file.labels)):
        raise DataError("the labels must be two or more, each once", where=f"{path}:", got=", ".join(file.labels))
    return file
