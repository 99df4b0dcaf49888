"""Which words are taken for which: those that sound like them, and among these rather the familiar ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from demur.errors import UsageError
from demur.systems.pronunciation import pronounced
from demur.systems.pronunciation import required as phones_required
from demur.systems.tokens import words

Array = NDArray[np.float64]

FREQUENT = 5000
"""Frequent English words that a recogniser knows whatever is talked about."""
RIVALS = 20
"""Words that one word may be taken for."""
STEEPNESS = 10.0
"""How much phones matter: a rival of four phones is e to the -2.5 times as likely for each that differs."""
FAMILIARITY = 0.5
"""Rivals weigh as the root of their frequency: by the frequency itself all short words would become "the"."""
_RAREST = 1e-8
"""The frequency of words that are not counted: one in a hundred million."""
_FILLERS = 50
"""The most frequent words, which are heard where nothing was said."""
_AT_ONCE = 256
"""Words compared with the whole vocabulary at a time, to bound memory."""
_TIES = 1e-12
"""Keeps apart rivals that are equally likely, so that the same are chosen on every machine."""
_MASKED = """
    ass bitch bullshit cock crap cunt damn dick fuck fucked fuckin fucking piss pissed porn pussy rape sexy shit
"""
"""Words that recognisers for the public do not write."""


@dataclass(frozen=True, slots=True)
class Rivals:
    """The words that one word may be taken for, likeliest first, and how likely each is."""

    words: tuple[str, ...]
    weights: Array
    """They sum to 1."""

    def picked(self, draw: float) -> str:
        """The rival that a draw from 0 to 1 falls on."""
        place = int(np.searchsorted(np.cumsum(self.weights), draw, side="right"))
        return self.words[min(place, len(self.words) - 1)]


class SoundAlikes:
    """A recogniser's vocabulary, with the rivals of any word, which need not be in it."""

    def __init__(self, vocabulary: Iterable[str], steepness: float = STEEPNESS) -> None:
        required()
        self._steepness = steepness
        sounds = {word: sound for word in sorted(set(vocabulary)) if (sound := _sound(word))}
        if len(sounds) < 2:
            raise UsageError(f"a recogniser must know two words or more; got {len(sounds)} that can be pronounced")
        self.vocabulary = tuple(sounds)
        self._sounds = list(sounds.values())
        self._familiar = FAMILIARITY * np.log(_frequencies(self.vocabulary))
        self._place = {word: place for place, word in enumerate(self.vocabulary)}
        self._found: dict[str, Rivals] = {}
        self.fillers = self._most_frequent()

    def of(self, asked: Iterable[str]) -> dict[str, Rivals]:
        """The rivals of each of the words; found once for each, many at a time."""
        distinct = list(dict.fromkeys(asked))
        new = [word for word in distinct if word not in self._found]
        for start in range(0, len(new), _AT_ONCE):
            self._find(new[start : start + _AT_ONCE])
        return {word: self._found[word] for word in distinct}

    def _find(self, asked: Sequence[str]) -> None:
        scores = self._familiar - self._steepness * _distances(asked, self._sounds)
        scores -= _TIES * np.arange(len(self.vocabulary))
        for word, row in zip(asked, scores, strict=True):
            own = self._place.get(word)
            if own is not None:
                row[own] = -np.inf
            self._found[word] = self._likeliest(row, RIVALS)

    def _most_frequent(self) -> Rivals:
        return self._likeliest(self._familiar / FAMILIARITY - _TIES * np.arange(len(self.vocabulary)), _FILLERS)

    def _likeliest(self, scores: Array, most: int) -> Rivals:
        count = min(most, int(np.isfinite(scores).sum()))
        chosen = np.argpartition(-scores, count - 1)[:count]
        chosen = chosen[np.argsort(-scores[chosen])]
        weights = np.exp(scores[chosen] - scores[chosen[0]])
        return Rivals(tuple(self.vocabulary[place] for place in chosen), weights / weights.sum())


@lru_cache(maxsize=8)
def sound_alikes(
    vocabulary: tuple[str, ...] = (), frequent: int = FREQUENT, steepness: float = STEEPNESS
) -> SoundAlikes:
    """The rivals among these words and the most frequent English ones, numerals apart.

    >>> sound_alikes(("flour", "flower")).of(["flour"])["flour"].words[0]
    'flower'
    """
    # numerals are counted by their shape: "00" would be among the most frequent words
    spelled = (word for word in vocabulary if not any(map(str.isdigit, word)))
    return SoundAlikes((*spelled, *frequent_words(frequent)), steepness)


def frequent_words(count: int) -> list[str]:
    """The most frequent English words, without single letters that are no words, numbers and swearing.

    >>> frequent_words(5)
    ['the', 'to', 'and', 'of', 'a']
    """
    required()
    from wordfreq import iter_wordlist

    found: list[str] = []
    for word in iter_wordlist("en"):
        if len(found) >= count:
            break
        if _is_plain(word):
            found.append(word)
    return found


def phone_distance(one: str, other: str) -> float:
    """Phones to insert, drop or change from one word to the other, as a share of the longer; 0 for homophones.

    >>> phone_distance("flour", "flower"), phone_distance("book", "look")
    (0.0, 0.3333333333333333)
    """
    return float(_distances([one], [_sound(other)])[0, 0])


def _distances(asked: Sequence[str], sounds: Sequence[str]) -> Array:
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cdist

    queries = [_sound(word) for word in asked]
    shares: Array = cdist(queries, sounds, scorer=Levenshtein.normalized_distance, dtype=np.float64)
    return shares


def required() -> None:
    """Raise a UsageError that says what to install, where something is missing."""
    if find_spec("rapidfuzz") is None or find_spec("wordfreq") is None:
        raise UsageError("mishearing words needs rapidfuzz and wordfreq: pip install 'demur[noise]'")
    phones_required()


def _is_plain(word: str) -> bool:
    single = len(word) == 1 and word not in "ai"
    return not single and word not in _MASKED.split() and word.replace("'", "").isalpha() and words(word) == [word]


def _frequencies(spelled: Sequence[str]) -> Array:
    from wordfreq import get_frequency_dict

    known = get_frequency_dict("en")
    return np.array([max(known.get(word, 0.0), _RAREST) for word in spelled])


_signs: dict[str, str] = {}


def _sound(word: str) -> str:
    """The phones of a word as a text of one character each, which is what distances are quickly found between."""
    return "".join(_signs.setdefault(phone, chr(0xE000 + len(_signs))) for phone in pronounced(word))
