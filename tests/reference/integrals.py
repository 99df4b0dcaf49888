"""Areas by other people's quadrature and by dense sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad

Array = NDArray[np.float64]
Curve = Callable[[Array], Array]


def by_quad(f: Curve, low: float, high: float, breaks: Sequence[float] = ()) -> float:
    """Adaptive Gauss-Kronrod between the breaks, one piece after the other."""
    cuts = [low, *sorted(point for point in breaks if low < point < high), high]
    return sum(
        quad(lambda x: f(np.array([x]))[0], start, end, epsabs=1e-12, epsrel=1e-12, limit=400)[0]
        for start, end in pairwise(cuts)
    )


def dense(low: float, high: float, breaks: Sequence[float] = (), points: int = 400_001) -> Array:
    """A fine grid with the breaks in it."""
    return np.unique([*np.linspace(low, high, points), *(point for point in breaks if low < point < high)])


def trapezoid(f: Curve, low: float, high: float, breaks: Sequence[float] = ()) -> float:
    x = dense(low, high, breaks)
    return float(np.trapezoid(f(x), x))


def parts(f: Curve, low: float, high: float, breaks: Sequence[float] = ()) -> tuple[float, float]:
    """The areas above and below 0, by trapezoids."""
    x = dense(low, high, breaks)
    values = f(x)
    return float(np.trapezoid(np.maximum(values, 0), x)), float(np.trapezoid(np.maximum(-values, 0), x))


def length_between(f: Curve, bottom: float, top: float, low: float, high: float) -> float:
    """The share of a fine grid whose values lie between two values, times the range."""
    values = f(dense(low, high))
    return float(np.mean((values >= bottom) & (values <= top))) * (high - low)
