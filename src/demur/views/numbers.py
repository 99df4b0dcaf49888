"""Counts, cutoffs and names of measures as figures write them; percent and plain numbers are in `words`."""

from __future__ import annotations

import math

from demur.measures.base import Measure
from demur.measures.returns import ErrorAtNonreturn, NonreturnAtError
from demur.views.words import percent


def count(value: float) -> str:
    """A count with thousands separated; a fraction only where weights make one.

    >>> count(5500), count(2.5)
    ('5,500', '2.5')
    """
    return f"{value:,.0f}" if abs(value - round(value)) < 1e-6 else f"{value:,.4g}"


def cutoff(threshold: float) -> str:
    """What a threshold returns, in words.

    >>> cutoff(0.51234567), cutoff(float("nan"))
    ('confidence ≥ 0.512346', 'nothing returned')
    """
    return "nothing returned" if math.isnan(threshold) else f"confidence ≥ {threshold:.6g}"


def inputs(sizes: list[int], *, clustered: bool = False) -> str:
    """How many inputs stand behind a figure.

    >>> inputs([200, 1500])
    'n = 200 to 1,500 inputs'
    """
    least, most = min(sizes), max(sizes)
    span = count(least) if least == most else f"{count(least)} to {count(most)}"
    return f"n = {span} inputs" + (", drawn by dialogue" if clustered else "")


def measure_title(measure: Measure) -> str:
    """A measure's title with the parameter a reader needs to know.

    >>> measure_title(ErrorAtNonreturn(x=0.2))
    'error rate at 20 % non-return'
    """
    if isinstance(measure, ErrorAtNonreturn):
        to = "" if measure.to is None else f" to {percent(measure.to)}"
        return f"error rate at {percent(measure.x)}{to} non-return"
    if isinstance(measure, NonreturnAtError):
        return f"non-return rate needed for {percent(measure.error)} errors"
    return measure.title
