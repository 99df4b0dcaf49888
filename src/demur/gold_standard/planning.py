"""How many subjects and trials a study needs, by simulating studies from a pilot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.arrays import Array
from demur.core.show.numbers import listed, percent, short
from demur.core.show.results import Shown, Step, plain, silent
from demur.core.stats.intervals import student
from demur.errors import DataError
from demur.gold_standard.curves import Counts, Link, counts_of, means
from demur.gold_standard.fitting import FEW_SUBJECTS, CurveFit, FitOptions, fit_curve, strata
from demur.gold_standard.integrals import CurveGrid
from demur.gold_standard.trials import Role, Trials

_PERSONS = 32
"""Points of the Gauss-Hermite rule over persons."""
_WIDEST = 4.0
"""The largest spread that is looked for on the logit; at 4 nearly everybody always or never succeeds."""
_EDGE = 1e-4
"""How near to a bound the curve of a simulated performer may come."""
_NEWTON = 12
_MOST_PLACES = 100
"""Few, so that thousands of studies are soon fitted."""


@dataclass(frozen=True, eq=False)
class PilotPerformer:
    """A performer of the pilot study."""

    name: str
    role: Role
    fit: CurveFit
    """The curve that simulated trials come from."""
    planned: CurveFit
    """The kind of curve that every simulated study fits, whatever its number of subjects."""
    spread: float
    """Standard deviation of persons on the scale of the linear predictor."""
    stratum: int
    """Performers of one stratum have the same subjects."""

    @property
    def counts(self) -> Counts:
        """The trials."""
        return self.fit.counts

    def simulated(self, departures: Array, trials: int, rng: np.random.Generator) -> Counts:
        """The counts of studies, a row for each row of persons' departures; x is drawn from that of the pilot."""
        chance = np.cumsum(self.counts.sizes.sum(axis=0))
        where = np.searchsorted(chance, rng.random((*departures.shape, trials)) * chance[-1], side="right")
        middle = average_person(self.fit, self.spread)
        mean = means(_link(self.counts), middle[where] + self.spread * departures[..., None])
        return _count(self.counts, where, self._outcomes(mean, rng))

    def _outcomes(self, mean: Array, rng: np.random.Generator) -> Array:
        """How trials come out whose expectation is the mean."""
        counts, curve = self.counts, curve_of(self.fit)
        if counts.binomial and counts.scale.upper is not None:
            return (rng.random(mean.shape) < mean).astype(float)
        persons, weights = normal_rule()
        _, sizes = counts.whole
        shares = shares_of(self.fit, self.spread, persons)
        # Variance within a person: of scores with an upper bound beside that of trials that are right or wrong.
        within = counts.squared_distance(curve) - float(sizes @ (shares**2 @ weights - curve**2))
        if counts.scale.upper is None:
            deviation = np.sqrt(max(within / float(sizes.sum()), 0.0))
            return np.asarray(mean + deviation * rng.standard_normal(mean.shape))
        share = max(within / float(sizes @ ((shares * (1 - shares)) @ weights)), 0.0)
        weight = 1 / np.clip(share, 1e-4, 0.99) - 1
        inside = np.clip(mean, _EDGE, 1 - _EDGE)
        return np.asarray(rng.beta(weight * inside, weight * (1 - inside)))


@dataclass(frozen=True, eq=False)
class PilotStudy:
    """All performers of a pilot study."""

    performers: tuple[PilotPerformer, ...]
    correlation: Array
    """Of a person's departures with two performers; 0 for those that share no subjects."""

    def simulated(self, subjects: int, trials: int, studies: int, rng: np.random.Generator) -> list[Counts]:
        """The counts of each performer, a row for each study."""
        values, vectors = np.linalg.eigh(self.correlation)
        root = vectors * np.sqrt(np.maximum(values, 0))
        root /= np.linalg.norm(root, axis=1, keepdims=True)
        departures = rng.standard_normal((studies, subjects, len(root))) @ root.T
        return [one.simulated(departures[..., place], trials, rng) for place, one in enumerate(self.performers)]


