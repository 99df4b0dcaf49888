"""Texts as tokens: words, phones and runs of phones, and several of these in one bag.

A tokenizer is made from a name. The names of one bag are joined by `+`; what is joined by `|` (`mixed` is short for
`words|phones2`) is no bag: each part has a model of its own, and the posteriors of the models are averaged.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from demur.errors import UsageError
from demur.systems import pronunciation

NAMES = ("words", "phones1", "phones2", "phones3")
"""The kinds of tokens; `phones` is short for `phones2`."""

SHORT = {"phones": "phones2", "mixed": "words|phones2"}
EDGE = "#"
"""Stands before the first and after the last phone of a word."""

_KEPT_WORDS = 1 << 16
_BREAK = "\u200b"
"""The space without width, which parts words; all else that cannot be seen does not."""
_word = re.compile(r"[^\W_][^\s']*(?:'[^\W_][^\s']*)*")


class Tokenizer(Protocol):
    """Makes tokens of a text."""

    @property
    def name(self) -> str:
        """What `tokenizer` makes the same again from."""
        ...

    def __call__(self, text: str) -> list[str]:
        """The tokens of one text, as often as they occur; none for an empty one."""
        ...


def tokenizer(name: str) -> Tokenizer:
    """The tokenizer of a name, or of names joined by `+`.

    Tokens of different kinds are never equal, so a bag keeps them apart.

    >>> tokenizer("words")("What's a café?")
    ["what's", 'a', 'café']
    >>> tokenizer("phones1+phones2")("Hi!")
    ['1:h', '1:aɪ', '2:# h', '2:h aɪ', '2:aɪ #']
    """
    if len(parts := parts_of(name)) > 1:
        raise UsageError(f'one tokenizer is asked for, but "{name}" is {len(parts)}: {" and ".join(parts)}')
    kinds = parts[0].split("+")
    if any(kind != "words" for kind in kinds):
        pronunciation.required()
    made: list[Tokenizer] = [Words() if kind == "words" else PhoneRuns(int(kind[-1])) for kind in kinds]
    return made[0] if len(made) == 1 else Bag(tuple(made))


def parts_of(tokens: str) -> tuple[str, ...]:
    """The names of the tokenizers whose posteriors are averaged, in full.

    >>> parts_of("mixed"), parts_of("words|phones3"), parts_of("words+phones")
    (('words', 'phones2'), ('words', 'phones3'), ('words+phones2',))
    """
    parts = SHORT.get(tokens.strip(), tokens).split("|")
    return tuple("+".join(_kinds(part, asked=tokens)) for part in parts)


def words(text: str) -> list[str]:
    """The words of a text: letters and digits, with apostrophes inside, whatever their case; all else is left out.

    >>> words("“Two-way” MIRRORS don’t cost $1.50, dogs' bowls do")
    ['two', 'way', 'mirrors', "don't", 'cost', '1', '50', 'dogs', 'bowls', 'do']
    """
    return _word.findall(pronunciation.folded(text).translate(_written))


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a text."""

    @property
    def name(self) -> str:
        """Always `words`."""
        return "words"

    def __call__(self, text: str) -> list[str]:
        """The words, in their order."""
        return words(text)


@dataclass(frozen=True, slots=True)
class PhoneRuns:
    """Runs of `n` phones, over the borders of words; from two on, the edges of the text count as phones.

    Where words begin and end is what a recogniser is least sure of, and nothing in the sound says it. Numbers are
    taken as they are said, so `2pm` and `two pm` have the same tokens. A word without phones has none.
    """

    n: int

    @property
    def name(self) -> str:
        """`phones` and how many make a run."""
        return f"phones{self.n}"

    def __call__(self, text: str) -> list[str]:
        """The runs, in their order."""
        return _runs_of([phone for word in words(text) for phone in _phones(word)], self.n)


@dataclass(frozen=True, slots=True)
class Bag:
    """All tokens of several tokenizers together."""

    parts: tuple[Tokenizer, ...]

    @property
    def name(self) -> str:
        """The names of the parts, joined by `+`."""
        return "+".join(part.name for part in self.parts)

    def __call__(self, text: str) -> list[str]:
        """The tokens of the first part, then those of the next."""
        return [token for part in self.parts for token in part(text)]


class _Written(dict[int, str]):
    """For `str.translate`: keeps what words are written with, drops what is no sign of its own; all else is a space.

    Filled as characters come, for Python's regular expressions do not know accents that stand as characters of their
    own, which many scripts write vowels with.
    """

    def __missing__(self, code: int) -> str:
        self[code] = _kept(chr(code))
        return self[code]


_written = _Written()


def _kept(sign: str) -> str:
    kind = unicodedata.category(sign)
    if (kind in ("Cf", "Me") and sign != _BREAK) or "VARIATION SELECTOR" in unicodedata.name(sign, ""):
        return ""
    return sign if kind[0] in "LMN" or sign == "'" else " "


@lru_cache(_KEPT_WORDS)
def _phones(word: str) -> tuple[str, ...]:
    return tuple(phone for said in pronunciation.spoken(word) for phone in pronunciation.phones_of(said))


def _runs_of(phones: list[str], n: int) -> list[str]:
    if not phones:
        return []
    row = phones if n == 1 else [EDGE, *phones, EDGE]
    # equal tokens are one object, so that counting them is quick and keeping them cheap
    return [sys.intern(f"{n}:{' '.join(row[start : start + n])}") for start in range(len(row) - n + 1)]


def _kinds(bag: str, *, asked: str) -> list[str]:
    names = [name.strip() for name in bag.split("+")]
    kinds = [SHORT.get(name, name) for name in names]
    if unknown := [name for name, kind in zip(names, kinds, strict=True) if kind not in NAMES]:
        choices = ", ".join((*NAMES, *SHORT))
        raise UsageError(f'tokens are {choices}, or several joined by + or |; "{asked}" has "{unknown[0]}"')
    if len(set(kinds)) < len(kinds):
        raise UsageError(f'a bag has each kind of tokens once; got "{asked}"')
    return kinds
