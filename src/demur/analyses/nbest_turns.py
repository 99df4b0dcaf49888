"""What each utterance adds to the measures of its system's N-best lists: where its errors come from, turn by turn."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.analyses.nbest import Manner
from demur.data.item_sets import ItemSets
from demur.data.nbest import NBest
from demur.measures.exploded import exploded
from demur.measures.unit_totals import Taken

ITEMS = pl.List(pl.String)


def act_turns(nbest: NBest, manner: Manner | None = None) -> pl.DataFrame:
    """A row per utterance: what was meant, its list, and its own share of the error counts and of the ICE.

    `ice` is what its items cost, `ser` the errors of the surest hypothesis, `wser` those expected under confidences,
    `oracle` those of the best hypothesis, `meant` the items meant. Sums of these over utterances, divided by that of
    `meant`, are the measures (where all utterances weigh the same). `right` says whether the surest is what was meant,
    and `sure` how sure it is; null where the list is empty.

    >>> from demur.data.nbest import nbest
    >>> hypotheses = [{"items": ["b"], "confidence": 0.5}, {"items": ["a"], "confidence": 0.5}]
    >>> row, = act_turns(nbest([{"reference": ["a"], "hypotheses": hypotheses}])).to_dicts()
    >>> row["reference"], row["acts"], row["ser"], row["wser"], row["oracle"], round(row["ice"], 4), row["right"]
    (['a'], [['b'], ['a']], 1.0, 0.5, 0.0, 1.3863, False)
    """
    how = manner or Manner()
    rows = exploded(nbest)
    of_acts = {key: measure for key, measure in how.of_acts().items() if key in ("ser", "wser", "oracle")}
    of_items = {key: measure for key, measure in how.of_items().items() if key == "ice"}
    sums = Taken(nbest, rows, None).totals(of_acts, of_items)
    weight = nbest.frame["weight"].replace(0.0, 1.0).to_numpy()[:, None]
    share = {key: sums.table[:, sums.columns[key]] / weight for key in sums.measures}
    first = rows.acts.filter("top")
    own = ("id", "system", "dialogue", "weight")
    return nbest.frame.select(
        "id",
        "system",
        "dialogue",
        *(name for name in nbest.frame.columns if name not in own),
        pl.Series("reference", _items(nbest.sets, nbest.reference), dtype=ITEMS),
        pl.Series("acts", _nested(_items(nbest.sets, nbest.act), nbest.start), dtype=pl.List(ITEMS)),
        pl.Series("confidence", _nested(nbest.confidence.tolist(), nbest.start), dtype=pl.List(pl.Float64)),
        *(pl.Series(key, values[:, 0] + 0.0) for key, values in share.items()),
        pl.Series("meant", share["ice"][:, 1]),
        first["right"],
        first.select(pl.when("answered").then("confidence").alias("sure")).to_series(),
    )


def _items(sets: ItemSets, codes: NDArray[np.int32]) -> list[tuple[str, ...]]:
    known = {code: sets.items_of(code) for code in np.unique(codes).tolist()}
    return [known[code] for code in codes.tolist()]


def _nested(values: list[Any], start: NDArray[np.int64]) -> list[list[Any]]:
    ends = start.tolist()
    return [values[a:b] for a, b in pairwise(ends)]
