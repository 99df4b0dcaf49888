"""Populations shaped like logs of language models: confidences heaped at a few round numbers, most of them high."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit

from demur.core.stats.resampling import Rows
from demur.core.stats.sweep import Sweep

Array = NDArray[np.float64]
Drawn = Literal["inputs", "dialogues", "weights"]

CONFIDENCE = np.array([0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.99, 1.0])
MASS = np.array([0.03, 0.02, 0.05, 0.1, 0.1, 0.25, 0.25, 0.05, 0.15])
SLOPE = 6.0
"""By how much the log-odds of being right rise with a confidence of 1."""
TURNS, MOOD = 10, 0.8
WEIGHTS = np.array([0.5, 1.0, 3.0])
COUNT = 10**9


@dataclass(frozen=True, slots=True)
class Heaps:
    """Answers with a stated confidence that are right with log-odds linear in it, and with a given accuracy in all.

    Of "dialogues" ten turns share a mood, a normal variable, that moves their log-odds. Of "weights" rows count 0.5, 1
    or 3, whatever their answer.
    """

    accuracy: float
    drawn: Drawn = "inputs"

    @property
    def ease(self) -> float:
        """The log-odds of being right at a confidence of .9."""
        return float(brentq(lambda ease: MASS @ self.mean_chance(ease) - self.accuracy, -20, 20))

    def mean_chance(self, ease: float) -> Array:
        """The chance of being right at each confidence, the mood integrated out by quadrature."""
        log_odds = ease + SLOPE * (CONFIDENCE - 0.9)
        if self.drawn != "dialogues":
            return np.asarray(expit(log_odds))
        nodes, weights = np.polynomial.hermite_e.hermegauss(40)
        return np.asarray(expit(log_odds[:, None] + MOOD * nodes) @ weights / weights.sum())

    def rows(self, n: int, rng: np.random.Generator) -> Rows:
        """A sample of n rows."""
        place, unit, mood = rng.choice(CONFIDENCE.size, n, p=MASS), None, np.zeros(n)
        if self.drawn == "dialogues":
            unit = np.repeat(np.arange(n // TURNS), TURNS)
            mood = rng.normal(size=n // TURNS)[unit]
        chance = expit(_ease(self) + SLOPE * (CONFIDENCE[place] - 0.9) + MOOD * mood)
        weight = rng.choice(WEIGHTS, n) if self.drawn == "weights" else np.ones(n)
        return Rows(CONFIDENCE[place], rng.random(n) < chance, np.ones(n, np.bool_), weight, unit)


@cache
def _ease(world: Heaps) -> float:
    return world.ease


@cache
def heaped_population(world: Heaps) -> Sweep:
    """The sweep of the whole population."""
    chance = world.mean_chance(_ease(world))
    return Sweep(CONFIDENCE.copy(), COUNT * MASS * chance, COUNT * MASS * (1 - chance), 0.0, COUNT)
