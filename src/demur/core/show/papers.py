"""Figures for papers: of a given width, with type of a given size, without a title, in grey.

A figure is laid out again at its width, not shrunk: its text keeps its size, its plot gets narrower, titles break
into lines, and its legend moves below. In grey, dashes and markers tell the systems apart.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
from rich.cells import cell_len

from demur.core.arrays import Array
from demur.core.show import charts
from demur.core.show.numbers import middle_cut
from demur.errors import UsageError

UNITS = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72}
"""Inches of each unit that a width can be given in."""

LABEL = 12
"""Pixels of the type that labels are set in; a figure's `font_size` is theirs."""

LEAST_FONT, USUAL_FONT = 6.0, 8.0
"""Points of the smallest type that is legible in print, and of what papers use."""

SCREEN_FONT, SCREEN_WIDTH = 9.0, 480 / 72
"""Points of the type and inches of the width of a figure as it comes: 12 pixels, and 640."""

SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "triangle-right", "triangle-left")
DARKEST_SHARE = 0.55
"""Of the way from black to white, how far the grey of a line may go."""

MARKERS, THICKEST, FINE = 5, 1.8, 2000
"""Markers on each line, the widest line that lets them be seen, and points of a line that they are chosen from."""

SIDE_BY_SIDE = 480
"""Pixels from which plots stand side by side; in narrower figures they stand one below the other."""

NARROW = 60
"""Pixels of a plot under which the labels at the ends of its axis, moved inwards, would run into one another."""

SMALLEST = 0.25
"""Share of its width that a plot can be narrowed to before the figure is refused."""

Spec = dict[str, Any]


@dataclass(frozen=True, slots=True)
class FigureLook:
    """How a figure is set: its width in inches, its type in points, whether it has a title, whether it is grey.

    >>> FigureLook.of("84mm").width, FigureLook.of(3.3, font_size=7).pixels
    (3.3070866141732282, 407.3142857142857)
    """

    width: float | None = None
    font_size: float | None = None
    title: bool = True
    grey: bool = False

    @classmethod
    def of(
        cls, width: str | float | None = None, *, font_size: float | None = None, title: bool = True, grey: bool = False
    ) -> FigureLook:
        """The look with its width read from a text such as "3.3in" or "84mm"; a number is in inches."""
        inches = None if width is None else _inches(width)
        if font_size is not None and not LEAST_FONT <= font_size <= 24:
            raise UsageError(f"`font_size` is from {LEAST_FONT:g} to 24 points; got {font_size:g}")
        return cls(inches, font_size, title, grey)

    @property
    def is_usual(self) -> bool:
        """Whether figures stay as they come."""
        return self == FigureLook()

    @property
    def points(self) -> float:
        """Points of its type."""
        usual = SCREEN_FONT if self.width is None else USUAL_FONT
        return usual if self.font_size is None else self.font_size

    @property
    def pixels(self) -> float:
        """Pixels that the figure is laid out in, in which labels are 12 pixels high."""
        return (SCREEN_WIDTH if self.width is None else self.width) * 72 * LABEL / self.points

    @property
    def least(self) -> float:
        """Pixels of the smallest type."""
        return LEAST_FONT * LABEL / self.points


def _inches(width: str | float) -> float:
    text = f"{width}in" if isinstance(width, int | float) else width.strip()
    match = re.fullmatch(r"(\d+\.?\d*|\.\d+)\s*(in|cm|mm|pt)?", text)
    inches = float(match[1]) * UNITS[match[2] or "in"] if match else 0.0
    if not 1 <= inches <= 40:
        raise UsageError(f'`width` is from 1 to 40 inches, such as 3.3in, 84mm or 240pt; got "{width}"')
    return inches


