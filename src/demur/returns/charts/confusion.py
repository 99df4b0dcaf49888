"""Which labels are taken for which: the confusion table as a heat map, the rejected as a row of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from demur.core.show.charts import alt, finished, inline
from demur.core.show.numbers import count, percent
from demur.returns.class_report import ClassReport
from demur.returns.classes import Confusion

MOST_LABELS = 20
"""Labels shown unless said otherwise; of more the most confused ones are chosen."""

OTHER, REJECTED = "(any other label)", "(rejected)"
SCHEMES = {
    "right": ("#deebf7", "#08519c"),
    "wrong": ("#fdecd9", "#a63603"),
    "withheld": ("#eeeeee", "#525252"),
}
"""Light to dark for right predictions, wrong ones and rejections."""


def confusion_chart(report: ClassReport, *, most: int = MOST_LABELS) -> Any:
    """Confusion heat map: columns are actual labels, rows what was predicted, shades shares of the column.

    With more than `most` labels the most confused ones are shown, and all predictions outside them share one row.
    """
    confusion = report.confusion
    shown = most_confused(confusion, most)
    table = confusion_table(confusion, shown)
    rows = [*shown, *(row for row in (OTHER, REJECTED) if row in table["predicted"])]
    step = 56 if len(shown) <= 6 else 34 if len(shown) <= 12 else 24
    layers = [_cells(kind, shown, rows) for kind in SCHEMES if kind in table["kind"]]
    if REJECTED in rows:
        layers.append(_line_above_rejected(shown, rows))
    if step > 24:
        layers.append(_cell_numbers(shown, rows))
    part = (
        f"the {len(shown)} most confused of {len(confusion.labels)} labels"
        if len(shown) < len(confusion.labels)
        else f"all {len(shown)} labels"
    )
    return finished(
        alt.layer(*layers).properties(width=alt.Step(step), height=alt.Step(step)).resolve_scale(color="independent"),
        title=_confusion_title(report),
        subtitle=[
            f"n = {count(confusion.n)}",
            part,
            "shade: share of the actual label",
            "blue right, orange wrong" + (", grey rejected" if confusion.rejected else ""),
        ],
        description=_description(report),
        table=table,
    )


def most_confused(confusion: Confusion, most: int) -> tuple[str, ...]:
    """All labels where they are few, else those of the largest confusions, confused ones side by side."""
    if len(confusion.labels) <= most:
        return confusion.labels
    wrong = confusion.counts[:-1].copy()
    np.fill_diagonal(wrong, 0.0)
    chosen: dict[str, None] = {}
    for place in np.argsort(-wrong, axis=None, kind="stable"):
        predicted, actual = divmod(int(place), len(confusion.labels))
        pair = {confusion.labels[actual]: None, confusion.labels[predicted]: None}
        if len({**chosen, **pair}) <= most:
            chosen.update(pair)
        if len(chosen) == most or not wrong.flat[place]:
            break
    return tuple(chosen)


def confusion_table(confusion: Confusion, shown: tuple[str, ...]) -> pl.DataFrame:
    """Filled cells of the shown actual labels: predicted label (others pooled), weight, share of the actual label."""
    cells = pl.DataFrame(
        confusion.cells(), schema={"actual": pl.String, "predicted": pl.String, "weight": pl.Float64}, orient="row"
    )
    inside = pl.col("predicted").is_in(list(shown))
    predicted = (
        pl.when(pl.col("predicted").is_null())
        .then(pl.lit(REJECTED))
        .when(inside)
        .then("predicted")
        .otherwise(pl.lit(OTHER))
    )
    kind = (
        pl.when(pl.col("predicted") == REJECTED)
        .then(pl.lit("withheld"))
        .when(pl.col("predicted") == pl.col("actual"))
        .then(pl.lit("right"))
        .otherwise(pl.lit("wrong"))
    )
    return (
        cells.filter(pl.col("actual").is_in(list(shown)))
        .with_columns(predicted=predicted)
        .group_by("actual", "predicted", maintain_order=True)
        .agg(pl.col("weight").sum())
        .with_columns(share=pl.col("weight") / pl.col("weight").sum().over("actual"), kind=kind)
    )


def _axes(shown: tuple[str, ...], rows: list[str]) -> tuple[Any, Any]:
    return (
        alt.X(
            "actual:N",
            title="actual label",
            scale=alt.Scale(domain=list(shown)),
            axis=alt.Axis(labelAngle=-45 if len(shown) > 3 else 0, labelLimit=140, grid=False),
        ),
        alt.Y(
            "predicted:N",
            title="predicted",
            scale=alt.Scale(domain=rows),
            axis=alt.Axis(labelLimit=160, grid=False, ticks=False),
        ),
    )


def _cells(kind: str, shown: tuple[str, ...], rows: list[str]) -> Any:
    told = [
        alt.Tooltip("actual:N"),
        alt.Tooltip("predicted:N"),
        alt.Tooltip("weight:Q", title="count", format=","),
        alt.Tooltip("share:Q", title="share of the actual label", format=".1%"),
    ]
    shade = alt.Color("share:Q", scale=alt.Scale(type="sqrt", domain=[0, 1], range=list(SCHEMES[kind])), legend=None)
    chart = alt.Chart().transform_filter(alt.datum.kind == kind).mark_rect(stroke="white", strokeWidth=1)
    return chart.encode(*_axes(shown, rows), color=shade, tooltip=told)


def _line_above_rejected(shown: tuple[str, ...], rows: list[str]) -> Any:
    _, up = _axes(shown, rows)
    up.bandPosition = 0
    return (
        alt.Chart(inline(pl.DataFrame({"predicted": [REJECTED]}))).mark_rule(color="black", strokeWidth=2).encode(y=up)
    )


def _cell_numbers(shown: tuple[str, ...], rows: list[str]) -> Any:
    ink = alt.condition(alt.datum.share > 0.3, alt.value("white"), alt.value("black"))
    return (
        alt.Chart()
        .mark_text(fontSize=11)
        .encode(*_axes(shown, rows), text=alt.Text("weight:Q", format=",.4~g"), color=ink)
    )


def _worst(confusion: Confusion) -> tuple[str, str, float] | None:
    wrong = [
        (actual, predicted, weight)
        for actual, predicted, weight in confusion.cells()
        if predicted not in (None, actual)
    ]
    if not wrong:
        return None
    actual, predicted, weight = max(wrong, key=lambda cell: cell[2])
    return actual, str(predicted), weight


def _confusion_title(report: ClassReport) -> str:
    worst = _worst(report.confusion)
    if worst is None:
        return f"{report.system}: no label is taken for another"
    return f"{report.system}: {worst[0]} is most often taken for {worst[1]} ({count(worst[2])} times)"


def _description(report: ClassReport) -> str:
    confusion = report.confusion
    rejected = f", {percent(float(confusion.rejected / confusion.total))} rejected" if confusion.rejected else ""
    right = percent(report.figures["accuracy"].value)
    over = f"{report.system} over {len(confusion.labels)} labels"
    return f"Confusion table of {over}: {right} right{rejected}. {_confusion_title(report)}."
