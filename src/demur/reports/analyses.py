"""The analyses of a report on a mixture of tables, each where the data allows it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from demur.core.options import Sampling
from demur.core.show.results import Step, silent
from demur.core.stats.resampling import Rows, Sample
from demur.errors import DemurError, UsageError
from demur.gold_standard.study import GoldOptions, GoldStudies, analyse
from demur.nbest_lists.evaluate import NBestComparison, NBestEvaluations, NBestSettings, compare_lists, evaluate_nbest
from demur.nbest_lists.ranks import ListRanks, list_ranks
from demur.nbest_lists.reward import Smooths, reward_curves
from demur.outcome.features import design
from demur.outcome.fitting import OutcomeFit, Procedure, fit_design
from demur.reports.tables import Mixture
from demur.returns.comparison.compare import Comparison, compare
from demur.returns.drift.analysis import Aim, Drift, drift
from demur.returns.drift.changes import Log
from demur.returns.drift.periods import halves_by_time
from demur.returns.evaluate import Evaluations, evaluate, returns_measures
from demur.returns.examples import Examples, examples
from demur.returns.recalibration.recalibration import Calibration, calibration
from demur.returns.slices import SliceDifferences, slice_columns, slice_differences
from demur.returns.table import Responses
from demur.returns.threshold import Choice, threshold_by_cost, threshold_by_error, threshold_by_nonreturn

PROMISED, CHANCE = 0.05, 0.05
"""The error rate that a threshold is looked for to promise, and the chance that the promise fails, by default."""


AIMS = ("max_error", "max_nonreturn", "cost_ratio")
"""Options that say how thresholds are chosen; one at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions(Sampling):
    """How tables are analysed.

    `by` are the columns to slice by, None all that suit. At most one of `cost_ratio`, `max_error` (with `delta`) and
    `max_nonreturn` says how thresholds are chosen; without any, an error rate of 5 % is promised.
    """

    at: float = 0.2
    by: tuple[str, ...] | None = None
    cost_ratio: float | None = None
    max_error: float | None = None
    delta: float | None = None
    max_nonreturn: float | None = None
    examples: int = 10
    features: str = "conf+scores.f"
    matched: bool = True

    @property
    def aim(self) -> str | None:
        """The option that says how thresholds are chosen; None where none does, and a limit on errors is assumed."""
        return next((name for name in AIMS if getattr(self, name) is not None), None)

    def check(self) -> None:
        """Refuses what cannot be, before any work is done."""
        given = [name for name in AIMS if getattr(self, name) is not None]
        if len(given) > 1:
            named = " and ".join(f"`{name}`" for name in given)
            raise UsageError(f"a threshold is advised for one aim; got {named}")
        if self.delta is not None and self.max_error is None:
            raise UsageError("`delta` goes with `max_error`: it is the chance that the promised error rate is exceeded")


@dataclass(frozen=True, slots=True)
class Advice:
    """The thresholds looked at for one system; the first is recommended, unless it returns nothing."""

    system: str
    choices: tuple[Choice, ...]
    shown: Choice
    """Where slices and examples are shown: at the recommended threshold; where there is none, at another."""

    @property
    def recommended(self) -> Choice | None:
        """The choice that keeps the target; None where no threshold does."""
        return None if self.choices[0].returns_nothing else self.choices[0]


@dataclass(frozen=True, slots=True, eq=False)
class AnswerAnalyses:
    """What answers with confidences show."""

    responses: Responses
    evaluations: Evaluations
    comparison: Comparison | None
    advice: tuple[Advice, ...]
    slices: SliceDifferences | None
    calibrations: tuple[Calibration, ...]
    examples: tuple[Examples, ...]
    ranks: tuple[ListRanks, ...] = ()
    """Where right labels stand in the lists of each system that has some."""
    drifts: tuple[tuple[str, Drift], ...] = ()
    """The first half by time against the last, of each system, where a column tells the time."""


