"""Drives the protocol of a study: commits what it decides, then acknowledges, shows and has work done."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from demur import __version__
from demur.study.design import WozDesign
from demur.study.folder import AUDIO, completion_code, study_key
from demur.study.input import NoisyInput, recognise
from demur.study.journal import JournalFault, StudyJournal, read_rows
from demur.study.messages import PageMessage
from demur.study.protocol import Command, Connect, Heard, PendingWork, Protocol, Refused, Started, Tick
from demur.study.state import StudyEvent, StudyState
from demur.study.systems import Question, StudySystem, conversation_of, systems_of, texts_of_models
from demur.study.views import audience, experimenter_view, participant_view, wizard_view

EXPERIMENTER = "experimenter"
RECOGNISERS = 8
"""Recordings that are recognised at once."""
MOST_WAITING = 200
"""Frames that may wait for a page; a page that takes none for so long is disconnected."""
UNWRITTEN = "This could not be stored. Please try again in a moment."
PAUSE = 1.0
"""Seconds before work is tried again that could not be stored."""
WATCHED_EVERY = 0.5
"""Seconds between what an experimenter is shown."""


class Connection:
    """A page of somebody: frames that wait to be sent, and what it was shown last."""

    def __init__(self, role: str, person: str) -> None:
        self.role, self.person = role, person
        self.frames: deque[bytes] = deque()
        self.wake = asyncio.Event()
        self.ended = ""
        """Why the page was disconnected, once it was."""
        self._shown = b""

    def send(self, frame: bytes) -> None:
        """Have a frame sent."""
        if len(self.frames) >= MOST_WAITING:
            self.end("too slow")
            return
        self.frames.append(frame)
        self.wake.set()

    def show(self, view: bytes, taken: str = "") -> None:
        """Have a view sent, if it differs from the last: a frame without news would tell that something happened.

        `taken` is the id of the message of this page that led to it, if one did: it is acknowledged in the same frame.
        """
        news = {"ack": taken} if taken else {}
        if view != self._shown:
            self._shown = view
            self.send(msgspec.json.encode({**news, "view": msgspec.Raw(view)}))
        elif taken:
            self.send(msgspec.json.encode(news))

    def end(self, why: str) -> None:
        """Let the page go."""
        self.ended = self.ended or why
        self.wake.set()


class Sent(NamedTuple):
    """A message that a page sent: its page, and the id that the page gave it."""

    page: Connection
    id: str

    @property
    def client(self) -> str:
        """The id in the journal, which no other page can use."""
        return f"{self.page.role}/{self.page.person}/{self.id}"


class StudyEngine:
    """One study that is being served."""

    def __init__(self, folder: Path, design: WozDesign, *, clock: Callable[[], float] = time.time) -> None:
        """Take up the study where the journal ends."""
        self.folder, self.design = folder, design
        self.key = study_key(folder)
        self.systems: dict[str, StudySystem] = systems_of(design, folder)
        self.labels = {name: system.texts for name, system in self.systems.items()}
        """What each system can carry out, and what it says then."""
        self.noise = NoisyInput(design, texts_of_models(self.systems))
        self.journal = StudyJournal(folder, deliver=self._deliver)
        self.connections: dict[tuple[str, str], Connection] = {}
        self.violations: Counter[str] = Counter()
        self.fault = ""
        """What is wrong with the disk, while something is."""
        self._offset = clock() - time.monotonic()
        self._loop: asyncio.AbstractEventLoop | None = None
        spoken = design.input.by == "speech"
        recognisers = RECOGNISERS if spoken else 1
        self._hearing = ThreadPoolExecutor(recognisers, thread_name_prefix="demur-noise")
        self._asking = ThreadPoolExecutor(16, thread_name_prefix="demur-system")
        self._work: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._watching: asyncio.TimerHandle | None = None
        if spoken:
            (folder / AUDIO).mkdir(mode=0o700, exist_ok=True)  # nobody else hears what people say
        self._load()

    @property
    def state(self) -> StudyState:
        """The state of the study."""
        return self.protocol.state

    @property
    def busy(self) -> bool:
        """Whether something that was said is still being heard or answered."""
        return bool(self._work)

    def now(self) -> float:
        """Seconds since 1970 by a clock that does not jump while the server runs."""
        return self._offset + time.monotonic()

    def _load(self) -> None:
        """Read the state from the journal."""
        rows = read_rows(self.folder)
        self.epoch = self.journal.epoch
        self.taken = {client for _, client in rows if client is not None}
        """Ids of messages that were taken, so that what is sent again is only acknowledged."""
        self.violations = Counter(event.body["rule"] for event, _ in rows if event.kind == "violated")
        state = StudyState.replay(self.design, (event for event, _ in rows))
        self.protocol = Protocol(self.design, state, self.labels)
        self._pending: dict[str, asyncio.Future[None]] = {}

    async def start(self) -> None:
        """Go on with what was under way."""
        self._loop = asyncio.get_running_loop()
        about = {"demur": __version__, "design": self.design.digest, "rates": self.noise.rates}
        await self.submit(Started(about))
        self._do(self.protocol.unfinished())

    def _deliver(self, calls: Callable[[], None]) -> None:
        """Have the loop do what follows from a commit."""
        with suppress(RuntimeError):  # the loop has ended
            if self._loop is not None:
                self._loop.call_soon_threadsafe(calls)

    async def close(self) -> None:
        """Let everybody go and the journal be complete."""
        for handle in (self._timer, self._watching):
            if handle is not None:
                handle.cancel()
        for task in list(self._work):
            task.cancel()
        for one in self.connections.values():
            one.end("the server ends")
        self._hearing.shutdown(wait=False, cancel_futures=True)
        self._asking.shutdown(wait=False, cancel_futures=True)
        for system in self.systems.values():
            system.close()
        await asyncio.get_running_loop().run_in_executor(None, self.journal.close)

    # Commands.

    async def submit(self, command: Command, person: str = "") -> list[StudyEvent]:
        """Have a command decided and its events committed; then pages are shown what changed, and work begins."""
        return await self._submit(command, person, None)

    async def take(self, message: PageMessage, page: Connection) -> None:
        """Have a page's message decided as any command, and acknowledge it once its events are committed.

        What was taken before is not taken twice: it is waited for until it is on the disk.
        """
        sent = Sent(page, message.id)
        if (earlier := self._pending.get(sent.client)) is not None:
            await asyncio.shield(earlier)
        elif sent.client not in self.taken and await self._submit(message, page.person, sent):
            return
        page.send(msgspec.json.encode({"ack": message.id}))

    async def _submit(self, command: Command, person: str, sent: Sent | None) -> list[StudyEvent]:
        try:
            events = self.protocol.decide(command, person, self.now())
        except Refused as refusal:
            if refusal.rule:
                await self._commit([self.protocol.violation(refusal, person, self.now())])
            raise
        if events:
            await self._commit(events, sent)
        self._schedule()
        return events

    async def _commit(self, events: list[StudyEvent], sent: Sent | None = None) -> None:
        committed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        committed.add_done_callback(_look_at)
        views = self._views(events)
        effects = self.protocol.effects(events)
        epoch, pending = self.epoch, self._pending
        client = sent.client if sent is not None else None
        if client is not None:
            pending[client] = committed

        def done(fault: Exception | None) -> None:
            if fault is None and not committed.done():
                committed.set_result(None)
            elif not committed.done():
                committed.set_exception(fault or JournalFault("cancelled"))

        self.journal.append(events, epoch, done, client)
        self._do(one for one in effects if one.work == "hear")  # which nobody learns of before it is on the disk too
        try:
            await asyncio.shield(committed)
        except JournalFault as fault:
            self._recover(epoch, str(fault))
            raise
        finally:
            if client is not None:
                pending.pop(client, None)
        self.fault = ""
        if client is not None:
            self.taken.add(client)
        self.violations.update(event.body["rule"] for event in events if event.kind == "violated")
        self._show(views, sent)
        self._watch()
        self._do(one for one in effects if one.work != "hear")

    def _show(self, views: dict[Connection, bytes], sent: Sent | None) -> None:
        """Show pages what is on the disk now, and acknowledge the message that led to it."""
        for connection, view in views.items():
            connection.show(view, sent.id if sent is not None and connection is sent.page else "")
        if sent is not None and sent.page not in views:
            sent.page.send(msgspec.json.encode({"ack": sent.id}))

    def _recover(self, epoch: int, why: str) -> None:
        """After a failed commit: the state is what the disk has, and everybody is shown that."""
        if epoch != self.epoch:
            return
        self.fault = why
        self._load()
        for (role, person), connection in self.connections.items():
            if role != EXPERIMENTER:
                one = self.state.participants.get(person) or self.state.wizards.get(person)
                if one is not None:
                    one.connected, one.gone = True, None
                connection.show(self.view(role, person))
        self._watch()
        asyncio.get_running_loop().call_later(PAUSE, lambda: self._do(self.protocol.unfinished()))
        self._schedule(PAUSE)

    # Views.

    def view(self, role: str, person: str) -> bytes:
        """What somebody's page shows, as JSON."""
        if role == "participant":
            view = participant_view(self.state, person, self._code)
        elif role == "wizard":
            view = wizard_view(self.state, person)
        else:
            view = {**experimenter_view(self.state, self.violations, self._code), "fault": self.fault}
        return msgspec.json.encode(view)

    def _code(self, person: str) -> str:
        return completion_code(self.key, person)

    def _views(self, events: Iterable[StudyEvent]) -> dict[Connection, bytes]:
        """What changes for whom by events: made now, as later ones may not be on the disk when it is shown."""
        there = [(key, self.connections[key]) for key in audience(self.state, events) if key in self.connections]
        return {connection: self.view(*key) for key, connection in there}

    def _watch(self) -> None:
        """Show the experimenter the study, now and then."""
        if self._watching is None and (EXPERIMENTER, "") in self.connections:
            self._watching = asyncio.get_running_loop().call_later(WATCHED_EVERY, self._show_experimenter)

    def _show_experimenter(self) -> None:
        self._watching = None
        connection = self.connections.get((EXPERIMENTER, ""))
        if connection is not None:
            connection.show(self.view(EXPERIMENTER, ""))

    # Pages come and go.

    async def connect(self, connection: Connection) -> None:
        """Connect a page; one that the same person had before is disconnected."""
        key = connection.role, connection.person
        before = self.connections.get(key)
        self.connections[key] = connection
        if before is not None:
            before.end("replaced")
            second = StudyEvent(at=self.now(), kind="second_page", person=connection.person)
            await self._commit([second])
        await self.submit(Connect(True, connection.role), connection.person)
        connection.show(self.view(*key))

    async def disconnect(self, connection: Connection) -> None:
        """A page is gone."""
        key = connection.role, connection.person
        if self.connections.get(key) is connection:
            del self.connections[key]
            with suppress(JournalFault):
                await self.submit(Connect(False, connection.role), connection.person)

    # Time and work.

    def _schedule(self, least: float = 0.0) -> None:
        """Have time looked at when something is due next; a timer that ends sooner than that does no harm."""
        deadline = self.protocol.deadline()
        if deadline is None:
            return
        loop = asyncio.get_running_loop()
        when = loop.time() + max(deadline - self.now(), least)
        if self._timer is not None and (self._timer.when() > when or least):
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = loop.call_at(when, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._begin(self._pass_time())

    async def _pass_time(self) -> None:
        with suppress(JournalFault):
            await self.submit(Tick())

    def _do(self, effects: Iterable[PendingWork]) -> None:
        for effect in effects:
            self._begin(self._carry_out(effect))

    def _begin(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    async def _carry_out(self, effect: PendingWork) -> None:
        talk = self.state.talks.get(effect.dialogue)
        if talk is None or len(talk.exchanges) < effect.turn:
            return  # it was never written
        loop, epoch = asyncio.get_running_loop(), self.epoch
        if effect.work == "hear":
            result: Command = await loop.run_in_executor(self._hearing, self._heard(effect))
            if epoch != self.epoch:
                return  # the utterance was never written; or it is heard again
        else:
            asked = self._question(effect)
            result = await loop.run_in_executor(self._asking, asked.ask)
        with suppress(JournalFault):  # done again once the disk has room
            await self.submit(result)

    def _heard(self, effect: PendingWork) -> Callable[[], Heard]:
        talk = self.state.talks[effect.dialogue]
        one, level = talk.exchanges[effect.turn - 1], talk.level

        def hear() -> Heard:
            if self.design.input.by == "speech":
                file = audio_name(effect.dialogue, effect.turn)
                heard, about = recognise(self.design, self.folder, file, level)
            else:
                heard, about = self.noise.hear(one.typed, level, effect.dialogue, effect.turn)
            return Heard(effect.dialogue, effect.turn, heard, about)

        return hear

    def _question(self, effect: PendingWork) -> Question:
        conversation = conversation_of(self.state, effect.dialogue, effect.turn)
        system, shadow = self.systems[effect.system], effect.work == "shadow"
        return Question(system, conversation, effect.dialogue, effect.turn, shadow)


def audio_name(dialogue: str, turn: int) -> str:
    """The file of a spoken utterance, in the folder of the study."""
    return f"{AUDIO}/{dialogue}-{turn:03}.wav"


def _look_at(future: asyncio.Future[None]) -> None:
    """Keep the loop from complaining of a fault that nobody waits for any more."""
    if not future.cancelled():
        future.exception()
