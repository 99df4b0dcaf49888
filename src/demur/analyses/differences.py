"""Differences of error-return curves with bands that hold for all pairs and all non-return rates at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from demur.analyses.bands import GRID
from demur.measures.curves import ErrorReturnCurve
from demur.measures.intervals import normal, student
from demur.measures.resampling import Rows
from demur.measures.returns import curve_at
from demur.measures.sweep import Sweep

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class DifferenceBand:
    """Error rate of `a` less that of `b` over non-return rates, with a band that holds over all of them at once."""

    x: Array
    difference: Array
    low: Array
    high: Array


def difference_bands(
    couples: list[tuple[str, str]],
    curves: Mapping[str, ErrorReturnCurve],
    samples: Mapping[str, Sweep],
    rows: Mapping[str, Rows],
    level: float,
    region: tuple[float, float] = (0.0, 1.0),
) -> dict[tuple[str, str], DifferenceBand]:
    """Bands of all pairwise differences under one critical value."""
    parts, worst = {}, []
    for one, two in couples:
        start = max(curves[one].floor, curves[two].floor, region[0])
        x = np.linspace(start, max(start, region[1]), GRID)
        difference = curves[one].error_at(x) - curves[two].error_at(x)
        drawn = curve_at(samples[one], x) - curve_at(samples[two], x)
        deviation = _steady_deviation(drawn, rows[one], rows[two])
        parts[one, two] = (x, difference, deviation)
        worst.append((np.abs(drawn - difference) / deviation).max(axis=1))
    single = student(level, min(part.units for part in rows.values()) - 1)
    critical = max(single, float(np.quantile(np.max(worst, axis=0), level)) * single / normal(level))
    return {
        couple: DifferenceBand(x, difference, difference - critical * deviation, difference + critical * deviation)
        for couple, (x, difference, deviation) in parts.items()
    }


def _steady_deviation(drawn: Array, one: Rows, two: Rows) -> Array:
    """Standard deviation of the replicates and one further discordant input, so never 0 where none is left."""
    units = min(one.units, two.units)
    heaviest = max(part.weight.size / part.units for part in (one, two))
    floor = heaviest / min(one.effective_n, two.effective_n)
    return np.asarray(np.sqrt(drawn.var(axis=0) * units / max(units - 1, 1) + floor**2))
