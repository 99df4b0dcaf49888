"""The table of responses: what systems answered, how sure they were, and whether it was right."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import polars as pl

from demur.data.cells import Cells, as_text
from demur.data.checks import CORRECT, SOURCE, near_matches, refuse_duplicates, refuse_foreign_labels, unranked_notes
from demur.data.columns import check_mapping, nearest, resolve_clear
from demur.data.files import read_source
from demur.data.frames import table_of
from demur.data.judging import LOWEST, Judged, Rules, column_faults, judge
from demur.data.selection import JUDGED, extras, filtered, parts_wanted, request_for
from demur.data.sources import Source, opened, system_names
from demur.data.tables import ROW, Request, Table
from demur.data.wording import ROWS, counted
from demur.errors import DataError, faults_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How to read a table of responses.

    `columns` maps canonical columns to those of the file. `out_of_scope` are targets to which no answer is
    right, `withheld` predictions that are no answer. `missing_confidence` says what becomes of an answer
    without one. `where` keeps the rows whose column has the value. `keep` names further columns to carry
    along, `*` all of them.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    out_of_scope: tuple[str, ...] = ("oos", "out_of_scope")
    withheld: tuple[str, ...] = ("nlu_fallback",)
    missing_confidence: Literal["error", "lowest"] = "error"
    where: tuple[tuple[str, str], ...] = ()
    keep: tuple[str, ...] = ()

    def request(self) -> Request:
        """Gives what must be read of a file."""
        check_mapping(self.columns)
        return request_for(dict(self.columns), self.keep, self.where)

    def rules(self) -> Rules:
        """Gives how rows are judged."""
        return Rules(self.out_of_scope, self.withheld, self.missing_confidence == "lowest")


AS_IT_COMES = Reading()


@dataclass(frozen=True, slots=True)
class Responses:
    """The answers of one or more systems, read, checked and judged.

    `frame` begins with the columns id, system, dialogue, target, prediction, answered, right, failed,
    out_of_scope, confidence and weight. `target` lists the acceptable labels: an empty list is out of scope,
    null is unknown (the row was judged by `correct`). `confidence` is null where nothing was answered.
    """

    frame: pl.DataFrame
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def systems(self) -> tuple[str, ...]:
        """The names of the systems, in order of first appearance."""
        return tuple(self.frame["system"].unique(maintain_order=True))

    @property
    def unranked(self) -> tuple[str, ...]:
        """The systems all of whose answers have the lowest confidence, for want of any: nothing ranks them.

        >>> responses([{"target": "yes", "prediction": "yes"}], system="mine").unranked
        ('mine',)
        """
        answers = self.frame.lazy().filter("answered").group_by("system", maintain_order=True)
        lowest = answers.agg((pl.col("confidence") == LOWEST).all()).filter("confidence")
        return tuple(lowest.collect()["system"])

    def of(self, system: str) -> "Responses":
        """Gives the responses of one system."""
        if system not in self.systems:
            raise DataError(f'there is no system "{system}"', fix=nearest(system, self.systems))
        own = self.frame["system"] == system
        first, count = own.arg_max() or 0, int(own.sum())
        together = bool(own.slice(first, count).all())  # as they mostly are: then nothing need be copied
        return replace(self, frame=self.frame.slice(first, count) if together else self.frame.filter(own))

    def __len__(self) -> int:
        return self.frame.height


def read_responses(*sources: str | Path | Source, reading: Reading = AS_IT_COMES) -> Responses:
    """Reads and judges the responses in files: paths, globs, or `-` for standard input.

    A table without a column `system` stands for one system, named after its file.
    """
    request = reading.request()
    with opened(*sources) as files:
        tables = [read_source(file, request) for file in files]
        names, notes = system_names(files)
        return _assembled(tables, names, notes, reading)


def responses(data: object, *, system: str | None = None, reading: Reading = AS_IT_COMES) -> Responses:
    """Judges the responses in a frame (Polars, pandas, PyArrow, DuckDB and others), columns, or rows.

    >>> rows = [{"id": 1, "target": "yes", "prediction": "yes", "confidence": 0.9}]
    >>> responses(rows).frame["right"].to_list()
    [True]
    """
    table = table_of(data, reading.request())
    return _assembled([table], [system or "system"], [], reading)


def _assembled(tables: Sequence[Table], names: Sequence[str], notes: Sequence[str], reading: Reading) -> Responses:
    told = [*notes]
    emptied = []
    parts = []
    for number, (table, name) in enumerate(zip(tables, names, strict=True)):
        cells, found = _resolved(table, reading)
        told += found
        if cells.table.frame.is_empty():
            emptied.append(table)
            continue
        parts.append(_judged(cells, name, number, reading))
    if not parts:
        raise _nothing_left(tables, reading)
    frame = pl.concat([part.frame for part in parts], how="diagonal_relaxed")
    refuse_duplicates(frame, tables)
    warnings = [f"{table.name}: no row is left where {_asked(reading)}" for table in emptied]
    warnings += counted(part.cautions for part in parts) + refuse_foreign_labels(frame) + near_matches(frame)
    told += counted(part.recognised for part in parts)
    if reading.missing_confidence == "error":
        unranked = dict.fromkeys(system for part in parts for system in part.unranked)
        told += unranked_notes(frame, tuple(unranked), tables)
    return Responses(_public(frame), tuple(dict.fromkeys(told)), tuple(warnings))


def _resolved(table: Table, reading: Reading) -> tuple[Cells, list[str]]:
    wanted = parts_wanted(reading.keep, reading.where)
    resolution = resolve_clear(table.columns, reading.columns, parts=wanted, where=f"{table.name}:")
    everything = Cells(table, resolution.columns)
    if resolution.faults:
        raise _unclear(everything, resolution.faults, reading)
    cells = filtered(everything, reading.where)
    notes = list(resolution.notes)
    if reading.where:
        kept = f"{cells.table.frame.height:,} of {ROWS.told(table.frame.height)} kept where {_asked(reading)}"
        notes.append(f"{table.name}: {kept}")
    return cells, notes


def _unclear(cells: Cells, faults: Mapping[str, DataError], reading: Reading) -> DataError:
    """The faults of parts whose columns are not clear, and of the columns that are, in the rows that are kept."""
    if any(column in faults for column, _ in reading.where):
        return DataError.joined(faults.values())
    others = faults_of([lambda: _refuse_columns(filtered(cells, reading.where), faults)])
    return DataError.joined([*faults.values(), *others])


def _refuse_columns(cells: Cells, unclear: Mapping[str, DataError]) -> None:
    if found := column_faults(cells, unclear):
        raise DataError.joined(found)


def _judged(cells: Cells, system: str, number: int, reading: Reading) -> Judged:
    judged = judge(cells, reading.rules(), system)
    source = pl.lit(number).alias(SOURCE)
    frame = judged.frame.select(ROW, source, *JUDGED, pl.col("correct").alias(CORRECT))
    return replace(judged, frame=frame.with_columns(extras(cells, reading.keep)))


def _public(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.drop(ROW, SOURCE, CORRECT).rechunk()


def _asked(reading: Reading) -> str:
    return " and ".join(f"{column} is {value}" for column, value in reading.where)


def _nothing_left(tables: Sequence[Table], reading: Reading) -> DataError:
    last = reading.where[-1][0]
    table = tables[0]
    held = ""
    if last in table.frame.columns:
        found = as_text(table.frame[last]).unique(maintain_order=True).head(5)
        held = f"{last} holds {', '.join(f'{text!r}' for text in found)}"
    return DataError(f"no row is left where {_asked(reading)}", where=f"{table.name}:", fix=held)
