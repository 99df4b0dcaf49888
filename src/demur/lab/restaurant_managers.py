"""Two ways to run a restaurant guide: believe the best hypothesis, or add up the evidence of all of them.

Both know the same places and ask, offer and answer alike. They differ in what they take from an N-best list: the first
writes down the top act as heard; the other keeps a belief over the values of each slot and confirms when unsure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

from demur.core.acts import Act, parse_acts
from demur.lab.restaurant_sentences import SLOTS, VALUES, Place, Prompt, found

Hypotheses = Sequence[tuple[str, float]]
"""Acts with their confidences, best first."""

Heard = list[tuple[tuple[Act, ...], float]]
"""The same, read."""

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


class Manager(Protocol):
    """Something that answers what it heard."""

    def answer(self, hypotheses: Hypotheses) -> Prompt:
        """What the guide says after hearing this."""


@lru_cache(maxsize=65536)
def _acts(text: str) -> tuple[Act, ...]:
    return parse_acts(text)


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


@dataclass(slots=True)
class _Desk:
    """What both managers share: the last prompt and the place on offer."""

    last: Prompt = field(default_factory=lambda: Prompt("welcome"))
    place: Place | None = None
    turned_down: set[int] = field(default_factory=set)

    def searched(self, wanted: dict[str, str], *, another: bool) -> Prompt:
        """An offer of the first place that suits, or a word that there is none."""
        if another and self.place is not None:
            self.turned_down.add(self.place.number)
        suitable = found(wanted)
        if not suitable:
            return Prompt("cannot", wanted=dict(wanted))
        fresh = [place for place in suitable if place.number not in self.turned_down]
        if not fresh:
            self.turned_down.clear()
        self.place = (fresh or suitable)[0]
        return Prompt("offer", place=self.place)

    def read_out(self, fields: Sequence[str]) -> Prompt:
        return Prompt("give", place=self.place, given=tuple(fields))

    @property
    def answering(self) -> bool:
        """Whether a question about a place can be answered: one is on offer."""
        return self.place is not None and self.last.kind in ("offer", "give", "again")


@dataclass(slots=True)
class FirstBest:
    """Takes the top act as heard, whatever its confidence."""

    desk: _Desk = field(default_factory=_Desk)
    wanted: dict[str, str] = field(default_factory=dict)

    def answer(self, hypotheses: Hypotheses) -> Prompt:
        """What the guide says after hearing this."""
        acts = _acts(hypotheses[0][0]) if hypotheses else ()
        self.desk.last = self._prompt(acts)
        return self.desk.last

    def _prompt(self, acts: tuple[Act, ...]) -> Prompt:
        names = {act.name for act in acts}
        given = _informed(acts, self.desk.last.slot)
        self.wanted.update(given)
        if names == {"repeat"}:
            return self.desk.last
        if "bye" in names and self.desk.place is not None:
            return Prompt("goodbye")
        if not given and self.desk.answering and (fields := _requested(acts)):
            return self.desk.read_out(fields)
        if not given and "negate" in names and self.desk.answering:
            self.wanted.clear()
            return self._next(another=False)
        if not given and "reqalts" not in names and self.desk.last.kind != "welcome":
            return Prompt("again") if self.desk.last.kind != "request" else self.desk.last
        return self._next(another="reqalts" in names and not given)

    def _next(self, *, another: bool) -> Prompt:
        missing = [slot for slot in SLOTS if slot not in self.wanted]
        if missing and len(found(self.wanted)) > _FEW:
            return Prompt("request", slot=missing[0])
        return self.desk.searched(self.wanted, another=another)


@dataclass(slots=True)
class Belief:
    """Multiplies up the evidence for each value of each slot over all hypotheses and turns; confirms when unsure."""

    desk: _Desk = field(default_factory=_Desk)
    beliefs: dict[str, dict[str, float]] = field(
        default_factory=lambda: {slot: _evenly((*VALUES[slot], "dontcare")) for slot in SLOTS}
    )
    asked: dict[str, float] = field(default_factory=dict)

    def answer(self, hypotheses: Hypotheses) -> Prompt:
        """What the guide says after hearing this."""
        heard = expected([(_acts(text), confidence) for text, confidence in hypotheses], self.desk.last)
        self._weigh(heard)
        self.desk.last = self._prompt(heard)
        return self.desk.last

    def _weigh(self, heard: Heard) -> None:
        last = self.desk.last
        for slot in SLOTS:
            evidence: dict[str, float] = {}
            for acts, confidence in heard:
                if (value := _informed(acts, last.slot).get(slot)) is not None:
                    evidence[value] = evidence.get(value, 0.0) + confidence
            drift = _SECOND_THOUGHTS if last.kind == "cannot" and evidence else _CHANGE_OF_MIND
            self.beliefs[slot] = updated(self.beliefs[slot], evidence, drift=drift)
        self._agree(heard)
        for acts, confidence in heard:
            for name in _requested(acts):
                self.asked[name] = 1 - (1 - self.asked.get(name, 0.0)) * (1 - confidence)

    def _agree(self, heard: Heard) -> None:
        """A yes or no is about what was to be confirmed; a question about a place means that it suits."""
        last, no = self.desk.last, _mass(heard, "negate")
        if last.kind == "confirm":
            yes = _mass(heard, "affirm")
            self.beliefs[last.slot] = confirmed(self.beliefs[last.slot], last.value, yes=yes, no=no)
        elif self.desk.place is not None and self.desk.answering:
            yes = _mass(heard, "request", "confirm")
            for slot in SLOTS:
                value = _best(self.beliefs[slot])[0]
                self.beliefs[slot] = confirmed(self.beliefs[slot], value, yes=0.5 * yes, no=0.3 * no)

    def _prompt(self, heard: Heard) -> Prompt:
        if _mass(heard, "bye") > _SURE and self.desk.place is not None:
            return Prompt("goodbye")
        if _mass(heard, "repeat") > _SURE:
            return self.desk.last
        wanted = self._wanted()
        suited = self.desk.place is not None and self.desk.place.suits(wanted)
        if suited and self.desk.answering and (fields := self._fields()):
            return self.desk.read_out(fields)
        unsure = self._unsure(doubted=self.desk.answering and _mass(heard, "negate") > 0.5)
        if unsure is not None:
            return unsure
        another = _mass(heard, "reqalts") > 0.4
        if suited and not another and self.desk.answering:
            return Prompt("again")
        missing = [slot for slot in SLOTS if slot not in wanted]
        if missing and len(found(wanted)) > _FEW:
            return Prompt("request", slot=missing[0])
        self.asked.clear()
        return self.desk.searched(wanted, another=another)

    def _unsure(self, *, doubted: bool) -> Prompt | None:
        """A confirmation of the least likely value that is plausible but not sure; after a no, of the least likely."""
        tops = sorted((_best(self.beliefs[slot])[::-1], slot) for slot in SLOTS)
        for (belief, value), slot in tops:
            if _plausible(belief, len(self.beliefs[slot])) and (doubted or belief < _SURE):
                return Prompt("confirm", slot=slot, value=value)
        return None

    def _wanted(self) -> dict[str, str]:
        tops = {slot: _best(self.beliefs[slot]) for slot in SLOTS}
        return {slot: value for slot, (value, belief) in tops.items() if belief >= _SURE}

    def _fields(self) -> list[str]:
        """The fields asked for, by now likely enough; asking starts afresh once they are read out."""
        fields = [name for name, belief in self.asked.items() if belief > 0.4]
        if fields:
            self.asked.clear()
        return fields


def expected(heard: Heard, last: Prompt) -> Heard:
    """What was heard, weighed by how often callers say such things after what they were asked.

    >>> heard = [(parse_acts("hello()"), 0.5), (parse_acts("affirm()"), 0.45)]
    >>> [round(share, 2) for _, share in expected(heard, Prompt("confirm", slot="food", value="thai"))]
    [0.09, 0.77]
    """
    weights = [
        confidence * min((_USUAL[last.kind].get(act.name, _RARE) for act in acts), default=_RARE)
        for acts, confidence in heard
    ]
    mass, total = sum(confidence for _, confidence in heard), sum(weights)
    return [(acts, _TRUST * mass * weight / total) for (acts, _), weight in zip(heard, weights, strict=True)]


def updated(belief: dict[str, float], evidence: dict[str, float], *, drift: float = 0.0) -> dict[str, float]:
    """The belief over values after hearing each with some confidence; the rest of the mass says nothing.

    A confidence is a posterior under an even prior, so over the prior it is a likelihood. `drift` is the share of
    belief spread evenly beforehand: people change their minds.

    >>> updated({"cheap": 0.5, "expensive": 0.5}, {"cheap": 0.6, "expensive": 0.4})
    {'cheap': 0.6, 'expensive': 0.4}
    """
    if not evidence:
        return belief
    count = len(belief)
    silence = max(0.0, 1.0 - sum(evidence.values()))
    spread = {value: (1 - drift) * share + drift / count for value, share in belief.items()}
    return _normalised({value: share * (silence + count * evidence.get(value, 0.0)) for value, share in spread.items()})


def confirmed(belief: dict[str, float], value: str, *, yes: float, no: float) -> dict[str, float]:
    """The belief after "did you say `value`?" was answered with yes and no with these confidences.

    >>> confirmed({"cheap": 0.5, "expensive": 0.5}, "cheap", yes=0.0, no=0.0)
    {'cheap': 0.5, 'expensive': 0.5}
    """
    silence = max(0.0, 1.0 - yes - no)
    right, wrong = silence + 2 * yes + 0.1 * no, silence + 0.1 * yes + 2 * no
    return _normalised({name: share * (right if name == value else wrong) for name, share in belief.items()})


def _plausible(belief: float, values: int) -> bool:
    """Whether a belief stands out, also from what so few values have by chance."""
    return belief > max(_PLAUSIBLE, 1.5 / values)


def _mass(heard: Heard, *names: str) -> float:
    return sum(confidence for acts, confidence in heard if any(act.name in names for act in acts))


def _best(belief: dict[str, float]) -> tuple[str, float]:
    return max(belief.items(), key=lambda pair: pair[1])


def _evenly(values: tuple[str, ...]) -> dict[str, float]:
    return dict.fromkeys(values, 1 / len(values))


def _normalised(weights: dict[str, float]) -> dict[str, float]:
    total = sum(weights.values())
    return {value: weight / total for value, weight in weights.items()} if total else _evenly(tuple(weights))
