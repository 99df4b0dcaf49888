"""Evaluations, comparisons and thresholds in plain sentences, titles and captions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from demur.core.show.numbers import inputs, interval, listed, middle_cut, number, percent, with_interval
from demur.core.stats.measure import Measure
from demur.core.stats.promises import Guarantee
from demur.core.stats.sweep import Sweep
from demur.returns.classes import ClassReport
from demur.returns.curves import NEAR_ENOUGH, Band, CutoffPoint, ErrorReturnCurve, near_enough
from demur.returns.evaluate import AtCutoff, Evaluation, figure_of, slices_at_one_threshold
from demur.returns.measures import ErrorAtNonreturn, ErrorAtThreshold, NonreturnAtError
from demur.returns.slices import SliceDifference
from demur.returns.threshold import Choice, curve_cutoff


def choice_title(choice: Choice) -> str:
    """What a threshold does in a few words."""
    if choice.returns_nothing:
        return f"{choice.system}: {_nothing(choice)}"
    effect = f"leaves {percent(choice.error)} errors and withholds {percent(choice.nonreturn)}"
    if choice.randomise is not None:
        return f"{choice.system}: a draw among ties {effect}"
    return f"{choice.system}: a threshold of {choice.printed_threshold} {effect}"


def _nothing(choice: Choice) -> str:
    """Why nothing is to be returned, in a few words."""
    limit = choice.limited is not None and choice.curve.floor < 1 and not choice.too_few
    return f"no threshold keeps the limit ({choice.rule})" if limit else str(choice.why)


def score_sentences(evaluation: Evaluation) -> list[str]:
    """What one system's answers show."""
    figures, name = evaluation.figures, evaluation.name
    if float(evaluation.sample.sweep.answered) == 0:
        return [f"{name} answers none of {evaluation.n:,} inputs: it makes no errors, and gives no right answer."]
    sentences = [
        f"{name}: when it returns every answer it has, {percent(figures['forced_error'].value)} of "
        f"{evaluation.size_text} get a wrong one ({interval(figures['forced_error'])})."
    ]
    floor, further = evaluation.curve.floor, []
    if floor > 0:
        kinds = [(evaluation.withheld, "withheld by the system itself"), (evaluation.failed, "failed")]
        counts = " and ".join(f"{count:,} {kind}" for count, kind in kinds if count)
        start = "so its curve and areas start there, not at 0"
        further.append(f"{percent(floor)} is never returned ({counts}), {start}.")
    if (at := evaluation.deployed_point) is not None:
        further.append(
            f"At the deployed threshold, {at.threshold:g}, it withholds {percent(at.nonreturn)} and answers "
            f"{percent(at.error)} wrongly."
        )
    further += _scope_sentence(evaluation)
    if evaluation.sample.sweep.threshold.size < 2:
        tied = f"{indistinct(evaluation.sample.sweep)}, so no threshold can choose among them."
        return [*sentences, tied[:1].upper() + tied[1:], *further]
    sentences.append(_point_sentence(evaluation))
    skill = figures["ranking_skill"]
    shown = with_interval(skill.value, skill.low, skill.high, write="{:.2f}".format, missing="no interval")
    ranks = f"Ranking skill {skill.value:.2f} (0 random, 1 perfect)."
    if skill.high < 0:
        hint = "wrong answers have the higher confidences; is its confidence a distance or an uncertainty?"
        ranks = f"Ranking skill {shown}: {hint}"
    elif not skill.low > 0:
        ranks = f"Ranking skill {shown}: not significantly better than chance (0 random, 1 perfect)."
    return [*sentences, *([ranks] if skill.defined else []), *further]


def range_sentences(evaluations: Sequence[Evaluation]) -> list[str]:
    """How many systems there are, and from which AUGRC to which they reach."""
    areas = {one.name: one.figures["augrc"] for one in evaluations}
    defined = sorted((figure.value, name) for name, figure in areas.items() if figure.defined)
    if not defined:
        return [f"{len(areas)} systems, none of which has an AUGRC."]
    (low, best), (high, worst) = defined[0], defined[-1]
    return [f"{len(areas)} systems: AUGRC (mean error rate) from {low:.4f} ({best}) to {high:.4f} ({worst})."]


