"""What every chart shares: Altair, the look, line styles, labels, legends, tooltips and names that fit."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import polars as pl

from demur.core.arrays import Array
from demur.core.show.numbers import middle_cut, percent, shorten
from demur.core.show.safe import chart_safe
from demur.errors import UsageError

try:
    import altair as alt
except ModuleNotFoundError:
    raise UsageError("figures need the extra: pip install 'demur[plots]'") from None

__all__ = ["HEIGHT", "WIDTH", "alt", "chart_table", "finished", "headroom", "inline", "rate_axis"]

WIDTH, HEIGHT = 560, 340
"""Pixels of the plot itself; with axes and titles a figure comes to about 640 x 440."""

INK, QUIET, GRID = "#1a1a1a", "#555555", "#e6e6e6"
TITLE_WIDTH, SUBTITLE_WIDTH = 72, 100
"""Characters of one line of title and subtitle."""

MOST_OF_WORD = 40
"""Characters of a word of a title, such as the name of a model, above which it is cut in the middle."""


def unchecked() -> Any:
    """A context, or a decorator, in which Altair does not hold each part of a chart against the schema.

    The tests do that once for every figure; it takes longer than to draw one.
    """
    return alt.utils.schemapi.debug_mode(False)


def inline(frame: pl.DataFrame) -> alt.InlineData:
    """The rows of a table as data inside a spec: rates to seven decimals, thresholds whole, no NaN or infinity."""
    floats = pl.selectors.float()
    rates = floats - pl.selectors.by_name("threshold", require_all=False)
    rows = frame.with_columns(rates.round(7)).with_columns(pl.when(floats.is_finite()).then(floats)).to_dicts()
    with unchecked():
        return alt.InlineData(values=tuple(rows))  # a list would be copied, row by row, whenever charts are layered


def chart_table(chart: Any) -> pl.DataFrame:
    """The table of the data behind a figure."""
    values = getattr(chart.data, "values", None)
    if not isinstance(values, tuple):
        raise UsageError("this chart holds no table of its own; pass a chart made by demur")
    return pl.DataFrame(values, infer_schema_length=None)


class Plot(alt.Chart):
    """A chart of one mark, of which Altair makes copies that share its data, mark and channels.

    Altair copies every layer several times, part by part, whenever charts are put together, titled or written. Nothing
    changes a plot once it is made, so it can be shared.
    """

    def __deepcopy__(self, memo: Any) -> Plot:
        return self.copy(deep=False)


def rate_axis(
    channel: type[Any], field: str, title: str, *, domain: tuple[float, float] = (0.0, 1.0), **axis: Any
) -> Any:
    """An axis that shows rates as percent."""
    return channel(
        field,
        type="quantitative",
        title=title,
        scale=alt.Scale(domain=list(domain), nice=False, zero=False),
        axis=alt.Axis(**{"format": "%", "labelExpr": "replace(datum.label, '%', ' %')", "tickCount": 6, **axis}),
    )


def headroom(highest: float) -> tuple[float, float]:
    """Domain of an error axis that leaves a little air above the highest value."""
    return 0.0, min(1.0, max(highest, 1e-4) * 1.06)


def finished(
    chart: Any, *, title: str, subtitle: Sequence[str], description: str, table: pl.DataFrame | None = None
) -> Any:
    """The chart itself, with its titles, description for screen readers, table and the common look."""
    text = " ".join(middle_cut(word, MOST_OF_WORD) for word in title.split(" "))
    words = alt.TitleParams(text=balanced(text, TITLE_WIDTH), subtitle=packed(subtitle, SUBTITLE_WIDTH))
    chart.title, chart.description, chart.config = words, description, alt.Config(**LOOK)
    if table is not None:
        chart.data = inline(table)
    return chart


def balanced(text: str, width: int) -> list[str]:
    """Text in as few lines of at most `width` characters as it needs, of about equal length; long words stay whole.

    >>> balanced("four words and more", 16), balanced("a dominates somebody", 14)
    (['four words', 'and more'], ['a dominates', 'somebody'])
    """
    text = text.replace(" %", "\N{NO-BREAK SPACE}%")
    wrapped = partial(textwrap.wrap, text, break_on_hyphens=False)
    lines, longest = len(wrapped(width)), max(map(len, text.split()), default=1)
    return next(wrapped(less) for less in range(min(longest, width), width + 1) if len(wrapped(less)) <= lines)


def packed(facts: Sequence[str], width: int) -> list[str]:
    """Facts in lines of at most `width` characters, several to a line where they fit, none broken without need.

    >>> packed(["n = 3", "two words", "a longer fact"], 18)
    ['n = 3 · two words', 'a longer fact']
    """
    lines: list[str] = []
    for fact in facts:
        if lines and len(lines[-1]) + len(fact) + 3 <= width:
            lines[-1] += f" · {fact}"
        else:
            lines += balanced(fact, width)
    return lines


LOOK: dict[str, Any] = {
    "background": "white",
    # Of about one set of widths, so that text fits: plain DejaVu Sans is a tenth wider than Arial.
    "font": "Arial, 'Helvetica Neue', 'Liberation Sans', Arimo, 'DejaVu Sans Condensed', sans-serif",
    "padding": 10,
    "view": {"stroke": None},
    "title": {"anchor": "start", "frame": "bounds", "offset": 12, "color": INK}
    | {"fontSize": 16, "fontWeight": 600, "lineHeight": 20}
    | {"subtitleFontSize": 12, "subtitleColor": QUIET, "subtitleLineHeight": 16, "subtitlePadding": 5},
    "axis": {"labelFontSize": 12, "labelColor": INK, "labelLimit": 240, "gridColor": GRID}
    | {"titleFontSize": 13, "titleFontWeight": 500, "titleColor": INK, "titlePadding": 9}
    | {"domainColor": "#888888", "tickColor": "#888888"},
    "legend": {"labelFontSize": 12, "labelColor": INK, "labelLimit": 280}
    | {"titleFontSize": 12, "symbolSize": 700, "rowPadding": -8},
    "header": {"labelFontSize": 12, "titleFontSize": 13},
}
"""The common look of all figures, as Vega-Lite's configuration."""

