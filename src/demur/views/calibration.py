"""The reliability diagram: is an answer given with confidence 0.8 right eight times out of ten?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import polars as pl

from demur.errors import UsageError
from demur.measures.calibration import Reliability
from demur.measures.intervals import Figure
from demur.views.drawing import alt, finished, inline, rate_axis
from demur.views.lines import legend_in, line_channels, style_of
from demur.views.names import shortened
from demur.views.numbers import count, inputs
from demur.views.words import number, percent

SIDE = 400

CLEAR = 0.8
"""Share of all that confidences are off by that has to lie on one side before a side is named."""


class Calibrated(Protocol):
    """Whose confidences can be held against what came true."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def n(self) -> int:
        """How many there are to look at."""

    @property
    def reliability(self) -> Reliability | None:
        """The bins; None where confidences are no probabilities."""

    @property
    def figures(self) -> Mapping[str, Figure]:
        """The expected calibration error, under `ece`."""


def reliability_chart(evaluations: Sequence[Calibrated], *, what: str = "answers") -> Any:
    """Share right against mean confidence in each bin; on the diagonal confidences mean what they say.

    The area of a dot is the share of answers in its bin. Systems whose confidences are no probabilities are left out.
    """
    if not evaluations:
        raise UsageError("a figure needs at least one evaluation; got none")
    kept = [one for one in evaluations if one.reliability is not None]
    if not kept:
        raise UsageError("a reliability diagram needs confidences within [0, 1]; no system has them")
    table = reliability_table(kept, what)
    names = [one.name for one in kept]
    axes = (
        rate_axis(alt.X, "confidence", f"mean confidence of the {what} in a bin"),
        rate_axis(alt.Y, "right", "share of them that is right"),
    )
    line = alt.Chart().mark_line(opacity=0.9).encode(*axes, *line_channels(names, corner="top-left"))
    left_out = [one.name for one in evaluations if one.reliability is None]
    return finished(
        alt.layer(_diagonal(), *_gaps(table, names), line, _dots(axes, names)).properties(width=SIDE, height=SIDE),
        title=_title(kept),
        subtitle=[
            inputs([one.n for one in kept]) if what == "answers" else f"n = {count(sum(one.n for one in kept))} {what}",
            *_ece_words(kept),
            f"dot area: share of {what}",
            *(["bars: from the claim (dashed) to what holds"] if len(kept) == 1 else []),
            *([f"no probabilities: {', '.join(left_out)}"] if left_out else []),
        ],
        description=f"Reliability diagram. {'; '.join(_gap_words(one) for one in kept)}.",
        table=table,
    )


def reliability_table(evaluations: Sequence[Calibrated], what: str = "answers") -> pl.DataFrame:
    """One row per bin: its ends, mean confidence, share right, weight and share of the whole."""
    frames = []
    for one in evaluations:
        bins = one.reliability
        assert bins is not None
        columns = {"low": bins.low, "high": bins.high, "confidence": bins.confidence, "right": bins.accuracy}
        frame = pl.DataFrame({**columns, "weight": bins.weight, "share": bins.weight / bins.weight.sum()})
        told = [
            f"{count(weight)} {what} ({percent(share)})"
            for weight, share in zip(bins.weight, frame["share"], strict=True)
        ]
        frames.append(frame.select(pl.lit(one.name).alias("system"), pl.all(), pl.Series("answers", told)))
    return pl.concat(frames)


def _diagonal() -> Any:
    ends = inline(pl.DataFrame({"confidence": [0.0, 1.0], "right": [0.0, 1.0]}))
    return (
        alt.Chart(ends)
        .mark_line(color="#777777", strokeWidth=1, strokeDash=[3, 3])
        .encode(x="confidence:Q", y="right:Q")
    )


def _gaps(table: pl.DataFrame, names: list[str]) -> list[Any]:
    """With one system, lines from each dot to the diagonal: what the confidence claims and what holds."""
    if len(names) > 1:
        return []
    return [
        alt.Chart(inline(table))
        .mark_rule(color="#D55E00", strokeWidth=2)
        .encode(x="confidence:Q", y="right:Q", y2="confidence:Q")
    ]


