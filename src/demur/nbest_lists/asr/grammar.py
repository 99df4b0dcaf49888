"""A semantic parser from a readable file: slots with values and synonyms, and patterns for dialogue acts."""

from __future__ import annotations

import re
import tomllib
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from demur.core.acts import Act, Slot, parse_acts, print_acts
from demur.core.io.columns import nearest
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
    reader = _Reader(phrase, where)
    ways = reader.choice("")
    if reader.pieces:
        raise reader.fault(f'"{reader.pieces[0]}" closes nothing')
    if () in ways:
        raise DataError("must not be a phrase without words", where=where, got=phrase, fix="leave a word unbracketed")
    return list(dict.fromkeys(ways))


class _Reader:
    """Reads a phrase from left to right."""

    def __init__(self, phrase: str, where: str) -> None:
        self.phrase = phrase
        self.where = where
        self.pieces = deque(_piece.findall(phrase))

    def choice(self, closing: str) -> list[Phrase]:
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
                raise self.fault(f"it stands for more than {LIMIT:,} phrases")
            ways = [before + after for before, after in product(ways, parts)]
        return ways

    def _part(self) -> list[Phrase]:
        piece = self.pieces.popleft()
        if piece in _CLOSING:
            ways = self.choice(_CLOSING[piece])
            if not self.pieces or self.pieces.popleft() != _CLOSING[piece]:
                raise self.fault(f'"{piece}" has no "{_CLOSING[piece]}"')
            return [*ways, ()] if piece == "[" else ways
        if piece in ("{", "}"):
            raise self.fault(f'"{piece}" does not go with a name')
        return [(piece,) if piece.startswith("{") else tuple(tokens(piece))]

    def fault(self, reason: str) -> DataError:
        return DataError(f"must be a phrase, but {reason}", where=self.where, got=self.phrase, fix="mend the brackets")


class PhraseMatch(NamedTuple, Generic[Meaning]):
    """A phrase in a sentence: where it starts, where the rest goes on, what it means."""

    start: int
    end: int
    meaning: Meaning


class Finder(Generic[Meaning]):
    """Finds phrases in sentences: leftmost first, the longest of those, none over another.

    >>> finder = Finder({("north",): "an area", ("north", "african"): "a food"})
    >>> [match.meaning for match in finder.found(["north", "african", "north"])]
    ['a food', 'an area']
    """

    def __init__(self, phrases: Mapping[Phrase, Meaning]) -> None:
        self._phrases = phrases
        lengths: dict[str, set[int]] = {}
        for phrase in phrases:
            lengths.setdefault(phrase[0], set()).add(len(phrase))
        self._lengths = {word: sorted(known, reverse=True) for word, known in lengths.items()}
        """How long the phrases are that begin with a word, the longest first."""

    def found(self, sentence: Sequence[str]) -> Iterator[PhraseMatch[Meaning]]:
        """The phrases of a sentence, from left to right."""
        words, start = tuple(sentence), 0
        while start < len(words):
            ends = [start + size for size in self._lengths.get(words[start], ()) if start + size <= len(words)]
            end = next((end for end in ends if words[start:end] in self._phrases), None)
            if end is not None:
                yield PhraseMatch(start, end, self._phrases[words[start:end]])
            start = end or start + 1


ANY_VALUE, ANY_SLOT = "{value}", "{slot}"
"""In a pattern: any value of any slot, and any name of a slot."""


class _SlotSpec(msgspec.Struct):
    names: list[str] = []
    after: list[str] = []
    values: list[str] = []
    synonyms: dict[str, list[str]] = {}


class _PatternSpec(msgspec.Struct):
    say: list[str]
    gives: str = ""
    values_as: str = ""
    values: int | None = None
    negated: bool = False
    alone: bool = False
    priority: int = 0


class _Spec(msgspec.Struct):
    title: str = ""
    default_act: str = "inform"
    otherwise: str = ""
    ignore: list[str] = []
    slots: dict[str, _SlotSpec] = {}
    patterns: list[_PatternSpec] = []


class _Value(NamedTuple):
    slot: str
    value: str


class _Reading(NamedTuple):
    """What a pattern means: acts, in which placeholders are still to be filled, and how values after it are read."""

    number: int
    spec: _PatternSpec
    acts: tuple[Act, ...]
    slot: str | None


class _Frame(NamedTuple):
    """How the values that come next are read: under which act, negated or not, and how many of them."""

    act: str
    negated: bool = False
    left: int | None = None