@dataclass(frozen=True, slots=True, eq=False)
class ReportAnalyses:
    """The analyses of a mixture of tables; one that the data does not allow is None, or empty."""

    mixture: Mixture
    options: ReportOptions
    answers: AnswerAnalyses | None = None
    lists: NBestEvaluations | None = None
    list_comparison: NBestComparison | None = None
    fits: tuple[tuple[str, OutcomeFit], ...] = ()
    rewards: Smooths | None = None
    gold: GoldStudies | None = None
    omitted: tuple[tuple[str, str], ...] = ()
    """Analyses that failed although there is data of the kind, and why."""


@dataclass(slots=True)
class Omissions:
    """Analyses that failed on sound data and are left out of the report, with the reasons."""

    omitted: list[tuple[str, str]] = field(default_factory=list)

    def attempt(self, name: str, analysis: Callable[[], Any]) -> Any:
        """What an analysis gives; None where it fails."""
        try:
            return analysis()
        except DemurError as fault:
            self.omitted.append((name, str(fault)))
            return None


def analyse_tables(mixture: Mixture, options: ReportOptions, *, step: Step = silent) -> ReportAnalyses:
    """Analyse a mixture of tables; `step` is called before each kind."""
    options.check()
    omissions = Omissions()
    step("answers", 0, 4)
    answers = None if mixture.responses is None else _analyse_answers(mixture.responses, options, omissions, step)
    step("N-best lists", 1, 4)
    lists, compared = _analyse_lists(mixture, options, omissions)
    step("outcomes", 2, 4)
    fits = _fit_outcomes(mixture, options, omissions)
    rewards: Smooths | None = None
    table = mixture.dialogues
    if table is not None and lists is not None and mixture.turns is None:  # no answers explain the outcome
        rewards = omissions.attempt("outcome by N-best lists", lambda: reward_curves(lists, table.frame, group=None))
    step("gold standard", 3, 4)
    how = GoldOptions(**options.sampling)
    gold = GoldStudies(analyse(study, how) for study in mixture.trials) if mixture.trials else None
    return ReportAnalyses(mixture, options, answers, lists, compared, fits, rewards, gold, tuple(omissions.omitted))


def _analyse_answers(responses: Responses, options: ReportOptions, omissions: Omissions, step: Step) -> AnswerAnalyses:
    measures = returns_measures(at=options.at)
    compared: Comparison | None = None
    if len(responses.systems) > 1:
        settings = {"at": options.at, "measures": measures, "step": step, **options.sampling}
        compared = omissions.attempt("comparison", lambda: _paired_if_possible(compare, responses, settings))
    if compared is not None and not any(compared.dropped.values()):
        evaluations = Evaluations(compared.evaluations)
    else:
        evaluations = evaluate(responses, measures=measures, step=step, **options.sampling)
    advice = tuple(_advise(one.sample, one.system, options) for one in evaluations)
    thresholds = {one.system: one.shown.threshold for one in advice}
    columns = slice_columns(responses) if options.by is None else options.by
    step("slices", 0, 1)
    calibrations = [
        calibration(one, Rows.from_frame(responses.of(one.system).frame))
        for one in evaluations
        if one.sample.sweep.threshold.size > 1
    ]
    return AnswerAnalyses(
        responses,
        evaluations,
        compared,
        advice,
        slice_differences(responses, thresholds, columns, level=options.level) if columns else None,
        tuple(one for one in calibrations if one is not None),
        tuple(examples(responses.of(name), cutoff, options.examples) for name, cutoff in thresholds.items()),
        _rank_lists(responses, options, omissions),
        _drifts(responses, options, omissions),
    )


def _paired_if_possible(comparing: Callable[..., Any], table: Any, settings: dict[str, Any]) -> Any:
    """Systems compared in pairs by id where they share some and agree on the targets, otherwise unpaired."""
    try:
        return comparing(table, matched=True, **settings)
    except DemurError:
        return comparing(table, unpaired=True, **settings)


