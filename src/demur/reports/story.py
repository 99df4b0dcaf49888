"""Everything a report tells of a mixture of tables: one analysis after the other, each where the data has it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from demur.core.show.results import Step, silent
from demur.core.stats.intervals import check_level
from demur.core.stats.resampling import Rows, Sample
from demur.errors import DemurError, UsageError
from demur.gold_standard.study import GoldOptions, GoldStudies, analyse
from demur.nbest_lists.compare import NBestComparison, compare_lists
from demur.nbest_lists.evaluate import NBestEvaluations, NBestSettings, evaluate_nbest
from demur.nbest_lists.ranks import ListRanks, list_ranks
from demur.nbest_lists.reward import Smooths, reward_curves
from demur.outcome.features import design
from demur.outcome.fitting import OutcomeFit, Procedure, fit_outcome
from demur.reports.tables import Mixture
from demur.returns.compare import Comparison, compare
from demur.returns.evaluate import Evaluations, evaluate, returns_measures
from demur.returns.examples import Examples, examples
from demur.returns.recalibration import Calibration, calibration
from demur.returns.slices import SliceDifferences, slice_columns, slice_differences
from demur.returns.table import Responses
from demur.returns.threshold import Choice, threshold_by_cost, threshold_by_error, threshold_by_nonreturn

PROMISED, CHANCE = 0.05, 0.05
"""The error rate that a threshold is looked for to promise, and the chance that the promise fails, unless asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a report is asked for.

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
    level: float = 0.95
    replicates: int = 1000
    seed: int = 0

    def check(self) -> None:
        """Refuses what cannot be, before any work is done."""
        check_level(self.level)
        given = [name for name in ("cost_ratio", "max_error", "max_nonreturn") if getattr(self, name) is not None]
        if len(given) > 1:
            named = " and ".join(f"--{name.replace('_', '-')}" for name in given)
            raise UsageError(f"a threshold is advised for one aim; got {named}")
        if self.delta is not None and self.max_error is None:
            raise UsageError("--delta goes with --max-error: it is the chance that the promised error rate is exceeded")
        if not 0 <= self.at <= 1:
            raise UsageError(f"an operating point is a non-return rate in [0, 1], such as 0.2; got {self.at:g}")
        if self.examples < 0:
            raise UsageError(f"the number of examples is 0 or more; got {self.examples}")


@dataclass(frozen=True, slots=True)
class Advice:
    """The thresholds looked at for one system; the one advised is what examples and slices are shown at."""

    system: str
    choices: tuple[Choice, ...]
    advised: Choice
    why: str | None = None
    """Why it is not the first choice."""


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
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


@dataclass(frozen=True, slots=True, eq=False)
class Story:
    """Everything there is to tell; a part that the data does not have is None, or empty."""

    mixture: Mixture
    asked: Asked
    answers: Answers | None = None
    lists: NBestEvaluations | None = None
    list_comparison: NBestComparison | None = None
    fits: tuple[tuple[str, OutcomeFit], ...] = ()
    rewards: Smooths | None = None
    gold: GoldStudies | None = None
    untold: tuple[tuple[str, str], ...] = ()
    """Parts that could not be told although there is data of the kind, and why."""


@dataclass(slots=True)
class _Telling:
    """What was told so far; a part that fails on sound data is left out, with the reason."""

    untold: list[tuple[str, str]] = field(default_factory=list)

    def part(self, name: str, tell: Callable[[], Any]) -> Any:
        try:
            return tell()
        except DemurError as fault:
            self.untold.append((name, str(fault)))
            return None


def tell(mixture: Mixture, asked: Asked, *, step: Step = silent) -> Story:
    """Analyses a mixture of tables; `step` hears of each part."""
    asked.check()
    telling = _Telling()
    steps = 4
    step("answers", 0, steps)
    answers = None if mixture.responses is None else _answers(mixture.responses, asked, telling, step)
    step("N-best lists", 1, steps)
    lists, compared = _lists(mixture, asked, telling)
    step("outcomes", 2, steps)
    fits = _fits(mixture, asked, telling)
    rewards = _rewards(mixture, lists, telling)
    step("gold standard", 3, steps)
    gold = _gold(mixture, asked)
    return Story(mixture, asked, answers, lists, compared, fits, rewards, gold, tuple(telling.untold))


def _answers(responses: Responses, asked: Asked, telling: _Telling, step: Step) -> Answers:
    manner: dict[str, Any] = {"level": asked.level, "replicates": asked.replicates, "seed": asked.seed}
    measures = returns_measures(at=asked.at)
    compared: Comparison | None = None
    if len(responses.systems) > 1:
        compared = telling.part("comparison", lambda: _compared(responses, asked, measures, step))
    if compared is not None and not any(compared.dropped.values()):
        evaluations = Evaluations(compared.evaluations)
    else:
        evaluations = evaluate(responses, measures=measures, step=step, **manner)
    rows = {one.system: Rows.from_frame(responses.of(one.system).frame) for one in evaluations}
    advice = tuple(advise(one.sample, one.system, asked) for one in evaluations)
    thresholds = {one.system: one.advised.threshold for one in advice}
    columns = slice_columns(responses) if asked.by is None else asked.by
    step("slices", 0, 1)
    slices = slice_differences(responses, thresholds, columns, level=asked.level) if columns else None
    found = [calibration(one, rows[one.system]) for one in evaluations if one.sample.sweep.threshold.size > 1]
    return Answers(
        responses,
        evaluations,
        compared,
        advice,
        slices,
        tuple(one for one in found if one is not None),
        tuple(examples(responses.of(name), cutoff, asked.examples) for name, cutoff in thresholds.items()),
        _ranks(responses, asked, telling),
    )


