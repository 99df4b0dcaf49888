"""Reads rows of N-best lists in batches: acts as sets of items, confidences checked, equal acts merged."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, compress, islice
from math import isnan
from operator import attrgetter
from typing import Any, Literal

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.acts import ITEMISERS, Interned, parse_acts
from demur.core.arrays import Array
from demur.core.io.columns import NBEST_ALIASES, resolve, unknown_column
from demur.core.io.files import read_source, table_of
from demur.core.io.json import (
    BYTE_ORDER_MARK,
    array_elements,
    column_names,
    keeps_all_keys,
    line_finder,
    parsed_line,
    refuse_repeats_in_rows,
    whole_text,
)
from demur.core.io.sources import NOT_JSON, Source, first_bytes, lines
from demur.core.io.tables import HEAVIEST, ROW, Request, Table
from demur.errors import DataError, UsageError
from demur.nbest_lists.asr.scorers import Heard, ScoredActs

AT_ONCE = 2000
"""Rows decoded at a time: few enough that they stay in the processor's cache until all is read from them."""

NAMES_FROM = 1000
"""Rows looked at for the names of columns."""

HYPOTHESIS_ALIASES: Mapping[str, tuple[str, ...]] = {
    "act": ("acts", "label", "hypothesis"),
    "items": (),
    "confidence": ("score", "probability", "prob", "p"),
}
"""What the parts of a hypothesis may be called."""

JSON_CELLS = ("hypotheses", "asr", "cnet")
"""Columns that hold lists of objects, or JSON that spells them where a file knows only text."""

Place = Callable[[int], str]
"""Says where a row stands, by its number."""

_HYPOTHESIS_SHAPE = '[{"act": "inform(food=thai)", "confidence": 0.7}, ...]'
_KINDS = {
    "float": "a number",
    "int": "a number",
    "str": "text",
    "array": "a list",
    "object": "an object",
    "bool": "true or false",
    "null": "nothing",
}


_UNDECODED = re.compile(r'["\\\x00-\x1f]')
"""What msgspec decodes no key with that is known beforehand."""


@dataclass(frozen=True, slots=True)
class ListRequest:
    """What is asked of a source: columns named by the user, others to carry along, and the parts there must be."""

    mapped: Mapping[str, str]
    extras: tuple[str, ...]
    needed: tuple[str, ...] = ("hypotheses",)


@dataclass(frozen=True, slots=True)
class RowLayout:
    """Which columns of a source play which part, and which others are carried along."""

    columns: Mapping[str, str]
    extras: tuple[str, ...]
    hypothesis: Mapping[str, str]
    notes: tuple[str, ...]

    @property
    def labelled(self) -> bool:
        """Whether hypotheses are plain labels, each an item as it stands, and so is the reference."""
        return self.hypothesis.get("act") == "label"

    @property
    def nested(self) -> list[str]:
        """The columns that hold lists of objects."""
        return [self.columns[part] for part in JSON_CELLS if part in self.columns]

    def row_type(self) -> type[msgspec.Struct]:
        """The shape of a row, for msgspec to check while it decodes.

        A part that the first rows do not show may still come under its own name. One column may play several parts.
        Rows that are encoded again show nothing that was not there.
        """
        listed = tuple[str, ...]
        parts: list[tuple[str, Any, Any]] = [("act", str | listed | None, None), ("items", listed | None, None)]
        parts.append(("confidence", float | None, None))
        hypothesis = msgspec.defstruct("Hypothesis", parts, rename=dict(self.hypothesis), gc=False, omit_defaults=True)
        shape: dict[str, Any] = {
            "id": str | int | float | None,
            "dialogue": str | int | float | None,
            "system": str | int | float | None,
            "weight": float | None,
            "reference": str | tuple[str, ...] | None,
            "hypotheses": list[hypothesis] | None,  # type: ignore[valid-type]
            "asr": Any,
            "cnet": Any,
        }
        unasked = {part: f"demur:{part}" for part in JSON_CELLS}
        rename = {part: self.columns.get(part, unasked.get(part, part)) for part in shape}
        rename |= {f"extra_{place}": name for place, name in enumerate(self.extras)}
        reader = {name: part for part, name in reversed(rename.items())}
        read = {part: name for part, name in rename.items() if reader[name] == part}
        fields: list[tuple[str, Any, Any]] = [(part, shape.get(part, Any), None) for part in read]
        shared = {part: property(attrgetter(reader[name])) for part, name in rename.items() if part not in read}
        return msgspec.defstruct("Row", fields, rename=read, namespace=shared, gc=False, omit_defaults=True)


