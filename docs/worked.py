"""The worked example of the page on reading plots: 100 answers, and their curve with what to read off it."""

from __future__ import annotations

import sys
from typing import Any

import polars as pl

RIGHT = {0.9: 19, 0.7: 17, 0.5: 14, 0.3: 10, 0.1: 5}
"""Right answers of the 20 that have each confidence."""

EACH, READ_AT = 20, 0.2


def rows() -> list[dict[str, Any]]:
    """The log of the example."""
    return [
        {"id": f"{confidence} {place}", "confidence": confidence, "correct": place < right}
        for confidence, right in RIGHT.items()
        for place in range(EACH)
    ]


def figure() -> Any:
    """The curve with its thresholds, and what is withheld, wrong and right at one point of it."""
    import demur
    from demur.core.show.charts import Plot, alt, finished, inline, rate_axis

    (curve,) = [one.curve for one in demur.score(rows(), replicates=50)]
    texts = [f"from {threshold:g} on" if threshold == threshold else "nothing" for threshold in curve.threshold]
    points = pl.DataFrame({"x": curve.nonreturn, "y": curve.error, "text": texts})
    error = float(curve.error_at(pl.Series([READ_AT]).to_numpy())[0])
    axes = (
        rate_axis(alt.X, "x", "non-return rate (share of inputs withheld)"),
        rate_axis(alt.Y, "y", "share of all inputs"),
    )

    def line(rows: list[tuple[float, float]], **look: Any) -> Any:
        frame = pl.DataFrame(rows, schema=["x", "y"], orient="row")
        return Plot(inline(frame)).mark_line(**look).encode(*axes, order=alt.Order("x:Q"))

    def text(rows: list[tuple[float, float, str]], **look: Any) -> Any:
        frame = pl.DataFrame(rows, schema=["x", "y", "text"], orient="row")
        return Plot(inline(frame)).mark_text(fontSize=12, align="left", dx=8, **look).encode(*axes, text="text:N")

    def span(low: float, high: float, colour: str) -> Any:
        ends = inline(pl.DataFrame({"x": [READ_AT], "y": [low], "to": [high]}))
        return Plot(ends).mark_rule(strokeWidth=5, color=colour).encode(*axes, y2="to:Q")

    forced = float(curve.error[0])
    layers = [
        Plot(inline(points)).mark_area(color="#000000", opacity=0.08).encode(*axes),
        line([(0.0, 1.0), (1.0, 0.0)], color="#777777", strokeDash=[4, 3]),
        span(0.0, error, "#D55E00"),
        span(error, 1 - READ_AT, "#0072B2"),
        Plot(inline(points))
        .mark_line(color="black", strokeWidth=3, point={"size": 60, "color": "black"})
        .encode(*axes),
        text([(x, y, label) for x, y, label in points.rows()[1:-1]], dy=-10, color="#444444"),
        text(
            [
                (READ_AT, error / 2, f"wrong {100 * error:.0f} %"),
                (READ_AT, (error + 1 - READ_AT) / 2, f"right {100 * (1 - READ_AT - error):.0f} %"),
                (0.0, forced + 0.13, "all returned:"),
                (0.0, forced + 0.09, f"{100 * forced:.0f} % wrong, so"),
                (0.0, forced + 0.05, f"accuracy {100 * (1 - forced):.0f} %"),
                (0.42, 0.6, "dashed: 100 % less what is withheld"),
                (0.0, 0.1, "shaded: AUGRC"),
            ],
            fontWeight=600,
        ),
    ]
    return finished(
        alt.layer(*layers, width=560, height=400),
        title="100 answers: what is withheld, wrong and right adds up to 100 % everywhere",
        subtitle=["points: the thresholds there are", f"bars: read at {100 * READ_AT:.0f} % withheld"],
        description="Error-return curve of 100 answers, from 35 % wrong when all are returned to none when nothing is.",
        table=points,
    )


if __name__ == "__main__":
    from demur.core.show.page import save_chart

    save_chart(figure(), sys.argv[1])
