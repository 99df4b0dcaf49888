"""The error-return plot (Artstein 2011) of one or more systems, and the difference of two."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

import numpy as np
import polars as pl

from demur.core.io.columns import nearest
from demur.core.show.charts import (
    HEIGHT,
    LETTER,
    OTHERS,
    WIDTH,
    Corner,
    Plot,
    alt,
    finished,
    headroom,
    hover_layer,
    inline,
    line_channels,
    lines_of_many,
    placed_labels,
    plot_size,
    rate_axis,
    reference_names,
    style_of,
)
from demur.core.show.html import evenly
from demur.core.show.numbers import count, cutoff, percent, shorten, span, with_interval
from demur.core.stats.promises import Limited
from demur.errors import UsageError
from demur.returns import words
from demur.returns.comparison import verdicts
from demur.returns.comparison.compare import Crossing, PairComparison
from demur.returns.comparison.contrasts import Side
from demur.returns.curves import ErrorReturnCurve
from demur.returns.evaluate import Evaluation
from demur.returns.threshold import Choice, printed_frame
from demur.returns.words import Bare, Drawn, drawn_slices

T = TypeVar("T", bound=Drawn)
Texts = dict[str, tuple[str, Callable[[Any], str]]]
Bands = Literal["auto", "all", "pointwise", "none"]

Mark = tuple[float, float, str]
"""A point of the plot, non-return rate and error rate, with its label."""
MARKS = {"x": pl.Float64, "y": pl.Float64, "text": pl.String}
MOST_BANDS = 4
"""Systems up to which bands are drawn unless asked for: more of them hide each other."""

MOST_STYLED = 1 + len(OTHERS)
"""Systems up to which each has a line of its own style; of more a few have, and the others are grey."""

LOWEST = 3
"""Curves in colour beside the first, of many that were not compared."""

MOST_POINTS, MOST_DRAWN = 200, 8000
"""Points of a curve that is drawn with many others, and of all of them, which are most of what a page weighs."""

MANY = "black: the first system; in colour: the lowest curves; others pale grey"
"""What a figure of many systems that were not compared says of its lines."""

PANEL = 135

LOW = 0.5
"""Share of the plot's height under which a promise is named at the right end, where curves and legend leave room."""

RATIO = "cost ratio (what a non-return costs over what an error costs)"


def error_return_chart(
    evaluations: Sequence[Drawn],
    *,
    baseline: str | None = None,
    region: tuple[float, float] | None = (0.15, 0.25),
    choices: Sequence[Choice] = (),
    bands: Bands = "auto",
    references: bool = True,
    title: str | None = None,
    crossings: Sequence[Crossing] = (),
    marks: Sequence[Mark] = (),
    limits: Sequence[float] = (),
    facts: Sequence[str] = (),
) -> Any:
    """The error-return plot: the baseline (the first, unless named) thick and black, lower curves are better.

    `region` shades the non-return rates that matter. `choices` marks operating points with their thresholds,
    `crossings` the points where the better system changes, `marks` further points, `limits` promised error rates;
    `facts` go into the subtitle.
    Bands hold for a whole curve at once; `"pointwise"` ones at any single non-return rate. Without a `title` the figure
    says what it shows, and not which system is better.
    """
    further: dict[str, Any] = {"marks": tuple(marks), "limits": tuple(limits), "facts": tuple(facts)}
    look = _Look(region, tuple(choices), bands, references, title, tuple(crossings), **further)
    return _chart(baseline_first(evaluations, baseline), look)


def slices_chart(
    evaluations: Sequence[Evaluation],
    system: str,
    *,
    region: tuple[float, float] | None = (0.15, 0.25),
    choices: Sequence[Choice] = (),
) -> Any:
    """The error-return plot of one system, thick and black with its band, and of its slices; of many the worst."""
    whole = [one for one in evaluations if one.system == system and one.part is None]
    slices = drawn_slices(evaluations, system)
    left_out = sum(one.system == system for one in evaluations) - len(whole) - len(slices)
    short = shorten([one.part for one in slices if one.part is not None])
    labels = {one.name: "all inputs" if one.part is None else short[one.part] for one in (*whole, *slices)}
    look = _Look(region, tuple(choices), "auto", references=False, labels=labels, left_out=left_out)
    return _chart([*whole, *slices], look)


