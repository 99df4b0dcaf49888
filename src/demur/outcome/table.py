"""The table of dialogues: what each achieved and who held it; and any table as rows of a regression."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.arrays import Array
from demur.core.io.columns import DIALOGUE_ALIASES, check_mapping, mapping_of, nearest, resolve
from demur.core.io.files import read_source, table_of
from demur.core.io.sources import Source
from demur.core.io.tables import ROW, Cells, Request, Table, as_text, first
from demur.core.show.numbers import Wording, first_names
from demur.errors import DataError, UsageError, faults_of
from demur.importers.reading import opened

GAIN = "normalised gain"
"""(post - pre) / (1 - pre): what was won of what could be won."""

_LEFT_OUT = Wording("dialogue has no outcome and is left out", "dialogues have no outcome and are left out")
_ABSENT = Wording(
    "dialogue has turns but is not in the table of outcomes",
    "dialogues have turns but are not in the table of outcomes",
)
_UNDEFINED = Wording("dialogue has turns but no outcome", "dialogues have turns but no outcome")
_SILENT = Wording("dialogue has an outcome but no turns", "dialogues have an outcome but no turns")
_WITHOUT = Wording("dialogue without", "dialogues without")
NO_GAIN = "pre is 1, so nothing was left to gain, or a test is missing"
"""Why a dialogue has no gain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DialogueReading:
    """How to read a table of dialogues: which column is the outcome, and which columns play the other parts."""

    outcome: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)


AS_IT_COMES = DialogueReading()


@dataclass(frozen=True, slots=True, eq=False)
class Dialogues:
    """One row per dialogue: `dialogue`, `outcome`, `group` (null where nobody says), and every other column as read."""

    frame: pl.DataFrame
    outcome: str
    """What the outcome is: the name of its column, or the gain from pre to post."""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    undefined: tuple[str, ...] = ()
    """Dialogues of the table that have no outcome, and so no row."""

    def __len__(self) -> int:
        return self.frame.height

    @property
    def grouped(self) -> bool:
        """Whether someone held several dialogues."""
        groups = self.frame["group"].drop_nulls()
        return groups.n_unique() < len(groups)

    def numbers(self, name: str) -> pl.Series:
        """A further column as numbers, true and false as 1 and 0."""
        if name not in self.frame.columns:
            raise DataError(f'there is no column "{name}"; {nearest(name, self.frame.columns)}', where="dialogues:")
        column = self.frame[name].alias("cell")
        numbers = _cast(column)
        place = first(column.is_not_null() & (numbers.is_null() | ~numbers.is_finite()))
        if place is not None:
            where = f'dialogue "{self.frame["dialogue"][place]}": {name}'
            raise DataError("must be a finite number", where=where, got=str(column[place]))
        return numbers


def read_dialogues(*sources: str | Path | Source, reading: DialogueReading = AS_IT_COMES) -> Dialogues:
    """Reads the dialogues in files: paths, globs, or `-` for standard input."""
    with opened(*sources) as files:
        tables = [read_source(file, Request()) for file in files]
        if len(tables) == 1:
            return _dialogues(tables[0], reading)
        whole = pl.concat([table.frame.drop(ROW) for table in tables], how="diagonal_relaxed")
    return dialogues(whole, reading=reading)


def dialogues(data: object, *, reading: DialogueReading = AS_IT_COMES) -> Dialogues:
    """The dialogues in a frame, in columns, or in rows.

    >>> rows = [{"dialogue": "d1", "pre": 0.5, "post": 0.75}, {"dialogue": "d2", "pre": 0.2, "post": 1.0}]
    >>> dialogues(rows).frame["outcome"].to_list()
    [0.5, 1.0]
    """
    return _dialogues(table_of(data, Request()), reading)


def _dialogues(table: Table, reading: DialogueReading) -> Dialogues:
    mapped = {**reading.columns, **({"outcome": reading.outcome} if reading.outcome else {})}
    check_mapping(mapped, DIALOGUE_ALIASES)
    resolved = resolve(table.columns, mapped, where=f"{table.name}:", aliases=DIALOGUE_ALIASES, keep_faults=True)
    cells = Cells(table, resolved.columns)
    faults = [*resolved.faults.values(), *_column_faults(cells, resolved.faults)]
    if faults:
        raise DataError.joined(faults)
    outcome, what = _outcome(cells)
    others = [one for one in table.frame.drop(ROW) if one.name not in ("dialogue", "outcome", "group")]
    frame = pl.DataFrame({one.name: one for one in (_names(cells), outcome, cells.text("group"), *others)})
    undefined = frame.filter(pl.col("outcome").is_null())
    lost = undefined["dialogue"].to_list()
    kept = frame.filter(pl.col("outcome").is_not_null())
    if kept.is_empty():
        raise DataError("no dialogue has an outcome", where=f"{table.name}:")
    warnings: tuple[str, ...] = ()
    if undefined.height:
        why = f" ({NO_GAIN})" if what == GAIN else ""
        warnings = (f"{_LEFT_OUT.with_count(undefined.height)}{why}: {first_names(lost, 5)}",)
    gain = (f"outcome: {GAIN}, (post - pre) / (1 - pre)",) if what == GAIN else ()
    return Dialogues(kept.sort("dialogue"), what, (*resolved.notes, *gain), warnings, tuple(lost))


