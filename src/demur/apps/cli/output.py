"""Delivers a result: terminal, progress, JSON on standard output, and files in the format of their extension."""

from __future__ import annotations

import difflib
import inspect
import operator
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, field, fields
from io import BytesIO
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from demur.core.jobs import with_flags
from demur.core.show.results import Step, path_text, plain, silent
from demur.core.show.safe import csv_text, document_text, terminal_line
from demur.errors import UsageError

if TYPE_CHECKING:
    from demur.core.show.presentation import Presentation


PATIENCE = 1.0
"""Seconds of work before anything is shown."""

PICTURES = (".svg", ".png", ".pdf")
FORMATS = (".html", *PICTURES, ".json", ".csv", ".md", ".tex", ".parquet")

SWEEP = ".sweep"
"""The ending of totals that can be merged; only commands that count a log write them."""

UNBOUNDED = 10_000
"""Width of tables that go into a file or a pipe, where nothing sets one."""

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_CONDITION = re.compile(r"\s*([\w.]+)\s*(>=|<=|>|<)\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(%?)\s*")
_CLAIMS = r"significantly\s+(?:worse|better)|not\s+(?:non-inferior|equivalent)"
_PROMISE = re.compile(r"\s*promise\s+is\s+(broken|not\s+shown\s+to\s+hold)\s*")
_VERDICT = re.compile(rf"\s*(.+?)\s+is\s+({_CLAIMS})\s*")


def gate_option(condition: str) -> Any:
    """The option that takes gates, with an example of one."""
    holds = f'Exit with 1 if this holds of the result: "{condition}". Repeatable.'
    return typer.Option("--fail-if", help=holds, metavar="CONDITION")


def output_option(own: Sequence[str] = ()) -> Any:
    """The option that names files to write; `own` are endings that only this command writes."""
    endings = dict.fromkeys((*FORMATS, *own))
    listed = " ".join(filter(None, endings)) + (", or a folder" if "" in endings else "")
    return typer.Option("-o", "--output", help=f"Write to FILE: {listed}. Repeatable.", metavar="FILE")


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputOptions:
    """Where results go."""

    json: Annotated[bool, typer.Option("--json", help="One JSON document on standard output, nothing else.")] = False
    output: Annotated[list[Path], output_option()] = field(default_factory=list)
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only the verdict; no tables, notes or progress.")] = (
        False
    )
    fail_if: Annotated[list[str], gate_option("NAME > NUMBER")] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureOptions:
    """Which figures go into picture files, and how they look."""

    figure: Annotated[
        list[str],
        typer.Option(
            "--figure",
            help="Write this figure to .svg, .png or .pdf instead of the first; all for every one. Repeatable: of "
            "several each gets a file of its own, FILE-NAME.",
            metavar="NAME",
        ),
    ] = field(default_factory=list)
    list_figures: Annotated[bool, typer.Option("--list-figures", help="List the figures of the result by name.")] = (
        False
    )
    width: Annotated[
        str | None,
        typer.Option("--width", help="Width of picture files, such as 3.3in, 84mm or 240pt.", metavar="WIDTH"),
    ] = None
    font_size: Annotated[
        float | None,
        typer.Option("--font-size", help="Points of the type in picture files, at least 6; with --width 8."),
    ] = None
    no_title: Annotated[bool, typer.Option("--no-title", help="Picture files without title and subtitle.")] = False
    grey: Annotated[
        bool, typer.Option("--grey", help="Picture files in grey: dashes and markers tell systems apart.")
    ] = False

    @property
    def given(self) -> bool:
        """Whether any of them asks for something."""
        return self != AS_THEY_COME


AS_THEY_COME = FigureOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOptions:
    """Where rows go."""

    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="Write the rows to FILE: .jsonl, .jsonl.gz or .jsonl.zst; by default to standard output.",
            metavar="FILE",
        ),
    ] = None
    json: Annotated[
        bool,
        typer.Option("--json", help="One JSON document about the import on standard output; needs -o for the rows."),
    ] = False
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No notes or progress.")] = False


def parameters_of(group: Any) -> list[inspect.Parameter]:
    """The fields of a group of options as parameters of a command."""
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            part.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=part.default if part.default_factory is MISSING else part.default_factory(),
            annotation=hints[part.name],
        )
        for part in fields(group)
    ]


