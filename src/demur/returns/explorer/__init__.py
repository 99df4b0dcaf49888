"""The interactive error-return plot: its document of exact counts, and its HTML."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.show import page, pictures
from demur.core.show.charts import (
    GREY,
    HEIGHT,
    INK,
    OTHERS,
    WIDTH,
    LineStyle,
    spec_of,
    style_of,
    unchecked,
    without_hover,
)
from demur.core.show.html import FRAME_HEIGHT, ROW_HEIGHT, data_block, data_table, escape_text
from demur.core.show.numbers import count, listed, number, percent, shorten, tabled_percent
from demur.core.show.results import plain, threshold_text
from demur.errors import UsageError
from demur.returns.charts.comparison import comparison_chart, line_styles
from demur.returns.charts.error_return import error_return_chart
from demur.returns.comparison.compare import Comparison
from demur.returns.curves import ErrorReturnCurve, near_enough
from demur.returns.evaluate import Evaluation
from demur.returns.measures import ErrorAtNonreturn
from demur.returns.threshold import Choice, cost_path, short_thresholds

Places = NDArray[np.int64]

LANE, LANE_GAP = 16, 5
"""Pixels of the strip under the plot that names the system shown better, and of the air over and under it."""

Stretch = tuple[float, float, str | None]
"""A range of non-return rates and the system that leads there, if one does."""


def system_points(
    evaluation: Evaluation,
    order: int,
    at: float,
    points: int,
    style: LineStyle | None = None,
    advised: float | None = None,
) -> dict[str, Any]:
    """A system as the explorer shows it: counts at its cutoffs, its cost path, and the style of its line.

    The cutoff of an `advised` threshold is kept, and its place given; NaN returns nothing.
    """
    curve, style = evaluation.curve, style or style_of(order)
    path = cost_path(curve)
    vertices = np.searchsorted(curve.nonreturn, [stretch.nonreturn for stretch in path])
    advice = [] if advised is None else [int(np.searchsorted(curve.threshold, advised))]
    kept = kept_places(curve, np.append(vertices, advice).astype(np.int64), at, points)
    returned, wrong = _counts(curve, kept)
    thresholds = short_thresholds(curve, curve.threshold[vertices])
    stretches = []
    for one, vertex, threshold in zip(path, vertices, thresholds, strict=True):
        rates = {"nonreturn": round(one.nonreturn, 7), "error": round(one.error, 7)}
        ratios = {"from": one.ratio_from, "to": one.ratio_to}
        stretches.append({**ratios, "threshold": threshold, **rates, "place": int(np.searchsorted(kept, vertex))})
    return {
        "name": evaluation.name,
        "n": evaluation.n,
        "total": _tidy(curve.sweep.total),
        **{kind: getattr(evaluation, kind) for kind in ("withheld", "failed", "out_of_scope")},
        "right": _tidy(float(curve.sweep.right.sum())),
        "style": {"colour": style.colour, "width": style.width, "dash": list(style.dash)},
        "picked": style.colour if style != GREY else OTHERS[order % len(OTHERS)].colour,
        "whole": kept.size == curve.threshold.size,
        "threshold": short_thresholds(curve, curve.threshold[kept]),
        "returned": returned,
        "wrong": wrong,
        "path": stretches,
        "advised": int(np.searchsorted(kept, advice[0])) if advice else None,
    }


def kept_places(curve: ErrorReturnCurve, vertices: Places, at: float, points: int) -> Places:
    """Places of the cutoffs that are kept: the ends, the cost path, those around `at`, and others evenly by weight.

    >>> from demur.returns.curves import error_return
    >>> from demur.core.stats.sweep import Sweep
    >>> curve = error_return(Sweep.of([k / 100 for k in range(100)], [k % 3 > 0 for k in range(100)]))
    >>> kept_places(curve, np.array([], dtype=np.int64), 0.2, 6).tolist()
    [0, 20, 21, 100]
    """
    last = curve.threshold.size - 1
    if last < points:
        return np.arange(last + 1)
    here = max(0, int(np.searchsorted(curve.nonreturn, at + 1e-12, side="right")) - 1)
    wanted = np.union1d(vertices, [0, here, min(here + 1, last), last])
    spaced = np.linspace(curve.floor, 1.0, max(0, points - wanted.size))
    return np.union1d(wanted, np.minimum(np.searchsorted(curve.nonreturn, spaced), last))


def _counts(curve: ErrorReturnCurve, kept: Places) -> tuple[list[float], list[float]]:
    """Answers returned and errors among them at each cutoff kept, as exact as they were counted."""
    first = curve.sweep.threshold.size - kept  # of the sums from the top so many are added up at a cutoff
    returned, wrong = (np.append(0.0, sums)[first].tolist() for sums in curve.sweep.from_the_top)
    return [_tidy(value) for value in returned], [_tidy(value) for value in wrong]


def _tidy(value: float) -> float:
    """A whole number where it is one; sums of weights to six decimals."""
    return int(value) if value == int(value) else round(value, 6)


def reading_at(system: Mapping[str, Any], x: float, ratio: float) -> dict[str, Any]:
    """What a system does at the cutoff that withholds most without going beyond `x`, else at its first.

    `error_at_share` is the error rate at `x` itself, which is the same share for every system: between two cutoffs it
    lies on the straight line, as where tied answers are returned by chance.
    """
    total = system["total"]
    place = max(0, bisect_right(system["returned"], x + 1e-9, key=lambda kept: (total - kept) / total) - 1)
    return _reading(system, place, ratio, x)


def first_readings(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What each system does at first: at the threshold advised for it, or at the share withheld that was asked for."""
    ratio = document["ratio"]
    if document["advised"]:
        return [_reading(system, system["advised"], ratio) for system in document["systems"]]
    return [reading_at(system, document["at"], ratio) for system in document["systems"]]


