"""The sections of a report: verdict, curve, threshold, comparison, calibration, examples, how it was made."""

from __future__ import annotations

import math
import platform
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import polars as pl

from demur import __version__
from demur.core.show.numbers import listed, percent, tabled_percent
from demur.core.show.presentation import Drawing, Presentation, ResultTable, drawing
from demur.core.show.safe import visible
from demur.outcome.fitting import OutcomeFit
from demur.outcome.presentation import price_sentences
from demur.reports.analyses import CHANCE, PROMISED, Advice, AnswerAnalyses, ReportAnalyses, ReportOptions
from demur.returns import words
from demur.returns.comparison import verdicts
from demur.returns.comparison.compare import MOST_PAIRED, Comparison
from demur.returns.drift.analysis import Drift
from demur.returns.drift.views import change_headline, of_drift
from demur.returns.evaluate import Evaluation, heap_notes, joined_notes
from demur.returns.examples import Example, Examples
from demur.returns.judging import notes_by_system
from demur.returns.presentation import (
    count_table,
    leaderboard_table,
    measure_table,
    of_comparison,
    pair_table,
    tabled_risk,
)
from demur.returns.recalibration import Calibration
from demur.returns.recalibration_views import (
    calibration_sentence,
    calibration_table,
    fold_notes,
    order_sentence,
    reliability_drawing,
)
from demur.returns.threshold import Choice, Stretch

RATIOS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
"""What a non-return may cost, an error being 1, in the table of cheapest thresholds."""

MOST_PAIRS = 6
"""Pairs whose difference is drawn; the table has all."""

MOST_STRETCHES = 40
"""Thresholds that the cost path shows: of a long log there are ever more, and no eye tells them apart."""

MOST_IN_PROSE = 5
"""Systems up to which each has a paragraph in every section; of more the leader has, and tables have all."""

MEANING = (
    "The curve shows what share of all inputs is answered wrongly (up) when a share of them is not answered at all "
    "(across), the least sure first. Lower is better; the left end is a system that answers everything it can. AUGRC "
    "is the area under the curve. Missed chances are right answers that are withheld."
)


def curve_section(answers: AnswerAnalyses) -> Presentation:
    """Error against non-return: what each system can do."""
    evaluations = answers.evaluations
    said = [(one.name, " ".join(words.score_sentences(one))) for one in evaluations]
    return Presentation(
        title="Errors and non-returns",
        sentences=(MEANING, *_paragraphs(said, evaluations, "The table of measures")),
        tables=(measure_table(evaluations), count_table(evaluations)),
        figures=(),
        data=lambda: pl.concat([one.curve.frame(points=5000) for one in evaluations]),
        document={},
        notes=(
            *notes_by_system(answers.uneven, several=len(evaluations) > 1),
            *joined_notes(evaluations),
            *heap_notes(evaluations),
        ),
        signatures=tuple(one.signature for one in evaluations),
    )


def _paragraphs(said: Sequence[tuple[str, str]], evaluations: Sequence[Evaluation], table: str) -> list[str]:
    """What is said of each system; of many of the one with the least area, and which table has the others."""
    if len(said) <= MOST_IN_PROSE:
        return [paragraph for _, paragraph in said]
    paragraphs = dict(said)
    leader = _by_area(evaluations, list(paragraphs))[0]
    return [paragraphs[leader], f"{table} has the other {len(paragraphs) - 1} systems."]


def _by_area(evaluations: Sequence[Evaluation], systems: Sequence[str]) -> list[str]:
    """Systems by their area, the least first; those without one last."""
    areas = {one.name: one.figures["augrc"].value for one in evaluations}
    return sorted(systems, key=lambda system: (math.isnan(areas[system]), areas[system]))


def can_be_drawn(evaluations: Sequence[Evaluation]) -> bool:
    """Whether some system has answers to draw a curve of."""
    return any(one.sample.sweep.threshold.size for one in evaluations)


def can_be_chosen(evaluations: Sequence[Evaluation]) -> bool:
    """Whether the confidences of some system differ, so that a threshold can choose among its answers."""
    return any(one.sample.sweep.threshold.size > 1 for one in evaluations)


