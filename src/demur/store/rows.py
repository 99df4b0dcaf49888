"""Rows of runs: read again, looked up by what became of them, and paired with those of other runs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from pathlib import Path
from threading import Lock
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.io.columns import DEPLOYED, JUDGED, unknown_column
from demur.core.io.sources import UNREADABLE, exactly, quiet_panics
from demur.core.io.tables import ROW, Hashes, Ids, gathered, hashed, named_column, paired_note, unpaired_note
from demur.core.options import Kind
from demur.errors import DataError
from demur.returns.pairing import Pairing
from demur.store.index import IndexEntry
from demur.store.intake import BULKY
from demur.store.records import DamagedError, Run, decode_cell, read_rows


def refuse_other(run: Run, kind: Kind) -> None:
    """Refuses a run of another kind than is needed."""
    if run.kind != kind:
        raise DataError(f"is a run of {run.kind}, not of {kind}", where=f'"{run.name}"')


def rows_of(path: Path, run: Run, columns: Sequence[str] | None = None, *, ordered: bool = True) -> pl.DataFrame:
    """The rows of a run in the order in which they came, or in any, which is quicker."""
    try:
        return read_rows(path, columns, ordered=ordered)
    except DamagedError as damage:
        raise damaged(run, damage) from None


def damaged(run: Run | IndexEntry, damage: object) -> DataError:
    """The fault of a run whose rows or description cannot be used."""
    return DataError(f'the run "{run.name}" ({run.id}) is damaged: {damage}', fix="add its file again")


Outcome = Literal["wrong", "right", "missed", "withheld", "scope", "failed", "all"]
"""What became of a row at a threshold.

