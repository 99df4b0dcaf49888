"""Charts of outcome models: coefficients, predicted systems, observed against predicted, feature sets, prices."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import polars as pl

from demur.core.show.charts import (
    FILLS,
    SHAPES,
    WIDTH,
    Plot,
    Span,
    alt,
    capital,
    either,
    extent,
    finished,
    inline,
    interval_words,
    most_honest,
    name_axis,
    number_axis,
    plot_size,
    refuse_repeats,
    rename_expression,
    rimmed_text,
    tidy,
    upright,
    validations,
)
from demur.core.show.numbers import aligned, count, middle_cut, percent, short, shorten, signed, with_interval
from demur.core.stats.intervals import Figure
from demur.errors import UsageError

INK, OUTLINE = "#1a1a1a", "#333333"
CIRCLE: Mapping[str, Any] = {"shape": "circle", "stroke": "black", "strokeWidth": 1.6, "opacity": 1}

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
    texts = [with_interval(*row) for row in table.select("coefficient", "low", "high").iter_rows()]
    numbers = [signed(value) for value in table["coefficient"]]
    often, weight = pl.col("selected").fill_nan(-1.0), pl.col("coefficient").abs().fill_nan(0.0)
    marked = (
        table.with_columns(pl.col("chosen").fill_null(value=False), text=pl.Series(texts), number=pl.Series(numbers))
        .sort("chosen", often, weight, descending=True, maintain_order=True)
        .with_columns(shown=pl.int_range(pl.len()) < MOST_TERMS)
        .sort(often, "chosen", weight, descending=True, maintain_order=True)
    )
    shown = marked.filter("shown")
    panels = [_coefficients(shown, outcome), *([_shares(shown)] if shown["selected"].is_finite().any() else [])]
    texts = []
    for row in shown.iter_rows(named=True):
        again = "" if math.isnan(row["selected"]) else f", chosen in {100 * row['selected']:.0f} %"
        texts.append(f"{row['term']} {row['text'] if row['chosen'] else 'left out'}{again}")
    return finished(
        alt.hconcat(*panels, spacing=14),
        title=title or _coefficient_title(marked, outcome),
        subtitle=[
            "full dot: in the model" + ("" if shown["chosen"].all() else ", hollow: left out"),
            *interval_words(shown, "lines (bootstrap)", level),
            *([f"{shown.height} of {table.height} terms shown"] if shown.height < table.height else []),
        ],
        description=f"Coefficients of {outcome}. {'; '.join(texts)}.",
        table=marked,
    )


def _coefficients(shown: pl.DataFrame, outcome: str) -> Any:
    least, most = extent(shown, ("coefficient", "low", "high"), air=0.07)
    domain = (min(least, -0.07 * abs(most)), max(most, 0.07 * abs(least)))
    base = Plot().transform_filter("datum.shown").encode(y=name_axis("term", shown["term"].to_list(), characters=48))
    across = number_axis("coefficient", f"coefficient for {outcome}", domain, tickCount=5)
    full = either(alt.FillValue, "datum.chosen", "black", "white")
    tooltip = [alt.Tooltip("term:N"), alt.Tooltip("text:N", title="coefficient")]
    tooltip.append(alt.Tooltip("selected:Q", title="chosen in", format=".0%"))
    text = base.transform_filter("datum.chosen").mark_text(align="left", dx=6, fontSize=11, color=INK)
    return alt.layer(
        upright(0.0, color=OUTLINE, strokeWidth=1),
        base.mark_rule(strokeWidth=2, color="#777777").encode(x=alt.X("low:Q"), x2=alt.X2("high:Q")),
        base.mark_point(**CIRCLE, size=75).encode(across, fill=full, tooltip=tooltip),
        text.encode(x=alt.XValue("width"), text=alt.Text("number:N")),
        width=PANEL,
        height=ROW * shown.height,
    )


def _shares(shown: pl.DataFrame) -> Any:
    """Bars of the shares of replicates, each with its number."""
    up = name_axis("term", shown["term"].to_list(), characters=48, labels=False, grid=False)
    base = Plot().transform_filter("datum.shown && isValid(datum.selected)").encode(y=up)
    across = alt.X(
        "selected:Q",
        title="chosen in replicates",
        scale=alt.Scale(domain=[0, 1], nice=False),
        axis=alt.Axis(format=".0%", labelExpr="replace(datum.label, '%', ' %')", values=[0, 0.5, 1]),
    )
    shade = either(alt.ColorValue, "datum.chosen", "#4d4d4d", "#cccccc")
    bar = base.mark_bar(height=ROW - 12).encode(across, color=shade)
    number = base.mark_text(align="left", dx=6, fontSize=11, color=INK)
    written = number.transform_calculate(written="round(100 * datum.selected) + ' %'")
    return alt.layer(
        bar, written.encode(x=alt.XValue("width"), text=alt.Text("written:N")), width=SHARES, height=ROW * shown.height
    )


def _coefficient_title(table: pl.DataFrame, outcome: str) -> str:
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


PREDICTED_ROW = 25
"""Pixels of one system."""

REASON_LENGTH = 88
"""Characters of a refusal that fit in the plot; all of it is in the tooltip and the description."""


def predicted_chart(
    rows: pl.DataFrame, *, outcome: str, naive: Figure, level: float = 0.95, title: str | None = None
) -> Any:
    """Systems by predicted outcome, the highest first, with intervals; the naive guess as a line in a band.

    Columns of `rows`: `system`, `predicted`, `low` and `high` (null or NaN where there is no interval) and `refused`
    (why nothing is predicted, else null). Systems that are refused stand last, with the reason in place of a dot; where
    there is a prediction all the same, it is drawn hollow.
    """
    table = tidy(rows, {"system": pl.String, "refused": pl.String}, ("predicted", "low", "high"))
    refuse_repeats(table, "system")
    numbers = iter(aligned(table.select("predicted", "low", "high").to_numpy().ravel().tolist()))
    texts = [_predicted_text(row, next(numbers), next(numbers), next(numbers)) for row in table.iter_rows(named=True)]
    missing = pl.col("predicted").is_nan()
    marked = table.with_columns(text=pl.Series(texts), hollow=pl.col("refused").is_not_null() & ~missing).sort(
        missing, -pl.col("predicted"), maintain_order=True
    )
    refused = marked.filter(pl.col("refused").is_not_null() & missing).height
    banded = naive.defined and not math.isnan(naive.low)
    listed = "; ".join(f"{row['system']} {row['text']}" for row in marked.iter_rows(named=True))
    guess = f" The naive guess is {with_interval(naive.value, naive.low, naive.high)}." if naive.defined else ""
    return finished(
        alt.layer(*_predicted_layers(marked, outcome, naive), width=WIDTH - 110, height=PREDICTED_ROW * table.height),
        title=title or _predicted_title(marked, outcome, naive),
        subtitle=[
            *(interval_words(marked, "lines", level) if marked["predicted"].is_finite().any() else []),
            *(["dashed: the naive guess" + (" with its interval" if banded else "")] if naive.defined else []),
            *([f"{count(refused)} refused as unlike the training data"] if refused else []),
            *(["hollow: beyond the training data"] if marked["hollow"].any() else []),
        ],
        description=f"Predicted {outcome} of systems, the highest first. {listed}.{guess}",
        table=marked,
    )


def _predicted_text(row: dict[str, Any], value: str, low: str, high: str) -> str:
    if not math.isnan(row["predicted"]):
        return value if math.isnan(row["low"]) or math.isnan(row["high"]) else f"{value} ({low} to {high})"
    return "undefined" if row["refused"] is None else f"refused: {row['refused']}"


def _predicted_layers(marked: pl.DataFrame, outcome: str, naive: Figure) -> list[Any]:
    ends = pl.DataFrame({"predicted": [naive.value], "low": [naive.low], "high": [naive.high]})
    domain = extent(pl.concat([marked.select(ends.columns), ends]), ends.columns, air=0.06)
    up = name_axis("system", marked["system"].to_list(), characters=34)
    across = number_axis("predicted", f"predicted {outcome}", domain)
    base = Plot().encode(y=up)
    known = base.transform_filter("isValid(datum.predicted)")
    full = either(alt.FillValue, "datum.hollow", "white", "black")
    tooltip = [alt.Tooltip("system:N"), alt.Tooltip("text:N", title=f"predicted {outcome}"), alt.Tooltip("refused:N")]
    layers = []
    if naive.defined and not (math.isnan(naive.low) or math.isnan(naive.high)):
        band = Plot(inline(ends.select("low", "high"))).mark_rect(color="#e4e4e4")
        layers.append(band.encode(x=alt.X("low:Q"), x2=alt.X2("high:Q")))
    if naive.defined:
        layers.append(upright(naive.value, color="#777777", strokeWidth=1.5, strokeDash=[5, 4]))
    layers += [
        base.mark_rule(strokeWidth=2, color="#555555").encode(x=alt.X("low:Q"), x2=alt.X2("high:Q")),
        known.mark_point(**CIRCLE, size=80).encode(across, fill=full, tooltip=tooltip),
        known.mark_text(align="left", dx=8, fontSize=11).encode(x=alt.XValue("width"), text=alt.Text("text:N")),
    ]
    lost = marked.filter(pl.col("predicted").is_nan())
    if not lost.is_empty():  # why nothing is predicted, in place of a dot
        length = int(REASON_LENGTH * plot_size()[0] / WIDTH)
        reasons = pl.Series([middle_cut(text, length, tail=0) for text in lost["text"]])
        data = inline(lost.select("system", "text").with_columns(reason=reasons))
        reason = Plot(data).encode(y=up, x=alt.XValue(8), text=alt.Text("reason:N"))
        rim, text = rimmed_text(reason, 4, INK, align="left", fontSize=11, fontStyle="italic")
        layers += [rim, text.encode(tooltip=[alt.Tooltip("system:N"), alt.Tooltip("text:N")])]
    return layers


def _predicted_title(marked: pl.DataFrame, outcome: str, naive: Figure) -> str:
    known = marked.filter(pl.col("predicted").is_not_nan())
    if known.is_empty():
        if marked["refused"].null_count():
            return f"There is no prediction of {outcome}"
        who = marked["system"][0] if marked.height == 1 else f"all {marked.height} systems"
        return f"Too unlike the training data to predict {outcome}: {who}"
    name, value = known["system"][0], known["predicted"][0]
    beside = f"; the naive guess is {short(naive.value)}" if naive.defined else ""
    if marked.height == 1:
        return f"{name} has a predicted {outcome} of {short(value)}{beside}"
    tied = known.height > 1 and known["predicted"][1] == value
    most = "no lower predicted" if tied else "the highest predicted"
    return f"{name} has {most} {outcome}{' than any other' if tied else ''}, {short(value)}{beside}"


SIDE = 400
"""Pixels of the square in which observed and predicted stand against each other."""

FAR = 0.5
"""Ranges of the observed outcome beyond its ends at which a prediction is put on the edge of the plot."""

MOST_LINKS = 150
"""Dialogues whose predictions are joined by lines; more would blacken the plot."""

FLOOR = -0.5
"""R² below which a bar is cut off: how much worse than the mean hardly matters there."""

LANE = 17
"""Pixels of one bar."""


def observed_chart(
    rows: pl.DataFrame,
    *,
    outcome: str,
    r2: Mapping[str, float] | None = None,
    level: float = 0.95,
    title: str | None = None,
) -> Any:
    """Observed against predicted outcome, a mark for each dialogue and kind of validation, and the diagonal.

    Columns of `rows`: `dialogue`, `observed`, `predicted` and `validation` ("leave-one-out", "nested" or "in-sample");
    `r2` gives the R² of each kind. The band around the diagonal holds the share `level` of the most honest predictions;
    there is none where so few dialogues would make it as wide as the greatest error.
    """
    table = tidy(rows, {"dialogue": pl.String, "validation": pl.String}, ("observed", "predicted"))
    refuse_repeats(table, "dialogue", "validation")
    kinds, shares = validations(table), dict(r2 or {})
    kind = most_honest(kinds)
    # one range for both axes: all that was observed and what was predicted, but for predictions far off
    low, high = extent(table, ("observed",))
    room = FAR * (high - low)
    near = table.select("observed", pl.col("predicted").clip(low - room, high + room))
    least, most = extent(near, near.columns)
    air = 0.05 * (most - least)
    marks = table.with_columns(at=pl.col("predicted").clip(least, most))
    known = marks.filter(pl.col("predicted").is_finite() & pl.col("observed").is_finite())
    reach = _reach(known.filter(pl.col("validation") == kind), level)
    beyond, undefined = known.filter(pl.col("at") != pl.col("predicted")).height, marks.height - known.height
    texts = [f"{one}: R² {_r2_words(shares.get(one, math.nan))}" for one in kinds]
    low, high = extent(known, ("observed",)) if known.height else (math.nan, math.nan)
    spread = f"observed from {low:.3g} to {high:.3g}"
    dialogues = _count_of(known["dialogue"].n_unique(), "dialogue")
    layers = _observed_layers(known, kinds, (least - air, most + air), reach, outcome, shares)
    return finished(
        alt.layer(*layers, width=SIDE, height=SIDE),
        title=title or _observed_title(dialogues, kinds, shares, outcome),
        subtitle=[
            f"n = {dialogues}",
            "dashed: predictions that are right",
            *([] if math.isnan(reach) else [f"grey: {percent(level)} of {kind} predictions lie within ±{reach:.2g}"]),
            *([f"arrows: {_count_of(beyond, 'prediction')} far beyond the plot"] if beyond else []),
            *([f"{_count_of(undefined, 'prediction')} undefined"] if undefined else []),
        ],
        description=f"Observed against predicted {outcome} of {dialogues}, {spread}. {'; '.join(texts)}.",
        table=marks,
    )


def _count_of(number: int, name: str) -> str:
    return f"{count(number)} {name}{'' if number == 1 else 's'}"


def _r2_words(r2: float) -> str:
    return "undefined" if math.isnan(r2) else f"{r2:.2f}".replace("-", "−")


def _reach(known: pl.DataFrame, level: float) -> float:
    """How far from the diagonal the given share of predictions lies at most; NaN where that would be all of them."""
    errors = np.sort(np.abs((known["observed"] - known["predicted"]).to_numpy()))
    needed = math.ceil(level * errors.size - 1e-9)
    return float(errors[needed - 1]) if 0 < needed < errors.size else math.nan


def _observed_layers(
    known: pl.DataFrame, kinds: list[str], domain: Span, reach: float, outcome: str, r2: Mapping[str, float]
) -> list[Any]:
    across = number_axis("at", f"predicted {outcome}", domain)
    scale = alt.Scale(domain=list(domain), nice=False, zero=False)
    up = alt.Y("observed:Q", title=f"observed {outcome}", scale=scale, axis=alt.Axis(format=".3~g", tickCount=6))
    links = known.filter(pl.col("dialogue").is_duplicated()) if known.height <= MOST_LINKS * len(kinds) else known[:0]
    link = Plot(inline(links)).mark_line(color="#999999", strokeWidth=0.8, clip=True)
    fills, shapes = (alt.Scale(domain=kinds, range=[look[kind] for kind in kinds]) for look in (FILLS, SHAPES))
    legend = alt.Legend(
        title=None,
        orient="top",
        symbolSize=90,
        symbolStrokeColor=OUTLINE,
        symbolStrokeWidth=1,
        symbolOpacity=1,
        rowPadding=2,
        labelExpr=rename_expression(
            {kind: f"{kind}, R² {_r2_words(r2[kind])}" if kind in r2 else kind for kind in kinds}
        ),
    )
    size = float(np.clip(9000 / max(known.height, 1), 14, 75))
    dot = (
        Plot()
        .transform_filter("isValid(datum.predicted) && isValid(datum.observed)")
        .mark_point(size=size, stroke=OUTLINE, strokeWidth=1, opacity=1 if known.height <= 400 else 0.6)
    )
    tooltip = [alt.Tooltip("dialogue:N"), alt.Tooltip("validation:N")]
    tooltip += [alt.Tooltip(f"{name}:Q", format=".4~g") for name in ("observed", "predicted")]
    beyond = known.filter(pl.col("at") != pl.col("predicted"))
    arrows = beyond.with_columns(text=pl.Series([short(value) for value in beyond["predicted"]], dtype=pl.String))
    left, right = arrows.filter(pl.col("predicted") < pl.col("at")), arrows.filter(pl.col("predicted") > pl.col("at"))
    return [
        *_diagonal(domain, reach),
        link.encode(x=alt.X("at:Q"), y=alt.Y("observed:Q"), detail=alt.Detail("dialogue:N")),
        dot.encode(
            across,
            up,
            fill=alt.Fill("validation:N", scale=fills, legend=legend),
            shape=alt.Shape("validation:N", scale=shapes, legend=legend),
            tooltip=tooltip,
        ),
        *([*_arrows(left, "left"), *_arrows(right, "right")] if beyond.height else []),
    ]


def _diagonal(domain: Span, reach: float) -> list[Any]:
    """Where predictions would be right, and the band around it."""
    ends = pl.DataFrame({"at": domain, "observed": domain})
    line = Plot(inline(ends)).mark_line(color="#777777", strokeDash=[5, 4], clip=True)
    layers = [line.encode(x=alt.X("at:Q"), y=alt.Y("observed:Q"))]
    if not math.isnan(reach):
        edges = ends.with_columns(low=pl.col("at") - reach, high=pl.col("at") + reach)
        band = Plot(inline(edges)).mark_area(color="#ececec", clip=True)
        layers.insert(0, band.encode(x=alt.X("at:Q"), y=alt.Y("low:Q"), y2=alt.Y2("high:Q")))
    return layers


def _arrows(rows: pl.DataFrame, side: Literal["left", "right"]) -> list[Any]:
    """Arrows above the predictions that were put on the edge, and where they would be."""
    inward = 7 if side == "left" else -7
    base = Plot(inline(rows)).encode(x=alt.X("at:Q"), y=alt.Y("observed:Q"))
    return [
        base.mark_point(shape=f"triangle-{side}", size=45, fill="black", strokeWidth=0, opacity=1, yOffset=-12),
        base.mark_text(fontSize=11, align=side, dx=inward, dy=-12, color=INK).encode(text=alt.Text("text:N")),
    ]


def _observed_title(dialogues: str, kinds: list[str], r2: Mapping[str, float], outcome: str) -> str:
    kind = most_honest(kinds)
    best = r2.get(kind, math.nan)
    if math.isnan(best):
        return f"Observed against predicted {outcome} of {dialogues}"
    name = capital(kind)
    if best <= 0:
        return f"{name} predictions of {outcome} are no better than its mean: R² {_r2_words(best)}"
    others = [other for other in kinds[:-1] if not math.isnan(r2.get(other, math.nan))]
    beside = f", against {_r2_words(r2[others[-1]])} of {others[-1]} ones" if others else ""
    return f"{name} predictions of {outcome} have an R² of {_r2_words(best)}{beside}"


def sets_chart(rows: pl.DataFrame, *, title: str | None = None) -> Any:
    """R² of feature sets side by side: in-sample, leaving out, and with the selection left out as well.

    Columns of `rows`: `features` (in the order to be shown), `validation` ("in-sample", "leave-one-out", "nested") and
    `r2` (null or NaN where it is undefined). Bars that fall below -0.5 are cut off there, with an arrow and the number.
    """
    table = tidy(rows, {"features": pl.String, "validation": pl.String}, ("r2",))
    refuse_repeats(table, "features", "validation")
    kinds = validations(table)
    bars = table.with_columns(
        stop=pl.col("r2").clip(lower_bound=FLOOR),
        text=pl.col("r2").map_elements(_r2_words, return_dtype=pl.String),
    ).with_columns(edge=pl.col("stop").fill_nan(0.0))
    listed = []
    for part in bars.partition_by("features", maintain_order=True):
        values = (f"{kind} {text}" for kind, text in part.select("validation", "text").iter_rows())
        listed.append(f"{part['features'][0]}: {', '.join(values)}")
    height = alt.Step(LANE, **{"for": "offset"})
    return finished(
        alt.layer(*_sets_layers(bars, kinds), width=WIDTH - 60, height=height),
        title=title or _sets_title(table, most_honest(kinds)),
        subtitle=[
            "R² of 0: no better than the mean outcome",
            *([f"arrow: bar cut off at {short(FLOOR)}"] if (bars["r2"] < FLOOR).any() else []),
            *(["in-sample is the most hopeful, nested the most honest"] if len(kinds) > 1 else []),
        ],
        description=f"R² of feature sets. {'; '.join(listed)}.",
        table=bars,
    )


def _sets_layers(bars: pl.DataFrame, kinds: list[str]) -> list[Any]:
    least, most = extent(bars, ("stop",))
    low, high = min(least, 0.0), max(most, 0.0)
    room = 0.1 * (high - low)
    domain = (low - (1.3 * room if low < 0 else 0.0), high + room)
    up = name_axis("features", bars["features"].unique(maintain_order=True).to_list(), characters=34, grid=False)
    up.scale.paddingInner, up.scale.paddingOuter = 0.22, 0.1
    base = Plot().encode(y=up, yOffset=alt.YOffset("validation:N", scale=alt.Scale(domain=kinds)))
    colours = alt.Scale(domain=kinds, range=[FILLS[kind] for kind in kinds])
    legend = alt.Legend(title=None, orient="top", symbolType="square", symbolSize=140, rowPadding=2)
    across = number_axis("stop", "R²", domain, format=".2~f", labelFlush=False)
    bar = base.transform_filter("isValid(datum.stop)").mark_bar(stroke=OUTLINE, strokeWidth=1, height=LANE - 4)
    tooltip = [alt.Tooltip("features:N"), alt.Tooltip("validation:N"), alt.Tooltip("r2:Q", format=".4~g")]
    fill = alt.Fill("validation:N", scale=colours, legend=legend)
    arrow = base.transform_filter(f"datum.r2 < {FLOOR}").mark_point(
        shape="triangle-left", size=60, fill="white", stroke=OUTLINE, strokeWidth=1, opacity=1, xOffset=9
    )
    text = base.encode(x=alt.X("edge:Q"), text=alt.Text("text:N"))
    ink: dict[str, Any] = {"fontSize": 11, "color": INK}
    return [
        bar.encode(across, alt.X2(datum=0), fill=fill, tooltip=tooltip),
        upright(0.0, color="black", strokeWidth=1),
        arrow.encode(x=alt.X("stop:Q")),
        text.transform_filter("datum.edge >= 0").mark_text(**ink, align="left", dx=5),
        text.transform_filter("datum.edge < 0").mark_text(**ink, align="right", dx=-8),
    ]


def _sets_title(table: pl.DataFrame, kind: str) -> str:
    known = table.filter((pl.col("validation") == kind) & pl.col("r2").is_finite())
    if known.is_empty():
        return f"{capital(kind)} R² is undefined for every feature set"
    name, _, best = known.sort("r2", descending=True, maintain_order=True).row(0)
    if known.height == 1:
        return f"{name}: {kind} R² {_r2_words(best)}"
    if best <= 0:
        return f"No feature set is better than the mean outcome; highest {kind} R²: {name}, {_r2_words(best)}"
    tied = known.filter(pl.col("r2") == best).height > 1
    shared = ", which others share" if tied else ""
    return f"{name} has the highest {kind} R², {_r2_words(best)}{shared}"


MOST_LABELS = 30
"""Labels that are shown; of more, those of the dearest confusions."""

SHADES = ("#2166ac", "#ffffff", "#b35806")
"""Less, no and more of the outcome."""

LINE = "#bbbbbb"
HATCH = "M-1,1L1,-1M-1,0L0,-1M0,1L1,0"
"""Three strokes across the cell of a right answer."""

DARK = 0.85
"""Share of the greatest change from which on a cell is dark enough for white text."""

_WRONG = pl.col("predicted") != pl.col("actual")
_DEARNESS = pl.col("change").abs().fill_nan(-1.0)


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
    wrong = table.filter(_WRONG).sort(_DEARNESS, "count", descending=True, maintain_order=True)
    known = wrong.filter(pl.col("change").is_finite())
    every = {*table["predicted"].to_list(), *table["actual"].to_list()}
    shown = _shown_labels(every, wrong, labels)
    step = 74 if len(shown) <= 7 else 48 if len(shown) <= 12 else 21
    if plot_size()[0] < WIDTH:  # labels take about a third of a narrow figure
        step = min(step, max(8, int(0.62 * plot_size()[0] / len(shown))))
    written = step > 40
    greatest = max(map(abs, known["change"]), default=0.0) or 1.0
    changes = table.select(pl.when(_WRONG).then("change").otherwise(math.nan)).to_series()
    marked = table.with_columns(
        shown=_WRONG & pl.col("predicted").is_in(shown) & pl.col("actual").is_in(shown),
        dark=DARK * greatest < _DEARNESS,
        text=pl.Series(_changes(changes.to_list())),
        times=pl.col("count").map_elements(count, return_dtype=pl.String),
        size=(_DEARNESS.clip(lower_bound=0.0) / greatest).sqrt() * (0.8 * step) ** 2 * 0.5,
    )
    dearest = marked.filter(_WRONG).sort(_DEARNESS, "count", descending=True, maintain_order=True).head(12)
    listed = "; ".join(
        f"{row['actual']} taken for {row['predicted']} ({row['times']} times) {row['text']}"
        for row in dearest.iter_rows(named=True)
    )
    about = f"Change of the predicted {outcome} if half of each confusion were put right, the dearest first"
    legend = _price_legend(greatest, outcome) if any(known["change"]) else None
    return finished(
        alt.layer(
            *_price_layers(shown, step, greatest, legend),
            width=alt.Step(step),
            height=alt.Step(step),
            view=alt.ViewBackground(stroke=LINE),
        ),
        title=title or _price_title(known, outcome),
        subtitle=[
            f"n = {count(float(wrong['count'].fill_nan(0.0).sum()))} confusions",
            *([f"{len(shown)} of {len(every)} labels, of the dearest confusions"] if len(shown) < len(every) else []),
            "in each cell: change if half were put right, and how often it happens"
            if written
            else "triangles: up where the outcome would rise, down where it would fall",
            "hatched: right answers",
            *(["–: undefined"] if wrong["change"].is_nan().any() and written else []),
        ],
        description=f"{about}: {listed or 'there are none'}.",
        table=marked,
    )


def _shown_labels(every: set[str], dearest: pl.DataFrame, order: Sequence[str] | None) -> list[str]:
    """All labels where they are few, else those of the dearest confusions, in the order asked for."""
    known = list(dict.fromkeys(order)) if order is not None else sorted(every)
    lacking = sorted(every.difference(known))
    if lacking:
        raise UsageError(f'labels must name every label of the table; "{lacking[0]}" is not among them')
    return dearest_labels(known, dearest.select("predicted", "actual").iter_rows())


def dearest_labels(labels: list[str], pairs: Iterable[tuple[str, ...]]) -> list[str]:
    """All labels where they are few, else those of the dearest confusions, which come first among the pairs."""
    if len(labels) <= MOST_LABELS:
        return labels
    kept: set[str] = set()
    for pair in pairs:
        if len(kept.union(pair)) <= MOST_LABELS:
            kept.update(pair)
    return [label for label in labels if label in kept]


def _changes(values: list[float]) -> list[str]:
    """Changes with their signs, alike in decimals.

    >>> _changes([0.0312, -0.001, 0.0, math.nan])
    ['+0.031', '−0.001', '0', '–']
    """
    greatest = max((abs(one) for one in values if math.isfinite(one)), default=0.0) or 1.0
    decimals = min(max(1 - math.floor(math.log10(greatest)), 0), 6)
    return ["–" if math.isnan(one) else f"{one:+.{decimals}f}".replace("-", "−") if one else "0" for one in values]


def _price_legend(greatest: float, outcome: str) -> Any:
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


def _price_layers(labels: list[str], step: int, greatest: float, legend: Any) -> list[Any]:
    """Frames, shades and hatches, and in the cells the change above the count, or a triangle where there is no room."""
    names = rename_expression(shorten(labels, 26))
    turned = -45 if len(labels) > 3 or max(map(len, labels)) > 12 else 0
    axis: dict[str, Any] = {"labelLimit": 190, "grid": False, "domain": False, "labelExpr": names}
    across = alt.X("actual:N", title="actual label", scale=alt.Scale(domain=labels))
    up = alt.Y("predicted:N", title="predicted", scale=alt.Scale(domain=labels))
    place = across.axis(alt.Axis(labelAngle=turned, **axis)), up.axis(alt.Axis(ticks=False, labelPadding=6, **axis))
    tooltip = [alt.Tooltip("actual:N"), alt.Tooltip("predicted:N")]
    tooltip += [alt.Tooltip("count:Q", format=","), alt.Tooltip("change:Q", format="+.4~g")]
    scale = alt.Scale(domain=[-greatest, 0, greatest], range=list(SHADES), interpolate="rgb")
    cell = Plot().transform_filter("datum.shown")
    shade = cell.transform_filter("isValid(datum.change)").mark_rect(stroke=LINE, strokeWidth=1)
    hatch = Plot(inline(pl.DataFrame({"predicted": labels, "actual": labels}))).mark_point(
        shape=HATCH, size=(step - 6) ** 2, stroke=LINE, strokeWidth=1, filled=False, opacity=1
    )
    layers = [
        cell.mark_rect(stroke=LINE, strokeWidth=1, fill="white").encode(*place, tooltip=tooltip),
        shade.encode(*place, color=alt.Color("change:Q", scale=scale, legend=legend), tooltip=tooltip),
        hatch.encode(*place),
    ]
    ink = "datum.dark", "white", "black"
    if step <= 40:
        shape = either(alt.ShapeValue, "datum.change > 0", "triangle-up", "triangle-down")
        base = Plot().transform_filter("datum.shown && isValid(datum.change) && datum.change != 0")
        triangle = base.mark_point(strokeWidth=0, opacity=1)
        return [
            *layers,
            triangle.encode(*place, shape=shape, fill=either(alt.FillValue, *ink), size=alt.Size("size:Q", scale=None)),
        ]
    change, times = (13, 11) if step > 60 else (11, 10)
    text = cell.encode(*place, color=either(alt.ColorValue, *ink))
    return [
        *layers,
        text.mark_text(fontSize=change, fontWeight=600, dy=-8).encode(text=alt.Text("text:N")),
        text.mark_text(fontSize=times, dy=9).encode(text=alt.Text("times:N")),
    ]


def _price_title(known: pl.DataFrame, outcome: str) -> str:
    if known.is_empty():
        return f"No confusion has a price in {outcome}"
    best = known.row(0, named=True)
    if best["change"] == 0:
        return f"No confusion changes the predicted {outcome}"
    verb = "raise" if best["change"] > 0 else "lower"
    mended = f"Putting right half of the {best['actual']} taken for {best['predicted']}"
    rivals = known.filter(pl.col("change").abs() == abs(best["change"])).height - 1
    most = "" if known.height == 1 else " as much as any," if rivals else " most,"
    by = _changes([best["change"]])[0][1:]
    return f"{mended} would {verb} the predicted {outcome}{most} by {by}"
