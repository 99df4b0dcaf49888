"""Figures to files: SVG, PNG, PDF and a self-contained HTML page, each whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from demur.data.output import write_whole
from demur.errors import UsageError
from demur.views import rendering
from demur.views.page import chart_page

FORMATS: dict[str, Callable[[Any], str | bytes]] = {
    ".svg": rendering.svg,
    ".png": rendering.png,
    ".pdf": rendering.pdf,
    ".html": chart_page,
}
"""Writers by the ending of the file."""


def save_chart(chart: Any, path: str | Path) -> None:
    """Writes a figure to a file; the ending says in which form."""
    ending = Path(path).suffix.lower()
    if ending not in FORMATS:
        raise UsageError(f'figures can be saved as {", ".join(FORMATS)}; got "{Path(path).name}"')
    write_whole(path, FORMATS[ending](chart))
