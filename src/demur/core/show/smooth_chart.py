"""Smooth curves through scattered points with bands of one standard error (Thomson et al. 2008, figures 2 and 3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import polars as pl

from demur.core.show.charts import (
    HEIGHT,
    WIDTH,
    Plot,
    alt,
    capital,
    finished,
    hover_layer,
    inline,
    legend_corner,
    line_channels,
    number_axis,
    padded,
    style_of,
)
from demur.core.show.html import evenly
from demur.core.show.numbers import count, number, shorten
from demur.core.stats.smoothing import Smooth
from demur.errors import UsageError

BULK = (0.05, 0.95)
"""Quantiles of the points between which the axis always reaches; single points far out would flatten the curves."""

CLEAR = 2.0
"""Standard errors of a difference beyond which a title speaks of it."""


def smooth_chart(
    smooths: Sequence[Smooth],
    *,
    x_title: str = "x",
    y_title: str = "y",
    better: Literal["lower", "higher"] = "higher",
    bounded: bool = False,
    title: str | None = None,
) -> Any:
    """Curves of one or more groups with shaded bands of one standard error, their points faint behind.

    The axis of a `bounded` y holds every point; otherwise single points may lie beyond it, and the figure says so.

    Without a `title` the figure says how far the curve rises or falls, or over how much of the range that the groups
    share one of them lies on the better side of the others by more than two standard errors of the difference.
    """
    named = {one.name: one for one in smooths}
    if not smooths:
        raise UsageError("a figure needs at least one curve; got none")
    if len(named) < len(smooths):
        names = [one.name for one in smooths]
        twice = next(name for name in names if names.count(name) > 1)
        raise UsageError(f'curves in one figure need names of their own; "{twice}" is there twice')
    table = pl.concat([one.frame().with_columns(group=pl.lit(name)) for name, one in named.items()])
    colours = {name: style_of(place).colour for place, name in enumerate(named)}
    points = pl.concat(
        [pl.DataFrame(one.points, schema=["x", "y"]).with_columns(group=pl.lit(one.name)) for one in smooths]
    ).with_columns(colour=pl.col("group").replace_strict(colours))
    wide = padded(np.concatenate([points["x"].to_numpy(), table["x"].to_numpy()]), air=0.01)
    bands = table.select("mean", "low", "high").to_numpy()
    bulk = padded(np.append(np.quantile(points["y"].to_numpy(), (0, 1) if bounded else BULK), bands), air=0.05)
    places = (table["x"].to_numpy() - wide[0]) / (wide[1] - wide[0])
    mean, low_end, high_end = bands.T
    corner, high = legend_corner(places, np.fmin(low_end, mean), np.fmax(high_end, mean), bulk, rows=len(named))
    hidden = points.filter(~pl.col("y").is_between(*high)).height
    axes = (number_axis("x", x_title, wide), number_axis("mean", y_title, high, channel=alt.Y))
    layers = [
        *_scatter_and_bands(points, table.with_columns(colour=pl.col("group").replace_strict(colours))),
        Plot()
        .mark_line(clip=True)
        .encode(*axes, *line_channels(list(named), corner=corner, field="group"), order=alt.Order("x:Q")),
        *_single_places(named),
        hover_layer(_smooth_tooltips(table, x_title, y_title), "x", "mean"),
    ]
    beyond = f"{count(hidden)} {'point lies' if hidden == 1 else 'points lie'} beyond the axis"
    return finished(
        alt.layer(*layers, width=WIDTH, height=HEIGHT),
        title=title or capital(_smooth_title(named, x_title, y_title, better)),
        subtitle=[_sizes(named), "shaded: one standard error on each side of the mean", *([beyond] if hidden else ())],
        description=_smooth_description(named, x_title, y_title),
        table=table,
    )


def _scatter_and_bands(points: pl.DataFrame, table: pl.DataFrame) -> list[Any]:
    """All points, faint where there are many, and the band of each group in its colour."""
    faint = float(np.clip(120 / points.height, 0.06, 0.4))
    fill = alt.Fill("colour:N", scale=None)
    return [
        Plot(inline(points))
        .mark_point(shape="circle", size=16, strokeWidth=0, fillOpacity=faint, opacity=1, clip=True)
        .encode(x=alt.X("x:Q"), y=alt.Y("y:Q"), fill=fill),
        Plot(inline(table))
        .mark_area(opacity=0.2, clip=True)
        .encode(x=alt.X("x:Q"), y=alt.Y("low:Q"), y2=alt.Y2("high:Q"), detail=alt.Detail("group:N"), fill=fill),
    ]


def _single_places(named: dict[str, Smooth]) -> list[Any]:
    """Groups whose points all have one x: a dot with its error, since there is no line to draw."""
    rows = [
        {**one.frame().row(0, named=True), "colour": style_of(place).colour}
        for place, one in enumerate(named.values())
        if one.x.size == 1
    ]
    if not rows:
        return []
    dots = pl.DataFrame(rows).select("x", "mean", "low", "high", "colour")
    base = Plot(inline(dots)).encode(x=alt.X("x:Q"), color=alt.Color("colour:N", scale=None))
    return [
        base.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q"), y2=alt.Y2("high:Q")),
        base.mark_point(filled=True, size=80, opacity=1).encode(y=alt.Y("mean:Q")),
    ]


def _smooth_tooltips(table: pl.DataFrame, x_title: str, y_title: str) -> pl.DataFrame:
    rows = pl.concat([evenly(part, 60) for part in table.partition_by("group", maintain_order=True)])
    heights = [f"{number(mean)} ± {number(error)}" for mean, error in rows.select("mean", "error").iter_rows()]
    return rows.select("x", "mean", "group").with_columns(
        pl.Series(f"{x_title} (x)", [number(x) for x in rows["x"]]), pl.Series(f"{y_title} (y)", heights)
    )


def _sizes(named: dict[str, Smooth]) -> str:
    if len(named) == 1:
        return f"n = {count(next(iter(named.values())).n)}"
    short = shorten(list(named), 24)
    return f"n = {', '.join(f'{count(one.n)} ({short[name]})' for name, one in named.items())}"


def _smooth_title(named: dict[str, Smooth], x_title: str, y_title: str, better: Literal["lower", "higher"]) -> str:
    """How the one curve goes from end to end, or which group lies clearly above all others (below, for lower)."""
    if len(named) == 1:
        (one,) = named.values()
        first, last = float(one.mean[0]), float(one.mean[-1])
        if one.x.size < 2 or not abs(last - first) > CLEAR * float(np.hypot(one.error[0], one.error[-1])):
            return f"{y_title} shows no clear change with {x_title}"
        return f"{y_title} {'rises' if last > first else 'falls'} from {first:.3g} to {last:.3g} as {x_title} rises"
    low = max(float(one.x.min()) for one in named.values())
    high = min(float(one.x.max()) for one in named.values())
    if not low < high:
        return f"{y_title} against {x_title}: the groups share no range"
    x, sign = np.linspace(low, high, 201), 1 if better == "higher" else -1
    curves = {name: (np.interp(x, one.x, one.mean), np.interp(x, one.x, one.error)) for name, one in named.items()}

    def share_in_lead(name: str) -> float:
        """Over how much of the range a group is clearly better than all others."""
        mean, error = curves[name]
        others = [curves[other] for other in curves if other != name]
        clear = [sign * (mean - other) > CLEAR * np.hypot(error, other_error) for other, other_error in others]
        return float(np.all(clear, axis=0).mean())

    best = max(named, key=share_in_lead)
    share = share_in_lead(best)
    if share == 0:
        return f"{y_title} against {x_title}: no group stands clear of the others"
    reach = "throughout" if share > 0.995 else f"over {max(100 * share, 1):.0f} % of the shared range"
    return f"{y_title} is clearly {better.removesuffix('r')}st for {shorten(list(named))[best]} {reach}"


def _smooth_description(named: dict[str, Smooth], x_title: str, y_title: str) -> str:
    curves = []
    for name, one in named.items():
        places = np.unique(np.linspace(0, one.x.size - 1, 3).round().astype(int))
        values = [f"{number(one.mean[at])} ± {number(one.error[at])} at {number(one.x[at])}" for at in places]
        curves.append(f"{name or 'the curve'}: {', '.join(values)}")
    return (
        f"Mean {y_title} against {x_title} with one standard error, by Gaussian-process regression. "
        f"{'; '.join(curves)}."
    )
