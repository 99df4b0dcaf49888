"""Counts put in words."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple


class Wording(NamedTuple):
    """What is told of one thing and of several."""

    one: str
    many: str

    def about(self, label: str) -> "Wording":
        """Gives the wording with a label put in.

        >>> Wording('target "{}" is odd', 'targets "{}" are odd').about("x").one
        'target "x" is odd'
        """
        return Wording(self.one.format(label), self.many.format(label))

    def told(self, count: int) -> str:
        """Gives the count with the words that go with it.

        >>> Wording("row failed", "rows failed").told(1200)
        '1,200 rows failed'
        """
        return f"{count:,} {self.one if count == 1 else self.many}"


INPUTS = Wording("input", "inputs")
ROWS = Wording("row", "rows")
SUCH_IDS = Wording("such id", "such ids")
SUCH_ROWS = Wording("such row", "such rows")


def counted(counts: Iterable[Counter[Wording]]) -> list[str]:
    """Gives what was counted, summed over all counters, one sentence for each thing that happened."""
    total = sum(counts, start=Counter())
    return [wording.told(count) for wording, count in total.items() if count]
