"""What each command does once its options are read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from demur import api
from demur.analyses.comparison import compare
from demur.analyses.evaluation import evaluate, evaluate_tallies, returns_measures
from demur.analyses.labels import class_reports, class_reports_of_cells
from demur.apps.cli import output
from demur.apps.cli.counting import (
    Counted,
    CountedLabels,
    count,
    count_labels,
    counted_in_memory,
    engine_for,
    named,
    read_in_memory,
)
from demur.apps.cli.options import EngineOptions, InputOptions, OutputOptions, SamplingOptions
from demur.apps.cli.progress import steps
from demur.apps.cli.reading import rate_or_range, read
from demur.data.responses import Responses
from demur.errors import UsageError
from demur.measures.areas import Convention
from demur.views import presentation
from demur.views.presentation import Presentation

BY_BUCKET = "the promise is made by buckets of dialogues; made by dialogues (--engine memory), it may withhold less"


def score(
    files: list[str],
    inputs: InputOptions,
    sampling: SamplingOptions,
    outputs: OutputOptions,
    engines: EngineOptions,
    *,
    at: str,
    at_error: float,
    aurc: Convention,
    by: str | None,
    region: str | None,
    curve: bool,
) -> None:
    """Evaluate every system in the files."""
    sweeps, outputs = output.sweeps_apart(outputs)
    measures = returns_measures(at=rate_or_range(at), aurc=aurc, error=at_error)
    manner: dict[str, Any] = {"measures": measures, "region": region_of(region), **_drawn(sampling)}
    engine = engine_for(files, engines)
    with steps(quiet=outputs.quiet or outputs.json) as step:
        source: Responses | Counted
        if engine is None:
            step("reading", 0, 1)
            source = read_in_memory(files, inputs, engines, by=by)
            evaluations = evaluate(source, by=by, step=step, **manner)
        else:
            source = count(files, inputs, engines, engine, by=by, step=step)
            evaluations = evaluate_tallies(source.tallies, step=step, **manner)
    if sweeps:
        counted = source if isinstance(source, Counted) else counted_in_memory(source, inputs, files, by=by)
        output.write_sweeps(sweeps, counted.as_sweep_file(), quiet=outputs.quiet or outputs.json)
    shown = presentation.of_scores(evaluations, curves=curve)
    output.deliver(_told(shown, source, sampling), outputs)


def _drawn(sampling: SamplingOptions) -> dict[str, Any]:
    return {"level": sampling.level, "replicates": sampling.replicates, "seed": sampling.seed}


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
            region=region_of(region),
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
    engines: EngineOptions,
    *,
    system: str | None,
    cost_ratio: float | None,
    max_error: float | None,
    delta: float | None,
    max_nonreturn: float | None,
) -> None:
    """Choose a threshold for one system."""
    output.check(outputs)
    aim = api.aim(cost_ratio=cost_ratio, max_error=max_error, delta=delta, max_nonreturn=max_nonreturn)
    engine = engine_for(files, engines)
    with steps(quiet=outputs.quiet or outputs.json) as step:
        source: Responses | Counted
        if engine is None:
            step("reading", 0, 1)
            source = api.one_system(read_in_memory(files, inputs, engines), system)
            evaluation = evaluate(source, step=step, **_drawn(sampling))[0]
        else:
            source = count(files, inputs, engines, engine, by=None, step=step)
            evaluation = evaluate_tallies([api.one_tally(source.tallies, system)], step=step, **_drawn(sampling))[0]
    choice = aim(evaluation.sample, name=evaluation.system)
    shown = presentation.of_choice(choice, evaluation)
    if engine is not None and delta is not None and evaluation.clustered:
        shown = replace(shown, notes=(*shown.notes, BY_BUCKET))
    output.deliver(_told(shown, source, sampling), outputs)


def classes(
    files: list[str],
    inputs: InputOptions,
    sampling: SamplingOptions,
    outputs: OutputOptions,
    engines: EngineOptions,
) -> None:
    """Score labels against labels."""
    output.check(outputs)
    engine = engine_for(files, engines)
    with steps(quiet=outputs.quiet or outputs.json) as step:
        source: Responses | CountedLabels
        if engine is None:
            step("reading", 0, 1)
            lenient = replace(inputs, missing_confidence="lowest")
            source = named(read(files, lenient, plain_labels=True), engines.name)
            reports = class_reports(source, **_drawn(sampling))
        else:
            source = count_labels(files, inputs, engines, engine, step=step)
            reports = class_reports_of_cells(source.cells, clustered=source.clustered, **_drawn(sampling))
    output.deliver(_told(presentation.of_classes(reports), source, sampling), outputs)


def validate(files: list[str], inputs: InputOptions, outputs: OutputOptions) -> None:
    """Say what the files hold, or what is wrong with them."""
    output.check(outputs)
    responses = read(files, inputs, keep=("*",))
    output.deliver(_told(presentation.of_validation(responses), responses, None), outputs)


def region_of(text: str | None) -> tuple[float, float]:
    """The region that an option asks for; all rates without it."""
    if text is None:
        return 0.0, 1.0
    region = rate_or_range(text)
    if not isinstance(region, tuple) or not 0 <= region[0] < region[1] <= 1:
        raise UsageError(f'--region takes a rising range of rates such as 0.1:0.3; got "{text}"')
    return region


def _told(
    shown: Presentation, source: Responses | Counted | CountedLabels, sampling: SamplingOptions | None
) -> Presentation:
    """The presentation with what was recognised while reading, and the seed."""
    seed = () if sampling is None else (f"seed {sampling.seed}, {sampling.replicates:,} replicates",)
    return replace(shown, notes=(*shown.notes, *source.notes, *seed), warnings=(*shown.warnings, *source.warnings))
