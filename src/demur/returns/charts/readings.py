"""Other readings of the same sweep: missed chances, selective risk, ROC, DET and reliability."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any, Literal, Protocol

import numpy as np
import polars as pl
from scipy.special import ndtri

from demur.core.show.charts import (
    HEIGHT,
    WIDTH,
    Corner,
    Plot,
    alt,
    finished,
    free_corner,
    headroom,
    hover_layer,
    inline,
    legend_in,
    line_channels,
    lines_of_many,
    placed_labels,
    rate_axis,
    style_of,
)
from demur.core.show.html import evenly
from demur.core.show.numbers import count, cutoff, inputs, number, p_value, percent, shorten
from demur.core.stats.calibration import Reliability
from demur.core.stats.intervals import Figure
from demur.core.stats.sweep import ratio
from demur.errors import UsageError
from demur.returns.charts.comparison import coloured_systems
from demur.returns.charts.error_return import (
    MANY,
    MOST_STYLED,
    Texts,
    baseline_first,
    lowest_curves,
    tooltip_rows,
)
from demur.returns.comparison.compare import Comparison
from demur.returns.curves import AXES, Curve, curve
from demur.returns.evaluate import Evaluation
from demur.returns.measures import AUROC, ErrorAtNonreturn
from demur.returns.recalibration import Calibration, RecalibratedLog
from demur.returns.threshold import printed_frame

CAUTION = "Says nothing of the error rate: errors spread evenly give the same curve at 10 % or 90 % error."
"""Artstein (2011), section 2, on ROC and DET curves."""

SQUARE = 400
MOST_RATES = 5
"""Systems up to which a subtitle names the error rate of each."""

POINTS, MOST_POINTS = 1000, 2500
"""Points of a line: about as many as asked for, and never more than the second number."""
BETWEEN = np.unique(np.concatenate([np.arange(150) / 150, np.geomspace(1e-4, 0.05, 50)]))
"""Coverages at which the risk between two cutoffs is drawn: most where few answers are returned."""
LEAST_COVERAGE = 0.01
"""Below this coverage a selective risk rests on so few answers that it does not set the axis."""

RATE_NAMES = {
    "nonreturn": "non-return rate",
    "rate": "share of inputs",
    "coverage": "share returned",
    "risk": "selective risk",
    "errors_returned": "errors returned",
    "right_returned": "right answers returned",
    "right_withheld": "right answers withheld",
}
"""What tooltips call the rates."""

MANY_COMPARED = "baseline in black, the first by rank named, others pale grey"
"""What a figure of many compared systems says of its lines."""

DEVIATE_TICKS = (0.001, 0.005, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.98, 0.995, 0.999)


def missed_chance_chart(evaluation: Evaluation) -> Any:
    """Errors and missed chances of one system against the non-return rate, with the point where they are equal."""
    frame = printed_frame(evaluation.curve, evaluation.curve.frame(points=2000))
    parts = {"error rate": "error", "missed-chance rate": "missed_chance"}
    table = pl.concat(
        [
            frame.select("threshold", "nonreturn", rate=column).with_columns(curve=pl.lit(name))
            for name, column in parts.items()
        ]
    )
    domain = headroom(float(table["rate"].max()))  # type: ignore[arg-type]
    x, rate = evaluation.curve.even_point()
    even = f"equal at {percent(x)} non-return: {percent(rate)} each"
    lines = Plot().mark_line()
    axes = (
        rate_axis(alt.X, "nonreturn", "non-return rate (share of inputs withheld)"),
        rate_axis(alt.Y, "rate", "share of all inputs", domain=domain),
    )
    mark = pl.DataFrame({"x": [x], "y": [rate], "text": [f"{percent(rate)} each"]})
    layers = [
        lines.encode(*axes, *line_channels(list(parts), field="curve", corner="top")),
        *placed_labels(mark, domain, shift=(0.0, 34.0), align="center"),
        hover_layer(_tooltip_rows(table, ["nonreturn", "rate"], "curve"), "nonreturn", "rate"),
    ]
    final = percent(float(evaluation.curve.missed_chance[-1]))
    return finished(
        alt.layer(*layers, width=WIDTH, height=HEIGHT),
        title=_missed_title(evaluation),
        subtitle=[inputs([evaluation.n]), "missed chance: would have been right, but is withheld"],
        description=f"As {evaluation.name} withholds more, its error rate falls from "
        f"{percent(float(evaluation.curve.error[0]))} to 0 and its missed chances rise to {final}; they are {even}.",
        table=table,
    )


def _missed_title(evaluation: Evaluation) -> str:
    """What withholding at the operating point avoids and what it misses."""
    curve, measure = evaluation.curve, evaluation.measures.get("error_at_nonreturn", ErrorAtNonreturn())
    at = max(float(getattr(measure, "x", 0.2)), curve.floor)
    avoided = max(float(curve.error[0] - curve.error_at(at)), 0.0)
    missed = max(at - curve.floor - avoided, 0.0)  # what is withheld is an error avoided or a right answer missed
    gain = f"avoids errors on {percent(avoided)} and misses right answers on {percent(missed)}"
    return f"{evaluation.name}: withholding {percent(at)} of the inputs {gain}"


def _baseline(compared: Comparison | None) -> str | None:
    return None if compared is None else compared.leaderboard.baseline


def _in_colour(ordered: Sequence[_Calibrated], compared: Comparison | None) -> tuple[list[str], str]:
    """Those of many systems that are in colour, the others being grey, and what says so; none where all are."""
    curves = [one for one in ordered if isinstance(one, Evaluation)]
    if len(curves) <= MOST_STYLED:
        return [], ""
    if compared is None:
        return [one.name for one in lowest_curves(curves)], MANY
    names = [one.name for one in curves]
    return [name for name in coloured_systems(compared) if name in names], MANY_COMPARED


def risk_coverage_chart(evaluations: Sequence[Evaluation], *, compared: Comparison | None = None) -> Any:
    """Selective risk (wrong / returned) against coverage (returned / all) of one or more systems.

    Between two cutoffs it is the expected risk of returning part of the answers of one confidence, at random. Of many
    `compared` systems the baseline and the first by rank are in colour.
    """
    ordered = baseline_first(evaluations, _baseline(compared))
    table = _curves(ordered, "risk_coverage")
    shown = table.filter(pl.col("coverage") >= LEAST_COVERAGE)["risk"]
    domain = headroom(float(shown.max() or 1.0))  # type: ignore[arg-type]
    cut = float(table["risk"].max() or 0.0) > domain[1]  # type: ignore[arg-type]
    off = [f"coverage under {percent(LEAST_COVERAGE)} may run off the top"] if cut else []
    full = [f"{one.name} {percent(float(ratio(one.curve.error[0], 1 - one.curve.floor)))}" for one in ordered]
    return _curve_figure(
        table,
        [one.name for one in ordered],
        axes=(
            rate_axis(alt.X, "coverage", "coverage (share of inputs returned)"),
            rate_axis(alt.Y, "risk", "selective risk (share of returned answers that are wrong)", domain=domain),
        ),
        corner="bottom-right",
        size=(WIDTH, HEIGHT),
        title=f"{_subject(ordered)}: the share of wrong answers among those returned",
        subtitle=[inputs([one.n for one in ordered]), *off],
        description=f"Selective risk against coverage, lower is better. When all is returned: {'; '.join(full)}.",
        coloured=_in_colour(ordered, compared),
    )


def roc_chart(evaluations: Sequence[Evaluation], *, compared: Comparison | None = None) -> Any:
    """ROC of the accept decision: share of right answers returned against share of errors returned."""
    ordered = baseline_first(evaluations, _baseline(compared))
    known = [(area, one.name) for one, area in zip(ordered, _areas(ordered), strict=True) if not np.isnan(area)]
    areas = _subject(ordered) + (f", area {number(known[0][0])}" if known else "")
    if len(ordered) > 1 and known:
        least, most = min(known, key=itemgetter(0)), max(known, key=itemgetter(0))
        areas = f"areas from {number(least[0])} ({least[1]}) to {number(most[0])} ({most[1]})"
    return _decision_figure(
        ordered,
        _curves(ordered, "roc"),
        axes=(
            rate_axis(alt.X, "errors_returned", "errors returned (share of all errors)"),
            rate_axis(alt.Y, "right_returned", "right answers returned (share of all right)"),
        ),
        chance=((0.0, 1.0), (0.0, 1.0)),
        corner="bottom-right",
        title=f"ROC of returning an answer: {areas}",
        better="ROC of the accept decision, higher is better.",
        coloured=_in_colour(ordered, compared),
    )


def det_chart(evaluations: Sequence[Evaluation], *, compared: Comparison | None = None) -> Any:
    """DET of the accept decision: right answers withheld against errors returned, on normal-deviate axes."""
    ordered = baseline_first(evaluations, _baseline(compared))
    frame = _curves(ordered, "det")
    counts = [max(1.0, min(float(one.curve.error[0]), float(one.curve.accuracy[0])) * one.n) for one in ordered]
    reach = float(np.clip(1 / max(counts), 0.0005, 0.05))  # the rate of about one answer is the smallest worth showing
    low, high = float(ndtri(reach)), float(ndtri(1 - reach))
    deviates = [
        pl.Series(f"{column}_deviate", ndtri(np.clip(frame[column].to_numpy(), reach / 2, 1 - reach / 2)))
        for column in AXES["det"]
    ]
    return _decision_figure(
        ordered,
        frame.with_columns(deviates),
        axes=(
            _deviate_axis(alt.X, "errors_returned", "errors returned (share of all errors)", (low, high)),
            _deviate_axis(alt.Y, "right_withheld", "right answers withheld (share of all right)", (low, high)),
        ),
        chance=((low, high), (high, low)),
        corner="top-right",
        title=f"DET of returning an answer: {_subject(ordered)}",
        better="Detection error tradeoff of the accept decision on normal-deviate axes, nearer to the lower left "
        "is better.",
        coloured=_in_colour(ordered, compared),
    )


def _decision_figure(
    ordered: Sequence[Evaluation],
    table: pl.DataFrame,
    *,
    axes: tuple[Any, Any],
    chance: tuple[tuple[float, float], tuple[float, float]],
    better: str,
    **look: Any,
) -> Any:
    """ROC or DET with the line of chance and the caution that both need."""
    fields = [axis.to_dict(validate=False)["field"] for axis in axes]
    ends = inline(pl.DataFrame(dict(zip(fields, map(list, chance), strict=True))))
    line = Plot(ends).mark_line(color="#777777", strokeWidth=1, strokeDash=[3, 3])
    areas = dict(zip((one.name for one in ordered), _areas(ordered), strict=True))
    lost = [name for name, area in areas.items() if np.isnan(area)]
    undefined = [f"undefined, since all answers are right or all are wrong: {', '.join(lost)}"] if lost else []
    texts = ", ".join(f"{name} {number(area)}" for name, area in areas.items())
    return _curve_figure(
        table,
        list(areas),
        axes=axes,
        size=(SQUARE, SQUARE),
        subtitle=[inputs([one.n for one in ordered]), *undefined, f"{CAUTION} {_full_errors(ordered)}."],
        description=f"{better} {CAUTION} {_full_errors(ordered)}. Area (AUROC): {texts}.",
        beneath=[line.encode(alt.X(fields[0], type="quantitative"), alt.Y(fields[1], type="quantitative"))],
        **look,
    )


def _full_errors(ordered: Sequence[Evaluation]) -> str:
    """The error rates that ROC and DET leave out; of many systems the least and the most."""
    rates = [(float(one.curve.error[0]), one.name) for one in ordered]
    begin = "Error rate when all is returned"
    if len(rates) > MOST_RATES:
        (least, first), (most, last) = min(rates), max(rates)
        return f"{begin}: from {percent(least)} ({first}) to {percent(most)} ({last})"
    return f"{begin}: {', '.join(f'{name} {percent(rate)}' for rate, name in rates)}"


def _areas(evaluations: Sequence[Evaluation]) -> list[float]:
    return [float(AUROC().finish(one.curve.sweep)) for one in evaluations]


def _subject(evaluations: Sequence[Evaluation]) -> str:
    return evaluations[0].name if len(evaluations) == 1 else f"{len(evaluations)} systems"


def bare_reading_chart(reading: Curve) -> Any:
    """One of the other curves alone, drawn as it is."""
    x, y = AXES[reading.kind]
    titles = {"nonreturn": "non-return rate", "missed_chance": "missed-chance rate", **RATE_NAMES}
    name = {"missed_chance": "Missed chances", "risk_coverage": "Selective risk over coverage"}.get(reading.kind)
    points = _points(reading)
    return _curve_figure(
        risks_between(points) if reading.kind == "risk_coverage" else points,
        [reading.name],
        axes=(rate_axis(alt.X, x, titles[x]), rate_axis(alt.Y, y, titles[y])),
        corner="top-right",
        size=(WIDTH, HEIGHT),
        title=f"{name or reading.kind.upper()} of {reading.name}",
        subtitle=[CAUTION] if name is None else [],
        description=f"{titles[y]} against {titles[x]} of {reading.name}.",
    )


def _curve_figure(
    table: pl.DataFrame,
    names: list[str],
    *,
    axes: tuple[Any, Any],
    corner: Corner,
    size: tuple[int, int],
    beneath: Sequence[Any] = (),
    coloured: tuple[Sequence[str], str] = ((), ""),
    subtitle: Sequence[str] = (),
    **about: Any,
) -> Any:
    """Lines of systems over two axes, with tooltips; `about` are title and description.

    Where some of many are `coloured`, the others are grey, as the words beside their names say.
    """
    order = alt.Order("place:Q")
    named, many = coloured
    if named:
        lines = lines_of_many(named, len(names) - len(named), axes, "right", order)
        subtitle = [*subtitle, many]
    else:
        channels = line_channels(names, corner=_free_corner(table, names, axes, corner, size))
        lines = [Plot().mark_line(clip=True).encode(*axes, *channels, order=order)]
    x, y = (axis.to_dict(validate=False)["field"] for axis in axes)
    inside = table.filter(pl.col(y).is_between(*axes[1].to_dict(validate=False)["scale"]["domain"]))
    rates = [name for name in table.columns if name not in ("system", "threshold", "place")]
    hover = hover_layer(_tooltip_rows(inside.filter(pl.col("threshold").is_not_null()), rates, "system"), x, y)
    return finished(
        alt.layer(*beneath, *lines, hover, width=size[0], height=size[1]), subtitle=subtitle, table=table, **about
    )


def _free_corner(
    table: pl.DataFrame, names: Sequence[str], axes: tuple[Any, Any], preferred: Corner, size: tuple[int, int]
) -> Corner:
    """Where the legend of these lines hides none of them."""
    declared = [axis.to_dict(validate=False) for axis in axes]
    ends = [axis["scale"]["domain"] for axis in declared]
    places = [
        ((pl.col(axis["field"]) - low) / (high - low)).clip(0, 1)
        for axis, (low, high) in zip(declared, ends, strict=True)
    ]
    lines = [
        (one[:, 0].to_numpy(), one[:, 1].to_numpy())
        for one in (part.select(places) for part in table.partition_by("system"))
    ]
    return free_corner(lines, names, preferred, size) if len(names) > 1 and lines else preferred


def _curves(evaluations: Sequence[Evaluation], kind: Literal["risk_coverage", "roc", "det"]) -> pl.DataFrame:
    frames = [(one.curve, _points(curve(one.curve.sweep, kind, name=one.name))) for one in evaluations]
    drawn = [printed_frame(own, frame) for own, frame in frames]
    return pl.concat([risks_between(frame) for frame in drawn] if kind == "risk_coverage" else drawn)


def _points(reading: Curve) -> pl.DataFrame:
    """The points where both axes are defined, thinned, with their place along the line."""
    x, y = AXES[reading.kind]
    known = np.isfinite(reading.x) & np.isfinite(reading.y)
    kept = replace(reading, x=reading.x[known], y=reading.y[known], threshold=reading.threshold[known])
    frame = evenly(kept.frame(points=POINTS), MOST_POINTS - BETWEEN.size).with_row_index("place")
    return frame.select("place", "system", "threshold", x, y)


def risks_between(cutoffs: pl.DataFrame) -> pl.DataFrame:
    """Selective risk at cutoffs, by falling coverage, and between them; points between cutoffs have no threshold.

    After a share c of the inputs with errors e, a share t of the next m inputs, w of them wrong, is returned with the
    expected risk (e + t w) / (c + t m): a hyperbola. Down to coverage 0 it is the risk of the most confident answers.
    """
    coverage, risk = cutoffs["coverage"].to_numpy(), cutoffs["risk"].to_numpy()
    if not coverage.size:
        return cutoffs
    inner = BETWEEN[(coverage[0] > BETWEEN) & ~np.isin(BETWEEN.round(9), coverage.round(9))]
    errors = np.interp(inner, np.append(0.0, coverage[::-1]), np.append(0.0, (coverage * risk)[::-1]))
    between = pl.DataFrame({"coverage": inner, "risk": np.where(inner > 0, ratio(errors, inner), risk[-1])})
    between = between.with_columns(system=pl.lit(cutoffs["system"][0]), threshold=pl.lit(None, pl.Float64))
    columns = ("system", "threshold", "coverage", "risk")
    line = pl.concat([cutoffs.select(columns), between.select(columns)]).sort("coverage", descending=True)
    return line.with_row_index("place").select("place", *columns)


def _tooltip_rows(table: pl.DataFrame, rates: list[str], group: str) -> pl.DataFrame:
    """Rows for tooltips: a few per line, with the cutoff in words and rates in percent."""
    parts = table.partition_by(group, maintain_order=True)
    few = pl.concat([evenly(part, 160) for part in parts]) if parts else table
    texts: Texts = {RATE_NAMES[name]: (name, percent) for name in rates if name in RATE_NAMES}
    return tooltip_rows(few, [*rates, group], {"returned if": ("threshold", cutoff), **texts})


def _deviate_axis(channel: type[Any], field: str, title: str, domain: tuple[float, float]) -> Any:
    inside = [float(ndtri(tick)) for tick in DEVIATE_TICKS if domain[0] <= ndtri(tick) <= domain[1]]
    label = "format(cumulativeNormal(datum.value), '.1~%')"
    return rate_axis(
        channel,
        f"{field}_deviate",
        title,
        domain=domain,
        values=inside,
        tickCount=len(inside),
        labelExpr=f"replace({label}, '%', ' %')",
        labelOverlap="greedy",
        labelSeparation=8,
    )


CLEAR = 0.8
"""Share of all that confidences are off by that has to lie on one side before a side is named."""


class _Calibrated(Protocol):
    """Whose confidences can be held against what came true; `figures` has the expected calibration error as `ece`."""

    @property
    def name(self) -> str: ...
    @property
    def n(self) -> int: ...
    @property
    def reliability(self) -> Reliability | None: ...
    @property
    def figures(self) -> Mapping[str, Figure]: ...


def recalibration_chart(result: Calibration | RecalibratedLog) -> Any:
    """Reliability of one system's confidences before and after they are mapped."""
    return reliability_chart(result.sides, title=result.title)


