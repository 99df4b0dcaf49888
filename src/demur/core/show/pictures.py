"""Charts become pictures by vl-convert, inside this process and without a network."""

from __future__ import annotations

import base64
import re
from functools import cache
from html import escape
from typing import Any

from demur.core.show.charts import alt, without_hover
from demur.core.show.safe import visible
from demur.errors import UsageError

try:
    import vl_convert
except ModuleNotFoundError:
    raise UsageError("figures need the extra: pip install 'demur[plots]'") from None


_CLIP = re.compile(r"\bclip\d+\b")


def svg(chart: Any) -> str:
    """The figure as an SVG image."""
    return svg_of(chart.to_dict())


def svg_of(spec: dict[str, Any]) -> str:
    """The figure of a Vega-Lite spec as an SVG image that says what it shows to those who cannot see it.

    Clipping paths are numbered from 1: vl-convert counts on from picture to picture.
    """
    picture = str(vl_convert.vegalite_to_svg(without_hover(spec), vl_version=_version()))
    numbers = {name: f"clip{place}" for place, name in enumerate(dict.fromkeys(_CLIP.findall(picture)), start=1)}
    head, rest = _CLIP.sub(lambda match: numbers[match[0]], picture).split(">", 1)
    texts = {"title": titles(spec)[0], "desc": str(spec.get("description", ""))}
    words = "".join(f"<{tag}>{escape(text)}</{tag}>" for tag, text in texts.items() if text)
    return head.replace("<svg", '<svg role="img"', 1) + f">{words}{rest}"


def png(chart: Any, *, scale: float = 2.0) -> bytes:
    """The figure as a PNG image, at twice its size unless said otherwise."""
    return bytes(vl_convert.vegalite_to_png(static_spec(chart), vl_version=_version(), scale=scale))


def pdf(chart: Any) -> bytes:
    """The figure as a PDF page."""
    return bytes(vl_convert.vegalite_to_pdf(static_spec(chart), vl_version=_version()))


def static_spec(chart: Any) -> dict[str, Any]:
    """The Vega-Lite spec without what only a pointer can use."""
    return without_hover(chart.to_dict())


def embedded(picture: str | bytes, about: str) -> str:
    """An SVG or PNG picture as an image inside a page, described for those who cannot see it."""
    kind, content = ("svg+xml", picture.encode()) if isinstance(picture, str) else ("png", picture)
    return f'<img alt="{escape(visible(about))}" src="data:image/{kind};base64,{base64.b64encode(content).decode()}">'


def titles(spec: dict[str, Any]) -> tuple[str, str]:
    """Title and subtitle of a spec, each in one line; empty where there is none."""
    title = spec.get("title", {})
    if isinstance(title, str):
        return title, ""
    text, below = title.get("text", ""), title.get("subtitle", [])
    return text if isinstance(text, str) else " ".join(text), below if isinstance(below, str) else " · ".join(below)


@cache
def javascript(snippet: str) -> str:
    """Vega, Vega-Lite and Vega-Embed in one script that ends with `snippet` and needs nothing from outside."""
    return str(vl_convert.javascript_bundle(snippet, vl_version=_version()))


def _version() -> str | None:
    """The Vega-Lite version that Altair writes for, where vl-convert has it; else vl-convert's newest."""
    wanted = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    return wanted if wanted in vl_convert.get_vegalite_versions() else None
