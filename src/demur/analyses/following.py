"""A running tally of a log that grows: what it has come to so far, in bounded memory however long it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import polars as pl

from demur.analyses.evaluation import Evaluations, evaluate_tallies
from demur.errors import DataError
from demur.measures.base import Measure
from demur.measures.grids import grid_for
from demur.measures.reduction import tallies_of_frame
from demur.measures.sweep import Sweep
from demur.measures.tally import UNITS, Tally, summed_units

MOST_CUTOFFS = 65_536
"""Distinct confidences kept of each system; where there are more, close ones are joined."""

MOST_UNITS = 2**19
"""Entries of a table of units: buckets by levels of confidence, as many as replicates tell apart.

Joining these moves intervals, not values.
"""

MOST_SYSTEMS = 200
"""Systems of one log; more are a column that names something else."""


class RunningTally:
    """The tallies of every system of a log, to which batches of judged rows are added.

    At the cutoffs that are kept the counts are exact, and what is a sum over rows is exact too; `Sweep.slack` bounds
    what lies between cutoffs that were joined.
    """

    def __init__(self, *, cutoffs: int = MOST_CUTOFFS, units: int = MOST_UNITS) -> None:
        self._cutoffs, self._units = cutoffs, units
        self._tallies: dict[str, Tally] = {}
        self._clustered: set[str] = set()

    @property
    def rows(self) -> int:
        """Rows counted so far."""
        return sum(tally.n for tally in self.tallies)

    @property
    def tallies(self) -> list[Tally]:
        """The tally of each system that has rows of any weight, in order of first appearance."""
        counted = [tally for tally in self._tallies.values() if tally.sweep.total > 0]
        return [replace(tally, clustered=tally.system in self._clustered) for tally in counted]

    def add(self, frame: pl.DataFrame, *, grouped: bool = False) -> None:
        """Counts judged rows; with `grouped` the log has columns that may put rows in dialogues or weigh them."""
        self._clustered |= set(frame.filter(pl.col("dialogue").is_not_null())["system"].unique())
        for tally in _tallies_of(_in_units(frame) if grouped else frame):
            known = self._tallies.get(tally.system)
            self._tallies[tally.system] = self._bounded(tally if known is None else _added(known, tally))
        if len(self._tallies) > MOST_SYSTEMS:
            rule = f"the column system has more than {MOST_SYSTEMS} values"
            raise DataError(rule, fix="does it name systems? name another one with --map system=COLUMN")

    def evaluated(
        self, *, measures: Mapping[str, Measure], level: float = 0.95, replicates: int = 1000, seed: int = 0
    ) -> Evaluations:
        """What the log has come to so far."""
        return evaluate_tallies(self.tallies, measures=measures, level=level, replicates=replicates, seed=seed)

    def _bounded(self, tally: Tally) -> Tally:
        if tally.sweep.threshold.size > self._cutoffs:
            tally = _fewer_cutoffs(tally, self._cutoffs)
        if tally.units is not None and tally.units.height > self._units:
            tally = replace(tally, units=_fewer_units(tally, tally.units, self._units))
        return tally


def _in_units(frame: pl.DataFrame) -> pl.DataFrame:
    """Rows outside any dialogue as dialogues of one row, so that every batch is counted by units alike."""
    return frame.with_columns(dialogue=pl.coalesce("dialogue", "id"))


def _tallies_of(frame: pl.DataFrame) -> list[Tally]:
    """The tallies of a batch; in one that holds only rows of weight 0 these are counted all the same."""
    if bool((frame["weight"] > 0).all()):
        return tallies_of_frame(frame)
    parts = frame.partition_by("system", maintain_order=True)
    return [
        one for part in parts for one in (tallies_of_frame(part) if (part["weight"] > 0).any() else [_weightless(part)])
    ]


def _weightless(rows: pl.DataFrame) -> Tally:
    threshold = np.unique(rows.filter("answered")["confidence"].to_numpy() + 0.0)  # -0.0 is 0.0
    right, wrong = (np.zeros(threshold.size, dtype=np.int64) for _ in range(2))
    return Tally(
        rows["system"][0],
        None,
        Sweep(threshold, right, wrong, 0.0, rows.height),
        failed=int(rows["failed"].sum()),
        unanswered=int((~rows["answered"]).sum()),
        out_of_scope=int(rows["out_of_scope"].sum()),
        squares=0.0,
        units=pl.DataFrame(schema=UNITS),
    )


def _added(known: Tally, tally: Tally) -> Tally:
    if (known.units is None) != (tally.units is None):
        raise DataError(
            f'dialogues (or weights) of system "{tally.system}" begin only after {known.n:,} rows that have none',
            fix="the rows before cannot be told apart any more; read the log as a whole with demur score",
        )
    return known + tally


def _fewer_cutoffs(tally: Tally, most: int) -> Tally:
    """Close confidences joined until about half of the cutoffs are left, so that the next batches have room."""
    cells = max(1, most // 2)
    joined = tally.joined(grid_for(tally.sweep, cells))
    while joined.sweep.threshold.size > most and cells > 1:
        cells //= 2
        joined = tally.joined(grid_for(tally.sweep, cells))
    return joined


def _fewer_units(tally: Tally, units: pl.DataFrame, most: int) -> pl.DataFrame:
    """The table of units at coarser levels: each confidence becomes the start of its cell."""
    levels = max(1, most // (2 * max(1, tally.buckets)))
    fewer = _releveled(tally, units, levels)
    while fewer.height > most and levels > 1:
        levels //= 2
        fewer = _releveled(tally, units, levels)
    return fewer


def _releveled(tally: Tally, units: pl.DataFrame, levels: int) -> pl.DataFrame:
    confidence = units["confidence"]
    cells = grid_for(tally.sweep, levels).of(confidence.fill_null(np.nan).to_numpy())
    moved = pl.Series("confidence", cells).fill_nan(None)
    return summed_units([units.with_columns(moved)])
