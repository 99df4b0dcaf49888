"""`demur merge`: parts of a log that were counted apart, shown as one."""

from __future__ import annotations

from dataclasses import replace

from demur.analyses.evaluation import evaluate_tallies, returns_measures
from demur.apps.cli import output
from demur.apps.cli.commands import region_of
from demur.apps.cli.options import OutputOptions, SamplingOptions
from demur.apps.cli.progress import steps
from demur.apps.cli.reading import rate_or_range
from demur.measures.areas import Convention
from demur.measures.sweep_files import SweepFile, gathered, merged
from demur.views import presentation
from demur.views.presentation import Presentation

MOST_TOLD = 20
"""Notes of the parts that are shown; a sweep written with -o keeps all of them."""


def merge(
    files: list[str],
    sampling: SamplingOptions,
    outputs: OutputOptions,
    *,
    at: str,
    at_error: float,
    aurc: Convention,
    region: str | None,
    curve: bool,
    name: str | None,
    apart: bool,
    allow_repeats: bool,
) -> None:
    """Add up the sweeps in the files and evaluate every system in them."""
    sweeps, rest = output.sweeps_apart(outputs)
    measures = returns_measures(at=rate_or_range(at), aurc=aurc, error=at_error)
    with steps(quiet=outputs.quiet or outputs.json) as step:
        parts = gathered(*files, step=step)
        whole = merged(parts, system=name, apart=apart, allow_repeats=allow_repeats)
        evaluations = evaluate_tallies(
            whole.tallies,
            measures=measures,
            level=sampling.level,
            region=region_of(region),
            replicates=sampling.replicates,
            seed=sampling.seed,
            step=step,
        )
    shown = _told(presentation.of_scores(evaluations, curves=curve), whole, parts, sampling)
    output.write_sweeps(sweeps, whole, quiet=outputs.quiet or outputs.json)
    output.deliver(shown, rest)


def _told(shown: Presentation, whole: SweepFile, parts: list[SweepFile], sampling: SamplingOptions) -> Presentation:
    """The presentation with what was told of the parts, and the seed."""
    logs = f" of {len(whole.sources):,} logs" if whole.sources else ""
    about = (f"{len(parts):,} sweeps{logs} merged", *_first(whole.notes, "notes"))
    seed = f"seed {sampling.seed}, {sampling.replicates:,} replicates"
    warnings = _first(whole.warnings, "warnings")
    return replace(shown, notes=(*shown.notes, *about, seed), warnings=(*shown.warnings, *warnings))


def _first(lines: tuple[str, ...], kind: str) -> tuple[str, ...]:
    if len(lines) <= MOST_TOLD:
        return lines
    return (
        *lines[:MOST_TOLD],
        f"{len(lines) - MOST_TOLD:,} more {kind} of the parts; -o WHOLE{output.SWEEP} keeps them all",
    )