@dataclass(frozen=True, slots=True)
class RowBatch:
    """Some rows of a source; the first of them is row number `first`."""

    rows: Sequence[Any]
    first: int

    @property
    def numbers(self) -> range:
        """The numbers of the rows."""
        return range(self.first, self.first + len(self.rows))


@dataclass(frozen=True, slots=True)
class RowSource:
    """Rows to read: a name, the layout, the batches, and what says where a row stands."""

    name: str
    layout: RowLayout
    batches: Iterable[RowBatch]
    place: Place


def rows_of_file(source: Source, wanted: ListRequest) -> RowSource:
    """The rows of a file."""
    if source.format != "json":
        return _of_table(read_source(source, Request(every_name=False)), wanted)
    head = first_bytes(source.path, source.compression, source.name)
    array = head.removeprefix(BYTE_ORDER_MARK).lstrip().startswith(b"[")
    if array:
        elements = list(array_elements(whole_text(source).getvalue(), source.name))
        first = elements[:NAMES_FROM]
        names = list(dict.fromkeys(name for element in first for name in _row_in(element)))
    else:
        first = list(lines(source.path, source.compression, source.name, limit=NAMES_FROM))
        names = column_names(source, NAMES_FROM)
    place = (lambda row: f"{source.name}: element {row + 1}") if array else line_finder(source)
    if not names:
        raise _no_names(first, source.name, place)
    layout = _layout(names, wanted, source.name, first)
    texts: Iterator[bytes] = iter(elements) if array else lines(source.path, source.compression, source.name)
    return RowSource(source.name, layout, _decoded_lines(texts, layout, place), place)


def rows_of_data(data: object, wanted: ListRequest) -> RowSource:
    """The rows of a frame, of columns, or of a list of dictionaries."""
    if isinstance(data, Sequence) and data and all(isinstance(row, Mapping) for row in data):
        names = list(dict.fromkeys(name for row in data for name in row))
        return _of_dicts(data, names, data[:NAMES_FROM], wanted, "data", lambda row: f"data: row {row + 1}")
    return _of_table(table_of(data, Request()), wanted)


def _of_table(table: Table, wanted: ListRequest) -> RowSource:
    frame = table.frame.drop(ROW)
    if frame.is_empty():
        raise DataError("holds no rows", where=table.name)
    rows = (row for part in frame.iter_slices(AT_ONCE) for row in part.iter_rows(named=True))
    first, numbers = frame.head(NAMES_FROM).to_dicts(), table.frame[ROW]
    return _of_dicts(rows, frame.columns, first, wanted, table.name, lambda row: table.place(int(numbers[row])))


def _of_dicts(
    rows: Iterable[Any], names: Sequence[str], first: Sequence[Any], wanted: ListRequest, name: str, place: Place
) -> RowSource:
    layout = _layout(names, wanted, name, [msgspec.json.encode(row, enc_hook=str) for row in first])
    return RowSource(name, layout, _converted_rows(rows, layout, place), place)


def _converted_rows(rows: Iterable[Any], layout: RowLayout, place: Place) -> Iterator[RowBatch]:
    careful = _careful(layout, place)
    remaining, begin = iter(rows), 0
    while some := list(islice(remaining, AT_ONCE)):
        yield RowBatch([careful(dict(row), begin + at) for at, row in enumerate(some)], begin)
        begin += len(some)


def layout_of(first: pl.DataFrame, names: Sequence[str], wanted: ListRequest, name: str) -> RowLayout:
    """The layout of a log of which these are the first rows."""
    return _layout(names, wanted, name, [msgspec.json.encode(row, enc_hook=str) for row in first.to_dicts()])


