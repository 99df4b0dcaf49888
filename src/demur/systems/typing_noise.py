"""Hasty typing: letters swapped, dropped, doubled or hit beside the right key, and words lost."""

from __future__ import annotations

import hashlib

import numpy as np

_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_NEIGHBOURS = {
    letter: row[max(0, place - 1) : place] + row[place + 1 : place + 2]
    for row in _ROWS
    for place, letter in enumerate(row)
}


def mistyped(text: str, *, key: str, seed: int = 0, letter_rate: float = 0.06, word_rate: float = 0.05) -> str:
    """The text as typed in haste: the same for the same text, key and seed, whatever was typed before.

    `letter_rate` is the chance of a slip at each letter, `word_rate` that a word is lost; a text never loses all.

    >>> mistyped("when do you open", key="q1", letter_rate=0, word_rate=0)
    'when do you open'
    """
    rng = np.random.default_rng(list(hashlib.blake2b(f"{seed}/{key}/{text}".encode(), digest_size=16).digest()))
    words = text.split()
    kept = [word for word in words if rng.random() >= word_rate] or words[:1]
    return " ".join(_slipped(word, rng, letter_rate) for word in kept)


def _slipped(word: str, rng: np.random.Generator, rate: float) -> str:
    letters = list(word)
    for place in np.flatnonzero(rng.random(len(letters)) < rate):
        letters[place] = _slip(letters[place], rng)
    return "".join(letters) or word


def _slip(letter: str, rng: np.random.Generator) -> str:
    beside = _NEIGHBOURS.get(letter.lower(), letter)
    choices = ("", letter * 2, beside[int(rng.integers(len(beside)))])
    return choices[int(rng.integers(len(choices)))]
