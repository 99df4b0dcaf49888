"""Quantiles that every evaluation needs, of samples of usual size without SciPy, which takes as long to load as Polars.

Large samples and arrays, of which there are many values at once, are left to SciPy.
"""

from __future__ import annotations

import math
from statistics import NormalDist

MOST = 2e4
"""Sum of both parameters of a beta distribution, or degrees of freedom, up to which SciPy is not needed."""

_TINY = 1e-300
_ZERO = 1e-30
_STANDARD = NormalDist()


def normal_quantile(p: float) -> float:
    """The value below which a standard normal variable lies with chance p.

    >>> round(normal_quantile(0.975), 6)
    1.959964
    """
    return _STANDARD.inv_cdf(p)


def normal_tail(value: float) -> float:
    """The chance that a standard normal variable lies above a value.

    >>> round(normal_tail(1.959964), 6)
    0.025
    """
    return math.erfc(value / math.sqrt(2)) / 2


def student_quantile(freedom: float, p: float) -> float:
    """The value below which Student's t lies with chance p, which is at least one half.

    >>> round(student_quantile(9, 0.975), 4)
    2.2622
    """
    if freedom > MOST:
        from scipy.special import stdtrit

        return float(stdtrit(freedom, p))
    share = beta_quantile(0.5, freedom / 2, 2 * p - 1)
    if share < 0.5:
        return math.sqrt(freedom * share / (1 - share))
    rest = beta_quantile(freedom / 2, 0.5, 2 - 2 * p)  # 1 - share, with all its digits
    return math.sqrt(freedom * (1 - rest) / rest)


def beta_quantile(a: float, b: float, p: float) -> float:
    """The value below which a beta variable lies with chance p.

    >>> round(beta_quantile(1, 20, 0.975), 4)
    0.1684
    """
    if a + b > MOST:
        from scipy.special import betaincinv

        return float(betaincinv(a, b, p))
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    low, high, x = 0.0, 1.0, a / (a + b)
    for _ in range(200):
        gap = _beta_chance(a, b, x, scale) - p
        low, high = (x, high) if gap < 0 else (low, x)
        density = math.exp(min(scale + (a - 1) * math.log(x) + (b - 1) * math.log1p(-x), 700.0))
        step = gap / density if density > 0 else math.inf
        new = x - step if low < x - step < high else (low + high) / 2
        if abs(new - x) <= 4e-16 * x or not _ZERO < new < 1:
            return new
        x = new
    return x


def _beta_chance(a: float, b: float, x: float, scale: float) -> float:
    """The regularised incomplete beta function, by its continued fraction (Abramowitz and Stegun 26.5.8)."""
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta_chance_below_mean(b, a, 1 - x, scale)
    return _beta_chance_below_mean(a, b, x, scale)


def _beta_chance_below_mean(a: float, b: float, x: float, scale: float) -> float:
    if x <= 0:
        return 0.0
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1) or _TINY)
    fraction = d
    for place in range(1, 10_000):
        for term in (
            place * (b - place) * x / ((a + 2 * place - 1) * (a + 2 * place)),
            -(a + place) * (a + b + place) * x / ((a + 2 * place) * (a + 2 * place + 1)),
        ):
            d = 1 / (1 + term * d or _TINY)
            c = 1 + term / c or _TINY
            fraction *= c * d
        if abs(c * d - 1) < 1e-16:
            break
    return math.exp(scale + a * math.log(x) + b * math.log1p(-x)) * fraction / a
