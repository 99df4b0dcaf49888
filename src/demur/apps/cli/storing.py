"""What `demur add`, `demur runs` and `demur rm` do once their options are read."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import polars as pl
import typer

from demur.apps.cli import output
from demur.apps.cli.options import InputOptions, OutputOptions, reading_of
from demur.apps.cli.output import steps
from demur.core.show.numbers import ROWS, percent
from demur.core.show.presentation import Presentation, Table
from demur.errors import Interrupted, UsageError
from demur.importers.kinds import KINDS, Kind
from demur.store.intake import RunReading
from demur.store.records import Run
from demur.store.runs import Added, Store

COLUMNS = ("id", "name", "kind", "rows", "error, all returned", "added", "tags", "note")
_BRIEF = ("id", "name", "rows", "error, all returned")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What becomes of the runs that are added."""

    name: str | None
    tags: Sequence[str]
    note: str
    kinds: Sequence[str]
    replace: bool
    store: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Further:
    """How tables of other kinds than answers are read."""

    x: str | None
    y: str | None
    lower: float
    upper: float | None
    gold: tuple[str, ...]
    items: Literal["thomson", "dstc"] | None
    normalise: bool
    outcome: str | None


def add(files: list[str], inputs: InputOptions, outputs: OutputOptions, wishes: Wishes, further: Further) -> None:
    """Add tables to the store."""
    _check(outputs)
    how, kinds = _reading(inputs, further), _kinds(wishes.kinds)
    with Store.open(wishes.store) as store, steps(quiet=outputs.quiet or outputs.json) as step:
        step("reading", 0, 1)
        added = store.add(
            *files,
            name=wishes.name,
            tags=wishes.tags,
            note=wishes.note,
            reading=how,
            kind=kinds,
            replace=wishes.replace,
            step=step,
        )
        shown = of_added(added, store)
    output.deliver(shown, outputs)


def runs(outputs: OutputOptions, *, kind: Kind | None, tag: str | None, check: bool, folder: Path | None) -> None:
    """List the runs; with `check` read them all again, and exit with 1 if one is not what was added."""
    _check(outputs)
    with Store.open(folder) as store, steps(quiet=outputs.quiet or outputs.json) as step:
        damaged = store.check(step) if check else None
        shown = of_runs(store, store.runs(kind=kind, tag=tag), damaged)
    output.deliver(shown, outputs)
    if damaged:
        raise typer.Exit(1)


def remove(references: list[str], outputs: OutputOptions, *, yes: bool, folder: Path | None) -> None:
    """Remove runs, all of which must be there."""
    _check(outputs)
    with Store.open(folder) as store:
        chosen = list({run.id: run for run in map(store.run, references)}.values())
        if not (yes or outputs.json or outputs.quiet) and sys.stdin.isatty() and sys.stderr.isatty():
            _ask(chosen)
        removed = [store.remove(run.id) for run in chosen]
        shown = of_removed(removed, store)
    output.deliver(shown, outputs)


def _check(outputs: OutputOptions) -> None:
    output.check(outputs)
    output.refuse_figures(outputs)


def _ask(chosen: Sequence[Run]) -> None:
    names = ", ".join(f'"{run.name}"' for run in chosen)
    if not typer.confirm(f"Remove {names} for good?", err=True):
        raise Interrupted("nothing was removed")


def _reading(inputs: InputOptions, further: Further) -> RunReading:
    plain = reading_of(inputs)
    return RunReading(
        columns=plain.columns,
        where=plain.where,
        out_of_scope=plain.out_of_scope,
        withheld=plain.withheld,
        missing_confidence=plain.missing_confidence,
        items=further.items,
        normalise=further.normalise,
        outcome=further.outcome,
        x=further.x,
        y=further.y,
        lower=further.lower,
        upper=further.upper,
        gold=further.gold,
    )


def _kinds(given: Sequence[str]) -> Kind | dict[str, Kind] | None:
    """The kind of all files, or of each by its name."""
    pairs = [text.rpartition("=") for text in given]
    for (_, _, kind), text in zip(pairs, given, strict=True):
        if kind not in KINDS:
            raise UsageError(f'--kind takes one of {", ".join(KINDS)}, or FILE=KIND; got "{text}"')
    if len(pairs) == 1 and not pairs[0][1]:
        return cast(Kind, pairs[0][2])
    if not all(equals for _, equals, _ in pairs):
        raise UsageError("--kind takes one kind for all files, or FILE=KIND for each")
    return {file: cast(Kind, kind) for file, _, kind in pairs} or None