wrong: returned and wrong; right: returned and right; missed: right, and withheld for its confidence; withheld: not
returned, by the threshold or by the system itself; scope: returned though no answer was right; failed: the system
failed. Every row is wrong, right, withheld or failed; scope is a part of wrong, and missed of withheld.
"""

OUTCOMES: tuple[Outcome, ...] = ("wrong", "right", "missed", "withheld", "scope", "failed", "all")
Order = Literal["surest", "least", "nearest"]
Where = Sequence[tuple[str, str]]
Mask = NDArray[np.bool_]

CLOSE = 2048
"""Rows between two that are wanted up to which it is quicker to read on than to begin again."""

MASKS_KEPT = 16
"""Choices of rows by text that are remembered."""


@dataclass(frozen=True, slots=True)
class RowPage:
    """Some of the rows that were asked for, and how many there are in all."""

    total: int
    rows: list[dict[str, Any]]


class RunRows:
    """The rows of one run of answers."""

    def __init__(self, path: Path, run: Run) -> None:
        """Reads the numbers and flags of all rows."""
        self.path = path
        self.run = run
        flags = self._read(["confidence", "right", "answered", "failed", "out_of_scope"])
        self.confidence: NDArray[np.float64] = flags["confidence"].fill_null(np.nan).to_numpy()
        self.right, self.answered, self.failed, self.out_of_scope = (
            flags[name].to_numpy() for name in ("right", "answered", "failed", "out_of_scope")
        )
        self._masks: OrderedDict[tuple[str, str], Mask] = OrderedDict()
        self._codes: dict[str, tuple[NDArray[np.int32], list[str]]] = {}
        self._alone = Lock()

    def __len__(self) -> int:
        return len(self.confidence)

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the arrays take."""
        arrays = [self.confidence, self.right, self.answered, self.failed, self.out_of_scope, *self._masks.values()]
        return sum(array.nbytes for array in arrays) + sum(codes.nbytes for codes, _ in self._codes.values())

    def counts(
        self,
        threshold: float | None = None,
        *,
        low: float | None = None,
        high: float | None = None,
        where: Where = (),
        search: str = "",
    ) -> dict[str, int]:
        """How many rows each outcome has at a threshold, as `page` would give; without one every answer is returned."""
        chosen = self._chosen(low, high, where, search)
        masks = {outcome: self.mask(outcome, threshold) for outcome in OUTCOMES}
        return {name: int(np.count_nonzero(mask if chosen is None else mask & chosen)) for name, mask in masks.items()}

    def page(
        self,
        outcome: Outcome,
        *,
        threshold: float | None = None,
        low: float | None = None,
        high: float | None = None,
        where: Where = (),
        search: str = "",
        among: Mask | None = None,
        offset: int = 0,
        limit: int = 50,
        order: Order = "surest",
    ) -> RowPage:
        """Rows of an outcome, the surest first, the least sure, or those nearest the threshold.

        `low` and `high` keep confidences c with low <= c < high: what is returned at one threshold and not at the
        other. `where` keeps rows whose column has the value, `search` those whose input has the text, in any case;
        `among` says of every row whether it may be shown.
        """
        mask = self.mask(outcome, threshold)
        chosen = self._chosen(low, high, where, search, among)
        places = np.flatnonzero(mask if chosen is None else mask & chosen)
        first = max(0, offset)
        wanted = self._ordered(places, order, threshold, first + max(0, limit))[first:]
        return RowPage(len(places), self.at(wanted))

    def slices(self) -> dict[str, list[tuple[str, int]]]:
        """The values of each column that rows can be sliced by, the most frequent first."""
        return {column: list(values) for column, values in self._sliced.items()}

    @cached_property
    def _sliced(self) -> dict[str, list[tuple[str, int]]]:
        values = {}
        for column in self.run.about.get("slices", ()):
            counts = self._scan().select(named_column(column).alias("value")).drop_nulls().group_by("value").len()
            values[column] = self._collect(counts.sort("len", "value", descending=[True, False])).rows()
        return values

    def mask(self, outcome: Outcome, threshold: float | None) -> Mask:
        """Of every row, in the order of the file, whether it has this outcome."""
        returned = self.answered
        if threshold is not None:
            returned = returned & (self.confidence >= threshold)  # NaN, no confidence, is below all
        masks: dict[str, Callable[[], Mask]] = {
            "wrong": lambda: returned & ~self.right,
            "right": lambda: returned & self.right,
            "missed": lambda: ~returned & self.right,
            "withheld": lambda: ~returned & ~self.failed,
            "scope": lambda: returned & self.out_of_scope,
            "failed": lambda: self.failed,
            "all": lambda: np.ones(len(self), dtype=bool),
        }
        if outcome not in masks:
            raise DataError(f"an outcome is one of {', '.join(OUTCOMES)}", got=outcome)
        return np.asarray(masks[outcome]())

    def _ordered(
        self, places: NDArray[np.int64], order: Order, threshold: float | None, most: int
    ) -> NDArray[np.int64]:
        """The first so many of these places, in an order."""
        if order == "surest" or (order == "nearest" and threshold is None):
            return places[:most]
        confidence = self.confidence[places]
        if order == "least":
            sure = np.count_nonzero(~np.isnan(confidence))
            return np.concatenate([places[:sure][::-1], places[sure:]])[:most]
        with np.errstate(invalid="ignore"):
            distance = np.abs(confidence - np.float64(threshold or 0.0))  # rows without confidence come last
        return places[_smallest(distance, most)]

    def _chosen(
        self, low: float | None, high: float | None, where: Where, search: str, among: Mask | None = None
    ) -> Mask | None:
        chosen = [self._equal(column, value) for column, value in where]
        chosen += [] if low is None else [np.asarray(self.confidence >= low)]
        chosen += [] if high is None else [np.asarray(self.confidence < high)]
        chosen += [] if among is None else [among]
        if search.strip():
            column = pl.col("input" if "input" in self.run.columns else "id").str.to_lowercase()
            has_text = column.str.contains(search.lower(), literal=True)
            chosen.append(self._remembered(("", search.casefold()), has_text))
        return np.logical_and.reduce(chosen) if chosen else None

    def _equal(self, column: str, value: str) -> Mask:
        if column not in self.run.columns:
            raise unknown_column(column, self.run.columns, f'run "{self.run.name}"')
        if column in self.run.about.get("slices", ()):
            codes, values = self._coded(column)
            place = values.index(value) if value in values else len(values)
            return np.asarray(codes == place)
        cell = named_column(column)
        same = cell.list.contains(value) if column == "target" else cell.cast(pl.String) == value
        return self._remembered((column, value), same)

    def _remembered(self, key: tuple[str, str], test: pl.Expr) -> Mask:
        with self._alone:
            if key in self._masks:
                self._masks.move_to_end(key)
                return self._masks[key]
        mask: Mask = self._collect(self._scan().select(test.fill_null(value=False))).to_series().to_numpy()
        with self._alone:
            self._masks[key] = mask
            while len(self._masks) > MASKS_KEPT:
                self._masks.popitem(last=False)
        return mask

    def _coded(self, column: str) -> tuple[NDArray[np.int32], list[str]]:
        """For each row the place of its value among those of the column, -1 where it has none."""
        if column not in self._codes:
            texts = self._read([column])[column].alias("value")
            values = texts.drop_nulls().unique().sort().to_list()
            places = texts.replace_strict(values, list(range(len(values))), default=-1, return_dtype=pl.Int32)
            self._codes[column] = places.to_numpy(), values
        return self._codes[column]

    def at(self, places: NDArray[np.int64]) -> list[dict[str, Any]]:
        """The rows at these places of the file, in the order given."""
        if not len(places):
            return []
        ordered = np.sort(places)
        parts = [self._scan().slice(start, stop - start) for start, stop in stretches(ordered)]
        read = np.concatenate([np.arange(start, stop) for start, stop in stretches(ordered)])
        frame = self._collect(pl.concat(parts))[np.searchsorted(read, places)]
        further = [name for name in self.run.columns if name not in (*JUDGED, *BULKY)]
        rows = []
        for row in frame.iter_rows(named=True):
            slices = {name: row.pop(name) for name in further}
            bulky = {"input": row.get("input"), "nbest": decode_cell(row.get("nbest"))}
            rows.append({"row": row.pop(ROW), **row, **bulky, "slices": slices})
        return rows

    def _read(self, columns: list[str]) -> pl.DataFrame:
        return self._collect(self._scan().select(map(named_column, columns)))

    def _scan(self) -> pl.LazyFrame:
        return pl.scan_parquet(exactly(self.path))

    def _collect(self, rows: pl.LazyFrame) -> pl.DataFrame:
        try:
            with quiet_panics():
                return rows.collect()
        except UNREADABLE as error:
            reason = str(error).split("\n", 1)[0]
            rule = f'the rows of the run "{self.run.name}" ({self.run.id}) cannot be read: {reason}'
            raise DataError(rule, fix="it was removed, or is damaged: add its file again") from None


