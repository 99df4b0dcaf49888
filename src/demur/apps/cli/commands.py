"""A command for each job: its flags follow from the job's declaration, and it runs the function that Python calls."""

from __future__ import annotations

import glob
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperGroup

from demur import __version__
from demur.apps.cli import output
from demur.apps.cli.output import (
    FigureOptions,
    OutputOptions,
    RowOptions,
    gate_option,
    output_option,
    parameters_of,
    steps,
)
from demur.core.jobs import REQUIRED, Argument, Job, Option, Parameter, check_values, flagged, load, with_flags
from demur.core.show.results import path_text
from demur.errors import DemurError, Interrupted, UsageError

TYPES = (bool, int, float, Path)
"""Types that the command line reads itself; anything else is a text that the option parses."""

ALLOCATION = {-1: 1 << 29, -3: 1 << 25}
"""Options of `mallopt` in bytes: how many free ones are kept (M_TRIM_THRESHOLD), and how large arrays may be that use
them (M_MMAP_THRESHOLD)."""

PANELS = {
    "Answers that may be withheld": ("score", "compare", "threshold", "classes", "drift", "recalibrate"),
    "Lists, outcomes, people": ("nbest", "outcome", "gold", "plan", "study", "judge", "agreement"),
    "Reports and runs": ("report", "add", "runs", "rm", "serve"),
    "Logs": ("validate", "import", "follow", "watch", "merge", "verify-engine"),
    "Systems to study": ("demo", "understand", "simulate", "learn", "experiment"),
    "About demur": ("doctor", "cite"),
}
"""The commands and groups of `demur --help`, in its order, by panel."""

OPTION_PANELS = {
    "Reading logs": (
        *("columns", "where", "out_of_scope", "withheld", "missing_confidence", "name", "confidence", "scorer"),
        *("metric", "filter", "rows", "gold", "on", "withheld_like", "confidence_scale", "decimal", "kind", "ontology"),
    ),
    "Large logs": ("engine", "spark_master", "exact_up_to", "check_ids", "join"),
    "Intervals": ("level", "replicates", "seed"),
    "Output": ("output", "json", "quiet", "fail_if"),
    "Figures": ("figure", "list_figures", "width", "font_size", "no_title", "grey"),
}
"""The options that many commands share, by panel of their help; all others come before them."""


def _by_name(panels: Mapping[str, Iterable[str]]) -> dict[str, str]:
    return {name: panel for panel, names in panels.items() for name in names}


PANEL_OF, OPTION_PANEL_OF = _by_name(PANELS), _by_name(OPTION_PANELS)

Group = TypeVar("Group", OutputOptions, FigureOptions, RowOptions)
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


class Commands(TyperGroup):
    """The commands in the order of the panels, and after these in the order in which they were added."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of the commands, in order."""
        places = {name: place for place, name in enumerate(PANEL_OF)}
        return sorted(super().list_commands(ctx), key=lambda name: places.get(name, len(places)))


def new_app() -> typer.Typer:
    """An app without commands: what `demur` says of itself, and --version."""
    app = typer.Typer(
        name="demur",
        cls=Commands,
        help='Evaluate language understanding that is allowed to say "I don\'t understand".',
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_main)
    return app


def add_jobs(app: typer.Typer, jobs: Iterable[Job], run: Run | None = None) -> None:
    """Add a command for each job; the words before the last name a group that the app has, or gets."""
    for job in jobs:
        group, _, name = job.name.rpartition(" ")
        home = group_of(app, group) if group else app
        panel = None if group else PANEL_OF.get(name)
        home.command(name, epilog=f"Example: `{job.example}`", rich_help_panel=panel)(command_of(job, run or run_job))


def add_names(app: typer.Typer, jobs: Iterable[Job]) -> None:
    """Add the commands of one word by name and help alone: all that a list of commands needs, far quicker to make."""
    for job in jobs:
        if " " not in job.name:
            app.command(job.name, help=job.help, rich_help_panel=PANEL_OF.get(job.name))(lambda: None)


def command_of(job: Job, run: Run) -> Callable[..., None]:
    """The command of a job: the options of its function, and those that say where the result goes."""
    flags = flags_of(job)
    declared = [_declare(one, flags) for one in job.parameters]
    declared += [
        _keyword(one.name, Path | None, _option((one.flag, one.short), one.help, one.metavar), None)
        for one in job.outputs
    ]
    if run is run_import:
        declared += parameters_of(RowOptions)
    elif run is not call or job.takes("outputs"):
        own = {
            "fail_if": Annotated[list[str], gate_option(job.gate)],
            "output": Annotated[list[Path], output_option([ending for ending, _ in job.endings])],
        }
        options = parameters_of(OutputOptions)
        declared += [one.replace(annotation=own.get(one.name, one.annotation)) for one in options]
    if (run not in (call, run_import) and job.figures) or job.takes("figures"):
        declared += parameters_of(FigureOptions)

    def command(**given: Any) -> None:
        try:
            _refuse_overwriting(job, given)
            run(job, given)
        except KeyboardInterrupt:
            raise Interrupted("interrupted; no output was left half-written") from None
        except DemurError as fault:
            others = {one.name: one.flag for one in job.outputs}
            others |= {"width": "--width", "font_size": "--font-size"}
            raise with_flags(fault, flags | others) from None

    for one in declared:
        one.annotation.__metadata__[0].rich_help_panel = OPTION_PANEL_OF.get(one.name)
    command.__name__, command.__doc__ = job.name.replace(" ", "_"), job.help
    command.__signature__ = inspect.Signature(declared)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in declared}
    return command


