"""Question-answer pairs made by rule from plain text."""

from __future__ import annotations

import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl

from demur.core.io.writing import write_table
from demur.errors import DataError

_ENGLISH: dict[str, Any] = tomllib.loads((files("demur.corpora") / "questions.toml").read_text(encoding="utf-8"))
WORDS: dict[str, frozenset[str]] = {name: frozenset(text.split()) for name, text in _ENGLISH["words"].items()}
"""Words by what they are; `demur/corpora/questions.toml` says what each kind is for."""

MOST = 4
"""Questions made of one sentence at most."""

LONGEST = 30
"""Words of a sentence at most; in longer ones the first verb seldom tells what is said."""


@dataclass(frozen=True, slots=True)
class Form:
    """One form of a verb: its base, the auxiliary that asks in its tense and number, and whether it takes an object."""

    base: str
    auxiliary: str
    takes_object: bool
    singular: str
    """The form that one thing takes: that of the present with an s, or the past itself."""


def _verb_forms() -> dict[str, Form]:
    forms: dict[str, Form] = {}
    for kind in ("without_object", "with_object"):
        for entry in _ENGLISH["verbs"][kind].split():
            base, _, irregular = entry.partition(":")
            stem = f"{base[:-1]}i" if base.endswith("y") and base[-2] not in "aeiou" else base
            past = _ENGLISH["past_tense"].get(base, stem + ("d" if base.endswith("e") else "ed"))
            ending = "es" if stem.endswith(("i", "s", "x", "z", "ch", "sh")) else "s"
            third = _ENGLISH["third_person"].get(base, stem + ending)
            for form, auxiliary in ((base, "do"), (irregular or past, "did"), (third, "does")):
                if form not in forms or forms[form].base != form:
                    singular = form if auxiliary == "did" else third
                    forms[form] = Form(base, auxiliary, kind == "with_object", singular)
    return forms


VERBS = _verb_forms()
"""Forms of verbs. Where two verbs, or two forms of one, look alike (lay, cut), the base form is meant."""


def _any_of(kind: str) -> str:
    return "|".join(_ENGLISH["words"][kind].split())


_SEASONS = (
    r"(?:(?:early|late) )?(?:spring|summer|autumn|winter)|the (?:morning|afternoon|evening|night|spring|summer|winter)"
)
"""What follows `in` and is a time."""
_NUMBER = rf"(?:\d[\d,.]*|(?:{_any_of('numbers')})(?:[ -](?:{_any_of('numbers')}))*\b)"
_ABOUT = r"(?:(?:about|almost|nearly|over|only|some|more than|less than|up to) )*"
_NAME = r"[A-Z][\w’'-]+(?: (?:(?:von|van|de|del|the) )?[A-Z][\w’'-]+)"
_SPANS = "(?:(?:hour|minute|day|week|month|year)s|longer|ever)"

_ending = re.compile(r"(?<=[.!?])[\"')\]”’]*\s+|\n\s*\n")
_calling = re.compile(r"(.+?) (is|are|was|were) ((?:also |often |now |sometimes )?called) (.+)")
_time_in_front = re.compile(rf"In ((?:the year )?\d{{2,4}}|{_SEASONS}),? (.+)")
_year = re.compile(r" in (?:the year )?\d{2,4}(?=$|[ ,;])")
_season = re.compile(rf" (?:in (?:{_SEASONS})|at night)$")
_place = re.compile(rf"(.*?) ?(?<!\S)(?:{_any_of('places')}) (.+)")
_size = re.compile(rf"{_ABOUT}{_NUMBER} \w+ ({_any_of('sizes')})\b.*")
_share = re.compile(rf"{_ABOUT}{_NUMBER} per ?cent (?!of\b)(\w+).*")
_number = re.compile(rf"{_ABOUT}{_NUMBER} (.+)")
_doer = re.compile(rf"(.*?) ?\bby {_NAME}(.*)")
_person = re.compile(_NAME)
_span = re.compile(rf"(.*?) ?(?<!\S)for (?:(?:{_ABOUT}{_NUMBER}|several|many|a few) )?{_SPANS}(.*)")
_capital = re.compile(r"(?<=[\w,] )[A-Z][\w’'-]*")
_alphanumeric = re.compile(r"[^\W_]+")
_aside = re.compile(r"^([^,]+), (?:which|who|where|whose) [^,]+, ")
_phrase_in_front = re.compile(
    rf"((?:{_any_of('prepositions')}) [^,]+), (.+)|([Oo]n (?:Sun|Mon|Tues|Wednes|Thurs|Fri|Satur)days?),? (.+)",
    re.IGNORECASE,
)
_there = re.compile(rf"There (is|are|was|were) (?:{_ABOUT}(?P<number>{_NUMBER} )|(?:an?|many|several|some) )(.+)")
_purpose = re.compile(r"((?:\S+ ){1,4}?)to (?!(?:the|a|an|its|their|each|every)\b)[a-z]+\b.*")