def _rank_lists(responses: Responses, options: ReportOptions, omissions: Omissions) -> tuple[ListRanks, ...]:
    """Where right labels stand in the lists of those systems that have lists."""
    if "nbest" not in responses.frame.columns:
        return ()
    tables = [responses.of(system) for system in responses.systems]
    listed = [table for table in tables if table.frame["nbest"].null_count() < len(table)]
    ranks = [omissions.attempt("N-best lists", partial(list_ranks, table, level=options.level)) for table in listed]
    return tuple(one for one in ranks if one is not None)


def _drifts(responses: Responses, options: ReportOptions, omissions: Omissions) -> tuple[tuple[str, Drift], ...]:
    """The last half by time of each system against its first, where a column tells the time."""
    found = []
    for system in responses.systems:
        halves = omissions.attempt("halves by time", partial(halves_by_time, responses.of(system)))
        if halves is not None:
            old, new, notes = halves
            found.append((system, replace(drift(old, new, aim=_aim(old, options), **options.sampling), notes=notes)))
    return tuple(found)


def _aim(old: Log, options: ReportOptions) -> Aim:
    """The promise that is made on the first half and checked on the last; none where no threshold keeps it."""
    if options.cost_ratio is not None:
        return Aim()
    if options.max_nonreturn is not None:
        aim = Aim(max_nonreturn=options.max_nonreturn)
    elif options.max_error is not None:
        aim = Aim(max_error=options.max_error, delta=options.delta)
    else:
        aim = Aim(max_error=PROMISED, delta=CHANCE)
    try:
        choice = aim.choose(old)
    except UsageError:  # the system withholds more by itself
        return Aim()
    return Aim() if choice is None or math.isnan(choice.threshold) else aim


def _advise(sample: Sample, system: str, options: ReportOptions) -> Advice:
    """The thresholds for one system: the one asked for, or a promise, a limit on errors and one on non-returns."""
    floor = float(sample.sweep.withheld / sample.sweep.total)
    if options.cost_ratio is not None:
        choices = [threshold_by_cost(sample, options.cost_ratio, name=system)]
    elif options.max_error is not None:
        choices = [threshold_by_error(sample, options.max_error, delta=options.delta, name=system)]
    elif options.max_nonreturn is not None:
        choices = [threshold_by_nonreturn(sample, max(options.max_nonreturn, floor), name=system)]
    else:
        choices = [threshold_by_error(sample, PROMISED, delta=delta, name=system) for delta in (CHANCE, None)]
        choices += [threshold_by_nonreturn(sample, options.at, name=system)] if floor <= options.at else []
    first = choices[0]
    if not math.isnan(first.threshold):
        return Advice(system, tuple(choices), first)
    cheapest, everything = threshold_by_cost(sample, 0.0, name=system), threshold_by_error(sample, 1.0, name=system)
    kept = (choice for choice in (*choices, cheapest, everything) if not math.isnan(choice.threshold))
    return Advice(system, tuple(choices), next(kept, cheapest))


def _analyse_lists(
    mixture: Mixture, options: ReportOptions, omissions: Omissions
) -> tuple[NBestEvaluations | None, NBestComparison | None]:
    table = mixture.lists
    if table is None:
        return None, None
    settings = NBestSettings(**options.sampling)
    compared: NBestComparison | None = None
    if len(table.systems) > 1:
        name = "comparison of N-best lists"
        compared = omissions.attempt(name, lambda: _paired_if_possible(compare_lists, table, {"settings": settings}))
    return evaluate_nbest(table, settings=settings) if compared is None else None, compared


def _fit_outcomes(mixture: Mixture, options: ReportOptions, omissions: Omissions) -> tuple[tuple[str, OutcomeFit], ...]:
    """A model of the outcome for each system whose turns name dialogues."""
    turns, table = mixture.turns, mixture.dialogues
    if turns is None or table is None:
        return ()

    def fit(system: str) -> OutcomeFit:
        made = design(table, turns.of(system), features=options.features, allow_unmatched=options.matched)
        return fit_design(made, how=Procedure(**options.sampling))

    fits = [(system, omissions.attempt(f"outcome of {system}", partial(fit, system))) for system in turns.systems]
    return tuple((system, one) for system, one in fits if one is not None)
