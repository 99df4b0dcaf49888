"""The keys that documents of one format promise: a tree for each command, kept in a file that only grows."""

import json
from collections.abc import Iterator
from typing import Any

from demur.core.show.safe import JSON_FORMAT
from golden.record import HOME, cases

FILE = HOME / f"format-{JSON_FORMAT}.json"
ITEM = "[]"
"""The key of what a list holds."""
DATA = ("weights",)
"""Objects whose keys are data, such as the features of a learned policy: no format promises them."""


def shape_of(value: Any) -> dict[str, Any]:
    """The keys of a document as a tree.

    >>> shape_of({"n": 3, "systems": [{"name": "a"}, {"n": 1}]})
    {'n': {}, 'systems': {'[]': {'name': {}, 'n': {}}}}
    """
    if isinstance(value, dict):
        return {key: {} if key in DATA else shape_of(inner) for key, inner in value.items()}
    items = [shape_of(inner) for inner in value] if isinstance(value, list) else []
    joined: dict[str, Any] = {}
    for one in items:
        joined = merged(joined, one)
    return {ITEM: joined} if joined else {}


def merged(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """The keys of both trees."""
    both = {key: merged(first[key], second[key]) for key in first.keys() & second.keys()}
    return {key: both.get(key, inner) for key, inner in (first | second).items()}


def missing(promised: dict[str, Any], now: dict[str, Any], at: str = "") -> Iterator[str]:
    """The paths that a tree promises and another lacks; a list or an object that is empty now lacks nothing."""
    for key, inner in promised.items():
        if key not in now and now:
            yield f"{at}{key}"
        elif key in now:
            yield from missing(inner, now[key], f"{at}{key}.")


def recorded_shapes() -> dict[str, dict[str, Any]]:
    """The tree of the first case recorded for each command."""
    shapes: dict[str, dict[str, Any]] = {}
    for case in cases().values():
        if case.json and case.files["json"].exists():
            record = json.loads(case.files["json"].read_text(encoding="utf-8"))
            if isinstance(record["document"], dict) and record["exit_code"] == 0:
                shapes.setdefault(command_of(case.command), shape_of(record["document"]))
    return shapes


def command_of(line: str) -> str:
    """The command of a line, of one word or two."""
    words = line.split()
    groups = ("outcome", "understand", "recalibrate", "study", "experiment", "import")
    return " ".join(words[: 2 if words[0] in groups else 1])


def promised_shapes() -> dict[str, dict[str, Any]]:
    """The trees as they were promised."""
    return dict(json.loads(FILE.read_text(encoding="utf-8"))) if FILE.exists() else {}


def add_promises() -> None:
    """Adds what is new in the recorded documents; nothing is removed."""
    shapes = merged(promised_shapes(), recorded_shapes())
    FILE.write_text(json.dumps(shapes, indent=1, sort_keys=True) + "\n", encoding="utf-8")
