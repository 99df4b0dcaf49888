"""The gold impurity graph (Paek 2001, figure 3): distance of systems from the gold standard, and who is nearer."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl

from demur.views.corners import Span
from demur.views.drawing import HEIGHT, WIDTH, alt, finished, inline
from demur.views.gold_rows import Quantity, Scheme, across, bands, filled_ends, hovering, lone_dots, own
from demur.views.names import middle_cut, shortened
from demur.views.nbest_rows import extent, interval_words, refuse_repeats, tidy
from demur.views.outcome_rows import capital

UNDECIDED = "undecided"
GREY = "#d9d9d9"

MOST_FILLS, MOST_BANDS = 3, 4
"""Systems up to which the mass is filled and bands are drawn; more of them hide each other."""

MOST_RANGES = 4
"""Ranges that a title tells one by one."""

STRIPE = 7
"""Pixels between stripes where a system beats the gold standard."""

STRIP, LETTER = 24, 7.4
"""Height of the bars that say who is nearer, and width of a letter in them."""


NOISE = 1e-9
"""Distances above the gold standard that are rounding and no more."""

FEWEST = 5
"""Letters from which on a part of a name is worth writing."""


def impurity_chart(
    impurity: pl.DataFrame,
    ranges: pl.DataFrame,
    *,
    x: str,
    y: str,
    percent: bool = False,
    x_percent: bool = False,
    level: float = 0.95,
    title: str | None = None,
) -> Any:
    """Distance from the gold standard of each system, its mass filled, and below it who is nearer over which range.

    Columns of `impurity`: `system`, `x`, `impurity` with the ends of its interval `low` and `high` (null or NaN where
    there is none), and `signed`, gold minus system: where it is below 0 the system beats the gold standard, and the
    mass is striped. Columns of `ranges`: `from`, `to` and `nearer`, a system or "undecided"; there may be none.
    """
    table = tidy(impurity, {"system": pl.String}, ("x", "impurity", "low", "high", "signed"))
    refuse_repeats(table, "system", "x")
    parts = _parts(ranges)
    measured, wanted = Quantity(x, x_percent), Quantity(y, percent)
    scheme = Scheme.of(table, "system")
    wide = across(measured, table, parts.select(x="from"), parts.select(x="to"))
    plot = alt.layer(*_layers(table, parts, scheme, wide, measured, wanted)).properties(width=WIDTH, height=HEIGHT)
    return finished(
        plot if parts.is_empty() else _with_strip(plot, _strip(parts, scheme, wide, measured)),
        title=title or _title(table, parts, measured, wanted),
        subtitle=_words(table, parts, level),
        description=_description(table, parts, measured, wanted),
        table=table,
    )


def _with_strip(plot: Any, strip: Any) -> Any:
    """The plot over its strip, each with scales of its own, so that the legend stays in the plot."""
    kept: dict[str, Any] = dict.fromkeys(("color", "strokeDash", "strokeWidth"), "independent")
    return alt.vconcat(plot, strip, spacing=6).resolve_scale(**kept)


def _parts(ranges: pl.DataFrame) -> pl.DataFrame:
    """The ranges in their order, neighbours of one system joined; there may be none."""
    if ranges.is_empty():
        return pl.DataFrame(schema={"nearer": pl.String, "from": pl.Float64, "to": pl.Float64})
    table = tidy(ranges, {"nearer": pl.String}, ("from", "to")).sort("from", "to")
    changed = (pl.col("nearer") != pl.col("nearer").shift(1)) | (pl.col("from") > pl.col("to").shift(1))
    runs = table.with_columns(run=changed.fill_null(value=True).cum_sum())
    joined = runs.group_by("run", maintain_order=True)
    return joined.agg(pl.col("nearer").first(), pl.col("from").min(), pl.col("to").max()).drop("run")


def _layers(
    table: pl.DataFrame, parts: pl.DataFrame, scheme: Scheme, wide: Span, x: Quantity, y: Quantity
) -> list[Any]:
    shown = table if len(scheme.names) <= MOST_BANDS else table.with_columns(low=math.nan, high=math.nan)
    ends = filled_ends(shown, "impurity")
    high = (0.0, 1.06 * max(extent(ends, ("most",))[1], 1e-9))
    coloured = scheme.coloured(shown, "system")
    free = scheme.corner(ends.with_columns(least=pl.lit(0.0)), ("x", "least", "most"), wide, high)
    corner = free if len(scheme.names) > 1 else None
    unlabelled: dict[str, Any] = {} if parts.is_empty() else {"labels": False, "ticks": False}
    below = x.axis(alt.X, "x", wide, title=x.name if parts.is_empty() else "", **unlabelled)
    up = y.axis(alt.Y, "impurity", high, title=f"distance from gold standard, {y.name}")
    line = alt.Chart().mark_line(clip=True).encode(below, up, *scheme.channels(corner, "system"), order="x:Q")
    return [
        *_fills(coloured, len(scheme.names)),
        bands(coloured, "system", opacity=0.2),
        *_stripes(coloured, scheme, wide),
        *_edges(parts),
        line,
        *lone_dots(coloured, "system", "impurity"),
        hovering(table, "system", "impurity", x, Quantity("impurity", y.percent)),
    ]


def _fills(coloured: pl.DataFrame, systems: int) -> list[Any]:
    """The mass under each line, where systems are few."""
    if systems > MOST_FILLS:
        return []
    area = alt.Chart(inline(coloured.select("system", "x", "impurity", "colour"))).mark_area(opacity=0.08, clip=True)
    return [area.encode(x="x:Q", y="impurity:Q", y2=alt.Y2(datum=0), detail="system:N", fill=own(alt.Fill))]


def _stripes(coloured: pl.DataFrame, scheme: Scheme, wide: Span) -> list[Any]:
    """Upright stripes under a line where its system beats the gold standard, shifted so that systems do not cover."""
    rows = []
    gap = (wide[1] - wide[0]) * STRIPE / WIDTH
    for place, name in enumerate(scheme.names):
        part = coloured.filter((pl.col("system") == name) & pl.col("signed").is_finite()).sort("x")
        if part.height < 2:
            continue
        ends = part["x"].to_numpy()
        at = np.arange(wide[0] + gap * place / len(scheme.names), wide[1], gap)
        inside = at[(at >= ends[0]) & (at <= ends[-1])]
        signed = np.interp(inside, ends, part["signed"].to_numpy())
        rows.append(pl.DataFrame({"x": inside, "up": -signed}).with_columns(colour=pl.lit(part["colour"][0])))
    above = pl.concat(rows).filter(pl.col("up") > NOISE) if rows else pl.DataFrame()
    if above.is_empty():
        return []
    stripe = alt.Chart(inline(above)).mark_rule(strokeWidth=1.3, opacity=0.85, clip=True)
    return [stripe.encode(x="x:Q", y="up:Q", y2=alt.Y2(datum=0), stroke=own(alt.Stroke))]


def _inner_edges(parts: pl.DataFrame) -> list[float]:
    """Where the nearer system changes."""
    edges = sorted({*parts["from"].to_list(), *parts["to"].to_list()})
    return edges[1:-1]


def _edges(parts: pl.DataFrame) -> list[Any]:
    edges = _inner_edges(parts)
    if not edges:
        return []
    return [
        alt.Chart(inline(pl.DataFrame({"x": edges})))
        .mark_rule(color="#666666", strokeWidth=1, strokeDash=[2, 3])
        .encode(x="x:Q")
    ]


def _strip(parts: pl.DataFrame, scheme: Scheme, wide: Span, x: Quantity) -> Any:
    """Bars under the plot: which system is nearer to the gold standard over each range."""
    colours = {name: style.colour for name, style in scheme.styles.items()}
    pixels = WIDTH / (wide[1] - wide[0])
    labels = shortened(parts["nearer"].to_list(), 30)
    bars = parts.with_columns(
        colour=pl.col("nearer").replace_strict(colours, default=GREY),
        middle=(pl.col("from") + pl.col("to")) / 2,
        text=pl.Series([_fitting(labels[name], pixels * (to - start)) for name, start, to in parts.iter_rows()]),
        range=pl.Series([_span_words(start, to, x) for _, start, to in parts.iter_rows()]),
    )
    base = alt.Chart(inline(bars))
    told = [alt.Tooltip("nearer:N", title="nearer to gold"), alt.Tooltip("range:N")]
    bar = base.mark_rect(stroke="#666666", strokeWidth=1, fillOpacity=0.4)
    lane: dict[str, Any] = {"y": alt.value(0), "y2": alt.value(STRIP)}
    middle = alt.value(STRIP / 2)
    thin = base.transform_filter(f"(datum.to - datum.from) * {pixels!r} < 3").mark_rule(strokeWidth=4)
    return alt.layer(
        bar.encode(x.axis(alt.X, "from", wide), x2="to:Q", fill=own(alt.Fill), tooltip=told, **lane),
        thin.encode(x="middle:Q", stroke=own(alt.Stroke), tooltip=told, **lane),
        base.mark_text(fontSize=12, color="black").encode(x="middle:Q", y=middle, text="text:N", tooltip=told),
        _strip_label(),
    ).properties(width=WIDTH, height=STRIP)


def _strip_label() -> Any:
    words = alt.Chart(alt.InlineData(values=[{"text": ["nearer", "to gold"]}]))
    return words.mark_text(align="right", dx=-8, dy=-6, fontSize=11, color="#1a1a1a", lineHeight=13).encode(
        x=alt.value(0), y=alt.value(STRIP / 2), text="text:N"
    )


def _fitting(label: str, room: float) -> str:
    """As much of a name as there is room for; nothing where that is hardly a letter.

    >>> _fitting("system A", 80), _fitting("a long name", 64), _fitting("system A", 12), _fitting("undecided", 12)
    ('system A', 'a l…name', '', '?')
    """
    letters = int((room - 4) // LETTER)
    if letters >= len(label):
        return label
    if label == UNDECIDED:
        return "?" if letters else ""
    return middle_cut(label, letters) if letters >= FEWEST else ""


def _span_words(start: float, stop: float, x: Quantity) -> str:
    ends = x.told(start), x.told(stop)
    return f"at {ends[0]}" if ends[0] == ends[1] else f"from {ends[0]} to {ends[1]}"


def _title(table: pl.DataFrame, parts: pl.DataFrame, x: Quantity, y: Quantity) -> str:
    decided = parts.filter(pl.col("nearer") != UNDECIDED)
    if parts.is_empty():
        return _farthest(table, x, y)
    if decided.is_empty():
        return f"Which system is nearer to the gold standard in {y.name} is undecided throughout"
    if parts.height == 1:
        return f"{decided['nearer'][0]} is nearer to the gold standard in {y.name} throughout"
    if decided.height > MOST_RANGES:
        return f"Which system is nearer to the gold standard changes over {decided.height} ranges of {x.name}"
    ends = parts["from"].min(), parts["to"].max()
    cut = shortened(decided["nearer"].to_list(), 24)
    told = [f"{cut[name]} {_where(start, stop, ends, x)}" for name, start, stop in decided.iter_rows()]
    rest = "" if decided.height == parts.height else "; elsewhere undecided"
    return f"Nearer to the gold standard, by {x.name}: {', '.join(told)}{rest}"


def _where(start: float, stop: float, ends: tuple[Any, Any], x: Quantity) -> str:
    if start == stop:
        return f"at {x.told(start)}"
    if start == ends[0]:
        return f"below {x.told(stop)}"
    return f"above {x.told(start)}" if stop == ends[1] else _span_words(start, stop, x)


def _farthest(table: pl.DataFrame, x: Quantity, y: Quantity) -> str:
    """Where a system is farthest from the gold standard; of several, the farthest of all."""
    known = table.filter(pl.col("impurity").is_finite())
    if known.is_empty():
        return f"{table['system'][0]}: the distance from the gold standard in {y.name} is undefined"
    most = known.sort("impurity", descending=True, maintain_order=True).row(0, named=True)
    if most["impurity"] == 0:
        return f"{most['system']} has no distance from the gold standard in {y.name}"
    side = "above" if most["signed"] < 0 else "below"
    far = f"{y.apart(most['impurity'])} {side} the gold standard in {y.name}"
    return f"{most['system']} is at most {far}, at {x.name} {x.told(most['x'])}"


def _above(table: pl.DataFrame) -> list[str]:
    """Systems that beat the gold standard somewhere."""
    return table.filter(pl.col("signed") < -NOISE)["system"].unique(maintain_order=True).to_list()


def _words(table: pl.DataFrame, parts: pl.DataFrame, level: float) -> list[str]:
    many = table["system"].n_unique()
    shown = table if many <= MOST_BANDS else table[:0]
    return [
        "lower is nearer" + (", the area is the impurity mass" if many <= MOST_FILLS else ""),
        *(interval_words(shown, "shaded", level) if shown.height else []),
        *(["striped: estimated above the gold standard"] if _above(table) else []),
        *(["dotted: where the nearer system changes"] if _inner_edges(parts) else []),
    ]


def _description(table: pl.DataFrame, parts: pl.DataFrame, x: Quantity, y: Quantity) -> str:
    told = [_farthest(rows, x, y) for rows in table.partition_by("system", maintain_order=True)]
    nearer = "; ".join(f"{name} {_span_words(start, stop, x)}" for name, start, stop in parts.iter_rows())
    beaten = f" Estimated above the gold standard somewhere: {', '.join(_above(table))}." if _above(table) else ""
    verdict = f" Nearer to the gold standard: {nearer}." if nearer else ""
    return (
        f"{capital('gold impurity graph')}: distance in {y.name} against {x.name}. {'; '.join(told)}.{verdict}{beaten}"
    )
