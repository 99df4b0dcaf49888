"""A noisy channel for words at a chosen word error rate, with confusion networks, N-best lists and word posteriors."""

from __future__ import annotations

import hashlib
import math
import sys
from bisect import bisect_right
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property, lru_cache
from importlib.util import find_spec
from itertools import islice
from typing import Any, Protocol

import numpy as np

from demur.core.arrays import Array
from demur.errors import UsageError
from demur.nbest_lists.asr.networks import Network, Sentence, paths
from demur.understanding.tokens import pronounced, words
from demur.understanding.tokens import required as phones_required

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


@dataclass(frozen=True)
class Rivals:
    """The words that one word may be taken for, likeliest first, and how likely each is."""

    words: tuple[str, ...]
    weights: Array
    """They sum to 1."""

    @cached_property
    def _ends(self) -> list[float]:
        ends: list[float] = np.cumsum(self.weights).tolist()
        return ends

    @cached_property
    def by_word(self) -> dict[str, float]:
        """The weight of each word."""
        weights: list[float] = self.weights.tolist()
        return dict(zip(self.words, weights, strict=True))

    def pick(self, draw: float) -> str:
        """The rival that a draw from 0 to 1 falls on."""
        return self.words[min(bisect_right(self._ends, draw), len(self.words) - 1)]


class SoundAlikes:
    """A recogniser's vocabulary, with the rivals of any word, which need not be in it."""

    def __init__(self, vocabulary: Iterable[str], steepness: float = STEEPNESS) -> None:
        required()
        from wordfreq import get_frequency_dict

        self._steepness = steepness
        sounds = {word: sound for word in sorted(set(vocabulary)) if (sound := _sound(word))}
        if len(sounds) < 2:
            raise UsageError(f"a recogniser must know two words or more; got {len(sounds)} that can be pronounced")
        self.vocabulary = tuple(sounds)
        self._sounds = list(sounds.values())
        known = get_frequency_dict("en")
        frequencies = np.array([max(known.get(word, 0.0), _RAREST) for word in self.vocabulary])
        self._familiar = FAMILIARITY * np.log(frequencies)
        self._place = {word: place for place, word in enumerate(self.vocabulary)}
        self._found: dict[str, Rivals] = {}
        self.fillers = self._likeliest(self._familiar / FAMILIARITY - _TIES * np.arange(len(self.vocabulary)), _FILLERS)

    def of(self, asked: Iterable[str]) -> dict[str, Rivals]:
        """The rivals of each of the words; found once for each, many at a time."""
        distinct = list(dict.fromkeys(asked))
        new = [word for word in distinct if word not in self._found]
        for start in range(0, len(new), _AT_ONCE):
            batch = new[start : start + _AT_ONCE]
            scores = self._familiar - self._steepness * _distances(batch, self._sounds)
            scores -= _TIES * np.arange(len(self.vocabulary))
            for word, row in zip(batch, scores, strict=True):
                if word in self._place:
                    row[self._place[word]] = -np.inf
                self._found[word] = self._likeliest(row, RIVALS)
        return {word: self._found[word] for word in distinct}

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

    longer = (word for word in iter_wordlist("en") if len(word) > 1 or word in "ai")
    spelled = (word for word in longer if word.replace("'", "").isalpha() and words(word) == [word])
    return list(islice((word for word in spelled if word not in _MASKED.split()), count))


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


_signs: dict[str, str] = {}


def _sound(word: str) -> str:
    """The phones of a word as a text of one character each, which is what distances are quickly found between."""
    return "".join(_signs.setdefault(phone, chr(0xE000 + len(_signs))) for phone in pronounced(word))


WordPairs = tuple[tuple[str, str], ...]
"""What was said and what was recognised for it, place by place; "" for nothing."""

