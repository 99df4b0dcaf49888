"""Pieces of HTML that need no extra: sentences, tables, and the view of a result in a notebook with its picture."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from importlib import import_module
from typing import Any

import polars as pl

from demur.core.show.numbers import LONG_NAME
from demur.core.show.presentation import NAMES, Presentation, ResultTable, chart_function
from demur.core.show.results import register, threshold_text
from demur.core.show.safe import visible
from demur.core.stats.smoothing import Smooth
from demur.errors import UsageError

MOST_ROWS, THINNED_ROWS = 250, 200
"""Rows of data up to which all are shown under a figure, and to how many more of them are thinned."""

NOTEBOOK_ROWS = 12

_NARROWEST, _WIDEST = 16, 60
"""Characters that a column of texts is taken to hold, at least and at most."""

_NUMBERS = 0.14
"""Share of the width of a table of texts that a column of numbers has at least, so that its heading fits."""

SETTING = "DEMUR_NOTEBOOK"
"""Environment variable: "static" shows pictures only (about 50 kB a result), "text" no figures at all."""

MOST_SVG = 120_000
"""Bytes up to which a picture is kept as SVG; one of very many marks is smaller as PNG."""

LONGEST_NUMBERS = 44
"""Characters up to which a cell in a column of numbers is numbers, and not the reason why there are none."""

_BREAKS = re.compile(r" (?=\(|at |for )")
"""Where a cell of numbers may break: before an interval, and before the share at which a rate is read."""

FRAME_HEIGHT, ROW_HEIGHT = 850, 30
"""Pixels of the frame without the rows of its table, and of each row; a frame cannot ask for its height itself."""


def escape_text(text: str) -> str:
    """Text as HTML: escaped, control characters made visible, no line break between a number and its percent sign."""
    return escape(visible(text)).replace(" %", "&nbsp;%")


def paragraphs(sentences: Sequence[str]) -> str:
    """Sentences as paragraphs."""
    return "".join(f"<p>{escape_text(sentence)}</p>" for sentence in sentences)


def table_html(table: ResultTable) -> str:
    """A table of text with its title as caption; the first column names the rows, numbers are to the right."""
    written: list[Callable[[str], str]] = [
        number_cell if one else _name_cell if column in NAMES else _text_cell
        for column, one in zip(table.columns[1:], table.numeric[1:], strict=True)
    ]
    row_head = _name_cell if table.columns[0] in NAMES else _text_cell
    ends = _RANK if table.columns[0] == "rank" else _ROW_HEAD
    body = "".join(
        f"<tr>{row_head(row[0], ends)}{''.join(write(cell) for write, cell in zip(written, row[1:], strict=True))}</tr>"
        for row in table.rows
    )
    return _scrolling(table, body)


_CELL, _ROW_HEAD, _RANK = ("<td", "</td>"), ('<th scope="row"', "</th>"), ('<th scope="row" class="rank"', "</th>")
"""How a cell starts and ends."""


def _text_cell(text: str, ends: tuple[str, str] = _CELL) -> str:
    return f"{ends[0]}>{escape_text(text)}{ends[1]}"


def _name_cell(name: str, ends: tuple[str, str] = _CELL) -> str:
    """A cell with the name of a system: a long one breaks after underscores or anywhere, so that numbers keep room."""
    if len(name) <= LONG_NAME:
        return _text_cell(name, ends)
    return f'{ends[0]} class="long">{escape_text(name).replace("_", "_<wbr>")}{ends[1]}'


def number_cell(text: str) -> str:
    """A cell of a column of numbers: it breaks only before what goes with the first of them, a reason where it must."""
    if len(text) > LONGEST_NUMBERS:
        return f'<td class="n reason">{escape_text(text)}</td>'
    return f'<td class="n">{_BREAKS.sub(" <wbr>", escape_text(text))}</td>'


def text_table(table: ResultTable) -> str:
    """A table of what people wrote: each cell stands apart, whichever way it is written, and breaks anywhere.

    Cells break after the underscores that join words in labels, before they break within a word. Columns are as wide
    as their longest cells, within bounds.
    """
    starts = ['<td class="n">' if one else "<td>" for one in table.numeric]
    cells = (
        "".join(
            f"{start}<bdi>{escape_text(cell).replace('_', '_<wbr>')}</bdi></td>"
            for start, cell in zip(starts, row, strict=True)
        )
        for row in table.rows
    )
    longest = [max(map(len, column)) for column in zip(table.columns, *table.rows, strict=True)]
    bounded = [min(max(length + 1, _NARROWEST), _WIDEST) for length in longest]
    least = [_NUMBERS if one else 0 for one in table.numeric]
    shares = [max(length / sum(bounded), share) for length, share in zip(bounded, least, strict=True)]
    widths = "".join(f'<col style="width: {100 * share / sum(shares):.0f}%">' for share in shares)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return _scrolling(table, body, kind=' class="texts"', columns=f"<colgroup>{widths}</colgroup>")


def _scrolling(table: ResultTable, body: str, *, kind: str = "", columns: str = "") -> str:
    """A table that scrolls by itself where it is wide, also with the keyboard."""
    head = "".join(
        f'<th scope="col"{" class=n" if one else ""}>{escape_text(column)}</th>'
        for column, one in zip(table.columns, table.numeric, strict=True)
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(visible(table.title))}">'
        f"<table{kind}><caption>{escape_text(table.title)}</caption>{columns}"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def figures_html(figures: Sequence[tuple[str, str]]) -> str:
    """A few numbers, large, each with what it is; nothing of none."""
    parts = "".join(
        f"<div><dd>{escape_text(number)}</dd><dt>{escape_text(what)}</dt></div>" for number, what in figures
    )
    return f'<dl class="figures">{parts}</dl>' if figures else ""


def data_table(frame: pl.DataFrame, title: str) -> str:
    """A frame to be unfolded: all of it up to 250 rows, otherwise 200 of them; nothing of a frame without columns."""
    if not frame.width:
        return ""
    if frame.height <= MOST_ROWS:
        shown, extent = frame, f"{frame.height:,} rows"
    else:
        shown = evenly(frame, THINNED_ROWS)
        extent = f"{shown.height} of {frame.height:,} rows, evenly spaced"
    return f"<details><summary>{escape(title)} ({extent})</summary>{table_html(frame_table(shown, title))}</details>"


def frame_table(frame: pl.DataFrame, title: str) -> ResultTable:
    """A frame as a table of text."""
    rows = tuple(tuple(map(_cell, row, frame.columns)) for row in frame.iter_rows())
    return ResultTable(title, tuple(frame.columns), rows)


def data_block(content: Mapping[str, Any], ident: str) -> str:
    """Plain values for a script to read, in JSON that cannot end the element it stands in."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    safe = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return f'<script type="application/json" id="{escape(ident)}">{safe}</script>'


