"""Question-answer pairs made by rule from plain text."""

from __future__ import annotations

import re
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

MOST = 4
"""Questions made of one sentence at most."""

LONGEST = 30
"""Words of a sentence at most; in longer ones the first verb seldom tells what is said."""

_STAYS_BEHIND = ("of", "from", "into", "for", "with")
"""Prepositions that a question may end with."""

_CLAUSE_FOLLOWS = frozenset(("that", "which", "who", "where", "when"))
"""Before one of these ends what the verb of the sentence says."""

_ABOUT = r"(?:(?:about|almost|nearly|over|only|some|more than|less than|up to) )*"
_NAME = r"[A-Z][\w’'-]+(?: (?:(?:von|van|de|del|the) )?[A-Z][\w’'-]+)"
_SPANS = "(?:(?:hour|minute|day|week|month|year)s|longer|ever)"

_ending = re.compile(r"(?<=[.!?])[\"')\]”’]*\s+|\n\s*\n")
_calling = re.compile(r"(.+?) (is|are|was|were) ((?:also |often |now |sometimes )?called) (.+)")
_time_in_front = re.compile(rf"In ((?:the year )?\d{{2,4}}|{SEASONS}),? (.+)")
_year = re.compile(r" in (?:the year )?\d{2,4}(?=$|[ ,;])")
_season = re.compile(rf" (?:in (?:{SEASONS})|at night)$")
_place = re.compile(rf"(.*?) ?(?<!\S)(?:{'|'.join(PLACES)}) (.+)")
_size = re.compile(rf"{_ABOUT}{NUMBER} \w+ ({'|'.join(SIZES)})\b.*")
_share = re.compile(rf"{_ABOUT}{NUMBER} per ?cent (?!of\b)(\w+).*")
_number = re.compile(rf"{_ABOUT}{NUMBER} (.+)")
_doer = re.compile(rf"(.*?) ?\bby {_NAME}(.*)")
_person = re.compile(_NAME)
_span = re.compile(rf"(.*?) ?(?<!\S)for (?:(?:{_ABOUT}{NUMBER}|several|many|a few) )?{_SPANS}(.*)")
_capital = re.compile(r"(?<=[\w,] )[A-Z][\w’'-]*")
_letters = re.compile(r"[^\W_]+")
_purpose = re.compile(r"((?:\S+ ){1,4}?)to (?!(?:the|a|an|its|their|each|every)\b)[a-z]+\b.*")


@dataclass(frozen=True, slots=True)
class RulePair:
    """A question, the sentence that answers it, and the rule that made the one of the other."""

    question: str
    answer: str
    rule: str

    @property
    def origin(self) -> str:
        """Says that nobody asked this.

        >>> RulePair("What is rye?", "Rye is a grass.", "what").origin
        'made by rule: what'
        """
        return f"made by rule: {self.rule}"


@dataclass(frozen=True, slots=True)
class Clause:
    """A sentence taken apart at its verb, without the full stop; a reason after `because` stands by itself."""

    subject: str
    verb: str
    rest: str
    has_reason: bool

    @property
    def is_state(self) -> bool:
        """Whether the verb is a form of be."""
        return self.verb in BE

    @property
    def first(self) -> str:
        """The first word after the verb."""
        return self.rest.split(" ")[0].lower()

    @property
    def is_passive(self) -> bool:
        """Whether something is done to the subject."""
        return self.is_state and _is_participle(self.first)

    @property
    def is_beyond_the_rules(self) -> bool:
        """Whether it denies something, or the verb is a form of have that only tells the tense."""
        perfect = self.verb in ("has", "have", "had") and (self.first == "been" or _is_participle(self.first))
        return perfect or self.first in ("not", "never", "neither")

    def asked(self, rest: str = "") -> str:
        """The clause as it follows the word of a question: auxiliary, subject, verb."""
        helped = self.is_state or self.verb in MODALS
        auxiliary, base = (self.verb, "") if helped else (VERBS[self.verb].auxiliary, VERBS[self.verb].base)
        return " ".join(part for part in (auxiliary, self.subject, base, rest.strip(" ,")) if part)


def make_pairs(text: str) -> list[RulePair]:
    """Question-answer pairs made by rule of the sentences of a text, none to four a sentence, in their order.

    A question is made once. None holds the whole sentence that answers it.

    >>> for pair in make_pairs("Rye is a grass. It is grey. Mills ground rye in 1784 because bread was dear."):
    ...     print(f"{pair.rule}: {pair.question}")
    what: What is rye?
    why: Why did mills grind rye in 1784?
    when: When did mills grind rye?
    what: What did mills grind in 1784?
    """
    made: dict[str, RulePair] = {}
    names = frozenset(_capital.findall(text))
    for sentence in sentences(text):
        for rule, asked in questions(sentence, names):
            made.setdefault(asked.lower(), RulePair(asked, sentence, rule))
    return list(made.values())


