"""Pages from templates: everything from data is escaped by the template engine, and what is not seen made visible."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from demur import __version__
from demur.apps.web.site import Page
from demur.core.show.results import threshold_text
from demur.core.show.safe import chart_safe, visible

THEMES = ("light", "dark")
"""What the look of pages may be set to; without one it is the system's."""

_ESCAPED = re.compile(r"\\[ubf]")
"""How control characters stand in JSON."""


def render(
    template: str,
    title: str,
    document: dict[str, Any],
    *,
    navigation: Sequence[Page] = (),
    twin: str = "",
    path: str = "",
    theme: str = "",
) -> str:
    """A page from its template."""
    about = {
        "title": title,
        "document": document,
        "twin": twin,
        "path": path,
        "theme": theme if theme in THEMES else "",
        "navigation": [page for page in navigation if page.heading],
        "version": __version__,
    }
    return templates().get_template(template).render(about)


@cache
def templates() -> Environment:
    """The template engine with the filters that templates use."""
    environment = Environment(
        loader=PackageLoader("demur.apps.web"),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    shown = {"percent": percent, "decimals": decimals, "count": "{:,}".format, "megabytes": megabytes, "moment": moment}
    environment.filters.update(shown, data=data_block, raw=escape, threshold=threshold_text)
    return environment


def _shown(value: Any) -> Any:
    """What stands on a page; the values of forms, which are sent back as they are, go through the filter `raw`."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def data_block(value: Any) -> str:
    r"""JSON for an element of a page, which cannot end the element it stands in, and whose texts can be shown.

    >>> data_block("</script>\x1b")
    '"\\u003c/script\\u003e⟨U+001B⟩"'
    """
    text = _compact(value)
    if visible(text) != text or _ESCAPED.search(text):  # most have no such text, and to look at every number takes long
        text = _compact(chart_safe(value))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def percent(value: float | None, digits: int = 1) -> str:
    """A rate in percent, or a dash where there is none.

    >>> percent(0.123), percent(None)
    ('12.3 %', '–')
    """
    return "–" if value is None else f"{100 * value:.{digits}f} %"


def decimals(value: float | None) -> str:
    """A number with four decimals, or a dash where there is none.

    >>> decimals(0.08268), decimals(None)
    ('0.0827', '–')
    """
    return "–" if value is None else f"{value:.4f}"


def megabytes(value: int) -> str:
    """A size in megabytes, or in kilobytes where it is less than one.

    >>> megabytes(2 * 1024**3), megabytes(1536), megabytes(1_500_000)
    ('2,048 MB', '1.5 kB', '1.4 MB')
    """
    if value < 1024**2:
        return f"{value / 1024:.1f} kB"
    size = value / 1024**2
    return f"{size:.1f} MB" if size < 10 else f"{size:,.0f} MB"


def moment(text: str) -> str:
    """A time as ISO 8601 has it, to the minute, in words that need no explanation.

    >>> moment("2031-05-04T12:30:59+00:00")
    '2031-05-04 12:30 UTC'
    """
    return f"{text[:10]} {text[11:16]} UTC"
