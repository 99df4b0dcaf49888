"""A domain: slots and values, a database of venues, what both sides say, and the grammar that understands it."""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from demur.core.acts import Act, Slot, parse_acts
from demur.core.io.columns import nearest
from demur.errors import DataError
from demur.nbest_lists.asr.grammar import Grammar

BUNDLED = ("town",)
"""Domains that come with the package."""
DONTCARE = "dontcare"
"""The value of a slot that the user does not mind."""
THIS = "this"
"""The slot of a value given without one: what the system asked for."""

PromptKind = Literal["welcome", "request", "confirm", "offer", "give", "cannot", "again", "bye"]
KINDS: tuple[PromptKind, ...] = get_args(PromptKind)
PLAIN = ("affirm", "negate", "hello", "thankyou", "bye", "reqalts", "repeat")
"""Acts of users without slots."""
_WRITTEN = {"welcome": "welcomemsg", "give": "inform", "cannot": "canthelp", "again": "repeat"}
"""Kinds of prompts that acts in logs call differently."""

UserActs = tuple[Act, ...]
"""What a user does in one turn."""


class UserSpec(msgspec.Struct, forbid_unknown_fields=True):
    """How users behave."""

    mentions: float = 0.7
    goal_change: float = 0.1
    second_choice: float = 0.15
    more: float = 0.3
    alternatives: float = 0.1
    patience: tuple[int, int] = (12, 20)
    words_per_minute: float = 150.0
    pause: float = 1.0


class _TaskSlot(msgspec.Struct, forbid_unknown_fields=True):
    values: list[str]
    names: list[str] = []
    after: list[str] = []
    synonyms: dict[str, list[str]] = {}
    noun: list[str] = []
    say: list[str] = []
    short: list[str] = msgspec.field(default_factory=lambda: ["{}"])
    any: list[str] = []
    when: dict[str, list[str]] = {}


class _FieldSpec(msgspec.Struct, forbid_unknown_fields=True):
    names: list[str] = []


class _DatabaseSpec(msgspec.Struct, forbid_unknown_fields=True):
    columns: list[str]
    rows: list[list[str]]


