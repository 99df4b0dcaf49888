"""Areas under curves and between them: one curve by SciPy's quadrature, or many resampled ones on a fixed grid."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from demur.core.arrays import Array
from demur.errors import UsageError

Curve = Callable[[Array], Array]
Span = tuple[float, float]

_PANELS = 32
"""Equal panels of the range at least: quadrature cannot overlook what is wider than one."""
_TOLERANCE = 1e-12
_MOST_HALVINGS = 500

_CELLS = 1024
"""Gaps of the grid on which signs are looked for: two crossings closer than this part of the range may be missed."""
_HALVINGS = 60
_ROUNDING = 1e-14
"""Values this small, beside 1 or beside the largest of the curve, are rounding and count as 0."""
_LEVEL = 1e-13
"""How far beyond a value, beside 1 or beside it, a curve still counts as being at it."""
_SLIVER = 1e-6

_FINE, _COARSE = np.polynomial.legendre.leggauss(20), np.polynomial.legendre.leggauss(12)
"""Nodes and weights that agree to the tolerance on all but the steepest curves."""
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(4)
_ORDER = len(_NODES)
_STEPS = 4


def _interpolation(wanted: Array) -> Array:
    """The matrix that takes values at the nodes to those of the polynomial through them at wanted places."""
    legendre = np.polynomial.legendre.legvander
    degree = _ORDER - 1
    return np.asarray(np.linalg.solve(legendre(_NODES, degree).T, legendre(wanted, degree).T), dtype=np.float64)


_CELL_ENDS = np.concatenate([[-1.0], np.cumsum(_WEIGHTS) - 1.0])
"""The ends of the nodes' cells: their weights laid side by side."""
_WITH_ENDS = np.concatenate([[-1.0], _NODES, [1.0]])
_TO_ENDS = _interpolation(np.array([-1.0, 1.0]))
_TO_STEPS = _interpolation(np.interp(np.arange(_ORDER * _STEPS + 1) / _STEPS, np.arange(_ORDER + 1), _CELL_ENDS))


def integral(f: Curve, low: float, high: float, breaks: Iterable[float] = ()) -> float:
    """The integral of a curve from `low` to `high`, to 1e-9 or better where breaks name its jumps.

    >>> round(integral(lambda x: x**2, 0.0, 3.0), 12)
    9.0
    """
    return float(_panel_integrals(f, _edges(low, high, breaks, _PANELS)).sum())


def parts(f: Curve, low: float, high: float, breaks: Iterable[float] = ()) -> tuple[float, float]:
    """The area above 0 and the area below it, both counted positive: their difference is the integral.

    >>> tuple(round(part, 12) for part in parts(lambda x: x - 1, 0.0, 3.0))
    (2.0, 0.5)
    """
    known = tuple(breaks)
    areas = _panel_integrals(f, _edges(low, high, [*known, *roots(f, low, high, known)], _PANELS))
    return float(areas[~(areas < 0)].sum()), float(-areas[~(areas > 0)].sum()) + 0.0


def _panel_integrals(f: Curve, edges: Array) -> Array:
    """The integral over each panel; where two orders of Gauss-Legendre differ, panels are halved until none changes."""
    left, width = edges[:-1], np.diff(edges)
    places = left + (1 + np.concatenate([_FINE[0], _COARSE[0]]))[:, None] / 2 * width
    values = _values(f, places.ravel()).reshape(places.shape)
    fine, coarse = width / 2 * (_FINE[1] @ values[: len(_FINE[0])]), width / 2 * (_COARSE[1] @ values[len(_FINE[0]) :])
    if np.max(np.abs(fine - coarse)) <= _TOLERANCE * max(1.0, np.max(np.abs(fine))):
        return np.asarray(fine)
    from scipy.integrate import quad_vec

    exact: dict[str, Any] = {"epsabs": _TOLERANCE, "epsrel": _TOLERANCE, "norm": "max", "limit": _MOST_HALVINGS}
    return np.asarray(quad_vec(lambda place: width * _values(f, left + place * width), 0.0, 1.0, **exact)[0])


