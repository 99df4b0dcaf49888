"""How results about N-best lists are shown: sentences, tables, figures and data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import polars as pl

from demur.core.show.html import drawn, paragraphs, pictured
from demur.core.show.numbers import (
    Wording,
    count,
    ends,
    interval,
    listed,
    number,
    p_value,
    percent,
    tabled_p,
    tabled_percent,
    with_interval,
)
from demur.core.show.presentation import Drawing, Presentation, ResultTable, drawing
from demur.core.show.results import register
from demur.core.stats.calibration import Reliability
from demur.core.stats.intervals import Difference, Figure
from demur.nbest_lists.evaluate import NBestComparison, NBestEvaluation, NBestEvaluations, NBestPair
from demur.nbest_lists.floors import floor_figure, floor_table
from demur.nbest_lists.recalibrate import Recalibrated
from demur.returns.presentation import MOST_IN_COLUMNS

NAMES = {
    "ice": "ICE",
    "ser": "SER, top hypothesis",
    "wser": "WSER",
    "oracle": "oracle error (ORA)",
    "nce": "NCE, all hypothesised items",
    "nce_top": "NCE, top hypothesis' items",
    "act_error": "act error, top hypothesis",
    "act_wser": "act WSER",
    "act_oracle": "act oracle error",
    "act_nce": "act NCE",
    "ace": "ACE",
    "precision": "precision, top hypothesis",
    "recall": "recall, top hypothesis",
    "f1": "F1, top hypothesis",
    "weighted_precision": "weighted precision",
    "weighted_recall": "weighted recall",
    "weighted_f1": "weighted F1",
    "roc_auc": "ROC area, top hypothesis",
    "item_ece": "ECE of items",
    "ice_floored_share": "meant items at the floor",
}
"""What measures of N-best lists are called in tables and figures, in the order in which they are shown."""

AS_PERCENT = NAMES.keys() - {"ice", "nce", "nce_top", "act_nce", "ace", "roc_auc", "item_ece"}
"""Measures shown in percent."""

UTTERANCES = Wording("utterance", "utterances")

PARTS_CHART, PAIRED_CHART = "nbest_lists.charts.parts_chart", "nbest_lists.charts.paired_chart"
MUCH = 0.05
"""Share of the ICE from which it is worth a sentence."""


def show_value(key: str, value: float) -> str:
    """A measure's value as it is read.

    >>> show_value("wser", 0.2061), show_value("ice", 1.86635)
    ('20.6 %', '1.866')
    """
    return percent(value) if key in AS_PERCENT else number(value)


def nbest_sentences(one: NBestEvaluation) -> list[str]:
    """What the lists of one system show."""
    ice = one.figures["ice"]
    if not ice.defined:
        return [f"{one.name}: the ICE of {UTTERANCES.with_count(one.n)} is undefined ({ice.why})."]
    share = one.figures["ice_floored_share"].value
    items = f"{count(one.reference_items)} {'item' if one.reference_items == 1 else 'items'}"
    sentences = [
        f"{one.name}: ICE {number(ice.value)} ({interval(ice, number)}) on {UTTERANCES.with_count(one.n)} with "
        f"{items} meant; {percent(share)} of these are at the floor of {one.settings.least:g}."
    ]
    sentences += _part_sentences(one)
    sentences.append(_choice_sentence(one.figures["ser"].value, one.figures["oracle"].value))
    if one.given_out < 1 - 1e-6:
        sentences.append(f"On average {percent(1 - one.given_out)} of the mass belongs to no hypothesis.")
    return sentences


def _choice_sentence(ser: float, oracle: float) -> str:
    """How far the top hypotheses are from the best of the lists; errors may outnumber the items, so no shares.

    >>> _choice_sentence(0.25, 0.2)
    'The top hypothesis makes 25 errors per 100 items meant, the best of each list 20: choosing better within the \
lists could correct 20 % of them.'
    """
    made, least = (percent(rate).removesuffix(" %") for rate in (ser, oracle))
    errors = f"The top hypothesis makes {made} errors per 100 items meant, the best of each list {least}"
    if ser <= 0:
        return f"{errors}."
    if oracle >= ser:
        return f"{errors}: no other choice within the lists would help."
    return f"{errors}: choosing better within the lists could correct {percent((ser - oracle) / ser)} of them."


def _part_sentences(one: NBestEvaluation) -> list[str]:
    ice = one.figures["ice"].value
    missing, mendable = one.parts["missing"], one.parts["miscalibration"]
    if not ice > 0:
        return []
    lost = f"{percent(missing.value / ice)} of it are items that no hypothesis holds; only better or longer lists help."
    losses = [lost] if missing.value > 0 else []
    if mendable.value < -MUCH * ice:
        begin = f"At the floor of {one.settings.least:g} the split does not say whether confidences are off"
        return [*losses, f"{begin}: the map that it compares with ignores the floor."]
    if mendable.value < 0:
        return [*losses, "Confidences are about right: recalibrating could win nothing back."]
    gain = f"recalibrating could win back {number(mendable.value)} ({interval(mendable, number)})"
    off = "are off" if mendable.low > 0 else "look off, but that is not shown"
    return [*losses, f"Confidences {'are about right' if mendable.value / ice < MUCH else off}: {gain}."]


def pair_sentences(pair: NBestPair) -> list[str]:
    """The verdict on two systems, and the measures that say otherwise."""
    one = pair.differences["ice"]
    if one.why is not None:
        return [f"{pair.a} and {pair.b}: the ICE is {one.why}."]
    tested = "not tested" if one.p_adjusted != one.p_adjusted else p_value(one.p_adjusted)
    gap = f"ICE of {pair.a} less that of {pair.b}: {_with_ends(one)}, {tested}"
    verdicts = {
        "a better": f"{pair.a} is better than {pair.b}",
        "b better": f"{pair.b} is better than {pair.a}",
        "no significant difference": f"{pair.a} and {pair.b}: no significant difference",
    }
    sentences = [f"{verdicts[pair.verdict]}. {gap}."]
    opposed = {"a better", "b better"}
    against = [NAMES[key] for key in ("wser", "oracle", "nce", "f1") if {pair.verdict, pair.side(key)} == opposed]
    if against:
        sentences.append(f"{listed(against)} {'says' if len(against) == 1 else 'say'} the opposite.")
    return sentences


def _with_ends(one: Difference) -> str:
    return with_interval(f"{one.value:+.4g}", one.low, one.high, write=number)


def recalibration_sentence(change: Recalibrated) -> str:
    """What recalibrating on another file did."""
    one = change.differences["ice"]
    begin = f"{change.system}: recalibrated on {change.fitted_on:,} items of another file"
    if one.why is not None:
        return f"{begin}; the ICE is undefined."
    before, after = number(change.before["ice"]), number(change.after["ice"])
    return f"{begin}, the ICE goes from {before} to {after}; change {_with_ends(one)}."


BRIEF = ("ice", "ser", "oracle", "wser", "nce")
"""Measures that a narrow table keeps."""


@dataclass(frozen=True, slots=True)
class ItemCalibration:
    """What a reliability diagram needs to know about the items of a system."""

    name: str
    n: int
    reliability: Reliability | None
    figures: Mapping[str, Figure]


def of_nbest(evaluations: NBestEvaluations) -> Presentation:
    """How the evaluation of N-best lists is shown, and what recalibrating did; or their comparison."""
    if evaluations.compared:
        return of_nbest_comparison(evaluations.comparison)
    recalibrated = evaluations.recalibrated
    whole = [one for one in evaluations if one.part is None]
    defined = [one for one in evaluations if one.figures["ice"].defined]
    return Presentation(
        title="N-best lists",
        sentences=(
            *(sentence for one in whole for sentence in nbest_sentences(one)),
            *map(recalibration_sentence, recalibrated),
            *(f"{one.note}." for one in evaluations.scales),
        ),
        tables=(
            measure_table(evaluations),
            part_table(evaluations),
            *_floor_tables(whole),
            *(recalibration_table(change) for change in recalibrated),
            count_table(evaluations),
        ),
        figures=_figures(whole, defined),
        data=evaluations.frame,
        document=evaluations.to_dict(),
        notes=evaluations.notes,
        warnings=evaluations.warnings,
        signatures=tuple(one.signature for one in evaluations),
    )


def _floor_tables(whole: Sequence[NBestEvaluation]) -> list[ResultTable]:
    defined = [one for one in whole if one.figures["ice"].defined]
    return [floor_table(defined)] if defined else []


def _figures(whole: Sequence[NBestEvaluation], defined: Sequence[NBestEvaluation]) -> tuple[Drawing, ...]:
    figures: list[Any] = []
    if defined:
        figures.append(drawing(PARTS_CHART, parts_frame(defined), **chart_facts(defined)))
        systems = [one for one in defined if one.part is None]
        figures += [floor_figure(systems)] if systems else []
    answered = [one for one in whole if one.empty < one.n]
    if answered:
        items = [
            ItemCalibration(one.name, one.taken.answered_items, one.reliability, {"ece": one.figures["item_ece"]})
            for one in answered
        ]
        figures.append(drawing("returns.charts.readings.reliability_chart", items, what="items"))
        tops = ("error_return.error_return", "readings.roc")
        figures += [Drawing(name.partition(".")[2], partial(_top_chart, name, answered)) for name in tops]
    return tuple(figures)


def _top_chart(name: str, evaluations: Sequence[NBestEvaluation]) -> Any:
    return drawing(f"returns.charts.{name}_chart", [one.top for one in evaluations])()


def of_nbest_comparison(comparison: NBestComparison) -> Presentation:
    """How a comparison of N-best lists is shown."""
    systems = comparison.evaluations
    return Presentation(
        title="Comparison of N-best lists",
        sentences=tuple(sentence for pair in comparison.pairs for sentence in pair_sentences(pair)),
        tables=(
            *(pair_table(pair) for pair in comparison.pairs),
            measure_table(systems),
            part_table(systems),
            *_floor_tables(systems),
            count_table(systems),
        ),
        figures=(
            *(
                drawing(PAIRED_CHART, difference_frame(pair), **_pair_titles(pair), **_floor_of(systems))
                for pair in comparison.pairs
            ),
            *_figures(systems, [one for one in systems if one.figures["ice"].defined]),
        ),
        data=comparison.frame,
        document=comparison.to_dict(),
        notes=comparison.notes,
        warnings=comparison.warnings,
        signatures=tuple(one.signature for one in systems),
    )


def chart_facts(evaluations: Sequence[NBestEvaluation]) -> dict[str, float]:
    """What figures say of how the measures were made."""
    how = evaluations[0].settings
    return {"level": how.level, "floor": how.least}


def parts_frame(evaluations: Sequence[NBestEvaluation]) -> pl.DataFrame:
    """The parts of the ICE, a row per system or slice, with the interval of the ICE."""
    rows = []
    for one in evaluations:
        ice, parts = one.figures["ice"], {key: part.value for key, part in one.parts.items()}
        rows.append({"system": one.name, **parts, "low": ice.low, "high": ice.high})
    return pl.DataFrame(rows)


def difference_frame(pair: NBestPair) -> pl.DataFrame:
    """The differences of a pair, a row per measure, for the figure."""
    columns = ("measure", "difference", "low", "high", "better", "percent")
    rows = [
        (name, one.value, one.low, one.high, pair.better[key], key in AS_PERCENT)
        for key, name in NAMES.items()
        if (one := pair.differences.get(key)) is not None and one.why is None
    ]
    return pl.DataFrame(rows, schema=columns, orient="row")


def measure_table(evaluations: Sequence[NBestEvaluation]) -> ResultTable:
    """Every measure of every system with its interval; in brief a row per system with those asked for most."""
    rows = tuple((NAMES[key], *(_cell(key, one.figures[key]) for one in evaluations)) for key in NAMES)
    columns = ("measure", *(one.name for one in evaluations))
    brief = ResultTable(
        "Measures (all of them with intervals: -o page.html or --json)",
        ("system", "utterances", *(NAMES[key] for key in BRIEF)),
        tuple((one.name, f"{one.n:,}", *(_value(key, one.figures[key]) for key in BRIEF)) for one in evaluations),
    )
    level = 100 * evaluations[0].settings.level
    crowded = len(evaluations) > MOST_IN_COLUMNS
    return ResultTable(f"Measures with {level:g} % intervals", columns, rows, brief=brief, crowded=crowded)


def part_table(evaluations: Sequence[NBestEvaluation]) -> ResultTable:
    """What the ICE of each system is made of."""
    keys = ("missing", "miscalibration", "discrimination", "uncertainty")
    rows = tuple(
        (one.name, _cell("ice", one.figures["ice"]), *(_cell(key, one.parts[key]) for key in keys))
        for one in evaluations
    )
    columns = ("system", "ICE", *(f"{sign} {key}" for sign, key in zip("=+-+", keys, strict=True)))
    short = tuple((row[0], *(cell.partition(" (")[0] for cell in row[1:])) for row in rows)
    title, crowded = "What the ICE is made of", len(evaluations) > MOST_IN_COLUMNS
    return ResultTable(title, columns, rows, brief=ResultTable(title, columns, short), crowded=crowded)


def count_table(evaluations: Sequence[NBestEvaluation]) -> ResultTable:
    """How much there is of everything."""
    rows = tuple(
        (
            one.name,
            f"{one.n:,}",
            count(one.reference_items),
            f"{one.taken.hypotheses:,}",
            f"{one.empty:,}",
            tabled_percent(one.given_out),
        )
        for one in evaluations
    )
    columns = ("system", "utterances", "items meant", "hypotheses", "without hypothesis", "mass given out")
    return ResultTable("Utterances", columns, rows)


def pair_table(pair: NBestPair) -> ResultTable:
    """The difference of two systems in every measure."""
    rows = []
    for key in [key for key in NAMES if key in pair.differences]:
        one = pair.differences[key]
        side = {"a better": pair.a, "b better": pair.b}.get(pair.side(key), "–")
        p = tabled_p(one.p_adjusted)
        rows.append((NAMES[key] + (" (points)" if key in AS_PERCENT else ""), *_change(key, one), p, side))
    columns = ("measure", "difference", f"{100 * pair.level:g} % interval", "corrected p", "better")
    return ResultTable(f"{pair.a} less {pair.b}", columns, tuple(rows))


def recalibration_table(change: Recalibrated) -> ResultTable:
    """Measures of items before and after recalibrating."""
    rows = tuple(
        (
            NAMES[key],
            _value(key, Figure(change.before[key])),
            _value(key, Figure(change.after[key])),
            "{} ({})".format(*_change(key, one)) + (" points" if key in AS_PERCENT else ""),
        )
        for key, one in change.differences.items()
    )
    return ResultTable(f"{change.system} recalibrated", ("measure", "as given", "recalibrated", "change"), rows)


def _cell(key: str, figure: Figure) -> str:
    if not figure.defined:
        return f"undefined ({figure.why})"
    scale, form = (100, ".1f") if key in AS_PERCENT else (1, ".4f")
    return f"{_value(key, figure)} ({interval(figure, lambda value: f'{scale * value:{form}}')})"


def _change(key: str, one: Difference) -> tuple[str, str]:
    """A difference and the ends of its interval, rates in percentage points."""
    scale, form = (100, "+.1f") if key in AS_PERCENT else (1, "+.4f")
    span = ends(one.low, one.high, lambda value: f"{scale * value:{form}}") or "no interval"
    return "undefined" if one.value != one.value else f"{scale * one.value:{form}}", span


def _value(key: str, figure: Figure) -> str:
    if not figure.defined:
        return "–"
    return tabled_percent(figure.value) if key in AS_PERCENT else f"{figure.value:.4f}"


def _floor_of(systems: Sequence[NBestEvaluation]) -> dict[str, float]:
    return {"floor": systems[0].settings.least}


def _pair_titles(pair: NBestPair) -> dict[str, Any]:
    return {"a": pair.a, "b": pair.b, "level": pair.level}


register(
    NBestEvaluation,
    chart=drawn(PARTS_CHART, lambda one: parts_frame([one]), lambda one: chart_facts([one])),
    present=lambda one: of_nbest(NBestEvaluations([one]).with_notes((one.settings.note,))),
)
register(
    NBestEvaluations,
    chart=drawn(PARTS_CHART, parts_frame, chart_facts),
    present=of_nbest,
)
register(
    NBestPair,
    chart=drawn(PAIRED_CHART, difference_frame, _pair_titles),
    page=pictured(lambda pair: paragraphs(pair_sentences(pair))),
)
register(
    NBestComparison,
    chart=drawn(PARTS_CHART, lambda one: parts_frame(one.evaluations), lambda one: chart_facts(one.evaluations)),
    present=of_nbest_comparison,
)