def advice_section(answers: AnswerAnalyses, options: ReportOptions) -> Presentation:
    """Which threshold to take, and what it costs; the cost path is that of the system with the least area."""
    advice = answers.advice
    with_path = [one for one in advice if len(one.shown.path) > 1 and one.shown.curve.threshold.size > 2]
    tables, figures = [_choice_table(advice)], []
    if with_path:
        leader = leader_of(answers, with_path)
        tables.append(_price_table(with_path))
        figures.append(drawing("returns.charts.error_return.cost_path_chart", leader.shown, most=MOST_STRETCHES))
    thresholds = [
        {
            "system": one.system,
            "recommended": None if one.recommended is None else one.recommended.to_dict()["threshold"],
            "shown_at": one.shown.to_dict()["threshold"],
            "choices": [choice.to_dict() for choice in dict.fromkeys((*one.choices, one.shown))],
        }
        for one in advice
    ]
    assumed = {"max_error": PROMISED, "delta": CHANCE, "assumed": True}
    target = assumed if options.aim is None else {options.aim: getattr(options, options.aim), "delta": options.delta}
    return Presentation(
        title="Which threshold",
        sentences=(*_advice_paragraphs(answers), *assumption(options)),
        tables=tuple(tables),
        figures=tuple(figures),
        data=lambda: pl.concat([one.shown.frame() for one in advice]),
        document={"target": target, "thresholds": thresholds},
        notes=("the cost path is drawn for the system with the least area",) if len(with_path) > 1 else (),
    )


def assumption(options: ReportOptions) -> list[str]:
    """That nobody named an error target, so that one is assumed; nothing where one was named."""
    if options.aim is not None:
        return []
    return [f"An error target of {percent(PROMISED)} is assumed; --max-error, --max-nonreturn or --cost-ratio set one."]


def leader_of(answers: AnswerAnalyses, advice: Sequence[Advice]) -> Advice:
    """The advice for the system with the least area."""
    leader = _by_area(answers.evaluations, [one.system for one in advice])[0]
    return next(one for one in advice if one.system == leader)


def advice_table(answers: AnswerAnalyses, shared: str) -> ResultTable:
    """Each system at the threshold recommended for it, three or more by rank; the title says what all names share."""
    rows = []
    ranks: dict[str, int] = {}
    if answers.comparison is not None and len(answers.evaluations) > 2:
        ranks = {one.system: place for place, one in enumerate(answers.comparison.leaderboard.ranked)}
    advised = zip(answers.evaluations, answers.advice, strict=True)
    for one, advice in sorted(advised, key=lambda pair: ranks.get(pair[0].name, 0)):
        choice, cells = advice.recommended, ("none", "–", "–", "–")
        if choice is not None:
            rates = (tabled_percent(choice.nonreturn), tabled_percent(choice.error), tabled_risk(choice.risk))
            cells = (choice.printed_threshold, *rates)
        area = one.figures["augrc"]
        rows.append(
            (
                one.system,
                f"{one.n:,}",
                f"{area.value:.4f}" if area.defined else "–",
                tabled_percent(one.figures["forced_error"].value),
                *cells,
            )
        )
    columns = (
        "system",
        "inputs",
        "AUGRC",
        "error, all returned",
        "threshold",
        "non-return",
        "error",
        "wrong of returned",
    )
    about = f" ({shared})" if shared else ""
    return ResultTable(f"Systems, and the threshold recommended for each{about}", columns, tuple(rows))


def comparison_section(comparison: Comparison) -> Presentation:
    """Who is better, and where."""
    shown = of_comparison(comparison)
    several = len(comparison.evaluations) > 2
    few = len(comparison.pairs) > MOST_PAIRS
    is_paired = comparison.pairs[0].paired
    return replace(
        shown,
        title="Which system",
        sentences=tuple(verdicts.comparison_sentences(comparison)),
        tables=(*([leaderboard_table(comparison)] if several else []), pair_table(comparison)),
        figures=shown.figures_named("difference")[:MOST_PAIRS],
        warnings=shown.notes if any(comparison.dropped.values()) else () if is_paired else (comparison.note,),
        notes=(*shown.notes, *([f"the differences of the first {MOST_PAIRS} pairs are drawn"] if few else [])),
        signatures=(),
    )