def laid_out(draw: Callable[[], Any], look: FigureLook, svg: Callable[[Spec], str]) -> str:
    """The figure as an SVG picture of the width that the look asks for; `svg` draws a spec."""
    plot = look.pixels - 80
    with charts.drawn_in(plot):
        spec, basis = charts.without_hover(charts.spec_of(draw())), charts.plot_size()
    spec = with_markers(in_grey(spec)) if look.grey else spec
    if not look.title:
        spec = {key: value for key, value in spec.items() if key != "title"}
    if look.pixels < SIDE_BY_SIDE:
        spec = _stacked(spec)
    narrow = partial(_narrowed, spec, look, basis)
    return sized(_fit(narrow, look, svg, plot / _widest(spec), _widest(spec)), look)


def _stacked(spec: Spec) -> Spec:
    """The spec with the plots that stand side by side one below the other, where each has an axis of its own."""
    if "hconcat" in spec and all(map(_has_names, spec["hconcat"])):
        return {**{key: value for key, value in spec.items() if key != "hconcat"}, "vconcat": spec["hconcat"]}
    return {**spec, "columns": 1} if "columns" in spec else spec


def _has_names(view: Spec) -> bool:
    """Whether a plot has a vertical axis of its own."""
    axes = [one["y"]["axis"] for one in _encodings(view) if isinstance(one.get("y"), dict) and "axis" in one["y"]]
    return all(axis is not None and axis.get("labels", True) for axis in axes)


def _fit(
    narrow: Callable[[float], Spec], look: FigureLook, svg: Callable[[Spec], str], start: float, slope: float
) -> str:
    """The picture with its plots narrowed until it is as wide as the look asks for, found by the secant method."""
    share, before = start, (0.0, 0.0)
    for turn in range(8):
        spec = narrow(share)
        picture = svg(spec)
        width = _size(picture)[0]
        if -0.01 * look.pixels <= width - look.pixels <= 0:
            break
        if turn and abs(share - before[0]) > 1e-6 and abs(width - before[1]) > 1:
            slope = max((width - before[1]) / (share - before[0]), 0.1 * slope)
        before = share, width
        share += (0.996 * look.pixels - width) / slope
        if share < SMALLEST * start:
            scaled = slope * start / (look.pixels - 80)  # how much plots grow with a pixel of the whole
            raise _too_narrow((width - slope * before[0] - 80 * SMALLEST * scaled) / (1 - SMALLEST * scaled), look)
    lacking = max(map(_crowding, _views(spec)), default=0.0)
    if lacking > 0:
        raise _too_narrow(look.pixels + 1.05 * lacking, look)  # beside a wider plot names may be longer
    return picture


def _too_narrow(least: float, look: FigureLook) -> UsageError:
    """What is said of a figure that needs so many pixels."""
    needed = math.ceil(10.3 * least * look.points / LABEL / 72) / 10
    return UsageError(
        f"this figure does not fit: at {look.points:g} points it needs about {needed:.1f} inches; "
        "give a greater `width` or a smaller `font_size`"
    )


def _crowding(view: Spec) -> float:
    """Pixels that the width of a view lacks for its names, where all are shown, to stand clear of each other."""
    lacking = 0.0
    for encoding in _encodings(view):
        for channel, side in (("x", "width"), ("y", "height")):
            declared, length = encoding.get(channel, {}), view.get(side)
            axis = declared.get("axis") if isinstance(declared, dict) else None
            if isinstance(axis, dict) and axis.get("labelOverlap") is False and isinstance(length, int | float):
                names = declared.get("scale", {}).get("domain", ())
                lacking = max(lacking, len(names) * axis.get("labelFontSize", LABEL) - length)
    return lacking


def sized(picture: str, look: FigureLook, *, unit: str = "in") -> str:
    """The picture with its width and height in inches, or in points without a unit."""
    across, down = _size(picture)
    across = max(across, look.pixels) if look.width is not None else across
    scale = look.points / LABEL / (72 if unit == "in" else 1)
    head, rest = picture.split(">", 1)
    head = re.sub(r' (width|height|viewBox)="[^"]*"', "", head)
    dimensions = f'width="{across * scale:.4g}{unit}" height="{down * scale:.4g}{unit}"'
    ground = f'<rect width="{across:.6g}" height="{down:.6g}" fill="white"/>'
    rest = re.sub(r'<rect width="[\d.]+" height="[\d.]+" fill="white"/>', ground, rest, count=1)
    return f'{head} {dimensions} viewBox="0 0 {across:.6g} {down:.6g}">{rest}'


