"""The benchmark graph (Paek 2001, figure 2), and what all gold charts share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from demur.core.show.charts import (
    HEIGHT,
    OTHERS,
    WIDTH,
    Corner,
    LineStyle,
    Plot,
    Span,
    alt,
    capital,
    extent,
    finished,
    hover_layer,
    inline,
    interval_words,
    legend_corner,
    legend_in,
    rate_axis,
    refuse_repeats,
    rimmed_text,
    style_channels,
    tidy,
)
from demur.core.show.html import evenly
from demur.core.show.numbers import count, middle_cut, percent, short, shorten, with_interval
from demur.errors import UsageError

GOLDS = (LineStyle("#8a6a00", 4.6, (1, 0)), LineStyle("#8a6a00", 4.6, (10, 3)), LineStyle("#8a6a00", 4.6, (3, 3)))
"""Gold standards: the thickest lines, in a dark gold that stays dark in grey."""

SYSTEMS = tuple(style for style in OTHERS if style.colour != "#E69F00")
"""Systems: the lines of other figures but for the one that looks like gold."""

TITLE_CHARACTERS = 60
"""Characters of an axis title that fit beside a plot."""

LARGE = 1000
"""From here on numbers are written whole."""

CHARACTER_WIDTH, SYMBOL = 6.8, 58
"""Pixels of a character of a legend, and of a line beside it with the gap to the next."""


def plain(value: float) -> str:
    """A number in three digits, large ones whole and with thousands separated.

    >>> plain(0.12345), plain(12345.6), plain(math.nan)
    ('0.123', '12,346', 'undefined')
    """
    return f"{value:,.0f}".replace("-", "−") if abs(value) >= LARGE else short(value)


@dataclass(frozen=True, slots=True)
class Quantity:
    """What an axis shows, and whether it is a share, to be written in percent."""

    name: str
    percent: bool = False

    def text(self, value: float) -> str:
        """A value in words.

        >>> Quantity("wer", percent=True).text(0.35), Quantity("size").text(12.0)
        ('35 %', '12')
        """
        return percent(value) if self.percent else plain(value)

    def with_interval(self, value: float, low: float, high: float) -> str:
        """A value with the ends of its interval, where it has one.

        >>> Quantity("wer", percent=True).with_interval(0.35, 0.3, 0.4)
        '35 % (30 % to 40 %)'
        """
        return with_interval(value, low, high, write=self.text) if math.isfinite(low + high) else self.text(value)

    def difference(self, amount: float) -> str:
        """A difference of two values, of shares in points.

        >>> Quantity("completed", percent=True).difference(0.125), Quantity("score").difference(0.5)
        ('12.5 points', '0.5')
        """
        if not self.percent or math.isnan(amount):
            return plain(amount)
        points = percent(amount).removesuffix(" %")
        return f"{points} {'point' if points == '1' else 'points'}"

    def axis(self, channel: type[Any], field: str, domain: Span, *, title: str | None = None, **more: Any) -> Any:
        """An axis over a domain, in percent for shares."""
        form: dict[str, Any] = {} if self.percent else {"format": ",.4~r", "labelExpr": "datum.label"}
        name = middle_cut(self.name if title is None else title, TITLE_CHARACTERS)
        return rate_axis(channel, field, name, domain=domain, **{**form, **more})


def system_style(place: int) -> LineStyle:
    """Style of a system's line by its place; where styles run out they return as thinner lines."""
    turn, style = divmod(place, len(SYSTEMS))
    return replace(SYSTEMS[style], width=round(SYSTEMS[style].width / (1 + turn), 2))


