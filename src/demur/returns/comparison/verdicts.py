"""Verdicts on compared systems in plain sentences and titles: overall first, then where, then right answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from demur.core.show.numbers import listed, p_value, percent, rounded_up, with_interval, write_signed
from demur.returns.comparison.compare import MOST_PAIRED, Comparison, Crossing, Interval, PairComparison
from demur.returns.comparison.contrasts import Contrast, RankingRegion, Side
from demur.returns.curves import ErrorReturnCurve, near_enough

LEAST_DIGIT = 1e-4
"""The least step of an area in a table."""

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
    return _leaders(comparison, prefix=f"{len(comparison.evaluations)} systems: ")


def pair_title(pair: PairComparison) -> str:
    """The verdict on a pair in a few words."""
    if pair.verdict == "crossing":
        return f"{pair.a} or {pair.b}: it depends on how much is withheld"
    if pair.verdict == "equivalent":
        return f"{pair.a} and {pair.b} are equivalent within {percent(pair.margin or 0.0)}"
    if pair.better is None:
        return f"No significant difference between {pair.a} and {pair.b}{_scope(pair)}"
    better, worse = _named(pair, pair.better)
    if dominates(pair):
        return f"{better} dominates {worse}{_scope(pair).removeprefix(' overall')}"
    return f"{better} is better than {worse}{_scope(pair)}"


def dominates(pair: PairComparison) -> bool:
    """Whether the better system has nowhere the higher curve."""
    return pair.verdict.endswith("dominates")


def _named(pair: PairComparison, better: Side) -> tuple[str, str]:
    return (pair.a, pair.b) if better == "a" else (pair.b, pair.a)


def _scope(pair: PairComparison) -> str:
    """Over what a system is better: all non-return rates, or the region asked for."""
    if pair.whole is None:
        return " overall"
    start, stop = pair.overall.range
    return f" over {percent(start)} to {percent(stop)} non-return"


def comparison_sentences(comparison: Comparison) -> list[str]:
    """What a comparison shows: of two systems their verdict, of more who leads and who differs from the baseline."""
    if len(comparison.evaluations) == 2:
        return pair_sentences(comparison.pairs[0])
    tests = f"corrected for {comparison.pairs[0].overall.tests:,} tests"
    against = f"{baseline_verdict(comparison, what=', the baseline')} ({tests})."
    where = "" if comparison.pairs[0].whole is None else f"{_scope(comparison.pairs[0]).strip().capitalize()}: "
    says = [f"{where}{_leaders(comparison)}.", against, *_leader_crossings(comparison)]
    return [*says, *_silent_systems(comparison), *area_range(comparison)]


def _leader_crossings(comparison: Comparison) -> list[str]:
    """The systems of which the first makes significantly more errors at some rates, and fewer at others.

    Only of those that were compared along the curves: all of few systems, of many the baseline.
    """
    first = comparison.leaderboard.ranked[0].system
    crossing = [
        {one.a, one.b} - {first}
        for one in comparison.pairs
        if first in (one.a, one.b) and one.verdict == "crossing" and not one.is_trade
    ]
    if not crossing:
        return []
    others = _few_names(sorted(name for names in crossing for name in names))
    return [f"Whether {first} makes fewer errors than {others} depends on how much is withheld."]


def _leaders(comparison: Comparison, prefix: str = "") -> str:
    """The systems that no test shows to be behind another; `prefix` stands before them where they are few."""
    board = comparison.leaderboard
    first = [one for one in board.ranked if one.rank[0] == 1]
    names = [one.system for one in first]
    if len(first) == 1:
        clear = first[0].rank == (1, 1)
        behind = "leads, but is not significantly better than every other"
        whole = " overall" if _leader_crossings(comparison) and comparison.pairs[0].whole is None else ""
        return f"{prefix}{names[0]} {f'is significantly better{whole} than all others' if clear else behind}"
    many = len(board.standings) > MOST_PAIRED
    tested = f" after correction for {board.tests:,} tests" if many else ""  # fewer when compared with the baseline
    if any(one.is_trade and {one.a, one.b} <= set(names) for one in board.pairs):
        alike = f"lead, none of them significantly better than another in both errors and right answers{tested}"
    elif len(names) == len(board.standings):
        which = f"any two of {len(names)} systems" if many else listed(names)
        lead = f"{prefix}no" if prefix and not many else "No"
        return f"{lead} significant difference between {which}{tested}"
    else:
        alike = f"lead, with no significant difference between them{tested}"
    if len(names) <= MOST_PAIRED:
        return f"{prefix}{listed(names)} {alike}"
    return f"{len(names)} of {len(board.standings)} systems {alike}; the first are {listed(names[:3])}"


def baseline_verdict(comparison: Comparison, what: str = "") -> str:
    """Which systems differ from the baseline, which way; of many systems how many. `what` follows the baseline."""
    baseline = comparison.leaderboard.baseline
    trades = "better in errors and worse in right answers", "worse in errors and better in right answers"
    better, worse, fewer_errors, more_right = (f"significantly {kind} than" for kind in ("better", "worse", *trades))
    neither = "not significantly different from"
    sides: dict[str, list[str]] = {kind: [] for kind in (better, worse, fewer_errors, more_right, neither)}
    for pair in (one for one in comparison.pairs if baseline in (one.a, one.b)):
        own, other = ("a", pair.b) if pair.a == baseline else ("b", pair.a)
        if pair.is_trade:
            sides[more_right if pair.fewer_errors == own else fewer_errors].append(other)
        else:
            sides[neither if pair.better is None else worse if pair.better == own else better].append(other)
    if len(comparison.evaluations) > MOST_PAIRED:
        return _counted_sides(sides, f"{baseline}{what}")
    ranks = [one.system for one in comparison.leaderboard.ranked]
    found = (
        f"{listed(sorted(names, key=ranks.index))} {'is' if len(names) == 1 else 'are'} {kind} {baseline}"
        for kind, names in sides.items()
        if names
    )
    return f"{'; '.join(found)}{what}"


def _counted_sides(sides: Mapping[str, Sequence[str]], baseline: str) -> str:
    """How many systems differ from the baseline, by which way they do."""
    total = sum(map(len, sides.values()))
    first, *others = (
        (f"{len(names):,}", kind, "is" if len(names) == 1 else "are") for kind, names in sides.items() if names
    )
    count, kind, verb = first
    if not others:
        whole, kind = ("None", kind.removeprefix("not ")) if kind.startswith("not ") else ("Each", kind)
        return f"{whole} of the {total:,} other systems is {kind} {baseline}"
    lead = f"{count} of {total:,} other systems {verb} {kind} {baseline}"
    return "; ".join([lead, *(f"{count} {verb} {kind.rpartition(' ')[0]}" for count, kind, verb in others)])


def area_range(comparison: Comparison) -> list[str]:
    """Over which non-return rates areas are compared, where that is not the range of the areas in the table."""
    board, pair = comparison.leaderboard, comparison.pairs[0]
    if pair.whole is not None:
        return ["Differences are those of the mean error rate over the region; AUGRC is the whole area."]
    areas = {one.system: one.figures["augrc"].value for one in board.standings}
    tested = [(one.system, one.difference) for one in board.standings if one.difference is not None]
    odd = [
        gap.range
        for system, gap in tested
        if gap.range != (0, 1) and abs(areas[system] - areas[board.baseline] - gap.value) >= LEAST_DIGIT
    ]
    if not odd:
        return []
    (first, last), stop = (end(start for start, _ in odd) for end in (min, max)), min(stop for _, stop in odd)
    if stop < 1:
        over = f"over {percent(last)} to {percent(stop)} non-return"
        return [f"Differences are mean error rates {over}; AUGRC is that over all non-return rates."]
    where = f"non-return rates from {percent(last)} on, where both systems answer"
    if first < last:
        start = f"between {percent(first)} and {percent(last)}"
        where = f"the non-return rates at which both systems answer, which start {start}"
    return [f"Differences cover {where}; AUGRC covers all."]


def _silent_systems(comparison: Comparison) -> list[str]:
    silent = [one.name for one in comparison.evaluations if is_silent(one.curve)]
    return [f"{_few_names(silent)} {'answers' if len(silent) == 1 else 'answer'} nothing."] if silent else []


def _few_names(names: Sequence[str]) -> str:
    """The names of a few systems, or how many they are."""
    return listed(names) if len(names) <= MOST_PAIRED else f"{len(names)} systems"


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
    left = ["except for short gaps"] if lead.gaps else []
    if lead.absent:
        left.append(f"where {listed(lead.absent)} {'withholds' if len(lead.absent) == 1 else 'withhold'} more anyway")
    return f" ({', '.join(left)})" if left else ""


def pair_sentences(pair: PairComparison) -> list[str]:
    """The verdict overall with its test, where each is better, right answers, and how many inputs would show more."""
    silent = [f"{curve.name} answers nothing." for curve in pair.curves if is_silent(curve)]
    return [*silent, _overall(pair), *_better_ranges(pair), *_right_answers(pair), *_more_inputs(pair)]


def is_silent(curve: ErrorReturnCurve) -> bool:
    """Whether a system answers nothing."""
    return float(curve.sweep.answered) == 0


def _overall(pair: PairComparison) -> str:
    """Which system makes fewer errors over all, with difference, interval and p-value."""
    contrast, better = pair.overall, pair.fewer_errors
    if not contrast.defined:
        where = "no non-return rate" if pair.whole is None else "no non-return rate of the region"
        return f"There is {where} at which the errors of {pair.a} and {pair.b} could be compared."
    start, stop = contrast.range
    region = "" if pair.whole is None else f" over {percent(start)} to {percent(stop)} non-return"
    what = "mean error rate" if region else "AUGRC (mean error rate)"
    common = f" from {percent(start)} non-return on, where both answer," if start > 0 and not region else ""
    if better is not None:
        one, two = _named(pair, better)
        lower = f"its {what}{common} is lower by {_tested(contrast, pair, '{:.4f}'.format, turned=better == 'a')}"
        if dominates(pair):
            nowhere = "at any of these rates" if region else "at any non-return rate"
            return f"{one} dominates {two}{region}, with no more errors {nowhere}: {lower}."
        return f"{one} makes fewer errors than {two}{region or ' overall'}: {lower}."
    test = f"{what} of {pair.a} less {pair.b}{common.rstrip(',')}: {_tested(contrast, pair, '{:+.4f}'.format)}"
    if pair.verdict == "equivalent" and pair.equivalence is not None:
        within = f"within {percent(pair.equivalence.margin)} (two one-sided tests, {p_value(pair.equivalence.p)})"
        return f"{pair.a} and {pair.b} are equivalent{region} {within}. {test}."
    if pair.better is not None:
        one, two = _named(pair, pair.better)
        answers = "no significant difference in errors, but more right answers"
        return f"{one} is better than {two}{region or ' overall'}: {answers}. {test}."
    return f"No significant difference between {pair.a} and {pair.b}{region or ' overall'}. {test}."


def _tested(
    contrast: Contrast, pair: PairComparison, write: Callable[[float], str], *, turned: bool = False, unit: str = ""
) -> str:
    """A difference with interval and p-value, and what both are corrected for; `turned` is that of b less a."""
    value, (low, high) = contrast.value, contrast.interval
    if turned:
        value, low, high = -value, -high, -low
    details = [p_value(contrast.p_adjusted), *([] if pair.paired else ["unpaired"])]
    details += [f"corrected for {contrast.tests} tests"] if contrast.tests > 1 else []
    return with_interval(f"{write_signed(value, write)}{unit}", low, high, *details, write=write)


def _better_ranges(pair: PairComparison) -> list[str]:
    """Where each system makes significantly fewer errors."""
    if not pair.intervals:
        return []
    sides = dict.fromkeys(part.better for part in pair.intervals)
    parts = [f"when {_ranges(pair, side)} is withheld" for side in sides]
    fewer = (" makes significantly fewer errors ", " ")
    parts = [f"{_named(pair, side)[0]}{verb}{part}" for side, verb, part in zip(sides, fewer, parts, strict=False)]
    elsewhere = "" if _everywhere(pair) else "; no significant difference elsewhere"
    return [f"{', and '.join(parts)}{elsewhere}.{_lots(pair)}{_crossing(pair)}"]


def _everywhere(pair: PairComparison) -> bool:
    """Whether one system is shown better wherever either still errs more than once in 200 inputs."""
    if len(pair.intervals) != 1:
        return False
    x, (only,) = pair.band.x, pair.intervals
    one, two = (curve.error_at(x) for curve in pair.curves)
    erring = (one > 0.005) | (two > 0.005)
    return bool(((x >= only.start) & (x <= only.stop))[erring].all())


def _lots(pair: PairComparison) -> str:
    """That parts of the ranges lie between cutoffs."""
    if all(part.reachable for part in pair.intervals):
        return ""
    where = "parts of this range" if any(_has_cutoffs(pair, part) for part in pair.intervals) else "this range"
    return (
        f" Ties leave no threshold for {where}: there the curves show what returning a random part of the "
        "tied answers would give."
    )


def _has_cutoffs(pair: PairComparison, part: Interval) -> bool:
    """Whether each system has a threshold that withholds a share within the range."""
    margin = near_enough(pair.n)
    shares = (curve.nonreturn for curve in pair.curves)
    return all(bool(((x >= part.start - margin) & (x <= part.stop + margin)).any()) for x in shares)


def _crossing(pair: PairComparison) -> str:
    """Where the curves cross, where one system is shown better before and the other after."""
    return "".join(
        f" The curves cross at {with_interval(one.x, one.low, one.high, write=percent)}."
        for one in supported_crossings(pair)[:1]
    )


def supported_crossings(pair: PairComparison) -> list[Crossing]:
    """The crossings with one system shown better before and the other after."""

    def supported(crossing: Crossing) -> bool:
        before = [part.better for part in pair.intervals if part.stop <= crossing.x]
        after = [part.better for part in pair.intervals if part.start >= crossing.x]
        return crossing.reachable and bool(before and after and before[-1] != after[0])

    return [crossing for crossing in pair.crossings if supported(crossing)]


def _right_answers(pair: PairComparison) -> list[str]:
    """Right answers of both, where one withholds more by itself."""
    if not pair.floors_differ:
        return []
    one, two = (f"{curve.name} {percent(float(curve.accuracy[0]))}" for curve in pair.curves)
    shares = f"{one} of the inputs, {two}, when each returns all it has"
    if pair.more_right is None:
        tested = _tested(pair.right, pair, lambda rate: f"{100 * rate:+.1f}", unit=" points")
        return [f"No significant difference in right answers: {shares}; {tested}."]
    better, worse = _named(pair, pair.more_right)
    how: dict[str, Any] = {"turned": pair.more_right == "b", "unit": " points more"}
    tested = _tested(pair.right, pair, lambda rate: f"{100 * rate:.1f}", **how)
    return [f"{better} gives more right answers than {worse}: {shares}; {tested}."]


def _more_inputs(pair: PairComparison) -> list[str]:
    if pair.inputs_needed is None or pair.inputs_needed <= pair.n or pair.verdict == "equivalent":
        return []
    return [
        "If the difference is as large as it is here, about "
        f"{rounded_up(pair.inputs_needed)} inputs would show it four times out of five; there are {pair.n:,}."
    ]


def _ranges(pair: PairComparison, side: Side) -> str:
    """The ranges on which a side is shown better, those with only a short gap between them taken together."""
    merged: list[Interval] = []
    gaps = False
    for part in (one for one in pair.intervals if one.better == side):
        if merged and part.start - merged[-1].stop <= SHORT_GAP + 1e-9:
            merged[-1], gaps = Interval(merged[-1].start, part.stop, side), True
        else:
            merged.append(part)
    shown = [
        f"{percent(part.start)} to {percent(part.stop)}" if part.stop > part.start else percent(part.start)
        for part in merged
    ]
    return listed(shown) + (" (except for short gaps)" if gaps else "")
