"""A report as one page, as Markdown, as JSON, and in short for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import polars as pl

from demur.core.show.html import figures_html
from demur.core.show.page import Section, page
from demur.core.show.presentation import (
    Drawing,
    Presentation,
    ResultTable,
    bullets,
    code_mark,
    paragraph,
    plain_mark,
    warning_mark,
)
from demur.core.show.results import in_few_lines, plain
from demur.core.show.safe import document_text
from demur.errors import UsageError
from demur.gold_standard.presentation import of_gold
from demur.nbest_lists.presentation import of_nbest, of_nbest_comparison
from demur.nbest_lists.ranks import of_ranks
from demur.nbest_lists.reward import of_smooths
from demur.outcome.presentation import of_fit
from demur.reports.analyses import AnswerAnalyses, ReportAnalyses, ReportOptions
from demur.reports.sections import (
    Verdict,
    advice_section,
    advice_table,
    brief_examples,
    brief_figures,
    calibration_section,
    can_be_chosen,
    can_be_drawn,
    comparison_section,
    curve_section,
    drift_section,
    error_return_plot,
    example_section,
    making_section,
    outcome_sentence,
    verdict,
)
from demur.reports.slice_section import slice_section
from demur.returns import explorer
from demur.returns.presentation import brief_table

MOST_ROWS = 40
"""Rows of a table that are written out."""

MOST_FIGURES = 4
"""Figures that a section on N-best lists, outcomes or a gold standard brings along."""

POINTS = 800
"""Cutoffs of each system that the explorer can stop at: about one for each pixel, however long the log is."""


MOST_BRIEF = 4
"""Sentences of a report in brief that has no answers."""

BRIEF_STYLE = files("demur.reports").joinpath("brief.css").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True, eq=False)
class ReportPart:
    """A section of a report, and how the page shows it: its tables may hold texts."""

    shown: Presentation
    layout: Literal["plain", "texts"] = "plain"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Report:
    """Analyses of tables, ready to be shown."""

    title: str
    said: Verdict
    parts: tuple[ReportPart, ...]
    """The sections, that on how the numbers were made among them."""
    making: Presentation
    """How the numbers were made."""
    document: dict[str, Any]
    documents: tuple[dict[str, Any], ...]
    """What gates are asked of: answers, N-best lists, outcomes, gold standards, each by itself."""
    warnings: tuple[str, ...]
    analyses: ReportAnalyses
    answers: AnswerAnalyses | None
    """What answers show, with short names of systems."""
    shared: str = ""
    """What the names of all systems share."""
    brief: bool = False
    """Whether it is one page: verdict, plot, three numbers, five examples."""

    @property
    def verdict(self) -> tuple[str, ...]:
        """What is shown, in a few sentences."""
        return self.said.sentences

    def with_gates(self, gates: Sequence[Mapping[str, Any]]) -> Report:
        """The report with the results of gates: for each its condition, its subject, and its failure, or None."""
        return replace(self, document={**self.document, "gates": list(gates)})

    def __repr__(self) -> str:
        return in_few_lines(self.title, self.verdict)

    def html(self) -> str:
        """The report as one page that needs nothing from outside, reads without scripts, and on paper."""
        if self.brief:
            return self._brief_html()
        answers, live = self.answers, ""
        if answers is not None and can_be_drawn(answers.evaluations):
            choices = [one.choices[0] for one in answers.advice] if can_be_chosen(answers.evaluations) else []
            document = explorer.explorer_document(
                answers.evaluations, answers.comparison, points=POINTS, choices=choices
            )
            live = explorer.explorer_html(document)
        sections = [Section("Further findings", self.said.findings)] if self.said.findings else []
        sections += [Section("Gates", tables=(gates,)) for gates in self._gate_tables()]
        for part in self.parts:
            shown = part.shown
            charts = tuple(figure() for figure in shown.figures)
            tables, texts = ((), shown.tables) if part.layout == "texts" else (shown.tables, ())
            sections.append(Section(shown.title, shown.sentences, charts, tables, texts))
        return page(
            self.title,
            sections,
            verdict=self.said.lead,
            lead=Section("", tables=self.summary().tables, fragment=live),
            notes=self.making.notes,
            warnings=self.warnings,
            signatures=self.making.signatures,
            seed=self.analyses.options.seed,
            style=explorer.STYLE if live else "",
            script=explorer.explorer_script() if live else "",
        )

    def _brief_html(self) -> str:
        """One page, also of paper: verdict, three numbers, the plot with the recommended threshold, five examples."""
        answers, lead = self.answers, Section("")
        if answers is not None:
            charts = (error_return_plot(answers)(),) if can_be_drawn(answers.evaluations) else ()
            lead = Section(
                "", charts=charts, texts=brief_examples(answers), fragment=figures_html(brief_figures(answers))
            )
        return page(
            self.title,
            [Section("Gates", tables=(gates,)) for gates in self._gate_tables()],
            verdict=self.said.lead if answers is not None else self.verdict[:MOST_BRIEF],
            lead=lead,
            warnings=self.warnings[:1],
            seed=self.analyses.options.seed,
            style=BRIEF_STYLE,
        )

    def _gate_tables(self) -> list[ResultTable]:
        """The gates and whether they are passed; none where none was asked."""
        rows = tuple(
            (
                "pass" if gate["failure"] is None else "FAIL",
                gate["subject"],
                gate["failure"] or f"not {gate['condition']}",
            )
            for gate in self.document["gates"]
        )
        return [ResultTable("Gates", ("result", "of", "condition"), rows)] if rows else []

    def markdown(self) -> str:
        """The report in Markdown, figures described in words; gates stand under the verdict."""
        parts = [f"# {plain_mark(self.title)}", bullets(self.verdict), *map(warning_mark, self.warnings)]
        parts += [gates.markdown() for gates in self._gate_tables()]
        if self.brief:
            answers = self.answers
            tables = () if answers is None else (*self.summary().tables, *brief_examples(answers))
            return "\n\n".join([*parts, *(one.markdown() for one in tables)]) + "\n"
        for shown in (part.shown for part in self.parts):
            parts += [f"## {plain_mark(shown.title)}", paragraph(shown.sentences)]
            parts += [one.markdown(most_rows=MOST_ROWS) for one in shown.tables]
        parts += ["### Notes", bullets(self.making.notes)] if self.making.notes else []
        signatures = "\n".join(f"- {code_mark(one)}" for one in self.making.signatures)
        parts += ["### Signatures", signatures] if signatures else []
        return "\n\n".join(part for part in parts if part) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values."""
        values: dict[str, Any] = plain(self.document)
        return values

    def summary(self) -> Presentation:
        """The verdict and one small table, for a terminal."""
        answers = self.answers
        tables: tuple[ResultTable, ...] = ()
        if answers is not None:
            chosen = can_be_chosen(answers.evaluations)
            systems = f"Systems ({self.shared})" if self.shared else "Systems"
            board = advice_table(answers, self.shared) if chosen else brief_table(answers.evaluations).titled(systems)
            tables = (board,)
        return Presentation(self.title, self.verdict, tables, (), pl.DataFrame, self.document, warnings=self.warnings)

    def pictures(self) -> Presentation:
        """The figures of all sections, the error-return plot first, each to be written as a file of its own."""
        plot: tuple[Drawing, ...] = ()
        if self.answers is not None and can_be_drawn(self.answers.evaluations):
            plot = (error_return_plot(self.answers),)
        figures = (*plot, *(figure for part in self.parts for figure in part.shown.figures))
        return Presentation(self.title, self.verdict, (), figures, pl.DataFrame, self.document)

    def save(self, path: str | Path) -> None:
        """Writes the report to a file: .html, .md or .json."""
        from demur.core.io.writing import write_whole

        write_whole(path, self.render(Path(path).suffix.lower()))

    def render(self, suffix: str) -> str:
        """The report as the content of a file with this ending."""
        forms: dict[str, Callable[[], str]] = {".html": self.html, ".md": self.markdown, ".json": self._json}
        if suffix not in forms:
            raise UsageError(f'a report is written as {", ".join(forms)}; got "{suffix}"')
        return forms[suffix]()

    def _json(self) -> str:
        return document_text(self.to_dict()) + "\n"

    def _repr_html_(self) -> str:
        from demur.core.show.html import notebook

        return notebook(self.summary())


