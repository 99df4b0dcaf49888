"""Acts as sets of semantic items, each distinct set kept once and numbered."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int32]
Offsets = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class ItemSets:
    """Distinct sets of items: set number k holds the items `item[start[k]:start[k + 1]]`, numbers into `names`.

    Sets and items are numbered in the order of their texts, so nothing depends on the order in which they were met.
    """

    names: tuple[str, ...]
    start: Offsets
    item: Codes

    @property
    def size(self) -> Offsets:
        """How many items each set has."""
        return np.diff(self.start)

    def __len__(self) -> int:
        return self.start.size - 1

    def items_of(self, code: int) -> tuple[str, ...]:
        """The items of one set, in order.

        >>> sets, codes = numbered_sets([frozenset({"b", "a"}), frozenset()])
        >>> [sets.items_of(code) for code in codes]
        [('a', 'b'), ()]
        """
        return tuple(self.names[item] for item in self.item[self.start[code] : self.start[code + 1]])

    def expanded(self, codes: Codes) -> tuple[Codes, Offsets]:
        """The items of many sets one after the other, and where each set starts."""
        size = self.size[codes]
        start = np.concatenate([[0], np.cumsum(size)])
        place = np.repeat(self.start[codes] - start[:-1], size) + np.arange(start[-1])
        return self.item[place], start


def numbered_sets(sets: Sequence[frozenset[str]]) -> tuple[ItemSets, Codes]:
    """The distinct sets among these, and the number of each."""
    names = sorted(frozenset().union(*sets))
    place = {name: number for number, name in enumerate(names)}
    listed = [tuple(sorted(place[name] for name in one)) for one in sets]
    distinct = sorted(set(listed))
    number = {one: code for code, one in enumerate(distinct)}
    start = np.concatenate([[0], np.cumsum([len(one) for one in distinct], dtype=np.int64)]).astype(np.int64)
    item = np.array([part for one in distinct for part in one], dtype=np.int32)
    return ItemSets(tuple(names), start, item), np.array([number[one] for one in listed], dtype=np.int32)


class Interned(dict[Hashable, int]):
    """Texts and lists met while reading, each turned into a set of items once and numbered as they come."""

    def __init__(self, read: Callable[[Hashable], frozenset[str]]) -> None:
        super().__init__()
        self.read = read
        self.sets: list[frozenset[str]] = []
        self._known: dict[frozenset[str], int] = {}

    def __missing__(self, written: Hashable) -> int:
        items = self.read(written)
        number = self._known.setdefault(items, len(self.sets))
        if number == len(self.sets):
            self.sets.append(items)
        self[written] = number
        return number

    def numbers(self, written: Sequence[Hashable]) -> Offsets:
        """The numbers of many."""
        return np.fromiter(map(self.__getitem__, written), dtype=np.int64, count=len(written))
