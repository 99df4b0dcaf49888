"""Where in a list of labels the right one stands: first, second, further down, or nowhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from demur.analyses.bands import check_level
from demur.analyses.rates import wilson
from demur.data.label_lists import label_lists
from demur.data.responses import Responses
from demur.errors import DataError
from demur.measures.intervals import Figure
from demur.measures.nbest import FLOOR

NOWHERE = 0
"""The rank of a label that the list lacks."""


@dataclass(frozen=True, eq=False)
class ListRanks:
    """How often the right label stands where, over the inputs that have a list and a right label."""

    system: str
    n: int
    at: tuple[float, ...]
    """Weight of the inputs whose right label stands first, second, and so on."""
    nowhere: float
    total: float
    effective: float
    """How many equally weighted inputs tell as much."""
    without: int
    """Inputs without a list."""
    out_of_scope: int
    """Inputs to which no label is right, or of which it is not known."""
    level: float = 0.95

    @property
    def longest(self) -> int:
        """The last place at which a right label stands."""
        return len(self.at)

    def share(self, place: int) -> float:
        """How often the right label stands at a place."""
        return self.at[place - 1] / self.total if place <= self.longest else 0.0

    def top(self, k: int) -> Figure:
        """Top-k accuracy: how often the right label is among the first k, with Wilson's interval."""
        rate = min(sum(self.at[:k]) / self.total, 1.0)
        return Figure(rate, *wilson(rate, self.effective, self.level))

    def to_dict(self) -> dict[str, Any]:
        """The ranks as plain values."""
        return {
            "system": self.system,
            "n": self.n,
            "top": {str(k): self.top(k).to_dict() for k in range(1, self.longest + 1)},
            "at": list(self.at),
            "nowhere": self.nowhere,
            "without_list": self.without,
            "out_of_scope": self.out_of_scope,
            "level": self.level,
        }


def list_ranks(responses: Responses, turns: pl.DataFrame | None = None, *, level: float = 0.95) -> ListRanks:
    """Where right labels stand in the lists of one system, read with `keep=("nbest",)`.

    >>> from demur.data.responses import Reading, responses
    >>> lists = [[["a", 0.9], ["b", 0.1]], [["a", 0.6], ["b", 0.4]], [["a", 0.7]]]
    >>> said = {"target": "b", "prediction": "a", "confidence": 0.5}
    >>> rows = [{**said, "nbest": str(one).replace("'", '"')} for one in lists]
    >>> found = list_ranks(responses(rows, reading=Reading(keep=("nbest",))))
    >>> found.at, found.nowhere, round(found.top(2).value, 3)
    ((0.0, 2.0), 1.0, 0.667)
    """
    check_level(level)
    table = label_turns(responses) if turns is None else turns
    weight = responses.frame["weight"].to_numpy()
    listed = (table["acts"].list.len() > 0).to_numpy()
    known = (responses.frame["target"].list.len() > 0).fill_null(value=False).to_numpy()
    held = listed & known
    if not held.any():
        raise DataError(
            "no input has a list of labels and a known right one",
            where=f"{responses.systems[0]}:",
            fix='lists stand in a column nbest, as [{"label": "yes", "confidence": 0.8}, ...]',
        )
    rank, mass = table["rank"].to_numpy()[held], weight[held]
    sums = np.bincount(rank, weights=mass)
    return ListRanks(
        system=responses.systems[0],
        n=int(held.sum()),
        at=tuple(sums[1:].tolist()),
        nowhere=float(sums[NOWHERE]),
        total=float(mass.sum()),
        effective=float(mass.sum() ** 2 / np.square(mass).sum()),
        without=int((known & ~listed).sum()),
        out_of_scope=int((~known).sum()),
        level=level,
    )


def label_turns(responses: Responses) -> pl.DataFrame:
    """A row per input: its list of labels, the rank of the right one (0: nowhere), and what that cost.

    `cost` is -log of the confidence in the right label, not below the floor of the cross entropies; null where no label
    is right or the list has no confidences.
    """
    frame = responses.frame
    if "nbest" not in frame.columns:
        raise DataError(
            "there is no column nbest", where=f"{responses.systems[0]}:", fix='read it with keep=("nbest",)'
        )
    lists = label_lists(frame["nbest"])
    return frame.select(
        "id",
        "dialogue",
        frame["input"] if "input" in frame.columns else pl.lit(None, dtype=pl.String).alias("input"),
        pl.col("target").alias("reference"),
        lists["labels"].list.eval(pl.concat_list(pl.element())).alias("acts"),
        lists["confidence"],
        *_placed(lists, frame["target"]),
        "prediction",
        "right",
        "answered",
        "out_of_scope",
        pl.col("confidence").alias("sure"),
    )


def _placed(lists: pl.DataFrame, target: pl.Series) -> tuple[pl.Series, pl.Series]:
    """The rank of the first right label of each list, and what it cost; null where that is not known."""
    listed = lists.with_columns(target.alias("target")).with_row_index("row").filter(pl.col("labels").list.len() > 0)
    entries = listed.explode("labels", "confidence").with_columns(place=pl.int_range(pl.len()).over("row") + 1)
    known = (pl.col("target").list.len() > 0).fill_null(value=False)
    sure = entries.group_by("row").agg(sure=pl.col("confidence").is_not_null().all(), known=known.first())
    hits = entries.filter(pl.col("target").list.contains(pl.col("labels")).fill_null(value=False))
    first = hits.group_by("row", maintain_order=True).agg(pl.col("place", "confidence").first())
    rows = pl.DataFrame({"row": pl.int_range(lists.height, dtype=pl.UInt32, eager=True)})
    found = rows.join(sure, on="row", how="left").join(first, on="row", how="left").sort("row")
    cost = -pl.col("confidence").fill_null(0.0).clip(FLOOR, 1.0).log() + 0.0
    return (
        found["place"].fill_null(NOWHERE).cast(pl.Int64).alias("rank"),
        found.select(pl.when(pl.col("sure") & pl.col("known")).then(cost).alias("cost")).to_series(),
    )
