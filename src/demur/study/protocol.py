"""The protocol of a study as a pure state machine: a command and a time in, events out; no clock and no socket."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import singledispatchmethod
from heapq import heappop, heappush
from typing import Any, Literal

from demur.study.design import WozDesign
from demur.study.messages import (
    Available,
    Begin,
    Click,
    Consent,
    EndTalk,
    Finish,
    PageMessage,
    Pause,
    Questionnaire,
    Reply,
    Say,
    TaskReport,
    Train,
    TrainAgain,
    Withdraw,
)
from demur.study.pairing import draw, plan_for, replacement
from demur.study.state import ENDED, Exchange, Participant, StudyEvent, StudyState, Talk, WizardPerson, digest_of

KNOWN_LATENCIES = 5
"""Times of wizards from which on those of systems are drawn from them."""


@dataclass(frozen=True, slots=True)
class Started:
    """The server starts."""

    about: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Join:
    """Somebody comes by the link for participants."""

    token: str
    """Its digest."""
    external: str = ""
    """What another site calls the participant."""


@dataclass(frozen=True, slots=True)
class Connect:
    """A page connects or disconnects."""

    on: bool
    role: str = "participant"


@dataclass(frozen=True, slots=True)
class Spoken:
    """An utterance by voice: the file that it is kept in."""

    file: str


@dataclass(frozen=True, slots=True)
class Heard:
    """What the channel, or the recogniser, made of an utterance."""

    dialogue: str
    turn: int
    heard: dict[str, Any]
    about: dict[str, Any]
    """Errors and words, where they can be counted; the reason where recognition failed."""


@dataclass(frozen=True, slots=True)
class SystemReply:
    """What a system answers, or why it does not; `shadow` where a wizard answers the participant."""

    dialogue: str
    turn: int
    system: str
    given: str
    text: str | None
    label: str | None = None
    confidence: float | None = None
    failed: str = ""
    shadow: bool = False


@dataclass(frozen=True, slots=True)
class Tick:
    """Time goes on."""


Command = PageMessage | Started | Join | Connect | Spoken | Heard | SystemReply | Tick


class Refused(Exception):
    """A command that the protocol does not allow now; `rule` names the violation where it is one."""

    def __init__(self, reason: str, rule: str = "") -> None:
        super().__init__(reason)
        self.reason, self.rule = reason, rule


@dataclass(frozen=True, slots=True)
class PendingWork:
    """Work for the transport: `hear` an utterance, `ask` a system, have it `complete` a wizard's understanding."""

    work: Literal["hear", "ask", "complete", "shadow"]
    dialogue: str
    turn: int
    system: str = ""


class Deadlines:
    """When time alone will bring something to each dialogue; found without looking at all of them."""

    def __init__(self) -> None:
        self._of: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []
        """In order of time; those that are not in `_of` any more are passed over."""

    def set(self, name: str, at: float | None) -> None:
        """Note the next time of a dialogue; None where there is none."""
        if at is None:
            self._of.pop(name, None)
        elif self._of.get(name) != at:
            self._of[name] = at
            heappush(self._heap, (at, name))

    def first(self) -> float | None:
        """The earliest of all."""
        while self._heap and self._of.get(self._heap[0][1]) != self._heap[0][0]:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def reached(self, at: float) -> Iterator[str]:
        """The dialogues whose time has come; each is taken out, and is to be set again."""
        while (first := self.first()) is not None and first <= at:
            name = heappop(self._heap)[1]
            del self._of[name]
            yield name


