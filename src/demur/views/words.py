"""Verdicts in plain sentences: what the numbers mean, before the numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from demur.analyses.comparison import Comparison, PairComparison
from demur.analyses.evaluation import Evaluation
from demur.analyses.labels import ClassReport
from demur.analyses.ranking import Reign
from demur.analyses.threshold import Choice
from demur.measures.intervals import Figure
from demur.measures.returns import ErrorAtNonreturn

SHORT_GAP = 0.05
"""Ranges of non-return rates closer than this are told as one."""


def percent(rate: float) -> str:
    """A rate in percent, with as many decimals as it needs to differ from 0 and 100.

    >>> percent(0.2422), percent(0.0004), percent(1.0), percent(0.2)
    ('24.2 %', '0.04 %', '100 %', '20 %')
    """
    if math.isnan(rate):
        return "undefined"
    shown = 100 * rate
    decimals = 1 if 0.1 <= shown <= 99.9 or shown in (0.0, 100.0) else 2
    return f"{shown:.{decimals}f}".rstrip("0").rstrip(".") + " %"


def number(value: float) -> str:
    """A number in four significant digits.

    >>> number(0.123456), number(1234.5), number(float("nan"))
    ('0.1235', '1234', 'undefined')
    """
    return "undefined" if math.isnan(value) else f"{value:.4g}"


def interval(figure: Figure, shown: object = percent) -> str:
    """The ends of a figure's interval."""
    if math.isnan(figure.low) or math.isnan(figure.high):
        return "no interval"
    assert callable(shown)
    return f"{shown(figure.low)} to {shown(figure.high)}"


def p_value(p: float) -> str:
    """A p-value as one reads it.

    >>> p_value(0.0312), p_value(1e-9)
    ('p = 0.031', 'p < 0.001')
    """
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


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
        return f"{first.best} is lowest {reach}, not told apart from {listed(first.also)}"
    return f"{first.best} errs least {reach}{_but(first)}"


def pair_title(pair: PairComparison) -> str:
    """The verdict on a pair in a few words."""
    if pair.verdict == "no difference shown":
        return f"No difference shown between {pair.a} and {pair.b}"
    if pair.verdict == "crossing":
        return f"{pair.a} and {pair.b} cross: the better one depends on how much is withheld"
    better, worse = (pair.a, pair.b) if pair.verdict == "a dominates" else (pair.b, pair.a)
    return f"{better} errs less than {worse}" + ("" if pair.everywhere else " wherever they are told apart")


def choice_title(choice: Choice) -> str:
    """What a threshold does in a few words."""
    if math.isnan(choice.threshold):
        return f"{choice.system}: no threshold keeps the limit"
    effect = f"leaves {percent(choice.error)} errors and withholds {percent(choice.nonreturn)}"
    return f"{choice.system}: a threshold of {choice.printed_threshold} {effect}"


def score_sentences(evaluation: Evaluation) -> list[str]:
    """What one system's answers show."""
    figures, name = evaluation.figures, evaluation.name
    said = [
        f"{name}: when it returns every answer it has, {percent(figures['forced_error'].value)} of "
        f"{evaluation.n:,} inputs get a wrong one ({interval(figures['forced_error'])})."
    ]
    if evaluation.curve.floor > 0:
        said.append(_floor_sentence(evaluation))
    if evaluation.sample.sweep.threshold.size < 2:
        return [*said, "All its answers have the same confidence (or none), so no threshold can choose among them."]
    said += _point_sentences(evaluation)
    skill = figures["ranking_skill"]
    if skill.defined:
        said.append(_skill_sentence(skill))
    return said


def _floor_sentence(evaluation: Evaluation) -> str:
    kinds = [(evaluation.withheld, "withheld by the system itself"), (evaluation.failed, "failed")]
    told = " and ".join(f"{count:,} {kind}" for count, kind in kinds if count)
    return (
        f"{percent(evaluation.curve.floor)} is never returned ({told}), so its curve and areas start there, not at 0."
    )


