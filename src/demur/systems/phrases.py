"""Phrases with optional words and choices, and where many of them occur in a sentence."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Generic, NamedTuple, TypeVar

from demur.errors import DataError

LIMIT = 10_000
"""How many plain phrases one phrase may stand for."""

_CLOSING = {"[": "]", "(": ")"}
_piece = re.compile(r"[\[\]()|]|\{[^{}\s]*\}|[^\s\[\]()|{}]+|[{}]")
_apostrophe = re.compile(r"['’]")
_word = re.compile(r"\w+")

Meaning = TypeVar("Meaning")
Phrase = tuple[str, ...]


def tokens(text: str) -> list[str]:
    """The words of a text, without regard to case, apostrophes and punctuation.

    >>> tokens("I don't care -- Any part-of town!")
    ['i', 'dont', 'care', 'any', 'part', 'of', 'town']
    """
    return _word.findall(_apostrophe.sub("", text.casefold()))


def expanded(phrase: str, where: str) -> list[Phrase]:
    """Every plain phrase that a phrase stands for: [word] may be left out, (one|other) is a choice.

    >>> expanded("[the] phone (number|code)", "file")
    [('the', 'phone', 'number'), ('the', 'phone', 'code'), ('phone', 'number'), ('phone', 'code')]
    """
    ways = _Reader(phrase, where).phrases()
    if () in ways:
        raise DataError("must not be a phrase without words", where=where, got=phrase, fix="leave a word unbracketed")
    return list(dict.fromkeys(ways))


class _Reader:
    """Reads a phrase from left to right."""

    def __init__(self, phrase: str, where: str) -> None:
        self.phrase = phrase
        self.where = where
        self.pieces = deque(_piece.findall(phrase))

    def phrases(self) -> list[Phrase]:
        ways = self._choice("")
        if self.pieces:
            raise self._fault(f'"{self.pieces[0]}" closes nothing')
        return ways

    def _choice(self, closing: str) -> list[Phrase]:
        ways = self._sequence()
        while self.pieces and self.pieces[0] == "|" and closing:
            self.pieces.popleft()
            ways = ways + self._sequence()
        return ways

    def _sequence(self) -> list[Phrase]:
        ways: list[Phrase] = [()]
        while self.pieces and self.pieces[0] not in ("]", ")", "|"):
            parts = self._part()
            if len(ways) * len(parts) > LIMIT:
                raise self._fault(f"it stands for more than {LIMIT:,} phrases")
            ways = [before + after for before, after in product(ways, parts)]
        return ways

    def _part(self) -> list[Phrase]:
        piece = self.pieces.popleft()
        if piece in _CLOSING:
            ways = self._choice(_CLOSING[piece])
            if not self.pieces or self.pieces.popleft() != _CLOSING[piece]:
                raise self._fault(f'"{piece}" has no "{_CLOSING[piece]}"')
            return [*ways, ()] if piece == "[" else ways
        if piece in ("{", "}"):
            raise self._fault(f'"{piece}" does not go with a name')
        return [(piece,) if piece.startswith("{") else tuple(tokens(piece))]

    def _fault(self, reason: str) -> DataError:
        return DataError(f"must be a phrase, but {reason}", where=self.where, got=self.phrase, fix="mend the brackets")


class Found(NamedTuple, Generic[Meaning]):
    """A phrase in a sentence: where it starts, where the rest goes on, what it means."""

    start: int
    end: int
    meaning: Meaning


class Finder(Generic[Meaning]):
    """Finds phrases in sentences: leftmost first, the longest of those, none over another (Aho and Corasick, 1975).

    >>> finder = Finder({("north",): "an area", ("north", "african"): "a food"})
    >>> [found.meaning for found in finder.found(["north", "african", "north"])]
    ['a food', 'an area']
    """

    def __init__(self, phrases: Mapping[Phrase, Meaning]) -> None:
        self._onward: list[dict[str, int]] = [{}]
        self._depth = [0]
        self._meaning: list[tuple[int, Meaning] | None] = [None]
        for phrase, meaning in phrases.items():
            state = self._grown(phrase)
            self._meaning[state] = (len(phrase), meaning)
        self._back = [0] * len(self._depth)
        self._link()

    def found(self, sentence: Sequence[str]) -> Iterator[Found[Meaning]]:
        """The phrases of a sentence, from left to right."""
        begin = 0
        while (first := self._first(sentence, begin)) is not None:
            yield first
            begin = first.end

    def _first(self, sentence: Sequence[str], begin: int) -> Found[Meaning] | None:
        best: Found[Meaning] | None = None
        state = 0
        for end, word in enumerate(sentence[begin:], start=begin + 1):
            state = self._after(state, word)
            if best is not None and end - self._depth[state] > best.start:
                return best
            ended = self._meaning[state]
            if ended is not None and (best is None or end - ended[0] <= best.start):
                best = Found(end - ended[0], end, ended[1])
        return best

    def _after(self, state: int, word: str) -> int:
        while state and word not in self._onward[state]:
            state = self._back[state]
        return self._onward[state].get(word, 0)

    def _grown(self, phrase: Iterable[str]) -> int:
        state = 0
        for word in phrase:
            if word not in self._onward[state]:
                self._onward[state][word] = len(self._depth)
                self._onward.append({})
                self._depth.append(self._depth[state] + 1)
                self._meaning.append(None)
            state = self._onward[state][word]
        return state

    def _link(self) -> None:
        """Give each state the longest other that ends with the same words, and the longest phrase that ends there."""
        waiting = deque(self._onward[0].values())
        while waiting:
            state = waiting.popleft()
            for word, child in self._onward[state].items():
                self._back[child] = self._after(self._back[state], word)
                if self._meaning[child] is None:
                    self._meaning[child] = self._meaning[self._back[child]]
                waiting.append(child)
