"""How smooth a curve should be, by its marginal likelihood; and how well a kind of curve predicts subjects left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from demur.analyses.gold.bases import Array, Basis
from demur.analyses.gold.counts import Counts
from demur.analyses.gold.estimation import estimated, problem_of, with_prior
from demur.analyses.gold.solving import Problem, means, solve

FOLDS = 10
"""Groups of subjects that are left out in turn; with fewer subjects each is left out alone."""

UNDERSMOOTHING = 0.1
"""What is kept of the likeliest smoothness: a band says nothing of the bias that smoothing brings, so less of it."""

_POWERS = np.arange(2.0, -2.1, -0.5)
"""Powers of ten of the smoothness that are tried, the smoothest first.

Beyond the first a curve is all but straight on its scale: for that there is a kind of curve with two parameters, and
with few trials the likelihood would often flatten a step away.
"""


def chosen_smoothness(basis: Basis, counts: Counts) -> float:
    """The smoothness to fit with: the likeliest one of curves that need not be monotone, less some."""
    free = replace(basis, direction=None)
    totals, sizes = (part[None] for part in counts.whole())
    totals, sizes = with_prior(free, totals, sizes)
    dispersion = _dispersion(free, counts, totals, sizes)
    best, chosen, start = -np.inf, 1.0, np.zeros(free.size)
    for power in _POWERS:
        smoothness = 10.0**power
        problem = problem_of(free, counts, smoothness)
        start = solve(problem, totals / dispersion, sizes / dispersion, start)[0]
        likelihood = _marginal(problem, start, totals[0] / dispersion, sizes[0] / dispersion, counts, smoothness)
        if likelihood > best + 1e-9:
            best, chosen = likelihood, smoothness
    return float(chosen * dispersion * UNDERSMOOTHING)


def _dispersion(basis: Basis, counts: Counts, totals: Array, sizes: Array) -> float:
    """How much bounded scores vary beside trials that are right or wrong; 1 for these, and where it cancels out."""
    if counts.binomial or basis.link == "identity":
        return 1.0
    problem = problem_of(basis, counts, 1.0)
    shares = means(basis.link, problem.rows @ solve(problem, totals, sizes, np.zeros(basis.size))[0])
    expected = float((sizes[0] * shares * (1 - shares)).sum())
    return max(counts.squared_distance(shares[: len(counts.places)]) / max(expected, 1e-12), 1e-6)


def _marginal(problem: Problem, found: Array, totals: Array, sizes: Array, counts: Counts, smoothness: float) -> float:
    """Log marginal likelihood of a smoothness by Laplace's method, or restricted likelihood of a Gaussian curve."""
    predictor = problem.rows @ found
    shares = means(problem.link, predictor)
    weight = sizes * shares * (1 - shares) if problem.link == "logit" else sizes
    hessian = (problem.rows * weight[:, None]).T @ problem.rows + problem.penalty + 1e-9 * np.eye(len(found))
    rough = float(found @ problem.penalty @ found)
    occam = float(0.5 * (len(found) - 2) * np.log(smoothness) - 0.5 * np.linalg.slogdet(hessian)[1])
    if problem.link == "identity":
        left = max(counts.squared_distance(shares) + rough, 1e-300)
        return float(-0.5 * max(counts.rows - 2, 1) * np.log(left) + occam)
    fit = float((totals * predictor - sizes * np.logaddexp(0, predictor)).sum())
    return fit - 0.5 * rough + occam


def held_out(basis: Basis, counts: Counts, smoothness: float) -> float:
    """Deviance of subjects left out in turn, a group at a time."""
    weights = _without(counts)
    found = estimated(basis, counts, weights, smoothness, np.zeros(basis.size))
    totals, sizes = counts.weighted(np.ones_like(weights) - weights)
    return deviance(basis, means(basis.link, found @ basis.rows(counts.places).T), totals, sizes)


def deviance(basis: Basis, shares: Array, totals: Array, sizes: Array) -> float:
    """Twice what the log likelihood falls short of, up to what does not depend on the curve."""
    if basis.link == "identity":
        return float((sizes * shares**2 - 2 * totals * shares).sum())
    inside = np.clip(shares, 1e-12, 1 - 1e-12)
    return float(-2 * (totals * np.log(inside) + (sizes - totals) * np.log1p(-inside)).sum())


def _without(counts: Counts) -> Array:
    """Weights of subjects, a row for each group left out."""
    present = counts.present
    folds = min(FOLDS, len(present))
    weights = np.ones((folds, counts.totals.shape[0]))
    for place, subject in enumerate(present):
        weights[place % folds, subject] = 0.0
    return weights
