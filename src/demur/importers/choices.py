"""What a user chooses of a log of another tool: the options that every job takes which reads logs."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal, ParamSpec, TypeVar

from demur.core.jobs import Option

DecimalMark = Literal["guess", ",", "."]
"""What stands before the decimals of numbers that are texts."""

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class ImportChoices:
    """What to take of a log where there is a choice; None leaves it to the importer, which asks where it cannot tell.

    `columns` are the columns that the user mapped, so that nobody is asked for what is mapped.
    """

    scorer: str | None = None
    metric: str | None = None
    filter: str | None = None
    rows: str | None = None
    gold: str | Path | None = None
    on: str | None = None
    withheld_like: tuple[str, ...] = ()
    confidence_scale: Literal["guess", "percent", "as-is"] = "guess"
    decimal: DecimalMark = "guess"
    columns: Mapping[str, str] = field(default_factory=dict)

    @property
    def confidence(self) -> str | None:
        """The confidence that was asked for."""
        return self.columns.get("confidence")


_current: ContextVar[ImportChoices] = ContextVar("import_choices", default=ImportChoices())  # noqa: B039


def current_choices() -> ImportChoices:
    """The choices in force."""
    return _current.get()


@contextmanager
def choosing(choices: ImportChoices) -> Iterator[None]:
    """Has these choices in force for whatever is read inside."""
    before = _current.set(choices)
    try:
        yield
    finally:
        _current.reset(before)


ConfidenceScale = Annotated[
    Literal["guess", "percent", "as-is"],
    Option(
        "Scale of confidences: percent divides by 100, as-is takes them as they stand, guess reads a column that "
        "reaches from 0 to 100 as percent."
    ),
]


def _options(
    *,
    confidence: Annotated[
        str | None,
        Option("The confidence to take, where a log has several; the import note names them.", metavar="NAME"),
    ] = None,
    scorer: Annotated[
        str | None, Option("Of a log with several scorers: the one that judges answers.", metavar="NAME")
    ] = None,
    metric: Annotated[
        str | None, Option("Of a log with several metrics: the one that judges answers.", metavar="NAME")
    ] = None,
    filter: Annotated[  # noqa: A002
        str | None, Option("Of lm-evaluation-harness: the filter whose answers are read.", metavar="NAME")
    ] = None,
    rows: Annotated[
        str | None, Option("Where the rows are inside a JSON document, such as results.results.", metavar="PATH")
    ] = None,
    gold: Annotated[Path | None, Option("A file with the targets, joined by `on`, or by id.", metavar="FILE")] = None,
    on: Annotated[
        str | None, Option("The column that `gold` is joined by, in both files; row: by the place.", metavar="COLUMN")
    ] = None,
    withheld_like: Annotated[
        tuple[str, ...],
        Option(
            "A regular expression: predictions that match it are withheld, whatever their case; refusals: a list of "
            "common refusals. Repeatable.",
            metavar="PATTERN",
            repeat=True,
        ),
    ] = (),
    confidence_scale: ConfidenceScale = "guess",
    decimal: Annotated[
        DecimalMark,
        Option("Mark before the decimals of confidences and weights in text; guess: a comma where all cells have one."),
    ] = "guess",
) -> None:
    """The options, declared once."""


OPTIONS = tuple(inspect.signature(_options).parameters.values())


def reads_logs(function: Callable[P, R]) -> Callable[P, R]:
    """Let a job take the options of reading logs of other tools, but for those whose names it uses itself."""
    own = inspect.signature(function)
    kept = list(own.parameters.values())
    added = [one for one in OPTIONS if one.name not in own.parameters]
    if "missing_confidence" not in own.parameters:  # no job on answers
        added = [one for one in added if one.name not in ("confidence", "confidence_scale", "decimal")]
    place = next((k for k, one in enumerate(kept) if one.name in ("seed", "level")), len(kept))
    names = {one.name for one in added}

    @wraps(function)
    def reading(*arguments: P.args, **values: P.kwargs) -> R:
        given: dict[str, Any] = {name: values.pop(name) for name in tuple(values) if name in names}
        if (confidence := given.pop("confidence", None)) is not None:
            columns: Any = values.get("columns") or {}
            values["columns"] = {**columns, "confidence": confidence}
        with choosing(replace(current_choices(), **given)):
            return function(*arguments, **values)

    reading.__signature__ = own.replace(parameters=[*kept[:place], *added, *kept[place:]])  # type: ignore[attr-defined]
    return reading
