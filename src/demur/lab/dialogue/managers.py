"""Dialogue managers behind one protocol: what they keep of N-best lists, and what their policies do with it.

A manager of the project is a state and a policy. The state says how sure it is of the value of each slot; a policy
decides on one of a few actions. Two states and two kinds of policies give the four systems of Thomson et al. (2008).
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, get_args

import msgspec

from demur.core.shell import command_words
from demur.errors import DataError, UsageError
from demur.lab.dialogue.channel import Hypotheses, acts_text
from demur.lab.dialogue.domain import THIS, WELCOME, Prompt, TaskDomain, UserActs

Action = Literal["request", "confirm", "offer", "give", "again", "repeat", "bye"]
ACTIONS: tuple[Action, ...] = get_args(Action)


class Manager(Protocol):
    """Answers what was recognised, turn by turn, in one dialogue."""

    def answer(self, hypotheses: Hypotheses) -> Prompt:
        """What the system says after recognising these acts with their confidences, best first."""


class State(Protocol):
    """What a manager believes of the user."""

    best: dict[str, tuple[str, float]]
    """The likeliest value of each slot that was mentioned, and how likely it is."""
    asked: dict[str, float]
    """How likely each field is asked for and not answered yet."""
    mass: dict[str, float]
    """How likely each kind of act is in what was said last; "" that nothing was understood."""

    def update(self, hypotheses: Hypotheses, last: Prompt) -> None:
        """Take in what was recognised after the system's last prompt."""


def values_given(acts: UserActs, last: Prompt) -> dict[str, str]:
    """The values in these acts by slot; one without a slot is that of the slot the system asked for.

    >>> from demur.core.acts import parse_acts
    >>> values_given(parse_acts("negate()&inform(this=dontcare)"), Prompt("request", slot="area"))
    {'area': 'dontcare'}
    """
    given = {}
    for act in acts:
        for slot in act.slots if act.name == "inform" else ():
            name = last.slot if slot.name == THIS else slot.name
            if name and slot.value is not None and not slot.negated:
                given[name] = slot.value
    return given


def fields_asked(acts: UserActs) -> list[str]:
    """The fields that these acts ask for."""
    return [slot.name or "" for act in acts if act.name == "request" for slot in act.slots]


_DOUBT = 0.4
"""How sure a state machine is of a value after the venue it led to was refused."""


@dataclass(slots=True)
class TopState:
    """The state of a state machine: the values of the best hypotheses, each as sure as its confidence."""

    domain: TaskDomain
    best: dict[str, tuple[str, float]] = field(default_factory=dict)
    asked: dict[str, float] = field(default_factory=dict)
    mass: dict[str, float] = field(default_factory=dict)

    def update(self, hypotheses: Hypotheses, last: Prompt) -> None:
        """Take the best hypothesis for what was said."""
        acts, confidence = hypotheses[0] if hypotheses else ((), 1.0)
        self.mass = {act.name: confidence for act in acts} or {"": 1.0}
        if last.kind == "give":
            for name in last.fields:
                self.asked.pop(name, None)
        given = values_given(acts, last)
        if "affirm" in self.mass and last.kind == "confirm":
            self.best[last.slot] = (last.value, 1.0)
        if "negate" in self.mass and not given:
            self._doubt(last)
        for slot, value in given.items():
            known, sure = self.best.get(slot, ("", 0.0))
            self.best[slot] = (value, 1 - (1 - confidence) * (1 - sure) if known == value else confidence)
        for name in fields_asked(acts):
            self.asked[name] = confidence

    def _doubt(self, last: Prompt) -> None:
        """What a no means: the value asked about is wrong, or one of those that led to the venue on offer."""
        if last.kind == "confirm":
            self.best.pop(last.slot, None)
        elif last.venue is not None:
            self.best = {slot: (value, min(sure, _DOUBT)) for slot, (value, sure) in self.best.items()}


