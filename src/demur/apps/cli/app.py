"""Every command of `demur`: signatures and help texts only, so that `demur --help` loads nothing heavy."""

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from demur.apps import web_extra
from demur.apps.cli import output
from demur.apps.cli.commands import (
    Run,
    add_jobs,
    add_names,
    call,
    group_of,
    new_app,
    options_from,
    result_of,
    run_import,
    run_job,
)
from demur.apps.cli.doctor import DOCTOR
from demur.apps.cli.output import (
    FigureOptions,
    GateResult,
    OutputOptions,
    check_syntax,
    gate_results,
    let_interrupts_end_waiting,
)
from demur.apps.judge.command import JUDGE
from demur.core.jobs import Argument, Job, Option
from demur.core.options import Level, NoSeed, Replicates, Sampling, Seed, Where
from demur.core.show.results import path_text, plain, threshold_text
from demur.core.show.safe import json_text, terminal_line, visible
from demur.errors import UsageError
from demur.gold_standard.jobs import JOBS as GOLD_JOBS
from demur.importers import JOBS as DSTC_JOBS
from demur.importers.choices import ConfidenceScale, choosing, current_choices
from demur.judges.jobs import JOBS as JUDGE_JOBS
from demur.lab.jobs import JOBS as LAB_JOBS
from demur.nbest_lists.jobs import IMPORT_JOBS as SLF_JOBS
from demur.nbest_lists.jobs import JOBS as NBEST_JOBS
from demur.outcome.jobs import JOBS as OUTCOME_JOBS
from demur.reports.jobs import CHECK_JOBS
from demur.reports.jobs import JOBS as REPORT_JOBS
from demur.returns.engine_jobs import GATE, SWEEPS
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
    reading_of,
)
from demur.store.jobs import JOBS as STORE_JOBS
from demur.store.jobs import StoreFolder
from demur.study.jobs import JOBS as STUDY_JOBS
from demur.study.jobs import StudyFolder
from demur.understanding.jobs import JOBS as UNDERSTANDING_JOBS
from demur.understanding.jobs import LeastConfidence, ModelFolder

if TYPE_CHECKING:
    from demur.core.show.presentation import Presentation
    from demur.reports.report import Report
    from demur.understanding.relevance import Answer, RelevanceClassifier, Strategy

FORMATS = (".html", ".md", ".json", ".xml", *output.PICTURES)

RIVALS = 2
"""Other labels that a reader is told of."""


def run_report(job: Job, given: dict[str, Any]) -> None:
    """Make the report that `demur report` was asked for, write it, and exit with 1 if a gate does not hold."""
    from demur.core.io.writing import write_whole

    outputs, figures = options_from(OutputOptions, given), options_from(FigureOptions, given)
    _check_outputs(outputs)
    output.check_figures(figures, outputs.output)
    began = time.monotonic()
    report: Report = result_of(job, given, quiet=outputs.quiet or outputs.json)
    if figures.list_figures:
        output.list_figures(report.pictures(), as_document=outputs.json)
        return
    gates = gate_results(outputs.fail_if, report.documents)
    seconds = time.monotonic() - began
    report = report.with_gates([gate.to_dict() for gate in gates])
    document = output.as_json(report.document)

    def content(suffix: str) -> str:
        if suffix == ".json":
            return document + "\n"
        return junit_of(report, gates, seconds) if suffix == ".xml" else report.render(suffix)

    drawn = [path for path in outputs.output if path.suffix.lower() in output.PICTURES]
    contents = [(path, content(path.suffix.lower())) for path in outputs.output if path not in drawn]
    files = output.write_all(report.pictures(), drawn, figures) if drawn else []
    for path, text in contents:
        write_whole(path, text)
        files.append(path)
    if outputs.json:
        typer.echo(document)
    else:
        _summarise(report, gates, outputs)
    asides = [f"gate: {gate.failure}" for gate in gates if gate.failure is not None]
    if not (outputs.quiet or outputs.json):
        asides += [f"warning: {warning}" for warning in report.warnings]
        asides += [f"note: {note}" for note in report.analyses.mixture.notes]
        asides += [f"wrote {path_text(path)}" for path in files]
    for line in asides:
        output.print_aside(line)
    if any(gate.failure is not None for gate in gates):
        raise typer.Exit(1)


