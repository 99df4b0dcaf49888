"""PARADISE as such: what users made of a dialogue as a weighted sum of task success and costs, all of them z-scores.

Walker, Litman, Kamm and Abella (1997, 2000): performance = weight N(kappa) - sum of weights N(cost), where N takes the
mean off and divides by the standard deviation, so that weights can be compared with one another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from demur.core.show.results import plain
from demur.core.stats.intervals import student_p
from demur.errors import DataError
from demur.outcome.least_squares import check_arrays, solve

SAME = 1e-12
"""Standard deviation, against the largest value, below which a predictor or an outcome counts as constant."""


@dataclass(frozen=True, slots=True)
class Weight:
    """A standardised coefficient: by how many of its standard deviations the outcome rises with one of the predictor's.

    `error` is its standard error, `p` that of Student's test against 0; both are NaN where no dialogue is to spare.
    """

    value: float
    error: float
    p: float

    def to_dict(self) -> dict[str, Any]:
        """The weight as plain values."""
        return {"value": self.value, "error": plain(self.error), "p": plain(self.p)}


@dataclass(frozen=True, eq=False)
class Paradise:
    """A performance function: weights of the predictors, and what is needed to take z-scores of new dialogues.

    `left_out` are predictors that are the same in every dialogue or that others determine.
    """

    weights: dict[str, Weight]
    means: dict[str, float]
    deviations: dict[str, float]
    outcome_mean: float
    outcome_deviation: float
    r2: float
    adjusted_r2: float
    n: int
    left_out: tuple[str, ...]

    def formula(self) -> str:
        """The performance function as one writes it, the largest weight first."""
        order = sorted(self.weights.items(), key=lambda one: -abs(one[1].value))
        terms = [f"{'-' if weight.value < 0 else '+'} {abs(weight.value):.2f} N({name})" for name, weight in order]
        return " ".join(terms).removeprefix("+ ") or "0"

    def to_dict(self) -> dict[str, Any]:
        """The function as plain values."""
        return {
            "model": "paradise",
            "weights": {name: weight.to_dict() for name, weight in self.weights.items()},
            "means": dict(self.means),
            "deviations": dict(self.deviations),
            "outcome": {"mean": self.outcome_mean, "deviation": self.outcome_deviation},
            "r2": self.r2,
            "adjusted_r2": plain(self.adjusted_r2),
            "n": self.n,
            "left_out": list(self.left_out),
            "formula": self.formula(),
        }


def paradise(x: ArrayLike, y: ArrayLike, names: Sequence[str]) -> Paradise:
    """The performance function of predictors such as kappa, turns or errors, one row per dialogue.

    Standard deviations have the divisor n - 1. Predictions are those of the plain regression: z-scores change the
    units of coefficients and nothing else.

    >>> found = paradise([[0.5, 4.0], [0.5, 6.0], [0.9, 4.0], [0.9, 6.0]], [2.0, 1.0, 5.0, 4.0], ["kappa", "turns"])
    >>> found.formula()
    '0.95 N(kappa) - 0.32 N(turns)'
    """
    rows, outcome = check_arrays(x, y)
    deviation = float(outcome.std(ddof=1))
    if deviation <= SAME * np.abs(outcome).max():
        raise DataError("the outcome is the same in every dialogue, so there is nothing to explain")
    spread = rows.std(axis=0, ddof=1)
    varying = np.flatnonzero(spread > SAME * np.abs(rows).max(axis=0))
    means = rows.mean(axis=0)
    fit = solve((rows[:, varying] - means[varying]) / spread[varying], (outcome - outcome.mean()) / deviation)
    free = fit.n - fit.rank
    slopes, errors = fit.coefficients[1:], fit.standard_errors[1:]
    kept = {names[place]: number for number, place in enumerate(varying.tolist()) if not np.isnan(slopes[number])}
    r2 = 1 - fit.rss / (fit.n - 1)  # the squares of z-scores add up to n - 1
    return Paradise(
        weights={name: _weight(float(slopes[place]), float(errors[place]), free) for name, place in kept.items()},
        means={name: float(means[varying[place]]) for name, place in kept.items()},
        deviations={name: float(spread[varying[place]]) for name, place in kept.items()},
        outcome_mean=float(outcome.mean()),
        outcome_deviation=deviation,
        r2=r2,
        adjusted_r2=1 - (1 - r2) * (fit.n - 1) / free if free else float("nan"),
        n=fit.n,
        left_out=tuple(name for name in names if name not in kept),
    )


def _weight(value: float, error: float, free: int) -> Weight:
    if not free:
        return Weight(value, float("nan"), float("nan"))
    if error == 0:
        return Weight(value, 0.0, 0.0)
    return Weight(value, error, student_p(value, error, free))
