"""How studies against a gold standard are shown: tables, figures, data and the JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from demur.core.show.html import paragraphs, pictured
from demur.core.show.numbers import p_value, percent, short, tabled_p
from demur.core.show.presentation import Drawing, Presentation, ResultTable, drawing
from demur.core.show.results import register
from demur.gold_standard.impurity import ComponentAnalysis
from demur.gold_standard.planning import GoldPlan
from demur.gold_standard.study import Domain, GoldStudies, GoldStudy, study_values
from demur.gold_standard.wizards import WizardAgreement
from demur.gold_standard.words import Units, claim, figure, greatest_mass, study_sentences, weighted_unit

PLACES = 101
"""Places of a curve in a figure or a file."""


def curve_frame(study: GoldStudy) -> pl.DataFrame:
    """Every curve over the range of its own trials: `performer, role, x, y, low, high`."""
    named = [(one, pl.lit(one.name).alias("performer"), pl.lit(one.role).alias("role")) for one in study.performers]
    return pl.concat([one.curve(PLACES).select(*who, pl.all()) for one, *who in named])


def point_frame(study: GoldStudy) -> pl.DataFrame:
    """Means of trials by ranges of x: `performer, role, x, y, n`."""
    rows = []
    for one, residuals in zip(study.performers, study.residuals, strict=True):
        counts = one.fit.counts
        totals, sizes = counts.whole
        for part in residuals.bins:
            inside = (counts.places >= part.start) & (counts.places <= part.end)
            n = float(sizes[inside].sum())
            rows.append((one.name, one.role, part.x, float(counts.scale.performance(totals[inside].sum() / n)), n))
    return pl.DataFrame(rows, schema=["performer", "role", "x", "y", "n"], orient="row")


def impurity_frame(study: GoldStudy) -> pl.DataFrame:
    """Every system's distance from the gold standard: `system, x, impurity, low, high, signed`."""
    names = ("x", "impurity", "low", "high", "signed")
    frames = [pl.DataFrame({name: getattr(one, name) for name in names}) for one in study.impurities]
    systems = [pl.lit(one.system).alias("system") for one in study.impurities]
    return pl.concat([frame.select(system, *names) for frame, system in zip(frames, systems, strict=True)])


def range_frame(study: GoldStudy) -> pl.DataFrame:
    """Which system is nearest the gold standard where, shown against every other one: `from, to, nearer`."""
    rows = [{"from": one.low, "to": one.high, "nearer": one.holds} for one in study.nearest]
    return pl.DataFrame(rows, schema={"from": pl.Float64, "to": pl.Float64, "nearer": pl.String})


def cost_frame(study: GoldStudy) -> pl.DataFrame:
    """The cost function: `performance, amount, kind` (line or point)."""
    cost = study.options.cost
    assert cost is not None
    scale = study.gold.fit.counts.scale
    if cost.points is not None:
        rows = [(p, amount, "point") for p, amount in cost.points]
        return pl.DataFrame(rows, schema=["performance", "amount", "kind"], orient="row")
    values = np.concatenate([one.fit(study.x_range.x) for one in study.performers])
    low = scale.lower if scale.upper is not None else float(values.min())
    high = scale.upper if scale.upper is not None else float(values.max())
    p = np.linspace(low, high, PLACES)
    return pl.DataFrame({"performance": p, "amount": cost(p)}).with_columns(pl.lit("line").alias("kind"))


def cost_marks(study: GoldStudy) -> pl.DataFrame:
    """The performances of each system over the stretch that its cost is taken of: `system, from, to`."""
    rows = []
    for system, cost in zip(study.systems, study.costs, strict=True):
        if cost.spans:
            values = np.concatenate([system.fit(np.linspace(*span, PLACES)) for span in cost.spans])
            rows.append({"system": system.name, "from": float(values.min()), "to": float(values.max())})
    schema = {"system": pl.String, "from": pl.Float64, "to": pl.Float64}
    return pl.DataFrame(rows, schema=schema)


