"""Charts of parts of a log: by slice, by class with its confusions, by period."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from demur.core.io.columns import nearest
from demur.core.show.charts import (
    HEIGHT,
    WIDTH,
    Plot,
    alt,
    capital,
    either,
    finished,
    hover_layer,
    inline,
    labels_that_fit,
    legend_corner,
    line_channels,
    number_axis,
    padded,
    plot_size,
    rate_axis,
    rename_expression,
    style_of,
    upright,
)
from demur.core.show.html import evenly
from demur.core.show.numbers import count, middle_cut, number, percent, shorten, with_interval
from demur.core.show.results import threshold_text
from demur.core.stats.resampling import Sample
from demur.errors import UsageError
from demur.returns.charts.error_return import error_return_chart
from demur.returns.classes import ClassReport, Confusion
from demur.returns.curves import error_band, error_return
from demur.returns.drift.analysis import Drift
from demur.returns.drift.changes import Log
from demur.returns.drift.views import confidence_title, error_title
from demur.returns.evaluate import Evaluation
from demur.returns.presentation import UNITS_OF_PERCENT
from demur.returns.slices import SliceDifferences
from demur.returns.words import Bare, cutoff_words, difference_text, measure_title

WHOLE = "all"
SHAPES = ("circle", "diamond", "square", "triangle-up", "cross", "triangle-down", "triangle-left", "triangle-right")

MOST_LABELS, LEAST_STEP = 20, 22
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

SIDES = ("old", "new")
MOST_STEPS = 800
"""Steps of a distribution that are drawn."""


def measure_chart(evaluations: Sequence[Evaluation], name: str) -> Any:
    """Dots with intervals of one measure: a row per slice (or system), a shape per system, n beside it."""
    if not evaluations:
        raise UsageError("a figure needs at least one evaluation; got none")
    known = evaluations[0].measures
    if name not in known:
        raise UsageError(f'there is no measure "{name}" ({nearest(name, list(known))})')
    table, title = measure_rows(evaluations, name), measure_title(known[name])
    systems = list(dict.fromkeys(one.system for one in evaluations))
    labels = table["row"].unique(maintain_order=True).to_list()
    several = len(systems) > 1 and labels != systems
    forest = _Forest(systems, labels, "row", several)
    defined = table.filter(pl.col("value").is_finite())
    ends = [*defined["value"], *defined["low"].drop_nans(), *defined["high"].drop_nans()] or [0.0, 1.0]
    form = {} if name in UNITS_OF_PERCENT else {"format": ".3~g", "labelExpr": "datum.label"}
    tooltip = [alt.Tooltip("text:N", title=title), alt.Tooltip("size:N", title="inputs")]
    dots = forest.base.mark_point(filled=True, size=95, opacity=1, stroke="white", strokeWidth=0.8)
    layers = [forest.intervals(title, ends, **form), forest.marked(dots, "value", tooltip)]
    if not several:
        sizes = forest.base.mark_text(align="left", fontSize=11, color="#555555", dx=8)
        layers.append(sizes.encode(x=alt.XValue("width"), text=alt.Text("size:N")))
    whole = table.filter(pl.col("row") == WHOLE)
    line = []
    if len(systems) == 1 and not whole.is_empty():  # with slices of one system, a line at the value of all rows
        layers.insert(0, _dashed_line(whole, "value"))
        line = ["dashed line: all rows"]
    undefined = table.filter(pl.col("value").is_nan())["row"].unique(maintain_order=True).to_list()
    level = percent(evaluations[0].level)
    return finished(
        alt.layer(*layers, width=WIDTH, height=forest.height(16, 8)),
        title=_measure_title(table, capital(title), known[name].better, name),
        subtitle=[
            f"{level} intervals",
            f"{known[name].better} is better",
            *line,
            *(["where ties leave no such cutoff, the nearest below"] if _tied(evaluations, name) else []),
            *([f"undefined: {', '.join(undefined)}"] if undefined else []),
        ],
        description=f"{title}, {level} intervals: {'; '.join(table['text'].head(12))}.",
        table=table,
    )


def _tied(evaluations: Sequence[Evaluation], name: str) -> bool:
    """Whether ties keep a reading at a point from what was asked."""
    return any(cutoff_words(one, name) for one in evaluations)


def measure_rows(evaluations: Sequence[Evaluation], name: str) -> pl.DataFrame:
    """One row per evaluation: system, slice, n, value and interval."""
    sliced = any(one.part is not None for one in evaluations)
    rows = []
    for one in evaluations:
        figure = one.figures[name]
        write = percent if name in UNITS_OF_PERCENT else number
        label = (one.part or WHOLE) if sliced else one.system
        value = with_interval(figure.value, figure.low, figure.high, write=write)
        text = f"{one.name} {value}{cutoff_words(one, name)}"
        rows.append((one.system, label, one.n, figure.value, figure.low, figure.high, f"n = {count(one.n)}", text))
    columns = ("system", "row", "n", "value", "low", "high", "size", "text")
    return pl.DataFrame(rows, schema=columns, orient="row", infer_schema_length=None)


class _Forest:
    """The shared parts of dots with intervals: a row per label, and a colour and a shape per system."""

    def __init__(self, systems: list[str], labels: list[str], field: str, several: bool) -> None:
        self.systems, self.labels, self.several = systems, labels, several
        short = labels_that_fit(labels, 32)
        axis = alt.Axis(labelLimit=220, grid=True, ticks=False, domain=False, labelExpr=short)
        up = alt.Y(f"{field}:N", title=None, scale=alt.Scale(domain=labels), axis=axis)
        offset = {"yOffset": alt.YOffset("system:N", scale=alt.Scale(domain=systems))}
        channels: dict[str, Any] = {"y": up, **(offset if several else {})}
        self.base = Plot().encode(**channels)
        form: dict[str, Any] = {"orient": "bottom", "columns": 3, "symbolSize": 110, "rowPadding": 2}
        form["labelExpr"] = rename_expression(shorten(systems, 28))
        legend = alt.Legend(title=None, **form) if several else None
        places = range(len(systems))
        colours = alt.Scale(domain=systems, range=[style_of(place).colour for place in places])
        shapes = alt.Scale(domain=systems, range=[SHAPES[place % len(SHAPES)] for place in places])
        self.colour = alt.Color("system:N", scale=colours, legend=legend)
        self.shape = alt.Shape("system:N", scale=shapes, legend=legend)

    def intervals(self, title: str, ends: Sequence[float], **form: Any) -> Any:
        """Bars from `low` to `high` over an axis with room for all the ends."""
        air = 0.06 * max(max(ends) - min(ends), 1e-6)
        across = rate_axis(alt.X, "low", title, domain=(min(ends) - air, max(ends) + air), **form)
        return self.base.mark_rule(strokeWidth=2).encode(across, x2=alt.X2("high:Q"), color=self.colour)

    def marked(self, dots: Any, field: str, tooltip: list[Any]) -> Any:
        """Dots at a column of the table."""
        return dots.encode(x=alt.X(f"{field}:Q"), color=self.colour, shape=self.shape, tooltip=tooltip)

    def height(self, step: int, gap: int) -> int:
        """Pixels for all rows, with `step` for each system of a row."""
        return max(1, len(self.labels)) * (step * len(self.systems) + gap if self.several else 26)


def _dashed_line(table: pl.DataFrame, field: str) -> Any:
    return Plot(inline(table)).mark_rule(color="#777777", strokeDash=[3, 3]).encode(x=alt.X(f"{field}:Q"))


def _measure_title(table: pl.DataFrame, title: str, better: str, name: str) -> str:
    known = table.filter(pl.col("value").is_finite() & (pl.col("row") != WHOLE)).sort("value")
    if known.height < 2:
        return title
    write = percent if name in UNITS_OF_PERCENT else number
    worst = known.row(-1 if better == "lower" else 0, named=True)
    of = f" of {worst['system']}" if worst["system"] != worst["row"] and table["system"].n_unique() > 1 else ""
    return f"{title}: worst on {worst['row']}{of}, {write(worst['value'])}"


MOST_DRAWN = 16
"""Slices that the figure shows."""


def slice_difference_chart(found: SliceDifferences) -> Any:
    """Error rate of slices less that of the rest, with intervals: the clearest slices, the worst on top."""
    errors = [test for test in found.tests if test.what == "error"]
    parts = list(dict.fromkeys(test.part for test in errors))[:MOST_DRAWN]
    drawn = sorted((test for test in errors if test.part in parts), key=lambda test: -test.difference)
    systems = list(dict.fromkeys(found.thresholds))
    shown = {test for test in found.shown if test.what == "error"}
    rows = []
    for test in drawn:
        state, text = "shown" if test in shown else "not shown", f"{test.system}, {test.part}: {difference_text(test)}"
        rows.append((test.system, test.part, test.n, test.difference, test.low, test.high, state, text))
    columns = ("system", "slice", "inputs", "difference", "low", "high", "differs", "text")
    table = pl.DataFrame(rows, schema=columns, orient="row", infer_schema_length=None)
    left = f" · the clearest {len(parts)} slices" if len({test.part for test in errors}) > len(parts) else ""
    labels = table["slice"].unique(maintain_order=True).to_list()
    forest = _Forest(systems, labels, "slice", len(systems) > 1)
    tooltip = [alt.Tooltip("text:N", title="slice"), alt.Tooltip("inputs:Q", title="inputs", format=",")]
    hollow, filled = (forest.base.transform_filter(f"datum.differs {sign} 'shown'") for sign in ("!=", "=="))
    look: dict[str, Any] = {"size": 90, "opacity": 1, "strokeWidth": 1.6}
    layers = [
        _dashed_line(pl.DataFrame({"at": [0.0]}), "at"),
        forest.intervals("error rate on the slice less that on the rest", [0.0, *table["low"], *table["high"]]),
        forest.marked(hollow.mark_point(filled=False, fill="white", **look), "difference", tooltip),
        forest.marked(filled.mark_point(filled=True, **look), "difference", tooltip),
    ]
    return finished(
        alt.layer(*layers, width=WIDTH, height=forest.height(13, 10)),
        title=_slice_title(found),
        subtitle=[
            f"{percent(found.level)} intervals of each difference{left}",
            "filled: shown to differ after correction for all tests",
        ],
        description=f"Error rate on each slice less that on the rest: {'; '.join(table['text'].head(12))}.",
        table=table,
    )


def _slice_title(found: SliceDifferences) -> str:
    worse = [test for test in found.shown if test.what == "error" and test.difference > 0]
    if not worse:
        return "No slice has significantly more errors than the rest"
    worst = max(worse, key=lambda test: test.difference)
    errs = f"{worst.system} errs" if len(found.thresholds) > 1 else "Errors are"
    return f"{errs} most above the rest on {worst.part}: {percent(worst.inside)} against {percent(worst.outside)}"


def confusion_chart(report: ClassReport, *, most: int = MOST_LABELS) -> Any:
    """Confusion heat map: columns are actual labels, rows what was predicted, shades shares of the column.

    With more than `most` labels, fewer in narrow figures, the most confused ones are shown, and all predictions
    outside them share one row.
    """
    confusion = report.confusion
    labels = most_confused(confusion, min(most, int(plot_size()[0] / LEAST_STEP)))
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
    across = alt.Axis(labelAngle=angle, labelLimit=140, grid=False, labelExpr=labels_that_fit(labels, 20))
    x = alt.X("actual:N", title="actual label", scale=alt.Scale(domain=list(labels)), axis=across)
    along = alt.Axis(labelLimit=160, grid=False, ticks=False, labelExpr=labels_that_fit(labels, 20))
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
