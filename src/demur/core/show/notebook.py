"""Results in notebooks: tables and figures as pictures."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

from demur.core.show.html import curve_points, notebook
from demur.core.show.presentation import Presentation, chart_function
from demur.core.show.results import register
from demur.core.stats.smoothing import Smooth
from demur.errors import UsageError

SETTING = "DEMUR_NOTEBOOK"
"""Environment variable: "static" shows pictures only (about 50 kB a result), "text" no figures at all."""

MOST_SVG = 120_000
"""Bytes up to which a picture is kept as SVG; one of very many marks is smaller as PNG."""

FRAME_HEIGHT, ROW_HEIGHT = 850, 30
"""Pixels of the frame without the rows of its table, and of each row; a frame cannot ask for its height itself."""


def presented(of: Callable[[Any], Presentation]) -> Callable[[Any], str]:
    """How a result shows itself: its sentences, its picture, its tables."""
    return lambda result: notebook(of(result), figure(None, result.chart))


def pictured(text: Callable[[Any], str]) -> Callable[[Any], str]:
    """How a result with HTML of its own shows itself: that, and its picture at the end."""
    return lambda result: f"<div>{text(result)}{figure(None, result.chart)}</div>"


def figure(live: Callable[[], str] | None, chart: Callable[[], Any]) -> str:
    """The live figure, else a picture of the chart; nothing where figures are not wanted or cannot be drawn."""
    wanted = os.environ.get(SETTING, "")
    if wanted not in ("", "static", "text"):
        raise UsageError(f'{SETTING} is "static", "text" or not set; got "{wanted}"')
    if wanted == "text":
        return ""
    try:
        return live() if live is not None and not wanted else picture(chart())
    except UsageError:  # without the extra for figures, or where a chart has nothing to draw, the tables stand alone
        return ""


def picture(chart: Any) -> str:
    """A chart as an image inside the page."""
    rendering = import_module("demur.core.show.pictures")
    spec = rendering.spec_of(chart)
    about, svg = str(spec.get("description", "")), rendering.svg_of(spec)
    fits = len(svg.encode()) <= MOST_SVG
    return str(rendering.embedded(svg if fits else rendering.png(chart, scale=1.5), about))


def drawn(
    name: str,
    of: Callable[[Any], Any] = lambda result: result,
    settings: Callable[[Any], dict[str, Any]] = lambda _: {},
) -> Callable[..., Any]:
    """A chart function found when it is first needed; `settings` gives the options that the result itself knows."""

    def draw(result: Any, **options: Any) -> Any:
        return chart_function(name)(of(result), **{**settings(result), **options})

    return draw


register(Smooth, chart=drawn("core.show.smooth_chart.smooth_chart", lambda one: [one]), page=pictured(curve_points))
