"""How far judges agree: observed agreement, Cohen's and Fleiss' kappa and Krippendorff's alpha, with intervals.

Each is a finish on sums over items, so that replicates, which draw items, are those sums with every item counted as
often as it was drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demur.core.arrays import Array
from demur.core.stats.intervals import Figure, exact_binomial, expanded_percentiles, normal
from demur.core.stats.resampling import Draws
from demur.core.stats.sweep import ratio

LEAST_ITEMS = 5
"""Items judged by several from which replicates tell something of the uncertainty."""

NOBODY_TWICE = "no answer is judged by two judges yet"
ONE_LABEL = "all judgements are the same label, so that chance alone would agree as well"
FEW_ITEMS = f"no interval: fewer than {LEAST_ITEMS} answers are judged by two judges"


@dataclass(frozen=True, eq=False)
class Ratings:
    """Which label each judge gave each item: numbers of labels, a row for each item, -1 where there is none."""

    codes: NDArray[np.int64]
    labels: tuple[str, ...]
    judges: tuple[str, ...]

    @classmethod
    def of(cls, rows: Sequence[Sequence[str | None]], judges: Sequence[str], labels: Sequence[str] = ()) -> Ratings:
        """Ratings from labels, a row for each item; None where a judge gave none.

        >>> Ratings.of([["yes", "no"], ["yes", None]], ["anna", "ben"]).codes.tolist()
        [[0, 1], [0, -1]]
        """
        known = tuple(labels) or tuple(dict.fromkeys(label for row in rows for label in row if label is not None))
        places = {label: place for place, label in enumerate(known)}
        codes = [[-1 if label is None else places[label] for label in row] for row in rows]
        return cls(np.array(codes, np.int64).reshape(len(rows), len(judges)), known, tuple(judges))

    @cached_property
    def counts(self) -> Array:
        """How many judges gave an item each label, of the items that several judged."""
        several = self.codes[(self.codes >= 0).sum(axis=1) > 1]
        found = np.zeros((several.shape[0], len(self.labels)))
        for column in several.T:
            kept = np.flatnonzero(column >= 0)
            found[kept, column[kept]] += 1
        return found

    @property
    def shared(self) -> int:
        """How many items were judged by two judges or more."""
        return int(self.counts.shape[0])

    def pair(self, one: int, two: int) -> Ratings:
        """The ratings of two judges alone."""
        return Ratings(self.codes[:, [one, two]], self.labels, (self.judges[one], self.judges[two]))

    def table(self) -> Array:
        """How often the first of two judges gave a label, by rows, where the second gave another, by columns."""
        size = len(self.labels)
        both = self.codes[(self.codes >= 0).all(axis=1)]
        place = both[:, 0] * size + both[:, 1]
        return np.bincount(place, minlength=size * size).reshape(size, size).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A measure of agreement: `terms` are what each item adds, `finish` makes the value of their sums."""

    name: str
    title: str
    terms: Callable[[Ratings], Array]
    finish: Callable[[Array], Array]

    def figure(self, ratings: Ratings, *, level: float = 0.95, replicates: int = 1000, seed: int = 0) -> Figure:
        """The value with its interval by the bootstrap over items.

        Where every judge agreed on every item replicates do too; there the lower end is where chance-corrected
        agreement would be, were judges to agree as seldom as the exact binomial bound allows.
        """
        terms = self.terms(ratings)
        if not terms.shape[0]:
            return Figure(math.nan, why=NOBODY_TWICE)
        terms = terms[np.lexsort(terms.T)]  # an order of their own, so that the order of items plays no part
        value = float(self.finish(terms.sum(axis=0)))
        if math.isnan(value):
            return Figure(value, why=ONE_LABEL)
        items = terms.shape[0]
        if items < LEAST_ITEMS:
            return Figure(value, why=FEW_ITEMS)
        drawn = np.concatenate([self.finish(times @ terms) for times in Draws(items, replicates, seed)])
        low, high = expanded_percentiles(drawn, level, items)
        if math.isnan(low) or low == high:
            low, high = float(exact_binomial(1.0, items, normal(level))[0]), 1.0
            low = low if self.name == "observed" else 1 - (1 - low) / _chance_disagreement(ratings)
        return Figure(value, min(low, value), max(min(high, 1.0), value))


def _chance_disagreement(ratings: Ratings) -> float:
    """How often two judgements taken at random differ."""
    share = ratings.counts.sum(axis=0) / ratings.counts.sum()
    return float(1 - np.square(share).sum())


def _item_terms(ratings: Ratings) -> Array:
    """Of each item: 1, pairs of its judges that agree, by pair and by judge, its judges, and its counts of labels."""
    counts = ratings.counts
    judges = counts.sum(axis=1)
    agreeing = (counts * (counts - 1)).sum(axis=1)
    parts = [np.ones_like(judges), agreeing / (judges * (judges - 1)), agreeing / (judges - 1), judges]
    return np.column_stack([*parts, counts])


