"""The error-return plot (Artstein 2011): error rate against non-return rate of one or more systems."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import polars as pl

from demur.analyses.bands import Band
from demur.analyses.evaluation import Evaluation
from demur.analyses.threshold import Choice
from demur.data.columns import nearest
from demur.errors import UsageError
from demur.measures.curves import ErrorReturnCurve
from demur.views.drawing import HEIGHT, WIDTH, alt, finished, headroom, inline, rate_axis
from demur.views.fragments import evenly
from demur.views.hovering import hover_layer
from demur.views.labels import placed_labels
from demur.views.lines import ORACLE, RANDOM, line_channels, style_of
from demur.views.numbers import count, cutoff, inputs
from demur.views.words import percent

Bands = Literal["auto", "all", "pointwise", "none"]

MOST_BANDS = 4
"""Systems up to which bands are drawn unless asked for: more of them hide each other."""


class Drawn(Protocol):
    """What is drawn as a line: an evaluation, or a curve without a band."""

    @property
    def name(self) -> str:
        """Its name in the legend."""

    @property
    def n(self) -> int:
        """Inputs behind it."""

    @property
    def clustered(self) -> bool:
        """Whether inputs come in dialogues."""

    @property
    def curve(self) -> ErrorReturnCurve:
        """The curve itself."""

    @property
    def band(self) -> Band | None:
        """Its bands, where there are any."""


@dataclass(frozen=True, slots=True)
class _Bare:
    curve: ErrorReturnCurve
    band: Band | None = None
    clustered: bool = False

    @property
    def name(self) -> str:
        return self.curve.name

    @property
    def n(self) -> int:
        return self.curve.sweep.n


def error_return_chart(
    evaluations: Sequence[Evaluation],
    *,
    baseline: str | None = None,
    region: tuple[float, float] | None = (0.15, 0.25),
    choices: Sequence[Choice] = (),
    bands: Bands = "auto",
    references: bool = True,
) -> Any:
    """The error-return plot: the baseline (the first, unless named) thick and black, lower curves are better.

    `region` shades the non-return rates that matter. `choices` marks operating points with their thresholds.
    Bands hold for a whole curve at once; `"pointwise"` ones at any single non-return rate.
    """
    return _chart(baseline_first(evaluations, baseline), region, choices, bands, references)


def bare_curve_chart(
    curve: ErrorReturnCurve,
    *,
    region: tuple[float, float] | None = (0.15, 0.25),
    choices: Sequence[Choice] = (),
    references: bool = True,
) -> Any:
    """The error-return plot of a curve alone, without bands."""
    return _chart([_Bare(curve)], region, choices, "none", references)


def _chart(
    ordered: Sequence[Drawn],
    region: tuple[float, float] | None,
    choices: Sequence[Choice],
    bands: Bands,
    references: bool,
) -> Any:
    drawn = _bands_drawn(ordered, bands)
    names = [one.name for one in ordered]
    table = curve_table(ordered)
    band_rows = _band_table(ordered, pointwise=bands == "pointwise") if drawn else None
    domain = headroom(max(_highest(table, "error"), _highest(band_rows, "high")))
    layers = [
        *_region_layer(region, domain),
        *([_band_layer(names, band_rows)] if band_rows is not None else []),
        *_lines(names, _reference_table(ordered[0]) if references else None, domain),
        *_start_layer(ordered),
        *placed_labels(_choice_marks(choices), domain),
        hover_layer(_hover_table(ordered), "nonreturn", "error"),
    ]
    return finished(
        alt.layer(*layers).properties(width=WIDTH, height=HEIGHT),
        title=_title(ordered, region) if len(choices) != 1 else _choice_title(choices[0]),
        subtitle=_subtitle(ordered, region, bands if drawn else "none"),
        description=_description(ordered, region),
        table=table,
    )


def baseline_first(evaluations: Sequence[Evaluation], baseline: str | None = None) -> list[Evaluation]:
    """The evaluations with the baseline, where one is named, moved to the front."""
    if not evaluations:
        raise UsageError("a figure needs at least one evaluation; got none")
    names = [one.name for one in evaluations]
    if baseline is not None and baseline not in names:
        raise UsageError(f'there is no system "{baseline}" to be the baseline ({nearest(baseline, names)})')
    return sorted(evaluations, key=lambda one: one.name != (names[0] if baseline is None else baseline))


def curve_table(evaluations: Sequence[Drawn]) -> pl.DataFrame:
    """The curves as they are drawn: about 2,000 points each, 1,000 where there are many."""
    points = 2000 if len(evaluations) <= MOST_BANDS else 1000
    frames = [one.curve.frame(points=points) for one in evaluations]
    return pl.concat(frames).select("system", "threshold", "nonreturn", "error", "returned", "wrong_returned")


def _bands_drawn(evaluations: Sequence[Drawn], bands: Bands) -> bool:
    if bands not in ("auto", "all", "pointwise", "none"):
        raise UsageError(f'bands are "auto", "all", "pointwise" or "none"; got "{bands}"')
    return bands in ("all", "pointwise") or (bands == "auto" and len(evaluations) <= MOST_BANDS)


def _highest(table: pl.DataFrame | None, column: str) -> float:
    return 0.0 if table is None else float(table[column].max() or 0.0)  # type: ignore[arg-type]


def _lines(names: list[str], references: pl.DataFrame | None, domain: tuple[float, float]) -> list[Any]:
    kinds = () if references is None else (RANDOM, ORACLE)
    channels = line_channels(names, corner="top-right", references=kinds)
    axes = (
        rate_axis(alt.X, "nonreturn", "non-return rate (share of inputs withheld)"),
        rate_axis(alt.Y, "error", "error rate (share of inputs answered wrongly)", domain=domain),
    )
    curves = alt.Chart().mark_line(interpolate="linear", clip=True).encode(*axes, *channels, order="nonreturn:Q")
    if references is None:
        return [curves]
    return [alt.Chart(inline(references)).mark_line().encode(*axes, *channels), curves]


def _reference_table(baseline: Drawn) -> pl.DataFrame:
    parts = ((RANDOM, baseline.curve.random()), (ORACLE, baseline.curve.oracle()))
    return pl.concat(
        [pl.DataFrame({"nonreturn": x, "error": y}).with_columns(system=pl.lit(name)) for name, (x, y) in parts]
    )


def _band_table(evaluations: Sequence[Drawn], *, pointwise: bool) -> pl.DataFrame:
    low, high = ("low", "high") if pointwise else ("low_all", "high_all")
    known = [one.band.frame() for one in evaluations if one.band is not None]
    return pl.concat([frame.select("system", "nonreturn", low=low, high=high) for frame in known])


def _band_layer(names: list[str], rows: pl.DataFrame) -> Any:
    fills = [style_of(place).colour for place in range(len(names))]
    return (
        alt.Chart(inline(rows))
        .mark_area(opacity=0.16, clip=True)
        .encode(
            x="nonreturn:Q",
            y="low:Q",
            y2="high:Q",
            fill=alt.Fill("system:N", scale=alt.Scale(domain=names, range=fills), legend=None),
        )
    )


def _region_layer(region: tuple[float, float] | None, domain: tuple[float, float]) -> list[Any]:
    if region is None:
        return []
    if not 0 <= region[0] <= region[1] <= 1:
        raise UsageError(
            f"a region of non-return rates runs from low to high within [0, 1]; got {region[0]:g} to {region[1]:g}"
        )
    strip = pl.DataFrame({"start": [region[0]], "stop": [region[1]], "bottom": [domain[0]], "top": [domain[1]]})
    return [
        alt.Chart(inline(strip)).mark_rect(color="#f0ead6").encode(x="start:Q", x2="stop:Q", y="bottom:Q", y2="top:Q")
    ]


def _start_layer(evaluations: Sequence[Drawn]) -> list[Any]:
    """Open circles where curves start that do not start at 0."""
    late = [one.curve for one in evaluations if one.curve.floor > 0]
    if not late:
        return []
    rows = pl.DataFrame({"nonreturn": [one.floor for one in late], "error": [float(one.error[0]) for one in late]})
    marks = alt.Chart(inline(rows)).mark_point(filled=True, fill="white", stroke="black", size=50, opacity=1)
    return [marks.encode(x="nonreturn:Q", y="error:Q")]


def _choice_marks(choices: Sequence[Choice]) -> pl.DataFrame:
    texts = [f"threshold {one.threshold:.4g}" if not math.isnan(one.threshold) else "return nothing" for one in choices]
    points = [(one.nonreturn, one.error, text) for one, text in zip(choices, texts, strict=True)]
    return pl.DataFrame(points, schema={"x": pl.Float64, "y": pl.Float64, "text": pl.String}, orient="row")


def _hover_table(evaluations: Sequence[Drawn]) -> pl.DataFrame:
    return pl.concat([_hover_rows(one) for one in evaluations])


def _hover_rows(evaluation: Drawn) -> pl.DataFrame:
    rows = evenly(evaluation.curve.frame(points=2000), 160)
    total = count(evaluation.curve.sweep.total)
    return rows.select(
        "nonreturn",
        "error",
        pl.col("system"),
        pl.col("threshold").map_elements(cutoff, return_dtype=pl.String).alias("returned if"),
        pl.col("nonreturn").map_elements(percent, return_dtype=pl.String).alias("non-return rate"),
        pl.col("error").map_elements(percent, return_dtype=pl.String).alias("error rate"),
        pl.col("returned").map_elements(lambda n: f"{count(n)} of {total}", return_dtype=pl.String).alias("returned"),
        pl.col("wrong_returned").map_elements(count, return_dtype=pl.String).alias("of these wrong"),
    )


def _middle(region: tuple[float, float] | None) -> float:
    return 0.2 if region is None else (region[0] + region[1]) / 2


def _title(evaluations: Sequence[Drawn], region: tuple[float, float] | None) -> str:
    at = _middle(region)
    reach = [one for one in evaluations if one.curve.floor <= at]
    if len(evaluations) == 1 or not reach:
        first = evaluations[0]
        then = f", {percent(float(first.curve.error_at(at)))} at {percent(at)} non-return" if reach else ""
        return f"{first.name}: {percent(float(first.curve.error[0]))} errors when it returns all it has{then}"
    best = min(reach, key=lambda one: float(one.curve.error_at(at)))
    return (
        f"At {percent(at)} non-return {best.name} has the lowest error rate, {percent(float(best.curve.error_at(at)))}"
    )


def _choice_title(choice: Choice) -> str:
    what = "returning nothing" if math.isnan(choice.threshold) else f"a threshold of {choice.threshold:.4g}"
    return f"{choice.system}: {what} leaves {percent(choice.error)} errors and withholds {percent(choice.nonreturn)}"


def _subtitle(evaluations: Sequence[Drawn], region: tuple[float, float] | None, bands: str) -> list[str]:
    parts = [inputs([one.n for one in evaluations], clustered=any(one.clustered for one in evaluations))]
    level = next((one.band.level for one in evaluations if one.band is not None), None)
    if bands != "none" and level is not None:
        over = "at each point" if bands == "pointwise" else "for the whole curve"
        parts.append(f"{percent(level)} bands {over}")
    if region is not None:
        parts.append(f"shaded strip: critical region, {percent(region[0])} to {percent(region[1])}")
    if len(evaluations) > 1:
        parts.append("thickest line: baseline")
    late = [
        f"{one.name} starts at {percent(one.curve.floor)}, the share it withholds by itself"
        for one in evaluations
        if one.curve.floor > 0
    ]
    return [*parts, *late]


def _description(evaluations: Sequence[Drawn], region: tuple[float, float] | None) -> str:
    at = _middle(region)
    parts = [
        f"{one.name} falls from {percent(float(one.curve.error[0]))} at {percent(one.curve.floor)} non-return"
        + (f" to {percent(float(one.curve.error_at(at)))} at {percent(at)}" if one.curve.floor <= at else "")
        for one in evaluations
    ]
    return f"Error-return plot: error rate against non-return rate, lower is better. {'; '.join(parts)}."
