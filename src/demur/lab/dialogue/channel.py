"""What the system recognises of a user's acts: N-best lists with confidences, by acts or by words.

The knobs are separate: how often the best hypothesis is wrong, how long lists are, and what confidences are worth.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Protocol

import numpy as np

from demur.core.acts import Act, Slot, parse_acts, print_acts
from demur.errors import UsageError
from demur.lab.dialogue.domain import PLAIN, TaskDomain, UserActs, wish
from demur.nbest_lists.asr.networks import Sentence
from demur.nbest_lists.asr.scorers import NAMES as SCORERS
from demur.nbest_lists.asr.scorers import TOP_ONE, remembering, score_sentences
from demur.understanding.noise import WordChannel, networks, sentences

Hypotheses = list[tuple[UserActs, float]]
"""Acts with their confidences, best first."""

QUALITIES = {"good": 1.0, "flat": 0.0, "overconfident": 3.0}
"""Qualities of confidences, as the power of the posterior that each is."""
BY_WORDS = {"good": "infev", "flat": "const", "overconfident": "infev"}
"""The scorer of sentences for each quality, where the channel is one of words."""
CONFIDENCES = (*QUALITIES, *SCORERS)

CONCENTRATION = 3.0
"""Of the Dirichlet density from which the posteriors of a list are taken: the lower, the more a confidence says."""
ABSENT = 0.3
"""How much of what stands further down in a list of any length is missing altogether."""
_FAINTEST = 1e-3
"""The posterior below which a hypothesis is not listed."""


@dataclass(frozen=True, slots=True)
class Recognised:
    """What a channel makes of one turn."""

    hypotheses: Hypotheses
    words: int | None = None
    """Words said and recognised wrongly, where the channel is one of words."""
    word_errors: int | None = None


class Channel(Protocol):
    """Between user and manager; the same for the same acts, text and generator."""

    def recognise(self, acts: UserActs, text: str, rng: random.Random) -> Recognised:
        """What is recognised of acts that were said as a text."""


@dataclass(frozen=True, slots=True)
class ChannelSettings:
    """What is asked of a channel."""

    by: str = "acts"
    noise: float = 0.2
    """The share of turns whose best hypothesis is wrong; of a channel by words, the word error rate."""
    nbest: int = 5
    confidences: str = "good"
    scale: float = 1.0
    """Multiplies log posteriors: above 1 confidences are too bold, below 1 too timid."""

    def __post_init__(self) -> None:
        """Refuse what no channel can do."""
        known = (*QUALITIES, f"good{TOP_ONE}") if self.by == "acts" else CONFIDENCES
        if self.confidences not in known:
            hint = "; scorers of sentences need `channel` words" if self.confidences in SCORERS else ""
            raise UsageError(f'`confidences` takes one of {", ".join(known)}; got "{self.confidences}"{hint}')

    @property
    def power(self) -> float:
        """The power of posteriors that confidences are."""
        return self.scale * QUALITIES.get(self.confidences.removesuffix(TOP_ONE), 1.0)

    def channel(self, domain: TaskDomain, seed: int) -> Channel:
        """The channel for a domain; only errors of a channel by words depend on the seed before anything is said."""
        return (ActConfusion if self.by == "acts" else WordConfusion)(domain, self, seed)


class Perfect:
    """A channel without errors."""

    def recognise(self, acts: UserActs, _text: str, _rng: random.Random) -> Recognised:
        """The acts themselves with confidence 1."""
        return Recognised([(acts, 1.0)])


@dataclass(slots=True)
class ActConfusion:
    """Confuses acts, slots and values, with confidences that are the posteriors of the hypotheses, or a power of them.

    The posteriors of a list are drawn from a Dirichlet density, and then which of its hypotheses is what was said, or
    whether none is, by these posteriors. So "good" confidences are right as often as they say.
    """

    domain: TaskDomain
    settings: ChannelSettings
    _seed: int = 0
    base: tuple[float, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Finds the density at which the best hypothesis is wrong as often as asked."""
        self.base = density(self.settings.noise, self.settings.nbest)

    def recognise(self, acts: UserActs, _text: str, rng: random.Random) -> Recognised:
        """A list of at most so many hypotheses as are asked for, each once."""
        if self.settings.noise == 0:
            return Recognised([(acts, 1.0)])
        draws = [rng.gammavariate(share, 1.0) if share > 0 else 0.0 for share in self.base]
        total = math.fsum(draws) or 1.0
        shares = [draw / total for draw in draws]
        place, mass = 0, rng.random()
        while place < len(shares) - 1 and mass >= shares[place]:
            mass -= shares[place]
            place += 1
        *ranks, rest = shares
        # what was said stands at `place`; the last place is that of lists that do not have it
        listed: dict[UserActs, float] = {}
        for rank, share in enumerate(ranks):
            if share > _FAINTEST:
                one = acts if rank == place else self._confused(acts, listed, rng)
                listed[one] = share
        return Recognised(self._scored(listed, rest))

    def _scored(self, listed: dict[UserActs, float], rest: float) -> Hypotheses:
        ordered = sorted(listed.items(), key=lambda pair: -pair[1])
        power = self.settings.power
        if self.settings.confidences.endswith(TOP_ONE):
            return [(ordered[0][0], 1.0)]
        weights = [share**power for _, share in ordered]
        total = math.fsum(weights) + (rest**power if rest > 0 else 0.0)
        # rounded down, so that no list sums to more than 1
        rounded = [math.floor(1e4 * weight / total) / 1e4 for weight in weights]
        return [(one, share) for (one, _), share in zip(ordered, rounded, strict=True) if share]

    def _confused(self, acts: UserActs, listed: dict[UserActs, float], rng: random.Random) -> UserActs:
        """Something else that is not in the list yet."""
        while True:
            draw = rng.random()
            confuse = next(one for upto, one in _CONFUSIONS if draw < upto)
            other = confuse(self.domain, acts, rng)
            if other != acts and other not in listed:
                return other


