"""Compared systems: their curves, of many the leaders in colour; areas with intervals; differences of every two."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from demur.core.show.charts import (
    GREY,
    HEIGHT,
    HOVER,
    INK,
    LETTER,
    LINE,
    OTHERS,
    WIDTH,
    LineStyle,
    Plot,
    alt,
    finished,
    headroom,
    inline,
    lines_of_many,
    name_axis,
    number_axis,
    padded,
    plot_size,
    rimmed_text,
    style_of,
)
from demur.core.show.html import evenly
from demur.core.show.numbers import inputs, percent, shorten, with_interval
from demur.returns import words
from demur.returns.charts.error_return import (
    MOST_STYLED,
    band_layer,
    curve_axes,
    curve_table,
    cutoff_layer,
    error_return_chart,
    mark_layers,
    marks_of,
    promised,
    region_layer,
    start_layer,
)
from demur.returns.comparison import verdicts
from demur.returns.comparison.compare import Comparison
from demur.returns.comparison.contrasts import Standing
from demur.returns.evaluate import Evaluation
from demur.returns.threshold import Choice

LEAST_LEADERS, MOST_LEADERS = 3, 5
BAND_POINTS = 34
"""Points of a band that shows under the pointer."""


def comparison_chart(
    comparison: Comparison,
    *,
    region: tuple[float, float] | None = (0.15, 0.25),
    choices: Sequence[Choice] = (),
) -> Any:
    """The error-return plot of compared systems: its title is the verdict, crossings that are shown are marked.

    Of more than eight systems only the baseline and the leaders are in colour; others show under the pointer, and stay
    when they are clicked. `choices` marks operating points.
    """
    short, shared = comparison.in_short
    facts = [shared] if shared else []
    if len(short.evaluations) > MOST_STYLED:
        return _many_systems(short, region, choices, facts)
    return error_return_chart(
        short.evaluations,
        baseline=short.leaderboard.baseline,
        region=region,
        choices=choices,
        title=verdicts.comparison_title(short),
        crossings=[crossing for pair in short.pairs for crossing in verdicts.supported_crossings(pair)],
        facts=facts,
    )


def line_styles(comparison: Comparison) -> dict[str, LineStyle]:
    """The style of each system's line, by the short name it is shown by."""
    short, _ = comparison.in_short
    names = [one.name for one in short.evaluations]
    if len(names) > MOST_STYLED:
        coloured = {name: style_of(place) for place, name in enumerate(coloured_systems(short))}
        return {name: coloured.get(name, GREY) for name in names}
    baseline = short.leaderboard.baseline
    ordered = [baseline, *(name for name in names if name != baseline)]
    return {name: style_of(ordered.index(name)) for name in names}


def coloured_systems(comparison: Comparison) -> list[str]:
    """The baseline, then those that no test shows to be behind another, or at least the first three."""
    ranked = comparison.leaderboard.ranked
    leaders = sum(one.rank[0] == 1 for one in ranked)
    first = ranked[: min(max(leaders, LEAST_LEADERS), MOST_LEADERS)]
    return list(dict.fromkeys([comparison.leaderboard.baseline, *(one.system for one in first)]))


def _many_systems(
    comparison: Comparison, region: tuple[float, float] | None, choices: Sequence[Choice], facts: Sequence[str]
) -> Any:
    names = coloured_systems(comparison)
    systems = {one.name: one for one in comparison.evaluations}
    drawn = [systems[name] for name in names]
    others = [one for one in comparison.evaluations if one.name not in names and not verdicts.is_silent(one.curve)]
    table = curve_table([*drawn, *others])
    band = drawn[0].band.frame().select("system", "nonreturn", low="low_all", high="high_all")
    heights = (float(frame[name].max()) for frame, name in ((table, "error"), (band, "high")))  # type: ignore[arg-type]
    promises = promised(choices)
    domain = headroom(max(*heights, *(bound for of, bound in promises if of != "nonreturn")))
    axes = curve_axes(domain)
    grey, lines = lines_of_many(names, len(others), axes, "right", alt.Order("nonreturn:Q"))
    layers = [
        *region_layer(region, domain),
        grey,
        band_layer(names, band),
        lines,
        *cutoff_layer(drawn),
        *start_layer(drawn, intervals=False),
        *mark_layers(promises, marks_of(choices), domain),
        *_direct_labels(drawn, domain),
        *_under_the_pointer(comparison, names),
    ]
    sizes = inputs([one.n for one in systems.values()], clustered=any(one.clustered for one in systems.values()))
    strip = [] if region is None else [f"shaded strip: {percent(region[0])} to {percent(region[1])}"]
    return finished(
        alt.layer(*layers, width=WIDTH, height=HEIGHT),
        title=verdicts.comparison_title(comparison),
        subtitle=[
            sizes,
            f"baseline in black with its {percent(comparison.level)} band, the first by rank named, others pale grey",
            *strip,
            *([words.choice_rates(choices[0])] if len(choices) == 1 else []),
            *facts,
        ],
        description=f"{words.description(drawn, region, choices)} {len(others)} others are drawn in grey.",
        table=table,
    )