def _point_sentences(evaluation: Evaluation) -> list[str]:
    measure, figure = evaluation.measures["error_at_nonreturn"], evaluation.figures["error_at_nonreturn"]
    assert isinstance(measure, ErrorAtNonreturn)
    if not figure.defined:
        return [f"The error rate at {percent(measure.x)} non-return is undefined: {figure.why}."]
    if measure.to is None:
        where = f"Withholding {percent(measure.x)} of the inputs, the least sure first, leaves"
    else:
        where = f"Withholding {percent(measure.x)} to {percent(measure.to)} of the inputs leaves, on average,"
    return [f"{where} {percent(figure.value)} errors ({interval(figure)})."]


def _skill_sentence(skill: Figure) -> str:
    if skill.high < 0:
        return "It is surer of wrong answers than of right ones: is its confidence a distance or an uncertainty?"
    if skill.value <= 0:
        return "Its confidences rank wrong answers no lower than chance would: a threshold on them does not help."
    return f"Its confidences go {percent(skill.value)} of the way from a random ranking to a perfect one."


def comparison_sentences(comparison: Comparison) -> list[str]:
    """What a comparison shows: who leads where, then each pair."""
    said = []
    if len(comparison.evaluations) > 2:
        said.append(ranking_sentence(comparison.ranking))
    for pair in comparison.pairs:
        said += pair_sentences(pair)
    return said


def ranking_sentence(ranking: tuple[Reign, ...]) -> str:
    """Which system has the lowest curve over which non-return rates."""
    parts: list[str] = []
    best = ""
    for reign in ranking:
        company = f", not told apart from {listed(reign.also)}" if reign.also else ""
        name = "" if reign.best == best else f"{reign.best} "
        parts.append(f"{name}from {percent(reign.start)} to {percent(reign.stop)} non-return{_but(reign)}{company}")
        best = reign.best
    return f"Lowest curve: {'; '.join(parts)}."


def _but(reign: Reign) -> str:
    """What a claim about a region leaves out: short gaps, and systems that have no curve there."""
    left = ["but for short gaps"] if reign.gaps else []
    if reign.absent:
        left.append(f"where {listed(reign.absent)} {'withholds' if len(reign.absent) == 1 else 'withhold'} more anyway")
    return f" ({', '.join(left)})" if left else ""


def pair_sentences(pair: PairComparison) -> list[str]:
    """The verdict on one pair, the test of the areas, and how many inputs it would take where nothing is shown."""
    low, high = pair.area.interval(pair.level)
    area = (
        f"The area under the curve (mean error rate) of {pair.a} less that of {pair.b} is {pair.area.value:+.4f} "
        f"({low:+.4f} to {high:+.4f}, {p_value(pair.p_adjusted)}{_how_paired(pair)})."
    )
    return [_verdict(pair), area, *_need(pair)]


def _verdict(pair: PairComparison) -> str:
    if pair.verdict == "crossing":
        return _crossing(pair)
    if pair.verdict == "no difference shown":
        return f"No difference is shown between {pair.a} and {pair.b} at any non-return rate."
    return _dominance(pair, pair.a, pair.b) if pair.verdict == "a dominates" else _dominance(pair, pair.b, pair.a)


def _dominance(pair: PairComparison, better: str, worse: str) -> str:
    ranges = _ranges(pair, pair.intervals[0].better)
    reach = "beyond that hardly an error is left" if pair.everywhere else "and nowhere shown worse"
    return f"{better} errs less than {worse} {ranges} non-return, {reach}."


def _crossing(pair: PairComparison) -> str:
    between = [
        crossing for crossing in pair.crossings if any(part.stop <= crossing.low + 1e-9 for part in pair.intervals)
    ]
    met = ""
    if between:
        met = f" The curves cross at {percent(between[0].x)} ({percent(between[0].low)} to {percent(between[0].high)})."
    return (
        f"The curves cross: {pair.a} errs less {_ranges(pair, 'a')}, {pair.b} {_ranges(pair, 'b')} non-return, "
        f"so the choice depends on how much may be withheld.{met}"
    )


