"""The systems of a study: a command, a Python callable, an address on this machine, or the relevance model."""

from __future__ import annotations

import http.client
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as LateError
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

import msgspec

from demur.errors import DemurError, UsageError
from demur.study.design import PerformerKind, PerformerSpec, WozDesign
from demur.study.protocol import SystemReply
from demur.study.state import StudyState, digest_of

MOST_BYTES = 1 << 20
"""Bytes of an answer."""
LONGEST = 4000
"""Characters of a response."""


class SystemAnswer(msgspec.Struct, frozen=True):
    """What a system gives: a text, or none; perhaps the label behind it and how confident it is."""

    text: str | None = None
    label: str | None = None
    confidence: float | None = None


class SystemFault(Exception):
    """A system that does not answer as it should."""


class StudySystem(ABC):
    """A system that takes a conversation and returns a response or none."""

    def __init__(self, spec: PerformerSpec, design: WozDesign, folder: Path) -> None:
        """Get ready to be asked; what is wrong with the design is said here."""
        self.spec, self.design, self.folder = spec, design, folder

    @abstractmethod
    def answer(self, conversation: dict[str, Any]) -> SystemAnswer:
        """The answer to the last turn of a conversation; `SystemFault` where there is none to be had."""

    @property
    def texts(self) -> dict[str, str]:
        """What a wizard may understand an utterance as, where the system does the rest, and what is said then."""
        return {one.id: one.text for one in self.design.responses}

    def close(self) -> None:  # noqa: B027
        """Let go of what was opened."""

    def _decoded(self, content: bytes) -> SystemAnswer:
        text = content.strip()
        try:
            if text[:1] in (b"{", b"[", b"n"):
                return _bounded(msgspec.json.decode(text, type=SystemAnswer | None) or SystemAnswer())
            return _bounded(SystemAnswer(text.decode() or None))
        except (msgspec.MsgspecError, UnicodeDecodeError) as fault:
            raise SystemFault(f"gave what cannot be read: {fault}") from None


def _bounded(answer: SystemAnswer) -> SystemAnswer:
    if len(answer.text or "") > LONGEST:
        raise SystemFault(f"gave more than {LONGEST:,} characters")
    return answer


