"""How evaluations, comparisons, thresholds and class reports are shown."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

import polars as pl

from demur.core.show import numbers
from demur.core.show.html import curve_points, drawn, figure, notebook, paragraphs, pictured, table_html
from demur.core.show.numbers import tabled_percent, with_interval
from demur.core.show.presentation import Drawing, Presentation, ResultTable, drawing
from demur.core.show.results import register
from demur.core.stats.calibration import CalibrationTest
from demur.core.stats.intervals import Figure
from demur.core.stats.measure import Measure
from demur.returns import words
from demur.returns.classes import AVERAGES, PARTS, ClassReport, ClassReports
from demur.returns.comparison import verdicts
from demur.returns.comparison.compare import MOST_PAIRED, Comparison, PairComparison
from demur.returns.comparison.contrasts import FIGURES, Contrast
from demur.returns.curves import Curve, ErrorReturnCurve, Heaps
from demur.returns.drift.analysis import Drift
from demur.returns.drift.views import of_drift
from demur.returns.evaluate import Evaluation, Evaluations, joined_notes, slices_at_one_threshold
from demur.returns.examples import ValidatedTable
from demur.returns.measures import ErrorAtNonreturn, NonreturnAtError
from demur.returns.recalibration import Calibration, RecalibratedLog
from demur.returns.recalibration_views import of_calibration, of_recalibrated_log
from demur.returns.threshold import Choice, Stretch, curve_cutoff, printed_frame

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
    "ece_debiased": "ECE, debiased",
    "ece_equal_mass": "ECE, equal mass",
    "nce": "NCE",
    "in_scope_accuracy": "accuracy in scope",
    "out_of_scope_recall": "recall of out of scope",
    "out_of_scope_precision": "precision of out of scope",
    "scope_auroc": "AUROC, in or out of scope",
    "scope_aupr": "AUPR, out of scope",
    "scope_fpr": "out of scope returned, at 95 % in scope",
}
"""How measures without parameters of their own are called in tables; others by what they are asked."""

MEANINGS = {
    "augrc": "area under the error-return curve",
    "ranking_skill": "0 random, 1 perfect",
    "qald_precision": "right of those returned",
    "qald_recall": "right of all inputs",
}
"""What the table of all measures says beside a name that does not speak for itself."""

CURVES, READINGS = "returns.charts.error_return", "returns.charts.readings"
COMPARED = "returns.charts.comparison"

MOST_IN_COLUMNS = 4
"""Systems or slices that a terminal shows side by side; more get a row each."""

BRIEF = ("forced_error", "error_at_nonreturn", "nonreturn_at_error", "augrc", "ranking_skill")
"""Measures that a narrow table keeps."""

UNITS_OF_PERCENT = frozenset(
    (
        *("forced_error", "nonreturn_floor", "error_at_nonreturn", "nonreturn_at_error", "qald_precision"),
        *("qald_recall", "in_scope_accuracy", "out_of_scope_recall", "out_of_scope_precision", "scope_fpr"),
    )
)
"""Measures shown in percent; the others are shown as they are."""


def of_scores(several: Sequence[Evaluation], *, choices: Sequence[Choice] = ()) -> Presentation:
    """How the evaluation of one or more systems is shown: with short names, but for its plain values."""
    evaluations = several if isinstance(several, Evaluations) else Evaluations(several)
    short, shared = _in_short(evaluations)
    whole = [one for one in short if one.part is None]
    figures = _curve_drawings(short, whole, tuple(choices))
    if evaluations.sliced:
        figures.append(drawing("returns.charts.slices.measure_chart", short, "error_at_nonreturn"))
    figures += _reading_drawings(whole)
    sentences = [
        sentence
        for one in whole
        for sentence in (*words.score_sentences(one), *words.slice_sentences(short, one.system))
    ]
    if len(whole) > MOST_PAIRED:
        sentences = [*words.range_sentences(whole), "demur compare ranks them and tests their differences."]
    return Presentation(
        title="Error-return analysis",
        sentences=tuple(sentences),
        tables=(measure_table(short), *one_threshold_table(short), count_table(short)),
        figures=tuple(figures),
        data=lambda: pl.concat([one.curve.frame(points=5000) for one in evaluations]),
        document=evaluations.to_dict(),
        notes=(*([shared] if shared else []), *evaluations.notes),
        warnings=evaluations.warnings,
        signatures=tuple(one.signature for one in evaluations),
        further=tuple(drawing(f"{READINGS}.missed_chance_chart", one) for one in whole[1:]),
    )


def _in_short(evaluations: Evaluations) -> tuple[Evaluations, str]:
    """The evaluations with short names of systems, and a sentence on what all names share."""
    names = list(dict.fromkeys(one.system for one in evaluations))
    labels, shared = numbers.names_in_short(names) if len(names) > 1 else ({}, "")
    if all(name == label for name, label in labels.items()):
        return evaluations, shared
    return Evaluations(replace(one, system=labels[one.system]) for one in evaluations), shared


def _reading_drawings(whole: Sequence[Evaluation], **options: Any) -> list[Drawing]:
    """The other readings of the curves: missed chances of the first system, and the curves of all."""
    kinds = ("risk_coverage", "reliability", "roc", "det")
    calibrated = all(one.has_reliability for one in whole)
    figures = [drawing(f"{READINGS}.missed_chance_chart", one) for one in whole[:1]]
    return figures + [
        drawing(f"{READINGS}.{kind}_chart", whole, **options) for kind in kinds if calibrated or kind != "reliability"
    ]


def one_threshold_table(evaluations: Sequence[Evaluation]) -> tuple[ResultTable, ...]:
    """Every slice at the threshold of its whole system, the one with most errors first; none without slices."""
    curves = {one.system: one.curve for one in evaluations if one.part is None}
    rows = []
    for one in sorted(slices_at_one_threshold(evaluations), key=lambda one: (one.system, -one.error, one.part)):
        rates = (numbers.percent(one.nonreturn), numbers.percent(one.error))
        rows.append((one.system, one.part, f"{one.n:,}", curve_cutoff(curves[one.system], one.threshold), *rates))
    columns = ("system", "slice", "inputs", "threshold", "non-return", "error")
    return (ResultTable("Slices at one threshold, that of the whole", columns, tuple(rows)),) if rows else ()


def _curve_drawings(
    evaluations: Sequence[Evaluation], whole: Sequence[Evaluation], choices: tuple[Choice, ...]
) -> list[Drawing]:
    """The curves of all systems, then those of each system's slices; of one system both are one figure."""
    region = region_of(whole)
    sliced = [one.system for one in whole if any(part.system == one.system and part.part for part in evaluations)]
    if len(whole) == 1 and sliced:
        return [drawing(f"{CURVES}.slices_chart", evaluations, sliced[0], region=region, choices=choices)]
    together = drawing(f"{CURVES}.error_return_chart", whole, choices=choices, region=region)
    return [together, *(drawing(f"{CURVES}.slices_chart", evaluations, system, region=region) for system in sliced)]


