"""The signatures and help of `demur outcome`, which load nothing heavy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from demur.apps.cli.options import Files, InputOptions, OutputOptions, SamplingOptions, with_options

outcome = typer.Typer(
    name="outcome",
    help="Which misunderstandings cost the outcome: models of what dialogues achieve, and predictions from them.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

Direction = Annotated[
    Literal["backward", "forward", "both"], typer.Option("--direction", help="Which way the search for terms may go.")
]
Start = Annotated[
    Literal["full", "null"] | None,
    typer.Option("--start", help="Where the search begins; default null for forward, else full."),
]
Keep = Annotated[
    list[str] | None, typer.Option("--keep", help="A term that stays in any case. Repeatable.", metavar="TERM")
]
Folds = Annotated[
    int | None,
    typer.Option(
        "--folds", min=2, help="Folds of the nested validation; default each dialogue, or each group, is one."
    ),
]
Features = Annotated[
    str,
    typer.Option(
        "--features",
        help="scores.fm, scores.precision, scores.recall, scores.all, conf, conf+scores.f, full; names of features "
        "or of columns; joined by +.",
        metavar="SETS",
    ),
]
MinPerDialogue = Annotated[
    float,
    typer.Option("--min-per-dialogue", min=0, help="How often a confusion must occur in a dialogue, on average."),
]
Undefined = Annotated[
    Literal["drop", "zero", "impute-mean"],
    typer.Option("--undefined", help="What becomes of a score that a dialogue does not have."),
]
Rejections = Annotated[
    Literal["counted", "left-out"],
    typer.Option("--rejections", help="Turns without a label: they lower recall, or are left out of all scores."),
]
ModelFile = Annotated[Path, typer.Argument(help="A model, as outcome fit writes it with --model.", metavar="MODEL")]
Extrapolate = Annotated[
    bool, typer.Option("--extrapolate", help="Predict although the system is unlike the training data; says so.")
]
Pooled = Annotated[bool, typer.Option("--pooled", help="Take all turns together instead of dialogue by dialogue.")]

UnknownLabels = Annotated[
    Literal["refuse", "drop"],
    typer.Option("--unknown-labels", help="Turns with labels that the model does not know: refuse all, or drop these."),
]


@outcome.callback()
def about() -> None:
    """Which misunderstandings cost the outcome: models of what dialogues achieve, and predictions from them."""


@outcome.command(epilog="Example: `demur outcome fit turns.jsonl --outcomes gains.csv --features full --model m.json`")
@with_options
def fit(
    files: Files,
    inputs: InputOptions,
    sampling: SamplingOptions,
    outputs: OutputOptions,
    outcomes: Annotated[
        Path,
        typer.Option(
            "--outcomes", help="Table of dialogues: dialogue, and outcome or pre and post; group.", metavar="FILE"
        ),
    ],
    outcome: Annotated[
        str | None, typer.Option("--outcome", help="The column that is the outcome.", metavar="COLUMN")
    ] = None,
    map_outcomes: Annotated[
        list[str] | None,
        typer.Option(
            "--map-outcomes", help="Name a column of the table of dialogues, as --map does.", metavar="NAME=COLUMN"
        ),
    ] = None,
    features: Features = "conf+scores.f",
    direction: Direction = "both",
    start: Start = None,
    keep: Keep = None,
    min_per_dialogue: MinPerDialogue = 2.0,
    undefined: Undefined = "impute-mean",
    rejections: Rejections = "counted",
    matched: Annotated[
        bool, typer.Option("--matched", help="Only dialogues that have both turns and an outcome.")
    ] = False,
    folds: Folds = None,
    sets: Annotated[bool, typer.Option("--sets", help="Hold the paper's feature sets side by side as well.")] = False,
    learners: Annotated[
        bool, typer.Option("--learners", help="Hold lasso, tree and small neural net beside it (scikit-learn).")
    ] = False,
    model: Annotated[
        Path | None, typer.Option("--model", "-m", help="Write the model to this file.", metavar="FILE.json")
    ] = None,
) -> None:
    """Explain what dialogues achieved by the scores and confusions of one component in their turns."""
    from demur.apps.cli import outcomes as work

    how = work.Search(direction, start, tuple(keep or ()), folds)
    rows = work.Rows(
        outcomes, outcome, tuple(map_outcomes or ()), features, min_per_dialogue, undefined, rejections, matched
    )
    work.fit(files, inputs, sampling, outputs, rows, how, sets=sets, learners=learners, model=model)


@outcome.command(epilog="Example: `demur outcome regress table.csv --outcome gain --direction both`")
@with_options
def regress(
    table: Annotated[str, typer.Argument(help="A table with a row per dialogue: .csv .jsonl .parquet; - for input.")],
    sampling: SamplingOptions,
    outputs: OutputOptions,
    outcome: Annotated[str, typer.Option("--outcome", help="The column that is to be explained.", metavar="COLUMN")],
    candidates: Annotated[
        str | None,
        typer.Option(
            "--candidates", help="Columns that may explain it, by commas; default all numbers.", metavar="NAMES"
        ),
    ] = None,
    group: Annotated[
        str | None, typer.Option("--group", help="Rows with the same value here are never split.", metavar="COLUMN")
    ] = None,
    direction: Direction = "both",
    start: Start = None,
    keep: Keep = None,
    folds: Folds = None,
) -> None:
    """Stepwise regression under AIC, as R's step(), with leave-one-out, nested validation and bootstrap."""
    from demur.apps.cli import outcomes as work

    how = work.Search(direction, start, tuple(keep or ()), folds)
    work.regress(table, sampling, outputs, how, outcome=outcome, candidates=candidates, group=group)


@outcome.command(epilog="Example: `demur outcome predict m.json new-system.jsonl`")
@with_options
def predict(
    model: ModelFile,
    files: Files,
    inputs: InputOptions,
    sampling: SamplingOptions,
    outputs: OutputOptions,
    extrapolate: Extrapolate = False,
    pooled: Pooled = False,
    unknown_labels: UnknownLabels = "refuse",
) -> None:
    """Predict the outcome for systems never tried with users, from their answers on turns with known labels."""
    from demur.apps.cli import outcomes as work

    how = work.Predicting(extrapolate, pooled, unknown_labels)
    work.predict(model, files, inputs, sampling, outputs, how, comparing=False)


@outcome.command(epilog="Example: `demur outcome compare m.json old.jsonl new.jsonl`")
@with_options
def compare(
    model: ModelFile,
    files: Files,
    inputs: InputOptions,
    sampling: SamplingOptions,
    outputs: OutputOptions,
    extrapolate: Extrapolate = False,
    pooled: Pooled = False,
    unknown_labels: UnknownLabels = "refuse",
) -> None:
    """Compare candidate systems by predicted outcome; one that is unlike the training data is left out, and why."""
    from demur.apps.cli import outcomes as work

    how = work.Predicting(extrapolate, pooled, unknown_labels)
    work.predict(model, files, inputs, sampling, outputs, how, comparing=True)
