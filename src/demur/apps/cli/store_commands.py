"""The signatures and help of `demur add`, `demur runs` and `demur rm`, which load nothing heavy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from demur.apps.cli.options import InputOptions, OutputOptions, with_options

Kinds = Literal["responses", "nbest", "dialogues", "trials"]
StoreFolder = Annotated[
    Path | None,
    typer.Option(
        "--store",
        help="Folder of the store; else that of DEMUR_STORE, else where this system keeps the data of programs.",
        metavar="FOLDER",
    ),
]
Seed = Annotated[int, typer.Option("--seed", help="Taken as by every command; nothing here is random.")]


Tables = Annotated[
    list[str],
    typer.Argument(
        help="Tables of answers, N-best lists, dialogues or trials: .jsonl .csv .tsv .parquet .arrow, also .gz "
        "and .zst; globs; - for standard input."
    ),
]
Name = Annotated[
    str | None,
    typer.Option("--name", help="What the run is called; several are called NAME: SYSTEM. Else by system or file."),
]
KindOf = Annotated[
    list[str] | None,
    typer.Option(
        "--kind",
        help="responses, nbest, dialogues or trials, for all files or as FILE=KIND; else told by the columns.",
        metavar="KIND",
    ),
]
X = Annotated[str | None, typer.Option("--x", help="Of trials: the column that makes it harder.")]
Y = Annotated[str | None, typer.Option("--y", help="Of trials: the column that says how well it went.")]
Lower = Annotated[float, typer.Option("--lower", help="Of trials: the lower bound of a score.")]
Upper = Annotated[float | None, typer.Option("--upper", help="Of trials: the upper bound of a score.")]
Gold = Annotated[
    list[str] | None,
    typer.Option("--gold", help="Of trials: a performer that is the gold standard. Repeatable.", metavar="NAME"),
]
Items = Annotated[
    Literal["thomson", "dstc"] | None, typer.Option("--items", help="Of N-best lists: how an act becomes items.")
]
Normalise = Annotated[bool, typer.Option("--normalise", help="Of N-best lists: scale those that sum to over 1.")]
Outcome = Annotated[
    str | None, typer.Option("--outcome", help="Of dialogues: the column that is the outcome.", metavar="COLUMN")
]


@with_options
def add(
    files: Tables,
    inputs: InputOptions,
    outputs: OutputOptions,
    name: Name = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="A tag to find it by. Repeatable.")] = None,
    note: Annotated[str, typer.Option("--note", help="A note on it.", metavar="TEXT")] = "",
    kind: KindOf = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Take the name from the run that has it, which is removed.")
    ] = False,
    x: X = None,
    y: Y = None,
    lower: Lower = 0.0,
    upper: Upper = None,
    gold: Gold = None,
    items: Items = None,
    normalise: Normalise = False,
    outcome: Outcome = None,
    store: StoreFolder = None,
    seed: Seed = 0,  # noqa: ARG001
) -> None:
    """Add tables to the store of runs: read, checked, and kept once, whatever they are called."""
    from demur.apps.cli import storing

    storing.add(
        files,
        inputs,
        outputs,
        storing.Wishes(name=name, tags=tag or [], note=note, kinds=kind or [], replace=replace, store=store),
        storing.Further(
            x=x,
            y=y,
            lower=lower,
            upper=upper,
            gold=tuple(gold or ()),
            items=items,
            normalise=normalise,
            outcome=outcome,
        ),
    )


@with_options
def runs(
    outputs: OutputOptions,
    kind: Annotated[Kinds | None, typer.Option("--kind", help="Only runs of this kind.")] = None,
    tag: Annotated[str | None, typer.Option("--tag", help="Only runs with this tag.")] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Read every run again; exit with 1 if one is not what was added.")
    ] = False,
    store: StoreFolder = None,
    seed: Seed = 0,  # noqa: ARG001
) -> None:
    """List the runs in the store, the newest first."""
    from demur.apps.cli import storing

    storing.runs(outputs, kind=kind, tag=tag, check=check, folder=store)


@with_options
def rm(
    references: Annotated[list[str], typer.Argument(help="Names or ids of runs, or how an id begins.", metavar="RUNS")],
    outputs: OutputOptions,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; nobody is asked but at a terminal.")] = False,
    store: StoreFolder = None,
    seed: Seed = 0,  # noqa: ARG001
) -> None:
    """Remove runs from the store."""
    from demur.apps.cli import storing

    storing.remove(references, outputs, yes=yes, folder=store)


def add_to(app: typer.Typer) -> None:
    """Make all three known to the program."""
    app.command(epilog="Example: `demur add run.jsonl --name baseline --tag museum`")(add)
    app.command(epilog="Example: `demur runs --tag museum`")(runs)
    app.command(epilog="Example: `demur rm baseline`")(rm)