def _reading(system: Mapping[str, Any], place: int, ratio: float, x: float = 0.0) -> dict[str, Any]:
    """What a system does at one of its cutoffs, and on the way to the next one up to a share of `x`."""
    total = system["total"]
    returned, wrong = system["returned"][place], system["wrong"][place]
    nonreturn, error = (total - returned) / total, wrong / total
    at_share = error
    if x > nonreturn and place + 1 < len(system["returned"]):
        kept, false = system["returned"][place + 1], system["wrong"][place + 1]
        step = min(1.0, (x - nonreturn) * total / (returned - kept))
        at_share = error + step * (false - wrong) / total
    return {
        "name": system["name"],
        "error_at_share": at_share,
        "threshold": system["threshold"][place],
        "nonreturn": nonreturn,
        "error": error,
        "returned": returned,
        "right": returned - wrong,
        "wrong": wrong,
        "withheld": total - returned,
        "missed": system["right"] - returned + wrong,
        "cost": error + ratio * nonreturn,
    }


def points_frame(document: Mapping[str, Any]) -> pl.DataFrame:
    """The points of all curves as a table."""
    frames = []
    for system in document["systems"]:
        total = system["total"]
        counts = {name: pl.Series(system[name], dtype=pl.Float64) for name in ("returned", "wrong")}
        rates = {"nonreturn": (total - counts["returned"]) / total, "error": counts["wrong"] / total}
        texts = ["" if one is None else threshold_text(float(one)) for one in system["threshold"]]
        frame = pl.DataFrame({"threshold": texts, **counts, **{name: rate.round(7) for name, rate in rates.items()}})
        frames.append(frame.select(pl.lit(system["name"]).alias("system"), pl.all()))
    return pl.concat(frames)


def _text_of(name: str) -> str:
    return files("demur.returns.explorer").joinpath(name).read_text(encoding="utf-8")


STYLE = _text_of("explorer.css")
CONTROLS = _text_of("controls.html").replace("\n", "")
"""The controls, hidden until the script is there to use them."""
MODULES = {name: _text_of(name) for name in ("explorer_numbers.js", "explorer_reading.js", "explorer.js")}
"""The script's modules, each after those that it imports."""

