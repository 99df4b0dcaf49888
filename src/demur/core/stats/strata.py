"""Stratified samples: what units add to a statistic within their strata, and replicates drawn within strata."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.arrays import Array
from demur.core.io.columns import STRATUM
from demur.core.stats.sweep import ratio

FEW_OF_ALL = 0.05
"""Share of the inputs up to which rows of one dialogue that were drawn apart count as independent."""


@dataclass(frozen=True, eq=False)
class Strata:
    """The units of a sample that was drawn by strata: the stratum of each unit from 0 on, and what the unit counts.

    The inputs behind the sample are themselves a sample: of N inputs, N_h fell into stratum h. So a statistic varies
    within strata by what was drawn there, and between them as the shares of N inputs do. Where every input was drawn
    this is the variance of a plain sample, and where few were the second part vanishes (two-phase sampling, Särndal,
    Swensson and Wretman 1992, chapter 9).
    """

    of: NDArray[np.int64]
    weight: Array

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Units drawn from each stratum."""
        return np.bincount(self.of)

    @cached_property
    def totals(self) -> Array:
        """How many inputs each stratum stands for."""
        return np.bincount(self.of, weights=self.weight).astype(np.float64)

    @cached_property
    def inputs(self) -> float:
        """How many inputs the sample stands for, at least as many as there are units."""
        return max(float(self.totals.sum()), float(self.of.size))

    @property
    def freedom(self) -> int:
        """Degrees of freedom: units less strata."""
        return max(int(self.of.size - self.sizes.size), 1)

    def centred(self, pulls: Array) -> Array:
        """What units add to a statistic, so that their squares sum up to its variance as those of plain units do.

        >>> plain = Strata(np.zeros(4, np.int64), np.ones(4))
        >>> plain.centred(np.array([0.1, 0.2, 0.3, 0.4])).round(2).tolist()
        [-0.15, -0.05, 0.05, 0.15]
        """
        size = self.sizes[self.of]
        means = np.bincount(self.of, weights=pulls) / self.sizes
        share = self.totals / self.totals.sum()
        level = np.nan_to_num(ratio(np.bincount(self.of, weights=pulls), share))
        apart = level - float(share @ level)
        within = np.sqrt(size / np.maximum(size - 1, 1)) * (pulls - means[self.of])
        between = np.sqrt(share / (self.inputs * self.sizes)) * apart
        return np.asarray((within + between[self.of]) * np.sqrt(max(self.of.size - 1, 1) / self.of.size))

    def draws(self, replicates: int, seed: int, at_once: int) -> Iterator[Array]:
        """How much each unit counts in each replicate, in chunks: rows are replicates, columns units.

        Of n units of a stratum n - 1 are drawn with replacement, each counting n / (n - 1), so that replicates vary as
        the sample does (Rao and Wu 1988); what strata stand for varies as shares of all inputs do.
        """
        rng = np.random.default_rng(seed)
        members = [np.flatnonzero(self.of == one) for one in range(self.sizes.size)]
        chunk = max(1, at_once // max(self.of.size, 1))
        for start in range(0, replicates, chunk):
            rows = min(chunk, replicates - start)
            counts = np.ones((rows, self.of.size))
            for places in members:
                n = places.size
                if n > 1:
                    drawn = rng.integers(0, n, size=(rows, n - 1)) + np.arange(rows)[:, None] * n
                    times = np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n)
                    counts[:, places] = times * (n / (n - 1))
            shares = rng.standard_gamma(self.totals / self.totals.sum() * self.inputs, size=(rows, self.sizes.size))
            shares /= shares.sum(axis=1, keepdims=True)
            yield counts * np.nan_to_num(ratio(shares * self.totals.sum(), self.totals))[:, self.of]

    def bundled(self, most: int, seed: int) -> NDArray[np.int64]:
        """The bundle of each unit: at most about `most`, dealt at random within strata."""
        rng = np.random.default_rng([seed, 1])
        bundle, first = np.empty(self.of.size, np.int64), 0
        for one in range(self.sizes.size):
            places = np.flatnonzero(self.of == one)
            bundles = min(places.size, max(2, most * places.size // self.of.size))
            bundle[places] = first + rng.permutation(places.size) % bundles
            first += bundles
        return bundle

    def joined(self, bundle: NDArray[np.int64]) -> Strata:
        """The strata of bundles of units."""
        of = np.empty(int(bundle.max()) + 1, np.int64)
        of[bundle] = self.of
        return Strata(of, np.bincount(bundle, weights=self.weight).astype(np.float64))


def are_drawn_by_strata(frame: pl.DataFrame) -> bool:
    """Whether rows are a stratified sample; rows that all weigh 1 are all inputs there are, whatever their strata."""
    return STRATUM in frame.columns and not frame.is_empty() and not bool((frame["weight"] == 1.0).all())


def strata_in(frame: pl.DataFrame) -> NDArray[np.int64] | None:
    """The stratum of each row, numbered in the order of names; None where rows are no stratified sample."""
    if not are_drawn_by_strata(frame):
        return None
    codes: NDArray[np.int64] = frame[STRATUM].rank("dense").cast(pl.Int64).fill_null(0).to_numpy()
    return np.unique(codes, return_inverse=True)[1].astype(np.int64)


def drawn_apart(
    unit: NDArray[np.int64] | None, stratum: NDArray[np.int64] | None, weight: Array
) -> tuple[NDArray[np.int64] | None, NDArray[np.int64] | None]:
    """Units and strata that go together: units inside strata, else rows by stratum, else units without strata.

    Rows of one dialogue that lie in several strata were drawn apart. Where few of all inputs were drawn they are as
    good as independent; where many were, the dialogues matter more than the strata.
    """
    if unit is None or stratum is None:
        return unit, stratum
    pairs: Any = np.unique(np.stack([unit, stratum]), axis=1)
    if pairs.shape[1] == np.unique(unit).size:
        return unit, stratum
    return (None, stratum) if weight.size <= FEW_OF_ALL * weight.sum() else (unit, None)
