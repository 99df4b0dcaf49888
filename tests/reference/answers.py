"""Made-up logs of answers for the analyses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from demur.returns.table import Responses, responses

SKILLED, DULL = 2.0, 0.2
"""How far apart the confidences of right and wrong answers lie, in standard deviations."""


def answers(
    system: str, confidence: Sequence[float], right: Sequence[bool], **columns: Sequence[Any] | None
) -> list[dict[str, Any]]:
    """One record per answer, judged by `correct`; ids run from 0; a prediction of None is withheld."""
    shown = {name: values for name, values in columns.items() if values is not None}
    return [
        {
            "id": f"{place:05}",
            "system": system,
            "prediction": "p",
            "confidence": float(score),
            "correct": bool(verdict),
            **{name: values[place] for name, values in shown.items()},
        }
        for place, (score, verdict) in enumerate(zip(confidence, right, strict=True))
    ]


def made_up(
    system: str,
    n: int,
    *,
    seed: int,
    accuracy: float = 0.7,
    skill: float = 1.0,
    digits: int = 2,
    withheld: float = 0.0,
    dialogues: int | None = None,
    weighted: bool = False,
) -> list[dict[str, Any]]:
    """Answers with normal confidences, higher by `skill` where right; the difficulty of inputs depends on n alone."""
    rng, difficulty = np.random.default_rng(seed), np.random.default_rng(n).random(n)
    right = difficulty < accuracy
    confidence = np.round(rng.normal(skill * right, 1.0), digits)
    return answers(
        system,
        confidence,
        right,
        prediction=[None if aside else "p" for aside in rng.random(n) < withheld] if withheld else None,
        dialogue=[f"d{place % dialogues}" for place in range(n)] if dialogues else None,
        weight=(np.random.default_rng(n + 1).random(n) + 0.5).tolist() if weighted else None,
    )


def silent(rows: list[dict[str, Any]], system: str) -> list[dict[str, Any]]:
    """The same inputs, none of them answered."""
    return [row | {"system": system, "prediction": None, "correct": None} for row in rows]


def table(*systems: list[dict[str, Any]]) -> Responses:
    return responses([row for system in systems for row in system])


def shuffled(rows: list[dict[str, Any]], seed: int = 0) -> list[dict[str, Any]]:
    return [rows[place] for place in np.random.default_rng(seed).permutation(len(rows))]
