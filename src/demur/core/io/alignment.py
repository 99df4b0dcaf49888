"""Rows of several systems brought side by side by the ids of their inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.show.numbers import INPUTS, Wording
from demur.errors import DataError

Places = NDArray[np.uint32]
Hashes = NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False)
class Ids:
    """Ids in rising order, each known by two hashes; no two ids of any data are expected to share both.

    >>> ids = Ids.of(pl.Series(["b", "a", "c"]))
    >>> ids.places(pl.Series(["c", "b", "a"])).tolist(), ids.places(pl.Series(["c", "b", "d"]))
    ([2, 1, 0], None)
    """

    first: Hashes
    second: Hashes
    order: Places
    """Places of the ids by rising hash."""

    @classmethod
    def of(cls, column: pl.Series) -> Ids:
        """The ids of a column, none of which is there twice."""
        ids = column.sort()
        hashes = hashed(ids, 0)
        return cls(hashes, hashed(ids, 1), _order(hashes))

    def __len__(self) -> int:
        return self.first.size

    def places(self, column: pl.Series) -> Places | None:
        """Where in the column each id stands; None where the column has not these very ids, or lacks any.

        Should two ids share the first hash, which can be, it is not known which of them stands where: None as well.
        """
        if column.len() != len(self) or column.null_count():
            return None
        hashes = hashed(column, 0)
        places = np.empty_like(self.order)
        places[self.order] = _order(hashes)
        same = np.array_equal(hashes[places], self.first) and np.array_equal(hashed(column, 1)[places], self.second)
        return places if same else None


def gathered(frame: pl.DataFrame, places: Places) -> pl.DataFrame:
    """The rows at these places; out of one piece they are taken several times as fast as out of many."""
    return frame.rechunk().select(pl.all().gather(places))


def hashed(column: pl.Series, seed: int = 0) -> Hashes:
    """The hash of each value of a column."""
    return cast(Hashes, column.hash(seed).to_numpy())


def _order(hashes: Hashes) -> Places:
    return cast(Places, pl.Series(hashes).arg_sort().to_numpy())


def common_ids(columns: Iterable[pl.Series]) -> pl.Series:
    """The ids that all columns have, in the order of the first.

    >>> common_ids([pl.Series(["a", "b", "c"]), pl.Series(["c", "x", "a"])]).to_list()
    ['a', 'c']
    """
    tables = [column.alias("id").to_frame() for column in columns]
    return reduce(lambda one, two: one.join(two, on="id", how="semi", maintain_order="left"), tables).to_series()


@dataclass(frozen=True, slots=True)
class Alignment:
    """Where the ids that systems share stand in the rows of each, in one order for all."""

    places: Mapping[str, Places]
    dropped: Mapping[str, int]
    """How many rows of each system have no counterpart."""
    what: Wording = INPUTS

    @property
    def note(self) -> str:
        """Says on how many ids systems were paired, and what was left out."""
        return paired_note(next(iter(self.places.values())).size, self.dropped, self.what)


def align(columns: Mapping[str, pl.Series], *, matched: bool = False, what: Wording = INPUTS) -> Alignment:
    """Brings the rows of systems together by their ids, none of which is null or there twice in a system.

    All systems must have the same ids; with `matched` those that all of them have are kept, in rising order.

    >>> align({"a": pl.Series(["x", "y"]), "b": pl.Series(["z", "y"])}, matched=True).places["b"].tolist()
    [1]
    """
    ids = Ids.of(next(iter(columns.values())))
    same = {name: found for name, column in columns.items() if (found := ids.places(column)) is not None}
    if len(same) == len(columns):
        return Alignment(same, dict.fromkeys(columns, 0), what)
    common = common_ids(columns.values())
    dropped = {name: len(column) - len(common) for name, column in columns.items()}
    if any(dropped.values()) and (not matched or common.is_empty()):
        raise _unmatched(columns, common, dropped, what)
    kept = {name: column.is_in(common.implode()).arg_true() for name, column in columns.items()}
    places = {name: kept[name].gather(column.gather(kept[name]).arg_sort()) for name, column in columns.items()}
    return Alignment({name: cast(Places, of.to_numpy()) for name, of in places.items()}, dropped, what)


def _unmatched(
    columns: Mapping[str, pl.Series], common: pl.Series, dropped: Mapping[str, int], what: Wording
) -> DataError:
    sizes = ", ".join(f"{name} has {len(column):,}" for name, column in columns.items())
    lonely = []
    for name in [name for name in columns if dropped[name]][:3]:
        alone = columns[name].filter(~columns[name].is_in(common.implode())).sort()
        listed = ", ".join(f'"{one}"' for one in alone.head(3))
        more = f" and {len(alone) - 3:,} more" if len(alone) > 3 else ""
        lonely.append(f"without counterpart in {name}: {listed}{more}")
    ids = "ids" if what == INPUTS else what.many
    sizes = f"the systems do not have the same {ids}: {sizes}, common to all are {len(common):,}"
    fix = "`matched` compares the common ones; `unpaired` compares all without pairing"
    fix = "no id is shared: compare with `unpaired`" if common.is_empty() else fix
    return DataError(f"{sizes}; {'; '.join(lonely)}", fix=fix)


def paired_note(common: int, dropped: Mapping[str, int], what: Wording = INPUTS) -> str:
    """Says on how many ids systems were paired, and what was left out."""
    left_out = ", ".join(f"{count:,} of {name}" for name, count in dropped.items() if count)
    note = f"paired by id on {what.with_count(common)}"
    return f"{note}; left out without a counterpart: {left_out}" if left_out else note


def unpaired_note(unnamed: Iterable[str], asked: bool) -> str:
    """Says why systems are not paired."""
    if asked:
        return "compared as unpaired, as asked"
    return f"compared as unpaired: there are no ids in {', '.join(unnamed)}"


def counterparts(own: Hashes, other: Hashes) -> NDArray[np.int32]:
    """Where each of our hashes stands among the others; -1 where it does not.

    >>> counterparts(np.array([7, 3, 5], np.uint64), np.array([5, 7], np.uint64)).tolist()
    [1, -1, 0]
    """
    ours, theirs = np.argsort(own), np.argsort(other)
    found = np.searchsorted(other[theirs], own[ours])
    found[found == other.size] = 0
    same = other[theirs][found] == own[ours]
    places = np.full(own.size, -1, dtype=np.int32)
    places[ours[same]] = theirs[found[same]]
    return places