def _advice_paragraphs(answers: AnswerAnalyses) -> list[str]:
    """What is recommended for each system; of many for the leader, and for which of the others nothing is."""
    said = [(one.system, " ".join(_advice_sentences(one))) for one in answers.advice]
    paragraphs = _paragraphs(said, answers.evaluations, "The table of thresholds")
    without = [one.system for one in answers.advice if one.recommended is None]
    if len(said) > MOST_IN_PROSE and without:
        more = [f"{len(without) - MOST_IN_PROSE:,} more"] if len(without) > MOST_IN_PROSE else []
        paragraphs.append(f"No threshold is recommended for {listed([*without[:MOST_IN_PROSE], *more])}.")
    return paragraphs


def _advice_sentences(advice: Advice) -> list[str]:
    """The threshold that is recommended, or that there is none, and where slices and examples are shown then."""
    if advice.recommended is not None:
        return words.choice_sentences(advice.recommended)
    return [f"{advice.system}: {words.no_threshold(advice.choices[0])}.", *_instead(advice)]


def _instead(advice: Advice) -> list[str]:
    """Where slices and examples are shown, if no threshold is recommended."""
    shown = advice.shown
    if advice.recommended is not None or math.isnan(shown.threshold):
        return []
    return [
        f"Slices and examples are shown at {shown.printed_threshold}, which is not recommended ({shown.rule}): it "
        f"withholds {percent(shown.nonreturn)} and leaves {percent(shown.error)} errors, {percent(shown.risk)} of the "
        "answers returned."
    ]


def _choice_table(advice: Sequence[Advice]) -> ResultTable:
    rows = tuple(
        (
            one.system,
            choice.rule,
            _cutoff(choice),
            *map(tabled_percent, (choice.nonreturn, choice.error)),
            tabled_risk(choice.risk),
            tabled_percent(choice.missed_chance),
            _use(one, choice),
        )
        for one in advice
        for choice in (*one.choices, *(() if any(c is one.shown for c in one.choices) else (one.shown,)))
    )
    rates = ("non-return", "error", "wrong of returned", "right but withheld")
    columns = ("system", "rule", "threshold", *rates, "use")
    return ResultTable("Thresholds", columns, rows)


def _use(advice: Advice, choice: Choice) -> str:
    """What a threshold in the table is for."""
    if choice is advice.recommended:
        return "recommended"
    return "slices and examples" if choice is advice.shown else ""


def _price_table(advice: Sequence[Advice]) -> ResultTable:
    """The cheapest threshold of each system for a few prices of a non-return; of many systems a row for each price."""
    title = "Cheapest threshold by what a non-return costs, an error being 1"

    def cheapest(path: Sequence[Stretch], ratio: float) -> tuple[str, str, str]:
        best = next(stretch for stretch in path if stretch.ratio_from <= ratio <= stretch.ratio_to)
        return _cutoff(best), tabled_percent(best.nonreturn), tabled_percent(best.error)

    def in_short(path: Sequence[Stretch], ratio: float) -> str:
        threshold, withheld, error = cheapest(path, ratio)
        return f"{threshold} (withholds {withheld}, error {error})"

    if len(advice) > MOST_SIDE_BY_SIDE:
        many = tuple((one.system, f"{ratio:g}", *cheapest(one.shown.path, ratio)) for one in advice for ratio in RATIOS)
        return ResultTable(title, ("system", "cost", "threshold", "non-return", "error"), many)
    rows = tuple((f"{ratio:g}", *(in_short(one.shown.path, ratio) for one in advice)) for ratio in RATIOS)
    return ResultTable(title, ("cost", *(one.system for one in advice)), rows)


