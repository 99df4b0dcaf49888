"""Dialogues in the loop: how many a second, the memory of many, and the time to learn a policy."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measuring import Line, answer
from demur.lab.dialogue.channel import ChannelSettings
from demur.lab.dialogue.domain import TaskDomain
from demur.lab.dialogue.learning import Lessons, learn_policy
from demur.lab.dialogue.simulate import Condition, SimulationPlan, batch_rows

CORES = 2
BARS = {"state-machine": 300.0, "mdp": None, "belief": 30.0, "belief-learned": None}
"""Dialogues a second on two cores."""
NOISE, DIALOGUES = 0.3, {"state-machine": 600, "mdp": 600, "belief": 150, "belief-learned": 150}
MANY, MEMORY_BAR = 20_000, 600.0
PEAK = (
    "import sys; from pathlib import Path\n"
    "from demur.lab.jobs import simulate; from demur.lab.dialogue.simulate import write_calls\n"
    "write_calls(simulate('town', dialogues=int(sys.argv[1]), processes=1), Path(sys.argv[2]))\n"
    "status = Path('/proc/self/status').read_text().splitlines()\n"
    "print(next(line.split()[1] for line in status if line.startswith('VmHWM:')))"
)
LEARNING_BAR = 300.0
"""Seconds on two cores."""


def lines() -> Iterator[Line]:
    """Every figure of the family."""
    for manager, bar in BARS.items():
        yield _speed(manager, bar)
    yield _memory()
    for manager in ("mdp", "belief-learned"):
        yield _learning(manager)


def _speed(manager: str, bar: float | None) -> Line:
    """The time of one dialogue with two cores at work; processes share nothing, so it is half of one core's."""
    plan = SimulationPlan("town", (Condition(manager, ChannelSettings(noise=NOISE)),), DIALOGUES[manager])
    batch_rows(plan, plan.conditions[0], range(10))  # reads the domain, finds the density
    start = time.process_time()
    batch_rows(plan, plan.conditions[0], range(10, DIALOGUES[manager]))
    each = 1e3 * (time.process_time() - start) / (DIALOGUES[manager] - 10) / CORES
    against = f"noise {NOISE:g}, lists of 5; {1e3 / each:,.0f} dialogues a second on {CORES} cores"
    return Line(f"dialogue: {manager}, one dialogue", each, "ms", None if bar is None else 1e3 / bar, against)


def _memory() -> Line:
    with tempfile.TemporaryDirectory() as folder:
        peak = int(answer(PEAK, str(MANY), str(Path(folder) / "calls.parquet"))) / 1024
    return Line(f"dialogue: memory of {MANY:,} dialogues", peak, "MB", MEMORY_BAR, "state machine, one process")


def _learning(manager: str) -> Line:
    TaskDomain.read("town")
    lessons = Lessons("town", manager)
    start = time.process_time()
    learn_policy(lessons, processes=1)
    spent = (time.process_time() - start) / CORES
    played = lessons.seeds * lessons.rounds * lessons.dialogues * 2
    against = f"{played:,} dialogues, {lessons.seeds} seeds, shared by {CORES} cores"
    return Line(f"dialogue: learning the policy of {manager}", spent, "s", LEARNING_BAR, against)
