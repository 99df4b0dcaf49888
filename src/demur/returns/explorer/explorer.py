"""The interactive error-return plot: its document of exact counts, and its HTML."""

from __future__ import annotations

import base64
import hashlib
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.show import page, pictures
from demur.core.show.charts import WIDTH, style_of
from demur.core.show.html import data_block, data_table, written
from demur.core.show.notebook import FRAME_HEIGHT, ROW_HEIGHT
from demur.core.show.numbers import count, listed, number, percent, tabled_percent
from demur.core.show.results import plain, threshold_text
from demur.errors import UsageError
from demur.returns.compare import Comparison
from demur.returns.curves import ErrorReturnCurve
from demur.returns.evaluate import Evaluation
from demur.returns.explorer.chart import explorer_chart, explorer_spec, lead_rows
from demur.returns.measures import ErrorAtNonreturn
from demur.returns.threshold import cost_path, short_thresholds

Places = NDArray[np.int64]


def system_points(evaluation: Evaluation, order: int, at: float, points: int) -> dict[str, Any]:
    """A system as the explorer shows it: counts at its cutoffs, its cost path, and the style of its line."""
    curve, style = evaluation.curve, style_of(order)
    path = cost_path(curve)
    vertices = np.searchsorted(curve.nonreturn, [stretch.nonreturn for stretch in path])
    kept = kept_places(curve, vertices, at, points)
    returned, wrong = _counts(curve, kept)
    thresholds = short_thresholds(curve, curve.threshold[vertices])
    return {
        "name": evaluation.name,
        "n": evaluation.n,
        "total": _tidy(curve.sweep.total),
        **{kind: getattr(evaluation, kind) for kind in ("withheld", "failed", "out_of_scope")},
        "right": _tidy(float(curve.sweep.right.sum())),
        "style": {"colour": style.colour, "width": style.width, "dash": list(style.dash)},
        "whole": kept.size == curve.threshold.size,
        "threshold": short_thresholds(curve, curve.threshold[kept]),
        "returned": returned,
        "wrong": wrong,
        "path": [
            {
                "from": stretch.ratio_from,
                "to": stretch.ratio_to,
                "threshold": threshold,
                "nonreturn": round(stretch.nonreturn, 7),
                "error": round(stretch.error, 7),
                "place": int(np.searchsorted(kept, vertex)),
            }
            for stretch, vertex, threshold in zip(path, vertices, thresholds, strict=True)
        ],
    }


def kept_places(curve: ErrorReturnCurve, vertices: Places, at: float, points: int) -> Places:
    """Places of the cutoffs that are kept: the ends, those of the cost path, that at `at`, and others evenly by weight.

    >>> from demur.returns.curves import error_return
    >>> from demur.core.stats.sweep import Sweep
    >>> curve = error_return(Sweep.of([k / 100 for k in range(100)], [k % 3 > 0 for k in range(100)]))
    >>> kept_places(curve, np.array([], dtype=np.int64), 0.2, 6).tolist()
    [0, 20, 50, 100]
    """
    last = curve.threshold.size - 1
    if last < points:
        return np.arange(last + 1)
    here = max(0, int(np.searchsorted(curve.nonreturn, at + 1e-12, side="right")) - 1)
    wanted = np.union1d(vertices, [0, here, last])
    spaced = np.linspace(curve.floor, 1.0, max(0, points - wanted.size))
    return np.union1d(wanted, np.minimum(np.searchsorted(curve.nonreturn, spaced), last))


def _counts(curve: ErrorReturnCurve, kept: Places) -> tuple[list[float], list[float]]:
    """Answers returned and errors among them at each cutoff kept, as exact as they were counted."""
    sweep = curve.sweep
    if not sweep.threshold.size:
        return [0.0] * len(kept), [0.0] * len(kept)
    first = sweep.threshold.size - kept  # of the sums from the top so many are added up at a cutoff
    returned, wrong = (np.where(first > 0, sums[first - 1], 0.0) for sums in sweep.from_the_top)
    return [_tidy(value) for value in returned.tolist()], [_tidy(value) for value in wrong.tolist()]


def _tidy(value: float) -> float:
    """A whole number where it is one; sums of weights to six decimals."""
    return int(value) if value == int(value) else round(value, 6)