def reliability_chart(
    evaluations: Sequence[_Calibrated],
    *,
    what: str = "answers",
    title: str = "",
    compared: Comparison | None = None,
) -> Any:
    """Share right against mean confidence in each bin; on the diagonal confidences mean what they say.

    The area of a dot is the share of answers in its bin. Systems whose confidences are no probabilities are left out.
    Of one system consistency bars are drawn: where the shares right would lie, were the confidences right. Of many
    systems the baseline and the first by rank are in colour and have dots, or, where they were not `compared`, those of
    the lowest error-return curves.
    """
    if not evaluations:
        raise UsageError("a figure needs at least one evaluation; got none")
    kept = [one for one in evaluations if one.reliability is not None]
    kept.sort(key=lambda one: compared is not None and one.name != _baseline(compared))
    if not kept:
        raise UsageError("a reliability diagram needs confidences within [0, 1]; no system has them")
    table, names = reliability_table(kept, what), [one.name for one in kept]
    axes = (
        rate_axis(alt.X, "confidence", f"mean confidence of the {what} in a bin"),
        rate_axis(alt.Y, "right", "share of them that is right"),
    )
    left_out = [one.name for one in evaluations if one.reliability is None]
    coloured, many = _in_colour(kept, compared)
    title = title or f"Do the confidences of {len(kept)} systems mean what they say?"
    if len(kept) == 1:
        error, leaning = _ece(kept[0]), _leaning(kept[0])
        clear = leaning.startswith("confidences are")
        title = f"{names[0]}: {leaning}" if clear else f"{names[0]}: ECE {error}, {leaning}"
    leanings = (f"{one.name}: {_leaning(one)} (ECE {_ece(one)})" for one in kept)
    return finished(
        alt.layer(*_reliability_layers(table, names, axes, coloured), width=SQUARE, height=SQUARE),
        title=title,
        subtitle=[
            inputs([one.n for one in kept]) if what == "answers" else f"n = {count(sum(one.n for one in kept))} {what}",
            _ece_words(kept),
            *(calibration_words(one) for one in kept if _has_bars(kept)),
            *([many] if coloured else []),
            f"dot area: share of {what}",
            *(["bars: from the claim (dashed) to what holds"] if len(kept) == 1 else []),
            *(["grey: where it would lie in most logs, were the confidences right"] if _has_bars(kept) else []),
            *([f"no probabilities: {', '.join(left_out)}"] if left_out else []),
        ],
        description=f"Reliability diagram. {'; '.join(leanings)}.",
        table=table,
    )


