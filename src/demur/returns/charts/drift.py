"""An old log and a new one: the distributions of their confidences, and their error-return curves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl

from demur.core.show.charts import (
    HEIGHT,
    WIDTH,
    Plot,
    alt,
    finished,
    hover_layer,
    inline,
    legend_corner,
    line_channels,
    number_axis,
    padded,
    rate_axis,
    upright,
)
from demur.core.show.html import evenly
from demur.core.show.numbers import count, percent
from demur.core.show.results import threshold_text
from demur.core.stats.resampling import Sample
from demur.returns.charts.error_return import error_return_chart
from demur.returns.curves import error_band, error_return
from demur.returns.drift.analysis import Drift
from demur.returns.drift.changes import Log
from demur.returns.drift.views import confidence_title, error_title
from demur.returns.words import Bare

SIDES = ("old", "new")
MOST_STEPS = 800
"""Steps of a distribution that are drawn."""


def confidence_drift_chart(drift: Drift) -> Any:
    """The share of answers of at most each confidence, in the old and the new log, with the threshold marked."""
    tables = [_steps(log, side) for side, log in zip(SIDES, drift.logs.sides, strict=True)]
    table = pl.concat(tables)
    domain = padded(table["confidence"].to_numpy(), air=0.0)
    scaled = (table["confidence"].to_numpy() - domain[0]) / (domain[1] - domain[0])
    heights = table["share"].to_numpy()
    corner, reach = legend_corner(scaled, heights, heights, (0.0, 1.02), rows=2)
    axes = (
        number_axis("confidence", "confidence of an answer", domain),
        rate_axis(alt.Y, "share", "share of answers of at most this confidence", domain=reach),
    )
    lines = Plot().mark_line(interpolate="step-after", clip=True)
    layers = [lines.encode(*axes, *line_channels(SIDES, corner=corner, field="log"), order=alt.Order("confidence:Q"))]
    layers += _threshold_layers(drift, domain)
    hover = pl.concat([evenly(one, 120) for one in tables])
    written = hover.with_columns(
        pl.Series("answers with confidence", [f"≤ {threshold_text(one)}" for one in hover["confidence"]]),
        pl.Series("share", [percent(one) for one in hover["share"]]).alias("share of answers"),
    )
    layers.append(hover_layer(written, "confidence", "share"))
    answers = [count(int(log.rows.answered.sum())) for log in drift.logs.sides]
    names = [log.name for log in drift.logs.sides]
    sizes = [f"{side} ({name}): {size} answers" for side, name, size in zip(SIDES, names, answers, strict=True)]
    title = confidence_title(drift)
    return finished(
        alt.layer(*layers, width=WIDTH, height=HEIGHT),
        title=title,
        subtitle=[*sizes, f"intervals and p corrected for {drift.tests} tests"],
        description=f"Cumulative distributions of confidences in the old and the new log. {title}.",
        table=table,
    )


def _steps(log: Log, side: str) -> pl.DataFrame:
    """The cumulative distribution of a log's finite confidences."""
    kept = log.rows.answered
    values, weights = log.rows.confidence[kept], log.rows.weight[kept]
    levels, places = np.unique(values, return_inverse=True)
    share = np.cumsum(np.bincount(places, weights)) / weights.sum()
    table = pl.DataFrame({"log": side, "confidence": levels, "share": share})
    return evenly(table.filter(pl.col("confidence").is_finite()), MOST_STEPS)


def _threshold_layers(drift: Drift, domain: tuple[float, float]) -> list[Any]:
    """A line at the threshold, named."""
    threshold = drift.threshold
    if threshold is None or not domain[0] <= threshold <= domain[1]:
        return []
    left = threshold > (domain[0] + domain[1]) / 2
    name = pl.DataFrame({"at": [threshold], "height": [0.02], "text": [f"threshold {drift.printed_threshold}"]})
    text = Plot(inline(name)).mark_text(align="right" if left else "left", dx=-5 if left else 5, fontSize=12)
    return [
        upright(threshold, color="#444444", strokeWidth=1, strokeDash=[5, 3]),
        text.encode(x=alt.X("at:Q"), y=alt.Y("height:Q"), text=alt.Text("text:N")),
    ]


def drift_curves_chart(drift: Drift) -> Any:
    """The error-return curves of both logs with their bands, and what the threshold does to each."""
    drawn, marks = [], []
    for side, log in zip(SIDES, drift.logs.sides, strict=True):
        curve = error_return(log.rows.sweep(), name=side)
        band = error_band(Sample(log.rows), name=side, level=drift.level)
        drawn.append(Bare(curve, band, log.rows.unit is not None))
        if drift.threshold is not None and not math.isnan(drift.threshold):
            marks.append((*curve.at_threshold(drift.threshold), side))
    promise = drift.promise
    limits = () if promise is None or promise.what != "error" else (promise.bound,)
    title = error_title(drift)
    return error_return_chart(drawn, region=None, references=False, title=title, marks=marks, limits=limits)
