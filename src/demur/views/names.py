"""Long names made short in the middle, so that both what they share and what tells them apart can be read."""

from __future__ import annotations

from collections.abc import Sequence

MOST_LETTERS = 36
"""Letters of a name in a legend."""


def shortened(names: Sequence[str], most: int = MOST_LETTERS) -> dict[str, str]:
    """A short form of every name, no two of them alike.

    >>> shortened(["one", "a-long-name-of-a-model", "a-long-name-of-another"], 12)
    {'one': 'one', 'a-long-name-of-a-model': 'a-lon…-model', 'a-long-name-of-another': 'a-lon…nother'}
    """
    different = list(dict.fromkeys(names))
    for tail in (most // 2, most - 4, 2, most // 4):
        short = [middle_cut(name, most, tail=tail) for name in different]
        if len(set(short)) == len(short):
            return dict(zip(different, short, strict=True))
    room = most - len(str(len(different))) - 3
    return {
        name: name if len(name) <= most else f"{middle_cut(name, room)} ({place})"
        for place, name in enumerate(different, 1)
    }


def middle_cut(name: str, most: int = MOST_LETTERS, *, tail: int | None = None) -> str:
    """A name of at most `most` letters, the last `tail` of them its own end.

    >>> middle_cut("meta-llama/llama-3-70b", 11)
    'meta-…3-70b'
    """
    if len(name) <= most:
        return name
    end = most // 2 if tail is None else tail
    return f"{name[: most - 1 - end]}…{name[len(name) - end :]}"
