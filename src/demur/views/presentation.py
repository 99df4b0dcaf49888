"""A result made ready to be shown: sentences first, then tables, figures, data and the JSON document."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import polars as pl

from demur.analyses.comparison import Comparison
from demur.analyses.evaluation import Evaluation
from demur.analyses.labels import ClassReport
from demur.analyses.threshold import Choice
from demur.data.responses import Responses
from demur.measures.base import Measure
from demur.measures.classes import class_values
from demur.measures.intervals import Figure
from demur.measures.returns import ErrorAtNonreturn, NonreturnAtError
from demur.views import words

SHORT_NAMES = {
    "forced_error": "error, all returned",
    "nonreturn_floor": "withheld by itself (x0)",
    "augrc": "AUGRC",
    "aurc": "AURC",
    "e_aurc": "e-AURC",
    "auroc": "AUROC",
    "ranking_skill": "ranking skill",
    "qald_precision": "QALD-1 precision",
    "qald_recall": "QALD-1 recall",
    "brier": "Brier score",
    "ece": "ECE",
    "nce": "NCE",
}
"""How measures without parameters of their own are called in tables; others by what they are asked."""

UNITS_OF_PERCENT = frozenset(
    {"forced_error", "nonreturn_floor", "error_at_nonreturn", "nonreturn_at_error", "qald_precision", "qald_recall"}
)
"""Measures shown in percent; the others are shown as they are."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of text: a heading, names of columns, and rows."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def markdown(self) -> str:
        """The table in Markdown."""
        cells = [[cell.replace("|", "\\|") for cell in row] for row in (self.columns, *self.rows)]
        rule = ["---"] * len(self.columns)
        lines = [f"| {' | '.join(row)} |" for row in (cells[0], rule, *cells[1:])]
        return "\n".join([f"### {self.title}", "", *lines])


@dataclass(frozen=True, slots=True)
class Presentation:
    """Everything a result shows, in the order a reader wants it."""

    title: str
    sentences: tuple[str, ...]
    tables: tuple[Table, ...]
    figures: tuple[Callable[[], Any], ...]
    """Each makes one chart; the first is the main one."""
    data: Callable[[], pl.DataFrame]
    """Makes the table behind the main figure."""
    document: dict[str, Any]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    signatures: tuple[str, ...] = ()
    parts: tuple[Presentation, ...] = ()
    """Results that this one is made of, each shown in a section of its own."""

    def markdown(self) -> str:
        """The result in Markdown: verdict, tables, notes, signatures."""
        parts = [f"## {self.title}", " ".join(self.sentences), *(table.markdown() for table in self.tables)]
        parts += [part.markdown() for part in self.parts]
        parts += [f"> **Warning:** {warning}" for warning in self.warnings]
        parts += [f"- {note}" for note in self.notes]
        parts += [f"`{signature}`" for signature in self.signatures]
        return "\n\n".join(parts) + "\n"


def of_scores(evaluations: Sequence[Evaluation], *, choices: Sequence[Choice] = ()) -> Presentation:
    """How the evaluation of one or more systems is shown."""
    whole = [evaluation for evaluation in evaluations if evaluation.part is None]
    sliced = len(whole) < len(evaluations)
    figures: list[Callable[[], Any]] = [
        _drawing("error_return_chart", whole, choices=tuple(choices), region=region_of(whole)),
        *([_drawing("measure_chart", evaluations, "error_at_nonreturn")] if sliced else []),
        *(_drawing("missed_chance_chart", one) for one in whole[:1]),
        _drawing("risk_coverage_chart", whole),
        *([_drawing("reliability_chart", whole)] if all(one.probabilistic for one in whole) else []),
        _drawing("roc_chart", whole),
        _drawing("det_chart", whole),
    ]
    return Presentation(
        title="Error-return analysis",
        sentences=tuple(sentence for one in whole for sentence in words.score_sentences(one)),
        tables=(measure_table(evaluations), count_table(evaluations)),
        figures=tuple(figures),
        data=lambda: pl.concat([one.curve.frame(points=5000) for one in evaluations]),
        document={"systems": [one.to_dict() for one in evaluations]},
        signatures=tuple(one.signature for one in evaluations),
    )


