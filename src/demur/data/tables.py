"""A table as read: its rows, its column names, and where each row stands."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

import polars as pl

ROW = "demur:row"
"""The column that numbers the rows of a table as they stood in its source, from 0."""


def _all_names(names: Collection[str]) -> Collection[str]:
    return names


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a reader of a table needs of it.

    `candidates` is given the names seen so far and gives the columns to read, among them names that may first
    appear in a later row. `numeric` are columns expected to hold numbers. `every_name` asks for the names in
    all rows, not only those of the first thousand.
    """

    candidates: Callable[[Collection[str]], Collection[str]] = _all_names
    numeric: frozenset[str] = frozenset()
    every_name: bool = True

    def among(self, names: Collection[str]) -> list[str]:
        """Gives the wanted columns that are there; the first of all when none is, to count the rows."""
        wanted = [name for name in dict.fromkeys(self.candidates(names)) if name in names]
        return wanted or list(names)[:1]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows as read, with a name for the source and a function that says where a row stands in it."""

    frame: pl.DataFrame
    columns: tuple[str, ...]
    name: str
    place: Callable[[int], str]


def numbered(frame: pl.DataFrame, *, columns: Collection[str], name: str, place: Callable[[int], str]) -> Table:
    """Gives the table of a frame whose rows stand in the order of the source."""
    return Table(frame.with_row_index(ROW), tuple(columns), name, place)
