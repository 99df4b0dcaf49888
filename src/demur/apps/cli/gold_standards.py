"""What `demur gold` and `demur plan` do once their options are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from demur.apps.cli import output
from demur.apps.cli.options import OutputOptions, SamplingOptions, TrialOptions, pair_of
from demur.apps.cli.output import steps
from demur.core.stats.intervals import check_level
from demur.errors import UsageError
from demur.gold_standard.cost import CostFunction, read_cost
from demur.gold_standard.curves import FIT_KINDS
from demur.gold_standard.fitting import FitOptions
from demur.gold_standard.planning import plan as plan_study
from demur.gold_standard.presentation import of_gold, of_plan
from demur.gold_standard.study import GoldOptions, GoldStudies, analyse
from demur.gold_standard.trials import TrialReading, Trials, read_trials


@dataclass(frozen=True, slots=True)
class Readings:
    """What is read from the curves."""

    span: str | None
    components: bool
    cost: str | None
    gain: str | None
    checks: bool


@dataclass(frozen=True, slots=True)
class Designs:
    """Which studies are tried, and how narrow their bands should be."""

    subjects: str
    trials: str
    half_width: float
    studies: int


def gold(
    tables: list[str], trials: TrialOptions, sampling: SamplingOptions, outputs: OutputOptions, asked: Readings
) -> None:
    """Read studies against their gold standards."""
    output.check(outputs)
    check_level(sampling.level)
    fit, fits = fit_of(trials)
    if asked.gain is not None and asked.cost is None:
        raise UsageError("--gain says where a cost is taken: give --cost as well")
    options = GoldOptions(
        fit=fit,
        fits=fits,
        within=None if asked.span is None else span_of(asked.span, "--range"),
        components=asked.components,
        gain=None if asked.gain is None else span_of(asked.gain, "--gain"),
        checks=asked.checks,
        level=sampling.level,
        replicates=sampling.replicates,
        seed=sampling.seed,
    )
    with steps(quiet=outputs.quiet or outputs.json) as step:
        step("reading", 0, 1)
        found = _read(tables, trials)
        studies = GoldStudies(analyse(one, options.with_cost(_cost(asked.cost, one)), step=step) for one in found)
        shown = of_gold(studies)
    output.deliver(shown, outputs)


def plan(
    tables: list[str], trials: TrialOptions, sampling: SamplingOptions, outputs: OutputOptions, designs: Designs
) -> None:
    """Plan a study from a pilot."""
    output.check(outputs)
    check_level(sampling.level)
    fit, fits = fit_of(trials)
    if fits:
        raise UsageError("--fit takes one kind for all performers here")
    subjects, each = _numbers(designs.subjects, "--subjects"), _numbers(designs.trials, "--trials")
    with steps(quiet=outputs.quiet or outputs.json) as step:
        step("reading", 0, 1)
        found = _read(tables, trials)
        if len(found) > 1:
            raise UsageError(f"a plan starts from one pilot; these are {', '.join(one.study for one in found)}")
        made = plan_study(
            found[0],
            fit=fit,
            subjects=subjects,
            trials_each=each,
            half_width=designs.half_width,
            level=sampling.level,
            studies=designs.studies,
            seed=sampling.seed,
            step=step,
        )
    output.deliver(of_plan(made, found[0]), outputs)


def fit_of(trials: TrialOptions) -> tuple[FitOptions, dict[str, Any]]:
    """The kind of curve for all, and those of single performers."""
    kind: Any = "auto"
    fits: dict[str, Any] = {}
    for text in trials.fit:
        name, equals, one = text.rpartition("=")
        if one not in (*FIT_KINDS, "auto"):
            raise UsageError(f'--fit takes one of auto, {", ".join(FIT_KINDS)}, or NAME=KIND; got "{text}"')
        if equals:
            fits[name] = one
        else:
            kind = one
    return FitOptions(kind=kind, direction=trials.direction, degree=trials.degree), fits


def span_of(text: str, option: str) -> tuple[float, float]:
    """The two ends of a range, as 0.7:0.8 or 70%:80%."""
    low, colon, high = text.partition(":")
    try:
        if not colon:
            raise ValueError
        ends = [float(part.strip().rstrip("% ")) / (100 if part.strip().endswith("%") else 1) for part in (low, high)]
    except ValueError:
        raise UsageError(f'{option} takes two numbers, as 0.7:0.8; got "{text}"') from None
    return ends[0], ends[1]


def _read(tables: list[str], trials: TrialOptions) -> tuple[Trials, ...]:
    reading = TrialReading(
        x=trials.x,
        y=trials.y,
        upper=trials.upper,
        lower=trials.lower,
        gold=tuple(trials.gold),
        columns=dict(pair_of(text, "--map", "NAME=COLUMN") for text in trials.map),
        where=tuple(pair_of(text, "--where", "COLUMN=VALUE") for text in trials.where),
    )
    return read_trials(*tables, reading=reading)


def _cost(asked: str | None, trials: Trials) -> CostFunction | None:
    return None if asked is None else read_cost(asked, lower=trials.lower, upper=trials.upper)


def _numbers(text: str, option: str) -> tuple[int, ...]:
    try:
        found = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f'{option} takes whole numbers, separated by commas; got "{text}"') from None
    return found
