"""A simulated user trial of a restaurant guide: callers, what they say, a noisy channel and two dialogue managers.

`python tools/restaurant_study.py src/demur/corpora/restaurant` makes the study that comes with the package.
"""

from __future__ import annotations

import gzip
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from demur.core.acts import Act, Slot, print_acts
from demur.lab.corpora import restaurant_folder
from demur.nbest_lists.asr.grammar import Grammar
from demur.nbest_lists.asr.networks import Network, Sentence, nbest
from demur.nbest_lists.asr.scorers import scored
from demur.understanding.noise import sentence_row, word_rows
from restaurant_guide import (
    PHRASES,
    SLOTS,
    VALUES,
    Belief,
    FirstBest,
    Manager,
    Place,
    Prompt,
    matching_places,
    places,
)

FIELDS = ("phone", "addr", "postcode", "food", "area", "pricerange")
"""What a caller may want to know about a place."""
LONGEST = 20
"""The most turns a caller takes."""
MANAGERS: dict[str, Callable[[], Manager]] = {"first-best": FirstBest, "belief": Belief}
"""The dialogue managers of the study."""
LEVELS = {"35.3 dB": 0.31, "10.2 dB": 0.43, "3.5 dB": 0.55}
"""The noise of the channel at each signal-to-noise ratio of the study."""

_STEEPNESS = 2.0
"""How much less likely a candidate is the less it is spelt like the word."""
_SAME_KIND = 0.25
_RIVALS = 8
_ARCS = 5
_FAINTEST = 0.004
"""Words less likely than this share of the best are pruned."""
_LOST = 0.6
_DIALOGUES_DIFFER = 0.15
_TURNS_DIFFER = 0.2
_SENTENCES = 100
_ACTS = 10

_T = TypeVar("_T")
Arcs = tuple[tuple[str, float], ...]


def _one(choices: Sequence[_T], rng: np.random.Generator) -> _T:
    return choices[int(rng.integers(len(choices)))]


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


def express(acts: Sequence[Act], rng: np.random.Generator) -> str:
    """One of the ways to say these acts, in lower case without commas.

    >>> {"thai", "north"} <= set(express([inform(food="thai", area="north")], np.random.default_rng(5)).split())
    True
    """
    phrases = PHRASES["phrases"]
    pieces = [_one(phrases["filler"], rng)] if rng.random() < 0.08 else []
    if [act.name for act in acts] == ["reqalts", "inform"]:
        pieces.append(_one(phrases["instead"], rng).format(acts[1].slots[0].value))
    else:
        pieces += [_express_act(act, rng) for act in acts if act.name != "request"]
        names = [_one(PHRASES["field"][act.slots[0].name or ""], rng) for act in acts if act.name == "request"]
        if names:
            pieces.append(_one(phrases["asked"], rng).format(" and the ".join(names)))
    return re.sub(r"\ba (?=[aeiou])", "an ", " ".join(" ".join(pieces).split()))


@cache
def vocabulary() -> tuple[str, ...]:
    """Every word a template may hold, in alphabetical order."""
    texts = [
        text
        for name, table in PHRASES.items()
        if name != "recogniser"
        for choices in table.values()
        for text in choices
    ]
    return tuple(sorted({word for text in texts for word in text.replace("{}", "").split()}))


def _express_act(act: Act, rng: np.random.Generator) -> str:
    wanted = {slot.name or "": slot.value or "" for slot in act.slots}
    if act.name == "confirm":
        ((slot, value),) = wanted.items()
        return _one(PHRASES["confirm"][slot], rng).format(value)
    if act.name == "deny":
        return f"not {next(iter(wanted.values()))}"
    if act.name != "inform":
        return _one(PHRASES["plain"][act.name], rng)
    minded = {slot: value for slot, value in wanted.items() if value != "dontcare"}
    pieces = [_express_wish(minded, rng)] if minded else []
    pieces += [_one(PHRASES["indifferent"][slot], rng) for slot, value in wanted.items() if value == "dontcare"]
    return " ".join(pieces)


