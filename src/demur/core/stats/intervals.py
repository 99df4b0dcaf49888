"""Intervals, significance tests and the quantiles behind them.

Quantiles of samples of usual size are computed without SciPy, which takes as long to load as Polars. Large samples and
arrays, of which there are many values at once, are left to SciPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

from demur.core.arrays import Array
from demur.errors import UsageError

MOST = 1e7
"""Sum of both parameters of a beta distribution, or degrees of freedom, up to which SciPy is not needed."""

LARGE = 2e4
"""Sum of both parameters from which logarithms of the gamma function would lose digits when they are subtracted."""

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


@lru_cache(maxsize=4096)
def beta_quantile(a: float, b: float, p: float) -> float:
    """The value below which a beta variable lies with chance p.

    >>> round(beta_quantile(1, 20, 0.975), 4)
    0.1684
    """
    if a + b > MOST:
        from scipy.special import betaincinv

        return float(betaincinv(a, b, p))
    scale, mean = _log_gamma_ratio(a, b), a / (a + b)
    if mean < _ZERO or mean == 1:  # but for less than the smallest share, all of it lies at this end
        return float(round(mean))
    low, high, x = 0.0, 1.0, mean
    if 0 < p < 1:  # nearly normal where both parameters are large
        near = mean + normal_quantile(p) * math.sqrt(mean * (1 - mean) / (a + b + 1))
        x = near if 0 < near < 1 else mean
    for _ in range(200):
        gap = _beta_chance(a, b, x, scale) - p
        low, high = (x, high) if gap < 0 else (low, x)
        density = math.exp(min(scale + (a - 1) * math.log(x) + (b - 1) * math.log1p(-x), 700.0))
        step = gap / density if density > 0 else math.inf
        taken = low < x - step < high
        new = x - step if taken else (low + high) / 2
        left = step * step * abs((a - 1) / x - (b - 1) / (1 - x)) / 2 if taken else math.inf  # of the error, by Newton
        close = left <= 2e-16 * x and abs(step) <= 1e-6 * x  # at a mode the estimate of the error is 0 wherever x is
        if abs(new - x) <= 4e-16 * x or close or not _ZERO < new < 1:
            return new
        x = new
    return x


def _log_gamma_ratio(a: float, b: float) -> float:
    """The logarithm of Γ(a + b) / (Γ(a) Γ(b)), for large samples by Stirling's series."""
    if a + b <= LARGE:
        return math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    small, large = sorted((a, b))
    rest, rest_of_large = (1 / (12 * x) - 1 / (360 * x**3) for x in (a + b, large))
    shift = (large - 0.5) * math.log1p(small / large) + small * (math.log(a + b) - 1)
    return shift + rest - rest_of_large - math.lgamma(small)


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


def fisher(hits: int, drawn: int, marked: int, total: int) -> float:
    """Two-sided exact p-value of Fisher: `hits` of `drawn` are marked, as `marked` of `total` are.

    >>> round(fisher(3, 4, 4, 8), 4)
    0.4857
    """
    least, most = max(0, drawn + marked - total), min(drawn, marked)
    mean = drawn * marked / total
    reach = 40 * math.sqrt(mean * (total - marked) / total) + 40  # what lies beyond is less than the smallest number
    first = max(least, min(int(mean - reach), hits))
    hit = np.arange(first, min(most, max(int(mean + reach), hits)), dtype=np.float64)
    steps = np.log(marked - hit) + np.log(drawn - hit) - np.log(hit + 1) - np.log(total - marked - drawn + hit + 1)
    likely = np.concatenate([[0.0], np.cumsum(steps)])  # logarithms of how likely each number of hits is
    likely = np.exp(likely - likely.max())
    as_rare = likely <= likely[hits - first] * (1 + 1e-7)
    return float(min(1.0, likely[as_rare].sum() / likely.sum()))


def mcnemar(a_only: int, b_only: int) -> float:
    """Two-sided exact p-value of McNemar: a alone errs so often, and b alone.

    >>> round(mcnemar(2, 9), 4)
    0.0654
    """
    from scipy.special import bdtr

    return min(1.0, 2 * float(bdtr(min(a_only, b_only), a_only + b_only, 0.5)))


def student_p(value: float, error: float, freedom: float) -> float:
    """Two-sided p-value of a value being 0 by Student's t, with its standard error and degrees of freedom.

    >>> round(student_p(2.0, 1.0, 10), 4)
    0.0734
    """
    from scipy.special import stdtr

    return float(2 * stdtr(freedom, -abs(value) / error))


def sidak(p: float, tests: int) -> float:
    """A p-value corrected for having made several tests (Sidak 1967).

    An interval at the level to the power 1 / tests goes with it: it excludes 0 exactly where the corrected p-value is
    below 1 - level.

    >>> round(sidak(0.01, 5), 4)
    0.049
    """
    return p if p in (0.0, 1.0) or math.isnan(p) else -math.expm1(tests * math.log1p(-p))


