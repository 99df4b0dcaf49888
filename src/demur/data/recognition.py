"""What a recogniser heard: sentences with log probabilities, and confusion networks of words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from demur.errors import DataError

EMPTY_WORDS = frozenset({"", "!null", "<eps>", "-", "<s>", "</s>", "*DELETE*"})
"""How recognisers write "no word here"; all are read as the empty word."""

ROUNDING = 1e-3
"""By how much the probabilities of a slot may exceed 1 in all: recognisers print few digits."""

SURE = ("confidence", "probability")
SCORED = ("logprob", "score")


@dataclass(frozen=True, slots=True)
class Sentence:
    """One way to hear an utterance."""

    words: tuple[str, ...]
    logprob: float = math.nan
    """Natural logarithm of its probability, up to a constant shared by the list; NaN where none was given."""
    confidences: tuple[float, ...] | None = None
    """How sure each word is, from 0 to 1; None where it was not told."""

    @property
    def text(self) -> str:
        """The words with spaces between.

        >>> Sentence(("thai", "food")).text
        'thai food'
        """
        return " ".join(self.words)


@dataclass(frozen=True, slots=True)
class Network:
    """A confusion network: slots one after the other, each a choice among words with their probabilities.

    The word "" stands for no word. A word occurs once in a slot. A slot's probabilities sum to 1 or, where its rare
    words were cut off, to less.
    """

    slots: tuple[tuple[tuple[str, float], ...], ...]

    def __post_init__(self) -> None:
        for place, slot in enumerate(self.slots, start=1):
            if len(dict(slot)) < len(slot):
                raise DataError("must not have a word twice", where=f"slot {place}", fix="add their probabilities up")
            if not any(probability > 0 for _, probability in slot):
                raise DataError("must have an arc of positive probability", where=f"slot {place}")


def sentences_of(value: object, where: str) -> list[Sentence]:
    """Read a list of sentences as the column `asr` holds it.

    >>> sentences_of([{"text": "thai food", "logprob": -0.5}, "tie food"], "d1/0")[1].words
    ('tie', 'food')
    """
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise DataError(
            "must be a list of sentences",
            where=f"{where}: asr",
            got=_shown(value),
            fix='[{"text": ..., "logprob": ...}]',
        )
    return [_sentence(one, f"{where}: asr sentence {place}") for place, one in enumerate(value, start=1)]


def network_of(value: object, where: str, *, normalise: bool = False) -> Network:
    """Read a confusion network as the column `cnet` holds it.

    A slot is a list of arcs or `{"arcs": [...]}`; an arc is `[word, natural-log score]`, `{"word", "confidence"}` (or
    `probability`) or `{"word", "logprob"}` (or `score`). Arcs of a slot that share a word are added up. A slot that
    sums to a little over 1 is scaled to 1; one that sums to more than that only where `normalise` is set.

    >>> network_of([[["thai", -0.105], ["!null", -2.303]]], "d1/0").slots[0][1][0]
    ''
    """
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise DataError(
            "must be a list of slots", where=f"{where}: cnet", got=_shown(value), fix="each slot a list of arcs"
        )
    return Network(tuple(_slot(slot, f"{where}: cnet slot {k}", normalise) for k, slot in enumerate(value, start=1)))


def _sentence(value: object, where: str) -> Sentence:
    if isinstance(value, str):
        return Sentence(tuple(value.split()))
    if not isinstance(value, dict) or not ("text" in value or "words" in value):
        raise DataError("must have a text", where=where, got=_shown(value), fix='{"text": ..., "logprob": ...}')
    words, confidences = _words(value.get("words"), where)
    text = value.get("text")
    if text is not None and not isinstance(text, str):
        raise DataError("must be text", where=f"{where}: text", got=_shown(text))
    if text is not None and value.get("words") is not None and tuple(text.split()) != words:
        told = f"{text} / {' '.join(words)}"
        raise DataError("must have the same words in `text` and `words`", where=where, got=told, fix="leave one out")
    return Sentence(words if text is None else tuple(text.split()), _logprob(value, where), confidences)


def _words(value: object, where: str) -> tuple[tuple[str, ...], tuple[float, ...] | None]:
    if value is None:
        return (), None
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise DataError("must be a list", where=f"{where}: words", got=_shown(value), fix='[{"word", "confidence"}]')
    pairs = [_word(one, f"{where}: word {place}") for place, one in enumerate(value, start=1)]
    spoken = [pair for pair in pairs if pair[0]]
    sure = [confidence for _, confidence in spoken if confidence is not None]
    if sure and len(sure) < len(spoken):
        raise DataError("must have a confidence for every word or for none", where=f"{where}: words")
    return tuple(word for word, _ in spoken), tuple(sure) if len(sure) == len(spoken) else None


def _word(value: object, where: str) -> tuple[str, float | None]:
    if isinstance(value, str):
        return spoken_word(value), None
    if not isinstance(value, dict) or not isinstance(value.get("word"), str):
        raise DataError("must have a word", where=where, got=_shown(value), fix='{"word": ..., "confidence": ...}')
    given = _first(value, SURE)
    return spoken_word(value["word"]), None if given is None else _probability(given, where)


def _logprob(value: dict[str, Any], where: str) -> float:
    given = _first(value, SCORED)
    return math.nan if given is None else _logarithm(given, where)


def _slot(value: object, where: str, normalise: bool) -> tuple[tuple[str, float], ...]:
    arcs = value.get("arcs") if isinstance(value, dict) else value
    if not isinstance(arcs, Sequence) or isinstance(arcs, str):
        raise DataError("must be a list of arcs", where=where, got=_shown(value), fix='or {"arcs": [...]}')
    total: dict[str, float] = {}
    for place, arc in enumerate(arcs, start=1):
        word, probability = _arc(arc, f"{where}, arc {place}")
        total[word] = total.get(word, 0.0) + probability
    mass = math.fsum(total.values())
    if mass <= 0:
        fix = "leave the slot out" if total else "a slot in which nothing is said holds the empty word"
        raise DataError("must have an arc of positive probability", where=where, fix=fix)
    if mass > 1 + ROUNDING and not normalise:
        raise DataError("must sum to at most 1", where=where, got=round(mass, 6), fix="normalise, if it is no mistake")
    scale = max(mass, 1.0)
    return tuple((word, probability / scale) for word, probability in total.items())


def _arc(value: object, where: str) -> tuple[str, float]:
    if isinstance(value, dict):
        word, sure, scored = value.get("word"), _first(value, SURE), _first(value, SCORED)
    elif isinstance(value, Sequence) and len(value) == 2:
        word, sure, scored = value[0], None, value[1]
    else:
        raise DataError(
            "must be a word with its score", where=where, got=_shown(value), fix="[word, natural-log score]"
        )
    if not isinstance(word, str):
        raise DataError("must be text", where=f"{where}: word", got=_shown(word), fix='"" where nothing is said')
    if sure is None and scored is None:
        raise DataError("must have a confidence or a logprob", where=where, got=_shown(value))
    return spoken_word(word), _probability(sure, where) if sure is not None else math.exp(_logarithm(scored, where))


def spoken_word(word: str) -> str:
    """The word, or "" for any way of writing that there is none.

    >>> spoken_word("thai"), spoken_word("!null")
    ('thai', '')
    """
    return "" if word in EMPTY_WORDS else word


def _first(value: dict[str, Any], names: Sequence[str]) -> Any:
    return next((value[name] for name in names if value.get(name) is not None), None)


def _probability(value: object, where: str) -> float:
    number = _number(value, f"{where}: confidence")
    if not 0 <= number <= 1 + ROUNDING:
        raise DataError("must lie between 0 and 1", where=f"{where}: confidence", got=number, fix=_mend(number))
    return min(number, 1.0)


def _logarithm(value: object, where: str) -> float:
    number = _number(value, f"{where}: logprob")
    if number > ROUNDING:
        fix = 'write a probability as "confidence"'
        raise DataError("must be a natural logarithm, at most 0", where=f"{where}: logprob", got=number, fix=fix)
    return min(number, 0.0)


def _number(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise DataError(
            "must be a number", where=where, got=_shown(value), fix="leave the field out where it is unknown"
        )
    return float(value)


def _mend(number: float) -> str:
    return 'write a natural logarithm as "logprob"' if number < 0 else "divide a percentage by 100"


def _shown(value: object, limit: int = 60) -> str:
    told = value if isinstance(value, str) else repr(value)
    return told if len(told) <= limit else f"{told[: limit - 3]}..."
