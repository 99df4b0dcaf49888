"""Options that several commands share, and how their text becomes values."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import typer

from demur.core.jobs import with_flags
from demur.core.options import rate_or_range as parse_rate
from demur.core.show.results import path_text
from demur.errors import DemurError, Interrupted, UsageError

if TYPE_CHECKING:
    from demur.returns.table import Reading, Responses

Files = Annotated[
    list[str],
    typer.Argument(
        help="Logs of answers: .jsonl .csv .tsv .parquet .arrow, also .gz and .zst; globs; - for standard input; "
        "with score, threshold and classes also folders and URLs of Parquet."
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class InputOptions:
    """How tables are read."""

    map: Annotated[
        list[str],
        typer.Option("--map", help="Name a column: --map target=my_column. Repeatable.", metavar="NAME=COLUMN"),
    ] = field(default_factory=list)
    where: Annotated[
        list[str],
        typer.Option("--where", help="Keep rows whose column has this value. Repeatable.", metavar="COLUMN=VALUE"),
    ] = field(default_factory=list)
    out_of_scope: Annotated[
        list[str],
        typer.Option(
            "--out-of-scope",
            help='Target that means "no answer is right". Repeatable; replaces oos and out_of_scope. "" for none.',
            metavar="LABEL",
        ),
    ] = field(default_factory=list)
    withheld: Annotated[
        list[str],
        typer.Option(
            "--withheld",
            help='Prediction that means "I withhold". Repeatable; replaces nlu_fallback. "" for none.',
            metavar="LABEL",
        ),
    ] = field(default_factory=list)
    missing_confidence: Annotated[
        Literal["error", "lowest"],
        typer.Option("--missing-confidence", help="An answer without confidence: refuse it, or rank it lowest."),
    ] = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputOptions:
    """Where results go."""

    json: Annotated[bool, typer.Option("--json", help="One JSON document on standard output, nothing else.")] = False
    output: Annotated[
        list[Path],
        typer.Option(
            "-o",
            "--output",
            help="Write to FILE: .html .svg .png .pdf .json .csv .md .parquet; score, merge and follow also .sweep. "
            "Repeatable.",
            metavar="FILE",
        ),
    ] = field(default_factory=list)
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only the verdict; no tables, notes or progress.")] = (
        False
    )
    fail_if: Annotated[
        list[str],
        typer.Option(
            "--fail-if", help='Exit with 1 if this holds: "error_at_nonreturn > 0.05". Repeatable.', metavar="CONDITION"
        ),
    ] = field(default_factory=list)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingOptions:
    """How uncertainty is computed."""

    level: Annotated[float, typer.Option("--level", help="Confidence level of intervals and bands.")] = 0.95
    replicates: Annotated[int, typer.Option("--replicates", min=50, help="Bootstrap replicates.")] = 1000
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of all randomness.")] = 0


GROUPS = (InputOptions, OutputOptions, SamplingOptions)
"""Every group of options."""


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take option groups: a parameter annotated with a group becomes the options that are its fields."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        kind = hints[parameter.name]
        if kind in GROUPS:
            groups[parameter.name] = kind
            parameters += parameters_of(kind)
        else:
            parameters.append(parameter.replace(annotation=kind, kind=inspect.Parameter.KEYWORD_ONLY))

    def wired(**given: Any) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{part.name: given.pop(part.name) for part in fields(kind)})
        try:
            command(**given)
        except KeyboardInterrupt:
            raise Interrupted("interrupted; no output was left half-written") from None
        except DemurError as fault:
            raise with_flags(fault, {one.name: f"--{one.name.replace('_', '-')}" for one in parameters}) from None

    wired.__name__, wired.__doc__ = command.__name__, command.__doc__
    wired.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wired.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return wired


def parameters_of(group: Any) -> list[inspect.Parameter]:
    """The fields of a group as parameters of a command."""
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            part.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=_default_of(part),
            annotation=hints[part.name],
        )
        for part in fields(group)
    ]


def _default_of(part: Field[Any]) -> Any:
    """The default of an option; an option without one must be given."""
    if part.default_factory is not MISSING:
        return part.default_factory()
    return inspect.Parameter.empty if part.default is MISSING else part.default


def reading_of(options: InputOptions, *, keep: tuple[str, ...] = (), plain_labels: bool = False) -> Reading:
    """The reading that the options ask for; with `plain_labels` no target is taken to mean out of scope."""
    from demur.returns.table import Reading

    default = Reading()
    out_of_scope = () if plain_labels else default.out_of_scope
    return Reading(
        columns=dict(pair_of(text, "--map", "NAME=COLUMN") for text in options.map),
        where=tuple(pair_of(text, "--where", "COLUMN=VALUE") for text in options.where),
        out_of_scope=_labels(options.out_of_scope, out_of_scope),
        withheld=_labels(options.withheld, default.withheld),
        missing_confidence=options.missing_confidence,
        keep=keep,
    )


def read(
    files: list[str], options: InputOptions, *, keep: tuple[str, ...] = (), plain_labels: bool = False
) -> Responses:
    """The judged responses of the files."""
    from demur.returns.table import read_responses

    return read_responses(*files, reading=reading_of(options, keep=keep, plain_labels=plain_labels))


def rate_or_range(text: str) -> float | tuple[float, float]:
    """A rate, as 0.2 or 20%, or a range of rates, as 0.1:0.3."""
    try:
        return parse_rate(text)
    except ValueError:
        raise UsageError(f'a rate is a number such as 0.2, or a range such as 0.1:0.3; got "{text}"') from None


def pair_of(text: str, option: str, form: str) -> tuple[str, str]:
    """The two sides of what an option takes, such as NAME=COLUMN."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise UsageError(f'{option} takes {form}; got "{text}"')
    return path_text(name.strip()), path_text(value)


def _labels(given: list[str], default: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(path_text(label) for label in given if label) if given else default
