"""A study under load: from send to delivery with every event on the disk before, and what kill -9 loses (nothing)."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.measuring import Line

DIALOGUES, SECONDS, PACE = 200, 20.0, 4.0
"""Dialogues at once, how long they talk, and seconds between the utterances of one."""
BAR = 50.0
"""Milliseconds from send to delivery, of 99 in 100."""
KILLS, REST = 10, 1.0
"""How often the server is killed while everybody talks to a system, and seconds from an acknowledgement to the next
utterance."""

DESIGN = """
name = "load"
title = "Load"
consent = "Yes?"
[metric]
from = "said"
[input]
levels = [0.3]
nbest = 3
[interface]
latency = "none"
connect = 0.0
turns = 200
[[performers]]
name = "wizard"
kind = "wizard"
[pairing]
wait = 600.0
[wizard]
names = [{names}]
[[tasks]]
id = "hours"
goal = "Find out when they open."
[[responses]]
id = "hours"
text = "We open at ten o'clock."
"""


def lines() -> Iterator[Line]:
    """Every figure of the family."""
    yield from _delivery()
    yield from _killed()


def _delivery() -> Iterator[Line]:
    names = ", ".join(f'"w{number:03}"' for number in range(DIALOGUES))
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "study.toml").write_text(DESIGN.format(names=names), encoding="utf-8")
        with _served(folder) as (base, tokens, process):
            load, spent, own = asyncio.run(_load(base, tokens, process))
    times = sorted(load.heard + load.answered)
    who = f"{DIALOGUES} participants, one utterance each {PACE:g} s, and {DIALOGUES} wizards who answer at once"
    against = f"both ways, {len(times):,} times; {who}; pages in one other process"
    for share, bar in ((0.5, None), (0.99, BAR)):
        name = f"study, {DIALOGUES} dialogues: send to delivery, p{100 * share:g}"
        yield Line(name, 1000 * _quantile(times, share), "ms", bar, against)
    late = 1000 * _quantile(load.late, 0.99)
    yield Line(f"study, {DIALOGUES} dialogues: how late the pages themselves send, p99", late, "ms", None, who)
    for whose, seconds in (("server", spent), ("pages", own)):
        each = 1000 * seconds / len(load.answered)
        yield Line(f"study, {DIALOGUES} dialogues: processor of the {whose} for an exchange", each, "ms CPU", None, who)


def _quantile(times: list[float], share: float) -> float:
    return sorted(times)[min(len(times) - 1, int(share * len(times)))]


def _killed() -> Iterator[Line]:
    """What is missing after the server was killed again and again, of all that it had acknowledged."""
    from demur.study.export import StudyRecord

    with tempfile.TemporaryDirectory() as folder:
        text = DESIGN.format(names="").replace('kind = "wizard"', 'kind = "python"\ncall = "echo:answer"')
        (Path(folder) / "study.toml").write_text(text, encoding="utf-8")
        (Path(folder) / "echo.py").write_text("def answer(conversation):\n    return 'Yes.'\n", encoding="utf-8")
        people = asyncio.run(_survive(folder))
        record = StudyRecord.of(folder)
    said = Counter(event.body["text"] for event in record.of_kind("said"))
    acknowledged = [text for one in people for text in one.acknowledged]
    going_on = sum(talk.state == "talking" for talk in record.state.talks.values())
    against = f"{len(acknowledged):,} utterances acknowledged to {DIALOGUES} participants; kill -9 {KILLS} times"
    for what, value in (
        ("acknowledged utterances lost", len(set(acknowledged) - set(said))),
        ("utterances doubled", sum(times - 1 for times in said.values())),
        ("dialogues that do not go on", DIALOGUES - going_on + sum(one.stopped for one in people)),
    ):
        yield Line(f"study, {DIALOGUES} dialogues, killed {KILLS} times: {what}", value, "times", 0, against)


@contextmanager
def _served(folder: str, port: str = "0") -> Iterator[tuple[str, dict[str, str], int]]:
    """A server of a study: its address, the tokens of its links, and its process, which is killed at the end."""
    command = [sys.executable, "-m", "demur", "study", "serve", folder, "--port", port]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        links: dict[str, str] = {}
        for line in process.stderr:
            if line.startswith("Everything is kept"):
                break
            name, _, link = line.strip().partition(": http")
            links[name] = f"http{link}"
        base = re.match(r"http://[^/]+", links["Participants"])
        assert base is not None
        try:
            yield base[0], {name: link.rpartition("/")[2] for name, link in links.items()}, process.pid
        finally:
            process.kill()


def _cpu(process: int) -> float:
    """Seconds of processor that a process has taken."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Shown(msgspec.Struct):
    """What the load needs of a view; the rest of it is passed over."""

    stage: str = ""
    waiting: bool = False
    lines: list[msgspec.Raw] = []
    dialogue: str = ""
    open: Asked | None = None


class Asked(msgspec.Struct):
    """An utterance that a wizard is to answer."""

    turn: int
    given: str


