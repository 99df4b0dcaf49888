"""Rows of a lake that are looked at: chosen by a condition and put in order inside the engine, a bounded number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import narwhals as nw
import polars as pl

from demur.core.engines.engine import Lazy, collect_frame
from demur.core.io.tables import LABELS, as_text
from demur.returns.engine_judging import SHOWN, LazyResponses
from demur.returns.examples import Example, Examples, example_of, most_confused

MOST_FETCHED = 100_000
"""Rows that are brought here at most, however many are asked for."""


def fetch_rows(rows: Lazy, order: Sequence[tuple[str, bool]], most: int) -> pl.DataFrame:
    """The first rows in an order of columns, each rising or falling: no more than these leave the engine.

    Columns that are there to be shown lose the mark of their names, and the labels of a row become a list.
    """
    names = rows.collect_schema().names()
    kept = [(name, falling) for name, falling in order if name in names]
    ordered = rows.sort(*(name for name, _ in kept), descending=[falling for _, falling in kept], nulls_last=True)
    return _unmarked(collect_frame(ordered.head(min(most, MOST_FETCHED))))


def _unmarked(frame: pl.DataFrame) -> pl.DataFrame:
    """Rows as they are shown: the labels that were right as a list, empty where none was, null where nobody knows."""
    shown = frame.select(pl.col(name).alias(name.removeprefix(SHOWN)) for name in frame.columns if SHOWN in name)
    rest = frame.select(name for name in frame.columns if SHOWN not in name and name not in shown.columns)
    frame = rest.with_columns(shown)
    if "target" not in frame.columns:
        return frame.with_columns(target=pl.lit(None, LABELS))
    target = frame["target"]
    lists = frame.select(pl.concat_list("target")) if target.dtype == pl.String else frame.select("target")
    nothing = pl.lit([], LABELS)
    return frame.with_columns(target=pl.when("outside").then(nothing).otherwise(lists.to_series())).drop("outside")


def returned_at(threshold: float) -> nw.Expr:
    """Whether an answer is returned at a threshold; at NaN nothing is."""
    answered = nw.col("answered")
    return answered & nw.lit(False) if math.isnan(threshold) else answered & (nw.col("confidence") >= threshold)


SUREST = (("confidence", True), *((SHOWN + name, False) for name in ("id", "prediction", "input")))
"""The order of examples: the surest first, equally sure ones by their ids."""


def lake_examples(judged: LazyResponses, system: str, threshold: float, n: int) -> Examples:
    """What `examples` finds in rows in memory, of rows judged in an engine with what is shown of them."""
    rows, returned = judged.frame, returned_at(threshold)
    right, outside = nw.col("right"), nw.col("out_of_scope")
    kinds = {
        "errors": returned & ~right & ~outside,
        "missed": nw.col("answered") & ~returned & right,
        "scope": returned & outside,
    }
    wanted = {**kinds, "wrong": returned & ~right}
    counts = collect_frame(rows.select(**{name: nw.when(one).then(1).count() for name, one in wanted.items()}))
    found = {name: _surest_rows(rows.filter(one), n) if counts[name].item() else () for name, one in kinds.items()}
    return Examples(
        system=system,
        threshold=float(threshold),
        confident_errors=found["errors"],
        missed_chances=found["missed"],
        out_of_scope_returned=found["scope"],
        errors=counts["wrong"].item(),
        missed=counts["missed"].item(),
        out_of_scope=counts["scope"].item(),
        confusions=most_confused(_confused_labels(rows, returned, n), n),
    )


def _surest_rows(rows: Lazy, n: int) -> tuple[Example, ...]:
    if n == 0:
        return ()
    found = fetch_rows(rows, SUREST, n)
    if "input" in found.columns:
        found = found.with_columns(as_text(found["input"]))
    return tuple(map(example_of, found.iter_rows(named=True)))


def _confused_labels(rows: Lazy, returned: nw.Expr, n: int) -> pl.DataFrame:
    """The most frequent wrong labels by the one label that was right, counted and cut off in the engine."""
    schema: Any = {"actual": pl.String, "prediction": pl.String, "n": pl.Int64, "returned": pl.Int64}
    kinds = rows.collect_schema()
    target, predicted = nw.col(SHOWN + "target"), nw.col(SHOWN + "prediction")
    if SHOWN + "target" not in kinds or n == 0:
        return pl.DataFrame(schema=schema)
    known = nw.col("answered") & ~nw.col("right") & ~nw.col(SHOWN + "outside") & ~predicted.is_null()
    actual = target
    if kinds[SHOWN + "target"] != nw.String:
        known, actual = known & (target.list.len() == 1), target.list.get(0)
    wrong = rows.filter(known).select(actual=actual, prediction=predicted, returned=nw.when(returned).then(1))
    counts = wrong.group_by("actual", "prediction").agg(n=nw.len(), returned=nw.col("returned").count())
    often = counts.filter(nw.col("n") > 1)
    return collect_frame(often.sort("n", "actual", "prediction", descending=[True, False, False]).head(n))
