"""A grader of short answers: features of overlap with what was expected, and a decision tree."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import heapify, heappop, heappush
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur import __version__
from demur.core.arrays import Array
from demur.core.io.columns import ALIASES, mapping_of, nearest, resolve
from demur.core.io.files import table_of
from demur.core.io.tables import Cells, Request, first
from demur.core.io.writing import write_whole
from demur.errors import DataError, UsageError
from demur.lab.decision_tree import StoredNode, Tree, grown, pruned, restored, stored

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
    """Reads and checks student answers in a frame, in columns, or in rows.

    The result has id, question, expected, answer and, where the data has them, target, dialogue and group. `expected`
    may be a text, a list of texts or a list of `{"text": ...}`; in the result it is always a list, without blank ones.
    An answer may be empty, as students send such, but not missing. `columns` maps canonical columns to those of
    the data. `marked` asks for a target in every row. Rows without an id are numbered from 1.

    >>> row = {"question": "Why is it on?", "references": [{"text": "The path is closed."}], "answer": ""}
    >>> student_answers([row]).row(0, named=True)
    {'id': '1', 'question': 'Why is it on?', 'expected': ['The path is closed.'], 'answer': ''}
    """
    table = table_of(data, Request())
    found = resolve(table.columns, dict(columns or {}), where=f"{table.name}:", aliases=COLUMNS).columns
    needed = (*TEXTS, "target") if marked else TEXTS
    for part in needed:
        if part not in found:
            fix = f"{nearest(part, table.columns)} {mapping_of(part, '...')}".strip()
            raise DataError(f'there is no column "{part}"', where=f"{table.name}:", fix=fix)
    cells = Cells(table, found)
    texts = {part: cells.text(part) for part in found}
    for part in needed:
        _refuse_missing(cells, texts[part], part)
    texts.setdefault("id", pl.Series([str(number) for number in range(1, table.frame.height + 1)], dtype=pl.String))
    lists = [_texts(cell, cells, place) for place, cell in enumerate(texts["expected"])]
    texts["expected"] = pl.Series(lists, dtype=pl.List(pl.String))
    return pl.DataFrame({part: texts[part] for part in COLUMNS if part in texts})


def _refuse_missing(cells: Cells, texts: pl.Series, part: str) -> None:
    place = first(texts.is_null())
    if place is not None:
        fix = "leave the row out, or write an empty text" if part == "answer" else "leave the row out"
        raise cells.fault(part, place, "must not be missing", fix=fix)


def _texts(cell: str, cells: Cells, place: int) -> list[str]:
    texts = [text for text in _listed(cell, cells, place) if text.strip()]
    if not texts:
        rule = "must hold at least one expected answer with words"
        raise cells.fault("expected", place, rule, got=cell, fix="leave the row out, or give the question an answer")
    return texts


def _listed(cell: str, cells: Cells, place: int) -> list[str]:
    """The texts of a cell, which is a text or a list in JSON."""
    if not cell.lstrip().startswith("["):
        return [cell]
    try:
        values: Any = msgspec.json.decode(cell)
    except msgspec.DecodeError:
        return [cell]
    texts: list[Any] = [value.get("text") if isinstance(value, dict) else value for value in values]
    if not all(isinstance(text, str) for text in texts):
        rule = 'must be a text, a list of texts or a list of {"text": ...}'
        raise cells.fault("expected", place, rule, got=cell)
    return texts


def exchanges(answers: pl.DataFrame) -> Sequence[tuple[str, list[str], str]]:
    """Question, expected answers and answer of each row of a checked table."""
    return answers.select(TEXTS).rows()


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


FORMAT = "demur short-answer grader"
VERSION = 1

SCORES = ("raw", "f1", "lesk", "cosine")
FEATURES = tuple(f"{part}_{score}" for part in ("expected", "question") for score in SCORES)
"""The features by name, in the order of the columns."""
Labels = NDArray[np.object_]
_KEPT_TEXTS = 1 << 14


class ShortAnswerGrader:
    """Grades answers in the manner of scikit-learn: fit, then predict or predict_proba.

    X is a table of student answers (see `demur.lab.grader`), not an array of numbers, so scikit-learn's
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


class _GraderFile(_Stamp):
    min_per_leaf: int
    confidence: float | None
    stop_words: list[str]
    normalised_lesk: bool
    seed: int
    features: list[str]
    labels: list[str]
    nodes: list[StoredNode]


def _read(path: Path) -> _GraderFile:
    try:
        content = path.read_bytes()
        stamp = msgspec.json.decode(content, type=_Stamp)
        if stamp.format == FORMAT and stamp.version > VERSION:
            rule = f"has version {stamp.version} of the format, written by demur {stamp.demur}"
            raise DataError(rule, where=f"{path}:", fix=f"update demur; this one, {__version__}, reads {VERSION}")
        file = msgspec.json.decode(content, type=_GraderFile)
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
