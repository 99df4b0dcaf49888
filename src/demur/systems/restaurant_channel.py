"""A noisy channel: spoken words become a confusion network in which the right word is often, not always, the likeliest.

Each word competes with words that are spelt alike and with silence; between words something may be heard that
nobody said, and now and then a word is lost altogether. Evidence for a candidate is a draw from N(0, s²), for the
word that was said from N(s², s²): then prior times exp(evidence) is the posterior of each candidate, and calibrated
as far as the prior is right. Clarity s falls as noise grows, and under noise the posteriors are sharpened by a
power above one, as by a recogniser tuned on clean speech: what it says is then too bold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from demur.data.recognition import Network
from demur.systems.restaurant_sentences import VALUES, vocabulary

_SOUND_ALIKE = """
    tie tire nor forth sheep chip heap ease eat best vest mouth self sent enter food good foot fool ah oh eh it hm
    on an know now year yet phones bone dress press post cold code price prize pray play space spinach finish
    welcome well will world word by buy my think thing that they late ate in is this there their then where were
    hair here area era are or of cousin korea career crane green great gray grief talk turkey quick swim suite
    marine modern moderate modest chosen chess cheese trench bench friend brittle
"""
_INSERTED = ("a", "the", "uh", "it", "and", "of", "in", "i", "no", "oh", "is", "to")
_STEEPNESS = 2.0
"""How much less likely a candidate is the less it is spelt like the word."""
_SAME_KIND = 0.25
_RIVALS = 8
_ARCS = 5
_FAINTEST = 0.004
"""Words less likely than this share of the best are pruned."""
_LOST = 0.6


def heard(words: Sequence[str], noise: float, rng: np.random.Generator) -> Network:
    """What a recogniser makes of these words: a network of at most five words a slot, of four decimals each.

    Noise 0 is a perfect line; at 0.3 about one word in ten is not the best of its slot, at 0.6 about two in five.

    >>> heard(["cheap", "thai"], 0.0, np.random.default_rng(0))
    Network(slots=((('cheap', 1.0),), (('thai', 1.0),)))
    """
    if noise <= 0:
        return Network(tuple(((word, 1.0),) for word in words))
    slots: list[tuple[tuple[str, float], ...]] = []
    for word in words:
        slots += _between(noise, rng)
        slots.append(_slot(*_candidates(word), noise, rng, lost=rng.random() < _LOST * noise**2))
    return Network(tuple(slots))


def _between(noise: float, rng: np.random.Generator) -> list[tuple[tuple[str, float], ...]]:
    """A slot in which nothing was said, where the noise is taken for speech."""
    if rng.random() >= 0.3 * noise:
        return []
    chosen = rng.choice(len(_INSERTED), size=2, replace=False)
    words = ("", *(_INSERTED[place] for place in chosen))
    return [_slot(words, np.log([0.6, 0.2, 0.2]), noise, rng)]


def _slot(
    words: tuple[str, ...], prior: NDArray[np.float64], noise: float, rng: np.random.Generator, *, lost: bool = False
) -> tuple[tuple[str, float], ...]:
    """The arcs of one slot, best first; the first of the words is what was said, unless it is lost altogether."""
    clarity = 1.0 if lost else 1.0 / noise
    evidence = clarity * rng.standard_normal(len(words))
    evidence[0] = -math.inf if lost else evidence[0] + clarity**2
    return _arcs(words, _boldness(noise) * (prior + evidence))


def _boldness(noise: float) -> float:
    """The power that sharpens posteriors: one on a good line, larger under noise."""
    return 1.0 + 3.0 * max(0.0, noise - 0.3)


def _arcs(words: tuple[str, ...], scores: NDArray[np.float64]) -> tuple[tuple[str, float], ...]:
    weights = np.exp(scores - scores.max())
    order = np.argsort(-weights, kind="stable")[:_ARCS]
    kept = [place for place in order if weights[place] >= _FAINTEST * weights[order[0]]]
    total = sum(weights[place] for place in kept)
    rest = [(words[place], round(float(weights[place] / total), 4)) for place in kept[1:]]
    best = round(1.0 - math.fsum(probability for _, probability in rest), 4)
    return ((words[kept[0]], best), *rest)


@lru_cache(maxsize=4096)
def _candidates(word: str) -> tuple[tuple[str, ...], NDArray[np.float64]]:
    """The word itself, silence, and the words most like it, with their log priors."""
    near = sorted((_unlikeness(word, other), other) for other in _known() if other != word)[:_RIVALS]
    words = (word, "", *(other for _, other in near))
    costs = [0.0, 0.45 + 0.06 * len(word), *(cost for cost, _ in near)]
    return words, -_STEEPNESS * np.array(costs)


@cache
def _known() -> tuple[str, ...]:
    return tuple(sorted({*vocabulary(), *_SOUND_ALIKE.split()}))


@cache
def _kinds() -> dict[str, str]:
    """The slot each word of a value belongs to."""
    return {word: slot for slot, values in VALUES.items() for value in values for word in value.split()}


def _unlikeness(one: str, other: str) -> float:
    """Edits per letter, fewer for two values of the same slot: a recogniser expects one where the other may stand."""
    kinds = _kinds()
    nearer = _SAME_KIND if kinds.get(one, one) == kinds.get(other, other) else 0.0
    return max(0.1, _edits(one, other) / max(len(one), len(other)) - nearer)


def _edits(one: str, other: str) -> int:
    """Letters to insert, drop or change to turn one word into the other.

    >>> _edits("cheap", "sheep"), _edits("north", "nor")
    (2, 2)
    """
    row = list(range(len(other) + 1))
    for place, letter in enumerate(one, 1):
        above, row[0] = row[0], place
        for column, there in enumerate(other, 1):
            above, row[column] = row[column], min(above + (letter != there), row[column] + 1, row[column - 1] + 1)
    return row[-1]
