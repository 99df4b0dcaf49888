"""A simulated study of a tutor with known truth: what students said, what the tutor took it for, what they learnt.

In the manner of the study of Dzikovska et al. (2012): each dialogue has some ninety answers to open questions, of five
labels, and a test before and after. An interpreter takes answers for what they are not, or rejects them, more with
some students than with others. What a student learns is `TRUTH`, two features of that student's own dialogue, and
chance. Anything else that a model finds is not there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from demur.data.beetle import LABELS
from demur.errors import UsageError

Row = dict[str, Any]

TRUTH: Mapping[str, float] = {
    "(Intercept)": 0.5,
    "predicted-pc_incomplete-actual-contradictory": -0.6,
    "recall.correct": 0.4,
}
"""What the gain follows from, by the names that features have in models of outcomes."""

NOISE = 0.06
"""The standard deviation of the chance in a gain."""

SHARES: Mapping[str, float] = dict(zip(LABELS, (0.43, 0.24, 0.24, 0.03, 0.06), strict=True))
"""How often students' answers are of each label."""

INTERPRETERS: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    "tutor": {
        "correct": (0.55, 0.20, 0.05, 0.01, 0.00, 0.19),
        "pc_incomplete": (0.04, 0.54, 0.05, 0.03, 0.00, 0.34),
        "contradictory": (0.03, 0.25, 0.30, 0.03, 0.00, 0.39),
        "irrelevant": (0.01, 0.35, 0.03, 0.20, 0.02, 0.39),
        "non_content": (0.02, 0.12, 0.00, 0.02, 0.45, 0.39),
    },
    "cautious": {
        "correct": (0.55, 0.17, 0.04, 0.01, 0.00, 0.23),
        "pc_incomplete": (0.04, 0.50, 0.05, 0.03, 0.00, 0.38),
        "contradictory": (0.03, 0.12, 0.30, 0.03, 0.00, 0.52),
        "irrelevant": (0.01, 0.30, 0.03, 0.20, 0.02, 0.44),
        "non_content": (0.02, 0.08, 0.00, 0.02, 0.45, 0.43),
    },
    "eager": {
        "correct": (0.64, 0.25, 0.08, 0.02, 0.01, 0.00),
        "pc_incomplete": (0.08, 0.72, 0.15, 0.05, 0.00, 0.00),
        "contradictory": (0.06, 0.44, 0.45, 0.05, 0.00, 0.00),
        "irrelevant": (0.05, 0.50, 0.10, 0.32, 0.03, 0.00),
        "non_content": (0.05, 0.20, 0.02, 0.05, 0.68, 0.00),
    },
    "majority": dict.fromkeys(LABELS, (1.0, 0.0, 0.0, 0.0, 0.0, 0.0)),
}
"""For each label of an answer, how often an interpreter takes it for each of `LABELS`, and how often it rejects it."""

_ANSWERS = 90
_SECOND_VISITS = 5
_STUDENTS_DIFFER = 0.45


def study(seed: int = 0, dialogues: int = 60) -> tuple[list[Row], list[Row]]:
    """The rows of the turns, as the tutor took them, and of the dialogues; every fifth student comes a second time.

    >>> turns, held = study(dialogues=6)
    >>> list(turns[0]), [row["student"] for row in held]
    (['id', 'dialogue', 'target', 'prediction'], ['s01', 's02', 's03', 's04', 's05', 's05'])
    >>> sorted(held[0])
    ['dialogue', 'post', 'pre', 'student']
    """
    turns: list[Row] = []
    held: list[Row] = []
    for number, student in enumerate(_students(dialogues)):
        name = f"d{number + 1:02}"
        rng = np.random.default_rng([seed, number])
        said = rng.choice(LABELS, size=int(rng.poisson(_ANSWERS)) + 1, p=list(SHARES.values())).tolist()
        taken = heard(said, "tutor", rng)
        turns += rows_of(name, said, taken)
        gain = expected_gain(said, taken) + NOISE * rng.standard_normal()
        held.append({"dialogue": name, "student": student, **_tests(gain, rng)})
    return turns, held


def answers(turns: Sequence[Row], interpreter: str, seed: int = 0) -> list[Row]:
    """What another interpreter would have taken the same answers for."""
    if interpreter not in INTERPRETERS:
        raise UsageError(f'there is no interpreter "{interpreter}"; there are {", ".join(INTERPRETERS)}')
    said: dict[str, list[str]] = {}
    for turn in turns:
        said.setdefault(turn["dialogue"], []).append(turn["target"])
    rows: list[Row] = []
    for number, (name, targets) in enumerate(said.items()):
        rows += rows_of(name, targets, heard(targets, interpreter, np.random.default_rng([seed, 1, number])))
    return rows


def heard(said: Sequence[str], interpreter: str, rng: np.random.Generator) -> list[str | None]:
    """What an interpreter takes the answers of one student for; None is a rejection.

    With each student it errs in a manner of its own: the chances of every label are bent by a factor, once.
    """
    chances = {}
    for label, usual in INTERPRETERS[interpreter].items():
        bent = np.array(usual) * np.exp(_STUDENTS_DIFFER * rng.standard_normal(len(usual)))
        chances[label] = bent / bent.sum()
    options = [*LABELS, None]
    return [options[rng.choice(len(options), p=chances[label])] for label in said]


def expected_gain(said: Sequence[str], taken: Sequence[str | None]) -> float:
    """The gain that `TRUTH` gives for one dialogue, before chance; a feature it does not have counts as 0.

    >>> round(expected_gain(["correct", "contradictory", "correct"], ["correct", "pc_incomplete", None]), 3)
    0.1
    """
    pairs = list(zip(taken, said, strict=True))
    wrong = sum(one is not None and one != right for one, right in pairs)
    right = said.count("correct")
    share = pairs.count(("pc_incomplete", "contradictory")) / wrong if wrong else 0.0
    recall = pairs.count(("correct", "correct")) / right if right else 0.0
    intercept, price, worth = TRUTH.values()
    return intercept + price * share + worth * recall


def rows_of(dialogue: str, said: Sequence[str], taken: Sequence[str | None]) -> list[Row]:
    """The turns of a dialogue as a table of responses."""
    return [
        {"id": f"{dialogue}/{place}", "dialogue": dialogue, "target": target, "prediction": prediction}
        for place, (target, prediction) in enumerate(zip(said, taken, strict=True))
    ]


def _students(dialogues: int) -> list[str]:
    """Who held each dialogue: of six dialogues the last two are of one student."""
    every = _SECOND_VISITS + 1
    return [f"s{number - number // every - (number % every == _SECOND_VISITS) + 1:02}" for number in range(dialogues)]


def _tests(gain: float, rng: np.random.Generator) -> Row:
    """Test scores before and after that make up a gain."""
    pre = float(np.round(rng.uniform(0.2, 0.6), 2))
    return {"pre": pre, "post": float(np.clip(np.round(pre + gain * (1 - pre), 4), 0.0, 1.0))}