def of_comparison(comparison: Comparison) -> Presentation:
    """How a comparison of systems is shown."""
    systems = comparison.evaluations
    figures: list[Callable[[], Any]] = [_drawing("error_return_chart", systems, region=region_of(systems))]
    figures += [_drawing("difference_chart", pair) for pair in comparison.pairs]
    return Presentation(
        title="Comparison of systems",
        sentences=tuple(words.comparison_sentences(comparison)),
        tables=(pair_table(comparison), measure_table(systems), count_table(systems)),
        figures=tuple(figures),
        data=lambda: pl.concat([pair.frame() for pair in comparison.pairs]),
        document=comparison.to_dict(),
        notes=(comparison.note,),
        signatures=tuple(one.signature for one in systems),
    )


def of_choice(choice: Choice, evaluation: Evaluation) -> Presentation:
    """How a chosen threshold is shown."""
    rows = tuple(
        (
            f"{stretch.ratio_from:.3g} to {stretch.ratio_to:.3g}",
            "return nothing" if stretch.threshold != stretch.threshold else f"{stretch.threshold:.6g}",
            words.percent(stretch.nonreturn),
            words.percent(stretch.error),
        )
        for stretch in choice.path
    )
    return Presentation(
        title="Threshold",
        sentences=tuple(words.choice_sentences(choice)),
        tables=(Table("Best threshold by cost ratio", ("cost ratio", "threshold", "non-return", "error"), rows),),
        figures=(
            _drawing("error_return_chart", [evaluation], choices=(choice,), region=None),
            _drawing("cost_path_chart", choice),
        ),
        data=choice.frame,
        document=choice.to_dict(),
        signatures=(evaluation.signature,),
    )


def of_classes(reports: Sequence[ClassReport]) -> Presentation:
    """How per-class scores are shown; with one system its figures stand at the top level of the document."""
    documents = [report.to_dict() for report in reports]
    document = documents[0] if len(documents) == 1 else {"systems": documents}
    return Presentation(
        title="Classes",
        sentences=tuple(sentence for report in reports for sentence in words.class_sentences(report)),
        tables=tuple(class_table(report) for report in reports),
        figures=tuple(_drawing("confusion_chart", report) for report in reports),
        data=lambda: pl.concat([one.frame().select(pl.lit(one.system).alias("system"), pl.all()) for one in reports]),
        document=document,
        signatures=tuple(report.signature for report in reports),
    )


def of_validation(responses: Responses) -> Presentation:
    """How a table that was read and found sound is shown."""
    frame = responses.frame
    counts = frame.group_by("system", maintain_order=True).agg(
        pl.len().alias("rows"),
        pl.col("answered").sum(),
        (~pl.col("answered") & ~pl.col("failed")).sum().alias("withheld"),
        pl.col("failed").sum(),
        pl.col("out_of_scope").sum(),
        pl.col("right").sum(),
        pl.col("dialogue").n_unique().alias("dialogues"),
        pl.col("confidence").min().alias("lowest_confidence"),
        pl.col("confidence").max().alias("highest_confidence"),
    )
    counts = counts.with_columns(dialogues=pl.when(frame["dialogue"].null_count() < frame.height).then("dialogues"))
    slices = frame.columns[frame.columns.index("weight") + 1 :]
    rows = tuple(tuple("-" if cell is None else str(cell) for cell in row) for row in counts.rows())
    return Presentation(
        title="Tables read",
        sentences=(f"{frame.height:,} rows of {len(responses.systems)} system(s) are sound.",),
        tables=(Table("Systems", tuple(name.replace("_", " ") for name in counts.columns), rows),),
        figures=(),
        data=lambda: counts,
        document={"valid": True, "n": frame.height, "systems": counts.to_dicts(), "slices": slices},
        notes=(f"columns to slice by: {', '.join(slices)}",) if slices else (),
    )