@dataclass(slots=True)
class Summary:
    """What a policy sees of a dialogue."""

    state: State
    wanted: dict[str, str]
    """The values that are sure enough to search with."""
    unknown: list[str]
    """Slots to ask for, in the order of the domain."""
    unsure: list[tuple[float, str]]
    """Slots to confirm, the least sure first."""
    matches: int
    on_offer: bool
    """Whether a venue was offered that suits what is wanted."""
    fields: tuple[str, ...]
    """Fields that the user asks for."""
    last: Prompt

    def mass(self, name: str) -> float:
        """How likely a kind of act was said last."""
        return self.state.mass.get(name, 0.0)

    def possible(self) -> list[Action]:
        """The actions that make sense, in a fixed order."""
        found: list[Action] = ["again"] if self.last.kind != "welcome" or not self.wanted else []
        if self.on_offer and self.fields:
            found.append("give")
        if self.unsure:
            found.append("confirm")
        if self.unknown:
            found.append("request")
        if self.wanted:
            found.append("offer")
        return found

    def features(self) -> tuple[str, ...]:
        """What is true of the dialogue, for linear policies: single facts, and which hold together."""
        unknown, unsure = min(len(self.unknown), 3), min(len(self.unsure), 2)
        doubt = "none" if not self.unsure else f"{min(int(5 * self.unsure[0][0]), 4)}/5"
        matches = "0" if not self.matches else "1" if self.matches == 1 else "few" if self.matches < 5 else "many"
        said = max(self.state.mass.items(), key=lambda pair: pair[1], default=("", 1.0))[0]
        asked = bool(self.fields)
        return (
            "bias",
            f"unknown={unknown} unsure={unsure}",
            f"doubt={doubt}",
            f"matches={matches} unknown={unknown}",
            f"offer={self.on_offer} asked={asked} said={said}",
            f"said={said} last={self.last.kind}",
            f"matches={matches} offer={self.on_offer} last={self.last.kind}",
        )


class Policy(Protocol):
    """Decides what to do next."""

    @property
    def sure(self) -> float:
        """From which belief on a value is searched with."""

    @property
    def plausible(self) -> float:
        """From which belief on a value is confirmed."""

    def action(self, summary: Summary) -> Action:
        """What to do next."""

    def to_dict(self) -> dict[str, Any]:
        """The policy as plain values."""


def courtesy(summary: Summary) -> Action | None:
    """What needs no policy: goodbyes, and what the user asks to be repeated."""
    if summary.mass("bye") >= 0.7 and summary.last.kind == "give":
        return "bye"
    return "repeat" if summary.mass("repeat") >= 0.5 and summary.last.kind != "welcome" else None


FEW = 1
"""With so many venues left a system does not ask for the slots that are open."""


@dataclass(frozen=True, slots=True)
class HandcraftedPolicy:
    """Answers questions, confirms what is unsure, asks for what is unknown, and offers a venue."""

    sure: float = 0.6
    plausible: float = 0.25

    def action(self, summary: Summary) -> Action:
        """What to do next."""
        polite = courtesy(summary)
        if polite is not None:
            return polite
        possible = summary.possible()
        if "give" in possible and summary.mass("inform") < 0.5:
            return "give"
        if summary.mass("") >= 0.5 and "again" in possible:
            return "again"
        if "confirm" in possible:
            return "confirm"
        if "request" in possible and summary.matches > FEW:
            return "request"
        settled = summary.on_offer and summary.mass("reqalts") < 0.5
        return "again" if settled or "offer" not in possible else "offer"

    def to_dict(self) -> dict[str, Any]:
        """The policy as plain values."""
        return {"kind": "handcrafted", **asdict(self)}


@dataclass(frozen=True, slots=True)
class LinearPolicy:
    """Takes the action of the highest value, which is a sum of weights of features.

    `training` says how the weights were learned.
    """

    weights: Mapping[str, Mapping[str, float]]
    sure: float = 0.5
    plausible: float = 0.25
    training: Mapping[str, Any] = field(default_factory=dict)

    def action(self, summary: Summary) -> Action:
        """What to do next; of equal actions the first."""
        polite = courtesy(summary)
        if polite is not None:
            return polite
        features = summary.features()
        return max(summary.possible(), key=lambda action: self.value(action, features))

    def value(self, action: str, features: tuple[str, ...]) -> float:
        """The reward to expect from here on."""
        weights = self.weights.get(action, {})
        return sum(weights.get(name, 0.0) for name in features)

    def to_dict(self) -> dict[str, Any]:
        """The policy as plain values."""
        weights = {action: dict(sorted(own.items())) for action, own in self.weights.items()}
        kept = {"sure": self.sure, "plausible": self.plausible, "training": dict(self.training)}
        return {"kind": "linear", **kept, "weights": weights}


_POLICIES: dict[str, Any] = {"handcrafted": HandcraftedPolicy, "linear": LinearPolicy}


def policy_of(document: Any, where: str = "policy") -> Policy:
    """The policy of a JSON document."""
    kind = document.get("kind") if isinstance(document, dict) else None
    if kind not in _POLICIES:
        got = None if kind is None else str(kind)
        raise DataError(f"must have a kind: {' or '.join(_POLICIES)}", where=where, got=got)
    try:
        found: Policy = msgspec.convert(
            {name: one for name, one in document.items() if name != "kind"}, _POLICIES[kind]
        )
    except (msgspec.ValidationError, TypeError) as error:
        raise DataError(f"does not fit: {error}", where=where) from None
    return found


