"""A study under load: from send to delivery with every event on the disk before, and what kill -9 loses (nothing)."""

from __future__ import annotations

import asyncio
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
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from benchmarks.measuring import Line

DIALOGUES, SECONDS, PACE = 200, 20.0, 4.0
"""Dialogues at once, how long they talk, and seconds between the utterances of one."""
BAR = 50.0
"""Milliseconds from send to delivery, of 99 in 100."""
TALKERS, KILLS = 40, 10
"""Participants who talk to a system without a pause, and how often the server is killed meanwhile."""

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
            times, spent = asyncio.run(_load(base, tokens, process))
    times.sort()
    who = f"{DIALOGUES} participants and {DIALOGUES} wizards who answer at once"
    against = f"half of the time from utterance to answer, {len(times):,} times; {who}; one utterance each {PACE:g} s"
    for share, bar in ((0.5, None), (0.99, BAR)):
        value = 1000 * times[min(len(times) - 1, int(share * len(times)))]
        yield Line(f"study, {DIALOGUES} dialogues: send to delivery, p{100 * share:g}", value, "ms", bar, against)
    each = 1000 * spent / len(times)
    yield Line(f"study, {DIALOGUES} dialogues: processor of the server for an exchange", each, "ms CPU", None, against)


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
    against = f"{len(acknowledged):,} utterances acknowledged to {TALKERS} participants; kill -9 {KILLS} times"
    for what, value in (
        ("acknowledged utterances lost", len(set(acknowledged) - set(said))),
        ("utterances doubled", sum(times - 1 for times in said.values())),
        ("dialogues that do not go on", TALKERS - going_on + sum(one.stopped for one in people)),
    ):
        yield Line(f"study, {TALKERS} dialogues, killed {KILLS} times: {what}", value, "times", 0, against)


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


class _Client:
    """A page: its socket, and what it was shown last."""

    def __init__(self, base: str, role: str, cookie: str) -> None:
        self.base, self.role, self.cookie = base, role, cookie
        self.view: dict[str, Any] = {}
        self.number = 0
        self.taken: set[str] = set()
        """Ids of messages that were acknowledged."""
        self.changed = asyncio.Condition()

    async def open(self, stack: AsyncExitStack) -> None:
        """Connect, and go on reading."""
        from websockets.asyncio.client import connect
        from websockets.typing import Origin

        address = f"{self.base.replace('http', 'ws')}/ws/{self.role}"
        opening: Any = connect(
            address,
            origin=Origin(self.base),
            additional_headers={"Cookie": self.cookie},
            compression=None,
            ping_interval=None,
        )
        self.socket = await stack.enter_async_context(opening)
        self.view, self.closed = {}, False
        self.reading = asyncio.create_task(self._read())
        await self.until(lambda: bool(self.view))

    async def _read(self) -> None:
        from websockets.exceptions import ConnectionClosed

        with suppress(ConnectionClosed):
            async for frame in self.socket:
                content = json.loads(frame)
                async with self.changed:
                    self.view = content.get("view", self.view)
                    self.taken |= {content["ack"]} if "ack" in content else set()
                    self.changed.notify_all()
        async with self.changed:
            self.closed = True
            self.changed.notify_all()

    async def send(self, kind: str, **fields: Any) -> None:
        """Send a message."""
        self.number += 1
        await self.socket.send(json.dumps({"kind": kind, "id": f"message-{self.number:06}", **fields}))

    async def until(self, holds: Any) -> None:
        """Wait until something holds; a connection that ends before is an error."""
        async with self.changed:
            await self.changed.wait_for(lambda: self.closed or holds())
            if not holds():
                raise ConnectionResetError("the server is gone")


