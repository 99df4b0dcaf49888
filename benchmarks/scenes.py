"""What is simulated: in each scene a sample is drawn, and it is asked which intervals hold the truth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from benchmarks.heaps import Heaps, heaped_population
from benchmarks.worlds import World, as_responses, paired_rows, population, unpaired_rows
from demur.core.stats.calibration import cell_totals
from demur.core.stats.measure import Measure, TermMeasure
from demur.core.stats.resampling import Rows, Sample
from demur.core.stats.sweep import Sweep
from demur.judges.sampling import draw, weigh
from demur.returns.comparison.compare import McNemar, compare
from demur.returns.comparison.contrasts import Side, area_difference, pair_tests
from demur.returns.curves import Band, error_band
from demur.returns.evaluate import figure_of, returns_measures
from demur.returns.measures import AUGRC, curve_at
from demur.returns.options import EVERYWHERE

Outcome = dict[str, Any]

HIGH_ERROR = World(ease=1.0, slope=1.0)
LOW_ERROR = World(ease=3.7, slope=1.5)
CALIBRATED = World(ease=0.0, slope=1.0)
BETTER_BY = 0.3
SIZES = (200, 2000)
FAMILY, BANDED = 30, 8
SCALARS = (
    *("forced_error", "error_at_nonreturn", "nonreturn_at_error", "augrc", "aurc", "e_aurc", "auroc"),
    *("brier", "nce", "ece", "ece_debiased", "ece_equal_mass"),
)
"""Measures tried; of the others QALD-1 precision and recall are error rates, and ranking skill follows from AUROC."""
ACCURACIES, HEAPED_SIZES = (0.5, 0.8, 0.9, 0.97), (100, 300, 1000, 3000)
AT = 0.2
SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class Single:
    """One system: bands and scalars against the truth."""

    world: World
    n: int

    def outcome(self, replicates: int, rng: np.random.Generator, seed: int) -> Outcome:
        """What held in one sample."""
        truth = population(self.world)
        sample = Sample(self.world.rows(self.n, rng), replicates, seed)
        return {**_bands_held(error_band(sample), truth), **_figures_held(sample, truth)}


@dataclass(frozen=True, slots=True)
class Heaped:
    """One system that states confidences as language models do: scalars against the truth."""

    world: Heaps
    n: int

    def outcome(self, replicates: int, rng: np.random.Generator, seed: int) -> Outcome:
        """What held in one sample."""
        return _figures_held(Sample(self.world.rows(self.n, rng), replicates, seed), heaped_population(self.world))


@dataclass(frozen=True, slots=True)
class JudgedSample:
    """One system whose log of `of` answers is judged in part, `n` of them by strata of confidence, as `judge` draws."""

    world: World
    n: int
    of: int

    def outcome(self, replicates: int, rng: np.random.Generator, seed: int) -> Outcome:
        """What held in one sample."""
        truth, log = population(self.world), self.world.rows(self.of, rng)
        drawn = draw(log.confidence, np.zeros(self.of, np.bool_), self.n, rng)
        kept = np.flatnonzero(drawn.chosen)
        stratum = drawn.stratum[kept]
        weight = weigh(stratum, drawn.sizes, np.ones(kept.size, np.bool_)).weight
        rows = Rows(log.confidence[kept], log.right[kept], log.answered[kept], weight, None, stratum)
        sample = Sample(rows, replicates, seed)
        return {**_bands_held(error_band(sample), truth), **_figures_held(sample, truth)}


@dataclass(frozen=True, slots=True)
class NoDifference:
    """Two systems with one population curve: is a difference shown that is not there?"""

    world: World
    n: int
    paired: bool

    def outcome(self, replicates: int, rng: np.random.Generator, seed: int) -> Outcome:
        """Whether any interval of non-return rates, the areas, or the operating point seem to differ."""
        draw = paired_rows if self.paired else unpaired_rows
        table = as_responses(draw(self.world, self.world, n=self.n, rng=rng), clustered=self.world.clustered)
        pair = compare(table, unpaired=not self.paired, measures={}, replicates=replicates, seed=seed).pairs[0]
        point = float(pair.mcnemar.p < 0.05) if isinstance(pair.mcnemar, McNemar) else float("nan")
        return {"interval": bool(pair.intervals), "area": pair.area.significant, "point": point}


def better_world(world: World) -> World:
    """A world that is easier, and in which confidences tell more."""
    return replace(world, ease=world.ease + BETTER_BY, slope=world.slope + BETTER_BY)


@dataclass(frozen=True, slots=True)
class Difference:
    """Two systems that differ: does the interval of the AUGRC difference hold the true one?"""

    world: World
    n: int
    paired: bool

    @property
    def gap(self) -> float:
        """The true difference of the areas."""
        one, two = (AUGRC().finish(population(world)) for world in (self.world, better_world(self.world)))
        return float(one - two)

    def outcome(self, replicates: int, rng: np.random.Generator, seed: int) -> Outcome:
        """Whether the interval holds the true difference, and whether a difference is shown."""
        draw = paired_rows if self.paired else unpaired_rows
        one, two = draw(self.world, better_world(self.world), n=self.n, rng=rng)
        area, _ = area_difference(one, two, paired=self.paired)
        low, high = area.interval()
        return {"held": low <= self.gap <= high, "shown": area.p < 0.05}


@dataclass(frozen=True, slots=True)
class Family:
    """Thirty systems on the same inputs, `better` of them better alike: is a difference shown between equal ones?"""

    world: World
    n: int
    better: int = 0

    def outcome(self, replicates: int, rng: np.random.Generator, seed: int) -> Outcome:
        """Whether equal systems seem to differ from the baseline or from each other, and which true ones are shown.

        Bands take much longer than the tests of areas: they are looked at in one sample of eight, all systems alike.
        """
        worlds = [self.world] * (FAMILY - self.better) + [better_world(self.world)] * self.better
        several = paired_rows(*worlds, n=self.n, rng=rng)
        rows = {f"system {place}": part for place, part in enumerate(several)}
        first, *others = rows
        how: dict[str, Any] = {"paired": True, "level": 0.95, "region": EVERYWHERE}
        from_first = pair_tests(rows, [(first, other) for other in others], **how)
        every = pair_tests(rows, list(combinations(rows, 2)), **how)
        best = set(list(rows)[FAMILY - self.better :])
        alike, apart = (
            [[one for one in tests if ((one.a in best) != (one.b in best)) == differ] for tests in (from_first, every)]
            for differ in (False, True)
        )
        interval = float("nan")
        if seed % BANDED == 0 and not self.better:
            found = compare(as_responses(several, clustered=False), measures={}, replicates=replicates, seed=seed)
            interval = float(any(one.intervals for one in found.pairs))
        return {
            "baseline": any(one.better for one in alike[0]),
            "interval": interval,
            "every": any(one.better for one in alike[1]),
            "shown": _share_shown([one.better for one in apart[0]]),
            "shown_every": _share_shown([one.better for one in apart[1]]),
        }


def _share_shown(sides: list[Side | None]) -> float:
    """How many of the pairs that differ, better system last, are shown to."""
    return float(np.mean([side == "b" for side in sides])) if sides else float("nan")


@dataclass(frozen=True, slots=True)
class CrossingCurves:
    """Two systems whose true curves cross: is either said to dominate the other?"""

    n: int
    clustered: bool = False

    @property
    def worlds(self) -> tuple[World, World]:
        """One that errs less when everything is returned, and one that ranks its answers better."""
        return (
            World(ease=1.3, slope=0.6, clustered=self.clustered),
            World(ease=1.0, slope=1.6, clustered=self.clustered),
        )

    @property
    def crossing(self) -> float:
        """The non-return rate at which the true curves cross."""
        x = np.linspace(0.0, 1.0, 2001)
        one, two = (curve_at(population(world), x) for world in self.worlds)
        return float(x[int(np.argmax(one > two))])

    def outcome(self, replicates: int, rng: np.random.Generator, seed: int) -> Outcome:
        """Whether one is said to dominate, to be better, or that they cross."""
        table = as_responses(paired_rows(*self.worlds, n=self.n, rng=rng), clustered=self.clustered)
        verdict = compare(table, measures={}, replicates=replicates, seed=seed).pairs[0].verdict
        better = verdict.endswith("better")
        return {"dominates": verdict.endswith("dominates"), "better": better, "crossing": verdict == "crossing"}


Scene = Single | Heaped | JudgedSample | NoDifference | Difference | Family | CrossingCurves


def scenes() -> list[Scene]:
    """Every row of the tables."""
    singles: list[Scene] = [Single(world, n) for world in _varied(HIGH_ERROR, LOW_ERROR) for n in SIZES]
    singles += [Single(CALIBRATED, n) for n in SIZES]
    couples = [(world, n, True) for world in _varied(HIGH_ERROR, LOW_ERROR) for n in SIZES]
    couples += [(world, n, False) for world in (HIGH_ERROR, LOW_ERROR) for n in SIZES]
    compared: list[Scene] = [NoDifference(*couple) for couple in couples]
    compared += [Difference(*couple) for couple in couples]
    compared += [Family(HIGH_ERROR, 300), Family(replace(HIGH_ERROR, ties=True), 2000), Family(LOW_ERROR, 2000)]
    compared.append(Family(HIGH_ERROR, 2000, better=3))
    return (
        singles
        + heaped()
        + judged()
        + compared
        + [CrossingCurves(n, clustered) for clustered in (False, True) for n in SIZES]
    )


def heaped() -> list[Scene]:
    """The rows of populations shaped like logs of language models."""
    found: list[Scene] = [Heaped(Heaps(one), n) for one in ACCURACIES for n in HEAPED_SIZES]
    found += [Heaped(Heaps(one, "dialogues"), n) for one in ACCURACIES[1::2] for n in HEAPED_SIZES[1:]]
    return found + [Heaped(Heaps(one, "weights"), n) for one in ACCURACIES[1::2] for n in HEAPED_SIZES[1:]]


def judged() -> list[Scene]:
    """The rows of judged samples: few of many, some of some, and with ties."""
    sizes = ((300, 100_000), (300, 1_000), (100, 10_000))
    worlds = (HIGH_ERROR, LOW_ERROR, replace(LOW_ERROR, ties=True))
    return [JudgedSample(world, *size) for world in worlds for size in sizes[: 3 if world == LOW_ERROR else 2]]


def _varied(*worlds: World) -> Iterator[World]:
    for world in worlds:
        for clustered in (False, True):
            for ties in (False, True):
                yield replace(world, clustered=clustered, ties=ties)


def _bands_held(band: Band, truth: Sweep) -> Outcome:
    height = curve_at(truth, band.x)
    pointwise = (band.low - SLACK <= height) & (height <= band.high + SLACK)
    everywhere = (band.low_all - SLACK <= height) & (height <= band.high_all + SLACK)
    at = int(np.argmin(np.abs(band.x - AT)))
    return {"pointwise": pointwise[:-1], "at": bool(pointwise[at]), "everywhere": bool(everywhere.all())}


def _true_value(measure: Measure, truth: Sweep) -> float:
    """What a measure gives of a whole population, computed once."""
    if measure not in truth.values:
        totals = cell_totals(measure, truth) if isinstance(measure, TermMeasure) else truth
        truth.values[measure] = measure.finish(totals)
    return float(truth.values[measure])


def _figures_held(sample: Sample, truth: Sweep) -> Outcome:
    measures = returns_measures(at=AT)
    held = {}
    for name in SCALARS:
        measure = measures[name] if name != "error_at_nonreturn" else measures[name].settled(sample.sweep)
        value = _true_value(measure, truth)
        figure = figure_of(measure, sample)
        none = np.isnan(figure.low)
        held[name] = float("nan") if none else figure.low - SLACK <= value <= figure.high + SLACK
    return held