def notebook(presentation: Presentation, figure: str = "") -> str:
    """A result in a notebook: what it shows in sentences, its figure, then its tables, long ones cut."""
    tables = "".join(table_html(_cut(table)) for table in presentation.tables)
    return f"<div>{paragraphs(presentation.sentences)}{figure}{tables}</div>"


def curve_points(result: Any, shorten: Callable[[pl.DataFrame], pl.DataFrame] = lambda frame: frame) -> str:
    """The table of a curve in a notebook: a few of its points, their numbers shortened."""
    frame = shorten(evenly(result.frame(), NOTEBOOK_ROWS))
    return table_html(frame_table(frame, f"{result.name}: {frame.height} points of the curve"))


def evenly(frame: pl.DataFrame, rows: int) -> pl.DataFrame:
    """At most `rows` rows, evenly spaced, the first and the last among them."""
    if frame.height <= rows:
        return frame
    places = (pl.int_range(rows, eager=True) * (frame.height - 1) / (rows - 1)).round().cast(pl.UInt32)
    return frame[places]


def _cut(table: ResultTable) -> ResultTable:
    if len(table.rows) <= 3 * NOTEBOOK_ROWS:
        return table
    left = len(table.rows) - NOTEBOOK_ROWS
    more = (f"… {left:,} more rows", *("" for _ in table.columns[1:]))
    return ResultTable(table.title, table.columns, (*table.rows[:NOTEBOOK_ROWS], more))


def _cell(value: object, column: str) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if not isinstance(value, float):
        return str(value)
    return threshold_text(value) if column == "threshold" else f"{value:.6g}"


def presented(of: Callable[[Any], Presentation]) -> Callable[[Any], str]:
    """How a result shows itself: its sentences, its picture, its tables."""
    return lambda result: notebook(of(result), figure(None, result.chart))


def pictured(text: Callable[[Any], str]) -> Callable[[Any], str]:
    """How a result with HTML of its own shows itself: that, and its picture at the end."""
    return lambda result: f"<div>{text(result)}{figure(None, result.chart)}</div>"


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
    """A chart as an image inside the page."""
    rendering = import_module("demur.core.show.pictures")
    spec = rendering.spec_of(chart)
    about, svg = str(spec.get("description", "")), rendering.svg_of(spec)
    fits = len(svg.encode()) <= MOST_SVG
    return str(rendering.embedded(svg if fits else rendering.png(chart, scale=1.5), about))


def drawn(
    name: str,
    of: Callable[[Any], Any] = lambda result: result,
    settings: Callable[[Any], dict[str, Any]] = lambda _: {},
) -> Callable[..., Any]:
    """A chart function found when it is first needed; `settings` gives the options that the result itself knows."""

    def draw(result: Any, **options: Any) -> Any:
        return chart_function(name)(of(result), **{**settings(result), **options})

    return draw


register(Smooth, chart=drawn("core.show.smooth_chart.smooth_chart", lambda one: [one]), page=pictured(curve_points))
