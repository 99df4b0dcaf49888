"""Rows inside JSON documents, values at dotted paths inside rows, and targets joined from a second file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import polars as pl

from demur.core.io.columns import nearest, resolve
from demur.core.io.tables import as_text, first
from demur.errors import DataError
from demur.importers.protocol import FEW, Row, loose_series

Step = str | int

DEEPEST = 4
"""Keys down to which rows are looked for in a document."""

BY_PLACE = "row"
"""What joins rows by their place."""

_PART = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def path_steps(path: str) -> list[Step]:
    """The keys and places that a dotted path goes through.

    >>> path_steps("scores[0].value"), path_steps("results.results")
    (['scores', 0, 'value'], ['results', 'results'])
    """
    return [name or int(place) for name, place in _PART.findall(path)]


def is_path(text: str) -> bool:
    """Whether a text can be a path and no plain name.

    >>> is_path("intent.name"), is_path("scores[0]"), is_path("label")
    (True, True, False)
    """
    return bool(re.fullmatch(r"[^.\[\]]+(?:\.[^.\[\]]+|\[\d+\])+", text))


def inner_paths(row: Mapping[str, Any]) -> tuple[str, ...]:
    """The paths to the values inside the objects and lists of a row; of a list to those of its first element.

    >>> inner_paths({"id": 1, "intent": {"name": "yes"}, "scores": [{"value": 0.5}, {"value": 0.1}]})
    ('intent.name', 'scores[0].value')
    """

    def below(path: str, value: Any, depth: int) -> Iterator[str]:
        if isinstance(value, dict) and depth:
            for name, one in value.items():
                yield from below(f"{path}.{name}", one, depth - 1)
        elif isinstance(value, list) and depth:
            yield from below(f"{path}[0]", value[0], depth - 1) if value else ()
        elif not isinstance(value, dict | list) and is_path(path):
            yield path

    return tuple(path for name, value in row.items() for path in below(name, value, DEEPEST))


def value_at(value: Any, steps: Sequence[Step]) -> Any:
    """What is at the end of a path; None where the path leads nowhere. A text that spells JSON is read as JSON.

    >>> value_at({"scores": [{"value": 0.5}]}, ["scores", 0, "value"]), value_at({"a": "{\\"b\\": 1}"}, ["a", "b"])
    (0.5, 1)
    """
    for place, step in enumerate(steps):
        if isinstance(value, str) and value[:1] in ("{", "["):
            try:
                value = msgspec.json.decode(value)
            except (msgspec.MsgspecError, RecursionError):
                return None
        if isinstance(value, dict) and isinstance(step, str):
            rest = ".".join(map(str, steps[place:]))
            if rest in value:  # a key that has dots itself
                return value[rest]
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int):
            value = value[step] if step < len(value) else None
        else:
            return None
    return value


def rows_at(document: Any, path: str, where: str) -> list[Row]:
    """The rows at a path of a document: objects, a table split into columns and data, columns, or objects by id."""
    value = value_at(document, path_steps(path)) if path else document
    rows = oriented_rows(value)
    if rows is None:
        found = ", ".join(f"{one} ({count:,})" for one, count in row_places(document))
        fix = f"rows are at {found}" if found else "there are no rows in it"
        raise DataError(f'has no rows at "{path}"', where=f"{where}:", fix=fix)
    return rows


def oriented_rows(value: Any) -> list[Row] | None:
    """The rows of a value, a table by rows or by columns; None where it is no table.

    >>> oriented_rows({"columns": ["a", "b"], "data": [[1, 2]]}), oriented_rows({"a": [1], "b": [2]})
    ([{'a': 1, 'b': 2}], [{'a': 1, 'b': 2}])
    >>> oriented_rows({"q1": {"a": 1}})
    [{'id': 'q1', 'a': 1}]
    """
    if isinstance(value, list):
        return value if value and all(isinstance(one, dict) for one in value) else None
    if not isinstance(value, dict) or not value:
        return None
    if {"columns", "data"} <= value.keys() <= {"columns", "data", "index"}:
        names, data = value["columns"], value["data"]
        whole = isinstance(names, list) and isinstance(data, list)
        if whole and all(isinstance(row, list) and len(row) == len(names) for row in data):
            return [dict(zip(map(str, names), row, strict=True)) for row in data]
        return None
    parts = list(value.values())
    if all(isinstance(part, list) for part in parts) and len({len(part) for part in parts}) == 1 and len(parts) > 1:
        return [dict(zip(value, row, strict=True)) for row in zip(*parts, strict=True)]
    if all(isinstance(part, dict) for part in parts):
        keys = set(parts[0])
        if len(parts) == 1 and all(isinstance(one, dict) for one in parts[0].values()):
            return None  # what holds a table, and no row itself
        if keys and all(set(part) & keys for part in parts):
            return _rows_by_key(value)
    return None


def _rows_by_key(value: Mapping[str, Row]) -> list[Row]:
    """The rows of objects by id; columns of values by row number, as pandas writes them, are turned."""
    keys = [list(part) for part in value.values()]
    if all(one == keys[0] for one in keys) and keys[0] == [str(place) for place in range(len(keys[0]))]:
        return [{name: part[place] for name, part in value.items()} for place in keys[0]]
    return [{"id": name, **part} for name, part in value.items()]


def row_places(document: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, int]]:
    """The paths in a document at which there are lists of objects, or like objects by id, and how many these are.

    >>> list(row_places({"run": {"rows": [{"a": 1}], "by_id": {"q1": {"a": 1, "b": 2}, "q2": {"a": 3, "b": 4}}}}))
    [('run.rows', 1), ('run.by_id', 2)]
    """
    if path and _are_rows(document):
        yield path, len(document)
    elif isinstance(document, dict) and depth < DEEPEST:
        for name, value in list(document.items())[:50]:
            yield from row_places(value, f"{path}.{name}" if path else name, depth + 1)


def _are_rows(value: Any) -> bool:
    """Whether a value is a list of objects, or two or more objects by id that have the same keys."""
    parts = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    if not parts or not all(isinstance(part, dict) for part in parts):
        return False
    return isinstance(value, list) or (
        len(parts) > 1 and len(parts[0]) > 1 and all(part.keys() == parts[0].keys() for part in parts)
    )


def with_paths(frame: pl.DataFrame, paths: Sequence[str], where: str) -> pl.DataFrame:
    """The rows with a column for each path, called as the path; a path that leads nowhere in every row is refused."""
    for path in paths:
        head, *rest = path_steps(path)
        if head not in frame.columns:
            rule = f'there is no column "{path}", nor a column "{head}" that it could lead into'
            raise DataError(rule, where=f"{where}:", fix=nearest(str(head), frame.columns))
        values = [value_at(cell, rest) for cell in frame[str(head)].to_list()]
        if all(value is None for value in values):
            inside = _keys_inside(frame[str(head)].to_list())
            raise DataError(f'the path "{path}" leads nowhere', where=f"{where}:", fix=inside)
        frame = frame.with_columns(loose_series(path, values))
    return frame


def _keys_inside(cells: Sequence[Any]) -> str:
    known: dict[str, None] = {}
    for cell in cells[:100]:
        value = value_at({"cell": cell}, ["cell"])
        value = msgspec.json.decode(value) if isinstance(value, str) and value[:1] == "{" else value
        known.update(dict.fromkeys(value if isinstance(value, dict) else ()))
    return f"there are {', '.join(list(known)[:FEW])}" if known else "it holds no objects"


def with_gold(frame: pl.DataFrame, gold: pl.DataFrame, on: str | None, where: str, gold_name: str) -> pl.DataFrame:
    """The rows with the targets of a second table, joined by a column of both, or by the place of a row."""
    target = resolve(gold.columns, {}, parts=("target",), where=f"{gold_name}:").columns.get("target")
    if target is None:
        rule = "has no column of targets"
        raise DataError(rule, where=f"{gold_name}:", fix=f"call it target; there are {', '.join(gold.columns[:FEW])}")
    if on == BY_PLACE and BY_PLACE not in frame.columns:
        if gold.height != frame.height:
            rule = f"has {gold.height:,} rows, {where} has {frame.height:,}"
            raise DataError(rule, where=f"{gold_name}:", fix="joined by the place of a row, both must have as many")
        return frame.with_columns(gold[target].alias("target"))
    key = on or "id"
    for name, table in ((where, frame), (gold_name, gold)):
        if key not in table.columns:
            fix = f"`on` names a column of both, or row for the place; there are {', '.join(table.columns[:FEW])}"
            raise DataError(f'has no column "{key}" to join the targets by', where=f"{name}:", fix=fix)
    targets = pl.DataFrame({"demur:on": as_text(gold[key]), "demur:target": gold[target]}).drop_nulls("demur:on")
    repeated = targets.filter(pl.col("demur:on").is_duplicated())
    if repeated["demur:on"].n_unique() < repeated.select(pl.struct(pl.all()).n_unique()).item():
        rule = f'has several targets for {key} "{repeated["demur:on"][0]}"'
        raise DataError(rule, where=f"{gold_name}:", fix="each may have one")
    keyed = frame.with_columns(as_text(frame[key]).alias("demur:on"))
    found = keyed.join(
        targets.unique("demur:on").with_columns(pl.lit(value=True).alias("demur:found")),
        on="demur:on",
        how="left",
        maintain_order="left",
    )
    if (place := first(found["demur:found"].is_null())) is not None:
        count = found["demur:found"].null_count()
        rule = f'{key} "{found["demur:on"][place]}" has no target in {gold_name} ({count:,} such rows in all)'
        raise DataError(rule, where=f"{where}:", fix="every row needs one")
    targeted = found.with_columns(pl.col("demur:target").alias("target"))
    return targeted.drop("demur:on", "demur:target", "demur:found")
