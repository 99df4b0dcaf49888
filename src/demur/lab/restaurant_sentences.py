"""What callers of a restaurant guide say, and the places the guide knows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from demur.core.acts import Act, Slot

FOODS = (
    *("african", "asian oriental", "british", "caribbean", "chinese", "cuban", "danish", "european"),
    *("french", "gastropub", "german", "greek", "hungarian", "indian", "indonesian", "international"),
    *("italian", "jamaican", "japanese", "korean", "latin american", "lebanese", "malaysian", "mediterranean"),
    *("mexican", "middle eastern", "modern european", "moroccan", "north american", "persian", "polish", "portuguese"),
    *("romanian", "russian", "scottish", "seafood", "spanish", "swedish", "swiss", "thai"),
    *("turkish", "vegetarian", "vietnamese", "welsh"),
)
AREAS = ("centre", "north", "south", "east", "west")
PRICES = ("cheap", "moderate", "expensive")
VALUES = {"food": FOODS, "area": AREAS, "pricerange": PRICES}
"""The values a caller may ask for, by slot."""
FIELDS = ("phone", "addr", "postcode", "food", "area", "pricerange")
"""What a caller may want to know about a place."""

_OPENINGS = (
    *("i'm looking for", "i am looking for", "looking for", "i want", "i would like", "i'd like", "i need", "find me"),
    *("can you find me", "could you find me", "please find me", "show me", "we want", "we are looking for", "we need"),
    *("do you know", "can i have", "i'm trying to find", "i'm searching for", "could you suggest", "can you recommend"),
)
_NOUNS = ("restaurant", "place", "place to eat", "place for dinner", "place for lunch", "restaurant for tonight")
_PRICED = {
    "cheap": ("cheap", "cheaply priced", "inexpensive", "cheap", "low priced"),
    "moderate": ("moderately priced", "moderately priced", "reasonably priced", "medium priced", "moderate"),
    "expensive": ("expensive", "expensive", "high priced", "pricey"),
}
_PRICED_AFTER = {
    "cheap": ("in the cheap price range", "with cheap prices", "that is cheap"),
    "moderate": ("in the moderate price range", "with moderate prices", "in the medium price range"),
    "expensive": ("in the expensive price range", "that is expensive", "in the high price range"),
}
_SERVING = (
    "serving {} food",
    "that serves {} food",
    "with {} food",
    "that has {} food",
    "serving {}",
    "which serves {} food",
)
_PLACED = (
    *("in the {}", "in the {} of town", "in the {} part of town", "on the {} side of town", "in the {} of the city"),
    *("in the {} area", "on the {} side", "at the {} end of town"),
)
_CENTRAL = ("in the centre", "in the centre of town", "in the city centre", "in the town centre", "in the central area")
_SHORT = {
    "food": (
        "{}",
        "{} food",
        "{} food please",
        "{} please",
        "i'd like {}",
        "i want {} food",
        "{} cuisine",
        "we'd like {} food",
    ),
    "area": ("{}", "the {}", "the {} part of town", "in the {}", "{} please", "the {} please", "in the {} of town"),
    "pricerange": (
        "{}",
        "{} please",
        "{} price range",
        "i want a {} one",
        "the {} price range",
        "make it {}",
        "{} prices",
    ),
}
_INSTEAD = ("how about {}", "what about {}", "okay how about {}", "and what about {}")
_INDIFFERENT = {
    "food": (
        "any food",
        "any kind of food",
        "any type of food",
        "i don't care about the food",
        "i don't mind what kind of food",
    ),
    "area": ("any area", "any part of town", "anywhere", "anywhere in town", "i don't care about the area"),
    "pricerange": ("any price range", "any price", "i don't care about the price range", "the price doesn't matter"),
    "this": (
        "i don't care",
        "it doesn't matter",
        "i don't mind",
        "doesn't matter",
        "no preference",
        "i really don't mind",
    ),
}
_ASKING = {
    "phone": ("phone number", "telephone number", "phone number", "phone"),
    "addr": ("address",),
    "postcode": ("postcode", "post code", "postal code"),
    "food": ("type of food", "kind of food", "food type"),
    "area": ("area", "part of town", "location"),
    "pricerange": ("price range", "price range", "prices"),
}
_ASKED = (
    *(
        "what is the {}",
        "what's the {}",
        "can i have the {}",
        "could i have the {}",
        "could i get the {}",
        "the {} please",
    ),
    *(
        "what's their {}",
        "give me the {}",
        "i need the {}",
        "and the {}",
        "can you tell me the {}",
        "may i have their {}",
    ),
    *("tell me the {} please", "i'd like the {}", "and what's the {}", "could you give me the {}"),
)
_CONFIRMED = {
    "food": ("does it serve {} food", "do they serve {} food", "do they have {} food"),
    "area": ("is it in the {}", "is it in the {} part of town", "is that in the {}"),
    "pricerange": ("is it {}", "are they {}", "is it in the {} price range"),
}
_PLAIN = {
    "affirm": (
        "yes",
        "yeah",
        "yes please",
        "yep",
        "that's right",
        "correct",
        "yes that's right",
        "yeah sure",
        "yes it is",
    ),
    "negate": ("no", "nope", "no that's wrong", "wrong", "no no"),
    "hello": ("hello", "hi", "hi there", "hello there", "good evening", "hey"),
    "thankyou": ("thank you", "thanks", "thank you very much", "okay thank you", "great thanks", "thanks a lot"),
    "bye": ("goodbye", "good bye", "bye", "bye bye", "bye now"),
    "reqalts": (
        *("is there anything else", "is there another one", "do you have another restaurant", "what else do you have"),
        *("are there any other restaurants", "any other options", "what else is there", "do you have an alternative"),
    ),
    "repeat": (
        "could you repeat that",
        "can you say that again",
        "repeat that please",
        "pardon",
        "say it again please",
    ),
}
_FILLERS = ("uh", "um", "er", "well", "so")


def inform(**wanted: str) -> Act:
    """The act of asking for places with these values.

    >>> inform(food="thai").slots[0].value
    'thai'
    """
    return Act("inform", tuple(Slot(name, value) for name, value in wanted.items()))


def plain(name: str) -> Act:
    """An act without slots."""
    return Act(name, ())


def request(*fields: str) -> tuple[Act, ...]:
    """The acts of asking for these fields, one each."""
    return tuple(Act("request", (Slot(field, None),)) for field in fields)


def spoken(acts: Sequence[Act], rng: np.random.Generator) -> str:
    """One of the ways to say these acts, in lower case without commas.

    >>> {"thai", "north"} <= set(spoken([inform(food="thai", area="north")], np.random.default_rng(5)).split())
    True
    """
    filler = [_one(_FILLERS, rng)] if rng.random() < 0.08 else []
    return re.sub(r"\ba (?=[aeiou])", "an ", " ".join(" ".join(filler + _pieces(acts, rng)).split()))


@cache
def vocabulary() -> tuple[str, ...]:
    """Every word a template may hold, in alphabetical order."""
    texts = [*_OPENINGS, *_NOUNS, *_SERVING, *_PLACED, *_CENTRAL, *_ASKED, *_FILLERS, *_INSTEAD]
    for table in (VALUES, _PRICED, _PRICED_AFTER, _SHORT, _INDIFFERENT, _ASKING, _CONFIRMED, _PLAIN):
        texts += [text for choices in table.values() for text in choices]
    return tuple(sorted({word for text in texts for word in text.replace("{}", "").split()}))


def _pieces(acts: Sequence[Act], rng: np.random.Generator) -> list[str]:
    if [act.name for act in acts] == ["reqalts", "inform"]:
        return [_one(_INSTEAD, rng).format(acts[1].slots[0].value)]
    fields = [act.slots[0].name or "" for act in acts if act.name == "request"]
    others = [_act(act, rng) for act in acts if act.name != "request"]
    return [*others, _asked(fields, rng)] if fields else others


def _act(act: Act, rng: np.random.Generator) -> str:
    wanted = {slot.name or "": slot.value or "" for slot in act.slots}
    if act.name == "confirm":
        ((slot, value),) = wanted.items()
        return _one(_CONFIRMED[slot], rng).format(value)
    if act.name == "deny":
        return f"not {next(iter(wanted.values()))}"
    if act.name != "inform":
        return _one(_PLAIN[act.name], rng)
    return _informed(wanted, rng)


def _informed(wanted: dict[str, str], rng: np.random.Generator) -> str:
    unminded = [slot for slot, value in wanted.items() if value == "dontcare"]
    minded = {slot: value for slot, value in wanted.items() if value != "dontcare"}
    pieces = [_wish(minded, rng)] if minded else []
    pieces += [_one(_INDIFFERENT[slot], rng) for slot in unminded]
    return " ".join(pieces)


def _wish(wanted: dict[str, str], rng: np.random.Generator) -> str:
    if len(wanted) == 1 and rng.random() < 0.75:
        ((slot, value),) = wanted.items()
        return _one(_SHORT[slot], rng).format(value)
    before, after = _described(wanted, rng)
    noun = _one(_NOUNS, rng) if after else _one(_NOUNS[:2], rng)
    opening = _one(_OPENINGS, rng)
    return " ".join([opening, "a", *before, noun, *after])


def _described(wanted: dict[str, str], rng: np.random.Generator) -> tuple[list[str], list[str]]:
    """The words before and after the noun."""
    before, after = [], []
    if price := wanted.get("pricerange"):
        if rng.random() < 0.7:
            before.append(_one(_PRICED[price], rng))
        else:
            after.append(_one(_PRICED_AFTER[price], rng))
    if food := wanted.get("food"):
        if rng.random() < 0.5:
            before.append(food)
        else:
            after.append(_one(_SERVING, rng).format(food))
    if area := wanted.get("area"):
        after.append(_one(_CENTRAL if area == "centre" else _PLACED, rng).format(area))
    return before, after


def _asked(fields: list[str], rng: np.random.Generator) -> str:
    named = " and the ".join(_one(_ASKING[field], rng) for field in fields)
    return _one(_ASKED, rng).format(named)


def _one(choices: Sequence[str], rng: np.random.Generator) -> str:
    return choices[int(rng.integers(len(choices)))]


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