@dataclass(frozen=True, slots=True)
class RulePair:
    """A question, the sentence that answers it, and the rule that made the one of the other."""

    question: str
    answer: str
    rule: str


@dataclass(frozen=True, slots=True)
class Clause:
    """A sentence taken apart at its verb, without the full stop; a reason after `because` stands by itself."""

    subject: str
    verb: str
    rest: str
    has_reason: bool
    denies: bool = False
    """Whether it says that something is not so."""

    @property
    def is_state(self) -> bool:
        """Whether the verb is a form of be."""
        return self.verb in WORDS["be"]

    @property
    def is_perfect(self) -> bool:
        """Whether the verb only tells the tense, as in "has been seen"."""
        return self.verb in ("has", "have", "had") and (self.first == "been" or _is_participle(self.first))

    @property
    def first(self) -> str:
        """The first word after the verb."""
        return self.rest.split(" ")[0].lower()

    def asked(self, rest: str = "") -> str:
        """The clause as it follows the word of a question: auxiliary, subject, verb."""
        helped = self.is_state or self.is_perfect or self.verb in WORDS["modals"]
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
    pairs: dict[str, RulePair] = {}
    names = frozenset(_capital.findall(text))
    for sentence in sentences(text):
        for rule, asked in questions(sentence, names):
            pairs.setdefault(asked.lower(), RulePair(asked, sentence, rule))
    return list(pairs.values())


@dataclass(eq=False)
class QuestionPairs:
    """The pairs made of texts, and how far the rules reach."""

    table: pl.DataFrame
    """`input`, `target`, `answer` and `rule`, a row for each question."""
    coverage: Mapping[str, tuple[int, int]]
    """For each text its sentences, and how many of them answer a question."""
    files: tuple[str, ...] = ()

    def frame(self) -> pl.DataFrame:
        """A row for each question, which `train` reads."""
        return self.table

    @property
    def rules(self) -> dict[str, int]:
        """How many questions each rule made, the most first."""
        return dict(Counter(self.table["rule"]).most_common())

    @property
    def reached(self) -> tuple[int, int]:
        """The sentences of all texts, and how many of them answer a question."""
        return sum(every for every, _ in self.coverage.values()), sum(some for _, some in self.coverage.values())

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know of the questions."""
        return (MADE_BY_RULE,)

    def to_dict(self) -> dict[str, Any]:
        """The pairs as plain values; the rows are left out where a file has them."""
        texts = [{"text": name, "sentences": every, "asked": some} for name, (every, some) in self.coverage.items()]
        rows = {} if self.files else {"pairs": self.table.to_dicts()}
        counts = {"n": self.table.height, "texts": texts, "rules": self.rules}
        return {**counts, **rows, "out": list(self.files), "notes": list(self.notes), "warnings": []}


MADE_BY_RULE = "questions are made by rule from plain sentences; nobody asked them"


def read_texts(sources: Sequence[Any]) -> dict[str, str]:
    """Texts by name, of files, of `-` for standard input, or of dicts that have them already."""
    texts: dict[str, str] = {}
    for source in sources:
        if isinstance(source, Mapping):
            texts.update(source)
            continue
        path = Path(source)
        try:
            content = sys.stdin.buffer.read() if str(source) == "-" else path.read_bytes()
            texts["text" if str(source) == "-" else path.stem] = content.decode("utf-8")
        except FileNotFoundError:
            raise DataError(f"{path} does not exist") from None
        except (OSError, UnicodeDecodeError) as fault:
            raise DataError(f"{path} cannot be read as UTF-8 text: {fault}") from None
    return texts


def table_of_pairs(texts: Mapping[str, str]) -> QuestionPairs:
    """The pairs of several texts; the label of an answer is the name of its text and the number of the sentence."""
    rows, coverage = [], {}
    for name, text in texts.items():
        every = sentences(text)
        number = {sentence: place for place, sentence in reversed([*enumerate(every, start=1)])}
        pairs = make_pairs(text)
        rows += [(pair.question, f"{name} {number[pair.answer]}", pair.answer, pair.rule) for pair in pairs]
        coverage[name] = (len(every), len({pair.answer for pair in pairs}))
    if not rows:
        raise DataError(
            f"no rule makes a question of {', '.join(texts) or 'no text'}",
            fix="the rules read plain English sentences that state a fact, such as: Rye is a grass.",
        )
    columns = dict.fromkeys(("input", "target", "answer", "rule"), pl.String)
    return QuestionPairs(pl.DataFrame(rows, columns, orient="row"), coverage)


def write_pairs(pairs: QuestionPairs, path: Path) -> None:
    """Write the rows in the format of the path's ending."""
    write_table(path, pairs.table)