def reliability_table(evaluations: Sequence[_Calibrated], what: str = "answers") -> pl.DataFrame:
    """One row per bin: its ends, mean confidence, share right, weight and share of the whole."""
    frames = []
    for one in evaluations:
        bins = one.reliability
        assert bins is not None
        columns = {"low": bins.low, "high": bins.high, "confidence": bins.confidence, "right": bins.accuracy}
        usual = {"usual_low": bins.usual_low, "usual_high": bins.usual_high}
        columns |= {name: ends for name, ends in usual.items() if ends is not None}
        frame = pl.DataFrame({**columns, "weight": bins.weight, "share": bins.weight / bins.weight.sum()})
        texts = [
            f"{count(weight)} {what} ({percent(share)})"
            for weight, share in zip(bins.weight, frame["share"], strict=True)
        ]
        frames.append(frame.select(pl.lit(one.name).alias("system"), pl.all(), pl.Series("answers", texts)))
    return pl.concat(frames)


def _has_bars(evaluations: Sequence[_Calibrated]) -> bool:
    bins = evaluations[0].reliability
    return len(evaluations) == 1 and bins is not None and bins.usual_low is not None


def calibration_words(evaluation: _Calibrated) -> str:
    """Spiegelhalter's test of calibration in a few words, where there is one."""
    test = getattr(evaluation, "calibration_test", None)
    if test is None or test.why is not None:
        return "no test of calibration"
    return f"calibration test (Spiegelhalter): z = {test.z:.3g}, {p_value(test.p)}"