def _other_value(domain: TaskDomain, acts: UserActs, rng: random.Random) -> UserActs:
    """The acts with another value in one slot; of acts without values, another act."""
    return _changed(domain, acts, rng, lambda slot: Slot(slot.name, rng.choice(domain.values[str(slot.name)])))


def _other_slot(domain: TaskDomain, acts: UserActs, rng: random.Random) -> UserActs:
    """The acts with another slot and one of its values in place of one."""

    def other(_: Slot) -> Slot:
        name = rng.choice(domain.slots)
        return Slot(name, rng.choice(domain.values[name]))

    return _changed(domain, acts, rng, other)


def _changed(domain: TaskDomain, acts: UserActs, rng: random.Random, change: Callable[[Slot], Slot]) -> UserActs:
    places = [(at, number) for at, act in enumerate(acts) for number in range(len(act.slots))]
    if not places:
        return _other_act(domain, acts, rng)
    at, number = rng.choice(places)
    act = acts[at]
    old = act.slots[number]
    new = Slot(rng.choice(domain.fields), None) if old.value is None else change(old)
    if new.name in {slot.name for slot in act.slots if slot is not old}:
        return acts
    slots = (*act.slots[:number], new, *act.slots[number + 1 :])
    return (*acts[:at], Act(act.name, slots), *acts[at + 1 :])


def _other_act(domain: TaskDomain, _acts: UserActs, rng: random.Random) -> UserActs:
    """Any act that a user may do."""
    kind = rng.choice(("inform", "request", *PLAIN))
    if kind == "inform":
        slot = rng.choice(domain.slots)
        return (wish({slot: rng.choice(domain.values[slot])}),)
    return (Act("request", (Slot(rng.choice(domain.fields), None),)) if kind == "request" else Act(kind),)


Confuse = Callable[[TaskDomain, UserActs, random.Random], UserActs]

