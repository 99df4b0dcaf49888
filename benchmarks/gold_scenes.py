"""What is simulated for docs/gold_coverage.md: studies whose curves are known, and which intervals hold them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import polars as pl
from scipy.special import expit, logit

from benchmarks.arrays import Floats
from demur.core.stats.intervals import Figure, normal, student
from demur.gold_standard.curves import counts_of
from demur.gold_standard.fitting import CurveFit, FitOptions, Performer, SubjectDraws, draw_subjects, fit_curve
from demur.gold_standard.study import GoldOptions, GoldStudy, analyse
from demur.gold_standard.trials import TrialReading, Trials, trials
from demur.lab import wizards

Outcome = dict[str, Any]

X = np.linspace(0.01, 0.99, 50)
"""Where bands are held against the truth."""
SUBJECTS = (8, 12, 16, 24)
SPREADS = (0.5, 1.0)
TRIALS = 25
"""Of each subject, in the plain shapes."""
LEVEL = 0.95
FITS = ("auto", "spline", "logistic")
WIZARDS = (wizards.GOLD, *wizards.SYSTEMS)
SCALARS = ("complexity", "mass of A", "mass of B", "difference of masses", "crossing", "crossing shown")

SHAPES: Mapping[str, Callable[[Floats], Floats]] = {
    "logistic": lambda x: 2.5 - 5 * x,
    "straight": lambda x: logit(0.9 - 0.7 * x),
    "flat, then a drop": lambda x: 3.2 - 5.2 / (1 + np.exp(-14 * (x - 0.72))),
}
"""The logit of success of the person in the middle."""


@dataclass(frozen=True, slots=True)
class Plain:
    """One performer with a plain curve; persons depart from it on the logit."""

    shape: str
    spread: float
    subjects: int

    def outcome(self, replicates: int, rng: np.random.Generator, seed: int) -> Outcome:
        """Which bands hold the curve, at each place."""
        table = self._study(rng)
        counts = counts_of(table, np.ones(len(table), dtype=bool))
        fits = {kind: fit_curve(counts, FitOptions(kind=kind)) for kind in ("spline", "logistic")}
        drawn = draw_subjects([counts], replicates, seed)
        chosen = fit_curve(counts, FitOptions()).kind
        held = {kind: _held(_performer(fit, drawn), plain_truth(self.shape, self.spread)) for kind, fit in fits.items()}
        return _with_auto(held, chosen)

    def _study(self, rng: np.random.Generator) -> Trials:
        x = ((np.arange(TRIALS) + rng.random((self.subjects, TRIALS))) / TRIALS).round(2)
        departure = self.spread * rng.standard_normal((self.subjects, 1))
        success = rng.random(x.shape) < expit(SHAPES[self.shape](x) + departure)
        return _alone(x, success)


@dataclass(frozen=True, slots=True)
class Wizards:
    """The study of wizards and two systems that `demur.lab.wizards` simulates."""

    subjects: int

    def outcome(self, replicates: int, rng: np.random.Generator, seed: int) -> Outcome:
        """Which bands hold the curves, and which intervals the readings."""
        table = wizards.simulate(int(rng.integers(2**31)), wizards=self.subjects, callers=self.subjects, trials=30)
        study = analyse(_read(table), GoldOptions(replicates=replicates, seed=seed, checks=False))
        drawn = draw_subjects([one.fit.counts for one in study.performers], replicates, seed)
        found: Outcome = _readings(study)
        for one in study.performers:
            other = "logistic" if one.fit.kind == "spline" else "spline"
            fit = fit_curve(one.fit.counts, FitOptions(kind=other))  # type: ignore[arg-type]
            both = {str(each.fit.kind): _held(each, wizard_truth(one.name)) for each in (one, _performer(fit, drawn))}
            found |= {f"{one.name}: {key}": value for key, value in _with_auto(both, one.fit.kind).items()}
        return found


Scene = Plain | Wizards


def scenes() -> list[Scene]:
    """Every study of the tables."""
    plain: list[Scene] = [
        Plain(shape, spread, subjects) for shape in SHAPES for spread in SPREADS for subjects in SUBJECTS
    ]
    return [*(Wizards(subjects) for subjects in SUBJECTS), *plain]


@cache
def plain_truth(shape: str, spread: float) -> Floats:
    """The share of successes over all persons, at the places."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(48)
    return np.asarray(expit(SHAPES[shape](X)[:, None] + spread * nodes) @ weights / weights.sum())


