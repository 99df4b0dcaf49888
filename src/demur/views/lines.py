"""How lines of systems are told apart: by dash, width and shade, so that a grey print still reads; colour is extra."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from demur.views.drawing import alt
from demur.views.names import middle_cut, shortened

Corner = Literal["top-right", "top-left", "bottom-right", "bottom-left", "top"]


@dataclass(frozen=True, slots=True)
class LineStyle:
    """Colour, width and dash of a line."""

    colour: str
    width: float
    dash: tuple[int, ...]


BASELINE = LineStyle("#000000", 3.4, (1, 0))
"""The first or named system: thick and black, as in Artstein (2011)."""

OTHERS = (
    LineStyle("#D55E00", 1.7, (1, 0)),
    LineStyle("#0072B2", 2.2, (8, 3)),
    LineStyle("#56B4E9", 3.0, (14, 2, 2, 2, 2, 2)),
    LineStyle("#7B3F76", 2.0, (2, 2)),
    LineStyle("#E69F00", 2.6, (6, 2)),
    LineStyle("#00664B", 1.8, (11, 3, 2, 3)),
    LineStyle("#CC79A7", 2.8, (3, 3)),
)
"""The other systems, in colours of Okabe and Ito (two of them darkened), each with its own dash and width."""

REFERENCES = (LineStyle("#777777", 1.0, (1, 0)), LineStyle("#777777", 1.0, (3, 3)))
"""A random and a perfect ranking of the baseline's answers."""

REFERENCE_LETTERS = 18
"""Letters of the baseline's name in the names of its references."""


def style_of(place: int) -> LineStyle:
    """Style of the line at a place in the order of systems; from the ninth on the styles return as thin lines."""
    if place == 0:
        return BASELINE
    turn, style = divmod(place - 1, len(OTHERS))
    return replace(OTHERS[style], width=round(OTHERS[style].width / (1 + turn), 2))


def reference_names(baseline: str) -> tuple[str, str]:
    """What the two lines are called that show how far a ranking could make or mar the baseline."""
    name = middle_cut(baseline, REFERENCE_LETTERS)
    return f"random ranking of {name}", f"perfect ranking of {name}"


def line_channels(
    names: Sequence[str],
    *,
    corner: Corner,
    references: Sequence[str] = (),
    field: str = "system",
    labels: Mapping[str, str] | None = None,
) -> tuple[Any, ...]:
    """Colour, dash and width of lines by name, with one legend that shows all three; `labels` replace names there."""
    styles = [style_of(place) for place in range(len(names))] + list(REFERENCES[: len(references)])
    domain = [*names, *references]
    legend = legend_in(corner, shortened(names) if labels is None else labels) if len(domain) > 1 else None
    ranges: tuple[tuple[Any, list[Any]], ...] = (
        (alt.Color, [style.colour for style in styles]),
        (alt.StrokeDash, [list(style.dash) for style in styles]),
        (alt.StrokeWidth, [style.width for style in styles]),
    )
    return tuple(
        channel(
            field, type="ordinal", sort=None, scale=alt.Scale(type="ordinal", domain=domain, range=span), legend=legend
        )
        for channel, span in ranges
    )


def legend_in(corner: Corner, labels: Mapping[str, str] | None = None) -> alt.Legend:
    """A legend in the corner that the curves leave free, or above the plot; `labels` stand for names that are long."""
    changed = {name: label for name, label in (labels or {}).items() if name != label}
    said: dict[str, Any] = {"labelExpr": _relabelled(changed)} if changed else {}
    return alt.Legend(
        title=None,
        orient=corner,
        symbolType="stroke",
        fillColor="white",
        strokeColor="#dddddd",
        padding=7,
        cornerRadius=3,
        offset=6,
        **said,
    )


def _relabelled(labels: Mapping[str, str]) -> str:
    """An expression of Vega that gives each name its label."""
    cases = (f"datum.label === {json.dumps(name)} ? {json.dumps(label)} : " for name, label in labels.items())
    return f"{''.join(cases)}datum.label"