@dataclass(frozen=True, slots=True)
class Grammar:
    """Turns sentences into dialogue acts; see the file of the restaurant guide for how one is written.

    First the longest phrases that stand for values are found, from left to right, then in the same way the patterns
    among words and values. A value in no pattern is read under `default_act`, or as the pattern before it says.
    """

    title: str
    ignored: frozenset[str]
    otherwise: str
    frame: _Frame
    values: Finder[_Value]
    patterns: Finder[_Reading]

    @classmethod
    def read(cls, path: str | Path) -> Grammar:
        """The grammar of a TOML file."""
        try:
            document = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise DataError("does not exist", where=str(path), fix="name a grammar file") from None
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise DataError(f"cannot be read as TOML: {error}", where=str(path)) from None
        return cls.of(document, str(path))

    @classmethod
    def of(cls, document: Mapping[str, Any], where: str = "grammar") -> Grammar:
        """The grammar of a document that was read already; `where` names it in faults.

        >>> slots = {"food": {"values": ["thai"], "synonyms": {"thai": ["siamese"]}}}
        >>> Grammar.of({"slots": slots}).parse("Siamese, please")
        'inform(food=thai)'
        """
        spec = _checked_spec(document, where)
        values = Finder(_value_phrases(spec, where))
        return cls(
            spec.title,
            frozenset(word for phrase in spec.ignore for word in tokens(phrase)),
            print_acts(_acts_of(spec.otherwise, f"{where}: otherwise")),
            _Frame(spec.default_act),
            values,
            Finder(_pattern_phrases(spec, values, where)),
        )

    def parse(self, text: str) -> str:
        """The acts that a sentence stands for, as text; `otherwise` where nothing in it is recognised."""
        slots: dict[str, dict[Slot, None]] = {}
        acts = list(self._acts(text))
        beside = [act for act, alone in acts if not alone]
        for act in beside or [act for act, _ in acts]:
            slots.setdefault(act.name, {}).update(dict.fromkeys(act.slots))
        return print_acts(Act(name, tuple(own)) for name, own in slots.items()) or self.otherwise

    __call__ = parse

    def _acts(self, text: str) -> Iterator[tuple[Act, bool]]:
        """Every act of a sentence in the order of its words, and whether it counts only where it is alone."""
        words = self._with_values([word for word in tokens(text) if word not in self.ignored])
        frame, done = self.frame, 0
        for match in self.patterns.found([one if isinstance(one, str) else f"{{{one.slot}}}" for one in words]):
            yield from _framed(words[done : match.start], frame, self.frame)
            values = [one for one in words[match.start : match.end] if isinstance(one, _Value)]
            _, spec, acts, named = match.meaning
            for act in acts:
                yield Act(act.name, tuple(_filled(slot, named, values) for slot in act.slots)), spec.alone
            frame = _Frame(spec.values_as, spec.negated, spec.values) if spec.values_as else self.frame
            done = match.end
        yield from _framed(words[done:], frame, self.frame)

    def _with_values(self, words: list[str]) -> list[str | _Value]:
        """The words with each phrase that stands for a value replaced by it."""
        replaced: list[str | _Value] = []
        done = 0
        for match in self.values.found(words):
            replaced += [*words[done : match.start], match.meaning]
            done = match.end
        return replaced + words[done:]


@cache
def bundled() -> Grammar:
    """The grammar that comes with the package, of a restaurant guide.

    >>> bundled().parse("I'm looking for a cheap Thai restaurant in the north part of town")
    'inform(pricerange=cheap, food=thai, area=north)'
    """
    resource = files("demur.corpora") / "restaurant" / "grammar.toml"
    return Grammar.of(tomllib.loads(resource.read_text(encoding="utf-8")), "grammar of restaurant")


def _framed(words: Sequence[str | _Value], frame: _Frame, default: _Frame) -> Iterator[tuple[Act, bool]]:
    """The values among words, read as the frame says until it has read as many as it may."""
    for one in words:
        if isinstance(one, _Value):
            yield Act(frame.act, (Slot(one.slot, one.value, frame.negated),)), False
            if frame.left is not None:
                frame = frame._replace(left=frame.left - 1) if frame.left > 1 else default


def _filled(slot: Slot, named: str | None, values: Sequence[_Value]) -> Slot:
    """A slot of a pattern's act with its placeholder filled."""
    if slot.name == ANY_SLOT:
        return Slot(named, slot.value, slot.negated)
    if slot.name is None or not slot.name.startswith("{"):
        return slot
    taken = next(one for one in values if slot.name in (ANY_VALUE, f"{{{one.slot}}}"))
    return Slot(taken.slot, taken.value)


def _checked_spec(document: Mapping[str, Any], where: str) -> _Spec:
    tables: list[tuple[Any, type[msgspec.Struct], str]] = [(document, _Spec, where)]
    slots, patterns = document.get("slots"), document.get("patterns")
    if isinstance(slots, dict):
        tables += [(slot, _SlotSpec, f"{where}: slots.{name}") for name, slot in slots.items()]
    if isinstance(patterns, list):
        tables += [(one, _PatternSpec, f"{where}: pattern {place}") for place, one in enumerate(patterns, start=1)]
    for table, spec, place in tables:
        for key in table if isinstance(table, Mapping) else ():
            if key not in spec.__struct_fields__:
                fix = nearest(key, spec.__struct_fields__)
                raise DataError("is no key of a grammar", where=f"{place}: {key}", fix=fix)
    try:
        return msgspec.convert(document, _Spec)
    except msgspec.ValidationError as error:
        rule, _, key = str(error).partition(" - at ")
        raise DataError(f"does not fit: {rule}", where=f"{where}: {key.strip('`$.')}".rstrip(": ")) from None


