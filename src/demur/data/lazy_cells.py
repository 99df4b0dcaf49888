"""Columns of a lazy frame become text, labels, flags and numbers, as expressions that any engine understands.

Each gives an expression and, where a cell may be of no use, an expression that is true for such cells, to be counted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw

from demur.data.cells import FALSE, TRUE
from demur.errors import DataError

_AS_TEXT = (nw.String, nw.Categorical, nw.Enum, nw.Boolean, nw.Date)


@dataclass(frozen=True, slots=True)
class LazyColumns:
    """The columns of a lazy frame under the parts they play."""

    schema: Mapping[str, Any]
    columns: Mapping[str, str]
    where: str

    def __contains__(self, part: str) -> bool:
        return part in self.columns

    def kind(self, part: str) -> Any:
        """The type of the column that plays a part."""
        return self.schema[self.columns[part]]

    def text(self, part: str) -> nw.Expr:
        """A column as text: whole numbers without `.0`, NaN as null; all null when the table has none."""
        if part not in self:
            return nothing(nw.String)
        return text_of(self.columns[part], self.kind(part), self._where(part))

    def empty(self, part: str) -> nw.Expr:
        """Where a column has nothing to be read as text."""
        cell = nw.col(self.columns[part])
        return cell.is_null() | cell.is_nan() if self.kind(part).is_float() else cell.is_null()

    def fractional(self, part: str) -> nw.Expr | None:
        """Labels that are numbers with a fraction, whose text differs from engine to engine."""
        if part not in self or not self.kind(part).is_float():
            return None
        number = nw.col(self.columns[part])
        return ~number.is_nan() & (number.floor() != number)

    def flag(self, part: str) -> tuple[nw.Expr, nw.Expr | None]:
        """A column of yes and no, null where the cell is empty or the table has no such column."""
        if part not in self:
            return nothing(nw.Boolean), None
        column, kind = nw.col(self.columns[part]), self.kind(part)
        if kind == nw.Boolean:
            return column, None
        if not (kind.is_integer() or kind.is_float() or kind == nw.String):
            raise DataError("must be true or false", where=self._where(part), got=kind)
        if kind.is_numeric():
            yes, no = column == 1, column == 0
        else:
            plain = column.str.strip_chars().str.to_lowercase()
            yes, no = plain.is_in(TRUE), plain.is_in(FALSE)
        known = nw.when(yes | no).then(yes)
        return known, ~column.is_null() & ~(yes | no)

    def number(self, part: str) -> nw.Expr:
        """A column of numbers as 64-bit floats, null where the cell is empty or the table has no such column."""
        if part not in self:
            return nothing(nw.Float64)
        kind = self.kind(part)
        if not kind.is_numeric():
            raise DataError(
                "must be a number",
                where=self._where(part),
                got=kind,
                fix="store it as a number; without --engine text is read as the number it spells",
            )
        return nw.col(self.columns[part]).cast(nw.Float64)

    def _where(self, part: str) -> str:
        column = self.columns[part]
        mapped = f' (column "{column}")' if column != part else ""
        return f"{self.where}: {part}{mapped}"


@dataclass(frozen=True, slots=True)
class Stage:
    """Rows under their canonical names; the columns named in `faults` are true where a cell must be refused."""

    frame: nw.LazyFrame[Any]
    columns: LazyColumns
    lists: bool
    """Whether targets are lists of acceptable labels."""
    faults: tuple[str, ...]
    notes: tuple[str, ...]


def text_of(column: str, kind: Any, where: str) -> nw.Expr:
    """A column as text, the same in every engine: texts as they are, whole numbers without a fraction."""
    cell = nw.col(column)
    if kind.is_integer() or any(kind == known for known in _AS_TEXT):
        return cell.cast(nw.String)
    if kind.is_float():
        whole = ~cell.is_nan() & (cell.floor() == cell) & (cell.abs() < 2.0**53)
        return nw.when(whole).then(nw.when(whole).then(cell).otherwise(0.0).cast(nw.Int64).cast(nw.String))
    raise DataError("cannot be read as text inside an engine", where=where, got=kind)


def nothing(kind: Any) -> nw.Expr:
    """A column of nulls."""
    return nw.lit(None, dtype=kind)


def one_of(column: nw.Expr, labels: Collection[str]) -> nw.Expr:
    """Whether a text is one of the labels; false where it is null."""
    return column.is_in(list(labels)).fill_null(value=False) if labels else nw.lit(value=False)


def count_if(condition: nw.Expr) -> Any:
    """How many rows a condition holds for."""
    return nw.when(condition).then(1).count()
