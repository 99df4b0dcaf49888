"""How far systems are from the gold standard, which of two is nearer where, and what components contribute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations, pairwise
from typing import Any, Literal

import numpy as np
from scipy.special import expit, logit

from demur.core.arrays import Array
from demur.core.stats.intervals import Figure, normal, sidak, student, student_p
from demur.errors import DataError
from demur.gold_standard import integrals
from demur.gold_standard.fitting import Performer
from demur.gold_standard.integrals import CurveGrid

_UNDEFINED = 0.1
"""The share of replicates without a value from which on there is no interval."""


@dataclass(frozen=True, slots=True)
class ConfidenceLevel:
    """The level of intervals, with one degree of freedom less than the fewest subjects."""

    level: float
    freedom: int

    @property
    def critical(self) -> float:
        """Student's critical value."""
        return student(self.level, self.freedom)


def even_interval(value: float, drawn: Array, confidence: ConfidenceLevel) -> Figure:
    """A number that replicates scatter about evenly."""
    known = drawn[~np.isnan(drawn)]
    if np.isnan(value) or len(known) < (1 - _UNDEFINED) * len(drawn):
        return Figure(value)
    reach = confidence.critical * float(known.std(ddof=1))
    return Figure(value, value - reach, value + reach)


def share_interval(value: float, drawn: Array, confidence: ConfidenceLevel) -> Figure:
    """A number between 0 and 1, with an interval that is even on the logit scale and so stays between them."""
    if not 0 < value < 1:
        return even_interval(value, drawn, confidence)
    spread = float(logit(np.clip(drawn, 1e-9, 1 - 1e-9)).std(ddof=1))
    ends = expit(logit(value) + np.array([-1, 1]) * confidence.critical * spread)
    return Figure(value, float(ends[0]), float(ends[1]))


def area_interval(
    value: float, drawn: Array, confidence: ConfidenceLevel, *, shown: bool = True, most: float = np.inf
) -> Figure:
    """An area between two curves, which noise only ever adds to: the interval has that bias taken off, down to 0.

    Equal curves have an area too, in a sample: unless it is `shown` otherwise that they differ, it starts at 0. It ends
    at the `most` that is possible.
    """
    bias = max(float(drawn.mean()) - value, 0.0)
    reach = confidence.critical * float(drawn.std(ddof=1))
    low = max(min(value - bias - reach, value), 0.0) if shown else 0.0
    return Figure(value, low, max(min(max(value - bias + reach, reach), most), value))


def replicate_p(value: float, drawn: Array, freedom: int) -> float:
    """How often a difference this far from 0 comes about where there is none (Student's t)."""
    error = float(drawn.std(ddof=1))
    if error == 0:
        return 1.0 if value == 0 else 0.0
    return student_p(value, error, max(freedom, 1))


def simultaneous_band(values: Array, drawn: Array, confidence: ConfidenceLevel) -> tuple[Array, Array]:
    """A band that holds a whole curve: t's critical value, raised to that of the greatest departure along the curve."""
    error = drawn.std(axis=0, ddof=1)
    steady = error > 1e-12
    if not steady.any():
        return values.copy(), values.copy()
    departure = np.abs(drawn[:, steady] - values[steady]) / error[steady]
    greatest = float(np.quantile(departure.max(axis=1), confidence.level))
    reach = max(greatest, normal(confidence.level)) * confidence.critical / normal(confidence.level) * error
    return values - reach, values + reach


UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class XInterval:
    """A stretch of x over which one thing holds."""

    low: float
    high: float
    holds: str

    def to_dict(self) -> dict[str, Any]:
        """`{"from", "to", "holds"}`."""
        return {"from": self.low, "to": self.high, "holds": self.holds}


def x_intervals(x: Array, low: Array, high: Array, *, positive: str, negative: str) -> tuple[XInterval, ...]:
    """Where a band lies above 0, below it, or on both sides (undecided); neighbours that agree are joined.

    A border lies halfway between the places that disagree.
    """
    slack = 1e-12
    holds = np.where(low > slack, positive, np.where(high < -slack, negative, UNDECIDED))
    change = np.flatnonzero(holds[1:] != holds[:-1]) + 1
    borders = [float(x[0]), *((x[change - 1] + x[change]) / 2).tolist(), float(x[-1])]
    kinds = holds[[0, *change]].tolist()
    return tuple(XInterval(*ends, kind) for ends, kind in zip(pairwise(borders), kinds, strict=True))


