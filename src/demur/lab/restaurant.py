"""A simulated user trial of a restaurant guide: callers, a noisy channel and two dialogue managers."""

from __future__ import annotations

import gzip
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from demur.core.acts import Act, Slot, print_acts
from demur.lab.restaurant_managers import Belief, FirstBest, Manager
from demur.lab.restaurant_sentences import (
    FIELDS,
    SLOTS,
    VALUES,
    Place,
    Prompt,
    found,
    inform,
    places,
    plain,
    request,
    spoken,
    vocabulary,
)
from demur.nbest_lists.asr.grammar import Grammar
from demur.nbest_lists.asr.networks import Network, Sentence, nbest
from demur.nbest_lists.asr.scorers import scored

_SOUND_ALIKE = """
    tie tire nor forth sheep chip heap ease eat best vest mouth self sent enter food good foot fool ah oh eh it hm
    on an know now year yet phones bone dress press post cold code price prize pray play space spinach finish
    welcome well will world word by buy my think thing that they late ate in is this there their then where were
    hair here area era are or of cousin korea career crane green great gray grief talk turkey quick swim suite
    marine modern moderate modest chosen chess cheese trench bench friend brittle
"""
_INSERTED = ("a", "the", "uh", "it", "and", "of", "in", "i", "no", "oh", "is", "to")
_STEEPNESS = 2.0
"""How much less likely a candidate is the less it is spelt like the word."""
_SAME_KIND = 0.25
_RIVALS = 8
_ARCS = 5
_FAINTEST = 0.004
"""Words less likely than this share of the best are pruned."""
_LOST = 0.6


def heard(words: Sequence[str], noise: float, rng: np.random.Generator) -> Network:
    """What a recogniser makes of these words: a network of at most five words a slot, of four decimals each.

    Noise 0 is a perfect line; at 0.3 about one word in ten is not the best of its slot, at 0.6 about two in five.

    >>> heard(["cheap", "thai"], 0.0, np.random.default_rng(0))
    Network(slots=((('cheap', 1.0),), (('thai', 1.0),)))
    """
    if noise <= 0:
        return Network(tuple(((word, 1.0),) for word in words))
    slots: list[tuple[tuple[str, float], ...]] = []
    for word in words:
        slots += _between(noise, rng)
        slots.append(_slot(*_candidates(word), noise, rng, lost=rng.random() < _LOST * noise**2))
    return Network(tuple(slots))


def _between(noise: float, rng: np.random.Generator) -> list[tuple[tuple[str, float], ...]]:
    """A slot in which nothing was said, where the noise is taken for speech."""
    if rng.random() >= 0.3 * noise:
        return []
    chosen = rng.choice(len(_INSERTED), size=2, replace=False)
    words = ("", *(_INSERTED[place] for place in chosen))
    return [_slot(words, np.log([0.6, 0.2, 0.2]), noise, rng)]


def _slot(
    words: tuple[str, ...], prior: NDArray[np.float64], noise: float, rng: np.random.Generator, *, lost: bool = False
) -> tuple[tuple[str, float], ...]:
    """The arcs of one slot, best first; the first of the words is what was said, unless it is lost altogether."""
    clarity = 1.0 if lost else 1.0 / noise
    evidence = clarity * rng.standard_normal(len(words))
    evidence[0] = -math.inf if lost else evidence[0] + clarity**2
    return _arcs(words, _boldness(noise) * (prior + evidence))


def _boldness(noise: float) -> float:
    """The power that sharpens posteriors: one on a good line, larger under noise."""
    return 1.0 + 3.0 * max(0.0, noise - 0.3)


def _arcs(words: tuple[str, ...], scores: NDArray[np.float64]) -> tuple[tuple[str, float], ...]:
    weights = np.exp(scores - scores.max())
    order = np.argsort(-weights, kind="stable")[:_ARCS]
    kept = [place for place in order if weights[place] >= _FAINTEST * weights[order[0]]]
    total = sum(weights[place] for place in kept)
    rest = [(words[place], round(float(weights[place] / total), 4)) for place in kept[1:]]
    best = round(1.0 - math.fsum(probability for _, probability in rest), 4)
    return ((words[kept[0]], best), *rest)