def _size(picture: str) -> tuple[float, float]:
    head = picture.split(">", 1)[0]
    box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', head)
    assert box is not None
    return float(box[1]), float(box[2])


def _views(spec: Spec) -> Iterator[Spec]:
    """Every view of a spec that has a size of its own: itself, or those that it puts together."""
    parts = [part for name in ("vconcat", "hconcat", "concat") for part in spec.get(name, ())]
    if "spec" in spec:
        parts.append(spec["spec"])
    if not parts:
        yield spec
    for part in parts:
        yield from _views(part)


def _widest(spec: Spec) -> float:
    """Pixels of the plots of a figure side by side."""
    if "hconcat" in spec:
        return sum(map(_widest, spec["hconcat"]))
    if "vconcat" in spec:
        return max(map(_widest, spec["vconcat"]))
    if "columns" in spec:
        return float(spec["columns"] * max(map(_widest, spec.get("concat", [spec.get("spec", {})]))))
    width = spec.get("width", charts.WIDTH)
    return float(width) if isinstance(width, int | float) else float(charts.WIDTH)


def _narrowed(spec: Spec, look: FigureLook, basis: tuple[float, float], share: float) -> Spec:
    """The spec with plots of this share of their width, and all else set to fit.

    What lies at pixels was placed for a plot of the size `basis`, and is moved with its plot.
    """
    made = _copied(spec)
    for view in _views(made):
        _resize(view, share)
        for layer in view.get("layer", ()):
            _move_pixels(layer, view, basis)
    for view in _views(made):
        _set_axes(view, look)
    made = _with_legends_below(made, look)
    _set_titles(made, look)
    _set_type(made, look)
    made["config"] = {**made.get("config", {}), "padding": 2}
    return made


def _copied(spec: Any) -> Any:
    """A copy that can be changed; data are shared."""
    if isinstance(spec, dict):
        return {key: value if key in ("datasets", "values") else _copied(value) for key, value in spec.items()}
    return [_copied(part) for part in spec] if isinstance(spec, list) else spec


def _resize(view: Spec, share: float) -> None:
    """Narrow a view: a square stays one, cells stay square, and other plots lose less height than width."""
    width, height = view.get("width"), view.get("height")
    for side, size in (("width", width), ("height", height)):
        if isinstance(size, dict) and "step" in size and "for" not in size and (side == "width" or size == width):
            view[side] = {**size, "step": size["step"] * share}
    if not isinstance(width, int | float):
        return
    view["width"] = round(width * share, 2)
    if isinstance(height, int | float) and height == width:
        view["height"] = view["width"]
    elif isinstance(height, int | float) and height >= 200 and share < 1:
        view["height"] = round(height * math.sqrt(share), 2)


def _move_pixels(layer: Spec, view: Spec, basis: tuple[float, float]) -> None:
    for (channel, side), size in zip((("x", "width"), ("y", "height")), basis, strict=True):
        declared = layer.get("encoding", {}).get(channel, {})
        if "field" in declared and declared.get("scale", {}) is None and isinstance(view.get(side), int | float):
            field = declared["field"]
            move = {"calculate": f"datum[{json.dumps(field)}] * {view[side] / size:.6g}", "as": field}
            layer["transform"] = [*layer.get("transform", ()), move]


def _encodings(view: Spec) -> Iterator[Spec]:
    yield view.get("encoding", {})
    for part in view.get("layer", ()):
        yield from _encodings(part)


