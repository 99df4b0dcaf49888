"""Keys that come twice in an object of JSON, by Python's own reader, line by line."""

import json
from collections.abc import Collection
from typing import Any


class _Twice(dict[str, Any]):
    """An object that has a key twice."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return dict(pairs) if len({key for key, _ in pairs}) == len(pairs) else _Twice(pairs)


def _repeats(value: Any) -> bool:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return isinstance(value, _Twice) or any(map(_repeats, inside))


def repeats(text: str, columns: Collection[str] | None = None) -> bool:
    """Whether an object has a key twice: the row, or one in these columns, or at any depth where none are named."""
    row = json.loads(text, object_pairs_hook=_object)
    if columns is None or isinstance(row, _Twice):
        return _repeats(row)
    return any(_repeats(row[name]) for name in columns if name in row)


def first_repeat(text: str, columns: Collection[str] | None = None) -> int | None:
    """The number of the first line with an object that has a key twice, from 1."""
    lines = enumerate(text.split("\n"), start=1)
    return next((number for number, line in lines if line.strip() and repeats(line, columns)), None)