@contextmanager
def steps(*, quiet: bool) -> Iterator[Step]:
    """A function to call with (what, done, of how many) as work goes on."""
    if quiet or not sys.stderr.isatty():
        yield silent
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task("starting", total=None)
    waiting = Timer(PATIENCE, bar.start)
    waiting.daemon = True
    waiting.start()
    try:
        yield lambda what, done, total: bar.update(task, description=what, completed=done, total=total)
    finally:
        waiting.cancel()
        bar.stop()


def let_interrupts_end_waiting() -> None:
    """Have Ctrl-C end a wait for the keyboard: Polars, once loaded, has the system go on reading after it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def check(options: OutputOptions, own: Sequence[str] = ()) -> None:
    """Refuse what cannot be delivered, before any work is done; `own` are endings that only this command writes."""
    for path in options.output:
        if path.suffix.lower() not in FORMATS:
            known = " ".join(dict.fromkeys(filter(None, (*own, *FORMATS))))
            also = "" if own else f" (score, merge and follow also write {SWEEP})"
            also = ", or none, for a folder" if "" in own else also
            raise UsageError(f'-o {path}: the extension must be one of {known}{also}; got "{path.suffix}"')
        if path.is_dir():
            raise UsageError(f"-o {path}: this is a directory; name a file in it")
    check_syntax(options.fail_if)


def refuse_figures(options: OutputOptions) -> None:
    """Refuse figures of a result that has none, before any work is done."""
    for path in options.output:
        if path.suffix.lower() in PICTURES:
            raise UsageError(f"-o {path}: this result has no figure; write it as .json, .csv, .md, .parquet or .html")


def refuse_undeliverable(presentation: Presentation, options: OutputOptions) -> None:
    """Refuse gates and figures that a result has not, before anything is written."""
    failures(options.fail_if, presentation.document)
    if not presentation.figures:
        refuse_figures(options)


def check_figures(options: FigureOptions, paths: Sequence[Path]) -> None:
    """Refuse a look that cannot be had, and one that no file is written in, before any work is done."""
    if not options.given:
        return
    from demur.core.show.papers import FigureLook

    FigureLook.of(options.width, font_size=options.font_size)
    if not options.list_figures and not any(path.suffix.lower() in PICTURES for path in paths):
        raise UsageError("--figure, --width, --font-size, --no-title and --grey go with -o FILE.svg, .png or .pdf")


def list_figures(presentation: Presentation, *, as_document: bool) -> None:
    """Print the names of all figures, with what each shows."""
    from demur.core.show.charts import spec_of
    from demur.core.show.pictures import titles

    shown = {name: titles(spec_of(draw()))[0] for name, draw in presentation.drawings().items()}
    if as_document:
        typer.echo(as_json({"figures": [{"name": name, "title": title} for name, title in shown.items()]}))
        return
    widest = max(map(len, shown), default=0)
    for name, title in shown.items():
        typer.echo(terminal_line(f"{name:<{widest}}  {title}"))


def deliver(presentation: Presentation, options: OutputOptions, figures: FigureOptions = AS_THEY_COME) -> None:
    """Write the files, show the result, and exit with 1 if a gate does not hold."""
    broken = failures(options.fail_if, presentation.document)
    files = write_all(presentation, options.output, figures)
    if options.json:
        typer.echo(as_json({**presentation.document, **_notes_and_warnings(presentation)}))
    else:
        _show(presentation, options, files)
    _exit_if(broken)


def print_json(document: dict[str, Any], options: OutputOptions) -> None:
    """Print plain values as JSON, and exit with 1 if a gate does not hold."""
    broken = failures(options.fail_if, document)
    typer.echo(as_json(document))
    _exit_if(broken)


def _exit_if(broken: list[str]) -> None:
    for failure in broken:
        print_aside(f"gate: {failure}")
    if broken:
        raise typer.Exit(1)


def print_aside(line: str) -> None:
    """Print a line on standard error, safe whatever names it holds."""
    typer.echo(terminal_line(line), err=True)


def write_all(presentation: Presentation, paths: list[Path], figures: FigureOptions = AS_THEY_COME) -> list[Path]:
    """Write the result in the format of each path's extension, all of it after everything is rendered; the files."""
    from demur.core.io.writing import write_whole

    contents: list[tuple[Path, str | bytes]] = []
    for path in paths:
        if figures.given and path.suffix.lower() in PICTURES:
            contents += _pictures(presentation, path, figures)
        else:
            contents.append((path, render(presentation, path.suffix.lower())))
    for path, content in contents:
        write_whole(path, content)
    return [path for path, _ in contents]


