"""Counts, cutoffs and names of measures as figures write them; percent and plain numbers are in `words`."""

from __future__ import annotations

import math

from demur.measures.base import Measure
from demur.measures.returns import ErrorAtNonreturn, NonreturnAtError
from demur.show import threshold_text
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
    ('confidence ≥ 0.51234567', 'nothing returned')
    """
    return "nothing returned" if math.isnan(threshold) else f"confidence ≥ {threshold_text(threshold)}"


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
        mean = "" if measure.to is None else "mean "
        return f"{mean}error rate {point_words(measure)} non-return"
    if isinstance(measure, NonreturnAtError):
        return f"non-return rate needed for {percent(measure.error)} errors"
    return measure.title


def point_words(measure: ErrorAtNonreturn) -> str:
    """The non-return rate or range that a measure asks about.

    >>> point_words(ErrorAtNonreturn(x=0.2)), point_words(ErrorAtNonreturn(x=0.1, to=0.3))
    ('at 20 %', 'over 10 % to 30 %')
    """
    return f"at {percent(measure.x)}" if measure.to is None else f"over {percent(measure.x)} to {percent(measure.to)}"


def span(start: float, stop: float) -> str:
    """A range of rates, as one rate where its ends read the same.

    >>> span(0.1, 0.25), span(0.64501, 0.64502)
    ('from 10 % to 25 %', 'at 64.5 %')
    """
    ends = percent(start), percent(stop)
    return f"at {ends[0]}" if ends[0] == ends[1] else f"from {ends[0]} to {ends[1]}"


def tabled_percent(rate: float) -> str:
    """A rate in percent with one decimal, so that a column lines up; more only where it would read as 0 or 100.

    >>> tabled_percent(0.28), tabled_percent(0.0), tabled_percent(0.0004)
    ('28.0 %', '0.0 %', '0.04 %')
    """
    plain = rate in (0.0, 1.0) or 0.0005 <= rate <= 0.9995
    return f"{100 * rate:.1f} %" if plain else percent(rate)
