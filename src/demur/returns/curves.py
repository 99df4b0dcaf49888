"""Curves read from a sweep (error-return, missed chance, selective risk, ROC, DET), and bands around them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Context
from heapq import heappop, heappush
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.arrays import Array
from demur.core.show.numbers import percent
from demur.core.show.results import Shown, plain, threshold_text
from demur.core.stats.intervals import check_level, exact_binomial, normal, student
from demur.core.stats.resampling import ComparedRows, Sample, Spread
from demur.core.stats.sweep import Sweep, ratio
from demur.errors import UsageError
from demur.returns.measures import curve_at, cutoff_at_nonreturn, cutoff_for_error

Kind = Literal["missed_chance", "risk_coverage", "roc", "det"]

AXES: dict[Kind, tuple[str, str]] = {
    "missed_chance": ("nonreturn", "missed_chance"),
    "risk_coverage": ("coverage", "risk"),
    "roc": ("errors_returned", "right_returned"),
    "det": ("errors_returned", "right_withheld"),
}
"""What stands on the two axes of each kind of curve."""

GRID = 201
"""Non-return rates at which bands are computed."""


NEAR_ENOUGH = 0.005
"""How far below a non-return rate a cutoff may lie and still be called one at that rate: half a point."""

A_FEW_INPUTS = 0.02
"""Share of the inputs up to which a single one is too little to speak of."""

HEAP = 0.05
"""Share of the inputs from which answers of one confidence are worth a note."""


def near_enough(n: float) -> float:
    """How far below the non-return rate asked for a cutoff of n inputs may lie and still be called one at that rate.

    Half a point, or one input; of a few inputs one is too much.

    >>> [round(near_enough(n), 3) for n in (1000, 100, 3)]
    [0.005, 0.01, 0.005]
    """
    return max(NEAR_ENOUGH, 1 / n if 1 / n <= A_FEW_INPUTS else 0.0) + 1e-12


def selective_risk(nonreturn: float, error: float) -> float:
    """Wrong answers / answers returned, from shares of all inputs; NaN where nothing is returned.

    >>> selective_risk(0.5, 0.1)
    0.2
    """
    return min(error / (1 - nonreturn), 1.0) if nonreturn < 1 else float("nan")


@dataclass(frozen=True, slots=True)
class CutoffPoint:
    """What one threshold does; a threshold of NaN returns nothing."""

    threshold: float
    nonreturn: float
    error: float

    @property
    def risk(self) -> float:
        """Wrong answers / answers returned: the selective risk; NaN where nothing is returned."""
        return selective_risk(self.nonreturn, self.error)


@dataclass(frozen=True, slots=True)
class Heaps:
    """How many confidences there are, and how many of the inputs have the most frequent one."""

    distinct: int
    largest: float
    count: float
    share: float

    @classmethod
    def of(cls, sweep: Sweep) -> Heaps | None:
        """The heaps of a sweep; None where nothing was answered, or where confidences were joined.

        >>> Heaps.of(Sweep.of([0.9, 0.9, 0.5], [True, False, True], withheld=1))
        Heaps(distinct=2, largest=0.9, count=2.0, share=0.5)
        """
        if not sweep.threshold.size or sweep.upper is not None:
            return None
        answers = np.add(sweep.right, sweep.wrong, dtype=np.float64)
        place = int(np.argmax(answers))
        count = float(answers[place])
        return cls(sweep.threshold.size, float(sweep.threshold[place]), count, count / sweep.total)

    @property
    def matter(self) -> bool:
        """Whether answers go together in numbers that keep thresholds from choosing freely; not without confidences."""
        return self.share >= HEAP and self.count > 1 and (self.distinct > 1 or self.largest > -np.inf)

    def note(self, name: str) -> str:
        """How few confidences a system has, as a sentence.

        >>> Heaps(12, 0.95, 31, 0.31).note("guide")
        'guide has 12 distinct confidences; the most frequent, 0.95, is that of 31 % of the inputs'
        """
        values = "1 distinct confidence" if self.distinct == 1 else f"{self.distinct:,} distinct confidences"
        most = f"the most frequent, {threshold_text(self.largest)}, is that of {percent(self.share)} of the inputs"
        return f"{name} has {values}; {most}"


@dataclass(frozen=True, eq=False, repr=False)
class ErrorReturnCurve(Shown):
    """Error rate against non-return rate at every cutoff of one system, from returning all to returning nothing.

    The last threshold is NaN: return nothing. Between two cutoffs the curve is the straight line.

    >>> curve = error_return(Sweep.of([0.9, 0.5, 0.5], [True, False, True], withheld=1), name="guide")
    >>> curve.frame().select("threshold", "nonreturn", "error").rows()
    [(0.5, 0.25, 0.25), (0.9, 0.75, 0.0), (nan, 1.0, 0.0)]
    """

    name: str
    sweep: Sweep
    _kept: dict[int, NDArray[np.int64]] = field(default_factory=dict, init=False, repr=False)
    """Places that thinning keeps, by the number of points: several figures ask for the same."""

    @property
    def threshold(self) -> Array:
        """Cutoffs in rising order; an answer is returned iff its confidence is at least this."""
        return self.sweep.cutoffs

    @property
    def nonreturn(self) -> Array:
        """Withheld / all inputs."""
        return self.sweep.rates[0]

    @property
    def error(self) -> Array:
        """Wrong and returned / all inputs."""
        return self.sweep.rates[1]

    @property
    def missed_chance(self) -> Array:
        """Right and withheld / all inputs, the system's own non-returns aside."""
        return self.sweep.missed_chance

    @property
    def accuracy(self) -> Array:
        """Right and returned / all inputs."""
        missed = self.missed_chance
        return np.asarray(missed[-1] - missed)

    @property
    def floor(self) -> float:
        """Non-return rate at which the curve starts: what the system withholds by itself."""
        return float(self.nonreturn[0])

    def error_at(self, x: Any) -> Array:
        """Error rate at non-return rates `x`, read off the straight pieces; left of the start, the first value."""
        return np.asarray(np.interp(np.asarray(x, dtype=np.float64), self.nonreturn, self.error))

    def point(self, place: int) -> CutoffPoint:
        """The cutoff at a place of the curve, from 0, which returns every answer."""
        return CutoffPoint(*(float(part[place]) for part in (self.threshold, self.nonreturn, self.error)))

    def point_at(self, x: float) -> CutoffPoint | None:
        """The cutoff that withholds most without going beyond `x`; None where the system itself withholds more.

        >>> error_return(Sweep.of([0.9, 0.5, 0.5], [True, False, True])).point_at(0.5)
        CutoffPoint(threshold=0.5, nonreturn=0.0, error=0.3333333333333333)
        """
        place = int(cutoff_at_nonreturn(self.nonreturn, x))
        return None if place < 0 else self.point(place)

    def point_beyond(self, x: float) -> CutoffPoint | None:
        """The cutoff that withholds least of those that withhold more than `x`; None where there is none."""
        place = int(cutoff_at_nonreturn(self.nonreturn, x)) + 1
        return None if place >= self.threshold.size else self.point(place)

    def point_for_error(self, most: float) -> CutoffPoint:
        """The cutoff that withholds least of those whose error rate is at most `most`."""
        return self.point(int(cutoff_for_error(self.error, most)))

    def reaches(self, x: float) -> bool:
        """Whether a cutoff withholds `x`, or so little less that it goes unsaid."""
        point = self.point_at(x)
        return point is not None and x - point.nonreturn <= near_enough(self.sweep.n)

    def threshold_at(self, x: float) -> float | None:
        """The threshold that withholds most without going beyond `x`; None where the system itself withholds more."""
        point = self.point_at(x)
        return None if point is None else point.threshold

    def at_threshold(self, threshold: float) -> tuple[float, float]:
        """Non-return rate and error rate when answers of at least this confidence are returned.

        >>> error_return(Sweep.of([0.9, 0.5, 0.5], [True, False, True])).at_threshold(0.5)
        (0.0, 0.3333333333333333)
        """
        place = int(np.searchsorted(self.sweep.threshold, threshold))
        return float(self.nonreturn[place]), float(self.error[place])

    def even_point(self) -> tuple[float, float]:
        """Where the missed-chance curve crosses the error curve: (non-return rate, common rate)."""
        gap = self.error - self.missed_chance
        place = int(np.argmax(gap <= 0))
        if place == 0:
            return self.floor, float(self.error[0])
        share = gap[place - 1] / (gap[place - 1] - gap[place])
        x = self.nonreturn[place - 1] + share * (self.nonreturn[place] - self.nonreturn[place - 1])
        return float(x), float(self.error_at(x))

    def random(self) -> tuple[Array, Array]:
        """The curve of a ranking at random: a line to (1, 0)."""
        return np.array([self.floor, 1.0]), np.array([self.error[0], 0.0])

    def oracle(self) -> tuple[Array, Array]:
        """The curve of a perfect ranking: slope -1 until no error is left, then 0."""
        clear = self.floor + self.error[0]
        return np.array([self.floor, clear, 1.0]), np.array([self.error[0], 0.0, 0.0])

    def outline(self, points: int) -> pl.DataFrame:
        """The curve as a table of at most so many rows, which looks the same in a small plot with many others."""
        height = max(float(self.error[0]), 1e-12)
        return self._frame(outline(self.nonreturn, self.error, tolerance=height / 1000, points=points))

    def frame(self, *, points: int | None = None) -> pl.DataFrame:
        """The curve as a table; `points` thins it to about that many rows that look the same when drawn."""
        if points is not None and points not in self._kept:
            self._kept[points] = thinned(self.nonreturn, self.error, points=points)
        return self._frame(slice(None) if points is None else self._kept[points])

    def _frame(self, kept: slice | NDArray[np.int64]) -> pl.DataFrame:
        every = self.missed_chance
        nonreturn, error, missed, most = self.nonreturn[kept], self.error[kept], every[kept], every[-1]
        return pl.DataFrame(
            {
                "system": pl.repeat(self.name, nonreturn.size, eager=True),
                "threshold": self.threshold[kept],
                "nonreturn": nonreturn,
                "error": error,
                "accuracy": most - missed,
                "missed_chance": missed,
                "selective_risk": ratio(error, 1 - nonreturn),
                "returned": (1 - nonreturn) * self.sweep.total,
                "wrong_returned": error * self.sweep.total,
            }
        )

    def to_dict(self, *, points: int | None = 2000) -> dict[str, Any]:
        """The curve as plain values; NaN becomes null."""
        columns = self.frame(points=points).drop("system").to_dict(as_series=False)
        return {"system": self.name, "n": self.sweep.n, **plain(columns)}


