"""Verdicts on compared systems in plain sentences and titles."""

from __future__ import annotations

import math

from demur.core.show.numbers import listed, p_value, percent, rounded_up
from demur.returns.compare import Comparison, PairComparison
from demur.returns.ranking import RankingRegion

SHORT_GAP = 0.05
"""Ranges of non-return rates closer than this are taken as one."""


def mcnemar(pair: PairComparison) -> str:
    """The exact test at the operating point, or why there is none."""
    test = pair.mcnemar
    if isinstance(test, str):
        return f"none: {test}"
    return f"{test.a_only:,} : {test.b_only:,} at {percent(test.nonreturn_a)}, {p_value(test.p)}"


def comparison_title(comparison: Comparison) -> str:
    """The verdict on a comparison in a few words, for a title."""
    if len(comparison.pairs) == 1:
        return pair_title(comparison.pairs[0])
    first = comparison.ranking[0]
    reach = f"up to {percent(first.stop)} non-return" if len(comparison.ranking) > 1 else "throughout"
    if first.also:
        return f"{first.best} is lowest {reach}, not significantly different from {listed(first.also)}"
    return f"{first.best} errs least {reach}{_but(first)}"


def pair_title(pair: PairComparison) -> str:
    """The verdict on a pair in a few words."""
    if pair.verdict == "no difference shown":
        return f"No difference shown between {pair.a} and {pair.b}"
    if pair.verdict == "crossing":
        return f"{pair.a} and {pair.b} cross: the better one depends on how much is withheld"
    better, worse = (pair.a, pair.b) if pair.verdict == "a dominates" else (pair.b, pair.a)
    return f"{better} errs less than {worse}" + ("" if pair.everywhere else " wherever they differ significantly")


def comparison_sentences(comparison: Comparison) -> list[str]:
    """What a comparison shows: who leads where, then each pair."""
    several = len(comparison.evaluations) > 2
    leads = [ranking_sentence(comparison.ranking)] if several else []
    return [*leads, *(sentence for pair in comparison.pairs for sentence in pair_sentences(pair))]


def ranking_sentence(ranking: tuple[RankingRegion, ...]) -> str:
    """Which system has the lowest curve over which non-return rates."""
    parts: list[str] = []
    best = ""
    for lead in ranking:
        company = f", not significantly different from {listed(lead.also)}" if lead.also else ""
        name = "" if lead.best == best else f"{lead.best} "
        parts.append(f"{name}from {percent(lead.start)} to {percent(lead.stop)} non-return{_but(lead)}{company}")
        best = lead.best
    return f"Lowest curve: {'; '.join(parts)}."


def _but(lead: RankingRegion) -> str:
    """What a claim about a region leaves out: short gaps, and systems that have no curve there."""
    left = ["but for short gaps"] if lead.gaps else []
    if lead.absent:
        left.append(f"where {listed(lead.absent)} {'withholds' if len(lead.absent) == 1 else 'withhold'} more anyway")
    return f" ({', '.join(left)})" if left else ""


def pair_sentences(pair: PairComparison) -> list[str]:
    """The verdict on one pair, the test of the areas, and how many inputs it would take where nothing is shown."""
    low, high = pair.area.interval(pair.level)
    paired = "" if pair.paired else ", unpaired"
    area = (
        f"The area under the curve (mean error rate) of {pair.a} less that of {pair.b} is {pair.area.value:+.4f} "
        f"({low:+.4f} to {high:+.4f}, {p_value(pair.p_adjusted)}{paired})."
    )
    sentences = [_verdict(pair), area]
    if pair.verdict != "no difference shown":
        return sentences
    if pair.inputs_needed is None:
        sentences.append("The two areas are equal, so no number of inputs of this kind would tell them apart.")
    elif pair.inputs_needed > pair.n:
        sentences.append(
            "To show a difference in area of the size seen here four times out of five, about "
            f"{rounded_up(pair.inputs_needed)} inputs would be needed; there are {pair.n:,}."
        )
    return sentences


def _verdict(pair: PairComparison) -> str:
    if pair.verdict == "no difference shown":
        return f"No difference is shown between {pair.a} and {pair.b} at any non-return rate."
    if pair.verdict != "crossing":
        better, worse = (pair.a, pair.b) if pair.verdict == "a dominates" else (pair.b, pair.a)
        reach = "beyond that hardly an error is left" if pair.everywhere else "and nowhere shown worse"
        return f"{better} errs less than {worse} {_ranges(pair, pair.intervals[0].better)} non-return, {reach}."
    first = min((part.stop for part in pair.intervals), default=math.inf)
    between = [crossing for crossing in pair.crossings if first <= crossing.low + 1e-9][:1]
    at = [f" The curves cross at {percent(one.x)} ({percent(one.low)} to {percent(one.high)})." for one in between]
    return (
        f"The curves cross: {pair.a} errs less {_ranges(pair, 'a')}, {pair.b} {_ranges(pair, 'b')} non-return, "
        f"so the choice depends on how much may be withheld.{''.join(at)}"
    )


def _ranges(pair: PairComparison, side: str) -> str:
    """The ranges on which a side is shown better, those with only a short gap between them taken together."""
    merged: list[list[float]] = []
    gaps = False
    for part in (one for one in pair.intervals if one.better == side):
        if merged and part.start - merged[-1][1] <= SHORT_GAP + 1e-9:
            merged[-1][1], gaps = part.stop, True
        else:
            merged.append([part.start, part.stop])
    shown = [
        f"from {percent(start)} to {percent(stop)}" if stop > start else f"at {percent(start)}"
        for start, stop in merged
    ]
    return listed(shown) + (" (but for short gaps)" if gaps else "")