def _direct_labels(drawn: Sequence[Evaluation], domain: tuple[float, float]) -> list[Any]:
    """The names of lines at their left ends, where no other line in colour runs through them."""
    short = shorten([one.name for one in drawn], 28)
    rows: list[dict[str, Any]] = []
    for place, one in enumerate(drawn):
        start, error, text = one.curve.floor, float(one.curve.error[0]), short[one.name]
        x = np.linspace(start, start + (LETTER * len(text) + 7) / WIDTH, 30)
        above = np.concatenate([other.curve.error_at(x) for other in drawn if other is not one]) - error
        taken = (above > -0.2 * LINE * domain[1] / HEIGHT) & (above < 1.3 * LINE * domain[1] / HEIGHT)
        if not taken.any():
            rows.append({"nonreturn": start, "error": error, "text": text, "colour": style_of(place).colour})
    if not rows:
        return []
    labels = Plot(inline(pl.DataFrame(rows))).encode(
        x=alt.X("nonreturn:Q"), y=alt.Y("error:Q"), text=alt.Text("text:N"), color=alt.Color("colour:N", scale=None)
    )
    look: dict[str, Any] = {"align": "left", "baseline": "bottom", "dx": 7, "dy": -2, "fontSize": 11, "fontWeight": 600}
    rim = labels.encode(color=alt.ColorValue("white"))
    return [rimmed_text(rim, 3, "white", **look)[0], labels.mark_text(**look)]


def _under_the_pointer(comparison: Comparison, names: Sequence[str]) -> list[Any]:
    """Any line with its band and name while the pointer is over it, and for as long as it is picked by a click."""
    colours = {name: style.colour for name, style in line_styles(comparison).items()}
    standings = {one.system: one for one in comparison.leaderboard.standings}
    tips, bands = [], []
    for place, one in enumerate(comparison.evaluations):
        colour = colours[one.name] if one.name in names else OTHERS[place % len(OTHERS)].colour
        start = {"start": one.curve.floor, "start_error": float(one.curve.error[0])}
        figure, rank = one.figures["augrc"], standings[one.name].rank
        ends = with_interval(figure.value, figure.low, figure.high, write="{:.4f}".format)
        tips.append({"system": one.name, "colour": colour, **start, "rank": f"{rank[0]} to {rank[1]}", "area": ends})
        rows = evenly(one.band.frame().select("system", "nonreturn", low="low_all", high="high_all"), BAND_POINTS)
        bands.append(rows.with_columns(pl.selectors.float().round(4)))
    over, picked = f"{HOVER}_line", f"{HOVER}_pick"
    shown: Any = {"or": [{"param": name, "empty": False} for name in (over, picked)]}
    about = inline(pl.DataFrame(tips))
    known = alt.LookupData(data=about, key="system", fields=["colour", "rank", "area"])
    curves = Plot(name=f"{HOVER}_shown").transform_filter(shown).transform_lookup(lookup="system", from_=known)
    area = Plot(inline(pl.concat(bands)), name=f"{HOVER}_band").transform_filter(shown)
    area = area.transform_lookup(lookup="system", from_=known)
    labels = Plot(about, name=f"{HOVER}_label").transform_filter(shown)
    labels = labels.encode(x=alt.X("start:Q"), y=alt.Y("start_error:Q"), text=alt.Text("system:N"))
    rim, text = rimmed_text(labels, 4, INK, align="left", baseline="bottom", dx=7, dy=-3, fontSize=12, fontWeight=600)
    line: dict[str, Any] = {"x": alt.X("nonreturn:Q"), "y": alt.Y("error:Q"), "order": alt.Order("nonreturn:Q")}
    catch = Plot(name=f"{HOVER}_lines").transform_lookup(lookup="system", from_=known)
    tooltip = [alt.Tooltip(f"{field}:N", title=title) for field, title in TIP_TITLES.items()]
    coloured = alt.Color("colour:N", scale=None)
    return [
        area.mark_area(opacity=0.22, clip=True).encode(
            x=line["x"],
            y=alt.Y("low:Q"),
            y2=alt.Y2("high:Q"),
            detail=alt.Detail("system:N"),
            fill=alt.Fill("colour:N", scale=None),
        ),
        curves.mark_line(strokeWidth=2.8, clip=True).encode(**line, detail=alt.Detail("system:N"), color=coloured),
        rim.properties(name=f"{HOVER}_rim"),
        text,
        catch.mark_line(strokeWidth=9, opacity=0.001, clip=True)
        .encode(**line, detail=alt.Detail("system:N"), tooltip=tooltip)
        .add_params(
            alt.selection_point(name=over, fields=["system"], on="pointerover", clear="pointerout", empty=False),
            alt.selection_point(name=picked, fields=["system"], on="click", toggle="true", empty=False),
        ),
    ]