def sentences(text: str) -> list[str]:
    """The sentences of a text: they end with a full stop or the like before a space, or with an empty line.

    >>> sentences("Dr. Lee bakes. Is it rye?\\nYes!")
    ['Dr. Lee bakes.', 'Is it rye?', 'Yes!']
    """
    parts: list[str] = []
    for piece in _ending.split(text):
        cleaned = " ".join(piece.split())
        last = parts[-1].rpartition(" ")[2].removesuffix(".").lower() if parts and parts[-1].endswith(".") else ""
        if last in WORDS["abbreviations"] or (len(last) == 1 and last.isalpha()):
            parts[-1] += f" {cleaned}"
        else:
            parts.append(cleaned)
    return [part for part in parts if part]


def questions(sentence: str, names: frozenset[str] = frozenset()) -> list[tuple[str, str]]:
    """The questions made of one sentence, each after the name of its rule; `names` keep their capitals.

    >>> questions("Etna lies in Sicily.", frozenset({"Etna"}))
    [('where', 'Where does Etna lie?'), ('which', 'What lies in Sicily?')]
    """
    rules = _of_there(sentence.rstrip(".!"))
    clause = None if rules else _clause(sentence, names)
    if clause is not None:
        rules = [*([] if clause.denies else _of_a_statement(clause))] or [("whether", clause.asked(clause.rest))]
    asked = {f"{words[:1].upper()}{words[1:]}?": rule for rule, words in rules}
    return [(rule, question) for question, rule in asked.items() if _words(sentence) not in _words(question)][:MOST]


def _of_a_statement(clause: Clause) -> Iterator[tuple[str, str]]:
    """What a clause that denies nothing answers, besides whether it is so."""
    yield from _of_either(clause)
    if not clause.is_perfect:
        yield from _of_a_state(clause) if clause.is_state else _of_an_action(clause)
    yield from _of_the_subject(clause)


def _of_there(sentence: str) -> list[tuple[str, str]]:
    """How many of something there are, or what there is at a place."""
    found = _there.fullmatch(sentence)
    if not found or len(sentence.split()) > LONGEST or set(sentence.split()) & WORDS["within_no_subject"]:
        return []
    things, others = _head(found[3])
    if found["number"]:
        return [("how many", f"how many {things} {found[1]} there {others}".strip())]
    place = _place_of(others, leading=True)
    return [("what", f"what {found[1]} there {others}")] if place else []


def _of_the_subject(clause: Clause) -> Iterator[tuple[str, str]]:
    """What it is that does something, or to which something is done."""
    named = _person.fullmatch(clause.subject) or " called " in f" {clause.rest}"
    if len(clause.rest.split()) < 2 or clause.has_reason or named:
        return
    if clause.is_perfect or clause.verb in WORDS["modals"] or (clause.is_state and _is_participle(clause.first)):
        verb = {"are": "is", "were": "was", "have": "has"}.get(clause.verb, clause.verb)
        yield "which", f"what {verb} {clause.rest}"
    elif not clause.is_state:
        yield "which", f"what {VERBS[clause.verb].singular} {clause.rest}"


