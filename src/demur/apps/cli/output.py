"""Delivering a result: terminal, JSON on standard output, and files in the format of their extension."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from demur.apps.cli.gates import check_syntax, failures
from demur.apps.cli.options import OutputOptions
from demur.errors import UsageError
from demur.show import plain

if TYPE_CHECKING:
    from demur.views.presentation import Presentation, Table

FORMATS = (".html", ".svg", ".png", ".pdf", ".json", ".csv", ".md", ".parquet")

LEAST_LETTERS = 9
"""Letters of a word that is not cut any shorter to make a table fit."""

UNBOUNDED = 10_000
"""Width of tables that go into a file or a pipe, where nothing sets one."""


def check(options: OutputOptions) -> None:
    """Refuse what cannot be delivered, before any work is done."""
    for path in options.output:
        if path.suffix.lower() not in FORMATS:
            raise UsageError(f'-o {path}: the extension must be one of {" ".join(FORMATS)}; got "{path.suffix}"')
        if path.is_dir():
            raise UsageError(f"-o {path}: this is a directory; name a file in it")
    check_syntax(options.fail_if)


def deliver(presentation: Presentation, options: OutputOptions) -> None:
    """Write the files, show the result, and exit with 1 if a gate does not hold."""
    broken = failures(options.fail_if, presentation.document)
    write_all(presentation, options.output)
    if options.json:
        typer.echo(as_json({**presentation.document, **_told(presentation)}))
    else:
        _show(presentation, options)
    for failure in broken:
        typer.echo(f"gate: {failure}", err=True)
    if broken:
        raise typer.Exit(1)


def write_all(presentation: Presentation, paths: list[Path]) -> None:
    """Write the result in the format of each path's extension: everything is rendered before anything is written."""
    from demur.data.output import write_whole

    contents = [(path, rendered(presentation, path.suffix.lower())) for path in paths]
    for path, content in contents:
        write_whole(path, content)


def as_json(document: dict[str, Any]) -> str:
    """The document as strict JSON: no NaN, no Infinity."""
    return json.dumps(plain(document), ensure_ascii=False, indent=2, allow_nan=False)


def rendered(presentation: Presentation, suffix: str) -> str | bytes:
    """The result as the content of a file with this extension."""
    from demur.views import export, page

    texts: dict[str, Callable[[], str]] = {
        ".json": lambda: as_json({**presentation.document, **_told(presentation)}) + "\n",
        ".md": presentation.markdown,
        ".html": lambda: page.presentation_page(presentation),
        ".csv": lambda: presentation.data().write_csv(),
    }
    if suffix in texts:
        return texts[suffix]()
    if suffix == ".parquet":
        buffer = BytesIO()
        presentation.data().write_parquet(buffer)
        return buffer.getvalue()
    if not presentation.figures:
        raise UsageError(f"this result has no figure for {suffix}; write it as .json, .csv, .md, .parquet or .html")
    return export.FORMATS[suffix](presentation.figures[0]())


def _told(presentation: Presentation) -> dict[str, Any]:
    return {"notes": list(presentation.notes), "warnings": list(presentation.warnings)}


def _show(presentation: Presentation, options: OutputOptions) -> None:
    from rich.console import Console

    free = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    console = Console(soft_wrap=not sys.stdout.isatty(), highlight=False, width=UNBOUNDED if free else None)
    _show_result(presentation, console, tables=not options.quiet)
    if options.quiet:
        return
    aside = Console(stderr=True, soft_wrap=not sys.stderr.isatty(), highlight=False)
    for warning in presentation.warnings:
        aside.print(f"warning: {warning}", style="yellow", markup=False)
    for note in presentation.notes:
        aside.print(f"note: {note}", style="dim", markup=False)
    for path in options.output:
        aside.print(f"wrote {path}", style="dim", markup=False)


def _show_result(presentation: Presentation, console: Any, *, tables: bool) -> None:
    for sentence in presentation.sentences:
        console.print(sentence, markup=False)
    for table in presentation.tables if tables else ():
        console.print()
        fitting = with_short_words(_fitting(table, console.width), console.width)
        console.print(fitting.title, style="bold", markup=False)
        console.print(_rich_table(fitting, console.width))
    for part in presentation.parts if tables else ():
        console.print()
        console.print(part.title, style="bold", markup=False)
        _show_result(part, console, tables=tables)


def _fitting(table: Table, room: int) -> Table:
    """The table, or its brief form where it holds many systems or would not fit."""
    if table.brief is None:
        return table
    wide = sum(_natural_widths(table)) + _gaps(table) > room
    return table.brief if table.crowded or wide else table


def _rich_table(table: Table, room: int) -> Any:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    shown = RichTable(
        title=table.title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for column, width in zip(table.columns, column_widths(table, room), strict=True):
        shown.add_column(Text(column), overflow="fold", width=width)
    for row in table.rows:
        shown.add_row(*(Text(cell) for cell in row))
    return shown


def with_short_words(table: Table, room: int) -> Table:
    """The table with its longest words, which are names, cut in the middle as far as it needs to fit."""
    from demur.views.names import shortened

    words = [word for cells in _cells_by_column(table) for cell in cells for word in cell.split(" ")]
    for letters in range(max(map(len, words)), LEAST_LETTERS, -1):
        short = shortened(words, letters)
        cut = [tuple(" ".join(short[word] for word in cell.split(" ")) for cell in row) for row in table.rows]
        heads = tuple(" ".join(short[word] for word in cell.split(" ")) for cell in table.columns)
        narrower = replace(table, columns=heads, rows=tuple(cut))
        if sum(_least_widths(narrower)) + _gaps(table) <= room:
            return narrower
    return table


def column_widths(table: Table, room: int) -> list[int] | list[None]:
    """Widths that break cells between words only; None where even the longest words do not fit side by side."""
    wanted, least = _natural_widths(table), _least_widths(table)
    spare = room - _gaps(table) - sum(least)
    if spare < 0:
        return [None] * len(wanted)
    widths = least
    while spare and widths != wanted:
        place = max(range(len(wanted)), key=lambda column: _need(column, widths, wanted))
        widths[place], spare = widths[place] + 1, spare - 1
    return widths


def _need(column: int, widths: list[int], wanted: list[int]) -> tuple[bool, bool, int]:
    """Who gets a letter more first: the column of names, then the narrowest that still breaks cells."""
    return widths[column] < wanted[column], column == 0, -widths[column]


def _natural_widths(table: Table) -> list[int]:
    from rich.cells import cell_len

    return [max(map(cell_len, cells)) for cells in _cells_by_column(table)]


def _least_widths(table: Table) -> list[int]:
    """Widths of the longest words."""
    from rich.cells import cell_len

    return [max(map(cell_len, [*" ".join(cells).split(), ""])) for cells in _cells_by_column(table)]


def _cells_by_column(table: Table) -> list[tuple[str, ...]]:
    return list(zip(table.columns, *table.rows, strict=True))


def _gaps(table: Table) -> int:
    """Cells that rich puts around and between columns."""
    return 2 * len(table.columns)
