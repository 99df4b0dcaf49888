"""Measures of scope by their definitions, pair by pair and input by input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, nan


@dataclass(frozen=True)
class Input:
    """What became of an input: its confidence, None where it was withheld, and whether it is in scope."""

    confidence: float | None
    in_scope: bool
    right: bool = False

    @property
    def rank(self) -> float:
        return -inf if self.confidence is None else self.confidence


def share(counted: Sequence[Input], of: Sequence[Input]) -> float:
    return len(counted) / len(of) if of else nan


def measures(inputs: Sequence[Input]) -> dict[str, float]:
    inside, outside = ([one for one in inputs if one.in_scope == kind] for kind in (True, False))
    withheld = [one for one in inputs if one.confidence is None]
    found = [one for one in outside if one.confidence is None]
    return {
        "in_scope_accuracy": share([one for one in inside if one.right], inside),
        "out_of_scope_recall": share(found, outside),
        "out_of_scope_precision": share(found, withheld),
        "scope_auroc": auroc(inside, outside),
        "scope_aupr": aupr(inside, outside),
        "scope_fpr": fpr(inside, outside),
    }


def auroc(inside: Sequence[Input], outside: Sequence[Input]) -> float:
    wins = sum((one.rank > other.rank) + (one.rank == other.rank) / 2 for one in inside for other in outside)
    return wins / (len(inside) * len(outside)) if inside and outside else nan


def aupr(inside: Sequence[Input], outside: Sequence[Input]) -> float:
    """The mean over inputs out of scope of the precision among all that rank no higher."""
    if not inside or not outside:
        return nan
    total = 0.0
    for one in outside:
        found, taken = (sum(other.rank <= one.rank for other in part) for part in (outside, [*inside, *outside]))
        total += found / taken
    return total / len(outside)


def fpr(inside: Sequence[Input], outside: Sequence[Input], tpr: float = 0.95) -> float:
    thresholds = sorted({one.confidence for one in (*inside, *outside) if one.confidence is not None}, reverse=True)
    for threshold in thresholds:
        if inside and outside and share([one for one in inside if one.rank >= threshold], inside) >= tpr:
            return share([one for one in outside if one.rank >= threshold], outside)
    return nan