def pilot_study_of(trials: Trials, options: FitOptions) -> PilotStudy:
    """What the trials of a study know of others like it."""
    everyone = range(len(trials.performers))
    counts = [counts_of(trials, trials.performer == place, most_places=_MOST_PLACES) for place in everyone]
    label = strata(counts)
    performers = []
    for name, role, one in zip(trials.performers, trials.roles, counts, strict=True):
        fit = fit_curve(one, options, who=name)
        simple = options.kind == "auto" and fit.kind != "spline" and "distinct x" not in fit.reason
        planned = fit_curve(one, replace(options, kind="spline"), who=name) if simple else fit
        performers.append(PilotPerformer(name, role, fit, planned, spread_of(fit), int(label[one.present[0]])))
    return PilotStudy(tuple(performers), _correlation(performers))


def spread_of(fit: CurveFit) -> float:
    """Standard deviation of persons, on the logit or on the metric itself; 0 where nobody has two trials."""
    counts, curve = fit.counts, curve_of(fit)
    sizes = np.asarray(counts.sizes.sum(axis=1)).ravel()
    if counts.subjects < 2 or not (sizes > 1).any():
        return 0.0
    residual = _residuals_of(fit)
    right_or_wrong = counts.binomial and counts.scale.upper is not None
    # What trials add to the squared residuals of their subjects, each by itself.
    alone = float((counts.sizes @ (curve * (1 - curve))).sum()) if right_or_wrong else counts.squared_distance(curve)
    # The curve was fitted to the same subjects, which brings them nearer to it.
    observed = _freed(counts.subjects) * float(residual @ residual) - alone
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


def _residuals_of(fit: CurveFit) -> Array:
    """What each subject's trials came to, less what the curve expects."""
    return np.asarray(fit.counts.totals.sum(axis=1) - fit.counts.sizes @ curve_of(fit)).ravel()


