"""What each confusion costs: the confusion table shaded by the change of the outcome if half of a cell were right."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from demur.core.show.charts import alt, finished, inline, refuse_repeats, renamed, tidy
from demur.core.show.numbers import count, middle_cut, shortened
from demur.errors import UsageError

MOST_LABELS = 30
"""Labels that are shown; of more, those of the dearest confusions."""

SHADES = ("#2166ac", "#ffffff", "#b35806")
"""Less, no and more of the outcome."""

LINE = "#bbbbbb"
HATCH = "M-1,1L1,-1M-1,0L0,-1M0,1L1,0"
"""Three strokes across the cell of a right answer."""

DARK = 0.85
"""Share of the greatest change from which on a cell is dark enough for white letters."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The labels of a figure, and how much of a cell there is room for."""

    labels: list[str]

    @property
    def step(self) -> int:
        """Pixels of a cell."""
        return 74 if len(self.labels) <= 7 else 48 if len(self.labels) <= 12 else 21

    @property
    def written(self) -> bool:
        """Whether numbers have room in a cell."""
        return self.step > 40


def price_chart(
    rows: pl.DataFrame, *, outcome: str, labels: Sequence[str] | None = None, title: str | None = None
) -> Any:
    """The confusion table as a heat map of prices: columns are actual labels, rows what was predicted.

    Columns of `rows`: `predicted`, `actual`, `count`, and `change`, the predicted change of the outcome if half of that
    confusion were put right. `labels` gives their order; left out, it is that of the alphabet. Cells say the change
    with its sign and the count below it; where there is no room, triangles point up or down. Right answers are hatched.
    """
    table = tidy(rows, {"predicted": pl.String, "actual": pl.String}, ("count", "change"))
    if table.select("predicted", "actual").null_count().sum_horizontal().item():
        raise UsageError("a confusion needs a predicted and an actual label; one is missing (leave rejections out)")
    refuse_repeats(table, "predicted", "actual")
    grid = Grid(_shown_labels(table, labels))
    marked = _marked(table, grid)
    return finished(
        alt.layer(*_layers(marked, grid, outcome)).properties(
            width=alt.Step(grid.step), height=alt.Step(grid.step), view=alt.ViewBackground(stroke=LINE)
        ),
        title=title or _price_title(table, outcome),
        subtitle=_words(table, grid),
        description=_price_description(marked, outcome),
        table=marked,
    )


def _shown_labels(table: pl.DataFrame, order: Sequence[str] | None) -> list[str]:
    """All labels where they are few, else those of the dearest confusions, in the order asked for."""
    found = {*table["predicted"].to_list(), *table["actual"].to_list()}
    known = list(dict.fromkeys(order)) if order is not None else sorted(found)
    lacking = sorted(found.difference(known))
    if lacking:
        raise UsageError(f'labels must name every label of the table; "{lacking[0]}" is not among them')
    if len(known) <= MOST_LABELS:
        return known
    kept: set[str] = set()
    dearest = _wrong(table).sort(_dearness(), "count", descending=True, maintain_order=True)
    for pair in dearest.select("predicted", "actual").iter_rows():
        if len(kept.union(pair)) <= MOST_LABELS:
            kept.update(pair)
    return [label for label in known if label in kept]


def _wrong(table: pl.DataFrame) -> pl.DataFrame:
    return table.filter(pl.col("predicted") != pl.col("actual"))


def _known(table: pl.DataFrame) -> pl.DataFrame:
    return _wrong(table).filter(pl.col("change").is_finite())


def _dearness() -> pl.Expr:
    return pl.col("change").abs().fill_nan(-1.0)


def _marked(table: pl.DataFrame, grid: Grid) -> pl.DataFrame:
    """The table with what is written in each cell and whether it is shown."""
    wrong = pl.col("predicted") != pl.col("actual")
    inside = pl.col("predicted").is_in(grid.labels) & pl.col("actual").is_in(grid.labels)
    greatest = _greatest(table)
    prices = table.select(pl.when(wrong).then("change").otherwise(math.nan))
    return table.with_columns(
        shown=wrong & inside,
        dark=(_dearness() > DARK * greatest),
        told=pl.Series(_changes(prices.to_series().to_list())),
        times=pl.col("count").map_elements(count, return_dtype=pl.String),
        size=(_dearness().clip(lower_bound=0.0) / greatest).sqrt() * (0.8 * grid.step) ** 2 * 0.5,
    )


def _greatest(table: pl.DataFrame) -> float:
    """The greatest change either way; 1 where none is known or all are 0."""
    return max(map(abs, _known(table)["change"]), default=0.0) or 1.0


def _changes(values: list[float]) -> list[str]:
    """Changes with their signs, alike in decimals.

    >>> _changes([0.0312, -0.001, 0.0, math.nan])
    ['+0.031', '−0.001', '0', '–']
    """
    greatest = max((abs(one) for one in values if math.isfinite(one)), default=0.0) or 1.0
    decimals = min(max(1 - math.floor(math.log10(greatest)), 0), 6)
    return ["–" if math.isnan(one) else f"{one:+.{decimals}f}".replace("-", "−") if one else "0" for one in values]


