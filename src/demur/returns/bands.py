"""Confidence bands for error-return curves and for their differences, pointwise and simultaneous."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from demur.core.arrays import Array
from demur.core.stats.intervals import check_level, exact_binomial, normal, student
from demur.core.stats.resampling import Rows, Sample, Spread
from demur.core.stats.sweep import Sweep
from demur.errors import UsageError
from demur.returns.curves import ErrorReturnCurve
from demur.returns.measures import curve_at

GRID = 201
"""Non-return rates at which bands are computed."""


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """Error rate over a grid of non-return rates with two bands.

    `low` and `high` hold at any one non-return rate; `low_all` and `high_all` hold over the whole `region` at once.
    """

    name: str
    x: Array
    error: Array
    low: Array
    high: Array
    low_all: Array
    high_all: Array
    level: float
    region: tuple[float, float]
    units: int
    clustered: bool

    def frame(self) -> pl.DataFrame:
        """The band as a table, one row per non-return rate."""
        columns = {"nonreturn": self.x, "error": self.error, "low": self.low, "high": self.high}
        table = pl.DataFrame({**columns, "low_all": self.low_all, "high_all": self.high_all})
        return table.select(pl.lit(self.name).alias("system"), pl.all())

    def to_dict(self) -> dict[str, Any]:
        """The band as plain values."""
        table = self.frame().drop("system").to_dict(as_series=False)
        about = {
            "level": self.level,
            "region": list(self.region),
            "units": self.units,
            "clustered": self.clustered,
        }
        return {"system": self.name, **about, **table}


def error_band(
    sample: Sample,
    *,
    name: str = "system",
    level: float = 0.95,
    region: tuple[float, float] = (0.0, 1.0),
    points: int = GRID,
) -> Band:
    """Bands of the error rate at given non-return rates, by the bootstrap over inputs or dialogues.

    At each non-return rate the replicates give a variance, and with it the number of independent inputs that would
    be as uncertain; an exact binomial interval on that number stays honest where few or no errors are left. The
    simultaneous band uses the quantile of the largest standardised deviation over the region instead of Student's t.
    """
    check_level(level)
    sweep, spread = sample.sweep, sample.spread
    floor = float(sweep.withheld / sweep.total)
    check_region(region)
    start, stop = max(region[0], floor), region[1]
    if not start <= stop:
        raise UsageError(f"the region {region[0]:g} to {region[1]:g} lies left of where the curve starts ({floor:.4g})")
    x = np.linspace(start, stop, points)
    error = curve_at(sweep, x)
    drawn = curve_at(sample.drawn, x)
    n_effective = effective_inputs(error, drawn, spread)
    deviation = np.abs(drawn - curve_at(sample.coarse, x)) / steady_deviation(error, n_effective)
    single = student(level, spread.units - 1)
    every = max(single, float(np.quantile(deviation.max(axis=1), level)) * single / student(level, 1e6))
    low, high = _within_reach(x, *exact_binomial(error, n_effective, single))
    low_all, high_all = _within_reach(x, *exact_binomial(error, n_effective, every))
    return Band(
        name,
        x,
        error,
        low,
        high,
        np.minimum(np.maximum.accumulate(low_all[::-1])[::-1], low),
        np.maximum(np.minimum.accumulate(high_all), high),
        level,
        (start, stop),
        spread.units,
        spread.clustered,
    )


def effective_inputs(error: Array, drawn: Array, spread: Spread) -> Array:
    """Independent inputs that would be as uncertain about each rate as the replicates are.

    Where fewer than five errors are returned, or the replicates hardly differ, they say little of their own spread:
    there the number is never above the count of inputs, nor above what it was at the last better-known rate; without
    such a rate it is that of independent dialogues.
    """
    n, units = spread.n, spread.units
    variance = drawn.var(axis=0) * units / max(units - 1, 1)
    binomial = error * (1 - error)
    known = (error * n >= 5) & (binomial > 1e-12) & (variance * n > binomial / 1000) & (units > 1)
    effective = np.divide(binomial, variance, out=np.full(error.shape, n), where=known)
    last = effective[known][-1] if known.any() else spread.most
    return np.where(known, effective, min(last, n))


def steady_deviation(error: Array, n_effective: Array) -> Array:
    """Standard deviation of a rate with two pseudo-errors and two pseudo-successes, which does not vanish at 0."""
    shrunk = (error * n_effective + 2) / (n_effective + 4)
    return np.sqrt(shrunk * (1 - shrunk) / n_effective)


def check_region(region: tuple[float, float]) -> None:
    """Refuse a region that is no rising range of rates."""
    if not 0 <= region[0] <= region[1] <= 1:
        raise UsageError(f"a region is a range of rates in [0, 1] that rises; got {region[0]:g} to {region[1]:g}")


def _within_reach(x: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """No more errors than answers: the error rate is at most 1 - x."""
    top = np.maximum(1 - x, 0.0)
    return np.minimum(low, top), np.minimum(high, top)


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