def _scope_sentence(evaluation: Evaluation) -> list[str]:
    """How well inputs in scope and out of scope are told apart; nothing where none is out of scope."""
    figures = evaluation.figures
    if "scope_auroc" not in figures:
        return []
    inputs = "input is" if evaluation.out_of_scope == 1 else "inputs are"
    parts = [f"{evaluation.out_of_scope:,} {inputs} out of scope"]
    recall, accuracy = figures["out_of_scope_recall"], figures["in_scope_accuracy"]
    if recall.value > 0:
        parts.append(f"{percent(recall.value)} of them are withheld by the system itself ({interval(recall)})")
    if accuracy.defined:
        parts.append(f"{percent(accuracy.value)} of those in scope are answered rightly ({interval(accuracy)})")
    if (returned := figures["scope_fpr"]).defined:
        parts.append(
            f"a threshold that returns 95 % of those in scope returns {percent(returned.value)} of those out of scope"
        )
    if (ranking := figures["scope_auroc"]).defined:
        parts.append(f"the AUROC of confidence for being in scope is {number(ranking.value)}")
    return [f"{'; '.join(parts)}."]


def indistinct(sweep: Sweep) -> str:
    """Why the answers of a sweep with at most one confidence cannot be told apart.

    >>> indistinct(Sweep.of([0.9, 0.9], [True, False])), indistinct(Sweep.of([float("-inf")], [True]))
    ('all its answers have the same confidence', 'none of its answers has a confidence')
    """
    has_none = not sweep.threshold.size or sweep.threshold[0] == -math.inf
    return "none of its answers has a confidence" if has_none else "all its answers have the same confidence"


def _point_sentence(evaluation: Evaluation) -> str:
    measure, figure = _point_measure(evaluation), evaluation.figures["error_at_nonreturn"]
    if not figure.defined:
        return f"The error rate at {percent(measure.x)} non-return is undefined: {figure.why}."
    if measure.to is not None:
        where = f"Withholding at most {percent(measure.x)} to {percent(measure.to)} of the inputs leaves, on average,"
    elif evaluation.curve.reaches(measure.x):
        where = f"Withholding {percent(measure.x)} of the inputs, the least sure first, leaves"
    else:
        return _out_of_reach(evaluation, measure.x)
    return f"{where} {percent(figure.value)} errors ({interval(figure)})."


def _out_of_reach(evaluation: Evaluation, x: float) -> str:
    """The cutoffs around a share that no threshold withholds, and what randomising among the ties would give."""
    curve, figure = evaluation.curve, evaluation.figures["error_at_nonreturn"]
    below, beyond, mixed = curve.point_at(x), curve.point_beyond(x), evaluation.randomised["error_at_nonreturn"]
    assert below is not None
    assert beyond is not None
    nothing = "No threshold" if curve.sweep.upper is None else "No cutoff that was counted"
    nearest = f", {curve_cutoff(curve, below.threshold)}, withholds {percent(below.nonreturn)}"
    if below.nonreturn == curve.floor == 0:
        nearest = " returns every answer"
    rest = "withholds everything" if math.isnan(beyond.threshold) else f"withholds {percent(beyond.nonreturn)}"
    return (
        f"{nothing} withholds {percent(x)} of the inputs: the nearest below{nearest} and leaves {percent(below.error)} "
        f"errors ({interval(figure)}); the next {rest} and leaves {percent(beyond.error)}. Returning the answers "
        f"between them at random would withhold {percent(x)} and leave {percent(mixed.value)} ({interval(mixed)})."
    )


def _point_measure(evaluation: Evaluation) -> ErrorAtNonreturn:
    measure = evaluation.measures["error_at_nonreturn"]
    assert isinstance(measure, ErrorAtNonreturn)
    return measure


def choice_sentences(choice: Choice) -> list[str]:
    """What a chosen threshold does, to every group where there are some, and whether anything is promised."""
    wrong = ["No answer of this log is right, so none is lost by returning nothing."] if choice.all_wrong else []
    if choice.returns_nothing:
        return [*choice_effect(choice), *wrong]
    extras = (*_tie_sentence(choice), *_cost_sentence(choice), *group_sentences(choice))
    return [*choice_effect(choice), *wrong, *extras, *_promise(choice)]


def recommendation(choice: Choice, name: str | None = None) -> str:
    """The threshold to set, what it does in this sample, and what is promised, in one sentence or two.

    `name` is what the system is called here; empty for the only one there is.
    """
    called = choice.system if name is None else name
    of = f" for {called}" if called else ""
    if choice.returns_nothing:
        return f"No threshold{of} can be recommended: {no_threshold(choice)}."
    draw = "" if choice.randomise is None else ", with a draw among ties"
    promise = choice.guarantee
    kept = "" if promise is None else f"; {promise_words(promise)}, if they are like these"
    return (
        f"Recommended threshold{of}: {choice.printed_threshold}{draw}. It withholds {percent(choice.nonreturn)} of the "
        f"inputs and answers {percent(choice.error)} wrongly ({percent(choice.risk)} of those returned){kept}."
    )


