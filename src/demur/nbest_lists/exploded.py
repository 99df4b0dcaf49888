"""N-best lists taken apart into rows of items and acts, and their totals by utterance or dialogue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.acts import Codes, ItemSets
from demur.core.arrays import Array, Flags, round_sums
from demur.core.stats.measure import TermMeasure
from demur.core.stats.resampling import MOST_UNITS, Draws, Rows, SampleSource
from demur.nbest_lists.reading import sums_of
from demur.nbest_lists.table import NBest
from demur.returns.table import Responses
from demur.returns.tally import Tally

Places = NDArray[np.int64]
Sizes = NDArray[np.int32]
Columns = dict[str, NDArray[Any]]

AT_ONCE = 8192
"""Utterances taken apart at a time: few enough that their rows stay in the processor's cache."""


@dataclass(frozen=True, eq=False)
class Exploded:
    """The rows of items and of acts, each in the order of utterances.

    Items: `confidence` (what the acts that hold the item sum to), `right` (whether it was meant), `answered` (whether
    any act with some confidence holds it), `top` (whether, then, the surest act holds it), `weight`. Every item that
    was meant, or hypothesised with some confidence, has a row.

    Acts: `confidence`, `right` (whether it is the act that was meant), `answered` (whether the list names it),
    `errors` (substitutions, deletions and insertions against what was meant), `items`, `right_items`, `top`, `weight`.
    An act that was meant and not hypothesised has a row. The mass that no hypothesis holds has a row for each
    utterance, as an empty act marked `rest`, never right, and `top` only where the list is empty; that row alone has
    the `reference_items` of the utterance and its `best_errors`, others have 0.
    """

    items: pl.DataFrame
    acts: pl.DataFrame
    item_start: Places
    act_start: Places
    item: Codes
    """The item of each row, by its number in the sets."""


@dataclass(frozen=True, eq=False)
class _Lists:
    """Some utterances that follow each other, and what is computed of them once."""

    sets: ItemSets
    reference: Codes
    start: Places
    act: Codes
    confidence: Array
    weight: Array

    @classmethod
    def of(cls, nbest: NBest, first: int, weight: Array) -> _Lists:
        """The utterances from this one on."""
        here, start = slice(first, first + AT_ONCE), nbest.start[first : first + AT_ONCE + 1]
        held = slice(int(start[0]), int(start[-1]))
        act, confidence = nbest.act[held], nbest.confidence[held]
        return cls(nbest.sets, nbest.reference[here], start - start[0], act, confidence, weight[here])

    def __len__(self) -> int:
        return self.reference.size

    @cached_property
    def count(self) -> Places:
        return np.diff(self.start)

    @cached_property
    def owner(self) -> Places:
        return np.repeat(np.arange(len(self)), self.count)

    @cached_property
    def meant(self) -> Sizes:
        """How many items each reference has."""
        return self.sets.size[self.reference].astype(np.int32)

    @cached_property
    def size(self) -> Sizes:
        """How many items each hypothesis has."""
        return self.sets.size[self.act].astype(np.int32)

    @cached_property
    def is_top(self) -> Flags:
        """Whether a hypothesis is the surest of its list, the first of equals."""
        flags = np.zeros(self.act.size, dtype=np.bool_)
        held = np.flatnonzero(self.count)
        if held.size:
            highest = np.maximum.reduceat(self.confidence, self.start[held])
            surest = np.flatnonzero(self.confidence == np.repeat(highest, self.count[held]))
            owner = self.owner[surest]
            flags[surest[np.diff(owner, prepend=-1) > 0]] = True
        return flags


def explode(nbest: NBest) -> Exploded:
    """The rows of items and acts of a table of N-best lists."""
    weight = nbest.frame["weight"].to_numpy()
    items, acts = [], []
    for first in range(0, max(len(nbest), 1), AT_ONCE):
        lists = _Lists.of(nbest, first, weight)
        of_items, count, right_by_act = _item_rows(lists)
        items.append((of_items, count))
        acts.append(_act_rows(lists, right_by_act))
    (columns, item_start), (act_columns, act_start) = _joined_rows(items), _joined_rows(acts)
    item = columns.pop("item")
    return Exploded(pl.DataFrame(columns), pl.DataFrame(act_columns), item_start, act_start, item)


