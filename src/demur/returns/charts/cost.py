"""The cost path: which threshold is best for which price of a non-return."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import polars as pl

from demur.core.show.charts import WIDTH, Plot, alt, finished, headroom, inline, line_channels, rate_axis
from demur.core.show.numbers import count, cutoff, percent
from demur.returns.charts.error_return import DIAMOND
from demur.returns.threshold import Choice

PANEL = 135
RATIO = "cost ratio (what a non-return costs over what an error costs)"


def cost_path_chart(choice: Choice, *, most: int | None = None) -> Any:
    """Best threshold, the rates it gives and the expected cost for every cost ratio, the chosen ratio marked.

    With `most` so many thresholds are drawn at most, those of evenly spaced ratios.
    """
    drawn = choice
    if most is not None and len(choice.path) > most:
        # the stretches in which evenly spaced ratios lie, each reaching to the next, so that no gap is left
        spaced = [place / (most - 1) for place in range(most)]
        kept = [part for part in choice.path if any(part.ratio_from <= ratio <= part.ratio_to for ratio in spaced)]
        ends = [*(part.ratio_to for part in kept[1:]), 0.0]
        path = tuple(replace(part, ratio_from=end) for part, end in zip(kept, ends, strict=True))
        drawn = replace(choice, path=path)
    table = cost_table(drawn)
    panels = (_threshold_panel(drawn), _rates_panel(drawn, table), _cost_panel(drawn, table))
    best = f"the best threshold is {choice.printed_threshold}"
    advice = "nothing should be returned" if math.isnan(choice.threshold) else best
    title = f"{choice.system}: the best threshold for every cost ratio"
    if choice.cost_ratio is not None:
        title = f"{choice.system}: at a cost ratio of {choice.cost_ratio:g} {advice}"
    cheapest, dearest = choice.path[-1], choice.path[0]
    chosen = "" if choice.cost is None else f" Chosen: {advice}, with a cost of {choice.cost:.4g} per input."
    return finished(
        alt.vconcat(*panels, spacing=14).resolve_scale(
            color="independent", strokeDash="independent", strokeWidth="independent"
        ),
        title=title,
        subtitle=[
            f"n = {count(choice.curve.sweep.n)} inputs",
            f"{len(choice.path)} thresholds are best for some ratio; no other ever is",
            *([] if drawn is choice else [f"{len(drawn.path)} of them are drawn"]),
        ],
        description=f"Best threshold of {choice.system} by cost ratio: when non-returns are nearly free "
        f"{percent(cheapest.nonreturn)} is withheld, when they cost almost as much as errors "
        f"{percent(dearest.nonreturn)}.{chosen}",
        table=table,
    )


def cost_table(choice: Choice) -> pl.DataFrame:
    """Both ends of every stretch of the path, with the expected cost there, in rising cost ratio.

    Thresholds are as printed.
    """
    rows = [
        {
            "ratio": ratio,
            "threshold": part.short_threshold,
            "nonreturn": part.nonreturn,
            "error": part.error,
            "cost": part.error + ratio * part.nonreturn,
        }
        for part in reversed(choice.path)
        for ratio in (part.ratio_from, part.ratio_to)
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


def _ratio_axis(*, last: bool) -> Any:
    return alt.X(
        "ratio:Q",
        title=RATIO if last else None,
        scale=alt.Scale(domain=[0, 1], nice=False),
        axis=alt.Axis(format=".1f", tickCount=10, labels=last, ticks=last),
    )


def _threshold_panel(choice: Choice) -> Any:
    scale = alt.Scale(zero=False, nice=True)
    up = alt.Y("threshold:Q", title="best threshold", scale=scale, axis=alt.Axis(tickCount=4))
    ends = [(ratio, part.threshold) for part in reversed(choice.path) for ratio in (part.ratio_from, part.ratio_to)]
    exact = inline(pl.DataFrame(ends, schema={"ratio": pl.Float64, "threshold": pl.Float64}, orient="row"))
    line = Plot(exact).mark_line(color="black", strokeWidth=2.2)
    stretches = [
        {
            "ratio": part.ratio_from,
            "ratio_to": part.ratio_to,
            "threshold": part.threshold,
            "cutoff": cutoff(part.short_threshold),
            "span": f"{part.ratio_from:.3g} to {part.ratio_to:.3g}",
            "rates": f"{percent(part.nonreturn)}, {percent(part.error)}",
        }
        for part in reversed(choice.path)
    ]
    titles = {"cutoff": "return if", "span": "best for cost ratios", "rates": "non-return, error"}
    tooltip = [alt.Tooltip(f"{field}:N", title=title) for field, title in titles.items()]
    reach = Plot(inline(pl.DataFrame(stretches, infer_schema_length=None))).mark_rule(opacity=0, strokeWidth=12)
    hover = reach.encode(x=alt.X("ratio:Q"), x2=alt.X2("ratio_to:Q"), y=alt.Y("threshold:Q"), tooltip=tooltip)
    lines = line.encode(_ratio_axis(last=False), up, order=alt.Order("ratio:Q"))
    return _panel(choice, [lines, hover], {"threshold": [choice.threshold]})


def _rates_panel(choice: Choice, table: pl.DataFrame) -> Any:
    names = {"non-return rate": "nonreturn", "error rate": "error"}
    rows = pl.concat(
        [table.select("ratio", rate=column).with_columns(which=pl.lit(name)) for name, column in names.items()]
    )
    axes = (_ratio_axis(last=False), rate_axis(alt.Y, "rate", "rates it gives", tickCount=4))
    channels = line_channels(["error rate", "non-return rate"], field="which", corner="top-right")
    lines = Plot(inline(rows)).mark_line().encode(*axes, *channels, order=alt.Order("ratio:Q"))
    return _panel(choice, [lines], {"rate": [choice.nonreturn, choice.error]})


def _cost_panel(choice: Choice, table: pl.DataFrame) -> Any:
    floor, forced = choice.curve.floor, float(choice.curve.error[0])
    lines = {"best threshold": table.select("ratio", "cost")}
    lines["return everything"] = pl.DataFrame({"ratio": [0.0, 1.0], "cost": [forced, forced + floor]})
    lines["return nothing"] = pl.DataFrame({"ratio": [0.0, 1.0], "cost": [0.0, 1.0]})
    rows = pl.concat([part.with_columns(which=pl.lit(name)) for name, part in lines.items()])
    domain = headroom(1.25 * (forced + floor))
    up = alt.Y(
        "cost:Q", title="cost per input", scale=alt.Scale(domain=list(domain), nice=False), axis=alt.Axis(tickCount=4)
    )
    channels = line_channels(list(lines), field="which", corner="bottom-right")
    drawn = Plot(inline(rows)).mark_line(clip=True).encode(_ratio_axis(last=True), up, *channels)
    return _panel(choice, [drawn], {"cost": [choice.cost]})


def _panel(choice: Choice, layers: list[Any], marked: dict[str, list[float | None]]) -> Any:
    """The layers and, where the choice was by cost, a line at its ratio with a diamond at each marked value."""
    for field, values in marked.items() if choice.cost_ratio is not None else ():
        for value in values:
            base = Plot(inline(pl.DataFrame({"ratio": [choice.cost_ratio], field: [value]})))
            rule = base.mark_rule(color="#555555", strokeDash=[4, 3]).encode(x=alt.X("ratio:Q"))
            dot = base.mark_point(**DIAMOND).encode(x=alt.X("ratio:Q"), y=alt.Y(field, type="quantitative"))
            layers.append(alt.layer(rule, dot))
    return alt.layer(*layers, width=WIDTH, height=PANEL)
