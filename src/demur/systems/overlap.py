"""How many words, and how many phrases, two texts share: the measures of the Perl package Text::Similarity."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

_NO_WORDS: frozenset[str] = frozenset()
_cleared = re.compile(r"""[.;:,?!(){}"`$%@<>_\s]+|--|(?<!\w)'|'(?!\w)""")


def words(text: str, *, stop_words: Collection[str] = _NO_WORDS) -> list[str]:
    """The words of a text, cleaned as Text::Similarity cleans: lower case, punctuation off, stop words out.

    Apostrophes, straight or curled, and hyphens inside a word stay, and so do signs such as = and +. A full stop parts
    what it stands between, in numbers too. A stop word is left out where it is a whole word.

    >>> words("It doesn't open -- 1.5 V, two-way!", stop_words={"it"})
    ["doesn't", 'open', '1', '5', 'v', 'two-way']
    """
    found = _cleared.sub(" ", text.lower().replace("’", "'")).split()
    return [word for word in found if word not in stop_words] if stop_words else found


@dataclass(frozen=True, slots=True)
class Overlap:
    """What two texts share: the lengths of the phrases, longest first, and the number of words in each text.

    Each score rises with the likeness of the texts. Where nothing is shared, all are 0, also for a text without words.

    >>> shared = overlap(words("the bulb is in a closed path"), words("A closed path with the battery"))
    >>> shared.phrases, shared.raw, round(shared.f1, 3), shared.lesk
    ((3, 1), 4, 0.615, 10)
    """

    phrases: tuple[int, ...]
    first: int
    second: int

    @property
    def raw(self) -> int:
        """Words shared, each as often as both texts have it."""
        return sum(self.phrases)

    @property
    def f1(self) -> float:
        """Harmonic mean of the shares of either text that the other has too, 2 raw / (first + second)."""
        return 2 * self.raw / (self.first + self.second) if self.phrases else 0.0

    @property
    def lesk(self) -> int:
        """Sum of the squared lengths of the shared phrases, which favours words in the same order ("raw lesk")."""
        return sum(length * length for length in self.phrases)

    @property
    def normalised_lesk(self) -> float:
        """The same over the product of the lengths of the texts: 1 for a text and itself ("lesk")."""
        return self.lesk / (self.first * self.second) if self.phrases else 0.0

    @property
    def cosine(self) -> float:
        """Words shared over the geometric mean of the lengths of the texts.

        This is what Text::Similarity calls cosine. The cosine of the vectors of word counts is the same where no word
        occurs twice in a text.
        """
        return self.raw / math.sqrt(self.first * self.second) if self.phrases else 0.0


def overlap(first: Sequence[str], second: Sequence[str]) -> Overlap:
    """The phrases that two lists of words share: the longest first, no word used twice (Banerjee and Pedersen, 2002).

    Of phrases of one length the one that begins first in the first text is taken, where it begins first in the second.

    >>> overlap("a b c d".split(), "c d x a b c".split()).phrases
    (3, 1)
    """
    runs = [(-length, start, other) for start, other, length in _runs(first, second)]
    heapify(runs)
    taken: list[int] = []
    used, other_used = bytearray(len(first)), bytearray(len(second))
    while runs:
        length, start, other = heappop(runs)
        length = -length
        if any(used[start : start + length]) or any(other_used[other : other + length]):
            for place, free in _free_parts(used, other_used, start, other, length):
                heappush(runs, (-free, start + place, other + place))
            continue
        taken.append(length)
        used[start : start + length] = other_used[other : other + length] = b"\x01" * length
    return Overlap(tuple(taken), len(first), len(second))


def _runs(first: Sequence[str], second: Sequence[str]) -> Iterator[tuple[int, int, int]]:
    """The common phrases that could not be longer, as start in the first text, start in the second, and length."""
    places: dict[str, list[int]] = {}
    for place, word in enumerate(second):
        places.setdefault(word, []).append(place)
    running: dict[int, int] = {}
    for start in range(len(first) + 1):
        here = places.get(first[start], ()) if start < len(first) else ()
        going_on = {place: running.pop(place - 1, 0) + 1 for place in here}
        for end, length in running.items():
            yield start - length, end - length + 1, length
        running = going_on


def _free_parts(
    used: bytearray, other_used: bytearray, start: int, other: int, length: int
) -> Iterator[tuple[int, int]]:
    """The parts of a run no word of which is used yet, as place in the run and length."""
    begin = 0
    for place in range(length + 1):
        if place == length or used[start + place] or other_used[other + place]:
            if place > begin:
                yield begin, place - begin
            begin = place + 1
