"""What a pilot study knows of studies to come: curves, how far persons differ, where trials fall; and such studies.

Persons differ by a normal departure on the logit (on the metric itself where it has no upper bound). Its spread is
found by moments: how far the products of residuals of two trials of one person exceed what chance leaves, 0. It is
never negative. The curve of the average person is set so that the average over all persons is the fitted curve.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.analyses.gold.bases import Array, Link
from demur.analyses.gold.counts import Counts, counts_of
from demur.analyses.gold.fitting import FEW_SUBJECTS, CurveFit, FitOptions, fit_curve
from demur.analyses.gold.resampling import strata
from demur.analyses.gold.solving import means
from demur.data.trials import Role, Trials

_PERSONS = 32
"""Points of the Gauss-Hermite rule over persons."""
_WIDEST = 4.0
"""The largest spread that is looked for on the logit; at 4 nearly everybody always or never succeeds."""
_EDGE = 1e-4
"""How near to a bound the curve of a simulated performer may come."""
_NEWTON = 12
_MOST_PLACES = 101


@dataclass(frozen=True, eq=False)
class Pilot:
    """A performer of the pilot study."""

    name: str
    role: Role
    fit: CurveFit
    alternative: CurveFit
    """The curve that is fitted where the number of subjects no longer calls for a simple one."""
    spread: float
    """Standard deviation of persons on the scale of the linear predictor."""
    stratum: int
    """Performers of one stratum have the same subjects."""

    @property
    def counts(self) -> Counts:
        """The trials."""
        return self.fit.counts

    def fit_for(self, subjects: int) -> CurveFit:
        """The curve that a study of so many subjects would fit."""
        return self.alternative if subjects >= FEW_SUBJECTS else self.fit

    def departures(self) -> Array:
        """What each subject's trials came to, less what the curve expects."""
        return np.asarray(self.counts.totals.sum(axis=1) - self.counts.sizes @ curve_of(self.fit)).ravel()

    def expected(self) -> Array:
        """What each subject's trials come to (row) for persons of each kind (column)."""
        return np.asarray(self.counts.sizes @ shares_of(self.fit, self.spread, _normal()[0]))

    def simulated(self, departures: Array, trials: int, rng: np.random.Generator) -> Counts:
        """The counts of studies, a row for each row of persons' departures; x is drawn from that of the pilot."""
        chance = np.cumsum(self.counts.sizes.sum(axis=0))
        where = np.searchsorted(chance, rng.random((*departures.shape, trials)) * chance[-1], side="right")
        middle = average_person(self.fit, self.spread)
        mean = means(_link(self.counts), middle[where] + self.spread * departures[..., None])
        return _counted(self.counts, where, _luck(self, mean, rng))


@dataclass(frozen=True, eq=False)
class Pilots:
    """All performers of a pilot study."""

    performers: tuple[Pilot, ...]
    correlation: Array
    """Of a person's departures with two performers; 0 for those that share no subjects."""

    def simulated(self, subjects: int, trials: int, studies: int, rng: np.random.Generator) -> list[Counts]:
        """The counts of each performer, a row for each study."""
        values, vectors = np.linalg.eigh(self.correlation)
        root = vectors * np.sqrt(np.maximum(values, 0))
        root /= np.linalg.norm(root, axis=1, keepdims=True)
        departures = rng.standard_normal((studies, subjects, len(root))) @ root.T
        return [one.simulated(departures[..., place], trials, rng) for place, one in enumerate(self.performers)]


def pilots_of(trials: Trials, options: FitOptions) -> Pilots:
    """What the trials of a study know of others like it."""
    counts = [_coarse(trials, trials.performer == place) for place in range(len(trials.performers))]
    label = strata(counts)
    found = []
    for name, role, one in zip(trials.performers, trials.roles, counts, strict=True):
        fit = fit_curve(one, options, who=name)
        simple = options.kind == "auto" and fit.kind != "spline" and "distinct x" not in fit.reason
        other = fit_curve(one, replace(options, kind="spline"), who=name) if simple else fit
        found.append(Pilot(name, role, fit, other, spread_of(fit), int(label[one.present[0]])))
    return Pilots(tuple(found), _correlation(found))


def _coarse(trials: Trials, rows: NDArray[np.bool_]) -> Counts:
    """The counts of trials, with x rounded so that there are few places and thousands of studies are soon fitted."""
    mine = trials.taken(rows)
    low, high = mine.x.min(), mine.x.max()
    if len(np.unique(mine.x)) > _MOST_PLACES:
        gap = (high - low) / (_MOST_PLACES - 1)
        mine = replace(mine, x=np.clip(low + np.rint((mine.x - low) / gap) * gap, low, high))
    return counts_of(mine, np.ones(len(mine), dtype=bool))


def spread_of(fit: CurveFit) -> float:
    """Standard deviation of persons, on the logit or on the metric itself; 0 where nobody has two trials."""
    counts, curve = fit.counts, curve_of(fit)
    sizes = np.asarray(counts.sizes.sum(axis=1)).ravel()
    if counts.subjects < 2 or not (sizes > 1).any():
        return 0.0
    residual = np.asarray(counts.totals.sum(axis=1) - counts.sizes @ curve).ravel()
    # The curve was fitted to the same subjects, which brings them nearer to it.
    observed = _freed(counts.subjects) * float(residual @ residual) - _alone(counts, curve)
    if observed <= 0:
        return 0.0
    if counts.scale.upper is None:
        return float(np.sqrt(observed / _between(fit, 1.0)))
    if observed >= _between(fit, _WIDEST):
        return _WIDEST
    from scipy.optimize import brentq

    return float(brentq(lambda spread: _between(fit, spread) - observed, 0.0, _WIDEST, xtol=1e-4))