def _column_faults(cells: Cells, unclear: Collection[str]) -> list[DataError]:
    """The faults that columns show by themselves; which columns play the unclear parts is known to be a fault."""
    checks: list[Callable[[], object]] = []
    if "dialogue" not in unclear:
        checks.append(lambda: _names(cells))
    if not {"outcome", "pre", "post"} & set(unclear):
        checks.append(lambda: _outcome(cells))
    if "outcome" not in cells:
        checks += [lambda part=part: _read_share(cells, part) for part in ("pre", "post")]  # type: ignore[misc]
    return faults_of(checks)


def _names(cells: Cells) -> pl.Series:
    if "dialogue" not in cells:
        rule = f"needs a column dialogue; there are {', '.join(cells.table.columns[:12])}"
        raise DataError(rule, where=cells.table.name, fix=mapping_of("dialogue", "COLUMN"))
    names = as_text(cells.table.frame[cells.columns["dialogue"]]).alias("dialogue")
    missing = first(names.is_null())
    if missing is not None:
        raise cells.fault("dialogue", missing, "must name the dialogue", got="nothing")
    repeated = names.is_duplicated()
    if repeated.any():
        name = names.filter(repeated)[0]
        places = [cells.place(place) for place in range(len(names)) if names[place] == name][:2]
        raise DataError(
            f'the dialogue "{name}" occurs twice, first at {places[0]}',
            where=f"{places[1]}:",
            fix="the table has one row per dialogue; users with several dialogues go into a column group",
        )
    return names


def _outcome(cells: Cells) -> tuple[pl.Series, str]:
    if "outcome" in cells:
        column = cells.table.frame[cells.columns["outcome"]]
        words = set(column.drop_nulls().str.to_lowercase().unique()) if column.dtype == pl.String else set()
        is_flag = column.dtype == pl.Boolean or (words and words <= {"true", "false", "yes", "no"})
        values = cells.flags("outcome").cast(pl.Float64) if is_flag else cells.numbers("outcome")
        return _finite(values, cells, "outcome").alias("outcome"), column.name
    if "pre" in cells and "post" in cells:
        pre, post = (_read_share(cells, part) for part in ("pre", "post"))
        gain = pl.select(pl.when(pre < 1).then((post - pre) / (1 - pre))).to_series()
        return gain.alias("outcome"), GAIN
    rule = f"needs a column outcome, or pre and post; there are {', '.join(cells.table.columns[:12])}"
    raise DataError(rule, where=cells.table.name, fix="`outcome` names another")


def _finite(values: pl.Series, cells: Cells, part: str) -> pl.Series:
    place = first(values.is_not_null() & ~values.is_finite())
    if place is not None:
        raise cells.fault(part, place, "must be a finite number", got=str(values[place]))
    return values


def _read_share(cells: Cells, part: str) -> pl.Series:
    values = _finite(cells.numbers(part), cells, part)
    place = first(values.is_not_null() & ~values.is_between(0, 1))
    if place is not None:
        fix = "test scores are shares of the questions, between 0 and 1"
        raise cells.fault(part, place, "must lie between 0 and 1", got=float(values[place]), fix=fix)
    return values


