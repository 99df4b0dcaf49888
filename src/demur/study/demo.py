"""A study filled by simulated participants and wizards, in time of its own: an hour of dialogues in some seconds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from demur.core.show.results import Step, silent
from demur.errors import UsageError
from demur.study.design import WozDesign
from demur.study.folder import study_key, token_digest
from demur.study.input import NoisyInput
from demur.study.journal import StudyJournal
from demur.study.messages import Available, Begin, Consent, Finish, Questionnaire, Reply, Say, TaskReport, Train
from demur.study.protocol import Command, Connect, Heard, Join, PendingWork, Protocol, Started, Tick, training_item
from demur.study.state import Exchange, Participant, StudyEvent, Talk
from demur.study.systems import Question, StudySystem, conversation_of, systems_of, texts_of_models

START = 1_700_000_000.0
"""When simulated studies begin, in seconds since 1970."""
PATIENCE = (1, 3)
"""After how many utterances simulated participants give up: between these."""
OPENERS = ("", "", "hello ", "excuse me ", "i would like to know ", "tell me please ")
"""How they begin an utterance."""
MISLED = 0.5
"""How often they give up at a wrong answer."""
WIZARDS_DIFFER = 0.08
"""Standard deviation of how sure simulated wizards want to be before they answer."""
WANTED = 0.3
"""How sure they want to be on average."""
CLIENT = "simulated"


class SimulatedStudy:
    """Participants and wizards that play a study through its protocol, channel and systems."""

    def __init__(self, folder: Path, design: WozDesign, seed: int) -> None:
        """Get everything ready; the wizards read the same pairs as the system, but hear sounds and not only words."""
        self.folder, self.design = folder, design
        self.rng = np.random.default_rng([seed, 11])
        self.systems: dict[str, StudySystem] = systems_of(design, folder)
        self.noise = NoisyInput(design, texts_of_models(self.systems))
        self.protocol = Protocol(design)
        self.events: list[StudyEvent] = []
        self.now = START
        self.questions = self._read_questions()
        self._minds = {name: WANTED + WIZARDS_DIFFER * self.rng.standard_normal() for name in design.wizard.names}
        self._model = self._trained()

    def _read_questions(self) -> dict[str, list[str]]:
        """Ways to ask for what each task wants."""
        pairs = next((one.pairs for one in self.design.systems if one.pairs), "")
        if not pairs:
            raise UsageError("the simulation needs a system of kind relevance with pairs, to know what people ask")
        found: dict[str, list[str]] = defaultdict(list)
        for line in (self.folder / pairs).read_bytes().splitlines():
            row = msgspec.json.decode(line)
            found[row["target"]].append(row["input"])
        return found

    def _trained(self) -> Any:
        from demur.understanding.relevance import RelevanceClassifier

        texts = [text for texts in self.questions.values() for text in texts]
        labels = [label for label, texts in self.questions.items() for _ in texts]
        return RelevanceClassifier(tokens="mixed").fit(texts, labels)

    def run(self, participants: int, step: Step = silent) -> list[StudyEvent]:
        """Let participants come one after the other, and give all events."""
        about = {"demur": "simulated", "design": self.design.digest, "rates": self.noise.rates}
        self._send(Started(about))
        for name in self.design.wizard.names:
            self._send(Connect(True, "wizard"), name)
            self._train(name)
            self._send(Available(id=CLIENT, on=True), name)
        for number in range(participants):
            step("simulating participants", number, participants)
            self._participate(number)
        return self.events

    def _send(self, command: Command, person: str = "", after: float = 0.0) -> None:
        """Let time pass, do what is due on the way, then have a command decided and its work done."""
        until = self.now + after
        while (due := self.protocol.deadline()) is not None and due <= until:
            self.now = max(self.now, due)
            self._take(Tick(), "")
        self.now = until
        self._take(command, person)

    def _take(self, command: Command, person: str) -> None:
        events = self.protocol.decide(command, person, self.now)
        self.events += events
        for effect in self.protocol.effects(events):
            self._carry_out(effect)

    def _carry_out(self, effect: PendingWork) -> None:
        talk = self.protocol.state.talks[effect.dialogue]
        one = talk.exchanges[effect.turn - 1]
        if effect.work == "hear":
            heard, about = self.noise.hear(one.typed, talk.level, talk.id, one.number)
            self._take(Heard(talk.id, one.number, heard, about), "")
            return
        conversation = conversation_of(self.protocol.state, talk.id, one.number)
        question = Question(self.systems[effect.system], conversation, talk.id, one.number, effect.work == "shadow")
        self._take(question.ask(), "")

    def _train(self, name: str) -> None:
        wizard = self.protocol.state.wizards[name]
        while (item := training_item(self.design, wizard)) is not None:
            one = self.design.training[item]
            choice = one.best if self.rng.random() < 0.9 else self.design.responses[0].id
            seconds = round(float(self.rng.gamma(4, 1.0)), 2)
            self._send(Train(id=CLIENT, item=item, response=choice, seconds=seconds), name, after=seconds)

    def _participate(self, number: int) -> None:
        self._send(Join(token_digest(f"{CLIENT} {number}")), after=5.0)
        person = list(self.protocol.state.participants)[-1]
        one = self.protocol.state.participants[person]
        self._send(Connect(True), person)
        self._send(Consent(id=CLIENT, agree=True), person, after=10.0)
        while one.stage not in ("done", "declined", "withdrawn"):
            if one.stage in ("before", "after"):
                answers = self._answers(one.stage)
                self._send(Questionnaire(id=CLIENT, stage=one.stage, answers=answers), person, after=8.0)
            elif one.stage == "briefing":
                self._send(Begin(id=CLIENT), person, after=5.0)
            elif one.stage == "waiting":
                self._send(Tick(), after=1.0)
            else:
                self._talk(one)
        self._send(Connect(False), person)

    def _talk(self, one: Participant) -> None:
        """Ask until the answer comes or patience ends, then report."""
        talk = self.protocol.state.talks[one.dialogue]
        task = self.design.task(talk.task)
        ways = self.questions.get(task.id) or [task.goal]
        wanted = self.design.response(task.id)
        given = {one.text for one in self.design.responses if not one.repair}
        patience, found = int(self.rng.integers(*PATIENCE, endpoint=True)), ""
        while one.stage == "talking" and not found and len(talk.exchanges) < patience:
            text = self._choice(OPENERS) + self._choice(ways)
            self._send(Say(id=CLIENT, text=text), one.id, after=float(self.rng.gamma(4, 1.0)))
            if talk.wizard:
                self._answer(talk)
            while talk.open_exchange is not None:
                self._send(Tick(), after=0.5)
            said = talk.exchanges[-1].text
            if wanted is not None and said == wanted.text:
                found = task.answers[0]
            elif said in given and self.rng.random() < MISLED:
                break
        if one.stage == "talking":
            self._send(Finish(id=CLIENT), one.id, after=2.0)
        answers = self._answers("dialogue", good=bool(found))
        self._send(TaskReport(id=CLIENT, answer=found, answers=answers), one.id, after=5.0)

    def _choice(self, texts: Sequence[str]) -> str:
        return texts[int(self.rng.integers(len(texts)))]

    def _answer(self, talk: Talk) -> None:
        """A wizard reads the list of hypotheses as a whole, and asks back where it says too little."""
        one = talk.exchanges[-1]
        label = self._understood(one, self._minds[talk.wizard])
        repair = next((other.id for other in self.design.responses if other.repair and not other.slots), None)
        response = label if label and self.design.response(label) is not None else repair
        reply = Reply(id=CLIENT, dialogue=talk.id, turn=one.number, given=one.digest, response=response)
        self._send(reply, talk.wizard, after=float(1 + self.rng.gamma(3, 0.8)))

    def _understood(self, one: Exchange, wanted: float) -> str:
        texts = [other["text"] for other in (one.heard or {})["nbest"] if other["text"]]
        if not texts:
            return ""
        posterior = self._model.predict_proba(texts).mean(axis=0)
        best = int(posterior.argmax())
        return str(self._model.classes_[best]) if posterior[best] >= wanted else ""

    def _answers(self, stage: str, *, good: bool = True) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for item in self.design.questions(stage):
            if item.kind == "scale":
                middle = (item.low + item.high) / 2
                drawn = self.rng.normal(middle + (1 if good else -1), 0.8)
                found[item.id] = int(np.clip(round(float(drawn)), item.low, item.high))
            elif item.kind == "choice":
                found[item.id] = item.labels[int(self.rng.integers(len(item.labels)))]
            elif item.required:
                found[item.id] = "none" if item.kind == "text" else 1.0
        return found


def write_simulated(folder: Path, events: Sequence[StudyEvent]) -> None:
    """Write the events of a simulated study to its journal."""
    from threading import Event as Signal

    study_key(folder)
    journal, written = StudyJournal(folder), Signal()
    faults: list[Exception | None] = []

    def done(fault: Exception | None) -> None:
        faults.append(fault)
        written.set()

    journal.append(list(events), journal.epoch, done)
    written.wait()
    journal.close()
    if faults[0] is not None:
        raise UsageError(f"{folder}: the journal cannot be written: {faults[0]}")
