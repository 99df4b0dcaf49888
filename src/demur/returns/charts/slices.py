"""One measure over several evaluations or slices: dots with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from demur.core.io.columns import nearest
from demur.core.show.charts import WIDTH, Plot, alt, capital, finished, inline, rate_axis, style_of
from demur.core.show.numbers import count, number, percent, with_interval
from demur.errors import UsageError
from demur.returns.evaluate import Evaluation
from demur.returns.presentation import UNITS_OF_PERCENT
from demur.returns.slices import SliceDifferences
from demur.returns.words import cutoff_words, difference_text, measure_title

WHOLE = "all"
SHAPES = ("circle", "diamond", "square", "triangle-up", "cross", "triangle-down", "stroke", "triangle-right")


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
        axis = alt.Axis(labelLimit=220, grid=True, ticks=False, domain=False)
        up = alt.Y(f"{field}:N", title=None, scale=alt.Scale(domain=labels), axis=axis)
        offset = {"yOffset": alt.YOffset("system:N", scale=alt.Scale(domain=systems))}
        channels: dict[str, Any] = {"y": up, **(offset if several else {})}
        self.base = Plot().encode(**channels)
        legend = alt.Legend(title=None, orient="bottom", columns=3, symbolSize=110, rowPadding=2) if several else None
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
