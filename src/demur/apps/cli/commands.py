"""What each command does once its options are read."""

from __future__ import annotations

from dataclasses import replace

from demur import api
from demur.analyses.comparison import compare
from demur.analyses.evaluation import evaluate, returns_measures
from demur.analyses.labels import class_reports
from demur.apps.cli import output
from demur.apps.cli.options import InputOptions, OutputOptions, SamplingOptions
from demur.apps.cli.progress import steps
from demur.apps.cli.reading import rate_or_range, read
from demur.data.responses import Responses
from demur.errors import UsageError
from demur.measures.areas import Convention
from demur.views import presentation
from demur.views.presentation import Presentation


def score(
    files: list[str],
    inputs: InputOptions,
    sampling: SamplingOptions,
    outputs: OutputOptions,
    *,
    at: str,
    at_error: float,
    aurc: Convention,
    by: str | None,
    region: str | None,
    curve: bool,
) -> None:
    """Evaluate every system in the files."""
    output.check(outputs)
    measures = returns_measures(at=rate_or_range(at), aurc=aurc, error=at_error)
    with steps(quiet=outputs.quiet or outputs.json) as step:
        step("reading", 0, 1)
        responses = read(files, inputs, keep=() if by is None else (by,))
        evaluations = evaluate(
            responses,
            measures=measures,
            by=by,
            region=_region(region),
            level=sampling.level,
            replicates=sampling.replicates,
            seed=sampling.seed,
            step=step,
        )
    shown = presentation.of_scores(evaluations, curves=curve)
    output.deliver(_told(shown, responses, sampling), outputs)


def compare_systems(
    files: list[str],
    inputs: InputOptions,
    sampling: SamplingOptions,
    outputs: OutputOptions,
    *,
    at: str,
    systems: list[str],
    region: str | None,
    matched: bool,
    unpaired: bool,
) -> None:
    """Compare the systems in the files."""
    output.check(outputs)
    point = rate_or_range(at)
    with steps(quiet=outputs.quiet or outputs.json) as step:
        step("reading", 0, 1)
        responses = read(files, inputs)
        comparison = compare(
            responses,
            systems=tuple(systems) or None,
            matched=matched,
            unpaired=unpaired,
            at=sum(point) / 2 if isinstance(point, tuple) else point,
            measures=returns_measures(at=point),
            region=_region(region),
            level=sampling.level,
            replicates=sampling.replicates,
            seed=sampling.seed,
            step=step,
        )
    output.deliver(_told(presentation.of_comparison(comparison), responses, sampling), outputs)


def threshold(
    files: list[str],
    inputs: InputOptions,
    sampling: SamplingOptions,
    outputs: OutputOptions,
    *,
    system: str | None,
    cost_ratio: float | None,
    max_error: float | None,
    delta: float | None,
    max_nonreturn: float | None,
) -> None:
    """Choose a threshold for one system."""
    output.check(outputs)
    responses = api.one_system(read(files, inputs), system)
    choice = api.threshold(
        responses, cost_ratio=cost_ratio, max_error=max_error, delta=delta, max_nonreturn=max_nonreturn
    )
    evaluation = evaluate(responses, level=sampling.level, replicates=sampling.replicates, seed=sampling.seed)[0]
    output.deliver(_told(presentation.of_choice(choice, evaluation), responses, sampling), outputs)


def classes(files: list[str], inputs: InputOptions, sampling: SamplingOptions, outputs: OutputOptions) -> None:
    """Score labels against labels."""
    output.check(outputs)
    lenient = replace(inputs, missing_confidence="lowest")
    responses = read(files, lenient, plain_labels=True)
    reports = class_reports(responses, level=sampling.level, replicates=sampling.replicates, seed=sampling.seed)
    output.deliver(_told(presentation.of_classes(reports), responses, sampling), outputs)


def validate(files: list[str], inputs: InputOptions, outputs: OutputOptions) -> None:
    """Say what the files hold, or what is wrong with them."""
    output.check(outputs)
    responses = read(files, inputs, keep=("*",))
    output.deliver(_told(presentation.of_validation(responses), responses, None), outputs)


def _region(text: str | None) -> tuple[float, float]:
    if text is None:
        return 0.0, 1.0
    region = rate_or_range(text)
    if not isinstance(region, tuple) or not 0 <= region[0] < region[1] <= 1:
        raise UsageError(f'--region takes a rising range of rates such as 0.1:0.3; got "{text}"')
    return region


def _told(shown: Presentation, responses: Responses, sampling: SamplingOptions | None) -> Presentation:
    """The presentation with what was recognised while reading, and the seed."""
    seed = () if sampling is None else (f"seed {sampling.seed}, {sampling.replicates:,} replicates",)
    return replace(
        shown, notes=(*shown.notes, *responses.notes, *seed), warnings=(*shown.warnings, *responses.warnings)
    )
