"""Which terms a model of an outcome holds, how firm their coefficients are, and how often they are chosen again."""

from __future__ import annotations

import math
from typing import Any

import polars as pl

from demur.views.drawing import alt, finished
from demur.views.nbest_rows import extent, interval_words, refuse_repeats, signed, tidy, with_interval
from demur.views.outcome_rows import name_axis, number_axis, upright

MOST_TERMS = 20
"""Terms that are shown; of more, those of the model and then the most often chosen."""

PANEL, SHARES, ROW = 300, 120, 27
"""Pixels across the coefficients, across the shares, and of one row."""

OFTEN = 0.5
"""Share of replicates from which on a title calls a term chosen again."""


def coefficient_chart(rows: pl.DataFrame, *, outcome: str, level: float = 0.95, title: str | None = None) -> Any:
    """Coefficients with bootstrap intervals, and beside them how often each term is chosen.

    Columns of `rows`: `term`, `coefficient` (0 where the term is not in the model), `low` and `high` (null or NaN where
    there is no interval), `selected` (share of replicates that choose the term, null or NaN where there are none) and
    `chosen` (whether the model holds it). Terms stand in the order of how often they are chosen.
    """
    table = tidy(rows, {"term": pl.String, "chosen": pl.Boolean}, ("coefficient", "low", "high", "selected"))
    refuse_repeats(table, "term")
    told = [with_interval(*row) for row in table.select("coefficient", "low", "high").iter_rows()]
    numbers = [signed(value) for value in table["coefficient"]]
    marked = _ordered(
        table.with_columns(pl.col("chosen").fill_null(value=False), told=pl.Series(told), number=pl.Series(numbers))
    )
    shown = marked.filter("shown")
    panels = [_coefficients(shown, outcome), *([_shares(shown)] if shown["selected"].is_finite().any() else [])]
    return finished(
        alt.hconcat(*panels, spacing=14),
        title=title or _title(marked, outcome),
        subtitle=_words(marked, level),
        description=f"Coefficients of {outcome}. {'; '.join(_told(row) for row in shown.iter_rows(named=True))}.",
        table=marked,
    )


def _ordered(table: pl.DataFrame) -> pl.DataFrame:
    """Terms from the most often chosen to the least, and which of them are shown."""
    often = pl.col("selected").fill_nan(-1.0)
    weight = pl.col("coefficient").abs().fill_nan(0.0)
    first = table.sort("chosen", often, weight, descending=True, maintain_order=True)
    kept = first.with_row_index("place").with_columns(shown=pl.col("place") < MOST_TERMS).drop("place")
    return kept.sort(often, "chosen", weight, descending=True, maintain_order=True)


def _coefficients(shown: pl.DataFrame, outcome: str) -> Any:
    least, most = extent(shown, ("coefficient", "low", "high"), air=0.07)
    domain = (min(least, -0.07 * abs(most)), max(most, 0.07 * abs(least)))
    up = name_axis("term", shown["term"].to_list(), letters=48)
    full = alt.condition("datum.chosen", alt.value("black"), alt.value("white"))
    base = alt.Chart().transform_filter("datum.shown").encode(y=up)
    span = base.mark_rule(strokeWidth=2, color="#777777").encode(x="low:Q", x2="high:Q")
    dot = base.mark_point(shape="circle", size=75, stroke="black", strokeWidth=1.6, opacity=1)
    across = number_axis("coefficient", f"coefficient for {outcome}", domain, tickCount=5)
    told = [alt.Tooltip("term:N"), alt.Tooltip("told:N", title="coefficient")]
    told.append(alt.Tooltip("selected:Q", title="chosen in", format=".0%"))
    layers = alt.layer(
        upright(0.0, color="#333333", strokeWidth=1),
        span,
        dot.encode(across, fill=full, tooltip=told),
        _written(base),
    )
    return layers.properties(width=PANEL, height=ROW * shown.height)


def _written(base: Any) -> Any:
    """The coefficients of the model as numbers."""
    text = base.transform_filter("datum.chosen").mark_text(align="left", dx=6, fontSize=11, color="#1a1a1a")
    return text.encode(x=alt.value("width"), text="number:N")


def _shares(shown: pl.DataFrame) -> Any:
    """Bars of the shares of replicates, each with its number."""
    up = name_axis("term", shown["term"].to_list(), letters=48, labels=False, grid=False)
    base = alt.Chart().transform_filter("datum.shown && isValid(datum.selected)").encode(y=up)
    across = alt.X(
        "selected:Q",
        title="chosen in replicates",
        scale=alt.Scale(domain=[0, 1], nice=False),
        axis=alt.Axis(format=".0%", labelExpr="replace(datum.label, '%', ' %')", values=[0, 0.5, 1]),
    )
    shade = alt.condition("datum.chosen", alt.value("#4d4d4d"), alt.value("#cccccc"))
    bar = base.mark_bar(height=ROW - 12).encode(across, color=shade)
    number = base.mark_text(align="left", dx=6, fontSize=11, color="#1a1a1a")
    written = number.transform_calculate(written="round(100 * datum.selected) + ' %'")
    return alt.layer(bar, written.encode(x=alt.value("width"), text="written:N")).properties(
        width=SHARES, height=ROW * shown.height
    )


def _title(table: pl.DataFrame, outcome: str) -> str:
    chosen = table.filter("chosen")
    known = chosen.filter(pl.col("selected").is_finite())
    if chosen.is_empty():
        return f"No term is chosen to explain {outcome}"
    if chosen.height == 1:
        share = chosen["selected"][0]
        again = "" if math.isnan(share) else f", chosen in {100 * share:.0f} % of replicates"
        return f"The model of {outcome} holds {chosen['term'][0]} alone{again}"
    whole = f"The model of {outcome} holds {chosen.height} of {table.height} terms"
    if known.is_empty():
        return whole
    often = int((known["selected"] > OFTEN).sum())
    many = "all" if often == chosen.height else "none" if not often else str(often)
    return f"{whole}; {many} of them {'is' if often == 1 else 'are'} chosen in over half of the replicates"


def _words(table: pl.DataFrame, level: float) -> list[str]:
    shown = table.filter("shown")
    left_out = not shown["chosen"].all()
    dots = "full dot: in the model" + (", hollow: left out" if left_out else "")
    part = f"{shown.height} of {table.height} terms shown"
    return [dots, *interval_words(shown, "lines (bootstrap)", level), *([part] if shown.height < table.height else [])]


def _told(row: dict[str, Any]) -> str:
    again = "" if math.isnan(row["selected"]) else f", chosen in {100 * row['selected']:.0f} %"
    return f"{row['term']} {row['told'] if row['chosen'] else 'left out'}{again}"
