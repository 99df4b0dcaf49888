"""A simulated user with a goal and an agenda of what is still to be said (Schatzmann et al. 2007)."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from demur.core.acts import Act, Slot
from demur.lab.dialogue.domain import DONTCARE, Prompt, TaskDomain, UserActs, wish

_AFFIRM, _NEGATE, _HELLO, _THANKS, _BYE = (Act(name) for name in ("affirm", "negate", "hello", "thankyou", "bye"))
_ALTERNATIVE, _REPEAT = Act("reqalts"), Act("repeat")
_GREETS, _POLITE, _DEAF = 0.1, 0.8, 0.01
"""How likely a user says hello, says thank you before goodbye, and asks the system to repeat."""
_ONLY_NO, _NO_AND_VALUE = 0.2, 0.5
"""Of corrections, the share that are a mere no, and that begin with one."""


@dataclass(slots=True)
class User:
    """Somebody who looks for a venue with the values in `wanted` and wants to be told the fields in `asks`.

    The agenda is a stack, its last act said first. What the system says pushes answers and corrections onto it;
    what it makes pointless is taken off.
    """

    domain: TaskDomain
    rng: random.Random
    wanted: dict[str, str]
    asks: tuple[str, ...]
    second_choice: tuple[str, str] | None
    change: tuple[int, str, str] | None
    """The turn from which on a slot is wanted with another value."""
    patience: int
    wants_alternative: bool
    agenda: list[Act] = field(default_factory=list)
    told: dict[int, set[str]] = field(default_factory=dict)
    """The fields that the system read out, by venue."""
    turn: int = 0
    last: UserActs = ()

    def __post_init__(self) -> None:
        self.agenda = [wish({slot: value}) for slot, value in self.wanted.items()]
        tail = self.agenda[1:]
        self.rng.shuffle(tail)
        self.agenda = [*tail, self.agenda[0]]

    @property
    def satisfied(self) -> bool:
        """Whether the user knows all fields asked about a venue that suits."""
        asks = set(self.asks)
        return any(asks <= known and self.domain.suits(venue, self.wanted) for venue, known in self.told.items())

    def reply(self, prompt: Prompt) -> UserActs:
        """What the user says next; a goodbye ends the call."""
        if prompt.kind == "give" and prompt.venue is not None:
            self.told.setdefault(prompt.venue, set()).update(prompt.fields)
        self.turn += 1
        acts = self._acts(prompt)
        if acts != (_REPEAT,):
            self.last = acts
        return acts

    def _acts(self, prompt: Prompt) -> UserActs:
        done = self.satisfied and (self.change is None or self.turn > self.change[0])
        if done or self.turn >= self.patience:
            return (_THANKS, _BYE) if done and self.rng.random() < _POLITE else (_BYE,)
        if self.rng.random() < _DEAF and prompt.kind != "welcome":
            return (_REPEAT,)
        if self.change is not None and self.turn >= self.change[0] and prompt.kind not in ("confirm", "welcome"):
            return (self._change_of_mind(),)
        return self._answer(prompt)

    def _answer(self, prompt: Prompt) -> UserActs:
        match prompt.kind:
            case "request":
                value = self.wanted.get(prompt.slot, DONTCARE)
                return self._with_more(wish({prompt.slot: value}))
            case "confirm":
                right = self.wanted.get(prompt.slot, DONTCARE) == prompt.value
                return (_AFFIRM,) if right else self._correct(prompt.slot)
            case "offer" | "give" if prompt.venue is not None:
                return self._about(prompt.venue)
            case "cannot":
                return self._after_refusal(dict(prompt.wanted))
            case "again" if self.last:
                return self.last
        acts = self._with_more(self.agenda.pop() if self.agenda else wish(self.wanted))
        return (_HELLO, *acts) if not self.last and self.rng.random() < _GREETS else acts

    def _with_more(self, act: Act) -> UserActs:
        """The act, and now and then the next wish of the agenda in the same breath; both are then said."""
        said = {slot.name for slot in act.slots}
        self.agenda = [one for one in self.agenda if one.slots[0].name not in said]
        slots = list(act.slots)
        while self.agenda and self.rng.random() < self.domain.spec.user.more:
            slots += self.agenda.pop().slots
        return (Act(act.name, tuple(slots)),)

    def _correct(self, slot: str) -> UserActs:
        """A no, the right value, or both."""
        right = wish({slot: self.wanted.get(slot, DONTCARE)})
        mood = self.rng.random()
        if mood < _ONLY_NO:
            return (_NEGATE,)
        return (_NEGATE, right) if mood < _NO_AND_VALUE else (right,)

    def _about(self, venue: int) -> UserActs:
        """A correction of a venue that does not suit, otherwise a question, or whether there is another."""
        row = self.domain.venues[venue]
        wrong = [slot for slot, value in self.wanted.items() if row[slot] != value]
        if wrong:
            return self._correct(self.rng.choice(wrong))
        self.agenda.clear()
        if self.wants_alternative:
            self.wants_alternative = False
            return (_ALTERNATIVE,)
        left = [name for name in self.asks if name not in self.told.get(venue, ())]
        if not left:
            # all is known, but a wish is about to change
            return (self._change_of_mind(),)
        count = 2 if self.rng.random() < self.domain.spec.user.more else 1
        return (Act("request", tuple(Slot(name, None) for name in left[:count])),)

    def _change_of_mind(self) -> Act:
        assert self.change is not None
        _, slot, value = self.change
        self.wanted[slot], self.change = value, None
        return wish({slot: value})

    def _after_refusal(self, searched: Mapping[str, str]) -> UserActs:
        """No venue was found: the user corrects what was misunderstood, or takes the second choice."""
        wrong = [slot for slot, value in searched.items() if self.wanted.get(slot, DONTCARE) != value]
        if not wrong and self.second_choice is not None:
            slot, value = self.second_choice
            self.wanted[slot], self.second_choice = value, None
            return (_ALTERNATIVE, wish({slot: value}))
        slot = self.rng.choice(wrong or list(self.wanted))
        return (wish({slot: self.wanted.get(slot, DONTCARE)}),)


def new_user(domain: TaskDomain, rng: random.Random) -> User:
    """Somebody with a goal that some venue meets, perhaps only after a second choice or a change of mind.

    The goal names one to three fields to ask about, none of them a constraint of it.

    >>> user = new_user(TaskDomain.read("town"), random.Random(7))
    >>> len(user.domain.matches(user.wanted)) > 0 or user.second_choice is not None
    True
    """
    spec = domain.spec.user
    row = domain.venues[rng.randrange(len(domain.venues))]
    applicable = [slot for slot in domain.slots if row[slot]]
    minded = [slot for slot in applicable if slot == domain.slots[0] or rng.random() < spec.mentions]
    wanted = {slot: row[slot] for slot in minded}
    free = [name for name in domain.fields if name not in minded and row[name]]
    asks = tuple(sorted(rng.sample(free, min(len(free), rng.choice((1, 2, 2, 3)))), key=free.index))
    second, change = None, None
    if rng.random() < spec.second_choice:
        second = _second_choice(domain, wanted, rng)
    elif rng.random() < spec.goal_change:
        change = _later_wish(domain, wanted, rng)
    patience = rng.randint(*spec.patience)
    return User(domain, rng, wanted, asks, second, change, patience, rng.random() < spec.alternatives)


def _second_choice(domain: TaskDomain, wanted: dict[str, str], rng: random.Random) -> tuple[str, str] | None:
    """Turns one wish into a value that no venue has, and gives the wish that it replaces."""
    impossible = [
        (slot, value)
        for slot in list(wanted)[1:]
        for value in domain.values[slot]
        if not domain.matches({**wanted, slot: value})
    ]
    if not impossible:
        return None
    slot, value = rng.choice(impossible)
    first, wanted[slot] = wanted[slot], value
    return slot, first


def _later_wish(domain: TaskDomain, wanted: Mapping[str, str], rng: random.Random) -> tuple[int, str, str] | None:
    """A turn, a slot and another value for it that some venue has."""
    possible = [
        (slot, value)
        for slot in list(wanted)[1:]
        for value in domain.values[slot]
        if value != wanted[slot] and domain.matches({**wanted, slot: value})
    ]
    return (rng.randint(2, 5), *rng.choice(possible)) if possible else None
