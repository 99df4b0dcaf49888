"""A report as one self-contained page."""

from __future__ import annotations

from demur.views import explorer
from demur.views.page import Section, page
from demur.views.report import CURVE, EXAMPLES, Part, Report
from demur.views.report_answers import can_be_drawn

POINTS = 800
"""Cutoffs of each system that the explorer can stop at: about one for each pixel, however long the log is."""


def report_page(report: Report) -> str:
    """The page: verdict, contents, a section for each part; it reads offline, without scripts and on paper."""
    live = _explorer(report)
    making = report.parts[-1].shown
    return page(
        report.title,
        [_section(part, live if part.kind == CURVE else "") for part in report.parts],
        verdict=report.verdict,
        notes=making.notes,
        warnings=report.warnings,
        signatures=making.signatures,
        seed=report.story.asked.seed,
        contents=True,
        style=explorer.STYLE if live else "",
        script=explorer.explorer_script() if live else "",
    )


def _explorer(report: Report) -> str:
    answers = report.story.answers
    if answers is None or not can_be_drawn(answers.evaluations):
        return ""
    document = explorer.explorer_document(answers.evaluations, answers.comparison, points=POINTS)
    return explorer.explorer_html(document)


def _section(part: Part, fragment: str) -> Section:
    shown = part.shown
    charts = tuple(figure() for figure in shown.figures)
    texts = shown.tables if part.kind == EXAMPLES else ()
    tables = () if part.kind == EXAMPLES else shown.tables
    return Section(shown.title, shown.sentences, charts, tables, texts, fragment)