def average_person(fit: CurveFit, spread: float) -> Array:
    """The linear predictor of the person in the middle, such that all persons together have the fitted curve.

    Newton's method, from what the formula of Zeger, Liang and Albert (1988) gives.
    """
    curve = curve_of(fit)
    if fit.counts.scale.upper is None or spread == 0:
        return curve if fit.counts.scale.upper is None else _logit(curve)
    nodes, weights = normal_rule()
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
def normal_rule() -> tuple[Array, Array]:
    """Points of the standard normal distribution that stand for all persons, and their weights."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(_PERSONS)
    return nodes, weights / weights.sum()


def _freed(subjects: int) -> float:
    return subjects / max(subjects - 1, 1)


def _between(fit: CurveFit, spread: float) -> float:
    """What the products of residuals of two trials of a subject sum to when persons differ so much."""
    persons, weights = normal_rule()
    shares, curve = shares_of(fit, spread, persons), curve_of(fit)
    sizes = fit.counts.sizes
    together = (sizes @ shares) ** 2 @ weights - (sizes @ curve) ** 2
    same = sizes @ (shares**2 @ weights - curve**2)
    return float((together - same).sum())


def _correlation(performers: Sequence[PilotPerformer]) -> Array:
    """How far a person who is good with one performer is good with another, by moments; 0 without shared subjects."""
    nodes, weights = normal_rule()
    matrix = np.eye(len(performers))
    for (row, one), (column, other) in combinations(enumerate(performers), 2):
        shared = np.intersect1d(one.counts.present, other.counts.present)
        if one.stratum != other.stratum or len(shared) < 2 or not one.spread or not other.spread:
            continue
        left, right = (each.counts.sizes @ shares_of(each.fit, each.spread, nodes) for each in (one, other))
        left, right = left[shared], right[shared]
        full = float(((left * right) @ weights - (left @ weights) * (right @ weights)).sum())
        observed = _freed(len(shared)) * float(_residuals_of(one.fit)[shared] @ _residuals_of(other.fit)[shared])
        matrix[row, column] = matrix[column, row] = float(np.clip(observed / full, -1, 1))
    return matrix


def _count(like: Counts, where: NDArray[np.int64], share: Array) -> Counts:
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


_BAND_PLACES = 41
"""Places of x at which the width of a band is looked at."""
_LOOKED_AT = 40
"""Studies of a design whose bands are looked at; their width varies little."""
_ESTIMATES = 9
"""Points that stand for the distribution of an estimated standard deviation."""


@dataclass(frozen=True, slots=True)
class StudyDesign:
    """A study that might be run, and what is to be expected of it; widths are in units of the metric."""

    subjects: int
    """Wizards, and as many callers."""
    trials: int
    """Of each subject with each performer."""
    half_widths: Mapping[str, float]
    """By performer: half the width of the band, the mean over x."""
    worst: Mapping[str, float]
    """By performer: half the width of the band where it is widest."""
    mass_half_widths: Mapping[str, float]
    """By system: half the width of the interval of the impurity mass."""
    power: Mapping[str, float]
    """By pair: the share of studies that find the two different."""

    @property
    def half_width(self) -> float:
        """Half the width of the band, the mean over x, of the performer known least well."""
        return max(self.half_widths.values())

    @property
    def size(self) -> int:
        """Trials with each performer."""
        return self.subjects * self.trials

    def to_dict(self) -> dict[str, Any]:
        """The design as plain values."""
        return {
            "subjects": self.subjects,
            "trials": self.trials,
            "half_width": self.half_width,
            "performers": {
                name: {"half_width": self.half_widths[name], "worst": self.worst[name]} for name in self.half_widths
            },
            "mass_half_width": dict(self.mass_half_widths),
            "power": dict(self.power),
        }


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GoldPlan(Shown):
    """Designs that were tried, smallest first, and what was taken from the pilot."""

    designs: tuple[StudyDesign, ...]
    target: float
    """The half-width that is aimed at, in units of the metric."""
    level: float
    studies: int
    seed: int
    spreads: Mapping[str, float]
    """By performer: standard deviation of persons, on the logit where the metric has an upper bound."""
    correlations: Mapping[str, float]
    """By pair that shares subjects: how far those who do well with one do well with the other."""
    percent: bool
    """Whether the metric is a rate."""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def needed(self) -> StudyDesign | None:
        """The smallest design whose bands are narrow enough; None where none of those tried is."""
        return next((design for design in self.designs if design.half_width <= self.target), None)

    @property
    def would_do(self) -> tuple[int, int] | None:
        """Subjects and trials each that should be enough where no design tried is: widths fall as 1/sqrt(subjects)."""
        if self.needed is not None:
            return None
        best = min(self.designs, key=lambda design: design.half_width)
        spread = best.half_width / student(self.level, best.subjects - 1) * np.sqrt(best.subjects)
        subjects = best.subjects + 1
        for _ in range(100):
            enough = int(np.ceil((spread * student(self.level, subjects - 1) / self.target) ** 2))
            if enough == subjects:
                break
            subjects = enough
        return max(subjects, best.subjects + 1), best.trials

    def width_text(self, width: float) -> str:
        """A half-width in words: in percent where the metric is a rate."""
        return f"±{percent(width) if self.percent else short(width)}"

    def words(self) -> str:
        """What to do."""
        target = f"bands of {self.width_text(self.target)} on average over x"
        if (enough := self.needed) is not None:
            power = [f"; finds {pair} different in {percent(share)} of studies" for pair, share in enough.power.items()]
            return (
                f"{enough.subjects} subjects with {enough.trials} trials each with every performer are enough for "
                f"{target}: expected {self.width_text(enough.half_width)}{''.join(power)}"
            )
        best = min(self.designs, key=lambda design: design.half_width)
        subjects, trials = self.would_do or (0, 0)
        return (
            f"no design tried gives {target}: the best, {best.subjects} subjects with {best.trials} trials each, "
            f"gives {self.width_text(best.half_width)}; about {subjects} subjects with {trials} trials each should do"
        )

    def frame(self) -> pl.DataFrame:
        """A row for each design: widths of the performer or system that is known least well, and power by pair."""
        rows = [
            {
                "subjects": design.subjects,
                "trials": design.trials,
                "half_width": design.half_width,
                "worst": max(design.worst.values()),
                "mass_half_width": max(design.mass_half_widths.values(), default=None),
                **{f"power, {pair}": share for pair, share in design.power.items()},
            }
            for design in self.designs
        ]
        return pl.DataFrame(rows)

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain values."""
        values = {
            "needed": None if self.needed is None else self.needed.to_dict(),
            "would_do": self.would_do and {"subjects": self.would_do[0], "trials": self.would_do[1]},
            "words": self.words(),
            "half_width": self.target,
            "level": self.level,
            "studies": self.studies,
            "seed": self.seed,
            "spread": dict(self.spreads),
            "correlation": dict(self.correlations),
            "designs": [design.to_dict() for design in self.designs],
            "notes": list(self.notes),
            "warnings": list(self.warnings),
        }
        return dict(plain(values))


