"""Which of two systems is nearer the gold standard and where, and what components contribute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any, Literal

import numpy as np

from demur.core.arrays import Array
from demur.core.stats.intervals import Figure
from demur.errors import DataError
from demur.gold_standard.fitting import Performer
from demur.gold_standard.impurity import (
    ConfidenceLevel,
    Impurity,
    XInterval,
    XRange,
    breaks,
    confidence_level,
    even_interval,
    replicate_p,
    simultaneous_band,
    x_intervals,
)
from demur.gold_standard.integrals import roots

UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class ImpurityCrossing:
    """Where two impurities are equal, and the undecided stretch around it."""

    x: float
    low: float
    high: float
    shown: bool
    """Whether one system is shown to be nearer on one side of the stretch, and the other on the other side."""

    def to_dict(self) -> dict[str, Any]:
        """`{"x", "low", "high", "shown"}`."""
        return {"x": self.x, "low": self.low, "high": self.high, "shown": self.shown}


@dataclass(frozen=True, eq=False)
class PairVerdict:
    """Two systems side by side by their distance from the gold standard."""

    a: str
    b: str
    ranges: tuple[XInterval, ...]
    """Which is nearer where, all along the range at once: its name, or `undecided`."""
    crossings: tuple[ImpurityCrossing, ...]
    mass_difference: Figure
    """The mass of a less that of b: below 0, a is nearer on the whole."""
    p: float
    """That of the difference of masses; of several pairs of a study corrected by Holm's method."""
    x: Array
    difference: Array
    """Impurity of a less that of b."""
    low: Array
    high: Array

    def to_dict(self) -> dict[str, Any]:
        """The verdict in figures."""
        return {
            "a": self.a,
            "b": self.b,
            "ranges": [{"from": one.low, "to": one.high, "nearer": one.holds} for one in self.ranges],
            "crossings": [crossing.to_dict() for crossing in self.crossings],
            "mass_difference": {**self.mass_difference.to_dict(), "p": self.p},
        }


def compare_pair(
    gold: Performer, a: Performer, b: Performer, masses: tuple[Impurity, Impurity], x_range: XRange
) -> PairVerdict:
    """Holds two systems against each other by their distance from the gold standard."""
    confidence = confidence_level(gold, a, b)

    def difference(x: Array) -> Array:
        best = gold.fit(x)
        return np.asarray(np.abs(best - a.fit(x)) - np.abs(best - b.fit(x)))

    values = difference(x_range.x)
    best = gold.replicates(x_range.x)
    drawn = np.abs(best - a.replicates(x_range.x)) - np.abs(best - b.replicates(x_range.x))
    low, high = simultaneous_band(values, drawn, confidence)
    found = x_intervals(x_range.x, low, high, {"positive": b.name, "negative": a.name, "undecided": UNDECIDED})
    apart = masses[0].mass.value - masses[1].mass.value
    apart_drawn = masses[0].replicates - masses[1].replicates
    return PairVerdict(
        a=a.name,
        b=b.name,
        ranges=found,
        crossings=tuple(_crossing(x, found) for x in roots(difference, x_range.low, x_range.high, breaks(gold, a, b))),
        mass_difference=even_interval(apart, apart_drawn, confidence),
        p=replicate_p(apart, apart_drawn, confidence.freedom),
        x=x_range.x,
        difference=values,
        low=low,
        high=high,
    )


def _crossing(x: float, found: tuple[XInterval, ...]) -> ImpurityCrossing:
    place = next((k for k, one in enumerate(found) if one.low <= x <= one.high and one.holds == UNDECIDED), None)
    if place is None:
        return ImpurityCrossing(x, x, x, shown=True)
    before = found[place - 1].holds if place > 0 else None
    after = found[place + 1].holds if place + 1 < len(found) else None
    shown = before is not None and after is not None and before != after
    return ImpurityCrossing(x, found[place].low, found[place].high, shown)


def nearest_systems(pairs: Sequence[PairVerdict], names: Sequence[str]) -> tuple[XInterval, ...]:
    """Which of several systems is shown to be nearer than every other one, and where; else undecided."""
    if not pairs:
        return ()
    edges = sorted({edge for pair in pairs for one in pair.ranges for edge in (one.low, one.high)})
    found: list[XInterval] = []
    for low, high in pairwise(edges):
        best = _best((low + high) / 2, pairs, names)
        if found and found[-1].holds == best:
            found[-1] = XInterval(found[-1].low, high, best)
        else:
            found.append(XInterval(low, high, best))
    return tuple(found)


def _best(x: float, pairs: Sequence[PairVerdict], names: Sequence[str]) -> str:
    held = [next(one.holds for one in pair.ranges if one.low <= x <= one.high) for pair in pairs]
    return next((name for name in names if held.count(name) == len(names) - 1), UNDECIDED)


Combination = frozenset[str]


@dataclass(frozen=True, slots=True)
class Effect:
    """A change of impurity mass: below 0, nearer the gold standard."""

    kind: Literal["lesion", "main", "interaction"]
    components: tuple[str, ...]
    change: Figure
    others: tuple[str, ...] | None = None
    """Of a lesion: what else was switched on."""

    def to_dict(self) -> dict[str, Any]:
        """The effect with its interval."""
        values = {"kind": self.kind, "components": list(self.components), **self.change.to_dict()}
        return values if self.others is None else {**values, "others": list(self.others)}


