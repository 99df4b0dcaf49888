"""A measure against the number of hypotheses or sentences kept: figure 1 of Thomson et al. (2008)."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import polars as pl

from demur.errors import UsageError
from demur.views.corners import Span, legend_corner
from demur.views.drawing import HEIGHT, WIDTH, alt, finished, inline
from demur.views.lines import Corner, line_channels, style_of
from demur.views.names import shortened
from demur.views.nbest_rows import extent, interval_words, short, tidy, with_interval
from demur.views.words import number

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
    labels = {name: f"{condition_title} {cut}".strip() for name, cut in shortened(names).items()}
    told = [with_interval(*row) for row in table.select("value", "low", "high").iter_rows()]
    return finished(
        alt.layer(
            *_sweep_layers(table.with_columns(told=pl.Series(told)), names, labels, (measure_title, what))
        ).properties(width=WIDTH, height=HEIGHT),
        title=title or _sweep_title(table, labels, measure_title, what),
        subtitle=[*interval_words(table, "shaded", level), _WHICH[what]],
        description=_sweep_description(table, labels, measure_title, what),
        table=table,
    )


def _sweep_layers(table: pl.DataFrame, names: list[str], labels: dict[str, str], titles: tuple[str, Kept]) -> list[Any]:
    kept = sorted(set(table["kept"].to_list()))
    colours = [style_of(place).colour for place in range(len(names))]
    coloured = table.with_columns(pl.col("condition").replace_strict(names, colours).alias("colour"))
    corner, domain = _sweep_room(table, len(names))
    across = alt.X(
        "kept:Q",
        title=f"{titles[1]} kept (logarithmic)",
        scale=alt.Scale(type="log", domain=[kept[0], max(kept[-1], kept[0] + 1)], nice=False),
        axis=alt.Axis(values=kept, format="d", labelOverlap=True, labelFlush=False, grid=False),
    )
    up = alt.Y(
        "value:Q",
        title=titles[0],
        scale=alt.Scale(domain=list(domain), nice=False, zero=False),
        axis=alt.Axis(format=".3~g", tickCount=6),
    )
    channels = line_channels(names, corner=corner, field="condition", labels=labels)
    base = alt.Chart(inline(coloured))
    fill = alt.Fill("colour:N", scale=None)
    band = base.mark_area(opacity=0.16).encode(x="kept:Q", y="low:Q", y2="high:Q", detail="condition:N", fill=fill)
    dots = base.mark_point(shape="circle", size=52, stroke="white", strokeWidth=1, opacity=1).encode(
        x="kept:Q",
        y="value:Q",
        fill=fill,
        tooltip=[alt.Tooltip(f"{field}:N") for field in ("condition", "kept", "told")],
    )
    return [band, alt.Chart().mark_line().encode(across, up, *channels), dots]


def _sweep_room(table: pl.DataFrame, rows: int) -> tuple[Corner, Span]:
    """Corner of the legend and range of the measure."""
    places = np.log(table["kept"].to_numpy())
    value, low, high = (table[column].to_numpy() for column in ("value", "low", "high"))
    across = (places - places.min()) / (np.ptp(places) or 1.0)
    return legend_corner(
        across, np.fmin(low, value), np.fmax(high, value), extent(table, ("value", "low", "high"), air=0.05), rows=rows
    )


def _sweep_title(table: pl.DataFrame, labels: dict[str, str], measure_title: str, what: Kept) -> str:
    ends = {name: _ends(table.filter(pl.col("condition") == name)) for name in labels}
    moves = {name: np.sign(last[1] - first[1]) for name, (first, last) in ends.items()}
    words = {-1.0: "falls", 1.0: "rises", 0.0: "stays"}
    if len(ends) == 1:
        (fewest, first), (most, last) = next(iter(ends.values()))
        move = words.get(float(moves.popitem()[1]), "is undefined")
        kept = _ONE[what] if fewest == 1 else what
        return f"{measure_title} {move} from {short(first)} with {fewest:g} {kept} to {short(last)} with {most:g}"
    alike = set(moves.values())
    if len(alike) == 1 and not alike & {0.0}:
        return f"{measure_title} {words[float(alike.pop())]} as more {what} are kept, {_in_all(len(ends))} conditions"
    fall = sum(move == -1 for move in moves.values())
    return f"As more {what} are kept, {measure_title} falls in {fall} of {len(ends)} conditions"


def _in_all(conditions: int) -> str:
    return "in both" if conditions == 2 else f"in all {conditions}"


def _ends(table: pl.DataFrame) -> tuple[tuple[float, float], tuple[float, float]]:
    known = table.filter(pl.col("value").is_finite()).sort("kept").select("kept", "value").rows()
    return (known[0], known[-1]) if known else ((math.nan, math.nan),) * 2


def _sweep_description(table: pl.DataFrame, labels: dict[str, str], measure_title: str, what: Kept) -> str:
    told = [
        f"{label or 'all'}: {', '.join(f'{number(value)} at {kept}' for kept, value in rows)}"
        for name, label in labels.items()
        if (rows := table.filter(pl.col("condition") == name).sort("kept").select("kept", "value").rows())
    ]
    return f"{measure_title} against the number of {what} kept. {'; '.join(told[:8])}."