KINDS_OF_ERRORS: dict[str, Confuse] = {
    "value": _other_value,
    "slot": _other_slot,
    "act": _other_act,
    "lost": lambda _domain, _acts, _rng: (),
}
"""What may be wrong in a wrong hypothesis: a value, a slot with its value, the whole act, or nothing is left of it."""
_CONFUSIONS = tuple(zip((0.5, 0.65, 0.9, 1.0), KINDS_OF_ERRORS.values(), strict=True))
"""The kinds by cumulated shares."""


@cache
def density(noise: float, nbest: int) -> tuple[float, ...]:
    """The parameters of the Dirichlet density for the ranks of a list and for what it lacks.

    They are found so that the largest posterior of the ranks is, on average, 1 less the noise: the best hypothesis is
    wrong as often as asked, up to the precision of 4,000 draws that are the same for every noise.

    >>> [round(share, 2) for share in density(0.0, 3)]
    [3.0, 0.0, 0.0, 0.0]
    """
    low, high = 0.0, 1.0
    for _ in range(14):
        middle = (low + high) / 2
        low, high = (middle, high) if _best_wrong(_ranks(middle, nbest)) < noise else (low, middle)
    return tuple(CONCENTRATION * share for share in _ranks((low + high) / 2 if noise else 0.0, nbest))


def _ranks(further: float, nbest: int) -> list[float]:
    """Shares that fall by the same factor from rank to rank, and what is left beyond the list."""
    listed = [(1 - ABSENT * further) * (1 - further) * further**rank for rank in range(nbest)]
    return [*listed, 1.0 - sum(listed)]


def _best_wrong(shares: Sequence[float]) -> float:
    """How often the best of the listed hypotheses is wrong."""
    rng = np.random.default_rng(2008)
    draws = rng.dirichlet(np.maximum(CONCENTRATION * np.array(shares), 1e-9), size=4000)
    return float(1 - draws[:, :-1].max(axis=1).mean())


RECOGNISED = 50
"""Sentences of a confusion network that are parsed."""


class WordConfusion:
    """Mishears words, then scores and parses the sentences of the confusion network.

    The rate of slips is found once, so that sentences of the domain have the word error rate asked for on average.
    """

    def __init__(self, domain: TaskDomain, settings: ChannelSettings, seed: int) -> None:
        self.settings = settings
        self.scorer = BY_WORDS.get(settings.confidences, settings.confidences)
        self.parse = remembering(domain.grammar.parse)
        self.line = _fitted_line(domain, settings.noise, seed)

    def recognise(self, acts: UserActs, text: str, rng: random.Random) -> Recognised:
        """The acts of the likeliest sentences, with the confidences of the scorer."""
        if self.settings.noise == 0:
            return Recognised([(acts, 1.0)], len(text.split()), 0)
        found = self.line.recognise([text], [f"{rng.getrandbits(64):016x}"])
        heard = [
            Sentence(one.words, self.settings.power * one.logprob, one.confidences)
            for one in sentences(networks(found)[0], RECOGNISED)
        ]
        listed = score_sentences(heard, scorer=self.scorer, parse=self.parse)[: self.settings.nbest]
        rounded = [(_acts(act), math.floor(1e4 * share + 1e-9) / 1e4) for act, share in listed]
        return Recognised([pair for pair in rounded if pair[1]], found.words, sum(found.errors))


_acts = lru_cache(maxsize=1 << 16)(parse_acts)
acts_text = lru_cache(maxsize=1 << 16)(print_acts)


@lru_cache(maxsize=16)
def _fitted_line(domain: TaskDomain, wer: float, seed: int) -> WordChannel:
    from demur.lab.dialogue.user import new_user

    line = WordChannel(domain.vocabulary(), wer=wer, seed=seed, frequent=500)
    rng = random.Random(seed)
    users = [new_user(domain, rng) for _ in range(150)]
    texts = [domain.express((wish(user.wanted),), rng) for user in users]
    texts += [domain.express((Act("request", tuple(Slot(name, None) for name in user.asks)),), rng) for user in users]
    texts += [domain.express((Act(name),), rng) for name in PLAIN for _ in range(10)]
    return line.fit(texts, range(len(texts)))