HOVER = "hover"
"""Name of the layer and of its selection."""


def hover_layer(rows: pl.DataFrame, x: str, y: str) -> Any:
    """Points that show themselves and a tooltip under the pointer; it lists all columns but `x` and `y`.

    The points are large enough to cover the line between them. A selection of the nearest point would
    reach further, but in Vega-Lite 6 its tooltips read "undefined" (vega/vega-lite, pull request 9707).
    """
    under = alt.selection_point(name=HOVER, on="pointerover", empty=False, clear="pointerout")
    titles = [column for column in rows.columns if column not in (x, y)]
    fields = {title: f"hover_{place}" for place, title in enumerate(titles)}
    return (
        Plot(inline(rows.rename(fields)), name=f"{HOVER}_points")
        .mark_point(filled=True, size=150, color="black", stroke="white", strokeWidth=2, clip=True)
        .encode(
            x=alt.X(x, type="quantitative"),
            y=alt.Y(y, type="quantitative"),
            opacity=alt.OpacityValue(0, condition={"param": HOVER, "value": 1, "empty": False}),
            tooltip=[alt.Tooltip(fields[title], type="nominal", title=_tooltip_title(title)) for title in titles],
        )
        .add_params(under)
    )


def _tooltip_title(name: str) -> str:
    """A name as Vega-Lite writes it into an expression, where it escapes quotes but neither backslashes nor breaks."""
    return " ".join(name.split()).replace("\\", "\\\\")


def spec_of(chart: Any) -> dict[str, Any]:
    """The Vega-Lite spec of a chart, in which every text can be shown."""
    with unchecked():
        spec: dict[str, Any] = chart_safe(chart.to_dict(validate=False))
    return spec


def without_hover(spec: dict[str, Any]) -> dict[str, Any]:
    """The spec without its tooltip layers, for formats that cannot react."""
    groups: dict[str, Any] = {name: spec[name] for name in ("params", "layer", "vconcat", "hconcat") if name in spec}
    left = {
        name: [without_hover(part) for part in parts if not str(part.get("name", "")).startswith(HOVER)]
        for name, parts in groups.items()
    }
    return {key: left.get(key, value) for key, value in spec.items() if left.get(key) or key != "params"}


