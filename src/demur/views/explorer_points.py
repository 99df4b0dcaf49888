"""The points of curves as the explorer tells them: exact counts at a bounded number of cutoffs."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.analyses.evaluation import Evaluation
from demur.analyses.threshold import cost_path, short_thresholds
from demur.measures.curves import ErrorReturnCurve
from demur.show import threshold_text
from demur.views.lines import style_of

Places = NDArray[np.int64]

_NUMBERS = {"returned": pl.Float64, "wrong": pl.Float64}


def system_points(evaluation: Evaluation, order: int, at: float, points: int) -> dict[str, Any]:
    """A system as the explorer tells it: counts at its cutoffs, its cost path, and the style of its line."""
    curve, style = evaluation.curve, style_of(order)
    path = cost_path(curve)
    corners = np.searchsorted(curve.nonreturn, [stretch.nonreturn for stretch in path])
    kept = kept_places(curve, corners, at, points)
    returned, wrong = _counts(curve, kept)
    thresholds = short_thresholds(curve, curve.threshold[corners])
    return {
        "name": evaluation.name,
        "n": evaluation.n,
        "total": _tidy(curve.sweep.total),
        "withheld": evaluation.withheld,
        "failed": evaluation.failed,
        "out_of_scope": evaluation.out_of_scope,
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
                "place": int(np.searchsorted(kept, corner)),
            }
            for stretch, corner, threshold in zip(path, corners, thresholds, strict=True)
        ],
    }


def kept_places(curve: ErrorReturnCurve, corners: Places, at: float, points: int) -> Places:
    """Places of the cutoffs that are told: the ends, those of the cost path, that at `at`, and others evenly by weight.

    >>> from demur.measures.curves import error_return
    >>> from demur.measures.sweep import Sweep
    >>> curve = error_return(Sweep.of([k / 100 for k in range(100)], [k % 3 > 0 for k in range(100)]))
    >>> kept_places(curve, np.array([], dtype=np.int64), 0.2, 6).tolist()
    [0, 20, 50, 100]
    """
    last = curve.threshold.size - 1
    if last < points:
        return np.arange(last + 1)
    here = max(0, int(np.searchsorted(curve.nonreturn, at + 1e-12, side="right")) - 1)
    wanted = np.union1d(corners, [0, here, last])
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
        counts = pl.DataFrame({name: system[name] for name in ("returned", "wrong")}, schema_overrides=_NUMBERS)
        rates = {
            "nonreturn": ((total - pl.col("returned")) / total).round(7),
            "error": (pl.col("wrong") / total).round(7),
        }
        texts = ["" if one is None else threshold_text(float(one)) for one in system["threshold"]]
        cutoffs = pl.Series("threshold", texts)
        told = counts.with_columns(**rates).insert_column(0, cutoffs)
        frames.append(told.select(pl.lit(system["name"]).alias("system"), pl.all()))
    return pl.concat(frames)
