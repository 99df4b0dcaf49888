"""Options that jobs of several questions share, and the texts that some of them are typed as."""

from dataclasses import dataclass
from typing import Annotated, Any

from demur.core.jobs import Option, are_pairs


def pair_of(text: str) -> tuple[str, str]:
    """The two sides of NAME=VALUE."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise ValueError(text)
    return name.strip(), value


def rate_or_range(text: str) -> float | tuple[float, float]:
    """A rate, as 0.2 or 20%, or a range of rates, as 0.1:0.3."""
    start, colon, stop = text.partition(":")
    return (_rate(start), _rate(stop)) if colon else _rate(start)


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


@dataclass(frozen=True)
class Sampling:
    """How uncertainty is computed."""

    level: float = 0.95
    replicates: int = 1000
    seed: int = 0

    @property
    def note(self) -> str:
        """What a result says of it."""
        return f"seed {self.seed}, {self.replicates:,} replicates"


Level = Annotated[float, Option("Confidence level of intervals and bands.", above=0, below=1)]
Replicates = Annotated[int, Option("Bootstrap replicates.", minimum=50)]
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