def _observed(sums: Array) -> Array:
    return ratio(sums[..., 1], sums[..., 0])


def _fleiss(sums: Array) -> Array:
    chance = np.square(ratio(sums[..., 4:], sums[..., 3:4])).sum(axis=-1)
    return ratio(_observed(sums) - chance, 1 - chance)


def _alpha(sums: Array) -> Array:
    agreeing, n, labels = sums[..., 2], sums[..., 3], sums[..., 4:]
    expected = n * (n - 1) - (labels * (labels - 1)).sum(axis=-1)
    return np.asarray(1 - ratio((n - 1) * (n - agreeing), expected))


def _cell_terms(ratings: Ratings) -> Array:
    """Of each item that both of two judges judged: 1 in the cell of their labels."""
    size = len(ratings.labels)
    both = ratings.codes[(ratings.codes >= 0).all(axis=1)]
    return np.asarray(np.eye(size * size)[both[:, 0] * size + both[:, 1]])


def _cohen(sums: Array) -> Array:
    size = math.isqrt(sums.shape[-1])
    cells = sums.reshape(*sums.shape[:-1], size, size)
    n = cells.sum(axis=(-1, -2))
    agreed = ratio(np.trace(cells, axis1=-2, axis2=-1), n)
    chance = ratio((cells.sum(axis=-1) * cells.sum(axis=-2)).sum(axis=-1), n * n)
    return ratio(agreed - chance, 1 - chance)


OBSERVED = Coefficient("observed", "observed agreement", _item_terms, _observed)
COHEN = Coefficient("cohen_kappa", "Cohen's kappa", _cell_terms, _cohen)
FLEISS = Coefficient("fleiss_kappa", "Fleiss' kappa", _item_terms, _fleiss)
ALPHA = Coefficient("krippendorff_alpha", "Krippendorff's alpha", _item_terms, _alpha)


@dataclass(frozen=True, eq=False)
class JudgePair:
    """Two judges: on how many items they met, how far they agree, and their labels against each other."""

    judges: tuple[str, str]
    n: int
    observed: Figure
    kappa: Figure
    table: Array


@dataclass(frozen=True, eq=False)
class Agreement:
    """How far judges agree, on the items that two or more of them judged.

    Cohen's kappa is that of two judges (Cohen 1960); of more there is one for each two. Fleiss' kappa takes any number
    of judges, who need not be the same for all items (Fleiss 1971); Krippendorff's alpha too, and allows for few items
    (Krippendorff 2004, chapter 11). 1 is perfect, 0 what labels given at random would reach. Labels have no order.

    >>> times = {"right right": 20, "wrong wrong": 15, "right wrong": 5, "wrong right": 10}
    >>> rows = [both.split() for both, count in times.items() for _ in range(count)]
    >>> found = agreement(Ratings.of(rows, ["anna", "ben"]))
    >>> round(found.figures["cohen_kappa"].value, 4)
    0.4
    """

    n: int
    labels: tuple[str, ...]
    figures: dict[str, Figure]
    pairs: tuple[JudgePair, ...]

    def to_dict(self) -> dict[str, Any]:
        """The agreement as plain values."""
        return {
            "n": self.n,
            "measures": {name: figure.to_dict() for name, figure in self.figures.items()},
            "pairs": [
                {
                    "judges": list(pair.judges),
                    "n": pair.n,
                    "observed": pair.observed.to_dict(),
                    "cohen_kappa": pair.kappa.to_dict(),
                    "table": [[int(count) for count in row] for row in pair.table.tolist()],
                }
                for pair in self.pairs
            ],
            "labels": list(self.labels),
        }


def agreement(ratings: Ratings, *, level: float = 0.95, replicates: int = 1000, seed: int = 0) -> Agreement:
    """How far judges agree: all of them together, and every two of them."""
    how: dict[str, Any] = {"level": level, "replicates": replicates, "seed": seed}
    pairs = []
    for one, two in combinations(range(len(ratings.judges)), 2):
        pair = ratings.pair(one, two)
        figures = OBSERVED.figure(pair, **how), COHEN.figure(pair, **how)
        pairs.append(JudgePair((pair.judges[0], pair.judges[1]), pair.shared, *figures, pair.table()))
    figures_of_all = {"observed": OBSERVED.figure(ratings, **how)}
    if len(pairs) == 1:
        figures_of_all["cohen_kappa"] = pairs[0].kappa
    figures_of_all |= {one.name: one.figure(ratings, **how) for one in (FLEISS, ALPHA)}
    return Agreement(ratings.shared, ratings.labels, figures_of_all, tuple(pairs))
