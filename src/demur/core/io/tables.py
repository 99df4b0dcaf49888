"""A table as read, in memory or in an engine; cells become text, labels, flags or numbers, or a fault.

In memory a fault names its row. In an engine columns are expressions that any engine understands; with one that may
hold cells of no use comes an expression that is true for these, to be counted.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import reduce
from typing import Any, cast

import msgspec
import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars import selectors
from polars.exceptions import PanicException, PolarsError

from demur.core.io.sources import quiet_panics
from demur.core.show.numbers import INPUTS, SUCH_ROWS, Wording, first_names
from demur.errors import DataError

ROW = "demur:row"
"""The column that numbers the rows of a table as they stood in its source, from 0."""

SOURCE = "demur:source"
"""The column that numbers the table a row came from."""

HEAVIEST = 1e100
"""A weight up to which sums of squares are numbers; its inverse is the least but for 0."""

LABELS = pl.List(pl.String)
NOT_FLAG, NOT_NUMBER, FLAGS = "must be true or false", "must be a number", "write true or false, yes or no, 1 or 0"

TRUE, FALSE = ("true", "yes", "1", "1.0"), ("false", "no", "0", "0.0")
"""How yes and no may be written, in any letter case."""

_WHOLE_AS_FLOAT, _DECIMAL_COMMA = r"^(-?\d+)\.0+$", r"^\s*[-+]?\d*,\d+\s*%?\s*$"
_NOTHING = ("", "-", "–", "?", "na", "n/a", "n.a.", "#n/a", "nan", "nil", "none", "null")  # where there is no number
_PERCENTAGE = re.compile(r"\s*[-+]?\d*[.,]?\d+\s*%\s*")
_TEXTS = (nw.String, nw.Categorical, nw.Enum)
_EXACT = 2.0**53
"""Up to here every whole number is a float of its own, and every engine writes it alike."""

Places = NDArray[np.uint32]
Hashes = NDArray[np.uint64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a reader of a table needs of it.

    `candidates` is given the names seen so far and gives the columns to read, among them names that may first
    appear in a later row. `numeric` are columns expected to hold numbers. `every_name` asks for the names in
    all rows, not only those of the first thousand.
    """

    candidates: Callable[[Collection[str]], Collection[str]] = lambda names: names
    numeric: frozenset[str] = frozenset()
    every_name: bool = True

    def among(self, names: Collection[str]) -> list[str]:
        """Gives the wanted columns that are there; the first of all when none is, to count the rows."""
        wanted = [name for name in dict.fromkeys(self.candidates(names)) if name in names]
        return wanted or list(names)[:1]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows as read, with a name for the source and a function that says where a row stands in it."""

    frame: pl.DataFrame
    columns: tuple[str, ...]
    name: str
    place: Callable[[int], str]
    paths: tuple[str, ...] = ()
    """Paths to values inside the objects and lists of a row, which parts can be mapped from."""


def is_pattern(name: str) -> bool:
    """Whether Polars and engines would take the name of a column for a pattern of names.

    >>> is_pattern("*"), is_pattern("^a$"), is_pattern("a*")
    (True, True, False)
    """
    return name == "*" or (name.startswith("^") and name.endswith("$"))


def named_column(name: str) -> pl.Expr:
    """Gives the column of this very name, also where it looks like a pattern.

    >>> pl.DataFrame({"*": [1], "a": [2]}).select(named_column("*")).columns
    ['*']
    """
    return selectors.by_name(name) if is_pattern(name) else pl.col(name)


def refuse_patterns(names: Iterable[str], where: str) -> None:
    """Refuses columns whose names an engine would take for patterns."""
    for name in filter(is_pattern, names):
        rule = f'the column "{name}" is called what an engine takes for a pattern of names'
        raise DataError(rule, where=f"{where}:", fix="rename it, or use --engine memory")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLimits:
    """How large a table may be that is read for somebody who is not trusted, and what else can be done."""

    columns: int
    rows: int
    cells: int
    fix: str


_limits: ContextVar[TableLimits | None] = ContextVar("limits", default=None)


@contextmanager
def limited(limits: TableLimits) -> Iterator[None]:
    """Has tables beyond limits refused before their cells are read."""
    before = _limits.set(limits)
    try:
        yield
    finally:
        _limits.reset(before)


def refuse_large(columns: int, rows: int, where: str) -> None:
    """Refuses a table beyond the limits, if there are any.

    >>> with limited(TableLimits(columns=2, rows=5, cells=9, fix="cut it")):
    ...     refuse_large(2, 5, "a.csv")
    Traceback (most recent call last):
    demur.errors.DataError: a.csv: has more than 9 cells, which are the most here (cut it)
    """
    limits = _limits.get()
    if limits is None:
        return
    counts = {"columns": columns, "rows": rows, "cells": columns * rows}
    for what, count in counts.items():
        if count > (most := getattr(limits, what)):
            rule = f"has more than {most:,} {what}, which are the most here"
            raise DataError(rule, where=f"{where}:", fix=limits.fix)


def numbered(frame: pl.DataFrame, *, columns: Collection[str], name: str, place: Callable[[int], str]) -> Table:
    """Gives the table of a frame whose rows stand in the order of the source, each column in one piece.

    Polars would otherwise bring the pieces of all columns into line again for everything that is asked of them.
    """
    for own in (one for one in frame.columns if one.startswith("demur:")):
        raise DataError(f'the column "{own}" is called what demur calls its own', where=f"{name}:", fix="rename it")
    return Table(in_one_piece(frame).with_row_index(ROW), tuple(columns), name, place)


def in_one_piece(frame: pl.DataFrame) -> pl.DataFrame:
    """Gives a frame with each column in one piece; the frame given, which must be nobody else's, is emptied meanwhile.

    So the pieces of one column at a time are held twice, not those of all.
    """
    if not frame.width:
        return frame
    return pl.DataFrame({name: frame.drop_in_place(name).rechunk() for name in frame.columns})


@dataclass(frozen=True, slots=True)
class Cells:
    """The columns of a table under the parts they play."""

    table: Table
    columns: Mapping[str, str]

    def __contains__(self, part: str) -> bool:
        return part in self.columns

    def text(self, part: str) -> pl.Series:
        """Gives a column as text, all null when the table has none."""
        return as_text(self._series(part, pl.String()))

    def labels(self, part: str) -> pl.Series:
        """Gives a column of labels as text, or as lists of text when the column is of lists."""
        series = self._series(part, pl.String())
        if isinstance(series.dtype, pl.List | pl.Array) and not series.dtype.inner.is_nested():
            inner = series.dtype.inner
            text = _text_of(pl.element(), has_fractions=inner.is_float())
            return series.cast(pl.List(inner)).list.eval(text)
        return as_text(series)

    def flags(self, part: str) -> pl.Series:
        """Gives a column of yes and no, null where the cell is empty or the table has no such column."""
        series = self._series(part, pl.Boolean())
        if series.dtype == pl.Boolean:
            return series
        numeric = series.dtype.is_float() or series.dtype.is_integer()
        cells = nw.from_native((series if numeric else as_text(series)).to_frame("cell"))
        flag, bad = flag_of(nw.col("cell"), cells.schema["cell"])
        found = cells.select(flag=flag, bad=bad).to_polars()
        self._refuse(part, found["bad"], NOT_FLAG, lambda _: FLAGS)
        return found["flag"].alias(part)

    def numbers(self, part: str) -> pl.Series:
        """Gives a column of numbers, null where the cell is empty or the table has no such column."""
        series = self._series(part, pl.Float64()).alias("cell")
        if series.dtype.is_numeric() or series.dtype == pl.Null:
            return series.cast(pl.Float64).alias(part)
        text = series if series.dtype == pl.String else pl.Series([None] * len(series), dtype=pl.String)
        numbers = text.str.strip_chars().cast(pl.Float64, strict=False)
        self._refuse(part, series.is_not_null() & numbers.is_null(), NOT_NUMBER, _number_hint)
        return numbers.alias(part)

    def spelled_numbers(self, part: str, decimal: str = "guess") -> tuple[pl.Series, str]:
        """Gives a column of numbers, with percent signs or decimal commas where all cells have them, and what was read.

        Signs or commas in some cells only are refused at the first cell of the rarer kind; where `decimal` is a comma
        or a point, cells with the other.
        """
        texts = self._series(part, pl.Float64()).alias("cell")
        if texts.dtype != pl.String:
            return self.numbers(part), ""
        if decimal != "," and (plain := _plain_numbers(texts)) is not None:
            return plain.alias(part), ""
        texts = texts.str.strip_chars()
        signed, commas = texts.str.ends_with("%"), texts.str.contains(_DECIMAL_COMMA)
        points = texts.str.contains(".", literal=True)
        given = len(texts) - texts.null_count()
        read = []
        for mark, others in ((",", points), (".", commas)):
            if decimal == mark:
                rule = f'must have "{mark}" before decimals, as `decimal` says'
                self._refuse(part, others.fill_null(value=False), rule)
        if signs := int(signed.sum()):
            rarer = signed if 2 * signs < given else texts.is_not_null() & ~signed
            rule = f"must be written in one way: {signs:,} of {given:,} cells have a percent sign"
            self._refuse(part, rarer, rule, lambda got: _empty_hint(got) or "write the sign in all cells or in none")
            texts, read = texts.str.strip_suffix("%").str.strip_chars(), ["percent signs"]
        if count := int(commas.sum()):
            rarer = commas if 2 * count < given else points
            if points.any():
                rule = f"must be written in one way: {count:,} of {given:,} cells have a decimal comma"
                self._refuse(part, rarer, rule, lambda got: _empty_hint(got) or "write commas in all cells or in none")
            texts, read = texts.str.replace(",", ".", literal=True), [*read, "decimal commas"]
        if not read:
            return self.numbers(part), ""
        numbers = texts.cast(pl.Float64, strict=False)
        self._refuse(part, texts.is_not_null() & numbers.is_null(), NOT_NUMBER, _number_hint)
        return ((numbers / 100).round(12) if signs else numbers).alias(part), f"{part} read with {' and '.join(read)}"

    def fault(self, part: str, position: int, rule: str, *, got: object = None, fix: str = "") -> DataError:
        """Gives the fault of one cell: where it stands, the rule it breaks, and how its column was found."""
        column = self.columns.get(part, part)
        mapped = f'column mapped from "{column}"' if column != part else ""
        hint = "; ".join(piece for piece in (mapped, fix) if piece)
        row = int(self.table.frame[ROW][position])
        return DataError(rule, where=f"{self.table.place(row)}: {part}", got=got, fix=hint, row=row)

    def place(self, position: int) -> str:
        """Says where in its source the row at a position of the frame stands."""
        return self.table.place(int(self.table.frame[ROW][position]))

    def _series(self, part: str, missing: pl.DataType) -> pl.Series:
        if part in self.columns:
            return self.table.frame[self.columns[part]].alias(part)
        return pl.Series(part, [None], dtype=missing).new_from_index(0, self.table.frame.height)

    def _refuse(self, part: str, bad: pl.Series, rule: str, hint: Callable[[object], str] = lambda _: "") -> None:
        position = first(bad)
        if position is not None:
            cell = self._series(part, pl.String())[position]
            got = cell.to_list() if isinstance(cell, pl.Series) else cell
            raise self.fault(part, position, rule, got=got, fix=hint(got))


def _plain_numbers(texts: pl.Series) -> pl.Series | None:
    """Gives texts as the numbers they are, some at a time so that little is held twice; None where one is no number."""
    parts = []
    for some in texts.to_frame("cell").iter_slices(PACKED_ROWS):
        parts.append(some["cell"].str.strip_chars().cast(pl.Float64, strict=False))
        if parts[-1].null_count() > some["cell"].null_count():
            return None
    return pl.concat(parts, rechunk=True) if parts else texts.cast(pl.Float64)


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
            return nw.lit(None, dtype=nw.String)
        return text_of(self.columns[part], self.kind(part), self._place(part))

    def empty(self, part: str) -> nw.Expr:
        """Where a column has nothing to be read as text."""
        cell = nw.col(self.columns[part])
        return cell.is_null() | cell.is_nan() if self.kind(part).is_float() else cell.is_null()

    def flag(self, part: str) -> tuple[nw.Expr, nw.Expr | None]:
        """A column of yes and no, null where the cell is empty or the table has no such column."""
        if part not in self:
            return nw.lit(None, dtype=nw.Boolean), None
        cell, kind = nw.col(self.columns[part]), self.kind(part)
        if kind == nw.Boolean:
            return cell, None
        if not (kind.is_integer() or kind.is_float() or kind in _TEXTS):
            raise DataError(NOT_FLAG, where=self._place(part), got=kind)
        return flag_of(cell, kind)

    def number(self, part: str) -> nw.Expr:
        """A column of numbers as 64-bit floats, null where the cell is empty or the table has no such column."""
        if part not in self:
            return nw.lit(None, dtype=nw.Float64)
        kind = self.kind(part)
        if not kind.is_numeric():
            fix = "store it as a number; only --engine memory reads text as the number it spells"
            raise DataError(NOT_NUMBER, where=self._place(part), got=kind, fix=fix)
        return nw.col(self.columns[part]).cast(nw.Float64)

    def fault(
        self, part: str, bad: nw.Expr, rule: str, *, count: int = 0, got: object = None, fix: str = ""
    ) -> DataError:
        """Gives the fault of the rows for which a condition holds: by the name of the log, and how many they are."""
        del bad
        counted = f"{rule} ({SUCH_ROWS.with_count(count)} in all)" if count else rule
        return DataError(counted, where=f"{self.where}: {part}", got=got, fix=fix)

    def _place(self, part: str) -> str:
        column = self.columns[part]
        mapped = f' (column "{column}")' if column != part else ""
        return f"{self.where}: {part}{mapped}"


def flag_of(cell: nw.Expr, kind: Any) -> tuple[nw.Expr, nw.Expr]:
    """Whether a number or a text says yes, null where it does not say, and whether it is given and does not say."""
    given = ~cell.is_null()
    if kind.is_numeric():
        yes, no = cell == 1, cell == 0
        given = given & ~cell.is_nan() if kind.is_float() else given
    else:
        plain = cell.cast(nw.String).str.strip_chars().str.to_lowercase()
        yes, no = plain.is_in(TRUE), plain.is_in(FALSE)
    return nw.when(yes | no).then(yes), given & ~(yes | no)


def text_of(column: str, kind: Any, where: str) -> nw.Expr:
    """A column as text, the same in every engine: texts as they are, whole numbers without a fraction.

    Whole numbers may be decimals, as which Spark reads unsigned 64-bit integers.
    """
    cell = nw.col(column)
    whole_decimal = kind == nw.Decimal and getattr(kind, "scale", None) == 0
    if kind.is_integer() or whole_decimal or kind in (*_TEXTS, nw.Boolean, nw.Date):
        return cell.cast(nw.String)
    if kind.is_float():
        whole = _is_whole(cell)
        return nw.when(whole).then(nw.when(whole).then(cell).otherwise(0.0).cast(nw.Int64).cast(nw.String))
    fix = "store it as text or as whole numbers"
    raise DataError("cannot be read as text inside an engine", where=where, got=kind, fix=fix)


def no_text(column: str, kind: Any) -> nw.Expr | None:
    """Where `text_of` has no text for a number: one with a fraction, or so large that engines write it differently."""
    cell = nw.col(column)
    return ~cell.is_null() & ~cell.is_nan() & ~_is_whole(cell) if kind.is_float() else None


def _is_whole(number: nw.Expr) -> nw.Expr:
    """Whether a number is whole and written alike by every engine; Spark rounds down only what fits an integer."""
    tame = nw.when(~number.is_nan() & (number.abs() < _EXACT)).then(number).otherwise(0.5)
    return tame.floor() == tame


def has_value(column: str, kind: Any, value: str, where: str) -> nw.Expr:
    """Whether a column, read as text, has a value; numbers are compared as numbers, whose text engines differ on."""
    if not kind.is_float():
        return text_of(column, kind, where) == value
    spelled = pl.Series([value]).cast(pl.Float32 if kind == nw.Float32 else pl.Float64, strict=False)
    if as_text(spelled).item() != value:
        return nw.col(column).is_null() & ~nw.col(column).is_null()  # never: a literal cannot filter
    number: float = spelled.cast(pl.Float64).item()
    return (nw.col(column) == number) & ~nw.col(column).is_nan()  # statistics that leave NaN out mislead DuckDB


def _number_hint(got: object) -> str:
    if (hint := _empty_hint(got)) or not isinstance(got, str):
        return hint
    if re.match(_DECIMAL_COMMA, got) and "%" not in got:
        return "write a decimal point, not a comma"
    return "write it without the percent sign, as a fraction" if _PERCENTAGE.fullmatch(got) else ""


def _empty_hint(got: object) -> str:
    return "leave the cell empty where there is none" if str(got).strip().lower() in _NOTHING else ""


def first(flags: pl.Series) -> int | None:
    """Gives the position of the first true flag."""
    return flags.arg_max() if flags.any() else None


def as_text(series: pl.Series) -> pl.Series:
    """Gives a column as text: whole numbers without `.0`, lists and objects as JSON, NaN as null."""
    if series.dtype.is_nested() or series.dtype == pl.Object:
        coded = [None if cell is None else msgspec.json.encode(cell).decode() for cell in series.to_list()]
        return pl.Series(series.name, coded, dtype=pl.String)
    if series.dtype == pl.String:
        return series
    text = _text_of(pl.all(), has_fractions=series.dtype.is_float())  # by a name like `^a$` Polars looks for a pattern
    try:
        with quiet_panics():
            return series.to_frame().select(text).to_series()
    except (PolarsError, PanicException):  # it panics at dates that no calendar has
        raise DataError("holds what cannot be read as text", where=f"column {series.name}", got=series.dtype) from None


CATEGORISED_ROWS, MOST_CATEGORIES = 100_000, 1000
"""Rows from which a column of texts is kept as categories, and how many different texts it has at most."""


def in_categories(values: pl.Series) -> pl.Series:
    """Gives a long column of texts of which few differ as categories, which take a quarter of the room."""
    many = len(values) >= CATEGORISED_ROWS and values.dtype == pl.String
    few = many and values.head(CATEGORISED_ROWS // 10).n_unique() <= MOST_CATEGORIES
    return values.cast(pl.Categorical) if few and values.n_unique() <= MOST_CATEGORIES else values


PACKED_ROWS = 1 << 16
"""Rows whose texts are compressed together."""


@dataclass(frozen=True, slots=True, eq=False)
class PackedTexts:
    """A column of texts in compressed blocks: in long logs texts take most of the room, and few are shown.

    A block is None where the rows have no texts; `heights` has the number of rows of each block.

    >>> texts = PackedTexts.of(pl.Series(["a", "b"])) + PackedTexts((None,), (3,)) + PackedTexts.of(pl.Series(["c"]))
    >>> texts.at(pl.Series([1, 3, 5])).to_list()
    ['b', None, 'c']
    """

    blocks: tuple[bytes | None, ...]
    heights: tuple[int, ...]

    @classmethod
    def of(cls, texts: pl.Series) -> PackedTexts:
        """The texts, compressed."""
        slices = [texts.slice(start, PACKED_ROWS) for start in range(0, len(texts), PACKED_ROWS)]
        return cls(tuple(map(_packed, slices)), tuple(map(len, slices)))

    def __add__(self, other: PackedTexts) -> PackedTexts:
        return PackedTexts(self.blocks + other.blocks, self.heights + other.heights)

    def at(self, places: pl.Series) -> pl.Series:
        """The texts at places, which are in rising order."""
        pieces, start = [pl.Series(dtype=pl.String)], 0
        for block, height in zip(self.blocks, self.heights, strict=True):
            own = places.filter(places.is_between(start, start + height, closed="left")) - start
            if block is not None and len(own):
                pieces.append(pl.read_ipc(block).to_series().gather(own))
            else:
                pieces.append(pl.Series([None], dtype=pl.String).new_from_index(0, len(own)))
            start += height
        return pl.concat(pieces)


def _packed(texts: pl.Series) -> bytes:
    buffer = io.BytesIO()
    texts.alias("").to_frame().write_ipc(buffer, compression="zstd")
    return buffer.getvalue()


def comparable(labels: pl.Series, others: pl.Series, aside: Collection[str]) -> pl.Series:
    """Reads labels as whole numbers when every one is written like `3.0`, as tables with gaps have them.

    Labels with a meaning of their own are left aside. Nothing is changed where the labels they are compared with
    hold the like too but would stay as they are.

    >>> comparable(pl.Series(["1.0", "oos", None]), pl.Series(["1", "2"]), ["oos"]).to_list()
    ['1', 'oos', None]
    >>> comparable(pl.Series(["1.0", "2.0"]), pl.Series(["1.0", "x"]), ["oos"]).to_list()
    ['1.0', '2.0']
    """
    texts = others.explode() if others.dtype == LABELS else others
    if not _pointed(labels, aside) or (texts.str.contains(r"\d\.0").any() and not _pointed(others, aside)):
        return labels
    return labels.str.replace(_WHOLE_AS_FLOAT, "$1")


def _pointed(labels: pl.Series, aside: Collection[str]) -> bool:
    """Whether there are labels, and all but those aside are written like `3.0`."""
    if labels.dtype != pl.String or labels.null_count() == len(labels):
        return False
    for part in (labels.head(1000), labels):  # most labels are told by a few
        if not (part.str.ends_with("0") | part.is_in(list(aside))).all():
            return False
    plain = labels.filter(~labels.is_in(list(aside))).drop_nulls()
    return len(plain) > 0 and plain.str.contains(_WHOLE_AS_FLOAT).all()


def as_lists(labels: pl.Series) -> tuple[pl.Series, bool]:
    """Gives each cell as a list of acceptable labels, null staying null, and whether any was given as a list.

    Text such as `["a", "b"]` is read as the list it spells.
    """
    if labels.dtype == LABELS:
        return labels.list.drop_nulls(), True
    single = labels.reshape((-1, 1)).arr.to_list()
    if labels.null_count():
        single = pl.select(pl.when(labels.is_not_null()).then(single)).to_series()
    spelled = labels.filter(labels.str.starts_with("[")).unique().to_list()
    lists = {text: found for text in spelled if (found := _spelled_list(text)) is not None}
    if not lists:
        return single, False
    meaning = pl.DataFrame({"text": list(lists), "listed": list(lists.values())}, schema_overrides={"listed": LABELS})
    listed = labels.alias("text").to_frame().join(meaning, on="text", how="left", maintain_order="left")["listed"]
    return pl.select(pl.when(listed.is_not_null()).then(listed).otherwise(single)).to_series(), True


def _spelled_list(text: str) -> list[str] | None:
    try:
        labels = msgspec.json.decode(text, type=list[str | int | float | bool | None])
    except (msgspec.MsgspecError, RecursionError):
        return None
    whole = (int(one) if isinstance(one, float) and one.is_integer() else one for one in labels if one is not None)
    return [one if isinstance(one, str) else msgspec.json.encode(one).decode() for one in whole]


def _text_of(column: pl.Expr, *, has_fractions: bool) -> pl.Expr:
    if has_fractions:
        return column.fill_nan(None).cast(pl.String).str.replace(_WHOLE_AS_FLOAT, "$1").replace("-0", "0")
    return column.cast(pl.String)


@dataclass(frozen=True, slots=True, eq=False)
class Ids:
    """Ids in rising order, each known by two hashes; no two ids of any data are expected to share both.

    >>> ids = Ids.of(pl.Series(["b", "a", "c"]))
    >>> ids.places(pl.Series(["c", "b", "a"])).tolist(), ids.places(pl.Series(["c", "b", "d"]))
    ([2, 1, 0], None)
    """

    first: Hashes
    second: Hashes
    order: Places
    """Places of the ids by rising hash."""

    @classmethod
    def of(cls, column: pl.Series) -> Ids:
        """The ids of a column, none of which is there twice."""
        ids = column.sort()
        hashes = hashed(ids, 0)
        return cls(hashes, hashed(ids, 1), _order(hashes))

    def __len__(self) -> int:
        return self.first.size

    def places(self, column: pl.Series) -> Places | None:
        """Where in the column each id stands; None where the column has not these very ids, or lacks any.

        Should two ids share the first hash, which can be, it is not known which of them stands where: None as well.
        """
        if column.len() != len(self) or column.null_count():
            return None
        hashes = hashed(column, 0)
        places = np.empty_like(self.order)
        places[self.order] = _order(hashes)
        same = np.array_equal(hashes[places], self.first) and np.array_equal(hashed(column, 1)[places], self.second)
        return places if same else None


def are_repeated(ids: pl.Series) -> bool:
    """Whether some id is there twice; hashes, which compare far faster, are looked at first."""
    hashes = np.sort(hashed(ids))
    return bool((hashes[1:] == hashes[:-1]).any()) and ids.n_unique() < len(ids)


def gathered(frame: pl.DataFrame, places: Places) -> pl.DataFrame:
    """The rows at these places; out of one piece they are taken several times as fast as out of many."""
    if places.size == frame.height and (places == np.arange(places.size, dtype=places.dtype)).all():
        return frame  # as logs of the same inputs mostly are in the same order
    return frame.rechunk().select(pl.all().gather(places))


def hashed(column: pl.Series, seed: int = 0) -> Hashes:
    """The hash of each value of a column."""
    return cast(Hashes, column.hash(seed).to_numpy())


def _order(hashes: Hashes) -> Places:
    return cast(Places, pl.Series(hashes).arg_sort().to_numpy())


def common_ids(columns: Iterable[pl.Series]) -> pl.Series:
    """The ids that all columns have, in the order of the first.

    >>> common_ids([pl.Series(["a", "b", "c"]), pl.Series(["c", "x", "a"])]).to_list()
    ['a', 'c']
    """
    tables = [column.alias("id").to_frame() for column in columns]
    return reduce(lambda one, two: one.join(two, on="id", how="semi", maintain_order="left"), tables).to_series()


@dataclass(frozen=True, slots=True)
class Alignment:
    """Where the ids that systems share stand in the rows of each, in one order for all."""

    places: Mapping[str, Places]
    dropped: Mapping[str, int]
    """How many rows of each system have no counterpart."""
    what: Wording = INPUTS

    @property
    def note(self) -> str:
        """Says on how many ids systems were paired, and what was left out."""
        return paired_note(next(iter(self.places.values())).size, self.dropped, self.what)


def align(columns: Mapping[str, pl.Series], *, matched: bool = False, what: Wording = INPUTS) -> Alignment:
    """Brings the rows of systems together by their ids, none of which is null or there twice in a system.

    All systems must have the same ids; with `matched` those that all of them have are kept, in rising order.

    >>> align({"a": pl.Series(["x", "y"]), "b": pl.Series(["z", "y"])}, matched=True).places["b"].tolist()
    [1]
    """
    ids = Ids.of(next(iter(columns.values())))
    same = {name: found for name, column in columns.items() if (found := ids.places(column)) is not None}
    if len(same) == len(columns):
        return Alignment(same, dict.fromkeys(columns, 0), what)
    common = common_ids(columns.values())
    dropped = {name: len(column) - len(common) for name, column in columns.items()}
    if any(dropped.values()) and (not matched or common.is_empty()):
        raise _unmatched(columns, common, dropped, what)
    kept = {name: column.is_in(common.implode()).arg_true() for name, column in columns.items()}
    places = {name: kept[name].gather(column.gather(kept[name]).arg_sort()) for name, column in columns.items()}
    return Alignment({name: cast(Places, of.to_numpy()) for name, of in places.items()}, dropped, what)


def _unmatched(
    columns: Mapping[str, pl.Series], common: pl.Series, dropped: Mapping[str, int], what: Wording
) -> DataError:
    sizes = first_names([f"{name} has {len(column):,}" for name, column in columns.items()], 5, quote="")
    few = {name: columns[name] for name in [name for name in columns if dropped[name]][:3]}
    alone = {name: ids.filter(~ids.is_in(common.implode())).sort().to_list() for name, ids in few.items()}
    lonely = (f"without counterpart in {name}: {first_names(ids, 3)}" for name, ids in alone.items())
    kind = "ids" if what == INPUTS else what.many
    sizes = f"the systems do not have the same {kind}: {sizes}, common to all are {len(common):,}"
    ways = "`matched` compares the common ones; `unpaired` compares all without pairing"
    fix = "no id is shared: compare with `unpaired`" if common.is_empty() else ways
    return DataError("; ".join((sizes, *lonely)), fix=fix)


def paired_note(common: int, dropped: Mapping[str, int], what: Wording = INPUTS) -> str:
    """Says on how many ids systems were paired, and what was left out."""
    left_out = ", ".join(f"{count:,} of {name}" for name, count in dropped.items() if count)
    note = f"paired by id on {what.with_count(common)}"
    return f"{note}; left out without a counterpart: {left_out}" if left_out else note


def unpaired_note(unnamed: Iterable[str], asked: bool, fix: str = "") -> str:
    """Says why systems are not paired, and what would pair them."""
    why = ", as asked" if asked else f": there are no ids in {', '.join(unnamed)}{fix}"
    return f"compared as unpaired{why}"


def counterparts(own: Hashes, other: Hashes) -> NDArray[np.int32]:
    """Where each of our hashes stands among the others; -1 where it does not.

    >>> counterparts(np.array([7, 3, 5], np.uint64), np.array([5, 7], np.uint64)).tolist()
    [1, -1, 0]
    """
    ours, theirs = np.argsort(own), np.argsort(other)
    found = np.searchsorted(other[theirs], own[ours])
    found[found == other.size] = 0
    same = other[theirs][found] == own[ours]
    places = np.full(own.size, -1, dtype=np.int32)
    places[ours[same]] = theirs[found[same]]
    return places