def rows_of_batch(batch: pl.DataFrame, layout: RowLayout, name: str) -> RowSource:
    """Some rows of a log whose layout is known, and in which rows have no place that could be named."""
    return RowSource(name, layout, _converted_rows(batch.iter_rows(named=True), layout, lambda _: name), lambda _: name)


def _layout(names: Sequence[str], wanted: ListRequest, name: str, first: Sequence[bytes]) -> RowLayout:
    resolved = resolve(names, wanted.mapped, where=f"{name}:", aliases=NBEST_ALIASES, keep_faults=True)
    unasked = set(JSON_CELLS) - set(wanted.needed)
    columns = {part: column for part, column in resolved.columns.items() if part not in unasked}
    faults = [*resolved.faults.values()]
    faults += [unknown_column(extra, names, name) for extra in wanted.extras if extra not in names]
    for column in (*columns.values(), *wanted.extras):
        if _UNDECODED.search(column):
            rule = f'the column "{column}" has a quote, a backslash or a control character in its name'
            faults.append(DataError(rule, where=f"{name}:", fix="rename it"))
    known = {*columns, *resolved.faults}
    for part in ("reference", *wanted.needed):
        if part not in known and not (part in ("asr", "cnet") and {"asr", "cnet"} & known):
            faults.append(_no_column(part, names, name))
    if faults:
        raise DataError.joined(faults)
    hypothesis, notes = _hypothesis_keys(first, columns.get("hypotheses"), name)
    own = (note for note in resolved.notes if note.partition(" <- ")[0] in columns)
    return RowLayout(columns, wanted.extras, hypothesis, (*own, *notes))


def _no_names(first: Sequence[bytes], name: str, place: Place) -> DataError:
    """Why rows have no columns: they are not JSON, no objects, or there are none."""
    for text in first:
        if text.strip():
            value = parsed_line(text.removeprefix(BYTE_ORDER_MARK), f"{place(0)}:")
            if not isinstance(value, dict):
                return _no_object(value, place(0))
    return DataError("holds no rows", where=name)


def _no_object(value: Any, place: str) -> DataError:
    return DataError("each row must be an object", where=f"{place}:", got=str(value)[:60])


def _no_column(part: str, names: Sequence[str], name: str) -> DataError:
    shapes = {
        "reference": 'reference is the act that was meant, such as "inform(food=thai)", or a list of items',
        "hypotheses": f"hypotheses are a list such as {_HYPOTHESIS_SHAPE}",
        "asr": 'a scorer needs asr, [{"text": "thai food", "logprob": -0.3}], or cnet, a confusion network',
    }
    listed = ", ".join(f'"{column}"' for column in names[:12])
    rule = f"there is no column {part} ({shapes.get(part, shapes['asr'])}); there are {listed}"
    return DataError(rule, where=f"{name}:", fix=f"--map {part}=COLUMN names another")


