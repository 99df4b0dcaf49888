"""Slices of the inputs: which are drawn, and which do worst and best."""

from __future__ import annotations

import math
from collections.abc import Sequence

from demur.analyses.evaluation import Evaluation
from demur.measures.intervals import Figure
from demur.measures.returns import ErrorAtNonreturn
from demur.views.numbers import point_words
from demur.views.words import interval, percent

MOST_SLICES, FEW_SLICES = 8, 7
"""Slices up to which all are drawn, and how many of more: the worst."""

LEAST_INPUTS = 30
"""Inputs a slice needs to be named as the best or the worst."""


def drawn_slices(evaluations: Sequence[Evaluation], system: str) -> list[Evaluation]:
    """The slices of a system to draw: all of a few, else the worst, the worst first."""
    own = [one for one in evaluations if one.system == system and one.part is not None]
    ranked = sorted(own, key=_height, reverse=True)
    return own if len(own) <= MOST_SLICES else ranked[:FEW_SLICES]


def slice_sentences(evaluations: Sequence[Evaluation], system: str) -> list[str]:
    """Which slice errs most and which least at the point of interest, of those with enough inputs."""
    own = [one for one in evaluations if one.system == system and one.part is not None]
    known = [one for one in own if one.n >= LEAST_INPUTS and not math.isnan(_figure(one).value)]
    if len(known) < 2:
        return []
    worst, best = max(known, key=_height), min(known, key=_height)
    if _figure(worst).value == _figure(best).value:
        return []
    asked = worst.measures["error_at_nonreturn"]
    assert isinstance(asked, ErrorAtNonreturn)
    left = "" if len(known) == len(own) else f" of those with at least {LEAST_INPUTS} inputs and a defined rate"
    return [
        f"Of {len(own)} slices of {system}, {_told(worst)} has the most errors {point_words(asked)} non-return, "
        f"{_told(best)} the fewest{left}."
    ]


def _told(one: Evaluation) -> str:
    return f"{one.part} ({percent(_figure(one).value)}; {interval(_figure(one))}; n = {one.n:,})"


def _figure(one: Evaluation) -> Figure:
    return one.figures["error_at_nonreturn"]


def _height(one: Evaluation) -> float:
    value = _figure(one).value
    return -1.0 if math.isnan(value) else value