def _reliability_layers(
    table: pl.DataFrame, names: list[str], axes: tuple[Any, Any], coloured: Sequence[str]
) -> list[Any]:
    """The diagonal, a line per system and dots; with one system also bars from each dot to the diagonal."""
    ends = inline(pl.DataFrame({"confidence": [0.0, 1.0], "right": [0.0, 1.0]}))
    diagonal = Plot(ends).mark_line(color="#777777", strokeWidth=1, strokeDash=[3, 3])
    layers = [diagonal.encode(x=alt.X("confidence:Q"), y=alt.Y("right:Q"))]
    if len(names) == 1 and "usual_low" in table.columns:
        usual = Plot(inline(table)).mark_rule(color="#BDBDBD", strokeWidth=9, opacity=0.6)
        layers.append(usual.encode(x=alt.X("confidence:Q"), y=alt.Y("usual_low:Q"), y2=alt.Y2("usual_high:Q")))
    if len(names) == 1:
        bars = Plot(inline(table)).mark_rule(color="#D55E00", strokeWidth=2)
        layers.append(bars.encode(x=alt.X("confidence:Q"), y=alt.Y("right:Q"), y2=alt.Y2("confidence:Q")))
    dots = Plot().mark_point(filled=True, shape="circle", opacity=0.75, stroke="white", strokeWidth=1)
    if coloured:
        layers += lines_of_many(coloured, len(names) - len(coloured), axes, "right", alt.Order("confidence:Q"))
        names, legend = [*coloured], None
        dots = dots.transform_filter({"field": "system", "oneOf": names})
    else:
        corner = _free_corner(table, names, axes, "top-left", (SQUARE, SQUARE))
        layers.append(Plot().mark_line(opacity=0.9).encode(*axes, *line_channels(names, corner=corner)))
        legend = legend_in(corner, shorten(names)) if len(names) > 1 else None
    fills = alt.Scale(domain=names, range=[style_of(place).colour for place in range(len(names))])
    dots = dots.encode(
        *axes,
        size=alt.Size("share:Q", scale=alt.Scale(domain=[0, 1], range=[18, 1000]), legend=None),
        fill=alt.Fill("system:O", sort=None, scale=fills, legend=legend),
        tooltip=[
            alt.Tooltip("system:N"),
            alt.Tooltip("answers:N"),
            alt.Tooltip("confidence:Q", title="mean confidence", format=".1%"),
            alt.Tooltip("right:Q", title="right", format=".1%"),
        ],
    )
    return [*layers, dots]