def _cutoff(choice: Choice | Stretch) -> str:
    return "return nothing" if math.isnan(choice.threshold) else choice.printed_threshold


MOST_SIDE_BY_SIDE = 3
"""Systems up to which their cheapest thresholds stand beside each other."""

MOST_BRIEF_EXAMPLES = 5
"""Examples that a report in brief shows."""


def error_return_plot(answers: AnswerAnalyses) -> Drawing:
    """The error-return plot with the threshold recommended for the system with the least area."""
    recommended = leader_of(answers, answers.advice).recommended
    choices = () if recommended is None else (recommended,)
    if answers.comparison is not None:
        return drawing("returns.charts.comparison.comparison_chart", answers.comparison, region=None, choices=choices)
    return drawing("returns.charts.error_return.error_return_chart", answers.evaluations, region=None, choices=choices)


def brief_figures(answers: AnswerAnalyses) -> list[tuple[str, str]]:
    """Three numbers of the system with the least area, each with what it is."""
    leader = leader_of(answers, answers.advice)
    of = "" if len(answers.advice) == 1 else f" by {leader.system}"
    choice = leader.recommended
    if choice is None:
        one = next(one for one in answers.evaluations if one.system == leader.system)
        names = {"forced_error": "of all inputs answered wrongly", "nonreturn_floor": "never answered"}
        rates = [(percent(one.figures[name].value), f"{text}{of}, all returned") for name, text in names.items()]
        return [*rates, ("none", "threshold keeps the target")]
    return [
        (percent(choice.error), f"of all inputs answered wrongly{of} at {choice.printed_threshold}"),
        (percent(choice.nonreturn), "of all inputs withheld"),
        ("–" if math.isnan(choice.risk) else percent(choice.risk), "of the answers returned are wrong"),
    ]


def brief_examples(answers: AnswerAnalyses) -> tuple[ResultTable, ...]:
    """The surest errors of the system with the least area, five of them; none where it makes none."""
    leader = leader_of(answers, answers.advice).system
    one = next(one for one in answers.examples if one.system == leader)
    rows = [replace(row, nbest=()) for row in (*one.confident_errors, *one.out_of_scope_returned)]
    rows = sorted(rows, key=lambda row: -row.confidence)[:MOST_BRIEF_EXAMPLES]
    return (_example_table(f"{leader}: surest errors", rows, one.errors),) if rows else ()


def calibration_section(calibrations: Sequence[Calibration], evaluations: Sequence[Evaluation]) -> Presentation:
    """Whether confidences are probabilities, and what to do about it."""
    names = {one.system for one in calibrations}
    others = [one.system for one in evaluations if one.system not in names]
    by_system = [
        [
            calibration_sentence(one),
            *([order_sentence(one.order)] if one.advice == "recalibrate" and one.order is not None else []),
        ]
        for one in calibrations
    ]
    sentences = by_system[0] if len(by_system) == 1 else [" ".join(one) for one in by_system]
    if len(by_system) > MOST_IN_PROSE:
        said = list(zip((one.system for one in calibrations), sentences, strict=True))
        sentences = _paragraphs(said, evaluations, "The table of confidences")
    drawn = [one for one in evaluations if one.system in names]
    if len(calibrations) == 1 and calibrations[0].chosen is not None:
        figures: tuple[Drawing, ...] = (reliability_drawing(calibrations[0]),)
    else:
        figures = (drawing("returns.charts.readings.reliability_chart", drawn),) if drawn else ()
    return Presentation(
        title="Do confidences mean what they say",
        sentences=(
            *sentences,
            *(f"{name}: its confidences are no probabilities, or do not differ." for name in others),
        ),
        tables=(calibration_table(calibrations),) if calibrations else (),
        figures=figures,
        data=lambda: pl.concat([one.frame() for one in calibrations]),
        document={"calibration": [_without_map(one) for one in calibrations]},
        notes=tuple(dict.fromkeys(note for one in calibrations for note in fold_notes(one))),
    )


