"""The scale of log posteriors that scorers use, chosen by the ICE of dialogues that were held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.arrays import Array
from demur.core.show.numbers import listed, number
from demur.core.show.results import Step, silent
from demur.core.stats.sweep import ratio
from demur.errors import DataError
from demur.nbest_lists.asr.scorers import Scoring
from demur.nbest_lists.exploded import explode
from demur.nbest_lists.measures import FLOOR, ICE
from demur.nbest_lists.table import NBest, NBestReading, join_tables, read_lists

SCALES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.5, 2.0, 3.0)
"""Scales that are tried."""

FOLDS = 5


@dataclass(frozen=True, slots=True)
class TunedScale:
    """The scales of one system: those of each fold, chosen on the others, and what they give on what was held out."""

    system: str
    chosen: tuple[float, ...]
    ice: float
    unscaled: float
    """The ICE at a scale of 1."""

    @property
    def note(self) -> str:
        """What a result says of it."""
        scales = listed([f"{scale:g}" for scale in self.chosen])
        return (
            f"{self.system}: acoustic scale {scales}, each chosen by the ICE of the other dialogues; "
            f"the ICE goes from {number(self.unscaled)} at 1 to {number(self.ice)} on those held out"
        )

    def to_dict(self) -> dict[str, Any]:
        """The scales as plain values."""
        return asdict(self)


def read_scored(
    data: Sequence[Any],
    reading: NBestReading,
    scoring: Scoring,
    *,
    floor: float = FLOOR,
    seed: int = 0,
    step: Step = silent,
) -> tuple[NBest, tuple[TunedScale, ...]]:
    """The lists of all data, and the scales behind them where these are to be tuned."""
    if scoring.scale != "tuned":
        return read_lists(data, reading, scoring), ()
    tables, found = [], []
    scoring = replace(scoring, memory={})
    by_scale = {}
    for place, scale in enumerate(SCALES):
        step("trying scales", place, len(SCALES))
        by_scale[scale] = read_lists(data, reading, replace(scoring, scale=scale))
    for system in by_scale[1.0].systems:
        lists, scale_of = tuned({scale: table.of(system) for scale, table in by_scale.items()}, floor=floor, seed=seed)
        tables.append(lists)
        found.append(scale_of)
    return join_tables(tables), tuple(found)


def tuned(by_scale: dict[float, NBest], *, floor: float = FLOOR, seed: int = 0) -> tuple[NBest, TunedScale]:
    """The lists of one system, those of each fold of dialogues at the scale of least ICE on the other folds.

    Utterances outside dialogues are folded by their ids. Of equally good scales the one nearest 1 is taken.
    """
    folds = _folds(by_scale[1.0], seed)
    costs = np.array([_fold_costs(table, folds, floor) for table in by_scale.values()])  # scale, fold, cost and number
    others = costs.sum(axis=1, keepdims=True) - costs
    ice = ratio(others[..., 0], others[..., 1])
    scales = np.array(list(by_scale))
    nearest = np.argsort(np.abs(np.log(scales)))
    best = nearest[np.argmin(np.where(np.isnan(ice), np.inf, ice)[nearest], axis=0)]
    chosen = tuple(scales[best].tolist())
    parts = [by_scale[scale].taken(_fold_of(by_scale[scale], folds) == fold) for fold, scale in enumerate(chosen)]
    held_out = costs[best, np.arange(len(chosen))].sum(axis=0)
    unscaled = costs[list(by_scale).index(1.0)].sum(axis=0)
    lists = join_tables([one for one in parts if len(one)])
    values = (float(ratio(one[0], one[1])) for one in (held_out, unscaled))
    return lists, TunedScale(lists.systems[0], chosen, *values)


def _units(table: NBest) -> pl.Series:
    return table.frame.select(pl.coalesce(pl.col("dialogue").cast(pl.String), pl.col("id").cast(pl.String))).to_series()


def _folds(table: NBest, seed: int) -> dict[str, int]:
    """The fold of each dialogue."""
    units = _units(table)
    names = sorted(units.drop_nulls().unique())
    if units.null_count() or len(names) < 2:
        got = f"{units.null_count():,} utterances without dialogue and id, {len(names)} dialogues"
        raise DataError(
            "a scale is tuned on some dialogues and used on others, so there must be two or more",
            got=got,
            fix="name dialogues, or give `acoustic_scale` as a number",
        )
    order = np.random.default_rng(seed).permutation(len(names))
    return {name: int(place) % min(FOLDS, len(names)) for name, place in zip(names, order, strict=True)}


def _fold_of(table: NBest, folds: dict[str, int]) -> NDArray[np.int64]:
    return np.array([folds[name] for name in _units(table).to_list()])


def _fold_costs(table: NBest, folds: dict[str, int], floor: float) -> Array:
    """What the items of each fold cost, and how many were meant: [fold, 2]."""
    rows, fold = explode(table), _fold_of(table, folds)
    terms = rows.items.select(term * pl.col("weight") for term in ICE(floor).terms(pl).values()).to_numpy()
    owner = fold[np.repeat(np.arange(len(table)), np.diff(rows.item_start))]
    return np.stack([np.bincount(owner, part, max(folds.values()) + 1) for part in terms.T], axis=1)