def _joined_rows(parts: list[tuple[Columns, Places]]) -> tuple[Columns, Places]:
    """The columns of all parts, and where the rows of each utterance start."""
    columns = {name: np.concatenate([part[name] for part, _ in parts]) for name in parts[0][0]}
    return columns, np.concatenate([[0], np.cumsum(np.concatenate([count for _, count in parts]))])


def _item_rows(lists: _Lists) -> tuple[Columns, Places, Sizes]:
    """The columns of items, how many each utterance has, and how many items of each hypothesis were meant.

    Confidences are summed over the acts that hold an item, by one stable sort of (utterance, item); every reference
    follows its list.
    """
    hypothesised = np.ones(lists.act.size + len(lists), dtype=np.bool_)
    hypothesised[lists.start[1:] + np.arange(len(lists))] = False
    every = np.empty(hypothesised.size, dtype=np.int32)
    every[hypothesised], every[~hypothesised] = lists.act, lists.reference
    item, start = lists.sets.expanded(every)
    size = np.diff(start)
    number = max(len(lists.sets.names), 1)
    base = np.repeat(np.arange(len(lists)) * number, lists.count + 1)
    key = np.repeat(base, size) + item
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    first = np.ones(key.size, dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    edges = np.flatnonzero(first)
    ends = np.append(edges, key.size)[1:]
    group = np.repeat(np.arange(edges.size), ends - edges)
    holder = np.repeat(np.arange(every.size), size)[order]
    given, is_top = (_column(every.size, np.float64, (hypothesised, part)) for part in (lists.confidence, lists.is_top))
    confidence = round_sums(np.bincount(group, given[holder], edges.size))
    right = ~hypothesised[holder[ends - 1]]  # the reference comes last among those that hold an item
    right_by_act = np.bincount(holder, right[group], every.size)[hypothesised].astype(np.int32)
    top = np.bincount(group, is_top[holder], edges.size) > 0
    answered = confidence > 0
    columns = {
        "key": ordered[edges],
        "confidence": np.minimum(confidence, 1.0),
        "right": right,
        "answered": answered,
        "top": top & answered,
        "item": item[order[edges]],
    }
    held = right | answered  # what is neither would count as missed
    if not held.all():
        columns = {name: column[held] for name, column in columns.items()}
    count = np.diff(np.searchsorted(columns.pop("key"), np.arange(len(lists) + 1) * number))
    columns["weight"] = np.repeat(lists.weight, count)
    return columns, count, right_by_act


def _act_rows(lists: _Lists, right_items: Sizes) -> tuple[Columns, Places]:
    """Hypotheses, then the act that was meant where none is it, then the rest of the mass as the empty act."""
    right = lists.act == lists.reference[lists.owner]
    listed = np.zeros(len(lists), dtype=np.bool_)
    listed[lists.owner[right]] = True
    count = lists.count + ~listed + 1
    end = np.cumsum(count)
    mine = np.arange(right.size) + np.repeat(end - count - lists.start[:-1], lists.count)
    rest, missing = end - 1, (end - 2)[~listed]
    missed = lists.meant[~listed]
    errors = np.maximum(lists.size, lists.meant[lists.owner]) - right_items
    best = lists.meant.copy()
    held = np.flatnonzero(lists.count)
    if held.size:
        best[held] = np.minimum.reduceat(errors, lists.start[held])
    given_out = sums_of(lists.confidence, lists.count)
    rows = int(count.sum())
    confidence, remaining = np.minimum(lists.confidence, 1.0), np.maximum(1.0 - given_out, 0.0)
    return {
        "confidence": _column(rows, np.float64, (mine, confidence), (rest, remaining)),
        "right": _column(rows, np.bool_, (mine, right), (missing, True)),
        "answered": _column(rows, np.bool_, (mine, True)),
        "errors": _column(rows, np.int32, (mine, errors), (rest, lists.meant)),
        "items": _column(rows, np.int32, (mine, lists.size), (missing, missed)),
        "right_items": _column(rows, np.int32, (mine, right_items), (missing, missed)),
        "top": _column(rows, np.bool_, (mine, lists.is_top), (rest, lists.count == 0)),
        "rest": _column(rows, np.bool_, (rest, True)),
        "reference_items": _column(rows, np.int32, (rest, lists.meant)),
        "best_errors": _column(rows, np.int32, (rest, best)),
        "weight": np.repeat(lists.weight, count),
    }, count


def _column(rows: int, kind: Any, *parts: tuple[NDArray[Any], Any]) -> NDArray[Any]:
    """A column with some of its places filled, others 0."""
    column = np.zeros(rows, dtype=kind)
    for place, values in parts:
        column[place] = values
    return column


Units = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class UnitTotals:
    """What each unit, a dialogue or an utterance, adds to the totals of measures.

    `table` has a row per unit; `columns` says which of its columns are the terms of a measure.
    """

    table: Array
    columns: Mapping[str, slice]
    measures: Mapping[str, TermMeasure]
    n: int
    clustered: bool
    independent: float | None = None
    """How many independent units there are, where those of the table are buckets that hold several."""

    @property
    def units(self) -> int:
        """How many units there are."""
        return int(self.table.shape[0])

    @cached_property
    def totals(self) -> Array:
        """The totals over all units."""
        return np.asarray(self.table.sum(axis=0))

    def of(self, key: str, totals: Array) -> Array:
        """A measure's own totals, with the number of utterances last, from those of all measures."""
        own = totals[..., self.columns[key]]
        return np.concatenate([own, np.full((*own.shape[:-1], 1), float(self.n))], axis=-1)

    def values(self, key: str, totals: Array) -> Array:
        """A measure's value, or those of many replicates."""
        return np.asarray(self.measures[key].finish(self.of(key, totals)))

    def by_unit(self, key: str) -> Array:
        """A measure's value on each unit alone."""
        return self.values(key, self.table)

    def draw(self, *, replicates: int, seed: int) -> Array:
        """The totals of replicates, one row each; the same seed draws the same units of another table."""
        table = self.table
        if self.units > MOST_UNITS:
            bundle = np.random.default_rng([seed, 1]).permutation(self.units) % MOST_UNITS
            table = _summed_units(table, bundle, MOST_UNITS)
        return np.concatenate([counts @ table for counts in Draws(table.shape[0], replicates, seed)])


class ListSource(Protocol):
    """What an evaluation reads of the lists of one system: their rows in memory, or what an engine counted of them."""

    @property
    def hypotheses(self) -> int:
        """How many hypotheses there are."""

    @property
    def empty(self) -> int:
        """Utterances for which nothing was hypothesised."""

    @property
    def given_out(self) -> float:
        """Mean mass that lists give out."""

    @property
    def answered_items(self) -> int:
        """Items that some hypothesis holds."""

    @property
    def items(self) -> SampleSource | None:
        """The items as what is drawn from; None where there is none."""

    @property
    def tops(self) -> SampleSource:
        """The surest hypotheses as what is drawn from."""

    def judged_tops(self, system: str) -> Responses | list[Tally]:
        """The surest hypothesis of each utterance as a judged answer of a system."""

    def totals(self, of_acts: Mapping[str, TermMeasure], of_items: Mapping[str, TermMeasure]) -> UnitTotals:
        """What each unit adds to measures of acts and of items."""


@dataclass(frozen=True, eq=False)
class ExplodedLists:
    """A table of N-best lists taken apart, with what is drawn of it."""

    nbest: NBest
    rows: Exploded
    unit: Units | None
    """The number of each utterance's dialogue; None where utterances are units of their own."""

    @classmethod
    def of(cls, nbest: NBest) -> ExplodedLists:
        """The rows of a table; where it names dialogues, these are the units."""
        return cls(nbest, explode(nbest), dialogue_numbers(nbest.frame))

    @property
    def numbered(self) -> Units:
        """The unit of each utterance."""
        return np.arange(len(self.nbest)) if self.unit is None else self.unit

    def totals(self, of_acts: Mapping[str, TermMeasure], of_items: Mapping[str, TermMeasure]) -> UnitTotals:
        """What each unit adds to measures of acts and of items."""
        rows, measures = self.rows, {**of_acts, **of_items}
        acts = _summed_terms(rows.acts, rows.act_start, of_acts)
        table = np.concatenate([acts, _summed_terms(rows.items, rows.item_start, of_items)], axis=1)
        if self.unit is not None:
            table = _summed_units(table, self.unit, int(self.unit.max()) + 1)
        return UnitTotals(table, columns_of(measures), measures, len(self.nbest), self.unit is not None)

    @property
    def hypotheses(self) -> int:
        """How many hypotheses there are."""
        return self.nbest.act.size

    @property
    def empty(self) -> int:
        """Utterances for which nothing was hypothesised."""
        return int((np.diff(self.nbest.start) == 0).sum())

    @property
    def given_out(self) -> float:
        """Mean mass that lists give out."""
        return float(np.average(np.minimum(self.nbest.given_out, 1.0), weights=self.nbest.frame["weight"].to_numpy()))

    @property
    def answered_items(self) -> int:
        """Items that some hypothesis holds."""
        return int(self.rows.items["answered"].sum())

    @cached_property
    def items(self) -> Rows | None:
        """The items as rows of which units are drawn; None where there is none."""
        items = self.rows.items
        if items.is_empty():
            return None
        confidence, right, answered, weight = (
            items[name].to_numpy() for name in ("confidence", "right", "answered", "weight")
        )
        return Rows(confidence, right, answered, weight, np.repeat(self.numbered, np.diff(self.rows.item_start)))

    @cached_property
    def tops(self) -> Rows:
        """The surest hypotheses as rows."""
        return Rows.from_frame(self.top_answers())

    def judged_tops(self, system: str) -> Responses:
        """The surest hypothesis of each utterance as a judged answer of a system."""
        return Responses(self.top_answers().with_columns(pl.lit(system).alias("system")))

    def top_answers(self) -> pl.DataFrame:
        """The surest hypothesis of each utterance as a judged answer."""
        first = self.rows.acts.filter("top")
        return self.nbest.frame.select("id", "system", "dialogue", "weight").with_columns(
            first.select("answered", "right", confidence=pl.when("answered").then("confidence")),
            failed=pl.lit(False),
            out_of_scope=pl.lit(False),
            target=pl.lit(None, dtype=pl.List(pl.String)),
            prediction=pl.lit(None, dtype=pl.String),
        )


def columns_of(measures: Mapping[str, TermMeasure]) -> dict[str, slice]:
    """Which columns of a table of units are the terms of each measure."""
    ends = np.cumsum([0, *(len(measure.terms(pl)) for measure in measures.values())]).tolist()
    return {key: slice(*span) for key, span in zip(measures, pairwise(ends), strict=True)}


def dialogue_numbers(frame: pl.DataFrame) -> Units | None:
    """Numbers for dialogues in the order of their names; utterances outside any are units of their own."""
    dialogue = frame["dialogue"]
    if dialogue.null_count() == dialogue.len():
        return None
    codes = np.array(dialogue.rank("dense").cast(pl.Int64).fill_null(0).to_numpy()) - 1
    alone = np.flatnonzero(codes < 0)
    codes[alone] = codes.max() + 1 + np.arange(alone.size)
    return codes


def _summed_units(table: Array, unit: Units, count: int) -> Array:
    return np.stack([np.bincount(unit, weights=column, minlength=count) for column in table.T], axis=1)


def _summed_terms(frame: pl.DataFrame, start: Places, measures: Mapping[str, TermMeasure]) -> Array:
    """The weighted terms of all measures summed over the rows of each utterance."""
    terms = {
        f"{key}:{name}": term * pl.col("weight")
        for key, measure in measures.items()
        for name, term in measure.terms(pl).items()
    }
    columns = frame.select(**terms)
    held = np.flatnonzero(np.diff(start))
    table = np.zeros((start.size - 1, len(terms)))
    if held.size:
        for place, name in enumerate(terms):
            table[held, place] = np.add.reduceat(columns[name].to_numpy(), start[held])
    return table