def _dots(axes: tuple[Any, Any], names: list[str]) -> Any:
    fills = [style_of(place).colour for place in range(len(names))]
    legend = legend_in("top-left", shortened(names)) if len(names) > 1 else None
    told = [
        alt.Tooltip("system:N"),
        alt.Tooltip("answers:N"),
        alt.Tooltip("confidence:Q", title="mean confidence", format=".1%"),
        alt.Tooltip("right:Q", title="right", format=".1%"),
    ]
    return (
        alt.Chart()
        .mark_point(filled=True, shape="circle", opacity=0.75, stroke="white", strokeWidth=1)
        .encode(
            *axes,
            size=alt.Size("share:Q", scale=alt.Scale(domain=[0, 1], range=[18, 1000]), legend=None),
            fill=alt.Fill("system:O", sort=None, scale=alt.Scale(domain=names, range=fills), legend=legend),
            tooltip=told,
        )
    )


def _ece(evaluation: Calibrated) -> str:
    figure = evaluation.figures.get("ece")
    return "not computed" if figure is None else number(figure.value)


def _ece_words(evaluations: Sequence[Calibrated]) -> list[str]:
    """The ECE of one system, of each of a few, or of the best of many."""
    if len(evaluations) == 1:
        return [f"ECE {_ece(evaluations[0])}"]
    if len(evaluations) <= 4:
        return [f"ECE {', '.join(f'{_ece(one)} ({one.name})' for one in evaluations)}"]
    best, worst = _by_ece(evaluations)[0], _by_ece(evaluations)[-1]
    return [f"ECE from {_ece(best)} ({best.name}) to {_ece(worst)} ({worst.name})"]


def _by_ece(evaluations: Sequence[Calibrated]) -> list[Calibrated]:
    return sorted(evaluations, key=lambda one: one.figures["ece"].value if "ece" in one.figures else 1.0)


def _claimed_less_right(evaluation: Calibrated) -> float:
    bins = evaluation.reliability
    assert bins is not None
    return float(((bins.confidence - bins.accuracy) * bins.weight).sum() / bins.weight.sum())


def _gap_words(evaluation: Calibrated) -> str:
    return f"{evaluation.name}: {_leaning(evaluation)} (ECE {_ece(evaluation)})"


def _leaning(evaluation: Calibrated) -> str:
    """On which side the confidences err: one throughout, one below and the other above some confidence, or neither."""
    bins = evaluation.reliability
    assert bins is not None
    over, off = bins.confidence > bins.accuracy, np.abs(bins.confidence - bins.accuracy) * bins.weight
    if not off.sum() > 0:
        return "confidences mean what they say"
    share, gap = off / off.sum(), _claimed_less_right(evaluation)
    if (share[over] if gap > 0 else share[~over]).sum() >= CLEAR:
        return f"confidences are on average {100 * abs(gap):.1f} points too {'high' if gap > 0 else 'low'}"
    edges = [*range(1, over.size)]
    sure_below = {edge: float(share[:edge][over[:edge]].sum() + share[edge:][~over[edge:]].sum()) for edge in edges}
    for first, second, fit in (
        ("surer than right", "less sure", sure_below),
        ("less sure than right", "surer", {edge: 1 - held for edge, held in sure_below.items()}),
    ):
        edge = max(fit, key=lambda one: fit[one], default=0)
        if edge and fit[edge] >= CLEAR:
            return f"{first} below a confidence of {float(bins.low[edge]):.2g}, {second} above"
    return "confidences err on both sides"


def _title(evaluations: Sequence[Calibrated]) -> str:
    first = evaluations[0]
    if len(evaluations) == 1:
        leaning = _leaning(first)
        clear = leaning.startswith("confidences are")
        return f"{first.name}: {leaning}" if clear else f"{first.name}: ECE {_ece(first)}, {leaning}"
    return f"Do the confidences of {len(evaluations)} systems mean what they say?"
