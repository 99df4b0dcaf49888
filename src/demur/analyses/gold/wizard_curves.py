"""A curve for each wizard: the pooled one moved and tilted as far as the wizard's own trials ask for it."""

from __future__ import annotations

import numpy as np

from demur.analyses.gold.bases import Array
from demur.analyses.gold.fitting import CurveFit
from demur.analyses.gold.solving import means

GRID = 101
"""Places over the range at which curves of wizards are given."""

_ROUNDS = 60
_ARRIVED = 1e-10


def wizard_curves(fit: CurveFit, places: Array, prior: Array, unit: float) -> tuple[Array, Array]:
    """Where curves are given, and the performance of each wizard who has trials (a row) there.

    On the scale of the linear predictor a wizard's curve is the pooled one plus a + b z, with z the `places` of trials.
    The numbers a and b are normal with the standard deviations `prior`, so wizards with few trials stay near the pooled
    curve. `unit` is the variance of a trial beside what the link takes for granted.
    """
    counts = fit.counts
    totals, sizes = (np.asarray(part[counts.present].todense()) for part in (counts.totals, counts.sizes))
    rows = np.stack([np.ones_like(places), places], axis=1)
    found = _moves(fit, rows, totals / unit, sizes / unit, prior)
    grid = np.linspace(counts.low, counts.high, GRID)
    there = np.stack([np.ones(GRID), np.interp(grid, counts.places, places)], axis=1)
    curves = fit.performance(fit.predictor(grid) + found @ there.T)
    scale = counts.scale
    return grid, curves if scale.upper is None else np.clip(curves, scale.lower, scale.upper)


def mean_distance(curves: Array) -> float:
    """How far apart two curves (rows) are on average over their places; NaN for one alone.

    >>> mean_distance(np.array([[0.0, 0.0], [1.0, 0.5], [1.0, 0.5]]))
    0.5
    """
    wizards = len(curves)
    if wizards < 2:
        return float("nan")
    # Of sorted values each is added as often as it is the larger of two, and taken off as often as the smaller.
    times = 2 * np.arange(wizards) - wizards + 1
    sums = times @ np.sort(curves, axis=0)
    return float(sums.mean() / (wizards * (wizards - 1) / 2))


def _moves(fit: CurveFit, rows: Array, totals: Array, sizes: Array, prior: Array) -> Array:
    """The a and b of each wizard, by Newton's method with steps halved until they help."""
    pooled = fit.predictor(fit.counts.places)
    ridge = np.diag(1 / prior**2)
    found = np.zeros((len(totals), 2))
    for _ in range(_ROUNDS):
        mean = means(fit.link, pooled + found @ rows.T)
        weight = sizes * (mean * (1 - mean) if fit.link == "logit" else 1.0)
        gradient = (totals - sizes * mean) @ rows - found @ ridge
        hessian = np.einsum("wp,pi,pj->wij", weight, rows, rows) + ridge
        way = np.linalg.solve(hessian, gradient[..., None])[..., 0]
        if float((gradient * way).sum(axis=1).max()) < _ARRIVED:
            break
        found = _along(fit, pooled, rows, totals, sizes, ridge, found, way)
    return found


def _along(
    fit: CurveFit, pooled: Array, rows: Array, totals: Array, sizes: Array, ridge: Array, here: Array, way: Array
) -> Array:
    def loss(moves: Array) -> Array:
        eta = pooled + moves @ rows.T
        grown = np.logaddexp(0, eta) if fit.link == "logit" else 0.5 * eta**2
        return np.asarray((sizes * grown - totals * eta).sum(axis=1) + 0.5 * ((moves @ ridge) * moves).sum(axis=1))

    before, step = loss(here), np.ones(len(here))
    for _ in range(30):
        worse = loss(here + step[:, None] * way) > before + 1e-12 * np.abs(before)
        if not worse.any():
            break
        step[worse] /= 2
    return here + step[:, None] * way