STRIP = {"top": HEIGHT + LANE_GAP, "middle": HEIGHT + LANE_GAP + LANE / 2 + 1, "bottom": HEIGHT + LANE_GAP + LANE}
LETTER = 6.3
"""Pixels of a character in the strip."""
LAYERS: dict[str, list[dict[str, Any]]] = json.loads(
    Template(_text_of("layers.json")).substitute(STRIP, ink=INK, letters=LETTER)
)
"""What is drawn besides the curves.

`lead`: a tint over the whole height where one system is shown better, and the strip under it that says which, by its
name alone or not at all where a stretch is short.
`region`: the range that was marked. `picked`: lines of the rows that are pointed at or picked. `points`: a rule from
the axis up, the point on each curve and its error rate, which stands clear of its neighbours.
"""

FRAMED = "html { font-size: 14px; } body { max-width: none; padding: 0 0.25rem; } .explorer { margin: 0; }"

_BETWEEN = re.compile(r"^import .*\n|^export ", re.MULTILINE)
"""What joins modules, and is not needed in one script."""

START = """
for (const root of document.querySelectorAll("[data-explorer]")) {
  explore(root, JSON.parse(document.getElementById(root.dataset.explorer).textContent), vegaEmbed);
}
"""
POINTS = 1500
RATIO = 0.3
"""The cost ratio that the table starts with: a non-return costs three tenths of an error."""

MOST_NAMED = 4
"""Systems up to which each has its part in the sentence, and its label in the plot."""

MOST_ROWS_OPEN = 12
"""Systems up to which the table does not scroll."""

COUNTS = ("returned", "right", "wrong", "withheld")
COLUMNS = (
    "system",
    "error at this share",
    "threshold",
    "share reached",
    "error there",
    *COUNTS,
    "missed chances (right, withheld)",
    "cost",
)
"""What the live table shows of each system: at the same share for all, then at the cutoff that each has near it."""

MOST_CUTOFFS, LEAST_CUTOFFS = 12_000, 100
"""Cutoffs kept of all systems together where there are many, and of each at least."""