def summary_of(report: Report) -> Presentation:
    """The report in short, for a terminal."""
    return report.summary()


def report_of(analyses: ReportAnalyses, *, title: str | None = None, brief: bool = False) -> Report:
    """The report on analyses of tables."""
    answers = analyses.answers
    short, shared = (None, "") if answers is None else answers.in_short()
    parts = [] if answers is None or short is None else _parts_in_short(answers, short, analyses.options)
    answer_document: dict[str, Any] = {}
    if answers is not None:
        answer_document = {key: value for part in parts for key, value in part.shown.document.items()}
        answer_document["systems"] = [one.to_dict() for one in answers.evaluations]
        drifts = [{"system": system, **found.to_dict()} for system, found in answers.drifts]
        answer_document |= {"drift": drifts} if drifts else {}
        answer_document |= {"ranks": [one.to_dict() for one in answers.ranks]} if answers.ranks else {}
    others, other_documents = _other_sections(analyses)
    parts += [ReportPart(replace(one, figures=one.figures[:MOST_FIGURES], parts=())) for one in others]
    shown = [part.shown for part in parts]
    signatures = tuple(dict.fromkeys(signature for one in shown for signature in one.signatures))
    notes = tuple(dict.fromkeys([*(note for one in shown for note in one.notes), *analyses.mixture.notes]))
    warnings = (
        *dict.fromkeys([*analyses.mixture.warnings, *(warning for one in shown for warning in one.warnings)]),
        *(f"{name} left out: {why}" for name, why in analyses.omitted),
    )
    making = making_section(analyses, notes, signatures)
    said = verdict(analyses, short, others)
    document = {
        "title": title or _default_title(analyses),
        "verdict": list(said.sentences),
        **answer_document,
        **other_documents,
        **making.document,
        "notes": list(notes),
        "warnings": list(warnings),
        "gates": [],
    }
    return Report(
        str(document["title"]),
        said,
        (*parts, ReportPart(making)),
        making,
        document,
        tuple(one for one in (answer_document, *(part.document for part in others)) if one),
        warnings,
        analyses,
        short,
        shared,
        brief,
    )


