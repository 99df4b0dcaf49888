"""Runs are read again by the readers that took them in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from demur.data.dialogues import Dialogues
from demur.data.dialogues import dialogues as dialogues_in
from demur.data.kinds import Kind
from demur.data.nbest import NBest
from demur.data.nbest import nbest as nbest_in
from demur.data.responses import Responses
from demur.data.selection import EVERYTHING, JUDGED, unknown_column
from demur.data.trials import Trials
from demur.data.trials import trials as trials_in
from demur.errors import DataError
from demur.store.content import digest_of, read_rows
from demur.store.intake import RunReading
from demur.store.records import DamagedError, Run

_LISTED = ("reference", "ref", "target", "gold")


def refuse_other(run: Run, kind: Kind) -> None:
    """Refuses a run of another kind than is needed."""
    if run.kind != kind:
        raise DataError(f"is a run of {run.kind}, not of {kind}", where=f'"{run.name}"')


def rows_of(path: Path, run: Run, columns: Sequence[str] | None = None, *, ordered: bool = True) -> pl.DataFrame:
    """The rows of a run in the order in which they came, or in any, which is quicker."""
    try:
        return read_rows(path, columns, ordered=ordered)
    except DamagedError as damage:
        raise DataError(f'the run "{run.name}" ({run.id}) is damaged: {damage}', fix="add its file again") from None


def responses(path: Path, run: Run, columns: Sequence[str]) -> Responses:
    """The judged answers of a run."""
    refuse_other(run, "responses")
    further = [name for name in run.columns if name not in JUDGED]
    for name in columns:
        if name not in (*run.columns, EVERYTHING):
            raise unknown_column(name, run.columns, f'run "{run.name}"')
    kept = further if EVERYTHING in columns else [name for name in further if name in columns]
    judged = [name for name in JUDGED if name != "system"]
    frame = rows_of(path, run, [*judged, *kept]).with_columns(pl.lit(run.name).alias("system"))
    return Responses(frame.select(*JUDGED, *kept), run.notes, run.warnings)


def _reading(run: Run) -> RunReading:
    return msgspec.convert(run.reading, RunReading)


def lists(path: Path, run: Run, keep: Sequence[str]) -> NBest:
    """The N-best lists of a run; a table that names no systems is that of one, called as the run."""
    refuse_other(run, "nbest")
    rows = [_with_lists(row) for row in rows_of(path, run).iter_rows(named=True)]
    return nbest_in(rows, system=run.name, reading=_reading(run).lists(keep))


def _with_lists(row: dict[str, Any]) -> dict[str, Any]:
    """A row whose reference is a list of items has it as one again."""
    for name in row.keys() & {*_LISTED}:
        text = row[name]
        if isinstance(text, str) and text.startswith("["):
            try:
                row[name] = msgspec.json.decode(text, type=list[str])
            except msgspec.MsgspecError:
                continue
    return row


def dialogues(path: Path, run: Run, outcome: str | None) -> Dialogues:
    """The dialogues of a run, with another outcome than it was added with if one is named."""
    refuse_other(run, "dialogues")
    how = _reading(run) if outcome is None else replace(_reading(run), outcome=outcome)
    return dialogues_in(rows_of(path, run), reading=how.dialogues())


def trials(path: Path, run: Run, changes: dict[str, Any]) -> tuple[Trials, ...]:
    """The trials of a run; a table that names no studies is one, called as the run."""
    refuse_other(run, "trials")
    how = replace(_reading(run), **{name: value for name, value in changes.items() if value is not None})
    found = trials_in(rows_of(path, run), reading=how.trials())
    return tuple(replace(one, study=run.name) if one.study == "study" else one for one in found)


def damage_of(path: Path, run: Run) -> str | None:
    """What is wrong with the content of a run; None where it is what it was."""
    try:
        frame = read_rows(path)
    except DamagedError as damage:
        return str(damage)
    if frame.height != run.n or digest_of(run.kind, frame, run.reading) != run.sha256:
        return f"the rows in {path.name} are not those that were added"
    return None
