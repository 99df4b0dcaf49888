"""A simulated user trial of a restaurant guide with known truth: callers, a noisy line, two dialogue managers.

In the manner of the trial in section 3 of Thomson et al. (2008): 650 dialogues, half of them with each manager, at
three levels of noise. Callers with goals speak sentences whose acts are known; a channel turns the words into
confusion networks; the grammar that comes with the package reads the 100-best sentences of each; the manager acts on
the result.

`demur.data.corpora.restaurant` reads the study that comes with the package. Its files are made by
`python -c "from demur.systems.restaurant import write; write('src/demur/corpora/restaurant')"`.
"""

from __future__ import annotations

import gzip
import io
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from demur.data.acts import Act, print_acts
from demur.data.recognition import Network, Sentence
from demur.systems.confusion import nbest
from demur.systems.grammar import Grammar
from demur.systems.restaurant_callers import Caller, caller
from demur.systems.restaurant_channel import heard
from demur.systems.restaurant_guide import Prompt
from demur.systems.restaurant_managers import Belief, FirstBest, Manager
from demur.systems.restaurant_sentences import spoken
from demur.systems.scorers import scored

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
