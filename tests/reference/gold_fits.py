"""Curves, counts and draws by their definitions: trial by trial, one curve at a time, other people's optimisers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline
from scipy.optimize import minimize

Array = NDArray[np.float64]


def b_splines(x: Array, low: float, high: float, x_intervals: int) -> Array:
    """Cubic B-splines on equal x_intervals, from SciPy."""
    step = (high - low) / x_intervals
    knots = low + step * np.arange(-3, x_intervals + 4)
    return np.asarray(BSpline.design_matrix(np.clip(x, knots[3], knots[-4]), knots, 3).toarray())


def hats(x: Array, steps: Array) -> Array:
    """A hat over each step, by interpolating the columns of an identity matrix."""
    return np.stack([np.interp(x, steps, column) for column in np.eye(len(steps))], axis=1)


def objective(rows: Array, penalty: Array, link: str, totals: Array, sizes: Array, found: Array) -> float:
    """What a penalised fit makes least: half squares for the identity link, minus log likelihood for the logit."""
    eta = rows @ found
    cells = sizes * (0.5 * eta**2 if link == "identity" else np.logaddexp(0, eta)) - totals * eta
    return float(cells.sum() + 0.5 * found @ penalty @ found)


def gradient(rows: Array, penalty: Array, link: str, totals: Array, sizes: Array, found: Array) -> Array:
    eta = rows @ found
    mean = eta if link == "identity" else 1 / (1 + np.exp(-eta))
    return np.asarray(rows.T @ (sizes * mean - totals) + penalty @ found)


def least(rows: Array, penalty: Array, bounded: NDArray[np.bool_], link: str, totals: Array, sizes: Array) -> Array:
    """The coefficients by L-BFGS-B, started twice so that it does not stop early."""
    found = np.zeros(rows.shape[1])
    for _ in range(2):
        found = minimize(
            lambda c: objective(rows, penalty, link, totals, sizes, c),
            found,
            jac=lambda c: gradient(rows, penalty, link, totals, sizes, c),
            method="L-BFGS-B",
            bounds=[(0, None) if held else (None, None) for held in bounded],
            options={"maxiter": 5000, "maxfun": 50000, "ftol": 1e-16, "gtol": 1e-10, "maxcor": 30},
        ).x
    return np.asarray(found)


def logistic(x: Sequence[float], y: Sequence[float], weights: Sequence[float]) -> tuple[float, float]:
    """Intercept and slope of a logistic curve (or of the quasi-likelihood of shares) by Newton's method."""
    intercept = slope = 0.0
    for _ in range(100):
        score, information = np.zeros(2), np.zeros((2, 2))
        for place, share, weight in zip(x, y, weights, strict=True):
            rate = 1 / (1 + np.exp(-(intercept + slope * place)))
            functions = np.array([1.0, place])
            score += weight * (share - rate) * functions
            information += weight * rate * (1 - rate) * np.outer(functions, functions)
        step = np.linalg.solve(information, score)
        intercept, slope = intercept + step[0], slope + step[1]
        if np.abs(step).max() < 1e-13:
            break
    return float(intercept), float(slope)


def with_prior_trials(x: Array, y: Array, n: Array) -> tuple[list[float], list[float], list[float]]:
    """The trials and one more, a fifth of it at each quarter of the range, half a success."""
    quarters = [float(np.min(x) + part * (np.max(x) - np.min(x)) / 4) for part in range(5)]
    return [*x.tolist(), *quarters], [*y.tolist(), *[0.5] * 5], [*n.tolist(), *[0.2] * 5]


def pooled(values: Sequence[float], weights: Sequence[float], *, rising: bool) -> list[float]:
    """Pool adjacent violators, by hand: while two neighbours are out of order, they become one."""
    blocks = [[value, weight, 1.0] for value, weight in zip(values, weights, strict=True)]
    sign = 1 if rising else -1
    place = 0
    while place + 1 < len(blocks):
        one, two = blocks[place], blocks[place + 1]
        if sign * one[0] <= sign * two[0]:
            place += 1
            continue
        weight = one[1] + two[1]
        blocks[place : place + 2] = [[(one[0] * one[1] + two[0] * two[1]) / weight, weight, one[2] + two[2]]]
        place = max(place - 1, 0)
    return [value for value, _, length in blocks for _ in range(int(length))]


def r2(y: Sequence[float], n: Sequence[float], fitted: Sequence[float]) -> float:
    """One minus the squares around the curve over those around the mean, trial by trial."""
    mean = sum(a * b for a, b in zip(y, n, strict=True)) / sum(n)
    around = sum(weight * (value - fit) ** 2 for value, weight, fit in zip(y, n, fitted, strict=True))
    return 1 - around / sum(weight * (value - mean) ** 2 for value, weight in zip(y, n, strict=True))


def deviance_explained(y: Sequence[float], n: Sequence[float], fitted: Sequence[float]) -> float:
    """The same of the deviance: twice the log likelihood that a model lacks beside one that knows every value."""
    mean = sum(a * b for a, b in zip(y, n, strict=True)) / sum(n)
    return 1 - _deviance(y, n, fitted) / _deviance(y, n, [mean] * len(y))


def _deviance(y: Sequence[float], n: Sequence[float], fitted: Sequence[float]) -> float:
    left = 0.0
    for share, weight, rate in zip(y, n, fitted, strict=True):
        for part, expected in ((share, rate), (1 - share, 1 - rate)):
            left += 2 * weight * part * float(np.log(part / expected)) if part > 0 else 0.0
    return left
