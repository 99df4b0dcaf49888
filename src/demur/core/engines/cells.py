"""Columns of a lazy frame become text, labels, flags and numbers, as expressions that any engine understands.

Each gives an expression and, where a cell may be of no use, an expression that is true for such cells, to be counted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import polars as pl

from demur.core.io.tables import FALSE, TRUE, as_text
from demur.errors import DataError

_AS_TEXT = (nw.String, nw.Categorical, nw.Enum, nw.Boolean, nw.Date)
_EXACT = 2.0**53
"""Up to here every whole number is a float of its own, and every engine writes it alike."""


@dataclass(frozen=True, slots=True)
class LazyColumns:
    """The columns of a lazy frame under the parts they play."""

    schema: Mapping[str, Any]
    columns: Mapping[str, str]
    where: str
    names: tuple[str, ...]
    """All columns of the log, those too that were not read: what a misspelt name may have meant."""

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

    def flag(self, part: str) -> tuple[nw.Expr, nw.Expr | None]:
        """A column of yes and no, null where the cell is empty or the table has no such column."""
        if part not in self:
            return nothing(nw.Boolean), None
        column, kind = nw.col(self.columns[part]), self.kind(part)
        if kind == nw.Boolean:
            return column, None
        given = ~column.is_null()
        if kind.is_integer() or kind.is_float():
            yes, no = column == 1, column == 0
            given = given & ~column.is_nan() if kind.is_float() else given
        elif any(kind == text for text in (nw.String, nw.Categorical, nw.Enum)):
            plain = column.cast(nw.String).str.strip_chars().str.to_lowercase()
            yes, no = plain.is_in(TRUE), plain.is_in(FALSE)
        else:
            raise DataError("must be true or false", where=self._where(part), got=kind)
        return nw.when(yes | no).then(yes), given & ~(yes | no)

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
                fix="store it as a number; only --engine memory reads text as the number it spells",
            )
        return nw.col(self.columns[part]).cast(nw.Float64)

    def _where(self, part: str) -> str:
        column = self.columns[part]
        mapped = f' (column "{column}")' if column != part else ""
        return f"{self.where}: {part}{mapped}"


def text_of(column: str, kind: Any, where: str) -> nw.Expr:
    """A column as text, the same in every engine: texts as they are, whole numbers without a fraction."""
    cell = nw.col(column)
    if kind.is_integer() or _is_whole_decimal(kind) or any(kind == known for known in _AS_TEXT):
        return cell.cast(nw.String)
    if kind.is_float():
        whole = _is_whole(cell)
        return nw.when(whole).then(nw.when(whole).then(cell).otherwise(0.0).cast(nw.Int64).cast(nw.String))
    fix = "store it as text or as whole numbers"
    raise DataError("cannot be read as text inside an engine", where=where, got=kind, fix=fix)


def no_text(column: str, kind: Any) -> nw.Expr | None:
    """Where `text_of` has no text for a number: one with a fraction, or so large that engines write it differently."""
    if not kind.is_float():
        return None
    cell = nw.col(column)
    return ~cell.is_null() & ~cell.is_nan() & ~_is_whole(cell)


def _is_whole(number: nw.Expr) -> nw.Expr:
    """Whether a number is whole and written alike by every engine; Spark rounds down only what fits an integer."""
    tame = nw.when(~number.is_nan() & (number.abs() < _EXACT)).then(number).otherwise(0.5)
    return tame.floor() == tame


def _is_whole_decimal(kind: Any) -> bool:
    """Whether a column holds whole numbers as decimals, as which Spark reads unsigned 64-bit integers."""
    return bool(kind == nw.Decimal) and getattr(kind, "scale", None) == 0


def has_value(column: str, kind: Any, value: str, where: str) -> nw.Expr:
    """Whether a column, read as text, has a value; numbers are compared as numbers, whose text engines differ on."""
    if not kind.is_float():
        return text_of(column, kind, where) == value
    spelled = pl.Series([value]).cast(pl.Float32 if kind == nw.Float32 else pl.Float64, strict=False)
    if as_text(spelled).item() != value:
        return nw.col(column).is_null() & ~nw.col(column).is_null()  # never: a literal cannot filter
    number: float = spelled.cast(pl.Float64).item()
    return (nw.col(column) == number) & ~nw.col(column).is_nan()  # statistics that leave NaN out mislead DuckDB


def nothing(kind: Any) -> nw.Expr:
    """A column of nulls."""
    return nw.lit(None, dtype=kind)


def one_of(column: nw.Expr, labels: Collection[str]) -> nw.Expr:
    """Whether a text is one of the labels; false where it is null."""
    return column.is_in(list(labels)).fill_null(value=False) if labels else nw.lit(value=False)


def count_if(condition: nw.Expr) -> Any:
    """How many rows a condition holds for."""
    return nw.when(condition).then(1).count()
