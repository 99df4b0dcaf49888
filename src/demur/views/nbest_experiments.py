"""How the experiments on N-best lists are shown."""

from __future__ import annotations

import math
from collections.abc import Sequence

import polars as pl

from demur.analyses.nbest_experiments import LengthSweep, ScorerTable, Smooths
from demur.measures.registry import NBEST
from demur.views.nbest_presentation import measure_table, part_table, parts_frame
from demur.views.nbest_words import AS_PERCENT, NAMES, shown
from demur.views.presentation import Presentation, Table, drawing
from demur.views.words import number

TABLE_3 = ("wser", "oracle", "nce", "ice")
"""Measures that the figures of experiments show."""

AXES = {
    "ice": "ICE of the dialogue's lists",
    "oracle": "oracle error of the dialogue's lists",
    "reward": "reward (20 for success, less 1 a turn)",
}


def of_scorers(table: ScorerTable) -> Presentation:
    """Scorers by measures, as in Table 3."""
    systems = table.evaluations
    return Presentation(
        title="Confidence scorers",
        sentences=tuple(_scorer_sentences(table)),
        tables=(measure_table(systems), part_table(systems)),
        figures=(
            drawing("scorer_chart", _scorer_rows(table), level=systems[0].manner.level),
            drawing("parts_chart", parts_frame(systems), level=systems[0].manner.level),
        ),
        data=table.frame,
        document=table.to_dict(),
        notes=(f"every scorer has the same {table.sentences} best sentences of each utterance",),
        signatures=tuple(one.signature for one in systems),
    )


def _scorer_sentences(table: ScorerTable) -> list[str]:
    told = []
    for key in TABLE_3:
        defined = [one for one in table.evaluations if one.figures[key].defined]
        if not defined:
            continue
        sign = 1 if NBEST[key].better == "lower" else -1
        best = min(defined, key=lambda one: sign * one.figures[key].value)
        same = [one.system for one in defined if one.figures[key].value == best.figures[key].value]
        whom = best.system if len(same) == 1 else f"{', '.join(same[:-1])} and {same[-1]} alike"
        told.append(f"{NAMES[key]} is best for {whom} ({shown(key, best.figures[key].value)}).")
    return told


def _scorer_rows(table: ScorerTable) -> pl.DataFrame:
    return pl.DataFrame(
        [
            {
                "scorer": one.system,
                "measure": NAMES[key].partition(",")[0],
                "value": one.figures[key].value,
                "low": one.figures[key].low,
                "high": one.figures[key].high,
                "better": NBEST[key].better,
                "percent": key in AS_PERCENT,
            }
            for one in table.evaluations
            for key in TABLE_3
        ]
    )


def of_lengths(sweep: LengthSweep) -> Presentation:
    """Measures by condition and number of sentences, as in figure 1."""
    return Presentation(
        title="Measures by number of sentences",
        sentences=tuple(_length_sentences(sweep)),
        tables=tuple(_length_table(sweep, key) for key in ("ice", "wser", "oracle", "nce")),
        figures=tuple(
            drawing(
                "sweep_chart",
                sweep.of(key),
                what="sentences",
                measure_title=NAMES[key].partition(",")[0],
                condition_title=(sweep.by or "").replace("_", " "),
                level=sweep.level,
            )
            for key in ("ice", "wser", "oracle", "nce")
        ),
        data=sweep.frame,
        document=sweep.to_dict(),
        notes=(f"lists made by {sweep.scorer} from the best sentences of each utterance",),
    )


def _length_sentences(sweep: LengthSweep) -> list[str]:
    """For each measure, whether longer lists make it better or worse, in how many conditions."""
    told = []
    for key in ("ice", "wser", "oracle", "nce"):
        rows = sweep.of(key)
        changes = []
        for part in rows.partition_by("condition", maintain_order=True):
            ordered = part.sort("kept")["value"]
            sign = 1 if NBEST[key].better == "lower" else -1
            changes.append(sign * (float(ordered[-1]) - float(ordered[0])))
        better = sum(change < 0 for change in changes)
        mixed = "better in some conditions, worse in others"
        way = "better" if better == len(changes) else "worse" if better == 0 else mixed
        told.append(f"With more sentences {NAMES[key].partition(',')[0]} gets {way}.")
    return told


def _length_table(sweep: LengthSweep, key: str) -> Table:
    rows = sweep.of(key)
    lengths = sorted(rows["kept"].unique())
    cells = []
    for part in rows.partition_by("condition", maintain_order=True):
        values = dict(part.select("kept", "value").iter_rows())
        cells.append((str(part["condition"][0]), *(shown(key, values[length]) for length in lengths)))
    return Table(
        f"{NAMES[key].partition(',')[0]} by number of sentences",
        ((sweep.by or "condition").replace("_", " "), *map(str, lengths)),
        tuple(cells),
    )


def of_smooths(smooths: Smooths, *, title: str) -> Presentation:
    """One quantity of dialogues against another, as in figures 2 and 3."""
    left_out = (f"{smooths.left_out:,} dialogues left out: {smooths.x} or {smooths.y} undefined",)
    return Presentation(
        title=title,
        sentences=tuple(_smooth_sentences(smooths)),
        tables=(_smooth_table(smooths),),
        figures=(drawing("smooth_chart", smooths.curves, x_title=_axis(smooths.x), y_title=_axis(smooths.y)),),
        data=smooths.frame,
        document=smooths.to_dict(),
        notes=("Gaussian process, Matern 5/2, type II maximum likelihood; bands of one standard error",)
        + (left_out if smooths.left_out else ()),
    )


def _axis(name: str) -> str:
    return AXES.get(name, NAMES.get(name, name))


def _smooth_sentences(smooths: Smooths) -> list[str]:
    told = []
    for curve in smooths.curves:
        mean = curve.mean
        first, last = float(mean[0]), float(mean[-1])
        way = "falls" if last < first else "rises"
        told.append(
            f"{curve.name} ({curve.n:,} dialogues): {smooths.y} {way} from {number(first)} to {number(last)} as "
            f"{smooths.x} goes from {number(float(curve.x[0]))} to {number(float(curve.x[-1]))}."
        )
    return told


def _smooth_table(smooths: Smooths) -> Table:
    rows: list[tuple[str, ...]] = []
    for curve in smooths.curves:
        for place in _places(curve.x.size):
            error = float(curve.error[place])
            spread = "–" if math.isnan(error) else f"± {number(error)}"
            rows.append((curve.name, number(float(curve.x[place])), number(float(curve.mean[place])), spread))
    return Table("Along the curves", ("group", smooths.x, smooths.y, "one standard error"), tuple(rows))


def _places(size: int, wanted: int = 5) -> Sequence[int]:
    return sorted({round(step * (size - 1) / (wanted - 1)) for step in range(wanted)})
