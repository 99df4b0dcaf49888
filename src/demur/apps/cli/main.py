"""The `demur` command: signatures and help texts only, so that `demur --help` loads nothing heavy."""

from __future__ import annotations

import codecs
import json
import os
import sys
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Literal

import typer

from demur import __version__
from demur.apps.cli.chat import chat
from demur.apps.cli.commands import add_jobs
from demur.apps.cli.experiment_commands import experiments
from demur.apps.cli.importing import importer
from demur.apps.cli.nbest_command import nbest
from demur.apps.cli.options import InputOptions, OutputOptions, SamplingOptions, with_options
from demur.apps.cli.outcome_commands import outcome
from demur.apps.cli.report_command import report
from demur.apps.cli.serve_command import add_to as add_serve
from demur.apps.cli.store_commands import add_to as add_store
from demur.core.show.results import path_text
from demur.errors import DataError, DemurError, Interrupted
from demur.gold_standard.jobs import JOBS as GOLD_JOBS
from demur.returns.jobs import JOBS
from demur.understanding.jobs import JOBS as UNDERSTANDING_JOBS

app = typer.Typer(
    name="demur",
    help='Evaluate language understanding that is allowed to say "I don\'t understand".',
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)

AtNonreturn = Annotated[
    str, typer.Option("--at-nonreturn", help="Non-return rate of interest, or a range such as 0.1:0.3.", metavar="X")
]
AtError = Annotated[
    float, typer.Option("--at-error", help="Error rate for which the needed non-return rate is given.", metavar="E")
]


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"demur {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Evaluate language understanding that is allowed to say "I don't understand".

    Start with `demur demo`, or with a log of your own: `demur score log.jsonl`.
    """


add_jobs(app, JOBS)


@app.command(epilog="Example: `demur follow run.jsonl --until-idle 60 -o live.html`")
@with_options
def follow(
    log: Annotated[
        str,
        typer.Argument(
            help="A log that is being written, one that may not be there yet too: .jsonl .csv .tsv, not compressed; "
            "- for standard input.",
            metavar="LOG",
        ),
    ],
    inputs: InputOptions,
    sampling: SamplingOptions,
    outputs: OutputOptions,
    every: Annotated[
        float, typer.Option("--every", min=0.05, help="Seconds between updates.", metavar="SECONDS")
    ] = 2.0,
    until_idle: Annotated[
        float | None,
        typer.Option("--until-idle", min=0, help="End when nothing has come for so long.", metavar="SECONDS"),
    ] = None,
    at_nonreturn: AtNonreturn = "0.2",
    at_error: AtError = 0.05,
    cutoffs: Annotated[
        int, typer.Option("--cutoffs", min=16, help="Distinct confidences kept; more are joined.", metavar="N")
    ] = 65_536,
) -> None:
    """The live curve of a log that grows, in bounded memory; Ctrl-C ends it with the result in full."""
    from demur.apps.cli import following

    following.follow(
        log,
        inputs,
        sampling,
        outputs,
        at=at_nonreturn,
        at_error=at_error,
        every=every,
        until_idle=until_idle,
        cutoffs=cutoffs,
    )


@app.command("verify-engine", epilog="Example: `demur verify-engine --spark-master spark://host:7077`")
@with_options
def verify_engine(
    outputs: OutputOptions,
    engine: Annotated[
        Literal["polars", "duckdb", "spark"] | None,
        typer.Option("--engine", help="Verify this engine; without it, every one that is installed."),
    ] = None,
    spark_master: Annotated[
        str | None, typer.Option("--spark-master", help="The cluster to verify; else this machine.", metavar="URL")
    ] = None,
    rows: Annotated[int, typer.Option("--rows", min=100, help="Rows of the log made for it.", metavar="N")] = 20_000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the log made for it.")] = 0,
) -> None:
    """Does an engine, or your cluster, give the numbers that memory gives? Every measure and count is compared."""
    from demur.apps.cli import verifying

    verifying.verify(outputs, engine=engine, spark_master=spark_master, rows=rows, seed=seed)


@app.command(epilog="Example: `demur demo -o demo.html`")
@with_options
def demo(
    sampling: SamplingOptions,
    outputs: OutputOptions,
    logs: Annotated[
        Path | None,
        typer.Option("--logs", help="Also write the models' logs, as JSONL, into this folder.", metavar="FOLDER"),
    ] = None,
) -> None:
    """Train three models on a bundled museum guide, let them mishear, and show the whole story."""
    from demur.apps.cli import demonstration

    demonstration.demo(sampling, outputs, logs=logs)


app.command(epilog="Example: `demur nbest lists.jsonl --by noise -o lists.html`")(with_options(nbest))
app.command(epilog="Example: `demur report a.jsonl b.jsonl -o report.html -o report.xml`")(with_options(report))
app.add_typer(outcome, name="outcome")
add_jobs(app, GOLD_JOBS)
add_store(app)
add_serve(app)
understand = typer.Typer(
    help="A relevance model that answers questions or says that it does not understand: train, tune, respond, chat.",
    no_args_is_help=True,
)
app.add_typer(understand, name="understand")
add_jobs(app, UNDERSTANDING_JOBS)
understand.command(epilog="Example: `echo 'when do you open?' | demur understand chat guide`")(with_options(chat))
app.add_typer(experiments, name="experiment")
app.add_typer(importer, name="import")


def run() -> None:
    """Run the command; a fault becomes one clear message and its exit code, never a traceback for bad input."""
    _print_everything()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the matrices here are small: idle threads only cost time
    os.environ.setdefault("POLARS_HOT_TABLE_SIZE", str(2**20))  # a million groups at a time, instead of every row
    try:
        app(standalone_mode=True)
    except Interrupted as stop:
        _leave(str(stop), 2)
    except DataError as fault:
        _leave("\n".join(f"error: {one}" for one in fault.faults), 2)
    except DemurError as fault:
        _leave(f"error: {fault}", 2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(2)
    except MemoryError:
        _leave("error: this does not fit into memory; read fewer columns, or a part of the rows with --where", 2)
    except Exception as fault:
        if os.environ.get("DEMUR_DEBUG"):
            raise
        _leave(
            f"internal error: {type(fault).__name__}: {fault}\nThis is a fault of demur, not yours. "
            "Run again with DEMUR_DEBUG=1 for the traceback, and please report it.",
            3,
        )


def _print_everything() -> None:
    """Has standard output and standard error write what their encoding lacks as escapes, as JSON has them."""
    codecs.register_error("demur", _escaped)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="demur")


def _escaped(fault: UnicodeError) -> tuple[str, int]:
    if not isinstance(fault, UnicodeEncodeError):
        raise fault
    text = fault.object[fault.start : fault.end]
    with suppress(UnicodeEncodeError):  # half of a pair of surrogates is no byte of a path
        text = path_text(text)
    return json.dumps(text)[1:-1], fault.end


def _leave(message: str, code: int) -> None:
    print(message, file=sys.stderr)
    sys.exit(code)
