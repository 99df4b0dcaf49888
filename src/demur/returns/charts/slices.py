"""One measure over several evaluations or slices: dots with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from demur.core.io.columns import nearest
from demur.core.show.charts import WIDTH, alt, finished, inline, rate_axis, style_of
from demur.core.show.numbers import count, number, percent, with_interval
from demur.errors import UsageError
from demur.returns.evaluate import Evaluation
from demur.returns.presentation import UNITS_OF_PERCENT
from demur.returns.slices import SliceDifference, SliceDifferences
from demur.returns.words import difference_told, measure_title

WHOLE = "all"
SHAPES = ("circle", "diamond", "square", "triangle-up", "cross", "triangle-down", "stroke", "triangle-right")


def measure_chart(evaluations: Sequence[Evaluation], name: str) -> Any:
    """Dots with intervals of one measure: a row per slice (or system), a shape per system, n beside it."""
    if not evaluations:
        raise UsageError("a figure needs at least one evaluation; got none")
    known = evaluations[0].measures
    if name not in known:
        raise UsageError(f'there is no measure "{name}" ({nearest(name, list(known))})')
    table = measure_rows(evaluations, name)
    systems = list(dict.fromkeys(one.system for one in evaluations))
    chart = _forest(table, systems, name, measure_title(known[name]))
    level = percent(evaluations[0].level)
    return finished(
        chart,
        title=_title(table, measure_title(known[name]), known[name].better, name),
        subtitle=[
            f"{level} intervals",
            f"{known[name].better} is better",
            *_line_words(table, systems),
            *_undefined(table),
        ],
        description=f"{measure_title(known[name])}, {level} intervals: {'; '.join(table['told'].head(12))}.",
        table=table,
    )


def measure_rows(evaluations: Sequence[Evaluation], name: str) -> pl.DataFrame:
    """One row per evaluation: system, slice, n, value and interval."""
    sliced = any(one.part is not None for one in evaluations)
    rows = []
    for one in evaluations:
        figure = one.figures[name]
        write = percent if name in UNITS_OF_PERCENT else number
        label = (one.part or WHOLE) if sliced else one.system
        told = f"{one.name} {with_interval(figure.value, figure.low, figure.high, write=write)}"
        rows.append((one.system, label, one.n, figure.value, figure.low, figure.high, f"n = {count(one.n)}", told))
    columns = ("system", "row", "n", "value", "low", "high", "size", "told")
    return pl.DataFrame(rows, schema=columns, orient="row", infer_schema_length=None)


def _forest(table: pl.DataFrame, systems: list[str], name: str, title: str) -> Any:
    labels = table["row"].unique(maintain_order=True).to_list()
    several = len(systems) > 1 and labels != systems
    up = alt.Y(
        "row:N",
        title=None,
        scale=alt.Scale(domain=labels),
        axis=alt.Axis(labelLimit=220, grid=True, ticks=False, domain=False),
    )
    offset: dict[str, Any] = {"yOffset": alt.YOffset("system:N", scale=alt.Scale(domain=systems))} if several else {}
    colour, shape = _marks(systems, legend=several)
    base = alt.Chart().encode(y=up, **offset)
    span = base.mark_rule(strokeWidth=2).encode(_axis(table, name, title), x2="high:Q", color=colour)
    dot = base.mark_point(filled=True, size=95, opacity=1, stroke="white", strokeWidth=0.8).encode(
        x="value:Q",
        color=colour,
        shape=shape,
        tooltip=[alt.Tooltip("told:N", title=title), alt.Tooltip("size:N", title="inputs")],
    )
    sizes = base.mark_text(align="left", fontSize=11, color="#555555", dx=8).encode(x=alt.value("width"), text="size:N")
    height = max(1, len(labels)) * (26 if not several else 16 * len(systems) + 8)
    shown = alt.layer(*_whole_rule(table, systems), span, dot, *([] if several else [sizes]))
    return shown.properties(width=WIDTH, height=height)


def _axis(table: pl.DataFrame, name: str, title: str) -> Any:
    known = table.filter(pl.col("value").is_finite())
    least = float(
        known.select(pl.min_horizontal(pl.col("low").fill_nan(None).min(), pl.col("value").min())).item() or 0.0
    )
    most = float(
        known.select(pl.max_horizontal(pl.col("high").fill_nan(None).max(), pl.col("value").max())).item() or 1.0
    )
    air = 0.06 * max(most - least, 1e-6)
    form = {} if name in UNITS_OF_PERCENT else {"format": ".3~g", "labelExpr": "datum.label"}
    return rate_axis(alt.X, "low", title, domain=(least - air, most + air), **form)


def _marks(systems: list[str], *, legend: bool) -> tuple[Any, Any]:
    colours = [style_of(place).colour for place in range(len(systems))]
    shapes = [SHAPES[place % len(SHAPES)] for place in range(len(systems))]
    box = alt.Legend(title=None, orient="bottom", columns=3, symbolSize=110, rowPadding=2) if legend else None
    return (
        alt.Color("system:N", scale=alt.Scale(domain=systems, range=colours), legend=box),
        alt.Shape("system:N", scale=alt.Scale(domain=systems, range=shapes), legend=box),
    )


def _whole_rule(table: pl.DataFrame, systems: list[str]) -> list[Any]:
    """With slices of one system, a line at the value of all rows."""
    whole = table.filter(pl.col("row") == WHOLE)
    if len(systems) > 1 or whole.is_empty():
        return []
    return [alt.Chart(inline(whole)).mark_rule(color="#777777", strokeDash=[3, 3]).encode(x="value:Q")]


def _line_words(table: pl.DataFrame, systems: list[str]) -> list[str]:
    return ["dashed line: all rows"] if _whole_rule(table, systems) else []


def _undefined(table: pl.DataFrame) -> list[str]:
    lost = table.filter(pl.col("value").is_nan())["row"].unique(maintain_order=True).to_list()
    return [f"undefined: {', '.join(lost)}"] if lost else []


def _title(table: pl.DataFrame, title: str, better: str, name: str) -> str:
    known = table.filter(pl.col("value").is_finite() & (pl.col("row") != WHOLE)).sort("value")
    if known.height < 2:
        return title[0].upper() + title[1:]
    write = percent if name in UNITS_OF_PERCENT else number
    worst = known.row(-1 if better == "lower" else 0, named=True)
    of = f" of {worst['system']}" if worst["system"] != worst["row"] and table["system"].n_unique() > 1 else ""
    return f"{title[0].upper() + title[1:]}: worst on {worst['row']}{of}, {write(worst['value'])}"


MOST_DRAWN = 16
"""Slices that the figure shows."""


def slice_difference_chart(found: SliceDifferences) -> Any:
    """Error rate of slices less that of the rest, with intervals: the clearest slices, the worst on top."""
    errors = [test for test in found.tests if test.what == "error"]
    parts = list(dict.fromkeys(test.part for test in errors))[:MOST_DRAWN]
    drawn = sorted((test for test in errors if test.part in parts), key=lambda test: -test.difference)
    systems = list(dict.fromkeys(found.thresholds))
    table = _rows(drawn, {test for test in found.shown if test.what == "error"})
    labels = table["slice"].unique(maintain_order=True).to_list()
    left = f" · the clearest {len(parts)} slices" if len({test.part for test in errors}) > len(parts) else ""
    return finished(
        _slice_forest(table, systems, labels),
        title=_slice_title(found),
        subtitle=[
            f"{percent(found.level)} intervals of each difference{left}",
            "filled: shown to differ after correction for all tests",
        ],
        description=f"Error rate on each slice less that on the rest: {'; '.join(table['told'].head(12))}.",
        table=table,
    )


def _rows(drawn: Sequence[SliceDifference], shown: set[SliceDifference]) -> pl.DataFrame:
    rows = [
        (
            test.system,
            test.part,
            test.n,
            test.difference,
            test.low,
            test.high,
            "shown" if test in shown else "not shown",
            f"{test.system}, {test.part}: {difference_told(test)}",
        )
        for test in drawn
    ]
    columns = ("system", "slice", "inputs", "difference", "low", "high", "differs", "told")
    return pl.DataFrame(rows, schema=columns, orient="row", infer_schema_length=None)


def _slice_forest(table: pl.DataFrame, systems: list[str], labels: list[str]) -> Any:
    several = len(systems) > 1
    up = alt.Y(
        "slice:N",
        title=None,
        scale=alt.Scale(domain=labels),
        axis=alt.Axis(labelLimit=220, grid=True, ticks=False, domain=False),
    )
    offset: dict[str, Any] = {"yOffset": alt.YOffset("system:N", scale=alt.Scale(domain=systems))} if several else {}
    legend = alt.Legend(title=None, orient="bottom", columns=3, symbolSize=110, rowPadding=2) if several else None
    colours = alt.Scale(domain=systems, range=[style_of(place).colour for place in range(len(systems))])
    shapes = alt.Scale(domain=systems, range=[SHAPES[place % len(SHAPES)] for place in range(len(systems))])
    colour, shape = (
        alt.Color("system:N", scale=colours, legend=legend),
        alt.Shape("system:N", scale=shapes, legend=legend),
    )
    least, most = min(0.0, float(table["low"].min() or 0)), max(0.0, float(table["high"].max() or 0))  # type: ignore[arg-type]
    air = 0.06 * max(most - least, 1e-6)
    across = rate_axis(alt.X, "low", "error rate on the slice less that on the rest", domain=(least - air, most + air))
    base = alt.Chart().encode(y=up, **offset)
    span = base.mark_rule(strokeWidth=2).encode(across, x2="high:Q", color=colour)
    dots = [_dot(base, shown, colour, shape) for shown in (False, True)]
    zero = alt.Chart(inline(pl.DataFrame({"at": [0.0]}))).mark_rule(color="#777777", strokeDash=[3, 3]).encode(x="at:Q")
    height = len(labels) * (26 if not several else 13 * len(systems) + 10)
    return alt.layer(zero, span, *dots).properties(width=WIDTH, height=height)


def _dot(base: Any, shown: bool, colour: Any, shape: Any) -> Any:
    """Dots of the differences that are shown, filled, or of the others, hollow."""
    told = [alt.Tooltip("told:N", title="slice"), alt.Tooltip("inputs:Q", title="inputs", format=",")]
    kept = base.transform_filter(f"datum.differs {'==' if shown else '!='} 'shown'")
    look: dict[str, Any] = {} if shown else {"fill": "white"}
    return kept.mark_point(filled=shown, size=90, opacity=1, strokeWidth=1.6, **look).encode(
        x="difference:Q", color=colour, shape=shape, tooltip=told
    )


def _slice_title(found: SliceDifferences) -> str:
    worse = [test for test in found.shown if test.what == "error" and test.difference > 0]
    if not worse:
        return "No slice is shown to err more than the rest"
    worst = max(worse, key=lambda test: test.difference)
    of = f"{worst.system} errs" if len(found.thresholds) > 1 else "Errors"
    if len(found.thresholds) > 1:
        return f"{of} most above the rest on {worst.part}: {percent(worst.inside)} against {percent(worst.outside)}"
    return f"{of} are most above the rest on {worst.part}: {percent(worst.inside)} against {percent(worst.outside)}"
