"""Rows of trials: who performed, in which role, at which x, how well; each cell checked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import msgspec
import polars as pl

from demur.core.io.columns import TRIAL_ALIASES, Where, filtered, mapping_of, nearest, resolve_clear
from demur.core.io.files import read_table, table_of
from demur.core.io.sources import Source
from demur.core.io.tables import FALSE, ROW, TRUE, Cells, Request, Table, first
from demur.core.show.numbers import ROWS
from demur.errors import DataError, UsageError, faults_of
from demur.returns.table import SOURCE

Role = Literal["gold", "system"]

ROLES: Mapping[str, Role] = {
    "gold": "gold",
    "wizard": "gold",
    "human": "gold",
    "reference": "gold",
    "system": "system",
    "machine": "system",
}
"""What a column role may say, in any letter case."""

NOTHING_ON = "[]"
"""How the column components says that nothing was switched on."""

_SEPARATORS = re.compile(r"[+,;]")


@dataclass(frozen=True, slots=True)
class TrialRequest:
    """What is asked of a table: the two columns that were measured, those of other names, and which rows count."""

    x: str
    y: str
    columns: Mapping[str, str]
    where: Where


@dataclass(frozen=True, slots=True)
class TrialRows:
    """Rows of one or more tables, and the tables they stand in.

    `frame` has study, performer, role (null where no column says it), x, y, n, subject and components, the last as
    the JSON of the sorted names of what was on. A number or a subject that is missing is null.
    """

    frame: pl.DataFrame
    tables: Sequence[Table]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def place(self, position: int) -> str:
        """Says where in its file a row stands."""
        table = self.tables[int(self.frame[SOURCE][position])]
        return table.place(int(self.frame[ROW][position]))

    def fault(self, position: int, column: str, rule: str, *, got: object, fix: str = "") -> DataError:
        """The fault of one cell."""
        return DataError(rule, where=f"{self.place(position)}: {column}", got=got, fix=fix)

    def only(self, rows: pl.Series | pl.Expr) -> TrialRows:
        """Only these rows."""
        return replace(self, frame=self.frame.filter(rows))


def rows_of(tables: Sequence[Table], studies: Sequence[str], request: TrialRequest) -> TrialRows:
    """The rows of tables; a table without a column study is the study of the name given."""
    frames, notes, warnings = [], [], []
    for number, (table, study) in enumerate(zip(tables, studies, strict=True)):
        cells, found = _resolved(table, request)
        notes += found
        if cells.table.frame.is_empty():
            warnings.append(f"{table.name}: no row is left where {_where_text(request.where)}")
            continue
        frame, found = _trial_columns(cells, request, study)
        frames.append(frame.with_columns(pl.lit(number).alias(SOURCE)))
        notes += found
    if not frames:
        raise DataError(f"no row is left where {_where_text(request.where)}", where=f"{tables[0].name}:")
    return TrialRows(pl.concat(frames), tables, tuple(dict.fromkeys(notes)), tuple(warnings))


def _resolved(table: Table, request: TrialRequest) -> tuple[Cells, list[str]]:
    faults = _unmeasured(table, request)
    others = [name for name in table.columns if name not in (request.x, request.y)]
    found = resolve_clear(others, request.columns, where=f"{table.name}:", aliases=TRIAL_ALIASES)
    faults += found.faults.values()
    if "performer" not in {*found.columns, *found.faults}:
        rule = f"needs a column performer; there are {', '.join(table.columns[:12])}"
        faults.append(DataError(rule, where=table.name, fix=mapping_of("performer", "COLUMN")))
    if faults:
        raise DataError.joined(faults)
    cells = filtered(Cells(_stripped(table), found.columns), request.where)
    notes = list(found.notes)
    if request.where:
        kept = (
            f"{cells.table.frame.height:,} of {ROWS.told(table.frame.height)} kept where {_where_text(request.where)}"
        )
        notes.append(f"{table.name}: {kept}")
    return cells, notes


def _unmeasured(table: Table, request: TrialRequest) -> list[DataError]:
    """The faults of columns that were to be measured and are not there; refuses a column that is to be two things."""
    if request.x == request.y:
        raise UsageError(f'x and y are both the column "{request.x}"; performance is measured against something else')
    for part, column in request.columns.items():
        if column in (request.x, request.y):
            option = "x" if column == request.x else "y"
            raise UsageError(f'the column "{column}" is {option} and cannot be {part} as well')
    rule, where = 'there is no column "{}"; {}', f"{table.name}:"
    return [
        DataError(rule.format(name, nearest(name, table.columns)), where=where, fix=f"--{option} names the column")
        for option, name in (("x", request.x), ("y", request.y))
        if name not in table.columns
    ]


def _where_text(where: Where) -> str:
    return " and ".join(f"{column} is {value}" for column, value in where)


def _trial_columns(cells: Cells, request: TrialRequest, study: str) -> tuple[pl.DataFrame, list[str]]:
    measured = replace(cells, columns={name: name for name in (request.x, request.y)})
    try:
        return _columns(cells, measured, request, study)
    except DataError as fault:
        raise DataError.joined([fault, *_column_faults(cells, measured, request)]) from None


def _column_faults(cells: Cells, measured: Cells, request: TrialRequest) -> list[DataError]:
    """The faults that each column shows by itself."""
    return faults_of(
        [
            lambda: _required_names(cells, "study") if "study" in cells else None,
            lambda: _required_names(cells, "performer"),
            lambda: _roles(cells),
            lambda: _finite(measured, request.x, measured.numbers(request.x)),
            lambda: _finite(measured, request.y, _performance(measured, request.y)),
            lambda: _finite(cells, "n", cells.numbers("n")),
            lambda: _components(cells),
        ]
    )


def _columns(cells: Cells, measured: Cells, request: TrialRequest, study: str) -> tuple[pl.DataFrame, list[str]]:
    roles, notes = _roles(cells)
    columns = [
        cells.table.frame[ROW],
        _required_names(cells, "study")
        if "study" in cells
        else pl.repeat(study, len(roles), eager=True).alias("study"),
        _required_names(cells, "performer"),
        roles,
        _finite(measured, request.x, measured.numbers(request.x)).alias("x"),
        _finite(measured, request.y, _performance(measured, request.y)).alias("y"),
        _finite(cells, "n", cells.numbers("n")),
        cells.text("subject"),
        _components(cells),
    ]
    return pl.DataFrame(columns), notes


def _stripped(table: Table) -> Table:
    """The table with its text without the space around it, null where nothing else is there."""
    bare = pl.col(pl.String).str.strip_chars()
    return replace(table, frame=table.frame.with_columns(pl.when(bare != "").then(bare)))


def _required_names(cells: Cells, part: str) -> pl.Series:
    names = cells.text(part)
    missing = first(names.is_null())
    if missing is not None:
        raise cells.fault(part, missing, f"must name the {part}", got="nothing")
    return names


def _roles(cells: Cells) -> tuple[pl.Series, list[str]]:
    given = cells.text("role").str.to_lowercase()
    roles = given.replace_strict(dict(ROLES), default=None, return_dtype=pl.String)
    if "role" not in cells:
        return roles, []
    bad = first(roles.is_null())
    if bad is not None:
        got = cells.text("role")[bad]
        raise cells.fault("role", bad, "must be gold or system", got="nothing" if got is None else got)
    others = sorted(set(given) - {"gold", "system"})
    return roles, [f'role "{word}" read as {ROLES[word]}' for word in others]


def _performance(cells: Cells, name: str) -> pl.Series:
    """Numbers as they are, yes and no in their usual spellings as 1 and 0."""
    series = cells.table.frame[name]
    words = set(series.str.to_lowercase().drop_nulls()) if series.dtype == pl.String else {""}
    if series.dtype == pl.Boolean or words <= {*TRUE, *FALSE}:
        return cells.flags(name).cast(pl.Float64)
    return cells.numbers(name)


def _finite(cells: Cells, part: str, values: pl.Series) -> pl.Series:
    """Refuses what is infinite. NaN is a missing value, as frames that know no null have it; -0 is 0."""
    known = values.fill_nan(None)
    bad = first(known.is_infinite())
    if bad is not None:
        raise cells.fault(part, bad, "must be a finite number", got=str(known[bad]))
    return pl.select(pl.when(known == 0).then(0.0).otherwise(known).alias(known.name)).to_series()


def _components(cells: Cells) -> pl.Series:
    text = cells.text("components")
    known = {cell: component_names(cell) for cell in text.drop_nulls().unique()}
    coded = {cell: msgspec.json.encode(names).decode() for cell, names in known.items() if names is not None}
    read = text.replace_strict(coded, default=None, return_dtype=pl.String)
    bad = first(text.is_not_null() & read.is_null())
    if bad is not None:
        fix = "write asr+nlu, a list of names, or none"
        raise cells.fault("components", bad, "must list the names of what was on", got=text[bad], fix=fix)
    return read.fill_null(NOTHING_ON)


def component_names(text: str) -> list[str] | None:
    """The names a cell lists, each once and sorted; None where it cannot be read as a list of names.

    >>> component_names("repair + asr"), component_names('["asr", "repair"]'), component_names("none")
    (['asr', 'repair'], ['asr', 'repair'], [])
    """
    if text.startswith(("[", "{")):
        try:
            names = [name for name in msgspec.json.decode(text, type=list[str | None]) if name is not None]
        except (msgspec.MsgspecError, RecursionError):
            return None
    else:
        names = [] if text.casefold() == "none" else _SEPARATORS.split(text)
    return sorted({stripped for name in names if (stripped := name.strip())})


_PLAYED = {name for part, others in TRIAL_ALIASES.items() for name in (part, *others)}


def measured_columns(tables: Sequence[Any], x: str | None, y: str | None) -> tuple[str, str, list[str]]:
    """What makes it harder and how well it went, with a note of what was guessed.

    The performance is the only column of 0 and 1 (or, beside a column n, of shares), what makes it harder the only
    other column of numbers. Where there are several of either, nothing is guessed.

    >>> rows = {"performer": ["wizard", "A"], "wer": [0.1, 0.35], "completed": [1, 0]}
    >>> measured_columns([rows], None, None)
    ('wer', 'completed', ['x <- wer, y <- completed: the only columns they could be'])
    """
    if x is not None and y is not None:
        return x, y, []
    frame = pl.concat([_frame(table) for table in tables], how="diagonal_relaxed")
    numbers = {name: _as_numbers(frame[name]) for name in frame.columns if name.casefold() not in _PLAYED}
    known = {name: column for name, column in numbers.items() if column is not None and name not in (x, y)}
    shares = "n" in frame.columns
    ends = [name for name, column in known.items() if _is_success(column, shares=shares)]
    others = [name for name in known if name not in ends]
    found_y = [y] if y is not None else ends if x is None or len(ends) == 1 else list(known)
    found_x = [x] if x is not None else others if y is None or len(others) == 1 else list(known)
    if len(found_x) != 1 or len(found_y) != 1:
        raise UsageError(
            "trials need --x, what makes it harder, and --y, how well it went; columns of numbers here: "
            f"{', '.join(known) or 'none'}"
        )
    return found_x[0], found_y[0], [f"x <- {found_x[0]}, y <- {found_y[0]}: the only columns they could be"]


def _frame(table: Any) -> pl.DataFrame:
    return read_table(table) if isinstance(table, str | Path | Source) else table_of(table, Request()).frame.drop(ROW)


def _as_numbers(column: pl.Series) -> pl.Series | None:
    """A column as numbers, or nothing where some cell is none."""
    if column.dtype == pl.Boolean or column.dtype.is_numeric():
        return column.cast(pl.Float64).drop_nulls()
    if column.dtype != pl.String:
        return None
    words = column.str.to_lowercase().replace({"true": "1", "yes": "1", "false": "0", "no": "0"})
    found = words.str.strip_chars().cast(pl.Float64, strict=False)
    return None if (found.is_null() & column.is_not_null()).any() else found.drop_nulls()


def _is_success(column: pl.Series, *, shares: bool) -> bool:
    return not column.is_empty() and bool(column.is_between(0, 1).all() if shares else column.is_in([0.0, 1.0]).all())