def _set_axes(view: Spec, look: FigureLook) -> None:
    """Break the titles of axes into lines as long as the axis, and let names take at most a third of the figure."""
    for encoding in _encodings(view):
        for channel, side in (("x", "width"), ("y", "height")):
            declared, length = encoding.get(channel), view.get(side)
            if not isinstance(declared, dict):
                continue
            axis = declared.get("axis")
            if isinstance(axis, dict) and channel == "y" and "labelLimit" in axis:
                axis["labelLimit"] = min(axis["labelLimit"], look.pixels / 3)
            if isinstance(axis, dict) and channel == "x" and isinstance(length, int | float) and length < NARROW:
                axis["labelFlush"] = False
            title = declared.get("title")
            if isinstance(title, str) and isinstance(length, int | float):
                declared["title"] = charts.balanced(title, max(10, int(length / charts.LETTER)))


def _set_titles(spec: Spec, look: FigureLook) -> None:
    """Break titles into lines that fit."""
    for part in (spec, *_views(spec)):
        title = part.get("title")
        if isinstance(title, str):
            part["title"] = title = {"text": title}
        if isinstance(title, dict):
            room = look.pixels / 8.8 if part is spec else part.get("width", look.pixels) / charts.LETTER
            cut = [middle_cut(word, max(8, int(room))) for word in _join(title.get("text", "")).split(" ")]
            title["text"] = charts.balanced(" ".join(cut), max(8, int(room)))
            if "subtitle" in title:
                facts = _join(title["subtitle"], " · ").split(" · ")
                title["subtitle"] = charts.packed(facts, int(look.pixels / 6.1))


def _join(lines: str | Sequence[str], between: str = " ") -> str:
    return lines if isinstance(lines, str) else between.join(lines)


def _set_type(part: Any, look: FigureLook) -> None:
    """Raise type that is smaller than what can be read in print."""
    if isinstance(part, dict):
        for key, value in part.items():
            if key.lower().endswith("fontsize") and isinstance(value, int | float):
                part[key] = max(value, look.least)
            elif key not in ("datasets", "values"):
                _set_type(value, look)
        if part.get("type") == "text" and "fontSize" not in part:
            part["fontSize"] = max(11, look.least)
    elif isinstance(part, list):
        for one in part:
            _set_type(one, look)


def _with_legends_below(spec: Spec, look: FigureLook) -> Spec:
    """The spec with the legends of its lines drawn below each plot, and all other legends moved there."""
    for name in ("vconcat", "hconcat", "concat"):
        if name in spec:
            spec[name] = [_with_legends_below(part, look) for part in spec[name]]
            return spec
    entries = _legend_entries(spec)
    for encoding in _encodings(spec):
        for declared in encoding.values():
            legend = declared.get("legend") if isinstance(declared, dict) else None
            if isinstance(legend, dict) and entries and "domain" in declared.get("scale", {}):
                declared["legend"] = None
            elif isinstance(legend, dict):
                legend.update({"orient": "bottom", **_legend_size(declared, legend, look)})
    if not entries:
        return spec
    outer = {"$schema", "config", "datasets", "title", "description", "params", "usermeta", "background", "padding"}
    inner = {key: value for key, value in spec.items() if key not in outer}
    kept = {key: value for key, value in spec.items() if key in outer}
    return {**kept, "vconcat": [inner, _legend_view(entries, _widest(spec))], "spacing": 8}


def _legend_size(declared: Spec, legend: Spec, look: FigureLook) -> Spec:
    """How long the labels of a legend below its plot may be, right of the axis, and in how many columns they stand."""
    short = _labels(legend.get("labelExpr", ""))
    names = [short.get(one, one) for one in declared.get("scale", {}).get("domain", ()) if isinstance(one, str)]
    longest = max(map(_letters, names), default=200)
    return {
        "labelLimit": 2 / 3 * look.pixels - SYMBOL,
        "columns": max(1, int(look.pixels / (longest * LETTER + SYMBOL))),
    }


def _letters(text: str) -> int:
    """How many letters of usual width a text is as wide as; those of some scripts take two.

    >>> _letters("model"), _letters("模型")
    (5, 4)
    """
    return cell_len(text)


