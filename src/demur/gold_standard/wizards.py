"""Whether wizards agree, so that there is one gold standard: each wizard's curve against the pooled one."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import chdtrc, fdtrc

from demur.core.arrays import Array
from demur.core.show.results import plain
from demur.core.stats.intervals import normal, student
from demur.gold_standard.checks import difference_text, span, variance
from demur.gold_standard.curves import Counts, CurveBatch, solve
from demur.gold_standard.fitting import CurveFit, Performer
from demur.gold_standard.trials import Trials

GRID = 101
"""Places over the range at which curves of wizards are given."""

_TOLERANCE = 1e-10
"""Newton's decrement at which the last of the wizards' curves has converged."""


def wizard_curves(fit: CurveFit, places: Array, prior: Array, unit: float) -> tuple[Array, Array]:
    """Where curves are given, and the performance of each wizard who has trials (a row) there.

    On the scale of the linear predictor a wizard's curve is the pooled one plus a + b z, with z the `places` of trials.
    The numbers a and b are normal with the standard deviations `prior`, so wizards with few trials stay near the pooled
    curve. `unit` is the variance of a trial beside what the link takes for granted.
    """
    counts = fit.counts
    totals, sizes = (np.asarray(part[counts.present].todense()) for part in (counts.totals, counts.sizes))
    rows = np.stack([np.ones_like(places), places], axis=1)
    pooled = fit.predictor(counts.places)
    batch = CurveBatch(rows, np.diag(1 / prior**2), np.zeros(2, dtype=bool), fit.link, pooled)
    moves = solve(batch, totals / unit, sizes / unit, np.zeros(2), _TOLERANCE, together=True)
    grid = np.linspace(counts.low, counts.high, GRID)
    there = np.stack([np.ones(GRID), np.interp(grid, counts.places, places)], axis=1)
    curves = fit.performance(fit.predictor(grid) + moves @ there.T)
    scale = counts.scale
    return grid, curves if scale.upper is None else np.clip(curves, scale.lower, scale.upper)


def mean_distance(curves: Array) -> float:
    """How far apart two curves (rows) are on average over their places; NaN for one alone.

    >>> mean_distance(np.array([[0.0, 0.0], [1.0, 0.5], [1.0, 0.5]]))
    0.5
    """
    wizards = len(curves)
    if wizards < 2:
        return float("nan")
    # Of sorted values each is added as often as it is the larger of two, and taken off as often as the smaller.
    times = 2 * np.arange(wizards) - wizards + 1
    sums = times @ np.sort(curves, axis=0)
    return float(sums.mean() / (wizards * (wizards - 1) / 2))


SIGNIFICANT = 0.01
"""Below this p-value wizards differ beyond chance: a warning should be rarer than one of twenty sound studies."""

FAR_APART = 0.1
"""Standard deviation between wizards, as part of the metric's width, from which one curve no longer stands for all:
then two wizards of three are within ten points of the curve, and systems often differ by less."""

MOST_CURVES = 200
"""Wizards up to whom each gets a curve; more lines cannot be distinguished, and each has few trials."""

_STILL = 0.2
"""Least standard deviation of wizards' curves, in standard deviations of a trial or logits: else, where chance explains
all difference, every curve would be the pooled one."""

_ONE_PLACE = 1e-9
"""Spread of places, beside the range, below which a wizard was at one place."""


@dataclass(frozen=True, slots=True)
class Heterogeneity:
    """How far estimates of several wizards differ beyond chance.

    Cochran's `q` is a sum of squared departures from their mean in units of their standard errors, about `df` where
    wizards are alike. `i2` is the share of it beyond chance. `tau` is the standard deviation between wizards beyond
    chance (DerSimonian and Laird 1986), in units of the metric. NaN where fewer than two wizards can be compared.
    """

    q: float
    df: int
    p: float
    i2: float
    tau: float

    def words(self) -> str:
        """Q and its p-value."""
        p = "p < 0.001" if self.p < 0.001 else f"p = {self.p:.3f}"
        return f"Q = {self.q:.1f} with {self.df} degrees of freedom, {p}"


@dataclass(frozen=True, slots=True)
class Wizard:
    """One wizard: how many trials, and how far above the pooled curve they lie on average."""

    name: str
    n: float
    departure: float
    error: float
    """Standard error of the departure if the wizard were like the others."""
    apart: bool
    """Whether the departure is beyond chance, allowing for the number of wizards."""


@dataclass(frozen=True, slots=True, eq=False)
class WizardAgreement:
    """How the wizards of a study compare.

    `departure` is about how well they do, `trend` about whether x acts on them alike; `tau` of the latter is the root
    mean square over trials of how far it moves curves. `distance` is how far apart the curves of two wizards are on
    average over the range.
    """

    performer: str
    wizards: tuple[Wizard, ...]
    departure: Heterogeneity
    trend: Heterogeneity
    x: Array
    curves: Array
    """One row a wizard; none where there are too many wizards."""
    distance: float
    independent: bool
    level: float
    counts: Counts = field(repr=False)

    @property
    def apart(self) -> tuple[str, ...]:
        """The wizards who stand apart from the others."""
        return tuple(one.name for one in self.wizards if one.apart)

    @property
    def consistent(self) -> bool | None:
        """Whether there is one gold standard for all; None where that cannot be known."""
        if self.independent or len(self.wizards) < 2:
            return None
        return not (self._far_apart or self.trend.p < SIGNIFICANT)

    @property
    def _far_apart(self) -> bool:
        return self.departure.p < SIGNIFICANT and self.departure.tau > FAR_APART * span(self.counts)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is to be said against the gold standard."""
        if self.independent:
            return ("no column names the wizards, so whether they agree cannot be known",)
        if len(self.wizards) < 2:
            return ("there is one wizard alone, so whether others would do as well cannot be known",)
        if self.consistent:
            return ()
        how = []
        if self._far_apart:
            far = f"wizards differ by a standard deviation of {difference_text(self.departure.tau, self.counts)}"
            how.append(f"{far} beyond chance ({self.departure.words()})")
        if self.trend.p < SIGNIFICANT:
            how.append(f"x does not act on all of them alike ({self.trend.words()})")
        flaws = "difference between wizards may reveal serious design flaws (Paek 2001, section 3.2)"
        return (f"there is no consistent gold standard: {' and '.join(how)}; {flaws}",)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was not done."""
        if len(self.wizards) <= MOST_CURVES:
            return ()
        return (f"there are {len(self.wizards):,} wizards, more than {MOST_CURVES}, and no curve for each",)

    def frame(self) -> pl.DataFrame:
        """The wizards' curves as rows: `subject`, `x`, `y` and `apart`."""
        wizards = self.wizards if len(self.curves) else ()
        return pl.DataFrame(
            {
                "subject": [one.name for one in wizards for _ in self.x],
                "x": np.tile(self.x, len(wizards)),
                "y": self.curves.ravel(),
                "apart": [one.apart for one in wizards for _ in self.x],
            },
            schema={"subject": pl.String, "x": pl.Float64, "y": pl.Float64, "apart": pl.Boolean},
        )

    def to_dict(self) -> dict[str, Any]:
        """The agreement as plain values; curves are in the frame."""
        names = ("performer", "wizards", "departure", "trend", "distance", "apart", "consistent", "level", "warnings")
        values = {name: getattr(self, name) for name in (*names, "notes")}
        parts = {name: asdict(values[name]) for name in ("departure", "trend")}
        return dict(plain({**values, "wizards": [asdict(one) for one in self.wizards], **parts}))


