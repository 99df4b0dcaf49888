"""The signatures and help of `demur gold` and `demur plan`, which load nothing heavy."""

from __future__ import annotations

from typing import Annotated

import typer

from demur.apps.cli.options import OutputOptions, SamplingOptions, TrialOptions, with_options

Tables = Annotated[
    list[str],
    typer.Argument(
        help="Tables of trials: performer, role (gold or system), x, y, subject, n, components, study; .csv .jsonl "
        ".parquet ...; - for standard input. Several files are several studies.",
        metavar="TRIALS",
    ),
]


@with_options
def gold(
    tables: Tables,
    trials: TrialOptions,
    sampling: SamplingOptions,
    outputs: OutputOptions,
    span: Annotated[
        str | None,
        typer.Option("--range", help="Read only this range of x; default all that every curve covers.", metavar="A:B"),
    ] = None,
    components: Annotated[
        bool, typer.Option("--components", help="Tell combinations of components apart, and what each contributes.")
    ] = False,
    cost: Annotated[
        str | None,
        typer.Option(
            "--cost",
            help='What levels of performance are worth: a table with performance and amount, or "1000 * p ** 2".',
            metavar="FILE|EXPRESSION",
        ),
    ] = None,
    gain: Annotated[
        str | None,
        typer.Option(
            "--gain", help="With --cost: only where a system performs between these, as 0.7:0.8.", metavar="A:B"
        ),
    ] = None,
    checks: Annotated[
        bool, typer.Option("--checks/--no-checks", help="Hold wizards against each other, and look at convergence.")
    ] = True,
) -> None:
    """How far from a human: benchmark graph, gold impurity, complexity, verdict and cost from trials."""
    from demur.apps.cli import gold_standards as work

    work.gold(
        tables,
        trials,
        sampling,
        outputs,
        work.Readings(span=span, components=components, cost=cost, gain=gain, checks=checks),
    )


@with_options
def plan(
    tables: Tables,
    trials: TrialOptions,
    sampling: SamplingOptions,
    outputs: OutputOptions,
    subjects: Annotated[
        str, typer.Option("--subjects", help="Numbers of wizards (and callers) to try.", metavar="N,N,...")
    ] = "8,12,16,24,32",
    each: Annotated[
        str,
        typer.Option("--trials", help="Numbers of trials to try, per subject and performer.", metavar="N,N,..."),
    ] = "10,20,40",
    half_width: Annotated[
        float, typer.Option("--half-width", help="How far off curves may be on average, as a share of the metric.")
    ] = 0.05,
    studies: Annotated[int, typer.Option("--studies", min=20, help="Studies to simulate for each design.")] = 200,
) -> None:
    """How many wizards and trials a study needs, by simulation from a pilot."""
    from demur.apps.cli import gold_standards as work

    work.plan(
        tables,
        trials,
        sampling,
        outputs,
        work.Designs(subjects=subjects, trials=each, half_width=half_width, studies=studies),
    )


def add_to(app: typer.Typer) -> None:
    """Make both known to the program."""
    app.command(
        epilog="Example: `demur gold trials.csv --x wer --y completed --cost cost.csv --gain 0.7:0.8 -o gold.html`"
    )(gold)
    app.command(epilog="Example: `demur plan pilot.csv --x wer --y completed --subjects 8,16,32 --trials 20,40`")(plan)
