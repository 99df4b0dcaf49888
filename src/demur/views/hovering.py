"""Tooltips: the point under the pointer lights up and tells its numbers; static exports leave this layer out."""

from __future__ import annotations

import re
from typing import Any

import polars as pl

from demur.views.drawing import alt, inline

HOVER = "hover"
"""Name of the layer and of its selection."""


_SYNTAX = re.compile(r"[\\'\".\[\]:]")
"""What Vega takes for more than a letter in the name of a field."""


def hover_layer(rows: pl.DataFrame, x: str, y: str) -> Any:
    """Points that show themselves and a tooltip under the pointer; all columns but `x` and `y` are told.

    The points are large enough to cover the line between them. A selection of the nearest point would
    reach further, but in Vega-Lite 6 its tooltips read "undefined" (vega/vega-lite, pull request 9707).
    """
    under = alt.selection_point(name=HOVER, on="pointerover", empty=False, clear="pointerout")
    titles = [column for column in rows.columns if column not in (x, y)]
    plain = {title: f"told_{place}" for place, title in enumerate(titles) if _SYNTAX.search(title)}
    told = [alt.Tooltip(plain.get(title, title), type="nominal", title=title) for title in titles]
    return (
        alt.Chart(inline(rows.rename(plain)), name=f"{HOVER}_points")
        .mark_point(filled=True, size=150, color="black", stroke="white", strokeWidth=2, clip=True)
        .encode(
            x=alt.X(x, type="quantitative"),
            y=alt.Y(y, type="quantitative"),
            opacity=alt.condition(under, alt.value(1), alt.value(0)),
            tooltip=told,
        )
        .add_params(under)
    )


def without_hover(spec: dict[str, Any]) -> dict[str, Any]:
    """The spec without its tooltip layers, for formats that cannot react."""
    kept = {key: value for key, value in spec.items() if key != "params"}
    params = [one for one in spec.get("params", []) if one.get("name") != HOVER]
    if params:
        kept["params"] = params
    for group in ("layer", "vconcat", "hconcat"):
        if group in kept:
            kept[group] = [
                without_hover(part) for part in kept[group] if not str(part.get("name", "")).startswith(HOVER)
            ]
    return kept
