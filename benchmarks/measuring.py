"""How time and memory are measured, and the line of the table that a measurement becomes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MEGABYTE = 1e6


@dataclass(frozen=True, slots=True)
class Line:
    """One figure: what it is, its bar if there is one, and what it is measured against."""

    name: str
    value: float
    unit: str
    bar: float | None
    against: str

    @property
    def held(self) -> bool | None:
        """Whether the figure is at most its bar; None where there is no bar."""
        return None if self.bar is None else self.value <= self.bar

    def to_dict(self) -> dict[str, Any]:
        """The line as results.json holds it."""
        shown = {"name": self.name, "value": self.value, "unit": self.unit, "bar": self.bar}
        return {**shown, "held": self.held, "against": self.against}


@dataclass(frozen=True, slots=True)
class Spent:
    """What a process took."""

    cpu: float
    wall: float


def fastest(works: Mapping[str, Callable[[], object]], *, repeats: int) -> dict[str, float]:
    """CPU seconds of each piece of work, best of several, taken in turns so that a busy spell hits all alike."""
    best = dict.fromkeys(works, float("inf"))
    for _ in range(repeats):
        for name, work in works.items():
            start = time.process_time()
            work()
            best[name] = min(best[name], time.process_time() - start)
    return best


def spend(command: Sequence[str]) -> Spent:
    """Run a command to its end, its output thrown away, and tell what that process took."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"exit code {process.returncode} from: {' '.join(command)}")
    return Spent(usage.ru_utime + usage.ru_stime, wall)


def cheapest(commands: Mapping[str, Sequence[str]], *, repeats: int) -> dict[str, Spent]:
    """The least that each command took, by part, over several runs taken in turns."""
    runs: dict[str, list[Spent]] = {name: [] for name in commands}
    for _ in range(repeats):
        for name, command in commands.items():
            runs[name].append(spend(command))
    return {name: Spent(min(run.cpu for run in many), min(run.wall for run in many)) for name, many in runs.items()}


def answer(code: str, *words: str) -> str:
    """What a fresh Python prints when it runs the code on some words."""
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    return done.stdout
