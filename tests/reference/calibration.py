"""Calibration by its definitions, row by row."""

from __future__ import annotations

from fractions import Fraction
from math import floor, log, nan

from reference.rows import Row


def answered(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row.answered and row.weight > 0]


def is_meaningless(rows: list[Row]) -> bool:
    return not answered(rows) or any(not 0 <= row.confidence <= 1 for row in answered(rows))


def brier(rows: list[Row]) -> float:
    if is_meaningless(rows):
        return nan
    whole = sum(row.weight for row in answered(rows))
    return sum(row.weight * (row.confidence - row.right) ** 2 for row in answered(rows)) / whole


def ece(rows: list[Row], bins: int = 10) -> float:
    """Sum over bins of |share right - mean confidence| times the bin's share; bin k holds [k/bins, (k+1)/bins)."""
    if is_meaningless(rows):
        return nan
    gaps: dict[int, Fraction] = {}
    for row in answered(rows):
        exact = Fraction(str(row.confidence))
        place = min(floor(exact * bins), bins - 1)
        gaps[place] = gaps.get(place, Fraction(0)) + Fraction(row.weight) * (int(row.right) - exact)
    return float(sum(abs(gap) for gap in gaps.values()) / sum(Fraction(row.weight) for row in answered(rows)))


def nce(rows: list[Row], clip: float = 1e-7) -> float:
    if is_meaningless(rows):
        return nan
    held = answered(rows)
    whole, right = sum(row.weight for row in held), sum(row.weight for row in held if row.right)
    if right in (0, whole):
        return nan
    base = -(right * log(right / whole) + (whole - right) * log(1 - right / whole))
    stated = 0.0
    for row in held:
        confidence = min(max(row.confidence, clip), 1 - clip)
        stated += row.weight * log(confidence if row.right else 1 - confidence)
    return (base + stated) / base
