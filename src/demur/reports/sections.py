"""The sections of a report: verdict, curve, threshold, comparison, slices, calibration, examples, how it was made."""

from __future__ import annotations

import math
import platform
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import polars as pl

from demur import __version__
from demur.core.show.markdown import visible
from demur.core.show.numbers import listed, p_value, percent, tabled_percent, with_interval
from demur.core.show.presentation import Presentation, ResultTable, drawing
from demur.outcome.fitting import OutcomeFit
from demur.outcome.presentation import price_sentences
from demur.reports.analyses import Advice, AnswerAnalyses, ReportAnalyses
from demur.reports.tables import FileRead
from demur.returns import words
from demur.returns.compare import Comparison
from demur.returns.evaluate import Evaluation, joined_notes
from demur.returns.examples import Example, Examples
from demur.returns.presentation import count_table, measure_table, of_comparison, pair_table
from demur.returns.recalibration import Calibration
from demur.returns.slices import LEAST, SliceDifference, SliceDifferences, What
from demur.returns.slices import OUT_OF_SCOPE as OUT_OF_SCOPE_SLICE
from demur.returns.threshold import Choice, Stretch
from demur.returns.words import difference_text

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


def curve_section(answers: AnswerAnalyses) -> Presentation:
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


def advice_section(answers: AnswerAnalyses) -> Presentation:
    """Which threshold to take, and what it costs."""
    said = [" ".join(_advice_sentences(one)) for one in answers.advice]
    path = [one for one in answers.advice if len(one.advised.path) > 1 and one.advised.curve.threshold.size > 2]
    return Presentation(
        title="Which threshold",
        sentences=tuple(said),
        tables=(_choice_table(answers.advice), *([_price_table(path)] if path else [])),
        figures=(drawing("returns.charts.cost.cost_path_chart", _leader(answers, path).advised, most=MOST_STRETCHES),)
        if path
        else (),
        data=lambda: pl.concat([one.advised.frame() for one in answers.advice]),
        document={"thresholds": [_advice_dict(one) for one in answers.advice]},
        notes=("the cost path is drawn for the system with the least area",) if len(path) > 1 else (),
    )


def _leader(answers: AnswerAnalyses, among: Sequence[Advice]) -> Advice:
    """The system with the least area under its curve."""
    areas = {one.system: one.figures["augrc"].value for one in answers.evaluations}
    return min(among, key=lambda one: areas[one.system])


