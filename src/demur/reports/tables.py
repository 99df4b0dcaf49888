"""Tables of several kinds read together: answers, N-best lists, dialogues, trials."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import polars as pl

from demur.core.io.columns import ALIASES, DIALOGUE_ALIASES, EVERYTHING, NBEST_ALIASES, TRIAL_ALIASES, nearest
from demur.core.io.files import table_of
from demur.core.io.sources import Source, expand, is_pipe, opened
from demur.core.io.tables import Request
from demur.core.options import KINDS, Kind
from demur.core.show.results import path_text
from demur.errors import DataError, UsageError
from demur.gold_standard.trials import TrialReading, Trials, measured_columns, read_trials, trials
from demur.importers import importer_of
from demur.importers.kinds import columns_in, columns_of, kind_of, outcome_column
from demur.nbest_lists.table import NBest, NBestReading, joined, nbest, read_nbest
from demur.outcome.table import DialogueReading, Dialogues, dialogues, read_dialogues
from demur.returns.table import (
    Reading,
    Responses,
    confidence_column,
    named_systems,
    read_data,
    read_responses,
    responses,
)

Pairs = tuple[tuple[str, str], ...]

_ALIASES: Mapping[Kind, Mapping[str, tuple[str, ...]]] = {
    "responses": ALIASES,
    "nbest": NBEST_ALIASES,
    "dialogues": DIALOGUE_ALIASES,
    "trials": TRIAL_ALIASES,
}
_READ: Mapping[type, Kind] = {Responses: "responses", NBest: "nbest", Dialogues: "dialogues", Trials: "trials"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureReading:
    """How to read tables of several kinds.

    `kinds` says what a file is, by its path or its name, where its columns do not. A column that is mapped, and a value
    that rows are kept by, count for the tables that have the column. `x` and `y` are the columns measured in trials.
    """

    kinds: Mapping[str, Kind] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    where: Pairs = ()
    out_of_scope: tuple[str, ...] = Reading().out_of_scope
    withheld: tuple[str, ...] = Reading().withheld
    missing_confidence: Literal["error", "lowest"] = "error"
    outcome: str | None = None
    x: str | None = None
    y: str | None = None


AS_IT_COMES = MixtureReading()


@dataclass(frozen=True, slots=True)
class FileRead:
    """A file as it was read: its name without folders, what it was taken for, its size, and a digest of its bytes."""

    name: str
    kind: Kind
    size: int | None
    digest: str | None


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """What was read; a kind that nothing was given of is None, or empty."""

    responses: Responses | None
    turns: Responses | None
    """The answers again where there are dialogues: every label counts as one, and no confidences are needed."""
    lists: NBest | None
    dialogues: Dialogues | None
    trials: tuple[Trials, ...]
    files: tuple[FileRead, ...]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Given:
    """A table to read, what it is, and the columns it has."""

    data: Any
    kind: Kind
    columns: tuple[str, ...]
    names: tuple[str, ...] = ()
    """What a file is called: as it was given, and without its folders."""

    @property
    def path(self) -> Path | None:
        if isinstance(self.data, Source):
            return self.data.path
        return self.data if isinstance(self.data, Path) else None


def read_mixture(*sources: Any, reading: MixtureReading = AS_IT_COMES) -> Mixture:
    """Reads files, globs, folders of DSTC, frames, rows, and tables read before, in any mixture."""
    pipes = [source for source in sources if isinstance(source, str | Path) and is_pipe(source)]
    with ExitStack() as stack:
        held = stack.enter_context(opened(*pipes)) if pipes else []  # answers are read twice where there are dialogues
        read_once = dict(zip(map(str, pipes), held, strict=True))
        return _read_tables([one for source in sources for one in _given_tables(source, reading, read_once)], reading)


def _read_tables(given: Sequence[_Given], reading: MixtureReading) -> Mixture:
    if not given:
        raise DataError("no file to read was given", fix='name a file, a glob, or "-" for standard input')
    _refuse_unknown_kinds(given, reading)
    _refuse_unused(given, reading)
    by_kind = {kind: [one for one in given if one.kind == kind] for kind in KINDS}
    answers = _read_answers(by_kind["responses"], reading)
    ended = _read_dialogues(by_kind["dialogues"], reading)
    lists = _read_lists(by_kind["nbest"], reading)
    studies, notes = _read_trials(by_kind["trials"], reading)
    tables = [table for table in (answers, lists, ended, *studies) if table is not None]
    plain = replace(reading, out_of_scope=(), missing_confidence="lowest")
    return Mixture(
        answers,
        _read_answers(by_kind["responses"], plain) if ended is not None else None,
        lists,
        ended,
        studies,
        tuple(_file(one, path) for one in given if (path := one.path) is not None),
        tuple(
            dict.fromkeys([*(note for table in tables for note in table.notes), *notes, *_unfiltered(given, reading)])
        ),
        tuple(dict.fromkeys(warning for table in tables for warning in table.warnings)),
    )


def _given_tables(source: Any, reading: MixtureReading, pipes: Mapping[str, Source]) -> list[_Given]:
    if isinstance(source, tuple) and source and all(isinstance(one, Trials) for one in source):
        return [_Given(one, "trials", ()) for one in source]
    if type(source) in _READ:
        return [_Given(source, _READ[type(source)], ())]
    if named_systems(source) or confidence_column(source) is not None:
        how = _answers_reading(reading, dict(reading.columns), reading.where)
        return [_Given(read_data((source,), how), "responses", ())]
    if not isinstance(source, str | Path):
        columns = table_of(source, Request()).columns
        return [_Given(source, kind_of(columns, where="data:"), columns)]

    def given(data: Path | Source, columns: Iterable[str], names: tuple[str, str], shown: str) -> _Given:
        chosen = next((reading.kinds[name] for name in names if name in reading.kinds), None)
        held = tuple(columns)
        return _Given(data, chosen or kind_of(held, where=f"{shown}:"), held, names)

    if (held := pipes.get(str(source))) is not None:
        return [given(held, columns_in(held), (str(source), held.name), held.name)]
    paths = expand(source) if importer_of(source) is None else [Path(source)]
    return [given(path, columns_of(path), (str(path), path.name), str(path)) for path in paths]


def _refuse_unknown_kinds(given: Sequence[_Given], reading: MixtureReading) -> None:
    names = {name for one in given for name in one.names}
    for name, kind in reading.kinds.items():
        if kind not in KINDS:
            raise UsageError(f'`kinds` {name}={kind}: a table is one of {", ".join(KINDS)}; got "{kind}"')
        if name not in names:
            raise UsageError(f"`kinds` {name}={kind}: no such file is read here; {nearest(name, sorted(names))}")


def _refuse_unused(given: Sequence[_Given], reading: MixtureReading) -> None:
    """Refuses a mapping or a filter that no table can follow."""
    known = [one for one in given if one.columns]
    if len(known) < len(given):
        return
    every = sorted({name for one in given for name in one.columns})
    parts = list(dict.fromkeys(part for one in given for part in _ALIASES[one.kind]))
    for part, column in reading.columns.items():
        if part not in parts:
            raise DataError(f'no column is called "{part}" here', where="`columns`:", fix=nearest(part, parts))
        if not any(part in _ALIASES[one.kind] and column in one.columns for one in given):
            rule = f'no table here has a column "{column}" that can be mapped to {part}'
            raise DataError(rule, where="`columns`:", fix=nearest(column, every))
    for column, _ in reading.where:
        if not any(_has(one, column, reading) for one in given):
            raise DataError(f'no table here has a column "{column}"', where="`where`:", fix=nearest(column, every))


def _has(one: _Given, column: str, reading: MixtureReading) -> bool:
    names = {name.casefold() for name in one.columns}
    aliases = _ALIASES[one.kind].get(column, ())
    return column in one.columns or column in reading.columns or any(name in names for name in aliases)


def _columns(given: Sequence[_Given], reading: MixtureReading) -> dict[str, str]:
    """The mappings that concern the tables of one kind."""
    parts = _ALIASES[given[0].kind]
    held = {name for one in given for name in one.columns}
    return {part: name for part, name in reading.columns.items() if part in parts and (name in held or not held)}


def _where(given: Sequence[_Given], reading: MixtureReading) -> Pairs:
    return tuple(pair for pair in reading.where if all(_has(one, pair[0], reading) or not one.columns for one in given))


def _unfiltered(given: Sequence[_Given], reading: MixtureReading) -> list[str]:
    """Says which tables a filter left alone."""
    notes = []
    for column, value in reading.where:
        for kind in dict.fromkeys(one.kind for one in given):
            mine = [one for one in given if one.kind == kind]
            if (column, value) not in _where(mine, reading):
                notes.append(f"{column}={value} was not asked of {kind}: not all of these tables have the column")
    return notes


def _by_source(given: Sequence[_Given]) -> tuple[list[Any], list[Any], list[Any]]:
    """Files, frames, and tables read before."""
    files = [one.data for one in given if isinstance(one.data, Path | Source)]
    read = [one.data for one in given if type(one.data) in _READ]
    return files, [one.data for one in given if not any(one.data is each for each in (*files, *read))], read


def _answers_reading(reading: MixtureReading, columns: dict[str, str], where: tuple[tuple[str, str], ...]) -> Reading:
    return Reading(
        columns=columns,
        where=where,
        out_of_scope=reading.out_of_scope,
        withheld=reading.withheld,
        missing_confidence=reading.missing_confidence,
        keep=(EVERYTHING,),
    )


def _read_answers(given: Sequence[_Given], reading: MixtureReading) -> Responses | None:
    if not given:
        return None
    how = _answers_reading(reading, _columns(given, reading), _where(given, reading))
    files, frames, read = _by_source(given)
    parts = [read_responses(*files, reading=how)] if files else []
    for place, frame in enumerate(frames, start=1):
        parts.append(responses(frame, system=f"system {place}" if len(frames) > 1 else None, reading=how))
    parts += read
    if len(parts) == 1:
        return parts[0]
    frame = pl.concat([part.frame for part in parts], how="diagonal_relaxed")
    notes = tuple(dict.fromkeys(note for part in parts for note in part.notes))
    warnings = tuple(dict.fromkeys(warning for part in parts for warning in part.warnings))
    return Responses(frame, notes, warnings, left_out=pl.concat([part.left_out for part in parts]))


def _read_lists(given: Sequence[_Given], reading: MixtureReading) -> NBest | None:
    if not given:
        return None
    how = NBestReading(columns=_columns(given, reading), where=_where(given, reading))
    files, frames, read = _by_source(given)
    parts = [read_nbest(*files, reading=how)] if files else []
    return joined([*parts, *(nbest(frame, reading=how) for frame in frames), *read])


def _read_dialogues(given: Sequence[_Given], reading: MixtureReading) -> Dialogues | None:
    if not given:
        return None
    files, frames, read = _by_source(given)
    names = tuple(name for one in given for name in one.columns)
    how = DialogueReading(outcome=reading.outcome or outcome_column(names), columns=_columns(given, reading))
    if bool(files) + len(frames) + len(read) > 1:
        raise UsageError("dialogues are files, or one frame; put several frames together first")
    if read:
        table: Dialogues = read[0]
        return table
    return read_dialogues(*files, reading=how) if files else dialogues(frames[0], reading=how)


def _read_trials(given: Sequence[_Given], reading: MixtureReading) -> tuple[tuple[Trials, ...], list[str]]:
    if not given:
        return (), []
    files, frames, read = _by_source(given)
    if not files and not frames:
        return tuple(read), []
    x, y, notes = measured_columns([*files, *frames], reading.x, reading.y)
    how = TrialReading(x=x, y=y, columns=_columns(given, reading), where=_where(given, reading))
    studies = read_trials(*files, reading=how) if files else ()
    return (*studies, *(one for frame in frames for one in trials(frame, reading=how)), *read), notes


def _file(given: _Given, path: Path) -> FileRead:
    name = given.data.name if isinstance(given.data, Source) else path_text(path.name)
    if not path.is_file():
        return FileRead(name, given.kind, None, None)
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return FileRead(name, given.kind, path.stat().st_size, digest[:16])
