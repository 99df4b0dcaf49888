"""What to know of a regression before believing its coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from demur.analyses.outcome.least_squares import checked, least_squares
from demur.analyses.outcome.pieces import Array
from demur.show import plain

HIGH_INFLATION = 10.0
"""Variance inflation from which a coefficient is commonly said to be hard to tell from those of other predictors."""


@dataclass(frozen=True, slots=True)
class Range:
    """What the rows of the fit held of a predictor: its least and greatest value, mean and standard deviation."""

    low: float
    high: float
    mean: float
    sd: float

    def holds(self, value: float) -> bool:
        """Whether a value lies within."""
        return self.low <= value <= self.high


@dataclass(frozen=True, slots=True)
class Flip:
    """A predictor whose coefficient alone has another sign than beside the others."""

    term: str
    simple: float
    multiple: float


@dataclass(frozen=True, eq=False)
class Diagnostics:
    """Inflation, sign flips, ranges and standardised coefficients of the predictors of a regression."""

    inflation: dict[str, float]
    flips: tuple[Flip, ...]
    ranges: dict[str, Range]
    standardised: dict[str, float]

    @property
    def inflated(self) -> dict[str, float]:
        """Predictors with a variance inflation of `HIGH_INFLATION` or more."""
        return {name: factor for name, factor in self.inflation.items() if factor >= HIGH_INFLATION}

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain values."""
        ranges = {
            name: {"low": one.low, "high": one.high, "mean": one.mean, "sd": plain(one.sd)}
            for name, one in self.ranges.items()
        }
        flips = [{"term": flip.term, "simple": flip.simple, "multiple": flip.multiple} for flip in self.flips]
        inflation, standardised = plain(self.inflation), plain(self.standardised)
        return {"inflation": inflation, "flips": flips, "ranges": ranges, "standardised": standardised}


def diagnose(x: ArrayLike, y: ArrayLike, names: Sequence[str]) -> Diagnostics:
    """All of it for the regression of `y` on all columns of `x`."""
    columns, outcome = checked(x, y)
    return Diagnostics(
        inflation(columns, names),
        sign_flips(columns, outcome, names),
        ranges(columns, names),
        standardised(columns, outcome, names),
    )


def inflation(x: ArrayLike, names: Sequence[str]) -> dict[str, float]:
    """Variance inflation 1 / (1 - R²), R² of a predictor on all the others.

    How many times larger the variance of its coefficient is than if it were uncorrelated with them: 1 at best,
    infinite where others determine it. NaN for a predictor that does not vary.

    >>> inflation([[0, 0], [1, 1], [2, 0], [3, 1]], ["a", "b"])
    {'a': 1.25, 'b': 1.25}
    """
    columns = np.asarray(x, dtype=np.float64)
    return {name: _inflation(columns, place) for place, name in enumerate(names)}


def _inflation(x: Array, place: int) -> float:
    one, others = x[:, place], np.delete(x, place, axis=1)
    centred = one - one.mean()
    total = float(centred @ centred)
    if least_squares(one[:, None], one).rank == 1:
        return float("nan")
    beside = least_squares(others, one)
    determined = least_squares(np.column_stack([others, one]), one).rank == beside.rank
    return float("inf") if determined else round(total / beside.rss, 12)


def sign_flips(x: ArrayLike, y: ArrayLike, names: Sequence[str]) -> tuple[Flip, ...]:
    """Predictors whose coefficient changes its sign once the others stand beside it.

    Then the coefficient tells what is left of a predictor when others are held still, not what it goes along with.
    """
    columns, outcome = checked(x, y)
    multiple = least_squares(columns, outcome).coefficients[1:]
    simple = [least_squares(columns[:, [place]], outcome).coefficients[1] for place in range(len(names))]
    pairs = zip(names, simple, multiple, strict=True)
    return tuple(Flip(name, float(alone), float(beside)) for name, alone, beside in pairs if alone * beside < 0)


def ranges(x: ArrayLike, names: Sequence[str]) -> dict[str, Range]:
    """What the rows hold of every predictor."""
    columns = np.asarray(x, dtype=np.float64)
    sd = columns.std(axis=0, ddof=1) if len(columns) > 1 else np.full(columns.shape[1], np.nan)
    parts = (columns.min(axis=0), columns.max(axis=0), columns.mean(axis=0), sd)
    return {name: Range(*(float(part[place]) for part in parts)) for place, name in enumerate(names)}


def standardised(x: ArrayLike, y: ArrayLike, names: Sequence[str]) -> dict[str, float]:
    """Coefficients with predictors and outcome counted in their standard deviations, so that they can be compared.

    The same as those of a fit to z-scores (PARADISE, Walker et al. 1997); NaN for aliased predictors.
    """
    columns, outcome = checked(x, y)
    slopes = least_squares(columns, outcome).coefficients[1:]
    apart = outcome.std()
    beta = slopes * columns.std(axis=0) / apart if apart > 0 else np.full(slopes.size, np.nan)
    return dict(zip(names, beta.tolist(), strict=True))