LINE, LETTER = 15.0, 6.6
"""Height of a label and width of a character in pixels."""

_narrowing: ContextVar[tuple[float, float]] = ContextVar("narrowing", default=(1.0, 1.0))


@contextmanager
def drawn_in(width: float) -> Iterator[None]:
    """A block in which labels are placed for plots of this width instead of the usual one; letters keep their size."""
    share = min(1.0, width / WIDTH)
    before = _narrowing.set((share, math.sqrt(share)))
    try:
        yield
    finally:
        _narrowing.reset(before)


def plot_size() -> tuple[float, float]:
    """Pixels of the plot that labels are placed in."""
    across, down = _narrowing.get()
    return WIDTH * across, HEIGHT * down


def placed_labels(
    marks: pl.DataFrame,
    domain: tuple[float, float],
    *,
    shift: tuple[float, float] = (26.0, 26.0),
    align: Literal["left", "center"] = "left",
) -> list[Any]:
    """Points `x`, `y` with their `text` above and to the right, joined by a thin line; none where there are no points.

    `domain` is that of the y axis; the x axis is taken to run from 0 to 1. `shift` is by how many pixels labels stand
    right of their points and above.
    """
    if marks.is_empty():
        return []
    width, height = plot_size()
    scale = height / (domain[1] - domain[0])
    spots = _spread([(x * width, (y - domain[0]) * scale, len(text)) for x, y, text in marks.iter_rows()], shift)
    rows = marks.with_columns(
        label_x=pl.Series([across / width for across, _ in spots]),
        label_y=pl.Series([domain[0] + up / scale for _, up in spots]),
    )
    base = Plot(inline(rows))
    label = base.encode(x=alt.X("label_x:Q"), y=alt.Y("label_y:Q"), text=alt.Text("text:N"))
    dot: dict[str, Any] = {"size": 90, "shape": "diamond", "fill": "white", "stroke": "black", "strokeWidth": 1.8}
    beside: dict[str, Any] = {"baseline": "middle", "dx": 3} if align == "left" else {"baseline": "bottom", "dx": 0}
    return [
        base.mark_rule(color="#444444", strokeWidth=0.8).encode(
            x=alt.X("x:Q"), y=alt.Y("y:Q"), x2=alt.X2("label_x:Q"), y2=alt.Y2("label_y:Q")
        ),
        *rimmed_text(label, 3, "#111111", align=align, **beside, fontSize=12, fontWeight=600),
        base.mark_point(**dot, filled=True, opacity=1).encode(x=alt.X("x:Q"), y=alt.Y("y:Q")),
    ]


def rimmed_text(base: Any, rim: float, colour: str, **look: Any) -> list[Any]:
    """Text with a white rim so many pixels wide, legible over whatever runs beneath it."""
    return [
        base.mark_text(**look, stroke="white", strokeWidth=rim, strokeJoin="round"),
        base.mark_text(**look, color=colour),
    ]


def _spread(points: list[tuple[float, float, int]], shift: tuple[float, float]) -> list[tuple[float, float]]:
    """Label spots from the rightmost point on, each lifted until it is clear of those already placed."""
    spots: dict[int, tuple[float, float, float]] = {}
    for place in sorted(range(len(points)), key=lambda place: -points[place][0]):
        x, y, characters = points[place]
        width = characters * LETTER
        left, up = max(0.0, min(x + shift[0], plot_size()[0] - width)), y + shift[1]
        while any(
            abs(up - other_up) < LINE and left <= other_left + other_width and other_left <= left + width
            for other_left, other_up, other_width in spots.values()
        ):
            up += 2.0
        spots[place] = (left, up, width)
    return [spots[place][:2] for place in range(len(points))]


Corner = Literal["top-right", "top-left", "bottom-right", "bottom-left", "top", "right"]


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

GREY = LineStyle("#c2c2c2", 0.9, (1, 0))
"""Systems beside a few in colour."""

