"""Charts of simulated dialogues: lines with bands over a knob, and values with intervals by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from demur.core.show.charts import (
    HEIGHT,
    WIDTH,
    Plot,
    alt,
    extent,
    finished,
    inline,
    interval_words,
    legend_corner,
    line_channels,
    name_axis,
    number_axis,
    style_of,
    tidy,
)
from demur.core.show.numbers import number, shorten, with_interval

_ENDS = ("value", "low", "high")


def band_chart(
    rows: pl.DataFrame, *, x_title: str, y_title: str, title: str, note: str = "", level: float = 0.95
) -> Any:
    """A value against a number, one line with a shaded band for each group.

    Columns of `rows`: `group`, `x`, `value`, and the ends of its interval, `low` and `high` (NaN where there is none).
    """
    table = tidy(rows, {"group": pl.String}, ("x", *_ENDS))
    names = table["group"].unique(maintain_order=True).to_list()
    x, value, low, high = (table[column].to_numpy() for column in ("x", *_ENDS))
    corner, domain = legend_corner(
        (x - x.min()) / (np.ptp(x) or 1.0),
        np.fmin(low, value),
        np.fmax(high, value),
        extent(table, _ENDS, air=0.05),
        rows=len(names),
    )
    colours = [style_of(place).colour for place in range(len(names))]
    base = Plot(
        inline(
            table.with_columns(pl.col("group").replace_strict(names, colours).alias("colour"), text=_value_texts(table))
        )
    )
    fill = alt.Fill("colour:N", scale=None)
    axes = (
        number_axis("x", x_title, extent(table, ("x",), air=0.01)),
        number_axis("value", y_title, domain, channel=alt.Y),
    )
    layers = [
        base.mark_area(opacity=0.16).encode(
            x=alt.X("x:Q"), y=alt.Y("low:Q"), y2=alt.Y2("high:Q"), detail=alt.Detail("group:N"), fill=fill
        ),
        Plot().mark_line().encode(*axes, *line_channels(names, corner=corner, field="group"), order=alt.Order("x:Q")),
        base.mark_point(shape="circle", size=46, stroke="white", strokeWidth=1, opacity=1).encode(
            x=alt.X("x:Q"),
            y=alt.Y("value:Q"),
            fill=fill,
            tooltip=[alt.Tooltip("group:N"), alt.Tooltip("x:Q"), alt.Tooltip("text:N", title="value")],
        ),
    ]
    facts = [
        f"{name}: {', '.join(f'{number(one)} at {number(at)}' for at, one in part.select('x', 'value').iter_rows())}"
        for (name,), part in table.partition_by("group", as_dict=True, maintain_order=True).items()
    ]
    return finished(
        alt.layer(*layers, width=WIDTH, height=HEIGHT),
        title=title,
        subtitle=[*interval_words(table, "shaded", level), *([note] if note else [])],
        description=f"{y_title} against {x_title}. {'; '.join(facts[:8])}.",
        table=table,
    )


def interval_chart(
    rows: pl.DataFrame, *, x_title: str, title: str, mark: float | None = 0.0, note: str = "", level: float = 0.95
) -> Any:
    """A value with its interval for each name, one colour for each group; `mark` is a line to compare them with.

    Columns of `rows`: `name`, `group`, `value`, `low` and `high`.
    """
    table = tidy(rows, {"name": pl.String, "group": pl.String}, _ENDS)
    names = table["name"].unique(maintain_order=True).to_list()
    groups = table["group"].unique(maintain_order=True).to_list()
    shift = {group: 9.0 * (place - (len(groups) - 1) / 2) for place, group in enumerate(groups)}
    base = Plot(inline(table.with_columns(text=_value_texts(table))))
    reach = extent(table.with_columns(mark=pl.lit(mark, pl.Float64)), (*_ENDS, "mark"), air=0.03)
    scale = alt.Scale(domain=groups, range=[style_of(place).colour for place in range(len(groups))])
    labels = shorten(groups)
    legend = alt.Legend(title=None, orient="bottom", symbolSize=60, symbolStrokeWidth=2) if len(groups) > 1 else None
    colour = alt.Color("group:N", scale=scale, legend=legend, sort=None)
    layers = [Plot(inline(pl.DataFrame({"mark": [mark]}))).mark_rule(color="#999999").encode(x=alt.X("mark:Q"))]
    for group in groups:
        part = base.transform_filter(f"datum.group === {group!r}")
        across = number_axis("value", x_title, reach)
        up = name_axis("name", names, characters=44)
        layers += [
            part.mark_rule(strokeWidth=2, yOffset=shift[group]).encode(
                x=alt.X("low:Q"), x2=alt.X2("high:Q"), y=up, color=colour
            ),
            part.mark_point(filled=True, size=55, opacity=1, yOffset=shift[group]).encode(
                x=across,
                y=up,
                color=colour,
                tooltip=[alt.Tooltip("name:N"), alt.Tooltip("text:N", title=labels[group])],
            ),
        ]
    facts = [
        f"{name}, {group}: {number(one)}" for name, group, one in table.select("name", "group", "value").iter_rows()
    ]
    return finished(
        alt.layer(*layers, width=WIDTH, height=max(120, (16 + 10 * len(groups)) * len(names))),
        title=title,
        subtitle=[*interval_words(table, "lines", level), *([note] if note else [])],
        description=f"{x_title}. {'; '.join(facts[:12])}.",
        table=table,
    )


def _value_texts(table: pl.DataFrame) -> pl.Series:
    return pl.Series([with_interval(*row) for row in table.select(*_ENDS).iter_rows()])