def read_policy(path: str | Path) -> Policy:
    """The policy of a JSON file."""
    try:
        return policy_of(json.loads(Path(path).read_text(encoding="utf-8")), str(path))
    except FileNotFoundError:
        raise DataError("does not exist", where=str(path), fix="name a policy that demur learn wrote") from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DataError(f"cannot be read as JSON: {error}", where=str(path)) from None


@dataclass(slots=True)
class SlotManager:
    """Fills slots and offers venues: a state, a policy, and what its actions say."""

    domain: TaskDomain
    state: State
    policy: Policy
    threshold: float = 0.0
    """Lists whose best confidence is below are taken for nothing understood."""
    last: Prompt = WELCOME
    venue: int | None = None
    refused: set[int] = field(default_factory=set)
    tried: set[tuple[UserActs, Prompt]] = field(default_factory=set)
    """What was understood, and what was asked upon it."""

    def answer(self, hypotheses: Hypotheses) -> Prompt:
        """What the system says after recognising these acts with their confidences, best first."""
        rejected = not hypotheses or hypotheses[0][1] < self.threshold
        self.state.update([] if rejected else hypotheses, self.last)
        summary = self.summary()
        heard = () if rejected else hypotheses[0][0]
        return self.perform(self._onwards(self.policy.action(summary), summary, heard), summary)

    def _onwards(self, action: Action, summary: Summary, heard: UserActs) -> Action:
        """The action, or another where the same question upon the same words did not help before."""
        if action not in ("again", "confirm") or not heard:
            return action
        step = (heard, self._prompt(action, summary))
        if step not in self.tried:
            self.tried.add(step)
            return action
        return "request" if summary.unknown else "offer" if summary.wanted else action

    def summary(self) -> Summary:
        """What the policy sees now."""
        best, sure, plausible = self.state.best, self.policy.sure, self.policy.plausible
        wanted = {slot: value for slot, (value, belief) in best.items() if belief >= sure}
        unknown, unsure = [], []
        for slot in self.domain.slots:
            belief = best[slot][1] if slot in best else 0.0
            if self.domain.spec.slots[slot].when and not self.domain.applies(slot, wanted):
                wanted.pop(slot, None)
            elif belief < plausible:
                unknown.append(slot)
            elif belief < sure:
                unsure.append((belief, slot))
        shown = self.venue is not None and self.last.kind in ("offer", "give", "again", "confirm")
        on_offer = shown and self.domain.suits(self.venue or 0, wanted)
        fields = tuple(name for name, belief in self.state.asked.items() if belief >= plausible)
        matches = len(self.domain.matches(wanted)) if wanted else len(self.domain.venues)
        return Summary(self.state, wanted, unknown, sorted(unsure), matches, on_offer, fields, self.last)

    def perform(self, action: Action, summary: Summary) -> Prompt:
        """The prompt of an action."""
        self.last = self._prompt(action, summary)
        return self.last

    def _prompt(self, action: Action, summary: Summary) -> Prompt:
        match action:
            case "give":
                return Prompt("give", venue=self.venue, fields=summary.fields)
            case "confirm":
                _, slot = summary.unsure[0]
                return Prompt("confirm", slot=slot, value=self.state.best[slot][0])
            case "request":
                return Prompt("request", slot=summary.unknown[0])
            case "offer":
                return self._offer(summary)
            case "again":
                return self.last if self.last.kind in ("request", "confirm") else Prompt("again")
            case "repeat":
                return self.last
        return Prompt("bye")

    def _offer(self, summary: Summary) -> Prompt:
        """The first venue that suits and was not refused, or that there is none."""
        if self.venue is not None and summary.mass("reqalts") >= 0.5:
            self.refused.add(self.venue)
        suitable = self.domain.matches(summary.wanted)
        if not suitable:
            return Prompt("cannot", wanted=tuple(summary.wanted.items()))
        fresh = [venue for venue in suitable if venue not in self.refused]
        if not fresh:
            self.refused.clear()
        self.venue = (fresh or suitable)[0]
        return Prompt("offer", venue=self.venue)


Answer: TypeAlias = Callable[[list[tuple[str, float]]], str]
"""A manager of the user's own: from acts as text with confidences to the system's act as text."""


@dataclass(slots=True)
class FunctionManager:
    """A manager of the user's own as a function, which is made again for each dialogue."""

    domain: TaskDomain
    reply: Answer

    def answer(self, hypotheses: Hypotheses) -> Prompt:
        """What the function answers."""
        text: Any = self.reply([(acts_text(acts), confidence) for acts, confidence in hypotheses])
        if not isinstance(text, str):
            fix = "answer with an act as text, such as request(area)"
            raise DataError("must be text", where="the manager's answer", got=repr(text), fix=fix)
        return self.domain.prompt_of(text)