def _ece(evaluation: _Calibrated) -> str:
    figure = evaluation.figures.get("ece")
    if figure is None or not math.isfinite(figure.value):
        return "not computed" if figure is None else number(figure.value)
    return f"{figure.value:.4f}"


def _ece_words(evaluations: Sequence[_Calibrated]) -> str:
    """The ECE of one system, of each of a few, or of the best and the worst of many."""
    if len(evaluations) == 1:
        return f"ECE {_ece(evaluations[0])}"
    if len(evaluations) <= 4:
        return f"ECE {', '.join(f'{_ece(one)} ({one.name})' for one in evaluations)}"
    best, *_, worst = sorted(evaluations, key=lambda one: one.figures["ece"].value if "ece" in one.figures else 1.0)
    return f"ECE from {_ece(best)} ({best.name}) to {_ece(worst)} ({worst.name})"


def _leaning(evaluation: _Calibrated) -> str:
    """On which side the confidences err: one throughout, one below and the other above some confidence, or neither."""
    bins = evaluation.reliability
    assert bins is not None
    excess = (bins.confidence - bins.accuracy) * bins.weight
    over, off = bins.confidence > bins.accuracy, np.abs(excess)
    if not off.sum() > 0:
        return "confidences mean what they say"
    share, gap = off / off.sum(), float(excess.sum() / bins.weight.sum())
    if (share[over] if gap > 0 else share[~over]).sum() >= CLEAR:
        return f"confidences are on average {100 * abs(gap):.1f} points too {'high' if gap > 0 else 'low'}"
    sure_below = {
        edge: float(share[:edge][over[:edge]].sum() + share[edge:][~over[edge:]].sum()) for edge in range(1, over.size)
    }
    for first, second, fit in (
        ("surer than right", "less sure", sure_below),
        ("less sure than right", "surer", {edge: 1 - held for edge, held in sure_below.items()}),
    ):
        edge = max(fit, key=lambda one: fit[one], default=0)
        if edge and fit[edge] >= CLEAR:
            return f"{first} below a confidence of {float(bins.low[edge]):.2g}, {second} above"
    return "some confidences are too high, others too low"