def _ranges(pair: PairComparison, side: str) -> str:
    """The ranges on which a side is shown better, those with only a short gap between them taken together."""
    merged: list[list[float]] = []
    gaps = False
    for part in pair.intervals:
        if part.better != side:
            continue
        if merged and part.start - merged[-1][1] <= SHORT_GAP + 1e-9:
            merged[-1][1], gaps = part.stop, True
        else:
            merged.append([part.start, part.stop])
    shown = [
        f"from {percent(start)} to {percent(stop)}" if stop > start else f"at {percent(start)}"
        for start, stop in merged
    ]
    return listed(shown) + (" (but for short gaps)" if gaps else "")


def _how_paired(pair: PairComparison) -> str:
    return "" if pair.paired else ", unpaired"


def _need(pair: PairComparison) -> list[str]:
    if pair.verdict != "no difference shown":
        return []
    if pair.inputs_needed is None:
        return ["The two areas are equal, so no number of inputs of this kind would tell them apart."]
    if pair.inputs_needed <= pair.n:
        return []
    return [
        "To show a difference in area of the size seen here four times out of five, about "
        f"{_rounded(pair.inputs_needed)} inputs would be needed; there are {pair.n:,}."
    ]


def choice_sentences(choice: Choice) -> list[str]:
    """What a chosen threshold does, and whether anything is promised."""
    if math.isnan(choice.threshold):
        first = f"{choice.system}: return nothing. No threshold keeps to the rule ({choice.rule})."
    else:
        cutoff = f"return an answer when its confidence is at least {choice.printed_threshold}"
        first = f"{choice.system}: {cutoff} ({choice.rule})."
    effect = (
        f"In this sample that withholds {percent(choice.nonreturn)} of the inputs and returns a wrong answer to "
        f"{percent(choice.error)}; {percent(choice.missed_chance)} would have been right but are withheld."
    )
    return [first, effect, *_promise(choice)]


def _promise(choice: Choice) -> list[str]:
    if choice.guarantee is not None:
        bound, sure = percent(choice.guarantee.bound), percent(1 - choice.guarantee.delta)
        return [
            f"On new inputs of the same kind the error rate stays at or under {bound} with {sure} confidence "
            f"({choice.guarantee.method})."
        ]
    if choice.rule.startswith("error rate"):
        return ["Nothing is promised about new inputs: add --delta 0.05 for a threshold with a guarantee."]
    return []


def class_sentences(report: ClassReport) -> list[str]:
    """What the labels of one system show."""
    figures, confusion = report.figures, report.confusion
    said = [
        f"{report.system}: {percent(figures['accuracy'].value)} of {confusion.n:,} rows have the right label "
        f"({interval(figures['accuracy'])}); macro F1 is {number(figures['macro_f1'].value)}, "
        f"kappa {number(figures['kappa'].value)}."
    ]
    if confusion.rejected:
        share = percent(float(confusion.rejected / confusion.total))
        said.append(
            f"{confusion.rejected:,.0f} rows ({share}) were rejected; they count against recall, not precision."
        )
    wrong = [cell for cell in confusion.cells() if cell[1] is not None and cell[0] != cell[1]]
    if wrong:
        actual, predicted, count = max(wrong, key=lambda cell: cell[2])
        said.append(f"The most frequent confusion is {predicted} for {actual} ({count:,.0f} times).")
    return said


def listed(parts: Sequence[str]) -> str:
    """Names or phrases as a sentence lists them.

    >>> listed(["A"]), listed(["A", "B", "C"])
    ('A', 'A, B and C')
    """
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _rounded(count: int) -> str:
    scale = 10 ** max(0, len(str(count)) - 2)
    return f"{math.ceil(count / scale) * scale:,}"
