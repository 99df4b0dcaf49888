"""A restaurant guide: its places, and two managers that believe the best hypothesis or add up the evidence of all.

Both managers know the same places and ask, offer and answer alike. They differ in what they take from an N-best list:
the first writes down the top act as recognised; the other keeps a belief over the values of each slot and confirms
when unsure.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import product
from pathlib import Path
from typing import Literal

import numpy as np

from demur.core.acts import Act, parse_acts

PHRASES: dict[str, dict[str, list[str]]] = tomllib.loads(
    Path(__file__).with_name("restaurant_sentences.toml").read_text(encoding="utf-8")
)
"""What callers may say, by table and kind."""
VALUES = PHRASES["values"]
"""The values a caller may ask for, by slot."""
SLOTS = tuple(VALUES)
"""What a search may be narrowed by."""

_FEW = 1
"""With so many places left to choose from, none of the remaining slots is asked for."""
_SURE = 0.6
"""Believed so much, a value is acted on."""
_PLAUSIBLE = 0.25
"""Believed so much, a value is worth a question."""
_CHANGE_OF_MIND = 0.01
_SECOND_THOUGHTS = 0.3
"""How readily a caller changes a wish in any turn, and after hearing that it cannot be met."""
_TRUST = 0.9
"""What a confidence counts for: recognisers are too bold."""
_RARE = 0.1
_USUAL: dict[str, dict[str, float]] = {
    "welcome": {"inform": 1.0, "hello": 1.0},
    "request": {"inform": 1.0},
    "confirm": {"affirm": 1.0, "negate": 1.0, "inform": 0.6},
    "offer": {"request": 1.0, "confirm": 0.5, "reqalts": 0.7, "inform": 0.5, "negate": 0.5},
    "give": {"request": 1.0, "inform": 0.2, "negate": 0.3, "bye": 0.5, "thankyou": 0.5},
    "cannot": {"inform": 1.0, "reqalts": 1.0},
    "again": {"request": 1.0, "reqalts": 0.7, "inform": 0.7, "negate": 0.5},
}
"""How usual an act is after each prompt; the rest are rare."""

ActList = list[tuple[tuple[Act, ...], float]]
"""Acts with their confidences, best first."""
_acts = lru_cache(maxsize=65536)(parse_acts)


@dataclass(frozen=True, slots=True)
class Place:
    """A restaurant."""

    number: int
    food: str
    area: str
    pricerange: str

    def suits(self, wanted: Mapping[str, str]) -> bool:
        """Whether the place is all that is wanted of it.

        >>> Place(1, "thai", "north", "cheap").suits({"food": "thai", "area": "dontcare"})
        True
        """
        return all(value in ("dontcare", getattr(self, slot)) for slot, value in wanted.items())


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the guide says: an act and what it is about."""

    kind: Literal["welcome", "request", "confirm", "offer", "cannot", "give", "again", "goodbye"]
    slot: str = ""
    value: str = ""
    place: Place | None = None
    wanted: Mapping[str, str] | None = None
    """The search that found nothing."""
    given: tuple[str, ...] = ()
    """The fields of the place that are read out."""


@cache
def places() -> tuple[Place, ...]:
    """All places: three to six of each food, each in its area and price range."""
    rng = np.random.default_rng(44)
    chosen: list[tuple[str, str, str]] = []
    for food in VALUES["food"]:
        kinds = [(food, area, price) for area, price in product(VALUES["area"], VALUES["pricerange"])]
        picks = rng.choice(len(kinds), size=int(rng.integers(3, 7)), replace=False)
        chosen += [kinds[pick] for pick in sorted(picks)]
    return tuple(Place(number, *kind) for number, kind in enumerate(chosen, 1))


def matching_places(wanted: Mapping[str, str]) -> list[Place]:
    """The places that suit, in the guide's order."""
    return list(_suitable(frozenset(wanted.items())))


@cache
def _suitable(wanted: frozenset[tuple[str, str]]) -> tuple[Place, ...]:
    wish = dict(wanted)
    return tuple(place for place in places() if place.suits(wish))