def stretches(places: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """The parts of a file to read so that all of these places, which rise, are in them.

    >>> list(stretches(np.array([3, 5, 9000, 9001])))
    [(3, 6), (9000, 9002)]
    """
    breaks = np.flatnonzero(np.diff(places) > CLOSE) + 1
    for part in np.split(places, breaks):
        yield int(part[0]), int(part[-1]) + 1


def _smallest(values: NDArray[np.float64], most: int) -> NDArray[np.int64]:
    """The places of the smallest values, equal ones in their order, so that pages neither repeat nor miss any."""
    if 0 < most < len(values):
        last = np.partition(values, most - 1)[most - 1]
        if not np.isnan(last):
            below, equal = np.flatnonzero(values < last), np.flatnonzero(values == last)
            return np.concatenate([below[np.argsort(values[below], kind="stable")], equal])[:most]
    return np.argsort(values, kind="stable")[:most]


NUMBERS = ("confidence", "right", "answered", "failed", "out_of_scope", "weight")
"""What measures read of a row, but for the dialogue that it may belong to."""

Filed = tuple[Run, Path]
"""A run and the file of its rows."""


def numbers_of(run: Run, path: Path, further: Sequence[str] = ()) -> pl.DataFrame:
    """What measures read of a run's rows, and further columns, in any order."""
    dialogues = ("dialogue",) if run.about.get("dialogues") else ()
    deployed = (DEPLOYED,) if DEPLOYED in run.columns else ()
    frame = rows_of(path, run, (*NUMBERS, *dialogues, *deployed, *further), ordered=False).rechunk()
    return frame if dialogues else frame.with_columns(pl.lit(None).alias("dialogue"))


def apart(runs: Sequence[Filed], *, asked: bool) -> Pairing:
    """The rows of runs that are not paired, because that was asked for or some have no ids."""
    unnamed = [run.name for run, _ in runs if not run.about.get("has_ids")]
    frames = {run.name: numbers_of(run, path) for run, path in runs}
    return Pairing(frames, paired=False, note=unpaired_note(unnamed, asked), dropped=dict.fromkeys(frames, 0))


def side_by_side(runs: Sequence[Filed], *, matched: bool = False) -> Pairing | None:
    """The rows of runs as `pair` brings them together, but for the ids themselves.

    None where that needs a closer look: ids are missing, are not the same in all runs (with `matched`, none is common
    to all), are there several times, or have other targets here than there.
    """
    if any(run.about.get("repeats_ids") for run, _ in runs):
        return None
    common: pl.DataFrame | None = None
    if matched:  # the hashes of the ids that all runs have
        first, *others = (_hashes(_column(*one, "id")) for one in runs)
        common = reduce(lambda left, right: left.join(right, on="hash", how="semi"), others, first)
    ids: Ids | None = None
    targets: Hashes | None = None
    frames: dict[str, pl.DataFrame] = {}
    for one in runs:
        column, kept = _column(*one, "id"), None
        if common is not None:
            held = _hashes(column).with_row_index("place").join(common, on="hash", how="semi")
            kept = held["place"].sort().to_numpy()
            column = column.gather(kept)
        ids = Ids.of(column) if ids is None else ids
        found = ids.places(column) if len(column) else None
        if found is None:
            return None
        places = found if kept is None else kept[found]
        here = hashed(_column(*one, "target"))[places]
        targets = here if targets is None else targets
        if not np.array_equal(here, targets):
            return None
        frames[one[0].name] = gathered(numbers_of(*one), places)
    dropped = {run.name: run.n - frames[run.name].height for run, _ in runs}
    return Pairing(frames, paired=True, note=paired_note(0 if ids is None else len(ids), dropped), dropped=dropped)


def _hashes(column: pl.Series) -> pl.DataFrame:
    return pl.DataFrame({"hash": hashed(column)})


def _column(run: Run, path: Path, name: str) -> pl.Series:
    return rows_of(path, run, (name,), ordered=False)[name].rechunk()
