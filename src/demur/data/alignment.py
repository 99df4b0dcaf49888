"""Where ids stand in columns of them, told from their hashes: far quicker, and in less room, than to compare texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

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

        Should two ids share the first hash, which can be, it is not told which of them stands where: None as well.
        """
        if column.len() != len(self) or column.null_count():
            return None
        hashes = hashed(column, 0)
        found = np.empty_like(self.order)
        found[self.order] = _order(hashes)
        same = np.array_equal(hashes[found], self.first) and np.array_equal(hashed(column, 1)[found], self.second)
        return found if same else None


def gathered(frame: pl.DataFrame, places: Places) -> pl.DataFrame:
    """The rows at these places; out of one piece they are taken several times as fast as out of many."""
    return frame.rechunk().select(pl.all().gather(places))


def sorted_places(column: pl.Series) -> Places:
    """Places of the values of a column in rising order."""
    return cast(Places, column.arg_sort().to_numpy())


def _order(hashes: Hashes) -> Places:
    return sorted_places(pl.Series(hashes))


def hashed(column: pl.Series, seed: int = 0) -> Hashes:
    """The hash of each value of a column."""
    return cast(Hashes, column.hash(seed).to_numpy())
