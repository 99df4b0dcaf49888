"""The difference of two systems' error-return curves, with its band and where it shows one to be better."""

from __future__ import annotations

from typing import Any

import polars as pl

from demur.analyses.comparison import PairComparison, Side
from demur.views.drawing import HEIGHT, WIDTH, alt, finished, inline, rate_axis
from demur.views.fragments import evenly
from demur.views.hovering import hover_layer
from demur.views.names import shortened
from demur.views.numbers import span
from demur.views.words import pair_title, percent

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
    table = pair.frame()
    domain = _domain(pair)
    axes = (
        rate_axis(alt.X, "nonreturn", "non-return rate (share of inputs withheld)"),
        rate_axis(alt.Y, "difference", "difference in error rate (points)", domain=domain, labelExpr=POINTS),
    )
    band = alt.Chart().mark_area(opacity=0.25, color="#444444").encode(axes[0], y="low:Q", y2="high:Q")
    line = alt.Chart().mark_line(color="black", strokeWidth=2.4).encode(*axes)
    zero = alt.Chart(inline(pl.DataFrame({"difference": [0.0]}))).mark_rule(color="black", strokeWidth=1)
    layers = [
        *_ground(pair, domain),
        band,
        zero.encode(y="difference:Q"),
        line,
        *_crossing_layers(pair),
        *_side_labels(pair, domain),
        hover_layer(_told(pair), "nonreturn", "difference"),
    ]
    how = "paired by input" if pair.paired else "unpaired"
    return finished(
        alt.layer(*layers).properties(width=WIDTH, height=HEIGHT),
        title=pair_title(pair),
        subtitle=[
            f"n = {pair.n:,} inputs, {how}",
            f"{percent(pair.level)} band for all rates at once",
            f"above zero {_short(pair, 'a')} errs more",
            "tinted: the band leaves zero",
        ],
        description=_description(pair),
        table=table,
    )


def _domain(pair: PairComparison) -> tuple[float, float]:
    """Room for the band, and for a name on the far side of zero."""
    low, high = min(float(pair.band.low.min()), 0.0), max(float(pair.band.high.max()), 0.0)
    room = 0.2 * max(high - low, 0.001)
    return min(low - room / 4, -room), max(high + room / 4, room)


def _ground(pair: PairComparison, domain: tuple[float, float]) -> list[Any]:
    if not pair.intervals:
        return []
    half = float(pair.band.x[1] - pair.band.x[0]) / 2
    start, stop = float(pair.band.x[0]), float(pair.band.x[-1])
    rows = pl.DataFrame(
        [
            {
                "start": max(part.start - half, start),
                "stop": min(part.stop + half, stop),
                "bottom": domain[0],
                "top": domain[1],
                "better": part.better,
            }
            for part in pair.intervals
        ]
    )
    tint = alt.Color("better:N", scale=alt.Scale(domain=list(TINTS), range=list(TINTS.values())), legend=None)
    return [alt.Chart(inline(rows)).mark_rect().encode(x="start:Q", x2="stop:Q", y="bottom:Q", y2="top:Q", color=tint)]


def _side_labels(pair: PairComparison, domain: tuple[float, float]) -> list[Any]:
    """The better system's name over each interval wide enough to carry it, on the side away from the curve."""
    edge = 0.05 * (domain[1] - domain[0])
    rows = [
        {
            "nonreturn": (part.start + part.stop) / 2,
            "difference": domain[1] - edge if part.better == "a" else domain[0] + edge,
            "text": f"{_short(pair, part.better)} better",
        }
        for part in pair.intervals
        if part.stop - part.start >= WIDE_ENOUGH
    ]
    if not rows:
        return []
    text = alt.Chart(inline(pl.DataFrame(rows))).mark_text(fontSize=12, fontWeight=600, color="#222222")
    return [text.encode(x="nonreturn:Q", y="difference:Q", text="text:N")]


def _crossing_layers(pair: PairComparison) -> list[Any]:
    if not pair.crossings:
        return []
    rows = [{"nonreturn": one.x, "low_x": one.low, "high_x": one.high, "difference": 0.0} for one in pair.crossings]
    base = alt.Chart(inline(pl.DataFrame(rows)))
    dot = base.mark_point(
        filled=True, shape="diamond", size=90, fill="white", stroke="black", strokeWidth=1.8, opacity=1
    )
    return [
        base.mark_rule(strokeWidth=3, color="#666666").encode(x="low_x:Q", x2="high_x:Q", y="difference:Q"),
        dot.encode(x="nonreturn:Q", y="difference:Q"),
    ]


def _told(pair: PairComparison) -> pl.DataFrame:
    rows = evenly(pair.frame(), 120)
    first, second = (curve.error_at(rows["nonreturn"].to_numpy()) for curve in pair.curves)
    return rows.select("nonreturn", "difference").with_columns(
        pl.Series("non-return rate", [percent(x) for x in rows["nonreturn"]]),
        pl.Series(f"errors of {pair.a}", [percent(rate) for rate in first]),
        pl.Series(f"errors of {pair.b}", [percent(rate) for rate in second]),
        pl.Series(
            "difference with band (points)",
            [f"{100 * d:+.2f} ({100 * low:+.2f} to {100 * high:+.2f})" for _, _, _, d, low, high in rows.iter_rows()],
        ),
    )


def _description(pair: PairComparison) -> str:
    parts = [
        f"{pair.a if part.better == 'a' else pair.b} is shown better {span(part.start, part.stop)}"
        for part in pair.intervals
    ]
    shown = "; ".join(parts) or "the band holds zero everywhere"
    crossings = (
        f" The curves cross at {', '.join(percent(one.x) for one in pair.crossings[:5])}." if pair.crossings else ""
    )
    return f"Error rate of {pair.a} less that of {pair.b} against non-return rate: {shown}.{crossings}"


def _short(pair: PairComparison, side: Side) -> str:
    """The name of a side as a short label, never that of the other."""
    return shortened((pair.a, pair.b), 22)[pair.a if side == "a" else pair.b]