def roots(f: Curve, low: float, high: float, breaks: Iterable[float] = (), *, level: float = 0.0) -> tuple[float, ...]:
    """Where a curve less a level changes its sign, in order.

    Signs are read on a grid of 1,024 gaps with the breaks in it, and each change is bisected to 1e-12, or as closely
    as values within rounding of 0 allow. A curve that touches 0 and turns back does not cross. A stretch where it is 0
    or undefined is no crossing in itself; where the signs before and after it differ it counts once, in its middle.
    A jump over 0 counts where it happens.

    >>> roots(lambda x: (x - 1) * (x - 2), 0.0, 3.0)
    (1.0, 2.0)
    >>> roots(lambda x: (x - 1) ** 2, 0.0, 3.0)
    ()
    """
    x = _edges(low, high, breaks, _CELLS)
    zero = _ROUNDING * max(1.0, float(np.max(np.abs(_values(f, x) - level))))

    def sign(at: Array) -> Array:
        values = _values(f, at) - level
        return (values > zero).astype(np.float64) - (values < -zero)

    def last_of_sign(sign_before: Array, inside: Array, outside: Array) -> Array:
        for _ in range(_HALVINGS if len(inside) else 0):
            middle = (inside + outside) / 2
            if ((middle == inside) | (middle == outside)).all():
                break
            holds = sign(middle) == sign_before
            inside, outside = np.where(holds, middle, inside), np.where(holds, outside, middle)
        return inside

    signs = sign(x)
    signed = np.flatnonzero(signs)
    change = np.flatnonzero(signs[signed[:-1]] != signs[signed[1:]])
    before, after = signed[change], signed[change + 1]
    ends = np.concatenate([before, after])
    beyond = np.concatenate([before + 1, after - 1])
    start, end = last_of_sign(signs[ends], x[ends], x[beyond]).reshape(2, -1)
    return tuple(((start + end) / 2).tolist())


def between(
    f: Curve, bottom: float, top: float, low: float, high: float, breaks: Iterable[float] = ()
) -> tuple[Span, ...]:
    """The ranges of x where a curve lies between two values, these included, in order.

    They end where it crosses one of the values. Ranges shorter than a millionth of the whole, where a curve jumps over
    both values or only touches one, are left out.

    >>> [(round(a, 9), round(b, 9)) for a, b in between(lambda x: 1 - x, 0.25, 0.5, 0.0, 1.0)]
    [(0.5, 0.75)]
    """
    if not bottom <= top:
        raise UsageError(f"a stretch runs from the lower value to the higher; got {bottom:g} to {top:g}")
    known, slack = tuple(breaks), _LEVEL * max(1.0, abs(bottom), abs(top))
    levels = (bottom - slack, top + slack)
    crossings = sorted(place for level in levels for place in roots(f, low, high, known, level=level))
    found: list[Span] = []
    for start, end in pairwise([low, *crossings, high]):
        inside = levels[0] <= _values(f, np.array([(start + end) / 2]))[0] <= levels[1]
        if inside and found and found[-1][1] == start:
            found[-1] = (found[-1][0], end)
        elif inside:
            found.append((start, end))
    return tuple((start, end) for start, end in found if end - start > _SLIVER * (high - low))


