"""What figures of outcome models share: the kinds of validation and their marks, and an axis of names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from demur.errors import UsageError
from demur.views.drawing import alt
from demur.views.names import shortened
from demur.views.nbest_rows import renamed

FILLS = {"in-sample": "#ffffff", "leave-one-out": "#7fb2d6", "nested": "#1a1a1a"}
"""Kinds of validation from the most hopeful to the most honest: the lighter, the less to be trusted."""

SHAPES = {"in-sample": "square", "leave-one-out": "circle", "nested": "diamond"}


def validations(table: pl.DataFrame) -> list[str]:
    """The kinds of validation in a table, the most hopeful first; others than the known ones are refused."""
    found = table["validation"].unique(maintain_order=True).to_list()
    strange = [kind for kind in found if kind not in FILLS]
    if strange:
        known = ", ".join(f'"{kind}"' for kind in FILLS)
        raise UsageError(f'validation is one of {known}; got "{strange[0]}"')
    return [kind for kind in FILLS if kind in found]


def most_honest(kinds: Sequence[str]) -> str:
    """The kind of validation that a title speaks of."""
    return kinds[-1]


def name_axis(field: str, names: Sequence[str], *, letters: int, **more: Any) -> Any:
    """A row for each name, long names cut in the middle."""
    return alt.Y(
        f"{field}:N",
        title=None,
        scale=alt.Scale(domain=list(names)),
        axis=alt.Axis(
            ticks=False,
            domain=False,
            labelPadding=8,
            labelLimit=340,
            labelExpr=renamed(shortened(names, letters)),
            **{"grid": True, **more},
        ),
    )


def number_axis(field: str, title: str, domain: tuple[float, float], **more: Any) -> Any:
    """A horizontal axis of plain numbers from end to end of a domain."""
    return alt.X(
        f"{field}:Q",
        title=title,
        scale=alt.Scale(domain=list(domain), nice=False, zero=False),
        axis=alt.Axis(**{"format": ".3~g", "tickCount": 6, **more}),
    )


def upright(place: float, **look: Any) -> Any:
    """A line from top to bottom at one place of the horizontal axis."""
    return alt.Chart(alt.InlineData(values=[{"at": place}])).mark_rule(**look).encode(x="at:Q")


def capital(text: str) -> str:
    """The text with its first letter large.

    >>> capital("gain"), capital("")
    ('Gain', '')
    """
    return text[:1].upper() + text[1:]