def no_threshold(choice: Choice) -> str:
    """Why a rule gives no threshold: there are no answers, a promise needs more inputs, or no threshold keeps it."""
    kept = choice.limited is None or choice.curve.floor == 1 or choice.too_few
    return str(choice.why) if kept else f"no threshold keeps to the rule ({choice.rule})"


def _tie_sentence(choice: Choice) -> list[str]:
    """The cutoff just beyond a limit, where ties keep the one chosen well within it; otherwise nothing."""
    point = _beyond_limit(choice)
    if point is None:
        return []
    cutoff = curve_cutoff(choice.curve, point.threshold)
    return [
        f"Answers of one confidence are returned together: the next cutoff, {cutoff}, withholds "
        f"{percent(point.nonreturn)} and returns a wrong answer to {percent(point.error)}, {percent(point.risk)} of "
        "the answers returned. "
        "--ties randomise can go between the two."
    ]


def _beyond_limit(choice: Choice) -> CutoffPoint | None:
    """The next cutoff, where more than half a point and one input lie between it and the one chosen."""
    curve = choice.curve
    if choice.randomise is not None or choice.limited is None or choice.groups or curve.sweep.upper is not None:
        return None
    strict = choice.limited == "nonreturn"
    place = int(np.searchsorted(curve.sweep.threshold, choice.threshold)) + (1 if strict else -1)
    if not 0 <= place < curve.sweep.threshold.size:
        return None
    point = curve.point(place)
    apart = abs(point.nonreturn - choice.nonreturn) > max(NEAR_ENOUGH, 1 / curve.sweep.n) + 1e-12
    return point if apart and (not strict or point.error < choice.error) else None


def _promise(choice: Choice) -> list[str]:
    """What is promised about new inputs, for which groups it is not, or that nothing is."""
    promise = choice.guarantee
    if promise is None:
        plea = "Nothing is promised about new inputs: add --delta 0.05 for a threshold with a guarantee."
        return [] if choice.limited is None else [plea]
    every, kept = " in every group" if choice.groups else "", promise_words(promise)
    sentence = f"{kept[0].upper()}{kept[1:]}{every}, if they are like those seen ({promise.method})."
    small = [f"{one.group} ({one.n:,} inputs)" for one in choice.groups if one.promised is False]
    left = f"Too small for a promise even without an error, and left out of it: {listed(small)}." if small else ""
    return [sentence, left] if left else [sentence]


def promise_words(promise: Guarantee) -> str:
    """What is promised, and how surely."""
    bound = percent(promise.bound)
    kept = {
        "error": f"at most {bound} of all new inputs are answered wrongly",
        "risk": f"at most {bound} of the answers returned to new inputs are wrong",
        "nonreturn": f"at most {bound} of all new inputs are withheld",
    }[promise.of]
    return f"with {percent(1 - promise.delta)} confidence, {kept}"


def choice_effect(choice: Choice) -> list[str]:
    """What a chosen threshold does in this sample: wrong answers as a share of all inputs and of those returned."""
    if choice.returns_nothing:
        reason = no_threshold(choice)
        rule = "" if choice.rule in reason else f" ({choice.rule})"
        first = f"{choice.system}: return nothing. {reason[0].upper()}{reason[1:]}{rule}."
    else:
        first = f"{choice.system}: {_instruction(choice)} ({choice.rule})."
    average = "on average over draws " if choice.randomise is not None else ""
    risk = "" if math.isnan(choice.risk) else f", {percent(choice.risk)} of the answers returned"
    effect = (
        f"In this sample that {average}withholds {percent(choice.nonreturn)} of the inputs and returns a wrong answer "
        f"to {percent(choice.error)}{risk}; {percent(choice.missed_chance)} would have been right but are withheld."
    )
    return [first, effect]


