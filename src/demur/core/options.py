"""Options that jobs of several questions share, and the texts that some of them are typed as."""

from dataclasses import dataclass
from numbers import Real
from typing import Annotated, Any, Literal, get_args

from demur.core.jobs import Argument, Option, are_pairs

Kind = Literal["responses", "nbest", "dialogues", "trials"]
"""What a row of a table is: an answer, an N-best list, a dialogue, or a trial of a study with a gold standard."""

KINDS: tuple[Kind, ...] = get_args(Kind)


def pair_of(text: str) -> tuple[str, str]:
    """The two sides of NAME=VALUE."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise ValueError(text)
    return name.strip(), value


def name_columns(example: str) -> Option:
    """The option that names columns, with an example in its help."""
    return Option(
        f"Name a column: --map {example}. Repeatable.",
        flag="--map",
        metavar="NAME=COLUMN",
        parse=pair_of,
        takes="NAME=COLUMN",
        repeat=True,
        collect=dict,
    )


def file_and_kind(text: str) -> tuple[str, Kind]:
    """The two sides of FILE=KIND; no file for a kind alone. The last sign of equality counts, as names may hold some.

    >>> file_and_kind("a=b.csv=trials"), file_and_kind("nbest")
    (('a=b.csv', 'trials'), ('', 'nbest'))
    """
    file, _, kind = text.rpartition("=")
    if kind not in KINDS:
        raise ValueError(text)
    return file, kind


def rate_or_range(text: str) -> float | tuple[float, float]:
    """A rate, as 0.2 or 20%, or a range of rates, as 0.1:0.3."""
    start, colon, stop = text.partition(":")
    return (_rate(start), _rate(stop)) if colon else _rate(start)


def is_rate_or_range(value: Any) -> bool:
    """Whether a value is one number or two.

    >>> is_rate_or_range(0.2), is_rate_or_range((0.1, 0.3)), is_rate_or_range("20%")
    (True, True, False)
    """
    several = value if isinstance(value, tuple) and len(value) == 2 else (value,)
    return all(isinstance(one, Real) and not isinstance(one, bool) for one in several)


def range_text(value: float | tuple[float, float]) -> str:
    """A rate or a range of rates as it is typed.

    >>> range_text(0.2), range_text((0, 1))
    ('0.2', '0:1')
    """
    return ":".join(f"{one:g}" for one in value) if isinstance(value, tuple) else f"{value:g}"


def is_rising_range(value: Any) -> bool:
    """Whether this is a range of rates that rises."""
    return isinstance(value, tuple | list) and len(value) == 2 and 0 <= value[0] < value[1] <= 1


def _rate(part: str) -> float:
    return float(part.rstrip("% ")) / (100 if part.strip().endswith("%") else 1)


@dataclass(frozen=True, slots=True)
class Sampling:
    """How uncertainty is computed; the base of all settings that say so among other things."""

    level: float = 0.95
    replicates: int = 1000
    seed: int = 0

    @property
    def note(self) -> str:
        """What a result says of it."""
        return f"seed {self.seed}, {self.replicates:,} replicates"

    @property
    def sampling(self) -> dict[str, Any]:
        """The three, by name."""
        return {"level": self.level, "replicates": self.replicates, "seed": self.seed}


Level = Annotated[float, Option("Confidence level of intervals and bands.", above=0, below=1)]
MOST_REPLICATES = 100_000
"""Far more than intervals need, and few enough to fit into memory."""

Replicates = Annotated[int, Option("Bootstrap replicates.", minimum=50, maximum=MOST_REPLICATES)]
Seed = Annotated[int, Option("Seed of all randomness.", minimum=0)]
Where = Annotated[
    tuple[tuple[str, str], ...],
    Option(
        "Keep rows whose column has this value. Repeatable.",
        metavar="COLUMN=VALUE",
        parse=pair_of,
        takes="COLUMN=VALUE",
        python='(column, value) pairs, such as (("split", "test"),)',
        repeat=True,
        check=are_pairs,
    ),
]
By = Annotated[str | None, Option("Slice by this column as well.", metavar="COLUMN")]
Tables = Annotated[
    Any,
    Argument(
        "Tables of any kinds, each recognised by its columns: answers, N-best lists, dialogues, trials; "
        ".jsonl .csv .tsv .parquet .arrow, also .gz and .zst; globs; folders of DSTC; run:NAME, a stored run; "
        "- for standard input.",
        metavar="FILES",
    ),
]
TrialX = Annotated[str | None, Option("Of trials: the column that makes it harder.")]
TrialY = Annotated[str | None, Option("Of trials: the column that says how well it went.")]
OutcomeColumn = Annotated[str | None, Option("Of dialogues: the column that says how they ended.", metavar="COLUMN")]
NoSeed = Annotated[int, Option("Taken as by every command; nothing here is random.")]

ROW_ENDINGS = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".json", ".csv", ".tsv", ".parquet", ".arrow")
"""What the names of files end in to which rows are written."""