def sentences(text: str) -> list[str]:
    """The sentences of a text: they end with a full stop or the like before a space, or with an empty line.

    >>> sentences("Dr. Lee bakes. Is it rye?\\nYes!")
    ['Dr. Lee bakes.', 'Is it rye?', 'Yes!']
    """
    found: list[str] = []
    for piece in _ending.split(text):
        cleaned = " ".join(piece.split())
        if found and _goes_on(found[-1]):
            found[-1] += f" {cleaned}"
        else:
            found.append(cleaned)
    return [one for one in found if one]


def questions(sentence: str, names: frozenset[str] = frozenset()) -> list[tuple[str, str]]:
    """The questions made of one sentence, each after the name of its rule; `names` keep their capitals.

    >>> questions("Etna lies in Sicily.", frozenset({"Etna"}))
    [('where', 'Where does Etna lie?')]
    """
    clause = _clause(sentence, names)
    if clause is None or clause.is_beyond_the_rules:
        return []
    rules = _of_a_state(clause) if clause.is_state else _of_an_action(clause)
    asked = {f"{words[:1].upper()}{words[1:]}?": rule for rule, words in (*_of_either(clause), *rules)}
    return [(rule, question) for question, rule in asked.items() if _words(sentence) not in _words(question)][:MOST]


def _is_participle(word: str) -> bool:
    return word in PARTICIPLES or (word.endswith("ed") and len(word) > 3)


def _goes_on(before: str) -> bool:
    last = before.rpartition(" ")[2].removesuffix(".").lower()
    return before.endswith(".") and (last in ABBREVIATIONS or (len(last) == 1 and last.isalpha()))


def _clause(sentence: str, names: frozenset[str]) -> Clause | None:
    """The clause of a sentence, or nothing where the rules do not reach it."""
    body = _time_in_front.sub(r"\2 in \1", sentence.rstrip(".!"))
    if body.endswith("?") or len(body.split()) > LONGEST:
        return None
    said, because, _ = body.partition(" because ")
    calling = _calling.fullmatch(said)
    found = (calling[1], calling[2], f"{calling[3]} {calling[4]}") if calling else _parted(said.split(" "))
    if found is None or found[0].split(" ")[0].lower() in NO_SUBJECT or re.search("[,;:()?]", found[0]):
        return None
    return Clause(_as_inside(found[0], names), found[1], found[2].strip(" ,"), bool(because))


def _parted(words: list[str]) -> tuple[str, str, str] | None:
    """Subject, verb and rest, parted at the first verb that agrees with what is before it."""
    for place, word in enumerate(words[1:], start=1):
        if word in WITHIN_NO_SUBJECT:
            return None
        if word in BE or word in MODALS or (word in VERBS and _agrees(words[:place], word)):
            return " ".join(words[:place]), word, " ".join(words[place + 1 :])
    return None


def _agrees(subject: list[str], verb: str) -> bool:
    """Whether the verb has the number of the subject; what was done agrees with any, but follows no determiner."""
    if subject[-1].lower() in DETERMINERS or subject[-1].lower() in PREPOSITIONS or subject[-1].lower() == "and":
        return False
    auxiliary = VERBS[verb].auxiliary
    return auxiliary == "did" or (auxiliary == "do") == _is_plural(subject)


def _is_plural(subject: list[str]) -> bool:
    head = _up_to_preposition(subject)
    if "and" in head or subject[0].lower() in ("most", "many", "few", "more", "several"):
        return True
    return head[-1].lower() in PLURALS or (head[-1].endswith("s") and not head[-1].endswith(("ss", "us", "is")))


def _up_to_preposition(words: list[str]) -> list[str]:
    """The words before the first preposition that is not the first word."""
    ends = [place for place, word in enumerate(words) if place and word in PREPOSITIONS]
    return words[: ends[0]] if ends else words


def _as_inside(subject: str, names: frozenset[str]) -> str:
    """The subject as it is written inside a sentence: its first letter small unless it begins a name."""
    first = subject.split(" ")[0]
    is_a_name = first.lower() not in DETERMINERS and (first in names or _person.match(subject))
    if is_a_name or first.endswith(".") or first[1:] != first[1:].lower():
        return subject
    return first.lower() + subject[len(first) :]


def _without(time: re.Pattern[str], phrase: str) -> str:
    return time.sub("", f" {phrase}", count=1).strip()


def _words(text: str) -> str:
    return " ".join(["", *_letters.findall(text.lower()), ""])


def _of_either(clause: Clause) -> Iterator[tuple[str, str]]:
    """Why, how long and when."""
    if clause.has_reason:
        yield "why", f"why {clause.asked(clause.rest)}"
    if _CLAUSE_FOLLOWS & set(clause.rest.split()):
        return
    if (span := _span.fullmatch(clause.rest)) and not clause.has_reason:
        yield "how long", f"how long {clause.asked(span[1] + span[2])}"
    for time in (_year, _season):
        timeless = _without(time, clause.rest)
        if timeless != clause.rest and (timeless or not clause.is_state):
            yield "when", f"when {clause.asked(timeless)}"