PLACES = 201
"""Places at which graphs are drawn and ranges are separated."""


@dataclass(frozen=True, eq=False)
class XRange:
    """The range of x that all curves cover, and the values of replicates on it."""

    low: float
    high: float
    grid: CurveGrid
    x: Array
    """Where graphs are drawn."""

    @classmethod
    def between(cls, low: float, high: float, performers: tuple[Performer, ...]) -> XRange:
        """The range from `low` to `high`, cut where one of the curves has a knot."""
        knots = {place for one in performers for place in one.fit.family.panel_edges}
        return cls(low, high, CurveGrid.over(low, high, sorted(knots)), np.linspace(low, high, PLACES))

    @property
    def width(self) -> float:
        """How wide it is."""
        return self.high - self.low


def confidence_level(*performers: Performer) -> ConfidenceLevel:
    """That of the performer with the fewest subjects."""
    return ConfidenceLevel(performers[0].level, min(one.subjects for one in performers) - 1)


def breaks(*performers: Performer) -> tuple[float, ...]:
    """Where one of the curves may bend sharply."""
    return tuple(place for one in performers for place in one.fit.family.breaks)


@dataclass(frozen=True, eq=False)
class Impurity:
    """A system beside the gold standard: |gold - system| along x, and its area."""

    system: str
    mass: Figure
    below: Figure
    """The part of the mass where the system does worse than the gold standard."""
    above: Figure
    """The part where it does better."""
    relative: Figure
    """The mass as a share of the area between the gold standard and the lower bound, to compare studies."""
    mean: Figure
    """The mass over the width of the range: the distance on average, to compare ranges."""
    ranges: tuple[XInterval, ...]
    """Where the system is below gold or above gold, all along the range at once, and where that is undecided."""
    x: Array
    signed: Array
    """Gold less system."""
    low: Array
    high: Array
    """Ends of the band of the impurity, each place taken alone."""
    replicates: Array = field(repr=False)
    """The mass in each replicate."""

    @property
    def impurity(self) -> Array:
        """The distance from the gold standard."""
        return np.abs(self.signed)

    def to_dict(self) -> dict[str, Any]:
        """The figures and ranges; the graph is the curve of the document."""
        return {
            "impurity_mass": self.mass.to_dict(),
            "mass_below_gold": self.below.to_dict(),
            "mass_above_gold": self.above.to_dict(),
            "relative_mass": self.relative.to_dict(),
            "mean_distance": self.mean.to_dict(),
            "ranges": [stretch.to_dict() for stretch in self.ranges],
        }


def impurity(gold: Performer, system: Performer, x_range: XRange) -> Impurity:
    """How far a system is from the gold standard."""
    confidence = confidence_level(gold, system)
    knots = breaks(gold, system)
    above_zero, below_zero = integrals.parts(lambda x: gold.fit(x) - system.fit(x), x_range.low, x_range.high, knots)
    mass = above_zero + below_zero
    nodes = x_range.grid.nodes
    gold_drawn, system_drawn = gold.replicates(nodes), system.replicates(nodes)
    more, less = x_range.grid.parts(gold_drawn - system_drawn)
    foot, top = gold.fit.counts.scale.foot, gold.fit.counts.scale.upper
    most = np.inf if top is None else (top - foot) * x_range.width
    whole = integrals.integral(lambda x: gold.fit(x) - foot, x_range.low, x_range.high, gold.fit.family.breaks)
    whole_drawn = x_range.grid.integral(gold_drawn - foot)
    signed = gold.fit(x_range.x) - system.fit(x_range.x)
    around_signed = gold.replicates(x_range.x) - system.replicates(x_range.x)
    reach = confidence.critical * around_signed.std(axis=0, ddof=1)
    band = simultaneous_band(signed, around_signed, confidence)
    ranges = x_intervals(x_range.x, *band, positive="below gold", negative="above gold")
    net = even_interval(above_zero - below_zero, more - less, confidence)
    below = net.low > 0 or any(one.holds == "below gold" for one in ranges)
    above = net.high < 0 or any(one.holds == "above gold" for one in ranges)
    share, shares = (mass / whole, (more + less) / whole_drawn) if whole > 0 else (float("nan"), more)
    nothing = Figure(share, why="the gold standard achieves nothing")
    area = area_interval(mass, more + less, confidence, shown=below or above, most=most)
    return Impurity(
        system=system.name,
        mass=area,
        mean=replace(area, **{end: getattr(area, end) / x_range.width for end in ("value", "low", "high")}),
        below=area_interval(above_zero, more, confidence, shown=below, most=most),
        above=area_interval(below_zero, less, confidence, shown=above, most=most),
        relative=area_interval(share, shares, confidence, shown=below or above) if whole > 0 else nothing,
        ranges=ranges,
        x=x_range.x,
        signed=signed,
        low=np.maximum(np.abs(signed) - reach, 0),
        high=np.abs(signed) + reach,
        replicates=np.asarray(more + less),
    )