def comparison_section(comparison: Comparison) -> Presentation:
    """Who is better, and where."""
    shown = of_comparison(comparison)
    few = len(comparison.pairs) > MOST_PAIRS
    return replace(
        shown,
        title="Which system",
        sentences=tuple(_comparison_paragraphs(comparison)),
        tables=(pair_table(comparison),),
        figures=shown.figures_named("difference")[:MOST_PAIRS],
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


def _choice_table(advice: Sequence[Advice]) -> ResultTable:
    rows = tuple(
        (one.system, choice.rule, *_cells(choice), "yes" if choice is one.advised else "")
        for one in advice
        for choice in (*one.choices, *(() if any(c is one.advised for c in one.choices) else (one.advised,)))
    )
    columns = ("system", "rule", "threshold", "non-return", "error", "right but withheld", "shown here")
    return ResultTable("Thresholds", columns, rows)


def _cells(choice: Choice) -> tuple[str, ...]:
    rates = (choice.nonreturn, choice.error, choice.missed_chance)
    return ("return nothing" if math.isnan(choice.threshold) else choice.printed_threshold, *map(tabled_percent, rates))


def _price_table(advice: Sequence[Advice]) -> ResultTable:
    """The cheapest threshold of each system for a few prices of a non-return."""
    rows = tuple((f"{ratio:g}", *(_cheapest(one.advised.path, ratio) for one in advice)) for ratio in RATIOS)
    columns = ("cost", *(one.system for one in advice))
    return ResultTable("Cheapest threshold by what a non-return costs, an error being 1", columns, rows)


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


SAME_ORDER = (
    "Recalibrating keeps the order of answers, so the curve stays as it is; "
    "it lets a threshold be read as a probability."
)


def calibration_section(found: Sequence[Calibration], evaluations: Sequence[Evaluation]) -> Presentation:
    """Whether confidences are probabilities, and what to do about it."""
    names = {one.system for one in found}
    drawn = [one for one in evaluations if one.system in names]
    others = [one.system for one in evaluations if one.system not in names]
    said = [sentence for one in found for sentence in calibration_sentences(one)]
    if any(one.advice == "recalibrate" for one in found):
        said.append(SAME_ORDER)
    said += [f"{name}: its confidences are no probabilities, or do not differ." for name in others]
    return Presentation(
        title="Do confidences mean what they say",
        sentences=tuple(said),
        tables=(_calibration_table(found),) if found else (),
        figures=(drawing("returns.charts.readings.reliability_chart", drawn),) if drawn else (),
        data=lambda: pl.DataFrame([one.to_dict() for one in found]),
        document={"calibration": [one.to_dict() for one in found]},
    )


def calibration_sentences(one: Calibration) -> list[str]:
    """What one system's confidences are off by, and what to do."""
    side = "too sure of itself" if one.bias > 0 else "less sure than it could be"
    off = f"{one.system}: confidences are off by {percent(one.ece)} on average"
    lean = f"; on the whole it is {side}, by {percent(abs(one.bias))}" if abs(one.bias) >= 0.005 else ""
    return [f"{off}{lean}. {_advice(one)}"]


def _advice(one: Calibration) -> str:
    if one.advice == "recalibrate":
        return (
            f"Recalibrate: an isotonic map, fitted on four fifths and held against the rest, leaves "
            f"{percent(one.ece_after)} and lowers the Brier score by "
            f"{with_interval(-one.change, -one.high, -one.low, write='{:.4f}'.format)}."
        )
    if one.advice == "leave":
        return "Recalibrating is not shown to help here: leave them as they are."
    return f"Whether recalibrating would help cannot be told: {one.why}."


def _calibration_table(found: Sequence[Calibration]) -> ResultTable:
    rows = tuple(
        (
            one.system,
            f"{one.answers:,}",
            f"{one.ece:.4f}",
            _four_digits(one.ece_after),
            f"{one.brier:.4f}",
            _four_digits(one.brier_after),
            "–" if math.isnan(one.change) else with_interval(one.change, one.low, one.high, write="{:+.4f}".format),
            one.advice,
        )
        for one in found
    )
    columns = ("system", "answers", "ECE", "recalibrated", "Brier", "recalibrated", "change of Brier", "advice")
    return ResultTable("Confidences as they are, and recalibrated across five folds", columns, rows)


def _four_digits(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.4f}"


OUT_OF_SCOPE = "(out of scope)"
SUREST = "surest errors"
BREAK = " ⏎ "
"""How a line break inside an input is shown."""


def example_section(found: Sequence[Examples]) -> Presentation:
    """What to look at; the tables hold what people wrote, so they are shown apart from tables of numbers."""
    return Presentation(
        title="What to look at",
        sentences=tuple(sentence for one in found for sentence in _sentences(one)),
        tables=tuple(table for one in found for table in _tables(one)),
        figures=(),
        data=lambda: pl.DataFrame([row.to_dict() for one in found for row in one.confident_errors]),
        document={"examples": [one.to_dict() for one in found]},
    )


def _sentences(one: Examples) -> list[str]:
    if math.isnan(one.threshold):
        return [f"{one.system} returns nothing, so there is nothing to look at but the right answers it withholds."]
    if one.errors == 0:
        return [f"{one.system}: no wrong answer is returned at the threshold advised."]
    scope = f", {one.out_of_scope:,} of them to inputs out of scope" if one.out_of_scope else ""
    return [
        f"{one.system}: at the threshold advised, {one.errors:,} wrong {_answers_are(one.errors)} returned{scope}, and "
        f"{one.missed:,} right {_answers_are(one.missed)} withheld."
    ]


def _answers_are(count: int) -> str:
    return "answer is" if count == 1 else "answers are"


def _tables(one: Examples) -> list[ResultTable]:
    parts = (
        (SUREST, one.confident_errors, one.errors - one.out_of_scope),
        ("missed chances: right, but withheld", one.missed_chances, one.missed),
        ("returned although out of scope", one.out_of_scope_returned, one.out_of_scope),
    )
    tables = [_example_table(f"{one.system}: {title}", rows, count) for title, rows, count in parts if rows]
    return [*tables, *([_confusions(one)] if one.confusions else [])]


def _example_table(title: str, rows: Sequence[Example], count: int) -> ResultTable:
    """A row per example; columns that no example has are left out."""
    inputs, lists = any(row.input for row in rows), any(row.nbest for row in rows)
    apart = any(row.target is None or row.target not in ((), (row.prediction,)) for row in rows)
    asked = ["right answer"] if apart else []
    columns = ("confidence", "input" if inputs else "id", *asked, "answer", *(["N-best"] if lists else []))
    cells = tuple(
        (
            f"{row.confidence:.4g}",
            plain_text(row.input if inputs and row.input is not None else row.id or "(no id)"),
            *([_target(row)] if apart else []),
            plain_text(row.prediction if row.prediction is not None else "(not told)"),
            *(["; ".join(map(plain_text, row.nbest))] if lists else []),
        )
        for row in rows
    )
    shown = f"{len(rows)} of {count:,}" if len(rows) < count else f"all {count:,}"
    return ResultTable(f"{title} ({shown})", columns, cells)


def _target(row: Example) -> str:
    if row.target is None:
        return "(not told)"
    return " or ".join(map(plain_text, row.target)) or OUT_OF_SCOPE


def _confusions(one: Examples) -> ResultTable:
    rows = tuple(
        (plain_text(pair.target), plain_text(pair.prediction), f"{pair.count:,}", f"{pair.returned:,}")
        for pair in one.confusions
    )
    return ResultTable(f"{one.system}: most frequent confusions", ("right answer", "answer", "times", "returned"), rows)


def plain_text(text: str) -> str:
    """What people wrote in one line: line breaks and unseen characters made visible.

    >>> plain_text("two\\nlines")
    'two ⏎ lines'
    """
    return visible(BREAK.join(text.splitlines())).replace("\t", " ")


MOST_ROWS = 25
"""Tests that the table shows, the clearest first."""

MOST_NAMED = 3
"""Slices that a sentence names."""

FEW = f"fewer than {LEAST} inputs, or too few dialogues"

WORSE: dict[What, tuple[str, str]] = {
    "error": ("one slice errs more", "{} slices err more"),
    "nonreturn": ("one slice is withheld more", "{} slices are withheld more"),
}
"""What is said of one slice that does worse, and of several."""

NAMES: dict[What, str] = {"error": "error", "nonreturn": "non-return", "augrc": "area (AUGRC)"}
"""What is compared, as tables call it."""


def slice_section(found: SliceDifferences) -> Presentation:
    """Which slices differ."""
    errors = [test for test in found.tests if test.what == "error"]
    return Presentation(
        title="Slices that differ",
        sentences=tuple(slice_sentences(found)),
        tables=(_slice_table(found), *_untested(found)) if found.tests else _untested(found),
        figures=(drawing("returns.charts.slices.slice_difference_chart", found),) if errors else (),
        data=found.frame,
        document={"slices": found.to_dict(), "slices_that_differ": _worse_slices(found)},
        notes=(_how_made(found),) if found.tests else (),
    )


def slice_sentences(found: SliceDifferences) -> list[str]:
    """Which slices of each system do worse than the rest of its inputs."""
    if not found.tests:
        return [f"No slice by {listed(found.columns)} has inputs enough to be held against the rest."]
    tested = {test.system for test in found.tests}
    return [
        _of_system(system, [test for test in found.shown if test.system == system])
        for system in found.thresholds
        if system in tested
    ]


def _of_system(system: str, shown: Sequence[SliceDifference]) -> str:
    said = []
    for what, (one, many) in WORSE.items():
        worse = sorted((test for test in shown if test.what == what and test.difference > 0), key=_falling)
        if worse:
            named = listed([_slice_rates(test) for test in worse[:MOST_NAMED]])
            more = f" and {len(worse) - MOST_NAMED} more" if len(worse) > MOST_NAMED else ""
            said.append(f"{one if len(worse) == 1 else many.format(len(worse))} than the rest: {named}{more}")
    return f"{system}: {'; '.join(said) or 'no slice is shown to do worse than the rest at its threshold'}."


def _falling(test: SliceDifference) -> float:
    return -test.difference


def _slice_rates(test: SliceDifference) -> str:
    return f"{test.part} ({percent(test.inside)} against {percent(test.outside)})"


def _worse_slices(found: SliceDifferences) -> int:
    """How many slices are shown to err more than the rest."""
    return sum(test.what == "error" and test.difference > 0 for test in found.shown)


def _slice_table(found: SliceDifferences) -> ResultTable:
    rows = tuple(
        (
            test.system,
            test.part,
            f"{test.n:,}",
            NAMES[test.what],
            _value(test.what, test.inside),
            _value(test.what, test.outside),
            difference_text(test),
            p_value(test.p_adjusted),
        )
        for test in found.tests[:MOST_ROWS]
    )
    left = f", the clearest {MOST_ROWS} of {len(found.tests):,}" if len(found.tests) > MOST_ROWS else ""
    columns = ("system", "slice", "inputs", "what", "on it", "on the rest", "difference", "corrected p")
    return ResultTable(f"Slices against the rest{left}", columns, rows)


def _value(what: What, value: float) -> str:
    return f"{value:.4f}" if what == "augrc" else percent(value)


def _untested(found: SliceDifferences) -> tuple[ResultTable, ...]:
    """Slices that were not tested, by reason and column."""
    named: dict[tuple[str, str, str], list[str]] = {}
    for one in found.untested:
        why = OUT_OF_SCOPE_SLICE if one.why == OUT_OF_SCOPE_SLICE else FEW
        named.setdefault((one.column, why, one.system), []).append(f"{one.value} ({one.n:,})")
    systems: dict[tuple[str, str, str], list[str]] = {}
    for (column, why, system), values in named.items():
        systems.setdefault((column, why, _some(values)), []).append(system)
    rows = tuple((*key, "all" if len(own) == len(found.thresholds) else ", ".join(own)) for key, own in systems.items())
    return (
        (ResultTable("Slices that were not tested", ("column", "why", "values (inputs)", "systems"), rows),)
        if rows
        else ()
    )


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _how_made(found: SliceDifferences) -> str:
    mute = [system for system, cutoff in found.thresholds.items() if math.isnan(cutoff)]
    nothing = f" ({listed(mute)} would return nothing)" if mute else ""
    return (
        f"slices by {listed(found.columns)} at one threshold for all slices of a system, the one advised for it"
        f"{nothing}; p-values corrected by Holm's method for all {len(found.tests):,} tests of the table"
    )


PACKAGES = ("numpy", "polars", "scipy")


def versions() -> dict[str, str]:
    """The versions of what made the numbers."""
    return {"demur": __version__, "python": platform.python_version(), **{name: _version(name) for name in PACKAGES}}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"


def making_section(analyses: ReportAnalyses, notes: Sequence[str], signatures: Sequence[str]) -> Presentation:
    """Everything needed to make the same numbers again."""
    files = analyses.mixture.files
    return Presentation(
        title="How the numbers were made",
        sentences=(_settings(analyses),),
        tables=(*([_file_table(files)] if files else []), _row_table(analyses), _version_table()),
        figures=(),
        data=pl.DataFrame,
        document={"files": [_file(one) for one in files], "made": made(analyses)},
        notes=tuple(notes),
        signatures=tuple(signatures),
    )


def made(analyses: ReportAnalyses) -> dict[str, Any]:
    """Settings and versions as plain values."""
    options = analyses.options
    settings = {
        "seed": options.seed,
        "replicates": options.replicates,
        "level": options.level,
        "at_nonreturn": options.at,
    }
    return {**settings, "versions": versions()}


def _settings(analyses: ReportAnalyses) -> str:
    options = analyses.options
    return (
        f"Intervals and bands hold with {percent(options.level)} confidence; those that are resampled come from "
        f"{options.replicates:,} replicates with seed {options.seed}. The same files and settings give the same report."
    )


def _file(one: FileRead) -> dict[str, Any]:
    return {"name": one.name, "kind": one.kind, "bytes": one.size, "sha256": one.digest}


def _file_table(files: Sequence[FileRead]) -> ResultTable:
    rows = tuple((one.name, one.kind, "–" if one.size is None else f"{one.size:,}", one.digest or "–") for one in files)
    return ResultTable("Files", ("file", "read as", "bytes", "SHA-256, first 16 digits"), rows)


def _row_table(analyses: ReportAnalyses) -> ResultTable:
    """How many rows there are of each kind, by system or study."""
    mixture = analyses.mixture
    rows: list[tuple[str, str, str]] = []
    if mixture.responses is not None:
        counts = mixture.responses.frame["system"].value_counts().sort("system")
        rows += [("responses", name, f"{count:,}") for name, count in counts.iter_rows()]
    if mixture.lists is not None:
        counts = mixture.lists.frame["system"].value_counts().sort("system")
        rows += [("N-best lists", name, f"{count:,}") for name, count in counts.iter_rows()]
    if mixture.dialogues is not None:
        rows.append(("dialogues", mixture.dialogues.outcome, f"{len(mixture.dialogues):,}"))
    rows += [("trials", study.study, f"{len(study):,}") for study in mixture.trials]
    return ResultTable("Rows", ("kind", "system or study", "rows"), tuple(rows))


def _version_table() -> ResultTable:
    return ResultTable("Software", ("package", "version"), tuple(versions().items()))


MOST_SYSTEMS = 6
"""Systems that the verdict tells of one by one."""


def verdict(analyses: ReportAnalyses, others: Sequence[Presentation]) -> list[str]:
    """What the answers show, then the first sentence of every other part."""
    said = [] if analyses.answers is None else _answers_sentence(analyses.answers)
    return [*said, *(part.sentences[0] for part in others if part.sentences)]


def _answers_sentence(answers: AnswerAnalyses) -> list[str]:
    said = []
    if answers.comparison is not None:
        said.append(f"{words.comparison_title(answers.comparison)}.")
    pairs = list(zip(answers.evaluations, answers.advice, strict=True))
    said += [_system(one, advice) for one, advice in pairs[:MOST_SYSTEMS]]
    if len(pairs) > MOST_SYSTEMS:
        said.append(f"{len(pairs) - MOST_SYSTEMS} more systems are described below.")
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


def _slices(answers: AnswerAnalyses) -> list[str]:
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


def _calibration(answers: AnswerAnalyses) -> list[str]:
    off = [one for one in answers.calibrations if one.advice == "recalibrate"]
    if not off:
        return []
    worst = max(one.ece for one in off)
    whose, much = ("its", percent(worst)) if len(off) == 1 else ("their", f"up to {percent(worst)}")
    return [f"Recalibrate {listed([one.system for one in off])}: {whose} confidences are off by {much} on average."]