def _ranks(responses: Responses, asked: Asked, telling: _Telling) -> tuple[ListRanks, ...]:
    """Where right labels stand in the lists of those systems that have lists."""
    if "nbest" not in responses.frame.columns:
        return ()
    tables = [responses.of(system) for system in responses.systems]
    listed = [table for table in tables if table.frame["nbest"].null_count() < len(table)]
    found = [telling.part("N-best lists", partial(list_ranks, table, level=asked.level)) for table in listed]
    return tuple(one for one in found if one is not None)


def _compared(responses: Responses, asked: Asked, measures: Any, step: Step) -> Comparison:
    """Systems paired by id where they share some and agree on the targets, else unpaired."""
    manner: dict[str, Any] = {"level": asked.level, "replicates": asked.replicates, "seed": asked.seed}
    options: dict[str, Any] = {"at": asked.at, "measures": measures, "step": step, **manner}
    try:
        return compare(responses, matched=True, **options)
    except DemurError:
        return compare(responses, unpaired=True, **options)


def advise(sample: Sample, system: str, asked: Asked) -> Advice:
    """The thresholds for one system: the one asked for, or a promise, a limit on non-returns and equal costs."""
    choices = _asked_for(sample, system, asked) or _usual(sample, system, asked)
    first = choices[0]
    if not math.isnan(first.threshold):
        return Advice(system, choices, first)
    kept = next((choice for choice in choices if not math.isnan(choice.threshold)), None)
    if kept is None:
        kept = threshold_by_cost(sample, 0.0, name=system)
        kept = next((one for one in (kept, _everything(sample, system)) if not math.isnan(one.threshold)), kept)
    return Advice(system, choices, kept, "no threshold keeps the first limit")


def _asked_for(sample: Sample, system: str, asked: Asked) -> tuple[Choice, ...]:
    if asked.cost_ratio is not None:
        return (threshold_by_cost(sample, asked.cost_ratio, name=system),)
    if asked.max_error is not None:
        return (threshold_by_error(sample, asked.max_error, delta=asked.delta, name=system),)
    if asked.max_nonreturn is None:
        return ()
    limit = asked.max_nonreturn
    floor = float(sample.sweep.withheld / sample.sweep.total)
    return (threshold_by_nonreturn(sample, max(limit, floor), name=system),)


def _usual(sample: Sample, system: str, asked: Asked) -> tuple[Choice, ...]:
    floor = float(sample.sweep.withheld / sample.sweep.total)
    limited = (threshold_by_nonreturn(sample, asked.at, name=system),) if floor <= asked.at else ()
    return (
        threshold_by_error(sample, PROMISED, delta=CHANCE, name=system),
        threshold_by_error(sample, PROMISED, name=system),
        *limited,
    )


def _everything(sample: Sample, system: str) -> Choice:
    return threshold_by_error(sample, 1.0, name=system)


def _lists(mixture: Mixture, asked: Asked, telling: _Telling) -> tuple[NBestEvaluations | None, NBestComparison | None]:
    table = mixture.lists
    if table is None:
        return None, None
    settings = NBestSettings(level=asked.level, replicates=asked.replicates, seed=asked.seed)
    if len(table.systems) == 1:
        return evaluate_nbest(table, settings=settings), None
    compared = telling.part("comparison of N-best lists", lambda: _compared_lists(table, settings))
    return evaluate_nbest(table, settings=settings) if compared is None else None, compared


def _compared_lists(table: Any, settings: NBestSettings) -> NBestComparison:
    try:
        return compare_lists(table, matched=True, settings=settings)
    except DemurError:
        return compare_lists(table, unpaired=True, settings=settings)


def _fits(mixture: Mixture, asked: Asked, telling: _Telling) -> tuple[tuple[str, OutcomeFit], ...]:
    """A model of the outcome for each system whose turns name dialogues."""
    turns, table = mixture.turns, mixture.dialogues
    if turns is None or table is None:
        return ()
    how = Procedure(replicates=asked.replicates, seed=asked.seed, level=asked.level)

    def fitted(system: str) -> OutcomeFit:
        made = design(table, turns.of(system), features=asked.features, allow_unmatched=asked.matched)
        return fit_outcome(made, how=how)

    found = [(system, telling.part(f"outcome of {system}", lambda: fitted(system))) for system in turns.systems]  # noqa: B023
    return tuple((system, fit) for system, fit in found if fit is not None)


def _rewards(mixture: Mixture, lists: NBestEvaluations | None, telling: _Telling) -> Smooths | None:
    """What dialogues achieved against the measures of their N-best lists, where there are no answers to explain it."""
    table = mixture.dialogues
    if table is None or lists is None or mixture.turns is not None:
        return None
    curves: Smooths | None = telling.part(
        "outcome by N-best lists", lambda: reward_curves(lists, table.frame, group=None)
    )
    return curves


def _gold(mixture: Mixture, asked: Asked) -> GoldStudies | None:
    if not mixture.trials:
        return None
    how = GoldOptions(level=asked.level, replicates=asked.replicates, seed=asked.seed)
    return GoldStudies(analyse(study, how) for study in mixture.trials)
