"""Options of jobs on gold standards, each declared once."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from demur.core.jobs import Argument, Option
from demur.core.options import pair_of, range_text, rate_or_range

if TYPE_CHECKING:
    from demur.gold_standard.cost import CostFunction

FitKind = Literal["spline", "logistic", "linear", "polynomial", "isotonic"]
"""The families of curves."""
FitChoice = Literal["auto", "spline", "logistic", "linear", "polynomial", "isotonic"]
XDirection = Literal["harmful", "helpful", "any"]
"""Whether x can only harm, can only help, or either."""
Span = tuple[float, float]


def parse_span(text: str) -> Span:
    """The two ends of a range, as 0.7:0.8 or 70%:80%."""
    span = rate_or_range(text)
    if not isinstance(span, tuple):
        raise ValueError(text)
    return span


def parse_fit(text: str) -> tuple[str, str]:
    """The performer, empty for all others, and the kind of curve of KIND or NAME=KIND."""
    name, _, kind = text.rpartition("=")
    if kind not in get_args(FitChoice):
        raise ValueError(text)
    return name, kind


def collect_fits(pairs: tuple[tuple[str, str], ...]) -> str | dict[str, str]:
    """One kind for all, or kinds by performer."""
    fits = dict(pairs)
    return fits[""] if list(fits) == [""] else fits


def is_fit(value: Any) -> bool:
    """Whether this is a kind of curve, or maps performers to kinds."""
    kinds = [value] if isinstance(value, str) else list(value.values()) if isinstance(value, dict) else [None]
    return all(kind in get_args(FitChoice) for kind in kinds)


def parse_numbers(text: str) -> tuple[int, ...]:
    """Whole numbers, separated by commas."""
    return tuple(int(part) for part in text.split(","))


def write_numbers(numbers: tuple[int, ...]) -> str:
    """Whole numbers as they are typed."""
    return ",".join(map(str, numbers))


Tables = Annotated[
    Any,
    Argument(
        "Tables of trials: performer, role (gold or system), x, y, subject, n, components, study; .csv .jsonl "
        ".parquet ...; - for standard input. Several files are several studies.",
        metavar="TRIALS",
    ),
]
X = Annotated[str | None, Option("The column that makes it harder: word error rate, noise, task size.")]
Y = Annotated[str | None, Option("The column that says how well it went: 0/1, a rate with n, or a score.")]
Gold = Annotated[
    str | tuple[str, ...],
    Option(
        "A performer that is the gold standard, where no column role says so. Repeatable.", metavar="NAME", repeat=True
    ),
]
Upper = Annotated[float | None, Option("The upper bound of a score; 0/1 and rates have 1.", metavar="U")]
Lower = Annotated[float, Option("The lower bound of a score.", metavar="L")]
TrialColumns = Annotated[
    dict[str, str] | None,
    Option(
        "Name a column: --map subject=caller. Repeatable.",
        flag="--map",
        metavar="NAME=COLUMN",
        parse=pair_of,
        takes="NAME=COLUMN",
        repeat=True,
        collect=dict,
    ),
]
_KINDS = ", ".join(get_args(FitChoice))
Fits = Annotated[
    FitChoice | dict[str, FitChoice],
    Option(
        "Kind of curve: auto, spline, logistic, linear, polynomial or isotonic; A=linear for one performer. "
        "Repeatable.",
        metavar="KIND",
        parse=parse_fit,
        takes=f"one of {_KINDS}, or NAME=KIND",
        python=f"one of {_KINDS}, or a dict from performers to these",
        check=is_fit,
        repeat=True,
        collect=collect_fits,
    ),
]
Fit = Annotated[FitChoice, Option("Kind of curve of all performers.")]
Degree = Annotated[int, Option("Of polynomials.", minimum=1, maximum=9)]
Direction = Annotated[XDirection, Option("Whether x can only harm, can only help, or either.")]
_SPAN: dict[str, Any] = {
    "metavar": "A:B",
    "parse": parse_span,
    "takes": "two numbers, such as 0.7:0.8",
    "write": range_text,
}
Within = Annotated[
    Span | None, Option("Read only this range of x; default all that every curve covers.", flag="--range", **_SPAN)
]
Components = Annotated[bool, Option("Separate combinations of components, and say what each contributes.")]
Cost = Annotated[
    "str | Path | CostFunction | list[Span] | None",
    Option(
        'What levels of performance are worth: a table with performance and amount, or "1000 * p ** 2".',
        metavar="FILE|EXPRESSION",
    ),
]
Gain = Annotated[Span | None, Option("With --cost: only where a system performs between these, as 0.7:0.8.", **_SPAN)]
Checks = Annotated[
    bool, Option("Compare wizards with each other, and look at convergence.", flag="--checks/--no-checks")
]
_NUMBERS: dict[str, Any] = {
    "metavar": "N,N,...",
    "parse": parse_numbers,
    "write": write_numbers,
}
Subjects = Annotated[
    tuple[int, ...],
    Option(
        "Numbers of wizards (and callers) to try.",
        takes="whole numbers of at least 2, separated by commas",
        python="whole numbers of at least 2",
        check=lambda numbers: len(numbers) > 0 and min(numbers) >= 2,
        **_NUMBERS,
    ),
]
TrialsEach = Annotated[
    tuple[int, ...],
    Option(
        "Numbers of trials to try, per subject and performer.",
        flag="--trials",
        takes="whole numbers of at least 1, separated by commas",
        python="whole numbers of at least 1",
        check=lambda numbers: len(numbers) > 0 and min(numbers) >= 1,
        **_NUMBERS,
    ),
]
HalfWidth = Annotated[float, Option("How far off curves may be on average, as a share of the metric.", above=0)]
Studies = Annotated[int, Option("Studies to simulate for each design.", minimum=20)]