def newcombe(one: tuple[float, float], other: tuple[float, float], level: float) -> tuple[float, float]:
    """Interval of a rate less another, each with its number of inputs (Newcombe 1998, method 10).

    >>> [round(end, 4) for end in newcombe((56 / 70, 70), (48 / 80, 80), 0.95)]
    [0.0524, 0.3339]
    """
    difference = one[0] - other[0]
    (low, high), (other_low, other_high) = (wilson(*side, level) for side in (one, other))
    down, up = math.hypot(one[0] - low, other_high - other[0]), math.hypot(high - one[0], other[0] - other_low)
    return difference - down, difference + up


def wilson(rate: float, n: float, level: float) -> tuple[float, float]:
    """Wilson's interval of a rate of `n` inputs, which may be an effective number.

    >>> [round(end, 4) for end in wilson(0.0, 20, 0.95)]
    [0.0, 0.1611]
    """
    z2 = normal_quantile((1 + level) / 2) ** 2
    middle = (rate + z2 / (2 * n)) / (1 + z2 / n)
    reach = math.sqrt(z2) / (1 + z2 / n) * math.sqrt(max(rate * (1 - rate) / n + z2 / (4 * n * n), 0.0))
    return min(rate, max(0.0, middle - reach)), max(rate, min(1.0, middle + reach))


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with its interval; where it is undefined, the reason."""

    value: float
    low: float = float("nan")
    high: float = float("nan")
    why: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """`{"value", "low", "high"}`, null where undefined and then with a `"why"`."""
        shown: dict[str, Any] = {
            key: None if np.isnan(part) else float(part)
            for key, part in (("value", self.value), ("low", self.low), ("high", self.high))
        }
        return {**shown, "why": self.why} if self.why is not None else shown

    @property
    def defined(self) -> bool:
        """Whether there is a number at all."""
        return not np.isnan(self.value)


def student(level: float, freedom: float) -> float:
    """Two-sided critical value of Student's t."""
    return student_quantile(max(freedom, 1), (1 + level) / 2)


def exact_binomial(rate: Any, n: Any, critical: Any) -> tuple[Array, Array]:
    """Clopper-Pearson interval of a rate out of `n` (which may be an effective number) at a normal critical value.

    >>> [round(float(end), 4) for end in exact_binomial(0.0, 20, 1.96)]
    [0.0, 0.1684]
    """
    rate, n = np.broadcast_arrays(np.clip(np.asarray(rate, dtype=np.float64), 0, 1), np.asarray(n, dtype=np.float64))
    if rate.ndim == 0 and np.ndim(critical) == 0:
        ends = _clopper_pearson(float(rate), float(n), normal_tail(float(critical)))
        return np.asarray(ends[0]), np.asarray(ends[1])
    from scipy.special import betaincinv, ndtr

    tail = ndtr(-np.asarray(critical, dtype=np.float64))
    count = rate * n
    low = np.where(count > 0, betaincinv(np.maximum(count, 1e-12), n - count + 1, tail), 0.0)
    high = np.where(count < n, betaincinv(count + 1, np.maximum(n - count, 1e-12), 1 - tail), 1.0)
    return np.minimum(low, rate), np.maximum(high, rate)


def _clopper_pearson(rate: float, n: float, tail: float) -> tuple[float, float]:
    count = rate * n
    low = beta_quantile(count, n - count + 1, tail) if count > 0 else 0.0
    high = beta_quantile(count + 1, n - count, 1 - tail) if count < n else 1.0
    return min(low, rate), max(high, rate)


def quantile(values: Array, share: float) -> float:
    """The value below which a share of the values lies, as np.quantile gives it, which loads masked arrays first.

    >>> quantile(np.array([3.0, 1.0, 2.0]), 0.25)
    1.5
    """
    ordered = np.sort(values)
    place = share * (ordered.size - 1)
    low, high = ordered[math.floor(place)], ordered[math.ceil(place)]
    return float(low + (high - low) * (place - math.floor(place)))


def expanded_percentiles(replicates: Array, level: float, units: float) -> tuple[float, float]:
    """Percentile interval widened for small samples, so that it matches Student's t (Hesterberg 2015, section 5.3)."""
    kept = replicates[~np.isnan(replicates)]
    if kept.size < 0.9 * replicates.size or units < 2:
        return float("nan"), float("nan")
    tail = normal_tail(math.sqrt(units / (units - 1)) * student(level, units - 1))
    return quantile(kept, tail), quantile(kept, 1 - tail)


def normal(level: float) -> float:
    """Two-sided critical value of the normal distribution."""
    return normal_quantile((1 + level) / 2)


def logit(share: Any) -> Any:
    """The logarithm of the odds."""
    return np.log(share) - np.log1p(-share)


def expit(log_odds: Any) -> Any:
    """The share that has these logarithmic odds."""
    return np.exp(-np.logaddexp(0.0, -log_odds))


