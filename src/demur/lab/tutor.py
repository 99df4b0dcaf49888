"""A simulated study of a tutor with known truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from demur.errors import UsageError
from demur.importers.beetle import LABELS

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
    every = _SECOND_VISITS + 1
    for number in range(dialogues):
        # of six dialogues the last two are of one student
        student = number - number // every - (number % every == _SECOND_VISITS) + 1
        name = f"d{number + 1:02}"
        rng = np.random.default_rng([seed, number])
        targets = rng.choice(LABELS, size=int(rng.poisson(_ANSWERS)) + 1, p=list(SHARES.values())).tolist()
        predictions = interpret(targets, "tutor", rng)
        turns += rows_of(name, targets, predictions)
        gain = expected_gain(targets, predictions) + NOISE * rng.standard_normal()
        pre = float(np.round(rng.uniform(0.2, 0.6), 2))
        post = float(np.clip(np.round(pre + gain * (1 - pre), 4), 0.0, 1.0))
        held.append({"dialogue": name, "student": f"s{student:02}", "pre": pre, "post": post})
    return turns, held


def answers(turns: Sequence[Row], interpreter: str, seed: int = 0) -> list[Row]:
    """What another interpreter would have taken the same answers for."""
    if interpreter not in INTERPRETERS:
        raise UsageError(f'there is no interpreter "{interpreter}"; there are {", ".join(INTERPRETERS)}')
    dialogues: dict[str, list[str]] = {}
    for turn in turns:
        dialogues.setdefault(turn["dialogue"], []).append(turn["target"])
    rows: list[Row] = []
    for number, (name, targets) in enumerate(dialogues.items()):
        rows += rows_of(name, targets, interpret(targets, interpreter, np.random.default_rng([seed, 1, number])))
    return rows


def interpret(targets: Sequence[str], interpreter: str, rng: np.random.Generator) -> list[str | None]:
    """What an interpreter takes the answers of one student for; None is a rejection.

    It errs differently with each student: the chances of every label are multiplied by a random factor, once.
    """
    chances = {}
    for label, usual in INTERPRETERS[interpreter].items():
        weights = np.array(usual) * np.exp(_STUDENTS_DIFFER * rng.standard_normal(len(usual)))
        sums = (weights / weights.sum()).cumsum()
        chances[label] = sums / sums[-1]
    options = [*LABELS, None]
    drawn = rng.random(len(targets))
    return [options[chances[label].searchsorted(one, "right")] for label, one in zip(targets, drawn, strict=True)]


def expected_gain(targets: Sequence[str], predictions: Sequence[str | None]) -> float:
    """The gain that `TRUTH` gives for one dialogue, before chance; a feature it does not have counts as 0.

    >>> round(expected_gain(["correct", "contradictory", "correct"], ["correct", "pc_incomplete", None]), 3)
    0.1
    """
    pairs = list(zip(predictions, targets, strict=True))
    wrong = sum(one is not None and one != right for one, right in pairs)
    right = targets.count("correct")
    share = pairs.count(("pc_incomplete", "contradictory")) / wrong if wrong else 0.0
    recall = pairs.count(("correct", "correct")) / right if right else 0.0
    intercept, price, worth = TRUTH.values()
    return intercept + price * share + worth * recall


def rows_of(dialogue: str, targets: Sequence[str], predictions: Sequence[str | None]) -> list[Row]:
    """The turns of a dialogue as a table of responses."""
    return [
        {"id": f"{dialogue}/{place}", "dialogue": dialogue, "target": target, "prediction": prediction}
        for place, (target, prediction) in enumerate(zip(targets, predictions, strict=True))
    ]
