"""A report: the story of a mixture of tables as one page, as Markdown, as JSON, and in short for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from demur.analyses.list_ranks import ListRanks
from demur.analyses.story import Answers, Story
from demur.errors import UsageError
from demur.show import plain
from demur.views import report_answers as of_answers
from demur.views.gold_presentation import of_gold
from demur.views.list_ranks import of_ranks
from demur.views.nbest_experiments import of_smooths
from demur.views.nbest_presentation import of_nbest, of_nbest_comparison
from demur.views.outcome_presentation import of_fit
from demur.views.presentation import Presentation, brief_table
from demur.views.report_calibration import calibration_section
from demur.views.report_examples import example_section
from demur.views.report_making import making_section
from demur.views.report_markdown import report_markdown
from demur.views.report_slices import slice_section
from demur.views.report_words import outcome_sentence, verdict

CURVE, EXAMPLES = "curve", "examples"
MOST_FIGURES = 4
"""Figures that a section on N-best lists, outcomes or a gold standard brings along."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A section of a report, and what kind it is where it is shown in its own way."""

    shown: Presentation
    kind: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """A story made ready to be shown."""

    title: str
    verdict: tuple[str, ...]
    parts: tuple[Part, ...]
    document: dict[str, Any]
    documents: tuple[dict[str, Any], ...]
    """What gates are asked of: answers, N-best lists, outcomes, gold standards, each by itself."""
    warnings: tuple[str, ...]
    story: Story

    def html(self) -> str:
        """The report as one page that needs nothing from outside."""
        from demur.views.report_page import report_page

        return report_page(self)

    def markdown(self) -> str:
        """The report in Markdown, figures told in words."""
        return report_markdown(self)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values."""
        shown: dict[str, Any] = plain(self.document)
        return shown

    def summary(self) -> Presentation:
        """The verdict and one small table, for a terminal."""
        answers = self.story.answers
        tables = (replace(brief_table(answers.evaluations), title="Systems"),) if answers is not None else ()
        return Presentation(self.title, self.verdict, tables, (), pl.DataFrame, self.document, warnings=self.warnings)

    def save(self, path: str | Path) -> None:
        """Writes the report to a file: .html, .md or .json."""
        from demur.data.output import write_whole

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
        from demur.views.fragments import notebook

        return notebook(self.summary())


def report_of(story: Story, *, title: str | None = None) -> Report:
    """How a story is shown."""
    answered = [] if story.answers is None else _answer_parts(story.answers)
    others = [_few(part) for part in (*_list_parts(story), *_outcome_parts(story), *_gold_parts(story))]
    shown = [part.shown for part in answered] + others
    signatures = tuple(dict.fromkeys(one for part in shown for one in part.signatures))
    notes = tuple(dict.fromkeys([*(note for part in shown for note in part.notes), *story.mixture.notes]))
    making = making_section(story, notes, signatures)
    said = verdict(story, others)
    warnings = tuple(dict.fromkeys([*story.mixture.warnings, *(told for part in shown for told in part.warnings)]))
    untold = tuple(f"{name} left out: {why}" for name, why in story.untold)
    answers = _answer_document(story, answered)
    document = {
        "title": title or _title(story),
        "verdict": said,
        **answers,
        **dict(_further(story, others)),
        **making.document,
        "notes": list(notes),
        "warnings": [*warnings, *untold],
    }
    parts = (*answered, *(Part(part) for part in others), Part(making))
    documents = tuple(one for one in (answers, *(part.document for part in others)) if one)
    return Report(str(document["title"]), tuple(said), parts, document, documents, (*warnings, *untold), story)


def _title(story: Story) -> str:
    names = story.mixture.responses.systems if story.mixture.responses is not None else ()
    if len(names) == 1:
        return f"Report on {names[0]}"
    return f"Report on {len(names)} systems" if names else "Report"


def _answer_parts(answers: Answers) -> list[Part]:
    """The sections on answers, in the order in which one asks."""
    compared = of_answers.comparison_section(answers)
    found = [Part(of_answers.curve_section(answers), CURVE)]
    if of_answers.can_be_chosen(answers.evaluations):
        found.append(Part(of_answers.advice_section(answers)))
    if compared is not None:
        found.append(Part(compared))
    if answers.slices is not None:
        found.append(Part(slice_section(answers.slices)))
    if answers.calibrations:
        found.append(Part(calibration_section(answers.calibrations, answers.evaluations)))
    found += [Part(_rank_section(one, several=len(answers.ranks) > 1)) for one in answers.ranks]
    examples = example_section(answers.examples)
    return [*found, Part(examples, EXAMPLES)] if examples.tables else found


def _rank_section(ranks: ListRanks, *, several: bool) -> Presentation:
    """Where the right label stands in the lists of one system, which is named where there are several."""
    shown = of_ranks(ranks)
    title = f"{shown.title} ({ranks.system})" if several else shown.title
    return replace(shown, title=title, document={})


def _answer_document(story: Story, parts: Sequence[Part]) -> dict[str, Any]:
    if story.answers is None:
        return {}
    systems = {"systems": [one.to_dict() for one in story.answers.evaluations]}
    found: dict[str, Any] = {}
    for part in parts:
        found |= part.shown.document
    ranks = {"ranks": [one.to_dict() for one in story.answers.ranks]} if story.answers.ranks else {}
    return {**found, **systems, **ranks}


def _list_parts(story: Story) -> list[Presentation]:
    if story.list_comparison is not None:
        return [of_nbest_comparison(story.list_comparison)]
    return [of_nbest(story.lists)] if story.lists is not None else []


def _outcome_parts(story: Story) -> list[Presentation]:
    several = len(story.fits) > 1
    found = []
    for system, fit in story.fits:
        shown = of_fit(fit)
        lead = outcome_sentence(fit)
        said = (f"{system}: {lead}" if several else lead, *shown.sentences)
        title = f"{shown.title} ({system})" if several else shown.title
        found.append(replace(shown, title=title, sentences=said))
    return [*found, *([of_smooths(story.rewards)] if story.rewards is not None else [])]


def _gold_parts(story: Story) -> list[Presentation]:
    if story.gold is None:
        return []
    shown = of_gold(story.gold)
    return [shown, *shown.parts]


def _few(part: Presentation) -> Presentation:
    """A section with its main figures only."""
    return replace(part, figures=part.figures[:MOST_FIGURES], parts=())


def _further(story: Story, others: Sequence[Presentation]) -> list[tuple[str, Any]]:
    """The documents of the other kinds, each under its name."""
    lists = len(_list_parts(story))
    outcomes = len(story.fits) + (story.rewards is not None)
    found: list[tuple[str, Any]] = []
    if lists:
        found.append(("nbest", others[0].document))
    if outcomes:
        names = [*(system for system, _ in story.fits), *(["reward"] if story.rewards is not None else [])]
        told = (part.document for part in others[lists : lists + outcomes])
        found.append(("outcome", dict(zip(names, told, strict=True))))
    if story.gold is not None:
        found.append(("gold", others[lists + outcomes].document))
    return found