def wizards(trials: Trials, gold: Performer) -> WizardAgreement:
    """How the subjects of the gold standard depart from its pooled curve, and whether they differ beyond chance."""
    fit = gold.fit
    sums = _WizardSums.of(fit)
    departure = sums.residual / sums.n
    error = np.sqrt(sums.chance) / sums.n
    width = fit.counts.scale.width
    x, curves = np.empty(0), np.empty((0, 0))
    if not trials.independent and len(departure) <= MOST_CURVES:
        least = _STILL * (1.0 if fit.link == "logit" else float(np.sqrt(sums.unit)))
        spreads = [_heterogeneity(*estimates, sums.freedom, 1.0).tau for estimates in (sums.moves, sums.tilts)]
        x, curves = wizard_curves(fit, sums.z, np.fmax(np.array(spreads), least), max(sums.unit, 1e-12))
    strict = 1 - (1 - gold.level) / len(departure)
    critical = normal(strict) if np.isinf(sums.freedom) else student(strict, sums.freedom)
    apart = _standing_apart(departure, error, critical, sums.freedom)
    rows = zip(fit.counts.present, sums.n, departure, error, apart, strict=True)
    return WizardAgreement(
        performer=gold.name,
        wizards=tuple(
            Wizard(trials.subjects[who], float(n), float(width * far), float(width * chance), bool(apart))
            for who, n, far, chance, apart in rows
        ),
        departure=_heterogeneity(departure, error, sums.freedom, width),
        trend=_heterogeneity(*sums.tilts, sums.freedom, width * sums.turned),
        x=x,
        curves=curves,
        distance=mean_distance(curves),
        independent=trials.independent,
        level=gold.level,
        counts=fit.counts,
    )


