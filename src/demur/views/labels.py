"""Marked points with labels that keep out of each other's way."""

from __future__ import annotations

from typing import Any, Literal

import polars as pl

from demur.views.drawing import HEIGHT, WIDTH, alt, inline

LINE, LETTER = 15.0, 6.6
"""Height of a label and width of a letter in pixels."""

SHIFT = (26.0, 26.0)
"""Pixels from a point to its label, right and up, unless said otherwise."""


def placed_labels(
    marks: pl.DataFrame,
    domain: tuple[float, float],
    *,
    shift: tuple[float, float] = SHIFT,
    align: Literal["left", "center"] = "left",
) -> list[Any]:
    """Points `x`, `y` with their `text` above and to the right, joined by a thin line; none where there are no points.

    `domain` is that of the y axis; the x axis is taken to run from 0 to 1.
    """
    if marks.is_empty():
        return []
    scale = HEIGHT / (domain[1] - domain[0])
    spots = _spread([(x * WIDTH, (y - domain[0]) * scale, len(text)) for x, y, text in marks.iter_rows()], shift)
    rows = marks.with_columns(
        label_x=pl.Series([across / WIDTH for across, _ in spots]),
        label_y=pl.Series([domain[0] + up / scale for _, up in spots]),
    )
    base = alt.Chart(inline(rows))
    where: dict[str, Any] = {"x": alt.X("label_x:Q"), "y": alt.Y("label_y:Q")}
    dot: dict[str, Any] = {
        "filled": True,
        "size": 90,
        "shape": "diamond",
        "fill": "white",
        "stroke": "black",
        "strokeWidth": 1.8,
    }
    text: dict[str, Any] = {
        "align": align,
        "baseline": "middle" if align == "left" else "bottom",
        "dx": 3 if align == "left" else 0,
        "fontSize": 12,
        "fontWeight": 600,
    }
    return [
        base.mark_rule(color="#444444", strokeWidth=0.8).encode(x="x:Q", y="y:Q", x2="label_x:Q", y2="label_y:Q"),
        base.mark_text(**text, stroke="white", strokeWidth=3, strokeJoin="round").encode(**where, text="text:N"),
        base.mark_text(**text, color="#111111").encode(**where, text="text:N"),
        base.mark_point(**dot, opacity=1).encode(x="x:Q", y="y:Q"),
    ]


def _spread(points: list[tuple[float, float, int]], shift: tuple[float, float]) -> list[tuple[float, float]]:
    """Label spots from the rightmost point on, each lifted until it is clear of those already placed."""
    spots: dict[int, tuple[float, float, float]] = {}
    for place in sorted(range(len(points)), key=lambda place: -points[place][0]):
        x, y, letters = points[place]
        width = letters * LETTER
        left = min(x + shift[0], WIDTH - width)
        up = y + shift[1]
        while any(_overlap(left, up, width, other) for other in spots.values()):
            up += 2.0
        spots[place] = (left, up, width)
    return [spots[place][:2] for place in range(len(points))]


def _overlap(left: float, up: float, width: float, other: tuple[float, float, float]) -> bool:
    beside = left > other[0] + other[2] or other[0] > left + width
    return not beside and abs(up - other[1]) < LINE
