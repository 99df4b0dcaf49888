"""The cost path: which threshold is best for which price of a non-return."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from demur.core.show.charts import WIDTH, alt, finished, headroom, inline, line_channels, rate_axis
from demur.core.show.numbers import count, cutoff, percent
from demur.returns.threshold import Choice, Stretch

PANEL = 135
RATIO = "cost ratio (what a non-return costs over what an error costs)"


def cost_path_chart(choice: Choice, *, most: int | None = None) -> Any:
    """Best threshold, the rates it gives and the expected cost for every cost ratio, the chosen ratio marked.

    With `most` so many thresholds are drawn at most, those of evenly spaced ratios.
    """
    drawn = choice if most is None or len(choice.path) <= most else replace(choice, path=_evenly(choice.path, most))
    table = cost_table(drawn)
    panels = (_threshold_panel(drawn), _rates_panel(drawn), _cost_panel(drawn, table))
    n = choice.curve.sweep.n
    left = [] if drawn is choice else [f"{len(drawn.path)} of them are drawn"]
    return finished(
        alt.vconcat(*panels, spacing=14).resolve_scale(
            color="independent", strokeDash="independent", strokeWidth="independent"
        ),
        title=_cost_title(choice),
        subtitle=[
            f"n = {count(n)} inputs",
            f"{len(choice.path)} thresholds are best for some ratio; no other ever is",
            *left,
        ],
        description=_cost_description(choice),
        table=table,
    )


def _evenly(path: Sequence[Stretch], most: int) -> tuple[Stretch, ...]:
    """The stretches in which evenly spaced ratios lie, each reaching to the next, so that no gap is left."""
    spaced = [place / (most - 1) for place in range(most)]
    kept = [part for part in path if any(part.ratio_from <= ratio <= part.ratio_to for ratio in spaced)]
    ends = [*(part.ratio_to for part in kept[1:]), 0.0]
    return tuple(replace(part, ratio_from=end) for part, end in zip(kept, ends, strict=True))


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


def _tooltips() -> list[Any]:
    return [
        alt.Tooltip("cutoff:N", title="return if"),
        alt.Tooltip("span:N", title="best for cost ratios"),
        alt.Tooltip("rates:N", title="non-return, error"),
    ]


def _stretches(choice: Choice) -> pl.DataFrame:
    return pl.DataFrame(
        [
            {
                "ratio": part.ratio_from,
                "ratio_to": part.ratio_to,
                "threshold": part.threshold,
                "nonreturn": part.nonreturn,
                "error": part.error,
                "cutoff": cutoff(part.short_threshold),
                "span": f"{part.ratio_from:.3g} to {part.ratio_to:.3g}",
                "rates": f"{percent(part.nonreturn)}, {percent(part.error)}",
            }
            for part in reversed(choice.path)
        ],
        infer_schema_length=None,
    )


def _threshold_panel(choice: Choice) -> Any:
    scale = alt.Scale(zero=False, nice=True)
    up = alt.Y("threshold:Q", title="best threshold", scale=scale, axis=alt.Axis(tickCount=4))
    ends = [(ratio, part.threshold) for part in reversed(choice.path) for ratio in (part.ratio_from, part.ratio_to)]
    exact = inline(pl.DataFrame(ends, schema={"ratio": pl.Float64, "threshold": pl.Float64}, orient="row"))
    line = alt.Chart(exact).mark_line(color="black", strokeWidth=2.2)
    lines = line.encode(_ratio_axis(last=False), up, order="ratio:Q")
    reach = alt.Chart(inline(_stretches(choice))).mark_rule(opacity=0, strokeWidth=12)
    hover = reach.encode(x="ratio:Q", x2="ratio_to:Q", y="threshold:Q", tooltip=_tooltips())
    return _panel(lines, hover, _mark(choice, "threshold", choice.threshold))


def _rates_panel(choice: Choice) -> Any:
    names = {"non-return rate": "nonreturn", "error rate": "error"}
    table = cost_table(choice)
    rows = pl.concat(
        [table.select("ratio", rate=column).with_columns(which=pl.lit(name)) for name, column in names.items()]
    )
    axes = (_ratio_axis(last=False), rate_axis(alt.Y, "rate", "rates it gives", tickCount=4))
    channels = line_channels(["error rate", "non-return rate"], field="which", corner="top-right")
    lines = alt.Chart(inline(rows)).mark_line().encode(*axes, *channels, order="ratio:Q")
    return _panel(lines, _mark(choice, "rate", choice.nonreturn), _mark(choice, "rate", choice.error))


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
    drawn = alt.Chart(inline(rows)).mark_line(clip=True).encode(_ratio_axis(last=True), up, *channels)
    return _panel(drawn, _mark(choice, "cost", choice.cost))


def _panel(*layers: Any) -> Any:
    held = [layer for layer in layers if layer is not None]
    return alt.layer(*held).properties(width=WIDTH, height=PANEL)


def _mark(choice: Choice, field: str, value: float | None) -> Any:
    """A line at the chosen ratio with a diamond at its value; nothing where the choice was not by cost."""
    if choice.cost_ratio is None:
        return None
    base = alt.Chart(inline(pl.DataFrame({"ratio": [choice.cost_ratio], field: [value]})))
    dot = base.mark_point(
        filled=True, shape="diamond", size=90, fill="white", stroke="black", strokeWidth=1.8, opacity=1
    )
    rule = base.mark_rule(color="#555555", strokeDash=[4, 3]).encode(x="ratio:Q")
    return alt.layer(rule, dot.encode(x="ratio:Q", y=alt.Y(field, type="quantitative")))


def _cost_title(choice: Choice) -> str:
    if choice.cost_ratio is None:
        return f"{choice.system}: the best threshold for every cost ratio"
    return f"{choice.system}: at a cost ratio of {choice.cost_ratio:g} {_advice(choice)}"


def _advice(choice: Choice) -> str:
    return (
        "nothing should be returned"
        if choice.threshold != choice.threshold
        else f"the best threshold is {choice.printed_threshold}"
    )


def _cost_description(choice: Choice) -> str:
    cheapest, dearest = choice.path[-1], choice.path[0]
    chosen = "" if choice.cost is None else f" Chosen: {_advice(choice)}, with a cost of {choice.cost:.4g} per input."
    return (
        f"Best threshold of {choice.system} by cost ratio: when non-returns are nearly free "
        f"{percent(cheapest.nonreturn)} is withheld, when they cost almost as much as errors "
        f"{percent(dearest.nonreturn)}.{chosen}"
    )
