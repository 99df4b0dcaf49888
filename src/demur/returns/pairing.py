"""Rows of several systems brought side by side by their ids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.show.numbers import INPUTS, SUCH_IDS
from demur.errors import DataError
from demur.returns.table import Responses

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


_ORDER = [
    "id",
    "confidence",
    "right",
    "answered",
    "out_of_scope",
    "failed",
    "weight",
    "dialogue",
    "prediction",
]

_UNREAD = ("target", "prediction")
"""Columns that are only looked at to pair the rows."""

_WAYS_OUT = (
    "--matched compares the common ones, --unpaired compares all without pairing; "
    "in Python matched=True or unpaired=True"
)


@dataclass(frozen=True, slots=True)
class Pairing:
    """The rows of each system: when paired, the same ids in the same order, without targets and predictions.

    `note` says how the rows were brought together, `dropped` how many rows of each system have no
    counterpart.
    """

    frames: Mapping[str, pl.DataFrame]
    paired: bool
    note: str
    dropped: Mapping[str, int]


def pair(
    responses: Responses,
    *,
    systems: tuple[str, ...] | None = None,
    matched: bool = False,
    unpaired: bool = False,
) -> Pairing:
    """Brings the responses of two or more systems together by id.

    Ids must be the same in all systems; `matched` keeps those that are. Without ids, or with `unpaired`, each
    system's rows stand on their own. The order of the rows in the files never matters.
    """
    names = tuple(dict.fromkeys(systems if systems is not None else responses.systems))
    if len(names) < 2:
        raise DataError("a comparison needs two systems or more", got=", ".join(names) or "none")
    frames = {name: responses.of(name).frame for name in names}
    unnamed = [name for name, frame in frames.items() if frame["id"].null_count() > 0]
    if unpaired or unnamed:
        frames = {name: _in_canonical_order(frame) for name, frame in frames.items()}
        return Pairing(frames, paired=False, note=unpaired_note(unnamed, unpaired), dropped=dict.fromkeys(names, 0))
    return _paired(frames, matched)


def _in_canonical_order(frame: pl.DataFrame) -> pl.DataFrame:
    if frame["id"].null_count() > 0:
        return frame.sort(_ORDER)
    return frame if frame["id"].is_sorted() else frame.sort("id")


def unpaired_note(unnamed: list[str], asked: bool) -> str:
    """Says why systems are not paired."""
    if asked:
        return "compared as unpaired, as asked"
    return f"compared as unpaired: there are no ids in {', '.join(unnamed)}"


def _paired(frames: dict[str, pl.DataFrame], matched: bool) -> Pairing:
    dropped = dict.fromkeys(frames, 0)
    places = _places(frames)
    if places is None:
        common = _common_ids(frames)
        dropped = {name: frame.height - len(common) for name, frame in frames.items()}
        if any(dropped.values()):
            if not matched or common.is_empty():
                raise _unmatched(frames, common, dropped)
            frames = {name: frame.join(common.to_frame(), on="id", how="semi") for name, frame in frames.items()}
        places = {name: sorted_places(frame["id"]) for name, frame in frames.items()}
    first = next(iter(frames))
    ids = frames[first]["id"].gather(places[first])
    _refuse_other_targets(frames, ids, places)
    side_by_side = {name: _in_order(frame, ids, places[name]) for name, frame in frames.items()}
    return Pairing(side_by_side, paired=True, note=paired_note(len(ids), dropped), dropped=dropped)


def _places(frames: dict[str, pl.DataFrame]) -> dict[str, Places] | None:
    """Where the ids stand in each table, in one order for all; None where the tables have not the same ones."""
    ids: Ids | None = None
    found = {}
    for name, frame in frames.items():
        ids = ids or Ids.of(frame["id"])
        places = ids.places(frame["id"])
        if places is None:
            return None
        found[name] = places
    return found


def _in_order(frame: pl.DataFrame, ids: pl.Series, places: Places) -> pl.DataFrame:
    """The rows at these places, which are those of the ids."""
    return gathered(frame.drop("id", *_UNREAD, strict=False), places).insert_column(0, ids)


def _common_ids(frames: dict[str, pl.DataFrame]) -> pl.Series:
    ids = [frame.select("id") for frame in frames.values()]
    return reduce(lambda left, right: left.join(right, on="id", how="semi"), ids).to_series()


def paired_note(common: int, dropped: Mapping[str, int]) -> str:
    """Says on how many ids systems were paired, and what was left out."""
    left_out = ", ".join(f"{count:,} of {name}" for name, count in dropped.items() if count)
    note = f"paired by id on {INPUTS.told(common)}"
    return f"{note}; left out without a counterpart: {left_out}" if left_out else note


def _unmatched(frames: dict[str, pl.DataFrame], common: pl.Series, dropped: dict[str, int]) -> DataError:
    sizes = ", ".join(f"{name} has {frame.height:,}" for name, frame in frames.items())
    apart = [name for name in frames if dropped[name]][:3]
    alone = "; ".join(f"without counterpart in {name}: {_examples(frames[name], common)}" for name in apart)
    rule = f"the systems do not have the same ids: {sizes}, common to all are {len(common):,}; {alone}"
    if common.is_empty():
        return DataError(rule, fix="no id is shared, so compare them with --unpaired, or unpaired=True")
    return DataError(rule, fix=_WAYS_OUT)


def _examples(frame: pl.DataFrame, common: pl.Series) -> str:
    alone = frame.join(common.to_frame(), on="id", how="anti").sort("id")
    shown = ", ".join(f'"{name}"' for name in alone["id"].head(3))
    return f"{shown} and {alone.height - 3:,} more" if alone.height > 3 else shown


def _refuse_other_targets(frames: dict[str, pl.DataFrame], ids: pl.Series, places: dict[str, Places]) -> None:
    """Refuses an id that has one target here and another there; only those whose hashes differ are looked at."""
    (name, frame), *others = frames.items()
    own = _hashed_targets(frame, places[name])
    for other_name, other_frame in others:
        unlike = np.flatnonzero(own != _hashed_targets(other_frame, places[other_name]))
        both = pl.DataFrame(
            [
                ids.gather(unlike).alias("id"),
                frame["target"].gather(places[name][unlike]),
                other_frame["target"].gather(places[other_name][unlike]).alias("other"),
            ]
        )
        apart = both.filter(pl.col("target").list.sort() != pl.col("other").list.sort())
        if not apart.is_empty():
            row = apart.row(0, named=True)
            rule = (
                f'the id "{row["id"]}" has the target {_shown(row["target"])} in {name} '
                f"but {_shown(row['other'])} in {other_name} ({SUCH_IDS.told(apart.height)} in all)"
            )
            fix = "do the ids mean the same inputs? --unpaired, or unpaired=True, compares without pairing"
            raise DataError(rule, fix=fix)


def _hashed_targets(frame: pl.DataFrame, places: Places) -> Hashes:
    return hashed(frame["target"])[places]


def _shown(target: list[str]) -> str:
    return " or ".join(f'"{label}"' for label in sorted(target)) or "out of scope"