@dataclass(frozen=True, slots=True)
class ComponentAnalysis:
    """A system taken apart: the mass of each combination that was run, and what each component does to it."""

    system: str
    masses: tuple[tuple[Combination, Figure], ...]
    effects: tuple[Effect, ...]
    missing: tuple[Combination, ...]
    """Combinations that were not run."""
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Masses, effects and what is missing."""
        return {
            "system": self.system,
            "masses": [{"components": sorted(on), "impurity_mass": mass.to_dict()} for on, mass in self.masses],
            "effects": [effect.to_dict() for effect in self.effects],
            "missing": [sorted(on) for on in self.missing],
        }


def check_components(system: str, run: Sequence[Combination]) -> None:
    """Refuses a system of which nothing was ever switched off, or on."""
    if len(run) > 1:
        return
    on = sorted(run[0])
    if not on:
        ran = f"{system} {'were' if ' and ' in system else 'was'} run without any component"
        raise DataError(
            f"{ran}, so there is nothing to take apart",
            fix="the column components names what was switched on in each trial",
        )
    rule = f"{' and '.join(on)} {'was' if len(on) == 1 else 'were'} never switched off in the trials of {system}"
    raise DataError(rule, fix="run trials without a component, or leave --components out")


def analyse_components(system: str, run: Mapping[Combination, Impurity], level: ConfidenceLevel) -> ComponentAnalysis:
    """What components contribute, over the combinations that were run."""
    ordered = sorted(run, key=lambda on: (len(on), sorted(on)))
    names = sorted(frozenset().union(*ordered))
    values = np.array([run[on].mass.value for on in ordered])
    drawn = np.stack([run[on].replicates for on in ordered], axis=1)
    lesions = _lesions(ordered, values, drawn, level)
    always = [name for name in names if all(name in on for on in ordered)]
    factors, notes = _factors([name for name in names if name not in always], ordered, values, drawn, level)
    every = [frozenset(on) for size in range(len(names) + 1) for on in combinations(names, size)]
    if always:
        notes = (*notes, f"{', '.join(always)}: never switched off in {system}, so nothing is known of it")
    return ComponentAnalysis(
        system=system,
        masses=tuple((on, run[on].mass) for on in ordered),
        effects=(*lesions, *factors),
        missing=tuple(on for on in every if on not in run) if len(names) <= 6 else (),
        notes=notes,
    )


def _lesions(ordered: Sequence[Combination], values: Array, drawn: Array, level: ConfidenceLevel) -> tuple[Effect, ...]:
    """Each component removed from each combination, where both were run; from the fullest first."""
    place = {on: k for k, on in enumerate(ordered)}
    found = []
    for on in sorted(ordered, key=lambda on: (-len(on), sorted(on))):
        for name in sorted(on):
            without = place.get(on - {name})
            if without is not None:
                change = values[without] - values[place[on]]
                spread = drawn[:, without] - drawn[:, place[on]]
                others = tuple(sorted(on - {name}))
                found.append(Effect("lesion", (name,), even_interval(float(change), spread, level), others))
    return tuple(found)


def _factors(
    names: Sequence[str], ordered: Sequence[Combination], values: Array, drawn: Array, level: ConfidenceLevel
) -> tuple[tuple[Effect, ...], tuple[str, ...]]:
    """Main effects and interactions by least squares over the combinations; what these cannot tell is undefined."""
    terms = _terms(names, ordered)
    design = np.stack([np.ones(len(ordered)), *(_contrast(term, ordered) for term in terms)], axis=1)
    inverse = np.linalg.pinv(design)
    known = np.abs(inverse @ design - np.eye(design.shape[1])).max(axis=1) < 1e-9
    change, spread = inverse @ values, drawn @ inverse.T
    effects = []
    for place, term in enumerate(terms, start=1):
        why = "the combinations that were run do not separate it from other effects"
        figure = (
            even_interval(float(change[place]), spread[:, place], level)
            if known[place]
            else Figure(float("nan"), why=why)
        )
        effects.append(Effect("main" if len(term) == 1 else "interaction", term, figure))
    pairs = len(names) * (len(names) - 1) // 2
    asked = sum(len(term) == 2 for term in terms)
    notes = ("too few combinations were run for interactions",) if pairs and not asked else ()
    return tuple(effects), notes


def _terms(names: Sequence[str], ordered: Sequence[Combination]) -> list[tuple[str, ...]]:
    """Main effects; interactions of two where they leave these known; of more where every combination was run."""
    main: list[tuple[str, ...]] = [(name,) for name in names]
    if len(ordered) == 2 ** len(names):
        return [term for size in range(1, len(names) + 1) for term in combinations(names, size)]
    with_pairs = main + list(combinations(names, 2))
    return (
        with_pairs if _all_known(with_pairs, ordered) or not _all_known(main, ordered) else _most(main, names, ordered)
    )


def _most(main: list[tuple[str, ...]], names: Sequence[str], ordered: Sequence[Combination]) -> list[tuple[str, ...]]:
    """Main effects, and each interaction of two that can be estimated besides."""
    kept = list(main)
    for pair in combinations(names, 2):
        if _all_known([*kept, pair], ordered):
            kept.append(pair)
    return kept


def _all_known(terms: Sequence[tuple[str, ...]], ordered: Sequence[Combination]) -> bool:
    design = np.stack([np.ones(len(ordered)), *(_contrast(term, ordered) for term in terms)], axis=1)
    return bool(np.linalg.matrix_rank(design) == design.shape[1])


def _contrast(term: tuple[str, ...], ordered: Sequence[Combination]) -> Array:
    """Half for on and minus half for off, multiplied: then coefficients are differences, and differences of these."""
    return np.asarray(np.prod([[0.5 if name in on else -0.5 for on in ordered] for name in term], axis=0))
