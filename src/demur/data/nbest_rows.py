"""Rows of N-best lists as they stand in files and frames, read in batches so that memory does not follow the file."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter
from typing import Any

import msgspec

from demur.data.columns import NBEST_ALIASES, resolve, resolve_clear
from demur.data.files import read_source
from demur.data.frames import table_of
from demur.data.json_rows import BYTE_ORDER_MARK, array_elements, column_names, line_finder, parsed_line, whole_text
from demur.data.lines import first_bytes, lines
from demur.data.selection import unknown_column
from demur.data.sources import Source
from demur.data.tables import ROW, Request, Table
from demur.errors import DataError

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


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked of a source: columns named by the user, others to carry along, and the parts there must be."""

    mapped: Mapping[str, str]
    extras: tuple[str, ...]
    needed: tuple[str, ...] = ("hypotheses",)


@dataclass(frozen=True, slots=True)
class Layout:
    """Which columns of a source play which part, and which others are carried along."""

    columns: Mapping[str, str]
    extras: tuple[str, ...]
    hypothesis: Mapping[str, str]
    notes: tuple[str, ...]

    @property
    def labelled(self) -> bool:
        """Whether hypotheses are plain labels, each an item as it stands, and so is the reference."""
        return self.hypothesis.get("act") == "label"

    def row_type(self) -> type[msgspec.Struct]:
        """The shape of a row, for msgspec to check while it decodes.

        A part that the first rows do not show may still come under its own name. One column may play several parts.
        """
        shape: dict[str, Any] = {
            "id": str | int | float | None,
            "dialogue": str | int | float | None,
            "system": str | int | float | None,
            "weight": float | None,
            "reference": str | tuple[str, ...] | None,
            "hypotheses": list[self._hypothesis_type()] | None,  # type: ignore[misc]
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
        return msgspec.defstruct("Row", fields, rename=read, namespace=shared, gc=False)

    def _hypothesis_type(self) -> type[msgspec.Struct]:
        listed = tuple[str, ...]
        fields: list[tuple[str, Any, Any]] = [("act", str | listed | None, None), ("items", listed | None, None)]
        fields.append(("confidence", float | None, None))
        return msgspec.defstruct("Hypothesis", fields, rename=dict(self.hypothesis), gc=False)


@dataclass(frozen=True, slots=True)
class Batch:
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
    layout: Layout
    batches: Iterable[Batch]
    place: Callable[[int], str]


def rows_of_file(source: Source, wanted: Wanted) -> RowSource:
    """The rows of a file."""
    if source.format != "json":
        request = Request(every_name=False)
        return _of_table(read_source(source, request), wanted)
    head = first_bytes(source.path, source.compression, source.name)
    array = head.removeprefix(BYTE_ORDER_MARK).lstrip().startswith(b"[")
    if array:
        elements = list(array_elements(whole_text(source).getvalue(), source.name))
        first = elements[:NAMES_FROM]
        names = list(dict.fromkeys(name for element in first for name in _keys(element)))
    else:
        first = list(lines(source.path, source.compression, source.name, limit=NAMES_FROM))
        names = column_names(source, NAMES_FROM)
    place = (lambda row: f"{source.name}: element {row + 1}") if array else line_finder(source)
    if not names:
        raise _no_names(first, source.name, place)
    layout = _layout(names, wanted, source.name, first)
    texts: Iterator[bytes] = iter(elements) if array else lines(source.path, source.compression, source.name)
    return RowSource(source.name, layout, _decoded(texts, layout, place), place)


def rows_of_data(data: object, wanted: Wanted) -> RowSource:
    """The rows of a frame, of columns, or of a list of dictionaries."""
    if isinstance(data, Sequence) and data and all(isinstance(row, Mapping) for row in data):
        names = list(dict.fromkeys(name for row in data for name in row))
        first = [msgspec.json.encode(row, enc_hook=str) for row in data[:NAMES_FROM]]
        return _of_dicts(data, names, first, wanted, "data", lambda row: f"data: row {row + 1}")
    return _of_table(table_of(data, Request()), wanted)


def _of_table(table: Table, wanted: Wanted) -> RowSource:
    frame = table.frame.drop(ROW)
    if frame.is_empty():
        raise DataError("holds no rows", where=table.name)
    rows = (row for part in frame.iter_slices(AT_ONCE) for row in part.iter_rows(named=True))
    first = [msgspec.json.encode(row, enc_hook=str) for row in frame.head(NAMES_FROM).iter_rows(named=True)]
    numbers = table.frame[ROW]
    return _of_dicts(rows, frame.columns, first, wanted, table.name, lambda row: table.place(int(numbers[row])))


def _of_dicts(
    rows: Any,
    names: Sequence[str],
    first: Sequence[bytes],
    wanted: Wanted,
    name: str,
    place: Callable[[int], str],
) -> RowSource:
    layout = _layout(names, wanted, name, first)
    return RowSource(name, layout, _converted(iter(rows), layout, place), place)


def _layout(
    names: Sequence[str],
    wanted: Wanted,
    name: str,
    first: Sequence[bytes],
) -> Layout:
    found = resolve_clear(names, wanted.mapped, where=f"{name}:", aliases=NBEST_ALIASES)
    faults = [*found.faults.values()]
    columns = {
        part: column for part, column in found.columns.items() if part in wanted.needed or part not in JSON_CELLS
    }
    faults += [unknown_column(extra, names, name) for extra in wanted.extras if extra not in names]
    known = {*columns, *found.faults}
    for part in ("reference", *wanted.needed):
        if part not in known and not (part in ("asr", "cnet") and {"asr", "cnet"} & known):
            faults.append(_no_column(part, names, name))
    if faults:
        raise DataError.joined(faults)
    hypothesis, notes = _hypothesis_keys(first, columns.get("hypotheses"), name)
    told = tuple(note for note in found.notes if note.partition(" <- ")[0] in columns)
    return Layout(columns, wanted.extras, hypothesis, (*told, *notes))


def _no_names(first: Sequence[bytes], name: str, place: Callable[[int], str]) -> DataError:
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
        try:
            cell = _from_json(msgspec.json.decode(text).get(column))
        except (msgspec.MsgspecError, AttributeError, UnicodeDecodeError, RecursionError):
            continue
        for one in cell if isinstance(cell, list) else ():
            seen.update(dict.fromkeys(one if isinstance(one, Mapping) else ()))
    found = resolve(list(seen), {}, where=f"{name}: hypotheses:", aliases=HYPOTHESIS_ALIASES)
    return dict(found.columns), tuple(f"hypotheses: {note}" for note in found.notes)


def _decoded(texts: Iterator[bytes], layout: Layout, place: Callable[[int], str]) -> Iterator[Batch]:
    """Batches of decoded lines; a line that does not decode is looked at again for what exactly is wrong."""
    decode = msgspec.json.Decoder(layout.row_type()).decode_lines
    careful = _careful(layout)
    first = 0
    marked = True
    while some := list(islice(texts, AT_ONCE)):
        if marked:
            some[0], marked = some[0].removeprefix(BYTE_ORDER_MARK), False
        rows = _decoded_together(some, decode)
        if rows is None:
            kept = (text for text in some if text.strip())
            rows = [
                careful(parsed_line(text, f"{place(row)}:"), row, place) for row, text in enumerate(kept, start=first)
            ]
        yield Batch(rows, first)
        first += len(rows)


def _decoded_together(texts: list[bytes], decode: Callable[[bytes], list[Any]]) -> list[Any] | None:
    """The rows of several lines, blank ones left out; None where they are not one a line, or not all sound."""
    try:
        rows = decode(b"".join(texts))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    one_a_line = len(rows) == len(texts) or len(rows) == sum(1 for text in texts if text.strip())
    return rows if one_a_line else None


def _converted(rows: Iterator[Mapping[str, Any]], layout: Layout, place: Callable[[int], str]) -> Iterator[Batch]:
    careful = _careful(layout)
    first = 0
    while some := list(islice(rows, AT_ONCE)):
        yield Batch([careful(dict(row), first + at, place) for at, row in enumerate(some)], first)
        first += len(some)


def _careful(layout: Layout) -> Callable[[Any, int, Callable[[int], str]], Any]:
    """What makes a row of a decoded value, forgiving numbers written as text, or says what is wrong with it."""
    kind = layout.row_type()
    cells = [layout.columns[part] for part in JSON_CELLS if part in layout.columns]

    def careful(value: Any, row: int, place: Callable[[int], str]) -> Any:
        if not isinstance(value, dict):
            raise _no_object(value, place(row))
        for name in cells:
            value[name] = _from_json(value.get(name))
        try:
            return msgspec.convert(value, kind, strict=False)
        except msgspec.ValidationError:
            pass
        try:
            return msgspec.convert(_plain(value), kind, strict=False)
        except msgspec.ValidationError as fault:
            raise _misshapen(str(fault), value, layout, place(row)) from None

    return careful


def _misshapen(said: str, value: Mapping[str, Any], layout: Layout, place: str) -> DataError:
    what, _, path = said.partition(" - at `$")
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
    found = re.fullmatch(r"Expected `(.+)`, got `(.+)`", what)
    if found is None:
        return f"cannot be read: {what}"
    wanted = dict.fromkeys(_KINDS.get(kind, kind) for kind in found[1].split(" | ") if kind != "null")
    return f"must be {' or '.join(wanted)}, not {_KINDS.get(found[2], found[2])}"


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


def _keys(text: bytes) -> Collection[str]:
    try:
        row = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ()
    return row if isinstance(row, dict) else ()