def _express_wish(wanted: dict[str, str], rng: np.random.Generator) -> str:
    phrases = PHRASES["phrases"]
    if len(wanted) == 1 and rng.random() < 0.75:
        ((slot, value),) = wanted.items()
        return _one(PHRASES["short"][slot], rng).format(value)
    before, after = [], []
    if price := wanted.get("pricerange"):
        if rng.random() < 0.7:
            before.append(_one(PHRASES["priced"][price], rng))
        else:
            after.append(_one(PHRASES["priced_after"][price], rng))
    if food := wanted.get("food"):
        if rng.random() < 0.5:
            before.append(food)
        else:
            after.append(_one(phrases["serving"], rng).format(food))
    if area := wanted.get("area"):
        after.append(_one(phrases["central" if area == "centre" else "placed"], rng).format(area))
    noun = _one(phrases["noun"] if after else phrases["noun"][:2], rng)
    return " ".join([_one(phrases["opening"], rng), "a", *before, noun, *after])


def recognise(words: Sequence[str], noise: float, rng: np.random.Generator) -> Network:
    """What a recogniser makes of these words: a network of at most five words a slot, of four decimals each.

    Noise 0 is a perfect line; at 0.3 about one word in ten is not the best of its slot, at 0.6 about two in five.

    >>> recognise(["cheap", "thai"], 0.0, np.random.default_rng(0))
    Network(slots=((('cheap', 1.0),), (('thai', 1.0),)))
    """
    if noise <= 0:
        return Network(tuple(((word, 1.0),) for word in words))
    inserted = PHRASES["recogniser"]["inserted"]
    slots: list[Arcs] = []
    for word in words:
        if rng.random() < 0.3 * noise:  # noise is taken for speech where nothing was said
            chosen = rng.choice(len(inserted), size=2, replace=False)
            fillers = ("", *(inserted[place] for place in chosen))
            slots.append(_slot(fillers, np.log([0.6, 0.2, 0.2]), noise, rng))
        slots.append(_slot(*_candidates(word), noise, rng, lost=rng.random() < _LOST * noise**2))
    return Network(tuple(slots))


def _slot(
    words: tuple[str, ...], prior: NDArray[np.float64], noise: float, rng: np.random.Generator, *, lost: bool = False
) -> Arcs:
    """The arcs of one slot, best first; the first of the words is what was said, unless it is lost altogether."""
    clarity = 1.0 if lost else 1.0 / noise
    evidence = clarity * rng.standard_normal(len(words))
    evidence[0] = -math.inf if lost else evidence[0] + clarity**2
    # the power that sharpens posteriors: one on a good line, larger under noise
    scores = (1.0 + 3.0 * max(0.0, noise - 0.3)) * (prior + evidence)
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
    slots = {part: slot for slot, values in VALUES.items() for value in values for part in value.split()}

    def unlikeness(other: str) -> float:
        # edits per character, fewer for values of the same slot: a recogniser expects one where the other may stand
        nearer = _SAME_KIND if slots.get(word, word) == slots.get(other, other) else 0.0
        return max(0.1, _edits(word, other) / max(len(word), len(other)) - nearer)

    known = {*vocabulary(), *PHRASES["recogniser"]["sound_alike"]} - {word}
    near = sorted((unlikeness(other), other) for other in known)[:_RIVALS]
    words = (word, "", *(other for _, other in near))
    costs = [0.0, 0.45 + 0.06 * len(word), *(cost for cost, _ in near)]
    return words, -_STEEPNESS * np.array(costs)


def _edits(one: str, other: str) -> int:
    """Characters to insert, drop or change to turn one word into the other.

    >>> _edits("cheap", "sheep"), _edits("north", "nor")
    (2, 2)
    """
    row = list(range(len(other) + 1))
    for place, character in enumerate(one, 1):
        above, row[0] = row[0], place
        for column, there in enumerate(other, 1):
            above, row[column] = row[column], min(above + (character != there), row[column] + 1, row[column - 1] + 1)
    return row[-1]