def _acts_of(text: str, where: str) -> tuple[Act, ...]:
    try:
        return parse_acts(text)
    except DataError as error:
        raise DataError(f"must be acts: {error}", where=where) from None


def _value_phrases(spec: _Spec, where: str) -> dict[Phrase, _Value]:
    phrases: dict[Phrase, _Value] = {}
    for name, slot in spec.slots.items():
        here = f"{where}: slots.{name}"
        after = [(), *(way for phrase in slot.after for way in expanded(phrase, f"{here}.after"))]
        for value in slot.synonyms:
            if value not in slot.values:
                raise DataError("is no value", where=f"{here}.synonyms: {value}", fix=nearest(value, slot.values))
        spoken = [(value, value) for value in slot.values]
        spoken += [(synonym, value) for value, synonyms in slot.synonyms.items() for synonym in synonyms]
        for phrase, value in spoken:
            for way in (before + tail for before in expanded(phrase, here) for tail in after):
                known = phrases.setdefault(way, _Value(name, value))
                if known != (name, value):
                    both = f"both {known.slot}={known.value} and {name}={value}"
                    raise DataError(f"must not stand for {both}", where=here, got=" ".join(way), fix="keep it in one")
    return phrases


def _pattern_phrases(spec: _Spec, values: Finder[_Value], where: str) -> dict[Phrase, _Reading]:
    readings: dict[Phrase, _Reading] = {}
    for number, pattern in enumerate(spec.patterns, start=1):
        here = f"{where}: pattern {number}"
        acts = _acts_of(pattern.gives, f"{here}: gives")
        if not (acts or pattern.values_as):
            raise DataError("must have acts", where=f"{here}: gives", fix='gives = "affirm()", or values_as = "deny"')
        for say in pattern.say:
            for way, slot in _ways(say, spec, f"{here}: say"):
                _refuse_unfillable(acts, way, slot, f"{here}: gives")
                for match in values.found(way):  # values are found first, so the pattern would never be met
                    words, fix = " ".join(way[match.start : match.end]), f"write {{{match.meaning.slot}}} for it"
                    raise DataError("must not spell out a value", where=f"{here}: say", got=words, fix=fix)
                _enter(readings, way, _Reading(number, pattern, acts, slot), here)
    return readings


def _ways(say: str, spec: _Spec, where: str) -> Iterator[tuple[Phrase, str | None]]:
    """The plain phrases of a pattern, values as {slot's name}, and the slot that {slot} stands for."""
    for way in expanded(say, where):
        placeholders = [word for word in way if word.startswith("{")]
        for word in placeholders:
            if word not in (ANY_VALUE, ANY_SLOT) and word[1:-1] not in spec.slots:
                raise DataError("is no slot", where=where, got=word, fix=nearest(word[1:-1], spec.slots))
        if len(set(placeholders)) < len(placeholders) or (ANY_VALUE in placeholders and len(placeholders) > 1):
            raise DataError("must have placeholders that differ, {value} alone", where=where, got=say)
        if not {ANY_SLOT, ANY_VALUE} & set(placeholders):
            yield way, None
            continue
        at = way.index(ANY_SLOT if ANY_SLOT in placeholders else ANY_VALUE)
        for name, slot in spec.slots.items():
            if ANY_SLOT in placeholders:
                phrases = (phrase for one in slot.names for phrase in expanded(one, f"{where} {{slot}} as {name}"))
                yield from ((way[:at] + phrase + way[at + 1 :], name) for phrase in phrases)
            elif slot.values:
                yield (*way[:at], f"{{{name}}}", *way[at + 1 :]), None


def _refuse_unfillable(acts: Sequence[Act], way: Phrase, slot: str | None, where: str) -> None:
    for one in (slot for act in acts for slot in act.slots):
        if one.value is not None and one.value.startswith("{"):
            fix = f"write {one.value} alone, which stands for slot and value"
            raise DataError("must not be a placeholder", where=where, got=f"{one.name}={one.value}", fix=fix)
        if one.name is None or not one.name.startswith("{"):
            continue
        filled = slot is not None if one.name == ANY_SLOT else one.name in way
        if not filled and not (one.name == ANY_VALUE and any(word.startswith("{") for word in way)):
            fix = f"not in: {' '.join(way)}"
            raise DataError("must be in every phrase of `say`", where=where, got=one.name, fix=fix)


def _enter(readings: dict[Phrase, _Reading], way: Phrase, reading: _Reading, where: str) -> None:
    """Keep the reading of higher priority; two of the same are a fault unless they are one pattern."""
    known = readings.get(way)
    if known is None or known.spec.priority < reading.spec.priority:
        readings[way] = reading
    elif known.spec.priority == reading.spec.priority and (known.number, known.slot) != (reading.number, reading.slot):
        rule = f"must not be that of pattern {known.number} too"
        raise DataError(rule, where=f"{where}: say", got=" ".join(way), fix="give one of them a higher priority")
