"""The spec of the interactive error-return plot: the project's chart with places for curves, handles and a region.

The script fills the named data sets "curves", "handles" and "region" from the document, so no point is told twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from demur.core.show.charts import HEIGHT, INK, style_of, without_hover
from demur.core.show.numbers import shortened
from demur.returns.charts.error_return import comparison_chart, error_return_chart
from demur.returns.compare import Comparison, PairComparison
from demur.returns.evaluate import Evaluation

LANE, LANE_GAP = 16, 5
"""Pixels of the strip under the plot that names the system shown better, and of the air over and under it."""

Stretch = tuple[float, float, str | None]
"""A range of non-return rates and the system that leads there, if one does."""

NO_SIDE = {"better": None, "colour": "#dddddd", "tint": 0.0}
LEAST_LABELLED = 0.05
"""A stretch of non-return rates narrower than this gets no label."""


def explorer_chart(evaluations: Sequence[Evaluation], comparison: Comparison | None) -> dict[str, Any]:
    """The chart whose look and words the explorer takes over, as a spec."""
    if comparison is None:
        chart = error_return_chart(evaluations, region=None)
    else:
        chart = comparison_chart(replace(comparison, evaluations=tuple(evaluations)), region=None)
    drawn: dict[str, Any] = chart.to_dict()
    return drawn


def explorer_spec(drawn: Mapping[str, Any], lead: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The spec of a drawn chart with the named data sets in place of its curves; `lead` is shaded where known.

    Its marks say nothing to screen readers: the description, the sentence and the table say it all, and in order.
    """
    spec = {key: value for key, value in without_hover(dict(drawn)).items() if key != "title"}
    layers = [_lowered(layer) if lead else layer for layer in spec["layer"]]
    used = {layer["data"]["name"] for layer in layers if "data" in layer}
    kept = {name: rows for name, rows in spec["datasets"].items() if name in used}
    lead_layers = _lead_layers() if lead else []
    datasets = {**kept, "curves": [], "handles": [], "region": [], **({"lead": list(lead)} if lead else {})}
    return {
        **spec,
        "config": {**spec["config"], "aria": False},
        "width": "container",
        "data": {"name": "curves"},
        "datasets": datasets,
        "layer": [_unsaid(one) for one in (*lead_layers, _region_layer(), *layers, *_point_layers())],
    }


def _unsaid(layer: dict[str, Any]) -> dict[str, Any]:
    return {**layer, "mark": {**layer["mark"], "aria": False}}


def lead_rows(evaluations: Sequence[Evaluation], comparison: Comparison | None) -> list[dict[str, Any]]:
    """Stretches of non-return rates with the system shown better than all others, or the word that none is."""
    if comparison is None or not comparison.pairs:
        return []
    names = [one.name for one in evaluations]
    labels = shortened(names, 24)
    undecided = {**NO_SIDE, "label": "no significant difference" if len(names) == 2 else "none shown best of all"}
    if len(comparison.pairs) == 1:
        stretches = _pair_stretches(comparison.pairs[0])
    else:
        stretches = [(one.start, one.stop, None if one.also else one.best) for one in comparison.ranking]
    return [
        {
            "start": round(start, 7),
            "stop": round(stop, 7),
            **(undecided if better is None else _side(names.index(better), better, labels[better])),
        }
        for start, stop, better in _joined(stretches)
    ]


def _joined(stretches: Sequence[Stretch]) -> list[Stretch]:
    """The stretches that are any, neighbours with one leader joined."""
    found: list[Stretch] = []
    for start, stop, better in stretches:
        if found and found[-1][2] == better:
            found[-1] = (found[-1][0], stop, better)
        elif stop > start:
            found.append((start, stop, better))
    return found


def _pair_stretches(pair: PairComparison) -> list[Stretch]:
    found: list[Stretch] = []
    reached = pair.start
    for part in pair.intervals:
        found += [(reached, part.start, None), (part.start, part.stop, pair.a if part.better == "a" else pair.b)]
        reached = part.stop
    return [*found, (reached, 1.0, None)]


