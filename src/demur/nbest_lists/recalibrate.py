"""Confidences made to mean what they say: fitted on one table of N-best lists, applied to another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from demur.core.arrays import Array
from demur.core.io.writing import write_rows
from demur.core.show.results import plain
from demur.core.stats.calibration_maps import MapLevel, Recalibration
from demur.core.stats.intervals import Difference
from demur.errors import UsageError
from demur.nbest_lists.evaluate import NBestEvaluations, NBestSettings, differences_of
from demur.nbest_lists.exploded import ExplodedLists
from demur.nbest_lists.reading import sums_of
from demur.nbest_lists.table import NBest


@dataclass(frozen=True, eq=False)
class Recalibrated:
    """What recalibrating the items of some lists did to the measures of items; differences are after less before."""

    system: str
    fitted_on: int
    before: dict[str, float]
    after: dict[str, float]
    differences: dict[str, Difference]

    def to_dict(self) -> dict[str, Any]:
        """The values before and after, and the differences."""
        return {
            "system": self.system,
            "fitted_on_items": self.fitted_on,
            "before": plain(self.before),
            "after": plain(self.after),
            "differences": {key: one.to_dict() for key, one in self.differences.items()},
        }


@dataclass(frozen=True, slots=True)
class ListRecalibration:
    """Maps for the confidences of items and of acts."""

    items: Recalibration
    acts: Recalibration

    @classmethod
    def fit(cls, nbest: NBest) -> ListRecalibration:
        """The maps that lists show to be right."""
        return cls(fit_items(nbest), fit_acts(nbest))

    def rows(self, nbest: NBest) -> Iterator[dict[str, Any]]:
        """The recalibrated lists as rows, under names that say so."""
        acts = recalibrated_acts(nbest, self.acts)
        named = acts.frame.with_columns(pl.col("system") + " recalibrated")
        return nbest_rows(replace(acts, frame=named), self.items)


def fit_items(nbest: NBest) -> Recalibration:
    """The map for confidences of items, from those that some hypothesis holds."""
    return _fitted_map(ExplodedLists.of(nbest).rows.items, "items")


def fit_acts(nbest: NBest) -> Recalibration:
    """The map for confidences of acts."""
    return _fitted_map(ExplodedLists.of(nbest).rows.acts, "acts")


def _fitted_map(rows: pl.DataFrame, level: MapLevel) -> Recalibration:
    confidence, right, weight = rows.filter("answered").select("confidence", "right", "weight")
    weights = None if (weight == 1).all() else weight.to_numpy()
    return Recalibration.fit(confidence.to_numpy(), right.to_numpy(), weight=weights, level=level)


def recalibrated_acts(nbest: NBest, fitted: Recalibration) -> NBest:
    """The lists with recalibrated confidences of acts; a list that would sum to over 1 is scaled down to it."""
    confidence, count = fitted(nbest.confidence), np.diff(nbest.start)
    total = np.repeat(sums_of(confidence, count), count)
    return nbest.with_confidences(confidence / np.maximum(total, 1.0))


def recalibrated_items(nbest: NBest, fitted: Recalibration, how: NBestSettings | None = None) -> Recalibrated:
    """The measures of items before and after recalibrating, with paired intervals of the change."""
    how = how or NBestSettings()
    given = ExplodedLists.of(nbest)
    items = given.rows.items.with_columns(confidence=_mapped_items(given.rows.items, fitted))
    recalibrated = replace(given, rows=replace(given.rows, items=items))
    measures = {key: one for key, one in how.of_items().items() if key not in ("nce_top", "ice_floored_share")}
    before, after = given.totals({}, measures), recalibrated.totals({}, measures)
    values = [{key: float(side.values(key, side.totals)) for key in measures} for side in (before, after)]
    return Recalibrated(nbest.systems[0], fitted.n, values[0], values[1], differences_of(after, before, how))


def recalibrated_systems(nbest: NBest, fitted: ListRecalibration, how: NBestSettings) -> tuple[Recalibrated, ...]:
    """What recalibrating did to each system."""
    return tuple(recalibrated_items(nbest.of(one), fitted.items, how) for one in nbest.systems)


def _mapped_items(items: pl.DataFrame, fitted: Recalibration) -> Array:
    """The recalibrated confidences of items; those that no hypothesis holds keep their 0."""
    confidence = items["confidence"].to_numpy()
    return np.where(items["answered"].to_numpy(), fitted(confidence), confidence)


def nbest_rows(nbest: NBest, fitted: Recalibration | None = None) -> Iterator[dict[str, Any]]:
    """The lists as rows of the project's own format; with a map for items, each item's recalibrated confidence too."""
    rows = ExplodedLists.of(nbest).rows
    names = nbest.sets.names
    items = rows.items["confidence"].to_numpy() if fitted is None else _mapped_items(rows.items, fitted)
    for place, about in enumerate(nbest.frame.iter_rows(named=True)):
        span = slice(int(nbest.start[place]), int(nbest.start[place + 1]))
        row = {
            **{name: value for name, value in about.items() if value is not None},
            "reference": list(nbest.sets.items_of(int(nbest.reference[place]))),
            "hypotheses": [
                {"items": list(nbest.sets.items_of(int(act))), "confidence": confidence}
                for act, confidence in zip(nbest.act[span], nbest.confidence[span].tolist(), strict=True)
            ],
        }
        if fitted is not None:
            held = slice(int(rows.item_start[place]), int(rows.item_start[place + 1]))
            sure = zip(rows.item[held].tolist(), items[held].tolist(), strict=True)
            row["item_confidences"] = {names[item]: confidence for item, confidence in sure if confidence > 0}
        yield row


def list_rows(nbest: NBest, fitted: ListRecalibration | None) -> Iterator[dict[str, Any]]:
    """The lists as rows, recalibrated where there is a map."""
    return nbest_rows(nbest) if fitted is None else fitted.rows(nbest)


def write_lists(found: NBestEvaluations, path: Path) -> None:
    """Write the lists as they were evaluated, recalibrated where that was asked for."""
    if found.rows is None:
        raise UsageError("an engine keeps no lists that could be written: read them with `engine` memory")
    write_rows(path, found.rows())