@lru_cache(maxsize=4096)
def _candidates(word: str) -> tuple[tuple[str, ...], NDArray[np.float64]]:
    """The word itself, silence, and the words most like it, with their log priors."""
    near = sorted((_unlikeness(word, other), other) for other in _known() if other != word)[:_RIVALS]
    words = (word, "", *(other for _, other in near))
    costs = [0.0, 0.45 + 0.06 * len(word), *(cost for cost, _ in near)]
    return words, -_STEEPNESS * np.array(costs)


@cache
def _known() -> tuple[str, ...]:
    return tuple(sorted({*vocabulary(), *_SOUND_ALIKE.split()}))


@cache
def _kinds() -> dict[str, str]:
    """The slot each word of a value belongs to."""
    return {word: slot for slot, values in VALUES.items() for value in values for word in value.split()}


def _unlikeness(one: str, other: str) -> float:
    """Edits per letter, fewer for two values of the same slot: a recogniser expects one where the other may stand."""
    kinds = _kinds()
    nearer = _SAME_KIND if kinds.get(one, one) == kinds.get(other, other) else 0.0
    return max(0.1, _edits(one, other) / max(len(one), len(other)) - nearer)


def _edits(one: str, other: str) -> int:
    """Letters to insert, drop or change to turn one word into the other.

    >>> _edits("cheap", "sheep"), _edits("north", "nor")
    (2, 2)
    """
    row = list(range(len(other) + 1))
    for place, letter in enumerate(one, 1):
        above, row[0] = row[0], place
        for column, there in enumerate(other, 1):
            above, row[column] = row[column], min(above + (letter != there), row[column] + 1, row[column - 1] + 1)
    return row[-1]


_T = TypeVar("_T")
LONGEST = 20
"""The most turns a caller takes."""


@dataclass(slots=True)
class Caller:
    """Somebody with a goal: a place that suits `wanted`, and the fields in `asks` read out about it."""

    wanted: dict[str, str]
    asks: tuple[str, ...]
    second_choice: tuple[str, str] | None
    patience: int
    rng: np.random.Generator
    told: set[str] = field(default_factory=set)
    known: set[str] = field(default_factory=set)
    last: tuple[Act, ...] = ()

    @property
    def satisfied(self) -> bool:
        """Whether everything asked about a place that suits has been told."""
        return self.known >= set(self.asks)

    def reply(self, prompt: Prompt, turn: int) -> tuple[Act, ...]:
        """What the caller says next; a goodbye ends the call."""
        if prompt.kind == "give" and prompt.place is not None and prompt.place.suits(self.wanted):
            self.known |= set(prompt.given)
        if self.satisfied or turn + 1 >= self.patience:
            polite = self.satisfied and self.rng.random() < 0.8
            acts: tuple[Act, ...] = (plain("thankyou"), plain("bye")) if polite else (plain("bye"),)
        elif self.rng.random() < 0.01:
            return (plain("repeat"),)
        else:
            acts = self._answer(prompt)
        self.last = acts
        self.told |= {slot.name or "" for act in acts if act.name == "inform" for slot in act.slots}
        return acts

    def _answer(self, prompt: Prompt) -> tuple[Act, ...]:
        match prompt.kind:
            case "request":
                return (self._about(prompt.slot),)
            case "confirm":
                right = self.wanted.get(prompt.slot, "dontcare") == prompt.value
                return (plain("affirm"),) if right else self._corrected([prompt.slot])
            case "offer" | "give" if prompt.place is not None:
                wrong = [slot for slot in SLOTS if not prompt.place.suits({slot: self.wanted.get(slot, "dontcare")})]
                return self._corrected(wrong) if wrong else self._curious(prompt.place)
            case "cannot":
                return self._refused(prompt)
            case "again" if self.last:
                return self.last
        return self._opening()

    def _opening(self) -> tuple[Act, ...]:
        count = 1 + int(self.rng.random() < 0.4) + int(self.rng.random() < 0.15)
        chosen = set(self._shuffled([slot for slot in SLOTS if slot in self.wanted])[:count])
        wish = inform(**{slot: self.wanted[slot] for slot in SLOTS if slot in chosen})
        return (plain("hello"), wish) if self.rng.random() < 0.1 else (wish,)

    def _about(self, slot: str) -> Act:
        """An answer to "which food, area, price?", now and then with something more."""
        if slot not in self.wanted:
            return inform(**{slot if self.rng.random() < 0.6 else "this": "dontcare"})
        untold = [other for other in self.wanted if other not in self.told and other != slot]
        more = untold[:1] if self.rng.random() < 0.2 else []
        return inform(**{name: self.wanted[name] for name in SLOTS if name in (slot, *more)})

    def _corrected(self, wrong: Sequence[str]) -> tuple[Act, ...]:
        """A no, the right value, or both."""
        slot = _one(wrong, self.rng)
        correction = inform(**{slot: self.wanted.get(slot, "dontcare")})
        mood = self.rng.random()
        if mood < 0.2:
            return (plain("negate"),)
        return (plain("negate"), correction) if mood < 0.45 else (correction,)

    def _curious(self, place: Place) -> tuple[Act, ...]:
        """A question about a place that suits, or whether there is another."""
        mood = self.rng.random()
        if not self.known and mood < 0.15:
            return (plain("reqalts"),)
        if not self.known and mood < 0.25:
            slot = _one(SLOTS, self.rng)
            return (Act("confirm", (Slot(slot, str(getattr(place, slot))),)),)
        left = [name for name in self.asks if name not in self.known]
        return request(*left[: 1 + int(self.rng.random() < 0.15)])

    def _refused(self, prompt: Prompt) -> tuple[Act, ...]:
        """Nothing was found: the caller corrects what was misunderstood, or takes the second choice."""
        searched = prompt.wanted or {}
        wrong = [slot for slot in SLOTS if searched.get(slot, "dontcare") != self.wanted.get(slot, "dontcare")]
        if (not wrong or not set(wrong) & set(searched)) and self.second_choice is not None:
            slot, value = self.second_choice
            self.wanted[slot] = value
            self.second_choice = None
            return (plain("reqalts"), inform(**{slot: value}))
        slot = next((slot for slot in wrong if slot in searched), next(iter(self.wanted)))
        return (inform(**{slot: self.wanted.get(slot, "dontcare")}),)

    def _shuffled(self, items: Sequence[str]) -> list[str]:
        return [items[place] for place in self.rng.permutation(len(items))]


