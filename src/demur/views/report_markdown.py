"""A report in Markdown: nothing from the data is taken for markup, and figures are told in words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from demur.views.fragments import visible
from demur.views.presentation import Presentation, Table

if TYPE_CHECKING:
    from demur.views.report import Report

MOST_ROWS = 40
"""Rows of a table that are written out."""

_MARKS = re.compile(r"[\\`*\[\]|~#]|(?<!\w)_|_(?!\w)")


def report_markdown(report: Report) -> str:
    """The report: verdict, sections with tables, warnings, how it was made."""
    parts = [f"# {plain_mark(report.title)}", _listed(report.verdict)]
    parts += [f"> **Warning:** {plain_mark(warning)}" for warning in report.warnings]
    for part in report.parts:
        parts += _section(part.shown)
    making = report.parts[-1].shown
    parts += ["### Notes", _listed(making.notes)] if making.notes else []
    parts += (
        ["### Signatures", "\n".join(f"- `{_coded(one)}`" for one in making.signatures)] if making.signatures else []
    )
    return "\n\n".join(part for part in parts if part) + "\n"


def _section(shown: Presentation) -> list[str]:
    said = " ".join(map(plain_mark, shown.sentences))
    return [f"## {plain_mark(shown.title)}", said, *(table_markdown(table) for table in shown.tables)]


def table_markdown(table: Table) -> str:
    """A table with its title; of many rows the first forty."""
    head, rule = [plain_mark(cell) for cell in table.columns], ["---"] * len(table.columns)
    rows = [[plain_mark(cell) for cell in row] for row in table.rows[:MOST_ROWS]]
    left = len(table.rows) - len(rows)
    lines = [f"| {' | '.join(cells)} |" for cells in (head, rule, *rows)]
    more = ["", f"… and {left:,} more rows."] if left else []
    return "\n".join([f"### {plain_mark(table.title)}", "", *lines, *more])


def plain_mark(text: str) -> str:
    r"""Text that Markdown shows as it stands.

    >>> plain_mark("a_b <b>*x*</b> | y")
    'a_b &lt;b&gt;\\*x\\*&lt;/b&gt; \\| y'
    """
    safe = visible(" ".join(text.splitlines())).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKS.sub(lambda found: f"\\{found[0]}", safe)


def _listed(sentences: Sequence[str]) -> str:
    return "\n".join(f"- {plain_mark(sentence)}" for sentence in sentences)


def _coded(text: str) -> str:
    return visible(" ".join(text.splitlines())).replace("`", "'")
