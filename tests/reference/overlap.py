"""What two texts share, found by trying every phrase at every place."""

from __future__ import annotations

from math import sqrt


def phrases(first: list[str], second: list[str]) -> list[int]:
    """Lengths of the shared phrases: lengths from the greatest down, places from left to right, no word used twice."""
    taken = []
    first, second = list(first), list(second)
    for length in range(min(len(first), len(second)), 0, -1):
        for start in range(len(first) - length + 1):
            for other in range(len(second) - length + 1):
                phrase = first[start : start + length]
                if phrase == second[other : other + length] and None not in phrase:
                    taken.append(length)
                    first[start : start + length] = second[other : other + length] = [None] * length
    return taken


def raw(first: list[str], second: list[str]) -> int:
    """Words crossed out in both texts, one by one."""
    left = list(second)
    shared = 0
    for word in first:
        if word in left:
            left.remove(word)
            shared += 1
    return shared


def f1(first: list[str], second: list[str]) -> float:
    shared = raw(first, second)
    if not shared:
        return 0.0
    precision, recall = shared / len(second), shared / len(first)
    return 2 * precision * recall / (precision + recall)


def cosine(first: list[str], second: list[str]) -> float:
    shared = raw(first, second)
    return shared / sqrt(len(first) * len(second)) if shared else 0.0


def cosine_of_counts(first: list[str], second: list[str]) -> float:
    """Cosine of the vectors of word counts."""
    dot = sum(first.count(word) * second.count(word) for word in set(first))
    norms = [sqrt(sum(text.count(word) ** 2 for word in set(text))) for text in (first, second)]
    return dot / (norms[0] * norms[1]) if dot else 0.0


def words(text: str) -> list[str]:
    """The words of a text, sign by sign: apostrophes count inside words only, two dashes part words, one does not."""
    text = text.lower().replace("’", "'")
    pieces = []
    place = 0
    while place < len(text):
        sign = text[place]
        before, after = text[place - 1 : place], text[place + 1 : place + 2]
        inside = bool(before and after) and all(one.isalnum() or one == "_" for one in (before, after))
        if text[place : place + 2] == "--":
            pieces.append(" ")
            place += 1
        elif sign in '.;:,?!(){}"`$%@<>_' or (sign == "'" and not inside):
            pieces.append(" ")
        else:
            pieces.append(sign)
        place += 1
    return "".join(pieces).split()