SUBSTITUTIONS, DELETIONS, INSERTIONS = 0.55, 0.25, 0.20
"""Shares of the kinds of error. The live recogniser on the train part of DSTC2 makes .58, .25 and .17 of them as it is
transcribed there, and .48, .25 and .27 where spellings are made alike and hesitations left out."""
FLATTERS = (
    "The recogniser is simulated: it takes words for others that sound like them, which flatters tokens made of phones."
)
CLOSE = 0.001
"""The search for the rate ends so near to the word error rate that is asked for."""
_STEPS = 40


@dataclass(frozen=True)
class Recognition:
    """What a recogniser made of some utterances."""

    ids: tuple[Hashable, ...]
    said: list[str]
    """The texts said, as a recogniser would write them."""
    texts: list[str]
    """The texts recognised; "" where nothing was."""

    @cached_property
    def errors(self) -> tuple[int, ...]:
        """Words to insert, drop or change in each text: the least number, which may be below that of the slips made."""
        both = zip(self.said, self.texts, strict=True)
        return tuple(word_errors(said.split(), text.split()) for said, text in both)

    @property
    def words(self) -> int:
        """How many words were said."""
        return sum(len(said.split()) for said in self.said)

    @property
    def wer(self) -> float:
        """The word error rate over all texts; NaN where nobody said a word."""
        return sum(self.errors) / self.words if self.words else math.nan


class NoiseChannel(Protocol):
    """A recogniser that errs; `demur.lab.noise.CHANNELS` names those of the experiments."""

    @property
    def description(self) -> str:
        """What an experiment calls it."""

    @property
    def caution(self) -> str:
        """What a reader must know of its errors; empty for real ones."""

    @property
    def snr_db(self) -> float | None:
        """Decibels of the speech above the noise, where there is any sound."""

    def recognise(self, texts: Sequence[str], ids: Sequence[Hashable] | None = None) -> Recognition:
        """What is recognised of texts, by the seed and the ids only; without ids each text is its own."""


@dataclass(frozen=True)
class WordRecognition(Recognition):
    """What a channel of words made of some utterances, place by place."""

    channel: WordChannel
    """With the rate that was used."""
    pairs: tuple[WordPairs, ...]


def checked_ids(texts: Sequence[str], ids: Sequence[Hashable] | None) -> Sequence[Hashable]:
    """The ids, which are the texts where there are none; refuse a text where a list is meant."""
    if isinstance(texts, str):
        raise UsageError("a channel takes a list of texts; put the one text in a list")
    ids = texts if ids is None else ids
    if len(ids) != len(texts):
        raise UsageError(f"there must be an id for each text; got {len(ids)} for {len(texts)}")
    return ids


