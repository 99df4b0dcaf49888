"""Relevance models as folders: readable metadata beside plain arrays, nothing that runs when it is loaded."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import zipfile
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np

from demur import __version__
from demur.errors import DataError, UsageError
from demur.understanding.relevance import QuestionModel, RelevanceClassifier, evidence_of
from demur.understanding.tokens import TokenCounts, parts_of

FORMAT = "demur relevance model"
LAYOUT = 1
"""Raised when a folder of the old layout can no longer be read."""

_MODEL, _ARRAYS, _WORDS = "model.json", "arrays.npz", "vocabularies.json"


def save_model(model: RelevanceClassifier, folder: str | Path) -> None:
    """Writes a fitted model to a folder that appears whole or not at all; an older model there is replaced."""
    target = Path(folder).resolve()
    if not model.__sklearn_is_fitted__():
        raise UsageError("there is nothing to save: this model has learnt nothing yet")
    check_place(folder)
    making = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        making.mkdir(parents=True)
        _write(model, making)
        _put(making, target)
    except OSError as fault:
        raise UsageError(f"{folder} cannot be written: {fault.strerror or fault}") from None
    finally:
        shutil.rmtree(making, ignore_errors=True)


def load_model(folder: str | Path) -> RelevanceClassifier:
    """The model in a folder; one that is incomplete, damaged or of another layout is refused."""
    place = Path(folder)
    told = _metadata(place)
    try:
        return _model(told, _arrays(place), _json(place / _WORDS))
    except UsageError as fault:
        raise DataError(str(fault), where=f"{place / _MODEL}:", fix="train the model again") from None
    except (KeyError, TypeError, ValueError, AttributeError, zipfile.BadZipFile) as fault:
        rule = f"does not hold what a model is made of ({type(fault).__name__}: {fault})"
        raise DataError(rule, where=f"{place}:", fix="train the model again") from None


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


def _model(told: dict[str, Any], arrays: dict[str, Any], words: dict[str, list[str]]) -> RelevanceClassifier:
    model = RelevanceClassifier(**told["parameters"])
    model.check_parameters()
    if tuple(told["token_parts"]) != parts_of(model.tokens):
        raise ValueError(f"token_parts are not those of {model.tokens}")
    model.classes_ = np.array(told["classes"])
    model.label_of_ = arrays["label_of"]
    if int(model.label_of_.max()) >= len(model.classes_) or len(model.label_of_) != told.get("pairs"):
        raise ValueError("classes and pairs are not those of the arrays")
    model.answers_ = None if told["answers"] is None else dict(zip(told["classes"], told["answers"], strict=True))
    model.models_ = tuple(
        _question_model(part, told["crowding"][part], arrays, words, model.question_weight)
        for part in told["token_parts"]
    )
    model.answer_models_ = model.models_of_answers()
    return model


def _put(made: Path, target: Path) -> None:
    """The new folder in the place of the old one, which comes back where that fails."""
    old = made.with_name(f"{made.name}.old")
    if target.exists():
        os.replace(target, old)
    try:
        os.replace(made, target)
    except BaseException:
        if old.exists():
            os.replace(old, target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _write(model: RelevanceClassifier, folder: Path) -> None:
    arrays: dict[str, Any] = {"label_of": model.label_of_}
    for one in model.models_:
        matrix = one.counts.matrix
        for name in ("indptr", "indices", "data"):
            arrays[f"{one.tokens}.{name}"] = getattr(matrix, name)
        arrays[f"{one.tokens}.lengths"] = one.counts.lengths
    with (folder / _ARRAYS).open("wb") as file:
        np.savez_compressed(file, **arrays)
    vocabularies = {one.tokens: list(one.vocabulary) for one in model.models_}
    (folder / _WORDS).write_text(json.dumps(vocabularies, ensure_ascii=False), encoding="utf-8")
    told = {
        "format": FORMAT,
        "layout": LAYOUT,
        "demur": __version__,
        "parameters": {name: _plain(value) for name, value in model.get_params().items()},
        "token_parts": [one.tokens for one in model.models_],
        "crowding": {one.tokens: one.crowding for one in model.models_},
        "pairs": len(model.label_of_),
        "classes": model.classes_.tolist(),
        "answers": None if model.answers_ is None else [model.answers_[label] for label in model.classes_.tolist()],
        "digests": {name: _digest(folder / name) for name in (_ARRAYS, _WORDS)},
    }
    (folder / _MODEL).write_text(json.dumps(told, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def _metadata(place: Path) -> dict[str, Any]:
    if not place.is_dir():
        raise DataError("no such folder", where=f"{place}:", fix="demur understand train writes a model to a folder")
    if not (place / _MODEL).is_file():
        raise DataError(f"has no {_MODEL}, so it is no model of demur", where=f"{place}:")
    told: Any = _json(place / _MODEL)
    if not isinstance(told, dict) or told.get("format") != FORMAT:
        raise DataError(f'is no model of demur: format must be "{FORMAT}"', where=f"{place / _MODEL}:")
    if told.get("layout") != LAYOUT:
        raise DataError(
            f"has layout {told.get('layout')}, written by demur {told.get('demur')}; this is demur {__version__}, "
            f"which reads layout {LAYOUT}",
            where=f"{place / _MODEL}:",
            fix="train it again, or use the version that wrote it",
        )
    missing = {"parameters", "token_parts", "crowding", "classes", "answers", "digests"} - set(told)
    if missing:
        raise DataError(f"lacks {', '.join(sorted(missing))}", where=f"{place / _MODEL}:", fix="train the model again")
    for name in (_ARRAYS, _WORDS):
        if not (place / name).is_file():
            raise DataError(f"is incomplete: {name} is missing", where=f"{place}:", fix="train the model again")
        if _digest(place / name) != told["digests"].get(name):
            raise DataError("is damaged or of another model", where=f"{place / name}:", fix="train the model again")
    return told


def _arrays(place: Path) -> dict[str, Any]:
    with np.load(place / _ARRAYS, allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def _question_model(part: str, crowding: float, arrays: dict[str, Any], words: Any, weight: float) -> QuestionModel:
    from scipy.sparse import csr_array

    vocabulary = {token: column for column, token in enumerate(words[part])}
    lengths = arrays[f"{part}.lengths"]
    stored = tuple(arrays[f"{part}.{name}"] for name in ("data", "indices", "indptr"))
    counts = TokenCounts(csr_array(stored, shape=(len(lengths), len(vocabulary))), lengths, vocabulary)
    return QuestionModel(part, counts, crowding, evidence_of(counts, weight))


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as fault:
        raise DataError(f"cannot be read: {fault}", where=f"{path}:", fix="train the model again") from None


def _digest(path: Path) -> str:
    return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()


def check_place(named: str | Path) -> None:
    """Refuses to write over anything but a model with nothing beside it: what is replaced is gone."""
    target = Path(named)
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not _is_model(target):
        raise UsageError(f"{named} exists and is no model of demur; name a new folder")
    others = sorted(one.name for one in target.iterdir() if one.name not in (_MODEL, _ARRAYS, _WORDS))
    if others:
        raise UsageError(f"{named} holds more than a model ({', '.join(others[:3])}); name a folder of its own")


def _is_model(folder: Path) -> bool:
    try:
        told = _json(folder / _MODEL)
    except DataError:
        return False
    return isinstance(told, dict) and told.get("format") == FORMAT
