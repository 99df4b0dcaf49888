"""Finds objects of JSON that have a key twice, of which one value would be lost."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from demur.core.io.sources import NOT_JSON, Source
from demur.errors import DataError

Counts = NDArray[np.integer[Any]]
Places = NDArray[np.intp]

_COLON, _LINE_FEED = ord(":"), ord("\n")
_BEFORE_COLONS = np.isin(np.arange(256), list(b'" \t\r'))
"""Which bytes may stand before the colon of a key."""

_decode_lines = msgspec.json.Decoder().decode_lines
_decode_rows = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode_lines


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
