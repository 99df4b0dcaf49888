"""Evaluations, comparisons and thresholds in plain sentences, titles and captions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from demur.core.show.numbers import inputs, interval, listed, number, p_value, percent, rounded_up, with_interval
from demur.core.stats.intervals import Figure
from demur.core.stats.measure import Measure
from demur.returns.bands import Band
from demur.returns.class_report import ClassReport
from demur.returns.compare import Comparison, PairComparison, RankingRegion
from demur.returns.curves import ErrorReturnCurve
from demur.returns.evaluate import Evaluation
from demur.returns.measures import ErrorAtNonreturn, NonreturnAtError
from demur.returns.slices import SliceDifference
from demur.returns.threshold import Choice

SHORT_GAP = 0.05
"""Ranges of non-return rates closer than this are told as one."""


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
        f"{rounded_up(pair.inputs_needed)} inputs would be needed; there are {pair.n:,}."
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


Region = tuple[float, float]


class Drawn(Protocol):
    """What is drawn as a line: an evaluation, or a curve without a band."""

    @property
    def name(self) -> str:
        """Its name in the legend."""

    @property
    def n(self) -> int:
        """Inputs behind it."""

    @property
    def clustered(self) -> bool:
        """Whether inputs come in dialogues."""

    @property
    def curve(self) -> ErrorReturnCurve:
        """The curve itself."""

    @property
    def band(self) -> Band | None:
        """Its bands, where there are any."""


@dataclass(frozen=True, slots=True)
class Bare:
    """A curve alone, drawn without a band."""

    curve: ErrorReturnCurve
    band: Band | None = None
    clustered: bool = False

    @property
    def name(self) -> str:
        """The curve's name."""
        return self.curve.name

    @property
    def n(self) -> int:
        """Inputs behind the curve."""
        return self.curve.sweep.n


def neutral_title(drawn: Sequence[Drawn], region: Region | None) -> str:
    """What the curves are, with the numbers of a single one: nothing here says that one is better."""
    slices = [one for one in drawn[1:] if isinstance(one, Evaluation) and one.part is not None]
    if len(drawn) > 1 and len(slices) < len(drawn) - 1:
        return f"Error-return curves of {len(drawn)} systems"
    first = drawn[0]
    forced, withheld = percent(float(first.curve.error[0])), first.curve.floor
    start = "when all is returned" if withheld == 0 else f"at {percent(withheld)} non-return, its least"
    return f"{first.name}: {forced} errors {start}{_at_point(first, region, ', ')}"


def subtitle(
    drawn: Sequence[Drawn], region: Region | None, *, bands: str, left_out: int = 0, crossings: bool = False
) -> list[str]:
    """The facts a reader needs to read the plot: inputs, bands, shaded strip, where curves start."""
    parts = [inputs([one.n for one in drawn], clustered=any(one.clustered for one in drawn))]
    parts += _band_words(drawn, bands)
    if region is not None:
        parts.append(f"shaded strip: critical region, {percent(region[0])} to {percent(region[1])}")
    if len(drawn) > 1:
        sliced = any(isinstance(one, Evaluation) and one.part is not None for one in drawn)
        parts.append("thickest line: all inputs" if sliced else "thickest line: baseline")
    if left_out:
        parts.append(f"the {len(drawn) - 1} worst of {len(drawn) - 1 + left_out} slices")
    if crossings:
        parts.append("crosses: where the better system changes")
    return [*parts, *_late_words(drawn)]


def description(drawn: Sequence[Drawn], region: Region | None, choices: Sequence[Choice] = ()) -> str:
    """The plot in words."""
    parts = [
        f"{one.name} falls from {percent(float(one.curve.error[0]))} at {percent(one.curve.floor)} non-return"
        + _at_point(one, region, " to ")
        for one in drawn
    ]
    marked = "".join(f" {_choice_words(choice)}" for choice in choices)
    return f"Error-return plot: error rate against non-return rate, lower is better. {'; '.join(parts)}.{marked}"


def choice_text(choice: Choice) -> str:
    """A chosen threshold as a short label."""
    return "return nothing" if math.isnan(choice.threshold) else f"threshold {choice.printed_threshold}"


def _choice_words(choice: Choice) -> str:
    promise = (
        ""
        if choice.guarantee is None
        else f"; a thin line marks the promised error rate of {percent(choice.guarantee.bound)}"
    )
    return (
        f"Marked: {choice_text(choice)}, with an error rate of {percent(choice.error)} at "
        f"{percent(choice.nonreturn)} non-return{promise}."
    )


def _at_point(one: Drawn, region: Region | None, lead: str) -> str:
    """The error rate at the point or over the range asked for; nothing where the curve starts later."""
    asked = _asked(one, region)
    value = float(asked.finish(one.curve.sweep))
    mean = "" if asked.to is None else "a mean of "
    return "" if math.isnan(value) else f"{lead}{mean}{percent(value)} {point_words(asked)} non-return"


def _asked(one: Drawn, region: Region | None) -> ErrorAtNonreturn:
    measure = one.measures.get("error_at_nonreturn") if isinstance(one, Evaluation) else None
    if isinstance(measure, ErrorAtNonreturn):
        return measure
    return ErrorAtNonreturn() if region is None else ErrorAtNonreturn(x=(region[0] + region[1]) / 2)


def _band_words(drawn: Sequence[Drawn], bands: str) -> list[str]:
    band = None if bands == "none" else next((one.band for one in drawn if one.band is not None), None)
    if band is None:
        return []
    reach = f"over {percent(band.region[0])} to {percent(band.region[1])}"
    whole = "for the whole curve" if band.region == (0.0, 1.0) else reach
    return [f"{percent(band.level)} bands {'at each point' if bands == 'pointwise' else whole}"]


def _late_words(drawn: Sequence[Drawn]) -> list[str]:
    late = [one for one in drawn if one.curve.floor > 0]
    if len(late) == 1:
        return [f"{late[0].name} starts at {percent(late[0].curve.floor)}, the share it withholds by itself"]
    return ["curves start where a system withholds by itself"] if late else []


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
        f"Of {len(own)} slices of {system}, {_slice_text(worst)} has the most errors {point_words(asked)} non-return, "
        f"{_slice_text(best)} the fewest{left}."
    ]


def _slice_text(one: Evaluation) -> str:
    return f"{one.part} ({percent(_figure(one).value)}; {interval(_figure(one))}; n = {one.n:,})"


def _figure(one: Evaluation) -> Figure:
    return one.figures["error_at_nonreturn"]


def _height(one: Evaluation) -> float:
    value = _figure(one).value
    return -1.0 if math.isnan(value) else value


def difference_told(test: SliceDifference) -> str:
    """A difference with its interval."""
    if test.what == "augrc":
        return with_interval(test.difference, test.low, test.high, write="{:+.4f}".format)
    return with_interval(test.difference, test.low, test.high, write=lambda rate: f"{100 * rate:+.1f}") + " points"