@dataclass(slots=True)
class Manager:
    """What both managers share: the last prompt, the place on offer and how places are searched."""

    last: Prompt = field(default_factory=lambda: Prompt("welcome"))
    place: Place | None = None
    refused: set[int] = field(default_factory=set)
    """The numbers of places to which the caller asked for an alternative."""

    def answer(self, hypotheses: Sequence[tuple[str, float]]) -> Prompt:
        """What the guide says after recognising these acts with their confidences, best first."""
        self.last = self._prompt([(_acts(text), confidence) for text, confidence in hypotheses])
        return self.last

    def _prompt(self, recognised: ActList) -> Prompt:
        raise NotImplementedError

    @property
    def can_answer(self) -> bool:
        """Whether a question about a place can be answered: one is on offer."""
        return self.place is not None and self.last.kind in ("offer", "give", "again")

    def _search(self, wanted: dict[str, str], *, another: bool) -> Prompt:
        """A question for a slot that is open, an offer of the first place that suits, or a word that there is none."""
        suitable = matching_places(wanted)
        missing = [slot for slot in SLOTS if slot not in wanted]
        if missing and len(suitable) > _FEW:
            return Prompt("request", slot=missing[0])
        if another and self.place is not None:
            self.refused.add(self.place.number)
        if not suitable:
            return Prompt("cannot", wanted=dict(wanted))
        fresh = [place for place in suitable if place.number not in self.refused]
        if not fresh:
            self.refused.clear()
        self.place = (fresh or suitable)[0]
        return Prompt("offer", place=self.place)


@dataclass(slots=True)
class FirstBest(Manager):
    """Takes the top act as recognised, whatever its confidence."""

    wanted: dict[str, str] = field(default_factory=dict)

    def _prompt(self, recognised: ActList) -> Prompt:
        acts = recognised[0][0] if recognised else ()
        names = {act.name for act in acts}
        given = _informed(acts, self.last.slot)
        self.wanted.update(given)
        if names == {"repeat"}:
            return self.last
        if "bye" in names and self.place is not None:
            return Prompt("goodbye")
        if not given and self.can_answer and (fields := _requested(acts)):
            return Prompt("give", place=self.place, given=tuple(fields))
        if not given and "negate" in names and self.can_answer:
            self.wanted.clear()
            return self._search(self.wanted, another=False)
        if not given and "reqalts" not in names and self.last.kind != "welcome":
            return Prompt("again") if self.last.kind != "request" else self.last
        return self._search(self.wanted, another="reqalts" in names and not given)


@dataclass(slots=True)
class Belief(Manager):
    """Multiplies up the evidence for each value of each slot over all hypotheses and turns; confirms when unsure."""

    beliefs: dict[str, dict[str, float]] = field(
        default_factory=lambda: {slot: _uniform((*VALUES[slot], "dontcare")) for slot in SLOTS}
    )
    asked: dict[str, float] = field(default_factory=dict)

    def _prompt(self, recognised: ActList) -> Prompt:
        weighed = weigh_by_prompt(recognised, self.last)
        self._update(weighed)
        if _mass(weighed, "bye") > _SURE and self.place is not None:
            return Prompt("goodbye")
        if _mass(weighed, "repeat") > _SURE:
            return self.last
        best = {slot: _best(self.beliefs[slot]) for slot in SLOTS}
        wanted = {slot: value for slot, (value, belief) in best.items() if belief >= _SURE}
        suited = self.can_answer and self.place is not None and self.place.suits(wanted)
        fields = [name for name, belief in self.asked.items() if belief > 0.4] if suited else []
        if fields:
            self.asked.clear()
            return Prompt("give", place=self.place, given=tuple(fields))
        doubted = self.can_answer and _mass(weighed, "negate") > 0.5
        # the least likely value that is plausible but not sure is confirmed; after a no, the least likely
        for belief, value, slot in sorted((belief, value, slot) for slot, (value, belief) in best.items()):
            stands_out = belief > max(_PLAUSIBLE, 1.5 / len(self.beliefs[slot]))
            if stands_out and (doubted or belief < _SURE):
                return Prompt("confirm", slot=slot, value=value)
        another = _mass(weighed, "reqalts") > 0.4
        if suited and not another:
            return Prompt("again")
        prompt = self._search(wanted, another=another)
        if prompt.kind != "request":
            self.asked.clear()
        return prompt

    def _update(self, weighed: ActList) -> None:
        """Adds what was recognised to the beliefs about wishes and about the fields asked for."""
        last, no = self.last, _mass(weighed, "negate")
        for slot in SLOTS:
            evidence: dict[str, float] = {}
            for acts, confidence in weighed:
                if (value := _informed(acts, last.slot).get(slot)) is not None:
                    evidence[value] = evidence.get(value, 0.0) + confidence
            drift = _SECOND_THOUGHTS if last.kind == "cannot" and evidence else _CHANGE_OF_MIND
            self.beliefs[slot] = update_belief(self.beliefs[slot], evidence, drift=drift)
        if last.kind == "confirm":
            yes = _mass(weighed, "affirm")
            self.beliefs[last.slot] = confirm_belief(self.beliefs[last.slot], last.value, yes=yes, no=no)
        elif self.can_answer:
            # a question about a place means that it suits
            yes = _mass(weighed, "request", "confirm")
            for slot, belief in self.beliefs.items():
                self.beliefs[slot] = confirm_belief(belief, _best(belief)[0], yes=0.5 * yes, no=0.3 * no)
        for acts, confidence in weighed:
            for name in _requested(acts):
                self.asked[name] = 1 - (1 - self.asked.get(name, 0.0)) * (1 - confidence)


