"""A command for each job: its flags follow from the job's declaration, and it runs the function that Python calls."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from demur import __version__
from demur.apps.cli import output
from demur.apps.cli.options import OutputOptions, RowOptions, parameters_of
from demur.apps.cli.output import steps
from demur.core.jobs import REQUIRED, Argument, Job, Option, Output, Parameter, check_values, load, with_flags
from demur.core.show.results import path_text
from demur.errors import DemurError, Interrupted, UsageError

TYPES = (bool, int, float, Path)
"""Types that the command line reads itself; anything else is a text that the option parses."""


Run = Callable[[Job, dict[str, Any]], None]
"""Runs a job with what its command was given, and delivers the result."""


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"demur {__version__}")
        raise typer.Exit


def _main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Evaluate language understanding that is allowed to say "I don't understand".

    Start with `demur demo`, or with a log of your own: `demur score log.jsonl`.
    """


def new_app() -> typer.Typer:
    """An app without commands: what `demur` says of itself, and --version."""
    app = typer.Typer(
        name="demur",
        help='Evaluate language understanding that is allowed to say "I don\'t understand".',
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_main)
    return app


def add_jobs(app: typer.Typer, jobs: Iterable[Job], run: Run | None = None) -> None:
    """Add a command for each job; the first of two words names a group that the app has, or gets."""
    for job in jobs:
        group, _, name = job.name.rpartition(" ")
        home = _group(app, group) if group else app
        home.command(name, epilog=f"Example: `{job.example}`")(command_of(job, run or run_job))


def command_of(job: Job, run: Run) -> Callable[..., None]:
    """The command of a job: the options of its function, and those that say where the result goes."""
    declared = [_declared(one) for one in job.parameters]
    declared += [_declared_output(one) for one in job.outputs]
    if run is not call or job.takes("outputs"):
        declared += parameters_of(RowOptions if run is run_import else OutputOptions)

    def command(**given: Any) -> None:
        try:
            run(job, given)
        except KeyboardInterrupt:
            raise Interrupted("interrupted; no output was left half-written") from None
        except DemurError as fault:
            flags = {one.name: one.flag.partition("/")[0] for one in job.parameters}
            flags |= {one.name: one.flag for one in job.outputs}
            raise with_flags(fault, flags) from None

    command.__name__, command.__doc__ = job.name.replace(" ", "_"), job.help
    command.__signature__ = inspect.Signature(declared)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in declared}
    return command


def run_job(job: Job, given: dict[str, Any]) -> None:
    """Call the function of a job with what the command was given, write and show its result."""
    outputs = outputs_from(given)
    files = {one: given.pop(one.name) for one in job.outputs}
    given_files = outputs.output
    extra, outputs = _apart(outputs, job)
    for one, path in files.items():
        _refuse_path(path, one.flag, one.ending)
        if path is not None and one.check is not None:
            positional, options = values_from(job, given)
            load(one.check)(path, *positional, **options)
    result = result_of(job, given, quiet=outputs.quiet or outputs.json)
    if job.says_files:
        result.files = tuple(str(path) for path in given_files)
    if outputs.json and not (outputs.output or extra or any(files.values())):
        output.print_json(result.to_dict(), outputs)
    else:
        _show(job, result, outputs, [*extra, *((path, one.write) for one, path in files.items() if path is not None)])
    if job.fails(result):
        raise typer.Exit(1)


def _show(job: Job, result: Any, outputs: OutputOptions, files: list[tuple[Path, str]]) -> None:
    shown = load(job.present)(result)
    output.refuse_undeliverable(shown, outputs)
    for path, write in files:
        load(write)(result, path)
        if not (outputs.quiet or outputs.json):
            typer.echo(f"wrote {path}", err=True)
    output.deliver(shown, outputs)


def call(job: Job, given: dict[str, Any]) -> None:
    """Call the function of a job that shows its result itself; it takes `outputs` if the command has them."""
    outputs = {"outputs": outputs_from(given)} if job.takes("outputs") else {}
    positional, options = values_from(job, given)
    check_values(job.function, options)
    job.function(*positional, **options, **outputs)


def run_import(job: Job, given: dict[str, Any]) -> None:
    """Write the rows that a job gives, to a file or to standard output, and say what was imported."""
    from demur.core.io.writing import as_lines, check_rows_file, write_rows

    to = RowOptions(**{part.name: given.pop(part.name) for part in fields(RowOptions)})
    if to.output is not None:
        check_rows_file(to.output)
    elif to.json:
        raise UsageError("--json: the rows need a file of their own; name it with -o")
    positional, options = values_from(job, given)
    check_values(job.function, options)
    with steps(quiet=to.quiet or to.json) as step:
        rows, count = job.function(*positional, **options, step=step), 0
        if to.output is not None:
            count = write_rows(to.output, rows)
        else:
            for count, line in enumerate(as_lines(rows), start=1):  # noqa: B007
                sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
    if to.json:
        document = {"rows": count, **rows.counts, "out": str(to.output), "notes": list(rows.notes)}
        typer.echo(output.as_json(document))
    elif not to.quiet:
        wrote = "" if to.output is None else f"wrote {to.output}: "
        for line in (*(f"note: {note}" for note in rows.notes), wrote + rows.summary(count)):
            typer.echo(line, err=True)


