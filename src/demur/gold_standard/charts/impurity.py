"""The gold impurity graph (Paek 2001, figure 3), effects of components, and domains side by side."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl

from demur.core.show.charts import (
    HEIGHT,
    WIDTH,
    Plot,
    Span,
    alt,
    either,
    extent,
    finished,
    inline,
    interval_words,
    legend_in,
    name_axis,
    number_axis,
    plot_size,
    refuse_repeats,
    rename_expression,
    rimmed_text,
    tidy,
    upright,
)
from demur.core.show.numbers import middle_cut, short, shorten, signed, with_interval
from demur.errors import UsageError
from demur.gold_standard.charts.benchmark import (
    MOST_BANDS,
    SYSTEMS,
    Quantity,
    Scheme,
    across,
    bands,
    filled_ends,
    lone_dots,
    row_colour,
    tooltip_layer,
)

UNDECIDED = "undecided"
GREY = "#d9d9d9"

MOST_FILLS = 3
"""Systems up to which the mass is filled; more of them hide each other."""

STRIPE = 7
"""Pixels between stripes where a system beats the gold standard."""

STRIP, STRIP_CHARACTER = 24, 7.4
"""Height of the bars that say who is nearer, and width of a character in them."""


NOISE = 1e-9
"""Distances above the gold standard that are rounding and no more."""

FEWEST = 5
"""Characters from which on a part of a name is worth writing."""


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
    plot = alt.layer(*_impurity_layers(table, parts, scheme, wide, measured, wanted), width=WIDTH, height=HEIGHT)
    # Scales of their own keep the legend in the plot.
    own_scales: dict[str, Any] = dict.fromkeys(("color", "strokeDash", "strokeWidth"), "independent")
    return finished(
        plot
        if parts.is_empty()
        else alt.vconcat(plot, _strip(parts, scheme, wide, measured), spacing=6).resolve_scale(**own_scales),
        title=title or _farthest(table, measured, wanted),
        subtitle=_impurity_subtitle(table, parts, level),
        description=_impurity_description(table, parts, measured, wanted),
        table=table,
    )


def _parts(ranges: pl.DataFrame) -> pl.DataFrame:
    """The ranges in their order, neighbours of one system joined; there may be none."""
    if ranges.is_empty():
        return pl.DataFrame(schema={"nearer": pl.String, "from": pl.Float64, "to": pl.Float64})
    table = tidy(ranges, {"nearer": pl.String}, ("from", "to")).sort("from", "to")
    changed = (pl.col("nearer") != pl.col("nearer").shift(1)) | (pl.col("from") > pl.col("to").shift(1))
    runs = table.with_columns(run=changed.fill_null(value=True).cum_sum())
    joined = runs.group_by("run", maintain_order=True)
    return joined.agg(pl.col("nearer").first(), pl.col("from").min(), pl.col("to").max()).drop("run")


def _impurity_layers(
    table: pl.DataFrame, parts: pl.DataFrame, scheme: Scheme, wide: Span, x: Quantity, y: Quantity
) -> list[Any]:
    shown = table if len(scheme.names) <= MOST_BANDS else table.with_columns(low=math.nan, high=math.nan)
    ends = filled_ends(shown, "impurity")
    high = (0.0, 1.06 * max(extent(ends, ("most",))[1], 1e-9))
    coloured = scheme.with_colours(shown, "system")
    free = scheme.corner(ends.with_columns(least=pl.lit(0.0)), ("x", "least", "most"), wide, high)
    corner = free if len(scheme.names) > 1 else None
    unlabelled: dict[str, Any] = {} if parts.is_empty() else {"labels": False, "ticks": False}
    below = x.axis(alt.X, "x", wide, title=x.name if parts.is_empty() else "", **unlabelled)
    up = y.axis(alt.Y, "impurity", high, title=f"distance from gold standard, {y.name}")
    line = Plot().mark_line(clip=True).encode(below, up, *scheme.channels(corner, "system"), order=alt.Order("x:Q"))
    area = Plot(inline(coloured.select("system", "x", "impurity", "colour"))).mark_area(opacity=0.08, clip=True)
    ends_of_area: dict[str, Any] = {"x": alt.X("x:Q"), "y": alt.Y("impurity:Q"), "y2": alt.Y2(datum=0)}
    fill = area.encode(detail=alt.Detail("system:N"), fill=row_colour(alt.Fill), **ends_of_area)
    fills = [fill] if len(scheme.names) <= MOST_FILLS else []
    changes = Plot(inline(pl.DataFrame({"x": _inner_edges(parts)}, schema={"x": pl.Float64})))
    edges = changes.mark_rule(color="#666666", strokeWidth=1, strokeDash=[2, 3])
    return [
        *fills,
        bands(coloured, "system", opacity=0.2),
        *_stripes(coloured, scheme, wide),
        *([edges.encode(x=alt.X("x:Q"))] if _inner_edges(parts) else []),
        line,
        *lone_dots(coloured, "system", "impurity"),
        tooltip_layer(table, "system", "impurity", x, Quantity("impurity", y.percent)),
    ]


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
    stripe = Plot(inline(above)).mark_rule(strokeWidth=1.3, opacity=0.85, clip=True)
    return [stripe.encode(x=alt.X("x:Q"), y=alt.Y("up:Q"), y2=alt.Y2(datum=0), stroke=row_colour(alt.Stroke))]


def _inner_edges(parts: pl.DataFrame) -> list[float]:
    """Where the nearer system changes."""
    edges = sorted({*parts["from"].to_list(), *parts["to"].to_list()})
    return edges[1:-1]


def _strip(parts: pl.DataFrame, scheme: Scheme, wide: Span, x: Quantity) -> Any:
    """Bars under the plot: which system is nearer to the gold standard over each range."""
    colours = {name: style.colour for name, style in scheme.styles.items()}
    pixels = plot_size()[0] / (wide[1] - wide[0])
    labels = shorten(parts["nearer"].to_list(), 30)
    bars = parts.with_columns(
        colour=pl.col("nearer").replace_strict(colours, default=GREY),
        middle=(pl.col("from") + pl.col("to")) / 2,
        text=pl.Series([_fitting(labels[name], pixels * (to - start)) for name, start, to in parts.iter_rows()]),
        range=pl.Series([_span_words(start, to, x) for _, start, to in parts.iter_rows()]),
    )
    base = Plot(inline(bars))
    label = [alt.Tooltip("nearer:N", title="nearer to gold"), alt.Tooltip("range:N")]
    bar = base.mark_rect(stroke="#666666", strokeWidth=1, fillOpacity=0.4)
    lane: dict[str, Any] = {"y": alt.YValue(0), "y2": alt.Y2Value(STRIP)}
    middle = alt.YValue(STRIP / 2)
    thin = base.transform_filter(f"(datum.to - datum.from) * {pixels!r} < 3").mark_rule(strokeWidth=4)
    words = Plot(alt.InlineData(values=[{"text": ["nearer", "to gold"]}]))
    return alt.layer(
        bar.encode(x.axis(alt.X, "from", wide), x2=alt.X2("to:Q"), fill=row_colour(alt.Fill), tooltip=label, **lane),
        thin.encode(x=alt.X("middle:Q"), stroke=row_colour(alt.Stroke), tooltip=label, **lane),
        base.mark_text(fontSize=12, color="black").encode(
            x=alt.X("middle:Q"), y=middle, text=alt.Text("text:N"), tooltip=label
        ),
        words.mark_text(align="right", dx=-8, dy=-6, fontSize=11, color="#1a1a1a", lineHeight=13).encode(
            x=alt.XValue(0), y=middle, text=alt.Text("text:N")
        ),
        width=WIDTH,
        height=STRIP,
    )


def _fitting(label: str, room: float) -> str:
    """As much of a name as there is room for; nothing where that is hardly a character.

    >>> _fitting("system A", 80), _fitting("a long name", 64), _fitting("system A", 12), _fitting("undecided", 12)
    ('system A', 'a l…name', '', '?')
    """
    characters = int((room - 4) // STRIP_CHARACTER)
    if characters >= len(label):
        return label
    if label == UNDECIDED:
        return "?" if characters else ""
    return middle_cut(label, characters) if characters >= FEWEST else ""


def _span_words(start: float, stop: float, x: Quantity) -> str:
    ends = x.text(start), x.text(stop)
    return f"at {ends[0]}" if ends[0] == ends[1] else f"from {ends[0]} to {ends[1]}"


def _farthest(table: pl.DataFrame, x: Quantity, y: Quantity) -> str:
    """Where a system is farthest from the gold standard; of several, the farthest of all."""
    known = table.filter(pl.col("impurity").is_finite())
    if known.is_empty():
        return f"{table['system'][0]}: the distance from the gold standard in {y.name} is undefined"
    most = known.sort("impurity", descending=True, maintain_order=True).row(0, named=True)
    if most["impurity"] == 0:
        return f"{most['system']} has no distance from the gold standard in {y.name}"
    side = "above" if most["signed"] < 0 else "below"
    far = f"{y.difference(most['impurity'])} {side} the gold standard in {y.name}"
    return f"{most['system']} is at most {far}, at {x.name} {x.text(most['x'])}"


def _above(table: pl.DataFrame) -> list[str]:
    """Systems that beat the gold standard somewhere."""
    return table.filter(pl.col("signed") < -NOISE)["system"].unique(maintain_order=True).to_list()


def _impurity_subtitle(table: pl.DataFrame, parts: pl.DataFrame, level: float) -> list[str]:
    many = table["system"].n_unique()
    shown = table if many <= MOST_BANDS else table[:0]
    return [
        "lower is nearer" + (", the area is the impurity mass" if many <= MOST_FILLS else ""),
        *(interval_words(shown, "shaded", level) if shown.height else []),
        *(["striped: estimated above the gold standard"] if _above(table) else []),
        *(["dotted: limits of the ranges where one is shown to be nearer"] if _inner_edges(parts) else []),
    ]


def _impurity_description(table: pl.DataFrame, parts: pl.DataFrame, x: Quantity, y: Quantity) -> str:
    label = [_farthest(rows, x, y) for rows in table.partition_by("system", maintain_order=True)]
    nearer = "; ".join(f"{name} {_span_words(start, stop, x)}" for name, start, stop in parts.iter_rows())
    beaten = f" Estimated above the gold standard somewhere: {', '.join(_above(table))}." if _above(table) else ""
    verdict = f" Nearer to the gold standard: {nearer}." if nearer else ""
    return f"Gold impurity graph: distance in {y.name} against {x.name}. {'; '.join(label)}.{verdict}{beaten}"


KINDS = {"main": "main effects", "interaction": "interactions", "lesion": "one component removed"}
"""Kinds of effects in the order of their panels."""

SHAPES = ("circle", "diamond", "square", "triangle-up", "cross", "triangle-down")

ROW, MASS = 26, "change of impurity mass"

EFFECT_CHARACTER, LINE, AWAY = 6.3, 15.0, 9.0
"""Width of a character, height of a label, and its distance from a dot, in pixels."""

MOST_LABELS = 24
"""Dots up to which each is labelled; the tooltips name all."""

Box = tuple[float, float, float, float]


def components_chart(effects: pl.DataFrame, *, level: float = 0.95, title: str | None = None) -> Any:
    """Changes of the impurity mass by components, with intervals: main effects, interactions, and what removal does.

    Columns of `effects`: `effect` (its name), `value`, `low` and `high` (null or NaN where there is no interval), and
    `kind`: "main", "interaction" or "lesion". Below 0 a system comes nearer to the gold standard.
    """
    table = tidy(effects, {"effect": pl.String, "kind": pl.String}, ("value", "low", "high"))
    refuse_repeats(table, "kind", "effect")
    strange = table.filter(~pl.col("kind").is_in(list(KINDS)))
    if strange.height:
        raise UsageError(f'kind is one of {", ".join(KINDS)}; got "{strange["kind"][0]}"')
    label = [with_interval(*row, write=signed) for row in table.select("value", "low", "high").iter_rows()]
    marked = table.with_columns(label=pl.Series(label), clear=(pl.col("low") > 0) | (pl.col("high") < 0))
    kinds = [kind for kind in KINDS if kind in marked["kind"]]
    panels = [_effects_panel(marked, kind, last=kind == kinds[-1]) for kind in kinds]
    texts = []
    for kind in kinds:
        part = marked.filter(pl.col("kind") == kind).select("effect", "label")
        texts.append(f"{KINDS[kind]}: {', '.join(f'{name} {change}' for name, change in part.iter_rows())}")
    return finished(
        alt.vconcat(*panels, spacing=14),
        title=title or _effects_title(marked),
        subtitle=[
            *interval_words(marked, "lines", level),
            "left of 0: nearer to the gold standard",
            *(["full dots: intervals without 0"] if marked["low"].is_finite().any() else []),
        ],
        description=f"{MASS.capitalize()}. {'; '.join(texts)}.",
        table=marked,
    )


def _effects_panel(marked: pl.DataFrame, kind: str, *, last: bool) -> Any:
    part = marked.filter(pl.col("kind") == kind)
    least, most = extent(marked, ("value", "low", "high"), air=0.06)
    domain = (min(least, -0.06 * abs(most)), max(most, 0.06 * abs(least)))
    hidden: dict[str, Any] = {} if last else {"labels": False, "ticks": False}
    base = Plot(inline(part)).encode(y=name_axis("effect", part["effect"].to_list(), characters=40))
    below = number_axis("value", MASS if last else "", domain, **hidden)
    dot = base.mark_point(shape="circle", size=80, stroke="black", strokeWidth=1.6, opacity=1).encode(
        below,
        fill=either(alt.FillValue, "datum.clear", "black", "white"),
        tooltip=[alt.Tooltip("effect:N"), alt.Tooltip("label:N", title=MASS)],
    )
    beside = base.mark_text(align="left", dx=8, fontSize=11).encode(x=alt.XValue("width"), text=alt.Text("label:N"))
    words = alt.TitleParams(KINDS[kind], anchor="start", fontSize=12, fontWeight=600, offset=4, frame="group")
    return alt.layer(
        upright(0.0, color="#333333", strokeWidth=1),
        base.mark_rule(strokeWidth=2, color="#555555").encode(x=alt.X("low:Q"), x2=alt.X2("high:Q")),
        dot,
        beside,
        width=WIDTH - 200,
        height=ROW * part.height,
        title=words,
    )


def _effects_title(marked: pl.DataFrame) -> str:
    known = marked.filter(pl.col("value").is_finite())
    if known.is_empty():
        return f"The {MASS} is undefined for every component"
    sure = known.filter("clear") if known["low"].is_finite().any() else known
    if sure.is_empty():
        return "No component is shown to change the distance from the gold standard"
    most = sure.sort(pl.col("value").abs(), descending=True, maintain_order=True).row(0, named=True)
    verb = "adds" if most["value"] > 0 else "takes off"
    name = {"main": "", "interaction": "The interaction ", "lesion": "Removing "}[most["kind"]]
    name += middle_cut(most["effect"].removeprefix("without ") if most["kind"] == "lesion" else most["effect"], 48)
    return f"{name} {verb} most impurity mass: {signed(most['value'])}"


def domains_chart(rows: pl.DataFrame, *, level: float = 0.95, title: str | None = None) -> Any:
    """Studies side by side: how complex the task is for the gold standard, and how far systems are from it there.

    Columns of `rows`: `study`, `system`, `complexity` with `complexity_low` and `complexity_high`, and `relative_mass`
    (impurity mass relative to the study's own gold standard) with `low` and `high`. Ends of intervals may be missing.
    """
    numbers = ("complexity", "complexity_low", "complexity_high", "relative_mass", "low", "high")
    table = tidy(rows, {"study": pl.String, "system": pl.String}, numbers)
    refuse_repeats(table, "study", "system")
    ends = (extent(table, numbers[:3]), extent(table, numbers[3:]))
    wide, high = ((min(0.0, 1.1 * least), max(1.12 * most, 1e-9)) for least, most in ends)
    texts = [
        f"{row['system']} in {row['study']}: complexity {short(row['complexity'])}, "
        f"relative mass {with_interval(row['relative_mass'], row['low'], row['high'])}"
        for row in table.iter_rows(named=True)
    ]
    return finished(
        alt.layer(*_domain_layers(table, wide, high), width=WIDTH, height=HEIGHT),
        title=title or _domains_title(table),
        subtitle=[*interval_words(table, "lines", level), "left: easier for the gold standard", "low: nearer to it"],
        description=f"Complexity and relative impurity mass. {'; '.join(texts)}.",
        table=table,
    )


def _domain_layers(table: pl.DataFrame, wide: Span, high: Span) -> list[Any]:
    studies = table["study"].unique(maintain_order=True).to_list()
    labels = shorten(studies, 30)
    legend = legend_in("top") if len(studies) > 1 else None
    if legend is not None:
        legend.symbolType, legend.strokeColor, legend.symbolSize = alt.Undefined, None, 90
        legend.labelExpr = rename_expression(labels)
        legend.columns = max(1, int(WIDTH // (EFFECT_CHARACTER * max(map(len, labels.values())) + 40)))
    colours = [SYSTEMS[place % len(SYSTEMS)].colour for place in range(len(studies))]
    shapes = [SHAPES[place % len(SHAPES)] for place in range(len(studies))]
    colour = alt.Color("study:N", scale=alt.Scale(domain=studies, range=colours), legend=legend)
    shape = alt.Shape("study:N", scale=alt.Scale(domain=studies, range=shapes), legend=legend)
    base = Plot().transform_filter("isValid(datum.complexity) && isValid(datum.relative_mass)")
    thin = base.mark_rule(strokeWidth=1.4, opacity=0.75)
    label = [alt.Tooltip("study:N"), alt.Tooltip("system:N")]
    label += [alt.Tooltip(f"{name}:Q", format=".3~g") for name in ("complexity", "relative_mass")]
    axes = (
        Quantity("intellectual complexity").axis(alt.X, "complexity", wide),
        Quantity("relative impurity mass").axis(alt.Y, "relative_mass", high),
    )
    dot = base.mark_point(filled=True, size=95, opacity=1, stroke="white", strokeWidth=0.8)
    return [
        thin.encode(
            x=alt.X("complexity_low:Q"), x2=alt.X2("complexity_high:Q"), y=alt.Y("relative_mass:Q"), color=colour
        ),
        thin.encode(x=alt.X("complexity:Q"), y=alt.Y("low:Q"), y2=alt.Y2("high:Q"), color=colour),
        dot.encode(*axes, color=colour, shape=shape, tooltip=label),
        *_domain_labels(table, wide, high),
    ]


def _domain_labels(table: pl.DataFrame, wide: Span, high: Span) -> list[Any]:
    """The name of each system beside its dot, where it covers no other."""
    known = table.filter(pl.col("complexity").is_finite() & pl.col("relative_mass").is_finite())
    if known.is_empty() or known.height > MOST_LABELS:
        return []
    cut = shorten(known["system"].to_list(), 22)
    width, height = plot_size()
    dots = [
        ((x - wide[0]) / (wide[1] - wide[0]) * width, (high[1] - y) / (high[1] - high[0]) * height)
        for x, y in known.select("complexity", "relative_mass").iter_rows()
    ]
    boxes = _placed(dots, [EFFECT_CHARACTER * len(cut[name]) for name in known["system"]])
    rows = [
        {"text": cut[name], "left": box[0], "top": box[1]} for name, box in zip(known["system"], boxes, strict=True)
    ]
    base = Plot(alt.InlineData(values=rows)).encode(
        x=alt.X("left:Q", scale=None, axis=None), y=alt.Y("top:Q", scale=None, axis=None), text=alt.Text("text:N")
    )
    return rimmed_text(base, 3, "#1a1a1a", align="left", baseline="top", fontSize=11)


def _placed(dots: list[tuple[float, float]], widths: list[float]) -> list[Box]:
    """A box for each label: right of its dot above the line, or the first other place that is free."""

    def overlap(one: Box, other: Box) -> bool:
        return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]

    taken: list[Box] = [(x - 6, y - 6, x + 6, y + 6) for x, y in dots]
    placed = []
    for (x, y), width in zip(dots, widths, strict=True):
        left, right = x - AWAY - width, x + AWAY
        spots = [(side, y + lift) for lift in (-LINE, 2.0, -2 * LINE, LINE + 2) for side in (right, left)]
        boxes = [(at, top, at + width, top + LINE) for at, top in spots if at >= 0 and at + width <= plot_size()[0]]
        box = next((one for one in boxes if not any(overlap(one, other) for other in taken)), None)
        chosen = box or (boxes[0] if boxes else (0.0, y - LINE, width, y))
        taken.append(chosen)
        placed.append(chosen)
    return placed


def _domains_title(table: pl.DataFrame) -> str:
    known = table.filter(pl.col("relative_mass").is_finite())
    if known.is_empty():
        return "The relative impurity mass is undefined in every study"
    best = known.sort("relative_mass", maintain_order=True).row(0, named=True)
    name = f"{middle_cut(best['system'], 30)} in {middle_cut(best['study'], 30)}"
    if known.height == 1:
        return f"{name} has a relative impurity mass of {short(best['relative_mass'])}"
    return f"{name} comes nearest to its gold standard: relative impurity mass {short(best['relative_mass'])}"
