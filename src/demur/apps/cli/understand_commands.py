"""The signatures and help of `demur understand`, which load nothing heavy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from demur.apps.cli.options import SamplingOptions, with_options

understand = typer.Typer(
    name="understand",
    help="A relevance model that answers questions or says that it does not understand: train, tune, respond, chat.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

TABLES = ".jsonl .csv .tsv .parquet .arrow, also .gz and .zst; globs; - for standard input"

PairsFile = Annotated[
    str,
    typer.Argument(help=f"Table of pairs: input, target (the answer's label), perhaps answer: {TABLES}."),
]
Model = Annotated[Path, typer.Argument(help="Folder of a model, as train and tune write it.", metavar="MODEL_DIR")]
Answers = Annotated[
    str | None,
    typer.Option("--answers", help="Table of what answers say: answer (the label) and text.", metavar="FILE"),
]
Tokens = Annotated[
    str,
    typer.Option(
        "--tokens",
        help="What texts are made of: words, phones, or mixed, which averages both; also phones1 to phones3, joined "
        "by + into one bag or by | to be averaged.",
        metavar="NAME",
    ),
]
AnswerWeight = Annotated[
    float, typer.Option("--answer-weight", help="How much of an answer's language model is its own text: 0 to 1.")
]
Scoring = Annotated[
    Literal["posterior", "kl", "cross-entropy"],
    typer.Option("--scoring", help="What the confidence is: weight of the questions, or nearness of the answer."),
]
Threshold = Annotated[
    float | None,
    typer.Option("--threshold", help="Least confidence of an answer that is returned; else the model's.", metavar="T"),
]
Map = Annotated[
    list[str] | None,
    typer.Option("--map", help="Name a column: --map target=my_column. Repeatable.", metavar="NAME=COLUMN"),
]
Where = Annotated[
    list[str] | None,
    typer.Option("--where", help="Keep rows whose column has this value. Repeatable.", metavar="COLUMN=VALUE"),
]
OutOfScope = Annotated[
    list[str] | None,
    typer.Option(
        "--out-of-scope",
        help="Target that stands for no answer, so its texts are off-topic. Repeatable; replaces oos and out_of_scope. "
        '"" for none.',
        metavar="LABEL",
    ),
]
ModelOutput = Annotated[
    list[str] | None,
    typer.Option(
        "-o",
        "--output",
        help="Write the model to this folder, a name without an ending or with / at its end; what is shown goes to "
        "names ending in .html .svg .png .pdf .json .csv .md .parquet. Repeatable.",
        metavar="MODEL_DIR",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output, nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Only the verdict; no tables, notes or progress.")]
FailIf = Annotated[
    list[str] | None,
    typer.Option("--fail-if", help='Exit with 1 if this holds: "error > 0.1". Repeatable.', metavar="CONDITION"),
]
Seed = Annotated[int, typer.Option("--seed", help="Taken as by every command; nothing here is random.")]


@understand.callback()
def about() -> None:
    """A relevance model that answers questions or says that it does not understand: train, tune, respond, chat."""


@understand.command(epilog="Example: `demur understand train pairs.jsonl --tokens words -o guide`")
@with_options
def train(
    pairs: PairsFile,
    answers: Answers = None,
    tokens: Tokens = "words",
    question_weight: Annotated[
        float,
        typer.Option("--question-weight", help="How much of a question's language model is its own text: 0 to 1."),
    ] = 0.5,
    answer_weight: AnswerWeight = 0.7,
    sharpness: Annotated[
        float, typer.Option("--sharpness", help="Power that likelihoods are raised to: above 0.")
    ] = 0.6,
    scoring: Scoring = "posterior",
    threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold", help="Least confidence of an answer that is returned; tune finds one.", metavar="T"
        ),
    ] = None,
    map: Map = None,  # noqa: A002
    where: Where = None,
    out_of_scope: OutOfScope = None,
    output: ModelOutput = None,
    json: Json = False,
    quiet: Quiet = False,
    fail_if: FailIf = None,
    seed: Seed = 0,  # noqa: ARG001
) -> None:
    """Learn from questions and the labels of their answers, and write the model to a folder."""
    from demur.apps.cli import understanding as work

    rows = work.Table(pairs, answers, map or [], where or [], out_of_scope or [])
    manner = {
        "tokens": tokens,
        "question_weight": question_weight,
        "answer_weight": answer_weight,
        "sharpness": sharpness,
        "scoring": scoring,
        "threshold": threshold,
    }
    work.train(rows, manner, work.destinations(output, json=json, quiet=quiet, fail_if=fail_if))


@understand.command(epilog="Example: `demur understand tune pairs.jsonl --max-error 0.1 -o guide`")
@with_options
def tune(
    pairs: PairsFile,
    sampling: SamplingOptions,
    off_topic: Annotated[
        str | None,
        typer.Option("--off-topic", help="Table of texts that have no answer: input.", metavar="FILE"),
    ] = None,
    answers: Answers = None,
    tokens: Tokens = "words",
    answer_weight: AnswerWeight = 0.7,
    scoring: Scoring = "posterior",
    cost_ratio: Annotated[
        float | None,
        typer.Option(
            "--cost-ratio",
            help="Threshold by what a non-return costs over what an error costs: 0 <= R < 1; without any aim 0.5.",
            metavar="R",
        ),
    ] = None,
    max_error: Annotated[
        float | None,
        typer.Option("--max-error", help="Threshold by most errors, as a share of all inputs.", metavar="E"),
    ] = None,
    max_nonreturn: Annotated[
        float | None, typer.Option("--max-nonreturn", help="Threshold by most non-returns.", metavar="X")
    ] = None,
    map: Map = None,  # noqa: A002
    where: Where = None,
    out_of_scope: OutOfScope = None,
    output: ModelOutput = None,
    json: Json = False,
    quiet: Quiet = False,
    fail_if: FailIf = None,
) -> None:
    """Find weights, sharpness and threshold by answering every question without it, and write the best model."""
    from demur.apps.cli import understanding as work

    rows = work.Table(pairs, answers, map or [], where or [], out_of_scope or [])
    manner = {"tokens": tokens, "answer_weight": answer_weight, "scoring": scoring}
    aims = {"cost_ratio": cost_ratio, "max_error": max_error, "max_nonreturn": max_nonreturn}
    to = work.destinations(output, json=json, quiet=quiet, fail_if=fail_if)
    work.tune(rows, manner, aims, sampling, to, off_topic=off_topic)


@understand.command(epilog="Example: `demur understand respond guide inputs.jsonl -o responses.jsonl`")
@with_options
def respond(
    model: Model,
    inputs: Annotated[
        str, typer.Argument(help=f"Table of texts: input, perhaps id and target; other columns are kept: {TABLES}.")
    ],
    nbest: Annotated[int, typer.Option("--nbest", min=1, help="Labels in the list of the best.", metavar="N")] = 5,
    threshold: Threshold = None,
    withhold: Annotated[
        bool,
        typer.Option(
            "--withhold", help="No prediction below the threshold; else it stays, so that score can try all thresholds."
        ),
    ] = False,
    map: Map = None,  # noqa: A002
    where: Where = None,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "-o",
            "--output",
            help="Write the table of responses to FILE: .jsonl .jsonl.gz .jsonl.zst .json .csv .tsv .parquet .arrow; "
            "also .md .html. Repeatable.",
            metavar="FILE",
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,  # noqa: ARG001
) -> None:
    """Answer the texts of a table, with confidences, as a table that `demur score` reads."""
    from demur.apps.cli import understanding as work

    rows = work.Table(inputs, None, map or [], where or [], [])
    manner = {"nbest": nbest, "threshold": threshold, "withhold": withhold}
    work.respond(model, rows, manner, output or [], json=json, quiet=quiet)


@understand.command(epilog="Example: `echo 'when do you open?' | demur understand chat guide`")
@with_options
def chat(
    model: Model,
    threshold: Threshold = None,
    json: Annotated[bool, typer.Option("--json", help="A line of JSON for each line of text.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Only what is said; no label, confidence or reason.")
    ] = False,
    seed: Seed = 0,  # noqa: ARG001
) -> None:
    """Talk to a model: what it answers, how confident it is, and why it withholds; Ctrl-D or Ctrl-C ends it.

    From a pipe each line is a text, and gives one line.
    """
    from demur.apps.cli import chatting

    chatting.chat(model, threshold=threshold, json=json, quiet=quiet)
