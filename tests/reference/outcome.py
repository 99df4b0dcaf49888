"""Features of dialogues by their definitions, turn by turn; tables of a paper; and a study whose truth is known."""

from __future__ import annotations

from fractions import Fraction
from math import nan
from random import Random
from typing import Any

from reference import classes

Turn = tuple[str, str, str | None, int]
"""Dialogue, actual label, predicted label (None: rejected), weight."""

Row = dict[str, Any]

PARTS = {"fmeasure": "f1", "precision": "precision", "recall": "recall"}

LABELS = ("contradictory", "correct", "irrelevant", "non_content", "pc_incomplete")
TABLE_1 = {"contradictory": 808, "correct": 1438, "irrelevant": 105, "non_content": 232, "pc_incomplete": 796}
TABLE_3 = {
    "contradictory": (175, 86, 3, 0, 43),
    "correct": (25, 752, 1, 4, 26),
    "irrelevant": (31, 12, 16, 4, 29),
    "non_content": (1, 3, 2, 95, 3),
    "pc_incomplete": (200, 317, 40, 28, 419),
}
"""Dzikovska et al. (2012): items of each class, and predicted label -> counts by actual label, rejections aside."""


def features(turns: list[Turn]) -> dict[str, dict[str, Fraction | float]]:
    """Dialogue -> name -> value, NaN where undefined."""
    labels = sorted({actual for _, actual, _, _ in turns} | {said for _, _, said, _ in turns if said is not None})
    return {
        name: dialogue_features([(actual, said, weight) for one, actual, said, weight in turns if one == name], labels)
        for name in sorted({one for one, _, _, _ in turns})
    }


def dialogue_features(cells: list[classes.Cell], labels: list[str]) -> dict[str, Fraction | float]:
    found: dict[str, Fraction | float] = {}
    for part, kind in PARTS.items():
        found[f"{part}.microaverage"] = classes.weighted(cells, kind)
        found[f"{part}.macroaverage"] = classes.macro(cells, kind)
        for label in labels:
            found[f"{part}.{label}"] = class_score(cells, label, kind)
    wrong = sum(weight for actual, said, weight in cells if said is not None and said != actual)
    for said in labels:
        for actual in labels:
            if said != actual:
                count = classes.weight(cells, actual=actual, predicted=said)
                found[f"predicted-{said}-actual-{actual}"] = count / wrong if wrong else nan
    rejected = Fraction(sum(weight for _, said, weight in cells if said is None))
    total = classes.weight(cells)
    understood = {actual for actual, said, weight in cells if said == actual and weight}
    flow = {
        "user_turns": total,
        "repair_ratio": sum(weight for actual, said, weight in cells if said != actual) / total,
        "concept_efficiency": len(understood) / total,
    }
    return {**found, **flow, "rejected": rejected / total, "kappa": classes.kappa(cells, "own")}


def class_score(cells: list[classes.Cell], label: str, kind: str) -> Fraction | float:
    """Recall divides by all items of the class, rejected ones too; each part is undefined where it divides by none."""
    hits = classes.weight(cells, actual=label, predicted=label)
    returned, support = classes.weight(cells, predicted=label), classes.weight(cells, actual=label)
    above, below = {"precision": (hits, returned), "recall": (hits, support), "f1": (2 * hits, returned + support)}[
        kind
    ]
    return above / below if below else nan


def paper_turns(dialogues: int = 1) -> list[Row]:
    """The paper's corpus as rows of a log, dealt out to dialogues in turn."""
    cells = [
        (actual, said, count) for said, counts in TABLE_3.items() for actual, count in zip(LABELS, counts, strict=True)
    ]
    for place, actual in enumerate(LABELS):
        cells.append((actual, None, TABLE_1[actual] - sum(counts[place] for counts in TABLE_3.values())))
    turns = [(actual, said) for actual, said, count in cells for _ in range(count)]
    return [
        {"id": place, "dialogue": f"d{place % dialogues:02}", "target": actual, "prediction": said}
        for place, (actual, said) in enumerate(turns)
    ]


CULPRIT = "predicted-incomplete-actual-contradictory"
"""The confusion that costs the outcome in the study below; other confusions cost nothing."""

STUDY_LABELS = ("contradictory", "correct", "incomplete")


def study(dialogues: int = 40, *, turns: int = 60, seed: int = 1, noise: float = 0.03) -> tuple[list[Row], list[Row]]:
    """Turns and outcomes of users whose gain is .8 - .6 x the culprit's share of misclassifications, and noise."""
    rng = Random(seed)
    log: list[Row] = []
    outcomes: list[Row] = []
    for number in range(dialogues):
        name = f"d{number:02}"
        held = _held(rng, turns)
        log += [
            {"id": f"{name}/{place}", "dialogue": name, "target": actual, "prediction": said}
            for place, (actual, said) in enumerate(held)
        ]
        share = dialogue_features([(actual, said, 1) for actual, said in held], list(STUDY_LABELS))[CULPRIT]
        gain = 0.8 - 0.6 * float(share) + rng.gauss(0, noise)
        outcomes.append({"dialogue": name, "outcome": round(gain, 4), "age": rng.randrange(18, 60)})
    return log, outcomes


def _held(rng: Random, turns: int) -> list[tuple[str, str | None]]:
    to_incomplete = {"contradictory": rng.uniform(0.1, 0.9), "correct": rng.uniform(0.1, 0.5)}
    held: list[tuple[str, str | None]] = []
    for _ in range(turns):
        actual = rng.choices(STUDY_LABELS, (0.3, 0.45, 0.25))[0]
        drawn = rng.random()
        if rng.random() < 0.1:
            held.append((actual, None))
        elif actual == "incomplete":
            held.append((actual, "correct" if drawn < 0.2 else actual))
        else:
            held.append((actual, "incomplete" if drawn < to_incomplete[actual] else actual))
    return held