def run_job(job: Job, given: dict[str, Any]) -> None:
    """Call the function of a job with what the command was given, write and show its result."""
    _keep_freed_memory()
    outputs = options_from(OutputOptions, given)
    figures = options_from(FigureOptions, given) if job.figures else output.AS_THEY_COME
    extra, rest = _split_outputs(outputs, job)
    output.check_figures(figures, rest.output)
    files = [(one, path) for one in job.outputs if (path := given.pop(one.name)) is not None]
    for one, path in files:
        _refuse_path(path, one.flag, one.ending)
        if one.check is not None:
            positional, options = values_from(job, given)
            load(one.check)(path, *positional, **options)
    result = result_of(job, given, quiet=outputs.quiet or outputs.json)
    if job.says_files:
        result.files = tuple(str(path) for path in outputs.output)
    if figures.list_figures:
        output.list_figures(load(job.present)(result), as_document=outputs.json)
    elif outputs.json and not (outputs.output or files):
        output.print_json(result.to_dict(), outputs)
    else:
        shown = load(job.present)(result)
        output.refuse_undeliverable(shown, rest)
        shown.chosen(figures.figure)
        for path, write in [*extra, *((path, one.write) for one, path in files)]:
            load(write)(result, path)
            if not (outputs.quiet or outputs.json):
                output.print_aside(f"wrote {path}")
        output.deliver(shown, rest, figures)
    if job.fails(result):
        raise typer.Exit(1)


def _keep_freed_memory() -> None:
    """Have arrays use again what others freed: to return it and to be given it again takes a fifth of the time."""
    import ctypes

    with suppress(AttributeError, OSError, TypeError):  # of a system that allocates otherwise; the last on Windows
        allocator = ctypes.CDLL(None)
        for option, value in ALLOCATION.items():
            allocator.mallopt(option, value)


def call(job: Job, given: dict[str, Any]) -> None:
    """Call the function of a job that shows its result itself; it takes `outputs` and `figures` if it has them."""
    kinds: dict[str, type[Any]] = {"outputs": OutputOptions, "figures": FigureOptions}
    shown = {name: options_from(kind, given) for name, kind in kinds.items() if job.takes(name)}
    positional, options = values_from(job, given)
    job.function(*positional, **options, **shown)


def run_import(job: Job, given: dict[str, Any]) -> None:
    """Write the rows that a job gives, to a file or to standard output, and say what was imported."""
    from demur.core.io.writing import as_lines, check_rows_file, write_rows

    to = options_from(RowOptions, given)
    if to.output is not None:
        check_rows_file(to.output)
    elif to.json:
        raise UsageError("--json: the rows need a file of their own; name it with -o")
    positional, options = values_from(job, given)
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
            output.print_aside(line)


def _refuse_overwriting(job: Job, given: dict[str, Any]) -> None:
    """Refuse to write to what is read: an output that is one of the inputs, by whatever name, or that holds one."""
    inputs = [text for one in job.parameters if one.name != "output" for text in _texts(given[one.name])]
    outputs = [("-o", path) for path in _texts(given.get("output"))]
    for flag, path in [*outputs, *((one.flag, path) for one in job.outputs for path in _texts(given[one.name]))]:
        if any(_is_read(path, part) for text in inputs for part in (text, *text.split("=", 1), *text.rsplit("=", 1))):
            raise UsageError(f"{flag} {path}: this file is read here; write to another")


def _is_read(output: str, source: str) -> bool:
    """Whether what an argument names, a file, a glob or a folder with all in it, is the output or lies in it."""
    if not os.path.exists(output):
        return False
    names = [source] if os.path.exists(source) else glob.glob(source, recursive=True) if glob.has_magic(source) else []
    place = Path(output).resolve()
    found = [Path(name).resolve() for name in names]
    return any(os.path.samefile(output, one) or place in one.parents or one in place.parents for one in found)


