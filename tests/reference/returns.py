"""The error-return family by its definitions, threshold by threshold and pair by pair, in fractions."""

from __future__ import annotations

from fractions import Fraction
from itertools import groupby, pairwise, permutations, product
from math import inf, nan

from reference.rows import Row

Point = tuple[Fraction, Fraction]
NOTHING = None
"""The cutoff above every confidence: nothing is returned."""


def returned(row: Row, threshold: float | None) -> bool:
    return row.answered and threshold is not NOTHING and row.confidence >= threshold


def weight_of(rows: list[Row]) -> Fraction:
    return sum((Fraction(row.weight) for row in rows), Fraction(0))


def thresholds(rows: list[Row]) -> list[float | None]:
    return [*sorted({row.confidence for row in rows if row.answered}), NOTHING]


def nonreturn(rows: list[Row], threshold: float | None) -> Fraction:
    return weight_of([row for row in rows if not returned(row, threshold)]) / weight_of(rows)


def error(rows: list[Row], threshold: float | None) -> Fraction:
    return weight_of([row for row in rows if returned(row, threshold) and not row.right]) / weight_of(rows)


def missed_chance(rows: list[Row], threshold: float | None) -> Fraction:
    return weight_of([row for row in rows if row.right and not returned(row, threshold)]) / weight_of(rows)


def accuracy(rows: list[Row], threshold: float | None) -> Fraction:
    return weight_of([row for row in rows if row.right and returned(row, threshold)]) / weight_of(rows)


def curve(rows: list[Row]) -> list[Point]:
    return [(nonreturn(rows, cutoff), error(rows, cutoff)) for cutoff in thresholds(rows)]


def area(points: list[Point]) -> Fraction:
    pieces = pairwise(points)
    return sum(((right[0] - left[0]) * (left[1] + right[1]) / 2 for left, right in pieces), Fraction(0))


def height(points: list[Point], x: Fraction | float) -> Fraction:
    """The curve at x, straight between cutoffs; left of its start the first value."""
    at = Fraction(x)
    if at <= points[0][0]:
        return points[0][1]
    for (left, high), (right, low) in pairwise(points):
        if left <= at <= right and right > left:
            return high + (low - high) * (at - left) / (right - left)
    return points[-1][1]


def first_at_or_below(points: list[Point], level: Fraction | float) -> Fraction:
    """The smallest x at which the curve is at or below a level."""
    limit = Fraction(level)
    if points[0][1] <= limit:
        return points[0][0]
    for (left, high), (right, low) in pairwise(points):
        if low <= limit < high:
            return left + (right - left) * (high - limit) / (high - low)
    raise AssertionError("a curve ends at 0")


def reached(points: list[Point], x: Fraction | float) -> Point:
    """The last cutoff that withholds no more than x."""
    return [point for point in points if point[0] <= Fraction(x)][-1]


def first_cutoff_at_or_below(points: list[Point], level: Fraction | float) -> Point:
    """The first cutoff whose error rate is at or below a level."""
    return next(point for point in points if point[1] <= Fraction(level))


def mean_reached(points: list[Point], start: Fraction, stop: Fraction) -> Fraction:
    """Mean error rate at the last cutoff that withholds no more than x, over x from start to stop."""
    ends = sorted({start, stop, *(x for x, _ in points if start < x < stop)})
    pieces = ((right - left) * reached(points, left)[1] for left, right in pairwise(ends))
    return sum(pieces, Fraction(0)) / (stop - start)


def nothing_answered(rows: list[Row]) -> bool:
    return not any(row.answered and row.weight for row in rows)


def augrc(rows: list[Row]) -> Fraction | float:
    return nan if nothing_answered(rows) else area(curve(rows))


def augrc_by_pairs(rows: list[Row]) -> Fraction | float:
    """The V-statistic: how much weight stands below each error, ties half, over the squared total."""
    if nothing_answered(rows):
        return nan
    total = Fraction(0)
    for wrong in rows:
        for other in rows:
            if wrong.answered and not wrong.right and other.answered:
                share = _below(other.confidence, wrong.confidence)
                total += share * Fraction(wrong.weight) * Fraction(other.weight)
    return total / weight_of(rows) ** 2


def augrc_by_ranks(rows: list[Row]) -> Fraction | float:
    """Sum over errors of (rank - 1/2) / N^2, mid-ranks for ties, from the least confident; equal weights only."""
    answered = [row for row in rows if row.answered]
    if not answered:
        return nan
    total = Fraction(0)
    for row in answered:
        if not row.right:
            below = sum(other.confidence < row.confidence for other in answered)
            ties = sum(other.confidence == row.confidence for other in answered)
            total += below + Fraction(ties + 1, 2) - Fraction(1, 2)
    return total / len(rows) ** 2


def auroc(rows: list[Row]) -> Fraction | float:
    won, pairs = Fraction(0), Fraction(0)
    for right in rows:
        for wrong in rows:
            if right.answered and wrong.answered and right.right and not wrong.right:
                both = Fraction(right.weight) * Fraction(wrong.weight)
                won += _below(wrong.confidence, right.confidence) * both
                pairs += both
    return won / pairs if pairs else nan


def influence(rows: list[Row], place: int) -> Fraction | float:
    """Derivative of the area when a little of all weight moves to one row: exact, for the area is quadratic in it."""
    if nothing_answered(rows):
        return 0.0
    whole = weight_of(rows)

    def moved(share: Fraction) -> Fraction | float:
        shifted = [
            row._replace(weight=(1 - share) * Fraction(row.weight) / whole + (share if other == place else 0))
            for other, row in enumerate(rows)
        ]
        return augrc_by_pairs(shifted)

    step = Fraction(1, 8)
    return (moved(step) - moved(-step)) / (2 * step)


