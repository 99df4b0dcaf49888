"""A study as a whole: curves, impurity, verdicts, complexity, cost, components and checks; and studies side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur import __version__
from demur.core.io.columns import nearest as nearest_name
from demur.core.options import Sampling
from demur.core.show.numbers import p_value
from demur.core.show.results import Shown, Step, silent
from demur.core.stats.intervals import Figure, check_level
from demur.errors import DataError, UsageError
from demur.gold_standard.checks import Convergence, Normality, Residuals, convergence, normality, residuals
from demur.gold_standard.cost import CostFunction, Gain, MarginalCost, cheaper_by, checked_spans, marginal_cost
from demur.gold_standard.curves import counts_of, separation
from demur.gold_standard.fitting import CurveFit, FitOptions, Performer, draw_subjects, fit_curve, goes_against
from demur.gold_standard.impurity import (
    ComponentAnalysis,
    Impurity,
    PairVerdict,
    XInterval,
    XRange,
    analyse_components,
    check_components,
    compare_pair,
    complexity,
    confidence_level,
    impurity,
    mean_performance,
    nearest_systems,
)
from demur.gold_standard.jobs import FitChoice, XDirection
from demur.gold_standard.trials import Role, Trials
from demur.gold_standard.wizards import WizardAgreement, wizards

_CURVE = 51
"""Places of a curve."""


def study_values(study: GoldStudy) -> dict[str, Any]:
    """All results of a study as plain values, with its verdict in words."""
    from demur.gold_standard.words import says_nothing, verdict

    low, high = study.complexity_range
    values: dict[str, Any] = {
        "study": study.trials.study,
        "x": study.trials.x_name,
        "y": study.trials.y_name,
        "range": {"from": study.x_range.low, "to": study.x_range.high},
        "performers": [_performer(study, place) for place in range(len(study.performers))],
        "complexity": {
            **study.complexity.to_dict(),
            "from": low,
            "to": high,
            "says_nothing": says_nothing(study.complexity, 1.0),
        },
        "pairs": [pair.to_dict() for pair in study.pairs],
    }
    if study.costs:
        values["average_marginal_cost"] = {one.system: one.to_dict() for one in study.costs}
    if study.components:
        values["components"] = [one.to_dict() for one in study.components]
    if study.wizards is not None:
        values["wizards"] = study.wizards.to_dict()
    if study.convergence:
        values["convergence"] = [one.to_dict() for one in study.convergence]
    return {**values, "verdict": " ".join(verdict(study))}


def _performer(study: GoldStudy, place: int) -> dict[str, Any]:
    one = study.performers[place]
    distance: dict[str, Any] = {"impurity_mass": None}
    if one.role == "system":
        distance = study.impurities[place - 1].to_dict()
        if study.costs:
            distance["average_marginal_cost"] = study.costs[place - 1].average.to_dict()
    return {
        "performer": one.name,
        "role": one.role,
        "subjects": one.subjects,
        "trials": one.trials,
        **({} if one.components is None else {"components": sorted(one.components)}),
        **distance,
        "mean": study.means[place].to_dict(),
        "fit": one.fit.kind,
        "because": one.fit.reason,
        "r2": one.r2,
        "deviance_explained": one.deviance_explained,
        "residuals": study.residuals[place].to_dict(),
        "normality": study.normality[place].to_dict(),
        "curve": one.curve(_CURVE).to_dicts(),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldOptions(Sampling):
    """How a study is read."""

    fit: FitOptions = field(default_factory=FitOptions)
    fits: Mapping[str, FitChoice] = field(default_factory=dict)
    """Kinds of curves for single performers."""
    within: tuple[float, float] | None = None
    """The range of x to read; by default all that every curve covers."""
    components: bool = False
    cost: CostFunction | None = None
    gain: Gain | None = None
    checks: bool = True
    """Whether to hold wizards against each other and to look at convergence."""


DEFAULT_OPTIONS = GoldOptions()


@dataclass(frozen=True, eq=False, repr=False)
class GoldStudy(Shown):
    """How far systems are from the gold standard of a study."""

    trials: Trials
    options: GoldOptions
    gold: Performer
    systems: tuple[Performer, ...]
    x_range: XRange
    fit_notes: tuple[str, ...]
    fit_warnings: tuple[str, ...]
    step: Step = field(default=silent, repr=False)

    @property
    def performers(self) -> tuple[Performer, ...]:
        """The gold standard, then the systems."""
        return (self.gold, *self.systems)

    @cached_property
    def complexity(self) -> Figure:
        """Intellectual complexity: how far the gold standard itself stays from the metric's upper bound."""
        return complexity(self.gold, self.options.within)

    @property
    def complexity_range(self) -> tuple[float, float]:
        """The range of x of the complexity: that of the gold standard's trials, or the one asked for."""
        return self.options.within or (self.gold.fit.family.low, self.gold.fit.family.high)

    @cached_property
    def impurities(self) -> tuple[Impurity, ...]:
        """Each system's distance from the gold standard."""
        return tuple(impurity(self.gold, system, self.x_range) for system in self.systems)

    @cached_property
    def pairs(self) -> tuple[PairVerdict, ...]:
        """Each two systems by their distance from the gold standard."""
        both = combinations(zip(self.systems, self.impurities, strict=True), 2)
        tests = math.comb(len(self.systems), 2)
        return tuple(
            compare_pair(self.gold, a, b, (mass_a, mass_b), self.x_range, tests) for (a, mass_a), (b, mass_b) in both
        )

    @property
    def nearest(self) -> tuple[XInterval, ...]:
        """Which system is shown to be nearest the gold standard of all, and where; none where there is only one."""
        return nearest_systems(self.pairs, [one.name for one in self.systems])

    @cached_property
    def means(self) -> tuple[Figure, ...]:
        """Each performer's performance on average over the range."""
        return tuple(mean_performance(one, self.x_range) for one in self.performers)

    @cached_property
    def costs(self) -> tuple[MarginalCost, ...]:
        """Each system's average marginal cost; none without a cost function."""
        if self.options.cost is None:
            return ()
        cost, gain = self.options.cost, self.options.gain
        return tuple(marginal_cost(self.gold, one, cost, self.x_range, gain) for one in self.systems)

    @cached_property
    def cheapest(self) -> tuple[MarginalCost, Figure] | None:
        """The system of least average marginal cost, and how much dearer the next is; none without two of them."""
        known = sorted((one for one in self.costs if one.average.defined), key=lambda one: one.average.value)
        if len(known) < 2:
            return None
        systems = [one for one in self.systems if one.name in (known[0].system, known[1].system)]
        return known[0], cheaper_by(known[0], known[1], self.gold, *systems)

    @cached_property
    def components(self) -> tuple[ComponentAnalysis, ...]:
        """What components contribute; none unless asked for."""
        if not self.options.components:
            return ()
        mass = {one.name: impurity for one, impurity in zip(self.systems, self.impurities, strict=True)}
        analyses = []
        for family, run in _families(self.systems).items():
            masses = {one.components or frozenset(): mass[one.name] for one in run}
            analyses.append(analyse_components(family, masses, confidence_level(self.gold, *run)))
        return tuple(analyses)

    @cached_property
    def residuals(self) -> tuple[Residuals, ...]:
        """What the curves leave of the trials."""
        return tuple(residuals(one) for one in self.performers)

    @cached_property
    def normality(self) -> tuple[Normality, ...]:
        """Whether what the curves leave is normal."""
        return tuple(normality(one, seed=self.options.seed + place) for place, one in enumerate(self.performers))

    @cached_property
    def wizards(self) -> WizardAgreement | None:
        """How far those behind the gold standard agree; none where nobody is named, or participants of systems are."""
        asked = self.options.checks and not self.trials.independent and not self.trials.shares_subjects
        return wizards(self.trials, self.gold) if asked else None

    @cached_property
    def convergence(self) -> tuple[Convergence, ...]:
        """How the curves settled as subjects came in; none where nobody is named."""
        if self.trials.independent or not self.options.checks:
            return ()
        how: dict[str, Any] = {"seed": self.options.seed, "step": self.step, "collected": self.trials.collected}
        return tuple(convergence(one, **how) for one in self.performers)

    @property
    def notes(self) -> tuple[str, ...]:
        """How the study was read and computed."""
        from demur.gold_standard.words import study_notes

        return study_notes(self)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What may be wrong with the data, with the curves, or with the gold standard."""
        misfits = [
            f"{one.name}: {found.words()} Another `fit` may suit it better."
            for one, found in zip(self.performers, self.residuals, strict=True)
            if found.words() is not None
        ]
        odd = [
            f"{one.performer}: residuals are not normal ({p_value(one.p)}), as a fit by least squares supposes; "
            "intervals here do not, as they resample subjects"
            for one in self.normality
            if one.shown
        ]
        return (*self.fit_warnings, *misfits, *odd, *(() if self.wizards is None else self.wizards.warnings))

    def to_dict(self) -> dict[str, Any]:
        """The study as plain values."""
        return {**study_values(self), "notes": list(self.notes), "warnings": list(self.warnings)}

    @property
    def signature(self) -> str:
        """What was computed, from which data, by which version."""
        options, x_range = self.options, self.x_range
        how = f"x={self.trials.x_name}, y={self.trials.y_name}, fit={options.fit.kind}"
        how += f", over={x_range.low:g}..{x_range.high:g}"
        drawn = f"replicates={options.replicates}, seed={options.seed}"
        return f"Gold({how}, {drawn}) | n={len(self.trials)} | data={self.trials.digest} | demur {__version__}"


def analyse(trials: Trials, options: GoldOptions = DEFAULT_OPTIONS, *, step: Step = silent) -> GoldStudy:
    """Fit a curve to every performer of a study, and refit it to resampled subjects."""
    check_level(options.level)
    if options.replicates < 2:
        raise UsageError(f"intervals need two replicates or more; got {options.replicates}")
    for name in options.fits:
        if name not in trials.performers:
            near = nearest_name(name, trials.performers)
            raise UsageError(f'`fit` names "{name}", and there is no such performer; {near}')
    members, notes = _members(trials, options)
    counted = [counts_of(trials, one.rows) for one in members]
    for one, counts in zip(members, counted, strict=True):
        if counts.subjects < 2:
            who = trials.subjects[int(counts.present[0])]
            raise DataError(
                f"{one.name} has trials with one subject only ({who}), and one subject says nothing of others",
                fix="run more subjects, or leave the performer out with --where",
            )
    step("fitting", 0, len(members))
    fits = []
    for place, (one, counts) in enumerate(zip(members, counted, strict=True)):
        kind = options.fits.get(one.system, options.fit.kind)
        fits.append(fit_curve(counts, replace(options.fit, kind=kind), who=one.name))
        step("fitting", place + 1, len(members))
    low, high = _range(members, fits, options)
    if options.cost is not None:  # a fault is found before the long work
        for one, fit in zip(members[1:], fits[1:], strict=True):
            checked_spans(one.name, fit, options.cost, (low, high), options.gain)
    drawn = draw_subjects(counted, options.replicates, options.seed)
    noise = np.random.default_rng(options.seed + 1).standard_normal((len(members), options.replicates))
    performers = tuple(
        Performer(
            name=one.name,
            role=one.role,
            fit=fit,
            refits=fit.refits(drawn, step=step, what=f"refitting {one.name}"),
            noise=noise[place],
            level=options.level,
            system=one.system,
            components=one.components,
        )
        for place, (one, fit) in enumerate(zip(members, fits, strict=True))
    )
    return GoldStudy(
        trials=trials,
        options=options,
        gold=performers[0],
        systems=performers[1:],
        x_range=XRange.between(low, high, performers),
        fit_notes=(*trials.notes, *notes, *_fit_notes(performers)),
        fit_warnings=(*trials.warnings, *_fit_warnings(performers, options.fit.direction)),
        step=step,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _PerformerTrials:
    """A performer, or a combination of components of it: its name, role and trials."""

    name: str
    system: str
    role: Role
    rows: NDArray[np.bool_]
    components: frozenset[str] | None


def _members(trials: Trials, options: GoldOptions) -> tuple[list[_PerformerTrials], tuple[str, ...]]:
    parts, notes = [], []
    for place, (name, role) in enumerate(zip(trials.performers, trials.roles, strict=True)):
        rows = trials.performer == place
        run = np.unique(trials.combination[rows])
        if role == "gold" or not options.components:
            parts.append(_PerformerTrials(name, name, role, rows, None))
            if role == "system" and len(run) > 1:
                notes.append(f"{name} pools {len(run)} combinations of components; `components` separates them")
            continue
        for one in run:
            on = trials.combinations[one]
            shown = f"{name} [{'+'.join(sorted(on)) or 'none'}]" if len(run) > 1 else name
            parts.append(_PerformerTrials(shown, name, role, rows & (trials.combination == one), on))
    runs = [part for part in parts if part.role == "system"]
    systems = {part.system for part in runs}
    if options.components and len(runs) == len(systems) and len({part.components for part in runs}) < 2:
        check_components(" and ".join(sorted(systems)), [runs[0].components or frozenset()])
    return parts, tuple(notes)


def _families(systems: tuple[Performer, ...]) -> dict[str, list[Performer]]:
    """Combinations of one system; where each system has only one, the systems are taken for combinations of one."""
    runs: dict[str, list[Performer]] = {}
    for one in systems:
        runs.setdefault(one.system, []).append(one)
    several = {system: run for system, run in runs.items() if len(run) > 1}
    if several:
        return several
    run = list({one.components: one for one in systems}.values())
    return {" / ".join(one.name for one in run): run}


def _range(members: list[_PerformerTrials], fits: list[CurveFit], options: GoldOptions) -> tuple[float, float]:
    """What every curve covers: nothing is read outside it."""
    low, high = max(fit.family.low for fit in fits), min(fit.family.high for fit in fits)
    ends = [(one.name, fit.family.low, fit.family.high) for one, fit in zip(members, fits, strict=True)]
    covered = ", ".join(f"{name} {start:g} to {end:g}" for name, start, end in ends)
    if not low < high:
        raise DataError(
            f"no range of x is covered by all: {covered}",
            fix="curves are never extended; leave performers out with --where, or run trials where they meet",
        )
    if options.within is None:
        return low, high
    start, end = options.within
    if not start < end:
        raise UsageError(f"`within` runs from a lower x to a higher one; got {start:g} to {end:g}")
    if start < low - 1e-12 or end > high + 1e-12:
        raise DataError(f"`within` {start:g}:{end:g} goes beyond what all curves cover, {low:g} to {high:g}: {covered}")
    return start, end


def _fit_notes(performers: tuple[Performer, ...]) -> tuple[str, ...]:
    notes = [f"{one.name}: {one.fit.kind} curve ({one.fit.reason})" for one in performers]
    rounded = [one.name for one in performers if one.fit.counts.rounded]
    if rounded:
        notes.append(f"x rounded to a 2,000th of its range for {', '.join(rounded)}")
    return tuple(notes)


def _fit_warnings(performers: tuple[Performer, ...], direction: XDirection) -> list[str]:
    """Trials that leave open how steep a curve is, or that go against the direction that curves are held to."""
    held = "the curve is held finite by one trial in all, half of it a success, spread over the range"
    separations = [(one.name, separation(one.fit.counts)) for one in performers]
    warnings = [f"{name}: {text}; {held}" for name, text in separations if text is not None]
    way, fix = ("rises", "helpful") if direction == "harmful" else ("falls", "harmful")
    warnings += [
        f"{one.name}: performance {way} with x, but the direction {direction} rules that out, so the curve "
        f"is flat; `direction` {fix} or any lets it follow"
        for one in performers
        if goes_against(one.fit, direction)
    ]
    return warnings


@dataclass(frozen=True, slots=True)
class Domain:
    """A system of a study, as it can be held against systems of other studies."""

    study: str
    system: str
    complexity: Figure
    relative: Figure
    """Impurity mass as a share of the area under the study's own gold standard."""

    def to_dict(self) -> dict[str, Any]:
        """The row of the table."""
        return {
            "study": self.study,
            "system": self.system,
            "complexity": self.complexity.to_dict(),
            "relative_mass": self.relative.to_dict(),
        }


