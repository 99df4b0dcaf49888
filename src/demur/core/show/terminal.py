"""A result at the terminal: sentences, then tables that fit the room there is."""

from __future__ import annotations

from dataclasses import replace

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from demur.core.show.numbers import shortened
from demur.core.show.presentation import Presentation, ResultTable
from demur.core.show.safe import terminal_line

LEAST_CHARACTERS = 9
"""Characters of a word that is not cut any shorter to make a table fit."""

LEAST_OF_SYSTEM = 10
"""Characters of the name of a system that is not cut any shorter to have each row in one line."""


def show(presentation: Presentation, console: Console, *, tables: bool = True) -> None:
    """Print the sentences of a result, then its tables and parts."""
    for sentence in presentation.sentences:
        console.print(terminal_line(sentence), markup=False)
    for table in presentation.tables if tables else ():
        console.print()
        fitting = with_short_systems(_fitting(_in_lines(table), console.width), console.width)
        fitting = with_short_words(fitting, console.width)
        console.print(fitting.title, style="bold", markup=False)
        console.print(_rich_table(fitting, console.width))
    for part in presentation.parts:
        console.print()
        console.print(terminal_line(part.title), style="bold", markup=False)
        show(part, console, tables=tables)


def _in_lines(table: ResultTable) -> ResultTable:
    """The table with every text safe for a terminal."""
    columns, *rows = (tuple(map(terminal_line, row)) for row in (table.columns, *table.rows))
    brief = None if table.brief is None else _in_lines(table.brief)
    return replace(table, title=terminal_line(table.title), columns=columns, rows=tuple(rows), brief=brief)


def _fitting(table: ResultTable, room: int) -> ResultTable:
    """The table, or its brief form where it holds many systems or would not fit."""
    wide = sum(_line_widths(with_short_systems(table, room))) + _gaps(table) > room
    return _fitting(table.brief, room) if table.brief is not None and (table.crowded or wide) else table


def _rich_table(table: ResultTable, room: int) -> RichTable:
    shown = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for column, width, numeric in zip(table.columns, column_widths(table, room), table.numeric, strict=True):
        shown.add_column(Text(column), overflow="fold", width=width, justify="right" if numeric else "left")
    for row in table.rows:
        shown.add_row(*map(Text, row))
    return shown


def with_short_systems(table: ResultTable, room: int) -> ResultTable:
    """The table with the names of systems cut in the middle as far as rows of one line need, if that helps."""
    if "system" not in table.columns:
        return table
    place = table.columns.index("system")
    names = [row[place] for row in table.rows]
    for characters in range(max(map(len, [*names, ""])), LEAST_OF_SYSTEM - 1, -1):
        short = shortened(names, characters)
        rows = tuple((*row[:place], short[row[place]], *row[place + 1 :]) for row in table.rows)
        narrower = replace(table, rows=rows)
        if sum(_line_widths(narrower)) + _gaps(table) <= room:
            return narrower
    return table


def with_short_words(table: ResultTable, room: int) -> ResultTable:
    """The table with its longest words, which are names, cut in the middle as far as it needs to fit."""
    words = [word for cells in _cells_by_column(table) for cell in cells for word in cell.split(" ")]
    for characters in range(max(map(len, words)), LEAST_CHARACTERS, -1):
        short = shortened(words, characters)
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


def _line_widths(table: ResultTable) -> list[int]:
    """Widths at which each row is one line, though headings may break between words."""
    headings = _least_widths(replace(table, rows=()))
    if not table.rows:
        return headings
    cells = _natural_widths(replace(table, columns=tuple("" for _ in table.columns)))
    return [max(pair) for pair in zip(headings, cells, strict=True)]


def _least_widths(table: ResultTable) -> list[int]:
    """Widths of the longest words."""
    return [max(map(cell_len, [*" ".join(cells).split(), ""])) for cells in _cells_by_column(table)]


def _cells_by_column(table: ResultTable) -> list[tuple[str, ...]]:
    return list(zip(table.columns, *table.rows, strict=True))


def _gaps(table: ResultTable) -> int:
    """Cells that rich puts around and between columns."""
    return 2 * len(table.columns)
