"""How studies against a gold standard are shown: sentences, tables, figures, data and the JSON document."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import polars as pl

from demur.analyses.gold.domains import GoldStudies
from demur.analyses.gold.planning import Plan
from demur.analyses.gold.study import GoldStudy
from demur.analyses.gold.wizards import WizardAgreement
from demur.data.trials import Trials
from demur.views import gold_frames as frames
from demur.views import gold_tables as tables
from demur.views.gold_words import Units, figure, study_sentences, verdict
from demur.views.presentation import Presentation, Table, drawing
from demur.views.words import percent


def of_gold(studies: GoldStudies) -> Presentation:
    """How one or more studies are shown; several are held against each other first."""
    if len(studies) == 1:
        return of_study(studies[0])
    parts = tuple(replace(of_study(study), title=study.trials.study) for study in studies)
    return Presentation(
        title="Across domains",
        sentences=tuple(_across(studies)),
        tables=(tables.domain_table(studies.domains),),
        figures=(main_figure(studies),),
        data=studies.frame,
        document={**studies.to_dict(), "studies": [part.document for part in parts]},
        notes=tuple(f"{study.trials.study}: {note}" for study in studies for note in study.notes),
        warnings=tuple(f"{study.trials.study}: {told}" for study in studies for told in _warnings(study)),
        signatures=tuple(study.signature for study in studies),
        parts=tuple(replace(part, notes=(), warnings=(), signatures=()) for part in parts),
    )


def of_study(study: GoldStudy) -> Presentation:
    """How one study is shown."""
    units = Units.of(study.trials)
    found = [
        tables.performer_table(study),
        *([tables.pair_table(study)] if study.pairs else []),
        *([tables.cost_table(study)] if study.costs else []),
        *(table for one in study.components for table in tables.component_tables(one)),
        tables.fit_table(study),
        *_check_tables(study, units),
    ]
    return Presentation(
        title="How far from the gold standard",
        sentences=tuple(study_sentences(study)),
        tables=tuple(found),
        figures=tuple(_figures(study, units)),
        data=lambda: frames.curve_frame(study),
        document=document(study),
        notes=_notes(study, units),
        warnings=_warnings(study),
        signatures=(study.signature,),
    )


def _check_tables(study: GoldStudy, units: Units) -> list[Table]:
    found = []
    if study.wizards is not None and len(study.wizards.wizards) > 1:
        found.append(tables.wizard_table(study.wizards, units))
    if study.convergence:
        found.append(tables.convergence_table(study))
    return found


def benchmark(study: GoldStudy, **options: Any) -> Callable[[], Any]:
    """The benchmark graph of a study, drawn when it is called."""
    x, y = _axes(study, Units.of(study.trials))
    curves, points = frames.curve_frame(study), frames.point_frame(study)
    return drawing("benchmark_chart", curves, points, **{**x, **y, "upper": study.trials.upper, **options})


def main_figure(studies: GoldStudies, **options: Any) -> Callable[[], Any]:
    """The benchmark graph of one study, or several studies across domains."""
    if len(studies) == 1:
        return benchmark(studies[0], **options)
    return drawing("domains_chart", studies.frame(), **{"level": studies[0].options.level, **options})


def _axes(study: GoldStudy, units: Units) -> tuple[dict[str, Any], dict[str, Any]]:
    x = {"x": units.x_name, "x_percent": units.x_percent, "level": study.options.level}
    return x, {"y": units.y_name, "percent": units.y_percent}


def _figures(study: GoldStudy, units: Units) -> list[Callable[[], Any]]:
    level, upper = study.options.level, study.trials.upper
    x, y = _axes(study, units)
    made: list[Callable[[], Any]] = [
        benchmark(study),
        drawing("impurity_chart", frames.impurity_frame(study), frames.range_frame(study), **x, **y),
    ]
    if study.options.cost is not None:
        marks = frames.cost_marks(study)
        made.append(drawing("cost_chart", frames.cost_frame(study), marks=marks if marks.height else None, **y))
    effects = [frames.effect_frame(one) for one in study.components]
    made += [drawing("components_chart", found, level=level) for found in effects if found.height]
    made.append(drawing("gold_residual_chart", frames.residual_frame(study), percent=units.y_percent, **x))
    if study.wizards is not None and study.wizards.frame().height:
        curves = study.wizards.frame()
        made.append(drawing("wizards_chart", curves, frames.gold_band(study), upper=upper, **x, **y))
    if study.convergence:
        steps = pl.concat([one.frame() for one in study.convergence])
        tolerance = study.convergence[0].tolerance
        made.append(drawing("convergence_chart", steps, percent=units.y_percent, tolerance=tolerance))
    return made


def document(study: GoldStudy) -> dict[str, Any]:
    """A study as plain values, with its verdict in words."""
    return {**study.to_dict(), "verdict": " ".join(verdict(study))}


def _notes(study: GoldStudy, units: Units) -> tuple[str, ...]:
    level = percent(study.options.level)
    wizards = study.wizards.notes if study.wizards is not None else ()
    cost = study.options.cost
    return (
        *study.notes,
        *(note for one in study.components for note in one.notes),
        *(() if cost is None else (f"cost: {cost.words()}", *cost.notes)),
        *wizards,
        f"every integral is over {units.span(study.ground.low, study.ground.high)}, which all curves cover; "
        f"complexity over the trials of {study.gold.name}; nothing is extrapolated",
        f"{level} bands and intervals: subjects drawn anew {study.options.replicates:,} times (seed "
        f"{study.options.seed}), standard error times Student's t",
    )


def _warnings(study: GoldStudy) -> tuple[str, ...]:
    agreement: WizardAgreement | None = study.wizards
    misfits = [
        f"{one.name}: {found.words()} Another --fit may suit it better."
        for one, found in zip(study.performers, study.residuals, strict=True)
        if found.words() is not None
    ]
    return (*study.warnings, *misfits, *(agreement.warnings if agreement is not None else ()))


def _across(studies: GoldStudies) -> list[str]:
    known = [study for study in studies if study.complexity.defined]
    told = []
    if len(known) > 1:
        ordered = sorted(known, key=lambda study: study.complexity.value)
        easy, hard = ordered[0], ordered[-1]
        told.append(
            f"{hard.trials.study} comes out hardest for its gold standard, complexity {figure(hard.complexity)}, "
            f"{easy.trials.study} easiest, {figure(easy.complexity)}."
        )
    domains = sorted((one for one in studies.domains if one.relative.defined), key=lambda one: one.relative.value)
    if len(domains) > 1:
        best = domains[0]
        told.append(
            f"{best.system} in {best.study} comes out nearest its own gold standard: its impurity mass is "
            f"{figure(best.relative, percent)} of what that achieves."
        )
    return told


def plan_figure(plan: Plan, **options: Any) -> Callable[[], Any]:
    """The widths that designs give, drawn when it is called."""
    told = {"target": plan.target, "quantity": "half-width of curves"}
    frame = plan.frame()
    pairs = [name for name in frame.columns if name.startswith("power, ")]
    powered = frame.with_columns(power=pl.min_horizontal(pairs)) if pairs else frame
    return drawing("plan_chart", powered, **{**told, **options})


def of_plan(plan: Plan, trials: Trials) -> Presentation:
    """How a plan is shown."""
    units = Units.of(trials)
    return Presentation(
        title="How many subjects and trials",
        sentences=(_capital(plan.words()) + ".",),
        tables=(tables.plan_table(plan, units),),
        figures=(plan_figure(plan, percent=units.y_percent),),
        data=plan.frame,
        document=plan.to_dict(),
        notes=(*trials.notes, *plan.notes),
        warnings=trials.warnings,
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
