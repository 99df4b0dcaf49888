"""One performer's curve: fitted to counts, refitted to resampled subjects, and its band."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.arrays import Array
from demur.core.show.results import Step, silent
from demur.core.stats.intervals import student
from demur.errors import DataError
from demur.gold_standard.curves import (
    FAMILIES,
    STRICT_TOLERANCE,
    Counts,
    CurveFamily,
    LinearFamily,
    Link,
    Slope,
    batch_of,
    batch_size,
    chosen_smoothness,
    deviance,
    held_out,
    means,
    with_prior,
)
from demur.gold_standard.jobs import FitChoice, FitKind, XDirection
from demur.gold_standard.trials import Role


@dataclass(frozen=True, slots=True, eq=False)
class SubjectDraws:
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


def draw_subjects(performers: Sequence[Counts], replicates: int, seed: int) -> SubjectDraws:
    """Subjects resampled so that every performer has trials in every replicate."""
    rng = np.random.default_rng(seed)
    label = strata(performers)
    times = np.zeros((replicates, len(label)), dtype=np.uint8)
    worth = np.ones(len(label))
    strata_members = [np.flatnonzero(label == stratum) for stratum in np.unique(label[label >= 0])]
    for members in strata_members:
        worth[members] = len(members) / max(len(members) - 1, 1)
    present = [one.present for one in performers]
    missing = np.arange(replicates)
    for _ in range(1000):
        for members in strata_members:
            n = len(members)
            drawn = rng.multinomial(n - 1, np.full(n, 1 / n), size=len(missing)) if n > 1 else 1
            times[np.ix_(missing, members)] = np.minimum(drawn, 255)
        empty = np.any([times[np.ix_(missing, who)].sum(axis=1) == 0 for who in present], axis=0)
        missing = missing[empty]
        if not len(missing):
            return SubjectDraws(times, worth)
    raise DataError("subjects cannot be resampled so that every performer has trials", fix="are there enough subjects?")


_SLOPES: dict[XDirection, Slope | None] = {"harmful": "falling", "helpful": "rising", "any": None}

FEW_SUBJECTS = 15
"""Below this many subjects a simple curve is taken unless a spline predicts subjects left out better."""

_NOTHING = 1e-9
"""A sum of shares no larger than this is what arithmetic leaves of none."""

_CLEARLY = 10.8
"""What a slope gains in deviance once in a thousand times where there is none (chi-squared, one degree)."""

_FEW_PLACES = 4
"""Below this many distinct x a spline has nothing to bend at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FitOptions:
    """What kind of curve to fit, and whether x may only harm, or only help."""

    kind: FitChoice = "auto"
    direction: XDirection = "harmful"
    degree: int = 3