@dataclass(frozen=True, slots=True)
class LegendEntry:
    """A line of a legend: its label, and how its line and its markers look."""

    label: str
    line: Mapping[str, Any]
    shape: str | None


def _legend_entries(view: Spec) -> list[LegendEntry]:
    """The entries of the legend of lines in a view; none where it has no such legend."""
    for encoding in _encodings(view):
        dashes: Spec = encoding.get("strokeDash", {})
        legend = dashes.get("legend")
        if not isinstance(legend, dict) or "range" not in dashes.get("scale", {}):
            continue
        styles = {name: encoding.get(name, {}).get("scale", {}).get("range", ()) for name in CHANNELS}
        names = legend.get("values", dashes["scale"]["domain"])
        labels, shapes = _labels(legend.get("labelExpr", "")), view.get("usermeta", {}).get("shapes", {})
        places = {name: place for place, name in enumerate(dashes["scale"]["domain"])}
        return [
            LegendEntry(
                labels.get(name, name),
                {key: styles[channel][places[name]] for channel, key in CHANNELS.items() if styles[channel]},
                shapes.get(name),
            )
            for name in names
        ]
    return []


CHANNELS = {"color": "color", "strokeDash": "strokeDash", "strokeWidth": "strokeWidth"}
"""Channels that tell lines apart, with the property of a mark that each sets."""

_RENAMED = re.compile(r'datum\.label === ("(?:[^"\\]|\\.)*") \? ("(?:[^"\\]|\\.)*") : ')


def _labels(expression: str) -> dict[str, str]:
    """Names with the labels that an expression of `charts.renamed` gives them.

    >>> _labels(charts.rename_expression({"a long name": "a name"}))
    {'a long name': 'a name'}
    """
    return {json.loads(name): json.loads(label) for name, label in _RENAMED.findall(expression)}


SYMBOL, GAP, ROW, LETTER, MARGIN = 34, 14, 17, 6.2, 44
"""Pixels of a line in a legend with the space after it, between columns, of a row, and of a letter; how far a legend
may begin left of its plot, below the axis."""