@dataclass(frozen=True, eq=False, repr=False)
class Curve(Shown):
    """Another reading of the sweep: `x` and `y` at every cutoff, with axes named by `kind`."""

    name: str
    kind: Kind
    x: Array
    y: Array
    threshold: Array

    def frame(self, *, points: int | None = None) -> pl.DataFrame:
        """The curve as a table whose columns carry the names of the axes."""
        columns = dict(zip(AXES[self.kind], (self.x, self.y), strict=True))
        table = pl.DataFrame({"threshold": self.threshold, **columns})
        table = table.select(pl.lit(self.name).alias("system"), pl.all())
        return table if points is None else table[thinned(self.x, self.y, points=points)]

    def to_dict(self, *, points: int | None = 2000) -> dict[str, Any]:
        """The curve as plain values; NaN becomes null."""
        columns = self.frame(points=points).drop("system").to_dict(as_series=False)
        return {"system": self.name, "kind": self.kind, **plain(columns)}


def error_return(sweep: Sweep, *, name: str = "system") -> ErrorReturnCurve:
    """The error-return curve of a sweep (Artstein 2011, section 3)."""
    return ErrorReturnCurve(name, sweep)


def curve(sweep: Sweep, kind: Kind, *, name: str = "system") -> Curve:
    """One of the other curves: missed chance, selective risk over coverage, ROC or DET of the accept decision.

    ROC and DET plot returned errors as a share of all errors, so they say nothing of the error rate.
    """
    base = ErrorReturnCurve(name, sweep)
    if kind == "missed_chance":
        x, y = base.nonreturn, base.missed_chance
    elif kind == "risk_coverage":
        x, y = 1 - base.nonreturn, ratio(base.error, 1 - base.nonreturn)
    else:
        x, hits = ratio(base.error, base.error[0]), ratio(base.accuracy, base.accuracy[0])
        y = hits if kind == "roc" else 1 - hits
    return Curve(name, kind, x, y, base.threshold)


