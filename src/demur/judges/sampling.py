"""Which answers are worth judging: inputs drawn by strata of confidence, and how many inputs each stands for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from demur.core.arrays import Array, Flags
from demur.core.stats.sweep import ratio
from demur.errors import UsageError

STRATA = 10
"""Strata of confidence at most."""

LEAST_DRAWN = 5
"""Inputs to be drawn from a stratum on average at least; otherwise there are fewer strata."""

LEAST_JUDGED = 2
"""Judged inputs that tell how much a stratum varies; strata with fewer are joined with their neighbours."""

KNOWN = "known"
"""The stratum of inputs that nobody need judge: nothing was answered, or it is said already whether it is right."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """The stratum of each input, from the least confident on, and which inputs were drawn; -1 for those known."""

    stratum: NDArray[np.int64]
    chosen: Flags

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Inputs in each stratum."""
        return np.bincount(self.stratum[self.stratum >= 0])

    @cached_property
    def drawn(self) -> NDArray[np.int64]:
        """Inputs drawn from each stratum."""
        return np.bincount(self.stratum[self.chosen & (self.stratum >= 0)], minlength=self.sizes.size)


def draw(score: Array, known: Flags, n: int | None, rng: np.random.Generator) -> Drawn:
    """Draw `n` inputs by strata of their `score`, each with the same chance; all of them where `n` is None.

    Inputs that are `known` are taken as they are. Each stratum gives its share, so every input drawn stands for about
    as many others: that keeps the whole curve narrow, while more of the least confident answers would narrow its left
    end and widen the rest.

    >>> found = draw(np.linspace(0, 1, 100), np.zeros(100, bool), 20, np.random.default_rng(0))
    >>> found.sizes.tolist(), found.drawn.tolist()
    ([25, 25, 25, 25], [5, 5, 5, 5])
    """
    unknown = np.flatnonzero(~known)
    stratum, chosen = np.full(score.size, -1), known.copy()
    if not unknown.size:
        return Drawn(stratum, chosen)
    if n is None or n >= unknown.size:
        stratum[unknown] = by_confidence(score[unknown], min(STRATA, max(unknown.size // LEAST_DRAWN, 1)))
        return Drawn(stratum, np.ones(score.size, np.bool_))
    if n < LEAST_JUDGED:
        raise UsageError(f"`sample` must be at least {LEAST_JUDGED}: one answer tells nothing of how much answers vary")
    stratum[unknown] = by_confidence(score[unknown], min(STRATA, max(n // LEAST_DRAWN, 1)))
    found = Drawn(stratum, chosen)
    for one, count in enumerate(allocate(found.sizes, n)):
        chosen[rng.choice(np.flatnonzero(stratum == one), size=count, replace=False)] = True
    return found


def by_confidence(score: Array, most: int) -> NDArray[np.int64]:
    """Strata of about equal size by rising score, at most so many; equal scores lie in one stratum.

    >>> by_confidence(np.array([0.9, 0.1, 0.9, 0.5]), 2).tolist()
    [1, 0, 1, 0]
    """
    _, place, counts = np.unique(score, return_inverse=True, return_counts=True)
    middle = (np.cumsum(counts) - counts / 2) / score.size
    group = np.minimum((middle * most).astype(np.int64), most - 1)
    return np.asarray(np.unique(group, return_inverse=True)[1][place], dtype=np.int64)


def allocate(sizes: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """How many of `n` inputs to draw from each stratum: its share, rounded, and two of each where there are two.

    >>> allocate(np.array([980, 15, 5]), 50).tolist()
    [46, 2, 2]
    """
    least = np.minimum(sizes, LEAST_JUDGED)
    if least.sum() > n:
        least = np.minimum(sizes, 1)
    exact = n * sizes / sizes.sum()
    given = np.clip(np.floor(exact).astype(np.int64), least, sizes)
    while (short := n - int(given.sum())) != 0:
        room = given < sizes if short > 0 else given > least
        lacking = np.where(room, (exact - given) * np.sign(short), -np.inf)
        given[int(np.argmax(lacking))] += np.sign(short)
    return np.asarray(given)


@dataclass(frozen=True, eq=False)
class Weights:
    """How many inputs each judged input stands for, 0 where it is not judged yet, and the name of its stratum."""

    weight: Array
    stratum: tuple[str, ...]

    @property
    def alike(self) -> bool:
        """Whether every input is judged, so that each stands for itself alone."""
        return bool((self.weight == 1.0).all())


def weigh(stratum: NDArray[np.int64], sizes: NDArray[np.int64], judged: Flags) -> Weights:
    """The weights of inputs that were drawn, of which some are judged, with their strata.

    `stratum` is that of each input, -1 for one that is known, and `sizes` are how many inputs each has in all. Inputs
    come to judges in random order, so those judged in a stratum are a random sample of it, finished or not. A stratum
    with less than two of them is joined with the next more confident one, the last with the one before.

    >>> weigh(np.array([0, 0, 1, 1, -1]), np.array([3, 2]), np.array([True, True, True, True, True])).weight.tolist()
    [1.5, 1.5, 1.0, 1.0, 1.0]
    """
    counts = np.bincount(stratum[judged & (stratum >= 0)], minlength=sizes.size)
    group = _join(counts, np.minimum(sizes, LEAST_JUDGED))
    totals = np.bincount(group, weights=sizes)
    each = np.nan_to_num(ratio(totals, np.bincount(group, weights=counts)))
    place = np.append(group, -1)[stratum]
    weight = np.where(place >= 0, np.append(each, 1.0)[place], 1.0) * judged
    width = len(str(totals.size))
    names = tuple(KNOWN if one < 0 else f"confidence {one + 1:0{width}}" for one in place.tolist())
    return Weights(np.asarray(weight), names)


def _join(counts: NDArray[np.int64], least: NDArray[np.int64]) -> NDArray[np.int64]:
    """A number for each stratum, the same for those that must be joined so that each has judged inputs enough."""
    group, held, needed, number = np.zeros(counts.size, np.int64), 0, 0, 0
    for one in range(counts.size):
        group[one] = number
        held, needed = held + int(counts[one]), needed + int(least[one])
        if held >= min(needed, LEAST_JUDGED):
            number, held, needed = number + 1, 0, 0
    if needed and number:  # the last ones are too few by themselves
        group[group == number] = number - 1
    return group