Scale = Literal["log", "logit", "plain"]

MOST_UNDEFINED = 0.1
"""Share of replicates that may have no value before no interval is given."""

FEWEST = 5
"""Units from which replicates tell something of the uncertainty; of fewer no interval is given."""

ROUNDING = 1e-9
"""Share of the values themselves up to which a spread of replicates is rounding, not uncertainty."""

_SCALES: dict[Scale, tuple[Callable[[Any], Any], Callable[[Any], Any], Callable[[float], float]]] = {
    "log": (np.log, np.exp, lambda value: value),
    "logit": (logit, expit, lambda value: value * (1 - value)),
    "plain": (lambda value: value, lambda value: value, lambda _: 1.0),
}
"""Each scale's function, its inverse, and by what a spread is divided to be one on the scale."""


@dataclass(frozen=True, slots=True)
class Difference:
    """By how much a figure of a exceeds that of b, with interval, p-value, and the p-value corrected for all pairs."""

    value: float
    low: float
    high: float
    p: float
    p_adjusted: float
    why: str | None = None
    freedom: float = 0.0
    """Degrees of freedom of Student's t behind interval and p-value; 0 where there is no interval."""

    def corrected(self, tests: int, level: float) -> Difference:
        """The difference with interval and p-value for several tests.

        >>> one = Difference(1.0, 1.0 - 2.2622, 1.0 + 2.2622, 0.3434, 0.3434, freedom=9)
        >>> two = one.corrected(2, 0.95)
        >>> round(two.high - two.value, 2), round(two.p_adjusted, 2)
        (2.68, 0.57)
        """
        wider = 1.0
        if tests > 1 and self.freedom > 0:
            wider = student(level ** (1 / tests), self.freedom) / student(level, self.freedom)
        low, high = (self.value + (end - self.value) * wider for end in (self.low, self.high))
        return replace(self, low=low, high=high, p_adjusted=sidak(self.p, tests))

    def to_dict(self) -> dict[str, Any]:
        """The difference as plain values."""
        shown = {"value": self.value, "low": self.low, "high": self.high, "p": self.p, "p_adjusted": self.p_adjusted}
        plain = {key: None if np.isnan(part) else float(part) for key, part in shown.items()}
        return plain if self.why is None else {**plain, "why": self.why}


def unit_figure(
    value: float,
    drawn: Array,
    units: int,
    *,
    level: float,
    scale: Scale,
    why: Callable[[], str],
    independent: float | None = None,
) -> Figure:
    """A value with Student's interval on the scale that suits it, from the spread of its replicates.

    `independent` says how many independent units there are, where those drawn hold several.

    >>> unit_figure(0.5, np.array([0.4, 0.6]), 10, level=0.95, scale="plain", why=str).low.__round__(3)
    0.262
    """
    if np.isnan(value):
        return Figure(value, why=why())
    if scale == "logit" and value in (0.0, 1.0):
        low, high = exact_binomial(value, units if independent is None else independent, normal(level))
        return Figure(value, float(low), float(high))
    spread = _spread(drawn, units)
    if not spread > 0 or units < FEWEST or (scale == "log" and value <= 0):
        return Figure(value)
    onto, back, stretch = _SCALES[scale]
    reach = student(level, units - 1) * spread / stretch(value)
    low, high = back(onto(value) - reach), back(onto(value) + reach)
    return Figure(value, float(low), float(high))


def difference(value: float, drawn: Array, units: int, *, level: float) -> Difference:
    """A difference with Student's interval and test, from the spread of its replicates."""
    spread = _spread(drawn, units)
    nothing = float("nan")
    if np.isnan(value):
        return Difference(value, nothing, nothing, nothing, nothing, why="undefined for one of the two")
    if value == 0 and spread == 0:
        return Difference(0.0, 0.0, 0.0, 1.0, 1.0)
    if not spread > 0 or units < FEWEST:
        return Difference(value, nothing, nothing, nothing, nothing)
    reach = student(level, units - 1) * spread
    p = student_p(value, spread, units - 1)
    return Difference(value, value - reach, value + reach, p, p, freedom=units - 1)


def _spread(drawn: Array, units: int) -> float:
    """The standard error that replicates show; drawing from the sample itself makes it too small by a little."""
    kept = drawn[~np.isnan(drawn)]
    if kept.size < 2 or kept.size < (1 - MOST_UNDEFINED) * drawn.size:
        return float("nan")
    spread = float(kept.std())
    if spread <= ROUNDING * max(float(np.abs(kept).max()), 1e-300):
        return 0.0
    return spread * math.sqrt(units / max(units - 1, 1))


def check_level(level: float) -> None:
    """Refuse a confidence level outside (0, 1)."""
    if not 0 < level < 1:
        raise UsageError(f"a confidence level lies between 0 and 1, such as 0.95; got {level:g}")
