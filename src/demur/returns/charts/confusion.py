"""Which labels are taken for which: the confusion table as a heat map, the rejected as a row of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from demur.core.show.charts import Plot, alt, either, finished, inline
from demur.core.show.numbers import count, middle_cut, percent
from demur.returns.classes import ClassReport, Confusion

MOST_LABELS = 20
"""Labels shown unless said otherwise; of more the most confused ones are chosen."""

LOOKED_AT = 1000
"""Confusions that are looked at together for the labels to show."""

OTHER, REJECTED = "(any other label)", "(rejected)"
SCHEMES = {
    "right": ("#deebf7", "#08519c"),
    "wrong": ("#fdecd9", "#a63603"),
    "withheld": ("#eeeeee", "#525252"),
}
"""Light to dark for right predictions, wrong ones and rejections."""


MOST_LEVEL = 8
"""Characters of a label up to which those of a few columns are written level."""


def confusion_chart(report: ClassReport, *, most: int = MOST_LABELS) -> Any:
    """Confusion heat map: columns are actual labels, rows what was predicted, shades shares of the column.

    With more than `most` labels the most confused ones are shown, and all predictions outside them share one row.
    """
    confusion = report.confusion
    labels = most_confused(confusion, most)
    table = confusion_table(confusion, labels)
    rows = [*labels, *(row for row in (OTHER, REJECTED) if row in table["predicted"])]
    step = 56 if len(labels) <= 6 else 34 if len(labels) <= 12 else 24
    layers = _layers(table, labels, rows, numbers=step > 24)
    system = middle_cut(report.system)
    title = f"{system}: no label is taken for another"
    if (worst := confusion.worst) is not None:
        actual, predicted = middle_cut(worst[0]), middle_cut(str(worst[1]))
        title = f"{system}: {actual} is most often taken for {predicted} ({count(worst[2])} times)"
    part = f"all {len(labels)} labels"
    if len(labels) < len(confusion.labels):
        part = f"the {len(labels)} most confused of {len(confusion.labels)} labels"
    rejected = f", {percent(float(confusion.rejected / confusion.total))} rejected" if confusion.rejected else ""
    right = percent(report.figures["accuracy"].value)
    return finished(
        alt.layer(*layers, width=alt.Step(step), height=alt.Step(step)).resolve_scale(color="independent"),
        title=title,
        subtitle=[
            f"n = {count(confusion.n)}",
            part,
            "shade: share of the actual label",
            "blue right, orange wrong" + (", grey rejected" if confusion.rejected else ""),
        ],
        description=f"Confusion table of {system} over {len(confusion.labels)} labels: {right} right{rejected}. "
        f"{title}.",
        table=table,
    )


def most_confused(confusion: Confusion, most: int) -> tuple[str, ...]:
    """All labels where they are few, otherwise those of the largest confusions, confused ones side by side."""
    if len(confusion.labels) <= most:
        return confusion.labels
    chosen: dict[str, None] = {}
    for start in range(0, confusion.wrong.size, LOOKED_AT):
        for actual, predicted, _ in confusion.cells(confusion.wrong[start : start + LOOKED_AT]):
            pair = {actual: None, str(predicted): None}
            if len({**chosen, **pair}) <= most:
                chosen.update(pair)
            if len(chosen) == most:
                return tuple(chosen)
    frequent = np.argsort(-confusion.support, kind="stable")[:most]
    return tuple({**chosen, **{confusion.labels[place]: None for place in frequent}})[:most]


def confusion_table(confusion: Confusion, shown: tuple[str, ...]) -> pl.DataFrame:
    """Filled cells of the shown actual labels: predicted label (others pooled), weight, share of the actual label."""
    cells = confusion.frame()
    known = pl.when(pl.col("predicted").is_in(list(shown))).then("predicted").otherwise(pl.lit(OTHER))
    predicted = pl.when(pl.col("predicted").is_null()).then(pl.lit(REJECTED)).otherwise(known)
    right = pl.when(pl.col("predicted") == pl.col("actual")).then(pl.lit("right")).otherwise(pl.lit("wrong"))
    kind = pl.when(pl.col("predicted") == REJECTED).then(pl.lit("withheld")).otherwise(right)
    return (
        cells.filter(pl.col("actual").is_in(list(shown)))
        .with_columns(predicted=predicted)
        .group_by("actual", "predicted", maintain_order=True)
        .agg(pl.col("weight").sum())
        .with_columns(share=pl.col("weight") / pl.col("weight").sum().over("actual"), kind=kind)
    )


def _layers(table: pl.DataFrame, labels: tuple[str, ...], rows: list[str], *, numbers: bool) -> list[Any]:
    """The shaded cells of each kind, a line above the rejected and, where there is room, the counts."""
    angle = -45 if len(labels) > 3 or max(map(len, labels), default=0) > MOST_LEVEL else 0
    across = alt.Axis(labelAngle=angle, labelLimit=140, grid=False)
    x = alt.X("actual:N", title="actual label", scale=alt.Scale(domain=list(labels)), axis=across)
    along = alt.Axis(labelLimit=160, grid=False, ticks=False)
    up: dict[str, Any] = {"title": "predicted", "scale": alt.Scale(domain=rows), "axis": along}
    y = alt.Y("predicted:N", **up)
    tooltip = [
        alt.Tooltip("actual:N"),
        alt.Tooltip("predicted:N"),
        alt.Tooltip("weight:Q", title="count", format=","),
        alt.Tooltip("share:Q", title="share of the actual label", format=".1%"),
    ]
    layers = []
    for kind, colours in SCHEMES.items():
        if kind in table["kind"]:
            shade = alt.Scale(type="sqrt", domain=[0, 1], range=list(colours))
            cells = Plot().transform_filter(alt.datum.kind == kind).mark_rect(stroke="white", strokeWidth=1)
            layers.append(cells.encode(x, y, color=alt.Color("share:Q", scale=shade, legend=None), tooltip=tooltip))
    if REJECTED in rows:
        line = Plot(inline(pl.DataFrame({"predicted": [REJECTED]}))).mark_rule(color="black", strokeWidth=2)
        layers.append(line.encode(y=alt.Y("predicted:N", bandPosition=0, **up)))
    if numbers:
        ink = either(alt.ColorValue, "(datum.share > 0.3)", "white", "black")
        text = alt.Text("weight:Q", format=",.4~g")
        layers.append(Plot().mark_text(fontSize=11).encode(x, y, text=text, color=ink))
    return layers