def _instruction(choice: Choice) -> str:
    """What to do with an answer."""
    draw = choice.randomise
    if draw is None and choice.threshold == -math.inf:
        return "return every answer"
    if draw is None:
        return f"return an answer when its confidence is at least {choice.printed_threshold}"
    chance = f"with probability {draw.probability:g}, drawn independently for each input"
    if math.isnan(draw.upper) and draw.lower == -math.inf:
        return f"return an answer {chance}"
    if math.isnan(draw.upper):
        return f"return an answer when its confidence is at least {choice.printed_lower}, {chance}"
    return (
        f"return an answer when its confidence is at least {choice.printed_threshold}; from {choice.printed_lower} up "
        f"to that return it {chance}"
    )


def _cost_sentence(choice: Choice) -> list[str]:
    """What the cost is on inputs that had no part in choosing the threshold."""
    if choice.cost is None:
        return []
    if choice.cost_ratio == 1:
        return _equal_costs(choice)
    cost = f"The cost is {number(choice.cost)} for an input, that of an error being 1"
    if choice.cross_fit is None:
        return [f"{cost}; chosen on the same inputs, it is too low on average."]
    fit = choice.cross_fit
    return [
        f"{cost}; chosen on the same inputs, it is too low on average. Cross-fitted, with each of {fit.folds} parts at "
        f"the threshold that is cheapest on the others (seed {fit.seed}), it is {number(fit.value)}."
    ]


def _equal_costs(choice: Choice) -> list[str]:
    """Why nothing is withheld where a non-return costs as much as an error."""
    cheap = choice.path[0]
    free = cheap.nonreturn - choice.nonreturn
    equal = (
        f" The {percent(free)} of least confidence are all wrong, so withholding them costs the same." if free else ""
    )
    return [
        f"A non-return costs as much as an error here, so withholding an answer never pays.{equal} Where a non-return "
        "costs less, a ratio below 1 says by how much."
    ]


def group_sentences(choice: Choice) -> list[str]:
    """The group with most errors at the threshold, by the rate that the rule is on."""
    by_risk = choice.limited == "risk"
    known = [one for one in choice.groups if (one.risk if by_risk else one.error).defined]
    if not known:
        return []
    worst = max(known, key=lambda one: (one.risk if by_risk else one.error).value)
    figure = worst.risk if by_risk else worst.error
    share = "of the answers returned" if by_risk else "of its inputs"
    return [
        f"Of {len(choice.groups)} groups {worst.group} has the most errors at this threshold: {percent(figure.value)} "
        f"{share} ({interval(figure)}; {worst.n:,} inputs, {percent(worst.nonreturn)} of them withheld)."
    ]


def choice_rates(choice: Choice) -> str:
    """Both meanings of an error rate at a chosen threshold, for a subtitle."""
    returned = "" if math.isnan(choice.risk) else f", {percent(choice.risk)} of the answers returned"
    return f"wrong where marked: {percent(choice.error)} of all inputs{returned}"


def class_sentences(report: ClassReport) -> list[str]:
    """What the labels of one system show."""
    figures, confusion = report.figures, report.confusion
    sentences = [
        f"{middle_cut(report.system)}: {percent(figures['accuracy'].value)} of {confusion.n:,} inputs have the right "
        f"label ({interval(figures['accuracy'])}); macro F1 is {number(figures['macro_f1'].value)}, kappa "
        f"{number(figures['kappa'].value)}."
    ]
    if confusion.rejected:
        share = percent(float(confusion.rejected / confusion.total))
        rows = f"{confusion.rejected:,.0f} inputs ({share}) were rejected; they count"
        if f"{confusion.rejected:,.0f}" == "1":
            rows = f"1 input ({share}) was rejected; it counts"
        sentences.append(f"{rows} against recall, not precision.")
    if (worst := confusion.worst) is not None:
        actual, predicted = middle_cut(worst[0]), middle_cut(str(worst[1]))
        most = f"The most frequent confusion is {predicted} for {actual} ({worst[2]:,.0f} times)."
        sentences.append("No label is taken for the same other one more than once." if worst[2] == 1 else most)
    return sentences


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


def cutoff_words(one: Evaluation, name: str) -> str:
    """The rate at the cutoff that a reading is of, where ties keep it from what was asked; otherwise nothing."""
    measure = one.measures[name]
    if isinstance(measure, ErrorAtNonreturn) and measure.to is None:
        point = one.curve.point_at(measure.x)
        return "" if point is None or one.curve.reaches(measure.x) else f" at {percent(point.nonreturn)}"
    if isinstance(measure, NonreturnAtError) and not randomising_agrees(one, name):
        point = one.curve.point_for_error(measure.error)
        return f" for {percent(point.error)}"
    return ""


