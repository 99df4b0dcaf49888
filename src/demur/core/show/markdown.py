"""Text, tables and lists in Markdown: nothing from the data is taken for markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from demur.core.show.safe import visible

_MARKS = re.compile(r"[\\`*\[\]|~#]|(?<!\w)_|_(?!\w)|\A[-+](?=\s|\Z)")
"""What Markdown reads as markup: anywhere, at the edge of a word, or as the beginning of a list."""

_LIST_NUMBER = re.compile(r"\A(\d+)([.)])(?=\s|\Z)")


def plain_mark(text: str) -> str:
    r"""Text that Markdown shows as it stands.

    >>> plain_mark("a_b <b>*x*</b> | y")
    'a_b &lt;b&gt;\\*x\\*&lt;/b&gt; \\| y'
    """
    safe = _one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _LIST_NUMBER.sub(r"\1\\\2", _MARKS.sub(lambda match: f"\\{match[0]}", safe))


def paragraph(sentences: Iterable[str]) -> str:
    """Sentences as one paragraph."""
    return plain_mark(" ".join(sentences))


def bullets(sentences: Iterable[str]) -> str:
    """Sentences as a list."""
    return "\n".join(f"- {plain_mark(sentence)}" for sentence in sentences)


def warning_mark(text: str) -> str:
    """A warning, set apart."""
    return f"> **Warning:** {plain_mark(text)}"


def code_mark(text: str) -> str:
    """Text in a fixed-width font, such as a signature."""
    return f"`{_one_line(text).replace('`', chr(39))}`"


def table_mark(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    numeric: Sequence[bool],
    most_rows: int | None = None,
) -> str:
    """A table under its title, numbers to the right; of more rows than are wanted the first, and how many are left."""
    shown = rows[:most_rows]
    sides = ["---:" if one else "---" for one in numeric]
    cells = [[plain_mark(cell) for cell in row] for row in (columns, *shown)]
    lines = [f"| {' | '.join(row)} |" for row in (cells[0], sides, *cells[1:])]
    more = ["", f"… and {len(rows) - len(shown):,} more rows."] if len(shown) < len(rows) else []
    return "\n".join([f"### {plain_mark(title)}", "", *lines, *more])


def _one_line(text: str) -> str:
    return visible(" ".join(text.splitlines()))