class CommandSystem(StudySystem):
    """A command that is started for each turn: the conversation as JSON in, a text or JSON out."""

    def answer(self, conversation: dict[str, Any]) -> SystemAnswer:
        """What the command prints."""
        try:
            done = subprocess.run(
                self.spec.command,
                input=msgspec.json.encode(conversation),
                capture_output=True,
                timeout=self.spec.timeout,
                cwd=self.folder,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise SystemFault(f"took more than {self.spec.timeout:g} seconds") from None
        except OSError as fault:
            raise SystemFault(f"cannot be started: {fault.strerror}") from None
        if done.returncode:
            raise SystemFault(f"ended with {done.returncode}")
        return self._decoded(done.stdout[:MOST_BYTES])


class PythonSystem(StudySystem):
    """A Python callable: the conversation in, a text, a dict or None out."""

    def __init__(self, spec: PerformerSpec, design: WozDesign, folder: Path) -> None:
        """Import the callable; modules that lie in the study's folder are found too."""
        super().__init__(spec, design, folder)
        module, _, name = spec.call.partition(":")
        sys.path.insert(0, str(folder))
        try:
            self._call: Callable[[dict[str, Any]], Any] = getattr(import_module(module), name)
        except (ImportError, AttributeError, ValueError) as fault:
            raise UsageError(f"performer {spec.name}: {spec.call} cannot be imported: {fault}") from None
        finally:
            sys.path.remove(str(folder))
        self._threads = ThreadPoolExecutor(4, thread_name_prefix=f"demur-{spec.name}")

    def answer(self, conversation: dict[str, Any]) -> SystemAnswer:
        """What the callable returns."""
        try:
            given = self._threads.submit(self._call, conversation).result(self.spec.timeout)
        except LateError:
            raise SystemFault(f"took more than {self.spec.timeout:g} seconds") from None
        except Exception as fault:
            raise SystemFault(f"raised {type(fault).__name__}: {fault}") from None
        try:
            whole = {"text": given} if given is None or isinstance(given, str) else given
            return _bounded(msgspec.convert(whole, SystemAnswer))
        except msgspec.ValidationError as fault:
            raise SystemFault(f"returned what cannot be used: {fault}") from None

    def close(self) -> None:
        """Wait for nobody."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class HttpSystem(StudySystem):
    """An address on this machine: the conversation posted as JSON, a text or JSON back."""

    def answer(self, conversation: dict[str, Any]) -> SystemAnswer:
        """The body of the answer; no redirection is followed, as it could lead elsewhere."""
        where = urlsplit(self.spec.address)
        connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=self.spec.timeout)
        try:
            path = (where.path or "/") + (f"?{where.query}" if where.query else "")
            connection.request("POST", path, msgspec.json.encode(conversation), {"Content-Type": "application/json"})
            reply = connection.getresponse()
            if reply.status == 204:
                return SystemAnswer()
            if reply.status != 200:
                raise SystemFault(f"answered with status {reply.status}")
            return self._decoded(reply.read(MOST_BYTES))
        except (OSError, http.client.HTTPException) as fault:
            late = isinstance(fault, TimeoutError)
            why = f"took more than {self.spec.timeout:g} seconds" if late else f"cannot be reached: {fault}"
            raise SystemFault(why) from None
        finally:
            connection.close()


class RelevanceSystem(StudySystem):
    """The relevance model: trained on the study's pairs, or read from a folder."""

    def __init__(self, spec: PerformerSpec, design: WozDesign, folder: Path) -> None:
        """Train or read the model."""
        super().__init__(spec, design, folder)
        from demur.understanding.jobs import train
        from demur.understanding.relevance import load_model, model_in

        try:
            model: Any = load_model(folder / spec.model) if spec.model else train(folder / spec.pairs)
        except DemurError as fault:
            raise UsageError(f"performer {spec.name}: {fault}") from None
        self._model = model_in(getattr(model, "model", model), spec.threshold)
        self._alone = Lock()

    @property
    def texts(self) -> dict[str, str]:
        """What each label says, and the responses that ask back: a wizard may not make out what was meant."""
        repairs = {one.id: one.text for one in self.design.responses if one.repair and not one.slots}
        return self.own_texts | repairs

    @property
    def own_texts(self) -> dict[str, str]:
        """What each label of the model says: the study's response of that name, else the model's own text."""
        own = self._model.answers_ or {}
        canned = {one.id: one.text for one in self.design.responses if not one.slots}
        labels = map(str, self._model.classes_.tolist())
        return {label: canned.get(label) or own.get(label) or label for label in labels}

    def answer(self, conversation: dict[str, Any]) -> SystemAnswer:
        """The answer to what was heard last; withheld below the threshold."""
        from demur.understanding.relevance import answered

        last = conversation["turns"][-1]
        if conversation.get("understood"):
            label = conversation["understood"]
            return SystemAnswer(self.texts.get(label), label, None)
        with self._alone:
            (found,) = answered(self._model, [last["heard"]["text"]])
        label = None if found.label is None else str(found.label)
        confidence = None if found.label is None else found.confidence
        return SystemAnswer(self.own_texts[label] if found.returned and label is not None else None, label, confidence)


KINDS: dict[PerformerKind, type[StudySystem]] = {
    "command": CommandSystem,
    "python": PythonSystem,
    "http": HttpSystem,
    "relevance": RelevanceSystem,
}
"""How a system is reached, by the kind that the design names."""


def systems_of(design: WozDesign, folder: Path) -> dict[str, StudySystem]:
    """The systems of a study, ready to be asked."""
    return {one.name: KINDS[one.kind](one, design, folder) for one in design.systems}


def texts_of_models(systems: Mapping[str, StudySystem]) -> list[str]:
    """What the relevance models of a study can say, on which the noise channel is fitted too."""
    models = [one for one in systems.values() if isinstance(one, RelevanceSystem)]
    return [text for one in models for text in one.own_texts.values()]


def conversation_of(state: StudyState, dialogue: str, turn: int) -> dict[str, Any]:
    """What a system is given: what was heard and said so far, and never what was typed, by whom, or at which level."""
    talk = state.talks[dialogue]
    turns: list[dict[str, Any]] = []
    for one in talk.exchanges[:turn]:
        response = {"response": one.text} if one.number < turn else {}
        turns.append({"heard": one.heard, **response})
    understood = talk.exchanges[turn - 1].understood
    return {"dialogue": dialogue, "turns": turns, **({"understood": understood} if understood is not None else {})}


@dataclass(frozen=True, slots=True)
class Question:
    """A system to be asked, and what it is given."""

    system: StudySystem
    conversation: dict[str, Any]
    dialogue: str
    turn: int
    shadow: bool = False

    def ask(self) -> SystemReply:
        """The answer, or why there is none, with the digest of the input that the system was given."""
        given = digest_of(self.conversation["turns"][-1]["heard"])
        answer, failed = SystemAnswer(), ""
        try:
            answer = self.system.answer(self.conversation)
        except SystemFault as fault:
            failed = str(fault)[:300]
        text = " ".join(answer.text.split()) if answer.text else None
        label = answer.label if answer.label is None else answer.label[:200]
        name = self.system.spec.name
        return SystemReply(
            self.dialogue, self.turn, name, given, text or None, label, answer.confidence, failed, self.shadow
        )
