"""The sections of a report on answers: the curve, the threshold to take, and who is better."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from demur.analyses.comparison import Comparison
from demur.analyses.evaluation import Evaluation, joined_notes
from demur.analyses.story import Advice, Answers
from demur.analyses.threshold import Choice, Stretch
from demur.views import words
from demur.views.numbers import tabled_percent
from demur.views.presentation import Presentation, Table, count_table, drawing, measure_table, of_comparison
from demur.views.words import percent

RATIOS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
"""What a non-return may cost, an error being 1, in the table of cheapest thresholds."""

MOST_PAIRS = 6
"""Pairs whose difference is drawn; the table has all."""

MOST_STRETCHES = 40
"""Thresholds that the cost path shows: of a long log there are ever more, and no eye tells them apart."""

MEANING = (
    "The curve shows what share of all inputs is answered wrongly (up) when a share of them is not answered at all "
    "(across), the least sure first. Lower is better; the left end is a system that answers everything it can."
)


def curve_section(answers: Answers) -> Presentation:
    """Error against non-return: what each system can do."""
    evaluations = answers.evaluations
    said = [" ".join(words.score_sentences(one)) for one in evaluations]
    return Presentation(
        title="Errors and non-returns",
        sentences=(MEANING, *said),
        tables=(measure_table(evaluations), count_table(evaluations)),
        figures=(),
        data=lambda: pl.concat([one.curve.frame(points=5000) for one in evaluations]),
        document={},
        notes=joined_notes(evaluations),
        signatures=tuple(one.signature for one in evaluations),
    )


def can_be_drawn(evaluations: Sequence[Evaluation]) -> bool:
    """Whether some system has answers to draw a curve of."""
    return any(one.sample.sweep.threshold.size for one in evaluations)


def can_be_chosen(evaluations: Sequence[Evaluation]) -> bool:
    """Whether the confidences of some system differ, so that a threshold can choose among its answers."""
    return any(one.sample.sweep.threshold.size > 1 for one in evaluations)


def advice_section(answers: Answers) -> Presentation:
    """Which threshold to take, and what it costs."""
    said = [" ".join(_advice_sentences(one)) for one in answers.advice]
    path = [one for one in answers.advice if len(one.advised.path) > 1 and one.advised.curve.threshold.size > 2]
    return Presentation(
        title="Which threshold",
        sentences=tuple(said),
        tables=(_choice_table(answers.advice), *([_price_table(path)] if path else [])),
        figures=(drawing("cost_path_chart", _leader(answers, path).advised, most=MOST_STRETCHES),) if path else (),
        data=lambda: pl.concat([one.advised.frame() for one in answers.advice]),
        document={"thresholds": [_advice_dict(one) for one in answers.advice]},
        notes=("the cost path is drawn for the system with the least area",) if len(path) > 1 else (),
    )


def _leader(answers: Answers, among: Sequence[Advice]) -> Advice:
    """The system with the least area under its curve."""
    areas = {one.system: one.figures["augrc"].value for one in answers.evaluations}
    return min(among, key=lambda one: areas[one.system])


def comparison_section(answers: Answers) -> Presentation | None:
    """Who is better, and where; nothing where there is one system."""
    comparison = answers.comparison
    if comparison is None:
        return None
    shown = of_comparison(comparison)
    figures: tuple[Callable[[], Any], ...] = shown.figures[1 : 1 + MOST_PAIRS]
    few = len(comparison.pairs) > MOST_PAIRS
    return replace(
        shown,
        title="Which system",
        sentences=tuple(_comparison_paragraphs(comparison)),
        tables=shown.tables[:1],
        figures=figures,
        warnings=shown.notes if any(comparison.dropped.values()) else (),
        notes=(*shown.notes, *([f"the differences of the first {MOST_PAIRS} pairs are drawn"] if few else [])),
        signatures=(),
    )


def _comparison_paragraphs(comparison: Comparison) -> list[str]:
    several = len(comparison.evaluations) > 2
    return [
        *([words.ranking_sentence(comparison.ranking)] if several else []),
        *(" ".join(words.pair_sentences(pair)) for pair in comparison.pairs),
    ]


def _advice_sentences(advice: Advice) -> list[str]:
    first = advice.choices[0]
    if advice.why is None:
        return words.choice_sentences(first)
    said = [f"{advice.system}: {no_threshold(first)}."]
    if math.isnan(advice.advised.threshold):
        return said
    effect = (
        f"Slices and examples are shown at {advice.advised.printed_threshold} instead ({advice.advised.rule}), which "
        f"withholds {percent(advice.advised.nonreturn)} and leaves {percent(advice.advised.error)} errors."
    )
    return [*said, effect]


def no_threshold(choice: Choice) -> str:
    """Why a rule gives no threshold: a promise may only need more inputs.

    It does where even answers without a single error would not be enough to make it.
    """
    promise = choice.guarantee
    n = choice.curve.sweep.n
    if promise is not None and 0 < promise.bound < 1 and n * math.log1p(-promise.bound) > math.log(promise.delta):
        return f"{n:,} inputs are too few to promise an error rate of at most {percent(promise.bound)} at any threshold"
    return f"no threshold keeps to the rule ({choice.rule})"


def _choice_table(advice: Sequence[Advice]) -> Table:
    rows = tuple(
        (one.system, choice.rule, *_cells(choice), "yes" if choice is one.advised else "")
        for one in advice
        for choice in (*one.choices, *(() if any(c is one.advised for c in one.choices) else (one.advised,)))
    )
    columns = ("system", "rule", "threshold", "non-return", "error", "right but withheld", "shown here")
    return Table("Thresholds", columns, rows)


def _cells(choice: Choice) -> tuple[str, ...]:
    rates = (choice.nonreturn, choice.error, choice.missed_chance)
    return ("return nothing" if math.isnan(choice.threshold) else choice.printed_threshold, *map(tabled_percent, rates))


def _price_table(advice: Sequence[Advice]) -> Table:
    """The cheapest threshold of each system for a few prices of a non-return."""
    rows = tuple((f"{ratio:g}", *(_cheapest(one.advised.path, ratio) for one in advice)) for ratio in RATIOS)
    columns = ("cost", *(one.system for one in advice))
    return Table("Cheapest threshold by what a non-return costs, an error being 1", columns, rows)


def _cheapest(path: Sequence[Stretch], ratio: float) -> str:
    best = next(stretch for stretch in path if stretch.ratio_from <= ratio <= stretch.ratio_to)
    cutoff = "return nothing" if math.isnan(best.threshold) else best.printed_threshold
    return f"{cutoff} (withholds {tabled_percent(best.nonreturn)}, errs {tabled_percent(best.error)})"


def _advice_dict(advice: Advice) -> dict[str, Any]:
    return {
        "system": advice.system,
        "advised": advice.advised.to_dict()["threshold"],
        **({} if advice.why is None else {"why": advice.why}),
        "choices": [choice.to_dict() for choice in advice.choices],
    }
