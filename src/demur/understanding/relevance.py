"""A classifier that finds the answer whose words a question makes likely (Leuski and Traum 2010), and its answers."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import secrets
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from demur import __version__
from demur.core.arrays import Array
from demur.core.io.untrusted import Archive, decode_json, read_bounded, read_json
from demur.core.show.results import threshold_text
from demur.errors import DataError, UsageError
from demur.understanding.tokens import TokenCounts, Vocabulary, count_tokens, parts_of, tokenizer, words

Scoring = Literal["posterior", "kl", "cross-entropy"]
SCORINGS: tuple[Scoring, ...] = ("posterior", "kl", "cross-entropy")

MOST_SHARPNESS = 1_000_000
_BATCH = 4_000_000
"""Weights of training questions that are held at once."""


class RelevanceClassifier:
    """Maps texts to labels of answers by relevance models.

    `tokens` says what texts are made of: `words`, `phones`, or `mixed`, which averages what words and phones say
    (other mixtures in `demur.understanding.tokens`). `question_weight` and `answer_weight` are how much of a language
    model comes from its own text, and not from all texts. `sharpness` is the power that likelihoods are raised to:
    words of a text are not independent, so below 1 (weight and sharpness suit the validation parts of two corpora
    of intents and chat; `demur understand tune` finds them for others); phones of a word are even less so, and
    count by the root of how many words there are to a phone. `scoring` is what the confidence of an answer is:
    `posterior`, the weight of its training questions; `kl`, minus the divergence of its language model from the one
    that the question makes likely; `cross-entropy`. An answer below `threshold` is withheld by `respond`; `predict`
    always answers.

    >>> guide = RelevanceClassifier().fit(["when do you open", "who built the ship"], ["hours", "builder"])
    >>> guide.predict(["do you open today"]).tolist()
    ['hours']
    """

    def __init__(
        self,
        *,
        tokens: str = "words",
        question_weight: float = 0.5,
        answer_weight: float = 0.7,
        sharpness: float = 0.6,
        scoring: Scoring = "posterior",
        threshold: float | None = None,
    ) -> None:
        self.tokens = tokens
        self.question_weight = question_weight
        self.answer_weight = answer_weight
        self.sharpness = sharpness
        self.scoring = scoring
        self.threshold = threshold

    def fit(self, X: Sequence[str], y: Sequence[Any], answers: Mapping[Any, str] | None = None) -> Self:
        """Learns from questions and the labels of their answers; with the answers' texts, also from these."""
        self.check_parameters()
        texts, labels = _texts(X), _labels(y)
        if len(texts) != len(labels):
            raise DataError(f"there are {len(texts):,} texts and {len(labels):,} labels")
        if not len(texts):
            raise DataError("there is nothing to learn from", fix="give pairs of a text and a label")
        self.classes_, places = np.unique(labels, return_inverse=True)
        self.label_of_ = places.astype(np.int64)
        self.models_ = tuple(
            QuestionModel.of(part, texts, weight=self.question_weight) for part in parts_of(self.tokens)
        )
        self.answers_ = None if answers is None else {label: answers.get(label, "") for label in self.classes_.tolist()}
        for label, text in (self.answers_ or {}).items():
            if not isinstance(text, str):
                raise DataError("must be text", where=f'the answer "{label}"', got=repr(text))
        # of many answers they are large
        self.answer_models_ = None if self.scoring == "posterior" else self.models_of_answers()
        return self

    def predict_proba(self, X: Sequence[str]) -> Array:
        """How much of the weight of training questions each answer has; a row a text, in the order of `classes_`."""
        self._check_fitted()
        texts = _texts(X)
        return self._posteriors(len(texts), lambda model, part: model.weights(texts[part], self.sharpness))

    def decision_function(self, X: Sequence[str]) -> Array:
        """The score of each answer, of the kind that `scoring` names; higher is more confident.

        Of two answers, as scikit-learn has it, one number a text: by how much the second has the higher score.
        """
        found = self.scores(self.predict_proba(X))
        return found[:, 1] - found[:, 0] if len(self.classes_) == 2 else found

    def predict(self, X: Sequence[str]) -> NDArray[Any]:
        """The best answer to each text."""
        best = self.scores(self.predict_proba(X)).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def score(self, X: Sequence[str], y: Sequence[Any], sample_weight: Any = None) -> float:
        """Accuracy, as scikit-learn's classifiers give it."""
        found, labels = self.predict(X), _labels(y)
        if len(found) != len(labels):
            raise DataError(f"there are {len(found):,} texts and {len(labels):,} labels")
        return float(np.average(found == labels, weights=sample_weight))

    def known(self, X: Sequence[str]) -> NDArray[np.bool_]:
        """Which texts have a token that was ever seen; of the others nothing can be said."""
        self._check_fitted()
        return np.asarray(np.any([model.known(_texts(X)) for model in self.models_], axis=0))

    def known_left_out(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which training texts share a token with another than copies of themselves."""
        self._check_fitted()
        return np.asarray(np.any([model.counts.shared(rows) for model in self.models_], axis=0))

    def scores(self, posterior: Array) -> Array:
        """The scores that go with posteriors of the answers.

        That is the posterior itself, the cross entropy of each answer's language model under the one that a question
        makes likely, or that minus its entropy.
        """
        if self.scoring == "posterior":
            return posterior
        # where it was learnt for another scoring there are none yet
        models = self.models_of_answers() if self.answer_models_ is None else self.answer_models_
        likely = posterior @ models
        crossed = likely @ np.log(models).T
        if self.scoring == "cross-entropy":
            return np.asarray(crossed)
        return np.asarray(crossed - (likely * np.log(likely)).sum(axis=1, keepdims=True))

    def models_of_answers(self) -> Array:
        """The language model of each answer, a row each; an answer without text is a token of its own."""
        own = np.eye(len(self.classes_))
        if self.answers_ is not None:
            texts = [self.answers_[label] for label in self.classes_.tolist()]
            counts = count_tokens(texts, tokenizer("words")).matrix.toarray()
            own = np.hstack([counts, own[:, counts.sum(axis=1) == 0]])
        background = own.sum(axis=0) / own.sum()
        own = own / own.sum(axis=1, keepdims=True)
        return np.asarray(self.answer_weight * own + (1 - self.answer_weight) * background)

    def left_out(self, rows: NDArray[np.int64] | None = None) -> Array:
        """Posteriors for training texts, each without itself and without copies of it; by default for all."""
        self._check_fitted()
        asked = np.arange(len(self.label_of_)) if rows is None else rows
        return self._posteriors(len(asked), lambda model, part: model.left_out(asked[part], self.sharpness))

    def _posteriors(self, count: int, weights: Callable[[QuestionModel, slice], Array]) -> Array:
        """By batches: the mean of the posteriors of the answers that each kind of token gives."""
        from scipy.sparse import csr_array

        shape = (len(self.label_of_), len(self.classes_))
        members = csr_array((np.ones(shape[0]), (np.arange(shape[0]), self.label_of_)), shape=shape)
        size = max(1, _BATCH // len(self.label_of_))
        batches = [slice(first, min(first + size, count)) for first in range(0, count, size)]
        posteriors = [np.mean([weights(one, part) @ members for one in self.models_], axis=0) for part in batches]
        return np.concatenate([np.empty((0, len(self.classes_))), *posteriors])

    def check_parameters(self) -> None:
        """Refuses parameters that no model can be made with."""
        for name in ("question_weight", "answer_weight"):
            if not _is_number(getattr(self, name)) or not 0 < getattr(self, name) < 1:
                raise UsageError(f"{name} is a number above 0 and below 1; got {getattr(self, name)!r}")
        if not _is_number(self.sharpness) or not 0 < self.sharpness <= MOST_SHARPNESS:
            raise UsageError(f"sharpness is a number above 0 and at most {MOST_SHARPNESS:,}; got {self.sharpness!r}")
        if self.threshold is not None and not _is_number(self.threshold):
            raise UsageError(f"a threshold is a number, or none; got {self.threshold!r}")
        if self.scoring not in SCORINGS:
            raise UsageError(f'scoring is one of {", ".join(SCORINGS)}; got "{self.scoring}"')
        if not isinstance(self.tokens, str):
            raise UsageError(f"tokens are named by text; got {self.tokens!r}")
        parts_of(self.tokens)

    def _check_fitted(self) -> None:
        if self.__sklearn_is_fitted__():
            return
        fault: type[Exception] = UsageError
        with suppress(ImportError):
            from sklearn.exceptions import NotFittedError

            fault = NotFittedError
        raise fault("this RelevanceClassifier has learnt nothing yet; call fit first")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters, by name."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **parameters: Any) -> Self:
        """Sets parameters by name."""
        known = self.get_params()
        for name, value in parameters.items():
            if name not in known:
                raise ValueError(f"invalid parameter {name!r}; there are {', '.join(known)}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = {name: one.default for name, one in inspect.signature(type(self)).parameters.items()}
        changed = {name: value for name, value in self.get_params().items() if value != defaults[name]}
        return f"RelevanceClassifier({', '.join(f'{name}={value!r}' for name, value in changed.items())})"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classes_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(),
            input_tags=InputTags(two_d_array=False, one_d_array=True, string=True),
        )


@dataclass(frozen=True, slots=True, eq=False)
class QuestionModel:
    """The language models of the training questions, over one kind of token.

    log pi_s(w) = log((1 - lam) bg(w)) + log1p(lam c_s(w) / (|Q_s| (1 - lam) bg(w))). The first term is the same for
    all training questions, so it cancels when weights are made to sum to 1; the second is `evidence`, which is sparse.
    """

    tokens: str
    counts: TokenCounts
    crowding: float
    """What the sharpness is multiplied by: the root of words per token."""
    evidence: Any
    """Sparse, a row for each token of the vocabulary and a column for each training question."""

    @classmethod
    def of(cls, tokens: str, texts: Sequence[str], *, weight: float) -> QuestionModel:
        """The models of these texts."""
        counts = count_tokens(texts, tokenizer(tokens))
        words = counts if tokens == "words" else count_tokens(texts, tokenizer("words"))
        crowding = float(np.sqrt(words.lengths.sum() / counts.lengths.sum()))
        return cls(tokens, counts, crowding, evidence_of(counts, weight))

    @property
    def vocabulary(self) -> Vocabulary:
        """The tokens that were seen."""
        return self.counts.vocabulary

    def counted(self, texts: Sequence[str]) -> TokenCounts:
        """New texts as counts of the tokens that were seen; others drop out."""
        return count_tokens(texts, tokenizer(self.tokens), self.vocabulary)

    def known(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        """Which texts have a token that was seen."""
        return np.asarray(self.counted(texts).matrix.sum(axis=1)).ravel() > 0

    def weights(self, texts: Sequence[str], sharpness: float) -> Array:
        """The weight of each training question for each text."""
        return _shares((self.counted(texts).matrix @ self.evidence).toarray() * sharpness * self.crowding)

    def left_out(self, rows: NDArray[np.int64], sharpness: float) -> Array:
        """The weight of each other training question for some of them; copies of a text get none."""
        logs = (self.counts.matrix[rows] @ self.evidence).toarray() * sharpness * self.crowding
        logs[self.counts.same_as(rows)] = -np.inf
        logs[np.isneginf(logs.max(axis=1))] = 0.0  # nothing else was learnt from: no question is nearer
        return _shares(logs)


def _shares(logs: Array) -> Array:
    """What logarithms of weights stand for, each row summing to 1."""
    logs -= logs.max(axis=1, keepdims=True)
    np.exp(logs, out=logs)
    logs /= logs.sum(axis=1, keepdims=True)
    return logs


def evidence_of(counts: TokenCounts, weight: float) -> Any:
    """What each token of a question says for each training question."""
    from scipy.sparse import csr_array

    matrix = counts.matrix.tocoo()
    background = counts.background
    own = weight * matrix.data / (counts.lengths[matrix.row] * (1 - weight) * background[matrix.col])
    shape = (matrix.shape[1], matrix.shape[0])
    return csr_array((np.log1p(own), (matrix.col, matrix.row)), shape=shape)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and bool(np.isfinite(value))


def _texts(X: Any) -> list[str]:
    if isinstance(X, str):
        raise UsageError("texts are a sequence of strings; got one string")
    found = list(X)
    for place, text in enumerate(found):
        if not isinstance(text, str):
            raise DataError("must be text", where=f"text {place + 1}", got=repr(text))
    return found


def _labels(y: Any) -> NDArray[Any]:
    if isinstance(y, str):
        raise UsageError("labels are a sequence, one for each text; got one string")
    found = list(y)
    for place, label in enumerate(found):
        if not isinstance(label, str | np.bool_) and not _is_number(label):
            raise DataError("must be text or a number", where=f"label {place + 1}", got=repr(label))
    if len({isinstance(label, str) for label in found}) > 1:
        raise DataError("labels must be all text or all numbers; there are both")
    return np.asarray(found)


FORMAT = "demur relevance model"
LAYOUT = 1
"""Raised when a folder of the old layout can no longer be read."""

_MODEL, _ARRAYS, _WORDS = "model.json", "arrays.npz", "vocabularies.json"
_TRAIN_AGAIN = "train the model again"

MOST_BYTES = 512 << 20
"""Bytes of a file of a model."""

MOST_ENTRIES = 1 << 24
"""Texts of a model, and different tokens in each of them, all together."""

MOST_CELLS = 1 << 28
"""Cells of a table of labels, or of the language models of answers."""

Label: TypeAlias = str | bool | Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | float


class ModelParameters(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The parameters of a model that were saved; `check_parameters` says more of them."""

    tokens: Annotated[str, Meta(max_length=100)] | None = None
    question_weight: float | None = None
    answer_weight: float | None = None
    sharpness: float | None = None
    scoring: Scoring | None = None
    threshold: float | None = None


class ModelStamp(msgspec.Struct):
    """What the metadata of a model say of themselves."""

    format: Literal["demur relevance model"]
    layout: int = 0
    demur: str = ""


class ModelMetadata(ModelStamp, kw_only=True):
    """The metadata of a model."""

    parameters: ModelParameters
    token_parts: list[str]
    crowding: dict[str, Annotated[float, Meta(gt=0, le=1e6)]]
    pairs: Annotated[int, Meta(ge=1, le=MOST_ENTRIES)]
    classes: Annotated[list[Label], Meta(min_length=1)]
    answers: list[str] | None
    digests: dict[str, str]


def save_model(model: RelevanceClassifier, folder: str | Path) -> None:
    """Writes a fitted model to a folder that appears whole or not at all; an older model there is replaced.

    Readable metadata lie beside plain arrays, and nothing in the folder runs when it is loaded.
    """
    target = Path(folder).resolve()
    if not model.__sklearn_is_fitted__():
        raise UsageError("there is nothing to save: this model has learnt nothing yet")
    check_place(folder)
    new = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    old = new.with_name(f"{new.name}.old")
    try:
        new.mkdir(parents=True)
        _write(model, new)
        if target.exists():
            os.replace(target, old)
        try:
            os.replace(new, target)
        except BaseException:
            if old.exists():
                os.replace(old, target)
            raise
        shutil.rmtree(old, ignore_errors=True)
    except OSError as fault:
        raise UsageError(f"{folder} cannot be written: {fault.strerror or fault}") from None
    finally:
        shutil.rmtree(new, ignore_errors=True)


def load_model(folder: str | Path) -> RelevanceClassifier:
    """The model in a folder; one that is incomplete, damaged or of another layout is refused."""
    place = Path(folder)
    metadata = _metadata(place)
    arrays, vocabularies = (_part(place, name, metadata) for name in (_ARRAYS, _WORDS))
    words = decode_json(vocabularies, dict[str, list[str]], f"{place / _WORDS}:", "vocabularies")
    try:
        return _model(metadata, Archive(arrays, f"{place / _ARRAYS}", _TRAIN_AGAIN), words)
    except (UsageError, ValueError) as fault:
        raise DataError(str(fault), where=f"{place / _MODEL}:", fix=_TRAIN_AGAIN) from None


def model_in(model: RelevanceClassifier | str | Path, threshold: float | None = None) -> RelevanceClassifier:
    """A model as it is or from its folder, with another threshold where one is given."""
    fitted = model if isinstance(model, RelevanceClassifier) else load_model(model)
    # the caller's model stays as it is
    return fitted if threshold is None else copy(fitted).set_params(threshold=threshold)


def write_result(result: Any, folder: Path) -> None:
    """Write the model that `train` or `tune` gave to a folder."""
    save_model(result if isinstance(result, RelevanceClassifier) else result.model, folder)


def check_folders(folders: Sequence[Path]) -> None:
    """Refuse, before any work is done, folders that a model cannot be written to."""
    if len(folders) > 1:
        raise UsageError(f"-o {' -o '.join(map(str, folders))}: a model goes to one folder")
    for folder in folders:
        check_place(folder)


def check_place(named: str | Path) -> None:
    """Refuses to write over anything but a model with nothing beside it: what is replaced is gone."""
    target = Path(named)
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    try:
        read_json(target / _MODEL, ModelStamp, "a model")
    except DataError:
        raise UsageError(f"{named} exists and is no model of demur; name a new folder") from None
    others = sorted(one.name for one in target.iterdir() if one.name not in (_MODEL, _ARRAYS, _WORDS))
    if others:
        raise UsageError(f"{named} holds more than a model ({', '.join(others[:3])}); name a folder of its own")


def _write(model: RelevanceClassifier, folder: Path) -> None:
    arrays: dict[str, Any] = {"label_of": model.label_of_}
    for one in model.models_:
        for name in ("indptr", "indices", "data"):
            arrays[f"{one.tokens}.{name}"] = getattr(one.counts.matrix, name)
        arrays[f"{one.tokens}.lengths"] = one.counts.lengths
    with (folder / _ARRAYS).open("wb") as file:
        np.savez_compressed(file, **arrays)
    vocabularies = {one.tokens: list(one.vocabulary) for one in model.models_}
    (folder / _WORDS).write_text(json.dumps(vocabularies, ensure_ascii=False), encoding="utf-8")
    metadata = {
        "format": FORMAT,
        "layout": LAYOUT,
        "demur": __version__,
        "parameters": {name: _plain(value) for name, value in model.get_params().items()},
        "token_parts": [one.tokens for one in model.models_],
        "crowding": {one.tokens: one.crowding for one in model.models_},
        "pairs": len(model.label_of_),
        "classes": model.classes_.tolist(),
        "answers": None if model.answers_ is None else [model.answers_[label] for label in model.classes_.tolist()],
        "digests": {name: _digest((folder / name).read_bytes()) for name in (_ARRAYS, _WORDS)},
    }
    (folder / _MODEL).write_text(json.dumps(metadata, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def _metadata(place: Path) -> ModelMetadata:
    if not place.is_dir():
        raise DataError("no such folder", where=f"{place}:", fix="demur understand train writes a model to a folder")
    where = f"{place / _MODEL}:"
    if not (place / _MODEL).is_file():
        raise DataError(f"has no {_MODEL}, so it is no model of demur", where=f"{place}:")
    content = read_bounded(place / _MODEL)
    stamp = decode_json(content, ModelStamp, where, "a model of demur")
    if stamp.layout != LAYOUT:
        raise DataError(
            f"has layout {stamp.layout}, written by demur {stamp.demur}; this is demur {__version__}, which reads "
            f"layout {LAYOUT}",
            where=where,
            fix="train it again, or use the version that wrote it",
        )
    return decode_json(content, ModelMetadata, where, "a model of demur")


def _part(place: Path, name: str, metadata: ModelMetadata) -> bytes:
    """A file of the model, as its metadata know it."""
    if not (place / name).is_file():
        raise DataError(f"is incomplete: {name} is missing", where=f"{place}:", fix=_TRAIN_AGAIN)
    content = read_bounded(place / name, MOST_BYTES)
    if _digest(content) != metadata.digests.get(name):
        raise DataError("is damaged or of another model", where=f"{place / name}:", fix=_TRAIN_AGAIN)
    return content


def _model(metadata: ModelMetadata, arrays: Archive, words: dict[str, list[str]]) -> RelevanceClassifier:
    """The model, with every array checked: SciPy takes what it is given for sound, and writes where it should not."""
    model = RelevanceClassifier(**msgspec.to_builtins(metadata.parameters))
    model.check_parameters()
    parts = parts_of(model.tokens)
    _demand(tuple(metadata.token_parts) == parts, f"token_parts are not those of {model.tokens}")
    _demand(all(part in metadata.crowding and part in words for part in parts), "lacks crowding, or a vocabulary")
    model.classes_ = _classes(metadata.classes)
    model.answers_ = None
    if metadata.answers is not None:
        _demand(len(metadata.answers) == len(metadata.classes), "answers are not those of the classes")
        model.answers_ = dict(zip(model.classes_.tolist(), metadata.answers, strict=True))
    model.label_of_ = arrays.array("label_of", np.int64, metadata.pairs)
    known = model.label_of_.min() >= 0 and model.label_of_.max() < len(model.classes_)
    _demand(known, f"label_of in {_ARRAYS} are not labels of these classes")
    counts = {part: _token_counts(arrays, part, metadata.pairs, words[part]) for part in parts}
    model.models_ = tuple(
        QuestionModel(part, one, metadata.crowding[part], evidence_of(one, model.question_weight))
        for part, one in counts.items()
    )
    if model.scoring != "posterior":
        said = {word for text in metadata.answers or () for word in text.split()}
        cells = len(model.classes_) * (len(model.classes_) + len(said))
        _demand(cells <= MOST_CELLS, f"answers are too many for {model.scoring}")
        model.answer_models_ = model.models_of_answers()
    else:
        model.answer_models_ = None
    return model


def _classes(labels: list[Any]) -> NDArray[Any]:
    """The labels as `fit` has them: all text or all numbers, in order, each once."""
    texts = [label for label in labels if isinstance(label, str)]
    _demand(len(texts) in (0, len(labels)), "classes must be all text or all numbers")
    _demand(max(map(len, texts), default=1) * len(labels) <= MOST_CELLS, "classes are too long")
    classes = np.array(labels)
    _demand(np.unique(classes).tolist() == labels, "classes must be in order, each once")
    return classes


def _token_counts(arrays: Archive, part: str, pairs: int, words: list[str]) -> TokenCounts:
    """The counts of one kind of token in each text."""
    from scipy.sparse import csr_array

    ends = arrays.array(f"{part}.indptr", np.int64, pairs + 1)
    in_order = ends[0] == 0 and bool((ends[1:] >= ends[:-1]).all()) and ends[-1] <= MOST_ENTRIES
    _demand(in_order, f"{part}.indptr in {_ARRAYS} must rise from 0")
    columns = arrays.array(f"{part}.indices", np.int64, int(ends[-1]))
    data = arrays.array(f"{part}.data", np.float64, len(columns))
    lengths = arrays.array(f"{part}.lengths", np.float64, pairs)
    row = np.repeat(np.arange(pairs), np.diff(ends))
    known = bool(((columns >= 0) & (columns < len(words))).all())
    once = bool(((columns[1:] > columns[:-1]) | (row[1:] > row[:-1])).all()) and len(set(words)) == len(words)
    _demand(known and once, f"{part}.indices in {_ARRAYS} must be those of tokens of the vocabulary, each once")
    whole = bool(((data >= 1) & (data <= 2**53) & (data == np.rint(data))).all())
    _demand(whole, f"{part}.data in {_ARRAYS} must be counts")
    told = np.array_equal(lengths, np.maximum(np.bincount(row, data, minlength=pairs), 1))
    _demand(told, f"{part}.lengths in {_ARRAYS} are not those of the counts")
    matrix = csr_array((data, columns, ends), shape=(pairs, len(words)))
    return TokenCounts(matrix, lengths, {token: column for column, token in enumerate(words)})


def _demand(holds: Any, rule: str) -> None:
    if not holds:
        raise ValueError(rule)


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


Strategy = Literal["clarify", "stall", "change topic"]
STRATEGIES: tuple[Strategy, ...] = ("clarify", "stall", "change topic")

OFF_TOPIC: Mapping[Strategy, tuple[str, ...]] = {
    "clarify": (
        "I did not understand that. Could you put it differently?",
        "Sorry, what do you mean?",
        "Could you ask that in other words?",
    ),
    "stall": (
        "Hmm, let me think about that.",
        "That is a good question. I am not sure.",
    ),
    "change topic": (
        "I cannot help you with that. Is there something else you would like to know?",
        "Let us talk about something else.",
    ),
}
"""What is said instead of an answer, by what it does to the conversation."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The best answer to a text, how confident it is, and whether it is returned."""

    label: Any
    """None where nothing in the text is known."""
    confidence: float
    returned: bool
    text: str | None
    """What the answer says, where answers have texts."""
    nbest: tuple[tuple[Any, float], ...]
    """The best labels with their posteriors, best first."""
    why: str | None
    """Why it is withheld, or what a forced answer rests on."""


UNKNOWN = Answer(None, float("nan"), returned=False, text=None, nbest=(), why=None)
"""What is given for a text of which nothing is known; the reason goes with the text."""


def answered(model: RelevanceClassifier, texts: Sequence[str], *, nbest: int = 5, forced: bool = False) -> list[Answer]:
    """The answers of a model, withheld below its threshold or where nothing is known.

    `forced` gives every text an answer: of one that nothing is known of, the answer with most questions, its score that
    of the prior.
    """
    if not len(texts):
        return []
    model.check_parameters()
    posterior = model.predict_proba(texts)
    scores = model.scores(posterior)
    known = model.known(texts)
    rows = zip(texts, posterior, scores, known.tolist(), strict=True)
    answers = []
    for text, found, score, seen in rows:
        answer = _answer(model, found, score, nbest) if seen or forced else UNKNOWN
        reason = None if seen else "none of its words was ever seen in training" if words(text) else NO_WORDS
        answers.append(answer if reason is None else replace(answer, why=answer.why or reason))
    return answers


NO_WORDS = "there are no words in it"


def _answer(model: RelevanceClassifier, posterior: Any, scores: Any, nbest: int) -> Answer:
    best = int(scores.argmax())
    order = np.lexsort((-scores, -posterior))[:nbest]
    label = _plain(model.classes_[best])
    said = None if model.answers_ is None else model.answers_[label]
    confidence = float(scores[best])
    listed = tuple((_plain(model.classes_[place]), float(posterior[place])) for place in order)
    why: str | None = None
    if model.threshold is not None and confidence < model.threshold:
        near = float(f"{confidence:.3g}") >= model.threshold
        shown = threshold_text(confidence) if near else f"{confidence:.3g}"
        why = f"its confidence {shown} is below the threshold {threshold_text(model.threshold)}"
    return Answer(label, confidence, returned=why is None, text=said, nbest=listed, why=why)


def _plain(label: Any) -> Any:
    return label.item() if hasattr(label, "item") else label


@dataclass(slots=True)
class Conversation:
    """Answers in turn: what is said instead of an answer changes as misunderstandings follow each other.

    First the user is asked to put it differently, then time is played for, then the topic is changed; a returned
    answer starts over.
    """

    model: RelevanceClassifier
    off_topic: Mapping[Strategy, Sequence[str]] = field(default_factory=lambda: OFF_TOPIC)
    withheld: int = 0
    """Answers withheld in a row."""
    said: dict[Strategy, int] = field(default_factory=dict)

    def turn(self, text: str) -> tuple[Answer, str, Strategy | None]:
        """The answer to a text, what is said, and by which strategy where the answer is withheld."""
        (answer,) = answered(self.model, [text])
        if answer.returned:
            self.withheld = 0
            return answer, answer.text or str(answer.label), None
        strategy = STRATEGIES[min(self.withheld, len(STRATEGIES) - 1)]
        self.withheld += 1
        lines = self.off_topic[strategy]
        place = self.said.get(strategy, 0)
        self.said[strategy] = place + 1
        return answer, lines[place % len(lines)], strategy