def _hypothesis_keys(first: Sequence[bytes], column: str | None, name: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """What hypotheses call their parts in the first rows."""
    seen: dict[str, None] = {}
    for text in first if column is not None else ():
        cell = _from_json(_row_in(text).get(column or ""))
        for one in cell if isinstance(cell, list) else ():
            seen.update(dict.fromkeys(one if isinstance(one, Mapping) else ()))
    resolved = resolve(list(seen), {}, where=f"{name}: hypotheses:", aliases=HYPOTHESIS_ALIASES)
    return dict(resolved.columns), tuple(f"hypotheses: {note}" for note in resolved.notes)


def _decoded_lines(texts: Iterator[bytes], layout: RowLayout, place: Place) -> Iterator[RowBatch]:
    """Batches of decoded lines, blank ones left out; where they do not decode, or are not one a line, one by one."""
    decode = msgspec.json.Decoder(layout.row_type()).decode_lines
    careful = _careful(layout, place)
    first = 0
    marked = True
    while some := list(islice(texts, AT_ONCE)):
        if marked:
            some[0], marked = some[0].removeprefix(BYTE_ORDER_MARK), False
        rows: list[Any] | None = None
        joined = b"".join(some)
        with suppress(*NOT_JSON):
            rows = decode(joined)
        kept = [text for text in some if text.strip()]
        if rows is None or not keeps_all_keys(joined, rows):
            refuse_repeats_in_rows(kept, _row_namer(place, first), layout.nested)
        if rows is None or len(rows) not in (len(some), len(kept)):
            rows = [careful(parsed_line(text, f"{place(row)}:"), row) for row, text in enumerate(kept, start=first)]
        yield RowBatch(rows, first)
        first += len(rows)


def _row_namer(place: Place, first: int, column: str = "") -> Place:
    """What says where a row stands that is counted from another, and in which column."""
    return lambda row: f"{place(first + row)}: {column}".rstrip()


def _careful(layout: RowLayout, place: Place) -> Callable[[Any, int], Any]:
    """What makes a row of a decoded value, forgiving numbers written as text, or says what is wrong with it."""
    kind = layout.row_type()

    def careful(value: Any, row: int) -> Any:
        if not isinstance(value, dict):
            raise _no_object(value, place(row))
        for name in layout.nested:
            cell = value.get(name)
            value[name] = _from_json(cell)
            if isinstance(cell, str) and not keeps_all_keys(cell.encode(), value[name]):
                refuse_repeats_in_rows([cell.encode()], _row_namer(place, row, name))
        with suppress(msgspec.ValidationError, RecursionError):
            return msgspec.convert(value, kind, strict=False)
        try:
            return msgspec.convert(_plain(value), kind, strict=False)
        except RecursionError:
            raise DataError("the row is nested too deeply", where=f"{place(row)}:") from None
        except msgspec.ValidationError as fault:
            raise _misshapen(str(fault), value, layout, place(row)) from None

    return careful


def _misshapen(message: str, value: Mapping[str, Any], layout: RowLayout, place: str) -> DataError:
    what, _, path = message.partition(" - at `$")
    inside = path.rstrip("`").removeprefix(".")
    named = value.get(layout.columns.get("id", "id"))
    utterance = f': utterance "{named}"' if named is not None else ""
    shaped = inside.startswith(layout.columns.get("hypotheses", "hypotheses"))
    fix = f"hypotheses look like {_HYPOTHESIS_SHAPE}" if shaped else ""
    return DataError(f"{inside or 'the row'} {_in_words(what)}", where=f"{place}{utterance}:", fix=fix)


def _in_words(what: str) -> str:
    """What msgspec says of types, in words.

    >>> _in_words("Expected `float | null`, got `str`")
    'must be a number, not text'
    """
    match = re.fullmatch(r"Expected `(.+)`, got `(.+)`", what)
    if match is None:
        return f"cannot be read: {what}"
    wanted = dict.fromkeys(_KINDS.get(kind, kind) for kind in match[1].split(" | ") if kind != "null")
    return f"must be {' or '.join(wanted)}, not {_KINDS.get(match[2], match[2])}"


def _plain(value: Any) -> Any:
    """A value as JSON would have it: the numbers and arrays of NumPy as Python's own."""
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(part) for part in value]
    return value.tolist() if hasattr(value, "tolist") else value


def _from_json(cell: Any) -> Any:
    """What a cell of text spells; anything else as it is."""
    if not isinstance(cell, str):
        return cell
    try:
        return msgspec.json.decode(cell) if cell.strip() else None
    except (msgspec.MsgspecError, RecursionError):
        return cell


def _row_in(text: bytes) -> dict[str, Any]:
    """The row that a text spells; an empty one where it spells none."""
    with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        row = msgspec.json.decode(text)
        return row if isinstance(row, dict) else {}
    return {}


Items = Literal["thomson", "dstc"]
Hypothesise = Callable[[Sequence[Heard]], Sequence[ScoredActs]]
"""Makes acts with confidences of what was heard."""

TOLERANCE = 1e-3
"""How far over 1 the confidences of a list may sum by rounding."""

SOURCE = "demur:source"
"""The column that names the source of a row while a table is put together."""

FEW = 16
"""Hypotheses up to which a list is short."""


