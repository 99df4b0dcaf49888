"""Changes from one log to another, computed slowly and plainly."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations


def kolmogorov_smirnov(one: Sequence[float], two: Sequence[float]) -> float:
    """The largest gap between the shares of values that are at most some value."""
    return max(abs(_at_most(one, value) - _at_most(two, value)) for value in (*one, *two))


def _at_most(values: Sequence[float], limit: float) -> float:
    return sum(value <= limit for value in values) / len(values)


def cramers_v(one: Sequence[object], two: Sequence[object]) -> float:
    """The root of chi-square over the number of values, of the table of two rows."""
    total, chi = len(one) + len(two), 0.0
    for label in {*one, *two}:
        for part in (one, two):
            expected = (one.count(label) + two.count(label)) * len(part) / total
            chi += (part.count(label) - expected) ** 2 / expected
    return math.sqrt(chi / total)


def permutation_p(
    one: Sequence[Sequence[float]], two: Sequence[Sequence[float]], distance: Callable[..., float]
) -> float:
    """The share of all ways to deal the units that are as far apart as the units were."""
    units = [*one, *two]

    def apart(chosen: Sequence[int]) -> float:
        sides = [[v for k, u in enumerate(units) if (k in chosen) == side for v in u] for side in (True, False)]
        return distance(*sides)

    seen = apart(range(len(one)))
    deals = list(combinations(range(len(units)), len(one)))
    return sum(apart(deal) >= seen - 1e-12 for deal in deals) / len(deals)


def own_error(one: Sequence[float], two: Sequence[float]) -> float:
    """The standard error of a difference of means of two populations (Welch)."""
    return math.sqrt(sum(_variance(part) / len(part) for part in (one, two)))


def pooled_error(one: Sequence[float], two: Sequence[float]) -> float:
    """The standard error of a difference of means of one population."""
    return math.sqrt(_variance([*one, *two]) * (1 / len(one) + 1 / len(two)))


def _variance(values: Sequence[float]) -> float:
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values) / (len(values) - 1)


def binomial_p(hits: int, n: int, bound: float) -> float:
    """Twice the smaller tail of a binomial distribution."""
    chances = [math.comb(n, k) * bound**k * (1 - bound) ** (n - k) for k in range(n + 1)]
    return min(1.0, 2 * min(sum(chances[hits:]), sum(chances[: hits + 1])))