@dataclass(slots=True)
class ManagerCommand:
    """A program that reads a line of JSON for each turn and answers with a line: the system's act.

    Each line has `dialogue` (a number that is new in each), `turn` (from 1) and `hypotheses`, a list of objects with
    `act` and `confidence`. The program runs until its input ends, dialogue after dialogue.
    """

    command: str
    _process: subprocess.Popen[str] | None = None
    _dialogues: int = 0

    def new(self, domain: TaskDomain) -> FunctionManager:
        """The manager of the next dialogue."""
        self._dialogues += 1
        number, turn = self._dialogues, 0

        def reply(hypotheses: list[tuple[str, float]]) -> str:
            nonlocal turn
            turn += 1
            listed = [{"act": act, "confidence": confidence} for act, confidence in hypotheses]
            return self._answer({"dialogue": number, "turn": turn, "hypotheses": listed})

        return FunctionManager(domain, reply)

    def _answer(self, line: dict[str, Any]) -> str:
        if self._process is None:
            try:
                words = command_words(self.command)
                pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
                self._process = subprocess.Popen(words, text=True, encoding="utf-8", bufsize=1, **pipes)
            except (OSError, ValueError, IndexError):
                known = ", ".join(NAMES)
                raise UsageError(
                    f'`manager` is one of {known}, or a command that can be run; got "{self.command}"'
                ) from None
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(line) + "\n")
            answer = process.stdout.readline()
        except OSError:  # the program has ended; Windows does not call it a broken pipe
            answer = ""
        if not answer.strip():
            code = process.poll()
            ended = "" if code is None else f"; it ended with exit code {code}"
            raise DataError(f"must answer each line with an act{ended}", where=f"manager {self.command}")
        return answer.strip()

    def close(self) -> None:
        """End the program by ending its input."""
        if self._process is not None:
            self._process.communicate(timeout=10)
            self._process = None


NAMES = ("state-machine", "mdp", "belief", "belief-learned", "perfect")
"""The managers that come with the package. "perfect" is the state machine behind a channel without errors."""
LEARNED = {"mdp": "state-machine", "belief-learned": "belief"}
"""Managers with a learned policy, and those whose state they share."""
_HANDCRAFTED = {"state-machine": HandcraftedPolicy(0.4, 0.2), "belief": HandcraftedPolicy(0.5, 0.25)}
"""Thresholds chosen by the reward on users 0 to 149 of seed 0 at three levels of noise, for both alike."""


def new_state(manager: str, domain: TaskDomain) -> State:
    """The state of a manager before the dialogue begins."""
    if LEARNED.get(manager, manager) == "belief":
        from demur.lab.dialogue.belief import BeliefState

        return BeliefState.new(domain)
    return TopState(domain)


def default_policy(manager: str, domain: TaskDomain) -> Policy:
    """The policy of a manager where nobody names one; learned ones come with the bundled domain."""
    if manager not in LEARNED:
        return _HANDCRAFTED.get(manager, _HANDCRAFTED["state-machine"])
    resource = files("demur.corpora") / domain.name / f"{manager}.json"
    if not resource.is_file():
        raise UsageError(
            f'there is no learned policy of "{manager}" for the domain "{domain.name}"; '
            f"demur learn makes one, and `policy` names its file"
        )
    return _bundled_policy(domain.name, manager)


@cache
def _bundled_policy(domain: str, manager: str) -> Policy:
    text = (files("demur.corpora") / domain / f"{manager}.json").read_text(encoding="utf-8")
    return policy_of(json.loads(text), f"policy of {manager}")


MakeManager: TypeAlias = Callable[[TaskDomain], Manager]


def manager_maker(
    manager: str | Callable[[TaskDomain], Answer],
    domain: TaskDomain,
    *,
    policy: Policy | None = None,
    threshold: float = 0.0,
) -> MakeManager:
    """What makes the manager of each dialogue: by name, by a command, or by a function that makes a function."""
    if callable(manager):
        return lambda given: FunctionManager(given, manager(given))
    if manager not in NAMES:
        return ManagerCommand(manager).new
    chosen = policy or default_policy(manager, domain)
    return lambda given: SlotManager(given, new_state(manager, given), chosen, threshold)


def close_managers(make: MakeManager) -> None:
    """End the program behind the managers, if there is one."""
    command = getattr(make, "__self__", None)
    if isinstance(command, ManagerCommand):
        command.close()