TIP_TITLES = {"system": "system", "rank": "rank", "area": "AUGRC"}

SIDES = {
    "significantly better": ("#0072B2", "circle", True),
    "no significant difference": ("#555555", "circle", False),
    "significantly worse": ("#D55E00", "square", True),
    "baseline": ("#000000", "diamond", True),
}
"""How a system differs from the baseline: colour, shape, and whether it is filled."""


def forest_chart(comparison: Comparison) -> Any:
    """AUGRC of each system with its interval, by rank; colour and shape tell how it differs from the baseline."""
    short, shared = comparison.in_short
    ranked = short.leaderboard.ranked
    rows = []
    for one in ranked:
        figure, places = one.figures["augrc"], str(one.rank[0])
        places += "" if one.rank[0] == one.rank[1] else f"–{one.rank[1]}"
        text = "undefined"
        if figure.defined:
            text = with_interval(figure.value, figure.low, figure.high, write="{:.4f}".format)
        rows.append((one.system, figure.value, figure.low, figure.high, _side(one), places, text))
    columns = ("system", "augrc", "low", "high", "side", "rank", "text")
    table = pl.DataFrame(rows, schema=columns, orient="row", infer_schema_length=None)
    tests = next((one.difference.tests for one in ranked if one.difference is not None), 0)
    more = f", and {len(rows) - MOST_TOLD} more" if len(rows) > MOST_TOLD else ""
    step = 22 if len(rows) <= FEW_ROWS else 15
    return finished(
        alt.layer(*_forest_layers(table), width=WIDTH, height=step * len(rows)),
        title="Areas under the curves, by rank",
        subtitle=[
            f"{percent(short.level)} intervals of each area",
            f"colour: better or worse overall than {short.leaderboard.baseline}, corrected for {tests:,} tests",
            "right: the ranks that tests of every two leave open",
            *([shared] if shared else []),
        ],
        description=f"AUGRC by rank: {'; '.join(f'{row[0]} {row[6]}' for row in rows[:MOST_TOLD])}{more}.",
        table=table,
    )


FEW_ROWS, MOST_TOLD = 20, 12
"""Rows up to which a forest has room to spare, and how many systems its description names."""


def _side(one: Standing) -> str:
    """What the tests against the baseline show."""
    if one.difference is None:
        return "baseline"
    return "no significant difference" if one.verdict is None else f"significantly {one.verdict}"


def _forest_layers(table: pl.DataFrame) -> list[Any]:
    domain = padded(table.select("augrc", "low", "high").to_numpy(), air=0.04)
    names = table["system"].to_list()
    font = 12 if len(names) <= FEW_ROWS else 10.5
    base = Plot().encode(y=name_axis("system", names, characters=34, labelFontSize=font))
    drawn = set(table.filter(pl.col("augrc").is_finite())["side"])
    sides = [side for side in SIDES if side in drawn]
    looks = [SIDES[side] for side in sides]
    legend = alt.Legend(title=None, orient="top", symbolSize=90, columns=4)
    colours, shapes, fills = (
        channel("side:N", scale=alt.Scale(domain=sides, range=values), legend=legend)
        for channel, values in (
            (alt.Color, [colour for colour, _, _ in looks]),
            (alt.Shape, [shape for _, shape, _ in looks]),
            (alt.Fill, [colour if filled else "white" for colour, _, filled in looks]),
        )
    )
    line = Plot(inline(table.filter(side="baseline"))).mark_rule(color="#777777", strokeDash=[3, 3])
    axis = number_axis("low", "AUGRC (mean error rate over all non-return rates; lower is better)", domain)
    tooltip = [alt.Tooltip("system:N"), alt.Tooltip("text:N", title="AUGRC"), alt.Tooltip("rank:N")]
    dots = base.mark_point(size=60, opacity=1, strokeWidth=1.6)
    ranks = base.mark_text(align="left", dx=6, fontSize=10.5, color="#555555")
    return [
        line.encode(x=alt.X("augrc:Q")),
        base.mark_rule(strokeWidth=1.6).encode(axis, x2=alt.X2("high:Q"), color=colours),
        dots.encode(x=alt.X("augrc:Q"), color=colours, fill=fills, shape=shapes, tooltip=tooltip),
        ranks.encode(x=alt.XValue("width"), text=alt.Text("rank:N")),
    ]


