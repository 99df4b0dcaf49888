"""The places a restaurant guide knows, and what it may say to a caller about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from demur.systems.restaurant_sentences import AREAS, FOODS, PRICES

SLOTS = ("food", "area", "pricerange")
"""What a search may be narrowed by."""


@dataclass(frozen=True, slots=True)
class Place:
    """A restaurant."""

    number: int
    food: str
    area: str
    pricerange: str

    def suits(self, wanted: Mapping[str, str]) -> bool:
        """Whether the place is all that is wanted of it.

        >>> Place(1, "thai", "north", "cheap").suits({"food": "thai", "area": "dontcare"})
        True
        """
        return all(value in ("dontcare", getattr(self, slot)) for slot, value in wanted.items())


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the guide says: an act and what it is about."""

    kind: Literal["welcome", "request", "confirm", "offer", "cannot", "give", "again", "goodbye"]
    slot: str = ""
    value: str = ""
    place: Place | None = None
    wanted: Mapping[str, str] | None = None
    """The search that found nothing."""
    given: tuple[str, ...] = ()
    """The fields of the place that are read out."""


@cache
def places() -> tuple[Place, ...]:
    """All places: three to six of each food, each in its area and price range."""
    rng = np.random.default_rng(44)
    kinds = [(food, area, price) for food in FOODS for area in AREAS for price in PRICES]
    chosen: list[tuple[str, str, str]] = []
    for first in range(0, len(kinds), len(AREAS) * len(PRICES)):
        picks = rng.choice(len(AREAS) * len(PRICES), size=int(rng.integers(3, 7)), replace=False)
        chosen += [kinds[first + int(pick)] for pick in sorted(picks)]
    return tuple(Place(number, *kind) for number, kind in enumerate(chosen, 1))


def found(wanted: Mapping[str, str]) -> list[Place]:
    """The places that suit, in the guide's order."""
    return [place for place in places() if place.suits(wanted)]