def of_comparison(comparison: Comparison) -> Presentation:
    """How a comparison of systems is shown: with short names, but for its plain values."""
    short, shared = comparison.in_short
    systems = short.evaluations
    many = len(systems) > MOST_PAIRED
    board = (leaderboard_table(short),) if len(systems) > 2 else ()
    every_pair = len(short.pairs) >= len(systems)  # of many, the baseline is held against each other one
    pairs = (pair_table(short),) if every_pair or not many else ()
    details = pairs if many else (*pairs, measure_table(systems), count_table(systems))
    together = drawing(f"{COMPARED}.comparison_chart", comparison, region=region_of(systems))
    below = [drawing(f"{COMPARED}.forest_chart", comparison)] if board else []
    if many:
        below.append(drawing(f"{COMPARED}.pair_matrix_chart", comparison))
    else:
        below += [drawing(f"{CURVES}.difference_chart", pair) for pair in short.pairs]
    return Presentation(
        title="Comparison of systems",
        sentences=tuple(verdicts.comparison_sentences(short)),
        tables=(*board, *details),
        figures=(together, *below),
        data=comparison.leaderboard.frame if many else lambda: pl.concat([pair.frame() for pair in comparison.pairs]),
        document=comparison.to_dict(),
        notes=(*([shared] if shared else []), *short.notes),
        warnings=short.warnings,
        signatures=tuple(one.signature for one in systems),
        further=(
            *_reading_drawings(systems, compared=short),
            *(drawing(f"{READINGS}.missed_chance_chart", one) for one in systems[1:]),
        ),
    )