def thinned(x: Array, y: Array, *, points: int) -> NDArray[np.int64]:
    """Places to keep so that at most about `points` are left and the drawn curve looks the same.

    Of a monotone curve a point stays wherever x or y enters a new step of a grid with points/2 steps, so none lost is
    further than 2/points away. Of another curve the first, last, lowest and highest point in each of points/4 columns
    stay (the M4 rule of Jugel et al. 2014).
    """
    if x.size <= points:
        return np.arange(x.size)
    across, up = np.nan_to_num(x), np.nan_to_num(y)
    rises = np.diff(up)
    if (rises >= 0).all() or (rises <= 0).all():
        height = max(float(np.ptp(up)), 1e-300)
        steps = np.floor(across * (points / 2)), np.floor((up - up.min()) / height * (points / 2))
        kept = np.logical_or.reduce([np.diff(step, prepend=np.nan) != 0 for step in steps])
        kept[-1] = True
        return np.flatnonzero(kept)
    column = np.floor(across * (points / 4))
    starts = np.flatnonzero(np.diff(column, prepend=np.nan) != 0)
    order = np.lexsort((up, np.cumsum(np.diff(column, prepend=column[0]) != 0)))
    ends = np.append(starts[1:], x.size) - 1
    return np.unique(np.concatenate([starts, ends, order[starts], order[ends]]))


