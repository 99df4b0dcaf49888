"""How many subjects and trials a study needs: studies are simulated from a pilot, and it is seen what they can tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from demur.analyses.gold.bases import Array
from demur.analyses.gold.counts import Counts
from demur.analyses.gold.estimation import estimated
from demur.analyses.gold.fitting import CurveFit, FitOptions
from demur.analyses.gold.integrals import Grid
from demur.analyses.gold.pilots import Pilot, Pilots, pilots_of
from demur.data.trials import Trials
from demur.errors import DataError, UsageError
from demur.measures.intervals import student
from demur.show import Shown, Step, plain, silent

_PLACES = 41
"""Places of x at which the width of a band is looked at."""
_FEWEST_STUDIES = 20
_LOOKED_AT = 40
"""Studies of a design whose bands are looked at; their width varies little."""
_ESTIMATES = 9
"""Points that stand for the distribution of an estimated standard deviation."""


@dataclass(frozen=True, slots=True)
class Design:
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
    """By pair: the share of studies that tell the two apart."""

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


@dataclass(frozen=True, slots=True, eq=False)
class Plan(Shown):
    """Designs that were tried, smallest first, and what was taken from the pilot."""

    designs: tuple[Design, ...]
    target: float
    """The half-width that is aimed at, in units of the metric."""
    level: float
    studies: int
    seed: int
    spreads: Mapping[str, float]
    """By performer: standard deviation of persons, on the logit where the metric has an upper bound."""
    correlations: Mapping[str, float]
    """By pair that shares subjects: how far those who do well with one do well with the other."""
    notes: tuple[str, ...] = ()

    @property
    def needed(self) -> Design | None:
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

    def words(self) -> str:
        """What to do."""
        if (enough := self.needed) is not None:
            told = "".join(f"; tells {pair} apart in {share:.2f} of studies" for pair, share in enough.power.items())
            return (
                f"{enough.subjects} subjects with {enough.trials} trials each with every performer are enough for "
                f"bands of ±{self.target:g} on average over x: expected ±{enough.half_width:.3g}{told}"
            )
        best = min(self.designs, key=lambda design: design.half_width)
        subjects, trials = self.would_do or (0, 0)
        return (
            f"no design tried gives bands of ±{self.target:g} on average over x: the best, {best.subjects} subjects "
            f"with {best.trials} trials each, gives ±{best.half_width:.3g}; about {subjects} subjects with {trials} "
            "trials each should do"
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
        shown: dict[str, Any] = plain(
            {
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
            }
        )
        return shown


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
) -> Plan:
    """What designs of so many subjects and trials can tell, if they are as the pilot study is.

    `half_width` is what bands should have at most, as a share of the way from the metric's lower bound to its upper
    one; in its own units where there is no upper bound. Each design is simulated `studies` times: persons depart from
    the pilot's curves as they do in the pilot, x is drawn from the pilot's, and the pilot's kind of curve (a spline
    from 15 subjects on where the kind is left open), as smooth as there, is fitted to each study. The spread of these
    fits is what a study's bootstrap estimates, and Student's t with one degree of freedom less than subjects is put
    on it. Performers that share subjects in the pilot share them in the designs.

    Smoothness is kept since it stands for the curve and not for the number of trials. A study chooses its own, which
    costs a little: its bands come out wider than is said here, mostly by less than a seventh, at worst by a quarter.
    """
    _check(subjects, trials_each, half_width, level, studies)
    known = pilots_of(trials, fit or FitOptions())
    low, high = _common(known.performers)
    tried = sorted({(many, each) for many in subjects for each in trials_each}, key=lambda one: (one[0] * one[1], one))
    found = []
    for place, (many, each) in enumerate(tried):
        step("simulating studies", place, len(tried))
        rng = np.random.default_rng([seed, many, each])
        found.append(_design(known, _Sized(many, each, studies, level), (low, high), rng))
    step("simulating studies", len(tried), len(tried))
    return Plan(
        designs=tuple(found),
        target=half_width * known.performers[0].counts.scale.width,
        level=level,
        studies=studies,
        seed=seed,
        spreads={one.name: one.spread for one in known.performers},
        correlations=_correlations(known),
        notes=_notes(trials, known),
    )


@dataclass(frozen=True, slots=True)
class _Sized:
    subjects: int
    trials: int
    studies: int
    level: float

    @property
    def critical(self) -> float:
        return student(self.level, self.subjects - 1)


def _check(subjects: Sequence[int], trials_each: Sequence[int], half_width: float, level: float, studies: int) -> None:
    if not subjects or min(subjects) < 2:
        raise UsageError(f"a design needs two subjects or more; got {list(subjects)}")
    if not trials_each or min(trials_each) < 1:
        raise UsageError(f"a design needs a trial or more of each subject; got {list(trials_each)}")
    if not half_width > 0:
        raise UsageError(f"the half-width of a band is above 0; got {half_width:g}")
    if not 0 < level < 1:
        raise UsageError(f"a level lies between 0 and 1; got {level:g}")
    if studies < _FEWEST_STUDIES:
        raise UsageError(f"a spread is estimated from {_FEWEST_STUDIES} studies or more; got {studies}")


def _common(performers: Sequence[Pilot]) -> tuple[float, float]:
    low, high = max(one.counts.low for one in performers), min(one.counts.high for one in performers)
    if not low < high:
        covered = ", ".join(f"{one.name} {one.counts.low:g} to {one.counts.high:g}" for one in performers)
        raise DataError("the performers have no range of x in common", got=covered, fix="run trials at the same x")
    return low, high


def _design(known: Pilots, sized: _Sized, ends: tuple[float, float], rng: np.random.Generator) -> Design:
    drawn = known.simulated(sized.subjects, sized.trials, sized.studies, rng)
    fits = [one.fit_for(sized.subjects) for one in known.performers]
    refits = [_refitted(fit, counts) for fit, counts in zip(fits, drawn, strict=True)]
    names = [one.name for one in known.performers]
    widths = [_widths(*parts, sized) for parts in zip(fits, drawn, refits, strict=True)]
    gaps = _gaps(known, fits, refits, ends)
    masses = {name: gap.below + gap.above for name, gap in gaps.items()}
    return Design(
        subjects=sized.subjects,
        trials=sized.trials,
        half_widths={name: float(width.mean()) for name, width in zip(names, widths, strict=True)},
        worst={name: float(width.max()) for name, width in zip(names, widths, strict=True)},
        mass_half_widths={name: sized.critical * float(mass.std(ddof=1)) for name, mass in masses.items()},
        power=_power(known.performers[0].name, gaps, sized.critical),
    )


def _refitted(fit: CurveFit, drawn: Counts) -> Array:
    """The coefficients for each simulated study."""
    return estimated(fit.basis, drawn, np.eye(drawn.totals.shape[0]), fit.smoothness, fit.coefficients)


def _widths(fit: CurveFit, drawn: Counts, refits: Array, sized: _Sized) -> Array:
    """Half the width of the band at places of x, averaged over studies.

    A study estimates the spread of its curve from its subjects, as a root of chi-square over its degrees of freedom,
    and takes the error of independent trials where that is larger; so what is expected is no width of the mean study.
    """
    x = np.linspace(fit.basis.low, fit.basis.high, _PLACES)
    predictors = fit.predictor(x, refits)
    estimates = predictors.std(axis=0, ddof=1) * _roots_of_chi_square(sized.subjects - 1)[:, None]
    looked_at = range(min(_LOOKED_AT, len(refits)))
    return np.asarray(
        np.mean([_width(_study(fit, drawn, refits, one), x, estimates, sized) for one in looked_at], axis=0)
    )


def _study(fit: CurveFit, drawn: Counts, refits: Array, place: int) -> CurveFit:
    """The curve of one simulated study."""
    rows = [place]
    counts = replace(drawn, totals=drawn.totals[rows], sizes=drawn.sizes[rows], squares=drawn.squares[rows])
    return replace(fit, counts=counts, coefficients=refits[place])


def _width(study: CurveFit, x: Array, estimates: Array, sized: _Sized) -> Array:
    reach = sized.critical * np.maximum(estimates, study.model_error(x))
    low, high = study.band(x, reach)
    return np.asarray((high - low).mean(axis=0) / 2)


def _roots_of_chi_square(freedom: int) -> Array:
    """Points that stand for what an estimated standard deviation is, beside the true one."""
    from scipy.special import chdtri

    tails = (np.arange(_ESTIMATES) + 0.5) / _ESTIMATES
    return np.asarray(np.sqrt(chdtri(freedom, tails) / freedom))


@dataclass(frozen=True, slots=True)
class _Gap:
    """How far a system is below the gold standard, and how far above it, in each study."""

    below: Array
    above: Array


def _gaps(
    known: Pilots, fits: Sequence[CurveFit], refits: Sequence[Array], ends: tuple[float, float]
) -> dict[str, _Gap]:
    grid = Grid.over(*ends, [point for fit in fits for point in fit.basis.breaks if fit.kind != "isotonic"])
    heights = [fit.performance(fit.predictor(grid.nodes, refit)) for fit, refit in zip(fits, refits, strict=True)]
    systems = zip(known.performers[1:], heights[1:], strict=True)
    return {one.name: _Gap(*grid.parts(heights[0] - height)) for one, height in systems}


def _power(gold: str, gaps: Mapping[str, _Gap], critical: float) -> dict[str, float]:
    """The share of studies in which a difference exceeds its own error.

    Between systems it is the difference of impurity masses; from the gold standard, whose own mass is 0 whatever it
    does, it is the signed area between the curves.
    """
    found = {f"{name} and {gold}": _shown(gap.below - gap.above, critical) for name, gap in gaps.items()}
    for (name, one), (other, two) in combinations(gaps.items(), 2):
        found[f"{name} and {other}"] = _shown(one.below + one.above - two.below - two.above, critical)
    return found


def _shown(difference: Array, critical: float) -> float:
    return float((np.abs(difference) > critical * difference.std(ddof=1)).mean())


def _correlations(known: Pilots) -> dict[str, float]:
    pairs = combinations(enumerate(known.performers), 2)
    return {
        f"{one.name} and {other.name}": float(known.correlation[row, column])
        for (row, one), (column, other) in pairs
        if one.stratum == other.stratum
    }


def _notes(trials: Trials, known: Pilots) -> tuple[str, ...]:
    notes = []
    if trials.independent:
        notes.append("the pilot names no subjects, so persons are taken as alike; real ones differ, and need more")
    else:
        alike = [one.name for one in known.performers if one.spread == 0]
        if alike:
            notes.append(f"subjects of {', '.join(alike)} differ no more in the pilot than chance has them do")
    few = min(one.counts.subjects for one in known.performers)
    if few < 6 and not trials.independent:
        notes.append(f"how far persons differ is known from {few} subjects only, so the plan is rough")
    return tuple(notes)
