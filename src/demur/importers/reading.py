"""Opens files for every reader of tables: logs of other tools are recognised by content and read as tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from polars.exceptions import PolarsError

from demur.core.io import sources
from demur.core.io.columns import ALIASES, NBEST_ALIASES, resolve
from demur.core.io.files import read_source
from demur.core.io.sources import READABLE, Source, format_of, quiet_panics
from demur.core.io.tables import ROW, Request, as_text
from demur.core.io.untrusted import LONGEST_REASON
from demur.core.jobs import load
from demur.errors import DataError, UsageError, faults_of
from demur.importers import REGISTRY, log_importers
from demur.importers.choices import ImportChoices, current_choices
from demur.importers.documents import (
    inner_paths,
    is_path,
    oriented_rows,
    path_steps,
    row_places,
    rows_at,
    with_gold,
    with_paths,
)
from demur.importers.protocol import FEW, ForeignFile, ImportedLog, Importer, frame_of
from demur.importers.samples import VOTES, by_vote

PLAIN = ({"prediction", "target"}, {"prediction", "correct"}, {"reference", "hypotheses"}, {"performer"})
"""Columns by which a table is none of another tool."""


NO_TABLES = {
    ".js": "a program",
    ".ts": "a program",
    ".py": "a program",
    ".md": "a text",
    ".html": "a page",
    ".htm": "a page",
    ".xml": "an XML document",
    ".yml": "a configuration",
    ".yaml": "a configuration",
    ".toml": "a configuration",
}
"""Endings of files that may have commas in their first line and are no tables all the same."""


@contextmanager
def opened(
    *requested: str | Path | Source, columns: Mapping[str, str] | None = None, importer: Importer | None = None
) -> Iterator[list[Source]]:
    """Gives the files that paths, globs and `-` stand for, as tables: logs of other tools are read already.

    `columns` are those that the user mapped. With an `importer` every file must be one of its own.
    """
    choices = replace(current_choices(), columns=dict(columns or {}))
    with sources.opened(*requested, others=True) as files:
        yield _as_tables(files, choices, importer)


def read_table(path: str | Path | Source) -> pl.DataFrame:
    """Reads all columns of the files that a path, a glob or `-` stands for, one below the other."""
    with opened(path) as files:
        frames = [read_source(file, Request()).frame.drop(ROW) for file in files]
    return pl.concat(frames, how="diagonal_relaxed")


@dataclass(frozen=True)
class ImportedRows:
    """The rows of logs of another tool, as every command reads them."""

    frame: pl.DataFrame
    notes: tuple[str, ...]
    origin: str

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self.frame.iter_rows(named=True)

    @property
    def counts(self) -> dict[str, int]:
        """How many systems there are."""
        return {"systems": self.frame["system"].n_unique() if "system" in self.frame.columns else 1}

    def summary(self, rows: int) -> str:
        """How much was read."""
        return f"{rows:,} rows of {self.origin}"


def read_log(name: str, data: Sequence[str | Path], columns: Mapping[str, str]) -> ImportedRows:
    """The rows of the files of one importer; where there are several tables, each is a system."""
    importer: Importer = load(REGISTRY[name].place)()
    with opened(*data, columns=columns, importer=importer) as files:
        frames = [file.frame for file in files if file.frame is not None]
        if len(files) > 1:
            names, _ = sources.system_names(files)
            own = zip(frames, names, strict=True)
            frames = [one if "system" in one else one.with_columns(system=pl.lit(system)) for one, system in own]
        notes = tuple(dict.fromkeys(note for file in files for note in file.notes))
        return ImportedRows(pl.concat(frames, how="diagonal_relaxed"), notes, importer.title)


def find_importer(file: ForeignFile, importers: Sequence[Importer] | None = None) -> tuple[Importer, str] | None:
    """The importer that knows a file, and as what; None for tables, and for files that no importer knows."""
    if importers is None and any(file.has(*names) for names in PLAIN):
        return None
    for one in log_importers() if importers is None else importers:
        with suppress(*_MISSHAPEN):  # what looks like a log in part only is none
            if role := one.recognises(file):
                return one, role
    return None


_MISSHAPEN = (KeyError, TypeError, AttributeError, ValueError, LookupError, ArithmeticError, PolarsError)
"""What reading values of another shape than a tool writes raises."""


def _read_members(
    importer: Importer, members: Sequence[tuple[str, ForeignFile]], choices: ImportChoices
) -> list[ImportedLog]:
    try:
        return importer.read(members, choices)
    except _MISSHAPEN as fault:
        names = ", ".join(file.name for _, file in members)
        reason = f"{type(fault).__name__} {fault}".partition("\n")[0][:LONGEST_REASON]
        rule = f"looks like {importer.title}, and does not have its form: {reason}"
        fix = "is it of a version that demur does not know, or damaged? `rows` and `columns` read it by hand"
        raise DataError(rule, where=f"{names}:", fix=fix) from None


def _as_tables(files: Sequence[Source], choices: ImportChoices, only: Importer | None) -> list[Source]:
    groups: dict[str, tuple[Importer, int, list[tuple[str, ForeignFile]]]] = {}
    found: list[tuple[int, Source]] = []
    unknown: list[tuple[int, ForeignFile]] = []
    for place, source in enumerate(files):
        if source.frame is not None:
            found.append((place, source))
            continue
        file = ForeignFile(source)
        match = find_importer(file, None if only is None else (only,))
        if match is not None and choices.rows is None and not _is_mapped_inside(file, choices):
            importer, role = match
            groups.setdefault(importer.name, (importer, place, []))[2].append((role, file))
        elif only is not None:
            tool, _, known = REGISTRY[only.name].files.partition(": ")
            lacking = only.lacking(file)
            rule = f"is not a log of {tool}" + (f": {lacking}" if lacking else "")
            raise DataError(rule, where=f"{source.name}:", fix=f"such logs are: {known.rstrip('.')}")
        else:
            unknown.append((place, file))

    def add_table(place: int, file: ForeignFile) -> None:
        found.append((place, _plain_table(file, choices)))

    if faults := faults_of(partial(add_table, *one) for one in unknown):
        raise DataError.joined(faults)
    logs = [
        (place, log.source())
        for importer, place, members in groups.values()
        for log in _read_members(importer, members, choices)
    ]
    found += zip((place for place, _ in logs), _named_by_run([log for _, log in logs]), strict=True)
    tables = [source for _, source in sorted(found, key=lambda pair: pair[0])]
    tables = [_with_paths(source, choices) for source in tables]
    if choices.confidence in VOTES:
        tables = [_with_votes(source, choices.confidence, choices) for source in tables]
    if choices.gold is not None:
        tables = [_with_gold(source, choices) for source in tables]
    return [_with_refusals(source, choices) for source in tables] if choices.withheld_like else tables


def _named_by_run(logs: Sequence[Source]) -> list[Source]:
    """The logs; a system that answers the same inputs in several of them is one of its own in each, named by file too.

    Tools name systems by model, so that runs before and after a change have the same name.
    """
    keys = [
        log.frame.select("system", pl.col("id").cast(pl.String)).unique()
        for log in logs
        if log.frame is not None and {"system", "id"} <= set(log.frame.columns)
    ]
    if len(keys) < 2:
        return list(logs)
    repeated = pl.concat(keys, how="vertical_relaxed").filter(pl.struct("system", "id").is_duplicated())
    shared = repeated["system"].drop_nulls().unique().to_list()
    names, _ = sources.system_names(logs)
    return [_with_run(log, name, shared) for log, name in zip(logs, names, strict=True)]


def _with_run(log: Source, run: str, shared: Sequence[str]) -> Source:
    if log.frame is None or "system" not in log.frame.columns:
        return log
    own = [name for name in log.frame["system"].unique(maintain_order=True).to_list() if name in shared]
    if not own:
        return log
    named = pl.format("{} ({})", "system", pl.lit(run))
    frame = log.frame.with_columns(system=pl.when(pl.col("system").is_in(own)).then(named).otherwise("system"))
    systems = ", ".join(f'"{name}"' for name in own[:FEW])
    note = f"{log.name}: other files have answers of {systems} to the same inputs, so this run is named by its file too"
    return replace(log, frame=frame, notes=(*log.notes, note))


def _is_mapped_inside(file: ForeignFile, choices: ImportChoices) -> bool:
    """Whether the user maps what judges answers from values inside the rows, and so takes no importer's word for it."""
    paths = [choices.columns.get(part, "") for part in ("prediction", "target", "correct")]
    inside = [path for path in paths if is_path(path) and path not in file.columns]
    return len(inside) > 1 and all(path_steps(path)[0] in file.columns for path in inside)


