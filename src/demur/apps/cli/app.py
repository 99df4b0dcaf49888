"""Every command of `demur`: signatures and help texts only, so that `demur --help` loads nothing heavy."""

import os
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import Annotated

import typer

from demur.apps.cli.commands import Run, add_jobs, add_names, call, new_app, run_import, run_job
from demur.apps.cli.output import OutputOptions
from demur.apps.cli.report_command import run_report
from demur.core.jobs import Argument, Job, Option
from demur.core.options import Level, NoSeed, Replicates, Sampling, Seed, Where
from demur.errors import UsageError
from demur.gold_standard.jobs import JOBS as GOLD_JOBS
from demur.importers import JOBS as DSTC_JOBS
from demur.lab.jobs import JOBS as LAB_JOBS
from demur.nbest_lists.jobs import IMPORT_JOBS as SLF_JOBS
from demur.nbest_lists.jobs import JOBS as NBEST_JOBS
from demur.outcome.jobs import JOBS as OUTCOME_JOBS
from demur.reports.jobs import JOBS as REPORT_JOBS
from demur.returns.jobs import JOBS as RETURN_JOBS
from demur.returns.options import (
    OUT_OF_SCOPE,
    WITHHELD,
    AtError,
    AtNonreturn,
    Columns,
    MissingConfidence,
    OutOfScope,
    Withheld,
)
from demur.store.jobs import JOBS as STORE_JOBS
from demur.store.jobs import StoreFolder
from demur.understanding.jobs import JOBS as UNDERSTANDING_JOBS
from demur.understanding.jobs import LeastConfidence, ModelFolder


def follow(
    log: Annotated[
        str,
        Argument(
            "A log that is being written, one that may not be there yet too: .jsonl .csv .tsv, not compressed; "
            "- for standard input."
        ),
    ],
    *,
    outputs: OutputOptions,
    every: Annotated[float, Option("Seconds between updates.", minimum=0.05, metavar="SECONDS")] = 2.0,
    until_idle: Annotated[
        float | None, Option("End when nothing has come for so long.", minimum=0, metavar="SECONDS")
    ] = None,
    at_nonreturn: AtNonreturn = 0.2,
    at_error: AtError = 0.05,
    cutoffs: Annotated[int, Option("Distinct confidences kept; more are joined.", minimum=16, metavar="N")] = 65_536,
    columns: Columns = None,
    where: Where = (),
    out_of_scope: OutOfScope = OUT_OF_SCOPE,
    withheld: Withheld = WITHHELD,
    missing_confidence: MissingConfidence = "error",
    level: Level = 0.95,
    replicates: Replicates = 1000,
    seed: Seed = 0,
) -> None:
    """The live curve of a log that grows, in bounded memory; Ctrl-C ends it with the result in full."""
    from demur.apps.cli import following
    from demur.returns.table import Reading

    reading = Reading(
        columns=dict(columns or {}),
        where=where,
        out_of_scope=out_of_scope,
        withheld=withheld,
        missing_confidence=missing_confidence,
    )
    following.follow(
        log,
        reading,
        Sampling(level, replicates, seed),
        outputs,
        at=at_nonreturn,
        at_error=at_error,
        every=every,
        until_idle=until_idle,
        cutoffs=cutoffs,
    )


def serve(
    *,
    store: StoreFolder = None,
    host: Annotated[str, Option("Address to listen on; by default only this machine can come.")] = "127.0.0.1",
    port: Annotated[int, Option("Port; 0 takes a free one.", minimum=0, maximum=65535)] = 8378,
    token: Annotated[
        str | None,
        Option("Visitors must know it; by default that of DEMUR_TOKEN, or one that is made and printed with the link."),
    ] = None,
    no_token: Annotated[bool, Option("Let everybody on this machine come, its other users too.")] = False,
    max_upload: Annotated[int, Option("Largest upload, in megabytes.", minimum=1, metavar="MB")] = 2048,
    max_memory: Annotated[int, Option("Most memory of one job, in megabytes.", minimum=512, metavar="MB")] = 4096,
    max_minutes: Annotated[int, Option("Most processor time of one job.", minimum=1, metavar="MINUTES")] = 10,
    open_browser: Annotated[bool, Option("Open it in the browser.", flag="--open")] = False,
) -> None:
    """The workbench in the browser: runs, comparisons, errors, N-best lists, outcomes and gold standards."""
    try:
        from demur.apps.web.server import Address, page_that_opens
        from demur.apps.web.server import serve as serve_store
        from demur.apps.web.worker import Limits
    except ModuleNotFoundError as missing:
        if missing.name in ("starlette", "uvicorn", "jinja2"):
            raise UsageError("the workbench needs the extra: pip install 'demur[web]'") from None
        raise

    if token and no_token:
        raise UsageError("--token and --no-token exclude each other")
    address = Address(host=host, port=port, token=token or os.environ.get("DEMUR_TOKEN"), open_to_all=no_token)
    with ExitStack() as stack:

        def announce(text: str) -> None:
            typer.echo(text, err=True)
            link = next((word for word in text.split() if word.startswith("http://")), None)
            if open_browser and link:
                import webbrowser

                webbrowser.open(stack.enter_context(page_that_opens(link)).as_uri())

        stack.enter_context(suppress(KeyboardInterrupt))  # to end a server is no failure
        limits = Limits(memory=max_memory * 1024**2, processor=max_minutes * 60, wall=max_minutes * 180)
        serve_store(store, address, most_uploaded=max_upload * 1024**2, limits=limits, announce=announce)


