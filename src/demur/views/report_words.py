"""The verdict of a report: the few sentences that someone reads who reads nothing else."""

from __future__ import annotations

import math
from collections.abc import Sequence

from demur.analyses.evaluation import Evaluation
from demur.analyses.outcome.fitting import OutcomeFit
from demur.analyses.story import Advice, Answers, Story
from demur.views import words
from demur.views.outcome_presentation import price_sentences
from demur.views.presentation import Presentation
from demur.views.report_answers import no_threshold
from demur.views.words import listed, percent

MOST_SYSTEMS = 6
"""Systems that the verdict tells of one by one."""


def verdict(story: Story, others: Sequence[Presentation]) -> list[str]:
    """What the answers show, then the first sentence of every other part."""
    said = [] if story.answers is None else _answers(story.answers)
    return [*said, *(part.sentences[0] for part in others if part.sentences)]


def _answers(answers: Answers) -> list[str]:
    said = []
    if answers.comparison is not None:
        said.append(f"{words.comparison_title(answers.comparison)}.")
    pairs = list(zip(answers.evaluations, answers.advice, strict=True))
    said += [_system(one, advice) for one, advice in pairs[:MOST_SYSTEMS]]
    if len(pairs) > MOST_SYSTEMS:
        said.append(f"{len(pairs) - MOST_SYSTEMS} more systems are told of below.")
    return [*said, *_slices(answers), *_calibration(answers)]


def _system(one: Evaluation, advice: Advice) -> str:
    """What one system does when it answers everything, and at the threshold advised."""
    forced = one.figures["forced_error"]
    start = f"{one.system}: {percent(forced.value)} of {one.n:,} inputs are answered wrongly when all is returned"
    if one.withheld + one.failed == one.n:
        return f"{one.system} answers none of {one.n:,} inputs."
    if one.curve.floor > 0:
        start += f", and {percent(one.curve.floor)} not at all"
    if one.sample.sweep.threshold.size < 2:
        return f"{start}; its confidences do not differ, so no threshold can choose among its answers."
    choice = advice.choices[0]
    if math.isnan(choice.threshold):
        return f"{start}; {no_threshold(choice)}."
    promise = (
        "" if choice.guarantee is None else f", and promises at most {percent(choice.guarantee.bound)} on new inputs"
    )
    return (
        f"{start}; returning answers from confidence {choice.printed_threshold} on leaves {percent(choice.error)} "
        f"errors, withholds {percent(choice.nonreturn)}{promise}."
    )


def outcome_sentence(fit: OutcomeFit) -> str:
    """How far the outcome of dialogues follows from their turns, and what would be worth mending."""
    found = fit.regression
    if not found.chosen.terms or found.nested.r2 <= 0:
        return (
            f"{_capital(found.outcome)} does not follow from how turns are understood, as far as these dialogues tell."
        )
    worth = price_sentences(fit.prices, found.outcome)
    return " ".join(
        [
            f"{_capital(found.outcome)} follows from how turns are understood: {percent(max(found.chosen.r2, 0.0))} of "
            f"its variance in these dialogues, {percent(found.nested.r2)} in dialogues that the model has not seen.",
            *worth,
        ]
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _slices(answers: Answers) -> list[str]:
    if answers.slices is None:
        return []
    worse = [test for test in answers.slices.shown if test.what == "error" and test.difference > 0]
    if not worse:
        return []
    worst = max(worse, key=lambda test: test.difference)
    many = "One slice errs" if len(worse) == 1 else f"{len(worse)} slices err"
    of = f" of {worst.system}" if len(answers.evaluations) > 1 else ""
    lead = "" if len(worse) == 1 else ", most of all"
    return [
        f"{many} more than the rest{lead}{':' if len(worse) == 1 else ''} {worst.part}{of}: "
        f"{percent(worst.inside)} against {percent(worst.outside)}."
    ]


def _calibration(answers: Answers) -> list[str]:
    off = [one for one in answers.calibrations if one.advice == "recalibrate"]
    if not off:
        return []
    worst = max(one.ece for one in off)
    whose, much = ("its", percent(worst)) if len(off) == 1 else ("their", f"up to {percent(worst)}")
    return [f"Recalibrate {listed([one.system for one in off])}: {whose} confidences are off by {much} on average."]