class Frame(msgspec.Struct):
    """What a server sends to a page."""

    ack: str = ""
    view: Shown | None = None
    refused: str = ""
    closed: str = ""


FRAMES = msgspec.json.Decoder(Frame)


class Page(asyncio.Protocol):
    """A page as cheap as can be: a socket without a library, frames read once, and nothing drawn."""

    def __init__(self, base: str, role: str, cookie: str) -> None:
        self.base, self.role, self.cookie = base, role, cookie
        self.view, self.number, self.taken = Shown(), 0, ""
        self.gone = True
        self.wanted: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []

    async def open(self) -> None:
        """Connect, and wait for the first view."""
        self.content, self.greeted, self.gone, self.view = bytearray(), False, False, Shown()
        host, _, port = self.base.rpartition("/")[2].partition(":")
        self.transport, _ = await asyncio.get_running_loop().create_connection(lambda: self, host, int(port))
        lines = (
            f"GET /ws/{self.role} HTTP/1.1",
            f"Host: {host}:{port}",
            f"Origin: {self.base}",
            f"Cookie: {self.cookie}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        )
        self.transport.write("\r\n".join((*lines, "", "")).encode())
        await self.until(lambda: bool(self.view.stage))

    def data_received(self, data: bytes) -> None:
        """Read whole frames off what has come so far."""
        now = time.monotonic()
        self.content += data
        if not self.greeted:
            before, found, after = self.content.partition(b"\r\n\r\n")
            if not found:
                return
            if b" 101 " not in before[:16]:
                raise ConnectionError(bytes(before[:200]))
            self.greeted, self.content = True, after
        while (frame := self._frame()) is not None:
            kind, content = frame
            if kind == 9:
                self._put(10, content)
            elif kind == 1:
                self._take(FRAMES.decode(content), now)

    def _frame(self) -> tuple[int, bytes] | None:
        """The next whole frame: its kind and content. What servers send is neither masked nor in parts."""
        content = self.content
        if len(content) < 2:
            return None
        start, size = 2, content[1]
        if size == 126:
            start, size = 4, int.from_bytes(content[2:4], "big")
        elif size == 127:
            start, size = 10, int.from_bytes(content[2:10], "big")
        if len(content) < max(start + size, start):
            return None
        kind, whole = content[0] & 15, bytes(content[start : start + size])
        del content[: start + size]
        return kind, whole

    def _take(self, frame: Frame, now: float) -> None:
        if frame.refused or frame.closed:
            raise RuntimeError(f"{self.role} was refused: {frame.refused or frame.closed}")
        self.taken = frame.ack or self.taken
        if frame.view is not None:
            before, self.view = self.view, frame.view
            self.changed(before, now)
        if self.wanted:
            self._wake()

    def changed(self, before: Shown, now: float) -> None:
        """Another view has come."""

    def _wake(self) -> None:
        for one in list(self.wanted):
            if self.gone or one[0]():
                self.wanted.remove(one)
                if not one[1].done():
                    one[1].set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """The server is gone."""
        self.gone = True
        self._wake()

    def send(self, kind: str, **fields: Any) -> str:
        """Send a message; its id."""
        self.number += 1
        client = f"message-{self.number:06}"
        self._put(1, msgspec.json.encode({"kind": kind, "id": client, **fields}))
        return client

    def _put(self, kind: int, content: bytes) -> None:
        """Send a frame, masked with zeros: whoever takes it takes as long as with any other mask."""
        size = len(content)
        length = bytes((128 | size,)) if size < 126 else b"\xfe" + size.to_bytes(2, "big")
        self.transport.write(bytes((128 | kind,)) + length + bytes(4) + content)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds; a connection that ends before is an error."""
        if not holds() and not self.gone:
            future = asyncio.get_running_loop().create_future()
            self.wanted.append((holds, future))
            await future
        if not holds():
            raise ConnectionResetError("the server is gone")

    async def taken_of(self, client: str) -> None:
        """Wait until a message is acknowledged."""
        await self.until(lambda: self.taken == client)


class Load:
    """What is measured while everybody talks."""

    def __init__(self) -> None:
        self.heard: list[float] = []
        """Seconds from an utterance to the wizard's page."""
        self.answered: list[float] = []
        """Seconds from an answer to the participant's page."""
        self.late: list[float] = []
        """Seconds by which utterances were sent later than planned: how far behind the pages themselves are."""
        self.talking = True


class Speaker(Page):
    """A participant who says something now and then, at times that do not depend on the server."""

    def __init__(self, load: Load, base: str, cookie: str) -> None:
        super().__init__(base, "participant", cookie)
        self.load, self.chance = load, random.Random(cookie)
        self.due = self.said = self.replied = 0.0
        self.behind = False
        """Whether the last answer has not come, though it is time for the next utterance."""

    def plan(self) -> None:
        """Say something a while after the time of the last utterance."""
        self.due += self.chance.uniform(0.5, 1.5) * PACE
        asyncio.get_running_loop().call_at(self.due, self.say)

    def say(self) -> None:
        """Say something, timed from when it was planned; where the last answer has not come, as soon as it has."""
        self.behind = self.view.waiting
        if self.behind or not self.load.talking:
            return
        self.load.late.append(time.monotonic() - self.due)
        self.said = self.due
        self.send("say", text=f"when do you open on sunday number {self.chance.randrange(1000)}")
        self.plan()

    def changed(self, before: Shown, now: float) -> None:
        """Time an answer."""
        if before.waiting and not self.view.waiting:
            self.load.answered.append(now - self.replied)
            if self.behind:
                self.say()


class Answerer(Page):
    """A wizard who answers at once whatever is heard."""

    def __init__(self, load: Load, base: str, cookie: str, speakers: dict[str, Speaker]) -> None:
        super().__init__(base, "wizard", cookie)
        self.load, self.speakers, self.last = load, speakers, ("", 0)

    def changed(self, before: Shown, now: float) -> None:
        """Time an utterance, and answer it."""
        asked = self.view.open
        if asked is None or (self.view.dialogue, asked.turn) == self.last:
            return
        self.last = self.view.dialogue, asked.turn
        speaker = self.speakers[self.view.dialogue]
        self.load.heard.append(now - speaker.said)
        speaker.replied = time.monotonic()
        self.send("reply", dialogue=self.view.dialogue, turn=asked.turn, given=asked.given, response="hours")


class Talker(Page):
    """A participant who talks without end, and sends again what was not acknowledged when the server died."""

    def __init__(self, base: str, cookie: str) -> None:
        super().__init__(base, "participant", cookie)
        self.acknowledged: list[str] = []
        self.stopped = False

    async def talk(self) -> None:
        """Talk until the server dies; to another server after that."""
        with suppress(ConnectionError):
            if self.gone:
                await self.open()
                self.stopped |= self.view.stage != "talking"
            while True:
                await self.until(lambda: not self.view.waiting)
                await self._say()
                await asyncio.sleep(REST)

    async def _say(self) -> None:
        """Say something, under the id of the last message where that was not acknowledged."""
        if self.taken != f"message-{self.number:06}":
            self.number -= 1
        text = f"{self.cookie[-6:]} says {self.number + 1}"
        await self.taken_of(self.send("say", text=text))
        self.acknowledged.append(text)


async def _enter(page: Page) -> None:
    """Take part, up to the first utterance."""
    await page.open()
    page.send("consent", agree=True)
    await page.until(lambda: page.view.stage == "briefing")
    page.send("begin")
    await page.until(lambda: page.view.stage == "talking")


async def _load(base: str, tokens: dict[str, str], process: int) -> tuple[Load, float, float]:
    """What was measured, and the seconds of processor that the server and this process took for it."""
    port, load = base.rpartition(":")[2], Load()
    speakers: dict[str, Speaker] = {}
    for number in range(DIALOGUES):
        cookie = f"demur_token_{port}_wizard={tokens[f'Wizard w{number:03}']}"
        wizard = Answerer(load, base, cookie, speakers)
        await wizard.open()
        await wizard.taken_of(wizard.send("available", on=True))
        speaker = Speaker(load, base, await asyncio.to_thread(_join, base, tokens["Participants"], number))
        speakers[f"d{number + 1:05}"] = speaker
        await _enter(speaker)
    loop = asyncio.get_running_loop()
    gc.collect()
    gc.freeze()
    for speaker in speakers.values():
        speaker.due = loop.time() - 0.5 * PACE
        speaker.plan()
    before, own = _cpu(process), time.process_time()
    await asyncio.sleep(SECONDS)
    spent, own = _cpu(process) - before, time.process_time() - own
    load.talking = False
    await asyncio.sleep(1.0)  # for what is still under way
    return load, spent, own


def _join(base: str, token: str, number: int) -> str:
    """Become a participant: the cookie. The server lets 60 in at once, and 5 a second after that."""
    time.sleep(0.21 if number > 50 else 0)
    body = json.dumps({"token": token}).encode()
    request = urllib.request.Request(f"{base}/join", body, {"X-Demur": "1"}, method="POST")
    with urllib.request.urlopen(request) as answer:
        return str(answer.headers["set-cookie"]).partition(";")[0]


async def _survive(folder: str) -> list[Talker]:
    """Participants who have talked while the server was killed, and to one more that goes on."""
    chance, people, port = random.Random(1), list[Talker](), "0"
    for _ in range(KILLS + 1):
        with _served(folder, port) as (base, tokens, _):
            port = base.rpartition(":")[2]
            for number in range(len(people), DIALOGUES):
                people.append(Talker(base, await asyncio.to_thread(_join, base, tokens["Participants"], number)))
                await _enter(people[-1])
            talks = [asyncio.create_task(one.talk()) for one in people]
            await asyncio.sleep(2 + 2 * chance.random())
        await asyncio.gather(*talks)
    return people