@dataclass(frozen=True, slots=True)
class Scheme:
    """The lines of performers by their names."""

    styles: Mapping[str, LineStyle]
    labels: Mapping[str, str]

    @classmethod
    def of(cls, table: pl.DataFrame, field: str = "performer") -> Scheme:
        """Lines for the performers of a table; those whose `role` is gold have a line of their own."""
        roles = table["role"] if "role" in table.columns else pl.Series(["system"] * table.height)
        who = dict(zip(table[field].to_list(), roles.to_list(), strict=True))
        strange = [role for role in who.values() if role not in ("gold", "system")]
        if strange:
            raise UsageError(f'role is "gold" or "system"; got "{strange[0]}"')
        return cls.named([name for name in who if who[name] == "gold"], [name for name in who if who[name] != "gold"])

    @classmethod
    def named(cls, golds: Sequence[str], systems: Sequence[str]) -> Scheme:
        """Lines for gold standards, and for systems in their order."""
        cut = shorten([*golds, *systems], 30)
        marked = {name: f"{cut[name]} (gold standard)" for name in golds}
        lines = {name: GOLDS[place % len(GOLDS)] for place, name in enumerate(golds)}
        lines |= {name: system_style(place) for place, name in enumerate(systems)}
        return cls(lines, cut | marked)

    @property
    def names(self) -> list[str]:
        """Performers in the order of the legend."""
        return list(self.styles)

    def with_colours(self, table: pl.DataFrame, field: str = "performer") -> pl.DataFrame:
        """The table with the `colour` of each row's performer."""
        colours = [style.colour for style in self.styles.values()]
        return table.with_columns(pl.col(field).replace_strict(self.names, colours).alias("colour"))

    def channels(self, corner: Corner | None, field: str = "performer") -> tuple[Any, ...]:
        """Colour, dash and width by name, with one legend for all three; none where `corner` is None."""
        legend: Any = None if corner is None else legend_in(corner, dict(self.labels))
        if corner == "top":
            longest = max(len(label) for label in self.labels.values())
            legend.columns = max(1, min(len(self.labels), int((WIDTH + 20) // (CHARACTER_WIDTH * longest + SYMBOL))))
            legend.strokeColor = None
        return style_channels(self.styles, field, legend, "nominal")

    def corner(
        self,
        table: pl.DataFrame,
        columns: tuple[str, str, str],
        wide: Span,
        high: Span,
        upper: float | None = None,
    ) -> Corner:
        """The corner that lines leave free for the legend, or above the plot; `columns` name x, low and high ends.

        Where there is an `upper` bound, its line and label take both corners at the top.
        """
        x, low, most = (table[column].to_numpy() for column in columns)
        if upper is not None:
            x, low, most = np.r_[x, wide], np.r_[low, upper, upper], np.r_[most, upper, upper]
        places = (x - wide[0]) / (wide[1] - wide[0])
        corner, grown = legend_corner(places, low, most, high, rows=max(2, len(self.labels)))
        return corner if grown == high and corner != "right" else "top"


def across(x: Quantity, *tables: pl.DataFrame) -> Span:
    """The range of x over tables, with a little air at its ends; of a single share all that shares can be."""
    places = pl.concat([table.select("x") for table in tables])
    alone = places["x"].n_unique() == 1 and x.percent
    return (-0.01, 1.01) if alone and 0 <= places["x"][0] <= 1 else extent(places, ("x",), air=0.01)


def filled_ends(table: pl.DataFrame, value: str) -> pl.DataFrame:
    """The table with `least` and `most` of each row: the ends of its band, or the value where it has none."""
    ends = (("least", pl.min_horizontal), ("most", pl.max_horizontal))
    known = [pl.col(name).fill_nan(None) for name in (value, "low", "high")]
    return table.with_columns(of(known).fill_null(math.nan).alias(name) for name, of in ends)


def row_colour(channel: type[Any]) -> Any:
    """The `colour` of each row as it stands.

    Fill or stroke, never the channel of colour: Vega-Lite would take its lack of a legend for that of the lines.
    """
    return channel("colour:N", scale=None, legend=None)


def bands(table: pl.DataFrame, field: str, *, opacity: float = 0.18) -> Any:
    """Shaded bands between `low` and `high` over `x`, in the `colour` of each row."""
    shape = Plot(inline(table)).mark_area(opacity=opacity, clip=True)
    return shape.encode(
        x=alt.X("x:Q"),
        y=alt.Y("low:Q"),
        y2=alt.Y2("high:Q"),
        detail=alt.Detail(f"{field}:N"),
        fill=row_colour(alt.Fill),
    )


def lone_dots(table: pl.DataFrame, field: str, value: str) -> list[Any]:
    """Dots, with their intervals, for curves of one x only: there is no line to draw."""
    alone = table.filter(pl.len().over(field) == 1)
    if alone.is_empty():
        return []
    base = Plot(inline(alone)).encode(x=alt.X("x:Q"))
    dot = base.mark_point(shape="circle", size=80, strokeWidth=0, opacity=1)
    span = base.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q"), y2=alt.Y2("high:Q"), stroke=row_colour(alt.Stroke))
    return [*([span] if "low" in alone.columns else []), dot.encode(y=alt.Y(f"{value}:Q"), fill=row_colour(alt.Fill))]


def tooltip_layer(table: pl.DataFrame, field: str, value: str, x: Quantity, y: Quantity) -> Any:
    """Tooltips along curves: whose it is, where, and the value with its interval."""
    rows = pl.concat([evenly(part, 60) for part in table.partition_by(field, maintain_order=True)])
    ends = (
        rows.select(value, "low", "high") if "low" in rows.columns else rows.select(value, low=math.nan, high=math.nan)
    )
    label = [f"{y.name} {y.with_interval(*row)}" for row in ends.iter_rows()]
    words = rows.select("x", pl.col(value).alias("up"), pl.col(field).alias("line"))
    places = pl.Series("at", [f"{x.name} {x.text(place)}" for place in rows["x"]])
    return hover_layer(words.with_columns(places, value=pl.Series(label)), "x", "up")


def horizontal_line(place: float, **look: Any) -> Any:
    """A line from side to side at one place of the vertical axis."""
    return Plot(alt.InlineData(values=[{"up": place}])).mark_rule(**look).encode(y=alt.Y("up:Q"))


def line_label(place: float, text: str) -> list[Any]:
    """Words over the right end of a line from side to side, legible over whatever runs beneath them."""
    base = Plot(alt.InlineData(values=[{"up": place, "text": text}]))
    label = base.encode(x=alt.XValue("width"), y=alt.Y("up:Q"), text=alt.Text("text:N"))
    return rimmed_text(label, 4, "#333333", align="right", fontSize=11, dx=-3, dy=-8)


def curve_text(part: pl.DataFrame, value: str, x: Quantity, y: Quantity) -> str:
    """A curve in words: its values at its ends and its middle."""
    known = evenly(part.filter(pl.col(value).is_finite()), 3)
    label = [f"{y.text(up)} at {x.text(place)}" for place, up in known.select("x", value).iter_rows()]
    return ", ".join(label) or "undefined"


MOST_BANDS = 4
"""Systems up to which bands are drawn; more of them hide each other."""

LARGEST = 330
"""Area in square pixels of the circle of the most trials."""


def benchmark_chart(
    curves: pl.DataFrame,
    points: pl.DataFrame,
    *,
    x: str,
    y: str,
    upper: float | None = None,
    percent: bool = False,
    x_percent: bool = False,
    level: float = 0.95,
    title: str | None = None,
) -> Any:
    """Performance against an independent variable: the gold standard thick, systems beside it, the bound on top.

    Columns of `curves`: `performer`, `role` ("gold" or "system"), `x`, `y`, and the ends of the band, `low` and `high`
    (null or NaN where there is none). Columns of `points`: `performer`, `role`, `x`, `y` and `n`, means of trials that
    lie near each other; there may be none. `upper` is the greatest value that the metric can have; `percent` and
    `x_percent` say whether the metric and the independent variable are shares.
    """
    table = tidy(curves, {"performer": pl.String, "role": pl.String}, ("x", "y", "low", "high"))
    refuse_repeats(table, "performer", "x")
    columns: dict[str, Any] = {"performer": pl.String, "role": pl.String, "x": pl.Float64, "y": pl.Float64}
    means = pl.DataFrame(schema={**columns, "n": pl.Float64})
    if not points.is_empty():
        means = tidy(points, {"performer": pl.String, "role": pl.String}, ("x", "y", "n"))
    measured, wanted = Quantity(x, x_percent), Quantity(y, percent)
    everyone = pl.concat([table.select("performer", "role"), means.select("performer", "role")])
    shown, of = _few_bands(table)
    layers = _benchmark_layers(shown, means, Scheme.of(everyone), measured, wanted, upper)
    trials = float(means["n"].fill_nan(0.0).sum())
    label = [
        f"{part['performer'][0]} ({part['role'][0]}): {curve_text(part.sort('x'), 'y', measured, wanted)}"
        for part in table.partition_by("performer", maintain_order=True)
    ]
    bound = "" if upper is None or math.isnan(upper) else f" The metric's upper bound is {wanted.text(upper)}."
    return finished(
        alt.layer(*layers, width=WIDTH, height=HEIGHT),
        title=title or capital(f"{wanted.name} against {measured.name}"),
        subtitle=[
            *([f"n = {count(trials)} trials"] if trials else []),
            *(f"{words}{of}" for words in interval_words(table, "shaded", level)),
            *(["circles: means of trials near each other, the larger the more trials"] if means.height else []),
            *(["dotted: the most that can be reached"] if upper is not None else []),
        ],
        description=f"Benchmark graph: {y} against {x}. {'; '.join(label)}.{bound}",
        table=table,
    )


def _few_bands(table: pl.DataFrame) -> tuple[pl.DataFrame, str]:
    """The curves with the bands that are drawn, and whose they are: of many systems only the gold standard's."""
    gold = pl.col("role") == "gold"
    if table.filter(~gold)["performer"].n_unique() <= MOST_BANDS or table.filter(gold).is_empty():
        return table, ""
    kept = (pl.when(gold).then(name).otherwise(math.nan).alias(name) for name in ("low", "high"))
    return table.with_columns(kept), " of the gold standard"


def _benchmark_layers(
    table: pl.DataFrame, means: pl.DataFrame, scheme: Scheme, x: Quantity, y: Quantity, upper: float | None
) -> list[Any]:
    wide, high = across(x, table, means), height_of(table, means, y, upper)
    ends = pl.concat(
        [
            filled_ends(table, "y").select("x", "least", "most"),
            means.select("x", pl.col("y").alias("least"), pl.col("y").alias("most")),
        ]
    )
    corner = scheme.corner(ends, ("x", "least", "most"), wide, high, upper)
    coloured = scheme.with_colours(table)
    axes = (x.axis(alt.X, "x", wide), y.axis(alt.Y, "y", high))
    return [
        bands(coloured, "performer"),
        *_point_layers(scheme.with_colours(means)),
        Plot().mark_line(clip=True).encode(*axes, *scheme.channels(corner), order=alt.Order("x:Q")),
        *lone_dots(coloured, "performer", "y"),
        *bound_layers(y, upper),
        tooltip_layer(table, "performer", "y", x, y),
    ]


def height_of(table: pl.DataFrame, means: pl.DataFrame, y: Quantity, upper: float | None) -> Span:
    """The range of the metric: from 0 where that is not far, up to its bound and a little beyond."""
    drawn = [table.select(pl.col(name).alias("y")) for name in ("y", "low", "high") if name in table.columns]
    low, top = extent(pl.concat([*drawn, means.select("y")]), ("y",))
    most = top if upper is None else max(top, upper)
    least = 0.0 if y.percent or 0 <= low <= 0.6 * most else low - 0.05 * (most - low)
    return min(least, low), most + (0.08 if upper is not None else 0.04) * (most - least)


def bound_layers(y: Quantity, upper: float | None) -> list[Any]:
    """A labelled line at the greatest value that the metric can have."""
    if upper is None:
        return []
    line = horizontal_line(upper, color="#333333", strokeWidth=1.2, strokeDash=[2, 3])
    return [line, *line_label(upper, f"upper bound, {y.text(upper)}")]


def _point_layers(means: pl.DataFrame) -> list[Any]:
    if means.is_empty():
        return []
    most = means["n"].fill_nan(None).max()
    share = pl.col("n").fill_nan(1.0) / (float(str(most)) if most else 1.0)
    sized = means.with_columns(size=(LARGEST * share).clip(lower_bound=14))
    return [
        Plot(inline(sized))
        .mark_point(shape="circle", filled=False, strokeWidth=1.2, opacity=0.55)
        .encode(
            x=alt.X("x:Q"),
            y=alt.Y("y:Q"),
            size=alt.Size("size:Q", scale=None, legend=None),
            stroke=row_colour(alt.Stroke),
            tooltip=[
                alt.Tooltip("performer:N"),
                *(alt.Tooltip(f"{name}:Q", format=".3~g") for name in ("x", "y", "n")),
            ],
        )
    ]
