"""Gaussian-process regression by its formulae: dense matrices, no pooling, no chain."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def matern(one: Array, two: Array, length: float, signal: float) -> Array:
    """Rasmussen and Williams (2006), equation 4.17, order 5/2."""
    apart = np.sqrt(5) * np.abs(one[:, None] - two[None, :]) / length
    return np.asarray(signal**2 * (1 + apart + apart**2 / 3) * np.exp(-apart))


def smoothed(x: Array, y: Array, at: Array, length: float, signal: float, noise: float) -> tuple[Array, Array, float]:
    """Mean, standard error and log likelihood with a constant of flat prior (equations 2.41, 2.42 and 2.45)."""
    ones = np.ones(x.size)
    root = np.linalg.cholesky(matern(x, x, length, signal) + noise**2 * np.eye(x.size))
    whitened_y, whitened_ones = np.linalg.solve(root, y), np.linalg.solve(root, ones)
    held = float(whitened_ones @ whitened_ones)
    constant = float(whitened_ones @ whitened_y) / held
    left = whitened_y - constant * whitened_ones
    across = np.linalg.solve(root, matern(x, at, length, signal))
    mean = constant + across.T @ left
    explained = np.square(across).sum(axis=0)
    variance = signal**2 - explained + np.square(1 - across.T @ whitened_ones) / held
    determinant = 2 * float(np.log(np.diag(root)).sum())
    likelihood = -0.5 * (left @ left + determinant + np.log(held) + (x.size - 1) * np.log(2 * np.pi))
    return mean, np.sqrt(variance), float(likelihood)
