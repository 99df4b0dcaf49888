"""The interactive plot of a comparison in a notebook."""

from __future__ import annotations

import base64
import hashlib
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

from demur.core.show.notebook import FRAME_HEIGHT, ROW_HEIGHT

if TYPE_CHECKING:
    from demur.returns.compare import Comparison


def explorer_frame(comparison: Comparison) -> str:
    """The interactive plot in a frame that can reach nothing outside itself."""
    explorer = import_module("demur.returns.explorer.explorer")
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
    explorer, rendering, page = (
        import_module(f"demur.{name}") for name in ("returns.explorer.explorer", "core.show.pictures", "core.show.page")
    )
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