def of_choice(choice: Choice, evaluation: Evaluation | None = None) -> Presentation:
    """How a chosen threshold is shown, on the curve of an evaluation of its system."""
    evaluation = choice.evaluation if evaluation is None else evaluation
    return Presentation(
        title="Threshold",
        sentences=tuple(words.choice_sentences(choice)),
        tables=(*group_table(choice), path_table(choice)),
        figures=(
            drawing(f"{CURVES}.error_return_chart", [evaluation], choices=(choice,), region=None),
            drawing("returns.charts.error_return.cost_path_chart", choice),
        ),
        data=choice.frame,
        document=choice.to_dict(),
        notes=choice.notes or joined_notes([evaluation]),
        warnings=choice.warnings,
        signatures=(evaluation.signature,),
    )


def path_table(choice: Choice) -> ResultTable:
    """The best threshold for every cost ratio, and what it gives.

    At a ratio of 1 every answer is returned, where withholding some that are wrong would cost the same.
    """
    parts: list[tuple[str, Choice | Stretch]] = [
        (f"{stretch.ratio_from:.3g} to {stretch.ratio_to:.3g}", stretch) for stretch in choice.path
    ]
    if choice.cost_ratio == 1 and choice.nonreturn < choice.path[0].nonreturn:
        parts[0] = (f"{choice.path[0].ratio_from:.3g} to below 1", choice.path[0])
        parts.insert(0, ("1", choice))
    rows = []
    for ratios, one in parts:
        rates = (tabled_percent(one.nonreturn), tabled_percent(one.error), tabled_risk(one.risk))
        rows.append((ratios, one.printed_threshold, *rates))
    columns = ("cost ratio", "threshold", "non-return", "error", "wrong of returned")
    return ResultTable("Best threshold by cost ratio", columns, tuple(rows))


def group_table(choice: Choice) -> tuple[ResultTable, ...]:
    """What the threshold does to each group; none without groups, or where nothing is returned."""
    if not choice.groups or choice.returns_nothing:
        return ()
    rows, brief = [], []
    for one in choice.groups:
        promise = "–" if one.promised is None else "yes" if one.promised else "no: too few"
        start = (one.group, f"{one.n:,}", tabled_percent(one.nonreturn))
        figures = [_figure_text("forced_error", figure) if figure.defined else "–" for figure in (one.error, one.risk)]
        rows.append((*start, *figures, promise))
        brief.append((*start, tabled_percent(one.error.value), tabled_risk(one.risk.value), promise))
    columns = ("group", "inputs", "non-return", "error", "wrong of returned", "promised")
    short = ResultTable("Groups at the threshold (with intervals: -o page.html or --json)", columns, tuple(brief))
    return (ResultTable("Groups at the threshold, with intervals", columns, tuple(rows), brief=short),)


def tabled_risk(risk: float) -> str:
    """A share of the answers returned; a dash where nothing is returned."""
    return "–" if math.isnan(risk) else tabled_percent(risk)


def of_classes(several: Sequence[ClassReport]) -> Presentation:
    """How per-class scores are shown."""
    reports = several if isinstance(several, ClassReports) else ClassReports(several)
    by_system = [words.class_sentences(report) for report in reports]
    return Presentation(
        title="Classes",
        sentences=tuple(by_system[0] if len(by_system) == 1 else (" ".join(one) for one in by_system)),
        tables=tuple(class_table(report) for report in reports),
        figures=tuple(drawing("returns.charts.slices.confusion_chart", report) for report in reports),
        data=reports.frame,
        document=reports.to_dict(),
        notes=reports.notes,
        warnings=reports.warnings,
        signatures=tuple(report.signature for report in reports),
    )