def _plain_table(file: ForeignFile, choices: ImportChoices) -> Source:
    """A table as it is, or the rows inside a JSON document."""
    source = file.source
    if source.format == "other" and file.start.startswith(b"PK") and b"xl/" in file.content():
        return _of_workbook(source)
    if source.format == "other":
        format_of(source.path, source.head(), source.name)
    if source.format in ("csv", "tsv") and source.path.suffix.lower() in NO_TABLES:
        rule = f"is not a table: its name ends as that of {NO_TABLES[source.path.suffix.lower()]}"
        raise DataError(rule, where=f"{file.name}:", fix=READABLE)
    if choices.rows is not None:
        rows = rows_at(file.document(object), choices.rows, file.name)
        return _of_rows(source, rows, f"{len(rows):,} rows at {choices.rows}")
    if not is_document(file, choices.columns.values()):
        return replace(source, paths=inner_paths(file.first)) if source.format == "json" else source
    document = file.document(dict[str, Any])
    if (turned := oriented_rows(document)) is not None:
        shape = "split into columns and data" if "data" in document else "by id, or in columns"
        return _of_rows(source, turned, f"{len(turned):,} rows of one JSON document, {shape}")
    places = [f"--rows {path} ({count:,} objects)" for path, count in row_places(document)]
    keys = ", ".join(f'"{name}"' for name in list(document)[:FEW])
    rule = f"is one JSON document with {keys}, not a row a line"
    fix = f"where are its rows? {' or '.join(places)}" if places else "no lists of objects are in it"
    raise DataError(rule, where=f"{file.name}:", fix=fix)