@dataclass(frozen=True, slots=True, eq=False)
class ListBatch:
    """Some utterances: one row of `frame` each, and their lists one after the other."""

    frame: pl.DataFrame
    reference: NDArray[np.int64]
    count: NDArray[np.int64]
    act: NDArray[np.int64]
    confidence: Array


@dataclass(slots=True)
class Builder:
    """Takes rows in batches and keeps only numbers of them."""

    items: Items = "thomson"
    normalise: bool = False
    where: tuple[tuple[str, str], ...] = ()
    hypothesise: Hypothesise | None = None
    out_of_scope: tuple[str, ...] = ()
    parts: list[ListBatch] = field(default_factory=list)
    normalised: int = 0
    merged: int = 0
    unmeant: int = 0
    """References out of scope, where hypotheses are labels."""
    interned: Interned = field(init=False)

    def __post_init__(self) -> None:
        if self.items not in ITEMISERS:
            raise UsageError(f'items is one of {", ".join(ITEMISERS)}; got "{self.items}"')
        self.interned = Interned(self._read_items)

    def _read_items(self, written: Hashable) -> frozenset[str]:
        """The items of a hypothesis or reference: a list, a text that spells one as JSON, or acts."""
        if isinstance(written, str) and written.lstrip().startswith("["):
            with suppress(msgspec.MsgspecError):
                return frozenset(msgspec.json.decode(written, type=tuple[str, ...]))
        if isinstance(written, tuple):
            return frozenset(written)
        if written is None:
            raise DataError(
                "a hypothesis has neither act nor items", fix='"act": "" is the hypothesis that nothing was meant'
            )
        return ITEMISERS[self.items](parse_acts(str(written)))

    def add(self, source: RowSource, system: str) -> int:
        """Takes all rows of a source, which stand for this system where they name none; gives how many were kept."""
        kept = 0
        for batch in source.batches:
            rows = self._selected(_Rows(batch.rows, batch.numbers, source, system))
            if rows.rows:
                self.parts.append(self._part(rows))
                kept += len(rows.rows)
        return kept

    def _selected(self, rows: _Rows) -> _Rows:
        layout = rows.source.layout
        fields = {name: part for part, name in layout.columns.items()}
        fields |= {name: f"extra_{place}" for place, name in enumerate(layout.extras)}
        for column, value in self.where:
            name = fields.get(column, column)
            default = rows.system if name == "system" else None
            chosen = [(as_text(getattr(row, name)) or default) == value for row in rows.rows]
            kept, numbers = (list(compress(part, chosen)) for part in (rows.rows, rows.numbers))
            rows = replace(rows, rows=kept, numbers=numbers)
        return rows

    def _part(self, rows: _Rows) -> ListBatch:
        written, confidence, count = self._lists(rows)
        references, unmeant = rows.references(self.out_of_scope)
        self.unmeant += unmeant
        reference = self._numbers(references, rows, lambda place: place)
        owner = np.repeat(np.arange(count.size), count)
        act = self._numbers(written, rows, lambda place: int(owner[place]))
        confidence = self._checked(confidence, count, owner, rows)
        act, confidence, count = self._without_repeats(act, confidence, count, owner)
        return ListBatch(rows.frame(), reference, count, act, confidence)

    def _lists(self, rows: _Rows) -> tuple[list[Hashable], Array, NDArray[np.int64]]:
        """Everything hypothesised, one list after the other: what is written, how sure, and how many in each list."""
        if self.hypothesise is not None:
            lists = self.hypothesise(rows.heard())
            flat = list(chain.from_iterable(lists))
            scored = np.array([confidence for _, confidence in flat], dtype=np.float64)
            return [act for act, _ in flat], scored, np.array([len(one) for one in lists], dtype=np.int64)
        given = [row.hypotheses for row in rows.rows]
        if None in given:
            where = rows.named(given.index(None))
            raise DataError("has no hypotheses", where=where, fix="give a list, [] where nothing was understood")
        count = np.fromiter(map(len, given), dtype=np.int64, count=len(given))
        hypotheses = list(chain.from_iterable(given))
        written = [one.act if one.items is None else one.items for one in hypotheses]
        try:
            confidence = np.array([one.confidence for one in hypotheses], dtype=np.float64)
        except TypeError:
            confidence = np.array([np.nan if one.confidence is None else one.confidence for one in hypotheses])
        return rows.as_items(written, self.out_of_scope), confidence, count

    def _numbers(self, written: list[Hashable], rows: _Rows, owner: Callable[[int], int]) -> NDArray[np.int64]:
        with suppress(DataError):
            return self.interned.numbers(written)
        for place, one in enumerate(written):
            try:
                self.interned[one]
            except DataError as fault:
                raise DataError(str(fault), where=f"{rows.named(owner(place))}:") from None
        raise AssertionError("the fault did not come back")

    def _checked(self, confidence: Array, count: NDArray[np.int64], owner: NDArray[np.int64], rows: _Rows) -> Array:
        """The confidences, with `normalise` scaled where a list sums to over 1; refuse what is no probability."""
        with np.errstate(invalid="ignore"):
            bad = ~(confidence >= 0) | np.isinf(confidence)
        if bad.any():
            place = int(np.argmax(bad))
            got = confidence[place]
            number = "no number" if np.isnan(got) else f"{got:g}"
            raise DataError(
                f"a confidence must be a number of at least 0; got {number}",
                where=f"{rows.named(int(owner[place]))}:",
                fix='each hypothesis needs "confidence": P, a probability' if np.isnan(got) else "mend the log",
            )
        total = sums_of(confidence, count)
        over = np.flatnonzero(total > 1 + TOLERANCE)
        if self.normalise:
            self.normalised += over.size
            return np.asarray(confidence / np.maximum(total, 1.0)[owner])
        if over.size:
            raise _over(confidence[owner == over[0]], over, rows)
        return confidence

    def _without_repeats(
        self, act: NDArray[np.int64], confidence: Array, count: NDArray[np.int64], owner: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], Array, NDArray[np.int64]]:
        """Equal acts of one list as one, where the first of them stood; their confidences add."""
        first = _first_alike(act, owner, int(count.max(initial=0)))
        kept = first == np.arange(first.size)
        if kept.all():
            return act, confidence, count
        self.merged += int((~kept).sum())
        total = np.bincount(first, weights=confidence, minlength=first.size)
        return act[kept], total[kept], np.bincount(owner[kept], minlength=count.size)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of one batch with their numbers in the source."""

    rows: Sequence[Any]
    numbers: Sequence[int]
    source: RowSource
    system: str

    def references(self, out_of_scope: tuple[str, ...]) -> tuple[list[Hashable], int]:
        """What each row says was meant, and how many labels say that nothing was; an act that is left out is a fault.

        Where hypotheses are labels, a row without a reference is out of scope, as it is among answers.
        """
        references: list[Hashable] = [row.reference for row in self.rows]
        if self.source.layout.labelled:
            given = [() if one is None else one for one in references]
            items = self.as_items(given, out_of_scope)
            return items, sum(
                one == () and written not in ("", ()) for one, written in zip(items, references, strict=True)
            )
        if None in references:
            fix = "give the act that was meant, or [] where nothing was"
            raise DataError("has no reference", where=self.named(references.index(None)), fix=fix)
        return references, 0

    def as_items(self, written: list[Hashable], out_of_scope: tuple[str, ...]) -> list[Hashable]:
        """Items and acts as they are written, plain labels as the only item there is, or none if out of scope."""
        if not self.source.layout.labelled:
            return written
        nothing = {"", *out_of_scope, *((label,) for label in out_of_scope)}
        return [() if one in nothing else (one,) if isinstance(one, str) else one for one in written]

    def heard(self) -> list[Heard]:
        """What the recogniser heard, with the name of the utterance for messages."""
        names = (
            f"row {number + 1}" if row.id is None else f'utterance "{as_text(row.id)}"'
            for number, row in zip(self.numbers, self.rows, strict=True)
        )
        return [(f"{self.source.name}: {name}", row.asr, row.cnet) for name, row in zip(names, self.rows, strict=True)]

    def named(self, place: int) -> str:
        """Where a row stands and what it is called."""
        number, row = self.numbers[place], self.rows[place]
        at = self.source.place(number)
        return at if row.id is None else f'{at}: utterance "{as_text(row.id)}"'

    def frame(self) -> pl.DataFrame:
        """One row per utterance, without its lists."""
        weights = np.array([1.0 if row.weight is None else row.weight for row in self.rows])
        bad = ~((weights >= 1 / HEAVIEST) & (weights <= HEAVIEST))
        if bad.any():
            place = int(np.argmax(bad))
            where = f"{self.named(place)}:"
            raise DataError(
                "a weight must be a number above 0, of at most 1e100", where=where, got=float(weights[place])
            )
        system, extras = self.system, enumerate(self.source.layout.extras)
        columns = [
            _text_column("id", [row.id for row in self.rows]),
            _text_column("system", [system if row.system is None else row.system for row in self.rows]),
            _text_column("dialogue", [row.dialogue for row in self.rows]),
            *(_text_column(name, [getattr(row, f"extra_{place}") for row in self.rows]) for place, name in extras),
            pl.Series("weight", weights),
            pl.Series(ROW, self.numbers, dtype=pl.Int64),
            pl.Series(SOURCE, [self.source.name]).new_from_index(0, len(self.rows)),
        ]
        return pl.DataFrame({column.name: column for column in columns})


def _text_column(name: str, values: list[Any]) -> pl.Series:
    """Names as text, whatever they were written as."""
    try:
        return pl.Series(name, values, dtype=pl.String)
    except (TypeError, OverflowError):  # not all of them are text
        return pl.Series(name, [as_text(value) for value in values], dtype=pl.String)


def as_text(value: Any) -> str | None:
    """A name as text: whole numbers without `.0`, anything nested as JSON, NaN as none."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float) and isnan(value):
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return msgspec.json.encode(value, enc_hook=str).decode().strip('"')


