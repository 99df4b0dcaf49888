"""A presentation as plain values: what a page in the browser is made from, figures as Vega-Lite specs."""

from __future__ import annotations

from typing import Any

from demur.views import rendering
from demur.views.drawing import WIDTH, chart_table
from demur.views.fragments import MOST_ROWS, THINNED_ROWS, evenly, frame_table
from demur.views.page import slim
from demur.views.presentation import Presentation, Table


def presentation_document(presentation: Presentation) -> dict[str, Any]:
    """Everything that a presentation shows, its parts included."""
    return {
        "title": presentation.title,
        "sentences": list(presentation.sentences),
        "figures": [figure_document(figure()) for figure in presentation.figures],
        "tables": [table_document(table) for table in presentation.tables],
        "notes": list(presentation.notes),
        "warnings": list(presentation.warnings),
        "signatures": list(presentation.signatures),
        "parts": [presentation_document(part) for part in presentation.parts],
    }


def figure_document(chart: Any) -> dict[str, Any]:
    """A figure: its words, its spec without title, and the table of its data."""
    spec = chart.to_dict()
    title, subtitle = rendering.titles(spec)
    bare = {key: value for key, value in spec.items() if key != "title"}
    if bare.get("width") == WIDTH and not _in_pixels(bare):
        bare["width"] = "container"
    frame = chart_table(chart)
    shown = frame if frame.height <= MOST_ROWS else evenly(frame, THINNED_ROWS)
    table = table_document(frame_table(shown, "Data behind this figure"))
    about = str(spec.get("description", ""))
    return {
        "title": title,
        "subtitle": subtitle,
        "description": about,
        "spec": slim(bare),
        "table": {**table, "of": frame.height},
    }


def _in_pixels(spec: dict[str, Any]) -> bool:
    """Whether a layer stands at pixels of the plot, which would be another place in a wider one."""
    across = spec.get("encoding", {}).get("x", {})
    return ("scale" in across and across["scale"] is None) or any(map(_in_pixels, spec.get("layer", ())))


def table_document(table: Table) -> dict[str, Any]:
    """A table of text."""
    return {"title": table.title, "columns": list(table.columns), "rows": [list(row) for row in table.rows]}
