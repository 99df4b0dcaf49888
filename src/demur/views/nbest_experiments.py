"""How the experiments on N-best lists are shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from demur.analyses.gaussian_process import Smooth
from demur.analyses.nbest_experiments import LengthSweep, ScorerTable, Smooths
from demur.data.wording import Wording
from demur.measures.registry import NBEST
from demur.views.nbest_presentation import measure_table, part_table, parts_frame
from demur.views.nbest_words import AS_PERCENT, NAMES, shown
from demur.views.presentation import Presentation, Table, drawing
from demur.views.words import number

TABLE_3 = ("wser", "oracle", "nce", "ice")
"""Measures that the figures of experiments show."""

REWARD = "reward (20 for success, less 1 a turn)"


def of_scorers(table: ScorerTable) -> Presentation:
    """Scorers by measures, as in Table 3."""
    systems = table.evaluations
    return Presentation(
        title="Confidence scorers",
        sentences=tuple(_scorer_sentences(table)),
        tables=(measure_table(systems), part_table(systems)),
        figures=(
            drawing("scorer_chart", scorer_rows(table), level=systems[0].manner.level),
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
        end = "lowest" if NBEST[key].better == "lower" else "highest"
        told.append(f"{NAMES[key]} is {end} for {whom} ({shown(key, best.figures[key].value)}).")
    return told


def scorer_rows(table: ScorerTable) -> pl.DataFrame:
    """What the figure of scorers shows, a row per scorer and measure."""
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
            drawing("sweep_chart", sweep_rows(sweep, key), **sweep_titles(sweep, key))
            for key in ("ice", "wser", "oracle", "nce")
        ),
        data=sweep.frame,
        document=sweep.to_dict(),
        notes=(f"lists made by {sweep.scorer} from the best sentences of each utterance",),
    )


def sweep_rows(sweep: LengthSweep, key: str) -> pl.DataFrame:
    """The rows of one measure as its figure shows them, in percent where tables do."""
    scale = 100.0 if key in AS_PERCENT else 1.0
    return sweep.of(key).with_columns(pl.col("value", "low", "high") * scale)


def sweep_titles(sweep: LengthSweep, key: str = "ice") -> dict[str, Any]:
    """What the figure of one measure is told beside its rows."""
    return {
        "what": "sentences",
        "measure_title": NAMES[key].partition(",")[0] + (", %" if key in AS_PERCENT else ""),
        "condition_title": (sweep.by or "").replace("_", " "),
        "level": sweep.level,
    }


def _length_sentences(sweep: LengthSweep) -> list[str]:
    """For each measure, whether longer lists make it better or worse; nothing where all lists are equally long."""
    lengths = sorted(sweep.rows["kept"].unique())
    if len(lengths) < 2:
        return []
    ends = f"From {lengths[0]} to {lengths[-1]} sentences"
    return [
        f"{ends} {NAMES[key].partition(',')[0]} {_way(_changes(sweep, key))}."
        for key in ("ice", "wser", "oracle", "nce")
    ]


def _changes(sweep: LengthSweep, key: str) -> list[float]:
    """By how much a measure gets worse from the shortest lists to the longest, in each condition; NaN if undefined."""
    sign = 1 if NBEST[key].better == "lower" else -1
    parts = sweep.of(key).sort("kept").partition_by("condition", maintain_order=True)
    return [sign * (float(part["value"][-1]) - float(part["value"][0])) for part in parts]


def _way(changes: Sequence[float]) -> str:
    """Which way a measure goes.

    >>> _way([-0.5, -0.1]), _way([0.0]), _way([-0.5, 0.1])
    ('gets better', 'stays as it is', 'gets better in 1 of 2 conditions, worse in 1')
    """
    if any(math.isnan(change) for change in changes):
        return "cannot be followed: somewhere it is undefined"
    better, worse = sum(change < 0 for change in changes), sum(change > 0 for change in changes)
    if not better and not worse:
        return "stays as it is"
    if max(better, worse) == len(changes):
        return "gets better" if better else "gets worse"
    return f"gets better in {better} of {len(changes)} conditions, worse in {worse}"


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


def of_smooths(smooths: Smooths) -> Presentation:
    """One quantity of dialogues against another, as in figures 2 and 3."""
    count = Wording(f"{smooths.unit} left out", f"{smooths.unit}s left out").told(smooths.left_out)
    left_out = (f"{count}: {_called(smooths.x)} or {_called(smooths.y)} undefined",)
    return Presentation(
        title=f"{_called(smooths.y).replace('reward', 'Reward')} against {_called(smooths.x)}",
        sentences=tuple(_smooth_sentences(smooths)),
        tables=(_smooth_table(smooths),),
        figures=(drawing("smooth_chart", named_curves(smooths), **axes(smooths)),),
        data=smooths.frame,
        document=smooths.to_dict(),
        notes=("Gaussian process, Matern 5/2, type II maximum likelihood; bands of one standard error",)
        + (left_out if smooths.left_out else ()),
    )


def named_curves(smooths: Smooths) -> tuple[Smooth, ...]:
    """The curves, each named with the column that its group comes from."""
    if smooths.by is None:
        return smooths.curves
    column = smooths.by.replace("_", " ")
    return tuple(replace(curve, name=f"{column} {curve.name}") for curve in smooths.curves)


def axes(smooths: Smooths) -> dict[str, str]:
    """The titles of the axes, and which way is better."""
    better = "higher" if smooths.y == "reward" else NBEST[smooths.y].better
    return {"x_title": _axis(smooths, smooths.x), "y_title": _axis(smooths, smooths.y), "better": better}


def _axis(smooths: Smooths, name: str) -> str:
    return REWARD if name == "reward" else f"{_called(name)} of the {smooths.unit}'s lists"


def _called(name: str) -> str:
    """A quantity's name in a sentence.

    >>> _called("oracle"), _called("ser"), _called("reward")
    ('oracle error', 'SER, top hypothesis', 'reward')
    """
    return NAMES.get(name, name).removesuffix(" (ORA)")


def _smooth_sentences(smooths: Smooths) -> list[str]:
    told = []
    for curve in named_curves(smooths):
        mean = curve.mean
        first, last = float(mean[0]), float(mean[-1])
        points = Wording(smooths.unit, f"{smooths.unit}s").told(curve.n)
        way = f"{'falls' if last < first else 'rises'} from {number(first)} to {number(last)}"
        told.append(
            f"{curve.name} ({points}): {_called(smooths.y)} {f'stays at {number(first)}' if first == last else way} as "
            f"{_called(smooths.x)} goes from {number(float(curve.x[0]))} to {number(float(curve.x[-1]))}."
        )
    return told


def _smooth_table(smooths: Smooths) -> Table:
    rows: list[tuple[str, ...]] = []
    for curve in named_curves(smooths):
        for place in _places(curve.x.size):
            error = float(curve.error[place])
            spread = "–" if math.isnan(error) else f"± {number(error)}"
            rows.append((curve.name, number(float(curve.x[place])), number(float(curve.mean[place])), spread))
    return Table(
        "Along the curves", ("group", _called(smooths.x), _called(smooths.y), "one standard error"), tuple(rows)
    )


def _places(size: int, wanted: int = 5) -> Sequence[int]:
    return sorted({round(step * (size - 1) / (wanted - 1)) for step in range(wanted)})
