"""Readings of curves by their definitions, and performers whose curves and replicates are known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import t as student_t

from demur.core.stats.intervals import Figure
from demur.gold_standard.curves import FAMILIES, CurveFamily, counts_of
from demur.gold_standard.fitting import CurveFit, Performer
from demur.gold_standard.impurity import Impurity, XRange
from demur.gold_standard.trials import Trials

Array = NDArray[np.float64]
Ends = tuple[float, float]


def handmade(
    name: str,
    kind: Literal["linear", "logistic"],
    ends: Ends,
    *,
    replicates: Sequence[Ends] = (),
    over: Ends = (0.0, 1.0),
    bounds: tuple[float, float | None] = (0.0, 1.0),
    subjects: int = 5,
    level: float = 0.95,
) -> Performer:
    """A performer whose curve is given by its values at the ends of a range: shares, or their logits for a logistic.

    So are its replicates. The trials behind it lie on the curve, so that nothing but the replicates spreads it.
    """
    link: Literal["logit", "identity"] = "logit" if kind == "logistic" else "identity"
    basis = FAMILIES[kind](over[0], over[1], link, "falling")
    coefficients = _coefficients(kind, ends)
    refits = np.array([_coefficients(kind, one) for one in replicates or [ends, ends]])
    trials = _on_curve(basis, coefficients, bounds, subjects)
    counts = counts_of(trials, np.ones(len(trials), dtype=bool))
    fit = CurveFit(basis, coefficients, 0.0, counts, "given")
    role: Literal["gold", "system"] = "gold" if name == "gold" else "system"
    return Performer(name, role, fit, refits, np.zeros(len(refits)), level, system=name)


def _coefficients(kind: str, ends: Ends) -> Array:
    start, end = ends
    return np.array([start, start - end] if kind == "logistic" else [(start + end) / 2, (end - start) / 2])


def _on_curve(basis: CurveFamily, coefficients: Array, bounds: tuple[float, float | None], subjects: int) -> Trials:
    places = np.linspace(basis.low, basis.high, 5)
    share = basis.rows(places) @ coefficients
    share = expit(share) if basis.link == "logit" else share
    lower, upper = bounds
    y = share if upper is None else lower + (upper - lower) * share
    count = subjects * len(places)
    return Trials(
        study="study",
        x_name="x",
        y_name="y",
        kind="scores",
        lower=lower,
        upper=upper,
        performers=("one",),
        roles=("gold",),
        performer=np.zeros(count, dtype=np.int64),
        x=np.tile(places, subjects),
        y=np.tile(y, subjects),
        n=np.ones(count),
        subject=np.repeat(np.arange(subjects), len(places)),
        subjects=tuple(f"s{number}" for number in range(subjects)),
        combination=np.zeros(count, dtype=np.int64),
        combinations=(frozenset(),),
        independent=False,
    )


def ground_of(*performers: Performer) -> XRange:
    """The x_range over the range that all cover."""
    low = max(one.fit.family.low for one in performers)
    high = min(one.fit.family.high for one in performers)
    return XRange.between(low, high, performers)


def weighed(value: float, drawn: Iterable[float]) -> Impurity:
    """An impurity of which only the mass matters."""
    nothing, empty = Figure(0.0), np.empty(0)
    masses = np.array(list(drawn), dtype=float)
    return Impurity("system", Figure(value), nothing, nothing, nothing, nothing, (), empty, empty, empty, empty, masses)


def area(f: Callable[[Array], Array], low: float, high: float, strips: int = 100_000) -> float:
    """The integral of a curve as a sum of narrow strips, each as high as the curve in its middle."""
    middles = low + (np.arange(strips) + 0.5) * (high - low) / strips
    return float(np.mean(f(middles))) * (high - low)


def softplus_area(start: float, end: float) -> float:
    """The integral over 0 to 1 of a logistic curve with these logits at its ends, from its antiderivative."""
    fall = start - end
    if abs(fall) < 1e-4:
        return float(expit((start + end) / 2))
    return float((np.logaddexp(0, start) - np.logaddexp(0, end)) / fall)


def interval(value: float, drawn: Sequence[float], subjects: int, level: float = 0.95) -> Ends:
    """Student's t around a number, from the spread of replicates."""
    mean = sum(drawn) / len(drawn)
    error = (sum((one - mean) ** 2 for one in drawn) / (len(drawn) - 1)) ** 0.5
    reach = float(student_t.ppf((1 + level) / 2, subjects - 1)) * error
    return value - reach, value + reach


def runs(x: Sequence[float], low: Sequence[float], high: Sequence[float]) -> list[tuple[float, float, str]]:
    """Where a band is above 0, below it, or neither: place by place."""
    found: list[list[Any]] = []
    for place, below, above in zip(x, low, high, strict=True):
        kind = "positive" if below > 1e-12 else "negative" if above < -1e-12 else "undecided"
        if found and found[-1][2] == kind:
            found[-1][3] = place
        else:
            if found:
                found[-1][1] = (found[-1][3] + place) / 2
            start = (found[-1][3] + place) / 2 if found else place
            found.append([start, place, kind, place])
    found[-1][1] = x[-1]
    return [(start, end, kind) for start, end, kind, _ in found]


def factorial_effect(names: Sequence[str], term: Sequence[str], masses: Mapping[frozenset[str], float]) -> float:
    """An effect over all combinations: differences of differences, averaged over what else is on."""
    others = [name for name in names if name not in term]
    total = 0.0
    for rest in product((False, True), repeat=len(others)):
        kept = {name for name, on in zip(others, rest, strict=True) if on}
        for switched in product((False, True), repeat=len(term)):
            on = kept | {name for name, yes in zip(term, switched, strict=True) if yes}
            total += (-1) ** (len(term) - sum(switched)) * masses[frozenset(on)]
    return total / 2 ** len(others)
