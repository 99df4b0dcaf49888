"""Batches of rows become a table of N-best lists: acts as sets of items, confidences checked, equal acts merged."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, compress
from math import isnan
from typing import Any, Literal

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.data.acts import ITEMISERS, parse_acts
from demur.data.item_sets import Interned
from demur.data.nbest_rows import Layout, RowSource
from demur.data.tables import ROW
from demur.errors import DataError, UsageError

Array = NDArray[np.float64]
Items = Literal["thomson", "dstc"]
Heard = tuple[str, Any, Any]
"""An utterance as a recogniser heard it: where it stands, its list of sentences, its confusion network."""
Hypothesise = Callable[[Sequence[Heard]], Sequence[Sequence[tuple[str, float]]]]
"""Makes acts with confidences of what was heard."""

TOLERANCE = 1e-3
"""How far over 1 the confidences of a list may sum by rounding."""

SOURCE = "demur:source"
"""The column that names the source of a row while a table is put together."""

FEW = 16
"""Hypotheses up to which a list is short."""

GO_ON = "--normalise, or normalise=True, scales lists that sum to over 1"


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Some utterances: one row of `frame` each, and their lists one after the other."""

    frame: pl.DataFrame
    reference: NDArray[np.int64]
    count: NDArray[np.int64]
    act: NDArray[np.int64]
    confidence: Array


