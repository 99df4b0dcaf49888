"""The benchmark graph (Paek 2001, figure 2): systems beside the gold standard, under the bound of the metric."""

from __future__ import annotations

import math
from typing import Any

import polars as pl

from demur.views.corners import Span
from demur.views.drawing import HEIGHT, WIDTH, alt, finished, inline
from demur.views.gold_rows import (
    Quantity,
    Scheme,
    across,
    bands,
    filled_ends,
    flat,
    flat_label,
    hovering,
    lone_dots,
    own,
    sampled,
)
from demur.views.names import shortened
from demur.views.nbest_rows import extent, interval_words, refuse_repeats, tidy
from demur.views.numbers import count
from demur.views.outcome_rows import capital

MOST_TOLD = 2
"""Systems up to which a title says how each of them falls or rises."""

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
    means = _means(points)
    measured, wanted = Quantity(x, x_percent), Quantity(y, percent)
    everyone = pl.concat([table.select("performer", "role"), means.select("performer", "role")])
    scheme = Scheme.of(everyone)
    return finished(
        alt.layer(*_layers(table, means, scheme, measured, wanted, upper)).properties(width=WIDTH, height=HEIGHT),
        title=title or _title(table, measured, wanted),
        subtitle=_words(table, means, level, upper),
        description=_description(table, measured, wanted, upper),
        table=table,
    )


def _means(points: pl.DataFrame) -> pl.DataFrame:
    """The means of trials as a table, which may have no rows."""
    kinds: dict[str, Any] = {"performer": pl.String, "role": pl.String}
    if points.is_empty():
        return pl.DataFrame(schema={**kinds, "x": pl.Float64, "y": pl.Float64, "n": pl.Float64})
    return tidy(points, kinds, ("x", "y", "n"))


def _layers(
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
    coloured = scheme.coloured(table)
    axes = (x.axis(alt.X, "x", wide), y.axis(alt.Y, "y", high))
    return [
        bands(coloured, "performer"),
        *_point_layers(scheme.coloured(means)),
        alt.Chart().mark_line(clip=True).encode(*axes, *scheme.channels(corner), order="x:Q"),
        *lone_dots(coloured, "performer", "y"),
        *bound_layers(y, upper),
        hovering(table, "performer", "y", x, y),
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
    line = flat(upper, color="#333333", strokeWidth=1.2, strokeDash=[2, 3])
    return [line, *flat_label(upper, f"upper bound, {y.told(upper)}")]


def _point_layers(means: pl.DataFrame) -> list[Any]:
    if means.is_empty():
        return []
    most = means["n"].fill_nan(None).max()
    share = pl.col("n").fill_nan(1.0) / (float(str(most)) if most else 1.0)
    sized = means.with_columns(size=(LARGEST * share).clip(lower_bound=14))
    return [
        alt.Chart(inline(sized))
        .mark_point(shape="circle", filled=False, strokeWidth=1.2, opacity=0.55)
        .encode(
            x="x:Q",
            y="y:Q",
            size=alt.Size("size:Q", scale=None, legend=None),
            stroke=own(alt.Stroke),
            tooltip=[
                alt.Tooltip("performer:N"),
                *(alt.Tooltip(f"{name}:Q", format=".3~g") for name in ("x", "y", "n")),
            ],
        )
    ]


def _title(table: pl.DataFrame, x: Quantity, y: Quantity) -> str:
    golds = table.filter(pl.col("role") == "gold")["performer"].unique(maintain_order=True).to_list()
    systems = table.filter(pl.col("role") == "system")["performer"].unique(maintain_order=True).to_list()
    cut = shortened([*golds, *systems], 24)
    if not golds:
        return capital(f"{y.name} against {x.name}, without a gold standard")
    told = [f"{_move(table, golds[0], y)} for {cut[golds[0]]} (gold standard)"]
    if len(systems) <= MOST_TOLD:
        told += [f"{_move(table, name, y)} for {cut[name]}" for name in systems]
    beside = f", beside {len(systems)} systems" if len(systems) > MOST_TOLD else ""
    places = table["x"].unique()
    head = f"As {x.name} rises," if places.len() > 1 else f"At {x.name} {x.told(places[0])},"
    return f"{head} {y.name} {', '.join(told)}{beside}"


def _move(table: pl.DataFrame, name: str, y: Quantity) -> str:
    """How a curve goes from its first place to its last."""
    known = table.filter((pl.col("performer") == name) & pl.col("y").is_finite()).sort("x")["y"]
    if known.is_empty():
        return "is undefined"
    first, last = y.told(known[0]), y.told(known[-1])
    if first == last:
        return f"{'is' if known.len() == 1 else 'stays at'} {first}"
    return f"{'rises' if known[-1] > known[0] else 'falls'} from {first} to {last}"


def _words(table: pl.DataFrame, means: pl.DataFrame, level: float, upper: float | None) -> list[str]:
    trials = float(means["n"].fill_nan(0.0).sum())
    circles = "circles: means of trials near each other, the larger the more trials"
    return [
        *([f"n = {count(trials)} trials"] if trials else []),
        *interval_words(table, "shaded", level),
        *([circles] if means.height else []),
        *(["dotted: the most that can be reached"] if upper is not None else []),
    ]


def _description(table: pl.DataFrame, x: Quantity, y: Quantity, upper: float | None) -> str:
    told = [
        f"{part['performer'][0]} ({part['role'][0]}): {sampled(part.sort('x'), 'y', x, y)}"
        for part in table.partition_by("performer", maintain_order=True)
    ]
    bound = "" if upper is None or math.isnan(upper) else f" The metric's upper bound is {y.told(upper)}."
    return f"Benchmark graph: {y.name} against {x.name}. {'; '.join(told)}.{bound}"