def _texts(value: Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [str(one) for one in values if isinstance(one, str | Path)]


def options_from(group: type[Group], given: dict[str, Any]) -> Group:
    """A group of options, taken out of what a command was given."""
    return group(**{part.name: given.pop(part.name) for part in fields(group)})


def result_of(job: Job, given: dict[str, Any], *, quiet: bool) -> Any:
    """What the function of a job gives for what its command was given; progress is shown unless it must be quiet."""

    def confirm(question: str) -> bool:
        if quiet or not (sys.stdin.isatty() and sys.stderr.isatty()):
            return True
        output.let_interrupts_end_waiting()
        return typer.confirm(question, err=True)

    positional, options = values_from(job, given)
    with steps(quiet=quiet) as step:
        calls = {"step": step, "confirm": confirm}
        return job.function(*positional, **options, **{name: call for name, call in calls.items() if job.takes(name)})


def values_from(job: Job, given: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The positional values and the options for the function, checked; what was not given is left to its defaults."""
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
    check_values(job.function, options)
    if any(str(one).startswith("run:") for one in positional):
        from demur.store.runs import with_runs

        return with_runs(positional, options, job)
    if any(map(_is_study, (*positional, *options.values()))) and not job.name.startswith("study "):
        from demur.study.export import with_studies

        return with_studies(positional, options, job)
    return positional, options


def _is_study(value: Any) -> bool:
    """Whether this names the folder of a Wizard-of-Oz study; `demur.study` is not loaded to tell."""
    return isinstance(value, str | Path) and os.path.isfile(os.path.join(value, "study.toml"))


def group_of(app: typer.Typer, words: str, about: str | None = None) -> typer.Typer:
    """The group of a name, which the app has or gets, with its help; a group in a group has two words."""
    outer, _, name = words.rpartition(" ")
    if outer:
        app = group_of(app, outer)
    for one in app.registered_groups:
        if one.name == name and one.typer_instance is not None:
            return one.typer_instance
    group = typer.Typer(help=about, no_args_is_help=True)
    app.add_typer(group, name=name, rich_help_panel=PANEL_OF.get(words))
    return group


def _declare(parameter: Parameter, flags: Mapping[str, str]) -> inspect.Parameter:
    """How the command line declares a parameter of a job; its help names the flags of others."""
    option = parameter.option
    if isinstance(option, Argument):
        kind: Any = list[str] if parameter.several else str
        argument = typer.Argument(help=option.help, metavar=parameter.flag)
        if option.optional:
            return _keyword(parameter.name, kind | None, argument, None)
        return _keyword(parameter.name, kind, argument, REQUIRED)
    is_read = option.parse is None and (parameter.choices or parameter.type in TYPES)
    kind = parameter.type if is_read else str
    about = _option((parameter.flag, option.short), help_of(option, flags), option.metavar)
    if option.repeat:
        return _keyword(parameter.name, list[kind] | None, about, None)
    if parameter.default is REQUIRED:
        return _keyword(parameter.name, kind, about, REQUIRED)
    default = parameter.text if kind is str else parameter.default
    return _keyword(parameter.name, kind if default is not None else kind | None, about, default)


def flags_of(job: Job) -> dict[str, str]:
    """The flag of each option of a job."""
    return {one.name: one.flag.partition("/")[0] for one in job.parameters}


def help_of(option: Option, flags: Mapping[str, str]) -> str:
    """The help of an option, with its range, and with the flags of other options that it names."""
    return flagged(f"{option.help} Must be {option.range}." if option.range else option.help, flags)


def _option(flags: Iterable[str | None], text: str, metavar: str | None) -> Any:
    return typer.Option(*filter(None, flags), help=text, metavar=metavar)


def _keyword(name: str, kind: Any, about: Any, default: Any) -> inspect.Parameter:
    annotation = Annotated[kind, about]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _split_outputs(outputs: OutputOptions, job: Job) -> tuple[list[tuple[Path, str]], OutputOptions]:
    """The files of endings that only this job writes, and the options without them; refuse what cannot be written."""
    extra: list[tuple[Path, str]] = []
    usual: list[Path] = []
    for path in outputs.output:
        ends = [path.name.lower().endswith(ending) if ending else not path.suffix for ending, _ in job.endings]
        write = next((write for (_, write), fits in zip(job.endings, ends, strict=True) if fits), None)
        if write is None:
            usual.append(path)
        else:
            extra.append((path, write))
    if job.check:
        load(job.check)([path for path, _ in extra])
    else:
        for path, _ in extra:
            _refuse_path(path)
    rest = replace(outputs, output=usual)
    output.check(rest, [ending for ending, _ in job.endings])
    if not job.figures:
        output.refuse_figures(rest)
    return extra, rest


def _refuse_path(path: Path, flag: str = "-o", ending: str = "") -> None:
    if not path.name.lower().endswith(ending):
        raise UsageError(f"{flag} {path}: the extension must be {ending}")
    if path.is_dir():
        raise UsageError(f"{flag} {path}: this is a directory; name a file in it")