class Protocol:
    """Decides what follows from a command in the present state; the state is changed by the events alone."""

    def __init__(
        self, design: WozDesign, state: StudyState | None = None, labels: Mapping[str, Collection[str]] | None = None
    ) -> None:
        """`labels` are what each system can carry out, by its name; wizards who only understand choose of these."""
        self.design = design
        self.state = state or StudyState(design)
        self.labels = labels or {}
        self._deadlines = Deadlines()
        self._waiting: dict[str, None] = {}
        """Dialogues in the waiting room, in order."""
        for talk in self.state.live.values():
            self._note(talk.id, self.state.last)

    def decide(self, command: Command, person: str, at: float) -> list[StudyEvent]:
        """The events that a command leads to, taken into the state; `Refused` where it may not be.

        Time never runs backwards: an earlier one counts as that of the last event.
        """
        now = max(at, self.state.last)
        events: list[StudyEvent] = []
        for event in self._decided(command, person, now):
            self.state.evolve(event)
            events.append(event)
        for event in self._due(now, self._concerned(events)):
            self.state.evolve(event)
            events.append(event)
        return events

    @singledispatchmethod
    def _decided(self, command: Command, person: str, at: float) -> Iterator[StudyEvent]:
        raise TypeError(f"no such command: {type(command).__name__}")

    @_decided.register
    def _(self, command: Tick, person: str, at: float) -> Iterator[StudyEvent]:
        return iter(())

    @_decided.register
    def _(self, command: Started, person: str, at: float) -> Iterator[StudyEvent]:
        yield StudyEvent(at=at, kind="started", body=command.about)

    @_decided.register
    def _(self, command: Join, person: str, at: float) -> Iterator[StudyEvent]:
        if self.state.paused:
            raise Refused("The study takes no new participants at the moment.")
        if self.state.highest["p"] >= self.design.pairing.participants:
            raise Refused("The study has all the participants that it needs. Thank you.")
        name = self.state.next_name("p", 4)
        external = {"external": command.external} if command.external else {}
        yield StudyEvent(at=at, kind="joined", person=name, body={"token": command.token, **external})

    @_decided.register
    def _(self, command: Connect, person: str, at: float) -> Iterator[StudyEvent]:
        if command.role == "experimenter":
            return
        one = self.state.participants.get(person) or self.state.wizards[person]
        if one.connected != command.on:
            yield StudyEvent(at=at, kind="connected" if command.on else "disconnected", person=person)

    @_decided.register
    def _(self, command: Consent, person: str, at: float) -> Iterator[StudyEvent]:
        one = self._at_stage(person, "consent")
        if not command.agree:
            yield StudyEvent(at=at, kind="declined", person=person)
            return
        planned = sum(bool(other.plan) for other in self.state.participants.values())
        plan = plan_for(self.design, planned, self.state.met)
        yield StudyEvent(at=at, kind="consented", person=one.id, body={"plan": plan})

    @_decided.register
    def _(self, command: Questionnaire, person: str, at: float) -> Iterator[StudyEvent]:
        self._at_stage(person, command.stage)
        answers = self._checked(command.stage, command.answers)
        yield StudyEvent(at=at, kind="questioned", person=person, body={"stage": command.stage, "answers": answers})

    @_decided.register
    def _(self, command: Begin, person: str, at: float) -> Iterator[StudyEvent]:
        one = self._at_stage(person, "briefing")
        performer, level, task = one.plan[one.position]
        name = self.state.next_name("d", 5)
        body = {"performer": performer, "level": level, "task": task, "connect": self._connect_seconds(performer, name)}
        yield StudyEvent(at=at, kind="opened", person=person, dialogue=name, body=body)

    @_decided.register
    def _(self, command: Say, person: str, at: float) -> Iterator[StudyEvent]:
        talk = self._speaker(person)
        text = " ".join(command.text.split())
        if self.design.input.by != "keyboard":
            raise Refused("Please speak.", "typed where speech was asked for")
        if not text:
            raise Refused("Please type something.")
        if len(text) > self.design.interface.longest:
            raise Refused(f"Please use at most {self.design.interface.longest} characters.", "too long")
        yield self._utterance(talk, {"text": text}, at)

    @_decided.register
    def _(self, command: Spoken, person: str, at: float) -> Iterator[StudyEvent]:
        talk = self._speaker(person)
        if self.design.input.by != "speech":
            raise Refused("Please type.", "spoken where typing was asked for")
        yield self._utterance(talk, {"text": "", "audio": command.file}, at)

    @_decided.register
    def _(self, command: Finish, person: str, at: float) -> Iterator[StudyEvent]:
        self._at_stage(person, "talking")
        yield self._end(self._talk(person), "finished", at)

    @_decided.register
    def _(self, command: TaskReport, person: str, at: float) -> Iterator[StudyEvent]:
        self._at_stage(person, "report")
        talk = self._talk(person)
        answers = self._checked("dialogue", command.answers)
        value = self._performance(talk, command, answers)
        body = {"answer": command.answer, "value": value, "answers": answers}
        if command.completed is not None:
            body["said"] = command.completed
        yield StudyEvent(at=at, kind="reported", person=person, dialogue=talk.id, body=body)

    @_decided.register
    def _(self, command: Withdraw, person: str, at: float) -> Iterator[StudyEvent]:
        one = self._participant(person)
        if one.stage in ENDED:
            raise Refused("You have already left the study.")
        yield StudyEvent(at=at, kind="withdrew", person=person)
        talk = self.state.talk_of(person)
        if talk is not None and talk.id in self.state.live:
            yield self._end(talk, "withdrew", at)

    @_decided.register
    def _(self, command: Heard, person: str, at: float) -> Iterator[StudyEvent]:
        talk = self.state.talks[command.dialogue]
        one = talk.exchanges[command.turn - 1]
        if one.heard is not None or talk.state == "ended":
            return  # heard before a restart, or nobody listens any more
        digest = digest_of(command.heard)
        body = {"turn": one.number, "heard": command.heard, "digest": digest, **command.about}
        yield StudyEvent(at=at, kind="heard", dialogue=talk.id, body=body)
        to = {"turn": one.number, "to": talk.wizard or talk.performer, "digest": digest_of(one.heard)}
        yield StudyEvent(at=at, kind="passed", dialogue=talk.id, body=to)

    @_decided.register
    def _(self, command: SystemReply, person: str, at: float) -> Iterator[StudyEvent]:
        talk = self.state.talks[command.dialogue]
        one = talk.exchanges[command.turn - 1]
        body: dict[str, Any] = {"turn": one.number, "label": command.label, "confidence": command.confidence}
        body["given"] = command.given
        if command.shadow:
            if command.system not in one.shadows:
                shadow = {"system": command.system, "text": command.text, "failed": command.failed}
                yield StudyEvent(at=at, kind="shadowed", dialogue=talk.id, body={**body, **shadow})
            return
        if one.text is not None or one.heard is None or talk.state == "ended":
            return
        if command.failed:
            yield self._violation("system failed", "", talk, {"turn": one.number, "why": command.failed}, at)
        text = command.text if command.text is not None else self.design.interface.no_answer
        body |= {"text": text, "returned": command.text is not None, "by": command.system}
        yield from self._answer(talk, one, body, at)

    @_decided.register
    def _(self, command: Reply, person: str, at: float) -> Iterator[StudyEvent]:
        talk, one = self._asked(command, person)
        spec = self.design.performer(talk.performer)
        if spec.component == "understanding":
            if command.response is None or command.text is not None or command.slots:
                raise Refused("Choose what was meant; the system does the rest.", "free text")
            if command.response not in self.labels.get(spec.system, (command.response,)):
                raise Refused("The system cannot carry this out.", "unknown response")
            body = {"turn": one.number, "label": command.response, "given": command.given}
            yield StudyEvent(at=at, kind="understood", person=person, dialogue=talk.id, body=body)
            return
        text = self._permitted(command)
        label = command.response if command.text is None else None
        body = {"turn": one.number, "text": text, "label": label, "by": person}
        body |= {"given": command.given, "slots": command.slots, "returned": True, "confidence": None}
        late = at - one.said - self.design.interface.delay
        if self.design.interface.latency == "fixed" and late > 0:
            yield self._violation("late", person, talk, {"turn": one.number, "seconds": round(late, 3)}, at)
        yield from self._answer(talk, one, body, at)

    @_decided.register
    def _(self, command: Click, person: str, at: float) -> Iterator[StudyEvent]:
        wizard = self._wizard(person)
        body = {"what": command.what, "value": command.value}
        yield StudyEvent(at=at, kind="clicked", person=person, dialogue=wizard.dialogue, body=body)

    @_decided.register
    def _(self, command: Train, person: str, at: float) -> Iterator[StudyEvent]:
        wizard = self._wizard(person)
        wanted = training_item(self.design, wizard)
        if wanted is None or command.item != wanted:
            raise Refused("This item is not the next one.")
        system = trained_for(self.design)
        offered = self.labels.get(system, (command.response,)) if system else [one.id for one in self.design.responses]
        if command.response not in offered:
            raise Refused("There is no such response.", "unknown response")
        body = {"item": command.item, "choice": command.response, "seconds": command.seconds}
        yield StudyEvent(at=at, kind="trained", person=person, body=body)

    @_decided.register
    def _(self, command: TrainAgain, person: str, at: float) -> Iterator[StudyEvent]:
        wizard = self._wizard(person)
        if wizard.dialogue or not self.design.training or not is_trained(self.design, wizard):
            raise Refused("Another round of training can begin when this one, or the dialogue, is over.")
        yield StudyEvent(at=at, kind="trained_again", person=person)

    @_decided.register
    def _(self, command: Available, person: str, at: float) -> Iterator[StudyEvent]:
        wizard = self._wizard(person)
        if command.on and not is_trained(self.design, wizard):
            raise Refused("Please finish the training first.", "untrained")
        if wizard.available != command.on:
            yield StudyEvent(at=at, kind="available", person=person, body={"on": command.on})

    @_decided.register
    def _(self, command: Pause, person: str, at: float) -> Iterator[StudyEvent]:
        yield StudyEvent(at=at, kind="paused", body={"on": command.on})

    @_decided.register
    def _(self, command: EndTalk, person: str, at: float) -> Iterator[StudyEvent]:
        talk = self.state.live.get(command.dialogue)
        if talk is None:
            raise Refused("This dialogue has ended.")
        yield self._end(talk, "experimenter", at)

    # What time brings.

    def _concerned(self, events: Iterable[StudyEvent]) -> Iterator[str]:
        """The dialogues for which events may have changed what is due, and when."""
        for event in events:
            if event.kind == "started":
                yield from self.state.live
            elif event.dialogue:
                yield event.dialogue
            elif event.person:
                one = self.state.participants.get(event.person) or self.state.wizards.get(event.person)
                yield one.dialogue if one is not None else ""

    def _due(self, at: float, concerned: Iterable[str]) -> Iterator[StudyEvent]:
        """What has become due: in dialogues whose time has come or that events concern, then in the waiting room."""
        names = {*concerned, *self._deadlines.reached(at)}
        for name in self._in_order(names):
            talk = self.state.live.get(name)
            if talk is not None and talk.state == "talking":
                yield from self._due_in(talk, at)
            self._note(name, at)
        may_begin = bool(self._waiting) and self._free_wizard() is not None
        for name in self._in_order(self._waiting if may_begin else names & self._waiting.keys()):
            yield from self._due_in(self.state.live[name], at)
            self._note(name, at)

    def _in_order(self, names: Iterable[str]) -> list[str]:
        """Dialogues in the order in which they were opened."""
        return sorted((name for name in names if name), key=lambda name: int(name[1:]))

    def _note(self, name: str, at: float) -> None:
        """Note when something will be due in a dialogue, and whether it is in the waiting room."""
        talk = self.state.live.get(name)
        self._deadlines.set(name, None if talk is None else min(self._times(talk, at)))
        if talk is not None and talk.state == "waiting":
            self._waiting[name] = None
        else:
            self._waiting.pop(name, None)

    def _due_in(self, talk: Talk, at: float) -> Iterator[StudyEvent]:
        pairing, interface = self.design.pairing, self.design.interface
        if talk.state == "waiting":
            yield from self._paired(talk, at)
            return
        one = talk.open_exchange
        if one is not None and one.text is not None and one.due <= at:
            yield StudyEvent(at=at, kind="shown", dialogue=talk.id, body={"turn": one.number})
        participant = self.state.participants[talk.participant]
        wizard = self.state.wizards.get(talk.wizard)
        if wizard is not None and wizard.gone is not None and wizard.gone + pairing.away <= at:
            yield self._end(talk, "wizard left", at)
        elif participant.gone is not None and participant.gone + pairing.away <= at:
            yield self._end(talk, "participant left", at)
        elif len(talk.exchanges) >= interface.turns and talk.open_exchange is None:
            yield self._end(talk, "turns", at)
        elif talk.started + 60 * interface.minutes <= at:
            yield self._end(talk, "minutes", at)

    def _paired(self, talk: Talk, at: float) -> Iterator[StudyEvent]:
        """Begin a dialogue that waits; where no wizard comes in time, with a system or not at all."""
        participant = self.state.participants[talk.participant]
        if participant.gone is not None and participant.gone + self.design.pairing.away <= at:
            yield self._end(talk, "participant left", at)
            return
        if at < talk.since + talk.connect:
            return
        if self.design.performer(talk.performer).is_wizard:
            wizard = self._free_wizard()
            if wizard is not None:
                yield StudyEvent(at=at, kind="paired", dialogue=talk.id, body={"wizard": wizard.name})
                return
            if at < talk.since + max(self.design.pairing.wait, talk.connect):
                return
            plan = replacement(self.design, participant.plan, participant.position) if self._may_replace else None
            if plan is None:
                yield self._end(talk, "no wizard", at)
                return
            performer, level, _ = plan[participant.position]
            body = {"performer": performer, "level": level, "plan": plan}
            yield StudyEvent(at=at, kind="fell_back", dialogue=talk.id, body=body)
        yield StudyEvent(at=at, kind="paired", dialogue=talk.id, body={"wizard": ""})

    @property
    def _may_replace(self) -> bool:
        return self.design.pairing.fallback

    def _free_wizard(self) -> WizardPerson | None:
        free = [one for one in self.state.wizards.values() if one.connected and one.available and not one.dialogue]
        return min(free, key=lambda one: (one.dialogues, one.name), default=None)

    def deadline(self) -> float | None:
        """When time alone will bring something next; None where nothing is under way."""
        return self._deadlines.first()

    def _times(self, talk: Talk, at: float) -> Iterator[float]:
        """When time alone will bring something to a dialogue in which nothing is due now."""
        pairing, interface = self.design.pairing, self.design.interface
        gone = [self.state.participants[talk.participant].gone]
        if talk.wizard:
            gone.append(self.state.wizards[talk.wizard].gone)
        yield from (time + pairing.away for time in gone if time is not None)
        if talk.state == "waiting":
            connected = talk.since + talk.connect
            yield connected if connected > at else talk.since + max(pairing.wait, talk.connect)
            return
        yield talk.started + 60 * interface.minutes
        one = talk.open_exchange
        if one is not None and one.text is not None:
            yield one.due

    # What work is left for the transport.

    def effects(self, events: list[StudyEvent]) -> list[PendingWork]:
        """The work that events ask for."""
        found: list[PendingWork] = []
        for event in events:
            if event.kind in ("said", "heard", "understood"):
                found += self._work(self.state.talks[event.dialogue], event.body["turn"], event.kind)
        return found

    def unfinished(self) -> list[PendingWork]:
        """The work that was under way when the server ended, to be done again."""
        found: list[PendingWork] = []
        for talk in self.state.live.values():
            one = talk.open_exchange
            if one is not None and one.text is None:
                kind = "said" if one.heard is None else "understood" if one.understood is not None else "heard"
                found += self._work(talk, one.number, kind)
        return found

    def _work(self, talk: Talk, turn: int, kind: str) -> list[PendingWork]:
        spec = self.design.performer(talk.performer)
        if kind == "said":
            return [PendingWork("hear", talk.id, turn)]
        if kind == "understood":
            return [PendingWork("complete", talk.id, turn, spec.system)]
        if not spec.is_wizard:
            return [PendingWork("ask", talk.id, turn, spec.name)]
        if not self.design.pairing.shadow:
            return []
        return [PendingWork("shadow", talk.id, turn, one.name) for one in self.design.systems]

    # Parts of decisions.

    def _participant(self, person: str) -> Participant:
        one = self.state.participants.get(person)
        if one is None:
            raise Refused("Nobody takes part under this token.")
        return one

    def _wizard(self, person: str) -> WizardPerson:
        one = self.state.wizards.get(person)
        if one is None:
            raise Refused("There is no such wizard.")
        return one

    def _at_stage(self, person: str, stage: str) -> Participant:
        one = self._participant(person)
        if one.stage != stage:
            raise Refused("This is not the time for it; the page shows what comes next.")
        return one

    def _talk(self, person: str) -> Talk:
        talk = self.state.talk_of(person)
        if talk is None:
            raise Refused("There is no dialogue.")
        return talk

    def _speaker(self, person: str) -> Talk:
        self._at_stage(person, "talking")
        talk = self._talk(person)
        if talk.open_exchange is not None:
            raise Refused("Please wait for the answer.", "out of turn")
        if len(talk.exchanges) >= self.design.interface.turns:
            raise Refused("This dialogue has had all its turns.")
        return talk

    def _utterance(self, talk: Talk, body: dict[str, Any], at: float) -> StudyEvent:
        turn = {"turn": len(talk.exchanges) + 1}
        return StudyEvent(at=at, kind="said", person=talk.participant, dialogue=talk.id, body=turn | body)

    def _asked(self, command: Reply, person: str) -> tuple[Talk, Exchange]:
        """The dialogue and the exchange that a wizard answers."""
        wizard = self._wizard(person)
        talk = self.state.live.get(wizard.dialogue) if wizard.dialogue == command.dialogue else None
        if talk is None:
            raise Refused("This dialogue is not yours, or has ended.", "not their dialogue")
        one = talk.open_exchange
        if one is None or one.number != command.turn or one.heard is None:
            raise Refused("There is nothing to answer now.", "out of turn")
        if one.text is not None or one.understood is not None:
            raise Refused("This was answered already.", "answered twice")
        if command.given != one.digest:
            raise Refused("The input has changed; look at it again.", "another input")
        return talk, one

    def _permitted(self, command: Reply) -> str:
        """The text of a wizard's answer, if the study lets wizards say it."""
        if command.text is not None:
            text = " ".join(command.text.split())
            if not self.design.wizard.free_text:
                raise Refused("This study allows only the responses that are listed.", "free text")
            if command.response is not None or not text or len(text) > self.design.interface.longest:
                raise Refused(f"Type at most {self.design.interface.longest} characters.", "too long")
            return text
        text = self.design.filled(command.response or "", command.slots) or ""
        if not text:
            raise Refused("Choose a response of the list, and fill its slots with what is offered.", "unknown response")
        return text

    def _answer(self, talk: Talk, one: Exchange, body: dict[str, Any], at: float) -> Iterator[StudyEvent]:
        interface = self.design.interface
        due = at
        if interface.latency == "fixed":
            due = max(at, one.said + interface.delay)
        elif interface.latency == "matched" and not talk.wizard:
            taken = self._matched(self.state.wizard_seconds, interface.delay, "latency", talk.id, one.number)
            due = max(at, one.said + taken)
        seconds = round(at - one.said, 6)
        yield StudyEvent(at=at, kind="answered", dialogue=talk.id, body={**body, "due": due, "seconds": seconds})

    def _connect_seconds(self, performer: str, dialogue: str) -> float:
        """Least seconds in the waiting room: with a system as long as others wait for a wizard."""
        interface = self.design.interface
        if self.design.performer(performer).is_wizard or interface.latency == "none":
            return interface.connect
        return self._matched(self.state.wizard_waits, interface.connect, "waiting", dialogue)

    def _matched(self, seconds: list[float], first: float, *key: object) -> float:
        """One of the times that wizards took so far, drawn by the seed and a key; `first` until some are known."""
        if len(seconds) < KNOWN_LATENCIES:
            return first
        return seconds[int(draw(self.design.seed, *key) * len(seconds))]

    def _end(self, talk: Talk, why: str, at: float) -> StudyEvent:
        return StudyEvent(at=at, kind="ended", person=talk.participant, dialogue=talk.id, body={"why": why})

    def violation(self, refusal: Refused, person: str, at: float) -> StudyEvent:
        """The record of a command that was refused and breaks a rule."""
        now = max(at, self.state.last)
        return StudyEvent(at=now, kind="violated", person=person, body={"rule": refusal.rule, "refused": True})

    def _violation(self, rule: str, person: str, talk: Talk, about: dict[str, Any], at: float) -> StudyEvent:
        return StudyEvent(at=at, kind="violated", person=person, dialogue=talk.id, body={"rule": rule, **about})

    def _checked(self, stage: str, answers: dict[str, Any]) -> dict[str, Any]:
        """Answers to the items of a questionnaire; others are refused."""
        items = {one.id: one for one in self.design.questions(stage)}
        if answers.keys() - items.keys():
            raise Refused("There is an answer to a question that was not asked.")
        for name, one in items.items():
            given = answers.get(name, "")
            if given == "":
                if one.required:
                    raise Refused(f"Please answer: {one.text}")
                continue
            is_number = isinstance(given, int | float)
            if one.kind == "scale" and not (is_number and given == int(given) and one.low <= given <= one.high):
                raise Refused(f"Please choose a number of the scale: {one.text}")
            if one.kind == "choice" and given not in one.labels:
                raise Refused(f"Please choose: {one.text}")
            if one.kind == "number" and not is_number:
                raise Refused(f"Please give a number: {one.text}")
            if one.kind == "text" and not isinstance(given, str):
                raise Refused(f"Please type text: {one.text}")
        return {name: answers[name] for name in items if answers.get(name, "") != ""}

    def _performance(self, talk: Talk, report: TaskReport, answers: dict[str, Any]) -> float:
        metric, task = self.design.metric, self.design.task(talk.task)
        if metric.source == "item":
            return float(answers[metric.item])
        if metric.source == "said":
            if report.completed is None:
                raise Refused("Please say whether you achieved the goal.")
            return float(report.completed)
        if task.choices and report.answer not in ("", *task.choices):
            raise Refused("Please choose one of the answers.")
        return float(plain_words(report.answer) in [plain_words(answer) for answer in task.answers])