@dataclass(frozen=True, slots=True)
class _WizardSums:
    """What the trials of each wizard sum to, in shares.

    The place z of a trial is 0 at the mean of all trials, and the range is 1. `reach` is what residuals gain when the
    linear predictor gains 1. The sums `tilt`, `tilt_chance` and `tilt_reach` are the same of residuals times z, with
    z less its mean for the wizard, weighted by `reach`: then a wizard whose curve is moved but not tilted has no tilt.
    """

    n: Array
    residual: Array
    chance: Array
    """Variance of the residual if the wizard were like the others."""
    reach: Array
    tilt: Array
    tilt_chance: Array
    tilt_reach: Array
    turned: float
    """Root mean square, over trials, of what performance gains when the linear predictor gains z."""
    z: Array
    unit: float
    """Variance of a trial beside what the link takes for granted."""
    freedom: float
    """Degrees of freedom behind the variance of a trial; infinite where it is known."""

    @classmethod
    def of(cls, fit: CurveFit) -> _WizardSums:
        counts, shares = fit.counts, fit.shares
        totals, sizes = counts.totals[counts.present], counts.sizes[counts.present]
        middle_of_all = np.average(counts.places, weights=counts.whole[1])
        z = np.asarray((counts.places - middle_of_all) / (counts.high - counts.low))
        dispersion, freedom = _within(fit, z)
        chance = variance(fit, dispersion)
        slope = shares * (1 - shares) if fit.link == "logit" else np.ones_like(shares)
        residual = _residuals(totals, sizes, shares, np.ones_like(z))
        reach = sizes @ slope
        middle = (sizes @ (slope * z)) / reach
        return cls(
            n=np.asarray(sizes.sum(axis=1)).ravel(),
            residual=residual,
            chance=sizes @ chance,
            reach=reach,
            tilt=_residuals(totals, sizes, shares, z) - middle * residual,
            tilt_chance=_centred_squares(sizes, z, middle, chance),
            tilt_reach=_centred_squares(sizes, z, middle, slope),
            turned=float(np.sqrt(_centred_squares(sizes, z, middle, slope**2).sum() / sizes.sum())),
            z=z,
            unit=dispersion if fit.link == "logit" else float((sizes @ chance).sum() / sizes.sum()),
            freedom=freedom,
        )

    @property
    def moves(self) -> tuple[Array, Array]:
        """How far each wizard's linear predictor is above the pooled one, and the standard error of that."""
        return self.residual / self.reach, np.sqrt(self.chance) / self.reach

    @property
    def tilts(self) -> tuple[Array, Array]:
        """How much more it rises over the range, and the standard error; of wizards who were at several places."""
        known = self.tilt_reach > _ONE_PLACE * self.reach
        steep = self.tilt_reach[known]
        return self.tilt[known] / steep, np.sqrt(self.tilt_chance[known]) / steep


def _centred_squares(sizes: Any, z: Array, middle: Array, weight: Array) -> Array:
    """Sums of each wizard's squared places, less a middle of the wizard's own, times a weight of the place."""
    zeroth, first, second = (sizes @ (weight * z**power) for power in (0, 1, 2))
    return np.asarray(np.maximum(second - 2 * middle * first + middle**2 * zeroth, 0))


def _residuals(totals: Any, sizes: Any, shares: Array, weight: Array) -> Array:
    return np.asarray(totals @ weight - sizes @ (shares * weight))


def _within(fit: CurveFit, z: Array) -> tuple[float, float]:
    """Dispersion of scores around lines of the wizards' own, and its degrees of freedom.

    Around the pooled curve it would hold what wizards differ by, and hide it.
    """
    counts = fit.counts
    if counts.binomial:
        return 1.0, float("inf")
    totals, sizes = counts.totals[counts.present], counts.sizes[counts.present]
    n = np.asarray(sizes.sum(axis=1)).ravel()
    freedom = counts.rows - len(fit.coefficients) - 2 * (len(n) - 1)
    if freedom < len(n):
        return fit.dispersion, max(counts.rows - len(fit.coefficients), 1)
    middle = sizes @ z / n
    residual = _residuals(totals, sizes, fit.shares, np.ones_like(z))
    tilt = _residuals(totals, sizes, fit.shares, z) - middle * residual
    steep = _centred_squares(sizes, z, middle, np.ones_like(z))
    lines = residual**2 / n + np.divide(tilt**2, steep, out=np.zeros_like(n), where=steep > _ONE_PLACE * n)
    left = max(counts.squared_distance(fit.shares) - float(lines.sum()), 0.0)
    if fit.link == "identity":
        return left / freedom, freedom
    expected = float((sizes @ (fit.shares * (1 - fit.shares))).sum())
    return left / max(expected, 1e-12) * counts.rows / freedom, freedom


def _standing_apart(departure: Array, error: Array, critical: float, freedom: float) -> NDArray[np.bool_]:
    """Who departs by more than chance and the differences among all the others would explain."""
    apart = np.abs(departure) > critical * error
    for place in np.flatnonzero(apart):
        others = np.arange(len(departure)) != place
        between = _heterogeneity(departure[others], error[others], freedom, 1.0).tau
        apart[place] = abs(departure[place]) > critical * np.hypot(error[place], np.nan_to_num(between))
    return np.asarray(apart)


def _heterogeneity(estimate: Array, error: Array, freedom: float, unit: float) -> Heterogeneity:
    """Cochran's Q and what follows from it; `unit` is what a difference of 1 is worth in the metric."""
    df = len(estimate) - 1
    if df < 1:
        return Heterogeneity(float("nan"), max(df, 0), float("nan"), float("nan"), float("nan"))
    weight = 1 / error**2
    q = float(weight @ (estimate - np.average(estimate, weights=weight)) ** 2)
    excess = max(q - df, 0.0)
    between = excess / float(weight.sum() - (weight @ weight) / weight.sum())
    p = float(chdtrc(df, q) if np.isinf(freedom) else fdtrc(df, freedom, q / df))
    return Heterogeneity(q, df, p, excess / q if q else 0.0, float(unit * np.sqrt(between)))