MATRIX_WIDTH, WIDEST_CELL = 560, 30
"""Pixels of a heat map of many systems, and of a cell of one of few."""

SHADES = 12
"""Steps of the colours of a heat map: few make a small picture."""


def pair_matrix_chart(comparison: Comparison) -> Any:
    """Differences of AUGRC of every two systems as a heat map, by rank, with dots where they are significant."""
    short, shared = comparison.in_short
    names = [one.system for one in short.leaderboard.ranked]
    places = {name: place for place, name in enumerate(names)}
    rows = []
    for pair in (one for one in short.leaderboard.pairs if one.overall.defined):
        contrast, row, column = pair.overall, places[pair.a], places[pair.b]
        if row < column:
            contrast, row, column = contrast.turned(), column, row
        rows.append((names[row], names[column], contrast.value, contrast.p_adjusted, contrast.significant, row, column))
    schema = {"system": pl.String, "other": pl.String, "difference": pl.Float64, "p_adjusted": pl.Float64}
    schema |= {"significant": pl.Boolean, "row": pl.Int64, "column": pl.Int64}
    table = pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.col("difference", "p_adjusted").round(5))
    cell = max(min(WIDEST_CELL, round(MATRIX_WIDTH / len(names))), 1)  # whole pixels make sharp and small pictures
    size = cell * (len(names) - 1)
    shown = f"{table['significant'].sum():,} of {len(rows):,}"
    corrected = f"significant after correction for {short.leaderboard.tests:,} tests"
    return finished(
        alt.layer(*_matrix_layers(table, names, cell), width=size, height=size),
        title=f"Differences of every two systems: {shown} are significant",
        subtitle=[
            "systems by rank, the best first",
            f"dots: {corrected} at {percent(1 - short.level)}",
            *([shared] if shared else []),
        ],
        description=f"AUGRC of each system less that of each better-ranked one; {shown} differences are {corrected}.",
        table=table,
    )


def _matrix_layers(table: pl.DataFrame, names: Sequence[str], cell: int) -> list[Any]:
    most = max([1e-6, *map(abs, table["difference"])])
    ends = [(0.0, "#f7f7f7"), (most, "#D55E00")]
    if min(table["difference"], default=0.0) < -0.02 * most:  # ranks need not follow areas where systems withhold
        ends.insert(0, (-most, "#0072B2"))
    scale = alt.Scale(domain=[end for end, _ in ends], range=[colour for _, colour in ends], interpolate="lab")
    bar = alt.Legend(
        title=["AUGRC of the row", "less the column"], format="+.3~f", gradientLength=150, orient="top-right"
    )
    base = Plot().encode(
        x=_matrix_axis(alt.X, "column", names[:-1], cell), y=_matrix_axis(alt.Y, "row", names[1:], cell, first=1)
    )
    written = json.dumps(names, ensure_ascii=False)
    cells = base.transform_calculate(
        row_system=f"{written}[datum.row]",
        column_system=f"{written}[datum.column]",
        shade=f"round(datum.difference / {most:.7f} * {SHADES}) / {SHADES} * {most:.7f}",
        p="datum.p_adjusted < 0.001 ? '< 0.001' : format(datum.p_adjusted, '.2~r')",
    )
    tooltip = [
        alt.Tooltip("row_system:N", title="row"),
        alt.Tooltip("column_system:N", title="column"),
        alt.Tooltip("difference:Q", title="AUGRC of the row less the column", format="+.4f"),
        alt.Tooltip("p:N", title="p, corrected"),
    ]
    dots = base.transform_filter("datum.significant").mark_circle(
        size=max(2.0, (0.32 * cell) ** 2), color="#111111", opacity=1
    )
    return [cells.mark_rect().encode(color=alt.Color("shade:Q", scale=scale, legend=bar), tooltip=tooltip), dots]


def _matrix_axis(channel: type[Any], field: str, names: Sequence[str], cell: int, *, first: int = 0) -> Any:
    """A place for each name; the names are looked up, so that no cell of the data has to repeat them."""
    characters = max(16, min(28, int(28 * plot_size()[0] / WIDTH)))
    short = list(shorten(names, characters).values())
    look: dict[str, Any] = {"labelAngle": -90, "labelAlign": "right"} if channel is alt.X else {}
    axis = alt.Axis(
        title=None,
        ticks=False,
        domain=False,
        grid=False,
        labelFontSize=max(5.5, min(11.0, cell * 0.95)),
        labelLimit=190,
        labelOverlap=False,
        labelPadding=3,
        labelExpr=f"{json.dumps(short, ensure_ascii=False)}[datum.value - {first}]",
        **look,
    )
    domain = list(range(first, first + len(names)))
    return channel(field, type="ordinal", scale=alt.Scale(domain=domain, padding=0.04 if cell > 12 else 0), axis=axis)