@dataclass(slots=True)
class Caller:
    """Somebody with a goal: a place that suits `wanted`, and the fields in `asks` read out about it."""

    wanted: dict[str, str]
    asks: tuple[str, ...]
    second_choice: tuple[str, str] | None
    patience: int
    rng: np.random.Generator
    mentioned: set[str] = field(default_factory=set)
    known: set[str] = field(default_factory=set)
    last: tuple[Act, ...] = ()

    @property
    def satisfied(self) -> bool:
        """Whether the caller knows all fields asked about a place that suits."""
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
        self.mentioned |= {slot.name or "" for act in acts if act.name == "inform" for slot in act.slots}
        return acts

    def _answer(self, prompt: Prompt) -> tuple[Act, ...]:
        match prompt.kind:
            case "request":
                return (self._about(prompt.slot),)
            case "confirm":
                right = self.wanted.get(prompt.slot, "dontcare") == prompt.value
                return (plain("affirm"),) if right else self._correct([prompt.slot])
            case "offer" | "give" if prompt.place is not None:
                wrong = [slot for slot in SLOTS if not prompt.place.suits({slot: self.wanted.get(slot, "dontcare")})]
                return self._correct(wrong) if wrong else self._ask(prompt.place)
            case "cannot":
                return self._after_refusal(prompt.wanted or {})
            case "again" if self.last:
                return self.last
        count = 1 + int(self.rng.random() < 0.4) + int(self.rng.random() < 0.15)
        wishes = [slot for slot in SLOTS if slot in self.wanted]
        chosen = {wishes[place] for place in self.rng.permutation(len(wishes))[:count]}
        wish = inform(**{slot: self.wanted[slot] for slot in SLOTS if slot in chosen})
        return (plain("hello"), wish) if self.rng.random() < 0.1 else (wish,)

    def _about(self, slot: str) -> Act:
        """An answer to "which food, area, price?", now and then with something more."""
        if slot not in self.wanted:
            return inform(**{slot if self.rng.random() < 0.6 else "this": "dontcare"})
        others = [other for other in self.wanted if other not in self.mentioned and other != slot]
        more = others[:1] if self.rng.random() < 0.2 else []
        return inform(**{name: self.wanted[name] for name in SLOTS if name in (slot, *more)})

    def _correct(self, wrong: Sequence[str]) -> tuple[Act, ...]:
        """A no, the right value, or both."""
        slot = _one(wrong, self.rng)
        correction = inform(**{slot: self.wanted.get(slot, "dontcare")})
        mood = self.rng.random()
        if mood < 0.2:
            return (plain("negate"),)
        return (plain("negate"), correction) if mood < 0.45 else (correction,)

    def _ask(self, place: Place) -> tuple[Act, ...]:
        """A question about a place that suits, or whether there is another."""
        mood = self.rng.random()
        if not self.known and mood < 0.15:
            return (plain("reqalts"),)
        if not self.known and mood < 0.25:
            slot = _one(SLOTS, self.rng)
            return (Act("confirm", (Slot(slot, str(getattr(place, slot))),)),)
        left = [name for name in self.asks if name not in self.known]
        return request(*left[: 1 + int(self.rng.random() < 0.15)])

    def _after_refusal(self, searched: Mapping[str, str]) -> tuple[Act, ...]:
        """No place was found: the caller corrects what was misunderstood, or takes the second choice."""
        wrong = [slot for slot in SLOTS if searched.get(slot, "dontcare") != self.wanted.get(slot, "dontcare")]
        if (not wrong or not set(wrong) & set(searched)) and self.second_choice is not None:
            slot, value = self.second_choice
            self.wanted[slot] = value
            self.second_choice = None
            return (plain("reqalts"), inform(**{slot: value}))
        slot = next((slot for slot in wrong if slot in searched), next(iter(self.wanted)))
        return (inform(**{slot: self.wanted.get(slot, "dontcare")}),)


