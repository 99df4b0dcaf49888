"""Populations whose error-return curve is known, and samples drawn from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import expit, ndtr, ndtri

from demur.core.stats.resampling import Rows
from demur.core.stats.sweep import Sweep
from demur.returns.table import Responses, responses

Array = NDArray[np.float64]

TURNS = 10
MOOD_IN_CONFIDENCE = 0.5
MOOD_IN_BEING_RIGHT = 0.8
ALIKE = 0.7
"""Share of the evidence, and of the luck, that two systems have in common on one input."""
POPULATION_POINTS = 200_000
COUNT = 10**9
"""Rows that a population stands for: so many that averages over their number are those of endless rows."""


@dataclass(frozen=True, slots=True)
class World:
    """Answers with evidence z, confidence expit(z), and right with probability expit(ease + slope z).

    z is standard normal. With `ties` confidences are rounded to one decimal. With `clustered` every ten turns share a
    dialogue whose mood, a standard normal, moves both the evidence and the log-odds of being right.
    """

    ease: float
    slope: float
    ties: bool = False
    clustered: bool = False

    def confidence(self, evidence: Array) -> Array:
        """The confidence that goes with evidence."""
        return np.round(expit(evidence), 1) if self.ties else np.asarray(expit(evidence))

    def rows(self, n: int, rng: np.random.Generator) -> Rows:
        """A sample of n rows."""
        mood, unit = self.moods(n, rng)
        evidence = rng.normal(size=n) + MOOD_IN_CONFIDENCE * mood
        right = rng.random(n) < self.chance(evidence, mood)
        return Rows(self.confidence(evidence), right, np.ones(n, np.bool_), np.ones(n), unit)

    def moods(self, n: int, rng: np.random.Generator) -> tuple[Array, NDArray[np.int64] | None]:
        """The mood of each turn, and the number of its dialogue."""
        if not self.clustered:
            return np.zeros(n), None
        unit = np.repeat(np.arange(n // TURNS), TURNS)
        return rng.normal(size=n // TURNS)[unit], unit

    def chance(self, evidence: Array, mood: Array | float) -> Array:
        """The chance of being right."""
        return np.asarray(expit(self.ease + self.slope * evidence + MOOD_IN_BEING_RIGHT * mood))

    def mean_chance(self, evidence: Array) -> Array:
        """The chance of being right given the evidence alone, the mood integrated out by quadrature."""
        if not self.clustered:
            return self.chance(evidence, 0.0)
        nodes, weights = np.polynomial.hermite_e.hermegauss(40)
        share = MOOD_IN_CONFIDENCE / (1 + MOOD_IN_CONFIDENCE**2)
        rest = np.sqrt(1 - share * MOOD_IN_CONFIDENCE)
        parts = [
            weight * self.chance(evidence, share * evidence + rest * node)
            for node, weight in zip(nodes, weights, strict=True)
        ]
        return np.asarray(np.sum(parts, axis=0) / weights.sum())


@cache
def population(world: World) -> Sweep:
    """The sweep of the whole population: evidence at its quantiles, so the counts are shares."""
    spread = np.sqrt(1 + MOOD_IN_CONFIDENCE**2) if world.clustered else 1.0
    evidence = spread * ndtri((np.arange(POPULATION_POINTS) + 0.5) / POPULATION_POINTS)
    chance = world.mean_chance(evidence) / POPULATION_POINTS
    threshold, place = np.unique(world.confidence(evidence), return_inverse=True)
    right = np.bincount(place, weights=chance)
    return Sweep(threshold, right, np.bincount(place) / POPULATION_POINTS - right, 0.0, COUNT)


def paired_rows(*worlds: World, n: int, rng: np.random.Generator) -> list[Rows]:
    """Samples of systems that answer the same inputs: evidence and luck are correlated between them."""
    mood, unit = worlds[0].moods(n, rng)
    shared_evidence, shared_luck = rng.normal(size=(2, n))
    unit = np.arange(n) if unit is None else unit

    def answers(world: World) -> Rows:
        own_evidence, own_luck = rng.normal(size=(2, n))
        evidence = _mixed(shared_evidence, own_evidence) + MOOD_IN_CONFIDENCE * mood
        right = ndtr(_mixed(shared_luck, own_luck)) < world.chance(evidence, mood)
        return Rows(world.confidence(evidence), right, np.ones(n, np.bool_), np.ones(n), unit)

    return [answers(world) for world in worlds]


def unpaired_rows(*worlds: World, n: int, rng: np.random.Generator) -> list[Rows]:
    """Samples of systems that answer different inputs."""
    return [world.rows(n, rng) for world in worlds]


def as_responses(several: Sequence[Rows], *, clustered: bool) -> Responses:
    """The table of systems' answers, as a user would read it."""
    frames = [_frame(f"system {place}", rows, clustered=clustered) for place, rows in enumerate(several)]
    return responses(pl.concat(frames))


def _mixed(shared: Array, own: Array) -> Array:
    return np.asarray(np.sqrt(ALIKE) * shared + np.sqrt(1 - ALIKE) * own)


def _frame(system: str, rows: Rows, *, clustered: bool) -> pl.DataFrame:
    n = rows.weight.size
    columns = {"id": np.arange(n), "confidence": rows.confidence, "correct": rows.right}
    frame = pl.DataFrame(columns).with_columns(system=pl.lit(system))
    return frame.with_columns(dialogue=pl.Series(rows.unit)) if clustered else frame