@dataclass(slots=True)
class Builder:
    """Takes rows in batches and keeps only numbers of them."""

    items: Items = "thomson"
    normalise: bool = False
    where: tuple[tuple[str, str], ...] = ()
    hypothesise: Hypothesise | None = None
    parts: list[Part] = field(default_factory=list)
    normalised: int = 0
    merged: int = 0
    interned: Interned = field(init=False)

    def __post_init__(self) -> None:
        if self.items not in ITEMISERS:
            raise UsageError(f'items is one of {", ".join(ITEMISERS)}; got "{self.items}"')
        self.interned = Interned(self._read_items)

    def _read_items(self, written: Hashable) -> frozenset[str]:
        listed = _as_list(written) if isinstance(written, str) else written
        if isinstance(listed, tuple):
            return frozenset(listed)
        if written is None:
            raise DataError(
                "a hypothesis has neither act nor items", fix='"act": "" is the hypothesis that nothing was meant'
            )
        return ITEMISERS[self.items](parse_acts(str(written)))

    def add(self, source: RowSource, system: str) -> int:
        """Takes all rows of a source, which stand for this system where they name none; gives how many were kept."""
        kept = 0
        for batch in source.batches:
            rows = self._asked_for(_Rows(batch.rows, batch.numbers, source, system))
            if rows.rows:
                self.parts.append(self._part(rows))
                kept += len(rows.rows)
        return kept

    def _asked_for(self, rows: _Rows) -> _Rows:
        for column, value in self.where:
            name = _field(column, rows.source.layout)
            unsaid = rows.system if name == "system" else None
            chosen = [(as_text(getattr(row, name)) or unsaid) == value for row in rows.rows]
            kept, numbers = (list(compress(part, chosen)) for part in (rows.rows, rows.numbers))
            rows = replace(rows, rows=kept, numbers=numbers)
        return rows

    def _part(self, rows: _Rows) -> Part:
        written, confidence, count = self._lists(rows)
        reference = self._numbers(rows.references(), rows, lambda place: place)
        owner = np.repeat(np.arange(count.size), count)
        act = self._numbers(written, rows, lambda place: int(owner[place]))
        self._check(confidence, count, owner, rows)
        confidence = self._scaled(confidence, count, owner)
        act, confidence, count = self._without_repeats(act, confidence, count, owner)
        return Part(rows.frame(), reference, count, act, confidence)

    def _lists(self, rows: _Rows) -> tuple[list[Hashable], Array, NDArray[np.int64]]:
        """Everything hypothesised, one list after the other: what is written, how sure, and how many in each list."""
        if self.hypothesise is not None:
            lists = self.hypothesise(rows.heard())
            flat = list(chain.from_iterable(lists))
            scored = np.array([confidence for _, confidence in flat], dtype=np.float64)
            return [act for act, _ in flat], scored, np.array([len(one) for one in lists], dtype=np.int64)
        given = [row.hypotheses for row in rows.rows]
        if None in given:
            where = rows.named(given.index(None))
            raise DataError("has no hypotheses", where=where, fix="give a list, [] where nothing was understood")
        count = np.fromiter(map(len, given), dtype=np.int64, count=len(given))
        hypotheses = list(chain.from_iterable(given))
        written = [one.act if one.items is None else one.items for one in hypotheses]
        try:
            confidence = np.array([one.confidence for one in hypotheses], dtype=np.float64)
        except TypeError:
            confidence = np.array([np.nan if one.confidence is None else one.confidence for one in hypotheses])
        return rows.as_items(written), confidence, count

    def _numbers(self, written: list[Hashable], rows: _Rows, owner: Callable[[int], int]) -> NDArray[np.int64]:
        try:
            return self.interned.numbers(written)
        except DataError:
            pass
        for place, one in enumerate(written):
            try:
                self.interned[one]
            except DataError as fault:
                raise DataError(str(fault), where=f"{rows.named(owner(place))}:") from None
        raise AssertionError("the fault did not come back")

    def _check(self, confidence: Array, count: NDArray[np.int64], owner: NDArray[np.int64], rows: _Rows) -> None:
        with np.errstate(invalid="ignore"):
            bad = ~(confidence >= 0) | np.isinf(confidence)
        if bad.any():
            place = int(np.argmax(bad))
            got = confidence[place]
            shown = "no number" if np.isnan(got) else f"{got:g}"
            raise DataError(
                f"a confidence must be a number of at least 0; got {shown}",
                where=f"{rows.named(int(owner[place]))}:",
                fix='each hypothesis needs "confidence": P, a probability' if np.isnan(got) else "mend the log",
            )
        if self.normalise:
            return
        over = np.flatnonzero(sums_of(confidence, count) > 1 + TOLERANCE)
        if over.size:
            raise _over(confidence, owner, over, rows)

    def _scaled(self, confidence: Array, count: NDArray[np.int64], owner: NDArray[np.int64]) -> Array:
        if not self.normalise:
            return confidence
        total = sums_of(confidence, count)
        self.normalised += int((total > 1 + TOLERANCE).sum())
        return np.asarray(confidence / np.maximum(total, 1.0)[owner])

    def _without_repeats(
        self, act: NDArray[np.int64], confidence: Array, count: NDArray[np.int64], owner: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], Array, NDArray[np.int64]]:
        """Equal acts of one list as one, where the first of them stood; their confidences add."""
        first = _first_alike(act, owner, int(count.max(initial=0)))
        kept = first == np.arange(first.size)
        if kept.all():
            return act, confidence, count
        self.merged += int((~kept).sum())
        total = np.bincount(first, weights=confidence, minlength=first.size)
        return act[kept], total[kept], np.bincount(owner[kept], minlength=count.size)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of one batch with their numbers in the source."""

    rows: Sequence[Any]
    numbers: Sequence[int]
    source: RowSource
    system: str

    def references(self) -> list[Hashable]:
        """What each row says was meant; a row that does not say is a fault."""
        found = [row.reference for row in self.rows]
        if None in found:
            raise DataError(
                "has no reference",
                where=self.named(found.index(None)),
                fix="give the act that was meant, or [] where nothing was",
            )
        return self.as_items(found)

    def as_items(self, written: list[Hashable]) -> list[Hashable]:
        """Items and acts as they are written, plain labels as the only item there is."""
        if not self.source.layout.labelled:
            return written
        return [((one,) if one else ()) if isinstance(one, str) else one for one in written]

    def heard(self) -> list[Heard]:
        """What the recogniser heard, with the name of the utterance for messages."""
        return [(self._brief(place), row.asr, row.cnet) for place, row in enumerate(self.rows)]

    def _brief(self, place: int) -> str:
        number, row = self.numbers[place], self.rows[place]
        called = f"row {number + 1}" if row.id is None else f'utterance "{as_text(row.id)}"'
        return f"{self.source.name}: {called}"

    def named(self, place: int) -> str:
        """Where a row stands and what it is called."""
        number, row = self.numbers[place], self.rows[place]
        at = self.source.place(number)
        return at if row.id is None else f'{at}: utterance "{as_text(row.id)}"'

    def frame(self) -> pl.DataFrame:
        """One row per utterance, without its lists."""
        system, extras = self.system, enumerate(self.source.layout.extras)
        columns = [
            text_column("id", [row.id for row in self.rows]),
            text_column("system", [system if row.system is None else row.system for row in self.rows]),
            text_column("dialogue", [row.dialogue for row in self.rows]),
            *(text_column(name, [getattr(row, f"extra_{place}") for row in self.rows]) for place, name in extras),
            self._weights(),
            pl.Series(ROW, self.numbers, dtype=pl.Int64),
            pl.Series(SOURCE, [self.source.name]).new_from_index(0, len(self.rows)),
        ]
        return pl.DataFrame(columns)

    def _weights(self) -> pl.Series:
        weights = np.array([1.0 if row.weight is None else row.weight for row in self.rows])
        bad = ~((weights > 0) & np.isfinite(weights))
        if bad.any():
            place = int(np.argmax(bad))
            where = f"{self.named(place)}:"
            raise DataError("a weight must be a number above 0", where=where, got=float(weights[place]))
        return pl.Series("weight", weights)


def text_column(name: str, values: list[Any]) -> pl.Series:
    """Names as text, whatever they were written as."""
    try:
        return pl.Series(name, values, dtype=pl.String)
    except TypeError:  # not all of them are text
        return pl.Series(name, [as_text(value) for value in values], dtype=pl.String)


def as_text(value: Any) -> str | None:
    """A name as text: whole numbers without `.0`, anything nested as JSON, NaN as none."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float) and isnan(value):
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return msgspec.json.encode(value, enc_hook=str).decode().strip('"')