def _pictures(presentation: Presentation, path: Path, options: FigureOptions) -> list[tuple[Path, str | bytes]]:
    """The figures asked for, each with its file: that of the path where it is one, otherwise one named after it."""
    from demur.core.show.page import figure_file
    from demur.core.show.papers import FigureLook

    look = FigureLook.of(options.width, font_size=options.font_size, title=not options.no_title, grey=options.grey)
    chosen = presentation.chosen(options.figure)
    if len(chosen) == 1:
        return [(path, figure_file(draw, path, look)) for draw in chosen.values()]
    contents: list[tuple[Path, str | bytes]] = []
    faults: list[str] = []
    for name, draw in chosen.items():
        file = path.with_stem(f"{path.stem}-{name.replace(':', '-')}")
        try:
            contents.append((file, figure_file(draw, path, look)))
        except UsageError as fault:
            faults.append(f"{name}: {fault}")
    by_name = any(name.lower() != "all" for name in options.figure)
    if faults and (by_name or not contents):
        raise UsageError(faults[0])
    for one in faults:
        print_aside(f"left out {with_flags(UsageError(one), {'width': '--width', 'font_size': '--font-size'})}")
    return contents


def as_json(document: dict[str, Any], *, indent: int | None = 2) -> str:
    """The document as strict JSON: the number of its format first, no NaN, no Infinity."""
    return document_text(plain(document), indent=indent)


def render(presentation: Presentation, suffix: str) -> str | bytes:
    """The result as the content of a file with this extension; charts are loaded only for what shows them."""
    texts: dict[str, Callable[[], str]] = {
        ".json": lambda: as_json({**presentation.document, **_notes_and_warnings(presentation)}) + "\n",
        ".md": presentation.markdown,
        ".csv": lambda: csv_text(presentation.data()),
    }
    if suffix in texts:
        return texts[suffix]()
    if suffix == ".parquet":
        buffer = BytesIO()
        presentation.data().write_parquet(buffer)
        return buffer.getvalue()
    if suffix == ".tex":
        from demur.core.show.presentation import latex_of

        return latex_of(presentation)
    from demur.core.show import page

    if suffix == ".html":
        return page.presentation_page(presentation)
    if not presentation.figures:
        raise UsageError(f"this result has no figure for {suffix}; write it as .json, .csv, .md, .parquet or .html")
    return page.FORMATS[suffix](presentation.main_figure())


def _notes_and_warnings(presentation: Presentation) -> dict[str, Any]:
    return {"notes": list(presentation.notes), "warnings": list(presentation.warnings)}


def _show(presentation: Presentation, options: OutputOptions, files: Sequence[Path]) -> None:
    from rich.console import Console

    from demur.core.show import terminal

    free = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    console = Console(soft_wrap=not sys.stdout.isatty(), highlight=False, width=UNBOUNDED if free else None)
    terminal.show(presentation, console, tables=not options.quiet)
    if options.quiet:
        return
    aside = Console(stderr=True, soft_wrap=not sys.stderr.isatty(), highlight=False)
    for warning in presentation.warnings:
        aside.print(terminal_line(f"warning: {warning}"), style="yellow", markup=False)
    for note in presentation.notes:
        aside.print(terminal_line(f"note: {note}"), style="dim", markup=False)
    for path in files:
        aside.print(terminal_line(f"wrote {path_text(path)}"), style="dim", markup=False)


@dataclass(frozen=True, slots=True)
class Subject:
    """Something a gate is asked of: its name and its part of the document."""

    name: str
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class GateResult:
    """A condition asked of one subject; the failure is a sentence where it holds, and None where the gate is passed."""

    condition: str
    subject: str
    failure: str | None

    def to_dict(self) -> dict[str, Any]:
        """The gate as a report has it."""
        passed = self.failure is None
        return {"condition": self.condition, "subject": self.subject, "passed": passed, "failure": self.failure}


def failures(conditions: list[str], document: Mapping[str, Any]) -> list[str]:
    """Sentences about the conditions that hold in the document; none if every gate is passed.

    >>> failures(["augrc > 0.1"], {"systems": [{"system": "guide", "measures": {"augrc": {"value": 0.2}}}]})
    ['guide: augrc > 0.1 holds: it is 0.2']
    """
    gates = (gate for condition in conditions for gate in _gates_of(condition, document))
    return [gate.failure for gate in gates if gate.failure is not None]


