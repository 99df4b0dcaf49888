"""`demur report`: its signature and help only; the work is in `reporting`."""

from __future__ import annotations

from typing import Annotated

import typer

from demur.apps.cli.options import InputOptions, OutputOptions, SamplingOptions

Tables = Annotated[
    list[str],
    typer.Argument(
        help="Tables of any kinds, each recognised by its columns: answers, N-best lists, dialogues, trials; "
        ".jsonl .csv .tsv .parquet .arrow, also .gz and .zst; globs; folders of DSTC; - for standard input."
    ),
]
Kinds = Annotated[
    list[str] | None,
    typer.Option(
        "--kind",
        help="What a file is, where its columns do not say: responses, nbest, dialogues or trials. Repeatable.",
        metavar="FILE=KIND",
    ),
]
Title = Annotated[str | None, typer.Option("--title", help="Title of the report.", metavar="TEXT")]
By = Annotated[
    list[str] | None,
    typer.Option(
        "--by",
        help="Slice by this column. Repeatable; by default every column of 2 to 20 values, two of them with 30 inputs. "
        '"" for none.',
        metavar="COLUMN",
    ),
]
AtNonreturn = Annotated[float, typer.Option("--at-nonreturn", help="Non-return rate of interest.", metavar="X")]
CostRatio = Annotated[
    float | None,
    typer.Option("--cost-ratio", help="Advise the threshold for what a non-return costs over an error.", metavar="R"),
]
MaxError = Annotated[
    float | None,
    typer.Option("--max-error", help="Advise the threshold for at most this share of errors.", metavar="E"),
]
Delta = Annotated[
    float | None,
    typer.Option("--delta", help="With --max-error: promise it on new data but for this chance.", metavar="D"),
]
MaxNonreturn = Annotated[
    float | None,
    typer.Option("--max-nonreturn", help="Advise the threshold for at most this share withheld.", metavar="X"),
]
Examples = Annotated[
    int, typer.Option("--examples", min=0, help="Rows to show of each kind, for each system.", metavar="N")
]
Outcome = Annotated[str | None, typer.Option("--outcome", help="Of dialogues: the column that says how they ended.")]
X = Annotated[str | None, typer.Option("--x", help="Of trials: the column that makes it harder.")]
Y = Annotated[str | None, typer.Option("--y", help="Of trials: the column that says how well it went.")]


def report(
    files: Tables,
    inputs: InputOptions,
    sampling: SamplingOptions,
    outputs: OutputOptions,
    kind: Kinds = None,
    title: Title = None,
    by: By = None,
    at_nonreturn: AtNonreturn = 0.2,
    cost_ratio: CostRatio = None,
    max_error: MaxError = None,
    delta: Delta = None,
    max_nonreturn: MaxNonreturn = None,
    examples: Examples = 10,
    outcome: Outcome = None,
    x: X = None,
    y: Y = None,
) -> None:
    """The whole story of one or more logs as one page; also Markdown, JSON and JUnit XML.

    Verdict, error-return plot, threshold, comparison, slices, calibration, examples; N-best lists, outcomes and a gold
    standard where the files have them. -o takes .html, .md, .json and .xml (JUnit: each gate of --fail-if is a test
    case) and may be repeated; without it a summary is all there is. A CI job appends the .md to its summary page.
    """
    from demur.apps.cli import reporting

    columns = None if by is None else tuple(column for column in by if column)
    reporting.report(
        files,
        inputs,
        sampling,
        outputs,
        reporting.Wanted(kinds=tuple(kind or ()), title=title, by=columns, outcome=outcome, x=x, y=y),
        at_nonreturn=at_nonreturn,
        cost_ratio=cost_ratio,
        max_error=max_error,
        delta=delta,
        max_nonreturn=max_nonreturn,
        examples=examples,
    )
