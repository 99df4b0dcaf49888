"""Per-class scores by their definitions, counted label by label over rows of (actual, predicted or None, weight)."""

from __future__ import annotations

from fractions import Fraction
from math import nan

Cell = tuple[str, str | None, int]


def weight(cells: list[Cell], *, actual: str | None = None, predicted: str | None = None) -> Fraction:
    """Weight of the rows with this actual and this predicted label; None asks for any."""
    return Fraction(
        sum(w for a, p, w in cells if (actual is None or a == actual) and (predicted is None or p == predicted))
    )


def classes(cells: list[Cell]) -> list[str]:
    return sorted({a for a, _, w in cells if w})


def part(cells: list[Cell], label: str, name: str) -> Fraction:
    """Precision, recall or F1 of a class; 0 where a class that occurs was never predicted."""
    hits = weight(cells, actual=label, predicted=label)
    returned, support = weight(cells, predicted=label), weight(cells, actual=label)
    precision = hits / returned if returned else Fraction(0)
    recall = hits / support
    if name == "f1":
        return 2 * precision * recall / (precision + recall) if hits else Fraction(0)
    return precision if name == "precision" else recall


def macro(cells: list[Cell], name: str) -> Fraction:
    return sum((part(cells, label, name) for label in classes(cells)), Fraction(0)) / len(classes(cells))


def weighted(cells: list[Cell], name: str) -> Fraction:
    sizes = {label: weight(cells, actual=label) for label in classes(cells)}
    return sum((part(cells, label, name) * size for label, size in sizes.items()), Fraction(0)) / weight(cells)


def micro(cells: list[Cell], name: str) -> Fraction | float:
    hits = sum((weight(cells, actual=label, predicted=label) for label in classes(cells)), Fraction(0))
    returned = Fraction(sum(w for _, p, w in cells if p is not None))
    if name == "recall":
        return hits / weight(cells)
    if name == "precision":
        return hits / returned if returned else nan
    return 2 * hits / (returned + weight(cells))


def kappa(cells: list[Cell], rejected: str) -> Fraction | float:
    """(observed - chance) / (1 - chance), with rejections as one more label or left out."""
    if rejected == "own":
        kept = [(a, "(rejected)" if p is None else p, w) for a, p, w in cells]
    else:
        kept = [(a, p, w) for a, p, w in cells if p is not None]
    total = weight(kept)
    if not total:
        return nan
    labels = {a for a, _, _ in kept} | {p for _, p, _ in kept}
    observed = sum((weight(kept, actual=label, predicted=label) for label in labels), Fraction(0)) / total
    chance = sum((weight(kept, actual=label) * weight(kept, predicted=label) for label in labels), Fraction(0))
    chance /= total**2
    return (observed - chance) / (1 - chance) if chance != 1 else nan
