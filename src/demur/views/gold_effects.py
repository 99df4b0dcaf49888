"""What moves systems towards the gold standard, and how domains compare: components and studies side by side."""

from __future__ import annotations

from typing import Any

import polars as pl

from demur.errors import UsageError
from demur.views.corners import Span
from demur.views.drawing import HEIGHT, WIDTH, alt, finished, inline
from demur.views.gold_rows import SYSTEMS, Quantity
from demur.views.lines import legend_in
from demur.views.names import middle_cut, shortened
from demur.views.nbest_rows import extent, interval_words, refuse_repeats, renamed, short, signed, tidy, with_interval
from demur.views.outcome_rows import name_axis, number_axis, upright

KINDS = {"main": "main effects", "interaction": "interactions", "lesion": "one component removed"}
"""Kinds of effects in the order of their panels."""

SHAPES = ("circle", "diamond", "square", "triangle-up", "cross", "triangle-down")

ROW, MASS = 26, "change of impurity mass"

LETTER, LINE, AWAY = 6.3, 15.0, 9.0
"""Width of a letter, height of a label, and its distance from a dot, in pixels."""

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
    told = [with_interval(*row, plus=True) for row in table.select("value", "low", "high").iter_rows()]
    marked = table.with_columns(told=pl.Series(told), clear=(pl.col("low") > 0) | (pl.col("high") < 0))
    kinds = [kind for kind in KINDS if kind in marked["kind"]]
    panels = [_effects_panel(marked, kind, last=kind == kinds[-1]) for kind in kinds]
    return finished(
        alt.vconcat(*panels, spacing=14),
        title=title or _effects_title(marked),
        subtitle=[
            *interval_words(marked, "lines", level),
            "left of 0: nearer to the gold standard",
            *_fullness(marked),
        ],
        description=f"{MASS.capitalize()}. {'; '.join(_effects_told(marked, kind) for kind in kinds)}.",
        table=marked,
    )


def _fullness(marked: pl.DataFrame) -> list[str]:
    return ["full dots: intervals without 0"] if marked["low"].is_finite().any() else []


def _effects_panel(marked: pl.DataFrame, kind: str, *, last: bool) -> Any:
    part = marked.filter(pl.col("kind") == kind)
    least, most = extent(marked, ("value", "low", "high"), air=0.06)
    domain = (min(least, -0.06 * abs(most)), max(most, 0.06 * abs(least)))
    hidden: dict[str, Any] = {} if last else {"labels": False, "ticks": False}
    base = alt.Chart(inline(part)).encode(y=name_axis("effect", part["effect"].to_list(), letters=40))
    below = number_axis("value", MASS if last else "", domain, **hidden)
    dot = base.mark_point(shape="circle", size=80, stroke="black", strokeWidth=1.6, opacity=1).encode(
        below,
        fill=alt.condition("datum.clear", alt.value("black"), alt.value("white")),
        tooltip=[alt.Tooltip("effect:N"), alt.Tooltip("told:N", title=MASS)],
    )
    beside = base.mark_text(align="left", dx=8, fontSize=11).encode(x=alt.value("width"), text="told:N")
    words = alt.TitleParams(KINDS[kind], anchor="start", fontSize=12, fontWeight=600, offset=4, frame="group")
    return alt.layer(
        upright(0.0, color="#333333", strokeWidth=1),
        base.mark_rule(strokeWidth=2, color="#555555").encode(x="low:Q", x2="high:Q"),
        dot,
        beside,
    ).properties(width=WIDTH - 200, height=ROW * part.height, title=words)


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


def _effects_told(marked: pl.DataFrame, kind: str) -> str:
    part = marked.filter(pl.col("kind") == kind)
    return f"{KINDS[kind]}: {', '.join(f'{name} {told}' for name, told in part.select('effect', 'told').iter_rows())}"


def domains_chart(rows: pl.DataFrame, *, level: float = 0.95, title: str | None = None) -> Any:
    """Studies side by side: how complex the task is for the gold standard, and how far systems are from it there.

    Columns of `rows`: `study`, `system`, `complexity` with `complexity_low` and `complexity_high`, and `relative_mass`
    (impurity mass relative to the study's own gold standard) with `low` and `high`. Ends of intervals may be missing.
    """
    numbers = ("complexity", "complexity_low", "complexity_high", "relative_mass", "low", "high")
    table = tidy(rows, {"study": pl.String, "system": pl.String}, numbers)
    refuse_repeats(table, "study", "system")
    wide = _from_zero(extent(table, numbers[:3]))
    high = _from_zero(extent(table, numbers[3:]))
    return finished(
        alt.layer(*_domain_layers(table, wide, high)).properties(width=WIDTH, height=HEIGHT),
        title=title or _domains_title(table),
        subtitle=[*interval_words(table, "lines", level), "left: easier for the gold standard", "low: nearer to it"],
        description=f"Complexity and relative impurity mass. {'; '.join(_domains_told(table))}.",
        table=table,
    )


def _from_zero(ends: Span) -> Span:
    return min(0.0, 1.1 * ends[0]), max(1.12 * ends[1], 1e-9)