def outline(x: Array, y: Array, *, tolerance: float, points: int) -> NDArray[np.int64]:
    """Places to keep so that straight lines between them are nowhere further from the curve than `tolerance`.

    The place that lies furthest from its line is added first (Ramer 1972, Douglas and Peucker 1973, along y), until
    none is too far, or `points` are kept.

    >>> outline(np.array([0.0, 0.1, 0.2, 0.6, 1.0]), np.array([1.0, 0.8, 0.6, 0.2, 0.0]), tolerance=0.11, points=9)
    array([0, 2, 4])
    """
    last = x.size - 1
    kept, waiting = [0, last], [_furthest(x, y, 0, last)]
    while waiting and len(kept) < points:
        distance, place, first, end = heappop(waiting)
        if -distance <= tolerance:
            break
        kept.append(place)
        for part in ((first, place), (place, end)):
            heappush(waiting, _furthest(x, y, *part))
    return np.unique(kept)


def _furthest(x: Array, y: Array, first: int, last: int) -> tuple[float, int, int, int]:
    """How far below 0 the greatest distance from the line between two places is, where that is, and the two places."""
    width = x[last] - x[first]
    if last - first < 2 or width <= 0:
        return 0.0, first, first, last
    line = y[first] + (x[first : last + 1] - x[first]) * ((y[last] - y[first]) / width)
    apart = np.abs(y[first : last + 1] - line)
    place = int(np.argmax(apart))
    return -float(apart[place]), first + place, first, last


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
        columns = {name: getattr(self, name) for name in ("error", "low", "high", "low_all", "high_all")}
        return pl.DataFrame({"nonreturn": self.x, **columns}).select(pl.lit(self.name).alias("system"), pl.all())

    def to_dict(self) -> dict[str, Any]:
        """The band as plain values."""
        about = {"level": self.level, "region": list(self.region), "units": self.units, "clustered": self.clustered}
        return {"system": self.name, **about, **self.frame().drop("system").to_dict(as_series=False)}


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
    shrunk = (error * n_effective + 2) / (n_effective + 4)  # two pseudo-errors and successes: no deviation is 0
    deviation = np.abs(drawn - curve_at(sample.coarse, x)) / np.sqrt(shrunk * (1 - shrunk) / n_effective)
    single = student(level, spread.units - 1)
    every = max(single, float(np.quantile(deviation.max(axis=1), level)) * single / student(level, 1e6))
    answers = np.maximum(1 - x, 0.0)  # there are no more errors than answers
    low, high = (np.minimum(end, answers) for end in exact_binomial(error, n_effective, single))
    low_all, high_all = (np.minimum(end, answers) for end in exact_binomial(error, n_effective, every))
    low_all = np.minimum(np.maximum.accumulate(low_all[::-1])[::-1], low)
    high_all = np.maximum(np.minimum.accumulate(high_all), high)
    ends = (low, high, low_all, high_all)
    return Band(name, x, error, *ends, level, (start, stop), spread.units, spread.clustered)


