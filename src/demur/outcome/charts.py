"""Charts of outcome models: observed against predicted, feature sets, coefficients, predicted systems."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import polars as pl

from demur.core.show.charts import (
    FILLS,
    SHAPES,
    WIDTH,
    Span,
    alt,
    capital,
    extent,
    finished,
    inline,
    interval_words,
    most_honest,
    name_axis,
    number_axis,
    refuse_repeats,
    renamed,
    tidy,
    upright,
    validations,
)
from demur.core.show.numbers import aligned, count, middle_cut, percent, short, signed, with_interval
from demur.core.stats.intervals import Figure

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
        description=f"Coefficients of {outcome}. {'; '.join(_term_text(row) for row in shown.iter_rows(named=True))}.",
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


def _term_text(row: dict[str, Any]) -> str:
    again = "" if math.isnan(row["selected"]) else f", chosen in {100 * row['selected']:.0f} %"
    return f"{row['term']} {row['told'] if row['chosen'] else 'left out'}{again}"


PREDICTED_ROW = 25
"""Pixels of one system."""

REASON_LETTERS = 88
"""Letters of a refusal that fit in the plot; all of it is in the tooltip and the description."""


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
    marked = _marked(table)
    told = "; ".join(f"{row['system']} {row['told']}" for row in marked.iter_rows(named=True))
    guess = f" The naive guess is {with_interval(naive.value, naive.low, naive.high)}." if naive.defined else ""
    return finished(
        alt.layer(*_layers(marked, outcome, naive)).properties(width=WIDTH - 110, height=PREDICTED_ROW * table.height),
        title=title or _predicted_title(marked, outcome, naive),
        subtitle=_predicted_words(marked, naive, level),
        description=f"Predicted {outcome} of systems, the highest first. {told}.{guess}",
        table=marked,
    )


def _marked(table: pl.DataFrame) -> pl.DataFrame:
    """Systems from the highest prediction to the lowest, then the others, with what is written beside each."""
    written = iter(aligned(table.select("predicted", "low", "high").to_numpy().ravel().tolist()))
    told = [_predicted_text(row, next(written), next(written), next(written)) for row in table.iter_rows(named=True)]
    missing = pl.col("predicted").is_nan()
    ordered = table.with_columns(told=pl.Series(told), hollow=pl.col("refused").is_not_null() & ~missing)
    return ordered.sort(missing, -pl.col("predicted"), maintain_order=True)


def _predicted_text(row: dict[str, Any], value: str, low: str, high: str) -> str:
    if not math.isnan(row["predicted"]):
        return value if math.isnan(row["low"]) or math.isnan(row["high"]) else f"{value} ({low} to {high})"
    return "undefined" if row["refused"] is None else f"refused: {row['refused']}"


def _layers(marked: pl.DataFrame, outcome: str, naive: Figure) -> list[Any]:
    ends = pl.DataFrame({"predicted": [naive.value], "low": [naive.low], "high": [naive.high]})
    domain = extent(pl.concat([marked.select(ends.columns), ends]), ends.columns, air=0.06)
    up = name_axis("system", marked["system"].to_list(), letters=34)
    across = number_axis("predicted", f"predicted {outcome}", domain)
    base = alt.Chart().encode(y=up)
    full = alt.condition("datum.hollow", alt.value("white"), alt.value("black"))
    dot = base.transform_filter("isValid(datum.predicted)").mark_point(
        shape="circle", size=80, stroke="black", strokeWidth=1.6, opacity=1
    )
    told = [alt.Tooltip("system:N"), alt.Tooltip("told:N", title=f"predicted {outcome}"), alt.Tooltip("refused:N")]
    beside = base.transform_filter("isValid(datum.predicted)").mark_text(align="left", dx=8, fontSize=11)
    return [
        *_naive_layers(naive),
        base.mark_rule(strokeWidth=2, color="#555555").encode(x="low:Q", x2="high:Q"),
        dot.encode(across, fill=full, tooltip=told),
        beside.encode(x=alt.value("width"), text="told:N"),
        *_reasons(marked, up),
    ]


def _naive_layers(naive: Figure) -> list[Any]:
    if not naive.defined:
        return []
    line = upright(naive.value, color="#777777", strokeWidth=1.5, strokeDash=[5, 4])
    if math.isnan(naive.low) or math.isnan(naive.high):
        return [line]
    band = alt.Chart(inline(pl.DataFrame({"low": [naive.low], "high": [naive.high]}))).mark_rect(color="#e4e4e4")
    return [band.encode(x="low:Q", x2="high:Q"), line]


def _reasons(marked: pl.DataFrame, up: Any) -> list[Any]:
    """Why nothing is predicted, in place of a dot."""
    lost = marked.filter(pl.col("predicted").is_nan())
    if lost.is_empty():
        return []
    words = [middle_cut(told, REASON_LETTERS, tail=0) for told in lost["told"]]
    data = lost.select("system", "told").with_columns(reason=pl.Series(words))
    look: dict[str, Any] = {"align": "left", "fontSize": 11, "fontStyle": "italic"}
    base = alt.Chart(inline(data)).encode(y=up, x=alt.value(8), text="reason:N")
    told = [alt.Tooltip("system:N"), alt.Tooltip("told:N")]
    return [
        base.mark_text(**look, stroke="white", strokeWidth=4, strokeJoin="round"),
        base.mark_text(**look, color="#1a1a1a").encode(tooltip=told),
    ]


def _predicted_title(marked: pl.DataFrame, outcome: str, naive: Figure) -> str:
    known = marked.filter(pl.col("predicted").is_not_nan())
    if known.is_empty():
        if marked["refused"].null_count():
            return f"There is no prediction of {outcome}"
        who = marked["system"][0] if marked.height == 1 else f"all {marked.height} systems"
        return f"Too unlike the training data to predict {outcome}: {who}"
    name, value = known.row(0, named=True)["system"], known["predicted"][0]
    beside = f"; the naive guess is {short(naive.value)}" if naive.defined else ""
    if marked.height == 1:
        return f"{name} has a predicted {outcome} of {short(value)}{beside}"
    tied = known.height > 1 and known["predicted"][1] == value
    most = "no lower predicted" if tied else "the highest predicted"
    return f"{name} has {most} {outcome}{' than any other' if tied else ''}, {short(value)}{beside}"


def _predicted_words(marked: pl.DataFrame, naive: Figure, level: float) -> list[str]:
    refused = marked.filter(pl.col("refused").is_not_null() & pl.col("predicted").is_nan()).height
    hollow = int(marked["hollow"].sum())
    banded = naive.defined and not math.isnan(naive.low)
    return [
        *(interval_words(marked, "lines", level) if marked["predicted"].is_finite().any() else []),
        *(["dashed: the naive guess" + (" with its interval" if banded else "")] if naive.defined else []),
        *([f"{count(refused)} refused as unlike the training data"] if refused else []),
        *(["hollow: beyond the training data"] if hollow else []),
    ]


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
    names = {"dialogue": pl.String, "validation": pl.String}
    table = tidy(rows, names, ("observed", "predicted"))
    refuse_repeats(table, "dialogue", "validation")
    kinds = validations(table)
    ends = _ends(table)
    domain = _aired(*ends)
    marks = table.with_columns(at=pl.col("predicted").clip(*ends))
    known = marks.filter(pl.col("predicted").is_finite() & pl.col("observed").is_finite())
    reach = _reach(known.filter(pl.col("validation") == most_honest(kinds)), level)
    found = dict(r2 or {})
    told = [f"{kind}: R² {_r2_words(found.get(kind, math.nan))}" for kind in kinds]
    low, high = extent(known, ("observed",)) if known.height else (math.nan, math.nan)
    spread = f"observed from {low:.3g} to {high:.3g}"
    return finished(
        alt.layer(*_observed_layers(known, kinds, domain, reach, outcome, found)).properties(width=SIDE, height=SIDE),
        title=title or _observed_title(known, kinds, found, outcome),
        subtitle=_observed_words(marks, known, most_honest(kinds), reach, level),
        description=f"Observed against predicted {outcome} of {_dialogues(known)}, {spread}. {'; '.join(told)}.",
        table=marks,
    )


def _ends(table: pl.DataFrame) -> Span:
    """One range for both axes: all that was observed and what was predicted, but for predictions far off."""
    low, high = extent(table, ("observed",))
    room = FAR * (high - low)
    near = table.select("observed", pl.col("predicted").clip(low - room, high + room))
    return extent(near, near.columns)


def _aired(least: float, most: float) -> Span:
    air = 0.05 * (most - least)
    return least - air, most + air


def _reach(known: pl.DataFrame, level: float) -> float:
    """How far from the diagonal the given share of predictions lies at most; NaN where that would be all of them."""
    errors = np.sort(np.abs((known["observed"] - known["predicted"]).to_numpy()))
    needed = math.ceil(level * errors.size - 1e-9)
    return float(errors[needed - 1]) if 0 < needed < errors.size else math.nan


def _observed_layers(
    known: pl.DataFrame, kinds: list[str], domain: Span, reach: float, outcome: str, r2: Mapping[str, float]
) -> list[Any]:
    across, up = _observed_axes(domain, outcome)
    links = known.filter(pl.col("dialogue").is_duplicated()) if known.height <= MOST_LINKS * len(kinds) else known[:0]
    link = alt.Chart(inline(links)).mark_line(color="#999999", strokeWidth=0.8, clip=True)
    look = [alt.Scale(domain=kinds, range=[mapping[kind] for kind in kinds]) for mapping in (FILLS, SHAPES)]
    legend = _validation_legend(kinds, r2)
    size = float(np.clip(9000 / max(known.height, 1), 14, 75))
    dot = (
        alt.Chart()
        .transform_filter("isValid(datum.predicted) && isValid(datum.observed)")
        .mark_point(size=size, stroke="#333333", strokeWidth=1, opacity=1 if known.height <= 400 else 0.6)
    )
    told = [alt.Tooltip("dialogue:N"), alt.Tooltip("validation:N")]
    told += [alt.Tooltip(f"{name}:Q", format=".4~g") for name in ("observed", "predicted")]
    return [
        *_diagonal(domain, reach),
        link.encode(x="at:Q", y="observed:Q", detail="dialogue:N"),
        dot.encode(
            across,
            up,
            fill=alt.Fill("validation:N", scale=look[0], legend=legend),
            shape=alt.Shape("validation:N", scale=look[1], legend=legend),
            tooltip=told,
        ),
        *_beyond_layer(known),
    ]


def _observed_axes(domain: Span, outcome: str) -> tuple[Any, Any]:
    across = number_axis("at", f"predicted {outcome}", domain)
    scale = alt.Scale(domain=list(domain), nice=False, zero=False)
    axis = alt.Axis(format=".3~g", tickCount=6)
    return across, alt.Y("observed:Q", title=f"observed {outcome}", scale=scale, axis=axis)


def _validation_legend(kinds: list[str], r2: Mapping[str, float]) -> Any:
    said = {kind: f"{kind}, R² {_r2_words(r2[kind])}" if kind in r2 else kind for kind in kinds}
    return alt.Legend(
        title=None,
        orient="top",
        symbolSize=90,
        symbolStrokeColor="#333333",
        symbolStrokeWidth=1,
        symbolOpacity=1,
        rowPadding=2,
        labelExpr=renamed(said),
    )


def _diagonal(domain: Span, reach: float) -> list[Any]:
    """Where predictions would be right, and the band around it."""
    ends = pl.DataFrame({"at": domain, "observed": domain})
    line = alt.Chart(inline(ends)).mark_line(color="#777777", strokeDash=[5, 4], clip=True)
    layers = [line.encode(x="at:Q", y="observed:Q")]
    if not math.isnan(reach):
        edges = ends.with_columns(low=pl.col("at") - reach, high=pl.col("at") + reach)
        band = alt.Chart(inline(edges)).mark_area(color="#ececec", clip=True)
        layers.insert(0, band.encode(x="at:Q", y="low:Q", y2="high:Q"))
    return layers


def _beyond_layer(known: pl.DataFrame) -> list[Any]:
    """Arrows above the predictions that were put on the edge, and where they would be."""
    beyond = known.filter(pl.col("at") != pl.col("predicted"))
    if beyond.is_empty():
        return []
    arrows = beyond.with_columns(told=pl.Series([short(value) for value in beyond["predicted"]]))
    left = pl.col("predicted") < pl.col("at")
    return [*_arrows(arrows.filter(left), "left"), *_arrows(arrows.filter(~left), "right")]


def _arrows(rows: pl.DataFrame, side: Literal["left", "right"]) -> list[Any]:
    inward = 7 if side == "left" else -7
    base = alt.Chart(inline(rows)).encode(x="at:Q", y="observed:Q")
    return [
        base.mark_point(shape=f"triangle-{side}", size=45, fill="black", strokeWidth=0, opacity=1, yOffset=-12),
        base.mark_text(fontSize=11, align=side, dx=inward, dy=-12, color="#1a1a1a").encode(text="told:N"),
    ]


def _r2_words(r2: float) -> str:
    return "undefined" if math.isnan(r2) else f"{r2:.2f}".replace("-", "−")


def _observed_title(known: pl.DataFrame, kinds: list[str], r2: Mapping[str, float], outcome: str) -> str:
    kind = most_honest(kinds)
    best = r2.get(kind, math.nan)
    if math.isnan(best):
        return f"Observed against predicted {outcome} of {_dialogues(known)}"
    name = capital(kind)
    if best <= 0:
        return f"{name} predictions of {outcome} are no better than its mean: R² {_r2_words(best)}"
    others = [other for other in kinds[:-1] if not math.isnan(r2.get(other, math.nan))]
    beside = f", against {_r2_words(r2[others[-1]])} of {others[-1]} ones" if others else ""
    return f"{name} predictions of {outcome} have an R² of {_r2_words(best)}{beside}"


def _dialogues(known: pl.DataFrame) -> str:
    number = known["dialogue"].n_unique()
    return f"{count(number)} {'dialogue' if number == 1 else 'dialogues'}"


def _observed_words(marks: pl.DataFrame, known: pl.DataFrame, kind: str, reach: float, level: float) -> list[str]:
    undefined = marks.height - known.height
    beyond = known.filter(pl.col("at") != pl.col("predicted")).height
    lines = "dashed: predictions that are right"
    band = [] if math.isnan(reach) else [f"grey: {percent(level)} of {kind} predictions lie within ±{reach:.2g}"]
    return [
        f"n = {_dialogues(known)}",
        lines,
        *band,
        *([f"arrows: {_predictions(beyond)} far beyond the plot"] if beyond else []),
        *([f"{_predictions(undefined)} undefined"] if undefined else []),
    ]


def _predictions(number: int) -> str:
    return f"{count(number)} {'prediction' if number == 1 else 'predictions'}"


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
        told=pl.col("r2").map_elements(_r2_words, return_dtype=pl.String),
    ).with_columns(edge=pl.col("stop").fill_nan(0.0))
    cut = bars.filter(pl.col("r2") < FLOOR).height
    height = alt.Step(LANE, **{"for": "offset"})
    return finished(
        alt.layer(*_sets_layers(bars, kinds)).properties(width=WIDTH - 60, height=height),
        title=title or _sets_title(table, most_honest(kinds)),
        subtitle=[
            "R² of 0: no better than the mean outcome",
            *([f"arrow: bar cut off at {short(FLOOR)}"] if cut else []),
            *(["in-sample is the most hopeful, nested the most honest"] if len(kinds) > 1 else []),
        ],
        description=f"R² of feature sets. {_sets_told(table)}.",
        table=bars,
    )


def _sets_layers(bars: pl.DataFrame, kinds: list[str]) -> list[Any]:
    names = bars["features"].unique(maintain_order=True).to_list()
    least, most = extent(bars, ("stop",))
    low, high = min(least, 0.0), max(most, 0.0)
    room = 0.1 * (high - low)
    domain = (low - (1.3 * room if low < 0 else 0.0), high + room)
    up = name_axis("features", names, letters=34, grid=False)
    up.scale.paddingInner, up.scale.paddingOuter = 0.22, 0.1
    lane = alt.YOffset("validation:N", scale=alt.Scale(domain=kinds))
    colours = alt.Scale(domain=kinds, range=[FILLS[kind] for kind in kinds])
    legend = alt.Legend(title=None, orient="top", symbolType="square", symbolSize=140, rowPadding=2)
    across = number_axis("stop", "R²", domain, format=".2~f", labelFlush=False)
    base = alt.Chart().encode(y=up, yOffset=lane)
    bar = base.transform_filter("isValid(datum.stop)").mark_bar(stroke="#333333", strokeWidth=1, height=LANE - 4)
    told = [alt.Tooltip("features:N"), alt.Tooltip("validation:N"), alt.Tooltip("r2:Q", format=".4~g")]
    fill = alt.Fill("validation:N", scale=colours, legend=legend)
    arrow = base.transform_filter(f"datum.r2 < {FLOOR}").mark_point(
        shape="triangle-left", size=60, fill="white", stroke="#333333", strokeWidth=1, opacity=1, xOffset=9
    )
    text = base.encode(x="edge:Q", text="told:N")
    ink: dict[str, Any] = {"fontSize": 11, "color": "#1a1a1a"}
    return [
        bar.encode(across, alt.X2(datum=0), fill=fill, tooltip=told),
        upright(0.0, color="black", strokeWidth=1),
        arrow.encode(x="stop:Q"),
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


def _sets_told(table: pl.DataFrame) -> str:
    parts = []
    for rows in table.partition_by("features", maintain_order=True):
        values = (f"{kind} {_r2_words(r2)}" for kind, r2 in rows.select("validation", "r2").iter_rows())
        parts.append(f"{rows['features'][0]}: {', '.join(values)}")
    return "; ".join(parts)
