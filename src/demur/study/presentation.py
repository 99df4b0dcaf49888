"""How studies are shown: what was made, checked and exported, and how far they have come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from demur.core.show.numbers import percent
from demur.core.show.presentation import Presentation, ResultTable
from demur.study.checks import StudyCheck, StudyStatus


@dataclass(frozen=True)
class NewStudy:
    """A study that was made."""

    folder: Path
    name: str
    conditions: int

    def to_dict(self) -> dict[str, Any]:
        """The study as plain values."""
        about = {"study": str(self.folder), "name": self.name, "conditions": self.conditions}
        return {**about, "notes": [], "warnings": []}


@dataclass(frozen=True)
class ExportedStudy:
    """Tables of a study that were written."""

    folder: Path
    files: dict[str, int]
    """The files, and their rows."""
    identifiers: str
    damage: str = ""
    """What is wrong with the journal, where the export ends before it."""
    events: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The export as plain values."""
        rows = [{"file": name, "rows": count} for name, count in self.files.items()]
        about = {"study": str(self.folder), "files": rows, "identifiers": self.identifiers}
        lost = f"{self.damage}: these tables end with event {self.events:,}, and what came after it is not in them"
        return {**about, "notes": [], "warnings": [lost] if self.damage else []}


@dataclass(frozen=True)
class ErasedPerson:
    """Somebody whose data were removed."""

    folder: Path
    person: str
    events: int
    recordings: int = 0
    kept: int = 0
    """Dialogues that a wizard answered: they are the participants' too, and stay."""
    renamed: str = ""
    """What these dialogues call the wizard now."""

    def to_dict(self) -> dict[str, Any]:
        """What was removed, as plain values."""
        role = "wizard" if self.renamed else "participant"
        about = {"study": str(self.folder), role: self.person, "events": self.events, "recordings": self.recordings}
        kept = {"dialogues_kept": self.kept, "renamed": self.renamed} if self.renamed else {}
        return {**about, **kept, "notes": [], "warnings": []}


@dataclass(frozen=True)
class DemoStudy:
    """A simulated study: its folder, what was exported, and how far its system is from its wizards."""

    folder: Path
    exported: tuple[Path, ...]
    dialogues: int
    participants: int
    wizards: int
    holds: bool
    gold: Any

    def to_dict(self) -> dict[str, Any]:
        """The study and its gold standard as plain values."""
        about = {"study": str(self.folder), "files": [str(one) for one in self.exported], "check": self.holds}
        counts = {"dialogues": self.dialogues, "participants": self.participants, "wizards": self.wizards}
        return {**about, **counts, "gold": self.gold.to_dict(), "notes": [], "warnings": []}


def of_new(made: NewStudy) -> Presentation:
    """How a new study is shown."""
    sentences = (
        f"Wrote the study {made.name} to {made.folder}: {made.conditions} conditions.",
        f"Edit {made.folder / 'study.toml'}, then serve it: demur study serve {made.folder}",
    )
    return _plain("A new study", sentences, made.to_dict())


_BANDS = (
    "This is about the width of the bands. Convergence in demur gold asks less: "
    "whether one more person would still move a curve."
)


def of_status(found: StudyStatus) -> Presentation:
    """How the status of a study is shown."""
    total = sum(found.people.values())
    done = found.people.get("done", 0)
    sentences = (
        f"{total} participants, {done} of them done, and {found.trials} trials in {found.folder}.",
        found.plan,
        *([_BANDS] if found.plan_document else []),
    )
    conditions = ResultTable(
        "Conditions",
        ("performer", "level", "begun", "trials"),
        tuple((name, f"{level:g}", f"{begun}", f"{trials}") for name, level, begun, trials in found.conditions),
    )
    stages = tuple((stage, f"{count}") for stage, count in found.people.items())
    tables = [conditions]
    if stages:
        tables.append(ResultTable("Participants by stage", ("stage", "participants"), stages))
    if found.wizards:
        rows = tuple((one["wizard"], f"{one['dialogues']}", _training(one)) for one in found.wizards)
        tables.append(ResultTable("Wizards", ("wizard", "dialogues", "training"), rows))
    return replace(_plain("Status of the study", sentences, found.to_dict()), tables=tuple(tables), notes=())


