"""The words that questions are made by: verbs with their forms, and words that tell what a sentence is not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Form:
    """One form of a verb: its base, the auxiliary that asks in its tense and number, and whether it takes an object."""

    base: str
    auxiliary: str
    takes_object: bool


def _list(words: str) -> list[str]:
    return words.split()


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_WITH_OBJECT = """
    attract avoid bake boil bring:brought build:built burn bury buy:bought carry catch:caught cause check
    choose:chose clean climb close collect contain cut:cut decode describe destroy discover drain draw:drew
    drink:drank drive:drove eat:ate explain fan farm feed:fed fill find:found form gather get:got give:gave
    grind:ground grow:grew guard harm have:had hear:heard heat help hold:held invent keep:kept kill knead know:knew
    lay:laid lead:led leave:left lift list lose:lost make:made mean:meant measure meet:met melt need open own paint
    patent pay:paid poison pollinate produce protect prove publish pull push raise reach read:read rear receive
    record search see:saw sell:sold send:sent set:set shake:shook show:showed signal sing:sang slow split:split
    spread:spread stop study swallow take:took teach:taught tell:told throw:threw touch turn use visit warm wash
    watch weaken wear:wore weigh win:won write:wrote
"""
_WITHOUT_OBJECT = """
    appear arrive beat:beat become:became begin:began collapse come:came consist dance depend die differ erupt
    expand explode fall:fell float fly:flew go:went happen harden last lie:lay live move occur react rise:rose roll
    rot run:ran shrink:shrank sink:sank sit:sat sleep:slept smell sound stand:stood start stay sting:stung swim:swam
    taste travel vanish wait walk work
"""
_THIRD = {"have": "has", "go": "goes"}
_VOWELS = "aeiou"


def _third(base: str) -> str:
    if base in _THIRD:
        return _THIRD[base]
    if base.endswith("y") and base[-2] not in _VOWELS:
        return base[:-1] + "ies"
    return base + ("es" if base.endswith(("s", "x", "z", "ch", "sh")) else "s")


_DOUBLED = {"fan": "fanned", "rot": "rotted", "signal": "signalled", "stop": "stopped", "travel": "travelled"}


def _past(base: str) -> str:
    if base in _DOUBLED:
        return _DOUBLED[base]
    if base.endswith("y") and base[-2] not in _VOWELS:
        return base[:-1] + "ied"
    return base + ("d" if base.endswith("e") else "ed")


def _forms(listed: str, takes_object: bool) -> Iterator[tuple[str, Form]]:
    for entry in listed.split():
        base, _, irregular = entry.partition(":")
        yield base, Form(base, "do", takes_object)
        yield irregular or _past(base), Form(base, "did", takes_object)
        yield _third(base), Form(base, "does", takes_object)


VERBS: dict[str, Form] = {}
"""Forms of verbs. Where two verbs, or two forms of one, look alike (lay, cut), the base form is meant."""
for _listed, _takes_object in ((_WITHOUT_OBJECT, False), (_WITH_OBJECT, True)):
    for _form, _read in _forms(_listed, _takes_object):
        if _form not in VERBS or VERBS[_form].base != _form:
            VERBS[_form] = _read

BE = frozenset(("is", "are", "was", "were"))
MODALS = frozenset(("can", "could", "will", "would", "must", "may", "might", "should"))

_IRREGULAR_PARTICIPLES = """
    begun bent bought broken brought built caught chosen cut done drawn driven drunk eaten fed felt flown forgotten
    found frozen given ground grown held hidden hit hung kept known laid led left lit lost made meant met paid put
    read sent set shown shut sold spent split spread sung taken taught thrown told torn won worn woven written
"""
PARTICIPLES = _set(_IRREGULAR_PARTICIPLES)
"""Those that do not end in -ed."""

DETERMINERS = frozenset(("a", "an", "the", "each", "every", "most", "many", "some", "all", "its", "their", "one", "no"))

NO_SUBJECT = _set("""
    i you he she it we they this that these those there here one who what which when where why how whose
    in on at by for from with without within into onto over under after before during since until till of off to as than
    if because although though while unless once whether and but or nor so yet not never only also then thus still even
    perhaps however indeed today now soon later often sometimes usually once his her its their our my your both such
    please let do does did is are was were can could will would must may might should has have had be being been
    """)
"""A sentence that begins with one of these has no subject in front, or none that can be asked about by itself."""

WITHIN_NO_SUBJECT = _set("that which who whom whose where when if because not never cannot while")
"""What has one of these before its verb is a clause, or denies something."""

PREPOSITIONS = _set("""
    of in on at from with for under between to into over by near inside across through around about after before during
    without within above below against among behind beside along down up out off onto towards like until than as per
    """)
PLACES = ("in", "on", "at", "inside", "under", "near", "between", "above", "behind", "around")
"""Prepositions that a place may follow."""

PLACED = _set("""
    baked born built buried carried cut discovered drawn eaten fed found ground grown hidden invented kept laid made
    opened produced raised spoken stored taught used written
    """)
"""Participles of what is done at a place."""

NOT_A_PLACE = _set(
    "day days week month year years life time times moment minutes heat dark cold degrees celsius letters"
)
"""What follows a preposition of place and ends so is none."""
NO_START_OF_A_PLACE = _set("about all addition fact first general order part place total turn")
NO_OBJECT = _set(
    "again alone apart best better brown easily faster higher larger longer slower smaller together well worse"
)
"""What follows a verb and says how, not what."""

SEASONS = (
    r"(?:(?:early|late) )?(?:spring|summer|autumn|winter)|the (?:morning|afternoon|evening|night|spring|summer|winter)"
)
"""What follows `in` and is a time."""

_NUMBER_WORDS = "|".join(
    _list("""
    two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
    nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million
""")
)
NUMBER = rf"(?:\d[\d,.]*|(?:{_NUMBER_WORDS})(?:[ -](?:{_NUMBER_WORDS}))*\b)"
SIZES = ("high", "long", "wide", "deep", "tall", "thick", "old", "heavy", "away", "thin", "large")
PLURALS = _set("people bacteria children men women mice geese fish sheep cattle police feet teeth")
"""Plurals that do not end in s."""

NO_PERSON = _set("cape lake mount point")
"""With one of these a name begins that is nobody's."""

ABBREVIATIONS = _set("mr mrs ms dr prof st mt vs etc e.g i.e cf ca approx fig")
"""What a full stop follows without ending the sentence."""
