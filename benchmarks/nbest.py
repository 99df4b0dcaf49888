"""N-best lists: speed of all measures once read and from JSONL on disk, and memory per utterance.

`python -m benchmarks.nbest FILE` prints how many megabytes reading a file and taking every measure of it needed, in a
process of its own.
"""

from __future__ import annotations

import gc
import json
import math
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.measuring import MEGABYTE, Line, fastest
from benchmarks.memory import _resident as resident
from demur.nbest_lists.evaluate import nbest_values
from demur.nbest_lists.measures import FLOOR
from demur.nbest_lists.table import read_nbest

SIZES = (100_000, 400_000)
HYPOTHESES = 5
TURNS = 8
REPEATS = 5

ONCE_READ = 300_000
FROM_DISK = 100_000
"""Utterances a second that are asked for."""

GROWTH_BAR = 1.1
AGREEMENT_BAR = 1e-9

SLOTS: dict[str, tuple[str, ...]] = {
    "food": tuple(f"f{number}" for number in range(80)),
    "area": tuple("nsewc"),
    "pricerange": ("cheap", "moderate", "expensive"),
    "name": tuple(f"n{number}" for number in range(100)),
}


class Act(NamedTuple):
    """An act of three items: its name and two slots with their values."""

    text: str
    items: tuple[str, ...]


class Utterance(NamedTuple):
    """What was meant, and what was hypothesised how surely."""

    reference: Act
    hypotheses: list[tuple[Act, float]]


def lines() -> Iterator[Line]:
    """Every figure of the family."""
    with tempfile.TemporaryDirectory(prefix="demur-bench-") as folder:
        paths = {size: Path(folder) / f"{size}.jsonl" for size in SIZES}
        for size, path in paths.items():
            _write(path, utterances(size))
        yield from _speed(paths[SIZES[1]])
        yield from _memory(paths)
        yield _agreement(paths[SIZES[0]])


def utterances(n: int) -> Iterator[Utterance]:
    """A made-up log: every list has five hypotheses of three items, whose confidences sum to about 1."""
    rng = np.random.default_rng(1)
    acts = _acts()
    which = rng.integers(len(acts), size=(n, HYPOTHESES + 1)).tolist()
    sure = (0.999 * rng.dirichlet(np.ones(HYPOTHESES), size=n)).round(4).tolist()
    for (meant, *heard), masses in zip(which, sure, strict=True):
        yield Utterance(acts[meant], [(acts[one], mass) for one, mass in zip(heard, masses, strict=True)])


def _acts() -> list[Act]:
    """Every way to fill two slots."""
    names = list(SLOTS)
    filled = [
        (f"{one}={first}", f"{two}={second}")
        for place, one in enumerate(names)
        for two in names[place + 1 :]
        for first in SLOTS[one]
        for second in SLOTS[two]
    ]
    return [Act(f"inform({one}, {two})", ("inform", one, two)) for one, two in filled]


def _write(path: Path, log: Iterator[Utterance]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for number, one in enumerate(log):
            dialogue = f"d{number // TURNS}"
            heard = [{"act": act.text, "confidence": sure} for act, sure in one.hypotheses]
            names = {"id": f"{dialogue}/{number % TURNS}", "dialogue": dialogue}
            file.write(json.dumps({**names, "reference": one.reference.text, "hypotheses": heard}) + "\n")


def plain_ice(log: Sequence[Utterance]) -> float:
    """The ICE utterance by utterance with a dictionary each, in the manner of the challenge's own scorer."""
    cost, meant = 0.0, 0
    for one in log:
        sure: defaultdict[str, float] = defaultdict(float)
        for act, confidence in one.hypotheses:
            for item in act.items:
                sure[item] += confidence
        for item in {*one.reference.items, *sure}:
            probability = sure[item] if item in one.reference.items else 1 - sure[item]
            cost -= math.log(max(min(probability, 1.0), FLOOR))
        meant += len(one.reference.items)
    return cost / meant


def _speed(path: Path) -> Iterator[Line]:
    few, n = SIZES
    log, read = list(utterances(few)), read_nbest(path)
    gc.freeze()  # the plain scorer's rows are no part of what is measured
    took = fastest(
        {
            "once read": lambda: nbest_values(read),
            "from disk": lambda: nbest_values(read_nbest(path)),
            "plain": lambda: plain_ice(log),
        },
        repeats=REPEATS,
    )
    gc.unfreeze()
    each = {name: seconds / (few if name == "plain" else n) for name, seconds in took.items()}
    plain = f"ICE alone with a dictionary for each utterance: {1 / each['plain']:,.0f} utterances a second"
    for name, asked in (("once read", ONCE_READ), ("from disk", FROM_DISK)):
        title = f"every measure of N-best lists {name}, {n:.0e} utterances"
        against = f"{1 / each[name]:,.0f} utterances a second; asked for: {asked:,}"
        yield Line(f"{title}: CPU", each[name] * 1e6, "µs each", 1e6 / asked, against)
        yield Line(f"{title}: against a plain scorer", each[name] / each["plain"], "x CPU", None, plain)


def _agreement(path: Path) -> Line:
    n = SIZES[0]
    expected = plain_ice(list(utterances(n)))
    gap = abs(nbest_values(read_nbest(path))["ice"] / expected - 1)
    return Line(f"ICE of N-best lists, {n:.0e} utterances", gap, "apart", AGREEMENT_BAR, "the plain scorer")


def _memory(paths: dict[int, Path]) -> Iterator[Line]:
    extra = {n: _extra_memory(path) / n * MEGABYTE for n, path in paths.items()}
    few, many = SIZES
    against = "before the call, in a process of its own"
    for n in SIZES:
        title = f"every measure of N-best lists from disk, {n:.0e} utterances: extra resident memory"
        yield Line(title, extra[n], "bytes each", None, against)
    title = f"every measure of N-best lists from disk: memory per utterance, {many:.0e} utterances"
    yield Line(title, extra[many] / extra[few], "x", GROWTH_BAR, f"{few:.0e} utterances")


def _extra_memory(path: Path) -> float:
    command = [sys.executable, "-m", "benchmarks.nbest", str(path)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main(path: str) -> None:
    """Measure and print, after a first run on a few lines."""
    with tempfile.TemporaryDirectory(prefix="demur-bench-") as folder:
        first = Path(folder) / "few.jsonl"
        _write(first, utterances(1000))
        nbest_values(read_nbest(first))
    gc.collect()
    before = resident("VmRSS")
    nbest_values(read_nbest(path))
    print(resident("VmHWM") - before)


if __name__ == "__main__":
    main(*sys.argv[1:])
