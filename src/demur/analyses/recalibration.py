"""Confidences made to mean what they say: fitted on one table of N-best lists, applied to another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from demur.analyses.nbest import Manner
from demur.analyses.unit_figures import Difference, difference
from demur.data.nbest import NBest
from demur.data.nbest_building import sums_of
from demur.errors import DataError
from demur.measures.base import TermMeasure
from demur.measures.ice_parts import recalibrated
from demur.measures.sweep import Sweep
from demur.measures.unit_totals import Taken
from demur.show import plain

Array = NDArray[np.float64]
FORMAT = "demur recalibration 1"


@dataclass(frozen=True, eq=False)
class Recalibration:
    """A rising map from confidences to shares right, by isotonic regression; in between it is linear.

    >>> fitted = Recalibration.fit([0.2, 0.4, 0.4, 0.9], [False, False, True, True])
    >>> fitted(np.array([0.1, 0.3, 0.4, 1.0])).round(3).tolist()
    [0.0, 0.25, 0.5, 1.0]
    """

    confidence: Array
    share: Array
    n: int
    level: Literal["items", "acts"] = "items"

    @classmethod
    def fit(
        cls,
        confidence: ArrayLike,
        right: ArrayLike,
        *,
        weight: ArrayLike | None = None,
        level: Literal["items", "acts"] = "items",
    ) -> Recalibration:
        """The map that suits these confidences best, of all that rise."""
        if not np.size(confidence):
            raise DataError("there is nothing to fit a recalibration on: nothing is hypothesised")
        sweep = Sweep.of(confidence, right, weight=weight)
        share = recalibrated(np.asarray(sweep.right, dtype=np.float64), np.asarray(sweep.wrong, dtype=np.float64))
        ends = _ends_of_steps(share)
        return cls(sweep.threshold[ends], share[ends], sweep.n, level)

    def __call__(self, confidence: ArrayLike) -> Array:
        """The recalibrated confidences; 0 stays 0, for what was not hypothesised."""
        given = np.asarray(confidence, dtype=np.float64)
        return np.where(given > 0, np.interp(given, self.confidence, self.share), 0.0)

    def to_dict(self) -> dict[str, Any]:
        """The map as plain values."""
        return {
            "format": FORMAT,
            "level": self.level,
            "n": self.n,
            "confidence": self.confidence.tolist(),
            "share": self.share.tolist(),
        }

    @classmethod
    def read(cls, path: str | Path) -> Recalibration:
        """The map that a file holds."""
        try:
            found = msgspec.json.decode(Path(path).read_bytes(), type=_Stored)
        except FileNotFoundError:
            raise DataError("there is no such file", where=f"{path}:") from None
        except OSError as fault:
            raise DataError(f"cannot be read: {fault.strerror}", where=f"{path}:") from None
        except (msgspec.MsgspecError, UnicodeDecodeError) as fault:
            raise DataError(f"this is no recalibration: {fault}", where=f"{path}:") from None
        if found.format != FORMAT:
            raise DataError(f'the format must be "{FORMAT}"', where=f"{path}:", got=found.format)
        confidence, share = np.array(found.confidence), np.array(found.share)
        rising = confidence.size == share.size > 0 and (np.diff(confidence) > 0).all() and (np.diff(share) >= 0).all()
        if not rising or share.min() < 0 or share.max() > 1:
            raise DataError("the map must rise, from confidences to shares in [0, 1]", where=f"{path}:")
        return cls(confidence, share, found.n, found.level)


class _Stored(msgspec.Struct):
    format: str
    level: Literal["items", "acts"]
    n: int
    confidence: list[float]
    share: list[float]


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


def fit_items(nbest: NBest) -> Recalibration:
    """The map for confidences of items, from those that some hypothesis holds."""
    items = Taken.of(nbest).rows.items.filter("answered")
    return Recalibration.fit(items["confidence"].to_numpy(), items["right"].to_numpy(), weight=_weights(items))


def fit_acts(nbest: NBest) -> Recalibration:
    """The map for confidences of acts."""
    acts = Taken.of(nbest).rows.acts.filter("answered")
    return Recalibration.fit(
        acts["confidence"].to_numpy(), acts["right"].to_numpy(), weight=_weights(acts), level="acts"
    )


def recalibrated_acts(nbest: NBest, fitted: Recalibration) -> NBest:
    """The lists with recalibrated confidences of acts; a list that would sum to over 1 is scaled down to it."""
    confidence = fitted(nbest.confidence)
    count = np.diff(nbest.start)
    total = sums_of(confidence, count)
    return nbest.with_confidences(confidence / np.maximum(np.repeat(total, count), 1.0))


def recalibrated_items(nbest: NBest, fitted: Recalibration, how: Manner | None = None) -> Recalibrated:
    """The measures of items before and after recalibrating, with paired intervals of the change."""
    how = how or Manner()
    given = Taken.of(nbest)
    items = given.rows.items.with_columns(confidence=fitted(given.rows.items["confidence"].to_numpy()))
    mended = replace(given, rows=replace(given.rows, items=items))
    measures: dict[str, TermMeasure] = {
        key: measure for key, measure in how.of_items().items() if key not in ("nce_top", "ice_floored_share")
    }
    before, after = given.totals({}, measures), mended.totals({}, measures)
    drawn = [side.drawn(replicates=how.replicates, seed=how.seed) for side in (before, after)]
    values = [{key: float(side.values(key, side.totals)) for key in measures} for side in (before, after)]
    changes = {
        key: difference(
            values[1][key] - values[0][key],
            after.values(key, drawn[1]) - before.values(key, drawn[0]),
            before.units,
            level=how.level,
        )
        for key in measures
    }
    return Recalibrated(nbest.systems[0], fitted.n, values[0], values[1], changes)


def nbest_rows(nbest: NBest, fitted: Recalibration | None = None) -> Iterator[dict[str, Any]]:
    """The lists as rows of the project's own format; with a map for items, each item's recalibrated confidence too."""
    rows = Taken.of(nbest).rows
    names = nbest.sets.names
    items = rows.items["confidence"].to_numpy() if fitted is None else fitted(rows.items["confidence"].to_numpy())
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


def _weights(rows: pl.DataFrame) -> Array | None:
    weight = rows["weight"].to_numpy()
    return None if (weight == 1).all() else weight


def _ends_of_steps(share: Array) -> NDArray[np.int64]:
    """Where each level of a rising staircase starts and ends; nothing between them is needed to draw it."""
    changes = np.flatnonzero(np.diff(share) != 0)
    return np.unique(np.concatenate([[0], changes, changes + 1, [share.size - 1]]))