def caller(rng: np.random.Generator) -> Caller:
    """Somebody with a goal that some place can meet, one in five of them only after a second choice."""
    place = _one(places(), rng)
    minded = [slot for slot in SLOTS if rng.random() < (0.95 if slot == "food" else 0.75)] or ["food"]
    wanted = {slot: str(getattr(place, slot)) for slot in minded}
    asks = tuple(FIELDS[pick] for pick in sorted(_fields(minded, rng)))
    second = _hopeless(wanted, rng) if rng.random() < 0.2 else None
    return Caller(wanted, asks, second, min(LONGEST, int(rng.integers(12, 28))), rng)


def _fields(minded: Sequence[str], rng: np.random.Generator) -> list[int]:
    """One to three fields to ask about, none of them a constraint of the goal."""
    open_ones = [number for number, name in enumerate(FIELDS) if name not in minded]
    count = min(len(open_ones), int(rng.choice([1, 2, 3], p=[0.15, 0.4, 0.45])))
    return [open_ones[pick] for pick in rng.permutation(len(open_ones))[:count]]


def _hopeless(wanted: dict[str, str], rng: np.random.Generator) -> tuple[str, str] | None:
    """Make the first wish one that no place meets; what it was before is the second choice."""
    slot = next(iter(wanted))
    others = [value for value in VALUES[slot] if not found({**wanted, slot: value})]
    if not others:
        return None
    second = (slot, wanted[slot])
    wanted[slot] = _one(others, rng)
    return second


def _one(choices: Sequence[_T], rng: np.random.Generator) -> _T:
    return choices[int(rng.integers(len(choices)))]


MANAGERS: dict[str, Callable[[], Manager]] = {"first-best": FirstBest, "belief": Belief}
"""The dialogue managers of the study."""
LEVELS = {"35.3 dB": 0.31, "10.2 dB": 0.43, "3.5 dB": 0.55}
"""The noise of the channel at each signal-to-noise ratio of the study."""

_DIALOGUES_DIFFER = 0.15
_TURNS_DIFFER = 0.2
_SENTENCES = 100
_ACTS = 10