def _is_participle(word: str) -> bool:
    return word in WORDS["participles"] or (word.endswith("ed") and len(word) > 3)


def _clause(sentence: str, names: frozenset[str]) -> Clause | None:
    """The clause of a sentence, or nothing where the rules do not reach it."""
    body = _time_in_front.sub(r"\2 in \1", sentence.rstrip(".!"))
    if body.endswith("?") or len(body.split()) > LONGEST:
        return None
    if moved := _phrase_in_front.fullmatch(body):
        phrase, body = (part for part in moved.groups() if part)
        body = f"{body[:1].upper()}{body[1:]} {phrase[:1].lower()}{phrase[1:]}"
    body = _aside.sub(r"\1 ", body).replace("cannot ", "can not ")
    statement, because, _ = body.partition(" because ")
    calling = _calling.fullmatch(statement)
    parts = (calling[1], calling[2], f"{calling[3]} {calling[4]}") if calling else _split_at_verb(statement.split(" "))
    if parts is None or parts[0].split(" ")[0].lower() in WORDS["no_subject"] or re.search("[,;:()?]", parts[0]):
        return None
    subject, verb, rest = _as_inside(parts[0], names), parts[1], parts[2].strip(" ,")
    denied, _, affirmed = rest.partition(" ")
    denies = denied.lower() in ("not", "never", "neither")
    if denies and not (verb in WORDS["be"] or verb in WORDS["modals"]):
        return None
    return Clause(subject, verb, affirmed if denies else rest, bool(because), denies)


def _split_at_verb(words: list[str]) -> tuple[str, str, str] | None:
    """Subject, verb and rest, split at the first verb that agrees with what is before it."""
    for place, word in enumerate(words[1:], start=1):
        if word in WORDS["within_no_subject"]:
            return None
        if word in WORDS["be"] | WORDS["modals"] or (word in VERBS and _agrees(words[:place], word)):
            return " ".join(words[:place]), word, " ".join(words[place + 1 :])
    return None


def _agrees(subject: list[str], verb: str) -> bool:
    """Whether the verb has the number of the subject; what was done agrees with any, but follows no determiner."""
    if subject[-1].lower() in WORDS["determiners"] | WORDS["prepositions"] | {"and"}:
        return False
    auxiliary = VERBS[verb].auxiliary
    return auxiliary == "did" or (auxiliary == "do") == _is_plural(subject)


def _is_plural(subject: list[str]) -> bool:
    head = _up_to_preposition(subject)
    if "and" in head or subject[0].lower() in ("most", "many", "few", "more", "several"):
        return True
    last = head[-1]
    return last.lower() in WORDS["plurals"] or (last.endswith("s") and not last.endswith(("ss", "us", "is")))


def _up_to_preposition(words: list[str]) -> list[str]:
    """The words before the first preposition that is not the first word."""
    ends = [place for place, word in enumerate(words) if place and word in WORDS["prepositions"]]
    return words[: ends[0]] if ends else words


def _as_inside(subject: str, names: frozenset[str]) -> str:
    """The subject as it is written inside a sentence: its first letter small unless it begins a name."""
    first = subject.split(" ")[0]
    is_a_name = first.lower() not in WORDS["determiners"] and (first in names or _person.match(subject))
    if is_a_name or first.endswith(".") or first[1:] != first[1:].lower():
        return subject
    return first.lower() + subject[len(first) :]


def _without(time: re.Pattern[str], phrase: str) -> str:
    return time.sub("", f" {phrase}", count=1).strip()


def _words(text: str) -> str:
    return " ".join(["", *_alphanumeric.findall(text.lower()), ""])