def plan(
    trials: Trials,
    *,
    fit: FitOptions | None = None,
    subjects: Sequence[int] = (8, 12, 16, 24, 32),
    trials_each: Sequence[int] = (10, 20, 40),
    half_width: float = 0.05,
    level: float = 0.95,
    studies: int = 200,
    seed: int = 0,
    step: Step = silent,
) -> GoldPlan:
    """What designs of so many subjects and trials can tell, if they are as the pilot study is.

    `half_width` is what bands should have at most, as a share of the way from the metric's lower bound to its upper
    one; in its own units where there is no upper bound. Each design is simulated `studies` times: persons depart from
    the pilot's curves as they do in the pilot, and x is drawn from the pilot's. The same kind of curve, as smooth as in
    the pilot, is fitted to the studies of all designs; where the kind is left open this is the spline that studies of
    15 subjects or more fit, so that half-widths of designs compare and can be extrapolated. The spread of these fits
    is what a study's bootstrap estimates, and Student's t with one degree of freedom less than subjects is put on it.
    Performers that share subjects in the pilot share them in the designs.

    Smoothness is kept since it stands for the curve and not for the number of trials. A study chooses its own, which
    costs a little: its bands come out wider than is said here, mostly by less than a seventh, at worst by a quarter.
    """
    pilot = pilot_study_of(trials, fit or FitOptions())
    performers = pilot.performers
    low, high = max(one.counts.low for one in performers), min(one.counts.high for one in performers)
    if not low < high:
        covered = ", ".join(f"{one.name} {one.counts.low:g} to {one.counts.high:g}" for one in performers)
        raise DataError("the performers have no range of x in common", got=covered, fix="run trials at the same x")
    sizes = sorted({(many, each) for many in subjects for each in trials_each}, key=lambda one: (one[0] * one[1], one))
    designs = []
    for place, (many, each) in enumerate(sizes):
        step("simulating studies", place, len(sizes))
        drawn = pilot.simulated(many, each, studies, np.random.default_rng([seed, many, each]))
        designs.append(_design(pilot, many, each, drawn, student(level, many - 1), (low, high)))
    step("simulating studies", len(sizes), len(sizes))
    return GoldPlan(
        designs=tuple(designs),
        target=half_width * performers[0].counts.scale.width,
        level=level,
        studies=studies,
        seed=seed,
        spreads={one.name: one.spread for one in performers},
        correlations={
            f"{one.name} and {other.name}": float(pilot.correlation[row, column])
            for (row, one), (column, other) in combinations(enumerate(performers), 2)
            if one.stratum == other.stratum
        },
        percent=trials.kind != "scores",
        notes=(*trials.notes, *_notes(trials, performers)),
        warnings=trials.warnings,
    )


