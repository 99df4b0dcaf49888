"""How English words sound: phones from a dictionary, and guesses from spelling for words it does not have; offline.

The dictionary and the model that guesses are those of gruut, American English. The dictionary is read once, in full:
gruut's own look-up searches the whole table for every word.
"""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import cache, lru_cache
from importlib.util import find_spec
from threading import Lock
from typing import TypeAlias

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
    return (whole,) if whole in _lexicon() else tuple(_said(_without_accents(whole)))


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
        return (*phones, *_possessive(phones[-1]))
    return _guessed(said)


def _possessive(last: str) -> Phones:
    if last in _SIBILANTS:
        return ("ɪ", "z")
    return ("s",) if last in _VOICELESS else ("z",)


def _said(text: str) -> Iterator[str]:
    for piece in _piece.finditer(text):
        if piece["number"]:
            yield from _number_in_words(piece["number"], piece["decimals"], ordinal=piece["nth"] is not None)
        elif _is_spelled(piece[0]):
            yield from piece[0]
        else:
            yield piece[0]


def _is_spelled(word: str) -> bool:
    """Whether a word is most likely an abbreviation that is said letter by letter."""
    return word.isascii() and word.isalpha() and word not in _lexicon() and not _vowel.search(word)


def _number_in_words(number: str, decimals: str | None, *, ordinal: bool) -> list[str]:
    digits = number.replace(",", "")
    if len(digits) > _LONGEST_NUMBER or (len(digits) > 1 and int(digits[0]) == 0):
        words = _digits_in_words(digits)
    else:
        is_year = not ordinal and not decimals and len(number) == 4 and int(number) in _YEARS
        words = _in_words(int(digits), "ordinal" if ordinal else "year" if is_year else "cardinal")
    return [*words, "point", *_digits_in_words(decimals)] if decimals else words


def _digits_in_words(digits: str) -> list[str]:
    return [word for digit in digits for word in _in_words(int(digit), "cardinal")]


def _in_words(number: int, kind: str) -> list[str]:
    from num2words import num2words

    return [word for word in re.findall("[a-z]+", num2words(number, to=kind)) if word != "and"]


def _without_accents(text: str) -> str:
    if text.isascii():
        return text
    return "".join(letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter))


@cache
def _lexicon() -> dict[str, str]:
    """Word to phones, parted by spaces and with stress, of all the dictionary."""
    required()
    from gruut_lang_en import get_lang_dir

    # read only and as a file that nobody changes, so that it may stand where nothing can be written
    place = f"{(get_lang_dir() / 'lexicon.db').as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(place, uri=True)) as connection:
        return dict(connection.execute("SELECT word, phonemes FROM word_phonemes WHERE pron_order = 0"))


def _guessed(word: str) -> Phones:
    with _guessing:
        found = _guesser()(word)
    return tuple(filter(None, (phone.translate(_stress) for phone in found)))


@cache
def _guesser() -> Callable[[str], Sequence[str]]:
    """The model that guesses, loaded when the first unknown word comes: the import takes about a second."""
    from gruut.g2p import GraphemesToPhonemes
    from gruut_lang_en import get_lang_dir

    guess: Callable[[str], Sequence[str]] = GraphemesToPhonemes(get_lang_dir() / "g2p" / "model.crf")
    return guess
