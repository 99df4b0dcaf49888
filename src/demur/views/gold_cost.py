"""What performance is worth and what precision takes: cost functions (Paek 2001, figure 4) and plans of studies."""

from __future__ import annotations

from typing import Any

import polars as pl

from demur.errors import UsageError
from demur.views.drawing import HEIGHT, WIDTH, alt, finished, inline
from demur.views.gold_rows import Quantity, Scheme, flat, flat_label, own, plain
from demur.views.nbest_rows import extent, refuse_repeats, short, tidy
from demur.views.numbers import count
from demur.views.outcome_rows import capital, name_axis
from demur.views.words import percent as in_percent

LANE = 24
"""Pixels of the bar of one system under a cost function."""

PANEL, PANEL_GAP = 252, 30
"""Pixels across each of two panels side by side, and between them."""

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
    stretches = _stretches(marks)
    wide = extent(
        pl.concat([table.select("performance"), *(stretches.select(performance=end) for end in ("from", "to"))]),
        ("performance",),
        air=0.02,
    )
    plot = _cost_plot(table, wide, performance, amount, alone=stretches.is_empty())
    return finished(
        plot if stretches.is_empty() else alt.vconcat(plot, _lanes(stretches, wide, performance), spacing=6),
        title=title or _cost_title(table, performance, amount),
        subtitle=_cost_words(table, stretches),
        description=_cost_description(table, stretches, performance, amount),
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
    told = [alt.Tooltip("performance:Q", format=".3~g"), alt.Tooltip("amount:Q", format=",.4~r")]
    line = alt.Chart().mark_line(color="black", strokeWidth=2.4).encode(below, up, order="performance:Q")
    dot = alt.Chart().transform_filter("datum.kind === 'point'")
    points = dot.mark_point(shape="circle", size=75, fill="white", stroke="black", strokeWidth=1.8, opacity=1)
    return alt.layer(line, points.encode(x="performance:Q", y="amount:Q", tooltip=told)).properties(
        width=WIDTH, height=HEIGHT - 60
    )


def _lanes(stretches: pl.DataFrame, wide: tuple[float, float], y: Quantity) -> Any:
    """A bar per system over the performances that it goes through."""
    names = stretches["system"].to_list()
    told = [f"{y.told(start)} to {y.told(stop)}" for _, start, stop in stretches.iter_rows()]
    bars = Scheme.named([], names).coloured(stretches, "system").with_columns(told=pl.Series(told))
    base = alt.Chart(inline(bars)).encode(y=name_axis("system", names, letters=18))
    words = [alt.Tooltip("system:N"), alt.Tooltip("told:N", title=y.name)]
    bar = base.mark_bar(height=LANE - 12, fillOpacity=0.5, strokeWidth=1.4)
    dot = base.mark_point(shape="circle", size=30, strokeWidth=0, opacity=1).encode(x="from:Q", fill=own(alt.Fill))
    span = bar.encode(y.axis(alt.X, "from", wide), x2="to:Q", fill=own(alt.Fill), stroke=own(alt.Stroke), tooltip=words)
    text = base.mark_text(align="left", fontSize=11, dx=8).encode(x=alt.value("width"), text="told:N")
    return alt.layer(span, dot, text).properties(width=WIDTH, height=LANE * len(names))


def _cost_title(table: pl.DataFrame, y: Quantity, amount: str) -> str:
    known = table.filter(pl.col("performance").is_finite() & pl.col("amount").is_finite()).sort("performance")
    if known.height < 2:
        return capital(f"{amount} by {y.name}")
    first, last = known.row(0, named=True), known.row(-1, named=True)
    ends = f"from {plain(first['amount'])} at {y.told(first['performance'])}"
    verb = "stays" if first["amount"] == last["amount"] else "rises" if last["amount"] > first["amount"] else "falls"
    return capital(f"{amount} {verb} {ends} {y.name} to {plain(last['amount'])} at {y.told(last['performance'])}")


def _cost_words(table: pl.DataFrame, stretches: pl.DataFrame) -> list[str]:
    stated = table.filter(pl.col("kind") == "point").height
    return [
        "circles: amounts as stated" if stated else "the amounts of an expression",
        *(["bars: performances that each system goes through"] if stretches.height else []),
    ]


def _cost_description(table: pl.DataFrame, stretches: pl.DataFrame, y: Quantity, amount: str) -> str:
    stated = table.filter(pl.col("kind") == "point")
    told = [
        f"{plain(paid)} at {y.told(reached)}"
        for reached, paid in (stated if stated.height else table).select("performance", "amount").head(12).iter_rows()
    ]
    spans = [f"{name} from {y.told(start)} to {y.told(stop)}" for name, start, stop in stretches.iter_rows()]
    moved = f" Systems go through these performances: {'; '.join(spans)}." if spans else ""
    return f"Cost function: {amount} by {y.name}. {', '.join(told)}.{moved}"


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
    wanted, told_apart = Quantity(quantity, percent), Quantity("told apart, hardest pair", percent=True)
    powered = bool(table["power"].is_finite().any())
    panels = [
        _plan_panel(lines, "half_width", wanted, target, wide=not powered),
        *([_plan_panel(lines, "power", told_apart, ENOUGH_POWER, wide=False)] if powered else []),
    ]
    return finished(
        alt.hconcat(*panels, spacing=PANEL_GAP),
        title=title or _plan_title(table, target, wanted),
        subtitle=[
            f"dashed: wanted, {wanted.apart(target)}"
            + (f", and power of {in_percent(ENOUGH_POWER)}" if powered else "")
        ],
        description=_plan_description(table, target, wanted),
        table=lines,
    )


def _plan_panel(lines: pl.DataFrame, field: str, y: Quantity, target: float, *, wide: bool) -> Any:
    scheme = Scheme.named([], lines["line"].unique(maintain_order=True).to_list())
    most = 1.0 if field == "power" else max(extent(lines, (field,))[1], target)
    below = Quantity("subjects").axis(
        alt.X, "subjects", extent(lines, ("subjects",), air=0.03), format="d", tickMinStep=1
    )
    up = y.axis(alt.Y, field, (0.0, 1.06 * most))
    channels = scheme.channels("top", "line")
    told = [
        alt.Tooltip("subjects:Q"),
        alt.Tooltip("trials:Q", title="trials each"),
        alt.Tooltip(f"{field}:Q", format=".3~g", title=y.name),
    ]
    base = alt.Chart().transform_filter(f"isValid(datum.{field})")
    dots = base.mark_point(filled=True, size=34, opacity=1)
    return alt.layer(
        flat(target, color="#333333", strokeWidth=1.2, strokeDash=[5, 4]),
        base.mark_line().encode(below, up, *channels, order="subjects:Q"),
        dots.encode(x="subjects:Q", y=f"{field}:Q", color=channels[0], tooltip=told),
        *(flat_label(target, f"wanted, {y.apart(target)}") if wide else []),
    ).properties(width=WIDTH if wide else PANEL, height=HEIGHT - 40)


def _cheapest(table: pl.DataFrame, target: float) -> dict[str, Any] | None:
    """The fewest subjects, and then the fewest trials of each, that are precise enough."""
    enough = table.filter(pl.col("half_width") <= target).sort("subjects", "trials")
    return enough.row(0, named=True) if enough.height else None


def _plan_title(table: pl.DataFrame, target: float, y: Quantity) -> str:
    found = _cheapest(table, target)
    if found is None:
        most = max(table["subjects"].to_list())
        return f"Not even {count(most)} subjects bring the {y.name} down to {y.apart(target)}"
    who = f"{count(found['subjects'])} subjects with {count(found['trials'])} trials each"
    return f"{who} bring the {y.name} down to {y.apart(found['half_width'])} (wanted: {y.apart(target)})"


def _plan_description(table: pl.DataFrame, target: float, y: Quantity) -> str:
    told = []
    for part in table.partition_by("trials", maintain_order=True):
        ends = [f"{y.apart(width)} with {short(people)}" for people, width in _ends(part)]
        told.append(f"{part['trials'][0]} trials each: {', '.join(ends)} subjects")
    return f"Plan of a study: {y.name} by number of subjects, {y.apart(target)} wanted. {'; '.join(told)}."


def _ends(part: pl.DataFrame) -> list[tuple[float, float]]:
    rows = part.select("subjects", "half_width").rows()
    return [rows[0], rows[-1]] if len(rows) > 1 else rows