def reading_at(system: Mapping[str, Any], x: float, ratio: float) -> dict[str, Any]:
    """What a system does at the cutoff that withholds most without going beyond `x`, else at its first."""
    total = system["total"]
    place = max(0, bisect_right(system["returned"], x + 1e-9, key=lambda kept: (total - kept) / total) - 1)
    returned, wrong = system["returned"][place], system["wrong"][place]
    nonreturn, error = (total - returned) / total, wrong / total
    return {
        "name": system["name"],
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


STYLE = files("demur.returns.explorer").joinpath("explorer.css").read_text(encoding="utf-8")
MODULES = {
    name: files("demur.returns.explorer").joinpath(name).read_text(encoding="utf-8")
    for name in ("explorer_numbers.js", "explorer_reading.js", "explorer.js")
}
"""The script's modules, each after those that it imports."""

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

COLUMNS = {
    "threshold": "threshold",
    "nonreturn": "non-return",
    "error": "error",
    "returned": "returned",
    "right": "right",
    "wrong": "wrong",
    "withheld": "withheld",
    "missed": "missed chances",
    "cost": "cost",
}
"""What the live table tells of each system."""


def explorer_document(
    evaluations: Sequence[Evaluation], comparison: Comparison | None = None, *, points: int = POINTS
) -> dict[str, Any]:
    """Everything the explorer needs as plain values: counts of each system, pairs, words and the Vega-Lite spec.

    Of each system at most `points` cutoffs are kept (more only where its cost path alone has more), evenly by the
    weight between them; the counts at each of them are exact. Thresholds have as few digits as split the answers the
    same way; null means: return nothing.
    """
    if not evaluations:
        raise UsageError("an explorer needs at least one evaluation; got none")
    names = [one.name for one in evaluations]
    if comparison is not None and names != [one.name for one in comparison.evaluations if one.part is None]:
        raise UsageError(f"the comparison is not one of these systems: {listed(names)}")
    asked = evaluations[0].measures.get("error_at_nonreturn", ErrorAtNonreturn())
    assert isinstance(asked, ErrorAtNonreturn)
    point = asked.x if asked.to is None else (asked.x + asked.to) / 2  # of a range its middle
    at = max(point, min(one.curve.floor for one in evaluations))
    drawn = explorer_chart(evaluations, comparison)
    title, subtitle = pictures.titles(drawn)
    lead = lead_rows(evaluations, comparison)
    shade = []
    if any(row["better"] for row in lead):
        others = " than all others" if len(names) > 2 else ""
        shade = [f"tinted, and named under the plot: where one system is shown to err less{others}"]
    pairs = [] if comparison is None else [pair.to_dict() for pair in comparison.pairs]
    kept = ("a", "b", "verdict", "intervals", "crossings")
    values: dict[str, Any] = plain(
        {
            "title": title,
            "subtitle": " · ".join([subtitle, *shade]),
            "description": str(drawn.get("description", "")),
            "at": at,
            "ratio": RATIO,
            "systems": [system_points(one, place, at, points) for place, one in enumerate(evaluations)],
            "pairs": [{key: pair[key] for key in kept} for pair in pairs],
            "spec": explorer_spec(drawn, lead),
        }
    )
    return values


def explorer_html(
    document: Mapping[str, Any], *, ident: str = "explorer", picture: bool = True, embed: bool = True
) -> str:
    """A figure with its controls and live table; complete without scripts where it has its `picture`.

    With `embed` the figure holds its document, otherwise the page has it elsewhere.
    """
    points = [reading_at(system, document["at"], document["ratio"]) for system in document["systems"]]
    plot = ""
    if picture:
        plot = pictures.embedded(pictures.svg_of(static_spec(document, points)), document["description"])
    return (
        f'<figure class="explorer" id="{escape(ident)}" data-explorer="{escape(ident)}-document">'
        f"<figcaption><h3>{written(document['title'])}</h3>"
        f'<p class="subtitle">{written(document["subtitle"])}</p></figcaption>'
        f'<div class="chart explorer-plot" data-part="plot">{plot}</div>'
        f"{_controls(document, escape(ident))}"
        f'<p class="explorer-said" data-part="said">{written(operating_sentence(document, points))}</p>'
        '<p class="explorer-unseen" role="status" data-part="status"></p>'
        f"{_live_table(document, points)}"
        f'<p class="description">{written(document["description"])}</p>'
        f"{data_table(points_frame(document), 'Data behind this figure')}"
        f"{data_block(document, f'{ident}-document') if embed else ''}</figure>"
    )


def explorer_script() -> str:
    """The script of a self-contained page that brings every explorer on it to life; `vegaEmbed` is there already."""
    return _BETWEEN.sub("", "".join(MODULES.values())) + START


def operating_sentence(document: Mapping[str, Any], points: Sequence[Mapping[str, Any]]) -> str:
    """What the systems do when each withholds the same share; of many the best and the worst."""
    inputs = f" of {count(points[0]['returned'] + points[0]['withheld'])}"

    def errors(point: Mapping[str, Any], total: str = "") -> str:
        return f"{count(point['wrong'])}{total} ({percent(point['error'])})"

    if len(points) > MOST_NAMED:
        best, worst = (chosen(points, key=lambda one: float(one["error"])) for chosen in (min, max))
        fewest = f"{best['name']} answers fewest wrongly, {errors(best, inputs)}"
        counts = f"{fewest}, and {worst['name']} most, {errors(worst)}"
    else:
        first, *others = points
        wrong = f"{first['name']} answers {count(first['wrong'])}{inputs} wrongly ({percent(first['error'])})"
        counts = listed([wrong, *(f"{one['name']} {errors(one)}" for one in others)])
    floors = {one["name"]: (one["total"] - one["returned"][0]) / one["total"] for one in document["systems"]}
    late = [f"{name} {percent(floor)}" for name, floor in floors.items() if floor > document["at"] + 1e-9]
    more = f" More is withheld by the system itself: {listed(late)}." if late else ""
    return f"Withholding {percent(document['at'])} of the inputs, {counts}.{more}{_shown_better(document, points)}"


def _shown_better(document: Mapping[str, Any], points: Sequence[Mapping[str, Any]]) -> str:
    """Whether the system with the fewest errors is shown to be better here, and than which."""
    if not document["pairs"]:
        return ""
    best = min(points, key=lambda one: float(one["error"]))["name"]
    worse = [
        str(pair["b"] if pair["a"] == best else pair["a"])
        for pair in document["pairs"]
        for part in pair["intervals"]
        if pair[part["better"]] == best and part["from"] <= document["at"] <= part["to"]
    ]
    if not worse:
        return " No difference is shown here." if len(points) == 2 else f" {best} is not shown to be better here."
    others = len(points) - 1
    named = listed(worse) if len(worse) <= MOST_NAMED else f"{len(worse)} of the {others} others"
    return f" {best} is shown to err less here" + ("." if len(worse) == others else f" than {named}.")


def _live_table(document: Mapping[str, Any], points: Sequence[Mapping[str, Any]]) -> str:
    head = "".join(f'<th scope="col">{name}</th>' for name in ("system", *COLUMNS.values()))
    rows = ""
    for system, point in zip(document["systems"], points, strict=True):
        cutoff = "return nothing" if point["threshold"] is None else threshold_text(float(point["threshold"]))
        rates = [tabled_percent(point[name]) for name in ("nonreturn", "error")]
        counts = [count(point[name]) for name in ("returned", "right", "wrong", "withheld", "missed")]
        cells = "".join(f"<td>{written(cell)}</td>" for cell in (cutoff, *rates, *counts, number(point["cost"])))
        style = system["style"]
        rows += (
            '<tr><th scope="row">'
            '<svg class="explorer-swatch" width="30" height="8" aria-hidden="true"><line x1="0" x2="30" y1="4" y2="4" '
            f'stroke="{style["colour"]}" stroke-width="{style["width"]}" '
            f'stroke-dasharray="{" ".join(map(str, style["dash"]))}"/></svg>'
            f"{written(system['name'])}</th>{cells}</tr>"
        )
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="At the operating point">'
        '<table class="explorer-table"><caption>At the operating point '
        f'<span class="explorer-quiet">(cost: error + <span data-part="rated">{document["ratio"]:g}</span> × '
        f"non-return)</span></caption><thead><tr>{head}</tr></thead>"
        f'<tbody data-part="rows">{rows}</tbody></table></div>'
    )