def _as_list(text: str) -> tuple[str, ...] | None:
    """The items that a text spells as a JSON list, as it stands in files that know only text."""
    if not text.lstrip().startswith("["):
        return None
    try:
        return msgspec.json.decode(text, type=tuple[str, ...])
    except msgspec.MsgspecError:
        return None


def sums_of(values: Array, count: NDArray[np.int64]) -> Array:
    """The sum of each list, 0 of an empty one.

    >>> sums_of(np.array([0.5, 0.25, 1.0]), np.array([2, 0, 1])).tolist()
    [0.75, 0.0, 1.0]
    """
    found = np.zeros(count.size)
    held = count > 0
    if values.size:
        found[held] = np.add.reduceat(values, (np.cumsum(count) - count)[held])
    return found


def _first_alike(act: NDArray[np.int64], owner: NDArray[np.int64], longest: int) -> NDArray[np.int64]:
    """Where each act stands first in its list; in lists that are short, neighbours tell sooner than a sort."""
    first = np.arange(act.size)
    if longest <= FEW:
        for apart in range(1, longest):
            same = np.flatnonzero((act[apart:] == act[:-apart]) & (owner[apart:] == owner[:-apart]))
            first[same + apart] = same
        return first
    order = np.lexsort((act, owner))
    new = (np.diff(act[order], prepend=-1) != 0) | (np.diff(owner[order], prepend=-1) != 0)
    first[order] = order[np.flatnonzero(new)[np.cumsum(new) - 1]]
    return first


def _field(column: str, layout: Layout) -> str:
    parts = {name: part for part, name in layout.columns.items()}
    return f"extra_{layout.extras.index(column)}" if column in layout.extras else parts.get(column, column)


def _over(confidence: Array, owner: NDArray[np.int64], over: NDArray[np.int64], rows: _Rows) -> DataError:
    place = int(over[0])
    mine = confidence[owner == place]
    more = f" ({over.size:,} such lists in this batch)" if over.size > 1 else ""
    if (mine > 1 + TOLERANCE).any():
        rule = f"a confidence must not exceed 1; got {mine.max():g}{more}"
    else:
        rule = f"the confidences of a list must not sum to over 1; these sum to {mine.sum():.6g}{more}"
    return DataError(rule, where=f"{rows.named(place)}:", fix=GO_ON)


def chained(parts: Iterator[Part]) -> Part:
    """All parts as one."""
    several = list(parts)
    frame = pl.concat([part.frame for part in several], how="diagonal_relaxed")
    names = ("reference", "count", "act", "confidence")
    arrays = [np.concatenate([getattr(part, name) for part in several]) for name in names]
    return Part(frame.rechunk(), *arrays)