def curve_of(fit: CurveFit) -> Array:
    """The fitted share at each place, kept off the bounds of the metric."""
    return fit.shares if fit.counts.scale.upper is None else np.clip(fit.shares, _EDGE, 1 - _EDGE)


def average_person(fit: CurveFit, spread: float) -> Array:
    """The linear predictor of the person in the middle, such that all persons together have the fitted curve.

    Newton's method, from what the formula of Zeger, Liang and Albert (1988) gives.
    """
    curve = curve_of(fit)
    if fit.counts.scale.upper is None or spread == 0:
        return curve if fit.counts.scale.upper is None else _logit(curve)
    nodes, weights = _normal()
    found = _logit(curve) * np.sqrt(1 + 0.346 * spread**2)
    for _ in range(_NEWTON):
        share = means("logit", found[:, None] + spread * nodes)
        found = found - np.clip((share @ weights - curve) / ((share * (1 - share)) @ weights), -2, 2)
    return np.asarray(found)


def shares_of(fit: CurveFit, spread: float, persons: Array) -> Array:
    """The share at each place (row) of persons who depart so far (column), in standard deviations."""
    middle = average_person(fit, spread)[:, None] + spread * persons
    return means(_link(fit.counts), middle)


def _link(counts: Counts) -> Link:
    return "identity" if counts.scale.upper is None else "logit"


def _logit(share: Array) -> Array:
    return np.asarray(np.log(share) - np.log1p(-share))


@cache
def _normal() -> tuple[Array, Array]:
    nodes, weights = np.polynomial.hermite_e.hermegauss(_PERSONS)
    return nodes, weights / weights.sum()


def _freed(subjects: int) -> float:
    return subjects / max(subjects - 1, 1)


def _alone(counts: Counts, curve: Array) -> float:
    """What trials add to the squared residuals of their subjects each by itself."""
    if counts.binomial and counts.scale.upper is not None:
        return float((counts.sizes @ (curve * (1 - curve))).sum())
    return counts.squared_distance(curve)


def _between(fit: CurveFit, spread: float) -> float:
    """What the products of residuals of two trials of a subject sum to when persons differ so much."""
    persons, weights = _normal()
    shares, curve = shares_of(fit, spread, persons), curve_of(fit)
    sizes = fit.counts.sizes
    together = (sizes @ shares) ** 2 @ weights - (sizes @ curve) ** 2
    same = sizes @ (shares**2 @ weights - curve**2)
    return float((together - same).sum())


def _correlation(found: Sequence[Pilot]) -> Array:
    whole = np.eye(len(found))
    for (row, one), (column, other) in combinations(enumerate(found), 2):
        if one.stratum == other.stratum:
            whole[row, column] = whole[column, row] = _alike(one, other)
    return whole


def _alike(one: Pilot, other: Pilot) -> float:
    """How far a person who is good with one performer is good with another, by moments."""
    shared = np.intersect1d(one.counts.present, other.counts.present)
    if len(shared) < 2 or not one.spread or not other.spread:
        return 0.0
    observed = _freed(len(shared)) * float(one.departures()[shared] @ other.departures()[shared])
    weights = _normal()[1]
    left, right = one.expected()[shared], other.expected()[shared]
    full = float(((left * right) @ weights - (left @ weights) * (right @ weights)).sum())
    return float(np.clip(observed / full, -1, 1))


def _luck(pilot: Pilot, mean: Array, rng: np.random.Generator) -> Array:
    """How trials come out whose expectation is the mean."""
    if pilot.counts.scale.upper is None:
        return np.asarray(mean + np.sqrt(_left(pilot)) * rng.standard_normal(mean.shape))
    if pilot.counts.binomial:
        return (rng.random(mean.shape) < mean).astype(float)
    weight = 1 / np.clip(_left(pilot), 1e-4, 0.99) - 1
    inside = np.clip(mean, _EDGE, 1 - _EDGE)
    return np.asarray(rng.beta(weight * inside, weight * (1 - inside)))


def _left(pilot: Pilot) -> float:
    """Variance within a person: of scores with an upper bound beside that of trials that are right or wrong."""
    counts, curve = pilot.counts, curve_of(pilot.fit)
    persons, weights = _normal()
    _, sizes = counts.whole()
    shares = shares_of(pilot.fit, pilot.spread, persons)
    left = counts.squared_distance(curve) - float(sizes @ (shares**2 @ weights - curve**2))
    if counts.scale.upper is None:
        return max(left / float(sizes.sum()), 0.0)
    return max(left / float(sizes @ ((shares * (1 - shares)) @ weights)), 0.0)


def _counted(like: Counts, where: NDArray[np.int64], share: Array) -> Counts:
    """Counts with a row for each study of simulated trials."""
    from scipy.sparse import csr_array

    shape = (len(where), len(like.places))
    cell = (where + len(like.places) * np.arange(len(where))[:, None, None]).ravel()

    def summed(values: Array) -> Any:
        return csr_array(np.bincount(cell, weights=values.ravel(), minlength=shape[0] * shape[1]).reshape(shape))

    return replace(
        like,
        totals=summed(share),
        sizes=summed(np.ones_like(share)),
        squares=summed(share**2),
        rows=where[0].size,
        entropy=0.0,
    )
