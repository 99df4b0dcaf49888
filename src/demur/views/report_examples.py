"""The section of a report that shows rows: surest errors, right answers just withheld, what was out of scope."""

from __future__ import annotations

import math
from collections.abc import Sequence

import polars as pl

from demur.analyses.examples import Example, Examples
from demur.views.markdown import visible
from demur.views.presentation import Presentation, Table

OUT_OF_SCOPE = "(out of scope)"
SUREST = "surest errors"
BREAK = " ⏎ "
"""How a line break inside an input is shown."""


def example_section(found: Sequence[Examples]) -> Presentation:
    """What to look at; the tables hold what people wrote, so they are shown apart from tables of numbers."""
    return Presentation(
        title="What to look at",
        sentences=tuple(sentence for one in found for sentence in _sentences(one)),
        tables=tuple(table for one in found for table in _tables(one)),
        figures=(),
        data=lambda: pl.DataFrame([row.to_dict() for one in found for row in one.confident_errors]),
        document={"examples": [one.to_dict() for one in found]},
    )


def _sentences(one: Examples) -> list[str]:
    if math.isnan(one.threshold):
        return [f"{one.system} returns nothing, so there is nothing to look at but the right answers it withholds."]
    if one.errors == 0:
        return [f"{one.system}: no wrong answer is returned at the threshold advised."]
    scope = f", {one.out_of_scope:,} of them to inputs out of scope" if one.out_of_scope else ""
    return [
        f"{one.system}: at the threshold advised, {one.errors:,} wrong {_answers(one.errors)} returned{scope}, and "
        f"{one.missed:,} right {_answers(one.missed)} withheld."
    ]


def _answers(count: int) -> str:
    return "answer is" if count == 1 else "answers are"


def _tables(one: Examples) -> list[Table]:
    parts = (
        (SUREST, one.confident_errors, one.errors - one.out_of_scope),
        ("missed chances: right, but withheld", one.missed_chances, one.missed),
        ("returned although out of scope", one.out_of_scope_returned, one.out_of_scope),
    )
    tables = [_table(f"{one.system}: {title}", rows, count) for title, rows, count in parts if rows]
    return [*tables, *([_confusions(one)] if one.confusions else [])]


def _table(title: str, rows: Sequence[Example], count: int) -> Table:
    """A row per example; columns that no example has are left out."""
    inputs, lists = any(row.input for row in rows), any(row.nbest for row in rows)
    apart = any(row.target is None or row.target not in ((), (row.prediction,)) for row in rows)
    asked = ["right answer"] if apart else []
    columns = ("confidence", "input" if inputs else "id", *asked, "answer", *(["N-best"] if lists else []))
    cells = tuple(
        (
            f"{row.confidence:.4g}",
            plain_text(row.input if inputs and row.input is not None else row.id or "(no id)"),
            *([_target(row)] if apart else []),
            plain_text(row.prediction if row.prediction is not None else "(not told)"),
            *(["; ".join(map(plain_text, row.nbest))] if lists else []),
        )
        for row in rows
    )
    shown = f"{len(rows)} of {count:,}" if len(rows) < count else f"all {count:,}"
    return Table(f"{title} ({shown})", columns, cells)


def _target(row: Example) -> str:
    if row.target is None:
        return "(not told)"
    return " or ".join(map(plain_text, row.target)) or OUT_OF_SCOPE


def _confusions(one: Examples) -> Table:
    rows = tuple(
        (plain_text(pair.target), plain_text(pair.prediction), f"{pair.count:,}", f"{pair.returned:,}")
        for pair in one.confusions
    )
    return Table(f"{one.system}: most frequent confusions", ("right answer", "answer", "times", "returned"), rows)


def plain_text(text: str) -> str:
    """What people wrote in one line: line breaks and unseen characters made visible.

    >>> plain_text("two\\nlines")
    'two ⏎ lines'
    """
    return visible(BREAK.join(text.splitlines())).replace("\t", " ")
