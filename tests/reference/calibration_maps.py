"""Calibration maps by their definitions: pooling one pair at a time, and likelihoods climbed step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import exp, log


def pooled(shares: Sequence[Fraction], weights: Sequence[int]) -> list[Fraction]:
    """Pool adjacent violators: join the first two neighbours that fall, as often as there are any."""
    blocks = [(share, weight, 1) for share, weight in zip(shares, weights, strict=True)]
    while falls := [place for place in range(len(blocks) - 1) if blocks[place][0] > blocks[place + 1][0]]:
        (one, many, size), (other, more, length) = blocks[falls[0]], blocks[falls[0] + 1]
        blocks[falls[0] : falls[0] + 2] = [((one * many + other * more) / (many + more), many + more, size + length)]
    return [share for share, _, size in blocks for _ in range(size)]


def log_likelihood(log_odds: Callable[[float], float], answers: Sequence[tuple[float, float]]) -> float:
    """Of answers as pairs of confidence and how right they count, 1 and 0 or a little less and more."""
    total = 0.0
    for confidence, right in answers:
        odds = log_odds(confidence)
        total += right * -log(1 + exp(-odds)) + (1 - right) * -log(1 + exp(odds))
    return total


def is_best(
    log_odds: Callable[..., float], parameters: Sequence[float], answers: Sequence[tuple[float, float]], free: str = ""
) -> bool:
    """Whether no small step of any parameter, up or down, makes answers likelier; those in `free` may only go up."""
    best = log_likelihood(lambda one: log_odds(one, *parameters), answers)
    for place in range(len(parameters)):
        for step in (1e-3, -1e-3):
            moved = [value + step * (place == at) for at, value in enumerate(parameters)]
            if str(place) in free and moved[place] < 0:
                continue
            if log_likelihood(lambda one, moved=moved: log_odds(one, *moved), answers) > best + 1e-9:
                return False
    return True