@cache
def wizard_truth(performer: str) -> Floats:
    """The same of a performer of the wizards' study."""
    return wizards.truth(performer, X)


def _alone(x: Floats, success: Floats) -> Trials:
    """The trials of one performer, a row of each array for each subject."""
    none = np.zeros(x.size, dtype=np.int64)
    return Trials(
        study="simulated",
        x_name="wer",
        y_name="completed",
        kind="trials",
        lower=0.0,
        upper=1.0,
        performers=("performer",),
        roles=("gold",),
        performer=none,
        x=x.ravel(),
        y=success.ravel().astype(np.float64),
        n=np.ones(x.size),
        subject=np.repeat(np.arange(len(x)), x.shape[1]),
        subjects=tuple(str(number) for number in range(len(x))),
        combination=none,
        combinations=(frozenset(),),
        independent=False,
    )


def _read(table: pl.DataFrame) -> Trials:
    return trials(table, reading=TrialReading(x="wer", y="completed"))[0]


def _performer(fit: CurveFit, drawn: SubjectDraws) -> Performer:
    return Performer("", "gold", fit, fit.refits(drawn), np.zeros(len(drawn)), LEVEL)


def _held(one: Performer, truth: Floats) -> dict[str, Floats]:
    """By method: at which places the band holds the truth; and how wide ours is, and how far off where it does not."""
    low, high = one.band(X)
    middle, replicates = one.fit.predictor(X), one.fit.predictor(X, one.refits)
    at = logit(truth)
    spread = replicates.std(axis=0, ddof=1)
    tail = 100 * (1 - LEVEL) / 2
    bottom, top = np.percentile(replicates, [tail, 100 - tail], axis=0)
    found = {
        "ours": (low <= truth) & (truth <= high),
        "closed": np.abs(at - middle) <= one.critical * one.error(X),
        "plain t": np.abs(at - middle) <= student(LEVEL, one.subjects - 1) * spread,
        "percentile": (bottom <= at) & (at <= top),
        "half-width": (high - low) / 2,
        "miss": np.maximum(np.maximum(low - truth, truth - high), 0),
    }
    if one.fit.kind == "logistic":
        found["sandwich"] = np.abs(at - middle) <= normal(LEVEL) * _sandwich(one.fit)
    return {name: np.asarray(value, dtype=np.float64) for name, value in found.items()}


def _sandwich(fit: CurveFit) -> Floats:
    """Standard error of the linear predictor from the scores of subjects, uncorrected for how few they are."""
    rows, share = fit.family.rows(fit.counts.places), fit.shares
    _, sizes = fit.counts.whole
    bread = np.linalg.inv((rows * (sizes * share * (1 - share))[:, None]).T @ rows)
    scores = fit.counts.totals @ rows - fit.counts.sizes @ (rows * share[:, None])
    places = fit.family.rows(X)
    return np.asarray(np.sqrt(np.einsum("mi,ij,mj->m", places, bread @ (scores.T @ scores) @ bread, places)))


def _with_auto(held: Mapping[str, Mapping[str, Floats]], chosen: str) -> Outcome:
    """Bands of each kind of curve, those of the kind that is chosen by itself as well."""
    every = {**held, "auto": held[chosen]}
    found = {f"{kind}, {method}": value for kind, methods in every.items() for method, value in methods.items()}
    found.pop("auto, sandwich", None)
    return {**found, "spline chosen": float(chosen == "spline")}


def _readings(study: GoldStudy) -> Outcome:
    """Which intervals hold what they are of."""
    pair = study.pairs[0]
    masses = [wizards.true_mass(name) for name in wizards.SYSTEMS]
    cross = wizards.crossing()
    around = [one for one in pair.crossings if one.low <= cross <= one.high]
    return {
        "complexity": _holds(study.complexity, wizards.true_complexity()),
        "mass of A": _holds(study.impurities[0].mass, masses[0]),
        "mass of B": _holds(study.impurities[1].mass, masses[1]),
        "difference of masses": _holds(pair.mass_difference, masses[0] - masses[1]),
        "crossing": float(bool(around)),
        "crossing shown": float(any(one.shown for one in around)),
    }


def _holds(figure: Figure, value: float) -> float:
    return float(figure.low <= value <= figure.high) if figure.defined else float("nan")
