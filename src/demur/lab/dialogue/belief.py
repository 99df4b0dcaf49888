"""A belief over goals, user acts and histories, updated from whole N-best lists (as BUDS does).

The network has, in each turn, the user's act, and for each slot the user's goal and its history (not said yet, said,
confirmed). An act depends on the goals and histories of all slots, factor by factor; goals and histories depend on
those of the turn before (Thomson and Young 2010). Within one turn the network is a tree, so belief propagation is
exact. Over several turns acts join the slots in loops, and belief propagation is approximate: messages are passed
forwards and backwards among the last turns (the window) until they settle, and turns before them count by what they
left.

Values of a slot that nobody has mentioned are equally likely, so they are one group, and the work depends on the
length of lists and not on the number of values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from demur.lab.dialogue.channel import Hypotheses
from demur.lab.dialogue.domain import DONTCARE, Prompt, PromptKind, TaskDomain, UserActs
from demur.lab.dialogue.managers import fields_asked, values_given

INDIFFERENT = 0.15
"""How likely a user does not mind a slot, before anything is said."""
SLIP = 0.02
"""How likely a user says a given value that is not the goal, as a share of saying the goal."""
OBJECTS = 0.3
"""How likely a user goes on about a venue that does not suit in a slot, as a share of one that does."""
UNLISTED = 0.05
"""At least so much of a list's mass is kept for what it does not have: recognisers are too bold."""
CHANGE = {"cannot": 0.2}
CHANGES_ANYWAY = 0.01
"""How likely a goal changes before a turn, by the system's last prompt."""
AGAIN = (1.0, 0.7, 0.4)
"""How likely a user gives a value that is not said yet, was said, or was confirmed."""
RARE, OTHER = 0.1, 0.3
"""How likely acts are that are not usual after a prompt, and those that no hypothesis names."""
USUAL: dict[PromptKind, dict[str, float]] = {
    "welcome": {"inform": 1.0, "hello": 1.0},
    "request": {"inform": 1.0},
    "confirm": {"affirm": 1.0, "negate": 1.0, "inform": 0.6},
    "offer": {"request": 1.0, "reqalts": 0.7, "inform": 0.6, "negate": 0.5},
    "give": {"request": 1.0, "inform": 0.3, "bye": 0.7, "thankyou": 0.7},
    "cannot": {"inform": 1.0, "reqalts": 1.0},
    "again": {"request": 0.8, "reqalts": 0.5, "inform": 0.8, "negate": 0.5, "affirm": 0.5},
}
"""How usual an act is after each prompt."""

UNSAID, SAID, CONFIRMED = range(3)
"""Histories of a slot."""