def _domain_layers(table: pl.DataFrame, wide: Span, high: Span) -> list[Any]:
    studies = table["study"].unique(maintain_order=True).to_list()
    labels = shortened(studies, 30)
    legend = legend_in("top") if len(studies) > 1 else None
    if legend is not None:
        legend.symbolType, legend.strokeColor, legend.symbolSize = alt.Undefined, None, 90
        legend.labelExpr = renamed(labels)
        legend.columns = max(1, int(WIDTH // (LETTER * max(map(len, labels.values())) + 40)))
    colours = [SYSTEMS[place % len(SYSTEMS)].colour for place in range(len(studies))]
    shapes = [SHAPES[place % len(SHAPES)] for place in range(len(studies))]
    colour = alt.Color("study:N", scale=alt.Scale(domain=studies, range=colours), legend=legend)
    shape = alt.Shape("study:N", scale=alt.Scale(domain=studies, range=shapes), legend=legend)
    base = alt.Chart().transform_filter("isValid(datum.complexity) && isValid(datum.relative_mass)")
    thin = base.mark_rule(strokeWidth=1.4, opacity=0.75)
    told = [alt.Tooltip("study:N"), alt.Tooltip("system:N")]
    told += [alt.Tooltip(f"{name}:Q", format=".3~g") for name in ("complexity", "relative_mass")]
    axes = (
        Quantity("intellectual complexity").axis(alt.X, "complexity", wide),
        Quantity("relative impurity mass").axis(alt.Y, "relative_mass", high),
    )
    dot = base.mark_point(filled=True, size=95, opacity=1, stroke="white", strokeWidth=0.8)
    return [
        thin.encode(x="complexity_low:Q", x2="complexity_high:Q", y="relative_mass:Q", color=colour),
        thin.encode(x="complexity:Q", y="low:Q", y2="high:Q", color=colour),
        dot.encode(*axes, color=colour, shape=shape, tooltip=told),
        *_domain_labels(table, wide, high),
    ]


def _domain_labels(table: pl.DataFrame, wide: Span, high: Span) -> list[Any]:
    """The name of each system beside its dot, where it covers no other."""
    known = table.filter(pl.col("complexity").is_finite() & pl.col("relative_mass").is_finite())
    if known.is_empty() or known.height > MOST_LABELS:
        return []
    cut = shortened(known["system"].to_list(), 22)
    dots = [
        ((x - wide[0]) / (wide[1] - wide[0]) * WIDTH, (high[1] - y) / (high[1] - high[0]) * HEIGHT)
        for x, y in known.select("complexity", "relative_mass").iter_rows()
    ]
    boxes = _placed(dots, [LETTER * len(cut[name]) for name in known["system"]])
    rows = [
        {"text": cut[name], "left": box[0], "top": box[1]} for name, box in zip(known["system"], boxes, strict=True)
    ]
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X("left:Q", scale=None, axis=None), y=alt.Y("top:Q", scale=None, axis=None), text="text:N"
    )
    look: dict[str, Any] = {"align": "left", "baseline": "top", "fontSize": 11}
    return [
        base.mark_text(**look, stroke="white", strokeWidth=3, strokeJoin="round"),
        base.mark_text(**look, color="#1a1a1a"),
    ]


def _placed(dots: list[tuple[float, float]], widths: list[float]) -> list[Box]:
    """A box for each label: right of its dot above the line, or the first other place that is free."""
    taken: list[Box] = [(x - 6, y - 6, x + 6, y + 6) for x, y in dots]
    placed = []
    for (x, y), width in zip(dots, widths, strict=True):
        left, right = x - AWAY - width, x + AWAY
        spots = [(side, y + lift) for lift in (-LINE, 2.0, -2 * LINE, LINE + 2) for side in (right, left)]
        boxes = [(at, top, at + width, top + LINE) for at, top in spots if at >= 0 and at + width <= WIDTH]
        box = next((one for one in boxes if not any(_overlap(one, other) for other in taken)), None)
        chosen = box or (boxes[0] if boxes else (0.0, y - LINE, width, y))
        taken.append(chosen)
        placed.append(chosen)
    return placed


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _domains_title(table: pl.DataFrame) -> str:
    known = table.filter(pl.col("relative_mass").is_finite())
    if known.is_empty():
        return "The relative impurity mass is undefined in every study"
    best = known.sort("relative_mass", maintain_order=True).row(0, named=True)
    name = f"{middle_cut(best['system'], 30)} in {middle_cut(best['study'], 30)}"
    if known.height == 1:
        return f"{name} has a relative impurity mass of {short(best['relative_mass'])}"
    return f"{name} comes nearest to its gold standard: relative impurity mass {short(best['relative_mass'])}"


def _domains_told(table: pl.DataFrame) -> list[str]:
    told = []
    for row in table.iter_rows(named=True):
        mass = with_interval(row["relative_mass"], row["low"], row["high"])
        told.append(f"{row['system']} in {row['study']}: complexity {short(row['complexity'])}, relative mass {mass}")
    return told
