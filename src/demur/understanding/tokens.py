"""Texts as tokens: words, phones and runs of phones, their counts, and how English words sound."""

from __future__ import annotations

import re
import sqlite3
import sys
import unicodedata
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from itertools import pairwise
from threading import Lock
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from demur.errors import UsageError

Phones: TypeAlias = tuple[str, ...]

_KEPT_WORDS = 1 << 16
_LONGEST_NUMBER = 9
"""Longer numbers are codes rather than amounts, and said digit by digit."""
_YEARS = range(1100, 2100)

_apostrophes = str.maketrans(dict.fromkeys("‘’ʼ′", "'"))
_stress = str.maketrans("", "", "ˈˌ")
_piece = re.compile(
    r"(?P<number>\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.(?P<decimals>\d+)|(?P<nth>st|nd|rd|th)(?![^\W\d_]))?"
    r"|[^\W\d_]+(?:'[^\W\d_]+)*"
)
_vowel = re.compile("[aeiouy]")

_SIBILANTS = frozenset(("s", "z", "ʃ", "ʒ", "t͡ʃ", "d͡ʒ"))
_VOICELESS = frozenset(("p", "t", "k", "f", "θ"))
_guessing = Lock()


def available() -> bool:
    """Whether the packages that pronunciations come from are installed."""
    return find_spec("gruut") is not None and find_spec("gruut_lang_en") is not None


def required() -> None:
    """Raise a UsageError that says what to install, where pronunciations are not available."""
    if not available():
        raise UsageError("pronunciations need gruut and its English dictionary: pip install 'demur[phones]'")


@lru_cache(_KEPT_WORDS)
def pronounced(word: str) -> Phones:
    """The phones of a word in the letters of the IPA, without stress; none for what has no letter or digit.

    Of several pronunciations it is the dictionary's first. Words that the dictionary does not have are guessed from
    their spelling. Letters that English does not use are not said, so words of other scripts have no phones.

    >>> " ".join(pronounced("hello"))
    'h ɛ l oʊ'
    >>> " ".join(pronounced("2pm"))
    't u p i ɛ m'
    """
    return tuple(phone for said in spoken(word) for phone in phones_of(said))


def spoken(word: str) -> tuple[str, ...]:
    """A written word as the words that are said for it: numbers in words, unknown words without a vowel by letters.

    Years are said as years and long numbers digit by digit; signs such as $ are not said.

    >>> spoken("2pm"), spoken("$3.5"), spoken("21st"), spoken("1999"), spoken("gps")
    (('two', 'pm'), ('three', 'point', 'five'), ('twenty', 'first'), ('nineteen', 'ninety', 'nine'), ('g', 'p', 's'))
    """
    whole = folded(word)
    if whole in _lexicon():
        return (whole,)
    if not whole.isascii():
        signs = unicodedata.normalize("NFKD", whole)
        whole = "".join(sign for sign in signs if not unicodedata.combining(sign))
    spelled: list[str] = []
    for piece in _piece.finditer(whole):
        part = piece[0]
        if piece["number"]:
            spelled += _number_in_words(piece["number"], piece["decimals"], ordinal=piece["nth"] is not None)
        elif part.isascii() and part.isalpha() and part not in _lexicon() and not _vowel.search(part):
            spelled += part  # most likely an abbreviation that is said letter by letter
        else:
            spelled.append(part)
    return tuple(spelled)


def folded(text: str) -> str:
    """A text in which case, width and the shape of apostrophes make no difference any more.

    >>> folded("What’s ＮＥＷ?")
    "what's new?"
    """
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKC", text).casefold()
    return unicodedata.normalize("NFKC", text).translate(_apostrophes)


@lru_cache(_KEPT_WORDS)
def phones_of(said: str) -> Phones:
    """The phones of one word as `spoken` gives it: from the dictionary, as a possessive of another word, or guessed."""
    known = _lexicon().get(said)
    if known is not None:
        return tuple(known.translate(_stress).split())
    owner, apostrophe, ending = said.rpartition("'")
    if apostrophe and ending == "s" and (phones := pronounced(owner)):
        if phones[-1] in _SIBILANTS:
            return (*phones, "ɪ", "z")
        return (*phones, "s" if phones[-1] in _VOICELESS else "z")
    with _guessing:
        found = _guesser()(said)
    return tuple(filter(None, (phone.translate(_stress) for phone in found)))


def _number_in_words(number: str, decimals: str | None, *, ordinal: bool) -> list[str]:
    from num2words import num2words

    digits = number.replace(",", "")
    if len(digits) > _LONGEST_NUMBER or (len(digits) > 1 and int(digits[0]) == 0):
        texts = [num2words(int(digit)) for digit in digits]
    else:
        is_year = not ordinal and not decimals and len(number) == 4 and int(number) in _YEARS
        texts = [num2words(int(digits), to="ordinal" if ordinal else "year" if is_year else "cardinal")]
    if decimals:
        texts += ["point", *(num2words(int(digit)) for digit in decimals)]
    return [word for word in re.findall("[a-z]+", " ".join(texts)) if word != "and"]


@cache
def _lexicon() -> dict[str, str]:
    """Word to phones, parted by spaces and with stress, of all the dictionary."""
    required()
    from gruut_lang_en import get_lang_dir

    # read only and as a file that nobody changes, so that it may stand where nothing can be written
    place = f"{(get_lang_dir() / 'lexicon.db').as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(place, uri=True)) as connection:
        return dict(connection.execute("SELECT word, phonemes FROM word_phonemes WHERE pron_order = 0"))