def _check_outputs(outputs: OutputOptions) -> None:
    """Refuse what cannot be delivered, before any work is done."""
    for path in outputs.output:
        if path.suffix.lower() not in FORMATS:
            raise UsageError(f'-o {path}: a report is written as {" ".join(FORMATS)}; got "{path.suffix}"')
        if path.is_dir():
            raise UsageError(f"-o {path}: this is a directory; name a file in it")
    check_syntax(outputs.fail_if)


def _summarise(report: "Report", gates: Sequence[GateResult], outputs: OutputOptions) -> None:
    """Verdict, a small table, a line for each gate; without colours and lines where these would be in the way."""
    verdicts = [
        f"PASS {gate.subject}: not {gate.condition}" if gate.failure is None else f"FAIL {gate.failure}"
        for gate in gates
    ]
    shown, tables = report.summary(), not outputs.quiet
    if sys.stdout.isatty() and "NO_COLOR" not in os.environ:
        from rich.console import Console

        from demur.core.show import terminal

        console = Console(highlight=False)
        terminal.show(shown, console, tables=tables)
        for line in verdicts:
            console.print(terminal_line(line), markup=False)
    else:
        shared = [report.shared] if report.shared and tables else []
        for line in [
            *plain_summary(shown, tables=tables),
            *shared,
            *verdicts,
        ]:
            print(terminal_line(line).translate({ord("–"): "-", ord("…"): "...", ord("≥"): ">=", 0xA0: " "}))
    if not outputs.output and not outputs.quiet:
        typer.echo("-o report.html writes the full report (also .md .json .xml)", err=True)


def plain_summary(shown: "Presentation", *, tables: bool = True) -> list[str]:
    """The lines of a summary for a log: sentences, then tables aligned by spaces, numbers to the right."""
    from rich.cells import cell_len

    lines = list(shown.sentences)
    for table in shown.tables if tables else ():
        rows = [[terminal_line(cell).replace("…", "...") for cell in row] for row in (table.columns, *table.rows)]
        widths = [max(map(cell_len, cells)) for cells in zip(*rows, strict=True)]
        lines.append("")
        for row in rows:
            blanks = [" " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)]
            cells = zip(row, blanks, table.numeric, strict=True)
            lines.append("  ".join(blank + cell if number else cell + blank for cell, blank, number in cells).rstrip())
        lines.append("")
    return lines


def junit_of(report: "Report", gates: Sequence[GateResult], seconds: float) -> str:
    """The gates and the files read as test cases; verdict and warnings as what the suite printed."""
    cases = [JUnitCase("files", f"{one.name} is read as {one.kind}") for one in report.analyses.mixture.files]
    cases += [JUnitCase(gate.subject, f"not {gate.condition}", gate.failure) for gate in gates]
    printed = [*report.verdict, *(f"warning: {warning}" for warning in report.warnings)]
    now = datetime.now(UTC).replace(tzinfo=None, microsecond=0).isoformat()
    return junit(report.title, cases, timestamp=now, seconds=seconds, output=printed)


@dataclass(frozen=True, slots=True)
class JUnitCase:
    """One test case: what it is about, what is asked of it, and why it fails where it does."""

    subject: str
    name: str
    failure: str | None = None


