"""Agreement of judges by the definitions, one pair of judgements after the other."""

from collections import Counter
from collections.abc import Sequence
from itertools import permutations

Rows = Sequence[Sequence[str | None]]


def _several(rows: Rows) -> list[list[str]]:
    given = [[label for label in row if label is not None] for row in rows]
    return [row for row in given if len(row) > 1]


def observed(rows: Rows) -> float:
    """The mean share of pairs of judges that agree on an item."""
    shares = []
    for row in _several(rows):
        pairs = list(permutations(row, 2))
        shares.append(sum(one == two for one, two in pairs) / len(pairs))
    return sum(shares) / len(shares) if shares else float("nan")


def fleiss(rows: Rows) -> float:
    """Fleiss (1971), equations 1 to 7, with as many judges for each item as it has."""
    labels = Counter(label for row in _several(rows) for label in row)
    if not labels:
        return float("nan")
    total = sum(labels.values())
    chance = sum((count / total) ** 2 for count in labels.values())
    return (observed(rows) - chance) / (1 - chance) if chance < 1 else float("nan")


def krippendorff(rows: Rows) -> float:
    """Krippendorff (2011): the matrix of coincidences, for labels without an order."""
    coincidences: Counter[tuple[str, str]] = Counter()
    for row in _several(rows):
        for pair in permutations(row, 2):
            coincidences[pair] += 1 / (len(row) - 1)  # type: ignore[assignment]
    totals: Counter[str] = Counter()
    for (one, _), count in coincidences.items():
        totals[one] += count
    n = sum(totals.values())
    seen = sum(count for (one, two), count in coincidences.items() if one != two)
    expected = sum(totals[one] * totals[two] for one in totals for two in totals if one != two)
    return 1 - (n - 1) * seen / expected if expected else float("nan")


def cohen(rows: Rows) -> float:
    """Cohen (1960) for two judges, on the items that both judged."""
    both = [(row[0], row[1]) for row in rows if row[0] is not None and row[1] is not None]
    if not both:
        return float("nan")
    first, second = (Counter(pair[place] for pair in both) for place in (0, 1))
    agreed = sum(one == two for one, two in both) / len(both)
    chance = sum(first[label] * second[label] for label in first) / len(both) ** 2
    return (agreed - chance) / (1 - chance) if chance < 1 else float("nan")