def _of_workbook(source: Source) -> Source:
    """The first sheet of an Excel workbook."""
    try:
        import fastexcel  # noqa: F401
    except ModuleNotFoundError:
        rule = "is an Excel workbook, which needs the extra: pip install 'demur[excel]'"
        raise DataError(rule, where=f"{source.name}:", fix="or save the sheet as CSV") from None
    try:
        with quiet_panics():
            frame = pl.read_excel(source.path, engine="calamine")
    except Exception as fault:  # whatever the library raises of a damaged workbook
        reason = str(fault).partition("\n")[0][:LONGEST_REASON]
        raise DataError(f"cannot be read as an Excel workbook: {reason}", where=f"{source.name}:") from None
    notes = (f"{source.name}: the first sheet of an Excel workbook",)
    return replace(source, format="arrow", compression="", frame=frame, origin="Excel workbook", notes=notes)


def _of_rows(source: Source, rows: Sequence[Any], note: str) -> Source:
    notes = (f"{source.name}: {note}",)
    table: dict[str, Any] = {"frame": frame_of(rows), "paths": inner_paths(rows[0])}
    return replace(source, format="arrow", compression="", origin="JSON", notes=notes, **table)


def is_document(file: ForeignFile, mapped: Iterable[str] = ()) -> bool:
    """Whether a file is one JSON object over several lines, or on one line a table turned another way than rows."""
    start = file.start.lstrip()
    if not start.startswith(b"{") or not isinstance(file.value, dict):
        return False
    line, _, rest = start.partition(b"\n")
    if not line.rstrip().endswith(b"}"):
        return bool(rest.strip()) and not rest.lstrip().startswith(b"{")
    return not rest.strip() and (_is_turned(file.value) or _only_holds_rows(file.value, mapped))


def _is_turned(value: dict[str, Any]) -> bool:
    """Whether an object is a table: split into columns and data, columns of cells, or rows by id."""
    if {"columns", "data"} <= value.keys() <= {"columns", "data", "index"}:
        return True
    parts = list(value.values())
    if len(parts) > 1 and all(isinstance(part, list) for part in parts):
        return not any(isinstance(one, list | dict) for part in parts for one in part)
    if not parts or not all(isinstance(part, dict) for part in parts):
        return False
    numbered = all(part and list(part) == [str(place) for place in range(len(part))] for part in parts)
    return numbered or all(any(names <= part.keys() for names in PLAIN) for part in parts)


def _only_holds_rows(value: dict[str, Any], mapped: Iterable[str]) -> bool:
    """Whether an object has lists of objects, and nothing that would make it a row, such as a mapped column."""
    tables = (ALIASES, NBEST_ALIASES)
    known = {name for one in tables for part in _TELLING & one.keys() for name in (part, *one[part])}
    known.update(name.casefold() for name in mapped)
    return known.isdisjoint(name.casefold() for name in value) and any(row_places(value))


_TELLING = {"target", "prediction", "correct", "reference", "hypotheses"}
"""Parts of which every row of some table has one."""