def _design(
    pilot: PilotStudy,
    subjects: int,
    trials: int,
    drawn: Sequence[Counts],
    critical: float,
    ends: tuple[float, float],
) -> StudyDesign:
    """What is to be expected of a design, from the counts of each performer in simulated studies.

    Power is the share of studies in which a difference exceeds its own error: between systems the difference of
    impurity masses; from the gold standard, whose own mass is 0 whatever it does, the signed area between the curves.
    """
    names = [one.name for one in pilot.performers]
    fits = [one.planned for one in pilot.performers]
    refits = [
        fit.family.estimate(counts, np.eye(counts.totals.shape[0]), fit.smoothness, fit.coefficients)
        for fit, counts in zip(fits, drawn, strict=True)
    ]
    widths = [_half_widths(*parts, subjects, critical) for parts in zip(fits, drawn, refits, strict=True)]
    grid = CurveGrid.over(*ends, [edge for fit in fits for edge in fit.family.panel_edges])
    gold, *systems = (
        fit.performance(fit.predictor(grid.nodes, refit)) for fit, refit in zip(fits, refits, strict=True)
    )
    areas = {name: grid.parts(gold - height) for name, height in zip(names[1:], systems, strict=True)}
    masses = {name: below + above for name, (below, above) in areas.items()}
    differences = {f"{name} and {names[0]}": below - above for name, (below, above) in areas.items()}
    differences |= {f"{a} and {b}": masses[a] - masses[b] for a, b in combinations(masses, 2)}
    return StudyDesign(
        subjects=subjects,
        trials=trials,
        half_widths={name: float(width.mean()) for name, width in zip(names, widths, strict=True)},
        worst={name: float(width.max()) for name, width in zip(names, widths, strict=True)},
        mass_half_widths={name: critical * float(mass.std(ddof=1)) for name, mass in masses.items()},
        power={
            pair: float((np.abs(difference) > critical * difference.std(ddof=1)).mean())
            for pair, difference in differences.items()
        },
    )


def _half_widths(fit: CurveFit, drawn: Counts, refits: Array, subjects: int, critical: float) -> Array:
    """Half the width of the band at places of x, averaged over studies.

    A study estimates the spread of its curve from its subjects, as a root of chi-square over its degrees of freedom,
    and takes the error of independent trials where that is larger; so what is expected is no width of the mean study.
    """
    from scipy.special import chdtri

    x = np.linspace(fit.family.low, fit.family.high, _BAND_PLACES)
    freedom, tails = subjects - 1, (np.arange(_ESTIMATES) + 0.5) / _ESTIMATES
    roots = np.sqrt(chdtri(freedom, tails) / freedom)
    estimates = fit.predictor(x, refits).std(axis=0, ddof=1) * roots[:, None]
    widths = []
    dense = [part[:_LOOKED_AT].toarray()[:, None] for part in (drawn.totals, drawn.sizes, drawn.squares)]
    for place, (totals, sizes, squares) in enumerate(zip(*dense, strict=True)):
        counts = replace(drawn, totals=totals, sizes=sizes, squares=squares)
        study = replace(fit, counts=counts, coefficients=refits[place])
        low, high = study.band(x, critical * np.maximum(estimates, study.model_error(x)))
        widths.append((high - low).mean(axis=0) / 2)
    return np.asarray(np.mean(widths, axis=0))


def _notes(trials: Trials, performers: Sequence[PilotPerformer]) -> list[str]:
    if trials.independent:
        return ["the pilot names no subjects, so persons are taken as alike; real ones differ, and need more"]
    notes = []
    alike = [one.name for one in performers if one.spread == 0]
    if alike:
        notes.append(f"subjects of {', '.join(alike)} differ no more in the pilot than chance has them do")
    few = min(one.counts.subjects for one in performers)
    if few < 6:
        notes.append(f"how far persons differ is known from {few} subjects only, so the plan is rough")
    simple = [one for one in performers if one.planned is not one.fit]
    if simple:
        names, kinds = listed([one.name for one in simple]), listed(sorted({one.fit.kind for one in simple}))
        notes.append(
            f"all designs are planned with spline curves, which studies of {FEW_SUBJECTS} or more subjects fit; with "
            f"fewer, {names} may get {kinds} curves as in the pilot, with narrower bands"
        )
    return notes