def _parts_in_short(answers: AnswerAnalyses, short: AnswerAnalyses, options: ReportOptions) -> list[ReportPart]:
    """The sections on answers with short names; the plain values behind them have names in full."""
    parts = _answer_parts(short, options)
    if short is answers:
        return parts
    return [
        replace(part, shown=replace(part.shown, document=full.shown.document, signatures=full.shown.signatures))
        for part, full in zip(parts, _answer_parts(answers, options), strict=True)
    ]


def _answer_parts(answers: AnswerAnalyses, options: ReportOptions) -> list[ReportPart]:
    """The sections on answers, in order; a section is added here, after its function."""
    parts = [ReportPart(curve_section(answers))]
    if can_be_chosen(answers.evaluations):
        parts.append(ReportPart(advice_section(answers, options)))
    if answers.comparison is not None:
        parts.append(ReportPart(comparison_section(answers.comparison)))
    if answers.slices is not None:
        parts.append(ReportPart(slice_section(answers.slices)))
    if answers.calibrations:
        parts.append(ReportPart(calibration_section(answers.calibrations, answers.evaluations)))
    alone = len(answers.evaluations) == 1
    parts += [ReportPart(drift_section(system, found, alone=alone)) for system, found in answers.drifts]
    for ranks in answers.ranks:
        shown = of_ranks(ranks)
        title = f"{shown.title} ({ranks.system})" if len(answers.ranks) > 1 else shown.title
        parts.append(ReportPart(replace(shown, title=title, document={})))
    examples = example_section(answers.examples, answers.advice)
    return [*parts, *([ReportPart(examples, "texts")] if examples.tables else [])]


def _other_sections(analyses: ReportAnalyses) -> tuple[Sequence[Presentation], dict[str, Any]]:
    """The sections on N-best lists, outcomes and gold standards, and what they add to the JSON document."""
    sections: list[Presentation] = []
    document: dict[str, Any] = {}
    lists = of_nbest(analyses.lists) if analyses.lists is not None else None
    if analyses.list_comparison is not None:
        lists = of_nbest_comparison(analyses.list_comparison)
    if lists is not None:
        sections.append(lists)
        values = lists.document.items()  # notes and warnings are those of the report
        document["nbest"] = {key: value for key, value in values if key not in ("notes", "warnings")}
    outcomes: dict[str, Presentation] = {}
    several = len(analyses.fits) > 1
    for system, fit in analyses.fits:
        shown, lead = of_fit(fit), outcome_sentence(fit)
        outcomes[system] = replace(
            shown,
            title=f"{shown.title} ({system})" if several else shown.title,
            sentences=(f"{system}: {lead}" if several else lead, *shown.sentences),
        )
    if analyses.rewards is not None:
        outcomes["reward"] = of_smooths(analyses.rewards)
    if outcomes:
        sections += outcomes.values()
        document["outcome"] = {name: one.document for name, one in outcomes.items()}
    if analyses.gold is not None:
        gold = of_gold(analyses.gold)
        sections += [gold, *gold.parts]
        document["gold"] = gold.document
    return sections, document


def _default_title(analyses: ReportAnalyses) -> str:
    names = [one.system for one in analyses.answers.evaluations] if analyses.answers is not None else []
    if len(names) == 1:
        return f"Report on {names[0]}"
    return f"Report on {len(names)} systems" if names else "Report"
