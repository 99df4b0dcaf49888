"""Coefficients of curves for resampled counts, many at once: by penalised likelihood, or by pooling neighbours."""

from __future__ import annotations

import numpy as np

from demur.analyses.gold.bases import Array, Basis
from demur.analyses.gold.counts import Counts
from demur.analyses.gold.solving import ARRIVED, Problem, solve

PRIOR = 1.0
"""Trials added to those of a performer, half of one a success, spread over the range.

They keep curves finite where every trial succeeds, or where success and failure are perfectly separated.
"""
_PRIOR_PLACES = 5
_BATCH = 4_000_000
"""Cells of a batch of refits, for the sake of memory."""


def batch_size(counts: Counts) -> int:
    """How many curves are fitted at once."""
    return max(1, _BATCH // (len(counts.places) + _PRIOR_PLACES))


def problem_of(basis: Basis, counts: Counts, smoothness: float) -> Problem:
    """What all fits of this kind to these places share."""
    places = counts.places
    if basis.link == "logit":
        places = np.concatenate([places, np.linspace(basis.low, basis.high, _PRIOR_PLACES)])
    return Problem(basis.rows(places), smoothness * basis.roughness, basis.bounded, basis.link)


def with_prior(basis: Basis, totals: Array, sizes: Array) -> tuple[Array, Array]:
    """Counts with the prior's half success and half failure behind them."""
    if basis.link != "logit":
        return totals, sizes
    each = np.full((len(totals), _PRIOR_PLACES), PRIOR / _PRIOR_PLACES)
    return np.hstack([totals, each / 2]), np.hstack([sizes, each])


def estimated(
    basis: Basis, counts: Counts, weights: Array, smoothness: float, start: Array, arrived: float = ARRIVED
) -> Array:
    """The coefficients when subjects count by these weights; a row each."""
    totals, sizes = counts.weighted(weights)
    if basis.kind == "isotonic":
        return np.stack([_pooled(basis, *pair) for pair in zip(totals, sizes, strict=True)])
    problem = problem_of(basis, counts, smoothness)
    return solve(problem, *with_prior(basis, totals, sizes), start, arrived)


def _pooled(basis: Basis, totals: Array, sizes: Array) -> Array:
    """The monotone means nearest the data: neighbours that are out of order are pooled (pool adjacent violators)."""
    from scipy.optimize import isotonic_regression

    seen = sizes > 0
    means = totals[seen] / sizes[seen]
    pooled = isotonic_regression(means, weights=sizes[seen], increasing=basis.direction == "rising").x
    places = np.array(basis.steps)
    return np.asarray(np.interp(places, places[seen], pooled))