class GoldStudies(tuple[GoldStudy, ...], Shown):
    """One or more studies, each with a gold standard of its own, which show themselves together."""

    __slots__ = ()

    def __repr__(self) -> str:
        return Shown.__repr__(self)

    @property
    def domains(self) -> tuple[Domain, ...]:
        """Every system by the complexity of its study and by its distance from that study's gold standard."""
        return tuple(
            Domain(study.trials.study, one.system, study.complexity, one.relative)
            for study in self
            for one in study.impurities
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """How the studies were read and computed."""
        return self._of_each("notes")

    @property
    def warnings(self) -> tuple[str, ...]:
        """What may be wrong with them."""
        return self._of_each("warnings")

    def _of_each(self, name: Literal["notes", "warnings"]) -> tuple[str, ...]:
        if len(self) == 1:
            return tuple(getattr(self[0], name))
        return tuple(f"{study.trials.study}: {text}" for study in self for text in getattr(study, name))

    @property
    def document(self) -> dict[str, Any]:
        """The results as plain values: those of one study, or several studies and their systems side by side."""
        if len(self) == 1:
            return study_values(self[0])
        return {"domains": [one.to_dict() for one in self.domains], "studies": [study_values(study) for study in self]}

    def to_dict(self) -> dict[str, Any]:
        """The results as plain values, with notes and warnings."""
        return {**self.document, "notes": list(self.notes), "warnings": list(self.warnings)}

    def frame(self) -> pl.DataFrame:
        """The systems of all studies as rows."""
        names = ("study", "system", "complexity", "complexity_low", "complexity_high", "relative_mass", "low", "high")
        rows = []
        for one in self.domains:
            figures = [end for part in (one.complexity, one.relative) for end in (part.value, part.low, part.high)]
            rows.append((one.study, one.system, *figures))
        return pl.DataFrame(rows, schema=names, orient="row")
