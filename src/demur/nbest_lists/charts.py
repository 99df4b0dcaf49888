"""Charts of N-best evaluation: the parts of the ICE, scorers side by side, paired systems, list lengths, floors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import polars as pl

from demur.core.show.charts import (
    HEIGHT,
    WIDTH,
    Plot,
    alt,
    check_better,
    either,
    extent,
    finished,
    in_percent,
    inline,
    interval_words,
    legend_corner,
    line_channels,
    number_axis,
    rate_axis,
    refuse_repeats,
    rename_expression,
    style_of,
    tidy,
    upright,
)
from demur.core.show.numbers import aligned, count, number, percent, short, shorten, signed, with_interval
from demur.errors import UsageError
from demur.nbest_lists.measures import PAPER_FLOOR

Kept = Literal["hypotheses", "sentences"]
_ONE: dict[Kept, str] = {"hypotheses": "hypothesis", "sentences": "sentence"}
_WHICH: dict[Kept, str] = {
    "hypotheses": "hypotheses kept: the most confident of each list",
    "sentences": "sentences kept: the most probable of each utterance",
}


def sweep_chart(
    rows: pl.DataFrame,
    *,
    what: Kept = "hypotheses",
    measure_title: str = "ICE",
    condition_title: str = "",
    title: str | None = None,
    level: float = 0.95,
    floor: float | None = None,
) -> Any:
    """A measure against the number of hypotheses or sentences kept, one line per condition.

    Figure 1 of Thomson et al. (2008).

    Columns of `rows`: `condition` (text, in the order of the legend), `kept` (whole number from 1), `value`, and the
    ends of its interval, `low` and `high` (null or NaN where there is none). The axis is logarithmic, with a tick at
    every number that was tried.
    """
    table = tidy(rows, {"condition": pl.String, "kept": pl.Int64}, ("value", "low", "high"))
    fewest = min(table["kept"].to_list())
    if fewest < 1:
        raise UsageError(f"the number of {what} kept starts at 1; got {fewest}")
    names = table["condition"].unique(maintain_order=True).to_list()
    labels = {name: f"{condition_title} {cut}".strip() for name, cut in shorten(names).items()}
    values = [
        f"{label or 'all'}: {', '.join(f'{number(value)} at {kept}' for kept, value in points)}"
        for name, label in labels.items()
        if (points := table.filter(pl.col("condition") == name).sort("kept").select("kept", "value").rows())
    ]
    return finished(
        alt.layer(*_sweep_layers(table, labels, measure_title, what), width=WIDTH, height=HEIGHT),
        title=title or _sweep_title(table, labels, measure_title, what),
        subtitle=[*interval_words(table, "shaded", level), _WHICH[what], *_floor_words(floor)],
        description=f"{measure_title} against the number of {what} kept. {'; '.join(values[:8])}.",
        table=table,
    )


def _floor_words(floor: float | None) -> list[str]:
    """The floor as the subtitle of a figure has it; nothing where no floor matters."""
    return [] if floor is None else [f"floor {floor:g} under probabilities"]


def _sweep_layers(table: pl.DataFrame, labels: dict[str, str], measure_title: str, what: Kept) -> list[Any]:
    names, kept = list(labels), sorted(set(table["kept"].to_list()))
    colours = [style_of(place).colour for place in range(len(names))]
    coloured = table.with_columns(
        pl.col("condition").replace_strict(names, colours).alias("colour"), text=_interval_column(table)
    )
    places = np.log(table["kept"].to_numpy())
    value, low, high = (table[column].to_numpy() for column in ("value", "low", "high"))
    corner, domain = legend_corner(
        (places - places.min()) / (np.ptp(places) or 1.0),
        np.fmin(low, value),
        np.fmax(high, value),
        extent(table, ("value", "low", "high"), air=0.05),
        rows=len(names),
    )
    across = alt.X(
        "kept:Q",
        title=f"{what} kept (logarithmic)",
        scale=alt.Scale(type="log", domain=[kept[0], max(kept[-1], kept[0] + 1)], nice=False),
        axis=alt.Axis(values=kept, format="d", labelOverlap=True, labelFlush=False, grid=False),
    )
    up = number_axis("value", measure_title, domain, channel=alt.Y)
    channels = line_channels(names, corner=corner, field="condition", labels=labels)
    base = Plot(inline(coloured))
    fill = alt.Fill("colour:N", scale=None)
    band = base.mark_area(opacity=0.16).encode(
        x=alt.X("kept:Q"), y=alt.Y("low:Q"), y2=alt.Y2("high:Q"), detail=alt.Detail("condition:N"), fill=fill
    )
    dots = base.mark_point(shape="circle", size=52, stroke="white", strokeWidth=1, opacity=1).encode(
        x=alt.X("kept:Q"),
        y=alt.Y("value:Q"),
        fill=fill,
        tooltip=[alt.Tooltip("condition:N"), alt.Tooltip("kept:N"), alt.Tooltip("text:N", title="value")],
    )
    return [band, Plot().mark_line().encode(across, up, *channels), dots]


def _interval_column(table: pl.DataFrame, value: str = "value", **write: Any) -> pl.Series:
    return pl.Series([with_interval(*row, **write) for row in table.select(value, "low", "high").iter_rows()])


def _sweep_title(table: pl.DataFrame, labels: dict[str, str], measure_title: str, what: Kept) -> str:
    known = table.filter(pl.col("value").is_finite()).sort("kept")
    ends = {}
    for name in labels:
        rows = known.filter(pl.col("condition") == name).select("kept", "value").rows() or [(math.nan, math.nan)]
        ends[name] = rows[0], rows[-1]
    moves = {name: np.sign(last[1] - first[1]) for name, (first, last) in ends.items()}
    words = {-1.0: "falls", 1.0: "rises", 0.0: "stays"}
    if len(ends) == 1:
        (fewest, first), (most, last) = next(iter(ends.values()))
        move = words.get(float(moves.popitem()[1]), "is undefined")
        kept = _ONE[what] if fewest == 1 else what
        return f"{measure_title} {move} from {short(first)} with {fewest:g} {kept} to {short(last)} with {most:g}"
    alike = set(moves.values())
    if len(alike) == 1 and not alike & {0.0}:
        every = "in both" if len(ends) == 2 else f"in all {len(ends)}"
        return f"{measure_title} {words[float(alike.pop())]} as more {what} are kept, {every} conditions"
    fall = sum(move == -1 for move in moves.values())
    return f"As more {what} are kept, {measure_title} falls in {fall} of {len(ends)} conditions"


PARTS = ("missing", "uncertainty", "miscalibration", "discrimination")
"""What ICE is made of: the first three add up, the last is taken off."""

LANES = (*PARTS, "ICE")
FILLS = ("#4d4d4d", "#7fb2d6", "#E69F00", "#ffffff", "#000000")
SIGNS = ("", "+ ", "+ ", "− ", "= ")
LANE = 19
"""Pixels of one bar of a waterfall."""

PANEL, COLUMNS = 178, 3
"""Pixels of a panel, and panels in a row."""

_PANEL_TITLE = pl.col("measure") + " (" + pl.col("better") + " is better)"


def parts_chart(
    rows: pl.DataFrame, *, title: str | None = None, level: float = 0.95, floor: float | None = None
) -> Any:
    """What ICE is made of, as a waterfall per system: missing + uncertainty + miscalibration - discrimination = ICE.

    Columns of `rows`: `system`, `missing`, `uncertainty`, `miscalibration`, `discrimination`; where there are `low`
    and `high`, they are the ends of the interval of ICE. All systems share one axis.
    """
    spans = [name for name in ("low", "high") if name in rows.columns]
    ice = pl.col("missing") + pl.col("uncertainty") + pl.col("miscalibration") - pl.col("discrimination")
    table = tidy(rows, {"system": pl.String}, (*PARTS, *spans)).with_columns(ICE=ice)
    refuse_repeats(table, "system")
    bars = pl.concat([_bars(row) for row in table.iter_rows(named=True)])
    costs = [
        f"{row['system']}: {', '.join(f'{part} {_cost_words(row[part])}' for part in LANES)}"
        for row in table.iter_rows(named=True)
    ]
    return finished(
        alt.layer(*_parts_layers(bars, table), width=WIDTH, height=alt.Step(LANE, **{"for": "offset"})),
        title=title or _parts_title(table),
        subtitle=[
            "missing: reference items in no hypothesis",
            "uncertainty: cost if all items had one confidence",
            "miscalibration: won back by recalibration alone",
            "discrimination: won by telling right from wrong",
            *([f"line on the last bar: {percent(level)} interval of ICE"] if spans else []),
            *_floor_words(floor),
        ],
        description=f"ICE and its parts. {'; '.join(costs)}.",
        table=bars,
    )


def _bars(row: dict[str, Any]) -> pl.DataFrame:
    """From where to where each bar of one system runs, and what is written beside it."""
    steps = np.array([row["missing"], row["uncertainty"], row["miscalibration"], -row["discrimination"]])
    ends = np.cumsum(steps)
    start, stop = [0.0, *ends[:-1], 0.0], [*ends, row["ICE"]]
    values = [*(row[part] for part in PARTS), row["ICE"]]
    text = [f"{sign}{lane} {_cost_words(value)}" for sign, lane, value in zip(SIGNS, LANES, values, strict=True)]
    edge = np.fmax(np.maximum(start, stop), [math.nan] * len(PARTS) + [row.get("high", math.nan)])
    columns = {"part": LANES, "value": values, "start": start, "stop": stop, "edge": edge, "text": text}
    return pl.DataFrame(columns).select(pl.lit(row["system"]).alias("system"), pl.all())


def _cost_words(cost: float) -> str:
    return "undefined" if math.isnan(cost) else f"{cost:.3f}".replace("-", "−")


def _parts_layers(bars: pl.DataFrame, table: pl.DataFrame) -> list[Any]:
    names = table["system"].to_list()
    least, most = extent(bars, ("start", "stop", "edge"))
    scale = alt.Scale(domain=[min(least, 0.0), most + 0.38 * (most - min(least, 0.0))], nice=False)
    across = alt.X("start:Q", title="cost per reference item (nats)", scale=scale, axis=alt.Axis(tickCount=6))
    up = alt.Y(
        "system:N",
        title=None,
        scale=alt.Scale(domain=names, paddingInner=0.16, paddingOuter=0.06),
        axis=alt.Axis(
            labelLimit=220,
            labelFontWeight=600,
            ticks=False,
            domain=False,
            labelPadding=8,
            labelExpr=rename_expression(shorten(names, 26)),
        ),
    )
    lane = alt.YOffset("part:N", scale=alt.Scale(domain=list(LANES)))
    fill = alt.Fill("part:N", scale=alt.Scale(domain=list(LANES), range=list(FILLS)), legend=None)
    base = Plot().encode(y=up, yOffset=lane)
    bar = base.mark_bar(stroke="#333333", strokeWidth=1, height=LANE - 5).encode(across, x2=alt.X2("stop:Q"), fill=fill)
    text = base.mark_text(align="left", dx=6, fontSize=12, color="#1a1a1a").encode(
        x=alt.X("edge:Q"), text=alt.Text("text:N")
    )
    if "low" not in table.columns:
        return [bar, text]
    spans = table.select("system", "low", "high", part=pl.lit("ICE"))
    rule = Plot(inline(spans)).mark_rule(strokeWidth=3, color="#999999")
    return [bar, rule.encode(y=up, yOffset=lane, x=alt.X("low:Q"), x2=alt.X2("high:Q")), text]


def _parts_title(table: pl.DataFrame) -> str:
    known = table.filter(pl.col("ICE").is_finite()).sort("ICE")
    if known.is_empty():
        return "ICE is undefined"
    best = known.row(0, named=True)
    name, cost = best["system"], _cost_words(best["ICE"])
    if table.height == 1:
        won, ice = best["miscalibration"], best["ICE"]
        share = f"{100 * max(won, 0) / ice:.0f} %" if ice > 0 and not math.isnan(won) else "an undefined share"
        return f"{name}: of an ICE of {cost}, recalibration alone would win back {share}"
    return f"{name} has the lowest ICE, {cost}; missing items cost it {_cost_words(best['missing'])}"


def scorer_chart(
    rows: pl.DataFrame, *, title: str | None = None, level: float = 0.95, floor: float | None = None
) -> Any:
    """Scorers side by side, a panel per measure with intervals (Thomson et al. 2008, table 3).

    Columns of `rows`: `scorer`, `measure` (title of the panel), `value`, `low`, `high` (null or NaN where there is no
    interval) and `better` ("lower" or "higher"); where there is a column `percent`, rows in which it holds are shown in
    percent. Each panel has its own axis and says which way is better; the best value is drawn full, the others hollow.
    """
    kinds = {"scorer": pl.String, "measure": pl.String, "better": pl.String}
    table = tidy(in_percent(rows, ("value", "low", "high")), kinds, ("value", "low", "high"))
    refuse_repeats(table, "scorer", "measure")
    check_better(table)
    cost = pl.when(pl.col("better") == "lower").then("value").otherwise(-pl.col("value"))  # less is better
    numbers = pl.col("value").map_batches(lambda values: pl.Series(aligned(values.to_list())), return_dtype=pl.String)
    table = table.with_columns(
        text=_interval_column(table),
        best=(cost == cost.fill_nan(None).min().over("measure")).fill_null(value=False),
        panel=_PANEL_TITLE,
        shown=numbers.over("measure"),
    )
    lists = pl.concat_str("scorer", "text", separator=" ").str.join(", ")
    panels = table.group_by("panel", maintain_order=True).agg(lists.alias("values"))
    dots = ["full dot: best of its panel"] if table["scorer"].n_unique() > 1 else []
    return finished(
        _panels(table),
        title=title or _scorer_title(table),
        subtitle=[*interval_words(table, "lines", level), *dots, *_floor_words(floor)],
        description=f"Scorers by measure. {'; '.join(': '.join(pair) for pair in panels.iter_rows())}.",
        table=table,
    )


def _panels(table: pl.DataFrame) -> Any:
    scorers = table["scorer"].unique(maintain_order=True).to_list()
    panels = table["panel"].unique(maintain_order=True).to_list()
    labels = shorten(scorers, 26)
    up = alt.Y(
        "scorer:N",
        title=None,
        scale=alt.Scale(domain=scorers),
        axis=alt.Axis(ticks=False, domain=False, grid=True, labelLimit=170, labelExpr=rename_expression(labels)),
    )
    span = Plot().mark_rule(strokeWidth=2, color="#555555")
    dot = Plot().mark_point(shape="circle", size=80, strokeWidth=1.8, stroke="black", opacity=1)
    text = Plot().mark_text(dy=-12, fontSize=11, color="#1a1a1a")
    axis = alt.X("value:Q", title=None, scale=alt.Scale(zero=False, padding=26), axis=alt.Axis(tickCount=4))
    full = either(alt.FillValue, "datum.best", "black", "white")
    layers = alt.layer(
        span.encode(alt.X("low:Q", title=None), y=up, x2=alt.X2("high:Q")),
        dot.encode(
            axis,
            y=up,
            fill=full,
            tooltip=[alt.Tooltip("scorer:N"), alt.Tooltip("measure:N"), alt.Tooltip("text:N", title="value")],
        ),
        text.encode(axis, y=up, text=alt.Text("shown:N")),
        width=PANEL,
        height=36 * len(scorers),
    )
    header = alt.Header(title=None, labelFontSize=12, labelFontWeight=600, labelAnchor="start")
    by_measure = alt.Facet("panel:N", sort=panels, header=header)
    columns = 2 if len(panels) == 4 else min(COLUMNS, len(panels))
    return layers.facet(by_measure, columns=columns, data=inline(table)).resolve_scale(x="independent")


def _scorer_title(table: pl.DataFrame) -> str:
    alone = pl.col("best") & (pl.col("best").sum().over("panel") == 1)
    best = table.filter(alone)
    wins = best.group_by("scorer", maintain_order=True).len().sort("len", descending=True, maintain_order=True)
    panels = table["panel"].n_unique()
    if not table["best"].any():
        return "No scorer has a value on any measure"
    if wins.is_empty():
        return f"No scorer is better than the others on any of {panels} measures"
    name, won = wins.row(0)
    tied = wins.filter(pl.col("len") == won).height > 1
    if tied or table["scorer"].n_unique() == 1:
        return f"{table['scorer'].n_unique()} scorers on {panels} measures" if tied else f"{name} on {panels} measures"
    return f"{name} alone has the best value on {'all' if won == panels else won} of {panels} measures"


def paired_chart(
    rows: pl.DataFrame,
    *,
    a: str,
    b: str,
    title: str | None = None,
    level: float = 0.95,
    floor: float | None = None,
) -> Any:
    """Differences of measures between two systems, `a` less `b`, with intervals around 0.

    Columns of `rows`: `measure`, `difference`, `low`, `high` (null or NaN where there is no interval) and `better`
    ("lower" or "higher"); rows in which a column `percent` holds are shown in percent. Measures have scales of their
    own, so each row is drawn on its own, turned so that right of 0 `a` is better, and its numbers stand beside it. A
    full dot has an interval that leaves 0.
    """
    ends = ("difference", "low", "high")
    table = tidy(in_percent(rows, ends), {"measure": pl.String, "better": pl.String}, ends)
    refuse_repeats(table, "measure")
    check_better(table)
    marks = _marks(table)
    names = shorten((a, b), 22)
    return finished(
        alt.layer(*_paired_layers(marks, names[a], names[b]), width=WIDTH - 190, height=34 * table.height),
        title=title or _paired_title(marks, a, b),
        subtitle=[
            f"{names[a]} less {names[b]}",
            *interval_words(table, "lines", level),
            "full dot: the interval leaves 0",
            "each row has its own scale",
            *_floor_words(floor),
        ],
        description=f"{a} less {b}: {'; '.join(' '.join(pair) for pair in marks['measure', 'text'].iter_rows())}.",
        table=marks,
    )


def _marks(table: pl.DataFrame) -> pl.DataFrame:
    """Where the dots and lines of pairs stand between -1 and 1, right of 0 where the first system is better."""
    ends = [pl.col(name).fill_nan(None) for name in ("difference", "low", "high")]
    widest = pl.max_horizontal(end.abs() for end in ends)
    turn = pl.when(pl.col("better") == "lower").then(-1.0).otherwise(1.0)
    scale = turn / pl.when(widest > 0).then(widest).otherwise(1.0)
    shown = (ends[1] > 0) | (ends[2] < 0)
    return table.with_columns(
        at=ends[0] * scale,
        start=ends[1] * scale,
        stop=ends[2] * scale,
        shown=shown.fill_null(value=False),
        text=_interval_column(table, "difference", write=signed),
        row=_PANEL_TITLE,
    )


def _paired_layers(marks: pl.DataFrame, a: str, b: str) -> list[Any]:
    names = marks["row"].to_list()
    up = alt.Y(
        "row:N",
        title=None,
        scale=alt.Scale(domain=names),
        axis=alt.Axis(ticks=False, domain=False, grid=True, labelLimit=260),
    )
    across = alt.X(
        "at:Q",
        title=f"← {b} better  |  {a} better →",
        scale=alt.Scale(domain=[-1.08, 1.08], nice=False),
        axis=alt.Axis(values=[0], labels=False, ticks=False, grid=False, domain=False),
    )
    base = Plot().encode(y=up)
    span = base.mark_rule(strokeWidth=2, color="#555555").encode(x=alt.X("start:Q"), x2=alt.X2("stop:Q"))
    full = either(alt.FillValue, "datum.shown", "black", "white")
    dot = base.mark_point(shape="circle", size=90, stroke="black", strokeWidth=1.8, opacity=1)
    text = base.mark_text(align="left", dx=8, fontSize=12, color="#1a1a1a")
    return [
        upright(0.0, color="black", strokeWidth=1),
        span,
        dot.encode(across, fill=full, tooltip=[alt.Tooltip("measure:N"), alt.Tooltip("text:N", title="value")]),
        text.encode(x=alt.XValue("width"), text=alt.Text("text:N")),
    ]


def _paired_title(marks: pl.DataFrame, a: str, b: str) -> str:
    significant = marks.filter("shown")
    better, worse = int((significant["at"] > 0).sum()), int((significant["at"] < 0).sum())
    if not better + worse:
        return f"No difference shown between {a} and {b}"
    of = f"of {marks.height} measures"
    if better and worse:
        return f"{a} is better than {b} on {better} and worse on {worse} {of}"
    first, second = (a, b) if better else (b, a)
    return f"{first} is better than {second} on {better + worse} {of}"


def floor_chart(rows: pl.DataFrame, *, used: float, title: str | None = None) -> Any:
    """ICE against the floor under probabilities, a line per system; `rows` has `system`, `floor` and `ice`."""
    table = tidy(rows, {"system": pl.String}, ("floor", "ice"))
    names = table["system"].unique(maintain_order=True).to_list()
    places = np.log(table["floor"].to_numpy())
    least, most = np.exp([places.min(), places.max()]).tolist()
    ice = table["ice"].to_numpy()
    corner, domain = legend_corner(
        (places - places.min()) / np.ptp(places), ice, ice, extent(table, ("ice",), air=0.05), rows=len(names)
    )
    across = alt.X(
        "floor:Q",
        title="floor under probabilities (logarithmic)",
        scale=alt.Scale(type="log", domain=[least, most], nice=False),
        axis=alt.Axis(values=[10.0**power for power in range(-12, 0)], format="~g", labelFlush=False, grid=False),
    )
    lines = Plot(inline(table)).mark_line()
    marks = [upright(used, color="black"), upright(PAPER_FLOOR, color="#777777", strokeDash=[2, 3])]
    channels = line_channels(names, corner=corner)
    up = number_axis("ice", "ICE", domain, channel=alt.Y)
    values = [
        f"{part['system'][0]}: {number(part['ice'][0])} at {least:g}, {number(part['ice'][-1])} at {most:g}"
        for part in table.sort("floor").partition_by("system", maintain_order=True)
    ]
    return finished(
        alt.layer(*marks, lines.encode(across, up, *channels), width=WIDTH, height=HEIGHT),
        title=title or _floor_title(table, names),
        subtitle=[f"line: the floor used, {used:g}", f"dotted: {PAPER_FLOOR:g}, near which the paper's tables fit"],
        description=f"ICE against the floor. {'; '.join(values)}.",
        table=table,
    )


def _floor_title(table: pl.DataFrame, names: Sequence[str]) -> str:
    """Which system has the lowest ICE at which floors."""
    if len(names) == 1:
        first, last = (float(value) for value in table.sort("floor")["ice"][[0, -1]])
        return f"The floor alone moves the ICE from {number(last)} to {number(first)}"
    best = table.sort("floor", "ice", maintain_order=True).group_by("floor", maintain_order=True).first()
    short = shorten(list(names))
    runs = best.group_by(pl.col("system").rle_id().alias("run"), maintain_order=True).agg(
        pl.col("system").first(), pl.col("floor").first()
    )
    leaders = [(short[name], floor) for name, floor in runs.select("system", "floor").iter_rows()]
    if len(leaders) == 1:
        return f"{leaders[0][0]} has the lowest ICE at every floor"
    turns = [f"{name} from {floor:.2g} on" for name, floor in leaders[1:3]]
    more = " and so on" if len(leaders) > 3 else ""
    return f"Lowest ICE: {leaders[0][0]} at low floors, {', '.join(turns)}{more}"


COLOUR = "#0b5a8a"


def rank_chart(rows: pl.DataFrame, *, n: float, level: float = 0.95, title: str | None = None) -> Any:
    """Dots with intervals of top-k accuracy over k; a line joins them, as the k in between mean nothing.

    Columns of `rows`: `k`, `accuracy`, `low`, `high` and `here`, how often the right label stands at just that place.
    """
    table = tidy(rows, {"k": pl.Int64}, ("accuracy", "low", "high", "here")).sort("k")
    across = alt.X(
        "k:O", title="labels looked at, the surest first (k)", axis=alt.Axis(labelAngle=0, grid=False, domain=True)
    )
    least = min(float(table["low"].fill_nan(1.0).min() or 0.0), float(table["accuracy"].min() or 0.0))  # type: ignore[arg-type]
    bottom = max(0.0, least - 0.04)
    base = Plot().encode(across)
    tooltips = [
        alt.Tooltip("k:O"),
        alt.Tooltip("accuracy:Q", format=".2%", title="among the first k"),
        alt.Tooltip("here:Q", format=".2%", title="at this place"),
    ]
    up = rate_axis(alt.Y, "accuracy", "inputs whose right label is among them", domain=(bottom, 1.0))
    layers = alt.layer(
        base.mark_line(color=COLOUR, strokeWidth=1.5, opacity=0.55).encode(up),
        base.mark_rule(color=COLOUR, strokeWidth=2).encode(y=alt.Y("low:Q"), y2=alt.Y2("high:Q")),
        base.mark_point(filled=True, size=90, opacity=1, color=COLOUR).encode(up, tooltip=tooltips),
        width=WIDTH,
        height=0.8 * HEIGHT,
    )
    rates = [(k, percent(rate)) for k, rate in table.select("k", "accuracy").iter_rows()]
    among = f", and among the first {rates[-1][0]} for {rates[-1][1]}" if len(rates) > 1 else ""
    values = "; ".join(f"first {k}: {rate}" for k, rate in rates)
    return finished(
        layers,
        title=title or f"The right label is first for {rates[0][1]}{among}",
        subtitle=[f"n = {count(n)} inputs with a list", f"lines: {percent(level)} intervals"],
        description=f"How often the right label is among the first k of the list. {values}.",
        table=table,
    )