def of_validation(validation: ValidatedTable) -> Presentation:
    """How a table that was read and has no faults is shown."""
    counts = validation.frame()
    heaps = counts.select("system", "rows", "distinct_confidences", "most_frequent_confidence", "most_frequent_rows")
    ties = [
        (name, Heaps(distinct, most, times, times / n))
        for name, n, distinct, most, times in heaps.rows()
        if distinct and (distinct > 1 or most > -math.inf)
    ]
    many = counts.height > MOST_PAIRED
    systems = "1 system" if counts.height == 1 else f"{counts.height:,} systems"
    rows = "1 row" if validation.n == 1 else f"{validation.n:,} rows"
    verb = "is" if validation.n == 1 else "are"
    return Presentation(
        title="Tables read",
        sentences=(
            f"{rows} of {systems} {verb} sound.",
            *(f"{one.note(name)}." for name, one in ties if one.matter or not many),
        ),
        tables=(_table_of_rows(counts),),
        figures=(),
        data=lambda: counts,
        document=validation.to_dict(),
        notes=validation.notes,
        warnings=validation.warnings,
    )


def _table_of_rows(counts: pl.DataFrame) -> ResultTable:
    """What the rows of each system are, and how far its confidences reach; dialogues where there are any."""
    shown = ["system", "rows", "answered", "withheld", "failed", "out_of_scope", "right"]
    if counts["dialogues"].null_count() < counts.height:
        shown.append("dialogues")
    rows = []
    for row in counts.iter_rows(named=True):
        low, high = row["lowest_confidence"], row["highest_confidence"]
        none = high is None or high == -math.inf
        reach = "–" if none else f"{numbers.number(low)} to {numbers.number(high)}"
        rows.append((*(_count_text(row[name]) for name in shown), reach))
    return ResultTable("Systems", (*(name.replace("_", " ") for name in shown), "confidence"), tuple(rows))


def _count_text(value: object) -> str:
    return "–" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def measure_table(evaluations: Sequence[Evaluation], only: Sequence[str] | None = None) -> ResultTable:
    """Every measure of every system, with intervals; in brief a row per system with the measures asked for most.

    A reading at a point that ties keep from what was asked names its cutoff, and the next row is what randomising among
    the ties would give. `only` names the measures to keep.
    """
    rows: list[tuple[str, ...]] = []
    measures = {name: measure for one in evaluations for name, measure in one.measures.items()}
    for name, measure in measures.items():
        if only is None or name in only:
            cells = (
                _figure_text(name, one.figures[name], words.cutoff_words(one, name)) if name in one.figures else "–"
                for one in evaluations
            )
            meaning = f" ({MEANINGS[name]})" if name in MEANINGS else ""
            rows.append((f"{measure_name(name, measure)}{meaning}", *cells))
            if not all(words.randomising_agrees(one, name) for one in evaluations if name in one.figures):
                mixed = (_figure_text(name, one.randomised[name]) for one in evaluations)
                rows.append((f"{measure_name(name, measure)}, ties broken at random", *mixed))
    if "ece" in evaluations[0].measures and (only is None or "ece" in only):
        rows.append(("calibration test (Spiegelhalter)", *(_test_text(one.calibration_test) for one in evaluations)))
    level = numbers.percent(evaluations[0].level)
    columns = ("measure", *(one.name for one in evaluations))
    title, crowded = f"Measures with {level} intervals", len(evaluations) > MOST_IN_COLUMNS
    return ResultTable(title, columns, tuple(rows), brief=brief_table(evaluations), crowded=crowded)


def brief_table(evaluations: Sequence[Evaluation]) -> ResultTable:
    """One row per system or slice: inputs and the few measures asked for most."""
    chosen = [name for name in BRIEF if name in evaluations[0].measures]
    heading, labels = _row_labels(evaluations)
    rows = []
    for label, one in zip(labels, evaluations, strict=True):
        figures = {name: one.figures[name] for name in chosen}
        values = (
            f"{_value_text(name, figure)}{words.cutoff_words(one, name)}" if figure.defined else "–"
            for name, figure in figures.items()
        )
        rows.append((label, f"{one.n:,}", *values))
    names = (measure_name(name, evaluations[0].measures[name]) for name in chosen)
    title = "Measures (all of them with intervals: -o page.html or --json)"
    return ResultTable(title, (heading, "inputs", *names), tuple(rows))


