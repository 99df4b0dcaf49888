"""Studies against a gold standard as tables of text."""

from __future__ import annotations

from collections.abc import Sequence

from demur.analyses.gold.components import ComponentAnalysis
from demur.analyses.gold.domains import Domain
from demur.analyses.gold.planning import Plan
from demur.analyses.gold.study import GoldStudy
from demur.analyses.gold.wizards import WizardAgreement
from demur.views.gold_frames import effect_name
from demur.views.gold_words import Units, figure
from demur.views.nbest_rows import short
from demur.views.presentation import Table
from demur.views.words import p_value, percent


def performer_table(study: GoldStudy) -> Table:
    """Who performed, how well, and how far from the gold standard."""
    units = Units.of(study.trials)
    rows = [
        (
            one.name,
            one.role,
            f"{one.subjects:,}",
            f"{one.trials:,}",
            figure(mean, units.y),
            "–" if one.role == "gold" else figure(study.impurities[place - 1].mass),
            "–" if one.role == "gold" else figure(study.impurities[place - 1].below),
            "–" if one.role == "gold" else figure(study.impurities[place - 1].above),
        )
        for place, (one, mean) in enumerate(zip(study.performers, study.means, strict=True))
    ]
    low, high = study.ground.low, study.ground.high
    return Table(
        f"Performers, over {units.span(low, high)}",
        (
            "performer",
            "role",
            "subjects",
            "trials",
            f"mean {study.trials.y_name}",
            "impurity mass",
            "below gold",
            "above gold",
        ),
        tuple(rows),
        brief=Table(
            f"Performers, over {units.span(low, high)}",
            ("performer", f"mean {study.trials.y_name}", "impurity mass"),
            tuple((row[0], row[4], row[5]) for row in rows),
        ),
    )


def fit_table(study: GoldStudy) -> Table:
    """The curves, and how well they fit."""
    rows = tuple(
        (
            one.name,
            one.fit.kind,
            one.fit.reason,
            short(one.r2),
            short(one.deviance_explained),
            found.words() or "no misfit shown",
        )
        for one, found in zip(study.performers, study.residuals, strict=True)
    )
    return Table("Curves", ("performer", "curve", "because", "R²", "deviance explained", "residuals"), rows)


def pair_table(study: GoldStudy) -> Table:
    """Systems by their distance from the gold standard, two at a time."""
    units = Units.of(study.trials)
    rows = tuple(
        (
            f"{pair.a} / {pair.b}",
            "; ".join(f"{one.holds} {units.x(one.low)} to {units.x(one.high)}" for one in pair.ranges),
            ", ".join(f"{units.x(one.x)}{'' if one.shown else ' (not shown)'}" for one in pair.crossings) or "none",
            figure(pair.mass_difference),
            p_value(pair.p),
        )
        for pair in study.pairs
    )
    return Table(
        "Nearer the gold standard",
        ("systems", f"by {study.trials.x_name}", "crossing", "difference of mass", "p"),
        rows,
    )


def cost_table(study: GoldStudy) -> Table:
    """What it is worth to bring each system nearer."""
    units = Units.of(study.trials)
    rows = tuple(
        (
            one.system,
            ", ".join(f"{units.x(low)} to {units.x(high)}" for low, high in one.spans) or "nowhere",
            figure(one.average),
            figure(one.difference),
        )
        for one in study.costs
    )
    return Table("Cost", ("system", study.trials.x_name, "average marginal cost", "average cost difference"), rows)


def component_tables(found: ComponentAnalysis) -> tuple[Table, ...]:
    """The combinations of components that were run, and what each component does."""
    masses = tuple(("+".join(sorted(on)) or "none", figure(mass)) for on, mass in found.masses)
    effects = tuple(
        (effect.kind, effect_name(effect.kind, effect.components, effect.others), figure(effect.change))
        for effect in found.effects
    )
    return (
        Table(f"Combinations of {found.system}", ("components on", "impurity mass"), masses),
        Table("Components", ("kind", "effect", "change of impurity mass"), effects),
    )


def wizard_table(found: WizardAgreement, units: Units) -> Table:
    """Those behind the gold standard, the farthest from the pooled curve first."""
    ordered = sorted(found.wizards, key=lambda one: -abs(one.departure))
    rows = tuple(
        (one.name, f"{one.n:g}", _signed(one.departure, units), _plain(one.error, units), "yes" if one.apart else "no")
        for one in ordered[:50]
    )
    return Table("Wizards", ("wizard", "trials", "departure", "standard error", "apart"), rows)


def _signed(value: float, units: Units) -> str:
    told = f"{100 * value:+.1f} points" if units.y_percent else f"{value:+.3g}"
    return told.replace("-", "−")


def _plain(value: float, units: Units) -> str:
    return f"{100 * value:.1f} points" if units.y_percent else f"{value:.3g}"


def convergence_table(study: GoldStudy) -> Table:
    """Whether the curves have settled."""
    rows = tuple((one.performer, one.words(), "more" if one.needed else "enough") for one in study.convergence)
    return Table("Convergence over subjects", ("performer", "what the last subject did", "subjects"), rows)


def domain_table(domains: Sequence[Domain]) -> Table:
    """Systems across studies."""
    rows = tuple((one.study, one.system, figure(one.complexity), figure(one.relative, percent)) for one in domains)
    return Table("Across domains", ("study", "system", "complexity", "impurity mass / gold"), rows)


def plan_table(plan: Plan, units: Units) -> Table:
    """What each design would give."""
    pairs = list(plan.designs[0].power)
    rows = tuple(
        (
            str(one.subjects),
            str(one.trials),
            f"± {units.y(one.half_width)}",
            f"± {units.y(max(one.worst.values()))}",
            f"± {short(max(one.mass_half_widths.values()))}",
            *(percent(one.power[pair]) for pair in pairs),
        )
        for one in plan.designs
    )
    columns = ("subjects", "trials each", "curve, mean", "curve, worst", "impurity mass")
    return Table("Designs", (*columns, *(f"tells {pair} apart" for pair in pairs)), rows)
