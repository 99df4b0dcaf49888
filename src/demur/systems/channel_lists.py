"""What a recogniser tells besides the text it heard: confusion networks, N-best lists, and how sure each word is.

The best word of every slot is what was heard. Its posterior is drawn so that it is calibrated: over all words heard,
let posteriors have the density f with the share of right words as its mean; then among right words the density is in
proportion to c f(c), among wrong ones to (1 - c) f(c), and of those with posterior c a share of c is right. With a
beta density for f both are beta densities too. What is left is shared by words that sound like the one heard, and
silence; a word that was said and not heard stands anywhere among them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from demur.data.recognition import Network, Sentence
from demur.errors import UsageError
from demur.systems.channel import Channel, Heard, Pairs, generator
from demur.systems.confusion import paths

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


def networks(heard: Heard) -> list[Network]:
    """The confusion network of each utterance, of at most six words a slot, with four decimals each.

    The best words, read off, are the text that was heard. A slot whose words would be likelier than its best one says
    less than 1 in all. Besides the slots of words there are some in which noise was taken for speech and then not.
    """
    recogniser = _Recogniser(heard.channel)
    heard.channel.alikes.of(word for pairs in heard.pairs for pair in pairs for word in pair if word)
    return [
        recogniser.network(pairs, generator(heard.channel.seed, name, "lists"))
        for name, pairs in zip(heard.ids, heard.pairs, strict=True)
    ]


def sentences(network: Network, n: int = SENTENCES) -> list[Sentence]:
    """The n likeliest sentences; each has the probability of its best path, so the first is what was heard.

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


def rows(heard: Heard, n: int = SENTENCES) -> list[dict[str, Any]]:
    """A row for each utterance, as tables of N-best lists hold what was heard: `id`, `text` (said), `asr`, `cnet`."""
    return [
        {"id": str(name), "text": said, "asr": [_told(one) for one in sentences(network, n)], "cnet": _arcs(network)}
        for name, said, network in zip(heard.ids, heard.said, networks(heard), strict=True)
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
    for word in kept:
        # the heaviest first: what one may not have goes to those after it
        share = min(math.floor(1e4 * left * weight[word] / total + 1e-6) / 1e4, round(sure - 1e-4, 4))
        left, total = left - share, total - weight[word]
        if share > 0:
            found.append((word, round(share, 4)))
    return tuple(found)


def _told(sentence: Sentence) -> dict[str, Any]:
    words = zip(sentence.words, sentence.confidences or (), strict=True)
    told = [{"word": word, "confidence": share} for word, share in words]
    return {"text": sentence.text, "logprob": round(sentence.logprob, 4), "words": told}


def _arcs(network: Network) -> list[list[dict[str, Any]]]:
    return [[{"word": word, "confidence": share} for word, share in arcs] for arcs in network.slots]


class _Recogniser:
    """Makes networks of what a channel heard."""

    def __init__(self, channel: Channel) -> None:
        self._alikes = channel.alikes
        rate = channel.rate or 0.0
        substituted, deleted, inserted = (rate * share for share in channel.ratio)
        right = max(0.0, 1 - substituted - deleted)
        self._noiseless = rate == 0
        self._right = right / (right + substituted + inserted) if right + substituted + inserted else 0.0
        # as often as a word is lost there is noise that was nearly taken for one, so half of all silences are right
        self._ghosts = deleted

    def network(self, pairs: Pairs, rng: np.random.Generator) -> Network:
        if self._noiseless:
            return Network(tuple(((word, 1.0),) for word, _ in pairs))
        slots: list[Slot] = []
        for said, word in pairs:
            slots.append(self._lost(said, rng) if not word else self._word(said, word, rng))
            if said and rng.random() < self._ghosts:
                slots.append(self._ghost(rng))
        return Network(tuple(slots))

    def _word(self, said: str, word: str, rng: np.random.Generator) -> Slot:
        rivals = self._rivals(word)
        rivals[""] = _SILENCE if said else 1.0
        if said and said != word:
            ranked = sorted(rivals.values(), reverse=True)[: _ARCS - 1]
            rivals[said] = max(rivals.get(said, 0.0), _NUDGE * ranked[int(rng.integers(len(ranked)))])
        return slot(word, posterior(said == word, self._right, rng), rivals)

    def _lost(self, said: str, rng: np.random.Generator) -> Slot:
        return slot("", posterior(False, 0.5, rng), {said: 1.0, **self._rivals(said)})

    def _ghost(self, rng: np.random.Generator) -> Slot:
        one, other = (self._alikes.fillers.picked(rng.random()) for _ in range(2))
        return slot("", posterior(True, 0.5, rng), {other: 0.5, one: 1.0})

    def _rivals(self, word: str) -> dict[str, float]:
        found = self._alikes.of([word])[word]
        return dict(zip(found.words, found.weights.tolist(), strict=True))
