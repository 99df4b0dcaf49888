"""Systems that were never tried, by the outcome that a model predicts for them, against the naive guess."""

from __future__ import annotations

import math
from typing import Any

import polars as pl

from demur.measures.intervals import Figure
from demur.views.drawing import WIDTH, alt, finished, inline
from demur.views.names import middle_cut
from demur.views.nbest_rows import aligned, extent, interval_words, refuse_repeats, short, tidy, with_interval
from demur.views.numbers import count
from demur.views.outcome_rows import name_axis, number_axis, upright

ROW = 25
"""Pixels of one system."""

REASON_LETTERS = 88
"""Letters of a refusal that fit in the plot; all of it is in the tooltip and the description."""


def predicted_chart(
    rows: pl.DataFrame, *, outcome: str, naive: Figure, level: float = 0.95, title: str | None = None
) -> Any:
    """Systems by predicted outcome, the highest first, with intervals; the naive guess as a line in a band.

    Columns of `rows`: `system`, `predicted`, `low` and `high` (null or NaN where there is no interval) and `refused`
    (why nothing is predicted, else null). Systems that are refused stand last, with the reason in place of a dot; where
    there is a prediction all the same, it is drawn hollow.
    """
    table = tidy(rows, {"system": pl.String, "refused": pl.String}, ("predicted", "low", "high"))
    refuse_repeats(table, "system")
    marked = _marked(table)
    return finished(
        alt.layer(*_layers(marked, outcome, naive)).properties(width=WIDTH - 110, height=ROW * table.height),
        title=title or _title(marked, outcome, naive),
        subtitle=_words(marked, naive, level),
        description=_description(marked, outcome, naive),
        table=marked,
    )


def _marked(table: pl.DataFrame) -> pl.DataFrame:
    """Systems from the highest prediction to the lowest, then the others, with what is written beside each."""
    written = iter(aligned(table.select("predicted", "low", "high").to_numpy().ravel().tolist()))
    told = [_told(row, next(written), next(written), next(written)) for row in table.iter_rows(named=True)]
    missing = pl.col("predicted").is_nan()
    ordered = table.with_columns(told=pl.Series(told), hollow=pl.col("refused").is_not_null() & ~missing)
    return ordered.sort(missing, -pl.col("predicted"), maintain_order=True)


def _told(row: dict[str, Any], value: str, low: str, high: str) -> str:
    if not math.isnan(row["predicted"]):
        return value if math.isnan(row["low"]) or math.isnan(row["high"]) else f"{value} ({low} to {high})"
    return "undefined" if row["refused"] is None else f"refused: {row['refused']}"


def _layers(marked: pl.DataFrame, outcome: str, naive: Figure) -> list[Any]:
    ends = pl.DataFrame({"predicted": [naive.value], "low": [naive.low], "high": [naive.high]})
    domain = extent(pl.concat([marked.select(ends.columns), ends]), ends.columns, air=0.06)
    up = name_axis("system", marked["system"].to_list(), letters=34)
    across = number_axis("predicted", f"predicted {outcome}", domain)
    base = alt.Chart().encode(y=up)
    full = alt.condition("datum.hollow", alt.value("white"), alt.value("black"))
    dot = base.transform_filter("isValid(datum.predicted)").mark_point(
        shape="circle", size=80, stroke="black", strokeWidth=1.6, opacity=1
    )
    told = [alt.Tooltip("system:N"), alt.Tooltip("told:N", title=f"predicted {outcome}"), alt.Tooltip("refused:N")]
    beside = base.transform_filter("isValid(datum.predicted)").mark_text(align="left", dx=8, fontSize=11)
    return [
        *_naive_layers(naive),
        base.mark_rule(strokeWidth=2, color="#555555").encode(x="low:Q", x2="high:Q"),
        dot.encode(across, fill=full, tooltip=told),
        beside.encode(x=alt.value("width"), text="told:N"),
        *_reasons(marked, up),
    ]


def _naive_layers(naive: Figure) -> list[Any]:
    if not naive.defined:
        return []
    line = upright(naive.value, color="#777777", strokeWidth=1.5, strokeDash=[5, 4])
    if math.isnan(naive.low) or math.isnan(naive.high):
        return [line]
    band = alt.Chart(inline(pl.DataFrame({"low": [naive.low], "high": [naive.high]}))).mark_rect(color="#e4e4e4")
    return [band.encode(x="low:Q", x2="high:Q"), line]


def _reasons(marked: pl.DataFrame, up: Any) -> list[Any]:
    """Why nothing is predicted, in place of a dot."""
    lost = marked.filter(pl.col("predicted").is_nan())
    if lost.is_empty():
        return []
    words = [middle_cut(told, REASON_LETTERS, tail=0) for told in lost["told"]]
    data = lost.select("system", "told").with_columns(reason=pl.Series(words))
    look: dict[str, Any] = {"align": "left", "fontSize": 11, "fontStyle": "italic"}
    base = alt.Chart(inline(data)).encode(y=up, x=alt.value(8), text="reason:N")
    told = [alt.Tooltip("system:N"), alt.Tooltip("told:N")]
    return [
        base.mark_text(**look, stroke="white", strokeWidth=4, strokeJoin="round"),
        base.mark_text(**look, color="#1a1a1a").encode(tooltip=told),
    ]


def _title(marked: pl.DataFrame, outcome: str, naive: Figure) -> str:
    known = marked.filter(pl.col("predicted").is_not_nan())
    if known.is_empty():
        if marked["refused"].null_count():
            return f"There is no prediction of {outcome}"
        who = marked["system"][0] if marked.height == 1 else f"all {marked.height} systems"
        return f"Too unlike the training data to predict {outcome}: {who}"
    name, value = known.row(0, named=True)["system"], known["predicted"][0]
    beside = f"; the naive guess is {short(naive.value)}" if naive.defined else ""
    if marked.height == 1:
        return f"{name} has a predicted {outcome} of {short(value)}{beside}"
    tied = known.height > 1 and known["predicted"][1] == value
    most = "no lower predicted" if tied else "the highest predicted"
    return f"{name} has {most} {outcome}{' than any other' if tied else ''}, {short(value)}{beside}"


def _words(marked: pl.DataFrame, naive: Figure, level: float) -> list[str]:
    refused = marked.filter(pl.col("refused").is_not_null() & pl.col("predicted").is_nan()).height
    hollow = int(marked["hollow"].sum())
    banded = naive.defined and not math.isnan(naive.low)
    return [
        *(interval_words(marked, "lines", level) if marked["predicted"].is_finite().any() else []),
        *(["dashed: the naive guess" + (" with its interval" if banded else "")] if naive.defined else []),
        *([f"{count(refused)} refused as unlike the training data"] if refused else []),
        *(["hollow: beyond the training data"] if hollow else []),
    ]


def _description(marked: pl.DataFrame, outcome: str, naive: Figure) -> str:
    told = "; ".join(f"{row['system']} {row['told']}" for row in marked.iter_rows(named=True))
    guess = f" The naive guess is {with_interval(naive.value, naive.low, naive.high)}." if naive.defined else ""
    return f"Predicted {outcome} of systems, the highest first. {told}.{guess}"
