"""What it is worth to bring a system nearer the gold standard (Paek 2001, 3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from demur.analyses.gold import integrals
from demur.analyses.gold.bases import Array
from demur.analyses.gold.cost import CostFunction, check_covers
from demur.analyses.gold.impurity import Ground, breaks, sureness
from demur.analyses.gold.performers import Performer
from demur.analyses.gold.spread import around
from demur.errors import UsageError
from demur.measures.intervals import Figure

Gain = tuple[float, float]
Span = tuple[float, float]


@dataclass(frozen=True, slots=True)
class MarginalCost:
    """The cost-weighted distance from the gold standard, on average over a stretch of x."""

    system: str
    average: Figure
    """The mean of c(s) |g - s|: the cost function at the system's performance weighs the distance."""
    difference: Figure
    """The other reading, under a name of its own: the mean of c(g) - c(s)."""
    spans: tuple[Span, ...]
    """The stretches of x over which the means are taken."""
    gain: Gain | None
    drawn: Array | None = field(default=None, repr=False, compare=False)
    """The average in each replicate."""

    def to_dict(self) -> dict[str, Any]:
        """Both readings, and where they are taken."""
        return {
            "system": self.system,
            **self.average.to_dict(),
            "average_cost_difference": self.difference.to_dict(),
            "from": [low for low, _ in self.spans],
            "to": [high for _, high in self.spans],
            "gain": None if self.gain is None else list(self.gain),
        }


def marginal_cost(
    gold: Performer, system: Performer, cost: CostFunction, ground: Ground, gain: Gain | None = None
) -> MarginalCost:
    """The average marginal cost of a system; with a gain, where its curve lies between the two performances."""
    spans = _spans(system, ground, gain)
    if not spans:
        bottom, top = gain or (float("nan"), float("nan"))
        why = f"the curve of {system.name} nowhere lies between {bottom:g} and {top:g}"
        nothing = Figure(float("nan"), why=why)
        return MarginalCost(system.name, nothing, nothing, (), gain)
    _check(cost, system, spans)
    sure = sureness(gold, system)
    value, drawn = _mean(gold, system, ground, spans, gain, _Weighted(cost))
    difference = Figure(float("nan"), why="the cost function does not cover the performance of the gold standard")
    if _covers(cost, gold, spans):
        difference = around(*_mean(gold, system, ground, spans, gain, _Difference(cost)), sure)
    return MarginalCost(system.name, around(value, drawn, sure), difference, spans, gain, drawn)


def cheaper_by(cheaper: MarginalCost, dearer: MarginalCost, gold: Performer, *systems: Performer) -> Figure:
    """How much more the average marginal cost of one system is than that of another."""
    assert cheaper.drawn is not None
    assert dearer.drawn is not None
    apart = dearer.average.value - cheaper.average.value
    return around(apart, dearer.drawn - cheaper.drawn, sureness(gold, *systems))


@dataclass(frozen=True, slots=True)
class _Weighted:
    """The distance from gold, weighed by the cost function at the system's performance."""

    cost: CostFunction

    def __call__(self, gold: Array, system: Array) -> Array:
        return _within(self.cost, system) * np.abs(gold - system)


@dataclass(frozen=True, slots=True)
class _Difference:
    """What the gold standard's performance is worth more than the system's."""

    cost: CostFunction

    def __call__(self, gold: Array, system: Array) -> Array:
        return np.asarray(_within(self.cost, gold) - _within(self.cost, system))


def _within(cost: CostFunction, performance: Array) -> Array:
    """The cost, at its ends for replicates that stray beyond the performances that it was stated for."""
    return np.asarray(cost(np.clip(performance, cost.low, cost.high)))


def _spans(system: Performer, ground: Ground, gain: Gain | None) -> tuple[Span, ...]:
    if gain is None:
        return ((ground.low, ground.high),)
    bottom, top = gain
    if not bottom < top:
        raise UsageError(f"a gain goes from one performance up to a higher one; got {bottom:g} to {top:g}")
    scale = system.fit.counts.scale
    if scale.upper is not None and not scale.lower <= bottom <= top <= scale.upper:
        raise UsageError(
            f"a gain lies within the metric's bounds, {scale.lower:g} to {scale.upper:g}; got {bottom:g} to {top:g}"
        )
    return integrals.between(system.fit, bottom, top, ground.low, ground.high, system.fit.basis.breaks)


def _mean(
    gold: Performer,
    system: Performer,
    ground: Ground,
    spans: Sequence[Span],
    gain: Gain | None,
    worth: _Weighted | _Difference,
) -> tuple[float, Array]:
    """The mean over the spans, and the same in each replicate; NaN where a replicate has no such span."""
    knots = _kinks(gold, system, ground, worth.cost)
    total = sum(integrals.integral(lambda x: worth(gold.fit(x), system.fit(x)), *span, knots) for span in spans)
    value = total / sum(high - low for low, high in spans)
    nodes = ground.grid.nodes
    gold_drawn, system_drawn = gold.drawn(nodes), system.drawn(nodes)
    share = np.ones_like(system_drawn) if gain is None else ground.grid.share_between(system_drawn, *gain)
    length = ground.grid.integral(share)
    drawn = np.divide(
        ground.grid.integral(share * worth(gold_drawn, system_drawn)),
        length,
        out=np.full_like(length, np.nan),
        where=length > 1e-6 * ground.width,
    )
    return value, drawn


def _kinks(gold: Performer, system: Performer, ground: Ground, cost: CostFunction) -> tuple[float, ...]:
    """Where the integrand bends: at knots, where curves meet, and where a performance is at a point of the cost."""
    knots = breaks(gold, system)
    found = list(integrals.roots(lambda x: gold.fit(x) - system.fit(x), ground.low, ground.high, knots))
    for level in cost.breaks:
        for one in (gold, system):
            found += integrals.roots(lambda x, one=one, level=level: one.fit(x) - level, ground.low, ground.high, knots)  # type: ignore[misc]
    return (*knots, *found)


def _ends(performer: Performer, spans: Sequence[Span]) -> tuple[float, float]:
    values = np.concatenate([performer.fit(np.linspace(low, high, 401)) for low, high in spans])
    return float(values.min()), float(values.max())


def _check(cost: CostFunction, system: Performer, spans: Sequence[Span]) -> None:
    check_covers(cost, *_ends(system, spans), what=f"the curve of {system.name}")


def _covers(cost: CostFunction, gold: Performer, spans: Sequence[Span]) -> bool:
    low, high = _ends(gold, spans)
    return cost.low - 1e-9 <= low and high <= cost.high + 1e-9