def gate_results(conditions: list[str], documents: Sequence[Mapping[str, Any]]) -> list[GateResult]:
    """Every gate, passed or not: each condition is asked of the first document that knows what it names.

    >>> one = {"systems": [{"system": "guide", "measures": {"augrc": {"value": 0.2}}}]}
    >>> [gate.failure for gate in gate_results(["augrc > 0.5"], [one])]
    [None]
    """
    results: list[GateResult] = []
    for condition in conditions:
        fault = UsageError(f'"{condition}": there is nothing here that a gate could be asked of')
        for place, document in enumerate(documents):
            try:
                results += _gates_of(condition, document)
                break
            except UsageError as unknown:
                fault = unknown if place == 0 else fault
        else:
            raise fault
    return results


def check_syntax(conditions: list[str]) -> None:
    """Refuse a condition that cannot be read, before any work is done."""
    for condition in conditions:
        if not any(pattern.fullmatch(condition) for pattern in (_CONDITION, _PROMISE, _VERDICT)):
            raise UsageError(
                f'--fail-if takes "NAME > NUMBER" (also <, >=, <=; NAME.low and NAME.high for the interval) or, for '
                f'compare, "b is significantly worse" (or better) and, with --margin, "b is not non-inferior" or "b is '
                f'not equivalent", for drift "promise is broken"; got "{condition}"'
            )


def _gates_of(condition: str, document: Mapping[str, Any]) -> Iterator[GateResult]:
    if promise := _PROMISE.fullmatch(condition):
        yield _promise_gate(condition, promise[1], document)
        return
    verdict = _VERDICT.fullmatch(condition)
    if verdict:
        yield from _verdict_gates(condition, verdict[1], verdict[2], document)
        return
    match = _CONDITION.fullmatch(condition)
    assert match is not None
    name, limit = match[1], float(match[3]) / (100 if match[4] else 1)
    for subject in _subjects(document, name):
        value, failure = _value_of(subject, name), None
        if _is_silent(subject) and name.partition(".")[0] not in SAID_OF_SILENCE:
            failure = f"{subject.name} answers nothing, so the gate {condition} cannot be passed"
        elif value is None:
            failure = f"{subject.name}: {name} is undefined, so the gate {condition} cannot be passed"
        elif _COMPARE[match[2]](value, limit):
            failure = f"{subject.name}: {condition} holds: it is {value:.6g}"
        yield GateResult(condition, subject.name, failure)


MOST_NAMES, DEEPEST = 60, 2
"""Names of numbers that a message lists, and dots in the longest of them."""

SAID_OF_SILENCE = ("n", "nonreturn_floor")
"""What can be asked of a system that answers nothing; that it makes no errors is no merit."""


def _is_silent(subject: Subject) -> bool:
    floor = subject.values.get("nonreturn_floor")
    return isinstance(floor, Mapping) and floor.get("value") == 1


def _subjects(document: Mapping[str, Any], name: str) -> list[Subject]:
    """What a name is asked of: the pairs of a comparison or, if they know no such name, the systems, or the whole."""
    pairs = [
        Subject(
            f"{pair['a']} against {pair['b']}",
            {**pair, **{f"{key}_difference": one for key, one in pair.get("differences", {}).items()}},
        )
        for pair in document.get("pairs", ())
    ]
    systems = [_system(part) for part in _systems(document, alone=not pairs)]
    whole = [_system(study) for study in _studies(document) or (document,)]
    first = name.partition(".")[0]
    for subjects in (pairs, systems, whole):
        if subjects and first in subjects[0].values:
            return subjects
    known = {key: value for one in (*systems[:1], *pairs[:1]) for key, value in one.values.items()}
    raise _unknown_name(name, known)