@dataclass(frozen=True, slots=True, eq=False)
class CurveGrid:
    """Four Gauss-Legendre nodes in each of many panels: curves are integrated from their values at the nodes alone.

    Values are (..., nodes), one row per curve; results have the leading shape. With 64 panels, kinks only at the
    breaks, and heights and range about 1, integrals of logistic curves of slope up to 200 are good to 1e-6 and `parts`
    to 5e-5; of slope up to 40 `parts` and lengths are good to 1e-5 and integrals over a share to 1e-4.
    """

    edges: Array
    nodes: Array
    weights: Array

    @classmethod
    def over(cls, low: float, high: float, breaks: Iterable[float] = (), *, panels: int = 64) -> CurveGrid:
        """The grid from `low` to `high` whose panels end at the breaks and are no wider than an equal share."""
        if not low < high:
            raise UsageError(f"a grid needs a range of some width; got {low:g} to {high:g}")
        edges = _edges(low, high, breaks, panels)
        half = np.diff(edges)[:, None] / 2
        nodes = edges[:-1, None] + half * (1 + _NODES)
        return cls(edges, nodes.ravel(), (half * _WEIGHTS).ravel())

    def integral(self, values: Array) -> Array:
        """The integral of each curve.

        >>> grid = CurveGrid.over(0.0, 3.0)
        >>> grid.integral(grid.nodes**2).round(12).item()
        9.0
        """
        return np.asarray(values @ self.weights)

    def parts(self, values: Array) -> tuple[Array, Array]:
        """The areas above and below 0, both counted positive; their difference is the integral.

        The positive part of a curve has a kink where its sign changes, which the nodes of that panel get wrong by a
        known amount, that of the straight line through the two values around it: for a kink at r, slope times
        (1 - r)^2 / 2 less its node sum, whether it rises or falls. A change of sign between two panels bends neither.
        """
        rows = np.atleast_2d(values).reshape(-1, len(self.nodes))
        panels = rows.reshape(len(rows), -1, _ORDER)
        ends = panels @ _TO_ENDS
        along = np.concatenate([ends[..., :1], panels, ends[..., 1:]], axis=2)
        curve, panel, gap = np.nonzero((along[:, :, 1:] > 0) != (along[:, :, :-1] > 0))
        start, end = along[curve, panel, gap], along[curve, panel, gap + 1]
        root = _WITH_ENDS[gap] + start / (start - end) * np.diff(_WITH_ENDS)[gap]
        by_nodes = np.maximum(_NODES - root[:, None], 0.0) @ _WEIGHTS
        slope = np.abs(end - start) / np.diff(_WITH_ENDS)[gap]
        missed = slope * ((1 - root) ** 2 / 2 - by_nodes) * (np.diff(self.edges)[panel] / 2)
        total = self.integral(rows)
        above = np.maximum(rows, 0.0) @ self.weights + np.bincount(curve, weights=missed, minlength=len(rows))
        # Where no value lies on the other side there is no such part, whatever rounding leaves.
        above = np.where((rows > 0).any(axis=1), np.where((rows < 0).any(axis=1), above, total), 0.0)
        above = np.maximum(above, np.maximum(total, 0.0))
        shape = np.shape(values)[:-1]
        return above.reshape(shape), (above - total).reshape(shape)

    def share_between(self, values: Array, bottom: float, top: float) -> Array:
        """The part, 0 to 1, of each node's cell in which a curve lies between two values.

        `grid.integral(share)` is the length of those ranges, `grid.integral(share * others)` the integral of other
        curves over them. A cell is the node's weight wide. In it the curve is taken as four straight lines, between
        points of the cubic through its panel's values.
        """
        whole = np.asarray(values, dtype=np.float64)
        steps = whole.reshape(*whole.shape[:-1], -1, _ORDER) @ _TO_STEPS
        slack = _ROUNDING * max(1.0, abs(bottom), abs(top))
        inside = np.abs(np.diff(np.clip(steps, bottom - slack, top + slack)))
        climb = np.abs(np.diff(steps))
        level = ((steps >= bottom - slack) & (steps <= top + slack))[..., :-1].astype(np.float64)
        shares = np.divide(inside, climb, out=level, where=climb > 0)
        return np.asarray(shares.reshape(*whole.shape, _STEPS).mean(axis=-1))


def _values(f: Curve, x: Array) -> Array:
    return np.broadcast_to(np.asarray(f(x), dtype=np.float64), x.shape)


def _edges(low: float, high: float, breaks: Iterable[float], count: int) -> Array:
    """The ends of a range, the breaks in it, and places between them so that no gap is wider than 1/count of it."""
    if not low <= high or not np.isfinite(high - low):
        raise UsageError(f"a range runs from a number up to a higher one; got {low:g} to {high:g}")
    least = 1e-13 * (high - low)
    inside = np.unique([place for place in breaks if low + least < place < high - least])
    cuts = [low, *inside[np.diff(inside, prepend=low) > least], high]
    widest = max(high - low, 1e-300) / count
    steps = np.maximum(np.ceil(np.diff(cuts) / widest - 1e-9), 1).astype(int)
    gaps = zip(cuts, cuts[1:], steps, strict=False)
    return np.concatenate([*(np.linspace(*gap, endpoint=False) for gap in gaps), [high]])
