"""How results about N-best lists are shown: sentences, tables, figures, data and the JSON document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import polars as pl

from demur.analyses.nbest import NBestEvaluation, NBestEvaluations
from demur.analyses.nbest_comparison import NBestComparison, NBestPair
from demur.analyses.recalibration import Recalibrated
from demur.analyses.unit_figures import Difference
from demur.measures.calibration import Reliability
from demur.measures.intervals import Figure
from demur.views.nbest_words import (
    AS_PERCENT,
    NAMES,
    comparison_sentences,
    nbest_sentences,
    recalibration_sentences,
)
from demur.views.numbers import count, tabled_percent
from demur.views.presentation import MOST_IN_COLUMNS, Presentation, Table, drawing
from demur.views.words import p_value

BRIEF = ("ice", "ser", "oracle", "wser", "nce")
"""Measures that a narrow table keeps."""


@dataclass(frozen=True, slots=True)
class ItemCalibration:
    """What a reliability diagram needs to know about the items of a system."""

    name: str
    n: int
    reliability: Reliability | None
    figures: Mapping[str, Figure]

    @classmethod
    def of(cls, one: NBestEvaluation) -> ItemCalibration:
        """The calibration of the items that some hypothesis holds."""
        hypothesised = int(one.taken.rows.items["answered"].sum())
        return cls(one.name, hypothesised, one.reliability, {"ece": one.figures["item_ece"]})


def of_nbest(evaluations: Sequence[NBestEvaluation], *, recalibrated: Sequence[Recalibrated] = ()) -> Presentation:
    """How the evaluation of N-best lists is shown, and what recalibrating did."""
    whole = [one for one in evaluations if one.part is None]
    defined = [one for one in evaluations if one.figures["ice"].defined]
    document = NBestEvaluations(evaluations).to_dict()
    if recalibrated:
        document["recalibrated"] = [change.to_dict() for change in recalibrated]
    return Presentation(
        title="N-best lists",
        sentences=tuple(
            [sentence for one in whole for sentence in nbest_sentences(one)]
            + [sentence for change in recalibrated for sentence in recalibration_sentences(change)]
        ),
        tables=(
            measure_table(evaluations),
            part_table(evaluations),
            *(recalibration_table(change) for change in recalibrated),
            count_table(evaluations),
        ),
        figures=_figures(whole, defined),
        data=lambda: NBestEvaluations(evaluations).frame(),
        document=document,
        notes=(_how_made(evaluations[0]),),
        signatures=tuple(one.signature for one in evaluations),
    )


def _figures(whole: Sequence[NBestEvaluation], defined: Sequence[NBestEvaluation]) -> tuple[Any, ...]:
    figures: list[Any] = []
    if defined:
        figures.append(drawing("parts_chart", parts_frame(defined), level=defined[0].manner.level))
    answered = [one for one in whole if one.empty < one.n]
    if answered:
        items = [ItemCalibration.of(one) for one in answered]
        figures.append(drawing("reliability_chart", items, what="items"))
        figures += [partial(_top_chart, name, answered) for name in ("error_return_chart", "roc_chart")]
    return tuple(figures)


def _top_chart(name: str, evaluations: Sequence[NBestEvaluation]) -> Any:
    return drawing(name, [one.top for one in evaluations])()


def of_nbest_comparison(comparison: NBestComparison) -> Presentation:
    """How a comparison of N-best lists is shown."""
    systems = comparison.evaluations
    return Presentation(
        title="Comparison of N-best lists",
        sentences=tuple(comparison_sentences(comparison)),
        tables=(
            *(pair_table(pair) for pair in comparison.pairs),
            measure_table(systems),
            part_table(systems),
            count_table(systems),
        ),
        figures=(
            *(
                drawing("paired_chart", difference_frame(pair), a=pair.a, b=pair.b, level=comparison.level)
                for pair in comparison.pairs
            ),
            *_figures(systems, [one for one in systems if one.figures["ice"].defined]),
        ),
        data=comparison.frame,
        document=comparison.to_dict(),
        notes=(comparison.note, _how_made(systems[0])),
        signatures=tuple(one.signature for one in systems),
    )


def parts_frame(evaluations: Sequence[NBestEvaluation]) -> pl.DataFrame:
    """The parts of the ICE, a row per system or slice, with the interval of the ICE."""
    rows = [
        {
            "system": one.name,
            **{key: part.value for key, part in one.parts.items()},
            "low": one.figures["ice"].low,
            "high": one.figures["ice"].high,
        }
        for one in evaluations
    ]
    return pl.DataFrame(rows)


def difference_frame(pair: NBestPair) -> pl.DataFrame:
    """The differences of a pair, a row per measure, for the figure."""
    rows = [
        {
            "measure": NAMES[key],
            "difference": pair.differences[key].value,
            "low": pair.differences[key].low,
            "high": pair.differences[key].high,
            "better": pair.better[key],
            "percent": key in AS_PERCENT,
        }
        for key in NAMES
        if key in pair.differences and pair.differences[key].why is None
    ]
    return pl.DataFrame(rows)


def measure_table(evaluations: Sequence[NBestEvaluation]) -> Table:
    """Every measure of every system with its interval; in brief a row per system with those asked for most."""
    rows = tuple((NAMES[key], *(_cell(key, one.figures[key]) for one in evaluations)) for key in NAMES)
    columns = ("measure", *(one.name for one in evaluations))
    brief = Table(
        "Measures (all of them with intervals: -o page.html or --json)",
        ("system", "utterances", *(NAMES[key] for key in BRIEF)),
        tuple((one.name, f"{one.n:,}", *(_value(key, one.figures[key]) for key in BRIEF)) for one in evaluations),
    )
    level = 100 * evaluations[0].manner.level
    crowded = len(evaluations) > MOST_IN_COLUMNS
    return Table(f"Measures with {level:g} % intervals", columns, rows, brief=brief, crowded=crowded)


def part_table(evaluations: Sequence[NBestEvaluation]) -> Table:
    """What the ICE of each system is made of."""
    rows = tuple(
        (
            one.name,
            _cell("ice", one.figures["ice"]),
            *(_cell(key, one.parts[key]) for key in ("missing", "miscalibration", "discrimination", "uncertainty")),
        )
        for one in evaluations
    )
    columns = ("system", "ICE", "= missing", "+ miscalibration", "- discrimination", "+ uncertainty")
    short = tuple((row[0], *(cell.partition(" (")[0] for cell in row[1:])) for row in rows)
    title = "What the ICE is made of"
    return Table(title, columns, rows, brief=Table(title, columns, short), crowded=len(evaluations) > MOST_IN_COLUMNS)


def count_table(evaluations: Sequence[NBestEvaluation]) -> Table:
    """How much there is of everything."""
    rows = tuple(
        (
            one.name,
            f"{one.n:,}",
            count(one.reference_items),
            f"{one.taken.nbest.act.size:,}",
            f"{one.empty:,}",
            tabled_percent(one.given_out),
        )
        for one in evaluations
    )
    columns = ("system", "utterances", "items meant", "hypotheses", "without hypothesis", "mass given out")
    return Table("Utterances", columns, rows)


def pair_table(pair: NBestPair) -> Table:
    """The difference of two systems in every measure."""
    rows = []
    for key in NAMES:
        if key not in pair.differences:
            continue
        one = pair.differences[key]
        value, ends = _change(key, one)
        side = {"a is better": pair.a, "b is better": pair.b}.get(pair.side(key), "–")
        p = "–" if one.p_adjusted != one.p_adjusted else p_value(one.p_adjusted)
        rows.append((NAMES[key] + (" (points)" if key in AS_PERCENT else ""), value, ends, p, side))
    columns = ("measure", "difference", f"{100 * pair.level:g} % interval", "corrected p", "better")
    return Table(f"{pair.a} less {pair.b}", columns, tuple(rows))


def recalibration_table(change: Recalibrated) -> Table:
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
    return Table(f"{change.system} recalibrated", ("measure", "as given", "recalibrated", "change"), rows)


def _cell(key: str, figure: Figure) -> str:
    if not figure.defined:
        return f"undefined ({figure.why})"
    scale, form = (100, ".1f") if key in AS_PERCENT else (1, ".4f")
    ends = "no interval" if figure.low != figure.low else f"{scale * figure.low:{form}} to {scale * figure.high:{form}}"
    return f"{_value(key, figure)} ({ends})"


def _change(key: str, one: Difference) -> tuple[str, str]:
    """A difference and the ends of its interval, rates in percentage points."""
    scale, form = (100, "+.1f") if key in AS_PERCENT else (1, "+.4f")
    ends = "no interval" if one.low != one.low else f"{scale * one.low:{form}} to {scale * one.high:{form}}"
    return "undefined" if one.value != one.value else f"{scale * one.value:{form}}", ends


def _value(key: str, figure: Figure) -> str:
    if not figure.defined:
        return "–"
    return tabled_percent(figure.value) if key in AS_PERCENT else f"{figure.value:.4f}"


def _how_made(one: NBestEvaluation) -> str:
    return (
        f"ICE and ACE with a floor of {one.manner.floor:g} under probabilities; NCE over items that some hypothesis "
        f"holds, confidences clipped to [{one.manner.clip:g}, 1 - {one.manner.clip:g}]"
    )
