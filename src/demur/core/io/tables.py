"""A table as read, with the place of each row; cells become labels, flags or numbers, or a fault with its row."""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import msgspec
import polars as pl
from polars.exceptions import PolarsError

from demur.errors import DataError

ROW = "demur:row"
"""The column that numbers the rows of a table as they stood in its source, from 0."""


def _all_names(names: Collection[str]) -> Collection[str]:
    return names


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a reader of a table needs of it.

    `candidates` is given the names seen so far and gives the columns to read, among them names that may first
    appear in a later row. `numeric` are columns expected to hold numbers. `every_name` asks for the names in
    all rows, not only those of the first thousand.
    """

    candidates: Callable[[Collection[str]], Collection[str]] = _all_names
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


def numbered(frame: pl.DataFrame, *, columns: Collection[str], name: str, place: Callable[[int], str]) -> Table:
    """Gives the table of a frame whose rows stand in the order of the source."""
    return Table(frame.with_row_index(ROW), tuple(columns), name, place)


LABELS = pl.List(pl.String)

TRUE, FALSE = ("true", "yes", "1", "1.0"), ("false", "no", "0", "0.0")
"""How yes and no may be written, in any letter case."""

_FLAGS = {**dict.fromkeys(TRUE, True), **dict.fromkeys(FALSE, False)}
_WHOLE_AS_FLOAT = r"^(-?\d+)\.0+$"
_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d*,\d+\s*")
_PERCENTAGE = re.compile(r"\s*[-+]?\d*[.,]?\d+\s*%\s*")


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
        text = as_text(series).str.strip_chars().str.to_lowercase()
        flags = text.replace_strict(_FLAGS, default=None, return_dtype=pl.Boolean)
        self._refuse(part, text.is_not_null() & flags.is_null(), "must be true or false")
        return flags

    def numbers(self, part: str) -> pl.Series:
        """Gives a column of numbers, null where the cell is empty or the table has no such column."""
        series = self._series(part, pl.Float64())
        if series.dtype.is_numeric() or series.dtype == pl.Null:
            return series.cast(pl.Float64)
        if series.dtype == pl.String:
            numbers = series.str.strip_chars().cast(pl.Float64, strict=False)
        else:
            numbers = pl.Series(part, [None] * len(series), dtype=pl.Float64)
        self._refuse(part, series.is_not_null() & numbers.is_null(), "must be a number", _number_hint)
        return numbers

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


def _number_hint(got: object) -> str:
    if not isinstance(got, str):
        return ""
    if _DECIMAL_COMMA.fullmatch(got):
        return "write a decimal point, not a comma"
    return "write it without the percent sign, as a fraction" if _PERCENTAGE.fullmatch(got) else ""


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
    text = _text_of(pl.col(series.name), has_fractions=series.dtype.is_float())
    try:
        return series.to_frame().select(text).to_series()
    except PolarsError:
        raise DataError("holds what cannot be read as text", where=f"column {series.name}", got=series.dtype) from None


def comparable(labels: pl.Series, others: pl.Series, aside: Collection[str]) -> pl.Series:
    """Reads labels as whole numbers when every one is written like `3.0`, as tables with gaps have them.

    Labels with a meaning of their own are left aside. Nothing is changed where the labels they are compared with
    hold the like too but would stay as they are.

    >>> comparable(pl.Series(["1.0", "oos", None]), pl.Series(["1", "2"]), ["oos"]).to_list()
    ['1', 'oos', None]
    >>> comparable(pl.Series(["1.0", "2.0"]), pl.Series(["1.0", "x"]), ["oos"]).to_list()
    ['1.0', '2.0']
    """
    if not _pointed(labels, aside) or (_holds_point_zero(others) and not _pointed(others, aside)):
        return labels
    return labels.str.replace(_WHOLE_AS_FLOAT, "$1")


def _pointed(labels: pl.Series, aside: Collection[str]) -> bool:
    """Whether there are labels, and all but those aside are written like `3.0`."""
    if labels.dtype != pl.String or labels.null_count() == len(labels):
        return False
    if not (labels.str.ends_with("0") | labels.is_in(list(aside))).all():
        return False
    plain = labels.filter(~labels.is_in(list(aside))).drop_nulls()
    return len(plain) > 0 and plain.str.contains(_WHOLE_AS_FLOAT).all()


def _holds_point_zero(labels: pl.Series) -> bool:
    texts = labels.explode() if labels.dtype == LABELS else labels
    return texts.str.contains(r"\d\.0").any()


def as_lists(labels: pl.Series) -> tuple[pl.Series, bool]:
    """Gives each cell as a list of acceptable labels, null staying null, and whether any was given as a list.

    Text such as `["a", "b"]` is read as the list it spells.
    """
    if labels.dtype == LABELS:
        return labels.list.drop_nulls(), True
    single = _null_where(labels.reshape((-1, 1)).arr.to_list(), labels.is_null())
    spelled = labels.filter(labels.str.starts_with("[")).unique().to_list()
    lists = {text: found for text in spelled if (found := _spelled_list(text)) is not None}
    if not lists:
        return single, False
    meaning = pl.DataFrame({"text": list(lists), "listed": list(lists.values())}, schema_overrides={"listed": LABELS})
    listed = labels.alias("text").to_frame().join(meaning, on="text", how="left", maintain_order="left")["listed"]
    return pl.select(pl.when(listed.is_not_null()).then(listed).otherwise(single)).to_series(), True


def _spelled_list(text: str) -> list[str] | None:
    try:
        found = msgspec.json.decode(text, type=list[str | int | float | bool | None])
    except (msgspec.MsgspecError, RecursionError):
        return None
    return [_spelled(label) for label in found if label is not None]


def _spelled(label: str | float | bool) -> str:
    if isinstance(label, str):
        return label
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    return msgspec.json.encode(label).decode()


def _null_where(lists: pl.Series, missing: pl.Series) -> pl.Series:
    if not missing.any():
        return lists
    return pl.select(pl.when(missing).then(None).otherwise(lists)).to_series()


def _text_of(column: pl.Expr, *, has_fractions: bool) -> pl.Expr:
    if has_fractions:
        return column.fill_nan(None).cast(pl.String).str.replace(_WHOLE_AS_FLOAT, "$1").replace("-0", "0")
    return column.cast(pl.String)