@dataclass(frozen=True, slots=True)
class _Line:
    """One call's line: how noisy it is on the whole, and the chance that makes each turn better or worse."""

    noise: float
    rng: np.random.Generator

    def heard(self, text: str) -> Network:
        noise = self.noise * math.exp(_TURNS_DIFFER * self.rng.standard_normal())
        return heard(text.split(), noise, self.rng)


def study(seed: int = 0, dialogues: int = 650) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows of the turns and of the dialogues; managers take turns, each pair with callers of the same goal.

    >>> turns, calls = study(dialogues=2)
    >>> [(call["dialogue"], call["manager"], call["noise"]) for call in calls]
    [('r001', 'first-best', '35.3 dB'), ('r002', 'belief', '35.3 dB')]
    """
    turns: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    for number in range(dialogues):
        manager = list(MANAGERS)[number % len(MANAGERS)]
        level = list(LEVELS)[number // len(MANAGERS) % len(LEVELS)]
        head = {"dialogue": f"r{number + 1:03}", "manager": manager, "noise": level}
        who = caller(np.random.default_rng([seed, 0, number // len(MANAGERS)]))
        rows = call(who, MANAGERS[manager](), _line(LEVELS[level], np.random.default_rng([seed, 1, number])))
        turns += [{"id": f"{head['dialogue']}/{turn}", **head, **row} for turn, row in enumerate(rows)]
        calls.append({**head, "success": who.satisfied, "turns": len(rows)})
    return turns, calls


def write(folder: str | Path, seed: int = 0, dialogues: int = 650) -> None:
    """Write a study's `turns.jsonl.gz` and `dialogues.jsonl`, the same bytes for the same study."""
    turns, calls = study(seed, dialogues)
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=9, mtime=0) as file:
        file.write(_lines(turns))
    (Path(folder) / "turns.jsonl.gz").write_bytes(packed.getvalue())
    (Path(folder) / "dialogues.jsonl").write_bytes(_lines(calls))


def call(who: Caller, manager: Manager, line: _Line) -> list[dict[str, Any]]:
    """One call, a row for each turn of the caller; either side may end it with a goodbye."""
    rows: list[dict[str, Any]] = []
    prompt = Prompt("welcome")
    while prompt.kind != "goodbye":
        acts = who.reply(prompt, len(rows))
        rows.append(turn(acts, line))
        if any(act.name == "bye" for act in acts):
            break
        prompt = manager.answer([(each["act"], each["confidence"]) for each in rows[-1]["hypotheses"]])
    return rows


def turn(acts: tuple[Act, ...], line: _Line) -> dict[str, Any]:
    """What was meant, said, heard and understood in one turn."""
    text = spoken(acts, line.rng)
    network = line.heard(text)
    sentences = nbest(network, _SENTENCES)
    return {
        "reference": print_acts(acts),
        "text": text,
        "hypotheses": understood(sentences),
        "asr": [_sentence_row(sentence) for sentence in sentences[:10]],
        "cnet": [[{"word": word, "confidence": share} for word, share in slot] for slot in network.slots],
    }


def understood(sentences: list[Sentence]) -> list[dict[str, Any]]:
    """At most ten acts with the inference evidence of their sentences, rounded down so that no list exceeds 1."""
    acts = scored(sentences, scorer="infev", parse=_parsed, n=_SENTENCES)[:_ACTS]
    rounded = [{"act": act, "confidence": math.floor(confidence * 1e4) / 1e4} for act, confidence in acts]
    return [each for each in rounded if each["confidence"]]


def _line(level: float, rng: np.random.Generator) -> _Line:
    return _Line(level * math.exp(_DIALOGUES_DIFFER * rng.standard_normal()), rng)


@cache
def _parsed(text: str) -> str:
    return _grammar().parse(text)


@cache
def _grammar() -> Grammar:
    with as_file(files("demur.corpora") / "restaurant" / "grammar.toml") as path:
        return Grammar.read(path)


def _sentence_row(sentence: Sentence) -> dict[str, Any]:
    confidences = sentence.confidences or ()
    words = [{"word": word, "confidence": share} for word, share in zip(sentence.words, confidences, strict=True)]
    return {"text": " ".join(sentence.words), "logprob": round(sentence.logprob, 4), "words": words}


def _lines(rows: list[dict[str, Any]]) -> bytes:
    return b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
