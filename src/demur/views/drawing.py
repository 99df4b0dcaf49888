"""What every figure shares: Altair itself, the look, data inside the spec, titles and axes in percent."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import polars as pl

from demur.errors import UsageError

try:
    import altair as alt
except ModuleNotFoundError:
    raise UsageError("figures need the extra: pip install 'demur[plots]'") from None

__all__ = ["HEIGHT", "WIDTH", "alt", "chart_table", "finished", "headroom", "inline", "rate_axis"]

WIDTH, HEIGHT = 560, 340
"""Pixels of the plot itself; with axes and titles a figure comes to about 640 x 440."""

FONT = "Arial, 'Helvetica Neue', 'Liberation Sans', sans-serif"
"""Fonts of one set of widths, so that text fits its place wherever the picture is shown."""
INK, QUIET, GRID = "#1a1a1a", "#555555", "#e6e6e6"
TITLE_WIDTH, SUBTITLE_WIDTH = 72, 100
"""Characters of one line of title and subtitle."""


def inline(frame: pl.DataFrame) -> alt.InlineData:
    """The rows of a table as data inside a spec: rates to seven decimals, thresholds whole, no NaN or infinity."""
    rates = pl.selectors.float() - pl.selectors.by_name("threshold", require_all=False)
    tidy = frame.with_columns(rates.round(7))
    finite = pl.selectors.float()
    rows = tidy.with_columns(pl.when(finite.is_finite()).then(finite)).to_dicts()
    with alt.utils.schemapi.debug_mode(False):  # to hold each row against the schema takes most of the time
        return alt.InlineData(values=tuple(rows))  # a list would be copied, row by row, whenever charts are layered


def chart_table(chart: Any) -> pl.DataFrame:
    """The table of the data behind a figure."""
    values = getattr(chart.data, "values", None)
    if not isinstance(values, tuple):
        raise UsageError("this chart holds no table of its own; pass a chart made by demur.views")
    return pl.DataFrame(values, infer_schema_length=None)


def rate_axis(
    channel: type[Any], field: str, title: str, *, domain: tuple[float, float] = (0.0, 1.0), **axis: Any
) -> Any:
    """An axis that shows rates as percent."""
    return channel(
        field,
        type="quantitative",
        title=title,
        scale=alt.Scale(domain=list(domain), nice=False, zero=False),
        axis=alt.Axis(**{"format": "%", "labelExpr": "replace(datum.label, '%', ' %')", "tickCount": 6, **axis}),
    )


def headroom(highest: float) -> tuple[float, float]:
    """Domain of an error axis that leaves a little air above the highest value."""
    return 0.0, min(1.0, max(highest, 1e-4) * 1.06)


def finished(
    chart: Any, *, title: str, subtitle: Sequence[str], description: str, table: pl.DataFrame | None = None
) -> Any:
    """A chart with its titles, description for screen readers, table and the common look."""
    words = alt.TitleParams(text=balanced(title, TITLE_WIDTH), subtitle=packed(subtitle, SUBTITLE_WIDTH))
    given: dict[str, Any] = {} if table is None else {"data": inline(table)}
    return chart.properties(title=words, description=description, **given).configure(**_look())


def balanced(text: str, width: int) -> list[str]:
    """Text in as few lines of at most `width` characters as it needs, of about equal length.

    >>> balanced("four words and more", 16)
    ['four words', 'and more']
    """
    joined = text.replace(" %", "\N{NO-BREAK SPACE}%")
    lines = _wrapped(joined, width)
    narrowest = next(less for less in range(1, width + 1) if len(_wrapped(joined, less)) <= len(lines))
    return _wrapped(joined, narrowest)


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_on_hyphens=False)


def packed(facts: Sequence[str], width: int) -> list[str]:
    """Facts in lines of at most `width` characters, several to a line where they fit, none broken without need.

    >>> packed(["n = 3", "two words", "a longer fact"], 18)
    ['n = 3 · two words', 'a longer fact']
    """
    lines: list[str] = []
    for fact in facts:
        if lines and len(lines[-1]) + len(fact) + 3 <= width:
            lines[-1] += f" · {fact}"
        else:
            lines += balanced(fact, width)
    return lines


def _look() -> dict[str, Any]:
    return {
        "background": "white",
        "font": FONT,
        "padding": 10,
        "view": {"stroke": None},
        "title": {
            "anchor": "start",
            "frame": "bounds",
            "fontSize": 16,
            "fontWeight": 600,
            "color": INK,
            "lineHeight": 20,
            "subtitleFontSize": 12,
            "subtitleColor": QUIET,
            "subtitleLineHeight": 16,
            "subtitlePadding": 5,
            "offset": 12,
        },
        "axis": {
            "labelFontSize": 12,
            "titleFontSize": 13,
            "titleFontWeight": 500,
            "labelColor": INK,
            "titleColor": INK,
            "titlePadding": 9,
            "gridColor": GRID,
            "domainColor": "#888888",
            "tickColor": "#888888",
            "labelLimit": 240,
        },
        "legend": {
            "labelFontSize": 12,
            "labelColor": INK,
            "titleFontSize": 12,
            "labelLimit": 280,
            "symbolSize": 700,
            "rowPadding": -8,
        },
        "header": {"labelFontSize": 12, "titleFontSize": 13},
    }
