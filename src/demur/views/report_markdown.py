"""A report in Markdown, figures told in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from demur.views.markdown import bullets, code_mark, paragraph, plain_mark, table_mark, warning_mark
from demur.views.presentation import Presentation

if TYPE_CHECKING:
    from demur.views.report import Report

MOST_ROWS = 40
"""Rows of a table that are written out."""


def report_markdown(report: Report) -> str:
    """The report: verdict, sections with tables, warnings, how it was made."""
    parts = [f"# {plain_mark(report.title)}", bullets(report.verdict)]
    parts += [warning_mark(warning) for warning in report.warnings]
    for part in report.parts:
        parts += _section(part.shown)
    making = report.parts[-1].shown
    parts += ["### Notes", bullets(making.notes)] if making.notes else []
    signatures = "\n".join(f"- {code_mark(one)}" for one in making.signatures)
    parts += ["### Signatures", signatures] if signatures else []
    return "\n\n".join(part for part in parts if part) + "\n"


def _section(shown: Presentation) -> list[str]:
    tables = [table_mark(one.title, one.columns, one.rows, most_rows=MOST_ROWS) for one in shown.tables]
    return [f"## {plain_mark(shown.title)}", paragraph(shown.sentences), *tables]