def effective_inputs(error: Array, drawn: Array, spread: Spread) -> Array:
    """Independent inputs that would be as uncertain about each rate as the replicates are.

    Where fewer than five errors are returned, or the replicates hardly differ, they say little of their own spread:
    there the number is never above the count of inputs, nor above what it was at the last better-known rate; without
    such a rate it is that of independent dialogues. Of a stratified sample the heaviest rows bound it, in which errors
    may have been missed.
    """
    n, units = spread.n, spread.units
    variance = drawn.var(axis=0) * units / max(units - 1, 1)
    binomial = error * (1 - error)
    known = (error * n >= 5) & (binomial > 1e-12) & (variance * n > binomial / 1000) & (units > 1)
    effective = np.divide(binomial, variance, out=np.full(error.shape, n), where=known)
    last = effective[known][-1] if known.any() else spread.most
    return np.where(known, effective, min(last, spread.unseen))


def check_region(region: tuple[float, float]) -> None:
    """Refuse a region that is no rising range of rates."""
    if not 0 <= region[0] <= region[1] <= 1:
        raise UsageError(f"a region is a range of rates in [0, 1] that rises; got {region[0]:g} to {region[1]:g}")


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
    rows: Mapping[str, ComparedRows],
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
        units = min(rows[one].units, rows[two].units)
        sides = (rows[one], rows[two])
        discordant = max(side.n / side.independent / side.effective_n for side in sides)  # no deviation is 0
        deviation = np.sqrt(drawn.var(axis=0) * units / max(units - 1, 1) + discordant**2)
        deviation = np.maximum(deviation, 2 * discordant)  # six inputs that all differ alike are shown, five are not
        parts[one, two] = (x, difference, deviation)
        worst.append((np.abs(drawn - difference) / deviation).max(axis=1))
    single = student(level, min(part.units for part in rows.values()) - 1)
    critical = max(single, float(np.quantile(np.max(worst, axis=0), level)) * single / normal(level))
    return {
        couple: DifferenceBand(x, difference, difference - critical * deviation, difference + critical * deviation)
        for couple, (x, difference, deviation) in parts.items()
    }


@dataclass(frozen=True, slots=True)
class Joined:
    """How exact a curve is that joins confidences: wholly at its cutoffs, between them to within the bounds here."""

    cutoffs: int
    resolution: float
    """The widest range of confidences that were joined."""
    x_within: float
    y_within: float

    @classmethod
    def of(cls, sweep: Sweep) -> Joined | None:
        """How exact the curve of a sweep is; None where all confidences were kept apart."""
        x_within, y_within = sweep.slack
        apart = sweep.highest > sweep.threshold
        resolution = float((sweep.highest[apart] - sweep.threshold[apart]).max(initial=0.0))
        return cls(sweep.threshold.size, resolution, x_within, y_within) if x_within > 0 else None

    def note(self, name: str) -> str:
        """How exact the curve of a system is, as a sentence."""
        off = f"off by at most {at_most(self.x_within)} in non-return and {at_most(self.y_within)} in error"
        joined = f"confidences up to {self.resolution:.2g} apart were joined"
        return f"{name}: {joined}; at its {self.cutoffs:,} cutoffs the curve is exact, between them it is {off}"


def at_most(rate: float) -> str:
    """A bound in percent, rounded up to two digits, so that it still holds as printed.

    >>> at_most(0.0000203), at_most(0.0), at_most(0.07)
    ('0.0021 %', '0 %', '7 %')
    """
    shown = Context(prec=2, rounding=ROUND_CEILING).create_decimal(f"{100 * rate:.6g}")
    return f"{shown.normalize():f} %"