REFERENCES = (LineStyle("#777777", 1.0, (1, 0)), LineStyle("#777777", 1.0, (3, 3)))
"""A random and a perfect ranking of the baseline's answers."""


def style_of(place: int) -> LineStyle:
    """Style of the line at a place in the order of systems; from the ninth on the styles return as thin lines."""
    if place == 0:
        return BASELINE
    turn, style = divmod(place - 1, len(OTHERS))
    return replace(OTHERS[style], width=round(OTHERS[style].width / (1 + turn), 2))


def reference_names(baseline: str) -> tuple[str, str]:
    """What the two lines are called that show how far a ranking could make or mar the baseline."""
    name = middle_cut(baseline, 18)
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
    legend = legend_in(corner, shorten(names) if labels is None else labels) if len(domain) > 1 else None
    return style_channels(dict(zip(domain, styles, strict=True)), field, legend)


def style_channels(
    styles: Mapping[str, LineStyle], field: str, legend: Any, kind: Literal["ordinal", "nominal"] = "ordinal"
) -> tuple[Any, ...]:
    """Colour, dash and width of lines in styles by name, with one legend for all three."""
    ranges: tuple[tuple[Any, list[Any]], ...] = (
        (alt.Color, [style.colour for style in styles.values()]),
        (alt.StrokeDash, [list(style.dash) for style in styles.values()]),
        (alt.StrokeWidth, [style.width for style in styles.values()]),
    )
    scales = [(channel, alt.Scale(type="ordinal", domain=list(styles), range=span)) for channel, span in ranges]
    return tuple(channel(field, type=kind, sort=None, scale=scale, legend=legend) for channel, scale in scales)


def lines_of_many(coloured: Sequence[str], others: int, axes: Sequence[Any], corner: Corner, order: Any) -> list[Any]:
    """Lines of many systems: some in colour, the others grey beneath them, with one legend."""
    styles = {**{name: style_of(place) for place, name in enumerate(coloured)}, f"{others} others": GREY}
    channels = style_channels(styles, "system", legend_in(corner, shorten(coloured, 28)))
    of_coloured: Any = {"field": "system", "oneOf": list(coloured)}
    of_others: Any = {"not": of_coloured}
    grey = Plot().transform_filter(of_others).mark_line(color=GREY.colour, strokeWidth=GREY.width, clip=True)
    lines = Plot().transform_filter(of_coloured).mark_line(clip=True)
    return [
        grey.encode(*axes, detail=alt.Detail("system:N"), order=order),
        lines.encode(*axes, *channels, order=order),
    ]


def legend_in(corner: Corner, labels: Mapping[str, str] | None = None) -> alt.Legend:
    """A legend in the corner that the curves leave free, above the plot or beside it; `labels` stand for long names."""
    relabel = rename_expression(labels or {})
    expression: dict[str, Any] = {} if relabel == "datum.label" else {"labelExpr": relabel}
    return alt.Legend(
        title=None,
        orient=corner,
        symbolType="stroke",
        fillColor="white",
        strokeColor="#dddddd",
        padding=7,
        cornerRadius=3,
        offset=6,
        **expression,
    )


Span = tuple[float, float]

ROW, FRAME = 21, 26
"""Pixels of a row of the legend, and of its frame with the distance from the edge."""

CORNERS: tuple[Corner, ...] = ("top-right", "top-left", "bottom-right", "bottom-left")

MOST_OF_PLOT = 0.6
"""Share of the height of a plot above which a legend stands beside it."""

DASH, CLEAR = 48, 10
"""Pixels of the line in a row of the legend with the space around it, and between the legend and what is drawn."""