def caller(rng: np.random.Generator) -> Caller:
    """Somebody with a goal that some place can meet, one in five of them only after a second choice.

    The goal names one to three fields to ask about, none of them a constraint of it.
    """
    place = _one(places(), rng)
    minded = [slot for slot in SLOTS if rng.random() < (0.95 if slot == "food" else 0.75)] or ["food"]
    wanted = {slot: str(getattr(place, slot)) for slot in minded}
    open_fields = [name for name in FIELDS if name not in minded]
    count = min(len(open_fields), int(rng.choice([1, 2, 3], p=[0.15, 0.4, 0.45])))
    asks = tuple(open_fields[pick] for pick in sorted(rng.permutation(len(open_fields))[:count]))
    second = None
    if rng.random() < 0.2:
        slot, value = next(iter(wanted.items()))
        # the first wish becomes one that no place meets
        others = [other for other in VALUES[slot] if not matching_places({**wanted, slot: other})]
        if others:
            second, wanted[slot] = (slot, value), _one(others, rng)
    return Caller(wanted, asks, second, min(LONGEST, int(rng.integers(12, 28))), rng)


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
        rows = call(who, MANAGERS[manager](), LEVELS[level], np.random.default_rng([seed, 1, number]))
        turns += [{"id": f"{head['dialogue']}/{turn}", **head, **row} for turn, row in enumerate(rows)]
        calls.append({**head, "success": who.satisfied, "turns": len(rows)})
    return turns, calls


def write(folder: str | Path, seed: int = 0, dialogues: int = 650) -> None:
    """Write a study's `turns.jsonl.gz` and `dialogues.jsonl`, the same bytes for the same study."""
    turns, calls = (b"".join(msgspec.json.encode(row) + b"\n" for row in rows) for rows in study(seed, dialogues))
    # a name of the file inside would be part of its bytes
    with (Path(folder) / "turns.jsonl.gz").open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as file:
        file.write(turns)
    (Path(folder) / "dialogues.jsonl").write_bytes(calls)


def call(who: Caller, manager: Manager, level: float, rng: np.random.Generator) -> list[dict[str, Any]]:
    """One call, a row for each turn of the caller; either side may end it with a goodbye.

    Calls differ in how noisy they are at a level, and so do the turns of a call.
    """
    rows: list[dict[str, Any]] = []
    prompt = Prompt("welcome")
    level *= math.exp(_DIALOGUES_DIFFER * rng.standard_normal())
    while prompt.kind != "goodbye":
        acts = who.reply(prompt, len(rows))
        text = express(acts, rng)
        network = recognise(text.split(), level * math.exp(_TURNS_DIFFER * rng.standard_normal()), rng)
        sentences = nbest(network, _SENTENCES)
        hypotheses = understand(sentences)
        rows.append(
            {
                "reference": print_acts(acts),
                "text": text,
                "hypotheses": hypotheses,
                "asr": [sentence_row(sentence) for sentence in sentences[:10]],
                "cnet": [word_rows(slot) for slot in network.slots],
            }
        )
        if any(act.name == "bye" for act in acts):
            break
        prompt = manager.answer([(each["act"], each["confidence"]) for each in hypotheses])
    return rows


def understand(sentences: list[Sentence]) -> list[dict[str, Any]]:
    """At most ten acts with the inference evidence of their sentences, rounded down so that no list exceeds 1."""
    acts = scored(sentences, scorer="infev", parse=_parse, n=_SENTENCES)[:_ACTS]
    rounded = [{"act": act, "confidence": math.floor(confidence * 1e4) / 1e4} for act, confidence in acts]
    return [each for each in rounded if each["confidence"]]


@cache
def _parse(text: str) -> str:
    return _grammar().parse(text)


@cache
def _grammar() -> Grammar:
    return Grammar.read(restaurant_folder() / "grammar.toml")


if __name__ == "__main__":
    write(sys.argv[1])