def bare_curve_chart(curve: ErrorReturnCurve, **options: Any) -> Any:
    """The error-return plot of a curve alone, without bands; options are those of `error_return_chart`."""
    return error_return_chart([Bare(curve)], **{"bands": "none", **options})


_HOLLOW: dict[str, Any] = {"filled": True, "fill": "white", "stroke": "black", "opacity": 1}
DIAMOND: dict[str, Any] = {**_HOLLOW, "shape": "diamond", "size": 90, "strokeWidth": 1.8}
"""How a point that was chosen or computed is marked."""


@dataclass(frozen=True, slots=True)
class _Look:
    """What is drawn besides the curves, and how they are called."""

    region: tuple[float, float] | None
    choices: tuple[Choice, ...]
    bands: Bands
    references: bool
    title: str | None = None
    crossings: tuple[Crossing, ...] = ()
    labels: Mapping[str, str] | None = None
    left_out: int = 0
    marks: tuple[Mark, ...] = ()
    limits: tuple[float, ...] = ()
    facts: tuple[str, ...] = ()


def _chart(ordered: Sequence[Drawn], look: _Look) -> Any:
    banded, styled = _banded(ordered, look), ordered
    if look.labels is None and len(ordered) > MOST_STYLED:
        styled = lowest_curves(ordered)
    names = [one.name for one in ordered]
    table = curve_table(ordered)
    band_rows = None
    if banded:
        low, high = ("low", "high") if look.bands == "pointwise" else ("low_all", "high_all")
        frames = [one.band.frame() for one in banded if one.band is not None]
        band_rows = pl.concat([frame.select("system", "nonreturn", low=low, high=high) for frame in frames])
    promises = list(dict.fromkeys([*promised(look.choices), *(("error", bound) for bound in look.limits)]))
    tops = [bound for of, bound in promises if of != "nonreturn"]
    points = [*marks_of(look.choices), *look.marks]
    points += [(at.nonreturn, at.error, words.deployed_text(at, ordered)) for at in words.deployed_points(ordered)]
    heights = [table["error"].max(), None if band_rows is None else band_rows["high"].max()]
    domain = headroom(max(*(float(height or 0.0) for height in heights), *tops))  # type: ignore[arg-type]
    layers = [
        *region_layer(look.region, domain),
        *([band_layer(names, band_rows)] if band_rows is not None else []),
        *_lines(ordered, look, domain, [one.name for one in styled]),
        *cutoff_layer(styled),
        *start_layer(styled, intervals=look.bands != "none"),
        *mark_layers(promises, points, domain, look.crossings),
        hover_layer(pl.concat([_hover_rows(one) for one in ordered]), "nonreturn", "error"),
    ]
    title = look.title
    if title is None:
        single = len(look.choices) == 1
        title = words.choice_title(look.choices[0]) if single else words.neutral_title(ordered, look.region)
    bands, crossings = look.bands if banded else "none", bool(look.crossings)
    return finished(
        alt.layer(*layers, width=WIDTH, height=HEIGHT),
        title=title,
        subtitle=[
            *words.subtitle(styled, look.region, bands=bands, left_out=look.left_out, crossings=crossings),
            *([MANY] if len(styled) < len(ordered) else []),
            *([words.choice_rates(look.choices[0])] if len(look.choices) == 1 else []),
            *look.facts,
        ],
        description=words.description(ordered, look.region, look.choices),
        table=table,
    )


def baseline_first(evaluations: Sequence[T], baseline: str | None = None) -> list[T]:
    """The evaluations with the baseline, where one is named, moved to the front."""
    if not evaluations:
        raise UsageError("a figure needs at least one evaluation; got none")
    names = [one.name for one in evaluations]
    if baseline is not None and baseline not in names:
        raise UsageError(f'there is no system "{baseline}" to be the baseline ({nearest(baseline, names)})')
    return sorted(evaluations, key=lambda one: one.name != (names[0] if baseline is None else baseline))