def legend_corner(x: Array, low: Array, high: Array, domain: Span, *, rows: int) -> tuple[Corner, Span]:
    """A corner for a legend of so many rows, and the domain of y with room for it; one too high stands beside the plot.

    `x` are places of the lines from 0 (left) to 1 (right), `low` and `high` the ends of their bands there.

    >>> x = np.array([0.0, 0.3, 0.8, 1.0])
    >>> legend_corner(x, np.array([8.0, 7.0, 2.0, 1.0]), np.array([9.0, 8.0, 3.0, 2.0]), (0.0, 10.0), rows=2)
    ('top-right', (0.0, 10.0))
    """
    if rows < 2:
        return CORNERS[0], domain
    if (FRAME + ROW * rows) / HEIGHT > MOST_OF_PLOT:
        return "right", domain
    gaps = {corner: _gap(corner, x, low, high, domain) for corner in CORNERS}
    corner = max(CORNERS, key=lambda one: gaps[one])
    share = (FRAME + ROW * rows) / HEIGHT if _narrowing.get() == (1.0, 1.0) else 0.0  # the legend is below
    bottom, top = domain
    more = max(0.0, (share * (top - bottom) - gaps[corner]) / (1 - share))
    return corner, (bottom, top + more) if corner.startswith("top") else (bottom - more, top)


def _gap(corner: Corner, x: Array, low: Array, high: Array, domain: Span) -> float:
    """Height that lies free in a corner, as wide as a legend of long names is."""
    beside = (x >= 0.42) if corner.endswith("right") else (x <= 0.58)
    ends = (high if corner.startswith("top") else low)[beside]
    known = ends[np.isfinite(ends)]
    if not known.size:
        return domain[1] - domain[0]
    return float(domain[1] - known.max() if corner.startswith("top") else known.min() - domain[0])


