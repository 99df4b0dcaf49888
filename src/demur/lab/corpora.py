"""Corpora that come with the package, and question-answer pairs made by rule from plain text."""

from __future__ import annotations

import gzip
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl

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
                    forms[form] = Form(base, auxiliary, kind == "with_object")
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

    @property
    def is_state(self) -> bool:
        """Whether the verb is a form of be."""
        return self.verb in WORDS["be"]

    @property
    def first(self) -> str:
        """The first word after the verb."""
        return self.rest.split(" ")[0].lower()

    def asked(self, rest: str = "") -> str:
        """The clause as it follows the word of a question: auxiliary, subject, verb."""
        helped = self.is_state or self.verb in WORDS["modals"]
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
    [('where', 'Where does Etna lie?')]
    """
    clause = _clause(sentence, names)
    if clause is None or clause.first in ("not", "never", "neither"):
        return []
    if clause.verb in ("has", "have", "had") and (clause.first == "been" or _is_participle(clause.first)):
        return []  # the verb only tells the tense
    rules = _of_a_state(clause) if clause.is_state else _of_an_action(clause)
    asked = {f"{words[:1].upper()}{words[1:]}?": rule for rule, words in (*_of_either(clause), *rules)}
    return [(rule, question) for question, rule in asked.items() if _words(sentence) not in _words(question)][:MOST]


def _is_participle(word: str) -> bool:
    return word in WORDS["participles"] or (word.endswith("ed") and len(word) > 3)


def _clause(sentence: str, names: frozenset[str]) -> Clause | None:
    """The clause of a sentence, or nothing where the rules do not reach it."""
    body = _time_in_front.sub(r"\2 in \1", sentence.rstrip(".!"))
    if body.endswith("?") or len(body.split()) > LONGEST:
        return None
    statement, because, _ = body.partition(" because ")
    calling = _calling.fullmatch(statement)
    parts = (calling[1], calling[2], f"{calling[3]} {calling[4]}") if calling else _split_at_verb(statement.split(" "))
    if parts is None or parts[0].split(" ")[0].lower() in WORDS["no_subject"] or re.search("[,;:()?]", parts[0]):
        return None
    return Clause(_as_inside(parts[0], names), parts[1], parts[2].strip(" ,"), bool(because))


def _split_at_verb(words: list[str]) -> tuple[str, str, str] | None:
    """Subject, verb and rest, split at the first verb that agrees with what is before it."""
    for place, word in enumerate(words[1:], start=1):
        if word in WORDS["within_no_subject"]:
            return None
        if word in WORDS["be"] or word in WORDS["modals"] or (word in VERBS and _agrees(words[:place], word)):
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


@dataclass(frozen=True, slots=True)
class Corpus:
    """A character's answers, the questions they answer, and questions it has no answer to."""

    answers: pl.DataFrame
    """`answer` (the label) and `text` (what the character says)."""
    questions: pl.DataFrame
    """`id`, `input` and `target` (the label of the right answer)."""
    offtopic: pl.DataFrame
    """`id` and `input`."""


@dataclass(frozen=True)
class Study:
    """A user trial: what was said, heard and understood in each turn, and how each dialogue ended."""

    dialogues: pl.DataFrame
    """`dialogue`, `manager`, `noise`, `success` and `turns`."""
    folder: Path
    """Where `turns.jsonl.gz`, `dialogues.jsonl` and the `grammar.toml` that understood the turns lie."""

    @cached_property
    def turns(self) -> pl.DataFrame:
        """`id`, `dialogue`, `manager`, `noise`, `reference`, `text`, `hypotheses`, `asr` and `cnet`."""
        return pl.read_ndjson(gzip.decompress((self.folder / "turns.jsonl.gz").read_bytes()))


@dataclass(frozen=True, slots=True)
class WizardStudy:
    """A Wizard-of-Oz study: who completed the task at which word error rate, and what that is worth."""

    trials: pl.DataFrame
    """`performer` (`wizards`, `A`, `B`), `role`, `subject`, `components`, `wer` and `completed`."""
    lesions: pl.DataFrame
    """The same columns: the wizards, and one system with each combination of two components."""
    cost: pl.DataFrame
    """`performance` and `amount`: thousand dollars that a designer would pay for that rate of completion."""
    folder: Path
    """Where `trials.csv`, `lesions.csv` and `cost.csv` lie."""


def museum() -> Corpus:
    """Marta, guide of a harbour museum: 47 answers, 1,505 questions, 120 off-topic ones, written for this project.

    >>> corpus = museum()
    >>> corpus.answers.height >= 40, corpus.questions["target"].value_counts()["count"].min() >= 12
    (True, True)
    """
    folder = files("demur.corpora") / "museum"
    tables = (pl.read_ndjson((folder / f"{name}.jsonl").read_bytes()) for name in ("answers", "questions", "offtopic"))
    return Corpus(*tables)


def domains() -> dict[str, str]:
    """Four texts of some 65 plain sentences, far from the museum's subjects, for a character to grow by.

    Written for this project, a sentence a line. `demur.lab.corpora` makes questions of them.

    >>> list(domains())
    ['bees', 'bread', 'railways', 'volcanoes']
    """
    folder = files("demur.corpora") / "domains"
    names = ("bees", "bread", "railways", "volcanoes")
    return {name: (folder / f"{name}.txt").read_text(encoding="utf-8") for name in names}


def restaurant_folder() -> Path:
    """Where the files of the restaurant guide's trial lie."""
    return Path(str(files("demur.corpora") / "restaurant"))


def restaurant() -> Study:
    """A simulated trial of a restaurant guide: 650 dialogues, two managers, three levels of noise, the truth known.

    `tools/restaurant_study.py` in the repository makes it.

    >>> study = restaurant()
    >>> study.dialogues["noise"].unique(maintain_order=True).to_list()
    ['35.3 dB', '10.2 dB', '3.5 dB']
    >>> study.turns.height == study.dialogues["turns"].sum()
    True
    """
    folder = restaurant_folder()
    return Study(pl.read_ndjson(folder / "dialogues.jsonl"), folder)


def wizards() -> WizardStudy:
    """A simulated study of a form-filling task over a noisy recogniser: 16 wizards, two systems, the truth known.

    `demur.lab.wizards` says how it was made, and computes the truth.

    >>> study = wizards()
    >>> study.trials["performer"].unique(maintain_order=True).to_list(), study.trials["subject"].n_unique()
    (['wizards', 'A', 'B'], 32)
    """
    folder = Path(str(files("demur.corpora") / "wizards"))
    trials, lesions, cost = (pl.read_csv(folder / f"{name}.csv") for name in ("trials", "lesions", "cost"))
    return WizardStudy(trials, lesions, cost, folder)