def explorer_spec(drawn: Mapping[str, Any], lead: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The spec of a drawn chart with the named data sets in place of its curves; `lead` is shaded where known.

    The script fills "curves", "picked", "handles" and "region" from the document, so that no point is written twice.
    Its marks say nothing to screen readers: the description, the sentence and the table say it all, and in order.
    """
    spec = {key: value for key, value in without_hover(dict(drawn)).items() if key != "title"}
    layers = [_lowered(layer) if lead else layer for layer in spec["layer"]]
    used = {layer["data"]["name"] for layer in layers if "data" in layer}
    kept = {name: rows for name, rows in spec["datasets"].items() if name in used}
    datasets = {
        **kept,
        "curves": [],
        "picked": [],
        "handles": [],
        "region": [],
        **({"lead": list(lead)} if lead else {}),
    }
    layers = [*(LAYERS["lead"] if lead else []), *LAYERS["region"], *layers, *LAYERS["picked"], *LAYERS["points"]]
    return {
        **spec,
        "config": {**spec["config"], "aria": False},
        "width": "container",
        "data": {"name": "curves"},
        "datasets": datasets,
        "layer": [{**layer, "mark": {**layer["mark"], "aria": False}} for layer in layers],
    }


def lead_rows(evaluations: Sequence[Evaluation], comparison: Comparison | None) -> list[dict[str, Any]]:
    """Stretches of non-return rates with the system shown better than all others, or the word that none is."""
    if comparison is None or not comparison.pairs:
        return []
    names = [one.name for one in evaluations]
    labels, styles = shorten(names, 24), line_styles(comparison)
    undecided: dict[str, Any] = {"better": None, "colour": "#dddddd", "tint": 0.0, "short": ""}
    undecided["label"] = (
        "no significant difference" if len(names) == 2 else "no system significantly better than all others"
    )
    stretches: list[Stretch] = []
    if len(comparison.pairs) == 1:
        pair = comparison.pairs[0]
        reached = pair.start
        for part in pair.intervals:
            better = pair.a if part.better == "a" else pair.b
            stretches += [(reached, part.start, None), (part.start, part.stop, better)]
            reached = part.stop
        stretches.append((reached, 1.0, None))
    else:
        stretches = [(one.start, one.stop, None if one.also else one.best) for one in comparison.ranking]
    rows = []
    for start, stop, best in _join(stretches):
        side = undecided
        if best is not None:
            colour, label = styles[best].colour, f"{labels[best]} is better"
            side = {"better": best, "colour": colour, "tint": 0.09, "label": label, "short": labels[best]}
        rows.append({"start": round(start, 7), "stop": round(stop, 7), **side})
    return rows


def _join(stretches: Sequence[Stretch]) -> list[Stretch]:
    """The stretches that are not empty, neighbours with one leader joined."""
    joined: list[Stretch] = []
    for start, stop, better in stretches:
        if joined and joined[-1][2] == better:
            joined[-1] = (joined[-1][0], stop, better)
        elif stop > start:
            joined.append((start, stop, better))
    return joined


def _lowered(layer: dict[str, Any]) -> dict[str, Any]:
    """A layer whose x axis, where it has one, leaves room for the strip."""
    across = layer.get("encoding", {}).get("x", {})
    if "axis" not in across:
        return layer
    moved = {**across, "axis": {**across["axis"], "offset": LANE + 2 * LANE_GAP}}
    return {**layer, "encoding": {**layer["encoding"], "x": moved}}


def explorer_document(
    evaluations: Sequence[Evaluation],
    comparison: Comparison | None = None,
    *,
    points: int = POINTS,
    choices: Sequence[Choice] = (),
) -> dict[str, Any]:
    """Everything the explorer needs as plain values: counts of each system, pairs, words and the Vega-Lite spec.

    With `choices`, one for each system, it starts at these thresholds and marks them.

    Of each system at most `points` cutoffs are kept (fewer of each of many systems, more only where its cost path alone
    has more), evenly by the weight between them; the counts at each of them are exact. Thresholds have as few digits as
    split the answers the same way; null means: return nothing.
    """
    if not evaluations:
        raise UsageError("an explorer needs at least one evaluation; got none")
    names = [one.name for one in evaluations]
    if comparison is not None and names != [one.name for one in comparison.evaluations if one.part is None]:
        raise UsageError(f"the comparison is not one of these systems: {listed(names)}")
    styles: Mapping[str, LineStyle] = {}
    if comparison is not None:
        comparison, _ = replace(comparison, evaluations=tuple(evaluations)).in_short
        evaluations, styles = comparison.evaluations, line_styles(comparison)
        names = [one.name for one in evaluations]
    points = min(points, max(LEAST_CUTOFFS, MOST_CUTOFFS // len(names)))
    asked = evaluations[0].measures.get("error_at_nonreturn", ErrorAtNonreturn())
    assert isinstance(asked, ErrorAtNonreturn)
    point = asked.x if asked.to is None else (asked.x + asked.to) / 2  # of a range its middle
    at = max(point, min(one.curve.floor for one in evaluations))
    made = [choice for choice in choices if not choice.returns_nothing]
    thresholds = [choice.threshold for choice in choices] if made else [None] * len(evaluations)
    if made and len(evaluations) == 1:
        at = made[0].nonreturn
    marked = made if len(choices) <= MOST_NAMED else []
    with unchecked():
        if comparison is None:
            chart = error_return_chart(evaluations, region=None, choices=marked)
        else:
            chart = comparison_chart(comparison, region=None, choices=marked)
    drawn = spec_of(chart)
    title, subtitle = pictures.titles(drawn)
    lead = lead_rows(evaluations, comparison)
    shade = []
    if any(row["better"] for row in lead):
        others = " than all others" if len(names) > 2 else ""
        shade = [f"tinted, and named under the plot: where one system makes significantly fewer errors{others}"]
    pairs = [] if comparison is None else [pair.to_dict() for pair in comparison.pairs]
    kept = ("a", "b", "verdict", "intervals", "crossings")
    values: dict[str, Any] = plain(
        {
            "title": title,
            "subtitle": " · ".join([subtitle, *shade]),
            "description": str(drawn.get("description", "")),
            "at": at,
            "advised": bool(made) and len(evaluations) > 1,
            "ratio": RATIO,
            "order": _order_of_rows(names, comparison),
            "systems": [
                system_points(one, place, at, points, styles.get(one.name), thresholds[place])
                for place, one in enumerate(evaluations)
            ],
            "pairs": [{key: pair[key] for key in kept} for pair in pairs],
            "spec": explorer_spec(drawn, lead),
        }
    )
    return values


def _order_of_rows(names: Sequence[str], comparison: Comparison | None) -> list[int]:
    """Places of the systems in the order of the table: of many the baseline first, then as they are ranked."""
    if comparison is None or len(names) <= MOST_NAMED:
        return list(range(len(names)))
    board = comparison.leaderboard
    first = dict.fromkeys([board.baseline, *(one.system for one in board.ranked)])
    return [names.index(name) for name in first]


def explorer_html(
    document: Mapping[str, Any], *, ident: str = "explorer", picture: bool = True, embed: bool = True
) -> str:
    """A figure with its controls and live table; complete without scripts where it has its `picture`.

    With `embed` the figure holds its document, otherwise the page has it elsewhere.
    """
    points = first_readings(document)
    advised = "" if document["advised"] else " hidden"
    alone = " hidden" if len(document["systems"]) == 1 else ""
    plot = ""
    if picture:
        plot = pictures.embedded(pictures.svg_of(static_spec(document, points)), document["description"])
    return (
        f'<figure class="explorer" id="{escape(ident)}" data-explorer="{escape(ident)}-document">'
        f"<figcaption><h3>{escape_text(document['title'])}</h3>"
        f'<p class="subtitle">{escape_text(document["subtitle"])}</p></figcaption>'
        f'<div class="chart explorer-plot" data-part="plot">{plot}</div>'
        f"{CONTROLS.format(ident=escape(ident), alone=alone, advised=advised)}"
        f'<p class="explorer-said" data-part="said">{escape_text(operating_sentence(document, points))}</p>'
        '<p class="explorer-unseen" role="status" data-part="status"></p>'
        f"{_live_table(document, points)}"
        f'<p class="description">{escape_text(document["description"])}</p>'
        f"{data_table(points_frame(document), 'Data behind this figure')}"
        f"{data_block(document, f'{ident}-document') if embed else ''}</figure>"
    )


def explorer_script() -> str:
    """The script of a self-contained page that brings every explorer on it to life; `vegaEmbed` is there already."""
    return _BETWEEN.sub("", "".join(MODULES.values())) + START


def operating_sentence(document: Mapping[str, Any], points: Sequence[Mapping[str, Any]]) -> str:
    """What the systems do at the thresholds advised, or at the same share withheld; of many the best and the worst.

    Where ties keep a system from that share, error rates are those of tied answers returned by chance, and it is told
    how much the cutoffs there are withhold.
    """
    sizes = {one["name"]: one["n"] for one in document["systems"]}
    none = [one["name"] for one in points if one["threshold"] is None] if document["advised"] else []
    points = [one for one in points if one["name"] not in none]
    far = [one for one in points if is_out_of_reach(one, document["at"], sizes[one["name"]])]
    tied = [] if document["advised"] else far
    inputs = "" if tied else f" of {count(points[0]['returned'] + points[0]['withheld'])}"

    rate_of = "error_at_share" if tied else "error"

    def errors(point: Mapping[str, Any], total: str = "") -> str:
        rate = percent(point[rate_of])
        return rate if tied else f"{count(point['wrong'])}{total} ({rate})"

    if len(points) > MOST_NAMED:
        best, worst = (chosen(points, key=lambda one: float(one[rate_of])) for chosen in (min, max))
        fewest = f"{best['name']} has the fewest errors, {errors(best, inputs)}"
        counts = f"{fewest}, and {worst['name']} the most, {errors(worst)}"
        if (rate := percent(best[rate_of])) == percent(worst[rate_of]):
            same = not tied and len({one["wrong"] for one in points}) == 1
            wrong = f"{count(best['wrong'])}{inputs} wrongly ({rate})" if same else f"{rate} wrongly"
            counts = f"every system answers {wrong}"
        if document["advised"]:
            counts += _share_words(points)
    else:
        first, *others = points
        wrong, rate = f"{count(first['wrong'])}{inputs}", percent(first[rate_of])
        lead = f"{first['name']} answers " + (f"{rate} wrongly" if tied else f"{wrong} wrongly ({rate})")
        counts = listed([lead, *(f"{one['name']} {errors(one)}" for one in others)])
    if document["advised"]:
        if len(points) <= MOST_NAMED:
            counts = listed([_advised_words(one, "" if place else inputs) for place, one in enumerate(points)])
        return f"At the recommended thresholds, {counts}.{_without_advice(none)}"
    floors = {one["name"]: (one["total"] - one["returned"][0]) / one["total"] for one in document["systems"]}
    late = [f"{name} {percent(floor)}" for name, floor in floors.items() if floor > document["at"] + 1e-9]
    more = f" More is withheld by the system itself: {listed(late)}." if late else ""
    lead = f"Withholding {percent(document['at'])} of the inputs"
    return f"{lead}, {counts}.{_reached(tied)}{more}{_shown_better(document, points, rate_of)}"


def _without_advice(names: Sequence[str]) -> str:
    """The systems that would return nothing: for them no threshold is recommended."""
    if not names:
        return ""
    named = listed(names) if len(names) <= MOST_NAMED else f"{names[0]} and {len(names) - 1} more"
    return f" No threshold is recommended for {named}."


def _share_words(points: Sequence[Mapping[str, Any]]) -> str:
    """Which of many systems withhold the least and the most, where each is at a share of its own."""
    least, most = (chosen(points, key=lambda one: float(one["nonreturn"])) for chosen in (min, max))
    shares = percent(least["nonreturn"]), percent(most["nonreturn"])
    if shares[0] == shares[1]:
        return f"; each withholds {shares[0]}"
    return f"; {least['name']} withholds the least, {shares[0]}, and {most['name']} the most, {shares[1]}"


def _reached(tied: Sequence[Mapping[str, Any]]) -> str:
    """The shares that systems reach whose ties keep them from the one asked for."""
    if not tied:
        return ""
    parts = [f"{one['name']} {percent(one['nonreturn'])} ({percent(one['error'])} wrong)" for one in tied]
    named = listed(parts) if len(parts) <= MOST_NAMED else f"{listed(parts[:1])} and {len(parts) - 1} more"
    why = "Ties leave no threshold there: these rates return tied answers at random"
    return f" {why}, and the next threshold withholds less: {named}."


def _advised_words(point: Mapping[str, Any], inputs: str) -> str:
    """What a system does at the threshold advised for it."""
    wrong = f"{count(point['wrong'])}{inputs} wrongly ({percent(point['error'])})"
    return f"{point['name']} withholds {percent(point['nonreturn'])} and answers {wrong}"


def is_out_of_reach(point: Mapping[str, Any], at: float, n: int) -> bool:
    """Whether ties keep the cutoff of a point from a share by more than may go unsaid."""
    return bool(at - point["nonreturn"] > near_enough(n))


def _shown_better(document: Mapping[str, Any], points: Sequence[Mapping[str, Any]], rate_of: str) -> str:
    """Whether the system with the fewest errors is shown to be better here, and than which.

    The curves are compared between cutoffs too.
    """
    low, high = (chosen(points, key=lambda one: float(one[rate_of])) for chosen in (min, max))
    best = low["name"]
    if len(points) > 2 and percent(low[rate_of]) == percent(high[rate_of]):
        return ""
    if not any(best in (pair["a"], pair["b"]) for pair in document["pairs"]):
        return ""
    worse = [
        str(pair["b"] if pair["a"] == best else pair["a"])
        for pair in document["pairs"]
        for part in pair["intervals"]
        if pair[part["better"]] == best and part["from"] <= document["at"] <= part["to"]
    ]
    if not worse:
        return " No significant difference here." if len(points) == 2 else f" {best} is not significantly better here."
    others = len(points) - 1
    named = listed(worse) if len(worse) <= MOST_NAMED else f"{len(worse)} of the {others} others"
    return f" {best} makes significantly fewer errors here" + ("." if len(worse) == others else f" than {named}.")


def _live_table(document: Mapping[str, Any], points: Sequence[Mapping[str, Any]]) -> str:
    head = "".join(f'<th scope="col">{name}</th>' for name in COLUMNS)
    rows, tall = "", " explorer-tall" if len(points) > MOST_ROWS_OPEN else ""
    for place in document["order"]:
        system, point = document["systems"][place], points[place]
        cutoff = "return nothing" if point["threshold"] is None else threshold_text(float(point["threshold"]))
        share, *rates = [tabled_percent(point[name]) for name in ("error_at_share", "nonreturn", "error")]
        counts = [count(point[name]) for name in (*COUNTS, "missed")]
        cells = "".join(
            f"<td>{escape_text(cell)}</td>" for cell in (share, cutoff, *rates, *counts, number(point["cost"]))
        )
        style = system["style"]
        rows += (
            '<tr><th scope="row">'
            '<svg class="explorer-swatch" width="30" height="8" aria-hidden="true"><line x1="0" x2="30" y1="4" y2="4" '
            f'stroke="{style["colour"]}" stroke-width="{style["width"]}" '
            f'stroke-dasharray="{" ".join(map(str, style["dash"]))}"/></svg>'
            f"{escape_text(system['name'])}</th>{cells}</tr>"
        )
    return (
        f'<div class="scroll{tall}" tabindex="0" role="region" aria-label="At the operating point">'
        '<table class="explorer-table"><caption>At the operating point '
        f'<span class="explorer-quiet">(cost: error + <span data-part="rated">{document["ratio"]:g}</span> × '
        f"non-return)</span></caption><thead><tr>{head}</tr></thead>"
        f'<tbody data-part="rows">{rows}</tbody></table></div>'
    )


def static_spec(document: Mapping[str, Any], points: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The spec with its named data sets filled: the curves, and the handles at an operating point."""
    rows = points_frame(document).select("system", "nonreturn", "error").to_dicts()
    handles = [
        {
            "nonreturn": max(point["nonreturn"], document["at"]),
            "error": point["error_at_share"],
            "top": point["error_at_share"],
            "colour": system["style"]["colour"],
        }
        for system, point in zip(document["systems"], points, strict=True)
    ]
    spec = document["spec"]
    return {**spec, "width": WIDTH, "datasets": {**spec["datasets"], "curves": rows, "handles": handles}}


def explorer_frame(comparison: Comparison) -> str:
    """The interactive plot in a frame that can reach nothing outside itself."""
    whole = [one for one in comparison.evaluations if one.part is None]
    document = explorer_document(whole, comparison)
    page = explorer_page(document, picture=False).replace("&", "&amp;").replace('"', "&quot;")  # no more than must be
    height = FRAME_HEIGHT + ROW_HEIGHT * len(whole)
    return (
        f'<iframe title="{escape(document["title"])}" sandbox="allow-scripts" width="100%" height="{height}" '
        f'frameborder="0" srcdoc="{page}"></iframe>'
    )


def explorer_page(document: dict[str, Any], *, picture: bool = True) -> str:
    """A whole page of one explorer that needs nothing from outside; `picture` is what shows where no scripts run."""
    script = pictures.javascript(explorer_script()).replace("</script", "<\\/script")
    own = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; script-src 'sha256-{own}'; style-src 'unsafe-inline'; img-src data:"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(document['title'])}</title><style>{page.STYLE}{STYLE}{FRAMED}</style></head>"
        f"<body>{explorer_html(document, picture=picture)}<script>{script}</script></body></html>"
    )
