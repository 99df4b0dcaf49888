"""Dialogue acts: read from text, written as text, split into semantic items, and kept as numbered sets of items."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from demur.errors import DataError

SHOWN = 60
"""Characters of a text that a fault shows, around the place where it does not parse."""

_KEPT_SLOTS = 1 << 16
_QUOTES = ('"', "'")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}

_WORD = r"""[^\s()=,&|"'\\][^\s()=,&|"\\]*"""
_NAME = r"""[^\s()=!,"'\\](?:[^()=!,"\\]*[^\s()=!,"\\])?"""
_VALUE = r"""[^\s()=,"'\\](?:[^()=,"\\]*[^\s()=,"\\])?"""
_word = re.compile(_WORD)
_name = re.compile(_NAME)
_value = re.compile(_VALUE)
_space = re.compile(r"\s*")
_QUOTED = {quote: re.compile(rf"{quote}((?:[^\\{quote}]|\\.)*+){quote}", re.DOTALL) for quote in _QUOTES}
_escaped = re.compile(r"\\(.)", re.DOTALL)
_plain_act = re.compile(rf"""\s*({_WORD})\s*(?:\(([^()"'\\]*)\)\s*)?([&|]?)""")
_plain_slot = re.compile(rf"(?:({_NAME})\s*)?(?:(!?=)\s*({_VALUE}))?")


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot of an act: `food=thai`, `food!=thai`, `food` without a value, or `=dontcare` without a name."""

    name: str | None
    value: str | None
    negated: bool = False

    def __post_init__(self) -> None:
        if self.value is None and (self.name is None or self.negated):
            raise DataError("a slot must have a name or a value, and a value to be negated", got=repr(self))

    def __str__(self) -> str:
        name = "" if self.name is None else _quote(self.name, _name)
        if self.value is None:
            return name
        return f"{name}{'!=' if self.negated else '='}{_quote(self.value, _value)}"


@dataclass(frozen=True, slots=True)
class Act:
    """What somebody does by saying something: `inform(food=thai, area=north)`."""

    name: str
    slots: tuple[Slot, ...] = ()

    def __str__(self) -> str:
        return f"{_quote(self.name, _word)}({', '.join(map(str, self.slots))})"


def parse_acts(text: str) -> tuple[Act, ...]:
    """The acts that a text names.

    An act is `name(slot=value, slot!=value, slot, =value)`, `name()` or `name`; several are joined by `&` or `|`.
    Space around names, values and signs means nothing. What holds one of the signs is written in double or single
    quotes, in which a backslash keeps the sign after it as it is, and `\\n`, `\\t` and `\\r` stand for line end,
    tab and carriage return. Within the brackets `&` and `|`, and within words `'`, need no quotes.

    >>> parse_acts("inform(food=asian oriental)&bye")
    (Act(name='inform', slots=(Slot(name='food', value='asian oriental', negated=False),)), Act(name='bye', slots=()))
    """
    acts = _plain_acts(text)
    return _Parser(text).acts() if acts is None else acts


def print_acts(acts: Iterable[Act]) -> str:
    """The acts as the one text for them, with quotes only where they are needed; it parses to the same acts.

    >>> print_acts(parse_acts("inform( name = 'Bits, Bobs' )|bye"))
    'inform(name="Bits, Bobs")&bye()'
    """
    return "&".join(map(str, acts))


def thomson_items(acts: Iterable[Act]) -> frozenset[str]:
    """The items of Thomson et al. (2008), Table 1: the names of the acts, and every slot with its value.

    >>> sorted(thomson_items(parse_acts("inform(type=hotel, pricerange=expensive)")))
    ['inform', 'pricerange=expensive', 'type=hotel']
    """
    items: set[str] = set()
    for act in acts:
        items.add(_quote(act.name, _word))
        items.update(map(str, act.slots))
    return frozenset(items)


def dstc_items(acts: Iterable[Act], slots: frozenset[str] | None = None) -> frozenset[str]:
    """The items of the Dialog State Tracking Challenges 2 and 3: one for each slot, with the name of its act.

    An act without slots is itself, `request(slot=x)` and `request(x)` are `request=x`. A slot without a name is
    `this`. Of the others only `slots` count, and `this`; the challenge takes those that can have more than one value.

    >>> sorted(dstc_items(parse_acts("inform(food=thai, task=find)&request(phone)&bye()"), frozenset({"food"})))
    ['bye', 'inform(food=thai)', 'request=phone']
    """
    items: set[str] = set()
    for act in acts:
        name = _quote(act.name, _word)
        if not act.slots:
            items.add(name)
        for slot in act.slots:
            # request(phone) and request(slot=phone) ask for a slot; request(phone, food=thai) says something too
            of_slot = slot.name if slot.value is None else slot.value if slot.name in (None, "slot") else None
            if act.name == "request" and of_slot is not None and not slot.negated:
                items.add(f"request={_quote(of_slot, _value)}")
            elif slots is None or slot.name in (None, "this") or slot.name in slots:
                items.add(f"{name}({slot if slot.name is not None else f'this{slot}'})")
    return frozenset(items)


ITEMISERS: dict[str, Callable[[Iterable[Act]], frozenset[str]]] = {"thomson": thomson_items, "dstc": dstc_items}
"""Ways to split acts into items, by name."""


def _quote(text: str, bare: re.Pattern[str]) -> str:
    if bare.fullmatch(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _plain_acts(text: str) -> tuple[Act, ...] | None:
    """Reads acts without quotes in one sweep; None where the careful parser has to look."""
    acts = []
    position, end = 0, len(text)
    joined = True
    while position < end:
        found = _plain_act.match(text, position) if joined else None
        if found is None:
            return None
        name, body, joint = found.groups()
        slots = tuple(map(_slot, body.split(","))) if body and not body.isspace() else ()
        if None in slots:
            return None
        acts.append(Act(name, slots))  # type: ignore[arg-type]  # there is no None in them
        position, joined = found.end(), bool(joint)
    return None if joined else tuple(acts)


@lru_cache(_KEPT_SLOTS)
def _slot(text: str) -> Slot | None:
    """Reads a slot without quotes; the same few come up again and again."""
    bare = text.strip()  # or the pattern would try every way to share out the space
    found = _plain_slot.fullmatch(bare)
    if found is None or not bare:
        return None
    name, sign, value = found.groups()
    return Slot(name, value, sign == "!=")


class _Parser:
    """Reads acts from left to right, and says where and why it cannot."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0

    def acts(self) -> tuple[Act, ...]:
        if self._at_end():
            return ()
        acts = [self._act()]
        while not self._at_end():
            if not (self._passed("&") or self._passed("|")):
                raise self._fault('"&" or "|" before another act', "acts are joined by & or |, slots stand in brackets")
            acts.append(self._act())
        return tuple(acts)

    def _act(self) -> Act:
        name = self._atom(_word, "the name of an act", "an act is written name(slot=value, ...)")
        if not self._passed("(") or self._passed(")"):
            return Act(name, ())
        slots = [self._slot()]
        while not self._passed(")"):
            if not self._passed(","):
                separate = 'slots are separated by ","; a name or value that holds any of ()=,\\" is written in quotes'
                raise self._fault('"," or ")"', 'close the slots with ")"' if self._at_end() else separate)
            slots.append(self._slot())
        return Act(name, tuple(slots))

    def _slot(self) -> Slot:
        hint = "a slot is written slot=value, slot!=value, slot or =value; what holds any of ()=!,\\ in quotes"
        name = None if self._next() in ("=", "!") else self._atom(_name, "a slot", hint)
        negated = self._passed("!=")
        if not negated and not self._passed("="):
            if name is None:
                raise self._fault('"=" after "!"', hint)
            return Slot(name, None)
        value = self._atom(_value, "a value", 'what holds any of ()=,\\ is written in quotes, an empty value as ""')
        return Slot(name, value, negated)

    def _atom(self, bare: re.Pattern[str], expected: str, hint: str) -> str:
        quote = self._next()
        if quote in _QUOTES:
            return self._quoted(quote)
        found = bare.match(self.text, self.position)
        if found is None:
            raise self._fault(expected, hint)
        self.position = found.end()
        return found.group()

    def _quoted(self, quote: str) -> str:
        found = _QUOTED[quote].match(self.text, self.position)
        if found is None:
            raise self._fault(f"a second {quote} that closes the quotes", f"inside them, {quote} is written \\{quote}")
        self.position = found.end()
        return _escaped.sub(lambda sign: _ESCAPES.get(sign[1], sign[1]), found[1])

    def _next(self) -> str:
        """The sign that comes next, after space; nothing at the end."""
        self._at_end()
        return self.text[self.position : self.position + 1]

    def _passed(self, sign: str) -> bool:
        self._at_end()
        if not self.text.startswith(sign, self.position):
            return False
        self.position += len(sign)
        return True

    def _at_end(self) -> bool:
        self.position = _space.match(self.text, self.position).end()  # type: ignore[union-attr]  # it always matches
        return self.position == len(self.text)

    def _fault(self, expected: str, fix: str) -> DataError:
        """The fault at this position, with the text around it where the whole is too long to show."""
        at_end, text, position = self._at_end(), self.text, self.position
        sign = text[position : position + 1]
        found = "the text ends" if at_end else f"found {sign if sign.isprintable() else repr(sign)}"
        rule = f"does not parse at character {position + 1}: expected {expected}, but {found}"
        start = max(0, min(position - SHOWN // 2, len(text) - SHOWN))
        end = start + SHOWN
        got = f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
        return DataError(rule, where="the act", got=got, fix=fix)


Codes = NDArray[np.int32]
Offsets = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class ItemSets:
    """Distinct sets of items: set number k holds the items `item[start[k]:start[k + 1]]`, numbers into `names`.

    Sets and items are numbered in the order of their texts, so nothing depends on the order in which they were met.
    """

    names: tuple[str, ...]
    start: Offsets
    item: Codes

    @property
    def size(self) -> Offsets:
        """How many items each set has."""
        return np.diff(self.start)

    def __len__(self) -> int:
        return self.start.size - 1

    def items_of(self, code: int) -> tuple[str, ...]:
        """The items of one set, in order.

        >>> sets, codes = numbered_sets([frozenset({"b", "a"}), frozenset()])
        >>> [sets.items_of(code) for code in codes]
        [('a', 'b'), ()]
        """
        return tuple(self.names[item] for item in self.item[self.start[code] : self.start[code + 1]])

    def expanded(self, codes: Codes) -> tuple[Codes, Offsets]:
        """The items of many sets one after the other, and where each set starts."""
        size = self.size[codes]
        start = np.concatenate([[0], np.cumsum(size)])
        place = np.repeat(self.start[codes] - start[:-1], size) + np.arange(start[-1])
        return self.item[place], start


def numbered_sets(sets: Sequence[frozenset[str]]) -> tuple[ItemSets, Codes]:
    """The distinct sets among these, and the number of each."""
    names = sorted(frozenset().union(*sets))
    place = {name: number for number, name in enumerate(names)}
    listed = [tuple(sorted(place[name] for name in one)) for one in sets]
    distinct = sorted(set(listed))
    number = {one: code for code, one in enumerate(distinct)}
    start = np.concatenate([[0], np.cumsum([len(one) for one in distinct], dtype=np.int64)]).astype(np.int64)
    item = np.array([part for one in distinct for part in one], dtype=np.int32)
    return ItemSets(tuple(names), start, item), np.array([number[one] for one in listed], dtype=np.int32)


class Interned(dict[Hashable, int]):
    """Texts and lists met while reading, each turned into a set of items once and numbered as they come."""

    def __init__(self, read: Callable[[Hashable], frozenset[str]]) -> None:
        super().__init__()
        self.read = read
        self.sets: list[frozenset[str]] = []
        self._known: dict[frozenset[str], int] = {}

    def __missing__(self, written: Hashable) -> int:
        items = self.read(written)
        number = self._known.setdefault(items, len(self.sets))
        if number == len(self.sets):
            self.sets.append(items)
        self[written] = number
        return number

    def numbers(self, written: Sequence[Hashable]) -> Offsets:
        """The numbers of many."""
        return np.fromiter(map(self.__getitem__, written), dtype=np.int64, count=len(written))