@cache
def _guesser() -> Callable[[str], Sequence[str]]:
    """The model that guesses, loaded when the first unknown word comes.

    Its module is loaded without the package around it, whose import takes half a second for dates and times.
    """
    from gruut_lang_en import get_lang_dir

    package: Any = find_spec("gruut")
    spec: Any = spec_from_file_location("gruut_g2p", f"{package.submodule_search_locations[0]}/g2p.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    guess: Callable[[str], Sequence[str]] = module.GraphemesToPhonemes(get_lang_dir() / "g2p" / "model.crf")
    return guess


NAMES = ("words", "phones1", "phones2", "phones3")
"""The kinds of tokens; `phones` is short for `phones2`."""

SHORT = {"phones": "phones2", "mixed": "words|phones2"}
EDGE = "#"
"""Stands before the first and after the last phone of a word."""
_BREAK = "\u200b"
"""The space without width, which parts words; all else that cannot be seen does not."""
_word = re.compile(r"[^\W_][^\s']*(?:'[^\W_][^\s']*)*")


class Tokenizer(Protocol):
    """Makes tokens of a text."""

    @property
    def name(self) -> str:
        """What `tokenizer` makes the same again from."""

    def __call__(self, text: str) -> list[str]:
        """The tokens of one text, as often as they occur; none for an empty one."""


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
        required()
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
    return _word.findall(folded(text).translate(_written))


@dataclass(frozen=True)
class Words:
    """The words of a text."""

    name: ClassVar[str] = "words"

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
        phones = [phone for word in words(text) for phone in pronounced(word)]
        if not phones:
            return []
        row = phones if self.n == 1 else [EDGE, *phones, EDGE]
        # equal tokens are one object, so that counting them is quick and keeping them cheap
        starts = range(len(row) - self.n + 1)
        return [sys.intern(f"{self.n}:{' '.join(row[start : start + self.n])}") for start in starts]


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
        sign = chr(code)
        kind = unicodedata.category(sign)
        unseen = (kind in ("Cf", "Me") and sign != _BREAK) or "VARIATION SELECTOR" in unicodedata.name(sign, "")
        self[code] = "" if unseen else sign if kind[0] in "LMN" or sign == "'" else " "
        return self[code]


_written = _Written()


def _kinds(bag: str, *, asked: str) -> list[str]:
    names = [name.strip() for name in bag.split("+")]
    kinds = [SHORT.get(name, name) for name in names]
    if unknown := [name for name, kind in zip(names, kinds, strict=True) if kind not in NAMES]:
        choices = ", ".join((*NAMES, *SHORT))
        raise UsageError(f'tokens are {choices}, or several joined by + or |; "{asked}" has "{unknown[0]}"')
    if len(set(kinds)) < len(kinds):
        raise UsageError(f'a bag has each kind of tokens once; got "{asked}"')
    return kinds


Vocabulary = dict[str, int]


@dataclass(frozen=True, slots=True, eq=False)
class TokenCounts:
    """How often each token (column) occurs in each text (row)."""

    matrix: Any
    """Sparse, by rows."""
    lengths: NDArray[np.float64]
    """Tokens of each text, unknown ones included; at least 1."""
    vocabulary: Vocabulary

    @property
    def background(self) -> NDArray[np.float64]:
        """The share of each token in all texts."""
        total = np.asarray(self.matrix.sum(axis=0), dtype=np.float64).ravel()
        return np.asarray(total / total.sum()) if total.sum() else total

    def same_as(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For each of some texts (numbered from 0), the texts with the same counts, itself among them."""
        matrix = self.matrix
        keys = [
            matrix.indices[start:stop].tobytes() + matrix.data[start:stop].tobytes()
            for start, stop in pairwise(matrix.indptr)
        ]
        members: dict[bytes, list[int]] = {}
        for place, key in enumerate(keys):
            members.setdefault(key, []).append(place)
        pairs = [(row, place) for row, text in enumerate(rows) for place in members[keys[text]]]
        found = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        return found[:, 0], found[:, 1]

    def shared(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of some texts have a token that another text has too, copies of it aside."""
        if not len(rows):
            return np.zeros(0, dtype=bool)
        copies = np.bincount(self.same_as(rows)[0], minlength=len(rows))
        mine = self.matrix[rows]
        total = np.asarray(self.matrix.sum(axis=0)).ravel()
        row = np.repeat(np.arange(len(rows)), np.diff(mine.indptr))
        elsewhere = total[mine.indices] - copies[row] * mine.data > 0
        return np.asarray(np.bincount(row[elsewhere], minlength=len(rows)) > 0)


def count_tokens(texts: Sequence[str], tokens: Tokenizer, vocabulary: Vocabulary | None = None) -> TokenCounts:
    """Texts as counts; without a vocabulary every token found becomes part of one."""
    from scipy.sparse import csr_array

    learning = vocabulary is None
    known: Vocabulary = {} if vocabulary is None else vocabulary
    ends, columns, lengths = [0], [], []
    for text in texts:
        found = tokens(text)
        lengths.append(max(len(found), 1))
        if learning:
            columns += [known.setdefault(token, len(known)) for token in found]
        else:
            columns += [known[token] for token in found if token in known]
        ends.append(len(columns))
    shape = (len(texts), len(known))
    matrix = csr_array((np.ones(len(columns)), np.array(columns, dtype=np.int64), np.array(ends)), shape=shape)
    matrix.sum_duplicates()
    return TokenCounts(matrix, np.array(lengths, dtype=np.float64), known)