def match_dialogues(turns: Sequence[str], table: Dialogues, *, allowed: bool) -> tuple[list[str], list[str]]:
    """The dialogues that have both turns and an outcome, and a note on those that do not, which are refused.

    With `allowed` they are left out instead.
    """
    outcomes = table.frame["dialogue"].to_list()
    common = sorted({*turns} & {*outcomes})
    only_turns, only_outcomes = sorted({*turns} - {*outcomes}), sorted({*outcomes} - {*turns})
    if not common:
        raise DataError(
            f"no dialogue has both turns and an outcome: turns are of {_quote_names(only_turns)}, outcomes of "
            f"{_quote_names(only_outcomes)}",
            fix="do the names of dialogues agree?",
        )
    if not (only_turns or only_outcomes):
        return common, []
    if not allowed:
        undefined = [name for name in only_turns if name in table.undefined]
        absent = [name for name in only_turns if name not in table.undefined]
        why = f": {NO_GAIN}" if table.outcome == GAIN else ""
        rules = [
            f"{wording.with_count(len(names))} ({_quote_names(names)}){reason}"
            for wording, names, reason in (
                (_ABSENT, absent, ""),
                (_UNDEFINED, undefined, why),
                (_SILENT, only_outcomes, ""),
            )
            if names
        ]
        raise DataError(
            "; ".join(rules), fix=f"`matched` leaves such dialogues out and keeps the other {len(common):,}"
        )
    note = f"left out: {_WITHOUT.with_count(len(only_turns))} an outcome, {len(only_outcomes):,} without turns"
    return common, [note]


def _quote_names(names: Sequence[str]) -> str:
    return first_names(names, 3) or "none"


@dataclass(frozen=True, slots=True, eq=False)
class TableRows:
    """What is to be explained, by what, and which rows belong together."""

    names: tuple[str, ...]
    x: Array
    y: Array
    groups: NDArray[np.int64] | None


def table_rows(
    frame: pl.DataFrame, *, outcome: str, candidates: Sequence[str] | None = None, group: str | None = None
) -> TableRows:
    """The rows of a table; without candidates all other columns of numbers are such.

    >>> table = pl.DataFrame({"gain": [0.1, 0.4], "turns": ["7", "5"], "happy": ["yes", "no"], "who": ["ann", "bob"]})
    >>> table_rows(table, outcome="gain").names
    ('turns', 'happy')
    """
    for name in (outcome, *([] if group is None else [group])):
        if name not in frame.columns:
            raise UsageError(f'there is no column "{name}"; {nearest(name, frame.columns)}')
    names = _candidate_names(frame, outcome, candidates, group)
    x = np.stack([_finite_numbers(frame, name) for name in names], axis=1)
    y = _finite_numbers(frame, outcome)
    if y.size < 2:
        raise DataError("a regression needs at least two rows", got=int(y.size))
    if np.ptp(y) == 0:
        raise DataError(f"{outcome} is the same in every row, so there is nothing to explain", got=float(y[0]))
    return TableRows(names, x, y, None if group is None else number_groups(as_text(frame[group]), range(y.size)))


def _candidate_names(
    frame: pl.DataFrame, outcome: str, candidates: Sequence[str] | None, group: str | None
) -> tuple[str, ...]:
    if candidates is None:
        others = [frame[name] for name in frame.columns if name not in (outcome, group)]
        numeric = [
            one.name for one in others if _cast(one.alias("cell")).null_count() == one.null_count() < frame.height
        ]
        if not numeric:
            raise DataError("no other column holds numbers, so there is nothing to explain the outcome by")
        return tuple(numeric)
    if not candidates:
        raise UsageError("candidates are names of columns; got none")
    for name in candidates:
        if name not in frame.columns:
            raise UsageError(f'candidates: there is no column "{name}"; {nearest(name, frame.columns)}')
        if name == outcome:
            raise UsageError(f"candidates: {name} is the outcome itself")
    return tuple(dict.fromkeys(candidates))


def _finite_numbers(frame: pl.DataFrame, name: str) -> Any:
    numbers = _cast(frame[name].alias("cell"))
    place = first(numbers.is_null() | ~numbers.is_finite())
    if place is not None:
        fix = "leave the column out of the candidates, or fill the gaps"
        where = f"row {place + 1}: {name}"
        raise DataError("must be a number in every row", where=where, got=str(frame[name][place]), fix=fix)
    return numbers.to_numpy()


def _cast(column: pl.Series) -> pl.Series:
    """Numbers, and 1 and 0 for yes and no, as in a table of dialogues; null for anything else."""
    if column.dtype.is_numeric() or column.dtype == pl.Boolean:
        return column.cast(pl.Float64)
    if column.dtype != pl.String:
        return pl.Series(column.name, [None] * len(column), pl.Float64)
    words = column.str.strip_chars().str.to_lowercase()
    return words.replace({"true": "1", "yes": "1", "false": "0", "no": "0"}).cast(pl.Float64, strict=False)


def number_groups(groups: pl.Series, rows: Iterable[object]) -> NDArray[np.int64]:
    """The number of each row's group; a row without one is a group of its own, under its own name."""
    names = [f"\0{row}" if group is None else group for group, row in zip(groups, rows, strict=True)]
    return np.unique(np.array(names), return_inverse=True)[1].astype(np.int64)
