"""Calibration by its definitions, row by row."""

from __future__ import annotations

from fractions import Fraction
from math import floor, log, nan, sqrt
from statistics import NormalDist

from reference.rows import Row


def answered(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row.answered and row.weight > 0]


def inside(rows: list[Row]) -> list[Row]:
    """Answers whose confidence is a probability, what rounding put beyond 0 or 1 put back."""
    near = [row for row in answered(rows) if -1e-6 <= row.confidence <= 1 + 1e-6]
    return [row._replace(confidence=min(max(row.confidence, 0.0), 1.0)) for row in near]


def is_meaningless(rows: list[Row]) -> bool:
    """Whether most confidences are no probabilities, or all that are in [0, 1] are 0, as among logarithms."""
    held = inside(rows)
    within = sum(row.weight for row in held)
    outside = sum(row.weight for row in answered(rows)) - within
    return not within or outside > within or (outside > 0 and all(row.confidence == 0 for row in held))


def brier(rows: list[Row]) -> float:
    if is_meaningless(rows):
        return nan
    held = inside(rows)
    return sum(row.weight * (row.confidence - row.right) ** 2 for row in held) / sum(row.weight for row in held)


def ece(rows: list[Row], bins: int = 10) -> float:
    """Sum over bins of |share right - mean confidence| times the bin's share; bin k holds [k/bins, (k+1)/bins)."""
    if is_meaningless(rows):
        return nan
    gaps: dict[int, Fraction] = {}
    for row in inside(rows):
        exact = Fraction(str(row.confidence))
        place = min(floor(exact * bins), bins - 1)
        gaps[place] = gaps.get(place, Fraction(0)) + Fraction(row.weight) * (int(row.right) - exact)
    return float(sum(abs(gap) for gap in gaps.values()) / sum(Fraction(row.weight) for row in inside(rows)))


def ece_debiased(rows: list[Row], bins: int = 10) -> float:
    """Each bin's |gap| less what a normal error of the share right adds to it on average; rows that count alike."""
    if is_meaningless(rows):
        return nan
    held = inside(rows)
    total = 0.0
    for place in range(bins):
        here = [row for row in held if min(floor(Fraction(str(row.confidence)) * bins), bins - 1) == place]
        if here:
            n = len(here)
            right, stated = sum(row.right for row in here) / n, sum(row.confidence for row in here) / n
            rate = right if n > 1 else stated
            gap, spread = abs(right - stated), sqrt(rate * (1 - rate) / max(n - 1, 1))
            total += n * (gap - (mean_size(gap, spread) - gap))
    return max(total / len(held), 0.0)


def mean_size(mean: float, spread: float) -> float:
    """E|X| of a normal X, by summing over its density."""
    if spread == 0:
        return abs(mean)
    bell, steps = NormalDist(mean, spread), 4000
    width = 16 * spread / steps
    places = [mean - 8 * spread + (step + 0.5) * width for step in range(steps)]
    return sum(abs(place) * bell.pdf(place) for place in places) * width


def ece_equal_mass(rows: list[Row], bins: int = 10) -> float:
    """A confidence belongs to the bin in which the middle of its answers lies, counted from the lowest."""
    if is_meaningless(rows):
        return nan
    held = inside(rows)
    whole = sum(Fraction(row.weight) for row in held)
    gaps: dict[int, Fraction] = {}
    for level in sorted({row.confidence for row in held}):
        below = sum(Fraction(row.weight) for row in held if row.confidence < level)
        own = [row for row in held if row.confidence == level]
        middle = (below + sum(Fraction(row.weight) for row in own) / 2) / whole
        gap = sum(Fraction(row.weight) * (int(row.right) - Fraction(level)) for row in own)
        place = min(floor(middle * bins), bins - 1)
        gaps[place] = gaps.get(place, Fraction(0)) + gap
    return float(sum(abs(gap) for gap in gaps.values()) / whole)


def spiegelhalter(rows: list[Row]) -> float:
    """z of the sum of (right - c)(1 - 2c), its variance that of independent answers that are right as often as c."""
    held = inside(rows)
    total = sum((row.right - row.confidence) * (1 - 2 * row.confidence) for row in held)
    return total / sqrt(sum((1 - 2 * row.confidence) ** 2 * row.confidence * (1 - row.confidence) for row in held))


def nce(rows: list[Row], clip: float = 1e-7) -> float:
    if is_meaningless(rows):
        return nan
    held = inside(rows)
    whole, right = sum(row.weight for row in held), sum(row.weight for row in held if row.right)
    if right in (0, whole):
        return nan
    base = -(right * log(right / whole) + (whole - right) * log(1 - right / whole))
    stated = 0.0
    for row in held:
        confidence = min(max(row.confidence, clip), 1 - clip)
        stated += row.weight * log(confidence if row.right else 1 - confidence)
    return (base + stated) / base
