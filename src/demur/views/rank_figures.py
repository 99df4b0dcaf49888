"""Top-k accuracy: how often the right label is among the first k of a list."""

from __future__ import annotations

from typing import Any

import polars as pl

from demur.views.drawing import HEIGHT, WIDTH, alt, finished, rate_axis
from demur.views.nbest_rows import tidy
from demur.views.numbers import count
from demur.views.words import percent

COLOUR = "#0b5a8a"


def rank_chart(rows: pl.DataFrame, *, n: float, level: float = 0.95, title: str | None = None) -> Any:
    """Dots with intervals of top-k accuracy over k; a line joins them, as the k in between mean nothing.

    Columns of `rows`: `k`, `accuracy`, `low`, `high` and `here`, how often the right label stands at just that place.
    """
    table = tidy(rows, {"k": pl.Int64}, ("accuracy", "low", "high", "here")).sort("k")
    across = alt.X(
        "k:O", title="labels looked at, the surest first (k)", axis=alt.Axis(labelAngle=0, grid=False, domain=True)
    )
    least = min(float(table["low"].fill_nan(1.0).min() or 0.0), float(table["accuracy"].min() or 0.0))  # type: ignore[arg-type]
    bottom = max(0.0, least - 0.04)
    base = alt.Chart().encode(across)
    told = [
        alt.Tooltip("k:O"),
        alt.Tooltip("accuracy:Q", format=".2%", title="among the first k"),
        alt.Tooltip("here:Q", format=".2%", title="at this place"),
    ]
    up = rate_axis(alt.Y, "accuracy", "inputs whose right label is among them", domain=(bottom, 1.0))
    shown = alt.layer(
        base.mark_line(color=COLOUR, strokeWidth=1.5, opacity=0.55).encode(up),
        base.mark_rule(color=COLOUR, strokeWidth=2).encode(y="low:Q", y2="high:Q"),
        base.mark_point(filled=True, size=90, opacity=1, color=COLOUR).encode(up, tooltip=told),
    )
    return finished(
        shown.properties(width=WIDTH, height=0.8 * HEIGHT),
        title=title or _title(table),
        subtitle=[f"n = {count(n)} inputs with a list", f"lines: {percent(level)} intervals"],
        description=_description(table),
        table=table,
    )


def _title(table: pl.DataFrame) -> str:
    first, last = table.row(0, named=True), table.row(-1, named=True)
    if table.height == 1:
        return f"The right label is first for {percent(first['accuracy'])}"
    return (
        f"The right label is first for {percent(first['accuracy'])}, and among the first {last['k']} for "
        f"{percent(last['accuracy'])}"
    )


def _description(table: pl.DataFrame) -> str:
    told = "; ".join(f"first {row['k']}: {percent(row['accuracy'])}" for row in table.iter_rows(named=True))
    return f"How often the right label is among the first k of the list. {told}."
