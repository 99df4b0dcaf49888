"""Smooth curves through scattered points with bands of one standard error (Thomson et al. 2008, figures 2 and 3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import polars as pl

from demur.core.arrays import Array
from demur.core.show.charts import (
    HEIGHT,
    WIDTH,
    Corner,
    Span,
    alt,
    finished,
    hover_layer,
    inline,
    legend_corner,
    line_channels,
    style_of,
)
from demur.core.show.html import evenly
from demur.core.show.numbers import count, number, shortened
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
    title: str | None = None,
) -> Any:
    """Curves of one or more groups with shaded bands of one standard error, their points faint behind.

    Without a `title` the figure says how far the curve rises or falls, or over how much of the range that the groups
    share one of them lies on the better side of the others by more than two standard errors of the difference.
    """
    named = _named(smooths)
    table = pl.concat([one.frame().with_columns(group=pl.lit(name)) for name, one in named.items()])
    points = _points(named)
    wide, bulk = _domain(points, table)
    places = (table["x"].to_numpy() - wide[0]) / (wide[1] - wide[0])
    mean, low_end, high_end = (table[column].to_numpy() for column in ("mean", "low", "high"))
    corner, high = legend_corner(places, np.fmin(low_end, mean), np.fmax(high_end, mean), bulk, rows=len(named))
    hidden = points.filter(~pl.col("y").is_between(*high)).height
    layers = [
        _point_layer(points),
        _band_layer(table, list(named)),
        _line_layer(list(named), (x_title, y_title), (wide, high), corner),
        *_dot_layer(named),
        hover_layer(_smooth_tooltips(table, x_title, y_title), "x", "mean"),
    ]
    return finished(
        alt.layer(*layers).properties(width=WIDTH, height=HEIGHT),
        title=title or _smooth_title(named, x_title, y_title, better),
        subtitle=[_sizes(named), "shaded: one standard error on each side of the mean", *_hidden_words(hidden)],
        description=_smooth_description(named, x_title, y_title),
        table=table,
    )


def _named(smooths: Sequence[Smooth]) -> dict[str, Smooth]:
    """The curves by their names, which tell them apart."""
    if not smooths:
        raise UsageError("a figure needs at least one curve; got none")
    names = [one.name for one in smooths]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise UsageError(f'curves in one figure need names of their own; "{twice[0]}" is there twice')
    return dict(zip(names, smooths, strict=True))


def _points(named: dict[str, Smooth]) -> pl.DataFrame:
    colours = [style_of(place).colour for place in range(len(named))]
    return pl.concat(
        [
            pl.DataFrame({"x": one.points[0], "y": one.points[1]}).with_columns(
                group=pl.lit(name), colour=pl.lit(colour)
            )
            for (name, one), colour in zip(named.items(), colours, strict=True)
        ]
    )


def _domain(points: pl.DataFrame, table: pl.DataFrame) -> tuple[Span, Span]:
    """Ranges of both axes: all of x; of y the bands and the bulk of the points."""
    bulk = np.quantile(points["y"].to_numpy(), BULK)
    drawn = table.select("mean", "low", "high").to_numpy()
    heights = np.concatenate([bulk, drawn[np.isfinite(drawn)]])
    across = np.concatenate([points["x"].to_numpy(), table["x"].to_numpy()])
    return _aired(float(across.min()), float(across.max()), 0.01), _aired(
        float(heights.min()), float(heights.max()), 0.05
    )


def _aired(low: float, high: float, share: float) -> Span:
    air = share * (high - low) or 0.5 * abs(high) or 0.5
    return low - air, high + air


def _axis(channel: type[Any], field: str, title: str, domain: Span) -> Any:
    scale = alt.Scale(domain=list(domain), nice=False, zero=False)
    return channel(field, type="quantitative", title=title, scale=scale, axis=alt.Axis(format=".3~g", tickCount=6))


def _point_layer(points: pl.DataFrame) -> Any:
    faint = float(np.clip(120 / points.height, 0.06, 0.4))
    return (
        alt.Chart(inline(points))
        .mark_point(shape="circle", size=16, strokeWidth=0, fillOpacity=faint, opacity=1, clip=True)
        .encode(x="x:Q", y="y:Q", fill=alt.Fill("colour:N", scale=None))
    )


def _band_layer(table: pl.DataFrame, names: list[str]) -> Any:
    colours = [style_of(place).colour for place in range(len(names))]
    coloured = table.with_columns(pl.col("group").replace_strict(names, colours).alias("colour"))
    return (
        alt.Chart(inline(coloured))
        .mark_area(opacity=0.2, clip=True)
        .encode(x="x:Q", y="low:Q", y2="high:Q", detail="group:N", fill=alt.Fill("colour:N", scale=None))
    )


def _line_layer(names: list[str], titles: tuple[str, str], domains: tuple[Span, Span], corner: Corner) -> Any:
    axes = (_axis(alt.X, "x", titles[0], domains[0]), _axis(alt.Y, "mean", titles[1], domains[1]))
    channels = line_channels(names, corner=corner, field="group")
    return alt.Chart().mark_line(clip=True).encode(*axes, *channels, order="x:Q")


def _dot_layer(named: dict[str, Smooth]) -> list[Any]:
    """Groups whose points all have one x: a dot with its error, since there is no line to draw."""
    rows = [
        {"x": one.x[0], "mean": one.mean[0], "low": one.mean[0] - one.error[0], "high": one.mean[0] + one.error[0]}
        | {"colour": style_of(place).colour}
        for place, one in enumerate(named.values())
        if one.x.size == 1
    ]
    if not rows:
        return []
    base = alt.Chart(inline(pl.DataFrame(rows))).encode(x="x:Q", color=alt.Color("colour:N", scale=None))
    return [
        base.mark_rule(strokeWidth=2).encode(y="low:Q", y2="high:Q"),
        base.mark_point(filled=True, size=80, opacity=1).encode(y="mean:Q"),
    ]


def _smooth_tooltips(table: pl.DataFrame, x_title: str, y_title: str) -> pl.DataFrame:
    rows = pl.concat([evenly(part, 60) for part in table.partition_by("group", maintain_order=True)])
    told = [f"{number(mean)} ± {number(error)}" for mean, error in rows.select("mean", "error").iter_rows()]
    return rows.select("x", "mean", "group").with_columns(
        pl.Series(f"{x_title} (x)", [number(x) for x in rows["x"]]), pl.Series(f"{y_title} (y)", told)
    )


def _sizes(named: dict[str, Smooth]) -> str:
    if len(named) == 1:
        return f"n = {count(next(iter(named.values())).n)}"
    short = shortened(list(named), 24)
    return f"n = {', '.join(f'{count(one.n)} ({short[name]})' for name, one in named.items())}"


def _hidden_words(hidden: int) -> list[str]:
    return [f"{count(hidden)} {'point lies' if hidden == 1 else 'points lie'} beyond the axis"] if hidden else []


def _smooth_title(named: dict[str, Smooth], x_title: str, y_title: str, better: Literal["lower", "higher"]) -> str:
    if len(named) == 1:
        return _capital(_trend(next(iter(named.values())), x_title, y_title))
    shared = _shared(named)
    if shared is None:
        return f"{_capital(y_title)} against {x_title}: the groups share no range"
    name, share = _top(named, shared, 1 if better == "higher" else -1)
    if share == 0:
        return f"{_capital(y_title)} against {x_title}: no group stands clear of the others"
    reach = "throughout" if share > 0.995 else f"over {max(100 * share, 1):.0f} % of the shared range"
    return f"{_capital(y_title)} is clearly {better.removesuffix('r')}st for {shortened(list(named))[name]} {reach}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _trend(one: Smooth, x_title: str, y_title: str) -> str:
    """How the curve goes from its first place to its last."""
    first, last = float(one.mean[0]), float(one.mean[-1])
    if one.x.size < 2 or not abs(last - first) > CLEAR * float(np.hypot(one.error[0], one.error[-1])):
        return f"{y_title} shows no clear change with {x_title}"
    return f"{y_title} {'rises' if last > first else 'falls'} from {first:.3g} to {last:.3g} as {x_title} rises"


def _shared(named: dict[str, Smooth]) -> Array | None:
    """Places all over the range that all groups cover."""
    low = max(float(one.x.min()) for one in named.values())
    high = min(float(one.x.max()) for one in named.values())
    return np.linspace(low, high, 201) if low < high else None


def _top(named: dict[str, Smooth], x: Array, sign: int) -> tuple[str, float]:
    """The group that lies clearly above all others (below, for -1) over most of the range, and over how much."""
    means = {name: np.interp(x, one.x, one.mean) for name, one in named.items()}
    errors = {name: np.interp(x, one.x, one.error) for name, one in named.items()}

    def share(name: str) -> float:
        others = [other for other in named if other != name]
        above = [
            sign * (means[name] - means[other]) > CLEAR * np.hypot(errors[name], errors[other]) for other in others
        ]
        return float(np.all(above, axis=0).mean())

    best = max(named, key=share)
    return best, share(best)


def _smooth_description(named: dict[str, Smooth], x_title: str, y_title: str) -> str:
    told = []
    for name, one in named.items():
        places = np.unique(np.linspace(0, one.x.size - 1, 3).round().astype(int))
        values = [f"{number(one.mean[at])} ± {number(one.error[at])} at {number(one.x[at])}" for at in places]
        told.append(f"{name or 'the curve'}: {', '.join(values)}")
    return (
        f"Mean {y_title} against {x_title} with one standard error, by Gaussian-process regression. {'; '.join(told)}."
    )
