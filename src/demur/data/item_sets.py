"""Acts as sets of semantic items, each distinct set kept once and numbered."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field

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
        within = np.arange(start[-1]) - np.repeat(start[:-1], size)
        return self.item[np.repeat(self.start[codes], size) + within], start


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


@dataclass(slots=True)
class Interned:
    """Texts and lists met while reading, each turned into a set of items once and numbered as they come."""

    read: Callable[[Hashable], frozenset[str]]
    sets: list[frozenset[str]] = field(default_factory=list)
    _numbers: dict[Hashable, int] = field(default_factory=dict)
    _known: dict[frozenset[str], int] = field(default_factory=dict)

    def number(self, written: Hashable) -> int:
        """The number of what is written so."""
        found = self._numbers.get(written)
        return self._new(written) if found is None else found

    def numbers(self, written: Iterable[Hashable]) -> list[int]:
        """The numbers of many."""
        known, new = self._numbers, self._new
        return [new(one) if (found := known.get(one)) is None else found for one in written]

    def _new(self, written: Hashable) -> int:
        items = self.read(written)
        number = self._known.setdefault(items, len(self.sets))
        if number == len(self.sets):
            self.sets.append(items)
        self._numbers[written] = number
        return number