def _of_a_state(clause: Clause) -> Iterator[tuple[str, str]]:
    """What is, how large is, and what is done to the subject of a form of be."""
    if " called " in f" {clause.rest}":
        yield from _of_a_name(clause)
    elif clause.is_passive:
        yield from _of_a_passive(clause)
    elif size := _size.fullmatch(clause.rest):
        yield "how large", f"how {size[1]} {clause.asked()}"
    elif place := _place_of(clause.rest, leading=True):
        yield "where", f"where {clause.asked(place[0])}"
    elif clause.first in DETERMINERS or (_is_plural([clause.first]) and clause.verb in ("are", "were")):
        yield "what", f"what {clause.asked()}"
    elif clause.rest and clause.first not in PREPOSITIONS and not clause.has_reason:
        yield "what like", f"what {clause.asked('like')}"


def _of_a_name(clause: Clause) -> Iterator[tuple[str, str]]:
    name = clause.rest.split("called ", 1)[1].split(",")[0]
    yield "called", f"what {clause.asked('called')}"
    if name.split(" ")[0] in ("a", "an", "the"):
        yield "what", f"what is {name}"
    elif clause.verb in ("are", "were") and _is_plural(name.split(" ")):
        yield "what", f"what are {name}"
    else:
        yield "what", f"what is meant by {name}"


def _of_a_passive(clause: Clause) -> Iterator[tuple[str, str]]:
    done, _, rest = clause.rest.partition(" ")
    timeless = _without(_year, rest)
    if doer := _doer.fullmatch(rest):
        yield "who", f"who {clause.asked(done)} by{_year.sub('', doer[2])}"
    follower = rest.split(" ")[0]
    if follower in (*_STAYS_BEHIND, "as") and not _span.fullmatch(rest):
        yield "what", f"what {clause.asked(done)} {follower}"
    elif done in PLACED and (place := _place_of(timeless, leading=True)):
        yield "where", f"where {clause.asked(f'{done} {place[0]}')}"


def _of_an_action(clause: Clause) -> Iterator[tuple[str, str]]:
    """Who did it, where, how many, what for and what, of a verb that is no form of be."""
    if clause.verb in MODALS:
        yield from _of_a_modal(clause)
        return
    is_a_person = _person.fullmatch(clause.subject) and clause.subject.split(" ")[0].lower() not in NO_PERSON
    if is_a_person and VERBS[clause.verb].auxiliary == "did" and clause.rest:
        yield "who", f"who {clause.verb} {clause.rest}"
    timeless = _without(_season, _without(_year, clause.rest))
    if (place := _place_of(timeless)) and not clause.has_reason:
        yield "where", f"where {clause.asked(place[0])}"
    yield from _of_an_object(clause, clause.asked())


def _of_a_modal(clause: Clause) -> Iterator[tuple[str, str]]:
    base, _, rest = clause.rest.partition(" ")
    if base in VERBS and VERBS[base].auxiliary == "do":
        lacking = Clause(clause.subject, clause.verb, rest, clause.has_reason)
        yield from _of_an_object(lacking, clause.asked(base), takes_object=VERBS[base].takes_object)
        if clause.verb == "can":
            yield "what", f"what {clause.asked('do')}"


def _of_an_object(clause: Clause, asked: str, *, takes_object: bool | None = None) -> Iterator[tuple[str, str]]:
    """How many, what for and what, from what follows the verb."""
    takes = VERBS[clause.verb].takes_object if takes_object is None else takes_object
    says_what = (
        clause.rest
        and clause.first not in PREPOSITIONS | NO_OBJECT
        and (clause.first == "only" or not clause.first.endswith("ly"))
    )
    if share := _share.fullmatch(clause.rest):
        yield "how much", f"how much {share[1]} {asked}"
    elif takes and (number := _number.fullmatch(clause.rest)):
        things, others = _head(number[1])
        yield "how many", f"how many {things} {asked} {others}".strip()
    elif clause.first in _STAYS_BEHIND and not _span.fullmatch(clause.rest):
        yield "what", f"what {asked} {clause.first}"
    elif takes and says_what:
        if purpose := _purpose.fullmatch(clause.rest):
            yield "what for", f"what {asked} {purpose[1]}for"
        year = _year.search(f" {clause.rest}")
        yield "what", f"what {asked}{year[0] if year else ''}"


def _head(phrase: str) -> tuple[str, str]:
    """What is counted, and the rest of the phrase."""
    words = phrase.split(" ")
    ends = [place for place, word in enumerate(words) if word in PREPOSITIONS - {"of"} or word in ("and", "or", "that")]
    end = ends[0] if ends else len(words)
    return " ".join(words[:end]), "" if words[end:][:1] in (["and"], ["or"], ["that"]) else " ".join(words[end:])


def _place_of(rest: str, *, leading: bool = False) -> tuple[str, str] | None:
    """What stands before a place, and the place; with `leading`, nothing stands before it."""
    found = _place.fullmatch(rest)
    if not found or (leading and found[1]) or len(found[1].split()) > 3:
        return None
    words = found[2].split(" ")
    last = _up_to_preposition(words)[-1].lower()
    is_none = last in NOT_A_PLACE or words[0] in NO_START_OF_A_PLACE or re.match(rf"{NUMBER}|(?:{SEASONS})\b", found[2])
    return None if is_none or _CLAUSE_FOLLOWS & set(found[1].split()) else (found[1], found[2])