def drift_section(system: str, found: Drift, *, alone: bool) -> Presentation:
    """Whether the last half by time differs from the first."""
    shown = of_drift(found)
    sizes = [f"{log.name} ({log.n:,} inputs)" for log in found.logs.sides]
    halves = f"Old is the first half, {sizes[0]}, new the last, {sizes[1]}."
    title = shown.title if alone else f"{shown.title} ({system})"
    return replace(shown, title=title, sentences=(halves, *shown.sentences), document={}, notes=())


def _without_map(one: Calibration) -> dict[str, Any]:
    """The calibration as plain values; its map, which may be long, is made by `demur recalibrate fit`."""
    return {key: value for key, value in one.to_dict().items() if key not in ("map", "notes", "warnings")}


BREAK = " ⏎ "
"""How a line break inside an input is shown."""


def example_section(examples: Sequence[Examples], advice: Sequence[Advice]) -> Presentation:
    """What to look at; the tables hold what people wrote, so they are shown apart from tables of numbers."""
    printed = {one.system: one.shown.printed_threshold for one in advice}
    return Presentation(
        title="What to look at",
        sentences=tuple(_example_sentence(one, printed[one.system]) for one in examples),
        tables=tuple(table for one in examples for table in _example_tables(one)),
        figures=(),
        data=lambda: pl.DataFrame([row for one in examples for row in one.to_dict()["confident_errors"]]),
        document={"examples": [one.to_dict() for one in examples]},
    )


def _example_sentence(one: Examples, threshold: str) -> str:
    if math.isnan(one.threshold):
        return f"{one.system} returns nothing, so there is nothing to look at but the right answers it withholds."
    if one.errors == 0:
        at = ", with all returned" if one.threshold == -math.inf else f" at {threshold}"
        return f"{one.system}: no wrong answer is returned{at}."
    wrong, right = ("answer is" if count == 1 else "answers are" for count in (one.errors, one.missed))
    scope = f", {one.out_of_scope:,} of them to inputs out of scope" if one.out_of_scope else ""
    if one.threshold == -math.inf:
        answers = "answer is" if one.errors == 1 else "answers are"
        return f"{one.system}: with all returned, {one.errors:,} {answers} wrong{scope}."
    return (
        f"{one.system}: at a threshold of {threshold}, {one.errors:,} wrong {wrong} "
        f"returned{scope}, and {one.missed:,} right {right} withheld."
    )


def _example_tables(one: Examples) -> list[ResultTable]:
    parts = (
        ("surest errors", one.confident_errors, one.errors - one.out_of_scope),
        ("missed chances: right, but withheld", one.missed_chances, one.missed),
        ("returned although out of scope", one.out_of_scope_returned, one.out_of_scope),
    )
    tables = [_example_table(f"{one.system}: {title}", rows, count) for title, rows, count in parts if rows]
    if one.confusions:
        confusions = tuple(
            (plain_text(pair.target), plain_text(pair.prediction), f"{pair.count:,}", f"{pair.returned:,}")
            for pair in one.confusions
        )
        columns = ("right answer", "answer", "times", "returned")
        tables.append(ResultTable(f"{one.system}: most frequent confusions", columns, confusions))
    return tables


def _example_table(title: str, rows: Sequence[Example], count: int) -> ResultTable:
    """A row per example; columns that no example has are left out."""
    inputs, lists = any(row.input for row in rows), any(row.nbest for row in rows)
    targets = any(row.target is None or row.target not in ((), (row.prediction,)) for row in rows)

    def target(row: Example) -> str:
        if row.target is None:
            return "(unknown)"
        return " or ".join(map(plain_text, row.target)) or "(out of scope)"

    cells = tuple(
        (
            f"{row.confidence:#.4g}" if math.isfinite(row.confidence) else "none",
            plain_text(row.input if inputs and row.input is not None else row.id or "(no id)"),
            *([target(row)] if targets else []),
            plain_text(row.prediction if row.prediction is not None else "(unknown)"),
            *(["; ".join(map(plain_text, row.nbest))] if lists else []),
        )
        for row in rows
    )
    columns = ("confidence", "input" if inputs else "id", *(["right answer"] if targets else []), "answer")
    columns += ("N-best",) if lists else ()
    shown = f"{len(rows)} of {count:,}" if len(rows) < count else f"all {count:,}"
    return ResultTable(f"{title} ({shown})", columns, cells)


