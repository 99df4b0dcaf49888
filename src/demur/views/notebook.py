"""Results in notebooks: the interactive plot of a comparison in a frame of its own, other figures as pictures.

`_repr_html_` is all that Jupyter, VS Code, Colab and nbviewer have in common; a MIME bundle of Vega-Lite would be
lighter, but several of them show it only with an extension, or from a network.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

from demur.errors import UsageError
from demur.views import presentation
from demur.views.fragments import notebook
from demur.views.presentation import Presentation

if TYPE_CHECKING:
    from demur.analyses.comparison import Comparison

SETTING = "DEMUR_NOTEBOOK"
"""Environment variable: "static" shows pictures only (about 50 kB a result), "text" no figures at all."""

MOST_SVG = 120_000
"""Bytes up to which a picture is kept as SVG; one of very many marks is smaller as PNG."""

FRAME_HEIGHT, ROW_HEIGHT = 850, 30
"""Pixels of the frame without the rows of its table, and of each row; a frame cannot ask for its height itself."""


def comparison_notebook(comparison: Comparison) -> str:
    """A comparison in a notebook: its sentences, the plot to be dragged, its tables."""
    shown = presentation.of_comparison(comparison)
    return notebook(shown, figure(lambda: explorer_frame(comparison), lambda: comparison.chart()))


def presented(of: Callable[[Any], Presentation]) -> Callable[[Any], str]:
    """How a result shows itself: its sentences, its picture, its tables."""
    return lambda result: notebook(of(result), figure(None, result.chart))


def pictured(page: Callable[[Any], str]) -> Callable[[Any], str]:
    """How a result with a page of its own shows itself: that page, and its picture at the end."""
    return lambda result: f"{page(result).removesuffix('</div>')}{figure(None, result.chart)}</div>"


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
    """A chart as an image inside the page, described for those who cannot see it."""
    rendering = import_module("demur.views.rendering")
    about = str(chart.to_dict().get("description", ""))
    drawn, kind = rendering.svg(chart).encode(), "svg+xml"
    if len(drawn) > MOST_SVG:
        drawn, kind = rendering.png(chart, scale=1.5), "png"
    return f'<img alt="{escape(about)}" src="data:image/{kind};base64,{base64.b64encode(drawn).decode()}">'


def explorer_frame(comparison: Comparison) -> str:
    """The interactive plot in a frame that can reach nothing outside itself."""
    explorer = import_module("demur.views.explorer")
    whole = [one for one in comparison.evaluations if one.part is None]
    document = explorer.explorer_document(whole, comparison)
    height = FRAME_HEIGHT + ROW_HEIGHT * len(whole)
    return (
        f'<iframe title="{escape(document["title"])}" sandbox="allow-scripts" width="100%" height="{height}" '
        f'frameborder="0" srcdoc="{_quoted(explorer_page(document, picture=False))}"></iframe>'
    )


def _quoted(page: str) -> str:
    """A page as the value of an attribute: no more is escaped than must be, as most of it is a long script."""
    return page.replace("&", "&amp;").replace('"', "&quot;")


def explorer_page(document: dict[str, Any], *, picture: bool = True) -> str:
    """A whole page of one explorer that needs nothing from outside; `picture` is what shows where no scripts run."""
    explorer, rendering, page = (import_module(f"demur.views.{name}") for name in ("explorer", "rendering", "page"))
    script = rendering.javascript(explorer.explorer_script()).replace("</script", "<\\/script")
    own = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; script-src 'sha256-{own}'; style-src 'unsafe-inline'; img-src data:"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(document['title'])}</title><style>{page.STYLE}{explorer.STYLE}{FRAMED}</style></head>"
        f"<body>{explorer.explorer_html(document, picture=picture)}<script>{script}</script></body></html>"
    )


FRAMED = "html { font-size: 14px; } body { max-width: none; padding: 0 0.25rem; } .explorer { margin: 0; }"