def chat(
    model: ModelFolder,
    *,
    threshold: LeastConfidence = None,
    json: Annotated[bool, Option("A line of JSON for each line of text.")] = False,
    quiet: Annotated[bool, Option("Only what is said; no label, confidence or reason.", short="-q")] = False,
    seed: NoSeed = 0,  # noqa: ARG001
) -> None:
    """Talk to a model: what it answers, how confident it is, and why it withholds; Ctrl-D or Ctrl-C ends it."""
    from demur.apps.cli.chat import talk
    from demur.understanding.relevance import model_in

    talk(model_in(model, threshold), json=json, quiet=quiet)


def cite(
    *commands: Annotated[
        str,
        Argument("Commands, such as score or compare; all of them unless named.", metavar="COMMANDS", optional=True),
    ],
    json: Annotated[bool, Option("One JSON document instead of BibTeX.")] = False,
    seed: NoSeed = 0,  # noqa: ARG001
) -> None:
    """What to cite, as BibTeX: demur itself and the methods that commands use."""
    from demur.apps.cli.output import as_json
    from demur.core.show import citations

    references = citations.references_of(*commands)
    entries = [one.to_dict() for one in references]
    typer.echo(as_json({"references": entries}) if json else citations.cite(*commands), nl=json)


GROUPS = {
    "recalibrate": "Confidences that mean what they say: fit a map on one log, apply it to others.",
    "outcome": "Which misunderstandings cost the outcome: models of what dialogues achieve, and predictions from them.",
    "understand": "A relevance model that answers questions or says that it does not understand: train, tune, respond, "
    "chat.",
    "experiment": "Experiments of the literature, on data of your own or on a bundled simulated study.",
    "import": "Turn corpora in other formats into tables that the other commands read.",
}
"""Commands of two words, by the first."""

FOLLOW = Job("follow", follow, present="", example="demur follow run.jsonl --until-idle 60 -o live.html")
SERVE = Job("serve", serve, present="", example="demur serve --port 8400")
CITE = Job("cite", cite, present="", example="demur cite compare > methods.bib")
CHAT = Job(
    "understand chat",
    chat,
    present="",
    example="echo 'when do you open?' | demur understand chat guide",
    about="From a pipe each line is a text, and gives one line.",
)
COMMANDS: tuple[tuple[Sequence[Job], Run], ...] = (
    (RETURN_JOBS, run_job),
    ([FOLLOW], call),
    (NBEST_JOBS, run_job),
    (REPORT_JOBS, run_report),
    ((*OUTCOME_JOBS, *GOLD_JOBS, *STORE_JOBS), run_job),
    ([SERVE], call),
    (UNDERSTANDING_JOBS, run_job),
    ([CHAT], call),
    (LAB_JOBS, run_job),
    ((*DSTC_JOBS, *SLF_JOBS), run_import),
    ([CITE], call),
)
"""Every job with what runs it, in the order of `demur --help`."""


HELP = (["-h"], ["--help"])
"""Arguments that ask which commands there are."""


def app_of(arguments: Sequence[str] = ()) -> typer.Typer:
    """The app with the one command that the arguments begin with, or with every command where they begin with none.

    >>> app_of(["nbest", "lists.jsonl"]).registered_groups
    []
    """
    app = new_app()
    named = {" ".join(arguments[:words]) for words in (1, 2)}
    asked = [(job, run) for jobs, run in COMMANDS for job in jobs if job.name in named]
    every = [(job, run) for jobs, run in COMMANDS for job in jobs]
    for name, about in GROUPS.items():
        if not asked or name == arguments[0]:
            app.add_typer(typer.Typer(help=about, no_args_is_help=True), name=name)
    if list(arguments) in HELP:
        add_names(app, (job for job, _ in every))
        return app
    for job, run in asked or every:
        add_jobs(app, [job], run)
    return app
