"""Keys that come twice in an object of JSON, by Python's own reader, line by line."""

import json
from typing import Any


class _RepeatedError(Exception):
    pass


def _unique(pairs: list[tuple[str, Any]]) -> None:
    if len({key for key, _ in pairs}) < len(pairs):
        raise _RepeatedError


def repeats(text: str) -> bool:
    """Whether an object has a key twice, at any depth."""
    try:
        json.loads(text, object_pairs_hook=_unique)
    except _RepeatedError:
        return True
    return False


def first_repeat(text: str) -> int | None:
    """The number of the first line with an object that has a key twice, from 1."""
    lines = enumerate(text.split("\n"), start=1)
    return next((number for number, line in lines if line.strip() and repeats(line)), None)