def _studies(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The studies that a document is of, where it is of several."""
    studies = document.get("studies", [])
    return studies if isinstance(studies, list) else []


def _systems(document: Mapping[str, Any], *, alone: bool) -> list[Mapping[str, Any]]:
    """The systems of a document, and those of each study in it; without any, the whole where it stands alone."""
    if studies := _studies(document):
        return [part for study in studies for part in _systems(study, alone=False)]
    if "performers" in document:
        return [part for part in document["performers"] if part["role"] == "system"]
    return list(document.get("systems", (document,) if alone else ()))


FLATTENED = ("measures", "intervals")
"""Groups of a result whose numbers a gate may name without the group."""


def _system(part: Mapping[str, Any]) -> Subject:
    name = str(part.get("system", part.get("performer", part.get("study", "result"))))
    name += f" [{part['slice']}]" if "slice" in part else ""
    return Subject(name, {**part, **{key: value for group in FLATTENED for key, value in part.get(group, {}).items()}})


def _value_of(subject: Subject, name: str) -> float | None:
    value: Any = subject.values
    for step in name.split("."):
        if value is None:
            return None
        if not isinstance(value, Mapping) or step not in value:
            raise _unknown_name(name, subject.values)
        value = value[step]
    if isinstance(value, Mapping):
        if "value" not in value:
            raise _unknown_name(name, subject.values)
        value = value["value"]
    if value is not None and not isinstance(value, int | float):
        raise UsageError(f"--fail-if compares numbers; {name} is not one")
    return value


def _unknown_name(name: str, values: Mapping[str, Any]) -> UsageError:
    from demur.core.show.numbers import first_names

    names = (one for one in _numbers(values) if one.partition(".")[0] not in FLATTENED)
    known = sorted(names, key=lambda one: (one.count("."), one))
    if not known:
        return UsageError(f'--fail-if knows no "{name}": this result has no number that a gate could be asked of')
    folded = {one.casefold(): one for one in known}
    near = [folded[one] for one in difflib.get_close_matches(name.casefold(), folded, n=1)]
    hint = f'; did you mean "{near[0]}"?' if near else "."
    return UsageError(f'--fail-if knows no "{name}"{hint} Known: {first_names(known, MOST_NAMES, quote="")}')


def _numbers(values: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """The names of the numbers in plain values, with dots before those of values within values."""
    for key, value in values.items():
        if not re.fullmatch(r"\w+", key):
            continue
        if isinstance(value, Mapping) and "value" not in value:
            yield from _numbers(value, f"{above}{key}.") if above.count(".") < DEEPEST else ()
        elif isinstance(value, Mapping | int | float) and not isinstance(value, bool):
            yield above + key


def _promise_gate(condition: str, claim: str, document: Mapping[str, Any]) -> GateResult:
    """Whether the promise of a threshold is broken or, with the stricter claim, not shown to hold."""
    promise = document.get("promise")
    if not isinstance(promise, Mapping):
        raise UsageError(f'"{condition}" is a gate for drift with a promise: --max-error or --max-nonreturn')
    if claim == "broken":
        failure = "the promise is broken" if promise["verdict"] == claim else None
        if promise["verdict"] == "cannot be checked":
            failure = f"the promise cannot be checked: {promise['why']}"
        return GateResult(condition, "promise", failure)
    failure = f"the promise is not shown to hold: {promise['verdict']}"
    return GateResult(condition, "promise", None if promise["verdict"] == "holds" else failure)


def _verdict_gates(condition: str, name: str, claim: str, document: Mapping[str, Any]) -> Iterator[GateResult]:
    if not all("verdict" in pair for pair in document.get("pairs", [{}])):
        raise UsageError(f'"{condition}" is a gate for compare and nbest --compare; here it takes "NAME > NUMBER"')
    names = {pair[side] for pair in document["pairs"] for side in ("a", "b")}
    if name not in {"a", "b", *names}:
        raise UsageError(f'"{condition}": there is no system "{name}"; there are a, b, {", ".join(sorted(names))}')
    claim = " ".join(claim.split())
    for pair in document["pairs"]:
        for side, other in (("a", "b"), ("b", "a")):
            if name == (pair[side] if name in names else side):
                holds = _claim_holds(claim, pair, side, other, condition)
                failure = f"{pair[side]} is {claim} {'to' if 'not' in claim else 'than'} {pair[other]}"
                yield GateResult(condition, f"{pair['a']} against {pair['b']}", failure if holds else None)


def _claim_holds(claim: str, pair: Mapping[str, Any], side: str, other: str, condition: str) -> bool:
    """Whether a claim about one side of a pair holds: of the overall difference, or the region compared over."""
    if claim.startswith("significantly"):
        return bool(pair["better"] == (side if claim.endswith("better") else other))
    if "equivalence" not in pair:
        raise UsageError(f'"{condition}" needs --margin: the difference that does not matter, such as 0.01')
    p = pair["equivalence"]["p" if claim.endswith("equivalent") else side]
    return not p < 1 - pair["equivalence"]["level"]