@dataclass(frozen=True, eq=False)
class CurveFit:
    """A curve, the counts it was fitted to, and why it is of this kind."""

    family: CurveFamily
    coefficients: Array
    smoothness: float
    counts: Counts
    reason: str

    @property
    def kind(self) -> FitKind:
        """The kind of curve."""
        return self.family.kind

    @property
    def link(self) -> Link:
        """The scale on which the curve is a sum of functions, and on which its band is symmetric."""
        return self.family.link

    def __call__(self, x: Array) -> Array:
        """Performance at these places; NaN outside the range of the trials, since nothing is known there."""
        places = np.asarray(x, dtype=float)
        slack = 1e-12 * (self.family.high - self.family.low)
        known = (places >= self.family.low - slack) & (places <= self.family.high + slack)
        share = means(self.link, self.predictor(places.ravel())).reshape(places.shape)
        return np.where(known, self.counts.scale.performance(share), np.nan)

    def predictor(self, x: Array, coefficients: Array | None = None) -> Array:
        """The linear predictor at places, of this curve or of refits (a row each)."""
        return self.family.predictor(x, self.coefficients if coefficients is None else coefficients)

    def performance(self, predictor: Array) -> Array:
        """What a linear predictor stands for."""
        return self.counts.scale.performance(means(self.link, predictor))

    def band(self, x: Array, reach: Array) -> tuple[Array, Array]:
        """What lies within reach of the linear predictor at places; within the bounds of the metric.

        Where every trial further on failed, or every one before succeeded, the band goes to the bound: on the logit
        scale it never would, and no trial there speaks against it.
        """
        middle, scale = self.predictor(x), self.counts.scale
        low, high = (self.performance(middle + sign * reach) for sign in (-1, 1))
        if scale.upper is None:
            return low, high
        totals, sizes = self.counts.whole
        won, lost = (self.counts.places[amount > _NOTHING] for amount in (totals, sizes - totals))
        low, high = (np.clip(end, scale.lower, scale.upper) for end in (low, high))
        return np.where(_beyond(x, won), scale.lower, low), np.where(_beyond(x, lost), scale.upper, high)

    def refits(self, weights: SubjectDraws | Array, *, step: Step = silent, what: str = "refitting") -> Array:
        """The coefficients of the same kind of curve, as smooth, when subjects count by weights: a row each."""
        size = batch_size(self.counts)
        refits = np.empty((len(weights), len(self.coefficients)))
        for first in range(0, len(weights), size):
            step(what, first, len(weights))
            part = np.asarray(weights[first : first + size], dtype=float)
            refits[first : first + size] = self.family.estimate(self.counts, part, self.smoothness, self.coefficients)
        step(what, len(weights), len(weights))
        return refits

    @property
    def shares(self) -> Array:
        """The fitted share at each place that has trials."""
        return means(self.link, self.predictor(self.counts.places))

    @property
    def dispersion(self) -> float:
        """How much trials vary beside what the model takes for granted; 1 for trials that are right or wrong."""
        if self.link == "logit" and self.counts.binomial:
            return 1.0
        distance = self.counts.squared_distance(self.shares)
        freedom = max(self.counts.rows - self.family.free_parameters(self.coefficients), 1)
        if self.link == "identity":
            return distance / freedom
        _, sizes = self.counts.whole
        expected = float((sizes * self.shares * (1 - self.shares)).sum())
        return distance / max(expected, 1e-12)

    def model_error(self, x: Array) -> Array:
        """Standard error of the linear predictor if trials were independent."""
        return self.family.standard_error(self, x)

    @cached_property
    def covariance(self) -> Array:
        """Of the coefficients, allowing for what smoothing leaves out (the Bayesian one, Wood 2017, section 6.10)."""
        batch = batch_of(self.family, self.counts, self.smoothness)
        totals, sizes = self.counts.whole
        _, padded = with_prior(self.family, totals[None], sizes[None])
        mean = means(self.link, batch.rows @ self.coefficients)
        weight = padded[0] * (mean * (1 - mean) if self.link == "logit" else 1.0)
        information = (batch.rows * weight[:, None]).T @ batch.rows + batch.penalty
        free = np.flatnonzero(~(batch.bounded & (self.coefficients <= 0)))
        covariance = np.zeros_like(information)
        covariance[np.ix_(free, free)] = np.linalg.inv(information[np.ix_(free, free)] + 1e-9 * np.eye(len(free)))
        return np.asarray(covariance * self.dispersion)


def fit_curve(counts: Counts, options: FitOptions, *, who: str = "the performer") -> CurveFit:
    """The curve of a performer; where the kind is left open, the one that suits the number of subjects."""
    if len(counts.places) < 2:
        rule = f"all trials of {who} are at one x, {counts.low:g}, and a curve needs several"
        raise DataError(rule, fix="leave the performer out, or run trials at other x")
    if options.kind != "auto":
        family = _family(options.kind, counts, options)
        family.check(counts, who)
        smoothness = chosen_smoothness(family, counts) if family.penalised else 0.0
        return _estimated(family, counts, smoothness, "asked for")
    simple = _family("linear" if counts.scale.upper is None else "logistic", counts, options)
    if len(counts.places) < _FEW_PLACES:
        return _estimated(simple, counts, 0.0, f"{len(counts.places)} distinct x")
    spline = _family("spline", counts, options)
    smoothness = chosen_smoothness(spline, counts)
    if counts.subjects >= FEW_SUBJECTS:
        return _estimated(spline, counts, smoothness, f"{counts.subjects} subjects")
    few = f"{counts.subjects} subjects, fewer than {FEW_SUBJECTS}"
    if held_out(spline, counts, smoothness) < held_out(simple, counts, 0.0):
        why = f"{few}, but a {simple.kind} curve predicts subjects left out less well"
        return _estimated(spline, counts, smoothness, why)
    return _estimated(simple, counts, 0.0, few)


def goes_against(fit: CurveFit, direction: XDirection) -> bool:
    """Whether trials clearly go the way that a curve is not allowed to: a free slope gains more than chance would."""
    if direction == "any" or not fit.family.directed:
        return False
    counts = fit.counts
    free = LinearFamily(counts.low, counts.high, "identity" if counts.scale.upper is None else "logit")
    line = _estimated(free, counts, 0.0, "")
    slope = line.coefficients[1] * (1 if direction == "harmful" else -1)
    gained = deviance(free, counts.mean_shares, *counts.whole) - deviance(free, line.shares, *counts.whole)
    return bool(slope > 0 and gained > _CLEARLY * line.dispersion)