def count_table(evaluations: Sequence[Evaluation]) -> ResultTable:
    """How many inputs each system answered, withheld or failed on."""
    heading, labels = _row_labels(evaluations)
    counts = [(one.n, one.withheld, one.failed, one.out_of_scope) for one in evaluations]
    rows = [(label, *(f"{n:,}" for n in row)) for label, row in zip(labels, counts, strict=True)]
    columns: tuple[str, ...] = (heading, "inputs", "withheld by itself", "failed", "out of scope")
    samples = [one.stands_for for one in evaluations]
    if any(samples):
        columns = (*columns, "stand for")
        cells = ["–" if sample is None else f"{sample.inputs:,.0f}" for sample in samples]
        rows = [(*row, cell) for row, cell in zip(rows, cells, strict=True)]
    return ResultTable("Inputs", columns, tuple(rows))


def _row_labels(evaluations: Sequence[Evaluation]) -> tuple[str, list[str]]:
    """What the rows are: systems, or the slices of one system by the values of a column."""
    parts = [one.part for one in evaluations]
    if len({one.system for one in evaluations}) > 1 or not any(parts):
        return "system", [one.name for one in evaluations]
    column = next(part for part in parts if part).partition("=")[0]
    return column, ["all inputs" if part is None else part.partition("=")[2] for part in parts]


def leaderboard_table(comparison: Comparison) -> ResultTable:
    """The systems in order: rank, area, difference from the baseline with its test, readings at a point.

    Less wide ones leave out the interval of the difference, then the readings, and again that interval; what the
    systems are sorted by stays.
    """
    board = comparison.leaderboard
    cells = _leaderboard_cells(comparison)
    readings = [name for name in FIGURES if name in cells and name != "augrc"]
    level = numbers.percent(comparison.level)
    tests = f"ranks by {board.tests:,} corrected pairwise tests"
    order = "" if board.sort == "rank" else f", sorted by {_sorted_by(board.sort, cells)}"
    title = f"Leaderboard with {level} intervals, {tests}{order}"

    def form(title: str, keys: Sequence[str], brief: ResultTable | None = None) -> ResultTable:
        columns, *rows = zip(*(cells[key] for key in keys), strict=True)
        return ResultTable(title, columns, tuple(rows), brief=brief)

    extra = [name for name in readings if name == board.sort]
    elsewhere = " (more: -o page.html)"
    start, rest = ("rank", "system", "augrc"), ("p", *extra)
    least = form(f"{title}{elsewhere}", (*start, "gap", *rest))
    if extra:  # the intervals give way to what was asked for
        plain = f"Leaderboard, {tests}{order}{elsewhere}"
        least = replace(least, brief=form(plain, ("rank", "system", "value", "gap", *rest)))
    tested = form(f"{title}{elsewhere}", (*start, "difference", *rest), least)
    half = form(title, (*start, "gap", "p", *readings), tested)
    return form(title, ("rank", "system", "whole_area", "difference", "p", *readings, "inputs"), half)


def _leaderboard_cells(comparison: Comparison) -> dict[str, list[str]]:
    """The columns of a leaderboard, each with its heading, by what they hold."""
    board, measures = comparison.leaderboard, comparison.evaluations[0].measures
    evaluations = {one.name: one for one in comparison.evaluations}
    cells: dict[str, list[str]] = {
        "rank": ["rank", *(_places(one.rank) for one in board.standings)],
        "system": ["system", *(one.system for one in board.standings)],
    }
    areas = [one.figures["augrc"] for one in board.standings]
    gaps = [
        ("baseline", "") if one.difference is None else _contrast_texts(one.difference, "{:+.4f}".format)
        for one in board.standings
    ]
    cells["whole_area"] = ["AUGRC", *(_figure_text("augrc", one) for one in areas)]
    cells["augrc"] = ["AUGRC", *(_figure_text("augrc", one) if one.defined else "undefined" for one in areas)]
    cells["value"] = ["AUGRC", *(_value_text("augrc", one) if one.defined else "undefined" for one in areas)]
    cells["difference"] = ["difference", *(text for text, _ in gaps)]
    cells["gap"] = ["difference", *(text.partition(" ")[0] for text, _ in gaps)]
    cells["p"] = ["p", *(p for _, p in gaps)]
    for name in (one for one in FIGURES if one in measures and one != "augrc"):
        cells[name] = [measure_name(name, measures[name])]
        for one in board.standings:
            figure, where = one.figures[name], words.cutoff_words(evaluations[one.system], name)
            cells[name].append(f"{_value_text(name, figure)}{where}" if figure.defined else "–")
    cells["inputs"] = ["inputs", *(f"{one.n:,}" for one in board.standings)]
    return cells