def _with_paths(source: Source, choices: ImportChoices) -> Source:
    """The table with a column for each path that a part is mapped from."""
    paths = [name for name in choices.columns.values() if is_path(name)]
    if not paths:
        return source
    frame = source.frame
    if frame is None:
        known = ForeignFile(source).columns
        if all(path in known for path in paths):
            return source
        frame = ForeignFile(source).cells()
    frame = with_paths(frame, [path for path in paths if path not in frame.columns], source.name)
    return replace(source, format="arrow", compression="", frame=frame)


def _with_votes(source: Source, asked: str, choices: ImportChoices) -> Source:
    """The table with a row for each input that was tried several times: the vote of its trials, and their agreement."""
    frame = source.frame if source.frame is not None else read_source(source, Request()).frame.drop(ROW)
    if asked in frame.columns:
        return source
    given = {part: name for part, name in choices.columns.items() if part != "confidence"}
    parts = resolve(frame.columns, given, parts=_VOTING, where=f"{source.name}:").columns
    if not {"id", "trial", "prediction"} <= parts.keys():
        rule = f"has no trials whose {asked} could be the confidence"
        raise DataError(rule, where=f"{source.name}:", fix="it needs the columns id, trial and prediction")
    frame = frame.rename({name: part for part, name in parts.items()})
    notes = (*source.notes, f"{source.name}: confidence <- {VOTES[asked]}")
    return replace(source, format="arrow", compression="", frame=by_vote(frame, asked), notes=notes)


_VOTING = ("id", "system", "trial", "prediction", "abstained", "failed")

REFUSALS = (
    r"^\W*(?:i am|i'm|im)?\s*(?:very |so |really )?(?:sorry|afraid)\b",
    r"\bi (?:do not|don't|dont|did not|didn't) (?:know|understand|have (?:enough|that|this|any) information)\b",
    r"\bi (?:can not|cannot|can't|cant|am unable to|am not able to|won't|will not) "
    r"(?:answer|help|assist|provide|comply|do that|determine|tell|say|respond|fulfil|fulfill)\b",
    r"\bi'?m (?:not sure|unsure|not certain|unable to)\b",
    r"^\W*(?:unknown|no idea|not sure|cannot answer|can't answer|no answer|i have no idea)\W*$",
    r"\bas an ai(?: language)? model\b",
)
"""Regular expressions of common refusals, which `withheld_like` "refusals" stands for."""


def _with_refusals(source: Source, choices: ImportChoices) -> Source:
    """The table with predictions that match a pattern taken as withheld."""
    patterns = [one for given in choices.withheld_like for one in (REFUSALS if given == "refusals" else (given,))]
    try:
        found = [re.compile(one, re.IGNORECASE) for one in patterns]
    except re.error as fault:
        raise UsageError(f"`withheld_like` is not a regular expression: {fault}") from None
    frame = source.frame if source.frame is not None else read_source(source, Request()).frame.drop(ROW)
    mapped = {part: name for part, name in choices.columns.items() if part == "prediction"}
    column = resolve(frame.columns, mapped, parts=("prediction",), where=f"{source.name}:").columns.get("prediction")
    if column is None:
        return source
    texts = as_text(frame[column])
    matches = pl.Series(
        [text is not None and any(one.search(text) for one in found) for text in texts], dtype=pl.Boolean
    )
    frame = frame.with_columns(pl.when(~matches).then(texts).alias(column))
    if "correct" in frame.columns:
        frame = frame.with_columns(pl.when(~matches).then("correct").alias("correct"))
    example = next((text for text, match in zip(texts, matches, strict=True) if match), None)
    note = f"{source.name}: predictions that match `withheld_like` and are read as withheld: {int(matches.sum()):,}"
    notes = (*source.notes, f'{note}, e.g. "{example}"' if example else note)
    return replace(source, format="arrow", compression="", frame=frame, notes=notes)


def _with_gold(source: Source, choices: ImportChoices) -> Source:
    assert choices.gold is not None
    frame = source.frame if source.frame is not None else read_source(source, Request()).frame.drop(ROW)
    with sources.opened(choices.gold, others=True) as files:
        (gold,) = _as_tables(files, ImportChoices(), None)
        targets = read_source(gold, Request()).frame.drop(ROW)
    frame = with_gold(frame, targets, choices.on, source.name, gold.name)
    notes = (*source.notes, f"{source.name}: target <- {gold.name}, joined by {choices.on or 'id'}")
    return replace(source, format="arrow", compression="", frame=frame, notes=notes)