def junit(
    suite: str, cases: Sequence[JUnitCase], *, timestamp: str, seconds: float = 0.0, output: Sequence[str] = ()
) -> str:
    """One test suite; `output` are lines for its standard output.

    >>> print(junit("report", [JUnitCase("guide", "augrc > 0.1", "it is 0.2")], timestamp="2024-05-01"))
    <?xml version="1.0" encoding="UTF-8"?>
    <testsuites name="report" tests="1" failures="1" errors="0" skipped="0" time="0.000">
      <testsuite name="report" tests="1" failures="1" errors="0" skipped="0" time="0.000" timestamp="2024-05-01">
        <testcase classname="guide" name="augrc &gt; 0.1" time="0.000">
          <failure message="it is 0.2" type="gate">it is 0.2</failure>
        </testcase>
      </testsuite>
    </testsuites>
    <BLANKLINE>
    """
    from xml.etree.ElementTree import Element, SubElement, indent, tostring

    tests, failed = str(len(cases)), str(sum(case.failure is not None for case in cases))
    counts: Any = {"tests": tests, "failures": failed, "errors": "0", "skipped": "0", "time": f"{seconds:.3f}"}
    root = Element("testsuites", name=visible(suite), **counts)
    only = SubElement(root, "testsuite", name=visible(suite), **counts, timestamp=timestamp)
    for case in cases:
        asked = {"classname": visible(case.subject), "name": visible(case.name), "time": "0.000"}
        test = SubElement(only, "testcase", asked)
        if case.failure is not None:
            failure = visible(case.failure)
            SubElement(test, "failure", message=failure, type="gate").text = failure
    if output:
        SubElement(only, "system-out").text = visible("\n".join(output))
    indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, encoding="unicode")}\n'


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
    figures: FigureOptions,
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
    confidence_scale: ConfidenceScale = "guess",
    level: Level = 0.95,
    replicates: Replicates = 1000,
    seed: Seed = 0,
) -> None:
    """Show the curve of a log while it grows, in bounded memory; Ctrl-C ends with the full result."""
    from demur.apps.cli import following

    reading = reading_of(columns, where, out_of_scope, withheld, missing_confidence)
    with choosing(replace(current_choices(), confidence_scale=confidence_scale)):
        following.follow(
            log,
            reading,
            Sampling(level, replicates, seed),
            outputs,
            figures,
            at=at_nonreturn,
            at_error=at_error,
            every=every,
            until_idle=until_idle,
            cutoffs=cutoffs,
        )


Host = Annotated[str, Option("Address to listen on; by default only this machine can come.")]
Port = Annotated[int, Option("Port; 0 takes a free one.", minimum=0, maximum=65535)]
OpenBrowser = Annotated[bool, Option("Open it in the browser.", flag="--open")]


def serve(
    *,
    store: StoreFolder = None,
    host: Host = "127.0.0.1",
    port: Port = 8378,
    token: Annotated[
        str | None,
        Option("Visitors must know it; by default that of DEMUR_TOKEN, or one that is made and printed with the link."),
    ] = None,
    no_token: Annotated[bool, Option("Let everybody on this machine come, its other users too.")] = False,
    max_upload: Annotated[int, Option("Largest upload, in megabytes.", minimum=1, metavar="MB")] = 2048,
    max_memory: Annotated[int, Option("Most memory of one job, in megabytes.", minimum=512, metavar="MB")] = 4096,
    max_minutes: Annotated[int, Option("Most processor time of one job.", minimum=1, metavar="MINUTES")] = 10,
    open_browser: OpenBrowser = False,
) -> None:
    """Open the workbench in the browser: runs, comparisons, errors, N-best lists, outcomes and gold standards."""
    with web_extra("the workbench needs"):
        from demur.apps.web.server import Address, page_that_opens
        from demur.apps.web.server import serve as serve_store
        from demur.apps.web.worker import Limits

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


def serve_study(
    study: StudyFolder,
    *,
    host: Host = "127.0.0.1",
    port: Port = 8379,
    url: Annotated[
        str,
        Option("The address that others reach it by, where a proxy stands before it, as https://study.example.org."),
    ] = "",
    open_browser: OpenBrowser = False,
) -> None:
    """Serve a study: pages for participants, wizards and the experimenter, by links that hold their tokens."""
    _serve_study(Path(study), host, port, url, ("Experimenter",) if open_browser else ())