def _legend_view(entries: Sequence[LegendEntry], width: float) -> Spec:
    """A legend for a plot of this width as a plot without axes.

    Labels much longer than most stand below the others where that saves rows; otherwise all keep their order.
    """
    most = sorted(_letters(one.label) for one in entries)[len(entries) // 2]
    short = [one for one in entries if _letters(one.label) <= 1.5 * most + 4]
    layers, rows = _legend_columns(entries, width, 0)
    first, above = _legend_columns(short, width, 0)
    rest, below = _legend_columns([one for one in entries if one not in short], width, above * ROW)
    if above + below < rows - 1:
        layers, rows = [*first, *rest], above + below
    return {"data": {"values": [{}]}, "layer": layers, "width": width, "height": ROW * rows, "view": {"stroke": None}}


def _legend_columns(entries: Sequence[LegendEntry], width: float, top: float) -> tuple[list[Spec], int]:
    """The marks of entries in as many columns as fit, from a height downwards, and how many rows they take."""
    if not entries:
        return [], 0
    room = (width + MARGIN - SYMBOL) / LETTER
    texts = [middle_cut(one.label, max(8, int(room * len(one.label) / max(_letters(one.label), 1)))) for one in entries]
    column = SYMBOL + GAP + LETTER * max(map(_letters, texts))
    columns = max(1, min(len(entries), int((width + MARGIN + GAP) / column)))
    rows = math.ceil(len(entries) / columns)
    left = min(0.0, width - (column * columns - GAP))
    layers: list[Spec] = []
    for place, (one, text) in enumerate(zip(entries, texts, strict=True)):
        x, y = left + place // rows * column, top + ROW * (place % rows) + ROW / 2
        ends = {"x": {"value": x}, "x2": {"value": x + SYMBOL - 6}, "y": {"value": y}}
        layers.append({"mark": {"type": "rule", **one.line}, "encoding": ends})
        if one.shape is not None:
            middle = {"x": {"value": x + SYMBOL / 2 - 3}, "y": {"value": y}}
            layers.append({"mark": {**_marker(one.shape), "color": one.line["color"]}, "encoding": middle})
        words = {"type": "text", "text": text, "align": "left", "baseline": "middle", "fontSize": LABEL}
        layers.append({"mark": words, "encoding": {"x": {"value": x + SYMBOL}, "y": {"value": y}}})
    return layers, rows


def _marker(shape: str) -> Spec:
    """A mark of this shape; of a shape that begins with "open-" only the outline is dark."""
    hollow = shape.startswith("open-")
    fill = {"filled": False, "fill": "white"} if hollow else {"filled": True}
    return {"type": "point", "shape": shape.removeprefix("open-"), "size": 42, "opacity": 1, "strokeWidth": 1.3, **fill}


def with_markers(spec: Spec) -> Spec:
    """The spec with markers on the lines of systems, each of a shape of its own."""
    made: Spec = _copied(spec)
    for view in _views(made):

        def rows_of(layer: Spec, view: Spec = view) -> Sequence[Spec]:
            data = layer.get("data") or view.get("data") or made.get("data") or {}
            rows: Sequence[Spec] = data.get("values") or made.get("datasets", {}).get(data.get("name"), ())
            return rows

        for layer in list(view.get("layer", ())):
            _mark_lines(view, layer, rows_of)
    return made


def _mark_lines(view: Spec, layer: Spec, rows_of: Callable[[Spec], Sequence[Spec]]) -> None:
    """Add markers to a layer of lines, and say in the view which shape each system has."""
    encoding, mark = layer.get("encoding", {}), layer.get("mark", {})
    dashes = encoding.get("strokeDash", {})
    domain = dashes.get("scale", {}).get("domain") if isinstance(dashes, dict) else None
    kept = all("oneOf" in str(one.get("filter", "")) for one in layer.get("transform", ()))
    if domain is None or not kept or (mark if isinstance(mark, str) else mark.get("type")) != "line":
        return
    colours = encoding["color"]["scale"]["range"]
    pale = grey_of(charts.REFERENCES[0].colour, lines=True)
    rows = rows_of(layer)
    drawn = {row.get(dashes["field"]) for row in rows}
    systems = [name for name, colour in zip(domain, colours, strict=True) if colour != pale and name in drawn]
    if len(systems) < 2:
        return
    shapes = {name: _shape(place) for place, name in enumerate(systems)}
    if "strokeWidth" in encoding:  # a thick line would hide its markers
        widths = encoding["strokeWidth"]["scale"]
        widths["range"] = [min(width, THICKEST) for width in widths["range"]]
    view.setdefault("usermeta", {})["shapes"] = shapes
    dots = [one for one in view["layer"] if _has_dots(one, dashes["field"], systems, rows_of)]
    if dots:  # a figure with a dot for each value has its markers already
        _shape_dots(dots[0], shapes, dashes["field"], colours)
        return
    by_name: dict[str, list[Spec]] = {name: [] for name in systems}
    for row in rows:
        if row.get(dashes["field"]) in by_name:
            by_name[row[dashes["field"]]].append(row)
    at = {channel: {"field": encoding[channel]["field"], "type": "quantitative"} for channel in ("x", "y")}
    for place, (name, own) in enumerate(by_name.items()):
        spots = _spots(own, encoding, place / len(systems))
        if spots:
            mark = {**_marker(shapes[name]), "color": colours[domain.index(name)]}
            points = {"data": {"values": spots}, "mark": mark, "encoding": at}
            view["layer"].append(points)


def _has_dots(layer: Spec, field: str, systems: Sequence[str], rows_of: Callable[[Spec], Sequence[Spec]]) -> bool:
    """Whether a layer has dots of each system, filled in its colour."""
    mark, fill = layer.get("mark", {}), layer.get("encoding", {}).get("fill", {}).get("field")
    if not isinstance(mark, dict) or mark.get("type") != "point" or fill not in (field, "colour"):
        return False
    return fill == field or {row.get(field) for row in rows_of(layer)}.issuperset(systems)


def _shape(place: int) -> str:
    turn, shape = divmod(place, len(SHAPES))
    return SHAPES[shape] if turn % 2 == 0 else f"open-{SHAPES[shape]}"


def _shape_dots(layer: Spec, shapes: Mapping[str, str], field: str, colours: Sequence[str]) -> None:
    """Give the dots of each system its shape; open ones are white within."""
    own = list(colours[: len(shapes)])
    fills = [
        "white" if shape.startswith("open-") else colour for shape, colour in zip(shapes.values(), own, strict=True)
    ]
    ranges = {"shape": [shape.removeprefix("open-") for shape in shapes.values()], "fill": fills, "stroke": own}
    for channel, span in ranges.items():
        scale = {"domain": list(shapes), "range": span}
        layer["encoding"][channel] = {"field": field, "type": "ordinal", "sort": None, "scale": scale, "legend": None}
    layer["mark"] = {key: value for key, value in layer["mark"].items() if key not in ("shape", "stroke")}


def _spots(rows: Sequence[Spec], encoding: Spec, start: float) -> list[dict[str, float]]:
    """A few points on a line, evenly spaced along it as it is drawn; `start` moves them, so that lines differ."""
    x, y = encoding["x"]["field"], encoding["y"]["field"]
    order = encoding.get("order", {}).get("field", x)
    (left, right), (low, high) = (encoding[channel].get("scale", {}).get("domain", (0, 1)) for channel in ("x", "y"))
    known = [row for row in rows if None not in (row.get(x), row.get(y), row.get(order))]
    if not known:
        return []
    known.sort(key=itemgetter(order))
    across, up = (np.array([row[name] for row in known], dtype=float) for name in (x, y))
    steps = np.hypot(np.diff(across) / (right - left), np.diff(up) / (high - low))
    along: Array = np.append(0.0, np.cumsum(steps))
    fine = np.linspace(0.0, along[-1], FINE)  # a line may leave the plot between two of its points
    xs, ys = np.interp(fine, along, across), np.interp(fine, along, up)
    inside = np.flatnonzero((xs >= left) & (xs <= right) & (ys >= low) & (ys <= high))
    chosen = inside[((np.arange(MARKERS) + 0.25 + 0.5 * start) / MARKERS * inside.size).astype(int)[: inside.size]]
    return [{x: float(xs[one]), y: float(ys[one])} for one in chosen]


LINE_COLOURS = ("color", "scale", "range", "stroke")
"""Where the colours of lines stand in an encoding; in data they are called `colour`."""

_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")


def in_grey(part: Any, lines: bool = False) -> Any:
    """The spec with every colour as grey of the same lightness; those of lines are never pale."""
    if isinstance(part, dict):
        own = lines or "strokeDash" in part
        return {
            key: "greys" if key == "scheme" else in_grey(value, key == "colour" or (own and key in LINE_COLOURS))
            for key, value in part.items()
        }
    if isinstance(part, list | tuple):
        return [in_grey(one, lines) for one in part]
    return grey_of(part, lines=lines) if isinstance(part, str) and _COLOUR.fullmatch(part) else part


def grey_of(colour: str, *, lines: bool = False) -> str:
    """The grey that is as light as a colour; for lines at most a middle grey.

    >>> grey_of("#ffffff"), grey_of("#E69F00"), grey_of("#E69F00", lines=True)
    ('#ffffff', '#adadad', '#5f5f5f')
    """
    red, green, blue = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in (red, green, blue)]
    light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    shade = 12.92 * light if light <= 0.0031308 else 1.055 * light ** (1 / 2.4) - 0.055
    level = round(255 * (shade * DARKEST_SHARE if lines else shade))
    return f"#{level:02x}{level:02x}{level:02x}"
