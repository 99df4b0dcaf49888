"""A performer of a study: its curve, the same curve refitted to subjects drawn anew, and the band these give."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from demur.analyses.gold.bases import Array
from demur.analyses.gold.fitting import CurveFit
from demur.analyses.gold.smoothness import deviance
from demur.data.trials import Role
from demur.measures.intervals import student

_STILL = 1e-3
"""Replicates that spread less than this part of the model's own error say nothing: all subjects were alike."""


@dataclass(frozen=True, eq=False)
class Performer:
    """Who performed, how well as x grows, and what is known of that."""

    name: str
    role: Role
    fit: CurveFit
    refits: Array
    """Coefficients, a row for each replicate."""
    noise: Array
    """A standard normal number for each replicate, used where the replicates do not spread at all."""
    level: float
    system: str = ""
    """Whose combination of components this is, where they are told apart; else the name."""
    components: frozenset[str] | None = None
    """What was switched on, where combinations are told apart."""

    @property
    def subjects(self) -> int:
        """How many subjects have trials."""
        return self.fit.counts.subjects

    @property
    def trials(self) -> int:
        """How many trials there are."""
        return round(float(self.fit.counts.sizes.sum()))

    @property
    def critical(self) -> float:
        """Student's critical value with one degree of freedom less than there are subjects."""
        return student(self.level, self.subjects - 1)

    def error(self, x: Array) -> Array:
        """Standard error of the linear predictor: that of the replicates, and no less than independent trials have."""
        drawn = self.fit.predictor(x, self.refits)
        return np.asarray(np.maximum(drawn.std(axis=0, ddof=1), self.fit.model_error(x)))

    def band(self, x: Array) -> tuple[Array, Array]:
        """Where the curve can be at each place, each taken alone; within the bounds of the metric."""
        return self.fit.band(x, self.critical * self.error(x))

    def drawn(self, x: Array) -> Array:
        """Performance at places in each replicate, spread as widely as the band says."""
        middle = self.fit.predictor(x)
        around = self.fit.predictor(x, self.refits) - middle
        spread, least = around.std(axis=0, ddof=1), self.fit.model_error(x)
        still = spread <= _STILL * least
        stretch = np.divide(np.maximum(spread, least), spread, out=np.ones_like(spread), where=~still)
        moved = np.where(still, self.noise[:, None] * least, around * stretch)
        return self.fit.performance(middle + moved)

    @cached_property
    def r2(self) -> float:
        """The share of the variance of trials that the curve accounts for; NaN where all trials came out alike."""
        counts = self.fit.counts
        totals, sizes = counts.whole()
        mean = np.full(len(sizes), totals.sum() / sizes.sum())
        spread = counts.squared_distance(mean)
        return float("nan") if spread <= 1e-12 * sizes.sum() else 1 - counts.squared_distance(self.fit.shares) / spread

    @cached_property
    def deviance_explained(self) -> float:
        """The share of the deviance from one rate for all x that the curve accounts for; NaN where R2 is."""
        counts = self.fit.counts
        if self.fit.link == "identity" or np.isnan(self.r2):
            return self.r2
        totals, sizes = counts.whole()
        mean = np.full(len(sizes), totals.sum() / sizes.sum())
        full = -2 * counts.entropy
        left, none = (deviance(self.fit.basis, shares, totals, sizes) - full for shares in (self.fit.shares, mean))
        return 1 - left / none
