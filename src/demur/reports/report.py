"""A report as one page, as Markdown, as JSON, as JUnit XML, and in short for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import polars as pl

from demur.core.show.markdown import bullets, code_mark, paragraph, plain_mark, table_mark, warning_mark
from demur.core.show.page import Section, page
from demur.core.show.presentation import Presentation
from demur.core.show.results import plain
from demur.errors import UsageError
from demur.gold_standard.presentation import of_gold
from demur.nbest_lists.presentation import of_nbest, of_nbest_comparison
from demur.nbest_lists.ranks import ListRanks, of_ranks
from demur.nbest_lists.reward import of_smooths
from demur.outcome.presentation import of_fit
from demur.reports.analyses import AnswerAnalyses, ReportAnalyses
from demur.reports.sections import (
    advice_section,
    calibration_section,
    can_be_chosen,
    can_be_drawn,
    comparison_section,
    curve_section,
    example_section,
    making_section,
    outcome_sentence,
    slice_section,
    verdict,
)
from demur.returns.explorer import explorer
from demur.returns.presentation import brief_table


@dataclass(frozen=True, slots=True)
class ReportSection:
    """A section of a report: where it belongs, what it shows, and what it adds to the JSON document.

    `make` gives one presentation or several. The sections on answers join their documents; `document` says what
    another section adds. `layout` says how the page shows it: with the explorer, or with tables of texts.
    """

    name: str
    applies: Callable[[ReportAnalyses], bool]
    make: Callable[[ReportAnalyses], Sequence[Presentation]]
    document: Callable[[ReportAnalyses, Sequence[Presentation]], dict[str, Any]] | None = None
    layout: Literal["plain", "explorer", "texts"] = "plain"


def answer_section(
    name: str,
    applies: Callable[[AnswerAnalyses], Any],
    make: Callable[[AnswerAnalyses], Sequence[Presentation]],
    layout: Literal["plain", "explorer", "texts"] = "plain",
) -> ReportSection:
    """A section on answers, for reports that have some."""

    def applies_here(analyses: ReportAnalyses) -> bool:
        return analyses.answers is not None and bool(applies(analyses.answers))

    def made_of_answers(analyses: ReportAnalyses) -> Sequence[Presentation]:
        assert analyses.answers is not None
        return make(analyses.answers)

    return ReportSection(name, applies_here, made_of_answers, layout=layout)


def _rank_section(ranks: ListRanks, *, several: bool) -> Presentation:
    """Where the right label stands in the lists of one system, which is named where there are several."""
    shown = of_ranks(ranks)
    title = f"{shown.title} ({ranks.system})" if several else shown.title
    return replace(shown, title=title, document={})


def _list_section(analyses: ReportAnalyses) -> list[Presentation]:
    if analyses.list_comparison is not None:
        return [of_nbest_comparison(analyses.list_comparison)]
    assert analyses.lists is not None
    return [of_nbest(analyses.lists)]


def _without_notes(document: dict[str, Any]) -> dict[str, Any]:
    """A document of a section: notes and warnings are those of the report."""
    return {key: value for key, value in document.items() if key not in ("notes", "warnings")}


def _outcome_section(analyses: ReportAnalyses) -> list[Presentation]:
    several = len(analyses.fits) > 1
    found = []
    for system, fit in analyses.fits:
        shown = of_fit(fit)
        lead = outcome_sentence(fit)
        sentences = (f"{system}: {lead}" if several else lead, *shown.sentences)
        found.append(replace(shown, title=f"{shown.title} ({system})" if several else shown.title, sentences=sentences))
    return [*found, *([of_smooths(analyses.rewards)] if analyses.rewards is not None else [])]


def _outcome_document(analyses: ReportAnalyses, shown: Sequence[Presentation]) -> dict[str, Any]:
    names = [*(system for system, _ in analyses.fits), *(["reward"] if analyses.rewards is not None else [])]
    return {"outcome": dict(zip(names, (one.document for one in shown), strict=True))}


def _gold_section(analyses: ReportAnalyses) -> list[Presentation]:
    assert analyses.gold is not None
    shown = of_gold(analyses.gold)
    return [shown, *shown.parts]


SECTIONS = (
    answer_section("curve", lambda _: True, lambda answers: [curve_section(answers)], layout="explorer"),
    answer_section(
        "threshold", lambda answers: can_be_chosen(answers.evaluations), lambda answers: [advice_section(answers)]
    ),
    answer_section(
        "comparison",
        lambda answers: answers.comparison is not None,
        lambda answers: [comparison_section(answers.comparison)] if answers.comparison is not None else [],
    ),
    answer_section(
        "slices",
        lambda answers: answers.slices is not None,
        lambda answers: [slice_section(answers.slices)] if answers.slices is not None else [],
    ),
    answer_section(
        "calibration",
        lambda answers: answers.calibrations,
        lambda answers: [calibration_section(answers.calibrations, answers.evaluations)],
    ),
    answer_section(
        "ranks",
        lambda answers: answers.ranks,
        lambda answers: [_rank_section(one, several=len(answers.ranks) > 1) for one in answers.ranks],
    ),
    answer_section(
        "examples",
        lambda answers: example_section(answers.examples).tables,
        lambda answers: [example_section(answers.examples)],
        layout="texts",
    ),
    ReportSection(
        "nbest",
        lambda analyses: analyses.lists is not None or analyses.list_comparison is not None,
        _list_section,
        lambda _, shown: {"nbest": _without_notes(shown[0].document)},
    ),
    ReportSection(
        "outcome",
        lambda analyses: bool(analyses.fits) or analyses.rewards is not None,
        _outcome_section,
        _outcome_document,
    ),
    ReportSection(
        "gold",
        lambda analyses: analyses.gold is not None,
        _gold_section,
        lambda _, shown: {"gold": shown[0].document},
    ),
)
"""The sections of a report, in order; a section is added here, after its function."""

MOST_ROWS = 40
"""Rows of a table that are written out."""


def report_markdown(report: Report) -> str:
    """The report: verdict, sections with tables, warnings, how it was made."""
    parts = [f"# {plain_mark(report.title)}", bullets(report.verdict)]
    parts += [warning_mark(warning) for warning in report.warnings]
    for part in report.parts:
        parts += _markdown_section(part.shown)
    making = report.parts[-1].shown
    parts += ["### Notes", bullets(making.notes)] if making.notes else []
    signatures = "\n".join(f"- {code_mark(one)}" for one in making.signatures)
    parts += ["### Signatures", signatures] if signatures else []
    return "\n\n".join(part for part in parts if part) + "\n"


def _markdown_section(shown: Presentation) -> list[str]:
    tables = [table_mark(one.title, one.columns, one.rows, most_rows=MOST_ROWS) for one in shown.tables]
    return [f"## {plain_mark(shown.title)}", paragraph(shown.sentences), *tables]


MOST_FIGURES = 4
"""Figures that a section on N-best lists, outcomes or a gold standard brings along."""


@dataclass(frozen=True, slots=True, eq=False)
class ReportPart:
    """A section of a report, and how the page shows it."""

    shown: Presentation
    layout: str = "plain"


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """Analyses of tables, ready to be shown."""

    title: str
    verdict: tuple[str, ...]
    parts: tuple[ReportPart, ...]
    document: dict[str, Any]
    documents: tuple[dict[str, Any], ...]
    """What gates are asked of: answers, N-best lists, outcomes, gold standards, each by itself."""
    warnings: tuple[str, ...]
    analyses: ReportAnalyses

    def html(self) -> str:
        """The report as one page that needs nothing from outside."""

        return report_page(self)

    def markdown(self) -> str:
        """The report in Markdown, figures described in words."""
        return report_markdown(self)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values."""
        shown: dict[str, Any] = plain(self.document)
        return shown

    def summary(self) -> Presentation:
        """The verdict and one small table, for a terminal."""
        answers = self.analyses.answers
        tables = (replace(brief_table(answers.evaluations), title="Systems"),) if answers is not None else ()
        return Presentation(self.title, self.verdict, tables, (), pl.DataFrame, self.document, warnings=self.warnings)

    def save(self, path: str | Path) -> None:
        """Writes the report to a file: .html, .md or .json."""
        from demur.core.io.writing import write_whole

        write_whole(path, self.rendered(Path(path).suffix.lower()))

    def rendered(self, suffix: str) -> str:
        """The report as the content of a file with this ending."""
        forms: dict[str, Callable[[], str]] = {".html": self.html, ".md": self.markdown, ".json": self._json}
        if suffix not in forms:
            raise UsageError(f'a report is written as {", ".join(forms)}; got "{suffix}"')
        return forms[suffix]()

    def _json(self) -> str:
        import json

        return json.dumps(self.to_dict(), ensure_ascii=False, indent=2, allow_nan=False) + "\n"

    def _repr_html_(self) -> str:
        from demur.core.show.html import notebook

        return notebook(self.summary())