def _side(place: int, name: str, label: str) -> dict[str, Any]:
    return {"better": name, "colour": style_of(place).colour, "tint": 0.09, "label": f"{label} errs less"}


def _lowered(layer: dict[str, Any]) -> dict[str, Any]:
    """A layer whose x axis, where it has one, leaves room for the strip."""
    across = layer.get("encoding", {}).get("x", {})
    if "axis" not in across:
        return layer
    moved = {**across, "axis": {**across["axis"], "offset": LANE + 2 * LANE_GAP}}
    return {**layer, "encoding": {**layer["encoding"], "x": moved}}


def _lead_layers() -> list[dict[str, Any]]:
    """A tint over the whole height where one system is shown better, and the strip under it that says which."""
    across = {"x": _place("start"), "x2": {"field": "stop"}}
    top = HEIGHT + LANE_GAP
    return [
        {
            "data": {"name": "lead"},
            "mark": {"type": "rect"},
            "encoding": {**across, **_own("fill", "colour"), **_own("opacity", "tint", "quantitative")},
        },
        {
            "data": {"name": "lead"},
            "mark": {"type": "rect", "fillOpacity": 0.42, "stroke": "white", "strokeWidth": 1},
            "encoding": {**across, **_own("fill", "colour"), "y": {"value": top}, "y2": {"value": top + LANE}},
        },
        {
            "data": {"name": "lead"},
            "transform": [
                {"filter": f"datum.stop - datum.start >= {LEAST_LABELLED}"},
                {"calculate": "(datum.start + datum.stop) / 2", "as": "middle"},
            ],
            "mark": {
                "type": "text",
                "fontSize": 11,
                "baseline": "middle",
                "color": INK,
                "limit": {"expr": "(datum.stop - datum.start) * width - 6"},
            },
            "encoding": {
                "x": _place("middle"),
                "y": {"value": top + LANE / 2 + 1},
                "text": {"field": "label"},
            },
        },
    ]


def _region_layer() -> dict[str, Any]:
    return {
        "data": {"name": "region"},
        "mark": {"type": "rect", "fill": "#0b5a8a", "fillOpacity": 0.13, "stroke": "#0b5a8a", "strokeDash": [4, 3]},
        "encoding": {"x": _place("from"), "x2": {"field": "to"}},
    }


def _point_layers() -> list[dict[str, Any]]:
    """A rule from the axis up, the point on each curve and its error rate, which stands clear of its neighbours."""
    own = {"data": {"name": "handles"}, "transform": [{"filter": "isValid(datum.error)"}]}
    words = {"type": "text", "baseline": "middle", "fontSize": 12, "fontWeight": 600}
    placed = {
        "x": _place("nonreturn"),
        "y": _place("label_at"),
        "text": {"field": "label"},
    }
    sides = [
        {**own, "transform": [*own["transform"], {"filter": f"datum.side == '{side}'"}], "mark": mark}
        for side in ("left", "right")
        for mark in (
            {**words, "align": side, "dx": 11 if side == "left" else -11, "stroke": "white", "strokeWidth": 4},
            {**words, "align": side, "dx": 11 if side == "left" else -11, "color": INK},
        )
    ]
    return [
        {
            "data": {"name": "handles"},
            "mark": {"type": "rule", "strokeWidth": 1.2, "strokeDash": [4, 3]},
            "encoding": {
                "x": _place("nonreturn"),
                "y": _place("top"),
                "y2": {"datum": 0},
                **_own("color", "colour"),
            },
        },
        *({**side, "encoding": placed} for side in sides),
        {
            **own,
            "mark": {"type": "point", "filled": True, "size": 130, "stroke": "white", "strokeWidth": 2, "opacity": 1},
            "encoding": {"x": _place("nonreturn"), "y": _place("error"), **_own("fill", "colour")},
        },
    ]


def _place(field: str) -> dict[str, Any]:
    return {"field": field, "type": "quantitative"}


def _own(channel: str, field: str, kind: str = "nominal") -> dict[str, Any]:
    """A channel that takes its values from the data as they are."""
    return {channel: {"field": field, "type": kind, "scale": None}}