class _Talker(_Client):
    """A participant who talks without a pause, and sends again what was not acknowledged when the server died."""

    def __init__(self, base: str, cookie: str) -> None:
        super().__init__(base, "participant", cookie)
        self.acknowledged: list[str] = []
        self.stopped = False

    async def begin(self, stack: AsyncExitStack) -> None:
        """Take part, up to the first utterance."""
        await self.open(stack)
        await self.send("consent", agree=True)
        await self.until(lambda: self.view["stage"] == "briefing")
        await self.send("begin")
        await self.until(lambda: self.view["stage"] == "talking")

    async def talk(self, stack: AsyncExitStack) -> None:
        """Talk until the server dies; to another server after that."""
        from websockets.exceptions import ConnectionClosed

        with suppress(ConnectionClosed, OSError):
            if self.closed:
                await self.open(stack)
                self.stopped |= self.view["stage"] != "talking"
            while True:
                await self.until(lambda: not self.view["waiting"])
                await self._say()
                await asyncio.sleep(0.25)  # no faster than the server takes messages

    async def _say(self) -> None:
        """Say something, under the id of the last message where that was not acknowledged."""
        if f"message-{self.number:06}" not in self.taken:
            self.number -= 1
        number = self.number + 1
        text = f"{self.cookie[-6:]} says {number}"
        await self.send("say", text=text)
        await self.until(lambda: f"message-{number:06}" in self.taken)
        self.acknowledged.append(text)


async def _survive(folder: str) -> list[_Talker]:
    """Participants who have talked while the server was killed, and to one more that goes on."""
    chance, people, port = random.Random(1), list[_Talker](), "0"
    for _ in range(KILLS + 1):
        async with AsyncExitStack() as stack:
            with _served(folder, port) as (base, tokens, _):
                port = base.rpartition(":")[2]
                for _ in range(TALKERS - len(people)):
                    people.append(_Talker(base, await asyncio.to_thread(_join, base, tokens["Participants"])))
                    await people[-1].begin(stack)
                talks = [asyncio.create_task(one.talk(stack)) for one in people]
                await asyncio.sleep(2 + 2 * chance.random())
            await asyncio.gather(*talks)
    return people


async def _load(base: str, tokens: dict[str, str], process: int) -> tuple[list[float], float]:
    """Seconds from send to delivery, both ways, of all dialogues; and of processor that the server took for them."""
    port = base.rpartition(":")[2]
    times: list[float] = []
    async with AsyncExitStack() as stack:
        wizards = [
            _Client(base, "wizard", f"demur_token_{port}_wizard={tokens[f'Wizard w{number:03}']}")
            for number in range(DIALOGUES)
        ]
        people = []
        for number in range(DIALOGUES):
            people.append(_Client(base, "participant", await asyncio.to_thread(_join, base, tokens["Participants"])))
            await wizards[number].open(stack)
            await wizards[number].send("available", on=True)
            await people[number].open(stack)
        for person in people:
            await person.send("consent", agree=True)
            await person.until(lambda person=person: person.view["stage"] == "briefing")
            await person.send("begin")
        for person in people:
            await person.until(lambda person=person: person.view["stage"] == "talking")
        end, before = time.monotonic() + SECONDS, _cpu(process)
        ended: list[None] = []
        talks = [_talk(one, times, ended, end) for one in people]
        await asyncio.gather(*talks, *(_answer(one, ended) for one in wizards))
        return times, _cpu(process) - before


def _join(base: str, token: str) -> str:
    time.sleep(0.21)  # no faster than the server lets people in
    body = json.dumps({"token": token}).encode()
    request = urllib.request.Request(f"{base}/join", body, {"X-Demur": "1"}, method="POST")
    with urllib.request.urlopen(request) as answer:
        return str(answer.headers["set-cookie"]).partition(";")[0]


async def _talk(one: _Client, times: list[float], ended: list[None], end: float) -> None:
    """Say something now and then; what passes until the wizard's answer is there are two deliveries."""
    chance = random.Random(one.cookie)
    while time.monotonic() < end:
        await asyncio.sleep(chance.uniform(0.5, 1.5) * PACE)
        text = f"when do you open on sunday number {chance.randrange(1000)}"
        lines = len(one.view["lines"])
        started = time.monotonic()
        await one.send("say", text=text)
        await one.until(lambda lines=lines: len(one.view["lines"]) >= lines + 2)
        times.append((time.monotonic() - started) / 2)
    ended.append(None)


async def _answer(one: _Client, ended: list[None]) -> None:
    """Answer at once whatever is heard."""
    while len(ended) < DIALOGUES:
        try:
            await asyncio.wait_for(one.until(lambda: one.view.get("open")), 1.0)
        except TimeoutError:
            continue
        asked, dialogue = one.view.pop("open"), one.view["dialogue"]
        await one.send("reply", dialogue=dialogue, turn=asked["turn"], given=asked["given"], response="hours")