def weigh_by_prompt(recognised: ActList, last: Prompt) -> ActList:
    """The acts recognised, weighed by how often callers say such things after what they were asked.

    >>> recognised = [(parse_acts("hello()"), 0.5), (parse_acts("affirm()"), 0.45)]
    >>> [round(share, 2) for _, share in weigh_by_prompt(recognised, Prompt("confirm", slot="food", value="thai"))]
    [0.09, 0.77]
    """
    weights = [
        confidence * min((_USUAL[last.kind].get(act.name, _RARE) for act in acts), default=_RARE)
        for acts, confidence in recognised
    ]
    mass, total = sum(confidence for _, confidence in recognised), sum(weights)
    return [(acts, _TRUST * mass * weight / total) for (acts, _), weight in zip(recognised, weights, strict=True)]


def update_belief(belief: dict[str, float], evidence: dict[str, float], *, drift: float = 0.0) -> dict[str, float]:
    """The belief over values after recognising each with some confidence; the rest of the mass says nothing.

    A confidence is a posterior under an even prior, so over the prior it is a likelihood. `drift` is the share of
    belief spread evenly beforehand: people change their minds.

    >>> update_belief({"cheap": 0.5, "expensive": 0.5}, {"cheap": 0.6, "expensive": 0.4})
    {'cheap': 0.6, 'expensive': 0.4}
    """
    if not evidence:
        return belief
    count = len(belief)
    silence = max(0.0, 1.0 - sum(evidence.values()))
    spread = {value: (1 - drift) * share + drift / count for value, share in belief.items()}
    return _normalise({value: share * (silence + count * evidence.get(value, 0.0)) for value, share in spread.items()})


def confirm_belief(belief: dict[str, float], value: str, *, yes: float, no: float) -> dict[str, float]:
    """The belief after "did you say `value`?" was answered with yes and no with these confidences.

    >>> confirm_belief({"cheap": 0.5, "expensive": 0.5}, "cheap", yes=0.0, no=0.0)
    {'cheap': 0.5, 'expensive': 0.5}
    """
    silence = max(0.0, 1.0 - yes - no)
    right, wrong = silence + 2 * yes + 0.1 * no, silence + 0.1 * yes + 2 * no
    return _normalise({name: share * (right if name == value else wrong) for name, share in belief.items()})


def _informed(acts: Sequence[Act], asked: str) -> dict[str, str]:
    """The values given in these acts; "this" is what was asked last."""
    given = {}
    for act in acts:
        for slot in act.slots if act.name == "inform" else ():
            name = asked if slot.name == "this" else slot.name
            if name in SLOTS and slot.value is not None and not slot.negated:
                given[name] = slot.value
    return given


def _requested(acts: Sequence[Act]) -> list[str]:
    """The fields asked for; "is it cheap?" asks for the price as well."""
    return [slot.name or "" for act in acts if act.name in ("request", "confirm") for slot in act.slots]


def _mass(recognised: ActList, *names: str) -> float:
    return sum(confidence for acts, confidence in recognised if any(act.name in names for act in acts))


def _best(belief: dict[str, float]) -> tuple[str, float]:
    return max(belief.items(), key=lambda pair: pair[1])


def _uniform(values: Sequence[str]) -> dict[str, float]:
    return dict.fromkeys(values, 1 / len(values))


def _normalise(weights: dict[str, float]) -> dict[str, float]:
    total = sum(weights.values())
    return {value: weight / total for value, weight in weights.items()} if total else _uniform(tuple(weights))