def free_corner(
    lines: Sequence[tuple[Array, Array]], names: Sequence[str], preferred: Corner, size: tuple[float, float]
) -> Corner:
    """The corner in which no line runs under a legend of these names, or beside the plot where there is none.

    `lines` have their places across and up, from 0 to 1; `size` is that of the plot in pixels.

    >>> falling = np.array([0.0, 1.0]), np.array([1.0, 0.0])
    >>> free_corner([falling], ["a", "b"], "top-left", (400, 400))
    'top-right'
    >>> free_corner([falling, (np.array([0.0, 1.0]), np.array([0.0, 1.0]))], ["a", "b"], "top-right", (400, 400))
    'right'
    """
    longest = max(map(len, shorten(names).values()))
    wide = (FRAME + DASH + LETTER * longest + CLEAR) / size[0]
    high = (FRAME + ROW * len(names) + CLEAR) / size[1]
    finely = [np.linspace(0, len(x) - 1, 8 * len(x)) for x, _ in lines]
    across, up = (
        np.concatenate(
            [np.interp(at, np.arange(len(at) // 8), line[axis]) for at, line in zip(finely, lines, strict=True)]
        )
        for axis in (0, 1)
    )
    for corner in (preferred, *CORNERS):
        beside = across >= 1 - wide if corner.endswith("right") else across <= wide
        within = up >= 1 - high if corner.startswith("top") else up <= high
        if not (beside & within).any():
            return corner
    return "right"


FILLS = {"in-sample": "#ffffff", "leave-one-out": "#7fb2d6", "nested": "#1a1a1a"}
"""Kinds of validation from the most hopeful to the most honest: the lighter, the less to be trusted."""

SHAPES = {"in-sample": "square", "leave-one-out": "circle", "nested": "diamond"}


def validations(table: pl.DataFrame) -> list[str]:
    """The kinds of validation in a table, the most hopeful first; others than the known ones are refused."""
    kinds = table["validation"].unique(maintain_order=True).to_list()
    for kind in kinds:
        if kind not in FILLS:
            known = ", ".join(f'"{one}"' for one in FILLS)
            raise UsageError(f'validation is one of {known}; got "{kind}"')
    return [kind for kind in FILLS if kind in kinds]


def most_honest(kinds: Sequence[str]) -> str:
    """The kind of validation that a title speaks of."""
    return kinds[-1]


def name_axis(field: str, names: Sequence[str], *, characters: int, **more: Any) -> Any:
    """A row for each name, long names cut in the middle."""
    return alt.Y(
        f"{field}:N",
        title=None,
        scale=alt.Scale(domain=list(names)),
        axis=alt.Axis(
            ticks=False,
            domain=False,
            labelPadding=8,
            labelLimit=340,
            labelExpr=labels_that_fit(names, characters),
            **{"grid": True, **more},
        ),
    )


def labels_that_fit(names: Sequence[str], characters: int) -> str:
    """An expression of Vega that cuts names to so many characters, fewer in narrow figures, no two of them alike."""
    return rename_expression(shorten(names, max(16, int(characters * _narrowing.get()[0]))))


def number_axis(field: str, title: str, domain: Span, *, channel: type[Any] = alt.X, **more: Any) -> Any:
    """An axis of plain numbers from end to end of a domain, the horizontal one unless another channel is given."""
    return channel(
        f"{field}:Q",
        title=title,
        scale=alt.Scale(domain=list(domain), nice=False, zero=False),
        axis=alt.Axis(**{"format": ".3~g", "tickCount": 6, **more}),
    )


def either(channel: type[Any], test: str, yes: Any, no: Any) -> Any:
    """A channel with one value where an expression of Vega holds, and with another where it does not."""
    return channel(no, condition={"test": test, "value": yes})


def upright(place: float, **look: Any) -> Any:
    """A line from top to bottom at one place of the horizontal axis."""
    return Plot(alt.InlineData(values=[{"at": place}])).mark_rule(**look).encode(x=alt.X("at:Q"))


def capital(text: str) -> str:
    """The text with its first letter large.

    >>> capital("gain"), capital("")
    ('Gain', '')
    """
    return text[:1].upper() + text[1:]


def tidy(rows: pl.DataFrame, kinds: dict[str, Any], numbers: Sequence[str]) -> pl.DataFrame:
    """The columns that a figure draws, numbers as floats, with NaN for what is not there."""
    wanted = [*kinds, *numbers]
    lacking = [name for name in wanted if name not in rows.columns]
    if lacking:
        raise UsageError(f'the figure needs a column "{lacking[0]}"; there are: {", ".join(rows.columns)}')
    if rows.is_empty():
        raise UsageError("a figure needs at least one row; got none")
    return rows.select(
        *(pl.col(name).cast(kind) for name, kind in kinds.items()),
        *(pl.col(name).cast(pl.Float64).fill_null(math.nan) for name in numbers),
    )


def refuse_repeats(table: pl.DataFrame, *columns: str) -> None:
    """Refuse two rows about the same thing."""
    twice = table.filter(pl.struct(columns).is_duplicated())
    if twice.height:
        raise UsageError(f'"{" / ".join(map(str, twice.select(columns).row(0)))}" is there twice; one row each')


def check_better(table: pl.DataFrame) -> None:
    """Refuse a direction that is none."""
    other = table.filter(~pl.col("better").is_in(["lower", "higher"]))
    if other.height:
        raise UsageError(f'better is "lower" or "higher"; got "{other["better"][0]}"')


def extent(table: pl.DataFrame, columns: Sequence[str], *, air: float = 0.0) -> Span:
    """Least and greatest number of some columns, with air around; 0 to 1 where there are none."""
    return padded(table.select(columns).to_numpy(), air=air)


def padded(values: Array, *, air: float) -> Span:
    """Least and greatest of the values that are finite, with air around; 0 to 1 where there are none."""
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    room = air * (high - low) or (0.0 if high > low else 0.5 * abs(high) or 0.5)
    return low - room, high + room


def in_percent(rows: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """The rows with those for which the column `percent` holds, if there is one, in percent and named so."""
    if "percent" not in rows.columns:
        return rows
    rate = pl.col("percent").fill_null(value=False)
    return rows.with_columns(
        pl.when(rate).then(pl.col("measure") + ", %").otherwise("measure").alias("measure"),
        *(pl.when(rate).then(100 * pl.col(name)).otherwise(name).alias(name) for name in columns),
    )


def interval_words(table: pl.DataFrame, mark: str, level: float) -> list[str]:
    """What the intervals in a figure are, or that there are none."""
    return [f"{mark}: {percent(level)} intervals"] if table["low"].is_finite().any() else ["no intervals"]


def rename_expression(labels: Mapping[str, str]) -> str:
    """An expression of Vega that gives each name its label."""
    changed = {json.dumps(name): json.dumps(label) for name, label in labels.items() if name != label}
    return "".join(f"datum.label === {name} ? {label} : " for name, label in changed.items()) + "datum.label"