def lowest_curves(evaluations: Sequence[T]) -> list[T]:
    """The first of many systems, and those of which the area under the curve is least, as far as it reaches."""

    def area(one: T) -> float:
        return float(np.trapezoid(one.curve.error, one.curve.nonreturn)) if one.curve.floor < 1 else math.inf

    lowest = sorted(evaluations, key=area)[:LOWEST]
    return [evaluations[0], *(one for one in lowest if one is not evaluations[0])]


def curve_table(evaluations: Sequence[Drawn]) -> pl.DataFrame:
    """The curves as they are drawn: about 2,000 points each; where there are many only what shows of them."""
    few = len(evaluations) <= MOST_BANDS
    points = min(MOST_POINTS, MOST_DRAWN // len(evaluations))
    kept = (one.curve.frame(points=2000) if few else one.curve.outline(points) for one in evaluations)
    frames = [printed_frame(one.curve, frame) for one, frame in zip(evaluations, kept, strict=True)]
    return pl.concat(frames).select("system", "threshold", "nonreturn", "error", "returned", "wrong_returned")


def _banded(ordered: Sequence[Drawn], look: _Look) -> Sequence[Drawn]:
    """Those drawn with their bands: all of a few, none of many; with slices only the whole."""
    if look.bands not in ("auto", "all", "pointwise", "none"):
        raise UsageError(f'bands are "auto", "all", "pointwise" or "none"; got "{look.bands}"')
    if look.labels is not None:
        return ordered[:1]
    drawn = look.bands in ("all", "pointwise") or (look.bands == "auto" and len(ordered) <= MOST_BANDS)
    return [one for one in ordered if one.band is not None] if drawn else []


def curve_axes(domain: tuple[float, float]) -> tuple[Any, Any]:
    """The axes of the error-return plot."""
    return (
        rate_axis(alt.X, "nonreturn", "non-return rate (share of inputs withheld)"),
        rate_axis(alt.Y, "error", "error rate (share of inputs answered wrongly)", domain=domain),
    )


def _lines(ordered: Sequence[Drawn], look: _Look, domain: tuple[float, float], styled: Sequence[str]) -> list[Any]:
    if len(styled) < len(ordered):
        others = len(ordered) - len(styled)
        return lines_of_many(styled, others, curve_axes(domain), "right", alt.Order("nonreturn:Q"))
    kinds = reference_names(ordered[0].name) if look.references else ()
    names = [one.name for one in ordered]
    corner: Corner = "right" if look.labels is None and len(names) > MOST_BANDS else "top-right"
    channels = line_channels(names, corner=corner, references=kinds, labels=look.labels)
    axes = curve_axes(domain)
    curves = Plot().mark_line(interpolate="linear", clip=True).encode(*axes, *channels, order=alt.Order("nonreturn:Q"))
    if not look.references:
        return [curves]
    lines = zip(kinds, (ordered[0].curve.random(), ordered[0].curve.oracle()), strict=True)
    table = pl.concat(
        [pl.DataFrame({"nonreturn": x, "error": y}).with_columns(system=pl.lit(name)) for name, (x, y) in lines]
    )
    return [Plot(inline(table)).mark_line().encode(*axes, *channels), curves]


def band_layer(names: list[str], rows: pl.DataFrame) -> Any:
    """The bands in the colours of their lines; these stand in the data, since a scale would take the legend away."""
    colour = pl.col("system").replace_strict(names, _colours(len(names))).alias("colour")
    area = Plot(inline(rows.with_columns(colour))).mark_area(opacity=0.16, clip=True)
    fill = alt.Fill("colour:N", scale=None)
    return area.encode(
        x=alt.X("nonreturn:Q"), y=alt.Y("low:Q"), y2=alt.Y2("high:Q"), detail=alt.Detail("system:N"), fill=fill
    )


def region_layer(region: tuple[float, float] | None, domain: tuple[float, float]) -> list[Any]:
    """The shaded strip of the non-return rates that matter."""
    if region is None:
        return []
    if not 0 <= region[0] <= region[1] <= 1:
        raise UsageError(
            f"a region of non-return rates runs from low to high within [0, 1]; got {region[0]:g} to {region[1]:g}"
        )
    strip = pl.DataFrame({"start": [region[0]], "stop": [region[1]], "bottom": [domain[0]], "top": [domain[1]]})
    shade = Plot(inline(strip)).mark_rect(color="#f0ead6")
    return [shade.encode(x=alt.X("start:Q"), x2=alt.X2("stop:Q"), y=alt.Y("bottom:Q"), y2=alt.Y2("top:Q"))]


def cutoff_layer(evaluations: Sequence[Drawn]) -> list[Any]:
    """A dot at each cutoff of the curves that have few: the line between two is reached by chance alone."""
    rows = [
        {"nonreturn": float(x), "error": float(y), "colour": colour}
        for one, colour in zip(evaluations, _colours(len(evaluations)), strict=True)
        if words.has_few_cutoffs(one.curve)
        for x, y in zip(one.curve.nonreturn, one.curve.error, strict=True)
    ]
    if not rows:
        return []
    dots = Plot(inline(pl.DataFrame(rows))).mark_point(filled=True, size=34, opacity=1)
    return [dots.encode(x=alt.X("nonreturn:Q"), y=alt.Y("error:Q"), color=alt.Color("colour:N", scale=None))]


def start_layer(evaluations: Sequence[Drawn], *, intervals: bool) -> list[Any]:
    """Open circles where curves start that do not start at 0, with the intervals of the error rate there."""
    rows = []
    for one, colour in zip(evaluations, _colours(len(evaluations)), strict=True):
        error = float(one.curve.error[0])
        known = one.figures.get("forced_error") if isinstance(one, Evaluation) else None
        low, high = (error, error) if known is None or math.isnan(known.low) else (known.low, known.high)
        if one.curve.floor > 0:
            ends = {"start_low": low, "start_high": high}
            rows.append({"nonreturn": one.curve.floor, "error": error, **ends, "colour": colour})
    if not rows:
        return []
    base = Plot(inline(pl.DataFrame(rows, infer_schema_length=None)))
    marks = base.mark_point(**_HOLLOW, size=50).encode(x=alt.X("nonreturn:Q"), y=alt.Y("error:Q"))
    colours = alt.Color("colour:N", scale=None)
    bars = base.mark_rule(strokeWidth=1.4, clip=True)
    bars = bars.encode(x=alt.X("nonreturn:Q"), y=alt.Y("start_low:Q"), y2=alt.Y2("start_high:Q"), color=colours)
    return [bars, marks] if intervals else [marks]


def _colours(size: int) -> list[str]:
    return [style_of(place).colour for place in range(size)]


def promised(choices: Sequence[Choice]) -> list[tuple[Limited, float]]:
    """What is promised at chosen thresholds: of which rate, and the bound."""
    return list(dict.fromkeys((one.guarantee.of, one.guarantee.bound) for one in choices if one.guarantee is not None))


def marks_of(choices: Sequence[Choice]) -> list[tuple[float, float, str]]:
    """Where chosen thresholds lie on the plot, and what is written beside them."""
    return [(one.nonreturn, one.error, words.choice_text(one)) for one in choices]


def mark_layers(
    promises: Sequence[tuple[Limited, float]],
    points: Sequence[tuple[float, float, str]],
    domain: tuple[float, float],
    crossings: Sequence[Crossing] = (),
) -> list[Any]:
    """A thin line at each promised bound, a cross where the better system changes, and labelled operating points.

    Errors that are a share of the answers returned lie on a line that falls to 0 where nothing is returned.
    """
    layers = []
    for of, bound in promises:
        text = f"promised: {percent(bound)}" + (" of the answers returned" if of == "risk" else "")
        line = {
            "error": [(0.0, bound), (1.0, bound)],
            "risk": [(0.0, bound), (1.0, 0.0)],
            "nonreturn": [(bound, domain[0]), (bound, domain[1])],
        }[of]
        rule = Plot(inline(pl.DataFrame(line, schema=["nonreturn", "error"], orient="row")))
        low = of == "error" and bound < LOW * domain[1]  # on the left curves would run through it
        label = {"error": line[low], "risk": (1.0, 0.42 * bound), "nonreturn": (bound, 0.97 * domain[1])}[of]
        place = Plot(inline(pl.DataFrame([(*label, text)], schema=["nonreturn", "error", "promise"], orient="row")))
        side: dict[str, Any] = {"align": "right", "dx": -4} if low or of == "risk" else {"align": "left", "dx": 4}
        words_of = place.mark_text(baseline="bottom", dy=-3, fontSize=12, color="#444444", **side)
        layers += [
            rule.mark_line(color="#444444", strokeWidth=1, strokeDash=[5, 3], clip=True).encode(
                x=alt.X("nonreturn:Q"), y=alt.Y("error:Q")
            ),
            words_of.encode(x=alt.X("nonreturn:Q"), y=alt.Y("error:Q"), text=alt.Text("promise:N")),
        ]
    if crossings:
        crossed = inline(pl.DataFrame([{"crossing": one.x, "error": one.y} for one in crossings]))
        cross: dict[str, Any] = {"shape": "cross", "filled": True, "angle": 45, "size": 110, "color": "#111111"}
        layers.append(Plot(crossed).mark_point(**cross, opacity=1).encode(x=alt.X("crossing:Q"), y=alt.Y("error:Q")))
    marks = pl.DataFrame(points, schema=MARKS, orient="row")
    return [*layers, *placed_labels(marks, domain, shift=(26.0, 44.0 if promises else 26.0))]


def _hover_rows(evaluation: Drawn) -> pl.DataFrame:
    rows = printed_frame(evaluation.curve, evenly(evaluation.curve.frame(points=2000), 160))
    total = count(evaluation.curve.sweep.total)
    texts: Texts = {
        "returned if": ("threshold", cutoff),
        "non-return rate": ("nonreturn", percent),
        "error rate": ("error", percent),
        "returned": ("returned", lambda n: f"{count(n)} of {total}"),
        "of these wrong": ("wrong_returned", count),
    }
    return tooltip_rows(rows, ["nonreturn", "error", "system"], texts)


def tooltip_rows(rows: pl.DataFrame, kept: list[str], texts: Texts) -> pl.DataFrame:
    """Rows for tooltips: some columns as they are, and texts by name, each with the column that it writes."""
    columns = {name: pl.Series(map(write, rows[field]), dtype=pl.String) for name, (field, write) in texts.items()}
    return rows.select(kept).with_columns(**columns)


TINTS = {"a": "#cfe3f1", "b": "#f8dcc4"}
"""Ground where one system is shown better; a label says which, so that grey print reads too."""

POINTS = "datum.value == 0 ? '0' : format(datum.value * 100, '+.2~f')"

WIDE_ENOUGH = 0.1
"""Share of the axis from which a label fits over an interval."""


def difference_chart(pair: PairComparison) -> Any:
    """Error rate of `a` less that of `b` at every non-return rate: below zero `a` errs less.

    The band holds over all non-return rates (and all pairs compared) at once; where it leaves zero the ground is
    tinted and named after the better system. Diamonds mark where the curves cross.
    """
    table, band = pair.frame(), pair.band
    low, high = min(float(band.low.min()), 0.0), max(float(band.high.max()), 0.0)
    room = 0.2 * max(high - low, 0.001)  # for a name on the far side of zero
    domain = min(low - room / 4, -room), max(high + room / 4, room)
    (ground, labels), crossed = _ground(pair, domain), _crossing_layers(pair)
    axes = (
        rate_axis(alt.X, "nonreturn", "non-return rate (share of inputs withheld)"),
        rate_axis(alt.Y, "difference", "difference in error rate (points)", domain=domain, labelExpr=POINTS),
    )
    zero = Plot(inline(pl.DataFrame({"difference": [0.0]}))).mark_rule(color="black", strokeWidth=1)
    layers = [
        *ground,
        Plot().mark_area(opacity=0.25, color="#444444").encode(axes[0], y=alt.Y("low:Q"), y2=alt.Y2("high:Q")),
        zero.encode(y=alt.Y("difference:Q")),
        Plot().mark_line(color="black", strokeWidth=2.4).encode(*axes),
        *crossed,
        *labels,
        hover_layer(_difference_tooltips(pair), "nonreturn", "difference"),
    ]
    parts = [
        f"{pair.a if part.better == 'a' else pair.b} makes significantly fewer errors {span(part.start, part.stop)}"
        for part in pair.intervals
    ]
    crossings = [percent(one.x) for one in pair.crossings if one.reachable][:5]
    cross = f" The curves cross at {', '.join(crossings)}." if crossings else ""
    return finished(
        alt.layer(*layers, width=WIDTH, height=HEIGHT),
        title=verdicts.pair_title(pair),
        subtitle=[
            f"n = {pair.n:,} inputs, {'paired by input' if pair.paired else 'unpaired'}",
            f"{percent(pair.overall.level)} band for all rates at once",
            f"above zero: {_short_name(pair, 'a')} makes more errors",
            "tinted: the band leaves zero",
            *(["diamonds: the curves cross"] if crossed else []),
        ],
        description=f"Error rate of {pair.a} less that of {pair.b} against non-return rate: "
        f"{'; '.join(parts) or 'the band holds zero everywhere'}.{cross}",
        table=table,
    )


def _ground(pair: PairComparison, domain: tuple[float, float]) -> tuple[list[Any], list[Any]]:
    """Tints where the band leaves zero, and the better system's name over each wide enough, away from the curve."""
    if not pair.intervals:
        return [], []
    x, edge = pair.band.x, 0.05 * (domain[1] - domain[0])
    half = float(x[1] - x[0]) / 2
    tinted = []
    for part in pair.intervals:
        ends = {"start": max(part.start - half, x[0]), "stop": min(part.stop + half, x[-1])}
        tinted.append({**ends, "bottom": domain[0], "top": domain[1], "better": part.better})
    tint = alt.Color("better:N", scale=alt.Scale(domain=list(TINTS), range=list(TINTS.values())), legend=None)
    rectangles = Plot(inline(pl.DataFrame(tinted))).mark_rect()
    ground = rectangles.encode(
        x=alt.X("start:Q"), x2=alt.X2("stop:Q"), y=alt.Y("bottom:Q"), y2=alt.Y2("top:Q"), color=tint
    )
    heights = {"a": domain[1] - edge, "b": domain[0] + edge}
    named = [{"nonreturn": at, "difference": heights[better], "text": text} for better, at, text in _ground_names(pair)]
    if not named:
        return [ground], []
    text = Plot(inline(pl.DataFrame(named))).mark_text(fontSize=12, fontWeight=600, color="#222222")
    return [ground], [text.encode(x=alt.X("nonreturn:Q"), y=alt.Y("difference:Q"), text=alt.Text("text:N"))]


def _ground_names(pair: PairComparison) -> list[tuple[Side, float, str]]:
    """Which system is better over the widest tints, where that stands, and in which words; none over another's."""
    names: list[tuple[Side, float, str]] = []
    for part in sorted(pair.intervals, key=lambda one: one.start - one.stop):
        text = f"{_short_name(pair, part.better)} better"
        half = LETTER * len(text) / 2 / plot_size()[0]
        at = min(max((part.start + part.stop) / 2, half), 1 - half)
        free = all(abs(at - other) >= 2 * half for better, other, _ in names if better == part.better)
        if part.stop - part.start >= WIDE_ENOUGH and free:
            names.append((part.better, at, text))
    return names


def _crossing_layers(pair: PairComparison) -> list[Any]:
    crossings = [one for one in pair.crossings if one.reachable]
    if not crossings:
        return []
    rows = [{"nonreturn": one.x, "low_x": one.low, "high_x": one.high, "difference": 0.0} for one in crossings]
    base = Plot(inline(pl.DataFrame(rows)))
    return [
        base.mark_rule(strokeWidth=3, color="#666666").encode(
            x=alt.X("low_x:Q"), x2=alt.X2("high_x:Q"), y=alt.Y("difference:Q")
        ),
        base.mark_point(**DIAMOND).encode(x=alt.X("nonreturn:Q"), y=alt.Y("difference:Q")),
    ]


def _difference_tooltips(pair: PairComparison) -> pl.DataFrame:
    rows = evenly(pair.frame(), 120)
    first, second = (curve.error_at(rows["nonreturn"].to_numpy()) for curve in pair.curves)
    return rows.select("nonreturn", "difference").with_columns(
        pl.Series("non-return rate", [percent(x) for x in rows["nonreturn"]]),
        pl.Series(f"errors of {pair.a}", [percent(rate) for rate in first]),
        pl.Series(f"errors of {pair.b}", [percent(rate) for rate in second]),
        pl.Series(
            "difference with band (points)",
            [with_interval(*row[3:], write=lambda rate: f"{100 * rate:+.2f}") for row in rows.iter_rows()],
        ),
    )


def _short_name(pair: PairComparison, side: Side) -> str:
    """The name of a side as a short label, never that of the other."""
    return shorten((pair.a, pair.b), 22)[pair.a if side == "a" else pair.b]


def cost_path_chart(choice: Choice, *, most: int | None = None) -> Any:
    """Best threshold, the rates it gives and the expected cost for every cost ratio, the chosen ratio marked.

    With `most` so many thresholds are drawn at most, those of evenly spaced ratios.
    """
    drawn = choice
    if most is not None and len(choice.path) > most:
        # the stretches in which evenly spaced ratios lie, each reaching to the next, so that no gap is left
        spaced = [place / (most - 1) for place in range(most)]
        kept = [part for part in choice.path if any(part.ratio_from <= ratio <= part.ratio_to for ratio in spaced)]
        ends = [*(part.ratio_to for part in kept[1:]), 0.0]
        path = tuple(replace(part, ratio_from=end) for part, end in zip(kept, ends, strict=True))
        drawn = replace(choice, path=path)
    table = cost_table(drawn)
    panels = (_threshold_panel(drawn), _rates_panel(drawn, table), _cost_panel(drawn, table))
    best = f"the best threshold is {choice.printed_threshold}"
    advice = "nothing should be returned" if math.isnan(choice.threshold) else best
    title = f"{choice.system}: the best threshold for every cost ratio"
    if choice.cost_ratio is not None:
        title = f"{choice.system}: at a cost ratio of {choice.cost_ratio:g} {advice}"
    cheapest, dearest = choice.path[-1], choice.path[0]
    chosen = "" if choice.cost is None else f" Chosen: {advice}, with a cost of {choice.cost:.4g} per input."
    return finished(
        alt.vconcat(*panels, spacing=14).resolve_scale(
            color="independent", strokeDash="independent", strokeWidth="independent"
        ),
        title=title,
        subtitle=[
            f"n = {count(choice.curve.sweep.n)} inputs",
            f"{len(choice.path)} thresholds are best for some ratio; no other ever is",
            *([] if drawn is choice else [f"{len(drawn.path)} of them are drawn"]),
        ],
        description=f"Best threshold of {choice.system} by cost ratio: when non-returns are nearly free "
        f"{percent(cheapest.nonreturn)} is withheld, when they cost almost as much as errors "
        f"{percent(dearest.nonreturn)}.{chosen}",
        table=table,
    )


def cost_table(choice: Choice) -> pl.DataFrame:
    """Both ends of every stretch of the path, with the expected cost there, in rising cost ratio.

    Thresholds are as printed.
    """
    rows = [
        {
            "ratio": ratio,
            "threshold": part.short_threshold,
            "nonreturn": part.nonreturn,
            "error": part.error,
            "cost": part.error + ratio * part.nonreturn,
        }
        for part in reversed(choice.path)
        for ratio in (part.ratio_from, part.ratio_to)
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


def _ratio_axis(*, last: bool) -> Any:
    return alt.X(
        "ratio:Q",
        title=RATIO if last else None,
        scale=alt.Scale(domain=[0, 1], nice=False),
        axis=alt.Axis(format=".1f", tickCount=10, labels=last, ticks=last),
    )


def _threshold_panel(choice: Choice) -> Any:
    scale = alt.Scale(zero=False, nice=True)
    up = alt.Y("threshold:Q", title="best threshold", scale=scale, axis=alt.Axis(tickCount=4))
    ends = [(ratio, part.threshold) for part in reversed(choice.path) for ratio in (part.ratio_from, part.ratio_to)]
    exact = inline(pl.DataFrame(ends, schema={"ratio": pl.Float64, "threshold": pl.Float64}, orient="row"))
    line = Plot(exact).mark_line(color="black", strokeWidth=2.2)
    stretches = [
        {
            "ratio": part.ratio_from,
            "ratio_to": part.ratio_to,
            "threshold": part.threshold,
            "cutoff": cutoff(part.short_threshold),
            "span": f"{part.ratio_from:.3g} to {part.ratio_to:.3g}",
            "rates": f"{percent(part.nonreturn)}, {percent(part.error)}",
        }
        for part in reversed(choice.path)
    ]
    titles = {"cutoff": "return if", "span": "best for cost ratios", "rates": "non-return, error"}
    tooltip = [alt.Tooltip(f"{field}:N", title=title) for field, title in titles.items()]
    reach = Plot(inline(pl.DataFrame(stretches, infer_schema_length=None))).mark_rule(opacity=0, strokeWidth=12)
    hover = reach.encode(x=alt.X("ratio:Q"), x2=alt.X2("ratio_to:Q"), y=alt.Y("threshold:Q"), tooltip=tooltip)
    lines = line.encode(_ratio_axis(last=False), up, order=alt.Order("ratio:Q"))
    return _panel(choice, [lines, hover], {"threshold": [choice.threshold]})


def _rates_panel(choice: Choice, table: pl.DataFrame) -> Any:
    names = {"non-return rate": "nonreturn", "error rate": "error"}
    rows = pl.concat(
        [table.select("ratio", rate=column).with_columns(which=pl.lit(name)) for name, column in names.items()]
    )
    axes = (_ratio_axis(last=False), rate_axis(alt.Y, "rate", "rates it gives", tickCount=4))
    channels = line_channels(["error rate", "non-return rate"], field="which", corner="top-right")
    lines = Plot(inline(rows)).mark_line().encode(*axes, *channels, order=alt.Order("ratio:Q"))
    return _panel(choice, [lines], {"rate": [choice.nonreturn, choice.error]})


def _cost_panel(choice: Choice, table: pl.DataFrame) -> Any:
    floor, forced = choice.curve.floor, float(choice.curve.error[0])
    lines = {"best threshold": table.select("ratio", "cost")}
    lines["return everything"] = pl.DataFrame({"ratio": [0.0, 1.0], "cost": [forced, forced + floor]})
    lines["return nothing"] = pl.DataFrame({"ratio": [0.0, 1.0], "cost": [0.0, 1.0]})
    rows = pl.concat([part.with_columns(which=pl.lit(name)) for name, part in lines.items()])
    domain = headroom(1.25 * (forced + floor))
    up = alt.Y(
        "cost:Q", title="cost per input", scale=alt.Scale(domain=list(domain), nice=False), axis=alt.Axis(tickCount=4)
    )
    channels = line_channels(list(lines), field="which", corner="bottom-right")
    drawn = Plot(inline(rows)).mark_line(clip=True).encode(_ratio_axis(last=True), up, *channels)
    return _panel(choice, [drawn], {"cost": [choice.cost]})


def _panel(choice: Choice, layers: list[Any], marked: dict[str, list[float | None]]) -> Any:
    """The layers and, where the choice was by cost, a line at its ratio with a diamond at each marked value."""
    for field, values in marked.items() if choice.cost_ratio is not None else ():
        for value in values:
            base = Plot(inline(pl.DataFrame({"ratio": [choice.cost_ratio], field: [value]})))
            rule = base.mark_rule(color="#555555", strokeDash=[4, 3]).encode(x=alt.X("ratio:Q"))
            dot = base.mark_point(**DIAMOND).encode(x=alt.X("ratio:Q"), y=alt.Y(field, type="quantitative"))
            layers.append(alt.layer(rule, dot))
    return alt.layer(*layers, width=WIDTH, height=PANEL)