class _DomainSpec(msgspec.Struct, forbid_unknown_fields=True):
    title: str
    slots: dict[str, _TaskSlot]
    database: _DatabaseSpec
    fields: dict[str, _FieldSpec] = {}
    user: UserSpec = msgspec.field(default_factory=UserSpec)
    say: dict[str, Any] = {}
    prompts: dict[str, str] = {}
    grammar: dict[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the system says: a kind of act and what it is about."""

    kind: PromptKind
    slot: str = ""
    value: str = ""
    venue: int | None = None
    """The place of a venue in the database."""
    fields: tuple[str, ...] = ()
    """The fields of the venue that are read out."""
    wanted: tuple[tuple[str, str], ...] = ()
    """The search that found no venue."""


WELCOME = Prompt("welcome")


@dataclass(frozen=True, eq=False)
class TaskDomain:
    """A slot-filling task; `TaskDomain.read` takes a file, or the name of a bundled one.

    >>> town = TaskDomain.read("town")
    >>> len(town.venues), town.applicable({"type": "hotel"})
    (160, ('type', 'area', 'pricerange', 'stars'))
    """

    name: str
    spec: _DomainSpec
    where: str
    _matches: dict[frozenset[tuple[str, str]], tuple[int, ...]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: str | Path) -> TaskDomain:
        """The domain of a TOML file, or a bundled one by its name."""
        name = str(path)
        if name in BUNDLED:
            return _bundled(name)
        try:
            document = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except FileNotFoundError:
            fix = f"name a TOML file, or a bundled domain: {', '.join(BUNDLED)}"
            raise DataError("does not exist", where=name, fix=fix) from None
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise DataError(f"cannot be read as TOML: {error}", where=name) from None
        return cls.of(document, Path(path).stem, name)

    @classmethod
    def of(cls, document: Mapping[str, Any], name: str = "domain", where: str = "domain") -> TaskDomain:
        """The domain of a document that was read already; `where` names it in faults."""
        try:
            spec = msgspec.convert(document, _DomainSpec)
        except msgspec.ValidationError as error:
            rule, _, key = str(error).partition(" - at ")
            raise DataError(f"does not fit: {rule}", where=f"{where}: {key.strip('`$.')}".rstrip(": ")) from None
        _check(spec, where)
        domain = cls(name, spec, where)
        _ = domain.grammar  # refuses patterns that are no phrases
        return domain

    @cached_property
    def slots(self) -> tuple[str, ...]:
        """The slots in the order in which a system asks for them."""
        return tuple(self.spec.slots)

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """What users may ask about a venue: fields, then slots."""
        return (*self.spec.fields, *self.slots)

    @cached_property
    def values(self) -> dict[str, tuple[str, ...]]:
        """The values of each slot, without `dontcare`."""
        return {name: tuple(slot.values) for name, slot in self.spec.slots.items()}

    @cached_property
    def venues(self) -> tuple[dict[str, str], ...]:
        """The rows of the database by column."""
        columns = self.spec.database.columns
        return tuple(dict(zip(columns, row, strict=True)) for row in self.spec.database.rows)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The place of each venue in the database, by name."""
        return {venue["name"]: number for number, venue in enumerate(self.venues)}

    @cached_property
    def grammar(self) -> Grammar:
        """What understands sentences: values and names of slots, and the patterns of the file."""
        slots: dict[str, Any] = {
            name: {"names": one.names, "after": one.after, "values": one.values, "synonyms": one.synonyms}
            for name, one in self.spec.slots.items()
        }
        slots |= {name: {"names": one.names} for name, one in self.spec.fields.items()}
        return Grammar.of({**self.spec.grammar, "title": self.spec.title, "slots": slots}, f"{self.where}: grammar")

    def applicable(self, wanted: Mapping[str, str]) -> tuple[str, ...]:
        """The slots that narrow a search further, whatever is wanted so far."""
        return tuple(name for name in self.slots if self.applies(name, wanted))

    def applies(self, slot: str, wanted: Mapping[str, str]) -> bool:
        """Whether a slot applies to what is wanted: the slots of its `when` have one of their values."""
        return all(wanted.get(name) in values for name, values in self.spec.slots[slot].when.items())

    def matches(self, wanted: Mapping[str, str]) -> tuple[int, ...]:
        """The venues that have all that is wanted, in the order of the database."""
        key = frozenset(wanted.items())
        known = self._matches.get(key)
        if known is None:
            known = tuple(number for number in range(len(self.venues)) if self.suits(number, wanted))
            self._matches[key] = known
        return known

    def suits(self, venue: int, wanted: Mapping[str, str]) -> bool:
        """Whether a venue has all that is wanted."""
        row = self.venues[venue]
        return all(value == DONTCARE or row[slot] == value for slot, value in wanted.items())

    def acts_of(self, prompt: Prompt) -> tuple[Act, ...]:
        """A prompt as an act, as logs have it."""
        name = _WRITTEN.get(prompt.kind, prompt.kind)
        slots: tuple[Slot, ...] = ()
        if prompt.kind == "request":
            slots = (Slot(prompt.slot, None),)
        elif prompt.kind == "confirm":
            slots = (Slot(prompt.slot, prompt.value),)
        elif prompt.kind == "cannot":
            slots = tuple(Slot(slot, value) for slot, value in prompt.wanted)
        elif prompt.venue is not None:
            row = self.venues[prompt.venue]
            slots = tuple(Slot(name, row[name] or None) for name in ("name", *prompt.fields))
        return (Act(name, slots),)

    def prompt_of(self, text: str) -> Prompt:
        """The prompt that a manager of the user's own names as an act; the reverse of `acts_of`.

        >>> TaskDomain.read("town").prompt_of("confirm(food=thai)")
        Prompt(kind='confirm', slot='food', value='thai', venue=None, fields=(), wanted=())
        """
        acts = parse_acts(text)
        kinds: dict[str, PromptKind] = {_WRITTEN.get(kind, kind): kind for kind in KINDS}
        if len(acts) != 1 or acts[0].name not in kinds:
            fix = f"answer with one of {', '.join(kinds)}, such as request(area)"
            raise DataError("must be one act of a system", where="the manager's answer", got=text, fix=fix)
        (act,), kind = acts, kinds[acts[0].name]
        given = {slot.name or "": slot.value or "" for slot in act.slots}
        known = self.slots if kind in ("request", "confirm", "cannot") else ("name", *self.fields)
        for name in given:
            if name not in known:
                raise DataError("is no slot here", where="the manager's answer", got=name, fix=nearest(name, known))
        if kind in ("request", "confirm"):
            if len(given) != 1:
                raise DataError("must name one slot", where="the manager's answer", got=text, fix=f"{kind}(area)")
            ((slot, value),) = given.items()
            return Prompt(kind, slot=slot, value=value)
        if kind in ("offer", "give"):
            if given.get("name") not in self.numbers:
                fix = 'offer(name="Golden Kitchen"), inform(name="Golden Kitchen", phone)'
                raise DataError("must name a venue of the database", where="the manager's answer", got=text, fix=fix)
            fields = tuple(name for name in given if name != "name")
            return Prompt(kind, venue=self.numbers[given["name"]], fields=fields)
        return Prompt(kind, wanted=tuple(given.items()))

    def prompt_text(self, prompt: Prompt) -> str:
        """What the system says."""
        template = self.spec.prompts[prompt.kind]
        if prompt.kind == "give" and prompt.venue is not None:
            row = self.venues[prompt.venue]
            parts = [(self._field_name(name), row[name]) for name in prompt.fields]
            return " ".join(template.format(field=name, name=row["name"], value=value) for name, value in parts)
        row = self.venues[prompt.venue] if prompt.venue is not None else {}
        wanted = [value for _, value in prompt.wanted if value != DONTCARE]
        summary = " ".join(wanted or [value for slot in self.slots if (value := row.get(slot))])
        slot = self._field_name(prompt.slot) if prompt.slot else ""
        return template.format(slot=slot, value=prompt.value, name=row.get("name", ""), summary=summary or "venue")

    def _field_name(self, name: str) -> str:
        return str(self.spec.say["field"].get(name, [name])[0])

    def express(self, acts: UserActs, rng: random.Random) -> str:
        """One of the ways to say these acts; the grammar understands it.

        >>> town = TaskDomain.read("town")
        >>> town.grammar.parse(town.express(parse_acts("inform(food=thai, area=north)"), random.Random(1)))
        'inform(food=thai, area=north)'
        """
        asked = [slot.name or "" for act in acts if act.name == "request" for slot in act.slots]
        pieces = [self._express_act(act, rng) for act in acts if act.name != "request"]
        if asked:
            names = [rng.choice(self.spec.say["field"].get(name, [name])) for name in asked]
            pieces.append(rng.choice(self.spec.say["request"]).format(self.spec.say.get("and", " and ").join(names)))
        return _article.sub("an ", " ".join(pieces))

    def _express_act(self, act: Act, rng: random.Random) -> str:
        if act.name != "inform":
            return str(rng.choice(self.spec.say[act.name]))
        wanted = {slot.name or "": slot.value or "" for slot in act.slots}
        minded = {slot: value for slot, value in wanted.items() if value != DONTCARE}
        pieces = [self._express_wish(minded, rng)] if minded else []
        pieces += [rng.choice(self.spec.slots[slot].any) for slot, value in wanted.items() if value == DONTCARE]
        return " ".join(pieces)

    def _express_wish(self, wanted: Mapping[str, str], rng: random.Random) -> str:
        slots, say = self.spec.slots, self.spec.say
        if len(wanted) == 1 and rng.random() < 0.7:
            ((slot, value),) = wanted.items()
            return rng.choice(slots[slot].short).format(value)
        nouns = [
            f"a {rng.choice(slots[slot].noun).format(value)}" for slot, value in wanted.items() if slots[slot].noun
        ]
        after = [rng.choice(slots[slot].say).format(value) for slot, value in wanted.items() if slots[slot].say]
        return " ".join([rng.choice(say["opening"]), *(nouns or [rng.choice(say["noun"])]), *after])

    def vocabulary(self) -> list[str]:
        """Texts with every word that users may say, for a recogniser that knows them."""
        texts = [
            text for slot in self.spec.slots.values() for text in (*slot.values, *slot.say, *slot.short, *slot.any)
        ]
        for said in self.spec.say.values():
            groups = said.values() if isinstance(said, dict) else [said]
            texts += [text for group in groups for text in ([group] if isinstance(group, str) else group)]
        return [text.replace("{}", " ") for text in texts]


_article = re.compile(r"\ba (?=[aeiou])")


@cache
def _bundled(name: str) -> TaskDomain:
    text = (files("demur.corpora") / name / f"{name}.toml").read_text(encoding="utf-8")
    return TaskDomain.of(tomllib.loads(text), name, name)


def _check(spec: _DomainSpec, where: str) -> None:
    """Refuse a domain whose parts do not fit together."""
    database = f"{where}: database"
    columns = spec.database.columns
    lacking = [name for name in ("name", *spec.slots, *spec.fields) if name not in columns]
    if lacking:
        raise DataError("must have a column for each slot and field, and name", where=database, got=", ".join(columns))
    if not spec.slots or not spec.database.rows:
        raise DataError("must have slots, and venues in its database", where=where)
    for number, row in enumerate(spec.database.rows, start=1):
        place = f"{database}: row {number}"
        if len(row) != len(columns):
            raise DataError(f"must have {len(columns)} cells", where=place, got=str(len(row)))
        for name, slot in spec.slots.items():
            value = row[columns.index(name)]
            if value not in slot.values and not (slot.when and not value):
                raise DataError("is no value", where=f"{place}: {name}", got=value, fix=nearest(value, slot.values))
    for name, slot in spec.slots.items():
        _check_slot(name, slot, spec, f"{where}: slots.{name}")
    for key, needed in (("say", ("opening", "noun", "request", "field", *PLAIN)), ("prompts", KINDS)):
        missing = [name for name in needed if name not in getattr(spec, key)]
        if missing:
            raise DataError(f"must have {_listed(missing)}", where=f"{where}: {key}")


def _check_slot(name: str, slot: _TaskSlot, spec: _DomainSpec, where: str) -> None:
    if len(slot.values) < 2 or DONTCARE in slot.values:
        raise DataError(f"must have two values or more, none of them {DONTCARE}", where=where)
    if not slot.any or not (slot.say or slot.noun):
        raise DataError("must have `any`, and `say` or `noun`", where=where, fix='any = ["any area"]')
    if name == THIS or name in spec.fields:
        raise DataError("is the name of something else", where=where)
    for other, values in slot.when.items():
        if other not in spec.slots or set(values) - set(spec.slots[other].values):
            raise DataError("must name values of another slot", where=f"{where}.when", got=other)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def wish(wanted: Mapping[str, str] | Sequence[tuple[str, str]]) -> Act:
    """The act of asking for venues with these values.

    >>> str(wish({"food": "thai"}))
    'inform(food=thai)'
    """
    return Act("inform", tuple(Slot(name, value) for name, value in dict(wanted).items()))
