"""Small studies, and slow plain twins of the checks of their curves."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.optimize import minimize

from demur.gold_standard.curves import counts_of
from demur.gold_standard.fitting import CurveFit, FitOptions, Performer, fit_curve
from demur.gold_standard.trials import TrialReading, Trials, trials

Array = NDArray[np.float64]


def study(
    rows: Sequence[tuple[str | None, float, float]], *, n: Sequence[float] | None = None, **reading: Any
) -> Trials:
    """The trials of wizards, (subject, x, y) each, and one of a system that nobody looks at."""
    subject, x, y = (list(part) for part in zip(*rows, strict=True))
    size = len(rows)
    columns: dict[str, Any] = {
        "performer": ["wizards"] * size + ["A"],
        "role": ["gold"] * size + ["system"],
        "x": [*map(float, x), 0.0],
        "y": [*map(float, y), float(y[0])],
    }
    if any(name is not None for name in subject):
        columns["subject"] = [*subject, "caller"]
    if n is not None:
        columns["n"] = [*n, 10.0]
    found, *_ = trials(pl.DataFrame(columns), reading=TrialReading(x="x", y="y", **reading))
    return found


def gold_of(found: Trials, kind: Any = "auto", level: float = 0.95, **options: Any) -> Performer:
    """The gold standard of a study, without replicates."""
    counts = counts_of(found, found.performer == 0)
    fit = fit_curve(counts, FitOptions(kind=kind, **options))
    return Performer(found.performers[0], "gold", fit, np.empty((0, len(fit.coefficients))), np.empty(0), level)


def counted(cells: dict[str, dict[float, tuple[int, int]]]) -> list[tuple[str, float, float]]:
    """Rows of 0 and 1, from successes and trials of each subject at each place."""
    return [
        (name, x, float(trial < right))
        for name, places in cells.items()
        for x, (right, size) in places.items()
        for trial in range(size)
    ]


def simulated(
    rng: np.random.Generator, *, subjects: int, size: int, moved: float = 0.0, tilted: float = 0.0, scores: bool = False
) -> list[tuple[str, float, float]]:
    """Wizards whose logit (or mean score) is 4 - 5 x, moved and tilted by normal amounts of their own."""
    x = ((np.arange(size) + rng.random((subjects, size))) / size).round(3)
    own = moved * rng.standard_normal((subjects, 1)) + tilted * rng.standard_normal((subjects, 1)) * (x - 0.5)
    mean = 4 - 5 * x + own
    noise = rng.standard_normal(x.shape) if scores else rng.random(x.shape)
    y = mean + noise if scores else (noise < 1 / (1 + np.exp(-mean))).astype(float)
    names = [f"W{number:03}" for number in range(subjects) for _ in range(size)]
    return list(zip(names, x.ravel().tolist(), y.ravel().tolist(), strict=True))


def plain_departures(rows: Sequence[tuple[str, float, float]], curve: Any) -> dict[str, tuple[float, float]]:
    """Mean departure of each wizard's trials from a curve, and its standard error, trial by trial."""
    found = {}
    for name in sorted({row[0] for row in rows}):
        mine = [(y, float(curve(np.array([x]))[0])) for who, x, y in rows if who == name]
        chance = sum(f * (1 - f) for _, f in mine)
        found[name] = (sum(y - f for y, f in mine) / len(mine), chance**0.5 / len(mine))
    return found


def plain_cochran(estimates: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Cochran's Q and the tau of DerSimonian and Laird, summand by summand."""
    weights = [1 / error**2 for _, error in estimates]
    mean = sum(weight * one for weight, (one, _) in zip(weights, estimates, strict=True)) / sum(weights)
    q = sum(weight * (one - mean) ** 2 for weight, (one, _) in zip(weights, estimates, strict=True))
    scale = sum(weights) - sum(weight**2 for weight in weights) / sum(weights)
    return q, max((q - len(estimates) + 1) / scale, 0.0) ** 0.5


def plain_moves(fit: CurveFit, z: Array, prior: Array, who: int) -> Array:
    """The a and b of one wizard by a general minimiser."""
    totals, sizes = (np.asarray(part.todense())[who] for part in (fit.counts.totals, fit.counts.sizes))

    def loss(move: Array) -> float:
        eta = fit.predictor(fit.counts.places) + move[0] + move[1] * z
        grown = np.logaddexp(0, eta) if fit.link == "logit" else eta**2 / 2
        return float((sizes * grown - totals * eta).sum() + ((move / prior) ** 2).sum() / 2)

    return np.asarray(minimize(loss, np.zeros(2), method="BFGS", options={"gtol": 1e-8}).x)


def plain_distance(curves: Array) -> float:
    """Mean absolute difference of each two curves."""
    return float(np.mean([np.abs(one - other).mean() for one, other in combinations(curves, 2)]))


def plain_line_steps(
    rows: Sequence[tuple[str, float, float]], orders: int, seed: int
) -> tuple[list[float], list[float]]:
    """Distances of straight lines to the data and to the line before, one polyfit after the other."""
    names = sorted({row[0] for row in rows})
    grid = np.linspace(min(row[1] for row in rows), max(row[1] for row in rows), 101)
    rng = np.random.default_rng(seed)
    data, moved = np.zeros((2, orders, len(names) - 1))
    for order in range(orders):
        rank = rng.permutation(len(names))
        before = None
        for size in range(1, len(names) + 1):
            x, y = np.array([row[1:] for row in rows if rank[names.index(row[0])] < size]).T
            line = np.polyfit(x, y, 1)
            if before is not None:
                data[order, size - 2] = np.sqrt(np.mean((np.polyval(line, x) - y) ** 2))
                moved[order, size - 2] = np.sqrt(np.mean((np.polyval(line, grid) - np.polyval(before, grid)) ** 2))
            before = line
    return data.mean(axis=0).tolist(), moved.mean(axis=0).tolist()