def _axes(grid: Grid) -> tuple[Any, Any]:
    labels = renamed(shortened(grid.labels, 26))
    turned = -45 if len(grid.labels) > 3 or max(map(len, grid.labels)) > 12 else 0
    across = alt.Axis(labelAngle=turned, labelLimit=190, grid=False, domain=False, labelExpr=labels)
    up = alt.Axis(labelLimit=190, grid=False, ticks=False, domain=False, labelPadding=6, labelExpr=labels)
    return (
        alt.X("actual:N", title="actual label", scale=alt.Scale(domain=grid.labels), axis=across),
        alt.Y("predicted:N", title="predicted", scale=alt.Scale(domain=grid.labels), axis=up),
    )


def _layers(marked: pl.DataFrame, grid: Grid, outcome: str) -> list[Any]:
    greatest = _greatest(marked)
    scale = alt.Scale(domain=[-greatest, 0, greatest], range=list(SHADES), interpolate="rgb")
    told = [
        alt.Tooltip("actual:N"),
        alt.Tooltip("predicted:N"),
        alt.Tooltip("count:Q", format=","),
        alt.Tooltip("change:Q", format="+.4~g"),
    ]
    cell = alt.Chart().transform_filter("datum.shown")
    frames = cell.mark_rect(stroke=LINE, strokeWidth=1, fill="white").encode(*_axes(grid), tooltip=told)
    cells = (
        cell.transform_filter("isValid(datum.change)")
        .mark_rect(stroke=LINE, strokeWidth=1)
        .encode(*_axes(grid), color=alt.Color("change:Q", scale=scale, legend=_legend(marked, outcome)), tooltip=told)
    )
    return [frames, cells, _hatched(grid), *(_numbers(grid) if grid.written else [_triangles(grid)])]


def _legend(marked: pl.DataFrame, outcome: str) -> Any:
    """The shades, where there are any."""
    greatest = _greatest(marked)
    if not any(_known(marked)["change"]):
        return None
    return alt.Legend(
        title=["change of", middle_cut(outcome, 24), "if half were", "put right"],
        titleFontWeight="normal",
        labelExpr="datum.value > 0 ? '+' + datum.label : datum.label",
        format=".2~g",
        values=[-greatest, 0, greatest],
        gradientLength=110,
        titleLimit=170,
        offset=14,
    )


def _hatched(grid: Grid) -> Any:
    right = pl.DataFrame({"predicted": grid.labels, "actual": grid.labels})
    strokes = alt.Chart(inline(right)).mark_point(
        shape=HATCH, size=(grid.step - 6) ** 2, stroke=LINE, strokeWidth=1, filled=False, opacity=1
    )
    return strokes.encode(*_axes(grid))


def _numbers(grid: Grid) -> list[Any]:
    """The change above, the count below it."""
    ink = alt.condition("datum.dark", alt.value("white"), alt.value("black"))
    base = alt.Chart().transform_filter("datum.shown").encode(*_axes(grid), color=ink)
    large = grid.step > 60
    change = base.mark_text(fontSize=13 if large else 11, fontWeight=600, dy=-8).encode(text="told:N")
    times = alt.Text("times:N")
    return [change, base.mark_text(fontSize=11 if large else 10, dy=9).encode(text=times)]


def _triangles(grid: Grid) -> Any:
    """Which way the outcome changes, where numbers have no room; the larger, the more."""
    shape = alt.condition("datum.change > 0", alt.value("triangle-up"), alt.value("triangle-down"))
    ink = alt.condition("datum.dark", alt.value("white"), alt.value("black"))
    base = alt.Chart().transform_filter("datum.shown && isValid(datum.change) && datum.change != 0")
    mark = base.mark_point(strokeWidth=0, opacity=1)
    return mark.encode(*_axes(grid), shape=shape, fill=ink, size=alt.Size("size:Q", scale=None))


def _price_title(table: pl.DataFrame, outcome: str) -> str:
    known = _known(table)
    if known.is_empty():
        return f"No confusion has a price in {outcome}"
    best = known.sort(_dearness(), "count", descending=True, maintain_order=True).row(0, named=True)
    if best["change"] == 0:
        return f"No confusion changes the predicted {outcome}"
    verb = "raise" if best["change"] > 0 else "lower"
    mended = f"Putting right half of the {best['actual']} taken for {best['predicted']}"
    rivals = known.filter(pl.col("change").abs() == abs(best["change"])).height - 1
    most = "" if known.height == 1 else " as much as any," if rivals else " most,"
    by = _changes([best["change"]])[0][1:]
    return f"{mended} would {verb} the predicted {outcome}{most} by {by}"


def _words(table: pl.DataFrame, grid: Grid) -> list[str]:
    wrong = _wrong(table)
    every = {*table["predicted"].to_list(), *table["actual"].to_list()}
    inside = "in each cell: change if half were put right, and how often it happens"
    arrows = "triangles: up where the outcome would rise, down where it would fall"
    return [
        f"n = {count(float(wrong['count'].fill_nan(0.0).sum()))} confusions",
        *(
            [f"{len(grid.labels)} of {len(every)} labels, of the dearest confusions"]
            if len(grid.labels) < len(every)
            else []
        ),
        inside if grid.written else arrows,
        "hatched: right answers",
        *(["–: undefined"] if wrong["change"].is_nan().any() and grid.written else []),
    ]


def _price_description(marked: pl.DataFrame, outcome: str) -> str:
    dearest = _wrong(marked).sort(_dearness(), "count", descending=True, maintain_order=True).head(12)
    told = [
        f"{row['actual']} taken for {row['predicted']} ({row['times']} times) {row['told']}"
        for row in dearest.iter_rows(named=True)
    ]
    listed = "; ".join(told) or "there are none"
    return f"Change of the predicted {outcome} if half of each confusion were put right, the dearest first: {listed}."
