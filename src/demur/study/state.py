"""What has happened in a study: events, and the state that they add up to."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from demur.errors import DataError
from demur.study.design import WozDesign

Stage = Literal[
    "consent", "before", "briefing", "waiting", "talking", "report", "after", "done", "declined", "withdrawn"
]
RESTORE = "restore the journal from a copy; demur study export --salvage exports what comes before the damage"
Place = tuple[str, float, str]
"""A dialogue of a participant's plan: performer, level, task."""

ENDED: tuple[Stage, ...] = ("done", "declined", "withdrawn")
"""Stages after which nothing more is asked of a participant."""

ERASED = "erased-"
"""How the name begins that stands for a wizard who was erased."""

ON_PURPOSE = ("finished", "turns", "minutes")
"""Ends of dialogues that count as trials: the participant was done, or had used up turns or time."""


class StudyEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened, as the journal keeps it."""

    at: float
    """Seconds since 1970."""
    kind: str
    person: str = ""
    dialogue: str = ""
    body: dict[str, Any] = {}


@dataclass(slots=True)
class Participant:
    """Somebody who takes part."""

    id: str
    token: str
    """Digest of the token; the token itself is kept nowhere."""
    stage: Stage = "consent"
    plan: list[Place] = field(default_factory=list)
    position: int = 0
    dialogue: str = ""
    connected: bool = False
    gone: float | None = None
    """When the connection was lost."""


@dataclass(slots=True)
class WizardPerson:
    """A wizard, whether or not they are there."""

    name: str
    connected: bool = False
    gone: float | None = None
    available: bool = False
    dialogue: str = ""
    dialogues: int = 0
    trained: list[dict[str, Any]] = field(default_factory=list)
    """Answers of training, in order: item, choice, seconds."""
    more_rounds: int = 0
    """Rounds of training that they asked for beyond those of the design."""


@dataclass(slots=True)
class Exchange:
    """An utterance and its answer."""

    number: int
    typed: str
    said: float
    heard: dict[str, Any] | None = None
    """What was passed on, exactly as wizards and systems get it."""
    digest: str = ""
    heard_at: float = 0.0
    understood: str | None = None
    """What a wizard understood, where a system does the rest."""
    text: str | None = None
    label: str | None = None
    answered: float = 0.0
    due: float = 0.0
    shown: float | None = None
    shadows: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Talk:
    """A dialogue."""

    id: str
    participant: str
    performer: str
    level: float
    task: str
    since: float
    """When the participant came to the waiting room."""
    connect: float = 0.0
    """Least seconds that they stay there."""
    wizard: str = ""
    state: Literal["waiting", "talking", "ended"] = "waiting"
    started: float = 0.0
    exchanges: list[Exchange] = field(default_factory=list)
    why: str = ""

    @property
    def open_exchange(self) -> Exchange | None:
        """The exchange whose answer has not been shown yet."""
        return self.exchanges[-1] if self.exchanges and self.exchanges[-1].shown is None else None


def digest_of(content: Any) -> str:
    """Digest of what was passed on: equal for equal content, whatever the order of keys."""
    return hashlib.blake2b(msgspec.json.encode(content, order="deterministic"), digest_size=16).hexdigest()


class StudyState:
    """All that is known of a study; `evolve` is the only way to change it, and `replay` makes it of events."""

    def __init__(self, design: WozDesign) -> None:
        self.design = design
        self.participants: dict[str, Participant] = {}
        self.wizards = {name: WizardPerson(name) for name in design.wizard.names}
        self.talks: dict[str, Talk] = {}
        self.live: dict[str, Talk] = {}
        """Dialogues that have not ended."""
        self.by_token: dict[str, str] = {}
        self.met: Counter[tuple[str, float]] = Counter()
        """Dialogues that were opened, by condition."""
        self.wizard_seconds: list[float] = []
        """Seconds that wizards took to answer, in order."""
        self.wizard_waits: list[float] = []
        """Seconds for which participants waited for a wizard, until one came or a system took the place."""
        self.highest = {"p": 0, "d": 0}
        """Highest numbers of participants and dialogues, of those erased too."""
        self.paused = False
        self.last = 0.0
        """Time of the last event."""

    @classmethod
    def replay(cls, design: WozDesign, events: Iterable[StudyEvent]) -> StudyState:
        """The state that events add up to."""
        state = cls(design)
        for place, event in enumerate(events, 1):
            state.follow(event, place)
        return state

    def follow(self, event: StudyEvent, place: int) -> None:
        """Take in the event at a place of the journal; one that cannot follow those before it is a fault."""
        try:
            self.evolve(event)
        except (LookupError, TypeError, ValueError, AttributeError) as fault:
            where, why = f"event {place} of the journal, {event.kind}", f"{type(fault).__name__} {fault}"
            raise DataError(f"does not follow from those before it ({why})", where=where, fix=RESTORE) from None

    def evolve(self, event: StudyEvent) -> None:
        """Take in one event; one of a kind that changes nothing only moves the time."""
        self.last = max(self.last, event.at)
        change = _CHANGES.get(event.kind)
        if change is not None:
            change(self, event)

    def next_name(self, initial: str, width: int) -> str:
        """The name of the next participant ("p") or dialogue ("d"); none is ever given twice."""
        return f"{initial}{self.highest[initial] + 1:0{width}}"

    def _note_name(self, name: str) -> None:
        self.highest[name[0]] = max(self.highest[name[0]], int(name[1:]))

    def talk_of(self, person: str) -> Talk | None:
        """The dialogue that a participant is in, or reports on."""
        found = self.participants.get(person)
        return self.talks.get(found.dialogue) if found else None

    # Changes, by the kind of event.

    def _started(self, event: StudyEvent) -> None:
        """The server starts: nobody is connected, and waiting begins again."""
        people: list[Participant | WizardPerson] = [*self.participants.values(), *self.wizards.values()]
        for one in people:
            if one.connected or one.gone is not None:
                one.connected, one.gone = False, event.at
        for talk in self.live.values():
            if talk.state == "waiting":
                talk.since = event.at

    def _joined(self, event: StudyEvent) -> None:
        one = Participant(event.person, event.body["token"])
        self.participants[one.id] = one
        self._note_name(one.id)
        self.by_token[one.token] = one.id

    def _connected(self, event: StudyEvent) -> None:
        one = self.participants.get(event.person) or self._wizard(event.person)
        one.connected, one.gone = True, None

    def _disconnected(self, event: StudyEvent) -> None:
        one = self.participants.get(event.person) or self._wizard(event.person)
        one.connected, one.gone = False, event.at

    def _consented(self, event: StudyEvent) -> None:
        one = self.participants[event.person]
        one.plan = [(performer, float(level), task) for performer, level, task in event.body["plan"]]
        one.stage = "before" if self.design.before else "briefing"

    def _declined(self, event: StudyEvent) -> None:
        self.participants[event.person].stage = "declined"

    def _withdrew(self, event: StudyEvent) -> None:
        self.participants[event.person].stage = "withdrawn"

    def _questioned(self, event: StudyEvent) -> None:
        one = self.participants[event.person]
        one.stage = "briefing" if event.body["stage"] == "before" else "done"

    def _opened(self, event: StudyEvent) -> None:
        one = self.participants[event.person]
        body = event.body
        place = body["performer"], float(body["level"]), body["task"]
        talk = Talk(event.dialogue, one.id, *place, event.at, body.get("connect", self.design.interface.connect))
        self.talks[talk.id] = self.live[talk.id] = talk
        self._note_name(talk.id)
        self.met[talk.performer, talk.level] += 1
        one.stage, one.dialogue = "waiting", talk.id

    def _fell_back(self, event: StudyEvent) -> None:
        talk, body = self.talks[event.dialogue], event.body
        self.met[talk.performer, talk.level] -= 1
        talk.performer, talk.level = body["performer"], float(body["level"])
        self.met[talk.performer, talk.level] += 1
        self.wizard_waits.append(event.at - talk.since)
        plan = [(performer, float(level), task) for performer, level, task in body["plan"]]
        self.participants[talk.participant].plan = plan

    def _paired(self, event: StudyEvent) -> None:
        talk = self.talks[event.dialogue]
        talk.state, talk.wizard, talk.started = "talking", event.body["wizard"], event.at
        self.participants[talk.participant].stage = "talking"
        if talk.wizard:
            wizard = self._wizard(talk.wizard)
            wizard.dialogue, wizard.dialogues = talk.id, wizard.dialogues + 1
            self.wizard_waits.append(event.at - talk.since)

    def _said(self, event: StudyEvent) -> None:
        talk = self.talks[event.dialogue]
        talk.exchanges.append(Exchange(event.body["turn"], event.body["text"], event.at))

    def _heard(self, event: StudyEvent) -> None:
        one = self._exchange(event)
        one.heard, one.digest, one.heard_at = event.body["heard"], event.body["digest"], event.at

    def _understood(self, event: StudyEvent) -> None:
        self._exchange(event).understood = event.body["label"]

    def _answered(self, event: StudyEvent) -> None:
        one, body = self._exchange(event), event.body
        one.text, one.label, one.answered, one.due = body["text"], body["label"], event.at, body["due"]
        if self.talks[event.dialogue].wizard:
            self.wizard_seconds.append(event.at - one.said)

    def _shadowed(self, event: StudyEvent) -> None:
        self._exchange(event).shadows.add(event.body["system"])

    def _shown(self, event: StudyEvent) -> None:
        self._exchange(event).shown = event.at

    def _ended(self, event: StudyEvent) -> None:
        talk = self.talks[event.dialogue]
        was_talking = talk.state == "talking"
        talk.state, talk.why = "ended", event.body["why"]
        self.live.pop(talk.id, None)
        if talk.wizard:
            self.wizards[talk.wizard].dialogue = ""
        one = self.participants[talk.participant]
        if one.stage in ENDED:
            return
        one.stage = "report"
        if not was_talking:
            self._next(one)

    def _reported(self, event: StudyEvent) -> None:
        self._next(self.participants[event.person])

    def _next(self, one: Participant) -> None:
        """Go on to the next dialogue of the plan, or to what comes after the last."""
        one.position += 1
        one.dialogue = ""
        one.stage = "briefing" if one.position < len(one.plan) else "after" if self.design.after else "done"

    def _available(self, event: StudyEvent) -> None:
        self._wizard(event.person).available = event.body["on"]

    def _trained(self, event: StudyEvent) -> None:
        self._wizard(event.person).trained.append(event.body)

    def _trained_again(self, event: StudyEvent) -> None:
        wizard = self._wizard(event.person)
        wizard.more_rounds, wizard.available = wizard.more_rounds + 1, False

    def _paused(self, event: StudyEvent) -> None:
        self.paused = event.body["on"]

    def _erased(self, event: StudyEvent) -> None:
        """Somebody's data are gone; that their names were given is all that is left."""
        for name in (event.person, *event.body["dialogues"]):
            if name[0] in self.highest:
                self._note_name(name)

    def _wizard(self, name: str) -> WizardPerson:
        """A wizard, also one that the design no longer names."""
        return self.wizards.setdefault(name, WizardPerson(name))

    def _exchange(self, event: StudyEvent) -> Exchange:
        turn: int = event.body["turn"]
        return self.talks[event.dialogue].exchanges[turn - 1]


_CHANGES: Mapping[str, Any] = {
    name.removeprefix("_"): getattr(StudyState, name)
    for name in vars(StudyState)
    if name.startswith("_")
    and not name.startswith("__")
    and name not in ("_next", "_exchange", "_note_name", "_wizard")
}
"""What changes the state, by the kind of event; other kinds, such as clicks and violations, are only kept."""
