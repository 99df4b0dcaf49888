"""Options of jobs on answers that may be withheld, each declared once."""

from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any, Literal

from demur.core.jobs import Argument, Option
from demur.core.options import is_rate_or_range, is_rising_range, name_columns, range_text, rate_or_range

if TYPE_CHECKING:
    from demur.returns.table import Reading

OUT_OF_SCOPE = ("oos", "out_of_scope")
WITHHELD = ("nlu_fallback",)
EVERYWHERE = (0.0, 1.0)

EngineChoice = Literal["auto", "memory", "polars", "duckdb", "spark"]
"""Where rows can be counted: in memory, in an engine of the registry, or where it suits the data."""


Period = Literal["1d", "1mo"]
"""How long the parts are that a lake is counted in: days, or months."""

SortKey = Literal[
    "rank", "augrc", "difference", "error_at_nonreturn", "nonreturn_at_error", "forced_error", "ranking_skill", "system"
]
"""What a leaderboard can be sorted by."""


def labels(given: tuple[str, ...]) -> tuple[str, ...]:
    """The labels that are not empty: an empty one says that there are none."""
    return tuple(label for label in given if label)


def key_columns(given: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """The columns of a key, written with commas or given one by one.

    >>> key_columns("question, option"), key_columns(("a,b",)), key_columns(None)
    (('question', 'option'), ('a,b',), ())
    """
    names = given.split(",") if isinstance(given, str) else given or ()
    return tuple(name.strip() for name in names)


LOGS = (
    "Logs of answers: .jsonl .csv .tsv .parquet .arrow, also .gz and .zst; globs; run:NAME, a stored run; "
    "FILE:COLUMN, a file by a column of confidences; - for standard input; "
    "with score, compare, threshold and classes also folders and URLs of Parquet."
)
Logs = Annotated[Any, Argument(LOGS, metavar="FILES")]
Columns = Annotated[dict[str, str] | None, name_columns("target=my_column")]
_LABELS: dict[str, Any] = {"metavar": "LABEL", "repeat": True, "collect": labels}
_OUT_OF_SCOPE = "Label that means out of scope: as target no answer is right, as prediction it withholds. Repeatable; "
OutOfScope = Annotated[
    tuple[str, ...], Option(f'{_OUT_OF_SCOPE}replaces oos and out_of_scope. "" for none.', **_LABELS)
]
NoLabels = Annotated[tuple[str, ...], Option(f"{_OUT_OF_SCOPE}by default every label counts as one.", **_LABELS)]
Withheld = Annotated[
    tuple[str, ...],
    Option('Prediction that means "I withhold". Repeatable; replaces nlu_fallback. "" for none.', **_LABELS),
]
PairBy = Annotated[
    str | tuple[str, ...] | None,
    Option(
        "Pair inputs by these columns in place of id, such as question,option; row: by the place of a row, in logs of "
        "one length and the same targets.",
        metavar="COLUMNS",
        parse=str,
        python='columns, or "row"',
    ),
]
ConfidenceColumns = Annotated[
    tuple[str, ...] | dict[str, str],
    Option(
        "Compare the answers as ranked by this column of confidences. Repeatable; FILE:COLUMN does it for one file.",
        metavar="COLUMN",
        repeat=True,
        python="columns, or a dict of names to columns",
        check=lambda value: not isinstance(value, str),
    ),
]
MissingConfidence = Annotated[
    Literal["error", "lowest"], Option("An answer without confidence: refuse it, or rank it lowest.")
]
EngineName = Annotated[
    EngineChoice,
    Option(
        "What counts the rows. memory reads files, each a system; polars, duckdb and spark count Parquet "
        "where it is, all parts one log. auto: polars for folders, URLs and over 5 million rows, otherwise memory."
    ),
]
SparkMaster = Annotated[str | None, Option("With --engine spark: the cluster; otherwise this machine.", metavar="URL")]
ExactUpTo = Annotated[
    int,
    Option(
        "With an engine: rows up to which every distinct confidence is kept. Beyond, close ones may be "
        "joined, and the result says within what it is exact.",
        minimum=1,
        metavar="ROWS",
    ),
]
OnlySystems = Annotated[
    tuple[str, ...] | None, Option("Compare only these; the first is a. Repeatable.", flag="--system", repeat=True)
]
Margin = Annotated[
    float | None,
    Option("Difference in mean error rate that does not matter, such as 0.01: tests for equivalence.", metavar="M"),
]
Baseline = Annotated[
    str | None, Option("System that others are compared with: a name, or best. Default: the first.", metavar="NAME")
]
EveryPair = Annotated[
    bool, Option("Of more than five systems: compare and show every two, not the baseline only.", flag="--pairs")
]
JoinById = Annotated[
    bool,
    Option(
        "With an engine: join answers by id inside it for exact tests and standard errors; done anyway for up to five "
        "systems of a million rows."
    ),
]
CheckIds = Annotated[
    bool, Option("With an engine: refuse repeated ids too; takes a pass and, in Polars, memory for all ids.")
]
Name = Annotated[str | None, Option("Name of the system, where no column names it.", metavar="NAME")]
System = Annotated[str | None, Option("Which system, where the files hold several.")]
RecalibrationMethod = Annotated[
    Literal["best", "isotonic", "platt", "beta", "temperature", "histogram"],
    Option("Kind of map; best: the one with the lowest Brier score out of fold."),
]
Folds = Annotated[int, Option("Parts that the answers, or dialogues, are dealt into.", minimum=2, maximum=100)]
AtNonreturn = Annotated[
    float | tuple[float, float],
    Option(
        "Non-return rate of interest, or a range such as 0.1:0.3.",
        metavar="X",
        parse=rate_or_range,
        takes="a rate such as 0.2, or a range such as 0.1:0.3",
        python="a rate such as 0.2, or a range such as (0.1, 0.3)",
        check=is_rate_or_range,
        write=range_text,
    ),
]
_FINITE: dict[str, Any] = {"metavar": "T", "takes": "a number", "check": lambda one: one is None or isfinite(one)}
AtThreshold = Annotated[
    float | None,
    Option("Threshold at which QALD-1 precision and recall are given; by default every answer is returned.", **_FINITE),
]
AtError = Annotated[float, Option("Error rate for which the needed non-return rate is given.", metavar="E")]
Aurc = Annotated[
    Literal["mean", "trapezoid"],
    Option("Convention of the AURC and e-AURC: mean over random orders of ties, or trapezoid between cutoffs."),
]
_REGION: dict[str, Any] = {
    "metavar": "FROM:TO",
    "parse": rate_or_range,
    "takes": "a rising range of rates such as 0.1:0.3",
    "python": "a rising range of rates such as (0.1, 0.3)",
    "check": is_rising_range,
    "write": range_text,
}
BandRegion = Annotated[tuple[float, float], Option("Range over which the simultaneous band holds.", **_REGION)]
ComparedRegion = Annotated[tuple[float, float], Option("Range of non-return rates to compare over.", **_REGION)]
Curve = Annotated[bool, Option("Put the curve and its bands into the JSON too.")]
CostRatio = Annotated[
    float | None,
    Option("What a non-return costs over what an error costs: 0 <= R <= 1; 1 returns every answer.", metavar="R"),
]
ErrorLimit = Annotated[float | None, Option("Most errors, as a share of all inputs.", metavar="E")]
RiskLimit = Annotated[float | None, Option("Most errors, as a share of the answers returned.", metavar="E")]
LeastAccuracy = Annotated[
    float | None, Option("Least right answers, as a share of those returned: 1 - max risk.", metavar="A")
]
NonreturnLimit = Annotated[float | None, Option("Most non-returns, as a share of all inputs.", metavar="X")]
PromiseChance = Annotated[float | None, Option("With a limit: chance that the promise fails on new data.", metavar="D")]
TieChoice = Annotated[
    Literal["together", "randomise"],
    Option("Answers of one confidence: return all or none, or, with a limit, each with a probability."),
]
ByGroup = Annotated[
    str | None,
    Option("Show what it does to each value of this column; with --delta promise it for each.", metavar="COLUMN"),
]


def reading_of(
    columns: dict[str, str] | None = None,
    where: tuple[tuple[str, str], ...] = (),
    out_of_scope: tuple[str, ...] = OUT_OF_SCOPE,
    withheld: tuple[str, ...] = WITHHELD,
    missing_confidence: Literal["error", "lowest"] = "error",
    keep: tuple[str, ...] = (),
) -> "Reading":
    """How to read logs by the options of a job."""
    from demur.returns.table import Reading

    return Reading(
        columns=dict(columns or {}),
        where=tuple(where),
        out_of_scope=tuple(out_of_scope),
        withheld=tuple(withheld),
        missing_confidence=missing_confidence,
        keep=tuple(keep),
    )
