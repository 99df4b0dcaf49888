"""Callers of a restaurant guide: each wants a place, wants to know things about it, and has only so much patience."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from demur.data.acts import Act, Slot
from demur.systems.restaurant_guide import SLOTS, Place, Prompt, found, places
from demur.systems.restaurant_sentences import FIELDS, VALUES, inform, plain, request

_T = TypeVar("_T")
LONGEST = 20
"""The most turns a caller takes."""


@dataclass(slots=True)
class Caller:
    """Somebody with a goal: a place that suits `wanted`, and the fields in `asks` read out about it."""

    wanted: dict[str, str]
    asks: tuple[str, ...]
    second_choice: tuple[str, str] | None
    patience: int
    rng: np.random.Generator
    told: set[str] = field(default_factory=set)
    known: set[str] = field(default_factory=set)
    last: tuple[Act, ...] = ()

    @property
    def satisfied(self) -> bool:
        """Whether everything asked about a place that suits has been told."""
        return self.known >= set(self.asks)

    def reply(self, prompt: Prompt, turn: int) -> tuple[Act, ...]:
        """What the caller says next; a goodbye ends the call."""
        self._learn(prompt)
        if self.satisfied or turn + 1 >= self.patience:
            acts = self._farewell()
        elif self.rng.random() < 0.01:
            return (plain("repeat"),)
        else:
            acts = self._answer(prompt)
        self.last = acts
        self.told |= {slot.name or "" for act in acts if act.name == "inform" for slot in act.slots}
        return acts

    def _learn(self, prompt: Prompt) -> None:
        if prompt.kind == "give" and prompt.place is not None and prompt.place.suits(self.wanted):
            self.known |= set(prompt.given)

    def _farewell(self) -> tuple[Act, ...]:
        polite = self.satisfied and self.rng.random() < 0.8
        return (plain("thankyou"), plain("bye")) if polite else (plain("bye"),)

    def _answer(self, prompt: Prompt) -> tuple[Act, ...]:
        match prompt.kind:
            case "request":
                return (self._about(prompt.slot),)
            case "confirm":
                return self._confirmed(prompt)
            case "offer" | "give" if prompt.place is not None:
                return self._considered(prompt.place)
            case "cannot":
                return self._refused(prompt)
            case "again" if self.last:
                return self.last
        return self._opening()

    def _opening(self) -> tuple[Act, ...]:
        count = 1 + int(self.rng.random() < 0.4) + int(self.rng.random() < 0.15)
        chosen = set(self._shuffled([slot for slot in SLOTS if slot in self.wanted])[:count])
        wish = inform(**{slot: self.wanted[slot] for slot in SLOTS if slot in chosen})
        return (plain("hello"), wish) if self.rng.random() < 0.1 else (wish,)

    def _about(self, slot: str) -> Act:
        """An answer to "which food, area, price?", now and then with something more."""
        if slot not in self.wanted:
            return inform(**{slot if self.rng.random() < 0.6 else "this": "dontcare"})
        untold = [other for other in self.wanted if other not in self.told and other != slot]
        more = untold[:1] if self.rng.random() < 0.2 else []
        return inform(**{name: self.wanted[name] for name in SLOTS if name in (slot, *more)})

    def _confirmed(self, prompt: Prompt) -> tuple[Act, ...]:
        right = self.wanted.get(prompt.slot, "dontcare") == prompt.value
        return (plain("affirm"),) if right else self._corrected([prompt.slot])

    def _considered(self, place: Place) -> tuple[Act, ...]:
        wrong = [slot for slot in SLOTS if not place.suits({slot: self.wanted.get(slot, "dontcare")})]
        return self._corrected(wrong) if wrong else self._curious(place)

    def _corrected(self, wrong: Sequence[str]) -> tuple[Act, ...]:
        """A no, the right value, or both."""
        slot = _one(wrong, self.rng)
        correction = inform(**{slot: self.wanted.get(slot, "dontcare")})
        mood = self.rng.random()
        if mood < 0.2:
            return (plain("negate"),)
        return (plain("negate"), correction) if mood < 0.45 else (correction,)

    def _curious(self, place: Place) -> tuple[Act, ...]:
        """A question about a place that suits, or whether there is another."""
        mood = self.rng.random()
        if not self.known and mood < 0.15:
            return (plain("reqalts"),)
        if not self.known and mood < 0.25:
            slot = _one(SLOTS, self.rng)
            return (Act("confirm", (Slot(slot, str(getattr(place, slot))),)),)
        left = [name for name in self.asks if name not in self.known]
        return request(*left[: 1 + int(self.rng.random() < 0.15)])

    def _refused(self, prompt: Prompt) -> tuple[Act, ...]:
        """Nothing was found: the caller corrects what was misunderstood, or takes the second choice."""
        searched = prompt.wanted or {}
        wrong = [slot for slot in SLOTS if searched.get(slot, "dontcare") != self.wanted.get(slot, "dontcare")]
        if (not wrong or not set(wrong) & set(searched)) and self.second_choice is not None:
            slot, value = self.second_choice
            self.wanted[slot] = value
            self.second_choice = None
            return (plain("reqalts"), inform(**{slot: value}))
        slot = next((slot for slot in wrong if slot in searched), next(iter(self.wanted)))
        return (inform(**{slot: self.wanted.get(slot, "dontcare")}),)

    def _shuffled(self, items: Sequence[str]) -> list[str]:
        return [items[place] for place in self.rng.permutation(len(items))]


def caller(rng: np.random.Generator) -> Caller:
    """Somebody with a goal that some place can meet, one in five of them only after a second choice."""
    place = _one(places(), rng)
    minded = [slot for slot in SLOTS if rng.random() < (0.95 if slot == "food" else 0.75)] or ["food"]
    wanted = {slot: str(getattr(place, slot)) for slot in minded}
    asks = tuple(FIELDS[pick] for pick in sorted(_fields(minded, rng)))
    second = _hopeless(wanted, rng) if rng.random() < 0.2 else None
    return Caller(wanted, asks, second, min(LONGEST, int(rng.integers(12, 28))), rng)


def _fields(minded: Sequence[str], rng: np.random.Generator) -> list[int]:
    """One to three fields to ask about, none of them a constraint of the goal."""
    open_ones = [number for number, name in enumerate(FIELDS) if name not in minded]
    count = min(len(open_ones), int(rng.choice([1, 2, 3], p=[0.15, 0.4, 0.45])))
    return [open_ones[pick] for pick in rng.permutation(len(open_ones))[:count]]


def _hopeless(wanted: dict[str, str], rng: np.random.Generator) -> tuple[str, str] | None:
    """Make the first wish one that no place meets; what it was before is the second choice."""
    slot = next(iter(wanted))
    others = [value for value in VALUES[slot] if not found({**wanted, slot: value})]
    if not others:
        return None
    second = (slot, wanted[slot])
    wanted[slot] = _one(others, rng)
    return second


def _one(choices: Sequence[_T], rng: np.random.Generator) -> _T:
    return choices[int(rng.integers(len(choices)))]
