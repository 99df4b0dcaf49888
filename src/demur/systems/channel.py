"""A noisy line for words: texts become what a recogniser might have heard, at a word error rate that is asked for.

A word is taken for one that sounds like it, or lost; between words something is heard that nobody said. Which words
are wrong, and what they become, is drawn for each utterance from the seed and its id alone, and does not depend on
the rate: with more noise the same words are wrong, and more of them. What is heard is written as recognisers write,
in small letters without punctuation.

It flatters tokenizers that work on phones: the errors are made by the very distance that those are robust to. Where a
word is wrong, what the live recogniser of DSTC2's train part wrote differs from it in about four fifths of the phones,
here in about a third. A lower `steepness` flatters less; `demur.systems.speech` is the real thing.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, Sequence
from dataclasses import KW_ONLY, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from demur.errors import UsageError
from demur.systems.sound_alikes import FREQUENT, STEEPNESS, SoundAlikes, required, sound_alikes
from demur.systems.tokens import words

Array = NDArray[np.float64]
Pairs = tuple[tuple[str, str], ...]
"""What was said and what was heard for it, place by place; "" for nothing."""

SUBSTITUTIONS, DELETIONS, INSERTIONS = 0.55, 0.25, 0.20
"""Shares of the kinds of error. The live recogniser on the train part of DSTC2 makes .58, .25 and .17 of them as it is
transcribed there, and .48, .25 and .27 where spellings are made alike and hesitations left out."""
CLOSE = 0.001
"""The search for the rate ends so near to the word error rate that is asked for."""
_STEPS = 40


@dataclass(frozen=True, slots=True)
class Heard:
    """What was heard of some utterances."""

    channel: Channel
    """With the rate that was used."""
    ids: tuple[Hashable, ...]
    pairs: tuple[Pairs, ...]
    errors: tuple[int, ...]
    """Words to insert, drop or change in each text: the least number, which may be below that of the slips made."""

    @property
    def texts(self) -> list[str]:
        """The texts heard; "" where nothing was."""
        return [" ".join(said_and_heard(pairs)[1]) for pairs in self.pairs]

    @property
    def said(self) -> list[str]:
        """The texts said, as a recogniser would write them."""
        return [" ".join(said_and_heard(pairs)[0]) for pairs in self.pairs]

    @property
    def words(self) -> int:
        """How many words were said."""
        return sum(len(said_and_heard(pairs)[0]) for pairs in self.pairs)

    @property
    def wer(self) -> float:
        """The word error rate over all texts; NaN where nobody said a word."""
        return sum(self.errors) / self.words if self.words else math.nan

    @property
    def empty(self) -> int:
        """Texts of which nothing was heard although something was said."""
        return sum(bool(said) and not heard for said, heard in map(said_and_heard, self.pairs))


@dataclass(frozen=True)
class Channel:
    """A recogniser that knows these words and the most frequent English ones, and errs at a word error rate.

    `vocabulary` are words, or texts whose words are taken; None stands for the frequent ones alone. The shares of the
    kinds of error are taken relative to each other. `steepness` is how much likelier near words are than far ones: at
    0 sound does not matter. `rate` is the errors tried per word: left out, it is found anew for the texts of each
    call, so that their word error rate is the one asked for. To treat texts alike that come one by one, find it once
    on many (`fitted`): then what is heard depends on nothing but the seed, the text and its id.

    >>> channel = Channel(wer=0.5, seed=1).fitted(["can i book a flight"] * 100, ids=range(100))
    >>> heard = channel.heard(["where is the flour"], ids=["q7"])
    >>> heard.texts == channel.heard(["hello", "where is the flour"], ids=["q6", "q7"]).texts[1:]
    True
    """

    vocabulary: Sequence[str] | None = None
    _: KW_ONLY
    wer: float
    seed: int = 0
    substitutions: float = SUBSTITUTIONS
    deletions: float = DELETIONS
    insertions: float = INSERTIONS
    frequent: int = FREQUENT
    steepness: float = STEEPNESS
    rate: float | None = None

    def __post_init__(self) -> None:
        required()
        if not 0 <= self.wer <= 1:
            raise UsageError(f"a word error rate lies from 0 to 1; got {self.wer:g}")
        if min(self._shares) < 0 or not 0 < sum(self._shares) < math.inf:
            raise UsageError(f"the shares of errors must be 0 or more, and not all 0; got {self._shares}")
        if not 0 <= self.steepness < math.inf:
            raise UsageError(f"the steepness must be 0 or more; got {self.steepness:g}")
        known = None if self.vocabulary is None else _distinct_words(self.vocabulary)
        if known == () or (known is None and self.frequent < 1):
            fix = "leave it out to take the most frequent English words"
            raise UsageError(f"a recogniser must know some words, but the vocabulary has none ({fix})")
        if self.rate is not None and not 0 <= self.rate <= self.highest:
            raise UsageError(f"with these shares the rate lies from 0 to {self.highest:g}; got {self.rate:g}")
        object.__setattr__(self, "vocabulary", known)

    def at(self, rate: float) -> Channel:
        """The channel that makes errors at this rate, whatever the texts."""
        return replace(self, rate=rate)

    def fitted(self, texts: Sequence[str], ids: Sequence[Hashable] | None = None) -> Channel:
        """The channel at the rate at which these texts have the word error rate asked for."""
        return self.at(self._fitting(self._draws(texts, ids)))

    def heard(self, texts: Sequence[str], ids: Sequence[Hashable] | None = None) -> Heard:
        """What is heard of texts; without ids each text is its own.

        With few words the word error rate comes as near as the texts allow.
        """
        drawn = self._draws(texts, ids)
        rate = self._fitting(drawn) if self.rate is None else self.rate
        pairs = tuple(self._pairs(one, rate) for one in drawn)
        ids = texts if ids is None else ids
        return Heard(self.at(rate), tuple(ids), pairs, tuple(word_errors(*said_and_heard(one)) for one in pairs))

    @property
    def highest(self) -> float:
        """The rate at which every word is wrong, or something is heard after every one."""
        substitutions, deletions, insertions = self.ratio
        return 1 / max(substitutions + deletions, insertions)

    @property
    def ratio(self) -> tuple[float, float, float]:
        """The shares of substitutions, deletions and insertions, which sum to 1."""
        total = sum(self._shares)
        return (self.substitutions / total, self.deletions / total, self.insertions / total)

    @property
    def alikes(self) -> SoundAlikes:
        """What is taken for what."""
        return sound_alikes(tuple(self.vocabulary or ()), self.frequent, self.steepness)

    @property
    def _shares(self) -> tuple[float, float, float]:
        return self.substitutions, self.deletions, self.insertions

    def _draws(self, texts: Sequence[str], ids: Sequence[Hashable] | None) -> list[_Draws]:
        if isinstance(texts, str):
            raise UsageError("the channel takes a list of texts; put the one text in a list")
        ids = texts if ids is None else ids
        if len(ids) != len(texts):
            raise UsageError(f"there must be an id for each text; got {len(ids)} for {len(texts)}")
        said = [tuple(words(text)) for text in texts]
        alikes = self.alikes
        rivals = alikes.of(word for one in said for word in one)
        drawn = []
        for name, one in zip(ids, said, strict=True):
            chance = generator(self.seed, name).random((len(one), 5))
            instead = tuple(rivals[word].picked(draw) for word, draw in zip(one, chance[:, 2], strict=True))
            added = tuple(alikes.fillers.picked(draw) for draw in chance[:, 4])
            drawn.append(_Draws(one, instead, added, chance))
        return drawn

    def _pairs(self, drawn: _Draws, rate: float) -> Pairs:
        substitutions, deletions, insertions = self.ratio
        wrong = drawn.chance[:, 0] < rate * (substitutions + deletions)
        lost = wrong & (drawn.chance[:, 1] * (substitutions + deletions) >= substitutions)
        after = drawn.chance[:, 3] < rate * insertions
        if len(lost) > 1 and lost.all():
            lost[np.argmax(drawn.chance[:, 0])] = False  # of several words something is always heard
        return tuple(drawn.places(wrong.tolist(), lost.tolist(), after.tolist()))

    def _fitting(self, drawn: Sequence[_Draws]) -> float:
        """The rate at which the word error rate is nearest to the one asked for, by bisection."""
        total = sum(len(one.said) for one in drawn)
        if not total or self.wer == 0:
            return 0.0
        low, high = 0.0, self.highest
        rate, least = high, math.inf
        for _ in range(_STEPS):
            tried = high if least == math.inf else (low + high) / 2
            excess = self._errors(drawn, tried) / total - self.wer
            if abs(excess) < least:
                rate, least = tried, abs(excess)
            if least <= CLOSE or (tried == high and excess < 0):
                break
            low, high = (tried, high) if excess < 0 else (low, tried)
        return rate

    def _errors(self, drawn: Sequence[_Draws], rate: float) -> int:
        return sum(word_errors(*said_and_heard(self._pairs(one, rate))) for one in drawn)


@dataclass(frozen=True, slots=True)
class _Draws:
    """The words of an utterance, and all that chance decides about them at any rate."""

    said: tuple[str, ...]
    instead: tuple[str, ...]
    added: tuple[str, ...]
    chance: Array

    def places(self, wrong: Sequence[bool], lost: Sequence[bool], after: Sequence[bool]) -> list[tuple[str, str]]:
        found = []
        for place, word in enumerate(self.said):
            found.append((word, "" if lost[place] else self.instead[place] if wrong[place] else word))
            if after[place]:
                found.append(("", self.added[place]))
        return found


def said_and_heard(pairs: Pairs) -> tuple[list[str], list[str]]:
    """The words said, and the words heard."""
    return [said for said, _ in pairs if said], [heard for _, heard in pairs if heard]


def word_errors(said: Sequence[str], heard: Sequence[str]) -> int:
    """The least number of words to insert, drop or change to turn what was said into what was heard.

    >>> word_errors("where is the flour".split(), "where the flower is".split())
    3
    """
    required()
    from rapidfuzz.distance import Levenshtein

    return int(Levenshtein.distance(said, heard))


def generator(seed: int, name: Hashable, purpose: str = "words") -> np.random.Generator:
    """Chance for one utterance and purpose, the same whatever else is drawn."""
    key = f"{purpose}/{seed}/{name}".encode("utf-8", "surrogatepass")
    return np.random.default_rng(list(hashlib.blake2b(key, digest_size=16).digest()))


def _distinct_words(vocabulary: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted({word for text in vocabulary for word in words(text)}))
