"""Many curves fitted at once: penalised likelihood with coefficients that may not be negative.

Each curve has counts of its own over the same cells, so a thousand refits of a bootstrap are a few products of
matrices. Newton's method with an active set (Bertsekas 1982): a coefficient at 0 or close to it rests while the
gradient holds it there. Curves that have arrived leave the batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from demur.analyses.gold.bases import Array, Link

_ROUNDS = 200
ARRIVED = 1e-9
"""Newton's decrement, in units of log likelihood, at which a curve has arrived: 3e-5 standard errors off."""

EXACTLY = 1e-16
"""The same for a curve that figures are read from."""

_RIDGE = 1e-9
"""Keeps a direction that nothing informs from being undefined."""

_NEAR = 0.1
"""How close to its bound a coefficient rests, as a part of how far the curve still is from its end."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What all the curves of a batch share: functions at the cells, penalty, bounds and link."""

    rows: Array
    """One row of functions per cell."""
    penalty: Array
    bounded: NDArray[np.bool_]
    link: Link


def solve(problem: Problem, totals: Array, sizes: Array, start: Array, arrived: float = ARRIVED) -> Array:
    """The coefficients of each curve, for what its cells sum to and how many trials they hold: one row a curve."""
    if problem.link == "identity" and not problem.bounded.any():
        return _least_squares(problem, totals, sizes)
    found = np.array(np.broadcast_to(start, (len(totals), problem.rows.shape[1])))
    found[:, problem.bounded] = np.maximum(found[:, problem.bounded], 0)
    pairs = _pairs(problem.rows)
    open_ = np.arange(len(totals))
    value = _objective(problem, found, totals, sizes)
    for _ in range(_ROUNDS):
        here = found[open_]
        direction, decrement = _newton(problem, pairs, here, totals[open_], sizes[open_])
        moving = decrement > arrived
        if not moving.any():
            break
        open_, here, direction = open_[moving], here[moving], direction[moving]
        found[open_], value[open_] = _search(problem, here, direction, value[open_], totals[open_], sizes[open_])
    return found


def _least_squares(problem: Problem, totals: Array, sizes: Array) -> Array:
    hessian = _unpacked(sizes @ _pairs(problem.rows), problem.rows.shape[1]) + problem.penalty
    hessian += _RIDGE * np.eye(len(problem.penalty))
    return np.asarray(np.linalg.solve(hessian, (totals @ problem.rows)[..., None])[..., 0])


def means(link: Link, eta: Array) -> Array:
    """What the linear predictor stands for."""
    if link == "identity":
        return eta
    return np.asarray(0.5 * (1 + np.tanh(eta / 2)))


def _objective(problem: Problem, found: Array, totals: Array, sizes: Array) -> Array:
    eta = found @ problem.rows.T
    rough = 0.5 * np.einsum("bi,ij,bj->b", found, problem.penalty, found) + 0.5 * _RIDGE * (found**2).sum(axis=1)
    if problem.link == "identity":
        return np.asarray((0.5 * sizes * eta**2 - totals * eta).sum(axis=1) + rough)
    return np.asarray((sizes * np.logaddexp(0, eta) - totals * eta).sum(axis=1) + rough)


def _newton(problem: Problem, pairs: Array, found: Array, totals: Array, sizes: Array) -> tuple[Array, Array]:
    """The way to go for each curve, and how much the quadratic model promises."""
    mean = means(problem.link, found @ problem.rows.T)
    weight = sizes if problem.link == "identity" else sizes * mean * (1 - mean)
    gradient = (sizes * mean - totals) @ problem.rows + found @ problem.penalty + _RIDGE * found
    size = problem.rows.shape[1]
    hessian = _unpacked(weight @ pairs, size) + problem.penalty + _RIDGE * np.eye(size)
    own = hessian[:, np.arange(size), np.arange(size)]
    resting = problem.bounded & (gradient > 0) & (found <= _near(problem, found, gradient / own))
    free = ~resting
    hessian = hessian * free[:, :, None] * free[:, None, :]
    hessian[:, np.arange(size), np.arange(size)] += own * resting
    direction = -np.linalg.solve(hessian, gradient[..., None])[..., 0]
    promised = np.where(resting, np.minimum(-direction, found), -direction)
    return np.asarray(direction, dtype=np.float64), np.asarray((gradient * promised).sum(axis=1))


def _near(problem: Problem, found: Array, fall: Array) -> Array:
    """Below what a coefficient that is pulled down goes to its bound alone, so that it cannot hold up the others.

    It shrinks to 0 as a curve arrives, by how far each coefficient would still move by itself.
    """
    moved = np.where(problem.bounded, np.minimum(fall, found), fall)
    return np.asarray(_NEAR * np.sqrt((moved**2).sum(axis=1, keepdims=True)))


def _search(
    problem: Problem, here: Array, direction: Array, value: Array, totals: Array, sizes: Array
) -> tuple[Array, Array]:
    """A step along each direction, halved until the curve is no worse; bounds are kept by stopping at them."""
    best, reached = here.copy(), value.copy()
    left, step = np.arange(len(here)), 1.0
    while left.size and step > 1e-10:
        there = here[left] + step * direction[left]
        there[:, problem.bounded] = np.maximum(there[:, problem.bounded], 0)
        new = _objective(problem, there, totals[left], sizes[left])
        better = new <= value[left] + 1e-12 * np.abs(value[left])
        best[left[better]], reached[left[better]] = there[better], new[better]
        left, step = left[~better], step / 2
    return best, reached


def _pairs(rows: Array) -> Array:
    """Products of each two functions at each cell, those of a symmetric matrix written once."""
    upper = np.triu_indices(rows.shape[1])
    return rows[:, upper[0]] * rows[:, upper[1]]


def _unpacked(packed: Array, size: int) -> Array:
    upper = np.triu_indices(size)
    whole = np.empty((len(packed), size, size))
    whole[:, upper[0], upper[1]] = packed
    whole[:, upper[1], upper[0]] = packed
    return whole