def measure_table(evaluations: Sequence[Evaluation]) -> Table:
    """Every measure of every system, with intervals."""
    measures = evaluations[0].measures
    rows = tuple(
        (measure_name(name, measure), *(_shown(name, one.figures[name]) for one in evaluations))
        for name, measure in measures.items()
    )
    level = words.percent(evaluations[0].level)
    return Table(f"Measures with {level} intervals", ("measure", *(one.name for one in evaluations)), rows)


def count_table(evaluations: Sequence[Evaluation]) -> Table:
    """How many inputs each system answered, withheld or failed on."""
    rows = tuple(
        (one.name, f"{one.n:,}", f"{one.withheld:,}", f"{one.failed:,}", f"{one.out_of_scope:,}") for one in evaluations
    )
    return Table("Inputs", ("system", "inputs", "withheld by itself", "failed", "out of scope"), rows)


def pair_table(comparison: Comparison) -> Table:
    """The verdict on each pair with the test of the areas."""
    rows = []
    for pair in comparison.pairs:
        low, high = pair.area.interval(pair.level)
        test = pair.mcnemar
        rows.append(
            (
                pair.a,
                pair.b,
                pair.verdict,
                f"{pair.area.value:+.4f} ({low:+.4f} to {high:+.4f})",
                words.p_value(pair.p_adjusted),
                "unpaired" if test is None else f"{test.a_only:,} : {test.b_only:,}, {words.p_value(test.p)}",
            )
        )
    at = next((words.percent(pair.mcnemar.x) for pair in comparison.pairs if pair.mcnemar), "")
    columns = ("a", "b", "verdict", "area of a less b", "corrected p", f"errs alone at {at} (McNemar)")
    return Table("Pairs", columns, tuple(rows))


def class_table(report: ClassReport) -> Table:
    """Precision, recall and F1 of each class, then the averages."""
    values, support = class_values(report.confusion), report.confusion.support
    rows = [
        (
            label,
            *(words.number(float(values[part][place])) for part in ("precision", "recall", "f1")),
            f"{support[place]:,.0f}",
        )
        for place, label in enumerate(report.confusion.labels)
    ]
    for average in ("macro", "weighted", "micro"):
        figures = (report.figures[f"{average}_{part}"].value for part in ("precision", "recall", "f1"))
        rows.append(
            (f"({average} average)", *(words.number(value) for value in figures), f"{report.confusion.total:,.0f}")
        )
    return Table(report.system, ("class", "precision", "recall", "F1", "support"), tuple(rows))


def region_of(evaluations: Sequence[Evaluation]) -> tuple[float, float]:
    """The critical region to shade: the range asked for, or five points to each side of the rate asked for."""
    measure: Any = evaluations[0].measures["error_at_nonreturn"]
    if measure.to is not None:
        return measure.x, measure.to
    return max(0.0, measure.x - 0.05), min(1.0, measure.x + 0.05)


def _drawing(name: str, *arguments: Any, **options: Any) -> Callable[[], Any]:
    """A chart to be drawn when it is wanted, so that nothing heavy loads before."""
    return lambda: getattr(import_module("demur.views.charts"), name)(*arguments, **options)


def measure_name(name: str, measure: Measure) -> str:
    """What a measure is called in a table, its parameters included."""
    if isinstance(measure, ErrorAtNonreturn):
        upper = "" if measure.to is None else f" to {words.percent(measure.to)}"
        return f"error at {words.percent(measure.x)}{upper} non-return"
    if isinstance(measure, NonreturnAtError):
        return f"non-return for {words.percent(measure.error)} error"
    convention = getattr(measure, "convention", None)
    return SHORT_NAMES.get(name, measure.title) + (f" ({convention})" if convention else "")


def _shown(name: str, figure: Figure) -> str:
    if not figure.defined:
        return f"undefined ({figure.why})"
    if name in UNITS_OF_PERCENT:
        return f"{words.percent(figure.value)} ({_ends(100 * figure.low, 100 * figure.high, '.1f')})"
    return f"{figure.value:.4f} ({_ends(figure.low, figure.high, '.4f')})"


def _ends(low: float, high: float, form: str) -> str:
    return "no interval" if low != low or high != high else f"{low:{form}} to {high:{form}}"