def play_study(
    folder: Annotated[str, Argument("A new folder for the study.", metavar="FOLDER")],
    *,
    port: Port = 8379,
    open_browser: OpenBrowser = False,
) -> None:
    """Try a study alone: a participant in one window, and the wizard who answers in another."""
    from demur.study.folder import new_folder

    new_folder(Path(folder), alone=True)
    typer.echo("Open the wizard's link and tick Take dialogues; then the participants' in another window.", err=True)
    _serve_study(Path(folder), "127.0.0.1", port, "", ("Wizard", "Participants") if open_browser else ())


def _serve_study(folder: Path, host: str, port: int, url: str, opened: Sequence[str]) -> None:
    """Serve a study, and open the links whose lines begin so in the browser."""
    with web_extra("serving a study needs"):
        from demur.apps.study.server import serve_study as serve_folder
        from demur.apps.web.server import Address, page_that_opens
    with ExitStack() as stack:

        def announce(text: str) -> None:
            typer.echo(text, err=True)
            if text.startswith(tuple(opened)) and opened:
                import webbrowser

                webbrowser.open(stack.enter_context(page_that_opens(text.split()[-1])).as_uri())

        stack.enter_context(suppress(KeyboardInterrupt))  # to end a server is no failure
        serve_folder(folder, Address(host=host, port=port), origin=url, announce=announce)


def chat(
    model: ModelFolder,
    *,
    threshold: LeastConfidence = None,
    json: Annotated[bool, Option("A line of JSON for each line of text.")] = False,
    quiet: Annotated[bool, Option("Only what is said; no label, confidence or reason.", short="-q")] = False,
    seed: NoSeed = 0,  # noqa: ARG001
) -> None:
    """Talk to a model: what it answers, how confident it is, and why it withholds; Ctrl-D or Ctrl-C ends it."""
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
    """Print what to cite, as BibTeX: demur itself and the methods that commands use."""
    from demur.apps.cli.output import as_json
    from demur.core.show import citations

    references = citations.references_of(*commands)
    entries = [one.to_dict() for one in references]
    typer.echo(as_json({"references": entries}) if json else citations.cite(*commands), nl=json)


GROUPS = {
    "recalibrate": "Calibrate confidences: fit a map on one log, apply it to others.",
    "outcome": "Find which misunderstandings cost the outcome of dialogues, and predict the outcome for new systems.",
    "understand": "Train and use a relevance model that answers questions or says that it does not understand.",
    "understand grade": "Grade students' short answers by their words in common with the expected answer.",
    "study": "Run Wizard-of-Oz studies: people talk to wizards or to systems, both with the same noisy input.",
    "experiment": "Repeat experiments of the papers, on your own data or on bundled data.",
    "import": "Convert logs of other tools and corpora to tables. Other commands read most of these logs as they are.",
}
"""Groups of commands, by the words before the last."""

FOLLOW = Job(
    "follow",
    follow,
    present="",
    example="demur follow run.jsonl --until-idle 60 -o live.html",
    endings=SWEEPS,
    gate=GATE,
)
SERVE = Job("serve", serve, present="", example="demur serve --port 8400")
CITE = Job("cite", cite, present="", example="demur cite compare > methods.bib")
CHAT = Job(
    "understand chat",
    chat,
    present="",
    example="echo 'when do you open?' | demur understand chat guide",
    about="From a pipe each line is a text, and gives one line.",
)
SERVE_STUDY = Job("study serve", serve_study, present="", example="demur study serve museum --port 8400")
PLAY_STUDY = Job("study play", play_study, present="", example="demur study play tryout --open")
COMMANDS: tuple[tuple[Sequence[Job], Run], ...] = (
    (RETURN_JOBS, run_job),
    ([FOLLOW], call),
    (NBEST_JOBS, run_job),
    (REPORT_JOBS, run_report),
    (CHECK_JOBS, run_job),
    ((*OUTCOME_JOBS, *GOLD_JOBS), run_job),
    ([JUDGE], call),
    ((*JUDGE_JOBS, *STORE_JOBS), run_job),
    ([SERVE], call),
    (UNDERSTANDING_JOBS, run_job),
    ([CHAT], call),
    (STUDY_JOBS, run_job),
    ([SERVE_STUDY, PLAY_STUDY], call),
    (LAB_JOBS, run_job),
    ((*DSTC_JOBS, *SLF_JOBS), run_import),
    ([CITE, DOCTOR], call),
)
"""Every job with what runs it; `PANELS` has the order of `demur --help`."""


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
        if not asked or any(job.name.startswith(f"{name} ") for job, _ in asked):
            group_of(app, name, about)
    if list(arguments) in HELP:
        add_names(app, (job for job, _ in every))
        return app
    for job, run in asked or every:
        add_jobs(app, [job], run)
    return app