def _controls(document: Mapping[str, Any], ident: str) -> str:
    """The controls, hidden until the script is there to use them."""
    alone = " hidden" if len(document["systems"]) == 1 else ""
    kinds = (
        ("share", "the same share withheld"),
        ("threshold", "one threshold for all"),
        ("cost", "the cheapest threshold of each"),
    )
    choices = "".join(
        f'<label><input type="radio" name="{ident}-align" value="{value}" data-part="align"> {words}</label>'
        for value, words in kinds
    )
    ends = "".join(
        f'<label>{end} <input type="number" min="0" max="100" step="any" data-part="{end}"> %</label> '
        for end in ("from", "to")
    )
    return (
        '<div class="explorer-controls" data-part="controls" hidden>'
        '<p class="explorer-quiet">Drag over the plot, or set it here: the table follows.</p>'
        f'<fieldset class="explorer-align"{alone}><legend>Compare at</legend>{choices}</fieldset>'
        '<div class="explorer-slider">'
        f'<label for="{ident}-x" data-part="named">Share withheld</label>'
        f'<input type="range" id="{ident}-x" data-part="x" min="0" max="1" step="any">'
        f'<span><input type="number" step="any" data-part="typed" aria-label="Share withheld in percent">'
        '<span data-part="unit">%</span></span></div>'
        '<div class="explorer-slider">'
        f'<label for="{ident}-ratio">Cost of a non-return</label>'
        f'<input type="range" id="{ident}-ratio" data-part="ratio" min="0" max="0.99" step="0.01">'
        '<span data-part="price"></span></div>'
        '<details class="explorer-region" data-part="marking"><summary>Mark a range of answers</summary>'
        "<p>Hold Shift and drag over the plot, or say from where to where along the share withheld.</p>"
        f"<p>{ends}"
        '<button type="button" data-part="clear">Clear</button></p><p data-part="marked"></p></details></div>'
    )


def static_spec(document: Mapping[str, Any], points: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The spec with its named data sets filled: the curves, and the handles at an operating point."""
    rows = points_frame(document).select("system", "nonreturn", "error").to_dicts()
    handles = [
        {
            "nonreturn": point["nonreturn"],
            "error": point["error"],
            "top": point["error"],
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