def effect_frame(found: ComponentAnalysis) -> pl.DataFrame:
    """Changes of impurity mass: `effect, value, low, high, kind`; undefined ones are left out."""
    rows = []
    for effect in found.effects:
        if effect.change.defined:
            name = effect_name(effect.kind, effect.components, effect.others)
            rows.append((name, effect.change.value, effect.change.low, effect.change.high, effect.kind))
    schema = {"effect": pl.String, "value": pl.Float64, "low": pl.Float64, "high": pl.Float64, "kind": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


def effect_name(kind: str, components: tuple[str, ...], others: tuple[str, ...] | None) -> str:
    """How an effect is called.

    >>> effect_name("lesion", ("confirm",), ("spell",)), effect_name("interaction", ("confirm", "spell"), None)
    ('without confirm (spell on)', 'confirm × spell')
    """
    if kind == "lesion":
        rest = f"{'+'.join(others)} on" if others else "nothing else on"
        return f"without {components[0]} ({rest})"
    return " × ".join(components)


def residual_frame(study: GoldStudy) -> pl.DataFrame:
    """What the curves leave of the trials: `performer, x, residual, low, high, n`."""
    return pl.concat([one.frame() for one in study.residuals])


_MASSES = ("impurity mass", "impurity mass / gold")


def performer_table(study: GoldStudy) -> ResultTable:
    """Who performed, how well, and how far from the gold standard."""
    units = Units.of(study.trials)
    most, top = greatest_mass(study), study.trials.upper if study.trials.lower == 0 else None
    distance = _points if units.y_percent else short
    masses = [
        (
            figure(one.mass, most=most),
            figure(one.relative, percent, most=1.0),
            figure(one.mean, distance, most=None if most is None else most / study.x_range.width),
            figure(one.below, most=most),
            figure(one.above, most=most),
        )
        for one in study.impurities
    ]
    rows = tuple(
        (one.name, one.role, f"{one.subjects:,}", f"{one.trials:,}", figure(mean, units.y, most=top), *mass)
        for one, mean, mass in zip(study.performers, study.means, [("–",) * 5, *masses], strict=True)
    )
    title, mean = f"Performers, over {units.span(study.x_range.low, study.x_range.high)}", f"mean {study.trials.y_name}"
    mean_distance = f"mean distance{', points' if units.y_percent else ''}"
    brief = tuple((row[0], row[4], row[5], row[6]) for row in rows)
    return ResultTable(
        title,
        ("performer", "role", "subjects", "trials", mean, *_MASSES, mean_distance, "below gold", "above gold"),
        rows,
        brief=ResultTable(title, ("performer", mean, *_MASSES), brief),
    )


def _points(value: float) -> str:
    return short(100 * value)


def fit_table(study: GoldStudy) -> ResultTable:
    """The curves, and how well they fit."""
    rows = tuple(
        (
            one.name,
            one.fit.kind,
            short(one.r2),
            short(one.deviance_explained),
            found.words() or "no misfit shown",
            f"{'residuals are not normal' if normal.shown else 'no departure shown'} ({p_value(normal.p)})",
        )
        for one, found, normal in zip(study.performers, study.residuals, study.normality, strict=True)
    )
    columns = ("performer", "curve", "R²", "deviance explained", "residuals", "normality")
    return ResultTable("Curves", columns, rows)


def pair_table(study: GoldStudy) -> ResultTable:
    """Systems by their distance from the gold standard, two at a time."""
    units = Units.of(study.trials)
    rows = tuple(
        (
            f"{pair.a} / {pair.b}",
            "; ".join(f"{one.holds} {units.x(one.low)} to {units.x(one.high)}" for one in pair.ranges),
            ", ".join(f"{units.x(one.x)}{'' if one.shown else ' (not shown)'}" for one in pair.crossings) or "none",
            figure(pair.mass_difference),
            tabled_p(pair.p),
        )
        for pair in study.pairs
    )
    return ResultTable(
        "Nearer the gold standard",
        ("systems", f"by {study.trials.x_name}", "crossing", "difference of mass", "p"),
        rows,
    )


def cost_table(study: GoldStudy) -> ResultTable:
    """What it is worth to bring each system nearer."""
    units = Units.of(study.trials)
    rows = tuple(
        (
            one.system,
            ", ".join(f"{units.x(low)} to {units.x(high)}" for low, high in one.spans) or "nowhere",
            figure(one.average, unit=weighted_unit(one.unit, units)),
            figure(one.difference, unit=one.unit),
        )
        for one in study.costs
    )
    return ResultTable(
        "Cost", ("system", study.trials.x_name, "average marginal cost", "average cost difference"), rows
    )


def component_tables(found: ComponentAnalysis) -> tuple[ResultTable, ...]:
    """The combinations of components that were run, and what each component does."""
    masses = tuple(("+".join(sorted(on)) or "none", figure(mass)) for on, mass in found.masses)
    effects = tuple(
        (effect.kind, effect_name(effect.kind, effect.components, effect.others), figure(effect.change))
        for effect in found.effects
    )
    return (
        ResultTable(f"Combinations of {found.system}", ("components on", "impurity mass"), masses),
        ResultTable("Components", ("kind", "effect", "change of impurity mass"), effects),
    )


def wizard_table(found: WizardAgreement, units: Units) -> ResultTable:
    """Those behind the gold standard, the farthest from the pooled curve first."""
    ordered = sorted(found.wizards, key=lambda one: -abs(one.departure))
    rows = tuple(
        (
            one.name,
            f"{one.n:g}",
            _signed(one.departure, units),
            f"{100 * one.error:.1f} points" if units.y_percent else f"{one.error:.3g}",
            "yes" if one.apart else "no",
        )
        for one in ordered[:50]
    )
    return ResultTable("Wizards", ("wizard", "trials", "departure", "standard error", "apart"), rows)


def _signed(value: float, units: Units) -> str:
    text = f"{100 * value:+.1f} points" if units.y_percent else f"{value:+.3g}"
    return text.replace("-", "−")


def convergence_table(study: GoldStudy) -> ResultTable:
    """Whether the curves have settled."""
    rows = tuple(
        (one.performer, f"{one.counts.subjects:,}", one.moved_text, one.collected_text, one.settled_text)
        for one in study.convergence
    )
    columns = ("performer", "subjects", "moved by the last", "by the last who came", "settled")
    return ResultTable("Convergence over subjects", columns, rows)


def domain_table(domains: Sequence[Domain]) -> ResultTable:
    """Systems across studies."""
    rows = tuple(
        (one.study, one.system, figure(one.complexity, most=1.0), figure(one.relative, percent, most=1.0))
        for one in domains
    )
    return ResultTable("Across domains", ("study", "system", "complexity", "impurity mass / gold"), rows)


def plan_table(plan: GoldPlan) -> ResultTable:
    """What each design would give."""
    pairs = list(plan.designs[0].power)
    rows = tuple(
        (
            str(one.subjects),
            str(one.trials),
            plan.width_text(one.half_width),
            plan.width_text(max(one.worst.values())),
            f"±{short(max(one.mass_half_widths.values()))}",
            *(percent(one.power[pair]) for pair in pairs),
        )
        for one in plan.designs
    )
    columns = ("subjects", "trials each", "curve, mean", "curve, worst", "impurity mass")
    return ResultTable("Designs", (*columns, *(f"power, {pair}" for pair in pairs)), rows)


def of_gold(studies: GoldStudies) -> Presentation:
    """How one or more studies are shown; several are held against each other first."""
    if len(studies) == 1:
        return of_study(studies[0])
    parts = tuple(replace(of_study(study), title=study.trials.study) for study in studies)
    return Presentation(
        title="Across domains",
        sentences=tuple(_across(studies)),
        tables=(domain_table(studies.domains),),
        figures=(main_figure(studies),),
        data=studies.frame,
        document=studies.document,
        notes=studies.notes,
        warnings=studies.warnings,
        signatures=tuple(study.signature for study in studies),
        parts=tuple(replace(part, notes=(), warnings=(), signatures=()) for part in parts),
    )


def of_study(study: GoldStudy) -> Presentation:
    """How one study is shown."""
    units = Units.of(study.trials)
    found = [
        performer_table(study),
        *([pair_table(study)] if study.pairs else []),
        *([cost_table(study)] if study.costs else []),
        *(table for one in study.components for table in component_tables(one)),
        fit_table(study),
        *([wizard_table(study.wizards, units)] if study.wizards and len(study.wizards.wizards) > 1 else []),
        *([convergence_table(study)] if study.convergence else []),
    ]
    return Presentation(
        title="How far from the gold standard",
        sentences=tuple(study_sentences(study)),
        tables=tuple(found),
        figures=tuple(_figures(study, units)),
        data=lambda: curve_frame(study),
        document=study_values(study),
        notes=study.notes,
        warnings=study.warnings,
        signatures=(study.signature,),
    )


_CHARTS = "gold_standard.charts."


def benchmark(study: GoldStudy, **options: Any) -> Drawing:
    """The benchmark graph of a study, drawn when it is called."""
    x, y = _axes(study, Units.of(study.trials))
    all_options = {**x, **y, "upper": study.trials.upper, "title": claim(study), **options}
    return drawing(f"{_CHARTS}benchmark.benchmark_chart", curve_frame(study), point_frame(study), **all_options)


def main_figure(studies: GoldStudies, **options: Any) -> Drawing:
    """The benchmark graph of one study, or several studies across domains."""
    if len(studies) == 1:
        return benchmark(studies[0], **options)
    all_options = {"level": studies[0].options.level, **options}
    return drawing(f"{_CHARTS}impurity.domains_chart", studies.frame(), **all_options)


def _axes(study: GoldStudy, units: Units) -> tuple[dict[str, Any], dict[str, Any]]:
    x = {"x": units.x_name, "x_percent": units.x_percent, "level": study.options.level}
    return x, {"y": units.y_name, "percent": units.y_percent}


def _figures(study: GoldStudy, units: Units) -> list[Drawing]:
    x, y = _axes(study, units)
    in_percent = {"percent": units.y_percent}
    charts: list[Drawing] = [
        benchmark(study),
        drawing(
            f"{_CHARTS}impurity.impurity_chart", impurity_frame(study), range_frame(study), **x, **y, title=claim(study)
        ),
    ]
    if study.options.cost is not None:
        marks = cost_marks(study)
        some = marks if marks.height else None
        charts.append(
            drawing(
                f"{_CHARTS}checks.cost_chart",
                cost_frame(study),
                marks=some,
                **y,
                amount=f"amount in {study.options.cost.unit_name}",
            )
        )
    level, effects = study.options.level, [effect_frame(one) for one in study.components]
    charts += [drawing(f"{_CHARTS}impurity.components_chart", one, level=level) for one in effects if one.height]
    charts.append(drawing(f"{_CHARTS}checks.gold_residual_chart", residual_frame(study), **in_percent, **x))
    quantiles = pl.concat([one.frame() for one in study.normality])
    tests = {one.performer: one.p for one in study.normality}
    charts.append(drawing(f"{_CHARTS}checks.normality_chart", quantiles, tests=tests, level=level))
    curves = study.wizards.frame() if study.wizards is not None else pl.DataFrame()
    if curves.height:
        upper = study.trials.upper
        charts.append(
            drawing(f"{_CHARTS}checks.wizards_chart", curves, study.gold.curve(PLACES), upper=upper, **x, **y)
        )
    if study.convergence:
        steps = pl.concat([one.frame() for one in study.convergence])
        tolerance = study.convergence[0].tolerance
        charts.append(drawing(f"{_CHARTS}checks.convergence_chart", steps, tolerance=tolerance, **in_percent))
    return charts


def _across(studies: GoldStudies) -> list[str]:
    known = [study for study in studies if study.complexity.defined]
    sentences = []
    if len(known) > 1:
        ordered = sorted(known, key=lambda study: study.complexity.value)
        easy, hard = ordered[0], ordered[-1]
        sentences.append(
            f"{hard.trials.study} comes out hardest for its gold standard, "
            f"complexity {figure(hard.complexity, most=1.0)}, "
            f"{easy.trials.study} easiest, {figure(easy.complexity, most=1.0)}."
        )
    domains = sorted((one for one in studies.domains if one.relative.defined), key=lambda one: one.relative.value)
    if len(domains) > 1:
        best = domains[0]
        sentences.append(
            f"{best.system} in {best.study} comes out nearest its own gold standard: its impurity mass is "
            f"{figure(best.relative, percent, most=1.0)} of what that achieves."
        )
    return sentences


def plan_figure(plan: GoldPlan, **options: Any) -> Drawing:
    """The widths that designs give, drawn when it is called."""
    labels = {"target": plan.target, "quantity": "half-width of curves", "percent": plan.percent}
    frame = plan.frame()
    pairs = [name for name in frame.columns if name.startswith("power, ")]
    powered = frame.with_columns(power=pl.min_horizontal(pairs)) if pairs else frame
    return drawing("gold_standard.charts.checks.plan_chart", powered, **{**labels, **options})


def of_plan(plan: GoldPlan) -> Presentation:
    """How a plan is shown."""
    advice = plan.words()
    return Presentation(
        title="How many subjects and trials",
        sentences=(f"{advice[0].upper()}{advice[1:]}.",),
        tables=(plan_table(plan),),
        figures=(plan_figure(plan),),
        data=plan.frame,
        document=plan.to_dict(),
        notes=plan.notes,
        warnings=plan.warnings,
    )


register(GoldStudy, chart=lambda study, **options: benchmark(study, **options)(), present=of_study)
register(
    GoldPlan,
    chart=lambda plan, **options: plan_figure(plan, **options)(),
    page=pictured(lambda plan: paragraphs([plan.words()])),
    sentences=lambda plan: of_plan(plan).sentences,
)
register(GoldStudies, chart=lambda studies, **options: main_figure(studies, **options)(), present=of_gold)