def outputs_from(given: dict[str, Any]) -> OutputOptions:
    """The options that say where the result goes, taken out of what a command was given."""
    return OutputOptions(**{part.name: given.pop(part.name) for part in fields(OutputOptions)})


def result_of(job: Job, given: dict[str, Any], *, quiet: bool) -> Any:
    """What the function of a job gives for what its command was given; progress is shown unless it must be quiet."""
    positional, options = values_from(job, given)
    check_values(job.function, options)
    with steps(quiet=quiet) as step:
        calls = {"step": step, "confirm": lambda question: quiet or _is_confirmed(question)}
        return job.function(*positional, **options, **{name: call for name, call in calls.items() if job.takes(name)})


def _is_confirmed(question: str) -> bool:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return True
    output.let_interrupts_end_waiting()
    return typer.confirm(question, err=True)


def values_from(job: Job, given: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The positional values and the options for the function; what was not given is left to its defaults."""
    positional: list[Any] = []
    options: dict[str, Any] = {}
    for one in job.parameters:
        value = given[one.name]
        if isinstance(one.option, Argument):
            positional += (value or []) if one.several else [] if value is None else [value]
        elif one.option.repeat:
            if value:
                options[one.name] = one.option.collect(tuple(one.parsed(path_text(text)) for text in value))
        elif value is not None:
            options[one.name] = one.parsed(path_text(value)) if isinstance(value, str) else value
    return positional, options


def _group(app: typer.Typer, name: str) -> typer.Typer:
    for one in app.registered_groups:
        if one.name == name and one.typer_instance is not None:
            return one.typer_instance
    made = typer.Typer(no_args_is_help=True)
    app.add_typer(made, name=name)
    return made


def _declared(parameter: Parameter) -> inspect.Parameter:
    """How the command line declares a parameter of a job."""
    option = parameter.option
    if isinstance(option, Argument):
        kind: Any = list[str] if parameter.several else str
        about = typer.Argument(help=option.help, metavar=parameter.flag)
        if option.optional:
            return _keyword(parameter.name, Annotated[kind | None, about], None)
        return _keyword(parameter.name, Annotated[kind, about], REQUIRED)
    kind = str if option.parse is not None or not _is_read(parameter) else parameter.type
    flags = [flag for flag in (parameter.flag, option.short) if flag]
    about = typer.Option(*flags, help=help_of(option), metavar=option.metavar)
    if option.repeat:
        return _keyword(parameter.name, Annotated[list[kind] | None, about], None)
    if parameter.default is REQUIRED:
        return _keyword(parameter.name, Annotated[kind, about], REQUIRED)
    default = parameter.text if kind is str else parameter.default
    return _keyword(parameter.name, Annotated[kind if default is not None else kind | None, about], default)


def help_of(option: Option) -> str:
    """The help of an option, with its range."""
    return f"{option.help} Must be {option.range}." if option.range else option.help


def _is_read(parameter: Parameter) -> bool:
    return bool(parameter.choices) or parameter.type in TYPES


def _declared_output(one: Output) -> inspect.Parameter:
    flags = [flag for flag in (one.flag, one.short) if flag]
    about = typer.Option(*flags, help=one.help, metavar=one.metavar)
    return _keyword(one.name, Annotated[Path | None, about], None)


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _apart(outputs: OutputOptions, job: Job) -> tuple[list[tuple[Path, str]], OutputOptions]:
    """The files of endings that only this job writes, and the options without them; refuse what cannot be written."""
    extra = [(path, write) for path in outputs.output if (write := _writer(path, job)) is not None]
    if job.check:
        load(job.check)([path for path, _ in extra])
    else:
        for path, _ in extra:
            _refuse_path(path)
    rest = replace(outputs, output=[path for path in outputs.output if _writer(path, job) is None])
    output.check(rest, [ending for ending, _ in job.endings])
    if not job.figures:
        output.refuse_figures(rest)
    return extra, rest


def _writer(path: Path, job: Job) -> str | None:
    """What writes the result to a path with an ending of the job's own; None where the ending is not one of them."""
    name = path.name.lower()
    for ending, write in job.endings:
        if name.endswith(ending) if ending else not path.suffix:
            return write
    return None


def _refuse_path(path: Path | None, flag: str = "-o", ending: str = "") -> None:
    if path is None:
        return
    if not path.name.lower().endswith(ending):
        raise UsageError(f"{flag} {path}: the extension must be {ending}")
    if path.is_dir():
        raise UsageError(f"{flag} {path}: this is a directory; name a file in it")