def talk(model: "RelevanceClassifier", *, json: bool, quiet: bool) -> None:
    """Answer the texts of standard input one by one until it ends, or until Ctrl-C."""
    from demur.understanding.relevance import Conversation

    terminal = sys.stdin.isatty() and sys.stdout.isatty() and not json
    if terminal and not quiet:
        unlimited = "no threshold, so only what is unknown is withheld"
        limit = unlimited if model.threshold is None else f"threshold {threshold_text(model.threshold)}"
        typer.echo(f"A model of {len(model.classes_):,} answers; {limit}. Ctrl-D leaves.")
    conversation = Conversation(model)
    try:
        for text in _texts(terminal=terminal):
            answer, reply, strategy = conversation.turn(text)
            line = terminal_line(" ".join(reply.split()))
            if json:
                _print_json(text, answer, reply, strategy)
            elif quiet:
                typer.echo(line)
            elif terminal:
                typer.echo(line)
                typer.secho(f"  [{terminal_line(_reason(answer, strategy))}]", dim=True)
            else:
                typer.echo(f"{line} [{terminal_line(_reason(answer, strategy))}]")
    except KeyboardInterrupt:  # how one leaves
        pass
    if terminal:
        typer.echo()


def _texts(*, terminal: bool) -> Iterator[str]:
    """The lines of standard input; at a terminal each is asked for, and empty ones are passed over."""
    from demur.core.io.sources import not_utf8

    number = 0
    while True:
        if terminal:
            let_interrupts_end_waiting()
            typer.echo("> ", nl=False)
        line = sys.stdin.buffer.readline()
        number += 1
        if not line:
            return
        try:
            text = line.decode("utf-8", errors="replace" if terminal else "strict").rstrip("\r\n")
        except UnicodeDecodeError as fault:
            raise not_utf8(fault, f"<stdin>:{number}:") from None
        if text.strip() or not terminal:
            yield text


def _reason(answer: "Answer", strategy: "Strategy | None") -> str:
    """The label, its confidence and the runner-up; why it is withheld."""
    if answer.label is None:
        return f"withheld: {answer.why}; {strategy}"
    best = f"{answer.label}, confidence {answer.confidence:.3g}"
    posterior = dict(answer.nbest).get(answer.label, answer.confidence)
    if posterior != answer.confidence:
        best += f" (posterior {posterior:.3g})"
    rivals = [f"{label} {share:.3g}" for label, share in answer.nbest if label != answer.label]
    best += f"; then {', '.join(rivals[:RIVALS])}" if rivals else ""
    return best if answer.returned else f"withheld: {answer.why}; {strategy}; best guess {best}"


def _print_json(text: str, answer: "Answer", reply: str, strategy: "Strategy | None") -> None:
    document: dict[str, Any] = {
        "input": text,
        "said": reply,
        "prediction": answer.label,
        "confidence": answer.confidence,
        "returned": answer.returned,
        "strategy": strategy,
        "why": answer.why,
        "nbest": [{"label": label, "confidence": share} for label, share in answer.nbest],
    }
    typer.echo(json_text(plain(document), indent=None))
