"""Where rows of text begin and end, told from their bytes alone: in CSV a quoted cell may hold line ends."""

from __future__ import annotations

import re

MOST_HEADER_LINES = 100
"""Lines over which the names of columns may run, where quotes hold line ends."""

_QUOTED_LINE = re.compile(rb'[^\n]*"[^\n]*(?:\n|\Z)')
_OPENING = re.compile(rb'(?:\A|[,;\t])\s*"')


def line_count(text: bytes) -> int:
    r"""How many lines there are, the last with or without its end.

    >>> line_count(b"a\nb"), line_count(b"a\nb\n"), line_count(b"")
    (2, 2, 0)
    """
    return text.count(b"\n") + (bool(text) and not text.endswith(b"\n"))


def ended(line: bytes) -> bytes:
    """A line with its end."""
    return line if line.endswith(b"\n") else line + b"\n"


def open_row(text: bytes) -> int | None:
    """Where the row begins of which a cell is opened by a quote and not closed; None where every row is whole."""
    start = None
    for found in _QUOTED_LINE.finditer(text):
        odd = found[0].count(b'"') % 2 == 1
        if start is not None:
            start = None if odd else start
        elif odd and _OPENING.search(found[0]):
            start = found.start()
    return start


def first_row_end(text: bytes) -> int:
    """The end of the first row: of its line, or of the line soon after that closes its quotes."""
    first = end = text.find(b"\n") + 1 or len(text)
    for _ in range(MOST_HEADER_LINES):
        if open_row(text[:end]) is None:
            return end
        end = text.find(b"\n", end) + 1 or len(text)
    return first


def same_names(line: bytes, header: bytes) -> bool:
    """Whether a line holds names of columns: more than half of its cells stand in the header that is known."""
    cells, known = (set(re.split(rb"[,;\t]", row.strip())) for row in (line, header))
    return 2 * len(cells & known) > len(cells)