def aurc_trapezoid(rows: list[Row]) -> Fraction | float:
    """Selective risks at the cutoffs joined by straight lines over coverage, the first held down to coverage 0."""
    points = []
    for cutoff in reversed(thresholds(rows)):
        coverage = 1 - nonreturn(rows, cutoff)
        if coverage > 0:
            points.append((coverage, error(rows, cutoff) / coverage))
    return area([(Fraction(0), points[0][1]), *points]) if points else nan


def aurc_mean(rows: list[Row]) -> Fraction | float:
    """Mean over k of the risk of the k most confident, averaged over every order of the ties; equal weights only."""
    answered = sorted((row for row in rows if row.answered), key=lambda row: -row.confidence)
    levels = [list(level) for _, level in groupby(answered, key=lambda row: row.confidence)]
    sums = [
        _sum_of_risks([row for level in order for row in level])
        for order in product(*(list(permutations(level)) for level in levels))
    ]
    return sum(sums, Fraction(0)) / len(sums) / len(rows) if answered else nan


def perfect(rows: list[Row]) -> list[Row]:
    """The same answers, every right one above every wrong one and no ties."""
    ordered = sorted((row for row in rows if row.answered), key=lambda row: row.right)
    aside = [row for row in rows if not row.answered]
    return [row._replace(confidence=float(place)) for place, row in enumerate(ordered)] + aside


def cost(rows: list[Row], threshold: float | None, ratio: Fraction) -> Fraction:
    return error(rows, threshold) + ratio * nonreturn(rows, threshold)


def cheapest(rows: list[Row], ratio: Fraction) -> tuple[Fraction, float | None]:
    """The least cost and, among the cutoffs that reach it, the one that returns most."""
    least = min(cost(rows, cutoff, ratio) for cutoff in thresholds(rows))
    best = [cutoff for cutoff in thresholds(rows) if cost(rows, cutoff, ratio) == least]
    return least, min(best, key=lambda cutoff: inf if cutoff is NOTHING else cutoff)


def hull_vertices(points: list[Point]) -> list[Point]:
    """Corners of the lower convex hull: points strictly below every line between two others."""
    distinct = sorted(set(points))
    return [point for point in distinct if not any(_above(point, *pair) for pair in _spans(distinct, point))]


def crossings(one: list[Point], two: list[Point]) -> list[Fraction]:
    """Where the difference of two curves changes sign, a common stretch counted at its middle."""
    corners = sorted({x for x, _ in one} | {x for x, _ in two})
    start = max(one[0][0], two[0][0])
    gaps = [(x, height(one, x) - height(two, x)) for x in corners if x >= start]
    apart = [place for place, (_, gap) in enumerate(gaps) if gap]
    found = []
    for left, right in pairwise(apart):
        (x_left, before), (x_right, after) = gaps[left], gaps[right]
        if before * after < 0 and right == left + 1:
            found.append(x_left + (x_right - x_left) * before / (before - after))
        elif before * after < 0:
            found.append((gaps[left + 1][0] + gaps[right - 1][0]) / 2)
    return found


def _below(lower: float, upper: float) -> Fraction:
    return Fraction(int(lower < upper)) + Fraction(int(lower == upper), 2)


def _sum_of_risks(ranked: list[Row]) -> Fraction:
    wrong, total = 0, Fraction(0)
    for place, row in enumerate(ranked, start=1):
        wrong += not row.right
        total += Fraction(wrong, place)
    return total


def _spans(points: list[Point], point: Point) -> list[tuple[Point, Point]]:
    return [(left, right) for left in points for right in points if left[0] < point[0] < right[0]]


def _above(point: Point, left: Point, right: Point) -> bool:
    line = left[1] + (right[1] - left[1]) * (point[0] - left[0]) / (right[0] - left[0])
    return point[1] >= line


def shortest_rounding(threshold: float, below: float) -> int:
    """Characters of the shortest rounding of a threshold that is above `below` and not above it, read as a float."""
    if threshold in (inf, -inf):
        return len(str(threshold))
    exact = Fraction(threshold)
    order = len(str(abs(int(exact)))) if abs(exact) >= 1 else 1 - _zeros(abs(exact))
    lengths = []
    for power in range(max(order + 1, 0), order - 20, -1):
        middle = exact // Fraction(10) ** power
        texts = [text for near in (0, 1) for text in _texts(middle + near, power)]
        lengths += [len(text) for text in texts if below < float(text) <= threshold]
    return min(lengths)


def _zeros(rate: Fraction) -> int:
    """Zeros after the point."""
    count = 0
    while 0 < rate * 10 < 1:
        rate, count = rate * 10, count + 1
    return count


def _texts(multiple: int, power: int) -> list[str]:
    """A multiple of a power of ten without an exponent, and with one where it is very large or very small."""
    if multiple == 0:
        return ["0"]
    sign, digits = "-" * (multiple < 0), str(abs(multiple))
    value = Fraction(multiple) * Fraction(10) ** power
    exponent = power + len(digits) - 1
    padded = digits.rjust(1 - power, "0") if power < 0 else digits + "0" * power
    positional = f"{padded[:power]}.{padded[power:]}".rstrip("0").rstrip(".") if power < 0 else padded
    others = digits[1:].rstrip("0")
    scientific = f"{sign}{digits[0]}{'.' if others else ''}{others}e{exponent}"
    usual = Fraction(1, 10_000) <= abs(value) < 10**6
    return [sign + positional] if usual else [sign + positional, scientific]
