"""Totals of N-best measures by unit, so that replicates, slices and pairs are sums of a few columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.data.nbest import NBest
from demur.measures.base import TermMeasure
from demur.measures.exploded import Exploded, exploded
from demur.measures.resampling import MOST_UNITS, Draws, Rows
from demur.measures.sweep import Sweep

Array = NDArray[np.float64]
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

    def drawn(self, *, replicates: int, seed: int) -> Array:
        """The totals of replicates, one row each; the same seed draws the same units of another table."""
        table = self.table
        if self.units > MOST_UNITS:
            bundle = np.random.default_rng([seed, 1]).permutation(self.units) % MOST_UNITS
            table = np.stack([np.bincount(bundle, weights=column, minlength=MOST_UNITS) for column in table.T], axis=1)
        return np.concatenate([counts @ table for counts in Draws(table.shape[0], replicates, seed)])


@dataclass(frozen=True, eq=False)
class Taken:
    """A table of N-best lists taken apart, with what is drawn of it."""

    nbest: NBest
    rows: Exploded
    unit: Units | None
    """The number of each utterance's dialogue; None where utterances are units of their own."""

    @classmethod
    def of(cls, nbest: NBest) -> Taken:
        """The rows of a table; where it names dialogues, these are the units."""
        return cls(nbest, exploded(nbest), dialogue_numbers(nbest.frame))

    @property
    def numbered(self) -> Units:
        """The unit of each utterance."""
        return np.arange(len(self.nbest)) if self.unit is None else self.unit

    def totals(self, of_acts: Mapping[str, TermMeasure], of_items: Mapping[str, TermMeasure]) -> UnitTotals:
        """What each unit adds to measures of acts and of items."""
        rows = self.rows
        parts = [
            _summed(rows.acts, rows.act_start, of_acts),
            _summed(rows.items, rows.item_start, of_items),
        ]
        table = np.concatenate(parts, axis=1)
        if self.unit is not None:
            count = int(self.unit.max()) + 1
            table = np.stack([np.bincount(self.unit, weights=part, minlength=count) for part in table.T], axis=1)
        measures = {**of_acts, **of_items}
        return UnitTotals(table, _places(measures), measures, len(self.nbest), self.unit is not None)

    @cached_property
    def item_sweep(self) -> Sweep:
        """Right and wrong items by confidence; withheld are those meant that no hypothesis holds."""
        return self.item_rows.sweep()

    @cached_property
    def item_rows(self) -> Rows:
        """The items as rows of which units are drawn."""
        items = self.rows.items
        return Rows(
            items["confidence"].to_numpy(),
            items["right"].to_numpy(),
            items["answered"].to_numpy(),
            items["weight"].to_numpy(),
            np.repeat(self.numbered, np.diff(self.rows.item_start)),
        )

    def top_answers(self) -> pl.DataFrame:
        """The surest hypothesis of each utterance as a judged answer."""
        frame = self.nbest.frame
        first = self.rows.acts.filter("top")
        return frame.select("id", "system", "dialogue", "weight").with_columns(
            first.select("answered", "right", confidence=pl.when("answered").then("confidence")),
            failed=pl.lit(False),
            out_of_scope=pl.lit(False),
            target=pl.lit(None, dtype=pl.List(pl.String)),
            prediction=pl.lit(None, dtype=pl.String),
        )


def dialogue_numbers(frame: pl.DataFrame) -> Units | None:
    """Numbers for dialogues in the order of their names; utterances outside any are units of their own."""
    dialogue = frame["dialogue"]
    if dialogue.null_count() == dialogue.len():
        return None
    codes = np.array(dialogue.rank("dense").cast(pl.Int64).fill_null(0).to_numpy()) - 1
    alone = np.flatnonzero(codes < 0)
    codes[alone] = codes.max() + 1 + np.arange(alone.size)
    return codes


def _places(measures: Mapping[str, TermMeasure]) -> dict[str, slice]:
    found, start = {}, 0
    for key, measure in measures.items():
        stop = start + len(measure.terms())
        found[key] = slice(start, stop)
        start = stop
    return found


def _summed(frame: pl.DataFrame, start: NDArray[np.int64], measures: Mapping[str, TermMeasure]) -> Array:
    """The weighted terms of all measures summed over the rows of each utterance."""
    terms = {
        f"{key}:{name}": term * nw.col("weight")
        for key, measure in measures.items()
        for name, term in measure.terms().items()
    }
    columns = nw.from_native(frame).select(**terms).to_native()
    held = np.flatnonzero(np.diff(start))
    table = np.zeros((start.size - 1, len(terms)))
    if held.size:
        for place, name in enumerate(terms):
            table[held, place] = np.add.reduceat(columns[name].to_numpy(), start[held])
    return table