def _sorted_by(sort: str, cells: Mapping[str, Sequence[str]]) -> str:
    """What a leaderboard is sorted by, as its column is called."""
    return "name" if sort == "system" else cells.get(sort, [sort])[0]


def _places(rank: tuple[int, int]) -> str:
    """A range of ranks.

    >>> _places((1, 1)), _places((2, 5))
    ('1', '2–5')
    """
    return str(rank[0]) if rank[0] == rank[1] else f"{rank[0]}–{rank[1]}"


def pair_table(comparison: Comparison) -> ResultTable:
    """The verdict on each pair with the tests it rests on; interval and p-value share one correction."""
    withheld = any(pair.floors_differ for pair in comparison.pairs)
    rows: list[tuple[str, ...]] = []
    for pair in comparison.pairs:
        more = _contrast_texts(pair.right, lambda rate: f"{100 * rate:+.1f}") if withheld else ()
        tested = (*_contrast_texts(pair.overall, "{:+.4f}".format), *more)
        point, _ = _contrast_texts(pair.point, lambda rate: f"{100 * rate:+.1f}")
        by_right = pair.verdict.endswith("better") and pair.fewer_errors is None
        verdict = f"{pair.verdict} (right answers)" if by_right else pair.verdict
        rows.append((pair.a, pair.b, verdict, *tested, point, verdicts.mcnemar(pair)))
    what = "AUGRC" if comparison.pairs[0].whole is None else "mean error over the region"
    columns = ("a", "b", "verdict", f"{what} of a less b", "p")
    brief = ResultTable("Pairs", columns, tuple(row[:5] for row in rows))
    more_columns = ("right answers of a less b, points", "p (right answers)") if withheld else ()
    point = f"error of a less b at {numbers.percent(comparison.pairs[0].point.range[0])} non-return, points"
    last = (point, "errors of one, a : b (McNemar)")
    return ResultTable("Pairs", (*columns, *more_columns, *last), tuple(rows), brief=brief)


def _contrast_texts(contrast: Contrast, write: Callable[[float], str]) -> tuple[str, str]:
    """A difference with its interval, and its p-value; dashes where there is nothing to compare."""
    if not contrast.defined:
        return "–", "–"
    return with_interval(contrast.value, *contrast.interval, write=write), numbers.tabled_p(contrast.p_adjusted)


def class_table(report: ClassReport) -> ResultTable:
    """Precision, recall and F1 of each class, then the averages."""
    confusion = report.confusion
    rows = [
        (label, *map(_tabled_score, scores), f"{support:,.0f}")
        for label, *scores, support in report.class_frame()[report.shown].iter_rows()
    ]
    for average in AVERAGES:
        scores = (_tabled_score(report.figures[f"{average}_{part}"].value) for part in PARTS)
        rows.append((f"({average} average)", *scores, f"{confusion.total:,.0f}"))
    title = report.system
    if left_out := report.left_out["classes"]:
        title += f": the most frequent and the worst classes, {left_out:,} of {len(confusion.labels):,} left out"
    return ResultTable(title, ("class", "precision", "recall", "F1", "support"), tuple(rows))


def _tabled_score(score: float) -> str:
    """A score as a column of scores has it, all with as many decimals."""
    return f"{score:.4f}" if math.isfinite(score) else numbers.number(score)