def plain_text(text: str) -> str:
    """What people wrote in one line: line breaks and unseen characters made visible.

    >>> plain_text("two\\nlines")
    'two ⏎ lines'
    """
    return visible(BREAK.join(text.splitlines())).replace("\t", " ")


def making_section(analyses: ReportAnalyses, notes: Sequence[str], signatures: Sequence[str]) -> Presentation:
    """Everything needed to make the same numbers again."""
    options, files, versions = analyses.options, analyses.mixture.files, _versions()
    file_rows = tuple(
        (one.name, one.kind, "–" if one.size is None else f"{one.size:,}", one.digest or "–") for one in files
    )
    file_columns = ("file", "read as", "bytes", "SHA-256, first 16 digits")
    return Presentation(
        title="How the numbers were made",
        sentences=(
            f"Intervals and bands hold with {percent(options.level)} confidence; those that are resampled come from "
            f"{options.replicates:,} replicates with seed {options.seed}. The same files and settings give the same "
            "report.",
        ),
        tables=(
            *([ResultTable("Files", file_columns, file_rows)] if files else []),
            _row_table(analyses),
            *_unreachable_table(analyses),
            ResultTable("Software", ("package", "version"), tuple(versions.items())),
        ),
        figures=(),
        data=pl.DataFrame,
        document={
            "files": [{"name": one.name, "kind": one.kind, "bytes": one.size, "sha256": one.digest} for one in files],
            "made": {
                "seed": options.seed,
                "replicates": options.replicates,
                "level": options.level,
                "at_nonreturn": options.at,
                "versions": versions,
            },
            **({"not_in_this_report": dict(analyses.unreachable)} if analyses.unreachable else {}),
        },
        notes=tuple(notes),
        signatures=tuple(signatures),
    )


def _unreachable_table(analyses: ReportAnalyses) -> list[ResultTable]:
    """What cannot be computed where the rows are, and why."""
    if not analyses.unreachable:
        return []
    return [ResultTable("Not in this report, as an engine counted the rows", ("section", "why"), analyses.unreachable)]


def _versions() -> dict[str, str]:
    """The versions of what made the numbers."""
    versions = {"demur": __version__, "python": platform.python_version()}
    for name in ("numpy", "polars", "scipy"):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "unknown"
    return versions


def _row_table(analyses: ReportAnalyses) -> ResultTable:
    """How many rows there are of each kind, by system or study."""
    mixture = analyses.mixture
    rows: list[tuple[str, str, str]] = []
    if analyses.answers is not None:
        counts = {one.system: one.n for one in analyses.answers.evaluations}
        rows += [("responses", name, f"{counts[name]:,}") for name in sorted(counts)]
    if mixture.lists is not None:
        lists = mixture.lists.frame["system"].value_counts().sort("system")
        rows += [("N-best lists", name, f"{count:,}") for name, count in lists.iter_rows()]
    if mixture.dialogues is not None:
        rows.append(("dialogues", mixture.dialogues.outcome, f"{len(mixture.dialogues):,}"))
    rows += [("trials", study.study, f"{len(study):,}") for study in mixture.trials]
    return ResultTable("Rows", ("kind", "system or study", "rows"), tuple(rows))


