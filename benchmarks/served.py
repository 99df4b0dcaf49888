"""A workbench in processes of its own: what it answers, how long that takes it, and the memory it needs.

Time and memory of processes are read from /proc, so this needs Linux.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from urllib.request import urlopen

from benchmarks.measuring import MEGABYTE, Spent
from benchmarks.startup import COMMAND

LOOKED_AT_EVERY, LOOKS_AT_THE_SAME = 0.01, 20
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Server:
    """A workbench that runs."""

    url: str
    pid: int
    largest: float = 0.0
    """Most megabytes that its processes had resident at one moment."""
    _ended: Event = field(default_factory=Event)

    def answer(self, path: str) -> bytes:
        """What it answers."""
        with urlopen(self.url + path, timeout=300) as response:
            content: bytes = response.read()
        return content

    def spent(self, path: str) -> Spent:
        """What an answer takes: until it is there, and of all processes of the server."""
        wall, cpu = time.perf_counter(), self._cpu()
        self.answer(path)
        return Spent(self._cpu() - cpu, time.perf_counter() - wall)

    def _processes(self) -> list[int]:
        found, waiting = [], [self.pid]
        while waiting:
            found.append(waiting.pop())
            with suppress(OSError):
                for task in Path(f"/proc/{found[-1]}/task").iterdir():
                    waiting += map(int, (task / "children").read_text(encoding="ascii").split())
        return found

    def _cpu(self) -> float:
        return sum(_ticks(pid) for pid in self._processes()) / TICKS

    def watch(self) -> None:
        """Look at the memory again and again until the server has ended; for new processes less often."""
        processes: list[int] = []
        looks = 0
        while not self._ended.wait(LOOKED_AT_EVERY):
            if looks % LOOKS_AT_THE_SAME == 0:
                processes = self._processes()
            self.largest = max(self.largest, sum(map(_resident, processes)))
            looks += 1

    def unwatch(self) -> None:
        """Look no more."""
        self._ended.set()


def _ticks(pid: int) -> int:
    """Time in user and system mode, in ticks of the clock, of a process and of its children that have ended."""
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return sum(map(int, fields[11:15]))
    return 0


def _resident(pid: int) -> float:
    with suppress(OSError):
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGESIZE") / MEGABYTE
    return 0.0


@contextmanager
def served(store: Path) -> Iterator[Server]:
    """Serve a store on a free port until the work with it is done."""
    command = [COMMAND, "serve", "--store", str(store), "--port", "0", "--no-token"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        server = Server(_link(process), process.pid)
        watcher = Thread(target=server.watch, daemon=True)
        watcher.start()
        try:
            yield server
        finally:
            server.unwatch()
            watcher.join()
            process.send_signal(signal.SIGINT)
            process.wait(timeout=30)


def _link(process: subprocess.Popen[str]) -> str:
    for line in process.stderr or ():
        for word in line.split():
            if word.startswith("http://"):
                return word.rstrip("/")
    raise RuntimeError("the workbench ended before it could be opened")
