"""Rows of a run looked up by what became of them, fast enough to follow a hand on a slider.

In memory are arrays of numbers and flags, one cell a row, in the order of the file: by falling confidence, then rows
without one. Texts stay on the disk until a page of them is shown.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, Literal

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars.exceptions import PolarsError

from demur.data.lines import exactly
from demur.data.selection import JUDGED, unknown_column
from demur.data.tables import ROW
from demur.errors import DataError
from demur.store.facts import BULKY
from demur.store.records import Run

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
        return {outcome: self._count(self.mask(outcome, threshold), chosen) for outcome in OUTCOMES}

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
        return {column: self._counted(column) for column in self.run.about.get("slices", ())}

    def _counted(self, column: str) -> list[tuple[str, int]]:
        counts = self._scan().select(pl.col(column).alias("value")).drop_nulls().group_by("value").len()
        return self._collected(counts.sort("len", "value", descending=[True, False])).rows()

    def mask(self, outcome: Outcome, threshold: float | None) -> Mask:
        """Of every row, in the order of the file, whether it has this outcome."""
        if outcome == "all":
            return np.ones(len(self), dtype=bool)
        if outcome == "failed":
            return self.failed
        returned = self._returned(threshold)
        masks = {
            "wrong": lambda: returned & ~self.right,
            "right": lambda: returned & self.right,
            "missed": lambda: ~returned & self.right,
            "withheld": lambda: ~returned & ~self.failed,
            "scope": lambda: returned & self.out_of_scope,
        }
        if outcome not in masks:
            raise DataError(f"an outcome is one of {', '.join(OUTCOMES)}", got=outcome)
        return np.asarray(masks[outcome]())

    def _returned(self, threshold: float | None) -> Mask:
        if threshold is None:
            return self.answered
        return np.asarray(self.answered & (self.confidence >= threshold))  # NaN, no confidence, is below all

    @staticmethod
    def _count(mask: Mask, chosen: Mask | None) -> int:
        return int(np.count_nonzero(mask if chosen is None else mask & chosen))

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
            chosen.append(self._remembered(("", search.casefold()), lambda: self._holding(search)))
        return np.logical_and.reduce(chosen) if chosen else None

    def _equal(self, column: str, value: str) -> Mask:
        if column not in self.run.columns:
            raise unknown_column(column, self.run.columns, f'run "{self.run.name}"')
        if column in self.run.about.get("slices", ()):
            codes, values = self._coded(column)
            place = values.index(value) if value in values else len(values)
            return np.asarray(codes == place)
        return self._remembered((column, value), lambda: self._scanned(_is(column, value)))

    def _holding(self, text: str) -> Mask:
        column = "input" if "input" in self.run.columns else "id"
        return self._scanned(pl.col(column).str.to_lowercase().str.contains(text.lower(), literal=True))

    def _scanned(self, test: pl.Expr) -> Mask:
        found = self._collected(self._scan().select(test.fill_null(value=False).alias("found")))
        return found["found"].to_numpy()

    def _remembered(self, key: tuple[str, str], make: Any) -> Mask:
        with self._alone:
            if key in self._masks:
                self._masks.move_to_end(key)
                return self._masks[key]
        mask: Mask = make()
        with self._alone:
            self._masks[key] = mask
            while len(self._masks) > MASKS_KEPT:
                self._masks.popitem(last=False)
        return mask

    def _coded(self, column: str) -> tuple[NDArray[np.int32], list[str]]:
        """For each row the place of its value among those of the column, -1 where it has none."""
        if column not in self._codes:
            texts = self._read([column])[column]
            values = texts.drop_nulls().unique().sort().to_list()
            places = texts.replace_strict(values, list(range(len(values))), default=-1, return_dtype=pl.Int32)
            self._codes[column] = places.to_numpy(), values
        return self._codes[column]

    @cached_property
    def _slices(self) -> list[str]:
        return [name for name in self.run.columns if name not in (*JUDGED, *BULKY)]

    def at(self, places: NDArray[np.int64]) -> list[dict[str, Any]]:
        """The rows at these places of the file, in the order given."""
        if not len(places):
            return []
        ordered = np.sort(places)
        parts = [self._scan().slice(start, stop - start) for start, stop in stretches(ordered)]
        read = np.concatenate([np.arange(start, stop) for start, stop in stretches(ordered)])
        frame = self._collected(pl.concat(parts))
        return [self._as_shown(row) for row in frame[np.searchsorted(read, places)].iter_rows(named=True)]

    def _as_shown(self, row: dict[str, Any]) -> dict[str, Any]:
        slices = {name: row.pop(name) for name in self._slices}
        return {"row": row.pop(ROW), **row, "input": row.get("input"), "nbest": _listed(row), "slices": slices}

    def _read(self, columns: list[str]) -> pl.DataFrame:
        return self._collected(self._scan().select(columns))

    def _scan(self) -> pl.LazyFrame:
        return pl.scan_parquet(exactly(self.path))

    def _collected(self, rows: pl.LazyFrame) -> pl.DataFrame:
        try:
            return rows.collect()
        except (PolarsError, OSError) as error:
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


def _is(column: str, value: str) -> pl.Expr:
    return pl.col(column).list.contains(value) if column == "target" else pl.col(column).cast(pl.String) == value


def _listed(row: dict[str, Any]) -> Any:
    """What else was thought of, as a list; as it is where it is none."""
    text = row.get("nbest")
    try:
        return None if text is None else msgspec.json.decode(text)
    except msgspec.MsgspecError:
        return text