def _family(kind: FitKind, counts: Counts, options: FitOptions) -> CurveFamily:
    family = FAMILIES[kind]
    link: Link = "logit" if family.on_logit and counts.scale.upper is not None else "identity"
    places = tuple(counts.places.tolist())
    return family(counts.low, counts.high, link, _SLOPES[options.direction], options.degree, places)


def _estimated(family: CurveFamily, counts: Counts, smoothness: float, reason: str) -> CurveFit:
    everyone = np.ones((1, counts.totals.shape[0]))
    (coefficients,) = family.estimate(counts, everyone, smoothness, np.zeros(family.size), STRICT_TOLERANCE)
    return CurveFit(family, coefficients, smoothness, counts, reason)


def _beyond(x: Array, places: Array) -> NDArray[np.bool_]:
    """Which places lie before the first or after the last of others; all, where there are none."""
    if not len(places):
        return np.ones(np.shape(x), dtype=bool)
    return np.asarray((x < places[0]) | (x > places[-1]))


_STILL = 1e-3
"""Replicates that spread less than this part of the model's own error say nothing: all subjects were alike."""


@dataclass(frozen=True, eq=False)
class Performer:
    """Who performed, how well as x grows, and what is known of that."""

    name: str
    role: Role
    fit: CurveFit
    refits: Array
    """Coefficients, a row for each replicate."""
    noise: Array
    """A standard normal number for each replicate, used where the replicates do not spread at all."""
    level: float
    system: str = ""
    """Whose combination of components this is, where they are separate; otherwise the name."""
    components: frozenset[str] | None = None
    """What was switched on, where combinations are separate."""

    @property
    def subjects(self) -> int:
        """How many subjects have trials."""
        return self.fit.counts.subjects

    @property
    def trials(self) -> int:
        """How many trials there are."""
        return round(float(self.fit.counts.sizes.sum()))

    @property
    def critical(self) -> float:
        """Student's critical value with one degree of freedom less than there are subjects."""
        return student(self.level, self.subjects - 1)

    def error(self, x: Array) -> Array:
        """Standard error of the linear predictor: that of the replicates, and no less than independent trials have."""
        drawn = self.fit.predictor(x, self.refits)
        return np.asarray(np.maximum(drawn.std(axis=0, ddof=1), self.fit.model_error(x)))

    def band(self, x: Array) -> tuple[Array, Array]:
        """Where the curve can be at each place, each taken alone; within the bounds of the metric."""
        return self.fit.band(x, self.critical * self.error(x))

    def curve(self, places: int) -> pl.DataFrame:
        """The curve with its band at so many places over the range of its trials: `x, y, low, high`."""
        x = np.linspace(self.fit.family.low, self.fit.family.high, places)
        low, high = self.band(x)
        return pl.DataFrame({"x": x, "y": self.fit(x), "low": low, "high": high})

    def replicates(self, x: Array) -> Array:
        """Performance at places in each replicate, spread as widely as the band says."""
        middle = self.fit.predictor(x)
        around = self.fit.predictor(x, self.refits) - middle
        spread, least = around.std(axis=0, ddof=1), self.fit.model_error(x)
        still = spread <= _STILL * least
        stretch = np.divide(np.maximum(spread, least), spread, out=np.ones_like(spread), where=~still)
        moved = np.where(still, self.noise[:, None] * least, around * stretch)
        return self.fit.performance(middle + moved)

    @cached_property
    def r2(self) -> float:
        """The share of the variance of trials that the curve accounts for; NaN where all trials came out alike."""
        counts = self.fit.counts
        spread = counts.squared_distance(counts.mean_shares)
        nothing = spread <= 1e-12 * counts.sizes.sum()
        return float("nan") if nothing else 1 - counts.squared_distance(self.fit.shares) / spread

    @cached_property
    def deviance_explained(self) -> float:
        """The share of the deviance from one rate for all x that the curve accounts for; NaN where R2 is."""
        counts = self.fit.counts
        if self.fit.link == "identity" or np.isnan(self.r2):
            return self.r2
        both = (self.fit.shares, counts.mean_shares)
        left, none = (deviance(self.fit.family, shares, *counts.whole) + 2 * counts.entropy for shares in both)
        return 1 - left / none