@dataclass(frozen=True, slots=True)
class Potential:
    """How well an act goes with each goal of a slot: `base`, and what differs from it for some values."""

    base: float = 1.0
    values: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HistoryStep:
    """What an act does to the history of a slot: how likely it is after each, and which it leads to."""

    weights: tuple[float, float, float] = (1.0, 1.0, 1.0)
    leads_to: tuple[int, int, int] = (UNSAID, SAID, CONFIRMED)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one turn tells: an entry for each act that the user may have done, the last for all that are not listed."""

    weights: tuple[float, ...]
    goals: Mapping[str, tuple[Potential, ...]]
    """By slot, for the slots that some act has to do with."""
    histories: Mapping[str, tuple[HistoryStep, ...]]
    change: float
    """How likely each goal changes before the turn."""


_NOTHING, _NO_STEP = Potential(), HistoryStep()
_SAYS, _CONFIRMS = HistoryStep(AGAIN, (SAID, SAID, SAID)), HistoryStep(leads_to=(CONFIRMED,) * 3)
_DENIES = HistoryStep(leads_to=(UNSAID,) * 3)


def observe(domain: TaskDomain, hypotheses: Hypotheses, last: Prompt) -> Evidence:
    """What a list tells after the system's last prompt.

    A confidence is a posterior under a prior in which all values of a slot are alike, so potentials are divided by
    their mean under that prior: what was not listed says nothing on any slot.
    """
    left = max(UNLISTED, 1.0 - math.fsum(confidence for _, confidence in hypotheses))
    weights = [confidence * _usual(acts, last) for acts, confidence in hypotheses]
    goals: dict[str, list[Potential]] = {}
    histories: dict[str, list[HistoryStep]] = {}
    count = len(hypotheses) + 1
    for place, (acts, _) in enumerate(hypotheses):
        for slot, potential, step in _single_slots(domain, acts, last):
            goals.setdefault(slot, [_NOTHING] * count)[place] = potential
            if step is not _NO_STEP:
                histories.setdefault(slot, [_NO_STEP] * count)[place] = step
    return Evidence(
        (*weights, left * OTHER),
        {slot: tuple(own) for slot, own in goals.items()},
        {slot: tuple(own) for slot, own in histories.items()},
        CHANGE.get(last.kind, CHANGES_ANYWAY),
    )


def _usual(acts: UserActs, last: Prompt) -> float:
    usual = USUAL.get(last.kind, {})
    return min((usual.get(act.name, RARE) for act in acts), default=RARE)


def _single_slots(domain: TaskDomain, acts: UserActs, last: Prompt) -> list[tuple[str, Potential, HistoryStep]]:
    """What an act has to do with single slots."""
    given = values_given(acts, last)
    names = {act.name for act in acts}
    found = [(slot, _likelihood(domain, slot, value), _SAYS) for slot, value in given.items() if slot in domain.values]
    if last.kind == "confirm" and last.slot not in given:
        even = 2 / (1 + SLIP)
        if "affirm" in names:
            found.append((last.slot, Potential(SLIP * even, {last.value: even}), _CONFIRMS))
        elif "negate" in names:
            found.append((last.slot, Potential(even, {last.value: SLIP * even}), _DENIES))
    elif last.venue is not None and "request" in names and not given:
        row = domain.venues[last.venue]
        scale = 2 / (1 + OBJECTS)
        for slot in domain.slots:
            if row[slot]:
                fits = {row[slot]: scale, DONTCARE: scale}
                found.append((slot, Potential(OBJECTS * scale, fits), _NO_STEP))
    return found


def _likelihood(domain: TaskDomain, slot: str, value: str) -> Potential:
    prior = INDIFFERENT if value == DONTCARE else (1 - INDIFFERENT) / len(domain.values[slot])
    mean = prior + SLIP * (1 - prior)
    return Potential(SLIP / mean, {value: 1 / mean})


@dataclass(slots=True)
class _Goal:
    """The goal of one slot over the turns of the window: masses of the values mentioned, and of all others together."""

    size: int
    """Values without `dontcare`."""
    keys: dict[str, int] = field(default_factory=lambda: {DONTCARE: 0})
    start: list[float] = field(default_factory=lambda: [INDIFFERENT, 1 - INDIFFERENT])
    """The belief before the first turn of the window; the last entry is the mass of all that is not mentioned."""
    prior: list[float] = field(default_factory=lambda: [INDIFFERENT, 1 - INDIFFERENT])
    messages: list[Potential] = field(default_factory=list)
    """From the act of each turn of the window."""
    changes: list[float] = field(default_factory=list)

    def mention(self, values: Sequence[str]) -> None:
        """Take values out of the group of those that are not mentioned."""
        for value in values:
            if value not in self.keys:
                others = self.size - len(self.keys) + 1
                for masses in (self.start, self.prior):
                    share = masses[-1] / others
                    masses[-1:] = [share, masses[-1] - share]
                self.keys[value] = len(self.keys)

    def factors(self, potential: Potential) -> list[float]:
        """A potential as a number for each mentioned value, and for those that are not."""
        found = [potential.base] * (len(self.keys) + 1)
        for value, factor in potential.values.items():
            found[self.keys[value]] = factor
        return found

    def forward(self, turn: int) -> list[float]:
        """The belief before the act of a turn, from the turns before it."""
        masses = self.start
        for place in range(turn + 1):
            if place:
                masses = _product(masses, self.factors(self.messages[place - 1]))
            change = self.changes[place]
            masses = [(1 - change) * mass + change * prior for mass, prior in zip(masses, self.prior, strict=True)]
        return masses

    def cavity(self, turn: int) -> list[float]:
        """The belief at a turn without what its own act says: from the turns before and after it."""
        later = [1.0] * (len(self.keys) + 1)
        for place in range(len(self.messages) - 1, turn, -1):
            later = [one * two for one, two in zip(later, self.factors(self.messages[place]), strict=True)]
            change = self.changes[place]
            mean = math.fsum(map(_times, later, self.prior))
            later = [(1 - change) * one + change * mean for one in later]
        return _product(self.forward(turn), later)

    def slide(self) -> None:
        """Let the first turn of the window go, keeping what it left."""
        self.start = _product(self.forward(0), self.factors(self.messages[0]))
        del self.messages[0], self.changes[0]


@dataclass(slots=True)
class _History:
    """The history of one slot over the turns of the window."""

    start: list[float] = field(default_factory=lambda: [1.0, 0.0, 0.0])
    steps: list[list[list[float]]] = field(default_factory=list)
    """For each turn, the weight of going from each history to each, from the act of the turn."""

    def forward(self, turn: int) -> list[float]:
        """The belief before the act of a turn."""
        masses = self.start
        for matrix in self.steps[:turn]:
            masses = _normalised([math.fsum(masses[a] * matrix[a][b] for a in range(3)) for b in range(3)])
        return masses

    def backward(self, turn: int) -> list[float]:
        """What later turns say of the history after a turn."""
        later = [1.0, 1.0, 1.0]
        for matrix in reversed(self.steps[turn + 1 :]):
            later = _normalised([math.fsum(matrix[a][b] * later[b] for b in range(3)) for a in range(3)])
        return later

    def slide(self) -> None:
        """Let the first turn of the window go."""
        self.start = self.forward(1)
        del self.steps[0]


_IDENTITY = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]


@dataclass(slots=True)
class BeliefNetwork:
    """Goals and histories of all slots and the acts of the last turns; `sizes` are the numbers of values of slots.

    >>> network = BeliefNetwork({"area": 4}, window=1)
    >>> heard = (Potential(0.1, {"north": 1.0}), Potential())
    >>> network.add(Evidence((0.8, 0.2), {"area": heard}, {}, 0.0))
    >>> {value: round(belief, 3) for value, belief in network.goal("area").items()}
    {'dontcare': 0.097, 'north': 0.491}
    """

    sizes: Mapping[str, int]
    window: int = 2
    sweeps: int = 4
    """Rounds of messages at most, where the window has several turns."""
    goals: dict[str, _Goal] = field(init=False)
    histories: dict[str, _History] = field(init=False)
    evidence: list[Evidence] = field(default_factory=list)
    acts: list[list[float]] = field(default_factory=list)
    """How likely each act of the turns in the window is."""

    def __post_init__(self) -> None:
        """Before anything is said."""
        self.goals = {slot: _Goal(size) for slot, size in self.sizes.items()}
        self.histories = {slot: _History() for slot in self.sizes}

    def add(self, evidence: Evidence) -> None:
        """Take in a turn and pass messages until they settle."""
        if len(self.evidence) == self.window:
            del self.evidence[0], self.acts[0]
            for slot, goal in self.goals.items():
                goal.slide()
                self.histories[slot].slide()
        self.evidence.append(evidence)
        self.acts.append([])
        for slot, goal in self.goals.items():
            goal.mention([value for one in evidence.goals.get(slot, ()) for value in one.values])
            goal.messages.append(_NOTHING)
            goal.changes.append(evidence.change)
            self.histories[slot].steps.append(_IDENTITY)
        turns = range(len(self.evidence))
        # a single turn is a tree: one pass is exact
        for _ in range(self.sweeps if len(turns) > 1 else 1):
            before = [list(one) for one in self.acts]
            for turn in reversed(turns):
                self._pass(turn)
            if all(map(_close, before, self.acts)):
                break

    def goal(self, slot: str) -> dict[str, float]:
        """How likely each value is that was mentioned, and `dontcare`."""
        goal = self.goals[slot]
        turn = len(goal.messages) - 1
        masses = _product(goal.forward(turn), goal.factors(goal.messages[turn])) if turn >= 0 else goal.start
        return dict(zip(goal.keys, masses, strict=False))

    def history(self, slot: str) -> list[float]:
        """How likely the slot is not said yet, said, and confirmed."""
        return self.histories[slot].forward(len(self.evidence))

    def _pass(self, turn: int) -> None:
        """Messages from all goals and histories to the act of a turn, and back."""
        evidence = self.evidence[turn]
        count = len(evidence.weights)
        incoming: list[list[float]] = []
        for slot, potentials in evidence.goals.items():
            goal = self.goals[slot]
            masses, keys = goal.cavity(turn), goal.keys
            incoming.append(
                [
                    one.base
                    + math.fsum((factor - one.base) * masses[keys[value]] for value, factor in one.values.items())
                    for one in potentials
                ]
            )
        for slot, steps in evidence.histories.items():
            masses, later = self.histories[slot].forward(turn), self.histories[slot].backward(turn)
            incoming.append(
                [math.fsum(masses[h] * step.weights[h] * later[step.leads_to[h]] for h in range(3)) for step in steps]
            )
        joint = [weight * math.prod(one[place] for one in incoming) for place, weight in enumerate(evidence.weights)]
        self.acts[turn] = _normalised(joint)
        outgoing = [[joint[place] / one[place] for place in range(count)] for one in incoming]
        self._send(turn, evidence, outgoing)

    def _send(self, turn: int, evidence: Evidence, outgoing: list[list[float]]) -> None:
        messages = iter(outgoing)
        for slot, potentials in evidence.goals.items():
            weights = _normalised(next(messages))
            values = {value for one in potentials for value in one.values}
            self.goals[slot].messages[turn] = Potential(
                math.fsum(weight * one.base for weight, one in zip(weights, potentials, strict=True)),
                {
                    value: math.fsum(
                        weight * one.values.get(value, one.base)
                        for weight, one in zip(weights, potentials, strict=True)
                    )
                    for value in sorted(values)
                },
            )
        for slot, steps in evidence.histories.items():
            weights, matrix = _normalised(next(messages)), [[0.0] * 3 for _ in range(3)]
            for weight, step in zip(weights, steps, strict=True):
                for before in range(3):
                    matrix[before][step.leads_to[before]] += weight * step.weights[before]
            self.histories[slot].steps[turn] = matrix


def _times(one: float, two: float) -> float:
    return one * two


def _product(one: Sequence[float], two: Sequence[float]) -> list[float]:
    return _normalised(list(map(_times, one, two)))


def _normalised(masses: list[float]) -> list[float]:
    total = math.fsum(masses)
    return [mass / total for mass in masses] if total > 0 else [1 / len(masses)] * len(masses)


def _close(one: Sequence[float], two: Sequence[float]) -> bool:
    return len(one) == len(two) and all(abs(a - b) < 1e-4 for a, b in zip(one, two, strict=True))


@dataclass(slots=True)
class BeliefState:
    """The state of a belief tracker: marginals of its network."""

    domain: TaskDomain
    network: BeliefNetwork
    best: dict[str, tuple[str, float]] = field(default_factory=dict)
    asked: dict[str, float] = field(default_factory=dict)
    mass: dict[str, float] = field(default_factory=dict)

    @classmethod
    def new(cls, domain: TaskDomain) -> BeliefState:
        """The state before the dialogue begins."""
        return cls(domain, BeliefNetwork({slot: len(values) for slot, values in domain.values.items()}))

    def update(self, hypotheses: Hypotheses, last: Prompt) -> None:
        """Take in a whole list."""
        if last.kind == "give":
            for name in last.fields:
                self.asked.pop(name, None)
        if not hypotheses:
            self.mass = {"": 1.0}
            return
        self.network.add(observe(self.domain, hypotheses, last))
        beliefs = self.network.acts[-1]
        self.mass = {}
        for (acts, _), belief in zip(hypotheses, beliefs, strict=False):
            for name in dict.fromkeys(act.name for act in acts) or ("",):
                self.mass[name] = self.mass.get(name, 0.0) + belief
            for name in fields_asked(acts):
                self.asked[name] = 1 - (1 - self.asked.get(name, 0.0)) * (1 - belief)
        for slot, goal in self.network.goals.items():
            if len(goal.keys) > 1 or slot in self.network.evidence[-1].goals:
                value, belief = max(self.network.goal(slot).items(), key=lambda pair: pair[1])
                self.best[slot] = (value, belief)