def randomising_agrees(one: Evaluation, name: str) -> bool:
    """Whether a reading at a point is the same, to half a point or one input, if ties are broken by chance."""
    if name not in one.randomised or not one.figures[name].defined:
        return True
    measure = one.measures[name]
    if isinstance(measure, ErrorAtNonreturn) and measure.to is None:
        return one.curve.reaches(measure.x)
    return abs(one.randomised[name].value - one.figures[name].value) <= near_enough(one.n)


Region = tuple[float, float]


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


Drawn = Evaluation | Bare
"""What is drawn as a line."""


MOST_DOTS = 25
"""Distinct confidences up to which the cutoffs of a curve are marked."""


def has_few_cutoffs(curve: ErrorReturnCurve) -> bool:
    """Whether a curve has so few cutoffs that each is marked."""
    return 1 < curve.sweep.threshold.size <= MOST_DOTS


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
    band = None if bands == "none" else next((one.band for one in drawn if one.band is not None), None)
    if band is not None:
        reach = f"over {percent(band.region[0])} to {percent(band.region[1])}"
        whole = "for the whole curve" if band.region == (0.0, 1.0) else reach
        parts.append(f"{percent(band.level)} bands {'at each point' if bands == 'pointwise' else whole}")
    if region is not None:
        parts.append(f"shaded strip: critical region, {percent(region[0])} to {percent(region[1])}")
    if len(drawn) > 1:
        sliced = any(isinstance(one, Evaluation) and one.part is not None for one in drawn)
        parts.append("thickest line: all inputs" if sliced else "thickest line: baseline")
    if any(has_few_cutoffs(one.curve) for one in drawn):
        parts.append("dots: cutoffs; between them, ties broken at random")
    if left_out:
        parts.append(f"the {len(drawn) - 1} worst of {len(drawn) - 1 + left_out} slices")
    if crossings:
        parts.append("crosses: where the better system changes")
    late = [one for one in drawn if one.curve.floor > 0]
    if len(late) == 1:
        parts.append(f"{late[0].name} starts at {percent(late[0].curve.floor)}, the share it withholds by itself")
    elif late:
        parts.append("curves start where a system withholds by itself")
    return parts


def description(drawn: Sequence[Drawn], region: Region | None, choices: Sequence[Choice] = ()) -> str:
    """The plot in words."""
    parts = [_described(one, region) for one in drawn]
    text = f"Error-return plot: error rate against non-return rate, lower is better. {'; '.join(parts)}."
    for choice in choices:
        text += f" Marked: {choice_text(choice)}, with an error rate of {percent(choice.error)}"
        text += f" at {percent(choice.nonreturn)} non-return"
        if choice.guarantee is not None:
            text += (
                f"; a thin line marks the promise, {_PROMISED[choice.guarantee.of]} {percent(choice.guarantee.bound)}"
            )
        text += "."
    for at in deployed_points(drawn):
        text += f" Marked: {deployed_text(at, drawn)}, with an error rate of {percent(at.error)}"
        text += f" at {percent(at.nonreturn)} non-return."
    return text


def _described(one: Drawn, region: Region | None) -> str:
    """A curve in words."""
    start = f"{percent(float(one.curve.error[0]))} at {percent(one.curve.floor)} non-return"
    point = _at_point(one, region, " to ")
    return f"{one.name} falls from {start}{point}" if point.startswith(" to ") else f"{one.name} is at {start}{point}"


_PROMISED = {"error": "an error rate of", "risk": "errors among the answers returned of", "nonreturn": "non-returns of"}


def choice_text(choice: Choice) -> str:
    """A chosen threshold as a short label."""
    if choice.randomise is not None:
        return f"draw from {choice.printed_lower} on"
    return "return nothing" if choice.returns_nothing else f"threshold {choice.printed_threshold}"


def deployed_points(drawn: Sequence[Drawn]) -> list[AtCutoff]:
    """The thresholds at which whole systems are in use."""
    whole = [one for one in drawn if isinstance(one, Evaluation) and one.part is None]
    return [point for one in whole if (point := one.deployed_point) is not None]


def deployed_text(point: AtCutoff, drawn: Sequence[Drawn]) -> str:
    """The threshold at which a system is in use as a short label, with its name where there are several."""
    whose = f"{point.system}, " if sum(getattr(one, "part", None) is None for one in drawn) > 1 else ""
    return f"{whose}deployed: {point.threshold:g}"