def report_of(analyses: ReportAnalyses, *, title: str | None = None) -> Report:
    """The report on analyses of tables."""
    made = [(one, list(one.make(analyses))) for one in SECTIONS if one.applies(analyses)]
    answered = [(one, shown) for one, shown in made if one.document is None]
    others = [(one, [_with_few_figures(part) for part in shown]) for one, shown in made if one.document is not None]
    presented = [part for _, shown in (*answered, *others) for part in shown]
    signatures = tuple(dict.fromkeys(one for part in presented for one in part.signatures))
    notes = tuple(dict.fromkeys([*(note for part in presented for note in part.notes), *analyses.mixture.notes]))
    warnings = dict.fromkeys([*analyses.mixture.warnings, *(one for part in presented for one in part.warnings)])
    warned = (*warnings, *(f"{name} left out: {why}" for name, why in analyses.omitted))
    making = making_section(analyses, notes, signatures)
    further = [part for _, shown in others for part in shown]
    answers = _answer_document(analyses, [part for _, shown in answered for part in shown])
    sentences = verdict(analyses, further)
    document = {
        "title": title or _default_title(analyses),
        "verdict": sentences,
        **answers,
        **{key: value for one, shown in others if one.document for key, value in one.document(analyses, shown).items()},
        **making.document,
        "notes": list(notes),
        "warnings": list(warned),
        "gates": [],
    }
    parts = (
        *(ReportPart(part, one.layout) for one, shown in (*answered, *others) for part in shown),
        ReportPart(making),
    )
    documents = tuple(one for one in (answers, *(part.document for part in further)) if one)
    return Report(str(document["title"]), tuple(sentences), parts, document, documents, warned, analyses)


