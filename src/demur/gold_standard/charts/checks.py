"""Charts of residuals, convergence and wizards, of cost functions (Paek 2001, figure 4), and of plans."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from demur.core.show.charts import (
    HEIGHT,
    WIDTH,
    LineStyle,
    Plot,
    alt,
    capital,
    either,
    extent,
    finished,
    inline,
    interval_words,
    name_axis,
    refuse_repeats,
    tidy,
)
from demur.core.show.numbers import count, middle_cut, p_value, short, shorten
from demur.core.show.numbers import percent as in_percent
from demur.errors import UsageError
from demur.gold_standard.charts.benchmark import (
    GOLDS,
    Quantity,
    Scheme,
    across,
    bands,
    bound_layers,
    height_of,
    horizontal_line,
    line_label,
    lone_dots,
    plain,
    row_colour,
    system_style,
    tooltip_layer,
)

MOST_NAMED = 4
"""Wizards who stand apart that a title names."""

PANEL, PANEL_GAP = 252, 30
"""Pixels across each of two panels side by side, and between them."""

POOLED, ALIKE, APART = "gold", "alike", "apart: "
"""What lines of wizards are called in the data; the last stands before the name of a wizard who stands apart."""

THIN = LineStyle("#8f8f8f", 1.0, (1, 0))


def gold_residual_chart(
    residuals: pl.DataFrame,
    *,
    x: str,
    percent: bool = False,
    x_percent: bool = False,
    level: float = 0.95,
    title: str | None = None,
) -> Any:
    """Mean residuals of trials near each other, a row of bars per performer; those off the fit are filled.

    Columns of `residuals`: `performer`, `x`, `residual`, the ends `low` and `high` of its interval (or of the range
    around 0 in which it should lie), and `n`. A residual is off the fit where 0 or it lies outside of the two.
    """
    table = tidy(residuals, {"performer": pl.String}, ("x", "residual", "low", "high", "n"))
    refuse_repeats(table, "performer", "x")
    measured, wanted = Quantity(x, x_percent), Quantity("residual", percent)
    inside = pl.col("low") <= pl.col("high")
    held = pl.lit(0.0).is_between("low", "high") & pl.col("residual").is_between("low", "high")
    label = [wanted.with_interval(*row) for row in table.select("residual", "low", "high").iter_rows()]
    marked = table.with_columns(off=inside & ~held, label=pl.Series(label))
    names = marked["performer"].unique(maintain_order=True).to_list()
    panels = [_residual_panel(marked, name, measured, wanted, last=name == names[-1]) for name in names]
    texts = []
    for name in names:
        part = marked.filter(pl.col("performer") == name)
        off = [measured.text(place) for place in part.filter("off")["x"]]
        where = f", at {', '.join(off)}" if off else ""
        texts.append(f"{name}: {len(off)} of {part.height} off the fit{where}")
    trials = float(marked["n"].fill_nan(0.0).sum())
    known = marked.filter(pl.col("low").is_finite()).height
    chance = [f"filled: off the fit, by chance about {(1 - level) * known:.2g} of {count(known)}"] if known else []
    return finished(
        alt.vconcat(*panels, spacing=10),
        title=title or _residual_title(marked),
        subtitle=[f"n = {count(trials)} trials", *interval_words(marked, "bars", level), *chance],
        description=f"Residuals against {x}. {'; '.join(texts)}.",
        table=marked,
    )


def _residual_panel(marked: pl.DataFrame, name: str, x: Quantity, y: Quantity, *, last: bool) -> Any:
    most = max(abs(end) for end in extent(marked, ("residual", "low", "high")))
    high = (-1.08 * most, 1.08 * most)
    hidden: dict[str, Any] = {} if last else {"labels": False, "ticks": False}
    below = x.axis(alt.X, "x", extent(marked, ("x",), air=0.03), title=x.name if last else "", **hidden)
    up = y.axis(alt.Y, "residual", high, tickCount=4)
    base = Plot(inline(marked.filter(pl.col("performer") == name)))
    ink = "datum.off", "#b3261e", "#777777"
    bar = base.mark_rule().encode(
        x=alt.X("x:Q"),
        y=alt.Y("low:Q"),
        y2=alt.Y2("high:Q"),
        color=either(alt.ColorValue, *ink),
        strokeWidth=either(alt.StrokeWidthValue, "datum.off", 3, 1.5),
    )
    dot = base.mark_point(shape="circle", size=55, strokeWidth=1.6, opacity=1).encode(
        below,
        up,
        stroke=either(alt.StrokeValue, *ink),
        fill=either(alt.FillValue, "datum.off", "#b3261e", "white"),
        tooltip=[alt.Tooltip("label:N", title="residual"), alt.Tooltip("x:Q", format=".3~g"), alt.Tooltip("n:Q")],
    )
    words = alt.TitleParams(middle_cut(name, 60), anchor="start", fontSize=12, fontWeight=500, offset=4, frame="group")
    zero = horizontal_line(0.0, color="#333333", strokeWidth=1)
    return alt.layer(zero, bar, dot, width=WIDTH, height=110, title=words)


def _residual_title(marked: pl.DataFrame) -> str:
    off = int(marked["off"].sum())
    if not marked["low"].is_finite().any():
        return "Residuals of the fits"
    if not off:
        return f"None of {count(marked.height)} mean residuals lies off the fit"
    worst = marked.group_by("performer", maintain_order=True).agg(pl.col("off").sum()).sort("off", descending=True)
    most = f", {worst['off'][0]} of them of {middle_cut(worst['performer'][0], 24)}" if worst.height > 1 else ""
    return f"{count(off)} of {count(marked.height)} mean residuals {'lies' if off == 1 else 'lie'} off the fit{most}"


def normality_chart(
    quantiles: pl.DataFrame, *, tests: Mapping[str, float], level: float = 0.95, title: str | None = None
) -> Any:
    """Quantiles of residuals against those of the normal distribution, a panel per performer, with a band for all.

    Columns of `quantiles`: `performer`, `expected`, `residual`, `low` and `high`. `tests` has the p-value of each
    performer.
    """
    table = tidy(quantiles, {"performer": pl.String}, ("expected", "residual", "low", "high")).with_columns(
        outside=(pl.col("residual") < pl.col("low")) | (pl.col("residual") > pl.col("high"))
    )
    names = table["performer"].unique(maintain_order=True).to_list()
    cut = shorten(names, 24)
    odd = [cut[name] for name in names if tests[name] < 1 - level]
    said = f"Residuals of {', '.join(odd)} are not normal" if odd else "No departure of residuals from normal is shown"
    return finished(
        alt.concat(*(_quantile_panel(table, name, cut[name], tests[name]) for name in names), columns=2, spacing=20),
        title=title or said,
        subtitle=[
            "line: normal residuals",
            f"shaded: holds all of them in {in_percent(level)} of samples, if they are normal",
        ],
        description=f"Q-Q plot of residuals. {'; '.join(f'{name}: {p_value(tests[name])}' for name in names)}.",
        table=table,
    )


def _quantile_panel(table: pl.DataFrame, name: str, label: str, p: float) -> Any:
    part = table.filter(pl.col("performer") == name)
    wide = extent(table, ("expected",), air=0.03)
    high = extent(table, ("residual", "low", "high"), air=0.03)
    across = Quantity("normal quantile").axis(alt.X, "expected", wide, tickCount=5)
    up = Quantity("residual").axis(alt.Y, "residual", high, tickCount=5)
    base = Plot(inline(part))
    ends = pl.DataFrame({"expected": wide, "residual": wide})
    words = alt.TitleParams(
        f"{label}, {p_value(p)}", anchor="start", fontSize=12, fontWeight=500, offset=4, frame="group"
    )
    dot = base.mark_point(shape="circle", size=14, strokeWidth=0, opacity=1)
    return alt.layer(
        base.mark_area(opacity=0.18, fill="#777777").encode(
            x=alt.X("expected:Q"), y=alt.Y("low:Q"), y2=alt.Y2("high:Q")
        ),
        Plot(inline(ends))
        .mark_line(color="#333333", strokeWidth=1, clip=True)
        .encode(x=alt.X("expected:Q"), y=alt.Y("residual:Q")),
        dot.encode(across, up, fill=either(alt.FillValue, "datum.outside", "#b3261e", "black")),
        width=PANEL - 10,
        height=190,
        title=words,
    )


def convergence_chart(
    steps: pl.DataFrame, *, percent: bool = False, tolerance: float | None = None, title: str | None = None
) -> Any:
    """How fits settle as subjects come in: distance to the data, and to the fit of one subject fewer.

    Columns of `steps`: `performer`, `subjects`, `to_data` and `to_previous` (null for the first), `role` ("gold" or
    "system") where gold standards shall look like themselves, and `collected_to_data` and `collected_to_previous`, the
    same in the order of collection, drawn thin. `tolerance` is the step under which a fit has settled.
    """
    kinds: dict[str, Any] = {name: pl.String for name in ("performer", "role") if name in {"performer", *steps.columns}}
    told = [name for name in ("collected_to_data", "collected_to_previous") if name in steps.columns]
    table = tidy(steps, kinds, ("subjects", "to_data", "to_previous", *told))
    came = bool(told) and bool(table["collected_to_data"].is_finite().any())
    refuse_repeats(table, "performer", "subjects")
    scheme = Scheme.of(table)
    distance = Quantity("distance", percent)
    channels = scheme.channels("top" if len(scheme.names) > 1 else None)
    previous, data = (("to_previous", *told[1:]), ("to_data", *told[:1])) if came else (("to_previous",), ("to_data",))
    high = (0.0, 1.08 * max(extent(table, previous, air=0.08)[1], tolerance or 0.0, 1e-9))
    panels = [
        _subjects_panel(
            table,
            field,
            distance.axis(alt.Y, field, domain, title=f"distance {title}"),
            channels,
            target,
            thin=f"collected_{field}" if came else None,
        )
        for field, title, domain, target in (
            ("to_data", "of fit from data", extent(table, data, air=0.08), None),
            ("to_previous", "from the fit before", high, tolerance),
        )
    ]
    limit = [] if tolerance is None else [f"dashed: {distance.difference(tolerance)}, under which a fit has settled"]
    rows = table.sort("subjects").group_by("performer", maintain_order=True).agg(pl.col("to_previous").last())
    steps_by_name = dict(rows.iter_rows())
    last = {name: steps_by_name[name] for name in table["performer"].unique(maintain_order=True)}
    moves = [f"{name}: the last subject moves the fit by {distance.difference(step)}" for name, step in last.items()]
    settled = "" if tolerance is None else f" A fit has settled under {distance.difference(tolerance)}."
    return finished(
        alt.hconcat(*panels, spacing=PANEL_GAP),
        title=title or _steps_title(table, last, tolerance),
        subtitle=[
            "averaged over random orders of subjects",
            *(["thin: in the order in which they came"] if came else []),
            *limit,
        ],
        description=f"Convergence of fits over subjects. {'; '.join(moves)}.{settled}",
        table=table,
    )


def _subjects_panel(
    table: pl.DataFrame,
    field: str,
    up: Any,
    channels: Sequence[Any],
    target: float | None,
    *,
    tooltips: Sequence[Any] = (),
    air: float = 0.02,
    dot: int = 22,
    lower: int = 80,
    thin: str | None = None,
) -> Any:
    """Lines over the number of subjects, with a dot for each number that was tried, and a dashed line at a target.

    `thin` is a further column, drawn as thin lines without dots.
    """
    wide = extent(table, ("subjects",), air=air)
    below = Quantity("subjects").axis(alt.X, "subjects", wide, format="d", tickMinStep=1)
    label = tooltips or [
        alt.Tooltip("performer:N"),
        alt.Tooltip("subjects:Q"),
        alt.Tooltip(f"{field}:Q", format=".3~g"),
    ]
    dashed: dict[str, Any] = {"color": "#333333", "strokeWidth": 1.2, "strokeDash": [5, 4]}
    base = Plot().transform_filter(f"isValid(datum.{field})")
    dots = base.mark_point(filled=True, size=dot, opacity=1)
    colour, order = channels[0], alt.Order("subjects:Q")
    further = Plot().mark_line(strokeWidth=1, opacity=0.8) if thin else None
    return alt.layer(
        *([further.encode(x=alt.X("subjects:Q"), y=alt.Y(f"{thin}:Q"), color=colour, order=order)] if further else []),
        *([] if target is None else [horizontal_line(target, **dashed)]),
        base.mark_line().encode(below, up, *channels, order=alt.Order("subjects:Q")),
        dots.encode(x=alt.X("subjects:Q"), y=alt.Y(f"{field}:Q"), color=channels[0], tooltip=label),
        width=PANEL,
        height=HEIGHT - lower,
    )


def _steps_title(table: pl.DataFrame, steps: dict[str, float], tolerance: float | None) -> str:
    most = max(table["subjects"].to_list())
    if tolerance is None:
        return f"Fits after each further subject, up to {count(most)}"
    cut = shorten(list(steps), 24)
    moving = [cut[name] for name, step in steps.items() if not step <= tolerance]
    if not moving:
        who, them = ("The fit has", "it") if len(steps) == 1 else (f"All {len(steps)} fits have", "them")
        return f"{who} settled: one more subject would hardly move {them}"
    who = ", ".join(moving) if len(moving) <= 3 else f"{len(moving)} of {len(steps)} fits"
    return f"Not settled yet, so that more subjects are needed: {who}"


def wizards_chart(
    curves: pl.DataFrame,
    gold: pl.DataFrame,
    *,
    x: str,
    y: str,
    upper: float | None = None,
    percent: bool = False,
    x_percent: bool = False,
    level: float = 0.95,
    title: str | None = None,
) -> Any:
    """A thin line for each wizard around the pooled gold standard; those that stand apart in colour.

    Columns of `curves`: `subject`, `x`, `y` and `apart` (whether the wizard stands apart from the others). Columns of
    `gold`: `x`, `y`, `low` and `high`.
    """
    each = tidy(curves, {"subject": pl.String, "apart": pl.Boolean}, ("x", "y"))
    refuse_repeats(each, "subject", "x")
    pooled = tidy(gold, {}, ("x", "y", "low", "high")).with_columns(subject=pl.lit(POOLED))
    measured, wanted = Quantity(x, x_percent), Quantity(y, percent)
    outliers = each.filter(pl.col("apart"))["subject"].unique(maintain_order=True).to_list()
    lines = each.with_columns(line=pl.when(pl.col("apart")).then(APART + pl.col("subject")).otherwise(pl.lit(ALIKE)))
    wizards = each["subject"].n_unique()
    layers = _wizard_layers(lines, pooled, _wizard_scheme(outliers, wizards), measured, wanted, upper)
    low, high = extent(each, ("y",))
    apart = f"Apart from the others: {', '.join(outliers)}." if outliers else "None stands apart from the others."
    reach = f"from {wanted.text(low)} to {wanted.text(high)}" if not math.isnan(low) else "undefined"
    return finished(
        alt.layer(*layers, width=WIDTH, height=HEIGHT),
        title=title or _wizards_title(outliers, wizards),
        subtitle=[
            f"thin: each of {count(wizards)} {'wizard' if wizards == 1 else 'wizards'}",
            "thick: all pooled",
            *interval_words(pooled, "shaded", level),
        ],
        description=f"{wanted.name} against {measured.name} of {count(wizards)} wizards, {reach}. {apart}",
        table=lines,
    )


def _wizard_scheme(outliers: Sequence[str], wizards: int) -> Scheme:
    cut = shorten(outliers, 30)
    styles = {POOLED: GOLDS[0]}
    if len(outliers) < wizards:
        styles[ALIKE] = THIN
    styles |= {APART + name: system_style(place) for place, name in enumerate(outliers)}
    labels = {POOLED: "gold standard, all pooled", ALIKE: "one wizard each"}
    return Scheme(styles, labels | {APART + name: short for name, short in cut.items()})


def _wizard_layers(
    lines: pl.DataFrame, pooled: pl.DataFrame, scheme: Scheme, x: Quantity, y: Quantity, upper: float | None
) -> list[Any]:
    wide, high = across(x, lines, pooled), height_of(pooled, lines, y, upper)
    ends = pl.concat([lines.select("x", "y"), pooled.select("x", "y")])
    corner = scheme.corner(ends, ("x", "y", "y"), wide, high, upper)
    every = pl.concat(
        [
            lines.select("subject", "line", "x", "y"),
            pooled.with_columns(line=pl.lit(POOLED)).select("subject", "line", "x", "y"),
        ]
    )
    axes = (x.axis(alt.X, "x", wide), y.axis(alt.Y, "y", high))
    line = Plot(inline(every)).mark_line(clip=True)
    return [
        bands(pooled.with_columns(colour=pl.lit(GOLDS[0].colour)), "subject"),
        line.encode(*axes, *scheme.channels(corner, "line"), detail=alt.Detail("subject:N"), order=alt.Order("x:Q")),
        *lone_dots(scheme.with_colours(lines, "line"), "subject", "y"),
        *bound_layers(y, upper),
        tooltip_layer(lines, "subject", "y", x, y),
    ]


def _wizards_title(outliers: Sequence[str], wizards: int) -> str:
    if wizards == 1:
        return "One wizard alone: nothing shows whether others would do as well"
    if not outliers:
        return f"None of the {count(wizards)} wizards stands apart from the others"
    cut = shorten(outliers, 24)
    who = f": {', '.join(cut.values())}" if len(outliers) <= MOST_NAMED else " from the others"
    return f"Of {count(wizards)} wizards, {len(outliers)} {'stands' if len(outliers) == 1 else 'stand'} apart{who}"


LANE = 24
"""Pixels of the bar of one system under a cost function."""

ENOUGH_POWER = 0.8
"""Power that a plan is usually asked for."""


def cost_chart(
    cost: pl.DataFrame,
    *,
    y: str,
    percent: bool = False,
    marks: pl.DataFrame | None = None,
    amount: str = "amount",
    title: str | None = None,
) -> Any:
    """What the designer would pay for each performance, and below it the performances that systems would move through.

    Columns of `cost`: `performance`, `amount` and `kind`: "point" for what was stated, "line" for places between.
    Columns of `marks`: `system`, `from` and `to`, the stretch of performance that a system goes through.
    """
    table = tidy(cost, {"kind": pl.String}, ("performance", "amount"))
    strange = table.filter(~pl.col("kind").is_in(["point", "line"]))
    if strange.height:
        raise UsageError(f'kind is "point" or "line"; got "{strange["kind"][0]}"')
    performance = Quantity(y, percent)
    spans = _stretches(marks)
    wide = extent(
        pl.concat([table.select("performance"), *(spans.select(performance=end) for end in ("from", "to"))]),
        ("performance",),
        air=0.02,
    )
    plot = _cost_plot(table, wide, performance, amount, alone=spans.is_empty())
    return finished(
        plot if spans.is_empty() else alt.vconcat(plot, _lanes(spans, wide, performance), spacing=6),
        title=title or _cost_title(table, performance, amount),
        subtitle=[
            "circles: amounts as stated" if "point" in table["kind"] else "the amounts of an expression",
            *(["bars: performances that each system goes through"] if spans.height else []),
        ],
        description=_cost_description(table, spans, performance, amount),
        table=table,
    )


def _stretches(marks: pl.DataFrame | None) -> pl.DataFrame:
    if marks is None or marks.is_empty():
        return pl.DataFrame(schema={"system": pl.String, "from": pl.Float64, "to": pl.Float64})
    table = tidy(marks, {"system": pl.String}, ("from", "to"))
    refuse_repeats(table, "system")
    return table


def _cost_plot(table: pl.DataFrame, wide: tuple[float, float], y: Quantity, amount: str, *, alone: bool) -> Any:
    low, high = extent(table, ("amount",))
    room = 0.06 * (high - min(low, 0.0)) or 1.0
    domain = (low - room if low < 0 else 0.0, high + room)
    hidden: dict[str, Any] = {} if alone else {"labels": False, "ticks": False}
    below = y.axis(alt.X, "performance", wide, title=y.name if alone else "", **hidden)
    up = Quantity(amount).axis(alt.Y, "amount", domain)
    label = [alt.Tooltip("performance:Q", format=".3~g"), alt.Tooltip("amount:Q", format=",.4~r")]
    line = Plot().mark_line(color="black", strokeWidth=2.4).encode(below, up, order=alt.Order("performance:Q"))
    dot = Plot().transform_filter("datum.kind === 'point'")
    points = dot.mark_point(shape="circle", size=75, fill="white", stroke="black", strokeWidth=1.8, opacity=1)
    return alt.layer(
        line,
        points.encode(x=alt.X("performance:Q"), y=alt.Y("amount:Q"), tooltip=label),
        width=WIDTH,
        height=HEIGHT - 60,
    )


def _lanes(spans: pl.DataFrame, wide: tuple[float, float], y: Quantity) -> Any:
    """A bar per system over the performances that it goes through."""
    names = spans["system"].to_list()
    label = [f"{y.text(start)} to {y.text(stop)}" for _, start, stop in spans.iter_rows()]
    bars = Scheme.named([], names).with_colours(spans, "system").with_columns(label=pl.Series(label))
    base = Plot(inline(bars)).encode(y=name_axis("system", names, characters=18))
    words = [alt.Tooltip("system:N"), alt.Tooltip("label:N", title=y.name)]
    bar = base.mark_bar(height=LANE - 12, fillOpacity=0.5, strokeWidth=1.4)
    dot = base.mark_point(shape="circle", size=30, strokeWidth=0, opacity=1).encode(
        x=alt.X("from:Q"), fill=row_colour(alt.Fill)
    )
    span = bar.encode(
        y.axis(alt.X, "from", wide),
        x2=alt.X2("to:Q"),
        fill=row_colour(alt.Fill),
        stroke=row_colour(alt.Stroke),
        tooltip=words,
    )
    text = base.mark_text(align="left", fontSize=11, dx=8).encode(x=alt.XValue("width"), text=alt.Text("label:N"))
    return alt.layer(span, dot, text, width=WIDTH, height=LANE * len(names))


def _cost_title(table: pl.DataFrame, y: Quantity, amount: str) -> str:
    known = table.filter(pl.col("performance").is_finite() & pl.col("amount").is_finite()).sort("performance")
    if known.height < 2:
        return capital(f"{amount} by {y.name}")
    first, last = known.row(0, named=True), known.row(-1, named=True)
    ends = f"from {plain(first['amount'])} at {y.text(first['performance'])}"
    verb = "stays" if first["amount"] == last["amount"] else "rises" if last["amount"] > first["amount"] else "falls"
    return capital(f"{amount} {verb} {ends} {y.name} to {plain(last['amount'])} at {y.text(last['performance'])}")


def _cost_description(table: pl.DataFrame, spans: pl.DataFrame, y: Quantity, amount: str) -> str:
    stated = table.filter(pl.col("kind") == "point")
    label = [
        f"{plain(paid)} at {y.text(reached)}"
        for reached, paid in (stated if stated.height else table).select("performance", "amount").head(12).iter_rows()
    ]
    ranges = [f"{name} from {y.text(start)} to {y.text(stop)}" for name, start, stop in spans.iter_rows()]
    moved = f" Systems go through these performances: {'; '.join(ranges)}." if ranges else ""
    return f"Cost function: {amount} by {y.name}. {', '.join(label)}.{moved}"


def plan_chart(
    plan: pl.DataFrame,
    *,
    target: float,
    percent: bool = False,
    quantity: str = "half-width of the interval",
    title: str | None = None,
) -> Any:
    """How precise a study would be by its number of subjects, a line per number of trials, and the precision wanted.

    Columns of `plan`: `subjects`, `trials` (of each subject), `half_width`, and `power` (null where none was asked
    for), which has a panel of its own.
    """
    rows = plan if "power" in plan.columns else plan.with_columns(power=pl.lit(None, pl.Float64))
    table = tidy(rows, {"trials": pl.Int64}, ("subjects", "half_width", "power")).sort("trials", "subjects")
    refuse_repeats(table, "trials", "subjects")
    lines = table.with_columns(line=pl.format("{} trials each", "trials"))
    wanted, power = Quantity(quantity, percent), Quantity("power, hardest pair", percent=True)
    powered = bool(table["power"].is_finite().any())
    panels = [
        _plan_panel(lines, "half_width", wanted, target, wide=not powered),
        *([_plan_panel(lines, "power", power, ENOUGH_POWER, wide=False)] if powered else []),
    ]
    return finished(
        alt.hconcat(*panels, spacing=PANEL_GAP),
        title=title or _plan_title(table, target, wanted),
        subtitle=[
            f"dashed: wanted, {wanted.difference(target)}"
            + (f", and power of {in_percent(ENOUGH_POWER)}" if powered else "")
        ],
        description=_plan_description(table, target, wanted),
        table=lines,
    )


def _plan_panel(lines: pl.DataFrame, field: str, y: Quantity, target: float, *, wide: bool) -> Any:
    scheme = Scheme.named([], lines["line"].unique(maintain_order=True).to_list())
    most = 1.0 if field == "power" else max(extent(lines, (field,))[1], target)
    label = [
        alt.Tooltip("subjects:Q"),
        alt.Tooltip("trials:Q", title="trials each"),
        alt.Tooltip(f"{field}:Q", format=".3~g", title=y.name),
    ]
    up = y.axis(alt.Y, field, (0.0, 1.06 * most))
    channels = scheme.channels("top", "line")
    panel = _subjects_panel(lines, field, up, channels, target, tooltips=label, air=0.03, dot=34, lower=40)
    if not wide:
        return panel
    words = line_label(target, f"wanted, {y.difference(target)}")
    return alt.layer(*panel.layer, *words, width=WIDTH, height=HEIGHT - 40)


def _plan_title(table: pl.DataFrame, target: float, y: Quantity) -> str:
    enough = table.filter(pl.col("half_width") <= target).sort("subjects", "trials")
    if enough.is_empty():
        most = max(table["subjects"].to_list())
        return f"Not even {count(most)} subjects bring the {y.name} down to {y.difference(target)}"
    fewest = enough.row(0, named=True)
    who = f"{count(fewest['subjects'])} subjects with {count(fewest['trials'])} trials each"
    return f"{who} bring the {y.name} down to {y.difference(fewest['half_width'])} (wanted: {y.difference(target)})"


def _plan_description(table: pl.DataFrame, target: float, y: Quantity) -> str:
    label = []
    for part in table.partition_by("trials", maintain_order=True):
        rows = part.select("subjects", "half_width").rows()
        ends = [f"{y.difference(width)} with {short(people)}" for people, width in dict.fromkeys((rows[0], rows[-1]))]
        label.append(f"{part['trials'][0]} trials each: {', '.join(ends)} subjects")
    return f"Plan of a study: {y.name} by number of subjects, {y.difference(target)} wanted. {'; '.join(label)}."
