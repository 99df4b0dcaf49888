"""What judges may say of an answer: a set of labels with their keys and meanings, and the guidelines beside them."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from demur.core.io.columns import nearest
from demur.core.io.untrusted import read_bounded
from demur.errors import DataError, UsageError

Meaning = Literal["right", "wrong", "withheld", "unsure"]
"""What a label says of an answer: right, wrong, no answer at all (a refusal), or that the judge cannot tell."""

MEANINGS: tuple[Meaning, ...] = get_args(Meaning)
MOST_LABELS = 9
LONGEST_LABEL, LONGEST_TEXT = 60, 20_000
MOST_GUIDELINES = 1 << 18
"""Bytes that a file of guidelines may have."""

QUESTION = "Is this answer right?"
_KEYS = ("question", "guidelines", "label")
_LABEL_KEYS = ("name", "means", "about", "key")


class JudgeLabel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One label: what it means for the log, what it says in the guidelines, and the key that gives it."""

    name: str
    means: Meaning | None = None
    about: str = ""
    key: str = ""


class LabelSet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The labels of a study, in the order of their keys, with the question to judges and their guidelines."""

    labels: tuple[JudgeLabel, ...]
    question: str = QUESTION
    guidelines: str = ""

    def label(self, name: str) -> JudgeLabel | None:
        """The label of a name."""
        return next((one for one in self.labels if one.name == name), None)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the labels."""
        return tuple(one.name for one in self.labels)

    @property
    def tells_right(self) -> bool:
        """Whether some label says that an answer is right or wrong, so that the judged log can be scored."""
        return any(one.means in ("right", "wrong") for one in self.labels)


def label_set(labels: Sequence[tuple[str, str | None]], question: str = QUESTION, guidelines: str = "") -> LabelSet:
    """A set of names, each with what it means; one that is called as a meaning has that meaning.

    >>> [(one.name, one.means, one.key) for one in label_set([("right", None), ("partly", "wrong")]).labels]
    [('right', 'right', 'r'), ('partly', 'wrong', 'p')]
    """
    return _check([JudgeLabel(name, _meaning(name, means)) for name, means in labels], question, guidelines, "labels")


def usual_labels() -> LabelSet:
    """Right, wrong and unsure."""
    return label_set([("right", None), ("wrong", None), ("unsure", None)])


def label_of(text: str) -> tuple[str, str | None]:
    """A label as it is typed, NAME or NAME=MEANING.

    >>> label_of("partly=wrong"), label_of("right")
    (('partly', 'wrong'), ('right', None))
    """
    name, equals, means = text.partition("=")
    if not name.strip() or (equals and means.strip() not in MEANINGS):
        raise ValueError(text)
    return name.strip(), means.strip() if equals else None


def read_guidelines(path: Path, labels: Sequence[tuple[str, str | None]] = ()) -> LabelSet:
    """The labels and guidelines of a .toml file, or guidelines alone of a text beside labels that are given.

    The text is shown as it is written, never as markup.
    """
    try:
        text = read_bounded(path, MOST_GUIDELINES).decode("utf-8")
    except UnicodeDecodeError:
        raise DataError("must be text in UTF-8", where=str(path)) from None
    except OSError as fault:
        raise DataError(f"cannot be read: {fault.strerror or fault}", where=str(path)) from None
    if path.suffix.lower() != ".toml":
        found = label_set(labels) if labels else usual_labels()
        return _check(found.labels, QUESTION, text.strip(), str(path))
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as fault:
        raise DataError(f"is no TOML: {fault}", where=str(path)) from None
    _refuse_unknown(document, _KEYS, str(path))
    if labels and "label" in document:
        raise UsageError(f"{path} names labels, so `labels` cannot name others")
    given = document.get("label", [])
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        raise DataError("must be tables, each beginning with [[label]]", where=f"{path}: label")
    made = [_label_from(one, f"{path}: label {place}") for place, one in enumerate(given, 1)]
    texts = [_text(document, name, str(path)) for name in ("question", "guidelines")]
    found_labels = made or list((label_set(labels) if labels else usual_labels()).labels)
    return _check(found_labels, texts[0] or QUESTION, texts[1], str(path))


def _label_from(given: dict[str, Any], where: str) -> JudgeLabel:
    _refuse_unknown(given, _LABEL_KEYS, where)
    name, means, about, key = (_text(given, part, where) for part in _LABEL_KEYS)
    if means and means not in MEANINGS:
        fix = f"one of {', '.join(MEANINGS)}, or leave it out"
        raise DataError("is what the label means for the log", where=f"{where}: means", got=means, fix=fix)
    return JudgeLabel(name, _meaning(name, means or None), about, key)


def _meaning(name: str, means: str | None) -> Meaning | None:
    return next((one for one in MEANINGS if one == (means or name.casefold())), None)


def _text(given: dict[str, Any], part: str, where: str) -> str:
    value = given.get(part, "")
    if not isinstance(value, str) or len(value) > LONGEST_TEXT:
        raise DataError(f"must be a text of at most {LONGEST_TEXT:,} characters", where=f"{where}: {part}")
    return value.strip()


def _refuse_unknown(given: dict[str, Any], known: Sequence[str], where: str) -> None:
    for name in given:
        if name not in known:
            raise DataError(f'there is no "{name}" here', where=where, fix=nearest(name, known))


def _check(labels: Sequence[JudgeLabel], question: str, guidelines: str, where: str) -> LabelSet:
    """The set with a key for each label; refused where two labels share a name or a key."""
    names = [one.name for one in labels]
    if not 2 <= len(names) <= MOST_LABELS:
        raise UsageError(f"{where}: there must be 2 to {MOST_LABELS} labels; got {len(names)}")
    for place, name in enumerate(names):
        if not name or len(name) > LONGEST_LABEL or not name.isprintable():
            raise UsageError(f"{where}: a label is a name of 1 to {LONGEST_LABEL} printable characters; got {name!r}")
        if name.casefold() in {other.casefold() for other in names[:place]}:
            raise UsageError(f'{where}: the label "{name}" is there twice')
    given = [one.key.casefold() for one in labels]
    for place, key in enumerate(given):
        if key and (len(key) != 1 or not key.isalpha() or key == "z"):
            raise UsageError(f'{where}: the key of a label is one letter other than z; got "{labels[place].key}"')
        if key and key in given[:place]:
            raise UsageError(f'{where}: the key "{key}" gives two labels')
    made, taken = [], {"z", *filter(None, given)}
    for one, key in zip(labels, given, strict=True):
        first = one.name[0].casefold()
        if not key and first.isalpha() and len(first) == 1 and first not in taken:
            key = first
        taken.add(key)
        made.append(msgspec.structs.replace(one, key=key))
    return LabelSet(tuple(made), question, guidelines)
