"""Pieces of HTML that need no extra: sentences, tables, the compact view of a result in a notebook."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

import polars as pl

from demur.core.show.presentation import Presentation, ResultTable
from demur.core.show.results import threshold_text
from demur.core.show.safe import visible

MOST_ROWS, THINNED_ROWS = 250, 200
"""Rows of data up to which all are shown under a figure, and to how many more of them are thinned."""

NOTEBOOK_ROWS = 12

_NARROWEST, _WIDEST = 16, 60
"""Characters that a column of texts is taken to hold, at least and at most."""


def written(text: str) -> str:
    """Text as HTML: escaped, control characters made visible, no line break between a number and its percent sign."""
    return escape(visible(text)).replace(" %", "&nbsp;%")


def paragraphs(sentences: Sequence[str]) -> str:
    """Sentences as paragraphs."""
    return "".join(f"<p>{written(sentence)}</p>" for sentence in sentences)


def table_html(table: ResultTable) -> str:
    """A table of text with its title as caption; the first column names the rows, numbers are to the right."""
    starts = ['<td class="n">' if one else "<td>" for one in table.numeric]
    body = "".join(
        f'<tr><th scope="row">{written(row[0])}</th>'
        f"{''.join(f'{start}{written(cell)}</td>' for start, cell in zip(starts[1:], row[1:], strict=True))}</tr>"
        for row in table.rows
    )
    return _scrolling(table, body)


def text_table(table: ResultTable) -> str:
    """A table of what people wrote: each cell stands apart, whichever way it is written, and breaks anywhere.

    Cells break after the underscores that join words in labels, before they break within a word. Columns are as wide
    as their longest cells, within bounds.
    """
    starts = ['<td class="n">' if one else "<td>" for one in table.numeric]
    cells = (
        "".join(
            f"{start}<bdi>{written(cell).replace('_', '_<wbr>')}</bdi></td>"
            for start, cell in zip(starts, row, strict=True)
        )
        for row in table.rows
    )
    longest = [max(map(len, column)) for column in zip(table.columns, *table.rows, strict=True)]
    bounded = [min(max(length + 1, _NARROWEST), _WIDEST) for length in longest]
    widths = "".join(f'<col style="width: {100 * length / sum(bounded):.0f}%">' for length in bounded)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return _scrolling(table, body, kind=' class="texts"', columns=f"<colgroup>{widths}</colgroup>")


def _scrolling(table: ResultTable, body: str, *, kind: str = "", columns: str = "") -> str:
    """A table that scrolls by itself where it is wide, also with the keyboard."""
    head = "".join(
        f'<th scope="col"{" class=n" if one else ""}>{written(column)}</th>'
        for column, one in zip(table.columns, table.numeric, strict=True)
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(visible(table.title))}">'
        f"<table{kind}><caption>{written(table.title)}</caption>{columns}"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def figures_html(figures: Sequence[tuple[str, str]]) -> str:
    """A few numbers, large, each with what it is; nothing of none."""
    parts = "".join(f"<div><dd>{written(number)}</dd><dt>{written(what)}</dt></div>" for number, what in figures)
    return f'<dl class="figures">{parts}</dl>' if figures else ""


def data_table(frame: pl.DataFrame, title: str) -> str:
    """A frame to be unfolded: all of it up to 250 rows, otherwise 200 of them."""
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