def sums_of(values: Array, count: NDArray[np.int64]) -> Array:
    """The sum of each list, 0 of an empty one.

    >>> sums_of(np.array([0.5, 0.25, 1.0]), np.array([2, 0, 1])).tolist()
    [0.75, 0.0, 1.0]
    """
    sums = np.zeros(count.size)
    held = count > 0
    if values.size:
        sums[held] = np.add.reduceat(values, (np.cumsum(count) - count)[held])
    return sums


def _first_alike(act: NDArray[np.int64], owner: NDArray[np.int64], longest: int) -> NDArray[np.int64]:
    """Where each act stands first in its list; in lists that are short, neighbours tell sooner than a sort."""
    first = np.arange(act.size)
    if longest <= FEW:
        for apart in range(1, longest):
            same = np.flatnonzero((act[apart:] == act[:-apart]) & (owner[apart:] == owner[:-apart]))
            first[same + apart] = same
        return first
    order = np.lexsort((act, owner))
    new = (np.diff(act[order], prepend=-1) != 0) | (np.diff(owner[order], prepend=-1) != 0)
    first[order] = order[np.flatnonzero(new)[np.cumsum(new) - 1]]
    return first


def _over(mine: Array, over: NDArray[np.int64], rows: _Rows) -> DataError:
    more = f" ({over.size:,} such lists in this batch)" if over.size > 1 else ""
    if (mine > 1 + TOLERANCE).any():
        rule = f"a confidence must not exceed 1; got {mine.max():g}{more}"
    else:
        rule = f"the confidences of a list must not sum to over 1; these sum to {mine.sum():.6g}{more}"
    return DataError(rule, where=f"{rows.named(int(over[0]))}:", fix="`normalise` scales lists that sum to over 1")


def chained(parts: Iterator[ListBatch]) -> ListBatch:
    """All parts as one."""
    several = list(parts)
    frame = pl.concat([part.frame for part in several], how="diagonal_relaxed")
    names = ("reference", "count", "act", "confidence")
    arrays = [np.concatenate([getattr(part, name) for part in several]) for name in names]
    return ListBatch(frame.rechunk(), *arrays)