def region_of(evaluations: Sequence[Evaluation]) -> tuple[float, float]:
    """The critical region to shade: the range asked for, or five points to each side of the rate asked for."""
    measure: Any = evaluations[0].measures["error_at_nonreturn"]
    if measure.to is not None:
        return measure.x, measure.to
    return max(0.0, measure.x - 0.05), min(1.0, measure.x + 0.05)


def measure_name(name: str, measure: Measure) -> str:
    """What a measure is called in a table, its parameters included."""
    if isinstance(measure, ErrorAtNonreturn):
        mean = "" if measure.to is None else "mean "
        return f"{mean}error {words.point_words(measure)} non-return"
    if isinstance(measure, NonreturnAtError):
        return f"non-return for {numbers.percent(measure.error)} error"
    threshold = getattr(measure, "threshold", -math.inf)
    if threshold > -math.inf:
        return f"{SHORT_NAMES.get(name, measure.title)} at threshold {threshold:g}"
    convention = getattr(measure, "convention", None)
    return SHORT_NAMES.get(name, measure.title) + (f" ({convention})" if convention else "")


def _figure_text(name: str, figure: Figure, where: str = "") -> str:
    """A figure with its interval; `where` says at which cutoff it was read."""
    if not figure.defined:
        return f"undefined ({figure.why})"
    if name in UNITS_OF_PERCENT:
        return f"{tabled_percent(figure.value)} ({numbers.tabled_ends(figure.low, figure.high)}){where}"
    return with_interval(figure.value, figure.low, figure.high, write="{:.4f}".format, missing="no interval")


def _test_text(test: CalibrationTest) -> str:
    if math.isinf(test.z):
        return "refuted: an answer of confidence 0 is right, or one of confidence 1 wrong"
    return f"undefined ({test.why})" if test.why else f"z = {test.z:.2f}, {numbers.p_value(test.p)}"


def _value_text(name: str, figure: Figure) -> str:
    return tabled_percent(figure.value) if name in UNITS_OF_PERCENT else f"{figure.value:.4f}"


def comparison_notebook(comparison: Comparison) -> str:
    """A comparison in a notebook: its sentences, the plot to be dragged, its tables."""

    def explorer() -> str:
        return str(import_module("demur.returns.explorer").explorer_frame(comparison))

    return notebook(of_comparison(comparison), figure(explorer, comparison.chart))


register(
    Evaluation,
    chart=drawn(f"{CURVES}.error_return_chart", lambda one: [one]),
    present=lambda one: of_scores([one]),
)
register(Evaluations, chart=drawn(f"{CURVES}.error_return_chart"), present=of_scores)
register(
    ClassReports,
    chart=drawn("returns.charts.slices.confusion_chart", lambda several: several[0]),
    present=of_classes,
)
register(
    Comparison,
    chart=drawn(f"{COMPARED}.comparison_chart"),
    page=comparison_notebook,
    present=of_comparison,
    sentences=verdicts.comparison_sentences,
)
register(
    PairComparison,
    chart=drawn(f"{CURVES}.difference_chart"),
    page=pictured(lambda pair: paragraphs(verdicts.pair_sentences(pair))),
)
register(
    Choice,
    chart=drawn("returns.charts.error_return.cost_path_chart"),
    present=of_choice,
    page=pictured(lambda choice: paragraphs(words.choice_sentences(choice)) + table_html(path_table(choice))),
)
register(
    ClassReport,
    chart=drawn("returns.charts.slices.confusion_chart"),
    present=lambda report: of_classes([report]),
)
register(Calibration, chart=drawn(f"{READINGS}.recalibration_chart"), present=of_calibration)
register(Drift, chart=drawn("returns.charts.slices.confidence_drift_chart"), present=of_drift)
register(RecalibratedLog, chart=drawn(f"{READINGS}.recalibration_chart"), present=of_recalibrated_log)
register(
    ErrorReturnCurve,
    chart=drawn(f"{CURVES}.bare_curve_chart"),
    page=pictured(lambda curve: curve_points(curve, lambda frame: printed_frame(curve, frame))),
)
register(Curve, chart=drawn(f"{READINGS}.bare_reading_chart"), page=pictured(curve_points))
