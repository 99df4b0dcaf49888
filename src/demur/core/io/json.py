"""Reads JSON, one object per line or one array of objects, and refuses objects that have a key twice."""

from __future__ import annotations

import io
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.io.sources import CHUNK, NOT_JSON, UNREADABLE, Source, exactly, not_utf8
from demur.core.io.tables import Request, Table, numbered, refuse_large
from demur.errors import DataError

NAMES_FROM = 1000
"""How many lines are looked at for the names of columns before the rows are read."""

SHORT_FROM, SHORT = 100, 100
"""How many lines are looked at for columns whose cells are short, and how many bytes such a cell has at most."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

REPLACED = "\ufffd".encode()
"""What stands for bytes that are not UTF-8 in lines decompressed by Polars."""

PIECE = 4 * CHUNK
"""Bytes of a large file that are read at once."""

_NESTED = r"^[\[{]"
_DOUBTFUL = r"[\\\x00-\x1f]"

_keys = msgspec.json.Decoder(dict[str, msgspec.Raw])

Counts = NDArray[np.integer[Any]]
Places = NDArray[np.intp]

_COLON, _LINE_FEED = ord(":"), ord("\n")
_BEFORE_COLONS = np.isin(np.arange(256), list(b'" \t\r'))
"""Which bytes may stand before the colon of a key."""

_decode_lines = msgspec.json.Decoder().decode_lines
_decode_rows = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode_lines


def read_json(source: Source, request: Request) -> Table:
    """Reads the objects of a JSON file as rows.

    Column names are taken from the first thousand rows, or from all where every column is asked for and rows hold more
    than these; a column that was asked for by name is found in whichever row it first appears. Lists and objects arrive
    as their JSON text.
    """
    head = source.head()
    if head.removeprefix(BYTE_ORDER_MARK).lstrip().startswith(b"["):
        return _read_array(source, request)
    later = request.every_name and not source.compression  # whether rows may hold further names
    names = column_names(source, NAMES_FROM if later or not request.every_name else None)
    if later:
        refuse_large(len(names), sum(block.count(b"\n") for block in source.blocks(cut=True)), source.name)
    frame, values = _read_lines(source, names, request)
    if not has_only_values(source, values):
        if later and len(every := column_names(source, None)) > len(names):
            names = every
            frame, values = _read_lines(source, names, request)
        refuse_repeated_keys(source, values, _nested_columns(frame))
    return _numbered_rows(frame, names, source.name, line_finder(source))


def _read_lines(source: Source, names: Collection[str], request: Request) -> tuple[pl.DataFrame, Counts]:
    """Gives the wanted columns, and how many values each row has, with those in short columns that are not wanted."""
    marked, numeric = source.head().startswith(BYTE_ORDER_MARK), request.numeric
    columns = list(dict.fromkeys((*request.candidates(names), *_short_columns(source))))
    try:
        frame = _read_records(lambda: [whole_text(source)] if marked else _file_in_parts(source), columns, numeric)
        values = _value_counts(frame)
        # older Polars reads a line that is no object as a row of nulls
        rows = _wanted(frame, names, request)
        if values.all() and not _has_doubtful_lists(rows):
            return rows, values
    except UNREADABLE:
        pass
    repaired = _repaired(source, numeric)
    frame = _read_records(lambda: [repaired], columns, numeric)
    return _wanted(frame, names, request), _value_counts(frame)


def _wanted(frame: pl.DataFrame, names: Collection[str], request: Request) -> pl.DataFrame:
    """Gives the wanted columns that hold something, or that rows name; any one where there is none, to count rows."""
    wanted = dict.fromkeys(request.candidates(names))
    kind = {name: pl.Float64 if name in request.numeric else pl.String for name in wanted}
    empty = [name for name in wanted if name in names and name not in frame.columns]
    frame = frame.with_columns(pl.lit(None, dtype=kind[name]).alias(name) for name in empty)
    return frame[[name for name in wanted if name in frame.columns] or frame.columns[:1]]


def _file_in_parts(source: Source) -> Iterator[str | io.BytesIO]:
    """Gives the file, or the parts of a large one: Polars takes several times the room of what it reads at once."""
    if source.compression or source.path.stat().st_size < 2 * PIECE:
        yield exactly(source.path)
        return
    blocks = source.blocks()
    while piece := b"".join(islice(blocks, PIECE // CHUNK)):
        yield io.BytesIO(piece)


def _short_columns(source: Source) -> list[str]:
    """Gives the columns that hold neither lists nor objects nor long texts in the first lines."""
    longest: dict[str, int] = {}
    for line in source.lines(SHORT_FROM):
        with suppress(*NOT_JSON):
            for name, cell in _keys.decode(line).items():
                size = SHORT + 1 if bytes(cell).startswith((b"[", b"{")) else len(cell)
                longest[name] = max(longest.get(name, 0), size)
    return [name for name, size in longest.items() if size <= SHORT]


def _value_counts(frame: pl.DataFrame) -> Counts:
    if not frame.width:
        return np.zeros(0, np.int64)
    return frame.select(pl.sum_horizontal(pl.all().is_not_null())).to_series().to_numpy()


def _numbered_rows(frame: pl.DataFrame, names: Collection[str], name: str, place: Callable[[int], str]) -> Table:
    if frame.is_empty():
        raise DataError("holds no rows", where=name)
    late = [column for column in frame.columns if column not in names and frame[column].null_count() < frame.height]
    return numbered(frame, columns=(*names, *late), name=name, place=place)


def _has_doubtful_lists(frame: pl.DataFrame) -> bool:
    """Tells of lists and objects whose text may not be what they say.

    Polars writes a backslash, a tab and the like in them as they are, so that a backslash and a b in a list would come
    back as one control character. Of text that has neither in it all is well.
    """
    nested = (frame.get_column(name).alias("text") for name in _nested_columns(frame))
    return any(one.filter(one.str.contains(_NESTED)).str.contains(_DOUBTFUL).any() for one in nested)


def _nested_columns(frame: pl.DataFrame) -> list[str]:
    """Gives the columns in which there is a list or an object, or a text that begins like one."""
    texts = {one.name: one.alias("text") for one in frame.get_columns() if one.dtype == pl.String}
    return [name for name, one in texts.items() if any(one.str.starts_with(mark).any() for mark in "[{")]


def _read_records(
    pieces: Callable[[], Iterable[str | io.BytesIO]], columns: Collection[str], numeric: Collection[str]
) -> pl.DataFrame:
    text = dict.fromkeys(columns, pl.String())
    numbers = {name: pl.Float64() for name in columns if name in numeric}
    try:
        return _joined(pieces(), {**text, **numbers})
    except UNREADABLE:
        return _joined(pieces(), text)


def _joined(pieces: Iterable[str | io.BytesIO], schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """The rows of all pieces, in columns that hold something: each of the many that may come takes room otherwise."""
    frames = []
    for piece in pieces:
        if isinstance(piece, io.BytesIO):
            piece.seek(0)
        frame = pl.read_ndjson(piece, schema=schema)
        held = [name for name in frame.columns if frame[name].null_count() < frame.height]
        frames.append(frame[held or frame.columns[:1]].shrink_to_fit())
    frame = pl.concat(frames, how="diagonal")
    return frame[[name for name in schema if name in frame.columns]]


def column_names(source: Source, limit: int | None) -> list[str]:
    """Gives the names of columns in the first lines, or in all of them."""
    names: dict[str, None] = {}
    number = 0
    for number, line in enumerate(source.lines(limit), start=1):
        known = len(names)
        try:
            names.update(dict.fromkeys(_keys.decode(line)))
        except NOT_JSON:
            names.update(dict.fromkeys(_lenient_keys(line)))
        if len(names) > known:
            refuse_large(len(names), number, source.name)
    refuse_large(len(names), number, source.name)
    return list(names)


def _lenient_keys(line: bytes) -> Collection[str]:
    try:
        row = json.loads(line.removeprefix(BYTE_ORDER_MARK))
    except (ValueError, RecursionError):
        return ()
    return row if isinstance(row, dict) else ()


def whole_text(source: Source) -> io.BytesIO:
    """Gives all of a file, decompressed."""
    text = b"".join(source.lines())
    return io.BytesIO(text.removeprefix(BYTE_ORDER_MARK))


def line_finder(source: Source) -> Callable[[int], str]:
    """Gives what says on which line a row stands, rows counted from 0 and blank lines not counted."""

    def place(row: int) -> str:
        found = -1
        for number, line in enumerate(source.lines(), start=1):
            found += bool(line.strip())
            if found == row:
                return f"{source.name}:{number}"
        return f"{source.name}: row {row + 1}"

    return place


def _repaired(source: Source, numeric: Collection[str]) -> io.BytesIO:
    """Gives the lines with lists, NaN and Infinity written so that they are read right, or raises the first fault."""
    whole = io.BytesIO()
    for number, line in enumerate(source.lines(), start=1):
        bare = line
        while number == 1 and bare.startswith(BYTE_ORDER_MARK):  # several, where files were put together
            bare = bare.removeprefix(BYTE_ORDER_MARK)
        if source.compression == "zstd" and REPLACED in bare:
            fix = "convert the text inside, for example with iconv -f Latin-1 -t UTF-8"
            raise DataError("the line is not UTF-8", where=f"{source.name}:{number}:", fix=fix)
        whole.write(_repaired_line(bare, f"{source.name}:{number}:", numeric))
    whole.seek(0)
    return whole


def _repaired_line(line: bytes, where: str, numeric: Collection[str]) -> bytes:
    if not line.strip():
        return line
    row = parsed_line(line, where)
    if not isinstance(row, dict):
        got = line.strip().decode(errors="replace")[:60]
        raise DataError("each line must be a JSON object", where=where, got=got)
    repaired = {key: _readable(key, value, numeric) for key, value in row.items()}
    if all(repaired[key] is value for key, value in row.items()):
        return line if line.endswith(b"\n") else line + b"\n"
    return msgspec.json.encode(repaired) + b"\n"


def _readable(key: str, value: Any, numeric: Collection[str]) -> Any:
    """Gives lists and objects as text, which keeps all their characters, and numbers that JSON has no sign for too.

    Outside numeric columns NaN is a missing value.
    """
    if isinstance(value, list | dict):
        return msgspec.json.encode(value).decode()
    if isinstance(value, int) and abs(value) > sys.float_info.max:
        return str(value)
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return None if math.isnan(value) and key not in numeric else str(value)


def parsed_line(line: bytes, where: str) -> Any:
    """Gives what a line says, NaN and Infinity included, or raises what is wrong with it."""
    try:
        return msgspec.json.decode(line)
    except NOT_JSON as error:
        reason = str(error)
    try:
        row = json.loads(line)
        json.dumps(row, ensure_ascii=False).encode()
        return row
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):04x}"
        raise DataError("the line has half of a surrogate pair, which is no character", where=where, got=half) from None
    except UnicodeDecodeError as error:
        raise not_utf8(error, where) from None
    except (ValueError, RecursionError):
        pass
    got = line.strip().decode()
    if not line.endswith(b"\n") or "truncated" in reason:
        fix = "each line must hold one whole object, or the file one array of objects"
        raise DataError("the line is cut off", where=where, got=got[-60:], fix=fix)
    raise DataError(f"the line is not JSON: {reason}", where=where, got=got[:60])


def _read_array(source: Source, request: Request) -> Table:
    rows = list(array_elements(whole_text(source).getvalue(), source.name))
    if not rows:
        raise DataError("holds no rows", where=source.name)
    refuse_large(1, len(rows), source.name)

    def place(row: int) -> str:
        return f"{source.name}: element {row + 1}"

    lines = (_repaired_line(element + b"\n", f"{place(row)}:", request.numeric) for row, element in enumerate(rows))
    whole = io.BytesIO(b"".join(lines))
    names = list(dict.fromkeys(name for element in rows for name in _lenient_keys(element)))
    refuse_large(len(names), len(rows), source.name)
    wanted = dict.fromkeys(request.candidates(names))
    refuse_repeats_in_rows(rows, lambda row: f"{place(row)}:", wanted)
    frame = _wanted(_read_records(lambda: [whole], wanted, request.numeric), names, request)
    return _numbered_rows(frame, names, source.name, place)


def array_elements(text: bytes, name: str) -> Iterator[bytes]:
    """Gives the elements of an array, each as JSON."""
    try:
        yield from map(bytes, msgspec.json.decode(msgspec.json.format(text, indent=-1), type=list[msgspec.Raw]))
        return
    except NOT_JSON:
        pass
    try:
        rows = json.loads(text, object_pairs_hook=all_pairs)
    except UnicodeDecodeError as error:
        raise not_utf8(error, f"{name}:") from None
    except json.JSONDecodeError as error:
        rule = f"the array is cut off or not JSON: {error.msg}"
        raise DataError(rule, where=f"{name}:{error.lineno}:", fix="write the file again") from None
    except RecursionError:
        raise DataError("the array is nested too deeply to be rows", where=f"{name}:") from None
    yield from (json.dumps(row).encode() for row in rows)


def has_only_values(source: Source, values: Counts) -> bool:
    """Whether a file that is not compressed has no more colons than values, and so no key twice: each has its colon."""
    return not source.compression and sum(map(_colons_in, source.blocks(cut=True))) == values.sum()


def refuse_repeated_keys(source: Source, values: Counts, nested: Collection[str]) -> None:
    """Refuses a line that has a key twice, in its row or in an object of one of the nested columns.

    `values` says how many were read of each row, without nulls. Lines with no more colons than values need no closer
    look.
    """
    before = 0
    for block in source.blocks():
        text = block if block.endswith(b"\n") else block + b"\n"
        letters = np.frombuffer(text, np.uint8)
        ends = np.flatnonzero(letters == _LINE_FEED)
        known = values[before : before + ends.size]
        if known.size != ends.size:
            known = np.zeros(ends.size, np.int64)
        doubtful = _doubtful_lines(letters, ends, known)
        begins = np.append(0, ends[:-1] + 1)[doubtful].tolist()
        lines = [text[begin : end + 1] for begin, end in zip(begins, ends[doubtful].tolist(), strict=True)]
        refuse_repeats_in_rows(lines, _line_namer(source.name, before + 1 + doubtful), nested)
        before += ends.size
    if before != values.size:  # with blank lines it is not known which row a line is
        refuse_repeated_keys(source, np.zeros(before, np.int64), nested)


def _line_namer(name: str, numbers: Places) -> Callable[[int], str]:
    return lambda line: f"{name}:{numbers[line]}:"


def _colons_in(text: bytes) -> int:
    return int(np.count_nonzero(np.frombuffer(text, np.uint8) == _COLON))


def _has_escaped_colons(text: bytes) -> bool:
    return b"\\" in text and (b"\\u003a" in text or b"\\u003A" in text)


def _doubtful_lines(letters: NDArray[np.uint8], ends: Places, values: Counts) -> Places:
    """Gives the lines that have more colons than values, but for those that can only stand inside of text."""
    colons = np.flatnonzero(letters == _COLON)
    if colons.size == values.sum():
        return colons[:0]
    of_keys = colons[_BEFORE_COLONS[letters[colons - 1]]]
    counts = np.diff(np.searchsorted(of_keys, ends), prepend=0)
    return np.flatnonzero(counts != values)


def refuse_repeats_in_rows(
    rows: Sequence[bytes], place: Callable[[int], str], nested: Collection[str] | None = None
) -> None:
    """Refuses rows of JSON that have a key twice, in the row or in an object of a nested column; None is all of them.

    `place` says where a row stands, by its number.
    """
    if rows and _may_repeat_keys(rows, nested):
        for number, text in enumerate(rows):
            if _may_repeat_keys([text], nested):
                _refuse_row(text, place(number), nested)


def _may_repeat_keys(rows: Sequence[bytes], nested: Collection[str] | None) -> bool:
    """Whether rows of JSON may have a key twice, or cannot be read."""
    text = b"\n".join(rows)
    try:
        if nested is None or text.count(b"{") <= len(rows):
            return not keeps_all_keys(text, _decode_lines(text))
        cells = _decode_rows(text)
        inside = b"\n".join(row[name] for name in nested for row in cells if name in row)
        return not _keeps_all_rows(text, cells) or not keeps_all_keys(inside, _decode_lines(inside))
    except NOT_JSON:
        return True


def keeps_all_keys(text: bytes, value: Any) -> bool:
    """Whether what was decoded of a text certainly has all its keys.

    Encoded again, it has fewer colons than the text if a key was dropped. No other colons are lost, and none is new
    unless one was escaped.

    >>> text = b'[{"act": "bye:", "p": 0.9, "p": 0.1}]'
    >>> keeps_all_keys(text, json.loads(text)), keeps_all_keys(b'{"p": 1}', {"p": 1})
    (False, True)
    """
    try:
        return _colons_in(text) == _colons_in(msgspec.json.encode(value)) and not _has_escaped_colons(text)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return False


def refuse_repeats_in(document: bytes, where: str) -> None:
    """Refuses a document of JSON with a key twice in any of its objects."""
    try:
        sound = keeps_all_keys(document, msgspec.json.decode(document))
    except NOT_JSON:
        sound = False
    if not sound:
        _refuse_row(document, where, None)


def _keeps_all_rows(text: bytes, rows: Sequence[Mapping[str, msgspec.Raw]]) -> bool:
    """Whether rows certainly have all keys of a text: a colon that is not in a cell is that of a key."""
    names = Counter(chain.from_iterable(rows))
    keys = names.total() + sum(name.count(":") * times for name, times in names.items())
    inside = b"".join(chain.from_iterable(row.values() for row in rows))
    return _colons_in(text) - _colons_in(inside) == keys and not _has_escaped_colons(text)


def _refuse_row(text: bytes, where: str, nested: Collection[str] | None) -> None:
    try:
        repeated = _first_repeated(json.loads(text, object_pairs_hook=all_pairs), nested)
    except RecursionError:
        raise DataError("the row is nested too deeply", where=where) from None
    except ValueError:  # what is no JSON is refused by whoever reads it
        return
    if repeated is not None:
        ((key, times),) = Counter(key for key, _ in repeated.items()).most_common(1)
        raise DataError(f'has the key "{key}" {times} times', where=where, fix="one value would be lost")


def _first_repeated(value: Any, nested: Collection[str] | None = None) -> AllPairs | None:
    """Gives an object with a key twice: the value, or one in its columns if these are named, or else in all of it."""
    if isinstance(value, AllPairs):
        return value
    if isinstance(value, dict):
        value = list(value.values()) if nested is None else [value[name] for name in nested if name in value]
    inside = map(_first_repeated, value if isinstance(value, list) else ())
    return next((one for one in inside if one is not None), None)


class AllPairs(dict[str, Any]):
    """An object with a key twice, which `json.dumps` writes with all that it has."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self._pairs = pairs

    def items(self) -> Any:
        """Gives each key with its value, as they came."""
        return self._pairs


def all_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Gives an object of which no pair is lost, for `json.loads`.

    >>> json.dumps(json.loads('[{"a": 1, "a": 2}]', object_pairs_hook=all_pairs))
    '[{"a": 1, "a": 2}]'
    """
    found = dict(pairs)
    return found if len(found) == len(pairs) else AllPairs(pairs)


def row_texts(source: Source) -> tuple[bytes, ...]:
    """The text of each row of a JSON file; none where it is not as strict as what is written."""
    lines = (line.removeprefix(BYTE_ORDER_MARK).strip() for line in source.lines())
    texts = tuple(line for line in lines if line)
    try:
        if texts and texts[0].startswith(b"["):
            return tuple(map(bytes, msgspec.json.decode(b"".join(texts), type=list[msgspec.Raw])))
        for text in texts:
            msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except NOT_JSON:
        return ()
    return texts
