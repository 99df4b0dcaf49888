"""The systems of a comparison side by side: what it asks of them, and how rows in memory answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from demur.core.arrays import Flags
from demur.core.stats.resampling import ComparedRows, Rows, Sample, replicate_together
from demur.core.stats.sweep import Sweep
from demur.returns.evaluate import Evaluations, evaluate
from demur.returns.pairing import Pairing


class ComparedSystems(ABC):
    """Two or more systems, in memory or counted elsewhere."""

    paired: bool
    note: str
    """How the systems were brought together."""
    dropped: Mapping[str, int]
    """Rows of each system without a counterpart."""
    notes: tuple[str, ...] = ()
    """What else is to be said, such as what is approximate."""

    @property
    @abstractmethod
    def rows(self) -> Mapping[str, ComparedRows]:
        """What is read of each system."""

    @abstractmethod
    def evaluate(self, **how: Any) -> Evaluations:
        """The evaluation of each system."""

    @abstractmethod
    def replicates(self, names: Sequence[str], replicates: int, seed: int) -> dict[str, Sweep]:
        """Replicates of some systems; where they are paired, the same units are drawn for all."""

    @abstractmethod
    def why_no_pairs(self, pair: tuple[str, str]) -> str | None:
        """Why single answers of two systems cannot be held against each other, or None where they can."""

    @abstractmethod
    def discordant(self, pair: tuple[str, str], thresholds: tuple[float, float]) -> tuple[int, int]:
        """Inputs on which only the first errs, and only the second, at a threshold of each."""

    def seed_of(self, name: str, seed: int) -> int:
        """The seed of a system that is drawn by itself."""
        return seed + sorted(self.rows).index(name)


class RowsTogether(ComparedSystems):
    """Systems whose rows are in memory."""

    def __init__(self, pairing: Pairing) -> None:
        frames = {name: frame.drop("id", strict=False) for name, frame in pairing.frames.items()}
        self.pairing = replace(pairing, frames=frames)  # rows stand side by side now, and ids take most of the room
        self.paired, self.note, self.dropped = pairing.paired, pairing.note, pairing.dropped

    @cached_property
    def read(self) -> Mapping[str, Rows]:
        """The rows of each system with units of its own."""
        return {name: Rows.from_frame(frame) for name, frame in self.pairing.frames.items()}

    @cached_property
    def rows(self) -> Mapping[str, Rows]:
        """The rows of each system; aligned ones share their units: dialogues, or the inputs by their ids."""
        rows = self.read
        if not self.pairing.aligned:
            return rows
        named = [part.unit for part in rows.values() if part.unit is not None]
        unit = named[0] if named else np.arange(next(iter(rows.values())).n)
        return {name: part.drawn_by(unit) for name, part in rows.items()}

    def evaluate(self, **how: Any) -> Evaluations:
        """The evaluation of each system."""
        return evaluate(self.pairing.frames, read=self.read, **how)

    def replicates(self, names: Sequence[str], replicates: int, seed: int) -> dict[str, Sweep]:
        """Replicates of some systems."""
        if self.paired:
            several = [self.rows[name] for name in names]
            return dict(zip(names, replicate_together(several, replicates=replicates, seed=seed), strict=True))
        return {name: Sample(self.rows[name], replicates, self.seed_of(name, seed)).drawn for name in names}

    def why_no_pairs(self, pair: tuple[str, str]) -> str | None:
        """Why single answers are no pairs."""
        one, two = (self.rows[name] for name in pair)
        if one.unit is not two.unit:
            return "inputs were tried several times, so single answers are no pairs"
        if one.stratum is not None:
            return "inputs were drawn by strata, and the exact test needs inputs that count alike"
        return None

    def discordant(self, pair: tuple[str, str], thresholds: tuple[float, float]) -> tuple[int, int]:
        """Inputs on which only one of the two errs."""
        one, two = (self._errs(name, threshold) for name, threshold in zip(pair, thresholds, strict=True))
        return int((one & ~two).sum()), int((two & ~one).sum())

    def _errs(self, name: str, threshold: float) -> Flags:
        rows = self.rows[name]
        returned = rows.answered & (rows.confidence >= threshold)  # nothing is at least NaN
        return np.asarray(returned & ~rows.right)