def complexity(gold: Performer, within: tuple[float, float] | None = None) -> Figure:
    """How far the gold standard itself stays from the upper bound, as a share of what there is (Paek 2001, 3.2).

    The mean of (U - g(x)) / (U - L) over the range of its trials, or over the part of it that is asked for.
    """
    scale = gold.fit.counts.scale
    if scale.upper is None:
        return Figure(float("nan"), why="the metric has no upper bound; --upper gives it")
    low, high = within or (gold.fit.family.low, gold.fit.family.high)
    share = integrals.integral(lambda x: scale.share(gold.fit(x)), low, high, gold.fit.family.breaks) / (high - low)
    grid = CurveGrid.over(low, high, gold.fit.family.panel_edges)
    drawn = 1 - grid.integral(scale.share(gold.replicates(grid.nodes))) / (high - low)
    return share_interval(1 - share, drawn, confidence_level(gold))


def mean_performance(performer: Performer, x_range: XRange) -> Figure:
    """Performance on average over a range of x, each x counted alike."""
    value = integrals.integral(performer.fit, x_range.low, x_range.high, performer.fit.family.breaks) / x_range.width
    drawn = x_range.grid.integral(performer.replicates(x_range.grid.nodes)) / x_range.width
    scale, confidence = performer.fit.counts.scale, confidence_level(performer)
    if scale.upper is None:
        return even_interval(value, drawn, confidence)
    share = share_interval(float(scale.share(np.array(value))), scale.share(drawn), confidence)
    low, high = scale.performance(np.array([share.low, share.high]))
    return Figure(value, float(low), float(high))


@dataclass(frozen=True, slots=True)
class ImpurityCrossing:
    """Where two impurities are equal, and the undecided stretch around it."""

    x: float
    low: float
    high: float
    shown: bool
    """Whether one system is shown to be nearer on one side of the stretch, and the other on the other side."""


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
    """That of the difference of masses; as its interval, corrected by Sidak's method for all pairs of a study."""
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
            "crossings": [asdict(crossing) for crossing in self.crossings],
            "mass_difference": {**self.mass_difference.to_dict(), "p": self.p},
        }


