"""Finds objects of JSON that have a key twice, of which one value would be lost."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
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


def refuse_repeated_keys(source: Source, values: Counts) -> None:
    """Refuses a line with an object that has a key twice, given how many values were read of each row, without nulls.

    Each key has its colon, so that lines with no more colons than values have none twice; most need no closer look.
    """
    if not source.compression and _colons(source) == values.sum():
        return
    before = 0
    for block in source.blocks():
        text = block if block.endswith(b"\n") else block + b"\n"
        letters = np.frombuffer(text, np.uint8)
        ends = np.flatnonzero(letters == _LINE_FEED)
        known = values[before : before + ends.size]
        if known.size != ends.size:
            known = np.zeros(ends.size, np.int64)
        _refuse_lines(text, ends, _doubtful_lines(letters, ends, known), source.name, before + 1)
        before += ends.size
    if before != values.size:  # with blank lines it is not known which row a line is
        refuse_repeated_keys(source, np.zeros(before, np.int64))


def _colons(source: Source) -> int:
    blocks = source.blocks(cut=True)
    return sum(int(np.count_nonzero(np.frombuffer(block, np.uint8) == _COLON)) for block in blocks)


def _doubtful_lines(letters: NDArray[np.uint8], ends: Places, values: Counts) -> Places:
    """Gives the lines that have more colons than values, but for those that can only stand inside of text."""
    colons = np.flatnonzero(letters == _COLON)
    if colons.size == values.sum():
        return colons[:0]
    of_keys = colons[_BEFORE_COLONS[letters[colons - 1]]]
    counts = np.diff(np.searchsorted(of_keys, ends), prepend=0)
    return np.flatnonzero(counts != values)


def _refuse_lines(text: bytes, ends: Places, doubtful: Places, name: str, first: int) -> None:
    begins = np.append(0, ends[:-1] + 1)
    lines = [
        text[begin : end + 1] for begin, end in zip(begins[doubtful].tolist(), ends[doubtful].tolist(), strict=True)
    ]
    if lines and may_repeat_keys(b"".join(lines)):
        for line, number in zip(lines, doubtful.tolist(), strict=True):
            refuse_repeats_in(line, f"{name}:{first + number}:")


def may_repeat_keys(text: bytes) -> bool:
    """Whether an object in lines of JSON may have a key twice, or the text cannot be read.

    >>> may_repeat_keys(b'{"a": {"b": 1}, "b": "a:"}'), may_repeat_keys(b'{"a": {"b": 1, "b": 2}}')
    (False, True)
    """
    try:
        return not keeps_all_keys(text, _decode_lines(text))
    except NOT_JSON:
        return True


def keeps_all_keys(text: bytes, value: Any) -> bool:
    """Whether what was decoded of a text certainly has all its keys.

    Encoded again, it has fewer colons than the text if a key was dropped. No other colons are lost, and none is new
    unless one was escaped.
    """
    if b"\\u003" in text:
        return False
    try:
        return text.count(b":") == msgspec.json.encode(value).count(b":")
    except (TypeError, ValueError, OverflowError, RecursionError):
        return False


def refuse_repeats_in(text: bytes, where: str) -> None:
    """Refuses JSON in which an object has a key twice."""
    if not may_repeat_keys(text):
        return
    try:
        json.loads(text, object_pairs_hook=lambda pairs: _refuse_pairs(pairs, where))
    except RecursionError:
        raise DataError("the row is nested too deeply", where=where) from None
    except ValueError:  # what is no JSON is refused by whoever reads it
        return


def refuse_repeats_in_cells(cells: Sequence[str], place: Callable[[int], str]) -> None:
    """Refuses cells of JSON in which an object has a key twice."""
    if cells and may_repeat_keys("\n".join(cells).encode()):
        for number, cell in enumerate(cells):
            refuse_repeats_in(cell.encode(), place(number))


def _refuse_pairs(pairs: list[tuple[str, Any]], where: str) -> None:
    for key, times in Counter(key for key, _ in pairs).items():
        if times > 1:
            raise DataError(f'has the key "{key}" {times} times', where=where, fix="one value would be lost")


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