MOST_SYSTEMS = 6
"""Systems without a recommended threshold that the verdict describes one by one."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a report says first: the lead, which stands over the plot, and what else was found."""

    lead: tuple[str, ...]
    findings: tuple[str, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """All of it."""
        return (*self.lead, *self.findings)


def verdict(analyses: ReportAnalyses, answers: AnswerAnalyses | None, others: Sequence[Presentation]) -> Verdict:
    """What the answers show, with short names, then the first sentence of every other part."""
    headlines = [part.headline for part in others if part.headline]
    if answers is None:
        return Verdict(tuple(headlines), ())
    compared = answers.comparison
    lead = [] if compared is None else [f"{verdicts.comparison_title(compared)}."]
    pairs = list(zip(answers.evaluations, answers.advice, strict=True))
    assumed = assumption(analyses.options) if can_be_chosen(answers.evaluations) else []
    findings = [*_answer_findings(answers), *headlines]
    if len(pairs) == 1:
        return Verdict((*lead, *_system_sentences(*pairs[0]), *assumed), tuple(findings))
    leader = leader_of(answers, answers.advice)
    without = [" ".join(_system_sentences(one, advice)) for one, advice in pairs if advice.recommended is None]
    if len(without) > MOST_SYSTEMS:
        without = [
            *without[:MOST_SYSTEMS],
            f"No threshold is recommended for {len(without) - MOST_SYSTEMS} more systems.",
        ]
    if can_be_chosen(answers.evaluations):
        lead.append(words.recommendation(leader.choices[0], leader.system))
    return Verdict((*lead, *assumed), (*without, *findings))


def _answer_findings(answers: AnswerAnalyses) -> list[str]:
    """The worst slice, what has changed, and whose confidences to recalibrate."""
    sentences = _worst_slice_sentence(answers)
    for system, drift in answers.drifts:
        if (headline := change_headline(drift)) is not None:
            sentences.append(headline if len(answers.evaluations) == 1 else f"{system}: {headline}")
    if off := [one for one in answers.calibrations if one.advice == "recalibrate"]:
        worst = percent(max(one.before["ece"].value for one in off))
        whose, much = ("its", worst) if len(off) == 1 else ("their", f"up to {worst}")
        systems = [one.system for one in off]
        names = (
            listed(systems) if len(systems) <= MOST_PAIRED else f"{len(systems)} of the systems, such as {systems[0]}"
        )
        sentences.append(f"Recalibrate {names}: {whose} confidences are off by {much} on average.")
    return sentences


def _system_sentences(one: Evaluation, advice: Advice) -> list[str]:
    """What one system does when it answers everything, and at the threshold recommended."""
    forced = one.figures["forced_error"]
    start = f"{one.system}: {percent(forced.value)} of {one.size_text} are answered wrongly when all is returned"
    if one.withheld + one.failed == one.n:
        return [f"{one.system} answers none of {one.n:,} inputs."]
    if one.curve.floor > 0:
        start += f", and {percent(one.curve.floor)} not at all"
    if one.sample.sweep.threshold.size < 2:
        return [f"{start}; {words.indistinct(one.sample.sweep)}, so no threshold can choose among them."]
    return [f"{start}.", " ".join([words.recommendation(advice.choices[0], ""), *_instead(advice)])]


def outcome_sentence(fit: OutcomeFit) -> str:
    """How far the outcome of dialogues follows from their turns, and what would be worth mending."""
    model = fit.regression
    outcome = model.outcome[:1].upper() + model.outcome[1:]
    if not model.chosen.terms or model.nested.r2 <= 0:
        return f"{outcome} does not follow from how turns are understood, as far as these dialogues tell."
    explained = (
        f"{outcome} follows from how turns are understood: {percent(max(model.chosen.r2, 0.0))} of its variance in "
        f"these dialogues, {percent(model.nested.r2)} in dialogues that the model has not seen."
    )
    return " ".join([explained, *price_sentences(fit.prices, model.outcome)])


def _worst_slice_sentence(answers: AnswerAnalyses) -> list[str]:
    tests = () if answers.slices is None else answers.slices.shown
    worse = [test for test in tests if test.what == "error" and test.difference > 0]
    if not worse:
        return []
    worst = max(worse, key=lambda test: test.difference)
    of = f" of {worst.system}" if len(answers.evaluations) > 1 else ""
    more = (
        "One slice has significantly more errors than the rest:"
        if len(worse) == 1
        else f"{len(worse)} slices have significantly more errors than the rest, most of all"
    )
    return [f"{more} {worst.part}{of}: {percent(worst.inside)} against {percent(worst.outside)}."]