def compare_pair(
    gold: Performer, a: Performer, b: Performer, masses: tuple[Impurity, Impurity], x_range: XRange, tests: int = 1
) -> PairVerdict:
    """Two systems against each other by their distance from the gold standard, masses corrected for several tests."""
    confidence = confidence_level(gold, a, b)

    def difference(x: Array) -> Array:
        best = gold.fit(x)
        return np.asarray(np.abs(best - a.fit(x)) - np.abs(best - b.fit(x)))

    values = difference(x_range.x)
    best = gold.replicates(x_range.x)
    drawn = np.abs(best - a.replicates(x_range.x)) - np.abs(best - b.replicates(x_range.x))
    low, high = simultaneous_band(values, drawn, confidence)
    found = x_intervals(x_range.x, low, high, positive=b.name, negative=a.name)
    crossings = integrals.roots(difference, x_range.low, x_range.high, breaks(gold, a, b))
    apart = masses[0].mass.value - masses[1].mass.value
    apart_drawn = masses[0].replicates - masses[1].replicates
    return PairVerdict(
        a=a.name,
        b=b.name,
        ranges=found,
        crossings=tuple(_crossing(x, found) for x in crossings),
        mass_difference=even_interval(apart, apart_drawn, replace(confidence, level=confidence.level ** (1 / tests))),
        p=sidak(replicate_p(apart, apart_drawn, confidence.freedom), tests),
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
    """Which of several systems is shown to be nearer than every other one, and where; otherwise undecided."""
    if not pairs:
        return ()
    edges = sorted({edge for pair in pairs for one in pair.ranges for edge in (one.low, one.high)})
    found: list[XInterval] = []
    for low, high in pairwise(edges):
        x = (low + high) / 2
        held = [next(one.holds for one in pair.ranges if one.low <= x <= one.high) for pair in pairs]
        best = next((name for name in names if held.count(name) == len(names) - 1), UNDECIDED)
        if found and found[-1].holds == best:
            low = found.pop().low
        found.append(XInterval(low, high, best))
    return tuple(found)


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
    always = [name for name in names if all(name in on for on in ordered)]
    factors = [name for name in names if name not in always]
    terms = _terms(factors, ordered)
    every = [frozenset(on) for size in range(len(names) + 1) for on in combinations(names, size)]
    notes = []
    if len(factors) > 1 and not any(len(term) == 2 for term in terms):
        notes.append("too few combinations were run for interactions")
    if always:
        notes.append(f"{', '.join(always)}: never switched off in {system}, so nothing is known of it")
    return ComponentAnalysis(
        system=system,
        masses=tuple((on, run[on].mass) for on in ordered),
        effects=(*_lesions(ordered, values, drawn, level), *_factors(terms, ordered, values, drawn, level)),
        missing=tuple(on for on in every if on not in run) if len(names) <= 6 else (),
        notes=tuple(notes),
    )


def _lesions(ordered: Sequence[Combination], values: Array, drawn: Array, level: ConfidenceLevel) -> list[Effect]:
    """Each component removed from each combination, where both were run; from the fullest first."""
    place = {on: k for k, on in enumerate(ordered)}
    effects = []
    for on in sorted(ordered, key=lambda on: (-len(on), sorted(on))):
        for name in sorted(on):
            without = place.get(on - {name})
            if without is not None:
                change = float(values[without] - values[place[on]])
                spread = drawn[:, without] - drawn[:, place[on]]
                others = tuple(sorted(on - {name}))
                effects.append(Effect("lesion", (name,), even_interval(change, spread, level), others))
    return effects


def _factors(
    terms: Sequence[tuple[str, ...]],
    ordered: Sequence[Combination],
    values: Array,
    drawn: Array,
    level: ConfidenceLevel,
) -> list[Effect]:
    """Main effects and interactions by least squares over the combinations; what these cannot tell is undefined."""
    design = _contrasts(terms, ordered)
    inverse = np.linalg.pinv(design)
    known = np.abs(inverse @ design - np.eye(design.shape[1])).max(axis=1) < 1e-9
    change, spread = inverse @ values, drawn @ inverse.T
    unknown = Figure(float("nan"), why="the combinations that were run do not separate it from other effects")
    effects = []
    for place, term in enumerate(terms, start=1):
        figure = even_interval(float(change[place]), spread[:, place], level) if known[place] else unknown
        effects.append(Effect("main" if len(term) == 1 else "interaction", term, figure))
    return effects


def _terms(names: Sequence[str], ordered: Sequence[Combination]) -> list[tuple[str, ...]]:
    """Main effects; interactions of two where they leave these known; of more where every combination was run."""
    if len(ordered) == 2 ** len(names):
        return [term for size in range(1, len(names) + 1) for term in combinations(names, size)]
    terms: list[tuple[str, ...]] = [(name,) for name in names]
    pairs = list(combinations(names, 2))
    if not _all_known(terms, ordered):
        return [*terms, *pairs]
    for pair in pairs:
        if _all_known([*terms, pair], ordered):
            terms.append(pair)
    return terms


def _all_known(terms: Sequence[tuple[str, ...]], ordered: Sequence[Combination]) -> bool:
    design = _contrasts(terms, ordered)
    return bool(np.linalg.matrix_rank(design) == design.shape[1])


def _contrasts(terms: Sequence[tuple[str, ...]], ordered: Sequence[Combination]) -> Array:
    """A column of ones, and for each term half for on and minus half for off, multiplied over its components.

    Then coefficients are differences, and differences of these.
    """
    halves = [np.prod([[0.5 if name in on else -0.5 for on in ordered] for name in term], axis=0) for term in terms]
    return np.stack([np.ones(len(ordered)), *halves], axis=1)