def _at_point(one: Drawn, region: Region | None, lead: str) -> str:
    """The error rate at the point or over the range asked for; nothing where the curve starts later.

    Where ties leave no threshold between its start and the point, that is said instead.
    """
    asked = one.measures.get("error_at_nonreturn") if isinstance(one, Evaluation) else None
    if not isinstance(asked, ErrorAtNonreturn):
        asked = ErrorAtNonreturn() if region is None else ErrorAtNonreturn(x=(region[0] + region[1]) / 2)
    if asked.to is not None:
        value = float(asked.finish(one.curve.sweep))
        return "" if math.isnan(value) else f"{lead}a mean of {percent(value)} {point_words(asked)} non-return"
    point = one.curve.point_at(asked.x)
    if point is None:
        return ""
    if asked.x > one.curve.floor and point.nonreturn <= one.curve.floor and not one.curve.reaches(asked.x):
        return f", and no threshold withholds more and at most {percent(asked.x)}"
    rate = asked.x if one.curve.reaches(asked.x) else point.nonreturn
    return f"{lead}{percent(point.error)} at {percent(rate)} non-return"


MOST_SLICES, FEW_SLICES = 8, 7
"""Slices up to which all are drawn, and how many of more: the worst."""

LEAST_INPUTS = 30
"""Inputs a slice needs to be named as the best or the worst."""


def drawn_slices(evaluations: Sequence[Evaluation], system: str) -> list[Evaluation]:
    """The slices of a system to draw: all of a few, else the worst, the worst first."""
    own = [one for one in evaluations if one.system == system and one.part is not None]
    ranked = sorted(own, key=_error_at_point, reverse=True)
    return own if len(own) <= MOST_SLICES else ranked[:FEW_SLICES]


def slice_sentences(evaluations: Sequence[Evaluation], system: str) -> list[str]:
    """Which slice errs most and which least at the point of interest, of those with enough inputs.

    Where ties keep slices from the share asked for, each by as much as its own ties do, they are compared at the
    threshold of the whole.
    """
    own = [one for one in evaluations if one.system == system and one.part is not None]
    known = [one for one in own if one.n >= LEAST_INPUTS and _error_at_point(one) >= 0]
    if len(known) < 2:
        return []
    where = f"{point_words(_point_measure(known[0]))} non-return"
    rates = {str(one.part): _error_at_point(one) for one in known}
    tied = any(cutoff_words(one, "error_at_nonreturn") for one in known)
    cutoffs = {one.part: one for one in slices_at_one_threshold(evaluations) if one.system == system} if tied else {}
    if cutoffs:
        rates = {part: cutoffs[part].error for part in rates}
        whole = next(one for one in evaluations if one.system == system and one.part is None)
        threshold = next(iter(cutoffs.values())).threshold
        where = f"at the threshold of the whole, {curve_cutoff(whole.curve, threshold)}"
    worst, best = (chosen(known, key=lambda one: rates[str(one.part)]) for chosen in (max, min))
    if rates[str(worst.part)] == rates[str(best.part)]:
        return []
    texts = [_slice_text(one, cutoffs.get(str(one.part))) for one in (worst, best)]
    left = "" if len(known) == len(own) else f" of those with at least {LEAST_INPUTS} inputs and a defined rate"
    return [f"Of {len(own)} slices of {system}, {texts[0]} has the most errors {where}, {texts[1]} the fewest{left}."]


def _slice_text(one: Evaluation, at: AtCutoff | None) -> str:
    """A slice with its error rate: at the share asked for, or at the threshold of the whole."""
    figure, withheld = one.figures["error_at_nonreturn"], ""
    if at is not None:
        figure = figure_of(ErrorAtThreshold(at.threshold), one.sample, one.level)
        withheld = f" with {percent(at.nonreturn)} withheld"
    return f"{one.part} ({percent(figure.value)}{withheld}; {interval(figure)}; n = {one.n:,})"


def _error_at_point(one: Evaluation) -> float:
    """The error rate at the point of interest; -1 where it is undefined."""
    value = one.figures["error_at_nonreturn"].value
    return -1.0 if math.isnan(value) else value


def difference_text(test: SliceDifference) -> str:
    """A difference with its interval."""
    if test.what == "augrc":
        return with_interval(test.difference, test.low, test.high, write="{:+.4f}".format)
    return with_interval(test.difference, test.low, test.high, write=lambda rate: f"{100 * rate:+.1f}") + " points"
