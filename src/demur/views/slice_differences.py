"""Slices against the rest: differences of error rates with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from demur.analyses.slice_differences import SliceDifference, SliceDifferences
from demur.views.drawing import WIDTH, alt, finished, inline, rate_axis
from demur.views.forest import SHAPES
from demur.views.lines import style_of
from demur.views.report_slices import difference_told
from demur.views.words import percent

MOST_DRAWN = 16
"""Slices that the figure shows."""


def slice_difference_chart(found: SliceDifferences) -> Any:
    """Error rate of slices less that of the rest, with intervals: the clearest slices, the worst on top."""
    errors = [test for test in found.tests if test.what == "error"]
    parts = list(dict.fromkeys(test.part for test in errors))[:MOST_DRAWN]
    drawn = sorted((test for test in errors if test.part in parts), key=lambda test: -test.difference)
    systems = list(dict.fromkeys(found.thresholds))
    table = _rows(drawn, {test for test in found.shown if test.what == "error"})
    labels = table["slice"].unique(maintain_order=True).to_list()
    left = f" · the clearest {len(parts)} slices" if len({test.part for test in errors}) > len(parts) else ""
    return finished(
        _forest(table, systems, labels),
        title=_title(found),
        subtitle=[
            f"{percent(found.level)} intervals of each difference{left}",
            "filled: shown to differ after correction for all tests",
        ],
        description=f"Error rate on each slice less that on the rest: {'; '.join(table['told'].head(12))}.",
        table=table,
    )


def _rows(drawn: Sequence[SliceDifference], shown: set[SliceDifference]) -> pl.DataFrame:
    rows = [
        (
            test.system,
            test.part,
            test.n,
            test.difference,
            test.low,
            test.high,
            "shown" if test in shown else "not shown",
            f"{test.system}, {test.part}: {difference_told(test)}",
        )
        for test in drawn
    ]
    columns = ("system", "slice", "inputs", "difference", "low", "high", "differs", "told")
    return pl.DataFrame(rows, schema=columns, orient="row", infer_schema_length=None)


def _forest(table: pl.DataFrame, systems: list[str], labels: list[str]) -> Any:
    several = len(systems) > 1
    up = alt.Y(
        "slice:N",
        title=None,
        scale=alt.Scale(domain=labels),
        axis=alt.Axis(labelLimit=220, grid=True, ticks=False, domain=False),
    )
    offset: dict[str, Any] = {"yOffset": alt.YOffset("system:N", scale=alt.Scale(domain=systems))} if several else {}
    legend = alt.Legend(title=None, orient="bottom", columns=3, symbolSize=110, rowPadding=2) if several else None
    colours = alt.Scale(domain=systems, range=[style_of(place).colour for place in range(len(systems))])
    shapes = alt.Scale(domain=systems, range=[SHAPES[place % len(SHAPES)] for place in range(len(systems))])
    colour, shape = (
        alt.Color("system:N", scale=colours, legend=legend),
        alt.Shape("system:N", scale=shapes, legend=legend),
    )
    least, most = min(0.0, float(table["low"].min() or 0)), max(0.0, float(table["high"].max() or 0))  # type: ignore[arg-type]
    air = 0.06 * max(most - least, 1e-6)
    across = rate_axis(alt.X, "low", "error rate on the slice less that on the rest", domain=(least - air, most + air))
    base = alt.Chart().encode(y=up, **offset)
    span = base.mark_rule(strokeWidth=2).encode(across, x2="high:Q", color=colour)
    dots = [_dot(base, shown, colour, shape) for shown in (False, True)]
    zero = alt.Chart(inline(pl.DataFrame({"at": [0.0]}))).mark_rule(color="#777777", strokeDash=[3, 3]).encode(x="at:Q")
    height = len(labels) * (26 if not several else 13 * len(systems) + 10)
    return alt.layer(zero, span, *dots).properties(width=WIDTH, height=height)


def _dot(base: Any, shown: bool, colour: Any, shape: Any) -> Any:
    """Dots of the differences that are shown, filled, or of the others, hollow."""
    told = [alt.Tooltip("told:N", title="slice"), alt.Tooltip("inputs:Q", title="inputs", format=",")]
    kept = base.transform_filter(f"datum.differs {'==' if shown else '!='} 'shown'")
    look: dict[str, Any] = {} if shown else {"fill": "white"}
    return kept.mark_point(filled=shown, size=90, opacity=1, strokeWidth=1.6, **look).encode(
        x="difference:Q", color=colour, shape=shape, tooltip=told
    )


def _title(found: SliceDifferences) -> str:
    worse = [test for test in found.shown if test.what == "error" and test.difference > 0]
    if not worse:
        return "No slice is shown to err more than the rest"
    worst = max(worse, key=lambda test: test.difference)
    of = f"{worst.system} errs" if len(found.thresholds) > 1 else "Errors"
    if len(found.thresholds) > 1:
        return f"{of} most above the rest on {worst.part}: {percent(worst.inside)} against {percent(worst.outside)}"
    return f"{of} are most above the rest on {worst.part}: {percent(worst.inside)} against {percent(worst.outside)}"