def plain_words(text: str) -> str:
    """A text without case, punctuation and doubled spaces, as answers are compared.

    >>> plain_words("  10 a.m., Room 4 ") == plain_words("10 AM room 4")
    True
    """
    return " ".join(re.sub(r"[^\w\s]", "", text.casefold()).split())


def training_item(design: WozDesign, wizard: WizardPerson) -> int | None:
    """The place of the next item of training; None after the last round. Each round has its own order."""
    items = len(design.training)
    done = len(wizard.trained)
    if not items or is_trained(design, wizard):
        return None
    turn, place = divmod(done, items)
    order = sorted(range(items), key=lambda one: draw(design.seed, "training", wizard.name, turn, one))
    return order[place]


def trained_for(design: WozDesign) -> str:
    """The system whose labels training is about; empty where any wizard is the whole system."""
    return design.wizards[0].system if all(one.component == "understanding" for one in design.wizards) else ""


def is_trained(design: WozDesign, wizard: WizardPerson) -> bool:
    """Whether a wizard has done all rounds of training."""
    return len(wizard.trained) >= len(design.training) * rounds_of(design, wizard)


def rounds_of(design: WozDesign, wizard: WizardPerson) -> int:
    """Rounds of training that a wizard does."""
    return design.wizard.rounds + wizard.more_rounds
