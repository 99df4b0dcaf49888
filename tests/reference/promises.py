"""Rules that keep a limit, one by one: every cutoff and, among ties, every hundredth of a probability."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import comb
from typing import NamedTuple

from reference import returns as plain
from reference.rows import Row

STEPS = 100
SPLIT = Fraction(1, 200)


class Rule(NamedTuple):
    """Answers from `upper` on are returned (None: none are), those of the confidence `lower` with `probability`."""

    upper: float | None
    lower: float | None
    probability: Fraction


def rules(rows: list[Row], ties: str) -> list[Rule]:
    """From returning every answer to returning none."""
    cutoffs = plain.thresholds(rows)
    found = [Rule(cutoffs[0], None, Fraction(0))]
    for lower, upper in pairwise(cutoffs):
        heap = plain.weight_of([row for row in rows if row.answered and row.confidence == lower])
        if ties == "randomise" and heap >= max(SPLIT * plain.weight_of(rows), 2):
            found += [Rule(upper, lower, Fraction(step, STEPS)) for step in range(STEPS - 1, 0, -1)]
        found.append(Rule(upper, None, Fraction(0)))
    return found


def returned(rows: list[Row], rule: Rule, *, wrong: bool) -> Fraction:
    """The expected weight of the answers returned, or of the wrong ones among them."""
    total = Fraction(0)
    for row in rows:
        if wrong and row.right:
            continue
        if plain.returned(row, rule.upper):
            total += Fraction(row.weight)
        elif rule.probability and row.answered and row.confidence == rule.lower:
            total += rule.probability * Fraction(row.weight)
    return total


def rate(rows: list[Row], rule: Rule, of: str) -> Fraction | None:
    """The rate that a limit is on; None where it is out of nothing."""
    answers, errors, total = returned(rows, rule, wrong=False), returned(rows, rule, wrong=True), plain.weight_of(rows)
    if of == "risk":
        return errors / answers if answers else None
    return errors / total if of == "error" else 1 - answers / total


def within_limit(rows: list[Row], of: str, most: Fraction, ties: str) -> Rule:
    """The rule within a limit that returns most or, for non-returns, errs least and then returns most."""
    every = rules(rows, ties)
    kept = [rule for rule in every if (value := rate(rows, rule, of)) is not None and value <= most]
    if of == "nonreturn":
        return min(kept, key=lambda rule: returned(rows, rule, wrong=True))
    return kept[0] if kept else every[-1]


def risk_promised(rows: list[Row], most: float, delta: float, starts: int = 5) -> float | None:
    """The lowest cutoff that passes in order from one of the starts on, each with its part of delta."""
    cutoffs = [cutoff for cutoff in plain.thresholds(rows) if cutoff is not None]

    def answers(cutoff: float) -> list[Row]:
        return [row for row in rows if plain.returned(row, cutoff)]

    def chance(n: int, k: int) -> float:
        return sum(comb(n, j) * most**j * (1 - most) ** (n - j) for j in range(k + 1))

    def enough(count: float) -> float:
        return max(cutoff for cutoff in cutoffs if len(answers(cutoff)) >= count - 1e-9)

    able = [cutoff for cutoff in cutoffs if chance(len(answers(cutoff)), 0) <= delta / starts]
    if not able:
        return None
    everything = len(answers(cutoffs[0]))
    first = min(2 * len(answers(max(able))), everything)
    begun = {enough(first * (everything / first) ** (step / starts)) for step in range(starts)}
    passed = []
    for start in begun:
        for cutoff in reversed([cutoff for cutoff in cutoffs if cutoff <= start]):
            wrong = sum(not row.right for row in answers(cutoff))
            if chance(len(answers(cutoff)), wrong) > delta / len(begun):
                break
            passed.append(cutoff)
    return min(passed, default=None)


def cross_fitted(parts: list[list[float]], ratio: float) -> float:
    """Each part at the cutoff cheapest on the others; a part is right by level, wrong by level, withheld."""
    size = (len(parts[0]) - 1) // 2

    def cost(part: list[float], cutoff: int) -> float:
        wrong = sum(part[size + level] for level in range(cutoff, size))
        withheld = part[-1] + sum(part[level] + part[size + level] for level in range(cutoff))
        return wrong + ratio * withheld

    total = 0.0
    for held_out in parts:
        others = [part for part in parts if part is not held_out]
        best = min(range(size + 1), key=lambda cutoff: (round(sum(cost(part, cutoff) for part in others), 9), cutoff))
        total += cost(held_out, best)
    return total / sum(map(sum, parts))
