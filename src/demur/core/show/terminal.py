"""A result at the terminal: sentences, then tables that fit the room there is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from demur.core.show.numbers import middle_cut, shorten
from demur.core.show.presentation import Presentation, ResultTable
from demur.core.show.safe import terminal_line

LEAST_CHARACTERS = 9
"""Characters of a word that is not cut any shorter to make a table fit."""

LEAST_OF_SYSTEM = 10
"""Characters of the name of a system that is not cut any shorter to have each row in one line."""

SYSTEMS = ("system", "a", "b")
"""Columns that hold names of systems."""


def show(presentation: Presentation, console: Console, *, tables: bool = True) -> None:
    """Print the sentences of a result, then its tables and parts."""
    for sentence in presentation.sentences:
        _print_text(console, terminal_line(sentence))
    for table in presentation.tables if tables else ():
        console.print()
        fitting = fit_table(table, console.width)
        _print_text(console, fitting.title, style="bold")
        console.print(_rich_table(fitting, console.width))
    for part in presentation.parts:
        console.print()
        _print_text(console, terminal_line(part.title), style="bold")
        show(part, console, tables=tables)


_TOGETHER = re.compile(r"(?<=\d) (?=%)|(?<=\bp) (?=[=<])|(?<=\bp [=<]) ")
"""Spaces at which no line breaks: inside a percentage and a p-value."""

_KEPT = "\ue000"
"""Stands for such a space while lines are broken."""


def _print_text(console: Console, text: str, style: str = "") -> None:
    """Print a text in lines as wide as the console, where it has a width, with numbers whole."""
    for line in [text] if console.soft_wrap else lines_of(text, console.width):
        console.print(line, style=style, markup=False, soft_wrap=True)


def lines_of(text: str, width: int) -> list[str]:
    """The text broken between words into lines of a width in cells; longer words are broken too.

    >>> lines_of("non-return for 5 % error", 14)
    ['non-return for', '5 % error']
    """
    wrapped = Text(_TOGETHER.sub(_KEPT, text)).wrap(Console(), width)
    return [line.plain.replace(_KEPT, " ").rstrip() for line in wrapped]


def fit_table(table: ResultTable, room: int) -> ResultTable:
    """The table in the form that fits into so many characters, with names cut as far as that needs."""
    return with_short_words(with_short_systems(_fitting(_in_lines(table), room), room), room)


def _in_lines(table: ResultTable) -> ResultTable:
    """The table with every text safe for a terminal."""
    columns, *rows = (tuple(map(terminal_line, row)) for row in (table.columns, *table.rows))
    brief = None if table.brief is None else _in_lines(table.brief)
    return replace(table, title=terminal_line(table.title), columns=columns, rows=tuple(rows), brief=brief)


def _fitting(table: ResultTable, room: int) -> ResultTable:
    """The table, or its brief form where it holds many systems or would not fit."""
    wide = width_in_lines(with_short_systems(table, room)) > room
    return _fitting(table.brief, room) if table.brief is not None and (table.crowded or wide) else table


def _rich_table(table: ResultTable, room: int) -> RichTable:
    shown = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for column, width, numeric in zip(table.columns, column_widths(table, room), table.numeric, strict=True):
        heading = column if width is None else "\n".join(lines_of(column, width))
        shown.add_column(Text(heading), overflow="fold", width=width, justify="right" if numeric else "left")
    for row in table.rows:
        shown.add_row(*map(Text, row))
    return shown


def with_short_systems(table: ResultTable, room: int) -> ResultTable:
    """The table with the names of systems cut in the middle as far as rows of one line need, if that helps."""
    places = {place for place, column in enumerate(table.columns) if column in SYSTEMS}
    names = list(dict.fromkeys(row[place] for row in table.rows for place in places))
    if not names:
        return table
    for characters in range(min(room, max(map(cell_len, names))), LEAST_OF_SYSTEM - 1, -1):
        short = _of_cells(names, characters)
        rows = tuple(tuple(short[one] if k in places else one for k, one in enumerate(row)) for row in table.rows)
        narrower = replace(table, rows=rows)
        if width_in_lines(narrower) <= room:
            return narrower
    return table


def _of_cells(names: Sequence[str], cells: int) -> dict[str, str]:
    """Short forms of names, no two of them alike, that take at most so many cells of a terminal, or about so many."""
    sizes = {name: max(cell_len(name), 1) for name in names}
    short = {
        name: name if size <= cells else middle_cut(name, max(3, cells * len(name) // size))
        for name, size in sizes.items()
    }
    return short if len(set(short.values())) == len(short) else shorten(names, cells)


def with_short_words(table: ResultTable, room: int) -> ResultTable:
    """The table with its longest words, which are names, cut in the middle as far as it needs to fit."""
    words = [word for cells in _cells_by_column(table) for cell in cells for word in cell.split(" ")]
    for characters in range(min(room, max(map(len, words))), LEAST_CHARACTERS, -1):
        short = shorten(words, characters)
        columns, *rows = (
            tuple(" ".join(short[word] for word in cell.split(" ")) for cell in row)
            for row in (table.columns, *table.rows)
        )
        narrower = replace(table, columns=columns, rows=tuple(rows))
        if sum(_least_widths(narrower)) + _gaps(table) <= room:
            return narrower
    return table


def column_widths(table: ResultTable, room: int) -> list[int] | list[None]:
    """Widths that break cells between words only; None where even the longest words do not fit side by side."""
    wanted, least, lines = _natural_widths(table), _least_widths(table), _line_widths(table)
    widths = lines if sum(lines) + _gaps(table) <= room else least
    spare = room - _gaps(table) - sum(widths)
    if spare < 0:
        return [None] * len(wanted)
    while spare and widths != wanted:
        breaking = [column for column, width in enumerate(widths) if width < wanted[column]]
        place = 0 if breaking[0] == 0 else min(breaking, key=lambda column: widths[column])  # names come first
        widths[place], spare = widths[place] + 1, spare - 1
    return widths


def _natural_widths(table: ResultTable) -> list[int]:
    return [max(map(cell_len, cells)) for cells in _cells_by_column(table)]


def width_in_lines(table: ResultTable) -> int:
    """Characters that the table takes with each row in one line."""
    return sum(_line_widths(table)) + _gaps(table)


def _line_widths(table: ResultTable) -> list[int]:
    """Widths at which each row is one line, though headings may break between words."""
    headings = _least_widths(replace(table, rows=()))
    if not table.rows:
        return headings
    cells = _natural_widths(replace(table, columns=tuple("" for _ in table.columns)))
    return [max(pair) for pair in zip(headings, cells, strict=True)]


def _least_widths(table: ResultTable) -> list[int]:
    """Widths of the longest words."""
    kept = (_TOGETHER.sub(_KEPT, " ".join(cells)) for cells in _cells_by_column(table))
    return [max(map(cell_len, [*text.split(), ""])) for text in kept]


def _cells_by_column(table: ResultTable) -> list[tuple[str, ...]]:
    return list(zip(table.columns, *table.rows, strict=True))


def _gaps(table: ResultTable) -> int:
    """Cells that rich puts around and between columns."""
    return 2 * len(table.columns)
