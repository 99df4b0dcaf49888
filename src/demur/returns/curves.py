"""Curves read from a sweep: error-return, missed chance, selective risk, ROC, DET."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from demur.core.arrays import Array
from demur.core.show.results import Shown, plain
from demur.core.stats.sweep import Sweep, ratio

Kind = Literal["missed_chance", "risk_coverage", "roc", "det"]

AXES: dict[Kind, tuple[str, str]] = {
    "missed_chance": ("nonreturn", "missed_chance"),
    "risk_coverage": ("coverage", "risk"),
    "roc": ("errors_returned", "right_returned"),
    "det": ("errors_returned", "right_withheld"),
}
"""What stands on the two axes of each kind of curve."""


@dataclass(frozen=True, eq=False)
class ErrorReturnCurve(Shown):
    """Error rate against non-return rate at every cutoff of one system, from returning all to returning nothing.

    The last threshold is NaN: return nothing. Between two cutoffs the curve is the straight line.

    >>> curve = error_return(Sweep.of([0.9, 0.5, 0.5], [True, False, True], withheld=1), name="guide")
    >>> curve.frame().select("threshold", "nonreturn", "error").rows()
    [(0.5, 0.25, 0.25), (0.9, 0.75, 0.0), (nan, 1.0, 0.0)]
    """

    name: str
    sweep: Sweep

    @cached_property
    def threshold(self) -> Array:
        """Cutoffs in rising order; an answer is returned iff its confidence is at least this."""
        return np.append(self.sweep.threshold, np.nan)

    @property
    def nonreturn(self) -> Array:
        """Withheld / all inputs."""
        return self.sweep.rates[0]

    @property
    def error(self) -> Array:
        """Wrong and returned / all inputs."""
        return self.sweep.rates[1]

    @cached_property
    def missed_chance(self) -> Array:
        """Right and withheld / all inputs, the system's own non-returns aside."""
        withheld = np.concatenate([[0.0], np.cumsum(self.sweep.right, dtype=np.float64)])
        return np.asarray(withheld / self.sweep.total)

    @property
    def accuracy(self) -> Array:
        """Right and returned / all inputs."""
        return np.asarray(self.missed_chance[-1] - self.missed_chance)

    @property
    def floor(self) -> float:
        """Non-return rate at which the curve starts: what the system withholds by itself."""
        return float(self.nonreturn[0])

    def error_at(self, x: Any) -> Array:
        """Error rate at non-return rates `x`, read off the straight pieces; left of the start, the first value."""
        return np.asarray(np.interp(np.asarray(x, dtype=np.float64), self.nonreturn, self.error))

    def threshold_at(self, x: float) -> float | None:
        """The cutoff that withholds most without going beyond `x`; None where the system itself withholds more."""
        place = int(np.searchsorted(self.nonreturn, x + 1e-12, side="right")) - 1
        return None if place < 0 else float(self.threshold[place])

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

    def frame(self, *, points: int | None = None) -> pl.DataFrame:
        """The curve as a table; `points` thins it to about that many rows that look the same when drawn."""
        kept = slice(None) if points is None else self._thinned(points)
        nonreturn, error, missed = (part[kept] for part in (self.nonreturn, self.error, self.missed_chance))
        return pl.DataFrame(
            {
                "system": pl.repeat(self.name, nonreturn.size, eager=True),
                "threshold": self.threshold[kept],
                "nonreturn": nonreturn,
                "error": error,
                "accuracy": self.missed_chance[-1] - missed,
                "missed_chance": missed,
                "selective_risk": ratio(error, 1 - nonreturn),
                "returned": (1 - nonreturn) * self.sweep.total,
                "wrong_returned": error * self.sweep.total,
            }
        )

    def _thinned(self, points: int) -> NDArray[np.int64]:
        """Places to keep, which several figures ask for."""
        if points not in self._kept:
            self._kept[points] = thinned(self.nonreturn, self.error, points=points)
        return self._kept[points]

    @cached_property
    def _kept(self) -> dict[int, NDArray[np.int64]]:
        return {}

    def to_dict(self, *, points: int | None = 2000) -> dict[str, Any]:
        """The curve as plain values; NaN becomes null."""
        columns = self.frame(points=points).drop("system").to_dict(as_series=False)
        return {"system": self.name, "n": self.sweep.n, **plain(columns)}


@dataclass(frozen=True, eq=False)
class Curve(Shown):
    """Another reading of the sweep: `x` and `y` at every cutoff, with axes named by `kind`."""

    name: str
    kind: Kind
    x: Array
    y: Array
    threshold: Array

    def frame(self, *, points: int | None = None) -> pl.DataFrame:
        """The curve as a table whose columns carry the names of the axes."""
        x_name, y_name = AXES[self.kind]
        table = pl.DataFrame(
            {
                "system": pl.repeat(self.name, self.x.size, eager=True),
                "threshold": self.threshold,
                x_name: self.x,
                y_name: self.y,
            }
        )
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