def _training(wizard: Mapping[str, Any]) -> str:
    """How far the training of a wizard is."""
    if not wizard["trained"]:
        return "not finished"
    if wizard["settled"] is None:
        return "one round, which shows no changes" if wizard["rounds"] else "no training"
    return "settled" if wizard["settled"] else "still changing"


def of_check(found: StudyCheck) -> Presentation:
    """How a check is shown."""
    wrong = [one.rule for one in found.findings if not one.holds]
    unchecked = [one.rule for one in found.findings if not one.checked]
    left = f"; nothing to check yet: {', '.join(unchecked)}" if unchecked else ""
    if wrong:
        first = f"{len(wrong)} of {len(found.findings)} checks fail: {', '.join(wrong)}{left}."
    elif len(unchecked) == len(found.findings):
        first = "Nothing has happened in this study yet, so nothing was checked."
    elif unchecked:
        first = f"{len(found.findings) - len(unchecked)} of {len(found.findings)} checks hold{left}."
    else:
        first = f"All {len(found.findings)} checks hold."
    rows = tuple(
        (
            one.rule,
            ("yes" if one.holds else "no") if one.checked else "–",
            f"{one.checked:,}",
            f"{len(one.wrong):,}",
            "; ".join(one.wrong[:3]) or one.note,
        )
        for one in found.findings
    )
    tables = [ResultTable("Checks", ("rule", "holds", "checked", "wrong", "more"), rows)]
    if found.error_rates:
        rates = tuple(
            (name, f"{level:g}", f"{words:,}", percent(rate)) for name, level, words, rate in found.error_rates
        )
        tables.append(ResultTable("Words misrecognised", ("performer", "level", "words", "wer"), rates))
    if found.violations:
        cells = tuple((rule, f"{count}") for rule, count in found.violations.items())
        tables.append(ResultTable("Violations of the protocol", ("rule", "times"), cells))
    return replace(_plain("Check of the study", (first,), found.to_dict()), tables=tuple(tables))


def of_export(done: ExportedStudy) -> Presentation:
    """How an export is shown."""
    sentences = tuple(f"Wrote {name}: {count:,} rows." for name, count in done.files.items())
    return _plain("Export of the study", sentences or ("There is nothing to export yet.",), done.to_dict())


def of_erased(done: ErasedPerson) -> Presentation:
    """How an erasure is shown."""
    sentence = f"Erased {done.person} from {done.folder}: {done.events:,} events, {done.recordings:,} recordings."
    if done.renamed:
        sentence += f" The {done.kept:,} dialogues that the wizard answered stay, under the name {done.renamed}."
    again = "Tables that were exported before still have this person; export them again."
    return _plain("Erased", (sentence, again), done.to_dict())


def of_demo(done: DemoStudy) -> Presentation:
    """How a simulated study is shown: its gold standard, and where everything is."""
    from demur.gold_standard.presentation import of_gold

    shown = of_gold(done.gold)
    people = f"{done.participants} simulated participants and {done.wizards} simulated wizards"
    checks = "all checks hold" if done.holds else "some checks fail"
    made = f"{people} held {done.dialogues} dialogues; {checks}."
    where = f"The study is in {done.folder}, its tables in {done.folder / 'export'}."
    return replace(shown, title="A simulated study", sentences=(*shown.sentences, made, where), document=done.to_dict())


def _plain(title: str, sentences: tuple[str, ...], document: dict[str, Any]) -> Presentation:
    return Presentation(
        title=title,
        sentences=sentences,
        tables=(),
        figures=(),
        data=pl.DataFrame,
        document=document,
        notes=tuple(document["notes"]),
        warnings=tuple(document["warnings"]),
    )
