"""Studies as they might have come out: subjects drawn anew, all trials of a subject together.

In each stratum of g subjects g - 1 are drawn with replacement and counted g / (g - 1) times (Rao and Wu 1988), so
that the spread of linear statistics is that of a sample of g and not g - 1 of it over g. Strata are sets of subjects
who share performers: wizards are drawn among wizards, callers among callers. The same draw serves all performers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from demur.analyses.gold.bases import Array
from demur.analyses.gold.counts import Counts
from demur.errors import DataError


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """How often each subject (column) was drawn in each replicate (row), and what a draw counts."""

    times: NDArray[np.uint8]
    worth: Array

    def __len__(self) -> int:
        return len(self.times)

    def __getitem__(self, rows: slice) -> Array:
        return np.asarray(self.times[rows] * self.worth)


def strata(performers: Sequence[Counts]) -> NDArray[np.int64]:
    """The stratum of each subject: those linked by a performer whom both have trials with; -1 without trials."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    subjects = performers[0].totals.shape[0]
    pairs = [(subject, subjects + k) for k, one in enumerate(performers) for subject in one.present]
    rows, columns = np.array(pairs).T
    size = subjects + len(performers)
    graph = coo_array((np.ones(len(rows)), (rows, columns)), shape=(size, size))
    labels = connected_components(graph, directed=False)[1][:subjects]
    labels[~np.isin(np.arange(subjects), rows)] = -1
    return np.asarray(labels, dtype=np.int64)


def draws(performers: Sequence[Counts], replicates: int, seed: int) -> Draws:
    """Subjects drawn anew, so that every performer has trials in every replicate."""
    rng = np.random.default_rng(seed)
    label = strata(performers)
    times = np.zeros((replicates, len(label)), dtype=np.uint8)
    worth = np.ones(len(label))
    for stratum in np.unique(label[label >= 0]):
        members = np.flatnonzero(label == stratum)
        worth[members] = len(members) / max(len(members) - 1, 1)
    missing = np.arange(replicates)
    for _ in range(1000):
        for stratum in np.unique(label[label >= 0]):
            members = np.flatnonzero(label == stratum)
            times[np.ix_(missing, members)] = _drawn(rng, len(members), len(missing))
        present = [one.present for one in performers]
        empty = np.any([times[np.ix_(missing, who)].sum(axis=1) == 0 for who in present], axis=0)
        missing = missing[empty]
        if not len(missing):
            return Draws(times, worth)
    raise DataError(
        "subjects cannot be drawn anew so that every performer has trials", fix="are there enough subjects?"
    )


def _drawn(rng: np.random.Generator, subjects: int, replicates: int) -> NDArray[np.uint8]:
    if subjects < 2:
        return np.ones((replicates, subjects), dtype=np.uint8)
    drawn = rng.multinomial(subjects - 1, np.full(subjects, 1 / subjects), size=replicates)
    return np.minimum(drawn, 255).astype(np.uint8)