def of_added(added: Sequence[Added], store: Store) -> Presentation:
    """How runs that were added are shown."""
    found = [one.run for one in added]
    return Presentation(
        title="Runs added",
        sentences=tuple(_sentence(one) for one in added),
        tables=(_table("In the store", found),),
        figures=(),
        data=lambda: _frame(found),
        document={"store": str(store.root), "runs": [{**_document(one.run), "new": one.new} for one in added]},
        notes=_told({run.name: run.notes for run in found}),
        warnings=(*_told({run.name: run.warnings for run in found}), *store.problems),
    )


def _told(said: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """What reading said, and of which run where there are several."""
    return tuple(f"{name}: {text}" if len(said) > 1 else text for name, texts in said.items() for text in texts)


def _sentence(one: Added) -> str:
    run = one.run
    if not one.new:
        return f'These {_size(run)} are there already as "{run.name}" ({run.id}); nothing was added.'
    said = f'Added "{run.name}" ({run.id}): {_size(run)}'
    return f"{said}, {_error(run)} wrong with all returned." if run.kind == "responses" else f"{said}."


def _size(run: Run) -> str:
    return f"{ROWS.told(run.n)} of {'answers' if run.kind == 'responses' else run.kind}"


def of_runs(store: Store, found: Sequence[Run], damaged: dict[str, str] | None) -> Presentation:
    """How the list of runs is shown, with what is wrong with them where they were read again."""
    told = () if damaged is None else (*damaged.values(),)
    checked = {} if damaged is None else {"checked": True, "damaged": damaged}
    return Presentation(
        title="Runs",
        sentences=(_how_many(store, found), *_verdict(damaged)),
        tables=(_table("Runs, the newest first", found),) if found else (),
        figures=(),
        data=lambda: _frame(found),
        document={"store": str(store.root), "runs": [_document(run) for run in found], **checked},
        warnings=tuple(one for one in store.problems if not one.startswith(told)),
    )


def _how_many(store: Store, found: Sequence[Run]) -> str:
    if found:
        return f"{len(found)} run{'s' if len(found) > 1 else ''} in {store.root}."
    if store.runs():
        return f"No such run among the {len(store.runs())} in {store.root}."
    return f"No runs in {store.root} yet: demur add FILE adds one."


def _verdict(damaged: dict[str, str] | None) -> tuple[str, ...]:
    if damaged is None:
        return ()
    return tuple(f"{text[0].upper()}{text[1:]}." for text in damaged.values()) or ("Each is what was added.",)


def of_removed(removed: Sequence[Run], store: Store) -> Presentation:
    """How runs that were removed are shown."""
    return Presentation(
        title="Runs removed",
        sentences=tuple(f'Removed "{run.name}" ({run.id}): {_size(run)}.' for run in removed),
        tables=(),
        figures=(),
        data=lambda: _frame(removed),
        document={"store": str(store.root), "removed": [_document(run) for run in removed]},
        warnings=store.problems,
    )


def _table(title: str, found: Sequence[Run]) -> Table:
    rows = tuple(_row(run) for run in found)
    places = [COLUMNS.index(name) for name in _BRIEF]
    brief = Table(title, _BRIEF, tuple(tuple(row[place] for place in places) for row in rows))
    return Table(title, COLUMNS, rows, brief=brief)


def _row(run: Run) -> tuple[str, ...]:
    added = run.added[:16].replace("T", " ")
    return run.id, run.name, run.kind, f"{run.n:,}", _error(run), added, ", ".join(run.tags), run.note


def _error(run: Run) -> str:
    value = run.about.get("forced_error")
    return "-" if value is None else percent(value)


def _document(run: Run) -> dict[str, Any]:
    return run.to_dict()


def _frame(found: Sequence[Run]) -> pl.DataFrame:
    rows = [
        {
            "id": run.id,
            "name": run.name,
            "kind": run.kind,
            "rows": run.n,
            "forced_error": run.about.get("forced_error"),
            "added": run.added,
            "source": run.source,
            "tags": " ".join(run.tags),
            "note": run.note,
        }
        for run in found
    ]
    numbers = {"rows": pl.Int64, "forced_error": pl.Float64}
    texts = ("id", "name", "kind", "rows", "forced_error", "added", "source", "tags", "note")
    return pl.DataFrame(rows, schema={name: numbers.get(name, pl.String) for name in texts})
