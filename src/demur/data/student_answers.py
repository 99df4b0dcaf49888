"""The table of student answers: what was asked, what was expected, what was answered, and how it was marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import polars as pl

from demur.data.cells import Cells, first
from demur.data.columns import ALIASES, mapping_of, nearest, resolve
from demur.data.frames import table_of
from demur.data.tables import Request
from demur.errors import DataError

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "id": (),
    "question": (),
    "expected": ("expected_answer", "expected_answers", "reference", "references", "reference_answers"),
    "answer": ("student_answer", "response"),
    "target": ("gold", "label"),
    "dialogue": ALIASES["dialogue"],
    "group": ("subject", "student"),
}
"""The canonical columns of a table of student answers, each with the other names it may go by."""

TEXTS = ("question", "expected", "answer")


def student_answers(data: object, *, columns: Mapping[str, str] | None = None, marked: bool = False) -> pl.DataFrame:
    """Reads and checks student answers in a frame, in columns, or in rows.

    The result has id, question, expected, answer and, where the data has them, target, dialogue and group. `expected`
    may be a text, a list of texts or a list of `{"text": ...}`; in the result it is always a list, without blank ones.
    An answer may be empty, as students send such, but not missing. `columns` maps canonical columns to those of
    the data. `marked` asks for a target in every row. Rows without an id are numbered from 1.

    >>> row = {"question": "Why is it on?", "references": [{"text": "The path is closed."}], "answer": ""}
    >>> student_answers([row]).row(0, named=True)
    {'id': '1', 'question': 'Why is it on?', 'expected': ['The path is closed.'], 'answer': ''}
    """
    table = table_of(data, Request())
    found = resolve(table.columns, dict(columns or {}), where=f"{table.name}:", aliases=COLUMNS).columns
    needed = (*TEXTS, "target") if marked else TEXTS
    for part in needed:
        if part not in found:
            fix = f"{nearest(part, table.columns)} {mapping_of(part, '...')}".strip()
            raise DataError(f'there is no column "{part}"', where=f"{table.name}:", fix=fix)
    cells = Cells(table, found)
    texts = {part: cells.text(part) for part in found}
    for part in needed:
        _refuse_missing(cells, texts[part], part)
    texts.setdefault("id", pl.Series([str(number) for number in range(1, table.frame.height + 1)], dtype=pl.String))
    lists = [_texts(cell, cells, place) for place, cell in enumerate(texts["expected"])]
    texts["expected"] = pl.Series(lists, dtype=pl.List(pl.String))
    return pl.DataFrame({part: texts[part] for part in COLUMNS if part in texts})


def _refuse_missing(cells: Cells, texts: pl.Series, part: str) -> None:
    place = first(texts.is_null())
    if place is not None:
        fix = "leave the row out, or write an empty text" if part == "answer" else "leave the row out"
        raise cells.fault(part, place, "must not be missing", fix=fix)


def _texts(cell: str, cells: Cells, place: int) -> list[str]:
    texts = [text for text in _listed(cell, cells, place) if text.strip()]
    if not texts:
        rule = "must hold at least one expected answer with words"
        raise cells.fault("expected", place, rule, got=cell, fix="leave the row out, or give the question an answer")
    return texts


def _listed(cell: str, cells: Cells, place: int) -> list[str]:
    """The texts of a cell, which is a text or a list in JSON."""
    if not cell.lstrip().startswith("["):
        return [cell]
    try:
        values: Any = msgspec.json.decode(cell)
    except msgspec.DecodeError:
        return [cell]
    texts: list[Any] = [value.get("text") if isinstance(value, dict) else value for value in values]
    if not all(isinstance(text, str) for text in texts):
        rule = 'must be a text, a list of texts or a list of {"text": ...}'
        raise cells.fault("expected", place, rule, got=cell)
    return texts


def exchanges(answers: pl.DataFrame) -> Sequence[tuple[str, list[str], str]]:
    """Question, expected answers and answer of each row of a checked table."""
    return answers.select(TEXTS).rows()