@dataclass(frozen=True)
class WordChannel:
    """A recogniser that knows these words and the most frequent English ones, and errs at a word error rate.

    `vocabulary` are words, or texts whose words are taken; None stands for the frequent ones alone. The shares of the
    kinds of error are taken relative to each other. `steepness` is how much likelier near words are than far ones: at
    0 sound does not matter. `rate` is the errors tried per word: left out, it is found again for the texts of each
    call, so that their word error rate is the one asked for. To treat texts alike that come one by one, find it once
    on many (`fit`): then what is recognised depends on nothing but the seed, the text and its id.

    >>> channel = WordChannel(wer=0.5, seed=1).fit(["can i book a flight"] * 100, ids=range(100))
    >>> alone = channel.recognise(["where is the flour"], ids=["q7"])
    >>> alone.texts == channel.recognise(["hello", "where is the flour"], ids=["q6", "q7"]).texts[1:]
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

    description = "a simulated recogniser"
    caution = FLATTERS
    snr_db = None

    def __post_init__(self) -> None:
        required()
        if not 0 <= self.wer <= 1:
            raise UsageError(f"a word error rate lies from 0 to 1; got {self.wer:g}")
        if min(self._shares) < 0 or not 0 < sum(self._shares) < math.inf:
            raise UsageError(f"the shares of errors must be 0 or more, and not all 0; got {self._shares}")
        if not 0 <= self.steepness < math.inf:
            raise UsageError(f"the steepness must be 0 or more; got {self.steepness:g}")
        known = self.vocabulary
        if known is not None:
            known = tuple(sorted({word for text in known for word in words(text)}))
        if known == () or (known is None and self.frequent < 1):
            fix = "leave it out to take the most frequent English words"
            raise UsageError(f"a recogniser must know some words, but the vocabulary has none ({fix})")
        if self.rate is not None and not 0 <= self.rate <= self.highest:
            raise UsageError(f"with these shares the rate lies from 0 to {self.highest:g}; got {self.rate:g}")
        object.__setattr__(self, "vocabulary", known)

    def at(self, rate: float) -> WordChannel:
        """The channel that makes errors at this rate, whatever the texts."""
        return replace(self, rate=rate)

    def fit(self, texts: Sequence[str], ids: Sequence[Hashable] | None = None) -> WordChannel:
        """The channel at the rate at which these texts have the word error rate asked for."""
        return self.at(self._fitting_rate(self._draws(texts, ids)))

    def recognise(self, texts: Sequence[str], ids: Sequence[Hashable] | None = None) -> WordRecognition:
        """What is recognised of texts; without ids each text is its own.

        With few words the word error rate comes as near as the texts allow.
        """
        draws = self._draws(texts, ids)
        rate = self._fitting_rate(draws) if self.rate is None else self.rate
        pairs = tuple(self._pairs(one, rate) for one in draws)
        said, texts_of = ([" ".join(words_of(one, side)) for one in pairs] for side in (0, 1))
        channel = self if rate == self.rate else self.at(rate)
        return WordRecognition(tuple(checked_ids(texts, ids)), said, texts_of, channel, pairs)

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
        ids = checked_ids(texts, ids)
        said = [tuple(words(text)) for text in texts]
        alikes = self.alikes
        rivals = alikes.of(word for one in said for word in one)
        draws = []
        for name, one in zip(ids, said, strict=True):
            chance = generator(self.seed, name).random((len(one), 5))
            instead = tuple(rivals[word].pick(draw) for word, draw in zip(one, chance[:, 2], strict=True))
            added = tuple(alikes.fillers.pick(draw) for draw in chance[:, 4])
            draws.append(_Draws(one, instead, added, chance))
        return draws

    def _pairs(self, draws: _Draws, rate: float) -> WordPairs:
        substitutions, deletions, insertions = self.ratio
        wrong = draws.chance[:, 0] < rate * (substitutions + deletions)
        lost = wrong & (draws.chance[:, 1] * (substitutions + deletions) >= substitutions)
        after = draws.chance[:, 3] < rate * insertions
        if len(lost) > 1 and lost.all():
            lost[np.argmax(draws.chance[:, 0])] = False  # of several words something is always recognised
        pairs = []
        for place, word in enumerate(draws.said):
            pairs.append((word, "" if lost[place] else draws.instead[place] if wrong[place] else word))
            if after[place]:
                pairs.append(("", draws.added[place]))
        return tuple(pairs)

    def _fitting_rate(self, draws: Sequence[_Draws]) -> float:
        """The rate at which the word error rate is nearest to the one asked for, by bisection."""
        total = sum(len(one.said) for one in draws)
        if not total or self.wer == 0:
            return 0.0
        low, high = 0.0, self.highest
        rate, least = high, math.inf
        for _ in range(_STEPS):
            tried = high if least == math.inf else (low + high) / 2
            pairs = (self._pairs(one, tried) for one in draws)
            errors = sum(word_errors(words_of(one, 0), words_of(one, 1)) for one in pairs)
            excess = errors / total - self.wer
            if abs(excess) < least:
                rate, least = tried, abs(excess)
            if least <= CLOSE or (tried == high and excess < 0):
                break
            low, high = (tried, high) if excess < 0 else (low, tried)
        return rate


@dataclass(frozen=True, slots=True)
class _Draws:
    """The words of an utterance, and all that chance decides about them at any rate."""

    said: tuple[str, ...]
    instead: tuple[str, ...]
    added: tuple[str, ...]
    chance: Array


def words_of(pairs: WordPairs, side: int) -> list[str]:
    """The words said (side 0), or the words recognised (side 1)."""
    return [pair[side] for pair in pairs if pair[side]]


def word_errors(said: Sequence[str], recognised: Sequence[str]) -> int:
    """The least number of words to insert, drop or change to turn what was said into what was recognised.

    >>> word_errors("where is the flour".split(), "where the flower is".split())
    3
    """
    if sys.modules.get("rapidfuzz") is None:  # to look for packages takes far longer than to count
        required()
    from rapidfuzz.distance import Levenshtein

    return int(Levenshtein.distance(said, recognised))


def generator(seed: int, name: Hashable, purpose: str = "words") -> np.random.Generator:
    """Chance for one utterance and purpose, the same whatever else is drawn."""
    key = f"{purpose}/{seed}/{name}".encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(key, digest_size=16).digest()
    return np.random.default_rng(np.frombuffer(digest, np.uint8).astype(np.uint32))


SENTENCES = 10
"""Sentences of a list where nobody says how many."""
_INFORMATIVE = 2.0
"""The two parameters of the beta density sum to this: at even odds, posteriors are spread evenly over 0 to 1, and a
right word has the higher one of a right and a wrong word five times in six. Less would tell more."""
_FAINTEST_BEST = 0.05
"""A word that is the best of its slot has at least this posterior."""
_ARCS = 6
_SILENCE = 0.15
"""What silence weighs, where the words that sound alike weigh 1 together."""
_NUDGE = 1.001
"""Puts the word that was said before a rival of the same weight."""
_SHARES = (0.01, 0.99)
"""The share of right words is taken to lie between these, so that densities exist."""

Slot = tuple[tuple[str, float], ...]


def networks(found: WordRecognition) -> list[Network]:
    """The confusion network of each utterance, of at most six words a slot, with four decimals each.

    The best words, read off, are the text that was recognised. A slot whose words would be likelier than its best one
    says less than 1 in all. Besides the slots of words there are some in which noise was taken for speech and then not.
    """
    channel = found.channel
    if not channel.rate:
        return [Network(tuple(((word, 1.0),) for word, _ in pairs)) for pairs in found.pairs]
    substituted, deleted, inserted = (channel.rate * share for share in channel.ratio)
    right = max(0.0, 1 - substituted - deleted)
    total = right + substituted + inserted
    recogniser = _Recogniser(channel.alikes, right / total if total else 0.0, deleted)
    channel.alikes.of(word for pairs in found.pairs for pair in pairs for word in pair if word)
    return [
        recogniser.network(pairs, generator(channel.seed, name, "lists"))
        for name, pairs in zip(found.ids, found.pairs, strict=True)
    ]


def sentences(network: Network, n: int = SENTENCES) -> list[Sentence]:
    """The n likeliest sentences; each has the probability of its best path, so the first is what was recognised.

    >>> network = Network(((("flour", 0.6), ("flower", 0.4)), (("", 0.7), ("a", 0.3))))
    >>> [(one.text, round(math.exp(one.logprob), 2)) for one in sentences(network, 3)]
    [('flour', 0.42), ('flower', 0.28), ('flour a', 0.18)]
    """
    if n < 1:
        raise UsageError(f"a list has at least one sentence; asked for {n}")
    found: dict[tuple[str, ...], Sentence] = {}
    for path in paths(network):
        sure = tuple(share for word, share in zip(path.words, path.probabilities, strict=True) if word)
        found.setdefault(path.sentence, Sentence(path.sentence, path.logprob, sure))
        if len(found) == n:
            break
    return list(found.values())


def rows(found: WordRecognition, n: int = SENTENCES) -> list[dict[str, Any]]:
    """A row for each utterance, as tables of N-best lists have it: `id`, `text` (said), `asr`, `cnet`."""
    return [
        {
            "id": str(name),
            "text": said,
            "asr": [sentence_row(one) for one in sentences(network, n)],
            "cnet": [word_rows(arcs) for arcs in network.slots],
        }
        for name, said, network in zip(found.ids, found.said, networks(found), strict=True)
    ]


def posterior(right: bool, share: float, rng: np.random.Generator) -> float:
    """How sure the recogniser is of what it heard, if that is right or not and a given share of all is right."""
    low, high = _SHARES
    share = min(max(share, low), high)
    drawn = rng.beta(_INFORMATIVE * share + right, _INFORMATIVE * (1 - share) + (not right))
    return max(_FAINTEST_BEST, round(float(drawn), 4))


def slot(best: str, sure: float, rivals: Mapping[str, float], arcs: int = _ARCS) -> Slot:
    """The arcs of a slot: the best word, and rivals that share the rest by weight, none of them as likely as the best.

    >>> slot("flour", 0.4, {"flower": 3.0, "floor": 1.0})
    (('flour', 0.4), ('flower', 0.3999), ('floor', 0.2001))
    """
    weight = {word: value for word, value in rivals.items() if word != best and value > 0}
    kept = sorted(weight, key=lambda word: (-weight[word], word))[: arcs - 1]
    left, total, found = 1.0 - sure, math.fsum(weight[word] for word in kept), [(best, sure)]
    most = round(sure - 1e-4, 4)
    for word in kept:
        # the heaviest first: what one may not have goes to those after it
        share = min(math.floor(1e4 * left * weight[word] / total + 1e-6) / 1e4, most)
        left, total = left - share, total - weight[word]
        if share > 0:
            found.append((word, round(share, 4)))
    return tuple(found)


def sentence_row(sentence: Sentence) -> dict[str, Any]:
    """A sentence as the column `asr` has it."""
    sure = word_rows(zip(sentence.words, sentence.confidences or (), strict=True))
    return {"text": sentence.text, "logprob": round(sentence.logprob, 4), "words": sure}


def word_rows(arcs: Iterable[tuple[str, float]]) -> list[dict[str, Any]]:
    """Words with their confidences, as the columns `asr` and `cnet` have them."""
    return [{"word": word, "confidence": share} for word, share in arcs]


@dataclass(frozen=True, slots=True)
class _Recogniser:
    """Makes networks of what a channel recognised."""

    alikes: SoundAlikes
    right: float
    """The share of words recognised that were said."""
    ghosts: float
    """How often noise was nearly taken for a word: as often as a word is lost, so half of all silences are right."""

    def network(self, pairs: WordPairs, rng: np.random.Generator) -> Network:
        slots: list[Slot] = []
        for said, word in pairs:
            slots.append(self._slot(said, word, rng))
            if said and rng.random() < self.ghosts:
                one, other = (self.alikes.fillers.pick(rng.random()) for _ in range(2))
                slots.append(slot("", posterior(True, 0.5, rng), {other: 0.5, one: 1.0}))
        return Network(tuple(slots))

    def _slot(self, said: str, word: str, rng: np.random.Generator) -> Slot:
        rivals = dict(self.alikes.of([word or said])[word or said].by_word)
        if not word:
            return slot("", posterior(False, 0.5, rng), {said: 1.0, **rivals})
        rivals[""] = _SILENCE if said else 1.0
        if said and said != word:
            ranked = sorted(rivals.values(), reverse=True)[: _ARCS - 1]
            rivals[said] = max(rivals.get(said, 0.0), _NUDGE * ranked[int(rng.integers(len(ranked)))])
        return slot(word, posterior(said == word, self.right, rng), rivals)