def _of_either(clause: Clause) -> Iterator[tuple[str, str]]:
    """Why, how long and when."""
    if clause.has_reason:
        yield "why", f"why {clause.asked(clause.rest)}"
    if WORDS["clause_follows"] & set(clause.rest.split()):
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
    elif _is_participle(clause.first):
        yield from _of_a_passive(clause)
    elif size := _size.fullmatch(clause.rest):
        yield "how large", f"how {size[1]} {clause.asked()}"
    elif place := _place_of(clause.rest, leading=True):
        yield "where", f"where {clause.asked(place[0])}"
    elif clause.first in WORDS["determiners"] or (_is_plural([clause.first]) and clause.verb in ("are", "were")):
        yield "what", f"what {clause.asked()}"
    elif clause.rest and clause.first not in WORDS["prepositions"] and not clause.has_reason:
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
    if follower in (*WORDS["stays_behind"], "as") and not _span.fullmatch(rest):
        yield "what", f"what {clause.asked(done)} {follower}"
    elif done in WORDS["placed"] and (place := _place_of(timeless, leading=True)):
        yield "where", f"where {clause.asked(f'{done} {place[0]}')}"


def _of_an_action(clause: Clause) -> Iterator[tuple[str, str]]:
    """Who did it, where, how many, what for and what, of a verb that is no form of be."""
    if clause.verb in WORDS["modals"]:
        base, _, rest = clause.rest.partition(" ")
        if base in VERBS and VERBS[base].auxiliary == "do":
            lacking = Clause(clause.subject, clause.verb, rest, clause.has_reason)
            yield from _of_an_object(lacking, clause.asked(base), takes_object=VERBS[base].takes_object)
            if clause.verb == "can":
                yield "what", f"what {clause.asked('do')}"
        return
    is_a_person = _person.fullmatch(clause.subject) and clause.subject.split(" ")[0].lower() not in WORDS["no_person"]
    if is_a_person and VERBS[clause.verb].auxiliary == "did" and clause.rest:
        yield "who", f"who {clause.verb} {clause.rest}"
    timeless = _without(_season, _without(_year, clause.rest))
    if (place := _place_of(timeless)) and not clause.has_reason:
        yield "where", f"where {clause.asked(place[0])}"
    yield from _of_an_object(clause, clause.asked(), takes_object=VERBS[clause.verb].takes_object)


def _of_an_object(clause: Clause, asked: str, *, takes_object: bool) -> Iterator[tuple[str, str]]:
    """How many, what for and what, from what follows the verb."""
    says_what = (
        clause.rest
        and clause.first not in WORDS["prepositions"] | WORDS["no_object"]
        and (clause.first == "only" or not clause.first.endswith("ly"))
    )
    if share := _share.fullmatch(clause.rest):
        yield "how much", f"how much {share[1]} {asked}"
    elif takes_object and (number := _number.fullmatch(clause.rest)):
        things, others = _head(number[1])
        yield "how many", f"how many {things} {asked} {others}".strip()
    elif clause.first in WORDS["stays_behind"] and not _span.fullmatch(clause.rest):
        yield "what", f"what {asked} {clause.first}"
    elif takes_object and says_what:
        if purpose := _purpose.fullmatch(clause.rest):
            yield "what for", f"what {asked} {purpose[1]}for"
        year = _year.search(f" {clause.rest}")
        yield "what", f"what {asked}{year[0] if year else ''}"


def _head(phrase: str) -> tuple[str, str]:
    """What is counted, and the rest of the phrase."""
    words = phrase.split(" ")
    joints = {"and", "or", "that"}
    stops = WORDS["prepositions"] - {"of"} | joints
    end = next((place for place, word in enumerate(words) if word in stops), len(words))
    return " ".join(words[:end]), "" if joints & set(words[end : end + 1]) else " ".join(words[end:])


def _place_of(rest: str, *, leading: bool = False) -> tuple[str, str] | None:
    """What stands before a place, and the place; with `leading`, nothing stands before it."""
    found = _place.fullmatch(rest)
    if not found or (leading and found[1]) or len(found[1].split()) > 3:
        return None
    words = found[2].split(" ")
    last = _up_to_preposition(words)[-1].lower()
    is_none = (
        last in WORDS["not_a_place"]
        or words[0] in WORDS["no_start_of_a_place"]
        or re.match(rf"{_NUMBER}|(?:{_SEASONS})\b", found[2])
    )
    return None if is_none or WORDS["clause_follows"] & set(found[1].split()) else (found[1], found[2])
