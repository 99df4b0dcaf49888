"""What adding, listing and removing runs gives, and how it is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from demur.core.show.numbers import ROWS, percent
from demur.core.show.presentation import Presentation, ResultTable
from demur.core.show.results import in_few_lines
from demur.store.records import Run
from demur.store.runs import Added

COLUMNS = ("id", "name", "kind", "rows", "error, all returned", "added", "tags", "note")
BRIEF_COLUMNS = ("id", "name", "rows", "error, all returned")


@dataclass(frozen=True, slots=True)
class AddedRuns:
    """Runs that were added to the store in a folder."""

    store: Path
    added: tuple[Added, ...]
    problems: tuple[str, ...] = ()
    """What is wrong with the store."""

    @property
    def runs(self) -> tuple[Run, ...]:
        """The runs, new or not."""
        return tuple(one.run for one in self.added)

    @property
    def notes(self) -> tuple[str, ...]:
        """Import notes."""
        return _by_run({run.name: run.notes for run in self.runs})

    @property
    def warnings(self) -> tuple[str, ...]:
        """Import warnings, and what is wrong with the store."""
        return (*_by_run({run.name: run.warnings for run in self.runs}), *self.problems)

    def to_dict(self) -> dict[str, Any]:
        """The runs as plain values."""
        added = [{**one.run.to_dict(), "new": one.new} for one in self.added]
        return {"store": str(self.store), "runs": added, "notes": list(self.notes), "warnings": list(self.warnings)}


@dataclass(frozen=True, slots=True, repr=False)
class RunList:
    """Runs in the store of a folder, chosen among `total`; `damaged` are messages by id, where runs were checked."""

    store: Path
    runs: tuple[Run, ...]
    total: int
    damaged: dict[str, str] | None = None
    problems: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return in_few_lines("RunList", of_runs(self).sentences)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is wrong with the store, but for the damage that was found by checking."""
        damage = tuple((self.damaged or {}).values())
        return tuple(one for one in self.problems if not one.startswith(damage))

    def to_dict(self) -> dict[str, Any]:
        """The runs as plain values."""
        checked = {} if self.damaged is None else {"checked": True, "damaged": self.damaged}
        runs = [run.to_dict() for run in self.runs]
        return {"store": str(self.store), "runs": runs, **checked, "notes": [], "warnings": list(self.warnings)}


@dataclass(frozen=True, slots=True)
class RemovedRuns:
    """Runs that were removed from the store in a folder."""

    store: Path
    runs: tuple[Run, ...]
    problems: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The runs as plain values."""
        removed = [run.to_dict() for run in self.runs]
        return {"store": str(self.store), "removed": removed, "notes": [], "warnings": list(self.problems)}


def of_added(found: AddedRuns) -> Presentation:
    """How runs that were added are shown."""
    sentences = []
    for run, new in ((one.run, one.new) for one in found.added):
        error = f", {_error_of(run)} wrong with all returned" if run.kind == "responses" else ""
        word, parts = ("Linked", ", counted where they lie") if run.lake else ("Added", "")
        added = f'{word} "{run.name}" ({run.id}): {_size_of(run)}{parts}{error}.'
        there = f'These {_size_of(run)} are there already as "{run.name}" ({run.id}); nothing was added.'
        sentences.append(added if new else there)
    return _presentation("Runs added", found, sentences, _run_table("In the store", found.runs))


def of_runs(found: RunList) -> Presentation:
    """How the list of runs is shown, with what is wrong with them where they were checked."""
    if found.runs:
        count = f"{len(found.runs)} run{'s' if len(found.runs) > 1 else ''} in {found.store}."
    elif found.total:
        count = f"No such run among the {found.total} in {found.store}."
    else:
        count = f"No runs in {found.store} yet: demur add FILE adds one."
    checked: list[str] = []
    if found.damaged is not None:
        damage = [f"{text[0].upper()}{text[1:]}." for text in found.damaged.values()]
        checked = damage or ["Each is what was added."]
    tables = [_run_table("Runs, the newest first", found.runs)] if found.runs else []
    return _presentation("Runs", found, [count, *checked], *tables)


def of_removed(found: RemovedRuns) -> Presentation:
    """How runs that were removed are shown."""
    sentences = [f'Removed "{run.name}" ({run.id}): {_size_of(run)}.' for run in found.runs]
    return _presentation("Runs removed", found, sentences)


def _presentation(
    title: str, found: AddedRuns | RunList | RemovedRuns, sentences: Sequence[str], *tables: ResultTable
) -> Presentation:
    document = found.to_dict()
    return Presentation(
        title=title,
        sentences=tuple(sentences),
        tables=tables,
        figures=(),
        data=lambda: _run_frame(found.runs),
        document=document,
        notes=tuple(document["notes"]),
        warnings=tuple(document["warnings"]),
    )


def _by_run(lines: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Notes or warnings, each with the name of its run where there are several runs."""
    return tuple(f"{name}: {text}" if len(lines) > 1 else text for name, texts in lines.items() for text in texts)


def _size_of(run: Run) -> str:
    return f"{ROWS.with_count(run.n)} of {'answers' if run.kind == 'responses' else run.kind}"


def _error_of(run: Run) -> str:
    value = run.about.get("forced_error")
    return "-" if value is None else percent(value)


def _run_table(title: str, runs: Sequence[Run]) -> ResultTable:
    rows, brief = [], []
    for run in runs:
        size, error, added = f"{run.n:,}", _error_of(run), run.added[:16].replace("T", " ")
        rows.append((run.id, run.name, run.kind, size, error, added, ", ".join(run.tags), run.note))
        brief.append((run.id, run.name, size, error))
    return ResultTable(title, COLUMNS, tuple(rows), brief=ResultTable(title, BRIEF_COLUMNS, tuple(brief)))


def _run_frame(runs: Sequence[Run]) -> pl.DataFrame:
    names = ("id", "name", "kind", "rows", "forced_error", "added", "source", "tags", "note")
    schema = {**dict.fromkeys(names, pl.String), "rows": pl.Int64, "forced_error": pl.Float64}
    rows = []
    for run in runs:
        about = run.id, run.name, run.kind, run.n, run.about.get("forced_error")
        rows.append((*about, run.added, run.source, " ".join(run.tags), run.note))
    return pl.DataFrame(rows, schema=schema, orient="row")