def _default_title(analyses: ReportAnalyses) -> str:
    names = analyses.mixture.responses.systems if analyses.mixture.responses is not None else ()
    if len(names) == 1:
        return f"Report on {names[0]}"
    return f"Report on {len(names)} systems" if names else "Report"


def _answer_document(analyses: ReportAnalyses, parts: Sequence[Presentation]) -> dict[str, Any]:
    answers = analyses.answers
    if answers is None:
        return {}
    joined = {key: value for part in parts for key, value in part.document.items()}
    ranks = {"ranks": [one.to_dict() for one in answers.ranks]} if answers.ranks else {}
    return {**joined, "systems": [one.to_dict() for one in answers.evaluations], **ranks}


def _with_few_figures(part: Presentation) -> Presentation:
    return replace(part, figures=part.figures[:MOST_FIGURES], parts=())


POINTS = 800
"""Cutoffs of each system that the explorer can stop at: about one for each pixel, however long the log is."""


def report_page(report: Report) -> str:
    """The page: verdict, contents, a section for each part; it reads offline, without scripts and on paper."""
    live = _explorer(report)
    making = report.parts[-1].shown
    return page(
        report.title,
        [_html_section(part, live if part.layout == "explorer" else "") for part in report.parts],
        verdict=report.verdict,
        notes=making.notes,
        warnings=report.warnings,
        signatures=making.signatures,
        seed=report.analyses.options.seed,
        contents=True,
        style=explorer.STYLE if live else "",
        script=explorer.explorer_script() if live else "",
    )


def _explorer(report: Report) -> str:
    answers = report.analyses.answers
    if answers is None or not can_be_drawn(answers.evaluations):
        return ""
    document = explorer.explorer_document(answers.evaluations, answers.comparison, points=POINTS)
    return explorer.explorer_html(document)


def _html_section(part: ReportPart, fragment: str) -> Section:
    shown = part.shown
    charts = tuple(figure() for figure in shown.figures)
    texts = shown.tables if part.layout == "texts" else ()
    tables = () if part.layout == "texts" else shown.tables
    return Section(shown.title, shown.sentences, charts, tables, texts, fragment)


def summary_of(report: Report) -> Presentation:
    """The report in short, for a terminal."""
    return report.summary()
